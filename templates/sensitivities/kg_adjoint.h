/* kg_adjoint.h - pulls the gradient of a function of the end of a motion back to its start: the discrete adjoint.
 *
 * To be included with the macros and tables of adjoint.c. The steps of the motion are known. From the last one to the
 * first, the stages are computed again, and their derivatives are accumulated (Hager 2000). The estimates of the local
 * errors of a step are functions of its start, too: pulled back with the same weights, they are the local errors of the
 * gradient. All of these are columns, one on each lane.
 */
#ifndef KG_ADJOINT_H
#define KG_ADJOINT_H

#include <math.h>

#include "kg_direction.h"

#define KG_EXPORT __attribute__((visibility("default")))

/* Columns: the gradient, then its local errors. Their vectors, and those of the weights of y' and of a running cost. */
#define KG_COLUMNS (1 + KG_ESTIMATES)
#define KG_GROUPS ((KG_COLUMNS + KG_LANES - 1) / KG_LANES)
#define KG_WEIGHTS (KG_N + 1)
/* Inputs and contact forces; values of a gradient: of y, of these and of the parameters. */
#define KG_LOADS (KG_N_R + KG_N_FORCES)
#define KG_SLOPES (KG_N + KG_LOADS + KG_N_P)
/* Rows of stages: those of the step, and its end, if the estimates contain the derivative there. */
#define KG_POINTS (KG_STAGES + KG_ESTIMATES_END)

/* The steps of a motion, and the weights of its states. Loads are inputs and contact forces. */
typedef struct {
  const kg_model *model;       /* that of the functions: weights follow its inputs */
  const kg_function *rates;    /* y', then the running cost if there is one */
  const kg_function *adjoint;  /* their gradient for weights after the inputs, where a state has no numbers; or NULL */
  const kg_function *numbers;  /* the rates, then the numbers of their gradient; or NULL */
  const double *p;             /* parameters and gains */
  const double *t;             /* n_steps: where the steps begin, */
  const double *h;             /* their sizes, */
  const double *y;             /* (n_steps + 1, n) and the states there; last the state at the end */
  const double *edges;         /* (n_steps, 2): fractions of a step by which stages at its ends are moved inside */
  const unsigned char *fresh;  /* n_steps: the step does not begin with the derivative at the end of the last one */
  const double *loads;         /* rows of KG_LOADS values, */
  double *of_loads;            /* and of their gradient, to which is added */
  const double *added;         /* (n_steps + 1, n): weights of the states themselves, or NULL */
  double *weights;             /* n: those at the end of the last step; afterwards those at the start of the first one */
  double *of_p;                /* n_p: the gradient with respect to the parameters, to which is added */
  double *sizes;               /* n + n_p: the largest weights, and gradients with respect to the parameters, so far */
  double *errors;              /* n + n_p: and their largest local errors, 0 without estimates */
  double cost;                 /* the integral of the running cost, to which is added */
  double running;              /* the weight of the running cost */
  ptrdiff_t n_steps;
  ptrdiff_t load_step, load_row; /* rows of `loads` from step to step, and from stage to stage */
  ptrdiff_t failed;              /* the step at which the run failed */
} kg_adjoints;

/* What is known at a stage: values are y', the running cost if there is one, and the numbers, if ``known``. */
typedef struct {
  double *state, *values;
  kg_lanes *pulled; /* (KG_GROUPS, KG_N) */
  int known;
} kg_stage;

typedef struct {
  kg_adjoints *run;
  double *p, *work, *r, *row_out;
  kg_lanes *weight, *slopes, *sums; /* sums: of the gradients with respect to the parameters in a step */
  kg_lanes *kept;
  kg_stage stages[KG_STAGES + 1]; /* the last one: at the end of the step */
  ptrdiff_t step;
  int has_cost;
} kg_pull;

