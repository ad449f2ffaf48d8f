// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * xqm: eXogenous-loss aware Queue Management.
 *
 * M. Guirguis, A. Bestavros, I. Matta: "Exogenous-Loss Awareness in Queue
 * Management: Toward Global Fairness", Boston University. The control law is in
 * aqm/xqm.h, the table of flows and their round-trip times in aqm/flows.h, the
 * queue around them in aqm/qdisc.h; README.md tells which equation is where and
 * what differs from the paper.
 */
#include <linux/device.h>
#include <linux/module.h>
#include <linux/pkt_sched_xqm.h>
#include <linux/sort.h>

#include <aqm/flows.h>
#include <aqm/label.h>
#include <aqm/qdisc.h>
#include <aqm/xqm.h>

#define CREATE_TRACE_POINTS
#include "xqm_trace.h"

/* The paper's parameters, section V.A, and footnote 10's short flows. */
#define XQM_LIMIT		250	/* packets */
#define XQM_TARGET		50	/* packets */
#define XQM_CONTROL_PERIOD	(10 * NSEC_PER_MSEC)
#define XQM_MEASURE_PERIOD	(10ULL * NSEC_PER_SEC)
#define XQM_DELTA		aqm_real(1, 100000)
#define XQM_PHI			aqm_real(4, 100000)
#define XQM_SHORT		10	/* packets */
#define XQM_FLOWS		65536
#define XQM_HIDE_DSCP		33	/* best effort, and nobody's */

#define XQM_CONTROL_PERIOD_MAX	NSEC_PER_SEC
#define XQM_MEASURE_PERIOD_MAX	(100ULL * NSEC_PER_SEC)
#define XQM_FLOWS_MAX		1048576U
#define XQM_SHORT_MAX		1000000U
#define XQM_RTT_TIME		(100 * NSEC_PER_MSEC)
#define XQM_RTT_TIME_MIN	NSEC_PER_USEC
#define XQM_RTT_TIME_MAX	(60ULL * NSEC_PER_SEC)
#define XQM_WEIGHT_MAX		1000

/*
 * Classes of flows: an octave of round-trip times each, from below 2^20 ns up;
 * then those whose time is unknown, and those that do not slow down for losses.
 */
#define XQM_OCTAVES		16
#define XQM_OCTAVE_SHIFT	20
#define XQM_CLASS_UNKNOWN	XQM_OCTAVES
#define XQM_CLASS_UNRESPONSIVE	(XQM_OCTAVES + 1)
#define XQM_CLASSES		(XQM_OCTAVES + 2)

/* Packets over which mean round-trip times are remembered, about, in bits. */
#define XQM_RTT_MEMORY		8

/* Places of the table that are looked at without letting a packet through. */
#define XQM_SURVEYED		4096

/**
 * struct xqm_options - XQM's parameters, as the user stated them
 * @law: those of the law; its target and smooth follow from others
 * @flow: TC_XQM_*, what a flow is
 * @flows: known at most
 * @short_flow: packets of a flow that are left alone
 * @short_share: set aside for short flows, bytes/s
 * @rtt: TC_XQM_RTT_*
 * @rtt_time: ns, with TC_XQM_RTT_TIME
 * @share: of a flow of weight 1, bytes/s; 0 for the fair one
 * @hide: TC_XQM_HIDE_*
 * @hide_by: TC_XQM_HIDE_BY_*
 * @hide_dscp: code point of packets that are hidden from losses elsewhere
 * @weight: of a flow, by skb->priority
 */
struct xqm_options {
	struct xqm_config law;
	u8 flow;
	u32 flows;
	u32 short_flow;
	u64 short_share;
	u8 rtt;
	u64 rtt_time;
	u64 share;
	u8 hide;
	u8 hide_by;
	u8 hide_dscp;
	u16 weight[TC_XQM_WEIGHTS];
};

/**
 * struct xqm_entry - a flow in the table
 * @flow: what any table knows of it
 * @member: what the census knows of it
 * @packets: that came, to tell short flows
 * @class: the class it counts in, with TC_XQM_RTT_CLASS
 * @control: its control, but with TC_XQM_RTT_CLASS
 */
struct xqm_entry {
	struct aqm_flow flow;
	struct xqm_member member;
	u32 packets;
	u8 class;
	struct xqm_flow control;
};

/**
 * struct xqm_class - flows of similar round-trip time
 * @control: control of all of them
 * @census: those seen within the measurement period
 */
struct xqm_class {
	struct xqm_flow control;
	struct xqm_census census;
};

/**
 * struct xqm_stats - counters since the queue was made, in packets
 * @imposed: dropped early, or marked
 * @hidden: hidden from losses elsewhere
 * @exempt: of short flows
 * @evicted: flows forgotten for want of room
 */
struct xqm_stats {
	u64 imposed;
	u64 hidden;
	u64 exempt;
	u64 evicted;
};

/**
 * struct xqm_shown - a flow that is shown as a class
 * @weight: its packets in the measurement period, Q8
 * @place: where in the table it is, or which class of flows
 * @name: its name, since another may have come to that place
 */
struct xqm_shown {
	u64 weight;
	u32 place;
	u64 name;
};

/**
 * struct xqm_sched_data - an xqm queue
 * @queue: the packets and the options all disciplines share
 * @options: parameters as the user stated them
 * @params: those of the law, as it uses them
 * @vars: the law's state
 * @per_byte: packets in a byte, Q40, with bytemode
 * @rtt_mean: of flows whose round-trip time is known, by packets, ns
 * @flows: the flows
 * @class: classes of flows, XQM_CLASSES
 * @last: the control that decided on the last packet
 * @stats: counters
 * @shown: flows shown as classes, heaviest first
 * @shown_count: how many
 */
