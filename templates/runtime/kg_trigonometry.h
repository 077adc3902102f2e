/* kg_trigonometry.h - computes the sine, cosine and tangent of an angle without the C library, in double and in float.
 *
 * For every finite angle. Largest errors found, in units in the last place:
 *
 *             sine, cosine   tangent
 *   double    0.85           2.3       random angles of all sizes, and angles next to multiples of pi/2
 *   float     0.80           2.3       all angles
 *
 * NaN and infinity give NaN. Angles up to KG_NEAR_LIMIT are reduced after Cody and Waite (1980), larger ones with as many
 * digits of 2/pi as they need, after Payne and Hanek (1983).
 */
#ifndef KG_TRIGONOMETRY_H
#define KG_TRIGONOMETRY_H

#include <stdint.h>
#include <string.h>

#include "kg_base.h"

#ifdef KG_FLOAT
/* The number of quarter turns has up to 8 bits: its products with 16-bit parts of pi/2 are exact. */
#define KG_NEAR_LIMIT 400.0F
#define KG_TWO_OVER_PI 0.63661975F
#define KG_HALF_PI_HIGH 1.570770263671875F
#define KG_HALF_PI_MIDDLE 2.6063062250614166e-05F
#define KG_HALF_PI_LOW 6.0771006e-11F
/* 1.5 * 2^23: adding it rounds to an integer. */
#define KG_ROUNDING 12582912.0F
/* Words of 32 bits of 2/pi that a larger angle needs, and words of zeros before them. */
#define KG_FAR_WORDS 3
#define KG_FAR_ZEROS 1U
#else
/* The number of quarter turns has up to 16 bits: its products with 33-bit parts of pi/2 are exact. */
#define KG_NEAR_LIMIT 1e5
#define KG_TWO_OVER_PI 0.6366197723675814
#define KG_HALF_PI_HIGH 1.5707963267341256
#define KG_HALF_PI_MIDDLE 6.077100506303966e-11
#define KG_HALF_PI_LOW 2.0222662487959506e-21
/* 1.5 * 2^52 */
#define KG_ROUNDING 6755399441055744.0
#define KG_FAR_WORDS 6
#define KG_FAR_ZEROS 2U
#endif

#ifndef KG_REAL_DEFINED
/* kg_fused: a b + c. With the instructions of x86 it is rounded once, and takes half of the time; kg_sincos.h has the
 * same for vectors. kg_all: a constant as a number of the type that is computed with. */
#if defined(__GNUC__) && defined(__SSE2__) && defined(__FMA__) && !defined(KG_FLOAT)
#define KG_HAS_FUSED
static inline kg_real kg_fused(kg_real a, kg_real b, kg_real c) { return __builtin_fma(a, b, c); }
#else
static inline kg_real kg_fused(kg_real a, kg_real b, kg_real c) { return a * b + c; }
#endif
static inline kg_real kg_all(kg_real x) { return x; }
#endif

/* NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types and parts of names */
/* Minimax polynomials with relative errors below 2^-58, in float 2^-32, of z = r^2:
 *
 *   sin r = r - KG_SIXTH r^3 + KG_SINE_SUM r^5,  cos r = 1 - z/2 + KG_COSINE_SUM z^2
 *
 * Sums after Estrin: the time of one angle is a chain of dependent operations, and this one is shorter than Horner's. */
#define KG_LINE(name, x, slope, value) name##fused(x, name##all(slope), name##all(value))
#ifdef KG_FLOAT
#define KG_SIXTH 0.16666667F
#define KG_SINE_SUM(name, z, z2) \
  name##fused(z2, name##all(2.83251e-06F), KG_LINE(name, z, -0.00019853064F, 0.008333379F))
#define KG_COSINE_SUM(name, z, z2) \
  name##fused(z2, name##all(2.4432327e-05F), KG_LINE(name, z, -0.001388731F, 0.041666646F))
#else
#define KG_SIXTH 0.16666666666666632
#define KG_SINE_SUM(name, z, z2)                                                                                 \
  name##fused(z2,                                                                                                \
              name##fused(z2, name##all(1.5896564498972069e-10),                                                 \
                          KG_LINE(name, z, -2.5050756175992286e-08, 2.755731369165034e-06)),                     \
              KG_LINE(name, z, -0.00019841269829837943, 0.008333333333322486))
#define KG_COSINE_SUM(name, z, z2)                                                                               \
  name##fused(z2,                                                                                                \
              name##fused(z2, KG_LINE(name, z, -1.1360744675633104e-11, 2.0875740672951233e-09),                 \
                          KG_LINE(name, z, -2.75573144553842e-07, 2.4801587289778334e-05)),                      \
              KG_LINE(name, z, -0.0013888888888874567, 0.0416666666666666))
