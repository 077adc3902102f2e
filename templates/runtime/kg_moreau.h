/* kg_moreau.h - advances a model with rigid contacts by one step of fixed size, with the same work in every step.
 *
 * The time-stepping scheme of Moreau and Jean: contact forces and impacts appear only as impulses of a whole step, so
 * that no event is located. With tm = t + h/2, qm = q + (h/2) q'(t, q, u), and the functions of kg_contact.h at (tm, qm),
 *
 *   u+ = u + h a + response^T Lambda,   q+ = q + h q'(tm, qm, (u + u+)/2),   s+ = s + h s'(tm, qm, (u + u+)/2).
 *
 * The impulses Lambda satisfy the laws of the contacts with the row velocities v+ at the end of the step. At a gap that
 * is closed at qm: Lambda_n >= 0, v_n+ >= w, one of them with equality, where w = e max(-v_n, 0) is the rebound;
 * |Lambda_t| <= mu Lambda_n, where either v_t+ = 0 or Lambda_t has this size and is opposite to v_t+. The functions
 * are evaluated twice, the second time at the speeds (u + u+)/2 of the first solution. The order is two while no
 * contact opens, closes, sticks or slips, and one otherwise.
 *
 * Impulses follow from a fixed number of sweeps of projected Gauss-Seidel iterations, which start from those of the step
 * before. Whatever their number, the impulses do not add energy: the work Lambda^T (v + v+)/2 of each solution is
 * limited to zero. Newton's law of restitution alone may add energy with friction (Kane and Levinson 1985).
 *
 * J. J. Moreau, Unilateral contact and dry friction in finite freedom dynamics, in: Nonsmooth Mechanics and
 * Applications, CISM 302, 1988; M. Jean, The non-smooth contact dynamics method, Comput. Methods Appl. Mech. Engrg. 177
 * (1999) 235-257; V. Acary, B. Brogliato, Numerical Methods for Nonsmooth Dynamical Systems, 2008, chapter 10.
 */
#ifndef KG_MOREAU_H
#define KG_MOREAU_H

#include "kg_vectors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Part of a penetration that is removed in one step, by a displacement in addition to the motion with the speeds: it
 * adds no kinetic energy. */
#define KG_MOREAU_CORRECTION KG_C(0.2)
/* Rounding error of a gap, in units of machine epsilon times the largest coordinate. */
#define KG_MOREAU_ROUNDINGS KG_C(4.0)
/* Rows whose response is below this multiple of machine epsilon times the largest one have no impulse. */
#define KG_MOREAU_RANK KG_C(64.0)

/* Length of `work` for n_q coordinates, n_u speeds, n_s states, n_k contact rows and n_m contacts. */
#define KG_MOREAU_WORK(n_q, n_u, n_s, n_k, n_m) \
  (3 * (n_q) + 4 * (n_u) + 2 * (n_s) + (n_k) * ((n_u) + (n_k) + 14) + 17 * (n_m))

/* Sizes, contacts and functions of a model: q' alone, and those of kg_contact.h. */
typedef struct {
  int n_q;
  int n_u;
  int n_s;
  int n_rows;
  int n_contacts;
  const kg_contact_info *info;
  kg_evaluate qdot;
  kg_evaluate contacts;
  kg_evaluate gaps;
  kg_evaluate state_rates; /* NULL without states */
} kg_moreau_model;

/* One step. The arrays lie in `work`. */
typedef struct {
  const kg_moreau_model *model;
  kg_real t; /* of the functions */
  kg_real h;
  kg_real least; /* response of rows without impulse */
  kg_real touch; /* rounding error of gaps */
  const kg_real *p;
  const kg_real *r;
  kg_real *scratch;
  kg_real *sections; /* of `contacts`, the next ones: */
  kg_real *a, *response, *D, *free, *value, *rate, *target, *load, *mu_s, *mu_k, *restitution;
  kg_real *after;   /* sections of `gaps` at the speeds u + h a */
  kg_real *forces;  /* n_k: mean forces of the rows, at first those of the last step */
  kg_real *q;       /* n_q: qm, then q+ */
  kg_real *q_rate;  /* n_q */
  kg_real *u;       /* n_u: u+ */
  kg_real *u_free;  /* n_u: u + h a */
  kg_real *u_mid;   /* n_u: (u + u+)/2 */
  kg_real *s;       /* n_s: in the middle, then s+ */
  kg_real *s_rate;  /* n_s */
  kg_real *before;  /* n_k: v, at qm with the speeds u */
  kg_real *b;       /* n_k: v+ - w at Lambda = 0 */
  kg_real *rebound; /* n_k: w */
  kg_real *inverse; /* n_k: 1/D_kk; 0 for a row without unknown impulse */
  kg_real *lambda;  /* n_k: the unknown impulses */
  kg_real *shift;   /* n_k: multipliers of the displacement that removes penetration */
  kg_real *given;   /* n_m: normal impulse of a compliant law or a given load */
  kg_real *stick;   /* n_m: coefficients of friction in this step */
  kg_real *slide;   /* n_m */
  kg_real *block;   /* 4 per contact: inverse of D of two directions of slip; 1 / largest eigenvalue */
} kg_moreau;

