/* kg_powers.h - computes logarithms and powers of two on vector lanes, to about ten digits: enough to choose steps.
 * Those of single numbers are in kg_step_powers.h. */
#ifndef KG_POWERS_H
#define KG_POWERS_H

#include "kg_lanes.h"

/* The logarithm to base 2 of a positive, finite, normal number. */
KG_INLINE kg_lanes kg_log2(kg_lanes x) {
  const kg_mask root = (kg_mask)KG_C(0.70710678118654752); /* the mantissa is between this and its double */
  const kg_mask exponent = ((kg_mask)x - root) >> 52;
  const kg_lanes m = (kg_lanes)((kg_mask)x - (exponent << 52));
  const kg_lanes s = (m - KG_C(1.0)) / (m + KG_C(1.0)), z = s * s;
  const kg_lanes high = KG_C(1.0 / 7) + z * (KG_C(1.0 / 9) + z * (KG_C(1.0 / 11) + z * KG_C(1.0 / 13)));
  const kg_lanes series = KG_C(1.0) + z * (KG_C(1.0 / 3) + z * (KG_C(0.2) + z * high));
  return __builtin_convertvector(exponent, kg_lanes) + KG_C(2.8853900817779268) * s * series;
}

/* 2 to the power of x, which is limited to +-1000. */
KG_INLINE kg_lanes kg_exp2(kg_lanes x) {
  const kg_lanes shift = KG_C(6755399441055744.0); /* 1.5 * 2^52: adding it rounds to an integer, ties to even */
  const kg_lanes limited = kg_lanes_max(kg_lanes_min(x, KG_C(1000.0)), KG_C(-1000.0));
  const kg_lanes shifted = limited + shift;
  const kg_lanes w = (limited - (shifted - shift)) * KG_C(0.69314718055994531);
  const double series[] = {1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0};
  kg_lanes sum = KG_C(1.0 / 3628800);
  for (int k = 0; k < 10; ++k) {
    sum = sum * w + ((kg_lanes){0} + series[k]);
  }
  return (kg_lanes)((kg_mask)sum + ((kg_mask)shifted << 52));
}

#endif
