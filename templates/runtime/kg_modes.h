/* kg_modes.h - computes the forces of contacts whose modes are given.
 *
 * Multipliers lambda give the contact rows W (n_rows x n_u) the values w = b + D lambda, D = W M W^T, where M is the
 * inverse of the mass matrix on the motions that the bilateral constraints allow: D is symmetric and positive
 * semidefinite, singular when contacts are redundant. In accelerations b is the row acceleration at lambda = 0 less the
 * one that a closed (stuck) row must have; in impacts the same with velocities and impulses.
 *
 * A closed normal and a stuck tangent have w = 0; a slipping one has lambda_t = -mu_k N d along the unit direction of
 * slip d. Where N is itself unknown the system is not symmetric: it may be singular, its solution tensile (Painleve).
 * F. Pfeiffer, Ch. Glocker, Multibody Dynamics with Unilateral Contacts, Wiley 1996.
 */
#ifndef KG_MODES_H
#define KG_MODES_H

#include "kg_generalized.h"
#include "kg_linalg.h"
#include "kg_ode.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of the same contacts in units of the square root of their own response: a pivot below this fraction of 1 belongs
 * to a row that depends on the others. D is a square: this is an angle of 3e-5 between rows (3e-3 in
 * float). */
#define KG_MODES_RANK KG_BY_PRECISION(1e-9, 1e-5)
/* Largest inconsistency of redundant rows, as a fraction of the largest row: the error of a stabilized state. */
#define KG_MODES_RESIDUAL KG_BY_PRECISION(1e-6, 1e-3)

/* The rows, the modes and the multipliers. The caller provides the arrays. */
typedef struct {
  int n_rows;
  int n_contacts;
  const kg_contact_info *info;
  const int *law;     /* per contact: KG_LAW_..., which can differ from that of info (kg_contact.h) */
  const kg_real *D;
  const kg_real *b;
  const kg_real *load; /* per contact: normal force where it is known */
  const kg_real *mu_s; /* per contact */
  const kg_real *mu_k;
  int *mode;          /* per contact */
  kg_real *direction; /* 2 per contact: unit direction of slip */
  kg_real *sign;      /* per contact: sign of a two-sided normal multiplier whose magnitude is N */
  kg_real *lambda;    /* n_rows: the result */
  kg_real *center;    /* n_rows, or NULL: see kg_mode_hold.h */
  int redundant;      /* whether the multipliers are not unique; then they have least norm */
  int *unknown;       /* scratch, n_rows: rows to be solved for, */
  int *slipping;      /* n_rows: the contact whose slip depends on the unknown, or -1 */
  kg_real *scale;     /* n_rows */
  kg_real *dense;     /* kg_modes_dense() */
} kg_modes;

/* Length of `dense`. */
static inline size_t kg_modes_dense(int n_rows) {
  return 2 * (size_t)n_rows * (size_t)n_rows + 8 * (size_t)n_rows;
}

static inline int kg_closed(int mode) { return mode >= KG_CLOSED; }

/* Whether the normal force of a closed contact is an unknown. */
static inline int kg_normal_unknown(const kg_modes *s, int m) {
  return s->info[m].normal >= 0 && s->law[m] != KG_LAW_COMPLIANT;
}

static inline kg_real kg_sign_of(kg_real x) { return x < KG_C(0.0) ? KG_C(-1.0) : KG_C(1.0); }

/* The normal force that friction counts, of the multipliers `lambda`: never tensile. */
static inline kg_real kg_normal_force_of(const kg_modes *s, int m, const kg_real *lambda) {
  const kg_contact_info *info = s->info + m;
  kg_real force;
  if (!kg_normal_unknown(s, m)) {
    force = s->load[m];
  } else {
    force = lambda[info->normal];
    force = s->law[m] == KG_LAW_BILATERAL ? KG_ABS(force) : force;
  }
  return KG_MAX(force, KG_C(0.0));
}

static inline kg_real kg_modes_normal_force(const kg_modes *s, int m) { return kg_normal_force_of(s, m, s->lambda); }

/* The slip force lambda_t = -mu_k N d. */
static inline void kg_modes_slip_force(kg_modes *s, int m, kg_real normal_force) {
  for (int k = 0; k < s->info[m].directions; ++k) {
    s->lambda[s->info[m].tangent + k] = -s->mu_k[m] * normal_force * s->direction[2 * m + k];
  }
}

/* Lists the unknowns and writes the multipliers that are known. Returns the number of unknowns. */
static inline int kg_modes_unknowns(kg_modes *s) {
  int n = 0;
  kg_clear(s->n_rows, s->lambda);
  for (int m = 0; m < s->n_contacts; ++m) {
    const kg_contact_info *info = s->info + m;
    const int slips = s->mode[m] == KG_SLIP, known = !kg_normal_unknown(s, m);
    if (!kg_closed(s->mode[m])) {
      continue;
    }
    if (!known) {
      s->slipping[n] = slips ? m : -1;
      s->unknown[n++] = info->normal;
    } else if (info->normal >= 0) {
      s->lambda[info->normal] = s->load[m];
    }
    if (slips && known) {
      kg_modes_slip_force(s, m, s->load[m]);
    } else if (s->mode[m] == KG_STICK) {
      for (int k = 0; k < info->directions; ++k) {
        s->slipping[n] = -1;
        s->unknown[n++] = info->tangent + k;
      }
    }
  }
  return n;
}

