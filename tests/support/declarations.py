"""The text of kanegen/quantities.py: declarations of the quantities of the catalogue."""

from __future__ import annotations

from kanegen.program.catalogue import ATTRIBUTES, CATALOGUE, Entry

HEAD = '''\
"""The quantities of solvers and solutions, declared for type checkers and editors.

At run time both classes are empty: a `Solver` has a compiled function for each entry of the catalogue, and a `Solution`
evaluates it along the motion. ``KANEGEN_UPDATE_GOLDENS=1 pytest tests/package/test_types.py`` writes this file from the
catalogue (kanegen/program/catalogue.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from kanegen.arrays import Array

Numbers: TypeAlias = Sequence[float] | Mapping[Any, float] | None
"""One state as a list, a tuple, or a mapping from names or symbols; None: that of ``initial``."""


class SolverQuantities:
    """The quantities of a `Solver` as functions of a state, or of N states."""

    if TYPE_CHECKING:

        def rhs(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> tuple[Array, ...]:
            """Rates (q', u') of a state, (n_q,) and (n_u,), and s' (n_s,) with states."""

        def ode(self, t: float, y: Any, r: Any = None) -> Array:
            """y' for y = (q, u, s), for scipy.integrate.solve_ivp."""

        def speeds_from_momentum(self, t: Any, q: Any, mom: Any, r: Any = None, s: Any = None) -> Array:
            """Speeds (n_u,) from the momenta of the momentum forms."""

        def momentum_rhs(self, t: Any, q: Any, mom: Any, r: Any = None, s: Any = None) -> tuple[Array, ...]:
            """Rates (q', mom') of the momentum forms, and s' (n_s,) with states."""
'''

STATE = "self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None"
NUMBERS = "self, t: float, q: Numbers, u: Numbers, r: Any = None, s: Any = None, *, forces: Any = None"

ARRAY = '''
{array}
            """{text}, {shape}; (N, ...) at N states."""
'''

NUMBER = '''
        @overload
{number} ...
        @overload
{any} ...
{any}
            """{text}, a float; (N,) at N states."""
'''

SOLUTION = '''

class SolutionQuantities:
    """The quantities of a `Solution` at its stored times."""

    if TYPE_CHECKING:

        @property
        def rhs(self) -> tuple[Array, ...]:
            """Rates (q', u'), (n_t, n_q) and (n_t, n_u), with all forces; s' (n_t, n_s) with states."""

        @property
        def residuals(self) -> tuple[Array, Array]:
            """Residuals of the constraints at position and velocity level, (n_t, n_position) and (n_t, n_velocity)."""

        @property
        def rank(self) -> Any:
            """The number of independent constraints, integers (n_t,)."""

        @property
        def acceleration_parts(self) -> Any:
            """The parts of the accelerations, a :class:`kanegen.results.AccelerationParts` of arrays (n_t, n_u)."""
'''

PROPERTY = '''
        @property
        def {name}(self) -> Array:
            """{text}, {shape}."""
'''


def text() -> str:
    """The text of the file."""
    functions = [_of_solver(CATALOGUE[name]) for name in ATTRIBUTES]
    properties = [_of_solution(CATALOGUE[name]) for name in ATTRIBUTES]
    return HEAD + "".join(functions) + SOLUTION + "".join(properties)


def _of_solver(entry: Entry) -> str:
    signatures = {
        "array": _signature(entry.name, STATE, "Array"),
        "number": _signature(entry.name, NUMBERS, "float"),
        "any": _signature(entry.name, STATE, "Any"),
    }
    template = ARRAY if entry.shape else NUMBER
    return template.format(text=_summary(entry), shape=_shape(entry.shape), **signatures)


def _signature(name: str, arguments: str, result: str) -> str:
    """The first lines of a method, broken as the formatter does it."""
    line = f"        def {name}({arguments}) -> {result}:"
    return line if len(line) <= 120 else f"        def {name}(\n            {arguments}\n        ) -> {result}:"


def _of_solution(entry: Entry) -> str:
    return PROPERTY.format(name=entry.name, text=_summary(entry), shape=_shape(("n_t", *entry.shape)))


def _summary(entry: Entry) -> str:
    unit = f" in {entry.unit}" if entry.unit else ""
    return f"{entry.summary[:1].upper()}{entry.summary[1:]}{unit}"


def _shape(sizes: tuple[str, ...]) -> str:
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
