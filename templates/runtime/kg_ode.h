/* kg_ode.h - defines an initial value problem y' = f(t, y), and the statistics of its integration.
 *
 * It does not depend on models: the right-hand side may be any function.
 */
#ifndef KG_ODE_H
#define KG_ODE_H

#include "kg_model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y' = rhs(t, y). `rhs` writes n values to dydt and returns KG_OK, KG_REPARTITIONED, or a negative status. After
 * KG_SINGULAR or KG_OUTSIDE_TABLE inside a trial step adaptive methods reduce the step; any other negative status stops
 * at once. */
typedef struct {
  int n;
  int (*rhs)(void *context, kg_real t, const kg_real *y, kg_real *dydt);
  void *context;
  /* For implicit methods, else not used: dydt is the derivative at (t, y). Writes the derivatives of the right-hand
   * side in y (n x n, row-major) and in t (n), and returns what `rhs` may return. */
  int (*jacobian)(void *context, kg_real t, const kg_real *y, const kg_real *dydt, kg_real *J, kg_real *dfdt);
} kg_ode;

typedef struct {
  long long steps;        /* accepted */
  long long rejected;     /* trial steps repeated with a smaller size */
  long long evaluations;  /* calls of the right-hand side */
  long long repartitions; /* calls that returned KG_REPARTITIONED */
  kg_real smallest_step;  /* magnitudes of accepted steps, the last one (cut to end on time) included; 0 if none */
  kg_real largest_step;
  kg_real last_step;
  kg_real largest_error;  /* largest local error estimate of an accepted step as a fraction of the tolerance
                             (root mean square over components); 0 for methods without an estimate */
  long long jacobians;      /* evaluations of the Jacobian, and */
  long long factorizations; /* of matrices made from it, by implicit methods */
} kg_statistics;

/* Calls the right-hand side and counts. Returns the status of the right-hand side. */
static inline int kg_ode_evaluate(const kg_ode *ode, kg_statistics *statistics, kg_real t, const kg_real *y,
                                  kg_real *dydt) {
  const int status = ode->rhs(ode->context, t, y, dydt);
  ++statistics->evaluations;
  if (status == KG_REPARTITIONED) {
    ++statistics->repartitions;
  }
  return status;
}

/* z = y + factor * fresh, all of n values, where the right-hand side has just written `fresh`; z may be y.
 *
 * It is read entry by entry, as it was written: a vector load of several fresh scalars waits until all of them have
 * left the processor's store buffer, in every stage. And z is written entry by entry, so that coordinates do not wait
 * for speeds, whose derivatives the right-hand side computes last. Hence volatile. Two at a time leave more room for
 * instructions of the right-hand side; small processors do not look ahead. */
static inline void kg_add_fresh(int n, kg_real factor, const kg_real *fresh, const kg_real *y, kg_real *z) {
  const volatile kg_real *entries = fresh;
  int i = 0;
#ifdef __LP64__
  volatile kg_real *sums = z;
  for (; i + 1 < n; i += 2) {
    sums[i] = y[i] + factor * entries[i];
    sums[i + 1] = y[i + 1] + factor * entries[i + 1];
  }
#endif
  for (; i < n; ++i) {
    z[i] = y[i] + factor * entries[i];
  }
}

/* z = fresh, read in the same way. */
static inline void kg_copy_fresh(int n, const kg_real *fresh, kg_real *z) {
  const volatile kg_real *entries = fresh;
  for (int i = 0; i < n; ++i) {
    z[i] = entries[i];
  }
}

#ifdef __cplusplus
}
#endif

#endif
