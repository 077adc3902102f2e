/* In place of Simulink's simulink.c: calls the functions of an S-function in the order of a simulation with a fixed step,
 * with the input 1.5 for one second and -1.5 afterwards, and prints time and output at the end. */
#include <stdio.h>
#include <string.h>

int main(void)
{
  static SimStruct S;
  int_T k, i;
  const int_T n = 2000;
  memset(&S, 0, sizeof S);
  S.n_given = 1;
  S.parameter = 0.001;
  mdlInitializeSizes(&S);
  if (S.n_parameters != 1 || S.n_inputs != 1 || S.n_outputs != 1 || S.n_work != 1 || S.feedthrough || !S.contiguous) { return 1; }
  if (S.work_width > (int_T)(sizeof S.work / sizeof S.work[0]) || S.input_width > 8 || S.output_width > 32) { return 2; }
  mdlInitializeSampleTimes(&S);
  mdlInitializeConditions(&S);
  for (k = 0; k < n && !S.error; k++) {
    for (i = 0; i < S.input_width; i++) { S.input[i] = k < n / 2 ? 1.5 : -1.5; }
    mdlOutputs(&S, 0);
    mdlUpdate(&S, 0);
  }
  mdlOutputs(&S, 0);
  mdlTerminate(&S);
  if (S.error) { fprintf(stderr, "%s\n", S.error); return 3; }
  printf("%.17g", (double)k * S.sample_time);
  for (i = 0; i < S.output_width; i++) { printf(" %.17g", S.output[i]); }
  return 0;
}
