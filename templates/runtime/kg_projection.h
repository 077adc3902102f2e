/* kg_projection.h - projects states of an integration onto the constraints and integrals of motion.
 *
 * Positions, then speeds are corrected by the smallest change in the metric of the kinetic energy: E. Hairer,
 * C. Lubich, G. Wanner, Geometric Numerical Integration, 2nd ed., sections IV.4 and VII.1. The order of the method is
 * kept: a step leaves the constraints by no more than its own error, and the projection moves the state by about as
 * much. States whose residuals are below the tolerance are not changed; only these rows are evaluated then.
 */
#ifndef KG_PROJECTION_H
#define KG_PROJECTION_H

#include "kg_integrals.h"
#include "kg_projection_small.h"
#include "kg_steppers.h"

#ifdef __cplusplus
extern "C" {
#endif

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
/* Derivatives of the rows are differences over this fraction of the sizes of the coordinates: their order of magnitude is
 * enough. */
#define KG_NOISE_DISTANCE KG_BY_PRECISION(1e-4, 1e-3)

/* Writes to w.units the sizes of the components of a correction where rows may become dependent: what of a component
 * gives the terms of a row, since a coordinate near zero is not small if others are not. An angle of many revolutions
 * has the size of one radian: its error is an error of the speed rows as well. */
static inline void kg_projection_units(const kg_level *l, const kg_real *sizes) {
  for (int j = 0; j < l->m; ++j) {
    l->w.units[j] = KG_C(1.0);
  }
  for (int i = 0; i < l->rows; ++i) {
    const kg_real *row = l->w.rows + i * (l->m + 1);
    kg_real terms = KG_C(0.0);
    for (int j = 0; j < l->m; ++j) {
      terms += KG_ABS(row[j]) * KG_MIN(sizes[j], KG_C(1.0));
    }
    for (int j = 0; j < l->m; ++j) {
      const kg_real entry = KG_ABS(row[j]);
      l->w.units[j] = terms < l->w.units[j] * entry ? terms / entry : l->w.units[j];
    }
  }
}

/* Evaluates the rows a short time later and stores their change in w.ahead and the time in *time,
 * which is 0 at rest, since rows do not change then. Returns KG_OK or the negative status of a function. */
static inline int kg_noise_changes(kg_level *l, kg_real *time) {
  const int n_q = l->manifold->n_q, n_u = l->manifold->n_u, m = kg_manifold_displacements(l->manifold);
  kg_real *q = l->q, *displaced = l->w.guess;
  kg_real fastest = KG_C(0.0);
  int status;
  kg_projection_units(l, l->w.reach);
  for (int j = 0; j < n_u; ++j) {
    const kg_real size = l->w.units[j];
    fastest = size > KG_C(0.0) ? KG_MAX(fastest, KG_ABS(l->u[j]) / size) : fastest;
  }
  *time = fastest > KG_C(0.0) ? KG_NOISE_DISTANCE / fastest : KG_C(0.0);
  for (int i = 0; i < n_q; ++i) {
    displaced[i] = q[i] + *time * kg_dot(n_u, l->w.S + i * m, l->u);
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
  kg_real time;
  const int status = kg_noise_changes(l, &time);
  if (status < 0) {
    return status;
  }
  for (int i = 0; i < l->rows; ++i) {
    kg_real *change = l->w.ahead + i * (l->m + 1), *row = l->w.rows + i * (l->m + 1), *copy = l->w.z;
    kg_real most = KG_C(0.0), error;
    for (int j = 0; j < l->m; ++j) {
      most = KG_MAX(most, KG_ABS(change[j]) * l->w.units[j]);
    }
    /* A row that vanishes has terms all the same: those of its change along the sizes of the coordinates. */
    error = KG_NOISE_ROUNDINGS * KG_EPSILON * (kg_level_terms(l, i, l->w.reach) + most / KG_NOISE_DISTANCE);
    l->w.noise[2 * i] = l->positions ? error : KG_C(0.0);
    l->w.noise[2 * i + 1] = KG_C(0.0);
    if (!l->positions && time > KG_C(0.0)) {
      /* The second term: what is left of a row beside others may change although the row itself does not. */
      memcpy(copy, row, (size_t)l->m * sizeof(kg_real));
      l->w.noise[2 * i + 1] =
          KG_NOISE_FACTOR * error * (kg_noise_length(l, change) + KG_NOISE_DISTANCE * kg_noise_length(l, copy)) / time;
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
    c->position = kg_level_of(&c->manifold, 1, c->p, NULL, c->tolerance, c->work);
  }
  if (c->manifold.velocity || c->integrals.n) {
    c->velocity = kg_level_of(&c->manifold, 0, c->p, NULL, c->tolerance, c->work);
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
static inline int kg_projection_renew(kg_projection *c, const kg_point *at) {
  kg_integrals *kept = &c->integrals;
  const int status = kg_integrals_evaluate(kept, at, c->p);
  kg_real sum = KG_C(0.0);
  c->position.further = c->velocity.further = 0; /* Q may have changed as well */
  for (int k = 0; k < kept->rows; ++k) {
    kept->kept[k] = kg_integrals_row(kept, k)[kept->n_u];
    sum += kept->kept[k];
  }
  kg_integrals_remember(kept);
  return status < 0 || sum - sum == KG_C(0.0) ? status : KG_NOT_FINITE;
}

/* Largest change of the rows, as a fraction, within which they count as constant. */
#define KG_PROJECTION_BENT KG_C(1e-3)

/* Whether the last correction, which fixed nothing, serves the redundant rows as well. */
static inline int kg_projection_met(kg_level *l) {
  const kg_real tolerance = KG_C(10.0) * KG_MAX(l->tolerance, KG_C(8.0) * KG_EPSILON);
  int met = 1;
  for (int i = 0; l->rank < l->rows && i < l->rows; ++i) {
    const kg_real limit = tolerance * kg_level_terms(l, i, kg_projection_sizes(l));
    met = met && (l->w.sizes[i] < KG_C(0.0) || KG_ABS(l->w.b[i]) <= limit);
  }
  return met;
}

/* Whether no component of the correction w.z exceeds this fraction of its size, or its rounding error. */
static inline int kg_projection_short(const kg_level *l, kg_real fraction) {
  const kg_real *sizes = kg_projection_sizes(l);
  int is_short = 1;
  for (int j = 0; j < l->m; ++j) { /* no unit is larger than 1 */
    if (KG_ABS(l->w.z[j]) > KG_MAX(fraction, KG_NOISE_ROUNDINGS * KG_EPSILON * sizes[j])) {
      return 0;
    }
  }
  kg_projection_units(l, sizes);
  for (int j = 0; j < l->m && is_short; ++j) {
    const kg_real limit = KG_MAX(fraction * l->w.units[j], KG_NOISE_ROUNDINGS * KG_EPSILON * sizes[j]);
    is_short = KG_ABS(l->w.z[j]) <= limit;
  }
  return is_short;
}

/* Evaluates what the next correction needs: the metric unless it is known, which serves all corrections, and S, which
 * an old one would make converge slowly; with `both`, S for the speeds as well. Returns the status of the functions. */
static inline int kg_projection_metric(kg_level *l, int known, int both) {
  int status = KG_OK;
  if (!known) {
    status = kg_level_metric(l, both || l->positions);
    if ((both || l->positions) && status >= 0) {
      kg_projection_reach(l);
    }
  } else if (l->positions) {
    status = kg_level_call(l, l->manifold->displacements, l->w.S);
  }
  return status;
}

/* Keeps the rows of a correction for kg_projection_stalled(). */
static inline void kg_projection_keep(const kg_level *l) {
  memcpy(l->w.ahead, l->w.rows, (size_t)(l->rows * (l->m + 1)) * sizeof(kg_real));
}

/* Whether residuals above the tolerance consist of rounding errors: the correction w.z, between positions at which the
 * rows are nearly the same, has not reduced them. This is so where terms of a row that are not coordinates cancel: a bar
 * of 1 m that swings by 1 nm. */
static inline int kg_projection_stalled(const kg_level *l, kg_real tolerance) {
  for (int i = 0; i < l->rows; ++i) {
    const kg_real *row = l->w.rows + i * (l->m + 1), *before = l->w.ahead + i * (l->m + 1);
    const kg_real residual = KG_ABS(row[l->m]), terms = kg_level_terms(l, i, kg_projection_sizes(l));
    kg_real changed = KG_C(0.0), corrected = KG_C(0.0);
    for (int j = 0; j < l->m; ++j) {
      changed += KG_ABS((row[j] - before[j]) * l->w.z[j]);
      corrected += KG_ABS(before[j] * l->w.z[j]);
    }
    if (residual > KG_PROJECTION_SLOPE * tolerance * terms &&
        !(residual > KG_PROJECTION_USEFUL * corrected && changed <= KG_PROJECTION_BENT * corrected)) {
      return 0;
    }
  }
  return 1;
}

/* kg_projection_level() where rows may become dependent on the way. Near such a state a small residual may be due to a
 * large error of the state: the state is accepted when the correction, not the residual, is below the tolerance, or
 * below the rounding error of the coordinates. */
static inline int kg_projection_any_rank(kg_level *l, int metric_known) {
  l->noise = NULL;
  for (int iteration = 0; iteration < KG_PROJECTION_ITERATIONS; ++iteration) {
    int status = iteration == 0 ? kg_projection_measure(l) : KG_OK;
    status = status < 0 ? status : kg_level_call(l, l->function, l->w.rows);
    if (status >= 0 && iteration == 0) {
      if (!kg_projection_exceeds(l, KG_NOISE_ROUNDINGS * KG_EPSILON)) {
        return KG_OK;
      }
    }
    if (status >= 0 && iteration > 1 && kg_projection_stalled(l, KG_NOISE_ROUNDINGS * KG_EPSILON)) {
      return KG_FINISHED;
    }
    status = status < 0 ? status : kg_projection_metric(l, metric_known || iteration > 0, 1);
    if (status < 0) {
      return status;
    }
    kg_level_correction(l);
    if (iteration == 0 && !kg_projection_short(l, l->tolerance)) {
      status = kg_noise_of_rows(l);
      if (status < 0) {
        return status;
      }
      kg_level_correction(l);
    }
    if (kg_projection_short(l, l->tolerance) && kg_projection_met(l)) {
      return iteration > 0 ? KG_FINISHED : KG_OK;
    }
    for (int i = 0; i < l->n; ++i) {
      l->x[i] += l->w.change[i];
    }
    if (iteration > 0 && kg_projection_short(l, KG_PROJECTION_LAST) && kg_projection_met(l)) {
      return KG_FINISHED;
    }
    kg_projection_keep(l);
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
    int status = iteration == 0 ? kg_projection_measure(l) : KG_OK;
    status = status < 0 ? status : kg_level_call(l, l->function, l->w.rows);
    if (status >= 0 && (iteration > 0 || !metric_known) && !kg_projection_exceeds(l, l->tolerance)) {
      return iteration > 0 ? KG_FINISHED : KG_OK;
    }
    if (status >= 0 && iteration > 1 && kg_projection_stalled(l, l->tolerance) && kg_projection_met(l)) {
      return KG_FINISHED;
    }
    status = status < 0 ? status : kg_projection_metric(l, metric_known || iteration > 0, 0);
    if (status < 0) {
      return status;
    }
    kg_level_correction(l);
    for (int i = 0; i < l->n; ++i) {
      l->x[i] += l->w.change[i];
    }
    if (kg_projection_last(l) && kg_projection_met(l)) {
      return KG_FINISHED;
    }
    kg_projection_keep(l);
  }
  return KG_INCONSISTENT;
}

/* Newton's method on the speeds with the integrals beside the constraints. Returns as kg_projection_level(). */
static inline int kg_projection_integrals(kg_integrals *kept, kg_level *l, int metric_known) {
  kg_real change = KG_C(0.0);
  l->noise = NULL;
  for (int iteration = 0; iteration < KG_PROJECTION_ITERATIONS; ++iteration) {
    const kg_real size = kg_largest(l->n, l->x);
    int status = iteration == 0 ? kg_projection_measure(l) : KG_OK;
    status = l->function && status >= 0 ? kg_level_call(l, l->function, l->w.rows) : status;
    if (status >= 0) {
      kg_point at = l->at;
      at.q = l->q;
      at.u = l->u;
      status = kg_integrals_evaluate(kept, &at, l->p);
    }
    if (status < 0) {
      return status;
    }
    if (iteration == 0) {
      kg_integrals_measure(kept, l->u);
    }
    if ((iteration > 0 || !metric_known) && change <= KG_PROJECTION_LAST * size &&
        (!kg_projection_exceeds(l, l->tolerance) || (iteration > 1 && kg_projection_stalled(l, l->tolerance))) &&
        !kg_integrals_exceed(kept, l->tolerance, l->u, iteration == 0)) {
      return iteration > 0 ? KG_FINISHED : KG_OK;
    }
    status = kg_projection_metric(l, metric_known || iteration > 0, l->any_rank);
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
    kg_projection_keep(l);
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
static inline int kg_project_levels(kg_projection *c, const kg_point *at, kg_real *q, kg_real *u) {
  int positions = KG_OK, speeds = KG_OK;
  if (c->manifold.position) {
    kg_level_place(&c->position, at, q, u);
    c->position.close = 1;
    positions = kg_projection_level(&c->position, 0);
  }
  if (positions >= 0 && (c->manifold.velocity || c->integrals.rows)) {
    const int metric_known = positions == KG_FINISHED;
    kg_level_place(&c->velocity, at, q, u);
    c->velocity.close = 1;
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

/* Projects q and u, those of the state `at`. Returns KG_OK if the state was not changed, KG_FINISHED if it was
 * changed, KG_INCONSISTENT, or the negative status of a function. */
static inline int kg_project(kg_projection *c, const kg_point *at, kg_real *q, kg_real *u) {
  int status = kg_project_levels(c, at, q, u);
  if (status == KG_SINGULAR && c->small) {
    kg_projection_choose(c, 0);
    status = kg_project_levels(c, at, q, u);
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

/* Projects the state the stepper has accepted, y = (q, u, s), which is that of `at`; `outcome` is that of the step. The derivative at the end of a step that was moved by more than a negligible amount is evaluated anew where it
 * is needed. Dense output and the next step start from the projected state. Returns `outcome` or a negative status. */
static inline int kg_projection_after_step(kg_projection *c, kg_stepper *s, const kg_point *at, int outcome) {
  const int known = s->end_known && s->options.rtol;
  int status;
  if (outcome == KG_OK && s->statistics.steps % c->every != 0) {
    return outcome;
  }
  if (known) {
    memcpy(s->scratch, s->y, (size_t)s->ode.n * sizeof *s->y);
  }
  status = kg_project(c, at, s->y, s->y + c->manifold.n_q);
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
