"""Names work that takes long, in a terminal or a notebook; elsewhere nothing is printed."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

DELAY: Final = 1.0
"""Seconds after which an activity is named."""


@contextmanager
def activity(text: str, delay: float = DELAY) -> Iterator[None]:
    """Name what happens inside, for example ``"compiling 'pendulum'"``, if it takes longer than ``delay`` seconds.

    Activities can be nested, and take place in several threads: all present ones are named. In a terminal the line
    disappears at the end; in a notebook it stays.
    """
    if not _is_watched():
        yield
        return
    token = _line.enter(text, delay)
    try:
        yield
    finally:
        _line.leave(token)


def _is_watched() -> bool:
    """Whether the standard error is a terminal, or this is a notebook; cheap, without rich."""
    is_terminal = getattr(sys.stderr, "isatty", None)
    return "ipykernel" in sys.modules or (is_terminal is not None and is_terminal())


class _Line:
    """The line that names the present activities: their texts by token, a timer until it appears, and its display."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.texts: dict[object, str] = {}
        self.timer: threading.Timer | None = None
        self.display: Any = None

    def enter(self, text: str, delay: float) -> object:
        token = object()
        with self.lock:
            self.texts[token] = text
            if self.display is not None:
                self.display.show(self.text)
            elif self.timer is None or delay <= 0.0:
                self._cancel()
                self.timer = threading.Timer(delay, self._appear)
                self.timer.daemon = True
                self.timer.start()
        return token

    def leave(self, token: object) -> None:
        with self.lock:
            del self.texts[token]
            if not self.texts:
                self._cancel()
                if self.display is not None:
                    self.display.close()
                self.display = None
            elif self.display is not None:
                self.display.show(self.text)

    @property
    def text(self) -> str:
        return "kanegen: " + ", ".join(dict.fromkeys(self.texts.values()))

    def _appear(self) -> None:
        with self.lock:
            if self.texts and self.display is None:
                self.display = _display()
                self.display.show(self.text)

    def _cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


_line = _Line()


def _display() -> Any:
    """The display that suits where the program runs."""
    from rich.console import Console  # costs 50 ms

    console = Console(stderr=True)
    if console.is_jupyter:
        return _Printed(console)
    return _Spinning(console) if console.is_interactive else _Hidden()


class _Hidden:
    """A terminal without control characters shows nothing."""

    def show(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass


class _Printed:
    """Lines in the output of a notebook's cell, each once."""

    def __init__(self, console: Any) -> None:
        self.console = console
        self.shown: set[str] = set()

    def show(self, text: str) -> None:
        if text not in self.shown:
            self.shown.add(text)
            self.console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        pass


class _Spinning:
    """A line with a spinner, which disappears; output of the program itself is not redirected."""

    def __init__(self, console: Any) -> None:
        from rich.live import Live
        from rich.spinner import Spinner

        self.spinner = Spinner("dots")
        self.live = Live(
            self.spinner,
            console=console,
            refresh_per_second=8.0,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self.live.start()

    def show(self, text: str) -> None:
        from rich.text import Text

        self.spinner.update(text=Text(text))

    def close(self) -> None:
        self.live.stop()


_QUIET_SECONDS = 0.5
"""Shorter runs show no progress bar."""


class ProgressBar:
    """A context manager, called with the current time of a run from ``t0`` to ``t1``, that shows a progress bar.

    It writes to standard error if this is a terminal, or to ``console``, a ``rich.console.Console``.
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
