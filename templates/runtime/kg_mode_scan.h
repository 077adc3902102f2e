/* kg_mode_scan.h - chooses the modes of contacts, and tries all sets of modes where pivoting is not enough.
 *
 * Where normal forces depend on friction there may be no solution or several (Painleve 1895): both cases are found by
 * trying every set of modes. Where there is no solution, the contacts that contradict each other are found as well.
 * Of several solutions one can be chosen: see kg_search_best().
 */
#ifndef KG_MODE_SCAN_H
#define KG_MODE_SCAN_H

#include "kg_mode_search.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tangential row is coupled to a normal beyond this fraction of their own responses. */
#define KG_MODE_COUPLING KG_BY_PRECISION(1e-12, 1e-6)

/* Variants of a mode: slip that starts along one row goes either way, a two-sided normal has either sign. */
static inline int kg_mode_variants(const kg_mode_search *f, int m, int mode) {
  const kg_contact_info *info = f->modes->info + m;
  if (!kg_may(f, m, mode)) {
    return 0;
  }
  if (mode != KG_SLIP) {
    return 1;
  }
  return ((f->may[m] & KG_MAY_START) != 0 && info->directions == 1 ? 2 : 1) * (f->modes->law[m] == KG_LAW_BILATERAL ? 2 : 1);
}

static inline int kg_mode_options(const kg_mode_search *f, int m) {
  int options = 0;
  for (int mode = KG_OPEN; mode <= KG_SLIP; ++mode) {
    options += kg_mode_variants(f, m, mode);
  }
  return options;
}

/* Puts a contact into its option number k: modes with a force come first, sticking before slipping. */
static inline void kg_mode_option(kg_mode_search *f, int m, int k) {
  static const int order[] = {KG_CLOSED, KG_STICK, KG_SLIP, KG_PENETRATED, KG_OPEN};
  kg_modes *s = f->modes;
  int place = 0, mode;
  while (place < 4 && k >= kg_mode_variants(f, m, order[place])) {
    k -= kg_mode_variants(f, m, order[place]);
    ++place;
  }
  mode = order[place];
  s->mode[m] = mode;
  if (mode == KG_SLIP && (f->may[m] & KG_MAY_START) != 0) {
    /* In a plane: without friction at first, the direction follows. */
    s->direction[2 * m] = s->info[m].directions == 2 ? KG_C(0.0) : k % 2 == 0 ? KG_C(1.0) : KG_C(-1.0);
    s->direction[2 * m + 1] = KG_C(0.0);
    k /= s->info[m].directions == 1 ? 2 : 1;
  }
  if (mode == KG_SLIP && s->law[m] == KG_LAW_BILATERAL) {
    s->sign[m] = k == 0 ? KG_C(1.0) : KG_C(-1.0);
  }
}

/* The number of sets of modes; more than KG_MODE_COMBINATIONS: some number beyond it. */
static inline int kg_scan_combinations(const kg_mode_search *f) {
  int product = 1;
  for (int m = 0; m < f->modes->n_contacts && product <= KG_MODE_COMBINATIONS; ++m) {
    product *= kg_mode_options(f, m);
  }
  return product;
}

/* Moves to the next set; returns 0 after the last one. */
static inline int kg_scan_next(kg_mode_search *f) {
  for (int m = 0; m < f->modes->n_contacts; ++m) {
    f->counter[m] = f->counter[m] + 1 < kg_mode_options(f, m) ? f->counter[m] + 1 : 0;
    kg_mode_option(f, m, f->counter[m]);
    if (f->counter[m] != 0) {
      return 1;
    }
  }
  return 0;
}

static inline void kg_scan_keep(kg_mode_search *f) {
  const kg_modes *s = f->modes;
  const size_t n = (size_t)s->n_contacts;
  memcpy(f->best, s->mode, n * sizeof(int));
  memcpy(f->best_state, s->direction, 2 * n * sizeof(kg_real));
  memcpy(f->best_state + 2 * n, s->sign, n * sizeof(kg_real));
  memcpy(f->best_w, f->w, (size_t)s->n_rows * sizeof(kg_real));
}

