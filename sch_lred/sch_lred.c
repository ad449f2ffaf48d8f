// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * lred: Loss Ratio-based RED queueing discipline.
 *
 * C. Wang, J. Liu, B. Li, K. Sohraby, Y. T. Hou: "LRED: A Robust and Responsive
 * AQM Algorithm Using Packet Loss Ratio Measurement", 2007. The control law is
 * in aqm/lred.h, the queue around it in aqm/qdisc.h; README.md tells which
 * equation is where and what differs from the paper.
 */
#include <linux/device.h>
#include <linux/module.h>
#include <linux/pkt_sched_lred.h>

#include <aqm/lred.h>
#include <aqm/qdisc.h>

#define CREATE_TRACE_POINTS
#include "lred_trace.h"

/* The paper's parameters: Fig. 3 and section 6. */
#define LRED_LIMIT	200			/* packets */
#define LRED_TARGET	100			/* packets */
#define LRED_PERIOD	NSEC_PER_SEC		/* ns */
#define LRED_PERIODS	4
#define LRED_BETA	aqm_real(1, 1000)
#define LRED_WEIGHT	aqm_real(1, 10)

#define LRED_PERIOD_MIN	NSEC_PER_MSEC
#define LRED_PERIOD_MAX	(100ULL * NSEC_PER_SEC)
#define LRED_BETA_MIN	(AQM_REAL_ONE / 1000000)
#define LRED_BETA_MAX	(AQM_REAL_ONE * 1000)
#define LRED_WEIGHT_MAX	aqm_real(99, 100)

/**
 * struct lred_sched_data - a lred queue
 * @queue: the packets and the options all disciplines share
 * @arrivals: packets that came
 * @config: the law's parameters, as the user stated them
 * @params: the same, as the law uses them
 * @vars: the law's state
 */
struct lred_sched_data {
	struct aqm_queue queue;
	u64 arrivals;
	struct lred_config config;
	struct lred_params params;
	struct lred_vars vars;
};

