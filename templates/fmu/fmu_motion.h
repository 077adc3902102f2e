/* fmu_motion.h - starts the motion of an instance, and evaluates y' and the values of functions. */
#ifndef FMU_MOTION_H
#define FMU_MOTION_H

#include "fmu_data.h"

static inline void fmu_prepare(fmu_data *d) {
  if (d->unprepared) {
    d->model->prepare(d->p);
    d->unprepared = 0;
  }
}

/* The time at which functions are evaluated: at an instant at which the model switches, before it until the step or the
 * time event there is over, and after it from then on. */
static inline kg_real fmu_time(const fmu_data *d) { return kg_instants_inside(d->run.instants, d->t); }

/* The present y' and multipliers of the contacts, in the present modes. */
static inline int fmu_evaluate_rates(fmu_data *d) {
  int status;
  if (d->has_rates) {
    return KG_OK;
  }
  fmu_prepare(d);
#if FMU_EVENTS
  status = kg_hybrid_rhs(&d->hybrid, d->t, d->y, d->rates);
  memset(d->forces, 0, (size_t)d->model->n_rows * sizeof *d->forces);
  if (status >= 0 && kg_hybrid_acts(&d->hybrid, KG_CLOSED)) {
    kg_modes_hold(&d->hybrid.contacts.now);
    memcpy(d->forces, d->hybrid.contacts.lambda, (size_t)d->model->n_rows * sizeof *d->forces);
  }
#else
  status = kg_host_rhs(&d->host, fmu_time(d), d->y, d->rates);
#endif
  d->has_rates = status >= 0;
  return status;
}

/* Evaluates a function of the table at the present state; it reads the multipliers of the contacts. */
static inline int fmu_evaluate_function(fmu_data *d, int index) {
  const kg_function *f = kg_find_function(d->model, fmu.functions[index].name);
  kg_point at = kg_host_point(&d->host, fmu_time(d), d->y);
  int status = KG_OK;
  if (d->fresh[index]) {
    return KG_OK;
  }
  fmu_prepare(d);
  if (d->model->n_rows > 0) {
    status = fmu_evaluate_rates(d);
  }
  if (status >= 0) {
    status = kg_host_inputs(&d->host, at.t, d->y);
  }
  if (status >= 0) {
    at.forces = d->forces;
    status = f->evaluate(&at, d->p, d->work, d->values + fmu.functions[index].first);
  }
  d->fresh[index] = status >= 0;
  return status;
}

/* -- instants at which the model switches ---------------------------------------------------------------------- */

/* Where the search for the next instant ends. Those of curved switches are found by sampling, which goes `ahead` only. */
static inline kg_real fmu_horizon(const fmu_data *d) {
  for (int i = 0; i < d->model->n_switches; ++i) {
    if (d->model->switches[i].shape == KG_SWITCH_CURVED) {
      return d->t + d->ahead;
    }
  }
  return d->t_stop;
}

/* Prepares the search for the present parameters. */
static inline int fmu_find_switches(fmu_data *d) {
  const int status = kg_switches_open(&d->switches, d->model, d->p, d->switching);
  d->switches.longest = d->ahead / KG_SWITCH_SAMPLING;
  return status;
}

/* Fixed steps of the co-simulation do not end at instants between their multiples, as in Python. */
static inline int fmu_open_instants(fmu_data *d) {
  int status;
  if (d->model->n_switches == 0 || (d->cosimulation && !kg_get_method(fmu.methods[d->method]).adaptive)) {
    return KG_OK;
  }
  memset(&d->instants, 0, sizeof d->instants);
  d->instants.switches = &d->switches;
  d->instants.direction = KG_C(1.0);
  d->run.instants = &d->instants;
  status = fmu_find_switches(d);
  status = status < 0 ? status : kg_instants_pass(&d->instants, d->t, fmu_horizon(d));
  kg_run_find_stop(&d->run);
  return status;
}

/* -- the start ------------------------------------------------------------------------------------------------ */

static inline int fmu_store(void *host, kg_real t, const kg_real *y) {
  (void)host;
  (void)t;
  (void)y;
  return KG_OK;
}

