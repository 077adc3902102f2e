"""Timing on a machine with other load: repetitions are interleaved, and the fastest one counts.

`timeit` times Python statements, and a loop in C compiled functions (`kanegen.cli.bench.compiled`).
"""

from __future__ import annotations

import os
import platform
import re
import time
import timeit
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from kanegen._version import __version__
from kanegen.backends.cython import toolchain

Made = TypeVar("Made")

SAMPLE_SECONDS = 0.004
"""Length of one sample: long compared with the resolution of the clock, short compared with disturbances."""


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


def call_task(function: Callable[[], object], parts: int) -> Callable[[], float]:
    """A task that times one call and returns the seconds for each of the ``parts`` of what it does."""
    return lambda: timed(function)[1] / parts


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
