/* fmu_values.h - reads and writes variables of an instance by their value references. */
#ifndef FMU_VALUES_H
#define FMU_VALUES_H

#include "fmu_events.h"

/* A value reference that does not exist, or a variable that has another type or cannot be set now. */
#define FMU_NO_SUCH_VARIABLE (-1000)
#define FMU_NOT_SETTABLE (-1001)

static inline const fmu_variable *fmu_find(unsigned reference) {
  return reference < (unsigned)fmu.n_variables ? fmu.variables + reference : NULL;
}

static inline int fmu_is_integer(const fmu_variable *v) {
  return v->kind == FMU_METHOD || v->kind == FMU_MODE || v->kind == FMU_COUNT;
}

/* Values that follow from others. */
static inline int fmu_get_computed(fmu_data *d, const fmu_variable *v, kg_real *value) {
  int status = fmu_refresh(d);
  switch (v->kind) {
    case FMU_RATE:
      status = status < 0 ? status : fmu_evaluate_rates(d);
      *value = d->rates[v->index];
      return status;
    case FMU_FORCE:
      status = status < 0 ? status : fmu_evaluate_rates(d);
      *value = d->forces[v->index];
      return status;
    case FMU_LAW:
      fmu_prepare(d);
      status = status < 0 ? status : kg_host_inputs(&d->host, fmu_time(d), d->y);
      *value = d->r[v->index];
      return status;
    case FMU_GUARD:
      status = status < 0 ? status : fmu_guards(d, d->guards);
      *value = d->guards[v->index];
      return status;
    default:
      status = status < 0 ? status : fmu_evaluate_function(d, v->function);
      *value = d->values[v->index];
      return status;
  }
}

/* Returns a status of the model, or FMU_NO_SUCH_VARIABLE. */
static inline int fmu_get_real(fmu_data *d, unsigned reference, kg_real *value) {
  const fmu_variable *v = fmu_find(reference);
  if (v == NULL || fmu_is_integer(v)) {
    return FMU_NO_SUCH_VARIABLE;
  }
  switch (v->kind) {
    case FMU_TIME:
      *value = d->t;
      return KG_OK;
    case FMU_STATE:
      *value = d->y[v->index];
      return KG_OK;
    case FMU_INPUT:
      *value = d->r[v->index];
      return KG_OK;
    case FMU_PARAMETER:
      *value = d->p[v->index];
      return KG_OK;
    case FMU_OPTION:
      *value = d->options[v->index];
      return KG_OK;
    default:
      return fmu_get_computed(d, v, value);
  }
}

static inline int fmu_get_integer(fmu_data *d, unsigned reference, long long *value) {
  const fmu_variable *v = fmu_find(reference);
  int status;
  if (v == NULL || !fmu_is_integer(v)) {
    return FMU_NO_SUCH_VARIABLE;
  }
  if (v->kind == FMU_METHOD) {
    *value = d->method + 1;
    return KG_OK;
  }
  status = fmu_refresh(d);
#if FMU_EVENTS
  *value = v->kind == FMU_COUNT ? d->counts[v->index] : d->hybrid.contacts.mode[v->index] + 1;
#endif
  return status;
}

/* Where a settable real variable is kept, or NULL if it cannot be set in this phase. */
static inline kg_real *fmu_settable(fmu_data *d, const fmu_variable *v) {
  const int starts = d->phase == FMU_CREATED || d->phase == FMU_INITIALIZING;
  switch (v->kind) {
    case FMU_INPUT:
      return d->r + v->index;
    case FMU_PARAMETER:
      return d->p + v->index;
    case FMU_STATE:
      return starts ? d->y + v->index : NULL;
    case FMU_OPTION:
      return starts ? d->options + v->index : NULL;
    default:
      return NULL;
  }
}

static inline int fmu_set_real(fmu_data *d, unsigned reference, kg_real value) {
  const fmu_variable *v = fmu_find(reference);
  kg_real *place;
  if (v == NULL || fmu_is_integer(v)) {
    return FMU_NO_SUCH_VARIABLE;
  }
  place = fmu_settable(d, v);
  if (place == NULL) {
    return FMU_NOT_SETTABLE;
  }
  if (memcmp(place, &value, sizeof value) != 0) {
    *place = value;
    d->changed = 1;
    d->unprepared = d->unprepared || v->kind == FMU_PARAMETER;
    d->unsettled = d->phase == FMU_CREATED || d->phase == FMU_INITIALIZING;
    fmu_touch(d);
  }
  return KG_OK;
}

static inline int fmu_set_integer(fmu_data *d, unsigned reference, long long value) {
  const fmu_variable *v = fmu_find(reference);
  if (v == NULL || !fmu_is_integer(v)) {
    return FMU_NO_SUCH_VARIABLE;
  }
  if (v->kind != FMU_METHOD || d->phase > FMU_INITIALIZING || value < 1 || value > fmu.n_methods) {
    return FMU_NOT_SETTABLE;
  }
  d->method = (int)value - 1;
  return KG_OK;
}

#endif
