/* kg_predictive.h - predictive control by real-time iterations.
 *
 * A sample is one iteration of sequential quadratic programming. The preparation takes the plan of the sample before,
 * shifted by the time between samples, and makes a program about it (kg_shooting.h); the feedback puts the measured state
 * into the program and solves it (Diehl, Bock and Schloeder 2005, "A real-time iteration scheme for nonlinear
 * optimization in optimal feedback control"). The work of a sample has an upper limit, and nothing is allocated.
 *
 * Who includes this header defines kg_controller, a record with parameters, inputs, states, controls, violation, status,
 * iterations, planned, prepared and memory; KG_INTERVAL and KG_SAMPLE, times in s; KG_TOLERANCE and KG_MOST_ITERATIONS; and kg_low
 * and kg_high, the bounds of the inputs.
 */
#ifndef KG_PREDICTIVE_H
#define KG_PREDICTIVE_H

#include "kg_interior.h"
#include "kg_shooting.h"

/* Violations, relative to the sizes of the sides, that are reported. */
#define KG_REPORTED KG_C(1e-6)

/* What the memory of a controller holds. */
typedef struct {
  kg_program program;
  kg_evaluation evaluation;
} kg_solver;

/* A negative size, which a compiler refuses, if the memory of the record is too short. */
typedef char kg_memory_suffices[sizeof(kg_solver) <= sizeof(((kg_controller *)0)->memory) ? 1 : -1];

static inline kg_solver *kg_solver_of(kg_controller *c) { return (kg_solver *)(void *)c->memory; }

static inline kg_real kg_clamped(int j, kg_real u) { return KG_MAX(kg_low[j], KG_MIN(kg_high[j], u)); }

/* The plan without knowledge: the state x, and the inputs of the record, within their bounds. */
static inline void kg_plan_rest(kg_controller *c, const kg_real *x) {
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    for (int i = 0; i < KG_X; ++i) {
      c->states[k * KG_X + i] = x[i];
    }
    for (int j = 0; k < KG_INTERVALS && j < KG_U; ++j) {
      c->controls[k * KG_U + j] = kg_clamped(j, c->inputs[kg_places[j]]);
    }
  }
  c->planned = 1;
}

/* Moves the plan by the time between samples: states are linear between their times, and constant after the last one. */
static inline void kg_shift(kg_controller *c) {
  const kg_real moved = KG_SAMPLE / KG_INTERVAL;
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    const kg_real place = (kg_real)k + moved + KG_C(1e-9);
    const int first = place < (kg_real)KG_INTERVALS ? (int)place : KG_INTERVALS;
    const int second = first < KG_INTERVALS ? first + 1 : first;
    const int own = first < KG_INTERVALS ? first : KG_INTERVALS - 1;
    const kg_real part = place - (kg_real)first > KG_C(2e-9) ? place - (kg_real)first : KG_C(0.0);
    for (int i = 0; i < KG_X; ++i) {
      const kg_real x = c->states[first * KG_X + i];
      c->states[k * KG_X + i] = x + part * (c->states[second * KG_X + i] - x);
    }
    for (int j = 0; k < KG_INTERVALS && j < KG_U; ++j) {
      c->controls[k * KG_U + j] = c->controls[own * KG_U + j];
    }
  }
}

/* The preparation of a sample at the time t: the program about the plan. Returns 0, or -1 where the model cannot be
 * evaluated. */
static inline int kg_linearize(kg_controller *c, kg_real t) {
  kg_solver *V = kg_solver_of(c);
  for (int i = 0; i < KG_INPUTS; ++i) {
    V->evaluation.r[i] = c->inputs[i];
  }
  prepare(c->parameters);
  V->evaluation.p = c->parameters;
  for (int k = 0; k < KG_INTERVALS; ++k) {
    const kg_real *x = c->states + k * KG_X;
    if (kg_shoot(&V->evaluation, kg_bounds_of(k), t + k * KG_INTERVAL, KG_INTERVAL, c->controls + k * KG_U, x, x + KG_X,
                 V->program.stage + k) < 0) {
      return -1;
    }
  }
  return kg_finish(&V->evaluation, kg_bounds_of(KG_INTERVALS), t + KG_INTERVALS * KG_INTERVAL,
                   c->states + KG_INTERVALS * KG_X, V->program.stage + KG_INTERVALS);
}

