/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/* Netlink interface of the lred queueing discipline. */
#ifndef _UAPI_LINUX_PKT_SCHED_LRED_H
#define _UAPI_LINUX_PKT_SCHED_LRED_H

#include <linux/pkt_sched_aqm.h>

/* Options, besides pkt_sched_aqm.h's. */
enum {
	TCA_LRED_BETA = TCA_AQM_OWN, /* u64: Q16.48, gain of the queue mismatch */
	TCA_LRED_PERIOD,	/* u64: ns between two measurements */
	TCA_LRED_PERIODS,	/* u32: periods that a loss ratio is over */
	TCA_LRED_WEIGHT,	/* u64: Q16.48, weight of the old loss ratio */
	__TCA_LRED_MAX
};

#define TCA_LRED_MAX (__TCA_LRED_MAX - 1)

/* Statistics, besides pkt_sched_aqm.h's. */
enum {
	TCA_LRED_STATS_LOSS_RATIO = TCA_AQM_STATS_OWN, /* u64: Q32, averaged */
	TCA_LRED_STATS_ARRIVALS, /* u64: packets that came, dropped ones too */
	__TCA_LRED_STATS_MAX
};

#define TCA_LRED_STATS_MAX (__TCA_LRED_STATS_MAX - 1)

#endif
