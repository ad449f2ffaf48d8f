/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CSFQ, Core-Stateless Fair Queueing: the control law.
 *
 * I. Stoica, S. Shenker, H. Zhang: "Core-Stateless Fair Queueing: Achieving
 * Approximately Fair Bandwidth Allocations in High Speed Networks", ACM SIGCOMM
 * 1998. Equation and figure numbers are that paper's.
 *
 * The edge estimates the rate of a packet's flow and puts it into the packet, as
 * its label. With l the packet's length and T the time since the flow's last one,
 *
 *	r = (1 - e^(-T/K)) l / T + e^(-T/K) r_old			(3)
 *
 * The core drops the packet with the probability
 *
 *	max(0, 1 - alpha / label)					(2)
 *
 * and labels anew, with alpha, what it does not drop of such flows. The fair rate
 * alpha follows from A and F, the rates of what comes and what is accepted, which
 * are estimated as in (3) with K_alpha, as in Figure 3: while the link is
 * congested, which is where A reaches its capacity C,
 *
 *	alpha <- alpha C / F						(5)
 *
 * each K_c; else alpha is the largest label that came within K_c.
 *
 * Rates are bytes/ns in Q48, below 2^15; lengths are bytes, below 2^20.
 */
#ifndef AQM_CSFQ_H
#define AQM_CSFQ_H

#include "fixed.h"

/* Times that are longer than so many K are no different. */
#define CSFQ_SPAN_MAX	BIT_ULL(13)

/**
 * struct csfq_config - CSFQ's parameters
 * @k: K, of a flow's rate, ns, at least 2^20
 * @k_alpha: K_alpha, of the link's rates, ns, at least 2^20
 * @k_c: K_c, over which a link is congested or not, ns
 */
struct csfq_config {
	u64 k;
	u64 k_alpha;
	u64 k_c;
};

/**
 * struct csfq_rate - a rate that is estimated
 * @rate: bytes/ns, Q48
 * @last: when the last packet came, ns
 */
struct csfq_rate {
	u64 rate;
	u64 last;
};

/**
 * struct csfq_vars - CSFQ's state
 * @arrived: A
 * @accepted: F
 * @fair: alpha, bytes/ns in Q48; 0 while it is unknown
 * @floor: alpha does not go below before it is set anew
 * @highest: the largest label since it was set
 * @since: when it was set, or the link became congested or not, ns
 * @congested: is the link?
 */
struct csfq_vars {
	struct csfq_rate arrived;
	struct csfq_rate accepted;
	u64 fair;
	u64 floor;
	u64 highest;
	u64 since;
	bool congested;
};

/**
 * csfq_init() - nothing is known
 * @vars: out
 * @now: time, ns
 */
static inline void csfq_init(struct csfq_vars *vars, u64 now)
{
	*vars = (struct csfq_vars){
		.arrived.last = now,
		.accepted.last = now,
		.since = now,
	};
}

/* e^-x for x in Q48, up to 2^13: Q48, within 2^-47. */
static inline u64 csfq_decay(u64 x)
{
	const u64 log2_e = 1586259972792ULL;	/* Q40 */

	/* 2^(16 - x log2 e), Q32 */
	return aqm_exp2((16LL << 40) -
			(s64)aqm_mul(x, log2_e, AQM_REAL_SHIFT));
}

/* (1 - e^-x) / x for x in Q48, up to 2^13, @decay being e^-x: Q48. */
static inline u64 csfq_gain(u64 x, u64 decay)
{
	/*
	 * Where the difference would have few digits, 1 - x/2 (1 - x/3 (1 - x/4
	 * (1 - x/5))), which is high by less than x^5 / 720.
	 */
	if (x < AQM_REAL_ONE / 64) {
		u64 sum = AQM_REAL_ONE;
		u32 n;

		for (n = 5; n > 1; n--)
			sum = AQM_REAL_ONE -
			      div_u64(__aqm_mul(x, sum, AQM_REAL_SHIFT), n);
		return sum;
	}
	return mul_u64_u64_div_u64(AQM_REAL_ONE - decay, AQM_REAL_ONE, x);
}

/**
 * csfq_estimate() - eq. (3)
 * @rate: the rate; out: with this packet
 * @k: over which it is averaged, ns
 * @now: time, ns
 * @bytes: the packet's length
 *
 * As l / K ((1 - e^-x) / x), x being T / K: T may be 0.
 */
