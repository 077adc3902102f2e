/* kg_stepper.h - defines the state of an integration (see kg_steppers.h). */
#ifndef KG_STEPPER_H
#define KG_STEPPER_H

#include "kg_methods.h"
#include "kg_options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an accepted step replaces, so that it can be withdrawn. */
typedef struct {
  kg_real smallest_step;
  kg_real largest_step;
  kg_real largest_error;
  kg_real last_step;
  kg_real damping;
  int short_steps;
} kg_before_step;

/* The state of an integration. Fields up to `rhs_status` may be read between calls; the others are private. */
typedef struct {
  kg_ode ode;
  kg_stepper_options options;
  kg_statistics statistics;
  kg_real t;       /* the last accepted point */
  kg_real t_old;   /* the step that led there: t = t_old + h */
  kg_real h;
  kg_real *y;      /* state at t, n values */
  kg_real *y_old;  /* state at t_old */
  kg_real *dense;  /* after kg_stepper_dense(): kg_dense_rows() rows of n values, for kg_dense_evaluate() */
  int rhs_status;  /* status of the right-hand side when the outcome is KG_RHS_FAILED */

  kg_method method;
  kg_real t_start;
  kg_real t_end;
  kg_real direction; /* +1 or -1 */
  kg_real h_next;    /* magnitude of the next trial step */
  kg_real damping;   /* logarithm of error^beta of the last accepted step, for proportional control */
  int short_steps;   /* accepted in a row that hardly change t */
  kg_real longest;   /* magnitude of the longest trial step */
  int obstacle;      /* why longer ones were rejected */
  long long grid;    /* fixed steps: number of the last multiple of the step at or before t */
  kg_before_step before;
  int rejection;     /* why the last trial step was rejected or withdrawn; KG_OK: it was accepted */
  kg_real *y_new;
  kg_real *scratch;
  kg_real *k;        /* derivatives; row `stages` belongs to the end of a step */
  int start_known;   /* row 0 of k is the derivative at t */
  int linear_known;  /* an implicit method has the Jacobian at t */
  int end_known;     /* row `stages` of k is the derivative at t */
  int dense_state;   /* of the last step: 0 not available, 1 can be computed, 2 computed */
} kg_stepper;

/* Length of the workspace of a stepper with an explicit method, as a constant: KG_STEPPER_WORK(DOPRI5, 10). */
#define KG_STEPPER_WORK(METHOD, n) ((KG_##METHOD##_ROWS + KG_##METHOD##_DENSE_ROWS + 4) * (n))

/* Length of the workspace of a stepper, in kg_real; 0 for an unknown method or n < 1. */
static inline size_t kg_stepper_work(int method, int n) {
  const kg_method m = kg_get_method(method);
  const size_t rows = (size_t)(m.rows + m.dense_rows + 4) + (size_t)m.squares * (size_t)n;
  return m.stages == 0 || n < 1 ? 0 : rows * (size_t)n;
}

#ifdef __cplusplus
}
#endif

#endif
