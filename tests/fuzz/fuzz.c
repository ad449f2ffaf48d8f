// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The attacker: an unprivileged user's netlink messages to tc about our kinds, with traffic.
 *
 * Started as root of a guest, it becomes nobody, makes a user namespace in which nobody is root,
 * as anyone may, and in it one network namespace after the other, an epoch each: three devices
 * with trees of qdiscs, which it fills with packets and asks to change. A step is one message:
 * most are valid, then attributes are dropped, doubled, cut, nested wrongly, their lengths lied
 * about, values put at and beyond their limits, bits flipped.
 *
 * What a step does follows from the seed, the epoch and its number, never from what the kernel
 * answered: a step can be left out and the others stay what they are. That is how a failure is
 * cut down to the steps that matter (see fuzz.py).
 *
 * The kernel's log is read along: at the first report it stops, and says where.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libmnl/libmnl.h>
#include <linux/gen_stats.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/pkt_sched_avq.h>
#include <linux/pkt_sched_csfq.h>
#include <linux/pkt_sched_fifa.h>
#include <linux/pkt_sched_fred.h>
#include <linux/pkt_sched_lred.h>
#include <linux/pkt_sched_rem.h>
#include <linux/pkt_sched_xqm.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_gact.h>
#include <linux/tc_act/tc_rttlabel.h>
#include <linux/veth.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <regex.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4 /* 6.2 */
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

#define STEPS 5000 /* of an epoch */
#define NOBODY 65534
#define QUEUES 4
enum { NEAR, FAR, LO, DEVICES };

#define PLACES 5 /* for qdiscs of ours on a device: below its root, or below four classes */
#define ROOM 8192 /* bytes of a message at most */
#define BATCH 32 /* messages of one call at most */
#define ATTRIBUTES 160
#define ERRNOS 1024 /* a power of two */
#define DUMPS 2 /* that go on beside the rest */
#define TCP_PORT 9000
#define LABEL_NS 100000ULL

#define REAL(value) ((uint64_t)((value) * (1ULL << TC_AQM_REAL_SHIFT)))
#define US 1000ULL
#define MS 1000000ULL
#define S 1000000000ULL
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* What the kernel says when something is wrong; the words of lab/run. */
#define REPORT                                                                                   \
	"WARNING:|BUG:|Oops|general protection|KASAN:|UBSAN:|ODEBUG:|refcount_t:"                \
	"|DEBUG_LOCKS_WARN_ON|INFO: (possible|inconsistent|suspicious|trying to register)"       \
	"|INFO: (task .* blocked|rcu)|possible (circular|recursive|irq lock) "                   \
	"|unregister_netdevice: waiting|Out of memory"

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
	int error = errno;
	va_list args;

	va_start(args, format);
	fputs("fuzz: ", stderr);
	vfprintf(stderr, format, args);
	fprintf(stderr, ": %s\n", strerror(error));
	va_end(args);
	exit(2);
}

/* Chance */

static uint64_t chance;

static uint64_t mix(uint64_t value)
{
	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ULL;
	value = (value ^ value >> 27) * 0x94d049bb133111ebULL;
	return value ^ value >> 31;
}

static uint64_t any(void)
{
	chance += 0x9e3779b97f4a7c15ULL;
	return mix(chance);
}

static uint64_t below(uint64_t end)
{
	return any() % end;
}

static bool one_in(uint64_t many)
{
	return !below(many);
}

/* Of all magnitudes alike. */
static uint64_t between(uint64_t from, uint64_t to)
{
	uint64_t span = to - from;
	int bits = span ? 64 - __builtin_clzll(span) : 0;

	span >>= below(bits + 1);
	return from + (span == UINT64_MAX ? any() : below(span + 1));
}

/* What our kinds take */

struct option {
	uint16_t type;
	uint8_t width;
	uint64_t low, high; /* its limits */
	uint64_t from, to; /* what goes with most other options */
	bool needed; /* to make one */
};

#define SHARED                                                                                  \
	{ TCA_AQM_LIMIT, 4, 2, 1048576, 110, 3000, false },                                      \
	{ TCA_AQM_ECN, 1, 0, 1, 0, 1, false },                                                   \
	{ TCA_AQM_BYTEMODE, 1, 0, 1, 0, 1, false },                                              \
	{ TCA_AQM_AVPKT, 4, 64, 65535, 64, 2000, false },                                        \
	{ TCA_AQM_PROTECT, 1, 0, 63, 0, 63, false }
#define AIM { TCA_AQM_TARGET, 4, 1, 1048576, 1, 100, false }
#define LINK(needed) { TCA_AQM_BANDWIDTH, 8, 1000, 125000000000ULL, 20000, 125000000, needed }

static const struct option rem[] = {
	SHARED, AIM, LINK(false),
	{ TCA_REM_INTERVAL, 8, 10 * US, 10 * S, 10 * US, 10 * S, false },
	{ TCA_REM_ALPHA, 8, REAL(0.000001) + 1, REAL(1) - 1, REAL(0.001), REAL(0.9), false },
	{ TCA_REM_GAMMA, 8, REAL(0.000001) + 1, REAL(1), REAL(0.001), REAL(1), false },
	{ TCA_REM_PHI, 8, REAL(1.00001) + 1, REAL(1000), REAL(1.001), REAL(100), false },
	{ TCA_REM_MEASURE, 1, TC_REM_AUTO, TC_REM_RATE, TC_REM_AUTO, TC_REM_RATE, false },
};

static const struct option lred[] = {
	SHARED, AIM,
	{ TCA_LRED_BETA, 8, REAL(0.000001) + 1, REAL(1000), REAL(0.001), REAL(100), false },
	{ TCA_LRED_PERIOD, 8, 1 * MS, 100 * S, 1 * MS, 1 * S, false },
	{ TCA_LRED_PERIODS, 4, 1, 64, 1, 64, false },
	{ TCA_LRED_WEIGHT, 8, 0, REAL(0.99), 0, REAL(0.99), false },
};

#define FIFA_SHARED(base)                                                                       \
	SHARED, LINK(false), { TCA_FIFA_BASE, 1, base, base, base, base, true },                 \
	{ TCA_FIFA_SCALE, 1, 0, 1, 0, 1, false },                                                \
	{ TCA_FIFA_EXPONENT_ROBUST, 8, 0, REAL(4), 0, REAL(4), false },                          \
	{ TCA_FIFA_EXPONENT_FRAGILE, 8, 0, REAL(4), 0, REAL(4), false },                         \
	{ TCA_FIFA_RTT_MIN, 8, LABEL_NS, 65535 * LABEL_NS, LABEL_NS, 50 * MS, false },           \
	{ TCA_FIFA_RTT_MAX, 8, LABEL_NS, 65535 * LABEL_NS, 50 * MS, 65535 * LABEL_NS, false },   \
	{ TCA_FIFA_RTT_WEIGHT, 8, REAL(0.000001) + 1, REAL(1), REAL(0.001), REAL(1), false }

static const struct option fifa_red[] = {
	FIFA_SHARED(TC_FIFA_RED),
	{ TCA_FIFA_RED_MIN, 4, 1, 1048576, 1, 99, true },
	{ TCA_FIFA_RED_MAX, 4, 2, 1048576, 100, 110, true },
	{ TCA_FIFA_RED_PROBABILITY, 8, REAL(0.000001) + 1, REAL(1), REAL(0.01), REAL(1), false },
	{ TCA_FIFA_RED_QWEIGHT, 8, REAL(0.000001) + 1, REAL(0.99), REAL(0.001), REAL(0.99), false },
	{ TCA_FIFA_RED_GENTLE, 1, 0, 1, 0, 1, false },
	{ TCA_FIFA_RED_COUNT, 1, 0, TC_FIFA_COUNT_MAX, 0, TC_FIFA_COUNT_MAX, false },
};

static const struct option fifa_pi[] = {
	FIFA_SHARED(TC_FIFA_PI), AIM,
	{ TCA_FIFA_PI_A, 8, 1, REAL(2), REAL(0.1), REAL(2), false },
	{ TCA_FIFA_PI_B, 8, 0, REAL(2), 0, REAL(0.01), false },
	{ TCA_FIFA_PI_SAMPLING, 4, 1, 100000, 1, 100000, false },
};

