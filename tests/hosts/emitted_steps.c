/* Steps an emitted project and looks at what its interface promises.
 *
 * NAME: the stem of the project; STEPS: the number of steps of 1/1024 s. Prints the state after the run as 64-bit
 * patterns, the right-hand side there, and lines "allocations N" and "rewound B": the memory that was requested (with
 * the wrapped functions of the C library), and whether a copied context repeats the second half of the run bit by bit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define IN(name) JOIN(NAME, name)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#include TEXT(NAME.h)

#ifdef COUNT_ALLOCATIONS
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
static long allocations = 0;
static int counting = 0;
void *__wrap_malloc(size_t size)
{
  allocations += counting;
  return __real_malloc(size);
}
void *__wrap_calloc(size_t count, size_t size)
{
  allocations += counting;
  return __real_calloc(count, size);
}
void *__wrap_realloc(void *memory, size_t size)
{
  allocations += counting;
  return __real_realloc(memory, size);
}
void __wrap_free(void *memory)
{
  allocations += counting;
  __real_free(memory);
}
#endif

static void print_bits(const char *what, const double *values, int n)
{
  for (int i = 0; i < n; i++) {
    unsigned long long bits;
    memcpy(&bits, &values[i], sizeof bits);
    printf("%s %016llx\n", what, bits);
  }
}

static int run(IN(_context) *ctx, int steps)
{
  int status = 0;
  for (int k = 0; k < steps && status >= 0; k++) {
    status = IN(_step)(ctx, NULL, 1.0 / 1024.0);
  }
  return status;
}

int main(void)
{
  static IN(_context) ctx;
  static IN(_context) snapshot;
  double dydt[IN(_N_Y)];
  int status = IN(_init)(&ctx, NULL);
#ifdef COUNT_ALLOCATIONS
  counting = 1;
#endif
  status = status < 0 ? status : run(&ctx, STEPS / 2);
  snapshot = ctx;
  status = status < 0 ? status : run(&ctx, STEPS - STEPS / 2);
  status = status < 0 ? status : IN(_rhs)(&ctx, ctx.t, ctx.y, NULL, dydt);
#ifdef COUNT_ALLOCATIONS
  counting = 0;
  printf("allocations %ld\n", allocations);
#endif
  if (status < 0) {
    printf("status %s\n", IN(_status_message)(status));
    return 1;
  }
  status = run(&snapshot, STEPS - STEPS / 2);
  printf("rewound %d\n", status >= 0 && memcmp(snapshot.y, ctx.y, sizeof ctx.y) == 0 && memcmp(&snapshot.t, &ctx.t, sizeof ctx.t) == 0);
  printf("memory %lu\n", (unsigned long)sizeof ctx);
  print_bits("t", &ctx.t, 1);
  print_bits("y", ctx.y, IN(_N_Y));
  print_bits("dydt", dydt, IN(_N_Y));
  return 0;
}
