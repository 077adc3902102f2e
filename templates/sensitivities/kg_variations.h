/* kg_variations.h - derivatives of a motion along directions, KG_LANES directions in each vector.
 *
 * To be included after the functions of a program of variations on lanes, with the macros of variations.c. The motion is
 * known: each of its steps is taken again together with its derivatives, y and dy side by side, so that the result is the
 * derivative of the steps that were taken. What the changes along all directions have in common is computed once.
 */
#ifndef KG_VARIATIONS_H
#define KG_VARIATIONS_H

#include "kg_direction.h"

#define KG_EXPORT __attribute__((visibility("default")))

/* Vectors that hold a state, and those of a state with its changes along the directions of several groups of lanes. */
#define KG_PACKED ((KG_N + KG_LANES - 1) / KG_LANES)
#define KG_VECTORS(groups) (KG_PACKED + (groups) * KG_N)
/* Most groups that share the evaluations at a state, so that their stages stay in the nearest cache. */
#define KG_MOST_GROUPS 4

/* The changes of a state, of the inputs and of the contact forces; the changes of inputs and contact forces. */
#define KG_CHANGES (KG_N + KG_LOADS)
#define KG_LOADS (KG_N_R + KG_N_FORCES)

/* The steps of a motion, and what varies. All directions are padded to a multiple of the lanes. */
typedef struct {
  const kg_model *model;         /* that of the variations: directions follow its inputs and gains */
  const kg_function *variation;  /* for one direction, where a state has no numbers of its change */
  const kg_function *numbers;    /* y' and the numbers, or NULL */
  const double *p;               /* parameters and gains */
  const double *t;               /* n_steps: where the steps begin, */
  const double *h;               /* their sizes, */
  const double *y;               /* (n_steps + 1, n) and the states there; last the state at the end */
  const double *edges; /* (n_steps, 2): fractions of a step by which stages at its start and its end are moved inside */
  const unsigned char *fresh;    /* n_steps: the step does not begin with the derivative at the end of the last one */
  const double *loads;           /* inputs and contact forces: rows of KG_LOADS values, */
  const double *load_changes;    /* and their changes: rows of (KG_LOADS, n_directions) values */
  const double *p_changes;       /* (n_p, n_directions) */
  double *changes;               /* (n_steps + 1, n, n_directions): of y; the first ones are given */
  double *sizes;                 /* (n, n_directions): the largest changes at the ends of steps */
  double *errors;                /* (n, n_directions): the largest local errors of the changes, 0 without estimates */
  double *dense;                 /* (n_steps, KG_DENSE_ROWS, n, n_directions): dense output of the changes, or NULL */
  const double *times;           /* n_times: where the changes are wanted, in the order of the steps, or NULL */
  const int *first_times;        /* n_steps + 1: those of a step are from its own first one to before that of the next */
  double *at_times;              /* (n_times, n, n_directions): the changes there */
  ptrdiff_t n_steps, n_directions;
  ptrdiff_t load_step, load_row; /* rows of `loads` and `load_changes` from step to step, and from stage to stage */
  ptrdiff_t failed;              /* the step at which the run failed */
} kg_variations;

/* The initial value problem in the meaning of kg_tableaux.h, which is instantiated for lanes: the state, whose components
 * lie side by side, then its changes along the directions of each group, one on each lane. */
typedef struct {
  int n;
  struct kg_directions *own;
} kg_ode;
typedef struct {
  int none;
} kg_statistics;
#define KG_ODE_H

/* The directions of some groups. */
typedef struct kg_directions {
  kg_ode ode;
  const kg_variations *run;
  ptrdiff_t first; /* direction */
  int groups;
  ptrdiff_t step;
  int row;    /* of k, for the next derivative */
  int status; /* KG_OK, or that of the first function that failed */
  double low, high; /* the times between which the step is evaluated */
  kg_direction along;
  kg_lanes *p, *change, *k, *y, *y_new, *scratch, *dense; /* p and change: of each group */
  double *same_p, *state, *loads, *work, *out;  /* what is the same in all lanes; numbers follow y' in out */
  double *row_p, *row_r, *row_out, *row_work; /* one direction */
} kg_directions;

