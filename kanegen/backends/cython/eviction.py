"""The size of the cache: its limit, and the removal of the entries that were not used for the longest time."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kanegen.errors import BuildError

DEFAULT_LIMIT: Final = 500.0
"""Largest size of the cache in MB (1e6 bytes); a small model takes 1.2 MB."""

FILLED: Final = 0.9
"""Part of the limit that remains filled after entries were removed."""

UNSEEN: Final = 0.02
"""Part of the limit that a process writes before it measures the cache again. Measuring a cache with 1000 models takes
80 ms. Five processes at a time keep the limit, since ``FILLED + 5 UNSEEN = 1``."""

KEPT_WRAPPERS: Final = 3600.0
"""Seconds after their last use during which wrappers stay: another process may be linking with them."""

_written: dict[Path, float] = {}
"""Bytes that this process wrote to each cache folder since it last measured it."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """An entry, or what a failed or killed build left; the time of its last use in ns, and its size in bytes."""

    path: Path
    used: int
    size: int


def cache_limit() -> float:
    """The largest size of the cache in bytes: ``KANEGEN_CACHE_SIZE`` in MB, else `DEFAULT_LIMIT`.

    Raises `BuildError` if the variable is not a number above zero; ``inf`` means no limit.
    """
    text = os.environ.get("KANEGEN_CACHE_SIZE", "").strip()
    try:
        megabytes = float(text) if text else DEFAULT_LIMIT
    except ValueError:
        megabytes = math.nan
    if not megabytes > 0.0:
        raise BuildError(
            f"the environment variable KANEGEN_CACHE_SIZE is {text!r}; expected the largest size of the cache in MB, "
            f"a number above zero (default {DEFAULT_LIMIT:g}), or inf for no limit"
        )
    return 1e6 * megabytes


def evict(
    kinds: Iterable[Path], limit: float, newest: Path, free: Callable[[Path], AbstractContextManager[bool]]
) -> None:
    """Remove entries, the longest unused first, until the folders ``kinds`` fill at most `FILLED` of the limit.

    ``newest`` is the entry that was written last, which stays. ``free(folder)`` locks an entry, or says that another
    process has it, which is a use. Nothing is measured if the cache cannot have reached the limit since the last time.
    """
    root = newest.parents[1]
    _written[root] = _written.get(root, math.inf) + folder_size(newest)
    if _written[root] <= UNSEEN * limit or math.isinf(limit):
        return
    folders = sorted(_measured(kinds), key=lambda folder: folder.used)
    excess = sum(folder.size for folder in folders) - FILLED * limit
    for folder in folders:
        if excess <= 0.0:
            break
        if folder.path != newest and not _may_be_linked(folder):
            with free(folder.path) as unused:
                excess -= folder.size if unused and _removed(folder) else 0
    _written[root] = 0.0
    remove_free_locks(root / "locks")


def _measured(kinds: Iterable[Path]) -> list[_Folder]:
    """All folders of all kinds, without folders that vanish meanwhile."""
    folders = []
    for kind in kinds:
        with suppress(FileNotFoundError):
            for path in kind.iterdir():
                with suppress(FileNotFoundError):
                    folders.append(_Folder(path, os.lstat(path).st_mtime_ns, folder_size(path)))
    return folders


def _may_be_linked(folder: _Folder) -> bool:
    return folder.path.parent.name == "wrappers" and time.time() - 1e-9 * folder.used < KEPT_WRAPPERS


def _removed(folder: _Folder) -> bool:
    """Remove a folder that was not used since it was measured; whether it is gone."""
    try:
        if os.lstat(folder.path).st_mtime_ns != folder.used:
            return False
        # The rename is atomic: readers find the whole entry or none.
        grave = tempfile.mkdtemp(prefix=f".{folder.path.name.lstrip('.')}.", dir=folder.path.parent)
        folder.path.rename(Path(grave) / "removed")
    except OSError:
        return not os.path.lexists(folder.path)
    shutil.rmtree(grave, ignore_errors=True)
    return not os.path.lexists(grave)


def folder_size(path: Path) -> int:
    """The bytes of a file, or of all files below a folder; 0 if it does not exist."""
    try:
        if not path.is_dir() or path.is_symlink():
            return os.lstat(path).st_size
        with os.scandir(path) as items:
            return sum(
                folder_size(Path(item.path))
                if item.is_dir(follow_symlinks=False)
                else item.stat(follow_symlinks=False).st_size
                for item in items
            )
    except FileNotFoundError:
        return 0


def remove_free_locks(folder: Path) -> None:
    """Remove the lock files that nobody holds: those of killed processes and of earlier versions."""
    from filelock import FileLock, Timeout

    for path in folder.glob("*.lock"):
        with suppress(Timeout, OSError), FileLock(path, timeout=0.0):
            path.unlink()