static int lred_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			struct sk_buff **to_free)
{
	struct lred_sched_data *q = qdisc_priv(sch);
	u64 backlog = aqm_backlog(sch, &q->queue);
	u64 now = aqm_now(&q->queue);
	enum aqm_verdict verdict;
	u64 probability;

	lred_advance(&q->params, &q->vars, now);
	probability = lred_probability(&q->params, &q->vars, backlog);
	verdict = aqm_enqueue(skb, sch, &q->queue,
			      aqm_hit(&q->queue, probability), now);
	trace_lred_decide(sch, qdisc_pkt_len(skb), backlog, &q->vars,
			  probability, verdict);
	q->arrivals += aqm_cb(skb)->packets;
	lred_arrive(&q->vars, aqm_cb(skb)->packets,
		    aqm_dropped(verdict) || verdict == AQM_MARK);
	if (aqm_dropped(verdict))
		return qdisc_drop(skb, sch, to_free);
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *lred_dequeue(struct Qdisc *sch)
{
	struct lred_sched_data *q = qdisc_priv(sch);

	if (!q->queue.packets)
		return NULL;
	return aqm_dequeue(sch, &q->queue, aqm_now(&q->queue));
}

static void lred_reset(struct Qdisc *sch)
{
	struct lred_sched_data *q = qdisc_priv(sch);

	aqm_reset(sch, &q->queue);
	q->vars.ratio = 0;
	lred_restart(&q->params, &q->vars, aqm_now_exactly(&q->queue));
}

static const struct nla_policy lred_policy[TCA_LRED_MAX + 1] = {
	AQM_POLICY,
	[TCA_LRED_BETA]		= { .type = NLA_U64 },
	[TCA_LRED_PERIOD]	= { .type = NLA_U64 },
	[TCA_LRED_PERIODS]	= { .type = NLA_U32 },
	[TCA_LRED_WEIGHT]	= { .type = NLA_U64 },
};

static int lred_change(struct Qdisc *sch, struct nlattr *opt,
		       struct netlink_ext_ack *extack)
{
	struct lred_sched_data *q = qdisc_priv(sch);
	struct aqm_config shared = q->queue.config;
	struct lred_config config = q->config;
	struct nlattr *tb[TCA_LRED_MAX + 1];
	int err;

	err = nla_parse_nested(tb, TCA_LRED_MAX, opt, lred_policy, extack) ?:
	      aqm_parse(&shared, tb, extack) ?:
	      AQM_TAKE(config.beta, tb[TCA_LRED_BETA], u64,
		       LRED_BETA_MIN, LRED_BETA_MAX, extack,
		       "beta must be 0.000001 to 1000") ?:
	      AQM_TAKE(config.period, tb[TCA_LRED_PERIOD], u64,
		       LRED_PERIOD_MIN, LRED_PERIOD_MAX, extack,
		       "period must be 1ms to 100s") ?:
	      AQM_TAKE(config.periods, tb[TCA_LRED_PERIODS], u32,
		       1, LRED_PERIODS_MAX, extack,
		       "periods must be 1 to 64") ?:
	      AQM_TAKE(config.weight, tb[TCA_LRED_WEIGHT], u64,
		       0, LRED_WEIGHT_MAX, extack,
		       "weight must be 0 to 0.99");
	if (err)
		return err;
	config.target = shared.target;

	sch_tree_lock(sch);
	lred_advance(&q->params, &q->vars, aqm_now_exactly(&q->queue));
	aqm_configure(sch, &q->queue, &shared);
	q->config = config;
	lred_params_init(&q->params, &config, aqm_unit(&shared));
	lred_restart(&q->params, &q->vars, aqm_now_exactly(&q->queue));
	sch_tree_unlock(sch);
	return 0;
}

static int lred_init(struct Qdisc *sch, struct nlattr *opt,
		     struct netlink_ext_ack *extack)
{
	struct lred_sched_data *q = qdisc_priv(sch);
	const struct aqm_config shared = {
		.limit = LRED_LIMIT,
		.target = LRED_TARGET,
		.protect = TC_AQM_NO_DSCP,
	};

	q->config = (struct lred_config){
		.target = LRED_TARGET,
		.periods = LRED_PERIODS,
		.period = LRED_PERIOD,
		.beta = LRED_BETA,
		.weight = LRED_WEIGHT,
	};
	aqm_configure(sch, &q->queue, &shared);
	lred_params_init(&q->params, &q->config, aqm_unit(&shared));
	lred_restart(&q->params, &q->vars, aqm_now_exactly(&q->queue));
	return opt ? lred_change(sch, opt, extack) : 0;
}

static int lred_put_options(struct Qdisc *sch, struct sk_buff *skb)
{
	struct lred_sched_data *q = qdisc_priv(sch);
	const struct lred_config *config = &q->config;

	return aqm_dump(skb, &q->queue.config) ?:
	       nla_put_u64_64bit(skb, TCA_LRED_BETA, config->beta,
				 TCA_AQM_PAD) ?:
	       nla_put_u64_64bit(skb, TCA_LRED_PERIOD, config->period,
				 TCA_AQM_PAD) ?:
	       nla_put_u32(skb, TCA_LRED_PERIODS, config->periods) ?:
	       nla_put_u64_64bit(skb, TCA_LRED_WEIGHT, config->weight,
				 TCA_AQM_PAD);
}

static int lred_put_stats(struct Qdisc *sch, struct sk_buff *skb)
{
	struct lred_sched_data *q = qdisc_priv(sch);
	u64 probability;
	int err;

	sch_tree_lock(sch);
	lred_advance(&q->params, &q->vars, aqm_now_exactly(&q->queue));
	probability = lred_probability(&q->params, &q->vars,
				       aqm_backlog(sch, &q->queue));
	err = aqm_dump_stats(skb, &q->queue, probability) ?:
	      aqm_put_stat(skb, TCA_LRED_STATS_LOSS_RATIO,
			   q->vars.ratio >> (LRED_RATIO_SHIFT -
					     AQM_PROB_SHIFT)) ?:
	      aqm_put_stat(skb, TCA_LRED_STATS_ARRIVALS, q->arrivals);
	sch_tree_unlock(sch);
	return err;
}

static int lred_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	return aqm_dump_nest(sch, skb, TCA_OPTIONS, lred_put_options);
}

static int lred_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	return aqm_dump_nest(sch, d->skb, TCA_STATS_APP, lred_put_stats);
}

static struct Qdisc_ops lred_qdisc_ops __read_mostly = {
	.id		= "lred",
	.priv_size	= sizeof(struct lred_sched_data),
	.enqueue	= lred_enqueue,
	.dequeue	= lred_dequeue,
	.peek		= qdisc_peek_head,
	.init		= lred_init,
	.reset		= lred_reset,
	.change		= lred_change,
	.dump		= lred_dump,
	.dump_stats	= lred_dump_stats,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("lred");

module_driver(lred_qdisc_ops, register_qdisc, unregister_qdisc);
MODULE_DESCRIPTION("Loss Ratio-based RED queueing discipline");
MODULE_AUTHOR("The aqmkit authors");
MODULE_VERSION("0.1");
MODULE_LICENSE("GPL");
