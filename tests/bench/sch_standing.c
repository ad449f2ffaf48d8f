// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * standing: a parent qdisc for benchmarks, and for nothing else.
 *
 * It keeps a standing queue in each of its children: once so many packets stand
 * in a child, one leaves it for each that comes. The children take turns, a
 * block of packets at a time, and how long each block took can be read from
 * debugfs: neighbours in that list were measured within a millisecond or so of
 * each other, whatever the machine's speed does in the long run.
 *
 * All packets get DF and an Identification alike, as pktgen sets neither; for
 * the children asked for it is an RTT label that rotates, for the others 0.
 * Packets for a child of so many flows become TCP's, from that many sources: one
 * after the other, and then at random. The header checksum is not kept: nobody
 * looks at it.
 *
 * A packet that a child drops is no news to the generator, which would log it.
 */
#include <linux/debugfs.h>
#include <linux/ip.h>
#include <linux/module.h>
#include <linux/timekeeping.h>
#include <net/ip.h>
#include <net/pkt_sched.h>

#define STANDING_CHILDREN	32
#define STANDING_BLOCKS		65536	/* that are remembered */

/* Labels, in units of 0.1 ms: 50 to 195 ms, in an order that stirs them. */
#define STANDING_LABELS		30
#define STANDING_LABEL_MIN	500
#define STANDING_LABEL_STEP	50
#define STANDING_LABEL_STRIDE	7

#define STANDING_SOURCE		0x0b000000	/* 11.0.0.0 */

static uint stand = 100;
module_param(stand, uint, 0644);
MODULE_PARM_DESC(stand, "packets that stand in a child");

static uint block = 2000;
module_param(block, uint, 0644);
MODULE_PARM_DESC(block, "packets that come to a child before it is the next one's turn");

static uint labelled;
module_param(labelled, uint, 0644);
MODULE_PARM_DESC(labelled, "children whose packets carry a label, a bit for each");

static uint flows[STANDING_CHILDREN];
module_param_array(flows, uint, NULL, 0444);
MODULE_PARM_DESC(flows, "flows that come to each child; 0: packets as they are");

static u32 standing_blocks[STANDING_BLOCKS];
static struct debugfs_u32_array standing_array = {
	.array = standing_blocks,
	.n_elements = STANDING_BLOCKS,
};

static struct dentry *standing_dir;

/**
 * struct standing_sched_data - a parent
 * @children: children, those of no class being noop
 * @turn: child whose turn it is
 * @left: packets that are still to come to it
 * @label: how many labels were given
 * @came: packets that came, as long as each is of another flow
 * @chance: what chooses the flow from then on
 * @started: when its turn began, ns
 * @blocks: blocks that are over
 */
struct standing_sched_data {
	struct Qdisc *children[STANDING_CHILDREN];
	unsigned int turn;
	unsigned int left;
	unsigned int label;
	unsigned int came[STANDING_CHILDREN];
	u32 chance;
	u64 started;
	unsigned int blocks;
};

/* It is the next child's turn. */
static void standing_turn(struct standing_sched_data *q)
{
	u64 now = ktime_get_ns();

	if (q->started && q->blocks < STANDING_BLOCKS)
		standing_blocks[q->blocks++] = now - q->started;
	q->started = now;
	q->left = block;
	if (++q->turn >= STANDING_CHILDREN ||
	    q->children[q->turn] == &noop_qdisc)
		q->turn = 0;
}

static void standing_label(struct standing_sched_data *q, struct sk_buff *skb)
{
	struct iphdr *ip = ip_hdr(skb);
	u16 label = 0;

	if (++q->label >= STANDING_LABELS)
		q->label = 0;
	if (labelled & BIT(q->turn))
		label = STANDING_LABEL_MIN + STANDING_LABEL_STEP *
			(q->label * STANDING_LABEL_STRIDE % STANDING_LABELS);
	ip->frag_off = htons(IP_DF);
	ip->id = htons(label);
}

static void standing_flow(struct standing_sched_data *q, struct sk_buff *skb)
{
	struct iphdr *ip = ip_hdr(skb);
	u32 count = flows[q->turn], flow;

	if (!count)
		return;
	if (q->came[q->turn] < count) {
		flow = q->came[q->turn]++;
	} else {
		q->chance = q->chance * 1664525 + 1013904223;
		flow = reciprocal_scale(q->chance, count);
	}
	ip->protocol = IPPROTO_TCP;
	ip->saddr = htonl(STANDING_SOURCE + flow);
	skb_clear_hash(skb);
}