static const struct option fifa_rem[] = {
	FIFA_SHARED(TC_FIFA_REM), AIM,
	{ TCA_REM_INTERVAL, 8, 10 * US, 10 * S, 10 * US, 10 * S, false },
	{ TCA_REM_ALPHA, 8, REAL(0.000001) + 1, REAL(1) - 1, REAL(0.001), REAL(0.9), false },
	{ TCA_REM_GAMMA, 8, REAL(0.000001) + 1, REAL(1), REAL(0.001), REAL(1), false },
	{ TCA_REM_PHI, 8, REAL(1.00001) + 1, REAL(1000), REAL(1.001), REAL(100), false },
	{ TCA_REM_MEASURE, 1, TC_REM_AUTO, TC_REM_RATE, TC_REM_AUTO, TC_REM_RATE, false },
};

/* A table for a million flows takes the guest a second to make: few steps ask for one. */
static const struct option xqm[] = {
	SHARED, AIM, LINK(true),
	{ TCA_XQM_FLOWS, 4, 8, 1048576, 8, 2048, true },
	{ TCA_XQM_CONTROL, 1, 0, TC_XQM_CONTROL_MAX, TC_XQM_ONOFF, TC_XQM_PI_TB, false },
	{ TCA_XQM_CONTROL_PERIOD, 8, 1 * MS, 1 * S, 1 * MS, 10 * MS, false },
	{ TCA_XQM_MEASURE_PERIOD, 8, 20 * MS, 100 * S, 200 * MS, 100 * S, false },
	{ TCA_XQM_DELTA, 8, 0, REAL(1), 0, REAL(1), false },
	{ TCA_XQM_PHI, 8, 0, REAL(1), 0, REAL(1), false },
	{ TCA_XQM_FLOW, 1, 0, TC_XQM_FLOW_MAX, 0, TC_XQM_FLOW_MAX, false },
	{ TCA_XQM_SHORT, 4, 0, 1000000, 0, 20, false },
	{ TCA_XQM_SHORT_SHARE, 8, 0, 124999999999ULL, 0, 19999, false },
	{ TCA_XQM_RTT, 1, 0, TC_XQM_RTT_MAX, 0, TC_XQM_RTT_MAX, false },
	{ TCA_XQM_RTT_TIME, 8, 1 * US, 60 * S, 1 * US, 60 * S, false },
	{ TCA_XQM_SHARE, 8, 1000, 125000000000ULL, 1000, 20000, false },
	{ TCA_XQM_HIDE, 1, 0, TC_XQM_HIDE_MAX, 0, TC_XQM_HIDE_MAX, false },
	{ TCA_XQM_HIDE_BY, 1, 0, TC_XQM_HIDE_BY_MAX, 0, TC_XQM_HIDE_BY_MAX, false },
	{ TCA_XQM_HIDE_DSCP, 1, 1, 63, 1, 63, false },
	{ TCA_XQM_WEIGHTS, 2 * TC_XQM_WEIGHTS, 1, 1000, 1, 1000, false },
};

static const struct option avq[] = {
	SHARED, LINK(true),
	{ TCA_AVQ_ALPHA, 8, REAL(0.000001) + 1, REAL(100), REAL(0.01), REAL(100), false },
	{ TCA_AVQ_GAMMA, 8, REAL(0.000001) + 1, REAL(1), REAL(0.1), REAL(1), false },
	{ TCA_AVQ_BUFFER, 4, 0, 1048576, 0, 1000, false },
};

static const struct option fred[] = {
	SHARED, LINK(false),
	{ TCA_FRED_RED_MIN, 4, 1, 1048575, 1, 59, false },
	{ TCA_FRED_RED_MAX, 4, 2, 1048576, 60, 1000, false },
	{ TCA_FRED_RED_PROBABILITY, 8, REAL(0.000001) + 1, REAL(1), REAL(0.01), REAL(1), false },
	{ TCA_FRED_RED_QWEIGHT, 8, REAL(0.000001) + 1, REAL(0.99), REAL(0.001), REAL(0.99), false },
	{ TCA_FRED_MINQ, 4, 1, 1048576, 1, 100, false },
};

static const struct option csfq[] = {
	SHARED, LINK(true),
	{ TCA_CSFQ_ROLE, 1, 0, TC_CSFQ_ROLE_MAX, 0, TC_CSFQ_ROLE_MAX, false },
	{ TCA_CSFQ_K, 8, 2 * MS, 100 * S, 2 * MS, 1 * S, false },
	{ TCA_CSFQ_K_ALPHA, 8, 2 * MS, 100 * S, 2 * MS, 1 * S, false },
	{ TCA_CSFQ_K_C, 8, 2 * MS, 100 * S, 2 * MS, 1 * S, false },
	{ TCA_CSFQ_THRESHOLD, 4, 0, 1048576, 0, 1000, false },
};

static const struct kind {
	const char *name;
	const struct option *options;
	int count;
} kinds[] = {
	{ "rem", rem, ARRAY_SIZE(rem) },
	{ "lred", lred, ARRAY_SIZE(lred) },
	{ "fifa", fifa_red, ARRAY_SIZE(fifa_red) },
	{ "fifa", fifa_pi, ARRAY_SIZE(fifa_pi) },
	{ "fifa", fifa_rem, ARRAY_SIZE(fifa_rem) },
	{ "xqm", xqm, ARRAY_SIZE(xqm) },
	{ "avq", avq, ARRAY_SIZE(avq) },
	{ "fred", fred, ARRAY_SIZE(fred) },
	{ "csfq", csfq, ARRAY_SIZE(csfq) },
};

/* Qdiscs that ours are put below. */
enum parent { NONE, TBF, HTB, HFSC, DRR, QFQ, PRIO, ETS, MULTIQ, MQ, PARENTS };

static const char *const parents[PARENTS] = {
	"", "tbf", "htb", "hfsc", "drr", "qfq", "prio", "ets", "multiq", "mq",
};

/* What is counted: messages about what, and what became of them. */
enum sort { ROW_REM, ROW_LRED, ROW_FIFA, ROW_XQM, ROW_AVQ, ROW_FRED, ROW_CSFQ, ROW_PARENT,
	   ROW_CLASS, ROW_FILTER, ROW_ACTION, ROW_DUMP, ROWS };

static const char *const rows[ROWS] = {
	"rem", "lred", "fifa", "xqm", "avq", "fred", "csfq", "parents",
	"classes", "filters", "rttlabel", "dumps",
};

static const enum sort row_of[] = { ROW_REM, ROW_LRED, ROW_FIFA, ROW_FIFA, ROW_FIFA, ROW_XQM,
				   ROW_AVQ, ROW_FRED, ROW_CSFQ };

static struct count {
	uint64_t messages, accepted, silent;
	uint64_t refused[ERRNOS];
} counts[ROWS];

/* The run */

static struct {
	uint64_t seed, messages, epoch;
	bool single; /* one epoch, and only these steps of it */
	bool shown; /* what is sent */
	bool root; /* of the guest, not of a namespace: who alone asks for actions */
	bool chosen[STEPS];
	const char *plant; /* bytes that count as a bug of the kernel's, in hexadecimal */
} run = { .seed = 1, .messages = 200000 };

/* Messages */

struct message {
	union {
		struct nlmsghdr head;
		char bytes[ROOM];
	};
	enum sort row;
	uint32_t told; /* its length, if that is to be a lie */
	int count;
	struct {
		uint32_t at; /* where in the message it begins */
		int within; /* the attribute that it is part of, -1 for none */
	} attribute[ATTRIBUTES];
};

static int nests[8], depth; /* those that are open while a message is made */

static void *begin(struct message *m, enum sort row, uint16_t type, uint16_t flags, size_t size)
{
	mnl_nlmsg_put_header(m->bytes);
	m->head.nlmsg_type = type;
	m->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	m->row = row;
	m->told = 0;
	m->count = 0;
	depth = 0;
	return mnl_nlmsg_put_extra_header(&m->head, size);
}

