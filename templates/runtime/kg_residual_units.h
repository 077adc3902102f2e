/* kg_residual_units.h - the units in which residuals of constraints are judged.
 *
 * The unit of a residual is what it changes by when coordinates and speeds change by the size of the largest of them,
 * to first order. A violation relative to it does not depend on how the constraint is written.
 */
#ifndef KG_RESIDUAL_UNITS_H
#define KG_RESIDUAL_UNITS_H

#include "kg_model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The state moves by this fraction of its largest components. */
#define KG_MOVE KG_BY_PRECISION(1e-6, 1e-3)

/* Writes to `moved` the n values x, moved by irregular fractions (1/2 to 1, so that changes do not cancel) of KG_MOVE
 * times the largest of them, or times 1 if all are zero; with the same sign, or with signs that alternate. */
static inline void kg_moved(int n, const kg_real *x, int alternate, kg_real *moved) {
  kg_real largest = KG_C(0.0), fraction = KG_C(0.0);
  kg_real sign = KG_C(1.0);
  for (int i = 0; i < n; ++i) {
    largest = KG_ABS(x[i]) > largest ? KG_ABS(x[i]) : largest;
  }
  largest = largest > KG_C(0.0) ? largest : KG_C(1.0);
  for (int i = 0; i < n; ++i) {
    fraction += KG_C(0.61803398874989485);
    fraction -= fraction >= KG_C(1.0) ? KG_C(1.0) : KG_C(0.0);
    moved[i] = x[i] + sign * KG_MOVE * largest * (KG_C(0.5) + KG_C(0.5) * fraction);
    sign = alternate ? -sign : sign;
  }
}

/* Writes the residuals f(at) and their units; `moved`: n_q + n_u values, `out`: as many as residuals. Returns the
 * first negative status of f, or the last one. */
static inline int kg_residual_units(const kg_function *f, int n_q, int n_u, const kg_point *at, const kg_real *p,
                                    kg_real *work, kg_real *values, kg_real *units, kg_real *moved, kg_real *out) {
  int status = f->evaluate(at, p, work, values);
  kg_point other = *at;
  other.q = moved;
  other.u = moved + n_q;
  for (int i = 0; i < f->rows; ++i) {
    units[i] = KG_C(0.0);
  }
  for (int pass = 0; pass < 2 && status >= 0; ++pass) {
    kg_moved(n_q, at->q, pass, moved);
    kg_moved(n_u, at->u, pass, moved + n_q);
    status = f->evaluate(&other, p, work, out);
    for (int i = 0; i < f->rows; ++i) {
      units[i] += KG_ABS(out[i] - values[i]) / KG_MOVE;
    }
  }
  return status;
}

#ifdef __cplusplus
}
#endif

#endif
