/* The vector sines and cosines in double precision. */
#include "kg_sincos.h"
void evaluate(int n, const double *x, double *sine, double *cosine);
void evaluate(int n, const double *x, double *sine, double *cosine) { kg_sincos(n, x, sine, cosine); }
