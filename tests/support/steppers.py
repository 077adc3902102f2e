"""A host of the C steppers for the tests: problems in C with known solutions, and the loop over the steps."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ccompile import shared_library
from numpy.typing import ArrayLike, NDArray

METHODS = {"rk4": 0, "kutta_merson": 1, "dopri5": 2, "dop853": 3, "rodas": 4}
FINISHED, COLLAPSED, TOO_MANY, NOT_FINITE, FAILED, INVALID = 2, -10, -11, -12, -13, -15
SINGULAR, OWN_STATUS = -1, -100

# Problems by number. Each `rhs` that fails does so beyond t = 1.
SMOOTH, BLOW_UP, SINGULAR_AFTER, OWN_FAILURE, NAN_AFTER, REPARTITIONS, CONSTANT, JUMP, WALL = range(9)
STIFF, VAN_DER_POL = 9, 10

SOURCE = r"""
#include "kg_steppers.h"

static int rhs(void *context, double t, const double *y, double *dydt) {
  switch (*(const int *)context) {
    case 0: /* 1 / (1 + t^2), exp(sin t), cos t, -sin t */
      dydt[0] = -2.0 * t * y[0] * y[0];
      dydt[1] = y[1] * cos(t);
      dydt[2] = y[3];
      dydt[3] = -y[2];
      return KG_OK;
    case 1: /* 1 / (1 - t) */
      dydt[0] = y[0] * y[0];
      return KG_OK;
    case 2:
      dydt[0] = -y[0];
      return t > 1.0 ? KG_SINGULAR : KG_OK;
    case 3:
      dydt[0] = -y[0];
      return t > 1.0 ? -100 : KG_OK;
    case 4:
      dydt[0] = -y[0] * (t > 1.0 ? sqrt(1.0 - t) : 1.0);
      return KG_OK;
    case 5:
      dydt[0] = -y[0];
      return KG_REPARTITIONED;
    case 6:
      dydt[0] = 0.0;
      dydt[1] = 1.0;
      return KG_OK;
    case 7:
      dydt[0] = t < 1.0 ? 1.0 : -1.0;
      return KG_OK;
    case 8: /* short of 1000, steps of 1e-14 still change t, but y no longer */
      dydt[0] = 1.0 + 0.1 * sin(t);
      return y[0] > 1000.0 ? KG_SINGULAR : KG_OK;
    case 9: /* cos t (Prothero and Robinson) */
      dydt[0] = -1e6 * (y[0] - cos(t)) - sin(t);
      return KG_OK;
    default: /* van der Pol's equation as in Hairer and Wanner, section IV.1 */
      dydt[0] = y[1];
      dydt[1] = ((1.0 - y[0] * y[0]) * y[1] - y[0]) * 1e6;
      return KG_OK;
  }
}

static int jacobian(void *context, double t, const double *y, const double *dydt, double *J, double *dfdt) {
  const int problem = *(const int *)context;
  const int n = problem == 0 ? 4 : problem == 6 || problem == 10 ? 2 : 1;
  (void)dydt;
  memset(J, 0, (size_t)(n * n) * sizeof *J);
  memset(dfdt, 0, (size_t)n * sizeof *dfdt);
  switch (problem) {
    case 0:
      J[0] = -4.0 * t * y[0];
      J[5] = cos(t);
      J[11] = 1.0;
      J[14] = -1.0;
      dfdt[0] = -2.0 * y[0] * y[0];
      dfdt[1] = -y[1] * sin(t);
      break;
    case 1:
      J[0] = 2.0 * y[0];
      break;
    case 6:
    case 7:
      break;
    case 8:
      dfdt[0] = 0.1 * cos(t);
      break;
    case 9:
      J[0] = -1e6;
      dfdt[0] = -1e6 * sin(t) - cos(t);
      break;
    case 10:
      J[1] = 1.0;
      J[2] = (-2.0 * y[0] * y[1] - 1.0) * 1e6;
      J[3] = (1.0 - y[0] * y[0]) * 1e6;
      break;
    default:
      J[0] = -1.0;
      break;
  }
  return KG_OK;
}

