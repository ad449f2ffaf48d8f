// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * blue: the queueing discipline of docs/new-law.md.
 *
 * The control law is in aqm/blue.h, the queue around it in aqm/qdisc.h.
 */
#include <linux/module.h>
#include <linux/pkt_sched_blue.h>

#include <aqm/blue.h>
#include <aqm/qdisc.h>

#define BLUE_LIMIT	120	/* packets */
#define BLUE_STEP_MIN	(AQM_REAL_ONE / 1000000)
#define BLUE_FREEZE_MAX	(10ULL * NSEC_PER_SEC)

/**
 * struct blue_options - BLUE's own options
 * @up: d1, Q16.48
 * @down: d2, Q16.48
 * @freeze: ns
 */
struct blue_options {
	u64 up;
	u64 down;
	u64 freeze;
};

/**
 * struct blue_sched_data - a blue queue
 * @queue: the packets and the options all disciplines share
 * @options: the law's parameters, as the user stated them
 * @params: the same, as the law uses them
 * @vars: the law's state
 */
struct blue_sched_data {
	struct aqm_queue queue;
	struct blue_options options;
	struct blue_params params;
	struct blue_vars vars;
};

static int blue_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			struct sk_buff **to_free)
{
	struct blue_sched_data *q = qdisc_priv(sch);
	u64 now = aqm_now(&q->queue);
	enum aqm_verdict verdict;

	verdict = aqm_enqueue(skb, sch, &q->queue,
			      aqm_hit(&q->queue, q->vars.probability), now);
	if (verdict == AQM_OVERFLOW)
		blue_lose(&q->params, &q->vars, now);
	if (aqm_dropped(verdict))
		return qdisc_drop(skb, sch, to_free);
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *blue_dequeue(struct Qdisc *sch)
{
	struct blue_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u64 now;

	if (!q->queue.packets)
		return NULL;
	now = aqm_now(&q->queue);
	skb = aqm_dequeue(sch, &q->queue, now);
	if (!q->queue.packets)
		blue_idle(&q->params, &q->vars, now);
	return skb;
}

static void blue_reset(struct Qdisc *sch)
{
	struct blue_sched_data *q = qdisc_priv(sch);

	aqm_reset(sch, &q->queue);
	blue_init(&q->vars, aqm_now_exactly(&q->queue));
}

/* Put valid options into force; the discipline is locked. */
static void blue_configure(struct Qdisc *sch, const struct aqm_config *shared,
			   const struct blue_options *options)
{
	struct blue_sched_data *q = qdisc_priv(sch);
	const int to_prob = AQM_REAL_SHIFT - AQM_PROB_SHIFT;

	aqm_configure(sch, &q->queue, shared);
	q->options = *options;
	q->params = (struct blue_params){
		.up = options->up >> to_prob,
		.down = options->down >> to_prob,
		.freeze = options->freeze,
	};
}

static const struct nla_policy blue_policy[TCA_BLUE_MAX + 1] = {
	AQM_POLICY_NO_TARGET,
	[TCA_BLUE_UP]		= { .type = NLA_U64 },
	[TCA_BLUE_DOWN]		= { .type = NLA_U64 },
	[TCA_BLUE_FREEZE]	= { .type = NLA_U64 },
};

static int blue_change(struct Qdisc *sch, struct nlattr *opt,
		       struct netlink_ext_ack *extack)
{
	struct blue_sched_data *q = qdisc_priv(sch);
	struct aqm_config shared = q->queue.config;
	struct blue_options options = q->options;
	struct nlattr *tb[TCA_BLUE_MAX + 1];
	int err;

	err = nla_parse_nested(tb, TCA_BLUE_MAX, opt, blue_policy, extack) ?:
	      aqm_parse(&shared, tb, extack) ?:
	      AQM_TAKE(options.up, tb[TCA_BLUE_UP], u64,
		       BLUE_STEP_MIN, AQM_REAL_ONE, extack,
		       "d1 must be 0.000001 to 1") ?:
	      AQM_TAKE(options.down, tb[TCA_BLUE_DOWN], u64,
		       BLUE_STEP_MIN, AQM_REAL_ONE, extack,
		       "d2 must be 0.000001 to 1") ?:
	      AQM_TAKE(options.freeze, tb[TCA_BLUE_FREEZE], u64,
		       0, BLUE_FREEZE_MAX, extack,
		       "freeze must be 0 to 10s");
	if (err)
		return err;

	sch_tree_lock(sch);
	blue_configure(sch, &shared, &options);
	sch_tree_unlock(sch);
	return 0;
}

static int blue_sched_init(struct Qdisc *sch, struct nlattr *opt,
			   struct netlink_ext_ack *extack)
{
	struct blue_sched_data *q = qdisc_priv(sch);
	const struct aqm_config shared = {
		.limit = BLUE_LIMIT,
		.protect = TC_AQM_NO_DSCP,
	};
	const struct blue_options options = {
		.up = aqm_real(2, 100),
		.down = aqm_real(2, 1000),
		.freeze = 100 * NSEC_PER_MSEC,
	};

	blue_configure(sch, &shared, &options);
	blue_init(&q->vars, aqm_now_exactly(&q->queue));
	return opt ? blue_change(sch, opt, extack) : 0;
}

static int blue_put_options(struct Qdisc *sch, struct sk_buff *skb)
{
	struct blue_sched_data *q = qdisc_priv(sch);
	const struct blue_options *options = &q->options;

	if (aqm_dump(skb, &q->queue.config) ||
	    nla_put_u64_64bit(skb, TCA_BLUE_UP, options->up, TCA_AQM_PAD) ||
	    nla_put_u64_64bit(skb, TCA_BLUE_DOWN, options->down, TCA_AQM_PAD) ||
	    nla_put_u64_64bit(skb, TCA_BLUE_FREEZE, options->freeze,
			      TCA_AQM_PAD))
		return -EMSGSIZE;
	return 0;
}

static int blue_put_stats(struct Qdisc *sch, struct sk_buff *skb)
{
	struct blue_sched_data *q = qdisc_priv(sch);
	int err;

	sch_tree_lock(sch);
	err = aqm_dump_stats(skb, &q->queue, q->vars.probability);
	sch_tree_unlock(sch);
	return err;
}

static int blue_dump_options(struct Qdisc *sch, struct sk_buff *skb)
{
	return aqm_dump_nest(sch, skb, TCA_OPTIONS, blue_put_options);
}

static int blue_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	return aqm_dump_nest(sch, d->skb, TCA_STATS_APP, blue_put_stats);
}

static struct Qdisc_ops blue_qdisc_ops __read_mostly = {
	.id		= "blue",
	.priv_size	= sizeof(struct blue_sched_data),
	.enqueue	= blue_enqueue,
	.dequeue	= blue_dequeue,
	.peek		= qdisc_peek_head,
	.init		= blue_sched_init,
	.reset		= blue_reset,
	.change		= blue_change,
	.dump		= blue_dump_options,
	.dump_stats	= blue_dump_stats,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("blue");

module_driver(blue_qdisc_ops, register_qdisc, unregister_qdisc);
MODULE_DESCRIPTION("BLUE queueing discipline");
MODULE_AUTHOR("The aqmkit authors");
MODULE_LICENSE("GPL");
