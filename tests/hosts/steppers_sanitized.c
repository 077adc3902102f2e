/* Every stepper on every problem, for the sanitizers: prints the statuses. */
#include <string.h>
#include "steppers.c"
#include <stdio.h>
int main(void) {
  const double rtol[4] = {1e-6, 1e-6, 1e-6, 1e-6}, y0[4] = {1.0, 1.0, 1.0, 0.0};
  static double work[400], t_out[600], y_out[2400], dense[600 * 36];
  const double t_query[2] = {0.3, 1.9};
  double y_query[8];
  for (int method = 0; method < KG_METHODS; ++method) {
    for (int problem = 0; problem < 8; ++problem) {
      kg_stepper_options options;
      memset(&options, 0, sizeof options);
      options.method = method;
      options.step = 0.01;
      options.max_steps = 500;
      options.rtol = rtol;
      options.atol = rtol;
      record r = {0, 500, t_out, y_out, dense, 2, t_query, y_query, 0};
      kg_statistics statistics;
      const int n = problem == 0 ? 4 : problem == 6 ? 2 : 1;
      const int status = integrate(problem, n, &options, 0.0, 2.0, y0, work, &r, &statistics);
      printf("%d ", status);
    }
  }
  return single_steps(1, 4, 0.1, y_out, y_query) + single_steps(0, 4, 0.1, y_out, y_query);
}
