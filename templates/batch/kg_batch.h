/* kg_batch.h - evaluates one function of a model at many states, KG_LANES at a time.
 *
 * To be included after the functions of the kernel on lanes. KG_BATCH_EVALUATE: the function, with KG_BATCH_Q, KG_BATCH_U,
 * KG_BATCH_R, KG_BATCH_FORCES, KG_BATCH_FREE, KG_BATCH_S and KG_BATCH_OUT, the numbers of its arguments and results; without it, and in the rows that it
 * leaves, the function of the model is called row by row. The results of a row do not depend on other rows, nor on its
 * place among them.
 *
 * Rows are taken in tiles. Columns whose rows are contiguous are read and written where they are; others, and those of a
 * tile that does not fill the lanes, are copied to and from columns in the work space, which stay in the first-level cache.
 */
#ifndef KG_BATCH_H
#define KG_BATCH_H

#include "kg_rows.h"

/* The largest number of rows of a tile, a multiple of the lanes. The processor begins the operations of the next rows of a
 * tile before it has finished those of the last ones, but not those of the next tile. Long tiles, for at most
 * KG_FEW_COLUMNS columns that are read and written where they are, take 8 % less time for 12 columns. */
#define KG_TILE 128
#define KG_LONG_TILE 512
#define KG_FEW_COLUMNS 32

/* Bytes of a line of the cache. */
#define KG_CACHE_LINE 64

/* Rows ahead of the present ones that are fetched from memory: processors follow fewer streams than models have columns
 * (11 % less time for 20 columns beyond the second-level cache). */
#define KG_AHEAD 32

/* With this many rows the first tile is cut short so that the others begin with a line of the cache in the first column
 * of the results: writing vectors across two lines takes twice the time. */
#define KG_MANY_ROWS 256

/* An array with an entry of m x n values for each row, at first + row * step + i * step_m + k * step_n. */
typedef struct {
  double *first;
  ptrdiff_t step, m, step_m, n, step_n;
} kg_array;

typedef struct {
  const kg_model *model;
  const kg_function *function;
  const kg_array *arguments;  /* n_arguments: t, q, u, r, forces, free, s, those with entries, and the varied parameters */
  const kg_array *results;    /* n_results, which follow one another in the result of the function */
  const double *p;            /* parameters and gains */
  const int *varied;          /* n_varied indices in p of parameters with a value for each row */
  const int *needed;          /* n_needed indices in p of constants that must be finite */
  unsigned char *failed;      /* one for each row: becomes 1 where there is no result, which is NaN then */
  int n_arguments, n_results, n_varied, n_needed;
} kg_batch;

/* Work space of a thread: columns of a tile, numbers on lanes, and arrays of a single row. */
typedef struct {
  kg_column *from, *to;    /* the columns of all arguments and results */
  double *arguments, *out; /* those of a tile */
  kg_lanes *p, *work;      /* p: for one block, or with varied parameters for each block of a tile */
  double *row, *prepared, *row_work, *row_out;
  int tile; /* rows of a tile */
} kg_space;

KG_INLINE int kg_batch_arguments(const kg_batch *b) {
  const kg_model *m = b->model;
  return 1 + m->n_q + m->n_u + m->n_r + m->n_rows + m->n_free + m->n_s;
}

KG_INLINE int kg_batch_results(const kg_batch *b) {
  const int rows = b->function->rows, cols = b->function->cols;
  return cols > 0 ? rows * cols : rows < 0 ? 1 : rows;
}

/* Writes the columns of some arrays. */
static void kg_batch_columns(int count, const kg_array *arrays, kg_column *columns) {
  for (const kg_array *a = arrays; a < arrays + count; ++a) {
    for (ptrdiff_t i = 0; i < a->m; ++i) {
      for (ptrdiff_t k = 0; k < a->n; ++k, ++columns) {
        columns->first = a->first + i * a->step_m + k * a->step_n;
        columns->step = a->step;
      }
    }
  }
}

/* Whether the rows of all columns of some arrays follow one another, or are the same number. */
static int kg_are_in_place(int count, const kg_array *arrays) {
  int all = 1;
  for (int i = 0; i < count; ++i) {
    all &= arrays[i].step == 1 || arrays[i].step == 0;
  }
  return all;
}

