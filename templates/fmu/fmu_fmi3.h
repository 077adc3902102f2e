/* fmu_fmi3.h - the functions of FMI 3.0 for model exchange and co-simulation, on top of fmu_calls.h. */
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

fmi3Instance fmi3InstantiateScheduledExecution(fmi3String name, fmi3String token, fmi3String resources,
                                               fmi3Boolean visible, fmi3Boolean logging,
                                               fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
                                               fmi3ClockUpdateCallback update, fmi3LockPreemptionCallback lock,
                                               fmi3UnlockPreemptionCallback unlock) {
  (void)name;
  (void)token;
  (void)resources;
  (void)visible;
  (void)logging;
  (void)update;
  (void)lock;
  (void)unlock;
  if (log != NULL) {
    log(environment, fmi3Error, "logStatusError", "the FMU has no scheduled execution: use co-simulation");
  }
  return NULL;
}

void fmi3FreeInstance(fmi3Instance instance) {
  if (instance != NULL) {
    fmu_free(fmu_of(instance));
  }
}

/* -- variables ------------------------------------------------------------------------------------------------ */

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

#include "fmu_entries.h"

#endif
