"""Checks of a model's symbols: which are missing or ambiguous, and which expressions may contain them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import sympy
from sympy.physics.mechanics import RigidBody

from kanegen.model.contact.events import is_multiplier
from kanegen.model.description import SystemDescription
from kanegen.model.expressions import (
    atoms,
    base_symbol,
    derivative_order,
    dyadic_expressions,
    is_time_function,
    symbol_name,
)
from kanegen.model.geometry.routes import connected_symbols
from kanegen.model.inputs import Input
from kanegen.model.places import Place

_STATE = ("q", "r")
_MOTION = ("q", "q'", "u", "r", "r'")
_FORCE = (*_MOTION, "r''")

#: What the expressions of each kind of place may depend on, besides time and parameters.
ALLOWED: dict[str, tuple[str, ...]] = {
    "kinematics": _MOTION,
    "holonomic": _STATE,
    "nonholonomic": _MOTION,
    "acceleration": (*_FORCE, "q''", "u'"),
    "load": _FORCE,
    "mass": ("r",),
    "inertia": ("r",),
    "position": _STATE,
    "velocity": _MOTION,
    "orientation": _STATE,
    "angular velocity": _MOTION,
    "gravity": ("r",),
    "potential energy": _STATE,
    "speed definition": ("q", "u", "r"),
    "output": (*_FORCE, "q''", "u'"),
    "gap": _STATE,
    "velocity gap": _MOTION,
    "slip": _MOTION,
    "contact force": _STATE,
    "normal load": _FORCE,
    "law": (),
    "guard": _FORCE,
    "impulse": _MOTION,
    "servo position": _STATE,
    "servo velocity": _MOTION,
    "servo gain": (),
    "servo law": _FORCE,
    "control constraint": (*_FORCE, "q''", "u'"),
}

_ADVICE = {
    "holonomic": "a constraint with speeds belongs to nonholonomic_constraints",
    "nonholonomic": "a constraint with u' belongs to acceleration_constraints",
    "load": "a load that depends on accelerations belongs in masses and inertias",
    "mass": "Kane's F* = -(m v)' holds for a mass given as a function of time; one that depends on the motion takes up "
    "momentum and energy by a law of its own, by which Kane's and Lagrange's equations differ",
    "inertia": "a rigid body has constant components in its own frame; write the inertia in a frame in which they are",
    "gravity": "gravity must be uniform; write other fields as loads with potential_energy",
    "potential energy": "forces that depend on speeds have none",
    "velocity gap": "a gap is one in positions or in speeds",
    "law": "the values of a law are constants of a run",
    "servo gain": "Theta and damping are constants of a run",
}


def symbol_problems(model: SystemDescription, places: Sequence[Place], unknown_symbols: Sequence[Any]) -> list[str]:
    """Problems of duplicated, ambiguous, unknown, misplaced and unused symbols."""
    return [
        *_duplicates(model),
        *_ambiguous_names(model),
        *_unknown(model, places),
        *_misplaced(model, places),
        *_missing_rates(model, places),
        *_constant_inputs(model, places),
        *_unused_inputs(model, places),
        *_unused_parameters(model, unknown_symbols),
    ]


def _groups(model: SystemDescription) -> dict[str, tuple[Any, ...]]:
    return {
        "coordinates": model.coordinates,
        "speeds": model.speeds,
        "former speeds": model.former_speeds,
        "auxiliary_speeds": model.auxiliary_speeds,
        "inputs": tuple(item.symbol for item in model.inputs),
    }


def _duplicates(model: SystemDescription) -> list[str]:
    places: dict[Any, list[str]] = {}
    for group, symbols in _groups(model).items():
        for symbol in symbols:
            places.setdefault(symbol, []).append(group)
    for symbol in model.dependent_speeds or ():
        if (model.dependent_speeds or ()).count(symbol) > 1:
            places[symbol] = ["dependent_speeds"] * 2
    return [
        f"{symbol_name(symbol)} occurs twice, in {' and in '.join(groups)}: each symbol belongs in one of them"
        for symbol, groups in places.items()
        if len(groups) > 1
    ]


def _ambiguous_names(model: SystemDescription) -> list[str]:
    by_name: dict[str, list[str]] = {}
    symbols: dict[Any, str] = {}
    for group, members in (*_groups(model).items(), ("parameters", tuple(model.parameters))):
        symbols.update({symbol: group for symbol in members if symbol not in symbols})
    for symbol, group in symbols.items():
        by_name.setdefault(symbol_name(symbol), []).append(group)
    return [
        f"{len(groups)} different symbols are printed {name!r} (in {', '.join(groups)}), so the name would "
        "be ambiguous: rename one, or make them one symbol (SymPy distinguishes symbols of different "
        "assumptions)"
        for name, groups in by_name.items()
        if len(groups) > 1
    ]


def _kind(model: SystemDescription) -> dict[Any, str]:
    kinds = dict.fromkeys(model.coordinates, "q")
    kinds.update(dict.fromkeys((*model.all_speeds, *model.auxiliary_speeds), "u"))
    kinds.update({item.symbol: "r" for item in model.inputs})
    return kinds


def _unknown(model: SystemDescription, places: Sequence[Place]) -> list[str]:
    kinds = _kind(model)
    first: dict[Any, str] = {}
    for place in places:
        for atom in place.atoms:
            base = base_symbol(atom)
            if base not in kinds and not isinstance(base, sympy.Symbol) and not is_multiplier(base):
                first.setdefault(base, place.where)
    problems = []
    for base in sorted(first, key=str):
        if is_time_function(base):
            problems.append(
                f"{symbol_name(base)} (in {first[base]}) is neither a coordinate, a speed nor an input: "
                f"add it to one of them{_hint(symbol_name(base), map(symbol_name, kinds))}"
            )
        else:
            problems.append(
                f"{base} (in {first[base]}) is an undefined function of something other than time: "
                "use kg.Function or kg.Spline, which have a value"
            )
    return problems


def _misplaced(model: SystemDescription, places: Sequence[Place]) -> list[str]:
    kinds = _kind(model)
    problems = []
    for place in places:
        allowed = ALLOWED[place.kind]
        wrong = sorted(
            symbol_name(atom)
            for atom in place.atoms
            if base_symbol(atom) in kinds and kinds[base_symbol(atom)] + "'" * derivative_order(atom) not in allowed
        )
        if wrong:
            expected = ", ".join(("t", *allowed, "parameters"))
            advice = _ADVICE.get(place.kind)
            problems.append(
                f"{place.where} contains {', '.join(wrong)}: it may depend on {expected} only"
                + (f" ({advice})" if advice else "")
            )
    return problems


def needed_rates(model: SystemDescription, places: Sequence[Place]) -> dict[Any, tuple[int, str]]:
    """How often each input is differentiated by the derivation (1 or 2), and where first."""
    inputs = {item.symbol for item in model.inputs}
    twice = _rates_are_differentiated(model, places)
    needed: dict[Any, tuple[int, str]] = {}
    for place in places:
        extra = int(twice) if place.kind == "kinematics" else place.differentiations
        for atom in place.atoms:
            symbol = base_symbol(atom)
            order = derivative_order(atom) + extra
            if symbol in inputs and order > needed.get(symbol, (0, ""))[0]:
                needed[symbol] = (order, place.where)
    return needed


def _rates_are_differentiated(model: SystemDescription, places: Sequence[Place]) -> bool:
    """Whether q' (and so the kinematics) is differentiated: where anything of q is differentiated twice."""
    coordinates = set(model.coordinates)
    return any(
        base_symbol(atom) in coordinates and derivative_order(atom) + place.differentiations >= 2
        for place in places
        for atom in place.atoms
    )


