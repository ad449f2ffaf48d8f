/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/* Netlink interface of the csfq queueing discipline. */
#ifndef _UAPI_LINUX_PKT_SCHED_CSFQ_H
#define _UAPI_LINUX_PKT_SCHED_CSFQ_H

#include <linux/pkt_sched_aqm.h>

/* Where a packet's label comes from, and whether it goes on. */
enum {
	TC_CSFQ_BOTH,		/* estimated, and used here only */
	TC_CSFQ_EDGE,		/* estimated, and left in the packet */
	TC_CSFQ_CORE,		/* found in the packet, and left there */
	__TC_CSFQ_ROLE_MAX
};

#define TC_CSFQ_ROLE_MAX (__TC_CSFQ_ROLE_MAX - 1)

/* Options, besides pkt_sched_aqm.h's; there is no target. */
enum {
	TCA_CSFQ_ROLE = TCA_AQM_OWN, /* u8: TC_CSFQ_* */
	TCA_CSFQ_K,		/* u64: ns, K, of a flow's rate */
	TCA_CSFQ_K_ALPHA,	/* u64: ns, K_alpha, of the link's rates */
	TCA_CSFQ_K_C,		/* u64: ns, K_c, between settings of alpha */
	TCA_CSFQ_THRESHOLD,	/* u32: packets from which there is congestion */
	__TCA_CSFQ_MAX
};

#define TCA_CSFQ_MAX (__TCA_CSFQ_MAX - 1)

/* Statistics, besides pkt_sched_aqm.h's. */
enum {
	TCA_CSFQ_STATS_FAIR = TCA_AQM_STATS_OWN, /* u64: bytes/s; 0 = unknown */
	TCA_CSFQ_STATS_ARRIVED,	/* u64: bytes/s */
	TCA_CSFQ_STATS_ACCEPTED, /* u64: bytes/s */
	TCA_CSFQ_STATS_CONGESTED, /* u64: 0 or 1 */
	TCA_CSFQ_STATS_LABELLED, /* u64: packets that had a label, or got one */
	TCA_CSFQ_STATS_UNLABELLED, /* u64: packets without */
	__TCA_CSFQ_STATS_MAX
};

#define TCA_CSFQ_STATS_MAX (__TCA_CSFQ_STATS_MAX - 1)

#endif
