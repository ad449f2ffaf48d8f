// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * FIFA, round-trip time awareness for RED, PI and REM (Lee, Claypool, Kinicki
 * 2003).
 */

#include <linux/pkt_sched_fifa.h>

#include "aqm_util.h"

static const char *const bases[] = {
	[TC_FIFA_RED] = "red",
	[TC_FIFA_PI] = "pi",
	[TC_FIFA_REM] = "rem",
	NULL
};

static const char *const counts[] = {
	[TC_FIFA_WAIT] = "wait",
	[TC_FIFA_CLASSIC] = "classic",
	NULL
};

static const struct aqm_field options[] = {
	{ "base", TCA_FIFA_BASE, AQM_CHOICE, { .words = bases } },
	AQM_LIMIT,
	AQM_TARGET,
	{ "min", TCA_FIFA_RED_MIN, AQM_PACKETS, {} },
	{ "max", TCA_FIFA_RED_MAX, AQM_PACKETS, {} },
	{ "probability", TCA_FIFA_RED_PROBABILITY, AQM_REAL,
	  { .symbol = "P" } },
	{ "qweight", TCA_FIFA_RED_QWEIGHT, AQM_REAL, { .symbol = "W" } },
	{ "gentle", TCA_FIFA_RED_GENTLE, AQM_FLAG, {} },
	{ "count", TCA_FIFA_RED_COUNT, AQM_CHOICE, { .words = counts } },
	{ "a", TCA_FIFA_PI_A, AQM_REAL, { .symbol = "A" } },
	{ "b", TCA_FIFA_PI_B, AQM_REAL, { .symbol = "B" } },
	{ "sampling", TCA_FIFA_PI_SAMPLING, AQM_COUNT, { .symbol = "HZ" } },
	AQM_REM_INTERVAL,
	AQM_REM_ALPHA,
	AQM_REM_GAMMA,
	AQM_REM_PHI,
	AQM_REM_MEASURE,
	{ "exponent-robust", TCA_FIFA_EXPONENT_ROBUST, AQM_REAL,
	  { .symbol = "A" } },
	{ "exponent-fragile", TCA_FIFA_EXPONENT_FRAGILE, AQM_REAL,
	  { .symbol = "B" } },
	{ "scale", TCA_FIFA_SCALE, AQM_SWITCH, {} },
	{ "rtt-min", TCA_FIFA_RTT_MIN, AQM_TIME, {} },
	{ "rtt-max", TCA_FIFA_RTT_MAX, AQM_TIME, {} },
	{ "rtt-weight", TCA_FIFA_RTT_WEIGHT, AQM_REAL, { .symbol = "W" } },
	AQM_BANDWIDTH,
	AQM_AVPKT,
	AQM_BYTEMODE,
	AQM_ECN,
	AQM_PROTECT,
	{}
};

static const struct aqm_field statistics[] = {
	{ "prob_scaled", TCA_FIFA_STATS_PROB_SCALED, AQM_FIXED,
	  { .shift = TC_AQM_PROB_SHIFT } },
	{ "rtt_avg", TCA_FIFA_STATS_RTT_AVG, AQM_DELAY, {} },
	{ "rtt_formula", TCA_FIFA_STATS_RTT_FORMULA, AQM_DELAY, {} },
	{ "labelled", TCA_FIFA_STATS_LABELLED, AQM_COUNT, {} },
	{ "unlabelled", TCA_FIFA_STATS_UNLABELLED, AQM_COUNT, {} },
	{ "hit_robust", TCA_FIFA_STATS_ROBUST, AQM_COUNT, {} },
	{ "hit_fragile", TCA_FIFA_STATS_FRAGILE, AQM_COUNT, {} },
	{ "avg", TCA_FIFA_STATS_RED_AVG, AQM_FIXED, { .shift = 8 } },
	{ "price", TCA_FIFA_STATS_REM_PRICE, AQM_FIXED,
	  { .shift = TC_REM_PRICE_SHIFT } },
	{}
};

static int fifa_parse_opt(QDISC_CONST struct qdisc_util *qu, int argc,
			  char **argv, struct nlmsghdr *n, const char *dev)
{
	return aqm_parse_opt(options, qu->id, argc, argv, n, dev);
}

static int fifa_print_opt(QDISC_CONST struct qdisc_util *qu, FILE *f,
			  struct rtattr *opt)
{
	return aqm_print_opt(options, opt);
}

static int fifa_print_xstats(QDISC_CONST struct qdisc_util *qu, FILE *f,
			     struct rtattr *xstats)
{
	return aqm_print_xstats(statistics, xstats);
}

struct qdisc_util fifa_qdisc_util = {
	.id = "fifa",
	.parse_qopt = fifa_parse_opt,
	.print_qopt = fifa_print_opt,
	.print_xstats = fifa_print_xstats,
};
