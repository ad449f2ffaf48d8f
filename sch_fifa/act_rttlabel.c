// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rttlabel: the edge of a FIFA domain, as a tc action.
 *
 * Writes the lowest round-trip time that is known of a packet's flow into the
 * packet (aqm/label.h), for fifa and xqm to read: from the sending socket, from
 * a table of flows (aqm/flows.h), or as configured. Packets of which nothing is
 * known get no label, whatever they came with.
 */
#include <linux/device.h>
#include <linux/module.h>
#include <linux/pkt_sched_aqm.h>
#include <linux/tc_act/tc_rttlabel.h>
#include <linux/tcp.h>
#include <net/act_api.h>
#include <net/netlink.h>
#include <net/netns/generic.h>
#include <net/pkt_cls.h>
#include <net/tcp.h>

#include <aqm/compat.h>
#include <aqm/fixed.h>
#include <aqm/flows.h>
#include <aqm/label.h>

#define RTTLABEL_FLOWS	65536	/* of a namespace */

/**
 * struct rttlabel_params - what an action does; replaced as a whole
 * @rcu: for freeing it
 * @action: TC_ACT_*
 * @from: TC_RTTLABEL_*
 * @time: the round-trip time if it is configured, ns
 * @error: share that labels are falsified by at most, Q48
 */
struct rttlabel_params {
	struct rcu_head rcu;
	int action;
	u8 from;
	u64 time;
	u64 error;
};

/**
 * struct rttlabel - an action
 * @common: tc's part; first
 * @flows: what is known of its namespace's flows
 * @params: what it does
 * @labelled: packets labelled
 * @cleared: packets whose label was zeroed
 */
struct rttlabel {
	struct tc_action common;
	struct aqm_flows *flows;
	struct rttlabel_params __rcu *params;
	atomic64_t labelled;
	atomic64_t cleared;
};

/**
 * struct rttlabel_net - of a network namespace
 * @tn: tc's part; first
 * @flows: what is known of its flows; NULL before its first action
 */
struct rttlabel_net {
	struct tc_action_net tn;
	struct aqm_flows *flows;
};

static struct tc_action_ops act_rttlabel_ops;

/* The round-trip time of the socket that sends @skb, ns; 0 if it has none. */
static u64 rttlabel_socket(const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;
	u32 rtt;

	if (!sk || !sk_fullsock(sk) || sk->sk_protocol != IPPROTO_TCP ||
	    sk->sk_type != SOCK_STREAM)
		return 0;
	/* ~0 before the first sample; 0 is less than a microsecond */
	rtt = tcp_min_rtt(tcp_sk(sk));
	return rtt == ~0U ? 0 : max(rtt, 1U) * (u64)NSEC_PER_USEC;
}

/* A flow's own error, the same for all its packets: within +-@error, of @rtt. */
static u64 rttlabel_falsify(u64 rtt, u64 error, u64 flow)
{
	u64 limit = aqm_mul(rtt, error, AQM_REAL_SHIFT);

	/* 32 bits of the flow's name that choose no set of the table */
	return rtt - limit + aqm_mul(2 * limit, flow >> 32, 32);
}

static u64 rttlabel_rtt(struct aqm_flows *flows, struct sk_buff *skb,
			const struct rttlabel_params *params)
{
	struct aqm_segment segment;
	u64 rtt = 0;

	if (params->from == TC_RTTLABEL_CLEAR)
		return 0;
	if (params->from == TC_RTTLABEL_TIME && !params->error)
		return params->time;
	if (params->from == TC_RTTLABEL_SOCKET && !params->error)
		return rttlabel_socket(skb);
	if (!aqm_parse_segment(&segment, flows, skb))
		return params->from == TC_RTTLABEL_TIME ? params->time : 0;

	switch (params->from) {
	case TC_RTTLABEL_SOCKET:
		rtt = rttlabel_socket(skb);
		break;
	case TC_RTTLABEL_TIME:
		rtt = params->time;
		break;
	default:
		rtt = aqm_flow_rtt(flows, &segment, ktime_get_ns(),
				   params->from == TC_RTTLABEL_TIMESTAMPS);
		break;
	}
	return rttlabel_falsify(rtt, params->error, segment.flow);
}

static int rttlabel_act(struct sk_buff *skb, const struct tc_action *a,
			struct tcf_result *res)
{
	struct rttlabel *label = container_of(a, struct rttlabel, common);
	const struct rttlabel_params *params;
	u64 rtt;

	tcf_lastuse_update(&label->common.tcfa_tm);
	tcf_action_update_bstats(&label->common, skb);

	params = rcu_dereference_bh(label->params);
	rtt = rttlabel_rtt(label->flows, skb, params);
	if (aqm_set_label(skb, rtt ? aqm_label_of(rtt) : 0))
		atomic64_add(aqm_packets(skb),
			     rtt ? &label->labelled : &label->cleared);
	return params->action;
}

