"""The cache folder: who may own it, and that no damage or interruption survives in it."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import stat
import tempfile
import time
from pathlib import Path

import pytest
from handmade import pendulum
from messages import raises

from kanegen.backends.cython import cache as cache_module
from kanegen.backends.cython.cache import Cache, cache_folder, open_cache
from kanegen.errors import BuildError


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return open_cache(tmp_path / "cache")


def fill(folder: Path) -> None:
    (folder / "data.txt").write_text("whole", encoding="utf-8")


def fill_slowly(folder: Path) -> None:
    fill(folder)
    (folder.parents[1] / "started").touch()
    time.sleep(60.0)


def count_and_fill(folder: Path) -> None:
    (folder.parents[1] / f"run-{os.getpid()}").touch()
    time.sleep(0.2)
    fill(folder)


def test_folder_is_private_and_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KANEGEN_CACHE_DIR", str(tmp_path / "a" / "b"))
    root = open_cache().root
    assert root == tmp_path / "a" / "b"
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    monkeypatch.delenv("KANEGEN_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder().name == "kanegen"


def test_an_unknown_home_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, home in (("~nobody-of-this-name/cache", "/home/me"), ("~/cache", "")):
        monkeypatch.setenv("KANEGEN_CACHE_DIR", folder)
        monkeypatch.setenv("HOME", home)
        with raises(BuildError, folder, "KANEGEN_CACHE_DIR"):
            cache_folder()


def test_a_folder_of_another_user_is_refused(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: other)
    with raises(BuildError, "KANEGEN_CACHE_DIR"):
        open_cache(cache.root)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_can_write_is_refused(cache: Cache, mode: int) -> None:
    cache.root.chmod(mode)
    with raises(BuildError, f"{mode:04o}", "chmod 700"):
        open_cache(cache.root)
    cache.root.chmod(0o755)
    assert open_cache(cache.root) == cache


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with raises(BuildError, "Not a directory", "KANEGEN_CACHE_DIR"):
        open_cache(tmp_path / "file" / "cache")


@pytest.mark.parametrize(
    ("code", "reason"), [(errno.EROFS, "Read-only file system"), (errno.ENOSPC, "No space left on device")]
)
def test_a_read_only_or_full_cache_is_an_error(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, code: int, reason: str
) -> None:
    def refuse(*arguments: object, **options: object) -> str:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    for write in (lambda: cache.store_sources(pendulum()), lambda: cache.write_note("note.json", {})):
        with raises(BuildError, reason, "KANEGEN_CACHE_DIR"):
            write()


def test_full_while_an_entry_is_written(cache: Cache) -> None:
    def fill_up(folder: Path) -> None:
        fill(folder)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with raises(BuildError, "No space left on device"):
        cache.publish("wrappers", "k" * 8, "m", fill_up)
    assert cache.find("wrappers", "k" * 8) is None
    assert cache.find("wrappers", cache.publish("wrappers", "k" * 8, "m", fill).name) is not None


def test_sources_come_back(cache: Cache) -> None:
    sources = pendulum()
    assert cache.load_sources(sources.digest) is None
    cache.store_sources(sources)
    assert cache.load_sources(sources.digest) == sources


@pytest.mark.parametrize("damage", ["truncate", "change", "remove", "manifest", "no manifest"])
def test_a_damaged_entry_is_written_again(cache: Cache, damage: str) -> None:
    folder = cache.publish("wrappers", "abc", "m", fill)
    data, manifest = folder / "data.txt", folder / cache_module.MANIFEST
    match damage:
        case "truncate":
            data.write_text("who", encoding="utf-8")
        case "change":
            data.write_text("WHOLE", encoding="utf-8")
        case "remove":
            data.unlink()
        case "manifest":
            manifest.write_text('{"files": [', encoding="utf-8")
        case "no manifest":
            manifest.unlink()
    assert cache.find("wrappers", "abc") is None
    assert cache.entries() == ()
    assert cache.publish("wrappers", "abc", "m", fill) == folder
    assert data.read_text(encoding="utf-8") == "whole"
    assert [path.name for path in folder.parent.iterdir()] == ["abc"]


def test_a_damaged_note_is_empty(cache: Cache) -> None:
    cache.write_note("note.json", {"a": "b"})
    assert cache.read_note("note.json") == {"a": "b"}
    (cache.root / "note.json").write_text("[1, 2", encoding="utf-8")
    assert cache.read_note("note.json") == {}


def test_entries_and_clear(cache: Cache) -> None:
    cache.store_sources(pendulum())
    cache.publish("wrappers", "abc", "module", fill)
    entries = cache.entries()
    assert [(entry.kind, entry.name) for entry in entries] == [
        ("sources", "pendulum"),
        ("wrappers", "module"),
    ]
    assert cache.clear() == sum(entry.size for entry in entries)
    assert cache.entries() == ()


def test_two_processes_write_an_entry_once(cache: Cache) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=cache.publish, args=("wrappers", "abc", "m", count_and_fill)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60.0)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert len(list(cache.root.glob("run-*"))) == 1
    assert cache.find("wrappers", "abc") is not None


def test_a_killed_writer_is_forgotten(cache: Cache) -> None:
    worker = multiprocessing.get_context("spawn").Process(
        target=cache.publish, args=("wrappers", "abc", "m", fill_slowly)
    )
    worker.start()
    deadline = time.monotonic() + 30.0
    while not (cache.root / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker.join(10.0)
    assert cache.find("wrappers", "abc") is None
    assert len(list((cache.root / "wrappers").iterdir())) == 1
    cache.publish("wrappers", "abc", "m", fill)
    assert [path.name for path in (cache.root / "wrappers").iterdir()] == ["abc"]