/* The number of rows of a tile; varied parameters, and constants that depend on them, take memory for each row. */
static int kg_tile_of(const kg_batch *b) {
  const int few = kg_batch_arguments(b) + kg_batch_results(b) <= KG_FEW_COLUMNS && b->n_varied == 0;
  const int in_place = kg_are_in_place(b->n_arguments, b->arguments) && kg_are_in_place(b->n_results, b->results);
  return few && in_place ? KG_LONG_TILE : KG_TILE;
}

/* The number of blocks of lanes with parameters of their own. */
KG_INLINE size_t kg_varied_blocks(const kg_batch *b) { return b->n_varied > 0 ? KG_TILE / KG_LANES : 1; }

/* Places the arrays of a work space, or with space NULL only counts: the number of doubles. */
static size_t kg_space_place(const kg_batch *b, double *memory, kg_space *space) {
  const size_t n = (size_t)(kg_batch_arguments(b) + b->n_varied), n_p = (size_t)b->model->n_prepared;
  const size_t work = (size_t)b->function->work, n_out = (size_t)kg_batch_results(b), tile = (size_t)kg_tile_of(b);
  const size_t line = KG_CACHE_LINE / sizeof(double), p_lanes = n_p * kg_varied_blocks(b);
  if (space != NULL) {
    const size_t beyond = (size_t)memory % KG_CACHE_LINE / sizeof(double);
    space->arguments = memory + (beyond != 0 ? line - beyond : 0);
    space->out = space->arguments + tile * n;
    space->p = (kg_lanes *)(void *)(space->out + tile * n_out);
    space->work = space->p + p_lanes;
    space->row = (double *)(void *)(space->work + work);
    space->prepared = space->row + n;
    space->row_work = space->prepared + n_p;
    space->row_out = space->row_work + work;
    space->from = (kg_column *)(void *)(space->row_out + n_out);
    space->to = space->from + n;
    space->tile = (int)tile;
  }
  return line + tile * (n + n_out) + KG_LANES * (p_lanes + work) + n + n_p + work + n_out +
         (n + n_out) * sizeof(kg_column) / sizeof(double);
}

/* Evaluates one row with the function of the model. Returns whether it failed, as 1 or 0. */
static __attribute__((cold, noinline)) int kg_batch_row(const kg_batch *b, const kg_space *space, ptrdiff_t row) {
  const kg_model *model = b->model;
  const int n = kg_batch_arguments(b), n_out = kg_batch_results(b);
  const double *q = space->row + 1, *u = q + model->n_q, *r = u + model->n_u, *forces = r + model->n_r;
  const double *chosen = forces + model->n_rows; /* the free vector */
  kg_scalar_point at = {0.0, q, u, chosen + model->n_free, r, forces, chosen};
  double *p = space->prepared;
  int good;
  for (int i = 0; i < n + b->n_varied; ++i) {
    space->row[i] = space->from[i].first[row * space->from[i].step];
  }
  good = kg_all_are_finite(n + b->n_varied, space->row);
  if (b->n_varied > 0) {
    (void)memcpy(p, b->p, (size_t)(model->n_p + model->n_g) * sizeof *p);
    for (int i = 0; i < b->n_varied; ++i) {
      p[b->varied[i]] = space->row[n + i];
    }
    model->prepare(p);
    for (int i = 0; i < b->n_needed; ++i) {
      good &= kg_all_are_finite(1, p + b->needed[i]);
    }
  }
  at.t = space->row[0];
  good = good && b->function->evaluate(&at, p, space->row_work, space->row_out) >= 0 &&
         kg_all_are_finite(n_out, space->row_out);
  for (int i = 0; i < n_out; ++i) {
    space->to[i].first[row * space->to[i].step] = good ? space->row_out[i] : (double)NAN;
  }
  b->failed[row] = good ? 0 : 1;
  return good ? 0 : 1;
}

#ifdef KG_BATCH_EVALUATE

/* Where the arguments begin among all of them. */
#define KG_BATCH_AT_R (1 + KG_BATCH_Q + KG_BATCH_U)
#define KG_BATCH_AT_FORCES (KG_BATCH_AT_R + KG_BATCH_R)
#define KG_BATCH_AT_FREE (KG_BATCH_AT_FORCES + KG_BATCH_FORCES)
#define KG_BATCH_AT_S (KG_BATCH_AT_FREE + KG_BATCH_FREE)
#define KG_BATCH_ARGUMENTS (KG_BATCH_AT_S + KG_BATCH_S)

