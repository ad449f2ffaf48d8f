// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * csfq: Core-Stateless Fair Queueing discipline.
 *
 * I. Stoica, S. Shenker, H. Zhang: "Core-Stateless Fair Queueing: Achieving
 * Approximately Fair Bandwidth Allocations in High Speed Networks", 1998. The
 * control law is in aqm/csfq.h, the place of its label in aqm/label.h, the queue
 * around it in aqm/qdisc.h; README.md tells which equation is where and what
 * differs from the paper.
 */
#include <linux/device.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pkt_sched_csfq.h>

#include <aqm/csfq.h>
#include <aqm/flows.h>
#include <aqm/label.h>
#include <aqm/qdisc.h>

#define CREATE_TRACE_POINTS
#include "csfq_trace.h"

/* The paper's parameters; the threshold is half of the buffer: section 2.2. */
#define CSFQ_LIMIT	120	/* packets */
#define CSFQ_THRESHOLD	60	/* packets */
#define CSFQ_K		(100 * NSEC_PER_MSEC)

#define CSFQ_K_MIN	(2 * NSEC_PER_MSEC)
#define CSFQ_K_MAX	(100ULL * NSEC_PER_SEC)

#define CSFQ_FLOWS	65536U

/**
 * struct csfq_options - CSFQ's parameters, as the user stated them
 * @role: TC_CSFQ_*
 * @threshold: packets from which on the link may be congested
 * @law: the law's
 */
struct csfq_options {
	u8 role;
	u32 threshold;
	struct csfq_config law;
};

/**
 * struct csfq_sched_data - a csfq queue
 * @queue: the packets and the options all disciplines share
 * @options: its own
 * @vars: the law's state
 * @probability: of the packet that came last, Q32
 * @labelled: packets that came with a label, or were given one
 * @unlabelled: packets that did not, or could not
 * @key: tells flows apart
 * @flows: their rates, CSFQ_FLOWS of them
 */
struct csfq_sched_data {
	struct aqm_queue queue;
	struct csfq_options options;
	struct csfq_vars vars;
	u64 probability;
	u64 labelled;
	u64 unlabelled;
	siphash_key_t key;
	struct csfq_rate *flows;
};

/* The rate of a packet's flow, bytes/ns in Q48; 0 if it has no label. */
static u64 csfq_rate(struct csfq_sched_data *q, struct sk_buff *skb, u64 now)
{
	struct csfq_rate *flow;

	if (q->options.role == TC_CSFQ_CORE)
		return csfq_rate_of(aqm_label(skb));
	flow = &q->flows[aqm_flow_slot(&q->key, CSFQ_FLOWS, skb)];
	csfq_estimate(flow, q->options.law.k, now, qdisc_pkt_len(skb));
	return flow->rate;
}

/* Label a packet that was queued, and count it. */
static void csfq_label(struct csfq_sched_data *q, struct sk_buff *skb,
		       u64 rate)
{
	u32 packets = aqm_cb(skb)->packets;
	bool labelled = rate;

	/* a flow that sends more than alpha behind here sends alpha */
	if (q->probability)
		rate = q->vars.fair;
	if (q->options.role == TC_CSFQ_EDGE ||
	    (q->options.role == TC_CSFQ_CORE && q->probability))
		labelled = aqm_set_label(skb, csfq_label_of(rate));
	if (labelled)
		q->labelled += packets;
	else
		q->unlabelled += packets;
}

