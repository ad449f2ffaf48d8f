/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PERT, Probabilistic Early Response TCP: the control law of a sender.
 *
 * S. Bhandarkar, A. L. N. Reddy, Y. Zhang, D. Loguinov: "Emulating AQM from End
 * Hosts", SIGCOMM 2007. Equation numbers are the paper's.
 *
 * Each round-trip time measured is averaged,
 *
 *	S = weight S + (1 - weight) rtt					(5)
 *
 * and what it exceeds P, the propagation delay, by is taken for the queues on
 * the way: Tq = S - P. With a probability read off RED's gentle curve,
 *
 *	p = p_max (Tq - T_min) / (T_max - T_min)			(4)
 *
 * up to T_max, rising from p_max to 1 at 2 T_max (Fig. 5), an ACK makes the
 * sender give up a share of its window, once a round trip at most. pert_pi takes
 * p from a PI controller of Tq instead, eq. (19): see pi.h.
 *
 * P is the least round-trip time seen, as in the paper, but follows a path that
 * has become longer: see pert_least_update().
 */
#ifndef AQM_PERT_H
#define AQM_PERT_H

#include "pi.h"

#define PERT_US_PER_S	1000000U
#define PERT_NS_PER_US	1000U
#define PERT_NS_PER_S	1000000000U

/* The average, and delays: Q24 us. */
#define PERT_DELAY_SHIFT	24
/* us that a sample may exceed P by: a host was suspended, not a queue so long. */
#define PERT_EXCESS_MAX	(4 * PERT_US_PER_S)
/* Without a sample for so long, us, or 4 S, the average is of the past. */
#define PERT_STALE	PERT_US_PER_S
/* us that PI makes up for at most when no ACK came. */
#define PERT_GAP_MAX	PERT_US_PER_S
/* us of relief, and pauses are halved again; how often they are doubled at most. */
#define PERT_RELIEF	PERT_US_PER_S
#define PERT_VAIN_MAX	10
/* Delayed ACKs in a row that are told from others by those before them. */
#define PERT_DELAYED_MAX	5

/**
 * struct pert_params - the law's parameters
 * @min: T_min, queueing delay without response, us
 * @max: T_max, us, above @min
 * @probability: p_max, the probability at @max, Q32
 * @weight: of a new sample, 1 - alpha of eq. (5), Q32
 * @time_constant: of the average, us, instead of @weight; 0 for none
 * @window: how long P must have been out of reach to be given up, us
 */
struct pert_params {
	u32 min;
	u32 max;
	u64 probability;
	u64 weight;
	u32 time_constant;
	u32 window;
};

/**
 * struct pert_least - the least of the samples of a way
 * @least: the least of all, us; such numbers may wrap
 * @recent: the least since @since, us
 * @since: when a sample was last within reach of @least, us
 */
struct pert_least {
	u32 least;
	u32 recent;
	u64 since;
};

/**
 * struct pert_vars - what a sender has measured
 * @average: S, Q24 us; 0 before the first sample
 * @last: when the last sample came, us
 * @base: P, the least round-trip time
 * @forward: the least of the way to the receiver, by the receiver's clock
 * @timed: @forward has been measured
 * @delaying: ACKs of several segments seen, less those that were delayed
 */
struct pert_vars {
	u64 average;
	u64 last;
	struct pert_least base;
	struct pert_least forward;
	bool timed;
	u8 delaying;
};

/* The first sample of a way. */
static inline void pert_least_init(struct pert_least *base, u64 now, u32 sample)
{
	*base = (struct pert_least){ sample, sample, now };
}

/**
 * pert_least_update() - the least of the samples, on a path that may change
 * @base: what is updated
 * @params: parameters
 * @now: time, us
 * @sample: us; of a clock that may wrap
 *
 * A minimum over a sliding window would take a queue that never drains for a
 * longer path, and the queue would then grow by itself in each window, as all
 * senders add their thresholds to what stands. But at 2 T_max and above, each
 * round trip is answered: if not a single sample came as near as that to the
 * least within a window, it was no queue of ours, and the least of the window
 * takes its place.
 */
static inline void pert_least_update(struct pert_least *base,
				     const struct pert_params *params, u64 now,
				     u32 sample)
{
	s32 excess = sample - base->least;

	if (excess < 0)
		base->least = sample;
	if (excess < (s64)2 * params->max) {
		base->recent = sample;
		base->since = now;
		return;
	}
	if ((s32)(sample - base->recent) < 0 ||
	    (s32)(base->recent - base->least) < (s64)2 * params->max)
		base->recent = sample;
	if (now - base->since >= params->window) {
		base->least = base->recent;
		base->since = now;
	}
}

