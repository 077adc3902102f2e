/* kg_hybrid.h - integrates a model with contacts and events: takes steps, locates events, and reacts to them.
 *
 * The host fills a kg_hybrid, calls kg_hybrid_open() once and kg_hybrid_start(), then kg_hybrid_step() for every step.
 * After KG_AT_EVENT or KG_AT_STOP the stepper has the time and the state just before the event: the host stores this
 * state, with the dense output of the last step, and calls kg_hybrid_react(), which may change the state. The motion
 * between events is smooth, so that methods keep their order.
 */
#ifndef KG_HYBRID_H
#define KG_HYBRID_H

#include "kg_transition.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Number of consecutive events without progress that counts as chattering. An event makes no progress if it follows
 * after less than this fraction of the run (or of so many longest steps, if the run is longer), or, without a jump,
 * after less than a fraction of the longest step in which the guard moved by at most so many units of tolerance. */
#define KG_IDLE_EVENTS 200
#define KG_IDLE_PROGRESS KG_BY_PRECISION(1e-10, 1e-6)
#define KG_IDLE_SPAN KG_C(1e4)
#define KG_IDLE_EXCURSION KG_C(1e3)
#define KG_IDLE_STEP KG_C(1e-2)

static inline void kg_hybrid_find_functions(kg_hybrid *h) {
  h->events = h->model->n_events > 0 ? kg_find_function(h->model, "events") : NULL;
  h->impulses = h->bilateral ? kg_find_function(h->model, "impulses") : NULL;
  h->resets = kg_find_function(h->model, "resets");
  h->state_rates = kg_find_function(h->model, "state_rates");
  h->n_s = h->model->n_s;
}

/* Bytes of the memory of a run; model and bilateral must be set. */
static inline size_t kg_hybrid_memory(kg_hybrid *h) {
  const size_t g = (size_t)kg_hybrid_guards_count(h->model), m = (size_t)h->model->n_contacts;
  const size_t integers = 2 * g + m + kg_finder_integers((int)g) + (size_t)kg_contacts_integers(h->model);
  kg_hybrid_find_functions(h);
  return (kg_hybrid_place(h, NULL) + kg_contacts_work(h->model) + 1) * sizeof(kg_real) + g * sizeof(kg_found) +
         m * sizeof(kg_bounce) + integers * sizeof(int);
}

/* Lays out the memory, which is aligned for kg_real, and opens the contacts. Afterwards the host may set
 * modes and tolerances of h->contacts. Returns KG_OK, or KG_INVALID_ARGUMENT if the model does not have a function. */
static inline int kg_hybrid_open(kg_hybrid *h, void *memory) {
  const int g = kg_hybrid_guards_count(h->model);
  kg_real *work = (kg_real *)memory;
  kg_found *found;
  int *integers, status = KG_OK;
  size_t length;
  kg_hybrid_find_functions(h);
  length = kg_hybrid_place(h, NULL);
  found = (kg_found *)(void *)(work + length + kg_contacts_work(h->model) + 1);
  h->bounces = (kg_bounce *)(void *)(found + g);
  integers = (int *)(void *)(h->bounces + h->model->n_contacts);
  memset(memory, 0, kg_hybrid_memory(h));
  kg_hybrid_place(h, work);
  h->finder.n = g;
  h->finder.evaluate = kg_hybrid_guards;
  h->finder.context = h;
  h->finder.rules = h->rules = integers;
  h->finder.costly = h->costly = integers + g;
  h->mode_before = integers + 2 * g;
  kg_finder_layout(&h->finder, h->finder.start, h->mode_before + h->model->n_contacts, found);
  h->has_contacts = h->model->n_contacts > 0;
  h->culprit = h->culprit_event = -1;
  if (h->has_contacts) {
    status = kg_contacts_start(&h->contacts, h->model, h->p,
                               h->mode_before + h->model->n_contacts + kg_finder_integers(g), work + length);
  }
  h->finder.slack = h->has_contacts ? h->contacts.slack : NULL;
  h->finder.first_slack = h->model->n_events;
  if ((h->model->n_events > 0 && !h->events) || (h->n_s > 0 && !h->state_rates)) {
    return KG_INVALID_ARGUMENT;
  }
  return status;
}

