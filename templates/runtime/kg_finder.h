/* kg_finder.h - evaluates the guards g_i(t, y) of an integration, whose zeros are events, with signs and resolution.
 *
 * If a guard is zero at a start or restart, leaving zero is not an event; returning to zero is. What counts as zero
 * follows from the tolerances of the integration and from rounding.
 */
#ifndef KG_FINDER_H
#define KG_FINDER_H

#include "kg_zeros.h"
#include "kg_steppers.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KG_IGNORED 3 /* rule of a guard without events; others: kg_zeros.h, signs in the direction of time */

/* Units of tolerance by which a guard that remains zero may move, at the end of a step and on its dense output, as
 * explicit steps at the limit of stability make it. */
#define KG_FINDER_FLAT KG_C(10.0)
#define KG_FINDER_SWING KG_C(1e3)
/* Values below this fraction of the change by one unit of tolerance count as zero, */
#define KG_FINDER_NOISE KG_C(1e-2)
/* and values below the change in this fraction of t, in which t is rounded. */
#define KG_FINDER_ROUNDING (KG_BY_PRECISION(64.0, 1.0) * KG_EPSILON)
/* A guard that may turn at the end of a step has fallen to this fraction since the last sample in it. */
#define KG_FINDER_NEAR KG_C(1e-3)
#define KG_NEAR 2
/* A guard that changes by more than this fraction of its size when the state moves by its tolerance may have jumped. */
#define KG_FINDER_STEEP KG_C(1e-3)
/* Relative and absolute tolerance for runs with fixed steps, which have no tolerance of their own. */
#define KG_FINDER_TOLERANCE KG_BY_PRECISION(1e-10, 1e-5)

/* The host fills the fields up to `rules`; it can read `fired`, `found` and `g` at an event. */
typedef struct {
  int n; /* guards */
  /* Writes n guards; returns 0 or a negative outcome. With costly == 0 those marked costly may be left out. */
  int (*evaluate)(void *context, kg_real t, const kg_real *y, int costly, kg_real *g);
  void *context;
  const int *rules;  /* KG_FALLING ... KG_IGNORED */
  const int *costly; /* n flags, which may change at an event, or NULL: none */
  /* What evaluate() adds to the guards from number first_slack on, since they may start at zero or below; NULL: none.
   * Removed from a guard that has risen in the step in which it falls. */
  kg_real *slack;
  int first_slack;

  int *fired;    /* 0, KG_CROSSING, KG_TOUCH or KG_CARRIED */
  kg_real *g;    /* guards at the end of the last step, or at the event, before anything happens there */

  int *side;      /* sign of each guard before the next step; 0: on the surface */
  int *came;      /* how a guard has come to the surface (kg_zeros) */
  int *restless;  /* whether the last step had to be divided for a guard; 1 before the first step */
  int *nearing;   /* whether a guard approached zero at the end of the last step, KG_NEAR: and is next to it */
  int any_costly;
  int watched;    /* calls of kg_finder_watch() since the last step */
  int g_complete; /* g contains the costly guards too */
  kg_found *found;
  kg_real *start;   /* guards at the start of the last step */
  kg_real *samples; /* at the places 1, 2, 3 and 5 of kg_zeros.h */
  kg_real *units;   /* changes of the guards when the state moves by one unit of its tolerance */
  kg_real *further; /* guards where the state has moved by two units */
  kg_real *rounding; /* changes of the guards when t moves by its rounding */
  kg_real *lowest;  /* of the costly guards at the stages of the last step */
  kg_real *highest;
  kg_real *excursion; /* largest magnitudes since the last event */
  kg_real *largest;   /* and in the run */
  /* What a search on a step changes, as it was before: kg_finder_withdraw(). */
  int *before; /* side, restless, came, nearing */
  kg_real *slack_before;
  kg_real *scratch;
  kg_real *y;
} kg_finder;

/* Lengths of the workspaces: kg_real, int, kg_found. */
static inline size_t kg_finder_work(int n, int n_y) { return 15 * (size_t)n + (size_t)n_y; }
static inline size_t kg_finder_integers(int n) { return 9 * (size_t)n; }