/* Places the arrays of a run in memory, or with pull NULL only counts: the number of doubles. */
static size_t kg_pull_place(const kg_adjoints *a, double *memory, kg_pull *pull) {
  const size_t n_p = (size_t)a->model->n_prepared, n_r = (size_t)a->model->n_r, line = 8;
  const size_t of_general = a->adjoint != NULL ? (size_t)a->adjoint->work : 0;
  const size_t of_numbers = a->numbers != NULL ? (size_t)a->numbers->work : 0, of_rates = (size_t)a->rates->work;
  const size_t most = of_general > of_numbers ? of_general : of_numbers, work = most > of_rates ? most : of_rates;
  const size_t values = KG_WEIGHTS + KG_N_WORK;
  const size_t lanes = KG_GROUPS * (KG_WEIGHTS + KG_LOADS + 1 + KG_SLOPES + KG_N_P + (KG_STAGES + 1) * KG_N) + KG_N_KEPT;
  if (pull != NULL) {
    const size_t beyond = (size_t)memory % 64 / sizeof(double);
    kg_lanes *next = (kg_lanes *)(void *)(memory + (beyond != 0 ? line - beyond : 0));
    pull->weight = next;
    pull->slopes = pull->weight + KG_GROUPS * (KG_WEIGHTS + KG_LOADS + 1);
    pull->sums = pull->slopes + KG_GROUPS * KG_SLOPES;
    pull->kept = pull->sums + KG_GROUPS * KG_N_P;
    next = pull->kept + KG_N_KEPT;
    for (int i = 0; i <= KG_STAGES; ++i, next += KG_GROUPS * KG_N) {
      pull->stages[i].pulled = next;
    }
    pull->p = (double *)(void *)next;
    pull->work = pull->p + n_p;
    pull->r = pull->work + work;
    pull->row_out = pull->r + n_r;
    memory = pull->row_out + KG_SLOPES;
    for (int i = 0; i <= KG_STAGES; ++i, memory += KG_N + values) {
      pull->stages[i].state = memory;
      pull->stages[i].values = memory + KG_N;
    }
    pull->has_cost = a->rates->rows > KG_N;
  }
  return line + KG_LANES * lanes + n_p + work + n_r + KG_SLOPES + (KG_STAGES + 1) * (KG_N + values);
}

KG_INLINE int kg_any(kg_mask mask) {
  long long any = 0;
  for (int lane = 0; lane < KG_LANES; ++lane) {
    any |= mask[lane];
  }
  return any != 0;
}

/* The row of loads of a stage. */
KG_INLINE ptrdiff_t kg_pull_loads(const kg_pull *pull, int stage) {
  return (pull->step * pull->run->load_step + stage * pull->run->load_row) * KG_LOADS;
}

/* A stage as a point, with its inputs; weights that follow the inputs remain. */
static kg_point kg_pull_point(kg_pull *pull, int stage) {
  const kg_adjoints *a = pull->run;
  const double *y = pull->stages[stage].state, *loads = a->loads + kg_pull_loads(pull, stage);
  const double h = a->h[pull->step], node = stage < KG_STAGES ? kg_nodes[stage] : 1.0;
  const double from = a->t[pull->step], to = from + h, away = 8.0 * DBL_EPSILON, sign = h < 0.0 ? -1.0 : 1.0;
  const double first = from + sign * away * fabs(from), last = to - sign * away * fabs(to);
  const double low = first < last ? first : last, high = first < last ? last : first;
  kg_point at = {from + node * h, NULL, NULL, NULL, pull->r, NULL, NULL};
  kg_point_place(&at, a->model, at.t < low ? low : at.t > high ? high : at.t, y);
  (void)memcpy(pull->r, loads, KG_N_R * sizeof *loads);
  at.forces = loads + KG_N_R;
  return at;
}

/* Moves a stage at the start or at the end of a step inside, where a law has a kink: its slopes are those of the step. */
static void kg_pull_move(const kg_pull *pull, int stage) {
  const double *states = pull->run->y + pull->step * KG_N, *edges = pull->run->edges + 2 * pull->step;
  const double node = stage < KG_STAGES ? kg_nodes[stage] : 1.0;
  const double part = node == 0.0 ? edges[0] : node == 1.0 ? -edges[1] : 0.0;
  for (int k = 0; k < KG_N && part != 0.0; ++k) {
    pull->stages[stage].state[k] += part * (states[KG_N + k] - states[k]);
  }
}

/* Evaluates the rates of a stage, and the numbers of their gradient. Returns KG_OK or a negative status. */
static int kg_pull_evaluate(kg_pull *pull, int stage) {
  const kg_adjoints *a = pull->run;
  kg_stage *own = pull->stages + stage;
  kg_point at;
  int status = KG_OK;
  kg_pull_move(pull, stage);
  at = kg_pull_point(pull, stage);
  own->known = a->numbers != NULL && a->numbers->evaluate(&at, pull->p, pull->work, own->values) == KG_OK;
  if (!own->known) {
    status = a->rates->evaluate(&at, pull->p, pull->work, own->values);
  }
  return status < 0 ? status : KG_OK;
}