/**
 * pert_is_delayed() - tell whether the receiver kept an ACK back
 * @vars: state
 * @acked: segments that the ACK, which came in order, is for
 *
 * As tcp_cdg has it from D. A. Hayes: a receiver that has been seen to answer
 * several segments by one ACK answers a single one late, by up to 40 ms.
 *
 * Return: whether it did.
 */
static inline bool pert_is_delayed(struct pert_vars *vars, u32 acked)
{
	if (acked == 1 && vars->delaying) {
		vars->delaying--;
		return true;
	}
	if (acked > 1 && vars->delaying < PERT_DELAYED_MAX)
		vars->delaying++;
	return false;
}

/* Tq = S - P, Q24 us. */
static inline u64 pert_delay(const struct pert_vars *vars)
{
	u64 base = (u64)vars->base.least << PERT_DELAY_SHIFT;

	return vars->average > base ? vars->average - base : 0;
}

/* The weight of a sample that came @gap us after the one before, Q32. */
static inline u64 pert_weight(const struct pert_params *params, u64 gap)
{
	if (!params->time_constant)
		return params->weight;
	return div64_u64(gap << AQM_PROB_SHIFT, gap + params->time_constant);
}

/**
 * pert_sample() - take a round-trip time into account
 * @params: parameters
 * @vars: state
 * @now: time, us, not before that of any earlier call
 * @rtt: round-trip time of data, us
 * @clock: the receiver's clock when it sent the ACK, us; it may wrap
 * @one_way: count the way to the receiver only, by @clock
 *
 * With @one_way the sample is P plus what the way there exceeds its own least
 * by. That is never more than what the round trip exceeds P by, so a clock that
 * is set, or drifts away, does no more harm than the queue of the way back.
 */
static inline void pert_sample(const struct pert_params *params,
			       struct pert_vars *vars, u64 now, u32 rtt,
			       u32 clock, bool one_way)
{
	u32 way = clock - (u32)(now - rtt);	/* plus what the clocks differ by */
	u64 gap = now - vars->last;
	u64 average = vars->average;
	u32 sample;
	bool stale;

	rtt = max(rtt, 1U);
	stale = gap > max((u64)PERT_STALE, average >> (PERT_DELAY_SHIFT - 2));
	if (!average)
		pert_least_init(&vars->base, now, rtt);
	else if (stale)
		vars->base.since = now;
	pert_least_update(&vars->base, params, now, rtt);
	sample = min(rtt - vars->base.least, PERT_EXCESS_MAX);

	if (one_way) {
		if (!vars->timed)
			pert_least_init(&vars->forward, now, way);
		else if (stale)
			vars->forward.since = now;
		pert_least_update(&vars->forward, params, now, way);
		sample = min(sample, way - vars->forward.least);
	}
	vars->timed = one_way;
	sample += vars->base.least;

	vars->last = now;
	if (!average || stale)
		vars->average = (u64)sample << PERT_DELAY_SHIFT;
	else
		vars->average += aqm_smul((s64)(((u64)sample << PERT_DELAY_SHIFT)
						- average),
					  pert_weight(params, gap),
					  AQM_PROB_SHIFT);
}

/**
 * pert_probability() - of responding to an ACK, by RED's curve
 * @params: parameters
 * @delay: Tq, Q24 us
 *
 * Return: p, eq. (4) and Fig. 5, Q32.
 */
static inline u64 pert_probability(const struct pert_params *params, u64 delay)
{
	u64 min = (u64)params->min << PERT_DELAY_SHIFT;
	u64 max = (u64)params->max << PERT_DELAY_SHIFT;

	if (delay <= min)
		return 0;
	if (delay < max)
		return mul_u64_u64_div_u64(params->probability, delay - min,
					   max - min);
	if (delay < 2 * max)
		return params->probability +
		       mul_u64_u64_div_u64(AQM_PROB_ONE - params->probability,
					   delay - max, max);
	return AQM_PROB_ONE;
}

/**
 * struct pert_pi_config - pert_pi's parameters as the user states them
 * @target: T*, the queueing delay aimed at, us
 * @proportional: K / m, 10^-6 a second
 * @integral: K, 10^-6 a second squared
 * @sampling: 1 / delta, Hz
 */
struct pert_pi_config {
	u32 target;
	u32 proportional;
	u32 integral;
	u32 sampling;
};

/**
 * pert_pi_params_init() - the parameters of pi.h, whose unit is 1 us here
 * @params: out
 * @config: valid parameters: K at most 2 K / (m delta), so that beta >= 0
 *
 * gamma and beta = K / m +- K delta / 2, eq. (18); (19) prints them the other
 * way round.
 */
