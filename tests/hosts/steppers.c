/* The steppers on problems with known solutions, and the loop over the steps (tests/support/steppers.py). */
#include "kg_steppers.h"

static int rhs(void *context, double t, const double *y, double *dydt) {
  switch (*(const int *)context) {
    case 0: /* 1 / (1 + t^2), exp(sin t), cos t, -sin t */
      dydt[0] = -2.0 * t * y[0] * y[0];
      dydt[1] = y[1] * cos(t);
      dydt[2] = y[3];
      dydt[3] = -y[2];
      return KG_OK;
    case 1: /* 1 / (1 - t) */
      dydt[0] = y[0] * y[0];
      return KG_OK;
    case 2:
      dydt[0] = -y[0];
      return t > 1.0 ? KG_SINGULAR : KG_OK;
    case 3:
      dydt[0] = -y[0];
      return t > 1.0 ? -100 : KG_OK;
    case 4:
      dydt[0] = -y[0] * (t > 1.0 ? sqrt(1.0 - t) : 1.0);
      return KG_OK;
    case 5:
      dydt[0] = -y[0];
      return KG_REPARTITIONED;
    case 6:
      dydt[0] = 0.0;
      dydt[1] = 1.0;
      return KG_OK;
    case 7:
      dydt[0] = t < 1.0 ? 1.0 : -1.0;
      return KG_OK;
    case 8: /* short of 1000, steps of 1e-14 still change t, but y no longer */
      dydt[0] = 1.0 + 0.1 * sin(t);
      return y[0] > 1000.0 ? KG_SINGULAR : KG_OK;
    case 9: /* cos t (Prothero and Robinson) */
      dydt[0] = -1e6 * (y[0] - cos(t)) - sin(t);
      return KG_OK;
    default: /* van der Pol's equation as in Hairer and Wanner, section IV.1 */
      dydt[0] = y[1];
      dydt[1] = ((1.0 - y[0] * y[0]) * y[1] - y[0]) * 1e6;
      return KG_OK;
  }
}

static int jacobian(void *context, double t, const double *y, const double *dydt, double *J, double *dfdt) {
  const int problem = *(const int *)context;
  const int n = problem == 0 ? 4 : problem == 6 || problem == 10 ? 2 : 1;
  (void)dydt;
  memset(J, 0, (size_t)(n * n) * sizeof *J);
  memset(dfdt, 0, (size_t)n * sizeof *dfdt);
  switch (problem) {
    case 0:
      J[0] = -4.0 * t * y[0];
      J[5] = cos(t);
      J[11] = 1.0;
      J[14] = -1.0;
      dfdt[0] = -2.0 * y[0] * y[0];
      dfdt[1] = -y[1] * sin(t);
      break;
    case 1:
      J[0] = 2.0 * y[0];
      break;
    case 6:
    case 7:
      break;
    case 8:
      dfdt[0] = 0.1 * cos(t);
      break;
    case 9:
      J[0] = -1e6;
      dfdt[0] = -1e6 * sin(t) - cos(t);
      break;
    case 10:
      J[1] = 1.0;
      J[2] = (-2.0 * y[0] * y[1] - 1.0) * 1e6;
      J[3] = (1.0 - y[0] * y[0]) * 1e6;
      break;
    default:
      J[0] = -1.0;
      break;
  }
  return KG_OK;
}

typedef struct {
  int steps;          /* stored steps; t_out has one value more */
  int capacity;
  double *t_out;      /* capacity + 1 */
  double *y_out;      /* (capacity + 1) x n */
  double *dense;      /* NULL, or capacity x rows x n */
  int queries;
  const double *t_query;
  double *y_query;    /* queries x n */
  int rhs_status;
} record;

static int store(kg_stepper *s, record *r, int *next) {
  const ptrdiff_t n = s->ode.n;
  int status = KG_OK;
  while (status == KG_OK && *next < r->queries && (r->t_query[*next] - s->t) * s->direction <= 0.0) {
    status = kg_stepper_interpolate(s, r->t_query[*next], r->y_query + *next * n);
    ++*next;
  }
  if (status == KG_OK && r->dense) {
    const ptrdiff_t size = kg_dense_rows(s->options.method) * n;
    status = kg_stepper_dense(s);
    memcpy(r->dense + r->steps * size, s->dense, (size_t)size * sizeof(double));
  }
  ++r->steps;
  r->t_out[r->steps] = s->t;
  memcpy(r->y_out + r->steps * n, s->y, (size_t)n * sizeof(double));
  return status;
}

int integrate(int problem, int n, const kg_stepper_options *options, double t0, double t_end,
              const double *y0, double *work, record *r, kg_statistics *statistics) {
  kg_ode ode;
  kg_stepper s;
  int next = 0;
  int status;
  ode.n = n;
  ode.rhs = rhs;
  ode.jacobian = jacobian;
  ode.context = &problem;
  status = kg_stepper_start(&s, &ode, options, t0, y0, t_end, work);
  r->t_out[0] = t0;
  memcpy(r->y_out, y0, (size_t)n * sizeof(double));
  while (status == KG_OK && r->steps < r->capacity) {
    status = kg_stepper_step(&s);
    if (status >= 0 && store(&s, r, &next) != KG_OK) {
      return KG_INVALID_ARGUMENT;
    }
  }
  r->rhs_status = s.rhs_status;
  *statistics = s.statistics;
  return status;
}

size_t workspace(int method, int n) { return kg_stepper_work(method, n); }
int dense_rows(int method) { return kg_dense_rows(method); }
void evaluate(int rows, int n, const double *dense, double t_old, double h, double t, double *y) {
  kg_dense_evaluate(rows, n, dense, t_old, h, t, y);
}
const char *message(int status) { return kg_status_message(status); }

int single_steps(int kutta_merson, int steps, double h, double *y, double *error) {
  double work[KG_KUTTA_MERSON_WORK(4)], y_new[4];
  int problem = 0;
  kg_ode ode;
  ode.n = 4;
  ode.rhs = rhs;
  ode.jacobian = NULL;
  ode.context = &problem;
  for (int i = 0; i < steps; ++i) {
    const int status = kutta_merson ? kg_kutta_merson_step(&ode, i * h, h, y, y_new, work)
                                    : kg_rk4_step(&ode, i * h, h, y, y_new, work);
    if (status != KG_OK) {
      return status;
    }
    if (kutta_merson) {
      kg_kutta_merson_estimate(4, h, work, error);
    }
    memcpy(y, y_new, sizeof y_new);
  }
  return KG_OK;
}
