"""What SymPy's ``KanesMethod`` means by its constraints.

Its equations of motion contain the velocity constraints only. Configuration constraints serve its linearization: they
are relations between positions that the velocity constraints are expected to keep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sympy

from kanegen.errors import ModelError, warn_user
from kanegen.model import normalize
from kanegen.model.checks.motions import Motions
from kanegen.model.description import described
from kanegen.model.expressions import atoms, base_symbol, is_time_function, symbol_name
from kanegen.model.inputs import Input

CHOICES = ("enforce", "ignore")
"""What ``configuration_constraints`` of ``Model.from_kane`` may be, besides None."""


def sorted_positions(
    arguments: Mapping[str, Any], positions: Sequence[Any], choice: str | None, source: str
) -> dict[str, Any]:
    """The fields of a model for the configuration constraints ``positions`` of a ``source`` (the name of a class).

    Those whose rates follow from the velocity constraints, for all motions through configurations that satisfy them,
    become ``implied_constraints``, which add no rows. Others are refused, unless ``choice`` is "enforce" (they become
    ``holonomic_constraints``) or "ignore" (left out, as in KanesMethod's equations of motion). Without velocity
    constraints they are enforced, with a warning. Those that the kinematical equations keep by themselves (the norm of
    Euler parameters) are implied with every choice: orientations are rotations only where they hold.

    Raises
    ------
    ModelError
        For another choice, and for configuration constraints that the velocity constraints do not keep.
    """
    if choice not in (None, *CHOICES):
        raise ModelError(
            f"configuration_constraints is {choice!r}: expected one of {', '.join(map(repr, CHOICES))}, or None"
        )
    if not positions:
        return {}
    rows = () if choice == "ignore" else arguments["nonholonomic_constraints"]
    follows = _rates_follow({**arguments, "nonholonomic_constraints": rows}, positions)
    implied = tuple(phi for phi, kept in zip(positions, follows, strict=True) if kept)
    if choice == "ignore":
        return {"implied_constraints": implied}
    others = [k for k, kept in enumerate(follows) if not kept]
    if others and choice is None and rows:
        raise ModelError([_not_kept(k, positions[k], source, follows[k] is None) for k in others])
    if others and choice is None:
        warn_user(_not_used([positions[k] for k in others], source))
    fields: dict[str, Any] = {
        "implied_constraints": implied,
        "holonomic_constraints": tuple(positions[k] for k in others),
    }
    # Further rows determine further speeds: which ones is left to the solver.
    return fields | ({"dependent_speeds": None} if others else {})


def _not_used(positions: Sequence[Any], source: str) -> str:
    return (
        f"the {source} has configuration constraints ({', '.join(map(str, positions))}) but no velocity constraints: "
        "SymPy's equations of motion ignore them, kanegen enforces them. Pass configuration_constraints='enforce' to "
        "say that this is meant, or 'ignore' for SymPy's equations"
    )


def _not_kept(k: int, phi: Any, source: str, undecided: bool) -> str:
    reason = (
        "no configuration was found that satisfies it, so that it cannot be decided whether the velocity constraints "
        "keep it (give parameters=)"
        if undecided
        else "its rate does not follow from the velocity constraints, so that they do not keep it"
    )
    return (
        f"configuration constraint {k} of the {source} ({phi}): {reason}. SymPy's equations of motion contain the "
        "velocity constraints only, and configuration constraints serve its linearization. Pass "
        "configuration_constraints='enforce' to add it as a constraint of its own, or 'ignore' for SymPy's equations"
    )


def _rates_follow(arguments: Mapping[str, Any], positions: Sequence[Any]) -> Sequence[bool | None]:
    """For each position whether its rate follows; None where no configuration satisfies the positions.

    Nothing is checked yet: dynamic symbols that are neither coordinates nor speeds count as inputs.
    """
    d = described({**arguments, "implied_constraints": positions}, [])
    known = {*d.coordinates, *d.speeds, *d.auxiliary_speeds}
    others = {base_symbol(atom) for atom in atoms((*d.nonholonomic_constraints, *d.kinematics, *d.implied_constraints))}
    symbols = sorted(others - known, key=symbol_name)
    constants = [symbol for symbol in symbols if isinstance(symbol, sympy.Symbol)]
    parameters, _ = normalize.parameter_values(arguments.get("parameters"), constants, [])
    inputs = tuple(Input(symbol) for symbol in symbols if is_time_function(symbol))
    follows = Motions(d.changed(inputs=inputs, parameters=parameters), d.implied_constraints).rates_follow()
    return [None] * len(positions) if follows is None else follows
