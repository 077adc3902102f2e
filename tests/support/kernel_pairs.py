"""The kernels of the runtime in C, and their twins in Python, under the same names."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import scipy.linalg.lapack  # noqa: F401  (the twins import it when they need it; that counts in a deadline)

from kanegen.program.kernels import KERNELS

Solve = Callable[..., int]


class InC:
    """The kernels by name, as functions of sizes and float64 arrays."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library

    def __getitem__(self, name: str) -> Solve:
        function = getattr(self.library, name)
        return lambda *arguments: function(
            *(x.ctypes.data_as(ctypes.c_void_p) if isinstance(x, np.ndarray) else x for x in arguments)
        )


class Twins:
    """The same in Python."""

    def __getitem__(self, name: str) -> Solve:
        return KERNELS[name].twin


def orthogonal(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.linalg.qr(rng.normal(size=(n, n)))[0]
