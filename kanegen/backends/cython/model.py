"""The back end ``"cython"``: C99 sources, compiled with the Cython module, loaded, and cached."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from kanegen.backends.cython.cache import open_cache
from kanegen.backends.cython.extension import Extension, build, build_wrapper
from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.backends.protocol import Generated, Request
from kanegen.codegen.description import DESCRIPTION_FILE
from kanegen.codegen.kernel import emit_sources
from kanegen.codegen.sources import Sources, runtime_headers


def c_sources(generated: Generated, digest: str) -> Sources:
    """The C sources of a model with the description that a solver needs."""
    sources = emit_sources(generated.program, digest=digest, options_text=generated.options)
    return replace(sources, files={**sources.files, DESCRIPTION_FILE: generated.description.to_json()})


def build_model(request: Request, options: CompilerOptions | None = None) -> Extension:
    """Compile and load a model; what was generated or compiled before is taken from the cache. Raises `BuildError`."""
    cache = open_cache()
    sources = cache.load_sources(request.digest)
    if sources is None:
        with ThreadPoolExecutor(max_workers=1) as pool:
            # Once per machine this takes seconds, in processes of its own: they pass while the model is derived.
            wrapper = pool.submit(build_wrapper, runtime_headers(), options, cache)
            sources = c_sources(request.generated, request.digest)
            cache.store_sources(sources)
            wrapper.result()
    return build(sources, options, cache)
