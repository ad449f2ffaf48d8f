// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * PERT, Probabilistic Early Response TCP, as two congestion controls: pert, with
 * RED's curve, and pert_pi, with a PI controller.
 *
 * S. Bhandarkar, A. L. N. Reddy, Y. Zhang, D. Loguinov: "Emulating AQM from End
 * Hosts", SIGCOMM 2007. The law is aqm/pert.h; what differs from the paper is in
 * README.md.
 *
 * Reno, with one thing more: at each ACK that may raise the window, a
 * probability is drawn from the queueing delay, and if the ACK is hit, a share
 * of the window is given up before anything is lost.
 */
#include <linux/inet_diag.h>
#include <linux/module.h>
#include <net/tcp.h>
#include <aqm/compat.h>
#include <aqm/pert.h>

#define CREATE_TRACE_POINTS
#include "pert_trace.h"

#define PPM	1000000U

static unsigned int tmin __read_mostly = 5000;
module_param(tmin, uint, 0644);
MODULE_PARM_DESC(tmin, "pert: queueing delay up to which nothing is done, us (0-1000000)");

static unsigned int tmax __read_mostly = 10000;
module_param(tmax, uint, 0644);
MODULE_PARM_DESC(tmax, "pert: queueing delay of probability pmax, us (above tmin, to 2000000)");

static unsigned int pmax __read_mostly = 50000;
module_param(pmax, uint, 0644);
MODULE_PARM_DESC(pmax, "pert: probability of a response to an ACK at tmax, 1e-6 (1-1000000)");

static unsigned int weight __read_mostly = 990000;
module_param(weight, uint, 0644);
MODULE_PARM_DESC(weight, "weight of the past in the average round-trip time, 1e-6 (0-999999)");

static unsigned int decrease __read_mostly = 350000;
module_param(decrease, uint, 0644);
MODULE_PARM_DESC(decrease, "share of the window that a response gives up, 1e-6 (10000-900000)");

static unsigned int spacing __read_mostly = 1;
module_param(spacing, uint, 0644);
MODULE_PARM_DESC(spacing, "round trips from one response to the next (1-16)");

static bool delack_filter __read_mostly = true;
module_param(delack_filter, bool, 0644);
MODULE_PARM_DESC(delack_filter, "keep round-trip times of delayed ACKs out of the average");

static unsigned int base_window __read_mostly = 10;
module_param(base_window, uint, 0644);
MODULE_PARM_DESC(base_window, "time after which a longer path is taken for one, s (1-3600)");

static unsigned int pi_target __read_mostly = 3000;
module_param(pi_target, uint, 0644);
MODULE_PARM_DESC(pi_target, "pert_pi: queueing delay aimed at, us (0-1000000)");

static unsigned int pi_proportional __read_mostly = 340000;
module_param(pi_proportional, uint, 0644);
MODULE_PARM_DESC(pi_proportional, "pert_pi: K/m, 1e-6 a second (0-1000000000)");

static unsigned int pi_integral __read_mostly = 190000;
module_param(pi_integral, uint, 0644);
MODULE_PARM_DESC(pi_integral, "pert_pi: K, 1e-6 a second squared (0-1000000000, at most 2 pi_sampling pi_proportional)");

static unsigned int pi_sampling __read_mostly = 170;
module_param(pi_sampling, uint, 0644);
MODULE_PARM_DESC(pi_sampling, "pert_pi: steps a second (1-1000)");

static unsigned int time_constant __read_mostly;
module_param(time_constant, uint, 0644);
MODULE_PARM_DESC(time_constant, "of the average, us, instead of weight; 0: weight (0-10000000)");

static bool one_way __read_mostly;
module_param(one_way, bool, 0644);
MODULE_PARM_DESC(one_way, "count the way to the receiver only, by TCP timestamps");

static bool coexist __read_mostly;
module_param(coexist, bool, 0644);
MODULE_PARM_DESC(coexist, "respond ever more seldom while a delay of 2 tmax persists in spite of it");

/**
 * struct pert - a socket's state
 * @vars: what was measured
 * @pi: of pert_pi
 * @pause: since the last response
 * @responses: early ones, so far
 */
struct pert {
	struct pert_vars vars;
	struct pi_vars pi;
	struct pert_pause pause;
	u32 responses;
};

static u64 q32(unsigned int ppm)
{
	return div_u64((u64)ppm << AQM_PROB_SHIFT, PPM);
}

/* The parameters may change at any time: each is read once, and within limits. */
static void pert_params_read(struct pert_params *params)
{
	params->min = min(READ_ONCE(tmin), PPM);
	params->max = clamp(READ_ONCE(tmax), params->min + 1, 2 * PPM);
	params->probability = q32(clamp(READ_ONCE(pmax), 1U, PPM));
	params->weight = q32(PPM - min(READ_ONCE(weight), PPM - 1));
	params->time_constant = min(READ_ONCE(time_constant), 10 * PPM);
	params->window = clamp(READ_ONCE(base_window), 1U, 3600U) * PPM;
}

static void pert_pi_params_read(struct pi_params *params)
{
	struct pert_pi_config config = {
		.target = min(READ_ONCE(pi_target), PPM),
		.proportional = min(READ_ONCE(pi_proportional), 1000 * PPM),
		.integral = min(READ_ONCE(pi_integral), 1000 * PPM),
		.sampling = clamp(READ_ONCE(pi_sampling), 1U, 1000U),
	};

	config.integral = min_t(u64, config.integral,
				2ULL * config.sampling * config.proportional);
	pert_pi_params_init(params, &config);
}

static void pert_init(struct sock *sk)
{
	struct pert *pert = inet_csk_ca(sk);

	/* What came before, the SYN's round trip, was of no data. */
	*pert = (struct pert){};
}

