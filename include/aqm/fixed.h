/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fixed-point numbers for the control laws.
 *
 * A Qn number is an integer that stands for integer / 2^n. Formats in use:
 *
 *   AQM_PROB_SHIFT  Q32  probabilities, 0 to 1 << 32, which is certainty
 *   AQM_REAL_SHIFT  Q48  real parameters and per-nanosecond rates, below 2^16
 *
 * A law's own formats stand in its header. Everything here runs in the kernel
 * and, for the tests, in user space.
 */
#ifndef AQM_FIXED_H
#define AQM_FIXED_H

#ifdef __KERNEL__
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>
#else
#include "user.h"
#endif

#define AQM_PROB_SHIFT	32
#define AQM_PROB_ONE	BIT_ULL(AQM_PROB_SHIFT)
#define AQM_REAL_SHIFT	48
#define AQM_REAL_ONE	BIT_ULL(AQM_REAL_SHIFT)

/* @n / @d in Q48, rounded; at most 2^15. */
static inline u64 aqm_real(u32 n, u32 d)
{
	return div_u64(AQM_REAL_ONE * n + d / 2, d);
}

/*
 * @a * @b / 2^@shift, rounded down. User-Mode Linux does not tell the kernel's
 * own function that its processor has products of 128 bits.
 */
static inline u64 aqm_mul_shr(u64 a, u64 b, unsigned int shift)
{
#if defined(CONFIG_X86_64) && defined(__SIZEOF_INT128__)
	return (__uint128_t)a * b >> shift;
#else
	return mul_u64_u64_shr(a, b, shift);
#endif
}

/* aqm_mul() of factors whose product is known not to exceed its range. */
static inline u64 __aqm_mul(u64 a, u64 b, unsigned int shift)
{
	if (!shift)
		return a * b;
	return (aqm_mul_shr(a, b, shift - 1) + 1) >> 1;
}

/**
 * aqm_mul() - product of two fixed-point numbers
 * @a: factor
 * @b: factor
 * @shift: fraction bits to take off the product, 0 to 64
 *
 * Return: a * b / 2^shift, rounded to nearest (error at most 1/2), or S64_MAX
 * where the product might exceed 2^62.
 */
static inline u64 aqm_mul(u64 a, u64 b, unsigned int shift)
{
	if (a && b && fls64(a) + fls64(b) > 62 + shift)
		return S64_MAX;
	return __aqm_mul(a, b, shift);
}

/**
 * aqm_smul() - aqm_mul() with a signed factor
 * @a: factor
 * @b: factor
 * @shift: fraction bits to take off the product, 0 to 64
 *
 * Return: a * b / 2^shift, rounded to nearest, halves away from zero, limited
 * to +-S64_MAX.
 */
static inline s64 aqm_smul(s64 a, u64 b, unsigned int shift)
{
	return a < 0 ? -(s64)aqm_mul(-(u64)a, b, shift) :
			(s64)aqm_mul(a, b, shift);
}

/**
 * aqm_sadd() - sum that stops at the ends of its range
 * @a: first term, at least -S64_MAX
 * @b: second term, at least -S64_MAX
 *
 * Return: a + b, limited to +-S64_MAX.
 */
static inline s64 aqm_sadd(s64 a, s64 b)
{
	if (b > 0 && a > S64_MAX - b)
		return S64_MAX;
	if (b < 0 && a < -S64_MAX - b)
		return -S64_MAX;
	return a + b;
}

/**
 * aqm_log2() - binary logarithm
 * @x: Q48, at least one
 *
 * One bit of the result per squaring; meant for the time of configuration.
 *
 * Return: log2(x) in Q48, at most 1 unit (3.6e-15) below the true value.
 */
static inline u64 aqm_log2(u64 x)
{
	unsigned int exponent = fls64(x) - 1;
	u64 mantissa = x << (63 - exponent);	/* Q63, in [1, 2) */
	u64 log = (u64)(exponent - AQM_REAL_SHIFT);
	unsigned int bit;

	for (bit = 0; bit < AQM_REAL_SHIFT; bit++) {
		u64 square = mul_u64_u64_shr(mantissa, mantissa, 64); /* Q62 */

		log <<= 1;
		if (square >> 63) {
			log |= 1;
			mantissa = square;	/* halved: Q63 again */
		} else {
			mantissa = square << 1;
		}
	}
	return log;
}

/* 2^-@x for a Q40 fraction: Q62, in (1/2, 1], rounded up by less than 2^-39. */
static inline u64 aqm_exp2_fraction(u64 x)
{
	/*
	 * The Taylor series about 0, ln(2)^n / n! in Q62, n = 0 ... 12. The
	 * remainder is below ln(2)^13 / 13! = 1.4e-12.
	 */
	static const u64 taylor[] = {
		4611686018427387904ULL, 3196577161300663915ULL,
		1107849223398934356ULL, 255967521894832113ULL,
		44355791529079737ULL, 6149018367977265ULL,
		710362457495793ULL, 70340819226978ULL,
		6094567565682ULL, 469381369432ULL,
		32535037283ULL, 2050142669ULL,
		118420884ULL,
	};
	unsigned int n = ARRAY_SIZE(taylor) - 1;
	u64 power = taylor[n];

	while (n--)
		power = taylor[n] - mul_u64_u64_shr(x, power, 40);
	return power;
}

/**
 * aqm_exp2() - binary exponential
 * @x: Q40, any value
 *
 * Return: 2^x, Q32, within 1 unit (2.3e-10) and 3e-12 of the true value;
 * U64_MAX from x = 32 up.
 */
static inline u64 aqm_exp2(s64 x)
{
	s64 whole = x >> 40;	/* rounded down: x = whole + 1 - fraction */
	u64 fraction = (1ULL << 40) - ((u64)x & ((1ULL << 40) - 1));
	u64 power;

	if (whole >= 32)
		return U64_MAX;
	if (whole < -AQM_PROB_SHIFT - 1)
		return 0;
	power = aqm_exp2_fraction(fraction);
	/* 2 power, Q62, times 2^whole to Q32: 29 - whole places down, rounded */
	if (whole >= 29)
		return power << (whole - 29);
	return ((power >> (28 - whole)) + 1) >> 1;
}

#endif
