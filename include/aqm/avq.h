/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * AVQ, Adaptive Virtual Queue: the control law.
 *
 * S. Kunniyur, R. Srikant: "Analysis and Design of an Adaptive Virtual Queue
 * (AVQ) Algorithm for Active Queue Management", ACM SIGCOMM 2001. Equation and
 * figure numbers are that paper's.
 *
 * Each arrival is also put into a virtual queue, which has a buffer B and is
 * served at C~, at most the capacity C of the link; it is marked or dropped if
 * the virtual queue has no room for it. C~ is adapted so that the arrivals, at
 * the rate lambda, come to the share gamma of the link:
 *
 *	dC~/dt = alpha (gamma C - lambda)				(1)
 *
 * which the paper's Figure 2 makes at an arrival of b at the time t, the one
 * before having been at s:
 *
 *	VQ <- max(VQ - C~ (t - s), 0)
 *	mark or drop if VQ + b > B, else VQ <- VQ + b
 *	C~ <- max(min(C~ + alpha gamma C (t - s), C) - alpha b, 0)
 *
 * Where packets are dropped, lambda is the rate of those that are not, as in the
 * authors' own queue for ns-2: they have no b in the last line.
 *
 * Here all is divided by C: C~ is a share of the link, and VQ, b and B are the
 * times that the link takes for them. The law then has no units of its own.
 */
#ifndef AQM_AVQ_H
#define AQM_AVQ_H

#include "fixed.h"

/* C~ / C, Q60. */
#define AVQ_SHARE_SHIFT	60
#define AVQ_SHARE_ONE	BIT_ULL(AVQ_SHARE_SHIFT)
/* Times of the link, ns in Q16: up to 39 hours, steps of 15 fs. */
#define AVQ_TIME_SHIFT	16
/* alpha, a ns, Q84: 10 a second is 2^57.4. */
#define AVQ_GAIN_SHIFT	84

/**
 * struct avq_config - AVQ's parameters as the user states them
 * @alpha: smoothing, a second, Q48, at most 100
 * @gamma: desired utilisation, Q48, (0, 1]
 */
struct avq_config {
	u64 alpha;
	u64 gamma;
};

/**
 * struct avq_params - AVQ's parameters as the law uses them
 * @alpha: smoothing, a ns, Q84
 * @growth: alpha gamma, a ns, Q84
 */
struct avq_params {
	u64 alpha;
	u64 growth;
};

/**
 * struct avq_vars - AVQ's state
 * @share: C~ / C, Q60
 * @queue: VQ / C, ns in Q16
 * @last: s, ns
 */
struct avq_vars {
	u64 share;
	u64 queue;
	u64 last;
};

/**
 * avq_params_init() - convert the parameters
 * @params: out
 * @config: valid parameters
 */
static inline void avq_params_init(struct avq_params *params,
				   const struct avq_config *config)
{
	/* 2^(84 - 48) / 10^9 = 2^27 / 5^9 */
	params->alpha = mul_u64_u64_div_u64(config->alpha, 1 << 27, 1953125);
	params->growth = __aqm_mul(params->alpha, config->gamma,
				   AQM_REAL_SHIFT);
}

/**
 * avq_init() - an empty virtual queue, as fast as the link
 * @vars: out
 * @now: time, ns
 */
static inline void avq_init(struct avq_vars *vars, u64 now)
{
	*vars = (struct avq_vars){ .share = AVQ_SHARE_ONE, .last = now };
}

/**
 * avq_advance() - serve the virtual queue, and let its capacity grow
 * @params: parameters
 * @vars: state
 * @now: t, ns, not before that of any earlier call
 */
static inline void avq_advance(const struct avq_params *params,
			       struct avq_vars *vars, u64 now)
{
	u64 elapsed = now - vars->last;
	u64 served = aqm_mul(elapsed, vars->share,
			     AVQ_SHARE_SHIFT - AVQ_TIME_SHIFT);
	u64 grown = aqm_mul(elapsed, params->growth,
			    AVQ_GAIN_SHIFT - AVQ_SHARE_SHIFT);

	vars->queue -= min(served, vars->queue);
	vars->share = min(vars->share + grown, AVQ_SHARE_ONE);
	vars->last = now;
}

/*
 * Has the virtual queue, whose buffer is @size, no room for what takes @time?
 * Like the queue itself it takes any packet while it is empty.
 */
static inline bool avq_is_full(const struct avq_vars *vars, u64 time, u64 size)
{
	return vars->queue && vars->queue + time > size;
}

/**
 * avq_arrive() - put a packet into the virtual queue
 * @vars: state, advanced to the present
 * @time: b / C, that the link takes for the packet, ns in Q16, at most S64_MAX
 * @size: B / C, ns in Q16, at most S64_MAX
 *
 * Return: is the packet to carry a congestion signal?
 */
static inline bool avq_arrive(struct avq_vars *vars, u64 time, u64 size)
{
	bool full = avq_is_full(vars, time, size);

	if (!full)
		vars->queue += time;
	return full;
}

/**
 * avq_accept() - the packet was not dropped
 * @params: parameters
 * @vars: state
 * @time: b / C, ns in Q16, at most S64_MAX
 */
static inline void avq_accept(const struct avq_params *params,
			      struct avq_vars *vars, u64 time)
{
	u64 spent = aqm_mul(time, params->alpha,
			    AVQ_GAIN_SHIFT - AVQ_SHARE_SHIFT + AVQ_TIME_SHIFT);

	vars->share -= min(spent, vars->share);
}

#endif
