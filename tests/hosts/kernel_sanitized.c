/* Every function of a generated kernel, for the sanitizers; appended to the kernel. */
#include "solver.h"
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  const kg_model *model = kg_get_model();
  kg_real *p = malloc(sizeof(kg_real) * (size_t)model->n_prepared);
  const kg_real q[3] = {0.4, -1.2, 2.2}, u[3] = {0.5, 1.5, -0.25}, r[1] = {0.75};
  const kg_point at = {0.3, q, u, NULL, r, NULL, NULL};
  for (int i = 0; i < model->n_p + model->n_g; i++) { p[i] = 0.9; }
  model->prepare(p);
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; i < model->n_functions; i++) {
      const kg_function *f = &model->functions[i];
      const int size = f->rows < 0 ? 1 : f->rows * (f->cols > 0 ? f->cols : 1);
      kg_real *work = malloc(sizeof(kg_real) * (size_t)f->work + 1);
      kg_real *out = malloc(sizeof(kg_real) * (size_t)size);
      if (f->evaluate(&at, p, work, out) < 0) { return 1; }
      printf("%g\n", (double)out[0]);
      free(work);
      free(out);
    }
    p[0] = -3.0;
    model->prepare(p);
  }
  free(p);
  return 0;
}
