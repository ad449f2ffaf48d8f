/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/* Netlink interface of the rem queueing discipline. */
#ifndef _UAPI_LINUX_PKT_SCHED_REM_H
#define _UAPI_LINUX_PKT_SCHED_REM_H

#include <linux/pkt_sched_aqm.h>

/* What the price is computed from. */
enum {
	TC_REM_AUTO,		/* backlog if bandwidth is given, else queue */
	TC_REM_BACKLOG,		/* change of the queue, less the idle time */
	TC_REM_QUEUE,		/* change of the queue: the paper's eq. (4) */
	TC_REM_RATE,		/* rate mismatch: the paper's eq. (2) */
	__TC_REM_MEASURE_MAX
};

#define TC_REM_MEASURE_MAX (__TC_REM_MEASURE_MAX - 1)

/* Options, besides pkt_sched_aqm.h's. */
enum {
	TCA_REM_INTERVAL = TCA_AQM_OWN, /* u64: ns between price updates */
	TCA_REM_ALPHA,		/* u64: Q16.48, weight of the queue mismatch */
	TCA_REM_GAMMA,		/* u64: Q16.48, step of the price */
	TCA_REM_PHI,		/* u64: Q16.48, base of the exponential */
	TCA_REM_MEASURE,	/* u8: TC_REM_* */
	__TCA_REM_MAX
};

#define TCA_REM_MAX (__TCA_REM_MAX - 1)

/* Statistics, besides pkt_sched_aqm.h's. */
enum {
	TCA_REM_STATS_PRICE = TCA_AQM_STATS_OWN, /* u64: Q24.40 */
	TCA_REM_STATS_CAPACITY,	/* u64: Q8, packets/s; 0 = unknown */
	__TCA_REM_STATS_MAX
};

#define TCA_REM_STATS_MAX (__TCA_REM_STATS_MAX - 1)
#define TC_REM_PRICE_SHIFT 40

#endif
