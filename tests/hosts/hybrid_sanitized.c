/* A ball and a block with every stepper, for the sanitizers: prints the statuses. */
#include <string.h>
#include "hybrid.c"
#include <stdio.h>
int main(void) {
  const double ball_p[6] = {9.81, 0.8, 0.1, 3.0, 0.01, 0.2}, block_p[4] = {1.0, 1.0, 0.5, 0.3};
  const double tolerances[4] = {1e-8, 1e-8, 1e-8, 1e-8};
  const int watched[3] = {1, 1, 0};
  static entry entries[1000];
  for (int method = 0; method < KG_METHODS; ++method) {
    for (int number = 0; number < 2; ++number) {
      kg_stepper_options options;
      memset(&options, 0, sizeof options);
      options.method = method;
      options.step = 0.01;
      options.max_steps = 20000;
      options.rtol = tolerances;
      options.atol = tolerances;
      double t = 0.0, y[4] = {0.0, number == 0 ? 1.0 : 0.0, 0.3, 0.0};
      int stopped = 0, count = 0, culprit, culprit_event;
      kg_statistics statistics;
      printf("%d ", run(number, number == 0 ? ball_p : block_p, &options, &t, 5.0, y, watched, 0.3, &stopped, entries,
                        1000, &count, &statistics, &culprit, &culprit_event));
    }
  }
  return 0;
}
