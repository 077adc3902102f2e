/* kg_contact.h - evaluates the contacts of a model: rows, modes, forces, and the motion in the present modes.
 *
 * A contact is a unilateral constraint with or without friction, friction in a joint or under a given load, or a
 * constraint that events impose and remove. Each has up to three rows: the normal one, then one or two tangential ones.
 * The model's function `contacts` evaluates all rows at zero multipliers; `gaps` evaluates the part of them that takes
 * few operations. The modes of the contacts determine which rows are closed (kg_modes.h). Sections of `contacts` (n_k
 * rows, n_m contacts):
 *
 *   qdot (n_q), a (n_u): the motion without contact forces; response (n_k x n_u): u' per multiplier; D (n_k x n_k):
 *   row accelerations per multiplier; free (n_k): row accelerations at zero multipliers; then the sections of `gaps`:
 *   value (n_k): gap, or zero; rate (n_k): its rate (the gap itself at velocity level), slip velocity;
 *   target (n_k): acceleration of a row that is closed or stuck; load (n_m): known normal force;
 *   mu_s, mu_k, restitution, creep (n_m): coefficients, and the slip velocity below which a contact may stick.
 *
 * The caller provides all memory.
 */
#ifndef KG_CONTACT_H
#define KG_CONTACT_H

#include "kg_mode_scan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gaps up to this multiple of their unit touch, and rates up to this multiple of theirs are rest. A unit is the change
 * that follows if every coordinate, or every speed, changes by its absolute tolerance: the default one where the method
 * has none, and some roundings at least. */
#define KG_GAP_UNITS KG_BY_PRECISION(5.0, 1.0)
#define KG_RATE_UNITS KG_BY_PRECISION(10.0, 1.0)
#define KG_STATE_TOLERANCE KG_BY_PRECISION(1e-10, 1e-5)
#define KG_STATE_ROUNDINGS KG_C(4.0)
/* Flag of a contact whose gap has reached zero, up to rounding. */
#define KG_GAP_FELL 16
/* A slip velocity below this fraction of what counts as rest has no direction. */
#define KG_NO_DIRECTION KG_BY_PRECISION(1e-3, 1e-2)
/* Slip that starts in a plane has the direction of its acceleration at first. The direction of its velocity tends to
 * this direction at the rate mu N / (m |v|), too fast for explicit steps, and the difference is proportional to the
 * square of the time since the start. It ends at the speed of which the relative tolerance is this fraction of the
 * absolute one, but not below so many units of the absolute one. */
#define KG_START_SHARE KG_C(1e-3)
#define KG_START_UNITS KG_C(1e2)
#define KG_START_DEFAULT KG_BY_PRECISION(1e4, 1e2)

/* The last evaluation of `contacts`, or of `gaps` from `value` on. */
typedef struct {
  kg_real *qdot, *a, *response, *D, *free;
  kg_real *value, *rate, *target, *load, *mu_s, *mu_k, *restitution, *creep;
} kg_contact_sections;

typedef struct {
  const kg_model *model;
  const kg_function *contacts;
  const kg_function *gaps;
  const kg_real *p;
  kg_real *gap_zero;      /* n_contacts: gaps up to this size touch */
  kg_real *rate_zero;     /* n_contacts: rates of gaps up to this size are rest */
  kg_real *slip_zero;     /* n_contacts: the same for slip velocities */
  kg_real *start_speed;   /* n_contacts: slip that starts in a plane has the direction of its acceleration up to this */
  int prefer_present;     /* accept consistent present modes without a proof of uniqueness */
  int plastic;            /* impacts have e = 0, whatever the restitution */
  int tolerates;          /* modes that are unstable are accepted (kg_paradox.h) */
  int accumulates;        /* flights after this impact cannot be resolved (kg_transition.h) */
  int at_impact;          /* the modes chosen last were those of an impact */
  int *entered;           /* n_contacts: the modes before kg_contacts_settle() */
  int *paradox;           /* n_contacts: flags of contacts whose paradox was resolved at this instant (kg_paradox.h) */
  int culprit;            /* after a failure: the contact that caused it, or -1 */
  int *mode;              /* n_contacts: the modes */
  int *law;               /* n_contacts: the laws, KG_LAW_... */
  kg_real *direction;     /* 2 per contact: unit direction of slip; in a plane, at the start of the step */
  kg_real *residual;      /* 2 per contact: slip velocity at the end of sticking, an error of the state */
  kg_real *lambda;        /* n_rows: multipliers of the last right-hand side */
  kg_real *slack;         /* KG_CONTACT_GUARDS per contact: added to the guards (kg_complementarity.h) */
  kg_contact_sections s;
  kg_modes now;           /* accelerations in the present modes */
  kg_modes trial;         /* impacts */
  kg_mode_search search;
  int *may;               /* n_contacts: possible modes */
  int *announced;         /* n_contacts: 1 + next mode if a guard has fallen; KG_GAP_FELL */
  int *starting;          /* n_contacts: flags of starting slip in a plane (start_speed) */
  kg_real *b;             /* n_rows: right sides of the present problem */
  kg_real *rate_before;   /* n_rows: before an impulse */
  kg_real *no_load;       /* n_contacts zeros */
  kg_real *scratch;       /* work array of the functions */
} kg_contacts;