struct xqm_sched_data {
	struct aqm_queue queue;
	struct xqm_options options;
	struct xqm_params params;
	struct xqm_vars vars;
	u64 per_byte;
	u64 rtt_mean;
	struct aqm_flows *flows;
	struct xqm_class *class;
	struct xqm_flow *last;
	struct xqm_stats stats;
	struct xqm_shown *shown;
	u32 shown_count;
};

static bool xqm_by_class(const struct xqm_sched_data *q)
{
	return q->options.flow == TC_XQM_RTT_CLASS;
}

/* Units of the queue as packets, Q8. */
static u64 xqm_packets(const struct xqm_sched_data *q, u64 units)
{
	return q->queue.config.bytemode ?
		mul_u64_u64_shr(units, q->per_byte, 40 - XQM_PACKET_SHIFT) :
		units << XQM_PACKET_SHIFT;
}

/* What packets are, and so how many the link carries, may have changed. */
static void xqm_measure_capacity(struct xqm_sched_data *q)
{
	xqm_set_capacity(&q->params, &q->vars,
			 aqm_packet_rate(&q->queue, q->queue.config.bandwidth),
			 aqm_packet_rate(&q->queue, q->options.short_share),
			 aqm_packet_rate(&q->queue, q->options.share));
}

/* Account for the control instants up to now. */
static void xqm_update(struct Qdisc *sch, u64 now)
{
	struct xqm_sched_data *q = qdisc_priv(sch);
	u32 turns, slot, class;

	if (now < q->vars.next)
		return;

	turns = xqm_advance(&q->params, &q->vars, now,
			    xqm_packets(q, aqm_backlog(sch, &q->queue)));
	if (xqm_by_class(q)) {
		while (turns--) {
			slot = xqm_slot_of(&q->vars, q->vars.bin - turns);
			for (class = 0; class < XQM_CLASSES; class++)
				xqm_census_turn(&q->class[class].census, slot);
		}
	}
	xqm_measure_capacity(q);
}

/* The class of a flow with this round-trip time. */
static u8 xqm_class_of(bool responsive, u64 rtt)
{
	if (!responsive)
		return XQM_CLASS_UNRESPONSIVE;
	if (!rtt)
		return XQM_CLASS_UNKNOWN;
	return min(fls64(rtt >> XQM_OCTAVE_SHIFT), XQM_OCTAVES - 1);
}

/* The flow goes out of the censuses it is in. */
static void xqm_forget(struct xqm_sched_data *q, struct xqm_entry *entry)
{
	struct xqm_member copy = entry->member;

	if (!entry->member.weight)
		return;
	if (xqm_by_class(q))
		xqm_leave(&q->vars, &q->class[entry->class].census, &copy);
	xqm_leave(&q->vars, &q->vars.census, &entry->member);
	xqm_set_share(&q->vars);
}

/* A packet of a flow that is not short comes: it counts in the censuses. */
static void xqm_attend(struct xqm_sched_data *q, struct xqm_entry *entry,
		       u8 class, u32 weight)
{
	struct xqm_member copy;

	if (class != entry->class) {
		xqm_forget(q, entry);
		entry->class = class;
	}
	copy = entry->member;
	if (!xqm_join(&q->vars, &q->vars.census, &entry->member, weight))
		return;
	if (xqm_by_class(q))
		xqm_join(&q->vars, &q->class[class].census, &copy, weight);
	xqm_set_share(&q->vars);
}

/**
 * struct xqm_header - what a packet's headers say
 * @ends: of its flow
 * @responsive: it is TCP's
 * @syn: and has SYN set
 * @ack: and has ACK set
 * @ports: of its connection; 0 if there are none
 */
struct xqm_header {
	struct aqm_ends ends;
	bool responsive;
	bool syn;
	bool ack;
	u32 ports;
};

static void xqm_parse(const struct xqm_sched_data *q, struct sk_buff *skb,
		      struct xqm_header *header)
{
	struct tcphdr copy, *tcp;
	int protocol, offset;

	header->syn = false;
	header->ack = false;
	header->ports = 0;
	protocol = aqm_parse_ends(&header->ends, skb, &offset);
	header->responsive = protocol == IPPROTO_TCP;
	if (offset >= 0) {
		switch (protocol) {
		case IPPROTO_TCP:
			tcp = skb_header_pointer(skb, offset, sizeof(copy),
						 &copy);
			if (!tcp)
				break;
			header->ports = get_unaligned((u32 *)tcp);
			header->syn = tcp->syn;
			header->ack = tcp->ack;
			break;
		case IPPROTO_UDP:
		case IPPROTO_UDPLITE:
		case IPPROTO_SCTP:
		case IPPROTO_DCCP:
			tcp = skb_header_pointer(skb, offset,
						 sizeof(header->ports), &copy);
			if (tcp)
				header->ports = get_unaligned((u32 *)tcp);
			break;
		}
	}
	if (q->options.flow == TC_XQM_SRC_DST) {
		header->ends.kind = header->responsive;
	} else {
		header->ends.kind = protocol;
		memcpy(header->ends.port, &header->ports,
		       sizeof(header->ports));
	}
}

/*
 * Learn the flow's round-trip time from a packet. What a SYN waits here is known
 * and no part of it: the time runs from when it leaves.
 */
