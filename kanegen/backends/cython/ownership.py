"""Who owns the files of the cache and who can write to them: loading compiled code runs it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from kanegen.errors import BuildError

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

_POSIX = os.name == "posix"


def is_private(path: Path) -> bool:
    """Whether a file or folder belongs to this user, only this user can write to it, and it is not a link.

    Raises `OSError` if it does not exist. On systems without POSIX modes the folder of the user protects the cache.
    """
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return False
    return not _POSIX or (status.st_uid == os.getuid() and not status.st_mode & OTHERS_WRITE)


def is_private_below(folder: Path, path: str) -> bool:
    """Whether ``path``, relative to ``folder``, and every folder on the way to it are private."""
    parts = Path(path).parts
    return all(is_private(folder.joinpath(*parts[: i + 1])) for i in range(len(parts)))


def require_private(folder: Path) -> None:
    """Raise `BuildError` if another user owns the folder (or the target of the link) or can write to it."""
    if not _POSIX:
        return
    status = os.stat(folder)
    if status.st_uid != os.getuid():
        raise BuildError(
            f"the cache folder {folder} belongs to user {status.st_uid}, not to you (user {os.getuid()}); "
            "loading code from it would run their code. Set KANEGEN_CACHE_DIR to a folder of your own."
        )
    if status.st_mode & OTHERS_WRITE:
        raise BuildError(
            f"the cache folder {folder} can be written by others (mode {stat.S_IMODE(status.st_mode):04o}); "
            f"loading code from it would run what they put there. Run: chmod 700 {folder}, or set "
            "KANEGEN_CACHE_DIR to another folder."
        )


def make_private(path: Path) -> None:
    """Withdraw the permission of others to write to a file or folder, which a umask of 002 or less gives."""
    mode = path.stat().st_mode
    if _POSIX and mode & OTHERS_WRITE:
        path.chmod(stat.S_IMODE(mode) & ~OTHERS_WRITE)
