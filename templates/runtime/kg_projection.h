/* kg_projection.h - steps of an integration followed by a projection onto the constraints and integrals of motion.
 *
 * Positions, then speeds are corrected by the smallest change in the metric of the kinetic energy: E. Hairer,
 * C. Lubich, G. Wanner, Geometric Numerical Integration, 2nd ed., sections IV.4 and VII.1. The order of the method is
 * kept: a step leaves the constraints by no more than its own error, and the projection moves the state by about as
 * much. States whose residuals are below the tolerance are left alone, for the price of these rows.
 */
#ifndef KG_PROJECTION_H
#define KG_PROJECTION_H

#include "kg_integrals.h"
#include "kg_noise.h"
#include "kg_steppers.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KG_PROJECTION_ITERATIONS 10
/* After a correction of this relative size the next one, its square, is below the rounding of the state. */
#define KG_PROJECTION_LAST KG_C(1e-8)
/* Coordinates up to which one constraint is corrected by unrolled code. */
#define KG_PROJECTION_SMALL 4

typedef struct {
  kg_manifold manifold;
  kg_integrals integrals;       /* n and functions are to be set; kg_projection_renew() tells their values */
  kg_real tolerance;
  long long every;              /* steps from one projection to the next; the last state of a run is projected too */
  int any_rank;                 /* rows may become dependent on the way, which forms of any rank pass: kg_noise.h */
  const kg_real *p;
  kg_real *work;                /* kg_projection_work() values */
  long long moved;              /* projections that changed the state */

  kg_level position; /* private: filled by kg_projection_start() */
  kg_level velocity;
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
  for (int k = 0; k < kept->rows; ++k) {
    kept->kept[k] = kg_integrals_row(kept, k)[kept->n_u];
    sum += kept->kept[k];
  }
  kg_integrals_remember(kept);
  return status < 0 || sum - sum == KG_C(0.0) ? status : KG_NOT_FINITE;
}

/* Whether some residual of the rows exceeds what the size of x allows. */
static inline int kg_projection_exceeds(const kg_level *l) {
  kg_real largest = KG_C(0.0);
  for (int i = 0; i < l->rows; ++i) {
    largest = KG_MAX(largest, KG_ABS(kg_level_residual(l, i)));
  }
  return !(largest <= l->tolerance) && !(largest <= l->tolerance * kg_max_magnitude(l->n, l->x));
}

/* Whether the last correction, which fixed nothing, serves the redundant rows as well. */
static inline int kg_projection_met(kg_level *l) {
  if (l->rank == l->rows) {
    return 1;
  }
  kg_level_scale(l);
  return kg_level_met(l, 0);
}

/* kg_level_correction() for one row and as many coordinates as speeds. With a constant n, at most
 * KG_PROJECTION_SMALL, it is inlined and its loops unroll: that halves the time of a projection. Returns the
 * largest component. */
static inline kg_real kg_projection_small(kg_level *l, int n) {
  kg_real z[KG_PROJECTION_SMALL], largest = KG_C(0.0);
  const kg_real size = kg_metric_solve(n, l->w.factor, l->w.rows, z);
  const kg_real factor = size > KG_C(0.0) ? -l->w.rows[n] / size : KG_C(0.0);
  for (int i = 0; i < n; ++i) {
    kg_real change = l->positions ? KG_C(0.0) : z[i];
    for (int j = 0; l->positions && j < n; ++j) {
      change += l->w.S[i * n + j] * z[j];
    }
    change *= factor;
    l->x[i] += change;
    largest = KG_MAX(largest, KG_ABS(change));
  }
  l->rank = size > KG_C(0.0);
  l->w.sizes[0] = -(kg_real)l->rank;
  l->w.b[0] = -l->w.rows[n];
  return largest;
}

/* kg_projection_level() where rows may become dependent on the way. Near such a state a small residual may stand for a
 * large error of the state: it is left alone when the correction, not the residual, is below the tolerance. What counts
 * is the tolerance itself (1 rad, 1 m), unless x is so large that its rounding exceeds it: an error of the coordinates
 * is one of the rows of the speeds as well, whatever the number of revolutions. */