static inline int kg_scan_restore(kg_mode_search *f) {
  const kg_modes *s = f->modes;
  const size_t n = (size_t)s->n_contacts;
  memcpy(s->mode, f->best, n * sizeof(int));
  memcpy(s->direction, f->best_state, 2 * n * sizeof(kg_real));
  memcpy(s->sign, f->best_state + 2 * n, n * sizeof(kg_real));
  return kg_search_solve(f);
}

/* Returns whether an open contact can be closed too: it has no force, and its row has the value of a closed contact.
 * The closed mode describes this motion better where contacts are redundant. */
static inline int kg_scan_idle(const kg_mode_search *f, int m) {
  const int row = f->modes->info[m].normal;
  return row >= 0 && !kg_closed(f->modes->mode[m]) && kg_may(f, m, kg_mode_with_force(f, m)) &&
         KG_ABS(f->w[row]) <= kg_search_tolerance(f) * kg_modes_unit(f->modes, row);
}

/* Whether the rows differ from those of the best set: then so do the accelerations. */
static inline int kg_scan_differs(const kg_mode_search *f) {
  for (int i = 0; i < f->modes->n_rows; ++i) {
    if (KG_ABS(f->w[i] - f->best_w[i]) > KG_MODE_DIFFERENCE * f->size * kg_modes_unit(f->modes, i)) {
      return 1;
    }
  }
  return 0;
}

/* Returns whether the mode of a contact differs essentially from that in the best set. If mu_s > mu_k, or within a
 * creep tolerance, the law allows both sticking and starting to slip, and the contact keeps its mode. */
static inline int kg_scan_counts(const kg_mode_search *f, int m) {
  const int a = f->best[m], b = f->modes->mode[m];
  const int friction = a != b && a >= KG_STICK && b >= KG_STICK;
  const int free_choice = (f->may[m] & KG_MAY_START) == 0 || f->modes->mu_s[m] > f->modes->mu_k[m];
  return !(friction && free_choice);
}

/* Compares a consistent set with the best one. */
static inline int kg_scan_contradicts(kg_mode_search *f) {
  int counts = 1, idle = 0, culprit = -1;
  for (int m = 0; m < f->modes->n_contacts; ++m) {
    counts = counts && kg_scan_counts(f, m);
    idle = idle || kg_scan_idle(f, m);
    culprit = culprit < 0 && f->best[m] != f->modes->mode[m] ? m : culprit;
  }
  if (!counts || idle || !kg_scan_differs(f)) {
    return 0;
  }
  f->culprit = culprit;
  return 1;
}

/* Tries all sets of modes. `found`: a consistent one is in place. With `unique`, another one with different
 * accelerations is an error; else the first one found is taken. */
KG_COLD
static inline int kg_search_scan(kg_mode_search *f, int found, int unique) {
  int status = KG_OK, more = 1;
  if (found) {
    kg_scan_keep(f);
  }
  for (int m = 0; m < f->modes->n_contacts; ++m) {
    f->counter[m] = 0;
    kg_mode_option(f, m, 0);
  }
  while (more && status == KG_OK && (unique || !found)) {
    if (kg_search_solve(f) == KG_OK && kg_search_pivot(f, 1).contact < 0) {
      if (!found) {
        found = 1;
        kg_scan_keep(f);
      } else if (kg_scan_contradicts(f)) {
        status = KG_SEVERAL_MODES;
      }
    }
    more = kg_scan_next(f);
  }
  if (!found) {
    return KG_NO_MODE;
  }
  kg_scan_restore(f);
  return status;
}

/* The first closed contact that is unstable against a compliance of its own (kg_modes_yield()), or -1. */
static inline int kg_scan_unstable(kg_mode_search *f) {
  kg_modes *s = f->modes;
  for (int m = 0; m < s->n_contacts; ++m) {
    if (kg_closed(s->mode[m]) && kg_normal_unknown(s, m) && s->law[m] != KG_LAW_BILATERAL &&
        kg_modes_yield(s, m, f->unit, f->none, f->response) < KG_C(0.0)) {
      return m;
    }
  }
  return -1;
}

