/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * LRED, Loss Ratio-based RED: the control law.
 *
 * C. Wang, J. Liu, B. Li, K. Sohraby, Y. T. Hou: "LRED: A Robust and Responsive
 * AQM Algorithm Using Packet Loss Ratio Measurement", IEEE Transactions on
 * Parallel and Distributed Systems 18(1), 2007. Equation numbers are that
 * paper's.
 *
 * At the end of each period t_m the share of the packets that were lost is
 * taken over the last M periods and averaged,
 *
 *	l(k) = sum of N_d / sum of N_a					(1)
 *	lbar(k) = w_m lbar(k-1) + (1 - w_m) l(k)			(2)
 *
 * and a packet is dropped with a probability that goes with it and with how far
 * the queue q is from where it should be, at each arrival:
 *
 *	p = lbar + beta sqrt(lbar) (q - q0)				(3)
 *
 * Time is lazy: lred_advance() ends all the periods since the last event.
 *
 * A unit is what the queue is counted in: a packet, or a byte if the queue
 * counts bytes; parameters are given in packets and converted once.
 */
#ifndef AQM_LRED_H
#define AQM_LRED_H

#include "fixed.h"

#define LRED_PERIODS_MAX	64
/* The loss ratio, Q48, steps of 3.6e-15. */
#define LRED_RATIO_SHIFT	48
#define LRED_RATIO_ONE		BIT_ULL(LRED_RATIO_SHIFT)

/**
 * struct lred_config - LRED's parameters as the user states them
 * @target: q0, packets
 * @periods: M, periods that a loss ratio is over, 1 to LRED_PERIODS_MAX
 * @period: t_m, ns, at least 1
 * @beta: gain, Q48
 * @weight: w_m, of the old average, Q48, below 1
 */
struct lred_config {
	u32 target;
	u32 periods;
	u64 period;
	u64 beta;
	u64 weight;
};

/**
 * struct lred_params - LRED's parameters as the law uses them
 * @target: q0, units
 * @periods: M
 * @period: t_m, ns
 * @beta: gain, Q48, a unit of the queue
 * @weight: w_m, Q48
 */
struct lred_params {
	u64 target;
	u32 periods;
	u64 period;
	u64 beta;
	u64 weight;
};

/**
 * struct lred_count - packets of a period, or of the last M
 * @arrived: N_a
 * @lost: N_d: dropped, for whatever reason, or marked
 */
struct lred_count {
	u64 arrived;
	u64 lost;
};

/**
 * struct lred_vars - LRED's state
 * @ratio: lbar, Q48
 * @gain: beta sqrt(lbar), Q48, a unit
 * @end: when the present period ends, ns
 * @present: packets of the present period
 * @sum: packets of the last M periods
 * @index: which of @past is the oldest
 * @past: packets of each of the last M periods
 */
struct lred_vars {
	u64 ratio;
	u64 gain;
	u64 end;
	struct lred_count present;
	struct lred_count sum;
	u32 index;
	struct lred_count past[LRED_PERIODS_MAX];
};

/**
 * lred_params_init() - convert the parameters
 * @params: out
 * @config: valid parameters
 * @unit: units in a packet: 1, or a packet's bytes
 */
static inline void lred_params_init(struct lred_params *params,
				    const struct lred_config *config, u32 unit)
{
	params->target = (u64)config->target * unit;
	params->periods = config->periods;
	params->period = config->period;
	params->beta = div_u64(config->beta, unit);
	params->weight = config->weight;
}

/* sqrt() is rounded down, by less than 2^-31: 1.5e-5 of the gain at 1e-9. */
static inline void lred_set_ratio(const struct lred_params *params,
				  struct lred_vars *vars, u64 ratio)
{
	u64 root = int_sqrt64(ratio << (62 - LRED_RATIO_SHIFT)); /* Q31 */

	vars->ratio = ratio;
	vars->gain = aqm_mul(params->beta, root, 31);
}

/**
 * lred_restart() - measurement starts anew, the average stays
 * @params: parameters, which may have changed
 * @vars: state
 * @now: time, ns
 */
static inline void lred_restart(const struct lred_params *params,
				struct lred_vars *vars, u64 now)
{
	u64 ratio = vars->ratio;

	*vars = (struct lred_vars){ .end = now + params->period };
	lred_set_ratio(params, vars, ratio);
}

/* l(k), eq. (1), Q48, rounded up: a loss, however rare, is none of zero. */
static inline u64 lred_measured(const struct lred_count *sum)
{
	u64 arrived = sum->arrived, lost = sum->lost;
	int excess = fls64(lost) + LRED_RATIO_SHIFT - 63;

	if (!lost)
		return 0;
	/* Counts so large that the shift would overflow lose their last bits. */
	if (excess > 0) {
		arrived >>= excess;
		lost >>= excess;
	}
	return min(div64_u64(lost << LRED_RATIO_SHIFT, max(arrived, 1ULL)) + 1,
		   LRED_RATIO_ONE);
}

/**
 * lred_advance() - end the periods that are over
 * @params: parameters
 * @vars: state
 * @now: time, ns, not before that of any earlier call
 *
 * To be called before each arrival. After a long silence the average has come
 * down to 0 within log(2^-48) / log(w_m) periods, and the rest are skipped.
 */
static inline void lred_advance(const struct lred_params *params,
				struct lred_vars *vars, u64 now)
{
	u64 ratio = vars->ratio;
	u64 count;

	if (now < vars->end)
		return;

	count = div64_u64(now - vars->end, params->period) + 1;
	vars->end += count * params->period;
	for (; count; count--) {
		struct lred_count *oldest = &vars->past[vars->index];

		vars->sum.arrived += vars->present.arrived - oldest->arrived;
		vars->sum.lost += vars->present.lost - oldest->lost;
		*oldest = vars->present;
		vars->present = (struct lred_count){};
		if (++vars->index >= params->periods)
			vars->index = 0;

		/*
		 * eq. (2). The old value is rounded down and the new one up, so
		 * that neither 0 nor anything else is held for ever.
		 */
		ratio = mul_u64_u64_shr(ratio, params->weight, AQM_REAL_SHIFT) +
			mul_u64_u64_shr(lred_measured(&vars->sum),
					AQM_REAL_ONE - params->weight,
					AQM_REAL_SHIFT) + !!vars->sum.lost;
		if (!ratio && !vars->sum.arrived)
			break;
	}
	lred_set_ratio(params, vars, min(ratio, LRED_RATIO_ONE));
}

/**
 * lred_probability() - eq. (3)
 * @params: parameters
 * @vars: state, advanced to the present
 * @backlog: the queue, units
 *
 * Return: p, Q32.
 */
static inline u64 lred_probability(const struct lred_params *params,
				   const struct lred_vars *vars, u64 backlog)
{
	s64 p = aqm_sadd(vars->ratio,
			 aqm_smul((s64)(backlog - params->target), vars->gain,
				  0));

	p = max(p, 0LL) >> (LRED_RATIO_SHIFT - AQM_PROB_SHIFT);
	return min_t(u64, p, AQM_PROB_ONE);
}

/**
 * lred_arrive() - count packets that came
 * @vars: state, advanced to the present
 * @packets: how many
 * @lost: they were dropped or marked
 */
static inline void lred_arrive(struct lred_vars *vars, u32 packets, bool lost)
{
	vars->present.arrived += packets;
	if (lost)
		vars->present.lost += packets;
}

#endif
