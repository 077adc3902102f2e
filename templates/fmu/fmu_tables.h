/* fmu_tables.h - the types of the tables in which the generated file NAME_fmu.c describes a model to the FMU code.
 *
 * An FMU consists of the kernel of the model, the runtime (kg_*.h), the headers fmu_*.h, which are the same for every
 * model, and NAME_fmu.c: it defines the constant `fmu`, a fmu_tables, and includes the functions of FMI 2.0 or 3.0.
 */
#ifndef FMU_TABLES_H
#define FMU_TABLES_H

#include "kg_feedback.h"

/* What a variable of the FMU is. Value references are indices of fmu_tables.variables. */
enum {
  FMU_TIME,
  FMU_STATE,     /* index: of y = (q, u, s) */
  FMU_RATE,      /* index: of y' */
  FMU_INPUT,     /* index: of r */
  FMU_LAW,       /* index: of r; the feedback law of this input gives its value */
  FMU_PARAMETER, /* index: of p */
  FMU_VALUE,     /* index: of the values of all fmu_tables.functions */
  FMU_FORCE,     /* index: of the contact rows; its multiplier */
  FMU_GUARD,     /* index: of the event indicators */
  FMU_OPTION,    /* index: FMU_STEP, ... */
  FMU_METHOD,    /* integer: index of fmu_tables.methods */
  FMU_MODE,      /* integer: mode of contact `index` */
  FMU_COUNT      /* integer: how often event `index` has happened */
};

typedef struct {
  int kind;
  int index;
  int function; /* FMU_VALUE: index of fmu_tables.functions */
  int row;      /* FMU_VALUE: row in the functions outputs_q, outputs_u, ..., or -1 */
} fmu_variable;

/* A compiled function whose values are variables: values[first .. first + length). */
typedef struct {
  const char *name;
  int first;
  int length;
} fmu_function;

typedef struct {
  const char *token; /* instantiation token, in FMI 2.0 the GUID */
  int n_variables;
  const fmu_variable *variables;
  int n_functions;
  const fmu_function *functions;
  int n_values;
  int n_laws;
  const kg_law *laws;        /* their functions are to be set */
  int width;                 /* values of all laws */
  int n_waiting;             /* samples that are kept */
  const kg_clock *clocks;
  int n_methods;
  const int *methods;        /* numbers of the integration methods (kg_methods.h) */
  int method;                /* index of the default */
  kg_real options[FMU_N_OPTIONS]; /* defaults */
  kg_real t;                 /* default start: time, */
  const kg_real *y;          /* q, u, s, */
  const kg_real *r;          /* inputs, */
  const kg_real *p;          /* parameters, then gains of the stabilization */
  const char *rhs;           /* name of the right-hand side */
  const char *mass;          /* name of the matrix of the accelerations */
  int every;                 /* projection of the state after so many steps; 0: none */
  kg_real tolerance;         /* of the projection */
  int any_rank;              /* constraints can become dependent */
  const char *const *integrals; /* names of the integrals of motion that the projection keeps (FMU_N_INTEGRALS) */
} fmu_tables;

#endif
