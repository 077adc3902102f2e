/* Solutions of least norm and the metric of the mass matrix as functions that ctypes can call. */
#include "kg_least_norm.h"
int least_norm(int leading, int rows, int n, double *a, double *b, double *sizes, double *z);
int least_norm(int leading, int rows, int n, double *a, double *b, double *sizes, double *z) {
  return kg_least_norm(leading, rows, n, a, b, sizes, z);
}
void weigh(int rows, int n, double *metric, double *a);
void weigh(int rows, int n, double *metric, double *a) {
  kg_metric_factor(n, metric);
  for (int i = 0; i < rows; ++i) { kg_metric_lower(n, metric, a + i * n); }
}
void back(int n, const double *factor, double *z);
void back(int n, const double *factor, double *z) { kg_metric_upper(n, factor, z); }
double solve(int n, const double *factor, const double *row, double *z);
double solve(int n, const double *factor, const double *row, double *z) { return kg_metric_solve(n, factor, row, z); }
