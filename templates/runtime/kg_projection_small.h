/* kg_projection_small.h - corrections of a projection for a few constraints on a few speeds.
 *
 * The corrections of kg_level_correction() through the inverse of Q, in code that is inlined with constant sizes, so
 * that its loops unroll: two fifths of the time. Rows that are nearly dependent, and masses that are nearly
 * singular, are left to the general code.
 */
#ifndef KG_PROJECTION_SMALL_H
#define KG_PROJECTION_SMALL_H

#include "kg_consistent.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KG_PROJECTION_ITERATIONS 10
/* After a correction of this relative size the next one, its square, is below the rounding of the state. */
#define KG_PROJECTION_LAST KG_BY_PRECISION(1e-8, 2e-4)
/* Share of the entries of a row times the sizes of the coordinates that counts as its terms: x^2 has the entry 2 x. */
#define KG_PROJECTION_SLOPE KG_C(0.5)
/* Corrections reduce residuals to less than this fraction of their terms, unless only rounding errors are left. */
#define KG_PROJECTION_USEFUL KG_C(0.25)
/* Largest numbers of speeds and of rows. */
#define KG_SMALL_SPEEDS 6
#define KG_SMALL_ROWS 3
/* The inverse of Q serves this number of further projections. Then Q is evaluated, and inverted if it has changed by
 * more than KG_SMALL_CHANGE, relative to its diagonal. In a metric that differs from Q by the fraction e, a correction
 * satisfies the rows as well and is longer than the shortest one by the fraction e^2 / 2: a change of 20 % makes it 2
 * % longer. */
#define KG_SMALL_FURTHER 3
#define KG_SMALL_CHANGE KG_C(0.05)
/* Corrections of the code for small sizes; where residuals have larger rounding errors the general code takes over. */
#define KG_SMALL_ITERATIONS 4

/* Sizes of the components of a correction. A residual, or a correction, is compared with the terms of its row: the sum
 * of the magnitudes of the entries times these sizes. So no unit matters, and none of the components need to have the
 * unit of another one. */
static inline const kg_real *kg_projection_sizes(const kg_level *l) { return l->positions ? l->w.reach : l->w.pace; }

/* The sizes of the corrections of q from S: of a column of S, what of it gives the sizes of the coordinates, that of an
 * angle at least 1. A coordinate that passes zero costs a correction that may not be needed. */
static inline void kg_projection_reach(kg_level *l) {
  const int n_q = l->manifold->n_q, m = kg_manifold_displacements(l->manifold);
  for (int j = 0; j < m; ++j) {
    kg_real sum = KG_C(0.0), square = KG_C(0.0);
    for (int i = 0; i < n_q; ++i) {
      const kg_real entry = l->w.S[i * m + j];
      sum += KG_ABS(entry) * kg_coordinate_size(l->manifold->angles, KG_ABS(l->q[i]), l->q, i);
      square += entry * entry;
    }
    l->w.reach[j] = square > KG_C(0.0) ? sum / square : KG_C(0.0);
  }
  l->sized = 1;
}

/* Writes the sizes; S is evaluated for them where no projection has done so. Returns the status of the function. */
static inline int kg_projection_measure(kg_level *l) {
  int status = KG_OK;
  if (!l->positions) {
    for (int j = 0; j < l->m; ++j) {
      l->w.pace[j] = KG_ABS(l->u[j]);
    }
  } else if (!l->sized) {
    status = kg_level_call(l, l->manifold->displacements, l->w.S);
    kg_projection_reach(l);
  }
  return status;
}

/* Whether a residual of the rows exceeds the tolerance, relative to its terms. */
static inline int kg_projection_exceeds(const kg_level *l, kg_real tolerance) {
  int exceeds = 0;
  for (int i = 0; i < l->rows; ++i) {
    const kg_real limit = KG_PROJECTION_SLOPE * tolerance * kg_level_terms(l, i, kg_projection_sizes(l));
    exceeds = exceeds || !(KG_ABS(kg_level_residual(l, i)) <= limit);
  }
  return exceeds;
}

/* Whether the correction w.z is the last one: positions by the terms of every row, since the next correction is its
 * square. The rows of the speeds are linear as a rule; others are so nearly, if all speeds hardly change. */
