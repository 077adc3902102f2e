/* fmu_calls.h - what the functions of FMI 2.0 and 3.0 have in common: messages, arrays of variables, saved states, phases,
 * steps and model exchange.
 *
 * Results are 0: done, 1: done with a warning, 2: discarded, 3: an error, as in both versions of the standard.
 */
#ifndef FMU_CALLS_H
#define FMU_CALLS_H

#include "fmu_memory.h"
#include "fmu_slopes.h"
#include "fmu_steps.h"
#include "kg_residual_units.h"

#include <stdarg.h>
#include <stdio.h>

enum { FMU_DONE, FMU_WARNING, FMU_DISCARDED, FMU_ERROR };

/* Sends a message to the importer and returns `result`. */
static inline int fmu_tell(fmu_instance *instance, int result, const char *format, va_list arguments) {
  char message[600];
  vsnprintf(message, sizeof message, format, arguments);
  for (char *c = message; *c; ++c) {
    *c = *c == '%' ? '/' : *c; /* importers may read the message as a format */
  }
  if (instance->log) {
    const char *category = result == FMU_DISCARDED ? "logStatusDiscard" : "logStatusError";
    instance->log(instance->callbacks, instance->name, result, category, message);
  }
  return result;
}

/* Sends a message to the importer and returns FMU_ERROR. */
static inline int fmu_fail(fmu_instance *instance, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  (void)fmu_tell(instance, FMU_ERROR, format, arguments);
  va_end(arguments);
  return FMU_ERROR;
}

/* The same with another result. */
static inline int fmu_report(fmu_instance *instance, int result, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  (void)fmu_tell(instance, result, format, arguments);
  va_end(arguments);
  return result;
}

static inline int fmu_no_feature(fmu_instance *instance, const char *what) {
  return fmu_fail(instance, "the FMU has no %s", what);
}

/* Whether a call that reads or writes n variables of a type that no variable has is in order. */
static inline int fmu_no_values(fmu_instance *instance, size_t n, const char *type) {
  return n == 0 ? FMU_DONE : fmu_fail(instance, "no variable has the type %s", type);
}

/* The contact or event that an outcome is about, or nothing. */
static inline const char *fmu_culprit(const fmu_data *d) {
#if FMU_EVENTS
  if (d->hybrid.culprit >= 0 && d->hybrid.contacts.model) {
    return d->model->contacts[d->hybrid.culprit].name;
  }
  if (d->hybrid.culprit_event >= 0 && d->hybrid.contacts.model) {
    return d->model->events[d->hybrid.culprit_event].name;
  }
#else
  (void)d;
#endif
  return "";
}

/* The table that an outcome is about, and in *x its argument at the present state; NULL: it is not known. */
static inline const kg_table_info *fmu_table(fmu_data *d, kg_real *x) {
  const kg_point at = kg_host_point(&d->host, d->t, d->y);
  int found;
  if (kg_feedback_inputs(&d->host.feedback, &at) < 0) {
    return NULL;
  }
  found = kg_outside_table(d->model, &at, d->p, d->work, d->jacobian);
  if (found < 0) {
    return NULL;
  }
  *x = d->jacobian[2 * found];
  return d->model->tables + found;
}

/* The result of a call that needs a table beyond its ends; importers of model exchange are to shorten their step. */
static inline int fmu_outside(fmu_instance *instance, const char *what) {
  const char *format = "%s at t = %g: the motion leaves %s, which has values from %.9g to %.9g only; its argument is "
                       "%.9g";
  fmu_data *d = instance->data;
  const int result = d->cosimulation ? FMU_ERROR : FMU_DISCARDED;
  kg_real x = KG_C(0.0);
  const kg_table_info *table = fmu_table(d, &x);
  if (table == NULL) {
    return fmu_report(instance, result, "%s at t = %g: the motion leaves a spline or a Piecewise", what, (double)d->t);
  }
  return fmu_report(instance, result, format, what, (double)d->t, table->label, (double)table->lowest,
                    (double)table->highest, (double)x);
}

