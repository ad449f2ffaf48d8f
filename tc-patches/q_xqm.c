// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * XQM, eXogenous-loss aware Queue Management (Guirguis, Bestavros, Matta).
 */

#include <linux/pkt_sched_xqm.h>

#include "aqm_util.h"

static const char *const controls[] = {
	[TC_XQM_ONOFF] = "onoff",
	[TC_XQM_PI_T] = "pi-t",
	[TC_XQM_PI_TB] = "pi-tb",
	NULL
};

static const char *const flows[] = {
	[TC_XQM_5TUPLE] = "5tuple",
	[TC_XQM_SRC_DST] = "src-dst",
	[TC_XQM_RTT_CLASS] = "rtt-class",
	NULL
};

/* and TC_XQM_RTT_TIME is a time */
static const char *const rtts[] = {
	[TC_XQM_RTT_AUTO] = "auto",
	[TC_XQM_RTT_LABEL] = "label",
	NULL
};

static const char *const hides[] = {
	[TC_XQM_HIDE_OFF] = "off",
	[TC_XQM_HIDE_ONOFF] = "onoff",
	[TC_XQM_HIDE_SMOOTH] = "smooth",
	NULL
};

static const char *const hides_by[] = {
	[TC_XQM_HIDE_BY_DSCP] = "dscp",
	[TC_XQM_HIDE_BY_COPY] = "copy",
	NULL
};

static const struct aqm_field options[] = {
	AQM_BANDWIDTH,
	{ "control", TCA_XQM_CONTROL, AQM_CHOICE, { .words = controls } },
	AQM_LIMIT,
	AQM_TARGET,
	{ "control-period", TCA_XQM_CONTROL_PERIOD, AQM_TIME, {} },
	{ "measure-period", TCA_XQM_MEASURE_PERIOD, AQM_TIME, {} },
	{ "delta", TCA_XQM_DELTA, AQM_REAL, { .symbol = "D" } },
	{ "phi", TCA_XQM_PHI, AQM_REAL, { .symbol = "P" } },
	{ "flow", TCA_XQM_FLOW, AQM_CHOICE, { .words = flows } },
	{ "flows", TCA_XQM_FLOWS, AQM_COUNT, { .symbol = "N" } },
	{ "short", TCA_XQM_SHORT, AQM_PACKETS, {} },
	{ "short-share", TCA_XQM_SHORT_SHARE, AQM_RATE, {} },
	{ "rtt", TCA_XQM_RTT, AQM_WORD_TIME, { .words = rtts } },
	{ "share", TCA_XQM_SHARE, AQM_RATE, { .symbol = "auto" } },
	{ "hide", TCA_XQM_HIDE, AQM_CHOICE, { .words = hides } },
	{ "hide-by", TCA_XQM_HIDE_BY, AQM_CHOICE, { .words = hides_by } },
	{ "hide-dscp", TCA_XQM_HIDE_DSCP, AQM_DSCP, {} },
	{ "weights", TCA_XQM_WEIGHTS, AQM_WEIGHTS, {} },
	AQM_AVPKT,
	AQM_BYTEMODE,
	AQM_ECN,
	AQM_PROTECT,
	{}
};

static const struct aqm_field statistics[] = {
	{ "flows", TCA_XQM_STATS_FLOWS, AQM_COUNT, {} },
	{ "share", TCA_XQM_STATS_SHARE, AQM_PPS, {} },
	{ "capacity", TCA_XQM_STATS_CAPACITY, AQM_PPS, {} },
	{ "rtt_avg", TCA_XQM_STATS_RTT, AQM_DELAY, {} },
	{ "imposed", TCA_XQM_STATS_IMPOSED, AQM_COUNT, {} },
	{ "hidden", TCA_XQM_STATS_HIDDEN, AQM_COUNT, {} },
	{ "exempt", TCA_XQM_STATS_EXEMPT, AQM_COUNT, {} },
	{ "evicted", TCA_XQM_STATS_EVICTED, AQM_COUNT, {} },
	{ "not_shown", TCA_XQM_STATS_NOT_SHOWN, AQM_COUNT, {} },
	{}
};

#define LOSS_RATE	{ .shift = TC_AQM_PROB_SHIFT }

static const struct aqm_field class_statistics[] = {
	{ "share", TCA_XQM_CLASS_SHARE, AQM_PPS, {} },
	{ "throughput", TCA_XQM_CLASS_THROUGHPUT, AQM_PPS, {} },
	{ "rtt", TCA_XQM_CLASS_RTT, AQM_DELAY, {} },
	{ "quiescent", TCA_XQM_CLASS_QUIESCENT, AQM_FIXED, LOSS_RATE },
	{ "imposed_rate", TCA_XQM_CLASS_IMPOSED, AQM_FIXED, LOSS_RATE },
	{ "exogenous", TCA_XQM_CLASS_EXOGENOUS, AQM_FIXED, LOSS_RATE },
	{ "hidden_share", TCA_XQM_CLASS_HIDDEN, AQM_FIXED, LOSS_RATE },
	{ "weight", TCA_XQM_CLASS_WEIGHT, AQM_COUNT, {} },
	{}
};

static int xqm_parse_opt(QDISC_CONST struct qdisc_util *qu, int argc,
			 char **argv, struct nlmsghdr *n, const char *dev)
{
	return aqm_parse_opt(options, qu->id, argc, argv, n, dev);
}

static int xqm_print_opt(QDISC_CONST struct qdisc_util *qu, FILE *f,
			 struct rtattr *opt)
{
	return aqm_print_opt(options, opt);
}

/* tc asks the same of a qdisc and of its classes, which have other statistics. */
static int xqm_print_xstats(QDISC_CONST struct qdisc_util *qu, FILE *f,
			    struct rtattr *xstats)
{
	struct rtattr *tb[TCA_XQM_CLASS_MAX + 1] = {};

	if (xstats)
		parse_rtattr_nested(tb, TCA_XQM_CLASS_MAX, xstats);
	if (!tb[TCA_AQM_STATS_QUEUE])
		return aqm_print_class_xstats(class_statistics, xstats);
	return aqm_print_xstats(statistics, xstats);
}

struct qdisc_util xqm_qdisc_util = {
	.id = "xqm",
	.parse_qopt = xqm_parse_opt,
	.print_qopt = xqm_print_opt,
	.print_xstats = xqm_print_xstats,
};
