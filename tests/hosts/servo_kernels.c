/* The kernels of the servo constraints as functions that ctypes can call. */
#include "kg_control.h"

int control_solve_work(int m, int n) { return KG_CONTROL_WORK(m, n); }
int control_solve(int m, int n, double *A, const double *z, const double *terms, const double *y, double *work, double *x) {
  return kg_control_solve(m, n, A, z, terms, y, work, x);
}
int control_damped_work(int m, int n) { return n < 0 ? n : KG_CONTROL_DAMPED_WORK(m, n); }
int control_damped(int m, int n, double *A, const double *z, const double *damping, double *work, double *x) {
  return kg_control_damped(m, n, A, z, damping, work, x);
}
int control_feasibility_work(int m, int n) { return KG_CONTROL_FEASIBILITY_WORK(m, n); }
int control_feasibility(int m, int n, double *A, const double *z, const double *terms, double *work, double *x,
                        double *result) {
  return kg_control_feasibility(m, n, A, z, terms, work, x, result);
}
