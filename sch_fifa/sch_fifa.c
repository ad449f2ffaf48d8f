// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fifa: round-trip time awareness on top of RED, PI or REM.
 *
 * C. Lee, M. Claypool, R. Kinicki: "Enhancing Active Queue Management with
 * Round-trip Time Awareness", WPI-CS-TR-03-28, 2003. FIFA is in aqm/fifa.h, its
 * bases in aqm/red.h, aqm/pi.h and aqm/rem.h, the label in aqm/label.h, the
 * queue around them in aqm/qdisc.h; README.md tells which equation is where and
 * what differs from the paper.
 */
#include <linux/device.h>
#include <linux/module.h>
#include <linux/pkt_sched_fifa.h>

#include <aqm/fifa.h>
#include <aqm/label.h>
#include <aqm/pi.h>
#include <aqm/qdisc.h>
#include <aqm/red.h>
#include <aqm/rem.h>
#include <aqm/rem_options.h>

#define CREATE_TRACE_POINTS
#include "fifa_trace.h"

#define FIFA_LIMIT	1000	/* packets: section 5.2 */
#define FIFA_TARGET	50	/* packets: PI's in ns-2 */

/* Section 5.1's exponents: for packets to be dropped, and to be marked. */
#define FIFA_ROBUST_DROP	aqm_real(65, 100)
#define FIFA_ROBUST_MARK	aqm_real(160, 100)
#define FIFA_FRAGILE		aqm_real(140, 100)
#define FIFA_EXPONENT_DEFAULT	U64_MAX
#define FIFA_EXPONENT_MAX	(4 * AQM_REAL_ONE)
#define FIFA_GAIN_MAX		(2 * AQM_REAL_ONE)	/* of PI */

/**
 * struct fifa_config - FIFA's parameters and its base's, as the user stated them
 * @scale: scale the base's probability
 * @robust: alpha, Q48, or FIFA_EXPONENT_DEFAULT
 * @fragile: beta, likewise
 * @rtt_min: labels below count as this, ns
 * @rtt_max: labels above count as this, ns
 * @rtt_weight: of a label in the average, Q48
 * @sampling: PI's sampling instants a second
 * @red: base RED
 * @pi: base PI
 * @rem: base REM
 */
struct fifa_config {
	bool scale;
	u64 robust;
	u64 fragile;
	u64 rtt_min;
	u64 rtt_max;
	u64 rtt_weight;
	u32 sampling;
	union {
		struct red_config red;
		struct pi_config pi;
		struct rem_options rem;
	};
};

/**
 * struct fifa_stats - counters since the queue was made
 * @scaled: probability of the last labelled packet, Q32
 * @labelled: packets that had a label
 * @unlabelled: packets that had none
 * @robust: packets of robust flows that were dropped early or marked
 * @fragile: packets of fragile flows that were dropped early or marked
 */
struct fifa_stats {
	u64 scaled;
	u64 labelled;
	u64 unlabelled;
	u64 robust;
	u64 fragile;
};

/**
 * struct fifa_sched_data - a fifa queue
 * @queue: the packets and the options all disciplines share
 * @base: TC_FIFA_*
 * @config: parameters as the user stated them
 * @params: FIFA's, as the law uses them
 * @vars: FIFA's state
 * @stats: counters
 * @red_params: base RED, as the law uses it
 * @red: its state
 * @pi_params: base PI
 * @pi: its state
 * @rem_params: base REM
 * @rem: its state
 */
struct fifa_sched_data {
	struct aqm_queue queue;
	u8 base;
	struct fifa_config config;
	struct fifa_params params;
	struct fifa_vars vars;
	struct fifa_stats stats;
	union {
		struct {
			struct red_params red_params;
			struct red_vars red;
		};
		struct {
			struct pi_params pi_params;
			struct pi_vars pi;
		};
		struct {
			struct rem_params rem_params;
			struct rem_vars rem;
		};
	};
};

/* Is a sampling instant of the base over? RED averages at arrivals only. */
static bool fifa_is_due(const struct fifa_sched_data *q, u64 now)
{
	switch (q->base) {
	case TC_FIFA_PI:
		return now >= q->pi.next;
	case TC_FIFA_REM:
		return now >= q->rem.next;
	default:
		return false;
	}
}