static inline int kg_projection_last(const kg_level *l) {
  int last = l->positions || kg_largest(l->n, l->w.z) <= KG_PROJECTION_LAST * kg_largest(l->n, l->x);
  for (int i = 0; l->positions && i < l->rows; ++i) {
    const kg_real limit = KG_PROJECTION_LAST * kg_level_terms(l, i, l->w.reach);
    last = last && kg_level_terms(l, i, l->w.z) <= limit;
  }
  return last;
}

/* Whether the level has such sizes; its corrections have as many components as there are speeds. */
static inline int kg_small_fits(const kg_level *l) {
  const int n = l->manifold->n_u;
  return l->m == n && n >= 2 && n <= KG_SMALL_SPEEDS && l->rows >= 1 && l->rows <= KG_SMALL_ROWS && l->rows < n;
}

/* The inverse of Q by elimination without pivoting. Returns 0 where Q is nearly singular. */
KG_INLINED int kg_small_inverse(int n, const kg_real *Q, kg_real *inverse) {
  kg_real a[KG_SMALL_SPEEDS * KG_SMALL_SPEEDS]; /* in registers, which calls of memcpy would prevent */
  int regular = 1;
  for (int i = 0; i < n * n; ++i) {
    a[i] = Q[i];
  }
  for (int k = 0; k < n; ++k) {
    const kg_real shrink = KG_C(1.0) / a[k * n + k];
    regular &= a[k * n + k] > KG_METRIC_SINGULAR * Q[k * n + k];
    a[k * n + k] = KG_C(1.0);
    for (int j = 0; j < n; ++j) {
      a[k * n + j] *= shrink;
    }
    for (int i = 0; i < n; ++i) {
      if (i != k) {
        const kg_real factor = a[i * n + k];
        a[i * n + k] = KG_C(0.0);
        for (int j = 0; j < n; ++j) {
          a[i * n + j] -= factor * a[k * n + j];
        }
      }
    }
  }
  for (int i = 0; i < n * n; ++i) {
    inverse[i] = a[i];
  }
  return regular;
}

/* Evaluates Q, and inverts it if it has changed by more than KG_SMALL_CHANGE. Returns KG_OK, KG_SINGULAR, or the
 * negative status of the function. */
KG_INLINED int kg_small_metric(int n, const kg_level *l) {
  const kg_real *KG_RESTRICT Q = l->w.Q;
  kg_real *KG_RESTRICT known = l->w.factored;
  const int status = kg_level_call(l, l->manifold->mass, l->w.Q);
  int changed = 0;
  for (int j = 0; j < n; ++j) {
    for (int k = 0; k < n; ++k) {
      if (k <= j) {
        const kg_real change = Q[j * n + k] - known[j * n + k];
        changed |= !(change * change <= KG_SMALL_CHANGE * KG_SMALL_CHANGE * (known[j * n + j] * known[k * n + k]));
      }
    }
  }
  if (changed) {
    memcpy(known, Q, (size_t)(n * n) * sizeof *Q);
    if (!kg_small_inverse(n, Q, l->w.factor)) {
      known[0] = (kg_real)NAN;
      return status < 0 ? status : KG_SINGULAR;
    }
  }
  return status;
}

/* Replaces the symmetric g by its inverse. Returns 0 where rows of which g holds the products are nearly dependent. */
KG_INLINED int kg_small_invert(int rows, kg_real *g) {
  if (rows == 1) {
    const kg_real square = g[0];
    g[0] = KG_C(1.0) / square;
    return square > KG_C(0.0);
  }
  if (rows == 2) {
    const kg_real all = g[0] * g[3], determinant = all - g[2] * g[2], inverse = KG_C(1.0) / determinant;
    const kg_real first = g[0];
    g[0] = g[3] * inverse;
    g[1] = g[2] = -g[2] * inverse;
    g[3] = first * inverse;
    return determinant > KG_LEAST_NORM_REGULAR * all;
  }
  {
    const kg_real c00 = g[4] * g[8] - g[7] * g[7], c10 = g[6] * g[7] - g[3] * g[8], c20 = g[3] * g[7] - g[6] * g[4];
    const kg_real c11 = g[0] * g[8] - g[6] * g[6], c21 = g[3] * g[6] - g[0] * g[7], c22 = g[0] * g[4] - g[3] * g[3];
    const kg_real determinant = g[0] * c00 + g[3] * c10 + g[6] * c20, inverse = KG_C(1.0) / determinant;
    const int regular = determinant > KG_LEAST_NORM_REGULAR * (g[0] * g[4] * g[8]);
    g[0] = c00 * inverse;
    g[1] = g[3] = c10 * inverse;
    g[2] = g[6] = c20 * inverse;
    g[4] = c11 * inverse;
    g[5] = g[7] = c21 * inverse;
    g[8] = c22 * inverse;
    return regular;
  }
}

