/* kg_steppers.h - integrates y' = f(t, y) by Runge-Kutta and Rosenbrock methods, one accepted step per call.
 *
 * The host owns the loop: after each step it stores outputs, polls for interruption and so on. The caller provides
 * all memory. For a real-time loop, kg_rk4_step() and its like need no stepper (kg_methods.h).
 */
#ifndef KG_STEPPERS_H
#define KG_STEPPERS_H

#include "kg_dense.h"
#include "kg_stepper_start.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Moves the derivative at t to the first row of k. */
static inline int kg_stepper_begin(kg_stepper *s) {
  const int n = s->ode.n;
  const kg_real *end = s->k + s->method.stages * (ptrdiff_t)n;
  if (s->start_known) {
    return KG_OK;
  }
  if (s->dense_state == 1) {
    s->dense_state = 0; /* the first row of the last step is gone */
  }
  if (s->end_known) {
    kg_copy_fresh(n, end, s->k);
  } else {
    const int status = kg_ode_evaluate(&s->ode, &s->statistics, s->t, s->y, s->k);
    if (status < 0) {
      return kg_stepper_fail(s, status);
    }
  }
  s->start_known = 1;
  return KG_OK;
}

/* Linearizes at t where the method needs it. KG_NOT_FINITE where the Jacobian, the first square, is not finite. */
static inline int kg_stepper_linearize(kg_stepper *s) {
  int status;
  if (!s->method.linearize || s->linear_known) {
    return KG_OK;
  }
  status = s->method.linearize(&s->ode, &s->statistics, s->t, s->y, s->k);
  if (status < 0) {
    return kg_stepper_fail(s, status);
  }
  if (!kg_all_finite(s->ode.n * s->ode.n, s->k + s->method.rows * (ptrdiff_t)s->ode.n)) {
    return KG_NOT_FINITE;
  }
  s->linear_known = 1;
  return KG_OK;
}

/* What is left to do when the state at t_new, the end of a step from t_old, has become the current one. */
static inline void kg_stepper_finish(kg_stepper *s, kg_real t_new, kg_real error) {
  kg_statistics *statistics = &s->statistics;
  const kg_real size = KG_ABS(t_new - s->t_old);
  s->h = t_new - s->t_old;
  s->t = t_new;
  s->start_known = 0;
  s->linear_known = 0;
  s->end_known = s->method.estimates_end;
  s->dense_state = 1;
  statistics->smallest_step = statistics->steps == 1 ? size : KG_MIN(s->before.smallest_step, size);
  statistics->largest_step = KG_MAX(s->before.largest_step, size);
  statistics->largest_error = KG_MAX(s->before.largest_error, error);
  statistics->last_step = size;
}

/* Makes y_new at t_new the current state. */
static inline void kg_stepper_accept(kg_stepper *s, kg_real t_new, kg_real error) {
  kg_real *free_row = s->y_old;
  s->t_old = s->t;
  s->y_old = s->y;
  s->y = s->y_new;
  s->y_new = free_row;
  s->before.smallest_step = s->statistics.smallest_step;
  s->before.largest_step = s->statistics.largest_step;
  s->before.largest_error = s->statistics.largest_error;
  s->before.last_step = s->statistics.last_step;
  s->before.damping = s->damping;
  s->before.short_steps = s->short_steps;
  ++s->statistics.steps;
  kg_stepper_finish(s, t_new, error);
}

/* One trial step of size h from (t, y). Writes the square of its error as a fraction of the tolerance: 0 for methods
 * without an estimate, or without tolerances to compare it with. Returns KG_OK, KG_NOT_FINITE, or KG_RHS_FAILED. */
static inline int kg_stepper_try(kg_stepper *s, kg_real t, kg_real h, const kg_real *y, kg_real *squared) {
  const int status = s->method.take(&s->ode, &s->statistics, t, h, y, s->k, s->y_new);
  kg_real sums[2] = {KG_C(0.0), KG_C(0.0)};
  *squared = KG_C(0.0);
  if (status < 0) {
    return kg_stepper_fail(s, status);
  }
  if (!s->method.error || !s->options.rtol) {
    return kg_all_finite(s->ode.n, s->y_new) ? KG_OK : KG_NOT_FINITE;
  }
  s->method.error(s->ode.n, s->k, y, s->y_new, s->options.rtol, s->options.atol, sums);
  *squared = kg_stepper_squared(s, h, sums);
  return KG_ISFINITE(*squared) ? KG_OK : KG_NOT_FINITE;
}

