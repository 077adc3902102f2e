"""One timing loop in C for kanegen's generated kernels and for their peers."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.cython.toolchain import (
    CompilerOptions,
    Toolchain,
    compile_object,
    find_toolchain,
    link_command,
    run,
)
from kanegen.bench.timing import SAMPLE_SECONDS
from kanegen.codegen.sources import render, write_files
from kanegen.errors import BuildError, SolveError

STATES = 16
"""States evaluated in turn, so that branches and values vary."""

AGREEMENT = 1e-8
"""Largest difference of two right-hand sides relative to their size: rounding times the condition number."""


@dataclass(frozen=True)
class States:
    """Arguments of the timed evaluations: t, q (n, n_q), u (n, n_u), r (n_r,), p (n_p,)."""

    t: float
    q: Array
    u: Array
    r: Array
    p: Array


def states_near(point: Mapping[str, Any], inputs: Sequence[float], parameters: Sequence[float]) -> States:
    """`STATES` states within 0.01 of ``point``, the same in every run."""
    generator = np.random.default_rng(2003)
    q, u = (np.asarray(point[name], dtype=float) for name in ("q", "u"))
    return States(
        t=float(point["t"]) + 0.1,
        q=q + generator.uniform(-0.01, 0.01, (STATES, q.size)),
        u=u + generator.uniform(-0.01, 0.01, (STATES, u.size)),
        r=np.array(inputs, dtype=float),
        p=np.array(parameters, dtype=float),
    )


class TimedFunction:
    """One function of a shared library that was linked with the timing loop."""

    def __init__(self, library: Path, name: str, states: States) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.bench_seconds.restype = ctypes.c_double
        sizes = (ctypes.c_int * 7)()
        self._index = self._library.bench_find(name.encode(), sizes)
        if self._index < 0:
            raise BuildError(f"{library.name} has no function {name!r} to be timed")
        _, _, inputs, given, prepared, work, values = sizes
        self._states = states
        self._p = np.zeros(max(prepared, given))
        self._p[: states.p.size] = states.p
        self._library.bench_prepare(_pointer(self._p))
        self._r = np.zeros(max(inputs, states.r.size))
        self._r[: states.r.size] = states.r
        self._work = np.zeros(max(work, 1))
        self._out = np.zeros(values)

    def evaluate(self, state: int) -> Array:
        """The function's values at one of the states."""
        status = self._library.bench_evaluate(
            self._index, ctypes.c_double(self._states.t), *self._arguments(state), _pointer(self._out)
        )
        if status < 0:
            raise SolveError(f"the timed function reports status {status} at state {state}")
        return self._out.copy()

    def task(self, sample_seconds: float = SAMPLE_SECONDS) -> Callable[[], float]:
        """A task for `interleaved`: seconds per evaluation, sampled over about ``sample_seconds``."""
        calls = 64
        while (elapsed := self._seconds(calls)) < sample_seconds / 4:
            calls *= 2
        calls = max(1, int(calls * sample_seconds / elapsed))
        return lambda: self._seconds(calls) / calls

    def _arguments(self, state: int) -> tuple[Any, ...]:
        arrays = (self._states.q[state:], self._states.u[state:], self._r, self._p, self._work)
        return tuple(map(_pointer, arrays))

    def _seconds(self, calls: int) -> float:
        seconds = float(
            self._library.bench_seconds(
                self._index,
                ctypes.c_long(calls),
                STATES,
                ctypes.c_double(self._states.t),
                *self._arguments(0),
                _pointer(self._out),
            )
        )
        if seconds < 0.0:
            raise SolveError(f"the timed function reports status {seconds:.0f}")
        return seconds


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


def _pointer(array: Array) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def timed_library(files: Mapping[str, str], kernel: str, folder: Path, options: CompilerOptions | None = None) -> Path:
    """Compile the C file ``kernel`` of ``files`` and the timing loop with kanegen's own flags, and link them.

    Kernel and loop are separate objects, so that no call is inlined. Raises `BuildError`.
    """
    options = options or CompilerOptions()
    toolchain = find_toolchain()
    folder.mkdir(parents=True, exist_ok=True)
    write_files({**files, "bench_timing.c": render("bench_timing.c.jinja")}, folder)
    objects = [_object(toolchain, options, folder, name) for name in (kernel, "bench_timing.c")]
    library = folder / f"{Path(kernel).stem}_timed.so"
    run(link_command(toolchain, options, objects, str(library)), folder=folder)
    return library


def _object(toolchain: Toolchain, options: CompilerOptions, folder: Path, name: str) -> str:
    target = folder / f"{Path(name).stem}.o"
    compile_object(toolchain, (*options.common, *options.kernel), folder / name, target, [str(folder)])
    return str(target)
