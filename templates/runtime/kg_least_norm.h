/* kg_least_norm.h - computes the solution of least norm of a few linear equations, in a symmetric metric.
 *
 * Rows can be dependent (redundant constraints): a row that depends on the rows before it is skipped, and its
 * remaining error is returned. Matrices are row-major.
 */
#ifndef KG_LEAST_NORM_H
#define KG_LEAST_NORM_H

#include "kg_vectors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A row depends on the rows before it if at most this fraction of it is orthogonal to them: half of the digits, since
 * the right side of such a row has a rounding error of the other half. */
#define KG_LEAST_NORM_RANK KG_BY_PRECISION(1.5e-8, 3.5e-4)
/* Rows with at most this fraction of their square orthogonal to the others use the rank-revealing method. */
#define KG_LEAST_NORM_REGULAR KG_BY_PRECISION(1e-6, 1e-3)
/* Pivots of a metric below this fraction of their own diagonal element count as zero, ... */
#define KG_METRIC_SINGULAR KG_BY_PRECISION(1e-10, 1e-5)
/* ... and become this fraction of the mean diagonal element: directions without mass change most easily. */
#define KG_METRIC_FLOOR KG_BY_PRECISION(1e-6, 1e-3)

/* Cholesky factor L of a metric in the lower triangle of `w` (n x n), which it replaces; the diagonal holds the
 * reciprocals, since it is only divided by. Massless directions get the
 * weight described above; without any mass the metric is that of the identity. */
static inline void kg_metric_factor(int n, kg_real *w) {
  kg_real trace = KG_C(0.0);
  for (int i = 0; i < n; ++i) {
    trace += w[i * n + i];
  }
  for (int j = 0; j < n; ++j) {
    kg_real *row = w + j * n;
    const kg_real diagonal = row[j];
    kg_real pivot = diagonal - kg_dot(j, row, row);
    if (!(pivot > KG_METRIC_SINGULAR * diagonal)) { /* massless */
      pivot = trace > KG_C(0.0) ? KG_METRIC_FLOOR * trace / (kg_real)n : KG_C(1.0);
    }
    row[j] = KG_C(1.0) / KG_SQRT(pivot);
    for (int i = j + 1; i < n; ++i) {
      kg_real *below = w + i * n;
      below[j] = (below[j] - kg_dot(j, below, row)) * row[j];
    }
  }
}

/* a <- L^-1 a for the factor L: the row of an equation in coordinates whose metric is the identity. */
static inline void kg_metric_lower(int n, const kg_real *factor, kg_real *a) {
  for (int i = 0; i < n; ++i) {
    a[i] = (a[i] - kg_dot(i, factor + i * n, a)) * factor[i * n + i];
  }
}

/* z <- L^-T z: back from those coordinates. */
static inline void kg_metric_upper(int n, const kg_real *factor, kg_real *z) {
  for (int i = n - 1; i >= 0; --i) {
    z[i] *= factor[i * n + i];
    kg_add(i, -z[i], factor + i * n, z);
  }
}

/* z = L^-T L^-1 row, written so that it unrolls where n is a constant; returns row . z. */
static inline kg_real kg_metric_solve(int n, const kg_real *factor, const kg_real *row, kg_real *z) {
  kg_real size = KG_C(0.0);
  for (int i = 0; i < n; ++i) {
    kg_real rest = row[i];
    for (int j = 0; j < i; ++j) {
      rest -= factor[i * n + j] * z[j];
    }
    z[i] = rest * factor[i * n + i];
    size += z[i] * z[i];
  }
  for (int i = n - 1; i >= 0; --i) {
    z[i] *= factor[i * n + i];
    for (int j = 0; j < i; ++j) {
      z[j] -= factor[i * n + j] * z[i];
    }
  }
  return size;
}

/* Returns the row of [first, last) with the largest fraction left; -1 if all depend on those in use. `sizes` are
 * the squared lengths of the rows as given, negative for those in use. */
static inline int kg_least_norm_pivot(int first, int last, int n, const kg_real *a, const kg_real *sizes) {
  kg_real largest = KG_LEAST_NORM_RANK * KG_LEAST_NORM_RANK;
  int best = -1;
  for (int i = first; i < last; ++i) {
    if (sizes[i] > KG_C(0.0)) {
      const kg_real *row = a + i * n;
      const kg_real fraction = kg_dot(n, row, row) / sizes[i];
      if (fraction > largest * KG_C(1.0001)) { /* rounding must not decide between equals */
        largest = fraction;
        best = i;
      }
    }
  }
  return best;
}

/* The same for one equation, without square roots. */
static inline int kg_least_norm_single(int n, const kg_real *a, kg_real b, kg_real *sizes, kg_real *z) {
  const kg_real size = kg_dot(n, a, a);
  const int used = size > KG_C(0.0);
  const kg_real factor = used ? b / size : KG_C(0.0);
  for (int i = 0; i < n; ++i) {
    z[i] = factor * a[i];
  }
  sizes[0] = used ? KG_C(-1.0) : KG_C(0.0);
  return used;
}

