"""Checks of units: those of every equation, load and position of a model agree.

Symbols without a unit get the one that the equations leave them, so that a part of the units is enough. Numbers are
ambiguous: a whole number or a fraction is a pure number, a decimal number (9.81) can have any unit, and a number that
is alone in its place (a mass of 2, a component of gravity) has the unit of the place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import sympy
from sympy.physics.mechanics import Point

from kanegen.display import names as shortened
from kanegen.model.checks.dimensions import NONE, SECOND, Dimension, Dimensions, product
from kanegen.model.contacts import Contact, Multiplier
from kanegen.model.description import SystemDescription
from kanegen.model.expressions import symbol_name
from kanegen.model.laws import Coulomb, Law
from kanegen.model.places import Place
from kanegen.model.records import ACCELERATION, POSITION, VELOCITY
from kanegen.units import Unit, Units, coherent, exponents

NEWTON: Final = exponents(kg=1, m=1, s=-2)
JOULE: Final = exponents(kg=1, m=2, s=-2)
WATT: Final = exponents(kg=1, m=2, s=-3)

_PLACES: Final[dict[str, Dimension | None]] = {
    "mass": exponents(kg=1),
    "inertia": exponents(kg=1, m=2),
    "position": exponents(m=1),
    "orientation": NONE,
    "gravity": exponents(m=1, s=-2),
    "angular velocity": exponents(s=-1),
    "kinematics": None,
    "velocity": exponents(m=1, s=-1),
    "potential energy": JOULE,
    "lagrangian": JOULE,
    **dict.fromkeys((POSITION, VELOCITY, ACCELERATION, "gap", "velocity gap", "slip", "guard")),
    **dict.fromkeys(("servo position", "servo velocity", "control constraint", "servo law")),
}
"""The unit of the expressions of a place by its kind, None if only their terms must agree.

