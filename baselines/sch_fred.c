// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fred: Flow Random Early Drop queueing discipline.
 *
 * D. Lin, R. Morris: "Dynamics of Random Early Detection", 1997. The control law
 * is in aqm/fred.h, on that of aqm/red.h, the queue around it in aqm/qdisc.h;
 * README.md tells which rule is where and what differs from the paper.
 */
#include <linux/device.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pkt_sched_fred.h>

#include <aqm/flows.h>
#include <aqm/fred.h>
#include <aqm/qdisc.h>

#define CREATE_TRACE_POINTS
#include "fred_trace.h"

/*
 * The paper's parameters: a quarter and half of the buffer, RED's max_p and w_q
 * of their time, and minq of a small buffer.
 */
#define FRED_LIMIT	120	/* packets */
#define FRED_MIN	30	/* packets */
#define FRED_MAX	60	/* packets */
#define FRED_PROBABILITY aqm_real(2, 100)
#define FRED_QWEIGHT	aqm_real(2, 1000)
#define FRED_MINQ	2	/* packets */

#define FRED_FLOWS	65536U

/**
 * struct fred_sched_data - a fred queue
 * @queue: the packets and the options all disciplines share
 * @red: RED's parameters, as the user stated them
 * @minq: what a flow may always have queued, packets
 * @params: the same, as the law uses them
 * @vars: the law's state
 * @struck: packets that were strikes
 * @key: tells flows apart
 * @flows: FRED_FLOWS of them
 */
struct fred_sched_data {
	struct aqm_queue queue;
	struct red_config red;
	u32 minq;
	struct fred_params params;
	struct fred_vars vars;
	u64 struck;
	siphash_key_t key;
	struct fred_flow *flows;
};

