/* A model whose only function, f, is singular at every state. */
#include "kg_model.h"

static int f(KG_ARGUMENTS) {
  (void)at, (void)p, (void)work, (void)out;
  return KG_SINGULAR;
}

static void prepare(kg_real *p) { (void)p; }

static const kg_function functions[] = {{"f", 1, 0, 0, f}};
static const kg_model model = {KG_ABI, "m", "", 2, 2, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, prepare, 1, functions};
const kg_model *kg_get_model(void) { return &model; }