static int csfq_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			struct sk_buff **to_free)
{
	struct csfq_sched_data *q = qdisc_priv(sch);
	u32 length = qdisc_pkt_len(skb);
	u64 now = aqm_now(&q->queue);
	u64 rate = csfq_rate(q, skb, now);
	bool filled = q->queue.packets >= q->options.threshold;
	enum aqm_verdict verdict;

	q->probability = csfq_probability(&q->vars, rate);
	verdict = aqm_enqueue(skb, sch, &q->queue,
			      aqm_hit(&q->queue, q->probability), now);
	csfq_arrive(&q->options.law, &q->vars, now, length, rate,
		    !aqm_dropped(verdict), q->queue.byte_rate, filled);
	if (verdict == AQM_OVERFLOW)
		csfq_overflow(&q->vars);
	trace_csfq_decide(sch, length, rate, &q->vars, q->probability, verdict);
	if (aqm_dropped(verdict))
		return qdisc_drop(skb, sch, to_free);
	csfq_label(q, skb, rate);
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *csfq_dequeue(struct Qdisc *sch)
{
	struct csfq_sched_data *q = qdisc_priv(sch);

	if (!q->queue.packets)
		return NULL;
	return aqm_dequeue(sch, &q->queue, aqm_now(&q->queue));
}

/* Nothing is known, of flows neither. */
static void csfq_start(struct csfq_sched_data *q)
{
	u64 now = aqm_now_exactly(&q->queue);
	u32 slot;

	csfq_init(&q->vars, now);
	q->probability = 0;
	for (slot = 0; q->flows && slot < CSFQ_FLOWS; slot++)
		q->flows[slot] = (struct csfq_rate){ .last = now };
}

static void csfq_reset(struct Qdisc *sch)
{
	struct csfq_sched_data *q = qdisc_priv(sch);

	aqm_reset(sch, &q->queue);
	csfq_start(q);
}

static const struct nla_policy csfq_policy[TCA_CSFQ_MAX + 1] = {
	AQM_POLICY_NO_TARGET,
	[TCA_CSFQ_ROLE]		= { .type = NLA_U8 },
	[TCA_CSFQ_K]		= { .type = NLA_U64 },
	[TCA_CSFQ_K_ALPHA]	= { .type = NLA_U64 },
	[TCA_CSFQ_K_C]		= { .type = NLA_U64 },
	[TCA_CSFQ_THRESHOLD]	= { .type = NLA_U32 },
};

static int csfq_change(struct Qdisc *sch, struct nlattr *opt,
		       struct netlink_ext_ack *extack)
{
	struct csfq_sched_data *q = qdisc_priv(sch);
	struct aqm_config shared = q->queue.config;
	struct csfq_options options = q->options;
	struct nlattr *tb[TCA_CSFQ_MAX + 1];
	int err;

	err = nla_parse_nested(tb, TCA_CSFQ_MAX, opt, csfq_policy, extack) ?:
	      aqm_parse(&shared, tb, extack) ?:
	      aqm_need_bandwidth(&shared, extack) ?:
	      AQM_TAKE(options.role, tb[TCA_CSFQ_ROLE], u8,
		       0, TC_CSFQ_ROLE_MAX, extack,
		       "role must be both, edge or core") ?:
	      AQM_TAKE(options.law.k, tb[TCA_CSFQ_K], u64,
		       CSFQ_K_MIN, CSFQ_K_MAX, extack,
		       "k must be 2ms to 100s") ?:
	      AQM_TAKE(options.law.k_alpha, tb[TCA_CSFQ_K_ALPHA], u64,
		       CSFQ_K_MIN, CSFQ_K_MAX, extack,
		       "k-alpha must be 2ms to 100s") ?:
	      AQM_TAKE(options.law.k_c, tb[TCA_CSFQ_K_C], u64,
		       CSFQ_K_MIN, CSFQ_K_MAX, extack,
		       "k-c must be 2ms to 100s") ?:
	      AQM_TAKE(options.threshold, tb[TCA_CSFQ_THRESHOLD], u32,
		       0, AQM_LIMIT_MAX, extack,
		       "threshold must be 0 to 1048576 packets");
	if (err)
		return err;

	sch_tree_lock(sch);
	aqm_configure(sch, &q->queue, &shared);
	q->options = options;
	sch_tree_unlock(sch);
	return 0;
}

static int csfq_sched_init(struct Qdisc *sch, struct nlattr *opt,
			   struct netlink_ext_ack *extack)
{
	struct csfq_sched_data *q = qdisc_priv(sch);
	const struct aqm_config shared = {
		.limit = CSFQ_LIMIT,
		.protect = TC_AQM_NO_DSCP,
	};

	if (!opt)
		return aqm_need_bandwidth(&shared, extack);
	q->flows = kvcalloc(CSFQ_FLOWS, sizeof(*q->flows), GFP_KERNEL_ACCOUNT);
	if (!q->flows)
		return -ENOMEM;
	get_random_bytes(&q->key, sizeof(q->key));
	q->options = (struct csfq_options){
		.role = TC_CSFQ_BOTH,
		.threshold = CSFQ_THRESHOLD,
		.law = { .k = CSFQ_K, .k_alpha = CSFQ_K, .k_c = CSFQ_K },
	};
	aqm_configure(sch, &q->queue, &shared);
	csfq_start(q);
	return csfq_change(sch, opt, extack);
}

/* Also after an init that failed. */
static void csfq_destroy(struct Qdisc *sch)
{
	struct csfq_sched_data *q = qdisc_priv(sch);

	kvfree(q->flows);
}

static int csfq_put_options(struct Qdisc *sch, struct sk_buff *skb)
{
	struct csfq_sched_data *q = qdisc_priv(sch);
	const struct csfq_options *options = &q->options;

	return aqm_dump(skb, &q->queue.config) ?:
	       nla_put_u8(skb, TCA_CSFQ_ROLE, options->role) ?:
	       nla_put_u64_64bit(skb, TCA_CSFQ_K, options->law.k,
				 TCA_AQM_PAD) ?:
	       nla_put_u64_64bit(skb, TCA_CSFQ_K_ALPHA, options->law.k_alpha,
				 TCA_AQM_PAD) ?:
	       nla_put_u64_64bit(skb, TCA_CSFQ_K_C, options->law.k_c,
				 TCA_AQM_PAD) ?:
	       nla_put_u32(skb, TCA_CSFQ_THRESHOLD, options->threshold);
}

/* Write a rate as bytes/s. */
static int csfq_put_rate(struct sk_buff *skb, int attr, u64 rate)
{
	return aqm_put_stat(skb, attr, aqm_mul(rate, NSEC_PER_SEC,
					       AQM_REAL_SHIFT));
}

static int csfq_put_stats(struct Qdisc *sch, struct sk_buff *skb)
{
	struct csfq_sched_data *q = qdisc_priv(sch);
	const struct csfq_vars *vars = &q->vars;
	int err;

	sch_tree_lock(sch);
	err = aqm_dump_stats(skb, &q->queue, q->probability) ?:
	      csfq_put_rate(skb, TCA_CSFQ_STATS_FAIR, vars->fair) ?:
	      csfq_put_rate(skb, TCA_CSFQ_STATS_ARRIVED, vars->arrived.rate) ?:
	      csfq_put_rate(skb, TCA_CSFQ_STATS_ACCEPTED,
			    vars->accepted.rate) ?:
	      aqm_put_stat(skb, TCA_CSFQ_STATS_CONGESTED, vars->congested) ?:
	      aqm_put_stat(skb, TCA_CSFQ_STATS_LABELLED, q->labelled) ?:
	      aqm_put_stat(skb, TCA_CSFQ_STATS_UNLABELLED, q->unlabelled);
	sch_tree_unlock(sch);
	return err;
}

static int csfq_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	return aqm_dump_nest(sch, skb, TCA_OPTIONS, csfq_put_options);
}

static int csfq_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	return aqm_dump_nest(sch, d->skb, TCA_STATS_APP, csfq_put_stats);
}

static struct Qdisc_ops csfq_qdisc_ops __read_mostly = {
	.id		= "csfq",
	.priv_size	= sizeof(struct csfq_sched_data),
	.enqueue	= csfq_enqueue,
	.dequeue	= csfq_dequeue,
	.peek		= qdisc_peek_head,
	.init		= csfq_sched_init,
	.reset		= csfq_reset,
	.destroy	= csfq_destroy,
	.change		= csfq_change,
	.dump		= csfq_dump,
	.dump_stats	= csfq_dump_stats,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("csfq");

module_driver(csfq_qdisc_ops, register_qdisc, unregister_qdisc);
MODULE_DESCRIPTION("Core-Stateless Fair Queueing discipline");
MODULE_AUTHOR("The aqmkit authors");
MODULE_VERSION("0.1");
MODULE_LICENSE("GPL");
