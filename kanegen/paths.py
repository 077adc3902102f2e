"""Checks of paths that the user gives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kanegen.errors import FileError, SolveError, brief


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


def require_writable(path: Any, what: str = "the page") -> Path:
    """The path of a file that can be written. Raises `FileError` that says why it cannot, before any work is done.

    ``what`` names the file in the message.
    """
    target = file_path(path)
    named = f"{what} {target}"
    if target.is_dir():
        raise FileError(f"{named} cannot be written: it is a folder; give the name of a file")
    if not target.parent.is_dir():
        raise FileError(f"{named} cannot be written: there is no folder {target.parent}")
    # A file is replaced by one that is written beside it; devices and pipes are not.
    regular = target.is_file() or not target.exists()
    needed = [*([target] if target.exists() else []), *([target.resolve().parent] if regular else [])]
    if not all(os.access(each, os.W_OK) for each in needed):
        raise FileError(f"{named} cannot be written: no permission; choose another folder")
    return target
