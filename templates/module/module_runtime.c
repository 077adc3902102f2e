/* Functions of the runtime that are called rarely, so that a short compile time matters more than their speed. */
#include "module_runtime.h"

size_t kg_module_consistent_work(const kg_manifold *manifold) { return kg_consistent_work(manifold); }

int kg_module_make_consistent(const kg_manifold *manifold, const kg_point *at, kg_real *q, kg_real *u,
                              const kg_real *p, const int *fixed, kg_real tolerance, kg_real *work,
                              int *corrections) {
  return kg_make_consistent(manifold, at, q, u, p, fixed, tolerance, work, corrections);
}

{% if has.impulses or has.events %}
size_t kg_module_impulse_work(const kg_impulse_rows *rows) { return kg_impulse_work(rows); }

int kg_module_impulse(const kg_impulse_rows *rows, const kg_point *at, kg_real *u, const kg_real *p,
                      const kg_real *generalized, kg_real *multipliers, kg_real *work) {
  return kg_impulse(rows, at, u, p, generalized, multipliers, work);
}

{% endif %}
{% if has.events %}
size_t kg_module_contacts_work(const kg_model *model) { return kg_contacts_work(model); }

int kg_module_contacts_integers(const kg_model *model) { return kg_contacts_integers(model); }

int kg_module_contacts_start(kg_contacts *contacts, const kg_model *model, const kg_real *p, int *mode, kg_real *work) {
  return kg_contacts_start(contacts, model, p, mode, work);
}

int kg_module_contacts_measure(kg_contacts *contacts, const kg_point *at, kg_real *y, const kg_real *atol) {
  return kg_contacts_measure(contacts, at, y, NULL, atol);
}

int kg_module_contacts_settle(kg_contacts *contacts, const kg_point *at) {
  return kg_contacts_settle(contacts, at);
}

int kg_module_contacts_after_impulse(kg_contacts *contacts, const kg_point *at, kg_real *u, const kg_real *u_before,
                                     kg_real *part, kg_real *impulses) {
  return kg_contacts_after_impulse(contacts, at, u, u_before, part, impulses);
}

int kg_module_contacts_rhs(kg_contacts *contacts, const kg_point *at, kg_real *qdot, kg_real *udot) {
  const int status = kg_contacts_rhs(contacts, at, qdot, udot);
  if (status >= 0) {
    kg_modes_hold(&contacts->now);
  }
  return status;
}

{% endif %}
{% if has.inverse %}
size_t kg_module_inverse_work(const kg_inverse *m) { return kg_inverse_work(m); }

int kg_module_inverse_speeds(const kg_inverse *m, const kg_point *at, const kg_real *qdot, const kg_real *qddot,
                             const kg_real *p, kg_real *work, kg_real *u, kg_real *udot, kg_real *slip) {
  return kg_inverse_speeds(m, at, qdot, qddot, p, work, u, udot, slip);
}

int kg_module_inverse_dynamics(const kg_inverse *m, const kg_point *at, const kg_real *udot, kg_real *r,
                               const kg_real *p, kg_real *work, kg_inverse_result *out) {
  return kg_inverse_dynamics(m, at, udot, r, p, work, out);
}

size_t kg_module_assembly_place(const kg_assembly *a, kg_real *work, kg_assembly_work_arrays *w) {
  return kg_assembly_place_arrays(a, work, w);
}

int kg_module_assembly_prescribed(const kg_assembly *a) { return kg_assembly_prescribed(a); }

int kg_module_assembly_first(const kg_assembly_time *x, kg_real *q, int *worst) {
  return kg_assembly_first(x, q, worst);
}

int kg_module_assembly_start(const kg_assembly_time *x, const kg_assembly_state *state, int *worst) {
  return kg_assembly_start(x, state, worst);
}

int kg_module_assembly_step(const kg_assembly_time *x, kg_real h, const kg_assembly_state *from,
                            const kg_assembly_state *to, int *worst) {
  return kg_assembly_step(x, h, from, to, worst);
}

{% endif %}
{% if has.events %}
size_t kg_module_hybrid_memory(kg_hybrid *hybrid) { return kg_hybrid_memory(hybrid); }

int kg_module_hybrid_open(kg_hybrid *hybrid, void *memory) { return kg_hybrid_open(hybrid, memory); }

int kg_module_hybrid_start(kg_run *run, kg_hybrid *hybrid, const kg_stepper_options *options, kg_real *y0,
                           kg_real *work) {
  return kg_run_hybrid_start(run, hybrid, options, y0, work);
}

/* Multipliers of the contact rows (n_rows) at a state of a completed run, in the given modes. */
int kg_module_hybrid_forces(kg_hybrid *hybrid, const int *modes, const kg_real *directions, kg_real t, const kg_real *y,
                            kg_real *forces) {
  const int n_q = hybrid->model->n_q;
  int status;
  kg_contacts_set_modes(&hybrid->contacts, modes, directions);
  status = kg_hybrid_inputs(hybrid, t, y);
  if (status >= 0) {
    const kg_point at = kg_hybrid_point(hybrid, t, y, NULL);
    status = kg_contacts_rhs(&hybrid->contacts, &at, hybrid->rates, hybrid->rates + n_q);
  }
  if (status >= 0) {
    kg_modes_hold(&hybrid->contacts.now);
  }
  memcpy(forces, hybrid->contacts.lambda, (size_t)hybrid->model->n_rows * sizeof *forces);
  return status;
}

int kg_module_hybrid_mode(const kg_hybrid *hybrid, int contact) { return kg_contacts_code(&hybrid->contacts, contact); }
{% endif %}
