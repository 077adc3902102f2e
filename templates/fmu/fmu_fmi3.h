/* fmu_fmi3.h - the functions of FMI 3.0 for model exchange and co-simulation, on top of fmu_calls.h.
 *
 * Functions for what the FMU does not have (clocks, scheduled execution, other types) are in fmu_fmi3_unused.h.
 */
#ifndef FMU_FMI3_H
#define FMU_FMI3_H

#include "fmi3Functions.h"

#include "fmu_calls.h"

/* The importer's callback and its environment. */
typedef struct {
  fmi3LogMessageCallback log;
  fmi3InstanceEnvironment environment;
} fmu_callbacks;

static fmu_instance *fmu_of(fmi3Instance instance) { return (fmu_instance *)instance; }

static fmu_data *fmu_data_of(fmi3Instance instance) { return fmu_of(instance)->data; }

/* -- instances ------------------------------------------------------------------------------------------------ */

static void fmu_log_message(void *own, const char *name, int status, const char *category, const char *text) {
  const fmu_callbacks *callbacks = (const fmu_callbacks *)own;
  (void)name;
  callbacks->log(callbacks->environment, (fmi3Status)status, category, text);
}

static fmi3Instance fmu_instantiate(fmi3String name, fmi3String token, int cosimulation,
                                    fmi3InstanceEnvironment environment, fmi3LogMessageCallback log) {
  const char *refusal = fmu_refusal(name, token, cosimulation);
  fmu_instance *instance;
  fmu_callbacks *callbacks;
  if (refusal != NULL) {
    if (log != NULL) {
      log(environment, fmi3Error, "logStatusError", refusal);
    }
    return NULL;
  }
  callbacks = (fmu_callbacks *)calloc(1, sizeof *callbacks);
  if (callbacks == NULL) {
    return NULL;
  }
  callbacks->log = log;
  callbacks->environment = environment;
  instance = fmu_create(name, cosimulation, callbacks);
  if (instance != NULL) {
    instance->log = log == NULL ? NULL : fmu_log_message;
  }
  return instance;
}

const char *fmi3GetVersion(void) { return fmi3Version; }

fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                          fmi3Boolean logging, fmi3InstanceEnvironment environment,
                                          fmi3LogMessageCallback log) {
  (void)resources;
  (void)visible;
  (void)logging; /* messages of errors only, which are always sent */
  return fmu_instantiate(name, token, 0, environment, log);
}

fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                         fmi3Boolean logging, fmi3Boolean event_mode, fmi3Boolean early_return,
                                         const fmi3ValueReference required[], size_t n_required,
                                         fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
                                         fmi3IntermediateUpdateCallback update) {
  (void)resources;
  (void)visible;
  (void)logging; /* messages of errors only, which are always sent */
  (void)early_return;
  (void)required;
  (void)n_required;
  (void)update;
  if (event_mode) {
    if (log != NULL) {
      log(environment, fmi3Error, "logStatusError", "the FMU has no event mode: it locates events within its steps");
    }
    return NULL;
  }
  return fmu_instantiate(name, token, 1, environment, log);
}

void fmi3FreeInstance(fmi3Instance instance) {
  if (instance != NULL) {
    fmu_free(fmu_of(instance));
  }
}

fmi3Status fmi3SetDebugLogging(fmi3Instance instance, fmi3Boolean logging, size_t n, const fmi3String categories[]) {
  (void)instance;
  (void)logging;
  (void)n;
  (void)categories;
  return fmi3OK;
}

/* -- start and end -------------------------------------------------------------------------------------------- */

fmi3Status fmi3EnterInitializationMode(fmi3Instance instance, fmi3Boolean has_tolerance, fmi3Float64 tolerance,
                                       fmi3Float64 start, fmi3Boolean has_stop, fmi3Float64 stop) {
  const int result = fmu_setup(fmu_of(instance), has_tolerance, tolerance, start, has_stop, stop);
  fmu_data_of(instance)->phase = FMU_INITIALIZING;
  return (fmi3Status)result;
}

fmi3Status fmi3ExitInitializationMode(fmi3Instance instance) { return (fmi3Status)fmu_initialize(fmu_of(instance)); }

