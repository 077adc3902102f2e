/* kg_assembly.h - assembles a mechanism along a path of as many coordinates and outputs as it has degrees of freedom.
 *
 * At each time Newton's method solves the constraints on positions and the equations of the path, starting from a
 * prediction by the speeds and accelerations at the time before. Each correction must be at most a quarter of the one
 * before it: then the Kantorovich theorem guarantees that the iteration stays at the nearest solution (Deuflhard 2011,
 * Newton Methods for Nonlinear Problems, section 2.1). Otherwise the caller divides the interval.
 */
#ifndef KG_ASSEMBLY_H
#define KG_ASSEMBLY_H

#include "kg_generalized.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All functions return KG_OK, KG_SINGULAR if the path does not determine the positions or their rates, KG_INCONSISTENT
 * if the corrections do not shrink fast enough or are large, or the negative status of a function of the model. */

/* Singular values below this fraction of the largest count as zero. Newton's method finds a double solution only to
 * the square root of the rounding error, where the smallest singular value is of that size. */
#define KG_ASSEMBLY_RANK KG_BY_PRECISION(1e-6, 2e-3)
#define KG_ASSEMBLY_CONTRACTION KG_C(0.25)
/* A correction may be this fraction of the predicted change, or of the characteristic size of the unknowns. */
#define KG_ASSEMBLY_PREDICTED KG_C(0.5)
#define KG_ASSEMBLY_SMALL KG_C(0.05)
#define KG_ASSEMBLY_ITERATIONS 20
/* The first position may be far from the guess: its Newton steps are halved until the residuals shrink. */
#define KG_ASSEMBLY_FIRST_ITERATIONS 60
#define KG_ASSEMBLY_HALVINGS 12

typedef struct {
  int n_q;
  int n_u;
  int n_w;                          /* unknowns w of a correction dq = S w */
  const kg_function *kinematics;    /* [C D c] of q' = C u + D, q'' = C u' + c */
  const kg_function *position;      /* [phi_q S, phi], NULL without constraints on positions */
  const kg_function *displacements; /* S, NULL if it is C */
  const kg_function *velocity;      /* [psi_u, psi], NULL without constraints */
  const kg_function *bias;          /* b of J u' = b, likewise */
  int n_velocity;                   /* the first rows of `velocity` and `bias`, which the path satisfies */
  int linear;                       /* these rows are linear in the speeds */
  int n_coordinates;
  const int *coordinates;           /* indices of the prescribed coordinates */
  int n_outputs;
  const kg_function *const *outputs; /* of the prescribed outputs: rows [y_q S, y, y', y'' at u' = 0] */
  const int *angles;                /* n_q flags of the coordinates whose size is 1; NULL: none */
} kg_assembly;

typedef struct {
  kg_real *scratch, *found, *S, *A, *residual, *previous, *rows, *columns, *M, *U, *sizes, *rhs, *w, *y, *guess, *zero;
  kg_real *units; /* sizes of the components of w */
} kg_assembly_work_arrays;

static inline int kg_assembly_positions(const kg_assembly *a) { return a->position ? a->position->rows : 0; }

static inline int kg_assembly_prescribed(const kg_assembly *a) {
  int count = a->n_coordinates;
  for (int k = 0; k < a->n_outputs; ++k) {
    count += a->outputs[k]->rows;
  }
  return count;
}

/* Largest `work` and largest output of the functions. */
static inline size_t kg_assembly_largest(const kg_assembly *a, int work) {
  const kg_function *const all[] = {a->kinematics, a->position, a->displacements, a->velocity, a->bias};
  size_t largest = 1;
  for (int i = 0; i < 5 + a->n_outputs; ++i) {
    const kg_function *f = i < 5 ? all[i] : a->outputs[i - 5];
    const size_t size = !f ? 0 : work ? (size_t)f->work : (size_t)f->rows * (size_t)(f->cols > 0 ? f->cols : 1);
    largest = size > largest ? size : largest;
  }
  return largest;
}