def _available(item: Input) -> int:
    if item.rate is None:
        return 0
    return 1 if item.acceleration is None else 2


def _missing_rates(model: SystemDescription, places: Sequence[Place]) -> list[str]:
    needed = needed_rates(model, places)
    problems = []
    for item in model.inputs:
        order, where = needed.get(item.symbol, (0, ""))
        if order > _available(item):
            what = "its rate" if order == 1 else "its rate and acceleration"
            advice = "rate=..." if order == 1 else "rate=..., acceleration=..."
            problems.append(
                f"input {item.name} is differentiated, which needs {what}, because of {where}: "
                f"give kg.Input({item.name}, {advice})"
            )
    return problems


def _constant_inputs(model: SystemDescription, places: Sequence[Place]) -> list[str]:
    """Inputs that SymPy treats as constants where it differentiates: their rates would be lost."""
    constants = {item.symbol for item in model.inputs if isinstance(item.symbol, sympy.Symbol)}
    first: dict[Any, str] = {}
    for place in places:
        if place.kind in ("position", "orientation"):
            for symbol in place.atoms & constants:
                first.setdefault(symbol, place.where)
    return [
        f"input {name} occurs in {where}, where SymPy treats the plain symbol as a constant and loses its "
        f"rate: use dynamicsymbols({name!r})"
        for name, where in sorted((symbol_name(symbol), where) for symbol, where in first.items())
    ]