static inline kg_real *kg_moreau_take(kg_real **work, int n) {
  kg_real *array = *work;
  *work += n;
  return array;
}

/* Places the arrays in KG_MOREAU_WORK() values. */
static inline void kg_moreau_place(kg_moreau *s, kg_real *work) {
  const int q = s->model->n_q, u = s->model->n_u, k = s->model->n_rows, m = s->model->n_contacts;
  kg_real **const of_rows[10] = {&s->free, &s->value,   &s->rate,    &s->target, &s->before,
                                 &s->b,    &s->rebound, &s->inverse, &s->lambda, &s->shift};
  kg_real **const of_contacts[4] = {&s->load, &s->mu_s, &s->mu_k, &s->restitution};
  kg_real **const of_solution[3] = {&s->given, &s->stick, &s->slide};
  s->sections = kg_moreau_take(&work, q);
  s->a = kg_moreau_take(&work, u);
  s->response = kg_moreau_take(&work, k * u);
  s->D = kg_moreau_take(&work, k * k);
  for (int i = 0; i < 4; ++i) {
    *of_rows[i] = kg_moreau_take(&work, k);
  }
  for (int i = 0; i < 4; ++i) {
    *of_contacts[i] = kg_moreau_take(&work, m);
  }
  (void)kg_moreau_take(&work, m); /* creep */
  s->after = kg_moreau_take(&work, 3 * k + 5 * m);
  for (int i = 4; i < 10; ++i) {
    *of_rows[i] = kg_moreau_take(&work, k);
  }
  for (int i = 0; i < 3; ++i) {
    *of_solution[i] = kg_moreau_take(&work, m);
  }
  s->block = kg_moreau_take(&work, 4 * m);
  s->forces = kg_moreau_take(&work, k);
  s->q = kg_moreau_take(&work, q);
  s->q_rate = kg_moreau_take(&work, q);
  s->u = kg_moreau_take(&work, u);
  s->u_free = kg_moreau_take(&work, u);
  s->u_mid = kg_moreau_take(&work, u);
  s->s = kg_moreau_take(&work, s->model->n_s);
  s->s_rate = kg_moreau_take(&work, s->model->n_s);
}

/* The velocity of row i at the end of the step without impulses: the mean of v + h dv/dt and of the velocity at qm with
 * the speeds u + h a, to which the motion of the row in the second half of the step is added. */
static inline kg_real kg_moreau_end_rate(const kg_moreau *s, int i) {
  return KG_C(0.5) * (s->before[i] + s->after[s->model->n_rows + i] + s->h * s->free[i]);
}

static inline int kg_moreau_exceeds(kg_real x, kg_real y) { return (x > y) ? 1 : 0; }

/* The row i of D. */
static inline kg_real *kg_moreau_row(const kg_moreau *s, int i) { return s->D + i * (ptrdiff_t)s->model->n_rows; }

/* The change of the velocity of row i due to a unit impulse of its own. */
static inline kg_real kg_moreau_response(const kg_moreau *s, int i) { return kg_moreau_row(s, i)[i]; }

/* 1/D, or 0 for a row without unknown impulse. */
static inline kg_real kg_moreau_inverse(const kg_moreau *s, int active, kg_real D) {
  const int responds = kg_moreau_exceeds(D, s->least);
  const kg_real inverse = KG_C(1.0) / ((responds != 0) ? D : KG_C(1.0));
  return ((active != 0) && (responds != 0)) ? inverse : KG_C(0.0);
}