static noinline void fifa_advance_base(struct Qdisc *sch, u64 now)
{
	struct fifa_sched_data *q = qdisc_priv(sch);
	u64 backlog = aqm_backlog(sch, &q->queue);

	if (q->base == TC_FIFA_PI)
		pi_advance(&q->pi_params, &q->pi, now, backlog);
	else
		rem_advance(&q->rem_params, &q->rem, now, backlog,
			    aqm_capacity(&q->queue));
}

/* Bring the base up to the present. */
static void fifa_update_base(struct Qdisc *sch, u64 now)
{
	if (unlikely(fifa_is_due(qdisc_priv(sch), now)))
		fifa_advance_base(sch, now);
}

/* The base's probability for a packet that arrives. */
static struct aqm_odds fifa_base_odds(struct Qdisc *sch, u64 now)
{
	struct fifa_sched_data *q = qdisc_priv(sch);
	struct aqm_odds odds = { .whole = AQM_PROB_ONE };

	fifa_update_base(sch, now);
	switch (q->base) {
	case TC_FIFA_RED:
		red_average(&q->red_params, &q->red, now,
			    aqm_backlog(sch, &q->queue),
			    red_is_idle(&q->red, now) ?
			    aqm_mean_send_time(&q->queue) : 0);
		return red_odds(&q->red_params, &q->red);
	case TC_FIFA_PI:
		odds.part = pi_probability(&q->pi);
		return odds;
	default:
		odds.part = q->rem.probability;
		return odds;
	}
}

/* Tell the base that the packet was queued. */
static void fifa_base_arrive(struct fifa_sched_data *q, u64 now, u64 units)
{
	switch (q->base) {
	case TC_FIFA_RED:
		red_arrive(&q->red);
		break;
	case TC_FIFA_REM:
		rem_arrive(&q->rem_params, &q->rem, now, units);
		break;
	}
}

/* Tell the base that a packet left, which the link takes @send_time for. */
static void fifa_base_depart(struct fifa_sched_data *q, u64 now, u64 send_time)
{
	switch (q->base) {
	case TC_FIFA_RED:
		red_depart(&q->red, q->queue.packets, now + send_time);
		break;
	case TC_FIFA_REM:
		rem_depart(&q->rem_params, &q->rem, now, q->queue.packets,
			   send_time);
		break;
	}
}

/* Count a packet; @label is 0 if it had none. */
static void fifa_count(struct fifa_sched_data *q, u16 label, u32 packets,
		       enum aqm_verdict verdict)
{
	if (!label) {
		q->stats.unlabelled += packets;
		return;
	}
	q->stats.labelled += packets;
	if (verdict != AQM_DROP && verdict != AQM_MARK)
		return;
	if (fifa_robust(&q->vars, label))
		q->stats.robust += packets;
	else
		q->stats.fragile += packets;
}

