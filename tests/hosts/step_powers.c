/* The logarithms and powers of two with which steps are chosen. */
#include "kg_step_powers.h"
void logarithms(int n, const kg_real *x, kg_real *out);
void scales(int n, kg_real size, const kg_real *x, kg_real *out);
void logarithms(int n, const kg_real *x, kg_real *out) {
  for (int i = 0; i < n; ++i) {
    out[i] = kg_step_log2(x[i]);
  }
}
void scales(int n, kg_real size, const kg_real *x, kg_real *out) {
  for (int i = 0; i < n; ++i) {
    out[i] = kg_step_scale(size, x[i]);
  }
}