The places come in this order, so that a symbol gets its unit from a position or a mass before loads are compared.
"""


def unit_problems(model: SystemDescription, places: Sequence[Place]) -> tuple[str, ...]:
    """Units that the terms of an equation, or a quantity and its place, do not share; and units of unknown names."""
    if not model.units:
        return ()
    known = {symbol_name(symbol): symbol for symbol in _symbols(model)}
    names = list(dict.fromkeys((*known, *model.outputs)))
    expected = f"expected names of coordinates, speeds, states, inputs, parameters and outputs: {shortened(names)}"
    wrong = [name for name in model.units if name not in names]
    unknown = (f"units contains {name}, which is not in the model: {expected}" for name in wrong)
    return (*unknown, *_compared(model, places).problems)


def units_of(model: SystemDescription, places: Sequence[Place]) -> Units:
    """The units of all names of a checked model: those given, and those that follow; empty if none were given."""
    if not model.units:
        return Units()
    dimensions = _compared(model, places)
    found = {symbol_name(symbol): dimensions.known(symbol) for symbol in _symbols(model)}
    found |= {name: dimensions.known(sympy.Symbol(f"output {name}")) for name in model.outputs}
    for contact in model.resolved_contacts:
        rows = ((name, Multiplier(contact.name, k)) for k, name in enumerate(contact.row_names))
        found |= {name: dimensions.known(force) for name, force in rows}
    return Units({name: coherent(x) for name, x in found.items() if x is not None} | dict(model.units))


def _symbols(model: SystemDescription) -> Iterator[Any]:
    yield from (*model.coordinates, *model.all_speeds, *model.auxiliary_speeds, *model.states, *model.parameters)
    yield from (item.symbol for item in model.inputs)


def _compared(model: SystemDescription, places: Sequence[Place]) -> Dimensions:
    """The dimensions of all symbols after every place of the model was read."""
    units = {symbol: model.units.get(symbol_name(symbol)) for symbol in _symbols(model)}
    units |= {sympy.Symbol(f"output {name}"): model.units.get(name) for name in model.outputs}
    given: dict[Any, Unit] = {symbol: unit for symbol, unit in units.items() if unit is not None}
    texts = {symbol: unit.si for symbol, unit in given.items()}
    dimensions = Dimensions({symbol: unit.exponents for symbol, unit in given.items()}, texts)
    _compare_rates_of_inputs(model, dimensions)
    for kind, expected in _PLACES.items():
        for place in places:
            if place.kind == kind:
                dimensions.require(place.where, place.expressions, expected)
    _compare_loads(model, dimensions)
    for contact in model.resolved_contacts:
        _compare_contact(contact, dimensions)
    _compare_laws(model, dimensions)
    for name, output in model.outputs.items():
        expected = dimensions.of_symbol(sympy.Symbol(f"output {name}"))
        single = len(output) == 1 or name in model.units
        dimensions.require(f"outputs[{name!r}]", output.expressions, expected if single else None)
    for contact in model.resolved_contacts:
        if contact.friction is not None:  # a pure number, if nothing else determines its unit
            dimensions.agree(dimensions.of(contact.friction.mu_s, contact.where), NONE)
    return dimensions


def _compare_rates_of_inputs(model: SystemDescription, dimensions: Dimensions) -> None:
    for item in model.inputs:
        for order, what, rate in ((1, "rate", item.rate), (2, "acceleration", item.acceleration)):
            if rate is not None:
                expected = product((dimensions.of_symbol(item.symbol), 1), (SECOND, -order))
                dimensions.require(f"the {what} of input {item.name}", (rate,), expected)


def _compare_loads(model: SystemDescription, dimensions: Dimensions) -> None:
    for location, load in model.effective_loads:
        _compare_vector(f"the load on {location}", load, _force_on(location), dimensions)
    for name, pairs in model.impulses.items():
        for location, impulse in pairs:
            expected = product((_force_on(location), 1), (SECOND, 1))
            _compare_vector(f"the impulse {name!r} on {location}", impulse, expected, dimensions)


def _force_on(location: Any) -> Dimension:
    """N on a point, N m on a frame."""
    return NEWTON if isinstance(location, Point) else JOULE


def _compare_vector(where: str, vector: Any, expected: Dimension, dimensions: Dimensions) -> None:
    for components, _ in vector.args:
        dimensions.require(where, components, expected)


def _compare_contact(contact: Contact, dimensions: Dimensions) -> None:
    """Each contact force times the velocity of its row is a power; the law gives this force, or an acceleration."""
    where, rows = f"contact {contact.name!r}", []
    if contact.gap is not None:
        velocity = product((dimensions.of(contact.gap, where), 1), (SECOND, 1 - contact.level))
        rows.append(velocity)
        _compare_law(contact, dimensions)
    rows.extend(dimensions.of(slip, where) for slip in contact.slip)
    for k, velocity in enumerate(rows):
        force = product((WATT, 1), (velocity, -1))
        dimensions.require(f"the force {k} of {where}", (Multiplier(contact.name, k),), force)
        for location, direction in contact.applied_at[k] if contact.applied_at else ():
            expected = product((_force_on(location), 1), (force, -1))
            _compare_vector(f"the direction of {where} on {location}", direction, expected, dimensions)
    if contact.friction is not None:
        _compare_friction(contact, contact.friction, rows, dimensions)


def _compare_friction(contact: Contact, law: Coulomb, rows: Sequence[Dimension], dimensions: Dimensions) -> None:
    """``|F_t| <= mu N``: mu is a pure number unless the slip is one of an angle and the normal force is one in N."""
    where = f"the friction of contact {contact.name!r}"
    tangential = product((WATT, 1), (rows[-1], -1))
    normal = product((WATT, 1), (rows[0], -1))
    if contact.load is not None:
        normal = dimensions.of(contact.load, where)
        normal = tangential if contact.load.is_number else normal
    coefficient = product((tangential, 1), (normal, -1))
    units = {"mu_s": coefficient, "mu_k": coefficient, "creep": rows[-1], "decay_rate": product((SECOND, -1))}
    for value in Law.values(law):
        dimensions.require(f"{value.name} of {where}", (value.expression,), units[value.name])


def _compare_law(contact: Contact, dimensions: Dimensions) -> None:
    """The force or acceleration that the law of a gap gives. Values that are numbers have the units of their places."""
    law = contact.law
    if law is None:
        dimensions.require(f"the decay rate of contact {contact.name!r}", (contact.decay_rate,), {"s": -SECOND["s"]})
        return
    numbers = {x.name: sympy.Dummy(x.name) for x in Law.values(law) if _is_plain(x)}
    law = law.with_values({x.name: numbers.get(x.name, x.expression) for x in Law.values(law)})
    gap, rate = sympy.Dummy("gap", real=True), sympy.Dummy("gap'", real=True)
    unit = dimensions.of(contact.gap, "")
    dimensions.agree(dimensions.of_symbol(gap), unit)
    dimensions.agree(dimensions.of_symbol(rate), product((unit, 1), (SECOND, -1)))
    where = f"the law of contact {contact.name!r}"
    velocity = product((unit, 1), (SECOND, 1 - contact.level))
    dimensions.require(where, (law.force(-gap, -rate),), product((WATT, 1), (velocity, -1)))
    dimensions.require(where, (law.target(gap, rate, contact.level),), product((velocity, 1), (SECOND, -1)))


def _is_plain(value: Any) -> bool:
    """Whether a value of a law is a number that stands for a quantity with a unit."""
    return value.name != "exponent" and bool(sympy.sympify(value.expression).is_number)


def _compare_laws(model: SystemDescription, dimensions: Dimensions) -> None:
    """Rates of states, laws of inputs, definitions of speeds, resets and gains."""
    for symbol, rate in model.states.items():
        expected = product((dimensions.of_symbol(symbol), 1), (SECOND, -1))
        dimensions.require(f"the rate of state {symbol_name(symbol)}", (rate,), expected)
    for item in model.inputs:
        if item.law is not None:
            values = (item.law, *item.limits.values())
            dimensions.require(f"the law of input {item.name}", values, dimensions.of_symbol(item.symbol))
    speeds = model.speeds
    for change in model.speed_changes:
        for speed, definition in zip(speeds, change.definitions or (), strict=False):
            where = f"the definition of {symbol_name(speed)}"
            dimensions.require(where, (definition,), dimensions.of_symbol(speed))
        speeds = change.before.speeds
    for event in model.events:
        for symbol, value in event.reset.items():
            where = f"the reset of {symbol_name(symbol)} by event {event.name!r}"
            dimensions.require(where, (value,), dimensions.of_symbol(symbol))
    if model.control is not None:
        for k, gains in enumerate(model.control.theta):
            for order, gain in enumerate(gains, start=1):
                dimensions.require(f"theta[{k}] of the control law", (gain,), product((SECOND, -order)))
