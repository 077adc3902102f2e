"""Compiles the Python module that serves all models; everything else is in pyproject.toml.

Without a C compiler the installation succeeds too, and the first model on a machine compiles the module.
"""

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

sys.path.insert(0, str(Path(__file__).parent))

from kanegen.backends.cython.wrapper import install_wrapper, installed_name
from kanegen.errors import BuildError


class BuildModule(build_ext):
    """Compiles the module with kanegen's own flags."""

    def build_extension(self, ext: Extension) -> None:
        """Write the module to the folder of the build."""
        try:
            install_wrapper(Path(self.get_ext_fullpath(ext.name)).parent)
        except BuildError as error:
            raise CompileError(str(error)) from error  # an optional extension: a warning


name = installed_name().partition(".")[0]
setup(
    ext_modules=[Extension(f"kanegen.backends.cython.{name}", [], optional=True)],
    cmdclass={"build_ext": BuildModule},
)