/* Value of a row at the present multipliers. */
static inline kg_real kg_modes_row(const kg_modes *s, int row) {
  return s->b[row] + kg_dot(s->n_rows, s->D + row * (ptrdiff_t)s->n_rows, s->lambda);
}

/* Response of a row to unknown j, the slip forces that depend on it included. */
static inline kg_real kg_modes_entry(const kg_modes *s, int row, int j) {
  const kg_real *D = s->D + row * (ptrdiff_t)s->n_rows;
  const int m = s->slipping[j];
  kg_real entry = D[s->unknown[j]];
  if (m >= 0) {
    const kg_real factor = s->law[m] == KG_LAW_BILATERAL ? s->mu_k[m] * s->sign[m] : s->mu_k[m];
    for (int k = 0; k < s->info[m].directions; ++k) {
      entry -= factor * s->direction[2 * m + k] * D[s->info[m].tangent + k];
    }
  }
  return entry;
}

/* Square root of the row's own response: the unit of its value, and the reciprocal one of its multiplier. */
static inline kg_real kg_modes_unit(const kg_modes *s, int row) {
  const kg_real own = s->D[row * (ptrdiff_t)(s->n_rows + 1)];
  return own > KG_C(0.0) ? KG_SQRT(own) : KG_C(1.0);
}

/* The equations G x = z of n unknowns, all in the units of the rows. */
static inline void kg_modes_equations(kg_modes *s, int n, kg_real *G, kg_real *z) {
  for (int i = 0; i < n; ++i) {
    s->scale[i] = KG_C(1.0) / kg_modes_unit(s, s->unknown[i]);
  }
  for (int i = 0; i < n; ++i) {
    z[i] = -s->scale[i] * kg_modes_row(s, s->unknown[i]);
    for (int j = 0; j < n; ++j) {
      G[i * (ptrdiff_t)n + j] = s->scale[i] * s->scale[j] * kg_modes_entry(s, s->unknown[i], j);
    }
  }
}

/* The solution of G x = z, which z becomes. G: n x n, destroyed. Unlike in kg_lu_solve(), rows that depend on each
 * other up to the error of the state, not only to rounding, count as singular. */
static inline int kg_modes_eliminate(int n, kg_real *G, kg_real *z) {
  if (kg_lu_factor(n, 1, G, z, KG_MODES_RANK, KG_C(0.0), NULL) != KG_OK) {
    return KG_SINGULAR;
  }
  kg_lu_back(n, 1, G, z);
  return KG_OK;
}

/* The multipliers from the unknowns x. */
static inline void kg_modes_assign(kg_modes *s, int n, const kg_real *x) {
  for (int j = 0; j < n; ++j) {
    const int m = s->slipping[j];
    const kg_real value = s->scale[j] * x[j];
    s->lambda[s->unknown[j]] = value;
    if (m >= 0) {
      kg_modes_slip_force(s, m, s->law[m] == KG_LAW_BILATERAL ? s->sign[m] * value : value);
    }
  }
}

/* Redundant contacts: the accelerations are unique, the multipliers are not. Takes those of least norm, in the units of
 * the rows. KG_SINGULAR if the rows are inconsistent: no forces maintain these modes. */
KG_COLD
static inline int kg_modes_redundant(kg_modes *s, int n) {
  kg_real *G = s->dense, *U = G + n * (ptrdiff_t)n, *z = U + n * (ptrdiff_t)n, *sizes = z + n, *x = sizes + n;
  kg_real largest = KG_C(0.0), left = KG_C(0.0);
  kg_modes_equations(s, n, G, z);
  for (int i = 0; i < n; ++i) {
    largest = KG_MAX(largest, KG_ABS(z[i]));
  }
  kg_pseudoinverse(n, n, G, z, U, sizes, x, x + n);
  kg_modes_assign(s, n, x);
  for (int i = 0; i < n; ++i) {
    const kg_real residual = s->scale[i] * KG_ABS(kg_modes_row(s, s->unknown[i]));
    left = KG_MAX(left, residual);
  }
  return left <= KG_MODES_RESIDUAL * largest ? KG_OK : KG_SINGULAR;
}

/* One unknown: no scaling, no elimination. */
static inline int kg_modes_single(kg_modes *s) {
  const int row = s->unknown[0];
  const kg_real own = s->D[row * (ptrdiff_t)(s->n_rows + 1)], entry = kg_modes_entry(s, row, 0);
  const kg_real value = kg_modes_row(s, row);
  const int regular = KG_ABS(entry) > KG_MODES_RANK * own;
  const kg_real x = regular ? -value / entry : KG_C(0.0);
  s->scale[0] = KG_C(1.0);
  kg_modes_assign(s, 1, &x);
  return regular || !(KG_ABS(value) > KG_C(0.0)) ? KG_OK : KG_SINGULAR;
}

