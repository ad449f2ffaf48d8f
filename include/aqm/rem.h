/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * REM, Random Exponential Marking: the control law.
 *
 * S. Athuraliya, V. H. Li, S. H. Low, Q. Yin: "REM: Active Queue Management",
 * 2000. Equation numbers are that paper's.
 *
 * A price p rises while the queue b is above its target b* or more comes in
 * than the link carries, and falls otherwise, at sampling instants that are
 * one interval apart:
 *
 *	p(t+1) = [p(t) + gamma (alpha (b(t) - b*) + y(t) - c)]+		(2)
 *
 * y(t) - c being measured in one of three ways (enum rem_measure), and a packet
 * is marked or dropped with probability
 *
 *	m(t) = 1 - phi^(-p(t))						(3)
 *
 * Time is lazy: rem_advance() makes up for all the instants since the last
 * event at once. Between two events only the first of them differs from the
 * others, and those others all move the price in one direction, so the result
 * equals that of one step an instant to the last bit.
 *
 * A unit is what the queue is counted in: a packet, or a byte if the queue
 * counts bytes; parameters are given in packets and converted once.
 */
#ifndef AQM_REM_H
#define AQM_REM_H

#include "fixed.h"

/* The price, Q40: 23 bits before the point, steps of 9.1e-13. */
#define REM_PRICE_SHIFT		40
/* Gains, price a unit: Q60, at most 1. */
#define REM_GAIN_SHIFT		60
/* Numbers of units within an interval: Q24, saturating at 2^38 units. */
#define REM_UNITS_SHIFT		24
/* -log2(1 - m) at which m rounds to 1 in Q32: the price climbs no higher. */
#define REM_CERTAIN		34

/**
 * enum rem_measure - how y(t) - c, the excess of input over capacity, is known
 * @REM_BACKLOG: change of the queue less what the link could have carried while
 *	it was idle. The same number as @REM_RATE gives, for the queue grows by
 *	what comes in and shrinks by what goes out.
 * @REM_QUEUE: change of the queue, eq. (4): needs no capacity but takes an idle
 *	link for a matched one
 * @REM_RATE: accepted arrivals less the capacity, eq. (2)
 */
enum rem_measure {
	REM_BACKLOG,
	REM_QUEUE,
	REM_RATE,
};

/**
 * struct rem_config - REM's parameters as the user states them
 * @measure: how the rate mismatch is known
 * @target: b*, packets
 * @interval: time between two price updates, ns, at least 1
 * @alpha: weight of the queue mismatch, Q48, (0, 1)
 * @gamma: step size of the price, Q48, (0, 1]
 * @phi: base of the exponential, Q48, at least 1.00001
 */
struct rem_config {
	enum rem_measure measure;
	u32 target;
	u64 interval;
	u64 alpha;
	u64 gamma;
	u64 phi;
};

/**
 * struct rem_params - REM's parameters as the law uses them
 * @measure: how the rate mismatch is known
 * @interval: time between two price updates, ns
 * @target: b*, units
 * @gamma: price for each unit of rate mismatch, Q60
 * @alpha_gamma: price for each unit of queue mismatch, Q60
 * @log2_phi: log2(phi), Q48
 * @price_max: price at which the probability reaches 1, Q40
 */
struct rem_params {
	enum rem_measure measure;
	u64 interval;
	u64 target;
	u64 gamma;
	u64 alpha_gamma;
	u64 log2_phi;
	u64 price_max;
};

/**
 * struct rem_vars - REM's state
 * @price: p(t), Q40
 * @probability: m(t), eq. (3), Q32
 * @next: the next sampling instant, ns
 * @backlog: b(t), the queue at the last sampling instant, units
 * @arrived: units accepted since the last sampling instant
 * @idle: time the link was idle since the last sampling instant, without what
 *	@idle_from tells, ns
 * @idle_from: since or from when the link is idle, U64_MAX while units are
 *	queued, ns
 * @sent: when the link will have sent all that departed, ns
 */
