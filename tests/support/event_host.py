"""A host of the C search for events: right-hand sides and guards with known zeros, and the loop over the steps."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ccompile import shared_library
from numpy.typing import ArrayLike
from steppers import METHODS, Floats, Options, Pointer, Statistics, pointer

# Rules of guards, and kinds of events.
FALLING, ANY, RISING, CONDITION, IGNORED = -1, 0, 1, 2, 3
CROSSING, TOUCH = 1, 2
# Right-hand sides: y = (t, const); oscillator (cos t, -sin t); a relay x' = -sign(x).
CLOCK, OSCILLATOR, RELAY = range(3)
# Guards of a coefficient c: polynomial of t in y[0], one component minus a constant, sin(c t), the sign of y[0] - c,
# a product of the components, zero.
POLYNOMIAL, COMPONENT, SINE, SIGN, PRODUCT, ZERO = range(6)
# What happens at an event, besides being recorded: nothing, or the second component changes its sign.
NOTHING, FLIP = range(2)

SOURCE = r"""
#include "kg_events.h"

typedef struct { int kind; int size; const double *c; int component; } guard;
typedef struct { int problem; int n; const guard *guards; long evaluations; } setting;
typedef struct { double t; int guard; int kind; double g; double y[2]; } event;

static int rhs(void *context, double t, const double *y, double *dydt) {
  (void)t;
  switch (((const setting *)context)->problem) {
    case 0:
      dydt[0] = 1.0;
      dydt[1] = 0.0;
      return KG_OK;
    case 1:
      dydt[0] = y[1];
      dydt[1] = -y[0];
      return KG_OK;
    default:
      dydt[0] = y[0] > 0.0 ? -1.0 : 1.0;
      dydt[1] = 1.0;
      return KG_OK;
  }
}

static int jacobian(void *context, double t, const double *y, const double *dydt, double *J, double *dfdt) {
  (void)t, (void)y, (void)dydt;
  memset(J, 0, 4 * sizeof *J);
  memset(dfdt, 0, 2 * sizeof *dfdt);
  if (((const setting *)context)->problem == 1) {
    J[1] = 1.0;
    J[2] = -1.0;
  }
  return KG_OK;
}

static double value(const guard *g, double t, const double *y) {
  double sum = 0.0;
  switch (g->kind) {
    case 0:
      for (int i = 0; i < g->size; ++i) {
        sum = sum * y[0] + g->c[i];
      }
      return sum;
    case 1:
      return y[g->component] - g->c[0];
    case 2:
      return sin(g->c[0] * t);
    case 3:
      return y[0] > g->c[0] ? 1.0 : -1.0;
    case 4:
      return y[0] * y[1];
    default:
      return 0.0;
  }
}

static int guards(void *context, double t, const double *y, int costly, double *g) {
  setting *s = (setting *)context;
  (void)costly;
  ++s->evaluations;
  for (int i = 0; i < s->n; ++i) {
    g[i] = value(s->guards + i, t, y);
  }
  return KG_OK;
}

