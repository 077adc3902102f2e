/* kg_impulse.h - computes the speeds after impulses that act at one instant on a model with bilateral constraints.
 *
 *   M (u+ - u-) = I + psi_u(u+)^T Lambda,  psi(q, u+, t) = 0,
 *
 * where M is Q, less dF/du' of loads that depend on accelerations, and psi are the rows at velocity level (phi' of the
 * holonomic ones); rows at acceleration level require J (u+ - u-) = 0. Bajodah (2003), chapter 6. For rows linear in the
 * speeds that satisfied them before this is one solve; rows nonlinear in them take Newton's method on both equations.
 */
#ifndef KG_IMPULSE_H
#define KG_IMPULSE_H

#include "kg_linalg.h"
#include "kg_ode.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KG_IMPULSE_ITERATIONS 50

/* The rows and functions of a model. If rows of J are dependent, `rows` selects n_c independent ones. */
typedef struct {
  int n_u;
  int n_c;
  const int *rows;             /* indices, ascending; NULL: all */
  const kg_function *mass;     /* M or Q */
  const kg_function *jacobian; /* J; NULL without constraints */
  const kg_function *velocity; /* [psi_u | psi] of the first rows of J; NULL without such rows */
} kg_impulse_rows;

/* All constraints of a model at velocity and acceleration level; `mass`: the name of the matrix of the accelerations. */
static inline kg_impulse_rows kg_impulse_rows_of(const kg_model *model, const char *mass) {
  kg_impulse_rows rows;
  rows.n_u = model->n_u;
  rows.rows = NULL;
  rows.mass = kg_find_function(model, mass);
  rows.jacobian = kg_find_function(model, "J");
  rows.velocity = kg_find_function(model, "velocity_level");
  rows.n_c = rows.jacobian ? rows.jacobian->rows : 0;
  return rows;
}

/* One impulse while it is solved. */
typedef struct {
  const kg_impulse_rows *rows;
  const kg_point *at; /* the state before */
  const kg_real *p;
  kg_real *scratch; /* work array of the functions */
  kg_real *Q;
  kg_real *all;     /* every row of J */
  kg_real *levels;  /* [psi_u | psi] */
  kg_real *J;       /* n_c x n_u */
  kg_real *psi;     /* n_c, u+ - u- times the row at acceleration level */
  kg_real *shifted; /* J at other speeds */
  kg_real *K;       /* (n_u + n_c) square */
  kg_real *x;       /* n_u + n_c: change of u, multipliers */
  kg_real *before;  /* u- */
  kg_real *lambda;  /* n_c */
  kg_real *other;   /* speeds near u */
} kg_impulse_solve;

static inline int kg_impulse_scratch(const kg_impulse_rows *rows) {
  const kg_function *const all[] = {rows->mass, rows->jacobian, rows->velocity};
  int work = 0;
  for (int i = 0; i < 3; ++i) {
    work = all[i] && all[i]->work > work ? all[i]->work : work;
  }
  return work;
}

/* Places the arrays in `work`; returns their length. With work NULL it only computes the length. */
static inline size_t kg_impulse_place(const kg_impulse_rows *rows, kg_real *work, kg_impulse_solve *s) {
  const size_t n = (size_t)rows->n_u, m = (size_t)rows->n_c;
  const size_t known = rows->jacobian ? (size_t)rows->jacobian->rows : 0;
  const size_t bound = rows->velocity ? (size_t)rows->velocity->rows : 0;
  const size_t sizes[12] = {(size_t)kg_impulse_scratch(rows), n * n, known * n, bound * (n + 1), m * n, m, m * n,
                            (n + m) * (n + m), n + m, n, m, n};
  kg_real **const arrays[12] = {&s->scratch, &s->Q, &s->all, &s->levels, &s->J, &s->psi, &s->shifted, &s->K,
                                &s->x, &s->before, &s->lambda, &s->other};
  size_t total = 0;
  for (int i = 0; i < 12; ++i) {
    *arrays[i] = work ? work + total : NULL;
    total += sizes[i];
  }
  return total;
}

/* Length of the workspace of kg_impulse(), in kg_real. */
static inline size_t kg_impulse_work(const kg_impulse_rows *rows) {
  kg_impulse_solve unused;
  return kg_impulse_place(rows, NULL, &unused) + 1;
}

static inline int kg_impulse_row(const kg_impulse_rows *rows, int i) { return rows->rows ? rows->rows[i] : i; }

