/* kg_mode_relax.h - a first guess of the modes of many contacts with friction, where pivoting goes in circles.
 *
 * Sweeps over the contacts, each time giving one contact the force that satisfies it alone: the projected Gauss-Seidel
 * iteration of nonsmooth contact dynamics (Moreau; Jean 1999). It converges slowly, but the modes it tends to are
 * enough: pivoting from them ends in an exact solution.
 */
#ifndef KG_MODE_RELAX_H
#define KG_MODE_RELAX_H

#include "kg_mode_search.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KG_RELAX_SWEEPS 1000
/* Changes below this fraction of the largest row end the sweeps; a friction force this close to its limit slips. */
#define KG_RELAX_CHANGE KG_C(1e-12)
#define KG_RELAX_LIMIT KG_C(1e-6)

/* Whether contact m may be without force. */
static inline int kg_may_be_off(const kg_mode_search *f, int m) { return kg_may(f, m, kg_mode_without_force(f, m)); }

static inline int kg_may_be_on(const kg_mode_search *f, int m) { return kg_may(f, m, kg_mode_with_force(f, m)); }

/* The normal force that closes the row of contact m alone. */
static inline void kg_relax_normal(kg_mode_search *f, int m) {
  kg_modes *s = f->modes;
  const int row = s->info[m].normal;
  const kg_real own = s->D[row * (ptrdiff_t)(s->n_rows + 1)];
  if (!kg_normal_unknown(s->info + m)) {
    s->lambda[row] = s->load[m];
  } else if (own > KG_C(0.0)) {
    const kg_real force = s->lambda[row] - kg_modes_row(s, row) / own;
    s->lambda[row] = kg_may_be_off(f, m) ? KG_MAX(force, KG_C(0.0)) : force;
  }
}

/* The friction force that holds contact m alone, cut to what friction can give. */
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

/* The mode of contact m that its force shows. */
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

/* Puts every contact into the mode that the sweeps tend to. */
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
