"""Checks of a model's symbols: missing, ambiguous and unused symbols, and symbols in expressions that forbid them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import sympy
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import RigidBody
from sympy.physics.vector import dynamicsymbols

from kanegen.graph.lower import DELAYS
from kanegen.model.contacts import is_multiplier
from kanegen.model.description import SystemDescription
from kanegen.model.expressions import (
    atoms,
    base_symbol,
    derivative_order,
    dyadic_expressions,
    is_time_function,
    not_real,
    symbol_name,
    symbol_names,
)
from kanegen.model.geometry import connected_symbols
from kanegen.model.linear import affine_coefficients
from kanegen.model.places import Place
from kanegen.model.records import ACCELERATION, POSITION, VELOCITY

_OF_POSITION = ("q", "r")
_MOTION = ("q", "q'", "u", "r", "r'")
_FORCE = (*_MOTION, "r''", "s")
_RATE = (*_FORCE, "q''", "u'")

#: The symbols that the expressions of each kind of place can depend on, besides time and parameters.
ALLOWED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("law", "servo gain", "limit"), ()),
    **dict.fromkeys(("mass", "inertia", "gravity"), ("r",)),
    **dict.fromkeys((POSITION, "position", "orientation", "gap", "contact force", "servo position"), _OF_POSITION),
    "potential energy": (*_OF_POSITION, "s"),
    "lagrangian": ("q", "q'", "r", "r'", "s"),
    "momentum": ("q", "q'", "r", "r'"),
    "speed definition": ("q", "u", "r"),
    **dict.fromkeys(("kinematics", VELOCITY, "velocity", "angular velocity", "velocity gap", "slip"), _MOTION),
    **dict.fromkeys(("impulse", "servo velocity"), _MOTION),
    **dict.fromkeys(("constraint force", "normal load", "guard", "reset", "servo law", "feedback"), _FORCE),
    **dict.fromkeys((ACCELERATION, "control constraint"), (*_MOTION, "r''", "q''", "u'")),
    **dict.fromkeys(("load", "rate"), _RATE),
    "output": (*_RATE, "s'"),
}

_ADVICE = {
    POSITION: "a constraint with speeds belongs to nonholonomic_constraints",
    VELOCITY: "a constraint with u' belongs to acceleration_constraints",
    "mass": "Kane's F* = -(m v)' holds for a mass that is a function of time; for a mass that depends on the motion, "
    "Kane's and Lagrange's equations differ",
    "inertia": "write the inertia in a frame in which its components are constant, such as the frame of the body",
    "gravity": "gravity must be uniform; write other fields as loads with potential_energy",
    "potential energy": "forces that depend on speeds have no potential energy",
    "momentum": "states can be part of the potential energy only",
    "lagrangian": "write the rates q' of the coordinates in place of speeds",
    "velocity gap": "a gap is an expression of positions, or one of speeds without accelerations",
    "law": "the values of a law are constant during a run",
    "servo gain": "Theta and damping are constant during a run",
    "limit": "saturation and dead band are constant during a run",
    "feedback": "accelerations depend on the inputs: give a force that depends on them as a load",
}


_ADVICE_ON_STATES = (
    "states belong in loads, rates, laws, outputs, guards and the potential energy; their own rates in outputs"
)


def value_problems(places: Sequence[Place]) -> list[str]:
    """Places with constants that are no real numbers. Vectors that contain nan cannot be read by further checks."""
    return [
        f"{place.where} contains {', '.join(sorted(map(str, found)))}: expected finite real expressions"
        for place in places
        if (found := not_real(place.expressions)) and not (place.kind in _CAN_BE_INFINITE and found <= _INFINITE)
    ]


_CAN_BE_INFINITE = ("limit", "law", "servo gain")
"""Kinds of places whose own checks know what infinity means there."""

CONTROL: Final = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that C strings or XML cannot contain; tabs and line ends they can."""

_INFINITE = frozenset((sympy.oo, -sympy.oo))


def symbol_problems(model: SystemDescription, places: Sequence[Place], unknown_symbols: Sequence[Any]) -> list[str]:
    """Problems of duplicated, ambiguous, unknown, misplaced and unused symbols."""
    of_places = (_unknown, _misplaced, _nonlinear_loads, _missing_rates, _constant_inputs, _unused_inputs)
    problems = [*_duplicates(model), *_ambiguous_names(model), *_outputs_named_as_others(model)]
    problems += _unwritable_names(model)
    problems += [problem for find in of_places for problem in find(model, places)]
    return [*problems, *_unused_parameters(model, unknown_symbols), *_wrong_starts(model)]


