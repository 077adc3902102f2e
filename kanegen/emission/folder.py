"""Writes the files of a project into a folder: all of them, or none."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kanegen.codegen.sources import write_files
from kanegen.errors import BuildError


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
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as staged:
            write_files(files, Path(staged))
            for path in files:
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(Path(staged) / path, target)
    except OSError as error:
        raise BuildError(f"the project cannot be written into {folder}: {error}") from error
    return folder
