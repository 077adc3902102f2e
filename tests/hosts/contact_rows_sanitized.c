/* Impact, modes, accelerations and guards of three contacts, for the sanitizers. */
#include "contact_rows.c"
#include <stdio.h>

/* Painleve's rod at tan(theta) = 2 with mu = 2, whose tip slides backwards without finite forces: it stops. */
static int paradox(void) {
  const int sizes[3] = {3, 2, 1}, info[5] = {2, 0, 1, 1, 2 * KG_PARADOX_IMPACT};
  const double options[5] = {1e-9, 1e-9, 0.0, 0.0, 0.0}, s = 0.894427190999916, c = 0.447213595499958;
  const double p[3 + 9 + 3 + 6 + 8 + 5] = {3.0, 2.0, 1.0, 1.0, 0.0, 0.0,  0.0, 1.0, 0.0, 0.0, 0.0,
                                           3.0, 0.0, -9.81, 0.0, 0.0, 1.0, -c,  1.0, 0.0, s,   0.0,
                                           0.0, 0.0, 0.0, 0.0, 0.0, 0.0,  0.0, 0.0, 2.0, 2.0, 0.0,  0.0};
  double direction[2] = {0}, u[3] = {-1.0, 0.0, 0.0}, lambda[2], udot[3], guards[4];
  int mode[1] = {-1}, culprit = -1;
  const int status = run(1 | 32, sizes, info, p, options, mode, direction, u, NULL, lambda, udot, guards, &culprit);
  printf("%d %.6f %.6f %.6f %.6f\n", status, u[0] + s * u[2], u[1] - c * u[2], lambda[0], lambda[1]);
  return status | run(1 | 4 | 8, sizes, info, p, options, mode, direction, u, NULL, lambda, udot, guards, &culprit);
}

/* Two particles on a rough floor, one touching it in a plane; a table leg twice (redundant); all calls once. */
int main(void) {
  const int sizes[3] = {3, 8, 3}, info[15] = {2, 0, 1, 2, 0, 2, 3, 4, 2, 0, 3, 6, 7, 1, 0};
  const double options[5] = {1e-9, 1e-9, 0.0, 0.0, 2.0};
  double p[3 + 9 + 3 + 24 + 32 + 15] = {3.0, 8.0, 3.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 1.0, -9.81};
  const double rows[24] = {0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0};
  double direction[6] = {0}, u[3] = {0.1, 0.0, -1.0}, lambda[8], udot[3], guards[12];
  int mode[3] = {-1, 0, 0}, culprit = -1, status;
  for (int i = 0; i < 24; ++i) {
    p[15 + i] = rows[i];
  }
  for (int i = 0; i < 3; ++i) {
    p[74 + i] = p[77 + i] = 0.3;
    p[80 + i] = 0.5;
  }
  status = run(2 | 1 | 4 | 8, sizes, info, p, options, mode, direction, u, NULL, lambda, udot, guards, &culprit);
  u[2] = 0.0;
  status |= run(1 | 4 | 8, sizes, info, p, options, mode, direction, u, NULL, lambda, udot, guards, &culprit);
  printf("%d %.6f %.6f %.6f\n", status, udot[0], udot[1], udot[2]);
  return status | paradox();
}
