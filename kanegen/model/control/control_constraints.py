"""Constraints in which the controls appear: the controls become part of the state (Bajodah 2003, chapter 8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from kanegen.errors import ModelError
from kanegen.model import normalize
from kanegen.model.expressions import symbol_name
from kanegen.model.inputs import Input


@dataclass(frozen=True, eq=False)
class ControlConstraints:
    """Servo-constraints ``phi(q, u, tau, t) = 0`` kept by differential equations of the controls tau.

    Each constraint is differentiated until the derivatives of the controls appear that are not part of the state, w:
    tau', or tau'' of a control with a rate and an acceleration. All rows together, ``AA w = BB``, give

        w = AA^+ BB + (I - AA^+ AA) y,

    and (q, u, tau, and tau' where w is tau'') is the state of ``solver.integrate(..., control=True)``.

    Parameters
    ----------
    constraints
        Expressions or equations phi of t, q, q', u, u', the controls, other inputs and parameters. Accelerations are
        replaced by the solved ones, functions of the controls. May be empty: then ``w = y``.
    controls
        The inputs tau that become part of the state. None: all inputs but those that are rates of others. A control in
        the kinematics, a velocity or a passive constraint needs the symbols its derivatives are differentiated to:
        ``kg.Input(tau, rate=tau1)`` where accelerations contain tau', and ``acceleration=tau2`` where they contain
        tau''; the highest one is then w.
    theta
        Stabilization, None for none: a number or expression of parameters for all constraints, or one entry for each:
        None, Theta of ``phi' = Theta phi``, or ``(Theta1, ..., Thetak)`` of
        ``phi^(k) = Theta1 phi^(k-1) + ... + Thetak phi`` for a constraint that is differentiated k times. In 1/s,
        1/s**2, ...
    y
        The part of w that the constraints leave free: a number or expression for all, or one for each control, of t, q,
        q', u, the controls, other inputs and parameters; None: zero. With ``y = -tau`` controls decay that no
        constraint needs.

    Raises
    ------
    ModelError
        With all problems that are seen without the model; `Model` finds the others.
    """

    constraints: tuple[Any, ...]
    controls: tuple[Any, ...] | None
    theta: tuple[tuple[Any, ...], ...]
    y: tuple[Any, ...]

    def __init__(self, constraints: Any = (), controls: Any = None, theta: Any = None, y: Any = None) -> None:
        problems: list[str] = []
        phi = normalize.scalars(constraints, "constraints", problems)
        fields = {
            "constraints": phi,
            "controls": None if controls is None else _controls(controls, problems),
            "theta": _theta(theta, len(phi), problems),
            "y": (sympy.S.Zero,) if y is None else normalize.scalars(y, "y", problems),
        }
        if problems:
            raise ModelError(tuple(f"ControlConstraints: {problem}" for problem in problems))
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def inputs(self, inputs: Sequence[Input]) -> tuple[Input, ...]:
        """The controls among the inputs of a model, in the order of tau."""
        by_symbol = {item.symbol: item for item in inputs}
        if self.controls is not None:
            return tuple(by_symbol[symbol] for symbol in self.controls if symbol in by_symbol)
        derivatives = {item.rate for item in inputs} | {item.acceleration for item in inputs}
        return tuple(item for item in inputs if item.symbol not in derivatives)

    def free_part(self, n_tau: int) -> tuple[Any, ...]:
        """y with n_tau entries."""
        return self.y * n_tau if len(self.y) == 1 else self.y

    def places(self) -> Iterator[tuple[str, str, tuple[Any, ...], int]]:
        """Kind, place, expressions and differentiations; the derivation finds how often it differentiates phi."""
        for k, (phi, theta) in enumerate(zip(self.constraints, self.theta, strict=True)):
            yield "control constraint", f"ControlConstraints constraints[{k}]", (phi,), 0
            yield "servo gain", f"ControlConstraints theta[{k}]", theta, 0
        yield "servo law", "ControlConstraints y", self.y, 0


def _controls(value: Any, problems: list[str]) -> tuple[Any, ...]:
    """The symbols of the controls."""
    listed = [value] if isinstance(value, Input) else normalize.sequence(value, "controls", problems)
    symbols = tuple(item.symbol if isinstance(item, Input) else item for item in listed)
    twice = sorted({symbol_name(x) for x in symbols if symbols.count(x) > 1})
    problems.extend(f"control {name} is given twice: each control once" for name in twice)
    return symbols


def _theta(value: Any, n: int, problems: list[str]) -> tuple[tuple[Any, ...], ...]:
    """For each of n constraints the coefficients, highest derivative first; () for none."""
    if value is None:
        return ((),) * n
    if isinstance(value, int | float | sympy.Expr):
        value = [value] * n
    entries = tuple(value)
    if len(entries) != n:
        problems.append(f"theta has {len(entries)} entries for {n} constraint(s): expected one for each")
        return ((),) * n
    theta = []
    for k, entry in enumerate(entries):
        listed = () if entry is None else entry if isinstance(entry, list | tuple) else (entry,)
        coefficients = tuple(normalize.scalar(x, f"theta[{k}]", problems) for x in listed)
        theta.append(coefficients)
        if coefficients and all(x.is_number for x in coefficients):
            problems.extend(_growth(coefficients, k))
    return tuple(theta)


def largest_exponent(coefficients: Sequence[Any]) -> float:
    """Largest real part (1/s) of the roots of ``s^k = Theta1 s^(k-1) + ... + Thetak``; an error decays below zero."""
    return float(np.roots([1.0, *(-float(x) for x in coefficients)]).real.max())


def _growth(coefficients: tuple[Any, ...], k: int) -> Iterator[str]:
    """What is wrong with numbers Theta1, ..., Thetak under which an error does not decay."""
    largest = largest_exponent(coefficients)
    if not largest < 0.0:
        yield (
            f"theta[{k}] is ({', '.join(map(str, coefficients))}): an error of the constraint would not decay "
            f"(exponent {largest:.3g} 1/s); give coefficients whose characteristic roots have negative real parts"
        )
