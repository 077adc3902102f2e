"""The period that a user gives: a number, or an expression of the parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kanegen.errors import SolveError, brief
from kanegen.solve.values import number, positive


@dataclass(frozen=True)
class Period:
    """A period, s: a number, or a SymPy expression of parameters."""

    given: Any

    @classmethod
    def read(cls, given: Any, solver: Any) -> Period:
        """The period that a user gave. Raises `SolveError` for one that is not positive, and for unknown symbols."""
        if getattr(given, "free_symbols", None):
            known = solver.description.parameters
            wrong = [str(symbol) for symbol in given.free_symbols if str(symbol) not in known]
            if wrong:
                raise SolveError(
                    f"period is {brief(given)}, in which {', '.join(sorted(wrong))} is no parameter of the model; "
                    "expected a number of seconds, or an expression of parameters"
                )
        period = cls(given)
        period.value(solver)
        return period

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters on which the period depends."""
        return tuple(sorted(str(symbol) for symbol in getattr(self.given, "free_symbols", ())))

    def value(self, solver: Any) -> float:
        """The period with the parameters of a solver, s. Raises `SolveError`."""
        return positive(self._number(self.given, solver), "period", "a positive number of seconds")

    def rate(self, solver: Any, name: str) -> float:
        """The derivative of the period with respect to a parameter."""
        if name not in self.names:
            return 0.0
        symbol = next(symbol for symbol in self.given.free_symbols if str(symbol) == name)
        return number(self._number(self.given.diff(symbol), solver), "the rate of the period")

    def _number(self, expression: Any, solver: Any) -> Any:
        symbols = getattr(expression, "free_symbols", None)
        if symbols is None:
            return expression
        missing = [str(symbol) for symbol in symbols if solver.parameters[str(symbol)] is None]
        if missing:
            raise SolveError(f"period depends on {', '.join(missing)}, which has no value")
        return float(expression.subs({symbol: solver.parameters[str(symbol)] for symbol in symbols}))