/* The result of a call whose status or outcome is this one. */
static inline int fmu_result(fmu_instance *instance, int status, const char *what) {
  fmu_data *d = instance->data;
  const int reason = fmu_reason(d, status);
  const char *culprit;
  if (status >= 0) {
    return FMU_DONE;
  }
  if (reason == KG_OUTSIDE_TABLE) {
    return fmu_outside(instance, what);
  }
  culprit = fmu_culprit(d);
  return fmu_fail(instance, "%s at t = %g: %s%s%s", what, (double)d->t, culprit, *culprit ? ": " : "",
                  kg_status_message(reason));
}

static inline int fmu_access(fmu_instance *instance, int status, unsigned reference, const char *what) {
  if (status == FMU_NO_SUCH_VARIABLE) {
    return fmu_fail(instance, "%s: no variable of this type has the value reference %u", what, reference);
  }
  if (status == FMU_NOT_SETTABLE) {
    return fmu_fail(instance, "%s: the variable with the value reference %u cannot have this value, or not now", what,
                    reference);
  }
  return fmu_result(instance, status, what);
}

static inline int fmu_get_reals(fmu_instance *instance, const unsigned *references, size_t n, kg_real *values) {
  int result = FMU_DONE;
  for (size_t k = 0; k < n && result == FMU_DONE; ++k) {
    result = fmu_access(instance, fmu_get_real(instance->data, references[k], values + k), references[k], "get");
  }
  return result;
}

static inline int fmu_set_reals(fmu_instance *instance, const unsigned *references, size_t n, const kg_real *values) {
  int result = FMU_DONE;
  for (size_t k = 0; k < n && result == FMU_DONE; ++k) {
    result = fmu_access(instance, fmu_set_real(instance->data, references[k], values[k]), references[k], "set");
  }
  return result;
}

static inline int fmu_slopes(fmu_instance *instance, const unsigned *unknown, size_t n_unknown, const unsigned *known,
                             size_t n_known, const kg_real *seed, kg_real *slopes) {
  const int status = fmu_directional(instance->data, unknown, n_unknown, known, n_known, seed, slopes);
  return fmu_access(instance, status, n_unknown ? unknown[0] : 0, "directional derivative");
}

static inline int fmu_return_to_start(fmu_instance *instance) {
  fmu_reset(instance->data, instance->size, instance->data->cosimulation);
  return FMU_DONE;
}

/* -- saved states: `state` is a fmu_saved, which the importer knows as a void pointer -------------------------- */

/* Replaces *state by a new state, or fails for `reason` without one. */
static inline int fmu_give_state(fmu_instance *instance, fmu_saved *saved, const char *reason, void **state) {
  if (saved == NULL) {
    return fmu_fail(instance, "%s", reason);
  }
  free(*state);
  *state = saved;
  return FMU_DONE;
}

static inline int fmu_get_state(fmu_instance *instance, void **state) {
  return fmu_give_state(instance, fmu_save(instance), "no memory for a state", state);
}

static inline int fmu_set_state(fmu_instance *instance, const void *state) {
  return fmu_restore(instance, (const fmu_saved *)state) ? FMU_DONE
                                                         : fmu_fail(instance, "the state was not saved by this FMU");
}

static inline int fmu_free_state(void **state) {
  free(*state);
  *state = NULL;
  return FMU_DONE;
}

static inline int fmu_state_size(const void *state, size_t *size) {
  *size = fmu_saved_size((const fmu_saved *)state);
  return FMU_DONE;
}

static inline int fmu_serialize(fmu_instance *instance, const void *state, void *bytes, size_t size) {
  const size_t needed = fmu_saved_size((const fmu_saved *)state);
  if (size < needed) {
    return fmu_fail(instance, "a state takes %lu bytes, but there is space for %lu", (unsigned long)needed,
                    (unsigned long)size);
  }
  memcpy(bytes, state, needed);
  return FMU_DONE;
}

static inline int fmu_deserialize(fmu_instance *instance, const void *bytes, size_t size, void **state) {
  return fmu_give_state(instance, fmu_load(instance, bytes, size), "these bytes are not a state of this FMU", state);
}

/* -- start, steps, model exchange ------------------------------------------------------------------------------ */

