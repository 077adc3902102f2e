/* importer.c - a small importer of FMUs 2.0 and 3.0 (compiled with -DFMI=2 or 3): it knows the standard's headers only.
 *
 *   importer LIBRARY TOKEN WHAT STEP COUNT INDICATORS N VR...
 *
 * WHAT: steps: co-simulation, prints the variables at the end; pair: two instances in turn, the second with other values;
 * rollback: state saved, serialized and restored half-way; time: prints the least time of a step, ns; exchange: model
 * exchange with N states, classical Runge-Kutta method, events at the ends of steps; prints the states, then the
 * derivative of the rates, which follow the states, along the direction (1, ..., 1).
 *
 * Values are printed as hexadecimal floating-point numbers, so that bits can be compared.
 */
#define _POSIX_C_SOURCE 199309L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if FMI == 2
#include "fmi2FunctionTypes.h"
typedef fmi2Component instance;
typedef fmi2ValueReference reference;
typedef fmi2FMUstate saved;
#define NAME(name) "fmi2" name
static fmi2InstantiateTYPE *instantiate;
static fmi2SetupExperimentTYPE *setup;
static fmi2EnterInitializationModeTYPE *enter;
static fmi2ExitInitializationModeTYPE *leave;
static fmi2DoStepTYPE *step;
static fmi2GetRealTYPE *get;
static fmi2SetRealTYPE *set;
static fmi2GetFMUstateTYPE *get_state;
static fmi2SetFMUstateTYPE *set_state;
static fmi2FreeFMUstateTYPE *free_state;
static fmi2SerializedFMUstateSizeTYPE *state_size;
static fmi2SerializeFMUstateTYPE *serialize;
static fmi2DeSerializeFMUstateTYPE *deserialize;
static fmi2FreeInstanceTYPE *release;
static fmi2SetTimeTYPE *set_time;
static fmi2SetContinuousStatesTYPE *set_states;
static fmi2GetContinuousStatesTYPE *get_states;
static fmi2GetDerivativesTYPE *get_rates;
static fmi2GetEventIndicatorsTYPE *get_indicators;
static fmi2CompletedIntegratorStepTYPE *completed;
static fmi2EnterEventModeTYPE *event_mode;
static fmi2NewDiscreteStatesTYPE *update_function;
static fmi2EnterContinuousTimeModeTYPE *continuous_mode;
static fmi2GetDirectionalDerivativeTYPE *directional;
#else
#include "fmi3FunctionTypes.h"
typedef fmi3Instance instance;
typedef fmi3ValueReference reference;
typedef fmi3FMUState saved;
#define NAME(name) "fmi3" name
static fmi3InstantiateCoSimulationTYPE *instantiate;
static fmi3EnterInitializationModeTYPE *enter;
static fmi3ExitInitializationModeTYPE *leave;
static fmi3DoStepTYPE *step;
static fmi3GetFloat64TYPE *get;
static fmi3SetFloat64TYPE *set;
static fmi3GetFMUStateTYPE *get_state;
static fmi3SetFMUStateTYPE *set_state;
static fmi3FreeFMUStateTYPE *free_state;
static fmi3SerializedFMUStateSizeTYPE *state_size;
static fmi3SerializeFMUStateTYPE *serialize;
static fmi3DeserializeFMUStateTYPE *deserialize;
static fmi3FreeInstanceTYPE *release;
static fmi3InstantiateModelExchangeTYPE *instantiate_exchange;
static fmi3SetTimeTYPE *set_time;
static fmi3SetContinuousStatesTYPE *set_states;
static fmi3GetContinuousStatesTYPE *get_states;
static fmi3GetContinuousStateDerivativesTYPE *get_rates;
static fmi3GetEventIndicatorsTYPE *get_indicators;
static fmi3CompletedIntegratorStepTYPE *completed;
static fmi3EnterEventModeTYPE *event_mode;
static fmi3UpdateDiscreteStatesTYPE *update_function;
static fmi3EnterContinuousTimeModeTYPE *continuous_mode;
static fmi3GetDirectionalDerivativeTYPE *directional;
#endif

static void check(int failed, const char *what) {
  if (failed) {
    fprintf(stderr, "%s failed\n", what);
    exit(1);
  }
}

