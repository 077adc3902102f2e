/* kg_shooting.h - programs of kg_stage_program.h from a model: multiple shooting with its sensitivities.
 *
 * Each interval is integrated by the classical Runge-Kutta method, together with the derivatives with respect to the
 * inputs u, which are constant there, and to the states x at its start. The integral of the cost takes the same weights.
 * Costs are sums of squares, weight * base^2 / 2, and of a rest. The Hessian of squares is that of Gauss and Newton; that
 * of the rest is exact; curvature of the motion does not count (Diehl, Bock, Schloeder, Findeisen, Nagy and Allgoewer
 * 2002, "Real-time optimization and nonlinear model predictive control of processes governed by differential-algebraic
 * equations").
 *
 * Besides what kg_stage_program.h needs, who includes this header defines KG_STEPS, the steps of an interval; KG_INPUTS, the
 * number of inputs and constants; KG_SQUARES and KG_REST, the numbers of squares and of rests (0 or 1) of the integrand, KG_END_SQUARES and
 * KG_END_REST those of the cost at the end; KG_PATHS and KG_END_PATHS, the numbers of general rows; KG_CONVEX_FORM, whether
 * all Hessians are convex by their form; kg_places, the places of u in r; and the functions kg_at_point, kg_at_path and
 * kg_at_end, which store values and derivatives, with KG_WORK, the length of their scratch.
 */
#ifndef KG_SHOOTING_H
#define KG_SHOOTING_H

#include "kg_convex.h"
#include "kg_shooting_values.h"
#include "kg_stage_program.h"

static inline int kg_store(kg_evaluation *E, const kg_values *values, kg_real t, const kg_real *x, kg_real *out) {
  kg_real found[KG_MOST_VALUES];
  kg_point at = {t, x, x + KG_COORDINATES, x + KG_COORDINATES + KG_SPEEDS, E->r, NULL, NULL};
  if (values->n == 0) {
    return 0;
  }
  if (values->function(&at, E->p, E->work, found) < 0) {
    return -1;
  }
  for (int i = 0; i < values->n; ++i) {
    out[values->places[i]] = found[i];
  }
  return 0;
}

/* The derivatives of a value at a point with respect to w of its interval: Y are those of the states of the point. */
static inline void kg_chain(const kg_real *record, const kg_real *Y, kg_real *out) {
  for (int j = 0; j < KG_W; ++j) {
    out[j] = j < KG_U ? record[1 + j] : KG_C(0.0);
  }
  for (int i = 0; i < KG_X; ++i) {
    const kg_real slope = record[1 + KG_U + i];
    for (int j = 0; j < KG_W; ++j) {
      out[j] += slope * Y[i * KG_W + j];
    }
  }
}

/* Adds factor * (sum of n squares) to H and g. */
static inline void kg_add_squares(int n, const kg_real *bases, kg_real factor, const kg_real *Y, kg_horizon_stage *S) {
  const kg_real *weights = bases + n * KG_RECORD;
  for (int k = 0; k < n; ++k) {
    const kg_real weight = factor * weights[k * KG_RECORD], value = bases[k * KG_RECORD];
    kg_real slope[KG_W];
    kg_chain(bases + k * KG_RECORD, Y, slope);
    for (int i = 0; i < KG_W; ++i) {
      const kg_real scaled = weight * slope[i];
      S->g[i] += scaled * value;
      for (int j = 0; j < KG_W; ++j) {
        S->H[i * KG_W + j] += scaled * slope[j];
      }
    }
  }
}

/* Adds factor * (value with the second derivatives L) to H and g; the lower triangle of L counts. */
static inline void kg_add_rest(const kg_real *record, const kg_real *L, kg_real factor, const kg_real *Y, kg_horizon_stage *S) {
  kg_real slope[KG_W], row[KG_RECORD], chained[KG_W * KG_W];
  kg_chain(record, Y, slope);
  for (int i = 0; i < KG_W; ++i) {
    S->g[i] += factor * slope[i];
    for (int j = 0; j < KG_W; ++j) {
      row[1 + j] = j <= i ? L[i * KG_W + j] : L[j * KG_W + i];
    }
    kg_chain(row, Y, chained + i * KG_W);
  }
  for (int i = 0; i < KG_W; ++i) {
    for (int j = 0; j < KG_W; ++j) {
      kg_real sum = i < KG_U ? chained[i * KG_W + j] : KG_C(0.0);
      for (int k = 0; k < KG_X; ++k) {
        sum += Y[k * KG_W + i] * chained[(KG_U + k) * KG_W + j];
      }
      S->H[i * KG_W + j] += factor * sum;
    }
  }
}

/* One stage of the Runge-Kutta method at the states z with derivatives Z: rates k with derivatives K, and the cost. */
static inline int kg_runge_kutta_stage(kg_evaluation *E, kg_real t, kg_real factor, const kg_real *z, const kg_real *Z,
                                       kg_horizon_stage *S, kg_real *k, kg_real *K) {
  if (kg_store(E, &kg_at_point, t, z, E->point) < 0) {
    return -1;
  }
  for (int i = 0; i < KG_X; ++i) {
    k[i] = E->point[i * KG_RECORD];
    kg_chain(E->point + i * KG_RECORD, Z, K + i * KG_W);
  }
  kg_add_squares(KG_SQUARES, E->point + KG_X * KG_RECORD, factor, Z, S);
  if (KG_REST) {
    if (kg_store(E, &kg_at_point_rest, t, z, E->rest) < 0) {
      return -1;
    }
    kg_add_rest(E->point + (KG_POINT_ROWS - 1) * KG_RECORD, E->rest, factor, Z, S);
  }
  return 0;
}

