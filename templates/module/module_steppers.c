/* The integrators as ordinary functions, which are compiled once, with optimization, separate from the Cython code. */
#include "module_steppers.h"

const char *kg_module_method_name(int method) { return kg_get_method(method).name; }

int kg_module_method_is_implicit(int method) { return kg_get_method(method).linearize != NULL; }

int kg_module_method_is_adaptive(int method) { return kg_get_method(method).adaptive; }

size_t kg_module_switches_work(const kg_model *model) { return kg_switches_work(model); }

int kg_module_switches_open(kg_switches *switches, const kg_model *model, const kg_real *p, kg_real *work) {
  return kg_switches_open(switches, model, p, work);
}

int kg_module_switches_next(kg_switches *switches, kg_real t, kg_real direction, kg_real t_limit, kg_real *next) {
  return kg_switches_next(switches, t, direction, t_limit, next);
}

const char *kg_module_record_name(int kind) { return kg_record_name(kind); }

size_t kg_module_work(int method, int n) { return kg_stepper_work(method, n); }

int kg_module_run_begin(kg_run *run, kg_real t0, const kg_real *y0, kg_real t_end) {
  return kg_run_begin(run, t0, y0, t_end);
}

int kg_module_run_start(kg_run *run, const kg_ode *ode, const kg_stepper_options *options, const kg_real *y0,
                        kg_real *work) {
  return kg_run_start(run, ode, options, y0, work);
}

int kg_module_run_advance(kg_run *run, int steps) { return kg_run_advance(run, steps); }

int kg_module_dense_rows(int method) { return kg_dense_rows(method); }

void kg_module_dense_evaluate(int rows, int n, const kg_real *dense, kg_real t_old, kg_real h, kg_real t,
                              kg_real *y) {
  kg_dense_evaluate(rows, n, dense, t_old, h, t, y);
}

const char *kg_module_status_message(int status) { return kg_status_message(status); }

/* Like kg_all_finite(), but without a branch for each value. Vectors would be slow: values that were just stored one by
 * one cannot be loaded as a vector yet. */
static inline int finite_values(int n, const kg_real *values) {
  kg_real rest = KG_C(0.0);
  for (int i = 0; i < n; ++i) {
    rest += values[i] - values[i];
  }
  return rest == KG_C(0.0);
}

int kg_module_all_finite(int n, const kg_real *values) { return finite_values(n, values); }

int kg_module_evaluate(const kg_function *function, const kg_point *at, const kg_real *p, kg_real *work, kg_real *out,
                       int n) {
  const int status = function->evaluate(at, p, work, out);
  return status < 0 || finite_values(n, out) ? status : KG_NOT_FINITE;
}

int kg_module_residual_units(const kg_function *residuals, int n_q, int n_u, const kg_point *at, const kg_real *p,
                             kg_real *work, kg_real *values, kg_real *units, kg_real *scratch) {
  const int status =
      kg_residual_units(residuals, n_q, n_u, at, p, work, values, units, scratch, scratch + n_q + n_u);
  return status < 0 || (finite_values(residuals->rows, values) & finite_values(residuals->rows, units)) != 0
             ? status
             : KG_NOT_FINITE;
}

int kg_module_open_row(const kg_rows *rows, ptrdiff_t row, kg_point *at) {
  const kg_model *m = rows->model;
  at->t = rows->times[row * rows->next_t];
  at->q = rows->first.q + row * rows->next_q;
  at->u = rows->first.u + row * rows->next_u;
  at->s = rows->first.s + row * rows->next_s;
  at->r = rows->first.r + row * rows->next_r;
  at->forces = rows->first.forces + row * rows->next_forces;
  at->free = rows->first.free + row * rows->next_free;
  return finite_values(1, &at->t) & finite_values(m->n_q, at->q) & finite_values(m->n_u, at->u) &
         finite_values(m->n_s, at->s) & finite_values(m->n_r, at->r) & finite_values(m->n_rows, at->forces) &
         finite_values(m->n_free, at->free);
}

int kg_module_advance_rows(kg_rows *rows, int most) {
  const kg_evaluate evaluate = rows->function->evaluate;
  const ptrdiff_t left = rows->count - rows->done, end = rows->done + (left < most ? left : most);
  for (ptrdiff_t row = rows->done; row < end; ++row, ++rows->done) {
    kg_real *out = rows->out + row * rows->n_out;
    kg_point at;
    int status;
    if (!kg_module_open_row(rows, row, &at)) {
      return KG_ROW_ARGUMENTS;
    }
    status = evaluate(&at, rows->p, rows->work, out);
    if (status < 0) {
      return status;
    }
    if (!finite_values(rows->n_out, out)) {
      return KG_NOT_FINITE;
    }
    rows->repartitioned += status == KG_REPARTITIONED;
  }
  return KG_OK;
}

size_t kg_module_projection_work(const kg_projection *projection) { return kg_projection_work(projection); }

void kg_module_projection_start(kg_projection *projection) { kg_projection_start(projection); }

int kg_module_projection_renew(kg_projection *projection, const kg_point *at) {
  return kg_projection_renew(projection, at);
}

int kg_module_project(kg_projection *projection, kg_stepper *stepper, const kg_point *at, int outcome) {
  return kg_projection_after_step(projection, stepper, at, outcome);
}
