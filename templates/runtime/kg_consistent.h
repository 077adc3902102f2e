/* kg_consistent.h - computes states that satisfy the constraints, from a guess.
 *
 * Positions: Newton's method on phi(q, t, r) = 0. A correction is dq = S w, where the columns of S are those of C in
 * q' = C u + D, then the gradients of the invariants (which do not depend on the speeds); w has least norm in the
 * metric of the kinetic energy (Q for the part along C, the identity for the invariants). Speeds: psi(q, u, t, r) = 0
 * with the smallest change in the metric Q; exact in one step where psi is affine in u (weighted least squares).
 *
 * The caller provides all memory. A negative status of a function of the model is returned to the caller.
 */
#ifndef KG_CONSISTENT_H
#define KG_CONSISTENT_H

#include "kg_least_norm.h"
#include "kg_ode.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Largest numbers of Newton iterations, of halvings of one correction, and of new guesses around the first guess. */
#define KG_NEWTON_ITERATIONS 50
#define KG_NEWTON_HALVINGS 12
#define KG_ASSEMBLY_ATTEMPTS 8

/* The functions of the model that describe its constraints; NULL if the model has no row of that kind. */
typedef struct {
  int n_q;
  int n_u;
  const kg_function *position;      /* rows [phi_q S | phi] */
  const kg_function *velocity;      /* rows [psi_u | psi], including phi' of the position level */
  const kg_function *displacements; /* S, n_q rows */
  const kg_function *mass;          /* Q */
  const int *angles;                /* n_q flags of the coordinates whose size is 1; NULL: none */
} kg_manifold;

/* The arrays of one correction, in the workspace. */
typedef struct {
  kg_real *scratch;  /* work array of the functions */
  kg_real *Q;
  kg_real *factored; /* the Q that was factored last; NaN: none */
  kg_real *factor;
  kg_real *S;
  kg_real *rows;     /* of the level, with their residuals */
  kg_real *scales;   /* sum of magnitudes of each row */
  kg_real *a;        /* equations of a correction: fixed components first */
  kg_real *b;
  kg_real *sizes;
  kg_real *z;
  kg_real *old;      /* values before a correction */
  kg_real *change;
  kg_real *guess;
  kg_real *first;    /* end of the first attempt */
  kg_real *gram;
  kg_real *ahead;    /* the rows a short time later */
  kg_real *noise;    /* noise of the rows, for kg_least_norm_basis() */
  kg_real *reach;    /* sizes of the components of a correction, for projections: of the positions, ... */
  kg_real *pace;     /* ... and of the speeds */
  kg_real *units;    /* the sizes that rows give to the components: kg_projection_units() */
} kg_consistent_work_arrays;

/* One level of the constraints while it is solved: positions, x = q, or speeds, x = u. */
typedef struct {
  const kg_manifold *manifold;
  const kg_function *function;
  kg_point at; /* the state, but for q and u, which change */
  const kg_real *p;
  kg_real *q;
  kg_real *u;
  kg_real *x;          /* q or u */
  const int *fixed;    /* n flags: components of x that are kept; NULL: none */
  int n;               /* components of x */
  int m;               /* components of a correction w */
  int rows;
  int positions;
  int close;           /* the state is near the constraints and nothing is fixed: normal equations suffice */
  int any_rank;        /* rows can become dependent during the iteration: kg_noise_of_rows() */
  int small;           /* corrections by kg_projection_small.h */
  int further;         /* further projections for which it keeps the inverse of Q */
  int sized;           /* w.reach is known */
  const kg_real *noise; /* noise of the rows, for kg_least_norm_basis(); NULL: unknown */
  int rank;            /* of the equations of the last correction */
  kg_real tolerance;
  kg_consistent_work_arrays w;
} kg_level;

static inline int kg_max_int(int a, int b) { return a > b ? a : b; }

static inline int kg_manifold_rows(const kg_manifold *c) {
  return kg_max_int(c->position ? c->position->rows : 0, c->velocity ? c->velocity->rows : 0);
}

