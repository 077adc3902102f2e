/* One factorization and its solves as functions that ctypes can call. */
#include "kg_factored.h"

int factor(int n, double *a, double *pivots) { return kg_factor(n, a, pivots); }
void substitute(int n, const double *a, const double *pivots, double *b) { kg_substitute(n, a, pivots, b); }
