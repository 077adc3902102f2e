/* The search for zeros of a guard that is rounding: kg_zeros.h. */
#include <math.h>

#include "kg_zeros.h"

typedef struct {
  double offset;
  double slope;
  long values;
} guard;

/* offset - slope * place with an error as large as 1e-14, as the rounding of sums of size 1e2. */
static int rounded(void *context, kg_real place, kg_real *g) {
  guard *own = (guard *)context;
  *g = own->offset - own->slope * place + 1e-14 * sin(1e12 * place);
  ++own->values;
  return KG_OK;
}

/* Searches one step from the sign `side`; returns the kind of zero, and counts the values. */
int search(double offset, double slope, int rule, int side, double noise, long *values) {
  guard context = {offset, slope, 0};
  kg_zeros scan = {0};
  kg_piece whole;
  kg_found found;
  int status;
  scan.value = rounded;
  scan.context = &context;
  scan.rule = rule;
  scan.side = side;
  scan.noise = noise;
  scan.unit = 100.0 * noise;
  scan.flat = 1000.0 * noise;
  scan.swing = 100.0 * scan.flat;
  scan.shortest = 1e-9;
  scan.limit = 1.0;
  whole.a = 0.0;
  whole.b = 1.0;
  rounded(&context, 0.0, whole.g);
  rounded(&context, 1.0, whole.g + 4);
  kg_zeros_fill(&scan, &whole);
  status = kg_zeros_first(&scan, &whole, &found);
  *values = context.values;
  return status < 0 ? status : found.kind;
}