static void xqm_learn_rtt(struct Qdisc *sch, struct xqm_entry *entry,
			  const struct xqm_header *header, struct sk_buff *skb,
			  u64 now)
{
	struct xqm_sched_data *q = qdisc_priv(sch);
	u64 wait, rtt = 0;
	u16 label;

	switch (q->options.rtt) {
	case TC_XQM_RTT_AUTO:
		if (header->syn || entry->flow.syn) {
			wait = aqm_send_time(&q->queue, sch->qstats.backlog);
			aqm_flow_handshake(&entry->flow, header->syn,
					   header->ack, header->ports, now,
					   now + wait);
		}
		rtt = entry->flow.handshake;
		break;
	case TC_XQM_RTT_LABEL:
		label = aqm_label(skb);
		if (label)
			entry->flow.handshake = label * AQM_LABEL_UNIT;
		rtt = entry->flow.handshake;
		break;
	case TC_XQM_RTT_TIME:
		rtt = q->options.rtt_time;
		break;
	}
	if (rtt && !q->rtt_mean)
		q->rtt_mean = rtt;
	else if (rtt)
		q->rtt_mean += (s64)(rtt - q->rtt_mean) >> XQM_RTT_MEMORY;
	entry->control.rtt = rtt ?: q->rtt_mean;
}

/* The flow of a packet, which is new or old; its round-trip time is learnt. */
static struct xqm_entry *xqm_find(struct Qdisc *sch, struct sk_buff *skb,
				  bool *responsive, u64 *name, u64 now)
{
	struct xqm_sched_data *q = qdisc_priv(sch);
	struct xqm_header header;
	struct xqm_entry *entry;
	bool fresh;

	xqm_parse(q, skb, &header);
	*responsive = header.responsive;
	*name = aqm_flow_name(q->flows, &header.ends);
	entry = aqm_flow_find(q->flows, *name, &fresh);
	if (fresh) {
		xqm_forget(q, entry);
		if (entry->packets && aqm_flow_known(&entry->flow))
			q->stats.evicted++;
		aqm_flow_begin(q->flows, &entry->flow, *name);
	}
	entry->flow.seen = get_jiffies_64();
	if (header.responsive)
		xqm_learn_rtt(sch, entry, &header, skb, now);
	return entry;
}

/**
 * xqm_classify() - find the control that decides on a packet
 * @sch: queue, advanced to the present
 * @skb: the packet
 * @packets: how many it counts for
 * @alone: out: the packet is one of a short flow, and left alone
 * @name: out: name of its flow
 * @now: time, ns
 *
 * Return: the control of its flow, or of its flow's class, advanced to the
 * present.
 */
static struct xqm_flow *xqm_classify(struct Qdisc *sch, struct sk_buff *skb,
				     u32 packets, bool *alone, u64 *name,
				     u64 now)
{
	struct xqm_sched_data *q = qdisc_priv(sch);
	u32 weight = q->options.weight[skb->priority & (TC_XQM_WEIGHTS - 1)];
	u16 single = weight << XQM_SINGLE_SHIFT;
	struct xqm_entry *entry;
	struct xqm_class *class;
	struct xqm_flow *flow;
	bool responsive;
	u64 rtt;
	u8 number;

	entry = xqm_find(sch, skb, &responsive, name, now);
	flow = &entry->control;
	if (!xqm_is_recent(&q->vars, entry->member.bin)) {
		entry->packets = 0;
		entry->member.weight = 0;
		xqm_flow_start(&q->vars, flow, responsive);
	}
	*alone = entry->packets < q->options.short_flow;
	entry->packets = min_t(u64, (u64)entry->packets + packets, U32_MAX);
	number = xqm_by_class(q) ? xqm_class_of(responsive, flow->rtt) : 0;
	if (*alone) {
		xqm_forget(q, entry);
		entry->member.bin = q->vars.bin;
	} else {
		xqm_attend(q, entry, number, weight);
	}

	if (xqm_by_class(q)) {
		rtt = flow->rtt;
		class = &q->class[number];
		flow = &class->control;
		if (!xqm_is_recent(&q->vars, flow->bin)) {
			flow->rtt = rtt;
			xqm_flow_start(&q->vars, flow, responsive);
		}
		if (!*alone)
			flow->rtt += (s64)(rtt - flow->rtt) >> XQM_RTT_MEMORY;
		weight = max(class->census.weight, 1ULL);
		single = div_u64((u64)weight << XQM_SINGLE_SHIFT,
				 max(class->census.flows, 1U));
	}
	flow->weight = weight;
	flow->single = single;
	xqm_flow_advance(&q->params, &q->vars, flow);
	return flow;
}

/* Write a code point, the ECN bits kept; is the packet one that has it now? */
static bool xqm_write_dscp(struct sk_buff *skb, u8 dscp)
{
	unsigned int start = skb_network_offset(skb);

	switch (aqm_protocol(skb)) {
	case htons(ETH_P_IP):
		if (skb_ensure_writable(skb, start + sizeof(struct iphdr)))
			return false;
		ipv4_change_dsfield(ip_hdr(skb), INET_ECN_MASK, dscp << 2);
		return true;
	case htons(ETH_P_IPV6):
		if (skb_ensure_writable(skb, start + sizeof(struct ipv6hdr)))
			return false;
		ipv6_change_dsfield(ipv6_hdr(skb), INET_ECN_MASK, dscp << 2);
		return true;
	default:
		return false;
	}
}

/* What share of a flow's packets is hidden, Q32. */
static u64 xqm_hidden(const struct xqm_sched_data *q,
		      const struct xqm_flow *flow)
{
	if (q->options.hide == TC_XQM_HIDE_OFF)
		return 0;
	return xqm_hidden_share(&q->params, flow);
}

/* Is a packet of this flow to be hidden? */
static bool xqm_hides(const struct xqm_sched_data *q,
		      const struct xqm_flow *flow)
{
	u64 share = xqm_hidden(q, flow);

	return share && (share == AQM_PROB_ONE || get_random_u32() < share);
}

