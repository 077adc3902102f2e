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
    monkeypatch.setattr(os, "fsync", refuse)
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


@pytest.mark.parametrize(
    "text", ["[1, 2", "[]", '{"a": 5}', '{"a": null}', "null", "\udcff", pytest.param("[" * 100_000, id="deep")]
)
def test_a_malformed_note_is_empty_and_made_again(cache: Cache, text: str) -> None:
    cache.write_note("note.json", {"a": "b"})
    assert cache.read_note("note.json") == {"a": "b"}
    (cache.root / "note.json").write_bytes(text.encode(errors="surrogateescape"))
    assert cache.read_note("note.json") == {}
    cache.write_note("note.json", {"a": "b"})
    assert cache.read_note("note.json") == {"a": "b"}


def test_a_folder_in_place_of_a_note_is_replaced(cache: Cache) -> None:
    (cache.root / "note.json" / "folder").mkdir(parents=True)
    assert cache.read_note("note.json") == {}
    cache.write_note("note.json", {"a": "b"})
    assert cache.read_note("note.json") == {"a": "b"}


PATHS = ["wrappers", "wrappers/abc", "wrappers/abc/manifest.json", "wrappers/abc/data.txt"]
"""Every folder and file on the way to what is loaded, below the root."""


@pytest.mark.parametrize("path", PATHS[1:])
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_an_entry_that_others_could_write_is_made_again(cache: Cache, path: str, mode: int) -> None:
    folder = cache.publish("wrappers", "abc", "m", fill)
    (folder / "data.txt").write_text("whole", encoding="utf-8")
    (cache.root / path).chmod((cache.root / path).stat().st_mode | mode)
    assert cache.find("wrappers", "abc") is None
    assert cache.entries() == ()
    cache.publish("wrappers", "abc", "m", fill)
    assert cache.find("wrappers", "abc") == folder


def test_a_kind_that_others_can_write_is_refused(cache: Cache) -> None:
    cache.publish("wrappers", "abc", "m", fill)
    (cache.root / "wrappers").chmod(0o777)
    assert cache.find("wrappers", "abc") is None
    with raises(BuildError, "0777", f"chmod 700 {cache.root / 'wrappers'}"):
        cache.publish("wrappers", "abc", "m", fill)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("path", PATHS)
def test_what_another_user_planted_is_not_loaded(cache: Cache, path: str) -> None:
    """The root was 0777 once, another user made an entry, and the root is 0700 now, as the message advises."""
    cache.publish("wrappers", "abc", "m", fill)
    os.chown(cache.root / path, 12345, -1)
    assert open_cache(cache.root).find("wrappers", "abc") is None
    assert open_cache(cache.root).entries() == ()


@pytest.mark.parametrize("path", PATHS)
def test_a_link_is_not_followed(cache: Cache, tmp_path: Path, path: str) -> None:
    cache.publish("wrappers", "abc", "m", fill)
    (cache.root / path).rename(tmp_path / "elsewhere")
    (cache.root / path).symlink_to(tmp_path / "elsewhere")
    assert cache.find("wrappers", "abc") is None


def test_files_are_private_whatever_the_umask(cache: Cache) -> None:
    previous = os.umask(0)
    try:
        folder = cache.publish("wrappers", "abc", "m", fill)
    finally:
        os.umask(previous)
    assert cache.find("wrappers", "abc") == folder
    modes = {stat.S_IMODE(path.stat().st_mode) & 0o022 for path in (folder, *folder.iterdir())}
    assert modes == {0}


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


def test_clear_removes_everything_but_files_of_others(cache: Cache) -> None:
    cache.store_sources(pendulum())
    cache.write_note("compilers.json", {"a": "b"})
    for path in (".kanegen-0123.part", "wrappers/.abc.xyz/data.txt", "wrappers/stray", "locks/old.lock", "thesis.tex"):
        (cache.root / path).parent.mkdir(parents=True, exist_ok=True)
        (cache.root / path).touch()
    cache.clear()
    assert [path.name for path in cache.root.rglob("*") if not path.is_dir()] == ["thesis.tex"]


# -- size -------------------------------------------------------------------------------------------------------------

ENTRY = 10_000
"""Bytes of the file of a small entry."""


