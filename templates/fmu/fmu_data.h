/* fmu_data.h - the complete state of one instance: a block of memory without pointers to anything outside.
 *
 * The block begins with a fmu_data; the arrays follow. A copy of the block is a copy of the state (fmu_memory.h).
 */
#ifndef FMU_DATA_H
#define FMU_DATA_H

#include "kg_host.h"
#if FMU_EVENTS
#include "kg_run_hybrid.h"
#endif
#if FMU_PROJECTION
#include "kg_host_projection.h"
#endif

/* What the importer may do next. */
enum { FMU_CREATED, FMU_INITIALIZING, FMU_EVENT, FMU_CONTINUOUS, FMU_STEPPING, FMU_TERMINATED };

/* The end of a run whose end is not known, s after its start. */
#define FMU_FAR KG_C(1e9)

/* How far ahead instants that must be searched for are searched if the end is not known, s. */
#define FMU_AHEAD KG_C(1.0)

typedef struct {
  kg_host host;      /* of the run; it comes first, so that a pointer to it is one to the instance */
  int cosimulation;
  int phase;
  int changed;       /* inputs, parameters or states were set since the motion went on */
  int unprepared;    /* parameters were set since kg_model.prepare() */
  int unsettled;     /* the modes of the contacts at the start are not known */
  int has_rates;     /* `rates` belongs to the present state */
  int method;
  kg_real options[FMU_N_OPTIONS];
  kg_real t;
  kg_real t_stop;    /* the end of the experiment, or FMU_FAR s after its start */
  kg_real ahead;     /* length of the experiment, or FMU_AHEAD */
  const kg_model *model;
  int n;             /* length of y */
  kg_stepper stepper;
  kg_run run;
  kg_clock clocks[FMU_N_CLOCKS + 1];
  kg_law laws[FMU_N_LAWS + 1];
  kg_instants instants;
  kg_switches switches;
#if FMU_EVENTS
  kg_impulse_rows rows;
  kg_hybrid hybrid;
#endif
#if FMU_PROJECTION
  kg_projection projection;
  const kg_function *integrals[FMU_N_INTEGRALS + 1];
  kg_real *projecting; /* work of the projection */
#endif
  kg_real *y;         /* q, u, s */
  kg_real *rates;
  kg_real *r;
  kg_real *p;
  kg_real *values;    /* of fmu_tables.functions */
  kg_real *work;
  kg_real *state;     /* scratch of kg_run */
  kg_real *rtol;
  kg_real *atol;
  kg_real *stepping;  /* work of the stepper */
  kg_real *feedback;  /* values of the laws: scratch, those that act, and samples */
  kg_real *switching; /* work of the switches */
  kg_real *forces;    /* multipliers of the contact rows */
  kg_real *zeros;     /* in place of the multipliers, and of the free vector of servo-constraints */
  kg_real *guards;
  kg_real *settled;   /* guards after the last event or step without event */
  kg_real *slopes;    /* scratch of directional derivatives */
  kg_real *jacobian;  /* largest Jacobian, or the residuals of the start with their units */
  void *events;       /* memory of kg_hybrid */
  int *fresh;         /* per function: its values belong to the present state */
  int *counts;        /* per event */
} fmu_data;

/* Callbacks and names of an instance, which are not part of its state. */
typedef struct {
  fmu_data *data;
  size_t size; /* of the block, bytes */
  char *name;
  void *callbacks; /* copy of the importer's, for the standard's version */
  void (*log)(void *callbacks, const char *name, int status, const char *category, const char *message);
} fmu_instance;

static inline int fmu_largest_work(const kg_model *model) {
  int work = 1;
  for (int i = 0; i < model->n_functions; ++i) {
    work = model->functions[i].work > work ? model->functions[i].work : work;
  }
  return work;
}

static inline size_t fmu_largest_stepping(int n) {
  size_t work = 1;
  for (int i = 0; i < fmu.n_methods; ++i) {
    const size_t own = kg_stepper_work(fmu.methods[i], n);
    work = own > work ? own : work;
  }
  return work;
}

static inline int fmu_guards_count(const kg_model *model) {
#if FMU_EVENTS
  return kg_hybrid_guards_count(model);
#else
  (void)model;
  return 0;
#endif
}

/* Length of the scratch of directional derivatives: two copies of (y, r, p) and of (y', values, forces). */
static inline size_t fmu_slopes_length(const fmu_data *d) {
  const kg_model *m = d->model;
  const int point = d->n + m->n_r + m->n_p, result = d->n + fmu.n_values;
  return 2 * (size_t)(point + result) + (size_t)m->n_r + 1;
}

/* Longest row of a Jacobian times its number of rows; at least residuals, their units and those of a state beside it. */
static inline size_t fmu_jacobian_length(const fmu_data *d) {
  const kg_model *m = d->model;
  const kg_function *residuals = kg_find_function(m, "residuals");
  size_t length = residuals != NULL ? 3 * (size_t)residuals->rows + 1 : 1;
  for (int i = 0; i < m->n_functions; ++i) {
    const kg_function *f = m->functions + i;
    const size_t own = (size_t)(f->rows > 0 ? f->rows : 1) * (size_t)(f->cols > 0 ? f->cols : 1);
    length = own > length ? own : length;
  }
  return length;
}