/* Whether the impulse of a normal row can have both signs. */
static inline int kg_moreau_two_sided(const kg_contact_info *info) {
  return ((info->law == KG_LAW_BILATERAL) || (info->law == KG_LAW_LATCH)) ? 1 : 0;
}

/* Whether a normal row is closed in all states: friction at a constraint, a latch that is closed at the start. */
static inline int kg_moreau_stays_closed(const kg_contact_info *info) {
  const int latch = (info->law == KG_LAW_LATCH) ? info->flags % 2 : 0;
  return (info->law == KG_LAW_BILATERAL) ? 1 : latch;
}

/* Sets up the normal row of a rigid contact. A contact that approaches no faster than its acceleration explains rests:
 * bounces that take less than two steps are not resolved. Coefficients of friction are those of surfaces that rest or
 * of surfaces that strike each other. */
static inline void kg_moreau_rigid(kg_moreau *s, int m) {
  const kg_contact_info *info = s->model->info + m;
  const int i = info->normal;
  const kg_real gain = KG_MAX(-s->h * s->free[i], KG_C(0.0)), approach = -s->before[i];
  const kg_real rebound = s->restitution[m] * approach;
  int touches = 1 - kg_moreau_exceeds(s->value[i], KG_C(0.5) * s->h * gain + s->touch);
  int strikes = kg_moreau_exceeds(approach, gain);
  if (info->level == 1) { /* closes without impact, whatever its value */
    touches = 1;
    strikes = 0;
  }
  s->rebound[i] = (strikes != 0) ? rebound : KG_C(0.0);
  s->b[i] = kg_moreau_end_rate(s, i) - s->rebound[i];
  s->inverse[i] = kg_moreau_inverse(s, touches, kg_moreau_response(s, i));
  s->stick[m] = (strikes != 0) ? s->mu_k[m] : s->mu_s[m];
}

/* Sets up the normal row of contact m, or its given load. */
static inline void kg_moreau_normal(kg_moreau *s, int m) {
  const kg_contact_info *info = s->model->info + m;
  const int i = info->normal;
  s->given[m] = KG_C(0.0);
  s->stick[m] = s->mu_s[m];
  s->slide[m] = s->mu_k[m];
  if ((info->law == KG_LAW_LOAD) || (info->law == KG_LAW_COMPLIANT)) {
    const kg_real impulse = s->h * KG_MAX(s->load[m], KG_C(0.0));
    const kg_real gap = (i < 0) ? KG_C(-1.0) : s->value[i];
    s->given[m] = (gap < KG_C(0.0)) ? impulse : KG_C(0.0);
  }
  if (i < 0) {
    return;
  }
  s->rebound[i] = KG_C(0.0);
  if (info->law == KG_LAW_RESTITUTION) {
    kg_moreau_rigid(s, m);
  } else if (info->law == KG_LAW_STABILIZED) { /* acceleration `target`, if its force is compressive */
    s->b[i] = s->h * (s->free[i] - s->target[i]);
    s->inverse[i] = kg_moreau_inverse(s, kg_moreau_exceeds(KG_C(0.0), s->value[i]), kg_moreau_response(s, i));
  } else {
    s->b[i] = kg_moreau_end_rate(s, i);
    s->inverse[i] = kg_moreau_inverse(s, kg_moreau_stays_closed(info), kg_moreau_response(s, i));
  }
}

/* Sets up the directions of slip of contact m. */
static inline void kg_moreau_slip(kg_moreau *s, int m) {
  const kg_contact_info *info = s->model->info + m;
  const int i = info->tangent;
  for (int k = 0; k < info->directions; ++k) {
    s->b[i + k] = kg_moreau_end_rate(s, i + k);
    s->rebound[i + k] = KG_C(0.0);
    s->inverse[i + k] = kg_moreau_inverse(s, 1, kg_moreau_response(s, i + k));
  }
  if (info->directions == 2) {
    kg_real *block = s->block + 4 * (ptrdiff_t)m;
    const kg_real xx = kg_moreau_response(s, i), xy = kg_moreau_row(s, i)[i + 1], yy = kg_moreau_response(s, i + 1);
    const kg_real determinant = xx * yy - xy * xy, apart = xx - yy;
    const kg_real largest = KG_C(0.5) * (xx + yy + KG_SQRT(apart * apart + KG_C(4.0) * xy * xy));
    const int regular = kg_moreau_exceeds(determinant, KG_MOREAU_RANK * KG_EPSILON * largest * largest);
    const kg_real factor = KG_C(1.0) / ((regular != 0) ? determinant : KG_C(1.0));
    const kg_real inverse_xx = factor * yy, inverse_xy = -factor * xy, inverse_yy = factor * xx;
    block[3] = kg_moreau_inverse(s, 1, largest);
    block[0] = (regular != 0) ? inverse_xx : block[3];
    block[1] = (regular != 0) ? inverse_xy : KG_C(0.0);
    block[2] = (regular != 0) ? inverse_yy : block[3];
  }
}

