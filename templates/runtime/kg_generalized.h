/* kg_generalized.h - computes generalized inverses and symmetric roots, for constraints of any rank.
 *
 * Matrices are small and row-major, and the caller owns every array. Jacobi rotations are slower than elimination, but
 * they give the singular values, and with them the rank, to high relative accuracy.
 */
#ifndef KG_GENERALIZED_H
#define KG_GENERALIZED_H

#include "kg_vectors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Singular values below this fraction of the rows that they combine count as zero, whatever the units of each row.
 * Inside a step redundant rows are dependent only up to the error of the state: with 1e-12 a Bricard mechanism takes
 * four or more times as many steps, with 1e-7 a chain of four-bars changes its energy in the flat position. */
#define KG_SINGULAR_VALUE_TOLERANCE KG_BY_PRECISION(1e-9, 1e-4)

/* Products below this value are zero: their vectors are orthogonal, or have no length. */
#define KG_NO_PRODUCT KG_BY_PRECISION(1e-300, 1e-36)
/* Pivots below this fraction of their diagonal element are rounding. */
#define KG_ROOT_ROUNDING KG_BY_PRECISION(1e-14, 5e-6)

/* Largest number of sweeps of Jacobi rotations; convergence is quadratic, and mechanical systems need less than ten. */
#define KG_JACOBI_SWEEPS 30

/* Cosine and sine of the rotation that makes two vectors of squared lengths aa, bb and product ab orthogonal. */
static inline void kg_jacobi_rotation(kg_real aa, kg_real bb, kg_real ab, kg_real *c, kg_real *s) {
  const kg_real zeta = (bb - aa) / (KG_C(2.0) * ab);
  const kg_real root = KG_ABS(zeta) + KG_SQRT(KG_C(1.0) + zeta * zeta);
  const kg_real tangent = zeta < KG_C(0.0) ? -KG_C(1.0) / root : KG_C(1.0) / root;
  *c = KG_C(1.0) / KG_SQRT(KG_C(1.0) + tangent * tangent);
  *s = *c * tangent;
}

static inline void kg_rotate(int n, kg_real c, kg_real s, kg_real *a, kg_real *b) {
  for (int i = 0; i < n; ++i) {
    const kg_real x = a[i], y = b[i];
    a[i] = c * x - s * y;
    b[i] = s * x + c * y;
  }
}

/* The squared lengths of the rows of M (m x n). */
static inline void kg_squares(int m, int n, const kg_real *M, kg_real *squares) {
  for (int i = 0; i < m; ++i) {
    squares[i] = kg_dot(n, M + i * (ptrdiff_t)n, M + i * (ptrdiff_t)n);
  }
}

/* Rotates the rows of M (m x n) until they are orthogonal (Hestenes 1958); they are the combinations U (m x m) of the
 * rows as given. scales (m): on entry the squared sizes of those rows, on return their means weighted with the squares
 * in U: the size to which rounding errors of a combination are proportional. The first sweep leaves nothing out: beside a
 * row of 3e16 (the speed of a mass of 1e-33 kg) the rounding of a row is as much as its effect on that speed. */
static inline void kg_orthogonal_rows_of_sizes(int m, int n, kg_real *M, kg_real *U, kg_real *scales) {
  int rotated = 1;
  kg_identity(m, U);
  for (int sweep = 0; sweep < KG_JACOBI_SWEEPS && rotated; ++sweep) {
    rotated = 0;
    for (int i = 0; i < m - 1; ++i) {
      for (int j = i + 1; j < m; ++j) {
        kg_real *a = M + i * (ptrdiff_t)n, *b = M + j * (ptrdiff_t)n;
        const kg_real aa = kg_dot(n, a, a), bb = kg_dot(n, b, b), ab = kg_dot(n, a, b);
        const kg_real scale = scales[i], rounding = KG_BY_PRECISION(1e-16, 5e-8) * KG_SQRT(aa * bb);
        kg_real c, s;
        if ((sweep > 0 && !(KG_ABS(ab) > rounding)) || !(ab * ab >= KG_NO_PRODUCT)) {
          continue;
        }
        if (KG_ABS(ab) > rounding) {
          rotated = 1;
        }
        kg_jacobi_rotation(aa, bb, ab, &c, &s);
        kg_rotate(n, c, s, a, b);
        kg_rotate(m, c, s, U + i * (ptrdiff_t)m, U + j * (ptrdiff_t)m);
        scales[i] = c * c * scale + s * s * scales[j];
        scales[j] = s * s * scale + c * c * scales[j];
      }
    }
  }
}

