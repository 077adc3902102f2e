"""The folder of the templates: beside the package in a checkout, inside the package in an installation."""

from __future__ import annotations

from pathlib import Path

from kanegen.errors import BuildError


def template_folder() -> Path:
    """The folder of the templates that belong to this package.

    Only these two places count, whatever other copies of kanegen ``sys.path`` leads to: Python code and templates of
    different versions do not fit together. Raises `BuildError` if there is neither folder.
    """
    package = Path(__file__).parent
    places = (package.parent / "templates", package / "templates")
    for folder in places:
        if (folder / "runtime" / "kg_model.h").is_file():
            return folder
    raise BuildError(f"the templates are neither in {places[0]} nor in {places[1]}; reinstall kanegen")