/* Places the arrays in `work`; returns their length. With work NULL it only computes the length. */
static inline size_t kg_assembly_place_arrays(const kg_assembly *a, kg_real *work, kg_assembly_work_arrays *w) {
  const size_t q = (size_t)a->n_q, u = (size_t)a->n_u, n = (size_t)a->n_w;
  const size_t prescribed = (size_t)kg_assembly_prescribed(a);
  const size_t at_position = (size_t)kg_assembly_positions(a), at_velocity = (size_t)a->n_velocity;
  const size_t m = (at_position > at_velocity ? at_position : at_velocity) + prescribed;
  const size_t sizes[17] = {kg_assembly_largest(a, 1), kg_assembly_largest(a, 0), q * n, m * n, m, m * n, m, n,
                            m * n + n * n, m * m, m, m, n, m + n, q, u, n};
  kg_real **const arrays[17] = {&w->scratch, &w->found, &w->S, &w->A, &w->residual, &w->previous, &w->rows, &w->columns,
                                &w->M, &w->U, &w->sizes, &w->rhs, &w->w, &w->y, &w->guess, &w->zero,
                                &w->units};
  size_t total = 0;
  for (int i = 0; i < 17; ++i) {
    *arrays[i] = work ? work + total : NULL;
    total += sizes[i];
  }
  return total;
}

/* One time of the path: the point without coordinates and speeds, and (value, rate, acceleration) of everything
 * prescribed. */
typedef struct {
  const kg_assembly *a;
  kg_assembly_work_arrays *w;
  const kg_real *p;
  const kg_real *target;
  kg_point at;
} kg_assembly_time;

static inline int kg_assembly_call(const kg_assembly_time *x, const kg_function *f, const kg_real *q,
                                   const kg_real *u) {
  kg_point at = x->at;
  at.q = q;
  at.u = u;
  return f->evaluate(&at, x->p, x->w->scratch, x->w->found);
}

/* Writes S at q. */
static inline int kg_assembly_directions(const kg_assembly_time *x, const kg_real *q) {
  const kg_assembly *a = x->a;
  const kg_function *f = a->displacements ? a->displacements : a->kinematics;
  const int status = kg_assembly_call(x, f, q, x->w->zero);
  for (int i = 0; i < a->n_q && status >= 0; ++i) {
    memcpy(x->w->S + i * (ptrdiff_t)a->n_w, x->w->found + i * (ptrdiff_t)f->cols, (size_t)a->n_w * sizeof(kg_real));
  }
  return status;
}

/* Writes the equations A w = -residual at q: constraints, prescribed coordinates, prescribed outputs. */
static inline int kg_assembly_equations(const kg_assembly_time *x, const kg_real *q) {
  const kg_assembly *a = x->a;
  const int n = a->n_w;
  const kg_real *target = x->target;
  int status = kg_assembly_directions(x, q), row = 0;
  if (a->position && status >= 0) {
    status = kg_assembly_call(x, a->position, q, x->w->zero);
    for (; row < a->position->rows && status >= 0; ++row) {
      memcpy(x->w->A + row * (ptrdiff_t)n, x->w->found + row * (ptrdiff_t)(n + 1), (size_t)n * sizeof(kg_real));
      x->w->residual[row] = x->w->found[row * (ptrdiff_t)(n + 1) + n];
    }
  }
  for (int k = 0; k < a->n_coordinates && status >= 0; ++k, ++row, target += 3) {
    memcpy(x->w->A + row * (ptrdiff_t)n, x->w->S + a->coordinates[k] * (ptrdiff_t)n, (size_t)n * sizeof(kg_real));
    x->w->residual[row] = q[a->coordinates[k]] - target[0];
  }
  for (int k = 0; k < a->n_outputs && status >= 0; ++k) {
    status = kg_assembly_call(x, a->outputs[k], q, x->w->zero);
    for (int i = 0; i < a->outputs[k]->rows && status >= 0; ++i, ++row, target += 3) {
      const kg_real *found = x->w->found + i * (ptrdiff_t)(n + 3);
      memcpy(x->w->A + row * (ptrdiff_t)n, found, (size_t)n * sizeof(kg_real));
      x->w->residual[row] = found[n] - target[0];
    }
  }
  return status;
}

