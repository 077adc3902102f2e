"""Reading ``KanesMethod``, ``System`` and ``LagrangesMethod`` into the arguments of a :class:`~kanegen.model.Model`.

The adapters read the user's input, not results that SymPy derived from it. One exception: ``KanesMethod`` stores
velocity and acceleration constraints as matrices, from which the rows are reconstructed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sympy
from sympy.physics.vector import ReferenceFrame, dynamicsymbols

from kanegen.errors import ModelError, brief, warn_user
from kanegen.model import normalize
from kanegen.model.checks.motions import Motions
from kanegen.model.checks.symbols import needed_rates
from kanegen.model.contacts import Latch
from kanegen.model.description import SystemDescription, described
from kanegen.model.expressions import atoms, base_symbol, is_time_function, symbol_name, vector_expressions
from kanegen.model.inputs import Input
from kanegen.model.linear import in_span
from kanegen.model.places import survey
from kanegen.model.records import VELOCITY, Composite, Machine, Parts

CHOICES = ("enforce", "ignore")
"""The values of ``configuration_constraints`` of ``Model.from_kane``, besides None."""


def kane_arguments(kanes_method: Any, configuration_constraints: str | None = None, **options: Any) -> dict[str, Any]:
    """The arguments of ``Model`` for a ``KanesMethod``; ``options`` take precedence over what is read.

    Acceleration constraints that are derivatives of velocity constraints are left out. Dynamic symbols that are neither
    coordinates nor speeds become inputs; the rates that they need become inputs ``<name>_dot`` and ``<name>_ddot``.
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
        raise ModelError(f"{brief(km)} cannot be read as a sympy.physics.mechanics.KanesMethod: {error}") from error
    arguments |= _sorted_positions(arguments | options, positions, configuration_constraints, "KanesMethod")
    if "acceleration_constraints" not in options:
        arguments["acceleration_constraints"] = _new_accelerations(accelerations, velocity, km, rate_map)
    return _completed(arguments, options)


def system_arguments(system: Any, configuration_constraints: str | None = None, **options: Any) -> dict[str, Any]:
    """The arguments of ``Model`` for a ``System`` with the loads of its actuators; ``options`` take precedence."""
    try:
        loads = [*system.loads, *(load for actuator in system.actuators for load in actuator.to_loads())]
        same = ("frame", "bodies", "holonomic_constraints", "nonholonomic_constraints")
        arguments: dict[str, Any] = {name: getattr(system, name) for name in same}
        arguments |= {"coordinates": system.q, "speeds": system.u, "auxiliary_speeds": system.u_aux, "loads": loads}
        arguments |= {"name": "system", "kinematics": system.kdes, "dependent_speeds": tuple(system.u_dep) or None}
        overridden = getattr(system, "_vel_constrs", None)
    except AttributeError as error:
        raise ModelError(f"{brief(system)} cannot be read as a sympy.physics.mechanics.System: {error}") from error
    if overridden is not None:
        arguments["nonholonomic_constraints"] = system.velocity_constraints
        positions = arguments.pop("holonomic_constraints")
        arguments |= _sorted_positions(arguments | options, positions, configuration_constraints, "System")
    return _completed(arguments, options)


