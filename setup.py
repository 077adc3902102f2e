"""Finds the packages, and compiles the Python module that serves all models; everything else is in pyproject.toml.

The templates are beside the package in a checkout, and inside it in an installation. Without a C compiler the
installation succeeds too, and the first model on a machine compiles the module.
"""

import sys
from pathlib import Path

from setuptools import Extension, find_namespace_packages, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

sys.path.insert(0, str(Path(__file__).parent))

from kanegen.backends.cython.wrapper import install_wrapper, installed_names
from kanegen.errors import BuildError

EDITABLE = "editable_wheel" in sys.argv
"""Whether this is ``pip install -e``, for this machine only. A wheel has modules for other machines, too."""


class BuildModule(build_ext):
    """Compiles the module with kanegen's own flags."""

    def build_extension(self, ext: Extension) -> None:
        """Write the modules of all extensions, unless they are there, to the folder of the build."""
        try:
            install_wrapper(Path(self.get_ext_fullpath(ext.name)).parent, here=EDITABLE)
        except BuildError as error:
            raise CompileError(str(error)) from error  # an optional extension: a warning


names = [file.partition(".")[0] for file in installed_names(here=EDITABLE)]
templates = [
    f"kanegen.{folder}"
    for folder in find_namespace_packages(include=["templates", "templates.*"], exclude=["*.__pycache__"])
]
setup(
    packages=[*find_packages(include=["kanegen", "kanegen.*"]), *templates],
    package_dir={"kanegen": "kanegen", "kanegen.templates": "templates"},
    package_data={
        "kanegen": ["py.typed"],
        "kanegen.codegen.methods": ["*.toml"],
        **{name: ["*.*"] for name in templates},
    },
    ext_modules=[Extension(f"kanegen.backends.cython.{name}", [], optional=True) for name in names],
    cmdclass={"build_ext": BuildModule},
)
