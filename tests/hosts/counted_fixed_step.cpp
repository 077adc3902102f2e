/* Counts the operations of the steps of emitted projects, without those of the model's functions, and those of what may
 * follow a step. Every function returns a number, or the status if it refuses.
 *
 * METHODS: RUNGE_KUTTA(name) for the methods whose steps are counted as name(n).
 */
#include "counted.h"

/* What is computed from constants only, such as 1/6, is computed by the compiler. */
#undef KG_C
#define KG_C(x) (x)

/* The class has no volatile copies; here, the word only keeps compilers from reading values earlier. */
#define volatile
#include "kg_fixed_step.h"

static int rates(void *, kg_real, const kg_real *, kg_real *dydt)
{
  dydt[0] = kg_real(1.0);
  return KG_OK;
}

static kg_real y[64], y_new[64], work[4096];

static kg_ode ode_of(int n)
{
  kg_ode ode;
  std::memset(static_cast<void *>(&ode), 0, sizeof ode);
  ode.n = n;
  ode.rhs = rates;
  operations = 0;
  return ode;
}

#define RUNGE_KUTTA(name)                                                        \
  extern "C" long name(int n) {                                                  \
    const kg_ode ode = ode_of(n);                                                \
    const int status = kg_##name##_step(&ode, 0.0, 0.1, y, y_new, work);         \
    return status < 0 ? (long)status : operations;                               \
  }
METHODS

extern "C" long semi_implicit_euler(int n)
{
  const kg_ode ode = ode_of(n);
  const int status = kg_semi_implicit_euler_step(&ode, n / 2, 0.0, 0.1, y, y_new, work);
  return status < 0 ? (long)status : operations;
}

extern "C" long add_change(int n)
{
  operations = 0;
  kg_add_change(n, y, y_new, work);
  return operations;
}

extern "C" long least_change(int n, int n_u, int m, const kg_real *Q, const kg_real *rows)
{
  operations = 0;
  const int status = kg_least_change(n, n_u, m, Q, rows, work, y_new);
  return status < 0 ? (long)status : operations;
}
