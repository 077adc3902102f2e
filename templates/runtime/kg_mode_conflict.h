/* kg_mode_conflict.h - choosing modes, and which contacts contradict each other where none agree.
 *
 * A set of contacts is in conflict when no modes of these alone agree with their laws and the bilateral constraints, but
 * without any one of them some do: what is told to the user, who can then look at these only.
 */
#ifndef KG_MODE_CONFLICT_H
#define KG_MODE_CONFLICT_H

#include "kg_mode_scan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether some modes agree within what the contacts may do now. */
static inline int kg_conflict_solved(kg_mode_search *f) {
  for (int m = 0; m < f->modes->n_contacts; ++m) {
    f->modes->mode[m] = kg_may_be_on(f, m) ? kg_mode_with_force(f, m) : kg_mode_without_force(f, m);
  }
  return kg_find_modes(f, 0, 0) == KG_OK;
}

/* After KG_NO_MODE: flags the contacts in conflict, and tells whether without friction there is none. What the contacts
 * may do is lost. */
KG_COLD
static inline void kg_search_conflict(kg_mode_search *f) {
  const int n = f->modes->n_contacts, friction = KG_MAY(KG_STICK) | KG_MAY(KG_SLIP) | KG_MAY_START;
  int rough = 0;
  for (int m = 0; m < n; ++m) {
    const int may = f->may[m];
    f->conflict[m] = kg_may_be_on(f, m);
    if (f->conflict[m]) {
      f->may[m] = KG_MAY(KG_OPEN);
      f->conflict[m] = kg_conflict_solved(f);
      f->may[m] = f->conflict[m] ? may : f->may[m];
    }
  }
  for (int m = 0; m < n; ++m) {
    if (f->conflict[m] && (f->may[m] & friction) != 0) {
      f->may[m] = (f->may[m] & ~friction) | KG_MAY(KG_CLOSED);
      rough = 1;
    }
  }
  f->friction = rough && kg_conflict_solved(f);
  for (int m = n - 1; m >= 0; --m) {
    f->culprit = f->conflict[m] ? m : f->culprit;
  }
}

/* Chooses modes that agree with their forces, the present ones if they do. `unique`: KG_SEVERAL_MODES where others do
 * too and lead to other accelerations; with `trusted` the present modes need no such proof. KG_NO_MODE: none agrees. */
static inline int kg_choose_modes(kg_mode_search *f, int unique, int trusted) {
  const int status = kg_find_modes(f, unique, trusted);
  memset(f->conflict, 0, (size_t)f->modes->n_contacts * sizeof *f->conflict);
  f->friction = 0;
  if (status == KG_NO_MODE) {
    kg_search_conflict(f);
  }
  return status;
}

#ifdef __cplusplus
}
#endif

#endif
