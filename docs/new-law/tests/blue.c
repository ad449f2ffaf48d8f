// SPDX-License-Identifier: GPL-2.0-or-later
/* BLUE's law beside the paper's lines in floating point: events "loss" and "idle" at random. */
#include <stdio.h>
#include <stdlib.h>

#include "user.h"

#include <aqm/blue.h>

#define EVENTS	100000

int main(void)
{
	const struct blue_params params = {
		.up = AQM_PROB_ONE / 50,
		.down = AQM_PROB_ONE / 500,
		.freeze = 100000000,
	};
	struct blue_vars vars;
	double p = 0, last = 0, worst = 0, highest = 0;
	u64 now = 0;

	blue_init(&vars, now);
	srandom(1);
	for (int i = 0; i < EVENTS; i++) {
		/* more losses in one half, so that both bounds are met */
		bool loss = random() % 100 < (i % 20000 < 10000 ? 30 : 2);
		double seconds;

		now += 1000000 * (random() % 200);
		seconds = now / 1e9;
		if (loss)
			blue_lose(&params, &vars, now);
		else
			blue_idle(&params, &vars, now);
		if (seconds - last > 0.1000000001) {
			p += loss ? 0.02 : -0.002;
			p = fmin(fmax(p, 0), 1);
			last = seconds;
		}
		worst = fmax(worst, fabs(p - ldexp(vars.probability, -32)));
		highest = fmax(highest, p);
	}
	printf("farthest from the paper's p: %g; highest p: %g\n", worst,
	       highest);
	return worst > 0.0001 || highest < 1;
}
