"""Ctrl-C during a build: it ends at once, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from checkout import environment
from messages import raises

from kanegen.backends.cython.cache import open_cache
from kanegen.backends.cython.processes import run, workers
from kanegen.errors import BuildError

LIMIT = 0.2
"""Seconds in which a build ends."""

BUILD = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGALRM, signal.default_int_handler)
# Python ignores exceptions in callbacks, such as those of import locks: interrupt once more as a user would.
sys.unraisablehook = lambda ignored: signal.setitimer(signal.ITIMER_REAL, 0.001)
from handmade import build, pendulum
import kanegen.backends.cython.kernel  # Python makes an interrupt while it defines a dataclass a RuntimeError
from kanegen.backends.cython.toolchain import CompilerOptions
options = CompilerOptions(wrapper=("-Og", "-g0"))  # the Python module of the installation has other flags
print("start", flush=True)
try:
    build(pendulum(), options)
except KeyboardInterrupt:
    print(time.time(), flush=True)
"""


def remains(folder: Path) -> list[str]:
    """Temporary folders, locks, and whatever else is no entry or note."""
    return [str(path) for path in folder.rglob("*") if path.name.startswith(".") or path.suffix == ".lock"]


def interrupted_after(seconds: float, folder: Path, group: bool) -> float:
    """Interrupt a first build; the time until it raises KeyboardInterrupt (s)."""
    worker = subprocess.Popen(
        [sys.executable, "-c", BUILD],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(KANEGEN_CACHE_DIR=str(folder)),
        start_new_session=True,
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "start\n"
    time.sleep(seconds)
    sent = time.time()
    if group:  # as a terminal and Jupyter do
        os.killpg(worker.pid, signal.SIGINT)
    else:
        os.kill(worker.pid, signal.SIGINT)
    output, errors = worker.communicate(timeout=60.0)
    # After KeyboardInterrupt in code that exec() compiled from a string, Python ends itself with SIGINT at its exit.
    assert worker.returncode in (0, -signal.SIGINT), errors
    assert output, "the build was not interrupted"
    return float(output) - sent


@pytest.mark.parametrize("group", [True, False], ids=["terminal", "process"])
def test_an_interrupted_build_ends_at_once_and_leaves_nothing(tmp_path: Path, group: bool) -> None:
    times = []
    for k, seconds in enumerate((0.2, 0.6, 1.0)):
        times.append(interrupted_after(seconds, tmp_path / str(k), group))
        assert not remains(tmp_path / str(k))
        assert not open_cache(tmp_path / str(k)).entries()
    print("interrupted after", [f"{value:.3f} s" for value in times])
    # Other processes of a busy machine may delay one of them.
    assert sorted(times)[1] < LIMIT


def test_threads_end_with_the_main_thread() -> None:
    futures = []

    def interrupted() -> None:
        with workers(2) as submit:
            futures.extend(submit(run, ["sleep", "30"], None) for _ in range(2))
            raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - start < 5.0
    assert all(isinstance(future.exception(), KeyboardInterrupt) for future in futures)


def test_what_a_program_started_ends_with_it(tmp_path: Path) -> None:
    """Zig does not end the clang that it started."""
    file = tmp_path / "pid"

    def interrupted() -> None:
        with workers(1) as submit:
            command = ["sh", "-c", f"sleep 30 & echo $! > {file}.new; mv {file}.new {file}; wait"]
            submit(partial(run, command, None, group=True))
            while not file.exists():
                time.sleep(0.01)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    deadline = time.monotonic() + 5.0
    while is_running(int(file.read_text())) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(int(file.read_text()))


def is_running(pid: int) -> bool:
    """Whether a process exists; one that has ended and was not waited for does not run."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.usefixtures("interruptible")
def test_a_compiler_that_ctrl_c_ended_is_no_failure() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(["sh", "-c", "kill -INT $$"], None)
    with raises(BuildError, "sh", "15"):
        run(["sh", "-c", "kill -TERM $$"], None)


def test_a_failed_entry_is_kept_and_an_interrupted_one_is_not(tmp_path: Path) -> None:
    cache = open_cache(tmp_path)

    def stop(folder: Path) -> None:
        (folder / "half").touch()
        raise KeyboardInterrupt

    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise BuildError("no")

    with pytest.raises(KeyboardInterrupt):
        cache.publish("extensions", "abc", "m", stop)
    assert not remains(tmp_path)
    with pytest.raises(BuildError):
        cache.publish("extensions", "abc", "m", fail)
    assert [path.name for path in (tmp_path / "extensions").rglob("half")] == ["half"]
