"""Compiling, caching and loading whole extensions."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkout import environment
from handmade import pendulum, pendulum_module
from messages import raises

from kanegen.backends.cython.cache import open_cache
from kanegen.backends.cython.extension import build
from kanegen.backends.cython.job import Job, job_for
from kanegen.backends.cython.toolchain import CompilerOptions, find_toolchain
from kanegen.codegen.sources import Sources
from kanegen.errors import BuildError, SolveError


@pytest.fixture(autouse=True)
def wrapper() -> Iterator[None]:
    """The Python module exists before a test measures or breaks anything."""
    pendulum_module()
    return


def refuse(*arguments: object, **options: object) -> None:
    raise AssertionError("nothing should be compiled here")


def test_a_second_build_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    first = build(pendulum())
    monkeypatch.setattr(subprocess, "Popen", refuse)
    second = build(pendulum())
    assert (second.path, second.digest, second.module) == (first.path, first.digest, first.module)
    assert first.module.SolveError is SolveError


def test_another_session_loads_without_compiler_lock_or_cython() -> None:
    code = (
        "import sys, time; from handmade import build, pendulum; s = pendulum();"
        "start = time.perf_counter(); build(s); print(time.perf_counter() - start);"
        "print(sorted({'Cython', 'setuptools', 'filelock', 'scipy'} & set(sys.modules)))"
    )
    seconds, imported = run_python(code)
    print(f"cached load in a new session: {1e3 * float(seconds):.1f} ms")
    assert imported == "[]"


def test_every_part_of_the_key_counts() -> None:
    cache, options = open_cache(), CompilerOptions()
    sources = pendulum()
    job = job_for(options, cache)
    keys = {
        job.key("a", "b"),
        job.key("ab", ""),
        job_for(CompilerOptions(kernel=("-O2", "-march=native")), cache).key("a", "b"),
        Job(cache, find_toolchain(), options, (*job.machine[:-1], "other CPU"), job.gcc).key("a", "b"),
    }
    assert len(keys) == 4
    comment = Sources(sources.name, sources.digest, {**sources.files, "notes.txt": "changed"})
    assert build(comment).digest != build(sources).digest


def test_models_of_the_same_name_live_side_by_side() -> None:
    slow = build(pendulum(change=("* KG_SIN(q[0]) - u[0] + r[0] + p[2]", "* KG_SIN(q[0]) - KG_C(2.0) * u[0] + p[2]")))
    fast = build(pendulum())
    assert slow.module is not fast.module
    assert slow.module.NAME == fast.module.NAME
    values = [
        e.module.Function("rhs", e.module.Prepared([9.81, 1.0]), [0.0]).ode(0.0, [0.0, 1.0])[1] for e in (slow, fast)
    ]
    assert values == [-2.0, -1.0]


def test_sources_pickle() -> None:
    sources = pendulum()
    assert pickle.loads(pickle.dumps(sources)) == sources


def test_a_failing_compiler_keeps_command_stderr_and_folder() -> None:
    broken = pendulum(change=("out[0] = u[0];", "out[0] = not_declared;"))
    with raises(BuildError, "1") as caught:
        build(broken)
    assert "not_declared" in caught.value.stderr
    assert "-march=native" in caught.value.command
    assert caught.value.folder is not None
    assert (caught.value.folder / "pendulum.c").read_text(encoding="utf-8") == broken.text("pendulum.c")
    with raises(BuildError, "not_declared") as again:
        build(broken)
    assert again.value.folder is not None
    assert not caught.value.folder.exists()


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "/nonexistent")
    with raises(BuildError, "CC", "'/nonexistent'"):
        build(pendulum())


def test_a_cc_that_is_not_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "false")
    with raises(BuildError, "false", "1") as caught:
        build(pendulum())
    assert caught.value.command[-1] == "--version"


def test_another_version_of_the_interface_is_refused() -> None:
    with raises(BuildError, "999", "kg_model.h", "version 6"):
        build(pendulum("old", abi="999"))


def test_an_entry_keeps_the_code_of_the_model_only() -> None:
    names = {path.name for path in build(pendulum()).path.parent.iterdir()}
    assert {name for name in names if name.endswith((".c", ".h", ".o"))} == {"pendulum.c", "pendulum.h"} & names
    assert "pendulum.c" in names


def test_a_damaged_extension_is_built_again() -> None:
    built = build(pendulum("damaged"))
    content = built.path.read_bytes()
    # The loaded library must not change under this process: another file takes its place.
    built.path.unlink()
    built.path.write_bytes(content[: len(content) // 2])
    again = build(pendulum("damaged"))
    assert again.path == built.path
    assert again.path.stat().st_size == len(content)


def test_two_processes_build_the_same_model() -> None:
    before = [entry.name for entry in open_cache().entries()].count("twice")  # of sessions that share the cache
    code = "from handmade import *; print(build(pendulum('twice')).module.NAME)"
    workers = [start_python(code) for _ in range(2)]
    for worker in workers:
        output, errors = worker.communicate(timeout=120.0)
        assert worker.returncode == 0, errors
        assert output.split() == ["twice"]
    after = [entry.name for entry in open_cache().entries()].count("twice")
    assert max(before, 1) <= after <= before + 1


def test_a_killed_build_does_not_trip_the_next(tmp_path: Path) -> None:
    # The compiler waits for a writer of this pipe until it is killed.
    pipe = tmp_path / "part.h"
    os.mkfifo(pipe)
    change = ('#include "kg_model.h"', f'#include "kg_model.h"\n#include "{pipe}"')
    folder = open_cache().root / "extensions"
    worker = start_python(f"from handmade import *; build(pendulum('killed', change={change}))")
    deadline = time.monotonic() + 60.0
    while not list(folder.glob(".*/killed.c")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(worker.pid, signal.SIGKILL)
    worker.communicate()
    assert worker.returncode == -signal.SIGKILL
    assert list(folder.glob(".*/killed.c"))
    pipe.unlink()
    pipe.touch()
    assert build(pendulum("killed", change=change)).module.NAME == "killed"
    assert not list(folder.glob(".*/killed.c"))


def start_python(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )


def run_python(code: str) -> list[str]:
    worker = start_python(code)
    output, errors = worker.communicate(timeout=120.0)
    assert worker.returncode == 0, errors
    return output.strip().splitlines()
