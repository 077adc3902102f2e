/* kg_instants.h - keeps the instants at which what a run knows to change in time jumps or has a kink.
 *
 * The run ends a step at each of them. Between two of them everything is evaluated a few roundings away from both, so
 * that the step that ends at an instant sees the values before it, and the next step those after it.
 */
#ifndef KG_INSTANTS_H
#define KG_INSTANTS_H

#include "kg_switches.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  /* The host fills these; all else is zero. */
  int n;
  const kg_real *times;  /* n instants, ascending: those of inputs */
  kg_switches *switches; /* those of the model; NULL: none */

  /* What follows is private. */
  kg_real direction; /* +1 or -1 */
  kg_real next;  /* the next instant, or the end of the run */
  kg_real first; /* what is evaluated in the present interval is evaluated between first and last */
  kg_real last;
} kg_instants;

/* The time in the present interval at which something is evaluated for the time t. */
static inline kg_real kg_instants_inside(const kg_instants *k, kg_real t) {
  return k == NULL ? t : t < k->first ? k->first : t > k->last ? k->last : t;
}

/* The next of the `times` after t, if it is before `next`. */
static inline kg_real kg_instants_of_inputs(const kg_instants *k, kg_real t, kg_real next) {
  const int forward = k->direction > KG_C(0.0);
  int low = 0, high = k->n;
  while (low < high) { /* the first one, in the order in which they are met, that is after t */
    const int middle = low + (high - low) / 2;
    if (kg_switches_is_after(k->times[forward ? middle : k->n - 1 - middle], t, k->direction)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (low < k->n) {
    (void)kg_switches_note(k->times[forward ? low : k->n - 1 - low], t, k->direction, &next);
  }
  return next;
}

/* Begins the interval after t in a run to t_end. Returns KG_OK or a negative status of the model's function. */
static inline int kg_instants_pass(kg_instants *k, kg_real t, kg_real t_end) {
  const kg_real away = KG_SWITCH_CLEARANCE * KG_EPSILON;
  const kg_real limit = t_end + k->direction * away * KG_ABS(t_end); /* the end may be an instant too */
  const int status = k->switches ? kg_switches_next(k->switches, t, k->direction, limit, &k->next) : KG_OK;
  kg_real from = t + k->direction * away * KG_ABS(t), to;
  k->next = kg_instants_of_inputs(k, t, k->switches ? k->next : limit);
  to = k->next == limit ? t_end : k->next - k->direction * away * KG_ABS(k->next);
  k->next = kg_switches_is_after(t_end, k->next, k->direction) ? k->next : t_end;
  if ((to - from) * k->direction < KG_C(0.0)) {
    from = to = t + KG_C(0.5) * (k->next - t);
  }
  k->first = KG_MIN(from, to);
  k->last = KG_MAX(from, to);
  return status;
}

#ifdef __cplusplus
}
#endif

#endif