/* Components of a correction of the positions. */
static inline int kg_manifold_displacements(const kg_manifold *c) {
  return c->displacements ? c->displacements->cols : c->n_u;
}

static inline int kg_manifold_scratch(const kg_manifold *c) {
  const kg_function *const all[] = {c->position, c->velocity, c->displacements, c->mass};
  int work = 0;
  for (int i = 0; i < 4; ++i) {
    work = all[i] ? kg_max_int(work, all[i]->work) : work;
  }
  return work;
}

/* Places the arrays of a correction in `work`; returns their length. With work NULL it only computes the length. */
static inline size_t kg_consistent_place(const kg_manifold *c, kg_real *work, kg_consistent_work_arrays *w) {
  const size_t n_q = (size_t)c->n_q, n_u = (size_t)c->n_u, n = n_q > n_u ? n_q : n_u;
  const size_t m = (size_t)kg_manifold_displacements(c), rows = (size_t)kg_manifold_rows(c);
  const size_t square = n_u * n_u;
  const size_t sizes[21] = {(size_t)kg_manifold_scratch(c), square, square, square, n_q * m, rows * (m + 1), rows,
                            (rows + n) * m, rows + n, rows + n, m, n, n, n_q, n_q, rows * rows,
                            rows * (m + 1), 2 * rows, m, n_u, m};
  kg_real **const arrays[21] = {&w->scratch, &w->Q, &w->factored, &w->factor, &w->S, &w->rows, &w->scales, &w->a,
                                &w->b, &w->sizes, &w->z, &w->old, &w->change, &w->guess, &w->first, &w->gram,
                                &w->ahead, &w->noise, &w->reach, &w->pace, &w->units};
  size_t total = 0;
  for (int i = 0; i < 21; ++i) {
    *arrays[i] = work ? work + total : NULL;
    total += sizes[i];
  }
  return total;
}

/* Length of the workspace of kg_make_consistent() and of a projection, in kg_real. */
static inline size_t kg_consistent_work(const kg_manifold *c) {
  kg_consistent_work_arrays unused;
  return kg_consistent_place(c, NULL, &unused) + 1;
}

static inline int kg_level_call(const kg_level *l, const kg_function *f, kg_real *out) {
  kg_point at = l->at;
  at.q = l->q;
  at.u = l->u;
  return f->evaluate(&at, l->p, l->w.scratch, out);
}

static inline kg_real kg_level_residual(const kg_level *l, int i) { return l->w.rows[i * (l->m + 1) + l->m]; }

/* The largest component of x, in its own unit; 1 if all are zero. */
static inline kg_real kg_level_size(const kg_level *l) {
  const kg_real size = kg_largest(l->n, l->x);
  return size > KG_C(0.0) ? size : KG_C(1.0);
}

/* Tolerance of a residual: what it changes with relative changes of x by the tolerance, or by rounding. So neither the
 * unit of the constraint nor that of x matters. */
static inline kg_real kg_level_limit(const kg_level *l, int i) {
  return KG_MAX(l->tolerance, KG_C(8.0) * KG_EPSILON) * l->w.scales[i];
}

/* The terms of row i for the components x of a correction: the sum of the magnitudes. */
static inline kg_real kg_level_terms(const kg_level *l, int i, const kg_real *x) {
  const kg_real *row = l->w.rows + i * (l->m + 1);
  kg_real sum = KG_C(0.0);
  for (int j = 0; j < l->m; ++j) {
    sum += KG_ABS(row[j] * x[j]);
  }
  return sum;
}

/* Computes the sizes of the components of a correction, and with them the terms of every row. The speeds share the
 * largest of them. Returns the status of the function of S. */
static inline int kg_level_scale(kg_level *l) {
  int status = KG_OK;
  for (int j = 0; j < l->m; ++j) {
    l->w.reach[j] = l->positions ? KG_C(0.0) : kg_level_size(l);
  }
  if (l->positions) {
    status = kg_level_call(l, l->manifold->displacements, l->w.S);
    kg_raise_sizes(l->n, l->m, l->manifold->angles, l->q, l->w.S, l->w.reach);
  }
  for (int i = 0; i < l->rows; ++i) {
    l->w.scales[i] = kg_level_terms(l, i, l->w.reach);
  }
  return status;
}

