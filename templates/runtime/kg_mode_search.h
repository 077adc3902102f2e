/* kg_mode_search.h - searches by pivoting for modes of contacts that agree with the resulting forces.
 *
 * Normals obey 0 <= lambda, 0 <= w, lambda w = 0 (a linear complementarity problem; Cottle, Pang, Stone, The Linear
 * Complementarity Problem, 1992), friction the law of Coulomb: a stuck contact has |lambda_t| <= mu_s N, one that
 * starts to slip moves along d with lambda_t = -mu_k N d. Pivoting starts from the present modes and changes the mode
 * of the most violated contact, after many pivots that of the first violated one (the rule of Murty 1974, finite for
 * positive definite D). If this cycles, it starts again from a better guess. If this fails too, and to find out whether
 * a solution with friction is the only one, all sets of modes are tried (kg_mode_scan.h).
 */
#ifndef KG_MODE_SEARCH_H
#define KG_MODE_SEARCH_H

#include "kg_mode_hold.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The largest number of sets of modes that are tried: six contacts with friction in one direction at rest, or twelve
 * without friction. Beyond that a set found by pivoting is taken without proof that it is the only one. */
#define KG_MODE_COMBINATIONS 4096
/* An inequality is violated beyond this fraction of the largest row; accelerations differ beyond the other one. */
#define KG_MODE_TOLERANCE KG_BY_PRECISION(1e-10, 1e-5)
#define KG_MODE_DIFFERENCE KG_BY_PRECISION(1e-6, 1e-3)
/* Iterations for the direction in which a contact starts to slip in a plane, and its accuracy. */
#define KG_DIRECTION_ITERATIONS 1000
#define KG_DIRECTION_TOLERANCE (KG_C(16.0) * KG_EPSILON)
#define KG_DIRECTION_FAILURE KG_BY_PRECISION(1e-8, 1e-4)

/* Possible modes of a contact, as bits; KG_MAY_START: w gives the direction of slip, since it does not slip yet. */
#define KG_MAY(mode) (1 << (mode))
#define KG_MAY_START (1 << 5)

typedef struct {
  kg_modes *modes;
  int *may;             /* per contact: bits */
  int *best;            /* n_contacts: the modes found, */
  kg_real *best_state;  /* 3 per contact: with their directions and signs, */
  kg_real *best_w;      /* n_rows: and their rows */
  kg_real *w;           /* n_rows: row values of the last solution */
  int *counter;         /* n_contacts */
  kg_real size;         /* the largest row, in the units of the rows */
  int choose;           /* of several solutions the stable one of least force is taken (kg_mode_scan.h) */
  kg_real *unit;        /* n_rows zeros, for unit loads */
  const kg_real *none;  /* n_contacts zeros */
  kg_real *response;    /* n_rows */
  int unstable;         /* contact that is unstable in a set of modes that agrees with the laws, or -1 */
  int *conflict;        /* n_contacts: after KG_NO_MODE, flags of the contacts whose laws contradict each other, */
  int friction;         /* and whether they would not without friction (kg_mode_scan.h) */
  int culprit;          /* contact that no mode satisfies, or that has several; -1 */
} kg_mode_search;

/* One change of mode, and the violation that requires it. */
typedef struct {
  int contact;
  int mode;
  kg_real violation;
} kg_pivot;

static inline int kg_may(const kg_mode_search *f, int m, int mode) { return (f->may[m] & KG_MAY(mode)) != 0; }

static inline kg_real kg_search_tolerance(const kg_mode_search *f) { return KG_MODE_TOLERANCE * f->size; }

/* The largest row at lambda = 0, or response to a known normal force, in the units of the rows. */
static inline kg_real kg_search_size(const kg_modes *s) {
  kg_real size = KG_C(0.0);
  for (int m = 0; m < s->n_contacts; ++m) {
    const kg_contact_info *info = s->info + m;
    const kg_real load = kg_normal_unknown(s, m) ? KG_C(0.0) : KG_ABS(s->load[m]);
    for (int k = -1; k < info->directions; ++k) {
      const int row = k < 0 ? info->normal : info->tangent + k;
      if (row >= 0) {
        const kg_real unit = kg_modes_unit(s, row);
        size = KG_MAX(size, KG_ABS(s->b[row]) / unit);
        size = KG_MAX(size, load * unit * (k < 0 ? KG_C(1.0) : s->mu_k[m]));
      }
    }
  }
  return size;
}

