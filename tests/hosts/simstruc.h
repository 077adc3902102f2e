/* What the S-function of docs/matlab.md needs of Simulink's simstruc.h, with names and meanings of its documentation. */
#ifndef SIMSTRUC_H
#define SIMSTRUC_H

#include <stddef.h>

typedef double real_T;
typedef int int_T;
typedef double mxArray;

enum { SS_DOUBLE = 0, SS_OPTION_EXCEPTION_FREE_CODE = 1 };

typedef struct {
  int_T n_parameters, n_given, n_inputs, n_outputs, input_width, output_width, n_sample_times, n_work, work_width;
  int_T contiguous, feedthrough, options;
  mxArray parameter;
  real_T sample_time, offset, input[8], output[32];
  real_T work[256];
  const char *error;
} SimStruct;

#define UNUSED_ARG(x) ((void)(x))
#define mxGetScalar(x) (*(x))
#define ssSetNumSFcnParams(S, n) ((S)->n_parameters = (n))
#define ssGetNumSFcnParams(S) ((S)->n_parameters)
#define ssGetSFcnParamsCount(S) ((S)->n_given)
#define ssGetSFcnParam(S, i) (&(S)->parameter)
#define ssSetNumInputPorts(S, n) ((S)->n_inputs = (n), 1)
#define ssSetNumOutputPorts(S, n) ((S)->n_outputs = (n), 1)
#define ssSetInputPortWidth(S, port, n) ((S)->input_width = (n))
#define ssSetOutputPortWidth(S, port, n) ((S)->output_width = (n))
#define ssSetInputPortRequiredContiguous(S, port, yes) ((S)->contiguous = (yes))
#define ssSetInputPortDirectFeedThrough(S, port, yes) ((S)->feedthrough = (yes))
#define ssSetNumSampleTimes(S, n) ((S)->n_sample_times = (n))
#define ssSetSampleTime(S, i, value) ((S)->sample_time = (value))
#define ssSetOffsetTime(S, i, value) ((S)->offset = (value))
#define ssSetNumDWork(S, n) ((S)->n_work = (n))
#define ssSetDWorkWidth(S, i, n) ((S)->work_width = (n))
#define ssSetDWorkDataType(S, i, type) ((void)(type))
#define ssGetDWork(S, i) ((void *)(S)->work)
#define ssSetOptions(S, value) ((S)->options = (value))
#define ssGetInputPortRealSignal(S, port) ((const real_T *)(S)->input)
#define ssGetOutputPortRealSignal(S, port) ((S)->output)
#define ssSetErrorStatus(S, text) ((S)->error = (text))

#endif
