/* importer.c - a small importer of FMUs 2.0 and 3.0 (compiled with -DFMI=2 or 3): it knows the standard's headers only.
 *
 *   importer LIBRARY TOKEN steps    STEP COUNT N VR...        co-simulation: prints the variables at the end
 *   importer LIBRARY TOKEN pair     STEP COUNT N VR...        two instances in turn, the second with other values
 *   importer LIBRARY TOKEN rollback STEP COUNT N VR...        state saved, serialized and restored half-way
 *   importer LIBRARY TOKEN time     STEP COUNT N VR...        prints the least time of a step, ns
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
#endif
  load(library, NAME("EnterInitializationMode"), &enter);
  load(library, NAME("ExitInitializationMode"), &leave);
  load(library, NAME("DoStep"), &step);
  load(library, NAME("FreeInstance"), &release);
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
  reference references[100];
  check(argc < 7, "arguments");
  load_all(argv[1]);
  size = atof(argv[4]);
  count = atol(argv[5]);
  n = (size_t)atoi(argv[6]);
  for (size_t k = 0; k < n; ++k) {
    references[k] = (reference)atoi(argv[7 + k]);
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
  } else {
    measure(argv[2], size, count, n, references);
  }
  return 0;
}
