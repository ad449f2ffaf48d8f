/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What kind of packet is this, where is its IP header, how many is it? */
#ifndef AQM_PACKET_H
#define AQM_PACKET_H

#include <linux/if_vlan.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/udp.h>

/**
 * aqm_protocol() - protocol of a packet, behind whatever VLAN tags it has
 * @skb: packet, on its way out or just come in
 *
 * A bridge forwards frames with two tags with the network header at the inner
 * one. It is moved to where it belongs: writing there as if it were IP would
 * corrupt the frame.
 *
 * Return: EtherType, in network order; 0 if the tags do not end.
 */
static inline __be16 aqm_protocol(struct sk_buff *skb)
{
	__be16 type = skb->protocol;
	struct vlan_hdr copy, *tag;
	int offset;

	if (likely(!eth_type_vlan(type)))
		return type;

	offset = skb_mac_offset(skb) + ETH_HLEN;
	do {
		tag = skb_header_pointer(skb, offset, sizeof(copy), &copy);
		if (!tag)
			return 0;
		type = tag->h_vlan_encapsulated_proto;
		offset += VLAN_HLEN;
	} while (eth_type_vlan(type));
	skb_set_network_header(skb, offset);
	return type;
}

/* Segments of a super-packet that came without their number. */
static inline u32 aqm_segments(const struct sk_buff *skb)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);
	unsigned int headers = 0;
	struct tcphdr copy, *tcp;

	if (skb_transport_header_was_set(skb)) {
		headers = skb_transport_offset(skb);
		if (shinfo->gso_type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6)) {
			tcp = skb_header_pointer(skb, headers, sizeof(copy),
						 &copy);
			headers += tcp ? 4 * tcp->doff : 0;
		} else {
			headers += sizeof(struct udphdr);
		}
	}
	return skb->len > headers ?
		DIV_ROUND_UP(skb->len - headers, shinfo->gso_size) : 1;
}

/*
 * Packets that @skb counts for. Super-packets from virtual machines come without
 * their number of segments, on kernels that do not count them on the way.
 */
static inline u32 aqm_packets(const struct sk_buff *skb)
{
	if (!skb_is_gso(skb))
		return 1;
	return skb_shinfo(skb)->gso_segs ?: aqm_segments(skb);
}

#endif
