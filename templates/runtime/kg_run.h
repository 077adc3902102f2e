/* kg_run.h - carries out a whole run: steps, known instants, sampled inputs, events, and the states that are stored.
 *
 * The host fills a kg_run (all other fields are zero) and calls kg_run_begin(), kg_run_start(), and kg_run_advance()
 * until it returns something else than KG_OK. Nothing is allocated: states leave through the callbacks. With contacts
 * or events kg_run_hybrid_start() takes the place of kg_run_start() (kg_run_hybrid.h).
 *
 * Callbacks return KG_OK or a negative status, which ends the run. Those marked "or NULL" may be left out.
 */
#ifndef KG_RUN_H
#define KG_RUN_H

#include "kg_clock.h"
#include "kg_instants.h"
#include "kg_steppers.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kg_run {
  kg_stepper *stepper;
  kg_real *state; /* scratch, n values */
  void *host;     /* handed to the callbacks */

  int (*store)(void *host, kg_real t, const kg_real *y); /* keeps a state */
  int (*store_dense)(void *host);     /* keeps stepper->dense of the last step; or NULL */
  int (*accept)(void *host, int outcome); /* may change the state after a step with this outcome, which it returns; or NULL */
  int (*renew)(void *host);           /* the state has changed at an event; or NULL */
  int (*begin_phase)(void *host);     /* the modes of contacts may have changed; or NULL */

  kg_instants *instants; /* at which the run stops because something is known to change there; NULL: there are none */

  /* Inputs that are held between samples, in groups with a clock each; 0: there are none. They run forward in time. */
  int n_clocks;
  kg_clock *clocks;
  int (*sample)(void *host, int clock, kg_real t, const kg_real *y); /* computes the values for this state */
  int (*act)(void *host, int clock, kg_real t); /* the oldest sample that has not acted yet acts from now on; or NULL */

  /* Times at which states are stored, in the direction of the run; NULL: after every step. */
  const kg_real *t_eval;
  size_t n_eval;

  /* What follows is private. */
  size_t next_eval;
  kg_real t_start;
  kg_real t_end;
  kg_real t_stop;    /* the next instant, of a clock or a known one, or the end of the run */
  kg_real direction; /* +1 or -1 */
  kg_ode ode;        /* that of the host, evaluated between two known instants */
  void *system;                   /* of the next two; NULL: the stepper alone */
  int (*step)(struct kg_run *);   /* one step */
  int (*react)(struct kg_run *);  /* what happens at an event or a stop */
} kg_run;

/* Lets the samples whose delay is over act. */
static inline int kg_run_act(kg_run *r, int clock, kg_real t) {
  kg_clock *c = r->clocks + clock;
  int status = KG_OK;
  while (status >= 0 && kg_clock_is_over(c, r->t_start, t)) {
    status = r->act ? r->act(r->host, clock, t) : KG_OK;
    ++c->acting;
  }
  return status;
}

/* Finds the next stop: a known instant, an instant of a clock, or the end of the run. */
static inline void kg_run_find_stop(kg_run *r) {
  r->t_stop = r->instants ? r->instants->next : r->t_end;
  for (int k = 0; k < r->n_clocks; ++k) {
    const kg_clock *c = r->clocks + k;
    const kg_real slack = KG_SAME_INSTANT * c->sample_time, sample = kg_clock_instant(c, r->t_start, c->taken);
    const kg_real act = kg_clock_instant(c, r->t_start, c->acting) + c->delay;
    const kg_real next = c->acting < c->taken && act < sample ? act : sample;
    r->t_stop = next < r->t_stop && next + slack < r->t_end ? next : r->t_stop;
  }
}

/* Does what is due at t, where the run has stopped, and finds the next stop. Values that were sampled before begin to
 * act first, so that the groups that are sampled now read them; each group reads what the groups before it do. */
