"""Names work that takes long, in a terminal or a notebook; elsewhere nothing is printed."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final, TextIO

DELAY: Final = 1.0
"""Seconds after which an activity is named."""

_LOOK: Final = 0.1
"""Seconds between two looks at whether an activity has become long."""

_IDLE: Final = 2.0
"""Seconds without an activity after which nobody looks any more."""


def activity(text: str, delay: float = DELAY) -> AbstractContextManager[None]:
    """Name what happens inside, for example ``"compiling 'pendulum'"``, if it takes longer than ``delay`` seconds.

    Activities can be nested, and take place in several threads: all present ones are named. In a terminal the line
    disappears at the end; in a notebook it stays.
    """
    return _named(text, delay) if _is_watched() else _UNSEEN


@contextmanager
def _named(text: str, delay: float) -> Iterator[None]:
    token = _line.enter(text, delay)
    try:
        yield
    finally:
        _line.leave(token)


@contextmanager
def counting(
    progress: bool | Callable[[int], Any], title: str, doing: str, total: int, items: str
) -> Iterator[Callable[[int], Any]]:
    """A function of the number of items that are done: ``progress`` itself, a bar for True, no report for False.

    ``title``: of the bar. ``doing``: the activity that is named without a bar.
    """
    if callable(progress):
        yield progress
    elif progress:
        with ProgressBar(title, 0, total, f"{{:.0f}} of {total} {items}") as bar:
            yield bar
    else:
        with activity(doing):
            yield lambda done: None


_UNSEEN: Final[AbstractContextManager[None]] = nullcontext()


def _is_watched() -> bool:
    """Whether the standard error is a terminal, or this is a notebook; cheap, without rich."""
    if "ipykernel" in sys.modules:
        return True
    try:
        return not sys.stderr.closed and _is_terminal(sys.stderr)
    except (AttributeError, TypeError, ValueError):  # no standard error, or something unusual in its place
        return False


@lru_cache(maxsize=1)
def _is_terminal(stream: TextIO) -> bool:
    """Asked once for a stream: the system call takes as long as some evaluations."""
    return stream.isatty()


class _Line:
    """The line that names the present activities: their texts and when they are long, by token, and its display.

    One thread looks from time to time whether an activity has become long, so that activities cost microseconds.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.present: dict[object, tuple[str, float]] = {}
        self.display: Any = None
        self.watcher: threading.Thread | None = None

    def enter(self, text: str, delay: float) -> object:
        token = object()
        with self.lock:
            self.present[token] = (text, time.monotonic() + delay)
            self._update()
            if self.watcher is None:
                self.watcher = threading.Thread(target=self._watch, name="kanegen progress", daemon=True)
                self.watcher.start()
        return token

    def leave(self, token: object) -> None:
        with self.lock:
            del self.present[token]
            if self.present:
                self._update()
            elif self.display is not None:
                self.display.close()
                self.display = None

    def _watch(self) -> None:
        idle = 0.0
        while idle < _IDLE:
            time.sleep(_LOOK)
            with self.lock:
                idle = 0.0 if self.present else idle + _LOOK
                self._update()
                if idle >= _IDLE:
                    self.watcher = None

    def _update(self) -> None:
        """Show the present activities if one of them is long, or if they are already shown."""
        if self.display is None and any(due <= time.monotonic() for _, due in self.present.values()):
            self.display = _display()
        if self.display is not None and self.present:
            self.display.show("kanegen: " + ", ".join(dict.fromkeys(text for text, _ in self.present.values())))


_line = _Line()


def _display() -> Any:
    """The display that suits where the program runs; a terminal without control characters shows nothing."""
    console = _console()
    if console.is_interactive and not console.is_jupyter:
        return _Spinning(console)
    return _Printed(console)


def _console() -> Any:
    """The console of standard error, or of the output of a notebook's cell."""
    from rich.console import Console  # costs 50 ms

    console = Console(stderr=True)
    console.quiet = not (console.is_interactive or console.is_jupyter)
    return console


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
        quiet: dict[str, Any] = {"transient": True, "redirect_stdout": False, "redirect_stderr": False}
        self.live = Live(self.spinner, console=console, refresh_per_second=8.0, **quiet)
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

    ``text`` is the format of the current time, or of another quantity that goes from ``t0`` to ``t1``. The bar is
    written to standard error if this is a terminal, to the output of the cell in a notebook with ipywidgets, or to
    ``console``, a ``rich.console.Console``. It disappears at the end.
    """

    def __init__(
        self,
        title: str,
        t0: float,
        t1: float,
        text: str = "t = {:.4g} s",
        clock: Callable[[], float] = time.monotonic,
        console: Any = None,
    ) -> None:
        self._title, self._t0, self._length, self._text = title, t0, abs(t1 - t0), text
        self._clock, self._start = clock, clock()
        self._console = console
        self._bar: Any = None

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
        self._bar.update(0, completed=abs(t - self._t0), text=self._text.format(t))

    def _open(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        console = self._console or _console()
        shown = find_spec("ipywidgets") is not None if console.is_jupyter else console.is_terminal
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[text]}"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=console, transient=True, disable=not shown)
        self._bar.add_task(self._title, total=self._length, text=self._text.format(self._t0))
        self._bar.start()