static inline void kg_finder_layout(kg_finder *f, kg_real *work, int *integers, kg_found *found) {
  const ptrdiff_t n = f->n;
  f->side = integers;
  f->restless = integers + n;
  f->came = integers + 2 * n;
  f->nearing = integers + 3 * n;
  f->fired = integers + 4 * n;
  f->before = integers + 5 * n;
  f->found = found;
  f->g = work;
  f->start = work + n;
  f->samples = work + 2 * n;
  f->units = work + 6 * n;
  f->rounding = work + 7 * n;
  f->lowest = work + 8 * n;
  f->highest = work + 9 * n;
  f->scratch = work + 10 * n;
  f->excursion = work + 11 * n;
  f->largest = work + 12 * n;
  f->slack_before = work + 13 * n;
  f->further = work + 14 * n;
  f->y = work + 15 * n;
  f->any_costly = 0;
  f->watched = 0;
  for (ptrdiff_t i = 0; i < n; ++i) {
    f->side[i] = f->fired[i] = f->came[i] = f->nearing[i] = 0;
    f->restless[i] = 1;
    f->rounding[i] = f->largest[i] = KG_C(0.0);
  }
}

static inline int kg_finder_is_costly(const kg_finder *f, int i) { return f->costly && f->costly[i]; }

/* Starts a new part of the run; all guards are known at its start. */
static inline void kg_finder_begin(kg_finder *f) {
  f->watched = 0;
  f->g_complete = 1;
  f->any_costly = 0;
  for (int i = 0; i < f->n; ++i) {
    f->any_costly = f->any_costly || kg_finder_is_costly(f, i);
    f->largest[i] = KG_MAX(f->largest[i], f->excursion[i]);
    f->excursion[i] = KG_C(0.0);
  }
}

/* The rule of a guard in the direction of the run. */
static inline int kg_finder_rule(const kg_finder *f, const kg_stepper *s, int i) {
  const int rule = f->rules[i];
  return rule < KG_CONDITION && s->direction < KG_C(0.0) ? -rule : rule;
}

/* Guards at one point, noting their size. */
static inline int kg_finder_evaluate(kg_finder *f, kg_real t, const kg_real *y, int costly, kg_real *g) {
  const int status = f->evaluate(f->context, t, y, costly, g);
  if (status < 0) {
    return status;
  }
  for (int i = 0; i < f->n; ++i) {
    if (f->rules[i] != KG_IGNORED && (costly || !kg_finder_is_costly(f, i))) {
      if (!KG_ISFINITE(g[i])) {
        return KG_NOT_FINITE;
      }
      f->excursion[i] = KG_MAX(f->excursion[i], KG_ABS(g[i]));
    }
  }
  return KG_OK;
}

/* Notes guards that became known at a stage of a step, for nothing, so that costly guards far from zero need not be
 * sampled. Of use only when it is called at every stage. */
static inline void kg_finder_watch(kg_finder *f, const kg_real *g) {
  for (int i = 0; i < f->n; ++i) {
    f->lowest[i] = f->watched ? KG_MIN(f->lowest[i], g[i]) : g[i];
    f->highest[i] = f->watched ? KG_MAX(f->highest[i], g[i]) : g[i];
  }
  ++f->watched;
}

/* Returns whether a costly guard came so close to zero at the stages that they can have missed a zero. */
static inline int kg_finder_doubts(const kg_finder *f) {
  for (int i = 0; i < f->n; ++i) {
    if (kg_finder_is_costly(f, i) && f->rules[i] != KG_IGNORED) {
      /* If all stages lie on the other side, the guard has crossed zero. */
      const kg_real nearest = f->side[i] > 0 ? f->lowest[i] : -f->highest[i];
      if (f->side[i] == 0 || !(nearest > KG_C(0.5) * (f->highest[i] - f->lowest[i]))) {
        return 1;
      }
    }
  }
  return 0;
}

