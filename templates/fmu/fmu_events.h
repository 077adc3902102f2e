/* fmu_events.h - model exchange: event indicators, and what happens in event mode.
 *
 * The indicators are the guards of kg_hybrid_system.h: those of the user's events, then four for each contact. In event
 * mode the guards that have fallen are passed to kg_hybrid_react(), as if the runtime had located the event itself.
 */
#ifndef FMU_EVENTS_H
#define FMU_EVENTS_H

#include "fmu_motion.h"

#if FMU_EVENTS
/* The state of the importer becomes that of the runtime. */
static inline void fmu_present(fmu_data *d) {
  d->stepper.t = d->t;
  memcpy(d->stepper.y, d->y, (size_t)d->n * sizeof *d->y);
  kg_hybrid_place_at(&d->hybrid, d->t, d->stepper.y);
}

/* Whether guard i of the user has changed its sign in the direction of its event. */
static inline int fmu_crossed(const kg_finder *f, int i) {
  const kg_real g = f->g[i];
  const int rule = f->rules[i], falls = f->side[i] > 0 && g <= KG_C(0.0), rises = f->side[i] < 0 && g >= KG_C(0.0);
  return (falls && rule != KG_RISING) || (rises && rule != KG_FALLING);
}

/* Evaluates all guards, and marks those whose event is due at the present state. Returns their number, or a negative
 * status. */
static inline int fmu_find_events(fmu_data *d) {
  kg_finder *f = &d->hybrid.finder;
  int status, count = 0;
  fmu_present(d);
  status = kg_finder_evaluate(f, d->t, d->y, 1, f->g);
  status = status < 0 ? status : kg_finder_units(f, &d->stepper, d->t, d->y, f->g, 1);
  for (int i = 0; i < f->n && status >= 0; ++i) {
    if (f->rules[i] == KG_CONDITION) {
      f->fired[i] = f->g[i] < KG_C(0.0) || (!(f->g[i] > KG_C(0.0)) && d->settled[i] > KG_C(0.0));
    } else {
      f->fired[i] = f->rules[i] != KG_IGNORED && fmu_crossed(f, i);
      f->side[i] = f->fired[i] || f->side[i] != 0 ? f->side[i] : kg_finder_sign(f->g[i], kg_finder_noise(f, i));
      if (!f->fired[i] && f->side[i] * f->g[i] < KG_C(0.0)) {
        f->side[i] = -f->side[i]; /* against the direction of its event */
      }
    }
    count += f->fired[i] != KG_NOTHING;
  }
  return status < 0 ? status : count;
}

static inline int fmu_guards(fmu_data *d, kg_real *guards) {
  fmu_prepare(d);
  return kg_hybrid_guards(&d->hybrid, d->t, d->y, 1, guards);
}

/* After a step of the importer: directions of slip and slack of guards follow the state (kg_hybrid_advance). */
static inline int fmu_completed(fmu_data *d) {
  const int count = fmu_find_events(d);
  int status = count;
  if (count == 0) {
    status = kg_hybrid_advance(&d->hybrid);
    fmu_settle(d);
  }
  fmu_touch(d);
  return status < 0 ? status : KG_OK;
}

static inline kg_real fmu_next_time(const fmu_data *d) { return kg_hybrid_next_stop(&d->hybrid); }

/* Reacts to events that fall on a stop, such as a sample, before this stop acts: as integrations do, so that the sample
 * reads the state after them. `jumped`: whether the state has changed. Returns as kg_hybrid_react(). */
static inline int fmu_react_before_stop(fmu_data *d, int *jumped) {
  int status = fmu_find_events(d);
  if (status > 0) {
    d->hybrid.t_stop = d->run.t_stop;
    status = kg_hybrid_react(&d->hybrid);
    fmu_settle(d);
    *jumped = memcmp(d->y, d->stepper.y, (size_t)d->n * sizeof *d->y) != 0;
    memcpy(d->y, d->stepper.y, (size_t)d->n * sizeof *d->y);
  }
  return status;
}

/* Reacts to the events that are due, and to inputs and parameters that were set. */
static inline int fmu_react(fmu_data *d) {
  const int changed = d->changed || kg_run_has_stops(&d->run);
  int count = fmu_find_events(d);
  for (int m = 0; m < d->model->n_contacts; ++m) { /* accumulation points of impacts are time events */
    count += count >= 0 && d->hybrid.bounces[m].rests && !(d->hybrid.bounces[m].t_rest > d->t);
  }
  d->hybrid.t_stop = d->run.t_stop;
  if (count > 0 || (count == 0 && changed)) {
    count = kg_hybrid_react(&d->hybrid);
    fmu_settle(d);
  }
  return count;
}
#else
static inline void fmu_present(fmu_data *d) {
  d->stepper.t = d->t;
  memcpy(d->stepper.y, d->y, (size_t)d->n * sizeof *d->y);
}

static inline int fmu_guards(fmu_data *d, kg_real *guards) {
  (void)d;
  (void)guards;
  return KG_OK;
}

static inline int fmu_completed(fmu_data *d) {
  (void)d;
  return KG_OK;
}

static inline kg_real fmu_next_time(const fmu_data *d) { return d->run.t_stop; }

static inline int fmu_react_before_stop(fmu_data *d, int *jumped) {
  (void)d;
  (void)jumped;
  return KG_OK;
}

static inline int fmu_react(fmu_data *d) {
  (void)d;
  return KG_OK;
}
#endif

/* What an event has changed. */
typedef struct {
  int jumped;     /* the state */
  int terminated; /* a terminal event has happened */
  int timed;      /* there is a next time event, */
  kg_real next;   /* at this time */
} fmu_outcome;

/* One round of event mode. Returns KG_OK or a negative status or outcome. */
static inline int fmu_update(fmu_data *d, fmu_outcome *outcome) {
  int status = KG_OK, jumped = 0;
  fmu_prepare(d);
  if (d->run.instants) {
    d->run.t_end = fmu_horizon(d);
    status = d->changed ? fmu_find_switches(d) : KG_OK;
  }
  if (status >= 0 && kg_run_has_stops(&d->run)) {
    status = d->t < d->run.t_stop ? KG_OK : fmu_react_before_stop(d, &jumped);
    status = status < 0 || status == KG_TERMINATED ? status : kg_run_stop(&d->run, d->t, d->y);
  }
  fmu_present(d);
  status = status < 0 || status == KG_TERMINATED ? status : fmu_react(d);
  d->changed = 0;
  outcome->terminated = status == KG_TERMINATED;
  outcome->jumped = jumped || memcmp(d->y, d->stepper.y, (size_t)d->n * sizeof *d->y) != 0;
  memcpy(d->y, d->stepper.y, (size_t)d->n * sizeof *d->y);
  fmu_touch(d);
  outcome->next = fmu_next_time(d);
  outcome->timed = outcome->next < d->t_stop && outcome->next > d->t;
  return status < 0 ? status : KG_OK;
}

#endif
