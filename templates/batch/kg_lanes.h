/* kg_lanes.h - instantiates the text of a kernel for vector lanes.
 *
 * To be included after everything that needs numbers, and before the functions of a kernel: kg_real becomes a vector of
 * KG_LANES doubles, a comparison a mask, and a choice a blend. A lane that a function cannot evaluate, because a guard
 * does not hold or an angle is too large, is noted in the local variable `redo` of the function, which it returns: a number
 * that is not zero. Its results are undefined then. Sines and cosines are the polynomials of kg_trigonometry.h; other special
 * functions are those of the C library, lane by lane.
 */
#ifndef KG_LANES_H
#define KG_LANES_H

#include "kg_lane_types.h"
#include "kg_model.h"

#undef KG_C
#undef KG_SIN
#undef KG_COS
#undef KG_TAN
#undef KG_ASIN
#undef KG_ACOS
#undef KG_ATAN
#undef KG_ATAN2
#undef KG_SINH
#undef KG_COSH
#undef KG_TANH
#undef KG_ASINH
#undef KG_ACOSH
#undef KG_ATANH
#undef KG_EXP
#undef KG_LOG
#undef KG_SQRT
#undef KG_CBRT
#undef KG_POW
#undef KG_ABS
#undef KG_FLOOR
#undef KG_CEIL
#undef KG_ERF
#undef KG_RECIPROCAL
#undef KG_ISFINITE
#undef KG_SPREAD
#undef KG_MIN
#undef KG_MAX
#undef KG_SELECT
#undef KG_GATHER
#undef KG_TRUTH
#undef KG_CALL
#define KG_REAL_DEFINED
#define kg_real kg_lanes
typedef kg_point kg_scalar_point;
/* The fields of kg_point. */
typedef struct {
  kg_lanes t;
  const kg_lanes *q, *u, *s, *r, *forces, *free;
} kg_lanes_point;
#define kg_point kg_lanes_point
#define KG_C(x) ((kg_lanes)KG_SAME(x))
#define KG_SPREAD(x) ((kg_lanes){0} + (double)(x))
#define KG_ISFINITE(x) ((x) - (x) == KG_C(0.0))

KG_INLINE kg_lanes kg_lanes_select(kg_mask where, kg_lanes x, kg_lanes y) {
  return (kg_lanes)((where & (kg_mask)x) | (~where & (kg_mask)y));
}
#define KG_SELECT(condition, x, y) kg_lanes_select(condition, x, y)
#define KG_TRUTH(condition) kg_lanes_select(condition, KG_C(1.0), KG_C(0.0))
#define KG_ABS(x) ((kg_lanes)((kg_mask)(x) & ~(kg_mask)KG_C(-0.0)))
KG_INLINE kg_lanes kg_lanes_min(kg_lanes x, kg_lanes y) { return kg_lanes_select(x < y, x, y); }
KG_INLINE kg_lanes kg_lanes_max(kg_lanes x, kg_lanes y) { return kg_lanes_select(x > y, x, y); }
KG_INLINE kg_lanes kg_lanes_reciprocal(kg_lanes x) {
  return kg_lanes_select(x != KG_C(0.0), KG_C(1.0) / x, KG_C(0.0));
}
/* The element of each lane at its own index. */
KG_INLINE kg_lanes kg_lanes_gather(const kg_lanes *elements, kg_lanes index) {
  kg_lanes value;
  for (int lane = 0; lane < KG_LANES; ++lane) {
    value[lane] = elements[(ptrdiff_t)index[lane]][lane];
  }
  return value;
}
#define KG_GATHER(elements, index) kg_lanes_gather(elements, index)
#define KG_MIN(x, y) kg_lanes_min(x, y)
#define KG_MAX(x, y) kg_lanes_max(x, y)
#define KG_RECIPROCAL(x) kg_lanes_reciprocal(x)

#define KG_EACH_LANE_1(name, function)             \
  KG_INLINE kg_lanes name(kg_lanes x) {            \
    for (int lane = 0; lane < KG_LANES; ++lane) {  \
      x[lane] = function(x[lane]);                 \
    }                                              \
    return x;                                      \
  }
#define KG_EACH_LANE_2(name, function)                \
  KG_INLINE kg_lanes name(kg_lanes x, kg_lanes y) {   \
    for (int lane = 0; lane < KG_LANES; ++lane) {     \
      x[lane] = function(x[lane], y[lane]);           \
    }                                                 \
    return x;                                         \
  }
