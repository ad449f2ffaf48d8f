/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RTT label in a packet.
 *
 * The 16-bit Identification of IPv4 packets that have DF set and are no
 * fragments, where it means nothing (RFC 6864), holds the lowest round-trip
 * time that the sender of the packet's flow has seen, in units of 0.1 ms; 0 is
 * no label. IPv6 has no such field.
 */
#ifndef AQM_LABEL_H
#define AQM_LABEL_H

#include <linux/ip.h>
#include <linux/skbuff.h>
#include <linux/time64.h>
#include <net/checksum.h>
#include <net/ip.h>

#include <aqm/packet.h>

#define AQM_LABEL_UNIT	(100ULL * NSEC_PER_USEC)	/* ns */
#define AQM_LABEL_MAX	U16_MAX

/* The label that says @ns; 1 to AQM_LABEL_MAX. */
static inline u16 aqm_label_of(u64 ns)
{
	return clamp_t(u64, div_u64(ns + AQM_LABEL_UNIT / 2, AQM_LABEL_UNIT),
		       1, AQM_LABEL_MAX);
}

/* Can a packet with this header carry a label? */
static inline bool aqm_label_fits(const struct iphdr *ip)
{
	return ip->version == 4 &&
	       (ip->frag_off & htons(IP_DF | IP_MF | IP_OFFSET)) ==
	       htons(IP_DF);
}

/* The label of @skb, 0 for none. */
static inline u16 aqm_label(struct sk_buff *skb)
{
	struct iphdr copy, *ip;

	if (aqm_protocol(skb) != htons(ETH_P_IP))
		return 0;
	ip = skb_header_pointer(skb, skb_network_offset(skb), sizeof(copy),
				&copy);
	return ip && aqm_label_fits(ip) ? ntohs(ip->id) : 0;
}

/**
 * aqm_set_label() - label a packet
 * @skb: packet
 * @label: 1 to AQM_LABEL_MAX, or 0 for none
 *
 * The segments that a super-packet becomes all get its label; where the device
 * cannot do so, it is segmented in software. A super-packet within a tunnel is
 * left alone, since there the flag would speak of the inner header.
 *
 * Return: can the packet carry a label, and does it now?
 */
static inline bool aqm_set_label(struct sk_buff *skb, u16 label)
{
	__be16 id = htons(label);
	struct iphdr *ip;
	unsigned int end;

	if (aqm_protocol(skb) != htons(ETH_P_IP) ||
	    (skb_is_gso(skb) && skb->encapsulation))
		return false;
	end = skb_network_offset(skb) + sizeof(*ip);
	if (!pskb_may_pull(skb, end) || !aqm_label_fits(ip_hdr(skb)) ||
	    skb_try_make_writable(skb, end))
		return false;

	ip = ip_hdr(skb);
	csum_replace2(&ip->check, ip->id, id);
	ip->id = id;
	if (skb_is_gso(skb))
		skb_shinfo(skb)->gso_type |= SKB_GSO_TCP_FIXEDID;
	return true;
}

#endif
