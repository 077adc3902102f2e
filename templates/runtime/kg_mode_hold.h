/* kg_mode_hold.h - decides whether redundant contacts can stick, and computes their forces.
 *
 * A disc at rest in a groove between two rough planes has four rows and three speeds: its motion is unique, its forces
 * are not. The forces of least norm (kg_modes.h) may violate the law of friction although other possible forces satisfy
 * it. Each condition `mu_s N >= |lambda_t|`, and `N >= 0` of contacts without friction, has a margin. The contacts
 * stick if there are forces for which all margins are positive. They are found by Newton's method with logarithmic
 * barriers (Nesterov and Nemirovskii 1994): maximize tau with every margin above tau, over the null space of the rows.
 */
#ifndef KG_MODE_HOLD_H
#define KG_MODE_HOLD_H

#include "kg_modes.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The smallest margin comes this close to its largest value, as a fraction of the forces, times twice the number of
 * contacts: the last weight of tau against the barriers. */
#define KG_HOLD_WEIGHT KG_BY_PRECISION(1e11, 1e4)
#define KG_HOLD_GROWTH KG_C(30.0)
#define KG_HOLD_STEPS 30 /* of Newton's method for one weight: three or four are common */
/* Newton's squared decrement at which the iteration ends, for the last weight and on the way there. */
#define KG_HOLD_DECREMENT KG_C(1e-3)
#define KG_HOLD_NEAR KG_C(1.0)
#define KG_HOLD_HALVINGS 50
/* Pivots below this fraction of their diagonal element are rounding. */
#define KG_HOLD_ROUNDING KG_BY_PRECISION(1e-13, 1e-5)
/* A null vector with less than this of a row, of all its length 1, does not affect the row. */
#define KG_HOLD_TOUCHED KG_BY_PRECISION(1e-6, 1e-3)
/* The value of states outside the barriers. */
#define KG_HOLD_OUTSIDE KG_BY_PRECISION(1e300, 1e30)

/* Forces are counted in the units of their rows. The unknowns z are the parts of k null vectors, then tau. */
typedef struct {
  kg_modes *s;
  int n;                      /* rows that may share their forces: s->unknown, */
  int k;                      /* and how many null vectors they have */
  kg_real *null;              /* k x n */
  kg_real *x;                 /* n: the forces of least norm */
  kg_real *z, *step, *trial;  /* k + 1 each */
  kg_real *hessian;           /* (k + 1) x (k + 1) */
  kg_real *slopes;            /* 3 x (k + 1): of one condition */
  kg_real size;               /* of the forces */
  kg_real reference;          /* of tau: only its changes count, and a large weight would round them away */
} kg_hold;

/* Lists the rows of closed contacts that do not slip; returns whether a contact sticks. */
static inline int kg_hold_rows(kg_hold *h) {
  kg_modes *s = h->s;
  int stuck = 0;
  h->n = 0;
  for (int m = 0; m < s->n_contacts; ++m) {
    const kg_contact_info *info = s->info + m;
    if (!kg_closed(s->mode[m]) || s->mode[m] == KG_SLIP) {
      continue;
    }
    if (kg_normal_unknown(s, m)) {
      s->unknown[h->n++] = info->normal;
    }
    for (int i = 0; i < info->directions && s->mode[m] == KG_STICK; ++i) {
      s->unknown[h->n++] = info->tangent + i;
      stuck = 1;
    }
  }
  return stuck;
}

/* Splits the scratch and finds the null vectors of the rows' responses. */
static inline void kg_hold_null(kg_hold *h) {
  kg_modes *s = h->s;
  const int n = h->n;
  kg_real *W = s->dense + n * (ptrdiff_t)n, *sizes = W + n * (ptrdiff_t)n;
  kg_real largest = KG_C(0.0);
  h->hessian = s->dense;
  h->null = W;
  h->x = sizes + n;
  h->z = h->x + n;
  h->step = h->z + n;
  h->trial = h->step + n;
  h->slopes = h->trial + n;
  for (int i = 0; i < n; ++i) {
    s->scale[i] = KG_C(1.0) / kg_modes_unit(s, s->unknown[i]);
    h->x[i] = s->lambda[s->unknown[i]] / s->scale[i];
    for (int j = 0; j <= i; ++j) {
      const kg_real entry = s->scale[i] * s->scale[j] * s->D[s->unknown[i] * (ptrdiff_t)s->n_rows + s->unknown[j]];
      s->dense[i * (ptrdiff_t)n + j] = s->dense[j * (ptrdiff_t)n + i] = entry;
    }
  }
  kg_symmetric_eigen(n, s->dense, sizes, W);
  for (int i = 0; i < n; ++i) {
    largest = KG_MAX(largest, sizes[i]);
  }
  h->k = 0;
  for (int i = 0; i < n; ++i) { /* the null vectors move to the front */
    if (!(sizes[i] > KG_MODES_RANK * largest)) {
      memmove(W + h->k++ * (ptrdiff_t)n, W + i * (ptrdiff_t)n, (size_t)n * sizeof *W);
    }
  }
}

