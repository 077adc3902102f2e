/* kg_servo.h - controls near singular servo-constraints, and whether there are any. Matrices are small and row-major. */
#ifndef KG_SERVO_H
#define KG_SERVO_H

#include "kg_control.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x (n) = A^+ z with singular values s below the damping d treated as s / d^2 in place of 1 / s: exact where all of them
 * exceed d, bounded by |z| / d everywhere (Nakamura and Hanafusa 1986, with the damping of each singular value of its
 * own). A (m x n) is destroyed; damping: one value. */
#define KG_CONTROL_DAMPED_WORK(m, n) ((m) * (m))
static inline int kg_control_damped(int m, int n, kg_real *A, const kg_real *z, const kg_real *damping, kg_real *work,
                                    kg_real *x) {
  const kg_real least = *damping * *damping;
  for (int i = 0; i < m * m; ++i) {
    work[i] = i % (m + 1) == 0 ? KG_C(1.0) : KG_C(0.0);
  }
  kg_orthogonal_rows(m, n, A, m, work);
  kg_clear(n, x);
  for (int i = 0; i < m; ++i) {
    const kg_real *row = A + i * (ptrdiff_t)n;
    const kg_real size = kg_product(n, row, row);
    if (size > KG_C(0.0)) {
      kg_add(n, kg_product(m, work + i * (ptrdiff_t)m, z) / KG_MAX(size, least), row, x);
    }
  }
  return KG_OK;
}

/* x (n) = A^+ z; result: the rank of A (m x n, destroyed), its smallest singular value (0 where it has no full rank), and
 * 1 where z is in its range, else 0. */
#define KG_CONTROL_FEASIBILITY_WORK(m, n) (KG_CONTROL_WORK(m, n) + (n))
static inline int kg_control_feasibility(int m, int n, kg_real *A, const kg_real *z, kg_real *work, kg_real *x,
                                         kg_real *result) {
  const kg_real *sizes = work + m; /* where kg_control_solve() puts them */
  kg_real *y = work + KG_CONTROL_WORK(m, n);
  kg_real smallest = KG_C(0.0);
  int rank = 0, status;
  kg_clear(n, y);
  status = kg_control_solve(m, n, A, z, y, work, x);
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
