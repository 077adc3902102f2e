/* kg_stage_program.h - quadratic programs of optimal control, stage by stage.
 *
 * Stage k has the variables w = (u, x), changes of inputs and states, and
 *
 *   minimize    sum over k of w^T H w / 2 + g^T w, and the penalties of soft sides
 *   subject to  x of the next stage = B w + b, x of the first stage given, and the sides of the stage.
 *
 * The last stage has no inputs: what belongs to u there is zero. A row is an entry of w or a general linear function of
 * it, plus its value at w = 0. A side is one bound of a row. A soft side may be violated, at the cost of `penalty` times
 * the violation; thus a program whose inputs have bounds with low < high always has a solution.
 *
 * Who includes this header defines KG_X and KG_U, the numbers of states and inputs; KG_INTERVALS, the number of stages
 * before the last one; and KG_STAGE_ROWS, KG_GENERAL and KG_SIDES, the most rows, general rows and sides of a stage, at least 1.
 */
#ifndef KG_STAGE_PROGRAM_H
#define KG_STAGE_PROGRAM_H

#include "kg_base.h"

#define KG_W (KG_U + KG_X)

/* sign * (row - bound) >= 0; `size` is a typical distance from the bound; penalty < 0: the side is hard. */
typedef struct {
  int row;
  kg_real sign, bound, size, penalty;
} kg_side;

/* rows: the place in w of each row, or -1 - k for the general row k. */
typedef struct {
  int n_rows, n_sides;
  const int *rows;
  const kg_side *sides;
} kg_bounds;

typedef struct {
  /* the program; H is symmetric and full */
  kg_real H[KG_W * KG_W], g[KG_W], B[KG_X * KG_W], b[KG_X];
  kg_real C[KG_GENERAL * KG_W], value[KG_STAGE_ROWS];
  /* the iterate: distances of sides from their bounds with multipliers, violations with multipliers */
  kg_real w[KG_W], distance[KG_SIDES], multiplier[KG_SIDES], excess[KG_SIDES], rest[KG_SIDES];
  /* at w: H w + g, B w + b less the states of the next stage, distances from the bounds */
  kg_real slope[KG_W], defect[KG_X], margin[KG_SIDES];
  /* the step: changes of w and of the iterate, the targets of both products */
  kg_real step[KG_W], change[4][KG_SIDES], target[2][KG_SIDES];
  /* multiplier / distance, rest / excess; slope with the sides; factors of Riccati's recursion */
  kg_real weight[KG_SIDES], firm[KG_SIDES], G[KG_W];
  kg_real Lu[KG_U * KG_U], Lx[KG_X * KG_U], P[KG_X * KG_X], l[KG_U], p[KG_X];
} kg_horizon_stage;

typedef struct {
  kg_horizon_stage stage[KG_INTERVALS + 1];
} kg_program;

/* The change of a row along w. */
static inline kg_real kg_row(const kg_horizon_stage *S, const kg_bounds *bounds, int row, const kg_real *w) {
  const int place = bounds->rows[row];
  kg_real sum = KG_C(0.0);
  if (place >= 0) {
    return w[place];
  }
  for (int j = 0; j < KG_W; ++j) {
    sum += S->C[(-1 - place) * KG_W + j] * w[j];
  }
  return sum;
}

/* The distance of w from a bound, negative where it is violated. */
static inline kg_real kg_margin(const kg_horizon_stage *S, const kg_bounds *bounds, const kg_side *side, const kg_real *w) {
  return side->sign * (S->value[side->row] + kg_row(S, bounds, side->row, w) - side->bound);
}

/* out += factor * gradient of the row */
static inline void kg_add_row(const kg_horizon_stage *S, const kg_bounds *bounds, int row, kg_real factor, kg_real *out) {
  const int place = bounds->rows[row];
  if (place >= 0) {
    out[place] += factor;
    return;
  }
  for (int j = 0; j < KG_W; ++j) {
    out[j] += factor * S->C[(-1 - place) * KG_W + j];
  }
}

/* M += weight * gradient of the row times its transpose */
static inline void kg_add_square(const kg_horizon_stage *S, const kg_bounds *bounds, int row, kg_real weight, kg_real *M) {
  const int place = bounds->rows[row];
  if (place >= 0) {
    M[place * KG_W + place] += weight;
    return;
  }
  for (int i = 0; i < KG_W; ++i) {
    const kg_real factor = weight * S->C[(-1 - place) * KG_W + i];
    for (int j = 0; j < KG_W; ++j) {
      M[i * KG_W + j] += factor * S->C[(-1 - place) * KG_W + j];
    }
  }
}

#endif