/* The sum of the normal forces, in the units of the rows. */
static inline kg_real kg_scan_pressure(const kg_mode_search *f) {
  const kg_modes *s = f->modes;
  kg_real sum = KG_C(0.0);
  for (int m = 0; m < s->n_contacts; ++m) {
    const int row = s->info[m].normal;
    if (kg_closed(s->mode[m]) && row >= 0) {
      sum += KG_ABS(s->lambda[row]) * kg_modes_unit(s, row);
    }
  }
  return sum;
}

/* Whether a contact starts to slip without moving: this is the limit of stick, where solutions can meet and vanish. */
static inline int kg_scan_at_limit(const kg_mode_search *f) {
  const kg_modes *s = f->modes;
  int limit = 0;
  for (int m = 0; m < s->n_contacts; ++m) {
    limit = limit || (s->mode[m] == KG_SLIP && (f->may[m] & KG_MAY_START) != 0 &&
                      kg_tangential_size(s, m, f->w) <=
                          KG_MODE_DIFFERENCE * f->size * kg_modes_unit(s, s->info[m].tangent));
  }
  return limit;
}

/* Chooses among all sets of modes that agree with the laws and are stable: the one in place, if the contacts are
 * already in it (`present`) and it is not about to vanish; else the one with the least normal forces, so that a contact
 * that can detach does. `found`: a set that agrees is in place. KG_NO_MODE if none is stable. */
KG_COLD
static inline int kg_search_best(kg_mode_search *f, int found, int present) {
  int stable = 0, more = 1;
  kg_real least = KG_C(0.0);
  if (found) {
    f->unstable = kg_scan_unstable(f);
    stable = f->unstable < 0;
    least = kg_scan_pressure(f);
    kg_scan_keep(f);
  }
  if (stable && present && !kg_scan_at_limit(f)) {
    return KG_OK;
  }
  for (int m = 0; m < f->modes->n_contacts; ++m) {
    f->counter[m] = 0;
    kg_mode_option(f, m, 0);
  }
  for (; more; more = kg_scan_next(f)) {
    if (kg_search_solve(f) == KG_OK && kg_search_pivot(f, 1).contact < 0) {
      const kg_real pressure = kg_scan_pressure(f);
      const int less = pressure < least - KG_MODE_DIFFERENCE * (least + f->size), unstable = kg_scan_unstable(f);
      if (unstable < 0 && (!stable || less)) {
        stable = 1;
        least = pressure;
        kg_scan_keep(f);
      }
      f->unstable = KG_MAX(f->unstable, unstable);
    }
  }
  return stable ? kg_scan_restore(f) : KG_NO_MODE;
}

/* Whether friction changes a normal force on which friction depends: without that the modes are those of a convex
 * problem, and the accelerations are unique. */
static inline int kg_search_coupled(const kg_mode_search *f) {
  const kg_modes *s = f->modes;
  for (int m = 0; m < s->n_contacts; ++m) {
    const int depends = kg_normal_unknown(s, m) && (kg_may(f, m, KG_SLIP) || kg_may(f, m, KG_STICK));
    for (int i = 0; depends && i < s->info[m].directions; ++i) {
      const int row = s->info[m].tangent + i;
      for (int k = 0; k < s->n_contacts; ++k) {
        const int normal = s->info[k].normal;
        if (normal >= 0 && kg_normal_unknown(s, k) &&
            KG_ABS(s->D[row * (ptrdiff_t)s->n_rows + normal]) >
                KG_MODE_COUPLING * kg_modes_unit(s, row) * kg_modes_unit(s, normal)) {
          return 1;
        }
      }
    }
  }
  return 0;
}

/* Closes the open contacts that could as well be closed if all of them then carry a load: of several descriptions of
 * the same motion this is the one in which redundant contacts share the load. */