/* Computes w.a = Q^-1 times each row, and w.gram, the inverse of the products of the rows in the metric Q^-1. Returns
 * KG_SINGULAR where rows are nearly dependent. Local arrays stay in registers. */
KG_INLINED int kg_small_prepare(int n, int rows, const kg_level *l) {
  const kg_real *KG_RESTRICT inverse = l->w.factor, *KG_RESTRICT given = l->w.rows;
  kg_real along[KG_SMALL_ROWS * KG_SMALL_SPEEDS], product[KG_SMALL_ROWS * KG_SMALL_ROWS];
  int regular;
  for (int i = 0; i < rows; ++i) {
    const kg_real *row = given + i * (n + 1);
    for (int j = 0; j < n; ++j) {
      along[i * n + j] = kg_dot(n, inverse + j * n, row);
    }
    for (int k = 0; k < rows; ++k) {
      if (k <= i) {
        product[i * rows + k] = kg_dot(n, along + k * n, row);
      }
    }
  }
  regular = kg_small_invert(rows, product);
  for (int i = 0; i < rows * n; ++i) {
    l->w.a[i] = along[i];
  }
  for (int i = 0; i < rows * rows; ++i) {
    l->w.gram[i] = product[i];
  }
  return regular ? KG_OK : KG_SINGULAR;
}

/* Writes the correction z. */
KG_INLINED void kg_small_solve(int n, int rows, const kg_level *l, kg_real *KG_RESTRICT z) {
  const kg_real *KG_RESTRICT along = l->w.a, *KG_RESTRICT inverse = l->w.gram, *KG_RESTRICT given = l->w.rows;
  kg_real b[KG_SMALL_ROWS];
  for (int i = 0; i < rows; ++i) {
    b[i] = KG_C(0.0);
    for (int k = 0; k < rows; ++k) {
      b[i] -= inverse[i * rows + k] * given[k * (n + 1) + n];
    }
  }
  for (int j = 0; j < n; ++j) {
    z[j] = KG_C(0.0);
    for (int i = 0; i < rows; ++i) {
      z[j] += b[i] * along[i * n + j];
    }
  }
}

/* The terms of every row for the components of a correction. */
KG_INLINED void kg_small_terms(int n, int rows, const kg_level *l, const kg_real *KG_RESTRICT x,
                               kg_real *KG_RESTRICT terms) {
  const kg_real *KG_RESTRICT given = l->w.rows;
  for (int i = 0; i < rows; ++i) {
    terms[i] = KG_C(0.0);
    for (int j = 0; j < n; ++j) {
      terms[i] += KG_ABS(given[i * (n + 1) + j] * x[j]);
    }
  }
}

/* Whether all residuals are within the tolerance. */
KG_INLINED int kg_small_satisfied(int n, int rows, const kg_level *l, const kg_real *terms) {
  int satisfied = 1;
  for (int i = 0; i < rows; ++i) {
    satisfied &= KG_ABS(l->w.rows[i * (n + 1) + n]) <= KG_PROJECTION_SLOPE * l->tolerance * terms[i];
  }
  return satisfied;
}

/* Moves the `count` components of x by the correction z. */
KG_INLINED void kg_small_move(int n, int count, const kg_level *l, const kg_real *z) {
  const kg_real *KG_RESTRICT S = l->w.S;
  kg_real *KG_RESTRICT x = l->x;
  for (int i = 0; i < count; ++i) {
    x[i] += l->positions ? kg_dot(n, S + i * n, z) : z[i];
  }
}

/* What a correction can use of the previous one. With the same number of rows, those of the speeds are the derivatives
 * of those of the positions, and have the same coefficients. Positions have hardly moved since the last evaluation:
 * what this changes in a correction of relative size KG_PROJECTION_LAST is below the rounding of the speeds, and a
 * larger correction is not the last one. */
typedef enum { KG_SMALL_NOTHING, KG_SMALL_METRIC, KG_SMALL_COEFFICIENTS } kg_small_known;