static int fifa_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			struct sk_buff **to_free)
{
	struct fifa_sched_data *q = qdisc_priv(sch);
	u16 label = q->config.scale ? aqm_label(skb) : 0;
	u64 now = aqm_now(&q->queue);
	struct aqm_odds base = fifa_base_odds(sch, now);
	struct aqm_odds odds = base;
	enum aqm_verdict verdict;
	bool hit;

	if (label) {
		label = fifa_clamp(&q->params, label);
		fifa_update(&q->params, &q->vars, now, label);
		odds.whole = AQM_PROB_ONE;
		if (base.part)
			odds.part = fifa_scale(&q->params, &q->vars,
					       aqm_probability(base), label,
					       aqm_markable(&q->queue, skb));
		q->stats.scaled = odds.part;
	}

	hit = aqm_hit_of(&q->queue, odds.part, odds.whole);
	if (hit && q->base == TC_FIFA_RED)
		red_hit(&q->red);
	verdict = aqm_enqueue(skb, sch, &q->queue, hit, now);
	if (trace_fifa_decide_enabled())
		trace_fifa_decide(sch, qdisc_pkt_len(skb), label, &q->vars,
				  aqm_probability(base), aqm_probability(odds),
				  verdict);
	fifa_count(q, label, aqm_cb(skb)->packets, verdict);
	if (aqm_dropped(verdict))
		return qdisc_drop(skb, sch, to_free);
	fifa_base_arrive(q, now, aqm_units(&q->queue, skb));
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *fifa_dequeue(struct Qdisc *sch)
{
	struct fifa_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u64 now;

	if (!q->queue.packets)
		return NULL;
	now = aqm_now(&q->queue);
	fifa_update_base(sch, now);
	skb = aqm_dequeue(sch, &q->queue, now);
	fifa_base_depart(q, now, aqm_send_time(&q->queue, qdisc_pkt_len(skb)));
	return skb;
}

/* Start the base, and FIFA, as of an empty queue on an idle link. */
static void fifa_start(struct fifa_sched_data *q)
{
	u64 now = aqm_now_exactly(&q->queue);

	memset(&q->vars, 0, sizeof(q->vars));
	switch (q->base) {
	case TC_FIFA_RED:
		red_init(&q->red);
		break;
	case TC_FIFA_PI:
		q->pi.probability = 0;
		pi_restart(&q->pi_params, &q->pi, now, 0);
		break;
	case TC_FIFA_REM:
		rem_init(&q->rem_params, &q->rem, now);
		break;
	}
}

static void fifa_reset(struct Qdisc *sch)
{
	struct fifa_sched_data *q = qdisc_priv(sch);

	aqm_reset(sch, &q->queue);
	fifa_start(q);
}

static const struct nla_policy fifa_policy[TCA_FIFA_MAX + 1] = {
	AQM_POLICY,
	REM_POLICY,
	[TCA_FIFA_BASE]			= { .type = NLA_U8 },
	[TCA_FIFA_SCALE]		= { .type = NLA_U8 },
	[TCA_FIFA_EXPONENT_ROBUST]	= { .type = NLA_U64 },
	[TCA_FIFA_EXPONENT_FRAGILE]	= { .type = NLA_U64 },
	[TCA_FIFA_RTT_MIN]		= { .type = NLA_U64 },
	[TCA_FIFA_RTT_MAX]		= { .type = NLA_U64 },
	[TCA_FIFA_RTT_WEIGHT]		= { .type = NLA_U64 },
	[TCA_FIFA_RED_MIN]		= { .type = NLA_U32 },
	[TCA_FIFA_RED_MAX]		= { .type = NLA_U32 },
	[TCA_FIFA_RED_PROBABILITY]	= { .type = NLA_U64 },
	[TCA_FIFA_RED_QWEIGHT]		= { .type = NLA_U64 },
	[TCA_FIFA_RED_GENTLE]		= { .type = NLA_U8 },
	[TCA_FIFA_RED_COUNT]		= { .type = NLA_U8 },
	[TCA_FIFA_PI_A]			= { .type = NLA_U64 },
	[TCA_FIFA_PI_B]			= { .type = NLA_U64 },
	[TCA_FIFA_PI_SAMPLING]		= { .type = NLA_U32 },
};

/* A queue keeps its base for life. */
static int fifa_check_base(u8 base, struct nlattr **tb,
			   struct netlink_ext_ack *extack)
{
	if (tb[TCA_FIFA_BASE] && nla_get_u8(tb[TCA_FIFA_BASE]) != base) {
		NL_SET_ERR_MSG_MOD(extack,
				   "base cannot be changed: delete the qdisc and add another");
		return -EINVAL;
	}
	return 0;
}

static bool fifa_given(struct nlattr **tb, int first, int last)
{
	while (first <= last)
		if (tb[first++])
			return true;
	return false;
}

/* Options of a base that is not this queue's are a mistake. */
static int fifa_refuse_others(u8 base, struct nlattr **tb,
			      struct netlink_ext_ack *extack)
{
	if (base != TC_FIFA_RED &&
	    fifa_given(tb, TCA_FIFA_RED_MIN, TCA_FIFA_RED_COUNT)) {
		NL_SET_ERR_MSG_MOD(extack,
				   "min, max, probability, qweight, gentle and count need base red");
		return -EINVAL;
	}
	if (base == TC_FIFA_RED && tb[TCA_AQM_TARGET]) {
		NL_SET_ERR_MSG_MOD(extack, "target needs base pi or rem");
		return -EINVAL;
	}
	if (base != TC_FIFA_PI &&
	    fifa_given(tb, TCA_FIFA_PI_A, TCA_FIFA_PI_SAMPLING)) {
		NL_SET_ERR_MSG_MOD(extack, "a, b and sampling need base pi");
		return -EINVAL;
	}
	if (base != TC_FIFA_REM &&
	    fifa_given(tb, TCA_REM_INTERVAL, TCA_REM_MEASURE)) {
		NL_SET_ERR_MSG_MOD(extack,
				   "interval, alpha, gamma, phi and measure need base rem");
		return -EINVAL;
	}
	return 0;
}

static int fifa_parse_red(struct red_config *red,
			  const struct aqm_config *shared, struct nlattr **tb,
			  struct netlink_ext_ack *extack)
{
	bool classic = !red->wait;
	int err;

	err = AQM_TAKE(red->min, tb[TCA_FIFA_RED_MIN], u32, 1, AQM_LIMIT_MAX,
		       extack, "min must be at least 1 packet and below max") ?:
	      AQM_TAKE(red->max, tb[TCA_FIFA_RED_MAX], u32, 2, AQM_LIMIT_MAX,
		       extack, "max must be above min and at most limit") ?:
	      AQM_TAKE(red->probability, tb[TCA_FIFA_RED_PROBABILITY], u64,
		       AQM_REAL_ONE / 1000000, AQM_REAL_ONE, extack,
		       "probability must be 0.000001 to 1") ?:
	      AQM_TAKE(red->weight, tb[TCA_FIFA_RED_QWEIGHT], u64,
		       AQM_REAL_ONE / 1000000, aqm_real(99, 100), extack,
		       "qweight must be 0.000001 to 0.99") ?:
	      AQM_TAKE(red->gentle, tb[TCA_FIFA_RED_GENTLE], u8, 0, 1, extack,
		       "gentle must be 0 or 1") ?:
	      AQM_TAKE(classic, tb[TCA_FIFA_RED_COUNT], u8,
		       0, TC_FIFA_COUNT_MAX, extack,
		       "count must be wait or classic");
	if (err)
		return err;
	red->wait = !classic;
	if (red->min >= red->max || red->max > shared->limit) {
		NL_SET_ERR_MSG_MOD(extack,
				   "min must be below max, and max at most limit");
		return -EINVAL;
	}
	return 0;
}

static int fifa_parse_pi(struct pi_config *pi, u32 *sampling,
			 const struct aqm_config *shared, struct nlattr **tb,
			 struct netlink_ext_ack *extack)
{
	int err;

	err = AQM_TAKE(pi->a, tb[TCA_FIFA_PI_A], u64, 1, FIFA_GAIN_MAX, extack,
		       "a must be above b and at most 2") ?:
	      AQM_TAKE(pi->b, tb[TCA_FIFA_PI_B], u64, 0, FIFA_GAIN_MAX, extack,
		       "b must be at least 0 and below a") ?:
	      AQM_TAKE(*sampling, tb[TCA_FIFA_PI_SAMPLING], u32, 1, 100000,
		       extack, "sampling must be 1 to 100000 Hz");
	if (err)
		return err;
	if (pi->b >= pi->a) {
		NL_SET_ERR_MSG_MOD(extack, "b must be below a");
		return -EINVAL;
	}
	pi->interval = NSEC_PER_SEC / *sampling;
	pi->target = shared->target;
	return 0;
}

static int fifa_parse(struct fifa_config *config, u8 base,
		      const struct aqm_config *shared, struct nlattr **tb,
		      struct netlink_ext_ack *extack)
{
	int err;

	err = fifa_refuse_others(base, tb, extack) ?:
	      AQM_TAKE(config->scale, tb[TCA_FIFA_SCALE], u8, 0, 1, extack,
		       "scale must be 0 or 1") ?:
	      AQM_TAKE(config->robust, tb[TCA_FIFA_EXPONENT_ROBUST], u64,
		       0, FIFA_EXPONENT_MAX, extack,
		       "exponent-robust must be 0 to 4") ?:
	      AQM_TAKE(config->fragile, tb[TCA_FIFA_EXPONENT_FRAGILE], u64,
		       0, FIFA_EXPONENT_MAX, extack,
		       "exponent-fragile must be 0 to 4") ?:
	      AQM_TAKE(config->rtt_min, tb[TCA_FIFA_RTT_MIN], u64,
		       AQM_LABEL_UNIT, AQM_LABEL_UNIT * AQM_LABEL_MAX, extack,
		       "rtt-min must be 0.1ms to 6553.5ms") ?:
	      AQM_TAKE(config->rtt_max, tb[TCA_FIFA_RTT_MAX], u64,
		       AQM_LABEL_UNIT, AQM_LABEL_UNIT * AQM_LABEL_MAX, extack,
		       "rtt-max must be 0.1ms to 6553.5ms") ?:
	      AQM_TAKE(config->rtt_weight, tb[TCA_FIFA_RTT_WEIGHT], u64,
		       AQM_REAL_ONE / 1000000, AQM_REAL_ONE, extack,
		       "rtt-weight must be 0.000001 to 1");
	if (err)
		return err;
	if (config->rtt_min > config->rtt_max) {
		NL_SET_ERR_MSG_MOD(extack, "rtt-min must not exceed rtt-max");
		return -EINVAL;
	}

	switch (base) {
	case TC_FIFA_RED:
		return fifa_parse_red(&config->red, shared, tb, extack);
	case TC_FIFA_PI:
		return fifa_parse_pi(&config->pi, &config->sampling, shared, tb,
				     extack);
	default:
		return rem_parse(&config->rem, shared, tb, extack);
	}
}

/* Put FIFA's and the base's parameters into the laws' form. */
static void fifa_params_init(struct fifa_sched_data *q)
{
	const struct fifa_config *config = &q->config;
	u32 unit = aqm_unit(&q->queue.config);
	bool robust = config->robust != FIFA_EXPONENT_DEFAULT;
	bool fragile = config->fragile != FIFA_EXPONENT_DEFAULT;

	q->params = (struct fifa_params){
		.robust = {
			robust ? config->robust : FIFA_ROBUST_DROP,
			robust ? config->robust : FIFA_ROBUST_MARK,
		},
		.fragile = {
			fragile ? config->fragile : FIFA_FRAGILE,
			fragile ? config->fragile : FIFA_FRAGILE,
		},
		.rtt_min = aqm_label_of(config->rtt_min),
		.rtt_max = aqm_label_of(config->rtt_max),
		.rtt_weight = config->rtt_weight,
	};
	fifa_forget(&q->vars);

	switch (q->base) {
	case TC_FIFA_RED:
		red_params_init(&q->red_params, &config->red, unit);
		break;
	case TC_FIFA_PI:
		pi_params_init(&q->pi_params, &config->pi, unit);
		break;
	case TC_FIFA_REM:
		rem_params_init(&q->rem_params, &config->rem.config, unit);
		break;
	}
}

/* The base's sampling starts anew, its state stays. */
static void fifa_restart_base(struct Qdisc *sch, u64 now)
{
	struct fifa_sched_data *q = qdisc_priv(sch);
	u64 backlog = aqm_backlog(sch, &q->queue);

	switch (q->base) {
	case TC_FIFA_PI:
		pi_restart(&q->pi_params, &q->pi, now, backlog);
		break;
	case TC_FIFA_REM:
		rem_restart(&q->rem_params, &q->rem, now, backlog);
		break;
	}
}

static int fifa_change(struct Qdisc *sch, struct nlattr *opt,
		       struct netlink_ext_ack *extack)
{
	struct fifa_sched_data *q = qdisc_priv(sch);
	struct aqm_config shared = q->queue.config;
	struct fifa_config config = q->config;
	struct nlattr *tb[TCA_FIFA_MAX + 1];
	u64 now;
	int err;

	err = nla_parse_nested(tb, TCA_FIFA_MAX, opt, fifa_policy, extack) ?:
	      fifa_check_base(q->base, tb, extack) ?:
	      aqm_parse(&shared, tb, extack) ?:
	      fifa_parse(&config, q->base, &shared, tb, extack);
	if (err)
		return err;

	sch_tree_lock(sch);
	now = aqm_now_exactly(&q->queue);
	fifa_update_base(sch, now);
	aqm_configure(sch, &q->queue, &shared);
	q->config = config;
	fifa_params_init(q);
	fifa_restart_base(sch, now);
	sch_tree_unlock(sch);
	return 0;
}

/* The papers' and ns-2's parameters. */
static void fifa_config_init(struct fifa_config *config, u8 base)
{
	*config = (struct fifa_config){
		.scale = true,
		.robust = FIFA_EXPONENT_DEFAULT,
		.fragile = FIFA_EXPONENT_DEFAULT,
		.rtt_min = AQM_LABEL_UNIT,
		.rtt_max = AQM_LABEL_UNIT * AQM_LABEL_MAX,
		.rtt_weight = aqm_real(1, 10),
		.sampling = 170,
	};
	switch (base) {
	case TC_FIFA_RED:
		config->red = (struct red_config){
			.min = 100,
			.max = 300,
			.probability = aqm_real(1, 10),
			.weight = aqm_real(2, 1000),
			.wait = true,
		};
		break;
	case TC_FIFA_PI:
		config->pi = (struct pi_config){
			.a = aqm_real(1822, 100000000),
			.b = aqm_real(1816, 100000000),
		};
		break;
	case TC_FIFA_REM:
		rem_options_init(&config->rem);
		break;
	}
}

static int fifa_init(struct Qdisc *sch, struct nlattr *opt,
		     struct netlink_ext_ack *extack)
{
	struct fifa_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_FIFA_MAX + 1] = {};
	struct aqm_config shared = {
		.limit = FIFA_LIMIT,
		.target = FIFA_TARGET,
		.protect = TC_AQM_NO_DSCP,
	};
	int err = 0;

	if (opt)
		err = nla_parse_nested(tb, TCA_FIFA_MAX, opt, fifa_policy,
				       extack);
	if (err)
		return err;
	if (!tb[TCA_FIFA_BASE]) {
		NL_SET_ERR_MSG_MOD(extack, "base must be given: red, pi or rem");
		return -EINVAL;
	}
	err = AQM_TAKE(q->base, tb[TCA_FIFA_BASE], u8, 0, TC_FIFA_BASE_MAX,
		       extack, "base must be red, pi or rem");
	if (err)
		return err;

	if (q->base == TC_FIFA_REM)
		shared.target = REM_TARGET;
	else if (q->base == TC_FIFA_RED)
		shared.target = 0;
	aqm_configure(sch, &q->queue, &shared);
	fifa_config_init(&q->config, q->base);
	err = aqm_parse(&shared, tb, extack) ?:
	      fifa_parse(&q->config, q->base, &shared, tb, extack);
	if (err)
		return err;
	aqm_configure(sch, &q->queue, &shared);
	fifa_params_init(q);
	fifa_start(q);
	return 0;
}

