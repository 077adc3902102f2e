/* kg_model.h - describes a generated model to the program that loads it.
 *
 * A generated kernel defines one kg_model and returns it from kg_get_model(). All functions are reentrant:
 * they allocate nothing and use no global variables; the caller owns every array.
 */
#ifndef KG_MODEL_H
#define KG_MODEL_H

#include "kg_base.h"
#include "kg_codes.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KG_ABI 6

/* Where functions of a model are evaluated: the argument of all of them. Arrays of length 0 may be NULL. Code on vector
 * lanes has the same record with lanes in place of numbers (kg_lanes.h). */
typedef struct {
  kg_real t;
  const kg_real *q;      /* n_q coordinates */
  const kg_real *u;      /* n_u speeds */
  const kg_real *s;      /* n_s states; they follow u, as u follows q, in the y of an integration */
  const kg_real *r;      /* n_r inputs */
  const kg_real *forces; /* n_rows multipliers of the contact rows */
  const kg_real *free;   /* n_free values of the free vector of servo-constraints */
} kg_point;

/* One compiled function of the model: out = f(at; p). p: n_prepared values filled by prepare(); work: `work` values of
 * scratch; out: rows values (cols == 0) or rows * cols values, row-major. Arrays must not overlap. */
#define KG_ARGUMENTS                                                                                     \
  const kg_point *KG_RESTRICT at, const kg_real *KG_RESTRICT p, kg_real *KG_RESTRICT work, kg_real *KG_RESTRICT out
typedef int (*kg_evaluate)(KG_ARGUMENTS);

typedef struct {
  const char *name;
  int rows;
  int cols; /* 0: a vector of length rows; rows == -1 (with cols == 0): a scalar, out has one value */
  int work;
  kg_evaluate evaluate;
} kg_function;

/* One contact: its rows among the n_rows contact rows of the model (kg_contact.h). */
typedef struct {
  const char *name;
  int law;        /* KG_LAW_... */
  int level;      /* 2: the gap is a position, 1: a velocity */
  int normal;     /* row of the gap; -1: none */
  int tangent;    /* first row of the slip velocity; -1: none */
  int directions; /* of the slip velocity: 0, 1 or 2 rows */
  int flags;      /* 1: a latch is closed when a run starts; the rest: kg_paradox_of() */
} kg_contact_info;

/* What happens where the friction of a contact has no stable solution with finite forces: KG_PARADOX_... */
static inline int kg_paradox_of(const kg_contact_info *info) { return info->flags / 2; }

/* One event of the user: its guard is an entry of the function `events`. */
typedef struct {
  const char *name;
  int direction; /* of the sign change: +1 rising, -1 falling, 0 both */
  int terminal;
  int impulse; /* row of the function `impulses`; -1: none */
  int n_impose;
  const int *impose; /* latches that close */
  int n_remove;
  const int *remove; /* latches that open */
  int multipliers; /* the guard reads contact multipliers */
} kg_event_info;

/* A function a of time and parameters, at the levels of which something that runs evaluate jumps or has a kink. The
 * function `switches` has a row for each: a, then da/dt, or the rate of the fastest angle in a curved one. */
typedef struct {
  int shape;    /* KG_SWITCH_... */
  int n_levels; /* 0: every integer */
  const kg_real *levels; /* ascending */
} kg_switch_info;

/* An argument of a table that has values between two numbers. The function `tables` has a row for each: the argument, and
 * whether it is inside of the table, or the table is not needed at this state. */
typedef struct {
  const char *label; /* "the spline 'lift'" */
  kg_real lowest;
  kg_real highest;
} kg_table_info;

typedef struct {
  int abi; /* KG_ABI of the generator */
  const char *name;
  const char *digest;
  int n_q;
  int n_u;
  int n_s; /* states: y = (q, u, s), and `rhs` evaluates (q', u', s') */
  int n_r;
  int n_p;        /* p[0 .. n_p): parameters */
  int n_g;        /* p[n_p .. n_p + n_g): stabilization gains */
  int n_prepared; /* length of p: parameters, gains, then constants filled by prepare() */
  const char *const *coordinates;
  const char *const *speeds;
  const char *const *states;
  const char *const *inputs;
  const char *const *parameters;
  void (*prepare)(kg_real *p);
  int n_functions;
  const kg_function *functions;
  int n_rows; /* contact rows */
  int n_free; /* values of the free vector of servo-constraints */
  int n_contacts;
  const kg_contact_info *contacts;
  int n_events;
  const kg_event_info *events;
  int n_switches;
  const kg_switch_info *switches;
  int n_tables;
  const kg_table_info *tables;
  const int *angles; /* n_q flags: constraints contain the sine or cosine of the coordinate; NULL: none */
} kg_model;

const kg_model *kg_get_model(void);

/* The function of this name, or NULL. */
static inline const kg_function *kg_find_function(const kg_model *model, const char *name) {
  for (int i = 0; i < model->n_functions; ++i) {
    if (strcmp(model->functions[i].name, name) == 0) {
      return model->functions + i;
    }
  }
  return NULL;
}

/* The table to name after KG_OUTSIDE_TABLE: the first one that this state needs beyond its ends, else the one whose
 * argument is nearest to an end, which the motion leaves; -1: there is none. work: scratch of the function `tables`;
 * rows: 2 * n_tables values, which it writes. */
static inline int kg_outside_table(const kg_model *model, const kg_point *at, const kg_real *p, kg_real *work,
                                   kg_real *rows) {
  const kg_function *tables = kg_find_function(model, "tables");
  kg_real least = KG_C(1.0);
  int found = -1;
  if (tables == NULL || tables->evaluate(at, p, work, rows) < 0) {
    return -1;
  }
  for (int i = 0; i < model->n_tables; ++i) {
    const kg_table_info *table = model->tables + i;
    const int place = 2 * i; /* of the argument, before whether the state may have it */
    const kg_real x = rows[place], rest = KG_MIN(x - table->lowest, table->highest - x);
    const kg_real length = table->highest - table->lowest;
    const kg_real part = KG_ISFINITE(length) ? rest / length : rest;
    if (rows[place + 1] == KG_C(0.0)) {
      return i;
    }
    if (part < least) {
      least = part;
      found = i;
    }
  }
  return found;
}

/* Sets the time and the state y = (q, u, s) of a point. */
static inline void kg_point_place(kg_point *at, const kg_model *model, kg_real t, const kg_real *y) {
  at->t = t;
  at->q = y;
  at->u = y + model->n_q;
  at->s = at->u + model->n_u;
}

#ifdef __cplusplus
}
#endif

#endif