/* Loops over the arguments and results of most models are unrolled, so that these stay in registers. */
#define KG_UNROLLED _Pragma("GCC unroll 32")

KG_INLINE kg_lanes kg_load(const double *from) {
  kg_lanes x;
  (void)memcpy(&x, from, sizeof x);
  return x;
}

/* sum + x[0] x[1] + x[2] x[3] + ..., which is NaN or infinite if one of the n numbers is: half an operation for each, where
 * comparisons and masks take two. x[n] is 1. Products that exceed the range count as infinite, too. */
KG_INLINE kg_lanes kg_products(kg_lanes sum, int n, const kg_lanes *x) {
  KG_UNROLLED
  for (int i = 0; i < n; i += 2) {
    sum += x[i] * x[i + 1];
  }
  return sum;
}

/* The lanes in which x is NaN or infinite. */
KG_INLINE kg_mask kg_infinite(kg_lanes x) { return ~(x - x == KG_C(0.0)); }

/* What is the same in all tiles of a run over `rows` rows: common arguments, parameters and constants. */
static void kg_space_fill(const kg_batch *b, const kg_space *space, ptrdiff_t rows) {
  const int n_p = b->model->n_prepared;
  const int filled = rows < space->tile ? ((int)rows + KG_LANES - 1) / KG_LANES * KG_LANES : space->tile;
  for (int i = 0; i < KG_BATCH_ARGUMENTS + b->n_varied; ++i) {
    for (int k = 0; space->from[i].step == 0 && k < filled; ++k) {
      space->arguments[i * space->tile + k] = space->from[i].first[0];
    }
  }
  for (int i = 0; i < n_p * (int)kg_varied_blocks(b); ++i) {
    space->p[i] = (kg_lanes){0} + space->prepared[i % n_p];
  }
}

/* The columns of the arguments in the tile of `count` rows from `row` on, which are `padded` rows in the work space: the
 * last one is repeated. */
static void kg_tile_arguments(const kg_batch *b, const kg_space *space, ptrdiff_t row, int count, int padded,
                              const double **columns) {
  for (int i = 0; i < KG_BATCH_ARGUMENTS + b->n_varied; ++i) {
    const kg_column column = space->from[i];
    const double *first = column.first + row * column.step;
    double *copy = space->arguments + i * space->tile;
    columns[i] = column.step == 1 && count == padded ? first : copy;
    for (int k = 0; columns[i] == copy && column.step != 0 && k < padded; ++k) {
      copy[k] = first[(k < count ? k : count - 1) * column.step];
    }
  }
}

/* The parameters and constants of the blocks of a tile with varied parameters, and the lanes without a result. */
static void kg_tile_prepare(const kg_batch *b, const kg_space *space, const double *const *columns, int padded,
                            unsigned char *redo) {
  for (int k = 0; k < padded / KG_LANES; ++k) {
    kg_lanes *p = space->p + k * b->model->n_prepared;
    kg_mask without = {0};
    for (int i = 0; i < b->n_varied; ++i) {
      p[b->varied[i]] = kg_load(columns[i] + k * KG_LANES);
      without |= kg_infinite(p[b->varied[i]]);
    }
    without |= prepare(p);
    for (int i = 0; i < b->n_needed; ++i) {
      without |= kg_infinite(p[b->needed[i]]);
    }
    redo[k] = (unsigned char)kg_lanes_bits(without);
  }
}

/* Evaluates the block from row k of a tile on. Returns the lanes that have to be evaluated row by row, as bits. */
KG_INLINE unsigned kg_block_evaluate(const kg_space *space, const kg_lanes *p, const double *const *columns,
                                    double *const *results, int k) {
  kg_lanes x[KG_BATCH_ARGUMENTS + 1], out[KG_BATCH_OUT + 1];
  kg_mask redo;
  x[KG_BATCH_ARGUMENTS] = out[KG_BATCH_OUT] = KG_C(1.0);
  KG_UNROLLED
  for (int i = 0; i < KG_BATCH_ARGUMENTS; ++i) {
    x[i] = kg_load(columns[i] + k);
    __builtin_prefetch(columns[i] + k + KG_AHEAD, 0);
  }
  const kg_point at = {x[0], x + 1, x + 1 + KG_BATCH_Q, x + KG_BATCH_AT_S, x + KG_BATCH_AT_R, x + KG_BATCH_AT_FORCES,
                       x + KG_BATCH_AT_FREE};
  redo = KG_BATCH_EVALUATE(&at, p, space->work, out);
  KG_UNROLLED
  for (int i = 0; i < KG_BATCH_OUT; ++i) {
    (void)memcpy(results[i] + k, out + i, sizeof out[i]);
    __builtin_prefetch(results[i] + k + KG_AHEAD, 1);
  }
  redo |= kg_infinite(kg_products(kg_products(x[0], KG_BATCH_ARGUMENTS - 1, x + 1), KG_BATCH_OUT, out));
  return kg_lanes_bits(redo);
}

