/* Counts the operations of kg_moreau_step() without those of the model's functions: random contacts, which touch or not,
 * strike, stick and slip. */
#include "counted_kernels.cpp"

#include "kg_moreau.h"

static const double *numbers;
static int n_q, n_u, n_s, n_k, n_m;

static int copy(kg_real *out, int n, int from) {
  for (int i = 0; i < n; ++i) {
    out[i] = kg_real(numbers[from + i]);
  }
  return KG_OK;
}
#define NO_ARGUMENTS const kg_point *KG_RESTRICT, const kg_real *KG_RESTRICT, kg_real *KG_RESTRICT, kg_real *KG_RESTRICT out
static int qdot(NO_ARGUMENTS) { return copy(out, n_q, 0); }
static int rates(NO_ARGUMENTS) { return copy(out, n_s, 0); }
static int all(NO_ARGUMENTS) { return copy(out, n_q + n_u + n_k * (n_u + n_k + 4) + 5 * n_m, 0); }
static int gaps(NO_ARGUMENTS) { return copy(out, 3 * n_k + 5 * n_m, n_q + n_u + n_k * (n_u + n_k + 1)); }

extern "C" long moreau_step(const int *sizes, const int *contacts, const double *values, int sweeps) {
  static kg_contact_info info[16];
  static kg_real work[4000], y[100], forces[50], impulses[50];
  kg_moreau_model model = {};
  n_q = model.n_q = sizes[0];
  n_u = model.n_u = sizes[1];
  n_s = model.n_s = sizes[2];
  n_k = model.n_rows = sizes[3];
  n_m = model.n_contacts = sizes[4];
  for (int m = 0; m < n_m; ++m) {
    const int *x = contacts + 6 * m;
    const kg_contact_info one = {"", x[0], x[1], x[2], x[3], x[4], x[5]};
    info[m] = one;
  }
  model.info = info;
  model.qdot = qdot;
  model.contacts = all;
  model.gaps = gaps;
  model.state_rates = rates;
  numbers = values;
  for (int i = 0; i < n_q + n_u + n_s; ++i) {
    y[i] = kg_real(0.0);
  }
  for (int i = 0; i < n_k; ++i) {
    impulses[i] = forces[i] = kg_real(0.1 * i);
  }
  const kg_moreau_arguments arguments = {&model, sweeps, nullptr, nullptr, impulses, forces, work, nullptr};
  operations = 0;
  const int status = kg_moreau_step(&arguments, 0.0, 0.01, y, y);
  return status < 0 ? (long)status : operations;
}
