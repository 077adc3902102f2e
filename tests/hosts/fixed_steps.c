/* fixed_steps.c - Kutta's method (1901) for a function of the signature of solver.low_level_callable. */
#include <stddef.h>

enum { MOST = 32 };

int integrate(int (*rate)(double, double *, double *, void *), void *data, double t, double h, int steps, int n, double *y);

int integrate(int (*rate)(double, double *, double *, void *), void *data, double t, double h, int steps, int n, double *y)
{
  const double node[4] = {0.0, 0.5, 0.5, 1.0};
  double k[4][MOST], z[MOST];
  if (n > MOST) {
    return -100;
  }
  for (int step = 0; step < steps; ++step) {
    for (int stage = 0; stage < 4; ++stage) {
      for (int i = 0; i < n; ++i) {
        z[i] = y[i] + (stage ? node[stage] * h * k[stage - 1][i] : 0.0);
      }
      const int status = rate(t + node[stage] * h, z, k[stage], data);
      if (status < 0) {
        return status;
      }
    }
    for (int i = 0; i < n; ++i) {
      y[i] += h / 6.0 * (k[0][i] + 2.0 * k[1][i] + 2.0 * k[2][i] + k[3][i]);
    }
    t += h;
  }
  return 0;
}