/* Evaluates the tile of `count` rows from `row` on. Returns the number of rows that failed. */
static int kg_tile_evaluate(const kg_batch *b, const kg_space *space, const double **columns, double **results,
                             ptrdiff_t row, int count) {
  const int padded = (count + KG_LANES - 1) / KG_LANES * KG_LANES, step_p = b->n_varied > 0 ? b->model->n_prepared : 0;
  unsigned char redo[KG_LONG_TILE / KG_LANES] = {0}; /* bits */
  unsigned some = 0U;
  int failures = 0;
  kg_tile_arguments(b, space, row, count, padded, columns);
  kg_tile_prepare(b, space, columns + KG_BATCH_ARGUMENTS, b->n_varied > 0 ? padded : 0, redo);
  for (int i = 0; i < KG_BATCH_OUT; ++i) {
    const int in_place = space->to[i].step == 1 && count == padded;
    results[i] = in_place ? space->to[i].first + row : space->out + i * space->tile;
  }
  for (int k = 0; k < padded / KG_LANES; ++k) {
    redo[k] |= (unsigned char)kg_block_evaluate(space, space->p + k * step_p, columns, results, k * KG_LANES);
    some |= redo[k];
  }
  for (int i = 0; i < KG_BATCH_OUT; ++i) {
    const kg_column column = space->to[i];
    for (int k = 0; results[i] == space->out + i * space->tile && k < count; ++k) {
      column.first[(row + k) * column.step] = results[i][k];
    }
  }
  for (int k = 0; some != 0U && k < count; ++k) {
    if ((redo[k / KG_LANES] >> (k % KG_LANES) & 1) != 0) {
      failures += kg_batch_row(b, space, row + k);
    }
  }
  return failures;
}

/* The rows of the next tile, at most `tile`. */
static int kg_tile_rows(int tile, const kg_column *result, ptrdiff_t row, ptrdiff_t end, int is_first) {
  const size_t beyond = (size_t)(result->first + row) % KG_CACHE_LINE / sizeof(double);
  if (is_first && beyond != 0 && result->step == 1 && end - row >= KG_MANY_ROWS) {
    return KG_CACHE_LINE / (int)sizeof(double) - (int)beyond;
  }
  if (end - row >= tile) {
    return tile;
  }
  return end - row < KG_LANES ? (int)(end - row) : (int)(end - row) / KG_LANES * KG_LANES;
}

#endif

/* The number of doubles in the memory of a thread. */
KG_EXPORT size_t kg_batch_memory(const kg_batch *b) { return kg_space_place(b, NULL, NULL); }

/* Evaluates the rows from `row` to `end`. Returns the number of rows that failed. */
KG_EXPORT ptrdiff_t kg_batch_run(const kg_batch *b, double *memory, ptrdiff_t row, ptrdiff_t end) {
  kg_space space;
  ptrdiff_t failures = 0;
  (void)kg_space_place(b, memory, &space);
  kg_batch_columns(b->n_arguments, b->arguments, space.from);
  kg_batch_columns(b->n_results, b->results, space.to);
  (void)memcpy(space.prepared, b->p, (size_t)(b->model->n_p + b->model->n_g) * sizeof(double));
  b->model->prepare(space.prepared);
#ifdef KG_BATCH_EVALUATE
  const double *columns[KG_BATCH_ARGUMENTS + KG_BATCH_PARAMETERS];
  double *results[KG_BATCH_OUT];
  kg_space_fill(b, &space, end - row);
  for (int first = 1; row < end; first = 0) {
    const int count = kg_tile_rows(space.tile, space.to, row, end, first);
    failures += kg_tile_evaluate(b, &space, columns, results, row, count);
    row += count;
  }
#else
  for (; row < end; ++row) {
    failures += kg_batch_row(b, &space, row);
  }
#endif
  return failures;
}

#endif
