/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/* Netlink interface of the xqm queueing discipline. */
#ifndef _UAPI_LINUX_PKT_SCHED_XQM_H
#define _UAPI_LINUX_PKT_SCHED_XQM_H

#include <linux/pkt_sched_aqm.h>

#define TC_XQM_WEIGHTS		16	/* one for each value of skb->priority */
#define TC_XQM_PACKET_SHIFT	8	/* packets a second in statistics: Q8 */
#define TC_XQM_SHOWN_MAX	65000	/* flows shown as classes */

enum {
	TC_XQM_ONOFF,
	TC_XQM_PI_T,
	TC_XQM_PI_TB,
	__TC_XQM_CONTROL_MAX
};

#define TC_XQM_CONTROL_MAX (__TC_XQM_CONTROL_MAX - 1)

/* What a flow is. */
enum {
	TC_XQM_5TUPLE,
	TC_XQM_SRC_DST,
	TC_XQM_RTT_CLASS,
	__TC_XQM_FLOW_MAX
};

#define TC_XQM_FLOW_MAX (__TC_XQM_FLOW_MAX - 1)

/* Where a flow's round-trip time is known from. */
enum {
	TC_XQM_RTT_AUTO,	/* SYN to ACK, as seen here */
	TC_XQM_RTT_LABEL,	/* the label in the packet */
	TC_XQM_RTT_TIME,	/* TCA_XQM_RTT_TIME */
	__TC_XQM_RTT_MAX
};

#define TC_XQM_RTT_MAX (__TC_XQM_RTT_MAX - 1)

enum {
	TC_XQM_HIDE_OFF,
	TC_XQM_HIDE_ONOFF,
	TC_XQM_HIDE_SMOOTH,
	__TC_XQM_HIDE_MAX
};

#define TC_XQM_HIDE_MAX (__TC_XQM_HIDE_MAX - 1)

/* How a packet is hidden from losses elsewhere. */
enum {
	TC_XQM_HIDE_BY_DSCP,	/* TCA_XQM_HIDE_DSCP, which queues there protect */
	TC_XQM_HIDE_BY_COPY,	/* sent twice */
	__TC_XQM_HIDE_BY_MAX
};

#define TC_XQM_HIDE_BY_MAX (__TC_XQM_HIDE_BY_MAX - 1)

/* Options, besides pkt_sched_aqm.h's. */
enum {
	TCA_XQM_CONTROL = TCA_AQM_OWN, /* u8: TC_XQM_ONOFF, _PI_T, _PI_TB */
	TCA_XQM_CONTROL_PERIOD,	/* u64: ns */
	TCA_XQM_MEASURE_PERIOD,	/* u64: ns */
	TCA_XQM_DELTA,		/* u64: Q16.48, gain of the throughput */
	TCA_XQM_PHI,		/* u64: Q16.48, gain of the queue */
	TCA_XQM_FLOW,		/* u8: TC_XQM_5TUPLE, _SRC_DST, _RTT_CLASS */
	TCA_XQM_FLOWS,		/* u32: flows known at most */
	TCA_XQM_SHORT,		/* u32: packets of a flow left alone */
	TCA_XQM_SHORT_SHARE,	/* u64: bytes/s set aside for short flows */
	TCA_XQM_RTT,		/* u8: TC_XQM_RTT_* */
	TCA_XQM_RTT_TIME,	/* u64: ns, with TC_XQM_RTT_TIME */
	TCA_XQM_SHARE,		/* u64: bytes/s of weight 1, 0 = the fair one */
	TCA_XQM_HIDE,		/* u8: TC_XQM_HIDE_* */
	TCA_XQM_HIDE_BY,	/* u8: TC_XQM_HIDE_BY_DSCP, _COPY */
	TCA_XQM_HIDE_DSCP,	/* u8: DSCP that hidden packets get */
	TCA_XQM_WEIGHTS,	/* TC_XQM_WEIGHTS u16 */
	__TCA_XQM_MAX
};

#define TCA_XQM_MAX (__TCA_XQM_MAX - 1)

/* Statistics, besides pkt_sched_aqm.h's, whose probability is the last flow's. */
enum {
	TCA_XQM_STATS_FLOWS = TCA_AQM_STATS_OWN, /* u64: within the period */
	TCA_XQM_STATS_SHARE,	/* u64: Q8 packets/s of weight 1 */
	TCA_XQM_STATS_CAPACITY,	/* u64: Q8 packets/s of the link */
	TCA_XQM_STATS_RTT,	/* u64: ns, mean of flows whose RTT is known */
	TCA_XQM_STATS_IMPOSED,	/* u64: packets of flows dropped or marked early */
	TCA_XQM_STATS_HIDDEN,	/* u64: packets hidden */
	TCA_XQM_STATS_EXEMPT,	/* u64: packets of short flows */
	TCA_XQM_STATS_EVICTED,	/* u64: flows forgotten for want of room */
	TCA_XQM_STATS_NOT_SHOWN, /* u64: flows that are too many to be classes */
	__TCA_XQM_STATS_MAX
};

#define TCA_XQM_STATS_MAX (__TCA_XQM_STATS_MAX - 1)

/* Statistics of a class, which is a flow; rates of loss in Q32. */
enum {
	TCA_XQM_CLASS_SHARE = __TCA_XQM_STATS_MAX, /* u64: Q8 packets/s */
	TCA_XQM_CLASS_THROUGHPUT, /* u64: Q8 packets/s */
	TCA_XQM_CLASS_RTT,	/* u64: ns, without queues; 0 = not known */
	TCA_XQM_CLASS_QUIESCENT, /* u64: loss rate; 0 = not known */
	TCA_XQM_CLASS_IMPOSED,	/* u64: loss rate */
	TCA_XQM_CLASS_EXOGENOUS, /* u64: loss rate inferred */
	TCA_XQM_CLASS_HIDDEN,	/* u64: share of the packets that is hidden */
	TCA_XQM_CLASS_WEIGHT,	/* u64 */
	__TCA_XQM_CLASS_MAX
};

#define TCA_XQM_CLASS_MAX (__TCA_XQM_CLASS_MAX - 1)

#endif