/* Returns whether a null vector changes the force of a contact that sticks. */
static inline int kg_hold_matters(const kg_hold *h) {
  const kg_modes *s = h->s;
  for (int j = 0; j < h->n; ++j) {
    for (int m = 0; m < s->n_contacts; ++m) {
      const int behind = s->unknown[j] - s->info[m].tangent;
      const int own = s->unknown[j] == s->info[m].normal || (behind >= 0 && behind < s->info[m].directions);
      for (int i = 0; i < h->k && own && s->mode[m] == KG_STICK; ++i) {
        if (KG_ABS(h->null[i * (ptrdiff_t)h->n + j]) > KG_HOLD_TOUCHED) {
          return 1;
        }
      }
    }
  }
  return 0;
}

/* `factor` times the force of a row at z, in units of energy^1/2; its slope. */
static inline kg_real kg_hold_force(const kg_hold *h, int row, kg_real factor, const kg_real *z, kg_real *slope) {
  int j = 0;
  kg_real force;
  while (h->s->unknown[j] != row) {
    ++j;
  }
  force = h->x[j];
  for (int i = 0; i < h->k; ++i) {
    const kg_real part = h->null[i * (ptrdiff_t)h->n + j];
    force += z[i] * part;
    slope[i] = factor * h->s->scale[j] * part;
  }
  slope[h->k] = KG_C(0.0);
  return factor * h->s->scale[j] * force;
}

/* The condition `values[0] >= |values[1], ...|` of contact m with the margin tau, and its slopes. Returns the number of
 * values, 0 where there is no condition. */
static inline int kg_hold_condition(const kg_hold *h, int m, const kg_real *z, kg_real *values) {
  const kg_modes *s = h->s;
  const kg_contact_info *info = s->info + m;
  kg_real unit;
  if (s->mode[m] == KG_CLOSED && (s->law[m] == KG_LAW_RESTITUTION || s->law[m] == KG_LAW_STABILIZED)) {
    values[0] = kg_hold_force(h, info->normal, kg_modes_unit(s, info->normal), z, h->slopes) - z[h->k];
    h->slopes[h->k] = KG_C(-1.0);
    return 1;
  }
  if (s->mode[m] != KG_STICK) {
    return 0;
  }
  unit = kg_modes_unit(s, info->tangent);
  if (kg_normal_unknown(s, m)) {
    const kg_real sign = s->law[m] == KG_LAW_BILATERAL ? kg_sign_of(s->lambda[info->normal]) : KG_C(1.0);
    values[0] = kg_hold_force(h, info->normal, sign * s->mu_s[m] * unit, z, h->slopes);
  } else {
    kg_clear(h->k, h->slopes);
    values[0] = s->mu_s[m] * unit * KG_MAX(s->load[m], KG_C(0.0));
  }
  values[0] -= z[h->k];
  h->slopes[h->k] = KG_C(-1.0);
  for (int i = 0; i < info->directions; ++i) {
    values[1 + i] = kg_hold_force(h, info->tangent + i, unit, z, h->slopes + (1 + i) * (ptrdiff_t)(h->k + 1));
  }
  return 1 + info->directions;
}

/* Positive where the condition holds. */
static inline kg_real kg_hold_slack(int count, const kg_real *values) {
  kg_real slack = count == 1 ? values[0] : values[0] * values[0];
  for (int i = 1; i < count; ++i) {
    slack -= values[i] * values[i];
  }
  return values[0] > KG_C(0.0) ? slack : KG_C(0.0);
}

/* The smallest margin at z. */
static inline kg_real kg_hold_margin(const kg_hold *h, kg_real *z) {
  const kg_real tau = z[h->k];
  kg_real smallest = h->size, values[3];
  z[h->k] = KG_C(0.0);
  for (int m = 0; m < h->s->n_contacts; ++m) {
    const int count = kg_hold_condition(h, m, z, values);
    if (count > 0) {
      const kg_real side = count == 3 ? KG_SQRT(values[1] * values[1] + values[2] * values[2])
                           : count == 2 ? KG_ABS(values[1]) : KG_C(0.0);
      smallest = KG_MIN(smallest, values[0] - side);
    }
  }
  z[h->k] = tau;
  return smallest;
}

