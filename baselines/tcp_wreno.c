// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The wireless Reno of REM's section 5: Reno whose window is halved by marks and
 * timeouts, and not by losses that duplicate ACKs tell of.
 *
 * S. Athuraliya, V. H. Li, S. H. Low, Q. Yin: "REM: Active Queue Management",
 * October 2000. "We modify NewReno so that it halves its window when it receives
 * a mark or detects a loss through timeout, but retransmits without halving its
 * window when it detects a loss through duplicate acknowledgment."
 *
 * For experiments on links that lose packets behind queues that mark. Where ECN
 * was not negotiated nothing but losses would tell of congestion: there it is
 * Reno.
 *
 * The paper's NewReno is ns-2's; this is Linux's, with SACK. What Linux finds
 * lost by RACK or by a tail loss probe counts as found by duplicate ACKs.
 */
#include <linux/module.h>
#include <net/tcp.h>
#include <aqm/compat.h>

/**
 * struct wreno - a socket's state
 * @high: snd_nxt when the window was last halved
 * @ssthresh: what a loss leaves as it is: of slow start that goes on after it; 0 if there is none
 * @halved: the window was, and not all that was sent before is acknowledged: once a round trip
 * @echo: the ACK that is being looked at tells of a mark
 */
struct wreno {
	u32 high;
	u32 ssthresh;
	bool halved;
	bool echo;
};

static void wreno_init(struct sock *sk)
{
	struct wreno *wreno = inet_csk_ca(sk);

	*wreno = (struct wreno){};
}

/* Half of @window, in packets: what Reno makes of it. */
static u32 wreno_halve(struct sock *sk, u32 window)
{
	struct wreno *wreno = inet_csk_ca(sk);

	wreno->high = tcp_sk(sk)->snd_nxt;
	wreno->halved = true;
	wreno->ssthresh = 0;
	return max(window >> 1U, 2U);
}

/*
 * Linux is about to reduce the window to what this returns. For a loss that is
 * all of it: it then sends a packet for each that has arrived, as before.
 */
static u32 wreno_ssthresh(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct wreno *wreno = inet_csk_ca(sk);

	if (!aqm_tcp_ecn(tp))
		return tcp_reno_ssthresh(sk);
	if (wreno->echo && !wreno->halved)
		return wreno_halve(sk, tcp_snd_cwnd(tp));
	wreno->ssthresh = tp->snd_ssthresh;
	return max(tcp_snd_cwnd(tp), 2U);
}

/* Before an ACK is acted upon: it may end the round trip, and tell of a mark. */
static void wreno_in_ack_event(struct sock *sk, u32 flags)
{
	struct wreno *wreno = inet_csk_ca(sk);

	if (wreno->halved && after(tcp_sk(sk)->snd_una, wreno->high))
		wreno->halved = false;
	wreno->echo = flags & CA_ACK_ECE;
}

static void wreno_set_state(struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wreno *wreno = inet_csk_ca(sk);

	if (!aqm_tcp_ecn(tp) || wreno->halved)
		return;
	if (state == TCP_CA_Loss)	/* a timeout */
		tp->snd_ssthresh = wreno_halve(sk, tp->prior_cwnd);
	else if (state == TCP_CA_Recovery || state == TCP_CA_CWR)
		/*
		 * No window was reduced, so the receiver must not be told of it: it
		 * is to go on telling of a mark that comes while Linux makes up for
		 * the loss, and has no eye for it.
		 */
		tp->ecn_flags &= ~TCP_ECN_QUEUE_CWR;
}

/* A loss has been made up for: slow start, if it was that, goes on. */
static void wreno_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct wreno *wreno = inet_csk_ca(sk);

	if (event == CA_EVENT_COMPLETE_CWR && wreno->ssthresh) {
		tcp_sk(sk)->snd_ssthresh = wreno->ssthresh;
		wreno->ssthresh = 0;
	}
}

static struct tcp_congestion_ops wreno_ops __read_mostly = {
	.name		= "wreno",
	.owner		= THIS_MODULE,
	.flags		= TCP_CONG_NON_RESTRICTED,
	.init		= wreno_init,
	.cong_avoid	= tcp_reno_cong_avoid,
	.ssthresh	= wreno_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.in_ack_event	= wreno_in_ack_event,
	.set_state	= wreno_set_state,
	.cwnd_event	= wreno_cwnd_event,
};

static int __init wreno_module_init(void)
{
	BUILD_BUG_ON(sizeof(struct wreno) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&wreno_ops);
}

static void __exit wreno_module_exit(void)
{
	tcp_unregister_congestion_control(&wreno_ops);
}

module_init(wreno_module_init)
module_exit(wreno_module_exit)
MODULE_DESCRIPTION("Reno that takes losses for no sign of congestion, where marks are");
MODULE_AUTHOR("The aqmkit authors");
MODULE_VERSION("0.1");
MODULE_LICENSE("GPL");