def lagrange_arguments(lagranges_method: Any, **options: Any) -> dict[str, Any]:
    """The arguments of ``Model`` for a ``LagrangesMethod``; ``options`` take precedence over what is read.

    The speeds are ``u = q'`` unless ``options`` gives ``kinematics``.
    """
    lm, t = lagranges_method, dynamicsymbols._t
    try:
        n_hol = len(lm._hol_coneqs)
        arguments: dict[str, Any] = {
            "name": "lagrange",
            "frame": lm.inertial,
            "coordinates": tuple(lm.q),
            "lagrangian": lm._L[0],
            "bodies": tuple(lm.bodies or ()),
            "loads": tuple(lm.forcelist or ()),
            "holonomic_constraints": tuple(lm._hol_coneqs),
            "nonholonomic_constraints": tuple(lm.coneqs)[n_hol:],
        }
    except AttributeError as error:
        raise ModelError(f"{brief(lm)} cannot be read as a sympy.physics.mechanics.LagrangesMethod: {error}") from error
    if arguments["frame"] is None:
        arguments["frame"] = _frame_of(normalize.bodies((arguments | options)["bodies"], "bodies", []), options)
    coordinates = (arguments | options)["coordinates"]
    if "speeds" not in options:
        loads = normalize.loads(arguments["loads"], "loads", [])
        read = (lm._L[0], *lm.coneqs, *(x for _, vector in loads for x in vector_expressions(vector)))
        arguments["speeds"] = _rates_of(coordinates, {symbol_name(atom) for atom in atoms(read)})
    if "kinematics" not in options:
        speeds = (arguments | options)["speeds"]
        arguments["kinematics"] = tuple(q.diff(t) - u for q, u in zip(coordinates, speeds, strict=False))
    return _completed(arguments, options)