static inline int kg_stepper_fixed(kg_stepper *s) {
  const kg_real size = s->options.step;
  const kg_real rounding = KG_C(16.0) * KG_EPSILON * KG_MAX(KG_ABS(s->t_start), KG_ABS(s->t) + size);
  const kg_real negligible = KG_C(1e-10) * size + rounding;
  /* Multiples of the step, not a running sum, so that rounding does not add up to one step more. */
  kg_real t_new = s->t_start + s->direction * size * (kg_real)(s->grid + 1), squared;
  int status;
  if ((t_new - s->t) * s->direction <= negligible) {
    ++s->grid; /* not so after a step that was cut: the next one completes it */
    t_new = s->t_start + s->direction * size * (kg_real)(s->grid + 1);
  }
  if ((s->t_end - t_new) * s->direction <= negligible) {
    t_new = s->t_end;
  }
  if ((t_new - s->t) * s->direction <= KG_C(0.0)) {
    return KG_STEP_COLLAPSED;
  }
  status = kg_stepper_try(s, s->t, t_new - s->t, s->y, &squared);
  if (status < 0) {
    return status;
  }
  kg_stepper_accept(s, t_new, KG_SQRT(squared));
  return s->t == s->t_end ? KG_FINISHED : KG_OK;
}

/* Whether a trial step with this result must be repeated with a smaller size; other failures end the run. */
static inline int kg_stepper_rejects(const kg_stepper *s, int status, kg_real squared) {
  const int is_left = s->rhs_status == KG_SINGULAR || s->rhs_status == KG_OUTSIDE_TABLE;
  return status == KG_OK ? !(squared <= KG_C(1.0)) : status != KG_RHS_FAILED || is_left;
}

/* Counts the rejection of a trial step of magnitude `size` with this result, and returns the magnitude of the next one. */
static inline kg_real kg_stepper_reject(kg_stepper *s, kg_real size, int status, kg_real squared) {
  ++s->statistics.rejected;
  s->rejection = status == KG_OK ? KG_STEP_COLLAPSED : status;
  return status == KG_OK ? kg_stepper_resize(s, size, kg_step_log2(squared)) : s->method.shrink * size;
}

/* Counts steps that lead nowhere. Where the right-hand side fails beyond some state, steps can become so short
 * that they change t but no longer y: without a limit the run would practically never end. */
static inline void kg_stepper_watch(kg_stepper *s) {
  if (KG_ABS(s->h) > kg_stepper_short(s, s->t) || kg_stepper_change(s, s->y_old, s->y) > KG_C(1.0)) {
    s->short_steps = 0;
    s->obstacle = KG_STEP_COLLAPSED;
    return;
  }
  ++s->short_steps;
  s->obstacle = s->rejection != KG_OK ? s->rejection : s->obstacle;
}

static inline int kg_stepper_adaptive(kg_stepper *s) {
  kg_real size = kg_stepper_size(s);
  if (s->short_steps >= KG_SHORT_STEPS) {
    return s->obstacle;
  }
  for (;;) {
    const kg_real t_new = kg_stepper_target(s, size), h = t_new - s->t;
    kg_real squared;
    int status;
    if (KG_ABS(h) <= kg_stepper_least(s) && (s->rejection != KG_OK || t_new != s->t_end)) {
      return s->rejection != KG_OK ? s->rejection : KG_STEP_COLLAPSED;
    }
    s->longest = KG_MAX(s->longest, KG_ABS(h));
    status = kg_stepper_try(s, s->t, h, s->y, &squared);
    if (status == KG_OK && squared <= KG_C(1.0)) {
      const kg_real error = kg_step_log2(squared);
      s->h_next = kg_stepper_next(s, size, t_new, error);
      kg_stepper_accept(s, t_new, KG_SQRT(squared));
      s->damping = kg_stepper_damping(s, error);
      kg_stepper_watch(s);
      s->rejection = KG_OK;
      return s->t == s->t_end ? KG_FINISHED : KG_OK;
    }
    if (!kg_stepper_rejects(s, status, squared)) {
      return status;
    }
    size = kg_stepper_reject(s, KG_ABS(h), status, squared);
  }
}

/* One accepted step. Returns KG_OK, KG_FINISHED when t_end is reached, or a negative outcome, which leaves the last
 * accepted state in place; after KG_TOO_MANY_STEPS the options may be raised and the integration continued. */
static inline int kg_stepper_step(kg_stepper *s) {
  int status;
  if (s->t == s->t_end) {
    return KG_FINISHED;
  }
  if (s->options.max_steps > 0 && s->statistics.steps >= s->options.max_steps) {
    return KG_TOO_MANY_STEPS;
  }
  status = kg_stepper_begin(s);
  if (status == KG_OK) {
    status = kg_stepper_linearize(s);
  }
  if (status < 0) {
    return status;
  }
  return s->method.adaptive ? kg_stepper_adaptive(s) : kg_stepper_fixed(s);
}