/* The objective: -weight tau, barriers, an upper bound of tau (the forces between two walls are unlimited), and a
 * small multiple of the squares of z, which makes the minimum unique. */
static inline kg_real kg_hold_value(const kg_hold *h, const kg_real *z, kg_real weight) {
  const kg_real below = KG_C(1.0) - z[h->k] / h->size;
  kg_real value = -weight * (z[h->k] - h->reference) / h->size, values[3];
  if (!(below > KG_C(0.0))) {
    return KG_HOLD_OUTSIDE;
  }
  value -= KG_LOG(below);
  for (int i = 0; i < h->k; ++i) {
    value += KG_C(0.5) * (z[i] / h->size) * (z[i] / h->size);
  }
  for (int m = 0; m < h->s->n_contacts; ++m) {
    const int count = kg_hold_condition(h, m, z, values);
    const kg_real slack = count > 0 ? kg_hold_slack(count, values) : KG_C(1.0);
    if (!(slack > KG_C(0.0))) {
      return KG_HOLD_OUTSIDE;
    }
    value -= count > 0 ? KG_LOG(slack / (count > 1 ? h->size * h->size : h->size)) : KG_C(0.0);
  }
  return value;
}

/* The condition's part of gradient (into step) and Hessian (lower triangle). */
static inline void kg_hold_add_condition(kg_hold *h, int count, const kg_real *values) {
  const int n = h->k + 1;
  const kg_real slack = kg_hold_slack(count, values), factor = count == 1 ? KG_C(1.0) : KG_C(2.0);
  for (int i = 0; i < n; ++i) { /* trial: slope of the slack */
    h->trial[i] = factor * (count == 1 ? KG_C(1.0) : values[0]) * h->slopes[i];
    for (int c = 1; c < count; ++c) {
      h->trial[i] -= factor * values[c] * h->slopes[c * (ptrdiff_t)n + i];
    }
    h->step[i] -= h->trial[i] / slack;
  }
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      kg_real entry = h->trial[i] * h->trial[j] / (slack * slack);
      entry -= count > 1 ? factor * h->slopes[i] * h->slopes[j] / slack : KG_C(0.0);
      for (int c = 1; c < count; ++c) {
        entry += factor * h->slopes[c * (ptrdiff_t)n + i] * h->slopes[c * (ptrdiff_t)n + j] / slack;
      }
      h->hessian[i * (ptrdiff_t)n + j] += entry;
    }
  }
}

/* x <- H^-1 x for the Hessian, whose lower triangle is destroyed. Near the largest margin, the active conditions
 * exceed all others beyond rounding: components of directions that are only rounding become zero. */
static inline void kg_hold_solve(int n, kg_real *H, kg_real *x) {
  for (int i = 0; i < n; ++i) {
    kg_real *row = H + i * (ptrdiff_t)n;
    kg_real pivot = row[i];
    const kg_real least = KG_HOLD_ROUNDING * pivot;
    for (int j = 0; j < i; ++j) { /* row[j] becomes L_ij D_j */
      for (int k = 0; k < j; ++k) {
        row[j] -= row[k] * H[j * (ptrdiff_t)n + k];
      }
    }
    for (int j = 0; j < i; ++j) {
      const kg_real scaled = row[j];
      row[j] = scaled * H[j * (ptrdiff_t)(n + 1)];
      pivot -= row[j] * scaled;
    }
    row[i] = pivot > least ? KG_C(1.0) / pivot : KG_C(0.0);
  }
  kg_cholesky_substitute(n, 1, H, x);
}

/* Newton's step, against the gradient; returns their product, the squared decrement. */
static inline kg_real kg_hold_newton(kg_hold *h, kg_real weight) {
  const int n = h->k + 1;
  const kg_real below = h->size - h->z[h->k], squared = h->size * h->size;
  kg_real values[3];
  kg_clear(n * n, h->hessian);
  for (int i = 0; i < h->k; ++i) {
    h->step[i] = h->z[i] / squared;
    h->hessian[i * (ptrdiff_t)(n + 1)] = KG_C(1.0) / squared;
  }
  h->step[h->k] = KG_C(1.0) / below - weight / h->size;
  h->hessian[h->k * (ptrdiff_t)(n + 1)] = KG_C(1.0) / (below * below);
  for (int m = 0; m < h->s->n_contacts; ++m) {
    const int count = kg_hold_condition(h, m, h->z, values);
    if (count > 0) {
      kg_hold_add_condition(h, count, values);
    }
  }
  memcpy(h->trial, h->step, (size_t)n * sizeof *h->step);
  kg_hold_solve(n, h->hessian, h->step);
  return kg_dot(n, h->trial, h->step);
}