KG_EACH_LANE_1(kg_lanes_tan, tan)
KG_EACH_LANE_1(kg_lanes_asin, asin)
KG_EACH_LANE_1(kg_lanes_acos, acos)
KG_EACH_LANE_1(kg_lanes_atan, atan)
KG_EACH_LANE_2(kg_lanes_atan2, atan2)
KG_EACH_LANE_1(kg_lanes_sinh, sinh)
KG_EACH_LANE_1(kg_lanes_cosh, cosh)
KG_EACH_LANE_1(kg_lanes_tanh, tanh)
KG_EACH_LANE_1(kg_lanes_asinh, asinh)
KG_EACH_LANE_1(kg_lanes_acosh, acosh)
KG_EACH_LANE_1(kg_lanes_atanh, atanh)
KG_EACH_LANE_1(kg_lanes_exp, exp)
KG_EACH_LANE_1(kg_lanes_log, log)
KG_EACH_LANE_1(kg_lanes_sqrt, sqrt)
KG_EACH_LANE_1(kg_lanes_cbrt, cbrt)
KG_EACH_LANE_2(kg_lanes_pow, pow)
KG_EACH_LANE_1(kg_lanes_floor, floor)
KG_EACH_LANE_1(kg_lanes_ceil, ceil)
KG_EACH_LANE_1(kg_lanes_erf, erf)
#define KG_TAN(x) kg_lanes_tan(x)
#define KG_ASIN(x) kg_lanes_asin(x)
#define KG_ACOS(x) kg_lanes_acos(x)
#define KG_ATAN(x) kg_lanes_atan(x)
#define KG_ATAN2(y, x) kg_lanes_atan2(y, x)
#define KG_SINH(x) kg_lanes_sinh(x)
#define KG_COSH(x) kg_lanes_cosh(x)
#define KG_TANH(x) kg_lanes_tanh(x)
#define KG_ASINH(x) kg_lanes_asinh(x)
#define KG_ACOSH(x) kg_lanes_acosh(x)
#define KG_ATANH(x) kg_lanes_atanh(x)
#define KG_EXP(x) kg_lanes_exp(x)
#define KG_LOG(x) kg_lanes_log(x)
#define KG_SQRT(x) kg_lanes_sqrt(x)
#define KG_CBRT(x) kg_lanes_cbrt(x)
#define KG_POW(x, y) kg_lanes_pow(x, y)
#define KG_FLOOR(x) kg_lanes_floor(x)
#define KG_CEIL(x) kg_lanes_ceil(x)
#define KG_ERF(x) kg_lanes_erf(x)

/* Constants and a b + c for kg_trigonometry.h; the compiler fuses products and sums. */
KG_INLINE kg_lanes kg_all(double x) { return KG_C(x); }
KG_INLINE kg_lanes kg_fused(kg_lanes a, kg_lanes b, kg_lanes c) { return a * b + c; }
#include "kg_trigonometry.h"

/* kg_lanes_turn: sine and cosine of an angle; those of angles beyond KG_REACH, infinity and NaN are undefined. */
#if defined(KG_FUSED) && (defined(__FMA__) || defined(__ARM_FEATURE_FMA))
#define KG_REACH 1e6

/* x = k part + *r with the integer k next to x / part, where pi/2 is `parts` such parts, a power of 2. Returns
 * k + KG_ROUNDING, whose last bits are those of k. pi/2 = 1.57... + 6.1e-17 - 1.5e-33: the first difference is exact with
 * fused operations; the last number is left out, which changes an angle by up to 1e-27. */
KG_INLINE kg_lanes kg_lanes_reduced(kg_lanes x, double parts, kg_lanes *r) {
  const kg_lanes shifted = x * KG_C(parts * KG_TWO_OVER_PI) + KG_C(KG_ROUNDING), k = shifted - KG_C(KG_ROUNDING);
  const kg_lanes a = x - k * KG_C(1.5707963267948966 / parts);
  *r = a - k * KG_C(6.123233995736766e-17 / parts);
  return shifted;
}

#if defined(__AVX512F__)

/* The entries with the indices in the last four bits of `which`, of the first eight and the last eight. */
KG_INLINE kg_lanes kg_lanes_entries(kg_lanes first, kg_lanes last, kg_mask which) {
#if defined(__clang__)
  return __builtin_ia32_vpermi2varpd512(first, which, last);
#else
  return __builtin_shuffle(first, last, which);
#endif
}

/* Two registers hold the sines of sixteen angles, two their cosines: x differs from one of them by at most pi/16, where
 * shorter polynomials are enough (minimax, errors below 2^-54). The largest error found is 3.5 units in the last place. */
