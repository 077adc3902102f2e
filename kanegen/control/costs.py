"""The cost of a motion: integrals, sums over samples, and a function of values at single times and of the duration."""

from __future__ import annotations

from typing import Any, NamedTuple

import sympy

from kanegen.control.terms import AtEnd, AtStart, AtTime, Duration, Integral, Samples, SampleSum, expression
from kanegen.errors import SolveError
from kanegen.model.expressions import atoms, symbol_name


class SampledCost(NamedTuple):
    """The sum of an expression over samples, times a factor."""

    factor: float
    expression: Any
    samples: Samples


class Cost(NamedTuple):
    """``integrand``: what is integrated over the motion; ``sampled``: sums over samples; ``rest``: a function of the
    duration, of values at single times, and of parameters."""

    integrand: Any
    sampled: tuple[SampledCost, ...]
    rest: Any


def read_cost(minimize: Any, parameters: frozenset[Any]) -> Cost:
    """The parts of a cost. ``parameters``: the symbols that may stand outside of terms. Raises `SolveError`."""
    whole = expression(minimize, "minimize")
    places = {term: sympy.Dummy() for term in sorted(whole.atoms(Integral, SampleSum), key=str)}
    linear = whole.xreplace(places)
    factors = {term: linear.diff(place) for term, place in places.items()}
    for term, factor in factors.items():
        if factor.free_symbols or not factor.is_number:
            raise SolveError(
                f"minimize contains {term} times {factor}; integrals and sums over samples can be multiplied by "
                "numbers and added. Write factors that depend on the model into the integrand"
            )
    rest = linear.xreplace(dict.fromkeys(places.values(), sympy.Integer(0)))
    require_terms(rest, parameters, "minimize")
    integrals = (factor * term.integrand for term, factor in factors.items() if isinstance(term, Integral))
    sampled = (
        SampledCost(float(factor), term.args[0], term.samples)
        for term, factor in factors.items()
        if isinstance(term, SampleSum)
    )
    return Cost(sympy.Add(*integrals), tuple(sampled), rest)


def require_terms(value: Any, parameters: frozenset[Any], what: str) -> None:
    """Raise `SolveError` for symbols of the model outside of the terms that make numbers of a motion of them."""
    for term in sorted(value.atoms(Integral, SampleSum), key=str):
        raise SolveError(f"{what} contains {term}: integrals and sums over samples are terms of minimize= only")
    outside = value.xreplace({term: sympy.Integer(0) for term in value.atoms(AtStart, AtEnd, AtTime)})
    for symbol in sorted(atoms([outside]) - parameters - {Duration}, key=str):
        name = symbol_name(symbol)
        raise SolveError(
            f"{what} contains {name} outside of kg.Integral(...), kg.AtStart(...), kg.AtEnd(...) and kg.AtTime(...); "
            "there, only kg.Duration and parameters of the model can stand. Conditions along the motion are those of "
            "path="
        )