static inline void csfq_estimate(struct csfq_rate *rate, u64 k, u64 now,
				 u32 bytes)
{
	u64 elapsed = now - rate->last;
	u64 x, decay, gain, fresh;

	if (elapsed < CSFQ_SPAN_MAX * k)
		x = mul_u64_u64_div_u64(elapsed, AQM_REAL_ONE, k);
	else
		x = CSFQ_SPAN_MAX << AQM_REAL_SHIFT;
	decay = csfq_decay(x);
	gain = csfq_gain(x, decay);
	/* e^-x once more, with all digits where x is small */
	if (x < AQM_REAL_ONE / 64)
		decay = AQM_REAL_ONE - __aqm_mul(x, gain, AQM_REAL_SHIFT);
	fresh = mul_u64_u64_div_u64(bytes, AQM_REAL_ONE, k);
	rate->rate = aqm_sadd(aqm_mul(rate->rate, decay, AQM_REAL_SHIFT),
			      __aqm_mul(fresh, gain, AQM_REAL_SHIFT));
	rate->last = now;
}

/* Eq. (2) for a packet with this label: Q32. An unknown alpha drops nothing. */
static inline u64 csfq_probability(const struct csfq_vars *vars, u64 label)
{
	if (!vars->fair || label <= vars->fair)
		return 0;
	return mul_u64_u64_div_u64(label - vars->fair, AQM_PROB_ONE, label);
}

/* alpha is set: it may fall by a quarter until it is set again. */
static inline void csfq_set_fair(struct csfq_vars *vars, u64 fair, u64 now)
{
	vars->fair = fair;
	vars->floor = vars->fair / 4 * 3;
	vars->highest = 0;
	vars->since = now;
}

/**
 * csfq_arrive() - a packet came: estimate alpha, Figure 3
 * @config: parameters
 * @vars: state
 * @now: time, ns
 * @bytes: the packet's length
 * @label: its label as it came; 0 if it has none
 * @accepted: it was not dropped
 * @capacity: C
 * @filled: is the queue at the threshold from which the link may be congested?
 */
static inline void csfq_arrive(const struct csfq_config *config,
			       struct csfq_vars *vars, u64 now, u32 bytes,
			       u64 label, bool accepted, u64 capacity,
			       bool filled)
{
	csfq_estimate(&vars->arrived, config->k_alpha, now, bytes);
	if (accepted)
		csfq_estimate(&vars->accepted, config->k_alpha, now, bytes);

	if (vars->arrived.rate >= capacity && (vars->congested || filled)) {
		u64 served = vars->accepted.rate;

		if (!vars->congested) {
			vars->congested = true;
			csfq_set_fair(vars, vars->fair ?:
				      max(vars->highest, label) ?: capacity,
				      now);
		} else if (now > vars->since + config->k_c) {
			/* eq. (5), up to C: it is less where F exceeds alpha */
			u64 fair = served > vars->fair ?
				mul_u64_u64_div_u64(vars->fair, capacity,
						    served) : capacity;

			csfq_set_fair(vars, max(fair, vars->floor), now);
		}
	} else if (vars->congested) {
		vars->congested = false;
		vars->highest = 0;
		vars->since = now;
	} else if (now < vars->since + config->k_c) {
		vars->highest = max(vars->highest, label);
	} else {
		csfq_set_fair(vars, vars->highest, now);
	}
}

/* The queue overflowed: alpha falls by one per cent. */
static inline void csfq_overflow(struct csfq_vars *vars)
{
	vars->fair = max(vars->fair - div_u64(vars->fair, 100), vars->floor);
}

/*
 * A label in a packet: 5 bits of exponent e and 11 of mantissa m, for a rate of
 * (2^11 + m) 2^(e - 36) bytes/ns: 30 bytes/s to a Tbit/s, within 2^-12. 0 is no
 * label.
 */
#define CSFQ_MANTISSA	11
#define CSFQ_EXPONENT	(AQM_REAL_SHIFT - 36)	/* of Q48 */

static inline u64 csfq_rate_of(u16 label)
{
	u64 mantissa = label & ((1 << CSFQ_MANTISSA) - 1);

	if (!label)
		return 0;
	return (mantissa | 1 << CSFQ_MANTISSA) <<
	       ((label >> CSFQ_MANTISSA) + CSFQ_EXPONENT);
}

static inline u16 csfq_label_of(u64 rate)
{
	int exponent = max(fls64(rate) - CSFQ_MANTISSA - 1, CSFQ_EXPONENT);
	u64 mantissa = (rate + (BIT_ULL(exponent) >> 1)) >> exponent;
	u64 label;

	/* a mantissa rounded up to 2^12 moves on to the next exponent */
	label = ((u64)(exponent - CSFQ_EXPONENT) << CSFQ_MANTISSA) +
		max(mantissa, 1ULL << CSFQ_MANTISSA) - (1 << CSFQ_MANTISSA);
	return clamp_t(u64, label, 1, 65535);
}

#endif