static int note(struct message *m)
{
	if (m->count == ATTRIBUTES)
		die("more than %d attributes", ATTRIBUTES);
	m->attribute[m->count].at = m->head.nlmsg_len;
	m->attribute[m->count].within = depth ? nests[depth - 1] : -1;
	return m->count++;
}

static void put(struct message *m, uint16_t type, const void *data, size_t size)
{
	note(m);
	mnl_attr_put(&m->head, type, size, data);
}

static void put_u32(struct message *m, uint16_t type, uint32_t value)
{
	put(m, type, &value, sizeof(value));
}

static void put_text(struct message *m, uint16_t type, const char *text)
{
	put(m, type, text, strlen(text) + 1);
}

static void open_nest(struct message *m, uint16_t type)
{
	int which = note(m);

	nests[depth++] = which;
	mnl_attr_nest_start(&m->head, type);
}

static void close_nest(struct message *m)
{
	mnl_attr_nest_end(&m->head,
			  (struct nlattr *)(m->bytes + m->attribute[nests[--depth]].at));
}

static struct nlattr *attribute(struct message *m, int which)
{
	return (struct nlattr *)(m->bytes + m->attribute[which].at);
}

/* Mutations: the message stays one as long as nothing is lied about. */

/* Make room at a place of the message, or, with less than 0 bytes, close it up. */
static bool resize(struct message *m, uint32_t at, int bytes, int within)
{
	int which;

	if (bytes < 0 && m->head.nlmsg_len < at - bytes)
		return false;
	if (m->head.nlmsg_len + bytes > ROOM || at > m->head.nlmsg_len)
		return false;
	if (bytes > 0)
		memmove(m->bytes + at + bytes, m->bytes + at, m->head.nlmsg_len - at);
	else
		memmove(m->bytes + at, m->bytes + at - bytes, m->head.nlmsg_len - at + bytes);
	m->head.nlmsg_len += bytes;
	for (; within >= 0; within = m->attribute[within].within)
		attribute(m, within)->nla_len += bytes;
	for (which = 0; which < m->count; which++)
		if (m->attribute[which].at >= at)
			m->attribute[which].at += bytes;
	return true;
}

/* The space that an attribute takes, if it is what it says and lies within the message. */
static uint32_t space(struct message *m, int which)
{
	uint32_t at = m->attribute[which].at, size;

	if (at + sizeof(struct nlattr) > m->head.nlmsg_len)
		return 0;
	size = MNL_ALIGN(attribute(m, which)->nla_len);
	return size >= sizeof(struct nlattr) && at + size <= m->head.nlmsg_len ? size : 0;
}

static void drop(struct message *m, int which)
{
	uint32_t at = m->attribute[which].at, size = space(m, which);

	if (size && resize(m, at, -(int)size, m->attribute[which].within))
		m->count = which; /* forget what was in it, and what follows */
}

static void twice(struct message *m, int which)
{
	uint32_t at = m->attribute[which].at, size = space(m, which);
	int payload = (int)size - (int)sizeof(struct nlattr);

	if (!size || !resize(m, at + size, size, m->attribute[which].within))
		return;
	memcpy(m->bytes + at + size, m->bytes + at, size);
	if (payload > 0 && one_in(2))
		m->bytes[at + size + sizeof(struct nlattr) + below(payload)] ^= 1 << below(8);
}

/* Longer or shorter, and right about it. */
static void stretch(struct message *m, int which)
{
	uint32_t at = m->attribute[which].at, size = space(m, which);
	uint16_t length = attribute(m, which)->nla_len;
	int change;

	if (!size)
		return;
	if (one_in(2)) {
		change = 4 * (1 + below(16));
		if (resize(m, at + size, change, m->attribute[which].within)) {
			memset(m->bytes + at + size, any(), change);
			attribute(m, which)->nla_len = size + change - below(4);
		}
	} else if (length > sizeof(struct nlattr)) {
		length -= 1 + below(length - sizeof(struct nlattr));
		change = (int)MNL_ALIGN(length) - (int)size;
		if (!change || resize(m, at + size + change, change, m->attribute[which].within))
			attribute(m, which)->nla_len = length;
	}
}

static void lie(struct message *m, int which)
{
	static const uint16_t lies[] = { 0, 1, 3, 4, 5, 8, 0x7fff, 0x8000, 0xfffc, 0xffff };
	struct nlattr *attr = attribute(m, which);

	if (one_in(2))
		attr->nla_len = lies[below(ARRAY_SIZE(lies))];
	else
		attr->nla_len += (int)below(17) - 8;
}

static void retype(struct message *m, int which)
{
	struct nlattr *attr = attribute(m, which);

	switch (below(4)) {
	case 0:
		attr->nla_type ^= NLA_F_NESTED;
		break;
	case 1:
		attr->nla_type ^= NLA_F_NET_BYTEORDER;
		break;
	case 2:
		attr->nla_type = below(72);
		break;
	default:
		attr->nla_type += (int)below(5) - 2;
	}
}

/* Within another of its own kind, or of any. */
static void wrap(struct message *m, int which)
{
	uint32_t at = m->attribute[which].at, size = space(m, which);
	struct nlattr *outer;

	if (!size || !resize(m, at, sizeof(*outer), m->attribute[which].within))
		return;
	outer = (struct nlattr *)(m->bytes + at);
	outer->nla_len = size + sizeof(*outer);
	outer->nla_type = one_in(2) ? attribute(m, which)->nla_type : below(16) | NLA_F_NESTED;
}

static void scribble(struct message *m, int which)
{
	static const uint64_t values[] = { 0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff,
					   0x80000000, 0xffffffff, INT64_MAX, 1ULL << 63,
					   UINT64_MAX, 1ULL << 32, 1ULL << 48 };
	uint64_t value = one_in(2) ? values[below(ARRAY_SIZE(values))] : any() >> below(64);
	int payload = (int)space(m, which) - (int)sizeof(struct nlattr);

	if (payload > 0)
		memcpy(m->bytes + m->attribute[which].at + sizeof(struct nlattr), &value,
		       payload < 8 ? payload : 8);
}

static uint32_t any_handle(void)
{
	static const uint32_t handles[] = { 0, TC_H_ROOT, TC_H_INGRESS, TC_H_CLSACT, 0xfffffff2,
					    0xfffffff3, 0x10000, 0xffff0000, 0x0000ffff, 1 };

	switch (below(4)) {
	case 0:
		return handles[below(ARRAY_SIZE(handles))];
	case 1:
		return any();
	default:
		return (1 + below(96)) << 16 | below(6);
	}
}

static void rehead(struct message *m)
{
	static const uint16_t types[] = {
		RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC, RTM_NEWTCLASS, RTM_DELTCLASS,
		RTM_GETTCLASS, RTM_NEWTFILTER, RTM_DELTFILTER, RTM_GETTFILTER, RTM_NEWACTION,
		RTM_DELACTION, RTM_GETACTION, RTM_NEWCHAIN, RTM_DELCHAIN, RTM_GETCHAIN,
	};
	struct tcmsg *tcm = mnl_nlmsg_get_payload(&m->head);
	bool whole = m->head.nlmsg_len >= MNL_NLMSG_HDRLEN + sizeof(*tcm);

	switch (whole ? below(8) : below(3)) {
	case 0:
		m->head.nlmsg_type = types[below(ARRAY_SIZE(types))];
		/* what dumps is asked elsewhere, where it is read */
		m->head.nlmsg_flags &= ~NLM_F_DUMP;
		break;
	case 1:
		m->head.nlmsg_flags ^= (1 << below(12)) & ~NLM_F_REQUEST;
		break;
	case 2:
		m->told = one_in(4) ? any() >> below(64) : below(m->head.nlmsg_len);
		break;
	case 3:
		tcm->tcm_family = any();
		break;
	case 4:
		tcm->tcm_ifindex = one_in(2) ? below(6) : any() >> below(64);
		break;
	case 5:
		tcm->tcm_handle = any_handle();
		break;
	case 6:
		tcm->tcm_parent = any_handle();
		break;
	default:
		tcm->tcm_info = one_in(2) ? any() : below(8) << 16 | htons(ETH_P_ALL);
	}
}