/* Returns the outcome; *count events are stored, at most `capacity`. */
int find_events(setting *s, const int *rules, const kg_stepper_options *options, double t0, double t_end,
                const double *y0, int action, int capacity, event *events, int *count, kg_statistics *statistics) {
  double work[2000], finder_work[400];
  int integers[64];
  kg_found found[32];
  kg_stepper stepper;
  kg_finder finder;
  kg_ode ode;
  int status;
  ode.n = 2;
  ode.rhs = rhs;
  ode.jacobian = jacobian;
  ode.context = s;
  finder.n = s->n;
  finder.evaluate = guards;
  finder.context = s;
  finder.rules = rules;
  finder.costly = NULL;
  finder.slack = NULL;
  *count = 0;
  kg_finder_layout(&finder, finder_work, integers, found);
  status = kg_stepper_start(&stepper, &ode, options, t0, y0, t_end, work);
  if (status == KG_OK) {
    status = kg_finder_start(&finder, &stepper);
  }
  while (status == KG_OK) {
    status = kg_stepper_step(&stepper);
    const int outcome = status < 0 ? status : kg_finder_step(&finder, &stepper);
    if (outcome < 0) {
      status = outcome;
    }
    if (outcome == KG_AT_EVENT) {
      status = kg_finder_locate(&finder, &stepper, NULL, NULL);
      while (status == KG_AT_EVENT) {
        for (int i = 0; i < s->n; ++i) {
          if (finder.fired[i]) {
            event *e = events + *count;
            if (*count == capacity) {
              return KG_TOO_MANY_STEPS;
            }
            e->t = stepper.t;
            e->guard = i;
            e->kind = finder.fired[i];
            e->g = finder.g[i];
            memcpy(e->y, stepper.y, sizeof e->y);
            ++*count;
          }
        }
        if (action == 1) {
          stepper.y[1] = -stepper.y[1];
        }
        status = kg_finder_restart(&finder, &stepper, action == 1);
        action = status == KG_AT_EVENT ? 0 : action;
      }
      if (status == KG_OK) {
        status = kg_stepper_restart(&stepper, t_end, 0);
      }
    }
  }
  *statistics = stepper.statistics;
  return status;
}
"""


class Guard(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("size", ctypes.c_int), ("c", Pointer), ("component", ctypes.c_int))


class Setting(ctypes.Structure):
    _fields_ = (
        ("problem", ctypes.c_int),
        ("n", ctypes.c_int),
        ("guards", ctypes.POINTER(Guard)),
        ("evaluations", ctypes.c_long),
    )


class Event(ctypes.Structure):
    _fields_ = (
        ("t", ctypes.c_double),
        ("guard", ctypes.c_int),
        ("kind", ctypes.c_int),
        ("g", ctypes.c_double),
        ("y", ctypes.c_double * 2),
    )


@dataclass(frozen=True)
class GuardOf:
    """A guard: its kind, its coefficients, the component it looks at, and its rule."""

    kind: int
    c: Sequence[float] = (0.0,)
    component: int = 0
    rule: int = ANY


@dataclass(frozen=True)
class Events:
    """What a run found, in the order of time; guards were evaluated ``guard_evaluations`` times."""

    status: int
    t: Floats
    guard: tuple[int, ...]
    kind: tuple[int, ...]
    g: Floats
    y: Floats
    statistics: Any
    guard_evaluations: int


class EventHost:
    """The compiled search."""

    def __init__(self, folder: Path) -> None:
        self.library = shared_library(SOURCE, folder)

    def find(
        self,
        guards: Sequence[GuardOf],
        t_end: float,
        *,
        t0: float = 0.0,
        y0: Sequence[float] | None = None,
        problem: int = CLOCK,
        method: str = "dopri5",
        tolerance: ArrayLike = 1e-9,
        step: float = 0.0,
        first_step: float = 0.0,
        action: int = NOTHING,
        capacity: int = 2000,
    ) -> Events:
        coefficients = [np.array(g.c, float) for g in guards]
        records = (Guard * len(guards))(
            *(Guard(g.kind, c.size, pointer(c), g.component) for g, c in zip(guards, coefficients, strict=True))
        )
        setting = Setting(problem, len(guards), records, 0)
        rules = (ctypes.c_int * len(guards))(*(g.rule for g in guards))
        tolerances = np.array(np.broadcast_to(tolerance, (2,)), float)
        options = Options(METHODS[method], step, first_step, 0.0, 100000, pointer(tolerances), pointer(tolerances))
        start = np.array((t0, 1.0) if y0 is None else y0, float)
        events, count, statistics = (Event * capacity)(), ctypes.c_int(), Statistics()
        status = self.library.find_events(
            ctypes.byref(setting),
            rules,
            ctypes.byref(options),
            ctypes.c_double(t0),
            ctypes.c_double(t_end),
            pointer(start),
            action,
            capacity,
            events,
            ctypes.byref(count),
            ctypes.byref(statistics),
        )
        found = events[: count.value]
        return Events(
            status,
            np.array([e.t for e in found]),
            tuple(e.guard for e in found),
            tuple(e.kind for e in found),
            np.array([e.g for e in found]),
            np.array([list(e.y) for e in found]).reshape(-1, 2),
            statistics,
            setting.evaluations,
        )
