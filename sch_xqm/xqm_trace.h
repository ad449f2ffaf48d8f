/* SPDX-License-Identifier: GPL-2.0-or-later */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM xqm

#if !defined(_XQM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _XQM_TRACE_H

#include <linux/tracepoint.h>
#include <aqm/qdisc.h>
#include <aqm/xqm.h>

/*
 * One decision: rate (q) and quiescent (qhat) in Q48, share and throughput in
 * packets/s in Q8, prob in Q32. A packet that is left alone has none of these.
 */
TRACE_EVENT(xqm_decide,
	TP_PROTO(struct Qdisc *sch, unsigned int len, u64 name,
		 const struct xqm_flow *flow, bool alone, bool hidden,
		 enum aqm_verdict verdict),
	TP_ARGS(sch, len, name, flow, alone, hidden, verdict),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, handle)
		__field(unsigned int, len)
		__field(u64, name)
		__field(s64, rate)
		__field(u64, quiescent)
		__field(u64, share)
		__field(u64, throughput)
		__field(u32, since)
		__field(bool, hidden)
		__field(u64, prob)
		__field(int, verdict)
	),
	TP_fast_assign(
		__entry->ifindex = qdisc_dev(sch)->ifindex;
		__entry->handle = sch->handle;
		__entry->len = len;
		__entry->name = name;
		__entry->rate = alone ? 0 : flow->rate;
		__entry->quiescent = alone ? 0 : flow->quiescent;
		__entry->share = alone ? 0 : flow->share;
		__entry->throughput = alone ? 0 : flow->throughput;
		__entry->since = alone ? 0 : flow->since;
		__entry->hidden = hidden;
		__entry->prob = alone ? 0 : aqm_probability(xqm_odds(flow));
		__entry->verdict = verdict;
	),
	TP_printk("ifindex=%d handle=%x: len=%u flow=%016llx rate=%lld quiescent=%llu share=%llu throughput=%llu since=%u hidden=%d prob=%llu verdict=%s",
		  __entry->ifindex, __entry->handle >> 16, __entry->len,
		  __entry->name, __entry->rate, __entry->quiescent,
		  __entry->share, __entry->throughput, __entry->since,
		  __entry->hidden, __entry->prob,
		  aqm_show_verdict(__entry->verdict))
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE xqm_trace
#include <trace/define_trace.h>