static const struct nla_policy rttlabel_policy[TCA_RTTLABEL_MAX + 1] = {
	[TCA_RTTLABEL_PARMS] =
		NLA_POLICY_EXACT_LEN(sizeof(struct tc_rttlabel)),
	[TCA_RTTLABEL_FROM]	= { .type = NLA_U8 },
	[TCA_RTTLABEL_TIME]	= { .type = NLA_U64 },
	[TCA_RTTLABEL_ERROR]	= { .type = NLA_U64 },
};

static int rttlabel_parse(struct rttlabel_params *params, struct nlattr **tb,
			  struct netlink_ext_ack *extack)
{
	if (tb[TCA_RTTLABEL_FROM])
		params->from = nla_get_u8(tb[TCA_RTTLABEL_FROM]);
	if (tb[TCA_RTTLABEL_TIME])
		params->time = nla_get_u64(tb[TCA_RTTLABEL_TIME]);
	if (tb[TCA_RTTLABEL_ERROR])
		params->error = nla_get_u64(tb[TCA_RTTLABEL_ERROR]);

	if (params->from > TC_RTTLABEL_FROM_MAX) {
		NL_SET_ERR_MSG_MOD(extack,
				   "from must be socket, handshake, timestamps, clear or a time");
		return -EINVAL;
	}
	if (params->from == TC_RTTLABEL_TIME &&
	    (params->time < AQM_LABEL_UNIT ||
	     params->time > AQM_LABEL_UNIT * AQM_LABEL_MAX)) {
		NL_SET_ERR_MSG_MOD(extack,
				   "a time to label with must be 0.1ms to 6553.5ms");
		return -EINVAL;
	}
	if (params->error > AQM_REAL_ONE) {
		NL_SET_ERR_MSG_MOD(extack, "error must be 0% to 100%");
		return -EINVAL;
	}
	return 0;
}

/* The flow table, which a namespace has from its first action on. */
static struct aqm_flows *rttlabel_flows(struct rttlabel_net *rn)
{
	struct aqm_flows *flows, *other;

	/* what the pointer leads to is complete: cmpxchg() below */
	flows = smp_load_acquire(&rn->flows);
	if (flows)
		return flows;

	flows = aqm_flows_create(RTTLABEL_FLOWS,
				 sizeof(struct aqm_edge_flow));
	if (!flows)
		return NULL;
	/* Actions can be made side by side: the first one's table stays. */
	other = cmpxchg(&rn->flows, NULL, flows);
	if (!other)
		return flows;
	aqm_flows_destroy(flows);
	return other;
}

static int rttlabel_init(struct net *net, struct nlattr *nla,
			 struct nlattr *est, struct tc_action **a,
			 struct tcf_proto *tp, u32 flags,
			 struct netlink_ext_ack *extack)
{
	struct rttlabel_net *rn = net_generic(net, act_rttlabel_ops.net_id);
	bool bind = flags & TCA_ACT_FLAGS_BIND;
	struct nlattr *tb[TCA_RTTLABEL_MAX + 1];
	struct rttlabel_params *params, *old;
	struct tcf_chain *goto_chain = NULL;
	struct aqm_flows *flows;
	struct tc_rttlabel *parm;
	struct rttlabel *label;
	int result = 0;
	int err;
	u32 index;

	if (!nla) {
		NL_SET_ERR_MSG_MOD(extack, "rttlabel needs its attributes");
		return -EINVAL;
	}
	err = nla_parse_nested(tb, TCA_RTTLABEL_MAX, nla, rttlabel_policy,
			       extack);
	if (err)
		return err;
	if (!tb[TCA_RTTLABEL_PARMS]) {
		NL_SET_ERR_MSG_MOD(extack, "TCA_RTTLABEL_PARMS is missing");
		return -EINVAL;
	}
	parm = nla_data(tb[TCA_RTTLABEL_PARMS]);

	params = kzalloc(sizeof(*params), GFP_KERNEL);
	if (!params)
		return -ENOMEM;
	params->action = parm->action;
	err = rttlabel_parse(params, tb, extack);
	if (err)
		goto free_params;
	flows = rttlabel_flows(rn);
	if (!flows) {
		err = -ENOMEM;
		goto free_params;
	}

	index = parm->index;
	err = tcf_idr_check_alloc(&rn->tn, &index, a, bind);
	if (!err) {
		err = tcf_idr_create_from_flags(&rn->tn, index, est, a,
						&act_rttlabel_ops, bind, flags);
		if (err) {
			tcf_idr_cleanup(&rn->tn, index);
			goto free_params;
		}
		result = ACT_P_CREATED;
	} else if (err > 0) {
		err = 0;
		if (bind)
			goto free_params;	/* the one there is stays as it is */
		if (!(flags & TCA_ACT_FLAGS_REPLACE)) {
			tcf_idr_release(*a, bind);
			err = -EEXIST;
			goto free_params;
		}
	} else {
		goto free_params;
	}

