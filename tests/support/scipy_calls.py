"""What SciPy calls: C functions of a right-hand side, and events of ``solve_ivp``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

SIGNATURE = b"int (double, double *, double *, void *)"
_REALS = ctypes.POINTER(ctypes.c_double)
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_double, _REALS, _REALS, ctypes.c_void_p)


def call_rates(function: Any, t: float, y: Any) -> tuple[int, np.ndarray]:
    """Status and y' of a right-hand side in C, a ``LowLevelCallable`` or its capsule."""
    # A LowLevelCallable is a tuple that forbids indexing; its first element is the capsule.
    capsule = tuple.__getitem__(function, 0) if isinstance(function, tuple) else function
    api = ctypes.pythonapi
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    context = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(("PyCapsule_GetContext", api))
    state, rates = np.array(y, dtype=np.float64), np.zeros(len(y))
    arrays = (array.ctypes.data_as(_REALS) for array in (state, rates))
    return _FUNCTION(pointer(capsule, SIGNATURE))(t, *arrays, context(capsule)), rates


@dataclass(frozen=True)
class Crossing:
    """An event of ``solve_ivp``: ``function(t, y, *args)`` passes zero, downwards with the ``direction`` -1."""

    function: Callable[..., float]
    direction: float = 0.0
    terminal: bool = True

    def __call__(self, t: float, y: Any, *args: Any) -> float:
        return float(self.function(t, y, *args))