fmi3Status fmi3EnterEventMode(fmi3Instance instance) {
  return (fmi3Status)fmu_enter(fmu_of(instance), FMU_EVENT);
}

fmi3Status fmi3Terminate(fmi3Instance instance) {
  fmu_data_of(instance)->phase = FMU_TERMINATED;
  return fmi3OK;
}

fmi3Status fmi3Reset(fmi3Instance instance) {
  return (fmi3Status)fmu_return_to_start(fmu_of(instance));
}

/* -- variables ------------------------------------------------------------------------------------------------ */

fmi3Status fmi3GetFloat64(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, fmi3Float64 values[],
                          size_t n_values) {
  (void)n_values; /* all variables are scalars */
  return (fmi3Status)fmu_get_reals(fmu_of(instance), vr, n, values);
}

fmi3Status fmi3SetFloat64(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, const fmi3Float64 values[],
                          size_t n_values) {
  (void)n_values;
  return (fmi3Status)fmu_set_reals(fmu_of(instance), vr, n, values);
}

static int fmu_is_enumeration(unsigned reference) {
  const fmu_variable *v = fmu_find(reference);
  return v != NULL && v->kind != FMU_COUNT;
}

/* Enumerations have the type Int64, counts the type Int32. */
static int fmu_get_counted(fmi3Instance instance, unsigned reference, int enumeration, long long *value) {
  const int status = fmu_is_enumeration(reference) == enumeration
                         ? fmu_get_integer(fmu_data_of(instance), reference, value)
                         : FMU_NO_SUCH_VARIABLE;
  return fmu_access(fmu_of(instance), status, reference, "get");
}

fmi3Status fmi3GetInt32(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, fmi3Int32 values[],
                        size_t n_values) {
  int result = FMU_DONE;
  (void)n_values;
  for (size_t k = 0; k < n && result == FMU_DONE; ++k) {
    long long value = 0;
    result = fmu_get_counted(instance, vr[k], 0, &value);
    values[k] = (fmi3Int32)value;
  }
  return (fmi3Status)result;
}

fmi3Status fmi3GetInt64(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, fmi3Int64 values[],
                        size_t n_values) {
  int result = FMU_DONE;
  (void)n_values;
  for (size_t k = 0; k < n && result == FMU_DONE; ++k) {
    long long value = 0;
    result = fmu_get_counted(instance, vr[k], 1, &value);
    values[k] = (fmi3Int64)value;
  }
  return (fmi3Status)result;
}

fmi3Status fmi3SetInt64(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, const fmi3Int64 values[],
                        size_t n_values) {
  int result = FMU_DONE;
  (void)n_values;
  for (size_t k = 0; k < n && result == FMU_DONE; ++k) {
    result = fmu_access(fmu_of(instance), fmu_set_integer(fmu_data_of(instance), vr[k], values[k]), vr[k], "set");
  }
  return (fmi3Status)result;
}

/* -- saved states --------------------------------------------------------------------------------------------- */

fmi3Status fmi3GetFMUState(fmi3Instance instance, fmi3FMUState *state) {
  return (fmi3Status)fmu_get_state(fmu_of(instance), state);
}

fmi3Status fmi3SetFMUState(fmi3Instance instance, fmi3FMUState state) {
  return (fmi3Status)fmu_set_state(fmu_of(instance), state);
}

fmi3Status fmi3FreeFMUState(fmi3Instance instance, fmi3FMUState *state) {
  (void)instance;
  return (fmi3Status)fmu_free_state(state);
}

fmi3Status fmi3SerializedFMUStateSize(fmi3Instance instance, fmi3FMUState state, size_t *size) {
  (void)instance;
  return (fmi3Status)fmu_state_size(state, size);
}

fmi3Status fmi3SerializeFMUState(fmi3Instance instance, fmi3FMUState state, fmi3Byte bytes[], size_t size) {
  return (fmi3Status)fmu_serialize(fmu_of(instance), state, bytes, size);
}

