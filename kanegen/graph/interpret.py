"""Evaluation of graphs with floats, NumPy or mpmath, as a reference for compiled code."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from kanegen.graph.derivatives import reachable
from kanegen.graph.nodes import CONDITIONS, HYPERBOLIC, SAME_NAME, TRIGONOMETRIC, Node, Number

Function = Callable[..., Any]


@dataclass(frozen=True)
class Context:
    """The arithmetic of one kind of number.

    ``number`` converts a constant of the graph, ``functions`` holds every operation other than ``+ - * /``,
    negation and ``select``, ``select(condition, true, false)`` chooses, and ``scope()`` is entered during an
    evaluation (the working precision of mpmath). ``result(node, value)`` gives the value that counts as that of a node;
    ``apply(function, arguments)`` calls a function of single numbers that changes lists among its arguments in place;
    ``holds(condition)`` decides a condition for the whole evaluation. ``call(function, arguments)`` is the value of a
    function of the user or of a table, which continues beyond the ends.
    """

    number: Callable[[Number], Any]
    functions: Mapping[str, Function]
    select: Function
    scope: Callable[[], AbstractContextManager[Any]] = nullcontext
    result: Callable[[Node, Any], Any] | None = None
    apply: Callable[[Callable[..., int], Sequence[Any]], int] = lambda function, arguments: function(*arguments)
    # Both comparisons are false for NaN: a condition that cannot be evaluated counts as false.
    holds: Callable[[Any], bool] = lambda condition: bool(condition > 0 or condition < 0)
    call: Callable[[Any, Sequence[Any]], Any] = lambda function, arguments: function.extended(*arguments)

    @cached_property
    def operations(self) -> Mapping[str, Function]:
        """Every operation on operands but calls."""
        arithmetic = {op: getattr(operator, op) for op in ("add", "sub", "mul", "neg")}
        return {"gather": _element, **self.functions, **arithmetic, "select": self.select}


def evaluate(roots: Sequence[Node], values: Mapping[str, Sequence[Any]], context: Context | None = None) -> list[Any]:
    """The values of ``roots``.

    Parameters
    ----------
    roots
        Nodes of one graph.
    values
        The elements of each input array by its name: ``values["q"][2]`` is the value of input ``("q", 2)``.
        With :func:`numpy_context` an element may itself be an array; all broadcast, so that one call
        evaluates many states.
    context
        The arithmetic, :data:`PYTHON` by default.

    Raises
    ------
    KeyError, IndexError
        When an input array, or an element of it, is missing.
    """
    known = evaluate_all(reachable(roots), values, context)
    return [known[root.index] for root in roots]


def evaluate_all(
    nodes: Iterable[Node], values: Mapping[str, Sequence[Any]], context: Context | None = None
) -> dict[int, Any]:
    """The values of ``nodes``, operands before results, by their indices; otherwise as :func:`evaluate`."""
    context = context or PYTHON
    result, operations = context.result, context.operations
    known: dict[int, Any] = {}
    with context.scope():
        for node in nodes:
            op = node.op
            if op == "input":
                array, index = node.payload
                value = values[array][index]
            elif op == "const":
                value = context.number(node.payload)
            else:
                operands = [known[a.index] for a in node.args]
                value = context.call(node.payload, operands) if op == "call" else operations[op](*operands)
            known[node.index] = value if result is None else result(node, value)
    return known


# -- Python floats ------------------------------------------------------------------------------------------


def _quiet(function: Function) -> Function:
    """The function with the results of C99, NaN and infinity, in place of Python's exceptions."""

    def call(*args: float) -> float:
        try:
            return float(function(*args))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return call


def _divide(a: float, b: float) -> float:
    if b == 0.0:
        return math.nan if a == 0.0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def _element(index: Any, *elements: Any) -> Any:
    return elements[int(index)]


def _reciprocal(x: Any) -> Any:
    return 1 / x if x != 0 else x * 0


_BRANCHES: dict[str, Function] = {
    **CONDITIONS,
    "not": lambda a: int(a == 0),
    "abs": abs,
    "min": lambda a, b: a if a <= b else b,
    "max": lambda a, b: a if a >= b else b,
}

PYTHON = Context(
    number=float,
    functions={
        **_BRANCHES,
        **{name: _quiet(getattr(math, name)) for name in (*SAME_NAME, "sqrt", "cbrt", "ceil", "pow")},
        "log": _quiet(lambda x: -math.inf if x == 0.0 else math.log(x)),
        "div": _divide,
        "reciprocal": _quiet(_reciprocal),
    },
    select=lambda condition, true, false: true if condition != 0 else false,
)
"""Python floats; NaN and infinities arise as in C instead of exceptions."""


