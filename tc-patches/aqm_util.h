/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the tc side of aqmkit's qdiscs has in common.
 *
 * A qdisc is two tables, one of its options and one of its statistics; the
 * functions below read, send and show whatever such a table lists.
 */
#ifndef _AQM_UTIL_H_
#define _AQM_UTIL_H_ 1

#include <linux/pkt_sched_aqm.h>
#include <linux/pkt_sched_rem.h>

#include "utils.h"
#include "tc_util.h"

/* tc declares what it hands to a qdisc const since 6.9; our Makefile probes. */
#ifndef QDISC_CONST
#define QDISC_CONST const
#endif

/* How a value is typed and shown; what is "off" or unknown only JSON shows. */
enum aqm_form {
	AQM_COUNT,	/* whole number of .symbol */
	AQM_PACKETS,	/* whole number, shown as 20p */
	AQM_BYTES,	/* size, 0 is off */
	AQM_TIME,	/* nanoseconds, shown so that they can be typed back */
	AQM_DELAY,	/* nanoseconds, shown rounded */
	AQM_RATE,	/* bytes per second, 0 is unknown, or typed .symbol */
	AQM_PPS,	/* packets per second in 1/256, 0 is unknown */
	AQM_REAL,	/* Q16.48, shown so that it can be typed back */
	AQM_FIXED,	/* fixed point with .shift fraction bits, shown rounded */
	AQM_FLAG,	/* the option's name, or its name after "no" */
	AQM_SWITCH,	/* the same, but "no" is shown too */
	AQM_DSCP,	/* 0 to 63, or none */
	AQM_CHOICE,	/* one of .words, which stand at the numbers they mean */
	AQM_WORD_TIME,	/* the same, or the number after them, and a time in
			 * the netlink attribute after this one
			 */
	AQM_WEIGHTS,	/* AQM_WEIGHTS_MAX whole numbers, those at the end 1 */
};

#define AQM_WEIGHTS_MAX	16

struct aqm_field {
	const char *name;	/* in tc, in the human form and in JSON */
	int type;		/* netlink attribute */
	enum aqm_form form;
	union {
		const char *symbol;	/* AQM_REAL, AQM_COUNT: the paper's */
		const char *const *words;	/* of a choice: NULL ends them */
		int shift;			/* AQM_FIXED */
	};
};

/* The options that all share, for a qdisc to list where it wants them shown. */
#define AQM_LIMIT	{ "limit", TCA_AQM_LIMIT, AQM_PACKETS, {} }
#define AQM_TARGET	{ "target", TCA_AQM_TARGET, AQM_PACKETS, {} }
#define AQM_BANDWIDTH	{ "bandwidth", TCA_AQM_BANDWIDTH, AQM_RATE, {} }
#define AQM_AVPKT	{ "avpkt", TCA_AQM_AVPKT, AQM_BYTES, {} }
#define AQM_BYTEMODE	{ "bytemode", TCA_AQM_BYTEMODE, AQM_FLAG, {} }
#define AQM_ECN		{ "ecn", TCA_AQM_ECN, AQM_FLAG, {} }
#define AQM_PROTECT	{ "protect", TCA_AQM_PROTECT, AQM_DSCP, {} }

/* REM's own options, which fifa has too where REM is its base. */
extern const char *const aqm_rem_measures[];

#define AQM_REM_INTERVAL { "interval", TCA_REM_INTERVAL, AQM_TIME, {} }
#define AQM_REM_ALPHA	{ "alpha", TCA_REM_ALPHA, AQM_REAL, { .symbol = "A" } }
#define AQM_REM_GAMMA	{ "gamma", TCA_REM_GAMMA, AQM_REAL, { .symbol = "G" } }
#define AQM_REM_PHI	{ "phi", TCA_REM_PHI, AQM_REAL, { .symbol = "P" } }
#define AQM_REM_MEASURE	{ "measure", TCA_REM_MEASURE, AQM_CHOICE, \
			  { .words = aqm_rem_measures } }

/* Tables end with a field that has no name. An option table has 64 at most. */
int aqm_parse_opt(const struct aqm_field *options, const char *kind, int argc,
		  char **argv, struct nlmsghdr *n, const char *dev);
int aqm_print_opt(const struct aqm_field *options, struct rtattr *opt);
int aqm_print_xstats(const struct aqm_field *own, struct rtattr *xstats);
int aqm_print_class_xstats(const struct aqm_field *own, struct rtattr *xstats);

/* 0, or -1 if @arg is none. A time is in ns, and typed as in tc(8). */
int aqm_get_duration(__u64 *value, const char *arg);
int aqm_get_choice(__u64 *value, const char *arg, const char *const *words);
void aqm_print_time(const char *name, __u64 ns, bool exact);
const char *aqm_word_at(const char *const *words, __u64 number);

#endif
