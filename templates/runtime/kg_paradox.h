/* kg_paradox.h - resolves states in which no finite contact forces agree with the law of Coulomb (Painleve 1895).
 *
 * With A = D_nn - mu D_nt d <= 0 a slipping contact has no force if its gap would accelerate inwards without one. In
 * the limit of a stiff contact the force grows without bound in a vanishing time: an impact without collision (Lecornu
 * 1905). Its impulses follow from the dynamics of Darboux (1880) and Keller (1986), with the normal impulse in place
 * of time: the normal velocity decreases while friction brakes the slip; when slip has stopped the contact sticks, and
 * its normal velocity returns to zero (F. Genot, B. Brogliato, New results on Painleve paradoxes, Eur. J. Mech.
 * A/Solids 18, 1999). For one contact with one direction of slip this ends in stick, since A <= 0 implies mu >= |D_nt|
 * / D_tt.
 *
 * For several contacts, and in a plane, the law of impact of kg_impact.h gives the impulses, with speeds that differ
 * from the present ones by the accelerations in an infinitesimal time: a step of Moreau's time-stepping in the limit
 * of zero length. With slip along lines it has a solution (M. Anitescu, F. Potra, Nonlinear Dynamics 14, 1997), which
 * is not zero where no finite forces exist, and the same as that of Darboux and Keller for one contact. The impulses
 * dissipate energy.
 */
#ifndef KG_PARADOX_H
#define KG_PARADOX_H

#include "kg_impact.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Change of speed in the infinitesimal time, as a fraction of the slip velocities, and its accuracy, which must be
 * coarser than KG_MODES_STABLE: where A vanishes, the impulses of stick are at the limit of friction. */
#define KG_PARADOX_STEP KG_C(1e-4)
#define KG_PARADOX_ACCURACY KG_C(0.2)
/* Impulses are not trivial if they change speeds by more than this fraction of the smallest slip velocity; finite
 * forces change them by about KG_PARADOX_STEP. */
#define KG_PARADOX_CHANGE KG_C(1e-2)

/* After KG_NO_MODE of kg_contacts_settle(): what happens to the contacts in conflict, KG_PARADOX_.... */
static inline int kg_contacts_paradox(const kg_contacts *c) {
  int paradox = KG_PARADOX_ERROR;
  for (int m = 0; m < c->model->n_contacts && c->search.friction; ++m) {
    if (c->search.conflict[m] && c->model->contacts[m].directions > 0 && kg_normal_unknown(&c->now, m)) {
      const int own = kg_paradox_of(c->model->contacts + m);
      if (own == KG_PARADOX_ERROR) {
        return own;
      }
      paradox = KG_MAX(paradox, own);
    }
  }
  return paradox;
}

/* Flags the contacts in conflict; those with this paradox become compliant if `compliant`. */
static inline void kg_paradox_mark(kg_contacts *c, int compliant) {
  for (int m = 0; m < c->model->n_contacts; ++m) {
    if (c->search.conflict[m]) {
      c->paradox[m] = 1;
      if (compliant && kg_paradox_of(c->model->contacts + m) == KG_PARADOX_REGULARIZE) {
        c->law[m] = KG_LAW_COMPLIANT;
      }
    }
  }
}

/* Contacts that were regularized and have opened are rigid again. */
static inline void kg_paradox_release(kg_contacts *c) {
  for (int m = 0; m < c->model->n_contacts; ++m) {
    if (c->mode[m] == KG_OPEN) {
      c->law[m] = c->model->contacts[m].law;
    }
  }
}

/* Returns whether contact m touches and neither approaches nor separates. */
static inline int kg_paradox_rests(const kg_contacts *c, int m) {
  const int row = c->model->contacts[m].normal;
  return row >= 0 && kg_normal_unknown(&c->now, m) && kg_touches(c, m) &&
         (kg_closed(c->mode[m]) || KG_ABS(c->s.rate[row]) <= c->rate_zero[m]);
}

