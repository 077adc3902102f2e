"""Evaluation at one state or at many: quantities, residuals, outputs and reactions of a solver."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.protocol import Build
from kanegen.codegen.description import Description
from kanegen.model import Baumgarte, Model, Projection
from kanegen.model.description import SystemDescription
from kanegen.program.catalogue import ATTRIBUTES, CATALOGUE, REACTION
from kanegen.quantities import SolverQuantities
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.values import by_array, known_name, state_arrays
from kanegen.units import Units


@dataclass(frozen=True)
class AccelerationParts:
    """The two parts of the accelerations in the canonical form (Bajodah and Chen 2018, eqs. 40 and 44), (n_u,) each.

    At N states the arrays have the shape (N, n_u).

    ``udot_constraint`` enforces the constraints, ``udot_momentum`` balances the momentum. Their sum is u', and they
    are orthogonal in the metric Q. ``wdot_constraint`` and ``wdot_momentum`` are the parts of w', with w = Q^1/2 u;
    they are orthogonal in the Euclidean metric.
    """

    udot_constraint: Array
    udot_momentum: Array
    wdot_constraint: Array
    wdot_momentum: Array


class Wrench(NamedTuple):
    """Force (3,) in N, and torque about the reaction's point (3,) in N m, as components in the reaction's frame.

    At N states the arrays have the shape (N, 3).
    """

    force: Array
    torque: Array


class Quantity:
    """A function of a :class:`~kanegen.Solver` as an attribute of the class: its signature and its description.

    The attribute of a solver is the compiled function, which is created on first use.
    """

    def __init__(self, name: str, description: str, arguments: str = "t q u r s out forces free") -> None:
        self.__name__ = self.__qualname__ = name
        self.__doc__ = description
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        defaults = {
            argument: None if argument in _OPTIONAL else inspect.Parameter.empty for argument in arguments.split()
        }
        parameters = [inspect.Parameter(key, kind, default=value) for key, value in defaults.items()]
        self.__signature__ = inspect.Signature([inspect.Parameter("self", kind), *parameters])

    def __get__(self, solver: Any, owner: Any = None) -> Any:
        if solver is None:
            return self
        function = solver.__dict__[self.__name__] = solver._functions.call(self.__name__)
        return function

    def __call__(self, solver: Any, *arguments: Any, **named: Any) -> Any:
        return getattr(solver, self.__name__)(*arguments, **named)


_OPTIONAL: Final = ("r", "s", "out", "forces", "free")


def describe_quantities(solver: type) -> None:
    """Give the class of solvers an attribute for each quantity of the catalogue."""
    for name in ATTRIBUTES:
        spec = CATALOGUE[name]
        shape = f"({', '.join(spec.shape)}{',' if len(spec.shape) == 1 else ''})"
        summary = spec.summary[:1].upper() + spec.summary[1:]
        setattr(solver, name, Quantity(name, f"{summary}: {f'array {shape}' if spec.shape else 'a float'}."))


class Evaluation(SolverQuantities):
    """The common base of all parts of a :class:`~kanegen.Solver`, with its methods that evaluate quantities.

    All methods take one state, or N states as arrays with N rows; results then have N rows.
    """

    description: Description
    extension: Build
    parameters: Mapping[str, float | Any]  # Any in place of None: users know which values they gave
    initial: Mapping[str, float]
    model: SystemDescription | None
    stabilization: Baumgarte | Projection | None
    with_parameters: Callable[..., Any]
    _functions: CompiledFunctions
    _rhs_name: str
    _residuals: Callable[..., Array]

    if not TYPE_CHECKING:  # which know the attributes from SolverQuantities

        def __getattr__(self, name: str) -> Callable[..., Any]:
            """Raise an AttributeError with the nearest name; quantities are found before."""
            near = difflib.get_close_matches(name, [known for known in dir(self) if known[0] != "_"], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            # With obj=self, a traceback of Python would repeat the hint.
            raise AttributeError(f"a Solver has no attribute {name!r}{hint}", name=name, obj=None)

    @property
    def units(self) -> Units:
        """The units of the model by names, for display; empty if it has none, or was not kept in a pickle."""
        return self.model.all_units if isinstance(self.model, Model) else Units()

    def _value(self, name: str, t: Any, q: Any, u: Any, r: Any, s: Any = None, forces: Any = None) -> Any:
        r = self._functions.with_laws([name], t, q, u, r, s)
        return self._functions.get(name).value(t, q, u, r, s, forces=forces)

    def _state(self, q: Any, u: Any, s: Any = None) -> tuple[Any, Any, Any]:
        """The state as arrays, from arrays or from mappings and ``initial``."""
        if by_array(q) and by_array(u) and not isinstance(s, Mapping):
            return q, u, s
        return state_arrays(self.description, self.initial, q, u, s)

    def residuals(
        self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, forces: Any = None
    ) -> tuple[Array, Array]:
        """Residuals of the constraints at position and velocity level, zero on the constraint manifold.

        ``(n_position,)``: phi of the holonomic constraints, then invariants (``description.constraints.positions``);
        ``(n_velocity,)``: phi' and psi (``description.constraints.velocities``).
        """
        constraints = self.description.constraints
        if not constraints.levels:
            q, u, s = self._state(q, u, s)
            r = self._functions.beside_laws((), r)[0] if isinstance(r, Mapping) else r
            checked, _ = self.extension.module.checked_state(t, q, u, r, s)
            none = np.empty((*checked.shape[:-1], 0))
            return none, none.copy()
        values, n = self._residuals(t, q, u, r, s, forces=forces), len(constraints.positions)
        return values[..., :n], values[..., n:]

    def rank(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, forces: Any = None) -> Any:
        """The number of independent constraints at a state, or (N,) at N states; needs the function ``rank``."""
        value = self._value("rank", t, q, u, r, s, forces)
        return value.astype(int) if isinstance(value, np.ndarray) else int(value)

    def acceleration_parts(
        self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, forces: Any = None
    ) -> AccelerationParts:
        """Constraint-enforcing and momentum-balance parts of u' and w'; needs ``functions="acceleration_parts"``."""
        return AccelerationParts(*np.moveaxis(self._value("acceleration_parts", t, q, u, r, s, forces), -2, 0))

    def output(self, name: str, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, forces: Any = None) -> Any:
        """The user's output ``name``: a float or an array; (N, ...) at N states.

        Raises `SolveError` for unknown names.
        """
        shapes = self.description.outputs
        name = known_name(name, tuple(shapes), "output")
        compiled = f"output:{name}"
        value = self._value(compiled, t, q, u, r, s, forces)
        if shapes[name] == ():
            return value
        rows = value.shape[: value.ndim - len(self._functions.having(compiled).module.FUNCTIONS[compiled])]
        return value.reshape((*rows, *shapes[name]))

    def outputs(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, forces: Any = None) -> dict[str, Any]:
        """All outputs of the model by name."""
        return {name: self.output(name, t, q, u, r, s, forces) for name in self.description.outputs}

    def reaction(self, name: str, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, forces: Any = None) -> Wrench:
        """Force and torque of the model's reaction ``name``. Raises `SolveError` for unknown names."""
        name = known_name(name, self.description.reactions, "compiled reaction")
        values = self._value(REACTION + name, t, q, u, r, s, forces)
        return Wrench(values[..., :3], values[..., 3:])

    def reactions(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, forces: Any = None) -> dict[str, Wrench]:
        """All reactions of the model by name."""
        return {name: self.reaction(name, t, q, u, r, s, forces) for name in self.description.reactions}
