/* Every size of the linear algebra once, for the sanitizers: prints the statuses. */
#include "linalg.c"
#include <stdio.h>
int main(void) {
  for (int n_u = 1; n_u <= 6; ++n_u) {
    for (int n_c = 0; n_c <= n_u; ++n_c) {
      double Q[36], P[6], J[36], copy[36], b[6], udot[6], order[6], work[KG_CONSTRAINED_WORK(6, 0)];
      for (int i = 0; i < n_u; ++i) {
        P[i] = i - 2.5;
        b[i] = 0.3 * i;
        for (int j = 0; j < n_u; ++j) {
          Q[i * n_u + j] = (i == j ? n_u : 0) + 1.0 / (1 + i + j);
          J[i * n_u + j] = copy[i * n_u + j] = cos(1.0 + i * j + 2.0 * i);
        }
      }
      printf("%d ", partition(n_u, n_c, copy, order));
      printf("%d ", constrained_solve(n_u, n_c, Q, P, J, b, work, udot));
      printf("%d ", cholesky_solve(n_u, Q, P));
      for (int i = 0; i < n_u * n_u; ++i) {
        Q[i] = cos(0.5 * i * i + 1.0);
      }
      printf("%d\n", lu_solve_many(n_u, 1, Q, P));
    }
  }
  return 0;
}
