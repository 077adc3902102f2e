/* kg_linalg.h - solves small dense linear systems for generated code: row-major, in place, without allocation.
 *
 * A function that can fail returns KG_SINGULAR, and its results are undefined then. A matrix counts as singular if it
 * is singular to working precision; the units of rows and columns do not affect this decision. Row and column indices
 * are stored as kg_real (exact integers), so that generated code needs one kind of scratch only.
 */
#ifndef KG_LINALG_H
#define KG_LINALG_H

#include "kg_vectors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A pivot below this fraction of its row or column is rounding error: that of the entries, which carry several
 * roundings of their own, grown by the elimination (a condition number of 1e13 for a few unknowns). */
#define KG_RANK_TOLERANCE(n) (KG_C(64.0) * (kg_real)(n) * KG_EPSILON)

/* Divides each row of a (n x m) and of b (n x k) by the largest magnitude in the row of a, so that rows in different
 * units (constraints, momentum balances) compete fairly for the pivot. */
static inline int kg_equilibrate(int n, int m, int k, kg_real *a, kg_real *b) {
  for (int i = 0; i < n; ++i) {
    const kg_real largest = kg_largest(m, a + i * (ptrdiff_t)m);
    if (!(largest > KG_C(0.0)) || !KG_ISFINITE(largest)) {
      return KG_SINGULAR;
    }
    /* The largest entries must be exactly 1 (hence no reciprocal), or rounding would choose between rows. */
    for (int j = 0; j < m; ++j) {
      a[i * (ptrdiff_t)m + j] /= largest;
    }
    for (int j = 0; j < k; ++j) {
      b[i * (ptrdiff_t)k + j] /= largest;
    }
  }
  return KG_OK;
}

/* The row of column k, from k on, with the largest entry; -1 where that is at most `least`, or `rounding` times the
 * largest entry above: the eliminated rows show the scale of the column, and a dependent column leaves rounding. */
static inline int kg_lu_pivot(int n, int k, const kg_real *a, kg_real least, kg_real rounding) {
  kg_real above = KG_C(0.0);
  kg_real largest = KG_C(0.0);
  int pivot = k;
  for (int i = 0; i < n; ++i) {
    const kg_real size = KG_ABS(a[i * (ptrdiff_t)n + k]);
    if (i < k) {
      above = KG_MAX(above, size);
    } else if (size > largest) {
      largest = size;
      pivot = i;
    } else {
      /* not the largest */
    }
  }
  return largest > least && largest > rounding * above && KG_ISFINITE(largest) ? pivot : -1;
}

/* Gaussian elimination with row pivoting of a (n x n), in place: the multipliers below the diagonal, U on and above it,
 * the diagonal inverted. The same operations are applied to the m right-hand sides b (n x m). pivots: n row indices, or
 * NULL if they are not needed for kg_lu_solve_factored(). `least`, `rounding`: see kg_lu_pivot(). Returns KG_OK or
 * KG_SINGULAR. */
static inline int kg_lu_factor(int n, int m, kg_real *a, kg_real *b, kg_real least, kg_real rounding, kg_real *pivots) {
  for (int k = 0; k < n; ++k) {
    const int pivot = kg_lu_pivot(n, k, a, least, rounding);
    kg_real *row = a + k * (ptrdiff_t)n;
    if (pivot < 0) {
      return KG_SINGULAR;
    }
    if (pivot != k) {
      kg_swap(n, row, a + pivot * (ptrdiff_t)n);
      kg_swap(m, b + k * (ptrdiff_t)m, b + pivot * (ptrdiff_t)m);
    }
    if (pivots != NULL) {
      pivots[k] = (kg_real)pivot;
    }
    row[k] = KG_C(1.0) / row[k];
    for (int i = k + 1; i < n; ++i) {
      kg_real *other = a + i * (ptrdiff_t)n;
      const kg_real factor = other[k] * row[k];
      other[k] = factor;
      if (factor != KG_C(0.0)) {
        kg_add(n - k - 1, -factor, row + k + 1, other + k + 1);
        kg_add(m, -factor, b + k * (ptrdiff_t)m, b + i * (ptrdiff_t)m);
      }
    }
  }
  return KG_OK;
}