/*
 * Have a packet that was queued pass the queues downstream, or not. By DSCP, one
 * that came with that code point and is not hidden has none of ours to show.
 */
static bool xqm_hide(struct xqm_sched_data *q, struct sk_buff *skb, bool hide)
{
	u8 dscp = q->options.hide_dscp;
	int dsfield;

	if (q->options.hide_by == TC_XQM_HIDE_BY_COPY) {
		aqm_cb(skb)->twice = hide;
		return hide;
	}
	if (hide && xqm_write_dscp(skb, dscp)) {
		q->stats.hidden += aqm_cb(skb)->packets;
		return true;
	}
	dsfield = aqm_dsfield(skb);
	if (dsfield >= 0 && dsfield >> 2 == dscp)
		xqm_write_dscp(skb, 0);
	return false;
}

/*
 * A packet that is hidden by a copy of it departs. The copy follows at once, or
 * what it makes up for would look like reordering; and only where fewer packets
 * than the target wait, so that it takes the place of nobody's packet.
 */
static void xqm_copy(struct Qdisc *sch, struct sk_buff *skb)
{
	struct xqm_sched_data *q = qdisc_priv(sch);

	if (q->queue.packets < q->queue.config.target &&
	    aqm_send_again(skb, sch, &q->queue))
		q->stats.hidden += aqm_cb(skb)->packets;
}

