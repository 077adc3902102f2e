/* kg_events.h - locates events of an integration: zeros of guards g_i(t, y) on the steps of a kg_stepper.
 *
 * After each accepted step kg_finder_step() looks for the first zero on its dense output (kg_zeros.h), and
 * kg_finder_locate() takes the step again so that it ends there, with the accuracy of a step, correcting the time by
 * secant steps until the guard is zero. The host decides what happens at the event, and calls kg_finder_restart()
 * afterwards.
 */
#ifndef KG_EVENTS_H
#define KG_EVENTS_H

#include "kg_finder.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KG_FINDER_CORRECTIONS 5
/* Events this fraction of a step apart may be simultaneous. */
#define KG_FINDER_TOGETHER KG_BY_PRECISION(1e-6, 1e-4)
/* Steps shorter than this fraction of the longest one are short. */
#define KG_FINDER_SHORT KG_C(1e-3)
/* A guard jumps where it does not come closer to zero than this fraction of its value just before. */
#define KG_FINDER_JUMP KG_C(1e-2)
/* A guard counts as zero if a shift of the state by this fraction of its tolerance makes it zero. */
#define KG_FINDER_ACCURACY KG_BY_PRECISION(1e-6, 1e-2)

/* One guard on the dense output of the last step. */
typedef struct {
  kg_finder *finder;
  kg_stepper *stepper;
  int guard;
} kg_guard_line;

static inline int kg_finder_interpolate(kg_finder *f, kg_stepper *s, kg_real place, int costly, kg_real *g) {
  const kg_real t = s->t_old + place * s->h;
  const int status = kg_stepper_interpolate(s, t, f->y);
  return status < 0 ? status : kg_finder_evaluate(f, t, f->y, costly, g);
}

static inline int kg_guard_value(void *context, kg_real place, kg_real *g) {
  const kg_guard_line *line = (const kg_guard_line *)context;
  kg_finder *f = line->finder;
  const int status =
      kg_finder_interpolate(f, line->stepper, place, kg_finder_is_costly(f, line->guard), f->scratch);
  *g = f->scratch[line->guard];
  return status;
}

/* The six values of a guard over the whole step. */
static inline void kg_finder_piece(const kg_finder *f, int i, kg_piece *piece) {
  const ptrdiff_t n = f->n;
  piece->a = KG_C(0.0);
  piece->b = KG_C(1.0);
  piece->g[0] = f->start[i];
  for (int k = 1; k < 4; ++k) {
    piece->g[k] = f->samples[(k - 1) * n + i];
  }
  piece->g[4] = f->g[i];
  piece->g[5] = f->samples[3 * n + i];
}

/* Samples the guards over the last step. */
static inline int kg_finder_sample(kg_finder *f, kg_stepper *s, int costly) {
  const ptrdiff_t n = f->n;
  kg_real *last = f->start;
  int status;
  f->start = f->g;
  f->g = last;
  status = costly && !f->g_complete ? kg_finder_evaluate(f, s->t_old, s->y_old, 1, f->start) : KG_OK;
  for (int k = 0; k < 4 && status == KG_OK; ++k) {
    status = kg_finder_interpolate(f, s, kg_zeros_place(k < 3 ? k + 1 : 5), costly, f->samples + k * n);
  }
  if (status == KG_OK) {
    status = kg_finder_evaluate(f, s->t, s->y, costly, f->g);
  }
  f->g_complete = costly || !f->any_costly;
  return status;
}

/* Removes the slack of a guard that has risen before it falls. */
static inline void kg_finder_take_back(kg_finder *f, int i) {
  kg_real *slack = f->slack && i >= f->first_slack ? f->slack + (i - f->first_slack) : NULL;
  kg_found *found = &f->found[i];
  if (slack && found->kind == KG_CROSSING && found->ga > *slack) {
    found->ga -= *slack;
    found->gb -= *slack;
    *slack = KG_C(0.0);
  }
}

