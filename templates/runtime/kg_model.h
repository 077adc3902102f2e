/* kg_model.h - the description through which any host loads a generated model.
 *
 * A generated kernel defines one kg_model and returns it from kg_get_model(). All functions are reentrant:
 * no allocation, no globals; the caller owns every array.
 */
#ifndef KG_MODEL_H
#define KG_MODEL_H

#include "kg_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KG_ABI 1

/* What an evaluation reports. Negative: the output must not be used. */
#define KG_OK 0
#define KG_REPARTITIONED 1 /* correct, but the dependent speeds of the model were singular here: others were used */
#define KG_RANK_DEFICIENT 3 /* correct, but constraints depend on each other here: the best-fitting u' of least change */
#define KG_SINGULAR (-1)   /* the matrix to be solved is singular to working precision */

/* One compiled function of the model: out = f(t, q, u, r; p).
 * q: n_q, u: n_u, r: n_r values; p: n_prepared values filled by prepare(); work: `work` values of scratch;
 * out: rows values (cols == 0) or rows * cols values, row-major. Arrays must not overlap. */
typedef int (*kg_evaluate)(kg_real t, const kg_real *KG_RESTRICT q, const kg_real *KG_RESTRICT u,
                           const kg_real *KG_RESTRICT r, const kg_real *KG_RESTRICT p,
                           kg_real *KG_RESTRICT work, kg_real *KG_RESTRICT out);

typedef struct {
  const char *name;
  int rows;
  int cols; /* 0: a vector of length rows; rows == -1 (with cols == 0): a scalar, out has one value */
  int work;
  kg_evaluate evaluate;
} kg_function;

typedef struct {
  int abi; /* KG_ABI of the generator */
  const char *name;
  const char *digest;
  int n_q;
  int n_u;
  int n_r;
  int n_p;        /* p[0 .. n_p): parameters */
  int n_g;        /* p[n_p .. n_p + n_g): stabilisation gains */
  int n_prepared; /* length of p: parameters, gains, then constants filled by prepare() */
  const char *const *coordinates;
  const char *const *speeds;
  const char *const *inputs;
  const char *const *parameters;
  void (*prepare)(kg_real *p);
  int n_functions;
  const kg_function *functions;
} kg_model;

const kg_model *kg_get_model(void);

#ifdef __cplusplus
}
#endif

#endif