static int xqm_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		       struct sk_buff **to_free)
{
	struct xqm_sched_data *q = qdisc_priv(sch);
	unsigned int length = qdisc_pkt_len(skb);
	u32 packets = aqm_packets(skb);
	enum aqm_verdict verdict;
	u64 now = aqm_now(&q->queue);
	struct xqm_flow *flow;
	struct aqm_odds odds;
	bool hidden = false;
	bool alone, lost;
	u64 amount, name;

	xqm_update(sch, now);
	flow = xqm_classify(sch, skb, packets, &alone, &name, now);
	q->last = flow;
	odds = xqm_odds(flow);
	verdict = aqm_enqueue(skb, sch, &q->queue,
			      !alone && aqm_hit_of(&q->queue, odds.part,
						   odds.whole), now);
	if (q->options.hide != TC_XQM_HIDE_OFF && !aqm_dropped(verdict))
		hidden = xqm_hide(q, skb, !alone && xqm_hides(q, flow));
	trace_xqm_decide(sch, length, name, flow, alone, hidden, verdict);

	lost = aqm_dropped(verdict) || verdict == AQM_MARK;
	if (alone)
		q->stats.exempt += packets;
	else if (verdict == AQM_DROP || verdict == AQM_MARK)
		q->stats.imposed += packets;
	if (!alone || !xqm_by_class(q)) {
		amount = xqm_packets(q, q->queue.config.bytemode ? length :
								   packets);
		xqm_flow_count(flow, packets, amount, !aqm_dropped(verdict),
			       lost);
	}
	if (aqm_dropped(verdict))
		return qdisc_drop(skb, sch, to_free);
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *xqm_dequeue(struct Qdisc *sch)
{
	struct xqm_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u64 now;

	if (!q->queue.packets)
		return NULL;
	now = aqm_now(&q->queue);
	xqm_update(sch, now);
	skb = aqm_dequeue(sch, &q->queue, now);
	if (unlikely(aqm_cb(skb)->twice))
		xqm_copy(sch, skb);
	return skb;
}

/* All flows begin again, but for their round-trip times. */
static void xqm_start(struct xqm_sched_data *q)
{
	memset(q->class, 0, XQM_CLASSES * sizeof(*q->class));
	q->last = NULL;
	q->shown_count = 0;
	xqm_restart(&q->params, &q->vars, aqm_now_exactly(&q->queue));
}

static void xqm_reset(struct Qdisc *sch)
{
	struct xqm_sched_data *q = qdisc_priv(sch);

	aqm_reset(sch, &q->queue);
	if (q->class)
		xqm_start(q);
}

static const struct nla_policy xqm_policy[TCA_XQM_MAX + 1] = {
	AQM_POLICY,
	[TCA_XQM_CONTROL]		= { .type = NLA_U8 },
	[TCA_XQM_CONTROL_PERIOD]	= { .type = NLA_U64 },
	[TCA_XQM_MEASURE_PERIOD]	= { .type = NLA_U64 },
	[TCA_XQM_DELTA]			= { .type = NLA_U64 },
	[TCA_XQM_PHI]			= { .type = NLA_U64 },
	[TCA_XQM_FLOW]			= { .type = NLA_U8 },
	[TCA_XQM_FLOWS]			= { .type = NLA_U32 },
	[TCA_XQM_SHORT]			= { .type = NLA_U32 },
	[TCA_XQM_SHORT_SHARE]		= { .type = NLA_U64 },
	[TCA_XQM_RTT]			= { .type = NLA_U8 },
	[TCA_XQM_RTT_TIME]		= { .type = NLA_U64 },
	[TCA_XQM_SHARE]			= { .type = NLA_U64 },
	[TCA_XQM_HIDE]			= { .type = NLA_U8 },
	[TCA_XQM_HIDE_BY]		= { .type = NLA_U8 },
	[TCA_XQM_HIDE_DSCP]		= { .type = NLA_U8 },
	[TCA_XQM_WEIGHTS]		=
		NLA_POLICY_EXACT_LEN(TC_XQM_WEIGHTS * sizeof(u16)),
};

static int xqm_parse_weights(struct xqm_options *options,
			     const struct nlattr *attr,
			     struct netlink_ext_ack *extack)
{
	int i;

	if (!attr)
		return 0;
	nla_memcpy(options->weight, attr, sizeof(options->weight));
	for (i = 0; i < TC_XQM_WEIGHTS; i++) {
		if (options->weight[i] && options->weight[i] <= XQM_WEIGHT_MAX)
			continue;
		NL_SET_BAD_ATTR(extack, attr);
		NL_SET_ERR_MSG_MOD(extack,
				   "weights must be 1 to 1000, of 16 priorities");
		return -EINVAL;
	}
	return 0;
}

static int xqm_parse_options(struct xqm_options *options,
			     const struct aqm_config *shared,
			     struct nlattr **tb, struct netlink_ext_ack *extack)
{
	struct xqm_config *law = &options->law;
	u64 least;
	int err;

	err = AQM_TAKE(law->control, tb[TCA_XQM_CONTROL], u8,
		       0, TC_XQM_CONTROL_MAX, extack,
		       "control must be onoff, pi-t or pi-tb") ?:
	      AQM_TAKE(law->control_period, tb[TCA_XQM_CONTROL_PERIOD], u64,
		       NSEC_PER_MSEC, XQM_CONTROL_PERIOD_MAX, extack,
		       "control-period must be 1ms to 1s") ?:
	      AQM_TAKE(law->measure_period, tb[TCA_XQM_MEASURE_PERIOD], u64,
		       XQM_BINS * NSEC_PER_MSEC, XQM_MEASURE_PERIOD_MAX, extack,
		       "measure-period must be 20ms to 100s") ?:
	      AQM_TAKE(law->delta, tb[TCA_XQM_DELTA], u64,
		       0, AQM_REAL_ONE, extack, "delta must be 0 to 1") ?:
	      AQM_TAKE(law->phi, tb[TCA_XQM_PHI], u64,
		       0, AQM_REAL_ONE, extack, "phi must be 0 to 1") ?:
	      AQM_TAKE(options->flow, tb[TCA_XQM_FLOW], u8,
		       0, TC_XQM_FLOW_MAX, extack,
		       "flow must be 5tuple, src-dst or rtt-class") ?:
	      AQM_TAKE(options->flows, tb[TCA_XQM_FLOWS], u32,
		       AQM_FLOW_WAYS, XQM_FLOWS_MAX, extack,
		       "flows must be 8 to 1048576") ?:
	      AQM_TAKE(options->short_flow, tb[TCA_XQM_SHORT], u32,
		       0, XQM_SHORT_MAX, extack,
		       "short must be 0 to 1000000 packets") ?:
	      AQM_TAKE(options->short_share, tb[TCA_XQM_SHORT_SHARE], u64,
		       0, AQM_BANDWIDTH_MAX, extack,
		       "short-share must be below bandwidth") ?:
	      AQM_TAKE(options->rtt, tb[TCA_XQM_RTT], u8,
		       0, TC_XQM_RTT_MAX, extack,
		       "rtt must be auto, label or a time") ?:
	      AQM_TAKE(options->rtt_time, tb[TCA_XQM_RTT_TIME], u64,
		       XQM_RTT_TIME_MIN, XQM_RTT_TIME_MAX, extack,
		       "rtt must be 1us to 60s, if it is a time");
	err = err ?:
	      AQM_TAKE(options->share, tb[TCA_XQM_SHARE], u64,
		       0, AQM_BANDWIDTH_MAX, extack,
		       "share must be 8kbit to bandwidth, or 0 for the fair one") ?:
	      AQM_TAKE(options->hide, tb[TCA_XQM_HIDE], u8,
		       0, TC_XQM_HIDE_MAX, extack,
		       "hide must be off, onoff or smooth") ?:
	      AQM_TAKE(options->hide_by, tb[TCA_XQM_HIDE_BY], u8,
		       0, TC_XQM_HIDE_BY_MAX, extack,
		       "hide-by must be dscp or copy") ?:
	      AQM_TAKE(options->hide_dscp, tb[TCA_XQM_HIDE_DSCP], u8,
		       1, AQM_DSCP_MAX, extack,
		       "hide-dscp must be a DSCP, 1 to 63") ?:
	      xqm_parse_weights(options, tb[TCA_XQM_WEIGHTS], extack) ?:
	      aqm_need_bandwidth(shared, extack);
	if (err)
		return err;

	if (options->short_share >= shared->bandwidth) {
		NL_SET_ERR_MSG_MOD(extack,
				   "short-share must be below bandwidth");
		return -EINVAL;
	}
	if (options->share > shared->bandwidth ||
	    (options->share && options->share < AQM_BANDWIDTH_MIN)) {
		NL_SET_ERR_MSG_MOD(extack,
				   "share must be 8kbit to bandwidth, or 0 for the fair one");
		return -EINVAL;
	}
	least = XQM_BINS * law->control_period;
	if (law->measure_period < least) {
		NL_SET_ERR_MSG_MOD(extack,
				   "measure-period must be at least 20 times control-period");
		return -EINVAL;
	}
	if (options->hide == TC_XQM_HIDE_SMOOTH &&
	    law->control == TC_XQM_ONOFF) {
		NL_SET_ERR_MSG_MOD(extack,
				   "hide smooth needs control pi-t or pi-tb");
		return -EINVAL;
	}
	law->target = shared->target;
	law->smooth = options->hide == TC_XQM_HIDE_SMOOTH;
	return 0;
}

/* Places of the table for so many flows. */
static u32 xqm_places(const struct xqm_options *options)
{
	return roundup_pow_of_two(options->flows);
}

static struct aqm_flows *xqm_create_flows(const struct xqm_options *options)
{
	BUILD_BUG_ON(sizeof(struct xqm_entry) > 256);
	return aqm_flows_create(xqm_places(options), sizeof(struct xqm_entry));
}

/* Does what was measured before mean nothing any more? */
static bool xqm_measures_anew(const struct xqm_sched_data *q,
			      const struct xqm_options *options,
			      const struct aqm_config *shared)
{
	const struct xqm_config *now = &q->options.law;
	const struct xqm_config *then = &options->law;

	return now->control_period != then->control_period ||
	       now->measure_period != then->measure_period ||
	       q->options.flow != options->flow ||
	       q->queue.config.bytemode != shared->bytemode ||
	       (shared->bytemode && q->queue.config.avpkt != shared->avpkt);
}

static void xqm_configure(struct Qdisc *sch, const struct aqm_config *shared,
			  const struct xqm_options *options)
{
	struct xqm_sched_data *q = qdisc_priv(sch);
	bool anew = xqm_measures_anew(q, options, shared);

	aqm_configure(sch, &q->queue, shared);
	q->options = *options;
	q->per_byte = shared->bytemode ?
		div_u64(BIT_ULL(40) + shared->avpkt / 2, shared->avpkt) : 0;
	xqm_params_init(&q->params, &options->law);
	if (anew)
		xqm_start(q);
	xqm_measure_capacity(q);
}

static int xqm_change(struct Qdisc *sch, struct nlattr *opt,
		      struct netlink_ext_ack *extack)
{
	struct xqm_sched_data *q = qdisc_priv(sch);
	struct aqm_config shared = q->queue.config;
	struct xqm_options options = q->options;
	struct nlattr *tb[TCA_XQM_MAX + 1];
	struct aqm_flows *flows = NULL;
	int err;

	err = nla_parse_nested(tb, TCA_XQM_MAX, opt, xqm_policy, extack) ?:
	      aqm_parse(&shared, tb, extack) ?:
	      xqm_parse_options(&options, &shared, tb, extack);
	if (err)
		return err;
	if (xqm_places(&options) != xqm_places(&q->options)) {
		flows = xqm_create_flows(&options);
		if (!flows) {
			NL_SET_ERR_MSG_MOD(extack,
					   "there is no memory for so many flows");
			return -ENOMEM;
		}
	}

	sch_tree_lock(sch);
	xqm_update(sch, aqm_now_exactly(&q->queue));
	xqm_configure(sch, &shared, &options);
	if (flows) {
		swap(q->flows, flows);
		xqm_start(q);
	}
	sch_tree_unlock(sch);
	aqm_flows_destroy(flows);
	return 0;
}

static int xqm_init(struct Qdisc *sch, struct nlattr *opt,
		    struct netlink_ext_ack *extack)
{
	struct xqm_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_XQM_MAX + 1] = {};
	struct aqm_config shared = {
		.limit = XQM_LIMIT,
		.target = XQM_TARGET,
		.protect = TC_AQM_NO_DSCP,
	};
	struct xqm_options options = {
		.law = {
			.control = TC_XQM_PI_TB,
			.control_period = XQM_CONTROL_PERIOD,
			.measure_period = XQM_MEASURE_PERIOD,
			.delta = XQM_DELTA,
			.phi = XQM_PHI,
		},
		.flows = XQM_FLOWS,
		.short_flow = XQM_SHORT,
		.rtt_time = XQM_RTT_TIME,
		.hide_dscp = XQM_HIDE_DSCP,
	};
	int err = 0, i;

	BUILD_BUG_ON(XQM_ONOFF != (int)TC_XQM_ONOFF ||
		     XQM_PI_T != (int)TC_XQM_PI_T ||
		     XQM_PI_TB != (int)TC_XQM_PI_TB);
	for (i = 0; i < TC_XQM_WEIGHTS; i++)
		options.weight[i] = 1;
	if (opt)
		err = nla_parse_nested(tb, TCA_XQM_MAX, opt, xqm_policy,
				       extack);
	err = err ?: aqm_parse(&shared, tb, extack) ?:
	      xqm_parse_options(&options, &shared, tb, extack);
	if (err)
		return err;

	q->flows = xqm_create_flows(&options);
	q->class = kvcalloc(XQM_CLASSES, sizeof(*q->class), GFP_KERNEL);
	if (!q->flows || !q->class) {
		NL_SET_ERR_MSG_MOD(extack,
				   "there is no memory for so many flows");
		return -ENOMEM;
	}
	xqm_configure(sch, &shared, &options);
	return 0;
}

