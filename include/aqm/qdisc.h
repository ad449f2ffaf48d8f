/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The queue around a control law: a FIFO with a limit, mark or drop, counters,
 * the netlink options and statistics that all disciplines share.
 *
 * A discipline embeds struct aqm_queue and tells it, for each arrival, whether
 * its law wants the packet to carry a congestion signal. sch->q holds the
 * packets, so qlen and backlog are what parents and tc expect.
 *
 * A super-packet (GSO) counts as the segments it will become.
 */
#ifndef AQM_QDISC_H
#define AQM_QDISC_H

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jiffies.h>
#include <linux/pkt_sched_aqm.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <linux/timekeeping.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

#include <aqm/compat.h>
#include <aqm/dice.h>
#include <aqm/fixed.h>
#include <aqm/packet.h>

#define AQM_LIMIT_MAX		1048576U	/* packets */
#define AQM_BANDWIDTH_MIN	1000ULL		/* bytes/s */
#define AQM_BANDWIDTH_MAX	125000000000ULL	/* bytes/s */
#define AQM_AVPKT_MIN		64U		/* bytes */
#define AQM_AVPKT_MAX		65535U		/* bytes */
#define AQM_DSCP_MAX		63

/* Packets over which the mean packet length is remembered, about. */
#define AQM_LENGTH_MEMORY	8192

/*
 * Arrivals and departures a second up to which each has the clock read, and
 * beyond, the how manyth. See aqm_now().
 */
#define AQM_EXACT_RATE		64000
#define AQM_CLOCK_STRIDE	32

/**
 * struct aqm_config - the options all disciplines share
 * @limit: packets the queue holds at most
 * @target: packets the law aims at, 0 = it has no target
 * @avpkt: bytes of a packet, 0 = use the mean of the accepted ones
 * @protect: DSCP whose packets are spared early drops, or TC_AQM_NO_DSCP
 * @ecn: mark ECN-capable packets instead of dropping them
 * @bytemode: count bytes, @avpkt to the packet
 * @bandwidth: of the link, bytes/s, 0 = unknown
 */
struct aqm_config {
	u32 limit;
	u32 target;
	u32 avpkt;
	u8 protect;
	bool ecn;
	bool bytemode;
	u64 bandwidth;
};

/**
 * struct aqm_stats - counters since the queue was made
 * @delay: time the packet that left last had waited, ns
 * @pkts_in: packets accepted
 * @overlimit: packets dropped for want of room
 * @dropped: packets dropped early
 * @maxq: most packets ever queued
 * @ecn_mark: packets marked
 * @protected: packets that their DSCP spared
 */
struct aqm_stats {
	u64 delay;
	u64 pkts_in;
	u64 overlimit;
	u64 dropped;
	u64 maxq;
	u64 ecn_mark;
	u64 protected;
};

/**
 * struct aqm_clock - the time, as far as it was read
 * @now: when it was read last, ns
 * @tick: jiffy in which that was
 * @readings: since that jiffy began
 * @holds: for how many events more, within that jiffy, @now may stand
 */
struct aqm_clock {
	u64 now;
	unsigned long tick;
	u32 readings;
	u32 holds;
};

/**
 * struct aqm_queue - a queue
 * @config: its options
 * @clock: the time
 * @dice: tell which packets carry a congestion signal
 * @byte_rate: bandwidth, bytes/ns in Q48
 * @byte_time: inverse of the bandwidth, ns/byte in Q24; 0 if unknown
 * @packets: packets queued
 * @sum_bytes: bytes accepted, halved together with @sum_packets
 * @sum_packets: packets accepted, at most AQM_LENGTH_MEMORY
 * @stats: counters
 */
struct aqm_queue {
	struct aqm_config config;
	struct aqm_clock clock;
	struct aqm_dice dice;
	u64 byte_rate;
	u64 byte_time;
	u32 packets;
	u64 sum_bytes;
	u32 sum_packets;
	struct aqm_stats stats;
};

/**
 * struct aqm_cb - what a queued packet carries
 * @enqueued: when it came, ns
 * @packets: how many it counts for
 * @twice: it is to be sent twice: for the discipline to set, once it is queued
 * @flow: its flow, for a discipline that counts them
 */
