/* SPDX-License-Identifier: GPL-2.0-or-later */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rem

#if !defined(_REM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _REM_TRACE_H

#include <linux/tracepoint.h>
#include <aqm/qdisc.h>
#include <aqm/rem.h>

/* One decision of the law: price in Q40, prob in Q32, backlog in units. */
TRACE_EVENT(rem_decide,
	TP_PROTO(struct Qdisc *sch, unsigned int len, u64 backlog,
		 const struct rem_vars *vars, enum aqm_verdict verdict),
	TP_ARGS(sch, len, backlog, vars, verdict),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, handle)
		__field(unsigned int, len)
		__field(u64, backlog)
		__field(u64, price)
		__field(u64, prob)
		__field(int, verdict)
	),
	TP_fast_assign(
		__entry->ifindex = qdisc_dev(sch)->ifindex;
		__entry->handle = sch->handle;
		__entry->len = len;
		__entry->backlog = backlog;
		__entry->price = vars->price;
		__entry->prob = vars->probability;
		__entry->verdict = verdict;
	),
	TP_printk("ifindex=%d handle=%x: len=%u backlog=%llu price=%llu prob=%llu verdict=%s",
		  __entry->ifindex, __entry->handle >> 16, __entry->len,
		  __entry->backlog, __entry->price, __entry->prob,
		  aqm_show_verdict(__entry->verdict))
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE rem_trace
#include <trace/define_trace.h>