static void pert_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct pert *pert = inet_csk_ca(sk);
	struct pert_params params;
	bool delayed;

	if (sample->rtt_us < 0)
		return;
	delayed = !tp->sacked_out &&
		  pert_is_delayed(&pert->vars, sample->pkts_acked) &&
		  READ_ONCE(delack_filter);
	trace_pert_sample(sk, sample, delayed);
	if (delayed)
		return;

	pert_params_read(&params);
	pert_sample(&params, &pert->vars, tp->tcp_mstamp, sample->rtt_us,
		    tp->rx_opt.rcv_tsval *
		    (aqm_tcp_usec_ts(tp) ? 1 : USEC_PER_MSEC),
		    READ_ONCE(one_way) && tp->rx_opt.saw_tstamp);
}

/* Give up a share of the window: at once, as loss recovery is not at work. */
static void pert_respond(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct pert *pert = inet_csk_ca(sk);
	u64 share = q32(clamp(READ_ONCE(decrease), PPM / 100, PPM * 9 / 10));

	pert->responses++;
	tp->snd_ssthresh = pert_decreased(tcp_snd_cwnd(tp), share);
	tcp_snd_cwnd_set(tp, tp->snd_ssthresh);
	tp->snd_cwnd_cnt = 0;
}

static u32 pert_spacing(void)
{
	return clamp(READ_ONCE(spacing), 1U, 16U);
}

/* Decide about an ACK that may raise the window. */
static void pert_decide(struct sock *sk, u32 ack, u32 acked,
			const struct pert_params *params, u64 probability)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct pert *pert = inet_csk_ca(sk);
	bool certain = pert_is_certain(params, pert_delay(&pert->vars));
	bool respond;

	pert_relieve(&pert->pause, tp->tcp_mstamp, certain);
	respond = pert_may_respond(&pert->pause, ack, tp->snd_nxt) &&
		  inet_csk(sk)->icsk_ca_state != TCP_CA_Loss &&
		  probability && get_random_u32() < probability;
	trace_pert_decide(sk, &pert->vars, probability, respond);
	if (!respond) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	pert_respond(sk);
	pert_responded(&pert->pause, tp->snd_nxt, pert_spacing(),
		       certain && READ_ONCE(coexist));
}

static void pert_red_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	const struct pert *pert = inet_csk_ca(sk);
	struct pert_params params;

	pert_params_read(&params);
	pert_decide(sk, ack, acked, &params,
		    pert_probability(&params, pert_delay(&pert->vars)));
}

static void pert_pi_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct pert *pert = inet_csk_ca(sk);
	struct pi_params pi_params;
	struct pert_params params;
	u64 now = tcp_sk(sk)->tcp_mstamp;

	if (pert_pi_due(&pert->pi, now)) {
		pert_pi_params_read(&pi_params);
		pert_pi_advance(&pi_params, &pert->pi, now,
				pert_delay(&pert->vars));
	}
	pert_params_read(&params);
	pert_decide(sk, ack, acked, &params, pi_probability(&pert->pi));
}

/* A loss, or a mark: Reno's half, which is a response too. */
static u32 pert_ssthresh(struct sock *sk)
{
	struct pert *pert = inet_csk_ca(sk);

	pert_rest(&pert->pause, tcp_sk(sk)->snd_nxt, pert_spacing());
	return tcp_reno_ssthresh(sk);
}

static size_t pert_get_info(struct sock *sk, u32 ext, int *attr,
			    union tcp_cc_info *info)
{
	const struct pert *pert = inet_csk_ca(sk);

	if (!(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	info->vegas = (struct tcpvegas_info){
		.tcpv_enabled = pert->vars.average != 0,
		.tcpv_rttcnt = pert->responses,
		.tcpv_rtt = pert->vars.average >> PERT_DELAY_SHIFT,
		.tcpv_minrtt = pert->vars.base.least,
	};
	*attr = INET_DIAG_VEGASINFO;
	return sizeof(info->vegas);
}

#define PERT_OPS(_name, _cong_avoid) {			\
	.name		= _name,			\
	.owner		= THIS_MODULE,			\
	.flags		= TCP_CONG_NON_RESTRICTED,	\
	.init		= pert_init,			\
	.pkts_acked	= pert_pkts_acked,		\
	.cong_avoid	= _cong_avoid,			\
	.ssthresh	= pert_ssthresh,		\
	.undo_cwnd	= tcp_reno_undo_cwnd,		\
	.get_info	= pert_get_info,		\
}

static struct tcp_congestion_ops pert_red_ops __read_mostly =
	PERT_OPS("pert", pert_red_cong_avoid);
static struct tcp_congestion_ops pert_pi_ops __read_mostly =
	PERT_OPS("pert_pi", pert_pi_cong_avoid);

static int __init pert_module_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct pert) > ICSK_CA_PRIV_SIZE);
	err = tcp_register_congestion_control(&pert_red_ops);
	if (err)
		return err;
	err = tcp_register_congestion_control(&pert_pi_ops);
	if (err)
		tcp_unregister_congestion_control(&pert_red_ops);
	return err;
}

static void __exit pert_module_exit(void)
{
	tcp_unregister_congestion_control(&pert_pi_ops);
	tcp_unregister_congestion_control(&pert_red_ops);
}

module_init(pert_module_init)
module_exit(pert_module_exit)
MODULE_DESCRIPTION("PERT, Probabilistic Early Response TCP");
MODULE_ALIAS("tcp_pert_pi");
MODULE_AUTHOR("The aqmkit authors");
MODULE_VERSION("0.1");
MODULE_LICENSE("GPL");
