"""Outputs and reactions at one state, by name."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.solve.functions import Functions
from kanegen.solve.names import unknown

REACTION: Final = "reaction:"
"""Prefix of the compiled functions of reactions."""


class Wrench(NamedTuple):
    """Force (3,), N, and torque about the reaction's point (3,), N m, components in the reaction's frame."""

    force: Array
    torque: Array

    @classmethod
    def of(cls, values: Array) -> Wrench:
        """From the six numbers of the compiled function."""
        return cls(values[:3], values[3:])


class NamedResults:
    """The methods of :class:`~kanegen.Solver` for outputs and reactions."""

    description: Description
    _functions: Functions

    def output(self, name: str, t: float, q: Any, u: Any, r: Any = None) -> Any:
        """The user's output ``name``: a float or an array. Raises `SolveError` for unknown names."""
        shapes = self.description.outputs
        if name not in shapes:
            raise SolveError(unknown(name, tuple(shapes), "output"))
        value = self._functions.get(f"output:{name}").value(t, q, u, r)
        return value if shapes[name] == () else value.reshape(shapes[name])

    def outputs(self, t: float, q: Any, u: Any, r: Any = None) -> dict[str, Any]:
        """All outputs of the model by name."""
        return {name: self.output(name, t, q, u, r) for name in self.description.outputs}

    def reaction(self, name: str, t: float, q: Any, u: Any, r: Any = None) -> Wrench:
        """Force and torque of the model's reaction ``name``. Raises `SolveError` for unknown names."""
        known = tuple(f.removeprefix(REACTION) for f in self.description.functions if f.startswith(REACTION))
        if name not in known:
            raise SolveError(unknown(name, known, "reaction (reactions= of kanegen.Model) that was built"))
        return Wrench.of(self._functions.get(REACTION + name).value(t, q, u, r))

    def reactions(self, t: float, q: Any, u: Any, r: Any = None) -> dict[str, Wrench]:
        """All reactions of the model by name."""
        names = (f.removeprefix(REACTION) for f in self.description.functions if f.startswith(REACTION))
        return {name: self.reaction(name, t, q, u, r) for name in names}
