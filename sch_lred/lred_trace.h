/* SPDX-License-Identifier: GPL-2.0-or-later */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM lred

#if !defined(_LRED_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _LRED_TRACE_H

#include <linux/tracepoint.h>
#include <aqm/lred.h>
#include <aqm/qdisc.h>

/* One decision of the law: ratio in Q48, prob in Q32, backlog in units. */
TRACE_EVENT(lred_decide,
	TP_PROTO(struct Qdisc *sch, unsigned int len, u64 backlog,
		 const struct lred_vars *vars, u64 prob,
		 enum aqm_verdict verdict),
	TP_ARGS(sch, len, backlog, vars, prob, verdict),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, handle)
		__field(unsigned int, len)
		__field(u64, backlog)
		__field(u64, ratio)
		__field(u64, prob)
		__field(int, verdict)
	),
	TP_fast_assign(
		__entry->ifindex = qdisc_dev(sch)->ifindex;
		__entry->handle = sch->handle;
		__entry->len = len;
		__entry->backlog = backlog;
		__entry->ratio = vars->ratio;
		__entry->prob = prob;
		__entry->verdict = verdict;
	),
	TP_printk("ifindex=%d handle=%x: len=%u backlog=%llu ratio=%llu prob=%llu verdict=%s",
		  __entry->ifindex, __entry->handle >> 16, __entry->len,
		  __entry->backlog, __entry->ratio, __entry->prob,
		  aqm_show_verdict(__entry->verdict))
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE lred_trace
#include <trace/define_trace.h>
