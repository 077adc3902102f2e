/* kg_interior.h - solves a program of kg_stage_program.h by an interior-point method.
 *
 * Each side has a distance t >= 0 with a multiplier l >= 0, and a soft one a violation s >= 0 with a multiplier n >= 0:
 * margin + s = t, penalty = l + n. Mehrotra's method (1992, "On the implementation of a primal-dual interior point
 * method") takes steps towards t l = s n = mu; a step is a program without sides, which Riccati's recursion solves, as in
 * HPIPM. If the solution without sides respects them, it is taken, so that programs of which no side is active take one
 * recursion. Steps are changes of the variables: weights of active sides are so large that a step has few correct digits, and
 * the next iteration corrects it.
 *
 * Who includes this header defines kg_bounds_of(k), the sides of stage k.
 */
#ifndef KG_INTERIOR_H
#define KG_INTERIOR_H

#include "kg_riccati.h"

/* Distances at the start, as parts of the sizes of the sides; least distance of a step from the boundary; steps below
 * which the method has stalled. */
#define KG_INSIDE KG_C(0.1)
#define KG_REDUCED KG_C(0.995)
#define KG_STALLED KG_C(1e-8)
/* The part of a cost far from the solution that counts at it. */
#define KG_FAR KG_C(1e-8)

typedef struct {
  kg_real mu;       /* mean product of the iterate */
  kg_real scale;    /* mean product with which mu is compared */
  kg_real infeasible; /* what remains of the residuals of the start, as a fraction */
  int count;        /* of products */
  int iterations;
  int solved;
} kg_progress;

static inline int kg_is_soft(const kg_side *side) { return side->penalty > KG_C(0.0); }

/* Factors of all stages with the weights of their sides; without: weights of zero. */
static inline void kg_factor_all(kg_program *Q, int with_sides) {
  for (int k = KG_INTERVALS; k >= 0; --k) {
    kg_horizon_stage *S = Q->stage + k;
    const kg_bounds *bounds = kg_bounds_of(k);
    kg_real M[KG_W * KG_W];
    for (int i = 0; i < KG_W * KG_W; ++i) {
      M[i] = S->H[i];
    }
    for (int i = 0; with_sides && i < bounds->n_sides; ++i) {
      const kg_side *side = bounds->sides + i;
      const kg_real weight = S->multiplier[i] / S->distance[i];
      S->weight[i] = weight;
      if (kg_is_soft(side)) {
        S->firm[i] = S->rest[i] / S->excess[i];
        kg_add_square(S, bounds, side->row, weight * (S->firm[i] / (S->firm[i] + weight)), M);
      } else {
        kg_add_square(S, bounds, side->row, weight, M);
      }
    }
    kg_factor(Q, k, M);
  }
}

/* What depends on w: slopes, defects, and distances from the bounds. */
static inline void kg_place(kg_program *Q) {
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    kg_horizon_stage *S = Q->stage + k;
    const kg_bounds *bounds = kg_bounds_of(k);
    for (int i = 0; i < KG_W; ++i) {
      S->slope[i] = S->g[i];
      for (int j = 0; j < KG_W; ++j) {
        S->slope[i] += S->H[i * KG_W + j] * S->w[j];
      }
    }
    for (int i = 0; k < KG_INTERVALS && i < KG_X; ++i) {
      S->defect[i] = S->b[i] - Q->stage[k + 1].w[KG_U + i];
      for (int j = 0; j < KG_W; ++j) {
        S->defect[i] += S->B[i * KG_W + j] * S->w[j];
      }
    }
    for (int i = 0; i < bounds->n_sides; ++i) {
      S->margin[i] = kg_margin(S, bounds, bounds->sides + i, S->w);
    }
  }
}