/* kg_orthogonal_rows_of_sizes() for rows whose sizes are their lengths. */
static inline void kg_orthogonal_rows(int m, int n, kg_real *M, kg_real *U, kg_real *scales) {
  kg_squares(m, n, M, scales);
  kg_orthogonal_rows_of_sizes(m, n, M, U, scales);
}

/* Replaces the scales of the orthogonal rows of M (m x n) by their squared lengths, 0 for rows that count as zero.
 * Returns the rank. */
static inline int kg_rank_of_rows(int m, int n, const kg_real *M, kg_real *sizes) {
  const kg_real tolerance = KG_SINGULAR_VALUE_TOLERANCE * KG_SINGULAR_VALUE_TOLERANCE;
  int rank = 0;
  for (int i = 0; i < m; ++i) {
    const kg_real size = kg_dot(n, M + i * (ptrdiff_t)n, M + i * (ptrdiff_t)n);
    if (size > tolerance * sizes[i]) {
      sizes[i] = size;
      ++rank;
    } else {
      sizes[i] = KG_C(0.0);
    }
  }
  return rank;
}

/* x (n) = M^+ z (m) and the multipliers y (m) = (M^T)^+ x, both of least norm; returns the rank of M (m x n).
 * On return the rows of M are orthogonal and sizes (m) their squared lengths, 0 beyond the rank. U: m x m, scratch. */
static inline int kg_pseudoinverse(int m, int n, kg_real *M, const kg_real *z, kg_real *U, kg_real *sizes, kg_real *x,
                                   kg_real *y) {
  int rank;
  kg_orthogonal_rows(m, n, M, U, sizes);
  rank = kg_rank_of_rows(m, n, M, sizes);
  kg_clear(n, x);
  kg_clear(m, y);
  for (int i = 0; i < m; ++i) {
    const kg_real *row = M + i * (ptrdiff_t)n, *u = U + i * (ptrdiff_t)m;
    if (sizes[i] > KG_C(0.0)) {
      const kg_real along = kg_dot(m, u, z) / sizes[i];
      kg_add(n, along, row, x);
      kg_add(m, along, u, y);
    }
  }
  return rank;
}

/* y (n) = M^+ M x for the orthogonal rows of M and their sizes from kg_pseudoinverse(). */
static inline void kg_project_rows(int m, int n, const kg_real *M, const kg_real *sizes, const kg_real *x, kg_real *y) {
  kg_clear(n, y);
  for (int i = 0; i < m; ++i) {
    const kg_real *row = M + i * (ptrdiff_t)n;
    if (sizes[i] > KG_C(0.0)) {
      kg_add(n, kg_dot(n, row, x) / sizes[i], row, y);
    }
  }
}

/* Q = L L^T in the lower triangle. KG_SINGULAR where Q is not positive definite. */
static inline int kg_root_factor(int n, kg_real *Q) {
  for (int i = 0; i < n; ++i) {
    const kg_real diagonal = Q[i * (ptrdiff_t)n + i];
    for (int j = 0; j <= i; ++j) {
      kg_real rest = Q[i * (ptrdiff_t)n + j] - kg_dot(j, Q + i * (ptrdiff_t)n, Q + j * (ptrdiff_t)n);
      if (i == j) {
        if (!(rest > KG_ROOT_ROUNDING * diagonal)) {
          return KG_SINGULAR;
        }
        Q[i * (ptrdiff_t)n + i] = KG_SQRT(rest);
      } else {
        Q[i * (ptrdiff_t)n + j] = rest / Q[j * (ptrdiff_t)n + j];
      }
    }
  }
  return KG_OK;
}

