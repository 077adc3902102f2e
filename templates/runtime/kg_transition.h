/* kg_transition.h - carries out the reactions to an event: actions of the user's events, impacts, new modes, records.
 *
 * This is the order: latches are removed and imposed; states are reset; impulses of the user act together with the
 * bilateral constraints; the contacts whose guards fell change their modes; closing contacts and imposed latches have
 * impacts; modes are chosen that agree with the state and its accelerations. If a jump of the speeds changes the sign
 * of other guards, this is the next event at the same time.
 */
#ifndef KG_TRANSITION_H
#define KG_TRANSITION_H

#include "kg_hybrid_system.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Largest number of impacts and events that one event can cause at the same time. */
#define KG_CHAIN 100
/* Flights no higher than this fraction of the gap tolerance are not resolved. */
#define KG_ZENO_HEIGHT KG_BY_PRECISION(1e-2, 1e-1)
/* Impulses below this fraction of the largest one are rounding. */
#define KG_IMPULSE_ROUNDING KG_BY_PRECISION(1e-9, 1e-5)
/* Impacts of a contact whose intervals agree with a geometric series, before the accumulation point is accepted. */
#define KG_ZENO_IMPACTS 4

static inline int kg_transition_fail(kg_hybrid *h, int status, int culprit) {
  h->culprit = culprit;
  /* Outcomes are kept; statuses of functions become those of the right-hand side. */
  return status <= KG_STEP_COLLAPSED && status >= KG_GAP_VIOLATED ? status : kg_stepper_fail(h->stepper, status);
}

/* Switches the latches of the user's events that fired; returns whether one of these events has an impulse. */
static inline int kg_transition_actions(kg_hybrid *h) {
  int impulses = 0;
  for (int i = 0; i < h->model->n_events; ++i) {
    const kg_event_info *event = h->model->events + i;
    if (h->finder.fired[i]) {
      for (int k = 0; k < event->n_remove && h->has_contacts; ++k) {
        h->contacts.mode[event->remove[k]] = KG_OPEN;
      }
      for (int k = 0; k < event->n_impose && h->has_contacts; ++k) {
        h->contacts.mode[event->impose[k]] = KG_CLOSED;
      }
      impulses = impulses || event->impulse >= 0;
      h->terminal = h->terminal || event->terminal;
    }
  }
  return impulses;
}

/* Gives the states the values that the events of the user that fired prescribe, one event after the other. Returns
 * whether a state has changed, or a negative status. */
static inline int kg_transition_reset(kg_hybrid *h) {
  kg_real *s = h->y + h->model->n_q + h->model->n_u;
  const size_t size = (size_t)h->n_s * sizeof *s;
  int changed = 0;
  for (int i = 0; i < h->model->n_events && h->resets; ++i) {
    const kg_real *row = h->reset_rows + i * (ptrdiff_t)h->n_s;
    int status;
    if (!h->finder.fired[i]) {
      continue;
    }
    status = kg_hybrid_inputs(h, h->t, h->y);
    if (status == KG_OK) {
      status = kg_hybrid_evaluate(h, h->resets, h->t, h->y, NULL, h->reset_rows);
    }
    if (status < 0) {
      return status;
    }
    changed = changed || memcmp(row, s, size) != 0;
    memcpy(s, row, size);
  }
  return changed;
}

/* The impulses of all events that fired, with the bilateral constraints. */
static inline int kg_transition_impulse(kg_hybrid *h) {
  const int n_u = h->model->n_u;
  const kg_point at = kg_hybrid_point(h, h->t, h->y, NULL);
  int status;
  if (!h->bilateral || !h->impulses) {
    return KG_INVALID_ARGUMENT;
  }
  status = h->impulses->evaluate(&at, h->p, h->scratch, h->impulse_rows);
  if (status < 0) {
    return status;
  }
  for (int i = 0; i < h->model->n_events; ++i) {
    const int row = h->model->events[i].impulse;
    for (int j = 0; j < n_u && h->finder.fired[i] && row >= 0; ++j) {
      h->generalized[j] += h->impulse_rows[row * (ptrdiff_t)n_u + j];
    }
  }
  return kg_impulse(h->bilateral, &at, h->y + h->model->n_q, h->p, h->generalized, h->multipliers, h->impulse_work);
}

