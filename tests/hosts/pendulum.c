/* A kernel written by hand: a damped pendulum (tests/support/handmade.py).
 *
 * The including text defines NAME, DIGEST (strings) and ABI (the version of kg_model.h that the model claims). */
#include "kg_model.h"
#include "kg_sincos.h"

/* The arguments of a function as variables, some of which it may leave unused. */
#define READ                                                              \
  const kg_real t = at->t, *q = at->q, *u = at->u, *r = at->r;            \
  (void)t, (void)q, (void)u, (void)r, (void)p, (void)work, (void)out

static void prepare(kg_real *p) { p[3] = KG_C(0.5) * p[1] * p[1]; }

static int rhs(KG_ARGUMENTS) {
  READ;
  work[0] = -p[0] * p[1] * KG_SIN(q[0]) - u[0] + r[0] + p[2] * q[0];
  out[0] = u[0];
  out[1] = work[0] / (p[1] * p[1]);
  return KG_OK;
}

static int T(KG_ARGUMENTS) {
  READ;
  out[0] = KG_C(2.0) * p[3];
  return KG_OK;
}

static int V(KG_ARGUMENTS) {
  READ;
  out[0] = -p[0] * p[1] * KG_SIN(q[0]) - u[0] + r[0];
  return KG_OK;
}

static int wide(KG_ARGUMENTS) {
  READ;
  out[0] = t; out[1] = q[0]; out[2] = u[0]; out[3] = r[0]; out[4] = p[0]; out[5] = p[2];
  return KG_OK;
}

static int kinetic_energy(KG_ARGUMENTS) {
  READ;
  out[0] = p[3] * u[0] * u[0];
  return KG_OK;
}

static int singular(KG_ARGUMENTS) {
  READ;
  return KG_SINGULAR;
}

static int moved(KG_ARGUMENTS) {
  READ;
  out[0] = u[0];
  out[1] = r[0];
  return KG_REPARTITIONED;
}

static const char *const coordinates[] = {"theta"};
static const char *const speeds[] = {"omega"};
static const char *const inputs[] = {"torque"};
static const char *const parameters[] = {"g", "l"};
static const kg_function functions[] = {
    {"rhs", 2, 0, 1, rhs},   {"T", 1, 1, 0, T},           {"V", 1, 0, 0, V},
    {"wide", 2, 3, 0, wide}, {"singular", 2, 0, 0, singular}, {"moved", 2, 0, 0, moved},
    {"kinetic_energy", -1, 0, 0, kinetic_energy},
};
static const kg_model model = {ABI, NAME, DIGEST, 1, 1, 0, 1, 2, 1, 4, coordinates, speeds, NULL, inputs,
                               parameters, prepare, 7, functions};

const kg_model *kg_get_model(void);
const kg_model *kg_get_model(void) { return &model; }