static int standing_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			    struct sk_buff **to_free)
{
	struct standing_sched_data *q = qdisc_priv(sch);
	unsigned int length = qdisc_pkt_len(skb);

	if (!q->left)
		standing_turn(q);
	q->left--;
	if (skb->protocol == htons(ETH_P_IP)) {
		standing_label(q, skb);
		standing_flow(q, skb);
	}

	if (qdisc_enqueue(skb, q->children[q->turn], to_free) ==
	    NET_XMIT_SUCCESS) {
		sch->qstats.backlog += length;
		sch->q.qlen++;
	} else {
		qdisc_qstats_drop(sch);
	}
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *standing_dequeue(struct Qdisc *sch)
{
	struct standing_sched_data *q = qdisc_priv(sch);
	struct Qdisc *child = q->children[q->turn];
	struct sk_buff *skb = NULL;

	if (child->q.qlen > stand)
		skb = child->ops->dequeue(child);
	if (skb) {
		qdisc_bstats_update(sch, skb);
		qdisc_qstats_backlog_dec(sch, skb);
		sch->q.qlen--;
	}
	return skb;
}

static int standing_init(struct Qdisc *sch, struct nlattr *opt,
			 struct netlink_ext_ack *extack)
{
	struct standing_sched_data *q = qdisc_priv(sch);
	unsigned int i;

	for (i = 0; i < STANDING_CHILDREN; i++)
		q->children[i] = &noop_qdisc;
	q->turn = STANDING_CHILDREN - 1;	/* the first comes next */
	return 0;
}

static void standing_reset(struct Qdisc *sch)
{
	struct standing_sched_data *q = qdisc_priv(sch);
	unsigned int i;

	for (i = 0; i < STANDING_CHILDREN; i++)
		qdisc_reset(q->children[i]);
}

static void standing_destroy(struct Qdisc *sch)
{
	struct standing_sched_data *q = qdisc_priv(sch);
	unsigned int i;

	for (i = 0; i < STANDING_CHILDREN; i++)
		qdisc_put(q->children[i]);
}

static int standing_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	return 0;
}

static int standing_graft(struct Qdisc *sch, unsigned long class,
			  struct Qdisc *new, struct Qdisc **old,
			  struct netlink_ext_ack *extack)
{
	struct standing_sched_data *q = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ?: &noop_qdisc, &q->children[class - 1]);
	return 0;
}

static struct Qdisc *standing_leaf(struct Qdisc *sch, unsigned long class)
{
	struct standing_sched_data *q = qdisc_priv(sch);

	return q->children[class - 1];
}

static unsigned long standing_find(struct Qdisc *sch, u32 id)
{
	return TC_H_MIN(id) <= STANDING_CHILDREN ? TC_H_MIN(id) : 0;
}

static void standing_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	unsigned long class;

	for (class = 1; class <= STANDING_CHILDREN && !walker->stop; class++)
		if (!tc_qdisc_stats_dump(sch, class, walker))
			break;
}

static int standing_dump_class(struct Qdisc *sch, unsigned long class,
			       struct sk_buff *skb, struct tcmsg *message)
{
	message->tcm_handle |= TC_H_MIN(class);
	message->tcm_info = standing_leaf(sch, class)->handle;
	return 0;
}

static const struct Qdisc_class_ops standing_class_ops = {
	.graft	= standing_graft,
	.leaf	= standing_leaf,
	.find	= standing_find,
	.walk	= standing_walk,
	.dump	= standing_dump_class,
};

static struct Qdisc_ops standing_ops __read_mostly = {
	.id		= "standing",
	.cl_ops		= &standing_class_ops,
	.priv_size	= sizeof(struct standing_sched_data),
	.enqueue	= standing_enqueue,
	.dequeue	= standing_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= standing_init,
	.reset		= standing_reset,
	.destroy	= standing_destroy,
	.dump		= standing_dump,
	.owner		= THIS_MODULE,
};

static int __init standing_module_init(void)
{
	standing_dir = debugfs_create_dir("sch_standing", NULL);
	debugfs_create_u32_array("blocks", 0400, standing_dir, &standing_array);
	return register_qdisc(&standing_ops);
}

static void __exit standing_module_exit(void)
{
	unregister_qdisc(&standing_ops);
	debugfs_remove(standing_dir);
}

module_init(standing_module_init)
module_exit(standing_module_exit)
MODULE_DESCRIPTION("Benchmark: a parent that keeps standing queues");
MODULE_AUTHOR("The aqmkit authors");
MODULE_LICENSE("GPL");