/* Places the arrays of most groups in memory, or with NULL only counts: the number of doubles. */
static size_t kg_directions_place(const kg_variations *v, double *memory, kg_directions *g) {
  const size_t n_p = (size_t)v->model->n_prepared, n_r = (size_t)v->model->n_r, n_forces = KG_N_FORCES + 1, line = 8;
  const size_t of_numbers = v->numbers != NULL ? (size_t)v->numbers->work : 0;
  const size_t work = of_numbers > (size_t)v->variation->work ? of_numbers : (size_t)v->variation->work;
  const size_t n = KG_VECTORS(KG_MOST_GROUPS), inputs = n_p + KG_CHANGES + 1;
  const size_t lanes = KG_MOST_GROUPS * inputs + KG_N_KEPT + (KG_ROWS + 3 + KG_DENSE_ROWS) * n;
  if (g != NULL) {
    const size_t beyond = (size_t)memory % 64 / sizeof(double);
    kg_lanes *next = (kg_lanes *)(void *)(memory + (beyond != 0 ? line - beyond : 0));
    (void)memset(next, 0, lanes * sizeof *next);
    g->p = next;
    g->change = g->p + KG_MOST_GROUPS * n_p;
    g->along.lanes_kept = g->change + KG_MOST_GROUPS * (KG_CHANGES + 1);
    g->k = g->along.lanes_kept + KG_N_KEPT;
    g->y = g->k + KG_ROWS * n;
    g->y_new = g->y + n;
    g->scratch = g->y_new + n;
    g->dense = g->scratch + n;
    g->same_p = (double *)(void *)(g->dense + KG_DENSE_ROWS * n);
    g->state = g->same_p + n_p;
    g->loads = g->state + KG_N;
    g->work = g->loads + KG_LOADS + n_forces;
    g->out = g->work + work;
    g->row_p = g->out + KG_N + KG_N_WORK;
    g->row_r = g->row_p + n_p;
    g->row_out = g->row_r + n_r;
    g->row_work = g->row_out + 2 * KG_N;
  }
  return line + KG_LANES * lanes + 2 * (n_p + work) + n_r + n_forces + KG_LOADS + KG_N_WORK + 4 * (size_t)KG_N;
}

KG_INLINE kg_lanes kg_loaded(const double *from) {
  kg_lanes x;
  (void)memcpy(&x, from, sizeof x);
  return x;
}

/* The first direction of a group. */
KG_INLINE ptrdiff_t kg_directions_first(const kg_directions *g, int group) {
  return g->first + (ptrdiff_t)group * KG_LANES;
}

/* The parameters of all directions, and the constants that depend on them. */
static void kg_directions_prepare(kg_directions *g) {
  const kg_variations *v = g->run;
  const int n_p = v->model->n_p, n_given = v->model->n_g; /* parameters and gains; the changes of parameters follow */
  for (int i = 0; i < n_given + n_p; ++i) {
    g->same_p[i] = i < n_given ? v->p[i] : 0.0;
  }
  v->model->prepare(g->same_p);
  for (int group = 0; group < g->groups; ++group) {
    kg_lanes *p = g->p + group * v->model->n_prepared;
    for (int i = 0; i < n_given; ++i) {
      p[i] = KG_SPREAD(v->p[i]);
    }
    for (int i = 0; i < n_p; ++i) {
      p[n_given + i] = kg_loaded(v->p_changes + i * v->n_directions + kg_directions_first(g, group));
    }
#ifdef KG_ON_LANES
    (void)prepare(p);
#endif
  }
  g->along.point.q = g->state;
  g->along.point.u = g->state + KG_N_Q;
  g->along.point.s = g->state + KG_N - KG_N_S;
  g->along.point.r = g->loads;
  g->along.point.forces = g->loads + KG_N_R;
}

/* The inputs and contact forces of the next evaluation, and their changes. */
static void kg_directions_load(kg_directions *g) {
  const kg_variations *v = g->run;
  const ptrdiff_t place = g->step * v->load_step + g->row * v->load_row;
  for (int i = 0; i < KG_LOADS; ++i) {
    g->loads[i] = v->loads[place * KG_LOADS + i];
  }
  for (int group = 0; group < g->groups; ++group) {
    const double *changes = v->load_changes + place * KG_LOADS * v->n_directions + kg_directions_first(g, group);
    kg_lanes *change = g->change + group * (KG_CHANGES + 1) + KG_N;
    for (int i = 0; i < KG_LOADS; ++i) {
      change[i] = kg_loaded(changes + i * v->n_directions);
    }
  }
}

