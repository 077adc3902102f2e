/* The loop over steps, events and contacts, on models whose motion is known (tests/support/hybrid_host.py). */
#include "kg_hybrid.h"

/* The arguments of a function as variables, some of which it may leave unused. */
#define READ                                                   \
  const double t = at->t, *q = at->q, *u = at->u;              \
  double *o = out;                                             \
  (void)t, (void)q, (void)u, (void)p, (void)work

/* BALL: q = (x, y), a point of mass 1 above the floor y = A sin(k x), restitution e, drag c v;
 * p = (g, e, A, k, c, time of a blow). Events: apex, blow upwards (2 N s), height 0.5. */
static int ball_rhs(KG_ARGUMENTS) {
  READ;
  o[0] = u[0];
  o[1] = u[1];
  o[2] = -p[4] * u[0];
  o[3] = -p[4] * u[1] - p[0];
  return KG_OK;
}

static int ball_gaps(KG_ARGUMENTS) {
  READ;
  const double slope = p[2] * p[3] * cos(p[3] * q[0]);
  o[0] = q[1] - p[2] * sin(p[3] * q[0]);
  o[1] = u[1] - slope * u[0];
  o[2] = -20.0 * o[1] - 100.0 * o[0];
  o[3] = 0.0;
  o[4] = o[5] = 0.0;
  o[6] = p[1];
  o[7] = 0.0;
  return KG_OK;
}

static int ball_contacts(KG_ARGUMENTS) {
  READ;
  const double slope = p[2] * p[3] * cos(p[3] * q[0]);
  ball_rhs(at, p, work, out);
  o[4] = -slope;
  o[5] = 1.0;
  o[6] = 1.0 + slope * slope;
  o[7] = o[3] - slope * o[2] + p[2] * p[3] * p[3] * sin(p[3] * q[0]) * u[0] * u[0];
  return ball_gaps(at, p, work, out + 8);
}

static int ball_events(KG_ARGUMENTS) {
  READ;
  o[0] = u[1];
  o[1] = t - p[5];
  o[2] = q[1] - 0.5;
  return KG_OK;
}

static int ball_impulses(KG_ARGUMENTS) {
  READ;
  o[0] = 0.0;
  o[1] = 2.0;
  return KG_OK;
}

static int identity(KG_ARGUMENTS) {
  READ;
  o[0] = o[3] = 1.0;
  o[1] = o[2] = 0.0;
  return KG_OK;
}

/* BLOCK: mass 1 on a spring k = 1, pressed on the floor by N, on a belt of speed v; p = (N, mu_s, mu_k, v). */
static int block_rhs(KG_ARGUMENTS) {
  READ;
  o[0] = u[0];
  o[1] = -q[0];
  return KG_OK;
}

static int block_gaps(KG_ARGUMENTS) {
  READ;
  o[0] = 0.0;
  o[1] = u[0] - p[3];
  o[2] = -10.0 * o[1];
  o[3] = p[0];
  o[4] = p[1];
  o[5] = p[2];
  o[6] = o[7] = 0.0;
  return KG_OK;
}

static int block_contacts(KG_ARGUMENTS) {
  READ;
  block_rhs(at, p, work, out);
  o[2] = 1.0;
  o[3] = 1.0;
  o[4] = o[1];
  return block_gaps(at, p, work, out + 5);
}

/* RELAY: x'' = -sign(x + x'), which slides along x + x' = 0, and its guard. */
static int relay_rhs(KG_ARGUMENTS) {
  READ;
  o[0] = u[0];
  o[1] = q[0] + u[0] > 0.0 ? -1.0 : 1.0;
  return KG_OK;
}

static int relay_events(KG_ARGUMENTS) {
  READ;
  o[0] = q[0] + u[0];
  return KG_OK;
}

static const kg_function relay_functions[] = {{"events", 1, 0, 0, relay_events}};
static const kg_function ball_functions[] = {{"contacts", 16, 0, 0, ball_contacts},
                                             {"gaps", 8, 0, 0, ball_gaps},
                                             {"events", 3, 0, 0, ball_events},
                                             {"impulses", 1, 2, 0, ball_impulses}};