/* Anywhere behind the header, which says what is asked. */
static void flip(struct message *m)
{
	int bits = 1 + below(8);

	if (m->head.nlmsg_len <= MNL_NLMSG_HDRLEN)
		return;
	while (bits--)
		m->bytes[MNL_NLMSG_HDRLEN + below(m->head.nlmsg_len - MNL_NLMSG_HDRLEN)] ^=
			1 << below(8);
}

static void mutate(struct message *m)
{
	int times = 1 + (one_in(3) ? below(4) : 0);

	while (times--) {
		int which = m->count ? (int)below(m->count) : -1;

		if (which >= 0 &&
		    m->attribute[which].at + sizeof(struct nlattr) > m->head.nlmsg_len)
			which = -1;
		switch (which < 0 ? 8 + below(2) : below(11)) {
		case 0:
			drop(m, which);
			break;
		case 1:
			twice(m, which);
			break;
		case 2:
			stretch(m, which);
			break;
		case 3:
			lie(m, which);
			break;
		case 4:
			retype(m, which);
			break;
		case 5:
			wrap(m, which);
			break;
		case 6:
		case 7:
			scribble(m, which);
			break;
		case 8:
		case 10:
			rehead(m);
			break;
		default:
			flip(m);
		}
	}
}

/* What is on a device, as far as this side knows: what it asked for. */

static struct device {
	char name[8];
	int index;
	enum parent parent;
	uint8_t kind[PLACES];
	int todo; /* messages still to send until the tree stands */
} devices[DEVICES] = { { .name = "near" }, { .name = "far" }, { .name = "lo" } };

#define TREE 18 /* messages that a tree takes at most: see build() */

static bool has_classes(enum parent parent)
{
	return parent == HTB || parent == HFSC || parent == DRR || parent == QFQ;
}

static void plan(struct device *device)
{
	int place;

	/* the last two are for devices of several queues */
	device->parent = below(device == &devices[LO] ? MULTIQ : PARENTS);
	for (place = 0; place < PLACES; place++)
		device->kind[place] = below(ARRAY_SIZE(kinds));
	device->todo = TREE;
}

/* Another kind has another number: who asks for the same one wants to change what is there. */
#define ROOT_HANDLE(device) ((1U + (device)->parent) << 16)

/* Where ours is: below the root, or a class of what is there. */
static uint32_t parent_of(const struct device *device, int place)
{
	if (device->parent == NONE)
		return TC_H_ROOT;
	return ROOT_HANDLE(device) | (device->parent == TBF ? 1 : place);
}

static uint32_t handle_of(const struct device *device, int place)
{
	return (16 * (1 + place) + device->kind[place]) << 16;
}

static int any_place(const struct device *device)
{
	if (device->parent == NONE)
		return 0;
	return device->parent == TBF ? 1 : 1 + below(PLACES - 1);
}

static uint64_t value_of(const struct option *option, bool sane)
{
	if (sane)
		return between(option->from, option->to);
	switch (below(8)) {
	case 0:
		return option->low;
	case 1:
		return option->type == TCA_XQM_FLOWS && option->high == 1048576 && !one_in(50) ?
			       option->high + 1 : option->high;
	case 2:
		return option->low - 1;
	case 3:
		return option->high + 1;
	case 4:
		return any() >> below(64);
	case 5:
		return UINT64_MAX;
	case 6:
		return 0;
	default:
		return between(option->from, option->to);
	}
}

static void put_option(struct message *m, const struct option *option, bool sane)
{
	uint64_t value = value_of(option, sane);
	uint16_t weights[TC_XQM_WEIGHTS];
	size_t at;

	if (option->width <= 8) {
		put(m, option->type, &value, option->width);
		return;
	}
	for (at = 0; at < ARRAY_SIZE(weights); at++)
		weights[at] = at ? between(option->low, option->high) : value;
	put(m, option->type, weights, sizeof(weights));
}

static bool careful; /* what is asked for now, much that follows depends on */

static void put_options(struct message *m, const struct kind *kind, bool needed)
{
	/* most have nothing wrong with them, or too few would come far */
	bool sane = careful || !one_in(4);
	int at, wanted = below(6);

	open_nest(m, TCA_OPTIONS);
	for (at = 0; at < kind->count; at++)
		if ((needed && kind->options[at].needed) || (int)below(kind->count) < wanted)
			put_option(m, &kind->options[at], sane);
	close_nest(m);
}

static struct tcmsg *begin_tc(struct message *m, enum sort row, const struct device *device,
			      uint16_t type, uint16_t flags)
{
	struct tcmsg *tcm = begin(m, row, type, flags, sizeof(*tcm));

	tcm->tcm_ifindex = device->index;
	return tcm;
}

/* What any qdisc may have besides its options. */
static void put_extras(struct message *m)
{
	struct {
		signed char interval;
		unsigned char log;
	} estimator = { (int)below(6) - 2, 1 + below(4) };
	struct tc_sizespec size = { .cell_log = below(8), .size_log = below(4), .tsize = 16,
				    .overhead = (int)below(100) - 50, .mpu = below(200) };
	uint16_t table[16];
	size_t at;

	if (one_in(10))
		put(m, TCA_RATE, &estimator, sizeof(estimator));
	if (one_in(20)) {
		for (at = 0; at < ARRAY_SIZE(table); at++)
			table[at] = 1 + below(3000);
		open_nest(m, TCA_STAB);
		put(m, TCA_STAB_BASE, &size, sizeof(size));
		put(m, TCA_STAB_DATA, table, sizeof(table));
		close_nest(m);
	}
}

#define ADD (NLM_F_CREATE | NLM_F_EXCL)
#define REPLACE (NLM_F_CREATE | NLM_F_REPLACE)

static void ask_ours(struct message *m, struct device *device, int place, uint16_t type,
		     uint16_t how)
{
	int variant = device->kind[place];
	const struct kind *kind = &kinds[variant];
	struct tcmsg *tcm = begin_tc(m, row_of[variant], device, type, how);

	tcm->tcm_parent = parent_of(device, place);
	if (type != RTM_DELQDISC)
		tcm->tcm_handle = handle_of(device, place);
	put_text(m, TCA_KIND, kind->name);
	if (type != RTM_NEWQDISC)
		return;
	put_options(m, kind, how || one_in(4));
	put_extras(m);
}

/* The root of a tree, with nothing wrong about it. */
static void ask_root(struct message *m, struct device *device)
{
	struct tc_ratespec rate = { .linklayer = TC_LINKLAYER_ETHERNET, .rate = 200000 };
	struct tc_tbf_qopt tbf = { .rate = rate, .limit = 1 << 20 };
	struct tc_htb_glob htb = { .version = 3, .rate2quantum = 10, .defcls = 1 + below(5) };
	struct tc_hfsc_qopt hfsc = { .defcls = 1 + below(5) };
	struct tc_multiq_qopt multiq = { 0 };
	struct tc_prio_qopt prio = { .bands = 4 };
	struct tcmsg *tcm = begin_tc(m, ROW_PARENT, device, RTM_NEWQDISC, REPLACE);
	size_t at;

	tcm->tcm_parent = TC_H_ROOT;
	tcm->tcm_handle = ROOT_HANDLE(device);
	put_text(m, TCA_KIND, parents[device->parent]);
	switch (device->parent) {
	case TBF:
		open_nest(m, TCA_OPTIONS);
		put(m, TCA_TBF_PARMS, &tbf, sizeof(tbf));
		put_u32(m, TCA_TBF_BURST, 3000 + below(70000));
		close_nest(m);
		break;
	case HTB:
		open_nest(m, TCA_OPTIONS);
		put(m, TCA_HTB_INIT, &htb, sizeof(htb));
		close_nest(m);
		break;
	case HFSC:
		put(m, TCA_OPTIONS, &hfsc, sizeof(hfsc));
		break;
	case PRIO:
		for (at = 0; at < ARRAY_SIZE(prio.priomap); at++)
			prio.priomap[at] = at % 4;
		put(m, TCA_OPTIONS, &prio, sizeof(prio));
		break;
	case ETS:
		open_nest(m, TCA_OPTIONS);
		put(m, TCA_ETS_NBANDS, &(uint8_t){ 4 }, 1);
		put(m, TCA_ETS_NSTRICT, &(uint8_t){ below(5) }, 1);
		close_nest(m);
		break;
	case MULTIQ:
		put(m, TCA_OPTIONS, &multiq, sizeof(multiq));
		break;
	default:
		break;
	}
}

