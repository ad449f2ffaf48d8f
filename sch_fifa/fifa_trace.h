/* SPDX-License-Identifier: GPL-2.0-or-later */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM fifa

#if !defined(_FIFA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _FIFA_TRACE_H

#include <linux/tracepoint.h>
#include <aqm/fifa.h>
#include <aqm/qdisc.h>

/* One decision: label and formula in 0.1 ms, base and prob in Q32. */
TRACE_EVENT(fifa_decide,
	TP_PROTO(struct Qdisc *sch, unsigned int len, u16 label,
		 const struct fifa_vars *vars, u64 base, u64 prob,
		 enum aqm_verdict verdict),
	TP_ARGS(sch, len, label, vars, base, prob, verdict),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, handle)
		__field(unsigned int, len)
		__field(u16, label)
		__field(u16, formula)
		__field(u64, base)
		__field(u64, prob)
		__field(int, verdict)
	),
	TP_fast_assign(
		__entry->ifindex = qdisc_dev(sch)->ifindex;
		__entry->handle = sch->handle;
		__entry->len = len;
		__entry->label = label;
		__entry->formula = vars->formula >> FIFA_RTT_SHIFT;
		__entry->base = base;
		__entry->prob = prob;
		__entry->verdict = verdict;
	),
	TP_printk("ifindex=%d handle=%x: len=%u label=%u formula=%u base=%llu prob=%llu verdict=%s",
		  __entry->ifindex, __entry->handle >> 16, __entry->len,
		  __entry->label, __entry->formula, __entry->base,
		  __entry->prob, aqm_show_verdict(__entry->verdict))
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE fifa_trace
#include <trace/define_trace.h>
