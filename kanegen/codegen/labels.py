"""Names of what a function stores: its rows and columns in the terms of the model, for comments in the C."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kanegen.codegen.text import comment
from kanegen.program.records import Function, Symbols

DERIVATIVES: Final = "derivatives of the coordinates, then of the speeds"
SPEEDS: Final = "speeds"
ROWS: Final = "constraints"

AXES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("rhs", "rhs_stabilized", "kinematics"), (DERIVATIVES,)),
    "jacobian_q": (DERIVATIVES, "coordinates"),
    "jacobian_u": (DERIVATIVES, SPEEDS),
    "jacobian_r": (DERIVATIVES, "inputs"),
    "jacobian_p": (DERIVATIVES, "parameters"),
    "jacobian_t": (DERIVATIVES,),
    "Q": (SPEEDS, SPEEDS),
    "T": ("constraints, then momentum balances", SPEEDS),
    "V": ("constraints, then momentum balances",),
    "J": (ROWS, SPEEDS),
    **dict.fromkeys(("b", "multipliers"), (ROWS,)),
    "A": ("dependent speeds", "independent speeds"),
    "B": ("dependent speeds",),
    "A1": (ROWS, SPEEDS),
    "A2": ("independent speeds", SPEEDS),
    **dict.fromkeys(("P", "F", "L", "N", "momentum", "constraint_force"), (SPEEDS,)),
}
"""What the rows, and the columns, of a function are. Functions that are not listed have plain indices."""

VARIANTS: Final = ("_general", "_bare")
"""Endings of internal functions that store what the function without the ending stores."""


@dataclass(frozen=True)
class Labels:
    """Comments on the values of one function, safe inside ``/* */``.

    ``at[i]``: what ``out[i]`` is, or "" where an index says as much. ``layout``: one phrase about the rows and columns.
    """

    at: tuple[str, ...] = ()
    layout: str = ""


def labels(function: Function, symbols: Symbols) -> Labels:
    """The labels of what ``function`` stores in its array ``out``."""
    name = function.name
    for variant in VARIANTS:
        name = name.removesuffix(variant)
    shape, axes = function.shape, AXES.get(name, ())
    if len(axes) != len(shape):
        axes = ("",) * len(shape)
    names = [_names(axis, symbols, n) for axis, n in zip(axes, shape, strict=True)]
    if axes == (DERIVATIVES,):
        at, layout = names[0], ", ".join(names[0])
    elif len(shape) == 2:
        rows, columns = (along or list(map(str, range(n))) for along, n in zip(names, shape, strict=True))
        at = [f"{name if axes[0] else ''}[{row}, {column}]" for row in rows for column in columns]
        layout = f"rows: {axes[0]}; columns: {axes[1]}" if axes[0] else ""
    else:
        at = [f"{name}[{entry}]" for along in names for entry in along]
        layout = f"rows: {axes[0]}" if any(axes) else ""
    return Labels(tuple(map(comment, at)), comment(layout))


def _names(axis: str, symbols: Symbols, length: int) -> list[str]:
    """The names along an axis; none where there are none."""
    known = {
        DERIVATIVES: [f"{name}'" for name in (*symbols.coordinates, *symbols.speeds)],
        SPEEDS: list(symbols.speeds),
        "coordinates": list(symbols.coordinates),
        "inputs": list(symbols.inputs),
        "parameters": list(symbols.parameters),
    }
    names = known.get(axis, [])
    return names if len(names) == length else []
