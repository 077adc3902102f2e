/* kg_step_control.h - chooses the sizes of adaptive steps, after E. Hairer, S. P. Norsett, G. Wanner, Solving Ordinary
 * Differential Equations I, 2nd ed., section II.4, and the codes DOPRI5 and DOP853 there.
 *
 * The text is instantiated for one motion, and for the motions on vector lanes (kg_group.h), where kg_real is a vector and
 * kg_stepper has the same fields. So it chooses by KG_SELECT and has no branches on values.
 */
#ifndef KG_STEP_CONTROL_H
#define KG_STEP_CONTROL_H

#include "kg_step_powers.h"
#include "kg_stepper.h"

#ifdef __cplusplus
extern "C" {
#endif

/* So many steps in a row that change neither t nor the state notably end a run. */
#define KG_SHORT_STEPS 500
/* Such a step has at most so many roundings of t, ... */
#define KG_LOST_ROUNDINGS KG_BY_PRECISION(1e2, 1e1)
/* ... or so many of t or the span, where it is at most this fraction of the longest trial step. */
#define KG_SHORT_ROUNDINGS KG_BY_PRECISION(1e4, 1e1)
#define KG_SHORT_FRACTION KG_C(1e-3)
/* The least first step, in roundings of t or of the span; and its limit where the span is long. */
#define KG_SHORT_FIRST_STEP KG_BY_PRECISION(1e5, 1e2)
#define KG_LONG_FIRST_STEP KG_C(1e-6)
/* The logarithm to base 2 of 1e-4, below which errors do not influence the proportional step control. */
#define KG_LEAST_ERROR KG_C(-13.287712379549449)

/* Root mean square of x weighted by the tolerances at y. */
static inline kg_real kg_stepper_norm(const kg_stepper *s, const kg_real *x, const kg_real *y) {
  kg_real sum = KG_C(0.0);
  for (int i = 0; i < s->ode.n; ++i) {
    const kg_real scale = s->options.atol[i] + s->options.rtol[i] * KG_ABS(y[i]);
    const kg_real weighted = x[i] / KG_MAX(scale, KG_TINY);
    sum += weighted * weighted;
  }
  return KG_SQRT(sum / KG_SPREAD(s->ode.n));
}

/* Magnitude of a first step from two evaluations (section II.4, starting step size): the derivative at t is the first row
 * of k, the second row is overwritten. */
static inline kg_real kg_stepper_first_step(kg_stepper *s) {
  const int n = s->ode.n;
  const kg_real span = KG_ABS(s->t_end - s->t), max_step = s->options.max_step;
  const kg_real limit = KG_SELECT(max_step > KG_C(0.0), KG_MIN(span, max_step), span);
  const kg_real d0 = kg_stepper_norm(s, s->y, s->y), d1 = kg_stepper_norm(s, s->k, s->y);
  /* A state that is as good as zero says nothing about the size of a step: it must change t. */
  const kg_real rounding = KG_SHORT_FIRST_STEP * KG_EPSILON, of_t = rounding * KG_ABS(s->t);
  const kg_real of_span = KG_MIN(rounding * span, KG_LONG_FIRST_STEP), larger = KG_MAX(of_t, of_span);
  const kg_real least = KG_MIN(larger, limit);
  const kg_real guess = KG_SELECT(KG_MIN(d0, d1) < KG_C(1e-5), KG_C(1e-6), KG_C(0.01) * d0 / d1);
  const kg_real short_guess = KG_MIN(guess, limit), h0 = KG_MAX(short_guess, least), h = s->direction * h0;
  kg_real *f1 = s->k + n;
  kg_real d2, h1;
  kg_add_fresh(n, h, s->k, s->y, s->scratch);
  if (kg_ode_evaluate(&s->ode, &s->statistics, s->t + h, s->scratch, f1) < 0) {
    return h0; /* the step control will find out */
  }
  for (int i = 0; i < n; ++i) {
    f1[i] -= s->k[i];
  }
  d2 = kg_stepper_norm(s, f1, s->y) / h0;
  h1 = KG_MAX(d1, d2);
  h1 = KG_SELECT(h1 <= KG_C(1e-15), KG_MAX(KG_C(1e-6), h0 * KG_C(1e-3)),
                 KG_POW(KG_C(0.01) / h1, KG_C(1.0) / s->method.order));
  h1 = KG_MIN(h1, KG_C(100.0) * h0);
  h1 = KG_MIN(h1, limit);
  return KG_SELECT(KG_ISFINITE(d2), KG_MAX(h1, least), h0);
}

/* The square of the local error of a trial step of size h as a fraction of the tolerance, from the sums of its estimates. */
static inline kg_real kg_stepper_squared(const kg_stepper *s, kg_real h, const kg_real *sums) {
  const kg_real squared = h * h / KG_SPREAD(s->ode.n) * sums[0];
  if (s->method.estimates == 1) {
    return squared;
  }
  return KG_SELECT(sums[0] == KG_C(0.0), squared, squared * (sums[0] / (sums[0] + KG_C(0.01) * sums[1])));
}

/* Magnitude of the next trial step, if it is not the last one. It is less than min_step only after a rejection, which
 * kg_stepper_least() ends. */
static inline kg_real kg_stepper_size(const kg_stepper *s) {
  const kg_real max_step = s->options.max_step, raised = KG_MAX(s->h_next, s->options.min_step);
  const kg_real size = KG_SELECT(s->rejection == KG_OK, raised, s->h_next);
  return KG_SELECT(max_step > KG_C(0.0), KG_MIN(size, max_step), size);
}

/* Where a trial step of magnitude `size` ends: at t_end when that is at most one per cent further. */
static inline kg_real kg_stepper_target(const kg_stepper *s, kg_real size) {
  const kg_real stretched = KG_C(1.01) * size, max_step = s->options.max_step;
  const kg_real limit = KG_SELECT(max_step > KG_C(0.0), KG_MIN(stretched, max_step), stretched);
  return KG_SELECT(KG_ABS(s->t_end - s->t) <= limit, s->t_end, s->t + s->direction * size);
}

/* Magnitude of a step that t hardly resolves, or after a rejection is not allowed. */
static inline kg_real kg_stepper_least(const kg_stepper *s) {
  const kg_real resolved = KG_C(10.0) * KG_EPSILON * KG_ABS(s->t), least = KG_MAX(resolved, KG_TINY);
  return KG_SELECT(s->rejection == KG_OK, least, KG_MAX(least, s->options.min_step));
}

/* Magnitude of the step after one of magnitude `size` with the given logarithm of the square of its error. */
static inline kg_real kg_stepper_resize(const kg_stepper *s, kg_real size, kg_real error) {
  const kg_real exponent = KG_C(0.5) / s->method.order - KG_C(0.375) * s->method.beta;
  const kg_real damping = KG_SELECT(error > KG_C(0.0), KG_C(0.0), s->damping);
  const kg_real next = kg_step_scale(s->method.safety * size, damping - exponent * error);
  const kg_real least = s->method.shrink * size, most = s->method.grow * size, large = KG_MAX(least, next);
  return KG_MIN(most, large);
}

/* Magnitude of the step after the one to t_new, which is accepted with this error; `size` was proposed for it. */
static inline kg_real kg_stepper_next(const kg_stepper *s, kg_real size, kg_real t_new, kg_real error) {
  const kg_real h = KG_ABS(t_new - s->t), next = kg_stepper_resize(s, h, error);
  /* The end, which may be moved, says nothing about the step; and steps do not grow right after a rejection. */
  const kg_real kept = KG_SELECT(t_new == s->t_end, KG_MAX(next, size), next);
  return KG_SELECT(s->rejection != KG_OK, KG_MIN(next, h), kept);
}

/* What the error of an accepted step contributes to the size of the next step but one; `error`: the logarithm of its
 * square. */
static inline kg_real kg_stepper_damping(const kg_stepper *s, kg_real error) {
  const kg_real half = KG_C(0.5) * error;
  return s->method.beta * KG_MAX(half, KG_LEAST_ERROR);
}

/* Magnitude of a step to t_new that leads nowhere unless it changes y by more than the tolerance: it is within the
 * rounding of t, or near the rounding of t or of the span and that short compared with trial steps. A step that moves the
 * state is not short, however large t is: the times of its stages are rounded, but its length is exact. */
static inline kg_real kg_stepper_short(const kg_stepper *s, kg_real t_new) {
  const kg_real since = KG_ABS(t_new - s->t_start), size = KG_ABS(t_new), age = KG_MAX(size, since);
  const kg_real span = KG_ABS(s->t_end - s->t_start), longest = KG_MAX(age, span);
  const kg_real rounding = KG_SHORT_ROUNDINGS * KG_EPSILON * longest, fraction = KG_SHORT_FRACTION * s->longest;
  const kg_real small = KG_MIN(rounding, fraction), lost = KG_LOST_ROUNDINGS * KG_EPSILON * age;
  return KG_MAX(small, lost);
}

/* The change from one state to another as a fraction of the tolerance. */
static inline kg_real kg_stepper_change(kg_stepper *s, const kg_real *from, const kg_real *to) {
  for (int i = 0; i < s->ode.n; ++i) {
    s->scratch[i] = to[i] - from[i];
  }
  return kg_stepper_norm(s, s->scratch, to);
}

#ifdef __cplusplus
}
#endif

#endif