/* The stages of a step, and its end if the estimates contain it. Returns KG_OK or the status of a function that failed. */
static int kg_pull_stages(kg_pull *pull) {
  kg_adjoints *a = pull->run;
  const ptrdiff_t step = pull->step;
  const double h = a->h[step];
  const kg_stage later = pull->stages[0];
  const int shared = step + 1 < a->n_steps && a->fresh[step + 1] == 0; /* the later step begins with this end */
  int status = KG_OK;
  pull->stages[0] = pull->stages[KG_STAGES];
  pull->stages[KG_STAGES] = later;
  for (int i = 0; i < KG_STAGES && status >= 0; ++i) {
    double *state = pull->stages[i].state;
    (void)memcpy(state, a->y + step * KG_N, KG_N * sizeof *state);
    for (int j = 0; j < i; ++j) {
      const double factor = h * kg_stages[i][j];
      for (int k = 0; k < KG_N && factor != 0.0; ++k) {
        state[k] += factor * pull->stages[j].values[k];
      }
    }
    status = kg_pull_evaluate(pull, i);
    if (pull->has_cost) {
      a->cost += h * kg_weights[i] * pull->stages[i].values[KG_N];
    }
  }
  if (KG_ESTIMATES_END && !shared && status >= 0) {
    (void)memcpy(pull->stages[KG_STAGES].state, a->y + (step + 1) * KG_N, KG_N * sizeof *a->y);
    status = kg_pull_evaluate(pull, KG_STAGES);
  }
  return status;
}

/* The gradient with the weights of one group, column by column. Returns KG_OK or a negative status. */
static __attribute__((cold, noinline)) int kg_pull_general(kg_pull *pull, int stage, int group) {
  const kg_adjoints *a = pull->run;
  const kg_lanes *weight = pull->weight + group * (KG_WEIGHTS + KG_LOADS + 1);
  kg_lanes *slopes = pull->slopes + group * KG_SLOPES;
  const kg_point at = kg_pull_point(pull, stage);
  for (int lane = 0; lane < KG_LANES; ++lane) {
    int any = 0, status;
    for (int k = 0; k < KG_WEIGHTS; ++k) {
      pull->r[KG_N_R + k] = weight[k][lane];
      any = any || weight[k][lane] != 0.0;
    }
    if (any) {
      status = a->adjoint != NULL ? a->adjoint->evaluate(&at, pull->p, pull->work, pull->row_out) : KG_SINGULAR;
      if (status < 0) {
        return status;
      }
    }
    for (int k = 0; k < KG_SLOPES; ++k) {
      slopes[k][lane] = any ? pull->row_out[k] : 0.0;
    }
  }
  return KG_OK;
}

/* The gradient of a stage with the weights of all columns. Returns KG_OK or a negative status. */
static int kg_pull_gradient(kg_pull *pull, int stage) {
  kg_stage *own = pull->stages + stage;
  for (int group = 0; group < KG_GROUPS; ++group) {
    kg_lanes *slopes = pull->slopes + group * KG_SLOPES;
#ifdef KG_ON_LANES
    if (own->known) {
      const kg_direction along = {kg_pull_point(pull, stage), pull->weight + group * (KG_WEIGHTS + KG_LOADS + 1), NULL,
                                  NULL, pull->kept, slopes};
      kg_evaluate_changes(&along, pull->p, own->values + KG_N + pull->has_cost, NULL);
    } else
#endif
    {
      const int status = kg_pull_general(pull, stage, group);
      if (status < 0) {
        return status;
      }
    }
    (void)memcpy(own->pulled + group * KG_N, slopes, KG_N * sizeof *slopes);
    for (int k = 0; k < KG_N_P; ++k) {
      pull->sums[group * KG_N_P + k] += slopes[KG_N + KG_LOADS + k];
    }
  }
  for (int k = 0; k < KG_LOADS; ++k) {
    pull->run->of_loads[kg_pull_loads(pull, stage) + k] += pull->slopes[KG_N + k][0];
  }
  return KG_OK;
}

/* The weights of a stage: h times those of its rate in the solution and in the estimates. Returns whether one is not 0. */
static int kg_pull_weights(kg_pull *pull, int stage) {
  const kg_adjoints *a = pull->run;
  const double h = a->h[pull->step];
  kg_mask any = {0};
  for (int group = 0; group < KG_GROUPS; ++group) {
    kg_lanes *weight = pull->weight + group * (KG_WEIGHTS + KG_LOADS + 1), columns;
    (void)memcpy(&columns, kg_columns[stage] + group * KG_LANES, sizeof columns);
    for (int k = 0; k < KG_N; ++k) {
      kg_lanes sum = columns * a->weights[k];
      if (stage < KG_STAGES && KG_ESTIMATES_END) {
        sum += kg_weights[stage] * pull->stages[KG_STAGES].pulled[group * KG_N + k];
      }
      for (int j = stage + 1; j < KG_STAGES; ++j) {
        if (kg_stages[j][stage] != 0.0) {
          sum += kg_stages[j][stage] * pull->stages[j].pulled[group * KG_N + k];
        }
      }
      weight[k] = h * sum;
      any |= weight[k] != 0.0;
    }
    weight[KG_N] = h * a->running * columns;
  }
  return kg_any(any) || a->running != 0.0;
}

