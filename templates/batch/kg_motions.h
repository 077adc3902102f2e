/* kg_motions.h - what enters and leaves the lanes of a group: starts, states, reductions and outcomes of motions. */
#ifndef KG_MOTIONS_H
#define KG_MOTIONS_H

#include "kg_group.h"

/* Writes how a motion ended at t. */
static void kg_many_close(const kg_many *m, ptrdiff_t motion, double t, long long status, long long cause) {
  m->status[motion] = status;
  m->cause[motion] = cause;
  m->t_ends[motion] = t;
  m->completed[motion] = 1;
}

/* Writes the results of the motion in a lane, which becomes free. */
static void kg_group_finish(const kg_many *m, kg_group *g, int lane, long long status) {
  const ptrdiff_t motion = g->motion[lane];
  const double kept = g->kept[lane];
  m->steps[motion] = g->steps[lane];
  m->evaluations[motion] = g->evaluations[lane];
  g->active[lane] = 0;
  if (status == KG_FINISHED && m->values != NULL) {
    if (kept - kept == 0.0) {
      m->values[motion] = kept;
    } else {
      g->cause[lane] = status = KG_NOT_FINITE;
    }
  }
  if (status == KG_FINISHED && m->at_end) {
    for (int i = 0; i < KG_N; ++i) {
      m->y[motion * KG_N + i] = g->y[i][lane];
    }
  }
  kg_many_close(m, motion, g->t[lane], status, g->cause[lane]);
}

/* Ends the motions in some lanes. */
static void kg_group_finish_all(const kg_many *m, kg_group *g, kg_mask where, kg_mask status) {
  for (int lane = 0; lane < KG_LANES; ++lane) {
    if (where[lane] != 0) {
      kg_group_finish(m, g, lane, status[lane]);
    }
  }
}

/* Whether the start in the arrays of one motion satisfies the constraints to start_tolerance. */
static int kg_start_is_consistent(const kg_many *m, const kg_group *g) {
  const kg_function *f = m->residuals;
  double moved[KG_N], *values = g->row_out + f->rows, *units = values + f->rows;
  kg_scalar_point at = kg_group_row(g);
  int consistent;
  at.t = m->t_start;
  consistent =
      kg_residual_units(f, KG_N_Q, KG_N_U, &at, g->row_p, g->row_work, values, units, moved, g->row_out) >= 0;
  for (int i = 0; i < f->rows && consistent; ++i) {
    consistent = fabs(values[i]) <= m->start_tolerance * units[i];
  }
  return consistent;
}

/* Reads the start, inputs and parameters of a motion. Returns whether it can start. */
static int kg_group_read(const kg_many *m, const kg_group *g, ptrdiff_t motion) {
  const kg_column *columns = m->arguments;
  int good = 1;
  for (int i = 0; i < KG_N + KG_N_R; ++i) {
    const double x = columns[i].first[motion * columns[i].step];
    good &= x - x == 0.0;
    *(i < KG_N ? g->row + i : g->row_r + (i - KG_N)) = x;
  }
  (void)memcpy(g->row_p, m->p, (size_t)(m->model->n_p + m->model->n_g) * sizeof *m->p);
  for (int i = 0; i < m->n_varied; ++i) {
    const kg_column column = columns[KG_N + KG_N_R + i];
    g->row_p[m->varied[i]] = column.first[motion * column.step];
    good &= kg_all_are_finite(1, g->row_p + m->varied[i]);
  }
  m->model->prepare(g->row_p);
  for (int i = 0; i < m->n_needed; ++i) {
    good &= kg_all_are_finite(1, g->row_p + m->needed[i]);
  }
  return good && (m->residuals == NULL || kg_start_is_consistent(m, g));
}

/* Stores the state of a lane at the next time of t_eval. */
static void kg_group_store(const kg_many *m, kg_group *g, int lane, const kg_lanes *y) {
  double *row = m->y + (g->motion[lane] * m->n_eval + (ptrdiff_t)g->next_eval[lane]) * KG_N;
  for (int i = 0; i < KG_N; ++i) {
    row[i] = y[i][lane];
  }
  ++g->next_eval[lane];
  g->due[lane] = g->next_eval[lane] < m->n_eval ? m->t_eval[g->next_eval[lane]] : (double)NAN;
}

