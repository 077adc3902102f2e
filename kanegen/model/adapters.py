"""Reading SymPy's ``KanesMethod`` and ``System`` into the arguments of a :class:`~kanegen.model.Model`.

Only what the user gave is read: nothing SymPy has derived is used, except that ``KanesMethod`` keeps its
velocity and acceleration constraints as matrices, from which the rows are put together again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sympy
from sympy.physics.vector import dynamicsymbols

from kanegen.errors import ModelError, warn_user
from kanegen.model import normalize
from kanegen.model.checks.motions import Motions
from kanegen.model.checks.symbols import needed_rates
from kanegen.model.description import SystemDescription, described
from kanegen.model.expressions import atoms, base_symbol, is_time_function, symbol_name
from kanegen.model.inputs import Input
from kanegen.model.linear import in_span
from kanegen.model.places import survey

CHOICES = ("enforce", "ignore")
"""What ``configuration_constraints`` of ``Model.from_kane`` may be, besides None."""


def kane_arguments(kanes_method: Any, configuration_constraints: str | None = None, **options: Any) -> dict[str, Any]:
    """The arguments of ``Model`` for a ``KanesMethod``; ``options`` win over what is read.

    Acceleration constraints that are derivatives of velocity constraints are not added again. Dynamic symbols that are
    neither coordinates nor speeds become inputs, with inputs ``<name>_dot`` and ``<name>_ddot`` for the rates needed.
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
            "kinematics": _rows(km._k_kqdot_implicit, km.q.diff(), _rows(km._k_ku_implicit, km.u, km._f_k_implicit)),
            "bodies": tuple(km.bodylist or ()),
            "loads": tuple(km.forcelist or ()),
            "nonholonomic_constraints": velocity,
            "dependent_speeds": tuple(km._udep) or None,
            "auxiliary_speeds": tuple(km._uaux),
        }
        accelerations = () if km._k_dnh is km._k_nh else _rows(km._k_dnh, km._udot, km._f_dnh)
        positions = tuple(km._f_h)
    except AttributeError as error:
        raise ModelError(f"{km!r} cannot be read as a sympy.physics.mechanics.KanesMethod: {error}") from error
    arguments |= _sorted_positions(arguments | options, positions, configuration_constraints, "KanesMethod")
    if "acceleration_constraints" not in options:
        arguments["acceleration_constraints"] = _new_accelerations(accelerations, velocity, km, rate_map)
    return _completed(arguments, options)


def system_arguments(system: Any, configuration_constraints: str | None = None, **options: Any) -> dict[str, Any]:
    """The arguments of ``Model`` for a ``System``, loads of actuators included; ``options`` win over what is read."""
    try:
        loads = [*system.loads, *(load for actuator in system.actuators for load in actuator.to_loads())]
        same = ("frame", "bodies", "holonomic_constraints", "nonholonomic_constraints")
        arguments: dict[str, Any] = {name: getattr(system, name) for name in same}
        arguments |= {"coordinates": system.q, "speeds": system.u, "auxiliary_speeds": system.u_aux, "loads": loads}
        arguments |= {"name": "system", "kinematics": system.kdes, "dependent_speeds": tuple(system.u_dep) or None}
        overridden = getattr(system, "_vel_constrs", None)
    except AttributeError as error:
        raise ModelError(f"{system!r} cannot be read as a sympy.physics.mechanics.System: {error}") from error
    if overridden is not None:
        arguments["nonholonomic_constraints"] = system.velocity_constraints
        positions = arguments.pop("holonomic_constraints")
        arguments |= _sorted_positions(arguments | options, positions, configuration_constraints, "System")
    return _completed(arguments, options)


def _rows(matrix: Any, symbols: Any, rest: Any) -> tuple[Any, ...]:
    """The expressions ``matrix @ symbols + rest``."""
    return tuple(
        sympy.Add(*(matrix[i, j] * symbol for j, symbol in enumerate(symbols)), rest[i]) for i in range(len(rest))
    )


def _new_accelerations(
    rows: Sequence[Any], velocity: Sequence[Any], km: Any, rate_map: dict[Any, Any]
) -> tuple[Any, ...]:
    """The acceleration rows that do not follow from the derivatives of the velocity rows."""
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


def _sorted_positions(
    arguments: Mapping[str, Any], positions: Sequence[Any], choice: str | None, source: str
) -> dict[str, Any]:
    """The fields of a model for the configuration constraints ``positions`` of a ``source`` (the name of a class).

    KanesMethod's equations of motion contain the velocity constraints only. Configuration constraints serve its
    linearization: they are relations between positions that the velocity constraints are expected to keep. Those whose
    rates follow from the velocity constraints, for all motions through configurations that satisfy them, become
    ``implied_constraints``, which add no rows. Others are refused, unless ``choice`` is "enforce" (they become
    ``holonomic_constraints``) or "ignore" (left out, as in KanesMethod's equations of motion). Without velocity
    constraints they are enforced, with a warning. Those that the kinematical equations keep by themselves (the norm of
    Euler parameters) are implied with every choice: orientations are rotations only where they hold.
    """
    if choice not in (None, *CHOICES):
        expected = ", ".join(map(repr, CHOICES))
        raise ModelError(f"configuration_constraints is {choice!r}: expected one of {expected}, or None")
    if not positions:
        return {}
    rows = () if choice == "ignore" else arguments["nonholonomic_constraints"]
    follows = _rates_follow({**arguments, "nonholonomic_constraints": rows}, positions)
    implied = tuple(phi for phi, kept in zip(positions, follows, strict=True) if kept)
    if choice == "ignore":
        return {"implied_constraints": implied}
    others = [k for k, kept in enumerate(follows) if not kept]
    enforced = tuple(positions[k] for k in others)
    if others and choice is None and rows:
        raise ModelError([_not_kept(k, positions[k], source, follows[k] is None) for k in others])
    if others and choice is None:
        warn_user(
            f"the {source} has configuration constraints ({', '.join(map(str, enforced))}) but no velocity "
            "constraints: SymPy's equations of motion ignore them, kanegen enforces them. Pass "
            "configuration_constraints='enforce' to say that this is meant, or 'ignore' for SymPy's equations"
        )
    # Further rows determine further speeds: which ones is left to the solver.
    left: dict[str, Any] = {"dependent_speeds": None} if others else {}
    return {"implied_constraints": implied, "holonomic_constraints": enforced, **left}


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
