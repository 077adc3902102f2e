/* kg_step_powers.h - computes logarithms and powers of two to six digits: enough to choose steps.
 *
 * The next step cannot begin before its size is known, which follows from the error of the last one: here the time of
 * pow() would count in full, while the processor overlaps most other work with evaluations of the right-hand side. Both
 * functions are continuous. On vector lanes kg_powers.h has the same functions.
 */
#ifndef KG_STEP_POWERS_H
#define KG_STEP_POWERS_H

#include "kg_base.h"

#if defined(KG_REAL_DEFINED) || defined(KG_FLOAT) || DBL_MANT_DIG != 53 || \
    FLT_EVAL_METHOD < 0 || FLT_EVAL_METHOD == 2

static inline kg_real kg_step_log2(kg_real x) { return KG_LOG(KG_MAX(x, KG_TINY)) * KG_C(1.4426950408889634); }

static inline kg_real kg_step_scale(kg_real size, kg_real x) { return size * KG_EXP(x * KG_C(0.69314718055994531)); }

#else

#include <stdint.h>
#include <string.h>

/* The logarithm to base 2 of a positive, finite, normal number, with an error of at most 2.3e-6: the exponent, and a
 * polynomial in the mantissa 1 + f, exact for f = 0 and f = 1. For 0 and smaller numbers: between -1023 and -1022. */
static inline double kg_step_log2(double x) {
  const uint64_t one = (uint64_t)1023 << 52, mantissa = ((uint64_t)1 << 52) - 1;
  uint64_t bits, reduced;
  double f, z, bulge;
  (void)memcpy(&bits, &x, sizeof bits);
  reduced = (bits & mantissa) | one;
  (void)memcpy(&f, &reduced, sizeof f);
  f -= 1.0;
  z = f * f;
  bulge = (0.44254494337521727 - 0.2756003104383995 * f) +
          z * ((0.18194887354973516 - 0.09595644604232859 * f) + z * 0.025841442574932868);
  return ((double)((int)(bits >> 52) - 1023) + f) + (f - z) * bulge;
}

/* `size` times 2 to the power of x, |x| < 1000, with a relative error of at most 7.5e-8: the nearest power of two, by
 * which `size` is multiplied meanwhile, and a polynomial in the rest w, which doubles from w = -1/2 to w = 1/2. */
static inline double kg_step_scale(double size, double x) {
  const double shift = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
  const double shifted = x + shift, w = x - (shifted - shift), z = w * w;
  const double power = (1.0000000716548747 + 0.6931469670644272 * w) +
                       z * ((0.24022119722899188 + 0.05550713273539912 * w) +
                            z * (0.009675541385498055 + 0.0013276472138731925 * w));
  uint64_t bits;
  double nearest;
  (void)memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 1023) << 52;
  (void)memcpy(&nearest, &bits, sizeof nearest);
  return power * (size * nearest);
}

#endif

#endif