struct aqm_cb {
	u64 enqueued;
	u32 packets : 31;
	u32 twice : 1;
	u32 flow;
};

static inline struct aqm_cb *aqm_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct aqm_cb));
	return (struct aqm_cb *)qdisc_skb_cb(skb)->data;
}

/**
 * enum aqm_verdict - what became of a packet that arrived
 * @AQM_PASS: queued as it was
 * @AQM_MARK: queued and marked
 * @AQM_SPARE: queued as it was, for its DSCP
 * @AQM_DROP: dropped early, by the law
 * @AQM_OVERFLOW: dropped for want of room
 */
enum aqm_verdict {
	AQM_PASS,
	AQM_MARK,
	AQM_SPARE,
	AQM_DROP,
	AQM_OVERFLOW,
};

#define aqm_show_verdict(verdict)			\
	__print_symbolic(verdict,			\
			 { AQM_PASS, "pass" },		\
			 { AQM_MARK, "mark" },		\
			 { AQM_SPARE, "spare" },	\
			 { AQM_DROP, "drop" },		\
			 { AQM_OVERFLOW, "overflow" })

static inline bool aqm_dropped(enum aqm_verdict verdict)
{
	return verdict >= AQM_DROP;
}

/* The time, ns, read from the clock. */
static inline u64 aqm_now_exactly(struct aqm_queue *queue)
{
	queue->clock.now = ktime_get_ns();
	return queue->clock.now;
}

/**
 * aqm_now() - the time of an arrival or a departure
 * @queue: its queue, before the packet is added or taken away
 *
 * Reading the clock may cost as much as all else that is done here to a packet,
 * and no law's sampling is as fine as that. It is read for all events as long
 * as they are fewer than AQM_EXACT_RATE a second, and for those that find the
 * queue empty, since idle time is measured from one packet to the next. In a
 * jiffy that has more, every AQM_CLOCK_STRIDE-th reads it: laws are then late by
 * fewer events than that, and never by more than the rest of the jiffy.
 *
 * Return: ns, never less than before.
 */
static inline u64 aqm_now(struct aqm_queue *queue)
{
	struct aqm_clock *clock = &queue->clock;
	unsigned long tick = jiffies;

	if (likely(clock->holds && clock->tick == tick && queue->packets)) {
		clock->holds--;
		return clock->now;
	}

	if (clock->tick != tick) {
		clock->tick = tick;
		clock->readings = 0;
	}
	clock->holds = 0;
	if (++clock->readings > AQM_EXACT_RATE / HZ)
		clock->holds = AQM_CLOCK_STRIDE - 1;
	return aqm_now_exactly(queue);
}

/* Is this packet to carry a congestion signal, with @part / @whole, both Q32? */
static inline bool aqm_hit_of(struct aqm_queue *queue, u64 part, u64 whole)
{
	if (likely(!aqm_dice_hit(&queue->dice, part, whole)))
		return false;
	aqm_dice_throw(&queue->dice, get_random_u64());
	return true;
}

/* Is this packet to carry a congestion signal, with @probability, Q32? */
static inline bool aqm_hit(struct aqm_queue *queue, u64 probability)
{
	return aqm_hit_of(queue, probability, AQM_PROB_ONE);
}

/* The law's units in a packet. */
static inline u32 aqm_unit(const struct aqm_config *config)
{
	return config->bytemode ? config->avpkt : 1;
}

/* The queue as the law counts it, in units. */
static inline u64 aqm_backlog(const struct Qdisc *sch,
			      const struct aqm_queue *queue)
{
	return queue->config.bytemode ? sch->qstats.backlog : queue->packets;
}

/* What @skb adds to the queue, in units. */
static inline u64 aqm_units(const struct aqm_queue *queue,
			    const struct sk_buff *skb)
{
	return queue->config.bytemode ? qdisc_pkt_len(skb) :
					aqm_cb(skb)->packets;
}

/* Mean length of the accepted packets, or avpkt: bytes, Q8; 0 if unknown. */
static inline u64 aqm_mean_length(const struct aqm_queue *queue)
{
	if (queue->config.avpkt)
		return (u64)queue->config.avpkt << 8;
	if (queue->sum_packets)
		return div_u64(queue->sum_bytes << 8, queue->sum_packets);
	return 0;
}

