"""What the values that a function stores are: comments beside them, and a phrase about rows and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kanegen.codegen.text import comment
from kanegen.program.passes.lowered import LoweredFunction
from kanegen.program.records import Symbols

DERIVATIVES: Final = "derivatives of the coordinates, then of the speeds"
SPEEDS: Final = "speeds"
STATES: Final = "states"
ROWS: Final = "constraints"

AXES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("rhs", "rhs_stabilized", "kinematics", "jacobian_t"), (DERIVATIVES,)),
    "jacobian_q": (DERIVATIVES, "coordinates"),
    "jacobian_u": (DERIVATIVES, SPEEDS),
    "jacobian_s": (DERIVATIVES, STATES),
    "state_rates": (STATES,),
    "resets": ("events", STATES),
    "switches": ("switches", "value and rate"),
    "tables": ("tables", "argument and whether it is inside"),
    "jacobian_r": (DERIVATIVES, "inputs"),
    "jacobian_p": (DERIVATIVES, "parameters"),
    **dict.fromkeys(("Q", "M"), (SPEEDS, SPEEDS)),
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
"""Meaning of the rows and columns of a function. Functions that are not listed have plain indices."""


def labels(function: LoweredFunction, symbols: Symbols) -> tuple[list[str], str]:
    """Comments on the values in ``out``, none for plain indices, and a phrase about the rows and columns."""
    # Internal functions with these endings store the same values as the function without the ending.
    name = function.name.removesuffix("_general").removesuffix("_bare")
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
    return list(map(comment, at)), comment(layout)


def _names(axis: str, symbols: Symbols, length: int) -> list[str]:
    """The names along an axis; empty for plain indices."""
    known: dict[str, Sequence[str]] = {
        DERIVATIVES: [f"{name}'" for name in (*symbols.coordinates, *symbols.speeds, *symbols.states)],
        SPEEDS: symbols.speeds,
        STATES: symbols.states,
        "coordinates": symbols.coordinates,
        "inputs": symbols.inputs,
        "parameters": symbols.parameters,
    }
    names = list(known.get(axis, ()))
    return names if len(names) == length else []
