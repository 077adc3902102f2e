/* A constrained kernel written by hand: a particle on a sloping track that an input lifts
 * (tests/support/handmade_track.py).
 *
 * p = g, m, s, G1, G2 and r = lift, its rate and its acceleration. The text before this file defines DIGEST (a string)
 * and WITHOUT_... for each function that the model lacks.
 */
#include "kg_model.h"

/* The arguments of a function as variables, some of which it may leave unused. */
#define READ                                                              \
  const kg_real t = at->t, *q = at->q, *u = at->u, *r = at->r;            \
  (void)t, (void)q, (void)u, (void)r, (void)p, (void)work, (void)out

static kg_real bias(const kg_real *q, const kg_real *u, const kg_real *r, const kg_real *p) {
  return r[2] + p[3] * (u[1] - p[2] * u[0] - r[1]) + p[4] * (q[1] - p[2] * q[0] - r[0]);
}

static int accelerate(kg_real t, const kg_real *u, const kg_real *p, kg_real b, kg_real *out) {
  const kg_real s = p[2];
  out[0] = u[0];
  out[1] = u[1];
  out[2] = -s * (p[0] + b) / (KG_C(1.0) + s * s);
  out[3] = s * out[2] + b;
  if (t > KG_C(1000.0)) {
    return KG_SINGULAR;
  }
  return s > KG_C(1000.0) ? KG_REPARTITIONED : KG_OK;
}

static void prepare(kg_real *p) { (void)p; }

static int rhs(KG_ARGUMENTS) {
  READ;
  return accelerate(t, u, p, r[2], out);
}

static int rhs_stabilized(KG_ARGUMENTS) {
  READ;
  return accelerate(t, u, p, bias(q, u, r, p), out);
}

static int T(KG_ARGUMENTS) {
  READ;
  out[0] = -p[2];
  out[1] = KG_C(1.0);
  out[2] = p[1];
  out[3] = p[2] * p[1];
  return KG_OK;
}

static int V(KG_ARGUMENTS) {
  READ;
  out[0] = bias(q, u, r, p);
  out[1] = -p[2] * p[1] * p[0];
  return KG_OK;
}

static int J(KG_ARGUMENTS) {
  READ;
  out[0] = -p[2];
  out[1] = KG_C(1.0);
  return KG_OK;
}

static int b(KG_ARGUMENTS) {
  READ;
  out[0] = bias(q, u, r, p);
  return KG_OK;
}

static int A(KG_ARGUMENTS) {
  READ;
  out[0] = p[2];
  return KG_OK;
}

static int multipliers(KG_ARGUMENTS) {
  const int status = accelerate(at->t, at->u, p, bias(at->q, at->u, at->r, p), work);
  READ;
  out[0] = p[1] * (work[3] + p[0]);
  return status;
}

static int kinetic_energy(KG_ARGUMENTS) {
  READ;
  out[0] = KG_C(0.5) * p[1] * (u[0] * u[0] + u[1] * u[1]);
  return KG_OK;
}

static int potential_energy(KG_ARGUMENTS) {
  READ;
  out[0] = p[1] * p[0] * q[1];
  return KG_OK;
}

static int energy(KG_ARGUMENTS) {
  READ;
  out[0] = p[1] * (KG_C(0.5) * (u[0] * u[0] + u[1] * u[1]) + p[0] * q[1]);
  return KG_OK;
}

static int residuals(KG_ARGUMENTS) {
  READ;
  out[0] = q[1] - p[2] * q[0] - r[0];
  out[1] = u[1] - p[2] * u[0] - r[1];
  return KG_OK;
}

static int speed(KG_ARGUMENTS) {
  READ;
  out[0] = KG_SQRT(u[0] * u[0] + u[1] * u[1]);
  return KG_OK;
}

static int state(KG_ARGUMENTS) {
  READ;
  out[0] = q[0];
  out[1] = q[1];
  out[2] = u[0];
  out[3] = u[1];
  return KG_OK;
}

static const char *const coordinates[] = {"x", "y"};
static const char *const speeds[] = {"u1", "u2"};
static const char *const inputs[] = {"lift", "lift_rate", "lift_acceleration"};
static const char *const parameters[] = {"g", "mass", "slope"};
static const kg_function functions[] = {
    {"rhs", 4, 0, 4, rhs},
#ifndef WITHOUT_RHS_STABILIZED
    {"rhs_stabilized", 4, 0, 4, rhs_stabilized},
#endif
    {"T", 2, 2, 4, T},
    {"V", 2, 0, 4, V},
#ifndef WITHOUT_J
    {"J", 1, 2, 4, J},
#endif
    {"b", 1, 0, 4, b},
    {"A", 1, 1, 4, A},
    {"multipliers", 1, 0, 4, multipliers},
    {"kinetic_energy", -1, 0, 4, kinetic_energy},
    {"potential_energy", -1, 0, 4, potential_energy},
    {"energy", -1, 0, 4, energy},
#ifndef WITHOUT_RESIDUALS
    {"residuals", 2, 0, 4, residuals},
#endif
#ifndef WITHOUT_OUTPUT_SPEED
    {"output:speed", -1, 0, 4, speed},
#endif
    {"output:state", 2, 2, 4, state},
};
static const kg_model model = {KG_ABI, "track", DIGEST, 2, 2, 0, 3, 3, 2, 5, coordinates, speeds, NULL, inputs, parameters,
                               prepare, (int)(sizeof functions / sizeof *functions), functions};

const kg_model *kg_get_model(void);
const kg_model *kg_get_model(void) { return &model; }
