/* kg_host_projection.h - projects the states of a run (kg_run.h) onto the constraints and integrals of its model. */
#ifndef KG_HOST_PROJECTION_H
#define KG_HOST_PROJECTION_H

#include "kg_host.h"
#include "kg_projection.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Corrects the state after a step that ended with `outcome` (kg_run.accept). */
static inline int kg_host_project(void *host, int outcome) {
  const kg_host *h = (const kg_host *)host;
  kg_stepper *s = h->run->stepper;
  const kg_point at = kg_host_point(h, s->t, s->y);
  const int status = kg_feedback_inputs(&h->feedback, &at);
  return status < 0 ? status : kg_projection_after_step((kg_projection *)h->projection, s, &at, outcome);
}

/* The integrals of motion keep their present values from now on (kg_run.renew). */
static inline int kg_host_renew(void *host) {
  const kg_host *h = (const kg_host *)host;
  const kg_stepper *s = h->run->stepper;
  const kg_point at = kg_host_point(h, s->t, s->y);
  const int status = kg_feedback_inputs(&h->feedback, &at);
  return status < 0 ? status : kg_projection_renew((kg_projection *)h->projection, &at);
}

/* Finds the constraints of the model and those integrals of motion. */
static inline void kg_projection_describe(kg_projection *c, const kg_model *model, int n, const char *const *names,
                                          const kg_function **integrals) {
  for (int i = 0; i < n; ++i) {
    integrals[i] = kg_find_function(model, names[i]);
  }
  c->integrals.n = n;
  c->integrals.functions = integrals;
  c->manifold.n_q = model->n_q;
  c->manifold.n_u = model->n_u;
  c->manifold.angles = model->angles;
  c->manifold.position = kg_find_function(model, "position_level");
  c->manifold.velocity = kg_find_function(model, "velocity_level");
  c->manifold.displacements = kg_find_function(model, "displacements");
  c->manifold.mass = kg_find_function(model, "Q");
}

/* Projects after the steps of the run of this host. The work space has kg_projection_work() values. */
static inline void kg_host_open_projection(kg_host *h, kg_projection *c, kg_real *work) {
  h->projection = c;
  c->p = h->feedback.p;
  c->work = work;
  kg_projection_start(c);
  h->run->accept = kg_host_project;
  h->run->renew = kg_host_renew;
}

#ifdef __cplusplus
}
#endif

#endif