/* Integers of `mode`: first the modes, then scratch. */
static inline int kg_contacts_integers(const kg_model *model) { return 11 * model->n_contacts + 2 * model->n_rows; }

/* Divides the array of integers. */
static inline void kg_contacts_split_integers(kg_contacts *c, int *mode) {
  const int m = c->model->n_contacts, k = c->model->n_rows;
  c->mode = mode;
  c->now.mode = mode;
  c->trial.mode = mode + m;
  c->may = mode + 2 * m;
  c->search.may = c->may;
  c->search.best = mode + 3 * m;
  c->search.counter = mode + 4 * m;
  c->announced = mode + 5 * m;
  c->starting = mode + 6 * m;
  c->search.conflict = mode + 7 * m;
  c->law = mode + 8 * m;
  c->entered = mode + 9 * m;
  c->paradox = mode + 10 * m;
  c->now.unknown = c->trial.unknown = mode + 11 * m;
  c->now.slipping = c->trial.slipping = mode + 11 * m + k;
}

/* Places the arrays in `work`; returns their length. With work NULL it only computes the length. */
static inline size_t kg_contacts_place(kg_contacts *c, kg_real *work) {
  const size_t q = (size_t)c->model->n_q, u = (size_t)c->model->n_u;
  const size_t k = (size_t)c->model->n_rows, m = (size_t)c->model->n_contacts;
  const int calls = c->contacts->work > c->gaps->work ? c->contacts->work : c->gaps->work;
  kg_contact_sections *s = &c->s;
  kg_real **const arrays[37] = {&s->qdot, &s->a, &s->response, &s->D, &s->free, &s->value, &s->rate, &s->target,
                                &s->load, &s->mu_s, &s->mu_k, &s->restitution, &s->creep, &c->direction, &c->now.sign,
                                &c->lambda, &c->slack, &c->trial.direction, &c->trial.sign, &c->search.best_state,
                                &c->search.best_w, &c->search.w, &c->b, &c->rate_before, &c->no_load, &c->now.scale,
                                &c->now.dense, &c->now.direction, &c->residual, &c->now.center, &c->search.unit, &c->search.response,
                                &c->gap_zero, &c->rate_zero, &c->slip_zero,
                                &c->start_speed, &c->scratch};
  const size_t sizes[37] = {q, u, k * u, k * k, k, k, k, k, m, m, m, m, m, 2 * m, m, k, KG_CONTACT_GUARDS * m, 2 * m, m,
                            3 * m, k, k, k, k, m, k, kg_modes_dense(c->model->n_rows),
                            2 * m, 2 * m, k, k, k, m, m, m, m, (size_t)calls};
  size_t total = 0;
  for (int i = 0; i < 37; ++i) {
    *arrays[i] = work ? work + total : NULL;
    total += sizes[i];
  }
  return total;
}

/* Length of the workspace in kg_real; 0 if the model has no contacts. */
static inline size_t kg_contacts_work(const kg_model *model) {
  kg_contacts c;
  c.model = model;
  c.contacts = kg_find_function(model, "contacts");
  c.gaps = kg_find_function(model, "gaps");
  return c.contacts && c.gaps ? kg_contacts_place(&c, NULL) + 1 : 0;
}

