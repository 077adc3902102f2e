"""Makes ``import kanegen`` work in the folder above a clone, where Python takes the clone itself for the package.

Without this file the clone is a namespace package there, which is empty. Neither wheels nor installations contain it.
"""

import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from pathlib import Path

HERE = Path(__file__).parent


def _candidates() -> Iterator[ModuleSpec | None]:
    """The package where it is installed, in a folder or by a finder of an editable installation; then that of here."""
    this = [folder for folder in sys.path if (Path(folder) / __name__).exists()]
    this = [folder for folder in this if (Path(folder) / __name__).samefile(HERE)]
    yield PathFinder.find_spec(__name__, [folder for folder in sys.path if folder not in this])
    for finder in sys.meta_path:
        if finder is not PathFinder:
            yield finder.find_spec(__name__, None)
    yield PathFinder.find_spec(__name__, [str(HERE)])


def _load() -> None:
    """Put the package in the place of this module."""
    for spec in _candidates():
        if spec is not None and spec.has_location and spec.loader is not None and spec.origin != __file__:
            sys.modules[__name__] = module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return


if __name__ == "kanegen":  # clones whose folder has another name are not in the way
    _load()
