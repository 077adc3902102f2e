"""Schemes of transcription: collocation methods of Runge-Kutta type, in the unit interval."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError, brief


@dataclass(frozen=True, eq=False)
class Scheme:
    """A method with stages at ``c`` (s,), in one interval of length 1.

    The states of the stages are those at the start plus ``A`` (s, s) times the rates at the stages, those at the end
    are those at the start plus ``b`` (s,) times the rates. ``order`` is that of the states at the ends of intervals.
    """

    name: str
    c: Array
    A: Array
    b: Array
    order: int

    @cached_property
    def starts_at_mesh(self) -> bool:
        """Whether the first stage is the start of the interval."""
        return bool(self.c[0] == 0.0)

    @cached_property
    def ends_at_mesh(self) -> bool:
        """Whether the last stage is the end of the interval."""
        return bool(self.c[-1] == 1.0)

    @cached_property
    def dense(self) -> Array:
        """Coefficients (s, s + 1) of the integrals of Lagrange's polynomials of the stages, highest power first.

        The state at ``theta`` is that at the start, plus the length of the interval times these polynomials weighted
        with the rates of the stages.
        """
        return np.array([np.polyint(basis) for basis in lagrange(self.c)])


def lagrange(nodes: Array) -> list[Array]:
    """Lagrange's polynomials of distinct nodes, highest power first."""
    found = []
    for j, node in enumerate(nodes):
        others = np.delete(nodes, j)
        found.append(np.atleast_1d(np.poly(others)) / np.prod(node - others))
    return found


def _collocation(name: str, c: Array, order: int) -> Scheme:
    """The method that is exact for polynomials through the stages (Hairer, Norsett and Wanner 1993, theorem II.7.7)."""
    integrals = [np.polyint(basis) for basis in lagrange(c)]
    A = np.array([[np.polyval(each, node) for each in integrals] for node in c])
    b = np.array([np.polyval(each, 1.0) for each in integrals])
    return Scheme(name, c, A, b, order)


def _radau(stages: int) -> Scheme:
    """Radau IIA: the last stage is the end of the interval."""
    c = np.ones(1)
    if stages > 1:
        from scipy.special import roots_jacobi

        c = np.append((roots_jacobi(stages - 1, 1.0, 0.0)[0] + 1.0) / 2.0, 1.0)
    return _collocation(f"radau{stages}", c, 2 * stages - 1)


def _gauss(stages: int) -> Scheme:
    """Gauss-Legendre: all stages are inside the interval."""
    c = (np.polynomial.legendre.leggauss(stages)[0] + 1.0) / 2.0
    return _collocation(f"gauss{stages}", c, 2 * stages)


NAMED: Final[Mapping[str, Any]] = {
    "hermite-simpson": lambda: _collocation("hermite-simpson", np.array([0.0, 0.5, 1.0]), 4),
    "trapezoidal": lambda: _collocation("trapezoidal", np.array([0.0, 1.0]), 2),
    "midpoint": lambda: _collocation("midpoint", np.array([0.5]), 2),
    "backward-euler": lambda: _collocation("backward-euler", np.array([1.0]), 1),
    "radau": lambda: _radau(3),
    "gauss": lambda: _gauss(2),
}
"""Schemes by name. ``"radau4"`` and ``"gauss5"`` are those with this number of stages."""

_MOST_STAGES: Final = 12
_NUMBERED: Final = re.compile(r"(radau|gauss)([1-9][0-9]?)", re.ASCII)


def scheme_of(name: Any) -> Scheme:
    """The scheme with this name. Raises `SolveError`."""
    if isinstance(name, str) and name in NAMED:
        found: Scheme = NAMED[name]()
        return found
    match = _NUMBERED.fullmatch(name) if isinstance(name, str) else None
    if match and int(match[2]) <= _MOST_STAGES:
        return (_radau if match[1] == "radau" else _gauss)(int(match[2]))
    if name == "shooting":
        raise SolveError('scheme="shooting" is not available: use "hermite-simpson", or "radau5" for smooth motions')
    near = difflib.get_close_matches(name, NAMED, n=1) if isinstance(name, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    expected = f"{', '.join(NAMED)}, or radau and gauss with a number of stages to {_MOST_STAGES}, such as radau5"
    raise SolveError(f"scheme is {brief(name)}; expected one of {expected}{hint}")
