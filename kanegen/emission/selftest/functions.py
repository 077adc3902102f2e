"""The functions of an emitted project that its self-test calls, and the same functions in any arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kanegen.codegen.description import Description
from kanegen.codegen.methods.files import METHODS
from kanegen.emission.interface import Interface
from kanegen.emission.selftest.expected import Accuracy, Evaluation, UndefinedError, function_of
from kanegen.emission.selftest.steps import Projection, Values, advance
from kanegen.emission.step import Step
from kanegen.graph import PYTHON, Context
from kanegen.program.records import Program

STEP_SIZES: Final = (2.0**-10, 2.0**-14, 2.0**-18, 2.0**-22)
"""Step sizes of the step that is compared, s: numbers of every scalar type."""

LARGEST_CHANGE: Final = 0.5
"""Largest change of a value of the state in a step, relative to 1 or the value."""


@dataclass(frozen=True)
class Tested:
    """A function of the project: its ``name``, the C function that calls it, and the number of its values."""

    name: str
    c_name: str
    size: int
    evaluate: Evaluation
    accuracy: Accuracy


class Model:
    """The functions of ``NAME.h`` in the arithmetic of a context, from the program of the model."""

    def __init__(self, program: Program, description: Description, ui: Interface) -> None:
        self._program = program
        self._ui = ui
        self._laws = tuple(description.laws)
        self._continuous = tuple(k for k, law in description.laws.items() if law.sample_time is None)

    def function(self, name: str) -> Evaluation:
        """A function of the program at inputs with their continuous feedback laws."""
        plain = function_of(self._program, name)

        def evaluate(values: Values, context: Context) -> list[Any]:
            return plain(self._closed(values, self._continuous, context), context)

        return evaluate

    def outputs(self, values: Values, context: Context) -> list[Any]:
        """All outputs, one after the other."""
        functions = [self.function(output.evaluation.name) for output in self._ui.outputs]
        return [x for function in functions for x in function(values, context)]

    def step(self, step: Step, size: float) -> Evaluation:
        """The state and the time after a step; feedback laws that are sampled act at once.

        The evaluation raises `UndefinedError` if the state changes so much that the method may be unstable.
        """
        n_q = len(self._ui.coordinates)
        method = advance(step.name, n_q)

        def evaluate(values: Values, context: Context) -> list[Any]:
            held = self._closed(values, self._laws, context)
            h, (t,), y = context.number(size), values["t"], self._state(values)

            def function(name: str, t: Any, y: list[Any]) -> list[Any]:
                return self.function(name)(self._at(held, t, y), context)

            moved = method(lambda t, y: function(self._ui.rhs.name, t, y), t, y, h, context)
            if any(np.any(abs(new - old) > LARGEST_CHANGE * (1 + abs(old))) for old, new in zip(y, moved, strict=True)):
                raise UndefinedError("the motion is too fast for a step")
            if step.project is not None:
                moved = Projection(step.project, step.projections, function, context)(n_q, t + h, moved)
            return [*moved, t + h]

        return evaluate

    def step_size(self, step: Step, cases: Sequence[Values]) -> float:
        """The largest size of a step that is possible in all cases; the smallest one if there is none."""
        return next((size for size in STEP_SIZES if self._can_step(step, size, cases)), STEP_SIZES[-1])

    def _can_step(self, step: Step, size: float, cases: Sequence[Values]) -> bool:
        evaluate = self.step(step, size)
        try:
            return all(math.isfinite(x) for case in cases for x in evaluate(case, PYTHON))
        except UndefinedError:
            return False

    def _closed(self, values: Values, slots: Sequence[int], context: Context) -> Values:
        """The arguments with the inputs of these indices replaced by their feedback laws."""
        if not slots:
            return values
        given = function_of(self._program, "laws")(values, context)
        r = list(values["r"])
        for slot, value in zip(self._laws, given, strict=True):
            if slot in slots:
                r[slot] = value
        return {**values, "r": r}

    def _at(self, values: Values, t: Any, y: Sequence[Any]) -> Values:
        """The arguments at another time and state."""
        n_q, n_u = len(self._ui.coordinates), len(self._ui.speeds)
        return {**values, "t": [t], "q": y[:n_q], "u": y[n_q : n_q + n_u], "s": y[n_q + n_u :]}

    @staticmethod
    def _state(values: Values) -> list[Any]:
        return [*values["q"], *values["u"], *values["s"]]


@dataclass(frozen=True)
class Selection:
    """The functions that are compared, those that are not with the reasons, and the size of the step (None: none)."""

    tested: tuple[Tested, ...]
    skipped: Mapping[str, str]
    step_size: float | None


def select_functions(
    model: Model,
    ui: Interface,
    step: Step | None,
    stem: str,
    cases: Sequence[Values],
    accuracy: Callable[..., Accuracy],
) -> Selection:
    """The functions of the project ``stem``; ``accuracy(*names)``: that of functions of the model."""
    tested = [Tested(ui.rhs.name, "evaluate_rhs", ui.n_y, model.function(ui.rhs.name), accuracy(ui.rhs.name))]
    names = [output.evaluation.name for output in ui.outputs]
    if names:
        tested.append(Tested("outputs", f"{stem}_outputs", len(ui.output_values), model.outputs, accuracy(*names)))
    for item in ui.evaluations:
        c_name = f"{stem}_{item.identifier}"
        if item.size:
            tested.append(Tested(item.name, c_name, item.size, model.function(item.name), accuracy(item.name)))
    if step is None:
        return Selection(tuple(tested), {}, None)
    reason = _no_reference(step)
    if reason:
        return Selection(tuple(tested), {"step": reason}, None)
    size = model.step_size(step, cases)
    tested.append(Tested("step", "take_step", ui.n_y + 1, model.step(step, size), accuracy(ui.rhs.name)))
    return Selection(tuple(tested), {}, size)


def _no_reference(step: Step) -> str:
    """Why a step has no counterpart here; empty if it has one."""
    if not (step.name in METHODS or step.method.is_semi_implicit):
        return f"the method {step.name} has no counterpart in higher precision; the functions it calls are compared"
    return ""