/* Sets the pointers of the systems of equations to the sections. */
static inline void kg_contacts_bind(kg_contacts *c) {
  kg_modes *s = &c->now;
  s->n_rows = c->model->n_rows;
  s->n_contacts = c->model->n_contacts;
  s->info = c->model->contacts;
  s->law = c->law;
  s->D = c->s.D;
  s->b = c->b;
  s->load = c->s.load;
  s->mu_s = c->s.mu_s;
  s->mu_k = c->s.mu_k;
  s->lambda = c->lambda;
  c->trial.n_rows = s->n_rows;
  c->trial.n_contacts = s->n_contacts;
  c->trial.info = s->info;
  c->trial.law = s->law;
  c->trial.D = s->D;
  c->trial.b = s->b;
  c->trial.load = c->no_load;
  c->trial.mu_s = s->mu_k; /* surfaces that strike each other slide */
  c->trial.mu_k = s->mu_k;
  c->trial.scale = s->scale;
  c->trial.dense = s->dense;
  c->search.none = c->no_load;
}

/* Starts with open contacts and the latches of the model; kg_contacts_settle() then finds the modes. mode:
 * kg_contacts_integers() integers, work: kg_contacts_work() values. KG_INVALID_ARGUMENT if the model does not have the
 * functions. */
static inline int kg_contacts_start(kg_contacts *c, const kg_model *model, const kg_real *p, int *mode, kg_real *work) {
  memset(c, 0, sizeof *c);
  c->model = model;
  c->contacts = kg_find_function(model, "contacts");
  c->gaps = kg_find_function(model, "gaps");
  if (!c->contacts || !c->gaps) {
    return KG_INVALID_ARGUMENT;
  }
  c->p = p;
  c->culprit = -1;
  kg_clear((int)kg_contacts_place(c, work), work);
  kg_contacts_split_integers(c, mode);
  kg_contacts_bind(c);
  for (int m = 0; m < model->n_contacts; ++m) {
    const int closed = model->contacts[m].law == KG_LAW_LATCH && (model->contacts[m].flags & 1) != 0;
    c->mode[m] = closed ? KG_CLOSED : KG_OPEN;
    c->law[m] = model->contacts[m].law;
    c->announced[m] = c->starting[m] = c->paradox[m] = 0;
    c->gap_zero[m] = KG_GAP_UNITS * KG_STATE_TOLERANCE;
    c->rate_zero[m] = c->slip_zero[m] = KG_RATE_UNITS * KG_STATE_TOLERANCE;
    c->start_speed[m] = KG_START_DEFAULT * KG_STATE_TOLERANCE;
    c->direction[2 * m] = c->now.direction[2 * m] = c->now.sign[m] = KG_C(1.0);
  }
  return KG_OK;
}

/* Mode and law of contact m in one number, for the records of the host. */
static inline int kg_contacts_code(const kg_contacts *c, int m) {
  return c->mode[m] + (c->law[m] != c->model->contacts[m].law ? KG_REGULARIZED : 0);
}

/* Sets modes (or kg_contacts_code()) and directions of slip, for example those of another instant of the run. */
static inline void kg_contacts_set_modes(kg_contacts *c, const int *mode, const kg_real *direction) {
  const size_t m = (size_t)c->model->n_contacts;
  for (int i = 0; i < c->model->n_contacts; ++i) {
    c->mode[i] = mode[i] & ~KG_REGULARIZED;
    c->law[i] = mode[i] & KG_REGULARIZED ? KG_LAW_COMPLIANT : c->model->contacts[i].law;
  }
  memmove(c->direction, direction, 2 * m * sizeof(kg_real));
  memcpy(c->now.direction, c->direction, 2 * m * sizeof(kg_real));
  memset(c->starting, 0, m * sizeof(int));
}

static inline int kg_contacts_evaluate(kg_contacts *c, const kg_point *at) {
  return c->contacts->evaluate(at, c->p, c->scratch, c->s.qdot);
}

static inline int kg_contacts_evaluate_gaps(kg_contacts *c, const kg_point *at) {
  return c->gaps->evaluate(at, c->p, c->scratch, c->s.value);
}

/* Adds to what counts as zero how much the rows have changed since the evaluation kept in `b` and `rate_before`.
 * start: units of the speed at which slip has started. */
static inline void kg_contacts_add_change(kg_contacts *c, int of_speed, kg_real start) {
  for (int m = 0; m < c->model->n_contacts; ++m) {
    const kg_contact_info *info = c->model->contacts + m;
    kg_real slip = KG_C(0.0);
    if (info->normal >= 0 && (of_speed != 0) == (info->level == 1)) {
      c->gap_zero[m] += KG_GAP_UNITS * KG_ABS(c->s.value[info->normal] - c->b[info->normal]);
    }
    for (int k = 0; k < info->directions && of_speed; ++k) {
      slip = KG_MAX(slip, KG_ABS(c->s.rate[info->tangent + k] - c->rate_before[info->tangent + k]));
    }
    c->slip_zero[m] += KG_RATE_UNITS * slip;
    c->start_speed[m] += start * slip;
    if (info->normal >= 0 && of_speed) {
      c->rate_zero[m] += KG_RATE_UNITS * KG_ABS(c->s.rate[info->normal] - c->rate_before[info->normal]);
    }
  }
}