/* Evaluates S for positions, and with `metric` the inverse of Q if it serves no further projection. Returns as
 * kg_small_metric(). */
KG_INLINED int kg_small_renew(int n, kg_level *l, int metric) {
  const int status = l->positions ? kg_level_call(l, l->manifold->displacements, l->w.S) : KG_OK;
  if (status < 0 || !metric) {
    return status;
  }
  if (l->further > 0) {
    --l->further;
    return status;
  }
  l->further = KG_SMALL_FURTHER;
  if (l->positions) {
    kg_projection_reach(l);
  }
  return kg_small_metric(n, l);
}

/* A correction of x; terms: of the rows. Returns KG_FINISHED if it is the last one (kg_projection_last()), KG_OK, or a
 * negative status. */
KG_INLINED int kg_small_correct(int n, int rows, kg_level *l, kg_small_known known, const kg_real *terms) {
  kg_real z[KG_SMALL_SPEEDS], change[KG_SMALL_ROWS];
  int status = KG_OK, last = 1;
  if (known != KG_SMALL_COEFFICIENTS) {
    status = kg_small_renew(n, l, known == KG_SMALL_NOTHING);
    status = status < 0 ? status : kg_small_prepare(n, rows, l);
  }
  if (status < 0) {
    return status;
  }
  kg_small_solve(n, rows, l, z);
  if (l->n == n) {
    kg_small_move(n, n, l, z);
  } else {
    kg_small_move(n, l->n, l, z);
  }
  if (!l->positions) {
    return kg_largest(n, z) <= KG_PROJECTION_LAST * kg_largest(n, l->x) ? KG_FINISHED : KG_OK;
  }
  kg_small_terms(n, rows, l, z, change);
  for (int i = 0; i < rows; ++i) {
    last &= change[i] <= KG_PROJECTION_LAST * terms[i];
  }
  return last ? KG_FINISHED : KG_OK;
}

/* Newton's method. GCC unrolls the short loops because they are inside of this loop and have constant bounds (hence
 * `if (k <= j)`); otherwise it vectorizes them first, and their loads wait for the stores of single numbers. */
KG_INLINED int kg_small_newton(int n, int rows, kg_level *l, int metric_known) {
  const int same_rows = l->manifold->position && l->manifold->position->rows == rows;
  kg_small_known known = !metric_known ? KG_SMALL_NOTHING : same_rows ? KG_SMALL_COEFFICIENTS : KG_SMALL_METRIC;
  int status = kg_projection_measure(l);
  for (int iteration = 0; status >= 0 && iteration < KG_SMALL_ITERATIONS; ++iteration) {
    kg_real terms[KG_SMALL_ROWS];
    status = kg_level_call(l, l->function, l->w.rows);
    if (status < 0) {
      return status;
    }
    kg_small_terms(n, rows, l, kg_projection_sizes(l), terms);
    if ((iteration > 0 || !metric_known) && kg_small_satisfied(n, rows, l, terms)) {
      return iteration > 0 ? KG_FINISHED : KG_OK;
    }
    status = kg_small_correct(n, rows, l, known, terms);
    known = KG_SMALL_METRIC;
    if (status != KG_OK) {
      return status;
    }
  }
  return status < 0 ? status : KG_SINGULAR;
}

#define KG_SMALL_CASE(n, rows) \
  case (n) * 8 + (rows):       \
    return kg_small_newton(n, rows, l, metric_known);

/* Newton's method with constant sizes. Returns as kg_projection_level(), or KG_SINGULAR where the code for small sizes
 * does not apply; x may have been moved. */
static inline int kg_projection_small(kg_level *l, int metric_known) {
  switch (l->manifold->n_u * 8 + l->rows) {
    KG_SMALL_CASE(2, 1)
    KG_SMALL_CASE(3, 1)
    KG_SMALL_CASE(3, 2)
    KG_SMALL_CASE(4, 1)
    KG_SMALL_CASE(4, 2)
    KG_SMALL_CASE(4, 3)
    KG_SMALL_CASE(5, 1)
    KG_SMALL_CASE(5, 2)
    KG_SMALL_CASE(5, 3)
    KG_SMALL_CASE(6, 1)
    KG_SMALL_CASE(6, 2)
    KG_SMALL_CASE(6, 3)
    default:
      return KG_SINGULAR;
  }
}

#ifdef __cplusplus
}
#endif

#endif
