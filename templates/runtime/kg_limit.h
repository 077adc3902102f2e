/* kg_limit.h - accelerations near positions where constraint rows become dependent.
 *
 * Where a singular value s of J Q^-1/2 goes to zero on the way (a four-bar in its flat position), the row w^T (J u' - b) of
 * that value, w its left vector, is 0 = 0 in the limit: the u' that the motion needs is that of the next derivative (de
 * l'Hospital). With d/dt (J u' - b) = G u' + h + J u'', where w^T J u'' = O(s), the row is replaced by
 * w^T (G u' + h) = 0 within a small distance. Errors of the state divided by s, which make runs turn off into another
 * branch of the motion, do not enter then: the speeds go on as they came.
 */
#ifndef KG_LIMIT_H
#define KG_LIMIT_H

#include "kg_generalized.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A row is replaced where its singular value is below this fraction of the largest one, and of its own change along a
 * unit of the coordinates (1 rad, 1 m). */
#define KG_LIMIT_DISTANCE KG_C(1e-3)
/* Rates of rows below this fraction of the largest tell nothing: the row is dependent all along the motion. */
#define KG_LIMIT_RATE KG_C(1e-6)

/* g (n) = the combination u (m) of the rows of G (m x n) */
static inline void kg_combined(int m, int n, const kg_real *u, const kg_real *G, kg_real *g) {
  kg_clear(n, g);
  for (int k = 0; k < m; ++k) {
    kg_add(n, u[k], G + k * (ptrdiff_t)n, g);
  }
}

static inline kg_real kg_largest_square(int m, int n, const kg_real *M) {
  kg_real largest = KG_C(0.0);
  for (int i = 0; i < m; ++i) {
    largest = KG_MAX(largest, kg_product(n, M + i * (ptrdiff_t)n, M + i * (ptrdiff_t)n));
  }
  return largest;
}

/* Takes the parts along the rows of M (orthogonal) whose squared length exceeds the limit out of g. */
static inline void kg_remove_rows(int m, int n, const kg_real *M, const kg_real *sizes, kg_real limit, kg_real *g) {
  for (int i = 0; i < m; ++i) {
    const kg_real *row = M + i * (ptrdiff_t)n;
    if (sizes[i] > limit) {
      kg_add(n, -kg_product(n, row, g) / sizes[i], row, g);
    }
  }
}

/* Sets the sizes of rows that are to be replaced to -1. */
static inline int kg_replaced_rows(int m, int n, const kg_real *M, const kg_real *U, const kg_real *G, kg_real speed,
                                   kg_real *sizes, kg_real *g) {
  const kg_real fraction = KG_LIMIT_DISTANCE * KG_LIMIT_DISTANCE;
  const kg_real limit = fraction * kg_largest_square(m, n, M);
  const kg_real least = KG_LIMIT_RATE * KG_LIMIT_RATE * kg_largest_square(m, n, G);
  int count = 0;
  for (int i = 0; i < m; ++i) {
    const kg_real *row = M + i * (ptrdiff_t)n;
    const kg_real size = kg_product(n, row, row);
    if (size < limit) {
      kg_real left;
      kg_combined(m, n, U + i * (ptrdiff_t)m, G, g);
      kg_remove_rows(m, n, M, sizes, limit, g);
      left = kg_product(n, g, g);
      if (left > least && size * speed * speed < fraction * left) {
        sizes[i] = KG_C(-1.0);
        ++count;
      }
    }
  }
  return count;
}

/* Moves y (n), which satisfies the rows in use, by the least change to where the replaced rows satisfy G y = -h. */
static inline void kg_meet_rates(int m, int n, const kg_real *M, const kg_real *U, const kg_real *G, const kg_real *h,
                                 const kg_real *sizes, kg_real *work, kg_real *y) {
  kg_real *rows = work, *rest = rows + m * (ptrdiff_t)n, *U2 = rest + m, *sizes2 = U2 + m * (ptrdiff_t)m;
  kg_real *x = sizes2 + m, *unused = x + n;
  int count = 0;
  for (int i = 0; i < m; ++i) {
    if (sizes[i] < KG_C(0.0)) {
      kg_real *row = rows + count * (ptrdiff_t)n;
      kg_combined(m, n, U + i * (ptrdiff_t)m, G, row);
      rest[count] = -kg_product(m, U + i * (ptrdiff_t)m, h) - kg_product(n, row, y);
      kg_remove_rows(m, n, M, sizes, KG_C(0.0), row);
      ++count;
    }
  }
  kg_pseudoinverse(count, n, rows, rest, U2, sizes2, x, unused);
  kg_add(n, KG_C(1.0), x, y);
}

/* kg_udwadia_kalaba() with G (n_c x n_u) and h (n_c) of d/dt (J u' - b) = G u' + h + J u''; u: the speeds. Rows that are
 * replaced have no multiplier; rank counts them all the same. Q, P, J, b, G are destroyed. */
#define KG_UDWADIA_KALABA_LIMIT_WORK(n_u, n_c) (2 * (n_u) + (n_c) * (2 * (n_c) + (n_u) + 4))
static inline int kg_udwadia_kalaba_limit(int n_u, int n_c, kg_real *Q, kg_real *P, kg_real *J, kg_real *b,
                                          const kg_real *u, kg_real *G, const kg_real *h, kg_real *work, kg_real *udot,
                                          kg_real *lambda, kg_real *rank) {
  kg_real *U = work, *sizes = U + n_c * (ptrdiff_t)n_c, *rest = sizes + n_c;
  kg_real speed = KG_C(0.0);
  int found, replaced;
  if (kg_root_factor(n_u, Q) != KG_OK) {
    return KG_SINGULAR;
  }
  kg_forward(n_u, Q, P);
  for (int i = 0; i < n_u; ++i) {
    speed = KG_MAX(speed, KG_ABS(u[i]));
  }
  for (int i = 0; i < n_c; ++i) {
    kg_forward(n_u, Q, J + i * (ptrdiff_t)n_u);
    kg_forward(n_u, Q, G + i * (ptrdiff_t)n_u);
    b[i] -= kg_product(n_u, J + i * (ptrdiff_t)n_u, P);
    for (int k = 0; k < n_c; ++k) {
      U[i * (ptrdiff_t)n_c + k] = i == k ? KG_C(1.0) : KG_C(0.0);
    }
  }
  kg_orthogonal_rows(n_c, n_u, J, n_c, U);
  found = kg_rank_of_rows(n_c, n_u, J, sizes);
  replaced = kg_replaced_rows(n_c, n_u, J, U, G, speed, sizes, rest);
  for (int i = 0; i < n_u; ++i) {
    udot[i] = P[i];
  }
  kg_clear(n_c, lambda);
  for (int i = 0; i < n_c; ++i) {
    if (sizes[i] > KG_C(0.0)) {
      const kg_real along = kg_product(n_c, U + i * (ptrdiff_t)n_c, b) / sizes[i];
      kg_add(n_u, along, J + i * (ptrdiff_t)n_u, udot);
      kg_add(n_c, along, U + i * (ptrdiff_t)n_c, lambda);
    }
  }
  if (replaced) {
    kg_meet_rates(n_c, n_u, J, U, G, h, sizes, rest, udot);
  }
  kg_backward(n_u, Q, udot);
  *rank = (kg_real)found;
  return found < n_c ? KG_RANK_DEFICIENT : KG_OK;
}

#ifdef __cplusplus
}
#endif

#endif
