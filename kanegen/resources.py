"""The folder of the templates: beside the package in a checkout, inside the package in an installation."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from kanegen.errors import BuildError


def template_folder() -> Path:
    """The folder of the templates: in a wheel, an editable install or a plain checkout."""
    try:
        return Path(import_module("kanegen.templates").__path__[0])
    except ModuleNotFoundError:
        # A checkout that is not installed keeps the templates next to the package, not inside it.
        folder = Path(__file__).parents[1] / "templates"
        if (folder / "module.pyx").is_file():
            return folder
        raise BuildError(
            f"the templates are neither in the package kanegen.templates nor in {folder}; reinstall kanegen"
        ) from None
