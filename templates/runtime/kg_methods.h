/* kg_methods.h - the methods by number, single steps without a stepper, and stored dense output. */
#ifndef KG_METHODS_H
#define KG_METHODS_H

#include "kg_rosenbrock.h"
#include "kg_tableaux.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KG_RK4 0          /* classical Runge-Kutta, fixed step */
#define KG_KUTTA_MERSON 1 /* Kutta-Merson, fixed step; its error estimate is recorded only */
#define KG_DOPRI5 2       /* Dormand-Prince 5(4), adaptive */
#define KG_DOP853 3       /* Dormand-Prince 8(5,3), adaptive */
#define KG_RODAS 4        /* Rosenbrock method of order 4(3) for stiff equations, adaptive; needs the Jacobian */

/* What the steppers know about a method: its coefficients (kg_tableaux.h, kg_rosenbrock.h) and the parameters of its
 * step control. */
typedef struct {
  int stages;
  int rows;           /* of derivatives */
  int squares;        /* matrices (n x n) that follow these rows */
  int dense_rows;     /* of stored dense output */
  int estimates;      /* 0, 1, or 2 error estimates */
  int estimates_end;  /* whether the stages evaluate the derivative at the end of the step */
  int adaptive;
  kg_real order;      /* the error estimate is of order h^order */
  kg_real beta;       /* proportional part of the step control; 0: integral control only */
  kg_real safety;     /* the next step is this fraction of the largest that the error estimate allows */
  kg_real shrink;     /* smallest and largest quotient of consecutive steps */
  kg_real grow;
  int (*linearize)(const kg_ode *, kg_statistics *, kg_real, const kg_real *, kg_real *); /* implicit methods */
  int (*take)(const kg_ode *, kg_statistics *, kg_real, kg_real, const kg_real *, kg_real *, kg_real *);
  void (*error)(int, const kg_real *, const kg_real *, const kg_real *, const kg_real *, const kg_real *, kg_real *);
  int (*take_dense)(const kg_ode *, kg_statistics *, kg_real, kg_real, const kg_real *, kg_real *, kg_real *);
  void (*fill_dense)(int, kg_real, const kg_real *, kg_real *);
} kg_method;

/* The method of a number; one with 0 stages when there is none. */
static inline kg_method kg_get_method(int method) {
  kg_method m;
  memset(&m, 0, sizeof m);
  switch (method) {
    case KG_RK4:
      m.stages = KG_RK4_STAGES;
      m.rows = KG_RK4_ROWS;
      m.dense_rows = KG_RK4_DENSE_ROWS;
      m.take = kg_rk4_stages;
      break;
    case KG_KUTTA_MERSON:
      m.stages = KG_KUTTA_MERSON_STAGES;
      m.rows = KG_KUTTA_MERSON_ROWS;
      m.dense_rows = KG_KUTTA_MERSON_DENSE_ROWS;
      m.estimates = 1;
      m.take = kg_kutta_merson_stages;
      m.error = kg_kutta_merson_error;
      break;
    case KG_DOPRI5:
      m.stages = KG_DOPRI5_STAGES;
      m.rows = KG_DOPRI5_ROWS;
      m.dense_rows = KG_DOPRI5_DENSE_ROWS;
      m.estimates = 1;
      m.estimates_end = 1;
      m.adaptive = 1;
      m.order = KG_C(5.0);
      m.beta = KG_C(0.04);
      m.safety = KG_C(0.9);
      m.shrink = KG_C(0.2);
      m.grow = KG_C(10.0);
      m.take = kg_dopri5_stages;
      m.error = kg_dopri5_error;
      m.fill_dense = kg_dopri5_dense_rows;
      break;
    case KG_DOP853:
      m.stages = KG_DOP853_STAGES;
      m.rows = KG_DOP853_ROWS;
      m.dense_rows = KG_DOP853_DENSE_ROWS;
      m.estimates = 2;
      m.adaptive = 1;
      m.order = KG_C(8.0);
      m.safety = KG_C(0.8); /* not 0.9: the trials that are not rejected save 3 to 20 per cent at equal error */
      m.shrink = KG_C(0.333);
      m.grow = KG_C(6.0);
      m.take = kg_dop853_stages;
      m.error = kg_dop853_error;
      m.take_dense = kg_dop853_dense_stages;
      m.fill_dense = kg_dop853_dense_rows;
      break;
    case KG_RODAS:
      m.stages = KG_RODAS_STAGES;
      m.rows = KG_RODAS_ROWS;
      m.squares = KG_RODAS_SQUARES;
      m.dense_rows = KG_RODAS_DENSE_ROWS;
      m.estimates = 1;
      m.adaptive = 1;
      m.order = KG_C(4.0);
      m.safety = KG_C(0.9);
      m.shrink = KG_C(0.2);
      m.grow = KG_C(6.0);
      m.linearize = kg_rodas_linearize;
      m.take = kg_rodas_stages;
      m.error = kg_rodas_error;
      m.fill_dense = kg_rodas_dense_rows;
      break;
    default:
      break;
  }
  return m;
}

