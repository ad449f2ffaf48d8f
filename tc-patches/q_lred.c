// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * LRED, Loss Ratio-based RED (Wang, Liu, Li, Sohraby, Hou 2007).
 */

#include <linux/pkt_sched_lred.h>

#include "aqm_util.h"

static const struct aqm_field options[] = {
	AQM_LIMIT,
	AQM_TARGET,
	{ "beta", TCA_LRED_BETA, AQM_REAL, { .symbol = "B" } },
	{ "period", TCA_LRED_PERIOD, AQM_TIME, {} },
	{ "periods", TCA_LRED_PERIODS, AQM_COUNT, { .symbol = "M" } },
	{ "weight", TCA_LRED_WEIGHT, AQM_REAL, { .symbol = "W" } },
	AQM_AVPKT,
	AQM_BYTEMODE,
	AQM_ECN,
	AQM_PROTECT,
	{}
};

static const struct aqm_field statistics[] = {
	{ "loss_ratio", TCA_LRED_STATS_LOSS_RATIO, AQM_FIXED,
	  { .shift = TC_AQM_PROB_SHIFT } },
	{ "arrivals", TCA_LRED_STATS_ARRIVALS, AQM_COUNT, {} },
	{}
};

static int lred_parse_opt(QDISC_CONST struct qdisc_util *qu, int argc,
			  char **argv, struct nlmsghdr *n, const char *dev)
{
	return aqm_parse_opt(options, qu->id, argc, argv, n, dev);
}

static int lred_print_opt(QDISC_CONST struct qdisc_util *qu, FILE *f,
			  struct rtattr *opt)
{
	return aqm_print_opt(options, opt);
}

static int lred_print_xstats(QDISC_CONST struct qdisc_util *qu, FILE *f,
			     struct rtattr *xstats)
{
	return aqm_print_xstats(statistics, xstats);
}

struct qdisc_util lred_qdisc_util = {
	.id = "lred",
	.parse_qopt = lred_parse_opt,
	.print_qopt = lred_print_opt,
	.print_xstats = lred_print_xstats,
};