static inline void kg_search_share(kg_mode_search *f) {
  kg_modes *s = f->modes;
  int any = 0, accepted;
  for (int m = 0; m < s->n_contacts; ++m) {
    any = any || kg_scan_idle(f, m);
  }
  if (!any) {
    return;
  }
  kg_scan_keep(f);
  for (int m = 0; m < s->n_contacts; ++m) {
    s->mode[m] = kg_scan_idle(f, m) ? kg_mode_with_force(f, m) : s->mode[m];
  }
  accepted = kg_search_solve(f) == KG_OK && kg_search_pivot(f, 1).contact < 0;
  for (int m = 0; accepted && m < s->n_contacts; ++m) {
    const int row = s->info[m].normal;
    accepted = s->mode[m] == f->best[m] || s->lambda[row] * kg_modes_unit(s, row) > kg_search_tolerance(f);
  }
  if (!accepted) {
    kg_scan_restore(f);
  }
}

/* The contact that violates its law most at the multipliers with the largest margins, or -1 with a margin for all. */
static inline int kg_hold_violated(kg_mode_search *f) {
  kg_modes *s = f->modes;
  kg_real *lambda = s->lambda;
  int violated;
  s->lambda = s->center;
  violated = kg_search_pivot(f, 0).contact;
  for (int m = 0; m < s->n_contacts && violated < 0; ++m) {
    if (s->mode[m] == KG_STICK && !(kg_friction_pivot(f, m).violation < -kg_search_tolerance(f))) {
      violated = m;
    }
  }
  s->lambda = lambda;
  return violated;
}

/* Whether the present modes, in which redundant contacts stick, hold with a margin: then they agree with the laws,
 * though the multipliers of least norm need not. */
static inline int kg_search_holds(kg_mode_search *f, int *violated) {
  const kg_modes *s = f->modes;
  int sticks = 0;
  *violated = -1;
  for (int m = 0; m < s->n_contacts && s->center; ++m) {
    sticks = sticks || s->mode[m] == KG_STICK;
  }
  if (!sticks || kg_search_solve(f) != KG_OK || !kg_modes_hold(f->modes)) {
    return 0;
  }
  *violated = kg_hold_violated(f);
  return *violated < 0;
}

/* Whether contact m starts to slip without moving although it might stick, or is open and could as well be closed. */
static inline int kg_scan_lingers(const kg_mode_search *f, int m) {
  const kg_modes *s = f->modes;
  if (s->mode[m] != KG_SLIP) {
    return kg_scan_idle(f, m);
  }
  return (f->may[m] & KG_MAY_START) != 0 && kg_may(f, m, KG_STICK) &&
         kg_tangential_size(s, m, f->w) <= KG_MODE_DIFFERENCE * f->size * kg_modes_unit(s, s->info[m].tangent);
}

/* Lets contacts stick that start to slip without moving, and closes those that could as well be closed: of several
 * descriptions of the same motion this is the one in which redundant contacts share the friction. Contacts that cannot
 * stick or close are left out one after the other. */
static inline void kg_search_stick(kg_mode_search *f) {
  kg_modes *s = f->modes;
  int left = 0, violated;
  for (int m = 0; m < s->n_contacts && s->center; ++m) {
    left += kg_scan_lingers(f, m);
  }
  if (left == 0) {
    return;
  }
  kg_scan_keep(f);
  for (int m = 0; m < s->n_contacts; ++m) {
    const int with = s->mode[m] == KG_SLIP ? KG_STICK : kg_mode_with_force(f, m);
    s->mode[m] = kg_scan_lingers(f, m) ? with : s->mode[m];
  }
  for (; left > 0 && !(kg_search_holds(f, &violated) && !kg_scan_differs(f)); --left) {
    int next = -1;
    for (int m = 0; m < s->n_contacts; ++m) {
      next = s->mode[m] != f->best[m] && (next < 0 || m == violated) ? m : next;
    }
    s->mode[next] = f->best[next];
  }
  if (left == 0) {
    kg_scan_restore(f);
  }
}

