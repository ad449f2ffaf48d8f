/* SPDX-License-Identifier: GPL-2.0-or-later */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM pert

#if !defined(_PERT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _PERT_TRACE_H

#include <linux/tracepoint.h>
#include <net/tcp.h>
#include <aqm/pert.h>

/* What an ACK of so many packets measured, in us; window in packets. */
TRACE_EVENT(pert_sample,
	TP_PROTO(struct sock *sk, const struct ack_sample *sample, bool delayed),
	TP_ARGS(sk, sample, delayed),
	TP_STRUCT__entry(
		__field(u16, sport)
		__field(u16, dport)
		__field(u32, rtt)
		__field(u32, acked)
		__field(u32, window)
		__field(bool, delayed)
	),
	TP_fast_assign(
		__entry->sport = inet_sk(sk)->inet_num;
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->rtt = sample->rtt_us;
		__entry->acked = sample->pkts_acked;
		__entry->window = tcp_snd_cwnd(tcp_sk(sk));
		__entry->delayed = delayed;
	),
	TP_printk("sport=%u dport=%u: rtt=%u acked=%u window=%u delayed=%u",
		  __entry->sport, __entry->dport, __entry->rtt,
		  __entry->acked, __entry->window, __entry->delayed)
);

/* One decision: times in us, prob in Q32, window in packets before it. */
TRACE_EVENT(pert_decide,
	TP_PROTO(struct sock *sk, const struct pert_vars *vars, u64 prob,
		 bool respond),
	TP_ARGS(sk, vars, prob, respond),
	TP_STRUCT__entry(
		__field(u16, sport)
		__field(u16, dport)
		__field(u32, base)
		__field(u32, average)
		__field(u32, window)
		__field(u64, prob)
		__field(bool, respond)
	),
	TP_fast_assign(
		__entry->sport = inet_sk(sk)->inet_num;
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->base = vars->base.least;
		__entry->average = vars->average >> PERT_DELAY_SHIFT;
		__entry->window = tcp_snd_cwnd(tcp_sk(sk));
		__entry->prob = prob;
		__entry->respond = respond;
	),
	TP_printk("sport=%u dport=%u: base=%u average=%u window=%u prob=%llu respond=%u",
		  __entry->sport, __entry->dport, __entry->base,
		  __entry->average, __entry->window, __entry->prob,
		  __entry->respond)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE pert_trace
#include <trace/define_trace.h>