/* The solutions of U x = b, U from kg_lu_factor(); b: n x m, becomes x. */
static inline void kg_lu_back(int n, int m, const kg_real *a, kg_real *b) {
  for (int k = n - 1; k >= 0; --k) {
    const kg_real *row = a + k * (ptrdiff_t)n;
    kg_real *x = b + k * (ptrdiff_t)m;
    for (int j = k + 1; j < n; ++j) {
      kg_add(m, -row[j], b + j * (ptrdiff_t)m, x);
    }
    kg_scale(m, row[k], x);
  }
}

/* Solves a x = b with the factors and pivots from kg_lu_factor(); b: n values, becomes x. */
static inline void kg_lu_solve_factored(int n, const kg_real *a, const kg_real *pivots, kg_real *b) {
  for (int k = 0; k < n; ++k) {
    const int pivot = (int)pivots[k];
    const kg_real value = b[pivot];
    b[pivot] = b[k];
    b[k] = value;
  }
  for (int i = 1; i < n; ++i) {
    b[i] -= kg_dot(i, a + i * (ptrdiff_t)n, b);
  }
  kg_lu_back(n, 1, a, b);
}

/* Solves a x = b for m right-hand sides by Gaussian elimination with scaled row pivoting. a: n x n, destroyed;
 * b: n x m, becomes x. */
static inline int kg_lu_solve_many(int n, int m, kg_real *a, kg_real *b) {
  if (kg_equilibrate(n, n, m, a, b) != KG_OK ||
      kg_lu_factor(n, m, a, b, KG_C(0.0), KG_RANK_TOLERANCE(n), NULL) != KG_OK) {
    return KG_SINGULAR;
  }
  kg_lu_back(n, m, a, b);
  return KG_OK;
}

/* Solves a x = b. a: n x n, destroyed; b: n values, becomes x. */
static inline int kg_lu_solve(int n, kg_real *a, kg_real *b) { return kg_lu_solve_many(n, 1, a, b); }

/* Factors the symmetric positive definite a (n x n, lower triangle read and overwritten) as L D L^T: unit L below the
 * diagonal, the inverse of D on it. */
static inline int kg_cholesky_factor(int n, kg_real *a) {
  for (int i = 0; i < n; ++i) {
    kg_real *row = a + i * (ptrdiff_t)n;
    const kg_real original = row[i];
    kg_real pivot = original;
    for (int j = 0; j < i; ++j) {
      const kg_real *other = a + j * (ptrdiff_t)n;
      kg_real sum = row[j];
      for (int k = 0; k < j; ++k) {
        sum -= row[k] * other[k]; /* row[k] still holds L_ik D_k */
      }
      row[j] = sum;
    }
    for (int j = 0; j < i; ++j) {
      const kg_real scaled = row[j];
      row[j] = scaled * a[j * (ptrdiff_t)n + j];
      pivot -= row[j] * scaled;
    }
    if (!(pivot > KG_RANK_TOLERANCE(n) * original) || !KG_ISFINITE(pivot)) {
      return KG_SINGULAR;
    }
    row[i] = KG_C(1.0) / pivot;
  }
  return KG_OK;
}

/* Solves L D L^T x = b after kg_cholesky_factor(). b: n x m, becomes x. */
static inline void kg_cholesky_substitute(int n, int m, const kg_real *a, kg_real *b) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) {
      kg_add(m, -a[i * (ptrdiff_t)n + j], b + j * (ptrdiff_t)m, b + i * (ptrdiff_t)m);
    }
  }
  for (int i = 0; i < n; ++i) {
    kg_scale(m, a[i * (ptrdiff_t)n + i], b + i * (ptrdiff_t)m);
  }
  for (int i = n - 1; i > 0; --i) {
    for (int j = 0; j < i; ++j) {
      kg_add(m, -a[i * (ptrdiff_t)n + j], b + i * (ptrdiff_t)m, b + j * (ptrdiff_t)m);
    }
  }
}

