"""A host of the C search for events: right-hand sides and guards with known zeros, and the loop over the steps."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ccompile import host_source, shared_library
from numpy.typing import ArrayLike
from steppers import Floats, Pointer, Statistics, options_of, pointer

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
        self.library = shared_library(host_source("events.c"), folder)

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
        options = options_of(method, tolerances, tolerances, step=step, first_step=first_step, max_steps=100000)
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
        stored = events[: count.value]
        return Events(
            status,
            np.array([e.t for e in stored]),
            tuple(e.guard for e in stored),
            tuple(e.kind for e in stored),
            np.array([e.g for e in stored]),
            np.array([list(e.y) for e in stored]).reshape(-1, 2),
            statistics,
            setting.evaluations,
        )
