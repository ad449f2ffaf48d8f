/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/* Netlink interface of the avq queueing discipline. */
#ifndef _UAPI_LINUX_PKT_SCHED_AVQ_H
#define _UAPI_LINUX_PKT_SCHED_AVQ_H

#include <linux/pkt_sched_aqm.h>

/* Options, besides pkt_sched_aqm.h's; there is no target. */
enum {
	TCA_AVQ_ALPHA = TCA_AQM_OWN, /* u64: Q16.48, smoothing, a second */
	TCA_AVQ_GAMMA,		/* u64: Q16.48, desired utilisation */
	TCA_AVQ_BUFFER,		/* u32: packets the virtual queue holds, 0 = limit */
	__TCA_AVQ_MAX
};

#define TCA_AVQ_MAX (__TCA_AVQ_MAX - 1)

/* Statistics, besides pkt_sched_aqm.h's. */
enum {
	TCA_AVQ_STATS_CAPACITY = TCA_AQM_STATS_OWN, /* u64: Q8, packets/s, virtual */
	TCA_AVQ_STATS_QUEUE,	/* u64: Q8, packets in the virtual queue */
	__TCA_AVQ_STATS_MAX
};

#define TCA_AVQ_STATS_MAX (__TCA_AVQ_STATS_MAX - 1)

#endif