/* The gradients of all stages with those of the sides, for the targets of the products. */
static inline void kg_pull_sides(kg_program *Q) {
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    kg_horizon_stage *S = Q->stage + k;
    const kg_bounds *bounds = kg_bounds_of(k);
    for (int j = 0; j < KG_W; ++j) {
      S->G[j] = S->slope[j];
    }
    for (int i = 0; i < bounds->n_sides; ++i) {
      const kg_side *side = bounds->sides + i;
      const kg_real weight = S->weight[i], distance = S->distance[i], first = S->target[0][i] / distance;
      kg_real force = first - weight * (S->margin[i] - distance);
      if (kg_is_soft(side)) {
        const kg_real firm = S->firm[i], share = weight / (firm + weight), excess = S->excess[i];
        const kg_real pull = first + S->target[1][i] / excess - side->penalty;
        force = first - share * (pull + firm * (S->margin[i] + excess - distance));
      }
      kg_add_row(S, bounds, side->row, -side->sign * force, S->G);
    }
  }
}

/* Changes of distances, multipliers, violations and their multipliers along the steps. */
static inline void kg_changes(kg_program *Q) {
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    kg_horizon_stage *S = Q->stage + k;
    const kg_bounds *bounds = kg_bounds_of(k);
    for (int i = 0; i < bounds->n_sides; ++i) {
      const kg_side *side = bounds->sides + i;
      const kg_real weight = S->weight[i], distance = S->distance[i], first = S->target[0][i] / distance;
      kg_real moved = S->margin[i] + side->sign * kg_row(S, bounds, side->row, S->step) - distance;
      if (kg_is_soft(side)) {
        const kg_real excess = S->excess[i], firm = S->firm[i], second = S->target[1][i] / excess;
        moved += excess;
        S->change[2][i] = (first + second - side->penalty - weight * moved) / (firm + weight);
        S->change[3][i] = second - S->rest[i] - firm * S->change[2][i];
        moved += S->change[2][i];
      }
      S->change[0][i] = moved;
      S->change[1][i] = first - S->multiplier[i] - weight * moved;
    }
  }
}

/* The largest step, at most 1, that keeps one positive value and its change positive. */
static inline kg_real kg_longest(kg_real longest, kg_real value, kg_real change) {
  return longest * change < -value ? -value / change : longest;
}

static inline kg_real kg_step(const kg_program *Q) {
  kg_real longest = KG_C(1.0);
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    const kg_horizon_stage *S = Q->stage + k;
    const kg_bounds *bounds = kg_bounds_of(k);
    for (int i = 0; i < bounds->n_sides; ++i) {
      longest = kg_longest(longest, S->distance[i], S->change[0][i]);
      longest = kg_longest(longest, S->multiplier[i], S->change[1][i]);
      if (kg_is_soft(bounds->sides + i)) {
        longest = kg_longest(longest, S->excess[i], S->change[2][i]);
        longest = kg_longest(longest, S->rest[i], S->change[3][i]);
      }
    }
  }
  return longest;
}

/* The mean product after a step. */
static inline kg_real kg_mean(const kg_program *Q, kg_real step, int count) {
  kg_real sum = KG_C(0.0);
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    const kg_horizon_stage *S = Q->stage + k;
    const kg_bounds *bounds = kg_bounds_of(k);
    for (int i = 0; i < bounds->n_sides; ++i) {
      sum += (S->distance[i] + step * S->change[0][i]) * (S->multiplier[i] + step * S->change[1][i]);
      if (kg_is_soft(bounds->sides + i)) {
        sum += (S->excess[i] + step * S->change[2][i]) * (S->rest[i] + step * S->change[3][i]);
      }
    }
  }
  return sum / (kg_real)count;
}

/* Targets of the products: `centre`, less the products of the changes of the predictor if there is one. */
static inline void kg_set_targets(kg_program *Q, kg_real centre, kg_real corrected) {
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    kg_horizon_stage *S = Q->stage + k;
    const int n_sides = kg_bounds_of(k)->n_sides;
    for (int i = 0; i < n_sides; ++i) {
      S->target[0][i] = centre - corrected * S->change[0][i] * S->change[1][i];
      S->target[1][i] = centre - corrected * S->change[2][i] * S->change[3][i];
    }
  }
}

