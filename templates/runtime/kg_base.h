/* kg_base.h - defines the scalar type, its literals and its functions.
 *
 * Generated kernels and runtime headers use only these names, so that one text serves double, float and vector lanes:
 *
 *   nothing          kg_real is double
 *   KG_FLOAT         kg_real is float: defined before this header, or for the compiler (-DKG_FLOAT)
 *   KG_REAL_DEFINED  kg_real and the names below are defined before this header
 *
 * Sines, cosines and tangents are those of kg_trigonometry.h; KG_LIBM_MATH: those of the C library.
 */
#ifndef KG_BASE_H
#define KG_BASE_H

#include <float.h>
#include <math.h>
#include <stddef.h>

#ifndef KG_REAL_DEFINED
#ifdef KG_FLOAT
typedef float kg_real;
#define KG_C(x) x##F
#define KG_BY_PRECISION(in_double, in_float) in_float##F
#define KG_EPSILON FLT_EPSILON
#define KG_TINY FLT_MIN
#define KG_ASIN(x) asinf(x)
#define KG_ACOS(x) acosf(x)
#define KG_ATAN(x) atanf(x)
#define KG_ATAN2(y, x) atan2f(y, x)
#define KG_SINH(x) sinhf(x)
#define KG_COSH(x) coshf(x)
#define KG_TANH(x) tanhf(x)
#define KG_ASINH(x) asinhf(x)
#define KG_ACOSH(x) acoshf(x)
#define KG_ATANH(x) atanhf(x)
#define KG_EXP(x) expf(x)
#define KG_LOG(x) logf(x)
#define KG_SQRT(x) sqrtf(x)
#define KG_CBRT(x) cbrtf(x)
#define KG_POW(x, y) powf(x, y)
#define KG_ABS(x) fabsf(x)
#define KG_FLOOR(x) floorf(x)
#define KG_CEIL(x) ceilf(x)
#define KG_ERF(x) erff(x)
#else
typedef double kg_real;
#define KG_C(x) x
#define KG_ASIN(x) asin(x)
#define KG_ACOS(x) acos(x)
#define KG_ATAN(x) atan(x)
#define KG_ATAN2(y, x) atan2(y, x)
#define KG_SINH(x) sinh(x)
#define KG_COSH(x) cosh(x)
#define KG_TANH(x) tanh(x)
#define KG_ASINH(x) asinh(x)
#define KG_ACOSH(x) acosh(x)
#define KG_ATANH(x) atanh(x)
#define KG_EXP(x) exp(x)
#define KG_LOG(x) log(x)
#define KG_SQRT(x) sqrt(x)
#define KG_CBRT(x) cbrt(x)
#define KG_POW(x, y) pow(x, y)
#define KG_ABS(x) fabs(x)
#define KG_FLOOR(x) floor(x)
#define KG_CEIL(x) ceil(x)
#define KG_ERF(x) erf(x)
#endif
#ifndef KG_LIBM_MATH
#define KG_TAN(x) kg_tan(x) /* KG_SIN and KG_COS: kg_sincos.h */
#elif defined(KG_FLOAT)
#define KG_SIN(x) sinf(x)
#define KG_COS(x) cosf(x)
#define KG_TAN(x) tanf(x)
#else
#define KG_SIN(x) sin(x)
#define KG_COS(x) cos(x)
#define KG_TAN(x) tan(x)
#endif
#define KG_RECIPROCAL(x) ((x) != KG_C(0.0) ? KG_C(1.0) / (x) : KG_C(0.0))
#define KG_ISFINITE(x) isfinite(x)
/* Branch-free minimum and maximum: operands are never NaN by construction, so no call of fmin or fmax is needed. */
#define KG_MIN(x, y) ((x) < (y) ? (x) : (y))
#define KG_MAX(x, y) ((x) > (y) ? (x) : (y))
#define KG_SELECT(condition, x, y) ((condition) ? (x) : (y))
#define KG_TRUTH(condition) ((condition) ? KG_C(1.0) : KG_C(0.0))
/* The element of an array at an index that was computed. */
#define KG_GATHER(elements, index) ((elements)[(ptrdiff_t)(index)])
#endif

/* A number that the text computes, as a kg_real; define it together with kg_real. */
#ifndef KG_SPREAD
#define KG_SPREAD(x) ((kg_real)(x))
#endif
/* A tolerance that rounding decides has a value for each precision. */
#ifndef KG_BY_PRECISION
#define KG_BY_PRECISION(in_double, in_float) KG_C(in_double)
#endif
/* Distance from 1 to the next kg_real, and the smallest normal kg_real; define them together with kg_real. */
#ifndef KG_EPSILON
#define KG_EPSILON DBL_EPSILON
#endif
#ifndef KG_TINY
#define KG_TINY DBL_MIN
#endif

/* Evaluates a call that returns a status: a negative status ends the calling function; result keeps the largest
 * positive status. */
#define KG_CALL(result, call)        \
  do {                               \
    const int kg_status = (call);    \
    if (kg_status < 0) {             \
      return kg_status;              \
    }                                \
    if (kg_status > (result)) {      \
      (result) = kg_status;          \
    }                                \
  } while (0)

/* A function that is inlined wherever it is called, so that loops with constant arguments as their ends unroll. */
#if defined(__GNUC__)
#define KG_INLINED static inline __attribute__((always_inline))
#else
#define KG_INLINED static inline
#endif

/* Attribute of functions that are seldom called: the compiler optimizes them for size, which takes less time. */
#if defined(__GNUC__)
#define KG_COLD __attribute__((cold))
#else
#define KG_COLD
#endif

/* Attribute of long functions that are called once before a run: the compiler does not optimize them, which would take
 * 15 times as long. */
#if defined(__clang__)
#define KG_UNOPTIMIZED __attribute__((optnone))
#elif defined(__GNUC__)
#define KG_UNOPTIMIZED __attribute__((optimize("O0")))
#else
#define KG_UNOPTIMIZED
#endif

#if defined(__cplusplus)
#define KG_RESTRICT __restrict
#else
#define KG_RESTRICT restrict
#endif

#endif