static void load(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  check(symbol == NULL, name);
  memcpy(function, &symbol, sizeof symbol);
}

static void load_all(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  check(library == NULL, "dlopen");
  check(dlsym(library, "kg_get_model") != NULL, "hidden kg_get_model");
#if FMI == 2
  load(library, NAME("Instantiate"), &instantiate);
  load(library, NAME("SetupExperiment"), &setup);
  load(library, NAME("GetReal"), &get);
  load(library, NAME("SetReal"), &set);
  load(library, NAME("GetFMUstate"), &get_state);
  load(library, NAME("SetFMUstate"), &set_state);
  load(library, NAME("FreeFMUstate"), &free_state);
  load(library, NAME("SerializedFMUstateSize"), &state_size);
  load(library, NAME("SerializeFMUstate"), &serialize);
  load(library, NAME("DeSerializeFMUstate"), &deserialize);
  load(library, NAME("GetDerivatives"), &get_rates);
  load(library, NAME("NewDiscreteStates"), &update_function);
#else
  load(library, NAME("InstantiateCoSimulation"), &instantiate);
  load(library, NAME("GetFloat64"), &get);
  load(library, NAME("SetFloat64"), &set);
  load(library, NAME("GetFMUState"), &get_state);
  load(library, NAME("SetFMUState"), &set_state);
  load(library, NAME("FreeFMUState"), &free_state);
  load(library, NAME("SerializedFMUStateSize"), &state_size);
  load(library, NAME("SerializeFMUState"), &serialize);
  load(library, NAME("DeserializeFMUState"), &deserialize);
  load(library, NAME("InstantiateModelExchange"), &instantiate_exchange);
  load(library, NAME("GetContinuousStateDerivatives"), &get_rates);
  load(library, NAME("UpdateDiscreteStates"), &update_function);
#endif
  load(library, NAME("EnterInitializationMode"), &enter);
  load(library, NAME("ExitInitializationMode"), &leave);
  load(library, NAME("DoStep"), &step);
  load(library, NAME("FreeInstance"), &release);
  load(library, NAME("SetTime"), &set_time);
  load(library, NAME("SetContinuousStates"), &set_states);
  load(library, NAME("GetContinuousStates"), &get_states);
  load(library, NAME("GetEventIndicators"), &get_indicators);
  load(library, NAME("CompletedIntegratorStep"), &completed);
  load(library, NAME("EnterEventMode"), &event_mode);
  load(library, NAME("EnterContinuousTimeMode"), &continuous_mode);
  load(library, NAME("GetDirectionalDerivative"), &directional);
}

#if FMI == 2
static void print_message(fmi2ComponentEnvironment environment, fmi2String name, fmi2Status status, fmi2String category,
                          fmi2String message, ...) {
  (void)environment;
  fprintf(stderr, "%s: %d %s: %s\n", name, (int)status, category, message);
}

static const fmi2CallbackFunctions callbacks = {print_message, calloc, free, NULL, NULL};

static instance create(const char *token) {
  return instantiate("importer", fmi2CoSimulation, token, "", &callbacks, fmi2False, fmi2False);
}

static void begin(instance i) {
  check(setup(i, 0, 0.0, 0.0, 0, 0.0) != fmi2OK || enter(i) != fmi2OK, "initialization");
}

static int advance(instance i, double t, double size) { return (int)step(i, t, size, fmi2True); }

static instance create_exchange(const char *token) {
  return instantiate("importer", fmi2ModelExchange, token, "", &callbacks, fmi2False, fmi2False);
}

/* One visit to event mode; returns the time of the next time event. */
static double update(instance i) {
  fmi2EventInfo info;
  check(update_function(i, &info) != fmi2OK || info.newDiscreteStatesNeeded, "event");
  return info.nextEventTimeDefined ? info.nextEventTime : 1e300;
}

static void complete(instance i) {
  fmi2Boolean enter_event_mode, terminate;
  check(completed(i, fmi2True, &enter_event_mode, &terminate) != fmi2OK || enter_event_mode, "completed step");
}
#define VALUES(n)
#else
static void print_message(fmi3InstanceEnvironment environment, fmi3Status status, fmi3String category,
                          fmi3String message) {
  (void)environment;
  fprintf(stderr, "%d %s: %s\n", (int)status, category, message);
}

