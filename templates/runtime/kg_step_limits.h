/* kg_step_limits.h - defines which steps of an integration are too short. */
#ifndef KG_STEP_LIMITS_H
#define KG_STEP_LIMITS_H

#include "kg_base.h"

/* So many steps in a row that change neither t nor the state notably end a run. */
#define KG_SHORT_STEPS 500
/* Such a step has at most so many roundings of t, ... */
#define KG_LOST_ROUNDINGS KG_BY_PRECISION(1e2, 1e1)
/* ... or so many of t or the span, where it is at most this fraction of the longest trial step. */
#define KG_SHORT_ROUNDINGS KG_BY_PRECISION(1e4, 1e1)
#define KG_SHORT_FRACTION KG_C(1e-3)
/* The least first step, in roundings of t or of the span; and its limit where the span is long. */
#define KG_SHORT_FIRST_STEP KG_BY_PRECISION(1e5, 1e2)
#define KG_LONG_FIRST_STEP KG_C(1e-6)
/* The logarithm to base 2 of 1e-4, below which errors do not influence the proportional step control. */
#define KG_LEAST_ERROR KG_C(-13.287712379549449)

#endif