typedef struct {
  int steps;          /* stored steps; t_out has one value more */
  int capacity;
  double *t_out;      /* capacity + 1 */
  double *y_out;      /* (capacity + 1) x n */
  double *dense;      /* NULL, or capacity x rows x n */
  int queries;
  const double *t_query;
  double *y_query;    /* queries x n */
  int rhs_status;
} record;

static int store(kg_stepper *s, record *r, int *next) {
  const ptrdiff_t n = s->ode.n;
  int status = KG_OK;
  while (status == KG_OK && *next < r->queries && (r->t_query[*next] - s->t) * s->direction <= 0.0) {
    status = kg_stepper_interpolate(s, r->t_query[*next], r->y_query + *next * n);
    ++*next;
  }
  if (status == KG_OK && r->dense) {
    const ptrdiff_t size = kg_dense_rows(s->options.method) * n;
    status = kg_stepper_dense(s);
    memcpy(r->dense + r->steps * size, s->dense, (size_t)size * sizeof(double));
  }
  ++r->steps;
  r->t_out[r->steps] = s->t;
  memcpy(r->y_out + r->steps * n, s->y, (size_t)n * sizeof(double));
  return status;
}

int integrate(int problem, int n, const kg_stepper_options *options, double t0, double t_end,
              const double *y0, double *work, record *r, kg_statistics *statistics) {
  kg_ode ode;
  kg_stepper s;
  int next = 0;
  int status;
  ode.n = n;
  ode.rhs = rhs;
  ode.jacobian = jacobian;
  ode.context = &problem;
  status = kg_stepper_start(&s, &ode, options, t0, y0, t_end, work);
  r->t_out[0] = t0;
  memcpy(r->y_out, y0, (size_t)n * sizeof(double));
  while (status == KG_OK && r->steps < r->capacity) {
    status = kg_stepper_step(&s);
    if (status >= 0 && store(&s, r, &next) != KG_OK) {
      return KG_INVALID_ARGUMENT;
    }
  }
  r->rhs_status = s.rhs_status;
  *statistics = s.statistics;
  return status;
}

size_t workspace(int method, int n) { return kg_stepper_work(method, n); }
int dense_rows(int method) { return kg_dense_rows(method); }
void evaluate(int rows, int n, const double *dense, double t_old, double h, double t, double *y) {
  kg_dense_evaluate(rows, n, dense, t_old, h, t, y);
}
const char *message(int status) { return kg_status_message(status); }

