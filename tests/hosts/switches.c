/* A model with one switch of every kind, any of which can be left out: the instants that kg_switches.h finds. */
#include "kg_sincos.h"
#include "kg_switches.h"

#define KINDS 8
static const kg_real zero[] = {KG_C(0.0)};
static const kg_real levels[] = {KG_C(-1.0), KG_C(0.5), KG_C(2.0), KG_C(2.25), KG_C(40.0)};
static const kg_switch_info kinds[KINDS] = {
    {KG_SWITCH_AFFINE, 1, zero},   /* p0 + p1 t */
    {KG_SWITCH_AFFINE, 1, zero},   /* t - p2 */
    {KG_SWITCH_AFFINE, 0, NULL},   /* (t - p3)/p4 */
    {KG_SWITCH_PIECES, 1, zero},   /* Mod(t - p3, p4) - p5, which needs the one before */
    {KG_SWITCH_AFFINE, 5, levels}, /* p1 t */
    {KG_SWITCH_CURVED, 1, zero},   /* sin(p6 t) - p7 */
    {KG_SWITCH_CURVED, 0, NULL},   /* t^2, or (t - 1)^2, which has no value before 1 */
    {KG_SWITCH_CURVED, 5, levels}, /* 3 sin(p6 t) */
};
static int chosen[KINDS], n_chosen, calls;

static void evaluate_kind(int kind, kg_real t, const kg_real *p, kg_real *out) {
  const kg_real place = (t - p[3]) / p[4];
  const kg_real values[KINDS][2] = {
      {p[0] + p[1] * t, p[1]},
      {t - p[2], KG_C(1.0)},
      {place, KG_C(1.0) / p[4]},
      {(t - p[3]) - p[4] * KG_FLOOR(place) - p[5], KG_C(1.0)},
      {p[1] * t, p[1]},
      {KG_SIN(p[6] * t) - p[7], p[6]},
      {p[8] > KG_C(0.0) ? KG_SQRT(t - KG_C(1.0)) * KG_SQRT(t - KG_C(1.0)) * (t - KG_C(1.0)) : t * t, KG_C(0.0)},
      {KG_C(3.0) * KG_SIN(p[6] * t), p[6]},
  };
  out[0] = values[kind][0];
  out[1] = values[kind][1];
}

static int switches(KG_ARGUMENTS) {
  (void)work;
  ++calls;
  for (ptrdiff_t k = 0; k < n_chosen; ++k) {
    evaluate_kind(chosen[k], at->t, p, out + 2 * k);
  }
  return KG_OK;
}

/* The first `most` instants from t to t_limit of the chosen kinds. Returns how many there are, or a negative status;
 * *evaluations: calls of the function. */
int instants(int n, const int *numbers, const kg_real *p, kg_real t, kg_real t_limit, int most, kg_real *out,
             int *evaluations);
int instants(int n, const int *numbers, const kg_real *p, kg_real t, kg_real t_limit, int most, kg_real *out,
             int *evaluations) {
  const kg_real direction = t_limit < t ? KG_C(-1.0) : KG_C(1.0);
  kg_switch_info info[KINDS];
  const kg_function functions[] = {{"switches", 2 * n, 0, 0, switches}};
  kg_real work[7 * KINDS], next;
  kg_switches search;
  kg_model model;
  int count = 0, status;
  memset(&model, 0, sizeof model);
  for (int k = 0; k < n; ++k) {
    chosen[k] = numbers[k];
    info[k] = kinds[numbers[k]];
  }
  n_chosen = n;
  calls = 0;
  model.n_functions = 1;
  model.functions = functions;
  model.n_switches = n;
  model.switches = info;
  if (kg_switches_work(&model) != 7 * (size_t)n) {
    return -100;
  }
  status = kg_switches_open(&search, &model, p, work);
  for (; count < most && status >= 0; ++count) {
    status = kg_switches_next(&search, t, direction, t_limit, &next);
    if (next == t_limit) {
      break;
    }
    if (!((next - t) * direction > KG_C(0.0))) {
      return -101;
    }
    out[count] = t = next;
  }
  *evaluations = calls;
  return status < 0 ? status : count;
}
