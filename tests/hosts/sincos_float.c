/* Sines and cosines of another scalar type, which come from its own functions. */
#include <math.h>
#define KG_REAL_DEFINED
typedef float kg_real;
#define KG_SIN(x) sinf(x)
#define KG_COS(x) cosf(x)
#include "kg_sincos.h"
int main(void) {
  const float x[3] = {0.0f, 1.0f, 2.0f};
  float s[3], c[3];
  kg_sincos(3, x, s, c);
  return s[1] > 0.84f && s[1] < 0.85f && c[0] == 1.0f ? 0 : 1;
}
