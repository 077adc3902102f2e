"""The files of integration methods: their coefficients, and how they choose steps.

A file ``NAME.toml`` contains a ``title`` with the source; ``[control]`` with the fields of :class:`StepControl`, absent
for a method with fixed steps; and the fields of :class:`.Tableau`, or of :class:`.Rosenbrock` if there is a ``gamma``.
Numbers are text, so that they are read exactly. A row of numbers is one text with all numbers, or a table from indices
to nonzero numbers. An error estimate has ``weights``, or a ``solution`` that is compared with the solution of the
method. Dense output is given by ``dense``, the rows F3, F4, ... of the nested form, or by ``interpolant``: for each
stage the coefficients of theta, theta^2, ... in its weight.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

from kanegen.codegen.methods.rosenbrock import Rosenbrock
from kanegen.codegen.methods.table import ADAPTIVE, IMPLICIT, NAMES
from kanegen.codegen.methods.tableaux import ErrorEstimate, Row, Tableau, nested_form


@dataclass(frozen=True)
class StepControl:
    """How an adaptive method chooses its steps.

    Source: E. Hairer, S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, 2nd ed., section II.4.

    Parameters
    ----------
    order
        The error estimate is proportional to h^order.
    safety
        The next step is this fraction of the largest step that the error estimate allows.
    shrink, grow
        Smallest and largest quotient of consecutive steps.
    beta
        Exponent of the proportional part of the control; 0 means integral control only.
    """

    order: int
    safety: Fraction
    shrink: Fraction
    grow: Fraction
    beta: Fraction = Fraction(0)


@dataclass(frozen=True)
class Method:
    """An integration method; its file is read on the first access to another attribute than ``name``."""

    name: str

    @property
    def title(self) -> str:
        """A description with the source."""
        return str(self._file["title"])

    @cached_property
    def control(self) -> StepControl | None:
        """The step size control; None for a method with a fixed step."""
        if not self.is_adaptive:
            return None
        order, numbers = self._file["control"]["order"], self._file["control"].items()
        return StepControl(order, **{key: Fraction(value) for key, value in numbers if key != "order"})

    @property
    def is_adaptive(self) -> bool:
        """Whether the method chooses its steps."""
        return self.name in ADAPTIVE

    @property
    def is_implicit(self) -> bool:
        """Whether the method needs the Jacobian of the right-hand side."""
        return self.name in IMPLICIT

    @cached_property
    def coefficients(self) -> Tableau | Rosenbrock:
        """The coefficients, after a check of their order conditions, which takes milliseconds."""
        return _rosenbrock(self._file) if self.is_implicit else _tableau(self._file)

    @cached_property
    def _file(self) -> Mapping[str, Any]:
        return tomllib.loads((files(__package__) / f"{self.name}.toml").read_text(encoding="utf-8"))


METHODS: Final[Mapping[str, Method]] = MappingProxyType({name: Method(name) for name in NAMES})
"""All methods by name. The number of a method in C is its position here."""


def _rosenbrock(file: Mapping[str, Any]) -> Rosenbrock:
    given: dict[str, Any] = {name: file[name] for name in ("order", "dense_order")}
    given |= {name: tuple(map(_row, file[name])) for name in ("a", "C", "dense")}
    given |= {name: _row(file[name]) for name in ("c", "d", "m")}
    return Rosenbrock(gamma=Fraction(file["gamma"]), tolerance=Fraction(file["tolerance"]), **given)


def _tableau(file: Mapping[str, Any]) -> Tableau:
    stages, c, weights = file["stages"], _row(file["c"]), file["a"]
    rows = [weights.get(str(i), {}) for i in range(len(c))] if isinstance(weights, Mapping) else weights
    a = tuple(_row(entry, i) for i, entry in enumerate(rows))
    if "interpolant" in file:
        dense = _interpolant(file["interpolant"], len(c))
    else:
        dense = tuple(_row(entry, len(c)) for entry in file.get("dense", ()))
    errors = tuple(_error_estimate(entry, a[stages]) for entry in file.get("errors", ()))
    tolerance = Fraction(file.get("tolerance", 0))
    return Tableau(file["order"], file["dense_order"], stages, c, a, errors, dense, tolerance)


def _row(given: Any, length: int = 0) -> Row:
    """Numbers from one text or a list of texts, or from a table of nonzero numbers, padded to ``length``."""
    if isinstance(given, Mapping):
        return tuple(Fraction(given.get(str(j), 0)) for j in range(length))
    return tuple(Fraction(number) for text in ([given] if isinstance(given, str) else given) for number in text.split())


def _error_estimate(entry: Mapping[str, Any], b: Row) -> ErrorEstimate:
    n = len(b)
    if "solution" in entry:
        compared = _row(entry["solution"], n)
        return ErrorEstimate(entry["order"], (*(x - y for x, y in zip(b, compared, strict=True)), Fraction(0)))
    return ErrorEstimate(entry["order"], _row(entry["weights"], n + 1))


def _interpolant(polynomials: Mapping[str, str], rows: int) -> tuple[Row, ...]:
    """The rows F3, F4, ... of dense output, from the weights of the stages as polynomials in theta."""
    nested = {int(stage): nested_form(_row(text)) for stage, text in polynomials.items()}
    degree = len(next(iter(nested.values())))
    return tuple(
        tuple(nested[stage][k] if stage in nested else Fraction(0) for stage in range(rows)) for k in range(3, degree)
    )
