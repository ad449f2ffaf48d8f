/* SPDX-License-Identifier: GPL-2.0-or-later */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM fred

#if !defined(_FRED_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _FRED_TRACE_H

#include <linux/tracepoint.h>
#include <aqm/fred.h>
#include <aqm/qdisc.h>

/* One decision of the law, on a flow as the packet finds it: avg in Q24. */
TRACE_EVENT(fred_decide,
	TP_PROTO(struct Qdisc *sch, unsigned int len, u32 slot,
		 const struct fred_flow *flow, const struct fred_vars *vars,
		 u64 prob, enum aqm_verdict verdict),
	TP_ARGS(sch, len, slot, flow, vars, prob, verdict),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, handle)
		__field(unsigned int, len)
		__field(u32, slot)
		__field(u64, queued)
		__field(u32, strikes)
		__field(u32, active)
		__field(u64, avg)
		__field(u64, prob)
		__field(int, verdict)
	),
	TP_fast_assign(
		__entry->ifindex = qdisc_dev(sch)->ifindex;
		__entry->handle = sch->handle;
		__entry->len = len;
		__entry->slot = slot;
		__entry->queued = flow->queued;
		__entry->strikes = flow->strikes;
		__entry->active = vars->active;
		__entry->avg = vars->red.avg;
		__entry->prob = prob;
		__entry->verdict = verdict;
	),
	TP_printk("ifindex=%d handle=%x: len=%u flow=%u queued=%llu strikes=%u active=%u avg=%llu prob=%llu verdict=%s",
		  __entry->ifindex, __entry->handle >> 16, __entry->len,
		  __entry->slot, __entry->queued, __entry->strikes,
		  __entry->active, __entry->avg, __entry->prob,
		  aqm_show_verdict(__entry->verdict))
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE fred_trace
#include <trace/define_trace.h>
