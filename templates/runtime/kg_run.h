/* kg_run.h - carries out a whole run: steps, sampled controls, events, and the states that are stored.
 *
 * The host fills a kg_run (all other fields are zero) and calls kg_run_begin(), kg_run_start(), and kg_run_advance()
 * until it returns something else than KG_OK. Nothing is allocated: states leave through the callbacks. With contacts
 * or events kg_run_hybrid_start() takes the place of kg_run_start() (kg_run_hybrid.h).
 *
 * Callbacks return KG_OK or a negative status, which ends the run. Those marked "or NULL" may be left out.
 */
#ifndef KG_RUN_H
#define KG_RUN_H

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

  /* Controls that are held between samples; `sample` NULL: there are none. */
  int (*sample)(void *host, kg_real t, const kg_real *y); /* holds the controls of this state from now on */
  int (*store_sample)(void *host, kg_real t);             /* keeps them; or NULL */
  kg_real sample_time;

  /* Times at which states are stored, in the direction of the run; NULL: after every step. */
  const kg_real *t_eval;
  size_t n_eval;

  /* What follows is private. */
  size_t next_eval;
  kg_real t_start;
  kg_real t_end;
  kg_real t_stop;    /* end of the present sample, or of the run */
  kg_real direction; /* +1 or -1 */
  long long samples;
  void *system;                   /* of the next two; NULL: the stepper alone */
  int (*step)(struct kg_run *);   /* one step */
  int (*react)(struct kg_run *);  /* what happens at an event or a stop */
} kg_run;

/* Samples the controls and finds the end of the sample: a multiple of the sample time, or the end of the run. */
static inline int kg_run_sample(kg_run *r, kg_real t, const kg_real *y) {
  const int status = r->sample(r->host, t, y);
  kg_real end;
  if (status < 0) {
    return kg_stepper_fail(r->stepper, status);
  }
  ++r->samples;
  end = r->t_start + (kg_real)r->samples * r->sample_time;
  r->t_stop = end + KG_C(1e-9) * r->sample_time >= r->t_end ? r->t_end : end;
  return r->store_sample ? r->store_sample(r->host, t) : KG_OK;
}

/* Prepares a run from (t0, y0) to t_end and takes the first sample. Returns KG_OK, or KG_RHS_FAILED when the controls
 * cannot be evaluated: their status is in stepper->rhs_status. */
static inline int kg_run_begin(kg_run *r, kg_real t0, const kg_real *y0, kg_real t_end) {
  r->t_start = t0;
  r->t_end = t_end;
  r->t_stop = t_end;
  r->direction = t_end >= t0 ? KG_C(1.0) : KG_C(-1.0);
  r->next_eval = 0;
  r->samples = 0;
  return r->sample ? kg_run_sample(r, t0, y0) : KG_OK;
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

/* Starts the run and stores its start; `work` and the result are those of kg_stepper_start(). */
static inline int kg_run_start(kg_run *r, const kg_ode *ode, const kg_stepper_options *options, const kg_real *y0,
                               kg_real *work) {
  const int status = kg_stepper_start(r->stepper, ode, options, r->t_start, y0, r->t_stop, work);
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

/* What happens at an event, or at the end of a sample in a run with contacts or events. */
static inline int kg_run_react(kg_run *r, int status) {
  const kg_stepper *s = r->stepper;
  int stored = status == KG_AT_STOP && r->sample ? kg_run_sample(r, s->t, s->y) : KG_OK;
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

/* The end of a sample, or of the run, where the controls are sampled for the last time. */
static inline int kg_run_next_sample(kg_run *r) {
  kg_stepper *s = r->stepper;
  int status = kg_run_sample(r, s->t, s->y);
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
  return status == KG_FINISHED && r->sample ? kg_run_next_sample(r) : status;
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