/* One step of length h: the states x and their derivatives S->B move to its end. */
static inline int kg_runge_kutta(kg_evaluation *E, kg_real t, kg_real h, kg_real *x, kg_horizon_stage *S) {
  static const kg_real nodes[4] = {KG_C(0.0), KG_C(0.5), KG_C(0.5), KG_C(1.0)};
  static const kg_real weights[4] = {KG_C(1.0) / 6, KG_C(1.0) / 3, KG_C(1.0) / 3, KG_C(1.0) / 6};
  kg_real k[KG_X] = {KG_C(0.0)}, K[KG_X * KG_W] = {KG_C(0.0)}, z[KG_X], Z[KG_X * KG_W];
  kg_real sum[KG_X] = {KG_C(0.0)}, sums[KG_X * KG_W] = {KG_C(0.0)};
  for (int stage = 0; stage < 4; ++stage) {
    const kg_real ahead = nodes[stage] * h, weight = weights[stage] * h;
    for (int i = 0; i < KG_X; ++i) {
      z[i] = x[i] + ahead * k[i];
    }
    for (int i = 0; i < KG_X * KG_W; ++i) {
      Z[i] = S->B[i] + ahead * K[i];
    }
    if (kg_runge_kutta_stage(E, t + ahead, weight, z, Z, S, k, K) < 0) {
      return -1;
    }
    for (int i = 0; i < KG_X; ++i) {
      sum[i] += weight * k[i];
    }
    for (int i = 0; i < KG_X * KG_W; ++i) {
      sums[i] += weight * K[i];
    }
  }
  for (int i = 0; i < KG_X; ++i) {
    x[i] += sum[i];
  }
  for (int i = 0; i < KG_X * KG_W; ++i) {
    S->B[i] += sums[i];
  }
  return 0;
}

/* Derivatives of the states with respect to w at the start of an interval. */
static inline void kg_unit_slopes(kg_real *Y) {
  for (int i = 0; i < KG_X * KG_W; ++i) {
    Y[i] = KG_C(0.0);
  }
  for (int i = 0; i < KG_X; ++i) {
    Y[i * KG_W + KG_U + i] = KG_C(1.0);
  }
}

static inline void kg_clear_cost(kg_horizon_stage *S) {
  for (int i = 0; i < KG_W * KG_W; ++i) {
    S->H[i] = KG_C(0.0);
  }
  for (int i = 0; i < KG_W; ++i) {
    S->g[i] = KG_C(0.0);
  }
}

/* Values of the rows of a stage, and derivatives of the n general ones, from their records. */
static inline void kg_set_rows(const kg_bounds *bounds, const kg_real *u, const kg_real *x, const kg_real *records,
                               kg_horizon_stage *S) {
  for (int row = 0; row < bounds->n_rows; ++row) {
    const int place = bounds->rows[row];
    if (place >= 0) {
      S->value[row] = place < KG_U ? u[place] : x[place - KG_U];
    } else {
      const kg_real *record = records + (-1 - place) * KG_RECORD;
      S->value[row] = record[0];
      for (int j = 0; j < KG_W; ++j) {
        S->C[(-1 - place) * KG_W + j] = record[1 + j];
      }
    }
  }
}

/* The stage of the interval of length h at the time t, with the inputs u, from the states x to those of the next one. */
static inline int kg_shoot(kg_evaluation *E, const kg_bounds *bounds, kg_real t, kg_real h, const kg_real *u,
                           const kg_real *x, const kg_real *next, kg_horizon_stage *S) {
  kg_real y[KG_X];
  for (int i = 0; i < KG_U; ++i) {
    E->r[kg_places[i]] = u[i];
  }
  for (int i = 0; i < KG_X; ++i) {
    y[i] = x[i];
  }
  kg_clear_cost(S);
  kg_unit_slopes(S->B);
  for (int step = 0; step < KG_STEPS; ++step) {
    if (kg_runge_kutta(E, t + step * (h / KG_STEPS), h / KG_STEPS, y, S) < 0) {
      return -1;
    }
  }
  for (int i = 0; i < KG_X; ++i) {
    S->b[i] = y[i] - next[i];
  }
  if (kg_store(E, &kg_at_path, t, x, E->path) < 0) {
    return -1;
  }
  kg_set_rows(bounds, u, x, E->path, S);
  if (!KG_CONVEX_FORM) {
    kg_make_convex(S->H);
  }
  return 0;
}

/* The last stage, at the time t and the states x; inputs have no effect there. */
static inline int kg_finish(kg_evaluation *E, const kg_bounds *bounds, kg_real t, const kg_real *x, kg_horizon_stage *S) {
  const kg_real *records = E->end + 2 * KG_END_SQUARES * KG_RECORD;
  kg_real Y[KG_X * KG_W];
  kg_clear_cost(S);
  kg_unit_slopes(Y);
  if (kg_store(E, &kg_at_end, t, x, E->end) < 0) {
    return -1;
  }
  kg_add_squares(KG_END_SQUARES, E->end, KG_C(1.0), Y, S);
  if (KG_END_REST) {
    if (kg_store(E, &kg_at_end_rest, t, x, E->end_rest) < 0) {
      return -1;
    }
    kg_add_rest(records, E->end_rest, KG_C(1.0), Y, S);
  }
  kg_set_rows(bounds, E->r, x, records + KG_END_REST * KG_RECORD, S);
  if (!KG_CONVEX_FORM) {
    kg_make_convex(S->H);
  }
  return 0;
}

#endif
