// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * FRED, Flow Random Early Drop (Lin, Morris 1997).
 */

#include <linux/pkt_sched_fred.h>

#include "aqm_util.h"

static const struct aqm_field options[] = {
	AQM_LIMIT,
	{ "min", TCA_FRED_RED_MIN, AQM_PACKETS, {} },
	{ "max", TCA_FRED_RED_MAX, AQM_PACKETS, {} },
	{ "probability", TCA_FRED_RED_PROBABILITY, AQM_REAL, { .symbol = "P" } },
	{ "qweight", TCA_FRED_RED_QWEIGHT, AQM_REAL, { .symbol = "W" } },
	{ "minq", TCA_FRED_MINQ, AQM_PACKETS, {} },
	AQM_BANDWIDTH,
	AQM_AVPKT,
	AQM_BYTEMODE,
	AQM_ECN,
	AQM_PROTECT,
	{}
};

static const struct aqm_field statistics[] = {
	{ "avg", TCA_FRED_STATS_AVG, AQM_FIXED, { .shift = 8 } },
	{ "active", TCA_FRED_STATS_ACTIVE, AQM_COUNT, {} },
	{ "struck", TCA_FRED_STATS_STRUCK, AQM_COUNT, {} },
	{}
};

static int fred_parse_opt(QDISC_CONST struct qdisc_util *qu, int argc,
			  char **argv, struct nlmsghdr *n, const char *dev)
{
	return aqm_parse_opt(options, qu->id, argc, argv, n, dev);
}

static int fred_print_opt(QDISC_CONST struct qdisc_util *qu, FILE *f,
			  struct rtattr *opt)
{
	return aqm_print_opt(options, opt);
}

static int fred_print_xstats(QDISC_CONST struct qdisc_util *qu, FILE *f,
			     struct rtattr *xstats)
{
	return aqm_print_xstats(statistics, xstats);
}

struct qdisc_util fred_qdisc_util = {
	.id = "fred",
	.parse_qopt = fred_parse_opt,
	.print_qopt = fred_print_opt,
	.print_xstats = fred_print_xstats,
};