/**
 * aqm_capacity() - what the link carries
 * @queue: queue
 *
 * Return: units/ns in Q48; 0 while the bandwidth, or how long packets are, is
 * unknown.
 */
static inline u64 aqm_capacity(const struct aqm_queue *queue)
{
	u64 length;

	if (queue->config.bytemode)
		return queue->byte_rate;
	length = aqm_mean_length(queue);
	return length ? div64_u64(queue->byte_rate << 8, length) : 0;
}

/* @rate, bytes/s, in packets of mean length: packets/s, Q8; 0 if unknown. */
static inline u64 aqm_packet_rate(const struct aqm_queue *queue, u64 rate)
{
	u64 length = aqm_mean_length(queue);

	return length ? div64_u64(rate << (8 + 8), length) : 0;
}

/* How long the link takes to send @bytes, ns; 0 if that is unknown. */
static inline u64 aqm_send_time(const struct aqm_queue *queue, u32 bytes)
{
	return (bytes * queue->byte_time) >> 24;
}

/* How long the link takes for a packet of mean length, ns; 0 if unknown. */
static inline u64 aqm_mean_send_time(const struct aqm_queue *queue)
{
	u64 length = aqm_mean_length(queue);

	return aqm_mul(length, queue->byte_time, 24 + 8);
}

static inline void aqm_measure_length(struct aqm_queue *queue, u32 bytes,
				      u32 packets)
{
	queue->sum_bytes += bytes;
	queue->sum_packets += packets;
	if (queue->sum_packets >= AQM_LENGTH_MEMORY) {
		queue->sum_bytes /= 2;
		queue->sum_packets /= 2;
	}
}

/* The byte of @skb that holds DSCP and ECN, or -1 if it is not IP. */
static inline int aqm_dsfield(struct sk_buff *skb)
{
	__be16 protocol = aqm_protocol(skb);
	int offset = skb_network_offset(skb);
	struct ipv6hdr ip6_copy, *ip6;
	struct iphdr ip_copy, *ip;

	switch (protocol) {
	case htons(ETH_P_IP):
		ip = skb_header_pointer(skb, offset, sizeof(ip_copy), &ip_copy);
		return ip ? ipv4_get_dsfield(ip) : -1;
	case htons(ETH_P_IPV6):
		ip6 = skb_header_pointer(skb, offset, sizeof(ip6_copy),
					 &ip6_copy);
		return ip6 ? ipv6_get_dsfield(ip6) : -1;
	default:
		return -1;
	}
}

/* Would a packet that is to carry a congestion signal be marked? */
static inline bool aqm_markable(const struct aqm_queue *queue,
				struct sk_buff *skb)
{
	int dsfield = queue->config.ecn ? aqm_dsfield(skb) : -1;

	return dsfield >= 0 && !INET_ECN_is_not_ect(dsfield);
}

/* How a packet that is to carry a congestion signal carries it. */
static noinline enum aqm_verdict aqm_signal(const struct aqm_queue *queue,
					    struct sk_buff *skb)
{
	int dsfield = aqm_dsfield(skb);

	if (dsfield >= 0 && dsfield >> 2 == queue->config.protect)
		return AQM_SPARE;
	if (!queue->config.ecn || dsfield < 0)
		return AQM_DROP;
	if (INET_ECN_is_ce(dsfield))
		return AQM_PASS;	/* marked upstream: says it already */
	return INET_ECN_set_ce(skb) ? AQM_MARK : AQM_DROP;
}

/**
 * aqm_enqueue() - a packet arrives
 * @skb: the packet
 * @sch: discipline
 * @queue: its queue
 * @congested: the law wants the packet to carry a congestion signal
 * @now: time, ns
 *
 * The caller drops the packet if the verdict says so: that is what
 * aqm_dropped() and qdisc_drop() are for.
 *
 * Return: what became of the packet.
 */