/* Whether the impacts of contact m, the latest of which is due now, accumulate so soon that the flights between them
 * cannot be resolved: then it rests from now on, and *left is the time to the accumulation point, the sum of the
 * geometric series of the flights; 0 where they are no such series. The gap meanwhile is less than what cannot be
 * resolved. */
static inline int kg_transition_accumulates(kg_hybrid *h, int m, kg_real *left) {
  kg_bounce *bounce = h->bounces + m;
  const kg_real interval = KG_ABS(h->now - bounce->t), ratio = interval / bounce->interval;
  const kg_real rate = KG_ABS(h->contacts.s.rate[h->model->contacts[m].normal]);
  const kg_real unit = h->finder.units[h->model->n_events + KG_CONTACT_GUARDS * m];
  const int regular = bounce->count >= KG_ZENO_IMPACTS && ratio < KG_C(1.0) &&
                      KG_ABS(ratio - bounce->ratio) <= KG_C(0.1) * (KG_C(1.0) - ratio);
  const kg_real height = KG_C(0.25) * rate * interval, least = KG_ZENO_HEIGHT * h->contacts.gap_zero[m];
  const int resolved = height > KG_MAX(unit, least) && interval > KG_BY_PRECISION(1e6, 1e1) * KG_EPSILON * KG_ABS(h->now);
  bounce->ratio = ratio;
  bounce->interval = interval;
  bounce->t = h->now;
  bounce->count = ratio < KG_C(1.0) || bounce->count < 2 ? bounce->count + 1 : 1;
  *left = regular ? interval * ratio / (KG_C(1.0) - ratio) : KG_C(0.0);
  return regular ? !resolved : bounce->count > 1 && height <= least;
}

/* Notes impacts that are due; contacts whose impacts accumulate are closed, so that they do not rebound. */
static inline void kg_transition_bounces(kg_hybrid *h) {
  kg_contacts *c = &h->contacts;
  for (int m = 0; m < h->model->n_contacts; ++m) {
    const kg_contact_info *info = h->model->contacts + m;
    const int fell = h->finder.fired[h->model->n_events + KG_CONTACT_GUARDS * m] != KG_NOTHING;
    kg_real left;
    if (c->law[m] != KG_LAW_RESTITUTION || info->level != 2 || c->mode[m] != KG_OPEN || !fell) {
      continue;
    }
    if (kg_transition_accumulates(h, m, &left)) {
      c->mode[m] = KG_CLOSED;
      c->accumulates = 1;
      h->bounces[m].rests = 1;
      h->bounces[m].t_rest = h->now + h->stepper->direction * left;
      h->bounces[m].count = 0;
    }
  }
}

/* Impacts until no contact closes any more. `u_before`: the speeds before an impulse, or NULL. */
static inline int kg_transition_impacts(kg_hybrid *h, const kg_real *u_before) {
  const kg_point at = kg_hybrid_point(h, h->t, h->y, NULL);
  kg_real *u = h->y + h->model->n_q;
  h->contacts.accumulates = 0;
  for (int k = 0; k < KG_CHAIN; ++k) {
    int due = u_before ? 1 : kg_contacts_approaching(&h->contacts, &at);
    if (due == 1 && k == 0 && !u_before) {
      kg_transition_bounces(h);
    }
    if (due <= 0) {
      return due;
    }
    due = kg_contacts_impact_after(&h->contacts, &at, u, u_before, h->impact);
    if (due < 0) {
      return due;
    }
    kg_add(h->model->n_rows, KG_C(1.0), h->impact, h->impulse);
    u_before = NULL;
  }
  return KG_CHATTERING;
}

