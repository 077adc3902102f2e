/* kg_stepper_start.h - defines the state of an integration, and starts it (see kg_steppers.h). */
#ifndef KG_STEPPER_START_H
#define KG_STEPPER_START_H

#include "kg_methods.h"
#include "kg_options.h"
#include "kg_step_limits.h"
#include "kg_step_powers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an accepted step replaces, so that it can be withdrawn. */
typedef struct {
  kg_real smallest_step;
  kg_real largest_step;
  kg_real largest_error;
  kg_real last_step;
  kg_real damping;
  int short_steps;
} kg_before_step;

/* The state of an integration. Fields up to `rhs_status` may be read between calls; the others are private. */
typedef struct {
  kg_ode ode;
  kg_stepper_options options;
  kg_statistics statistics;
  kg_real t;       /* the last accepted point */
  kg_real t_old;   /* the step that led there: t = t_old + h */
  kg_real h;
  kg_real *y;      /* state at t, n values */
  kg_real *y_old;  /* state at t_old */
  kg_real *dense;  /* after kg_stepper_dense(): kg_dense_rows() rows of n values, for kg_dense_evaluate() */
  int rhs_status;  /* status of the right-hand side when the outcome is KG_RHS_FAILED */

  kg_method method;
  kg_real t_start;
  kg_real t_end;
  kg_real direction; /* +1 or -1 */
  kg_real h_next;    /* magnitude of the next trial step */
  kg_real damping;   /* logarithm of error^beta of the last accepted step, for proportional control */
  int short_steps;   /* accepted in a row that hardly change t */
  kg_real longest;   /* magnitude of the longest trial step */
  int obstacle;      /* why longer ones were rejected */
  long long grid;    /* fixed steps: number of the last multiple of the step at or before t */
  kg_before_step before;
  int withdrawn;     /* why the step that would come next was withdrawn; KG_OK: it was not */
  kg_real *y_new;
  kg_real *scratch;
  kg_real *k;        /* derivatives; row `stages` belongs to the end of a step */
  int start_known;   /* row 0 of k is the derivative at t */
  int linear_known;  /* an implicit method has the Jacobian at t */
  int end_known;     /* row `stages` of k is the derivative at t */
  int dense_state;   /* of the last step: 0 not available, 1 can be computed, 2 computed */
} kg_stepper;

/* Length of the workspace of a stepper with an explicit method, as a constant: KG_STEPPER_WORK(DOPRI5, 10). */
#define KG_STEPPER_WORK(METHOD, n) ((KG_##METHOD##_ROWS + KG_##METHOD##_DENSE_ROWS + 4) * (n))

/* Length of the workspace of a stepper, in kg_real; 0 for an unknown method or n < 1. */
static inline size_t kg_stepper_work(int method, int n) {
  const kg_method m = kg_get_method(method);
  const size_t rows = (size_t)(m.rows + m.dense_rows + 4) + (size_t)m.squares * (size_t)n;
  return m.stages == 0 || n < 1 ? 0 : rows * (size_t)n;
}

static inline int kg_all_finite(int n, const kg_real *x) {
  for (int i = 0; i < n; ++i) {
    if (!KG_ISFINITE(x[i])) {
      return 0;
    }
  }
  return 1;
}

static inline int kg_stepper_fail(kg_stepper *s, int status) {
  s->rhs_status = status;
  return KG_RHS_FAILED;
}

/* Root mean square of x weighted by the tolerances at y. */
static inline kg_real kg_stepper_norm(const kg_stepper *s, const kg_real *x, const kg_real *y) {
  kg_real sum = KG_C(0.0);
  for (int i = 0; i < s->ode.n; ++i) {
    const kg_real scale = s->options.atol[i] + s->options.rtol[i] * KG_ABS(y[i]);
    const kg_real weighted = x[i] / KG_MAX(scale, KG_TINY);
    sum += weighted * weighted;
  }
  return KG_SQRT(sum / (kg_real)s->ode.n);
}

/* A difference in t for slopes in time: small compared with the next step, in which slopes can change, and large
 * compared with the rounding of t. */
