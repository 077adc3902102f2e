"""From generated sources to a loaded extension module: compiler, cache, loading."""

from kanegen.backends.cython.cache import Cache, CacheEntry, cache_folder, open_cache
from kanegen.backends.cython.extension import Extension, build, build_wrapper, load
from kanegen.backends.cython.model import build_model, c_sources
from kanegen.backends.cython.toolchain import CompilerOptions, Toolchain, find_toolchain

__all__ = [
    "Cache",
    "CacheEntry",
    "CompilerOptions",
    "Extension",
    "Toolchain",
    "build",
    "build_model",
    "build_wrapper",
    "c_sources",
    "cache_folder",
    "find_toolchain",
    "load",
    "open_cache",
]