fmi3Status fmi3DeserializeFMUState(fmi3Instance instance, const fmi3Byte bytes[], size_t size, fmi3FMUState *state) {
  return (fmi3Status)fmu_deserialize(fmu_of(instance), bytes, size, state);
}

fmi3Status fmi3GetDirectionalDerivative(fmi3Instance instance, const fmi3ValueReference unknowns[], size_t n_unknowns,
                                        const fmi3ValueReference knowns[], size_t n_knowns, const fmi3Float64 seed[],
                                        size_t n_seed, fmi3Float64 sensitivity[], size_t n_sensitivity) {
  (void)n_seed;
  (void)n_sensitivity;
  return (fmi3Status)fmu_slopes(fmu_of(instance), unknowns, n_unknowns, knowns, n_knowns, seed, sensitivity);
}

/* -- model exchange ------------------------------------------------------------------------------------------- */

fmi3Status fmi3UpdateDiscreteStates(fmi3Instance instance, fmi3Boolean *again, fmi3Boolean *terminate,
                                    fmi3Boolean *nominals_changed, fmi3Boolean *values_changed, fmi3Boolean *timed,
                                    fmi3Float64 *next) {
  fmu_outcome outcome;
  const int result = fmu_update_states(fmu_of(instance), &outcome);
  *again = fmi3False;
  *terminate = outcome.terminated != 0;
  *nominals_changed = fmi3False;
  *values_changed = outcome.jumped != 0;
  *timed = outcome.timed != 0;
  *next = outcome.next;
  return (fmi3Status)result;
}

fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance instance) {
  return (fmi3Status)fmu_enter(fmu_of(instance), FMU_CONTINUOUS);
}

fmi3Status fmi3CompletedIntegratorStep(fmi3Instance instance, fmi3Boolean no_return, fmi3Boolean *enter_event_mode,
                                       fmi3Boolean *terminate) {
  (void)no_return;
  *enter_event_mode = fmi3False;
  *terminate = fmi3False;
  return (fmi3Status)fmu_complete_step(fmu_of(instance));
}

fmi3Status fmi3SetTime(fmi3Instance instance, fmi3Float64 time) {
  return (fmi3Status)fmu_set_time(fmu_of(instance), time);
}

fmi3Status fmi3SetContinuousStates(fmi3Instance instance, const fmi3Float64 x[], size_t n) {
  return (fmi3Status)fmu_set_states(fmu_of(instance), x, n);
}

fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance instance, fmi3Float64 derivatives[], size_t n) {
  return (fmi3Status)fmu_get_rates(fmu_of(instance), derivatives, n);
}

fmi3Status fmi3GetEventIndicators(fmi3Instance instance, fmi3Float64 indicators[], size_t n) {
  return (fmi3Status)fmu_get_indicators(fmu_of(instance), indicators, n);
}

fmi3Status fmi3GetContinuousStates(fmi3Instance instance, fmi3Float64 x[], size_t n) {
  return (fmi3Status)fmu_get_states(fmu_of(instance), x, n);
}

fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance instance, fmi3Float64 nominals[], size_t n) {
  (void)instance;
  return (fmi3Status)fmu_get_nominals(nominals, n);
}

fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance instance, size_t *n) {
  *n = (size_t)fmu_guards_count(fmu_data_of(instance)->model);
  return fmi3OK;
}

fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance instance, size_t *n) {
  *n = (size_t)fmu_data_of(instance)->n;
  return fmi3OK;
}

/* -- co-simulation -------------------------------------------------------------------------------------------- */

fmi3Status fmi3DoStep(fmi3Instance instance, fmi3Float64 point, fmi3Float64 size, fmi3Boolean no_return,
                      fmi3Boolean *event, fmi3Boolean *terminate, fmi3Boolean *early, fmi3Float64 *last) {
  int terminated;
  const int result = fmu_step(fmu_of(instance), point, size, &terminated);
  (void)no_return;
  *event = fmi3False;
  *terminate = terminated != 0;
  *early = fmi3False;
  *last = result == FMU_DONE && !terminated ? point + size : fmu_data_of(instance)->t;
  return (fmi3Status)result;
}

#include "fmu_fmi3_unused.h"

#endif
