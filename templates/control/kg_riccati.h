/* kg_riccati.h - the step of a program of kg_stage_program.h without its sides, by Riccati's recursion.
 *
 * With changes of w from the iterate, the cost from stage k on is x^T P x / 2 + p^T x. With M = H + B^T P' B and
 * m = G + B^T (P' d + p'), where P' and p' belong to the next stage and d is the defect, the inputs minimize
 * w^T M w / 2 + m^T w. A Cholesky factorization of the part of the
 * inputs eliminates them (Rao, Wright and Rawlings 1998, "Application of interior-point methods to model predictive
 * control"; Frison and Diehl 2020, "HPIPM: a high-performance quadratic programming framework for model predictive
 * control"). Factors and vectors are separate, so that several gradients share the factors.
 */
#ifndef KG_RICCATI_H
#define KG_RICCATI_H

#include "kg_stage_program.h"

/* Cholesky factor of the leading KG_U rows of M, and what it leaves of the others. A pivot that is negligible or negative
 * is replaced: the input then stays near its present value. */
static inline void kg_eliminate_inputs(kg_horizon_stage *S, kg_real *M) {
  for (int j = 0; j < KG_U; ++j) {
    const kg_real size = KG_ABS(M[j * KG_W + j]);
    kg_real pivot = M[j * KG_W + j];
    for (int k = 0; k < j; ++k) {
      pivot -= S->Lu[j * KG_U + k] * S->Lu[j * KG_U + k];
    }
    if (!(pivot > KG_C(64.0) * KG_EPSILON * size)) {
      pivot = size > KG_C(0.0) ? size : KG_C(1.0);
    }
    const kg_real inverse = KG_C(1.0) / KG_SQRT(pivot);
    S->Lu[j * KG_U + j] = inverse;
    for (int i = j + 1; i < KG_W; ++i) {
      kg_real *row = i < KG_U ? S->Lu + i * KG_U : S->Lx + (i - KG_U) * KG_U;
      kg_real sum = M[i * KG_W + j];
      for (int k = 0; k < j; ++k) {
        sum -= row[k] * S->Lu[j * KG_U + k];
      }
      row[j] = sum * inverse;
    }
  }
  for (int i = 0; i < KG_X; ++i) {
    for (int j = 0; j <= i; ++j) {
      kg_real sum = M[(KG_U + i) * KG_W + KG_U + j];
      for (int k = 0; k < KG_U; ++k) {
        sum -= S->Lx[i * KG_U + k] * S->Lx[j * KG_U + k];
      }
      S->P[i * KG_X + j] = sum;
      S->P[j * KG_X + i] = sum;
    }
  }
}

/* M += B^T P B with P of the next stage. */
static inline void kg_add_future(const kg_horizon_stage *S, const kg_real *P, kg_real *M) {
  kg_real PB[KG_X * KG_W];
  for (int i = 0; i < KG_X; ++i) {
    kg_real *row = PB + i * KG_W;
    for (int j = 0; j < KG_W; ++j) {
      row[j] = KG_C(0.0);
    }
    for (int k = 0; k < KG_X; ++k) {
      const kg_real factor = P[i * KG_X + k];
      for (int j = 0; j < KG_W; ++j) {
        row[j] += factor * S->B[k * KG_W + j];
      }
    }
  }
  for (int i = 0; i < KG_W; ++i) {
    for (int k = 0; k < KG_X; ++k) {
      const kg_real factor = S->B[k * KG_W + i];
      for (int j = 0; j < KG_W; ++j) {
        M[i * KG_W + j] += factor * PB[k * KG_W + j];
      }
    }
  }
}

/* Factors of stage k; M (KG_W x KG_W) is H with the weights of the sides, and is overwritten. */
static inline void kg_factor(kg_program *Q, int k, kg_real *M) {
  kg_horizon_stage *S = Q->stage + k;
  if (k < KG_INTERVALS) {
    kg_add_future(S, Q->stage[k + 1].P, M);
    kg_eliminate_inputs(S, M);
    return;
  }
  for (int i = 0; i < KG_X; ++i) {
    for (int j = 0; j < KG_X; ++j) {
      S->P[i * KG_X + j] = M[(KG_U + i) * KG_W + KG_U + j];
    }
  }
}

/* p and l of a stage before the last one, from its gradient G. */
static inline void kg_back(const kg_horizon_stage *after, kg_horizon_stage *S) {
  kg_real m[KG_W], v[KG_X];
  for (int i = 0; i < KG_X; ++i) {
    v[i] = after->p[i];
    for (int j = 0; j < KG_X; ++j) {
      v[i] += after->P[i * KG_X + j] * S->defect[j];
    }
  }
  for (int j = 0; j < KG_W; ++j) {
    m[j] = S->G[j];
  }
  for (int i = 0; i < KG_X; ++i) {
    for (int j = 0; j < KG_W; ++j) {
      m[j] += S->B[i * KG_W + j] * v[i];
    }
  }
  for (int j = 0; j < KG_U; ++j) {
    for (int k = 0; k < j; ++k) {
      m[j] -= S->Lu[j * KG_U + k] * S->l[k];
    }
    S->l[j] = m[j] * S->Lu[j * KG_U + j];
  }
  for (int i = 0; i < KG_X; ++i) {
    S->p[i] = m[KG_U + i];
    for (int k = 0; k < KG_U; ++k) {
      S->p[i] -= S->Lx[i * KG_U + k] * S->l[k];
    }
  }
}

/* The inputs of a stage from its states, and the states of the next one; both in `step`. */
static inline void kg_ahead(kg_horizon_stage *S, kg_horizon_stage *after) {
  const kg_real *x = S->step + KG_U;
  for (int j = KG_U - 1; j >= 0; --j) {
    kg_real sum = S->l[j];
    for (int i = 0; i < KG_X; ++i) {
      sum += S->Lx[i * KG_U + j] * x[i];
    }
    for (int k = j + 1; k < KG_U; ++k) {
      sum += S->Lu[k * KG_U + j] * S->step[k];
    }
    S->step[j] = -sum * S->Lu[j * KG_U + j];
  }
  for (int i = 0; i < KG_X; ++i) {
    kg_real sum = S->defect[i];
    for (int j = 0; j < KG_W; ++j) {
      sum += S->B[i * KG_W + j] * S->step[j];
    }
    after->step[KG_U + i] = sum;
  }
}

/* The steps for the gradients G and the states of the first stage, which stand in its `step`. */
static inline void kg_sweep(kg_program *Q) {
  kg_horizon_stage *last = Q->stage + KG_INTERVALS;
  for (int i = 0; i < KG_X; ++i) {
    last->p[i] = last->G[KG_U + i];
  }
  for (int k = KG_INTERVALS - 1; k >= 0; --k) {
    kg_back(Q->stage + k + 1, Q->stage + k);
  }
  for (int k = 0; k < KG_INTERVALS; ++k) {
    kg_ahead(Q->stage + k, Q->stage + k + 1);
  }
}

#endif
