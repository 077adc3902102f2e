"""The functions of an emitted project that its self-test calls, and the same functions in any arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from kanegen.codegen.description import Description
from kanegen.codegen.methods.table import METHODS
from kanegen.emission.interface import Interface
from kanegen.emission.selftest.expected import Accuracy, Evaluation, UndefinedError, function_of
from kanegen.emission.step import Step
from kanegen.graph import PYTHON, Context
from kanegen.program.records import Program

STEP_SIZES: Final = (2.0**-10, 2.0**-14, 2.0**-18, 2.0**-22)
"""Step sizes of the step that is compared, s: numbers of every scalar type."""

SEMI_IMPLICIT: Final = "semi_implicit_euler"

LARGEST_CHANGE: Final = 0.5
"""Largest change of a value of the state in a step, relative to 1 or the value."""

Values: TypeAlias = Mapping[str, Sequence[Any]]


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

    def step(self, method: str, size: float) -> Evaluation:
        """The state and the time after a step; feedback laws that are sampled act at once.

        The evaluation raises `UndefinedError` if the state changes so much that the method may be unstable.
        """
        advance = self._semi_implicit if method == SEMI_IMPLICIT else self._runge_kutta(method)

        def evaluate(values: Values, context: Context) -> list[Any]:
            h = context.number(size)
            moved = advance(self._closed(values, self._laws, context), h, context)
            for old, new in zip(self._state(values), moved, strict=True):
                if np.any(abs(new - old) > LARGEST_CHANGE * (1 + abs(old))):
                    raise UndefinedError("the motion is too fast for a step")
            return [*moved, values["t"][0] + h]

        return evaluate

    def step_size(self, method: str, cases: Sequence[Values]) -> float:
        """The largest size of a step that is possible in all cases; the smallest one if there is none."""
        return next((size for size in STEP_SIZES if self._can_step(method, size, cases)), STEP_SIZES[-1])

    def _can_step(self, method: str, size: float, cases: Sequence[Values]) -> bool:
        evaluate = self.step(method, size)
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

    def _rates(self, values: Values, t: Any, y: Sequence[Any], context: Context) -> list[Any]:
        n_q, n_u, n_s = len(self._ui.coordinates), len(self._ui.speeds), len(self._ui.states)
        r = list(values["r"])
        if n_s:
            r[-n_s:] = y[n_q + n_u :]
        at = {**values, "t": [t], "q": y[:n_q], "u": y[n_q : n_q + n_u], "r": r}
        return self.function(self._ui.rhs.name)(at, context)

    def _state(self, values: Values) -> list[Any]:
        n_s = len(self._ui.states)
        return [*values["q"], *values["u"], *(values["r"][-n_s:] if n_s else ())]

    def _semi_implicit(self, values: Values, h: Any, context: Context) -> list[Any]:
        n_q, (t,), y = len(self._ui.coordinates), values["t"], self._state(values)
        rates = self._rates(values, t, y, context)
        moved = [x if i < n_q else x + h * rate for i, (x, rate) in enumerate(zip(y, rates, strict=True))]
        rates = self._rates(values, t, moved, context)
        return [x + h * rate if i < n_q else x for i, (x, rate) in enumerate(zip(moved, rates, strict=True))]

    def _runge_kutta(self, method: str) -> Any:
        tableau = METHODS[method].coefficients
        rows, nodes = [*tableau.a[: tableau.stages], tableau.b], [*tableau.c[: tableau.stages], None]

        def advance(values: Values, h: Any, context: Context) -> list[Any]:
            (t,), y = values["t"], self._state(values)
            rates: list[list[Any]] = []
            moved = y
            for row, node in zip(rows, nodes, strict=True):
                weights = [(context.number(weight), rate) for weight, rate in zip(row, rates, strict=False) if weight]
                moved = [x + h * sum(w * rate[i] for w, rate in weights) for i, x in enumerate(y)]
                if node is not None:
                    rates.append(self._rates(values, t + context.number(node) * h, moved, context))
            return moved

        return advance


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
    size = model.step_size(step.name, cases)
    tested.append(Tested("step", "take_step", ui.n_y + 1, model.step(step.name, size), accuracy(ui.rhs.name)))
    return Selection(tuple(tested), {}, size)


def _no_reference(step: Step) -> str:
    """Why a step has no counterpart here; empty if it has one."""
    if step.projections:
        return "it ends with a projection; the functions of the constraints are compared"
    if step.name not in (*METHODS, SEMI_IMPLICIT):
        return f"the method {step.name} has no counterpart in higher precision; the functions it calls are compared"
    return ""