/* x <- L^-1 x */
static inline void kg_forward(int n, const kg_real *L, kg_real *x) {
  for (int i = 0; i < n; ++i) {
    x[i] = (x[i] - kg_dot(i, L + i * (ptrdiff_t)n, x)) / L[i * (ptrdiff_t)n + i];
  }
}

/* x <- L^-T x */
static inline void kg_backward(int n, const kg_real *L, kg_real *x) {
  for (int i = n - 1; i >= 0; --i) {
    x[i] /= L[i * (ptrdiff_t)n + i];
    for (int j = 0; j < i; ++j) {
      x[j] -= L[i * (ptrdiff_t)n + j] * x[i];
    }
  }
}

/* u' of Q u' = P + J^T lambda, J u' = b for constraints of any rank (Udwadia and Kalaba 1992): the accelerations
 * nearest to Q^-1 P among those with the smallest residual of the constraints. Q, P, J, b are destroyed; lambda (n_c)
 * has least norm; rank: one value. Returns KG_OK, KG_RANK_DEFICIENT (u' is valid nevertheless), or KG_SINGULAR. */
#define KG_UDWADIA_KALABA_WORK(n_u, n_c) ((n_u) + (n_c) * ((n_c) + 1))
static inline int kg_udwadia_kalaba(int n_u, int n_c, kg_real *Q, kg_real *P, kg_real *J, kg_real *b, kg_real *work,
                                    kg_real *udot, kg_real *lambda, kg_real *rank) {
  int found;
  if (kg_root_factor(n_u, Q) != KG_OK) {
    return KG_SINGULAR;
  }
  kg_forward(n_u, Q, P);
  for (int i = 0; i < n_c; ++i) {
    kg_forward(n_u, Q, J + i * (ptrdiff_t)n_u);
    b[i] -= kg_dot(n_u, J + i * (ptrdiff_t)n_u, P);
  }
  found = kg_pseudoinverse(n_c, n_u, J, b, work + n_u + n_c, work + n_u, work, lambda);
  for (int i = 0; i < n_u; ++i) {
    udot[i] = P[i] + work[i];
  }
  kg_backward(n_u, Q, udot);
  *rank = (kg_real)found;
  return found < n_c ? KG_RANK_DEFICIENT : KG_OK;
}

/* The same for m right sides: on entry X ((n_u + n_c) x m) holds P, then b, of each; on return its first n_u rows are
 * the accelerations. Q, J are destroyed. The derivatives of u' solve these equations at a
 * constant rank; returns KG_OK or KG_SINGULAR. */
#define KG_UDWADIA_KALABA_MANY_WORK(n_u, n_c) (2 * (n_u) + (n_c) * ((n_c) + 3))
static inline int kg_udwadia_kalaba_many(int n_u, int n_c, int m, kg_real *Q, kg_real *J, kg_real *X, kg_real *work) {
  kg_real *x = work, *held = x + n_u, *z = held + n_u, *sizes = z + n_c, *y = sizes + n_c, *U = y + n_c;
  if (kg_root_factor(n_u, Q) != KG_OK) {
    return KG_SINGULAR;
  }
  kg_clear(n_c, z);
  for (int i = 0; i < n_c; ++i) {
    kg_forward(n_u, Q, J + i * (ptrdiff_t)n_u);
  }
  (void)kg_pseudoinverse(n_c, n_u, J, z, U, sizes, held, y); /* the rows are orthogonal from here on */
  for (int k = 0; k < m; ++k) {
    for (int i = 0; i < n_u; ++i) {
      x[i] = X[i * (ptrdiff_t)m + k];
    }
    for (int i = 0; i < n_c; ++i) {
      z[i] = X[((ptrdiff_t)n_u + i) * m + k];
    }
    kg_forward(n_u, Q, x);
    for (int i = 0; i < n_c; ++i) {
      const kg_real *row = J + i * (ptrdiff_t)n_u;
      if (sizes[i] > KG_C(0.0)) {
        kg_add(n_u, (kg_dot(n_c, U + i * (ptrdiff_t)n_c, z) - kg_dot(n_u, row, x)) / sizes[i], row, x);
      }
    }
    kg_backward(n_u, Q, x);
    for (int i = 0; i < n_u; ++i) {
      X[i * (ptrdiff_t)m + k] = x[i];
    }
  }
  return KG_OK;
}

