/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the laws use of the kernel, for user space. */
#ifndef USER_H
#define USER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX
#define S64_MAX INT64_MAX

#define noinline __attribute__((__noinline__))
#define likely(condition) (condition)
#define unlikely(condition) (condition)

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define BIT_ULL(bit) (1ULL << (bit))
#define min_t(type, a, b) min((type)(a), (type)(b))
#define clamp_t(type, x, low, high) \
	min((type)max((type)(x), (type)(low)), (type)(high))
#define min(a, b) ({		\
	__typeof__(a) __a = (a);	\
	__typeof__(b) __b = (b);	\
				\
	__a < __b ? __a : __b;	\
})

#define max(a, b) ({		\
	__typeof__(a) __a = (a);	\
	__typeof__(b) __b = (b);	\
				\
	__a > __b ? __a : __b;	\
})

static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return (__uint128_t)a * b >> shift;
}

/* The kernel's, which has no floating point, gives the same. */
static inline u32 int_sqrt64(u64 x)
{
	u64 root = sqrtl(x);

	return root;
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 divisor)
{
	return (__uint128_t)a * b / divisor;
}

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

#endif