/* The largest component of the correction, as a fraction of its size. */
static inline kg_real kg_level_change(const kg_level *l) {
  kg_real largest = KG_C(0.0);
  for (int j = 0; j < l->m; ++j) {
    const kg_real change = KG_ABS(l->w.z[j]) / l->w.reach[j];
    largest = KG_MAX(largest, change);
  }
  return largest;
}

/* Evaluates the rows at x. Returns KG_FINISHED when all are satisfied, KG_OK when not. */
static inline int kg_level_evaluate(kg_level *l) {
  int status = kg_level_call(l, l->function, l->w.rows);
  int satisfied = 1;
  status = status < 0 ? status : kg_level_scale(l);
  if (status < 0) {
    return status;
  }
  for (int i = 0; i < l->rows; ++i) {
    satisfied = satisfied && KG_ABS(kg_level_residual(l, i)) <= kg_level_limit(l, i);
  }
  return satisfied ? KG_FINISHED : KG_OK;
}

/* Sets up the equations of a correction in coordinates with the identity as metric; returns how many fix components. */
static inline int kg_level_equations(kg_level *l) {
  const int n_u = l->manifold->n_u, m = l->m;
  int count = 0;
  for (int i = 0; l->fixed && i < l->n; ++i) {
    if (l->fixed[i]) {
      kg_real *row = l->w.a + count * m;
      for (int j = 0; j < m; ++j) {
        row[j] = l->positions ? l->w.S[i * m + j] : KG_TRUTH(i == j);
      }
      l->w.b[count++] = KG_C(0.0);
    }
  }
  for (int i = 0; i < l->rows; ++i) {
    for (int j = 0; j < m; ++j) { /* for a few entries, a call of memcpy takes longer */
      l->w.a[(count + i) * m + j] = l->w.rows[i * (m + 1) + j];
    }
    l->w.b[count + i] = -kg_level_residual(l, i);
  }
  for (int i = 0; i < count + l->rows; ++i) {
    kg_metric_lower(n_u, l->w.factor, l->w.a + i * m);
  }
  return count;
}

/* Computes the correction of x; returns the number of equations that fix components. */
static inline int kg_level_correction(kg_level *l) {
  const int count = kg_level_equations(l);
  if (l->any_rank) {
    l->rank = kg_least_norm_basis(count, count + l->rows, l->m, l->w.a, l->w.b, l->noise, l->w.sizes, l->w.z);
  } else if (l->close && l->rows > 1 && kg_least_norm_regular(l->rows, l->m, l->w.a, l->w.b, l->w.gram, l->w.z)) {
    l->rank = l->rows;
  } else {
    l->rank = kg_least_norm(count, count + l->rows, l->m, l->w.a, l->w.b, l->w.sizes, l->w.z);
  }
  kg_metric_upper(l->manifold->n_u, l->w.factor, l->w.z);
  for (int i = 0; i < l->n; ++i) {
    const kg_real change = l->positions ? kg_dot(l->m, l->w.S + i * l->m, l->w.z) : l->w.z[i];
    l->w.change[i] = l->fixed && l->fixed[i] ? KG_C(0.0) : change;
  }
  return count;
}

/* Returns whether the correction satisfies every row to first order. */
static inline int kg_level_met(const kg_level *l, int count) {
  int met = 1;
  for (int i = 0; i < l->rows; ++i) {
    const int used = l->w.sizes[count + i] < KG_C(0.0);
    met = met && (used || KG_ABS(l->w.b[count + i]) <= KG_C(10.0) * kg_level_limit(l, i));
  }
  return met;
}