static void ask_class(struct message *m, struct device *device, int place, uint16_t type)
{
	struct tc_ratespec rate = { .linklayer = TC_LINKLAYER_ETHERNET,
				    .rate = between(100000, 10000000) };
	struct tc_htb_opt htb = { .rate = rate, .ceil = rate, .buffer = 1000000,
				  .cbuffer = 1000000, .quantum = 1514 + below(10000) };
	struct tc_service_curve curve = { .m1 = rate.rate, .m2 = rate.rate };
	uint16_t flags = type == RTM_NEWTCLASS ? NLM_F_CREATE : 0;
	struct tcmsg *tcm = begin_tc(m, ROW_CLASS, device, type, flags);

	tcm->tcm_parent = ROOT_HANDLE(device);
	tcm->tcm_handle = ROOT_HANDLE(device) | place;
	if (type != RTM_NEWTCLASS)
		return;
	put_text(m, TCA_KIND, parents[device->parent]);
	open_nest(m, TCA_OPTIONS);
	switch (device->parent) {
	case HTB:
		put(m, TCA_HTB_PARMS, &htb, sizeof(htb));
		break;
	case HFSC:
		put(m, TCA_HFSC_FSC, &curve, sizeof(curve));
		if (one_in(2))
			put(m, TCA_HFSC_USC, &curve, sizeof(curve));
		break;
	case DRR:
		put_u32(m, TCA_DRR_QUANTUM, 1514 + below(10000));
		break;
	case QFQ:
		put_u32(m, TCA_QFQ_WEIGHT, 1 + below(100));
		put_u32(m, TCA_QFQ_LMAX, 2048);
		break;
	default:
		break;
	}
	close_nest(m);
}

/* A class of ours, which has none to be made, or of no kind that is there. */
static void ask_no_class(struct message *m, struct device *device)
{
	static const uint16_t types[] = { RTM_NEWTCLASS, RTM_DELTCLASS, RTM_GETTCLASS };
	int place = any_place(device);
	struct tcmsg *tcm = begin_tc(m, ROW_CLASS, device, types[below(3)],
				     one_in(2) ? NLM_F_CREATE : 0);

	tcm->tcm_parent = handle_of(device, place);
	tcm->tcm_handle = handle_of(device, place) | below(20);
	put_text(m, TCA_KIND, kinds[device->kind[place]].name);
}

/* One action, in the place that a list of them has for it. */
static void put_action(struct message *m, int order, uint32_t index)
{
	static const int controls[] = { TC_ACT_OK, TC_ACT_PIPE, TC_ACT_UNSPEC, TC_ACT_RECLASSIFY,
					TC_ACT_SHOT, TC_ACT_STOLEN };
	bool sane = !one_in(4);
	struct tc_rttlabel parms = { .index = index };
	uint64_t from, time, error;

	parms.action = sane ? controls[below(one_in(8) ? 6 : 4)] :
			      (int)(any() >> below(64));
	from = sane ? below(TC_RTTLABEL_FROM_MAX + 1) : any() >> (56 + below(8));
	time = sane ? between(LABEL_NS, 65535 * LABEL_NS) : any() >> below(64);
	error = sane ? between(0, REAL(1)) : any() >> below(64);
	open_nest(m, order);
	put_text(m, TCA_ACT_KIND, "rttlabel");
	if (one_in(8))
		put(m, TCA_ACT_COOKIE, &chance, 1 + below(8));
	open_nest(m, TCA_ACT_OPTIONS);
	put(m, TCA_RTTLABEL_PARMS, &parms, sizeof(parms));
	put(m, TCA_RTTLABEL_FROM, &from, 1);
	if (from == TC_RTTLABEL_TIME || one_in(3))
		put(m, TCA_RTTLABEL_TIME, &time, sizeof(time));
	if (one_in(3))
		put(m, TCA_RTTLABEL_ERROR, &error, sizeof(error));
	close_nest(m);
	close_nest(m);
}

static void ask_action(struct message *m)
{
	static const uint16_t types[] = { RTM_NEWACTION, RTM_NEWACTION, RTM_NEWACTION,
					  RTM_GETACTION, RTM_DELACTION };
	uint16_t type = types[below(ARRAY_SIZE(types))];
	uint32_t index = below(8);
	int order, many = 1 + (one_in(4) ? below(3) : 0);

	begin(m, ROW_ACTION, type, 0, sizeof(struct tcamsg));
	if (type == RTM_NEWACTION)
		m->head.nlmsg_flags |= one_in(3) ? ADD : REPLACE;
	if (type == RTM_DELACTION && one_in(4))
		m->head.nlmsg_flags |= NLM_F_ROOT; /* all of them */
	open_nest(m, TCA_ACT_TAB);
	for (order = 1; order <= many; order++) {
		if (type == RTM_NEWACTION) {
			put_action(m, order, one_in(4) ? 0 : index + order);
			continue;
		}
		open_nest(m, order);
		put_text(m, TCA_ACT_KIND, "rttlabel");
		put_u32(m, TCA_ACT_INDEX, index + order);
		close_nest(m);
	}
	close_nest(m);
}

static void ask_filter(struct message *m, struct device *device, uint16_t type)
{
	static const struct {
		const char *name;
		uint16_t actions;
	} filters[] = { { "matchall", TCA_MATCHALL_ACT }, { "basic", TCA_BASIC_ACT },
			{ "fw", TCA_FW_ACT } };
	static const uint32_t hooks[] = { TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS),
					  TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS) };
	struct tc_gact pass = { .action = TC_ACT_PIPE };
	int which = below(ARRAY_SIZE(filters));
	struct tcmsg *tcm = begin_tc(m, ROW_FILTER, device, type,
				     type == RTM_NEWTFILTER ? NLM_F_CREATE : 0);

	tcm->tcm_parent = hooks[below(2)];
	tcm->tcm_handle = type == RTM_NEWTFILTER ? 1 : 0;
	/* a number is of one kind of filter only */
	tcm->tcm_info = TC_H_MAKE((uint32_t)(1 + which) << 16, htons(ETH_P_ALL));
	if (one_in(8))
		tcm->tcm_parent = handle_of(device, any_place(device)); /* ours take none */
	put_text(m, TCA_KIND, filters[which].name);
	if (one_in(8))
		put_u32(m, TCA_CHAIN, below(3));
	if (type != RTM_NEWTFILTER)
		return;
	open_nest(m, TCA_OPTIONS);
	open_nest(m, filters[which].actions);
	put_action(m, 1, one_in(2) ? 0 : 1 + below(8));
	if (one_in(4)) {
		open_nest(m, 2);
		put_text(m, TCA_ACT_KIND, "gact");
		open_nest(m, TCA_ACT_OPTIONS);
		put(m, TCA_GACT_PARMS, &pass, sizeof(pass));
		close_nest(m);
		close_nest(m);
	}
	close_nest(m);
	close_nest(m);
}

static void ask_clsact(struct message *m, struct device *device)
{
	struct tcmsg *tcm = begin_tc(m, ROW_PARENT, device, RTM_NEWQDISC, REPLACE);

	tcm->tcm_parent = TC_H_CLSACT;
	tcm->tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
	put_text(m, TCA_KIND, "clsact");
}

/* The next message of those that build a tree; false if there is none for this turn. */
static bool build(struct message *m, struct device *device)
{
	int turn = TREE - device->todo--, place = turn % 4 + 1;

	switch (turn) {
	case 0:
		ask_clsact(m, device);
		return true;
	case 1:
		if (device->parent == NONE) {
			ask_ours(m, device, 0, RTM_NEWQDISC, REPLACE);
			return true;
		}
		ask_root(m, device);
		return true;
	case 4 ... 7:
		if (!has_classes(device->parent))
			return false;
		ask_class(m, device, place, RTM_NEWTCLASS);
		return true;
	case 8 ... 11:
		if (device->parent == NONE || (device->parent == TBF && place > 1))
			return false;
		ask_ours(m, device, place, RTM_NEWQDISC, REPLACE);
		return true;
	case 12:
	case 13:
		ask_filter(m, device, RTM_NEWTFILTER);
		return true;
	default:
		return false;
	}
}

