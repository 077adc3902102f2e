/* kg_control.h - controls that satisfy servo-constraints, of any rank. Matrices are small and row-major. */
#ifndef KG_CONTROL_H
#define KG_CONTROL_H

#include "kg_generalized.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the controls cannot supply counts when it exceeds this fraction of what is asked for: half of the digits, as for
 * the right sides of redundant constraints, ... */
#define KG_CONTROL_TOLERANCE KG_C(1.5e-8)
/* ... and this value: two servo-constraints that say the same ask for rounding errors once they are satisfied. */
#define KG_CONTROL_FLOOR KG_C(1e-12)

/* x (n) = A^+ z + (I - A^+ A) y, computed as y + A^+ (z - A y) (Bajodah 2003, eqs. 481 and 541). A (m x n) is destroyed.
 * Returns KG_OK, KG_RANK_DEFICIENT (the rows depend on each other, without contradiction), or KG_INFEASIBLE: z is not in
 * the range of A, and x is the best fit. */
#define KG_CONTROL_WORK(m, n) ((m) * ((m) + 3) + (n))
static inline int kg_control_solve(int m, int n, kg_real *A, const kg_real *z, const kg_real *y, kg_real *work,
                                   kg_real *x) {
  kg_real *rest = work, *sizes = rest + m, *multipliers = sizes + m, *U = multipliers + m, *change = U + m * m;
  kg_real missing = KG_C(0.0), asked = KG_C(0.0);
  int rank;
  for (int i = 0; i < m; ++i) {
    rest[i] = z[i] - kg_product(n, A + i * (ptrdiff_t)n, y);
    asked += z[i] * z[i];
  }
  rank = kg_pseudoinverse(m, n, A, rest, U, sizes, change, multipliers);
  for (int i = 0; i < n; ++i) {
    x[i] = y[i] + change[i];
  }
  if (rank == m) {
    return KG_OK;
  }
  for (int i = 0; i < m; ++i) {
    if (!(sizes[i] > KG_C(0.0))) {
      const kg_real part = kg_product(m, U + i * (ptrdiff_t)m, rest);
      missing += part * part;
    }
  }
  return KG_SQRT(missing) <= KG_CONTROL_TOLERANCE * KG_SQRT(asked) + KG_CONTROL_FLOOR ? KG_RANK_DEFICIENT
                                                                                      : KG_INFEASIBLE;
}

#ifdef __cplusplus
}
#endif

#endif
