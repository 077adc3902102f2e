/* kg_hybrid_system.h - presents a model with contacts and events to the integrator and to the search for events.
 *
 * It provides the right-hand side in the present modes to kg_steppers.h, and the guards to kg_events.h: those of the
 * user first, then KG_CONTACT_GUARDS per contact.
 */
#ifndef KG_HYBRID_SYSTEM_H
#define KG_HYBRID_SYSTEM_H

#include "kg_events.h"
#include "kg_impulse.h"
#include "kg_instants.h"
#include "kg_paradox.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int kind;
  int index;
  int touch; /* the guard of a user's event touched zero without changing its sign */
  kg_real t;
  const kg_real *y_before; /* (q, u, s) */
  const kg_real *y_after;
  const kg_real *impulse;  /* n_rows: impulses of the contact rows at this instant */
  const int *mode;         /* n_contacts: modes after */
} kg_record;

/* Impacts of a contact that may accumulate. */
typedef struct {
  kg_real t;        /* time of the last impact */
  kg_real interval; /* between the last two impacts */
  kg_real ratio;    /* of the last two intervals */
  int count;
  int rests;        /* closed permanently before the accumulation point */
  kg_real t_rest;   /* the accumulation point */
} kg_bounce;

/* Up to `t_stop` to be filled by the host, all else zero; then kg_hybrid_open(). */
typedef struct {
  const kg_model *model;
  const kg_real *p;
  kg_stepper *stepper;
  kg_ode plain;  /* the motion without contact forces: n = n_q + n_u + n_s; the Jacobian may be NULL */
  kg_real *r;    /* n_r: the inputs */
  const kg_real *free; /* n_free, as in kg_point */
  /* Fills the inputs (NULL: they are constant); called after every step that is accepted with its outcome (NULL:
   * nothing to do), may change stepper->y as kg_projection_after_step() does; stores a record. All return 0 or a
   * negative outcome or status, which ends the run. */
  int (*inputs)(void *host, const kg_point *at, kg_real *r);
  int (*accept)(void *host, int outcome);
  int (*record)(void *host, const kg_record *record);
  void *host;
  const int *watched;            /* n_events flags of the events to locate, or NULL: all */
  const kg_impulse_rows *bilateral;  /* bilateral constraints for the impulses of events; NULL: there are none */
  kg_real t_stop;                /* the run also stops here (KG_AT_STOP) if it lies ahead; NaN: never */
  const kg_instants *instants;   /* between two of which everything is evaluated; NULL: there are none */

  kg_contacts contacts; /* modes: contacts.mode */
  int has_contacts;
  int culprit;          /* contact that caused a failure, or -1; */
  int culprit_event;    /* or user's event, or -1 */
  kg_finder finder;
  const kg_function *events;
  const kg_function *impulses;
  const kg_function *resets;      /* of the states, by the user's events; NULL: none */
  const kg_function *state_rates; /* NULL: no states */
  int n_s;                        /* number of states */
  kg_real now;          /* time of the reaction, */
  kg_real t;            /* and the time in the present interval at which functions are evaluated then */
  kg_real *y;
  kg_real t_end;
  kg_real t_event;      /* of the last event */
  int idle_events;      /* in a row without progress */
  int is_idle;          /* the last one hardly changed t */
  int terminal;
  int modes_changed;
  int *rules;
  int *costly;
  int *mode_before;
  kg_real *state;       /* n_q + n_u + n_s */
  kg_real *before;      /* n_q + n_u + n_s */
  kg_real *rates;       /* n_q + n_u + n_s */
  kg_real *u_before;    /* n_u */
  kg_real *generalized; /* n_u */
  kg_real *impulse_work;
  kg_real *multipliers;
  kg_real *impulse_rows;
  kg_real *reset_rows;  /* n_events * n_s */
  kg_real *impulse;     /* n_rows */
  kg_real *impact;      /* n_rows */
  kg_real *direction;   /* 2 per contact: before */
  kg_bounce *bounces;   /* per contact */
  kg_real *guards;      /* at a stage */
  kg_real *no_forces;   /* n_rows: zeros */
  kg_real *scratch;
} kg_hybrid;

static inline int kg_hybrid_size(const kg_hybrid *h) { return h->model->n_q + h->model->n_u + h->n_s; }

static inline int kg_hybrid_guards_count(const kg_model *model) {
  return model->n_events + KG_CONTACT_GUARDS * model->n_contacts;
}

/* The present time and state. */
static inline void kg_hybrid_place_at(kg_hybrid *h, kg_real t, kg_real *y) {
  h->now = t;
  h->t = kg_instants_inside(h->instants, t);
  h->y = y;
}

/* The point of a state with the present inputs and with `lambda` (n_rows, or NULL: zero). */
static inline kg_point kg_hybrid_point(const kg_hybrid *h, kg_real t, const kg_real *y, const kg_real *lambda) {
  kg_point at;
  kg_point_place(&at, h->model, t, y);
  at.r = h->r;
  at.forces = lambda ? lambda : h->no_forces;
  at.free = h->free;
  return at;
}

