/* kg_projection.h - projects states of an integration onto the constraints and integrals of motion.
 *
 * Positions, then speeds are corrected by the smallest change in the metric of the kinetic energy: E. Hairer,
 * C. Lubich, G. Wanner, Geometric Numerical Integration, 2nd ed., sections IV.4 and VII.1. The order of the method is
 * kept: a step leaves the constraints by no more than its own error, and the projection moves the state by about as
 * much. States whose residuals are below the tolerance are not changed; only these rows are evaluated then.
 */
#ifndef KG_PROJECTION_H
#define KG_PROJECTION_H

#include "kg_projection_small.h"
#include "kg_steppers.h"

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
static inline int kg_integrals_evaluate(kg_integrals *c, kg_real t, const kg_real *q, const kg_real *u,
                                        const kg_real *r, const kg_real *p) {
  kg_real *out = c->values;
  for (int i = 0; i < c->n; ++i) {
    const kg_function *f = c->functions[i];
    const int status = f->evaluate(t, q, u, r, p, c->scratch, out);
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

/* Which residuals of constraint rows are only noise, near states where rows become dependent.
 *
 * Where rows become dependent (a four-bar in its flat position), they determine the coordinates less and less well
 * along one direction: if a row of phi_q keeps only the length l beside the other rows, then a residual with rounding
 * error e gives the coordinate along this direction with an error e / l. The row of the speeds depends on that
 * coordinate: it has an error `rate` e / l, where `rate` is the time derivative of the row, and a correction of the
 * speeds has an error rate e / l^2. Residuals below these errors count as zero, so that a projection does not add noise
 * to a state that happens to lie near such a position.
 */

/* Rounding error of a residual in units of machine epsilon times its terms: sums of a few terms, each rounded. */
#define KG_NOISE_ROUNDINGS KG_C(4.0)
/* The residual of a speed row counts when it exceeds its error by this factor. A larger factor permits larger residuals
 * of the speeds; a smaller one permits corrections that are mostly noise. */
#define KG_NOISE_FACTOR KG_C(2.0)
/* Derivatives of the rows are differences over this change of the coordinates (rad, m): their order of magnitude is
 * enough. */
#define KG_NOISE_DISTANCE KG_BY_PRECISION(1e-4, 1e-3)

/* Whether all residuals are below their rounding error, estimated from the rows alone. */
static inline int kg_noise_only(kg_level *l) {
  const kg_real unit = KG_NOISE_ROUNDINGS * KG_EPSILON * KG_MAX(KG_C(1.0), kg_largest(l->n, l->x));
  int only = 1;
  kg_level_scale(l);
  for (int i = 0; i < l->rows; ++i) {
    only = only && KG_ABS(kg_level_residual(l, i)) <= unit * l->w.scales[i];
  }
  return only;
}

/* Evaluates the rows a short time later and stores their change in w.ahead and the time in *time,
 * which is 0 at rest, since rows do not change then. Returns KG_OK or the negative status of a function. */
static inline int kg_noise_changes(kg_level *l, kg_real *time) {
  const int n_q = l->manifold->n_q, n_u = l->manifold->n_u, m = kg_manifold_displacements(l->manifold);
  kg_real *q = l->q, *displaced = l->w.guess;
  kg_real fastest;
  int status;
  for (int i = 0; i < n_q; ++i) {
    displaced[i] = kg_dot(n_u, l->w.S + i * m, l->u);
  }
  fastest = kg_largest(n_q, displaced);
  *time = fastest > KG_C(0.0) ? KG_NOISE_DISTANCE / fastest : KG_C(0.0);
  for (int i = 0; i < n_q; ++i) {
    displaced[i] = q[i] + *time * displaced[i];
  }
  l->q = displaced;
  status = kg_level_call(l, l->function, l->w.ahead);
  l->q = q;
  for (int i = 0; i < l->rows * (l->m + 1); ++i) {
    l->w.ahead[i] -= l->w.rows[i];
  }
  return status;
}

/* The length of a row in coordinates whose metric is the identity; the row is destroyed. */
static inline kg_real kg_noise_length(const kg_level *l, kg_real *row) {
  kg_metric_lower(l->manifold->n_u, l->w.factor, row);
  return KG_SQRT(kg_dot(l->m, row, row));
}

/* Sets l->noise for kg_least_norm_basis() from the present rows, S and metric. Returns KG_OK or the negative status of
 * a function. */
static inline int kg_noise_of_rows(kg_level *l) {
  const kg_real size = KG_MAX(KG_C(1.0), kg_largest(l->manifold->n_q, l->q));
  const kg_real fastest = kg_largest(l->manifold->n_u, l->u);
  kg_real time;
  const int status = kg_noise_changes(l, &time);
  if (status < 0) {
    return status;
  }
  kg_level_scale(l);
  for (int i = 0; i < l->rows; ++i) {
    kg_real *change = l->w.ahead + i * (l->m + 1), *row = l->w.rows + i * (l->m + 1), *copy = l->w.z;
    /* A row that vanishes has terms all the same: of the size of its change along a unit of the coordinates. */
    const kg_real terms = l->w.scales[i] * size + kg_largest(l->m, change) / KG_NOISE_DISTANCE;
    const kg_real error = KG_NOISE_ROUNDINGS * KG_EPSILON * terms;
    l->w.noise[2 * i] = l->positions ? error : KG_C(0.0);
    l->w.noise[2 * i + 1] = KG_C(0.0);
    if (!l->positions && time > KG_C(0.0)) {
      memcpy(copy, row, (size_t)l->m * sizeof(kg_real));
      /* The second term: what is left of a row beside others may change although the row itself does not. */
      l->w.noise[2 * i + 1] =
          KG_NOISE_FACTOR * error * (kg_noise_length(l, change) / time + kg_noise_length(l, copy) * fastest);
    }
  }
  l->noise = l->w.noise;
  return KG_OK;
}

/* -- steps and projections --------------------------------------------------------------------------------------- */

/* A projection that moves the state by at most this fraction of the tolerance of a step keeps the derivative that the
 * step has evaluated at its end: this changes the next step by less than a hundredth of the tolerance. */
#define KG_PROJECTION_NEGLIGIBLE KG_C(0.1)

typedef struct {
  kg_manifold manifold;
  kg_integrals integrals;       /* n and functions are to be set; kg_projection_renew() sets their values */
  kg_real tolerance;
  long long every;              /* steps from one projection to the next; the last state of a run is projected too */
  int any_rank;                 /* rows can become dependent during the run: kg_noise_of_rows() */
  const kg_real *p;
  kg_real *work;                /* kg_projection_work() values */
  long long moved;              /* projections that changed the state */

  kg_level position; /* private: filled by kg_projection_start() */
  kg_level velocity;
  int small;         /* both have sizes of kg_projection_small.h */
} kg_projection;

/* Length of the workspace, in kg_real. */
static inline size_t kg_projection_work(const kg_projection *c) {
  kg_integrals unused = c->integrals;
  return kg_consistent_work(&c->manifold) + kg_integrals_place(&unused, c->manifold.n_u, NULL);
}

/* Lays out the workspace; everything above the private fields must be set. */
static inline void kg_projection_start(kg_projection *c) {
  if (c->manifold.position) {
    c->position = kg_level_of(&c->manifold, 1, KG_C(0.0), NULL, NULL, NULL, c->p, NULL, c->tolerance, c->work);
  }
  if (c->manifold.velocity || c->integrals.n) {
    c->velocity = kg_level_of(&c->manifold, 0, KG_C(0.0), NULL, NULL, NULL, c->p, NULL, c->tolerance, c->work);
  }
  c->position.any_rank = c->velocity.any_rank = c->any_rank && c->manifold.position;
  kg_integrals_place(&c->integrals, c->manifold.n_u, c->work + kg_consistent_work(&c->manifold));
  c->small = !c->position.any_rank && !c->velocity.any_rank && !c->integrals.n &&
             (!c->manifold.position || kg_small_fits(&c->position)) &&
             (!c->manifold.velocity || kg_small_fits(&c->velocity));
  c->position.small = c->velocity.small = c->small;
  c->integrals.left = 0;
  c->integrals.drift = KG_C(0.0);
  c->moved = 0;
}

/* The integrals are kept at their values in this state from now on: at the start of a run, and after anything that
 * changes them (an impact, a switch of the loads). Returns KG_OK, KG_NOT_FINITE when one has no value, or the negative
 * status of a function. */
static inline int kg_projection_renew(kg_projection *c, kg_real t, const kg_real *q, const kg_real *u,
                                      const kg_real *r) {
  kg_integrals *kept = &c->integrals;
  const int status = kg_integrals_evaluate(kept, t, q, u, r, c->p);
  kg_real sum = KG_C(0.0);
  c->position.further = c->velocity.further = 0; /* Q may have changed as well */
  for (int k = 0; k < kept->rows; ++k) {
    kept->kept[k] = kg_integrals_row(kept, k)[kept->n_u];
    sum += kept->kept[k];
  }
  kg_integrals_remember(kept);
  return status < 0 || sum - sum == KG_C(0.0) ? status : KG_NOT_FINITE;
}

/* Whether the last correction, which fixed nothing, serves the redundant rows as well. */
static inline int kg_projection_met(kg_level *l) {
  if (l->rank == l->rows) {
    return 1;
  }
  kg_level_scale(l);
  return kg_level_met(l, 0);
}

/* kg_projection_level() where rows may become dependent on the way. Near such a state a small residual may be due to a
 * large error of the state: the state is accepted when the correction, not the residual, is below the tolerance. The
 * tolerance (rad, m) is used as it is unless the rounding error of x exceeds it: an error of the coordinates is an
 * error of the speed rows as well, whatever the number of revolutions. */
static inline int kg_projection_any_rank(kg_level *l, int metric_known) {
  l->noise = NULL;
  for (int iteration = 0; iteration < KG_PROJECTION_ITERATIONS; ++iteration) {
    const kg_real size = KG_MAX(KG_C(1.0), kg_largest(l->n, l->x));
    const kg_real limit = KG_MAX(l->tolerance, KG_C(4.0) * KG_EPSILON * size);
    int status = kg_level_call(l, l->function, l->w.rows);
    if (status >= 0 && iteration == 0) {
      if (kg_noise_only(l)) {
        return KG_OK;
      }
      status = metric_known ? status : kg_level_metric(l, 1);
    }
    if (status < 0) {
      return status;
    }
    kg_level_correction(l);
    if (iteration == 0 && kg_largest(l->n, l->w.change) > limit) {
      status = kg_noise_of_rows(l);
      if (status < 0) {
        return status;
      }
      kg_level_correction(l);
    }
    if (kg_largest(l->n, l->w.change) <= limit && kg_projection_met(l)) {
      return iteration > 0 ? KG_FINISHED : KG_OK;
    }
    for (int i = 0; i < l->n; ++i) {
      l->x[i] += l->w.change[i];
    }
    if (iteration > 0 && kg_largest(l->n, l->w.change) <= KG_PROJECTION_LAST * size && kg_projection_met(l)) {
      return KG_FINISHED;
    }
  }
  return KG_INCONSISTENT;
}

/* Newton's method from close by. The metric is known where positions have been moved; then speeds follow in any case.
 * Returns KG_OK if the state was not changed, KG_FINISHED, KG_INCONSISTENT, or the status of a function. */
static inline int kg_projection_level(kg_level *l, int metric_known) {
  if (l->any_rank) {
    return kg_projection_any_rank(l, metric_known);
  }
  if (l->small) {
    return kg_projection_small(l, metric_known);
  }
  for (int iteration = 0; iteration < KG_PROJECTION_ITERATIONS; ++iteration) {
    int status = kg_level_call(l, l->function, l->w.rows);
    kg_real change;
    if (status >= 0 && (iteration > 0 || !metric_known) && !kg_projection_exceeds(l)) {
      return iteration > 0 ? KG_FINISHED : KG_OK;
    }
    if (status >= 0 && !metric_known) {
      status = kg_level_metric(l, l->positions);
      metric_known = 1; /* a factor of another size of correction away: the same to first order */
    }
    if (status < 0) {
      return status;
    }
    kg_level_correction(l);
    for (int i = 0; i < l->n; ++i) {
      l->x[i] += l->w.change[i];
    }
    change = kg_largest(l->n, l->w.change);
    if (change <= KG_PROJECTION_LAST * KG_MAX(KG_C(1.0), kg_largest(l->n, l->x)) && kg_projection_met(l)) {
      return KG_FINISHED;
    }
  }
  return KG_INCONSISTENT;
}

static inline void kg_projection_place(kg_level *l, kg_real t, kg_real *q, kg_real *u, const kg_real *r) {
  l->t = t;
  l->q = q;
  l->u = u;
  l->r = r;
  l->x = l->positions ? q : u;
  l->close = 1;
}

/* Newton's method on the speeds with the integrals beside the constraints. Returns as kg_projection_level(). */
static inline int kg_projection_integrals(kg_integrals *kept, kg_level *l, int metric_known) {
  kg_real change = KG_C(0.0);
  l->noise = NULL;
  for (int iteration = 0; iteration < KG_PROJECTION_ITERATIONS; ++iteration) {
    const kg_real size = kg_largest(l->n, l->x);
    int status = l->function ? kg_level_call(l, l->function, l->w.rows) : KG_OK;
    if (status >= 0) {
      status = kg_integrals_evaluate(kept, l->t, l->q, l->u, l->r, l->p);
    }
    if (status < 0) {
      return status;
    }
    if (iteration == 0) {
      kg_integrals_measure(kept, l->u);
    }
    if ((iteration > 0 || !metric_known) && change <= KG_PROJECTION_LAST * KG_MAX(KG_C(1.0), size) &&
        !kg_projection_exceeds(l) && !kg_integrals_exceed(kept, l->tolerance, l->u, iteration == 0)) {
      return iteration > 0 ? KG_FINISHED : KG_OK;
    }
    if (!metric_known) {
      status = kg_level_metric(l, l->any_rank);
      metric_known = 1;
    }
    if (status >= 0 && l->any_rank && l->function && iteration == 0) {
      status = kg_noise_of_rows(l);
    }
    if (status < 0) {
      return status;
    }
    kg_level_equations(l);
    l->rank = kg_least_norm_basis(0, l->rows, l->m, l->w.a, l->w.b, l->noise, l->w.sizes, l->w.z);
    kg_integrals_correct(kept, l, iteration == 0);
    kg_metric_upper(l->n, l->w.factor, l->w.z);
    change = kg_largest(l->n, l->w.z);
    for (int i = 0; i < l->n; ++i) {
      l->x[i] += l->w.z[i];
    }
    if (change <= KG_PROJECTION_LAST * size && kg_projection_met(l)) {
      return KG_FINISHED;
    }
  }
  return KG_INCONSISTENT;
}

/* Corrects the speeds with the integrals, or for the constraints alone if both cannot be satisfied. Returns as
 * kg_projection_level(). */
static inline int kg_projection_speeds(kg_integrals *kept, kg_level *l, int metric_known) {
  const size_t bytes = (size_t)l->n * sizeof(kg_real);
  int status, left = 0;
  memcpy(kept->speeds, l->u, bytes);
  status = kg_projection_integrals(kept, l, metric_known);
  if (status == KG_INCONSISTENT) {
    memcpy(l->u, kept->speeds, bytes);
    left = 1;
    status = l->function ? kg_projection_level(l, 1) : KG_OK;
  } else if (status == KG_FINISHED) {
    for (int k = 0; k < kept->rows; ++k) {
      left = left || !(kept->active[k] > KG_C(0.0));
    }
  }
  kept->left += left;
  kg_integrals_remember(kept);
  return status;
}

/* kg_project() with the present choice of the code for small sizes. */
static inline int kg_project_levels(kg_projection *c, kg_real t, kg_real *q, kg_real *u, const kg_real *r) {
  int positions = KG_OK, speeds = KG_OK;
  if (c->manifold.position) {
    kg_projection_place(&c->position, t, q, u, r);
    positions = kg_projection_level(&c->position, 0);
  }
  if (positions >= 0 && (c->manifold.velocity || c->integrals.rows)) {
    const int metric_known = positions == KG_FINISHED;
    kg_projection_place(&c->velocity, t, q, u, r);
    speeds = c->integrals.rows ? kg_projection_speeds(&c->integrals, &c->velocity, metric_known)
                               : kg_projection_level(&c->velocity, metric_known);
  }
  return positions == KG_OK || speeds < 0 ? speeds : positions;
}

/* Chooses between the code for small sizes and the general code, which store factors of Q in different ways. */
static inline void kg_projection_choose(kg_projection *c, int small) {
  const kg_level *any = c->manifold.velocity ? &c->velocity : &c->position; /* they share their arrays */
  c->position.small = c->velocity.small = small;
  c->position.further = c->velocity.further = 0;
  any->w.factored[0] = (kg_real)NAN;
}

/* Projects (q, u) at t with the inputs r. Returns KG_OK if the state was not changed, KG_FINISHED if it was
 * changed, KG_INCONSISTENT, or the negative status of a function. */
static inline int kg_project(kg_projection *c, kg_real t, kg_real *q, kg_real *u, const kg_real *r) {
  int status = kg_project_levels(c, t, q, u, r);
  if (status == KG_SINGULAR && c->small) {
    kg_projection_choose(c, 0);
    status = kg_project_levels(c, t, q, u, r);
    status = status == KG_OK ? KG_FINISHED : status; /* the first attempt may have moved the positions */
    kg_projection_choose(c, 1);
  }
  c->moved += status == KG_FINISHED;
  return status;
}

/* Whether no component of the state has moved from that in `scratch` by more than a fraction of its tolerance. */
static inline int kg_projection_negligible(const kg_stepper *s) {
  for (int i = 0; i < s->ode.n; ++i) {
    const kg_real tolerance = s->options.atol[i] + s->options.rtol[i] * KG_ABS(s->y[i]);
    if (!(KG_ABS(s->y[i] - s->scratch[i]) <= KG_PROJECTION_NEGLIGIBLE * tolerance)) {
      return 0;
    }
  }
  return 1;
}

/* Projects the state the stepper has accepted, y = (q, u); `r` holds the inputs at its time, `outcome` is that of the
 * step. The derivative at the end of a step that was moved by more than a negligible amount is evaluated anew where it
 * is needed. Dense output and the next step start from the projected state. Returns `outcome` or a negative status. */
static inline int kg_projection_after_step(kg_projection *c, kg_stepper *s, const kg_real *r, int outcome) {
  const int known = s->end_known && s->options.rtol;
  int status;
  if (outcome == KG_OK && s->statistics.steps % c->every != 0) {
    return outcome;
  }
  if (known) {
    memcpy(s->scratch, s->y, (size_t)s->ode.n * sizeof *s->y);
  }
  status = kg_project(c, s->t, s->y, s->y + c->manifold.n_q, r);
  if (status == KG_FINISHED) {
    s->end_known = known && kg_projection_negligible(s);
    if (s->dense_state == 2) {
      s->dense_state = 1;
    }
  }
  return status < 0 ? status : outcome;
}

#ifdef __cplusplus
}
#endif

#endif
