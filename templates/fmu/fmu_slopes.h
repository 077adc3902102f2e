/* fmu_slopes.h - directional derivatives: of y' and of values along a direction of state, inputs and parameters.
 *
 * They come from the compiled Jacobians where these say everything: y' of states, inputs and parameters, and outputs of
 * states and inputs. With closed contacts, and for other values, they are central differences along the direction.
 */
#ifndef FMU_SLOPES_H
#define FMU_SLOPES_H

#include "fmu_values.h"
#include "kg_vectors.h"

/* What derivatives are needed of: y', outputs (their Jacobians are compiled), other values. */
enum { FMU_NEEDS_RATES = 1, FMU_NEEDS_OUTPUTS = 2, FMU_NEEDS_VALUES = 4 };

/* The direction, and the derivatives along it. */
typedef struct {
  kg_real *y, *r, *p;          /* direction: n, n_r, n_p */
  kg_real *rates, *values;     /* derivatives: n, n_values */
  kg_real *y0, *r0, *p0, *rates_after, *values_after; /* for differences */
  kg_real *laws;               /* n_r: change of the inputs */
} fmu_slope;

static inline fmu_slope fmu_slope_of(fmu_data *d) {
  const int n_r = d->model->n_r, n_p = d->model->n_p;
  fmu_slope s;
  memset(d->slopes, 0, fmu_slopes_length(d) * sizeof *d->slopes);
  s.y = d->slopes;
  s.r = s.y + d->n;
  s.p = s.r + n_r;
  s.rates = s.p + n_p;
  s.values = s.rates + d->n;
  s.y0 = s.values + fmu.n_values;
  s.r0 = s.y0 + d->n;
  s.p0 = s.r0 + n_r;
  s.rates_after = s.p0 + n_p;
  s.values_after = s.rates_after + d->n;
  s.laws = s.values_after + fmu.n_values;
  return s;
}

static inline int fmu_is_zero(int n, const kg_real *x) {
  for (int i = 0; i < n; ++i) {
    if (x[i] < KG_C(0.0) || x[i] > KG_C(0.0)) {
      return 0;
    }
  }
  return 1;
}

/* out += (compiled matrix `prefix argument`) direction. Returns KG_INVALID_ARGUMENT if it was not compiled. */
static inline int fmu_add_product(fmu_data *d, const char *prefix, const char *argument, int n, const kg_real *direction,
                                  kg_real *out) {
  char name[32];
  const kg_point at = kg_host_point(&d->host, fmu_time(d), d->y);
  const kg_function *f;
  int status;
  if (fmu_is_zero(n, direction)) {
    return KG_OK;
  }
  memcpy(name, prefix, strlen(prefix) + 1);
  memcpy(name + strlen(prefix), argument, strlen(argument) + 1);
  f = kg_find_function(d->model, name);
  if (f == NULL) {
    return KG_INVALID_ARGUMENT;
  }
  status = f->evaluate(&at, d->p, d->work, d->jacobian);
  for (int i = 0; i < f->rows && status >= 0; ++i) {
    out[i] += kg_dot(n, d->jacobian + i * (ptrdiff_t)n, direction);
  }
  return status;
}

/* out += derivative of a group of compiled functions along the direction of q, u, s and r. */
static inline int fmu_add_slopes(fmu_data *d, const fmu_slope *s, const char *prefix, const kg_real *r, kg_real *out) {
  const kg_model *m = d->model;
  int status = fmu_add_product(d, prefix, "q", m->n_q, s->y, out);
  status = status < 0 ? status : fmu_add_product(d, prefix, "u", m->n_u, s->y + m->n_q, out);
  status = status < 0 ? status : fmu_add_product(d, prefix, "s", m->n_s, s->y + m->n_q + m->n_u, out);
  return status < 0 ? status : fmu_add_product(d, prefix, "r", m->n_r, r, out);
}

