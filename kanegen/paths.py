"""Checks of paths that the user gives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kanegen.errors import FileError, SolveError, brief
from kanegen.writing import reason


def file_path(given: Any, what: str = "path") -> Path:
    """``given`` as the path of a file or folder. Raises `SolveError` for anything that is not text or a path."""
    try:
        path = Path(given)
        os.fsencode(path)
    except (TypeError, ValueError) as error:
        raise SolveError(f"{what} is {brief(given)}; expected the path of a file or folder") from error
    if not str(given) or "\0" in str(given):
        raise SolveError(f"{what} is {brief(given)}; expected the path of a file or folder")
    return path


def require_writable(path: Any, what: str) -> Path:
    """The path of a file that can be written. Raises `FileError` that says why it cannot, before any work is done.

    ``what`` names the file in the message.
    """
    target = file_path(path)
    try:
        problem = _obstacle(target)
    except OSError as error:  # such as a name that is too long
        problem = reason(error)
    if problem:
        raise FileError(f"{what} {target} cannot be written: {problem}")
    return target


def _obstacle(target: Path) -> str:
    """Why a file cannot be written; nothing where it can."""
    place = Path(os.path.realpath(target))  # links are followed
    if place.is_symlink():
        return "it is a link that leads back to itself; remove it, or choose another name"
    if place.is_dir():
        return "it is a folder; give the name of a file"
    if not place.parent.is_dir():
        if target.is_symlink():
            return f"it is a link to {place}, and there is no folder {place.parent}"
        return f"there is no folder {target.parent}"
    # A file is replaced by one that is written beside it; devices and pipes are not.
    regular = place.is_file() or not place.exists()
    needed = [*([place] if place.exists() else []), *([place.parent] if regular else [])]
    if not all(os.access(each, os.W_OK) for each in needed):
        return "no permission; choose another folder"
    return ""
