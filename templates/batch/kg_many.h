/* kg_many.h - integrates many motions, KG_LANES at a time, each with its own time, step size and outcome.
 *
 * To be included after the functions of the kernel on lanes. Steps are chosen as in kg_steppers.h and
 * kg_stepper_start.h. A lane whose motion has ended takes the next one. Nothing that a lane computes depends on others.
 */
#ifndef KG_MANY_H
#define KG_MANY_H

#include "kg_motions.h"
#include "kg_powers.h"

#include <limits.h>

KG_INLINE kg_mask kg_is_finite(kg_lanes x) { return x - x == KG_C(0.0); }

KG_INLINE double kg_many_direction(const kg_many *m) { return m->t_end >= m->t_start ? 1.0 : -1.0; }

/* Root mean square of x weighted by the tolerances at y. */
static kg_lanes kg_group_norm(const kg_group *g, const kg_lanes *x, const kg_lanes *y) {
  kg_lanes sum = KG_C(0.0);
  for (int i = 0; i < KG_N; ++i) {
    const kg_lanes scale = g->atol[i] + g->rtol[i] * KG_ABS(y[i]);
    const kg_lanes weighted = x[i] / KG_MAX(scale, KG_TINY);
    sum += weighted * weighted;
  }
  return KG_SQRT(sum / KG_SPREAD(KG_N));
}

/* Magnitude of the first step from y, whose derivative is the first row of k; the second row is overwritten. */
static kg_lanes kg_group_first_step(const kg_ode *ode) {
  kg_group *g = ode->group;
  const kg_many *m = ode->many;
  const kg_lanes span = KG_ABS(kg_group_stop(m, g) - g->t), sign = KG_SPREAD(kg_many_direction(m));
  const kg_lanes limit = m->options.max_step > 0.0 ? KG_MIN(span, KG_SPREAD(m->options.max_step)) : span;
  const kg_lanes rounding = KG_SHORT_FIRST_STEP * KG_EPSILON;
  const kg_lanes shortest = KG_MAX(rounding * KG_ABS(g->t), KG_MIN(rounding * span, KG_LONG_FIRST_STEP));
  const kg_lanes least = KG_MIN(shortest, limit);
  const kg_lanes d0 = kg_group_norm(g, g->y, g->y), d1 = kg_group_norm(g, g->k, g->y);
  const kg_mask failed = g->failed, small = (d0 < KG_C(1e-5)) | (d1 < KG_C(1e-5));
  kg_lanes h0 = KG_SELECT(small, KG_C(1e-6), KG_C(0.01) * d0 / d1), h1, d2;
  kg_lanes *f1 = g->k + KG_N;
  h0 = KG_MAX(KG_MIN(h0, limit), least);
  kg_add_fresh(KG_N, sign * h0, g->k, g->y, g->scratch);
  (void)kg_ode_evaluate(ode, NULL, g->t + sign * h0, g->scratch, f1);
  g->failed = failed; /* the step control will find out */
  for (int i = 0; i < KG_N; ++i) {
    f1[i] -= g->k[i];
  }
  d2 = kg_group_norm(g, f1, g->y) / h0;
  h1 = KG_MAX(d1, d2);
  h1 = KG_SELECT(h1 <= KG_C(1e-15), KG_MAX(KG_C(1e-6), h0 * KG_C(1e-3)),
                 kg_exp2(kg_log2(KG_C(0.01) / h1) / KG_SPREAD(KG_ORDER)));
  h1 = KG_MAX(KG_MIN(KG_MIN(KG_C(100.0) * h0, h1), limit), least);
  return KG_SELECT(kg_is_finite(d2), h1, h0);
}