/* Chooses modes; where no finite forces exist and the friction of the contacts says what to do then (kg_paradox.h), an
 * impulse follows, or contacts become compliant, and modes are chosen anew. */
static inline int kg_transition_settle(kg_hybrid *h) {
  kg_contacts *c = &h->contacts;
  const kg_point at = kg_hybrid_point(h, h->t, h->y, NULL);
  for (int k = 0; k < KG_CHAIN; ++k) {
    int status = kg_contacts_settle(c, &at);
    const int paradox = status == KG_NO_MODE ? kg_contacts_paradox(c) : KG_PARADOX_ERROR;
    if (paradox == KG_PARADOX_ERROR) {
      kg_paradox_release(c);
      return status;
    }
    kg_paradox_mark(c, paradox == KG_PARADOX_REGULARIZE);
    if (paradox == KG_PARADOX_IMPACT) {
      status = kg_contacts_jam(c, &at, h->y + h->model->n_q, h->impact);
      if (status == KG_NO_MODE && c->search.unstable >= 0) {
        return kg_contacts_settle_unstable(c, &at);
      }
      if (status >= 0) {
        kg_add(h->model->n_rows, KG_C(1.0), h->impact, h->impulse);
        status = kg_transition_impacts(h, NULL);
      }
      if (status < 0) {
        return status;
      }
    }
  }
  return KG_CHATTERING;
}

/* Whether only events of the user without action have fired: the motion goes on as it would without them. */
static inline int kg_transition_observes(const kg_hybrid *h) {
  int fired = 0;
  for (int i = 0; i < h->finder.n; ++i) {
    if (h->finder.fired[i]) {
      const kg_event_info *event = i < h->model->n_events ? h->model->events + i : NULL;
      if (!event || event->impulse >= 0 || event->n_impose > 0 || event->n_remove > 0) {
        return 0;
      }
      fired = 1;
    }
  }
  return fired;
}

/* Changes the state and the modes. */
static inline int kg_transition_apply(kg_hybrid *h) {
  kg_contacts *c = &h->contacts;
  kg_real *u = h->y + h->model->n_q;
  const int struck = kg_transition_actions(h), reset = kg_transition_reset(h);
  int status = reset < 0 ? reset : kg_hybrid_inputs(h, h->t, h->y);
  memcpy(h->u_before, u, (size_t)h->model->n_u * sizeof *u);
  memset(h->impulse, 0, (size_t)h->model->n_rows * sizeof *h->impulse);
  memset(h->generalized, 0, (size_t)h->model->n_u * sizeof *u);
  if (status == KG_OK && struck) {
    status = kg_transition_impulse(h);
  }
  if (status < 0 || !h->has_contacts || (!reset && kg_transition_observes(h))) {
    return status < 0 ? kg_transition_fail(h, status, -1) : KG_OK;
  }
  for (int k = 0; k < KG_CONTACT_GUARDS * h->model->n_contacts; ++k) {
    if (h->finder.fired[h->model->n_events + k]) {
      kg_contacts_propose(c, k);
    }
  }
  status = kg_transition_impacts(h, struck ? h->u_before : NULL);
  if (status >= 0) {
    status = kg_transition_settle(h);
  }
  return status < 0 ? kg_transition_fail(h, status, c->culprit) : KG_OK;
}

/* What the change of mode of contact m is called; -1: none. */
static inline int kg_transition_kind(const kg_hybrid *h, int m) {
  const int before = h->mode_before[m], after = h->contacts.mode[m];
  const int latch = h->model->contacts[m].law == KG_LAW_LATCH;
  if (kg_closed(before) != kg_closed(after)) {
    return kg_closed(after) ? (latch ? KG_RECORD_IMPOSED : KG_RECORD_CLOSES)
                            : (latch ? KG_RECORD_REMOVED : after == KG_OPEN ? KG_RECORD_OPENS : KG_RECORD_PENETRATES);
  }
  if (before != after) {
    return after == KG_STICK      ? KG_RECORD_STICKS
           : after == KG_SLIP     ? KG_RECORD_SLIPS
           : after == KG_OPEN     ? KG_RECORD_OPENS
           : after == KG_PENETRATED ? KG_RECORD_PENETRATES
                                  : -1;
  }
  if (after == KG_SLIP && h->model->contacts[m].directions == 1 &&
      h->direction[2 * m] * h->contacts.direction[2 * m] < KG_C(0.0)) {
    return KG_RECORD_REVERSES;
  }
  return -1;
}

