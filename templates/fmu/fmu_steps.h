/* fmu_steps.h - co-simulation: advances the motion to a communication point by kg_run.h.
 *
 * The run goes on from one communication point to the next as if it had not stopped there: fixed steps stay on the
 * multiples of the step from the start, adaptive methods keep their step. Only where inputs or parameters have changed,
 * the derivative is evaluated anew, and the modes of contacts are chosen again.
 */
#ifndef FMU_STEPS_H
#define FMU_STEPS_H

#include "fmu_motion.h"

/* The end of a step: the multiple of the fixed step if it differs from that by rounding only, so that the steps do not
 * depend on how the importer adds communication steps. */
static inline kg_real fmu_target(const fmu_data *d, kg_real target) {
  const kg_stepper *s = &d->stepper;
  const kg_real size = s->options.step;
  kg_real multiple;
  if (s->method.adaptive) {
    return target;
  }
  multiple = s->t_start + size * KG_FLOOR((target - s->t_start) / size + KG_C(0.5));
  return KG_ABS(multiple - target) <= KG_C(1e-10) * size + KG_C(16.0) * KG_EPSILON * KG_ABS(target) ? multiple : target;
}

/* Moves the end of the run to a later time. */
static inline int fmu_aim(fmu_data *d, kg_real target) {
  kg_run *run = &d->run;
  kg_stepper *s = &d->stepper;
  const int changed = d->changed || kg_run_has_stops(run);
  int status = d->changed && run->instants ? fmu_find_switches(d) : KG_OK;
  d->changed = 0;
  if (status >= 0 && changed && run->renew) {
    status = run->renew(run->host);
  }
  if (status >= 0 && run->instants) {
    status = kg_instants_pass(run->instants, s->t, target);
  }
  if (status < 0) {
    return status;
  }
  run->t_end = target;
  kg_run_find_stop(run);
#if FMU_EVENTS
  d->hybrid.t_end = target;
  d->hybrid.t_stop = run->t_stop;
  if (changed) {
    memset(d->hybrid.finder.fired, 0, (size_t)d->hybrid.finder.n * sizeof(int));
    return kg_hybrid_react(&d->hybrid);
  }
  s->t_end = kg_hybrid_next_stop(&d->hybrid);
#else
  if (changed) {
    return kg_stepper_restart(s, run->t_stop, 0);
  }
  s->t_end = run->t_stop;
#endif
  return KG_OK;
}

/* Advances to the communication point `target`. Returns KG_FINISHED, KG_TERMINATED at a terminal event, whose time is
 * then d->t, or a negative outcome. */
static inline int fmu_advance(fmu_data *d, kg_real target) {
  int status;
  fmu_prepare(d);
  target = fmu_target(d, target);
  if (!(target > d->stepper.t)) {
    return KG_FINISHED;
  }
  status = fmu_aim(d, target);
  while (status == KG_OK) {
    status = kg_run_advance(&d->run, 1000);
  }
  d->t = d->stepper.t;
  memcpy(d->y, d->stepper.y, (size_t)d->n * sizeof *d->y);
  fmu_touch(d);
  return status;
}

#endif
