/* kg_factored.h - one factorization of a small dense matrix for several solves, one after the other. */
#ifndef KG_FACTORED_H
#define KG_FACTORED_H

#include "kg_model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gaussian elimination with row pivoting of the n x n matrix a, in place: the multipliers below the diagonal, U on and
 * above it, the diagonal inverted. pivots: n row indices, stored as kg_real. Returns KG_OK or KG_SINGULAR. */
static inline int kg_factor(int n, kg_real *KG_RESTRICT a, kg_real *KG_RESTRICT pivots) {
  for (int k = 0; k < n; ++k) {
    kg_real *row = a + k * (ptrdiff_t)n;
    int pivot = k;
    for (int i = k + 1; i < n; ++i) {
      if (KG_ABS(a[i * (ptrdiff_t)n + k]) > KG_ABS(a[pivot * (ptrdiff_t)n + k])) {
        pivot = i;
      }
    }
    pivots[k] = (kg_real)pivot;
    if (pivot != k) {
      kg_real *other = a + pivot * (ptrdiff_t)n;
      for (int j = 0; j < n; ++j) {
        const kg_real value = row[j];
        row[j] = other[j];
        other[j] = value;
      }
    }
    if (!(KG_ABS(row[k]) > KG_C(0.0)) || !KG_ISFINITE(row[k])) {
      return KG_SINGULAR;
    }
    row[k] = KG_C(1.0) / row[k];
    for (int i = k + 1; i < n; ++i) {
      kg_real *other = a + i * (ptrdiff_t)n;
      const kg_real factor = other[k] * row[k];
      other[k] = factor;
      if (factor != KG_C(0.0)) {
        for (int j = k + 1; j < n; ++j) {
          other[j] -= factor * row[j];
        }
      }
    }
  }
  return KG_OK;
}

/* Solves a x = b with what kg_factor() made of a; b (n) becomes x. */
static inline void kg_substitute(int n, const kg_real *KG_RESTRICT a, const kg_real *KG_RESTRICT pivots,
                                 kg_real *KG_RESTRICT b) {
  for (int k = 0; k < n; ++k) {
    const int pivot = (int)pivots[k];
    const kg_real value = b[pivot];
    b[pivot] = b[k];
    b[k] = value;
  }
  for (int i = 1; i < n; ++i) {
    for (int j = 0; j < i; ++j) {
      b[i] -= a[i * (ptrdiff_t)n + j] * b[j];
    }
  }
  for (int i = n - 1; i >= 0; --i) {
    for (int j = i + 1; j < n; ++j) {
      b[i] -= a[i * (ptrdiff_t)n + j] * b[j];
    }
    b[i] *= a[i * (ptrdiff_t)n + i];
  }
}

#ifdef __cplusplus
}
#endif

#endif