/* Evaluates the variation with the general code for one direction after the other; out receives y'. */
static __attribute__((cold, noinline)) void kg_directions_redo(kg_directions *g, int group, kg_lanes *changes) {
  const kg_variations *v = g->run;
  const kg_lanes *p = g->p + group * v->model->n_prepared, *change = g->change + group * (KG_CHANGES + 1);
  kg_scalar_point at = g->along.point;
  at.r = g->row_r;
  for (int lane = 0; lane < KG_LANES; ++lane) {
    int status;
    for (int i = 0; i < KG_N_R; ++i) {
      g->row_r[i] = g->loads[i];
    }
    for (int i = KG_N_R; i < v->model->n_r; ++i) {
      g->row_r[i] = change[i - KG_N_R][lane];
    }
    for (int i = 0; i < v->model->n_p + v->model->n_g; ++i) {
      g->row_p[i] = p[i][lane];
    }
    v->model->prepare(g->row_p);
    status = v->variation->evaluate(&at, g->row_p, g->row_work, g->row_out);
    g->status = status < 0 && g->status == KG_OK ? status : g->status;
    for (int i = 0; i < KG_N; ++i) {
      g->out[i] = g->row_out[i];
      changes[i][lane] = g->row_out[KG_N + i];
    }
  }
}

/* Moves a stage at the start or at the end of a step inside, where a law has a kink: its slopes are those of the step. */
static void kg_directions_move(kg_directions *g) {
  const double node = kg_nodes[g->row], *states = g->run->y + g->step * KG_N, *edges = g->run->edges + 2 * g->step;
  const double part = node == 0.0 ? edges[0] : node == 1.0 ? -edges[1] : 0.0;
  for (int i = 0; i < KG_N && part != 0.0; ++i) {
    g->state[i] += part * (states[KG_N + i] - states[i]);
  }
}

/* The changes of y' along the directions of a group, at the state whose numbers are known if ``known``. */
static void kg_directions_evaluate(kg_directions *g, int group, int known, const kg_lanes *y, kg_lanes *changes) {
  kg_lanes *change = g->change + group * (KG_CHANGES + 1);
  (void)memcpy(change, y, KG_N * sizeof *y);
#ifdef KG_ON_LANES
  if (known) {
    const int n_given = g->run->model->n_g;
    g->along.lanes_change = change;
    g->along.lanes_p = g->p + group * g->run->model->n_prepared + n_given;
    g->along.lanes_c = g->along.lanes_p + g->run->model->n_p;
    g->along.lanes_out = changes;
    kg_evaluate_changes(&g->along, g->same_p, g->out + KG_N, NULL);
    return;
  }
#endif
  (void)known;
  kg_directions_redo(g, group, changes);
}

/* (y', dy') at (y, dy) in all lanes. */
static __attribute__((noinline)) int kg_ode_evaluate(const kg_ode *ode, const kg_statistics *statistics, kg_lanes t,
                                                     const kg_lanes *y, kg_lanes *rates) {
  kg_directions *g = ode->own;
  const kg_variations *v = g->run;
  /* The derivative at the end begins the next step. It is taken at the known state there: rounding errors would grow from
   * step to step where the step is at the limit of stability, because the next step begins at that state. */
  const double *state = g->row == KG_STAGES ? v->y + (g->step + 1) * KG_N : (const double *)(const void *)y;
  int known = 0;
  (void)statistics;
  g->along.point.t = t[0] < g->low ? g->low : t[0] > g->high ? g->high : t[0];
  if (v->load_step != 0 || v->load_row != 0) {
    kg_directions_load(g);
  }
  (void)memcpy(g->state, state, KG_N * sizeof *state);
  kg_directions_move(g);
#ifdef KG_ON_LANES
  known = v->numbers->evaluate(&g->along.point, g->same_p, g->work, g->out) == KG_OK;
#endif
  for (int group = 0; group < g->groups; ++group) {
    const ptrdiff_t place = KG_VECTORS(group);
    kg_directions_evaluate(g, group, known, y + place, rates + place);
  }
  (void)memcpy(rates, g->out, KG_N * sizeof *g->out);
  ++g->row;
  return KG_OK;
}

