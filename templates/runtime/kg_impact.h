/* kg_impact.h - computes impacts at contacts, several at once, with friction.
 *
 * Newton's law of restitution as a complementarity problem for all contacts that touch (Moreau; Glocker):
 * 0 <= Lambda, 0 <= v+ - w, Lambda (v+ - w) = 0 with w = e max(-v-, 0), so that e concerns approaching contacts only;
 * with friction |Lambda_t| <= mu Lambda_n, sticking (v_t+ = 0) or slipping opposite to v_t+. Contacts at rest and
 * imposed constraints have e = 0: they keep or reach zero speed.
 * Forces that are finite (compliant contacts, friction under a given load) have no impulse. With e > 0 this law may add
 * energy in special configurations, as Newton's law is known to do: with friction (Kane and Levinson 1985), and where a
 * contact that separates is pressed together by the impact of another one.
 */
#ifndef KG_IMPACT_H
#define KG_IMPACT_H

#include "kg_complementarity.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Flights no higher than this fraction of the gap tolerance are not resolved, because of the rounding of the gap: to
 * follow them would add as much energy as the impacts dissipate. */
#define KG_FLIGHT KG_BY_PRECISION(1e-5, 1e-2)

/* Returns whether contact m rises further than that against its acceleration if it separates with this speed. */
static inline int kg_flies(const kg_contacts *c, int m, kg_real speed) {
  const kg_real twice_least = KG_C(2.0) * KG_FLIGHT * c->gap_zero[m];
  return speed * speed > -c->s.free[c->model->contacts[m].normal] * twice_least;
}

/* Returns whether a rigid contact touches, so that it can have an impulse. */
static inline int kg_touches(const kg_contacts *c, int m) {
  return kg_closed(c->mode[m]) || c->announced[m] || c->s.value[c->model->contacts[m].normal] <= c->gap_zero[m];
}

/* Returns 1 if an impact is due, because a rigid contact closes or an imposed constraint moves; otherwise 0, or a
 * negative status. */
static inline int kg_contacts_approaching(kg_contacts *c, const kg_point *at) {
  const int status = kg_contacts_evaluate_gaps(c, at);
  for (int m = 0; m < c->model->n_contacts && status >= 0; ++m) {
    const kg_contact_info *info = c->model->contacts + m;
    const int open = !kg_closed(c->mode[m]);
    if (c->law[m] == KG_LAW_RESTITUTION && open && kg_touches(c, m) && c->s.rate[info->normal] < -c->rate_zero[m]) {
      return 1;
    }
    if (c->law[m] == KG_LAW_LATCH && !open && KG_ABS(c->s.rate[info->normal]) > c->rate_zero[m]) {
      return 1;
    }
  }
  return status < 0 ? status : 0;
}

/* Returns whether contact m can have an impulse: KG_WITH_FORCE, KG_WITHOUT_FORCE or both, as bits. */
static inline int kg_impact_choices(const kg_contacts *c, int m) {
  const int both = KG_WITH_FORCE | KG_WITHOUT_FORCE;
  switch (c->law[m]) {
    case KG_LAW_RESTITUTION:
      return kg_touches(c, m) ? both : KG_WITHOUT_FORCE;
    case KG_LAW_STABILIZED:
      return c->mode[m] != KG_OPEN ? both : KG_WITHOUT_FORCE;
    case KG_LAW_BILATERAL:
      return KG_WITH_FORCE;
    case KG_LAW_LATCH:
      return kg_closed(c->mode[m]) ? KG_WITH_FORCE : KG_WITHOUT_FORCE;
    default:
      return KG_WITHOUT_FORCE;
  }
}

/* The speed with which contact m rebounds. */
static inline kg_real kg_rebound(const kg_contacts *c, int m) {
  const kg_real before = c->rate_before[c->model->contacts[m].normal];
  const kg_real speed = c->s.restitution[m] * KG_MAX(-before, KG_C(0.0));
  return !c->plastic && kg_flies(c, m, speed) ? speed : KG_C(0.0);
}

