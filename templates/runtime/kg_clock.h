/* kg_clock.h - defines the instants of values that are sampled and held. */
#ifndef KG_CLOCK_H
#define KG_CLOCK_H

#include "kg_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sample k is taken at t_start + k sample_time, and acts from t_start + k sample_time + delay until the next one acts. */
typedef struct kg_clock {
  kg_real sample_time; /* > 0 */
  kg_real delay;       /* >= 0 */
  long long taken;     /* private: number of samples that were taken */
  long long acting;    /* private: number of samples that act, or have acted */
} kg_clock;

/* Instants that differ by less than this fraction of the sample time, or by the rounding of t, are the same. */
#define KG_SAME_INSTANT KG_BY_PRECISION(1e-9, 1e-3)

/* Instant of sample k. The product is rounded by itself, not in a fused multiply-add, so that the instants are those
 * that other programs compute. */
static inline kg_real kg_clock_instant(const kg_clock *c, kg_real t_start, long long k) {
  const volatile kg_real offset = (kg_real)(double)k * c->sample_time;
  return t_start + offset;
}

static inline int kg_clock_has_come(const kg_clock *c, kg_real instant, kg_real t) {
  return instant - t <= KG_SAME_INSTANT * c->sample_time + KG_C(4.0) * KG_EPSILON * KG_ABS(t);
}

/* Whether the next sample is due at t. */
static inline int kg_clock_is_due(const kg_clock *c, kg_real t_start, kg_real t) {
  return kg_clock_has_come(c, kg_clock_instant(c, t_start, c->taken), t);
}

/* Whether the oldest sample that waits acts from t on. */
static inline int kg_clock_is_over(const kg_clock *c, kg_real t_start, kg_real t) {
  /* Computed in any case, so that steps of emitted projects take the same time. */
  const int has_come = kg_clock_has_come(c, kg_clock_instant(c, t_start, c->acting) + c->delay, t);
  return c->acting < c->taken && has_come;
}

#ifdef __cplusplus
}
#endif

#endif
