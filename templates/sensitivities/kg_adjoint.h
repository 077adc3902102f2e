/* kg_adjoint.h - pulls the gradient of a function of the end of a motion back to its start: the discrete adjoint.
 *
 * To be included after the coefficients of the method, in adjoint.c. The steps of the motion are known; from the last one
 * to the first, the stages are computed again, and their derivatives are accumulated (Hager 2000).
 */
#ifndef KG_ADJOINT_H
#define KG_ADJOINT_H

#include <math.h>

#define KG_EXPORT __attribute__((visibility("default")))

/* The steps of a motion, and the weights of its states. Loads are inputs and contact forces. */
typedef struct {
  const kg_function *rates;    /* y', then the running cost if there is one */
  const kg_function *adjoint;  /* their gradient with respect to y, loads and p, for the weights after the inputs */
  const kg_model *model;       /* that of these functions: weights follow its inputs */
  const double *p;             /* parameters and gains */
  const double *t;             /* n_steps: where the steps begin, */
  const double *h;             /* their sizes, */
  const double *y;             /* (n_steps + 1, n) and the states there; last the state at the end */
  const double *edges;         /* (n_steps, 2): fractions of a step by which stages at its ends are moved inside */
  const double *loads;         /* rows of n_loads values, */
  double *of_loads;            /* and of their gradient, to which is added */
  const double *added;         /* (n_steps + 1, n): weights of the states themselves, or NULL */
  double *weights;             /* n: those at the end of the last step; afterwards those at the start of the first one */
  double *of_p;                /* n_p: the gradient with respect to the parameters, to which is added */
  double cost;                 /* the integral of the running cost, to which is added */
  double running;              /* the weight of the running cost */
  ptrdiff_t n_steps, n, n_loads, n_p, n_inputs;
  ptrdiff_t load_step, load_row; /* rows of `loads` from step to step, and from stage to stage */
  ptrdiff_t failed;              /* the step at which the run failed */
} kg_adjoints;

typedef struct {
  double *p, *work, *r, *out, *stages, *rates, *pulled, *weight;
  int has_cost;
} kg_adjoint_space;

/* Places the arrays of a run in memory, or with space NULL only counts: the number of doubles. */
static size_t kg_adjoint_place(const kg_adjoints *a, double *memory, kg_adjoint_space *space) {
  const size_t n = (size_t)a->n, n_p = (size_t)a->model->n_prepared, n_r = (size_t)a->model->n_r;
  const size_t work = (size_t)(a->rates->work > a->adjoint->work ? a->rates->work : a->adjoint->work);
  const size_t n_out = n + 1 + (size_t)(a->n_loads + a->n_p);
  if (space != NULL) {
    space->p = memory;
    space->work = space->p + n_p;
    space->r = space->work + work;
    space->out = space->r + n_r;
    space->stages = space->out + n_out;
    space->rates = space->stages + KG_STAGES * n;
    space->pulled = space->rates + KG_STAGES * (n + 1);
    space->weight = space->pulled + KG_STAGES * n;
    space->has_cost = a->rates->rows > (int)n;
  }
  return n_p + work + n_r + n_out + KG_STAGES * (3 * n + 1) + n;
}

/* A stage as a point, with its inputs; weights of the last stage remain behind them. */
static kg_point kg_adjoint_point(const kg_adjoints *a, kg_adjoint_space *space, ptrdiff_t step, int stage) {
  const double *y = space->stages + stage * a->n, *loads = a->loads;
  const double from = a->t[step], to = from + a->h[step], away = 8.0 * DBL_EPSILON, sign = a->h[step] < 0.0 ? -1.0 : 1.0;
  const double first = from + sign * away * fabs(from), last = to - sign * away * fabs(to);
  const double low = first < last ? first : last, high = first < last ? last : first;
  kg_point at = {from + kg_nodes[stage] * a->h[step], NULL, NULL, NULL, space->r, NULL, NULL};
  loads += (step * a->load_step + stage * a->load_row) * a->n_loads;
  kg_point_place(&at, a->model, at.t < low ? low : at.t > high ? high : at.t, y);
  (void)memcpy(space->r, loads, (size_t)a->n_inputs * sizeof *loads);
  at.forces = loads + a->n_inputs;
  return at;
}

/* Moves a stage at the start or at the end of a step inside, where a law has a kink: its slopes are those of the step. */
static void kg_adjoint_move(const kg_adjoints *a, ptrdiff_t step, int stage, double *state) {
  const double *states = a->y + step * a->n, *edges = a->edges + 2 * step;
  const double part = kg_nodes[stage] == 0.0 ? edges[0] : kg_nodes[stage] == 1.0 ? -edges[1] : 0.0;
  for (ptrdiff_t k = 0; k < a->n && part != 0.0; ++k) {
    state[k] += part * (states[a->n + k] - states[k]);
  }
}