/* Eigenvalues d (n) and eigenvectors, the rows of W (n x n), of the symmetric matrix S (n x n, destroyed). */
static inline void kg_symmetric_eigen(int n, kg_real *S, kg_real *d, kg_real *W) {
  int rotated = 1;
  kg_identity(n, W);
  for (int sweep = 0; sweep < KG_JACOBI_SWEEPS && rotated; ++sweep) {
    rotated = 0;
    for (int i = 0; i < n - 1; ++i) {
      for (int j = i + 1; j < n; ++j) {
        const kg_real aa = S[i * (ptrdiff_t)n + i], bb = S[j * (ptrdiff_t)n + j], ab = S[i * (ptrdiff_t)n + j];
        kg_real c, s;
        if (!(KG_ABS(ab) > KG_BY_PRECISION(1e-17, 5e-9) * KG_SQRT(KG_ABS(aa * bb))) || ab * ab < KG_NO_PRODUCT) {
          continue;
        }
        rotated = 1;
        kg_jacobi_rotation(aa, bb, ab, &c, &s);
        kg_rotate(n, c, s, S + i * (ptrdiff_t)n, S + j * (ptrdiff_t)n);
        for (int k = 0; k < n; ++k) {
          kg_rotate(1, c, s, S + k * (ptrdiff_t)n + i, S + k * (ptrdiff_t)n + j);
        }
        kg_rotate(n, c, s, W + i * (ptrdiff_t)n, W + j * (ptrdiff_t)n);
      }
    }
  }
  for (int i = 0; i < n; ++i) {
    d[i] = S[i * (ptrdiff_t)n + i];
  }
}

/* y = W x, the components of x along the eigenvectors. */
static inline void kg_along(int n, const kg_real *W, const kg_real *x, kg_real *y) {
  for (int i = 0; i < n; ++i) {
    y[i] = kg_dot(n, W + i * (ptrdiff_t)n, x);
  }
}

/* y = W^T (x / s), or W^T x where s is NULL. */
static inline void kg_compose(int n, const kg_real *W, const kg_real *s, const kg_real *x, kg_real *y) {
  kg_clear(n, y);
  for (int i = 0; i < n; ++i) {
    kg_add(n, s != NULL ? x[i] / s[i] : x[i], W + i * (ptrdiff_t)n, y);
  }
}

/* xi = X v for the derivative X of the root along the eigenvectors: X_ij (s_i + s_j) = w_i Q' w_j. row: n, scratch. */
static inline void kg_root_derivative(int n, const kg_real *W, const kg_real *s, const kg_real *Qdot, const kg_real *v,
                                      kg_real *row, kg_real *xi) {
  for (int i = 0; i < n; ++i) {
    kg_along(n, Qdot, W + i * (ptrdiff_t)n, row);
    xi[i] = KG_C(0.0);
    for (int j = 0; j < n; ++j) {
      xi[i] += kg_dot(n, row, W + j * (ptrdiff_t)n) / (s[i] + s[j]) * v[j];
    }
  }
}

/* Accelerations near positions where constraint rows become dependent.
 *
 * If a singular value s of J Q^-1/2 goes to zero during the motion (a four-bar in its flat position), its row
 * w^T (J u' - b), w the left singular vector, is 0 = 0 in the limit: u' then follows from the next derivative of the
 * row (de l'Hospital). With d/dt (J u' - b) = G u' + h + J u'', where w^T J u'' = O(s), the row is replaced by
 * w^T (G u' + h) = 0 within a small distance. This avoids errors of the state divided by s, with which a run could
 * turn into another branch of the motion; the speeds are continuous.
 */

/* A row is replaced if its singular value, relative to the rows that it combines, is below this fraction and below this
 * fraction of its rate, relative to the rates of these rows. */
#define KG_LIMIT_DISTANCE KG_C(1e-3)
/* Rates of rows below this fraction of the largest count as zero: the row is dependent during the whole motion. */
#define KG_LIMIT_RATE KG_BY_PRECISION(1e-6, 1e-4)

