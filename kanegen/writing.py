"""How files are replaced: completely, or not at all.

A full disk, an exception or a kill while a file is written leaves the earlier file as it was.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Final

from kanegen.errors import BuildError, FileError

UNFINISHED: Final = ".kanegen-*.part"
"""The names of what is being written, and of what a kill has left."""


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A binary file that replaces ``path`` when the block ends without an exception.

    The new content is written to a hidden file beside ``path`` (:data:`UNFINISHED`), flushed to the disk and renamed. A
    link is followed, an earlier file leaves its permissions, and a device or a pipe is written directly. A new file has
    the permissions ``mode``, less those of the umask. Raises `OSError`.
    """
    target = _followed(path)
    earlier = target.stat().st_mode if target.exists() else None
    if earlier is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "the file that is there is read-only", str(target))
    if earlier is not None and not stat.S_ISREG(earlier):
        with target.open("wb") as file:  # raises IsADirectoryError for a folder
            yield file
        return
    beside = target.with_name(UNFINISHED.replace("*", os.urandom(8).hex()))
    try:
        with open(beside, "xb", opener=partial(os.open, mode=mode)) as file:
            yield file
            file.flush()
            if earlier is not None:
                beside.chmod(stat.S_IMODE(earlier))
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    _keep_names(target.parent)


@contextmanager
def written(path: Path, what: str) -> Iterator[IO[bytes]]:
    """As :func:`replacing`; raises `FileError`, in which ``what`` names the file."""
    try:
        with replacing(path) as file:
            yield file
    except OSError as error:
        raise FileError(f"{what} {path} cannot be written: {reason(error)}") from error


def reason(error: OSError) -> str:
    """Why a file could not be read or written, without its name."""
    return error.strerror or str(error)


def write_files(files: Mapping[str, str], folder: Path) -> None:
    """Write texts below ``folder`` by relative path, UTF-8 with Unix line ends."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")


def replace_files(files: Mapping[str, str], folder: Path) -> None:
    """Write texts by relative path below ``folder``, which is created: all of them, or none. Raises `OSError`.

    They are written beside the folder first. If one of them cannot be moved to its place, the ones before it are taken
    back. A kill between the first and the last move, which take less than a millisecond, leaves new files beside
    earlier ones, each of them complete.
    """
    target = _followed(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix, suffix = UNFINISHED.split("*")
    with tempfile.TemporaryDirectory(prefix=prefix, suffix=suffix, dir=target.parent) as name:
        new, earlier = Path(name, "new"), Path(name, "earlier")
        write_files(files, new)
        for path in files:
            _sync(new / path)
            for root in (target, earlier):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
            if (target / path).is_file():
                shutil.copy2(target / path, earlier / path)
        _move(files, new, target, earlier)
    for changed in {(target / path).parent for path in files}:
        _keep_names(changed)


def _followed(path: Path) -> Path:
    """What a path leads to through links. Raises `OSError` for a link that leads back to itself."""
    target = Path(os.path.realpath(path))
    for place in (target, *target.parents):
        if place.is_symlink():
            raise OSError(errno.ELOOP, f"{place} is a link that leads back to itself", str(path))
    return target


def _move(paths: Iterable[str], new: Path, target: Path, earlier: Path) -> None:
    """Move files to ``target``; what they replace is in ``earlier`` and comes back if one of them cannot be moved."""
    moved: list[str] = []
    try:
        for path in paths:
            os.replace(new / path, target / path)
            moved.append(path)
    except BaseException:
        for path in moved:
            with suppress(OSError):
                if (earlier / path).exists():
                    os.replace(earlier / path, target / path)
                else:
                    (target / path).unlink()
        raise


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _keep_names(folder: Path) -> None:
    """Flush the names in a folder, where the system can, so that a renaming survives a loss of power."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_folder(files: Mapping[str, str], folder: Path, marker: str) -> Path:
    """Write texts by relative path into ``folder``, which is created if it is missing, and return it.

    The files are written completely beside the folder first, so that no half of a project remains where something
    fails. ``marker`` is a file that only an earlier project of the same model contains; such a folder is updated, and
    files that do not belong to the project stay in it.

    Raises
    ------
    BuildError
        If ``folder`` is a file, holds files but not ``marker``, or cannot be written.
    """
    try:
        if folder.is_dir() and not (folder / marker).is_file() and any(folder.iterdir()):
            raise BuildError(
                f"{folder} holds files, but not {marker}: only an earlier project of the same model is replaced; "
                "choose an empty folder"
            )
        if folder.exists() and not folder.is_dir():
            raise BuildError(f"{folder} is a file; choose the name of a folder")
        for above in folder.parents:
            if above.exists() and not above.is_dir():
                raise BuildError(f"the project cannot be written into {folder}: {above} is a file")
        replace_files(files, folder)
    except OSError as error:
        raise BuildError(f"the project cannot be written into {folder}: {reason(error)}") from error
    return folder
