/* kg_fixed_step.h - steps with the same amount of work whatever the state is, for real-time loops.
 *
 * Nothing here iterates until it has converged, and nothing allocates memory; the caller provides all arrays. The
 * steps of Runge-Kutta methods are in kg_methods.h.
 */
#ifndef KG_FIXED_STEP_H
#define KG_FIXED_STEP_H

#include "kg_linalg.h"
#include "kg_methods.h"

#ifdef __cplusplus
extern "C" {
#endif

/* t += dt. `lost` (zero at the start) keeps what rounding takes from t, so that the errors do not add up over many
 * steps: Kahan 1965, Neumaier 1974. */
static inline void kg_advance_time(kg_real dt, kg_real *t, kg_real *lost) {
  const kg_real step = dt + *lost;
  const kg_real before = *t;
  *t = before + step;
  *lost = step - (*t - before);
}

/* change (n) becomes y + change, and lost (n) what rounding takes from these sums (D. E. Knuth, The Art of Computer
 * Programming 2, section 4.2.2, theorem B). */
static inline void kg_add_change(int n, const kg_real *y, kg_real *change, kg_real *lost) {
  for (int i = 0; i < n; ++i) {
    const kg_real sum = y[i] + change[i];
    const kg_real part = sum - y[i];
    lost[i] = (y[i] - (sum - part)) + (change[i] - part);
    change[i] = sum;
  }
}

/* One step of the semi-implicit Euler method from (t, y) to y_new: the speeds and states, y[n_q] and after, by their
 * rates at (t, y), then the coordinates by their rates at the new speeds. Order 1; symplectic for separable systems
 * (E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration, 2nd ed., section I.1). work: n values. */
static inline int kg_semi_implicit_euler_step(const kg_ode *ode, int n_q, kg_real t, kg_real h, const kg_real *y,
                                              kg_real *y_new, kg_real *work) {
  int status = ode->rhs(ode->context, t, y, work);
  if (status < 0) {
    return status;
  }
  for (int i = 0; i < ode->n; ++i) {
    y_new[i] = i < n_q ? y[i] : y[i] + h * work[i];
  }
  status = ode->rhs(ode->context, t, y_new, work);
  for (int i = 0; i < n_q; ++i) {
    y_new[i] += h * work[i];
  }
  return status;
}

/* Length of work of kg_least_change(). */
#define KG_LEAST_CHANGE_WORK(n, m) ((n) * (n) + (m) * (n) + (m) * (m) + (m))

/* The change w (n) of least norm with A w = -residual, in the metric of the kinetic energy for the first n_u entries
 * and the identity for the others: w = -M^-1 A^T (A M^-1 A^T)^-1 residual. rows: m rows [A | residual] of n + 1
 * values; Q: n_u x n_u. Without pivoting: KG_SINGULAR if Q is not positive definite or the rows are dependent. */
static inline int kg_least_change(int n, int n_u, int m, const kg_real *Q, const kg_real *rows, kg_real *work,
                                  kg_real *w) {
  kg_real *factor = work, *response = factor + n * (ptrdiff_t)n, *gram = response + m * (ptrdiff_t)n;
  kg_real *lambda = gram + m * (ptrdiff_t)m;
  (void)memcpy(factor, Q, (size_t)n_u * (size_t)n_u * sizeof *factor);
  if (kg_cholesky_factor(n_u, factor) != KG_OK) {
    return KG_SINGULAR;
  }
  for (int i = 0; i < m; ++i) {
    kg_real *z = response + i * (ptrdiff_t)n;
    (void)memcpy(z, rows + i * ((ptrdiff_t)n + 1), (size_t)n * sizeof *z);
    kg_cholesky_substitute(n_u, 1, factor, z);
  }
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < m; ++j) {
      gram[i * (ptrdiff_t)m + j] = kg_dot(n, rows + i * ((ptrdiff_t)n + 1), response + j * (ptrdiff_t)n);
    }
    lambda[i] = -rows[i * ((ptrdiff_t)n + 1) + n];
  }
  if (kg_cholesky_solve(m, gram, lambda) != KG_OK) {
    return KG_SINGULAR;
  }
  for (int k = 0; k < n; ++k) {
    w[k] = KG_C(0.0);
    for (int i = 0; i < m; ++i) {
      w[k] += response[i * (ptrdiff_t)n + k] * lambda[i];
    }
  }
  return KG_OK;
}

#ifdef __cplusplus
}
#endif

#endif
