/* Steps that are cut short, as an event does. */
#include "steppers.c"

/* Cuts the step that passes each of `cuts` there, first at a wrong time, and goes on: y_cut (cuts x n), and the time at
 * which the next step ended. */
int integrate_with_cuts(int problem, int n, const kg_stepper_options *options, double t_end, const double *y0,
                        double *work, int cuts, const double *t_cut, int new_step, double *y_cut, double *t_next,
                        double *y_end, kg_statistics *statistics) {
  kg_ode ode;
  kg_stepper s;
  int next = 0, after_cut = -1;
  int status;
  ode.n = n;
  ode.rhs = rhs;
  ode.jacobian = jacobian;
  ode.context = &problem;
  status = kg_stepper_start(&s, &ode, options, 0.0, y0, t_end, work);
  while (status == KG_OK) {
    status = kg_stepper_step(&s);
    if (after_cut >= 0) {
      t_next[after_cut] = s.t;
      after_cut = -1;
    }
    if (status >= 0 && next < cuts && s.t >= t_cut[next]) {
      status = next % 2 == 0 ? kg_stepper_dense(&s) : KG_OK;
      if (status == KG_OK && kg_stepper_cut(&s, s.t_old) == KG_INVALID_ARGUMENT) {
        status = kg_stepper_cut(&s, 0.5 * (s.t_old + t_cut[next]));
      }
      status = status < 0 ? status : kg_stepper_cut(&s, t_cut[next]);
      memcpy(y_cut + next * n, s.y, (size_t)n * sizeof(double));
      status = status < 0 ? status : kg_stepper_restart(&s, t_end, new_step);
      after_cut = next++;
    }
  }
  memcpy(y_end, s.y, (size_t)n * sizeof(double));
  *statistics = s.statistics;
  return status;
}