/* Evaluates the inputs at a state. */
static inline int kg_hybrid_inputs(const kg_hybrid *h, kg_real t, const kg_real *y) {
  const kg_point at = kg_hybrid_point(h, t, y, NULL);
  const int status = h->inputs ? h->inputs(h->host, &at, h->r) : KG_OK;
  return status < 0 ? status : KG_OK;
}

/* Returns whether a contact has a mode of at least this one: with KG_PENETRATED, guards need accelerations; with
 * KG_CLOSED, there are contact forces. */
static inline int kg_hybrid_acts(const kg_hybrid *h, int mode) {
  if (h->has_contacts) {
    for (int m = 0; m < h->model->n_contacts; ++m) {
      if (h->contacts.mode[m] >= mode) {
        return 1;
      }
    }
  }
  return 0;
}

/* Evaluates a function, if there is one; `lambda` (n_rows, or NULL: zero) are the multipliers it reads. */
static inline int kg_hybrid_evaluate(kg_hybrid *h, const kg_function *function, kg_real t, const kg_real *y,
                                     const kg_real *lambda, kg_real *out) {
  const kg_point at = kg_hybrid_point(h, t, y, lambda);
  const int status = function ? function->evaluate(&at, h->p, h->scratch, out) : KG_OK;
  return status < 0 ? status : KG_OK;
}

/* All guards (kg_finder). */
static inline int kg_hybrid_guards(void *context, kg_real time, const kg_real *y, int costly, kg_real *g) {
  kg_hybrid *h = (kg_hybrid *)context;
  const kg_real t = kg_instants_inside(h->instants, time);
  const int forces = costly && kg_hybrid_acts(h, KG_PENETRATED);
  int status = kg_hybrid_inputs(h, t, y);
  if (status == KG_OK && h->has_contacts) {
    const kg_point at = kg_hybrid_point(h, t, y, NULL);
    h->stepper->statistics.evaluations += forces != 0;
    status = kg_contacts_guards(&h->contacts, &at, forces, g + h->model->n_events);
  }
  if (status >= 0) {
    status = kg_hybrid_evaluate(h, h->events, t, y, forces ? h->contacts.lambda : NULL, g);
  }
  return status < 0 ? kg_stepper_fail(h->stepper, status) : KG_OK;
}

/* Passes the guards at a stage to the finder, with the forces that were just evaluated there. */
static inline int kg_hybrid_watch(kg_hybrid *h, kg_real t, const kg_real *y) {
  int status;
  kg_contacts_guards_last(&h->contacts, h->guards + h->model->n_events);
  status = kg_hybrid_evaluate(h, h->events, t, y, h->contacts.lambda, h->guards);
  kg_finder_watch(&h->finder, h->guards);
  return status;
}

/* y' in the present modes (kg_ode). */
static inline int kg_hybrid_rhs(void *context, kg_real time, const kg_real *y, kg_real *dydt) {
  kg_hybrid *h = (kg_hybrid *)context;
  const kg_real t = kg_instants_inside(h->instants, time);
  const int n_q = h->model->n_q;
  int status;
  if (!kg_hybrid_acts(h, KG_CLOSED)) {
    return h->plain.rhs(h->plain.context, t, y, dydt);
  }
  status = kg_hybrid_inputs(h, t, y);
  if (status == KG_OK) {
    const kg_point at = kg_hybrid_point(h, t, y, NULL);
    status = kg_contacts_rhs(&h->contacts, &at, dydt, dydt + n_q);
  }
  if (status >= 0 && h->n_s > 0) {
    const int rates = kg_hybrid_evaluate(h, h->state_rates, t, y, h->contacts.lambda, dydt + n_q + h->model->n_u);
    status = rates < 0 ? rates : status;
  }
  if (status >= 0 && h->finder.any_costly) {
    const int watched = kg_hybrid_watch(h, t, y);
    status = watched < 0 ? watched : status;
  }
  return status;
}

/* Difference quotient of y' along one component of y, or in t (component -1), where y' is dydt. */
static inline int kg_hybrid_difference(kg_hybrid *h, kg_real t, const kg_real *y, const kg_real *dydt, int component,
                                       kg_real *quotient) {
  const int n = kg_hybrid_size(h);
  const kg_real moved = component < 0 ? t + kg_stepper_time_difference(h->stepper) : t;
  const kg_real step = component < 0 ? moved - t : kg_stepper_difference(h->stepper, component, y[component]);
  int status;
  memcpy(h->state, y, (size_t)n * sizeof *y);
  if (component >= 0) {
    h->state[component] += step;
  }
  ++h->stepper->statistics.evaluations;
  status = kg_hybrid_rhs(h, moved, h->state, quotient);
  for (int i = 0; i < n && status >= 0; ++i) {
    quotient[i] = (quotient[i] - dydt[i]) / step;
  }
  return status;
}

