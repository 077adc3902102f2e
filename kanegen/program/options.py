"""The options of a build, checked once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from kanegen.errors import BuildError, brief
from kanegen.forms import AUTO, FORMS
from kanegen.program.catalogue import CATALOGUE, DEFAULT_FUNCTIONS, EXTRA_FUNCTIONS, group

KNOWN = (*DEFAULT_FUNCTIONS, *EXTRA_FUNCTIONS)


class Scope(Enum):
    """What a program contains.

    ``ALL``: all functions of the options. ``FIRST``: for a large model without functions that only users call, which
    the solver builds when they are first used. ``LATER``: such functions alone, and the functions that they evaluate.
    ``VARIATIONS``: functions of the sensitivities of motions alone, which have further arguments.
    """

    ALL = "all"
    FIRST = "first"
    LATER = "later"
    VARIATIONS = "variations"


@dataclass(frozen=True)
class BuildOptions:
    """Form of the equations and functions to compile.

    ``form``: ``"auto"`` or one of :data:`kanegen.forms.FORMS`; ``"auto"`` selects the form of least estimated cost.
    ``functions``: names to compile, in the order of the catalogue, always with ``rhs``. In :meth:`of`, ``None`` means
    :data:`DEFAULT_FUNCTIONS`, and ``"all"`` adds :data:`EXTRA_FUNCTIONS`. ``scope``: whether all of them are built.
    """

    form: str = AUTO
    functions: tuple[str, ...] = DEFAULT_FUNCTIONS
    scope: Scope = Scope.ALL

    @classmethod
    def of(cls, form: str = AUTO, functions: str | Iterable[str] | None = None) -> BuildOptions:
        """Return the options with groups and companions replaced by function names.

        Raises
        ------
        BuildError
            If the form or a function does not exist; the message suggests the nearest name.
        """
        if not isinstance(form, str) or (form != AUTO and form not in FORMS):
            hint = _hint(form, (AUTO, *FORMS))
            raise BuildError(f"form is {brief(form)}: expected one of {', '.join((AUTO, *FORMS))}{hint}")
        wanted = {"rhs"} if form == AUTO else {"rhs", *FORMS[form].functions}
        if functions is None or (isinstance(functions, str) and functions == "all"):
            functions = DEFAULT_FUNCTIONS if functions is None else KNOWN
        if not isinstance(functions, Iterable) or getattr(functions, "ndim", 1) == 0:
            raise BuildError(f"functions is {brief(functions)}: expected a name, a sequence of names, or None")
        for name in [functions] if isinstance(functions, str) else functions:
            members = group(name) if isinstance(name, str) else ()
            if not members or not set(members) <= set(KNOWN):
                groups = (spec.group for spec in CATALOGUE.values() if spec.group)
                hint = _hint(name, [*KNOWN, *groups])
                raise BuildError(f"functions contains {brief(name)}: expected names from {', '.join(KNOWN)}{hint}")
            wanted.update(members)
            wanted.update(other for member in members for other in CATALOGUE[member].companions)
        return cls(form, _ordered(wanted))

    def including(self, *names: str) -> BuildOptions:
        """Return these options with additional functions."""
        return replace(self, functions=_ordered({*self.functions, *names}))


def _hint(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1) if isinstance(name, str) else []
    return f"; did you mean {near[0]!r}?" if near else ""


def _ordered(names: set[str]) -> tuple[str, ...]:
    return tuple(name for name in CATALOGUE if name in names)
