/* fmu_fmi2.h - the functions of FMI 2.0 for model exchange and co-simulation, on top of fmu_calls.h. */
#ifndef FMU_FMI2_H
#define FMU_FMI2_H

#include "fmi2Functions.h"

/* This copy of the header adds no prefix; the standard has one for FMUs that are linked into a program. */
#ifndef FMI2_OVERRIDE_FUNCTION_PREFIX
#define FMU_PASTE(prefix, name) prefix##name
#define FMU_PREFIXED(prefix, name) FMU_PASTE(prefix, name)
#undef fmi2FullName
#define fmi2FullName(name) FMU_PREFIXED(FMI2_FUNCTION_PREFIX, name)
#endif

#include "fmu_calls.h"

static fmu_instance *fmu_of(fmi2Component component) { return (fmu_instance *)component; }

static fmu_data *fmu_data_of(fmi2Component component) { return fmu_of(component)->data; }

/* -- instances ------------------------------------------------------------------------------------------------ */

static void fmu_log_message(void *own, const char *name, int status, const char *category, const char *text) {
  const fmi2CallbackFunctions *callbacks = (const fmi2CallbackFunctions *)own;
  callbacks->logger(callbacks->componentEnvironment, name, (fmi2Status)status, category, text);
}

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }

const char *fmi2GetVersion(void) { return fmi2Version; }

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *functions, fmi2Boolean visible, fmi2Boolean logging) {
  const char *refusal = fmu_refusal(name, guid, type == fmi2CoSimulation);
  fmi2CallbackFunctions *callbacks;
  fmu_instance *instance;
  (void)resources;
  (void)visible;
  (void)logging; /* messages of errors only, which are always sent */
  if (refusal != NULL) {
    if (functions && functions->logger) {
      functions->logger(functions->componentEnvironment, name ? name : "", fmi2Error, "logStatusError", refusal);
    }
    return NULL;
  }
  callbacks = (fmi2CallbackFunctions *)calloc(1, sizeof *callbacks);
  if (callbacks == NULL) {
    return NULL;
  }
  if (functions != NULL) {
    *callbacks = *functions; /* memory is that of the C library: canNotUseMemoryManagementFunctions */
  }
  instance = fmu_create(name, type == fmi2CoSimulation, callbacks);
  if (instance != NULL) {
    instance->log = callbacks->logger ? fmu_log_message : NULL;
  }
  return instance;
}

void fmi2FreeInstance(fmi2Component c) {
  if (c != NULL) {
    fmu_free(fmu_of(c));
  }
}

/* -- variables ------------------------------------------------------------------------------------------------ */

fmi2Status fmi2GetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Integer values[]) {
  int result = FMU_DONE;
  for (size_t k = 0; k < n && result == FMU_DONE; ++k) {
    long long value = 0;
    result = fmu_access(fmu_of(c), fmu_get_integer(fmu_data_of(c), vr[k], &value), vr[k], "fmi2GetInteger");
    values[k] = (fmi2Integer)value;
  }
  return (fmi2Status)result;
}

fmi2Status fmi2SetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer values[]) {
  int result = FMU_DONE;
  for (size_t k = 0; k < n && result == FMU_DONE; ++k) {
    result = fmu_access(fmu_of(c), fmu_set_integer(fmu_data_of(c), vr[k], values[k]), vr[k], "fmi2SetInteger");
  }
  return (fmi2Status)result;
}

/* -- model exchange ------------------------------------------------------------------------------------------- */

fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo *info) {
  fmu_outcome outcome;
  const int result = fmu_update_states(fmu_of(c), &outcome);
  info->newDiscreteStatesNeeded = fmi2False;
  info->terminateSimulation = outcome.terminated;
  info->nominalsOfContinuousStatesChanged = fmi2False;
  info->valuesOfContinuousStatesChanged = outcome.jumped;
  info->nextEventTimeDefined = outcome.timed;
  info->nextEventTime = outcome.next;
  return (fmi2Status)result;
}

/* -- co-simulation -------------------------------------------------------------------------------------------- */

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real point, fmi2Real size, fmi2Boolean no_return) {
  int terminated;
  const int result = fmu_step(fmu_of(c), point, size, &terminated);
  (void)no_return;
  return terminated ? fmi2Discard : (fmi2Status)result;
}

#include "fmu_entries.h"

#endif
