/* kg_control.h - computes controls that satisfy servo-constraints, which may depend on each other.
 *
 * Matrices are small and row-major.
 */
#ifndef KG_CONTROL_H
#define KG_CONTROL_H

#include "kg_generalized.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Servo-constraints are infeasible if the residual |A x - z| of the best controls exceeds this fraction of |z|, half of
 * the digits as for redundant constraints, ... */
#define KG_CONTROL_TOLERANCE KG_BY_PRECISION(1.5e-8, 3.5e-4)
/* ... plus this fraction of the terms of z, since z of satisfied redundant servo-constraints consists of rounding
 * errors. */
#define KG_CONTROL_FLOOR KG_BY_PRECISION(1e-12, 1e-4)

/* x (n) = A^+ z + (I - A^+ A) y, computed as y + A^+ (z - A y) (Bajodah 2003, eqs. 481 and 541). A (m x n) is
 * destroyed. Returns KG_OK, KG_RANK_DEFICIENT (the rows are dependent but consistent), or KG_INFEASIBLE:
 * z is not in the range of A, and x is the best fit. terms (m): the sums of the absolute terms of z. */
#define KG_CONTROL_WORK(m, n) ((m) * ((m) + 3) + (n))
static inline int kg_control_solve(int m, int n, kg_real *A, const kg_real *z, const kg_real *terms, const kg_real *y,
                                   kg_real *work, kg_real *x) {
  kg_real *rest = work, *sizes = rest + m, *multipliers = sizes + m, *U = multipliers + m, *change = U + m * (ptrdiff_t)m;
  kg_real missing = KG_C(0.0), required = KG_C(0.0);
  int rank;
  for (int i = 0; i < m; ++i) {
    rest[i] = z[i] - kg_dot(n, A + i * (ptrdiff_t)n, y);
    required += z[i] * z[i];
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
      const kg_real part = kg_dot(m, U + i * (ptrdiff_t)m, rest);
      missing += part * part;
    }
  }
  required = KG_CONTROL_TOLERANCE * KG_SQRT(required) + KG_CONTROL_FLOOR * KG_SQRT(kg_dot(m, terms, terms));
  return KG_SQRT(missing) <= required ? KG_RANK_DEFICIENT : KG_INFEASIBLE;
}

/* Controls near singular servo-constraints, and whether controls exist. Matrices are small and row-major. */

/* x (n) = A^+ z with singular values s below the damping d treated as s / d^2 in place of 1 / s: exact where all of
 * them exceed d, bounded by |z| / d everywhere (Nakamura and Hanafusa 1986, with the damping of each singular value of
 * its own). A (m x n) is destroyed; damping: one value. */
#define KG_CONTROL_DAMPED_WORK(m, n) ((m) * ((m) + 1))
static inline int kg_control_damped(int m, int n, kg_real *A, const kg_real *z, const kg_real *damping, kg_real *work,
                                    kg_real *x) {
  const kg_real least = *damping * *damping;
  kg_orthogonal_rows(m, n, A, work, work + m * (ptrdiff_t)m);
  kg_clear(n, x);
  for (int i = 0; i < m; ++i) {
    const kg_real *row = A + i * (ptrdiff_t)n;
    const kg_real size = kg_dot(n, row, row);
    if (size > KG_C(0.0)) {
      kg_add(n, kg_dot(m, work + i * (ptrdiff_t)m, z) / KG_MAX(size, least), row, x);
    }
  }
  return KG_OK;
}

/* x (n) = A^+ z; result: the rank of A (m x n, destroyed), its smallest singular value (0 without full rank),
 * and 1 if z is in its range, otherwise 0. */
#define KG_CONTROL_FEASIBILITY_WORK(m, n) (KG_CONTROL_WORK(m, n) + (n))
static inline int kg_control_feasibility(int m, int n, kg_real *A, const kg_real *z, const kg_real *terms,
                                         kg_real *work, kg_real *x, kg_real *result) {
  const kg_real *sizes = work + m; /* kg_control_solve() stores them here */
  kg_real *y = work + KG_CONTROL_WORK(m, n);
  kg_real smallest = KG_C(0.0);
  int rank = 0, status;
  kg_clear(n, y);
  status = kg_control_solve(m, n, A, z, terms, y, work, x);
  for (int i = 0; i < m; ++i) {
    if (sizes[i] > KG_C(0.0)) {
      smallest = rank == 0 || sizes[i] < smallest ? sizes[i] : smallest;
      ++rank;
    }
  }
  result[0] = (kg_real)rank;
  result[1] = rank == (m < n ? m : n) ? KG_SQRT(smallest) : KG_C(0.0);
  result[2] = status < 0 ? KG_C(0.0) : KG_C(1.0);
  return KG_OK;
}

#ifdef __cplusplus
}
#endif

#endif