/* g (n) = the combination u (m) of the rows of G (m x n) */
static inline void kg_combined(int m, int n, const kg_real *u, const kg_real *G, kg_real *g) {
  kg_clear(n, g);
  for (int k = 0; k < m; ++k) {
    kg_add(n, u[k], G + k * (ptrdiff_t)n, g);
  }
}

/* Squared length of a row below which it is nearly dependent on the others; the mean of the squared rates of the rows
 * that it combines, weighted in the same way as its scale. */
static inline kg_real kg_near_limit(kg_real scale) { return KG_LIMIT_DISTANCE * KG_LIMIT_DISTANCE * scale; }

static inline kg_real kg_mean_square(int m, int n, const kg_real *u, const kg_real *G) {
  kg_real mean = KG_C(0.0);
  for (int k = 0; k < m; ++k) {
    mean += u[k] * u[k] * kg_dot(n, G + k * (ptrdiff_t)n, G + k * (ptrdiff_t)n);
  }
  return mean;
}

/* Subtracts from g its parts along the orthogonal rows of M that are not nearly dependent; all rows in use where scales
 * is NULL. */
static inline void kg_remove_rows(int m, int n, const kg_real *M, const kg_real *sizes, const kg_real *scales,
                                  kg_real *g) {
  for (int i = 0; i < m; ++i) {
    const kg_real *row = M + i * (ptrdiff_t)n;
    if (sizes[i] > (scales != NULL ? kg_near_limit(scales[i]) : KG_C(0.0))) {
      kg_add(n, -kg_dot(n, row, g) / sizes[i], row, g);
    }
  }
}

/* The squared sizes of the rows of M (m x n): of a row that all but vanishes that of its terms, if the other rows are
 * longer. Units cancel. */
static inline void kg_row_scales(int m, int n, const kg_real *M, const kg_real *terms, kg_real *scales) {
  kg_real largest = KG_C(0.0);
  kg_squares(m, n, M, scales);
  for (int i = 0; i < m; ++i) {
    largest = KG_MAX(largest, scales[i]);
  }
  for (int i = 0; i < m; ++i) {
    if (scales[i] <= kg_near_limit(largest)) {
      scales[i] = KG_MAX(scales[i], KG_MIN(largest, terms[i]));
    }
  }
}

/* Sets the sizes of rows that are to be replaced to -1. */
static inline int kg_replaced_rows(int m, int n, const kg_real *M, const kg_real *U, const kg_real *G,
                                   const kg_real *scales, kg_real *sizes, kg_real *g) {
  const kg_real fraction = KG_LIMIT_DISTANCE * KG_LIMIT_DISTANCE, least = KG_LIMIT_RATE * KG_LIMIT_RATE;
  int count = 0;
  for (int i = 0; i < m; ++i) {
    const kg_real *row = M + i * (ptrdiff_t)n, *u = U + i * (ptrdiff_t)m;
    const kg_real size = kg_dot(n, row, row);
    if (size <= kg_near_limit(scales[i])) { /* 0 <= 0 for rows that vanish in all bits */
      const kg_real rates = kg_mean_square(m, n, u, G);
      kg_real left;
      kg_combined(m, n, u, G, g);
      kg_remove_rows(m, n, M, sizes, scales, g);
      left = kg_dot(n, g, g);
      if (left > least * rates && size <= fraction * scales[i] * (left / rates)) {
        sizes[i] = KG_C(-1.0);
        ++count;
      }
    }
  }
  return count;
}

/* Changes y (n), which satisfies the rows in use, as little as possible so that the replaced rows satisfy G y = -h.
 * Their parts orthogonal to the rows in use, made orthogonal to each other, take their places in M and sizes. */