/* Sets b to zero for a row of which `length` is left, where its error allows: noise[0] + noise[1] / length. */
static inline void kg_least_norm_silence(const kg_real *noise, kg_real length, kg_real *b) {
  if (length > KG_C(0.0) && KG_ABS(*b) <= noise[0] + noise[1] / length) {
    *b = KG_C(0.0);
  }
}

/* The z of least norm with a z = b: `rows` equations in n unknowns, the first `leading` of which have precedence.
 * Gram-Schmidt with row pivoting, orthogonalized twice. Returns the rank. On return `sizes` is negative for the rows
 * in use, which are orthonormal, and b holds for every other row what it still lacks (zero for redundant equations
 * without contradiction). noise (2 rows), or NULL: the errors of b, kg_least_norm_silence(). */
static inline int kg_least_norm_basis(int leading, int rows, int n, kg_real *a, kg_real *b, const kg_real *noise,
                                      kg_real *sizes, kg_real *z) {
  int rank = 0;
  for (int i = 0; i < rows; ++i) {
    sizes[i] = kg_dot(n, a + i * n, a + i * n);
  }
  for (int i = 0; i < n; ++i) {
    z[i] = KG_C(0.0);
  }
  while (rank < n) {
    kg_real *row;
    kg_real shrink;
    int best = kg_least_norm_pivot(0, leading, n, a, sizes);
    if (best < 0) {
      best = kg_least_norm_pivot(leading, rows, n, a, sizes);
    }
    if (best < 0) {
      break;
    }
    row = a + best * n;
    for (int i = 0; i < rows; ++i) {
      if (sizes[i] < KG_C(0.0)) {
        const kg_real left = kg_dot(n, a + i * n, row);
        kg_add(n, -left, a + i * n, row);
        b[best] -= left * b[i];
      }
    }
    shrink = KG_C(1.0) / KG_SQRT(kg_dot(n, row, row));
    if (noise) {
      kg_least_norm_silence(noise + 2 * best, KG_C(1.0) / shrink, b + best);
    }
    for (int i = 0; i < n; ++i) {
      row[i] *= shrink;
    }
    b[best] *= shrink;
    sizes[best] = KG_C(-1.0);
    kg_add(n, b[best], row, z);
    for (int i = 0; i < rows; ++i) {
      if (sizes[i] >= KG_C(0.0)) {
        const kg_real part = kg_dot(n, a + i * n, row);
        kg_add(n, -part, row, a + i * n);
        b[i] -= part * b[best];
      }
    }
    ++rank;
  }
  for (int i = 0; noise && i < rows; ++i) {
    if (sizes[i] >= KG_C(0.0)) {
      /* A redundant row has the same remaining length as one about to become redundant, not zero. */
      const kg_real left = KG_SQRT(kg_dot(n, a + i * n, a + i * n));
      kg_least_norm_silence(noise + 2 * i, KG_MAX(left, KG_LEAST_NORM_RANK * KG_SQRT(sizes[i])), b + i);
    }
  }
  return rank;
}

/* The same; `a` is destroyed. */
static inline int kg_least_norm(int leading, int rows, int n, kg_real *a, kg_real *b, kg_real *sizes, kg_real *z) {
  return rows == 1 ? kg_least_norm_single(n, a, b[0], sizes, z)
                   : kg_least_norm_basis(leading, rows, n, a, b, NULL, sizes, z);
}

/* The same through the normal equations ``a a^T y = b``, z = a^T y: fast, for rows that are far from redundant.
 * Returns 0 if they are not, with z undefined; else b is destroyed. `gram` holds rows * rows values. */
static inline int kg_least_norm_regular(int rows, int n, const kg_real *a, kg_real *b, kg_real *gram, kg_real *z) {
  for (int i = 0; i < rows; ++i) {
    kg_real *row = gram + i * rows;
    kg_real size, pivot;
    for (int j = 0; j < i; ++j) {
      row[j] = (kg_dot(n, a + i * n, a + j * n) - kg_dot(j, row, gram + j * rows)) * gram[j * rows + j];
    }
    size = kg_dot(n, a + i * n, a + i * n);
    pivot = size - kg_dot(i, row, row);
    if (!(pivot > KG_LEAST_NORM_REGULAR * size)) {
      return 0;
    }
    row[i] = KG_C(1.0) / KG_SQRT(pivot);
  }
  kg_metric_lower(rows, gram, b);
  kg_metric_upper(rows, gram, b);
  for (int i = 0; i < n; ++i) {
    z[i] = KG_C(0.0);
  }
  for (int i = 0; i < rows; ++i) {
    kg_add(n, b[i], a + i * n, z);
  }
  return 1;
}

#ifdef __cplusplus
}
#endif

#endif