/* Sum of squares of the residuals, each divided by the scale of its row at the time of the correction (`units`). */
static inline kg_real kg_level_merit(const kg_level *l, const kg_real *units) {
  kg_real sum = KG_C(0.0);
  for (int i = 0; i < l->rows; ++i) {
    const kg_real value = kg_level_residual(l, i) / (units[i] > KG_C(0.0) ? units[i] : KG_C(1.0));
    sum += value * value;
  }
  return sum;
}

/* Moves x along the correction, halved until the residuals have values (a spline may end on the way) and shrink.
 * Returns KG_FINISHED, KG_OK, or KG_INCONSISTENT if they do not shrink; then x is unchanged. */
static inline int kg_level_move(kg_level *l) {
  kg_real *units = l->w.sizes; /* no longer in use: the correction is known */
  const kg_real change = kg_level_change(l);
  kg_real fraction = change > KG_C(1.0) ? KG_C(1.0) / change : KG_C(1.0);
  kg_real before;
  memcpy(units, l->w.scales, (size_t)l->rows * sizeof(kg_real));
  before = kg_level_merit(l, units);
  memcpy(l->w.old, l->x, (size_t)l->n * sizeof(kg_real));
  for (int halving = 0; halving < KG_NEWTON_HALVINGS; ++halving) {
    int status;
    for (int i = 0; i < l->n; ++i) {
      l->x[i] = l->w.old[i] + fraction * l->w.change[i];
    }
    status = kg_level_evaluate(l);
    if (status == KG_FINISHED) {
      return status;
    }
    if (status >= 0 && kg_level_merit(l, units) <= (KG_C(1.0) - KG_C(1e-4) * fraction) * before) {
      return KG_OK;
    }
    fraction *= KG_C(0.5);
  }
  memcpy(l->x, l->w.old, (size_t)l->n * sizeof(kg_real));
  return KG_INCONSISTENT;
}

/* Copies Q to the array in which it is factored; returns whether it differs from the last Q. */
static inline int kg_level_mass_changed(const kg_level *l) {
  const int n = l->manifold->n_u * l->manifold->n_u;
  int changed = 0;
  for (int i = 0; i < n; ++i) {
    changed = changed || !(l->w.Q[i] == l->w.factored[i]);
  }
  for (int i = 0; changed && i < n; ++i) {
    l->w.factor[i] = l->w.factored[i] = l->w.Q[i];
  }
  return changed;
}

/* Evaluates the metric at the present state and factors it if it has changed; with `both`, evaluates S too. */
static inline int kg_level_metric(const kg_level *l, int both) {
  int status = kg_level_call(l, l->manifold->mass, l->w.Q);
  if (status >= 0 && both) {
    status = kg_level_call(l, l->manifold->displacements, l->w.S);
  }
  if (kg_level_mass_changed(l)) {
    kg_metric_factor(l->manifold->n_u, l->w.factor);
  }
  return status;
}

/* Newton's method on one level. Returns KG_OK if the rows are satisfied, KG_INCONSISTENT if no such x was
 * found, or the negative status of a function; x is then the best one found. Counts the corrections. */
static inline int kg_level_solve(kg_level *l, int *corrections) {
  int status = kg_level_evaluate(l);
  for (int iteration = 0; status == KG_OK && iteration < KG_NEWTON_ITERATIONS; ++iteration) {
    int met;
    kg_real left;
    if (l->positions || iteration == 0) { /* Q and S depend on the coordinates only */
      status = kg_level_metric(l, l->positions);
      if (status < 0) {
        return status;
      }
    }
    met = kg_level_met(l, kg_level_correction(l));
    left = kg_level_change(l);
    status = kg_level_move(l);
    if (status == KG_INCONSISTENT) {
      /* Residuals with a large rounding error can stay above the tolerance, so the change of x is tested. */
      return met && left <= KG_C(1e3) * KG_EPSILON ? KG_OK : KG_INCONSISTENT;
    }
    ++*corrections;
  }
  if (status < 0) {
    return status;
  }
  return status == KG_FINISHED ? KG_OK : KG_INCONSISTENT;
}