/* A message about what may be there. */
static void ask(struct message *m, struct device *device)
{
	int place = any_place(device);

	switch (below(28)) {
	case 0 ... 16:
		ask_ours(m, device, place, RTM_NEWQDISC, 0);
		break;
	case 17 ... 19:
		careful = one_in(6);
		if (careful)
			device->kind[place] = below(ARRAY_SIZE(kinds));
		ask_ours(m, device, place, RTM_NEWQDISC, REPLACE);
		break;
	case 20:
		if (one_in(3))
			ask_ours(m, device, place, RTM_NEWQDISC, ADD);
		else
			ask_ours(m, device, place, one_in(2) ? RTM_GETQDISC : RTM_DELQDISC, 0);
		break;
	case 21:
		if (one_in(2) || !has_classes(device->parent))
			ask_no_class(m, device);
		else
			ask_class(m, device, place, one_in(4) ? RTM_DELTCLASS : RTM_NEWTCLASS);
		break;
	case 22:
		ask_filter(m, device, one_in(2) ? RTM_DELTFILTER : RTM_NEWTFILTER);
		break;
	case 23:
		if (one_in(8)) {
			plan(device);
			careful = build(m, device);
			break;
		}
		ask_filter(m, device, one_in(4) ? RTM_GETTFILTER : RTM_NEWTFILTER);
		break;
	case 24:
		ask_action(m);
		break;
	default:
		if (run.root)
			ask_action(m);
		else
			ask_filter(m, device, RTM_NEWTFILTER);
	}
}

/* A namespace */

static struct mnl_socket *control, *watch[DUMPS];
static int ports[DEVICES], super[DEVICES]; /* packet sockets of the devices */
static int near_end = -1, far_end = -1; /* of a TCP connection over lo */

static struct mnl_socket *open_netlink(void)
{
	struct mnl_socket *made = mnl_socket_open2(NETLINK_ROUTE, SOCK_NONBLOCK);
	int on = 1, size = 8 << 20;

	if (!made || mnl_socket_bind(made, 0, MNL_SOCKET_AUTOPID))
		die("netlink");
	mnl_socket_setsockopt(made, NETLINK_CAP_ACK, &on, sizeof(on));
	mnl_socket_setsockopt(made, NETLINK_EXT_ACK, &on, sizeof(on));
	setsockopt(mnl_socket_get_fd(made), SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	return made;
}

static void must(struct message *m)
{
	struct nlmsgerr *answer;
	char bytes[ROOM];
	ssize_t got;

	if (mnl_socket_sendto(control, &m->head, m->head.nlmsg_len) < 0)
		die("send");
	got = mnl_socket_recvfrom(control, bytes, sizeof(bytes));
	answer = mnl_nlmsg_get_payload((struct nlmsghdr *)bytes);
	if (got < 0 || answer->error) {
		errno = got < 0 ? errno : -answer->error;
		die("what is needed, of type %d", m->head.nlmsg_type);
	}
}

static void link_up(int index)
{
	struct message m;
	struct ifinfomsg *link = begin(&m, ROW_PARENT, RTM_NEWLINK, 0, sizeof(*link));

	link->ifi_index = index;
	link->ifi_flags = IFF_UP;
	link->ifi_change = IFF_UP;
	must(&m);
}

static void make_devices(void)
{
	struct ifinfomsg *peer;
	struct message m;
	int at;

	begin(&m, ROW_PARENT, RTM_NEWLINK, ADD, sizeof(struct ifinfomsg));
	put_text(&m, IFLA_IFNAME, "near");
	put_u32(&m, IFLA_NUM_TX_QUEUES, QUEUES);
	open_nest(&m, IFLA_LINKINFO);
	put_text(&m, IFLA_INFO_KIND, "veth");
	open_nest(&m, IFLA_INFO_DATA);
	open_nest(&m, VETH_INFO_PEER);
	peer = mnl_nlmsg_get_payload_tail(&m.head);
	memset(peer, 0, sizeof(*peer));
	m.head.nlmsg_len += sizeof(*peer);
	put_text(&m, IFLA_IFNAME, "far");
	put_u32(&m, IFLA_NUM_TX_QUEUES, QUEUES);
	close_nest(&m);
	close_nest(&m);
	close_nest(&m);
	must(&m);
	for (at = 0; at < DEVICES; at++) {
		devices[at].index = if_nametoindex(devices[at].name);
		link_up(devices[at].index);
	}
}

static void open_ports(void)
{
	int at, on = 1;

	for (at = 0; at < DEVICES; at++) {
		struct sockaddr_ll address = { .sll_family = AF_PACKET,
					       .sll_ifindex = devices[at].index };

		ports[at] = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		super[at] = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (ports[at] < 0 || super[at] < 0 ||
		    bind(ports[at], (struct sockaddr *)&address, sizeof(address)) ||
		    bind(super[at], (struct sockaddr *)&address, sizeof(address)) ||
		    setsockopt(super[at], SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)))
			die("packet socket on %s", devices[at].name);
	}
}

/* A connection with one of our congestion controls. */
static void connect_tcp(bool pi)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(TCP_PORT),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const char *control_name = pi ? "pert_pi" : "pert";
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	struct linger now = { 1, 0 }; /* nothing is left of it when it is closed */

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	near_end = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 1) ||
	    setsockopt(near_end, IPPROTO_TCP, TCP_CONGESTION, control_name, strlen(control_name)) ||
	    connect(near_end, (struct sockaddr *)&address, sizeof(address)))
		die("TCP with %s", control_name);
	far_end = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	fcntl(near_end, F_SETFL, O_NONBLOCK);
	setsockopt(near_end, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	setsockopt(far_end, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(listener);
}

static void enter(uint64_t epoch)
{
	int at;

	if (unshare(CLONE_NEWNET))
		die("unshare");
	control = open_netlink();
	for (at = 0; at < DUMPS; at++)
		watch[at] = open_netlink();
	fcntl(mnl_socket_get_fd(control), F_SETFL, 0); /* while the namespace is made */
	make_devices();
	fcntl(mnl_socket_get_fd(control), F_SETFL, O_NONBLOCK);
	open_ports();
	connect_tcp(epoch & 1);
	for (at = 0; at < DEVICES; at++)
		plan(&devices[at]);
}

/* Packets that stand in a queue hold their socket, and it the namespace: they must go. */
static void leave(void)
{
	struct ifinfomsg *link;
	struct tcmsg *tcm;
	struct message m;
	int at;

	tcm = begin_tc(&m, ROW_PARENT, &devices[LO], RTM_DELQDISC, 0);
	tcm->tcm_parent = TC_H_ROOT;
	mnl_socket_sendto(control, &m.head, m.head.nlmsg_len);
	link = begin(&m, ROW_PARENT, RTM_DELLINK, 0, sizeof(*link));
	link->ifi_index = devices[NEAR].index;
	mnl_socket_sendto(control, &m.head, m.head.nlmsg_len);
	close(near_end);
	close(far_end);
	for (at = 0; at < DEVICES; at++) {
		close(ports[at]);
		close(super[at]);
	}
	mnl_socket_close(control);
	for (at = 0; at < DUMPS; at++)
		mnl_socket_close(watch[at]);
}

/* Traffic */

static uint16_t sum(const void *data, size_t size)
{
	const uint8_t *byte = data;
	uint32_t total = 0;

	for (; size > 1; byte += 2, size -= 2)
		total += byte[0] << 8 | byte[1];
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return htons(~total);
}

/* A frame with something of everything; its length. */
static size_t make_frame(uint8_t *frame, size_t payload, uint8_t protocol, bool six)
{
	static const uint16_t fragments[] = { 0x4000, 0x4000, 0x4000, 0, 0x2000, 0x6000, 0x00b9 };
	uint16_t flow = one_in(2) ? below(64) : below(65536);
	size_t transport = protocol == IPPROTO_TCP ? 20 : 8, at = 12, ip;
	uint16_t length;

	memset(frame, 0, 128);
	frame[0] = 2;
	frame[6] = 2;
	frame[5] = 1;
	while (one_in(6) && at < 24) {
		frame[at] = one_in(2) ? 0x81 : 0x88;
		frame[at + 1] = frame[at] == 0x81 ? 0x00 : 0xa8;
		frame[at + 3] = 7;
		at += 4;
	}
	frame[at] = six ? 0x86 : 0x08;
	frame[at + 1] = six ? 0xdd : 0x00;
	at += 2;
	ip = at;
	if (six) {
		frame[ip] = 0x60 | below(16);
		frame[ip + 1] = below(16) << 4;
		length = htons(transport + payload);
		memcpy(frame + ip + 4, &length, 2);
		frame[ip + 6] = one_in(16) ? below(64) : protocol;
		frame[ip + 8] = 0x20;
		frame[ip + 24] = 0x20;
		frame[ip + 23] = 1;
		frame[ip + 39] = 2 + below(3);
		at += 40;
	} else {
		size_t header = one_in(16) ? 20 + 4 * below(11) : 20;
		uint16_t fragment = htons(fragments[below(ARRAY_SIZE(fragments))]);
		uint16_t label = one_in(4) ? below(4) * 0x5555 : any();

		frame[ip] = 0x40 | header / 4;
		frame[ip + 1] = any();
		length = htons(header + transport + payload);
		memcpy(frame + ip + 2, &length, 2);
		memcpy(frame + ip + 4, &label, 2);
		memcpy(frame + ip + 6, &fragment, 2);
		frame[ip + 8] = 64;
		frame[ip + 9] = protocol;
		frame[ip + 12] = 10;
		frame[ip + 16] = 10;
		frame[ip + 15] = 1 + below(4);
		frame[ip + 19] = 2 + below(4);
		length = sum(frame + ip, header);
		memcpy(frame + ip + 10, &length, 2);
		at += header;
	}
	frame[at] = flow >> 8;
	frame[at + 1] = flow;
	frame[at + 3] = 9;
	if (protocol == IPPROTO_TCP) {
		frame[at + 12] = one_in(16) ? any() : 0x50;
		frame[at + 13] = 1 << below(6);
	}
	return at + transport + payload;
}

static void send_frames(int at)
{
	static uint8_t frame[65536 + 256];
	int many = 1 + below(24), priority = below(16);
	size_t size, byte;

	if (one_in(2))
		priority = ROOT_HANDLE(&devices[at]) | (1 + below(4));
	setsockopt(ports[at], SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority));
	while (many--) {
		size = make_frame(frame, below(1400), one_in(2) ? IPPROTO_TCP : IPPROTO_UDP,
				  one_in(4));
		if (one_in(16)) /* cut short */
			size = 14 + below(size - 14);
		if (one_in(16)) /* nothing known */
			for (byte = 12; byte < size; byte++)
				frame[byte] = any();
		send(ports[at], frame, size, 0);
	}
}