/* Component of the tangential values x along the direction of slip. */
static inline kg_real kg_slip_component(const kg_modes *s, int m, const kg_real *x) {
  return kg_dot(s->info[m].directions, x + s->info[m].tangent, s->direction + 2 * (ptrdiff_t)m);
}

static inline kg_real kg_tangential_size(const kg_modes *s, int m, const kg_real *x) {
  const kg_real *v = x + s->info[m].tangent;
  return s->info[m].directions == 2 ? KG_SQRT(v[0] * v[0] + v[1] * v[1]) : KG_ABS(v[0]);
}

/* The direction of slip becomes that of factor * x, if x has one. */
static inline void kg_aim(kg_modes *s, int m, kg_real factor, const kg_real *x) {
  const kg_real size = kg_tangential_size(s, m, x);
  for (int k = 0; size > KG_C(0.0) && k < s->info[m].directions; ++k) {
    s->direction[2 * m + k] = factor * x[s->info[m].tangent + k] / size;
  }
}

/* Returns whether the direction of slip of a contact is unknown. */
static inline int kg_starts_in_plane(const kg_mode_search *f, int m) {
  return f->modes->mode[m] == KG_SLIP && f->modes->info[m].directions == 2 && (f->may[m] & KG_MAY_START) != 0;
}

/* Largest eigenvalue of the tangential response. */
static inline kg_real kg_tangential_response(const kg_modes *s, int m) {
  const kg_real *D = s->D + s->info[m].tangent * (ptrdiff_t)(s->n_rows + 1);
  const kg_real a = D[0], b = D[1], d = D[s->n_rows + 1];
  return KG_C(0.5) * (a + d + KG_SQRT((a - d) * (a - d) + KG_C(4.0) * b * b));
}

/* One step towards d parallel to w_t: d <- (w_t + k N mu d) / |...|, which has the solution d as a fixed point and
 * contracts for k >= the largest tangential response (the proximal iteration of Jean and Moreau). Returns the change of
 * d. */
static inline kg_real kg_turn(kg_mode_search *f, int m) {
  kg_modes *s = f->modes;
  const kg_real hold = kg_tangential_response(s, m) * s->mu_k[m] * kg_modes_normal_force(s, m);
  kg_real *d = s->direction + 2 * (ptrdiff_t)m;
  const kg_real *w = f->w + s->info[m].tangent;
  const kg_real x = w[0] + hold * d[0], y = w[1] + hold * d[1], size = KG_SQRT(x * x + y * y);
  kg_real change = KG_C(0.0);
  if (size > KG_C(0.0)) {
    change = KG_ABS(x / size - d[0]) + KG_ABS(y / size - d[1]);
    d[0] = x / size;
    d[1] = y / size;
  }
  return change;
}

static inline void kg_search_rows(kg_mode_search *f) {
  for (int i = 0; i < f->modes->n_rows; ++i) {
    f->w[i] = kg_modes_row(f->modes, i);
  }
}

/* Multipliers and rows in the present modes, with directions of slip that agree with them. */
static inline int kg_search_solve(kg_mode_search *f) {
  kg_real change = KG_C(0.0);
  for (int iteration = 0; iteration < KG_DIRECTION_ITERATIONS; ++iteration) {
    const int status = kg_modes_solve(f->modes);
    if (status != KG_OK) {
      return status;
    }
    kg_search_rows(f);
    change = KG_C(0.0);
    for (int m = 0; m < f->modes->n_contacts; ++m) {
      if (kg_starts_in_plane(f, m)) {
        const kg_real turned = kg_turn(f, m);
        change = KG_MAX(change, turned);
      }
    }
    if (change <= KG_DIRECTION_TOLERANCE) {
      return KG_OK;
    }
  }
  return change <= KG_DIRECTION_FAILURE ? KG_OK : KG_SINGULAR;
}

static inline int kg_mode_without_force(const kg_mode_search *f, int m) {
  return kg_may(f, m, KG_PENETRATED) ? KG_PENETRATED : KG_OPEN;
}

static inline int kg_mode_with_force(const kg_mode_search *f, int m) {
  return kg_may(f, m, KG_CLOSED) ? KG_CLOSED : kg_may(f, m, KG_STICK) ? KG_STICK : KG_SLIP;
}

