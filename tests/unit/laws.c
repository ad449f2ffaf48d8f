// SPDX-License-Identifier: GPL-2.0-or-later
/* The laws as a shared library: laws.py loads it. */
#include <stddef.h>
#include <string.h>

#include <aqm/dice.h>
#include <aqm/fixed.h>
#include <aqm/fifa.h>
#include <aqm/lred.h>
#include <aqm/pert.h>
#include <aqm/pi.h>
#include <aqm/red.h>
#include <aqm/rem.h>
#include <aqm/xqm.h>

u64 fixed_mul(u64 a, u64 b, unsigned int shift)
{
	return aqm_mul(a, b, shift);
}

s64 fixed_smul(s64 a, u64 b, unsigned int shift)
{
	return aqm_smul(a, b, shift);
}

void fixed_log2(size_t n, const u64 *x, u64 *out)
{
	for (size_t i = 0; i < n; i++)
		out[i] = aqm_log2(x[i]);
}

void fixed_exp2(size_t n, const s64 *x, u64 *out)
{
	for (size_t i = 0; i < n; i++)
		out[i] = aqm_exp2(x[i]);
}

/*
 * For each of n first throws: which of the packets, packet i with probability
 * part[i] / whole[i], is the first to be hit; packets if none is.
 */
void dice_first(size_t n, const u64 *throw, size_t packets, const u64 *part,
		const u64 *whole, u64 *first)
{
	for (size_t i = 0; i < n; i++) {
		struct aqm_dice dice;

		aqm_dice_throw(&dice, throw[i]);
		for (first[i] = 0; first[i] < packets; first[i]++)
			if (aqm_dice_hit(&dice, part[first[i]], whole[first[i]]))
				break;
	}
}

u64 rem_probability(const struct rem_config *config, u64 price)
{
	struct rem_params params;
	struct rem_vars vars;

	rem_params_init(&params, config, 1);
	rem_set_price(&params, &vars, price);
	return vars.probability;
}

u64 rem_price_max(const struct rem_config *config)
{
	struct rem_params params;

	rem_params_init(&params, config, 1);
	return params.price_max;
}

/*
 * A queue's history: at time[i], units[i] arrive (> 0), depart (< 0) or nothing
 * happens (0). The link needs send_time ns a unit. @eager: also call the law at
 * each sampling instant by itself.
 */
void rem_history(const struct rem_config *config, u32 unit, u64 capacity,
		 u64 send_time, bool eager, size_t n, const u64 *time,
		 const s64 *units, u64 *price, u64 *probability)
{
	struct rem_params params;
	struct rem_vars vars;
	u64 backlog = 0;

	rem_params_init(&params, config, unit);
	rem_init(&params, &vars, 0);
	for (size_t i = 0; i < n; i++) {
		while (eager && vars.next < time[i])
			rem_advance(&params, &vars, vars.next, backlog,
				    capacity);
		rem_advance(&params, &vars, time[i], backlog, capacity);
		price[i] = vars.price;
		probability[i] = vars.probability;
		backlog += units[i];
		if (units[i] > 0)
			rem_arrive(&params, &vars, time[i], units[i]);
		else if (units[i] < 0)
			rem_depart(&params, &vars, time[i], backlog,
				   -units[i] * send_time);
	}
}

/*
 * A queue's history: at time[i] a packet comes and finds backlog[i] units, and
 * is lost[i] or not. @eager: also call the law at each period's end by itself.
 */
void lred_history(const struct lred_config *config, u32 unit, bool eager,
		  size_t n, const u64 *time, const u64 *backlog,
		  const bool *lost, u64 *ratio, u64 *probability)
{
	struct lred_params params;
	struct lred_vars vars = {};

	lred_params_init(&params, config, unit);
	lred_restart(&params, &vars, 0);
	for (size_t i = 0; i < n; i++) {
		while (eager && vars.end < time[i])
			lred_advance(&params, &vars, vars.end);
		lred_advance(&params, &vars, time[i]);
		ratio[i] = vars.ratio;
		probability[i] = lred_probability(&params, &vars, backlog[i]);
		lred_arrive(&vars, 1, lost[i]);
	}
}

/* lbar after one period with these counts. */
u64 lred_ratio_after(const struct lred_config *config, u64 arrived, u64 lost)
{
	struct lred_params params;
	struct lred_vars vars = {};

	lred_params_init(&params, config, 1);
	lred_restart(&params, &vars, 0);
	vars.present = (struct lred_count){ arrived, lost };
	lred_advance(&params, &vars, vars.end);
	return vars.ratio;
}