/* z = y + factor * fresh */
KG_INLINE void kg_add_fresh(int n, kg_lanes factor, const kg_lanes *fresh, const kg_lanes *y, kg_lanes *z) {
  for (int i = 0; i < n; ++i) {
    z[i] = y[i] + factor * fresh[i];
  }
}

#undef KG_CALL
#define KG_CALL(result, call) ((void)(result), (void)(call))
#define KG_ERROR_BLOCK 1
#define KG_ALL_LATE
#undef KG_TINY
#define KG_TINY KG_C(DBL_MIN)
#include "kg_tableaux.h"

#include "kg_dense.h"

/* Copies rows of changes, one for each component, to the columns of all groups. */
static void kg_directions_copy(const kg_directions *g, const kg_lanes *values, double *to) {
  for (int group = 0; group < g->groups; ++group) {
    for (ptrdiff_t i = 0; i < KG_N; ++i) {
      (void)memcpy(to + i * g->run->n_directions + kg_directions_first(g, group), values + KG_VECTORS(group) + i,
                   sizeof *values);
    }
  }
}

/* Computes the dense output of the step of size h. */
static void kg_directions_interpolate(kg_directions *g, kg_lanes t, kg_lanes h) {
  const int n = g->ode.n;
  kg_lanes *end = g->k + KG_STAGES * n;
#if !KG_ESTIMATES_END
  (void)kg_ode_evaluate(&g->ode, NULL, t + h, g->y_new, end);
#endif
#ifdef KG_TAKE_DENSE
  (void)KG_TAKE_DENSE(&g->ode, NULL, t, h, g->y, g->k, g->scratch);
#endif
  kg_dense_ends(n, h, g->y, g->y_new, g->k, end, g->dense);
#ifdef KG_FILL_DENSE
  KG_FILL_DENSE(n, h, g->k, g->dense);
#endif
  (void)t;
}

/* Keeps the dense output of a step from t of size h, and the changes at times inside it, if they are wanted. */
static void kg_directions_inside(kg_directions *g, kg_lanes t, kg_lanes h) {
  const kg_variations *v = g->run;
  const int first = v->times != NULL ? v->first_times[g->step] : 0;
  const int end = v->times != NULL ? v->first_times[g->step + 1] : 0;
  const ptrdiff_t size = KG_N * v->n_directions;
  if (v->dense == NULL && first == end) {
    return;
  }
  kg_directions_interpolate(g, t, h);
  for (ptrdiff_t row = 0; row < KG_DENSE_ROWS && v->dense != NULL; ++row) {
    kg_directions_copy(g, g->dense + row * g->ode.n, v->dense + (g->step * KG_DENSE_ROWS + row) * size);
  }
  for (ptrdiff_t k = first; k < end; ++k) {
    kg_dense_evaluate(KG_DENSE_ROWS, g->ode.n, g->dense, t, h, KG_SPREAD(v->times[k]), g->scratch);
    kg_directions_copy(g, g->scratch, v->at_times + k * size);
  }
}

/* Keeps the changes at the end of a step, and the largest ones. */
static void kg_directions_note(kg_directions *g, int group) {
  const kg_variations *v = g->run;
  double *changes = v->changes + (g->step + 1) * KG_N * v->n_directions + kg_directions_first(g, group);
  double *sizes = v->sizes + kg_directions_first(g, group);
  for (int i = 0; i < KG_N; ++i) {
    const kg_lanes change = g->y_new[KG_VECTORS(group) + i];
    const kg_lanes size = KG_MAX(kg_loaded(sizes + i * v->n_directions), KG_ABS(change));
    (void)memcpy(changes + i * v->n_directions, &change, sizeof change);
    (void)memcpy(sizes + i * v->n_directions, &size, sizeof size);
  }
}

#ifdef KG_ESTIMATES
/* Keeps the largest local errors of the changes, for a step of size h. Two estimates are combined as kg_stepper_squared()
 * combines them. */
