/* kg_contact_guards.h - functions that stay positive as long as the modes of the contacts are right.
 *
 * A contact has up to four guards; when one falls through zero the mode must change:
 *   open: the gap;
 *   penetrated: minus the gap; what the row lacks of its target (a Stabilized contact whose force is still tensile), or
 *     minus the load;
 *   closed: the normal force; minus the gap, where the law leaves the gap open; then friction:
 *   stuck: mu_s N - |lambda_t|;
 *   slipping: the slip velocity along the direction of slip; in a plane along that at the start of the step, less
 *     what counts as rest; when it starts in a plane, what its velocity lacks of start_speed.
 *
 * A guard may start at zero or, by the error of the state, below: it is raised by the contact's slack, which
 * kg_complementarity.h sets with the modes and kg_contacts_advance() takes back once the guard has risen.
 */
#ifndef KG_CONTACT_GUARDS_H
#define KG_CONTACT_GUARDS_H

#include "kg_contact.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Value of a guard that is not in use. */
#define KG_NO_GUARD KG_C(1.0)
/* Slip in a plane ends at this fraction of what counts as rest. */
#define KG_AT_REST KG_C(0.5)

static inline kg_real kg_stick_guard(const kg_modes *s, int m, const kg_real *lambda) {
  return s->mu_s[m] * kg_normal_force_of(s, m, lambda) - kg_tangential_size(s, m, lambda);
}

/* How far the force that would hold a slipping contact exceeds what friction can give. */
static inline kg_real kg_excess_of_holding(kg_contacts *c, int m) {
  kg_real excess = KG_C(0.0);
  c->mode[m] = KG_STICK;
  if (kg_modes_solve(&c->now) == KG_OK) {
    excess = -kg_stick_guard(&c->now, m, c->now.lambda);
  }
  c->mode[m] = KG_SLIP;
  kg_modes_solve(&c->now);
  return excess;
}

/* A slipping contact: it stops where its velocity along the direction of slip vanishes; with a tolerance of creeping
 * (thesis, 5.8), where it becomes slow enough and friction can hold it. A step may pass the whole tolerance: beyond it
 * the guard stays negative. */
static inline kg_real kg_slip_guard(kg_contacts *c, int m, int with_multipliers) {
  const kg_contact_info *info = c->model->contacts + m;
  const kg_real along = kg_product(info->directions, c->s.rate + info->tangent, c->direction + 2 * (ptrdiff_t)m);
  const kg_real creep = c->s.creep[m];
  if (creep > KG_C(0.0)) {
    return with_multipliers ? KG_MAX(along - creep, KG_MIN(along, kg_excess_of_holding(c, m))) : along;
  }
  /* In a plane the direction turns ever faster as the velocity vanishes: rest is where it counts as zero. */
  return info->directions == 2 ? along - KG_AT_REST * c->rate_tolerance : along;
}

/* How far slip that starts in a plane is from the velocity whose direction it follows from then on. */
static inline kg_real kg_start_guard(const kg_contacts *c, int m) {
  const kg_real *rate = c->s.rate + c->model->contacts[m].tangent, *left = c->residual + 2 * (ptrdiff_t)m;
  const kg_real x = rate[0] - left[0], y = rate[1] - left[1];
  return c->start_speed - KG_SQRT(x * x + y * y);
}

static inline void kg_guards_without_force(const kg_contacts *c, int m, int with_multipliers, kg_real *guards) {
  const kg_contact_info *info = c->model->contacts + m;
  if (info->law == KG_LAW_LATCH || info->normal < 0) {
    return; /* switched by events */
  }
  if (c->mode[m] == KG_OPEN) {
    guards[0] = c->s.value[info->normal];
    return;
  }
  guards[0] = -c->s.value[info->normal];
  if (info->law == KG_LAW_COMPLIANT) {
    guards[1] = -c->s.load[m];
  } else if (with_multipliers) {
    guards[1] = kg_modes_row(&c->now, info->normal);
  }
}

static inline void kg_guards_with_force(kg_contacts *c, int m, const kg_real *lambda, kg_real *guards) {
  const kg_contact_info *info = c->model->contacts + m;
  const int law = info->law;
  if (c->mode[m] == KG_SLIP) {
    guards[2] = kg_slip_guard(c, m, lambda != NULL);
    guards[3] = c->starting[m] ? kg_start_guard(c, m) : KG_NO_GUARD;
  } else if (c->mode[m] == KG_STICK && lambda) {
    guards[2] = kg_stick_guard(&c->now, m, lambda);
  }
  if (law == KG_LAW_COMPLIANT) {
    guards[0] = c->s.load[m];
  } else if ((law == KG_LAW_STABILIZED || law == KG_LAW_RESTITUTION) && lambda) {
    guards[0] = lambda[info->normal];
  }
  if (law == KG_LAW_STABILIZED || law == KG_LAW_COMPLIANT) {
    guards[1] = -c->s.value[info->normal];
  }
}

/* The multipliers that decide whether contacts hold: of redundant ones those with the largest margins. */
static inline const kg_real *kg_contacts_deciding(kg_contacts *c) {
  return kg_modes_hold(&c->now) ? c->now.center : c->now.lambda;
}

/* The guards of contact m from the last evaluation, without slack. lambda: kg_contacts_deciding(); NULL without
 * multipliers. */