/* Starts the motions that have just entered some lanes. */
static void kg_group_start(const kg_ode *ode, kg_mask fresh) {
  kg_group *g = ode->group;
  const kg_many *m = ode->many;
  kg_mask finite = KG_ALL(-1);
  g->watched = fresh;
  (void)kg_ode_evaluate(ode, NULL, g->t, g->y, g->y_new);
  for (int i = 0; i < KG_N; ++i) {
    g->k[i] = KG_SELECT(fresh, g->y_new[i], g->k[i]);
    finite &= kg_is_finite(g->y_new[i]);
  }
  if (m->values != NULL) {
    kg_group_reduce(m, g, fresh, 1);
  }
  if (m->options.first_step > 0.0) {
    g->h_next = KG_SELECT(fresh, KG_SPREAD(m->options.first_step), g->h_next);
  } else {
    g->h_next = KG_SELECT(fresh, kg_group_first_step(ode), g->h_next);
  }
  g->cause = kg_mask_select(g->failed != 0, g->failed, g->cause);
  kg_group_finish_all(m, g, fresh & (~finite | (g->failed != 0)),
                      kg_mask_select(g->failed != 0, KG_ALL(KG_RHS_FAILED), KG_ALL(KG_NOT_FINITE)));
  g->failed = KG_ALL(0);
}

/* Gives motions to the lanes that have none. */
static void kg_group_fill(const kg_ode *ode) {
  kg_many *m = ode->many;
  kg_group *g = ode->group;
  while (g->waiting && kg_any(~g->active)) {
    kg_mask fresh = KG_ALL(0);
    for (int lane = 0; lane < KG_LANES; ++lane) {
      while (g->waiting && g->active[lane] == 0) {
        const ptrdiff_t motion = __atomic_fetch_add(&m->next, 1, __ATOMIC_RELAXED);
        if (motion >= m->count) {
          g->waiting = 0;
        } else if (!kg_group_read(m, g, motion)) {
          kg_many_close(m, motion, m->t_start, KG_INVALID_ARGUMENT, 0);
        } else {
          kg_group_enter(m, g, lane, motion);
          fresh[lane] = -1;
        }
      }
    }
    if (kg_any(fresh)) {
      kg_group_start(ode, fresh);
    }
  }
}

/* Prepares dense output of the step of size h from y to y_new, with the derivative at its end. */
static void kg_group_dense(const kg_ode *ode, kg_lanes t_new, kg_lanes h) {
  kg_group *g = ode->group;
  const int n = KG_N;
  kg_lanes *end = g->k + KG_STAGES * KG_N;
#if !KG_ESTIMATES_END
  (void)kg_ode_evaluate(ode, NULL, t_new, g->y_new, end);
#endif
#ifdef KG_TAKE_DENSE
  (void)KG_TAKE_DENSE(ode, NULL, g->t, h, g->y, g->k, g->scratch);
#endif
  for (int i = 0; i < n; ++i) {
    const kg_lanes difference = g->y_new[i] - g->y[i];
    g->dense[i] = g->y[i];
    g->dense[n + i] = difference;
    g->dense[2 * n + i] = h * g->k[i] - difference;
    g->dense[3 * n + i] = KG_C(2.0) * difference - h * (g->k[i] + end[i]);
  }
#ifdef KG_FILL_DENSE
  KG_FILL_DENSE(n, h, g->k, g->dense);
#endif
  (void)t_new;
}

/* The state of a lane at time t from the dense output of a step from t_old of size h. */
static void kg_group_interpolate(const kg_group *g, int lane, double t_old, double h, double t, double *y) {
  const double theta = (t - t_old) / h, rest = 1.0 - theta;
  for (int i = 0; i < KG_N; ++i) {
    y[i] = g->dense[(KG_DENSE_ROWS - 1) * KG_N + i][lane];
  }
  for (int row = KG_DENSE_ROWS - 2; row >= 0; --row) {
    const double factor = row % 2 == 0 ? theta : rest;
    for (int i = 0; i < KG_N; ++i) {
      y[i] = y[i] * factor + g->dense[row * KG_N + i][lane];
    }
  }
}

