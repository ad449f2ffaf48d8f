// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * avq: Adaptive Virtual Queue queueing discipline.
 *
 * S. Kunniyur, R. Srikant: "Analysis and Design of an Adaptive Virtual Queue
 * (AVQ) Algorithm for Active Queue Management", 2001. The control law is in
 * aqm/avq.h, the queue around it in aqm/qdisc.h; README.md tells which equation
 * is where and what differs from the paper.
 */
#include <linux/device.h>
#include <linux/module.h>
#include <linux/pkt_sched_avq.h>

#include <aqm/avq.h>
#include <aqm/qdisc.h>

#define CREATE_TRACE_POINTS
#include "avq_trace.h"

/* The paper's parameters: section 5. */
#define AVQ_LIMIT	100	/* packets */
#define AVQ_ALPHA	aqm_real(15, 100)
#define AVQ_GAMMA	aqm_real(98, 100)

#define AVQ_ALPHA_MIN	(AQM_REAL_ONE / 1000000)
#define AVQ_ALPHA_MAX	(100 * AQM_REAL_ONE)
#define AVQ_GAMMA_MIN	(AQM_REAL_ONE / 1000000)

/**
 * struct avq_sched_data - an avq queue
 * @queue: the packets and the options all disciplines share
 * @buffer: packets the virtual queue holds, 0 = as many as the real one
 * @config: the law's parameters, as the user stated them
 * @params: the same, as the law uses them
 * @vars: the law's state
 */
struct avq_sched_data {
	struct aqm_queue queue;
	u32 buffer;
	struct avq_config config;
	struct avq_params params;
	struct avq_vars vars;
};

/* What the link takes for @length bytes, Q8; ns in Q16. */
static u64 avq_time(const struct aqm_queue *queue, u64 length)
{
	return aqm_mul(length, queue->byte_time, 8 + 24 - AVQ_TIME_SHIFT);
}

/* What it takes for the virtual queue's buffer, ns in Q16. */
static u64 avq_size(const struct avq_sched_data *q, u64 packet_time)
{
	return aqm_mul(q->buffer ?: q->queue.config.limit, packet_time, 0);
}

