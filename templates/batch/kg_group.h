/* kg_group.h - the motions that advance together on the lanes of a thread, and the evaluation of their right-hand side.
 *
 * To be included after the functions of a kernel on lanes, with the macros of many.c.
 */
#ifndef KG_GROUP_H
#define KG_GROUP_H

#include "kg_rows.h"

/* How a value is taken from those of a quantity at the start and after each accepted step. */
enum { KG_KEEP_FINAL, KG_KEEP_MIN, KG_KEEP_MAX, KG_KEEP_MAX_ABS, KG_KEEP_MAX_CHANGE };

/* N motions and where their results go. All threads share it. */
typedef struct {
  const kg_model *model;
  const kg_function *rhs;
  const kg_function *residuals; /* of the constraints; NULL: the start is not checked */
  const kg_function *quantity;  /* that is reduced; NULL: component */
  const kg_column *arguments;   /* the state y, then the inputs r, then the varied parameters */
  const double *p;              /* parameters and gains */
  const int *varied;            /* n_varied indices in p of parameters with a value for each motion */
  const int *needed;            /* n_needed indices in p of constants that must be finite */
  const double *t_eval;         /* n_eval, in the direction of the run */
  double *y;                    /* (count, n_eval, n), or with at_end (count, 1, n) */
  double *values;               /* (count,) reductions; NULL: none */
  double *t_ends;               /* the following (count,) */
  long long *status, *cause, *steps, *evaluations; /* cause: the status of a right-hand side that failed */
  unsigned char *completed;
  ptrdiff_t next, count; /* next: the first motion that no thread has taken */
  double t_start, t_end, start_tolerance;
  kg_stepper_options options;
  int n_varied, n_needed, n_eval, at_end;
  int keep, component;
} kg_many;

/* The initial value problem in the meaning of kg_tableaux.h, which is instantiated for lanes. */
typedef struct {
  int n;
  struct kg_group *group;
} kg_ode;
typedef struct {
  int none;
} kg_statistics;
#define KG_ODE_H

#define KG_LANES_OF(name) kg_lanes name;

/* The motions on the lanes of a thread. The first fields are those of a stepper, in the meaning of kg_step_control.h, which
 * is instantiated for lanes, too; a mask has a number in each lane. */
typedef struct kg_group {
  kg_ode ode;
  struct {
    kg_lanes *rtol, *atol;
    KG_STEP_SIZES(KG_LANES_OF)
  } options;
  kg_statistics statistics; /* there are none */
  struct {
    int estimates;
    kg_lanes order, beta, safety, shrink, grow;
  } method;
  kg_lanes t, t_start, t_end, direction, h_next, damping, longest; /* t_end: of the run, or the next instant */
  kg_lanes *y, *y_new, *scratch, *k, *dense;
  kg_mask short_steps, obstacle, rejection;

  kg_many *many;
  kg_lanes *p, *r, *work, *out;
  double *row, *row_r, *row_p, *row_work, *row_out; /* one motion */
  kg_lanes due;                                     /* the next time of t_eval */
  kg_lanes first, kept;                             /* of the reduction */
  kg_mask active;                                   /* lanes that have a motion */
  kg_mask watched;                                  /* lanes whose evaluations count */
  kg_mask failed; /* 0, or the status of a right-hand side that failed in a watched lane */
  kg_mask cause, steps, evaluations, next_eval;
  ptrdiff_t motion[KG_LANES];
  int waiting; /* whether there may be motions that no thread has taken */
#ifdef KG_MANY_SWITCHES
  kg_lanes low, high; /* the times between which the right-hand side is evaluated */
  kg_instants instants[KG_LANES];
  kg_switches switches[KG_LANES];
  double *lane_p, *lane_work; /* of the switches, for each lane */
#endif
} kg_group;
typedef kg_group kg_stepper;
#define KG_STEPPER_H

KG_INLINE int kg_any(kg_mask mask) {
  long long any = 0;
  for (int lane = 0; lane < KG_LANES; ++lane) {
    any |= mask[lane];
  }
  return any != 0;
}

KG_INLINE kg_mask kg_mask_select(kg_mask where, kg_mask x, kg_mask y) { return (where & x) | (~where & y); }
#define KG_ALL(x) ((kg_mask){0} + (long long)(x))

/* The time at which the right-hand side is evaluated in place of t. */
KG_INLINE kg_lanes kg_group_time(const kg_group *g, kg_lanes t) {
#ifdef KG_MANY_SWITCHES
  return KG_MIN(KG_MAX(t, g->low), g->high);
#else
  (void)g;
  return t;
#endif
}

static size_t kg_largest_work(const kg_many *m) {
  int work = m->rhs->work;
  work = m->residuals != NULL && m->residuals->work > work ? m->residuals->work : work;
  return (size_t)(m->quantity != NULL && m->quantity->work > work ? m->quantity->work : work);
}

static size_t kg_largest_out(const kg_many *m) {
  const int rows = m->residuals != NULL ? 3 * m->residuals->rows : 0; /* residuals, their values and units */
  return (size_t)(rows > KG_N ? rows : KG_N);
}