/* Returns to the start of the last accepted step, as if that had been rejected with this result at magnitude `size`. */
static inline void kg_stepper_withdraw(kg_stepper *s, kg_real size, int status, kg_real squared) {
  kg_statistics *statistics = &s->statistics;
  kg_real *free_row = s->y;
  s->y = s->y_old;
  s->y_old = free_row;
  s->t = s->t_old;
  s->h = KG_C(0.0);
  s->start_known = 1;
  s->linear_known = s->method.linearize != NULL;
  s->h_next = kg_stepper_reject(s, size, status, squared);
  s->damping = s->before.damping;
  s->short_steps = s->before.short_steps;
  --statistics->steps;
  statistics->smallest_step = s->before.smallest_step;
  statistics->largest_step = s->before.largest_step;
  statistics->largest_error = s->before.largest_error;
  statistics->last_step = s->before.last_step;
}

/* Replaces the last accepted step by one that ends at t_event, within it, with the accuracy of a step: it is taken
 * again from t_old, and its error is tested as that of any step. May be repeated with other times. The proposed next
 * step stays; fixed steps return to the multiples of the step. Not after kg_stepper_restart(), nor after a step that
 * failed.
 * Returns KG_OK; KG_REJECTED: the error was too large, the stepper is at t_old again and proposes a step that ends
 * before t_event; KG_INVALID_ARGUMENT (t_event is not beyond t_old, or there is no step to cut), KG_NOT_FINITE or
 * KG_RHS_FAILED: then the step is left as it was, without dense output, and cannot be cut any more. */
static inline int kg_stepper_cut(kg_stepper *s, kg_real t_event) {
  const kg_real h = t_event - s->t_old;
  kg_real *free_row = s->y, squared;
  int status;
  if (s->dense_state == 0 || !(h * s->direction > KG_C(0.0)) || !KG_ISFINITE(h)) {
    return KG_INVALID_ARGUMENT;
  }
  s->dense_state = 0;
  s->end_known = 0;
  status = kg_stepper_try(s, s->t_old, h, s->y_old, &squared);
  if (s->method.adaptive && kg_stepper_rejects(s, status, squared)) {
    kg_stepper_withdraw(s, KG_ABS(h), status, squared);
    return KG_REJECTED;
  }
  if (status < 0) {
    return status;
  }
  s->y = s->y_new;
  s->y_new = free_row;
  kg_stepper_finish(s, t_event, KG_SQRT(squared));
  return KG_OK;
}

/* Prepares dense output of the last accepted step in `dense`; repeated calls cost nothing. DOP853 evaluates the
 * right-hand side three times for it, methods with a fixed step once for what the next step needs anyway.
 * Returns KG_OK, KG_RHS_FAILED, or KG_INVALID_ARGUMENT when there is no step or a later one was tried and failed. */
static inline int kg_stepper_dense(kg_stepper *s) {
  const kg_method *m = &s->method;
  const ptrdiff_t n = s->ode.n;
  kg_real *end = s->k + m->stages * n;
  int status = KG_OK;
  if (s->dense_state != 1) {
    return s->dense_state == 2 ? KG_OK : KG_INVALID_ARGUMENT;
  }
  if (!s->end_known) {
    status = kg_ode_evaluate(&s->ode, &s->statistics, s->t, s->y, end);
    if (status < 0) {
      return kg_stepper_fail(s, status);
    }
    s->end_known = 1;
  }
  if (m->take_dense) {
    status = m->take_dense(&s->ode, &s->statistics, s->t_old, s->h, s->y_old, s->k, s->scratch);
    if (status < 0) {
      return kg_stepper_fail(s, status);
    }
  }
  kg_dense_ends(s->ode.n, s->h, s->y_old, s->y, s->k, end, s->dense);
  if (m->fill_dense) {
    m->fill_dense(s->ode.n, s->h, s->k, s->dense);
  }
  s->dense_state = 2;
  return KG_OK;
}

/* State at a time within the last accepted step (n values to y): at its ends exactly the accepted states.
 * Returns what kg_stepper_dense() returns. */
static inline int kg_stepper_interpolate(kg_stepper *s, kg_real t, kg_real *y) {
  int status = KG_OK;
  if (t == s->t || t == s->t_old) {
    memcpy(y, t == s->t ? s->y : s->y_old, (size_t)s->ode.n * sizeof *y);
    return KG_OK;
  }
  status = kg_stepper_dense(s);
  if (status == KG_OK) {
    kg_dense_evaluate(s->method.dense_rows, s->ode.n, s->dense, s->t_old, s->h, t, y);
  }
  return status;
}

#ifdef __cplusplus
}
#endif

#endif