KG_INLINE void kg_lanes_turn(kg_lanes x, kg_lanes *sine, kg_lanes *cosine) {
  const double a = 0.38268343236508977, b = 0.7071067811865476, c = 0.9238795325112867; /* sin pi/8, pi/4, 3 pi/8 */
  const kg_lanes sines[2] = {{0.0, a, b, c, 1.0, c, b, a}, {0.0, -a, -b, -c, -1.0, -c, -b, -a}};
  const kg_lanes cosines[2] = {{1.0, c, b, a, 0.0, -a, -b, -c}, {-1.0, -c, -b, -a, 0.0, a, b, c}};
  kg_lanes r;
  const kg_mask which = (kg_mask)kg_lanes_reduced(x, 4.0, &r);
  const kg_lanes near_sine = kg_lanes_entries(sines[0], sines[1], which);
  const kg_lanes near_cosine = kg_lanes_entries(cosines[0], cosines[1], which);
  const kg_lanes z = r * r;
  const kg_lanes s3 = z * KG_C(2.753377731965291e-06) - KG_C(0.00019841262213067228);
  const kg_lanes s2 = z * s3 + KG_C(0.008333333332359142);
  const kg_lanes s1 = z * s2 - KG_C(0.1666666666666628);
  const kg_lanes c3 = z * KG_C(2.4775701682207356e-05) - KG_C(0.0013888880504466553);
  const kg_lanes c2 = z * c3 + KG_C(0.0416666666559635);
  const kg_lanes s = r + z * r * s1, d = z * (z * c2 - KG_C(0.49999999999995753)); /* sin r, cos r - 1 */
  *sine = near_sine + near_sine * d + near_cosine * s;
  *cosine = near_cosine + near_cosine * d - near_sine * s;
}

#else

/* The largest error found is 1.48 units in the last place, with two thirds of the operations of kg_trigonometry.h. */
KG_INLINE void kg_lanes_turn(kg_lanes x, kg_lanes *sine, kg_lanes *cosine) {
  kg_lanes r;
  const kg_mask turn = (kg_mask)kg_lanes_reduced(x, 1.0, &r); /* the last two bits: the number of quarter turns modulo 4 */
  const kg_lanes z = r * r, z2 = z * z;
  const kg_mask s = (kg_mask)(r + (z * r) * (z * KG_SINE_SUM(kg_, z, z2) - KG_C(KG_SIXTH)));
  const kg_mask c = (kg_mask)(KG_C(1.0) + z * (z * KG_COSINE_SUM(kg_, z, z2) - KG_C(0.5)));
  const kg_mask exchange = (s ^ c) & -(turn & 1);
  *sine = (kg_lanes)(s ^ exchange ^ ((turn & 2) << 62));
  *cosine = (kg_lanes)(c ^ exchange ^ (((turn + 1) & 2) << 62));
}

#endif

#else
#define KG_REACH KG_NEAR_LIMIT
KG_VECTOR_TURN(kg_lanes, kg_mask, kg_)
#define kg_lanes_turn(x, sine, cosine) kg_near_sine_and_cosine(x, sine, cosine)
#endif

/* The lanes whose angles, with this sum of squares, are too large, infinite or NaN. */
KG_INLINE kg_mask kg_lanes_far(kg_lanes squares) { return ~(squares <= KG_C(KG_REACH * KG_REACH)); }

KG_INLINE kg_lanes kg_lanes_sine(kg_lanes x, kg_mask *redo) {
  kg_lanes sine, cosine;
  kg_lanes_turn(x, &sine, &cosine);
  *redo |= kg_lanes_far(x * x);
  return sine;
}

KG_INLINE kg_lanes kg_lanes_cosine(kg_lanes x, kg_mask *redo) {
  kg_lanes sine, cosine;
  kg_lanes_turn(x, &sine, &cosine);
  *redo |= kg_lanes_far(x * x);
  return cosine;
}
#define KG_SIN(x) kg_lanes_sine(x, &redo)
#define KG_COS(x) kg_lanes_cosine(x, &redo)

KG_INLINE kg_mask kg_lanes_turns(int n, const kg_lanes *x, kg_lanes *sine, kg_lanes *cosine) {
  kg_lanes squares = {0};
  for (int i = 0; i < n; ++i) {
    kg_lanes_turn(x[i], sine + i, cosine + i);
    squares += x[i] * x[i];
  }
  return kg_lanes_far(squares);
}
#define kg_sincos(n, x, sine, cosine) redo |= kg_lanes_turns(n, x, sine, cosine)

/* A mask as an integer: bit i for lane i. Vectors that are stored and joined would take units that compute. */
KG_INLINE unsigned kg_lanes_bits(kg_mask where) {
#if defined(__AVX512DQ__)
  return (unsigned char)__builtin_ia32_cvtq2mask512(where);
#elif defined(__AVX__) && !defined(__AVX512F__)
  return (unsigned)__builtin_ia32_movmskpd256((kg_lanes)where);
#elif defined(__SSE2__) && !defined(__AVX__)
  return (unsigned)__builtin_ia32_movmskpd((kg_lanes)where);
#else
  unsigned bits = 0U;
  for (int lane = 0; lane < KG_LANES; ++lane) {
    bits |= ((unsigned)where[lane] & 1U) << (unsigned)lane;
  }
  return bits;
#endif
}

/* The guards, checks and calls of a kernel. */
#define KG_REQUIRE(condition) redo |= ~(condition)
#define KG_CALL(result, call) redo |= (call)
#define KG_APART __attribute__((noinline))

#endif
