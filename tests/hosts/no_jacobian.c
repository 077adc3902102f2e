/* The start of a stepper on y' = -t y, which has no Jacobian: returns its status. */
#include <string.h>
#include "kg_steppers.h"

static int rhs(void *context, double t, const double *y, double *dydt) {
  (void)context;
  dydt[0] = -t * y[0];
  return KG_OK;
}

int start(int method) {
  const double tolerance = 1e-6, y0 = 1.0;
  kg_stepper_options options;
  memset(&options, 0, sizeof options);
  options.method = method;
  options.rtol = &tolerance;
  options.atol = &tolerance;
  const kg_ode ode = {1, rhs, NULL, NULL};
  double work[60];
  kg_stepper s;
  return kg_stepper_start(&s, &ode, &options, 0.0, &y0, 1.0, work);
}