static inline int kg_projection_any_rank(kg_level *l, int metric_known) {
  l->noise = NULL;
  for (int iteration = 0; iteration < KG_PROJECTION_ITERATIONS; ++iteration) {
    const kg_real size = KG_MAX(KG_C(1.0), kg_max_magnitude(l->n, l->x));
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
    if (iteration == 0 && kg_max_magnitude(l->n, l->w.change) > limit) {
      status = kg_noise_of_rows(l);
      if (status < 0) {
        return status;
      }
      kg_level_correction(l);
    }
    if (kg_max_magnitude(l->n, l->w.change) <= limit && kg_projection_met(l)) {
      return iteration > 0 ? KG_FINISHED : KG_OK;
    }
    for (int i = 0; i < l->n; ++i) {
      l->x[i] += l->w.change[i];
    }
    if (iteration > 0 && kg_max_magnitude(l->n, l->w.change) <= KG_PROJECTION_LAST * size && kg_projection_met(l)) {
      return KG_FINISHED;
    }
  }
  return KG_INCONSISTENT;
}

/* Moves x by a correction; returns its largest component. */
static inline kg_real kg_projection_correct(kg_level *l) {
  if (l->rows == 1 && l->n == l->m && l->m == l->manifold->n_u) {
    switch (l->n) {
      case 2:
        return kg_projection_small(l, 2);
      case 3:
        return kg_projection_small(l, 3);
      case KG_PROJECTION_SMALL:
        return kg_projection_small(l, KG_PROJECTION_SMALL);
      default:
        break;
    }
  }
  kg_level_correction(l);
  for (int i = 0; i < l->n; ++i) {
    l->x[i] += l->w.change[i];
  }
  return kg_max_magnitude(l->n, l->w.change);
}

/* Newton's method from close by. The metric is known where positions have been moved; then speeds follow in any case.
 * Returns KG_OK when nothing had to be moved, KG_FINISHED, KG_INCONSISTENT, or the status of a function. */
static inline int kg_projection_level(kg_level *l, int metric_known) {
  if (l->any_rank) {
    return kg_projection_any_rank(l, metric_known);
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
    change = kg_projection_correct(l);
    if (change <= KG_PROJECTION_LAST * KG_MAX(KG_C(1.0), kg_max_magnitude(l->n, l->x)) && kg_projection_met(l)) {
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
    const kg_real size = kg_max_magnitude(l->n, l->x);
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
    change = kg_max_magnitude(l->n, l->w.z);
    for (int i = 0; i < l->n; ++i) {
      l->x[i] += l->w.z[i];
    }
    if (change <= KG_PROJECTION_LAST * size && kg_projection_met(l)) {
      return KG_FINISHED;
    }
  }
  return KG_INCONSISTENT;
}

/* The speeds with the integrals; the constraints alone where both cannot be met. Returns as kg_projection_level(). */
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

/* Projects (q, u) at t with the inputs r. Returns KG_OK when the state was left as it is, KG_FINISHED when it was
 * moved, KG_INCONSISTENT, or the negative status of a function. */
static inline int kg_project(kg_projection *c, kg_real t, kg_real *q, kg_real *u, const kg_real *r) {
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
  c->moved += positions == KG_FINISHED || speeds == KG_FINISHED;
  return positions == KG_OK || speeds < 0 ? speeds : positions;
}

/* Projects the state the stepper has accepted, y = (q, u); `r` holds the inputs at its time, `outcome` is that of the
 * step. The derivative at the end of a step that was moved is evaluated anew where it is needed, so that dense output
 * and the next step start from the projected state. Returns `outcome` or a negative status. */
static inline int kg_projection_after_step(kg_projection *c, kg_stepper *s, const kg_real *r, int outcome) {
  int status;
  if (outcome == KG_OK && s->statistics.steps % c->every != 0) {
    return outcome;
  }
  status = kg_project(c, s->t, s->y, s->y + c->manifold.n_q, r);
  if (status == KG_FINISHED) {
    s->end_known = 0;
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