/* The largest violation of a side at the solution of the program, relative to its size. */
static inline kg_real kg_violation(const kg_program *Q) {
  kg_real most = KG_C(0.0);
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    const kg_bounds *bounds = kg_bounds_of(k);
    for (int i = 0; i < bounds->n_sides; ++i) {
      const kg_side *side = bounds->sides + i;
      most = KG_MAX(most, -kg_margin(Q->stage + k, bounds, side, Q->stage[k].w) / side->size);
    }
  }
  return most;
}

/* Adds a part of the solution of the program to the plan; returns whether all of it is finite, else the plan remains. */
static inline int kg_take(kg_controller *c, const kg_program *Q, kg_real part) {
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    for (int j = 0; j < KG_W; ++j) {
      if (!KG_ISFINITE(Q->stage[k].w[j])) {
        return 0;
      }
    }
  }
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    const kg_real *w = Q->stage[k].w;
    for (int j = 0; k < KG_INTERVALS && j < KG_U; ++j) {
      c->controls[k * KG_U + j] = kg_clamped(j, c->controls[k * KG_U + j] + part * w[j]);
    }
    for (int i = 0; i < KG_X; ++i) {
      c->states[k * KG_X + i] += part * w[KG_U + i];
    }
  }
  return 1;
}

/* The feedback of a sample: the plan for the measured state x, from the program of the preparation. */
static inline int kg_react(kg_controller *c, const kg_real *x, kg_real part) {
  kg_program *Q = &kg_solver_of(c)->program;
  kg_progress done;
  for (int i = 0; i < KG_X; ++i) {
    Q->stage[0].step[KG_U + i] = x[i] - c->states[i];
  }
  done = kg_solve(Q, KG_TOLERANCE, KG_MOST_ITERATIONS);
  c->iterations = done.iterations;
  c->violation = kg_violation(Q);
  if (!kg_take(c, Q, part)) {
    c->violation = KG_C(0.0);
    return KG_STATUS_FAILED;
  }
  for (int i = 0; i < KG_X; ++i) {
    c->states[i] = x[i];
  }
  if (done.solved != 1) {
    return KG_STATUS_INEXACT;
  }
  return c->violation > KG_REPORTED ? KG_STATUS_VIOLATED : KG_STATUS_SOLVED;
}

static inline int kg_are_finite(int n, const kg_real *x) {
  for (int i = 0; i < n; ++i) {
    if (!KG_ISFINITE(x[i])) {
      return 0;
    }
  }
  return 1;
}

/* The inputs of the plan at its start. */
static inline void kg_first_inputs(const kg_controller *c, kg_real *r) {
  for (int i = 0; i < KG_OUTPUTS; ++i) {
    r[i] = c->inputs[i];
  }
  for (int j = 0; c->planned && j < KG_U; ++j) {
    r[kg_places[j]] = c->controls[j];
  }
}

/* The feedback at the time t with the measured state x, the inputs r. A plan that was not prepared is prepared here,
 * without a shift. A state that is not finite leaves the plan, which goes on. */
static inline void kg_sample(kg_controller *c, kg_real t, const kg_real *x, kg_real part, kg_real *r) {
  c->iterations = 0;
  c->violation = KG_C(0.0);
  if (!KG_ISFINITE(t) || !kg_are_finite(KG_X, x)) {
    c->status = KG_STATUS_INVALID;
  } else {
    if (!c->planned) {
      kg_plan_rest(c, x);
    }
    if (c->prepared == 0) {
      c->prepared = kg_linearize(c, t) == 0 ? 1 : -1;
    }
    c->status = c->prepared < 0 ? KG_STATUS_FAILED : kg_react(c, x, part);
  }
  c->prepared = 0;
  kg_first_inputs(c, r);
  if (c->status == KG_STATUS_FAILED) {
    c->planned = 0; /* the next sample begins anew */
  }
}

#endif