static instance create(const char *token) {
  return instantiate("importer", token, "", 0, 0, 0, 0, NULL, 0, NULL, print_message, NULL);
}

static void begin(instance i) { check(enter(i, 0, 0.0, 0.0, 0, 0.0) != fmi3OK, "initialization"); }

static int advance(instance i, double t, double size) {
  fmi3Boolean event, terminate, early;
  fmi3Float64 last;
  const int status = (int)step(i, t, size, 1, &event, &terminate, &early, &last);
  return status == 0 && terminate ? 2 : status;
}

static instance create_exchange(const char *token) {
  return instantiate_exchange("importer", token, "", 0, 0, NULL, print_message);
}

static double update(instance i) {
  fmi3Boolean again, terminate, nominals, values, timed;
  fmi3Float64 next;
  check(update_function(i, &again, &terminate, &nominals, &values, &timed, &next) != fmi3OK || again, "event");
  return timed ? next : 1e300;
}

static void complete(instance i) {
  fmi3Boolean enter_event_mode, terminate;
  check(completed(i, 1, &enter_event_mode, &terminate) != fmi3OK || enter_event_mode, "completed step");
}
#define VALUES(n) , n
#endif

static void run(instance i, double size, long first, long count) {
  for (long k = first; k < count; ++k) {
    check(advance(i, k * size, size) != 0, "step");
  }
}

static void print(instance i, size_t n, const reference *references) {
  for (size_t k = 0; k < n; ++k) {
    double value;
    check(get(i, references + k, 1, &value VALUES(1)) != 0, "get");
    printf("%a%c", value, k + 1 < n ? ' ' : '\n');
  }
}

static instance started(const char *token, double factor, size_t n, const reference *references) {
  instance i = create(token);
  check(i == NULL, "instantiate");
  begin(i);
  for (size_t k = 0; k < n && factor != 1.0; ++k) { /* the importer of a model without constraints */
    double value;
    check(get(i, references + k, 1, &value VALUES(1)) != 0, "get");
    value *= factor;
    check(set(i, references + k, 1, &value VALUES(1)) != 0, "set");
  }
  check(leave(i) != 0, "start");
  return i;
}

static void pair(const char *token, double size, long count, size_t n, const reference *references) {
  instance a = started(token, 1.0, n, references), b = started(token, 1.25, n, references);
  for (long k = 0; k < count; ++k) {
    check(advance(a, k * size, size) != 0 || advance(b, k * size, size) != 0, "step");
  }
  print(a, n, references);
  print(b, n, references);
  release(a);
  release(b);
}

static void rollback(const char *token, double size, long count, size_t n, const reference *references) {
  const long half = count / 2;
  instance i = started(token, 1.0, 0, references), other = started(token, 1.0, 0, references);
  saved state = NULL, copy = NULL;
  unsigned char *bytes;
  size_t length;
  run(i, size, 0, half);
  check(get_state(i, &state) != 0, "get state");
  run(i, size, half, count);
  print(i, n, references);
  check(set_state(i, state) != 0, "set state"); /* again from the middle */
  run(i, size, half, count);
  print(i, n, references);
  check(state_size(i, state, &length) != 0, "size of state");
  bytes = malloc(length);
  check(serialize(i, state, (void *)bytes, length) != 0, "serialize");
  check(deserialize(other, (void *)bytes, length, &copy) != 0, "deserialize");
  release(i); /* nothing of the first instance is needed any more */
  check(set_state(other, copy) != 0, "set state of another instance");
  run(other, size, half, count);
  print(other, n, references);
  bytes[3] ^= 1;
  check(deserialize(other, (void *)bytes, length, &copy) == 0, "refusing a foreign state");
  free(bytes);
  check(free_state(other, &state) != 0 || free_state(other, &copy) != 0, "free state");
  release(other);
}

static void rates(instance i, double t, size_t n, const double *y, double *k) {
  check(set_time(i, t) != 0 || set_states(i, y, n) != 0 || get_rates(i, k, n) != 0, "rates");
}

