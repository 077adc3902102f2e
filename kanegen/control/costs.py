"""The cost of a motion as a SymPy expression: integrals, values at the start and end, the duration, and parameters."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import sympy

from kanegen.errors import SolveError, brief
from kanegen.model.expressions import atoms, symbol_name


class _Term(sympy.Expr):  # type: ignore[misc]
    """A number that belongs to a whole motion, made of an expression of the model."""

    is_commutative = True

    def __new__(cls, inner: Any) -> Any:
        return sympy.Expr.__new__(cls, momentary(inner, f"the argument of kg.{cls.__name__}"))

    # SymPy looks for methods of printers by the names of classes, and has another class Integral.

    def _sympystr(self, printer: Any) -> str:
        return f"{type(self).__name__}({printer._print(self.args[0])})"

    def _latex(self, printer: Any) -> str:
        return rf"\mathrm{{{type(self).__name__}}}\left({printer._print(self.args[0])}\right)"

    def _pretty(self, printer: Any) -> Any:
        return printer._print(sympy.Symbol(str(self)))


class AtStart(_Term):
    """An expression at the start of the motion, for ``minimize=`` and ``subject_to=`` of `OptimalControl`."""


class AtEnd(_Term):
    """An expression at the end of the motion, for ``minimize=`` and ``subject_to=`` of `OptimalControl`.

    Examples
    --------
    >>> import kanegen as kg
    >>> from sympy.physics.mechanics import dynamicsymbols
    >>> x = dynamicsymbols("x")
    >>> kg.AtEnd(x) - kg.AtStart(x)
    AtEnd(x(t)) - AtStart(x(t))
    """


class Integral(_Term):
    """The integral of an expression over the whole motion, a term of ``minimize=`` of :class:`kanegen.OptimalControl`.

    Its argument is an expression of t, coordinates, speeds, their rates, states, inputs and parameters of the model.
    Integrals can be multiplied by numbers and added to each other, to :data:`kanegen.Duration`, and to values at ends.

    Examples
    --------
    >>> import kanegen as kg
    >>> from sympy.physics.mechanics import dynamicsymbols
    >>> F = dynamicsymbols("F")
    >>> kg.Duration + 2 * kg.Integral(F**2)
    _duration + 2*Integral(F(t)**2)
    """

    @property
    def integrand(self) -> Any:
        """The expression that is integrated."""
        return self.args[0]


Duration: Final = sympy.Dummy("duration", positive=True)
"""The duration of the motion, s, as a SymPy symbol for ``minimize=`` of :class:`kanegen.OptimalControl`."""


class Cost(NamedTuple):
    """``integrand``: what is integrated over the motion; ``rest``: of the duration, the ends and parameters."""

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


def momentary(value: Any, what: str) -> Any:
    """A scalar SymPy expression of values at one time. Raises `SolveError`."""
    found = expression(value, what)
    for term in sorted(found.atoms(_Term), key=str) or sorted(found.atoms(sympy.Dummy) & {Duration}, key=str):
        name = "kg.Duration" if term is Duration else str(term)
        raise SolveError(f"{what} contains {name}, which belongs to the whole motion; expected values at one time")
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
    require_terms(rest, parameters, "minimize")
    return Cost(sympy.Add(*(factor * integral.integrand for integral, factor in factors.items())), rest)


def require_terms(value: Any, parameters: frozenset[Any], what: str) -> None:
    """Raise `SolveError` for symbols of the model outside of the terms that make numbers of a motion of them."""
    outside = value.xreplace({term: sympy.Integer(0) for term in value.atoms(AtStart, AtEnd)})
    for symbol in sorted(atoms([outside]) - parameters - {Duration}, key=str):
        name = symbol_name(symbol)
        raise SolveError(
            f"{what} contains {name} outside of kg.Integral(...), kg.AtStart(...) and kg.AtEnd(...); there, only "
            f"kg.Duration and parameters of the model can stand. Conditions along the motion are those of path="
        )


def inside(value: Any) -> list[Any]:
    """The expressions at the start and at the end in a cost or condition."""
    return [term.args[0] for term in sorted(value.atoms(AtStart, AtEnd), key=str)]