/* Solves a x = b for m right-hand sides, a symmetric positive definite. a: n x n, lower triangle read, destroyed;
 * b: n x m, becomes x. KG_SINGULAR when a is not positive definite. */
static inline int kg_cholesky_solve_many(int n, int m, kg_real *a, kg_real *b) {
  if (kg_cholesky_factor(n, a) != KG_OK) {
    return KG_SINGULAR;
  }
  kg_cholesky_substitute(n, m, a, b);
  return KG_OK;
}

/* Solves a x = b, a symmetric positive definite: a: n x n, lower triangle read, destroyed; b: n values, becomes x.
 * KG_SINGULAR when a is not positive definite. */
static inline int kg_cholesky_solve(int n, kg_real *a, kg_real *b) {
  if (kg_cholesky_factor(n, a) != KG_OK) {
    return KG_SINGULAR;
  }
  for (int i = 1; i < n; ++i) {
    kg_real sum = b[i];
    for (int j = 0; j < i; ++j) {
      sum -= a[i * (ptrdiff_t)n + j] * b[j];
    }
    b[i] = sum;
  }
  for (int i = 0; i < n; ++i) {
    b[i] *= a[i * (ptrdiff_t)n + i];
  }
  for (int i = n - 1; i > 0; --i) {
    kg_add(i, -b[i], a + i * (ptrdiff_t)n, b);
  }
  return KG_OK;
}

/* Gauss-Jordan elimination of J u' = b (J: n_c x n_u, b: n_c x m) with complete pivoting after scaling the rows.
 * Columns are swapped in J, and with them the indices in order (n_u values): the first n_c of them are the dependent
 * speeds D, the others the independent ones I. On return J = [identity, J_D^-1 J_I] and b = J_D^-1 b. KG_SINGULAR if
 * the rows of J are dependent. */
KG_COLD
static inline int kg_eliminate(int n_u, int n_c, int m, kg_real *J, kg_real *b, kg_real *order) {
  for (int j = 0; j < n_u; ++j) {
    order[j] = (kg_real)j;
  }
  if (n_c > n_u || kg_equilibrate(n_c, n_u, m, J, b) != KG_OK) {
    return KG_SINGULAR;
  }
  for (int k = 0; k < n_c; ++k) {
    kg_real *row = J + k * (ptrdiff_t)n_u;
    kg_real largest = KG_C(0.0);
    int pivot_row = k, pivot_column = k;
    for (int i = k; i < n_c; ++i) {
      for (int j = k; j < n_u; ++j) {
        const kg_real size = KG_ABS(J[i * (ptrdiff_t)n_u + j]);
        if (size > largest) {
          largest = size;
          pivot_row = i;
          pivot_column = j;
        }
      }
    }
    if (!(largest > KG_RANK_TOLERANCE(n_u))) {
      return KG_SINGULAR;
    }
    if (pivot_row != k) {
      kg_swap(n_u, row, J + pivot_row * (ptrdiff_t)n_u);
      kg_swap(m, b + k * (ptrdiff_t)m, b + pivot_row * (ptrdiff_t)m);
    }
    if (pivot_column != k) {
      for (int i = 0; i < n_c; ++i) {
        kg_swap(1, J + i * (ptrdiff_t)n_u + k, J + i * (ptrdiff_t)n_u + pivot_column);
      }
      kg_swap(1, order + k, order + pivot_column);
    }
    kg_scale(m, KG_C(1.0) / row[k], b + k * (ptrdiff_t)m);
    kg_scale(n_u - k - 1, KG_C(1.0) / row[k], row + k + 1);
    row[k] = KG_C(1.0);
    for (int i = 0; i < n_c; ++i) {
      if (i != k) {
        kg_real *other = J + i * (ptrdiff_t)n_u;
        kg_add(m, -other[k], b + k * (ptrdiff_t)m, b + i * (ptrdiff_t)m);
        kg_add(n_u - k - 1, -other[k], row + k + 1, other + k + 1);
        other[k] = KG_C(0.0);
      }
    }
  }
  return KG_OK;
}

