/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PI, the proportional-integral controller: the control law.
 *
 * C. V. Hollot, V. Misra, D. Towsley, W. Gong: "On Designing Improved
 * Controllers for AQM Routers Supporting TCP Flows", INFOCOM 2001; as LRED's
 * paper has it in eq. (32):
 *
 *	p(k) = p(k-1) + a (q(k) - q0) - b (q(k-1) - q0)
 *
 * at sampling instants, f a second, p being kept within [0, 1].
 *
 * Time is lazy: pi_advance() makes up for all the instants since the last event
 * at once. Between two events only the first of them differs from the others,
 * and those others all move p in one direction, so the result equals that of
 * one step an instant to the last bit.
 *
 * A unit is what the queue is counted in: a packet, or a byte if the queue
 * counts bytes; parameters are given in packets and converted once.
 */
#ifndef AQM_PI_H
#define AQM_PI_H

#include "fixed.h"

/* The probability, Q48: a - b is 6e-8 by default, a step of one packet. */
#define PI_PROB_SHIFT	48
/* Gains, probability a unit: Q60, below 4. */
#define PI_GAIN_SHIFT	60

/**
 * struct pi_config - PI's parameters as the user states them
 * @target: q0, packets
 * @interval: time between two sampling instants, 1 / f, ns, at least 1
 * @a: gain of the present queue, Q48, below 4
 * @b: gain of the queue before, Q48, below @a
 */
struct pi_config {
	u32 target;
	u64 interval;
	u64 a;
	u64 b;
};

/**
 * struct pi_params - PI's parameters as the law uses them
 * @target: q0, units
 * @interval: time between two sampling instants, ns
 * @a: gain of the present queue, Q60, a unit
 * @b: gain of the queue before, Q60, a unit
 */
struct pi_params {
	u64 target;
	u64 interval;
	u64 a;
	u64 b;
};

/**
 * struct pi_vars - PI's state
 * @probability: p(k), Q48
 * @next: the next sampling instant, ns
 * @backlog: q(k), the queue at the last sampling instant, units
 */
struct pi_vars {
	u64 probability;
	u64 next;
	u64 backlog;
};

/**
 * pi_params_init() - convert the parameters
 * @params: out
 * @config: valid parameters
 * @unit: units in a packet: 1, or a packet's bytes
 */
static inline void pi_params_init(struct pi_params *params,
				  const struct pi_config *config, u32 unit)
{
	params->target = (u64)config->target * unit;
	params->interval = config->interval;
	params->a = div_u64(config->a << (PI_GAIN_SHIFT - AQM_REAL_SHIFT),
			    unit);
	params->b = div_u64(config->b << (PI_GAIN_SHIFT - AQM_REAL_SHIFT),
			    unit);
}

/**
 * pi_restart() - sampling starts anew, the probability stays
 * @params: parameters, which may have changed
 * @vars: state
 * @now: time, ns
 * @backlog: the queue, units
 */
static inline void pi_restart(const struct pi_params *params,
			      struct pi_vars *vars, u64 now, u64 backlog)
{
	vars->next = now + params->interval;
	vars->backlog = backlog;
}

/*
 * p plus @count times a step to @backlog from @before, kept within [0, 1]. The
 * step is (a - b) (q(k) - q0) + b (q(k) - q(k-1)), the same as eq. (32) has it,
 * without two large terms that cancel but for their last digits.
 */
static inline u64 pi_stepped(const struct pi_params *params, u64 probability,
			     u64 count, u64 backlog, u64 before)
{
	unsigned int shift = PI_GAIN_SHIFT - PI_PROB_SHIFT;
	s64 step = aqm_sadd(aqm_smul((s64)(backlog - params->target),
				     params->a - params->b, shift),
			    aqm_smul((s64)(backlog - before), params->b,
				     shift));
	s64 p = aqm_sadd(probability, aqm_smul(step, count, 0));

	return min((u64)max(p, 0LL), 1ULL << PI_PROB_SHIFT);
}

/**
 * pi_advance() - account for the sampling instants up to now
 * @params: parameters
 * @vars: state
 * @now: time, ns, not before that of any earlier call
 * @backlog: the queue since the last arrival or departure, units
 *
 * To be called before each arrival and departure.
 */
static inline void pi_advance(const struct pi_params *params,
			      struct pi_vars *vars, u64 now, u64 backlog)
{
	u64 count, p;

	if (now < vars->next)
		return;

	count = div64_u64(now - vars->next, params->interval) + 1;
	p = pi_stepped(params, vars->probability, 1, backlog, vars->backlog);
	vars->probability = pi_stepped(params, p, count - 1, backlog, backlog);
	vars->backlog = backlog;
	vars->next += count * params->interval;
}

/* p, Q32. */
static inline u64 pi_probability(const struct pi_vars *vars)
{
	return vars->probability >> (PI_PROB_SHIFT - AQM_PROB_SHIFT);
}

#endif