/* The smallest slip velocity of contacts that rest, in the units of the rows; 0 if none slips. */
static inline kg_real kg_paradox_slip(const kg_contacts *c) {
  kg_real least = KG_C(0.0);
  for (int m = 0; m < c->model->n_contacts; ++m) {
    const kg_contact_info *info = c->model->contacts + m;
    if (info->directions > 0 && kg_paradox_rests(c, m)) {
      const kg_real slip = kg_tangential_size(&c->now, m, c->s.rate);
      const kg_real size = slip / kg_modes_unit(&c->now, info->tangent);
      if (slip > c->slip_zero[m] && (size < least || !(least > KG_C(0.0)))) {
        least = size;
      }
    }
  }
  return least;
}

/* The largest row acceleration, in the units of the rows. */
static inline kg_real kg_paradox_acceleration(const kg_contacts *c) {
  kg_real largest = KG_C(0.0);
  for (int i = 0; i < c->model->n_rows; ++i) {
    const kg_real size = KG_ABS(c->s.free[i] - c->s.target[i]) / kg_modes_unit(&c->now, i);
    largest = KG_MAX(largest, size);
  }
  return largest;
}

/* Sets up the impact, with the changes of the speeds in the time `step`. Contacts that rest have no normal velocity,
 * those that stick no slip velocity: what is left of them are errors of the state. */
static inline void kg_paradox_rows(kg_contacts *c, kg_real step) {
  for (int m = 0; m < c->model->n_contacts; ++m) {
    const kg_contact_info *info = c->model->contacts + m;
    const int rests = kg_paradox_rests(c, m);
    if (info->normal >= 0) {
      c->b[info->normal] = rests ? KG_C(0.0) : kg_impact_row(c, m);
    }
    for (int k = 0; k < info->directions; ++k) {
      const int row = info->tangent + k, sticks = kg_tangential_size(&c->now, m, c->s.rate) <= c->slip_zero[m];
      c->b[row] = rests && sticks ? KG_C(0.0) : c->s.rate[row];
    }
  }
  for (int i = 0; i < c->model->n_rows; ++i) {
    c->b[i] += step * (c->s.free[i] - c->s.target[i]);
  }
}

/* The contact that alone has an impulse and no others near it, or -1. */
static inline int kg_paradox_alone(const kg_contacts *c) {
  int alone = -1;
  for (int m = 0; m < c->model->n_contacts; ++m) {
    if (kg_impact_choices(c, m) & KG_WITH_FORCE) {
      if (alone >= 0) {
        return -1;
      }
      alone = m;
    }
  }
  return alone >= 0 && c->model->contacts[alone].directions == 1 ? alone : -1;
}

/* Restitution of one contact that sticks, with the energetic coefficient (Stronge 1990): the normal force returns the
 * fraction e^2 of the energy that it absorbed in compression. With the slip velocity v, compression to the end of slip
 * takes the normal impulse P = |v| / (mu D_tt - |D_nt|), in which the normal velocity becomes A P, and then
 * -A P / B in stick, with B = D_nn - D_nt^2 / D_tt: the energy |A| P^2 / 2 (1 + |A| / B). */
static inline void kg_paradox_restitution(const kg_contacts *c, kg_real *impulses) {
  const int m = kg_paradox_alone(c);
  const kg_contact_info *info = c->model->contacts + KG_MAX(m, 0);
  const int n = info->normal, t = info->tangent, k = c->model->n_rows;
  const kg_real *D = c->s.D;
  kg_real nt, A, B, P, rebound;
  if (m < 0 || c->trial.mode[m] != KG_STICK) {
    return;
  }
  nt = D[n * (ptrdiff_t)k + t] * kg_sign_of(c->s.rate[t]);
  A = D[n * (ptrdiff_t)(k + 1)] - c->s.mu_k[m] * nt;
  B = D[n * (ptrdiff_t)(k + 1)] - nt * nt / D[t * (ptrdiff_t)(k + 1)];
  if (A < KG_C(0.0) && B > KG_C(0.0)) {
    P = KG_ABS(c->s.rate[t]) / (c->s.mu_k[m] * D[t * (ptrdiff_t)(k + 1)] - nt);
    rebound = c->s.restitution[m] * P * KG_SQRT(-A * (B - A)) / B;
    impulses[n] += rebound;
    impulses[t] -= rebound * D[n * (ptrdiff_t)k + t] / D[t * (ptrdiff_t)(k + 1)];
  }
}