def fill_small(folder: Path) -> None:
    (folder / "data.txt").write_bytes(bytes(ENTRY))


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def limited(folder: Path, monkeypatch: pytest.MonkeyPatch, entries: float) -> Cache:
    """A cache for so many small entries."""
    monkeypatch.setenv("KANEGEN_CACHE_SIZE", str(entries * ENTRY / 1e6))
    return open_cache(folder)


def test_size_is_limited_by_default_and_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KANEGEN_CACHE_SIZE", "20.5")
    assert open_cache(tmp_path).limit == 20.5e6
    monkeypatch.delenv("KANEGEN_CACHE_SIZE")
    assert open_cache(tmp_path).limit == 500e6
    for text in ("much", "-1", "0", "nan"):
        monkeypatch.setenv("KANEGEN_CACHE_SIZE", text)
        with raises(BuildError, "KANEGEN_CACHE_SIZE", f"'{text}'", "500", "inf"):
            open_cache(tmp_path)


@pytest.mark.target
def test_hundreds_of_models_keep_the_cache_under_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, largest = limited(tmp_path, monkeypatch, entries=40), 0
    for k in range(400):
        key = f"{k:04d}"
        cache.publish("sources", key, "m", fill_small)
        assert cache.find("extensions", cache.publish("extensions", key, "m", fill_small).name)
        if k % 10 == 0:
            largest = max(largest, size_of(tmp_path))
    entries = cache.entries()
    print(f"largest size {largest / cache.limit:.3f} of the limit, {len(entries)} of 800 entries stay")
    assert 0.8 * cache.limit < largest <= cache.limit
    # The latest entries stay, of both kinds.
    assert {entry.key for entry in entries} == {f"{k:04d}" for k in range(400)[-((len(entries) + 1) // 2) :]}
    assert not list((tmp_path / "locks").iterdir())


def test_entries_in_use_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = limited(tmp_path, monkeypatch, entries=20)
    cache.publish("wrappers", "linked", "module", fill_small)
    for k in range(100):
        cache.publish("extensions", f"{k:04d}", "m", fill_small)
        assert cache.find("extensions", "0000") is not None
    assert cache.find("extensions", "0001") is None
    # A wrapper may be linked by another process, until an hour has passed.
    assert cache.find("wrappers", "linked") is not None
    os.utime(tmp_path / "wrappers" / "linked", (0.0, 0.0))
    cache.publish("extensions", "new", "m", fill_small)
    assert cache.find("wrappers", "linked") is None


def test_a_tenth_of_the_limit_stays_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes can write meanwhile; a process measures the cache after each fiftieth of the limit."""
    cache, sizes = limited(tmp_path, monkeypatch, entries=50), []
    for k in range(60):
        cache.publish("extensions", f"{k:04d}", "m", fill_small)
        sizes.append(size_of(tmp_path / "extensions") / cache.limit)
    assert 0.86 < sizes[-1] <= max(sizes) <= 0.94


def test_an_entry_larger_than_the_limit_stays_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = limited(tmp_path, monkeypatch, entries=0.5)
    for k in range(3):
        cache.publish("extensions", f"{k:04d}", "m", fill_small)
    assert [entry.key for entry in cache.entries()] == ["0002"]


def test_remains_of_killed_builds_are_evicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = limited(tmp_path, monkeypatch, entries=3)
    for k in range(5):
        (tmp_path / "extensions" / f".killed{k}.xyz").mkdir(parents=True)
        fill_small(tmp_path / "extensions" / f".killed{k}.xyz")
    cache.publish("extensions", "new", "m", fill_small)
    assert cache.find("extensions", "new") is not None
    assert size_of(tmp_path) <= cache.limit


def publish_many(cache: Cache, first: int) -> None:
    """Publish and load entries that other processes publish and evict as well."""
    for k in range(150):
        key = f"{(first + 37 * k) % 300:04d}"
        folder = cache.publish("extensions", key, "m", fill_small)
        cache.find("extensions", key)
        assert folder.name == key


def test_processes_share_a_small_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = limited(tmp_path, monkeypatch, entries=50)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=publish_many, args=(cache, first)) for first in (0, 0, 50)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120.0)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert size_of(tmp_path) <= cache.limit
    assert not list((tmp_path / "locks").iterdir())
    assert not list((tmp_path / "extensions").glob(".*"))


def test_two_processes_write_an_entry_once(cache: Cache) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=cache.publish, args=("wrappers", "abc", "m", count_and_fill)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60.0)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert len(list(cache.root.glob("run-*"))) == 1
    assert not list((cache.root / "locks").iterdir())
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
