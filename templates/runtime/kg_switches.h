/* kg_switches.h - finds the instants at which functions of time and parameters of a model jump or have a kink.
 *
 * A switch of a model is a function a(t; p) with levels: a relation, Max, Min, Abs, sign or Heaviside of t switches
 * where the difference of both sides is zero, floor and Mod of t where their argument is an integer, a spline of t at
 * breakpoints. A run that ends a step at each of these instants integrates smooth functions only, and cannot step over
 * what happens between two of them.
 *
 * Where a is affine in t, the instants are known. Where it is affine between the instants of other switches, as a
 * sawtooth is, so are the next ones. Elsewhere a is sampled in pieces as guards of events are (kg_zeros.h): a turn of
 * the fastest angle in a has six pieces or more, and so has a whole run KG_SWITCH_SAMPLING; what happens twice within a
 * quarter of a piece may be missed.
 *
 * Instants that differ by KG_SWITCH_MARGIN roundings or less are one: between two of them, what switches is evaluated
 * KG_SWITCH_CLEARANCE roundings away from both (kg_instants.h).
 */
#ifndef KG_SWITCHES_H
#define KG_SWITCHES_H

#include "kg_zeros.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KG_SWITCH_MARGIN KG_C(6.0)    /* roundings: KG_EPSILON times the magnitude of the time */
#define KG_SWITCH_CLEARANCE KG_C(8.0)
#define KG_SWITCH_SAMPLING KG_C(256.0)
#define KG_SWITCH_PATIENCE 8192 /* pieces without an instant, after which they become twice as long */

typedef struct {
  int n; /* switches; 0: the model has none, and nothing else is used */
  kg_real longest; /* of the pieces in which curved switches are sampled; 0: a part of the first interval asked for */
  const kg_switch_info *info;
  const kg_function *function;
  const kg_real *p;
  kg_real *origin; /* values of the function at t = 0, 2 n */
  kg_real *values; /* and at the present time, 2 n */
  kg_real *from;   /* the interval over which a curved switch is known, n each: it begins here */
  kg_real *until;  /* and ends here, */
  kg_real *met;    /* where the switch acts if this is not 0 */
  kg_real *scratch;
} kg_switches;

/* Length of the workspace, in kg_real; 0 for a model without switches. */
static inline size_t kg_switches_work(const kg_model *model) {
  const kg_function *function = model->n_switches > 0 ? kg_find_function(model, "switches") : NULL;
  return function ? (size_t)function->work + 7 * (size_t)model->n_switches : 0;
}

/* The functions and their rates at the time t, which is all that they read besides parameters. */
static inline int kg_switches_call(const kg_switches *w, kg_real t, kg_real *out) {
  const kg_point at = {t, NULL, NULL, NULL, NULL, NULL, NULL};
  return w->function->evaluate(&at, w->p, w->scratch, out);
}

/* Prepares the search for the prepared parameters p, which are not copied; again where they have changed. Returns KG_OK
 * or a negative status of the function. */
static inline int kg_switches_open(kg_switches *w, const kg_model *model, const kg_real *p, kg_real *work) {
  const ptrdiff_t n = model->n_switches;
  memset(w, 0, sizeof *w);
  w->function = n > 0 ? kg_find_function(model, "switches") : NULL;
  if (w->function == NULL) {
    return KG_OK;
  }
  w->n = model->n_switches;
  w->info = model->switches;
  w->p = p;
  w->origin = work;
  w->values = work + 2 * n;
  w->from = work + 4 * n;
  w->until = work + 5 * n;
  w->met = work + 6 * n;
  w->scratch = work + 7 * n;
  for (ptrdiff_t i = 0; i < 3 * n; ++i) {
    w->from[i] = KG_C(0.0);
  }
  return kg_switches_call(w, KG_C(0.0), w->origin);
}

static inline int kg_switches_evaluate(kg_switches *w, kg_real t) { return kg_switches_call(w, t, w->values); }

/* Whether an instant is after t by more than rounding. */
static inline int kg_switches_is_after(kg_real instant, kg_real t, kg_real direction) {
  return (instant - t) * direction > KG_SWITCH_MARGIN * KG_EPSILON * KG_ABS(t);
}

/* *next becomes the instant if it is after t and before *next. */
static inline int kg_switches_note(kg_real instant, kg_real t, kg_real direction, kg_real *next) {
  if (!kg_switches_is_after(instant, t, direction)) {
    return 0;
  }
  if (kg_switches_is_after(*next, instant, direction)) {
    *next = instant;
  }
  return 1;
}

