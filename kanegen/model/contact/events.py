"""Events of the user, the impulses they apply, and multipliers of contacts as symbols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy

_MULTIPLIER = sympy.Function("lambda", real=True)


def Multiplier(contact: str, index: int = 0) -> Any:
    """The multiplier of a row of a contact as a symbol of guards and outputs: a contact force, N.

    ``Multiplier("floor")`` is the normal force of the contact "floor", ``Multiplier("floor", 1)`` the force in its
    first direction of slip. Under a given load there is no normal row, and 0 is the first direction.
    """
    return _MULTIPLIER(sympy.Symbol(contact), sympy.Integer(index))


def is_multiplier(expression: Any) -> bool:
    """Whether ``expression`` is a :func:`Multiplier`."""
    return bool(getattr(expression, "func", None) == _MULTIPLIER)


def multiplier_row(expression: Any) -> tuple[str, int]:
    """The contact and the index of a :func:`Multiplier`."""
    contact, index = expression.args
    return str(contact), int(index)


@dataclass(frozen=True)
class Event:
    """What happens where a guard changes its sign.

    Parameters
    ----------
    name
        Name in messages and results.
    guard
        Expression of t, q, q', u, inputs, parameters and :func:`Multiplier` symbols.
    direction
        Of the sign change: +1 rising, -1 falling, 0 both.
    terminal
        Whether the run ends there.
    impulse
        Name of one of the model's ``impulses`` that acts, or None.
    impose, remove
        Names of latches that close and open.
    """

    name: str
    guard: Any
    direction: int = 0
    terminal: bool = False
    impulse: str | None = None
    impose: Any = ()
    remove: Any = ()