/* Sorts n values in ascending order; n is small. */
static inline void kg_sort(int n, kg_real *x) {
  for (int i = 1; i < n; ++i) {
    for (int j = i; j > 0 && x[j - 1] > x[j]; --j) {
      kg_swap(1, x + j - 1, x + j);
    }
  }
}

/* Chooses n_c dependent speeds whose columns of J (n_c x n_u, destroyed) are well conditioned. order (n_u values)
 * becomes the indices of the dependent speeds, ascending, then of the independent ones,
 * ascending. KG_SINGULAR if the rows of J are dependent. */
static inline int kg_partition(int n_u, int n_c, kg_real *J, kg_real *order) {
  if (kg_eliminate(n_u, n_c, 0, J, J, order) != KG_OK) {
    return KG_SINGULAR;
  }
  kg_sort(n_c, order);
  kg_sort(n_u - n_c, order + n_c);
  return KG_OK;
}

/* Length of work of kg_multipliers(). */
#define KG_MULTIPLIERS_WORK(n_u, n_c) ((n_u) + (n_c) * (n_c))

/* The multipliers lambda (n_c) with J^T lambda = force (n_u), from the speeds on which J is best conditioned.
 * J: n_c x n_u, destroyed; work: KG_MULTIPLIERS_WORK() values. KG_SINGULAR if the rows of J are dependent. */
KG_COLD
static inline int kg_multipliers(int n_u, int n_c, kg_real *J, const kg_real *force, kg_real *work, kg_real *lambda) {
  kg_real *order = work;
  kg_real *inverse = work + n_u;
  kg_identity(n_c, inverse);
  if (kg_eliminate(n_u, n_c, n_c, J, inverse, order) != KG_OK) {
    return KG_SINGULAR;
  }
  for (int k = 0; k < n_c; ++k) {
    kg_real sum = KG_C(0.0);
    for (int i = 0; i < n_c; ++i) {
      sum += inverse[i * (ptrdiff_t)n_c + k] * force[(int)order[i]];
    }
    lambda[k] = sum;
  }
  return KG_OK;
}

/* Length of work of kg_constrained_solve(). */
#define KG_CONSTRAINED_WORK(n_u, n_c) \
  (2 * (n_u) + (n_u) * ((n_u) - (n_c)) + ((n_u) - (n_c)) * ((n_u) - (n_c)) + ((n_u) - (n_c)))

/* The constrained equations reduced to the independent speeds: reduced = A2 Q A2^T (n_i x n_i) and
 * right = A2 (P - Q [0; B]) (n_i), with [I, -A] in J and B in b from kg_eliminate(). G: n_u x n_i, f: n_u, scratch. */
