"""The branches for Windows, as far as other systems can run them: commands, processes, ownership and locks."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from messages import raises

from kanegen.backends.cython import cache as cache_module
from kanegen.backends.cython import eviction, ownership, processes, toolchain
from kanegen.backends.cython.cache import open_cache
from kanegen.backends.cython.processes import run
from kanegen.errors import BuildError


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (r"C:\LLVM\bin\clang.exe", [r"C:\LLVM\bin\clang.exe"]),
        (r'"C:\Program Files\LLVM\bin\clang.exe" -m64', [r"C:\Program Files\LLVM\bin\clang.exe", "-m64"]),
        ("python -m ziglang cc", ["python", "-m", "ziglang", "cc"]),
    ],
)
def test_backslashes_of_a_path_stay(command: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "WINDOWS", True)
    assert toolchain._words(command) == words


def test_a_program_ends_with_those_that_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows ends the driver of a compiler only, and its parts go on."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], text=True)
    commands = []

    def taskkill(command: list[str], **options: object) -> None:
        commands.append(command)
        process.kill()

    monkeypatch.setattr(processes, "WINDOWS", True)
    monkeypatch.setattr(processes.subprocess, "run", taskkill)
    processes._end(process)
    assert process.wait(timeout=5.0) != 0
    assert commands == [["taskkill", "/T", "/F", "/PID", str(process.pid)]]


def test_ctrl_c_that_reached_the_program_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ended:
        returncode = 0xC000013A

        def __init__(self, *arguments: object, **options: object) -> None: ...

        def __enter__(self) -> Ended:
            return self

        def __exit__(self, *error: object) -> None: ...

        def communicate(self, timeout: float) -> tuple[str, str]:
            return "", ""

        def poll(self) -> int:
            return self.returncode

    monkeypatch.setattr(processes.subprocess, "Popen", Ended)
    with pytest.raises(KeyboardInterrupt):
        run(["clang"], None)
    Ended.returncode = 2
    with raises(BuildError, "clang", "2"):
        run(["clang"], None)


def test_modes_and_owners_are_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows reports modes that mean nothing, and has no user numbers; links are not followed there either."""
    monkeypatch.setattr(ownership, "_POSIX", False)
    monkeypatch.delattr(os, "getuid")
    tmp_path.chmod(0o777)
    ownership.require_private(tmp_path)
    assert ownership.is_private(tmp_path)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert not ownership.is_private(link)
    ownership.make_private(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o777
    cache = open_cache(tmp_path / "cache")
    entry = cache.publish("extensions", "abc", "m", lambda folder: (folder / "data").touch())
    assert cache.find("extensions", "abc") == entry


@pytest.fixture
def locks_of_windows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A file that is open cannot be removed, and filelock removes that of a lock when it is released."""
    import filelock

    held: set[str] = set()

    class Lock(filelock.SoftFileLock):
        def _acquire(self) -> None:
            super()._acquire()
            if self.is_locked:
                held.add(os.fspath(self.lock_file))

        def _release(self) -> None:
            held.discard(os.fspath(self.lock_file))
            super()._release()

    unlink = Path.unlink

    def refusing(path: Path, missing_ok: bool = False) -> None:
        if os.fspath(path) in held:
            raise PermissionError(13, "the process cannot access the file, because it is used by another process")
        unlink(path, missing_ok)

    monkeypatch.setattr(filelock, "FileLock", Lock)
    monkeypatch.setattr(Path, "unlink", refusing)
    yield
    assert not held


@pytest.mark.usefixtures("locks_of_windows")
def test_lock_files_do_not_remain(tmp_path: Path) -> None:
    cache = open_cache(tmp_path)
    cache.publish("extensions", "abc", "m", lambda folder: (folder / "data").touch())
    assert list((tmp_path / cache_module.LOCKS).iterdir()) == []
    eviction.remove_free_locks(tmp_path / cache_module.LOCKS)
    assert cache.clear() > 0
    assert cache.entries() == ()


def test_a_loaded_model_cannot_be_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows a loaded library is open: clearing says which entry stays instead of pretending."""
    cache = open_cache(tmp_path)
    entry = cache.publish("extensions", "abc", "m", lambda folder: (folder / "data").touch())
    monkeypatch.setattr(cache_module, "_remove", lambda path: None)
    with raises(BuildError, str(entry), "cannot be removed"):
        cache.clear()
    monkeypatch.setattr(Path, "rename", _refused)
    assert not eviction._removed(eviction._Folder(entry, os.lstat(entry).st_mtime_ns, 1))


def _refused(path: Path, target: Path) -> Path:
    raise PermissionError(13, "the process cannot access the file, because it is used by another process")