/* Searches for the first event of guard i up to the place *limit, which it may reduce. */
static inline int kg_finder_scan(kg_finder *f, kg_stepper *s, int i, kg_real *limit) {
  const kg_real rounding = KG_C(4.0) * KG_EPSILON * KG_MAX(KG_ABS(s->t), KG_ABS(s->t_old)) / KG_ABS(s->h);
  const int is_short = KG_ABS(s->h) < KG_FINDER_SHORT * s->statistics.largest_step;
  kg_guard_line line;
  kg_zeros scan;
  kg_piece whole;
  int status;
  line.finder = f;
  line.stepper = s;
  line.guard = i;
  scan.value = kg_guard_value;
  scan.context = &line;
  scan.rule = kg_finder_rule(f, s, i);
  scan.side = f->side[i];
  scan.came = f->came[i];
  /* A sum is as uncertain as the rounding of its terms. */
  scan.noise = KG_MAX(kg_finder_noise(f, i), KG_C(2.0) * KG_EPSILON * KG_MAX(f->largest[i], f->excursion[i]));
  scan.unit = f->units[i];
  /* A guard that is zero within the errors of the integration during a step of usual length has no events. Short steps
   * on the surface show that it is crossed repeatedly. */
  scan.flat = scan.swing = scan.noise;
  if (!is_short) {
    scan.flat = KG_MAX(scan.noise, KG_FINDER_FLAT * scan.unit);
    scan.swing = KG_FINDER_SWING * scan.unit;
  }
  scan.shortest = KG_MAX(KG_BY_PRECISION(1e-9, 1e-6), KG_C(4.0) * rounding);
  scan.limit = *limit;
  scan.restless = f->restless[i];
  scan.falling = f->nearing[i];
  scan.effort = 0;
  kg_finder_piece(f, i, &whole);
  if ((kg_real)scan.side * whole.g[0] < KG_C(0.0)) {
    scan.side = f->rules[i] == KG_CONDITION ? scan.side : 0;
  }
  status = kg_zeros_first(&scan, &whole, &f->found[i]);
  kg_finder_take_back(f, i);
  if (status == KG_OK && f->found[i].kind == KG_CROSSING) {
    status = kg_zeros_root(&scan, &f->found[i], rounding);
  }
  f->side[i] = scan.side;
  f->came[i] = scan.side == 0 && is_short ? scan.came : 0; /* 0 after a usual step: it stays on the surface */
  f->restless[i] = scan.effort > 0;
  f->nearing[i] = f->found[i].kind != KG_NOTHING
                      ? 0
                      : kg_finder_nears(f, s, i, whole.g[3], KG_C(1.0) - kg_zeros_place(3));
  if (status == KG_OK && f->found[i].kind != KG_NOTHING) {
    /* The search for other guards continues a little further, since their events can be simultaneous. */
    *limit = KG_MIN(*limit, f->found[i].b + KG_FINDER_TOGETHER);
  }
  return status;
}

/* Keeps what a search changes. */
static inline void kg_finder_remember(kg_finder *f) {
  memcpy(f->before, f->side, 4 * (size_t)f->n * sizeof *f->side);
  if (f->slack) {
    memcpy(f->slack_before, f->slack, (size_t)(f->n - f->first_slack) * sizeof *f->slack);
  }
}

/* Forgets the last search, after the step was withdrawn: the guards are again those at its start. */
static inline int kg_finder_withdraw(kg_finder *f) {
  kg_real *end = f->g;
  f->g = f->start;
  f->start = end;
  f->g_complete = !f->any_costly;
  f->watched = 0;
  memcpy(f->side, f->before, 4 * (size_t)f->n * sizeof *f->side);
  if (f->slack) {
    memcpy(f->slack, f->slack_before, (size_t)(f->n - f->first_slack) * sizeof *f->slack);
  }
  return KG_REJECTED;
}

/* Looks for events in the step the stepper has just accepted. Returns KG_OK (none), KG_AT_EVENT: kg_finder_locate() is
 * to follow, or a negative outcome. */
static inline int kg_finder_step(kg_finder *f, kg_stepper *s) {
  const int costly = f->any_costly && (f->watched == 0 || kg_finder_doubts(f));
  kg_real limit = KG_C(1.0);
  int status, doubtful = 0, events = 0;
  f->watched = 0;
  status = kg_stepper_dense(s);
  if (status < 0) {
    return status;
  }
  status = kg_finder_sample(f, s, costly);
  for (int i = 0; i < f->n && status == KG_OK; ++i) {
    f->found[i].kind = KG_NOTHING;
    f->found[i].turn = KG_C(-1.0);
    f->fired[i] = 0;
    if (f->rules[i] != KG_IGNORED && (costly || !kg_finder_is_costly(f, i))) {
      kg_piece whole;
      kg_finder_piece(f, i, &whole);
      f->fired[i] = f->restless[i] || f->nearing[i] == KG_NEAR || !kg_zeros_keeps(whole.g, f->side[i]) ||
                    (f->rules[i] == KG_ANY && KG_ABS(whole.g[4]) < KG_FINDER_NEAR * KG_ABS(whole.g[3]));
      if (!f->fired[i]) {
        f->nearing[i] = KG_ABS(whole.g[4]) < KG_ABS(whole.g[3]);
      }
    }
    doubtful = doubtful || f->fired[i];
  }
  if (status == KG_OK && doubtful) {
    kg_finder_remember(f);
    status = kg_finder_units(f, s, s->t_old, s->y_old, f->start, costly);
  }
  for (int i = 0; i < f->n && status == KG_OK && doubtful; ++i) {
    if (f->fired[i]) {
      f->fired[i] = 0;
      status = kg_finder_scan(f, s, i, &limit);
      events = events || f->found[i].kind != KG_NOTHING;
    }
  }
  return status < 0 ? status : events ? KG_AT_EVENT : KG_OK;
}