/* Sets up the rows of all contacts from the last evaluations. */
static inline void kg_moreau_rows(kg_moreau *s) {
  const kg_moreau_model *model = s->model;
  const int n = model->n_rows;
  kg_real largest = KG_C(0.0);
  for (int i = 0; i < n; ++i) {
    largest = KG_MAX(largest, kg_moreau_response(s, i));
  }
  s->least = KG_MOREAU_RANK * KG_EPSILON * largest;
  for (int m = 0; m < model->n_contacts; ++m) {
    kg_moreau_normal(s, m);
    if (model->info[m].directions > 0) {
      kg_moreau_slip(s, m);
    }
  }
  for (int m = 0; m < model->n_contacts; ++m) {
    const int row = model->info[m].normal;
    for (int i = 0; (i < n) && (row >= 0); ++i) {
      s->b[i] += kg_moreau_row(s, i)[row] * s->given[m];
    }
  }
}

/* Starts with the multiple of the impulses in `lambda` that is nearest to the solution. */
static inline void kg_moreau_start(kg_moreau *s) {
  const int n = s->model->n_rows;
  kg_real square = KG_C(0.0), slope = KG_C(0.0), factor;
  int falls, regular;
  for (int m = 0; m < s->model->n_contacts; ++m) {
    const kg_contact_info *info = s->model->info + m;
    const int loaded = kg_moreau_exceeds(s->given[m], KG_C(0.0));
    int slides = loaded;
    if (info->normal >= 0) {
      const int acts = kg_moreau_exceeds(s->inverse[info->normal], KG_C(0.0));
      s->lambda[info->normal] = (acts != 0) ? s->lambda[info->normal] : KG_C(0.0);
      slides = acts + loaded;
    }
    for (int k = 0; k < info->directions; ++k) {
      s->lambda[info->tangent + k] = (slides != 0) ? s->lambda[info->tangent + k] : KG_C(0.0);
    }
  }
  for (int i = 0; i < n; ++i) {
    square += s->lambda[i] * kg_dot(n, kg_moreau_row(s, i), s->lambda);
    slope += s->lambda[i] * s->b[i];
  }
  regular = kg_moreau_exceeds(square, KG_TINY);
  falls = kg_moreau_exceeds(KG_C(0.0), slope);
  factor = -slope / ((regular != 0) ? square : KG_C(1.0));
  factor = ((regular != 0) && (falls != 0)) ? factor : KG_C(0.0);
  kg_scale(n, factor, s->lambda);
}

/* v+ - w of row i. */
static inline kg_real kg_moreau_residual(const kg_moreau *s, int i) {
  return s->b[i] + kg_dot(s->model->n_rows, kg_moreau_row(s, i), s->lambda);
}

/* Friction in one direction: sticks if the impulse that stops the slip is within the limit `stick`. */
static inline void kg_moreau_along(kg_moreau *s, int i, kg_real stick, kg_real slide) {
  const kg_real stopping = s->lambda[i] - s->inverse[i] * kg_moreau_residual(s, i);
  const kg_real clipped = KG_MIN(KG_MAX(stopping, -slide), slide);
  s->lambda[i] = (KG_ABS(stopping) <= stick) ? stopping : clipped;
}

/* Friction in a plane: sticks likewise, or takes a step along the gradient and is projected on the disk `slide`. */
static inline void kg_moreau_in_plane(kg_moreau *s, int i, const kg_real *block, kg_real stick, kg_real slide) {
  const kg_real rx = kg_moreau_residual(s, i), ry = kg_moreau_residual(s, i + 1);
  const kg_real x = s->lambda[i] - (block[0] * rx + block[1] * ry);
  const kg_real y = s->lambda[i + 1] - (block[1] * rx + block[2] * ry);
  const kg_real sx = s->lambda[i] - block[3] * rx, sy = s->lambda[i + 1] - block[3] * ry;
  const kg_real size = KG_SQRT(sx * sx + sy * sy);
  const int outside = kg_moreau_exceeds(size, slide), slips = kg_moreau_exceeds(KG_SQRT(x * x + y * y), stick);
  const kg_real ratio = slide / ((outside != 0) ? size : KG_C(1.0)), factor = (outside != 0) ? ratio : KG_C(1.0);
  const kg_real slip_x = factor * sx, slip_y = factor * sy;
  s->lambda[i] = (slips != 0) ? slip_x : x;
  s->lambda[i + 1] = (slips != 0) ? slip_y : y;
}

