/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * XQM, exogenous-loss aware queue management: the control law.
 *
 * M. Guirguis, A. Bestavros, I. Matta: "Exogenous-Loss Awareness in Queue
 * Management: Toward Global Fairness", Boston University. Equation numbers are
 * that paper's.
 *
 * A flow that is to have the throughput xhat with a round-trip time r must see
 * the quiescent loss rate
 *
 *	qhat = 2 / ((xhat r)^2 + 2)					(16)
 *
 * in all. The queue drops its packets at a rate q <= qhat, with probability
 *
 *	p = q / (1 - k q)						(17)
 *
 * k packets after the last drop, and finds out at each control period what q
 * makes the throughput x, measured over a longer period, the fair share:
 *
 *	ON-OFF	q = qhat if x > xhat, else 0				(18)
 *	PI-T	q += delta (x - xhat)					(19)
 *	PI-TB	q += delta (x - xhat) + phi (b - bhat)			(20)
 *
 * Losses elsewhere lower x, hence q, and so count as the queue's own; with more
 * of them than qhat, q would be negative: then they are to be hidden.
 *
 * Time is lazy: the queue keeps the sums over control periods of (b - bhat) and
 * of the share, and a flow, when its packet comes, is told what they have grown
 * by since its last one. That is eqs. (19) and (20) but for clamps in between.
 *
 * The measurement period is made of XQM_BINS bins, and moves on by a bin. Its
 * throughput is constant within a bin: what the sum over it is can be told from
 * the counts of the bins, whenever that is asked.
 */
#ifndef AQM_XQM_H
#define AQM_XQM_H

#include "dice.h"
#include "fixed.h"

#define XQM_BINS	20
#define XQM_SLOTS	(XQM_BINS + 1)	/* and the present one */

/* Loss rates, Q48, steps of 3.6e-15. */
#define XQM_RATE_SHIFT	48
#define XQM_RATE_ONE	BIT_ULL(XQM_RATE_SHIFT)
/* Packets, and packets a second. */
#define XQM_PACKET_SHIFT	8

#define XQM_SINGLE_SHIFT	6	/* weights of one flow, on the mean */

#define XQM_NS		1000000000ULL	/* in a second */

enum xqm_controller {
	XQM_ONOFF,
	XQM_PI_T,
	XQM_PI_TB,
};

/**
 * struct xqm_config - XQM's parameters as the user states them
 * @control: controller
 * @smooth: q may be negative, for hiding in proportion
 * @target: bhat, packets
 * @control_period: CP, ns, at least 1
 * @measure_period: MP, ns
 * @delta: gain of the throughput, Q48
 * @phi: gain of the queue, Q48
 */
struct xqm_config {
	int control;
	bool smooth;
	u32 target;
	u64 control_period;
	u64 measure_period;
	u64 delta;
	u64 phi;
};

/**
 * struct xqm_params - XQM's parameters as the law uses them
 * @control: controller
 * @smooth: q may be negative
 * @target: bhat, packets, Q8
 * @control_period: CP, ns
 * @bin: control periods in a bin
 * @per_window: inverse of the measurement period, 1/s in Q32
 * @delta: gain, Q48
 * @phi: gain, Q48
 */
struct xqm_params {
	int control;
	bool smooth;
	u64 target;
	u64 control_period;
	u64 bin;
	u64 per_window;
	u64 delta;
	u64 phi;
};

/**
 * struct xqm_census - the flows seen within the measurement period
 * @weight: of all of them
 * @flows: how many
 * @last: the same of those whose last packet came in a bin, by the bin's slot
 */
struct xqm_census {
	u64 weight;
	u32 flows;
	struct {
		u64 weight;
		u32 flows;
	} last[XQM_SLOTS];
};

/**
 * struct xqm_member - a flow as a census has it
 * @bin: bin of its last packet
 * @weight: what it counts for; 0 if it does not
 */
struct xqm_member {
	u64 bin;
	u32 weight;
};

