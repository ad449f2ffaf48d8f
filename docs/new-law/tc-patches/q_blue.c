// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * BLUE (Feng, Kandlur, Saha, Shin 1999).
 */

#include <linux/pkt_sched_blue.h>

#include "aqm_util.h"

static const struct aqm_field options[] = {
	AQM_LIMIT,
	{ "d1", TCA_BLUE_UP, AQM_REAL, { .symbol = "D1" } },
	{ "d2", TCA_BLUE_DOWN, AQM_REAL, { .symbol = "D2" } },
	{ "freeze", TCA_BLUE_FREEZE, AQM_TIME, {} },
	AQM_ECN,
	AQM_PROTECT,
	{}
};

/* It has none besides those that all have: its p is prob. */
static const struct aqm_field statistics[] = {
	{}
};

static int blue_parse_opt(QDISC_CONST struct qdisc_util *qu, int argc,
			  char **argv, struct nlmsghdr *n, const char *dev)
{
	return aqm_parse_opt(options, qu->id, argc, argv, n, dev);
}

static int blue_print_opt(QDISC_CONST struct qdisc_util *qu, FILE *f,
			  struct rtattr *opt)
{
	return aqm_print_opt(options, opt);
}

static int blue_print_xstats(QDISC_CONST struct qdisc_util *qu, FILE *f,
			     struct rtattr *xstats)
{
	return aqm_print_xstats(statistics, xstats);
}

struct qdisc_util blue_qdisc_util = {
	.id = "blue",
	.parse_qopt = blue_parse_opt,
	.print_qopt = blue_print_opt,
	.print_xstats = blue_print_xstats,
};