/* Solves the rows of one contact after the other for their impulses. */
static inline void kg_moreau_sweep(kg_moreau *s) {
  for (int m = 0; m < s->model->n_contacts; ++m) {
    const kg_contact_info *info = s->model->info + m;
    kg_real force = s->given[m];
    if (info->normal >= 0) {
      const kg_real x = s->lambda[info->normal] - s->inverse[info->normal] * kg_moreau_residual(s, info->normal);
      s->lambda[info->normal] = (kg_moreau_two_sided(info) != 0) ? x : KG_MAX(x, KG_C(0.0));
      force += KG_ABS(s->lambda[info->normal]);
    }
    if (info->directions == 1) {
      kg_moreau_along(s, info->tangent, s->stick[m] * force, s->slide[m] * force);
    }
    if (info->directions == 2) {
      kg_moreau_in_plane(s, info->tangent, s->block + 4 * (ptrdiff_t)m, s->stick[m] * force, s->slide[m] * force);
    }
  }
}

/* Reduces the impulses if they would add energy. The velocity without them is that at the end of the step; for a
 * rebound, which reverses the velocity of the middle, that without the second half of the acceleration. */
static inline void kg_moreau_limit_work(kg_moreau *s) {
  const int n = s->model->n_rows;
  kg_real square = KG_C(0.0), slope = KG_C(0.0), factor;
  int regular;
  for (int i = 0; i < n; ++i) {
    const kg_real half = KG_C(0.5) * (s->after[n + i] - s->before[i]), end = s->b[i] + s->rebound[i];
    const kg_real middle = end - half;
    square += s->lambda[i] * kg_dot(n, kg_moreau_row(s, i), s->lambda);
    slope += s->lambda[i] * ((s->rebound[i] > KG_C(0.0)) ? middle : end);
  }
  regular = kg_moreau_exceeds(square, KG_TINY);
  factor = KG_C(-2.0) * slope / ((regular != 0) ? square : KG_C(1.0));
  factor = KG_MAX(KG_MIN(factor, KG_C(1.0)), KG_C(0.0));
  factor = (regular != 0) ? factor : KG_C(1.0);
  kg_scale(n, factor, s->lambda);
}

/* Adds the responses to the multipliers x of the rows, times `factor`, to the speeds y. */
static inline void kg_moreau_respond(const kg_moreau *s, kg_real factor, const kg_real *x, kg_real *y) {
  for (int i = 0; i < s->model->n_rows; ++i) {
    kg_add(s->model->n_u, factor * x[i], s->response + i * (ptrdiff_t)s->model->n_u, y);
  }
}

/* Evaluates a function of the model at a state. */
static inline int kg_moreau_call(const kg_moreau *s, const kg_evaluate function, kg_real t, const kg_real *q,
                                 const kg_real *u, const kg_real *states, kg_real *out) {
  kg_point at;
  at.t = t;
  at.q = q;
  at.u = u;
  at.s = states;
  at.r = s->r;
  at.forces = s->forces;
  at.free = NULL;
  return function(&at, s->p, s->scratch, out);
}