static const kg_function block_functions[] = {{"contacts", 13, 0, 0, block_contacts}, {"gaps", 8, 0, 0, block_gaps}};
static const kg_function mass = {"Q", 2, 2, 0, identity};
static const kg_contact_info floor_contact = {"floor", KG_LAW_RESTITUTION, 2, 0, -1, 0, 0};
static const kg_contact_info belt = {"belt", KG_LAW_LOAD, 2, -1, 0, 1, 0};
static const kg_event_info ball_event[] = {{"apex", KG_FALLING, 0, -1, 0, NULL, 0, NULL, 0},
                                           {"blow", KG_RISING, 0, 0, 0, NULL, 0, NULL, 0},
                                           {"height", KG_ANY, 1, -1, 0, NULL, 0, NULL, 0}};

static kg_model model_of(int number) {
  static const kg_function *const functions[] = {ball_functions, block_functions, relay_functions};
  static const int n_functions[] = {4, 2, 1}, n_events[] = {3, 0, 1}, n_contacts[] = {1, 1, 0}, sizes[] = {2, 1, 1};
  kg_model m;
  memset(&m, 0, sizeof m);
  m.n_q = m.n_u = sizes[number];
  m.n_rows = m.n_contacts = n_contacts[number];
  m.contacts = number == 0 ? &floor_contact : &belt;
  m.functions = functions[number];
  m.n_functions = n_functions[number];
  m.events = ball_event; /* the relay's is like the apex */
  m.n_events = n_events[number];
  return m;
}

typedef struct { double t; int kind; int index; int mode; double before[4]; double after[4]; double impulse; } entry;
typedef struct { int model; const double *p; int count; int capacity; entry *entries; int n; } host;

static int plain_rhs(void *context, double t, const double *y, double *dydt) {
  const host *own = (const host *)context;
  const kg_point at = {t, y, y + (own->model == 0 ? 2 : 1), NULL, NULL, NULL, NULL};
  return own->model == 0   ? ball_rhs(&at, own->p, NULL, dydt)
         : own->model == 1 ? block_rhs(&at, own->p, NULL, dydt)
                           : relay_rhs(&at, own->p, NULL, dydt);
}

static int store(void *context, const kg_record *record) {
  host *own = (host *)context;
  entry *e = own->entries + own->count;
  if (own->count == own->capacity) {
    return KG_TOO_MANY_STEPS;
  }
  e->t = record->t;
  e->kind = record->kind;
  e->index = record->index;
  e->mode = own->model == 2 ? 0 : record->mode[0];
  e->impulse = own->model == 2 ? 0.0 : record->impulse[0];
  memcpy(e->before, record->y_before, (size_t)own->n * sizeof(double));
  memcpy(e->after, record->y_after, (size_t)own->n * sizeof(double));
  ++own->count;
  return KG_OK;
}

/* Runs from t0 to t_end; *t and y become the last state. `stops`: every so often, 0 never; *stopped counts. */
int run(int number, const double *p, const kg_stepper_options *options, double *t, double t_end, double *y,
        const int *watched, double stops, int *stopped, entry *entries, int capacity, int *count,
        kg_statistics *statistics, int *culprit, int *culprit_event) {
  double work[2000], memory[2000];
  const kg_model model = model_of(number);
  const kg_impulse_rows bilateral = {2, 0, NULL, &mass, NULL, NULL};
  kg_stepper stepper;
  kg_hybrid h;
  host own;
  int status;
  memset(&h, 0, sizeof h);
  own.model = number;
  own.p = p;
  own.count = 0;
  own.capacity = capacity;
  own.entries = entries;
  own.n = model.n_q + model.n_u;
  h.model = &model;
  h.p = p;
  h.stepper = &stepper;
  h.plain.n = own.n;
  h.plain.rhs = plain_rhs;
  h.plain.context = &own;
  h.record = store;
  h.host = &own;
  h.watched = watched;
  h.bilateral = number == 0 ? &bilateral : NULL;
  h.t_stop = stops > 0.0 ? *t + stops : NAN;
  if (kg_hybrid_memory(&h) > sizeof memory || kg_hybrid_open(&h, memory) != KG_OK) {
    return KG_INVALID_ARGUMENT;
  }
  status = kg_hybrid_start(&h, options, *t, y, t_end, work);
  while (status == KG_OK) {
    status = kg_hybrid_step(&h);
    while (status == KG_AT_EVENT || status == KG_AT_STOP) {
      if (status == KG_AT_STOP) {
        ++*stopped;
        h.t_stop += stops;
      }
      status = kg_hybrid_react(&h);
    }
  }
  *count = own.count;
  *statistics = stepper.statistics;
  *culprit = h.culprit;
  *culprit_event = h.culprit_event;
  if (status >= 0) {
    *t = stepper.t;
    memcpy(y, stepper.y, (size_t)own.n * sizeof(double));
  }
  return status;
}
