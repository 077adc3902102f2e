/* kg_powers.h - computes the functions of kg_step_powers.h on vector lanes, to about ten digits. */
#ifndef KG_POWERS_H
#define KG_POWERS_H

#include "kg_lanes.h"

/* The logarithm to base 2 of a finite number, or of the least normal one where that is larger. */
KG_INLINE kg_lanes kg_step_log2(kg_lanes x) {
  const kg_mask root = (kg_mask)KG_C(0.70710678118654752); /* the mantissa is between this and its double */
  const kg_mask bits = (kg_mask)kg_lanes_max(x, KG_C(DBL_MIN)), exponent = (bits - root) >> 52;
  const kg_lanes m = (kg_lanes)(bits - (exponent << 52));
  const kg_lanes s = (m - KG_C(1.0)) / (m + KG_C(1.0)), z = s * s;
  const kg_lanes high = KG_C(1.0 / 7) + z * (KG_C(1.0 / 9) + z * (KG_C(1.0 / 11) + z * KG_C(1.0 / 13)));
  const kg_lanes series = KG_C(1.0) + z * (KG_C(1.0 / 3) + z * (KG_C(0.2) + z * high));
  return __builtin_convertvector(exponent, kg_lanes) + KG_C(2.8853900817779268) * s * series;
}

/* `size` times 2 to the power of x, which is limited to +-1000. */
KG_INLINE kg_lanes kg_step_scale(kg_lanes size, kg_lanes x) {
  const kg_lanes shift = KG_C(6755399441055744.0); /* 1.5 * 2^52: adding it rounds to an integer, ties to even */
  const kg_lanes limited = kg_lanes_max(kg_lanes_min(x, KG_C(1000.0)), KG_C(-1000.0));
  const kg_lanes shifted = limited + shift;
  const kg_lanes w = (limited - (shifted - shift)) * KG_C(0.69314718055994531);
  const double series[] = {1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0};
  kg_lanes sum = KG_C(1.0 / 3628800);
  for (int k = 0; k < 10; ++k) {
    sum = sum * w + ((kg_lanes){0} + series[k]);
  }
  return size * (kg_lanes)((kg_mask)sum + ((kg_mask)shifted << 52));
}

#endif
