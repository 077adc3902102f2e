"""The progress bar of long integrations."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

_QUIET_SECONDS = 0.5
"""Shorter runs show no bar."""


class ProgressBar:
    """A context manager to be called with the current time of a run from ``t0`` to ``t1``.

    The bar goes to standard error when that is a terminal; ``console`` is a ``rich.console.Console`` to use instead.
    """

    def __init__(
        self, title: str, t0: float, t1: float, clock: Callable[[], float] = time.monotonic, console: Any = None
    ) -> None:
        self._title, self._t0, self._t1 = title, t0, t1
        self._clock, self._start = clock, clock()
        self._console = console
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, t: float) -> None:
        if self._bar is None:
            if self._clock() - self._start < _QUIET_SECONDS:
                return
            self._open()
        self._bar.update(self._task, completed=abs(t - self._t0), time=t)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        console = self._console or Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("t = {task.fields[time]:.4g} s"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task(self._title, total=abs(self._t1 - self._t0), time=self._t0)
        self._bar.start()
