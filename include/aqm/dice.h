/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which packets are hit, each with a probability of its own, at the price of one
 * random number for each that is.
 *
 * The chance that none of the packets since the last hit was hit is
 *
 *	s = (1 - p_1) (1 - p_2) ... (1 - p_n)
 *
 * and the first one at which s is no more than a number u, drawn uniformly from
 * [0, 1) when the last was hit, is hit. For as long as s is above it, u is
 * uniform over [0, s): it leaves the next packet with just the probability that
 * it asks for, whatever came before, as a random number of its own would.
 */
#ifndef AQM_DICE_H
#define AQM_DICE_H

#include "fixed.h"

/**
 * struct aqm_dice - what decides who is hit
 * @spared: s, Q64, rounded down by less than 2^-64 a packet
 * @thrown: u, Q64
 */
struct aqm_dice {
	u64 spared;
	u64 thrown;
};

/**
 * aqm_dice_throw() - to be called at the start, and after each hit
 * @dice: dice
 * @random: uniform over 64 bits
 */
static inline void aqm_dice_throw(struct aqm_dice *dice, u64 random)
{
	dice->spared = U64_MAX;
	dice->thrown = random;
}

/**
 * aqm_dice_hit() - is this packet hit?
 * @dice: dice, thrown since the last hit
 * @probability: Q32
 *
 * Return: true with that probability.
 */
static inline bool aqm_dice_hit(struct aqm_dice *dice, u64 probability)
{
	if (!probability)
		return false;
	if (probability >= AQM_PROB_ONE)
		return true;
	/* at least 1 off, so that the end is always reached */
	dice->spared -= mul_u64_u32_shr(dice->spared, probability,
					AQM_PROB_SHIFT) + 1;
	return dice->spared <= dice->thrown;
}

#endif