/* Returns the earlier of two times; the second one is ignored if it does not lie ahead. */
static inline kg_real kg_hybrid_earlier(const kg_hybrid *h, kg_real next, kg_real t) {
  const kg_real direction = h->t_end < h->now ? KG_C(-1.0) : KG_C(1.0);
  return (t - h->now) * direction > KG_C(0.0) && (next - t) * direction > KG_C(0.0) ? t : next;
}

/* Time at which the stepper stops next: the end, a time set by the host, or an accumulation point. */
static inline kg_real kg_hybrid_next_stop(const kg_hybrid *h) {
  kg_real next = kg_hybrid_earlier(h, h->t_end, h->t_stop);
  for (int m = 0; m < h->model->n_contacts; ++m) {
    next = h->bounces[m].rests ? kg_hybrid_earlier(h, next, h->bounces[m].t_rest) : next;
  }
  return next;
}

/* Returns the number of a penetrated rigid contact, or -1. */
static inline int kg_hybrid_violated(kg_hybrid *h, int *status) {
  kg_contacts *c = &h->contacts;
  const kg_point at = kg_hybrid_point(h, h->t, h->y, NULL);
  *status = kg_contacts_evaluate_gaps(c, &at);
  for (int m = 0; m < h->model->n_contacts && *status >= 0; ++m) {
    const kg_contact_info *info = h->model->contacts + m;
    if (c->law[m] == KG_LAW_RESTITUTION && info->level == 2 && c->s.value[info->normal] < -c->gap_zero[m]) {
      return m;
    }
  }
  return -1;
}

/* Contacts with a law of accelerations act from the start, and take part in the impacts that are due there. */
static inline void kg_hybrid_act(kg_contacts *c) {
  for (int m = 0; m < c->model->n_contacts; ++m) {
    if (c->law[m] == KG_LAW_STABILIZED && c->mode[m] == KG_OPEN && kg_gap_state(c, m) <= 0) {
      c->mode[m] = KG_PENETRATED;
    }
  }
}

/* Chooses the modes at the start and computes the impacts that are due there. */
static inline int kg_hybrid_settle(kg_hybrid *h, const kg_real *rtol, const kg_real *atol) {
  int status = kg_hybrid_inputs(h, h->t, h->y);
  if (status == KG_OK && h->has_contacts) {
    const kg_point at = kg_hybrid_point(h, h->t, h->y, NULL);
    status = KG_MIN(kg_contacts_measure(&h->contacts, &at, h->y, rtol, atol), KG_OK);
  }
  if (status == KG_OK && h->has_contacts) {
    const int violated = kg_hybrid_violated(h, &status);
    if (violated >= 0) {
      return kg_transition_fail(h, KG_GAP_VIOLATED, violated);
    }
    kg_hybrid_act(&h->contacts);
  }
  if (status < 0) {
    return kg_transition_fail(h, status, -1);
  }
  kg_transition_remember(h);
  status = kg_transition_apply(h);
  if (status < 0) {
    return status;
  }
  /* Only jumps are events at the start: the modes found are those of the first phase. */
  if (h->has_contacts && memcmp(h->before, h->y, (size_t)kg_hybrid_size(h) * sizeof *h->y) != 0) {
    status = kg_transition_report(h);
  }
  kg_hybrid_mark_costly(h);
  return status;
}

/* Starts at (t0, y0) towards t_end; `work` as for kg_stepper_start(), whose outcomes it returns, or those of the
 * contacts, with their number in `culprit`. Impacts that are due at the start change the state at once: the stepper
 * holds that after them. */
