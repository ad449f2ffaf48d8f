/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A bounded table of flows and what a router in the middle can tell of their
 * round-trip times.
 *
 * The handshake: from a client's SYN to its first ACK is one whole round trip,
 * wherever on the way both are seen; one direction is enough.
 *
 * Timestamps: from a segment's TSval to its echo, TSecr, is the part of the
 * round trip that is behind us in that direction. Where both directions are
 * seen, the smallest of one part and the smallest of the other add up to a whole
 * one. Late ACKs and queues only ever lengthen a sample.
 *
 * Flows are known by a 64-bit siphash under a random key, that nobody outside
 * can aim at; two flows share one by chance once in 2^64. The table is made of
 * small sets; a flow that is new to a full set takes the place of the stalest
 * there, which is a random sample to everybody else. A flow not seen for
 * AQM_FLOW_AGE is forgotten. A set is one cache line, which tells where its flows
 * are: in the order in which they first came, so that few flows stand close
 * together in a table for many. They are allocated some at a time, since memory
 * in large pieces is hard to get, or slow to use.
 */
#ifndef AQM_FLOWS_H
#define AQM_FLOWS_H

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/tcp.h>
#include <net/tcp.h>

#include <aqm/packet.h>

#define AQM_FLOW_WAYS	8		/* flows in a set */
#define AQM_FLOW_CHUNK	65536		/* bytes of flows allocated at a time */
#define AQM_FLOW_LOCKS	256
#define AQM_FLOW_AGE	(600ULL * HZ)	/* jiffies */

/**
 * struct aqm_ends - where a packet comes from and goes to
 * @address: source and destination, IPv4's mapped; 0 if the packet is not IP
 * @port: theirs, for the user to fill in
 * @kind: what else tells flows apart, for the user to fill in
 */
struct aqm_ends {
	struct in6_addr address[2];
	__be16 port[2];
	u32 kind;
} __aligned(SIPHASH_ALIGNMENT);

/**
 * struct aqm_segment - what the table needs of a TCP segment
 * @flow: names its flow, the same in both directions; never 0
 * @way: its direction, 0 or 1
 * @syn: has SYN set
 * @ack: has ACK set
 * @stamped: has the timestamps option
 * @tsval: timestamp, if @stamped
 * @tsecr: echoed timestamp, if @stamped
 */
struct aqm_segment {
	u64 flow;
	u8 way;
	bool syn;
	bool ack;
	bool stamped;
	u32 tsval;
	u32 tsecr;
};

/**
 * struct aqm_half - one direction of a flow
 * @sent: when the segment with @tsval passed, ns; 0 if none is awaited
 * @tsval: timestamp whose echo is awaited
 * @rtt: smallest time from a timestamp to its echo, ns; 0 if unknown
 */
struct aqm_half {
	u64 sent;
	u32 tsval;
	u64 rtt;
};

/**
 * struct aqm_flow - what any table knows of a flow; first in a user's own struct
 * @name: its name; the table's to set
 * @seen: when its last packet passed, jiffies that do not wrap
 * @syn: when the client's last SYN left, ns; 0 if no ACK is awaited
 * @handshake: time from SYN to ACK, the smallest, ns; 0 if unknown
 * @client: who sent that SYN: a direction, or ports
 */
struct aqm_flow {
	u64 name;
	u64 seen;
	u64 syn;
	u64 handshake;
	u32 client;
};

/**
 * struct aqm_edge_flow - a flow both of whose directions may pass
 * @flow: what any table knows of it
 * @half: what timestamps tell of each direction
 */
struct aqm_edge_flow {
	struct aqm_flow flow;
	struct aqm_half half[2];
};

/**
 * struct aqm_flow_set - the flows whose names have the same low bits
 * @tag: the high bits of their names
 * @place: where they are, plus 1; 0 if there is none
 */
struct aqm_flow_set {
	u32 tag[AQM_FLOW_WAYS];
	u32 place[AQM_FLOW_WAYS];
};

/**
 * struct aqm_flows - the table
 * @key: of the hash
 * @mask: sets less one; sets are a power of two
 * @size: bytes of a flow
 * @used: places used so far
 * @set: sets
 * @shift: flows in a chunk, as a power of two
 * @chunks: how many
 * @lock: for a user without a lock of its own, of every so many sets one
 * @chunk: flows, in places for all that the sets may have
 */
