/* kg_integrals.h - keeps integrals of motion, beside the constraints, while states are projected. */
#ifndef KG_INTEGRALS_H
#define KG_INTEGRALS_H

#include "kg_consistent.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Integrals of motion that a projection keeps in addition to the constraints.
 *
 * An integral I(q, u, t, r) has a row [I_u | I] at velocity level: its value at the start is restored by the smallest
 * change of the speeds in the metric of the kinetic energy, among those that satisfy the constraints to first order.
 * Constraints come first, then the integrals in their order. E. Hairer, C. Lubich, G. Wanner, Geometric Numerical
 * Integration, 2nd ed., section IV.4.
 *
 * A correction is the error of the integral over the length of its gradient, and the gradient of an energy vanishes
 * where the system comes to rest. There the speeds cannot correct an error of the energy: a tiny error would cause a
 * large change of the motion. Such an integral is not corrected until a later step. The criterion uses the step itself:
 * the part of the gradient orthogonal to the previous rows must be at least half of its change since the last
 * projection. So speeds as small as the change of a few steps are corrected, and the order of the method is kept.
 */

/* Smallest orthogonal part of a gradient, as a fraction of its change since the last projection, ... */
#define KG_INTEGRALS_CHANGE KG_C(0.5)
/* ... and of itself: nearly dependent integrals (energy and momentum of a circular motion) are not corrected. */
#define KG_INTEGRALS_RANK KG_BY_PRECISION(1e-6, 1e-3)

typedef struct {
  int n;                         /* functions; 0: no integrals, other fields are not read */
  const kg_function **functions; /* rows [I_u | I], one for each component */

  int rows; /* private: of all functions */
  int n_u;
  long long left;    /* projections that did not correct an integral */
  kg_real drift;     /* largest error of an integral before its correction, as a fraction of its terms */
  kg_real *kept;     /* rows: values to be kept */
  kg_real *values;   /* rows * (n_u + 1): [I_u | I] at the present state */
  kg_real *previous; /* rows * n_u: I_u at the end of the last projection */
  kg_real *basis;    /* rows * n_u: orthonormal rows of a correction, in coordinates whose metric is the identity */
  kg_real *active;   /* rows: 1 for those that are corrected in this projection */
  kg_real *change;   /* n_u: of one gradient */
  kg_real *speeds;   /* n_u: before the projection */
  kg_real *scratch;  /* work array of the functions */
} kg_integrals;

/* Counts the rows and places the arrays in `work`; returns their length. With work NULL only that is of use. */
static inline size_t kg_integrals_place(kg_integrals *c, int n_u, kg_real *work) {
  size_t rows = 0, scratch = 0, total = 0;
  for (int i = 0; i < c->n; ++i) {
    rows += (size_t)c->functions[i]->rows;
    scratch = KG_MAX(scratch, (size_t)c->functions[i]->work);
  }
  {
    const size_t n = (size_t)n_u;
    const size_t sizes[8] = {rows, rows * (n + 1), rows * n, rows * n, rows, n, n, scratch};
    kg_real **const arrays[8] = {&c->kept,   &c->values, &c->previous, &c->basis,
                                 &c->active, &c->change, &c->speeds,   &c->scratch};
    for (int i = 0; i < 8; ++i) {
      *arrays[i] = work ? work + total : NULL;
      total += sizes[i];
    }
  }
  c->rows = (int)rows;
  c->n_u = n_u;
  return total;
}

static inline const kg_real *kg_integrals_row(const kg_integrals *c, int k) { return c->values + k * (c->n_u + 1); }

static inline kg_real kg_integrals_error(const kg_integrals *c, int k) {
  return kg_integrals_row(c, k)[c->n_u] - c->kept[k];
}

/* [I_u | I] of every integral at a state. */
static inline int kg_integrals_evaluate(kg_integrals *c, const kg_point *at, const kg_real *p) {
  kg_real *out = c->values;
  for (int i = 0; i < c->n; ++i) {
    const kg_function *f = c->functions[i];
    const int status = f->evaluate(at, p, c->scratch, out);
    if (status < 0) {
      return status;
    }
    out += f->rows * (c->n_u + 1);
  }
  return KG_OK;
}

/* The gradients with which the next ones are compared. */
static inline void kg_integrals_remember(kg_integrals *c) {
  for (int k = 0; k < c->rows; ++k) {
    memcpy(c->previous + k * c->n_u, kg_integrals_row(c, k), (size_t)c->n_u * sizeof(kg_real));
  }
}

