/* kg_noise.h - which residuals of constraint rows are only noise, near states where rows become dependent.
 *
 * Where rows become dependent (a four-bar in its flat position), they determine the coordinates less and less well
 * along one direction: if a row of phi_q keeps only the length l beside the other rows, then a residual with rounding
 * error e gives the coordinate along this direction with an error e / l. The row of the speeds depends on that
 * coordinate: it has an error `rate` e / l, where `rate` is the time derivative of the row, and a correction of the
 * speeds has an error rate e / l^2. Residuals below these errors count as zero, so that a projection does not add noise
 * to a state that happens to lie near such a position.
 */
#ifndef KG_NOISE_H
#define KG_NOISE_H

#include "kg_consistent.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rounding error of a residual in units of machine epsilon times its terms: sums of a few terms, each rounded. */
#define KG_NOISE_ROUNDINGS KG_C(4.0)
/* The residual of a speed row counts when it exceeds its error by this factor. A larger factor leaves larger residuals
 * of the speeds, a smaller one lets corrections through that are mostly noise. */
#define KG_NOISE_FACTOR KG_C(2.0)
/* Derivatives of the rows are differences over this change of the coordinates (rad, m): their order of magnitude is
 * enough. */
#define KG_NOISE_DISTANCE KG_C(1e-4)

/* Whether all residuals are below their rounding error, estimated from the rows alone. */
static inline int kg_noise_only(kg_level *l) {
  const kg_real unit = KG_NOISE_ROUNDINGS * KG_EPSILON * KG_MAX(KG_C(1.0), kg_max_magnitude(l->n, l->x));
  int only = 1;
  kg_level_scale(l);
  for (int i = 0; i < l->rows; ++i) {
    only = only && KG_ABS(kg_level_residual(l, i)) <= unit * l->w.scales[i];
  }
  return only;
}

/* Evaluates the rows a little further along the motion: their change goes to w.ahead, the time this takes to *time,
 * which is 0 at rest, where rows do not change. Returns KG_OK or the negative status of a function. */
static inline int kg_noise_changes(kg_level *l, kg_real *time) {
  const int n_q = l->manifold->n_q, n_u = l->manifold->n_u, m = kg_manifold_displacements(l->manifold);
  kg_real *q = l->q, *displaced = l->w.guess;
  kg_real fastest;
  int status;
  for (int i = 0; i < n_q; ++i) {
    displaced[i] = kg_dot(n_u, l->w.S + i * m, l->u);
  }
  fastest = kg_max_magnitude(n_q, displaced);
  *time = fastest > KG_C(0.0) ? KG_NOISE_DISTANCE / fastest : KG_C(0.0);
  for (int i = 0; i < n_q; ++i) {
    displaced[i] = q[i] + *time * displaced[i];
  }
  l->q = displaced;
  status = kg_level_call(l, l->function, l->w.ahead);
  l->q = q;
  for (int i = 0; i < l->rows * (l->m + 1); ++i) {
    l->w.ahead[i] -= l->w.rows[i];
  }
  return status;
}

/* The length of a row in coordinates whose metric is the identity; the row is destroyed. */
static inline kg_real kg_noise_length(const kg_level *l, kg_real *row) {
  kg_metric_lower(l->manifold->n_u, l->w.factor, row);
  return KG_SQRT(kg_dot(l->m, row, row));
}

/* Sets l->noise for kg_least_norm_basis() from the present rows, S and metric. Returns KG_OK or the negative status of
 * a function. */
static inline int kg_noise_of_rows(kg_level *l) {
  const kg_real size = KG_MAX(KG_C(1.0), kg_max_magnitude(l->manifold->n_q, l->q));
  const kg_real fastest = kg_max_magnitude(l->manifold->n_u, l->u);
  kg_real time;
  const int status = kg_noise_changes(l, &time);
  if (status < 0) {
    return status;
  }
  kg_level_scale(l);
  for (int i = 0; i < l->rows; ++i) {
    kg_real *change = l->w.ahead + i * (l->m + 1), *row = l->w.rows + i * (l->m + 1), *copy = l->w.z;
    /* A row that vanishes has terms all the same: of the size of its change along a unit of the coordinates. */
    const kg_real terms = l->w.scales[i] * size + kg_max_magnitude(l->m, change) / KG_NOISE_DISTANCE;
    const kg_real error = KG_NOISE_ROUNDINGS * KG_EPSILON * terms;
    l->w.noise[2 * i] = l->positions ? error : KG_C(0.0);
    l->w.noise[2 * i + 1] = KG_C(0.0);
    if (!l->positions && time > KG_C(0.0)) {
      memcpy(copy, row, (size_t)l->m * sizeof(kg_real));
      /* The second term: what is left of a row beside others may change although the row itself does not. */
      l->w.noise[2 * i + 1] =
          KG_NOISE_FACTOR * error * (kg_noise_length(l, change) / time + kg_noise_length(l, copy) * fastest);
    }
  }
  l->noise = l->w.noise;
  return KG_OK;
}

#ifdef __cplusplus
}
#endif

#endif