/* The change of the inputs: their own direction, and that of the continuous laws, which come first. */
static inline int fmu_slope_inputs(fmu_data *d, const fmu_slope *s) {
  const kg_law *law = fmu.laws;
  kg_real *change = d->host.feedback.values;
  int status;
  memcpy(s->laws, s->r, (size_t)d->model->n_r * sizeof *s->r);
  if (fmu.n_laws == 0 || law->clock >= 0) {
    return KG_OK;
  }
  memset(change, 0, (size_t)fmu.width * sizeof *change);
  status = fmu_is_zero(d->model->n_p, s->p) ? fmu_add_slopes(d, s, "laws_", s->r, change) : KG_INVALID_ARGUMENT;
  for (int k = 0; k < law->n; ++k) {
    s->laws[law->slots[k]] = change[law->places[k]];
  }
  return status;
}

/* Whether the contact forces act, whose derivatives are not compiled. */
static inline int fmu_has_contact_forces(const fmu_data *d) {
#if FMU_EVENTS
  return kg_hybrid_acts(&d->hybrid, KG_CLOSED);
#else
  (void)d;
  return 0;
#endif
}

/* Derivatives from the compiled Jacobians: of y' into s->rates, and of the outputs, in the order of the function
 * outputs_q, into s->values. KG_INVALID_ARGUMENT if the Jacobians do not give all that is needed. */
static inline int fmu_exact(fmu_data *d, const fmu_slope *s, int needs) {
  const int along_parameters = !fmu_is_zero(d->model->n_p, s->p);
  const kg_point at = kg_host_point(&d->host, fmu_time(d), d->y);
  int status;
  if ((needs & FMU_NEEDS_VALUES) || (needs & FMU_NEEDS_OUTPUTS && along_parameters) || fmu_has_contact_forces(d)) {
    return KG_INVALID_ARGUMENT;
  }
  status = kg_feedback_inputs(&d->host.feedback, &at);
  status = status < 0 ? status : fmu_slope_inputs(d, s);
  if (status >= 0 && (needs & FMU_NEEDS_RATES)) {
    status = fmu_add_slopes(d, s, "jacobian_", s->laws, s->rates);
    status = status < 0 ? status : fmu_add_product(d, "jacobian_", "p", d->model->n_p, s->p, s->rates);
  }
  if (status >= 0 && (needs & FMU_NEEDS_OUTPUTS)) {
    status = fmu_add_slopes(d, s, "outputs_", s->laws, s->values);
  }
  return status;
}

/* Moves the instance by `step` times the direction from y0, r0, p0 and evaluates y' and all values there. */
static inline int fmu_evaluate_at(fmu_data *d, const fmu_slope *s, kg_real step, kg_real *rates, kg_real *values) {
  const kg_model *m = d->model;
  int status;
  for (int i = 0; i < d->n; ++i) {
    d->y[i] = s->y0[i] + step * s->y[i];
  }
  for (int i = 0; i < m->n_r; ++i) {
    d->r[i] = s->r0[i] + step * s->r[i];
  }
  for (int i = 0; i < m->n_p; ++i) {
    d->p[i] = s->p0[i] + step * s->p[i];
  }
  m->prepare(d->p);
  fmu_touch(d);
  status = fmu_evaluate_rates(d);
  for (int i = 0; i < fmu.n_functions && status >= 0; ++i) {
    status = fmu_evaluate_function(d, i);
  }
  memcpy(rates, d->rates, (size_t)d->n * sizeof *rates);
  memcpy(values, d->values, (size_t)fmu.n_values * sizeof *values);
  return status;
}