struct rem_vars {
	u64 price;
	u64 probability;
	u64 next;
	u64 backlog;
	u64 arrived;
	u64 idle;
	u64 idle_from;
	u64 sent;
};

/**
 * rem_params_init() - convert the parameters
 * @params: out
 * @config: valid parameters
 * @unit: units in a packet: 1, or a packet's bytes
 */
static inline void rem_params_init(struct rem_params *params,
				   const struct rem_config *config, u32 unit)
{
	params->measure = config->measure;
	params->interval = config->interval;
	params->target = (u64)config->target * unit;
	params->gamma = div_u64(config->gamma <<
				(REM_GAIN_SHIFT - AQM_REAL_SHIFT), unit);
	params->alpha_gamma =
		div_u64(aqm_mul(config->alpha, config->gamma,
				2 * AQM_REAL_SHIFT - REM_GAIN_SHIFT), unit);
	params->log2_phi = aqm_log2(config->phi);
	/* Q9, rounded up, to Q40 */
	params->price_max = (div64_u64((u64)REM_CERTAIN << 57,
				       params->log2_phi) + 1) << 31;
}

static inline void rem_set_price(const struct rem_params *params,
				 struct rem_vars *vars, u64 price)
{
	/* eq. (3); phi^-p = 2^-(p log2(phi)) */
	vars->price = min(price, params->price_max);
	vars->probability = AQM_PROB_ONE -
		aqm_exp2(-(s64)aqm_mul(vars->price, params->log2_phi,
				       AQM_REAL_SHIFT));
}

/**
 * rem_restart() - sampling starts anew, the price stays
 * @params: parameters, which may have changed
 * @vars: state, whose queue may have been cut
 * @now: time, ns
 * @backlog: the queue, units
 */
static inline void rem_restart(const struct rem_params *params,
			       struct rem_vars *vars, u64 now, u64 backlog)
{
	vars->next = now + params->interval;
	vars->backlog = backlog;
	vars->arrived = 0;
	vars->idle = 0;
	if (backlog)
		vars->idle_from = U64_MAX;
	else if (vars->idle_from < now || vars->idle_from == U64_MAX)
		vars->idle_from = now;
	rem_set_price(params, vars, vars->price);
}

/**
 * rem_init() - an empty queue on an idle link
 * @params: parameters
 * @vars: out
 * @now: time, ns
 */
static inline void rem_init(const struct rem_params *params,
			    struct rem_vars *vars, u64 now)
{
	vars->price = 0;
	vars->idle_from = 0;
	vars->sent = 0;
	rem_restart(params, vars, now, 0);
}

/* Idle time within [@from, @to], not counting what is in vars->idle. */
static inline u64 rem_idle(const struct rem_vars *vars, u64 from, u64 to)
{
	from = max(from, vars->idle_from);
	return to > from ? to - from : 0;
}

/* Units that @capacity, units/ns in Q48, carries in @ns: Q24. */
static inline s64 rem_carried(u64 capacity, u64 ns)
{
	return aqm_mul(capacity, ns, AQM_REAL_SHIFT - REM_UNITS_SHIFT);
}

/*
 * The price's step for a queue mismatch and a rate mismatch, Q40, eq. (2).
 * Two roundings: within 2^-40 of the true value.
 */
static inline s64 rem_step(const struct rem_params *params, s64 queue_mismatch,
			   s64 rate_mismatch)
{
	return aqm_sadd(aqm_smul(queue_mismatch, params->alpha_gamma,
				 REM_GAIN_SHIFT - REM_PRICE_SHIFT),
			aqm_smul(rate_mismatch, params->gamma,
				 REM_UNITS_SHIFT + REM_GAIN_SHIFT -
				 REM_PRICE_SHIFT));
}

/* [p + @count @step]+ : what @count clamped steps in one direction come to. */
static inline u64 rem_stepped(const struct rem_params *params, u64 price,
			      u64 count, s64 step)
{
	u64 change = aqm_mul(count, step < 0 ? -(u64)step : (u64)step, 0);

	if (step < 0)
		return price > change ? price - change : 0;
	return min(price + change, params->price_max);
}