/* A function at the speeds u. */
static inline int kg_impulse_call(const kg_impulse_solve *s, const kg_function *f, const kg_real *u, kg_real *out) {
  kg_point at = *s->at;
  at.u = u;
  return f->evaluate(&at, s->p, s->scratch, out);
}

/* J at the speeds u. */
static inline int kg_impulse_jacobian(kg_impulse_solve *s, const kg_real *u, kg_real *J) {
  const ptrdiff_t n = s->rows->n_u;
  int status;
  if (s->rows->n_c == 0) {
    return KG_OK;
  }
  status = kg_impulse_call(s, s->rows->jacobian, u, s->all);
  for (int i = 0; i < s->rows->n_c; ++i) {
    memcpy(J + i * n, s->all + kg_impulse_row(s->rows, i) * n, (size_t)n * sizeof *J);
  }
  return status < 0 ? status : KG_OK;
}

/* Computes the residuals of the rows at the speeds u. */
static inline int kg_impulse_residuals(kg_impulse_solve *s, const kg_real *u) {
  const kg_function *velocity = s->rows->velocity;
  const int n = s->rows->n_u, bound = velocity ? velocity->rows : 0;
  if (velocity) {
    const int status = kg_impulse_call(s, velocity, u, s->levels);
    if (status < 0) {
      return status;
    }
  }
  for (int i = 0; i < s->rows->n_c; ++i) {
    const int row = kg_impulse_row(s->rows, i);
    if (row < bound) {
      s->psi[i] = s->levels[row * (ptrdiff_t)(n + 1) + n];
      continue;
    }
    s->psi[i] = KG_C(0.0);
    for (int j = 0; j < n; ++j) {
      s->psi[i] += s->J[i * (ptrdiff_t)n + j] * (u[j] - s->before[j]);
    }
  }
  return KG_OK;
}

/* Subtracts d(J^T Lambda)/du from the upper left block of K, column by column, by central differences. */
static inline int kg_impulse_curvature(kg_impulse_solve *s, const kg_real *u) {
  const int n = s->rows->n_u, m = s->rows->n_c;
  const kg_real step = KG_POW(KG_EPSILON, KG_C(1.0) / KG_C(3.0)) * KG_MAX(kg_largest(n, u), KG_TINY);
  for (int k = 0; k < n; ++k) {
    for (int side = -1; side <= 1; side += 2) {
      const kg_real weight = (kg_real)side / (KG_C(2.0) * step);
      int status;
      memcpy(s->other, u, (size_t)n * sizeof *u);
      s->other[k] += (kg_real)side * step;
      status = kg_impulse_jacobian(s, s->other, s->shifted);
      if (status < 0) {
        return status;
      }
      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
          s->K[j * (ptrdiff_t)(n + m) + k] -= weight * s->lambda[i] * s->shifted[i * (ptrdiff_t)n + j];
        }
      }
    }
  }
  return KG_OK;
}

/* K = [Q, -J^T; J, 0] and x = [I - Q (u - u-); -psi]. */
static inline void kg_impulse_equations(kg_impulse_solve *s, const kg_real *u, const kg_real *generalized) {
  const int n = s->rows->n_u, m = s->rows->n_c;
  memset(s->K, 0, (size_t)((n + m) * (n + m)) * sizeof *s->K);
  for (int i = 0; i < n; ++i) {
    kg_real *row = s->K + i * (ptrdiff_t)(n + m);
    s->x[i] = generalized[i];
    for (int j = 0; j < n; ++j) {
      row[j] = s->Q[i * (ptrdiff_t)n + j];
      s->x[i] -= row[j] * (u[j] - s->before[j]);
    }
    for (int k = 0; k < m; ++k) {
      row[n + k] = -s->J[k * (ptrdiff_t)n + i];
      s->K[(n + k) * (ptrdiff_t)(n + m) + i] = s->J[k * (ptrdiff_t)n + i];
    }
  }
  for (int k = 0; k < m; ++k) {
    s->x[n + k] = -s->psi[k];
  }
}

/* Returns whether the rows are independent, by their own pivots, since those of K also depend on the masses. */
static inline int kg_impulse_regular(kg_impulse_solve *s) {
  const int n = s->rows->n_u, m = s->rows->n_c;
  memcpy(s->shifted, s->J, (size_t)(m * n) * sizeof *s->J);
  return m <= n && (m == 0 || kg_partition(n, m, s->shifted, s->x) == KG_OK);
}

/* The largest change of a speed by Newton's method, relative to the speed with which it alone has as much kinetic
 * energy as all speeds together, before the impulse or now; without mass, relative to its own size. So units do not
 * matter, nor do speeds near zero. */
