"""Reference solutions in long double, by a method that none of the compared programs uses."""

from __future__ import annotations

import ctypes

import numpy as np

from benchmarks.formulas import Formulas, c_statements
from benchmarks.library import render
from kanegen.arrays import Array
from kanegen.cli.bench.compiled import load
from kanegen.cli.bench.peers import PeerError

COLUMNS = 8
"""Columns of the extrapolation table: the method has the order 16."""

STEPS_PER_SECOND = 16
MOST_DOUBLINGS = 7

AGREEMENT = 2e-14
"""Largest relative difference of the solutions with n and 2n steps: the latter is then right to rounding in double."""


def reference_solution(formulas: Formulas, name: str, duration: float) -> Array:
    """The model's q and u, (n_q + n_u,), after ``duration``; its error is far below 1e-12.

    The number of steps is doubled until the solution does not change. Raises `PeerError` if it always changes, because
    the motion is too sensitive to its start, or is not finite, and `BuildError` if the C code does not compile.
    """
    statements = list(c_statements(formulas, "long double", "l"))
    text = render("reference.c.jinja", name=name, n=len(formulas.start), columns=COLUMNS, statements=statements)
    library = load({"reference.c": text}, {"reference.c": ("-std=c99", "-fPIC", "-O1")})
    steps = max(1, round(STEPS_PER_SECOND * duration))
    coarse = _solution(library, formulas, name, duration, steps)
    for _ in range(MOST_DOUBLINGS):
        steps *= 2
        fine = _solution(library, formulas, name, duration, steps)
        difference = float(np.max(np.abs(fine - coarse) / (1.0 + np.abs(fine))))
        if difference <= AGREEMENT:
            return fine
        coarse = fine
    raise PeerError(f"{name}: the reference solution still changes by {difference:.1e} with {steps} steps")


def _solution(library: ctypes.CDLL, formulas: Formulas, name: str, duration: float, steps: int) -> Array:
    end = np.empty(len(formulas.start))
    pointer = ctypes.POINTER(ctypes.c_double)
    start, target = (array.ctypes.data_as(pointer) for array in (np.ascontiguousarray(formulas.start), end))
    library.reference_solution(start, ctypes.c_double(duration), ctypes.c_int(steps), target)
    if not np.isfinite(end).all():
        raise PeerError(f"{name}: the reference solution is not finite; its equations divide by zero on the way")
    return formulas.whole_of(end)
