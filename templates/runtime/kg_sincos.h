/* kg_sincos.h - computes the sines and cosines of several angles at once.
 *
 * In double, with GCC and Clang, four angles are one vector (AVX), or two (SSE2, NEON). Without vectors, for float, and
 * where the compiler optimizes for size, one function is called for each angle. The bits of a result do not depend on
 * which of these ways it was computed, unless the compiler contracts products and sums. Accuracy: kg_trigonometry.h.
 * KG_LIBM_MATH and other scalars: KG_SIN and KG_COS.
 */
#ifndef KG_SINCOS_H
#define KG_SINCOS_H

#include "kg_base.h"
#ifndef KG_REAL_DEFINED
#include "kg_trigonometry.h"
#endif

#if defined(KG_REAL_DEFINED) || defined(KG_LIBM_MATH)

static inline void kg_sincos(int n, const kg_real *KG_RESTRICT x, kg_real *KG_RESTRICT sine,
                             kg_real *KG_RESTRICT cosine) {
  for (int i = 0; i < n; ++i) {
    sine[i] = KG_SIN(x[i]);
    cosine[i] = KG_COS(x[i]);
  }
}

#elif !defined(__GNUC__) || !(defined(__SSE2__) || defined(__aarch64__)) || defined(__OPTIMIZE_SIZE__) || \
    defined(KG_FLOAT) || FLT_EVAL_METHOD != 0

#define KG_SIN(x) kg_sin(x)
#define KG_COS(x) kg_cos(x)

static inline void kg_sincos(int n, const kg_real *KG_RESTRICT x, kg_real *KG_RESTRICT sine,
                             kg_real *KG_RESTRICT cosine) {
  for (int i = 0; i < n; ++i) {
    kg_sine_and_cosine(x[i], sine + i, cosine + i);
  }
}

#else

/* With a constant number of angles, vectors stay in registers; stored one by one and loaded as a vector, they would
 * take three times as long. */
typedef double kg_pair __attribute__((vector_size(16)));
typedef long long kg_pair_bits __attribute__((vector_size(16)));
#ifdef __AVX__
typedef double kg_quad __attribute__((vector_size(32)));
typedef long long kg_quad_bits __attribute__((vector_size(32)));
#endif

#ifndef KG_HAS_FUSED
#define KG_FUSE(length, a, b, c) ((a) * (b) + (c))
#elif defined(__clang__) && __clang_major__ >= 16
#define KG_FUSE(length, a, b, c) __builtin_elementwise_fma(a, b, c)
#else
#define KG_FUSE(length, a, b, c) __builtin_ia32_vfmadd##length(a, b, c)
#endif
/* For vectors what kg_fused() and kg_all() are for numbers. */
static inline kg_pair kg_pair_fused(kg_pair a, kg_pair b, kg_pair c) { return KG_FUSE(pd, a, b, c); }
static inline kg_pair kg_pair_all(double x) {
  const kg_pair all = {x, x};
  return all;
}
#ifdef __AVX__
static inline kg_quad kg_quad_fused(kg_quad a, kg_quad b, kg_quad c) { return KG_FUSE(pd256, a, b, c); }
static inline kg_quad kg_quad_all(double x) {
  const kg_quad all = {x, x, x, x};
  return all;
}
#endif

#if !defined(__clang__) && __GNUC__ >= 12
#pragma GCC diagnostic push
/* GCC's analyzer takes a vector of integers for an integer of one bit. */
#pragma GCC diagnostic ignored "-Wanalyzer-shift-count-overflow"
/* Without optimization, GCC does not see that kg_sincos_four is called for three or four angles only. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif
KG_POLYNOMIALS(kg_pair, kg_pair_)
KG_VECTOR_TURN(kg_pair, kg_pair_bits, kg_pair_)
#ifdef __AVX__
KG_POLYNOMIALS(kg_quad, kg_quad_)
KG_VECTOR_TURN(kg_quad, kg_quad_bits, kg_quad_)
#endif

KG_INLINED void kg_sincos_two(const double *x, double *sine, double *cosine) {
  const kg_pair angles = {x[0], x[1]};
  kg_pair s, c;
  kg_pair_near_sine_and_cosine(angles, &s, &c);
  memcpy(sine, &s, sizeof s);
  memcpy(cosine, &c, sizeof c);
}

#ifdef __AVX__
/* Three or four angles. */
KG_INLINED void kg_sincos_four(int n, const double *x, double *sine, double *cosine) {
  const kg_quad angles = {x[0], x[1], x[2], x[n - 1]};
  kg_quad s, c;
  kg_quad_near_sine_and_cosine(angles, &s, &c);
  memcpy(sine, &s, (size_t)n * sizeof *sine);
  memcpy(cosine, &c, (size_t)n * sizeof *cosine);
}
#endif
#if !defined(__clang__) && __GNUC__ >= 12
#pragma GCC diagnostic pop
#endif

/* A single angle up to KG_NEAR_LIMIT. Small ones need no reduction, which is half of the time. */
KG_INLINED void kg_sincos_one(double x, double *sine, double *cosine) {
  if (fabs(x) <= 0.7853981633974483) { /* pi/4 */
    *sine = kg_sine_of(x, 0.0);
    *cosine = kg_cosine_of(x, 0.0);
  } else {
    const double shifted = kg_shifted(x);
    double r, e, s, c, first, second;
    uint64_t turn; /* its last two bits: the number of quarter turns modulo 4 */
    memcpy(&turn, &shifted, sizeof turn);
    kg_near_turns(x, shifted - KG_ROUNDING, &r, &e);
    s = kg_sine_of(r, e);
    c = kg_cosine_of(r, e);
    first = (turn & 1U) != 0U ? c : s;
    second = (turn & 1U) != 0U ? s : c;
    *sine = (turn & 2U) != 0U ? -first : first;
    *cosine = ((turn + 1U) & 2U) != 0U ? -second : second;
  }
}

/* Computes those of n angles again that the functions above cannot reduce; NaN and infinity are among them. */
static KG_COLD void kg_sincos_far(int n, const double *x, double *sine, double *cosine) {
  for (int i = 0; i < n; ++i) {
    if (!(fabs(x[i]) <= KG_NEAR_LIMIT)) {
      kg_sine_and_cosine(x[i], sine + i, cosine + i);
    }
  }
}

KG_INLINED void kg_sincos(int n, const double *KG_RESTRICT x, double *KG_RESTRICT sine, double *KG_RESTRICT cosine) {
  double size = 0.0;
  int i = 0;
#ifdef __AVX__
  for (; n - i > 2; i += 4) {
    kg_sincos_four(n - i < 4 ? 3 : 4, x + i, sine + i, cosine + i);
  }
#endif
  for (; n - i > 1; i += 2) {
    kg_sincos_two(x + i, sine + i, cosine + i);
  }
  if (n - i == 1) {
    kg_sincos_one(x[i], sine + i, cosine + i);
  }
  for (int k = 0; k < n; ++k) {
    size += fabs(x[k]);
  }
  if (!(size <= KG_NEAR_LIMIT)) {
    kg_sincos_far(n, x, sine, cosine);
  }
}

/* A sine or a cosine alone: the compiler removes what the other one needs. */
KG_INLINED double kg_sine(double x) {
  double sine, cosine;
  kg_sincos(1, &x, &sine, &cosine);
  return sine;
}

KG_INLINED double kg_cosine(double x) {
  double sine, cosine;
  kg_sincos(1, &x, &sine, &cosine);
  return cosine;
}
#define KG_SIN(x) kg_sine(x)
#define KG_COS(x) kg_cosine(x)

#endif

#endif