/* Finds modes that agree with their forces: kg_choose_modes(). */
static inline int kg_find_modes(kg_mode_search *f, int unique, int trusted) {
  int pivots, again, status, found;
  f->culprit = f->unstable = -1;
  f->size = kg_search_size(f->modes);
  if (kg_search_holds(f, &again)) {
    return KG_OK; /* contacts that stick remain in this mode */
  }
  status = kg_search_by_pivots(f, &pivots);
  if (status != KG_OK) {
    kg_search_relax(f);
    status = kg_search_by_pivots(f, &again);
  }
  found = status == KG_OK;
  if (found) {
    kg_search_share(f); /* first: redundant contacts are no second solution */
  }
  unique = unique && !(found && trusted && pivots == 0) && kg_search_coupled(f);
  if ((!found || unique) && kg_scan_combinations(f) <= KG_MODE_COMBINATIONS) {
    status = f->choose ? kg_search_best(f, found, pivots == 0) : kg_search_scan(f, found, unique);
  }
  if (status == KG_OK) {
    kg_search_stick(f);
    f->culprit = -1;
  }
  return status;
}

/* Choosing modes, and finding the contacts that contradict each other where no modes agree with all laws.
 *
 * A set of contacts is in conflict when no modes of these contacts agree with their laws and the bilateral constraints,
 * but some do when any one of them is left out. The user is given this set, which is the smallest that fails.
 */

/* Returns whether a consistent set of the possible modes exists. */
static inline int kg_conflict_solved(kg_mode_search *f) {
  for (int m = 0; m < f->modes->n_contacts; ++m) {
    f->modes->mode[m] = kg_may_be_on(f, m) ? kg_mode_with_force(f, m) : kg_mode_without_force(f, m);
  }
  return kg_find_modes(f, 0, 0) == KG_OK;
}

/* After KG_NO_MODE: flags the contacts in conflict, and finds out whether they agree without friction. Overwrites the
 * modes that the contacts may take. */
KG_COLD
static inline void kg_search_conflict(kg_mode_search *f) {
  const int n = f->modes->n_contacts, friction = KG_MAY(KG_STICK) | KG_MAY(KG_SLIP) | KG_MAY_START;
  int rough = 0;
  for (int m = 0; m < n; ++m) {
    const int may = f->may[m];
    f->conflict[m] = kg_may_be_on(f, m);
    if (f->conflict[m]) {
      f->may[m] = KG_MAY(KG_OPEN);
      f->conflict[m] = kg_conflict_solved(f);
      f->may[m] = f->conflict[m] ? may : f->may[m];
    }
  }
  for (int m = 0; m < n; ++m) {
    if (f->conflict[m] && (f->may[m] & friction) != 0) {
      f->may[m] = (f->may[m] & ~friction) | KG_MAY(KG_CLOSED);
      rough = 1;
    }
  }
  f->friction = rough && kg_conflict_solved(f);
  for (int m = n - 1; m >= 0; --m) {
    f->culprit = f->conflict[m] ? m : f->culprit;
  }
}

/* Chooses modes that agree with their forces, the present ones if they do. `unique`: KG_SEVERAL_MODES where others do
 * too and lead to other accelerations; with `trusted` the present modes need no such proof. KG_NO_MODE: none agrees. */
static inline int kg_choose_modes(kg_mode_search *f, int unique, int trusted) {
  const int status = kg_find_modes(f, unique, trusted);
  memset(f->conflict, 0, (size_t)f->modes->n_contacts * sizeof *f->conflict);
  f->friction = 0;
  if (status == KG_NO_MODE && f->unstable >= 0) {
    f->culprit = f->unstable;
    f->conflict[f->unstable] = f->friction = 1;
  } else if (status == KG_NO_MODE) {
    kg_search_conflict(f);
  }
  return status;
}

#ifdef __cplusplus
}
#endif

#endif