/* Places the arrays behind the fmu_data; returns the length of the block. With memory NULL it only computes this. */
static inline size_t fmu_place(fmu_data *d, char *memory) {
  const kg_model *m = d->model;
  const size_t n = (size_t)d->n, g = (size_t)fmu_guards_count(m);
  kg_real **const arrays[] = {&d->y, &d->rates, &d->r, &d->p, &d->values, &d->work, &d->state, &d->rtol, &d->atol,
                              &d->stepping, &d->feedback, &d->switching, &d->forces, &d->zeros, &d->guards, &d->settled,
                              &d->slopes, &d->jacobian};
  const size_t sizes[] = {n, n, (size_t)m->n_r + 1, (size_t)m->n_prepared + 1,
                          (size_t)fmu.n_values + 1, (size_t)fmu_largest_work(m), n, n, n, fmu_largest_stepping(d->n),
                          ((size_t)fmu.n_waiting + 2) * (size_t)fmu.width + 1,
                          kg_switches_work(m) + 1, (size_t)m->n_rows + 1, (size_t)m->n_rows + (size_t)m->n_free + 1, g + 1, g + 1,
                          fmu_slopes_length(d), fmu_jacobian_length(d)};
  size_t total = (sizeof *d + 15) / 16 * 16;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    *arrays[i] = memory ? (kg_real *)(void *)(memory + total) : NULL;
    total += sizes[i] * sizeof(kg_real);
  }
#if FMU_PROJECTION
  d->projecting = memory ? (kg_real *)(void *)(memory + total) : NULL;
  total += kg_projection_work(&d->projection) * sizeof(kg_real);
#endif
#if FMU_EVENTS
  total = (total + 15) / 16 * 16;
  d->events = memory ? memory + total : NULL;
  total += (kg_hybrid_memory(&d->hybrid) + 15) / 16 * 16;
#endif
  d->fresh = memory ? (int *)(void *)(memory + total) : NULL;
  total += ((size_t)fmu.n_functions + 1) * sizeof(int);
  d->counts = memory ? (int *)(void *)(memory + total) : NULL;
  return total + ((size_t)m->n_events + 1) * sizeof(int);
}

#if FMU_EVENTS
/* The constraints that take part in impulses of events. */
static inline void fmu_find_rows(fmu_data *d) {
  d->rows = kg_impulse_rows_of(d->model, fmu.mass);
  d->hybrid.model = d->model;
  d->hybrid.bilateral = d->rows.mass ? &d->rows : NULL;
}
#endif

#if FMU_PROJECTION
static inline void fmu_describe_projection(fmu_data *d) {
  kg_projection *c = &d->projection;
  kg_projection_describe(c, d->model, FMU_N_INTEGRALS, fmu.integrals, d->integrals);
  c->every = fmu.every;
  c->tolerance = fmu.tolerance;
  c->any_rank = fmu.any_rank;
}
#endif

/* Sizes and functions, for fmu_place(). */
static inline void fmu_describe(fmu_data *d) {
  memset(d, 0, sizeof *d);
  d->model = kg_get_model();
  d->host.model = d->model;
  d->host.rhs = kg_find_function(d->model, fmu.rhs);
  d->n = d->host.rhs->rows;
#if FMU_EVENTS
  fmu_find_rows(d);
#endif
#if FMU_PROJECTION
  fmu_describe_projection(d);
#endif
}

/* The laws and the memory of what runs evaluate. */
static inline void fmu_open_host(fmu_data *d) {
  kg_feedback *f = &d->host.feedback;
  const kg_function *laws = kg_find_function(d->model, "laws");
  for (int k = 0; k < fmu.n_laws; ++k) {
    d->laws[k] = fmu.laws[k];
    d->laws[k].function = laws->evaluate;
  }
  memcpy(d->clocks, fmu.clocks, (size_t)FMU_N_CLOCKS * sizeof *d->clocks);
  f->n_laws = fmu.n_laws;
  f->n_clocks = FMU_N_CLOCKS;
  f->laws = d->laws;
  f->clocks = d->clocks;
  f->width = fmu.width;
  f->waiting = fmu.n_waiting;
  f->p = d->p;
  f->r = d->r;
  f->work = d->work;
  f->values = d->feedback;
  f->held = f->values + fmu.width;
  f->samples = f->held + fmu.width;
  d->host.jacobian = d->jacobian;
  d->host.zeros = d->zeros;
}

/* Gives a block its default state, that of a new instance. */
static inline void fmu_reset(fmu_data *d, size_t size, int cosimulation) {
  const kg_model *m;
  memset(d, 0, size);
  fmu_describe(d);
  fmu_place(d, (char *)d);
  fmu_open_host(d);
  m = d->model;
  d->cosimulation = cosimulation;
  d->phase = FMU_CREATED;
  d->unprepared = d->unsettled = d->changed = 1;
  d->method = fmu.method;
  d->t = fmu.t;
  d->t_stop = fmu.t + FMU_FAR;
  d->ahead = FMU_AHEAD;
  memcpy(d->options, fmu.options, sizeof d->options);
  memcpy(d->y, fmu.y, (size_t)d->n * sizeof *d->y);
  memcpy(d->r, fmu.r, (size_t)m->n_r * sizeof *d->r);
  memcpy(d->p, fmu.p, (size_t)(m->n_p + m->n_g) * sizeof *d->p);
}

/* To be called after every change of time, state, inputs or parameters. */
static inline void fmu_touch(fmu_data *d) {
  d->has_rates = 0;
  memset(d->fresh, 0, (size_t)fmu.n_functions * sizeof *d->fresh);
}

#endif