static void kg_directions_estimate(kg_directions *g, int group, double h) {
  const kg_variations *v = g->run;
  for (int i = 0; i < KG_N; ++i) {
    double *kept = v->errors + i * v->n_directions + kg_directions_first(g, group);
    kg_lanes sums[2] = {{0}, {0}}, size;
    for (int j = 0; j < KG_ROWS; ++j) {
      for (int e = 0; e < KG_ESTIMATES; ++e) {
        if (kg_estimates[e][j] != 0.0) {
          sums[e] += kg_estimates[e][j] * g->k[j * g->ode.n + KG_VECTORS(group) + i];
        }
      }
    }
    size = KG_ABS(h * sums[0]);
#if KG_ESTIMATES > 1
    size *= KG_ABS(sums[0]) / KG_SQRT(sums[0] * sums[0] + 0.01 * sums[1] * sums[1] + DBL_MIN);
#endif
    size = KG_MAX(kg_loaded(kept), size);
    (void)memcpy(kept, &size, sizeof size);
  }
}
#endif

/* The state and its changes at the start of the step. */
static void kg_directions_start(kg_directions *g) {
  const kg_variations *v = g->run;
  (void)memcpy(g->y, v->y + g->step * KG_N, KG_N * sizeof *v->y);
  for (int group = 0; group < g->groups; ++group) {
    const double *changes = v->changes + g->step * KG_N * v->n_directions + kg_directions_first(g, group);
    for (int i = 0; i < KG_N; ++i) {
      g->y[KG_VECTORS(group) + i] = kg_loaded(changes + i * v->n_directions);
    }
  }
}

/* Takes one step with its derivative along the directions. */
static void kg_directions_step(kg_directions *g) {
  const kg_variations *v = g->run;
  const double t_old = v->t[g->step], size = v->h[g->step], t_new = t_old + size;
  const double away = 8.0 * DBL_EPSILON, sign = size < 0.0 ? -1.0 : 1.0;
  const double from = t_old + sign * away * fabs(t_old), to = t_new - sign * away * fabs(t_new);
  const kg_lanes t = KG_SPREAD(t_old), h = KG_SPREAD(size);
  g->low = from < to ? from : to;
  g->high = from < to ? to : from;
  kg_directions_start(g);
  g->row = 0;
  if (KG_ESTIMATES_END && v->fresh[g->step] == 0) {
    (void)memcpy(g->k, g->k + KG_STAGES * g->ode.n, (size_t)g->ode.n * sizeof *g->k);
    g->row = 1;
  } else {
    (void)kg_ode_evaluate(&g->ode, NULL, t, g->y, g->k);
  }
  (void)KG_TAKE(&g->ode, NULL, t, h, g->y, g->k, g->y_new);
  for (int group = 0; group < g->groups; ++group) {
#ifdef KG_ESTIMATES
    kg_directions_estimate(g, group, size);
#endif
    kg_directions_note(g, group);
  }
  kg_directions_inside(g, t, h);
}

KG_EXPORT int kg_variations_lanes(void) { return KG_LANES; }

/* The function of a model, or NULL. */
KG_EXPORT const kg_function *kg_variations_function(const kg_model *model, const char *name) {
  return kg_find_function(model, name);
}

/* The number of doubles in the memory of a run. */
KG_EXPORT size_t kg_variations_memory(const kg_variations *v) { return kg_directions_place(v, NULL, NULL); }

/* The groups that are computed together, from the direction ``first``. */
static int kg_directions_groups(const kg_variations *v, ptrdiff_t first) {
  const ptrdiff_t left = (v->n_directions - first) / KG_LANES;
  return left < KG_MOST_GROUPS ? (int)left : KG_MOST_GROUPS;
}

/* Computes the changes at the end of all steps. Returns KG_OK, or the negative status of the function that failed. */
KG_EXPORT int kg_variations_run(kg_variations *v, double *memory) {
  kg_directions directions = {0}, *g = &directions;
  g->run = v;
  g->ode.own = g;
  for (; g->first < v->n_directions; g->first += (ptrdiff_t)g->groups * KG_LANES) {
    g->groups = kg_directions_groups(v, g->first);
    g->ode.n = KG_VECTORS(g->groups);
    (void)kg_directions_place(v, memory, g);
    kg_directions_prepare(g);
    g->step = g->row = 0;
    kg_directions_load(g);
    for (; g->step < v->n_steps; ++g->step) {
      kg_directions_step(g);
      if (g->status < 0) {
        v->failed = g->step;
        return g->status;
      }
    }
  }
  return KG_OK;
}

#endif
