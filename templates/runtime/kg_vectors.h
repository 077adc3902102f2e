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

/* The size of coordinate i: that of an angle (`angles`: n flags, or NULL) is 1 or its magnitude, that of the others the
 * `largest` magnitude among them: a coordinate that is zero has a size, too, and those of a model share their unit. */
static inline kg_real kg_coordinate_size(const int *angles, kg_real largest, const kg_real *q, int i) {
  const kg_real size = KG_ABS(q[i]);
  return angles && angles[i] ? KG_MAX(size, KG_C(1.0)) : largest;
}

/* The largest magnitude among the n coordinates that are no angles; 1 if all of them are zero. */
static inline kg_real kg_largest_length(int n, const int *angles, const kg_real *q) {
  kg_real largest = KG_C(0.0);
  for (int i = 0; i < n; ++i) {
    const kg_real size = angles && angles[i] ? KG_C(0.0) : KG_ABS(q[i]);
    largest = KG_MAX(largest, size);
  }
  return largest > KG_C(0.0) ? largest : KG_C(1.0);
}

/* Raises the sizes (m) of the components of w in dq = S w (S: n x m) to what of each gives the sizes of the coordinates;
 * 1 where there is none. */
static inline void kg_raise_sizes(int n, int m, const int *angles, const kg_real *q, const kg_real *S, kg_real *sizes) {
  const kg_real largest = kg_largest_length(n, angles, q);
  for (int j = 0; j < m; ++j) {
    kg_real sum = KG_C(0.0), square = KG_C(0.0);
    for (int i = 0; i < n; ++i) {
      const kg_real entry = KG_ABS(S[i * (ptrdiff_t)m + j]);
      sum += entry * kg_coordinate_size(angles, largest, q, i);
      square += entry * entry;
    }
    sum = square > KG_C(0.0) ? sum / square : KG_C(1.0);
    sizes[j] = KG_MAX(sizes[j], sum);
  }
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