static inline enum aqm_verdict aqm_enqueue(struct sk_buff *skb,
					   struct Qdisc *sch,
					   struct aqm_queue *queue,
					   bool congested, u64 now)
{
	struct aqm_stats *stats = &queue->stats;
	enum aqm_verdict verdict = AQM_PASS;
	u32 packets = aqm_packets(skb);

	aqm_cb(skb)->packets = packets;
	aqm_cb(skb)->twice = false;

	/* A super-packet beyond the limit passes through an empty queue. */
	if (queue->packets && queue->packets + packets > queue->config.limit)
		verdict = AQM_OVERFLOW;
	if (unlikely(congested)) {
		enum aqm_verdict signal = aqm_signal(queue, skb);

		if (signal == AQM_DROP || verdict != AQM_OVERFLOW)
			verdict = signal;
	}

	switch (verdict) {
	case AQM_OVERFLOW:
		stats->overlimit += packets;
		return verdict;
	case AQM_DROP:
		qdisc_qstats_overlimit(sch);
		stats->dropped += packets;
		return verdict;
	case AQM_MARK:
		qdisc_qstats_overlimit(sch);
		stats->ecn_mark += packets;
		break;
	case AQM_SPARE:
		stats->protected += packets;
		break;
	case AQM_PASS:
		break;
	}

	aqm_cb(skb)->enqueued = now;
	aqm_measure_length(queue, qdisc_pkt_len(skb), packets);
	queue->packets += packets;
	stats->pkts_in += packets;
	stats->maxq = max_t(u64, stats->maxq, queue->packets);
	qdisc_enqueue_tail(skb, sch);
	return verdict;
}

/**
 * aqm_dequeue() - a packet departs
 * @sch: discipline
 * @queue: its queue
 * @now: time, ns
 *
 * Return: the packet, or NULL if none is queued.
 */
static inline struct sk_buff *aqm_dequeue(struct Qdisc *sch,
					  struct aqm_queue *queue, u64 now)
{
	struct sk_buff *skb = qdisc_dequeue_head(sch);

	if (skb) {
		queue->packets -= aqm_cb(skb)->packets;
		queue->stats.delay = now - aqm_cb(skb)->enqueued;
	}
	return skb;
}

/**
 * aqm_send_again() - a packet that departs does so once more, as the next one
 * @skb: the packet, dequeued; it is the caller's still
 * @sch: discipline
 * @queue: its queue
 *
 * Return: is there a copy of it in the queue now? Parents know of it.
 */
static inline bool aqm_send_again(struct sk_buff *skb, struct Qdisc *sch,
				  struct aqm_queue *queue)
{
	struct sk_buff *copy = skb_clone(skb, GFP_ATOMIC);

	if (!copy)
		return false;
	aqm_cb(copy)->twice = false;
	queue->packets += aqm_cb(copy)->packets;
	__qdisc_enqueue_head(copy, &sch->q);
	qdisc_qstats_backlog_inc(sch, copy);
	qdisc_tree_reduce_backlog(sch, -1, -(int)qdisc_pkt_len(copy));
	return true;
}

static inline void aqm_reset(struct Qdisc *sch, struct aqm_queue *queue)
{
	qdisc_reset_queue(sch);
	queue->packets = 0;
}

/**
 * aqm_configure() - put options into force
 * @sch: discipline, locked
 * @queue: its queue
 * @config: valid options
 *
 * What a lower limit leaves no room for is dropped from the head, oldest first.
 */
static inline void aqm_configure(struct Qdisc *sch, struct aqm_queue *queue,
				 const struct aqm_config *config)
{
	unsigned int count = 0, bytes = 0;

	queue->config = *config;
	aqm_dice_throw(&queue->dice, get_random_u64());
	queue->byte_rate = 0;
	queue->byte_time = 0;
	if (config->bandwidth) {
		/* 2^48 / 10^9 = 2^39 / 5^9, which keeps within 64 bits */
		queue->byte_rate = mul_u64_u64_div_u64(config->bandwidth,
						       1ULL << 39, 1953125);
		queue->byte_time = div64_u64((u64)NSEC_PER_SEC << 24,
					     config->bandwidth);
	}

	while (queue->packets > config->limit) {
		struct sk_buff *skb = __qdisc_dequeue_head(&sch->q);

		queue->packets -= aqm_cb(skb)->packets;
		queue->stats.overlimit += aqm_cb(skb)->packets;
		count++;
		bytes += qdisc_pkt_len(skb);
		qdisc_qstats_backlog_dec(sch, skb);
		rtnl_qdisc_drop(skb, sch);
	}
	/* 0 packets would still have the parent told that its class is empty */
	if (count)
		qdisc_tree_reduce_backlog(sch, count, bytes);
}