/*
 * A queue's history: from time[i] on there are backlog[i] units. @eager: also
 * call the law at each sampling instant by itself.
 */
void pi_history(const struct pi_config *config, u32 unit, bool eager, size_t n,
		const u64 *time, const u64 *backlog, u64 *probability)
{
	struct pi_params params;
	struct pi_vars vars = {};
	u64 present = 0;

	pi_params_init(&params, config, unit);
	pi_restart(&params, &vars, 0, 0);
	for (size_t i = 0; i < n; i++) {
		while (eager && vars.next < time[i])
			pi_advance(&params, &vars, vars.next, present);
		pi_advance(&params, &vars, time[i], present);
		probability[i] = vars.probability;
		present = backlog[i];
	}
}

/*
 * A queue's history: at time[i] a packet comes, finds backlog[i] units, and is
 * hit if random[i] says so. The link was idle from idle_from[i], U64_MAX if not.
 */
void red_history(const struct red_config *config, u32 unit, u64 send_time,
		 size_t n, const u64 *time, const u64 *backlog,
		 const u64 *idle_from, const u32 *random, u64 *avg,
		 u64 *probability)
{
	struct red_params params;
	struct red_vars vars;

	red_params_init(&params, config, unit);
	red_init(&vars);
	for (size_t i = 0; i < n; i++) {
		vars.idle_from = idle_from[i];
		red_average(&params, &vars, time[i], backlog[i], send_time);
		avg[i] = vars.avg;
		probability[i] = aqm_probability(red_odds(&params, &vars));
		if (random[i] < probability[i])
			red_hit(&vars);
	}
}

/* Labels: at time[i] a packet labelled label[i] comes. */
void fifa_history(const struct fifa_params *params, size_t n, const u64 *time,
		  const u16 *label, u64 *average, u64 *formula)
{
	struct fifa_vars vars = {};

	for (size_t i = 0; i < n; i++) {
		fifa_update(params, &vars, time[i], fifa_clamp(params, label[i]));
		average[i] = vars.average;
		formula[i] = vars.formula;
	}
}

/* p_base scaled for a label, where R_formula is @formula. */
u64 fifa_scaled(const struct fifa_params *params, u64 formula, u64 probability,
		u16 label, bool mark)
{
	struct fifa_vars vars = { .formula = formula };
	u64 first = fifa_scale(params, &vars, probability, label, mark);

	/* A factor that was kept is the one that was computed. */
	return fifa_scale(params, &vars, probability, label, mark) == first ?
		first : U64_MAX;
}

u64 pert_curve(const struct pert_params *params, u64 delay)
{
	return pert_probability(params, delay);
}

/*
 * A sender's history: at time[i] an ACK comes for data sent rtt[i] before; the
 * receiver's clock was at clock[i].
 */
void pert_history(const struct pert_params *params, bool one_way, size_t n,
		  const u64 *time, const u32 *rtt, const u32 *clock,
		  u64 *average, u32 *base, u64 *delay)
{
	struct pert_vars vars = {};

	for (size_t i = 0; i < n; i++) {
		pert_sample(params, &vars, time[i], rtt[i], clock[i], one_way);
		average[i] = vars.average;
		base[i] = vars.base.least;
		delay[i] = pert_delay(&vars);
	}
}

/* Which ACKs for acked[i] segments are taken for delayed ones. */
void pert_delayed(size_t n, const u32 *acked, bool *delayed)
{
	struct pert_vars vars = {};

	for (size_t i = 0; i < n; i++)
		delayed[i] = pert_is_delayed(&vars, acked[i]);
}

/* gamma and beta, Q60 a us. */
void pert_pi_gains(const struct pert_pi_config *config, u64 *gamma, u64 *beta)
{
	struct pi_params params;

	pert_pi_params_init(&params, config);
	*gamma = params.a;
	*beta = params.b;
}

/* p, Q48, at ACKs that come at time[i] while the delay is delay[i]. */
void pert_pi_history(const struct pert_pi_config *config, size_t n,
		     const u64 *time, const u64 *delay, u64 *probability)
{
	struct pi_params params;
	struct pi_vars vars = {};

	pert_pi_params_init(&params, config);
	for (size_t i = 0; i < n; i++) {
		if (pert_pi_due(&vars, time[i]))
			pert_pi_advance(&params, &vars, time[i], delay[i]);
		probability[i] = vars.probability;
	}
}