/* Derivatives of y' (kg_ode): the model's own Jacobian if no contact is closed, else difference quotients. */
static inline int kg_hybrid_jacobian(void *context, kg_real time, const kg_real *y, const kg_real *dydt, kg_real *J,
                                     kg_real *dfdt) {
  kg_hybrid *h = (kg_hybrid *)context;
  const kg_real t = kg_instants_inside(h->instants, time);
  const int n = kg_hybrid_size(h);
  int status = KG_OK;
  if (h->plain.jacobian && !kg_hybrid_acts(h, KG_CLOSED)) {
    return h->plain.jacobian(h->plain.context, t, y, dydt, J, dfdt);
  }
  for (int j = 0; j < n && status >= 0; ++j) {
    status = kg_hybrid_difference(h, t, y, dydt, j, h->rates);
    for (int i = 0; i < n; ++i) {
      J[i * (ptrdiff_t)n + j] = h->rates[i];
    }
  }
  return status < 0 ? status : kg_hybrid_difference(h, t, y, dydt, -1, dfdt);
}

/* Returns whether guard k of a contact depends on `gaps` only in the present mode (kg_contact.h). */
static inline int kg_hybrid_needs_forces(const kg_contacts *c, int m, int k) {
  const int law = c->law[m], mode = c->mode[m];
  const int rigid = law == KG_LAW_STABILIZED || law == KG_LAW_RESTITUTION;
  if (k == 0) {
    return kg_closed(mode) && rigid;
  }
  if (k == 1) {
    return mode == KG_PENETRATED && rigid;
  }
  if (k == 3) {
    return kg_contact_can_jam(c, m);
  }
  return k == 2 && (mode == KG_STICK || (mode == KG_SLIP && c->s.creep[m] > KG_C(0.0)));
}

/* Marks the guards that need forces in the present modes. */
static inline void kg_hybrid_mark_costly(kg_hybrid *h) {
  const int n_e = h->model->n_events, acts = kg_hybrid_acts(h, KG_PENETRATED);
  for (int i = 0; i < n_e; ++i) {
    h->costly[i] = acts && h->model->events[i].multipliers;
  }
  for (int m = 0; m < h->model->n_contacts; ++m) {
    for (int k = 0; k < KG_CONTACT_GUARDS; ++k) {
      h->costly[n_e + KG_CONTACT_GUARDS * m + k] = h->has_contacts && kg_hybrid_needs_forces(&h->contacts, m, k);
    }
  }
}

static inline void kg_hybrid_fill_rules(kg_hybrid *h) {
  const int n_e = h->model->n_events;
  for (int i = 0; i < kg_hybrid_guards_count(h->model); ++i) {
    const int looked_for = i >= n_e ? h->has_contacts : !h->watched || h->watched[i];
    h->rules[i] = !looked_for ? KG_IGNORED : i >= n_e ? KG_CONDITION : h->model->events[i].direction;
  }
}

/* Lengths of the arrays of kg_real, in the order in which kg_hybrid_place() places them. */
#define KG_HYBRID_ARRAYS 16

/* Places the arrays of kg_real in `work`; returns their length. With work NULL it only computes the length. */
static inline size_t kg_hybrid_place(kg_hybrid *h, kg_real *work) {
  const kg_model *model = h->model;
  const size_t n_u = (size_t)model->n_u, n = (size_t)kg_hybrid_size(h), k = (size_t)model->n_rows;
  const size_t m = (size_t)model->n_contacts, g = (size_t)kg_hybrid_guards_count(model);
  const kg_function *const functions[4] = {h->events, h->impulses, h->resets, h->state_rates};
  size_t scratch = 0;
  const size_t solving = h->bilateral ? kg_impulse_work(h->bilateral) : 0;
  const size_t rows = h->bilateral ? (size_t)h->bilateral->n_c : 0;
  const size_t table = h->impulses ? (size_t)h->impulses->rows * n_u : 0;
  const size_t resets = h->resets ? (size_t)h->resets->rows * (size_t)h->n_s : 0;
  kg_real **const arrays[KG_HYBRID_ARRAYS] = {&h->state, &h->before, &h->rates, &h->u_before, &h->generalized,
                                              &h->impulse_work, &h->multipliers, &h->impulse_rows, &h->reset_rows,
                                              &h->impulse, &h->impact, &h->direction, &h->guards, &h->no_forces,
                                              &h->finder.start, &h->scratch};
  size_t sizes[KG_HYBRID_ARRAYS] = {n, n, n, n_u, n_u, solving, rows, table, resets, k, k, 2 * m, g, k,
                                    kg_finder_work((int)g, (int)n), 0};
  size_t total = 0;
  for (int i = 0; i < 4; ++i) {
    const size_t needed = functions[i] ? (size_t)functions[i]->work : 0;
    scratch = scratch < needed ? needed : scratch;
  }
  sizes[KG_HYBRID_ARRAYS - 1] = scratch;
  for (int i = 0; i < KG_HYBRID_ARRAYS; ++i) {
    *arrays[i] = work ? work + total : NULL;
    total += sizes[i];
  }
  return total;
}

#ifdef __cplusplus
}
#endif

#endif