/* The stages of a step. Returns KG_OK or the status of a function that failed. */
static int kg_adjoint_stages(kg_adjoints *a, kg_adjoint_space *space, ptrdiff_t step) {
  const ptrdiff_t n = a->n, width = n + 1;
  const double h = a->h[step];
  int status = KG_OK;
  for (int i = 0; i < KG_STAGES && status >= 0; ++i) {
    double *state = space->stages + i * n;
    (void)memcpy(state, a->y + step * n, (size_t)n * sizeof *state);
    for (int j = 0; j < i; ++j) {
      const double factor = h * kg_stages[i][j];
      const double *rates = space->rates + j * width;
      for (ptrdiff_t k = 0; k < n && factor != 0.0; ++k) {
        state[k] += factor * rates[k];
      }
    }
    kg_adjoint_move(a, step, i, state);
    if (i + 1 < KG_STAGES || space->has_cost) {
      const kg_point at = kg_adjoint_point(a, space, step, i);
      status = a->rates->evaluate(&at, space->p, space->work, space->rates + i * width);
    }
    if (space->has_cost && status >= 0) {
      a->cost += h * kg_weights[i] * space->rates[i * width + n];
    }
  }
  return status;
}

/* The gradient of one stage, whose weights are h times those of its rate. */
static int kg_adjoint_stage(kg_adjoints *a, kg_adjoint_space *space, ptrdiff_t step, int stage) {
  const ptrdiff_t n = a->n;
  const double h = a->h[step], running = h * kg_weights[stage] * a->running;
  double *weight = space->weight, *pulled = space->pulled + stage * n, *of_loads = a->of_loads;
  kg_point at;
  int status = KG_OK, any = running != 0.0;
  for (ptrdiff_t k = 0; k < n; ++k) {
    double sum = kg_weights[stage] * a->weights[k];
    for (int j = stage + 1; j < KG_STAGES; ++j) {
      sum += kg_stages[j][stage] * space->pulled[j * n + k];
    }
    weight[k] = h * sum;
    any = any || weight[k] != 0.0;
    pulled[k] = 0.0;
  }
  if (!any) {
    return KG_OK;
  }
  at = kg_adjoint_point(a, space, step, stage);
  (void)memcpy(space->r + a->n_inputs, weight, (size_t)n * sizeof *weight);
  space->r[a->n_inputs + n] = running;
  status = a->adjoint->evaluate(&at, space->p, space->work, space->out);
  (void)memcpy(pulled, space->out, (size_t)n * sizeof *pulled);
  of_loads += (step * a->load_step + stage * a->load_row) * a->n_loads;
  for (ptrdiff_t k = 0; k < a->n_loads; ++k) {
    of_loads[k] += space->out[n + k];
  }
  for (ptrdiff_t k = 0; k < a->n_p; ++k) {
    a->of_p[k] += space->out[n + a->n_loads + k];
  }
  return status;
}

KG_EXPORT const kg_function *kg_adjoint_function(const kg_model *model, const char *name) {
  return kg_find_function(model, name);
}

/* The number of doubles in the memory of a run. */
KG_EXPORT size_t kg_adjoint_memory(const kg_adjoints *a) { return kg_adjoint_place(a, NULL, NULL); }

/* Pulls the weights back through all steps. Returns KG_OK, or the negative status of the function that failed. */
KG_EXPORT int kg_adjoint_run(kg_adjoints *a, double *memory) {
  kg_adjoint_space space;
  (void)memset(memory, 0, kg_adjoint_place(a, memory, &space) * sizeof *memory);
  (void)memcpy(space.p, a->p, (size_t)a->model->n_g * sizeof *a->p); /* the changes of parameters are zero */
  a->model->prepare(space.p);
  for (ptrdiff_t step = a->n_steps - 1; step >= 0; --step) {
    int status = kg_adjoint_stages(a, &space, step);
    for (ptrdiff_t k = 0; k < a->n && a->added != NULL; ++k) {
      a->weights[k] += a->added[(step + 1) * a->n + k];
    }
    for (int i = KG_STAGES - 1; i >= 0 && status >= 0; --i) {
      status = kg_adjoint_stage(a, &space, step, i);
    }
    if (status < 0) {
      a->failed = step;
      return status;
    }
    for (int i = 0; i < KG_STAGES; ++i) {
      for (ptrdiff_t k = 0; k < a->n; ++k) {
        a->weights[k] += space.pulled[i * a->n + k];
      }
    }
  }
  return KG_OK;
}

#endif