/* Computes u+ with the functions at the speeds `near`, from the speeds u at the start. */
static inline int kg_moreau_speeds(kg_moreau *s, int sweeps, const kg_real *u, const kg_real *near, int first) {
  const kg_moreau_model *model = s->model;
  int result = KG_OK;
  KG_CALL(result, kg_moreau_call(s, model->contacts, s->t, s->q, near, s->s, s->sections));
  (void)memcpy(s->u_free, u, (size_t)model->n_u * sizeof *u);
  kg_add(model->n_u, s->h, s->a, s->u_free);
  KG_CALL(result, kg_moreau_call(s, model->gaps, s->t, s->q, s->u_free, s->s, s->after));
  if (first != 0) {
    (void)memcpy(s->before, s->rate, (size_t)model->n_rows * sizeof *u);
  }
  kg_moreau_rows(s);
  kg_moreau_start(s);
  for (int i = 0; i < sweeps; ++i) {
    kg_moreau_sweep(s);
  }
  kg_moreau_limit_work(s);
  (void)memcpy(s->u, s->u_free, (size_t)model->n_u * sizeof *u);
  for (int m = 0; m < model->n_contacts; ++m) {
    if (model->info[m].normal >= 0) {
      kg_add(model->n_u, s->given[m], s->response + model->info[m].normal * (ptrdiff_t)model->n_u, s->u);
    }
  }
  kg_moreau_respond(s, KG_C(1.0), s->lambda, s->u);
  for (int i = 0; i < model->n_u; ++i) {
    s->u_mid[i] = KG_C(0.5) * (u[i] + s->u[i]);
  }
  return result;
}

/* Whether the gap of contact m is kept closed by displacements. */
static inline int kg_moreau_keeps_gap(const kg_contact_info *info) {
  const int rigid = (info->law == KG_LAW_RESTITUTION) ? 1 : kg_moreau_two_sided(info);
  return ((info->normal >= 0) && (info->level == 2)) ? rigid : 0;
}

/* The displacement, in the metric of the kinetic energy, that removes a part of the penetration expected at the end of
 * the step. */
static inline void kg_moreau_correct(kg_moreau *s, int sweeps) {
  const int n = s->model->n_rows;
  kg_clear(n, s->shift);
  for (int i = 0; i < n; ++i) { /* in `before`, which is not needed any more */
    const kg_real gap = s->value[i] + KG_C(0.5) * s->h * (kg_moreau_residual(s, i) + s->rebound[i]);
    const kg_real part = KG_MOREAU_CORRECTION * gap;
    s->before[i] = (gap < KG_C(0.0)) ? part : gap;
  }
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (int m = 0; m < s->model->n_contacts; ++m) {
      const int i = s->model->info[m].normal;
      if (kg_moreau_keeps_gap(s->model->info + m) != 0) {
        const kg_real x = s->shift[i] - s->inverse[i] * (s->before[i] + kg_dot(n, kg_moreau_row(s, i), s->shift));
        s->shift[i] = (kg_moreau_two_sided(s->model->info + m) != 0) ? x : KG_MAX(x, KG_C(0.0));
      }
    }
  }
}

/* Writes the impulses of all rows to s->lambda, and their mean forces during the step to s->forces. */
static inline void kg_moreau_forces(kg_moreau *s) {
  const kg_real rate = KG_C(1.0) / s->h;
  for (int m = 0; m < s->model->n_contacts; ++m) {
    if (s->model->info[m].normal >= 0) {
      s->lambda[s->model->info[m].normal] += s->given[m];
    }
  }
  for (int i = 0; i < s->model->n_rows; ++i) {
    s->forces[i] = rate * s->lambda[i];
  }
}

/* z = y + factor * rate, n values; returns whether they are finite. */
static inline int kg_moreau_move(int n, kg_real factor, const kg_real *rate, const kg_real *y, kg_real *z) {
  int finite = 1;
  for (int i = 0; i < n; ++i) {
    z[i] = y[i] + factor * rate[i];
    finite = KG_ISFINITE(z[i]) ? finite : 0;
  }
  return finite;
}

/* Moves the states s from `start` by the time `span`, with their rates at a state, whose states are `now`. */
static inline int kg_moreau_states(kg_moreau *s, kg_real t, const kg_real *q, const kg_real *u, const kg_real *now,
                                   kg_real span, const kg_real *start) {
  const kg_moreau_model *model = s->model;
  int status = KG_OK;
  if (model->n_s > 0) {
    status = kg_moreau_call(s, model->state_rates, t, q, u, now, s->s_rate);
    if (kg_moreau_move(model->n_s, span, s->s_rate, start, s->s) == 0) {
      status = (status < 0) ? status : KG_NOT_FINITE;
    }
  }
  return status;
}

/* Moves the middle of the step to its place: tm, qm and the states there. */
static inline int kg_moreau_middle(kg_moreau *s, kg_real t, const kg_real *y) {
  const kg_moreau_model *model = s->model;
  const kg_real *q = y, *u = y + model->n_q, *states = u + model->n_u;
  const kg_real half = KG_C(0.5) * s->h;
  int result = KG_OK;
  KG_CALL(result, kg_moreau_call(s, model->qdot, t, q, u, states, s->q_rate));
  if (kg_moreau_move(model->n_q, half, s->q_rate, q, s->q) == 0) {
    return KG_NOT_FINITE;
  }
  KG_CALL(result, kg_moreau_states(s, t, q, u, states, half, states));
  s->t = t + half;
  s->touch = KG_MOREAU_ROUNDINGS * KG_EPSILON * kg_largest(model->n_q, q);
  return result;
}