/* Value of the normal row without impulses: v+ + e v- for a rigid contact, change of speed for a compliant one. */
static inline kg_real kg_impact_row(const kg_contacts *c, int m) {
  const int row = c->model->contacts[m].normal;
  const kg_real rate = c->s.rate[row];
  if (c->law[m] == KG_LAW_STABILIZED) {
    return rate - c->rate_before[row];
  }
  if (c->law[m] == KG_LAW_RESTITUTION && !kg_closed(c->mode[m])) {
    return rate - kg_rebound(c, m);
  }
  return rate;
}

/* Sets up the impact: the rows and the possible modes of each contact. A contact with friction can stick or slip. */
static inline void kg_impact_problem(kg_contacts *c) {
  memcpy(c->b, c->s.rate, (size_t)c->model->n_rows * sizeof(kg_real));
  for (int m = 0; m < c->model->n_contacts; ++m) {
    const kg_contact_info *info = c->model->contacts + m;
    const int choices = kg_impact_choices(c, m);
    const int friction = KG_MAY(KG_STICK) | KG_MAY(KG_SLIP) | KG_MAY_START;
    const int with = info->directions > 0 ? friction : KG_MAY(KG_CLOSED);
    c->may[m] = (choices & KG_WITH_FORCE ? with : 0) | (choices & KG_WITHOUT_FORCE ? KG_MAY(KG_OPEN) : 0);
    c->trial.mode[m] = choices & KG_WITH_FORCE ? kg_mode_with_force(&c->search, m) : KG_OPEN;
    c->trial.sign[m] = c->now.sign[m];
    if (info->normal >= 0) {
      c->b[info->normal] = kg_impact_row(c, m);
    }
    if (info->directions > 0) {
      kg_aim(&c->trial, m, KG_C(1.0), c->s.rate);
    }
  }
}

/* Change of the rate of a row by the impulses. */
static inline kg_real kg_impact_change(const kg_contacts *c, int row) {
  return kg_dot(c->model->n_rows, c->s.D + row * (ptrdiff_t)c->model->n_rows, c->trial.lambda);
}

/* Sets the mode of a contact after the impact; kg_contacts_settle() starts with it. */
static inline int kg_mode_after_impact(const kg_contacts *c, int m) {
  const kg_contact_info *info = c->model->contacts + m;
  int mode = c->mode[m];
  if (c->law[m] == KG_LAW_RESTITUTION && kg_touches(c, m)) {
    const kg_real after = c->s.rate[info->normal] + kg_impact_change(c, info->normal);
    const kg_real rest = c->rate_zero[m] + (kg_closed(mode) ? KG_ABS(c->rate_before[info->normal]) : KG_C(0.0));
    mode = after > rest && kg_flies(c, m, after) ? KG_OPEN : info->directions > 0 ? KG_SLIP : KG_CLOSED;
  }
  if (info->directions > 0 && kg_closed(mode)) {
    kg_real slip = KG_C(0.0);
    for (int k = 0; k < info->directions; ++k) {
      const int row = info->tangent + k;
      const kg_real after = c->s.rate[row] + kg_impact_change(c, row);
      slip = KG_MAX(slip, KG_ABS(after));
    }
    return slip <= c->slip_zero[m] ? KG_STICK : KG_SLIP;
  }
  return mode;
}

/* Brings contacts that were closed to rest if the impact opens them: where flights are too low to be resolved, two
 * contacts could otherwise open each other in turn forever. The normals are held without friction, those that stick
 * with it, which can only dissipate energy. */
static inline void kg_impact_hold(kg_contacts *c, kg_real *impulses) {
  int opens = 0;
  for (int i = 0; i < c->model->n_rows; ++i) {
    c->b[i] = c->s.rate[i] + kg_impact_change(c, i);
  }
  for (int m = 0; m < c->model->n_contacts; ++m) {
    const int rests = c->law[m] == KG_LAW_RESTITUTION && kg_closed(c->mode[m]);
    opens = opens || (rests && c->b[c->model->contacts[m].normal] > c->rate_zero[m]);
    if (rests || kg_closed(c->trial.mode[m])) {
      c->trial.mode[m] = c->trial.mode[m] == KG_STICK ? KG_STICK : KG_CLOSED;
    }
  }
  c->trial.lambda = c->search.best_w;
  if (opens && kg_modes_solve(&c->trial) == KG_OK) {
    kg_add(c->model->n_rows, KG_C(1.0), c->search.best_w, impulses);
  }
  c->trial.lambda = impulses;
}