#endif

/* Defines functions for kg_real or for vectors of it (GCC's vector extensions); `name` begins their names.
 *
 * shifted: the number of quarter turns next to x plus KG_ROUNDING, |x| <= KG_NEAR_LIMIT.
 *
 * near_turns: x = quarter * pi/2 + (*high + *low), |*high| <= pi/4. The products in a and b are exact; *low is the
 * rounding error of a - b (Knuth) and about an ulp of x, so that its first order is enough.
 *
 * sine_of, cosine_of: sin(r + e) and cos(r + e), |r| <= pi/4, e about an ulp of r. Small terms come first:
 * sin = r - ((1/6 - r^2 ps) r^3 + (e z/2 - e)), cos = 1 - z/2 + (z^2 pc - r e). */
#define KG_POLYNOMIALS(type, name)                                                               \
  static inline type name##shifted(type x) {                                                      \
    return KG_LINE(name, x, KG_TWO_OVER_PI, KG_ROUNDING);                                        \
  }                                                                                              \
  static inline void name##near_turns(type x, type quarter, type *high, type *low) {             \
    const type a = name##fused(-quarter, name##all(KG_HALF_PI_HIGH), x);                         \
    const type b = quarter * KG_HALF_PI_MIDDLE;                                                  \
    const type difference = a - b;                                                               \
    const type back = difference - a;                                                            \
    const type lost = (a - (difference - back)) - (b + back);                                    \
    *high = difference;                                                                          \
    *low = name##fused(-quarter, name##all(KG_HALF_PI_LOW), lost);                               \
  }                                                                                              \
  static inline type name##sine_of(type r, type e) {                                             \
    const type z = r * r;                                                                        \
    const type z2 = z * z;                                                                       \
    const type sum = name##fused(-z, KG_SINE_SUM(name, z, z2), name##all(KG_SIXTH));             \
    return r - name##fused(z * r, sum, name##fused(KG_C(0.5) * z, e, -e));                       \
  }                                                                                              \
  static inline type name##cosine_of(type r, type e) {                                           \
    const type z = r * r;                                                                        \
    const type z2 = z * z;                                                                       \
    const type half = KG_C(0.5) * z;                                                             \
    const type w = KG_C(1.0) - half;                                                             \
    const type rest = name##fused(-r, e, (KG_C(1.0) - w) - half);                                \
    return w + name##fused(z2, KG_COSINE_SUM(name, z, z2), rest);                                \
  }

/* near_sine_and_cosine, for vectors: sin(x) and cos(x) of angles up to KG_NEAR_LIMIT; those of larger angles, infinity
 * and NaN are undefined. `bits`: vectors of integers as long as a kg_real. The last two bits of `turn` are the number
 * of quarter turns modulo 4. */
#define KG_VECTOR_TURN(type, bits, name)                                                    \
  static inline void name##near_sine_and_cosine(type x, type *sine, type *cosine) {         \
    const type shifted = name##shifted(x);                                                  \
    const bits turn = (bits)shifted;                                                        \
    type r, e;                                                                              \
    bits s, c, exchange;                                                                    \
    name##near_turns(x, shifted - KG_ROUNDING, &r, &e);                                     \
    s = (bits)name##sine_of(r, e);                                                          \
    c = (bits)name##cosine_of(r, e);                                                        \
    exchange = (s ^ c) & -(turn & 1);                                                       \
    *sine = (type)(s ^ exchange ^ ((turn & 2) << 62));                                      \
    *cosine = (type)(c ^ exchange ^ (((turn + 1) & 2) << 62));                              \
  }

/* NOLINTEND(bugprone-macro-parentheses) */

KG_POLYNOMIALS(kg_real, kg_)

#ifndef KG_REAL_DEFINED /* the rest decides by branches */

/* The fraction of a quarter turn, from -1/2 to 1/2, of the angle m 2^(bit + 2 - 32 KG_FAR_ZEROS), m = (high, low): its
 * magnitude in units of 2^(-32 KG_FAR_WORDS), and whether it is negative. Returns the number of quarter turns modulo 4.
 * Words of 2/pi before `bit` would only add full turns, those after the last one are below the rounding error. */
