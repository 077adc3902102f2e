"""The back end ``"cython"``: C99 sources are compiled with a Cython module, cached and loaded."""

from kanegen.backends.cython.cache import open_cache
from kanegen.backends.cython.extension import Extension, build, build_model, build_wrapper, c_sources
from kanegen.backends.cython.toolchain import CompilerOptions, find_toolchain

__all__ = [
    "CompilerOptions",
    "Extension",
    "build",
    "build_model",
    "build_wrapper",
    "c_sources",
    "find_toolchain",
    "open_cache",
]
