/* SPDX-License-Identifier: GPL-2.0-or-later */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM avq

#if !defined(_AVQ_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _AVQ_TRACE_H

#include <linux/tracepoint.h>
#include <aqm/avq.h>
#include <aqm/qdisc.h>

/* One decision of the law: share in Q60, virtual in ns of the link, Q16. */
TRACE_EVENT(avq_decide,
	TP_PROTO(struct Qdisc *sch, unsigned int len,
		 const struct avq_vars *vars, u64 prob,
		 enum aqm_verdict verdict),
	TP_ARGS(sch, len, vars, prob, verdict),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, handle)
		__field(unsigned int, len)
		__field(u64, share)
		__field(u64, queue)
		__field(u64, prob)
		__field(int, verdict)
	),
	TP_fast_assign(
		__entry->ifindex = qdisc_dev(sch)->ifindex;
		__entry->handle = sch->handle;
		__entry->len = len;
		__entry->share = vars->share;
		__entry->queue = vars->queue;
		__entry->prob = prob;
		__entry->verdict = verdict;
	),
	TP_printk("ifindex=%d handle=%x: len=%u share=%llu virtual=%llu prob=%llu verdict=%s",
		  __entry->ifindex, __entry->handle >> 16, __entry->len,
		  __entry->share, __entry->queue, __entry->prob,
		  aqm_show_verdict(__entry->verdict))
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE avq_trace
#include <trace/define_trace.h>
