/* stage_program.c - access to kg_interior.h: a program with general data, solved.
 *
 * KG_X, KG_U, KG_INTERVALS, KG_STAGE_ROWS, KG_GENERAL, KG_SIDES are parameters of the compilation. */
#include "kg_stage_program.h"

static kg_bounds first, middle, last;

static inline const kg_bounds *kg_bounds_of(int stage) {
  return stage == 0 ? &first : stage < KG_INTERVALS ? &middle : &last;
}

#include "kg_convex.h"
#include "kg_interior.h"

static kg_program program;

/* The sides of the first, middle and last stages: numbers of rows and sides, places of rows, sides. */
void set_sides(int which, int n_rows, int n_sides, const int *rows, const kg_side *sides) {
  kg_bounds *bounds = which == 0 ? &first : which == 1 ? &middle : &last;
  bounds->n_rows = n_rows;
  bounds->n_sides = n_sides;
  bounds->rows = rows;
  bounds->sides = sides;
}

/* The stages, one after the other: H, g, B, b, C, value. Returns the iterations, negative if it was not solved. */
int solve(const double *data, const double *x, double tolerance, int most, double *w) {
  kg_progress done;
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    kg_horizon_stage *S = program.stage + k;
    kg_real *const parts[6] = {S->H, S->g, S->B, S->b, S->C, S->value};
    const int lengths[6] = {KG_W * KG_W, KG_W, KG_X * KG_W, KG_X, KG_GENERAL * KG_W, KG_STAGE_ROWS};
    for (int part = 0; part < 6; ++part) {
      for (int i = 0; i < lengths[part]; ++i) {
        parts[part][i] = *data++;
      }
    }
  }
  for (int i = 0; i < KG_X; ++i) {
    program.stage[0].step[KG_U + i] = x[i];
  }
  done = kg_solve(&program, tolerance, most);
  for (int k = 0; k <= KG_INTERVALS; ++k) {
    for (int i = 0; i < KG_W; ++i) {
      *w++ = program.stage[k].w[i];
    }
  }
  return done.solved == 1 ? done.iterations : -1 - done.iterations;
}

void make_convex(double *H) { kg_make_convex(H); }