struct aqm_flows {
	siphash_key_t key;
	u32 mask;
	u32 size;
	atomic_t used;
	struct aqm_flow_set *set;
	u32 shift;
	u32 chunks;
	spinlock_t lock[AQM_FLOW_LOCKS];	/* guards every so many sets */
	void *chunk[];
};

static inline void aqm_flows_destroy(struct aqm_flows *flows)
{
	u32 i;

	if (!flows)
		return;
	for (i = 0; i < flows->chunks; i++)
		kvfree(flows->chunk[i]);
	kvfree(flows->set);
	kvfree(flows);
}

/**
 * aqm_flows_create() - make a table
 * @count: flows it holds at most, a power of two from AQM_FLOW_WAYS up
 * @size: bytes of a flow, which begins with struct aqm_flow
 *
 * Return: the table, or NULL for want of memory.
 */
static inline struct aqm_flows *aqm_flows_create(u32 count, u32 size)
{
	u32 shift = ilog2(AQM_FLOW_CHUNK / size);
	u32 chunks = DIV_ROUND_UP(count, 1U << shift);
	u32 sets = count / AQM_FLOW_WAYS;
	struct aqm_flows *flows;
	u32 i;

	flows = kvzalloc(struct_size(flows, chunk, chunks), GFP_KERNEL_ACCOUNT);
	if (!flows)
		return NULL;
	flows->size = size;
	flows->mask = sets - 1;
	flows->shift = shift;
	flows->set = kvcalloc(sets, sizeof(*flows->set), GFP_KERNEL_ACCOUNT);
	if (!flows->set)
		goto err;
	for (i = 0; i < chunks; i++) {
		flows->chunk[i] = kvcalloc(min(count, 1U << shift), size,
					   GFP_KERNEL_ACCOUNT);
		if (!flows->chunk[i])
			goto err;
		flows->chunks++;
		cond_resched();
	}
	for (i = 0; i < AQM_FLOW_LOCKS; i++)
		spin_lock_init(&flows->lock[i]);
	get_random_bytes(&flows->key, sizeof(flows->key));
	return flows;

err:
	aqm_flows_destroy(flows);
	return NULL;
}

/* How many places have a flow, be it long gone. */
static inline u32 aqm_flows_used(const struct aqm_flows *flows)
{
	return atomic_read(&flows->used);
}

/* The flow at a place. */
static inline void *aqm_flow_at(const struct aqm_flows *flows, u32 place)
{
	return flows->chunk[place >> flows->shift] +
		(place & ((1U << flows->shift) - 1)) * flows->size;
}

/* Is @flow one that is still known? */
static inline bool aqm_flow_known(const struct aqm_flow *flow)
{
	return time_before64(get_jiffies_64(), flow->seen + AQM_FLOW_AGE);
}

/* The timestamps option, wherever among the options it is. */
static inline void aqm_parse_timestamps(struct aqm_segment *segment,
					const u8 *option, int length)
{
	while (length > 1 && *option != TCPOPT_EOL) {
		int size = *option == TCPOPT_NOP ? 1 : option[1];

		if (size > length || (*option != TCPOPT_NOP && size < 2))
			return;
		if (*option == TCPOPT_TIMESTAMP && size == TCPOLEN_TIMESTAMP) {
			segment->stamped = true;
			segment->tsval = get_unaligned_be32(option + 2);
			segment->tsecr = get_unaligned_be32(option + 6);
			return;
		}
		option += size;
		length -= size;
	}
}

/**
 * aqm_parse_ends() - look at a packet's IP header
 * @ends: out: its addresses, and 0 for the rest
 * @skb: packet
 * @transport: out: where the next header is, or -1 if not in this packet
 *
 * Return: the protocol of what IP carries, or -1 if the packet is not IP.
 */