/* Scales the equations by the sizes of the unknowns, and by the largest rows and columns so far, so that a row or column
 * that vanishes at a singular position remains small. The unknowns are then relative, whatever their units. Returns
 * whether all entries are finite. */
static inline int kg_assembly_scale(const kg_assembly_time *x, const kg_real *q, int m) {
  const int n = x->a->n_w;
  kg_real sum = KG_C(0.0);
  kg_raise_sizes(x->a->n_q, n, x->a->angles, q, x->w->S, x->w->units);
  for (int i = 0; i < m; ++i) {
    kg_real *row = x->w->A + i * (ptrdiff_t)n, size;
    for (int j = 0; j < n; ++j) {
      row[j] *= x->w->units[j];
    }
    size = KG_SQRT(kg_dot(n, row, row));
    x->w->rows[i] = KG_MAX(x->w->rows[i], size);
    size = x->w->rows[i] > KG_C(0.0) ? KG_C(1.0) / x->w->rows[i] : KG_C(1.0);
    kg_scale(n, size, row);
    x->w->residual[i] *= size;
    sum += kg_dot(n, row, row) + x->w->residual[i] * x->w->residual[i];
  }
  for (int j = 0; j < n; ++j) {
    kg_real size = KG_C(0.0);
    for (int i = 0; i < m; ++i) {
      size += x->w->A[i * (ptrdiff_t)n + j] * x->w->A[i * (ptrdiff_t)n + j];
    }
    size = KG_SQRT(size);
    x->w->columns[j] = KG_MAX(x->w->columns[j], size / x->w->units[j]);
    for (int i = 0; i < m && x->w->columns[j] > KG_C(0.0); ++i) {
      x->w->A[i * (ptrdiff_t)n + j] /= x->w->columns[j] * x->w->units[j];
    }
  }
  return sum - sum == KG_C(0.0);
}

/* x (n) = M^+ b (m), from the orthogonal rows of M, their rotation U and sizes. */
static inline void kg_assembly_combine(int m, int n, const kg_assembly_work_arrays *w, const kg_real *b, kg_real *x) {
  kg_clear(n, x);
  for (int i = 0; i < m; ++i) {
    if (w->sizes[i] > KG_C(0.0)) {
      kg_add(n, kg_dot(m, w->U + i * (ptrdiff_t)m, b) / w->sizes[i], w->M + i * (ptrdiff_t)n, x);
    }
  }
}

/* Orthogonalizes the rows of M (m x n); returns whether the rank is n. */
static inline int kg_assembly_factor(int m, int n, const kg_assembly_work_arrays *w) {
  const kg_real limit = KG_ASSEMBLY_RANK * KG_ASSEMBLY_RANK;
  kg_real largest = KG_C(0.0);
  int rank = 0;
  kg_orthogonal_rows(m, n, w->M, w->U, w->sizes);
  kg_rank_of_rows(m, n, w->M, w->sizes);
  for (int i = 0; i < m; ++i) {
    largest = KG_MAX(largest, w->sizes[i]);
  }
  for (int i = 0; i < m; ++i) {
    if (w->sizes[i] > limit * largest) {
      ++rank;
    } else {
      w->sizes[i] = KG_C(0.0);
    }
  }
  return rank == n;
}