/* The next instant of a function that is affine, with value[0] and slope value[1] at the time `at`. */
static inline void kg_switches_affine(const kg_switch_info *info, kg_real at, const kg_real *value, kg_real t,
                                      kg_real direction, kg_real *next) {
  const kg_real a = value[0], slope = value[1], now = a + slope * (t - at);
  const int rises = slope * direction > KG_C(0.0);
  int low = 0, high = info->n_levels;
  if (!KG_ISFINITE(now) || !(KG_ABS(slope) > KG_C(0.0))) {
    return;
  }
  if (info->n_levels == 0) {
    const kg_real whole = rises ? KG_FLOOR(now) : KG_CEIL(now);
    for (int k = -1; k < 4; ++k) { /* `now` is rounded: the level before may be still to come */
      if (kg_switches_note(at + (whole + (kg_real)(rises ? k : -k) - a) / slope, t, direction, next)) {
        return;
      }
    }
    return;
  }
  while (low < high) { /* the first level, in the order in which they are met, that is after t */
    const int middle = low + (high - low) / 2;
    const kg_real level = info->levels[rises ? middle : info->n_levels - 1 - middle];
    if (kg_switches_is_after(at + (level - a) / slope, t, direction)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (low < info->n_levels) {
    (void)kg_switches_note(at + (info->levels[rises ? low : info->n_levels - 1 - low] - a) / slope, t, direction, next);
  }
}

/* A curved switch over the piece from t to t + length: a product of the distances from the levels around its value. */
typedef struct {
  kg_switches *switches;
  int number;
  kg_real t, length;
  int n_levels;
  kg_real levels[3];
} kg_switches_piece;

static inline int kg_switches_distance(void *context, kg_real place, kg_real *g) {
  const kg_switches_piece *piece = (const kg_switches_piece *)context;
  kg_switches *w = piece->switches;
  const int status = kg_switches_evaluate(w, piece->t + place * piece->length);
  const kg_real a = w->values[2 * (ptrdiff_t)piece->number];
  kg_real product = KG_C(1.0);
  for (int k = 0; k < piece->n_levels; ++k) {
    product *= a - piece->levels[k];
  }
  *g = product;
  return status < 0 ? status : KG_ISFINITE(product) ? KG_OK : KG_NOT_FINITE;
}

/* The levels around the value a: the one next to it and its neighbors. One of them is met first. */
static inline void kg_switches_surround(const kg_switch_info *info, kg_real a, kg_switches_piece *piece) {
  int low = 0, high = info->n_levels - 1;
  piece->n_levels = 0;
  if (info->n_levels == 0) {
    const kg_real whole = KG_FLOOR(a + KG_C(0.5));
    for (int k = -1; k <= 1; ++k) {
      piece->levels[piece->n_levels++] = whole + (kg_real)k;
    }
    return;
  }
  while (low < high) { /* the first level above a, or the last one */
    const int middle = low + (high - low) / 2;
    if (info->levels[middle] > a) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  low = low > 0 && a - info->levels[low - 1] < info->levels[low] - a ? low - 1 : low;
  for (int k = low - 1; k <= low + 1; ++k) {
    if (k >= 0 && k < info->n_levels) {
      piece->levels[piece->n_levels++] = info->levels[k];
    }
  }
}

/* Whether the distance g at the place is zero to within two roundings of the time; `inwards`: a place so much nearer to
 * the middle of the piece. */
static inline int kg_switches_vanishes(kg_switches_piece *piece, kg_real inwards, kg_real g, kg_real *noise) {
  kg_real beside;
  const int status = kg_switches_distance(piece, inwards, &beside);
  *noise = KG_ABS(beside - g);
  return status < 0 ? status : KG_ABS(g) <= *noise;
}

/* The first zero in a piece with the values of `whole`. */
static inline int kg_switches_search(kg_switches_piece *piece, const kg_piece *whole, kg_real rounding,
                                     kg_found *found) {
  kg_zeros search;
  kg_real noise;
  int status;
  memset(&search, 0, sizeof search);
  search.value = kg_switches_distance;
  search.context = piece;
  search.rule = KG_ANY;
  search.restless = 1;
  search.shortest = rounding;
  search.limit = KG_C(1.0);
  status = kg_switches_vanishes(piece, KG_C(2.0) * rounding, whole->g[0], &noise);
  if (status < 0) {
    return status;
  }
  search.noise = search.flat = search.swing = noise;
  search.side = status ? 0 : whole->g[0] > KG_C(0.0) ? 1 : -1;
  status = kg_zeros_first(&search, whole, found);
  if (status >= 0 && found->kind == KG_CROSSING) {
    return kg_zeros_root(&search, found, rounding);
  }
  if (status >= 0 && found->kind == KG_NOTHING && search.side != 0) {
    /* A zero at the end of a piece would be lost between it and the next one, which starts there. */
    status = kg_switches_vanishes(piece, KG_C(1.0) - KG_C(2.0) * rounding, whole->g[4], &noise);
    found->kind = status > 0 ? KG_CROSSING : KG_NOTHING;
    found->b = KG_C(1.0);
  }
  return status;
}

/* Samples a piece. Returns 1: a level is crossed at *end, the first time in it; 0: none is before *end, which is the
 * end of the piece or where a level was touched only; or a negative status. Times at which the function has no value
 * are not looked at: what a run evaluates has one. */
static inline int kg_switches_sample(kg_switches_piece *piece, kg_real *end) {
  const kg_real magnitude = KG_MAX(KG_ABS(piece->t), KG_ABS(piece->t + piece->length));
  const kg_real rounding = KG_EPSILON * magnitude / KG_ABS(piece->length);
  kg_piece whole;
  kg_found found;
  int status = kg_switches_evaluate(piece->switches, piece->t);
  kg_switches_surround(piece->switches->info + piece->number,
                       piece->switches->values[2 * (ptrdiff_t)piece->number], piece);
  whole.a = KG_C(0.0);
  whole.b = KG_C(1.0);
  found.kind = KG_NOTHING;
  for (int k = 0; k < KG_ZEROS_VALUES && status >= 0; ++k) {
    status = kg_switches_distance(piece, kg_zeros_place(k), whole.g + k);
  }
  if (status >= 0) {
    status = kg_switches_search(piece, &whole, rounding, &found);
  }
  *end = piece->t + piece->length;
  if (status < 0) {
    return status == KG_NOT_FINITE ? 0 : status;
  }
  if (found.kind != KG_NOTHING) {
    *end = piece->t + KG_MAX(found.b, KG_C(2.0) * rounding) * piece->length;
  }
  return found.kind == KG_CROSSING;
}

/* Length of the next piece after t of a curved switch. */
static inline kg_real kg_switches_length(const kg_switches *w, int number, const kg_real *values) {
  const kg_real angle = KG_ABS(values[2 * (ptrdiff_t)number + 1]);
  return angle * w->longest > KG_C(1.0) && KG_ISFINITE(angle) ? KG_C(1.0) / angle : w->longest;
}

/* The next instant of a curved switch after t and before *next: known from before, or sampled. */
static inline int kg_switches_curved(kg_switches *w, int number, kg_real t, kg_real direction, kg_real *next) {
  const kg_real away = KG_SWITCH_CLEARANCE * KG_EPSILON;
  kg_switches_piece piece = {w, number, KG_C(0.0), KG_C(0.0), 0, {KG_C(0.0), KG_C(0.0), KG_C(0.0)}};
  kg_real stretch = KG_C(1.0), *until = w->until + number;
  int status = KG_OK;
  const int known = (t - w->from[number]) * direction >= KG_C(0.0) && kg_switches_is_after(*until, t, direction);
  if (!known) {
    w->from[number] = t;
    *until = t + direction * away * KG_ABS(t);
    w->met[number] = KG_C(0.0);
  }
  for (long count = 1; w->met[number] == KG_C(0.0) && (*next - *until) * direction > away * KG_ABS(*next); ++count) {
    const kg_real left = KG_ABS(*next - *until) - away * KG_ABS(*next);
    status = kg_switches_evaluate(w, *until);
    piece.t = *until;
    piece.length = direction * KG_MIN(left, stretch * kg_switches_length(w, number, w->values));
    if (status < 0 || piece.t + piece.length == piece.t) {
      return status;
    }
    status = kg_switches_sample(&piece, until);
    if (status < 0) {
      return status;
    }
    w->met[number] = (kg_real)status;
    stretch = count % KG_SWITCH_PATIENCE == 0 ? KG_C(2.0) * stretch : stretch;
  }
  if (w->met[number] != KG_C(0.0)) {
    (void)kg_switches_note(*until, t, direction, next);
  }
  return KG_OK;
}

/* The next instant after t (in the direction of time, not beyond t_limit) at which a function of time and parameters of
 * this model jumps or has a kink; t_limit if there is none. An instant at which a run has stopped is not after t.
 * Curved switches are not looked for up to an infinite t_limit, and are found at least cost when this is called with
 * the end of the run for t_limit. Returns KG_OK or a negative status. */
static inline int kg_switches_next(kg_switches *w, kg_real t, kg_real direction, kg_real t_limit, kg_real *next) {
  int status = KG_OK;
  *next = t_limit;
  if (w->n > 0 && !(w->longest > KG_C(0.0)) && KG_ISFINITE(t_limit)) {
    w->longest = KG_ABS(t_limit - t) / KG_SWITCH_SAMPLING;
  }
  for (int i = 0; i < w->n && status >= 0; ++i) {
    const kg_switch_info *info = w->info + i;
    if (info->shape == KG_SWITCH_AFFINE) {
      kg_switches_affine(info, KG_C(0.0), w->origin + 2 * (ptrdiff_t)i, t, direction, next);
    } else if (info->shape == KG_SWITCH_PIECES) {
      /* The switches before this one act nowhere between t and *next. */
      const kg_real inside = KG_ISFINITE(*next) ? t + KG_C(0.5) * (*next - t) : t + direction * (KG_C(1.0) + KG_ABS(t));
      status = kg_switches_evaluate(w, inside);
      kg_switches_affine(info, inside, w->values + 2 * (ptrdiff_t)i, t, direction, next);
    } else if (KG_ISFINITE(*next)) {
      status = kg_switches_curved(w, i, t, direction, next);
    }
  }
  return status < 0 ? status : KG_OK;
}

#ifdef __cplusplus
}
#endif

#endif
