"""Expected values of a function at given arguments: in 50 digits, with the errors that a correct program may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from kanegen.arrays import Array
from kanegen.emission.selftest.disturbed import Disturbed, UndecidedError
from kanegen.graph import Context, Function, mpmath_context, reachable
from kanegen.graph.interpret import PYTHON
from kanegen.precision import PRECISIONS
from kanegen.program.interpret import interpret
from kanegen.program.kernels import singular
from kanegen.program.records import Call, Program
from kanegen.program.records import Function as ProgramFunction

DIGITS: Final = 50

ROUNDINGS: Final = 8.0
"""Root mean squares of the effect of rounding that the error of a correct program stays below."""

LARGEST_TOLERANCE: Final = 0.01
"""A tolerance above this fraction of the largest values would accept almost anything."""

MOST: Final = 1e37
"""Largest tolerance; tolerances are numbers of the type float in every project."""

DECISION: Final = 100.0
"""Tolerances by which values differ if a program in the precision of the scalar type has decided otherwise."""

LAST_PLACES: Final = 2.0
"""Units in the last place of a value by which it may be wrong in any case."""

NORMWISE_PLACES: Final = 16.0
"""The same for the largest value of a function that solves by singular values or eigenvectors."""

Arguments: TypeAlias = Mapping[str, Sequence[float]]
Evaluation: TypeAlias = Callable[[Mapping[str, Sequence[Any]], Context], list[Any]]
"""A function of the arrays ``t``, ``q``, ``u``, ``r``, ``p`` and ``g`` in some arithmetic."""


class UndefinedError(Exception):
    """The function has no value at these arguments. The text says why."""


@dataclass(frozen=True)
class Scalar:
    """A scalar type of C: its name, its largest relative rounding error, and the same type in NumPy.

    ``digits``: decimal digits of mpmath that are about as accurate.
    """

    name: str
    unit: float
    kind: Any
    digits: int

    def rounded(self, x: float) -> float:
        """The nearest number of this type; infinite where it has none."""
        with np.errstate(over="ignore"):
            return float(self.kind(x))

    def ulp(self, x: float) -> float:
        """The unit in the last place of a number."""
        return float(abs(np.spacing(self.kind(x))))

    def context(self, context: Context) -> Context:
        """The arithmetic with the constants of this type: tolerances against rounding depend on it."""
        value = PRECISIONS[self.name].value
        return replace(context, number=lambda constant: context.number(value(constant)))

    def text(self, x: float) -> str:
        """The shortest decimal that is converted to ``x``, a number of this type."""
        return f"{self.kind(x)!s}f" if self.name == "float" else repr(float(x))


SCALARS: Final = {
    "double": Scalar("double", 2.0**-53, np.float64, 15),
    "float": Scalar("float", 2.0**-24, np.float32, 6),
}
"""The scalar types by the precision of a project."""


@dataclass(frozen=True)
class Expected:
    """Values of a function and the largest deviation of each that is no error of the program."""

    values: tuple[float, ...]
    tolerances: tuple[float, ...]

    def is_accurate(self, largest: float) -> bool:
        """Whether the tolerances are small compared with the ``largest`` value of states and of the function."""
        return max(self.tolerances, default=0.0) <= LARGEST_TOLERANCE * largest


def function_of(program: Program, name: str) -> Evaluation:
    """The evaluation of a function of the program. It raises `UndefinedError` where the function is undefined."""

    def evaluate(values: Mapping[str, Sequence[Any]], context: Context) -> list[Any]:
        status, results = interpret(program, name, values, context)
        if status < 0:
            raise UndefinedError("it is undefined there")
        return results

    return evaluate


@dataclass(frozen=True)
class Accuracy:
    """What limits the accuracy of functions.

    ``exact``: whether they can be evaluated with 50 digits; functions of the user have double precision. ``normwise``:
    whether they solve by singular values or eigenvectors, whose errors are small compared with the largest of them.
    """

    exact: bool
    normwise: bool

    @classmethod
    def of(cls, program: Program, *names: str) -> Accuracy:
        """The accuracy of functions of a program, and of the functions that they call."""
        waiting, called = [program.function(name) for name in names], set[ProgramFunction]()
        while waiting:
            function = waiting.pop()
            if function not in called:
                called.add(function)
                waiting += program.callees(function)
        nodes = reachable(root for function in called for root in function.roots)
        kernels = {step.kernel for function in called for step in function.steps if isinstance(step, Call)}
        exact = not any(node.op == "call" and isinstance(node.payload, Function) for node in nodes)
        return cls(exact, not kernels.isdisjoint(kernel.name for kernel in singular.KERNELS))


def expect(evaluate: Evaluation, arguments: Arguments, scalar: Scalar, accuracy: Accuracy, seed: int) -> Expected:
    """The values of a function at ``arguments``, which are numbers of the ``scalar`` type, and their tolerances.

    The tolerance of a value is the sum of three terms: the effect of changing every argument by one unit in its last
    place (the sum of the absolute effects); `ROUNDINGS` times that of rounding every constant and every result of an
    operation (the root mean square over random directions of rounding); and `LAST_PLACES` units in the last place of
    the value itself, with `NORMWISE_PLACES` of the largest value where errors are normwise.

    Parameters
    ----------
    seed
        For the directions of rounding.

    Raises
    ------
    UndefinedError
        If the function is undefined at the arguments, or not continuous as far as numbers of the type can tell.
    """
    disturbed = Disturbed(arguments, seed)
    try:
        with disturbed.context.scope():
            columns = evaluate(disturbed.values, scalar.context(disturbed.context))
    except UndecidedError:
        raise UndefinedError("a branch or a rank there depends on rounding") from None
    _require_finite(columns)
    with disturbed.context.scope():
        inputs, rounding = disturbed.errors(columns, scalar.ulp, scalar.unit)
    expected = _evaluated(evaluate, arguments, scalar.context(mpmath_context(DIGITS) if accuracy.exact else PYTHON))
    _require_finite([[scalar.rounded(x) for x in expected]])
    last_places = LAST_PLACES * np.array([scalar.ulp(x) for x in expected])
    if accuracy.normwise:
        last_places += NORMWISE_PLACES * scalar.ulp(abs(expected).max(initial=0.0))
    tolerances = inputs + ROUNDINGS * rounding * (1 if accuracy.exact else 2) + last_places
    if not (tolerances <= MOST).all():
        raise UndefinedError("it is too large there")
    coarse = mpmath_context(scalar.digits) if accuracy.exact else PYTHON
    rough = _evaluated(evaluate, arguments, scalar.context(coarse))
    if (np.abs(expected - rough) > DECISION * tolerances).any():
        raise UndefinedError("a rank there depends on rounding")
    return Expected(tuple(map(scalar.rounded, expected)), tuple(map(float, tolerances)))


def _evaluated(evaluate: Evaluation, arguments: Arguments, context: Context) -> Array:
    with context.scope():
        values = evaluate({name: [context.number(x) for x in array] for name, array in arguments.items()}, context)
        return np.array([float(x) for x in values])


def _require_finite(values: Sequence[Any]) -> None:
    # Doubles are examined before numbers of 50 digits, whose exponents have no limit, are computed.
    if not all(np.isfinite(x).all() for x in values):
        raise UndefinedError("it is not finite there")