def _frame_of(bodies: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The one frame in which the velocities of all bodies are set; a new frame without bodies."""
    known = [{*body.masscenter._vel_dict} for body in bodies]
    frames = set.intersection(*known) if known else {ReferenceFrame("N")}
    if len(frames) == 1 or "frame" in options:
        return next(iter(frames), None)
    raise ModelError(
        f"the LagrangesMethod has bodies but no frame, and the velocities of their mass centers are set in "
        f"{len(frames)} common frames: give frame=, the inertial frame"
    )


def _rates_of(coordinates: Sequence[Any], taken: set[str]) -> tuple[Any, ...]:
    """A dynamic symbol ``<name>_dot`` for every coordinate, with underscores after a name that is taken."""
    return tuple(_unused(f"{symbol_name(q)}_dot", taken) for q in coordinates)


def _unused(name: str, taken: set[str]) -> Any:
    """The dynamic symbol of this name, followed by underscores if it is taken."""
    while name in taken:
        name += "_"
    taken.add(name)
    return dynamicsymbols(name)


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
                "its velocity constraints but is not their derivative: leave it out (for stabilization, use "
                "kg.Baumgarte), or pass acceleration_constraints= to from_kane"
            )
    return new


def _completed(arguments: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """``arguments`` with the user's ``options``, and an input for every dynamic symbol without another role."""
    merged = arguments | options
    inputs = normalize.sequence(merged.get("inputs"), "inputs", [])
    return merged | {"inputs": (*inputs, *_implicit_inputs(described(with_machines(merged), [])))}


def _implicit_inputs(description: SystemDescription) -> tuple[Input, ...]:
    """An :class:`Input` for every dynamic symbol without another role, sorted by name."""
    places = survey(description).places
    inputs = (item.symbol for item in description.inputs)
    known = {*description.coordinates, *description.speeds, *description.auxiliary_speeds, *inputs, *description.states}
    others = {base_symbol(atom) for place in places for atom in place.atoms} - known
    symbols = sorted(filter(is_time_function, others), key=symbol_name)
    needed = needed_rates(description.changed(inputs=tuple(map(Input, symbols))), places)
    taken = {symbol_name(atom) for place in places for atom in place.atoms}
    return tuple(_input_with_rates(symbol, needed.get(symbol, (0, ""))[0], taken) for symbol in symbols)


def _input_with_rates(symbol: Any, order: int, taken: set[str]) -> Input:
    rates = [_unused(symbol_name(symbol) + suffix, taken) for suffix in ("_dot", "_ddot")[:order]]
    return Input(symbol, *rates)


def _sorted_positions(
    arguments: Mapping[str, Any], positions: Sequence[Any], choice: str | None, source: str
) -> dict[str, Any]:
    """The fields of a model for the configuration constraints ``positions`` of a ``source`` (the name of a class).

    KanesMethod's equations of motion contain only the velocity constraints. It uses configuration constraints for
    linearization and expects that the velocity constraints imply them. A configuration constraint whose rate follows
    from the velocity constraints, at all configurations that satisfy the positions, becomes an ``implied_constraint``,
    which adds no row. Any other one is an error, unless ``choice`` is "enforce" (it becomes a ``holonomic_constraint``)
    or "ignore" (it is left out, as in KanesMethod's equations of motion). If there are no velocity constraints, it is
    enforced with a warning. A constraint whose rate follows from the kinematical equations alone (the norm of Euler
    parameters) is implied with every choice, because orientations are rotations only if it is satisfied.
    """
    if choice not in (None, *CHOICES):
        expected = ", ".join(map(repr, CHOICES))
        raise ModelError(f"configuration_constraints is {choice!r}: expected one of {expected}, or None")
    if not positions:
        return {}
    rows = () if choice == "ignore" else arguments["nonholonomic_constraints"]
    follows = _rates_follow({**arguments, "nonholonomic_constraints": rows}, positions)
    implied = tuple(phi for phi, is_implied in zip(positions, follows, strict=True) if is_implied)
    if choice == "ignore":
        return {"implied_constraints": implied}
    others = [k for k, is_implied in enumerate(follows) if not is_implied]
    enforced = tuple(positions[k] for k in others)
    if others and choice is None and rows:
        raise ModelError([_not_implied(k, positions[k], source, follows[k] is None) for k in others])
    if others and choice is None:
        warn_user(
            f"the {source} has configuration constraints ({', '.join(map(str, enforced))}) but no velocity "
            "constraints. SymPy's equations of motion ignore them; kanegen enforces them. Pass "
            "configuration_constraints='enforce' to silence this warning, or 'ignore' for SymPy's equations"
        )
    # Additional rows need additional dependent speeds, which the solver chooses.
    choice_of_speeds: dict[str, Any] = {"dependent_speeds": None} if others else {}
    return {"implied_constraints": implied, "holonomic_constraints": enforced, **choice_of_speeds}


def _not_implied(k: int, phi: Any, source: str, undecided: bool) -> str:
    reason = (
        "no configuration was found that satisfies it, so kanegen cannot decide whether the velocity constraints "
        "imply it (give parameters=)"
        if undecided
        else "its rate does not follow from the velocity constraints, so they do not imply it"
    )
    return (
        f"configuration constraint {k} of the {source} ({phi}): {reason}. SymPy's equations of motion contain only "
        "the velocity constraints; SymPy uses configuration constraints for linearization. Pass "
        "configuration_constraints='enforce' to add a holonomic constraint, or 'ignore' for SymPy's equations"
    )


def _rates_follow(arguments: Mapping[str, Any], positions: Sequence[Any]) -> Sequence[bool | None]:
    """Whether the rate of each position follows from the velocities; None if no configuration satisfies the positions.

    The model is not checked yet, so every dynamic symbol that is neither a coordinate nor a speed counts as an input.
    """
    d = described({**arguments, "implied_constraints": positions}, [])
    known = {*d.coordinates, *d.speeds, *d.auxiliary_speeds}
    others = {base_symbol(atom) for atom in atoms((*d.constraints_on(VELOCITY), *d.kinematics, *d.implied_constraints))}
    symbols = sorted(others - known, key=symbol_name)
    constants = [symbol for symbol in symbols if isinstance(symbol, sympy.Symbol)]
    parameters, _ = normalize.parameter_values(arguments.get("parameters"), constants, [])
    inputs = tuple(Input(symbol) for symbol in symbols if is_time_function(symbol))
    follows = Motions(d.changed(inputs=inputs, parameters=parameters), d.implied_constraints).rates_follow()
    return [None] * len(positions) if follows is None else follows


# -- bodies that consist of several ----------------------------------------------------------------------------


def with_parts(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of ``Model`` with the parts of each :class:`~kanegen.model.records.Composite` in its place.

    Coordinates and speeds that the user did not list follow those listed; the kinematical equations are added.
    """
    arguments = with_machines(given)
    bodies = given["bodies"]
    if not normalize.is_sequence(bodies) or not isinstance(given["frame"], ReferenceFrame):
        return arguments
    composites = [body for body in bodies if isinstance(body, Composite)]
    if not composites:
        return arguments
    arguments["bodies"] = tuple(
        part for body in bodies for part in (body.particles if isinstance(body, Composite) else (body,))
    )
    symbols = Counter(q for composite in dict.fromkeys(composites) for q in composite.coordinates)
    shared = [q for q, count in symbols.items() if count > 1]
    if shared:
        raise ModelError(f"several flexible bodies have the coordinate {symbol_name(shared[0])}: give them other names")
    for composite in dict.fromkeys(composites):
        _add_parts(arguments, composite.parts(given["frame"]))
    return arguments


def with_machines(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of ``Model`` with the states and events of ``modes``, which become the names of the modes.

    Raises `ModelError`.
    """
    arguments = dict(given)
    names: dict[Any, tuple[str, ...]] = {}
    for machine in _machines(given.get("modes", ())):
        parts = machine.parts()
        names |= parts.modes
        for what in ("states", "initial"):
            of_user = arguments.get(what) or {}
            if isinstance(of_user, Mapping):
                known = set(map(symbol_name, of_user))
                own = {x: value for x, value in getattr(parts, what).items() if symbol_name(x) not in known}
                arguments[what] = {**of_user, **own}
        arguments["events"] = (*normalize.listed(arguments.get("events", ())), *parts.events)
        contacts = normalize.listed(arguments.get("contacts", ()))
        arguments["contacts"] = tuple(_at_start(x, parts.closed) for x in contacts)
    arguments["modes"] = names
    return arguments


def _machines(given: Any) -> tuple[Machine, ...]:
    """The argument ``modes``. Raises `ModelError`."""
    machines = normalize.listed(given)
    for k, machine in enumerate(machines):
        if not isinstance(machine, Machine):
            raise ModelError(f"modes[{k}] is {brief(machine)}: expected a kg.Modes")
    return tuple(machines)


def _at_start(contact: Any, closed: Mapping[str, bool]) -> Any:
    """A contact; if it is a latch that the modes close and open, closed or open as in the first of them."""
    if not isinstance(contact, Latch) or contact.name not in closed:
        return contact
    return replace(contact, closed=closed[contact.name])


def _add_parts(arguments: dict[str, Any], parts: Parts) -> None:
    for what in ("coordinates", "speeds", "loads"):
        arguments[what] = _with_further(arguments[what], getattr(parts, what))
    if isinstance(arguments["kinematics"], Mapping):
        rates = {q.diff(dynamicsymbols._t): u for q, u in zip(parts.coordinates, parts.speeds, strict=True)}
        arguments["kinematics"] = {**rates, **arguments["kinematics"]}
    else:
        arguments["kinematics"] = _with_further(arguments["kinematics"], parts.kinematics)
    energy = arguments["potential_energy"]
    if energy is None:
        arguments["potential_energy"] = parts.potential_energy
    elif isinstance(energy, int | float | sympy.Expr):
        arguments["potential_energy"] = energy + parts.potential_energy
    for what in ("parameters", "shapes"):
        of_user = arguments[what] or {}
        if isinstance(of_user, Mapping):
            own = {key: value for key, value in getattr(parts, what).items() if symbol_name(key) not in of_user}
            arguments[what] = {**own, **of_user}


def _with_further(listed: Any, further: Sequence[Any]) -> Any:
    """A list of the user with further items that it does not contain."""
    items = () if listed is None else normalize.listed(listed)
    return (*items, *(x for x in further if x not in items))
