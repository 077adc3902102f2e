/* kg_stepper_start.h - starts an integration (see kg_steppers.h). */
#ifndef KG_STEPPER_START_H
#define KG_STEPPER_START_H

#include "kg_step_control.h"

#ifdef __cplusplus
extern "C" {
#endif

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
