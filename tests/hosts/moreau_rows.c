/* One step of kg_moreau.h with the frozen configuration of contact_rows.c. */
#include "contact_rows.c"

#include "kg_moreau.h"

static int qdot(KG_ARGUMENTS) {
  (void)work;
  memcpy(out, at->u, (size_t)p[0] * sizeof *out);
  return KG_OK;
}

/* y: n positions (no function reads them) and n speeds; forces, impulses: n_rows. */
int step(const int *sizes, const int *info, const double *p, int sweeps, double h, double *y, double *forces,
         double *impulses) {
  const int n = sizes[0], k = sizes[1], m = sizes[2];
  kg_contact_info *contact = malloc((size_t)m * sizeof *contact);
  double *work = malloc((size_t)KG_MOREAU_WORK(n, n, 0, k, m) * sizeof *work);
  const kg_moreau_model model = {n, n, 0, k, m, contact, qdot, contacts, gaps, NULL};
  const kg_moreau_arguments arguments = {&model, sweeps, p, NULL, impulses, forces, work, NULL};
  int status;
  for (int i = 0; i < m; ++i) {
    const int *x = info + 5 * i;
    const kg_contact_info one = {"contact", x[0], 2, x[1], x[2], x[3], x[4]};
    contact[i] = one;
  }
  status = kg_moreau_step(&arguments, 0.0, h, y, y);
  if (status >= 0) {
    kg_moreau_accept(&arguments);
  }
  free(contact), free(work);
  return status;
}