static inline int aqm_parse_ends(struct aqm_ends *ends, struct sk_buff *skb,
				 int *transport)
{
	__be16 protocol = aqm_protocol(skb);
	int offset = skb_network_offset(skb);

	memset(ends, 0, sizeof(*ends));
	*transport = -1;
	switch (protocol) {
	case htons(ETH_P_IP): {
		struct iphdr copy;
		const struct iphdr *ip;

		ip = skb_header_pointer(skb, offset, sizeof(copy), &copy);
		if (!ip || ip->version != 4 || ip->ihl < 5)
			return -1;
		ipv6_addr_set_v4mapped(ip->saddr, &ends->address[0]);
		ipv6_addr_set_v4mapped(ip->daddr, &ends->address[1]);
		if (!(ip->frag_off & htons(IP_OFFSET)))
			*transport = offset + 4 * ip->ihl;
		return ip->protocol;
	}
	case htons(ETH_P_IPV6): {
		struct ipv6hdr copy;
		const struct ipv6hdr *ip;

		ip = skb_header_pointer(skb, offset, sizeof(copy), &copy);
		if (!ip)
			return -1;
		ends->address[0] = ip->saddr;
		ends->address[1] = ip->daddr;
		*transport = offset + sizeof(copy);
		return ip->nexthdr;
	}
	default:
		return -1;
	}
}

/**
 * aqm_flow_slot() - which of some flows a packet belongs to
 * @key: of the hash
 * @slots: how many there are, a power of two; those that share one are one flow
 * @skb: packet
 *
 * A flow is what has the same addresses, protocol and ports. What is no IP is one
 * flow, and so are the fragments from one host to another.
 *
 * Return: below @slots.
 */
static inline u32 aqm_flow_slot(const siphash_key_t *key, u32 slots,
				struct sk_buff *skb)
{
	struct aqm_ends ends;
	int offset, protocol = aqm_parse_ends(&ends, skb, &offset);
	__be16 copy[2], *ports = NULL;

	switch (protocol) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_SCTP:
	case IPPROTO_DCCP:
		if (offset >= 0)
			ports = skb_header_pointer(skb, offset, sizeof(copy),
						   copy);
	}
	if (ports)
		memcpy(ends.port, ports, sizeof(ends.port));
	ends.kind = protocol;
	return siphash(&ends, sizeof(ends), key) & (slots - 1);
}

/* The name of the flow between @ends; never 0. */
static inline u64 aqm_flow_name(const struct aqm_flows *flows,
				const struct aqm_ends *ends)
{
	return siphash(ends, sizeof(*ends), &flows->key) ?: 1;
}

/**
 * aqm_parse_segment() - look at a packet's headers
 * @segment: out
 * @flows: table whose name the flow gets
 * @skb: packet
 *
 * Return: is it a TCP segment, with its header in this packet?
 */
static inline bool aqm_parse_segment(struct aqm_segment *segment,
				     const struct aqm_flows *flows,
				     struct sk_buff *skb)
{
	u8 buffer[60];	/* a TCP header at its longest */
	const struct tcphdr *tcp;
	struct aqm_ends ends;
	int offset, order;

	memset(segment, 0, sizeof(*segment));
	if (aqm_parse_ends(&ends, skb, &offset) != IPPROTO_TCP || offset < 0)
		return false;
	tcp = skb_header_pointer(skb, offset, sizeof(*tcp), buffer);
	if (!tcp || tcp->doff < 5)
		return false;
	tcp = skb_header_pointer(skb, offset, 4 * tcp->doff, buffer);
	if (!tcp)
		return false;
	ends.port[0] = tcp->source;
	ends.port[1] = tcp->dest;

	/* The lower end first, so that both directions make the same. */
	order = memcmp(&ends.address[0], &ends.address[1],
		       sizeof(ends.address[0])) ?:
		(int)ntohs(ends.port[0]) - ntohs(ends.port[1]);
	if (order > 0) {
		swap(ends.address[0], ends.address[1]);
		swap(ends.port[0], ends.port[1]);
		segment->way = 1;
	}

	segment->flow = aqm_flow_name(flows, &ends);
	segment->syn = tcp->syn;
	segment->ack = tcp->ack;
	aqm_parse_timestamps(segment, (const u8 *)(tcp + 1),
			     4 * tcp->doff - sizeof(*tcp));
	return true;
}

/* A place for a flow that is new to a set: a free one, or the stalest's. */
static inline void *aqm_flow_room(struct aqm_flows *flows,
				  struct aqm_flow_set *set, u32 tag)
{
	struct aqm_flow *flow, *stalest = NULL;
	u32 way, victim = 0;

	for (way = 0; way < AQM_FLOW_WAYS; way++) {
		if (!set->place[way]) {
			set->tag[way] = tag;
			set->place[way] = atomic_inc_return(&flows->used);
			return aqm_flow_at(flows, set->place[way] - 1);
		}
		flow = aqm_flow_at(flows, set->place[way] - 1);
		if (!stalest || time_before64(flow->seen, stalest->seen)) {
			stalest = flow;
			victim = way;
		}
	}
	set->tag[victim] = tag;
	return stalest;
}