static int fifa_put_options(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct fifa_sched_data *q = qdisc_priv(sch);
	const struct fifa_config *config = &q->config;
	int pad = TCA_AQM_PAD;

	if (aqm_dump(skb, &q->queue.config) ||
	    nla_put_u8(skb, TCA_FIFA_BASE, q->base) ||
	    nla_put_u8(skb, TCA_FIFA_SCALE, config->scale) ||
	    nla_put_u64_64bit(skb, TCA_FIFA_RTT_MIN, config->rtt_min, pad) ||
	    nla_put_u64_64bit(skb, TCA_FIFA_RTT_MAX, config->rtt_max, pad) ||
	    nla_put_u64_64bit(skb, TCA_FIFA_RTT_WEIGHT, config->rtt_weight,
			      pad))
		return -EMSGSIZE;
	if (config->robust != FIFA_EXPONENT_DEFAULT &&
	    nla_put_u64_64bit(skb, TCA_FIFA_EXPONENT_ROBUST, config->robust,
			      pad))
		return -EMSGSIZE;
	if (config->fragile != FIFA_EXPONENT_DEFAULT &&
	    nla_put_u64_64bit(skb, TCA_FIFA_EXPONENT_FRAGILE, config->fragile,
			      pad))
		return -EMSGSIZE;

	switch (q->base) {
	case TC_FIFA_RED:
		if (nla_put_u32(skb, TCA_FIFA_RED_MIN, config->red.min) ||
		    nla_put_u32(skb, TCA_FIFA_RED_MAX, config->red.max) ||
		    nla_put_u64_64bit(skb, TCA_FIFA_RED_PROBABILITY,
				      config->red.probability, pad) ||
		    nla_put_u64_64bit(skb, TCA_FIFA_RED_QWEIGHT,
				      config->red.weight, pad) ||
		    nla_put_u8(skb, TCA_FIFA_RED_GENTLE, config->red.gentle) ||
		    nla_put_u8(skb, TCA_FIFA_RED_COUNT, config->red.wait ?
			       TC_FIFA_WAIT : TC_FIFA_CLASSIC))
			return -EMSGSIZE;
		return 0;
	case TC_FIFA_PI:
		if (nla_put_u64_64bit(skb, TCA_FIFA_PI_A, config->pi.a, pad) ||
		    nla_put_u64_64bit(skb, TCA_FIFA_PI_B, config->pi.b, pad) ||
		    nla_put_u32(skb, TCA_FIFA_PI_SAMPLING, config->sampling))
			return -EMSGSIZE;
		return 0;
	default:
		return rem_dump(skb, &config->rem);
	}
}

