/* The search for events on right-hand sides and guards with known zeros (tests/support/event_host.py). */
#include "kg_events.h"

typedef struct { int kind; int size; const double *c; int component; } guard;
typedef struct { int problem; int n; const guard *guards; long evaluations; } setting;
typedef struct { double t; int guard; int kind; double g; double y[2]; } event;

static int rhs(void *context, double t, const double *y, double *dydt) {
  (void)t;
  switch (((const setting *)context)->problem) {
    case 0:
      dydt[0] = 1.0;
      dydt[1] = 0.0;
      return KG_OK;
    case 1:
      dydt[0] = y[1];
      dydt[1] = -y[0];
      return KG_OK;
    default:
      dydt[0] = y[0] > 0.0 ? -1.0 : 1.0;
      dydt[1] = 1.0;
      return KG_OK;
  }
}

static int jacobian(void *context, double t, const double *y, const double *dydt, double *J, double *dfdt) {
  (void)t, (void)y, (void)dydt;
  memset(J, 0, 4 * sizeof *J);
  memset(dfdt, 0, 2 * sizeof *dfdt);
  if (((const setting *)context)->problem == 1) {
    J[1] = 1.0;
    J[2] = -1.0;
  }
  return KG_OK;
}

static double value(const guard *g, double t, const double *y) {
  double sum = 0.0;
  switch (g->kind) {
    case 0:
      for (int i = 0; i < g->size; ++i) {
        sum = sum * y[0] + g->c[i];
      }
      return sum;
    case 1:
      return y[g->component] - g->c[0];
    case 2:
      return sin(g->c[0] * t);
    case 3:
      return y[0] > g->c[0] ? 1.0 : -1.0;
    case 4:
      return y[0] * y[1];
    default:
      return 0.0;
  }
}

static int guards(void *context, double t, const double *y, int costly, double *g) {
  setting *s = (setting *)context;
  (void)costly;
  ++s->evaluations;
  for (int i = 0; i < s->n; ++i) {
    g[i] = value(s->guards + i, t, y);
  }
  return KG_OK;
}

/* Returns the outcome; *count events are stored, at most `capacity`. */
int find_events(setting *s, const int *rules, const kg_stepper_options *options, double t0, double t_end,
                const double *y0, int action, int capacity, event *events, int *count, kg_statistics *statistics) {
  double work[2000], finder_work[450];
  int integers[128];
  kg_found found[32];
  kg_stepper stepper;
  kg_finder finder;
  kg_ode ode;
  int status;
  ode.n = 2;
  ode.rhs = rhs;
  ode.jacobian = jacobian;
  ode.context = s;
  finder.n = s->n;
  finder.evaluate = guards;
  finder.context = s;
  finder.rules = rules;
  finder.costly = NULL;
  finder.slack = NULL;
  *count = 0;
  kg_finder_layout(&finder, finder_work, integers, found);
  status = kg_stepper_start(&stepper, &ode, options, t0, y0, t_end, work);
  if (status == KG_OK) {
    status = kg_finder_start(&finder, &stepper);
  }
  while (status == KG_OK) {
    status = kg_stepper_step(&stepper);
    const int outcome = status < 0 ? status : kg_finder_step(&finder, &stepper);
    if (outcome < 0) {
      status = outcome;
    }
    if (outcome == KG_AT_EVENT) {
      status = kg_finder_locate(&finder, &stepper, NULL, NULL);
      status = status == KG_REJECTED ? KG_OK : status;
      while (status == KG_AT_EVENT) {
        for (int i = 0; i < s->n; ++i) {
          if (finder.fired[i]) {
            event *e = events + *count;
            if (*count == capacity) {
              return KG_TOO_MANY_STEPS;
            }
            e->t = stepper.t;
            e->guard = i;
            e->kind = finder.fired[i];
            e->g = finder.g[i];
            memcpy(e->y, stepper.y, sizeof e->y);
            ++*count;
          }
        }
        if (action == 1) {
          stepper.y[1] = -stepper.y[1];
        }
        status = kg_finder_restart(&finder, &stepper);
        action = status == KG_AT_EVENT ? 0 : action;
      }
      if (status == KG_OK) {
        status = kg_stepper_restart(&stepper, t_end, 0);
      }
    }
  }
  *statistics = stepper.statistics;
  return status;
}
