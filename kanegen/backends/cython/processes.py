"""The programs and threads of a build: Ctrl-C ends all of them within 0.2 s."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from pathlib import Path
from threading import Event
from typing import Any, Final, TypeAlias

from kanegen.errors import BuildError

Submit: TypeAlias = Callable[..., "Future[Any]"]
"""Calls a function with its arguments in a thread of the build."""

POLL: Final = 0.02
"""Seconds between two looks at whether the build was interrupted."""

PATIENCE: Final = 0.05
"""Seconds in which a program that is asked to end may remove its temporary files."""

_INTERRUPTED = (-signal.SIGINT, 128 + signal.SIGINT, 0xC000013A)
"""Exit statuses of programs and shells that Ctrl-C ended, the last one on Windows: terminals send the signal to them
too."""

WINDOWS: Final = os.name == "nt"

_stop: ContextVar[Event | None] = ContextVar("_stop", default=None)
"""Set when the build to which the present thread belongs was interrupted."""


def processors() -> int:
    """The number of processors that a build uses: ``KANEGEN_PROCESSORS``, or all that this process may use."""
    text = os.environ.get("KANEGEN_PROCESSORS", "").strip()
    if text:
        if not text.isdecimal() or int(text) == 0:
            raise BuildError(f"the environment variable KANEGEN_PROCESSORS is {text!r}; expected a positive integer")
        return int(text)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def workers(count: int) -> Iterator[Submit]:
    """Threads of a build; at the end they are waited for, after Ctrl-C with their programs ended.

    Python raises KeyboardInterrupt in the main thread only. Programs that `run` started in the other threads are then
    ended, and KeyboardInterrupt is raised there too, so that every thread removes what it has begun.
    """
    stop = _stop.get() or Event()
    token = _stop.set(stop)
    pool = ThreadPoolExecutor(max_workers=count)
    try:
        yield lambda function, *arguments: pool.submit(copy_context().run, function, *arguments)
    except KeyboardInterrupt:
        stop.set()
        raise
    finally:
        _stop.reset(token)
        try:
            pool.shutdown(wait=True)
        except KeyboardInterrupt:
            stop.set()
            pool.shutdown(wait=True)
            raise


def run(
    command: Sequence[str],
    folder: Path | None,
    environment: Mapping[str, str] | None = None,
    *,
    group: bool = False,
    about: str = "",
) -> str:
    """Run a tool in ``folder`` and return its output. Raises `BuildError` (command, stderr) if it fails.

    ``environment``: variables beside those of this process. ``group``: whether the tool leaves running what it has
    started when it is ended, which is then ended with it. ``about``: what the error says about the tool.
    """
    options: dict[str, Any] = {"cwd": folder, "text": True, "errors": "replace"}
    options["env"] = {**os.environ, **environment} if environment else None
    if group and not WINDOWS:
        options["process_group"] = 0
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    except OSError as error:
        raise BuildError(f"{command[0]} cannot be run: {error}", command=command, folder=folder) from error
    with process:
        try:
            output, errors = _communicate(process, _stop.get())
        finally:
            _end(process)
    if process.returncode != 0:
        code, stop = process.returncode, _stop.get()
        # A program that Ctrl-C reached while it started fails in other ways, a moment before this process knows why.
        if code in _INTERRUPTED or (stop is not None and stop.wait(PATIENCE)):
            raise KeyboardInterrupt
        how = f"was killed by signal {-code}" if code < 0 else f"failed ({code})"
        reason = f" ({about})" if about else ""
        raise BuildError(
            f"{Path(command[0]).name} {how}{reason}", command=command, stderr=errors + output, folder=folder
        )
    return output


def _communicate(process: subprocess.Popen[str], stop: Event | None) -> tuple[str, str]:
    """Wait for the end of a program; KeyboardInterrupt if its build is interrupted."""
    while True:
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt
        try:
            return process.communicate(timeout=POLL)
        except subprocess.TimeoutExpired:
            continue


def _end(process: subprocess.Popen[str]) -> None:
    """End a program that is still running, with those that it started.

    A compiler that is asked to end removes its temporary files first.
    """
    if process.poll() is not None:
        return
    if WINDOWS:
        command = ["taskkill", "/T", "/F", "/PID", str(process.pid)]
        subprocess.run(command, capture_output=True, check=False)
        return
    _send(process, signal.SIGTERM)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        _send(process, signal.SIGKILL)


def _send(process: subprocess.Popen[str], number: int) -> None:
    """Send a signal to a program, and to its group if it has one of its own."""
    with suppress(ProcessLookupError):
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