static inline void kg_move(kg_program *Q, kg_real step) {
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    kg_horizon_stage *S = Q->stage + k;
    const int n_sides = kg_bounds_of(k)->n_sides;
    for (int j = 0; j < KG_W; ++j) {
      S->w[j] += step * S->step[j];
    }
    for (int i = 0; i < n_sides; ++i) {
      S->distance[i] += step * S->change[0][i];
      S->multiplier[i] += step * S->change[1][i];
      S->excess[i] += step * S->change[2][i];
      S->rest[i] += step * S->change[3][i];
    }
  }
}

/* The solution without sides in w; returns whether it respects them. */
static inline int kg_solve_free(kg_program *Q) {
  int inside = 1;
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    for (int j = 0; j < KG_W; ++j) {
      Q->stage[k].w[j] = KG_C(0.0);
    }
  }
  kg_place(Q);
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    for (int j = 0; j < KG_W; ++j) {
      Q->stage[k].G[j] = Q->stage[k].g[j];
    }
  }
  kg_factor_all(Q, 0);
  kg_sweep(Q);
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    for (int j = 0; j < KG_W; ++j) {
      Q->stage[k].w[j] = Q->stage[k].step[j];
    }
  }
  for (int i = 0; i < KG_X; ++i) {
    Q->stage[0].step[KG_U + i] = KG_C(0.0);
  }
  kg_place(Q);
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    const kg_bounds *bounds = kg_bounds_of(k);
    for (int i = 0; i < bounds->n_sides; ++i) {
      inside = inside && Q->stage[k].margin[i] >= -KG_C(64.0) * KG_EPSILON * bounds->sides[i].size;
    }
  }
  return inside;
}

/* What w costs, with the penalties, for each product. */
static inline kg_real kg_typical_product(const kg_program *Q, int count) {
  kg_real sum = KG_C(0.0);
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    const kg_horizon_stage *S = Q->stage + k;
    const kg_bounds *bounds = kg_bounds_of(k);
    for (int i = 0; i < KG_W; ++i) {
      sum += KG_ABS(S->w[i]) * (KG_ABS(S->slope[i] - S->g[i]) + KG_ABS(S->g[i]));
    }
    for (int i = 0; i < bounds->n_sides; ++i) {
      const kg_side *side = bounds->sides + i;
      sum -= kg_is_soft(side) ? side->penalty * KG_MIN(S->margin[i], KG_C(0.0)) : KG_C(0.0);
    }
  }
  return KG_MAX(sum / (kg_real)count, KG_TINY / KG_EPSILON);
}

/* An iterate inside of all sides, with products of `mu`. */
static inline void kg_enter(kg_program *Q, kg_real mu) {
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    kg_horizon_stage *S = Q->stage + k;
    const kg_bounds *bounds = kg_bounds_of(k);
    for (int i = 0; i < bounds->n_sides; ++i) {
      const kg_side *side = bounds->sides + i;
      const kg_real margin = S->margin[i], least = KG_INSIDE * side->size;
      S->distance[i] = KG_MAX(kg_is_soft(side) ? KG_ABS(margin) : margin, least);
      S->multiplier[i] = mu / S->distance[i];
      S->excess[i] = KG_C(0.0);
      S->rest[i] = KG_C(0.0);
      for (int j = 0; j < 4; ++j) {
        S->change[j][i] = KG_C(0.0); /* those of a program before may not be finite */
      }
      if (kg_is_soft(side)) {
        S->multiplier[i] = KG_MIN(S->multiplier[i], KG_C(0.5) * side->penalty);
        S->rest[i] = side->penalty - S->multiplier[i];
        S->excess[i] = KG_MAX(mu / S->rest[i], S->distance[i] - margin);
      }
    }
  }
}