static inline int kg_far_fraction(uint32_t high, uint32_t low, uint32_t bit, uint32_t *fraction, int *negative) {
  static const uint32_t digits[] = {
#ifndef KG_FLOAT
      0x00000000U,
#endif
      0x00000000U, 0xa2f9836eU, 0x4e441529U, 0xfc2757d1U, 0xf534ddc0U, 0xdb629599U, 0x3c439041U, 0xfe5163abU,
#ifndef KG_FLOAT
      0xdebbc561U, 0xb7246e3aU, 0x424dd2e0U, 0x06492eeaU, 0x09d1921cU, 0xfe1deb1cU, 0xb129a73eU, 0xe88235f5U,
      0x2ebb4484U, 0xe99c7026U, 0xb45f7e41U, 0x3991d639U, 0x835339f4U, 0x9c845f8bU, 0xbdf9283bU, 0x1ff897ffU,
      0xde05980fU, 0xef2f118bU, 0x5a0a6d1fU, 0x6d367ecfU, 0x27cb09b7U, 0x4f463f66U, 0x9e5fea2dU, 0x7527bac7U,
      0xebe5f17bU, 0x3d0739f7U, 0x8a5292eaU, 0x6bfb5fb1U, 0x1f8d5d08U, 0x56033046U,
#endif
  };
  const uint32_t first = bit / 32U, shift = bit % 32U;
  uint32_t window[KG_FAR_WORDS] = {0U};
  uint64_t carry = 0U;
  uint32_t quarter;
  for (int i = 0; i < KG_FAR_WORDS; ++i) {
    const uint64_t pair = ((uint64_t)digits[first + (uint32_t)i] << 32U) | digits[first + (uint32_t)i + 1U];
    window[i] = (uint32_t)((pair << shift) >> 32U);
  }
  for (int i = KG_FAR_WORDS - 1; i >= 0; --i) {
    carry += (uint64_t)low * window[i];
    fraction[i] = (uint32_t)carry;
    carry >>= 32U;
  }
  carry = 0U;
  for (int i = KG_FAR_WORDS - 1; i > 0; --i) {
    carry += (uint64_t)high * window[i] + fraction[i - 1];
    fraction[i - 1] = (uint32_t)carry;
    carry >>= 32U;
  }
  quarter = fraction[0] >> 30U;
  for (int i = 0; i < KG_FAR_WORDS; ++i) {
    fraction[i] = (fraction[i] << 2U) | (i + 1 < KG_FAR_WORDS ? fraction[i + 1] >> 30U : 0U);
  }
  *negative = 0;
  if (fraction[0] >= 0x80000000U) {
    *negative = 1;
  }
  carry = 1U;
  for (int i = KG_FAR_WORDS - 1; *negative != 0 && i >= 0; --i) {
    carry += fraction[i] ^ 0xffffffffU;
    fraction[i] = (uint32_t)carry;
    carry >>= 32U;
  }
  quarter = (quarter + (*negative != 0 ? 1U : 0U)) & 3U;
  return (int)quarter;
}

#ifdef KG_FLOAT

/* kg_turns() of an angle larger than KG_NEAR_LIMIT. */
static inline int kg_far_turns(float x, float *high, float *low) {
  const uint64_t half_pi = 0xc90fdaa2U; /* 2^31 pi/2 and its next word */
  const uint64_t half_pi_rest = 0x2168c235U;
  uint32_t bits, fraction[KG_FAR_WORDS] = {0U}, leading, rest;
  uint64_t radians;
  int backward = 0, negative, quarter;
  float a, b;
  if (x < 0.0F) {
    backward = 1;
  }
  (void)memcpy(&bits, &x, sizeof bits);
  quarter = kg_far_fraction(0U, (bits & 0x7fffffU) | 0x800000U, ((bits >> 23U) & 0xffU) + 32U * KG_FAR_ZEROS - 152U,
                            fraction, &negative);
  /* The product with pi/2, in units of 2^-63: its 24 leading bits and the rest are floats. */
  radians = half_pi * fraction[0] + ((half_pi * fraction[1] + half_pi_rest * fraction[0]) >> 32U);
  leading = (uint32_t)(radians >> 32U) & 0xffffff00U;
  radians = (radians & 0xffffffffffU) >> 8U;
  rest = (uint32_t)radians;
  a = (float)leading * 4.656612873077393e-10F; /* 2^-31 */
  b = (float)rest * 2.7755575615628914e-17F;   /* 2^-55 */
  *high = a + b;
  *low = b - (*high - a);
  if (negative != backward) {
    *high = -*high;
    *low = -*low;
  }
  return backward != 0 ? (4 - quarter) % 4 : quarter;
}

#else