static int avq_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		       struct sk_buff **to_free)
{
	struct avq_sched_data *q = qdisc_priv(sch);
	u64 length = (u64)qdisc_pkt_len(skb) << 8;
	u32 packets = aqm_packets(skb);
	/* the first packet shows how long packets are */
	u64 packet_time = avq_time(&q->queue, aqm_mean_length(&q->queue) ?:
					      div_u64(length, packets));
	u64 time = q->queue.config.bytemode ? avq_time(&q->queue, length) :
					      aqm_mul(packets, packet_time, 0);
	u64 now = aqm_now(&q->queue);
	enum aqm_verdict verdict;
	bool hit;

	avq_advance(&q->params, &q->vars, now);
	hit = avq_arrive(&q->vars, time, avq_size(q, packet_time));
	verdict = aqm_enqueue(skb, sch, &q->queue, hit, now);
	trace_avq_decide(sch, qdisc_pkt_len(skb), &q->vars,
			 hit ? AQM_PROB_ONE : 0, verdict);
	if (aqm_dropped(verdict))
		return qdisc_drop(skb, sch, to_free);
	avq_accept(&q->params, &q->vars, time);
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *avq_dequeue(struct Qdisc *sch)
{
	struct avq_sched_data *q = qdisc_priv(sch);

	if (!q->queue.packets)
		return NULL;
	return aqm_dequeue(sch, &q->queue, aqm_now(&q->queue));
}

static void avq_reset(struct Qdisc *sch)
{
	struct avq_sched_data *q = qdisc_priv(sch);

	aqm_reset(sch, &q->queue);
	avq_init(&q->vars, aqm_now_exactly(&q->queue));
}

static const struct nla_policy avq_policy[TCA_AVQ_MAX + 1] = {
	AQM_POLICY_NO_TARGET,
	[TCA_AVQ_ALPHA]		= { .type = NLA_U64 },
	[TCA_AVQ_GAMMA]		= { .type = NLA_U64 },
	[TCA_AVQ_BUFFER]	= { .type = NLA_U32 },
};

static int avq_change(struct Qdisc *sch, struct nlattr *opt,
		      struct netlink_ext_ack *extack)
{
	struct avq_sched_data *q = qdisc_priv(sch);
	struct aqm_config shared = q->queue.config;
	struct avq_config config = q->config;
	struct nlattr *tb[TCA_AVQ_MAX + 1];
	u32 buffer = q->buffer;
	int err;

	err = nla_parse_nested(tb, TCA_AVQ_MAX, opt, avq_policy, extack) ?:
	      aqm_parse(&shared, tb, extack) ?:
	      aqm_need_bandwidth(&shared, extack) ?:
	      AQM_TAKE(config.alpha, tb[TCA_AVQ_ALPHA], u64,
		       AVQ_ALPHA_MIN, AVQ_ALPHA_MAX, extack,
		       "alpha must be 0.000001 to 100") ?:
	      AQM_TAKE(config.gamma, tb[TCA_AVQ_GAMMA], u64,
		       AVQ_GAMMA_MIN, AQM_REAL_ONE, extack,
		       "gamma must be 0.000001 to 1") ?:
	      AQM_TAKE(buffer, tb[TCA_AVQ_BUFFER], u32,
		       0, AQM_LIMIT_MAX, extack,
		       "buffer must be 1 to 1048576 packets, or 0 for limit");
	if (err)
		return err;

	sch_tree_lock(sch);
	avq_advance(&q->params, &q->vars, aqm_now_exactly(&q->queue));
	aqm_configure(sch, &q->queue, &shared);
	q->buffer = buffer;
	q->config = config;
	avq_params_init(&q->params, &config);
	sch_tree_unlock(sch);
	return 0;
}

static int avq_sched_init(struct Qdisc *sch, struct nlattr *opt,
			  struct netlink_ext_ack *extack)
{
	struct avq_sched_data *q = qdisc_priv(sch);
	const struct aqm_config shared = {
		.limit = AVQ_LIMIT,
		.protect = TC_AQM_NO_DSCP,
	};

	if (!opt)
		return aqm_need_bandwidth(&shared, extack);
	q->config = (struct avq_config){
		.alpha = AVQ_ALPHA,
		.gamma = AVQ_GAMMA,
	};
	aqm_configure(sch, &q->queue, &shared);
	avq_init(&q->vars, aqm_now_exactly(&q->queue));
	return avq_change(sch, opt, extack);
}

static int avq_put_options(struct Qdisc *sch, struct sk_buff *skb)
{
	struct avq_sched_data *q = qdisc_priv(sch);

	return aqm_dump(skb, &q->queue.config) ?:
	       nla_put_u64_64bit(skb, TCA_AVQ_ALPHA, q->config.alpha,
				 TCA_AQM_PAD) ?:
	       nla_put_u64_64bit(skb, TCA_AVQ_GAMMA, q->config.gamma,
				 TCA_AQM_PAD) ?:
	       nla_put_u32(skb, TCA_AVQ_BUFFER, q->buffer);
}

/* Of the virtual queue as it is now; it is not touched, so that none disturbs. */
static int avq_put_stats(struct Qdisc *sch, struct sk_buff *skb)
{
	struct avq_sched_data *q = qdisc_priv(sch);
	u64 capacity, packet_time, packets = 0;
	struct avq_vars vars;
	int err;

	sch_tree_lock(sch);
	vars = q->vars;
	avq_advance(&q->params, &vars, aqm_now_exactly(&q->queue));
	packet_time = avq_time(&q->queue, aqm_mean_length(&q->queue));
	if (packet_time)
		packets = mul_u64_u64_div_u64(vars.queue, 1 << 8, packet_time);
	capacity = aqm_mul(aqm_packet_rate(&q->queue,
					   q->queue.config.bandwidth), vars.share,
			   AVQ_SHARE_SHIFT);
	err = aqm_dump_stats(skb, &q->queue,
			     avq_is_full(&vars, packet_time,
					 avq_size(q, packet_time)) ?
			     AQM_PROB_ONE : 0) ?:
	      aqm_put_stat(skb, TCA_AVQ_STATS_CAPACITY, capacity) ?:
	      aqm_put_stat(skb, TCA_AVQ_STATS_QUEUE, packets);
	sch_tree_unlock(sch);
	return err;
}

static int avq_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	return aqm_dump_nest(sch, skb, TCA_OPTIONS, avq_put_options);
}

static int avq_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	return aqm_dump_nest(sch, d->skb, TCA_STATS_APP, avq_put_stats);
}

static struct Qdisc_ops avq_qdisc_ops __read_mostly = {
	.id		= "avq",
	.priv_size	= sizeof(struct avq_sched_data),
	.enqueue	= avq_enqueue,
	.dequeue	= avq_dequeue,
	.peek		= qdisc_peek_head,
	.init		= avq_sched_init,
	.reset		= avq_reset,
	.change		= avq_change,
	.dump		= avq_dump,
	.dump_stats	= avq_dump_stats,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("avq");

module_driver(avq_qdisc_ops, register_qdisc, unregister_qdisc);
MODULE_DESCRIPTION("Adaptive Virtual Queue queueing discipline");
MODULE_AUTHOR("The aqmkit authors");
MODULE_VERSION("0.1");
MODULE_LICENSE("GPL");
