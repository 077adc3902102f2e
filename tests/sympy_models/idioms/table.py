"""The table of idioms: every model of the corpus is a function that registers itself here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Idiom:
    """One way of writing a model.

    ``build()`` returns a ``KanesMethod`` or a ``System`` as the user's script has it at its last line; ``options`` go
    to ``Model.from_kane`` or ``from_system``. ``run`` holds values of the parameters, and a start, for the few models
    that are compiled and integrated: names, and the values of all others are one.
    """

    name: str
    theme: str
    shows: str
    build: Callable[[], Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    run: Mapping[str, float] | None = None


IDIOMS: dict[str, Idiom] = {}


def idiom(run: Mapping[str, float] | None = None, **options: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Put the decorated function into the table; its docstring says what it shows."""

    def register(build: Callable[[], Any]) -> Callable[[], Any]:
        name, theme = build.__name__, build.__module__.rpartition(".")[2]
        if name in IDIOMS:
            raise ValueError(f"two idioms are called {name}")
        shows = (build.__doc__ or "").strip()
        if not shows:
            raise ValueError(f"idiom {name} does not say what it shows")
        IDIOMS[name] = Idiom(name, theme, shows, build, options, run)
        return build

    return register