#ifdef KG_MANY_SWITCHES
/* Finds the next stop of a lane, after its present time. */
static void kg_group_aim(const kg_many *m, kg_group *g, int lane) {
  kg_instants *k = g->instants + lane;
  (void)kg_instants_pass(k, g->t[lane], m->t_end); /* the right-hand side fails where this does */
  g->t_end[lane] = k->next;
  g->low[lane] = k->first;
  g->high[lane] = k->last;
}

/* Finds the first stop of the motion that enters a lane. */
static void kg_group_aim_first(const kg_many *m, kg_group *g, int lane) {
  const size_t n_p = (size_t)m->model->n_prepared;
  double *p = g->lane_p + (size_t)lane * n_p;
  const kg_instants instants = {0, NULL, g->switches + lane, m->t_end >= m->t_start ? 1.0 : -1.0, 0.0, 0.0, 0.0};
  (void)memcpy(p, g->row_p, n_p * sizeof *p);
  (void)kg_switches_open(g->switches + lane, m->model, p, g->lane_work + (size_t)lane * kg_switches_work(m->model));
  g->instants[lane] = instants;
  kg_group_aim(m, g, lane);
}
#endif

/* Gives a lane to the motion whose start has been read. */
static void kg_group_enter(const kg_many *m, kg_group *g, int lane, ptrdiff_t motion) {
  for (int i = 0; i < KG_N; ++i) {
    g->y[i][lane] = g->row[i];
  }
  for (int i = 0; i < KG_N_R; ++i) {
    g->r[i][lane] = g->row_r[i];
  }
  for (int i = 0; i < m->model->n_prepared; ++i) {
    g->p[i][lane] = g->row_p[i];
  }
  g->motion[lane] = motion;
  g->active[lane] = -1;
  g->t[lane] = m->t_start;
#ifdef KG_MANY_SWITCHES
  kg_group_aim_first(m, g, lane);
#endif
  g->damping[lane] = g->method.beta[lane] * KG_LEAST_ERROR[lane];
  g->longest[lane] = g->kept[lane] = g->first[lane] = 0.0;
  g->failed[lane] = g->rejection[lane] = g->cause[lane] = g->short_steps[lane] = 0;
  g->steps[lane] = g->evaluations[lane] = g->next_eval[lane] = 0;
  g->obstacle[lane] = KG_STEP_COLLAPSED;
  g->due[lane] = m->n_eval > 0 ? m->t_eval[0] : (double)NAN;
  while (g->due[lane] == m->t_start) {
    kg_group_store(m, g, lane, g->y);
  }
}

/* The quantity that is reduced, in some lanes. */
static kg_lanes kg_group_quantity(const kg_many *m, kg_group *g, kg_mask where) {
  kg_lanes value = KG_C(0.0);
  if (m->quantity == NULL) {
    return g->y[m->component];
  }
#ifdef KG_MANY_QUANTITY
  const kg_point at = kg_group_point(g, g->t, g->y);
  where &= KG_MANY_QUANTITY(&at, g->p, g->work, &value);
#endif
  if (kg_any(where)) {
    const kg_mask failed = g->failed;
    kg_group_redo(m, g, m->quantity, where, g->t, g->y, 1, &value);
    g->failed = failed;
  }
  return value;
}

/* Takes the present values of the quantity in some lanes, whose motions have just started or (`start` 0) have made a
 * step. A value that is not finite makes the result NaN or infinite. */
static void kg_group_reduce(const kg_many *m, kg_group *g, kg_mask where, int start) {
  kg_lanes value = kg_group_quantity(m, g, where), kept = g->kept;
  kg_mask larger;
  if (start) {
    g->first = kg_lanes_select(where, value, g->first);
  }
  if (m->keep == KG_KEEP_MAX_CHANGE) {
    value = KG_ABS(value - g->first);
  } else if (m->keep == KG_KEEP_MAX_ABS) {
    value = KG_ABS(value);
  }
  larger = m->keep == KG_KEEP_MIN ? ~(value >= kept) : ~(value <= kept); /* also where the value is NaN */
  if (start || m->keep == KG_KEEP_FINAL) {
    larger = where;
  }
  larger &= kept == kept;
  g->kept = kg_lanes_select(where & larger, value, kept);
}

#endif