/* Guards where every component of the state y has moved by about so many times its tolerance. */
static inline int kg_finder_shift(kg_finder *f, const kg_stepper *s, kg_real t, const kg_real *y, kg_real times,
                                  int costly, kg_real *g) {
  const kg_real *rtol = s->options.rtol, *atol = s->options.atol;
  kg_real share = KG_C(0.5);
  for (int i = 0; i < s->ode.n; ++i) {
    const kg_real unit = rtol ? atol[i] + rtol[i] * KG_ABS(y[i]) : KG_FINDER_TOLERANCE * (KG_C(1.0) + KG_ABS(y[i]));
    /* Irregular fractions from 1/2 to 1 with both signs, so that the changes do not cancel. */
    share += KG_C(0.61803398874989485);
    share -= KG_FLOOR(share);
    f->y[i] = y[i] + times * unit * (KG_C(0.5) + KG_C(0.5) * share) * (i % 2 == 0 ? KG_C(1.0) : KG_C(-1.0));
  }
  return f->evaluate(f->context, t, f->y, costly, g);
}

/* How much the guards, g at (t, y), change when every component of the state moves by about its tolerance, and when t
 * moves by its rounding. What a guard jumps by next to the state is no such change: it stays away from one of two
 * moves, one behind the other. */
static inline int kg_finder_units(kg_finder *f, const kg_stepper *s, kg_real t, const kg_real *y, const kg_real *g,
                                  int costly) {
  const kg_real later = t + KG_FINDER_ROUNDING * KG_ABS(t);
  int status = later == t ? KG_OK : f->evaluate(f->context, later, y, costly, f->rounding), steep = 0;
  status = status < 0 ? status : kg_finder_shift(f, s, t, y, KG_C(1.0), costly, f->units);
  for (int i = 0; i < f->n && status >= 0; ++i) {
    const kg_real size = KG_MAX(f->largest[i], f->excursion[i]);
    const int is_known = f->rules[i] != KG_IGNORED && (costly || !kg_finder_is_costly(f, i));
    steep = steep || (is_known && KG_ABS(f->units[i] - g[i]) > KG_FINDER_STEEP * size);
  }
  if (steep && status >= 0) {
    status = kg_finder_shift(f, s, t, y, KG_C(2.0), costly, f->further);
  }
  for (int i = 0; i < f->n && status >= 0; ++i) {
    if (costly || !kg_finder_is_costly(f, i)) {
      const kg_real change = KG_ABS(f->units[i] - g[i]);
      f->units[i] = steep ? KG_MIN(change, KG_ABS(f->further[i] - f->units[i])) : change;
      f->rounding[i] = later == t ? KG_C(0.0) : KG_ABS(f->rounding[i] - g[i]);
    }
  }
  return status < 0 ? status : KG_OK;
}

static inline kg_real kg_finder_noise(const kg_finder *f, int i) {
  return KG_MAX(KG_FINDER_NOISE * f->units[i], f->rounding[i]);
}

static inline int kg_finder_sign(kg_real g, kg_real noise) { return g > noise ? 1 : g < -noise ? -1 : 0; }

/* Whether a change of guard i to this sign is an event. */
static inline int kg_finder_counts(const kg_finder *f, const kg_stepper *s, int i, int after) {
  return f->rules[i] == KG_ANY || (f->rules[i] < KG_CONDITION && kg_finder_rule(f, s, i) == after);
}

/* Begins at the present state of the stepper. Returns KG_OK or a negative status. */
static inline int kg_finder_start(kg_finder *f, const kg_stepper *s) {
  int status = kg_finder_evaluate(f, s->t, s->y, 1, f->g);
  if (status == KG_OK) {
    status = kg_finder_units(f, s, s->t, s->y, f->g, 1);
  }
  for (int i = 0; i < f->n && status == KG_OK; ++i) {
    f->side[i] = f->rules[i] == KG_CONDITION ? 1 : kg_finder_sign(f->g[i], kg_finder_noise(f, i));
    f->fired[i] = f->came[i] = f->nearing[i] = 0;
  }
  kg_finder_begin(f);
  return status;
}

/* Whether a guard, which had the value `from` this fraction of the last step ago, approaches zero. KG_NEAR: it is so
 * close that it touches zero if it turns here, within a unit, or within what it changes by when t moves by its
 * rounding. Not one that has been next to zero all the time. */