static inline kg_level kg_level_of(const kg_manifold *c, int positions, const kg_real *p, const int *fixed,
                                   kg_real tolerance, kg_real *work) {
  kg_level l;
  memset(&l, 0, sizeof l);
  l.manifold = c;
  l.function = positions ? c->position : c->velocity;
  l.positions = positions;
  l.p = p;
  l.n = positions ? c->n_q : c->n_u;
  l.m = positions ? kg_manifold_displacements(c) : c->n_u;
  l.fixed = fixed && !positions ? fixed + c->n_q : fixed;
  l.rows = l.function ? l.function->rows : 0;
  l.tolerance = tolerance;
  kg_consistent_place(c, work, &l.w);
  l.w.factored[0] = (kg_real)NAN;
  return l;
}

/* Sets the state, which is corrected: the coordinates q and speeds u, and the rest in `at`. */
static inline void kg_level_place(kg_level *l, const kg_point *at, kg_real *q, kg_real *u) {
  l->at = *at;
  l->q = q;
  l->u = u;
  l->x = l->positions ? q : u;
}

/* Pseudorandom numbers between -1 and 1, the same in every run. */
static inline kg_real kg_next_random(unsigned long *state) {
  *state = (*state * 1103515245UL + 12345UL) & 0x7fffffffUL;
  return (kg_real)*state / KG_C(1073741824.0) - KG_C(1.0);
}

/* Newton's method from the guess, then from guesses at increasing distances, since a guess can be singular (a straight
 * linkage). If all of them fail, q is the end of the first attempt. */
static inline int kg_assemble(kg_level *l, int *corrections) {
  unsigned long random = 20031UL;
  const kg_real largest = kg_largest_length(l->n, l->manifold->angles, l->x);
  const size_t bytes = (size_t)l->n * sizeof(kg_real);
  kg_real spread = KG_C(0.01);
  int status;
  memcpy(l->w.guess, l->x, bytes);
  status = kg_level_solve(l, corrections);
  if (status != KG_INCONSISTENT) {
    return status;
  }
  memcpy(l->w.first, l->x, bytes);
  for (int attempt = 1; attempt < KG_ASSEMBLY_ATTEMPTS; ++attempt) {
    for (int i = 0; i < l->n; ++i) {
      const kg_real size = kg_coordinate_size(l->manifold->angles, largest, l->w.guess, i);
      const kg_real offset = spread * size * kg_next_random(&random);
      l->x[i] = l->w.guess[i] + (l->fixed && l->fixed[i] ? KG_C(0.0) : offset);
    }
    spread *= KG_C(2.0);
    if (kg_level_solve(l, corrections) == KG_OK) {
      return KG_OK;
    }
  }
  memcpy(l->x, l->w.first, bytes);
  return status;
}

/* Corrects q and u, those of the state `at`, so that they satisfy the constraints: positions first, from a guess that may be
 * rough, then speeds. fixed: n_q + n_u flags of values to keep, or NULL. A residual is satisfied if it is at most
 * what relative changes of the coordinates (speeds) by `tolerance` change it by, or its rounding error.
 * Returns KG_OK, KG_INCONSISTENT, or the status of a function; *corrections counts the Newton steps. */
static inline int kg_make_consistent(const kg_manifold *c, const kg_point *at, kg_real *q, kg_real *u,
                                     const kg_real *p, const int *fixed, kg_real tolerance, kg_real *work,
                                     int *corrections) {
  int status = KG_OK;
  *corrections = 0;
  if (c->position) {
    kg_level l = kg_level_of(c, 1, p, fixed, tolerance, work);
    kg_level_place(&l, at, q, u);
    status = kg_assemble(&l, corrections);
  }
  if (status >= 0 && c->velocity) {
    kg_level l = kg_level_of(c, 0, p, fixed, tolerance, work);
    kg_level_place(&l, at, q, u);
    status = kg_level_solve(&l, corrections);
  }
  return status;
}

#ifdef __cplusplus
}
#endif

#endif