/* The violation of the normal condition of a contact, and the mode that removes it. */
static inline kg_pivot kg_normal_pivot(const kg_mode_search *f, int m) {
  const kg_modes *s = f->modes;
  const int closed = kg_closed(s->mode[m]), row = s->info[m].normal;
  kg_pivot pivot;
  pivot.contact = m;
  pivot.mode = closed ? kg_mode_without_force(f, m) : kg_mode_with_force(f, m);
  pivot.violation = KG_C(0.0);
  if (row >= 0 && kg_may(f, m, pivot.mode)) {
    const kg_real unit = kg_modes_unit(s, row);
    /* A compliant contact that touches keeps its force, which is zero here: it closes if it accelerates inwards. */
    const kg_real closing = kg_normal_unknown(s, m) ? -s->lambda[row] * unit : f->w[row] / unit;
    pivot.violation = closed ? closing : -f->w[row] / unit;
  }
  return pivot;
}

/* The violation of the law of friction: the excess of a stuck contact's force, or the backward acceleration of a
 * contact that starts to slip. */
static inline kg_pivot kg_friction_pivot(const kg_mode_search *f, int m) {
  const kg_modes *s = f->modes;
  kg_pivot pivot;
  pivot.contact = m;
  pivot.mode = s->mode[m] == KG_STICK ? KG_SLIP : KG_STICK;
  pivot.violation = KG_C(0.0);
  if (s->mode[m] == KG_STICK) {
    const kg_real unit = kg_modes_unit(s, s->info[m].tangent);
    pivot.violation = (kg_tangential_size(s, m, s->lambda) - s->mu_s[m] * kg_modes_normal_force(s, m)) * unit;
  } else if (s->mode[m] == KG_SLIP && (f->may[m] & KG_MAY_START) != 0) {
    pivot.violation = -kg_slip_component(s, m, f->w) / kg_modes_unit(s, s->info[m].tangent);
  }
  return pivot;
}

/* The most violated condition of all, or with `first` that of the first contact; violation 0 when there is none. */
static inline kg_pivot kg_search_pivot(const kg_mode_search *f, int first) {
  const kg_real tolerance = kg_search_tolerance(f);
  kg_pivot worst = {-1, KG_OPEN, KG_C(0.0)};
  for (int m = 0; m < f->modes->n_contacts && !(first && worst.contact >= 0); ++m) {
    const kg_pivot normal = kg_normal_pivot(f, m), friction = kg_friction_pivot(f, m);
    const kg_pivot pivot = normal.violation > tolerance ? normal : friction;
    if (pivot.violation > tolerance && pivot.violation > worst.violation) {
      worst = pivot;
    }
  }
  return worst;
}

static inline void kg_search_apply(kg_mode_search *f, kg_pivot pivot) {
  if (pivot.mode == KG_SLIP && (f->may[pivot.contact] & KG_MAY_START) != 0) {
    kg_aim(f->modes, pivot.contact, KG_C(-1.0), f->modes->lambda); /* against the force that would hold it */
  }
  f->modes->mode[pivot.contact] = pivot.mode;
}

/* Pivots from the present modes. KG_OK with consistent modes, else KG_NO_MODE; *pivots counts. */
static inline int kg_search_by_pivots(kg_mode_search *f, int *pivots) {
  const int n = f->modes->n_contacts;
  for (*pivots = 0; *pivots < 12 * n + 12; ++*pivots) {
    kg_pivot pivot;
    if (kg_search_solve(f) != KG_OK) {
      return KG_NO_MODE;
    }
    pivot = kg_search_pivot(f, *pivots > 2 * n + 2);
    if (pivot.contact < 0) {
      return KG_OK;
    }
    f->culprit = pivot.contact;
    kg_search_apply(f, pivot);
  }
  return KG_NO_MODE;
}

/* A first guess of the modes of many contacts with friction, where pivoting cycles.
 *
 * Sweeps over the contacts, each time giving one contact the force that satisfies it alone: the projected Gauss-Seidel
 * iteration of nonsmooth contact dynamics (Moreau; Jean 1999). It converges slowly, but the modes it tends to are
 * enough: pivoting from them ends in an exact solution.
 */

#define KG_RELAX_SWEEPS 1000
/* Changes below this fraction of the largest row end the sweeps; a friction force this close to its limit slips. */
#define KG_RELAX_CHANGE KG_BY_PRECISION(1e-12, 1e-6)
#define KG_RELAX_LIMIT KG_BY_PRECISION(1e-6, 1e-4)

/* Returns whether contact m can be without force. */
static inline int kg_may_be_off(const kg_mode_search *f, int m) { return kg_may(f, m, kg_mode_without_force(f, m)); }

static inline int kg_may_be_on(const kg_mode_search *f, int m) { return kg_may(f, m, kg_mode_with_force(f, m)); }

