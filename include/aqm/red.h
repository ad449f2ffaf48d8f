/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RED, Random Early Detection: the control law.
 *
 * S. Floyd, V. Jacobson: "Random Early Detection Gateways for Congestion
 * Avoidance", IEEE/ACM Transactions on Networking 1(4), 1993; the gentle slope
 * and the count's two forms are those of ns-2's red.cc.
 *
 * At each arrival the queue q is averaged,
 *
 *	avg = (1 - w) avg + w q
 *
 * after (1 - w)^m for an idle time in which m packets could have been sent. A
 * probability is read off a slope,
 *
 *	p_b = max_p (avg - min_th) / (max_th - min_th)
 *
 * from min_th to max_th, beyond which it is 1; or, if gentle, rises from max_p
 * to 1 between max_th and 2 max_th. It is then spread out by the count of
 * packets since the last one that was hit: p_b / (1 - count p_b) classically;
 * with ns-2's "wait", 0 until count p_b = 1, then p_b / (2 - count p_b).
 *
 * A unit is what the queue is counted in: a packet, or a byte if the queue
 * counts bytes; parameters are given in packets and converted once.
 */
#ifndef AQM_RED_H
#define AQM_RED_H

#include "fixed.h"

/* The average: Q24 units, below 2^38 units. */
#define RED_AVG_SHIFT	24
/* Slopes, probability a unit: Q56, at most 1. */
#define RED_SLOPE_SHIFT	56
/* Packets that could have been sent in an idle time: Q16, up to 2^45. */
#define RED_IDLE_SHIFT	16

/**
 * struct red_config - RED's parameters as the user states them
 * @min: min_th, packets
 * @max: max_th, packets, above @min
 * @probability: max_p, Q48, (0, 1]
 * @weight: w, Q48, (0, 1)
 * @gentle: slope from max_th to 2 max_th instead of a step
 * @wait: ns-2's count instead of the classical one
 */
struct red_config {
	u32 min;
	u32 max;
	u64 probability;
	u64 weight;
	bool gentle;
	bool wait;
};

/**
 * struct red_params - RED's parameters as the law uses them
 * @min: min_th, units in Q24
 * @max: max_th, units in Q24
 * @probability: max_p, Q32
 * @slope: of p_b from min_th to max_th, Q56, a unit
 * @gentle_slope: of p_b from max_th to 2 max_th, Q56, a unit; 0 for a step
 * @weight: w, Q48
 * @decay: -log2(1 - w), Q40
 * @wait: ns-2's count instead of the classical one
 */
struct red_params {
	u64 min;
	u64 max;
	u64 probability;
	u64 slope;
	u64 gentle_slope;
	u64 weight;
	u64 decay;
	bool wait;
};

/**
 * struct red_vars - RED's state
 * @avg: average queue, units in Q24
 * @count: packets since the last one that was hit
 * @above: @avg has been at min_th or above since
 * @idle_from: since or from when the link is idle, U64_MAX while units are
 *	queued, ns
 */
struct red_vars {
	u64 avg;
	u32 count;
	bool above;
	u64 idle_from;
};

/**
 * red_params_init() - convert the parameters
 * @params: out
 * @config: valid parameters
 * @unit: units in a packet: 1, or a packet's bytes
 */
static inline void red_params_init(struct red_params *params,
				   const struct red_config *config, u32 unit)
{
	u64 top = AQM_REAL_ONE << (RED_SLOPE_SHIFT - AQM_REAL_SHIFT);
	u64 max_p = config->probability << (RED_SLOPE_SHIFT - AQM_REAL_SHIFT);
	u64 range = (u64)(config->max - config->min) * unit;

	params->min = ((u64)config->min * unit) << RED_AVG_SHIFT;
	params->max = ((u64)config->max * unit) << RED_AVG_SHIFT;
	params->probability = config->probability >>
			      (AQM_REAL_SHIFT - AQM_PROB_SHIFT);
	params->slope = div64_u64(max_p, range);
	params->gentle_slope = config->gentle ?
		div64_u64(top - max_p, (u64)config->max * unit) : 0;
	params->weight = config->weight;
	/* log2(1 / (1 - w)), Q48 to Q40 */
	params->decay = aqm_log2(mul_u64_u64_div_u64(AQM_REAL_ONE, AQM_REAL_ONE,
						     AQM_REAL_ONE -
						     config->weight)) >> 8;
	params->wait = config->wait;
}