static inline void kg_contact_guards_of(kg_contacts *c, int m, const kg_real *lambda, kg_real *guards) {
  guards[0] = guards[1] = guards[2] = guards[3] = KG_NO_GUARD;
  if (kg_closed(c->mode[m])) {
    kg_guards_with_force(c, m, lambda, guards);
  } else {
    kg_guards_without_force(c, m, lambda != NULL, guards);
  }
}

static inline void kg_contacts_guards_with_slack(kg_contacts *c, int with_multipliers, kg_real *guards) {
  const kg_real *lambda = with_multipliers ? kg_contacts_deciding(c) : NULL;
  for (int m = 0; m < c->model->n_contacts; ++m) {
    kg_real *own = guards + KG_CONTACT_GUARDS * m;
    const kg_real *slack = c->slack + KG_CONTACT_GUARDS * m;
    kg_contact_guards_of(c, m, lambda, own);
    for (int k = 0; k < KG_CONTACT_GUARDS; ++k) {
      own[k] += slack[k];
    }
  }
}

/* All guards at the state of the last kg_contacts_rhs(), if nothing was evaluated since: no evaluation is needed. */
static inline void kg_contacts_guards_last(kg_contacts *c, kg_real *guards) {
  kg_contacts_guards_with_slack(c, 1, guards);
}

/* All guards at a state, KG_CONTACT_GUARDS per contact. Without multipliers those that need them count as positive and
 * only `gaps` is evaluated; the directions of slip stay as they are. */
static inline int kg_contacts_guards(kg_contacts *c, kg_real t, const kg_real *q, const kg_real *u, const kg_real *r,
                                     int with_multipliers, kg_real *guards) {
  int status = with_multipliers ? kg_contacts_evaluate(c, t, q, u, r) : kg_contacts_evaluate_gaps(c, t, q, u, r);
  if (status < 0) {
    return status;
  }
  if (with_multipliers) {
    const int solved = kg_contacts_solve(c);
    status = solved < 0 ? solved : status;
  }
  kg_contacts_guards_with_slack(c, with_multipliers, guards);
  return status;
}

/* After an accepted step with the guards at its end: takes back the slack of guards that have risen, and moves the
 * directions of slip in a plane to the state reached. */
static inline int kg_contacts_advance(kg_contacts *c, kg_real t, const kg_real *q, const kg_real *u, const kg_real *r,
                                      const kg_real *guards) {
  int planar = 0;
  for (int k = 0; k < KG_CONTACT_GUARDS * c->model->n_contacts; ++k) {
    c->slack[k] = guards[k] > KG_C(2.0) * c->slack[k] ? KG_C(0.0) : c->slack[k];
  }
  for (int m = 0; m < c->model->n_contacts; ++m) {
    planar = planar || (c->mode[m] == KG_SLIP && c->model->contacts[m].directions == 2);
  }
  if (planar) {
    const int status = kg_contacts_evaluate_gaps(c, t, q, u, r);
    if (status < 0) {
      return status;
    }
    kg_contacts_turn(c);
    memcpy(c->direction, c->now.direction, 2 * (size_t)c->model->n_contacts * sizeof(kg_real));
  }
  return KG_OK;
}

/* The mode that a closed contact enters when its guard number `guard` has fallen. */
static inline int kg_mode_after_force(const kg_contact_info *info, int mode, int guard) {
  if (guard == 3) {
    return mode;
  }
  if (guard == 2) {
    return mode == KG_STICK ? KG_SLIP : info->directions == 1 ? KG_STICK : KG_SLIP;
  }
  return guard == 1 || info->law == KG_LAW_RESTITUTION ? KG_OPEN : KG_PENETRATED;
}

/* Whether guard number `guard` of a contact in this mode says that the gap is zero. A rigid one that lets go touches. */
static inline int kg_is_gap_guard(const kg_contact_info *info, int mode, int guard) {
  return info->law == KG_LAW_RESTITUTION || guard == (kg_closed(mode) ? 1 : 0);
}

/* The mode that guard number k announces when it falls: at that instant the old mode and the new one both agree with
 * the forces, and kg_contacts_settle() stays in the mode it finds. A gap that closes is left to it altogether. When
 * several guards of a contact fall together, a gap that opens decides, else the first. */
static inline void kg_contacts_propose(kg_contacts *c, int k) {
  const int m = k / KG_CONTACT_GUARDS, guard = k % KG_CONTACT_GUARDS, old = c->mode[m];
  const kg_contact_info *info = c->model->contacts + m;
  if (c->announced[m]) {
    const int before = (c->announced[m] & ~KG_GAP_FELL) - 1;
    c->mode[m] = guard == 1 && kg_closed(before) ? KG_OPEN : old;
    c->announced[m] |= kg_is_gap_guard(info, before, guard) ? KG_GAP_FELL : 0;
    return;
  }
  c->announced[m] = (1 + old) | (kg_is_gap_guard(info, old, guard) ? KG_GAP_FELL : 0);
  if (kg_closed(old)) {
    c->mode[m] = kg_mode_after_force(info, old, guard);
    if (old == KG_STICK && c->mode[m] == KG_SLIP) {
      kg_aim(&c->now, m, KG_C(-1.0), c->lambda); /* against the force that held it */
      memcpy(c->direction + 2 * m, c->now.direction + 2 * m, 2 * sizeof(kg_real));
    }
  } else if (old == KG_PENETRATED) {
    c->mode[m] = guard == 0 ? KG_OPEN : info->directions > 0 ? KG_SLIP : KG_CLOSED;
  }
}

#ifdef __cplusplus
}
#endif

#endif
