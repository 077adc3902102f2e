/* kg_batch.h - evaluates one function of a model at many states, KG_LANES at a time.
 *
 * To be included after the functions of the kernel on lanes. KG_BATCH_EVALUATE: the function; without it, and in the
 * rows that it leaves, the function of the model is called row by row. The results of a row do not depend on other rows,
 * nor on its place among them.
 */
#ifndef KG_BATCH_H
#define KG_BATCH_H

#include "kg_rows.h"

/* Rows ahead of the present ones that are fetched from memory: processors follow fewer streams than models have columns
 * (14 % less time for 20 columns beyond the second-level cache). */
#define KG_AHEAD 32

typedef struct {
  const kg_model *model;
  const kg_function *function;
  const kg_column *arguments; /* t, then q, u, all inputs r, then the varied parameters */
  const kg_column *out;       /* n_out */
  const double *p;            /* parameters and gains */
  const int *varied;          /* n_varied indices in p of parameters with a value for each row */
  const int *needed;          /* n_needed indices in p of constants that must be finite */
  unsigned char *failed;      /* one for each row: becomes 1 where there is no result, which is NaN then */
  int n_out, n_varied, n_needed;
} kg_batch;

/* Work space of a thread: arrays of a block of rows, and of a single row. */
typedef struct {
  kg_lanes *arguments, *p, *work, *out;
  double *row, *prepared, *row_work, *row_out;
  int contiguous;  /* whether each value of a row follows that of the row before, or is the same in all rows */
  kg_mask common;  /* not zero if an argument that is common to all rows is NaN or infinite */
} kg_block;

KG_INLINE int kg_batch_arguments(const kg_batch *b) {
  return 1 + b->model->n_q + b->model->n_u + b->model->n_r + b->model->n_hidden;
}

/* Places the arrays of a block, or with block NULL only counts: the number of doubles. */
static size_t kg_block_place(const kg_batch *b, double *memory, kg_block *block) {
  const size_t n = (size_t)(kg_batch_arguments(b) + b->n_varied), n_p = (size_t)b->model->n_prepared;
  const size_t work = (size_t)b->function->work, n_out = (size_t)b->n_out;
  const size_t values = n + n_p + work + n_out;
  if (block != NULL) {
    const size_t beyond = (size_t)memory % sizeof(kg_lanes) / sizeof(double);
    block->arguments = (kg_lanes *)(void *)(memory + (beyond != 0 ? KG_LANES - beyond : 0));
    block->p = block->arguments + n;
    block->work = block->p + n_p;
    block->out = block->work + work;
    block->row = (double *)(void *)(block->out + n_out);
    block->prepared = block->row + n;
    block->row_work = block->prepared + n_p;
    block->row_out = block->row_work + work;
  }
  return KG_LANES * (values + 1) + values;
}

/* Evaluates one row with the function of the model. */
static __attribute__((cold, noinline)) void kg_batch_row(const kg_batch *b, const kg_block *block, ptrdiff_t row) {
  const kg_model *model = b->model;
  const int n = kg_batch_arguments(b);
  const double *q = block->row + 1, *u = q + model->n_q, *r = u + model->n_u;
  double *p = block->prepared;
  int good;
  for (int i = 0; i < n + b->n_varied; ++i) {
    block->row[i] = b->arguments[i].first[row * b->arguments[i].step];
  }
  good = kg_all_are_finite(n + b->n_varied, block->row);
  if (b->n_varied > 0) {
    (void)memcpy(p, b->p, (size_t)(model->n_p + model->n_g) * sizeof *p);
    for (int i = 0; i < b->n_varied; ++i) {
      p[b->varied[i]] = block->row[n + i];
    }
    model->prepare(p);
    for (int i = 0; i < b->n_needed; ++i) {
      good &= kg_all_are_finite(1, p + b->needed[i]);
    }
  }
  good = good && b->function->evaluate(block->row[0], q, u, r, p, block->row_work, block->row_out) >= 0 &&
         kg_all_are_finite(b->n_out, block->row_out);
  for (int i = 0; i < b->n_out; ++i) {
    b->out[i].first[row * b->out[i].step] = good ? block->row_out[i] : (double)NAN;
  }
  b->failed[row] = good ? 0 : 1;
}

#ifdef KG_BATCH_EVALUATE

/* What is the same in all blocks: common arguments, parameters and constants. */
static void kg_block_start(const kg_batch *b, kg_block *block) {
  block->common = (kg_mask){0};
  block->contiguous = 1;
  for (int i = 0; i < kg_batch_arguments(b) + b->n_varied; ++i) {
    if (b->arguments[i].step == 0) {
      block->arguments[i] = (kg_lanes){0} + b->arguments[i].first[0];
      KG_NOTE_INFINITE(block->common, block->arguments[i]);
    } else if (b->arguments[i].step != 1) {
      block->contiguous = 0;
    }
  }
  for (int i = 0; i < b->n_out; ++i) {
    block->contiguous &= b->out[i].step == 1;
  }
  for (int i = 0; i < b->model->n_prepared; ++i) {
    block->p[i] = (kg_lanes){0} + block->prepared[i];
  }
}

