/* The linear algebra of the kernels as functions that ctypes can call. */
#include "kg_linalg.h"

int lu_solve(int n, double *a, double *b) { return kg_lu_solve(n, a, b); }
int lu_solve_many(int n, int m, double *a, double *b) { return kg_lu_solve_many(n, m, a, b); }
int cholesky_solve(int n, double *a, double *b) { return kg_cholesky_solve(n, a, b); }
int cholesky_solve_many(int n, int m, double *a, double *b) { return kg_cholesky_solve_many(n, m, a, b); }
int partition(int n_u, int n_c, double *J, double *order) { return kg_partition(n_u, n_c, J, order); }
int constrained_work(int n_u, int n_c) { return KG_CONSTRAINED_WORK(n_u, n_c); }
int constrained_solve(int n_u, int n_c, double *Q, double *P, double *J, double *b, double *work,
                      double *udot) {
  return kg_constrained_solve(n_u, n_c, Q, P, J, b, work, udot);
}
int constrained_solve_lu(int n_u, int n_c, double *Q, double *P, double *J, double *b, double *work,
                         double *udot) {
  return kg_constrained_solve_lu(n_u, n_c, Q, P, J, b, work, udot);
}
