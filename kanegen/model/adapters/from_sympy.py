"""Reading SymPy's ``KanesMethod`` and ``System`` into the arguments of a :class:`~kanegen.model.Model`.

Only what the user gave is read: nothing SymPy has derived is used, except that ``KanesMethod`` keeps its
velocity and acceleration constraints as matrices, from which the rows are put together again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
from sympy.physics.vector import dynamicsymbols

from kanegen.errors import ModelError
from kanegen.model import normalize
from kanegen.model.adapters.kane_constraints import sorted_positions
from kanegen.model.checks.symbols import needed_rates
from kanegen.model.description import SystemDescription, described
from kanegen.model.expressions import base_symbol, is_time_function, symbol_name
from kanegen.model.inputs import Input
from kanegen.model.linear import in_span
from kanegen.model.places import survey


def kane_arguments(kanes_method: Any, configuration_constraints: str | None = None, **options: Any) -> dict[str, Any]:
    """The arguments of ``Model`` for a ``KanesMethod``; ``options`` win over what is read.

    The velocity constraints become ``nonholonomic_constraints``; :func:`.sorted_positions` says what
    becomes of the configuration constraints. Acceleration constraints that are a derivative of the velocity
    constraints are not added again. Dynamic symbols that are neither coordinates nor speeds become inputs,
    with inputs ``<name>_dot`` and ``<name>_ddot`` for the rates needed.

    Raises ``ModelError`` for anything that is no ``KanesMethod``, for configuration constraints that the velocity
    constraints do not keep, and for acceleration constraints at odds with the velocity constraints.
    """
    km = kanes_method
    try:
        rate_map = km._qdot_u_map or {}
        velocity = _rows(km._k_nh, km.u, km._f_nh)
        arguments: dict[str, Any] = {
            "name": "kane",
            "frame": km._inertial,
            "coordinates": tuple(km.q),
            "speeds": tuple(km.u),
            "kinematics": _kinematics(km),
            "bodies": tuple(km.bodylist or ()),
            "loads": tuple(km.forcelist or ()),
            "nonholonomic_constraints": velocity,
            "dependent_speeds": tuple(km._udep) or None,
            "auxiliary_speeds": tuple(km._uaux),
        }
        given_accelerations = km._k_dnh is not km._k_nh
        accelerations = _rows(km._k_dnh, km._udot, km._f_dnh) if given_accelerations else ()
        positions = tuple(km._f_h)
    except AttributeError as error:
        raise ModelError(
            f"{kanes_method!r} cannot be read as a sympy.physics.mechanics.KanesMethod: {error}"
        ) from error
    arguments |= sorted_positions(arguments | options, positions, configuration_constraints, "KanesMethod")
    if "acceleration_constraints" not in options:
        arguments["acceleration_constraints"] = _new_accelerations(accelerations, velocity, km, rate_map)
    return _completed(arguments, options)


def system_arguments(system: Any, configuration_constraints: str | None = None, **options: Any) -> dict[str, Any]:
    """The arguments of ``Model`` for a ``sympy.physics.mechanics.System``; ``options`` win over what is read.

    The loads of actuators are added. Holonomic constraints are enforced; where the user set velocity constraints, they
    are treated as the configuration constraints of a ``KanesMethod``.
    """
    try:
        loads = [*system.loads, *(load for actuator in system.actuators for load in actuator.to_loads())]
        arguments: dict[str, Any] = {
            "name": "system",
            "frame": system.frame,
            "coordinates": tuple(system.q),
            "speeds": tuple(system.u),
            "kinematics": tuple(system.kdes),
            "bodies": tuple(system.bodies),
            "loads": loads,
            "holonomic_constraints": tuple(system.holonomic_constraints),
            "nonholonomic_constraints": tuple(system.nonholonomic_constraints),
            "dependent_speeds": tuple(system.u_dep) or None,
            "auxiliary_speeds": tuple(system.u_aux),
        }
        overridden = getattr(system, "_vel_constrs", None)
    except AttributeError as error:
        raise ModelError(f"{system!r} cannot be read as a sympy.physics.mechanics.System: {error}") from error
    if overridden is not None:
        arguments["nonholonomic_constraints"] = tuple(system.velocity_constraints)
        positions = arguments.pop("holonomic_constraints")
        arguments |= sorted_positions(arguments | options, positions, configuration_constraints, "System")
    return _completed(arguments, options)


def _rows(matrix: Any, symbols: Any, rest: Any) -> tuple[Any, ...]:
    """The expressions ``matrix @ symbols + rest``."""
    return tuple(
        sympy.Add(*(matrix[i, j] * symbol for j, symbol in enumerate(symbols)), rest[i]) for i in range(len(rest))
    )


def _kinematics(km: Any) -> tuple[Any, ...]:
    rest = _rows(km._k_ku_implicit, km.u, km._f_k_implicit)
    return _rows(km._k_kqdot_implicit, km.q.diff(), rest)


def _new_accelerations(
    rows: Sequence[Any], velocity: Sequence[Any], km: Any, rate_map: dict[Any, Any]
) -> tuple[Any, ...]:
    """The acceleration rows that do not follow from the derivatives of the velocity rows."""
    if not rows:
        return ()
    accelerations = frozenset(km._udot)
    derivatives = [expr.diff(dynamicsymbols._t).xreplace(rate_map) for expr in velocity]
    new = tuple(row for row in rows if not in_span(row, derivatives, accelerations))
    directions = _rows(km._k_nh, km._udot, [sympy.S.Zero] * len(velocity))
    for k, row in enumerate(new):
        direction = row - row.xreplace(dict.fromkeys(accelerations, 0))
        if in_span(direction, directions, accelerations):
            raise ModelError(
                f"acceleration constraint {k} of the KanesMethod ({row}) restricts the same accelerations as "
                "its velocity constraints, but is not their derivative: leave it out (for stabilization, use "
                "kg.Baumgarte), or pass acceleration_constraints= to from_kane"
            )
    return new


def _completed(arguments: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """``arguments`` with the user's ``options`` and an input for every dynamic symbol that is nothing else."""
    merged = arguments | options
    given = normalize.sequence(merged.get("inputs"), "inputs", [])
    return merged | {"inputs": (*given, *_further_inputs(described(merged, [])))}


def _further_inputs(description: SystemDescription) -> tuple[Input, ...]:
    """An :class:`Input` for every dynamic symbol that is nothing else, in the order of their names."""
    places = survey(description).places
    inputs = (item.symbol for item in description.inputs)
    known = {*description.coordinates, *description.speeds, *description.auxiliary_speeds, *inputs}
    others = {base_symbol(atom) for place in places for atom in place.atoms} - known
    symbols = sorted(filter(is_time_function, others), key=symbol_name)
    needed = needed_rates(description.changed(inputs=tuple(map(Input, symbols))), places)
    taken = {symbol_name(atom) for place in places for atom in place.atoms}
    return tuple(_input_with_rates(symbol, needed.get(symbol, (0, ""))[0], taken) for symbol in symbols)


def _input_with_rates(symbol: Any, order: int, taken: set[str]) -> Input:
    rates = []
    for suffix in ("_dot", "_ddot")[:order]:
        name = symbol_name(symbol) + suffix
        while name in taken:
            name += "_"
        taken.add(name)
        rates.append(dynamicsymbols(name))
    return Input(symbol, *rates)
