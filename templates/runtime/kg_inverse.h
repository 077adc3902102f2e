/* kg_inverse.h - inverse dynamics: computes the controls and multipliers of a prescribed motion.
 *
 * It solves M u' = P0 + G tau + J^T lambda for tau and lambda. The part of the force along the constraints does not
 * depend on tau and is removed first; then tau is the least-squares solution of least norm, and lambda follows. Ranks
 * are determined from singular values, so that constraints may be redundant, and controls may be too many or too few.
 */
#ifndef KG_INVERSE_H
#define KG_INVERSE_H

#include "kg_generalized.h"

#ifdef __cplusplus
extern "C" {
#endif

/* If at most this fraction of a control is orthogonal to the constraints, it acts only along the constraints. */
#define KG_INVERSE_ALONG KG_BY_PRECISION(1e-10, 1e-5)

typedef struct {
  int n_q;
  int n_u;
  const kg_function *kinematics; /* [C D c] of q' = C u + D, q'' = C u' + c (n_q x (n_u + 2)) */
  const kg_function *mass;       /* M or Q */
  const kg_function *forces;     /* P */
  const kg_function *controls;   /* G^T (n_tau x n_u) */
  const kg_function *jacobian;   /* J, NULL without constraints */
  const kg_function *bias;       /* b, likewise */
  const int *slots;              /* of the controls in r */
} kg_inverse;

/* The results for one sample of a path. */
typedef struct {
  kg_real *tau;       /* n_tau */
  kg_real *lambda;    /* n_c */
  kg_real *residual;  /* n_u: generalized forces that no control and no constraint supplies */
  kg_real *violation; /* n_c: J u' - b */
  kg_real *slip;      /* n_q: q' - C u - D */
  int rank;           /* of the controls orthogonal to the constraints: n_tau if they are unique */
} kg_inverse_result;

static inline int kg_inverse_rows(const kg_inverse *m) { return m->jacobian ? m->jacobian->rows : 0; }

static inline int kg_inverse_largest_work(const kg_inverse *m) {
  const kg_function *all[6] = {m->kinematics, m->mass, m->forces, m->controls, m->jacobian, m->bias};
  int largest = 0;
  for (int i = 0; i < 6; ++i) {
    largest = all[i] && all[i]->work > largest ? all[i]->work : largest;
  }
  return largest;
}

/* Values of workspace for the functions below. */
static inline size_t kg_inverse_work(const kg_inverse *m) {
  const size_t n_q = (size_t)m->n_q, n_u = (size_t)m->n_u, n_c = (size_t)kg_inverse_rows(m);
  const size_t n_tau = (size_t)m->controls->rows;
  const size_t path = n_q * (n_u + 2) + n_u * n_q + n_u * n_u + n_u + n_q;
  const size_t force = n_u * n_u + n_c * n_u + n_c * n_c + n_c + 2 * n_tau * n_u + n_tau * n_tau + n_tau + 4 * n_u;
  return (path > force ? path : force) + (size_t)kg_inverse_largest_work(m);
}

/* x (m) = (M^T)^+ b (n) for the orthogonal rows of M (m x n), their rotation U and sizes. */
static inline void kg_inverse_combine(int m, int n, const kg_real *M, const kg_real *U, const kg_real *sizes,
                                      const kg_real *b, kg_real *x) {
  kg_clear(m, x);
  for (int i = 0; i < m; ++i) {
    if (sizes[i] > KG_C(0.0)) {
      kg_add(m, kg_dot(n, M + i * (ptrdiff_t)n, b) / sizes[i], U + i * (ptrdiff_t)m, x);
    }
  }
}

/* Computes u, the speeds of `at`, and u' of a path q, q', q'' there, and the residual of the kinematics. Returns the
 * status of the kinematics, or KG_SINGULAR if q' does not determine u. */
static inline int kg_inverse_speeds(const kg_inverse *m, const kg_point *at, const kg_real *qdot, const kg_real *qddot,
                                    const kg_real *p, kg_real *work, kg_real *u, kg_real *udot, kg_real *slip) {
  const int n_q = m->n_q, n_u = m->n_u;
  kg_real *found = work, *columns = found + n_q * (ptrdiff_t)(n_u + 2), *U = columns + n_u * (ptrdiff_t)n_q;
  kg_real *sizes = U + n_u * (ptrdiff_t)n_u, *rest = sizes + n_u, *scratch = rest + n_q;
  for (int pass = 0; pass < 2; ++pass) {
    const kg_real *rate = pass == 0 ? qdot : qddot;
    kg_real *speeds = pass == 0 ? u : udot;
    int status;
    if (pass == 0) {
      kg_clear(n_u, u);
    }
    status = m->kinematics->evaluate(at, p, scratch, found);
    if (status < 0) {
      return status;
    }
    for (int i = 0; i < n_q; ++i) {
      const kg_real *row = found + i * (ptrdiff_t)(n_u + 2);
      for (int k = 0; k < n_u; ++k) {
        columns[k * (ptrdiff_t)n_q + i] = row[k];
      }
      rest[i] = rate[i] - row[n_u + pass];
    }
    kg_orthogonal_rows(n_u, n_q, columns, U, sizes);
    if (kg_rank_of_rows(n_u, n_q, columns, sizes) < n_u) {
      return KG_SINGULAR;
    }
    kg_inverse_combine(n_u, n_q, columns, U, sizes, rest, speeds);
    if (pass == 0) {
      for (int i = 0; i < n_q; ++i) {
        slip[i] = rest[i] - kg_dot(n_u, found + i * (ptrdiff_t)(n_u + 2), u);
      }
    }
  }
  return KG_OK;
}

/* f (n_u) = M u' - P, and J u' - b; `matrix` n_u x n_u or n_c x n_u, scratch. */
static inline int kg_inverse_balance(const kg_inverse *m, const kg_point *at, const kg_real *udot, const kg_real *p,
                                     kg_real *matrix, kg_real *J, kg_real *scratch, kg_real *f, kg_real *violation) {
  const int n_u = m->n_u, n_c = kg_inverse_rows(m);
  int status = m->mass->evaluate(at, p, scratch, matrix);
  if (status >= 0) {
    status = m->forces->evaluate(at, p, scratch, f);
  }
  for (int i = 0; i < n_u && status >= 0; ++i) {
    f[i] = kg_dot(n_u, matrix + i * (ptrdiff_t)n_u, udot) - f[i];
  }
  if (n_c > 0 && status >= 0) {
    status = m->jacobian->evaluate(at, p, scratch, J);
    if (status >= 0) {
      status = m->bias->evaluate(at, p, scratch, violation);
    }
    for (int i = 0; i < n_c && status >= 0; ++i) {
      violation[i] = kg_dot(n_u, J + i * (ptrdiff_t)n_u, udot) - violation[i];
    }
  }
  return status;
}

/* Row <- its part orthogonal to the rows of J; zero if this is only rounding. */
static inline void kg_inverse_beside(int n_c, int n_u, const kg_real *J, const kg_real *sizes, kg_real *row,
                                     kg_real *along) {
  const kg_real size = kg_dot(n_u, row, row);
  kg_project_rows(n_c, n_u, J, sizes, row, along);
  kg_add(n_u, KG_C(-1.0), along, row);
  if (!(kg_dot(n_u, row, row) > KG_INVERSE_ALONG * KG_INVERSE_ALONG * size)) {
    kg_clear(n_u, row);
  }
}

/* Controls and multipliers of a motion with the accelerations u'; the entries of the controls in r, the inputs of `at`,
 * become the controls found. Returns a status of the functions of the model. */
static inline int kg_inverse_dynamics(const kg_inverse *m, const kg_point *at, const kg_real *udot, kg_real *r,
                                      const kg_real *p, kg_real *work, kg_inverse_result *out) {
  const int n_u = m->n_u, n_c = kg_inverse_rows(m), n_tau = m->controls->rows;
  kg_real *matrix = work, *J = matrix + n_u * (ptrdiff_t)n_u, *U_J = J + n_c * (ptrdiff_t)n_u;
  kg_real *sizes_J = U_J + n_c * (ptrdiff_t)n_c, *G = sizes_J + n_c, *rows = G + n_tau * (ptrdiff_t)n_u;
  kg_real *U = rows + n_tau * (ptrdiff_t)n_u, *sizes = U + n_tau * (ptrdiff_t)n_tau, *f = sizes + n_tau;
  kg_real *beside = f + n_u, *along = beside + n_u, *scratch = along + n_u;
  int status;
  for (int k = 0; k < n_tau; ++k) {
    r[m->slots[k]] = KG_C(0.0);
  }
  status = m->controls->evaluate(at, p, scratch, G);
  if (status >= 0) {
    status = kg_inverse_balance(m, at, udot, p, matrix, J, scratch, f, out->violation);
  }
  if (status < 0) {
    return status;
  }
  kg_orthogonal_rows(n_c, n_u, J, U_J, sizes_J);
  kg_rank_of_rows(n_c, n_u, J, sizes_J);
  kg_project_rows(n_c, n_u, J, sizes_J, f, along);
  for (int i = 0; i < n_u; ++i) {
    beside[i] = f[i] - along[i];
  }
  for (int k = 0; k < n_tau; ++k) {
    kg_real *row = rows + k * (ptrdiff_t)n_u;
    for (int i = 0; i < n_u; ++i) {
      row[i] = G[k * (ptrdiff_t)n_u + i];
    }
    kg_inverse_beside(n_c, n_u, J, sizes_J, row, along);
  }
  kg_orthogonal_rows(n_tau, n_u, rows, U, sizes);
  out->rank = kg_rank_of_rows(n_tau, n_u, rows, sizes);
  kg_inverse_combine(n_tau, n_u, rows, U, sizes, beside, out->tau);
  for (int k = 0; k < n_tau; ++k) {
    kg_add(n_u, -out->tau[k], G + k * (ptrdiff_t)n_u, f);
    r[m->slots[k]] = out->tau[k];
  }
  kg_inverse_combine(n_c, n_u, J, U_J, sizes_J, f, out->lambda);
  kg_project_rows(n_c, n_u, J, sizes_J, f, along);
  for (int i = 0; i < n_u; ++i) {
    out->residual[i] = f[i] - along[i];
  }
  return KG_OK;
}

#ifdef __cplusplus
}
#endif

#endif