/* Sets what counts as zero from the tolerances of y = (q, u), the state of `at`, or NULL. y is the same on return. */
static inline int kg_contacts_measure(kg_contacts *c, const kg_point *at, kg_real *y, const kg_real *rtol,
                                      const kg_real *atol) {
  const int n_q = c->model->n_q, n = n_q + c->model->n_u;
  const size_t rows = (size_t)c->model->n_rows * sizeof(kg_real);
  int status = kg_contacts_evaluate_gaps(c, at);
  memcpy(c->b, c->s.value, rows);
  memcpy(c->rate_before, c->s.rate, rows);
  kg_clear(c->model->n_contacts, c->gap_zero);
  kg_clear(c->model->n_contacts, c->rate_zero);
  kg_clear(c->model->n_contacts, c->slip_zero);
  kg_clear(c->model->n_contacts, c->start_speed);
  for (int i = 0; i < n && status >= 0; ++i) {
    const kg_real held = y[i], rounding = KG_STATE_ROUNDINGS * KG_EPSILON * KG_ABS(held);
    const kg_real share = rtol ? KG_START_SHARE / KG_MAX(rtol[i], KG_EPSILON) : KG_START_DEFAULT;
    y[i] += KG_MAX(atol ? atol[i] : KG_STATE_TOLERANCE, rounding);
    status = kg_contacts_evaluate_gaps(c, at);
    y[i] = held;
    kg_contacts_add_change(c, i >= n_q, KG_MAX(KG_START_UNITS, share));
  }
  return status;
}

/* Right sides of the rows: target minus free acceleration; a compliant normal has no target. */
static inline void kg_contacts_acceleration_rows(kg_contacts *c) {
  for (int i = 0; i < c->model->n_rows; ++i) {
    c->b[i] = c->s.free[i] - c->s.target[i];
  }
  for (int m = 0; m < c->model->n_contacts; ++m) {
    if (c->law[m] == KG_LAW_COMPLIANT) {
      c->b[c->model->contacts[m].normal] = c->s.free[c->model->contacts[m].normal];
    }
  }
}

/* Friction in a plane is opposite to the slip velocity; along a line the mode determines its direction. */
static inline void kg_contacts_turn(kg_contacts *c) {
  for (int m = 0; m < c->model->n_contacts; ++m) {
    if (c->mode[m] == KG_SLIP && c->model->contacts[m].directions == 2 && !c->starting[m]) {
      const kg_real *rate = c->s.rate + c->model->contacts[m].tangent;
      const kg_real x = rate[0] - c->residual[2 * m], y = rate[1] - c->residual[2 * m + 1];
      const kg_real size = KG_SQRT(x * x + y * y);
      if (size > KG_NO_DIRECTION * c->slip_zero[m]) {
        c->now.direction[2 * m] = x / size;
        c->now.direction[2 * m + 1] = y / size;
      }
    }
  }
}

/* Marks the contacts whose direction of slip follows from accelerations; returns whether there are any. */
static inline int kg_contacts_starting(kg_contacts *c) {
  int any = 0;
  for (int m = 0; m < c->model->n_contacts; ++m) {
    c->may[m] = c->mode[m] == KG_SLIP && c->starting[m] ? KG_MAY(KG_SLIP) | KG_MAY_START : 0;
    any = any || c->may[m];
  }
  c->search.modes = &c->now;
  return any;
}

/* Multipliers in the present modes from the last evaluation of `contacts`. */
static inline int kg_contacts_solve(kg_contacts *c) {
  kg_contacts_acceleration_rows(c);
  kg_contacts_turn(c);
  return kg_contacts_starting(c) ? kg_search_solve(&c->search) : kg_modes_solve(&c->now);
}

/* Adds the responses to the multipliers (impulses) of the rows to x (n_u). */
static inline void kg_contacts_respond(const kg_contacts *c, const kg_real *lambda, kg_real *x) {
  for (int k = 0; k < c->model->n_rows; ++k) {
    if (lambda[k] < KG_C(0.0) || lambda[k] > KG_C(0.0)) {
      kg_add(c->model->n_u, lambda[k], c->s.response + k * (ptrdiff_t)c->model->n_u, x);
    }
  }
}

