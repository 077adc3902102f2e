"""Timing on a machine with other load: repetitions are interleaved, and the fastest one counts.

A timing loop in C calls generated kernels and their peers; `timeit` times Python statements.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from kanegen._version import __version__
from kanegen.arrays import Array
from kanegen.backends.cython import toolchain
from kanegen.bench.library import load
from kanegen.codegen.sources import render
from kanegen.errors import BuildError, SolveError

Made = TypeVar("Made")

SAMPLE_SECONDS = 0.004
"""Length of one sample: long compared with the resolution of the clock, short compared with disturbances."""

STATES = 16
"""States evaluated in turn, so that branches and values vary."""

AGREEMENT = 1e-8
"""Largest relative difference of two right-hand sides; it allows for rounding errors times the condition number."""


def timed(function: Callable[[], Made]) -> tuple[Made, float]:
    """The result of one call, and the seconds it takes."""
    started = time.perf_counter()
    made = function()
    return made, time.perf_counter() - started


def interleaved(tasks: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Run every task once per round, so that a slow period of the machine affects all of them.

    A task measures itself and returns seconds per call. Other load on the machine can only add time, so that the
    least result is the best estimate of the cost.
    """
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(rounds):
        for name, task in tasks.items():
            best[name] = min(best[name], task())
    return best


def statement_task(statement: str, names: Mapping[str, Any]) -> Callable[[], float]:
    """A task that times a Python statement in a loop of about `SAMPLE_SECONDS`."""
    timer = timeit.Timer(statement, globals=dict(names))
    timer.timeit(1)  # the first call may compile something
    calls, elapsed = timer.autorange()
    calls = max(1, int(calls * SAMPLE_SECONDS / elapsed))
    return lambda: timer.timeit(calls) / calls


def sampled(seconds: Callable[[int], float], sample_seconds: float = SAMPLE_SECONDS) -> Callable[[], float]:
    """A task: ``seconds(calls) / calls`` with as many calls as take about ``sample_seconds``."""
    calls = 64
    # The least of several times: one that other load disturbed would make the samples far too short.
    while (elapsed := min(seconds(calls) for _ in range(5))) < sample_seconds / 4:
        calls *= 2
    calls = max(1, int(calls * sample_seconds / elapsed))
    return lambda: seconds(calls) / calls


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


def timed_library(files: Mapping[str, str], kernel: str, kernel_flags: Sequence[str] | None = None) -> ctypes.CDLL:
    """Compile the C file ``kernel`` of ``files`` and the timing loop, link and load them.

    Flags of the kernel are kanegen's own if None. Kernel and loop are separate objects, so that no call is inlined.
    Raises `BuildError`.
    """
    options, loop = toolchain.CompilerOptions(), "bench_timing.c"
    flags = (*options.common, *(options.kernel if kernel_flags is None else kernel_flags))
    return load({**files, loop: render("bench/timing.c.jinja")}, {kernel: flags, loop: flags})


def processor_name() -> str:
    """The processor's name as the operating system knows it."""
    file = Path("/proc/cpuinfo")
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    names = re.findall(r"^model name\s*:\s*(.*\S)", text, re.MULTILINE)
    return names[0] if names else platform.processor() or platform.machine()


def machine_lines() -> tuple[str, ...]:
    """Host and processor, system and versions, compiler and flags: one line each."""
    options, tools = toolchain.CompilerOptions(), toolchain.find_toolchain()
    libraries = ", ".join(f"{name} {version(name)}" for name in ("SymPy", "NumPy", "SciPy"))
    return (
        f"{platform.node()}: {processor_name()}, {os.cpu_count()} processors, {platform.platform()}",
        f"kanegen {__version__}, Python {platform.python_version()}, {libraries}",
        f"{toolchain.compiler_version(tools).splitlines()[0]}, {' '.join((*options.common, *options.kernel))}",
    )
