/* kg_steppers.h - integrates y' = f(t, y) by Runge-Kutta and Rosenbrock methods, one accepted step per call.
 *
 * The host owns the loop: after each step it stores outputs, polls for interruption and so on. The caller provides
 * all memory. For a real-time loop, kg_rk4_step() and its like need no stepper (kg_methods.h).
 *
 * Step control and starting step follow E. Hairer, S. P. Norsett, G. Wanner, Solving Ordinary Differential
 * Equations I, 2nd ed., section II.4, and the codes DOPRI5 and DOP853 there.
 */
#ifndef KG_STEPPERS_H
#define KG_STEPPERS_H

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

/* The square of the local error of the trial step of size h from y as a fraction of the tolerance; not finite when the
 * state is not. */
static inline kg_real kg_stepper_error(const kg_stepper *s, kg_real h, const kg_real *y) {
  const kg_real factor = h * h / (kg_real)s->ode.n;
  kg_real sums[2] = {KG_C(0.0), KG_C(0.0)};
  s->method.error(s->ode.n, s->k, y, s->y_new, s->options.rtol, s->options.atol, sums);
  if (s->method.estimates == 1 || sums[0] == KG_C(0.0)) {
    return factor * sums[0];
  }
  return factor * sums[0] * (sums[0] / (sums[0] + KG_C(0.01) * sums[1]));
}

/* One trial step of size h from (t, y). Writes the square of its error as a fraction of the tolerance: 0 for methods
 * without an estimate, or without tolerances to compare it with. Returns KG_OK, KG_NOT_FINITE, or KG_RHS_FAILED. */