/* One iteration: predictor, corrector, step. */
static inline void kg_iterate(kg_program *Q, kg_progress *now, kg_real least) {
  kg_real affine, step;
  kg_factor_all(Q, 1);
  kg_set_targets(Q, KG_C(0.0), KG_C(0.0));
  kg_pull_sides(Q);
  kg_sweep(Q);
  kg_changes(Q);
  step = kg_step(Q);
  affine = kg_mean(Q, step, now->count) / now->mu;
  kg_set_targets(Q, KG_MAX(affine * affine * affine * now->mu, least), step);
  kg_pull_sides(Q);
  kg_sweep(Q);
  kg_changes(Q);
  step = kg_step(Q);
  if (step < KG_C(1.0)) {
    step *= KG_MAX(KG_REDUCED, KG_C(1.0) - now->mu / now->scale);
  }
  kg_move(Q, step);
  kg_place(Q);
  now->mu = kg_mean(Q, KG_C(0.0), now->count);
  now->infeasible *= KG_C(1.0) - step;
  now->iterations += 1;
  now->solved = step > KG_STALLED ? 0 : -1;
}

/* The mean cost of moving a side by its size. */
static inline kg_real kg_typical_force(const kg_program *Q, int count) {
  kg_real sum = KG_C(0.0);
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    const kg_bounds *bounds = kg_bounds_of(k);
    for (int i = 0; i < bounds->n_sides; ++i) {
      sum += Q->stage[k].multiplier[i] * bounds->sides[i].size;
    }
  }
  return sum / (kg_real)count;
}

/* What moving back by w would cost at w, for each product: what the program costs far from w does not count, as where
 * the plan before was far from the measured state. */
static inline kg_real kg_present_product(const kg_program *Q, int count) {
  kg_real sum = KG_C(0.0);
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    const kg_horizon_stage *S = Q->stage + k;
    for (int i = 0; i < KG_W; ++i) {
      const kg_real rounding = KG_FAR * (KG_ABS(S->slope[i] - S->g[i]) + KG_ABS(S->g[i]));
      sum += KG_ABS(S->w[i]) * (KG_ABS(S->slope[i]) + rounding);
    }
  }
  return KG_MAX(sum / (kg_real)count, KG_TINY / KG_EPSILON);
}

/* Whether products and residuals are small. The solution without sides, from which the scale is at first, can cost much
 * more than w, and w costs little where it is a small correction. */
static inline int kg_is_small(const kg_program *Q, kg_progress *now, kg_real tolerance) {
  if (now->mu > tolerance * now->scale || now->infeasible > tolerance) {
    return 0;
  }
  now->scale = KG_MIN(now->scale, kg_present_product(Q, now->count) + kg_typical_force(Q, now->count));
  return now->mu <= tolerance * now->scale;
}

/* Solves the program to products of `tolerance` relative to what it costs; the states of the first stage stand in its
 * `step`. The solution is in w of the stages. */
static inline kg_progress kg_solve(kg_program *Q, kg_real tolerance, int max_iterations) {
  kg_progress now = {KG_C(0.0), KG_C(1.0), KG_C(1.0), 0, 0, 0};
  if (kg_solve_free(Q)) {
    now.solved = 1;
    return now;
  }
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    const kg_bounds *bounds = kg_bounds_of(k);
    for (int i = 0; i < bounds->n_sides; ++i) {
      now.count += 1 + kg_is_soft(bounds->sides + i);
    }
  }
  now.scale = kg_typical_product(Q, now.count);
  kg_enter(Q, now.scale);
  now.mu = kg_mean(Q, KG_C(0.0), now.count);
  while (now.solved == 0 && now.iterations < max_iterations) {
    kg_iterate(Q, &now, KG_C(0.1) * tolerance * now.scale);
    if (!KG_ISFINITE(now.mu)) {
      now.solved = -1;
    } else if (kg_is_small(Q, &now, tolerance)) {
      now.solved = 1;
    } else {
      /* further iterations are needed */
    }
  }
  return now;
}

#endif