static inline int kg_hybrid_start(kg_hybrid *h, const kg_stepper_options *options, kg_real t0, const kg_real *y0,
                                  kg_real t_end, kg_real *work) {
  kg_stepper *s = h->stepper;
  kg_ode ode;
  int status;
  memset(s, 0, sizeof *s);
  ode.n = kg_hybrid_size(h);
  ode.rhs = kg_hybrid_rhs;
  ode.jacobian = kg_hybrid_jacobian;
  ode.context = h;
  h->t_event = t0;
  h->t_end = t_end;
  kg_hybrid_place_at(h, t0, h->rates);
  memcpy(h->y, y0, (size_t)ode.n * sizeof *y0);
  kg_hybrid_fill_rules(h);
  status = kg_hybrid_settle(h, options->rtol, options->atol);
  if (status < 0) {
    return status;
  }
  status = kg_stepper_start(s, &ode, options, t0, h->y, kg_hybrid_next_stop(h), work);
  h->y = s->y;
  kg_transition_remember(h);
  if (status != KG_OK) {
    return status;
  }
  return kg_finder_start(&h->finder, s);
}

static inline int kg_hybrid_adjust(void *context) {
  kg_hybrid *h = (kg_hybrid *)context;
  return h->accept ? KG_MIN(h->accept(h->host, KG_AT_EVENT), KG_OK) : KG_OK;
}

/* Counts consecutive events without progress. */
static inline int kg_hybrid_progress(kg_hybrid *h) {
  const kg_stepper *s = h->stepper;
  const kg_finder *f = &h->finder;
  /* A span that is long compared with the steps says nothing about the intervals between events. */
  const kg_real scale = KG_MIN(KG_ABS(h->t_end - s->t_start), KG_IDLE_SPAN * s->statistics.largest_step);
  const kg_real least = KG_IDLE_PROGRESS * scale;
  const kg_real interval = KG_ABS(s->t - h->t_event);
  int crawls = 0;
  for (int i = 0; i < f->n; ++i) {
    crawls = crawls || (f->fired[i] && f->excursion[i] <= KG_IDLE_EXCURSION * f->units[i]);
  }
  crawls = crawls && interval < KG_IDLE_STEP * s->statistics.largest_step;
  h->is_idle = interval <= least;
  h->idle_events = h->is_idle || crawls ? h->idle_events + 1 : 0;
  h->t_event = s->t;
  if (h->idle_events <= KG_IDLE_EVENTS) {
    return KG_AT_EVENT;
  }
  for (int i = 0; i < h->finder.n; ++i) {
    if (h->finder.fired[i]) {
      h->culprit_event = i < h->model->n_events ? i : -1;
      h->culprit = i < h->model->n_events ? -1 : (i - h->model->n_events) / KG_CONTACT_GUARDS;
    }
  }
  return KG_CHATTERING;
}

/* Updates the slack and the directions of slip of the contacts after a step without events. */
static inline int kg_hybrid_advance(kg_hybrid *h) {
  const kg_stepper *s = h->stepper;
  kg_contacts *c = &h->contacts;
  const size_t size = KG_CONTACT_GUARDS * (size_t)h->model->n_contacts * sizeof(kg_real);
  int status = h->has_contacts ? kg_hybrid_inputs(h, h->t, s->y) : KG_OK, changed = 0;
  if (status == KG_OK && h->has_contacts) {
    const kg_point at = kg_hybrid_point(h, h->t, s->y, NULL);
    memcpy(h->guards, c->slack, size);
    status = kg_contacts_advance(c, &at, h->finder.g + h->model->n_events);
    changed = memcmp(h->guards, c->slack, size) != 0;
    for (int m = 0; m < h->model->n_contacts; ++m) {
      changed = changed || (c->mode[m] == KG_SLIP && h->model->contacts[m].directions == 2);
    }
  }
  if (status < 0) {
    return kg_stepper_fail(h->stepper, status);
  }
  return changed ? kg_finder_refresh(&h->finder, s) : KG_OK;
}

/* One step of the stepper, which ends at its first event. Writes the outcome of the whole step. Returns KG_OK without
 * event; KG_AT_EVENT; KG_REJECTED: the step up to the event is to be taken again; or a negative outcome. */
