"""The cost of a motion as a SymPy expression: integrals over the motion, its duration, and parameters."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import sympy

from kanegen.errors import SolveError, brief
from kanegen.model.expressions import atoms, symbol_name


class Integral(sympy.Expr):  # type: ignore[misc]
    """The integral of an expression over the whole motion, a term of ``minimize=`` of :class:`kanegen.OptimalControl`.

    ``integrand``: an expression of t, coordinates, speeds, their rates, states, inputs and parameters of the model.
    Integrals can be multiplied by numbers and added to each other and to :data:`kanegen.Duration`.

    Examples
    --------
    >>> import kanegen as kg
    >>> from sympy.physics.mechanics import dynamicsymbols
    >>> F = dynamicsymbols("F")
    >>> kg.Duration + 2 * kg.Integral(F**2)
    _duration + 2*Integral(F(t)**2)
    """

    is_commutative = True

    def __new__(cls, integrand: Any) -> Integral:
        value: Integral = sympy.Expr.__new__(cls, expression(integrand, "the integrand"))
        return value

    @property
    def integrand(self) -> Any:
        """The expression that is integrated."""
        return self.args[0]

    # SymPy looks for methods of printers by the name of the class, and has another class of this name.

    def _sympystr(self, printer: Any) -> str:
        return f"Integral({printer._print(self.integrand)})"

    def _latex(self, printer: Any) -> str:
        return rf"\int {printer._print(self.integrand)}\, dt"

    def _pretty(self, printer: Any) -> Any:
        return printer._print(sympy.Symbol(str(self)))


Duration: Final = sympy.Dummy("duration", positive=True)
"""The duration of the motion, s, as a SymPy symbol for ``minimize=`` of :class:`kanegen.OptimalControl`."""


class Cost(NamedTuple):
    """``integrand``: what is integrated over the motion; ``rest``: an expression of the duration and parameters."""

    integrand: Any
    rest: Any


def expression(value: Any, what: str) -> Any:
    """A scalar SymPy expression. Raises `SolveError`."""
    try:
        found = None if isinstance(value, str) else sympy.sympify(value, strict=True)
    except sympy.SympifyError:
        found = None
    if not isinstance(found, sympy.Expr):
        raise SolveError(f"{what} is {brief(value)}; expected a scalar SymPy expression or a number")
    return found


def read_cost(minimize: Any, parameters: frozenset[Any]) -> Cost:
    """The parts of a cost. ``parameters``: the symbols that may stand outside integrals. Raises `SolveError`."""
    whole = expression(minimize, "minimize")
    places = {integral: sympy.Dummy() for integral in sorted(whole.atoms(Integral), key=str)}
    linear = whole.xreplace(places)
    factors = {integral: linear.diff(place) for integral, place in places.items()}
    for integral, factor in factors.items():
        if factor.free_symbols or not factor.is_number:
            raise SolveError(
                f"minimize contains {integral} times {factor}; integrals can be multiplied by numbers and added. "
                "Write factors that depend on the model into the integrand"
            )
    rest = linear.xreplace(dict.fromkeys(places.values(), sympy.Integer(0)))
    for symbol in sorted(atoms([rest]) - parameters - {Duration}, key=str):
        name = symbol_name(symbol)
        raise SolveError(
            f"minimize contains {name} outside of kg.Integral(...); there, only kg.Duration and parameters of the "
            "model can stand. A cost of values at the end of the motion is not available: integrate its rate, or give "
            "a condition, end={" + name + ": ...}"
        )
    return Cost(sympy.Add(*(factor * integral.integrand for integral, factor in factors.items())), rest)