/* The right-hand side in the present modes, with multipliers c->lambda: of least norm for redundant contacts, which
 * kg_modes_hold(&c->now) changes to satisfy the friction law. KG_SINGULAR if no forces can maintain the modes. */
static inline int kg_contacts_rhs(kg_contacts *c, const kg_point *at, kg_real *qdot, kg_real *udot) {
  const int status = kg_contacts_evaluate(c, at);
  int solved;
  if (status < 0) {
    return status;
  }
  solved = kg_contacts_solve(c);
  memcpy(qdot, c->s.qdot, (size_t)c->model->n_q * sizeof(kg_real));
  memcpy(udot, c->s.a, (size_t)c->model->n_u * sizeof(kg_real));
  kg_contacts_respond(c, c->lambda, udot);
  return solved < 0 ? solved : status;
}

/* Functions that stay positive as long as the modes of the contacts are consistent.
 *
 * A contact has up to four guards; when one of them falls through zero, the mode must change:
 *   open: the gap;
 *   penetrated: minus the gap; target minus acceleration of the row (a Stabilized contact whose force is tensile), or
 *     minus the load;
 *   closed: the normal force; minus the gap, if the law does not close the gap; then friction:
 *   stuck: mu_s N - |lambda_t|;
 *   slipping: the slip velocity along the direction of slip; in a plane, along the direction at the start of the step,
 *     minus the tolerance; if slip starts in a plane, start_speed minus its velocity, else with Coulomb(paradox=)
 *     kg_modes_yield().
 *
 * A guard can start at zero or, because of the error of the state, below zero. It is raised by a slack that
 * kg_complementarity.h sets with the modes and kg_contacts_advance() removes after the guard has risen.
 */

/* Value of an unused guard. */
#define KG_NO_GUARD KG_C(1.0)
/* Slip in a plane ends at this fraction of what counts as rest. */
#define KG_AT_REST KG_C(0.5)

static inline kg_real kg_stick_guard(const kg_modes *s, int m, const kg_real *lambda) {
  return s->mu_s[m] * kg_normal_force_of(s, m, lambda) - kg_tangential_size(s, m, lambda);
}

/* Excess of the force that would hold a slipping contact over the largest friction force. */
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

/* Guard of a slipping contact: slip stops when its velocity along the direction of slip vanishes or, with a creep
 * tolerance (thesis, 5.8), when it is slow enough and friction can hold it. A step can pass the whole tolerance: beyond
 * it the guard stays negative. */
static inline kg_real kg_slip_guard(kg_contacts *c, int m, int with_multipliers) {
  const kg_contact_info *info = c->model->contacts + m;
  const kg_real along = kg_dot(info->directions, c->s.rate + info->tangent, c->direction + 2 * (ptrdiff_t)m);
  const kg_real creep = c->s.creep[m];
  if (creep > KG_C(0.0)) {
    return with_multipliers ? KG_MAX(along - creep, KG_MIN(along, kg_excess_of_holding(c, m))) : along;
  }
  /* In a plane the direction turns faster and faster as the velocity vanishes, so slip ends at the tolerance. */
  return info->directions == 2 ? along - KG_AT_REST * c->slip_zero[m] : along;
}

/* Difference between the speed up to which slip in a plane starts, and its velocity. */
static inline kg_real kg_start_guard(const kg_contacts *c, int m) {
  const kg_real *rate = c->s.rate + c->model->contacts[m].tangent, *left = c->residual + 2 * (ptrdiff_t)m;
  const kg_real x = rate[0] - left[0], y = rate[1] - left[1];
  return c->start_speed[m] - KG_SQRT(x * x + y * y);
}

/* Returns whether the slip of contact m can become unstable, and the model says what happens then. */
static inline int kg_contact_can_jam(const kg_contacts *c, int m) {
  return c->mode[m] == KG_SLIP && kg_paradox_of(c->model->contacts + m) != KG_PARADOX_ERROR &&
         kg_normal_unknown(&c->now, m);
}

static inline void kg_guards_without_force(const kg_contacts *c, int m, int with_multipliers, kg_real *guards) {
  const kg_contact_info *info = c->model->contacts + m;
  if (c->law[m] == KG_LAW_LATCH || info->normal < 0) {
    return; /* switched by events */
  }
  if (c->mode[m] == KG_OPEN) {
    guards[0] = c->s.value[info->normal];
    return;
  }
  guards[0] = -c->s.value[info->normal];
  if (c->law[m] == KG_LAW_COMPLIANT) {
    guards[1] = -c->s.load[m];
  } else if (with_multipliers) {
    guards[1] = kg_modes_row(&c->now, info->normal);
  }
}