static inline void kg_meet_rates(int m, int n, kg_real *M, const kg_real *U, const kg_real *G, const kg_real *h,
                                 kg_real *sizes, kg_real *work, kg_real *y) {
  kg_real *rows = work, *rest = rows + m * (ptrdiff_t)n, *U2 = rest + m, *sizes2 = U2 + m * (ptrdiff_t)m;
  kg_real *x = sizes2 + m, *unused = x + n;
  int count = 0;
  for (int i = 0; i < m; ++i) {
    if (sizes[i] < KG_C(0.0)) {
      kg_real *row = rows + count * (ptrdiff_t)n;
      kg_combined(m, n, U + i * (ptrdiff_t)m, G, row);
      rest[count] = -kg_dot(m, U + i * (ptrdiff_t)m, h) - kg_dot(n, row, y);
      kg_remove_rows(m, n, M, sizes, NULL, row);
      ++count;
    }
  }
  (void)kg_pseudoinverse(count, n, rows, rest, U2, sizes2, x, unused);
  kg_add(n, KG_C(1.0), x, y);
  for (int i = 0, k = 0; k < count; ++i) {
    if (sizes[i] < KG_C(0.0)) {
      kg_clear(n, M + i * (ptrdiff_t)n);
      kg_add(n, KG_C(1.0), rows + k * (ptrdiff_t)n, M + i * (ptrdiff_t)n);
      sizes[i] = sizes2[k];
      ++k;
    }
  }
}

/* Changes y (n), on entry without constraints, as little as possible so that M y = z (m), with nearly dependent rows
 * replaced by their rates G y = -h; terms (m): the squared sizes of the terms of the rows. Replaced rows have multiplier
 * 0 in lambda (m). Returns the rank of M. On return the rows of M are orthogonal, rates in the places of replaced ones; sizes (m): their squared lengths,
 * 0 for rows that do not count. z is destroyed. */
#define KG_NEAREST_WORK(m, n) ((n) + (m) * (2 * (m) + (n) + 3))
static inline int kg_nearest(int m, int n, kg_real *M, kg_real *z, const kg_real *terms, kg_real *G, const kg_real *h,
                             kg_real *work, kg_real *sizes, kg_real *y, kg_real *lambda) {
  kg_real *U = work, *rest = U + m * (ptrdiff_t)m;
  int rank, replaced;
  for (int i = 0; i < m; ++i) {
    z[i] -= kg_dot(n, M + i * (ptrdiff_t)n, y);
  }
  kg_row_scales(m, n, M, terms, sizes);
  kg_orthogonal_rows_of_sizes(m, n, M, U, sizes);
  for (int i = 0; i < m; ++i) {
    lambda[i] = sizes[i]; /* the scales of the rows */
  }
  rank = kg_rank_of_rows(m, n, M, sizes);
  replaced = kg_replaced_rows(m, n, M, U, G, lambda, sizes, rest);
  kg_clear(m, lambda);
  for (int i = 0; i < m; ++i) {
    if (sizes[i] > KG_C(0.0)) {
      const kg_real along = kg_dot(m, U + i * (ptrdiff_t)m, z) / sizes[i];
      kg_add(n, along, M + i * (ptrdiff_t)n, y);
      kg_add(m, along, U + i * (ptrdiff_t)m, lambda);
    }
  }
  if (replaced > 0) {
    kg_meet_rates(m, n, M, U, G, h, sizes, rest, y);
  }
  return rank;
}

/* kg_udwadia_kalaba() with G (n_c x n_u) and h (n_c) of d/dt (J u' - b) = G u' + h + J u''; terms (n_c): the sums of the
 * squared terms of the rows over the masses Q_ii. Rows that are replaced have no multiplier, but rank includes them.
 * Q, P, J, b, G are destroyed. */
#define KG_UDWADIA_KALABA_LIMIT_WORK(n_u, n_c) ((n_c) + KG_NEAREST_WORK(n_c, n_u))
static inline int kg_udwadia_kalaba_limit(int n_u, int n_c, kg_real *Q, kg_real *P, kg_real *J, kg_real *b,
                                          const kg_real *terms, kg_real *G, const kg_real *h, kg_real *work,
                                          kg_real *udot, kg_real *lambda, kg_real *rank) {
  int found;
  if (kg_root_factor(n_u, Q) != KG_OK) {
    return KG_SINGULAR;
  }
  kg_forward(n_u, Q, P);
  for (int i = 0; i < n_c; ++i) {
    kg_forward(n_u, Q, J + i * (ptrdiff_t)n_u);
    kg_forward(n_u, Q, G + i * (ptrdiff_t)n_u);
  }
  for (int i = 0; i < n_u; ++i) {
    udot[i] = P[i];
  }
  found = kg_nearest(n_c, n_u, J, b, terms, G, h, work + n_c, work, udot, lambda);
  kg_backward(n_u, Q, udot);
  *rank = (kg_real)found;
  return found < n_c ? KG_RANK_DEFICIENT : KG_OK;
}