/**
 * red_init() - an empty queue on an idle link
 * @vars: out
 */
static inline void red_init(struct red_vars *vars)
{
	*vars = (struct red_vars){};
}

/*
 * m, the packets that could have been sent in @idle ns: Q16. Beyond 39 hours the
 * packet that is not over is left out.
 */
static inline u64 red_idle_packets(u64 idle, u64 send_time)
{
	if (unlikely(idle >> (63 - RED_IDLE_SHIFT)))
		return aqm_mul(div64_u64(idle, send_time), 1 << RED_IDLE_SHIFT,
			       0);
	return div64_u64(idle << RED_IDLE_SHIFT, send_time);
}

/* Has the link been idle? */
static inline bool red_is_idle(const struct red_vars *vars, u64 now)
{
	return now > vars->idle_from;
}

/**
 * red_average() - average the queue that an arrival finds
 * @params: parameters
 * @vars: state
 * @now: time, ns
 * @backlog: the queue, units
 * @send_time: how long the link takes for a packet, ns, if it has been idle; 0
 *	if unknown: then an idle time is not known either and counts for nothing
 */
static inline void red_average(const struct red_params *params,
			       struct red_vars *vars, u64 now, u64 backlog,
			       u64 send_time)
{
	u64 queue = backlog << RED_AVG_SHIFT;
	u64 avg = vars->avg;

	if (red_is_idle(vars, now) && send_time) {
		/* (1 - w)^m = 2^(-m decay) */
		u64 m = red_idle_packets(now - vars->idle_from, send_time);
		u64 exponent = aqm_mul(m, params->decay, RED_IDLE_SHIFT);

		avg = aqm_mul(avg, aqm_exp2(-(s64)exponent), AQM_PROB_SHIFT);
		vars->idle_from = now;
	}
	/* avg + w (q - avg): between the two, as w is below 1 */
	if (queue < avg)
		avg -= __aqm_mul(avg - queue, params->weight, AQM_REAL_SHIFT);
	else
		avg += __aqm_mul(queue - avg, params->weight, AQM_REAL_SHIFT);
	vars->avg = avg;
}

/* p_b, Q32. */
static inline u64 red_slope(const struct red_params *params, u64 avg)
{
	unsigned int shift = RED_AVG_SHIFT + RED_SLOPE_SHIFT - AQM_PROB_SHIFT;

	if (avg < params->min)
		return 0;
	if (avg < params->max)	/* the product is below max_p */
		return __aqm_mul(avg - params->min, params->slope, shift);
	if (!params->gentle_slope)
		return AQM_PROB_ONE;
	return min(params->probability + aqm_mul(avg - params->max,
						 params->gentle_slope, shift),
		   AQM_PROB_ONE);
}

/**
 * red_odds() - of hitting the packet that arrives
 * @params: parameters
 * @vars: state, whose average includes this arrival; counts it
 *
 * Return: the probability after the count. A packet at which the average has
 * just come up to min_th has none.
 */
static inline struct aqm_odds red_odds(const struct red_params *params,
				       struct red_vars *vars)
{
	const struct aqm_odds none = { 0, AQM_PROB_ONE };
	const struct aqm_odds certain = { AQM_PROB_ONE, AQM_PROB_ONE };
	u64 p, spent;

	if (vars->avg < params->min) {
		vars->above = false;
		return none;
	}
	p = red_slope(params, vars->avg);
	if (p == AQM_PROB_ONE)
		return certain;
	if (!vars->above) {
		vars->above = true;
		vars->count = 1;
		return none;
	}
	spent = ++vars->count * p;
	if (params->wait) {
		if (spent < AQM_PROB_ONE)
			return none;
		spent -= AQM_PROB_ONE;
	}
	if (spent >= AQM_PROB_ONE)
		return certain;
	return (struct aqm_odds){ p, AQM_PROB_ONE - spent };
}

/* The packet that arrived was hit. */
static inline void red_hit(struct red_vars *vars)
{
	vars->count = 0;
}

/* The packet that arrived was queued. */
static inline void red_arrive(struct red_vars *vars)
{
	vars->idle_from = U64_MAX;
}

/**
 * red_depart() - a packet left the queue
 * @vars: state
 * @backlog: what is still queued, units
 * @sent: when the link will have sent the packet, ns
 */
static inline void red_depart(struct red_vars *vars, u64 backlog, u64 sent)
{
	if (!backlog)
		vars->idle_from = sent;
}

#endif
