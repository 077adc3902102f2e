"""A compiled kernel behind ctypes, without the Cython module: what any C host sees."""

from __future__ import annotations

import ctypes
from pathlib import Path

import ccompile
import numpy as np
from numpy.typing import NDArray

from kanegen.codegen.sources import Sources

DOUBLES = ctypes.POINTER(ctypes.c_double)
NAMES = ctypes.POINTER(ctypes.c_char_p)
ARRAYS = ("q", "u", "s", "r", "forces", "free")


class CPoint(ctypes.Structure):
    _fields_ = (("t", ctypes.c_double), *((name, DOUBLES) for name in ARRAYS))


EVALUATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(CPoint), *[DOUBLES] * 3)


class CFunction(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("rows", ctypes.c_int),
        ("cols", ctypes.c_int),
        ("work", ctypes.c_int),
        ("evaluate", EVALUATE),
    )


class CModel(ctypes.Structure):
    _fields_ = (
        ("abi", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("digest", ctypes.c_char_p),
        *((size, ctypes.c_int) for size in ("n_q", "n_u", "n_s", "n_r", "n_p", "n_g", "n_prepared")),
        *((names, NAMES) for names in ("coordinates", "speeds", "states", "inputs", "parameters")),
        ("prepare", ctypes.CFUNCTYPE(None, DOUBLES)),
        ("n_functions", ctypes.c_int),
        ("functions", ctypes.POINTER(CFunction)),
    )


class CompiledModel:
    """The model of some sources, compiled with all warnings as errors."""

    def __init__(self, sources: Sources, folder: Path) -> None:
        headers = {name: text for name, text in sources.files.items() if name.endswith(".h")}
        target = folder / "kernel.so"
        ccompile.compile_source(
            ccompile.C_COMPILER,
            sources.text(sources.kernel),
            target,
            *("-O1", "-shared", "-fPIC"),
            headers=headers,
        )
        self._library = ctypes.CDLL(str(target))
        self._library.kg_get_model.restype = ctypes.POINTER(CModel)
        self.model: CModel = self._library.kg_get_model().contents
        self.functions = {
            self.model.functions[k].name.decode(): self.model.functions[k] for k in range(self.model.n_functions)
        }

    def names(self, array: str) -> list[str]:
        """Names of coordinates, speeds, inputs or parameters."""
        size = {"coordinates": "n_q", "speeds": "n_u", "inputs": "n_r", "parameters": "n_p"}[array]
        return [getattr(self.model, array)[k].decode() for k in range(getattr(self.model, size))]

    def evaluate(self, name: str, inputs: dict[str, list[float]], outputs: int) -> tuple[int, NDArray[np.float64]]:
        """Status and output of one function; work and output start as NaN, so that nothing unset passes."""
        p = np.full(self.model.n_prepared + 1, np.nan)
        given = [*inputs["p"], *inputs["g"]]
        p[: len(given)] = given
        self.model.prepare(_pointer(p))
        arrays = [np.array([*inputs.get(array, ()), 0.0]) for array in ARRAYS]
        point = CPoint(inputs["t"][0], *map(_pointer, arrays))
        work = np.full(self.functions[name].work + 1, np.nan)
        out = np.full(outputs, np.nan)
        return self.functions[name].evaluate(ctypes.byref(point), *map(_pointer, (p, work, out))), out


def _pointer(array: NDArray[np.float64]) -> ctypes._Pointer[ctypes.c_double]:
    return array.ctypes.data_as(DOUBLES)
