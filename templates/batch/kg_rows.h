/* kg_rows.h - arrays with a row for each state or motion, for code on vector lanes. */
#ifndef KG_ROWS_H
#define KG_ROWS_H

#include "kg_lanes.h"

#define KG_EXPORT __attribute__((visibility("default")))

/* The values of one argument or result in all rows; step 0: the same value in all rows. */
typedef struct {
  double *first;
  ptrdiff_t step;
} kg_column;

static int kg_all_are_finite(int n, const double *x) {
  int finite = 1;
  for (int i = 0; i < n; ++i) {
    finite &= x[i] - x[i] == 0.0;
  }
  return finite;
}

#endif