static inline int kg_stepper_try(kg_stepper *s, kg_real t, kg_real h, const kg_real *y, kg_real *squared) {
  const int status = s->method.take(&s->ode, &s->statistics, t, h, y, s->k, s->y_new);
  *squared = KG_C(0.0);
  if (status < 0) {
    return kg_stepper_fail(s, status);
  }
  if (!s->method.error || !s->options.rtol) {
    return kg_all_finite(s->ode.n, s->y_new) ? KG_OK : KG_NOT_FINITE;
  }
  *squared = kg_stepper_error(s, h, y);
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

/* Where a trial step of magnitude `size` ends: at t_end when that is at most one per cent further. */
static inline kg_real kg_stepper_target(const kg_stepper *s, kg_real size) {
  const kg_real stretched = KG_C(1.01) * size;
  const kg_real limit = s->options.max_step > KG_C(0.0) ? KG_MIN(stretched, s->options.max_step) : stretched;
  return KG_ABS(s->t_end - s->t) <= limit ? s->t_end : s->t + s->direction * size;
}

/* Magnitude of the step after one of magnitude `size` with the given logarithm of the square of its error. */
static inline kg_real kg_stepper_resize(const kg_stepper *s, kg_real size, kg_real error) {
  const kg_method *m = &s->method;
  const kg_real exponent = KG_C(0.5) / m->order - KG_C(0.375) * m->beta;
  const kg_real damping = error > KG_C(0.0) ? KG_C(0.0) : s->damping;
  const kg_real next = kg_step_scale(m->safety * size, damping - exponent * error);
  return KG_MIN(m->grow * size, KG_MAX(m->shrink * size, next));
}

/* Whether a trial step with this result must be repeated with a smaller size; other failures end the run. */
static inline int kg_stepper_rejects(const kg_stepper *s, int status, kg_real squared) {
  const int is_left = s->rhs_status == KG_SINGULAR || s->rhs_status == KG_OUTSIDE_TABLE;
  return status == KG_OK ? !(squared <= KG_C(1.0)) : status != KG_RHS_FAILED || is_left;
}

/* Counts the rejection of a trial step of magnitude `size` with this result. Returns the reason, and in `next` the
 * magnitude of the next trial step. */
static inline int kg_stepper_reject(kg_stepper *s, kg_real size, int status, kg_real squared, kg_real *next) {
  ++s->statistics.rejected;
  *next = status == KG_OK ? kg_stepper_resize(s, size, kg_step_log2(squared)) : s->method.shrink * size;
  return status == KG_OK ? KG_STEP_COLLAPSED : status;
}

/* Whether the last step leads nowhere: it changes y by less than the tolerance, and is within the rounding of t, or
 * near the rounding of t or of the span and that short compared with trial steps. A step that moves the state is not
 * short, however large t is: the times of its stages are rounded, but its length is exact. */
static inline int kg_stepper_is_short(kg_stepper *s) {
  const kg_real size = KG_ABS(s->h), age = KG_MAX(KG_ABS(s->t), KG_ABS(s->t - s->t_start));
  const kg_real longest = KG_MAX(age, KG_ABS(s->t_end - s->t_start));
  const int is_rounding = size <= KG_LOST_ROUNDINGS * KG_EPSILON * age;
  if (!is_rounding && (size > KG_SHORT_ROUNDINGS * KG_EPSILON * longest || size > KG_SHORT_FRACTION * s->longest)) {
    return 0;
  }
  for (int i = 0; i < s->ode.n; ++i) {
    s->scratch[i] = s->y[i] - s->y_old[i];
  }
  return kg_stepper_norm(s, s->scratch, s->y) <= KG_C(1.0);
}

/* Counts steps that lead nowhere. Where the right-hand side fails beyond some state, steps can become so short
 * that they change t but no longer y: without a limit the run would practically never end. */
static inline void kg_stepper_watch(kg_stepper *s, int rejection) {
  if (!kg_stepper_is_short(s)) {
    s->short_steps = 0;
    s->obstacle = KG_STEP_COLLAPSED;
    return;
  }
  ++s->short_steps;
  s->obstacle = rejection != KG_OK ? rejection : s->obstacle;
}

static inline int kg_stepper_adaptive(kg_stepper *s) {
  int rejection = s->withdrawn; /* why the last trial was rejected; KG_OK before the first */
  kg_real size = s->options.max_step > KG_C(0.0) ? KG_MIN(s->h_next, s->options.max_step) : s->h_next;
  if (s->short_steps >= KG_SHORT_STEPS) {
    return s->obstacle;
  }
  s->withdrawn = KG_OK;
  for (;;) {
    const kg_real t_new = kg_stepper_target(s, size);
    const kg_real h = t_new - s->t;
    const int too_small = KG_ABS(h) <= KG_C(10.0) * KG_EPSILON * KG_ABS(s->t) || KG_ABS(h) < KG_TINY;
    kg_real squared;
    int status;
    if (too_small && rejection != KG_OK) {
      return rejection;
    }
    if (too_small && t_new != s->t_end) {
      return KG_STEP_COLLAPSED;
    }
    s->longest = KG_MAX(s->longest, KG_ABS(h));
    status = kg_stepper_try(s, s->t, h, s->y, &squared);
    if (status == KG_OK && squared <= KG_C(1.0)) {
      const kg_real error = kg_step_log2(squared);
      s->h_next = kg_stepper_resize(s, KG_ABS(h), error);
      if (rejection != KG_OK) {
        s->h_next = KG_MIN(s->h_next, KG_ABS(h)); /* do not grow right after a rejection */
      } else if (t_new == s->t_end) {
        s->h_next = KG_MAX(s->h_next, size); /* the end, which may be moved, says nothing about the step */
      }
      kg_stepper_accept(s, t_new, KG_SQRT(squared));
      s->damping = kg_stepper_damping(s, error);
      kg_stepper_watch(s, rejection);
      return s->t == s->t_end ? KG_FINISHED : KG_OK;
    }
    if (!kg_stepper_rejects(s, status, squared)) {
      return status;
    }
    rejection = kg_stepper_reject(s, KG_ABS(h), status, squared, &size);
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
  s->withdrawn = kg_stepper_reject(s, size, status, squared, &s->h_next);
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
  for (ptrdiff_t i = 0; i < n; ++i) {
    const kg_real difference = s->y[i] - s->y_old[i];
    s->dense[i] = s->y_old[i];
    s->dense[n + i] = difference;
    s->dense[2 * n + i] = s->h * s->k[i] - difference;
    s->dense[3 * n + i] = KG_C(2.0) * difference - s->h * (s->k[i] + end[i]);
  }
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
