"""Work in threads that Ctrl-C stops, with reports about its progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final

_TICK: Final = 0.05
"""Seconds between two reports."""


def run_all(
    workers: Sequence[Iterator[None]], stopped: threading.Event, report: Callable[[], None]
) -> KeyboardInterrupt | None:
    """Exhaust some iterators, each in a thread of its own, a single one in the present thread.

    ``report`` is called from time to time in the present thread. ``stopped`` is set when the work ends, early after
    Ctrl-C or an error; workers in threads look at it between two items. Returns the `KeyboardInterrupt`, if there was
    one; other errors are raised.
    """
    reporter = _Reporter(report)
    try:
        if len(workers) == 1:
            for _ in workers[0]:
                reporter.tick()
        else:
            _in_threads(workers, stopped, reporter)
    except KeyboardInterrupt as interrupt:
        return interrupt
    finally:
        stopped.set()
    report()
    return None


class _Reporter:
    """Calls a function at most once in `_TICK` seconds."""

    def __init__(self, report: Callable[[], None]) -> None:
        self.report, self.due = report, time.monotonic() + _TICK

    def tick(self) -> None:
        if time.monotonic() >= self.due:
            self.report()
            self.due = time.monotonic() + _TICK


def _in_threads(workers: Sequence[Iterator[None]], stopped: threading.Event, reporter: _Reporter) -> None:
    def exhaust(worker: Iterator[None]) -> None:
        for _ in worker:
            if stopped.is_set():
                return

    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            pending = {pool.submit(exhaust, worker) for worker in workers}
            while pending:
                done, pending = wait(pending, timeout=_TICK)
                for future in done:
                    future.result()
                reporter.tick()
        finally:
            stopped.set()
