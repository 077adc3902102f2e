/* kg_many.h - integrates many motions, KG_LANES at a time, each with its own time, step size and outcome.
 *
 * To be included after the functions of the kernel on lanes. The steps of kg_steppers.h with masks in place of branches. A
 * lane whose motion has ended takes the next one. Nothing that a lane computes depends on others.
 */
#ifndef KG_MANY_H
#define KG_MANY_H

#include "kg_motions.h"

#include <limits.h>

/* Starts the motions that have just entered some lanes. */
static void kg_group_start(kg_group *g, kg_mask fresh) {
  const kg_many *m = g->many;
  kg_mask finite = KG_ALL(-1);
  g->watched = fresh;
  (void)kg_ode_evaluate(&g->ode, NULL, g->t, g->y, g->y_new);
  for (int i = 0; i < KG_N; ++i) {
    g->k[i] = KG_SELECT(fresh, g->y_new[i], g->k[i]);
    finite &= KG_ISFINITE(g->y_new[i]);
  }
  if (m->values != NULL) {
    kg_group_reduce(m, g, fresh, 1);
  }
  if (m->options.first_step > 0.0) {
    g->h_next = KG_SELECT(fresh, KG_SPREAD(m->options.first_step), g->h_next);
  } else {
    const kg_mask failed = g->failed;
    g->h_next = KG_SELECT(fresh, kg_stepper_first_step(g), g->h_next);
    g->failed = failed; /* the step control will find out */
  }
  g->cause = kg_mask_select(g->failed != 0, g->failed, g->cause);
  kg_group_finish_all(m, g, fresh & (~finite | (g->failed != 0)),
                      kg_mask_select(g->failed != 0, KG_ALL(KG_RHS_FAILED), KG_ALL(KG_NOT_FINITE)));
  g->failed = KG_ALL(0);
}

/* Gives motions to the lanes that have none. */
static void kg_group_fill(kg_group *g) {
  kg_many *m = g->many;
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
      kg_group_start(g, fresh);
    }
  }
}

/* Prepares dense output of the step of size h from y to y_new, with the derivative at its end. */
static void kg_group_dense(kg_group *g, kg_lanes t_new, kg_lanes h) {
  kg_lanes *end = g->k + KG_STAGES * KG_N;
#if !KG_ESTIMATES_END
  (void)kg_ode_evaluate(&g->ode, NULL, t_new, g->y_new, end);
#endif
#ifdef KG_TAKE_DENSE
  (void)KG_TAKE_DENSE(&g->ode, NULL, g->t, h, g->y, g->k, g->scratch);
#endif
  kg_dense_ends(KG_N, h, g->y, g->y_new, g->k, end, g->dense);
#ifdef KG_FILL_DENSE
  KG_FILL_DENSE(KG_N, h, g->k, g->dense);
#endif
  (void)t_new;
}

/* Stores the states at the times of t_eval that the step from t to t_new passes, in lanes that accept it. */
static void kg_group_output(kg_group *g, kg_lanes t_new, kg_lanes h, kg_mask accepted) {
  kg_mask passed = accepted & (g->direction * (g->due - t_new) <= KG_C(0.0));
  g->watched = passed & (g->due != t_new);
  if (kg_any(g->watched)) {
    kg_group_dense(g, t_new, h);
    passed &= g->failed == 0;
  }
  while (kg_any(passed)) {
    const kg_mask inside = passed & (g->due != t_new);
    if (kg_any(inside)) {
      kg_dense_evaluate(KG_DENSE_ROWS, KG_N, g->dense, g->t, h, g->due, g->scratch);
    }
    for (int lane = 0; lane < KG_LANES; ++lane) {
      if (passed[lane] != 0) {
        kg_group_store(g->many, g, lane, inside[lane] != 0 ? g->scratch : g->y_new);
      }
    }
    passed &= g->direction * (g->due - t_new) <= KG_C(0.0);
  }
}

