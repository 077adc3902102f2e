/* kg_host.h - what runs (kg_run.h) of a model evaluate: its inputs, y' and the derivatives of y'.
 *
 * The caller fills a kg_host and hands it to the run with these callbacks. Nothing is allocated.
 */
#ifndef KG_HOST_H
#define KG_HOST_H

#include "kg_feedback.h"
#include "kg_run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const kg_model *model;
  const kg_function *rhs;
  kg_run *run;
  void *projection;       /* kg_host_projection.h; NULL: there is none */
  kg_feedback feedback;   /* with parameters, inputs and scratch memory */
  const kg_real *zeros;   /* in place of the multipliers of contact rows and of the free vector of servo-constraints */
  kg_real *jacobian;      /* scratch: the largest Jacobian; NULL: implicit methods are not used */
} kg_host;

/* The point of a state with the present inputs, and without contact forces. */
static inline kg_point kg_host_point(const kg_host *h, kg_real t, const kg_real *y) {
  kg_point at;
  kg_point_place(&at, h->model, t, y);
  at.r = h->feedback.r;
  at.forces = at.free = h->zeros;
  return at;
}

/* Makes the inputs those of a state. */
static inline int kg_host_inputs(const kg_host *h, kg_real t, const kg_real *y) {
  const kg_point at = kg_host_point(h, t, y);
  return kg_feedback_inputs(&h->feedback, &at);
}

/* y' without contact forces (kg_ode.rhs). */
static inline int kg_host_rhs(void *host, kg_real t, const kg_real *y, kg_real *dydt) {
  const kg_host *h = (const kg_host *)host;
  const kg_point at = kg_host_point(h, t, y);
  const int status = kg_feedback_inputs(&h->feedback, &at);
  return status < 0 ? status : h->rhs->evaluate(&at, h->feedback.p, h->feedback.work, dydt);
}

/* The inputs of a run with contacts and events (kg_hybrid.inputs). */
static inline int kg_host_fill(void *host, const kg_point *at, kg_real *r) {
  (void)r; /* that of the point */
  return kg_feedback_inputs(&((const kg_host *)host)->feedback, at);
}

/* Computes the samples of a clock (kg_run.sample), ... */
static inline int kg_host_sample(void *host, int clock, kg_real t, const kg_real *y) {
  const kg_host *h = (const kg_host *)host;
  const kg_point at = kg_host_point(h, t, y);
  const int status = kg_feedback_inputs(&h->feedback, &at);
  return status < 0 ? status : kg_feedback_sample(&h->feedback, clock, &at);
}

/* ... and lets them act (kg_run.act). */
static inline int kg_host_act(void *host, int clock, kg_real t) {
  (void)t;
  kg_feedback_act(&((const kg_host *)host)->feedback, clock);
  return KG_OK;
}

/* Writes the matrix of a compiled function into the columns from `first` on of J (n x n). */
static inline int kg_host_columns(const kg_host *h, const char *name, const kg_point *at, int first, int columns,
                                  kg_real *J) {
  const kg_function *f = columns > 0 ? kg_find_function(h->model, name) : NULL;
  const int n = h->rhs->rows;
  int status;
  if (f == NULL) {
    return columns > 0 ? KG_INVALID_ARGUMENT : KG_OK;
  }
  status = f->evaluate(at, h->feedback.p, h->feedback.work, h->jacobian);
  for (int i = 0; i < n && status >= 0; ++i) {
    memcpy(J + i * (ptrdiff_t)n + first, h->jacobian + i * (ptrdiff_t)columns, (size_t)columns * sizeof *J);
  }
  return status;
}

/* Derivatives of y' at constant inputs (kg_ode.jacobian). */
static inline int kg_host_jacobian(void *host, kg_real t, const kg_real *y, const kg_real *dydt, kg_real *J,
                                   kg_real *dfdt) {
  const kg_host *h = (const kg_host *)host;
  const kg_model *m = h->model;
  const kg_function *f = kg_find_function(m, "jacobian_t");
  const kg_point at = kg_host_point(h, t, y);
  int status = kg_feedback_inputs(&h->feedback, &at);
  (void)dydt;
  status = status < 0 ? status : kg_host_columns(h, "jacobian_q", &at, 0, m->n_q, J);
  status = status < 0 ? status : kg_host_columns(h, "jacobian_u", &at, m->n_q, m->n_u, J);
  status = status < 0 ? status : kg_host_columns(h, "jacobian_s", &at, m->n_q + m->n_u, m->n_s, J);
  return status < 0 || f == NULL ? status : f->evaluate(&at, h->feedback.p, h->feedback.work, dfdt);
}

/* The equations that a run of this host integrates. */
static inline kg_ode kg_host_ode(kg_host *h) {
  kg_ode ode;
  ode.n = h->rhs->rows;
  ode.rhs = kg_host_rhs;
  ode.context = h;
  ode.jacobian = h->jacobian && kg_find_function(h->model, "jacobian_t") ? kg_host_jacobian : NULL;
  return ode;
}

/* Lets a run call this host, which samples its laws. */
static inline void kg_host_attach(kg_host *h, kg_run *run) {
  h->run = run;
  run->host = h;
  run->n_clocks = h->feedback.n_clocks;
  run->clocks = h->feedback.clocks;
  run->sample = kg_host_sample;
  run->act = kg_host_act;
}

#ifdef __cplusplus
}
#endif

#endif
