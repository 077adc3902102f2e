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

fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean logging, size_t n, const fmi2String categories[]) {
  (void)c;
  (void)logging;
  (void)n;
  (void)categories;
  return fmi2OK;
}

/* -- start and end -------------------------------------------------------------------------------------------- */

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean has_tolerance, fmi2Real tolerance, fmi2Real start,
                               fmi2Boolean has_stop, fmi2Real stop) {
  return (fmi2Status)fmu_setup(fmu_of(c), has_tolerance, tolerance, start, has_stop, stop);
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c) {
  fmu_data_of(c)->phase = FMU_INITIALIZING;
  return fmi2OK;
}

fmi2Status fmi2ExitInitializationMode(fmi2Component c) { return (fmi2Status)fmu_initialize(fmu_of(c)); }

fmi2Status fmi2Terminate(fmi2Component c) {
  fmu_data_of(c)->phase = FMU_TERMINATED;
  return fmi2OK;
}

fmi2Status fmi2Reset(fmi2Component c) {
  return (fmi2Status)fmu_return_to_start(fmu_of(c));
}

/* -- variables ------------------------------------------------------------------------------------------------ */

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real values[]) {
  return (fmi2Status)fmu_get_reals(fmu_of(c), vr, n, values);
}

fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real values[]) {
  return (fmi2Status)fmu_set_reals(fmu_of(c), vr, n, values);
}

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

/* Whether a call that reads or writes n variables of a type that no variable has is in order. */
static fmi2Status fmu_no_values(fmi2Component c, size_t n, const char *type) {
  return n == 0 ? fmi2OK : (fmi2Status)fmu_fail(fmu_of(c), "no variable has the type %s", type);
}

fmi2Status fmi2GetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Boolean values[]) {
  (void)vr;
  (void)values;
  return fmu_no_values(c, n, "Boolean");
}

fmi2Status fmi2SetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Boolean values[]) {
  (void)vr;
  (void)values;
  return fmu_no_values(c, n, "Boolean");
}

fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2String values[]) {
  (void)vr;
  (void)values;
  return fmu_no_values(c, n, "String");
}

fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2String values[]) {
  (void)vr;
  (void)values;
  return fmu_no_values(c, n, "String");
}

/* -- saved states --------------------------------------------------------------------------------------------- */

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *state) {
  return (fmi2Status)fmu_get_state(fmu_of(c), state);
}

fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate state) {
  return (fmi2Status)fmu_set_state(fmu_of(c), state);
}

fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *state) {
  (void)c;
  return (fmi2Status)fmu_free_state(state);
}

fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate state, size_t *size) {
  (void)c;
  return (fmi2Status)fmu_state_size(state, size);
}

fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t size) {
  return (fmi2Status)fmu_serialize(fmu_of(c), state, bytes, size);
}

fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state) {
  return (fmi2Status)fmu_deserialize(fmu_of(c), bytes, size, state);
}

fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference unknowns[], size_t n_unknowns,
                                        const fmi2ValueReference knowns[], size_t n_knowns, const fmi2Real seed[],
                                        fmi2Real sensitivity[]) {
  return (fmi2Status)fmu_slopes(fmu_of(c), unknowns, n_unknowns, knowns, n_knowns, seed, sensitivity);
}

/* -- model exchange ------------------------------------------------------------------------------------------- */

fmi2Status fmi2EnterEventMode(fmi2Component c) {
  return (fmi2Status)fmu_enter(fmu_of(c), FMU_EVENT);
}

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

fmi2Status fmi2EnterContinuousTimeMode(fmi2Component c) {
  return (fmi2Status)fmu_enter(fmu_of(c), FMU_CONTINUOUS);
}

fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean no_return, fmi2Boolean *enter_event_mode,
                                       fmi2Boolean *terminate) {
  (void)no_return;
  *enter_event_mode = fmi2False;
  *terminate = fmi2False;
  return (fmi2Status)fmu_complete_step(fmu_of(c));
}

fmi2Status fmi2SetTime(fmi2Component c, fmi2Real time) {
  return (fmi2Status)fmu_set_time(fmu_of(c), time);
}

fmi2Status fmi2SetContinuousStates(fmi2Component c, const fmi2Real x[], size_t n) {
  return (fmi2Status)fmu_set_states(fmu_of(c), x, n);
}

fmi2Status fmi2GetDerivatives(fmi2Component c, fmi2Real derivatives[], size_t n) {
  return (fmi2Status)fmu_get_rates(fmu_of(c), derivatives, n);
}

fmi2Status fmi2GetEventIndicators(fmi2Component c, fmi2Real indicators[], size_t n) {
  return (fmi2Status)fmu_get_indicators(fmu_of(c), indicators, n);
}

fmi2Status fmi2GetContinuousStates(fmi2Component c, fmi2Real x[], size_t n) {
  return (fmi2Status)fmu_get_states(fmu_of(c), x, n);
}

fmi2Status fmi2GetNominalsOfContinuousStates(fmi2Component c, fmi2Real nominals[], size_t n) {
  (void)c;
  return (fmi2Status)fmu_get_nominals(nominals, n);
}

/* -- co-simulation -------------------------------------------------------------------------------------------- */

fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                                       const fmi2Integer orders[], const fmi2Real values[]) {
  (void)vr;
  (void)orders;
  (void)values;
  return n == 0 ? fmi2OK : (fmi2Status)fmu_fail(fmu_of(c), "inputs are constant in a step: no derivatives");
}

fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                                        const fmi2Integer orders[], fmi2Real values[]) {
  (void)vr;
  (void)orders;
  (void)values;
  return n == 0 ? fmi2OK : (fmi2Status)fmu_fail(fmu_of(c), "derivatives of outputs are not available");
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real point, fmi2Real size, fmi2Boolean no_return) {
  int terminated;
  const int result = fmu_step(fmu_of(c), point, size, &terminated);
  (void)no_return;
  return terminated ? fmi2Discard : (fmi2Status)result;
}

fmi2Status fmi2CancelStep(fmi2Component c) {
  return (fmi2Status)fmu_fail(fmu_of(c), "steps are not asynchronous and cannot be canceled");
}

fmi2Status fmi2GetStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Status *value) {
  (void)kind;
  *value = fmi2OK;
  return (fmi2Status)fmu_fail(fmu_of(c), "steps are not asynchronous: no status is pending");
}

fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value) {
  *value = fmu_data_of(c)->t;
  return kind == fmi2LastSuccessfulTime ? fmi2OK : (fmi2Status)fmu_fail(fmu_of(c), "no real status of this kind");
}

fmi2Status fmi2GetIntegerStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Integer *value) {
  (void)kind;
  *value = 0;
  return (fmi2Status)fmu_fail(fmu_of(c), "there is no integer status");
}

fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value) {
  *value = fmu_data_of(c)->phase == FMU_TERMINATED;
  return kind == fmi2Terminated ? fmi2OK : (fmi2Status)fmu_fail(fmu_of(c), "no Boolean status of this kind");
}

fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind kind, fmi2String *value) {
  (void)kind;
  *value = "";
  return (fmi2Status)fmu_fail(fmu_of(c), "steps are not asynchronous: no status is pending");
}

#endif