static inline kg_real kg_stepper_time_difference(const kg_stepper *s) {
  return s->direction * KG_SQRT(KG_EPSILON * s->h_next * KG_MAX(KG_ABS(s->t), s->h_next));
}

/* A difference in a component of y for slopes: the root of the rounding error of its size, which is at least that at
 * which its absolute tolerance takes over from the relative one. So its unit does not matter. */
static inline kg_real kg_stepper_difference(const kg_stepper *s, int component, kg_real value) {
  const kg_real least = s->options.atol[component] / KG_MAX(s->options.rtol[component], KG_EPSILON);
  return KG_SQRT(KG_EPSILON) * KG_MAX(KG_MAX(KG_ABS(value), least), KG_TINY);
}

/* Magnitude of a first step from two evaluations (section II.4, starting step size). */
static inline kg_real kg_stepper_first_step(kg_stepper *s) {
  const int n = s->ode.n;
  const kg_real span = KG_ABS(s->t_end - s->t);
  const kg_real limit = s->options.max_step > KG_C(0.0) ? KG_MIN(span, s->options.max_step) : span;
  const kg_real d0 = kg_stepper_norm(s, s->y, s->y);
  const kg_real d1 = kg_stepper_norm(s, s->k, s->y);
  /* A state that is as good as zero says nothing about the size of a step: it must change t. */
  const kg_real rounding = KG_SHORT_FIRST_STEP * KG_EPSILON;
  const kg_real least = KG_MIN(KG_MAX(rounding * KG_ABS(s->t), KG_MIN(rounding * span, KG_LONG_FIRST_STEP)), limit);
  kg_real *f1 = s->k + n;
  kg_real d2, h0, h1;
  h0 = d0 < KG_C(1e-5) || d1 < KG_C(1e-5) ? KG_C(1e-6) : KG_C(0.01) * d0 / d1;
  h0 = KG_MAX(KG_MIN(h0, limit), least);
  for (int i = 0; i < n; ++i) {
    s->scratch[i] = s->y[i] + s->direction * h0 * s->k[i];
  }
  if (kg_ode_evaluate(&s->ode, &s->statistics, s->t + s->direction * h0, s->scratch, f1) < 0) {
    return h0; /* the step control will find out */
  }
  for (int i = 0; i < n; ++i) {
    f1[i] -= s->k[i];
  }
  d2 = kg_stepper_norm(s, f1, s->y) / h0;
  if (!KG_ISFINITE(d2)) {
    return h0;
  }
  d2 = KG_MAX(d1, d2);
  h1 = d2 <= KG_C(1e-15) ? KG_MAX(KG_C(1e-6), h0 * KG_C(1e-3)) : KG_POW(KG_C(0.01) / d2, KG_C(1.0) / s->method.order);
  h0 = KG_MIN(KG_C(100.0) * h0, h1);
  return KG_MAX(KG_MIN(h0, limit), least);
}

/* What the error of an accepted step contributes to the size of the next step but one; `error`: the logarithm of its
 * square. */
static inline kg_real kg_stepper_damping(const kg_stepper *s, kg_real error) {
  return s->method.beta * KG_MAX(KG_C(0.5) * error, KG_LEAST_ERROR);
}

static inline int kg_stepper_accepts(const kg_method *method, const kg_ode *ode, const kg_stepper_options *options) {
  if (method->stages == 0 || ode->n < 1 || ode->rhs == NULL || !kg_options_are_valid(options)) {
    return 0;
  }
  if (method->linearize && ode->jacobian == NULL) {
    return 0;
  }
  if (!method->adaptive) {
    return options->step > KG_C(0.0) && KG_ISFINITE(options->step) && !options->rtol == !options->atol;
  }
  if (!options->rtol || !options->atol) {
    return 0;
  }
  for (int i = 0; i < ode->n; ++i) {
    const kg_real rtol = options->rtol[i], atol = options->atol[i];
    if (!(rtol >= KG_C(0.0)) || !(atol >= KG_C(0.0)) || !(rtol + atol > KG_C(0.0)) || !KG_ISFINITE(rtol + atol)) {
      return 0;
    }
  }
  return 1;
}

