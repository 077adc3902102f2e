/* Every stepper in single precision. */
#include <string.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#define KG_FLOAT
#include "kg_steppers.h"
#include "kg_linalg.h"

static int rhs(void *context, float t, const float *y, float *dydt) {
  (void)context;
  dydt[0] = y[0] * cosf(t);
  return KG_OK;
}

static int jacobian(void *context, float t, const float *y, const float *dydt, float *J, float *dfdt) {
  (void)context;
  (void)dydt;
  J[0] = cosf(t);
  dfdt[0] = -y[0] * sinf(t);
  return KG_OK;
}

int main(void) {
  const float rtol = 1e-6f, y0 = 1.0f;
  for (int method = 0; method < KG_METHODS; ++method) {
    kg_stepper_options options;
    memset(&options, 0, sizeof options);
    options.method = method;
    options.step = 0.01f;
    options.rtol = &rtol;
    options.atol = &rtol;
    const kg_ode ode = {1, rhs, NULL, jacobian};
    kg_stepper s;
    float work[40];
    int status = kg_stepper_start(&s, &ode, &options, 0.0f, &y0, 2.0f, work);
    while (status == KG_OK) {
      status = kg_stepper_step(&s);
    }
    printf("%d %.9g\n", status, (double)s.y[0]);
  }
  return 0;
}