int single_steps(int kutta_merson, int steps, double h, double *y, double *error) {
  double work[KG_KUTTA_MERSON_WORK(4)], y_new[4];
  int problem = 0;
  kg_ode ode;
  ode.n = 4;
  ode.rhs = rhs;
  ode.jacobian = NULL;
  ode.context = &problem;
  for (int i = 0; i < steps; ++i) {
    const int status = kutta_merson ? kg_kutta_merson_step(&ode, i * h, h, y, y_new, error, work)
                                    : kg_rk4_step(&ode, i * h, h, y, y_new, work);
    if (status != KG_OK) {
      return status;
    }
    memcpy(y, y_new, sizeof y_new);
  }
  return KG_OK;
}
"""

Floats = NDArray[np.float64]
Pointer = ctypes.POINTER(ctypes.c_double)


class Options(ctypes.Structure):
    _fields_ = (
        ("method", ctypes.c_int),
        ("step", ctypes.c_double),
        ("first_step", ctypes.c_double),
        ("max_step", ctypes.c_double),
        ("max_steps", ctypes.c_longlong),
        ("rtol", Pointer),
        ("atol", Pointer),
    )


class Statistics(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_longlong) for name in ("steps", "rejected", "evaluations", "repartitions")),
        *((name, ctypes.c_double) for name in ("smallest_step", "largest_step", "last_step", "largest_error")),
        *((name, ctypes.c_longlong) for name in ("jacobians", "factorizations")),
    )


class Record(ctypes.Structure):
    _fields_ = (
        ("steps", ctypes.c_int),
        ("capacity", ctypes.c_int),
        ("t_out", Pointer),
        ("y_out", Pointer),
        ("dense", Pointer),
        ("queries", ctypes.c_int),
        ("t_query", Pointer),
        ("y_query", Pointer),
        ("rhs_status", ctypes.c_int),
    )


@dataclass(frozen=True)
class Run:
    """One integration: status, accepted points, values at the queried times, dense rows, statistics."""

    status: int
    rhs_status: int
    t: Floats
    y: Floats
    queried: Floats
    dense: Floats
    statistics: Any


class Host:
    """The compiled steppers."""

    def __init__(self, folder: Path) -> None:
        self.library = shared_library(SOURCE, folder)
        self.library.workspace.restype = ctypes.c_size_t
        self.library.message.restype = ctypes.c_char_p

    def message(self, status: int) -> str:
        return str(self.library.message(status).decode())

    def integrate(
        self,
        method: str,
        problem: int,
        y0: Sequence[float],
        t0: float,
        t_end: float,
        *,
        rtol: ArrayLike = 1e-6,
        atol: ArrayLike = 1e-6,
        step: float = 0.0,
        first_step: float = 0.0,
        max_step: float = 0.0,
        max_steps: int = 0,
        t_eval: ArrayLike = (),
        dense: bool = False,
        capacity: int = 20000,
    ) -> Run:
        n, number = len(y0), METHODS[method]
        start, queries = np.array(y0, float), np.array(t_eval, float)
        tolerances = [np.array(np.broadcast_to(x, (n,)), float) for x in (rtol, atol)]
        options = Options(number, step, first_step, max_step, max_steps, *map(pointer, tolerances))
        rows = self.library.dense_rows(number)
        work = np.full(self.library.workspace(number, n), np.nan)
        t_out, y_out = np.empty(capacity + 1), np.empty((capacity + 1, n))
        queried = np.full((queries.size, n), np.nan)
        stored = np.empty((capacity if dense else 0, rows, n))
        record = Record(
            0,
            capacity,
            pointer(t_out),
            pointer(y_out),
            pointer(stored) if dense else None,
            queries.size,
            pointer(queries),
            pointer(queried),
            0,
        )
        statistics = Statistics()
        status = self.library.integrate(
            problem,
            n,
            ctypes.byref(options),
            ctypes.c_double(t0),
            ctypes.c_double(t_end),
            pointer(start),
            pointer(work),
            ctypes.byref(record),
            ctypes.byref(statistics),
        )
        last = record.steps
        return Run(
            status,
            record.rhs_status,
            t_out[: last + 1],
            y_out[: last + 1],
            queried,
            stored[:last],
            statistics,
        )

    def evaluate(self, run: Run, t: float) -> Floats:
        """The dense output of a run at one time, from its stored rows."""
        direction = 1.0 if run.t[-1] >= run.t[0] else -1.0
        found = int(np.searchsorted(run.t * direction, t * direction, side="left")) - 1
        index = min(max(found, 0), len(run.t) - 2)
        dense = np.ascontiguousarray(run.dense[index])
        y = np.empty(dense.shape[1])
        h = run.t[index + 1] - run.t[index]
        times = (ctypes.c_double(x) for x in (run.t[index], h, t))
        self.library.evaluate(*dense.shape, pointer(dense), *times, pointer(y))
        return y


def pointer(array: Floats) -> Any:
    return array.ctypes.data_as(Pointer)


def exact(t: ArrayLike) -> Floats:
    """Solution of the problem SMOOTH, (n_t, 4)."""
    t = np.asarray(t, float)
    return np.stack([1 / (1 + t**2), np.exp(np.sin(t)), np.cos(t), -np.sin(t)], axis=-1)


def smooth_rhs(t: float, y: Floats) -> Floats:
    return np.array([-2 * t * y[0] ** 2, y[1] * np.cos(t), y[3], -y[2]])
