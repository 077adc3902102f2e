/* One factorization and its solves as functions that ctypes can call. */
#include "kg_linalg.h"

int factor(int n, double *a, double *pivots) { return kg_lu_factor(n, 0, a, a, 0.0, 0.0, pivots); }
void substitute(int n, const double *a, const double *pivots, double *b) { kg_lu_solve_factored(n, a, pivots, b); }