/* Stores the states at the times of t_eval that the step from t to t_new passes, in lanes that accept it. */
static void kg_group_output(const kg_ode *ode, kg_lanes t_new, kg_lanes h, kg_mask accepted) {
  kg_group *g = ode->group;
  const kg_many *m = ode->many;
  const kg_lanes sign = KG_SPREAD(kg_many_direction(m));
  const kg_mask passed = accepted & (sign * (g->due - t_new) <= KG_C(0.0));
  if (!kg_any(passed)) {
    return;
  }
  g->watched = passed & (g->due != t_new);
  if (kg_any(g->watched)) {
    kg_group_dense(ode, t_new, h);
  }
  for (int lane = 0; lane < KG_LANES; ++lane) {
    while (passed[lane] != 0 && g->failed[lane] == 0 && sign[lane] * (g->due[lane] - t_new[lane]) <= 0.0) {
      if (g->due[lane] == t_new[lane]) {
        kg_group_store(m, g, lane, (const double *)(const void *)g->y_new + lane, KG_LANES);
      } else {
        kg_group_interpolate(g, lane, g->t[lane], h[lane], g->due[lane], g->row_out);
        kg_group_store(m, g, lane, g->row_out, 1);
      }
    }
  }
}

/* Counts steps that lead nowhere: kg_stepper_is_short() and kg_stepper_watch(). */
static void kg_group_watch(const kg_many *m, kg_group *g, kg_lanes t_new, kg_lanes h, kg_mask accepted) {
  const kg_lanes size = KG_ABS(h), span = KG_SPREAD(fabs(m->t_end - m->t_start));
  const kg_lanes age = KG_MAX(KG_ABS(t_new), KG_ABS(t_new - KG_SPREAD(m->t_start)));
  kg_mask is_short = size <= KG_SHORT_ROUNDINGS * KG_EPSILON * KG_MAX(age, span);
  is_short &= size <= KG_SHORT_FRACTION * g->longest;
  is_short |= size <= KG_LOST_ROUNDINGS * KG_EPSILON * age;
  if (kg_any(accepted & is_short)) {
    for (int i = 0; i < KG_N; ++i) {
      g->scratch[i] = g->y_new[i] - g->y[i];
    }
    is_short &= kg_group_norm(g, g->scratch, g->y_new) <= KG_C(1.0);
  }
  g->short_steps = kg_mask_select(accepted, is_short & (g->short_steps + 1), g->short_steps);
  g->obstacle = kg_mask_select(accepted & ~is_short, KG_ALL(KG_STEP_COLLAPSED), g->obstacle);
  g->obstacle = kg_mask_select(accepted & is_short & (g->rejection != 0), g->rejection, g->obstacle);
}

/* The square of the local error of a trial step of size h as a fraction of the tolerance. */
KG_INLINE kg_lanes kg_group_error(const kg_group *g, kg_lanes h) {
  kg_lanes sums[2] = {KG_C(0.0), KG_C(0.0)};
  const kg_lanes n = KG_SPREAD(KG_N);
  KG_ERROR(KG_N, g->k, g->y, g->y_new, g->rtol, g->atol, sums);
#if KG_ESTIMATES == 1
  return h * h * (sums[0] / n);
#else
  return KG_SELECT(sums[0] == KG_C(0.0), sums[0],
                   h * h * (sums[0] / (n * (sums[0] + KG_C(0.01) * sums[1]))) * sums[0]);
#endif
}

/* The size of the next trial step after one of size h with this squared error: kg_stepper_resize(). */
KG_INLINE void kg_group_resize(kg_group *g, kg_lanes h, kg_lanes squared, kg_mask accepted, kg_mask finite) {
  const kg_lanes size = KG_ABS(h);
#ifdef KG_MANY_SWITCHES
  const kg_mask cut = accepted & (g->t + h == g->stop);
#endif
  const kg_lanes error = KG_C(0.5) * kg_log2(KG_SELECT(finite, KG_MAX(squared, KG_C(1e-60)), KG_C(1.0)));
  const kg_lanes damping = KG_SELECT(accepted, g->damping, KG_C(0.0));
  const kg_lanes power = kg_exp2(KG_SPREAD(1.0 / KG_ORDER - 0.75 * KG_BETA) * error - damping) / KG_SPREAD(KG_SAFETY);
  const kg_lanes shrunk = KG_MIN(KG_SPREAD(1.0 / KG_SHRINK), power);
  const kg_lanes grown = size / KG_MAX(KG_SPREAD(1.0 / KG_GROW), shrunk);
  const kg_lanes kept = KG_SELECT(g->rejection != 0, KG_MIN(grown, size), grown); /* no growth after a rejection */
  const kg_lanes rejected = KG_SELECT(finite, size / shrunk, KG_SPREAD(KG_SHRINK) * size);
#ifdef KG_MANY_SWITCHES
  /* A stop says nothing about the step. */
  g->h_next = KG_SELECT(cut & (g->rejection == 0), KG_MAX(kept, g->h_next), KG_SELECT(accepted, kept, rejected));
#else
  g->h_next = KG_SELECT(accepted, kept, rejected);
#endif
  g->damping = KG_SELECT(accepted, KG_SPREAD(KG_BETA) * KG_MAX(error, KG_LEAST_ERROR), g->damping);
}