/* A packet that the network is to cut: by TCP or UDP, whole or with too little said. */
static void send_super(int at)
{
	static uint8_t packet[65536 + 256];
	struct virtio_net_hdr how = { .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM };
	bool tcp = one_in(2), six = one_in(3);
	uint8_t protocol = tcp ? IPPROTO_TCP : IPPROTO_UDP;
	size_t size = make_frame(packet + sizeof(how), 3000 + below(55000), protocol, six);

	how.gso_type = tcp ? (six ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4) :
			     VIRTIO_NET_HDR_GSO_UDP_L4;
	how.gso_size = one_in(8) ? 1 + below(3000) : 1000 + below(400);
	how.csum_start = 14 + (six ? 40 : 20);
	how.csum_offset = tcp ? 16 : 6;
	how.hdr_len = how.csum_start + (tcp ? 20 : 8);
	if (tcp && one_in(4))
		how.gso_type |= VIRTIO_NET_HDR_GSO_ECN;
	if (one_in(16))
		how.gso_type = any();
	memcpy(packet, &how, sizeof(how));
	send(super[at], packet, sizeof(how) + size, 0);
}

static void move_tcp(void)
{
	static char bytes[1 << 16];

	send(near_end, bytes, sizeof(bytes), MSG_NOSIGNAL);
	while (recv(far_end, bytes, sizeof(bytes), 0) > 0)
		;
}

static void let_pass(void)
{
	int at = below(DEVICES);

	if (one_in(2))
		send_frames(at);
	if (one_in(8))
		send_super(at);
	if (one_in(6))
		move_tcp();
	if (one_in(6)) {
		struct timespec pause = { 0, below(one_in(20) ? 900 * MS : 3 * MS) };

		nanosleep(&pause, NULL);
	}
}

/* Answers */

static enum sort asked[STEPS + 1];
static bool waits[STEPS + 1]; /* for an answer */

static void settle(const struct nlmsghdr *head)
{
	const struct nlmsgerr *answer = mnl_nlmsg_get_payload(head);
	struct count *count;

	if (head->nlmsg_seq > STEPS || !waits[head->nlmsg_seq])
		return;
	if (head->nlmsg_type != NLMSG_ERROR && asked[head->nlmsg_seq] != ROW_DUMP)
		return; /* what was asked for, and that it was is still to come */
	waits[head->nlmsg_seq] = false;
	count = &counts[asked[head->nlmsg_seq]];
	if (head->nlmsg_type == NLMSG_ERROR && answer->error)
		count->refused[-answer->error & (ERRNOS - 1)]++;
	else
		count->accepted++;
}

static void read_answers(struct mnl_socket *from, bool all)
{
	static char bytes[1 << 16];
	const struct nlmsghdr *head;
	ssize_t got;
	int size;

	do {
		got = recv(mnl_socket_get_fd(from), bytes, from == control ? sizeof(bytes) : ROOM,
			   0);
		size = got;
		for (head = (void *)bytes; got > 0 && mnl_nlmsg_ok(head, size);
		     head = mnl_nlmsg_next(head, &size))
			settle(head);
	} while (all && (got > 0 || (got < 0 && errno == ENOBUFS)));
}

/* A list of something, read part by part, while the rest goes on. */
static void ask_list(struct message *m, struct device *device)
{
	static const uint16_t types[] = { RTM_GETQDISC, RTM_GETTCLASS, RTM_GETTCLASS,
					  RTM_GETTFILTER, RTM_GETACTION };
	uint16_t type = types[below(ARRAY_SIZE(types))];
	int place = any_place(device);
	struct tcmsg *tcm;

	if (type == RTM_GETACTION) {
		begin(m, ROW_DUMP, type, NLM_F_DUMP, sizeof(struct tcamsg));
		open_nest(m, TCA_ACT_TAB);
		open_nest(m, 1);
		put_text(m, TCA_ACT_KIND, "rttlabel");
		close_nest(m);
		close_nest(m);
		return;
	}
	tcm = begin_tc(m, ROW_DUMP, device, type, NLM_F_DUMP);
	if (type == RTM_GETTCLASS && one_in(2))
		tcm->tcm_parent = handle_of(device, place);
	if (type == RTM_GETTFILTER)
		tcm->tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS);
}

/* What the kernel says */

static int log_file = -1;
static regex_t report;

static void open_log(void)
{
	log_file = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (log_file < 0 || regcomp(&report, REPORT, REG_EXTENDED | REG_NOSUB))
		die("/dev/kmsg");
	lseek(log_file, 0, SEEK_END);
}

/* The line of a report, if there is one. */
static const char *complaint(void)
{
	static char line[ROOM];
	ssize_t got;

	while ((got = read(log_file, line, sizeof(line) - 1)) > 0 || (got < 0 && errno == EPIPE)) {
		if (got < 0)
			continue;
		line[got] = '\0';
		if (!regexec(&report, line, 0, NULL, 0)) {
			line[strcspn(line, "\n\"\\")] = '\0';
			return strchr(line, ';') ? strchr(line, ';') + 1 : line;
		}
	}
	return NULL;
}

/* Steps */

static char batch[BATCH * ROOM];
static size_t batched;
static int batch_count;

