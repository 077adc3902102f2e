"""From generated sources to a loaded extension module: compiler, cache, loading."""

from kanegen.build.cache import Cache, CacheEntry, cache_folder, open_cache
from kanegen.build.extension import Extension, build, build_wrapper, load
from kanegen.build.toolchain import CompilerOptions, Toolchain, find_toolchain

__all__ = [
    "Cache",
    "CacheEntry",
    "CompilerOptions",
    "Extension",
    "Toolchain",
    "build",
    "build_wrapper",
    "cache_folder",
    "find_toolchain",
    "load",
    "open_cache",
]
