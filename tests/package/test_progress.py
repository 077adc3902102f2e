"""What takes long is named in a terminal or a notebook, and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
import time
from io import StringIO

import pytest
from checkout import environment
from rich.console import Console

from kanegen import progress
from kanegen.progress import activity

CODE = """
import time
from kanegen.progress import activity
with activity("compiling 'pendulum'", delay=0.0):
    time.sleep(0.6)
print("done")
"""


class Recorder:
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.closed = 0

    def show(self, text: str) -> None:
        text = text.removeprefix("kanegen: ")
        if self.texts[-1:] != [text]:
            self.texts.append(text)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(progress, "_is_watched", lambda: True)
    monkeypatch.setattr(progress, "_display", lambda: recorder)
    return recorder


def test_only_what_takes_long_is_named(recorder: Recorder) -> None:
    with activity("short"):
        pass
    with activity("long", delay=0.05):
        time.sleep(0.5)
    assert recorder.texts == ["long"]
    assert recorder.closed == 1


def test_present_activities_are_named_together(recorder: Recorder) -> None:
    with activity("outer", delay=0.0):
        time.sleep(0.2)
        worker = threading.Thread(target=lambda: time.sleep(0.0))
        with activity("inner"):
            worker.start()
        worker.join()
    assert recorder.texts == ["outer", "outer, inner", "outer"]


def test_an_error_ends_the_line(recorder: Recorder) -> None:
    def interrupted() -> None:
        with activity("interrupted", delay=0.0):
            time.sleep(0.2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert recorder.closed == 1
    assert not progress._line.present


def test_a_first_activity_without_delay_does_not_wait_for_another(recorder: Recorder) -> None:
    with activity("slow", delay=60.0), activity("first build", delay=0.0):
        time.sleep(0.2)
    assert recorder.texts == ["slow, first build", "slow"]


def test_short_activities_cost_microseconds(recorder: Recorder) -> None:
    start = time.perf_counter()
    for _ in range(2000):
        with activity("short"):
            pass
    seconds = (time.perf_counter() - start) / 2000
    print(f"{1e6 * seconds:.1f} microseconds an activity")
    assert seconds < 1e-3
    assert not recorder.texts
    assert sum(thread.name == "kanegen progress" for thread in threading.enumerate()) == 1


def test_a_notebook_shows_each_line_once() -> None:
    output = StringIO()
    display = progress._Printed(Console(file=output))
    for text in ("a [b]", "a [b]", "c"):
        display.show(text)
    display.close()
    assert output.getvalue() == "a [b]\nc\n"


def test_silent_without_a_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, env=environment(FORCE_COLOR="1"), check=True
    )
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_a_terminal_shows_a_line_that_disappears() -> None:
    controller, terminal = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
        env=environment(TERM="xterm", COLUMNS="80"),
        check=True,
    )
    os.close(terminal)
    shown = os.read(controller, 100_000).decode()
    os.close(controller)
    assert done.stdout == "done\n"
    assert "kanegen: compiling 'pendulum'" in shown
    # The cursor comes back, and the line is erased.
    assert "\x1b[?25h" in shown
    assert shown.rstrip().endswith("\x1b[2K")