def _unused_inputs(model: SystemDescription, places: Sequence[Place]) -> list[str]:
    used = {base_symbol(atom) for place in places for atom in place.atoms}
    for item in model.inputs:
        used.update(expr for expr in (item.rate, item.acceleration) if expr is not None)
    unused = [item for item in model.inputs if item.symbol not in used]
    spare = _unneeded(model) if unused else frozenset()
    return [
        f"input {item.name} occurs nowhere in the model: remove it, or use it"
        for item in unused
        if item.symbol not in spare
    ]


def spare_parameters(model: SystemDescription) -> frozenset[Any]:
    """Constants of the user's objects that no equation needs: they need no value, and giving one is no error."""
    inputs = {item.symbol for item in model.inputs}
    return frozenset(symbol for symbol in _unneeded(model) if symbol.is_Symbol) - frozenset(model.parameters) - inputs


def _unneeded(model: SystemDescription) -> frozenset[Any]:
    """Symbols of frames and points that nothing of the model reaches, of bodies at rest, and of energies of bodies."""
    bodies: list[Any] = []
    for body in model.bodies:
        bodies += (body.mass, body.potential_energy)
        if isinstance(body, RigidBody):
            bodies += dyadic_expressions(body.inertia[0])
    symbols = connected_symbols(model.geometry) | atoms(sympy.sympify(x) for x in bodies if x is not None)
    return frozenset(base_symbol(atom) for atom in symbols)


def _unused_parameters(model: SystemDescription, unknown_symbols: Sequence[Any]) -> list[str]:
    if unknown_symbols:
        spare = spare_parameters(model)
        spare_names = {symbol_name(symbol) for symbol in spare}
        unknown_symbols = [
            item for item in unknown_symbols if item not in (spare_names if isinstance(item, str) else spare)
        ]
    names = [symbol_name(symbol) for symbol in model.parameters]
    others = {symbol: group for group, symbols in _groups(model).items() for symbol in symbols}
    problems = []
    for unknown_symbol in unknown_symbols:
        name = symbol_name(unknown_symbol)
        if unknown_symbol in others:
            problems.append(f"parameters gives {name} a value, but it is one of the {others[unknown_symbol]}")
        elif name in names and not isinstance(unknown_symbol, str):
            problems.append(
                f"parameters gives a value to a symbol printed {name!r}, but the model has another symbol of "
                "this name: use the same symbol (SymPy distinguishes symbols of different assumptions)"
            )
        else:
            problems.append(
                f"parameter {name} has a value, but occurs nowhere in the model: remove it{_hint(name, names)}"
            )
    return problems


def _hint(name: str, candidates: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(candidates), n=3)
    return f" (near: {', '.join(near)})" if near else ""
