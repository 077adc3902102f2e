/* kg_complementarity.h - chooses modes of contacts that are consistent with the state and its accelerations.
 *
 * A contact with an open gap stays open. For a closed gap the sign of its rate decides; where the rate is zero, the
 * complementarity of acceleration and force decides, for all contacts at once (kg_mode_scan.h). A Stabilized contact
 * is closed if and only if its gap is violated and the multiplier it needs is compressive. This is the same
 * complementarity, with the acceleration that the law requires in place of zero.
 */
#ifndef KG_COMPLEMENTARITY_H
#define KG_COMPLEMENTARITY_H

#include "kg_contact.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Slack of a guard that starts at zero, as a fraction of the tolerance of the guard. */
#define KG_GUARD_SLACK KG_BY_PRECISION(1e-6, 1e-2)

/* Returns -1 if the gap is violated or decreasing through zero, 1 if it is open or opening, 0 if it touches and rests.
 * A gap whose guard has fallen touches, whatever its rounding error; so does a violated gap of a rigid contact. */
static inline int kg_gap_state(const kg_contacts *c, int m) {
  const int row = c->model->contacts[m].normal;
  const kg_real value = c->s.value[row], rate = c->s.rate[row];
  const int rigid = c->law[m] == KG_LAW_RESTITUTION;
  const int touches = (c->announced[m] & KG_GAP_FELL) != 0 || (rigid && value < KG_C(0.0));
  if (!touches && KG_ABS(value) > c->gap_zero[m]) {
    return value > KG_C(0.0) ? 1 : -1;
  }
  if (KG_ABS(rate) > c->rate_zero[m]) {
    return rate > KG_C(0.0) ? 1 : -1;
  }
  return 0;
}

/* Returns whether a violated compliant contact can carry its load; if the load is zero, its mode is kept. */
static inline int kg_load_acts(const kg_contacts *c, int m) {
  const kg_real unit = kg_modes_unit(&c->now, c->model->contacts[m].normal);
  const kg_real zero = KG_MODE_TOLERANCE * c->search.size / unit;
  return KG_ABS(c->s.load[m]) <= zero ? c->mode[m] != KG_PENETRATED : c->s.load[m] > KG_C(0.0);
}

#define KG_WITH_FORCE 1
#define KG_WITHOUT_FORCE 2
#define KG_VIOLATED 4

/* Returns as bits whether contact m can have a normal force and whether it can have none. */
static inline int kg_normal_choices(const kg_contacts *c, int m) {
  const int both = KG_WITH_FORCE | KG_WITHOUT_FORCE;
  int state;
  if (c->law[m] == KG_LAW_BILATERAL || c->law[m] == KG_LAW_LOAD) {
    return KG_WITH_FORCE;
  }
  if (c->law[m] == KG_LAW_LATCH) {
    return kg_closed(c->mode[m]) ? KG_WITH_FORCE : KG_WITHOUT_FORCE;
  }
  state = kg_gap_state(c, m);
  if (c->law[m] == KG_LAW_RESTITUTION) {
    return state <= 0 || kg_closed(c->mode[m]) ? both : KG_WITHOUT_FORCE;
  }
  if (state >= 0) {
    return state > 0 ? KG_WITHOUT_FORCE : both;
  }
  if (c->law[m] == KG_LAW_STABILIZED) {
    return both | KG_VIOLATED;
  }
  return KG_VIOLATED | (kg_load_acts(c, m) ? KG_WITH_FORCE : KG_WITHOUT_FORCE);
}

/* Returns the modes that friction allows for a closed contact, as bits; sets the direction of present slip. */
static inline int kg_friction_choices(kg_contacts *c, int m) {
  const kg_real creep = c->s.creep[m];
  const int announced = (c->announced[m] & ~KG_GAP_FELL) - 1;
  int stuck;
  kg_real speed;
  if (c->model->contacts[m].directions == 0) {
    return KG_MAY(KG_CLOSED);
  }
  speed = kg_tangential_size(&c->now, m, c->s.rate);
  if (speed <= c->slip_zero[m] && announced == KG_SLIP && kg_closed(c->mode[m])) {
    c->mode[m] = KG_STICK; /* it has come to rest, so static friction is tried first */
  }
  stuck = !(creep > KG_C(0.0)) && (c->mode[m] == KG_STICK || announced == KG_STICK);
  if (speed <= c->slip_zero[m] || stuck) { /* the remaining velocity of a stuck contact is an error */
    return KG_MAY(KG_STICK) | KG_MAY(KG_SLIP) | KG_MAY_START;
  }
  kg_aim(&c->now, m, KG_C(1.0), c->s.rate);
  return KG_MAY(KG_SLIP) | (speed <= creep + c->slip_zero[m] ? KG_MAY(KG_STICK) : 0);
}

/* Returns the possible modes of contact m in this state, as bits, and sets its mode to one of them. */
static inline void kg_contact_choose_from_state(kg_contacts *c, int m) {
  const int choices = kg_normal_choices(c, m), without = choices & KG_VIOLATED ? KG_PENETRATED : KG_OPEN;
  c->may[m] = choices & KG_WITHOUT_FORCE ? KG_MAY(without) : 0;
  c->may[m] |= choices & KG_WITH_FORCE ? kg_friction_choices(c, m) : 0;
  if (!kg_may(&c->search, m, c->mode[m])) {
    const int force = choices & KG_WITH_FORCE && (kg_closed(c->mode[m]) || !(choices & KG_WITHOUT_FORCE));
    c->mode[m] = force ? kg_mode_with_force(&c->search, m) : without;
  }
}