/* Rows of n values that describe one step of dense output; 0 for an unknown method. */
static inline int kg_dense_rows(int method) { return kg_get_method(method).dense_rows; }

/* State at t from the stored dense output of the step from t_old to t_old + h: y has n values. */
static inline void kg_dense_evaluate(int rows, int n, const kg_real *KG_RESTRICT dense, kg_real t_old, kg_real h,
                                     kg_real t, kg_real *KG_RESTRICT y) {
  const kg_real theta = (t - t_old) / h;
  const kg_real rest = KG_C(1.0) - theta;
  const kg_real *last = dense + (rows - 1) * (ptrdiff_t)n;
  memcpy(y, last, (size_t)n * sizeof *y);
  for (int row = rows - 2; row >= 0; --row) {
    const kg_real factor = row % 2 == 0 ? theta : rest;
    const kg_real *KG_RESTRICT values = dense + row * (ptrdiff_t)n;
    for (int i = 0; i < n; ++i) {
      y[i] = y[i] * factor + values[i];
    }
  }
}

#define KG_RK4_WORK(n) (KG_RK4_STAGES * (n))
#define KG_KUTTA_MERSON_WORK(n) (KG_KUTTA_MERSON_STAGES * (n))

/* One classical Runge-Kutta step from (t, y) to y_new. work: KG_RK4_WORK(n) values; arrays must not overlap.
 * Returns KG_OK or the failure of the right-hand side. */
static inline int kg_rk4_step(const kg_ode *ode, kg_real t, kg_real h, const kg_real *y, kg_real *y_new,
                              kg_real *work) {
  kg_statistics statistics;
  int status;
  memset(&statistics, 0, sizeof statistics);
  status = kg_ode_evaluate(ode, &statistics, t, y, work);
  return status < 0 ? status : kg_rk4_stages(ode, &statistics, t, h, y, work, y_new);
}

/* One Kutta-Merson step from (t, y) to y_new with its error estimate (n values, in the units of y).
 * work: KG_KUTTA_MERSON_WORK(n) values; arrays must not overlap. Returns KG_OK or the failure of the right-hand
 * side. */
static inline int kg_kutta_merson_step(const kg_ode *ode, kg_real t, kg_real h, const kg_real *y, kg_real *y_new,
                                       kg_real *error, kg_real *work) {
  kg_statistics statistics;
  int status;
  memset(&statistics, 0, sizeof statistics);
  status = kg_ode_evaluate(ode, &statistics, t, y, work);
  if (status < 0) {
    return status;
  }
  status = kg_kutta_merson_stages(ode, &statistics, t, h, y, work, y_new);
  if (status == KG_OK) {
    kg_kutta_merson_estimate(ode->n, h, work, error);
  }
  return status;
}

#ifdef __cplusplus
}
#endif

#endif
