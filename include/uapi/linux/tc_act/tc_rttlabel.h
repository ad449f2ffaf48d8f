/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/* Netlink interface of the rttlabel action. */
#ifndef _UAPI_LINUX_TC_RTTLABEL_H
#define _UAPI_LINUX_TC_RTTLABEL_H

#include <linux/pkt_cls.h>
#include <linux/types.h>

/* Not one of Linux's own; an action has one of at most 255. */
#define TCA_ID_RTTLABEL 251

/* Where a packet's round-trip time is known from. */
enum {
	TC_RTTLABEL_SOCKET,	/* the socket that sends it */
	TC_RTTLABEL_HANDSHAKE,	/* SYN to ACK, as seen here */
	TC_RTTLABEL_TIMESTAMPS,	/* that, and TCP timestamps both ways */
	TC_RTTLABEL_CLEAR,	/* nowhere: the label is zeroed */
	TC_RTTLABEL_TIME,	/* configured */
	__TC_RTTLABEL_FROM_MAX
};

#define TC_RTTLABEL_FROM_MAX (__TC_RTTLABEL_FROM_MAX - 1)

struct tc_rttlabel {
	tc_gen;
};

enum {
	TCA_RTTLABEL_UNSPEC,
	TCA_RTTLABEL_TM,	/* struct tcf_t */
	TCA_RTTLABEL_PARMS,	/* struct tc_rttlabel */
	TCA_RTTLABEL_PAD,
	TCA_RTTLABEL_FROM,	/* u8: TC_RTTLABEL_* */
	TCA_RTTLABEL_TIME,	/* u64: ns, with TC_RTTLABEL_TIME */
	TCA_RTTLABEL_ERROR,	/* u64: Q16.48, falsify by up to this share */
	TCA_RTTLABEL_LABELLED,	/* u64: packets labelled (shown only) */
	TCA_RTTLABEL_CLEARED,	/* u64: packets whose label was zeroed (likewise) */
	__TCA_RTTLABEL_MAX
};

#define TCA_RTTLABEL_MAX (__TCA_RTTLABEL_MAX - 1)

#endif