/* Tolerance within which guard k of contact m counts as zero: a gap, a slip velocity or a force. */
static inline kg_real kg_guard_zero(const kg_contacts *c, int m, int k) {
  const kg_contact_info *info = c->model->contacts + m;
  const int mode = c->mode[m];
  const int row = k == 2 ? info->tangent : info->normal;
  if (mode == KG_SLIP && k == 2) {
    return c->slip_zero[m];
  }
  if (kg_closed(mode) ? k == 1 : k == 0) {
    return c->gap_zero[m];
  }
  return row < 0 ? KG_C(0.0) : KG_MODE_TOLERANCE * c->search.size / kg_modes_unit(&c->now, row);
}

/* Returns whether guard k remains zero in this mode. This is so for a redundant contact without force, and for the
 * gap that a stabilized contact has closed. */
static inline int kg_guard_remains_zero(const kg_contacts *c, int m, int k) {
  const int row = c->model->contacts[m].normal;
  return kg_scan_idle(&c->search, m) ||
         (k == 1 && kg_closed(c->mode[m]) && row >= 0 && KG_ABS(c->s.rate[row]) <= c->rate_zero[m]);
}

/* Raises guards that start at or below zero to just above zero: with a larger value a gap would shrink from impact to
 * impact. A guard that remains zero is raised by its tolerance. */
static inline void kg_contacts_slack(kg_contacts *c) {
  const kg_real *lambda = kg_contacts_deciding(c);
  for (int m = 0; m < c->model->n_contacts; ++m) {
    kg_real guards[KG_CONTACT_GUARDS];
    kg_contact_guards_of(c, m, lambda, guards);
    for (int k = 0; k < KG_CONTACT_GUARDS; ++k) {
      const kg_real zero = kg_guard_zero(c, m, k), low = KG_GUARD_SLACK * zero;
      const kg_real rise = kg_guard_remains_zero(c, m, k) ? zero : low;
      const kg_real below = KG_MAX(-guards[k], KG_C(0.0));
      c->slack[KG_CONTACT_GUARDS * m + k] = guards[k] <= low ? rise + below : KG_C(0.0);
    }
  }
}

/* Sets the directions of slip at the start of a step, and the residual slip velocity of contacts that start to slip. */
static inline void kg_contacts_begin(kg_contacts *c) {
  for (int m = 0; m < c->model->n_contacts; ++m) {
    const kg_contact_info *info = c->model->contacts + m;
    const int starts = c->mode[m] == KG_SLIP && (c->may[m] & KG_MAY_START) != 0;
    c->starting[m] = starts && info->directions == 2;
    for (int k = 0; k < info->directions; ++k) {
      c->direction[2 * m + k] = c->now.direction[2 * m + k];
      c->residual[2 * m + k] = starts ? c->s.rate[info->tangent + k] : KG_C(0.0);
    }
  }
}

/* Returns whether a solution may be chosen where there are several: all contacts concerned have Coulomb(paradox=). */
static inline int kg_contacts_may_choose(const kg_contacts *c) {
  int any = 0;
  for (int m = 0; m < c->model->n_contacts; ++m) {
    if ((c->may[m] & (KG_MAY(KG_STICK) | KG_MAY(KG_SLIP))) != 0 && kg_normal_unknown(&c->now, m)) {
      if (kg_paradox_of(c->model->contacts + m) == KG_PARADOX_ERROR) {
        return 0;
      }
      any = 1;
    }
  }
  return any;
}

/* Chooses modes that are consistent with the state and its accelerations, at the start of a run and after every event.
 * Present modes are kept if they are consistent. With KG_NO_MODE or KG_SEVERAL_MODES, c->culprit is the contact. */
static inline int kg_contacts_settle(kg_contacts *c, const kg_point *at) {
  const int status = kg_contacts_evaluate(c, at);
  int chosen;
  if (status < 0) {
    return status;
  }
  kg_contacts_acceleration_rows(c);
  c->search.modes = &c->now;
  c->search.size = kg_search_size(&c->now);
  for (int m = 0; m < c->model->n_contacts; ++m) {
    kg_contact_choose_from_state(c, m);
  }
  memset(c->announced, 0, (size_t)c->model->n_contacts * sizeof(int));
  memcpy(c->entered, c->mode, (size_t)c->model->n_contacts * sizeof(int));
  c->at_impact = 0;
  c->search.choose = !c->tolerates && kg_contacts_may_choose(c);
  chosen = kg_choose_modes(&c->search, !c->tolerates, c->prefer_present);
  c->culprit = c->search.culprit;
  if (chosen < 0) {
    memcpy(c->mode, c->entered, (size_t)c->model->n_contacts * sizeof(int)); /* the search for conflicts changed them */
    return chosen;
  }
  kg_contacts_begin(c);
  kg_contacts_slack(c);
  return status;
}

#ifdef __cplusplus
}
#endif

#endif