static void show(const struct message *m, uint32_t step, uint32_t length)
{
	uint32_t at;

	printf("{\"step\": %u, \"of\": \"%s\", \"message\": \"", step, rows[m->row]);
	for (at = 0; at < length; at++)
		printf("%02x", (uint8_t)m->bytes[at]);
	puts("\"}");
	fflush(stdout);
}

static bool planted;

/* For the test of all this: these bytes in a message are said to be a bug. */
static void find_planted(const struct message *m, uint32_t length)
{
	uint32_t at;
	size_t size = strlen(run.plant) / 2, byte;
	unsigned int value;

	for (at = MNL_NLMSG_HDRLEN; at + size <= length; at++) {
		for (byte = 0; byte < size; byte++) {
			if (sscanf(run.plant + 2 * byte, "%2x", &value) != 1 ||
			    (uint8_t)m->bytes[at + byte] != value)
				break;
		}
		if (byte == size)
			planted = true;
	}
}

static void flush(void)
{
	if (batched && send(mnl_socket_get_fd(control), batch, batched, 0) < 0)
		die("send of %zu bytes", batched);
	batched = 0;
	batch_count = 0;
	read_answers(control, true);
}

static void send_message(struct message *m, uint32_t step)
{
	uint32_t length = m->head.nlmsg_len;
	int which;

	m->head.nlmsg_seq = step + 1;
	asked[step + 1] = m->row;
	waits[step + 1] = true;
	counts[m->row].messages++;
	if (m->told)
		m->head.nlmsg_len = m->told;
	if (run.shown)
		show(m, step, length);
	if (run.plant)
		find_planted(m, length);
	if (m->row == ROW_DUMP) {
		which = below(DUMPS);
		send(mnl_socket_get_fd(watch[which]), m->bytes, length, 0);
		return;
	}
	memcpy(batch + batched, m->bytes, length);
	batched += MNL_ALIGN(length);
	batch_count++;
}

/*
 * Linux itself never ends a request for a filter with two new actions of one kind and number,
 * whatever the kind: the second waits for the first to be there (tcf_idr_check_alloc()).
 */
static bool is_endless(const struct message *m)
{
	static const char name[] = "rttlabel";
	const char *first, *end = m->bytes + m->head.nlmsg_len;

	if (m->head.nlmsg_type != RTM_NEWTFILTER)
		return false;
	first = memmem(m->bytes, end - m->bytes, name, sizeof(name));
	return first && memmem(first + 1, end - first - 1, name, sizeof(name));
}

/* The message of a step; false if there is none. */
static bool compose(struct message *m)
{
	struct device *device = &devices[below(DEVICES)];

	careful = device->todo;
	while (device->todo)
		if (build(m, device))
			return true;
	if (one_in(40)) {
		ask_list(m, device);
		return true;
	}
	ask(m, device);
	if (!careful && below(5) < 2)
		mutate(m);
	return !is_endless(m);
}

/* What a step does; and whether it ends a batch. */
static bool take_step(uint64_t epoch, uint32_t step)
{
	struct message m;

	memset(&m, 0, sizeof(m));
	chance = mix(run.seed + mix(epoch * STEPS + step));
	if (!compose(&m) || (run.single && !run.chosen[step]))
		return false;
	send_message(&m, step);
	if (batch_count < BATCH && !one_in(8))
		return false;
	flush();
	let_pass();
	if (one_in(2))
		read_answers(watch[below(DUMPS)], one_in(3));
	return true;
}

static uint64_t total(bool accepted)
{
	uint64_t all = 0;
	int row;

	for (row = 0; row < ROWS; row++)
		all += accepted ? counts[row].accepted : counts[row].messages;
	return all;
}

/* One network namespace; false if the kernel had something to report. */
static bool take_epoch(uint64_t epoch)
{
	const char *line = NULL;
	uint32_t step, first = 0, at;

	enter(epoch);
	for (step = 0; step < STEPS && !line; step++) {
		if (!take_step(epoch, step) && step + 1 < STEPS)
			continue;
		flush();
		line = planted ? "planted" : complaint();
		if (!line)
			first = step + 1;
	}
	leave();
	for (at = 0; at <= STEPS; at++) {
		counts[asked[at]].silent += waits[at];
		waits[at] = false;
	}
	if (!line) {
		line = complaint();
		first = 0;
	}
	if (line)
		printf("{\"failed\": \"%s\", \"epoch\": %llu, \"first\": %u, \"last\": %u}\n", line,
		       (unsigned long long)epoch, first, step - 1);
	else
		printf("{\"epoch\": %llu, \"messages\": %llu, \"accepted\": %llu}\n",
		       (unsigned long long)epoch, (unsigned long long)total(false),
		       (unsigned long long)total(true));
	fflush(stdout);
	return !line;
}

static void print_counts(void)
{
	const char *name, *comma;
	int row, error;

	printf("{\"rows\": {");
	for (row = 0; row < ROWS; row++) {
		const struct count *count = &counts[row];

		printf("%s\"%s\": {\"messages\": %llu, ", row ? ", " : "", rows[row],
		       (unsigned long long)count->messages);
		printf("\"accepted\": %llu, \"unanswered\": %llu, \"refused\": {",
		       (unsigned long long)count->accepted, (unsigned long long)count->silent);
		comma = "";
		for (error = 0; error < ERRNOS; error++) {
			if (!count->refused[error])
				continue;
			name = strerrorname_np(error);
			printf("%s\"%s\": %llu", comma, name ? name : "ENOTSUPP",
			       (unsigned long long)count->refused[error]);
			comma = ", ";
		}
		printf("}}");
	}
	puts("}}");
	fflush(stdout);
}

static void put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0 || close(fd))
		die("write %s", path);
}

/* What any user may do: be root where nobody else is. */
static void become_nobody(void)
{
	char map[32];

	if (run.root)
		return;
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY) || prctl(PR_SET_DUMPABLE, 1) ||
	    unshare(CLONE_NEWUSER))
		die("become nobody");
	snprintf(map, sizeof(map), "0 %d 1", NOBODY);
	put_file("/proc/self/setgroups", "deny");
	put_file("/proc/self/uid_map", map);
	put_file("/proc/self/gid_map", map);
}

/* Steps as "3,7-12,40". */
static void choose(char *list)
{
	char *part, *rest = list;
	unsigned long first, last;

	run.single = true;
	while ((part = strsep(&rest, ","))) {
		first = strtoul(part, &part, 10);
		last = *part == '-' ? strtoul(part + 1, NULL, 10) : first;
		for (; first <= last && first < STEPS; first++)
			run.chosen[first] = true;
	}
}

static void read_arguments(int argc, char **argv)
{
	static const struct option_name {
		const char *name;
		char letter;
	} names[] = { { "--seed", 's' }, { "--messages", 'm' }, { "--epoch", 'e' },
		      { "--only", 'o' }, { "--show", 'v' }, { "--root", 'r' }, { "--plant", 'p' } };
	size_t which;
	int at;

	for (at = 1; at < argc; at++) {
		for (which = 0; which < ARRAY_SIZE(names); which++)
			if (!strcmp(argv[at], names[which].name))
				break;
		if (which == ARRAY_SIZE(names) ||
		    (!strchr("rv", names[which].letter) && ++at == argc)) {
			fputs("fuzz [--seed N] [--messages N] [--root] [--plant HEX]", stderr);
			fputs(" [--epoch N [--only STEPS] [--show]]\n", stderr);
			exit(2);
		}
		switch (names[which].letter) {
		case 's':
			run.seed = strtoull(argv[at], NULL, 0);
			break;
		case 'm':
			run.messages = strtoull(argv[at], NULL, 0);
			break;
		case 'e':
			run.epoch = strtoull(argv[at], NULL, 0);
			run.messages = 1;
			break;
		case 'o':
			choose(argv[at]);
			break;
		case 'v':
			run.shown = true;
			break;
		case 'r':
			run.root = true;
			break;
		default:
			run.plant = argv[at];
		}
	}
}

int main(int argc, char **argv)
{
	bool sound = true;

	read_arguments(argc, argv);
	open_log();
	become_nobody();
	while (sound && total(false) < run.messages)
		sound = take_epoch(run.epoch++);
	print_counts();
	return !sound;
}