/* The normal force that closes the row of contact m alone. */
static inline void kg_relax_normal(kg_mode_search *f, int m) {
  kg_modes *s = f->modes;
  const int row = s->info[m].normal;
  const kg_real own = s->D[row * (ptrdiff_t)(s->n_rows + 1)];
  if (!kg_normal_unknown(s, m)) {
    s->lambda[row] = s->load[m];
  } else if (own > KG_C(0.0)) {
    const kg_real force = s->lambda[row] - kg_modes_row(s, row) / own;
    s->lambda[row] = kg_may_be_off(f, m) ? KG_MAX(force, KG_C(0.0)) : force;
  }
}

/* The friction force that holds contact m alone, limited to the largest friction force. */
static inline void kg_relax_friction(kg_mode_search *f, int m) {
  kg_modes *s = f->modes;
  const kg_contact_info *info = s->info + m;
  const kg_real normal_force = kg_modes_normal_force(s, m);
  const kg_real own = info->directions == 2 ? kg_tangential_response(s, m)
                                            : s->D[info->tangent * (ptrdiff_t)(s->n_rows + 1)];
  kg_real w[2], size;
  if (!kg_may(f, m, KG_STICK)) {
    kg_modes_slip_force(s, m, normal_force);
    return;
  }
  for (int k = 0; k < info->directions; ++k) {
    w[k] = kg_modes_row(s, info->tangent + k);
  }
  for (int k = 0; own > KG_C(0.0) && k < info->directions; ++k) {
    s->lambda[info->tangent + k] -= w[k] / own;
  }
  size = kg_tangential_size(s, m, s->lambda);
  for (int k = 0; size > s->mu_s[m] * normal_force && k < info->directions; ++k) {
    s->lambda[info->tangent + k] *= s->mu_s[m] * normal_force / size;
  }
}

/* One sweep. Returns the largest change of a row's force, in the units of the rows. */
static inline kg_real kg_relax_sweep(kg_mode_search *f) {
  kg_modes *s = f->modes;
  kg_real change = KG_C(0.0);
  for (int m = 0; m < s->n_contacts; ++m) {
    const kg_contact_info *info = s->info + m;
    const int first = info->normal >= 0 ? info->normal : info->tangent;
    const int count = info->directions + (info->normal >= 0);
    kg_real before[3];
    if (!kg_may_be_on(f, m)) {
      continue;
    }
    memcpy(before, s->lambda + first, (size_t)count * sizeof *before);
    if (info->normal >= 0) {
      kg_relax_normal(f, m);
    }
    if (info->directions > 0) {
      kg_relax_friction(f, m);
    }
    for (int k = 0; k < count; ++k) {
      const kg_real moved = KG_ABS(s->lambda[first + k] - before[k]) * kg_modes_unit(s, first + k);
      change = KG_MAX(change, moved);
    }
  }
  return change;
}

/* Returns the mode of contact m that corresponds to its force. */
static inline int kg_relaxed_mode(kg_mode_search *f, int m) {
  kg_modes *s = f->modes;
  const kg_contact_info *info = s->info + m;
  const int unilateral = info->normal >= 0 && kg_may_be_off(f, m);
  if (!kg_may_be_on(f, m) ||
      (unilateral && !(s->lambda[info->normal] * kg_modes_unit(s, info->normal) > KG_RELAX_LIMIT * f->size))) {
    return kg_mode_without_force(f, m);
  }
  if (info->directions == 0 || !kg_may(f, m, KG_SLIP)) {
    return kg_mode_with_force(f, m);
  }
  if (kg_tangential_size(s, m, s->lambda) < (KG_C(1.0) - KG_RELAX_LIMIT) * s->mu_s[m] * kg_modes_normal_force(s, m)) {
    return kg_mode_with_force(f, m);
  }
  if ((f->may[m] & KG_MAY_START) != 0) {
    kg_aim(s, m, KG_C(-1.0), s->lambda);
  }
  return KG_SLIP;
}

/* Sets every contact to the mode to which the sweeps converge. */
KG_COLD
static inline void kg_search_relax(kg_mode_search *f) {
  kg_modes *s = f->modes;
  kg_clear(s->n_rows, s->lambda);
  for (int sweep = 0; sweep < KG_RELAX_SWEEPS && kg_relax_sweep(f) > KG_RELAX_CHANGE * f->size; ++sweep) {
  }
  for (int m = 0; m < s->n_contacts; ++m) {
    s->mode[m] = kg_relaxed_mode(f, m);
  }
}

#ifdef __cplusplus
}
#endif

#endif