	err = tcf_action_check_ctrlact(parm->action, tp, &goto_chain, extack);
	if (err < 0) {
		tcf_idr_release(*a, bind);
		goto free_params;
	}

	label = container_of(*a, struct rttlabel, common);
	spin_lock_bh(&label->common.tcfa_lock);
	label->flows = flows;
	goto_chain = tcf_action_set_ctrlact(*a, parm->action, goto_chain);
	old = rcu_replace_pointer(label->params, params,
				  lockdep_is_held(&label->common.tcfa_lock));
	spin_unlock_bh(&label->common.tcfa_lock);
	if (goto_chain)
		tcf_chain_put_by_act(goto_chain);
	if (old)
		kfree_rcu(old, rcu);
	return result;

free_params:
	kfree(params);
	return err;
}

static int rttlabel_dump(struct sk_buff *skb, struct tc_action *a, int bind,
			 int ref)
{
	struct rttlabel *label = container_of(a, struct rttlabel, common);
	unsigned char *end = skb_tail_pointer(skb);
	struct tc_rttlabel opt = {
		.index = label->common.tcfa_index,
		.refcnt = refcount_read(&label->common.tcfa_refcnt) - ref,
		.bindcnt = atomic_read(&label->common.tcfa_bindcnt) - bind,
	};
	const struct rttlabel_params *params;
	const int pad = TCA_RTTLABEL_PAD;
	struct tcf_t tm;
	int err;

	rcu_read_lock();
	params = rcu_dereference(label->params);
	opt.action = params->action;
	tcf_tm_dump(&tm, &label->common.tcfa_tm);
	err = nla_put(skb, TCA_RTTLABEL_PARMS, sizeof(opt), &opt) ?:
	      nla_put_64bit(skb, TCA_RTTLABEL_TM, sizeof(tm), &tm, pad) ?:
	      nla_put_u8(skb, TCA_RTTLABEL_FROM, params->from) ?:
	      nla_put_u64_64bit(skb, TCA_RTTLABEL_ERROR, params->error, pad) ?:
	      nla_put_u64_64bit(skb, TCA_RTTLABEL_LABELLED,
				atomic64_read(&label->labelled), pad) ?:
	      nla_put_u64_64bit(skb, TCA_RTTLABEL_CLEARED,
				atomic64_read(&label->cleared), pad);
	if (!err && params->from == TC_RTTLABEL_TIME)
		err = nla_put_u64_64bit(skb, TCA_RTTLABEL_TIME, params->time,
					pad);
	rcu_read_unlock();
	if (err) {
		nlmsg_trim(skb, end);
		return -1;
	}
	return skb->len;
}

static void rttlabel_cleanup(struct tc_action *a)
{
	struct rttlabel *label = container_of(a, struct rttlabel, common);
	struct rttlabel_params *params;

	params = rcu_dereference_protected(label->params, true);
	if (params)
		kfree_rcu(params, rcu);
}

static size_t rttlabel_fill_size(const struct tc_action *a)
{
	return nla_total_size(sizeof(struct tc_rttlabel)) +
	       nla_total_size(sizeof(u8)) +
	       4 * nla_total_size_64bit(sizeof(u64));
}

static struct tc_action_ops act_rttlabel_ops = {
	.kind		= "rttlabel",
	.id		= TCA_ID_RTTLABEL,
	.owner		= THIS_MODULE,
	.act		= rttlabel_act,
	.dump		= rttlabel_dump,
	.init		= rttlabel_init,
	.cleanup	= rttlabel_cleanup,
	.get_fill_size	= rttlabel_fill_size,
	.size		= sizeof(struct rttlabel),
};
MODULE_ALIAS_NET_ACT("rttlabel");

static int __net_init rttlabel_init_net(struct net *net)
{
	struct rttlabel_net *rn = net_generic(net, act_rttlabel_ops.net_id);

	return tc_action_net_init(net, &rn->tn, &act_rttlabel_ops);
}

static void __net_exit rttlabel_exit_net(struct list_head *nets)
{
	struct rttlabel_net *rn;
	struct net *net;

	tc_action_net_exit(nets, act_rttlabel_ops.net_id);
	list_for_each_entry(net, nets, exit_list) {
		rn = net_generic(net, act_rttlabel_ops.net_id);
		aqm_flows_destroy(rn->flows);
	}
}

static struct pernet_operations rttlabel_net_ops = {
	.init		= rttlabel_init_net,
	.exit_batch	= rttlabel_exit_net,
	.id		= &act_rttlabel_ops.net_id,
	.size		= sizeof(struct rttlabel_net),
};

module_driver(act_rttlabel_ops, tcf_register_action, tcf_unregister_action,
	      &rttlabel_net_ops);
MODULE_DESCRIPTION("Round-trip time label tc action");
MODULE_AUTHOR("The aqmkit authors");
MODULE_VERSION("0.1");
MODULE_LICENSE("GPL");
