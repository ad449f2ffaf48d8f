/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/* Netlink interface of the fifa queueing discipline. */
#ifndef _UAPI_LINUX_PKT_SCHED_FIFA_H
#define _UAPI_LINUX_PKT_SCHED_FIFA_H

#include <linux/pkt_sched_aqm.h>
#include <linux/pkt_sched_rem.h>

/* The law whose probability is scaled. */
enum {
	TC_FIFA_RED,
	TC_FIFA_PI,
	TC_FIFA_REM,
	__TC_FIFA_BASE_MAX
};

#define TC_FIFA_BASE_MAX (__TC_FIFA_BASE_MAX - 1)

/* RED's count of packets since the last one that was hit. */
enum {
	TC_FIFA_WAIT,		/* ns-2's */
	TC_FIFA_CLASSIC,
	__TC_FIFA_COUNT_MAX
};

#define TC_FIFA_COUNT_MAX (__TC_FIFA_COUNT_MAX - 1)

/* Options, besides pkt_sched_aqm.h's and, for base rem, pkt_sched_rem.h's. */
enum {
	TCA_FIFA_BASE = TCA_AQM_OWN + 16, /* u8: TC_FIFA_*, cannot be changed */
	TCA_FIFA_SCALE,		/* u8: 0 is the base alone */
	TCA_FIFA_EXPONENT_ROBUST, /* u64: Q16.48; not shown: the defaults */
	TCA_FIFA_EXPONENT_FRAGILE, /* u64: likewise */
	TCA_FIFA_RTT_MIN,	/* u64: ns, labels below count as this */
	TCA_FIFA_RTT_MAX,	/* u64: ns, labels above count as this */
	TCA_FIFA_RTT_WEIGHT,	/* u64: Q16.48, of a label in the average */
	TCA_FIFA_RED_MIN,	/* u32: packets */
	TCA_FIFA_RED_MAX,	/* u32: packets */
	TCA_FIFA_RED_PROBABILITY, /* u64: Q16.48, at max */
	TCA_FIFA_RED_QWEIGHT,	/* u64: Q16.48, of an arrival's queue */
	TCA_FIFA_RED_GENTLE,	/* u8: rise to 1 between max and 2 max */
	TCA_FIFA_RED_COUNT,	/* u8: TC_FIFA_WAIT or TC_FIFA_CLASSIC */
	TCA_FIFA_PI_A,		/* u64: Q16.48 */
	TCA_FIFA_PI_B,		/* u64: Q16.48 */
	TCA_FIFA_PI_SAMPLING,	/* u32: Hz */
	__TCA_FIFA_MAX
};

#define TCA_FIFA_MAX (__TCA_FIFA_MAX - 1)

/* Statistics, besides pkt_sched_aqm.h's, whose probability is the base's. */
enum {
	TCA_FIFA_STATS_PROB_SCALED = TCA_AQM_STATS_OWN, /* u64: Q32, last label's */
	TCA_FIFA_STATS_RTT_AVG,	/* u64: ns, R_average */
	TCA_FIFA_STATS_RTT_FORMULA, /* u64: ns, R_formula; 0 before a label */
	TCA_FIFA_STATS_LABELLED, /* u64: packets that had a label */
	TCA_FIFA_STATS_UNLABELLED, /* u64: packets that had none */
	TCA_FIFA_STATS_ROBUST,	/* u64: packets of robust flows hit early */
	TCA_FIFA_STATS_FRAGILE,	/* u64: packets of fragile flows hit early */
	TCA_FIFA_STATS_RED_AVG,	/* u64: Q8, RED's average queue, packets */
	TCA_FIFA_STATS_REM_PRICE, /* u64: Q24.40, REM's price */
	__TCA_FIFA_STATS_MAX
};

#define TCA_FIFA_STATS_MAX (__TCA_FIFA_STATS_MAX - 1)

#endif