/* Pulls through one stage. Returns KG_OK or a negative status. */
static int kg_pull_stage(kg_pull *pull, int stage) {
  if (kg_pull_weights(pull, stage)) {
    return kg_pull_gradient(pull, stage);
  }
  (void)memset(pull->stages[stage].pulled, 0, KG_GROUPS * KG_N * sizeof(kg_lanes));
  return KG_OK;
}

/* The size of a local error from the estimates, combined as kg_stepper_squared() combines them; sums: of one component. */
static double kg_pull_error(const kg_lanes *sums, ptrdiff_t between) {
  const double first = KG_ESTIMATES > 0 ? sums[between * (1 / KG_LANES)][1 % KG_LANES] : 0.0;
  const double second = KG_ESTIMATES > 1 ? sums[between * (2 / KG_LANES)][2 % KG_LANES] : 0.0;
  const double size = fabs(first);
  return KG_ESTIMATES > 1 ? size * size / sqrt(first * first + 0.01 * second * second + DBL_MIN) : size;
}

/* Adds what the stages give to the gradient, and keeps the largest values and local errors. */
static void kg_pull_finish(kg_pull *pull) {
  kg_adjoints *a = pull->run;
  for (int k = 0; k < KG_N; ++k) {
    kg_lanes sums[KG_GROUPS];
    for (int group = 0; group < KG_GROUPS; ++group) {
      sums[group] = (kg_lanes){0};
      for (int i = 0; i < KG_POINTS; ++i) {
        sums[group] += pull->stages[i].pulled[group * KG_N + k];
      }
    }
    a->weights[k] += sums[0][0];
    a->sizes[k] = fmax(a->sizes[k], fabs(a->weights[k]));
    a->errors[k] = fmax(a->errors[k], kg_pull_error(sums, 1));
  }
  for (int k = 0; k < KG_N_P; ++k) {
    a->of_p[k] += pull->sums[k][0];
    a->sizes[KG_N + k] = fmax(a->sizes[KG_N + k], fabs(a->of_p[k]));
    a->errors[KG_N + k] = fmax(a->errors[KG_N + k], kg_pull_error(pull->sums + k, KG_N_P));
  }
}

/* Pulls through one step. Returns KG_OK or a negative status. */
static int kg_pull_step(kg_pull *pull) {
  kg_adjoints *a = pull->run;
  int status = kg_pull_stages(pull);
  for (int k = 0; k < KG_N && a->added != NULL; ++k) {
    a->weights[k] += a->added[(pull->step + 1) * KG_N + k];
  }
  (void)memset(pull->sums, 0, KG_GROUPS * KG_N_P * sizeof *pull->sums);
  for (int i = KG_POINTS - 1; i >= 0 && status >= 0; --i) {
    status = kg_pull_stage(pull, i);
  }
  if (status >= 0) {
    kg_pull_finish(pull);
  }
  return status;
}

KG_EXPORT const kg_function *kg_adjoint_function(const kg_model *model, const char *name) {
  return kg_find_function(model, name);
}

/* The number of doubles in the memory of a run. */
KG_EXPORT size_t kg_adjoint_memory(const kg_adjoints *a) { return kg_pull_place(a, NULL, NULL); }

/* Pulls the weights back through all steps. Returns KG_OK, or the negative status of the function that failed. */
KG_EXPORT int kg_adjoint_run(kg_adjoints *a, double *memory) {
  kg_pull pull = {0};
  (void)memset(memory, 0, kg_pull_place(a, memory, &pull) * sizeof *memory);
  pull.run = a;
  (void)memcpy(pull.p, a->p, (size_t)a->model->n_g * sizeof *a->p); /* the changes of parameters are zero */
  a->model->prepare(pull.p);
  for (pull.step = a->n_steps - 1; pull.step >= 0; --pull.step) {
    const int status = kg_pull_step(&pull);
    if (status < 0) {
      a->failed = pull.step;
      return status;
    }
  }
  return KG_OK;
}

#endif
