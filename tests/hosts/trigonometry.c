/* The project's own sines, cosines and tangents, in the precision of the macros given to the compiler. */
#define KG_BUILTIN_MATH
#include "kg_sincos.h"
void evaluate(int n, const kg_real *x, kg_real *sine, kg_real *cosine, kg_real *tangent, kg_real *pair);
void evaluate(int n, const kg_real *x, kg_real *sine, kg_real *cosine, kg_real *tangent, kg_real *pair) {
  for (int i = 0; i < n; ++i) {
    sine[i] = KG_SIN(x[i]);
    cosine[i] = KG_COS(x[i]);
    tangent[i] = KG_TAN(x[i]);
  }
  kg_sincos(n, x, pair, pair + n);
}
