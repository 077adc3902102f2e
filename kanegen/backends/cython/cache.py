"""The cache folder: derived sources, compiled wrappers and finished extensions, each under its digest.

An entry is a folder that is created by one atomic rename and contains a manifest with the SHA-256 of each file:
readers need no lock and detect damaged entries. A file lock allows one writer of an entry at a time; the operating
system releases it when a process dies.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from kanegen.codegen.sources import Sources
from kanegen.errors import BuildError

KINDS = ("sources", "wrappers", "extensions")
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One entry: its kind (of `KINDS`), key (hex digest), model name, size in bytes, time of change (s)."""

    kind: str
    key: str
    name: str
    size: int
    modified: float


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache folder that has been checked by `open_cache`."""

    root: Path

    def find(self, kind: str, key: str) -> Path | None:
        """The folder of a complete and undamaged entry, else None."""
        folder = self.root / kind / key
        return folder if _is_intact(folder) else None

    def publish(self, kind: str, key: str, name: str, fill: Callable[[Path], None]) -> Path:
        """The folder of the entry; ``fill(folder)`` writes its files if the entry is missing or damaged.

        ``fill`` works in a temporary folder below the cache. If it raises `BuildError`, that folder is kept until the
        next attempt for the same key. Raises `BuildError` if the cache cannot be written.
        """
        with _usable(self.root), self._lock(kind, key):
            return self.find(kind, key) or self._publish_locked(kind, key, name, fill)

    def _publish_locked(self, kind: str, key: str, name: str, fill: Callable[[Path], None]) -> Path:
        # This process holds the lock, so that temporary folders for this key come from attempts that have ended.
        self._remove_leftovers(kind, key)
        work = Path(tempfile.mkdtemp(prefix=f".{key}.", dir=self.root / kind))
        fill(work)
        files = {path.relative_to(work).as_posix(): _checksum(path) for path in _files(work)}
        _write(work / MANIFEST, json.dumps({"name": name, "files": files}, indent=1))
        final = self.root / kind / key
        if final.exists():
            # A folder cannot be replaced atomically: the damaged one is renamed and removed below.
            final.rename(work.with_name(work.name + ".damaged"))
        work.rename(final)
        self._remove_leftovers(kind, key)
        return final

    def _remove_leftovers(self, kind: str, key: str) -> None:
        for leftover in (self.root / kind).glob(f".{key}.*"):
            shutil.rmtree(leftover)

    def _lock(self, kind: str, key: str) -> AbstractContextManager[Any]:
        """An exclusive lock between processes."""
        from filelock import FileLock  # costs 70 ms

        for folder in (self.root / kind, self.root / "locks"):
            folder.mkdir(mode=0o700, exist_ok=True)
        return FileLock(self.root / "locks" / f"{kind}-{key}.lock", mode=0o600)

    def load_sources(self, model_digest: str) -> Sources | None:
        """The sources generated earlier for a model digest, so that derivation can be skipped; else None."""
        folder = self.find("sources", model_digest)
        if folder is None:
            return None
        record = json.loads((folder / "sources.json").read_text(encoding="utf-8"))
        return Sources(record["name"], record["digest"], record["files"])

    def store_sources(self, sources: Sources) -> None:
        """Keep generated sources under their model digest. Raises `BuildError`."""
        text = json.dumps({"name": sources.name, "digest": sources.digest, "files": dict(sources.files)}, indent=0)
        self.publish("sources", sources.digest, sources.name, lambda folder: _write(folder / "sources.json", text))

    def read_note(self, name: str) -> dict[str, str]:
        """A small dictionary that persists between processes; empty if it is missing or cannot be read."""
        try:
            note = json.loads((self.root / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return note if isinstance(note, dict) else {}

    def write_note(self, name: str, note: dict[str, str]) -> None:
        """Replace a note atomically. Raises `BuildError`."""
        with _usable(self.root):
            descriptor, path = tempfile.mkstemp(prefix=f".{name}.", dir=self.root)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(note, file)
            os.replace(path, self.root / name)

    def entries(self) -> tuple[CacheEntry, ...]:
        """All intact entries, ordered by kind, name and key."""
        entries = [_entry(kind, folder) for kind, folder in self._folders() if _is_intact(folder)]
        return tuple(sorted(entries, key=lambda entry: (entry.kind, entry.name, entry.key)))

    def _folders(self) -> list[tuple[str, Path]]:
        """Kind and path of all folders, including those that killed builds left."""
        kinds = [kind for kind in KINDS if (self.root / kind).is_dir()]
        return [(kind, folder) for kind in kinds for folder in sorted((self.root / kind).iterdir())]

    def clear(self) -> int:
        """Remove all entries and the remains of killed builds; returns the freed bytes. Waits for running builds.

        Loaded extensions keep working on Unix. Raises `BuildError` if a folder cannot be removed.
        """
        freed = 0
        with _usable(self.root):
            for kind, folder in self._folders():
                with self._lock(kind, folder.name.lstrip(".").split(".")[0]):
                    if folder.is_dir():
                        freed += _size(folder)
                        shutil.rmtree(folder)
        return freed


def cache_folder() -> Path:
    """``KANEGEN_CACHE_DIR``, else the user's cache folder of this operating system (not created here).

    Raises `BuildError` if the home folder is needed and unknown.
    """
    named = os.environ.get("KANEGEN_CACHE_DIR")
    try:
        if named and not named.startswith("~"):
            return Path(named).absolute()
        if named and os.environ.get("HOME") == "":
            raise RuntimeError("the environment variable HOME is empty")
        if named:
            return Path(named).expanduser().absolute()
        from platformdirs import user_cache_path

        return user_cache_path("kanegen", appauthor=False).absolute()
    except (RuntimeError, KeyError) as error:
        raise BuildError(
            f"the cache folder {named or ''} cannot be found: {error}. Set KANEGEN_CACHE_DIR to the path of a folder"
        ) from error


def open_cache(folder: Path | None = None) -> Cache:
    """The cache in ``folder`` (default `cache_folder`), created with mode 0700 if it is missing.

    Because compiled code is loaded from it, a folder that another user owns or can write to raises `BuildError`, as
    does a folder that cannot be created.
    """
    root = cache_folder() if folder is None else folder
    with _usable(root):
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = os.stat(root)
    if os.name == "posix":
        _check_owner(root, status)
    return Cache(root)


def _check_owner(root: Path, status: os.stat_result) -> None:
    if status.st_uid != os.getuid():
        raise BuildError(
            f"the cache folder {root} belongs to user {status.st_uid}, not to you (user {os.getuid()}); "
            "loading code from it would run their code. Set KANEGEN_CACHE_DIR to a folder of your own."
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise BuildError(
            f"the cache folder {root} can be written by others (mode {stat.S_IMODE(status.st_mode):04o}); "
            f"loading code from it would run what they put there. Run: chmod 700 {root}, or set "
            "KANEGEN_CACHE_DIR to another folder."
        )


@contextmanager
def _usable(root: Path) -> Iterator[None]:
    """Turn an `OSError` about the cache folder into a `BuildError`."""
    try:
        yield
    except OSError as error:
        raise BuildError(
            f"the cache folder {root} cannot be used: {error}. Free disk space or make the folder writable, or set "
            "KANEGEN_CACHE_DIR to a folder that you can write to."
        ) from error


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _is_intact(folder: Path) -> bool:
    if folder.name.startswith("."):
        return False
    try:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        return all(_checksum(folder / path) == value for path, value in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _checksum(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in _files(folder))


def _entry(kind: str, folder: Path) -> CacheEntry:
    name = str(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["name"])
    return CacheEntry(kind, folder.name, name, _size(folder), folder.stat().st_mtime)