/* The coordinate of which the largest part is not determined by the equations in M. */
static inline int kg_assembly_undetermined(const kg_assembly_time *x, int m) {
  const int n = x->a->n_w;
  int worst = 0;
  kg_real most = KG_C(-1.0);
  for (int i = 0; i < x->a->n_q; ++i) {
    kg_real size, part;
    for (int j = 0; j < n; ++j) {
      x->w->w[j] = x->w->columns[j] > KG_C(0.0) ? x->w->S[i * (ptrdiff_t)n + j] / x->w->columns[j] : KG_C(0.0);
    }
    size = kg_dot(n, x->w->w, x->w->w);
    kg_project_rows(m, n, x->w->M, x->w->sizes, x->w->w, x->w->y);
    part = size > KG_C(0.0) ? KG_C(1.0) - kg_dot(n, x->w->w, x->w->y) / size : KG_C(0.0);
    if (part > most) {
      most = part;
      worst = i;
    }
  }
  return worst;
}

/* Computes the correction w of q (scaled), of least norm if the equations do not determine it: *worst is then a
 * coordinate that they leave open. */
static inline int kg_assembly_correction(const kg_assembly_time *x, const kg_real *q, int *determined, int *worst) {
  const int n = x->a->n_w, m = kg_assembly_positions(x->a) + kg_assembly_prescribed(x->a);
  const int status = kg_assembly_equations(x, q);
  *determined = 0;
  if (status < 0) {
    return status;
  }
  if (!kg_assembly_scale(x, q, m)) {
    return KG_NOT_FINITE;
  }
  memcpy(x->w->M, x->w->A, (size_t)(m * n) * sizeof(kg_real));
  *determined = kg_assembly_factor(m, n, x->w);
  if (!*determined) {
    *worst = kg_assembly_undetermined(x, m);
  }
  kg_assembly_combine(m, n, x->w, x->w->residual, x->w->w);
  return KG_OK;
}

/* q <- q - fraction S w; returns the coordinate that moves most. */
static inline int kg_assembly_move(const kg_assembly_time *x, kg_real fraction, kg_real *q) {
  const int n = x->a->n_w;
  int worst = 0;
  kg_real most = KG_C(-1.0);
  for (int i = 0; i < x->a->n_q; ++i) {
    kg_real change = KG_C(0.0);
    for (int j = 0; j < n; ++j) {
      if (x->w->columns[j] > KG_C(0.0)) {
        change += x->w->S[i * (ptrdiff_t)n + j] * x->w->w[j] / x->w->columns[j];
      }
    }
    q[i] -= fraction * change;
    if (KG_ABS(change) > most) {
      most = KG_ABS(change);
      worst = i;
    }
  }
  return worst;
}

/* The sign of the determinant of A_0^T A for the equations A_0 of the time before and A (both m x n). If both have the
 * same columns up to combinations, it is the sign of the product of two determinants, also for redundant equations. */
static inline int kg_assembly_turned(const kg_assembly_time *x, int m) {
  const int n = x->a->n_w;
  kg_real *D = x->w->M;
  int sign = 1;
  kg_clear(n * n, D);
  for (int k = 0; k < m; ++k) {
    for (int i = 0; i < n; ++i) {
      kg_add(n, x->w->previous[k * (ptrdiff_t)n + i], x->w->A + k * (ptrdiff_t)n, D + i * (ptrdiff_t)n);
    }
  }
  for (int j = 0; j < n; ++j) {
    int best = j;
    for (int i = j + 1; i < n; ++i) {
      best = KG_ABS(D[i * (ptrdiff_t)n + j]) > KG_ABS(D[best * (ptrdiff_t)n + j]) ? i : best;
    }
    if (best != j) {
      kg_swap(n, D + j * (ptrdiff_t)n, D + best * (ptrdiff_t)n);
      sign = -sign;
    }
    if (D[j * (ptrdiff_t)(n + 1)] < KG_C(0.0)) {
      sign = -sign;
    }
    for (int i = j + 1; i < n && D[j * (ptrdiff_t)(n + 1)] != KG_C(0.0); ++i) {
      kg_add(n, -D[i * (ptrdiff_t)n + j] / D[j * (ptrdiff_t)(n + 1)], D + j * (ptrdiff_t)n, D + i * (ptrdiff_t)n);
    }
  }
  return sign < 0;
}