#if FMU_EVENTS
/* Counts the events of the user. */
static inline int fmu_record(void *host, const kg_record *record) {
  fmu_data *d = (fmu_data *)host; /* which begins with the kg_host */
  if (record->kind == KG_RECORD_USER) {
    ++d->counts[record->index];
  }
  return KG_OK;
}

/* No event is due at the present state, whose guards are known. */
static inline void fmu_settle(fmu_data *d) {
  memcpy(d->settled, d->hybrid.finder.g, (size_t)d->hybrid.finder.n * sizeof *d->settled);
}

static inline int fmu_start_stepper(fmu_data *d, const kg_stepper_options *options) {
  kg_hybrid *h = &d->hybrid;
  int status;
  memset(h, 0, sizeof *h);
  fmu_find_rows(d);
  h->p = d->p;
  h->r = d->r;
  h->free = d->zeros;
  h->stepper = &d->stepper;
  h->plain = kg_host_ode(&d->host);
  h->inputs = kg_host_fill;
  h->record = fmu_record;
  h->accept = d->run.accept;
  h->host = &d->host;
  memset(d->counts, 0, (size_t)d->model->n_events * sizeof *d->counts);
  status = kg_hybrid_open(h, d->events);
  status = status < 0 ? status : kg_run_hybrid_start(&d->run, h, options, d->y, d->stepping);
  fmu_settle(d);
  return status;
}
#else
static inline int fmu_start_stepper(fmu_data *d, const kg_stepper_options *options) {
  const kg_ode ode = kg_host_ode(&d->host);
  return kg_run_start(&d->run, &ode, options, d->y, d->stepping);
}
#endif

/* Model exchange has no method of its own; its stepper only keeps the state for the functions of events. */
static inline kg_stepper_options fmu_stepper_options(fmu_data *d) {
  kg_stepper_options options;
  const kg_method method = kg_get_method(fmu.methods[d->method]);
  memset(&options, 0, sizeof options);
  options.method = d->cosimulation ? fmu.methods[d->method] : KG_RK4;
  options.step = KG_C(1.0);
  if (d->cosimulation) {
    fmu_read_options(&options, d->options);
  }
  for (int i = 0; i < d->n; ++i) {
    d->rtol[i] = d->options[FMU_RTOL];
    d->atol[i] = d->options[FMU_ATOL];
  }
  if (d->cosimulation && method.adaptive) {
    options.rtol = d->rtol;
    options.atol = d->atol;
  }
  return options;
}

/* Starts the motion from the present state: takes the first samples, chooses the modes of the contacts and carries out
 * the impacts that are due. Returns KG_OK, or a negative status or outcome. */
static inline int fmu_start(fmu_data *d) {
  const kg_stepper_options options = fmu_stepper_options(d);
  int status;
  fmu_prepare(d);
  memset(&d->run, 0, sizeof d->run);
  memset(&d->stepper, 0, sizeof d->stepper);
  d->run.stepper = &d->stepper;
  d->run.state = d->state;
  d->run.store = fmu_store;
  d->run.t_eval = d->state; /* no states are to be stored */
  kg_host_attach(&d->host, &d->run);
  kg_feedback_start(&d->host.feedback);
#if FMU_PROJECTION
  kg_host_open_projection(&d->host, &d->projection, d->projecting);
#endif
  status = kg_run_begin(&d->run, d->t, d->y, d->t_stop);
  status = status < 0 ? status : fmu_open_instants(d);
  status = status < 0 ? status : fmu_start_stepper(d, &options);
  d->changed = 0;
  d->unsettled = status < 0;
  fmu_touch(d);
  return status < 0 ? status : KG_OK;
}

/* Before the start is over, values are those of a start from the present state; only the impacts at the start wait for
 * its end. */
static inline int fmu_refresh(fmu_data *d) {
  return d->unsettled && FMU_EVENTS ? fmu_start(d) : KG_OK;
}

/* The status that explains an outcome. */
static inline int fmu_reason(const fmu_data *d, int outcome) {
  return outcome == KG_RHS_FAILED ? d->stepper.rhs_status : outcome;
}

#endif
