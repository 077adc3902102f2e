/* kg_spline.h - evaluates piecewise polynomials.
 *
 * Piece i lies between breakpoints i and i + 1; the first and the last one continue beyond the ends.
 */
#ifndef KG_SPLINE_H
#define KG_SPLINE_H

#include "kg_base.h"

/* The value at x of n - 1 polynomials in x - breakpoints[i]; coefficients: degree + 1 per piece, ascending. */
static inline kg_real kg_spline(int n, int degree, const kg_real *breakpoints, const kg_real *coefficients,
                                kg_real x)
{
  int low = 0;
  int high = n - 1;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (x < breakpoints[middle]) {
      high = middle;
    } else {
      low = middle;
    }
  }
  const kg_real d = x - breakpoints[low];
  const kg_real *piece = coefficients + low * ((ptrdiff_t)degree + 1);
  kg_real value = piece[degree];
  for (int k = degree - 1; k >= 0; k--) {
    value = value * d + piece[k];
  }
  return value;
}

#endif