/* The size of the terms of an integral: its value and the products of speeds and gradient. */
static inline kg_real kg_integrals_size(const kg_integrals *c, int k, const kg_real *u) {
  const kg_real *row = kg_integrals_row(c, k);
  kg_real sum = KG_C(0.0);
  for (int j = 0; j < c->n_u; ++j) {
    sum += KG_ABS(row[j] * u[j]);
  }
  return KG_MAX(sum, KG_ABS(c->kept[k]));
}

/* Whether some integral, active or not, is further from its value than `tolerance` times the size of its terms. */
static inline int kg_integrals_exceed(const kg_integrals *c, kg_real tolerance, const kg_real *u, int all) {
  int exceed = 0;
  for (int k = 0; k < c->rows; ++k) {
    const int met = KG_ABS(kg_integrals_error(c, k)) <= tolerance * kg_integrals_size(c, k, u);
    exceed = exceed || ((all || c->active[k] > KG_C(0.0)) && !met);
  }
  return exceed;
}

/* Records the largest error of the integrals. */
static inline void kg_integrals_measure(kg_integrals *c, const kg_real *u) {
  for (int k = 0; k < c->rows; ++k) {
    const kg_real size = kg_integrals_size(c, k, u);
    if (size > KG_C(0.0)) {
      c->drift = KG_MAX(c->drift, KG_ABS(kg_integrals_error(c, k)) / size);
    }
  }
}

/* Subtracts from the n-vector a its part along a unit vector. */
static inline void kg_integrals_remove(int n, const kg_real *unit, kg_real *a) {
  const kg_real part = kg_dot(n, unit, a);
  kg_add(n, -part, unit, a);
}

/* Makes a orthogonal to the constraint rows in use, which are orthonormal in the level, and to the active integrals
 * before the k-th. */
static inline void kg_integrals_orthogonalize(const kg_integrals *c, const kg_level *l, int k, kg_real *a) {
  for (int i = 0; i < l->rows; ++i) {
    if (l->w.sizes[i] < KG_C(0.0)) {
      kg_integrals_remove(c->n_u, l->w.a + i * c->n_u, a);
    }
  }
  for (int i = 0; i < k; ++i) {
    if (c->active[i] > KG_C(0.0)) {
      kg_integrals_remove(c->n_u, c->basis + i * c->n_u, a);
    }
  }
}

/* Returns whether the orthogonal part of the k-th gradient is large enough; arguments: its square and the full one. */
static inline int kg_integrals_determined(kg_integrals *c, const kg_level *l, int k, kg_real left, kg_real all) {
  const kg_real *row = kg_integrals_row(c, k);
  const kg_real *previous = c->previous + k * c->n_u;
  kg_real change;
  for (int j = 0; j < c->n_u; ++j) {
    c->change[j] = row[j] - previous[j];
  }
  kg_metric_lower(c->n_u, l->w.factor, c->change);
  kg_integrals_orthogonalize(c, l, k, c->change);
  change = kg_dot(c->n_u, c->change, c->change);
  return left > KG_INTEGRALS_RANK * KG_INTEGRALS_RANK * all && left >= KG_INTEGRALS_CHANGE * KG_INTEGRALS_CHANGE * change;
}

/* Adds to the correction z of the constraints, in coordinates whose metric is the identity, those of the integrals; the
 * first correction of a projection decides which integrals are active. */
static inline void kg_integrals_correct(kg_integrals *c, kg_level *l, int first) {
  const int n = c->n_u;
  for (int k = 0; k < c->rows; ++k) {
    kg_real *row = c->basis + k * n;
    kg_real all, left, lacking;
    memcpy(row, kg_integrals_row(c, k), (size_t)n * sizeof(kg_real));
    kg_metric_lower(n, l->w.factor, row);
    all = kg_dot(n, row, row);
    lacking = -kg_integrals_error(c, k) - kg_dot(n, row, l->w.z);
    kg_integrals_orthogonalize(c, l, k, row);
    kg_integrals_orthogonalize(c, l, k, row); /* again, because of rounding */
    left = kg_dot(n, row, row);
    if (first) {
      c->active[k] = kg_integrals_determined(c, l, k, left, all) ? KG_C(1.0) : KG_C(0.0);
    }
    if (c->active[k] > KG_C(0.0)) {
      const kg_real shrink = KG_C(1.0) / KG_SQRT(left);
      for (int j = 0; j < n; ++j) {
        row[j] *= shrink;
      }
      kg_add(n, lacking * shrink, row, l->w.z);
    }
  }
}

#ifdef __cplusplus
}
#endif

#endif