/**
 * rem_advance() - account for the sampling instants up to now
 * @params: parameters
 * @vars: state
 * @now: time, ns, not before that of any earlier call
 * @backlog: the queue since the last arrival or departure, units
 * @capacity: the link's, units/ns in Q48; unused with REM_QUEUE
 *
 * To be called before each arrival and departure.
 */
static inline void rem_advance(const struct rem_params *params,
			       struct rem_vars *vars, u64 now, u64 backlog,
			       u64 capacity)
{
	u64 interval = params->interval;
	s64 change = 0, rest = 0;	/* rate mismatches, units in Q24 */
	u64 price, first, count, unlike;

	if (now < vars->next)
		return;

	/* The first of the instants, then count - 1 more. */
	first = vars->next;
	count = div64_u64(now - first, interval) + 1;
	unlike = 1;

	switch (params->measure) {
	case REM_BACKLOG:
		change = aqm_smul((s64)(backlog - vars->backlog),
				  1ULL << REM_UNITS_SHIFT, 0);
		change = aqm_sadd(change, -rem_carried(capacity, vars->idle +
					rem_idle(vars, first - interval,
						 first)));
		if (!backlog)
			rest = -rem_carried(capacity, interval);
		break;
	case REM_QUEUE:
		change = aqm_smul((s64)(backlog - vars->backlog),
				  1ULL << REM_UNITS_SHIFT, 0);
		break;
	case REM_RATE:
		rest = -rem_carried(capacity, interval);
		change = aqm_sadd(aqm_mul(vars->arrived,
					  1ULL << REM_UNITS_SHIFT, 0), rest);
		break;
	}

	price = rem_stepped(params, vars->price, 1,
			    rem_step(params, (s64)(vars->backlog -
						   params->target), change));

	/*
	 * An empty queue's last packet may keep the link busy for some
	 * intervals more: whole ones, then one in part.
	 */
	if (params->measure == REM_BACKLOG && !backlog && count > unlike &&
	    vars->idle_from > first) {
		u64 busy = min(div64_u64(vars->idle_from - first, interval),
			       count - unlike);
		s64 mismatch = (s64)(backlog - params->target);

		price = rem_stepped(params, price, busy,
				    rem_step(params, mismatch, 0));
		unlike += busy;
		if (count > unlike) {
			u64 from = first + busy * interval;

			change = -rem_carried(capacity,
					      rem_idle(vars, from,
						       from + interval));
			price = rem_stepped(params, price, 1,
					    rem_step(params, mismatch, change));
			unlike++;
		}
	}

	price = rem_stepped(params, price, count - unlike,
			    rem_step(params, (s64)(backlog - params->target),
				     rest));
	rem_set_price(params, vars, price);

	vars->next = first + count * interval;
	vars->backlog = backlog;
	vars->arrived = 0;
	vars->idle = 0;
}

/**
 * rem_arrive() - units were accepted into the queue
 * @params: parameters
 * @vars: state, advanced to @now
 * @now: time, ns
 * @units: how many
 */
static inline void rem_arrive(const struct rem_params *params,
			      struct rem_vars *vars, u64 now, u64 units)
{
	vars->arrived += units;
	if (vars->idle_from == U64_MAX)
		return;
	vars->idle += rem_idle(vars, vars->next - params->interval, now);
	vars->idle_from = U64_MAX;
}

/**
 * rem_depart() - a packet left the queue
 * @params: parameters
 * @vars: state, advanced to the present
 * @now: time, ns
 * @backlog: what is still queued, units
 * @send_time: how long the link takes for the packet, ns
 *
 * Shapers and drivers take packets in bursts, ahead of the link, which then has
 * them all to send. Beyond an interval ahead it is the bandwidth that is wrong.
 */
static inline void rem_depart(const struct rem_params *params,
			      struct rem_vars *vars, u64 now, u64 backlog,
			      u64 send_time)
{
	u64 ahead = max(params->interval, send_time);

	vars->sent = min(max(vars->sent, now) + send_time, now + ahead);
	if (!backlog)
		vars->idle_from = vars->sent;
}

#endif