/* Counts steps that lead nowhere: kg_stepper_watch(). */
static void kg_group_watch(kg_group *g, kg_lanes t_new, kg_mask accepted) {
  kg_mask is_short = accepted & (KG_ABS(t_new - g->t) <= kg_stepper_short(g, t_new));
  if (kg_any(is_short)) {
    is_short &= kg_stepper_change(g, g->y, g->y_new) <= KG_C(1.0);
  }
  g->short_steps = kg_mask_select(accepted, is_short & (g->short_steps + 1), g->short_steps);
  g->obstacle = kg_mask_select(accepted & ~is_short, KG_ALL(KG_STEP_COLLAPSED), g->obstacle);
  g->obstacle = kg_mask_select(is_short & (g->rejection != 0), g->rejection, g->obstacle);
}

/* The square of the local error of a trial step of size h as a fraction of the tolerance. */
KG_INLINE kg_lanes kg_group_error(const kg_group *g, kg_lanes h) {
  kg_lanes sums[2] = {KG_C(0.0), KG_C(0.0)};
  KG_ERROR(KG_N, g->k, g->y, g->y_new, g->options.rtol, g->options.atol, sums);
  return kg_stepper_squared(g, h, sums);
}

/* The size of the next trial step after one of size `size` to t_new with this squared error. */
KG_INLINE void kg_group_resize(kg_group *g, kg_lanes size, kg_lanes t_new, kg_lanes squared, kg_mask accepted,
                               kg_mask finite) {
  const kg_lanes error = kg_step_log2(KG_SELECT(finite, squared, KG_C(1.0))), h = KG_ABS(t_new - g->t);
  const kg_lanes rejected = KG_SELECT(finite, kg_stepper_resize(g, h, error), g->method.shrink * h);
  g->h_next = KG_SELECT(accepted, kg_stepper_next(g, size, t_new, error), rejected);
  g->damping = KG_SELECT(accepted, kg_stepper_damping(g, error), g->damping);
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

/* Ends the motions whose right-hand side has failed. */
static void kg_group_drop_failed(kg_group *g) {
  if (kg_any(g->failed)) {
    g->cause = kg_mask_select(g->failed != 0, g->failed, g->cause);
    kg_group_finish_all(g->many, g, g->watched & (g->failed != 0), KG_ALL(KG_RHS_FAILED));
    g->failed = KG_ALL(0);
  }
}

#ifdef KG_MANY_SWITCHES
/* Goes on from an instant at which functions of time switch, in some lanes: the right-hand side has become another one.
 * The size of the steps stays. */
static __attribute__((noinline)) void kg_group_pass(kg_group *g, kg_mask stopped) {
  for (int lane = 0; lane < KG_LANES; ++lane) {
    if (stopped[lane] != 0) {
      kg_group_aim(g->many, g, lane);
    }
  }
  g->short_steps &= ~stopped;
#if KG_ESTIMATES_END
  g->watched = stopped;
  (void)kg_ode_evaluate(&g->ode, NULL, g->t, g->y, g->y_new);
  for (int i = 0; i < KG_N; ++i) {
    g->k[i] = KG_SELECT(stopped, g->y_new[i], g->k[i]);
  }
  kg_group_drop_failed(g);
#endif
}
#endif

/* One trial step of all lanes, with all that follows from it. */
static void kg_group_trial(const kg_many *m, kg_group *g) {
  const kg_ode ode = {KG_N, g}; /* with constant n, so that loops unroll */
  kg_lanes size, t_new, h, squared;
  kg_mask tiny, failed, finite, accepted, fatal;
  g->watched = g->active;
#if !KG_ESTIMATES_END
  (void)kg_ode_evaluate(&ode, NULL, g->t, g->y, g->k);
  kg_group_drop_failed(g);
  g->watched = g->active;
#endif
  size = kg_stepper_size(g);
  t_new = kg_stepper_target(g, size);
  h = t_new - g->t;
  tiny = g->active & (KG_ABS(h) <= kg_stepper_least(g)) & ((g->rejection != 0) | (t_new != g->t_end));
  if (kg_any(tiny)) {
    kg_group_finish_all(m, g, tiny, kg_mask_select(g->rejection != 0, g->rejection, KG_ALL(KG_STEP_COLLAPSED)));
    g->watched = g->active;
  }
  g->longest = KG_MAX(g->longest, KG_ABS(h));
  (void)KG_TAKE(&ode, NULL, g->t, h, g->y, g->k, g->y_new);
  squared = kg_group_error(g, h);
  failed = g->failed;
  finite = KG_ISFINITE(squared) & (failed == 0);
  accepted = g->active & finite & (squared <= KG_C(1.0));
  fatal = (failed != 0) & (failed != KG_SINGULAR) & (failed != KG_OUTSIDE_TABLE);
  if (m->n_eval > 0) {
    g->failed = KG_ALL(0);
    kg_group_output(g, t_new, h, accepted);
    fatal |= g->failed != 0;
    failed |= g->failed;
  }
  g->cause = kg_mask_select(failed != 0, failed, g->cause);
  kg_group_resize(g, size, t_new, squared, accepted, finite);
  kg_group_watch(g, t_new, accepted);
  kg_group_accept(g, t_new, accepted);
  if (m->values != NULL) {
    kg_group_reduce(m, g, accepted, 0);
  }
  g->rejection = kg_mask_select(finite, KG_ALL(KG_STEP_COLLAPSED),
                                kg_mask_select(failed != 0, KG_ALL(KG_RHS_FAILED), KG_ALL(KG_NOT_FINITE)));
  g->rejection &= ~accepted;
  kg_group_end(m, g, fatal);
  g->failed = KG_ALL(0);
#ifdef KG_MANY_SWITCHES
  accepted &= g->active & (g->t == g->t_end);
  if (kg_any(accepted)) {
    kg_group_pass(g, accepted);
  }
#endif
}

KG_EXPORT size_t kg_many_memory(const kg_many *m) { return kg_group_place(m, NULL); }

static kg_group *kg_group_at(double *memory) {
  const size_t beyond = (size_t)memory % sizeof(kg_lanes) / sizeof(double);
  return (kg_group *)(void *)(memory + (beyond != 0 ? KG_LANES - beyond : 0));
}

/* Prepares the memory of a thread. */
KG_EXPORT void kg_many_begin(kg_many *m, double *memory) {
  kg_group *g = kg_group_at(memory);
  (void)kg_group_place(m, g);
  g->ode.n = KG_N;
  g->ode.group = g;
  g->many = m;
  for (int i = 0; i < KG_N; ++i) {
    g->options.rtol[i] = KG_SPREAD(m->options.rtol[i]);
    g->options.atol[i] = KG_SPREAD(m->options.atol[i]);
  }
#define KG_SPREAD_OPTION(name) g->options.name = KG_SPREAD(m->options.name);
  KG_STEP_SIZES(KG_SPREAD_OPTION)
#undef KG_SPREAD_OPTION
  g->method.estimates = KG_ESTIMATES;
  g->method.order = KG_C(KG_ORDER);
  g->method.beta = KG_C(KG_BETA);
  g->method.safety = KG_C(KG_SAFETY);
  g->method.shrink = KG_C(KG_SHRINK);
  g->method.grow = KG_C(KG_GROW);
  g->t_start = KG_SPREAD(m->t_start);
  g->t_end = KG_SPREAD(m->t_end);
  g->direction = KG_SPREAD(m->t_end >= m->t_start ? 1.0 : -1.0);
  g->waiting = 1;
}

/* Takes so many trial steps. Returns 0 when no motion is left. */
KG_EXPORT int kg_many_advance(double *memory, int trials) {
  kg_group *g = kg_group_at(memory);
  for (int k = 0; k < trials; ++k) {
    kg_group_fill(g);
    if (!kg_any(g->active)) {
      return 0;
    }
    kg_group_trial(g->many, g);
  }
  return 1;
}

KG_EXPORT int kg_many_lanes(void) { return KG_LANES; }

KG_EXPORT const kg_function *kg_many_function(const kg_model *model, const char *name) {
  return kg_find_function(model, name);
}

#endif
