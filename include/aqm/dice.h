/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which packets are hit, each with a probability of its own, at the price of one
 * random number for each that is, and without a division.
 *
 * The chance that none of the packets since the last hit was hit is
 *
 *	s = (1 - p_1) (1 - p_2) ... (1 - p_n)
 *
 * and the first one at which s is no more than a number u, drawn uniformly from
 * [0, 1) when the last was hit, is hit. For as long as s is above it, u is
 * uniform over [0, s): it leaves the next packet with just the probability that
 * it asks for, whatever came before, as a random number of its own would.
 *
 * Only the ratio of s and u counts: for p = a / b, s is multiplied by b - a and
 * u by b.
 */
#ifndef AQM_DICE_H
#define AQM_DICE_H

#include "fixed.h"

/* s and u are scaled up, by this many places, when s has come down to less. */
#define AQM_DICE_SHIFT	16

/**
 * struct aqm_odds - a probability, undivided
 * @part: a, Q32
 * @whole: b, Q32, above 0 and at most 1
 */
struct aqm_odds {
	u64 part;
	u64 whole;
};

/* The odds as a probability, Q32, at most 1. */
static inline u64 aqm_probability(struct aqm_odds odds)
{
	if (odds.whole == AQM_PROB_ONE)
		return odds.part;
	return min(div64_u64(odds.part << AQM_PROB_SHIFT, odds.whole),
		   AQM_PROB_ONE);
}

/**
 * struct aqm_dice - what decides who is hit
 * @spared: s, scaled as u is; rounded down by less than 2^-48 a packet
 * @thrown: u, rounded up likewise
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
 * @part: a, Q32
 * @whole: b, Q32, above 0 and at most 1
 *
 * Return: true with probability a / b.
 */
static inline bool aqm_dice_hit(struct aqm_dice *dice, u64 part, u64 whole)
{
	if (!part)
		return false;
	if (part >= whole)
		return true;

	dice->spared = aqm_mul_shr(dice->spared, whole - part, AQM_PROB_SHIFT);
	if (whole < AQM_PROB_ONE)
		dice->thrown = aqm_mul_shr(dice->thrown, whole,
					   AQM_PROB_SHIFT) + 1;
	if (dice->spared <= dice->thrown)
		return true;
	if (unlikely(dice->spared >> (64 - AQM_DICE_SHIFT) == 0)) {
		dice->spared <<= AQM_DICE_SHIFT;
		dice->thrown = (dice->thrown + 1) << AQM_DICE_SHIFT;
	}
	return false;
}

#endif