/* The guard whose event comes first. */
static inline int kg_finder_earliest(const kg_finder *f) {
  int first = -1;
  for (int i = 0; i < f->n; ++i) {
    if (f->found[i].kind != KG_NOTHING && (first < 0 || f->found[i].b < f->found[first].b)) {
      first = i;
    }
  }
  return first;
}

/* Slope of a guard in t just before its zero; 0 where it jumps. */
static inline int kg_finder_slope(kg_finder *f, kg_stepper *s, int guard, kg_real *slope) {
  const kg_found *found = &f->found[guard];
  const kg_real length = KG_MIN(KG_MAX(KG_C(0.01) * (found->b - found->a), KG_BY_PRECISION(1e-6, 1e-3)), found->b);
  const kg_real time = length * s->h;
  kg_guard_line line;
  kg_real before;
  int status;
  line.finder = f;
  line.stepper = s;
  line.guard = guard;
  status = kg_guard_value(&line, found->b - length, &before);
  *slope = KG_ABS(found->gb) > KG_FINDER_JUMP * KG_ABS(before) || time == KG_C(0.0) ? KG_C(0.0)
                                                                                   : (found->gb - before) / time;
  return status;
}

/* The sign that guard i has just before this place of the step. The last change of sign that does not count is as
 * uncertain as the event: the sign is that before it in the nearer half of what lies between the two. */
static inline int kg_finder_before(const kg_finder *f, int i, kg_real place) {
  const kg_found *found = &f->found[i];
  const kg_real until = found->kind == KG_NOTHING ? found->turn : KG_C(0.5) * (found->turn + found->b);
  return found->turn >= KG_C(0.0) && place < until ? -f->side[i] : f->side[i];
}

/* Marks the guards that have their event at the present state of the run, at this place of the step of this length: the
 * first one, those that are zero too, and those that have crossed zero, even if they do so later on the dense output.
 * `side` becomes the sign before. */
static inline void kg_finder_mark(kg_finder *f, const kg_stepper *s, int first, kg_real place, kg_real length) {
  const kg_real blur = KG_FINDER_ROUNDING * KG_ABS(s->t / length);
  for (int i = 0; i < f->n; ++i) {
    const kg_found *found = &f->found[i];
    const int before = kg_finder_before(f, i, place), counts = kg_finder_counts(f, s, i, -before);
    const kg_real value = (kg_real)before * f->g[i];
    const int zero = found->kind != KG_NOTHING && found->b <= f->found[first].b + KG_FINDER_TOGETHER &&
                     KG_ABS(f->g[i]) <= kg_finder_noise(f, i);
    const int passed = found->kind == KG_CROSSING && before == f->side[i] && value <= KG_C(0.0);
    f->fired[i] = i == first || passed || zero ? found->kind : KG_NOTHING;
    if (!f->fired[i] && value < KG_C(0.0) && counts) {
      f->fired[i] = KG_CROSSING;
    }
    f->side[i] = !f->fired[i] && value < -kg_finder_noise(f, i) ? -before : before;
    f->nearing[i] = f->fired[i] ? 0 : kg_finder_nears(f, s, i, f->start[i], KG_C(1.0));
    if (f->fired[i] && found->b > found->a) {
      /* It is zero to within the rounding of its time, by its slope on the dense output. */
      f->rounding[i] = KG_MAX(f->rounding[i], blur * KG_ABS(found->gb - found->ga) / (found->b - found->a));
    }
  }
}

/* Takes the last step again, to the time t, and evaluates the guards there. `adjust` (or NULL) is called with its
 * context for what the host does to every accepted step; it returns 0 or a negative status. */