static inline int kg_hybrid_try(kg_hybrid *h, int *outcome) {
  kg_stepper *s = h->stepper;
  int events;
  *outcome = kg_stepper_step(s);
  if (*outcome >= 0 && h->accept) {
    const int accepted = h->accept(h->host, *outcome);
    *outcome = accepted < 0 ? accepted : *outcome;
  }
  events = *outcome < 0 ? *outcome : kg_finder_step(&h->finder, s);
  if (events == KG_AT_EVENT) {
    events = kg_finder_locate(&h->finder, s, kg_hybrid_adjust, h);
  }
  kg_hybrid_place_at(h, s->t, s->y);
  return events;
}

/* One accepted step. KG_OK; KG_FINISHED: the end is reached; KG_AT_EVENT, KG_AT_STOP: call kg_hybrid_react() next;
 * or a negative outcome. */
static inline int kg_hybrid_step(kg_hybrid *h) {
  const kg_stepper *s = h->stepper;
  int outcome = KG_OK, events = KG_REJECTED;
  while (events == KG_REJECTED) { /* shorter each time, until the stepper refuses */
    events = kg_hybrid_try(h, &outcome);
  }
  if (events == KG_AT_EVENT) {
    return kg_hybrid_progress(h);
  }
  if (events == KG_OK) {
    events = kg_hybrid_advance(h);
  }
  if (events >= 0 && outcome != KG_OK && s->t != h->t_end) {
    events = kg_finder_complete(&h->finder, s); /* before the host changes its inputs */
  }
  if (events < 0 || outcome == KG_OK || s->t == h->t_end) {
    return events < 0 ? events : outcome;
  }
  for (int m = 0; m < h->model->n_contacts; ++m) {
    if (h->bounces[m].rests && s->t == h->bounces[m].t_rest) {
      return KG_AT_EVENT;
    }
  }
  return KG_AT_STOP;
}

/* One round of reactions at the same time. KG_AT_EVENT: the jump caused other events. */
static inline int kg_hybrid_round(kg_hybrid *h) {
  int status = kg_transition_apply(h), jumped;
  if (status >= 0) {
    status = kg_transition_report(h);
  }
  if (status >= 0) {
    status = kg_transition_rest(h);
  }
  if (status < 0) {
    return status;
  }
  jumped = memcmp(h->before, h->y, (size_t)kg_hybrid_size(h) * sizeof *h->y) != 0;
  h->idle_events = jumped && !h->is_idle ? 0 : h->idle_events; /* kg_transition.h limits the number of impacts */
  kg_transition_remember(h);
  kg_hybrid_mark_costly(h);
  return kg_finder_restart(&h->finder, h->stepper);
}

/* Reacts to an event, or to a stop after the host has changed its inputs, t_stop or the state. Returns KG_OK;
 * KG_FINISHED at the end of the run; KG_TERMINATED; KG_AT_STOP if the event coincides with t_stop: call
 * kg_hybrid_react() again; or a negative outcome. */
static inline int kg_hybrid_react(kg_hybrid *h) {
  kg_stepper *s = h->stepper;
  int status = KG_AT_EVENT, stopped;
  kg_hybrid_place_at(h, s->t, s->y);
  h->terminal = h->modes_changed = 0;
  stopped = 1;
  for (int i = 0; i < h->finder.n; ++i) {
    stopped = stopped && !h->finder.fired[i];
  }
  kg_transition_remember(h);
  for (int k = 0; status == KG_AT_EVENT; ++k) {
    status = k < KG_CHAIN ? kg_hybrid_round(h) : KG_CHATTERING;
  }
  if (status < 0 || h->terminal) {
    return status < 0 ? status : KG_TERMINATED;
  }
  status = kg_stepper_restart(s, kg_hybrid_next_stop(h), h->modes_changed);
  return status == KG_OK && !stopped && h->now == h->t_stop ? KG_AT_STOP : status;
}

#ifdef __cplusplus
}
#endif

#endif
