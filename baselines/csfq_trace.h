/* SPDX-License-Identifier: GPL-2.0-or-later */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM csfq

#if !defined(_CSFQ_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _CSFQ_TRACE_H

#include <linux/tracepoint.h>
#include <aqm/csfq.h>
#include <aqm/qdisc.h>

/* One decision of the law, and alpha after it: rates in bytes/ns, Q48. */
TRACE_EVENT(csfq_decide,
	TP_PROTO(struct Qdisc *sch, unsigned int len, u64 label,
		 const struct csfq_vars *vars, u64 prob,
		 enum aqm_verdict verdict),
	TP_ARGS(sch, len, label, vars, prob, verdict),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, handle)
		__field(unsigned int, len)
		__field(u64, label)
		__field(u64, fair)
		__field(u64, prob)
		__field(int, verdict)
	),
	TP_fast_assign(
		__entry->ifindex = qdisc_dev(sch)->ifindex;
		__entry->handle = sch->handle;
		__entry->len = len;
		__entry->label = label;
		__entry->fair = vars->fair;
		__entry->prob = prob;
		__entry->verdict = verdict;
	),
	TP_printk("ifindex=%d handle=%x: len=%u label=%llu fair=%llu prob=%llu verdict=%s",
		  __entry->ifindex, __entry->handle >> 16, __entry->len,
		  __entry->label, __entry->fair, __entry->prob,
		  aqm_show_verdict(__entry->verdict))
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE csfq_trace
#include <trace/define_trace.h>