/* The roots s (n) of the eigenvalues and the eigenvectors, rows of W (n x n), of Q (destroyed), or KG_SINGULAR. */
static inline int kg_root_eigen(int n, kg_real *Q, kg_real *s, kg_real *W) {
  for (int i = 0; i < n * n; ++i) {
    W[i] = Q[i];
  }
  if (kg_root_factor(n, W) != KG_OK) {
    return KG_SINGULAR; /* eigenvalues that are zero but for rounding can be positive */
  }
  kg_symmetric_eigen(n, Q, s, W);
  for (int i = 0; i < n; ++i) {
    if (!(s[i] > KG_C(0.0))) {
      return KG_SINGULAR;
    }
    s[i] = KG_SQRT(s[i]);
  }
  return KG_OK;
}

/* x <- W x / s: a row times the inverse root, along the eigenvectors. row: n, scratch. */
static inline void kg_over_root(int n, const kg_real *W, const kg_real *s, kg_real *row, kg_real *x) {
  kg_along(n, W, x, row);
  for (int i = 0; i < n; ++i) {
    x[i] = row[i] / s[i];
  }
}

/* The canonical form (Bajodah and Chen 2018, eqs. 40 and 44): the u' of kg_udwadia_kalaba_limit() in its
 * constraint-enforcing part, along the rows of J and the rates that replace them, and its momentum-balance part; then
 * those of w' with w = Q^1/2 u. All computations use the eigenvectors of Q, for which the root is diagonal.
 * Q, P, J, b, G are destroyed; parts: 4 x n_u. Returns KG_OK, KG_RANK_DEFICIENT or KG_SINGULAR. */
#define KG_CANONICAL_WORK(n_u, n_c) ((n_u) * ((n_u) + 5) + 2 * (n_c) + KG_NEAREST_WORK(n_c, n_u))
static inline int kg_canonical(int n_u, int n_c, kg_real *Q, const kg_real *Qdot, kg_real *P, kg_real *J, kg_real *b,
                               const kg_real *u, const kg_real *terms, kg_real *G, const kg_real *h, kg_real *work,
                               kg_real *parts) {
  kg_real *W = work, *s = W + n_u * (ptrdiff_t)n_u, *xi = s + n_u, *x = xi + n_u, *v = x + n_u, *row = v + n_u;
  kg_real *sizes = row + n_u, *lambda = sizes + n_c;
  int rank;
  if (kg_root_eigen(n_u, Q, s, W) != KG_OK) {
    return KG_SINGULAR;
  }
  kg_along(n_u, W, u, v);
  kg_root_derivative(n_u, W, s, Qdot, v, row, xi);
  kg_over_root(n_u, W, s, row, P);
  for (int k = 0; k < n_c; ++k) {
    kg_over_root(n_u, W, s, row, J + k * (ptrdiff_t)n_u);
    kg_over_root(n_u, W, s, row, G + k * (ptrdiff_t)n_u);
  }
  rank = kg_nearest(n_c, n_u, J, b, terms, G, h, lambda + n_c, sizes, P, lambda);
  kg_project_rows(n_c, n_u, J, sizes, P, x);
  kg_add(n_u, KG_C(-1.0), x, P);
  kg_compose(n_u, W, s, x, parts);
  kg_compose(n_u, W, s, P, parts + n_u);
  kg_project_rows(n_c, n_u, J, sizes, xi, v);
  for (int i = 0; i < n_u; ++i) {
    x[i] += v[i];
    P[i] += xi[i] - v[i];
  }
  kg_compose(n_u, W, NULL, x, parts + 2 * (ptrdiff_t)n_u);
  kg_compose(n_u, W, NULL, P, parts + 3 * (ptrdiff_t)n_u);
  return rank < n_c ? KG_RANK_DEFICIENT : KG_OK;
}

#ifdef __cplusplus
}
#endif

#endif