/* Called after an init that failed, too. */
static void xqm_destroy(struct Qdisc *sch)
{
	struct xqm_sched_data *q = qdisc_priv(sch);

	aqm_flows_destroy(q->flows);
	kvfree(q->class);
	kvfree(q->shown);
}

static int xqm_put_options(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct xqm_sched_data *q = qdisc_priv(sch);
	const struct xqm_options *o = &q->options;
	const int pad = TCA_AQM_PAD;

	if (aqm_dump(skb, &q->queue.config) ||
	    nla_put_u8(skb, TCA_XQM_CONTROL, o->law.control) ||
	    nla_put_u64_64bit(skb, TCA_XQM_CONTROL_PERIOD,
			      o->law.control_period, pad) ||
	    nla_put_u64_64bit(skb, TCA_XQM_MEASURE_PERIOD,
			      o->law.measure_period, pad) ||
	    nla_put_u64_64bit(skb, TCA_XQM_DELTA, o->law.delta, pad) ||
	    nla_put_u64_64bit(skb, TCA_XQM_PHI, o->law.phi, pad) ||
	    nla_put_u8(skb, TCA_XQM_FLOW, o->flow) ||
	    nla_put_u32(skb, TCA_XQM_FLOWS, o->flows) ||
	    nla_put_u32(skb, TCA_XQM_SHORT, o->short_flow) ||
	    nla_put_u64_64bit(skb, TCA_XQM_SHORT_SHARE, o->short_share, pad) ||
	    nla_put_u8(skb, TCA_XQM_RTT, o->rtt) ||
	    nla_put_u64_64bit(skb, TCA_XQM_RTT_TIME, o->rtt_time, pad) ||
	    nla_put_u64_64bit(skb, TCA_XQM_SHARE, o->share, pad) ||
	    nla_put_u8(skb, TCA_XQM_HIDE, o->hide) ||
	    nla_put_u8(skb, TCA_XQM_HIDE_BY, o->hide_by) ||
	    nla_put_u8(skb, TCA_XQM_HIDE_DSCP, o->hide_dscp) ||
	    nla_put(skb, TCA_XQM_WEIGHTS, sizeof(o->weight), o->weight))
		return -EMSGSIZE;
	return 0;
}