#define AQM_POLICY						\
	[TCA_AQM_TARGET]	= { .type = NLA_U32 },		\
	AQM_POLICY_NO_TARGET

/* For a discipline whose law has none. */
#define AQM_POLICY_NO_TARGET					\
	[TCA_AQM_LIMIT]		= { .type = NLA_U32 },		\
	[TCA_AQM_ECN]		= { .type = NLA_U8 },		\
	[TCA_AQM_BYTEMODE]	= { .type = NLA_U8 },		\
	[TCA_AQM_AVPKT]		= { .type = NLA_U32 },		\
	[TCA_AQM_PROTECT]	= { .type = NLA_U8 },		\
	[TCA_AQM_BANDWIDTH]	= { .type = NLA_U64 }

/*
 * Take attribute @attr, if it is there, into @field; or, where it is not within
 * [@low, @high], refuse it with @message, which names the option and its limits.
 * Evaluates to 0 or -EINVAL.
 */
#define AQM_TAKE(field, attr, type, low, high, extack, message)		\
({									\
	struct netlink_ext_ack *__to = (extack);			\
	const struct nlattr *__attr = (attr);				\
	int __err = 0;							\
									\
	if (__attr) {							\
		u64 __value = nla_get_##type(__attr);			\
									\
		if (__value < (low) || __value > (high)) {		\
			NL_SET_BAD_ATTR(__to, __attr);			\
			NL_SET_ERR_MSG_MOD(__to, message);		\
			__err = -EINVAL;				\
		} else {						\
			(field) = __value;				\
		}							\
	}								\
	__err;								\
})

/**
 * aqm_parse() - read the options all disciplines share
 * @config: options in force, and then the new ones
 * @tb: attributes, parsed with AQM_POLICY
 * @extack: where a refusal goes
 *
 * Return: 0, or -EINVAL with @config in an undefined state.
 */
static inline int aqm_parse(struct aqm_config *config, struct nlattr **tb,
			    struct netlink_ext_ack *extack)
{
	int err;

	err = AQM_TAKE(config->limit, tb[TCA_AQM_LIMIT], u32,
		       2, AQM_LIMIT_MAX, extack,
		       "limit must be 2 to 1048576 packets") ?:
	      AQM_TAKE(config->target, tb[TCA_AQM_TARGET], u32,
		       1, AQM_LIMIT_MAX, extack,
		       "target must be at least 1 packet and below limit") ?:
	      AQM_TAKE(config->ecn, tb[TCA_AQM_ECN], u8, 0, 1, extack,
		       "ecn must be 0 or 1") ?:
	      AQM_TAKE(config->bytemode, tb[TCA_AQM_BYTEMODE], u8, 0, 1, extack,
		       "bytemode must be 0 or 1") ?:
	      AQM_TAKE(config->avpkt, tb[TCA_AQM_AVPKT], u32,
		       0, AQM_AVPKT_MAX, extack,
		       "avpkt must be 64 to 65535 bytes, or 0 to measure") ?:
	      AQM_TAKE(config->protect, tb[TCA_AQM_PROTECT], u8,
		       0, TC_AQM_NO_DSCP, extack,
		       "protect must be a DSCP, 0 to 63, or none") ?:
	      AQM_TAKE(config->bandwidth, tb[TCA_AQM_BANDWIDTH], u64,
		       0, AQM_BANDWIDTH_MAX, extack,
		       "bandwidth must be 8kbit to 1tbit, or 0 if unknown");
	if (err)
		return err;

