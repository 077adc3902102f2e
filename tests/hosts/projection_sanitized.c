/* Consistent states and projection of a generated slider-crank, for the sanitizers; appended to its kernel.
 * PARAMETERS: values of the parameters, separated by commas. */
#include <stdio.h>
#include <stdlib.h>
#include "kg_projection.h"
static const kg_function *find(const kg_model *m, const char *name) {
  for (int i = 0; i < m->n_functions; ++i) {
    if (strcmp(m->functions[i].name, name) == 0) { return &m->functions[i]; }
  }
  return NULL;
}
int main(void) {
  const kg_model *m = kg_get_model();
  kg_projection c;
  double *p = malloc((size_t)m->n_prepared * sizeof(double)), q[] = {0.3, 0.1, 0.9}, u[] = {0.5, 1.0, 2.0};
  const kg_point at = {0.0, q, u, NULL, NULL, NULL, NULL};
  const double values[] = {PARAMETERS};
  const int fixed[] = {1, 0, 0, 1, 0, 0};
  const kg_function *energy = find(m, "integral:energy");
  int status, corrections;
  memset(&c, 0, sizeof c);
  memset(p, 0, (size_t)m->n_prepared * sizeof(double));
  memcpy(p, values, sizeof values);
  m->prepare(p);
  c.manifold.n_q = m->n_q;
  c.manifold.n_u = m->n_u;
  c.manifold.position = find(m, "position_level");
  c.manifold.velocity = find(m, "velocity_level");
  c.manifold.displacements = find(m, "displacements");
  c.manifold.mass = find(m, "Q");
  c.integrals.functions = &energy;
  c.integrals.n = 1;
  c.tolerance = 1e-13;
  c.every = 1;
  c.p = p;
  c.work = malloc(kg_projection_work(&c) * sizeof(double));
  status = kg_make_consistent(&c.manifold, &at, q, u, p, fixed, 1e-13, c.work, &corrections);
  printf("%d %d %.17g %.17g %.17g %.17g\n", status, corrections > 0, q[0], q[1], q[2], u[0]);
  kg_projection_start(&c);
  printf("%d ", kg_projection_renew(&c, &at));
  q[1] += 1e-5;
  u[2] -= 1e-5;
  printf("%d ", kg_project(&c, &at, q, u));
  printf("%d ", kg_project(&c, &at, q, u));
  printf("%.17g %.17g %.17g\n", c.integrals.kept[0], c.integrals.values[m->n_u], c.integrals.drift);
  c.any_rank = 1;
  for (c.integrals.n = 1; c.integrals.n >= 0; --c.integrals.n) {
    kg_projection_start(&c);
    printf("%d ", kg_projection_renew(&c, &at));
    q[1] += 1e-5;
    u[2] -= 1e-5;
    printf("%d ", kg_project(&c, &at, q, u));
    printf("%d ", kg_project(&c, &at, q, u));
  }
  free(c.work);
  free(p);
  return 0;
}
