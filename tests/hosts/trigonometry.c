/* The project's own sines, cosines and tangents, in the precision of the macros given to the compiler. */
#include "kg_sincos.h"
void evaluate(int n, const kg_real *x, kg_real *sine, kg_real *cosine, kg_real *tangent, kg_real *groups);

/* Groups of constant size, as in kernels. */
static void group(int size, const kg_real *x, kg_real *sine, kg_real *cosine) {
  switch (size) {
  case 1: kg_sincos(1, x, sine, cosine); break;
  case 2: kg_sincos(2, x, sine, cosine); break;
  case 3: kg_sincos(3, x, sine, cosine); break;
  case 4: kg_sincos(4, x, sine, cosine); break;
  case 5: kg_sincos(5, x, sine, cosine); break;
  case 6: kg_sincos(6, x, sine, cosine); break;
  default: kg_sincos(size, x, sine, cosine); break;
  }
}

/* The last array: sines and cosines in groups of 1, 2, ... 7, 1, 2, ... */
void evaluate(int n, const kg_real *x, kg_real *sine, kg_real *cosine, kg_real *tangent, kg_real *groups) {
  for (int i = 0; i < n; ++i) {
    sine[i] = KG_SIN(x[i]);
    cosine[i] = KG_COS(x[i]);
    tangent[i] = KG_TAN(x[i]);
  }
  for (int first = 0, size = 1; first < n; first += size, size = size % 7 + 1) {
    size = size < n - first ? size : n - first;
    group(size, x + first, groups + first, groups + n + first);
  }
}