static inline kg_real kg_impulse_change(const kg_impulse_solve *s, const kg_real *u) {
  const int n = s->rows->n_u;
  kg_real energy = KG_C(0.0), most = KG_C(0.0);
  for (int i = 0; i < n; ++i) {
    const kg_real speed = KG_MAX(KG_ABS(u[i]), KG_ABS(s->before[i]));
    energy += s->Q[i * (ptrdiff_t)(n + 1)] * speed * speed;
  }
  for (int i = 0; i < n; ++i) {
    const kg_real mass = s->Q[i * (ptrdiff_t)(n + 1)], own = KG_MAX(KG_ABS(u[i]), KG_ABS(s->before[i]));
    const kg_real size = mass > KG_C(0.0) ? KG_SQRT(energy / mass) : own, change = KG_ABS(s->x[i]);
    most = KG_MAX(most, change > KG_C(0.0) ? change / size : KG_C(0.0));
  }
  return most;
}

/* One step of Newton's method on u and the multipliers; *change: its size. */
static inline int kg_impulse_step(kg_impulse_solve *s, kg_real *u, const kg_real *generalized, int curved,
                                  kg_real *change) {
  const int n = s->rows->n_u, m = s->rows->n_c;
  int status = kg_impulse_residuals(s, u);
  if (status < 0) {
    return status;
  }
  if (!kg_impulse_regular(s)) {
    return KG_SINGULAR;
  }
  kg_impulse_equations(s, u, generalized);
  status = curved ? kg_impulse_curvature(s, u) : KG_OK;
  if (status < 0) {
    return status;
  }
  if (kg_lu_solve(n + m, s->K, s->x) != KG_OK) {
    return KG_SINGULAR;
  }
  for (int i = 0; i < n; ++i) {
    u[i] += s->x[i];
  }
  memcpy(s->lambda, s->x + n, (size_t)m * sizeof *s->x);
  *change = kg_impulse_change(s, u);
  return KG_OK;
}

/* Returns whether the rows changed with the speeds between two evaluations. */
static inline int kg_impulse_curved(const kg_impulse_solve *s) {
  const int size = s->rows->n_u * s->rows->n_c;
  const kg_real limit = KG_BY_PRECISION(1e-14, 5e-6) * kg_largest(size, s->J);
  for (int i = 0; i < size; ++i) {
    if (!(KG_ABS(s->J[i] - s->shifted[i]) <= limit)) {
      return 1;
    }
  }
  return 0;
}

/* Changes the speeds u (n_u), those of `at`, by the generalized impulses (n_u); multipliers: n_c, constraint impulses of the rows.
 * `work` holds kg_impulse_work() values. Rows that u violates become satisfied: they are imposed at this instant.
 * Returns KG_OK, KG_SINGULAR (dependent rows, or a direction without mass), KG_INCONSISTENT (no
 * convergence of rows nonlinear in the speeds), or the status of a function. */
static inline int kg_impulse(const kg_impulse_rows *rows, const kg_point *at, kg_real *u, const kg_real *p,
                             const kg_real *generalized, kg_real *multipliers, kg_real *work) {
  const size_t size = (size_t)rows->n_u * (size_t)rows->n_c * sizeof *u;
  kg_impulse_solve s;
  kg_real change = KG_C(0.0), last;
  int status, curved = 0;
  memset(&s, 0, sizeof s);
  s.rows = rows;
  s.at = at;
  s.p = p;
  kg_impulse_place(rows, work, &s);
  memcpy(s.before, u, (size_t)rows->n_u * sizeof *u);
  status = rows->mass->evaluate(at, p, s.scratch, s.Q);
  if (status >= 0) {
    status = kg_impulse_jacobian(&s, u, s.J);
  }
  for (int iteration = 0; status >= 0 && iteration < KG_IMPULSE_ITERATIONS; ++iteration) {
    last = change;
    status = kg_impulse_step(&s, u, generalized, curved, &change);
    if (status < 0) {
      return status;
    }
    memcpy(s.shifted, s.J, size);
    status = kg_impulse_jacobian(&s, u, s.J);
    curved = curved || kg_impulse_curved(&s);
    if (!curved || change <= KG_C(64.0) * KG_EPSILON ||
        (change <= KG_BY_PRECISION(1e-9, 1e-4) && iteration > 0 && change > KG_C(0.5) * last)) {
      memcpy(multipliers, s.lambda, (size_t)rows->n_c * sizeof *multipliers);
      return status < 0 ? status : KG_OK;
    }
  }
  return status < 0 ? status : KG_INCONSISTENT;
}

#ifdef __cplusplus
}
#endif

#endif
