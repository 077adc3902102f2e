/* fmu_motion.h - evaluates the model of an instance: feedback laws, y', and the values of functions. */
#ifndef FMU_MOTION_H
#define FMU_MOTION_H

#include "fmu_data.h"

/* Evaluates the feedback laws at a state and writes those of one clock (-1: the continuous ones) into `inputs`. */
static inline int fmu_evaluate_laws(fmu_data *d, int clock, const kg_point *at, kg_real *inputs) {
  kg_real values[FMU_N_LAWS + 1];
  const kg_function *laws = kg_find_function(d->model, "laws");
  const int status = laws->evaluate(at, d->p, d->work, values);
  for (int k = 0; k < fmu.n_laws && status >= 0; ++k) {
    if (fmu.laws[k].clock == clock) {
      inputs[fmu.laws[k].slot] = values[k];
    }
  }
  return status;
}

static inline int fmu_has_continuous_laws(void) {
  for (int k = 0; k < fmu.n_laws; ++k) {
    if (fmu.laws[k].clock < 0) {
      return 1;
    }
  }
  return 0;
}

/* Writes the values of continuous laws into the inputs r (kg_hybrid.inputs). */
static inline int fmu_fill_inputs(void *host, const kg_point *at, kg_real *r) {
  return fmu_has_continuous_laws() ? fmu_evaluate_laws((fmu_data *)host, -1, at, r) : KG_OK;
}

/* y' without contact forces (kg_ode). */
static inline int fmu_rhs(void *host, kg_real t, const kg_real *y, kg_real *dydt) {
  fmu_data *d = (fmu_data *)host;
  const kg_point at = fmu_point(d, t, y);
  const int status = fmu.n_laws > 0 ? fmu_fill_inputs(host, &at, d->r) : KG_OK;
  return status < 0 ? status : d->rhs->evaluate(&at, d->p, d->work, dydt);
}

/* Writes the matrix of a compiled function (rows x columns) into columns first ... of J (rows x n). */
static inline int fmu_columns(fmu_data *d, const char *name, const kg_point *at, int first, int columns, kg_real *J) {
  const kg_function *f = columns > 0 ? kg_find_function(d->model, name) : NULL;
  int status;
  if (f == NULL) {
    return columns > 0 ? KG_INVALID_ARGUMENT : KG_OK;
  }
  status = f->evaluate(at, d->p, d->work, d->jacobian);
  for (int i = 0; i < d->n && status >= 0; ++i) {
    memcpy(J + i * (ptrdiff_t)d->n + first, d->jacobian + i * (ptrdiff_t)columns, (size_t)columns * sizeof *J);
  }
  return status;
}

/* Derivatives of y' (kg_ode); methods that need them are not offered for models with continuous laws. */
static inline int fmu_jacobian(void *host, kg_real t, const kg_real *y, const kg_real *dydt, kg_real *J, kg_real *dfdt) {
  fmu_data *d = (fmu_data *)host;
  const kg_model *m = d->model;
  const kg_function *f = kg_find_function(m, "jacobian_t");
  const kg_point at = fmu_point(d, t, y);
  int status = fmu_fill_inputs(host, &at, d->r);
  (void)dydt;
  status = status < 0 ? status : fmu_columns(d, "jacobian_q", &at, 0, m->n_q, J);
  status = status < 0 ? status : fmu_columns(d, "jacobian_u", &at, m->n_q, m->n_u, J);
  status = status < 0 ? status : fmu_columns(d, "jacobian_s", &at, m->n_q + m->n_u, m->n_s, J);
  return status < 0 || f == NULL ? status : f->evaluate(&at, d->p, d->work, dfdt);
}

static inline kg_ode fmu_ode(fmu_data *d) {
  kg_ode ode;
  ode.n = d->n;
  ode.rhs = fmu_rhs;
  ode.context = d;
  ode.jacobian = kg_find_function(d->model, "jacobian_t") ? fmu_jacobian : NULL;
  return ode;
}

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
  status = fmu_rhs(d, fmu_time(d), d->y, d->rates);
#endif
  d->has_rates = status >= 0;
  return status;
}

/* Evaluates a function of the table at the present state; it reads the multipliers of the contacts. */
static inline int fmu_evaluate_function(fmu_data *d, int index) {
  const kg_function *f = kg_find_function(d->model, fmu.functions[index].name);
  kg_point at = fmu_point(d, fmu_time(d), d->y);
  int status = KG_OK;
  if (d->fresh[index]) {
    return KG_OK;
  }
  fmu_prepare(d);
  if (d->model->n_rows > 0) {
    status = fmu_evaluate_rates(d);
  }
  if (status >= 0) {
    status = fmu_fill_inputs(d, &at, d->r);
  }
  if (status >= 0) {
    at.forces = d->forces;
    status = f->evaluate(&at, d->p, d->work, d->values + fmu.functions[index].first);
  }
  d->fresh[index] = status >= 0;
  return status;
}

