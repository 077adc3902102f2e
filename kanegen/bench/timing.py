"""Timing on a machine with other load: interleaved repetitions, of which the fastest counts."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

SAMPLE_SECONDS = 0.004
"""Length of one sample: long compared with the resolution of the clock, short compared with disturbances."""


@dataclass(frozen=True)
class Timing:
    """Seconds per call of every repetition. Other load on the machine only adds, so ``best`` estimates the cost."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        return min(self.seconds)


def interleaved(tasks: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, Timing]:
    """Run every task once per round, so that a slow period of the machine affects all of them.

    A task measures itself and returns seconds per call.
    """
    samples: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            samples[name].append(task())
    return {name: Timing(tuple(seconds)) for name, seconds in samples.items()}


def statement_task(statement: str, names: Mapping[str, Any]) -> Callable[[], float]:
    """A task that times a Python statement in a loop of about `SAMPLE_SECONDS`."""
    timer = timeit.Timer(statement, globals=dict(names))
    calls, elapsed = timer.autorange()
    calls = max(1, int(calls * SAMPLE_SECONDS / elapsed))
    return lambda: timer.timeit(calls) / calls


def once(function: Callable[[], object]) -> float:
    """Seconds one call takes."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started