/* Evaluates the derivative at t into the first row of k. */
static inline int kg_stepper_derive(kg_stepper *s) {
  const int status = kg_ode_evaluate(&s->ode, &s->statistics, s->t, s->y, s->k);
  if (status < 0) {
    return kg_stepper_fail(s, status);
  }
  if (!kg_all_finite(s->ode.n, s->y) || !kg_all_finite(s->ode.n, s->k)) {
    return KG_NOT_FINITE;
  }
  s->start_known = 1;
  return KG_OK;
}

/* Starts at (t0, y0) towards t_end, forward or backward. `work` holds kg_stepper_work() values and, like the arrays
 * of the options, must outlive the stepper; y0 is copied.
 * Returns KG_OK, KG_FINISHED (t0 == t_end), KG_INVALID_ARGUMENT, KG_NOT_FINITE or KG_RHS_FAILED. */
static inline int kg_stepper_start(kg_stepper *s, const kg_ode *ode, const kg_stepper_options *options, kg_real t0,
                                   const kg_real *y0, kg_real t_end, kg_real *work) {
  const ptrdiff_t n = ode->n;
  int status;
  memset(s, 0, sizeof *s);
  s->method = kg_get_method(options->method);
  if (!kg_stepper_accepts(&s->method, ode, options) || !KG_ISFINITE(t0) || !KG_ISFINITE(t_end - t0)) {
    return KG_INVALID_ARGUMENT;
  }
  s->ode = *ode;
  s->options = *options;
  s->t = s->t_old = s->t_start = t0;
  s->t_end = t_end;
  s->obstacle = KG_STEP_COLLAPSED;
  s->direction = t_end < t0 ? KG_C(-1.0) : KG_C(1.0);
  s->damping = s->method.beta * KG_LEAST_ERROR;
  s->y = work;
  s->y_old = work + n;
  s->y_new = work + 2 * n;
  s->scratch = work + 3 * n;
  s->k = work + 4 * n;
  s->dense = s->k + (s->method.rows + s->method.squares * n) * n;
  memcpy(s->y, y0, (size_t)n * sizeof *y0);
  memcpy(s->y_old, y0, (size_t)n * sizeof *y0);
  if (t0 == t_end) {
    return KG_FINISHED;
  }
  status = kg_stepper_derive(s);
  if (status == KG_OK && s->method.adaptive) {
    s->h_next = options->first_step > KG_C(0.0) ? options->first_step : kg_stepper_first_step(s);
  }
  return status;
}

/* Goes on towards t_end, in the same direction, after the host has changed y or the right-hand side at the last
 * accepted point: the derivative is evaluated anew. `new_step`: choose the next step as at a start, for a right-hand
 * side that has become another one (with a stiff one the old step would be rejected many times); else the step control
 * goes on. Fixed steps end on the multiples of the step from the start of the run, as before.
 * Dense output of the last step is kept when it was prepared before, else lost.
 * Returns KG_OK, KG_FINISHED (t == t_end), KG_INVALID_ARGUMENT, KG_NOT_FINITE or KG_RHS_FAILED. */
static inline int kg_stepper_restart(kg_stepper *s, kg_real t_end, int new_step) {
  int status;
  if (!((t_end - s->t) * s->direction >= KG_C(0.0)) || !KG_ISFINITE(t_end)) {
    return KG_INVALID_ARGUMENT;
  }
  s->t_end = t_end;
  s->short_steps = 0;
  s->linear_known = 0;
  s->start_known = 0;
  s->end_known = 0;
  s->dense_state = s->dense_state == 2 ? 2 : 0;
  if (s->t == t_end) {
    return KG_FINISHED;
  }
  status = kg_stepper_derive(s);
  if (status == KG_OK && s->method.adaptive && new_step) {
    s->h_next = kg_stepper_first_step(s);
    s->damping = s->method.beta * KG_LEAST_ERROR;
  }
  return status;
}

#ifdef __cplusplus
}
#endif

#endif
