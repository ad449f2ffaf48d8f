// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CSFQ, Core-Stateless Fair Queueing (Stoica, Shenker, Zhang 1998).
 */

#include <linux/pkt_sched_csfq.h>

#include "aqm_util.h"

static const char *const roles[] = {
	[TC_CSFQ_BOTH] = "both",
	[TC_CSFQ_EDGE] = "edge",
	[TC_CSFQ_CORE] = "core",
	NULL
};

static const struct aqm_field options[] = {
	AQM_BANDWIDTH,
	AQM_LIMIT,
	{ "role", TCA_CSFQ_ROLE, AQM_CHOICE, { .words = roles } },
	{ "k", TCA_CSFQ_K, AQM_TIME, {} },
	{ "k-alpha", TCA_CSFQ_K_ALPHA, AQM_TIME, {} },
	{ "k-c", TCA_CSFQ_K_C, AQM_TIME, {} },
	{ "threshold", TCA_CSFQ_THRESHOLD, AQM_PACKETS, {} },
	AQM_AVPKT,
	AQM_BYTEMODE,
	AQM_ECN,
	AQM_PROTECT,
	{}
};

static const struct aqm_field statistics[] = {
	{ "fair_rate", TCA_CSFQ_STATS_FAIR, AQM_RATE, {} },
	{ "arrival_rate", TCA_CSFQ_STATS_ARRIVED, AQM_RATE, {} },
	{ "accepted_rate", TCA_CSFQ_STATS_ACCEPTED, AQM_RATE, {} },
	{ "congested", TCA_CSFQ_STATS_CONGESTED, AQM_COUNT, {} },
	{ "labelled", TCA_CSFQ_STATS_LABELLED, AQM_COUNT, {} },
	{ "unlabelled", TCA_CSFQ_STATS_UNLABELLED, AQM_COUNT, {} },
	{}
};

static int csfq_parse_opt(QDISC_CONST struct qdisc_util *qu, int argc,
			  char **argv, struct nlmsghdr *n, const char *dev)
{
	return aqm_parse_opt(options, qu->id, argc, argv, n, dev);
}

static int csfq_print_opt(QDISC_CONST struct qdisc_util *qu, FILE *f,
			  struct rtattr *opt)
{
	return aqm_print_opt(options, opt);
}

static int csfq_print_xstats(QDISC_CONST struct qdisc_util *qu, FILE *f,
			     struct rtattr *xstats)
{
	return aqm_print_xstats(statistics, xstats);
}

struct qdisc_util csfq_qdisc_util = {
	.id = "csfq",
	.parse_qopt = csfq_parse_opt,
	.print_qopt = csfq_print_opt,
	.print_xstats = csfq_print_xstats,
};