/**
 * struct xqm_vars - XQM's state for all flows
 * @next: next control instant, ns
 * @instant: control instants so far
 * @bin: bins so far
 * @slot: of the present bin in counts by bin
 * @capacity: of the link, packets/s, Q8; 0 if unknown
 * @fixed_share: the fair share if the user stated one, packets/s, Q8, or 0
 * @share: xhat of a flow of weight 1, packets/s, Q8
 * @delay: of a queue that is at its target, ns
 * @sum: of b - bhat over the control instants, packets, Q8; wraps
 * @shares: of @share over the control instants, Q8; wraps
 * @began: @shares when a bin began, by its slot
 * @census: flows seen within the measurement period
 */
struct xqm_vars {
	u64 next;
	u64 instant;
	u64 bin;
	u32 slot;
	u64 capacity;
	u64 fixed_share;
	u64 share;
	u64 delay;
	u64 sum;
	u64 shares;
	u64 began[XQM_SLOTS];
	struct xqm_census census;
};

/**
 * struct xqm_flow - XQM's state for a flow, or for flows that are taken for one
 * @instant: control instant it was brought up to
 * @start: control instant it began at
 * @bin: bin of @instant
 * @sum: the queue's sum at @instant
 * @shares: the queue's shares at @instant
 * @window: packets in the XQM_BINS bins before the present one, Q8
 * @throughput: x, packets/s, Q8
 * @rate: q, Q48
 * @quiescent: qhat, Q48; 0 while it is unknown
 * @share: of all that it consists of, packets/s, Q8
 * @loop: r, what @quiescent was computed from, ns
 * @rtt: its base round-trip time, ns; 0 if it is unknown: the user's to set
 * @weight: of all that it consists of, not 0: the user's to set
 * @since: k, packets queued since the last drop
 * @single: weight of one of the flows that it consists of, Q6: likewise
 * @slot: of the present bin in @count
 * @responsive: slows down for losses, as TCP does
 * @count: packets by bin, Q8
 */
struct xqm_flow {
	u64 instant;
	u64 start;
	u64 bin;
	u64 sum;
	u64 shares;
	u64 window;
	u64 throughput;
	s64 rate;
	u64 quiescent;
	u64 share;
	u64 loop;
	u64 rtt;
	u32 weight;
	u32 since;
	u16 single;
	u8 slot;
	bool responsive;
	u32 count[XQM_SLOTS];
};

static inline u32 xqm_next_slot(u32 slot)
{
	return slot + 1 < XQM_SLOTS ? slot + 1 : 0;
}

/**
 * xqm_params_init() - convert the parameters
 * @params: out
 * @config: valid parameters
 *
 * The measurement period becomes a multiple of XQM_BINS control periods.
 */
static inline void xqm_params_init(struct xqm_params *params,
				   const struct xqm_config *config)
{
	u64 grain = XQM_BINS * config->control_period;

	params->control = config->control;
	params->smooth = config->smooth;
	params->target = (u64)config->target << XQM_PACKET_SHIFT;
	params->control_period = config->control_period;
	params->bin = max(div64_u64(config->measure_period + grain / 2, grain),
			  1ULL);
	params->per_window = div64_u64(XQM_NS << 32, params->bin * grain);
	params->delta = config->delta;
	params->phi = config->phi;
}

/* The fair share of weight 1. */
static inline void xqm_set_share(struct xqm_vars *vars)
{
	vars->share = vars->fixed_share ?:
		div64_u64(vars->capacity, max(vars->census.weight, 1ULL));
}

/**
 * xqm_set_capacity() - what the link carries, and what of it is for the flows
 * @params: parameters
 * @vars: state
 * @link: the link's capacity, packets/s, Q8; 0 if unknown
 * @reserved: of it, for others
 * @fixed_share: a flow's, or 0 for the fair one
 */
static inline void xqm_set_capacity(const struct xqm_params *params,
				    struct xqm_vars *vars, u64 link,
				    u64 reserved, u64 fixed_share)
{
	vars->capacity = link > reserved ? link - reserved : 0;
	vars->fixed_share = fixed_share;
	vars->delay = link ? mul_u64_u64_div_u64(params->target, XQM_NS, link) :
			     0;
	xqm_set_share(vars);
}