/* One step of the classical method. */
static void runge_kutta(instance i, double t, double h, size_t n, double *y) {
  static const double c[4] = {0.0, 0.5, 0.5, 1.0}, b[4] = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6};
  double k[4][100], stage[100], sum[100];
  memcpy(sum, y, n * sizeof *y);
  for (int j = 0; j < 4; ++j) {
    for (size_t m = 0; m < n; ++m) {
      stage[m] = j == 0 ? y[m] : y[m] + c[j] * h * k[j - 1][m];
    }
    rates(i, t + c[j] * h, n, stage, k[j]);
    for (size_t m = 0; m < n; ++m) {
      sum[m] += b[j] * h * k[j][m];
    }
  }
  memcpy(y, sum, n * sizeof *y);
}

static void exchange(const char *token, double size, long count, size_t n_indicators, size_t n, const reference *vr) {
  instance i = create_exchange(token);
  double y[100], z[2][100], ones[100], slopes[100], next;
  reference of_rates[100];
  check(i == NULL, "instantiate");
  begin(i);
  check(leave(i) != 0, "start");
  next = update(i);
  check(continuous_mode(i) != 0 || get_states(i, y, n) != 0, "start");
  check(get_indicators(i, z[0], n_indicators) != 0, "indicators");
  for (long k = 0; k < count; ++k) {
    int event = next <= (k + 1) * size * (1 + 1e-12);
    runge_kutta(i, k * size, (k + 1) * size - k * size, n, y);
    check(set_time(i, (k + 1) * size) != 0 || set_states(i, y, n) != 0, "states");
    complete(i);
    check(get_indicators(i, z[1], n_indicators) != 0, "indicators");
    for (size_t m = 0; m < n_indicators; ++m) {
      event = event || (z[0][m] > 0.0) != (z[1][m] > 0.0);
    }
    if (event) {
      check(event_mode(i) != 0, "event mode");
      next = update(i);
      check(continuous_mode(i) != 0 || get_states(i, y, n) != 0, "event");
    }
    check(get_indicators(i, z[0], n_indicators) != 0, "indicators");
  }
  print(i, n, vr);
  for (size_t m = 0; m < n; ++m) {
    ones[m] = 1.0;
    of_rates[m] = vr[m] + (reference)n;
  }
  check(directional(i, of_rates, n, vr, n, ones VALUES(n), slopes VALUES(n)) != 0, "directional derivative");
  for (size_t m = 0; m < n; ++m) {
    printf("%a%c", slopes[m], m + 1 < n ? ' ' : '\n');
  }
  release(i);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void measure(const char *token, double size, long count, size_t n, const reference *references) {
  double least = 1e30, *values = malloc((n + 1) * sizeof *values);
  for (int repetition = 0; repetition < 20; ++repetition) {
    instance i = started(token, 1.0, 0, references);
    const double start = seconds();
    double elapsed;
    for (long k = 0; k < count; ++k) {
      check(advance(i, k * size, size) != 0, "step");
      get(i, references, n, values VALUES(n));
    }
    elapsed = seconds() - start;
    least = elapsed < least ? elapsed : least;
    release(i);
  }
  free(values);
  printf("%.1f\n", 1e9 * least / (double)count);
}

int main(int argc, char **argv) {
  double size;
  long count;
  size_t n;
  reference references[99];
  check(argc < 8, "arguments");
  load_all(argv[1]);
  size = atof(argv[4]);
  count = atol(argv[5]);
  n = (size_t)atoi(argv[7]);
  for (size_t k = 0; k < n; ++k) {
    references[k] = (reference)atoi(argv[8 + k]);
  }
  check(create("another FMU") != NULL, "refusing another token");
  if (strcmp(argv[3], "steps") == 0) {
    instance i = started(argv[2], 1.0, 0, references);
    run(i, size, 0, count);
    print(i, n, references);
    release(i);
  } else if (strcmp(argv[3], "pair") == 0) {
    pair(argv[2], size, count, n, references);
  } else if (strcmp(argv[3], "rollback") == 0) {
    rollback(argv[2], size, count, n, references);
  } else if (strcmp(argv[3], "exchange") == 0) {
    exchange(argv[2], size, count, (size_t)atoi(argv[6]), n, references);
  } else {
    measure(argv[2], size, count, n, references);
  }
  return 0;
}