/* Makes the end of the trial step the present state of the lanes that accept it. */
KG_INLINE void kg_group_accept(kg_group *g, kg_lanes t_new, kg_mask accepted) {
  for (int i = 0; i < KG_N; ++i) {
    g->y[i] = KG_SELECT(accepted, g->y_new[i], g->y[i]);
#if KG_ESTIMATES_END
    g->k[i] = KG_SELECT(accepted, g->k[KG_STAGES * KG_N + i], g->k[i]);
#endif
  }
  g->t = KG_SELECT(accepted, t_new, g->t);
  g->steps -= accepted;
}

/* Ends the motions that the trial step has brought to an end. */
static void kg_group_end(const kg_many *m, kg_group *g, kg_mask fatal) {
  const kg_mask there = g->t == KG_SPREAD(m->t_end);
  const kg_mask stuck = g->short_steps >= KG_SHORT_STEPS;
  const kg_mask spent = g->steps >= KG_ALL(m->options.max_steps > 0 ? m->options.max_steps : LLONG_MAX);
  kg_mask status = kg_mask_select(spent, KG_ALL(KG_TOO_MANY_STEPS), g->obstacle);
  status = kg_mask_select(there, KG_ALL(KG_FINISHED), status);
  status = kg_mask_select(fatal, KG_ALL(KG_RHS_FAILED), status);
  kg_group_finish_all(m, g, g->active & (there | stuck | spent | fatal), status);
}

/* The derivative at t in the first row of k, where the last step has not left it. */
KG_INLINE void kg_group_begin(const kg_ode *ode) {
#if !KG_ESTIMATES_END
  kg_group *g = ode->group;
  g->watched = g->active;
  (void)kg_ode_evaluate(ode, NULL, g->t, g->y, g->k);
  if (kg_any(g->failed)) {
    g->cause = kg_mask_select(g->failed != 0, g->failed, g->cause);
    kg_group_finish_all(ode->many, g, g->active & (g->failed != 0), KG_ALL(KG_RHS_FAILED));
    g->failed = KG_ALL(0);
  }
#else
  (void)ode;
#endif
}

#ifdef KG_MANY_SWITCHES
/* Goes on from an instant at which functions of time switch, in some lanes: the right-hand side has become another one.
 * The size of the steps stays. */
static __attribute__((noinline)) void kg_group_pass(const kg_ode *ode, kg_mask stopped) {
  kg_group *g = ode->group;
  for (int lane = 0; lane < KG_LANES; ++lane) {
    if (stopped[lane] != 0) {
      kg_group_aim(ode->many, g, lane);
    }
  }
  g->short_steps &= ~stopped;
#if KG_ESTIMATES_END
  g->watched = stopped;
  g->failed = KG_ALL(0);
  (void)kg_ode_evaluate(ode, NULL, g->t, g->y, g->y_new);
  for (int i = 0; i < KG_N; ++i) {
    g->k[i] = KG_SELECT(stopped, g->y_new[i], g->k[i]);
  }
  g->cause = kg_mask_select(g->failed != 0, g->failed, g->cause);
  kg_group_finish_all(ode->many, g, stopped & (g->failed != 0), KG_ALL(KG_RHS_FAILED));
#endif
}
#endif