static inline void xqm_census_join(struct xqm_census *census, u32 slot,
				   u32 weight)
{
	census->flows++;
	census->weight += weight;
	census->last[slot].flows++;
	census->last[slot].weight += weight;
}

static inline void xqm_census_leave(struct xqm_census *census, u32 slot,
				    u32 weight)
{
	census->flows--;
	census->weight -= weight;
	census->last[slot].flows--;
	census->last[slot].weight -= weight;
}

/* A bin begins, whose slot held those that are now gone for a whole period. */
static inline void xqm_census_turn(struct xqm_census *census, u32 slot)
{
	census->flows -= census->last[slot].flows;
	census->weight -= census->last[slot].weight;
	census->last[slot].flows = 0;
	census->last[slot].weight = 0;
}

/* Is a bin within the measurement period? */
static inline bool xqm_is_recent(const struct xqm_vars *vars, u64 bin)
{
	return vars->bin - bin < XQM_SLOTS;
}

/* Slot of the last @bin of that number, which is present. */
static inline u32 xqm_slot_of(const struct xqm_vars *vars, u64 bin)
{
	u32 back = vars->bin - bin;

	return vars->slot >= back ? vars->slot - back :
				    vars->slot + XQM_SLOTS - back;
}

/**
 * xqm_leave() - a member goes out of a census
 * @vars: state
 * @census: the census
 * @member: the member, which may have been gone for long
 */
static inline void xqm_leave(const struct xqm_vars *vars,
			     struct xqm_census *census,
			     struct xqm_member *member)
{
	if (member->weight && xqm_is_recent(vars, member->bin))
		xqm_census_leave(census, xqm_slot_of(vars, member->bin),
				 member->weight);
	member->weight = 0;
}

/**
 * xqm_join() - a packet of a member comes
 * @vars: state, advanced to the present
 * @census: the census
 * @member: the member
 * @weight: its weight, which may have changed; not 0
 *
 * Return: is anything different from what it was?
 */
static inline bool xqm_join(const struct xqm_vars *vars,
			    struct xqm_census *census,
			    struct xqm_member *member, u32 weight)
{
	if (member->weight == weight && member->bin == vars->bin)
		return false;
	xqm_leave(vars, census, member);
	member->bin = vars->bin;
	member->weight = weight;
	xqm_census_join(census, vars->slot, weight);
	return true;
}

/**
 * xqm_restart() - measurement starts anew: no flow counts as seen
 * @params: parameters, which may have changed
 * @vars: state
 * @now: time, ns
 */
static inline void xqm_restart(const struct xqm_params *params,
			       struct xqm_vars *vars, u64 now)
{
	vars->next = now + params->control_period;
	vars->bin += XQM_SLOTS + 1;
	vars->instant = vars->bin * params->bin;
	vars->census = (struct xqm_census){};
	xqm_set_share(vars);
}

/**
 * xqm_advance() - account for the control instants up to now
 * @params: parameters
 * @vars: state
 * @now: time, ns, not before that of any earlier call
 * @backlog: b, the queue since the last call, packets, Q8
 *
 * To be called before the queue changes. After a long silence all flows are
 * forgotten, and the rest of the bins are passed over.
 *
 * Return: the bins that began; those beyond XQM_SLOTS are not counted.
 */
static inline u32 xqm_advance(const struct xqm_params *params,
			      struct xqm_vars *vars, u64 now, u64 backlog)
{
	u64 count, step;
	u32 turns = 0;

	if (now < vars->next)
		return 0;

	count = div64_u64(now - vars->next, params->control_period) + 1;
	vars->next += count * params->control_period;
	vars->sum += count * (backlog - params->target);
	while (count) {
		/* the bin's first instant has what the bin before it measured */
		step = min(count, (vars->bin + 1) * params->bin - vars->instant);
		vars->shares += step * vars->share;
		vars->instant += step;
		count -= step;
		if (vars->instant < (vars->bin + 1) * params->bin)
			break;
		if (turns == XQM_SLOTS) {
			vars->shares += count * vars->share;
			vars->instant += count;
			vars->bin = div64_u64(vars->instant, params->bin);
			break;
		}
		turns++;
		vars->bin++;
		vars->slot = xqm_next_slot(vars->slot);
		vars->began[vars->slot] = vars->shares;
		xqm_census_turn(&vars->census, vars->slot);
		xqm_set_share(vars);
	}
	return turns;
}

