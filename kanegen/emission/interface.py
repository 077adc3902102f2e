"""The typed C interface of a model: what the templates of ``NAME.h`` and ``NAME.c`` print."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Final

from kanegen.codegen.description import Description, Variable
from kanegen.codegen.functions import Entry
from kanegen.codegen.text import string
from kanegen.codes import Status
from kanegen.emission.names import identifiers, member
from kanegen.model.records import FrozenMapping
from kanegen.program.records import Function, Program
from kanegen.units import Unit

OUTPUT = "output:"
"""Prefix of the compiled functions of outputs."""

RHS = "rhs"
STABILIZED_RHS = "rhs_stabilized"
PLAIN_RHS = "rhs_unstabilized"
"""The name for hosts of the right-hand side without gains, where the steps use the one with gains."""


NO_NOTES: Final[Mapping[int, str]] = FrozenMapping()


@dataclass(frozen=True)
class InterfaceVariable(Variable):
    """A variable of the interface; ``identifier`` is the part of C names that stands for it."""

    identifier: str = ""
    note: str = ""

    @classmethod
    def named(cls, variables: Sequence[Variable], notes: Mapping[int, str] = NO_NOTES) -> tuple[InterfaceVariable, ...]:
        """The variables with identifiers that differ, and the notes of some of them by index."""
        texts = identifiers(variable.name for variable in variables)
        return tuple(
            cls(**vars(variable), identifier=text, note=notes.get(variable.index, ""))
            for text, variable in zip(texts, variables, strict=True)
        )

    @property
    def member(self) -> str:
        """The identifier as a member of a structure."""
        return member(self.identifier)

    @property
    def remark(self) -> str:
        """Name, unit, note and value for a comment."""
        unit = f"({self.si_unit})" if self.si_unit else ""
        value = f"= {self.value!r}" if self.value is not None else ""
        return " ".join(filter(None, (self.name, unit, value, self.note)))


@dataclass(frozen=True)
class Evaluation:
    """A function of the model that hosts can call: ``identifier`` after the prefix, ``c_name`` of the C function.

    ``size``: the number of values; ``shape``: () for a scalar; ``operations`` of one call.
    """

    identifier: str
    name: str
    c_name: str
    summary: str
    shape: tuple[int, ...]
    operations: int

    @property
    def member(self) -> str:
        """The identifier as a member of a class."""
        return member(self.identifier)

    @property
    def size(self) -> int:
        """The number of values."""
        return prod(self.shape)

    @property
    def dimensions(self) -> str:
        """The shape for a comment."""
        return "".join(f"[{n}]" for n in self.shape) or "[1]"


@dataclass(frozen=True)
class Output:
    """An output of the model, the values from ``offset`` of the array of all outputs."""

    evaluation: Evaluation
    offset: int


@dataclass(frozen=True)
class Interface:
    """Everything that the templates know about a model.

    ``rhs`` is the right-hand side of the steps; ``evaluations`` are the other functions but outputs; ``n_work``: the
    largest scratch memory of a function; ``rows``: labels of the contact rows; ``n_free``: length of the free vector of
    servo-constraints.
    """

    coordinates: tuple[InterfaceVariable, ...]
    speeds: tuple[InterfaceVariable, ...]
    states: tuple[InterfaceVariable, ...]
    parameters: tuple[InterfaceVariable, ...]
    inputs: tuple[InterfaceVariable, ...]
    output_values: tuple[InterfaceVariable, ...]
    contacts: tuple[InterfaceVariable, ...]
    rhs: Evaluation
    evaluations: tuple[Evaluation, ...]
    outputs: tuple[Output, ...]
    rows: tuple[str, ...]
    n_free: int
    n_prepared: int
    n_gains: int
    n_work: int
    start_time: float
    gains: tuple[float, ...]

    @property
    def n_y(self) -> int:
        """The length of the state (q, u, s)."""
        return len(self.coordinates) + len(self.speeds) + len(self.states)

    @property
    def start(self) -> tuple[float, ...]:
        """The state at the start; NaN where it is not known."""
        variables = (*self.coordinates, *self.speeds, *self.states)
        return tuple(math.nan if variable.value is None else variable.value for variable in variables)

    def evaluation(self, name: str) -> Evaluation | None:
        """The function with this name; None if it was not generated."""
        return next((item for item in (self.rhs, *self.evaluations) if item.name == name), None)


STATUSES = (
    Status.OK,
    Status.REPARTITIONED,
    Status.RANK_DEFICIENT,
    Status.SINGULAR,
    Status.INFEASIBLE,
    Status.OUTSIDE_TABLE,
    Status.NOT_FINITE,
    Status.INVALID_ARGUMENT,
    Status.INCONSISTENT,
)
"""The statuses that functions of the interface return."""


def interface_of(
    program: Program,
    description: Description,
    entries: Sequence[Entry],
    known: Mapping[str, float],
    units: Mapping[str, Unit],
    start_time: float,
    gains: tuple[float, ...],
) -> Interface:
    """The interface of a model; ``entries``: its C functions, ``known``: values, ``units`` by name."""
    symbols, functions = program.symbols, {f.name: f for f in program.functions if not f.internal}
    by_name = _evaluations(functions, description, entries)
    outputs = _outputs([item for name, item in by_name.items() if name.startswith(OUTPUT)])
    rhs = by_name.pop(STABILIZED_RHS if gains else RHS)
    plain = [item for name, item in by_name.items() if not name.startswith(OUTPUT)]
    laws = {k: f"(law: {law.text})" for k, law in description.laws.items()}
    contacts = [Variable(contact.name, "contact", k) for k, contact in enumerate(program.contacts)]

    def named(letter: str, notes: Mapping[int, str] = NO_NOTES) -> tuple[InterfaceVariable, ...]:
        return InterfaceVariable.named(description.variables(letter, units, known), notes)

    return Interface(
        coordinates=named("q"),
        speeds=named("u"),
        states=named("s"),
        parameters=named("p"),
        inputs=named("r", laws),
        output_values=InterfaceVariable.named(_output_values(outputs, units)),
        contacts=InterfaceVariable.named(contacts),
        rhs=rhs,
        evaluations=tuple(plain),
        outputs=tuple(outputs),
        rows=symbols.multipliers,
        n_free=len(symbols.free),
        n_prepared=len(symbols.parameters) + len(symbols.gains) + len(program.constants),
        n_gains=len(symbols.gains),
        n_work=max((entry.work for entry in entries), default=0),
        start_time=start_time,
        gains=gains,
    )


def _outputs(evaluations: Sequence[Evaluation]) -> list[Output]:
    """The outputs with their places in the array of the values of all outputs."""
    offsets = accumulate((item.size for item in evaluations), initial=0)
    return [Output(item, offset) for item, offset in zip(evaluations, offsets, strict=False)]


def _output_values(outputs: Sequence[Output], units: Mapping[str, Unit]) -> list[Variable]:
    """A variable for each value of each output; those of vectors and matrices have their indices in the name."""
    values: list[Variable] = []
    for output in outputs:
        name = output.evaluation.name.removeprefix(OUTPUT)
        for place in _places(output.evaluation.shape):
            values.append(Variable(name + "".join(f"[{k}]" for k in place), "output", len(values), units.get(name)))
    return values


def _places(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    places: list[tuple[int, ...]] = [()]
    for n in shape:
        places = [(*place, k) for place in places for k in range(n)]
    return places


def _evaluations(
    functions: Mapping[str, Function], description: Description, entries: Sequence[Entry]
) -> dict[str, Evaluation]:
    c_names = {entry.name: entry.identifier for entry in entries}
    names = identifiers(PLAIN_RHS if name == RHS else name for name in functions)
    return {
        name: Evaluation(
            spelled,
            name,
            c_names[string(name)],
            function.summary,
            function.shape,
            description.functions[name].operations,
        )
        for spelled, (name, function) in zip(names, functions.items(), strict=True)
    }