/**
 * aqm_flow_find() - find a flow, or make room for it
 * @flows: table, the flow's set locked
 * @name: the flow's name, not 0
 * @fresh: out: the flow was not known, and aqm_flow_begin() is to be called: what
 *	   is returned still holds what was known of the one that it takes the
 *	   place of
 *
 * Return: the flow, which the caller says is seen.
 */
static inline void *aqm_flow_find(struct aqm_flows *flows, u64 name,
				  bool *fresh)
{
	struct aqm_flow_set *set = &flows->set[name & flows->mask];
	u32 tag = name >> 32, way;
	struct aqm_flow *flow;

	for (way = 0; way < AQM_FLOW_WAYS; way++) {
		if (set->tag[way] != tag || !set->place[way])
			continue;
		flow = aqm_flow_at(flows, set->place[way] - 1);
		if (flow->name != name)
			continue;
		*fresh = !aqm_flow_known(flow);
		return flow;
	}
	*fresh = true;
	return aqm_flow_room(flows, set, tag);
}

/* A flow begins, of which nothing is known but its name. */
static inline void aqm_flow_begin(const struct aqm_flows *flows,
				  struct aqm_flow *flow, u64 name)
{
	memset(flow, 0, flows->size);
	flow->name = name;
}

static inline void aqm_smaller(u64 *smallest, u64 sample)
{
	if (!*smallest || sample < *smallest)
		*smallest = max(sample, 1ULL);
}

/**
 * aqm_flow_handshake() - a segment passes: SYN, or the first ACK after it?
 * @flow: its flow
 * @syn: has SYN set
 * @ack: has ACK set
 * @client: who sends it: a direction, or ports
 * @now: time, ns
 * @leaves: when it will be on its way, ns
 */
static inline void aqm_flow_handshake(struct aqm_flow *flow, bool syn, bool ack,
				      u32 client, u64 now, u64 leaves)
{
	if (syn && !ack) {
		flow->syn = leaves;
		flow->client = client;
	} else if (flow->syn && ack && !syn && client == flow->client) {
		if (now >= flow->syn)
			aqm_smaller(&flow->handshake, now - flow->syn);
		flow->syn = 0;
	}
}

/* Timestamps: the first segment with one, and its echo. */
static inline void aqm_flow_timestamps(struct aqm_edge_flow *flow,
				       const struct aqm_segment *segment,
				       u64 now)
{
	struct aqm_half *here = &flow->half[segment->way];
	struct aqm_half *there = &flow->half[!segment->way];

	if (there->sent && segment->ack &&
	    (s32)(segment->tsecr - there->tsval) >= 0) {
		if (segment->tsecr == there->tsval)
			aqm_smaller(&there->rtt, now - there->sent);
		there->sent = 0;
	}
	if (!here->sent && here->tsval != segment->tsval) {
		here->tsval = segment->tsval;
		here->sent = now;
	}
}

/**
 * aqm_flow_rtt() - a segment passes: learn from it
 * @flows: table
 * @segment: the segment
 * @now: time, ns
 * @timestamps: use timestamps too
 *
 * Return: the smallest round-trip time known of its flow, ns; 0 if none.
 */
static inline u64 aqm_flow_rtt(struct aqm_flows *flows,
			       const struct aqm_segment *segment, u64 now,
			       bool timestamps)
{
	spinlock_t *lock = &flows->lock[segment->flow & flows->mask &
					(AQM_FLOW_LOCKS - 1)];
	struct aqm_edge_flow *flow;
	bool fresh;
	u64 rtt;

	spin_lock_bh(lock);
	flow = aqm_flow_find(flows, segment->flow, &fresh);
	if (fresh)
		aqm_flow_begin(flows, &flow->flow, segment->flow);
	flow->flow.seen = get_jiffies_64();
	aqm_flow_handshake(&flow->flow, segment->syn, segment->ack,
			   segment->way, now, now);
	rtt = flow->flow.handshake;
	if (timestamps) {
		if (segment->stamped)
			aqm_flow_timestamps(flow, segment, now);
		if (flow->half[0].rtt && flow->half[1].rtt)
			aqm_smaller(&rtt, flow->half[0].rtt + flow->half[1].rtt);
	}
	spin_unlock_bh(lock);
	return rtt;
}

#endif