/* -- sampled laws: callbacks of kg_run ------------------------------------------------------------------------ */

static inline kg_real *fmu_sample_of(fmu_data *d, int clock, int sample) {
  return d->samples + (clock * fmu.n_waiting + sample % fmu.n_waiting) * (ptrdiff_t)fmu.n_laws;
}

/* Lets a sample act from now on. */
static inline void fmu_use_sample(fmu_data *d, int clock, int sample) {
  const kg_real *values = fmu_sample_of(d, clock, sample);
  for (int k = 0; k < fmu.n_laws; ++k) {
    if (fmu.laws[k].clock == clock) {
      d->r[fmu.laws[k].slot] = values[k];
    }
  }
}

/* Evaluates the laws of one clock. The first sample acts at once. */
static inline int fmu_take_sample(void *host, int clock, kg_real t, const kg_real *y) {
  fmu_data *d = (fmu_data *)host;
  const int sample = d->law_taken[clock]++;
  kg_real inputs[FMU_N_R + 1], *values = fmu_sample_of(d, clock, sample);
  const kg_point at = fmu_point(d, t, y);
  const int status = fmu_evaluate_laws(d, clock, &at, inputs);
  for (int k = 0; k < fmu.n_laws && status >= 0; ++k) {
    if (fmu.laws[k].clock == clock) {
      values[k] = inputs[fmu.laws[k].slot];
    }
  }
  if (sample == 0 && status >= 0) {
    fmu_use_sample(d, clock, sample);
  }
  return status;
}

static inline int fmu_act(void *host, int clock, kg_real t) {
  fmu_data *d = (fmu_data *)host;
  (void)t;
  fmu_use_sample(d, clock, d->law_acting[clock]++);
  return KG_OK;
}

/* -- projection: callbacks of kg_run ------------------------------------------------------------------------- */

#if FMU_PROJECTION
/* Corrects the state after a step that ended with `outcome`. */
static inline int fmu_project(void *host, int outcome) {
  fmu_data *d = (fmu_data *)host;
  const kg_stepper *s = &d->stepper;
  const kg_point at = fmu_point(d, s->t, s->y);
  const int status = fmu_fill_inputs(d, &at, d->r);
  return status < 0 ? status : kg_projection_after_step(&d->projection, &d->stepper, &at, outcome);
}

/* The integrals of motion keep their present values from now on. */
static inline int fmu_renew(void *host) {
  fmu_data *d = (fmu_data *)host;
  const kg_point at = fmu_point(d, d->stepper.t, d->stepper.y);
  const int status = fmu_fill_inputs(d, &at, d->r);
  return status < 0 ? status : kg_projection_renew(&d->projection, &at);
}

static inline void fmu_open_projection(fmu_data *d) {
  d->projection.p = d->p;
  d->projection.work = d->projecting;
  kg_projection_start(&d->projection);
  d->run.accept = fmu_project;
  d->run.renew = fmu_renew;
}
#else
static inline void fmu_open_projection(fmu_data *d) { (void)d; }
#endif

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
  fmu_data *d = (fmu_data *)host;
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
  h->plain = fmu_ode(d);
  h->inputs = fmu_fill_inputs;
  h->record = fmu_record;
  h->accept = d->run.accept;
  h->host = d;
  memset(d->counts, 0, (size_t)d->model->n_events * sizeof *d->counts);
  status = kg_hybrid_open(h, d->events);
  status = status < 0 ? status : kg_run_hybrid_start(&d->run, h, options, d->y, d->stepping);
  fmu_settle(d);
  return status;
}
#else
static inline int fmu_start_stepper(fmu_data *d, const kg_stepper_options *options) {
  const kg_ode ode = fmu_ode(d);
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
  memset(d->law_taken, 0, sizeof d->law_taken);
  memset(d->law_acting, 0, sizeof d->law_acting);
  d->run.stepper = &d->stepper;
  d->run.state = d->state;
  d->run.host = d;
  d->run.store = fmu_store;
  d->run.t_eval = d->state; /* no states are to be stored */
  d->run.n_clocks = FMU_N_CLOCKS;
  d->run.clocks = d->clocks;
  d->run.sample = fmu_take_sample;
  d->run.act = fmu_act;
  fmu_open_projection(d);
  for (int k = 0; k < FMU_N_CLOCKS; ++k) {
    d->clocks[k].sample_time = fmu.clocks[k][0];
    d->clocks[k].delay = fmu.clocks[k][1];
  }
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