/* The product of (*high + *low) and pi/2 with its rounding error (Dekker 1971). */
static inline void kg_times_half_pi(double *high, double *low) {
  const double half_pi = 1.5707963267948966, rest = 6.123233995736766e-17;
  const double a = 1.5707963407039642, b = -1.3909067675399456e-08; /* half_pi = a + b */
  const double split = 134217729.0 * *high;                        /* 2^27 + 1 */
  const double c = split - (split - *high), d = *high - c;
  const double product = *high * half_pi;
  const double lost = ((c * a - product) + c * b + d * a) + d * b;
  *low = lost + (*high * rest + *low * half_pi);
  *high = product;
}

/* kg_turns() of an angle larger than KG_NEAR_LIMIT. */
static inline int kg_far_turns(double x, double *high, double *low) {
  uint64_t bits;
  uint32_t top, fraction[KG_FAR_WORDS] = {0U};
  int backward = 0, negative, quarter;
  double sum = 0.0, rest = 0.0, unit = 2.3283064365386963e-10; /* 2^-32 */
  if (x < 0.0) {
    backward = 1;
  }
  (void)memcpy(&bits, &x, sizeof bits);
  top = (uint32_t)(bits >> 32U);
  bits &= 0xffffffffU;
  quarter = kg_far_fraction((top & 0xfffffU) | 0x100000U, (uint32_t)bits,
                            ((top >> 20U) & 0x7ffU) + 32U * KG_FAR_ZEROS - 1077U, fraction, &negative);
  for (int i = 0; i < 4; ++i) {
    const double term = (double)fraction[i] * unit, next = sum + term;
    rest += term - (next - sum);
    sum = next;
    unit *= 2.3283064365386963e-10;
  }
  if (negative != backward) {
    sum = -sum;
    rest = -rest;
  }
  kg_times_half_pi(&sum, &rest);
  *high = sum;
  *low = rest;
  return backward != 0 ? (4 - quarter) % 4 : quarter;
}

#endif

/* The number of quarter turns next to x; where kg_real has no further digits, ties go to the even one, as in vectors. */
static inline kg_real kg_quarters(kg_real x) {
#if FLT_EVAL_METHOD == 0
  return kg_shifted(x) - KG_ROUNDING;
#else
  const kg_real quarters = x * KG_TWO_OVER_PI;
  return (kg_real)(int)(quarters + (quarters < KG_C(0.0) ? KG_C(-0.5) : KG_C(0.5)));
#endif
}

/* x = k pi/2 + (*high + *low); returns k modulo 4. NaN and infinity: *high is NaN. */
static inline int kg_turns(kg_real x, kg_real *high, kg_real *low) {
  if (KG_ABS(x) <= KG_NEAR_LIMIT) {
    const int quarter = (int)kg_quarters(x);
    kg_near_turns(x, (kg_real)quarter, high, low);
    return ((quarter % 4) + 4) % 4;
  }
  if (!KG_ISFINITE(x)) {
    *high = x - x;
    *low = KG_C(0.0);
    return 0;
  }
  return kg_far_turns(x, high, low);
}

/* A function of which a program has one copy: the functions below, inlined at every angle, would double the code of a
 * small model. */
#if defined(__GNUC__)
#define KG_ONCE __attribute__((noinline, unused))
#else
#define KG_ONCE inline
#endif

/* The sine and cosine of x. */
static KG_ONCE void kg_sine_and_cosine(kg_real x, kg_real *sine, kg_real *cosine) {
  kg_real r, e;
  const int quarter = kg_turns(x, &r, &e);
  const kg_real s = kg_sine_of(r, e);
  const kg_real c = kg_cosine_of(r, e);
  const kg_real first = quarter % 2 == 0 ? s : c;
  const kg_real second = quarter % 2 == 0 ? c : s;
  *sine = quarter >= 2 ? -first : first;
  *cosine = quarter == 1 || quarter == 2 ? -second : second;
}

static KG_ONCE kg_real kg_sin(kg_real x) {
  kg_real r, e, value;
  const int quarter = kg_turns(x, &r, &e);
  value = quarter % 2 == 0 ? kg_sine_of(r, e) : kg_cosine_of(r, e);
  return quarter >= 2 ? -value : value;
}

static KG_ONCE kg_real kg_cos(kg_real x) {
  kg_real r, e, value;
  const int quarter = kg_turns(x, &r, &e);
  value = quarter % 2 == 0 ? kg_cosine_of(r, e) : kg_sine_of(r, e);
  return quarter == 1 || quarter == 2 ? -value : value;
}

static inline kg_real kg_tan(kg_real x) {
  kg_real sine, cosine;
  kg_sine_and_cosine(x, &sine, &cosine);
  return sine / cosine;
}

#endif

#endif
