/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/*
 * Netlink interface that all aqmkit queueing disciplines share.
 *
 * A discipline's own attributes start at TCA_AQM_OWN (options) and
 * TCA_AQM_STATS_OWN (statistics); the numbers below mean the same in each.
 *
 * Real numbers (gains, bases, weights) travel as u64 Q16.48: value * 2^48.
 * Probabilities travel as u64 Q32: 1 << 32 is certainty. Times are u64
 * nanoseconds, rates u64 bytes per second, as in tc.
 */
#ifndef _UAPI_LINUX_PKT_SCHED_AQM_H
#define _UAPI_LINUX_PKT_SCHED_AQM_H

#define TC_AQM_REAL_SHIFT	48	/* Q16.48 */
#define TC_AQM_PROB_SHIFT	32	/* Q32 */
#define TC_AQM_NO_DSCP		0xff	/* TCA_AQM_PROTECT: protect nothing */

/* Options, inside TCA_OPTIONS. */
enum {
	TCA_AQM_UNSPEC,
	TCA_AQM_PAD,
	TCA_AQM_LIMIT,		/* u32: packets the queue holds at most */
	TCA_AQM_TARGET,		/* u32: packets the law aims at */
	TCA_AQM_ECN,		/* u8: mark ECN-capable packets, not drop */
	TCA_AQM_BYTEMODE,	/* u8: count bytes / avpkt, not packets */
	TCA_AQM_AVPKT,		/* u32: bytes of a packet, 0 = measure */
	TCA_AQM_PROTECT,	/* u8: DSCP spared from early drops */
	TCA_AQM_BANDWIDTH,	/* u64: bytes/s of the link, 0 = unknown */
	TCA_AQM_OWN = 32,
};

/* Statistics, inside TCA_STATS_APP. */
enum {
	TCA_AQM_STATS_UNSPEC,
	TCA_AQM_STATS_PAD,
	TCA_AQM_STATS_PROB,	/* u64: Q32, the law's present probability */
	TCA_AQM_STATS_DELAY,	/* u64: ns the last packet out had waited */
	TCA_AQM_STATS_PKTS_IN,	/* u64: packets accepted into the queue */
	TCA_AQM_STATS_OVERLIMIT, /* u64: packets dropped for want of room */
	TCA_AQM_STATS_DROPPED,	/* u64: packets dropped early, by the law */
	TCA_AQM_STATS_MAXQ,	/* u64: most packets ever queued */
	TCA_AQM_STATS_ECN_MARK,	/* u64: packets marked CE */
	TCA_AQM_STATS_PROTECTED, /* u64: packets spared by their DSCP */
	TCA_AQM_STATS_QUEUE,	/* u64: packets queued, segments counted */
	TCA_AQM_STATS_OWN = 32,
};

#endif