static inline void kg_guards_with_force(kg_contacts *c, int m, const kg_real *lambda, kg_real *guards) {
  const kg_contact_info *info = c->model->contacts + m;
  const int law = c->law[m];
  if (c->mode[m] == KG_SLIP) {
    guards[2] = kg_slip_guard(c, m, lambda != NULL);
    guards[3] = c->starting[m]                        ? kg_start_guard(c, m)
                : lambda && kg_contact_can_jam(c, m) ? kg_modes_yield(&c->now, m, c->search.unit, c->no_load,
                                                                      c->search.response)
                                                      : KG_NO_GUARD;
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

/* The multipliers of the guards: for redundant contacts, those with the largest margins. */
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

/* All guards at the state of the last kg_contacts_rhs(), without evaluation; nothing may have been evaluated since. */
static inline void kg_contacts_guards_last(kg_contacts *c, kg_real *guards) {
  kg_contacts_guards_with_slack(c, 1, guards);
}

/* All guards at a state, KG_CONTACT_GUARDS per contact. Without multipliers, guards that need them count as positive
 * and only `gaps` is evaluated; the directions of slip do not change. */
static inline int kg_contacts_guards(kg_contacts *c, const kg_point *at, int with_multipliers, kg_real *guards) {
  int status = with_multipliers ? kg_contacts_evaluate(c, at) : kg_contacts_evaluate_gaps(c, at);
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

/* To be called after an accepted step with the guards at its end: removes the slack of guards that have risen, and
 * updates the directions of slip in a plane. */
static inline int kg_contacts_advance(kg_contacts *c, const kg_point *at, const kg_real *guards) {
  int planar = 0;
  for (int k = 0; k < KG_CONTACT_GUARDS * c->model->n_contacts; ++k) {
    c->slack[k] = guards[k] > KG_C(2.0) * c->slack[k] ? KG_C(0.0) : c->slack[k];
  }
  for (int m = 0; m < c->model->n_contacts; ++m) {
    planar = planar || (c->mode[m] == KG_SLIP && c->model->contacts[m].directions == 2);
  }
  if (planar) {
    const int status = kg_contacts_evaluate_gaps(c, at);
    if (status < 0) {
      return status;
    }
    kg_contacts_turn(c);
    memcpy(c->direction, c->now.direction, 2 * (size_t)c->model->n_contacts * sizeof(kg_real));
  }
  return KG_OK;
}

/* The mode that a closed contact enters when its guard number `guard` has fallen. */
static inline int kg_mode_after_force(const kg_contacts *c, int m, int mode, int guard) {
  if (guard == 3) {
    return mode;
  }
  if (guard == 2) {
    return mode == KG_STICK ? KG_SLIP : c->model->contacts[m].directions == 1 ? KG_STICK : KG_SLIP;
  }
  return guard == 1 || c->law[m] == KG_LAW_RESTITUTION ? KG_OPEN : KG_PENETRATED;
}

/* Returns whether the gap is zero when guard number `guard` of a contact in this mode falls. */
static inline int kg_is_gap_guard(const kg_contacts *c, int m, int mode, int guard) {
  return c->law[m] == KG_LAW_RESTITUTION || guard == (kg_closed(mode) ? 1 : 0);
}

/* Sets the mode that follows when guard number k falls: at that instant the old and the new mode are both consistent,
 * and kg_contacts_settle() would keep the old one. If a gap closes, kg_contacts_settle() chooses the mode. If several
 * guards of a contact fall together, an opening gap determines the mode, otherwise the first guard. */
static inline void kg_contacts_propose(kg_contacts *c, int k) {
  const int m = k / KG_CONTACT_GUARDS, guard = k % KG_CONTACT_GUARDS, old = c->mode[m];
  const kg_contact_info *info = c->model->contacts + m;
  if (c->announced[m]) {
    const int before = (c->announced[m] & ~KG_GAP_FELL) - 1;
    c->mode[m] = guard == 1 && kg_closed(before) ? KG_OPEN : old;
    c->announced[m] |= kg_is_gap_guard(c, m, before, guard) ? KG_GAP_FELL : 0;
    return;
  }
  c->announced[m] = (1 + old) | (kg_is_gap_guard(c, m, old, guard) ? KG_GAP_FELL : 0);
  if (kg_closed(old)) {
    c->mode[m] = kg_mode_after_force(c, m, old, guard);
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