def _groups(model: SystemDescription) -> dict[str, tuple[Any, ...]]:
    groups = {"coordinates": model.coordinates, "speeds": model.speeds, "former speeds": model.former_speeds}
    inputs = tuple(item.symbol for item in model.inputs)
    return groups | {"auxiliary_speeds": model.auxiliary_speeds, "inputs": inputs, "states": tuple(model.states)}


def _duplicates(model: SystemDescription) -> Iterator[str]:
    places: dict[Any, list[str]] = {}
    for group, symbols in _groups(model).items():
        for symbol in symbols:
            places.setdefault(symbol, []).append(group)
    dependent = model.dependent_speeds or ()
    places |= {symbol: ["dependent_speeds"] * 2 for symbol in dependent if dependent.count(symbol) > 1}
    for symbol, groups in places.items():
        if len(groups) > 1:
            where = " and in ".join(groups)
            yield f"{symbol_name(symbol)} occurs twice, in {where}: list each symbol once"


def _ambiguous_names(model: SystemDescription) -> Iterator[str]:
    symbols: dict[Any, str] = {}
    for group, members in (*_groups(model).items(), ("parameters", tuple(model.parameters))):
        symbols |= {symbol: group for symbol in members if symbol not in symbols}
    by_name: dict[str, list[str]] = {}
    for symbol, group in symbols.items():
        by_name.setdefault(symbol_name(symbol), []).append(group)
    for name, groups in by_name.items():
        if len(groups) > 1:
            yield (
                f"{len(groups)} different symbols have the printed name {name!r} (in {', '.join(groups)}): rename one, "
                "or use the same symbol (SymPy distinguishes symbols with different assumptions)"
            )


def _unwritable_names(model: SystemDescription) -> Iterator[str]:
    """Problems of names that no file can hold: empty ones, halves of characters (surrogates), control characters."""
    geometry = model.geometry
    frames = {model.frame, *geometry.parents, *geometry.rate_parents}
    points = {*geometry.routes, *(point for pair in geometry.positions for point in pair)}
    variables = {
        **{symbol_name(symbol): group for group, members in _groups(model).items() for symbol in members},
        **{symbol_name(symbol): "parameters" for symbol in model.parameters},
        **dict.fromkeys(model.outputs, "outputs"),
    }
    names = {
        model.name: "the model",
        **variables,
        **{str(body.name): "bodies" for body in model.bodies},
        **{str(frame.name): "frames" for frame in frames},
        **{str(point.name): "points" for point in points},
        **dict.fromkeys(model.reactions, "reactions"),
        **dict.fromkeys(model.impulses, "impulses"),
        **{contact.name: "contacts" for contact in model.resolved_contacts},
        **{event.name: "events" for event in model.events},
    }
    for name, where in names.items():
        if any("\ud800" <= letter <= "\udfff" for letter in str(name)):
            yield f"the name {name!r} ({where}) contains half of a character (a surrogate): choose another name"
        elif CONTROL.search(str(name)):
            yield f"the name {name!r} ({where}) contains a control character: choose another name"
    if "" in variables:
        yield f"an empty name is among the {variables['']}: choose another one"


def _outputs_named_as_others(model: SystemDescription) -> Iterator[str]:
    """Outputs with the name of another quantity of the motion: solutions find both by name."""
    columns = {"coordinate": model.coordinates, "speed": model.speeds, "state": model.states}
    kinds = {symbol_name(symbol): (kind, symbol) for kind, symbols in columns.items() for symbol in symbols}
    kinds |= {symbol_name(item.symbol): ("input", item.symbol) for item in model.inputs}
    for name, output in model.outputs.items():
        kind, symbol = kinds.get(name, ("", None))
        if kind and output.expressions != (symbol,):
            yield f"outputs[{name!r}] has the name of the {kind} {name}, but another value: rename the output"


def _kind(model: SystemDescription) -> dict[Any, str]:
    speeds = dict.fromkeys((*model.all_speeds, *model.auxiliary_speeds), "u")
    inputs = {item.symbol: "r" for item in model.inputs}
    # A symbol with two roles is reported once, as a duplicate, and then treated by the first of them.
    return dict.fromkeys(model.states, "s") | inputs | speeds | dict.fromkeys(model.coordinates, "q")


def _unknown(model: SystemDescription, places: Sequence[Place]) -> Iterator[str]:
    kinds = _kind(model)
    first: dict[Any, str] = {}
    for place in places:
        for atom in place.atoms:
            base = base_symbol(atom)
            if base not in kinds and not isinstance(base, sympy.Symbol) and not is_multiplier(base):
                first.setdefault(base, place.where)
    for base in sorted(first, key=str):
        where = f"(in {first[base]})"
        if is_time_function(base):
            name = symbol_name(base)
            advice = f"add it to coordinates, speeds, inputs or states{_hint(name, map(symbol_name, kinds))}"
            yield f"{name} {where} is neither a coordinate, a speed, an input nor a state: {advice}"
        elif isinstance(base, sympy.Subs):
            yield f"{base} {where} has functions of time at another time: {DELAYS}"
        else:
            known = {getattr(symbol, "func", None) for symbol in kinds}
            advice = "expected a kg.Function or kg.Table, which can be evaluated"
            advice = DELAYS if getattr(base, "func", None) in known else advice
            yield f"{base} {where} is an undefined function of something other than time: {advice}"


