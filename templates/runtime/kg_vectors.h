/* kg_vectors.h - defines the elementary operations on vectors that the linear algebra uses. */
#ifndef KG_VECTORS_H
#define KG_VECTORS_H

#include "kg_model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The scalar product of a and b. */
static inline kg_real kg_dot(int n, const kg_real *a, const kg_real *b) {
  kg_real sum = KG_C(0.0);
  for (int i = 0; i < n; ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

/* y <- y + factor x */
static inline void kg_add(int n, kg_real factor, const kg_real *KG_RESTRICT x, kg_real *KG_RESTRICT y) {
  for (int i = 0; i < n; ++i) {
    y[i] += factor * x[i];
  }
}

/* x <- factor x */
static inline void kg_scale(int n, kg_real factor, kg_real *x) {
  for (int i = 0; i < n; ++i) {
    x[i] *= factor;
  }
}

/* x <- 0 */
static inline void kg_clear(int n, kg_real *x) {
  for (int i = 0; i < n; ++i) {
    x[i] = KG_C(0.0);
  }
}

/* Exchanges the values of x and y. */
static inline void kg_swap(int n, kg_real *KG_RESTRICT x, kg_real *KG_RESTRICT y) {
  for (int i = 0; i < n; ++i) {
    const kg_real value = x[i];
    x[i] = y[i];
    y[i] = value;
  }
}

/* The largest magnitude in x; 0 for n = 0. */
static inline kg_real kg_largest(int n, const kg_real *x) {
  kg_real largest = KG_C(0.0);
  for (int i = 0; i < n; ++i) {
    const kg_real size = KG_ABS(x[i]);
    largest = KG_MAX(largest, size);
  }
  return largest;
}

/* a (n x n) <- the identity matrix */
static inline void kg_identity(int n, kg_real *a) {
  kg_clear(n * n, a);
  for (int i = 0; i < n; ++i) {
    a[i * ((ptrdiff_t)n + 1)] = KG_C(1.0);
  }
}

#ifdef __cplusplus
}
#endif

#endif
