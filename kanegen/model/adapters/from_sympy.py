"""Reading SymPy's ``KanesMethod`` and ``System`` into the arguments of a :class:`~kanegen.model.Model`.

Only what the user gave is read: nothing SymPy has derived is used, except that ``KanesMethod`` keeps its
velocity and acceleration constraints as matrices, from which the rows are put together again.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import sympy
from sympy.physics.vector import dynamicsymbols

from kanegen.errors import ModelError
from kanegen.model import normalize
from kanegen.model.adapters.kane_constraints import sorted_positions
from kanegen.model.checks.symbols import needed_rates
from kanegen.model.contact import normalize as contact_records
from kanegen.model.control.law import normalized_control
from kanegen.model.expressions import base_symbol, is_time_function, symbol_name
from kanegen.model.inputs import Input, resolved_inputs
from kanegen.model.linear import in_span
from kanegen.model.places import survey
from kanegen.model.reactions import normalized_reactions


def kane_description(kanes_method: Any, configuration_constraints: str | None = None, **options: Any) -> dict[str, Any]:
    """The arguments of ``Model`` for a ``KanesMethod``; ``options`` win over what is read.

    The velocity constraints become ``nonholonomic_constraints``; what becomes of the configuration constraints tells
    :func:`.sorted_positions`. Acceleration constraints that are a derivative of the
    velocity constraints are not added again. Dynamic symbols that are neither coordinates nor speeds become inputs,
    with inputs ``<name>_dot`` and ``<name>_ddot`` for the rates needed.

    Raises ``ModelError`` for anything that is no ``KanesMethod``, for configuration constraints that the velocity
    constraints do not keep, and for acceleration constraints at odds with the velocity constraints.
    """
    km = kanes_method
    try:
        rate_map = km._qdot_u_map or {}
        velocity = _rows(km._k_nh, km.u, km._f_nh)
        description: dict[str, Any] = {
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
    description |= sorted_positions(description | options, positions, configuration_constraints, "KanesMethod")
    if "acceleration_constraints" not in options:
        description["acceleration_constraints"] = _new_accelerations(accelerations, velocity, km, rate_map)
    return _completed(description, options)


def system_description(system: Any, configuration_constraints: str | None = None, **options: Any) -> dict[str, Any]:
    """The arguments of ``Model`` for a ``sympy.physics.mechanics.System``; ``options`` win over what is read.

    The loads of actuators are added. Holonomic constraints are enforced; where the user set velocity constraints, they
    are treated as the configuration constraints of a ``KanesMethod``.
    """
    try:
        loads = [*system.loads, *(load for actuator in system.actuators for load in actuator.to_loads())]
        description: dict[str, Any] = {
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
        description["nonholonomic_constraints"] = tuple(system.velocity_constraints)
        positions = description.pop("holonomic_constraints")
        description |= sorted_positions(description | options, positions, configuration_constraints, "System")
    return _completed(description, options)


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
    found = tuple(row for row in rows if not in_span(row, derivatives, accelerations))
    directions = _rows(km._k_nh, km._udot, [sympy.S.Zero] * len(velocity))
    for k, row in enumerate(found):
        direction = row - row.xreplace(dict.fromkeys(accelerations, 0))
        if in_span(direction, directions, accelerations):
            raise ModelError(
                f"acceleration constraint {k} of the KanesMethod ({row}) restricts the same accelerations as "
                "its velocity constraints, but is not their derivative: leave it out (for stabilization, use "
                "kg.Baumgarte), or pass acceleration_constraints= to from_kane"
            )
    return found


def _completed(description: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """``description`` with the user's ``options`` and the inputs that are found in it."""
    merged = description | options
    merged["inputs"] = (*_listed(merged.get("inputs")), *_found_inputs(merged))
    return merged


def _listed(inputs: Any) -> tuple[Any, ...]:
    return normalize.sequence(inputs, "inputs", [])


def _found_inputs(description: dict[str, Any]) -> tuple[Input, ...]:
    """An :class:`Input` for every dynamic symbol that is nothing else, in the order of their names."""
    draft = _draft(description)
    places = survey(draft).places
    known = {*draft.coordinates, *draft.speeds, *draft.auxiliary_speeds, *(r.symbol for r in draft.inputs)}
    found = {base_symbol(atom) for place in places for atom in place.atoms} - known
    symbols = sorted((item for item in found if is_time_function(item)), key=symbol_name)
    draft.inputs = tuple(Input(symbol) for symbol in symbols)
    needed = needed_rates(draft, places)
    taken = {symbol_name(atom) for place in places for atom in place.atoms}
    return tuple(_input_with_rates(symbol, needed.get(symbol, (0, ""))[0], taken) for symbol in symbols)


def _draft(description: dict[str, Any]) -> Any:
    """The fields of a model that :func:`survey` reads; problems are found later, by ``Model``."""
    ignored: list[str] = []
    fields = dict.fromkeys(("gravity", "potential_energy", "speed_change")) | description
    for field in normalize.CONSTRAINTS:
        fields[field] = normalize.scalars(fields.get(field), field, ignored)
    for field in ("coordinates", "speeds", "auxiliary_speeds"):
        fields[field] = normalize.time_functions(fields.get(field), field, ignored)
    fields["kinematics"] = normalize.kinematics(fields["kinematics"], ignored)
    fields["bodies"] = normalize.bodies(fields["bodies"], ignored)
    fields["loads"] = normalize.loads(fields["loads"], ignored)
    fields["outputs"] = normalize.outputs(fields.get("outputs"), ignored)
    fields["reactions"] = normalized_reactions(fields.get("reactions"), ignored)
    fields["contacts"] = contact_records.contacts(fields.get("contacts"), ignored)
    fields["events"] = contact_records.events(fields.get("events"), ignored)
    fields["impulses"] = contact_records.impulses(fields.get("impulses"), ignored)
    fields["control"] = normalized_control(fields.get("control"), ignored)
    fields["inputs"] = resolved_inputs(_listed(fields.get("inputs")), ignored)
    fields["gravity"] = normalize.vector_or_none(fields["gravity"], "gravity", ignored)
    if fields["potential_energy"] is not None:
        fields["potential_energy"] = normalize.scalar(fields["potential_energy"], "potential_energy", ignored)
    return SimpleNamespace(**fields)


def _input_with_rates(symbol: Any, order: int, taken: set[str]) -> Input:
    rates = []
    for suffix in ("_dot", "_ddot")[:order]:
        name = symbol_name(symbol) + suffix
        while name in taken:
            name += "_"
        taken.add(name)
        rates.append(dynamicsymbols(name))
    return Input(symbol, *rates)
