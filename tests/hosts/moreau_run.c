/* Runs of a compiled model with kg_moreau.h: include the kernel first (tests/support/moreau_host.py). */
#include "kg_moreau.h"
#include <stdlib.h>

static kg_evaluate function_of(const kg_model *model, const char *name, int *scratch) {
  const kg_function *f = kg_find_function(model, name);
  if (f && f->work > *scratch) {
    *scratch = f->work;
  }
  return f ? f->evaluate : NULL;
}

/* p: parameters and gains; y, impulses: in and out; r: inputs; states, forces: y and forces after each step. */
int run(int steps, int sweeps, kg_real t, kg_real h, const kg_real *p, kg_real *y, kg_real *r, kg_real *impulses,
        kg_real *states, kg_real *forces) {
  const kg_model *model = kg_get_model();
  const int n_s = model->n_s, n = model->n_q + model->n_u + n_s;
  int scratch = 0, status = KG_OK;
  const kg_moreau_model moreau = {model->n_q,
                                  model->n_u,
                                  n_s,
                                  model->n_rows,
                                  model->n_contacts,
                                  model->contacts,
                                  function_of(model, "qdot", &scratch),
                                  function_of(model, "contacts", &scratch),
                                  function_of(model, "gaps", &scratch),
                                  function_of(model, "state_rates", &scratch)};
  const int size = KG_MOREAU_WORK(model->n_q, model->n_u, n_s, model->n_rows, model->n_contacts);
  kg_real *work = malloc(((size_t)size + 1) * sizeof *work);
  kg_real *acting = calloc((size_t)model->n_rows + 1, sizeof *acting);
  kg_real *calls = malloc(((size_t)scratch + 1) * sizeof *calls);
  kg_real *prepared = malloc(((size_t)model->n_prepared + 1) * sizeof *prepared);
  memcpy(prepared, p, (size_t)(model->n_p + model->n_g) * sizeof *p);
  model->prepare(prepared);
  work[size] = KG_C(12345.0); /* written by nobody */
  const kg_moreau_arguments arguments = {&moreau, sweeps, prepared, r, impulses, acting, work, calls};
  for (int k = 0; k < steps && status >= 0; ++k) {
    status = kg_moreau_step(&arguments, t + (kg_real)k * h, h, y, y);
    if (status >= 0) {
      kg_moreau_accept(&arguments);
    }
    memcpy(states + k * n, y, (size_t)n * sizeof *y);
    memcpy(forces + k * model->n_rows, acting, (size_t)model->n_rows * sizeof *y);
  }
  if (!(work[size] >= KG_C(12345.0) && work[size] <= KG_C(12345.0))) {
    status = -100;
  }
  free(work), free(acting), free(calls), free(prepared);
  return status;
}
