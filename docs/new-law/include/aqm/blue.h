/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * BLUE: the control law.
 *
 * W. Feng, D. Kandlur, D. Saha, K. Shin: "BLUE: A New Class of Active Queue
 * Management Algorithms", University of Michigan CSE-TR-387-99, 1999. It has
 * one probability, and looks at no queue length:
 *
 *	upon packet loss:  if now - last > freeze, p <- p + d1, last <- now
 *	upon link idle:    if now - last > freeze, p <- p - d2, last <- now
 */
#ifndef AQM_BLUE_H
#define AQM_BLUE_H

#include "fixed.h"

/**
 * struct blue_params - BLUE's parameters
 * @up: d1, Q32, (0, 1]
 * @down: d2, Q32, (0, 1]
 * @freeze: least time from one change of p to the next, ns
 */
struct blue_params {
	u64 up;
	u64 down;
	u64 freeze;
};

/**
 * struct blue_vars - BLUE's state
 * @probability: p, Q32, 0 to 1
 * @last: when it was changed, ns
 */
struct blue_vars {
	u64 probability;
	u64 last;
};

static inline void blue_init(struct blue_vars *vars, u64 now)
{
	*vars = (struct blue_vars){ .last = now };
}

/* Has p stood long enough? If so, it is changed now. */
static inline bool blue_thaws(const struct blue_params *params,
			      struct blue_vars *vars, u64 now)
{
	if (now - vars->last <= params->freeze)
		return false;
	vars->last = now;
	return true;
}

/**
 * blue_lose() - a packet was lost for want of room
 * @params: parameters
 * @vars: state
 * @now: time, ns, not before that of any earlier call
 */
static inline void blue_lose(const struct blue_params *params,
			     struct blue_vars *vars, u64 now)
{
	if (blue_thaws(params, vars, now))
		vars->probability = min(vars->probability + params->up,
					AQM_PROB_ONE);
}

/**
 * blue_idle() - the last packet left, and the link has nothing to send
 * @params: parameters
 * @vars: state
 * @now: time, ns, not before that of any earlier call
 */
static inline void blue_idle(const struct blue_params *params,
			     struct blue_vars *vars, u64 now)
{
	if (blue_thaws(params, vars, now))
		vars->probability -= min(params->down, vars->probability);
}

#endif