/* A control at present. It is a copy: looking must not change what is decided. */
static struct xqm_flow xqm_at_present(const struct xqm_sched_data *q,
				      const struct xqm_flow *flow)
{
	struct xqm_flow now = *flow;

	xqm_flow_advance(&q->params, &q->vars, &now);
	return now;
}

/* The last packet's flow, or class of flows, at present: p, Q32. */
static u64 xqm_last_probability(const struct xqm_sched_data *q)
{
	struct xqm_flow now;

	if (!q->last || !xqm_is_recent(&q->vars, q->last->bin))
		return 0;
	now = xqm_at_present(q, q->last);
	return aqm_probability(xqm_odds(&now));
}

/* Flows within the period that are too many to be shown. */
static u32 xqm_not_shown(const struct xqm_sched_data *q)
{
	u32 flows = xqm_by_class(q) ? 0 : q->vars.census.flows;

	return flows > TC_XQM_SHOWN_MAX ? flows - TC_XQM_SHOWN_MAX : 0;
}

static int xqm_put_stats(struct Qdisc *sch, struct sk_buff *skb)
{
	struct xqm_sched_data *q = qdisc_priv(sch);
	const struct xqm_stats *stats = &q->stats;
	const struct xqm_vars *vars = &q->vars;
	int err;

	sch_tree_lock(sch);
	xqm_update(sch, aqm_now_exactly(&q->queue));
	err = aqm_dump_stats(skb, &q->queue, xqm_last_probability(q)) ?:
	      aqm_put_stat(skb, TCA_XQM_STATS_FLOWS, vars->census.flows) ?:
	      aqm_put_stat(skb, TCA_XQM_STATS_SHARE, vars->share) ?:
	      aqm_put_stat(skb, TCA_XQM_STATS_CAPACITY,
			   aqm_packet_rate(&q->queue, q->queue.config.bandwidth)) ?:
	      aqm_put_stat(skb, TCA_XQM_STATS_RTT, q->rtt_mean) ?:
	      aqm_put_stat(skb, TCA_XQM_STATS_IMPOSED, stats->imposed) ?:
	      aqm_put_stat(skb, TCA_XQM_STATS_HIDDEN, stats->hidden) ?:
	      aqm_put_stat(skb, TCA_XQM_STATS_EXEMPT, stats->exempt) ?:
	      aqm_put_stat(skb, TCA_XQM_STATS_EVICTED, stats->evicted) ?:
	      aqm_put_stat(skb, TCA_XQM_STATS_NOT_SHOWN, xqm_not_shown(q));
	sch_tree_unlock(sch);
	return err;
}

static int xqm_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	return aqm_dump_nest(sch, skb, TCA_OPTIONS, xqm_put_options);
}

static int xqm_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	return aqm_dump_nest(sch, d->skb, TCA_STATS_APP, xqm_put_stats);
}

/* Flows, or classes of flows, as classes of the qdisc. They are only shown. */

static int xqm_heavier(const void *a, const void *b)
{
	const struct xqm_shown *first = a, *second = b;

	if (first->weight != second->weight)
		return first->weight > second->weight ? -1 : 1;
	return first->place < second->place ? -1 : 1;
}

/*
 * The control of the flow, or class of flows, at a place; and its name, which is
 * 0 if it is not one to be shown.
 */
static struct xqm_flow *xqm_control_at(const struct xqm_sched_data *q,
				       u32 place, u64 *name)
{
	struct xqm_entry *entry;

	if (xqm_by_class(q)) {
		*name = q->class[place].census.flows ? place + 1 : 0;
		return &q->class[place].control;
	}
	entry = aqm_flow_at(q->flows, place);
	*name = entry->member.weight &&
		xqm_is_recent(&q->vars, entry->member.bin) ?
		entry->flow.name : 0;
	return &entry->control;
}

/* Note the active flows at some places; the queue is locked. */
static u32 xqm_note(const struct xqm_sched_data *q, u32 first, u32 end,
		    struct xqm_shown *noted, u32 room)
{
	u32 count = 0;

	for (; first < end && count < room; first++) {
		const struct xqm_flow *flow;
		struct xqm_flow now;
		u64 name;

		flow = xqm_control_at(q, first, &name);
		if (!name)
			continue;
		now = xqm_at_present(q, flow);
		noted[count++] = (struct xqm_shown){
			.weight = now.window + now.count[now.slot],
			.place = first,
			.name = name,
		};
	}
	return count;
}