/* Reads KG_LANES rows of contiguous columns. Returns bits that are zero in the lanes with finite values. */
KG_INLINE kg_mask kg_block_load(const kg_batch *b, const kg_block *block, int n, ptrdiff_t row) {
  const kg_column *columns = b->arguments;
  kg_lanes *arguments = block->arguments;
  kg_mask bits = block->common;
  for (int i = 0; i < n; ++i) {
    if (columns[i].step != 0) {
      kg_lanes x;
      __builtin_prefetch(columns[i].first + row + KG_AHEAD, 0);
      (void)memcpy(&x, columns[i].first + row, sizeof x);
      KG_NOTE_INFINITE(bits, x);
      arguments[i] = x;
    }
  }
  return bits;
}

KG_INLINE kg_mask kg_block_store(const kg_batch *b, const kg_block *block, ptrdiff_t row, kg_mask bits) {
  const kg_column *columns = b->out;
  const kg_lanes *out = block->out;
  for (int i = 0; i < b->n_out; ++i) {
    const kg_lanes x = out[i];
    KG_NOTE_INFINITE(bits, x);
    __builtin_prefetch(columns[i].first + row + KG_AHEAD, 1);
    (void)memcpy(columns[i].first + row, &x, sizeof x);
  }
  return bits;
}

/* The same for `count` rows with any distances; lanes without a row repeat the last one. */
static kg_mask kg_block_gather(const kg_batch *b, const kg_block *block, int n, ptrdiff_t row, int count) {
  kg_mask bits = block->common;
  for (int i = 0; i < n; ++i) {
    const kg_column column = b->arguments[i];
    kg_lanes x;
    if (column.step == 0) {
      continue;
    }
    for (int lane = 0; lane < KG_LANES; ++lane) {
      x[lane] = column.first[(row + (lane < count ? lane : count - 1)) * column.step];
    }
    KG_NOTE_INFINITE(bits, x);
    block->arguments[i] = x;
  }
  return bits;
}

static kg_mask kg_block_scatter(const kg_batch *b, const kg_block *block, ptrdiff_t row, int count, kg_mask bits) {
  for (int i = 0; i < b->n_out; ++i) {
    const kg_column column = b->out[i];
    const kg_lanes x = block->out[i];
    KG_NOTE_INFINITE(bits, x);
    for (int lane = 0; lane < count; ++lane) {
      column.first[(row + lane) * column.step] = x[lane];
    }
  }
  return bits;
}

/* The parameters of a block with varied parameters, and its constants. Returns the lanes without a result. */
KG_INLINE kg_mask kg_block_prepare(const kg_batch *b, const kg_block *block) {
  const kg_lanes *values = block->arguments + kg_batch_arguments(b);
  kg_mask bits = {0}, redo;
  for (int i = 0; i < b->n_varied; ++i) {
    block->p[b->varied[i]] = values[i];
  }
  redo = prepare(block->p);
  for (int i = 0; i < b->n_needed; ++i) {
    KG_NOTE_INFINITE(bits, block->p[b->needed[i]]);
  }
  return redo | (bits != 0);
}

/* Evaluates the rows from `row` on, at most KG_LANES. */
KG_INLINE void kg_batch_block(const kg_batch *b, const kg_block *block, int n, ptrdiff_t row, int count) {
  const kg_lanes *q = block->arguments + 1, *u = q + b->model->n_q, *r = u + b->model->n_u;
  const int whole = block->contiguous && count == KG_LANES;
  kg_mask bits = whole ? kg_block_load(b, block, n, row) : kg_block_gather(b, block, n, row, count);
  kg_mask redo = {0};
  long long any = 0;
  if (b->n_varied > 0) {
    redo |= kg_block_prepare(b, block);
  }
  redo |= KG_BATCH_EVALUATE(block->arguments[0], q, u, r, block->p, block->work, block->out);
  bits = whole ? kg_block_store(b, block, row, bits) : kg_block_scatter(b, block, row, count, bits);
  redo |= bits != 0;
  for (int lane = 0; lane < KG_LANES; ++lane) {
    any |= redo[lane];
  }
  for (int lane = 0; any != 0 && lane < count; ++lane) {
    if (redo[lane] != 0) {
      kg_batch_row(b, block, row + lane);
    }
  }
}

#endif

/* The number of doubles in the memory of a thread. */
KG_EXPORT size_t kg_batch_memory(const kg_batch *b) { return kg_block_place(b, NULL, NULL); }

/* Evaluates the rows from `row` to `end`. */
KG_EXPORT void kg_batch_run(const kg_batch *b, double *memory, ptrdiff_t row, ptrdiff_t end) {
  kg_block block;
  (void)kg_block_place(b, memory, &block);
  (void)memcpy(block.prepared, b->p, (size_t)(b->model->n_p + b->model->n_g) * sizeof(double));
  b->model->prepare(block.prepared);
#ifdef KG_BATCH_EVALUATE
  const int n = kg_batch_arguments(b) + b->n_varied;
  kg_block_start(b, &block);
  for (; row < end; row += KG_LANES) {
    kg_batch_block(b, &block, n, row, end - row < KG_LANES ? (int)(end - row) : KG_LANES);
  }
#else
  for (; row < end; ++row) {
    kg_batch_row(b, &block, row);
  }
#endif
}

KG_EXPORT const kg_function *kg_batch_function(const kg_model *model, const char *name) {
  return kg_find_function(model, name);
}

#endif
