/* The integrators as the Cython module sees them. */
#ifndef KG_MODULE_STEPPERS_H
#define KG_MODULE_STEPPERS_H

#include <stddef.h>

#include "kg_feedback.h"
#include "kg_model.h"
#include "kg_projection.h"
#include "kg_residual_units.h"
#include "kg_run.h"

const char *kg_module_method_name(int method);
int kg_module_method_is_implicit(int method);
int kg_module_method_is_adaptive(int method);
size_t kg_module_switches_work(const kg_model *model);
int kg_module_switches_open(kg_switches *switches, const kg_model *model, const kg_real *p, kg_real *work);
int kg_module_switches_next(kg_switches *switches, kg_real t, kg_real direction, kg_real t_limit, kg_real *next);
const char *kg_module_record_name(int kind);
size_t kg_module_work(int method, int n);
int kg_module_run_begin(kg_run *run, kg_real t0, const kg_real *y0, kg_real t_end);
int kg_module_run_start(kg_run *run, const kg_ode *ode, const kg_stepper_options *options, const kg_real *y0,
                        kg_real *work);
int kg_module_run_advance(kg_run *run, int steps);
int kg_module_dense_rows(int method);
void kg_module_dense_evaluate(int rows, int n, const kg_real *dense, kg_real t_old, kg_real h, kg_real t,
                              kg_real *y);
const char *kg_module_status_message(int status);
int kg_module_all_finite(int n, const kg_real *values);
/* A compiled function whose result has n values; KG_NOT_FINITE where one of them is NaN or infinite. */
int kg_module_evaluate(const kg_function *function, const kg_point *at, const kg_real *p, kg_real *work, kg_real *out,
                       int n);
/* kg_residual_units() of the residuals; `scratch`: n_q + n_u values and as many as residuals. */
int kg_module_residual_units(const kg_function *residuals, int n_q, int n_u, const kg_point *at, const kg_real *p,
                             kg_real *work, kg_real *values, kg_real *units, kg_real *scratch);

#define KG_ROW_ARGUMENTS (-102) /* an argument of a row is NaN or infinite */

/* The arguments of a function at `count` states: the times and the other arguments of the first row, and the distance to
   the next row (0: the same for all). One state (has_rows == 0) is a row whose time can be `time`. Of evaluations, `out`
   has a row of n_out values for each state; `done` rows have been evaluated. */
typedef struct {
  const kg_model *model;
  const kg_function *function;
  kg_point first; /* without its time */
  kg_real time;
  const kg_real *times, *p;
  ptrdiff_t count, next_t, next_q, next_u, next_s, next_r, next_forces, next_free;
  int has_rows, n_out;
  kg_real *work, *out;
  ptrdiff_t done;
  long long repartitioned;
} kg_rows;

/* Lets a point read a row; returns whether all its arguments are finite. */
int kg_module_open_row(const kg_rows *rows, ptrdiff_t row, kg_point *at);
/* Evaluates at most `most` rows; returns KG_OK or the status of the row `done` that failed. */
int kg_module_advance_rows(kg_rows *rows, int most);

size_t kg_module_projection_work(const kg_projection *projection);
void kg_module_projection_start(kg_projection *projection);
int kg_module_projection_renew(kg_projection *projection, const kg_point *at);
int kg_module_project(kg_projection *projection, kg_stepper *stepper, const kg_point *at, int outcome);

#endif
