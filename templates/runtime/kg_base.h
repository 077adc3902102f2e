/* kg_base.h - defines the scalar type, its literals and its functions.
 *
 * Generated kernels and runtime headers use only these names, so that one text serves double, float and
 * vector lanes: define KG_REAL_DEFINED and the names below before including this header to change them.
 */
#ifndef KG_BASE_H
#define KG_BASE_H

#include <float.h>
#include <math.h>
#include <stddef.h>

#ifndef KG_REAL_DEFINED
typedef double kg_real;
#define KG_C(x) x
#define KG_SIN(x) sin(x)
#define KG_COS(x) cos(x)
#define KG_TAN(x) tan(x)
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
#define KG_RECIPROCAL(x) ((x) != 0 ? KG_C(1.0) / (x) : KG_C(0.0))
#define KG_ISFINITE(x) isfinite(x)
/* Branch-free minimum and maximum: operands are never NaN by construction, so no call of fmin or fmax is needed. */
#define KG_MIN(x, y) ((x) < (y) ? (x) : (y))
#define KG_MAX(x, y) ((x) > (y) ? (x) : (y))
#define KG_SELECT(condition, x, y) ((condition) != 0 ? (x) : (y))
#define KG_TRUTH(condition) ((condition) ? 1.0 : 0.0)
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

/* Attribute of functions that are seldom called: the compiler optimizes them for size, which takes less time. */
#if defined(__GNUC__)
#define KG_COLD __attribute__((cold))
#else
#define KG_COLD
#endif

#if defined(__cplusplus)
#define KG_RESTRICT __restrict
#else
#define KG_RESTRICT restrict
#endif

#endif
