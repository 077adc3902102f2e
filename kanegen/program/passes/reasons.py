"""What guards and checks test, in words: for the reader of the generated code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kanegen.derivation.algebra.cholesky import PIVOT_THRESHOLD
from kanegen.derivation.equations import Equations
from kanegen.graph import Node
from kanegen.model.expressions import symbol_name
from kanegen.program.records import Check, Function, Guard, Step


def explained(function: Function, equations: Equations) -> Function:
    """``function`` with the reason of every guard and check that has none yet."""
    return replace(function, steps=tuple(_explained(step, equations) for step in function.steps))


def _explained(step: Step, equations: Equations) -> Step:
    if isinstance(step, Guard | Check) and not step.reason:
        return replace(step, reason=reason(step.condition, equations))
    return step


def reason(condition: Node, equations: Equations) -> str:
    """What a condition asks for: pivots that are not negligible, each kind of them named once.

    Every condition of a program is a conjunction of comparisons ``fraction * scale < pivot``.
    """
    return "; ".join(dict.fromkeys(_part(test, equations) for test in _conjuncts(condition)))


def _conjuncts(condition: Node) -> Iterator[Node]:
    if condition.op == "and":
        for operand in condition.args:
            yield from _conjuncts(operand)
    else:
        yield condition


def _part(test: Node, equations: Equations) -> str:
    fraction = _fraction(test)
    if fraction == PIVOT_THRESHOLD:
        return f"the pivots of the mass matrix exceed {fraction:g} of its diagonal: it is positive definite"
    if fraction is not None and equations.has_partition:
        part = equations.partition
        if any(pivot.holds(fraction) is test for pivot in part.pivots):
            speeds = ", ".join(symbol_name(equations.model.speeds[speed]) for speed in part.dependent)
            return f"the pivots of the constraints for the dependent speeds {speeds} exceed {fraction:g} of their rows"
    return "the pivots of the elimination are not negligible"


def _fraction(test: Node) -> float | None:
    """The constant factor on the left of ``fraction * scale < pivot``."""
    if test.op != "lt":
        return None
    left = test.args[0]
    factors = left.args if left.op == "mul" else (left,)
    return next((float(factor.payload) for factor in factors if factor.op == "const"), None)
