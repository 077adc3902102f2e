"""The variables of an FMU: one table for the model description and for the C code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from math import prod
from typing import Final, NamedTuple

from kanegen.codegen.description import Description, Variable
from kanegen.codes import CONTACT_GUARDS, Mode
from kanegen.emission.fmu.options import FmuOptions
from kanegen.errors import SolveError
from kanegen.program.catalogue import REACTION
from kanegen.run_options import Kind, StepOptions, table
from kanegen.units import Unit, Units, coherent, exponents

ENERGIES: Final = {"kinetic_energy": "energy.kinetic", "potential_energy": "energy.potential", "energy": "energy.total"}
"""Compiled energies and the names of their variables."""

OUTPUT: Final = "output:"

REACTION_PARTS: Final = {"force": exponents(kg=1, m=1, s=-2), "torque": exponents(kg=1, m=2, s=-2)}
"""Parts of a reaction, three components each, and their units."""


@dataclass(frozen=True)
class FmuVariable(Variable):
    """A variable of the FMU; its value reference is its place in the table.

    ``group``: FMU_... of the C code without the prefix; ``index``, ``function``, ``row``: see fmu_tables.h. ``value``:
    at the start, None for calculated values. ``type``: real, integer, or the name of an enumeration. ``state``: the
    place of the state of which this is the derivative.
    """

    description: str = ""
    causality: str = "local"
    variability: str = "continuous"
    type: str = "real"
    function: int = 0
    row: int = -1
    state: int | None = None

    @property
    def is_calculated(self) -> bool:
        """Whether the FMU computes the value at the start."""
        return self.value is None and self.causality in ("output", "local")


class Function(NamedTuple):
    """A compiled function whose values are variables, from place ``first`` of all such values."""

    name: str
    first: int
    length: int


@dataclass(frozen=True)
class Table:
    """All variables and the functions that evaluate some of them."""

    variables: tuple[FmuVariable, ...]
    functions: tuple[Function, ...]

    def places(self, *kinds: str) -> list[int]:
        """Places of the variables of these kinds."""
        return [k for k, variable in enumerate(self.variables) if variable.group in kinds]

    def outputs(self) -> list[int]:
        """Places of the outputs."""
        return [k for k, variable in enumerate(self.variables) if variable.causality == "output"]

    @property
    def n_values(self) -> int:
        """The number of values of all functions."""
        return sum(function.length for function in self.functions)


@dataclass(frozen=True)
class Subject:
    """What the variables describe: the model's description, units, and the known values by name."""

    description: Description
    units: Units
    values: Mapping[str, float]
    methods: tuple[str, ...]
    options: FmuOptions

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the components of the state."""
        d = self.description
        return d.components


def require_values(subject: Subject) -> None:
    """Raise `SolveError` that names parameters and start values without a value."""
    d = subject.description
    missing = [name for name in (*d.parameters, *subject.components) if name not in subject.values]
    if missing:
        raise SolveError(
            f"an FMU of {d.name!r} needs start values of {', '.join(missing)}: give them in parameters= and initial= "
            "of the model, or here in values= (kanegen fmu: -p NAME=VALUE, --start NAME=VALUE)"
        )


def variable_table(subject: Subject) -> Table:
    """All variables in the order of their value references. Raises `SolveError` for values that are missing."""
    require_values(subject)
    functions = _functions(subject.description)
    parts = (
        _states(subject),
        _inputs(subject),
        _parameters(subject),
        _outputs(subject, functions),
        _energies(subject, functions),
        _reactions(subject, functions),
        _controls(subject, functions),
        _contacts(subject),
        _events(subject),
        _solver(subject),
    )
    time = FmuVariable("time", "TIME", 0, description="time", causality="independent", unit=coherent(_SECOND))
    return Table(_unique([time, *chain.from_iterable(parts)]), functions)


_SECOND: Final = exponents(s=1)
_JOULE: Final = exponents(kg=1, m=2, s=-2)


def _unique(variables: list[FmuVariable]) -> tuple[FmuVariable, ...]:
    """The variables with names that differ: a name that exists gets a number."""
    taken: set[str] = set()
    result = []
    for variable in variables:
        name, count = variable.name, 1
        while name in taken:
            count += 1
            name = f"{variable.name} ({count})"
        taken.add(name)
        result.append(replace(variable, name=name))
    return tuple(result)


def _states(subject: Subject) -> Iterator[FmuVariable]:
    components = subject.description.variables("qus", subject.units, subject.values)
    for k, x in enumerate(components):
        text = f"{x.group} {x.name}"
        yield FmuVariable(x.name, "STATE", k, x.unit, float(x.value or 0.0), text, "output")
    for k, x in enumerate(components):
        unit = None if x.unit is None else _rate(x.unit)
        # Time is the first variable, and the states follow it.
        text = f"rate of the {x.group} {x.name}"
        yield FmuVariable(f"der({x.name})", "RATE", k, unit, None, text, state=1 + k)


def _rate(unit: Unit) -> Unit:
    """The unit of a derivative in time."""
    angles = {"rad": "rad/s", "rad/s": "rad/s^2"}
    powers = dict(unit.exponents)
    powers["s"] = powers.get("s", Fraction(0)) - 1
    rate = coherent(powers)
    text = angles.get(unit.si, rate.si)
    return replace(rate, text=text, si=text)


def _inputs(subject: Subject) -> Iterator[FmuVariable]:
    d = subject.description
    for k, slot in enumerate(d.input_slots):
        unit = subject.units.get(slot.name)
        if slot.law is not None:
            variability = "continuous" if slot.law.sample_time is None else "discrete"
            text = f"input {slot.name} by its feedback law"
            yield FmuVariable(slot.name, "LAW", k, unit, None, text, "output", variability)
        else:
            start = float(subject.values.get(slot.name, 0.0))
            yield FmuVariable(slot.name, "INPUT", k, unit, start, f"input {slot.name}", "input")


def _parameters(subject: Subject) -> Iterator[FmuVariable]:
    for x in subject.description.variables("p", subject.units, subject.values):
        value, text = float(x.value or 0.0), f"parameter {x.name}"
        yield FmuVariable(x.name, "PARAMETER", x.index, x.unit, value, text, "parameter", "tunable")


def _functions(d: Description) -> tuple[Function, ...]:
    """The functions of outputs, energies and controls that were compiled."""
    lengths = {f"{OUTPUT}{name}": prod(shape) for name, shape in d.outputs.items()}
    lengths |= dict.fromkeys(ENERGIES, 1)
    lengths |= {f"{REACTION}{name}": 3 * len(REACTION_PARTS) for name in d.reactions}
    if d.servo is not None:
        lengths["control"] = len(d.servo.controls)
    result: list[Function] = []
    for name, length in lengths.items():
        if name in d.functions and length:
            first = result[-1].first + result[-1].length if result else 0
            result.append(Function(name, first, length))
    return tuple(result)


def _values(functions: tuple[Function, ...], name: str) -> Iterator[tuple[int, int]]:
    """For each value of a function: the index of the function and the place of the value."""
    for k, function in enumerate(functions):
        if function.name == name:
            for i in range(function.length):
                yield k, function.first + i


def _outputs(subject: Subject, functions: tuple[Function, ...]) -> Iterator[FmuVariable]:
    row = 0
    for name, shape in subject.description.outputs.items():
        for i, (function, place) in enumerate(_values(functions, f"{OUTPUT}{name}")):
            text = f"output {name}"
            unit = subject.units.get(name)
            label = name + _subscript(i, shape)
            yield FmuVariable(label, "VALUE", place, unit, None, text, "output", function=function, row=row + i)
        row += prod(shape)


def _subscript(index: int, shape: tuple[int, ...]) -> str:
    """The place in an array, from 1: ``"[2]"``, ``"[1,3]"``; empty for scalars."""
    places: list[int] = []
    for size in reversed(shape):
        index, place = divmod(index, size)
        places.insert(0, place + 1)
    return f"[{','.join(map(str, places))}]" if places else ""


def _energies(subject: Subject, functions: tuple[Function, ...]) -> Iterator[FmuVariable]:
    joule = coherent(_JOULE)
    unit = replace(joule, text="J", si="J") if subject.units else None
    for name, label in ENERGIES.items():
        for function, place in _values(functions, name):
            text = label.partition(".")[2] + " energy"
            yield FmuVariable(label, "VALUE", place, unit, None, text, "output", function=function)


def _reactions(subject: Subject, functions: tuple[Function, ...]) -> Iterator[FmuVariable]:
    parts = [(part, powers, i) for part, powers in REACTION_PARTS.items() for i in range(3)]
    for name in subject.description.reactions:
        values = _values(functions, f"{REACTION}{name}")
        for (part, powers, i), (function, place) in zip(parts, values, strict=True):
            text = f"{part} of the reaction {name}, component {i + 1}"
            unit = coherent(powers) if subject.units else None
            label = f"reaction.{name}.{part}[{i + 1}]"
            yield FmuVariable(label, "VALUE", place, unit, None, text, "output", function=function)


def _controls(subject: Subject, functions: tuple[Function, ...]) -> Iterator[FmuVariable]:
    servo = subject.description.servo
    for k, (function, place) in enumerate(_values(functions, "control")):
        name = subject.description.inputs[servo.controls[k]] if servo else ""
        text = f"value of the input {name} that enforces the servo-constraints"
        unit = subject.units.get(name)
        yield FmuVariable(f"control.{name}", "VALUE", place, unit, None, text, "output", function=function)


def _contacts(subject: Subject) -> Iterator[FmuVariable]:
    contacts = subject.description.contacts
    for k, contact in enumerate(contacts.table):
        text = f"mode of the contact {contact.name}"
        name = f"contact.{contact.name}.mode"
        yield FmuVariable(name, "MODE", k, None, None, text, "output", "discrete", Mode.__name__)
    for k, row in enumerate(contacts.rows):
        text = f"multiplier of the contact row {row}"
        yield FmuVariable(f"contact_force.{row}", "FORCE", k, None, None, text, "output")


def _events(subject: Subject) -> Iterator[FmuVariable]:
    d = subject.description
    # The kinks of feedback laws are events too, after those of the user.
    names = [*(event.name for event in d.events), *d.switches]
    for k, name in enumerate(names):
        text = f"how often the event {name} has happened"
        yield FmuVariable(f"event.{name}.count", "COUNT", k, None, None, text, "output", "discrete", "integer")
    for k, name in enumerate(names):
        yield FmuVariable(f"event_indicator.{name}", "GUARD", k, description=f"guard of the event {name}")
    for m, contact in enumerate(d.contacts.table):
        for i in range(CONTACT_GUARDS):
            place = len(names) + CONTACT_GUARDS * m + i
            text = f"guard {i + 1} of the contact {contact.name}"
            yield FmuVariable(f"event_indicator.{contact.name}[{i + 1}]", "GUARD", place, description=text)


def _solver(subject: Subject) -> Iterator[FmuVariable]:
    method = subject.methods.index(subject.options.stepping["method"]) + 1
    text = "integration method of the co-simulation"
    yield FmuVariable("solver.method", "METHOD", 0, None, method, text, "parameter", "fixed", "Method")
    for k, (name, value) in enumerate(subject.options.numbers.items()):
        option = table(StepOptions)[name]
        unit = coherent(_SECOND) if option.kind is Kind.SECONDS else None
        text = option.text.rstrip(".").replace("None:", "0:")
        yield FmuVariable(f"solver.{name}", "OPTION", k, unit, value, text, "parameter", "fixed")
