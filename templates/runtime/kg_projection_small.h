/* kg_projection_small.h - corrections of a projection for a few constraints on a few speeds.
 *
 * The corrections of kg_level_correction() through the inverse of Q. The code is inlined with constant sizes, so that
 * its loops unroll; it takes a third of the time of the general code, to which rows that are nearly dependent and masses
 * that are nearly singular are left.
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
/* Largest numbers of speeds and of rows. */
#define KG_SMALL_SPEEDS 6
#define KG_SMALL_ROWS 3
/* Change of Q, relative to its diagonal, up to which its inverse is kept. */
#define KG_SMALL_CHANGE KG_C(0.05)

/* Whether the level has such sizes; its corrections have as many components as there are speeds. */
static inline int kg_small_fits(const kg_level *l) {
  const int n = l->manifold->n_u;
  return l->m == n && n >= 2 && n <= KG_SMALL_SPEEDS && l->rows >= 1 && l->rows <= KG_SMALL_ROWS && l->rows < n;
}

/* The inverse of Q by elimination without pivoting. Returns 0 where Q is nearly singular. */
static inline int kg_small_inverse(int n, const kg_real *Q, kg_real *inverse) {
  int regular = 1;
  memcpy(inverse, Q, (size_t)(n * n) * sizeof *Q);
  for (int k = 0; k < n; ++k) {
    kg_real *pivot = inverse + k * n;
    const kg_real shrink = KG_C(1.0) / pivot[k];
    regular &= pivot[k] > KG_METRIC_SINGULAR * Q[k * n + k];
    pivot[k] = KG_C(1.0);
    kg_scale(n, shrink, pivot);
    for (int i = 0; i < n; ++i) {
      kg_real *row = inverse + i * n;
      if (i != k) {
        const kg_real factor = row[k];
        row[k] = KG_C(0.0);
        kg_add(n, -factor, pivot, row);
      }
    }
  }
  return regular;
}

/* Evaluates Q, and S for positions. Inverts Q if it has changed by more than KG_SMALL_CHANGE: a correction in a metric
 * that differs by so little is longer than the shortest one by less than one percent, and satisfies the rows as well.
 * Returns KG_OK, KG_SINGULAR, or the negative status of a function. */