/* A time in FIFA's unit, Q32, in ns. */
static u64 fifa_ns(u64 rtt)
{
	return aqm_mul(rtt, AQM_LABEL_UNIT, FIFA_RTT_SHIFT);
}

/* FIFA's statistics, and @base, the base's probability. */
static int fifa_put_own_stats(struct sk_buff *skb,
			      const struct fifa_sched_data *q, u64 base)
{
	const struct fifa_stats *stats = &q->stats;

	return aqm_dump_stats(skb, &q->queue, base) ?:
	       aqm_put_stat(skb, TCA_FIFA_STATS_PROB_SCALED, stats->scaled) ?:
	       aqm_put_stat(skb, TCA_FIFA_STATS_RTT_AVG,
			    fifa_ns(q->vars.average)) ?:
	       aqm_put_stat(skb, TCA_FIFA_STATS_RTT_FORMULA,
			    fifa_ns(q->vars.formula)) ?:
	       aqm_put_stat(skb, TCA_FIFA_STATS_LABELLED, stats->labelled) ?:
	       aqm_put_stat(skb, TCA_FIFA_STATS_UNLABELLED,
			    stats->unlabelled) ?:
	       aqm_put_stat(skb, TCA_FIFA_STATS_ROBUST, stats->robust) ?:
	       aqm_put_stat(skb, TCA_FIFA_STATS_FRAGILE, stats->fragile);
}

