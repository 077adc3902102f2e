/* kg_table.h - evaluates tables: intervals of arguments, piecewise polynomials, and grids.
 *
 * Interval i begins at starts[i]; the first and the last one continue beyond the ends. A guide has the interval in which
 * each of its cells of equal widths begins, so that few comparisons remain, whatever the number of intervals.
 */
#ifndef KG_TABLE_H
#define KG_TABLE_H

#include "kg_base.h"

/* The interval of x, 0 for NaN. last: the last interval; scale: cells per unit of x; stride: the largest of the
 * comparisons, a power of two, 0 for none: a cell has fewer than 2 * stride starts. Behind the starts follow numbers
 * that no argument reaches. */
KG_INLINED int kg_interval(const kg_real *starts, int last, const int *guide, kg_real scale, int stride, kg_real x)
{
  const kg_real above = KG_MAX(x, starts[0]);
  const kg_real inside = KG_MIN(above, starts[last]);
  int i = guide[(int)((inside - starts[0]) * scale)];
  for (int step = stride; step > 0; step /= 2) {
    i += step * (inside >= starts[i + step]);
  }
  return i;
}

/* The polynomial with degree + 1 coefficients, ascending. */
KG_INLINED kg_real kg_polynomial(int degree, const kg_real *coefficients, kg_real d)
{
  kg_real value = coefficients[degree];
  for (int k = degree - 1; k >= 0; k--) {
    value = value * d + coefficients[k];
  }
  return value;
}

/* The weights of value and slope at the start of an interval, and at its end, in the derivative of an order up to 3 at
 * the distance d from the start; inverse: 1 divided by the length. */
KG_INLINED void kg_cubic_weights(int order, kg_real d, kg_real inverse, kg_real *weights)
{
  const kg_real s = d * inverse;
  const kg_real rest = KG_C(1.0) - s;
  if (order == 0) {
    weights[2] = s * s * (KG_C(3.0) - KG_C(2.0) * s);
    weights[0] = KG_C(1.0) - weights[2];
    weights[1] = d * (rest * rest);
    weights[3] = -(d * (s * rest));
    return;
  }
  if (order == 1) {
    weights[2] = KG_C(6.0) * (s * rest) * inverse;
    weights[1] = rest * (KG_C(1.0) - KG_C(3.0) * s);
    weights[3] = s * (KG_C(3.0) * s - KG_C(2.0));
  } else if (order == 2) {
    weights[2] = (KG_C(6.0) - KG_C(12.0) * s) * (inverse * inverse);
    weights[1] = (KG_C(6.0) * s - KG_C(4.0)) * inverse;
    weights[3] = (KG_C(6.0) * s - KG_C(2.0)) * inverse;
  } else {
    weights[2] = KG_C(-12.0) * (inverse * inverse * inverse);
    weights[1] = weights[3] = KG_C(6.0) * (inverse * inverse);
  }
  weights[0] = -weights[2];
}

/* A function that is cubic in each argument in a cell. corner: at the corner where the cell begins, value, slope along y,
 * slope along x, mixed derivative, followed by those of the next point along y; row: numbers from one point along x to
 * the next; a and b: weights along x and y. */
KG_INLINED kg_real kg_cubic_cell(const kg_real *corner, ptrdiff_t row, const kg_real *a, const kg_real *b)
{
  kg_real sums[4];
  for (int k = 0; k < 4; k++) {
    const kg_real *point = corner + (k / 2) * row + 2 * (k % 2);
    sums[k] = (b[0] * point[0] + b[1] * point[1]) + (b[2] * point[4] + b[3] * point[5]);
  }
  return (a[0] * sums[0] + a[1] * sums[1]) + (a[2] * sums[2] + a[3] * sums[3]);
}

/* The weights of the values at the start and at the end of an interval in the derivative of an order 0 or 1. */
KG_INLINED void kg_linear_weights(int order, kg_real d, kg_real inverse, kg_real *weights)
{
  weights[1] = order == 0 ? d * inverse : inverse;
  weights[0] = order == 0 ? KG_C(1.0) - weights[1] : -inverse;
}

/* A function that is linear in each argument in a cell, by the values at its corners. */
KG_INLINED kg_real kg_linear_cell(const kg_real *corner, ptrdiff_t row, const kg_real *a, const kg_real *b)
{
  return a[0] * (b[0] * corner[0] + b[1] * corner[1]) + a[1] * (b[0] * corner[row] + b[1] * corner[row + 1]);
}

#endif
