"""Tasks and executors for tests of sweeps, at the level of a module, so that other processes can import them."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import Any

import numpy as np

import kanegen as kg
from kanegen.backends.cython import kernel


def twice(solver: kg.Solver, member: kg.results.Member) -> Mapping[str, Any]:
    """Results of both kinds that follow from the value of ``g``, read in two ways."""
    return {"two": 2.0 * member["g"], "pair": np.array([member["g"], 1j * solver.parameters["g"]])}


def acceleration(solver: kg.Solver, member: kg.results.Member) -> Mapping[str, Any]:
    """The compiled right-hand side at the start of the member, and the process that evaluated it."""
    q, u = (np.array([solver.initial[name] for name in names]) for names in _variables(solver))
    return {"udot": solver.rhs(0.0, q, u)[1], "process": os.getpid()}


def slow(solver: kg.Solver, member: kg.results.Member) -> Mapping[str, Any]:
    """The acceleration, after a tenth of a second."""
    time.sleep(0.1)
    return acceleration(solver, member)


def fails_at_three(solver: kg.Solver, member: kg.results.Member) -> Mapping[str, Any]:
    """Twice g; member 3 fails."""
    if member.index == 3:
        raise ZeroDivisionError("no value at three")
    return {"two": 2.0 * member["g"]}


def ends_the_process(solver: kg.Solver, member: kg.results.Member) -> Mapping[str, Any]:
    """Twice g, until the process that computes member 4 ends at once, as by a segmentation fault."""
    if member.index == 4 and not Path(os.environ["SWEEP_TEST_REPAIRED"]).exists():
        time.sleep(0.5)  # the other chunks are finished
        os._exit(1)
    return {"two": 2.0 * member["g"]}


def _variables(solver: kg.Solver) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return solver.description.coordinates, solver.description.speeds


def set_variables(variables: Mapping[str, str]) -> None:
    """The initializer of a process with other environment variables."""
    os.environ.update(variables)


def log_compilations(file: Path, variables: Mapping[str, str]) -> None:
    """The initializer of a process that writes the name of each C file that it compiles as a line of ``file``."""
    set_variables(variables)
    compile_object = kernel.compile_object

    def logged(toolchain: Any, flags: Any, source: Path, *rest: Any) -> None:
        with file.open("a") as log:
            log.write(f"{source.name}\n")
        compile_object(toolchain, flags, source, *rest)

    kernel.compile_object = logged


class Pickling(Executor):
    """Runs each task in this process, as another process would receive it; ``sent`` are the pickles.

    From the task with the number ``breaks_at`` on, the executor is broken.
    """

    def __init__(self, breaks_at: int = 10**9) -> None:
        self.sent: list[bytes] = []
        self.breaks_at = breaks_at

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.sent.append(pickle.dumps((fn, args, kwargs)))
        if len(self.sent) > self.breaks_at:
            future.set_exception(BrokenExecutor("a worker died"))
            return future
        function, received, named = pickle.loads(self.sent[-1])
        future.set_result(pickle.loads(pickle.dumps(function(*received, **named))))
        return future
