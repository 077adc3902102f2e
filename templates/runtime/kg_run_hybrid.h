/* kg_run_hybrid.h - carries out runs (kg_run.h) of models with contacts and events (kg_hybrid.h). */
#ifndef KG_RUN_HYBRID_H
#define KG_RUN_HYBRID_H

#include "kg_hybrid.h"
#include "kg_run.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline int kg_run_hybrid_step(kg_run *r) { return kg_hybrid_step((kg_hybrid *)r->system); }

static inline int kg_run_hybrid_react(kg_run *r) {
  kg_hybrid *h = (kg_hybrid *)r->system;
  h->t_stop = r->t_stop;
  return kg_hybrid_react(h);
}

/* Starts the run of a model with contacts and events after kg_run_begin() and kg_hybrid_open(), and stores its start,
 * before and after what happens there. `work` is that of kg_stepper_start(), the result that of kg_hybrid_start(). */
static inline int kg_run_hybrid_start(kg_run *r, kg_hybrid *h, const kg_stepper_options *options, kg_real *y0,
                                      kg_real *work) {
  kg_stepper *s = r->stepper;
  int status;
  r->system = h;
  r->step = kg_run_hybrid_step;
  r->react = kg_run_hybrid_react;
  h->instants = r->instants;
  h->t_stop = r->t_stop; /* at the end of the run it means nothing */
  status = kg_hybrid_start(h, options, r->t_start, y0, r->t_end, work);
  if (s->y == NULL) { /* it did not come so far */
    s->ode.n = kg_hybrid_size(h);
    s->t = r->t_start;
    s->y = y0;
  }
  return status == KG_INVALID_ARGUMENT ? status : kg_run_store_start(r, status, r->t_start, y0);
}

#ifdef __cplusplus
}
#endif

#endif
