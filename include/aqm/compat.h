/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Differences between kernels, 6.1 and later. The only file that knows of them,
 * and by probes rather than version numbers, since distributions backport.
 */
#ifndef AQM_COMPAT_H
#define AQM_COMPAT_H

#include <net/pkt_sched.h>

/* 6.8: modules are asked for as net-sch-<id> instead of sch_<id>. */
#ifndef MODULE_ALIAS_NET_SCH
#define MODULE_ALIAS_NET_SCH(id) MODULE_ALIAS("net-sch-" id)
#endif
#ifndef MODULE_ALIAS_NET_ACT
#define MODULE_ALIAS_NET_ACT(kind) MODULE_ALIAS("net-act-" kind)
#endif

/* 6.7: TCP timestamps of us instead of ms, where the route says so. */
#ifdef RTAX_FEATURE_TCP_USEC_TS
#define aqm_tcp_usec_ts(tp) ((tp)->tcp_usec_ts)
#else
#define aqm_tcp_usec_ts(tp) ((void)(tp), false)
#endif

/* 6.18: ECN comes in two modes; that of RFC 3168 is meant. */
#ifdef TCP_ECN_OK
#define aqm_tcp_ecn(tp) ((bool)((tp)->ecn_flags & TCP_ECN_OK))
#else
#define aqm_tcp_ecn(tp) tcp_ecn_mode_rfc3168(tp)
#endif

#endif