/* Keeps the equations of the present position for kg_assembly_turned(), without the scales, which can change. */
static inline void kg_assembly_keep(const kg_assembly_time *x, int m) {
  memcpy(x->w->previous, x->w->A, (size_t)(m * x->a->n_w) * sizeof(kg_real));
}

/* Finds the position nearest to q (in place) by Newton's method; `predicted`: scaled size of the predicted change.
 * *worst is the coordinate with the largest correction, or the undetermined one. */
static inline int kg_assembly_find(const kg_assembly_time *x, kg_real predicted, kg_real *q, int *worst) {
  kg_real before = KG_C(-1.0), sum = KG_C(0.0);
  for (int k = 0; k < KG_ASSEMBLY_ITERATIONS; ++k) {
    int determined;
    const int status = kg_assembly_correction(x, q, &determined, worst);
    kg_real size;
    if (status < 0 || !determined) {
      return status < 0 ? status : KG_SINGULAR;
    }
    size = KG_SQRT(kg_dot(x->a->n_w, x->w->w, x->w->w));
    *worst = kg_assembly_move(x, KG_C(1.0), q);
    sum += size;
    if (sum > KG_MAX(KG_ASSEMBLY_PREDICTED * predicted, KG_ASSEMBLY_SMALL)) {
      return KG_INCONSISTENT;
    }
    /* The next correction would be about size^3 / before^2. */
    if (size <= KG_C(16.0) * KG_EPSILON || (before > KG_C(0.0) && size * size * size <= KG_EPSILON * before * before)) {
      return KG_OK;
    }
    if (before >= KG_C(0.0) && size > KG_ASSEMBLY_CONTRACTION * before) {
      return size <= KG_BY_PRECISION(1e-12, 1e-4) ? KG_OK : KG_INCONSISTENT; /* rounding errors do not shrink */
    }
    before = size;
  }
  return KG_INCONSISTENT;
}

/* Finds a position from a guess q (in place) that may be rough. */
static inline int kg_assembly_first(const kg_assembly_time *x, kg_real *q, int *worst) {
  const int m = kg_assembly_positions(x->a) + kg_assembly_prescribed(x->a);
  kg_real *old = x->w->guess;
  for (int k = 0; k < KG_ASSEMBLY_FIRST_ITERATIONS; ++k) {
    kg_real fraction, merit, size;
    int halving = 0, determined;
    const int status = kg_assembly_correction(x, q, &determined, worst);
    const int found = status < 0 ? status : determined ? KG_OK : KG_SINGULAR;
    if (status < 0) {
      return status;
    }
    merit = kg_dot(m, x->w->residual, x->w->residual);
    size = KG_SQRT(kg_dot(x->a->n_w, x->w->w, x->w->w));
    memcpy(old, q, (size_t)x->a->n_q * sizeof(kg_real));
    if (size <= KG_BY_PRECISION(1e-14, 5e-6) || merit <= KG_EPSILON * KG_EPSILON) {
      return found;
    }
    fraction = size > KG_C(1.0) ? KG_C(1.0) / size : KG_C(1.0);
    for (; halving < KG_ASSEMBLY_HALVINGS; ++halving, fraction *= KG_C(0.5)) {
      kg_real left = KG_C(0.0);
      const int moved = kg_assembly_move(x, fraction, q);
      *worst = determined ? moved : *worst;
      if (kg_assembly_equations(x, q) >= 0) {
        for (int i = 0; i < m; ++i) {
          const kg_real scaled = x->w->residual[i] / (x->w->rows[i] > KG_C(0.0) ? x->w->rows[i] : KG_C(1.0));
          left += scaled * scaled;
        }
        if (left < (KG_C(1.0) - KG_C(1e-4) * fraction) * merit) {
          break;
        }
      }
      memcpy(q, old, (size_t)x->a->n_q * sizeof(kg_real));
      kg_assembly_directions(x, q);
    }
    if (halving == KG_ASSEMBLY_HALVINGS) { /* only rounding errors are left, or there is no solution */
      return merit <= KG_BY_PRECISION(1e-24, 1e-8) ? found : KG_INCONSISTENT;
    }
  }
  return KG_INCONSISTENT;
}