/* Central differences of y' and of all values; the state of the instance is restored. */
static inline int fmu_differences(fmu_data *d, const fmu_slope *s) {
  const kg_model *m = d->model;
  const kg_real size = KG_MAX(kg_largest(d->n, s->y), KG_MAX(kg_largest(m->n_r, s->r), kg_largest(m->n_p, s->p)));
  const kg_real step = size > KG_C(0.0) ? KG_C(1e-5) / size : KG_C(1.0);
  int status, other;
  memcpy(s->y0, d->y, (size_t)d->n * sizeof *d->y);
  memcpy(s->r0, d->r, (size_t)m->n_r * sizeof *d->r);
  memcpy(s->p0, d->p, (size_t)m->n_p * sizeof *d->p);
  status = fmu_evaluate_at(d, s, step, s->rates_after, s->values_after);
  other = fmu_evaluate_at(d, s, -step, s->rates, s->values);
  for (int i = 0; i < d->n; ++i) {
    s->rates[i] = (s->rates_after[i] - s->rates[i]) / (KG_C(2.0) * step);
  }
  for (int i = 0; i < fmu.n_values; ++i) {
    s->values[i] = (s->values_after[i] - s->values[i]) / (KG_C(2.0) * step);
  }
  memcpy(d->y, s->y0, (size_t)d->n * sizeof *d->y);
  memcpy(d->r, s->r0, (size_t)m->n_r * sizeof *d->r);
  memcpy(d->p, s->p0, (size_t)m->n_p * sizeof *d->p);
  m->prepare(d->p);
  fmu_touch(d);
  return status < 0 ? status : other < 0 ? other : KG_OK;
}

/* The direction from the known variables. */
static inline int fmu_set_direction(const fmu_slope *s, const unsigned *known, size_t n, const kg_real *seed) {
  for (size_t k = 0; k < n; ++k) {
    const fmu_variable *v = fmu_find(known[k]);
    kg_real *part = v == NULL ? NULL : v->kind == FMU_STATE ? s->y : v->kind == FMU_INPUT ? s->r
                    : v->kind == FMU_PARAMETER ? s->p : NULL;
    if (part == NULL) {
      return FMU_NO_SUCH_VARIABLE;
    }
    part[v->index] += seed[k];
  }
  return KG_OK;
}

/* Which derivatives the unknown variables need (FMU_NEEDS_...), or FMU_NO_SUCH_VARIABLE. */
static inline int fmu_needs(const unsigned *unknown, size_t n) {
  int needs = 0;
  for (size_t k = 0; k < n; ++k) {
    const fmu_variable *v = fmu_find(unknown[k]);
    if (v == NULL || (v->kind != FMU_RATE && v->kind != FMU_VALUE && v->kind != FMU_STATE)) {
      return FMU_NO_SUCH_VARIABLE;
    }
    if (v->kind != FMU_STATE) {
      needs |= v->kind == FMU_RATE ? FMU_NEEDS_RATES : v->row >= 0 ? FMU_NEEDS_OUTPUTS : FMU_NEEDS_VALUES;
    }
  }
  return needs;
}

/* Derivatives of the unknown variables along the direction `seed` of the known ones. */
static inline int fmu_directional(fmu_data *d, const unsigned *unknown, size_t n_unknown, const unsigned *known,
                                  size_t n_known, const kg_real *seed, kg_real *slopes) {
  const fmu_slope s = fmu_slope_of(d);
  const int needs = fmu_needs(unknown, n_unknown);
  int is_exact, status = fmu_set_direction(&s, known, n_known, seed);
  status = status < 0 ? status : needs < 0 ? needs : fmu_refresh(d);
  if (status < 0) {
    return status;
  }
  fmu_prepare(d);
  status = fmu_exact(d, &s, needs);
  is_exact = status != KG_INVALID_ARGUMENT;
  if (!is_exact) {
    status = fmu_differences(d, &s);
  }
  for (size_t k = 0; k < n_unknown; ++k) {
    const fmu_variable *v = fmu_find(unknown[k]);
    slopes[k] = v->kind == FMU_STATE  ? s.y[v->index]
                : v->kind == FMU_RATE ? s.rates[v->index]
                                      : s.values[is_exact ? v->row : v->index];
  }
  return status;
}

#endif
