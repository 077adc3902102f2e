"""C functions that are compiled with kanegen's compiler, linked with a loop in C, and timed at states near a start."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.cython import toolchain
from kanegen.cli.bench.timing import SAMPLE_SECONDS, sampled
from kanegen.codegen.sources import render
from kanegen.errors import BuildError, SolveError
from kanegen.writing import write_files

STATES = 16
"""States evaluated in turn, so that branches and values vary."""

AGREEMENT = 1e-8
"""Largest relative difference of two right-hand sides; it allows for rounding errors times the condition number."""


@dataclass(frozen=True)
class States:
    """Arguments of the timed evaluations: t, q (n, n_q), u (n, n_u), inputs r (n_r,), s (n_s,), p (n_p,)."""

    t: float
    q: Array
    u: Array
    r: Array
    s: Array
    p: Array


def states_near(point: Mapping[str, Any], inputs: Sequence[float], parameters: Sequence[float]) -> States:
    """`STATES` states within 0.01 of ``point``, the same in every run."""
    generator = np.random.default_rng(2003)
    q, u = (np.asarray(point[name], dtype=float) for name in ("q", "u"))
    q, u = (array + generator.uniform(-0.01, 0.01, (STATES, array.size)) for array in (q, u))
    r, s, p = (np.array(values, dtype=float) for values in (inputs, start_states(point), parameters))
    return States(float(point["t"]) + 0.1, q, u, r, s, p)


def start_states(point: Mapping[str, Any]) -> Array:
    """The additional states of ``point``, (n_s,); empty for a model without states."""
    given = point.get("s")
    return np.array(() if given is None else given, dtype=float)


class Point(ctypes.Structure):
    """Where a function is evaluated: ``kg_point`` of kg_model.h."""

    _fields_ = (
        ("t", ctypes.c_double),
        *((name, ctypes.POINTER(ctypes.c_double)) for name in ("q", "u", "s", "r", "forces", "free")),
    )


class TimedFunction:
    """One function of a shared library that was linked with the timing loop."""

    def __init__(self, library: ctypes.CDLL, name: str, states: States) -> None:
        self._library = library
        self._library.bench_seconds.restype = ctypes.c_double
        sizes = (ctypes.c_int * 5)()
        self._index = self._library.bench_find(name.encode(), sizes)
        if self._index < 0:
            raise BuildError(f"{Path(library._name).name} has no function {name!r} to be timed")
        rows, given, prepared, work, values = sizes
        self._states = states
        self._p = np.pad(states.p, (0, max(prepared, given) - states.p.size))
        self._library.bench_prepare(_pointer(self._p))
        self._forces = np.zeros(rows)
        self._work = np.zeros(max(work, 1))
        self._out = np.zeros(values)

    def evaluate(self, state: int) -> Array:
        """The function's values at one of the states."""
        status = self._library.bench_evaluate(self._index, *self._arguments(state))
        if status < 0:
            raise SolveError(f"the timed function reports status {status} at state {state}")
        return self._out.copy()

    def task(self, sample_seconds: float = SAMPLE_SECONDS) -> Callable[[], float]:
        """A task for `interleaved`: seconds per evaluation, sampled over about ``sample_seconds``."""
        return sampled(self._seconds, sample_seconds)

    def _arguments(self, state: int) -> tuple[Any, ...]:
        x = self._states
        point = Point(x.t, *map(_pointer, (x.q[state:], x.u[state:], x.s, x.r, self._forces)))
        return (ctypes.byref(point), *map(_pointer, (self._p, self._work, self._out)))

    def _seconds(self, calls: int) -> float:
        seconds = self._library.bench_seconds(self._index, ctypes.c_long(calls), STATES, *self._arguments(0))
        if seconds < 0.0:
            raise SolveError(f"the timed function reports status {seconds:.0f}")
        return float(seconds)


def _pointer(array: Array) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def check_agreement(name: str, sides: Mapping[str, Array]) -> None:
    """Raise `SolveError` if values that should be the same differ by more than rounding errors."""
    (first, reference), *others = sides.items()
    for other, values in others:
        difference, size = float(np.max(np.abs(values - reference))), float(np.max(np.abs(reference)))
        if not difference <= AGREEMENT * (1.0 + size):
            raise SolveError(
                f"{name}: the right-hand sides of {first} and {other} differ by {difference:.3g} (largest entry "
                f"{size:.3g}); expected rounding errors. Is the start of the motion a singular position? If not, one "
                "of them is wrong: please report the model."
            )


def timed_library(
    files: Mapping[str, str],
    kernel: str,
    kernel_flags: Sequence[str] | None = None,
    tools: toolchain.Toolchain | None = None,
) -> ctypes.CDLL:
    """Compile the C file ``kernel`` of ``files`` and the timing loop, link and load them.

    Flags of the kernel and the compiler are kanegen's own if None. Kernel and loop are separate objects, so that no
    call is inlined. Raises `BuildError`.
    """
    options, loop = toolchain.CompilerOptions(), "bench_timing.c"
    flags = (*options.common, *(options.kernel if kernel_flags is None else kernel_flags))
    return load({**files, loop: render("bench/timing.c.jinja")}, {kernel: flags, loop: flags}, tools)


def link(folder: Path, sources: Mapping[str, Sequence[str]], tools: toolchain.Toolchain | None = None) -> Path:
    """Compile C files in a folder, each with its flags, and link them to ``library.so`` there. Raises `BuildError`."""
    tools, options = tools or toolchain.find_toolchain(), toolchain.CompilerOptions()
    objects = []
    for name, flags in sources.items():
        objects.append(str(folder / Path(name).with_suffix(".o")))
        toolchain.compile_object(tools, flags, folder / name, Path(objects[-1]), [str(folder)])
    target = folder / "library.so"
    toolchain.link(tools, options, objects, target)
    return target


def load(
    files: Mapping[str, str], sources: Mapping[str, Sequence[str]], tools: toolchain.Toolchain | None = None
) -> ctypes.CDLL:
    """The library of C texts: ``files`` by their names, ``sources`` the flags of the compiled ones.

    The files are removed at once. Raises `BuildError`.
    """
    with tempfile.TemporaryDirectory(prefix="kanegen-bench-") as name:
        folder = Path(name)
        write_files(files, folder)
        return ctypes.CDLL(str(link(folder, sources, tools)))
