/* kg_convex.h - the nearest convex quadratic form, for Hessians that need not be positive semidefinite. */
#ifndef KG_CONVEX_H
#define KG_CONVEX_H

#include "kg_base.h"

#define KG_CONVEX_SWEEPS 8
#define KG_SEMIDEFINITE KG_C(1e-10)

/* Whether a symmetric matrix (KG_W x KG_W) is positive semidefinite, up to rounding relative to its diagonal. */
static inline int kg_is_convex(const kg_real *H) {
  kg_real L[KG_W * KG_W];
  for (int j = 0; j < KG_W; ++j) {
    const kg_real diagonal = H[j * KG_W + j] * (KG_C(1.0) + KG_SEMIDEFINITE);
    kg_real pivot = diagonal;
    for (int k = 0; k < j; ++k) {
      pivot -= L[j * KG_W + k] * L[j * KG_W + k];
    }
    if (!(pivot > KG_C(0.0)) && diagonal != KG_C(0.0)) {
      return 0;
    }
    for (int i = j + 1; i < KG_W; ++i) {
      kg_real sum = H[i * KG_W + j];
      if (diagonal == KG_C(0.0) && sum != KG_C(0.0)) {
        return 0;
      }
      for (int k = 0; k < j; ++k) {
        sum -= L[i * KG_W + k] * L[j * KG_W + k];
      }
      L[i * KG_W + j] = diagonal == KG_C(0.0) ? KG_C(0.0) : sum / KG_SQRT(pivot);
    }
  }
  return 1;
}

/* One rotation of Jacobi's method in the plane (i, j) of A, with its vectors V by columns. */
static inline void kg_rotate_plane(kg_real *A, kg_real *V, int i, int j) {
  const kg_real off = A[i * KG_W + j];
  if (off == KG_C(0.0)) {
    return;
  }
  const kg_real ratio = (A[j * KG_W + j] - A[i * KG_W + i]) / (KG_C(2.0) * off);
  const kg_real root = KG_ABS(ratio) + KG_SQRT(KG_C(1.0) + ratio * ratio);
  const kg_real tangent = (ratio < KG_C(0.0) ? KG_C(-1.0) : KG_C(1.0)) / root;
  const kg_real c = KG_C(1.0) / KG_SQRT(KG_C(1.0) + tangent * tangent), s = c * tangent;
  for (int k = 0; k < KG_W; ++k) {
    const kg_real x = A[k * KG_W + i], y = A[k * KG_W + j], v = V[k * KG_W + i], w = V[k * KG_W + j];
    A[k * KG_W + i] = c * x - s * y;
    A[k * KG_W + j] = s * x + c * y;
    V[k * KG_W + i] = c * v - s * w;
    V[k * KG_W + j] = s * v + c * w;
  }
  for (int k = 0; k < KG_W; ++k) {
    const kg_real x = A[i * KG_W + k], y = A[j * KG_W + k];
    A[i * KG_W + k] = c * x - s * y;
    A[j * KG_W + k] = s * x + c * y;
  }
}

/* The unit of each variable in which the diagonal of H has entries of 1. */
static inline void kg_units(const kg_real *H, kg_real *unit) {
  for (int i = 0; i < KG_W; ++i) {
    kg_real size = KG_ABS(H[i * KG_W + i]);
    for (int j = 0; j < KG_W && size == KG_C(0.0); ++j) {
      size = KG_ABS(H[i * KG_W + j]);
    }
    unit[i] = size > KG_C(0.0) ? KG_SQRT(size) : KG_C(1.0);
  }
}

/* Makes H convex: negative eigenvalues, in units in which its diagonal has entries of 1, become zero (Verschueren,
 * Zanon, Quirynen and Diehl 2017, "A sparsity preserving convexification procedure for indefinite quadratic programs
 * arising in direct optimal control"). */
static inline void kg_make_convex(kg_real *H) {
  kg_real A[KG_W * KG_W], V[KG_W * KG_W] = {KG_C(0.0)}, unit[KG_W];
  if (kg_is_convex(H)) {
    return;
  }
  kg_units(H, unit);
  for (int i = 0; i < KG_W; ++i) {
    V[i * KG_W + i] = KG_C(1.0);
    for (int j = 0; j < KG_W; ++j) {
      A[i * KG_W + j] = H[i * KG_W + j] / (unit[i] * unit[j]);
      H[i * KG_W + j] = KG_C(0.0);
    }
  }
  for (int sweep = 0; sweep < KG_CONVEX_SWEEPS; ++sweep) {
    for (int i = 0; i < KG_W; ++i) {
      for (int j = i + 1; j < KG_W; ++j) {
        kg_rotate_plane(A, V, i, j);
      }
    }
  }
  for (int k = 0; k < KG_W; ++k) {
    const kg_real value = KG_MAX(A[k * KG_W + k], KG_C(0.0));
    for (int i = 0; i < KG_W; ++i) {
      for (int j = 0; j < KG_W; ++j) {
        H[i * KG_W + j] += value * (V[i * KG_W + k] * unit[i]) * (V[j * KG_W + k] * unit[j]);
      }
    }
  }
}

#endif