static inline int kg_run_sample(kg_run *r, kg_real t, const kg_real *y) {
  int status = KG_OK;
  for (int k = 0; k < r->n_clocks && status >= 0; ++k) {
    status = kg_run_act(r, k, t);
  }
  for (int k = 0; k < r->n_clocks && status >= 0; ++k) {
    kg_clock *c = r->clocks + k;
    if (kg_clock_is_due(c, r->t_start, t)) {
      status = r->sample(r->host, k, t, y);
      ++c->taken;
      status = status < 0 ? status : kg_run_act(r, k, t);
    }
  }
  kg_run_find_stop(r);
  return status < 0 ? kg_stepper_fail(r->stepper, status) : KG_OK;
}

/* Whether the run stops between its start and its end. */
static inline int kg_run_has_stops(const kg_run *r) { return r->n_clocks > 0 || r->instants; }

/* Does what is due at t, where the run has stopped, and finds the next stop. */
static inline int kg_run_stop(kg_run *r, kg_real t, const kg_real *y) {
  const int status = r->instants ? kg_instants_pass(r->instants, t, r->t_end) : KG_OK;
  return status < 0 ? kg_stepper_fail(r->stepper, status) : kg_run_sample(r, t, y);
}

/* Prepares a run from (t0, y0) to t_end and takes the first samples. Returns KG_OK, or KG_RHS_FAILED when they cannot
 * be computed: the status is in stepper->rhs_status. */
static inline int kg_run_begin(kg_run *r, kg_real t0, const kg_real *y0, kg_real t_end) {
  r->t_start = t0;
  r->t_end = t_end;
  r->t_stop = t_end;
  r->direction = t_end >= t0 ? KG_C(1.0) : KG_C(-1.0);
  r->next_eval = 0;
  for (int k = 0; k < r->n_clocks; ++k) {
    r->clocks[k].taken = r->clocks[k].acting = 0;
  }
  if (r->instants) {
    r->instants->direction = r->direction;
  }
  return kg_run_has_stops(r) ? kg_run_stop(r, t0, y0) : KG_OK;
}

/* Stores the state after something has happened: where it differs from the state before, or where it is requested. */
static inline int kg_run_store_after(kg_run *r, const kg_real *before) {
  const kg_stepper *s = r->stepper;
  int status = KG_OK;
  if (!r->t_eval && memcmp(before, s->y, (size_t)s->ode.n * sizeof *before) != 0) {
    status = r->store(r->host, s->t, s->y);
  }
  while (status == KG_OK && r->next_eval < r->n_eval && r->t_eval[r->next_eval] == s->t) {
    status = r->store(r->host, s->t, s->y);
    ++r->next_eval;
  }
  return status;
}

/* Stores the start, after the stepper was started with this status, which is returned unless storing fails. */
static inline int kg_run_store_start(kg_run *r, int status, kg_real t0, const kg_real *y0) {
  int stored = r->begin_phase ? r->begin_phase(r->host) : KG_OK;
  if (stored == KG_OK && !r->t_eval) {
    stored = r->store(r->host, t0, y0);
  }
  if (stored == KG_OK) {
    stored = kg_run_store_after(r, y0);
  }
  if (stored == KG_OK && status == KG_OK && r->renew) {
    stored = r->renew(r->host);
  }
  return stored < 0 ? stored : status;
}

/* The right-hand side and its derivatives between two known instants (kg_ode). */
static inline int kg_run_rhs(void *context, kg_real t, const kg_real *y, kg_real *dydt) {
  const kg_run *r = (const kg_run *)context;
  return r->ode.rhs(r->ode.context, kg_instants_inside(r->instants, t), y, dydt);
}

static inline int kg_run_jacobian(void *context, kg_real t, const kg_real *y, const kg_real *dydt, kg_real *J,
                                  kg_real *dfdt) {
  const kg_run *r = (const kg_run *)context;
  return r->ode.jacobian(r->ode.context, kg_instants_inside(r->instants, t), y, dydt, J, dfdt);
}