/* Takes over the data of the experiment. */
static inline int fmu_setup(fmu_instance *instance, int has_tolerance, kg_real tolerance, kg_real start, int has_stop,
                            kg_real stop) {
  fmu_data *d = instance->data;
  if (!KG_ISFINITE(start) || (has_stop && !(stop > start)) || (has_tolerance && !(tolerance > KG_C(0.0)))) {
    return fmu_fail(instance, "the experiment has start %g, stop %g, tolerance %g", (double)start, (double)stop,
                    (double)tolerance);
  }
  d->t = start;
  d->t_stop = has_stop && d->cosimulation ? stop : start + FMU_FAR;
  d->ahead = has_stop ? stop - start : FMU_AHEAD;
  if (has_tolerance) {
    d->options[FMU_RTOL] = tolerance;
  }
  fmu_touch(d);
  return FMU_DONE;
}

/* The first constraint that the start violates by more than `allowed` of its unit, its residual being d->jacobian[i]; or
 * the number of constraints. A negative status is written to `status`. */
static inline int fmu_violated(fmu_data *d, const kg_function *residuals, kg_real allowed, int *status) {
  const int m = residuals->rows;
  const kg_point at = kg_host_point(&d->host, d->t, d->y);
  kg_real *units = d->jacobian + m, *beside = units + m;
  *status = kg_residual_units(residuals, d->model->n_q, d->model->n_u, &at, d->p, d->work, d->jacobian, units, d->state,
                              beside);
  for (int i = 0; i < m && *status >= 0; ++i) {
    if (!(KG_ABS(d->jacobian[i]) <= allowed * units[i])) {
      return i;
    }
  }
  return m;
}

static inline int fmu_begin_initialization(fmu_instance *instance) {
  instance->data->phase = FMU_INITIALIZING;
  return FMU_DONE;
}

static inline int fmu_setup_and_begin(fmu_instance *instance, int has_tolerance, kg_real tolerance, kg_real start,
                                      int has_stop, kg_real stop) {
  const int result = fmu_setup(instance, has_tolerance, tolerance, start, has_stop, stop);
  (void)fmu_begin_initialization(instance);
  return result;
}

static inline int fmu_terminate(fmu_instance *instance) {
  instance->data->phase = FMU_TERMINATED;
  return FMU_DONE;
}

/* Ends the start. A start that violates the constraints is an error, as in Python. */
static inline int fmu_initialize(fmu_instance *instance) {
  fmu_data *d = instance->data;
  const kg_function *residuals = kg_find_function(d->model, "residuals");
  int status = fmu_start(d);
  if (status >= 0 && residuals && residuals->rows > 0) {
    const int violated = fmu_violated(d, residuals, KG_C(1e-6), &status);
    if (violated < residuals->rows) {
      return fmu_fail(instance, "the start violates constraint %d (of %d) by %g: set consistent coordinates and speeds",
                      violated + 1, residuals->rows, (double)d->jacobian[violated]);
    }
  }
  if (status >= 0) {
    memcpy(d->y, d->stepper.y, (size_t)d->n * sizeof *d->y); /* after impacts at the start */
    d->phase = d->cosimulation ? FMU_STEPPING : FMU_EVENT;
  }
  return fmu_result(instance, status, "start");
}

static inline int fmu_step(fmu_instance *instance, kg_real from, kg_real size, int *terminated) {
  fmu_data *d = instance->data;
  const kg_real slack = KG_C(1e-9) * KG_ABS(size) + KG_C(64.0) * KG_EPSILON * KG_ABS(from);
  int status;
  *terminated = 0;
  if (d->phase != FMU_STEPPING) {
    return fmu_fail(instance, "a step outside of step mode, or after the end of the simulation");
  }
  if (!(size >= KG_C(0.0)) || !(KG_ABS(from - d->t) <= slack) || !KG_ISFINITE(from + size)) {
    return fmu_fail(instance, "a step of %g s from t = %.17g; the instance is at t = %.17g and only goes forward",
                    (double)size, (double)from, (double)d->t);
  }
  status = fmu_advance(d, from + size);
  *terminated = status == KG_TERMINATED;
  d->phase = status < 0 || *terminated ? FMU_TERMINATED : d->phase;
  return fmu_result(instance, status, "step");
}

