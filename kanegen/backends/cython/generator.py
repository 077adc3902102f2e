"""What the generator computes from kanegen's own files alone, from one process to the next.

Compiling the template of the kernel and rendering headers takes longer than generating a small model.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kanegen.backends.cython.cache import GENERATOR_NOTE, Cache
from kanegen.codegen.kept import TEXTS
from kanegen.codegen.sources import text_digest

_DIGEST: Final = "digest"

_seen: set[Path] = set()
"""The caches whose note this process has read or written."""


@contextmanager
def known_texts(cache: Cache) -> Iterator[None]:
    """Use what earlier processes have left in the cache, and leave there what is computed in this context.

    A note that is damaged, or belongs to another version of kanegen or Python, is replaced. Raises `BuildError`.
    """
    if cache.root in _seen:
        yield
        return
    note = cache.read_note(GENERATOR_NOTE)
    given = {name: text for name, text in note.items() if name != _DIGEST}
    if note.get(_DIGEST) != _digest(given):
        given = {}
    TEXTS.update(given)
    yield
    texts = dict(TEXTS)
    if texts.keys() != given.keys():
        cache.write_note(GENERATOR_NOTE, {**texts, _DIGEST: _digest(texts)})
    _seen.add(cache.root)


def _digest(texts: dict[str, str]) -> str:
    from kanegen.derivation.fingerprint import generator_digest  # imports SymPy, which an installation does not need

    items = (part for item in sorted(texts.items()) for part in item)
    return text_digest((generator_digest(), sys.version, *items))
