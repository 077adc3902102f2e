/* kg_projection.h - steps of an integration followed by a projection onto the constraints.
 *
 * Positions, then speeds are corrected by the smallest change in the metric of the kinetic energy: E. Hairer,
 * C. Lubich, G. Wanner, Geometric Numerical Integration, 2nd ed., sections IV.4 and VII.1. The order of the method is
 * kept: a step leaves the constraints by no more than its own error, and the projection moves the state by about as
 * much. States whose residuals are below the tolerance are left alone, for the price of these residuals.
 */
#ifndef KG_PROJECTION_H
#define KG_PROJECTION_H

#include "kg_consistent.h"
#include "kg_steppers.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KG_PROJECTION_ITERATIONS 10
/* After a correction of this relative size the next one, its square, is below the rounding of the state. */
#define KG_PROJECTION_LAST KG_C(1e-8)

typedef struct {
  kg_manifold manifold;
  const kg_function *residuals; /* of all levels, positions first; NULL: no constraints */
  kg_real tolerance;
  long long every;              /* steps from one projection to the next; the last state of a run is projected too */
  const kg_real *p;
  kg_real *work;                /* kg_projection_work() values */
  long long moved;              /* projections that changed the state */

  kg_level position; /* private: filled by kg_projection_start() */
  kg_level velocity;
  kg_real *found;
  kg_real *scratch;
} kg_projection;

/* Length of the workspace, in kg_real. */
static inline size_t kg_projection_work(const kg_projection *c) {
  const size_t residuals = c->residuals ? (size_t)(c->residuals->rows + c->residuals->work) : 0;
  return kg_consistent_work(&c->manifold) + residuals;
}

/* Lays out the workspace; everything above the private fields must be set. */
static inline void kg_projection_start(kg_projection *c) {
  if (c->manifold.position) {
    c->position = kg_level_of(&c->manifold, 1, KG_C(0.0), NULL, NULL, NULL, c->p, NULL, c->tolerance, c->work);
  }
  if (c->manifold.velocity) {
    c->velocity = kg_level_of(&c->manifold, 0, KG_C(0.0), NULL, NULL, NULL, c->p, NULL, c->tolerance, c->work);
  }
  if (c->residuals) {
    c->found = c->work + kg_consistent_work(&c->manifold);
    c->scratch = c->found + c->residuals->rows;
  }
  c->moved = 0;
}

/* Whether some of n residuals exceed what the size of x allows. */
static inline int kg_projection_exceeds(const kg_projection *c, int n, const kg_real *residuals, int size,
                                        const kg_real *x) {
  const kg_real largest = kg_max_magnitude(n, residuals);
  return !(largest <= c->tolerance) && !(largest <= c->tolerance * kg_max_magnitude(size, x));
}

/* Whether the last correction, which fixed nothing, serves the redundant rows as well. */
static inline int kg_projection_met(kg_level *l) {
  if (l->rank == l->rows) {
    return 1;
  }
  kg_level_scale(l);
  return kg_level_met(l, 0);
}

/* Newton's method from close by. Returns KG_OK, KG_INCONSISTENT, or the status of a function. */
static inline int kg_projection_level(kg_level *l, int metric_known) {
  for (int iteration = 0; iteration < KG_PROJECTION_ITERATIONS; ++iteration) {
    int status = kg_level_call(l, l->function, l->w.rows);
    kg_real size, change;
    if (status >= 0 && !metric_known) {
      status = kg_level_metric(l, l->positions);
      metric_known = 1; /* a factor of another size of correction away: the same to first order */
    }
    if (status < 0) {
      return status;
    }
    kg_level_correction(l);
    size = KG_MAX(KG_C(1.0), kg_max_magnitude(l->n, l->x));
    change = kg_max_magnitude(l->n, l->w.change);
    for (int i = 0; i < l->n; ++i) {
      l->x[i] += l->w.change[i];
    }
    if (change <= KG_PROJECTION_LAST * size && kg_projection_met(l)) {
      return KG_OK;
    }
  }
  return KG_INCONSISTENT;
}

static inline int kg_projection_at(kg_level *l, kg_real t, kg_real *q, kg_real *u, const kg_real *r, int metric_known) {
  l->t = t;
  l->q = q;
  l->u = u;
  l->r = r;
  l->x = l->positions ? q : u;
  l->close = 1;
  return kg_projection_level(l, metric_known);
}

/* Projects (q, u) at t with the inputs r. Returns KG_OK when the state was left as it is, KG_FINISHED when it was
 * moved, KG_INCONSISTENT, or the negative status of a function. */
static inline int kg_project(kg_projection *c, kg_real t, kg_real *q, kg_real *u, const kg_real *r) {
  const int n_q = c->manifold.n_q, n_u = c->manifold.n_u;
  const int n_position = c->manifold.position ? c->position.rows : 0;
  int status, positions;
  if (!c->residuals) {
    return KG_OK;
  }
  status = c->residuals->evaluate(t, q, u, r, c->p, c->scratch, c->found);
  if (status < 0) {
    return status;
  }
  positions = kg_projection_exceeds(c, n_position, c->found, n_q, q);
  if (!positions && !kg_projection_exceeds(c, c->residuals->rows - n_position, c->found + n_position, n_u, u)) {
    return KG_OK;
  }
  if (positions) {
    status = kg_projection_at(&c->position, t, q, u, r, 0);
  }
  if (status >= 0 && c->manifold.velocity) {
    status = kg_projection_at(&c->velocity, t, q, u, r, positions);
  }
  ++c->moved;
  return status < 0 ? status : KG_FINISHED;
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