/* Writes the equations M x = rhs of the speeds (n_u columns), or with `accelerations` only the right sides of those of
 * the accelerations; x is a correction of u. Each is divided by the length of its row. */
static inline int kg_assembly_speed_rows(const kg_assembly_time *x, const kg_real *q, const kg_real *u,
                                         int accelerations) {
  const kg_assembly *a = x->a;
  const int n = a->n_u, derivative = accelerations ? 2 : 1;
  const kg_real *target = x->target + derivative;
  int status = KG_OK, row = 0;
  const kg_function *constraints = accelerations ? a->bias : a->velocity;
  if (a->n_velocity > 0) {
    const int width = accelerations ? 1 : n + 1;
    status = kg_assembly_call(x, constraints, q, u);
    for (; row < a->n_velocity && status >= 0; ++row) {
      const kg_real *found = x->w->found + row * (ptrdiff_t)width;
      memcpy(x->w->M + row * (ptrdiff_t)n, found, (size_t)(accelerations ? 0 : n) * sizeof(kg_real));
      x->w->rhs[row] = accelerations ? found[0] : -found[n];
    }
  }
  status = status < 0 ? status : kg_assembly_call(x, a->kinematics, q, u);
  for (int k = 0; k < a->n_coordinates && status >= 0; ++k, ++row, target += 3) {
    const kg_real *found = x->w->found + a->coordinates[k] * (ptrdiff_t)(n + 2);
    memcpy(x->w->M + row * (ptrdiff_t)n, found, (size_t)(accelerations ? 0 : n) * sizeof(kg_real));
    x->w->rhs[row] = target[0] - (accelerations ? found[n + 1] : found[n] + kg_dot(n, found, u));
  }
  for (int k = 0; k < a->n_outputs && status >= 0; ++k) {
    status = kg_assembly_call(x, a->outputs[k], q, u);
    for (int i = 0; i < a->outputs[k]->rows && status >= 0; ++i, ++row, target += 3) {
      const kg_real *found = x->w->found + i * (ptrdiff_t)(a->n_w + 3);
      memcpy(x->w->M + row * (ptrdiff_t)n, found, (size_t)(accelerations ? 0 : n) * sizeof(kg_real));
      x->w->rhs[row] = target[0] - found[a->n_w + derivative];
    }
  }
  return status;
}

/* rate (n_q) = C x + column `k` of [C D c] in `found`. */
static inline void kg_assembly_coordinate_rates(const kg_assembly_time *x, const kg_real *speeds, int k,
                                                kg_real *rate) {
  const int n = x->a->n_u;
  for (int i = 0; i < x->a->n_q; ++i) {
    const kg_real *found = x->w->found + i * (ptrdiff_t)(n + 2);
    rate[i] = kg_dot(n, found, speeds) + found[n + k];
  }
}

/* Divides the equations of the speeds by the lengths of their rows, of which it writes the reciprocals, in unknowns that
 * are relative to the sizes of the components of w. */
static inline void kg_assembly_speed_scale(const kg_assembly_time *x, int m, kg_real *lengths) {
  const int n = x->a->n_u;
  for (int i = 0; i < m; ++i) {
    kg_real *row = x->w->M + i * (ptrdiff_t)n, length;
    for (int j = 0; j < n; ++j) {
      row[j] *= x->w->units[j];
    }
    length = KG_SQRT(kg_dot(n, row, row));
    lengths[i] = length > KG_C(0.0) ? KG_C(1.0) / length : KG_C(1.0);
    kg_scale(n, lengths[i], row);
    x->w->rhs[i] *= lengths[i];
  }
}

/* The solution of the equations of the speeds, of which M holds the orthogonal rows. */
static inline void kg_assembly_speed_solve(const kg_assembly_time *x, int m, kg_real *solution) {
  kg_assembly_combine(m, x->a->n_u, x->w, x->w->rhs, solution);
  for (int j = 0; j < x->a->n_u; ++j) {
    solution[j] *= x->w->units[j];
  }
}

