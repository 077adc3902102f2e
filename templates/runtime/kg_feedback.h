/* kg_feedback.h - computes inputs from the state: continuously, or at samples that are held from one to the next.
 *
 * kg_host.h uses it in runs. A loop that takes its own steps calls kg_feedback_tick() before each of them. Nothing is
 * allocated.
 */
#ifndef KG_FEEDBACK_H
#define KG_FEEDBACK_H

#include "kg_clock.h"
#include "kg_model.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Inputs that a function of the model computes together. */
typedef struct {
  kg_evaluate function; /* NULL: the host computes them (kg_feedback.source) */
  int n;                /* inputs */
  int clock;            /* index of the clock of their samples; -1: they are computed continuously */
  const int *slots;     /* indices of the inputs in r, n of them */
  const int *places;    /* and in the values of the function; NULL: the first ones */
  const kg_real *low;   /* limits; NULL: none */
  const kg_real *high;
  const kg_real *before; /* what acts before the first sample does; NaN, or NULL: the first sample, at once */
  const kg_real *first;  /* the first sample, if it is known; else NULL */
  int in_place;          /* continuous, without limits, and with slots that follow each other: the function writes to r */
} kg_law;

typedef struct {
  int n_laws;
  int n_clocks;
  const kg_law *laws;
  kg_clock *clocks;
  int width;        /* inputs of all laws */
  int waiting;      /* the last samples that are kept: those that do not act yet, and one more */
  const kg_real *p;
  kg_real *r;       /* n_r */
  kg_real *work;    /* scratch of the functions */
  kg_real *values;  /* scratch: the values of a function */
  kg_real *held;    /* width: what acts, law after law */
  kg_real *samples; /* waiting rows of width values */
  int (*source)(void *host, int law, const kg_point *at, kg_real *values); /* computes the values of a law; or NULL */
  void *host;       /* handed to it */
} kg_feedback;

/* Computes the values of one law at a point. */
static inline int kg_law_compute(const kg_feedback *f, const kg_law *law, const kg_point *at, kg_real *inputs) {
  const int status = law->function ? law->function(at, f->p, f->work, f->values)
                                   : f->source(f->host, (int)(law - f->laws), at, f->values);
  for (int k = 0; k < law->n && status >= 0; ++k) {
    const kg_real value = f->values[law->places ? law->places[k] : k]; /* NaN stays NaN */
    const kg_real above = law->low && value < law->low[k] ? law->low[k] : value;
    inputs[k] = law->high && above > law->high[k] ? law->high[k] : above;
  }
  return status;
}

/* Writes the inputs of a point into its r, in which a law reads those of the laws before it. */
static inline int kg_feedback_inputs(const kg_feedback *f, const kg_point *at) {
  kg_real *held = f->held;
  int status = KG_OK;
  for (const kg_law *law = f->laws; law < f->laws + f->n_laws && status >= 0; ++law) {
    if (law->in_place) {
      status = law->function(at, f->p, f->work, f->r + law->slots[0]);
    } else {
      status = law->clock < 0 ? kg_law_compute(f, law, at, held) : KG_OK;
      for (int k = 0; k < law->n && status >= 0; ++k) {
        f->r[law->slots[k]] = held[k];
      }
    }
    held += law->n;
  }
  return status;
}

/* The row of sample k. */
static inline kg_real *kg_feedback_row(const kg_feedback *f, long long k) {
  return f->samples + (ptrdiff_t)(k % f->waiting) * f->width;
}

/* Lets the oldest sample of a clock that waits act; kg_clock.acting counts it afterwards. */
static inline void kg_feedback_act(const kg_feedback *f, int clock) {
  const kg_real *row = kg_feedback_row(f, f->clocks[clock].acting);
  ptrdiff_t first = 0;
  for (const kg_law *law = f->laws; law < f->laws + f->n_laws; ++law) {
    if (law->clock == clock) {
      memcpy(f->held + first, row + first, (size_t)law->n * sizeof *row);
    }
    first += law->n;
  }
}

/* Computes the first sample of a law. It acts where nothing else does before. */
static inline int kg_law_begin(const kg_feedback *f, const kg_law *law, const kg_point *at, kg_real *row, kg_real *held) {
  int status = KG_OK;
  if (law->first) {
    memcpy(row, law->first, (size_t)law->n * sizeof *row);
  } else {
    status = kg_law_compute(f, law, at, row);
  }
  for (int k = 0; k < law->n && status >= 0; ++k) {
    held[k] = law->before && law->before[k] == law->before[k] ? law->before[k] : row[k];
  }
  return status;
}

/* Computes the next sample of a clock at a point with the present inputs; kg_clock.taken counts it afterwards. */
static inline int kg_feedback_sample(const kg_feedback *f, int clock, const kg_point *at) {
  const int is_first = f->clocks[clock].taken == 0;
  kg_real *row = kg_feedback_row(f, f->clocks[clock].taken), *held = f->held;
  int status = KG_OK;
  for (const kg_law *law = f->laws; law < f->laws + f->n_laws && status >= 0; ++law) {
    if (law->clock == clock) {
      status = is_first ? kg_law_begin(f, law, at, row, held) : kg_law_compute(f, law, at, row);
    }
    row += law->n;
    held += law->n;
  }
  return status;
}

/* Begins anew: no samples have been taken, and until then the present inputs are held. */
static inline void kg_feedback_start(const kg_feedback *f) {
  kg_real *held = f->held;
  for (const kg_law *law = f->laws; law < f->laws + f->n_laws; ++law) {
    for (int k = 0; k < law->n; ++k) {
      *held++ = f->r[law->slots[k]];
    }
  }
  for (int k = 0; k < f->n_clocks; ++k) {
    f->clocks[k].taken = f->clocks[k].acting = 0;
  }
}

/* Takes the samples that are due at a point and lets those act whose delay is over, as kg_run.h does, for a loop that
 * began at t_start; kg_feedback_inputs() is to follow. The laws are evaluated in every call, due or not, so that all
 * calls take the same time. */
static inline int kg_feedback_tick(const kg_feedback *f, kg_real t_start, const kg_point *at) {
  int status = KG_OK;
  for (int k = 0; k < f->n_clocks && status >= 0; ++k) {
    kg_clock *c = f->clocks + k;
    const int is_due = kg_clock_is_due(c, t_start, at->t);
    status = kg_feedback_inputs(f, at);
    status = status < 0 ? status : kg_feedback_sample(f, k, at);
    c->taken += is_due;
    for (int i = 0; i < f->waiting; ++i) {
      const int is_over = kg_clock_is_over(c, t_start, at->t);
      if (is_over) {
        kg_feedback_act(f, k);
      }
      c->acting += is_over;
    }
  }
  return status;
}

#ifdef __cplusplus
}
#endif

#endif
