/* The integrators as the Cython module sees them. */
#ifndef KG_MODULE_STEPPERS_H
#define KG_MODULE_STEPPERS_H

#include "kg_model.h"
#include "kg_projection.h"
#include "kg_run.h"

const char *kg_module_method_name(int method);
int kg_module_method_is_implicit(int method);
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
int kg_module_evaluate(const kg_function *function, kg_real t, const kg_real *q, const kg_real *u, const kg_real *r,
                       const kg_real *p, kg_real *work, kg_real *out, int n);

size_t kg_module_projection_work(const kg_projection *projection);
void kg_module_projection_start(kg_projection *projection);
int kg_module_projection_renew(kg_projection *projection, kg_real t, const kg_real *q, const kg_real *u,
                               const kg_real *r);
int kg_module_project(kg_projection *projection, kg_stepper *stepper, const kg_real *r, int outcome);

#endif
