"""Writes the files of a project into a folder: all of them, or none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kanegen.errors import BuildError
from kanegen.writing import reason, replace_files


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
