/* fmu_fmi3_unused.h - functions of FMI 3.0 for what the FMU does not have; every FMU exports them.
 *
 * No variable is a clock or has a type other than Float64, Int32 and Enumeration (Int64). Reading or writing no
 * variables at all is in order.
 */
#ifndef FMU_FMI3_UNUSED_H
#define FMU_FMI3_UNUSED_H

static fmi3Status fmu_no_values(fmi3Instance instance, size_t n, const char *what) {
  return n == 0 ? fmi3OK : (fmi3Status)fmu_fail(fmu_of(instance), "no variable is of the type %s", what);
}

static fmi3Status fmu_no_feature(fmi3Instance instance, const char *what) {
  return (fmi3Status)fmu_fail(fmu_of(instance), "the FMU has no %s", what);
}

/* fmi3Get... and fmi3Set... of one type. */
#define FMU_UNUSED_TYPE(TYPE)                                                                                        \
  fmi3Status fmi3Get##TYPE(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, fmi3##TYPE values[],      \
                           size_t n_values) {                                                                        \
    (void)vr;                                                                                                        \
    (void)values;                                                                                                    \
    (void)n_values;                                                                                                  \
    return fmu_no_values(instance, n, #TYPE);                                                                        \
  }                                                                                                                  \
  fmi3Status fmi3Set##TYPE(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, const fmi3##TYPE values[], \
                           size_t n_values) {                                                                        \
    (void)vr;                                                                                                        \
    (void)values;                                                                                                    \
    (void)n_values;                                                                                                  \
    return fmu_no_values(instance, n, #TYPE);                                                                        \
  }

FMU_UNUSED_TYPE(Float32)
FMU_UNUSED_TYPE(Int8)
FMU_UNUSED_TYPE(UInt8)
FMU_UNUSED_TYPE(Int16)
FMU_UNUSED_TYPE(UInt16)
FMU_UNUSED_TYPE(UInt32)
FMU_UNUSED_TYPE(UInt64)
FMU_UNUSED_TYPE(Boolean)
FMU_UNUSED_TYPE(String)

fmi3Status fmi3SetInt32(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, const fmi3Int32 values[],
                        size_t n_values) {
  (void)vr;
  (void)values;
  (void)n_values;
  return n == 0 ? fmi3OK : (fmi3Status)fmu_fail(fmu_of(instance), "counts of events cannot be set");
}

fmi3Status fmi3GetBinary(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, size_t sizes[],
                         fmi3Binary values[], size_t n_values) {
  (void)vr;
  (void)sizes;
  (void)values;
  (void)n_values;
  return fmu_no_values(instance, n, "Binary");
}

fmi3Status fmi3SetBinary(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, const size_t sizes[],
                         const fmi3Binary values[], size_t n_values) {
  (void)vr;
  (void)sizes;
  (void)values;
  (void)n_values;
  return fmu_no_values(instance, n, "Binary");
}

/* -- clocks --------------------------------------------------------------------------------------------------- */

fmi3Status fmi3GetClock(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, fmi3Clock values[]) {
  (void)vr;
  (void)values;
  return fmu_no_values(instance, n, "Clock");
}

fmi3Status fmi3SetClock(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, const fmi3Clock values[]) {
  (void)vr;
  (void)values;
  return fmu_no_values(instance, n, "Clock");
}

fmi3Status fmi3GetIntervalDecimal(fmi3Instance instance, const fmi3ValueReference vr[], size_t n,
                                  fmi3Float64 intervals[], fmi3IntervalQualifier qualifiers[]) {
  (void)vr;
  (void)intervals;
  (void)qualifiers;
  return fmu_no_values(instance, n, "Clock");
}

fmi3Status fmi3GetIntervalFraction(fmi3Instance instance, const fmi3ValueReference vr[], size_t n,
                                   fmi3UInt64 counters[], fmi3UInt64 resolutions[],
                                   fmi3IntervalQualifier qualifiers[]) {
  (void)vr;
  (void)counters;
  (void)resolutions;
  (void)qualifiers;
  return fmu_no_values(instance, n, "Clock");
}

fmi3Status fmi3GetShiftDecimal(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, fmi3Float64 shifts[]) {
  (void)vr;
  (void)shifts;
  return fmu_no_values(instance, n, "Clock");
}

fmi3Status fmi3GetShiftFraction(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, fmi3UInt64 counters[],
                                fmi3UInt64 resolutions[]) {
  (void)vr;
  (void)counters;
  (void)resolutions;
  return fmu_no_values(instance, n, "Clock");
}

fmi3Status fmi3SetIntervalDecimal(fmi3Instance instance, const fmi3ValueReference vr[], size_t n,
                                  const fmi3Float64 intervals[]) {
  (void)vr;
  (void)intervals;
  return fmu_no_values(instance, n, "Clock");
}

fmi3Status fmi3SetIntervalFraction(fmi3Instance instance, const fmi3ValueReference vr[], size_t n,
                                   const fmi3UInt64 counters[], const fmi3UInt64 resolutions[]) {
  (void)vr;
  (void)counters;
  (void)resolutions;
  return fmu_no_values(instance, n, "Clock");
}

fmi3Status fmi3SetShiftDecimal(fmi3Instance instance, const fmi3ValueReference vr[], size_t n,
                               const fmi3Float64 shifts[]) {
  (void)vr;
  (void)shifts;
  return fmu_no_values(instance, n, "Clock");
}

fmi3Status fmi3SetShiftFraction(fmi3Instance instance, const fmi3ValueReference vr[], size_t n,
                                const fmi3UInt64 counters[], const fmi3UInt64 resolutions[]) {
  (void)vr;
  (void)counters;
  (void)resolutions;
  return fmu_no_values(instance, n, "Clock");
}

/* -- other features ------------------------------------------------------------------------------------------- */

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

fmi3Status fmi3ActivateModelPartition(fmi3Instance instance, fmi3ValueReference clock, fmi3Float64 time) {
  (void)clock;
  (void)time;
  return fmu_no_feature(instance, "scheduled execution");
}

fmi3Status fmi3GetNumberOfVariableDependencies(fmi3Instance instance, fmi3ValueReference reference, size_t *n) {
  (void)reference;
  *n = 0;
  return fmu_no_feature(instance, "dependencies that change: those of modelDescription.xml are valid");
}

fmi3Status fmi3GetVariableDependencies(fmi3Instance instance, fmi3ValueReference dependent, size_t elements[],
                                       fmi3ValueReference independents[], size_t independent_elements[],
                                       fmi3DependencyKind kinds[], size_t n) {
  (void)dependent;
  (void)elements;
  (void)independents;
  (void)independent_elements;
  (void)kinds;
  (void)n;
  return fmu_no_feature(instance, "dependencies that change: those of modelDescription.xml are valid");
}

fmi3Status fmi3GetAdjointDerivative(fmi3Instance instance, const fmi3ValueReference unknowns[], size_t n_unknowns,
                                    const fmi3ValueReference knowns[], size_t n_knowns, const fmi3Float64 seed[],
                                    size_t n_seed, fmi3Float64 sensitivity[], size_t n_sensitivity) {
  (void)unknowns;
  (void)n_unknowns;
  (void)knowns;
  (void)n_knowns;
  (void)seed;
  (void)n_seed;
  (void)sensitivity;
  (void)n_sensitivity;
  return fmu_no_feature(instance, "adjoint derivatives: use directional derivatives");
}

fmi3Status fmi3EnterConfigurationMode(fmi3Instance instance) {
  return fmu_no_feature(instance, "structural parameters");
}

fmi3Status fmi3ExitConfigurationMode(fmi3Instance instance) {
  return fmu_no_feature(instance, "structural parameters");
}

fmi3Status fmi3EvaluateDiscreteStates(fmi3Instance instance) {
  (void)instance;
  return fmi3OK;
}

fmi3Status fmi3EnterStepMode(fmi3Instance instance) {
  return fmu_data_of(instance)->phase == FMU_STEPPING ? fmi3OK : fmu_no_feature(instance, "event mode in co-simulation");
}

fmi3Status fmi3GetOutputDerivatives(fmi3Instance instance, const fmi3ValueReference vr[], size_t n,
                                    const fmi3Int32 orders[], fmi3Float64 values[], size_t n_values) {
  (void)vr;
  (void)orders;
  (void)values;
  (void)n_values;
  return n == 0 ? fmi3OK : fmu_no_feature(instance, "derivatives of outputs");
}

#endif
