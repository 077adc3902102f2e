"""A host of the C steppers for the tests: problems in C with known solutions, and the loop over the steps."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ccompile import host_source, shared_library
from numpy.typing import ArrayLike, NDArray

from kanegen.codegen.methods import table
from kanegen.codegen.sources import runtime_headers
from kanegen.codegen.structs import ctypes_struct
from kanegen.codes import Status

METHODS = {name: number for number, name in enumerate(table.NAMES)}
FINISHED, COLLAPSED, TOO_MANY = Status.FINISHED, Status.STEP_COLLAPSED, Status.TOO_MANY_STEPS
NOT_FINITE, FAILED, INVALID, SINGULAR = Status.NOT_FINITE, Status.RHS_FAILED, Status.INVALID_ARGUMENT, Status.SINGULAR
OWN_STATUS = -100

# Problems by number. Each `rhs` that fails does so beyond t = 1.
SMOOTH, BLOW_UP, SINGULAR_AFTER, OWN_FAILURE, NAN_AFTER, REPARTITIONS, CONSTANT, JUMP, WALL = range(9)
STIFF, VAN_DER_POL = 9, 10


Floats = NDArray[np.float64]
Pointer = ctypes.POINTER(ctypes.c_double)


_HEADERS = runtime_headers()
Options = ctypes_struct(_HEADERS["kg_options.h"], "kg_stepper_options")
Statistics = ctypes_struct(_HEADERS["kg_ode.h"], "kg_statistics")


def options_of(method: str, rtol: Floats, atol: Floats, **others: float) -> Any:
    """The options of a stepper; the arrays must outlive it."""
    return Options(method=METHODS[method], rtol=rtol.ctypes.data, atol=atol.ctypes.data, **others)


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
        self.library = shared_library(host_source("steppers.c"), folder)
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
        steps = {"step": step, "first_step": first_step, "max_step": max_step, "max_steps": max_steps}
        options = options_of(method, *tolerances, **steps)
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
        before = int(np.searchsorted(run.t * direction, t * direction, side="left")) - 1
        index = min(max(before, 0), len(run.t) - 2)
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