/* Minimizes the value for one weight. */
static inline void kg_hold_minimize(kg_hold *h, kg_real weight, kg_real decrement) {
  const int n = h->k + 1;
  for (int iteration = 0; iteration < KG_HOLD_STEPS; ++iteration) {
    const kg_real squared = kg_hold_newton(h, weight);
    kg_real length = KG_C(1.0), value;
    int halvings = 0;
    if (!(squared > decrement)) {
      return;
    }
    h->reference = h->z[h->k];
    value = kg_hold_value(h, h->z, weight);
    for (; halvings < KG_HOLD_HALVINGS; ++halvings) {
      for (int i = 0; i < n; ++i) {
        h->trial[i] = h->z[i] - length * h->step[i];
      }
      if (kg_hold_value(h, h->trial, weight) < value - KG_C(0.1) * length * squared) {
        break;
      }
      length *= KG_C(0.5);
    }
    if (halvings == KG_HOLD_HALVINGS) {
      return;
    }
    memcpy(h->z, h->trial, (size_t)n * sizeof *h->z);
  }
}

/* The forces at a fraction of the way z. */
static inline void kg_hold_write(const kg_hold *h, kg_real fraction, kg_real *lambda) {
  for (int j = 0; j < h->n; ++j) {
    kg_real force = h->x[j];
    for (int i = 0; i < h->k; ++i) {
      force += fraction * h->z[i] * h->null[i * (ptrdiff_t)h->n + j];
    }
    lambda[h->s->unknown[j]] = h->s->scale[j] * force;
  }
}

/* Returns the smallest fraction of the way from the forces of least norm to those with the largest margins at which all
 * laws are satisfied, or 1. Margins are concave along this way. */
static inline kg_real kg_hold_fraction(kg_hold *h) {
  kg_real low = KG_C(0.0), high = KG_C(1.0);
  for (int i = 0; i <= h->k; ++i) {
    h->trial[i] = KG_C(0.0);
  }
  if (kg_hold_margin(h, h->trial) >= KG_C(0.0)) {
    return KG_C(0.0);
  }
  for (int halving = 0; halving < KG_HOLD_HALVINGS; ++halving) {
    const kg_real middle = KG_C(0.5) * (low + high);
    for (int i = 0; i < h->k; ++i) {
      h->trial[i] = middle * h->z[i];
    }
    if (kg_hold_margin(h, h->trial) >= KG_C(0.0)) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return high;
}

static inline kg_real kg_hold_size(const kg_hold *h) {
  const kg_modes *s = h->s;
  kg_real size = KG_C(0.0);
  for (int j = 0; j < h->n; ++j) {
    size = KG_MAX(size, KG_ABS(h->x[j]));
  }
  for (int m = 0; m < s->n_contacts; ++m) {
    if (s->mode[m] == KG_STICK && !kg_normal_unknown(s, m)) {
      const kg_real limit = s->mu_s[m] * KG_ABS(s->load[m]) * kg_modes_unit(s, s->info[m].tangent);
      size = KG_MAX(size, limit);
    }
  }
  return size;
}

/* After kg_modes_solve(): where contacts that stick are redundant, `center` becomes the multipliers with the largest
 * margins, and lambda those of least norm, moved towards center until the laws hold. Returns whether it did so.
 * The accelerations do not change. */
KG_COLD
static inline int kg_modes_hold(kg_modes *s) {
  kg_hold h;
  if (!s->center || !s->redundant) {
    return 0;
  }
  h.s = s;
  if (!kg_hold_rows(&h)) {
    return 0;
  }
  kg_hold_null(&h);
  h.size = kg_hold_size(&h);
  if (h.k == 0 || h.k == h.n || !(h.size > KG_C(0.0)) || !kg_hold_matters(&h)) {
    return 0;
  }
  kg_clear(h.k + 1, h.z);
  h.z[h.k] = kg_hold_margin(&h, h.z) - h.size;
  for (kg_real weight = KG_C(1.0); weight < KG_HOLD_WEIGHT; weight *= KG_HOLD_GROWTH) {
    kg_hold_minimize(&h, weight, KG_HOLD_NEAR);
  }
  kg_hold_minimize(&h, KG_HOLD_WEIGHT, KG_HOLD_DECREMENT);
  memcpy(s->center, s->lambda, (size_t)s->n_rows * sizeof *s->center);
  kg_hold_write(&h, KG_C(1.0), s->center);
  kg_hold_write(&h, kg_hold_fraction(&h), s->lambda);
  return 1;
}

#ifdef __cplusplus
}
#endif

#endif