static inline int kg_finder_take(kg_finder *f, kg_stepper *s, kg_real t, int (*adjust)(void *), void *context) {
  int status = KG_OK;
  if (t != s->t) {
    status = kg_stepper_cut(s, t);
    if (status == KG_OK && adjust) {
      status = adjust(context);
    }
  }
  return status == KG_OK ? kg_finder_evaluate(f, t, s->y, f->any_costly, f->g) : status;
}

/* How much time after the end of the last step a guard that has not jumped there does so: on the dense output, which is
 * followed from `least` later on; 0: it does not jump in the time of another step. */
static inline int kg_finder_delay(kg_finder *f, kg_stepper *s, int guard, kg_real least, kg_real *delay) {
  const kg_real accuracy = KG_ABS(least / s->h);
  kg_guard_line line;
  kg_zeros search;
  kg_found found;
  line.finder = f;
  line.stepper = s;
  line.guard = guard;
  search.value = kg_guard_value;
  search.context = &line;
  found.a = KG_C(1.0);
  found.ga = f->g[guard];
  *delay = KG_C(0.0);
  for (kg_real length = accuracy; length <= KG_C(1.0); length *= KG_C(4.0)) {
    found.b = KG_C(1.0) + length;
    if (kg_guard_value(&line, found.b, &found.gb) < 0) {
      return KG_OK; /* there is no value beyond the step */
    }
    if (!(found.ga * found.gb > KG_C(0.0))) {
      const int status = kg_zeros_root(&search, &found, accuracy);
      *delay = KG_MAX(found.b - KG_C(1.0), accuracy) * s->h;
      return status;
    }
  }
  return KG_OK;
}

/* Ends the last step at its first event; `adjust` and its context: kg_finder_take(). Afterwards `fired` says which
 * guards have their event here, and `g` holds the guards. Returns KG_AT_EVENT; KG_REJECTED: the error of the shortened
 * step is too large, a shorter step from its start is to follow (kg_stepper_cut); or a negative outcome. */
static inline int kg_finder_locate(kg_finder *f, kg_stepper *s, int (*adjust)(void *), void *context) {
  const int first = kg_finder_earliest(f);
  const kg_real t_old = s->t_old, h = s->h, t_end = s->t;
  const kg_real rounding = KG_C(4.0) * KG_EPSILON * KG_MAX(KG_ABS(t_old), KG_ABS(t_end));
  kg_real t = t_old + f->found[first].b * h, slope = KG_C(0.0), t_last = t, g_last = KG_C(0.0);
  int status = f->found[first].kind == KG_CROSSING ? kg_finder_slope(f, s, first, &slope) : KG_OK;
  int jumps = slope == KG_C(0.0);
  if (KG_ABS(t - t_old) < rounding) {
    t = t_old + s->direction * rounding;
  }
  for (int k = 0; k < KG_FINDER_CORRECTIONS && status == KG_OK; ++k) {
    kg_real correction = KG_C(0.0);
    status = kg_finder_take(f, s, t, adjust, context);
    if (status != KG_OK) {
      break;
    }
    /* A guard that has hardly changed jumps, as seen from here. */
    jumps = jumps || (k > 0 && KG_ABS(f->g[first]) > KG_MAX(KG_C(0.5) * KG_ABS(g_last), kg_finder_noise(f, first)));
    if (!jumps) {
      slope = k > 0 ? (f->g[first] - g_last) / (t - t_last) : slope;
      correction = -f->g[first] / slope;
    } else if (f->found[first].kind == KG_CROSSING && f->found[first].ga * f->g[first] > KG_C(0.0)) {
      const kg_real last = KG_ABS(t - t_last);
      status = kg_finder_delay(f, s, first, KG_MAX(rounding, KG_C(4.0) * last), &correction);
      correction = (t + correction - t_end) * s->direction > KG_C(0.0) ? t_end - t : correction;
    }
    if (KG_ABS(f->g[first]) <= KG_FINDER_ACCURACY * f->units[first] || KG_ABS(correction) < rounding ||
        (!jumps && KG_ABS(correction) > KG_C(0.1) * KG_ABS(h)) || (t + correction - t_old) * s->direction < rounding ||
        (t + correction - t_end) * s->direction > KG_C(0.0)) {
      break;
    }
    t_last = t;
    g_last = f->g[first];
    t += correction;
  }
  if (status != KG_OK) {
    return status == KG_REJECTED ? kg_finder_withdraw(f) : status;
  }
  f->g_complete = 1;
  status = kg_finder_units(f, s, s->t, s->y, f->g, f->any_costly);
  kg_finder_mark(f, s, first, (t - t_old) / h, h);
  return status < 0 ? status : KG_AT_EVENT;
}

#ifdef __cplusplus
}
#endif

#endif