static inline int kg_finder_nears(const kg_finder *f, const kg_stepper *s, int i, kg_real from, kg_real fraction) {
  const kg_real value = KG_ABS(f->g[i]), zero = KG_MAX(f->units[i], kg_finder_noise(f, i));
  const kg_real time = fraction * KG_ABS(s->h), blur = KG_FINDER_ROUNDING * KG_ABS(s->t) * KG_ABS(from - f->g[i]);
  const int is_near = value < KG_FINDER_NEAR * KG_ABS(from) && (value <= zero || value * time <= blur);
  if (f->rules[i] != KG_ANY || f->side[i] == 0 || !(KG_ABS(from) > KG_FINDER_FLAT * f->units[i])) {
    return 0;
  }
  return is_near ? KG_NEAR : value < KG_ABS(from);
}

/* The side of guard i after an event, a stop or a jump, where its value is after[i]. Returns KG_CARRIED if the jump
 * makes it cross zero, which is an event of its own, and KG_CROSSING if it crosses zero here by itself. start[i]: what
 * counted as zero before. */
static inline int kg_finder_land(kg_finder *f, const kg_stepper *s, int i, const kg_real *after) {
  const kg_real noise = KG_MAX(f->start[i], kg_finder_noise(f, i));
  const int before = f->side[i], fired = f->fired[i];
  int sign = kg_finder_sign(after[i], noise);
  if (f->rules[i] >= KG_CONDITION) {
    f->side[i] = 1;
    return KG_NOTHING;
  }
  if (fired) {
    f->nearing[i] = 0;
  }
  if (KG_ABS(after[i] - f->g[i]) <= noise) {
    if (!fired && (kg_real)before * after[i] < KG_C(0.0) && kg_finder_counts(f, s, i, -before)) {
      return KG_CROSSING; /* it crosses zero at this very time, where the step ended for another reason */
    }
    /* It has not jumped. If it had its event, it is on the surface, or beyond. */
    f->side[i] = !fired || fired == KG_CARRIED ? before : fired == KG_TOUCH || sign == before ? 0 : sign;
    f->came[i] = fired == KG_CROSSING ? KG_CROSSED : fired ? 0 : f->came[i];
    return KG_NOTHING;
  }
  f->nearing[i] = 0;
  if (before == 0 && !fired) {
    sign = kg_finder_sign(after[i], KG_FINDER_FLAT * f->units[i]);
  }
  f->side[i] = sign;
  f->came[i] = sign == 0 && !fired ? before : 0;
  return !fired && before * sign < 0 && kg_finder_counts(f, s, i, sign) ? KG_CARRIED : KG_NOTHING;
}

/* Continues after an event, or after a stop at which the host may have changed its inputs. Returns KG_OK; KG_AT_EVENT
 * if guards that had no event there have jumped across zero since `g` was computed, which `fired` marks; or a negative
 * status. */
static inline int kg_finder_restart(kg_finder *f, const kg_stepper *s) {
  int status = kg_finder_evaluate(f, s->t, s->y, 1, f->scratch), moved = 0, again = 0;
  for (int i = 0; i < f->n && status == KG_OK; ++i) {
    moved = moved || (f->rules[i] < KG_CONDITION && f->scratch[i] != f->g[i]);
    f->start[i] = kg_finder_noise(f, i); /* before the jump */
  }
  if (moved) {
    status = kg_finder_units(f, s, s->t, s->y, f->scratch, 1);
  }
  for (int i = 0; i < f->n && status == KG_OK; ++i) {
    f->fired[i] = kg_finder_land(f, s, i, f->scratch);
    f->g[i] = f->scratch[i];
    again = again || f->fired[i];
  }
  kg_finder_begin(f);
  return status < 0 ? status : again ? KG_AT_EVENT : KG_OK;
}

/* All guards at the present state, before something happens there. */
static inline int kg_finder_complete(kg_finder *f, const kg_stepper *s) {
  const int status = f->g_complete ? KG_OK : kg_finder_evaluate(f, s->t, s->y, 1, f->g);
  f->g_complete = f->g_complete || status == KG_OK;
  return status;
}

/* The guards have changed a little at the end of a step without event, and no forces are known there. */
static inline int kg_finder_refresh(kg_finder *f, const kg_stepper *s) {
  f->g_complete = !f->any_costly;
  return kg_finder_evaluate(f, s->t, s->y, 0, f->g);
}

#ifdef __cplusplus
}
#endif

#endif
