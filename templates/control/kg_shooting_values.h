/* kg_shooting_values.h - what is evaluated of a model for multiple shooting (kg_shooting.h), and where it is stored. */
#ifndef KG_SHOOTING_VALUES_H
#define KG_SHOOTING_VALUES_H

#include "kg_model.h"
#include "kg_stage_program.h"

/* A value, then its derivatives with respect to w. */
#define KG_RECORD (1 + KG_W)
#define KG_POINT_ROWS (KG_X + 2 * KG_SQUARES + KG_REST)
#define KG_END_VALUES (2 * KG_END_SQUARES + KG_END_REST + KG_END_PATHS)
/* Arrays of C have at least one entry. */
#define KG_FILLED(n) ((n) > 0 ? (n) : 1)

/* What is evaluated, and where; entries that are zero at all points are never written. */
typedef struct {
  const kg_real *p;
  kg_real r[KG_INPUTS], work[KG_WORK];
  kg_real point[KG_POINT_ROWS * KG_RECORD], rest[KG_W * KG_W];
  kg_real path[KG_FILLED(KG_PATHS) * KG_RECORD];
  kg_real end[KG_FILLED(KG_END_VALUES) * KG_RECORD], end_rest[KG_W * KG_W];
} kg_evaluation;

/* The function of a model, the number of its values, and their places in an array. */
typedef struct {
  kg_evaluate function;
  int n;
  const int *places;
} kg_values;

#endif
