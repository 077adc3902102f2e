/* kg_dense.h - dense output of a step: a polynomial in time for each component of the state.
 *
 * The text is instantiated for numbers and for vector lanes (kg_group.h).
 */
#ifndef KG_DENSE_H
#define KG_DENSE_H

#include "kg_base.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first four rows of dense output of the step of size h from y_old to y, with its derivatives at both ends: the
 * cubic Hermite polynomial. */
static inline void kg_dense_ends(int n, kg_real h, const kg_real *y_old, const kg_real *y, const kg_real *start,
                                 const kg_real *end, kg_real *dense) {
  const ptrdiff_t row = n;
  for (ptrdiff_t i = 0; i < row; ++i) {
    const kg_real difference = y[i] - y_old[i];
    dense[i] = y_old[i];
    dense[row + i] = difference;
    dense[2 * row + i] = h * start[i] - difference;
    dense[3 * row + i] = KG_C(2.0) * difference - h * (start[i] + end[i]);
  }
}

/* State at t from the stored dense output of the step from t_old to t_old + h: y has n values. */
static inline void kg_dense_evaluate(int rows, int n, const kg_real *KG_RESTRICT dense, kg_real t_old, kg_real h,
                                     kg_real t, kg_real *KG_RESTRICT y) {
  const kg_real theta = (t - t_old) / h;
  const kg_real rest = KG_C(1.0) - theta;
  const kg_real *last = dense + ((ptrdiff_t)rows - 1) * n;
  (void)memcpy(y, last, (size_t)n * sizeof *y);
  for (int row = rows - 2; row >= 0; --row) {
    const kg_real factor = row % 2 == 0 ? theta : rest;
    const kg_real *KG_RESTRICT values = dense + row * (ptrdiff_t)n;
    for (int i = 0; i < n; ++i) {
      y[i] = y[i] * factor + values[i];
    }
  }
}

#ifdef __cplusplus
}
#endif

#endif
