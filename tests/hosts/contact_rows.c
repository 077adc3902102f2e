/* Contacts of a frozen configuration, whose rows are matrices (tests/support/contact_rows.py). */
#include "kg_paradox.h"
#include <stdlib.h>

/* p: n_u, n_k, n_m, then M, a, W, w0, value, rate, target, and the six sections of the contacts. */
static const kg_real *rows_of(const kg_real *p, int *n, int *k, int *m) {
  *n = (int)p[0];
  *k = (int)p[1];
  *m = (int)p[2];
  return p + 3 + *n * *n + *n;
}

static int gaps(KG_ARGUMENTS) {
  int n, k, m;
  const kg_real *W = rows_of(p, &n, &k, &m), *value = W + k * n + k;
  (void)work;
  memcpy(out, value, (size_t)(3 * k + 5 * m) * sizeof *out);
  for (int i = 0; i < k; ++i) {
    out[k + i] += kg_dot(n, W + i * n, at->u);
  }
  return KG_OK;
}

static int contacts(KG_ARGUMENTS) {
  int n, k, m;
  const kg_real *W = rows_of(p, &n, &k, &m), *M = p + 3, *a = M + n * n, *w0 = W + k * n;
  kg_real *response = out + 2 * n, *D = response + k * n, *free_rows = D + k * k;
  memcpy(out, at->u, (size_t)n * sizeof *out);
  memcpy(out + n, a, (size_t)n * sizeof *out);
  for (int i = 0; i < k; ++i) {
    for (int j = 0; j < n; ++j) {
      response[i * n + j] = kg_dot(n, M + j * n, W + i * n);
    }
    free_rows[i] = w0[i] + kg_dot(n, W + i * n, a);
  }
  for (int i = 0; i < k; ++i) {
    for (int j = 0; j < k; ++j) {
      D[i * k + j] = kg_dot(n, W + i * n, response + j * n);
    }
  }
  return gaps(at, p, work, free_rows + k);
}

int run(int what, const int *sizes, const int *info, const double *p, const double *options, int *mode,
        double *direction, double *u, const double *u_before, double *lambda, double *udot, double *guards,
        int *culprit) {
  const int n = sizes[0], k = sizes[1], m = sizes[2];
  const kg_function functions[2] = {{"contacts", 2 * n + k * n + k * k + 4 * k + 5 * m, 0, 0, contacts},
                                    {"gaps", 3 * k + 5 * m, 0, 0, gaps}};
  kg_contact_info *contact = malloc((size_t)m * sizeof *contact);
  kg_model model;
  const kg_point at = {0.0, u, u, NULL, NULL, NULL, NULL}; /* no function reads positions */
  kg_contacts c;
  double *work, *qdot = malloc((size_t)n * sizeof *qdot);
  int *modes, status;
  memset(&model, 0, sizeof model);
  for (int i = 0; i < m; ++i) {
    const int *x = info + 5 * i;
    const kg_contact_info one = {"contact", x[0], 2, x[1], x[2], x[3], x[4]};
    contact[i] = one;
  }
  model.n_q = model.n_u = n;
  model.n_rows = k;
  model.n_contacts = m;
  model.contacts = contact;
  model.n_functions = 2;
  model.functions = functions;
  work = malloc(kg_contacts_work(&model) * sizeof *work);
  modes = malloc((size_t)kg_contacts_integers(&model) * sizeof *modes);
  status = kg_contacts_start(&c, &model, p, modes, work);
  for (int i = 0; i < m; ++i) {
    c.gap_zero[i] = options[0];
    c.rate_zero[i] = c.slip_zero[i] = options[1];
  }
  c.prefer_present = options[2] > 0.0;
  c.plastic = options[3] > 0.0;
  if (mode[0] >= 0) {
    kg_contacts_set_modes(&c, mode, direction);
  }
  if (status >= 0 && what & 16) {
    kg_contacts_rhs(&c, &at, qdot, udot);
    kg_contacts_propose(&c, (int)options[4]);
  }
  if (status >= 0 && what & 2) {
    status = kg_contacts_impact_after(&c, &at, u, u_before, lambda);
  }
  if (status >= 0 && what & 1) {
    status = kg_contacts_settle(&c, &at);
  }
  if (status == KG_NO_MODE && what & 32 && kg_contacts_paradox(&c) == KG_PARADOX_IMPACT) {
    status = kg_contacts_jam(&c, &at, u, lambda);
  }
  if (status >= 0 && what & 4) {
    status = kg_contacts_rhs(&c, &at, qdot, udot);
    kg_modes_hold(&c.now);
    memcpy(lambda, c.lambda, (size_t)k * sizeof *lambda);
  }
  if (status >= 0 && what & 8) {
    status = kg_contacts_guards(&c, &at, 1, guards);
  }
  memcpy(mode, c.mode, (size_t)m * sizeof *mode);
  memcpy(direction, c.direction, 2 * (size_t)m * sizeof *direction);
  *culprit = c.culprit;
  free(contact), free(work), free(modes), free(qdot);
  return status;
}