/* Moves the end of the step to its place: u+, then s+ and q+. */
static inline int kg_moreau_end(kg_moreau *s, int sweeps, const kg_real *y) {
  const kg_moreau_model *model = s->model;
  const kg_real *q = y, *u = y + model->n_q;
  int result = KG_OK, finite;
  KG_CALL(result, kg_moreau_speeds(s, sweeps, u, u, 1));
  KG_CALL(result, kg_moreau_speeds(s, sweeps, u, s->u_mid, 0));
  kg_moreau_correct(s, sweeps);
  kg_moreau_forces(s);
  KG_CALL(result, kg_moreau_states(s, s->t, s->q, s->u_mid, s->s, s->h, u + model->n_u));
  kg_moreau_respond(s, KG_C(1.0) / s->h, s->shift, s->u_mid);
  KG_CALL(result, kg_moreau_call(s, model->qdot, s->t, s->q, s->u_mid, s->s, s->q_rate));
  finite = kg_moreau_move(model->n_q, s->h, s->q_rate, q, s->q);
  finite *= kg_moreau_move(model->n_u, KG_C(0.0), s->u, s->u, s->u);
  return (finite != 0) ? result : KG_NOT_FINITE;
}

/* What a step reads and writes besides the state. p: prepared parameters, scratch: the largest work array of the
 * functions, work: KG_MOREAU_WORK() values. r: inputs; impulses and forces: n_rows each, those of the last step, zeros
 * at the start. */
typedef struct {
  const kg_moreau_model *model;
  int sweeps; /* iterations of each solution of the contacts */
  const kg_real *p;
  const kg_real *r;
  kg_real *impulses;
  kg_real *forces;
  kg_real *work;
  kg_real *scratch;
} kg_moreau_arguments;

static inline void kg_moreau_begin(const kg_moreau_arguments *x, kg_moreau *s) {
  kg_real *work;
  (void)memset(s, 0, sizeof *s);
  s->model = x->model;
  s->p = x->p;
  s->r = x->r;
  s->scratch = x->scratch;
  work = x->work;
  kg_moreau_place(s, work);
}

/* One step from t to t + h, from the state y = (q, u, s) to y_new, which may be y. Returns the status of the functions,
 * KG_INVALID_ARGUMENT if h is not positive or t + h not finite, or KG_NOT_FINITE. */
static inline int kg_moreau_step(const kg_moreau_arguments *x, kg_real t, kg_real h, const kg_real *y, kg_real *y_new) {
  const kg_moreau_model *model = x->model;
  kg_moreau s;
  int result = KG_OK;
  if (!(h > KG_C(0.0)) || !KG_ISFINITE(t + h)) {
    return KG_INVALID_ARGUMENT;
  }
  kg_moreau_begin(x, &s);
  s.h = h;
  (void)memcpy(s.forces, x->forces, (size_t)model->n_rows * sizeof *y);
  (void)memcpy(s.lambda, x->impulses, (size_t)model->n_rows * sizeof *y);
  KG_CALL(result, kg_moreau_middle(&s, t, y));
  KG_CALL(result, kg_moreau_end(&s, x->sweeps, y));
  (void)memcpy(y_new, s.q, (size_t)model->n_q * sizeof *y);
  (void)memcpy(y_new + model->n_q, s.u, (size_t)model->n_u * sizeof *y);
  (void)memcpy(y_new + model->n_q + model->n_u, s.s, (size_t)model->n_s * sizeof *y);
  return result;
}

/* After a step that is accepted: writes its impulses and mean contact forces. */
static inline void kg_moreau_accept(const kg_moreau_arguments *x) {
  kg_moreau s;
  kg_moreau_begin(x, &s);
  (void)memcpy(x->forces, s.forces, (size_t)x->model->n_rows * sizeof *x->forces);
  (void)memcpy(x->impulses, s.lambda, (size_t)x->model->n_rows * sizeof *x->impulses);
}

#ifdef __cplusplus
}
#endif

#endif