KG_COLD
static inline void kg_reduce(int n_u, int n_c, const kg_real *Q, const kg_real *P, const kg_real *J, const kg_real *b,
                             const kg_real *order, kg_real *G, kg_real *f, kg_real *reduced, kg_real *right) {
  const int n_i = n_u - n_c;
  for (int r = 0; r < n_u; ++r) {
    /* G = Q A2^T and f = P - Q [0; B], rows in pivot order. */
    const kg_real *Qr = Q + (int)order[r] * (ptrdiff_t)n_u;
    kg_real *Gr = G + r * (ptrdiff_t)n_i;
    f[r] = P[(int)order[r]];
    for (int j = 0; j < n_i; ++j) {
      Gr[j] = Qr[(int)order[n_c + j]];
    }
    for (int d = 0; d < n_c; ++d) {
      const kg_real Qrd = Qr[(int)order[d]];
      f[r] -= Qrd * b[d];
      kg_add(n_i, -Qrd, J + d * (ptrdiff_t)n_u + n_c, Gr);
    }
  }
  for (int i = 0; i < n_i; ++i) {
    right[i] = f[n_c + i];
    for (int j = 0; j < n_i; ++j) {
      reduced[i * (ptrdiff_t)n_i + j] = G[((ptrdiff_t)n_c + i) * n_i + j];
    }
    for (int d = 0; d < n_c; ++d) {
      const kg_real negative_A = J[d * (ptrdiff_t)n_u + n_c + i];
      right[i] -= negative_A * f[d];
      kg_add(n_i, -negative_A, G + d * (ptrdiff_t)n_i, reduced + i * (ptrdiff_t)n_i);
    }
  }
}

/* kg_constrained_solve() with `solve` for the equations of the independent speeds. */
KG_COLD
static inline int kg_constrained_solve_by(int (*solve)(int, kg_real *, kg_real *), int n_u, int n_c, const kg_real *Q,
                                          const kg_real *P, kg_real *J, kg_real *b, kg_real *work, kg_real *udot) {
  const int n_i = n_u - n_c;
  kg_real *order = work;
  kg_real *f = order + n_u;
  kg_real *G, *reduced, *right;
  if (kg_eliminate(n_u, n_c, 1, J, b, order) != KG_OK) {
    return KG_SINGULAR;
  }
  G = f + n_u;
  reduced = G + n_u * (ptrdiff_t)n_i;
  right = reduced + n_i * (ptrdiff_t)n_i;
  kg_reduce(n_u, n_c, Q, P, J, b, order, G, f, reduced, right);
  if (solve(n_i, reduced, right) != KG_OK) {
    return KG_SINGULAR;
  }
  for (int i = 0; i < n_i; ++i) {
    udot[(int)order[n_c + i]] = right[i];
  }
  for (int d = 0; d < n_c; ++d) {
    kg_real sum = b[d];
    for (int i = 0; i < n_i; ++i) {
      sum -= J[d * (ptrdiff_t)n_u + n_c + i] * right[i];
    }
    udot[(int)order[d]] = sum;
  }
  return KG_REPARTITIONED;
}

/* Solves Q u' = P + J^T lambda, J u' = b with dependent speeds chosen here: the fallback if the model's own partition
 * is singular. Q: n_u x n_u, symmetric; P: n_u; J: n_c x n_u and b: n_c, both destroyed; udot: n_u.
 * work: KG_CONSTRAINED_WORK() values, its first n_u become the indices of the dependent, then of the independent
 * speeds, in the order of the pivots.
 * Returns KG_REPARTITIONED, or KG_SINGULAR if the rows of J are dependent or A2 Q A2^T is not positive definite. */
KG_COLD
static inline int kg_constrained_solve(int n_u, int n_c, const kg_real *Q, const kg_real *P, kg_real *J, kg_real *b,
                                       kg_real *work, kg_real *udot) {
  return kg_constrained_solve_by(kg_cholesky_solve, n_u, n_c, Q, P, J, b, work, udot);
}

/* The same for any Q, by LU with row pivoting: KG_SINGULAR only if the rows of J are dependent or A2 Q A2^T has no
 * inverse. */
KG_COLD
static inline int kg_constrained_solve_lu(int n_u, int n_c, const kg_real *Q, const kg_real *P, kg_real *J, kg_real *b,
                                          kg_real *work, kg_real *udot) {
  return kg_constrained_solve_by(kg_lu_solve, n_u, n_c, Q, P, J, b, work, udot);
}

#ifdef __cplusplus
}
#endif

#endif
