"""A host of the C loop for contacts and events, with models written by hand whose motion is known in closed form."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ccompile import host_source, shared_library
from steppers import Floats, Statistics, options_of, pointer

BALL, BLOCK, RELAY = 0, 1, 2
USER, OPENS, CLOSES, IMPACT, STICKS, SLIPS, REVERSES, PENETRATES, IMPOSED, REMOVED, RESTS = range(11)


class Entry(ctypes.Structure):
    _fields_ = (
        ("t", ctypes.c_double),
        ("kind", ctypes.c_int),
        ("index", ctypes.c_int),
        ("mode", ctypes.c_int),
        ("before", ctypes.c_double * 4),
        ("after", ctypes.c_double * 4),
        ("impulse", ctypes.c_double),
    )


@dataclass(frozen=True)
class HybridRun:
    """One run: outcome, last state, and records as arrays."""

    status: int
    t_end: float
    y: Floats
    t: Floats
    kind: tuple[int, ...]
    index: tuple[int, ...]
    mode: tuple[int, ...]
    before: Floats
    after: Floats
    impulse: Floats
    statistics: Any
    stops: int
    culprit: int
    culprit_event: int

    def times(self, kind: int) -> Floats:
        return self.t[np.array(self.kind, int) == kind]


class HybridHost:
    """The compiled loop."""

    def __init__(self, folder: Path) -> None:
        self.library = shared_library(host_source("hybrid.c"), folder)

    def run(
        self,
        model: int,
        p: Sequence[float],
        y0: Sequence[float],
        t_end: float,
        *,
        t0: float = 0.0,
        method: str = "dopri5",
        tolerance: float = 1e-9,
        step: float = 0.0,
        watched: Sequence[int] = (0, 0, 0),
        stops: float = 0.0,
        capacity: int = 50000,
        max_steps: int = 0,
    ) -> HybridRun:
        n = len(y0)
        parameters, y, tolerances = np.array(p, float), np.array(y0, float), np.full(n, tolerance)
        options = options_of(method, tolerances, tolerances, step=step, max_steps=max_steps)
        flags = (ctypes.c_int * 3)(*watched)
        t = ctypes.c_double(t0)
        stopped, count, culprit, culprit_event = (ctypes.c_int() for _ in range(4))
        entries, statistics = (Entry * capacity)(), Statistics()
        status = self.library.run(
            model,
            pointer(parameters),
            ctypes.byref(options),
            ctypes.byref(t),
            ctypes.c_double(t_end),
            pointer(y),
            flags,
            ctypes.c_double(stops),
            ctypes.byref(stopped),
            entries,
            capacity,
            ctypes.byref(count),
            ctypes.byref(statistics),
            ctypes.byref(culprit),
            ctypes.byref(culprit_event),
        )
        stored = entries[: count.value]
        return HybridRun(
            status,
            t.value,
            y,
            np.array([e.t for e in stored]),
            tuple(e.kind for e in stored),
            tuple(e.index for e in stored),
            tuple(e.mode for e in stored),
            np.array([list(e.before)[:n] for e in stored]).reshape(-1, n),
            np.array([list(e.after)[:n] for e in stored]).reshape(-1, n),
            np.array([e.impulse for e in stored]),
            statistics,
            stopped.value,
            culprit.value,
            culprit_event.value,
        )
