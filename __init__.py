"""The package kanegen, for programs that run in the folder above a clone named ``kanegen``.

Python then finds this folder under the name of the package. Without this file it is an empty namespace package
(``module 'kanegen' has no attribute 'Model'``), even if kanegen is installed from the clone. The file is part of
clones only, not of installations.
"""

from pathlib import Path

__path__ = [str(Path(__file__).resolve().parent / "kanegen")]
__file__ = str(Path(__path__[0]) / "__init__.py")
exec(compile(Path(__file__).read_text(encoding="utf-8"), __file__, "exec"))
