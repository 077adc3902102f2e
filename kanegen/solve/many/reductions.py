"""What an ensemble keeps of a motion in place of its states: one number, from a quantity at the accepted steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError, brief
from kanegen.program.catalogue import CATALOGUE
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.values import key_name, known_name

REDUCTIONS: Final[Mapping[str, Callable[[Array], float]]] = MappingProxyType(
    {
        "final": lambda x: float(x[-1]),
        "min": lambda x: float(x.min()),
        "max": lambda x: float(x.max()),
        "max_abs": lambda x: float(np.abs(x).max()),
        "max_change": lambda x: float(np.abs(x - x[0]).max()),
    }
)
"""Functions of the values (n_t,) of a quantity at the start and after each accepted step of a motion, by name."""

NAMED: Final[Mapping[str, tuple[str, str]]] = MappingProxyType({"max_energy_drift": ("max_change", "energy")})
"""Reductions with a name of their own: the function and the quantity."""


@dataclass(frozen=True)
class Reduction:
    """A key of `REDUCTIONS`, and the quantity to which it is applied.

    ``component``: the index of a quantity that is a component of the state (q, u, s). ``function``: the compiled
    function of another one.
    """

    kind: str
    name: str
    component: int | None
    function: str

    def of(self, solution: Any) -> float:
        """The value for a motion whose solution has all accepted steps. Raises `SolveError`."""
        is_output = self.component is not None or self.function.startswith("output:")
        values = solution[self.name] if is_output else getattr(solution, self.name)
        return REDUCTIONS[self.kind](np.asarray(values))


def reduction(functions: CompiledFunctions, given: Any) -> Reduction | None:
    """Read the argument ``reduce`` of `integrate_many`. Raises `SolveError` for anything that it cannot be."""
    if given is None:
        return None
    kind, name = NAMED.get(given, ("final", given)) if isinstance(given, str) else _pair(given)
    kind, name = known_name(kind, tuple(REDUCTIONS), "reduction"), key_name(name)
    d = functions.description
    state = (*d.coordinates, *d.speeds, *d.states)
    if name in state:
        return Reduction(kind, name, state.index(name), "")
    scalars = [key for key, spec in CATALOGUE.items() if spec.attribute and spec.shape == () and d.has(key)]
    known = (*state, *(key for key, shape in d.outputs.items() if shape == ()), *scalars, *NAMED)
    if name in d.outputs and d.outputs[name] != ():
        raise SolveError(f"reduce names the output {name!r} of shape {d.outputs[name]}; expected one number")
    function = f"output:{name}" if name in d.outputs else name
    if (name in known or name in CATALOGUE) and function not in d.deferred:
        functions.require([function])  # names the reason
    return Reduction(kind, known_name(name, known, "quantity with one value"), None, function)


def _pair(given: Any) -> tuple[Any, Any]:
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return given[0], given[1]
    if hasattr(given, "free_symbols"):
        return "final", given
    raise SolveError(
        f"reduce is {brief(given)}; expected the name of an output, coordinate, speed, state or scalar quantity, "
        f"a pair of {', '.join(map(repr, REDUCTIONS))} and such a name, or {', '.join(map(repr, NAMED))}"
    )