# -- NumPy --------------------------------------------------------------------------------------------------


def _to_first_order(function: Function, slope: Function) -> Function:
    """A real function on complex arguments whose imaginary part is small: a complex step."""

    def call(z: Any) -> Any:
        return function(z.real) + 1j * slope(z.real) * z.imag if np.iscomplexobj(z) else function(z)

    return call


def _numpy_atan2(y: Any, x: Any) -> Any:
    angle = np.arctan2(np.real(y), np.real(x))
    if not (np.iscomplexobj(y) or np.iscomplexobj(x)):
        return angle
    return angle + 1j * ((np.conj(x) * y).imag / (np.real(x) ** 2 + np.real(y) ** 2))


def _compared(operation: Function) -> Function:
    return lambda a, b: operation(np.real(a), np.real(b))


def _numpy_element(index: Any, *elements: Any) -> Any:
    at = np.asarray(np.real(index)).astype(np.intp)
    return np.choose(at, elements) if len(elements) < 32 else _from_stack(at, np.broadcast_arrays(at, *elements)[1:])


def _from_stack(at: Any, elements: Sequence[Any]) -> Any:
    return np.take_along_axis(np.stack(elements), np.asarray(at)[None], axis=0)[0]


def _chosen(operation: Function) -> Function:
    return lambda a, b: np.where(operation(np.real(a), np.real(b)), a, b)


_NUMPY: dict[str, Function] = {
    **{name: getattr(np, re.sub("^a", "arc", name)) for name in (*TRIGONOMETRIC, *HYPERBOLIC)},
    **{name: getattr(np, name) for name in ("sqrt", "exp", "log")},
    "pow": np.power,
    "div": np.true_divide,
    "reciprocal": lambda x: np.where(x == 0, 0.0, np.true_divide(1.0, x)),
    "atan2": _numpy_atan2,
    "cbrt": _to_first_order(np.cbrt, lambda x: 1.0 / (3.0 * np.cbrt(x) ** 2)),
    "erf": _to_first_order(
        np.vectorize(math.erf, otypes=[float]), lambda x: 2.0 / math.sqrt(math.pi) * np.exp(-(x * x))
    ),
    "floor": lambda x: np.floor(np.real(x)),
    "ceil": lambda x: np.ceil(np.real(x)),
    "abs": lambda x: np.where(np.real(x) < 0, -x, x),
    "min": _chosen(np.less_equal),
    "max": _chosen(np.greater_equal),
    "lt": _compared(np.less),
    "le": _compared(np.less_equal),
    "eq": _compared(np.equal),
    "ne": _compared(np.not_equal),
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "gather": _numpy_element,
}


def numpy_context() -> Context:
    """NumPy arrays of float64, or of complex128 for complex-step derivatives of smooth functions.

    Branches (comparisons, min, max, abs) follow the real part, so that they are those of the real problem; where NumPy
    has no complex function, the imaginary part is the first-order one.
    """
    return Context(float, _NUMPY, np.where, lambda: np.errstate(all="ignore"))


# -- mpmath -------------------------------------------------------------------------------------------------


def mpmath_context(digits: int = 50) -> Context:
    """mpmath at ``digits`` decimal digits; exact constants of the graph are converted at that precision."""
    import mpmath

    @lru_cache(maxsize=1024, typed=True)
    def number(value: Number) -> Any:
        with mpmath.workdps(digits):  # whoever asks first, wherever
            if isinstance(value, Fraction):
                return mpmath.mpf(value.numerator) / value.denominator
            return mpmath.mpf(value)

    def real(function: Function) -> Function:
        def call(*args: Any) -> Any:
            try:
                result = function(*args)
            except (ValueError, ZeroDivisionError, OverflowError):
                return mpmath.nan
            return mpmath.nan if isinstance(result, mpmath.mpc) else result

        return call

    def divide(a: Any, b: Any) -> Any:
        if b == 0:
            return mpmath.nan if a == 0 or mpmath.isnan(a) else mpmath.sign(a) * mpmath.inf
        return a / b

    functions: dict[str, Function] = {
        **_BRANCHES,
        **{name: real(getattr(mpmath, name)) for name in (*SAME_NAME, "sqrt", "ceil", "log")},
        "pow": real(mpmath.power),
        "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
        "div": divide,
        "reciprocal": _reciprocal,
    }
    return Context(number, functions, PYTHON.select, lambda: mpmath.workdps(digits))