def _misplaced(model: SystemDescription, places: Sequence[Place]) -> Iterator[str]:
    kinds = _kind(model)
    for place in places:
        allowed = ALLOWED[place.kind]
        kind_of = {atom: kinds[base_symbol(atom)] for atom in place.atoms if base_symbol(atom) in kinds}
        wrong = [atom for atom, kind in kind_of.items() if kind + "'" * derivative_order(atom) not in allowed]
        if wrong:
            names, expected = ", ".join(sorted(map(symbol_name, wrong))), ", ".join(("t", *allowed, "parameters"))
            of_states = all(kind_of[atom] == "s" for atom in wrong)
            advice = _ADVICE_ON_STATES if of_states else _ADVICE.get(place.kind, "")
            yield f"{place.where} contains {names}: it can depend only on {expected}{f' ({advice})' if advice else ''}"


def _nonlinear_loads(model: SystemDescription, places: Sequence[Place]) -> Iterator[str]:
    """Loads that are not affine in the accelerations; only terms that are show it, so that |u'| is refused too."""
    for place in places:
        accelerations = model.accelerations_among(place.atoms) if place.kind == "load" else frozenset()
        for component in place.expressions if accelerations else ():
            if affine_coefficients(component, accelerations) or affine_coefficients(component.expand(), accelerations):
                continue
            yield (
                f"{place.where} is not affine in the accelerations {symbol_names(sorted(accelerations, key=str))}: "
                f"{component}; expected terms such as -c*{symbol_name(min(accelerations, key=str))}, with factors c "
                "that depend on no acceleration"
            )


def needed_rates(model: SystemDescription, places: Sequence[Place]) -> dict[Any, tuple[int, str]]:
    """How often the derivation differentiates each input (1 or 2), and the first place that requires it."""
    inputs = {item.symbol for item in model.inputs}
    coordinates = set(model.coordinates)
    # Where an expression of q is differentiated twice, q' and therefore the kinematics are differentiated once.
    twice = any(
        base_symbol(atom) in coordinates and derivative_order(atom) + place.differentiations >= 2
        for place in places
        for atom in place.atoms
    )
    needed: dict[Any, tuple[int, str]] = {}
    for place in places:
        extra = int(twice) if place.kind == "kinematics" else place.differentiations
        for atom in place.atoms:
            symbol = base_symbol(atom)
            order = derivative_order(atom) + extra
            if symbol in inputs and order > needed.get(symbol, (0, ""))[0]:
                needed[symbol] = (order, place.where)
    return needed


def _missing_rates(model: SystemDescription, places: Sequence[Place]) -> Iterator[str]:
    needed = needed_rates(model, places)
    for item in model.inputs:
        order, where = needed.get(item.symbol, (0, ""))
        if order > (0 if item.rate is None else 1 if item.acceleration is None else 2):
            what, further = ("its rate", "") if order == 1 else ("its rate and acceleration", ", acceleration=...")
            advice = f"give kg.Input({item.name}, rate=...{further})"
            yield f"the derivation differentiates {where} and needs {what} for input {item.name}: {advice}"


def _constant_inputs(model: SystemDescription, places: Sequence[Place]) -> Iterator[str]:
    """Inputs in positions and orientations whose rates SymPy would lose, because it treats them as constants."""
    constants = {item.symbol for item in model.inputs if isinstance(item.symbol, sympy.Symbol)}
    first: dict[Any, str] = {}
    for place in places:
        if place.kind in ("position", "orientation"):
            for symbol in place.atoms & constants:
                first.setdefault(symbol, place.where)
    for name, where in sorted((symbol_name(symbol), where) for symbol, where in first.items()):
        yield (
            f"input {name} is a plain symbol in {where}, which SymPy differentiates as a constant, so that the rate of "
            f"the input is lost: use dynamicsymbols({name!r})"
        )


def _unused_inputs(model: SystemDescription, places: Sequence[Place]) -> Iterator[str]:
    used = {base_symbol(atom) for place in places for atom in place.atoms}
    used |= {expr for item in model.inputs for expr in (item.rate, item.acceleration) if expr is not None}
    delayed = {base.func for base in used if isinstance(base, AppliedUndef) and not is_time_function(base)}
    unused = [item for item in model.inputs if item.symbol not in used and item.symbol.func not in delayed]
    spare = _object_symbols(model) if unused else frozenset()
    for item in unused:
        if item.symbol not in spare:
            yield f"input {item.name} does not occur in the model: remove it, or use it in an expression"