/* An impact with the speeds u of `at` after an impulse, u_before before it (NULL: no impulse). u becomes the speeds after
 * the impact, impulses (n_rows) those of the rows, of least norm for redundant contacts. Modes are changed where contacts
 * separate, persist, stick or slip; kg_contacts_settle() then decides by accelerations. */
static inline int kg_contacts_impact_after(kg_contacts *c, const kg_point *at, kg_real *u, const kg_real *u_before,
                                           kg_real *impulses) {
  int status = KG_OK, chosen;
  if (u_before) {
    kg_point before = *at;
    before.u = u_before;
    status = kg_contacts_evaluate_gaps(c, &before);
    memcpy(c->rate_before, c->s.rate, (size_t)c->model->n_rows * sizeof(kg_real));
  }
  status = status < 0 ? status : kg_contacts_evaluate(c, at);
  if (status < 0) {
    return status;
  }
  if (!u_before) {
    memcpy(c->rate_before, c->s.rate, (size_t)c->model->n_rows * sizeof(kg_real));
  }
  c->trial.lambda = impulses;
  c->search.modes = &c->trial;
  kg_impact_problem(c);
  c->at_impact = 1;
  c->search.choose = 0;
  chosen = kg_choose_modes(&c->search, 0, 0);
  c->culprit = c->search.culprit;
  if (chosen < 0) {
    return chosen;
  }
  if (c->accumulates) {
    kg_impact_hold(c, impulses);
  }
  kg_contacts_respond(c, impulses, u);
  for (int m = 0; m < c->model->n_contacts; ++m) {
    c->mode[m] = kg_mode_after_impact(c, m);
  }
  return status;
}

/* Computes the impact of contacts that close with the speeds u of `at`; u becomes the speeds after it. */
static inline int kg_contacts_impact(kg_contacts *c, const kg_point *at, kg_real *u, kg_real *impulses) {
  return kg_contacts_impact_after(c, at, u, NULL, impulses);
}

/* Largest number of impacts that one impulse can cause at the same time. */
#define KG_BLOW_CHAIN 100

/* Computes the impacts due to an impulse that has changed the speeds from u_before to u, those of `at`, with the bilateral constraints
 * only: the contacts start in their modes at u_before, and impacts follow until none is due. u becomes the speeds
 * after, impulses (n_rows) the sum; part: n_rows values. Where no finite forces exist before the impulse, or several
 * ones, the contacts are those that touch. */
static inline int kg_contacts_after_impulse(kg_contacts *c, const kg_point *at, kg_real *u, const kg_real *u_before,
                                            kg_real *part, kg_real *impulses) {
  kg_point before = *at;
  int due;
  before.u = u_before;
  due = kg_contacts_settle(c, &before);
  if (due == KG_NO_MODE || due == KG_SEVERAL_MODES) {
    due = KG_OK;
  }
  for (int m = 0; m < c->model->n_contacts && due >= 0; ++m) {
    const kg_contact_info *info = c->model->contacts + m;
    if (c->law[m] == KG_LAW_RESTITUTION && c->s.rate[info->normal] < -c->rate_zero[m]) {
      c->mode[m] = KG_OPEN; /* it does not rest yet, but rebounds */
    }
  }
  kg_clear(c->model->n_rows, impulses);
  for (int k = 0; k < KG_BLOW_CHAIN && due >= 0; ++k) {
    due = kg_contacts_impact_after(c, at, u, k == 0 ? u_before : NULL, part);
    kg_add(c->model->n_rows, KG_C(1.0), part, impulses);
    due = due < 0 ? due : kg_contacts_approaching(c, at);
    if (due == 0) {
      return KG_OK;
    }
  }
  return due < 0 ? due : KG_CHATTERING;
}

#ifdef __cplusplus
}
#endif

#endif
