"""Dimensions of expressions: products of powers of base units and of the unknown units of symbols.

A dimension maps base units and unknowns to exponents. That two dimensions agree is a linear equation in their
exponents; solving these equations one after the other gives the unknown units, and the first equation that cannot be
satisfied shows where units contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import count
from typing import Any, Final, TypeAlias

import sympy
from sympy.functions.elementary.hyperbolic import HyperbolicFunction, InverseHyperbolicFunction
from sympy.functions.elementary.trigonometric import InverseTrigonometricFunction, TrigonometricFunction
from sympy.physics.vector import dynamicsymbols

from kanegen.graph.functions import TableUnits
from kanegen.model.contacts import is_multiplier
from kanegen.model.expressions import is_time_function, symbol_name
from kanegen.units import Exponents, exponents, read_unit, spelled

Dimension: TypeAlias = Mapping[Any, Fraction]
"""Exponents of base units (strings) and of unknown units (symbols, or integers for numbers that can have a unit)."""

NONE: Final[Dimension] = {}
"""The dimension of pure numbers and of angles."""

SECOND: Final = exponents(s=1)

LONGEST_TERM: Final = 60
"""Characters of a term in a message."""

_PURE: Final = (
    *(TrigonometricFunction, InverseTrigonometricFunction, HyperbolicFunction, InverseHyperbolicFunction),
    *(sympy.exp, sympy.log, sympy.erf, sympy.gamma, sympy.sinc),
)
_AGREEING: Final = (sympy.Add, sympy.Min, sympy.Max, sympy.Mod, sympy.atan2)
_NUMBERED: Final = (sympy.sign, sympy.Heaviside, sympy.atan2)
"""Functions whose value is a pure number, whatever the unit of the arguments."""


def product(*factors: tuple[Dimension, Any]) -> Dimension:
    """The product of powers of dimensions, given as pairs (dimension, exponent)."""
    total: dict[Any, Fraction] = {}
    for dimension, power in factors:
        for key, exponent in dimension.items():
            total[key] = total.get(key, Fraction(0)) + exponent * power
    return {key: exponent for key, exponent in total.items() if exponent}


class Dimensions:
    """The dimensions of the symbols of a model, of which more and more are known; collects ``problems``.

    ``given`` maps symbols to the exponents of their units, ``texts`` the same symbols to their units in messages.
    """

    def __init__(self, given: Mapping[Any, Exponents], texts: Mapping[Any, str]) -> None:
        self.problems: dict[str, None] = {}
        self._given = {dynamicsymbols._t: SECOND, **given}
        self._texts = texts
        self._solved: dict[Any, Dimension] = {}
        self._cache: dict[Any, Dimension] = {}
        self._wildcards = count()

    def of_symbol(self, symbol: Any) -> Dimension:
        """The dimension of a symbol as far as it is known."""
        known = self._given.get(symbol)
        return self.reduced({symbol: Fraction(1)}) if known is None else known

    def known(self, symbol: Any) -> Exponents | None:
        """The exponents of a symbol's unit; None if the model does not determine it."""
        dimension = self.of_symbol(symbol)
        return dimension if all(isinstance(key, str) for key in dimension) else None

    def reduced(self, dimension: Dimension) -> Dimension:
        """The dimension with all units that are known by now."""
        while any(key in self._solved for key in dimension):
            parts = ((self._solved.get(key, {key: Fraction(1)}), exponent) for key, exponent in dimension.items())
            dimension = product(*parts)
        return dimension

    def agree(self, left: Dimension, right: Dimension) -> bool:
        """Whether two dimensions can agree; if so, they do from now on."""
        difference = self.reduced(product((left, 1), (right, -1)))
        unknowns = [key for key in difference if not isinstance(key, str)]
        if unknowns:
            # Units of numbers are of no interest, and are eliminated first.
            key = min(unknowns, key=lambda item: not isinstance(item, int))
            rest = {other: exponent for other, exponent in difference.items() if other != key}
            self._solved[key] = product((rest, -1 / difference[key]))
        return bool(unknowns) or not difference

    def wildcard(self) -> Dimension:
        """The dimension of something that can have any unit."""
        return {next(self._wildcards): Fraction(1)}

    # -- places ---------------------------------------------------------------------------------------------

    def require(self, where: str, expressions: Iterable[Any], expected: Dimension | None) -> None:
        """Compare expressions with the unit that they must have, or only their terms with each other (None).

        A number that is alone in its place has the unit of the place.
        """
        for expr in map(sympy.sympify, expressions):
            if expected is None:
                self.of(expr, where)
            elif not expr.is_number:
                for term in sympy.Add.make_args(expr):
                    self._require_of_term(where, term, expected)

    def _require_of_term(self, where: str, term: Any, expected: Dimension) -> None:
        before = len(self.problems)
        found = self.of(term, where)
        if len(self.problems) == before and not self.agree(found, expected):
            what = "is a pure number" if term.is_number else f"has the unit {self._unit(term, found)}"
            self.problems[f"{where}: {_short(term)} {what}: expected {self._spelled(expected)}{_advice(term)}"] = None

    # -- expressions ----------------------------------------------------------------------------------------

    def of(self, expr: Any, where: str) -> Dimension:
        """The dimension of an expression; contradictions in it are problems of the place ``where``."""
        if expr in self._cache:
            return self._cache[expr]
        before = next(self._wildcards)
        dimension = self._of(expr, where)
        if next(self._wildcards) == before + 1:  # another 9.81 can have another unit
            self._cache[expr] = dimension
        return dimension

    def _of(self, expr: Any, where: str) -> Dimension:
        if expr.is_number:
            return self.wildcard() if expr.has(sympy.Float) else NONE
        if expr.is_Symbol or is_time_function(expr) or is_multiplier(expr):
            return self.of_symbol(expr)
        if isinstance(expr, sympy.Derivative):
            over = ((self.of(variable, where), -order) for variable, order in expr.variable_count)
            return product((self.of(expr.expr, where), 1), *over)
        if expr.is_Mul:
            return product(*((self.of(factor, where), 1) for factor in expr.args))
        if expr.is_Pow:
            return self._power(expr, where)
        if isinstance(expr, _AGREEING):
            dimension = self._common(expr.args, where)
            return NONE if isinstance(expr, _NUMBERED) else dimension
        if isinstance(expr, sympy.Piecewise):
            for condition in (
                relation for _, case in expr.args for relation in case.atoms(sympy.core.relational.Relational)
            ):
                self._common(condition.args, where)
            return self._common([value for value, _ in expr.args], where)
        return self._function(expr, where)

    def _function(self, expr: Any, where: str) -> Dimension:
        arguments = [self.of(argument, where) for argument in expr.args if isinstance(argument, sympy.Expr)]
        if isinstance(expr, _PURE):
            for argument, dimension in zip(expr.args, arguments, strict=False):
                if not self.agree(dimension, NONE):
                    self.problems[
                        f"{where}: the argument {_short(argument)} of {expr.func.__name__} has the unit "
                        f"{self._unit(argument, dimension)}: expected an angle or a pure number{_advice(argument)}"
                    ] = None
            return NONE
        if isinstance(expr, (sympy.Abs, sympy.floor, sympy.ceiling)):
            return arguments[0]
        table = getattr(expr, "kanegen_function", None)
        if table is not None and getattr(table, "units", None) is not None:
            return self._table(expr, table.name, table.units, arguments, where)
        return NONE if isinstance(expr, _NUMBERED) else self.wildcard()  # functions and tables without units

    def _table(self, expr: Any, name: str, units: TableUnits, arguments: list[Dimension], where: str) -> Dimension:
        """The dimension of the value of a table; its arguments, and its values if they are parameters, are compared."""
        texts = dict.fromkeys((*units.arguments, units.value[0][0]))
        given = {text: self._of_text(text, f"a unit of the table {name!r}") for text in texts}
        values = len(arguments) - len(units.arguments)
        expected = [*(given[text] for text in units.arguments), *values * [given[units.value[0][0]]]]
        for argument, dimension, wanted in zip(expr.args, arguments, expected, strict=True):
            if not self.agree(dimension, wanted) and not argument.is_number:
                self.problems[
                    f"{where}: {_short(argument)} in the table {name!r} has the unit "
                    f"{self._unit(argument, dimension)}: expected {self._spelled(wanted)}{_advice(argument)}"
                ] = None
        return product(*((given[text], power) for text, power in units.value))

    def _of_text(self, text: str, where: str) -> Dimension:
        """The dimension of a unit; any if it cannot be read, which is a problem."""
        problems: list[str] = []
        unit = read_unit(text, where, problems)
        self.problems.update(dict.fromkeys(problems))
        return self.wildcard() if unit is None else unit.exponents

    def _power(self, expr: Any, where: str) -> Dimension:
        base, exponent = (self.of(argument, where) for argument in expr.args)
        if expr.exp.is_Rational or expr.exp.is_Float:
            return product((base, Fraction(str(sympy.nsimplify(expr.exp, rational=True))).limit_denominator(1000)))
        if not self.agree(exponent, NONE):
            self.problems[
                f"{where}: the exponent {_short(expr.exp)} has the unit {self._unit(expr.exp, exponent)}: expected a "
                "pure number"
            ] = None
        return NONE if not self.reduced(base) else self.wildcard()

    def _common(self, terms: Iterable[Any], where: str) -> Dimension:
        """The dimension that all terms have; zero and infinity have any."""
        ordered = sorted((x for x in terms if x != 0 and not x.is_infinite), key=lambda x: bool(x.is_number))
        if not ordered:
            return self.wildcard()
        first, *others = ordered
        dimension = self.of(first, where)
        for term in others:
            found = self.of(term, where)
            if self.agree(dimension, found):
                continue
            what = "a pure number" if term.is_number else self._unit(term, found)
            self.problems[
                f"{where}: the terms {_short(first)} ({self._unit(first, dimension)}) and {_short(term)} ({what}) have "
                f"different units{_advice(first, term)}"
            ] = None
        return dimension

    # -- messages -------------------------------------------------------------------------------------------

    def _unit(self, expr: Any, dimension: Dimension) -> str:
        """The unit of a term: as the user wrote it, if the term is a symbol."""
        sign, symbol = expr.as_coeff_Mul()
        return self._texts[symbol] if abs(sign) == 1 and symbol in self._texts else self._spelled(dimension)

    def _spelled(self, dimension: Dimension) -> str:
        dimension = self.reduced(dimension)
        known = {key: exponent for key, exponent in dimension.items() if isinstance(key, str)}
        unknown = {f"[{symbol_name(x)}]": power for x, power in dimension.items() if isinstance(x, sympy.Basic)}
        return spelled({**unknown, **known})


def _short(expr: Any) -> str:
    """An expression in the notation of messages: ``x'`` for a rate, without (t), shortened."""
    rates = {x: sympy.Symbol(symbol_name(x)) for x in expr.atoms(sympy.Derivative) if is_time_function(x.expr)}
    plain = expr.xreplace(rates)
    names = {x: sympy.Symbol(symbol_name(x)) for x in plain.atoms(sympy.Function) if is_time_function(x)}
    text = str(plain.xreplace(names))
    return text if len(text) <= LONGEST_TERM else f"{text[: LONGEST_TERM - 10]} ..."


def _advice(*terms: Any) -> str:
    """What to do if a number among the factors can be the reason."""
    numbers = [str(number) for number in _numbers(terms)]
    if not numbers:
        return ""
    return f"; if {' or '.join(dict.fromkeys(numbers))} is a quantity with a unit, make it a parameter"


def _numbers(terms: Iterable[Any]) -> Iterator[Any]:
    for term in terms:
        for part in sympy.Add.make_args(term)[:3]:
            coefficient = part.as_coeff_Mul()[0]
            if part.is_number or abs(coefficient) != 1:
                yield abs(coefficient)
