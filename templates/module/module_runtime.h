/* Consistent states, impulses, contacts, events, inverse dynamics and assembly as the Cython module sees them. */
#ifndef KG_MODULE_RUNTIME_H
#define KG_MODULE_RUNTIME_H

#include "kg_consistent.h"
{% if has.impulses or has.events %}
#include "kg_impulse.h"
{% endif %}
{% if has.inverse %}
#include "kg_assembly.h"
#include "kg_inverse.h"
{% endif %}
#include "kg_model.h"
{% if has.events %}
#include "kg_run_hybrid.h"
{% endif %}

size_t kg_module_consistent_work(const kg_manifold *manifold);
int kg_module_make_consistent(const kg_manifold *manifold, const kg_point *at, kg_real *q, kg_real *u,
                              const kg_real *p, const int *fixed, kg_real tolerance, kg_real *work,
                              int *corrections);

{% if has.impulses or has.events %}
size_t kg_module_impulse_work(const kg_impulse_rows *rows);
int kg_module_impulse(const kg_impulse_rows *rows, const kg_point *at, kg_real *u, const kg_real *p,
                      const kg_real *generalized, kg_real *multipliers, kg_real *work);

{% endif %}
{% if has.events %}
size_t kg_module_contacts_work(const kg_model *model);
int kg_module_contacts_integers(const kg_model *model);
int kg_module_contacts_start(kg_contacts *contacts, const kg_model *model, const kg_real *p, int *mode, kg_real *work);
int kg_module_contacts_measure(kg_contacts *contacts, const kg_point *at, kg_real *y, const kg_real *atol);
int kg_module_contacts_settle(kg_contacts *contacts, const kg_point *at);
int kg_module_contacts_after_impulse(kg_contacts *contacts, const kg_point *at, kg_real *u, const kg_real *u_before,
                                     kg_real *part, kg_real *impulses);
int kg_module_contacts_rhs(kg_contacts *contacts, const kg_point *at, kg_real *qdot, kg_real *udot);

{% endif %}
{% if has.inverse %}
size_t kg_module_inverse_work(const kg_inverse *m);
int kg_module_inverse_speeds(const kg_inverse *m, const kg_point *at, const kg_real *qdot, const kg_real *qddot,
                             const kg_real *p, kg_real *work, kg_real *u, kg_real *udot, kg_real *slip);
int kg_module_inverse_dynamics(const kg_inverse *m, const kg_point *at, const kg_real *udot, kg_real *r,
                               const kg_real *p, kg_real *work, kg_inverse_result *out);
size_t kg_module_assembly_place(const kg_assembly *a, kg_real *work, kg_assembly_work_arrays *w);
int kg_module_assembly_prescribed(const kg_assembly *a);
int kg_module_assembly_first(const kg_assembly_time *x, kg_real *q, int *worst);
int kg_module_assembly_start(const kg_assembly_time *x, const kg_assembly_state *state, int *worst);
int kg_module_assembly_step(const kg_assembly_time *x, kg_real h, const kg_assembly_state *from,
                            const kg_assembly_state *to, int *worst);

{% endif %}
{% if has.events %}
size_t kg_module_hybrid_memory(kg_hybrid *hybrid);
int kg_module_hybrid_open(kg_hybrid *hybrid, void *memory);
int kg_module_hybrid_start(kg_run *run, kg_hybrid *hybrid, const kg_stepper_options *options, kg_real *y0,
                           kg_real *work);
int kg_module_hybrid_forces(kg_hybrid *hybrid, const int *modes, const kg_real *directions, kg_real t, const kg_real *y,
                            kg_real *forces);
int kg_module_hybrid_mode(const kg_hybrid *hybrid, int contact);

{% endif %}
#endif