/* Whether slip forces depend on the unknowns: the equations are symmetric unless they do. */
static inline int kg_modes_coupled(const kg_modes *s, int n) {
  for (int j = 0; j < n; ++j) {
    if (s->slipping[j] >= 0) {
      return 1;
    }
  }
  return 0;
}

/* Closed and stuck rows only: the pivots of the symmetric equations compare with the rows' own responses, so that no
 * units are needed. */
static inline int kg_modes_symmetric(kg_modes *s, int n) {
  kg_real *G = s->dense, *z = G + n * (ptrdiff_t)n;
  for (int i = 0; i < n; ++i) {
    const kg_real *D = s->D + s->unknown[i] * (ptrdiff_t)s->n_rows;
    s->scale[i] = KG_C(1.0);
    z[i] = -kg_modes_row(s, s->unknown[i]);
    for (int j = 0; j <= i; ++j) {
      G[i * (ptrdiff_t)n + j] = D[s->unknown[j]];
    }
  }
  if (kg_cholesky_solve(n, G, z) != KG_OK) {
    return KG_SINGULAR;
  }
  for (int i = 0; i < n; ++i) { /* the diagonal now holds the reciprocal pivots */
    const kg_real own = s->D[s->unknown[i] * (ptrdiff_t)(s->n_rows + 1)];
    if (!(KG_MODES_RANK * own * G[i * (ptrdiff_t)(n + 1)] < KG_C(1.0))) {
      return KG_SINGULAR;
    }
  }
  return KG_OK;
}

/* The multipliers with the assumed signs of two-sided normals. */
static inline int kg_modes_solve_signed(kg_modes *s) {
  const int n = kg_modes_unknowns(s);
  kg_real *G = s->dense, *z = G + n * (ptrdiff_t)n;
  int status;
  s->redundant = 0;
  if (n <= 1) {
    return n == 0 ? KG_OK : kg_modes_single(s);
  }
  if (kg_modes_coupled(s, n)) {
    kg_modes_equations(s, n, G, z);
    status = kg_modes_eliminate(n, G, z);
  } else {
    status = kg_modes_symmetric(s, n);
  }
  if (status != KG_OK) {
    kg_modes_unknowns(s);
    s->redundant = 1;
    return kg_modes_redundant(s, n);
  }
  kg_modes_assign(s, n, z);
  return KG_OK;
}

/* Sets the sign of every slipping two-sided normal to that of its multiplier. Returns the number of changes. */
static inline int kg_modes_correct_signs(kg_modes *s) {
  int wrong = 0;
  for (int m = 0; m < s->n_contacts; ++m) {
    if (s->mode[m] == KG_SLIP && s->law[m] == KG_LAW_BILATERAL &&
        s->lambda[s->info[m].normal] * s->sign[m] < KG_C(0.0)) {
      s->sign[m] = -s->sign[m];
      ++wrong;
    }
  }
  return wrong;
}

/* The multipliers in the present modes. KG_SINGULAR if no multipliers maintain them. The signs of two-sided normals are
 * assumptions: wrong signs are reversed, each at most once. */
static inline int kg_modes_solve(kg_modes *s) {
  for (int attempt = 0; attempt <= s->n_contacts; ++attempt) {
    const int status = kg_modes_solve_signed(s);
    if (status != KG_OK) {
      return status;
    }
    if (kg_modes_correct_signs(s) == 0) {
      return KG_OK;
    }
  }
  return KG_SINGULAR;
}

/* A below this fraction of D_nn counts as zero (kg_modes_yield()): forces grow without bound as A tends to zero. */
#define KG_MODES_STABLE KG_BY_PRECISION(1e-7, 1e-5)

/* The acceleration of the gap of closed contact m that its own normal force causes while the other contacts keep their
 * modes, divided by D_nn and less KG_MODES_STABLE. For a single contact that slips this is A / D_nn with
 * A = D_nn - mu_k D_nt d: if it is negative, the penetration of a contact with any normal compliance grows
 * exponentially (F. Genot, B. Brogliato, New results on Painleve paradoxes, Eur. J. Mech. A/Solids 18, 1999). 1 for
 * redundant normals, which do not yield. unit: n_rows zeros, none: n_contacts zeros, lambda: n_rows of scratch. */
static inline kg_real kg_modes_yield(kg_modes *s, int m, kg_real *unit, const kg_real *none, kg_real *lambda) {
  const int row = s->info[m].normal, redundant = s->redundant;
  const kg_real *b = s->b, *load = s->load;
  kg_real *own = s->lambda;
  kg_real result = KG_C(1.0);
  s->b = unit;
  s->load = none;
  s->lambda = lambda;
  unit[row] = KG_C(-1.0);
  if (kg_modes_solve_signed(s) == KG_OK && KG_ABS(lambda[row]) > KG_C(0.0)) {
    result = KG_C(1.0) / (lambda[row] * s->D[row * (ptrdiff_t)(s->n_rows + 1)]) - KG_MODES_STABLE;
  }
  unit[row] = KG_C(0.0);
  s->b = b;
  s->load = load;
  s->lambda = own;
  s->redundant = redundant;
  return result;
}

#ifdef __cplusplus
}
#endif

#endif
