/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FRED, Flow Random Early Drop: the control law.
 *
 * D. Lin, R. Morris: "Dynamics of Random Early Detection", ACM SIGCOMM 1997. The
 * average and its slope are RED's, in red.h; names are those of the paper's
 * listing.
 *
 * Of each flow that has packets queued it is known how many, qlen_i, and how
 * often it was found to take more than its part, strike_i; avgcq is what a flow
 * has on average:
 *
 *	avgcq = max(avg / Nactive, 1)
 *
 * A packet that arrives is a strike, and is dropped, if
 *
 *	qlen_i >= maxq = min_th, or
 *	avg >= max_th and qlen_i > 2 avgcq, or
 *	qlen_i >= avgcq and strike_i > 1.
 *
 * Otherwise it is dropped as RED would, but between min_th and max_th only from
 * a flow that is robust, qlen_i >= max(minq, avgcq). A flow that has no packet
 * queued is forgotten.
 *
 * The queue is averaged when a packet is accepted and, unlike RED's, when one
 * departs.
 */
#ifndef AQM_FRED_H
#define AQM_FRED_H

#include "dice.h"
#include "red.h"

/**
 * struct fred_params - FRED's parameters as the law uses them
 * @red: RED's, which is not gentle
 * @minq: what a flow may always have queued, units in Q24
 * @packet: a packet, units in Q24
 */
struct fred_params {
	struct red_params red;
	u64 minq;
	u64 packet;
};

/**
 * struct fred_flow - a flow
 * @queued: qlen_i, units
 * @strikes: strike_i
 */
struct fred_flow {
	u64 queued;
	u32 strikes;
};

/**
 * struct fred_vars - FRED's state
 * @red: RED's
 * @active: Nactive, flows that have packets queued
 */
struct fred_vars {
	struct red_vars red;
	u32 active;
};

/**
 * fred_params_init() - convert the parameters
 * @params: out
 * @red: valid parameters of RED
 * @minq: what a flow may always have queued, packets
 * @unit: units in a packet: 1, or a packet's bytes
 */
static inline void fred_params_init(struct fred_params *params,
				    const struct red_config *red, u32 minq,
				    u32 unit)
{
	red_params_init(&params->red, red, unit);
	params->minq = ((u64)minq * unit) << RED_AVG_SHIFT;
	params->packet = (u64)unit << RED_AVG_SHIFT;
}

/* avgcq, units in Q24. */
static inline u64 fred_share(const struct fred_params *params,
			     const struct fred_vars *vars)
{
	u64 avg = vars->red.avg;

	return max(vars->active ? div_u64(avg, vars->active) : avg,
		   params->packet);
}

/**
 * fred_begin() - a packet arrives
 * @params: parameters
 * @vars: state
 * @now: time, ns
 * @backlog: the queue, units
 * @send_time: how long the link takes for a packet, ns; 0 if unknown
 *
 * On an empty queue this is when the average is made, for the idle time.
 */
static inline void fred_begin(const struct fred_params *params,
			      struct fred_vars *vars, u64 now, u64 backlog,
			      u64 send_time)
{
	if (!backlog)
		red_average(&params->red, &vars->red, now, 0, send_time);
}

/**
 * fred_strike() - does the packet's flow take more than its part?
 * @params: parameters
 * @vars: state
 * @flow: its flow, which gets a strike if so
 *
 * Return: if so, the packet is to carry a congestion signal.
 */
static inline bool fred_strike(const struct fred_params *params,
			       const struct fred_vars *vars,
			       struct fred_flow *flow)
{
	u64 queued = flow->queued << RED_AVG_SHIFT;
	u64 share = fred_share(params, vars);

	if (queued >= params->red.min ||
	    (vars->red.avg >= params->red.max && queued > 2 * share) ||
	    (queued >= share && flow->strikes > 1)) {
		flow->strikes += flow->strikes < U32_MAX;
		return true;
	}
	return false;
}

/**
 * fred_odds() - of hitting a packet that is no strike
 * @params: parameters
 * @vars: state; counts the packet
 * @flow: its flow
 *
 * Return: RED's, or none if the flow is fragile. If it is hit, red_hit() is to
 * be called.
 */
static inline struct aqm_odds fred_odds(const struct fred_params *params,
					struct fred_vars *vars,
					const struct fred_flow *flow)
{
	struct aqm_odds odds = red_odds(&params->red, &vars->red);
	u64 robust = max(params->minq, fred_share(params, vars));

	if (vars->red.avg < params->red.max &&
	    flow->queued << RED_AVG_SHIFT < robust)
		odds = (struct aqm_odds){ 0, AQM_PROB_ONE };
	return odds;
}

/* Packets of a flow that are queued, @units of them, are counted. */
static inline void fred_count(struct fred_vars *vars, struct fred_flow *flow,
			      u64 units)
{
	vars->active += !flow->queued;
	flow->queued += units;
}

/**
 * fred_accept() - the packet that arrived was queued
 * @params: parameters
 * @vars: state
 * @flow: its flow
 * @now: time, ns
 * @backlog: the queue as the packet found it, units
 * @units: the packet's, at least 1
 */
static inline void fred_accept(const struct fred_params *params,
			       struct fred_vars *vars, struct fred_flow *flow,
			       u64 now, u64 backlog, u64 units)
{
	if (backlog)
		red_average(&params->red, &vars->red, now, backlog, 0);
	red_arrive(&vars->red);
	fred_count(vars, flow, units);
}

/**
 * fred_depart() - a packet left the queue
 * @params: parameters
 * @vars: state
 * @flow: its flow
 * @now: time, ns
 * @backlog: what is still queued, units
 * @units: the packet's
 * @sent: when the link will have sent the packet, ns
 */
static inline void fred_depart(const struct fred_params *params,
			       struct fred_vars *vars, struct fred_flow *flow,
			       u64 now, u64 backlog, u64 units, u64 sent)
{
	flow->queued -= units;
	if (!flow->queued) {
		flow->strikes = 0;
		vars->active--;
	}
	red_average(&params->red, &vars->red, now, backlog, 0);
	red_depart(&vars->red, backlog, sent);
}

#endif