/* FMU_DONE if a call of model exchange with arrays of n values is in order; `expected`: their length. */
static inline int fmu_exchange(fmu_instance *instance, size_t n, size_t expected, const char *what) {
  if (instance->data->cosimulation) {
    return fmu_fail(instance, "%s: the instance was made for co-simulation", what);
  }
  if (n != expected) {
    return fmu_fail(instance, "%s: %lu values; expected %lu", what, (unsigned long)n, (unsigned long)expected);
  }
  return FMU_DONE;
}

/* Enters event mode or continuous-time mode. */
static inline int fmu_enter(fmu_instance *instance, int phase) {
  const int result = fmu_exchange(instance, 0, 0, phase == FMU_EVENT ? "event mode" : "continuous-time mode");
  instance->data->phase = result == FMU_DONE ? phase : instance->data->phase;
  return result;
}

static inline int fmu_set_time(fmu_instance *instance, kg_real t) {
  const int result = fmu_exchange(instance, 0, 0, "set time");
  if (result == FMU_DONE) {
    instance->data->t = t;
    fmu_touch(instance->data);
  }
  return result;
}

static inline int fmu_set_states(fmu_instance *instance, const kg_real *y, size_t n) {
  const int result = fmu_exchange(instance, n, (size_t)instance->data->n, "set states");
  if (result == FMU_DONE) {
    memcpy(instance->data->y, y, n * sizeof *y);
    fmu_touch(instance->data);
  }
  return result;
}

static inline int fmu_get_states(fmu_instance *instance, kg_real *y, size_t n) {
  const int result = fmu_exchange(instance, n, (size_t)instance->data->n, "get states");
  if (result == FMU_DONE) {
    memcpy(y, instance->data->y, n * sizeof *y);
  }
  return result;
}

static inline int fmu_get_rates(fmu_instance *instance, kg_real *rates, size_t n) {
  fmu_data *d = instance->data;
  const int result = fmu_exchange(instance, n, (size_t)d->n, "derivatives");
  int status;
  if (result != FMU_DONE) {
    return result;
  }
  status = fmu_refresh(d);
  status = status < 0 ? status : fmu_evaluate_rates(d);
  memcpy(rates, d->rates, n * sizeof *rates);
  return fmu_result(instance, status, "derivatives");
}

static inline int fmu_get_indicators(fmu_instance *instance, kg_real *guards, size_t n) {
  fmu_data *d = instance->data;
  const int result = fmu_exchange(instance, n, (size_t)fmu_guards_count(d->model), "event indicators");
  int status;
  if (result != FMU_DONE) {
    return result;
  }
  status = fmu_refresh(d);
  status = status < 0 ? status : fmu_guards(d, guards);
  return fmu_result(instance, status, "event indicators");
}

/* All states have the nominal value 1. */
static inline int fmu_get_nominals(kg_real *nominals, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    nominals[i] = KG_C(1.0);
  }
  return FMU_DONE;
}

static inline int fmu_complete_step(fmu_instance *instance) {
  const int result = fmu_exchange(instance, 0, 0, "completed step");
  return result != FMU_DONE ? result : fmu_result(instance, fmu_completed(instance->data), "completed step");
}

static inline int fmu_update_states(fmu_instance *instance, fmu_outcome *outcome) {
  const int result = fmu_exchange(instance, 0, 0, "event mode");
  memset(outcome, 0, sizeof *outcome);
  return result != FMU_DONE ? result : fmu_result(instance, fmu_update(instance->data, outcome), "event");
}

/* Why an instance cannot be made, or NULL. */
static inline const char *fmu_refusal(const char *name, const char *token, int cosimulation) {
  if (name == NULL || token == NULL || strcmp(token, fmu.token) != 0) {
    return "the instantiation token (GUID) is not that of this FMU, or the instance has no name";
  }
  return FMU_PROJECTION && !cosimulation ? "the FMU projects its state: it is for co-simulation only" : NULL;
}

#endif