static int fred_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			struct sk_buff **to_free)
{
	struct fred_sched_data *q = qdisc_priv(sch);
	u32 slot = aqm_flow_slot(&q->key, FRED_FLOWS, skb);
	u64 backlog = aqm_backlog(sch, &q->queue);
	struct fred_flow *flow = &q->flows[slot];
	u64 now = aqm_now(&q->queue);
	u64 probability = AQM_PROB_ONE;
	enum aqm_verdict verdict;
	bool hit = true;

	fred_begin(&q->params, &q->vars, now, backlog,
		   aqm_mean_send_time(&q->queue));
	if (fred_strike(&q->params, &q->vars, flow)) {
		q->struck += aqm_packets(skb);
	} else {
		struct aqm_odds odds = fred_odds(&q->params, &q->vars, flow);

		probability = aqm_probability(odds);
		hit = aqm_hit_of(&q->queue, odds.part, odds.whole);
		if (hit)
			red_hit(&q->vars.red);
	}
	verdict = aqm_enqueue(skb, sch, &q->queue, hit, now);
	trace_fred_decide(sch, qdisc_pkt_len(skb), slot, flow, &q->vars,
			  probability, verdict);
	if (aqm_dropped(verdict))
		return qdisc_drop(skb, sch, to_free);

	aqm_cb(skb)->flow = slot;
	fred_accept(&q->params, &q->vars, flow, now, backlog,
		    aqm_units(&q->queue, skb));
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *fred_dequeue(struct Qdisc *sch)
{
	struct fred_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u64 now;

	if (!q->queue.packets)
		return NULL;
	now = aqm_now(&q->queue);
	skb = aqm_dequeue(sch, &q->queue, now);
	fred_depart(&q->params, &q->vars, &q->flows[aqm_cb(skb)->flow], now,
		    aqm_backlog(sch, &q->queue), aqm_units(&q->queue, skb),
		    now + aqm_send_time(&q->queue, qdisc_pkt_len(skb)));
	return skb;
}

/* Count every flow's packets, in units that may have changed. */
static void fred_recount(struct Qdisc *sch)
{
	struct fred_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u32 slot;

	if (!q->flows)
		return;		/* a reset after an init that failed */
	q->vars.active = 0;
	for (slot = 0; slot < FRED_FLOWS; slot++)
		q->flows[slot].queued = 0;
	for (skb = sch->q.head; skb; skb = skb->next)
		fred_count(&q->vars, &q->flows[aqm_cb(skb)->flow],
			   aqm_units(&q->queue, skb));
	for (slot = 0; slot < FRED_FLOWS; slot++)
		if (!q->flows[slot].queued)
			q->flows[slot].strikes = 0;
}

static void fred_reset(struct Qdisc *sch)
{
	struct fred_sched_data *q = qdisc_priv(sch);

	aqm_reset(sch, &q->queue);
	red_init(&q->vars.red);
	fred_recount(sch);
}

static const struct nla_policy fred_policy[TCA_FRED_MAX + 1] = {
	AQM_POLICY_NO_TARGET,
	[TCA_FRED_RED_MIN]		= { .type = NLA_U32 },
	[TCA_FRED_RED_MAX]		= { .type = NLA_U32 },
	[TCA_FRED_RED_PROBABILITY]	= { .type = NLA_U64 },
	[TCA_FRED_RED_QWEIGHT]	= { .type = NLA_U64 },
	[TCA_FRED_MINQ]			= { .type = NLA_U32 },
};

static int fred_change(struct Qdisc *sch, struct nlattr *opt,
		       struct netlink_ext_ack *extack)
{
	struct fred_sched_data *q = qdisc_priv(sch);
	struct aqm_config shared = q->queue.config;
	struct nlattr *tb[TCA_FRED_MAX + 1];
	struct red_config red = q->red;
	u32 minq = q->minq;
	int err;

	err = nla_parse_nested(tb, TCA_FRED_MAX, opt, fred_policy, extack) ?:
	      aqm_parse(&shared, tb, extack) ?:
	      AQM_TAKE(red.min, tb[TCA_FRED_RED_MIN], u32,
		       1, AQM_LIMIT_MAX - 1, extack,
		       "min must be 1 to 1048575 packets and below max") ?:
	      AQM_TAKE(red.max, tb[TCA_FRED_RED_MAX], u32,
		       2, AQM_LIMIT_MAX, extack,
		       "max must be 2 to 1048576 packets and above min") ?:
	      AQM_TAKE(red.probability, tb[TCA_FRED_RED_PROBABILITY], u64,
		       AQM_REAL_ONE / 1000000, AQM_REAL_ONE, extack,
		       "probability must be 0.000001 to 1") ?:
	      AQM_TAKE(red.weight, tb[TCA_FRED_RED_QWEIGHT], u64,
		       AQM_REAL_ONE / 1000000, aqm_real(99, 100), extack,
		       "qweight must be 0.000001 to 0.99") ?:
	      AQM_TAKE(minq, tb[TCA_FRED_MINQ], u32, 1, AQM_LIMIT_MAX, extack,
		       "minq must be 1 to 1048576 packets");
	if (err)
		return err;
	if (red.min >= red.max) {
		NL_SET_ERR_MSG_MOD(extack, "min must be below max");
		return -EINVAL;
	}

	sch_tree_lock(sch);
	aqm_configure(sch, &q->queue, &shared);
	q->red = red;
	q->minq = minq;
	fred_params_init(&q->params, &red, minq, aqm_unit(&shared));
	fred_recount(sch);
	sch_tree_unlock(sch);
	return 0;
}

static int fred_init(struct Qdisc *sch, struct nlattr *opt,
		     struct netlink_ext_ack *extack)
{
	struct fred_sched_data *q = qdisc_priv(sch);
	const struct aqm_config shared = {
		.limit = FRED_LIMIT,
		.protect = TC_AQM_NO_DSCP,
	};

	q->flows = kvcalloc(FRED_FLOWS, sizeof(*q->flows), GFP_KERNEL_ACCOUNT);
	if (!q->flows)
		return -ENOMEM;
	get_random_bytes(&q->key, sizeof(q->key));
	q->red = (struct red_config){
		.min = FRED_MIN,
		.max = FRED_MAX,
		.probability = FRED_PROBABILITY,
		.weight = FRED_QWEIGHT,
	};
	q->minq = FRED_MINQ;
	aqm_configure(sch, &q->queue, &shared);
	fred_params_init(&q->params, &q->red, q->minq, aqm_unit(&shared));
	return opt ? fred_change(sch, opt, extack) : 0;
}

/* Also after an init that failed. */
static void fred_destroy(struct Qdisc *sch)
{
	struct fred_sched_data *q = qdisc_priv(sch);

	kvfree(q->flows);
}

static int fred_put_options(struct Qdisc *sch, struct sk_buff *skb)
{
	struct fred_sched_data *q = qdisc_priv(sch);

	return aqm_dump(skb, &q->queue.config) ?:
	       nla_put_u32(skb, TCA_FRED_RED_MIN, q->red.min) ?:
	       nla_put_u32(skb, TCA_FRED_RED_MAX, q->red.max) ?:
	       nla_put_u64_64bit(skb, TCA_FRED_RED_PROBABILITY,
				 q->red.probability, TCA_AQM_PAD) ?:
	       nla_put_u64_64bit(skb, TCA_FRED_RED_QWEIGHT, q->red.weight,
				 TCA_AQM_PAD) ?:
	       nla_put_u32(skb, TCA_FRED_MINQ, q->minq);
}

static int fred_put_stats(struct Qdisc *sch, struct sk_buff *skb)
{
	struct fred_sched_data *q = qdisc_priv(sch);
	int err;

	sch_tree_lock(sch);
	/* before the count, which is a packet's */
	err = aqm_dump_stats(skb, &q->queue,
			     red_slope(&q->params.red, q->vars.red.avg)) ?:
	      aqm_put_stat(skb, TCA_FRED_STATS_AVG,
			   div_u64(q->vars.red.avg >> (RED_AVG_SHIFT - 8),
				   aqm_unit(&q->queue.config))) ?:
	      aqm_put_stat(skb, TCA_FRED_STATS_ACTIVE, q->vars.active) ?:
	      aqm_put_stat(skb, TCA_FRED_STATS_STRUCK, q->struck);
	sch_tree_unlock(sch);
	return err;
}

static int fred_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	return aqm_dump_nest(sch, skb, TCA_OPTIONS, fred_put_options);
}

static int fred_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	return aqm_dump_nest(sch, d->skb, TCA_STATS_APP, fred_put_stats);
}

static struct Qdisc_ops fred_qdisc_ops __read_mostly = {
	.id		= "fred",
	.priv_size	= sizeof(struct fred_sched_data),
	.enqueue	= fred_enqueue,
	.dequeue	= fred_dequeue,
	.peek		= qdisc_peek_head,
	.init		= fred_init,
	.reset		= fred_reset,
	.destroy	= fred_destroy,
	.change		= fred_change,
	.dump		= fred_dump,
	.dump_stats	= fred_dump_stats,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("fred");

module_driver(fred_qdisc_ops, register_qdisc, unregister_qdisc);
MODULE_DESCRIPTION("Flow Random Early Drop queueing discipline");
MODULE_AUTHOR("The aqmkit authors");
MODULE_VERSION("0.1");
MODULE_LICENSE("GPL");