/* Starts the run and stores its start; `work` and the result are those of kg_stepper_start(). */
static inline int kg_run_start(kg_run *r, const kg_ode *ode, const kg_stepper_options *options, const kg_real *y0,
                               kg_real *work) {
  kg_ode inside;
  int status;
  r->ode = inside = *ode;
  if (r->instants) {
    inside.rhs = kg_run_rhs;
    inside.jacobian = ode->jacobian ? kg_run_jacobian : NULL;
    inside.context = r;
  }
  status = kg_stepper_start(r->stepper, &inside, options, r->t_start, y0, r->t_stop, work);
  return status == KG_INVALID_ARGUMENT ? status : kg_run_store_start(r, status, r->t_start, y0);
}

/* Stores the requested states that the last step has passed; `before_end`: without those at its end, where an event is
 * still to come. */
static inline int kg_run_store_requested(kg_run *r, int before_end) {
  kg_stepper *s = r->stepper;
  int status = KG_OK;
  while (status == KG_OK && r->next_eval < r->n_eval) {
    const kg_real t = r->t_eval[r->next_eval], ahead = r->direction * (t - s->t);
    if (before_end ? ahead >= KG_C(0.0) : ahead > KG_C(0.0)) {
      break;
    }
    if (kg_stepper_interpolate(s, t, r->state) < 0) {
      return KG_RHS_FAILED;
    }
    status = r->store(r->host, t, r->state);
    r->next_eval += status == KG_OK;
  }
  return status;
}

/* Stores the last step, which ended with this status. */
static inline int kg_run_store_step(kg_run *r, int status) {
  kg_stepper *s = r->stepper;
  const int stored =
      r->t_eval ? kg_run_store_requested(r, status == KG_AT_EVENT) : r->store(r->host, s->t, s->y);
  if (stored < 0 || !r->store_dense) {
    return stored;
  }
  return kg_stepper_dense(s) < 0 ? KG_RHS_FAILED : r->store_dense(r->host);
}

/* What happens at an event, or at a stop in a run with contacts or events. */
static inline int kg_run_react(kg_run *r, int status) {
  const kg_stepper *s = r->stepper;
  int stored = status == KG_AT_STOP && kg_run_has_stops(r) ? kg_run_stop(r, s->t, s->y) : KG_OK;
  if (stored < 0) {
    return stored;
  }
  memcpy(r->state, s->y, (size_t)s->ode.n * sizeof *r->state);
  status = r->react(r);
  if (status < 0) {
    return status;
  }
  stored = r->renew ? r->renew(r->host) : KG_OK;
  if (stored >= 0 && r->begin_phase) {
    stored = r->begin_phase(r->host);
  }
  if (stored >= 0) {
    stored = kg_run_store_after(r, r->state);
  }
  return stored < 0 ? stored : status;
}

/* A stop, or the end of the run, which may be an instant of a clock too. */
static inline int kg_run_next_part(kg_run *r) {
  kg_stepper *s = r->stepper;
  int status = kg_run_stop(r, s->t, s->y);
  if (status < 0 || s->t == r->t_end) {
    return status < 0 ? status : KG_FINISHED;
  }
  status = kg_stepper_restart(s, r->t_stop, 0);
  return status == KG_FINISHED ? KG_OK : status;
}

/* One step with all that follows from it. Returns what kg_run_advance() returns. */
static inline int kg_run_step(kg_run *r) {
  int status = r->system ? r->step(r) : kg_stepper_step(r->stepper), stored;
  if (status >= 0 && !r->system && r->accept) {
    status = r->accept(r->host, status);
  }
  if (status < 0) {
    return status;
  }
  stored = kg_run_store_step(r, status);
  if (stored < 0) {
    return stored;
  }
  while (status == KG_AT_EVENT || status == KG_AT_STOP) {
    status = kg_run_react(r, status);
  }
  return status == KG_FINISHED && kg_run_has_stops(r) ? kg_run_next_part(r) : status;
}

/* At most `steps` steps. Returns KG_OK: there is more to do; KG_FINISHED, KG_TERMINATED, or a negative outcome. */
static inline int kg_run_advance(kg_run *r, int steps) {
  int status = KG_OK;
  for (int k = 0; k < steps && status == KG_OK; ++k) {
    status = kg_run_step(r);
  }
  return status;
}

#ifdef __cplusplus
}
#endif

#endif