/* Computes u, u' (n_u), q', q'' (n_q) at the position q. */
static inline int kg_assembly_rates(const kg_assembly_time *x, const kg_real *q, kg_real *u, kg_real *udot,
                                    kg_real *qdot, kg_real *qddot) {
  const kg_assembly *a = x->a;
  const int n = a->n_u, m = a->n_velocity + kg_assembly_prescribed(a);
  kg_real *lengths = x->w->y;
  int status = KG_OK;
  kg_clear(n, u);
  for (int pass = 0; pass < (a->linear ? 1 : KG_ASSEMBLY_ITERATIONS); ++pass) {
    status = kg_assembly_speed_rows(x, q, u, 0);
    if (status < 0) {
      return status;
    }
    kg_assembly_speed_scale(x, m, lengths);
    kg_orthogonal_rows(m, n, x->w->M, x->w->U, x->w->sizes);
    if (kg_rank_of_rows(m, n, x->w->M, x->w->sizes) < n) {
      return KG_SINGULAR;
    }
    kg_assembly_speed_solve(x, m, udot);
    kg_add(n, KG_C(1.0), udot, u);
    if (kg_largest(n, udot) <= KG_C(16.0) * KG_EPSILON * kg_largest(n, u)) {
      break;
    }
  }
  status = kg_assembly_speed_rows(x, q, u, 1); /* does not change M, which holds the orthogonal rows */
  if (status < 0) {
    return status;
  }
  for (int i = 0; i < m; ++i) {
    x->w->rhs[i] *= lengths[i];
  }
  kg_assembly_speed_solve(x, m, udot);
  status = kg_assembly_call(x, a->kinematics, q, u);
  kg_assembly_coordinate_rates(x, u, 0, qdot);
  kg_assembly_coordinate_rates(x, udot, 1, qddot);
  return status < 0 ? status : KG_OK;
}

/* The motion at one time. */
typedef struct {
  kg_real *q;
  kg_real *qdot;
  kg_real *qddot;
  kg_real *u;
  kg_real *udot;
} kg_assembly_state;

/* Starts at a position (q of `state`): its equations and rates. */
static inline int kg_assembly_start(const kg_assembly_time *x, const kg_assembly_state *state, int *worst) {
  int determined;
  const int status = kg_assembly_correction(x, state->q, &determined, worst);
  if (status < 0 || !determined) {
    return status < 0 ? status : KG_SINGULAR;
  }
  kg_assembly_keep(x, kg_assembly_positions(x->a) + kg_assembly_prescribed(x->a));
  return kg_assembly_rates(x, state->q, state->u, state->udot, state->qdot, state->qddot);
}

/* Advances the motion by the time h from `from` to `to`. */
static inline int kg_assembly_step(const kg_assembly_time *x, kg_real h, const kg_assembly_state *from,
                                   const kg_assembly_state *to, int *worst) {
  const kg_assembly *a = x->a;
  const int m = kg_assembly_positions(a) + kg_assembly_prescribed(a);
  kg_real predicted = KG_C(0.0);
  int status;
  for (int i = 0; i < a->n_q; ++i) {
    to->q[i] = from->q[i] + h * (from->qdot[i] + KG_C(0.5) * h * from->qddot[i]);
  }
  for (int j = 0; j < a->n_u; ++j) {
    const kg_real w = x->w->columns[j] * h * (from->u[j] + KG_C(0.5) * h * from->udot[j]);
    predicted += w * w;
  }
  status = kg_assembly_find(x, KG_SQRT(predicted), to->q, worst);
  if (status < 0) {
    return status;
  }
  if (kg_assembly_turned(x, m)) { /* between the two times the determinant is zero */
    return KG_SINGULAR;
  }
  kg_assembly_keep(x, m);
  return kg_assembly_rates(x, to->q, to->u, to->udot, to->qdot, to->qddot);
}

#ifdef __cplusplus
}
#endif

#endif