	if (config->target >= config->limit) {
		NL_SET_ERR_MSG_MOD(extack, "target must be below limit");
		return -EINVAL;
	}
	if (config->avpkt && config->avpkt < AQM_AVPKT_MIN) {
		NL_SET_ERR_MSG_MOD(extack,
				   "avpkt must be 64 to 65535 bytes, or 0 to measure");
		return -EINVAL;
	}
	if (config->bytemode && !config->avpkt) {
		NL_SET_ERR_MSG_MOD(extack,
				   "bytemode needs avpkt, 64 to 65535 bytes");
		return -EINVAL;
	}
	if (config->protect > AQM_DSCP_MAX &&
	    config->protect != TC_AQM_NO_DSCP) {
		NL_SET_ERR_MSG_MOD(extack,
				   "protect must be a DSCP, 0 to 63, or none");
		return -EINVAL;
	}
	if (config->bandwidth && config->bandwidth < AQM_BANDWIDTH_MIN) {
		NL_SET_ERR_MSG_MOD(extack,
				   "bandwidth must be 8kbit to 1tbit, or 0 if unknown");
		return -EINVAL;
	}
	return 0;
}

/* Refuse options without a bandwidth, for a discipline that must know it. */
static inline int aqm_need_bandwidth(const struct aqm_config *config,
				     struct netlink_ext_ack *extack)
{
	if (config->bandwidth)
		return 0;
	NL_SET_ERR_MSG_MOD(extack, "bandwidth must be given: 8kbit to 1tbit");
	return -EINVAL;
}

/* Write the options all disciplines share; the inverse of aqm_parse(). */
static inline int aqm_dump(struct sk_buff *skb, const struct aqm_config *config)
{
	if (nla_put_u32(skb, TCA_AQM_LIMIT, config->limit) ||
	    (config->target &&
	     nla_put_u32(skb, TCA_AQM_TARGET, config->target)) ||
	    nla_put_u8(skb, TCA_AQM_ECN, config->ecn) ||
	    nla_put_u8(skb, TCA_AQM_BYTEMODE, config->bytemode) ||
	    nla_put_u32(skb, TCA_AQM_AVPKT, config->avpkt) ||
	    nla_put_u8(skb, TCA_AQM_PROTECT, config->protect) ||
	    nla_put_u64_64bit(skb, TCA_AQM_BANDWIDTH, config->bandwidth,
			      TCA_AQM_PAD))
		return -EMSGSIZE;
	return 0;
}

/* Write one statistic. */
static inline int aqm_put_stat(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, TCA_AQM_STATS_PAD);
}

/* Write the statistics all disciplines share. */
static inline int aqm_dump_stats(struct sk_buff *skb,
				 const struct aqm_queue *queue, u64 probability)
{
	const struct aqm_stats *stats = &queue->stats;

	return aqm_put_stat(skb, TCA_AQM_STATS_PROB, probability) ?:
	       aqm_put_stat(skb, TCA_AQM_STATS_DELAY, stats->delay) ?:
	       aqm_put_stat(skb, TCA_AQM_STATS_PKTS_IN, stats->pkts_in) ?:
	       aqm_put_stat(skb, TCA_AQM_STATS_OVERLIMIT, stats->overlimit) ?:
	       aqm_put_stat(skb, TCA_AQM_STATS_DROPPED, stats->dropped) ?:
	       aqm_put_stat(skb, TCA_AQM_STATS_MAXQ, stats->maxq) ?:
	       aqm_put_stat(skb, TCA_AQM_STATS_ECN_MARK, stats->ecn_mark) ?:
	       aqm_put_stat(skb, TCA_AQM_STATS_PROTECTED, stats->protected) ?:
	       aqm_put_stat(skb, TCA_AQM_STATS_QUEUE, queue->packets);
}

/**
 * aqm_dump_nest() - write options or statistics, all of them or none
 * @sch: discipline
 * @skb: message
 * @type: of the attribute that they go into
 * @put: writes them; returns 0 or an error
 *
 * Return: as qdisc_ops.dump and dump_stats do.
 */
static inline int aqm_dump_nest(struct Qdisc *sch, struct sk_buff *skb,
				int type,
				int (*put)(struct Qdisc *sch,
					   struct sk_buff *skb))
{
	struct nlattr *nest = nla_nest_start(skb, type);
	int err;

	if (!nest)
		return -EMSGSIZE;
	err = put(sch, skb);
	if (err) {
		nla_nest_cancel(skb, nest);
		return err;
	}
	return nla_nest_end(skb, nest);
}

#endif
