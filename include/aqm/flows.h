/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A bounded table of TCP flows and what a router in the middle can tell of their
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
 * small sets with a lock each; a flow that is new to a full set takes the place
 * of the stalest there, which is a random sample to everybody else. A flow not
 * seen for AQM_FLOW_AGE is forgotten.
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
#define AQM_FLOW_AGE	(600UL * HZ)	/* jiffies */

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
 * struct aqm_flow - a flow
 * @name: as in struct aqm_segment; 0 if the place is free
 * @seen: when its last packet passed, jiffies
 * @syn: when the client's last SYN passed, ns; 0 if no ACK is awaited
 * @client: direction of the SYN
 * @handshake: time from SYN to ACK, the smallest, ns; 0 if unknown
 * @half: what timestamps tell of each direction
 */
struct aqm_flow {
	u64 name;
	unsigned long seen;
	u64 syn;
	u8 client;
	u64 handshake;
	struct aqm_half half[2];
};

struct aqm_flow_set {
	spinlock_t lock;	/* guards @flow */
	struct aqm_flow flow[AQM_FLOW_WAYS];
};

/**
 * struct aqm_flows - the table
 * @key: of the hash
 * @mask: sets less one; sets are a power of two
 * @set: sets
 */
struct aqm_flows {
	siphash_key_t key;
	u32 mask;
	struct aqm_flow_set *set;
};

/**
 * aqm_flows_create() - make a table
 * @count: flows it holds at most, a power of two from AQM_FLOW_WAYS up
 *
 * Return: the table, or NULL for want of memory.
 */
static inline struct aqm_flows *aqm_flows_create(u32 count)
{
	struct aqm_flows *flows = kzalloc(sizeof(*flows), GFP_KERNEL);
	u32 sets = count / AQM_FLOW_WAYS;
	u32 i;

	if (!flows)
		return NULL;
	flows->set = kvcalloc(sets, sizeof(*flows->set), GFP_KERNEL);
	if (!flows->set) {
		kfree(flows);
		return NULL;
	}
	for (i = 0; i < sets; i++)
		spin_lock_init(&flows->set[i].lock);
	flows->mask = sets - 1;
	get_random_bytes(&flows->key, sizeof(flows->key));
	return flows;
}

static inline void aqm_flows_destroy(struct aqm_flows *flows)
{
	if (flows)
		kvfree(flows->set);
	kfree(flows);
}

/* Is @flow one that is still known? */
static inline bool aqm_flow_known(const struct aqm_flow *flow)
{
	return flow->name && time_before(jiffies, flow->seen + AQM_FLOW_AGE);
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
	/* The lower end first, so that both directions make the same. */
	struct {
		struct in6_addr address[2];
		__be16 port[2];
	} ends __aligned(SIPHASH_ALIGNMENT);
	__be16 protocol = aqm_protocol(skb);
	int offset = skb_network_offset(skb);
	u8 buffer[60];	/* a TCP header at its longest */
	const struct tcphdr *tcp;
	u8 way, back;

	memset(&ends, 0, sizeof(ends));
	memset(segment, 0, sizeof(*segment));
	switch (protocol) {
	case htons(ETH_P_IP): {
		struct iphdr copy;
		const struct iphdr *ip;

		ip = skb_header_pointer(skb, offset, sizeof(copy), &copy);
		if (!ip || ip->version != 4 || ip->ihl < 5 ||
		    ip->protocol != IPPROTO_TCP ||
		    ip->frag_off & htons(IP_OFFSET))
			return false;
		way = ntohl(ip->saddr) > ntohl(ip->daddr);
		back = !way;
		ipv6_addr_set_v4mapped(ip->saddr, &ends.address[way]);
		ipv6_addr_set_v4mapped(ip->daddr, &ends.address[back]);
		offset += 4 * ip->ihl;
		break;
	}
	case htons(ETH_P_IPV6): {
		struct ipv6hdr copy;
		const struct ipv6hdr *ip;

		ip = skb_header_pointer(skb, offset, sizeof(copy), &copy);
		if (!ip || ip->nexthdr != IPPROTO_TCP)
			return false;
		way = memcmp(&ip->saddr, &ip->daddr, sizeof(ip->saddr)) > 0;
		back = !way;
		ends.address[way] = ip->saddr;
		ends.address[back] = ip->daddr;
		offset += sizeof(copy);
		break;
	}
	default:
		return false;
	}

	tcp = skb_header_pointer(skb, offset, sizeof(*tcp), buffer);
	if (!tcp || tcp->doff < 5)
		return false;
	tcp = skb_header_pointer(skb, offset, 4 * tcp->doff, buffer);
	if (!tcp)
		return false;
	if (ipv6_addr_equal(&ends.address[0], &ends.address[1])) {
		way = ntohs(tcp->source) > ntohs(tcp->dest);
		back = !way;
	}
	ends.port[way] = tcp->source;
	ends.port[back] = tcp->dest;

	segment->flow = siphash(&ends, sizeof(ends), &flows->key) ?: 1;
	segment->way = way;
	segment->syn = tcp->syn;
	segment->ack = tcp->ack;
	aqm_parse_timestamps(segment, (const u8 *)(tcp + 1),
			     4 * tcp->doff - sizeof(*tcp));
	return true;
}

static inline struct aqm_flow *aqm_flow_find(struct aqm_flow_set *set, u64 name)
{
	struct aqm_flow *stalest = NULL;
	int way;

	for (way = 0; way < AQM_FLOW_WAYS; way++) {
		struct aqm_flow *flow = &set->flow[way];

		if (flow->name == name && aqm_flow_known(flow))
			return flow;
		if (!stalest || !aqm_flow_known(flow) ||
		    (aqm_flow_known(stalest) &&
		     time_before(flow->seen, stalest->seen)))
			stalest = flow;
	}
	*stalest = (struct aqm_flow){ .name = name };
	return stalest;
}

static inline void aqm_smaller(u64 *smallest, u64 sample)
{
	if (!*smallest || sample < *smallest)
		*smallest = max(sample, 1ULL);
}

/* The handshake: SYN, and the first ACK in its direction. */
static inline void aqm_flow_handshake(struct aqm_flow *flow,
				      const struct aqm_segment *segment,
				      u64 now)
{
	if (segment->syn && !segment->ack) {
		flow->syn = now;
		flow->client = segment->way;
	} else if (flow->syn && segment->ack && !segment->syn &&
		   segment->way == flow->client) {
		aqm_smaller(&flow->handshake, now - flow->syn);
		flow->syn = 0;
	}
}

/* Timestamps: the first segment with one, and its echo. */
static inline void aqm_flow_timestamps(struct aqm_flow *flow,
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
	struct aqm_flow_set *set = &flows->set[segment->flow & flows->mask];
	struct aqm_flow *flow;
	u64 rtt;

	spin_lock_bh(&set->lock);
	flow = aqm_flow_find(set, segment->flow);
	flow->seen = jiffies;
	aqm_flow_handshake(flow, segment, now);
	rtt = flow->handshake;
	if (timestamps) {
		if (segment->stamped)
			aqm_flow_timestamps(flow, segment, now);
		if (flow->half[0].rtt && flow->half[1].rtt)
			aqm_smaller(&rtt, flow->half[0].rtt + flow->half[1].rtt);
	}
	spin_unlock_bh(&set->lock);
	return rtt;
}

#endif