/* qhat, eq. (16), Q48, for packets/s in Q8 and ns. */
static inline u64 xqm_quiescent(u64 share, u64 rtt)
{
	/* ns to s in Q32: 2^64 / 10^9; packets a round trip, Q16, to 32767 */
	u64 seconds = mul_u64_u64_shr(rtt, 18446744074ULL, 32);
	u64 window = aqm_mul(share, seconds, 32 + XQM_PACKET_SHIFT - 16);

	window = min(window, BIT_ULL(31) - 1);
	return mul_u64_u64_div_u64(2ULL << 32, XQM_RATE_ONE,
				   window * window + (2ULL << 32));
}

/* What throughput the packets of the last bins make. */
static inline u64 xqm_throughput(const struct xqm_params *params,
				 const struct xqm_flow *flow)
{
	u64 age = flow->bin * params->bin - flow->start;

	if (age >= XQM_BINS * params->bin)
		return aqm_mul(flow->window, params->per_window, 32);
	return mul_u64_u64_div_u64(flow->window, XQM_NS,
				   age * params->control_period);
}

/**
 * xqm_flow_start() - a flow begins, or begins again
 * @vars: state, advanced to the present
 * @flow: the flow, of which only its round-trip time stays
 * @responsive: slows down for losses
 */
static inline void xqm_flow_start(const struct xqm_vars *vars,
				  struct xqm_flow *flow, bool responsive)
{
	*flow = (struct xqm_flow){
		.instant = vars->instant,
		.start = vars->instant,
		.bin = vars->bin,
		.sum = vars->sum,
		.shares = vars->shares,
		.rtt = flow->rtt,
		.weight = 1,
		.single = 1 << XQM_SINGLE_SHIFT,
		.responsive = responsive,
	};
}

/* Within the bin that a flow begins in, nothing is known of its throughput. */
static inline bool xqm_is_measured(const struct xqm_params *params,
				   const struct xqm_flow *flow)
{
	return flow->bin * params->bin > flow->start;
}

/*
 * Bring the flow's measurement up to the present.
 *
 * Return: the sum over the control instants passed of (x - xhat), packets/s, Q8,
 * but for those at which x was not known.
 */
static inline s64 xqm_flow_slide(const struct xqm_params *params,
				 const struct xqm_vars *vars,
				 struct xqm_flow *flow)
{
	s64 sum = 0, due;

	while (flow->bin != vars->bin) {
		u64 last = (flow->bin + 1) * params->bin;

		sum += flow->throughput * (last - flow->instant);
		flow->instant = last;
		flow->window += flow->count[flow->slot];
		flow->slot = xqm_next_slot(flow->slot);
		flow->window -= flow->count[flow->slot];
		flow->count[flow->slot] = 0;
		flow->bin++;
		if (flow->bin * params->bin - flow->start <= params->bin)
			flow->shares = vars->began[xqm_slot_of(vars,
							       flow->bin)];
		flow->throughput = xqm_throughput(params, flow);
	}
	sum += flow->throughput * (vars->instant - flow->instant);
	flow->instant = vars->instant;
	if (!xqm_is_measured(params, flow))
		flow->shares = vars->shares;
	due = aqm_mul(vars->shares - flow->shares, flow->weight, 0);
	flow->shares = vars->shares;
	return aqm_sadd(sum, -due);
}

/* What the control instants passed do to a flow's rate, but for its limits. */
static inline void xqm_flow_control(const struct xqm_params *params,
				    const struct xqm_vars *vars,
				    struct xqm_flow *flow)
{
	s64 mismatch = xqm_flow_slide(params, vars, flow);
	u64 excess = vars->sum - flow->sum;
	s64 change;

