"""The equations of a model in words, for the README of its project."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kanegen.codegen.description import Description
from kanegen.forms import FORMS
from kanegen.solve.values import short


def equations_in_words(description: Description) -> tuple[str, ...]:
    """Sentences on the motion, the constraints, the contacts and the form of the equations."""
    return tuple(_sentences(description))


def _sentences(d: Description) -> Iterator[str]:
    form = FORMS[d.form]
    yield (
        f"The state has {_counted(d.coordinates, 'coordinate')} q and "
        f"{_counted(d.speeds, 'momentum component' if form.momenta else 'speed')} u"
        + (f", and the states {_names(d.states)} with equations of their own" if d.states else "")
        + "."
    )
    equations = "Q u' = P + J^T lambda, with the constraints J u' = b," if d.constraints.rows else "Q u' = P"
    yield f"Kane's equations {equations} give the accelerations (form {form.name}: {form.summary})."
    yield from _constraints(d)
    for contact in d.contacts.table:
        yield f"Contact {contact.name}: {contact.law}."
    if d.events:
        yield f"Events: {_names([event.name for event in d.events])}."
    if d.servo is not None:
        yield f"The controls {_names(d.input_names(d.servo.controls))} enforce servo-constraints (function control)."


def _constraints(d: Description) -> Iterator[str]:
    """The conditions that the state satisfies; their residuals are the values of the function ``residuals``."""
    levels = (("positions", d.constraints.positions), ("speeds", d.constraints.velocities))
    for what, labels in levels:
        shown = [f"`{short(label)}`" for label in labels if not label.startswith("d/dt")]
        if shown:
            yield f"Constraints on the {what}, each zero: {'; '.join(shown)}."
    if d.dependent:
        yield f"Dependent speeds: {_names(d.dependent_names)}; independent: {_names(d.independent_names)}."


def _counted(items: Sequence[str], noun: str) -> str:
    return f"{len(items)} {noun}{'s' * (len(items) != 1)}"


def _names(names: Sequence[str]) -> str:
    return ", ".join(names)
