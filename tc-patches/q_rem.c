// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * REM, Random Exponential Marking (Athuraliya, Li, Low, Yin 2000).
 */

#include "aqm_util.h"

static const struct aqm_field options[] = {
	AQM_LIMIT,
	AQM_TARGET,
	AQM_REM_INTERVAL,
	AQM_REM_ALPHA,
	AQM_REM_GAMMA,
	AQM_REM_PHI,
	AQM_REM_MEASURE,
	AQM_BANDWIDTH,
	AQM_AVPKT,
	AQM_BYTEMODE,
	AQM_ECN,
	AQM_PROTECT,
	{}
};

static const struct aqm_field statistics[] = {
	{ "price", TCA_REM_STATS_PRICE, AQM_FIXED,
	  { .shift = TC_REM_PRICE_SHIFT } },
	{ "capacity", TCA_REM_STATS_CAPACITY, AQM_PPS, {} },
	{}
};

static int rem_parse_opt(QDISC_CONST struct qdisc_util *qu, int argc,
			 char **argv, struct nlmsghdr *n, const char *dev)
{
	return aqm_parse_opt(options, qu->id, argc, argv, n, dev);
}

static int rem_print_opt(QDISC_CONST struct qdisc_util *qu, FILE *f,
			 struct rtattr *opt)
{
	return aqm_print_opt(options, opt);
}

static int rem_print_xstats(QDISC_CONST struct qdisc_util *qu, FILE *f,
			    struct rtattr *xstats)
{
	return aqm_print_xstats(statistics, xstats);
}

struct qdisc_util rem_qdisc_util = {
	.id = "rem",
	.parse_qopt = rem_parse_opt,
	.print_qopt = rem_print_opt,
	.print_xstats = rem_print_xstats,
};
