/* SPDX-License-Identifier: GPL-2.0-or-later */
/* REM's own options: for rem, and for fifa where REM is its base. */
#ifndef AQM_REM_OPTIONS_H
#define AQM_REM_OPTIONS_H

#include <linux/pkt_sched_rem.h>

#include <aqm/qdisc.h>
#include <aqm/rem.h>

#define REM_TARGET		20			/* packets */

#define REM_INTERVAL_MIN	(10 * NSEC_PER_USEC)
#define REM_INTERVAL_MAX	(10ULL * NSEC_PER_SEC)
#define REM_GAIN_MIN		(AQM_REAL_ONE / 1000000)
#define REM_PHI_MIN		(AQM_REAL_ONE + AQM_REAL_ONE / 100000)
#define REM_PHI_MAX		(AQM_REAL_ONE * 1000)

/* TC_REM_* less this is the law's enum rem_measure. */
#define REM_MEASURE_BASE TC_REM_BACKLOG
static_assert(TC_REM_QUEUE - REM_MEASURE_BASE == REM_QUEUE);
static_assert(TC_REM_RATE - REM_MEASURE_BASE == REM_RATE);

#define REM_POLICY						\
	[TCA_REM_INTERVAL]	= { .type = NLA_U64 },		\
	[TCA_REM_ALPHA]		= { .type = NLA_U64 },		\
	[TCA_REM_GAMMA]		= { .type = NLA_U64 },		\
	[TCA_REM_PHI]		= { .type = NLA_U64 },		\
	[TCA_REM_MEASURE]	= { .type = NLA_U8 }

/**
 * struct rem_options - REM's own options
 * @measure: TC_REM_*, as the user chose
 * @config: the law's parameters
 */
struct rem_options {
	u8 measure;
	struct rem_config config;
};

/* Section 4's parameters; the update interval is ours. */
static inline void rem_options_init(struct rem_options *options)
{
	*options = (struct rem_options){
		.measure = TC_REM_AUTO,
		.config = {
			.measure = REM_QUEUE,
			.target = REM_TARGET,
			.interval = 2 * NSEC_PER_MSEC,
			.alpha = aqm_real(1, 10),
			.gamma = aqm_real(1, 1000),
			.phi = aqm_real(1001, 1000),
		},
	};
}

/**
 * rem_parse() - read REM's own options
 * @options: options in force, and then the new ones
 * @shared: the options all disciplines share, new
 * @tb: attributes, parsed with REM_POLICY
 * @extack: where a refusal goes
 *
 * Return: 0, or -EINVAL with @options in an undefined state.
 */
static inline int rem_parse(struct rem_options *options,
			    const struct aqm_config *shared,
			    struct nlattr **tb, struct netlink_ext_ack *extack)
{
	struct rem_config *config = &options->config;
	u8 measure;
	int err;

	err = AQM_TAKE(config->interval, tb[TCA_REM_INTERVAL], u64,
		       REM_INTERVAL_MIN, REM_INTERVAL_MAX, extack,
		       "interval must be 10us to 10s") ?:
	      AQM_TAKE(config->alpha, tb[TCA_REM_ALPHA], u64,
		       REM_GAIN_MIN, AQM_REAL_ONE - 1, extack,
		       "alpha must be at least 0.000001 and below 1") ?:
	      AQM_TAKE(config->gamma, tb[TCA_REM_GAMMA], u64,
		       REM_GAIN_MIN, AQM_REAL_ONE, extack,
		       "gamma must be 0.000001 to 1") ?:
	      AQM_TAKE(config->phi, tb[TCA_REM_PHI], u64,
		       REM_PHI_MIN, REM_PHI_MAX, extack,
		       "phi must exceed 1: 1.00001 to 1000") ?:
	      AQM_TAKE(options->measure, tb[TCA_REM_MEASURE], u8,
		       0, TC_REM_MEASURE_MAX, extack,
		       "measure must be auto, backlog, queue or rate");
	if (err)
		return err;

	measure = options->measure;
	if (measure == TC_REM_AUTO)
		measure = shared->bandwidth ? TC_REM_BACKLOG : TC_REM_QUEUE;
	if (measure != TC_REM_QUEUE && !shared->bandwidth) {
		NL_SET_ERR_MSG_MOD(extack,
				   "measure backlog and measure rate need bandwidth");
		return -EINVAL;
	}
	config->measure = measure - REM_MEASURE_BASE;
	config->target = shared->target;
	return 0;
}

/* Write REM's own options, the measure as it is in force. */
static inline int rem_dump(struct sk_buff *skb,
			   const struct rem_options *options)
{
	const struct rem_config *config = &options->config;

	if (nla_put_u64_64bit(skb, TCA_REM_INTERVAL, config->interval,
			      TCA_AQM_PAD) ||
	    nla_put_u64_64bit(skb, TCA_REM_ALPHA, config->alpha, TCA_AQM_PAD) ||
	    nla_put_u64_64bit(skb, TCA_REM_GAMMA, config->gamma, TCA_AQM_PAD) ||
	    nla_put_u64_64bit(skb, TCA_REM_PHI, config->phi, TCA_AQM_PAD) ||
	    nla_put_u8(skb, TCA_REM_MEASURE,
		       config->measure + REM_MEASURE_BASE))
		return -EMSGSIZE;
	return 0;
}

#endif
