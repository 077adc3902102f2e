"""Functions that the program of a large model leaves out: each is derived and built when it is first used."""

from __future__ import annotations

from weakref import WeakValueDictionary

from kanegen.backends.protocol import DeriveMore, Generated, Request
from kanegen.codegen.sources import text_digest
from kanegen.errors import BuildError

_known: WeakValueDictionary[str, DeriveMore] = WeakValueDictionary()
"""How functions of a model are derived, by the digest of its first program, as long as a solver of it exists.

A copy of a solver, and one that was unpickled in the same process or in a fork of it, finds the model here.
"""


def remember(digest: str, derive_more: DeriveMore | None) -> None:
    """Remember how further functions of a model are derived."""
    if derive_more is not None:
        _known[digest] = derive_more


def request_of(names: tuple[str, ...], digest: str, form: str, derive_more: DeriveMore | None) -> Request:
    """The request for functions of a model that its first program, of this digest and form, leaves out.

    Its digest does not need the model, so that another process finds what is in the cache. Deriving raises `BuildError`
    if the model is not known.
    """

    def derive() -> Generated:
        known = derive_more or _known.get(digest)
        if known is None:
            raise BuildError(
                "the solver was unpickled, and a pickle does not contain the model, from which functions are derived: "
                f"use {', '.join(names)} once before pickling, or name this in functions= of kanegen.build"
            )
        return known(form, names)

    return Request(text_digest((digest, *names)), derive)
