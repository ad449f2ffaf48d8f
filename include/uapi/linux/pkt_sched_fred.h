/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/* Netlink interface of the fred queueing discipline. */
#ifndef _UAPI_LINUX_PKT_SCHED_FRED_H
#define _UAPI_LINUX_PKT_SCHED_FRED_H

#include <linux/pkt_sched_aqm.h>

/* Options, besides pkt_sched_aqm.h's; there is no target. */
enum {
	TCA_FRED_RED_MIN = TCA_AQM_OWN, /* u32: min_th, packets */
	TCA_FRED_RED_MAX,		/* u32: max_th, packets */
	TCA_FRED_RED_PROBABILITY,	/* u64: Q16.48, max_p */
	TCA_FRED_RED_QWEIGHT,	/* u64: Q16.48, w_q */
	TCA_FRED_MINQ,		/* u32: packets a flow may always have */
	__TCA_FRED_MAX
};

#define TCA_FRED_MAX (__TCA_FRED_MAX - 1)

/* Statistics, besides pkt_sched_aqm.h's. */
enum {
	TCA_FRED_STATS_AVG = TCA_AQM_STATS_OWN, /* u64: Q8, packets */
	TCA_FRED_STATS_ACTIVE,	/* u64: flows that have packets queued */
	TCA_FRED_STATS_STRUCK,	/* u64: packets that were strikes */
	__TCA_FRED_STATS_MAX
};

#define TCA_FRED_STATS_MAX (__TCA_FRED_STATS_MAX - 1)

#endif
