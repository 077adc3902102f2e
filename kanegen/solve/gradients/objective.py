"""Functions of a whole motion, of which gradients are computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import sympy

from kanegen.errors import SolveError, brief
from kanegen.model.description import SystemDescription
from kanegen.model.expressions import atoms, symbol_name
from kanegen.solve.values import number, unknown


@dataclass(frozen=True)
class Objective:
    """A function of a motion: ``terminal`` at its end, the integral of ``running``, and values at given times.

    Parameters
    ----------
    terminal
        A SymPy expression of t, coordinates, speeds, states, inputs, parameters, and forces of contacts
        (:func:`kanegen.Multiplier`), at the end of the motion.
    running
        An expression that is integrated over the motion, with the weights of the method at its steps: the integral is
        as accurate as a state whose error does not decide on the steps.
    samples
        Pairs ``(t, expression)``: expressions at times inside the span, which are added. Steps end there.

    Raises
    ------
    SolveError
        For an objective without any part, and for parts that are no expressions.

    Examples
    --------
    >>> import kanegen as kg
    >>> from sympy.physics.mechanics import dynamicsymbols
    >>> theta = dynamicsymbols("theta")
    >>> kg.Objective(terminal=(theta - 1) ** 2)
    Objective(terminal=(theta(t) - 1)**2, running=None, samples=())
    """

    terminal: Any = None
    running: Any = None
    samples: Sequence[tuple[float, Any]] = ()

    def __post_init__(self) -> None:
        samples = tuple(map(_sample, self.samples)) if isinstance(self.samples, Iterable) else None
        if samples is None:
            raise SolveError(f"samples is {brief(self.samples)}; expected pairs (t, expression)")
        for name in ("terminal", "running"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else _expression(value, name))
        object.__setattr__(self, "samples", samples)
        if self.terminal is None and self.running is None and not samples:
            raise SolveError("the objective has no part: give terminal=, running= or samples=")

    @property
    def expressions(self) -> tuple[Any, ...]:
        """The expressions at single states: the terminal one first, or zero, then those of the samples."""
        terminal = sympy.Integer(0) if self.terminal is None else self.terminal
        return (terminal, *(expression for _, expression in self.samples))

    @cached_property
    def identities(self) -> tuple[str, str]:
        """Texts that tell the running cost and the expressions at single states from those of other objectives."""
        return _identity(() if self.running is None else (self.running,)), _identity(self.expressions)

    def require_known(self, model: SystemDescription) -> None:
        """Raise `SolveError` for symbols that the model does not have."""
        symbols = (*model.coordinates, *model.speeds, *model.states, *model.parameters)
        known = {*symbols, *(item.symbol for item in model.inputs), *model.contact_multipliers}
        rates = {x.diff() for x in (*model.coordinates, *model.speeds)}
        used = atoms([*self.expressions, *([self.running] if self.running is not None else [])])
        for symbol in sorted(used - known - rates, key=str):
            names = tuple(symbol_name(x) for x in known)
            raise SolveError(f"the objective: {unknown(symbol_name(symbol), names, 'symbol of the model')}")


def _identity(expressions: Iterable[Any]) -> str:
    return sha256("\x1f".join(map(sympy.srepr, expressions)).encode()).hexdigest()[:24]


def _expression(value: Any, what: str) -> Any:
    if isinstance(value, str):
        raise SolveError(f"{what} of the objective is {value!r}; expected a SymPy expression or a number, not a text")
    try:
        expression = sympy.sympify(value, strict=True)
    except sympy.SympifyError as error:
        raise SolveError(f"{what} of the objective is {brief(value)}; expected a SymPy expression") from error
    if not isinstance(expression, sympy.Expr):
        raise SolveError(f"{what} of the objective is {brief(value)}; expected a scalar SymPy expression")
    return expression


def _sample(pair: Any) -> tuple[float, Any]:
    try:
        t, expression = pair
    except (TypeError, ValueError) as error:
        raise SolveError(f"samples contains {brief(pair)}; expected pairs (t, expression)") from error
    time = number(t, "the time of a sample")
    return time, _expression(expression, f"the sample at t = {time!r} s")