	flow->sum = vars->sum;
	if (params->control == XQM_ONOFF) {	/* eq. (18) */
		flow->rate = flow->throughput > flow->share ? flow->quiescent :
							      0;
		return;
	}
	change = aqm_smul(mismatch, params->delta, XQM_PACKET_SHIFT);
	if (params->control == XQM_PI_TB)	/* eq. (20); else (19) */
		change = aqm_sadd(change, aqm_smul(excess, params->phi,
						   XQM_PACKET_SHIFT));
	flow->rate = aqm_sadd(flow->rate, change);
}

/**
 * xqm_flow_advance() - bring a flow up to the present
 * @params: parameters
 * @vars: state, advanced to the present
 * @flow: a flow that was started or advanced within the measurement period
 *
 * To be called before a packet of the flow is decided upon or counted.
 */
static inline void xqm_flow_advance(const struct xqm_params *params,
				    const struct xqm_vars *vars,
				    struct xqm_flow *flow)
{
	u64 share = aqm_mul(vars->share, flow->weight, 0);
	u64 loop = flow->rtt + vars->delay;
	bool known = flow->quiescent;
	s64 floor = 0;

	if (!flow->responsive) {
		flow->quiescent = XQM_RATE_ONE;	/* no bound, section V.C */
	} else if (!flow->rtt || !share) {
		flow->quiescent = 0;
	} else if (loop != flow->loop || share != flow->share || !known) {
		flow->quiescent =
			xqm_quiescent(aqm_mul(vars->share, flow->single,
					      XQM_SINGLE_SHIFT), loop);
		if (!known)
			flow->rate = flow->quiescent;	/* q(0) */
	}
	flow->share = share;
	flow->loop = loop;

	if (flow->instant != vars->instant)
		xqm_flow_control(params, vars, flow);
	if (params->smooth && flow->responsive)
		floor = -(s64)flow->quiescent;
	flow->rate = clamp_t(s64, flow->rate, floor, flow->quiescent);
}

/**
 * xqm_odds() - mark or drop a packet?
 * @flow: its flow, advanced to the present
 *
 * Return: p, eq. (17), undivided.
 */
static inline struct aqm_odds xqm_odds(const struct xqm_flow *flow)
{
	const int shift = XQM_RATE_SHIFT - AQM_PROB_SHIFT;
	u64 part = max(flow->rate, 0LL) >> shift, spent;

	if (!part)
		return (struct aqm_odds){ 0, AQM_PROB_ONE };
	spent = aqm_mul(flow->since, flow->rate, 0);
	if (spent + flow->rate >= XQM_RATE_ONE)
		return (struct aqm_odds){ AQM_PROB_ONE, AQM_PROB_ONE };
	return (struct aqm_odds){ part, (XQM_RATE_ONE - spent) >> shift };
}

/**
 * xqm_hidden_share() - how many of a flow's packets are not to be lost elsewhere
 * @params: parameters
 * @flow: the flow, advanced to the present
 *
 * Return: Q32: all while q <= 0; with @params->smooth, -q / qhat, rounded down.
 */
static inline u64 xqm_hidden_share(const struct xqm_params *params,
				   const struct xqm_flow *flow)
{
	if (!flow->responsive || !flow->quiescent || flow->rate > 0)
		return 0;
	if (!params->smooth || -flow->rate >= (s64)flow->quiescent)
		return AQM_PROB_ONE;
	return mul_u64_u64_div_u64(-flow->rate, AQM_PROB_ONE, flow->quiescent);
}

/**
 * xqm_flow_count() - count packets of a flow that came
 * @flow: the flow, advanced to the present
 * @packets: how many
 * @amount: what they count for, packets, Q8
 * @queued: they were queued
 * @lost: they were dropped or marked
 *
 * k begins anew at a drop, and while nothing is imposed.
 */
static inline void xqm_flow_count(struct xqm_flow *flow, u32 packets,
				  u64 amount, bool queued, bool lost)
{
	u32 *count = &flow->count[flow->slot];

	if (queued)
		*count = min_t(u64, *count + amount, U32_MAX);
	if (lost || flow->rate <= 0)
		flow->since = 0;
	else
		flow->since = min_t(u64, (u64)flow->since + packets, U32_MAX);
}

#endif
