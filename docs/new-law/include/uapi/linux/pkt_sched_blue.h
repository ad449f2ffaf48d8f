/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/* Netlink interface of the blue queueing discipline. */
#ifndef _UAPI_LINUX_PKT_SCHED_BLUE_H
#define _UAPI_LINUX_PKT_SCHED_BLUE_H

#include <linux/pkt_sched_aqm.h>

/* Options, besides pkt_sched_aqm.h's. */
enum {
	TCA_BLUE_UP = TCA_AQM_OWN, /* u64: Q16.48, d1 */
	TCA_BLUE_DOWN,		/* u64: Q16.48, d2 */
	TCA_BLUE_FREEZE,	/* u64: ns */
	__TCA_BLUE_MAX
};

#define TCA_BLUE_MAX (__TCA_BLUE_MAX - 1)

#endif
