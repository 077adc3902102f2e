/* Four simulations in four threads, and one more without threads: all must agree bit by bit. NAME: the project,
 * STEPS: the number of steps of 1/1024 s. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define IN(name) JOIN(NAME, name)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#include TEXT(NAME.h)

enum { THREADS = 4 };

static void *simulate(void *argument)
{
  IN(_context) *ctx = (IN(_context) *)argument;
  int status = IN(_init)(ctx, NULL);
  for (int k = 0; k < STEPS && status >= 0; k++) {
    status = IN(_step)(ctx, NULL, 1.0 / 1024.0);
  }
  return status < 0 ? NULL : argument;
}

int main(void)
{
  static IN(_context) contexts[THREADS];
  static IN(_context) alone;
  pthread_t threads[THREADS];
  int equal = 1;
  for (int k = 0; k < THREADS; k++) {
    if (pthread_create(&threads[k], NULL, simulate, &contexts[k]) != 0) {
      return 2;
    }
  }
  for (int k = 0; k < THREADS; k++) {
    void *result;
    pthread_join(threads[k], &result);
    equal &= result != NULL;
  }
  equal &= simulate(&alone) != NULL;
  for (int k = 0; k < THREADS; k++) {
    equal &= memcmp(contexts[k].y, alone.y, sizeof alone.y) == 0;
  }
  printf("equal %d\n", equal);
  return !equal;
}
