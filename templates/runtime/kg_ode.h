/* kg_ode.h - an initial value problem y' = f(t, y), what its integration reports and what it counts.
 *
 * Nothing here depends on a model: kg_model is one source of right-hand sides among others.
 */
#ifndef KG_ODE_H
#define KG_ODE_H

#include "kg_model.h"

#include <float.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Distance from 1 to the next kg_real; define it together with kg_real. */
#ifndef KG_EPSILON
#define KG_EPSILON DBL_EPSILON
#endif
/* The smallest normal kg_real. */
#ifndef KG_TINY
#define KG_TINY DBL_MIN
#endif

/* Outcomes of an integration, disjoint from the statuses of an evaluation (kg_model.h). Negative: it stopped early;
 * the stepper then still holds the last accepted t and y. */
#define KG_FINISHED 2              /* the end of the interval is reached */
#define KG_AT_EVENT 4              /* the run stands at an event (kg_events.h) */
#define KG_AT_STOP 5               /* the run stands at a time the host asked for (kg_hybrid.h) */
#define KG_TERMINATED 6            /* an event ended the run */
#define KG_STEP_COLLAPSED (-10)    /* no step that changes t satisfies the tolerances */
#define KG_TOO_MANY_STEPS (-11)    /* max_steps accepted steps were taken before the end */
#define KG_NOT_FINITE (-12)        /* the state, its derivative or the Jacobian is infinite or not a number */
#define KG_RHS_FAILED (-13)        /* the right-hand side failed; its own status is in kg_stepper.rhs_status */
#define KG_INTERRUPTED (-14)       /* stopped by the host between two steps (never returned by a stepper) */
#define KG_INVALID_ARGUMENT (-15)  /* kg_stepper_start was given a size, step, tolerance or time it cannot use */
#define KG_INCONSISTENT (-16)      /* the constraints cannot be satisfied at, or near, this state */
#define KG_NO_MODE (-17)           /* no modes of the contacts agree with the forces they lead to */
#define KG_SEVERAL_MODES (-18)     /* several do, with different accelerations */
#define KG_CHATTERING (-19)        /* events follow each other without end */
#define KG_GAP_VIOLATED (-20)      /* a rigid contact starts penetrated */

/* y' = rhs(t, y). `rhs` writes n values to dydt and returns KG_OK, KG_REPARTITIONED, or a negative status. Adaptive
 * methods answer KG_SINGULAR inside a trial step with a smaller step; any other negative status stops at once. */
typedef struct {
  int n;
  int (*rhs)(void *context, kg_real t, const kg_real *y, kg_real *dydt);
  void *context;
  /* For implicit methods, else not used: dydt is the derivative at (t, y). Writes the derivatives of the right-hand
   * side in y (n x n, row-major) and in t (n), and returns what `rhs` may return. */
  int (*jacobian)(void *context, kg_real t, const kg_real *y, const kg_real *dydt, kg_real *J, kg_real *dfdt);
} kg_ode;

typedef struct {
  long long steps;        /* accepted */
  long long rejected;     /* trial steps repeated with a smaller size */
  long long evaluations;  /* calls of the right-hand side */
  long long repartitions; /* calls that returned KG_REPARTITIONED */
  kg_real smallest_step;  /* magnitudes of accepted steps, the last one (cut to end on time) included; 0 if none */
  kg_real largest_step;
  kg_real last_step;
  kg_real largest_error;  /* largest local error estimate of an accepted step as a fraction of the tolerance
                             (root mean square over components); 0 for methods without an estimate */
  long long jacobians;      /* evaluations of the Jacobian, and */
  long long factorizations; /* of matrices made from it, by implicit methods */
} kg_statistics;

/* Calls the right-hand side and counts. Returns the status of the right-hand side. */
static inline int kg_ode_evaluate(const kg_ode *ode, kg_statistics *statistics, kg_real t, const kg_real *y,
                                  kg_real *dydt) {
  const int status = ode->rhs(ode->context, t, y, dydt);
  ++statistics->evaluations;
  if (status == KG_REPARTITIONED) {
    ++statistics->repartitions;
  }
  return status;
}

/* z = y + factor * fresh, all of n values, where the right-hand side has just written `fresh`; z may be y.
 *
 * It is read entry by entry, as it was written: a vector load of several fresh scalars waits until all of them have
 * left the processor's store buffer, in every stage. Hence volatile. */
static inline void kg_add_fresh(int n, kg_real factor, const kg_real *fresh, const kg_real *y, kg_real *z) {
  const volatile kg_real *entries = fresh;
  for (int i = 0; i < n; ++i) {
    z[i] = y[i] + factor * entries[i];
  }
}

/* What a status or outcome means and what to do about it: one sentence, never NULL. */
static inline const char *kg_status_message(int status) {
  switch (status) {
    case KG_OK:
      return "success";
    case KG_REPARTITIONED:
      return "success with other dependent speeds than the model's own, which are singular here";
    case KG_FINISHED:
      return "the end of the interval was reached";
    case KG_SINGULAR:
      return "the matrix to be solved is singular to working precision: look for redundant constraints "
             "(form=\"pseudoinverse\" solves them), speeds that move no mass or a negative one, a singular position, or "
             "a free vector y that depends on the controls and leaves them undetermined";
    case KG_INFEASIBLE:
      return "no controls satisfy the servo-constraints here: the controls do not enter them (any more), or the "
             "servo-constraints contradict each other or the passive constraints; change targets, controls or state";
    case KG_STEP_COLLAPSED:
      return "no step larger than the rounding of t satisfies the tolerances: the solution is singular or "
             "discontinuous here, or the tolerances are too small for the rounding of the right-hand side";
    case KG_TOO_MANY_STEPS:
      return "max_steps steps were taken before the end: raise max_steps, loosen the tolerances or enlarge the step";
    case KG_NOT_FINITE:
      return "the state, its derivative or the Jacobian is infinite or not a number: reduce the step, or check the "
             "model's expressions at the last state";
    case KG_RHS_FAILED:
      return "the right-hand side failed: see its own status for the reason";
    case KG_INTERRUPTED:
      return "interrupted: the results up to the last accepted step are valid";
    case KG_INVALID_ARGUMENT:
      return "invalid argument: sizes, steps and tolerances must be positive (atol may be zero) and times finite";
    case KG_INCONSISTENT:
      return "the constraints cannot be satisfied near this state: they contradict each other here, or the step was too "
             "large";
    case KG_NO_MODE:
      return "no forces or impulses satisfy the laws of all contacts: their gaps and the constraints contradict each other, "
             "or a law of friction has no solution; let a contact yield with a compliant law";
    case KG_SEVERAL_MODES:
      return "several modes of the contacts agree with the forces they lead to, with different accelerations (Painleve): "
             "name those at the start, reduce the friction, or let the contact yield with a compliant law";
    case KG_CHATTERING:
      return "events follow each other ever faster or without end: look for guards that hang at zero, or give the switching "
             "a dead band";
    case KG_GAP_VIOLATED:
      return "the gap of a rigid contact is negative: start from a state that satisfies it, or give the contact a law that "
             "allows penetration";
    case KG_AT_EVENT:
      return "the run stands at an event";
    case KG_AT_STOP:
      return "the run stands at a time at which it was to stop";
    case KG_TERMINATED:
      return "a terminal event ended the run";
    default:
      return status < 0 ? "failed with a status of the right-hand side's own" : "success";
  }
}

#ifdef __cplusplus
}
#endif

#endif