/*
 * ACKs up to una[i] come at time[i], while next[i] is to be sent: which are
 * responded to, where all may be; certain[i]: the delay is that of certainty.
 */
void pert_pauses(u32 spacing, bool coexist, size_t n, const u32 *una,
		 const u32 *next, const u32 *time, const bool *certain,
		 bool *responded)
{
	struct pert_pause pause = {};

	for (size_t i = 0; i < n; i++) {
		pert_relieve(&pause, time[i], certain[i]);
		responded[i] = pert_may_respond(&pause, una[i], next[i]);
		if (responded[i])
			pert_responded(&pause, next[i], spacing,
				       coexist && certain[i]);
	}
}

u32 pert_window(u32 window, u64 decrease)
{
	return pert_decreased(window, decrease);
}

/* qhat, eq. (16). */
u64 xqm_quiescent_rate(u64 share, u64 rtt)
{
	return xqm_quiescent(share, rtt);
}

/* p, eq. (17). */
u64 xqm_probability(s64 rate, u32 since)
{
	struct xqm_flow flow = { .rate = rate, .since = since };

	return aqm_probability(xqm_odds(&flow));
}

/* How many packets are hidden, of a flow that has these rates? */
u64 xqm_hidden(bool smooth, bool responsive, s64 rate, u64 quiescent)
{
	struct xqm_params params = { .smooth = smooth };
	struct xqm_flow flow = {
		.responsive = responsive,
		.rate = rate,
		.quiescent = quiescent,
	};

	return xqm_hidden_share(&params, &flow);
}

/* k after some packets. */
u32 xqm_since(s64 rate, u32 since, u32 packets, bool lost)
{
	struct xqm_flow flow = { .rate = rate, .since = since };

	xqm_flow_count(&flow, packets, 0, true, lost);
	return flow.since;
}

/* What tells apart the flows of a history. */
struct xqm_kind {
	u64 rtt;
	u32 weight;
	bool responsive;
};

/*
 * A queue's history: at time[i] a packet of flow[i] comes, after which there are
 * backlog[i] packets, Q8; -1 is nobody's packet. @eager: every flow is also
 * brought up to the present at each control instant by itself.
 */
void xqm_history(const struct xqm_config *config, u64 link, size_t flows,
		 const struct xqm_kind *kind, bool eager, size_t n,
		 const u64 *time, const s32 *flow, const u64 *backlog,
		 s64 *rate, u64 *quiescent, u64 *throughput, u64 *share,
		 u64 *present)
{
	struct xqm_member members[flows];
	struct xqm_flow states[flows];
	struct xqm_params params;
	struct xqm_vars vars = {};
	u64 packets = 0;

	memset(members, 0, sizeof(members));
	memset(states, 0, sizeof(states));
	xqm_params_init(&params, config);
	xqm_restart(&params, &vars, 0);
	xqm_set_capacity(&params, &vars, link, 0, 0);
	for (size_t i = 0; i < n; i++) {
		struct xqm_flow *state;

		while (vars.next <= time[i]) {
			u64 next = eager ? vars.next : time[i];

			xqm_advance(&params, &vars, next, packets);
			for (size_t j = 0; eager && j < flows; j++)
				if (xqm_is_recent(&vars, members[j].bin))
					xqm_flow_advance(&params, &vars,
							 &states[j]);
		}
		packets = backlog[i];
		present[i] = vars.census.flows;
		if (flow[i] < 0)
			continue;
		state = &states[flow[i]];
		if (!xqm_is_recent(&vars, members[flow[i]].bin)) {
			members[flow[i]].weight = 0;
			xqm_flow_start(&vars, state, kind[flow[i]].responsive);
			state->rtt = kind[flow[i]].rtt;
		}
		if (xqm_join(&vars, &vars.census, &members[flow[i]],
			     kind[flow[i]].weight))
			xqm_set_share(&vars);
		state->weight = kind[flow[i]].weight;
		state->single = state->weight << XQM_SINGLE_SHIFT;
		xqm_flow_advance(&params, &vars, state);
		rate[i] = state->rate;
		quiescent[i] = state->quiescent;
		throughput[i] = state->throughput;
		share[i] = state->share;
		present[i] = vars.census.flows;
		xqm_flow_count(state, 1, 1 << XQM_PACKET_SHIFT, true, false);
	}
}
