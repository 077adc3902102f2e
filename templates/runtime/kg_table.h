/* kg_table.h - evaluates tables: intervals of arguments, piecewise polynomials, and grids.
 *
 * Interval i begins at starts[i]; the first and the last one continue beyond the ends. A guide has the interval in which
 * each of its cells of equal widths begins, so that few comparisons remain, whatever the number of intervals.
 */
#ifndef KG_TABLE_H
#define KG_TABLE_H

#include "kg_base.h"

#define KG_FEW_STARTS 4

/* The interval of x, 0 for NaN. last: the last interval; scale: cells per unit of x; count: most starts in a cell. Behind
 * the starts follow numbers that no argument reaches. Few starts are compared independently of each other, more of them by
 * bisection. */
KG_INLINED int kg_interval(const kg_real *starts, int last, const int *guide, kg_real scale, int count, kg_real x)
{
  const kg_real above = KG_MAX(x, starts[0]);
  const kg_real inside = KG_MIN(above, starts[last]);
  const int first = guide[(int)((inside - starts[0]) * scale)];
  int i = first;
  if (count <= KG_FEW_STARTS) {
    for (int k = 1; k <= count; k++) {
      i += inside >= starts[first + k];
    }
    return i;
  }
  for (int left = count + 1; left > 1; left -= left / 2) {
    i += inside >= starts[i + left / 2] ? left / 2 : 0;
  }
  return i;
}

/* The derivative of an order of c0 + c1 d + c2 d^2 + c3 d^3. */
KG_INLINED kg_real kg_cubic(int order, kg_real c0, kg_real c1, kg_real c2, kg_real c3, kg_real d)
{
  switch (order) {
  case 0:
    return (c0 + c1 * d) + (c2 + c3 * d) * (d * d);
  case 1:
    return c1 + (KG_C(2.0) * c2 + KG_C(3.0) * c3 * d) * d;
  case 2:
    return KG_C(2.0) * c2 + KG_C(6.0) * c3 * d;
  default:
    return KG_C(6.0) * c3;
  }
}

/* The polynomial with degree + 1 coefficients, ascending. */
KG_INLINED kg_real kg_polynomial(int degree, const kg_real *c, kg_real d)
{
  if (degree == 3) {
    return kg_cubic(0, c[0], c[1], c[2], c[3], d);
  }
  kg_real value = c[degree];
  for (int k = degree - 1; k >= 0; k--) {
    value = value * d + c[k];
  }
  return value;
}

/* The derivatives of the orders a and b along x and y of a polynomial that is cubic in each; c[4 m + k]: the coefficient
 * of d^k e^m. */
KG_INLINED kg_real kg_bicubic(int a, int b, const kg_real *c, kg_real d, kg_real e)
{
  kg_real along[4];
  for (int k = 0; k < 4; k++) {
    along[k] = kg_cubic(b, c[k], c[4 + k], c[8 + k], c[12 + k], e);
  }
  return kg_cubic(a, along[0], along[1], along[2], along[3], d);
}

/* The same of a polynomial that is linear in each, for orders up to 1; c[2 m + k]. */
KG_INLINED kg_real kg_bilinear(int a, int b, const kg_real *c, kg_real d, kg_real e)
{
  const kg_real constant = b == 0 ? c[0] + c[2] * e : c[2];
  const kg_real slope = b == 0 ? c[1] + c[3] * e : c[3];
  return a == 0 ? constant + slope * d : slope;
}

#endif
