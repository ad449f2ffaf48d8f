// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * AVQ, Adaptive Virtual Queue (Kunniyur, Srikant 2001).
 */

#include <linux/pkt_sched_avq.h>

#include "aqm_util.h"

static const struct aqm_field options[] = {
	AQM_BANDWIDTH,
	AQM_LIMIT,
	{ "alpha", TCA_AVQ_ALPHA, AQM_REAL, { .symbol = "A" } },
	{ "gamma", TCA_AVQ_GAMMA, AQM_REAL, { .symbol = "G" } },
	{ "buffer", TCA_AVQ_BUFFER, AQM_PACKETS, {} },
	AQM_AVPKT,
	AQM_BYTEMODE,
	AQM_ECN,
	AQM_PROTECT,
	{}
};

static const struct aqm_field statistics[] = {
	{ "virtual_capacity", TCA_AVQ_STATS_CAPACITY, AQM_PPS, {} },
	{ "virtual_queue", TCA_AVQ_STATS_QUEUE, AQM_FIXED, { .shift = 8 } },
	{}
};

static int avq_parse_opt(QDISC_CONST struct qdisc_util *qu, int argc,
			 char **argv, struct nlmsghdr *n, const char *dev)
{
	return aqm_parse_opt(options, qu->id, argc, argv, n, dev);
}

static int avq_print_opt(QDISC_CONST struct qdisc_util *qu, FILE *f,
			 struct rtattr *opt)
{
	return aqm_print_opt(options, opt);
}

static int avq_print_xstats(QDISC_CONST struct qdisc_util *qu, FILE *f,
			    struct rtattr *xstats)
{
	return aqm_print_xstats(statistics, xstats);
}

struct qdisc_util avq_qdisc_util = {
	.id = "avq",
	.parse_qopt = avq_parse_opt,
	.print_qopt = avq_print_opt,
	.print_xstats = avq_print_xstats,
};