static inline int kg_transition_emit(const kg_hybrid *h, int kind, int index, int touch) {
  kg_record record;
  if (!h->record || kind < 0) {
    return KG_OK;
  }
  record.kind = kind;
  record.index = index;
  record.touch = touch;
  record.t = h->now;
  record.y_before = h->before;
  record.y_after = h->y;
  record.impulse = h->impulse;
  record.mode = h->contacts.mode;
  return h->record(h->host, &record);
}

/* Whether contact m took an impulse. One that was closed gets some rounding of any impulse. */
static inline int kg_transition_struck(const kg_hybrid *h, int m) {
  const int normal = h->model->contacts[m].normal;
  const kg_real least = kg_closed(h->mode_before[m]) ? KG_IMPULSE_ROUNDING : KG_C(0.0);
  const kg_real largest = KG_MAX(kg_largest(h->model->n_rows, h->impulse), kg_largest(h->model->n_u, h->generalized));
  return normal >= 0 && KG_ABS(h->impulse[normal]) > least * largest;
}

/* Records of the user's events, then of the contacts. */
static inline int kg_transition_report(kg_hybrid *h) {
  int status = KG_OK;
  for (int i = 0; i < h->model->n_events && status == KG_OK; ++i) {
    if (h->finder.fired[i]) {
      status = kg_transition_emit(h, KG_RECORD_USER, i, h->finder.fired[i] == KG_TOUCH);
    }
  }
  for (int m = 0; m < h->model->n_contacts && status == KG_OK && h->has_contacts; ++m) {
    const int change = kg_transition_kind(h, m);
    /* A contact whose impacts accumulate closes at once: this replaces all impacts that are left. */
    const int last = change == KG_RECORD_CLOSES && h->bounces[m].rests;
    if (h->contacts.paradox[m]) {
      h->contacts.paradox[m] = 0;
      status = kg_transition_emit(h, KG_RECORD_PARADOX, m, 0);
    }
    if (status == KG_OK && change != KG_RECORD_IMPOSED && !last && kg_transition_struck(h, m)) {
      status = kg_transition_emit(h, KG_RECORD_IMPACT, m, 0);
    }
    if (status == KG_OK) {
      status = kg_transition_emit(h, change, m, 0);
    }
    h->modes_changed = h->modes_changed || change >= 0;
  }
  return status;
}

/* Keeps what the next records compare with. */
static inline void kg_transition_remember(kg_hybrid *h) {
  const size_t m = (size_t)h->model->n_contacts;
  memcpy(h->before, h->y, (size_t)kg_hybrid_size(h) * sizeof *h->y);
  if (h->has_contacts) {
    memcpy(h->mode_before, h->contacts.mode, m * sizeof *h->mode_before);
    memcpy(h->direction, h->contacts.direction, 2 * m * sizeof *h->direction);
  }
}

/* Contacts that were to rest rest, or do so no more. */
static inline int kg_transition_rest(kg_hybrid *h) {
  int status = KG_OK;
  for (int m = 0; m < h->model->n_contacts && status == KG_OK; ++m) {
    kg_bounce *bounce = h->bounces + m;
    const int closed = bounce->rests && kg_closed(h->contacts.mode[m]);
    const int reached = !((bounce->t_rest - h->now) * h->stepper->direction > KG_C(0.0));
    if (closed && reached) {
      status = kg_transition_emit(h, KG_RECORD_RESTS, m, 0);
    }
    bounce->rests = closed && !reached;
  }
  return status;
}

#ifdef __cplusplus
}
#endif

#endif