def spare_parameters(model: SystemDescription) -> frozenset[Any]:
    """Constants of the user's objects that no equation needs: they need no value, but can have one."""
    inputs = {item.symbol for item in model.inputs}
    constants = frozenset(symbol for symbol in _object_symbols(model) if symbol.is_Symbol)
    return constants - frozenset(model.parameters) - inputs


def _object_symbols(model: SystemDescription) -> frozenset[Any]:
    """The symbols of bodies and of connected frames and points, whether or not the model needs them."""
    properties = [x for body in model.bodies for x in (body.mass, body.potential_energy) if x is not None]
    inertias = [body.inertia[0] for body in model.bodies if isinstance(body, RigidBody)]
    properties += [x for inertia in inertias for x in dyadic_expressions(inertia)]
    symbols = connected_symbols(model.geometry) | atoms(map(sympy.sympify, properties))
    return frozenset(base_symbol(atom) for atom in symbols)


def surplus_parameters(model: SystemDescription, unknown_symbols: Sequence[Any]) -> tuple[Any, ...]:
    """The parameters with values that occur neither in the model nor in the user's objects, nor are named like those
    of the model."""
    spare = spare_parameters(model) if unknown_symbols else frozenset()
    known = {*model.parameters, *spare, *(symbol for symbols in _groups(model).values() for symbol in symbols)}
    names = set(map(symbol_name, known))
    return tuple(symbol for symbol in unknown_symbols if symbol not in known and symbol_name(symbol) not in names)


def surplus_message(names: Iterable[str], known: Iterable[str], model_name: str) -> str:
    """The warning about parameters with values that do not occur in a model."""
    known, names = list(known), list(names)
    what = "parameters that do not occur in it" if len(names) > 1 else "a parameter that does not occur in it"
    listed = ", ".join(name + _hint(name, known) for name in names)
    return f"the model {model_name!r} is given values of {what}, which are ignored: {listed}"


def _unused_parameters(model: SystemDescription, unknown_symbols: Sequence[Any]) -> Iterator[str]:
    spare = spare_parameters(model) if unknown_symbols else frozenset()
    spare |= {symbol_name(symbol) for symbol in spare}
    names = [symbol_name(symbol) for symbol in model.parameters]
    others = {symbol: group for group, symbols in _groups(model).items() for symbol in symbols}
    for unknown_symbol in unknown_symbols:
        name = symbol_name(unknown_symbol)
        if unknown_symbol in spare:
            continue
        if unknown_symbol in others:
            yield f"parameters contains {name}, which is one of the {others[unknown_symbol]}: remove it"
        elif name in names and not isinstance(unknown_symbol, str):
            yield (
                f"parameters contains a symbol with the printed name {name!r}, but the model has another symbol of "
                "this name: use the same symbol (SymPy distinguishes symbols with different assumptions)"
            )
        else:
            yield f"parameter {name} has a value but does not occur in the model: remove it{_hint(name, names)}"


def _wrong_starts(model: SystemDescription) -> Iterator[str]:
    """Keys of ``initial`` that are no variables of the motion."""
    time, groups = dynamicsymbols._t, {**_groups(model), "parameters": tuple(model.parameters)}
    known = {time, *model.coordinates, *model.speeds, *model.states}
    names = [symbol_name(symbol) for symbol in (*model.coordinates, *model.speeds, *model.states, time)]
    by_name = {symbol_name(symbol): group for group, symbols in groups.items() for symbol in symbols}
    advice = {
        "parameters": "give its value in parameters=",
        "inputs": "give r= to integrate, or kg.Input(..., default=)",
        "former speeds": "give values of the present speeds",
        "auxiliary_speeds": "they are always zero; remove it",
    }
    for key in model.initial:
        name = symbol_name(key)
        group = by_name.get(name, "")
        if key in known:
            if key == time and name in map(symbol_name, known - {time}):
                yield f"initial contains the time {name}, but the model has another variable of this name: rename it"
        elif group in advice:
            yield f"initial contains {name}, which is one of the {group}: {advice[group]}"
        elif group:
            yield (
                f"initial contains a symbol with the printed name {name!r}, but the model has another symbol of this "
                "name: use the same symbol (SymPy distinguishes symbols with different assumptions)"
            )
        else:
            yield (
                f"initial contains {name}, which is no coordinate, speed or state of the model, nor the time: remove "
                f"it{_hint(name, names)}"
            )


def _hint(name: str, candidates: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(candidates), n=3)
    return f" (similar names: {', '.join(near)})" if near else ""