/* The largest change of the speed of a row by the impulses, in the units of the rows. */
static inline kg_real kg_paradox_change(const kg_contacts *c) {
  kg_real largest = KG_C(0.0);
  for (int i = 0; i < c->model->n_rows; ++i) {
    const kg_real change = KG_ABS(kg_impact_change(c, i)) / kg_modes_unit(&c->now, i);
    largest = KG_MAX(largest, change);
  }
  return largest;
}

/* Finds the smallest impulses that satisfy the law of impact and change the speeds by more than `change`. */
static inline int kg_paradox_search(kg_contacts *c, kg_real change) {
  kg_mode_search *f = &c->search;
  kg_real least = KG_C(0.0);
  int found = 0, more = 1;
  if (kg_scan_combinations(f) > KG_MODE_COMBINATIONS) {
    return kg_search_by_pivots(f, &more) == KG_OK && kg_paradox_change(c) > change ? KG_OK : KG_NO_MODE;
  }
  for (int m = 0; m < f->modes->n_contacts; ++m) {
    f->counter[m] = 0;
    kg_mode_option(f, m, 0);
  }
  for (; more; more = kg_scan_next(f)) {
    if (kg_search_solve(f) == KG_OK && kg_search_pivot(f, 1).contact < 0 && kg_paradox_change(c) > change) {
      const kg_real pressure = kg_scan_pressure(f);
      if (!found || pressure < least) {
        found = 1;
        least = pressure;
        kg_scan_keep(f);
      }
    }
  }
  return found ? kg_scan_restore(f) : KG_NO_MODE;
}

/* As kg_contacts_settle() where neither stable modes nor impulses exist, but unstable modes: these are accepted. */
static inline int kg_contacts_settle_unstable(kg_contacts *c, const kg_point *at) {
  int status;
  c->tolerates = 1;
  status = kg_contacts_settle(c, at);
  c->tolerates = 0;
  return status;
}

/* The impact without collision after KG_NO_MODE of kg_contacts_settle() at this state. u, its speeds, become those after it,
 * impulses (n_rows) those of the rows. KG_NO_MODE if no contact slips, or if there are no impulses that change the
 * slip. */
static inline int kg_contacts_jam(kg_contacts *c, const kg_point *at, kg_real *u, kg_real *impulses) {
  const int culprit = c->culprit, status = kg_contacts_evaluate(c, at);
  kg_real slip, step;
  int found;
  if (status < 0) {
    return status;
  }
  slip = kg_paradox_slip(c);
  step = KG_PARADOX_STEP * slip / kg_paradox_acceleration(c);
  c->trial.lambda = impulses;
  c->search.modes = &c->trial;
  c->search.choose = 0;
  memcpy(c->rate_before, c->s.rate, (size_t)c->model->n_rows * sizeof(kg_real));
  kg_impact_problem(c);
  kg_paradox_rows(c, step);
  c->search.size = KG_PARADOX_ACCURACY * KG_PARADOX_STEP * slip / KG_MODE_TOLERANCE;
  found = slip > KG_C(0.0) && kg_paradox_search(c, KG_PARADOX_CHANGE * slip) == KG_OK;
  kg_paradox_rows(c, KG_C(0.0)); /* the same modes, in the limit */
  if (!found || kg_search_solve(&c->search) != KG_OK) {
    c->culprit = culprit;
    return KG_NO_MODE;
  }
  kg_paradox_restitution(c, impulses);
  kg_contacts_respond(c, impulses, u);
  for (int m = 0; m < c->model->n_contacts; ++m) {
    c->mode[m] = kg_mode_after_impact(c, m);
  }
  return KG_OK;
}

#ifdef __cplusplus
}
#endif

#endif
