/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FIFA, round-trip time awareness for any AQM: the control law.
 *
 * C. Lee, M. Claypool, R. Kinicki: "Enhancing Active Queue Management with
 * Round-trip Time Awareness", WPI-CS-TR-03-28, 2003. Equation numbers are that
 * paper's.
 *
 * Packets carry a label, the lowest round-trip time R that their flow has seen.
 * The labels are averaged (R_average), the average is steadied (R_formula), and
 * the probability p_base of another law is scaled for each packet:
 *
 *	p = p_base (R_formula / R)^e					(4)
 *
 * with one exponent, alpha, for robust flows (R < R_formula) and another, beta,
 * for fragile ones.
 *
 * Times are in the label's unit of 0.1 ms.
 */
#ifndef AQM_FIFA_H
#define AQM_FIFA_H

#include "fixed.h"

/* R_average and R_formula: Q32, 16 bits before the point. */
#define FIFA_RTT_SHIFT		32
/* Within this of R_formula, R_average has not moved: 12.5 ms (section 4.2). */
#define FIFA_RANGE		(125ULL << FIFA_RTT_SHIFT)
/* R_average has moved when it was out of range for more than this, ns. */
#define FIFA_HOLD		100000000ULL
/* Labels whose factor is kept; more flows only cost time. */
#define FIFA_KEPT		256

/**
 * struct fifa_params - FIFA's parameters
 * @robust: alpha, for packets to be dropped and for packets to be marked, Q48,
 *	at most 4
 * @fragile: beta, likewise
 * @rtt_min: labels below count as this, 0.1 ms, at least 1
 * @rtt_max: labels above count as this, 0.1 ms
 * @rtt_weight: w_RTT, Q48, (0, 1]
 */
struct fifa_params {
	u64 robust[2];
	u64 fragile[2];
	u16 rtt_min;
	u16 rtt_max;
	u64 rtt_weight;
};

/**
 * struct fifa_factor - (R_formula / R)^e for one R
 * @label: R, 0.1 ms; 0 if the entry is empty
 * @factor: for packets to be dropped and for packets to be marked, Q32
 */
struct fifa_factor {
	u16 label;
	u64 factor[2];
};

/**
 * struct fifa_vars - FIFA's state
 * @average: R_average, Q32
 * @formula: R_formula, Q32; 0 before the first label
 * @since: when R_average was last in range, or crossed over, ns
 * @side: of R_formula's range that R_average is on: -1, 0 (within) or 1
 * @kept: factors for the present R_formula
 */
struct fifa_vars {
	u64 average;
	u64 formula;
	u64 since;
	int side;
	struct fifa_factor kept[FIFA_KEPT];
};

/* R_formula or a parameter changed: no factor holds any more. */
static inline void fifa_forget(struct fifa_vars *vars)
{
	unsigned int i;

	for (i = 0; i < FIFA_KEPT; i++)
		vars->kept[i].label = 0;
}

/* A label as it counts: claims are clamped. */
static inline u16 fifa_clamp(const struct fifa_params *params, u16 label)
{
	return min(max(label, params->rtt_min), params->rtt_max);
}

/**
 * fifa_update() - a labelled packet arrives: Fig. 5
 * @params: parameters
 * @vars: state
 * @now: time, ns
 * @label: R, clamped, 0.1 ms
 *
 * How far R_formula moves towards R_average the paper does not say: half way.
 */
static inline void fifa_update(const struct fifa_params *params,
			       struct fifa_vars *vars, u64 now, u16 label)
{
	u64 rtt = (u64)label << FIFA_RTT_SHIFT;
	int side = 0;

	if (!vars->formula) {
		vars->average = rtt;
		vars->formula = rtt;
		vars->since = now;
		return;
	}

	vars->average += aqm_smul((s64)(rtt - vars->average),
				  params->rtt_weight, AQM_REAL_SHIFT);
	if (vars->average >= vars->formula + FIFA_RANGE)
		side = 1;
	else if (vars->average + FIFA_RANGE <= vars->formula)
		side = -1;

	if (!side || side == -vars->side) {
		vars->since = now;
	} else if (now - vars->since > FIFA_HOLD) {
		vars->since = now;
		vars->formula = (vars->formula + vars->average) / 2;
		fifa_forget(vars);
	}
	vars->side = side;
}

/*
 * (R_formula / R)^e, Q32: 2^(e log2(R_formula / R)). Within 2^-32 and 5e-12 of
 * the true value for every exponent up to 4; U64_MAX from 2^32 up.
 */
static inline u64 fifa_power(u64 formula, u16 label, u64 exponent)
{
	u64 log_formula = aqm_log2(formula <<
				   (AQM_REAL_SHIFT - FIFA_RTT_SHIFT));
	u64 log_label = aqm_log2((u64)label << AQM_REAL_SHIFT);

	return aqm_exp2(aqm_smul((s64)(log_formula - log_label), exponent,
				 2 * AQM_REAL_SHIFT - 40));
}

/* Is a flow with this label robust? */
static inline bool fifa_robust(const struct fifa_vars *vars, u16 label)
{
	return (u64)label << FIFA_RTT_SHIFT < vars->formula;
}

/* The factors for a label, for as long as R_formula and the label stay. */
static noinline void fifa_keep(const struct fifa_params *params,
			       const struct fifa_vars *vars, u16 label,
			       struct fifa_factor *kept)
{
	const u64 *exponents = fifa_robust(vars, label) ? params->robust :
							  params->fragile;
	int i;

	for (i = 0; i < 2; i++)
		kept->factor[i] = fifa_power(vars->formula, label,
					     exponents[i]);
	kept->label = label;
}

/**
 * fifa_scale() - eq. (4)
 * @params: parameters
 * @vars: state, which knows the label
 * @probability: p_base, Q32
 * @label: R, clamped, 0.1 ms
 * @mark: the packet would be marked, not dropped
 *
 * Return: p, Q32, at most 1.
 */
static inline u64 fifa_scale(const struct fifa_params *params,
			     struct fifa_vars *vars, u64 probability, u16 label,
			     bool mark)
{
	struct fifa_factor *kept = &vars->kept[label % FIFA_KEPT];

	if (unlikely(kept->label != label))
		fifa_keep(params, vars, label, kept);
	return min(aqm_mul(probability, kept->factor[mark], AQM_PROB_SHIFT),
		   AQM_PROB_ONE);
}

#endif