/* Look which flows there are: those that are then shown, heaviest first. */
static void xqm_survey(struct Qdisc *sch)
{
	struct xqm_sched_data *q = qdisc_priv(sch);
	u32 places = xqm_by_class(q) ? XQM_CLASSES : aqm_flows_used(q->flows);
	u32 count = 0, room, first, end;
	struct xqm_shown *noted;

	kvfree(q->shown);
	q->shown = NULL;
	q->shown_count = 0;

	sch_tree_lock(sch);
	xqm_update(sch, aqm_now_exactly(&q->queue));
	room = q->vars.census.flows;
	sch_tree_unlock(sch);
	if (!room)
		return;
	noted = kvmalloc_array(room, sizeof(*noted), GFP_KERNEL_ACCOUNT);
	if (!noted)
		return;

	/* packets must not wait for the whole table to be looked through */
	for (first = 0; first < places; first = end) {
		end = min(first + XQM_SURVEYED, places);
		sch_tree_lock(sch);
		count += xqm_note(q, first, end, noted + count, room - count);
		sch_tree_unlock(sch);
		cond_resched();
	}
	sort(noted, count, sizeof(*noted), xqm_heavier, NULL);
	q->shown_count = min_t(u32, count, TC_XQM_SHOWN_MAX);
	q->shown = noted;
}

static struct Qdisc *xqm_leaf(struct Qdisc *sch, unsigned long class)
{
	return NULL;
}

static unsigned long xqm_find_class(struct Qdisc *sch, u32 classid)
{
	return 0;
}

static void xqm_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	struct xqm_sched_data *q = qdisc_priv(sch);

	if (walker->stop)
		return;
	if (!walker->skip)
		xqm_survey(sch);
	for (walker->count = walker->skip; walker->count < q->shown_count;
	     walker->count++) {
		if (walker->fn(sch, walker->count + 1, walker) < 0) {
			walker->stop = 1;
			break;
		}
	}
}

static int xqm_dump_class(struct Qdisc *sch, unsigned long class,
			  struct sk_buff *skb, struct tcmsg *tcm)
{
	tcm->tcm_handle |= TC_H_MIN(class);
	return 0;
}

/*
 * The loss rate that the flow must see elsewhere: eq. (16) for the throughput it
 * has, less what is imposed here, Q48.
 */
static u64 xqm_exogenous(const struct xqm_flow *flow)
{
	u64 imposed = max(flow->rate, 0LL), all;

	if (!flow->responsive || !flow->quiescent || !flow->throughput)
		return 0;
	all = xqm_quiescent(mul_u64_u64_div_u64(flow->throughput, flow->single,
						(u64)flow->weight <<
						XQM_SINGLE_SHIFT),
			    flow->loop);
	return all > imposed ? all - imposed : 0;
}

static int xqm_put_flow(struct sk_buff *skb, const struct xqm_sched_data *q,
			const struct xqm_flow *flow)
{
	const int to_prob = XQM_RATE_SHIFT - AQM_PROB_SHIFT;

	return aqm_put_stat(skb, TCA_XQM_CLASS_SHARE, flow->share) ?:
	       aqm_put_stat(skb, TCA_XQM_CLASS_THROUGHPUT, flow->throughput) ?:
	       aqm_put_stat(skb, TCA_XQM_CLASS_RTT, flow->rtt) ?:
	       aqm_put_stat(skb, TCA_XQM_CLASS_QUIESCENT,
			    flow->quiescent >> to_prob) ?:
	       aqm_put_stat(skb, TCA_XQM_CLASS_IMPOSED,
			    max(flow->rate, 0LL) >> to_prob) ?:
	       aqm_put_stat(skb, TCA_XQM_CLASS_EXOGENOUS,
			    xqm_exogenous(flow) >> to_prob) ?:
	       aqm_put_stat(skb, TCA_XQM_CLASS_HIDDEN,
			    xqm_hidden(q, flow)) ?:
	       aqm_put_stat(skb, TCA_XQM_CLASS_WEIGHT, flow->weight);
}

static int xqm_dump_class_stats(struct Qdisc *sch, unsigned long class,
				struct gnet_dump *d)
{
	struct xqm_sched_data *q = qdisc_priv(sch);
	const struct xqm_shown *shown;
	struct xqm_flow *flow, now;
	struct nlattr *nest;
	u64 name;
	int err = 0;

	if (class > q->shown_count)
		return 0;
	shown = &q->shown[class - 1];
	nest = nla_nest_start(d->skb, TCA_STATS_APP);
	if (!nest)
		return -EMSGSIZE;

	sch_tree_lock(sch);
	xqm_update(sch, aqm_now_exactly(&q->queue));
	flow = xqm_control_at(q, shown->place, &name);
	if (name == shown->name) {
		now = xqm_at_present(q, flow);
		err = xqm_put_flow(d->skb, q, &now);
	}
	sch_tree_unlock(sch);

	if (err) {
		nla_nest_cancel(d->skb, nest);
		return err;
	}
	return nla_nest_end(d->skb, nest);
}

static const struct Qdisc_class_ops xqm_class_ops = {
	.leaf		= xqm_leaf,
	.find		= xqm_find_class,
	.walk		= xqm_walk,
	.dump		= xqm_dump_class,
	.dump_stats	= xqm_dump_class_stats,
};

static struct Qdisc_ops xqm_qdisc_ops __read_mostly = {
	.id		= "xqm",
	.cl_ops		= &xqm_class_ops,
	.priv_size	= sizeof(struct xqm_sched_data),
	.enqueue	= xqm_enqueue,
	.dequeue	= xqm_dequeue,
	.peek		= qdisc_peek_head,
	.init		= xqm_init,
	.reset		= xqm_reset,
	.destroy	= xqm_destroy,
	.change		= xqm_change,
	.dump		= xqm_dump,
	.dump_stats	= xqm_dump_stats,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("xqm");

module_driver(xqm_qdisc_ops, register_qdisc, unregister_qdisc);
MODULE_DESCRIPTION("eXogenous-loss aware queue management");
MODULE_AUTHOR("The aqmkit authors");
MODULE_VERSION("0.1");
MODULE_LICENSE("GPL");