static int fifa_put_stats(struct Qdisc *sch, struct sk_buff *skb)
{
	struct fifa_sched_data *q = qdisc_priv(sch);
	u64 base = 0;
	int err = 0;

	sch_tree_lock(sch);
	fifa_update_base(sch, aqm_now_exactly(&q->queue));
	switch (q->base) {
	case TC_FIFA_RED:
		/* before the count, which is a packet's */
		base = red_slope(&q->red_params, q->red.avg);
		err = aqm_put_stat(skb, TCA_FIFA_STATS_RED_AVG,
				   div_u64(q->red.avg >> (RED_AVG_SHIFT - 8),
					   aqm_unit(&q->queue.config)));
		break;
	case TC_FIFA_PI:
		base = pi_probability(&q->pi);
		break;
	case TC_FIFA_REM:
		base = q->rem.probability;
		err = aqm_put_stat(skb, TCA_FIFA_STATS_REM_PRICE, q->rem.price);
		break;
	}
	err = err ?: fifa_put_own_stats(skb, q, base);
	sch_tree_unlock(sch);
	return err;
}

static int fifa_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	return aqm_dump_nest(sch, skb, TCA_OPTIONS, fifa_put_options);
}

static int fifa_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	return aqm_dump_nest(sch, d->skb, TCA_STATS_APP, fifa_put_stats);
}

static struct Qdisc_ops fifa_qdisc_ops __read_mostly = {
	.id		= "fifa",
	.priv_size	= sizeof(struct fifa_sched_data),
	.enqueue	= fifa_enqueue,
	.dequeue	= fifa_dequeue,
	.peek		= qdisc_peek_head,
	.init		= fifa_init,
	.reset		= fifa_reset,
	.change		= fifa_change,
	.dump		= fifa_dump,
	.dump_stats	= fifa_dump_stats,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("fifa");

module_driver(fifa_qdisc_ops, register_qdisc, unregister_qdisc);
MODULE_DESCRIPTION("Round-trip time aware RED, PI or REM queueing discipline");
MODULE_AUTHOR("The aqmkit authors");
MODULE_VERSION("0.1");
MODULE_LICENSE("GPL");