KG_INLINED int kg_small_metric(int n, const kg_level *l) {
  const kg_real *KG_RESTRICT Q = l->w.Q;
  kg_real *KG_RESTRICT known = l->w.factored;
  int status = kg_level_call(l, l->manifold->mass, l->w.Q), changed = 0;
  if (status >= 0 && l->positions) {
    status = kg_level_call(l, l->manifold->displacements, l->w.S);
  }
  for (int j = 0; j < n; ++j) {
    for (int k = 0; k <= j; ++k) {
      const kg_real change = Q[j * n + k] - known[j * n + k];
      changed |= !(change * change <= KG_SMALL_CHANGE * KG_SMALL_CHANGE * (known[j * n + j] * known[k * n + k]));
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

/* Solves g x = b for the symmetric g by its adjugate, with one division; b becomes x. Returns 0 where rows of which g
 * holds the products are nearly dependent. */
KG_INLINED int kg_small_solve(int rows, const kg_real *g, kg_real *b) {
  if (rows == 1) {
    b[0] /= g[0];
    return g[0] > KG_C(0.0);
  }
  if (rows == 2) {
    const kg_real all = g[0] * g[3], determinant = all - g[2] * g[2], inverse = KG_C(1.0) / determinant;
    const kg_real first = b[0];
    b[0] = (g[3] * first - g[2] * b[1]) * inverse;
    b[1] = (g[0] * b[1] - g[2] * first) * inverse;
    return determinant > KG_LEAST_NORM_REGULAR * all;
  }
  {
    const kg_real c00 = g[4] * g[8] - g[7] * g[7], c10 = g[6] * g[7] - g[3] * g[8], c20 = g[3] * g[7] - g[6] * g[4];
    const kg_real c11 = g[0] * g[8] - g[6] * g[6], c21 = g[3] * g[6] - g[0] * g[7], c22 = g[0] * g[4] - g[3] * g[3];
    const kg_real determinant = g[0] * c00 + g[3] * c10 + g[6] * c20, inverse = KG_C(1.0) / determinant;
    const kg_real x = b[0], y = b[1], z = b[2];
    b[0] = (c00 * x + c10 * y + c20 * z) * inverse;
    b[1] = (c10 * x + c11 * y + c21 * z) * inverse;
    b[2] = (c20 * x + c21 * y + c22 * z) * inverse;
    return determinant > KG_LEAST_NORM_REGULAR * (g[0] * g[4] * g[8]);
  }
}

/* Moves x by the correction and writes its largest component; returns KG_SINGULAR where rows are nearly dependent. */
KG_INLINED int kg_small_correct(int n, int rows, kg_level *l, kg_real *largest) {
  const kg_real *KG_RESTRICT inverse = l->w.factor, *KG_RESTRICT given = l->w.rows, *KG_RESTRICT S = l->w.S;
  kg_real *KG_RESTRICT x = l->x;
  kg_real along[KG_SMALL_ROWS * KG_SMALL_SPEEDS]; /* Q^-1 times each row */
  kg_real product[KG_SMALL_ROWS * KG_SMALL_ROWS], b[KG_SMALL_ROWS], z[KG_SMALL_SPEEDS], most = KG_C(0.0);
  for (int i = 0; i < rows; ++i) {
    const kg_real *row = given + i * (n + 1);
    for (int j = 0; j < n; ++j) {
      along[i * n + j] = kg_dot(n, inverse + j * n, row);
    }
    for (int k = 0; k <= i; ++k) {
      product[i * rows + k] = kg_dot(n, along + k * n, row);
    }
    b[i] = -row[n];
  }
  if (!kg_small_solve(rows, product, b)) {
    return KG_SINGULAR;
  }
  for (int j = 0; j < n; ++j) {
    z[j] = KG_C(0.0);
    for (int i = 0; i < rows; ++i) {
      z[j] += b[i] * along[i * n + j];
    }
  }
  for (int i = 0; i < l->n; ++i) {
    kg_real change = KG_C(0.0);
    if (l->positions) {
      for (int j = 0; j < n; ++j) {
        change += S[i * n + j] * z[j];
      }
    } else {
      change = z[i];
    }
    x[i] += change;
    most = KG_MAX(most, KG_ABS(change));
  }
  *largest = most;
  return KG_OK;
}

/* The metric, if it is not known, and a correction, with constant sizes. */
#define KG_SMALL_STEP(n, rows)                                                         \
  case (n) * 8 + (rows):                                                               \
    status = metric_known ? KG_OK : kg_small_metric(n, l);                             \
    return status < 0 ? status : kg_small_correct(n, rows, l, largest);

static inline int kg_small_step(kg_level *l, int metric_known, kg_real *largest) {
  int status;
  switch (l->manifold->n_u * 8 + l->rows) {
    KG_SMALL_STEP(2, 1)
    KG_SMALL_STEP(3, 1)
    KG_SMALL_STEP(3, 2)
    KG_SMALL_STEP(4, 1)
    KG_SMALL_STEP(4, 2)
    KG_SMALL_STEP(4, 3)
    KG_SMALL_STEP(5, 1)
    KG_SMALL_STEP(5, 2)
    KG_SMALL_STEP(5, 3)
    KG_SMALL_STEP(6, 1)
    KG_SMALL_STEP(6, 2)
    KG_SMALL_STEP(6, 3)
    default:
      return KG_SINGULAR;
  }
}

/* Returns whether a residual of the rows exceeds its tolerance for the size of x. */
static inline int kg_projection_exceeds(const kg_level *l) {
  kg_real largest = KG_C(0.0);
  for (int i = 0; i < l->rows; ++i) {
    largest = KG_MAX(largest, KG_ABS(kg_level_residual(l, i)));
  }
  return !(largest <= l->tolerance) && !(largest <= l->tolerance * kg_largest(l->n, l->x));
}

/* Newton's method with the code for small sizes. Returns as kg_projection_level(), or KG_SINGULAR where that code does
 * not apply; x may have been moved. */
static inline int kg_projection_small(kg_level *l, int metric_known) {
  for (int iteration = 0; iteration < KG_PROJECTION_ITERATIONS; ++iteration) {
    int status = kg_level_call(l, l->function, l->w.rows);
    kg_real change = KG_C(0.0);
    if (status < 0) {
      return status;
    }
    if ((iteration > 0 || !metric_known) && !kg_projection_exceeds(l)) {
      return iteration > 0 ? KG_FINISHED : KG_OK;
    }
    status = kg_small_step(l, metric_known || iteration > 0, &change);
    if (status < 0) {
      return status;
    }
    if (change <= KG_PROJECTION_LAST * KG_MAX(KG_C(1.0), kg_largest(l->n, l->x))) {
      return KG_FINISHED;
    }
  }
  return KG_INCONSISTENT;
}

#ifdef __cplusplus
}
#endif

#endif
