/* A model whose only function, f, is singular at every state. */
#include "kg_model.h"

static int f(kg_real t, const kg_real *KG_RESTRICT q, const kg_real *KG_RESTRICT u, const kg_real *KG_RESTRICT r,
             const kg_real *KG_RESTRICT p, kg_real *KG_RESTRICT work, kg_real *KG_RESTRICT out) {
  (void)t, (void)q, (void)u, (void)r, (void)p, (void)work, (void)out;
  return KG_SINGULAR;
}

static void prepare(kg_real *p) { (void)p; }

static const kg_function functions[] = {{"f", 1, 0, 0, f}};
static const kg_model model = {KG_ABI, "m", "", 2, 2, 0, 0, 0, 0, NULL, NULL, NULL, NULL, prepare, 1, functions};
const kg_model *kg_get_model(void) { return &model; }
