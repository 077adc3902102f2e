"""The cache folder: derived sources, compiled wrappers and finished extensions, each under its digest.

An entry is a folder that is created by one atomic rename and contains a manifest with the SHA-256 of each file:
readers need no lock and detect damaged entries. A file lock allows one writer of an entry at a time; the operating
system releases it when a process dies. Entries that belong to another user, or that others can write to, are not used.
The entries that were not used for the longest time are removed when the cache exceeds its size (`KANEGEN_CACHE_SIZE`).
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from kanegen.backends.cython.eviction import cache_limit, evict, folder_size, remove_free_locks
from kanegen.backends.cython.ownership import is_private, is_private_below, make_private, require_private
from kanegen.codegen.sources import Sources, runtime_headers
from kanegen.errors import BuildError
from kanegen.progress import activity
from kanegen.writing import UNFINISHED, replacing

KINDS = ("sources", "wrappers", "extensions")
LOCKS = "locks"
COMPILERS_NOTE, GENERATOR_NOTE = "compilers.json", "generator.json"
MANIFEST = "manifest.json"
COMPILER = "compiler"
"""The folder of the compiler of the Python package ziglang (packaged.py)."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One entry: its kind (of `KINDS`), key (hex digest), model name, size in bytes, time of its last use (s)."""

    kind: str
    key: str
    name: str
    size: int
    used: float


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache folder that has been checked by `open_cache`, and the largest size of its entries in bytes."""

    root: Path
    limit: float

    def find(self, kind: str, key: str) -> Path | None:
        """The folder of a complete and undamaged entry that no other user could have written, else None."""
        folder = self.root / kind / key
        with suppress(OSError):  # a missing entry, or a cache that this process can only read
            os.utime(folder)
        return folder if _is_intact(folder) else None

    def publish(self, kind: str, key: str, name: str, fill: Callable[[Path], None]) -> Path:
        """The folder of the entry; ``fill(folder)`` writes its files if the entry is missing or damaged.

        ``fill`` works in a temporary folder below the cache. If it raises `BuildError`, that folder is kept until the
        next attempt for the same key; after any other exception, as that of Ctrl-C, it is removed. Raises `BuildError`
        if the cache cannot be written. Other entries are removed if the cache exceeds its limit.
        """
        with _usable(self.root):
            with self._lock(kind, key):
                final = self.find(kind, key) or self._publish_locked(kind, key, name, fill)
            evict([self.root / each for each in KINDS], self.limit, final, self._free)
        return final

    def _publish_locked(self, kind: str, key: str, name: str, fill: Callable[[Path], None]) -> Path:
        # This process holds the lock, so that temporary folders for this key come from attempts that have ended.
        require_private(self.root / kind)
        self._remove_leftovers(kind, key)
        work = Path(tempfile.mkdtemp(prefix=f".{key}.", dir=self.root / kind))
        try:
            fill(work)
            self._seal(work, name)
        except BuildError:
            raise
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
        final = self.root / kind / key
        if os.path.lexists(final):
            # A folder cannot be replaced atomically: the damaged one is renamed and removed below.
            final.rename(work.with_name(work.name + ".damaged"))
        work.rename(final)
        self._remove_leftovers(kind, key)
        return final

    @staticmethod
    def _seal(work: Path, name: str) -> None:
        """Write the manifest of a filled folder; nobody else can write to its files."""
        files = {path.relative_to(work).as_posix(): _checksum(path) for path in _files(work)}
        _write(work / MANIFEST, json.dumps({"name": name, "files": files}, indent=1))
        for path in (work, *work.rglob("*")):
            make_private(path)

    def _remove_leftovers(self, kind: str, key: str) -> None:
        for leftover in (self.root / kind).glob(f".{key}.*"):
            _remove(leftover)

    @contextmanager
    def _lock(self, kind: str, key: str, timeout: float = -1.0) -> Iterator[None]:
        """An exclusive lock between processes; its file exists while it is held. filelock.Timeout after ``timeout`` s.

        Who waits for the file that is removed here notices that it has no name any more, and locks a new one
        (filelock >= 3.21).
        """
        from filelock import FileLock  # costs 70 ms

        for folder in (self.root / kind, self.root / LOCKS):
            folder.mkdir(mode=0o700, exist_ok=True)
        path = self.root / LOCKS / f"{kind}-{key}.lock"
        lock = FileLock(path, mode=0o600, timeout=timeout)
        with activity("waiting for another process that writes to the cache"):
            lock.acquire()
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink()
            lock.release()

    @contextmanager
    def _free(self, folder: Path) -> Iterator[bool]:
        """Lock the key of a folder; False if another process or thread has it."""
        from filelock import Timeout

        try:
            with self._lock(folder.parent.name, _key(folder), timeout=0.0):
                yield True
        except Timeout:
            yield False

    def load_sources(self, model_digest: str) -> Sources | None:
        """The sources generated earlier for a model digest, so that derivation can be skipped; else None."""
        folder = self.find("sources", model_digest)
        if folder is None:
            return None
        try:
            record = json.loads((folder / "sources.json").read_text(encoding="utf-8"))
        except FileNotFoundError:  # another process needed the space
            return None
        available = runtime_headers()
        headers = {name: available[name] for name in record["headers"]}
        return Sources(record["name"], record["digest"], {**headers, **record["files"]})

    def store_sources(self, sources: Sources) -> None:
        """Keep generated sources under their model digest, without the headers of the runtime. Raises `BuildError`."""
        known = runtime_headers()
        headers = [name for name, text in sources.files.items() if known.get(name) == text]
        files = {name: text for name, text in sources.files.items() if name not in headers}
        record = {"name": sources.name, "digest": sources.digest, "files": files, "headers": headers}
        text = json.dumps(record, indent=0)
        self.publish("sources", sources.digest, sources.name, lambda folder: _write(folder / "sources.json", text))

    def read_note(self, name: str) -> dict[str, str]:
        """A small dictionary that persists between processes; empty if it is missing, malformed or not private."""
        path = self.root / name
        try:
            note = json.loads(path.read_text(encoding="utf-8")) if is_private(path) else {}
        except (OSError, ValueError, RecursionError):
            return {}
        # The keys of JSON objects are strings.
        return note if isinstance(note, dict) and all(isinstance(text, str) for text in note.values()) else {}

    def write_note(self, name: str, note: dict[str, str]) -> None:
        """Replace a note atomically. Raises `BuildError`."""
        with _usable(self.root):
            path = self.root / name
            if os.path.lexists(path) and not (path.is_file() and is_private(path)):
                _remove(path)
            with replacing(path, mode=0o600) as file:
                file.write(json.dumps(note).encode())

    def entries(self) -> tuple[CacheEntry, ...]:
        """All intact entries, ordered by kind, name and key."""
        entries = [_entry(kind, folder) for kind, folder in self._folders() if _is_intact(folder)]
        return tuple(sorted(entries, key=lambda entry: (entry.kind, entry.name, entry.key)))

    def _folders(self) -> list[tuple[str, Path]]:
        """Kind and path of all folders, also of killed builds."""
        kinds = [kind for kind in KINDS if (self.root / kind).is_dir()]
        return [(kind, folder) for kind in kinds for folder in sorted((self.root / kind).iterdir())]

    def clear(self) -> int:
        """Remove everything that kanegen keeps in the folder; returns the freed bytes. Waits for running builds.

        These are all entries, the remains of killed builds, locks, notes and what the compiler of the package ziglang
        keeps; other files in the folder stay. Loaded extensions keep working on Unix. Raises `BuildError` if something
        cannot be removed.
        """
        freed = 0
        with _usable(self.root):
            for kind, folder in self._folders():
                with self._lock(kind, _key(folder)):
                    freed += folder_size(folder)
                    _remove(folder)
                    if os.path.lexists(folder):
                        raise PermissionError(f"{folder} cannot be removed")
            notes = (self.root / COMPILERS_NOTE, self.root / GENERATOR_NOTE)
            for note in (*notes, self.root / COMPILER, *self.root.glob(UNFINISHED)):
                freed += folder_size(note)
                _remove(note)
            remove_free_locks(self.root / LOCKS)
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
    does a folder that cannot be created. The folders and files in it are checked when they are loaded.
    """
    root = cache_folder() if folder is None else folder
    with _usable(root):
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_private(root)
    return Cache(root, cache_limit())


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


def _key(folder: Path) -> str:
    """The key of an entry or of a temporary folder ``.KEY.suffix``."""
    return folder.name.lstrip(".").split(".")[0]


def _remove(path: Path) -> None:
    """Remove a file, link or folder, as far as the system allows it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _is_intact(folder: Path) -> bool:
    if folder.name.startswith("."):
        return False
    try:
        if not (is_private(folder.parent) and is_private(folder) and is_private(folder / MANIFEST)):
            return False
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        return bool(files) and all(
            is_private_below(folder, path) and _checksum(folder / path) == value for path, value in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def _checksum(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _entry(kind: str, folder: Path) -> CacheEntry:
    name = str(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["name"])
    return CacheEntry(kind, folder.name, name, folder_size(folder), folder.stat().st_mtime)