static inline void pert_pi_params_init(struct pi_params *params,
				       const struct pert_pi_config *config)
{
	u64 twice = 2 * (u64)config->sampling;
	u64 unit = twice * PERT_US_PER_S * PERT_US_PER_S;
	u64 proportional = twice * config->proportional;

	params->target = config->target;
	params->interval = PERT_NS_PER_S / config->sampling;
	params->a = mul_u64_u64_div_u64(proportional + config->integral,
					BIT_ULL(PI_GAIN_SHIFT), unit);
	params->b = mul_u64_u64_div_u64(proportional - config->integral,
					BIT_ULL(PI_GAIN_SHIFT), unit);
}

/* It is time for a step of PI's, or for its first: see pert_pi_advance(). */
static inline bool pert_pi_due(const struct pi_vars *vars, u64 now)
{
	return now * PERT_NS_PER_US >= vars->next;
}

/**
 * pert_pi_advance() - PI's steps up to an ACK
 * @params: parameters
 * @vars: state; zeroed before the first ACK
 * @now: time, us
 * @delay: Tq, Q24 us
 */
static inline void pert_pi_advance(const struct pi_params *params,
				   struct pi_vars *vars, u64 now, u64 delay)
{
	u64 backlog = delay >> PERT_DELAY_SHIFT;
	u64 gap_max = (u64)PERT_GAP_MAX * PERT_NS_PER_US;

	now *= PERT_NS_PER_US;
	if (!vars->next) {
		pi_restart(params, vars, now, backlog);
		return;
	}
	if (now > vars->next + gap_max)
		vars->next = now - gap_max;
	pi_advance(params, vars, now, backlog);
}

/* Tq has reached what the curve answers with certainty, 2 T_max. */
static inline bool pert_is_certain(const struct pert_params *params, u64 delay)
{
	return delay >= (u64)params->max << (PERT_DELAY_SHIFT + 1);
}

/**
 * struct pert_pause - the time from one response to the next
 * @end: sequence number whose ACK ends the round trip
 * @rounds: round trips still to wait
 * @since: when the delay last was that of certainty, or @vain fell, us
 * @vain: how often responses have proved to be in vain
 */
struct pert_pause {
	u32 end;
	u32 rounds;
	u32 since;
	u8 vain;
};

/**
 * pert_may_respond() - tell whether the pause is over
 * @pause: state
 * @una: the first sequence number that has not been acknowledged
 * @next: the next that will be sent
 *
 * To be called at each ACK, so that no sequence number is kept for longer than
 * a round trip.
 *
 * Return: whether it is.
 */
static inline bool pert_may_respond(struct pert_pause *pause, u32 una, u32 next)
{
	if (pause->rounds && (s32)(una - pause->end) > 0) {
		pause->rounds--;
		pause->end = next;
	}
	return !pause->rounds;
}

/* The window was cut: let @rounds round trips pass at least. */
static inline void pert_rest(struct pert_pause *pause, u32 next, u32 rounds)
{
	pause->end = next;
	pause->rounds = max(pause->rounds, rounds);
}

/**
 * pert_responded() - an early response was made
 * @pause: state
 * @next: the next sequence number that will be sent
 * @spacing: round trips in which there is no other
 * @vain: those before have not brought the delay down: double the pause
 */
static inline void pert_responded(struct pert_pause *pause, u32 next,
				  u32 spacing, bool vain)
{
	if (vain && pause->vain < PERT_VAIN_MAX)
		pause->vain++;
	pert_rest(pause, next, spacing << pause->vain);
}

/**
 * pert_relieve() - become patient again while the delay is bearable
 * @pause: state
 * @now: time, us; it may wrap
 * @certain: the delay is that of certainty: see pert_is_certain()
 *
 * The other half of coexistence with flows that only give way to losses: where
 * the queue persists in spite of responses, these come more and more seldom, and
 * more often again in each second that it does not. To be called at each ACK.
 */
static inline void pert_relieve(struct pert_pause *pause, u32 now, bool certain)
{
	if (certain) {
		pause->since = now;
	} else if (pause->vain && now - pause->since >= PERT_RELIEF) {
		pause->since = now;
		pause->vain--;
		pause->rounds /= 2;
	}
}

/* @window after an early response that gives up the share @decrease, Q32. */
static inline u32 pert_decreased(u32 window, u64 decrease)
{
	return max((u32)(window - aqm_mul(window, decrease, AQM_PROB_SHIFT)), 2U);
}

#endif
