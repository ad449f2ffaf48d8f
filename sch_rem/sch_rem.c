// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rem: Random Exponential Marking queueing discipline.
 *
 * S. Athuraliya, V. H. Li, S. H. Low, Q. Yin: "REM: Active Queue Management",
 * 2000. The control law is in aqm/rem.h, the queue around it in aqm/qdisc.h;
 * README.md tells which equation is where and what differs from the paper.
 */
#include <linux/device.h>
#include <linux/module.h>

#include <aqm/qdisc.h>
#include <aqm/rem.h>
#include <aqm/rem_options.h>

#define CREATE_TRACE_POINTS
#include "rem_trace.h"

#define REM_LIMIT	120	/* packets: section 4 */

/**
 * struct rem_sched_data - a rem queue
 * @queue: the packets and the options all disciplines share
 * @options: the law's parameters, as the user stated them
 * @params: the same, as the law uses them
 * @vars: the law's state
 */
struct rem_sched_data {
	struct aqm_queue queue;
	struct rem_options options;
	struct rem_params params;
	struct rem_vars vars;
};

/* Bring the law up to the present. */
static void rem_update(struct Qdisc *sch, u64 now)
{
	struct rem_sched_data *q = qdisc_priv(sch);

	if (now >= q->vars.next)
		rem_advance(&q->params, &q->vars, now,
			    aqm_backlog(sch, &q->queue),
			    aqm_capacity(&q->queue));
}

static int rem_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		       struct sk_buff **to_free)
{
	struct rem_sched_data *q = qdisc_priv(sch);
	u64 now = aqm_now(&q->queue);
	enum aqm_verdict verdict;

	rem_update(sch, now);
	verdict = aqm_enqueue(skb, sch, &q->queue,
			      aqm_hit(&q->queue, q->vars.probability), now);
	trace_rem_decide(sch, qdisc_pkt_len(skb), aqm_backlog(sch, &q->queue),
			 &q->vars, verdict);
	if (aqm_dropped(verdict))
		return qdisc_drop(skb, sch, to_free);

	rem_arrive(&q->params, &q->vars, now, aqm_units(&q->queue, skb));
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *rem_dequeue(struct Qdisc *sch)
{
	struct rem_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u64 now;

	if (!q->queue.packets)
		return NULL;
	now = aqm_now(&q->queue);
	rem_update(sch, now);
	skb = aqm_dequeue(sch, &q->queue, now);
	rem_depart(&q->params, &q->vars, now, q->queue.packets,
		   aqm_send_time(&q->queue, qdisc_pkt_len(skb)));
	return skb;
}

static void rem_reset(struct Qdisc *sch)
{
	struct rem_sched_data *q = qdisc_priv(sch);

	aqm_reset(sch, &q->queue);
	rem_init(&q->params, &q->vars, aqm_now_exactly(&q->queue));
}

static const struct nla_policy rem_policy[TCA_REM_MAX + 1] = {
	AQM_POLICY,
	REM_POLICY,
};

static int rem_change(struct Qdisc *sch, struct nlattr *opt,
		      struct netlink_ext_ack *extack)
{
	struct rem_sched_data *q = qdisc_priv(sch);
	struct aqm_config shared = q->queue.config;
	struct rem_options options = q->options;
	struct nlattr *tb[TCA_REM_MAX + 1];
	u64 now;
	int err;

	err = nla_parse_nested(tb, TCA_REM_MAX, opt, rem_policy, extack) ?:
	      aqm_parse(&shared, tb, extack) ?:
	      rem_parse(&options, &shared, tb, extack);
	if (err)
		return err;

	sch_tree_lock(sch);
	now = aqm_now_exactly(&q->queue);
	rem_update(sch, now);
	aqm_configure(sch, &q->queue, &shared);
	q->options = options;
	rem_params_init(&q->params, &options.config, aqm_unit(&shared));
	rem_restart(&q->params, &q->vars, now, aqm_backlog(sch, &q->queue));
	sch_tree_unlock(sch);
	return 0;
}

static int rem_sched_init(struct Qdisc *sch, struct nlattr *opt,
			  struct netlink_ext_ack *extack)
{
	struct rem_sched_data *q = qdisc_priv(sch);
	const struct aqm_config shared = {
		.limit = REM_LIMIT,
		.target = REM_TARGET,
		.protect = TC_AQM_NO_DSCP,
	};

	rem_options_init(&q->options);
	aqm_configure(sch, &q->queue, &shared);
	rem_params_init(&q->params, &q->options.config, aqm_unit(&shared));
	rem_init(&q->params, &q->vars, aqm_now_exactly(&q->queue));
	return opt ? rem_change(sch, opt, extack) : 0;
}

static int rem_put_options(struct Qdisc *sch, struct sk_buff *skb)
{
	struct rem_sched_data *q = qdisc_priv(sch);

	return aqm_dump(skb, &q->queue.config) ?: rem_dump(skb, &q->options);
}

static int rem_put_stats(struct Qdisc *sch, struct sk_buff *skb)
{
	struct rem_sched_data *q = qdisc_priv(sch);
	u64 capacity;
	int err;

	sch_tree_lock(sch);
	rem_update(sch, aqm_now_exactly(&q->queue));
	capacity = aqm_mul(aqm_capacity(&q->queue), (u64)NSEC_PER_SEC << 8,
			   AQM_REAL_SHIFT);	/* units/s, Q8 */
	err = aqm_dump_stats(skb, &q->queue, q->vars.probability) ?:
	      aqm_put_stat(skb, TCA_REM_STATS_PRICE, q->vars.price) ?:
	      aqm_put_stat(skb, TCA_REM_STATS_CAPACITY,
			   div_u64(capacity, aqm_unit(&q->queue.config)));
	sch_tree_unlock(sch);
	return err;
}

static int rem_dump_options(struct Qdisc *sch, struct sk_buff *skb)
{
	return aqm_dump_nest(sch, skb, TCA_OPTIONS, rem_put_options);
}

static int rem_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	return aqm_dump_nest(sch, d->skb, TCA_STATS_APP, rem_put_stats);
}

static struct Qdisc_ops rem_qdisc_ops __read_mostly = {
	.id		= "rem",
	.priv_size	= sizeof(struct rem_sched_data),
	.enqueue	= rem_enqueue,
	.dequeue	= rem_dequeue,
	.peek		= qdisc_peek_head,
	.init		= rem_sched_init,
	.reset		= rem_reset,
	.change		= rem_change,
	.dump		= rem_dump_options,
	.dump_stats	= rem_dump_stats,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("rem");

module_driver(rem_qdisc_ops, register_qdisc, unregister_qdisc);
MODULE_DESCRIPTION("Random Exponential Marking queueing discipline");
MODULE_AUTHOR("The aqmkit authors");
MODULE_VERSION("0.1");
MODULE_LICENSE("GPL");