/* The ends of the trial steps of all lanes; motions whose steps are too small end. */
KG_INLINE kg_lanes kg_group_target(const kg_many *m, kg_group *g) {
  const kg_lanes t_end = kg_group_stop(m, g), longest = KG_SPREAD(m->options.max_step > 0.0 ? m->options.max_step : (double)INFINITY);
  const kg_lanes size = KG_MIN(g->h_next, longest), stretched = KG_MIN(KG_C(1.01) * size, longest);
  const kg_mask last = KG_ABS(t_end - g->t) <= stretched;
  const kg_lanes t_new = KG_SELECT(last, t_end, g->t + KG_SPREAD(kg_many_direction(m)) * size);
  const kg_lanes h = KG_ABS(t_new - g->t);
  const kg_mask tiny = g->active & ((h <= KG_C(10.0) * KG_EPSILON * KG_ABS(g->t)) | (h < KG_TINY));
  if (kg_any(tiny)) {
    const kg_mask status = kg_mask_select(g->rejection != 0, g->rejection, KG_ALL(KG_STEP_COLLAPSED));
    kg_group_finish_all(m, g, tiny & ((g->rejection != 0) | ~last), status);
  }
  return t_new;
}

/* One trial step of all lanes, with all that follows from it. */
static void kg_group_trial(const kg_ode *ode) {
  const kg_many *m = ode->many;
  kg_group *g = ode->group;
  kg_lanes t_new, h, squared;
  kg_mask failed, finite, accepted, fatal;
  kg_group_begin(ode);
  t_new = kg_group_target(m, g);
  h = t_new - g->t;
  g->longest = KG_MAX(g->longest, KG_ABS(h));
  g->watched = g->active;
  (void)KG_TAKE(ode, NULL, g->t, h, g->y, g->k, g->y_new);
  squared = kg_group_error(g, h);
  failed = g->failed;
  finite = kg_is_finite(squared) & (failed == 0);
  accepted = g->active & finite & (squared <= KG_C(1.0));
  fatal = (failed != 0) & (failed != KG_SINGULAR) & (failed != KG_OUTSIDE_TABLE);
  if (m->n_eval > 0) {
    g->failed = KG_ALL(0);
    kg_group_output(ode, t_new, h, accepted);
    fatal |= g->failed != 0;
    failed |= g->failed;
  }
  g->cause = kg_mask_select(failed != 0, failed, g->cause);
  kg_group_resize(g, h, squared, accepted, finite);
  kg_group_watch(m, g, t_new, h, accepted);
  kg_group_accept(g, t_new, accepted);
  if (m->values != NULL) {
    kg_group_reduce(m, g, accepted, 0);
  }
  g->rejection = kg_mask_select(finite, KG_ALL(KG_STEP_COLLAPSED),
                                kg_mask_select(failed != 0, KG_ALL(KG_RHS_FAILED), KG_ALL(KG_NOT_FINITE)));
  g->rejection &= ~accepted;
  kg_group_end(m, g, fatal);
#ifdef KG_MANY_SWITCHES
  accepted &= g->active & (g->t == g->stop);
  if (kg_any(accepted)) {
    kg_group_pass(ode, accepted);
  }
#endif
  g->failed = KG_ALL(0);
}

KG_EXPORT size_t kg_many_memory(const kg_many *m) { return kg_group_place(m, NULL, NULL); }

/* Prepares the memory of a thread. */
KG_EXPORT void kg_many_begin(const kg_many *m, double *memory) {
  kg_group *g = NULL;
  (void)kg_group_place(m, memory, &g);
  for (int i = 0; i < KG_N; ++i) {
    g->rtol[i] = KG_SPREAD(m->options.rtol[i]);
    g->atol[i] = KG_SPREAD(m->options.atol[i]);
  }
  g->waiting = 1;
}

/* Takes so many trial steps. Returns 0 when no motion is left. */
KG_EXPORT int kg_many_advance(kg_many *m, double *memory, int trials) {
  const size_t beyond = (size_t)memory % sizeof(kg_lanes) / sizeof(double);
  const kg_ode ode = {KG_N, m, (kg_group *)(void *)(memory + (beyond != 0 ? KG_LANES - beyond : 0))};
  for (int k = 0; k < trials; ++k) {
    kg_group_fill(&ode);
    if (!kg_any(ode.group->active)) {
      return 0;
    }
    kg_group_trial(&ode);
  }
  return 1;
}

KG_EXPORT int kg_many_lanes(void) { return KG_LANES; }

KG_EXPORT const kg_function *kg_many_function(const kg_model *model, const char *name) {
  return kg_find_function(model, name);
}

#endif