/* Places the arrays of a group after it in memory, or with NULL only counts: the number of doubles. */
static size_t kg_group_place(const kg_many *m, kg_group *g) {
  const size_t n_p = (size_t)m->model->n_prepared, work = kg_largest_work(m);
#ifdef KG_MANY_SWITCHES
  const size_t more = n_p + kg_switches_work(m->model);
#else
  const size_t more = 0;
#endif
  const size_t head = (sizeof(kg_group) + sizeof(kg_lanes) - 1) / sizeof(kg_lanes);
  const size_t lanes = head + (5 + KG_ROWS + KG_DENSE_ROWS) * (size_t)KG_N + n_p + KG_N_R + work + KG_N;
  if (g != NULL) {
    kg_lanes *next = (kg_lanes *)(void *)g;
    (void)memset(next, 0, lanes * sizeof *next);
    g->y = next + head;
    g->y_new = g->y + KG_N;
    g->scratch = g->y_new + KG_N;
    g->options.rtol = g->scratch + KG_N;
    g->options.atol = g->options.rtol + KG_N;
    g->k = g->options.atol + KG_N;
    g->dense = g->k + KG_ROWS * KG_N;
    g->p = g->dense + KG_DENSE_ROWS * KG_N;
    g->r = g->p + n_p;
    g->work = g->r + KG_N_R;
    g->out = g->work + work;
    g->row = (double *)(void *)(g->out + KG_N);
    g->row_r = g->row + KG_N;
    g->row_p = g->row_r + KG_N_R;
    g->row_work = g->row_p + n_p;
    g->row_out = g->row_work + work;
#ifdef KG_MANY_SWITCHES
    g->lane_p = g->row_out + kg_largest_out(m);
    g->lane_work = g->lane_p + KG_LANES * n_p;
#endif
  }
  return KG_LANES * (lanes + 1) + KG_N + KG_N_R + n_p + work + kg_largest_out(m) + KG_LANES * more;
}

/* Copies the state, inputs and parameters of a lane to the arrays of one motion. */
static void kg_group_take(const kg_many *m, const kg_group *g, int lane, const kg_lanes *y) {
  for (int i = 0; i < KG_N; ++i) {
    g->row[i] = y[i][lane];
  }
  for (int i = 0; i < KG_N_R; ++i) {
    g->row_r[i] = g->r[i][lane];
  }
  for (int i = 0; i < m->model->n_prepared; ++i) {
    g->row_p[i] = g->p[i][lane];
  }
}

/* The arrays of one motion as a point, without the time. */
static kg_scalar_point kg_group_row(const kg_group *g) {
  const kg_scalar_point at = {0.0, g->row, g->row + KG_N_Q, g->row + KG_N - KG_N_S, g->row_r, NULL, NULL};
  return at;
}

/* The states of all lanes as a point; models with contacts do not run on lanes. */
KG_INLINE kg_point kg_group_point(const kg_group *g, kg_lanes t, const kg_lanes *y) {
  const kg_point at = {t, y, y + KG_N_Q, y + KG_N - KG_N_S, g->r, NULL, NULL};
  return at;
}

/* Evaluates a function of the model in some lanes, with the general code for one state. Where it fails, the result is
 * NaN, and the status is noted in `failed`. */
static __attribute__((cold, noinline)) void kg_group_redo(const kg_many *m, kg_group *g, const kg_function *f,
                                                          kg_mask where, kg_lanes t, const kg_lanes *y, int n_out,
                                                          kg_lanes *out) {
  kg_scalar_point at = kg_group_row(g);
  for (int lane = 0; lane < KG_LANES; ++lane) {
    int status;
    if (where[lane] == 0) {
      continue;
    }
    kg_group_take(m, g, lane, y);
    at.t = t[lane];
    status = f->evaluate(&at, g->row_p, g->row_work, g->row_out);
    for (int i = 0; i < n_out; ++i) {
      out[i][lane] = status < 0 ? (double)NAN : g->row_out[i];
    }
    if (status < 0 && g->failed[lane] == 0) {
      g->failed[lane] = status;
    }
  }
}

/* y' = f(t, y) in all lanes; in those that are not watched it may be anything. */
static __attribute__((noinline)) int kg_ode_evaluate(const kg_ode *ode, const kg_statistics *statistics, kg_lanes t,
                                                     const kg_lanes *y, kg_lanes *dydt) {
  kg_group *g = ode->group;
  kg_mask redo;
  (void)statistics;
  t = kg_group_time(g, t);
  const kg_point at = kg_group_point(g, t, y);
  redo = KG_MANY_RHS(&at, g->p, g->work, dydt) & g->watched;
  if (kg_any(redo)) {
    kg_group_redo(g->many, g, g->many->rhs, redo, t, y, KG_N, dydt);
  }
  g->evaluations -= g->watched;
  return KG_OK;
}

/* z = y + factor * fresh */
KG_INLINE void kg_add_fresh(int n, kg_lanes factor, const kg_lanes *fresh, const kg_lanes *y, kg_lanes *z) {
  for (int i = 0; i < n; ++i) {
    z[i] = y[i] + factor * fresh[i];
  }
}

#undef KG_CALL
#define KG_CALL(result, call) ((void)(result), (void)(call))
#undef KG_TINY
#define KG_TINY KG_C(DBL_MIN)
#undef KG_EPSILON
#define KG_EPSILON KG_C(DBL_EPSILON)
#define KG_ERROR_BLOCK 1
#define KG_ALL_LATE
#include "kg_tableaux.h"

#include "kg_powers.h"
#define KG_STEP_POWERS_H
#undef KG_POW
#define KG_POW(x, y) kg_step_scale(KG_C(1.0), (y) * kg_step_log2(x))
#include "kg_dense.h"
#include "kg_step_control.h"

#endif
