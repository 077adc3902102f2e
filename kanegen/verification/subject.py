"""The subject of verification: equations, program and compiled solver of a model, and states with their true motion.

Arrays have the dtype object. They hold mpmath numbers of 50 digits, or doubles if the model calls user functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import mpmath
import numpy as np

from kanegen.arrays import Array
from kanegen.derivation import Equations, Quantity, views
from kanegen.derivation.states import Numbers, State, numbers, read
from kanegen.errors import SolveError
from kanegen.graph import PYTHON, Context, Function, Node, mpmath_context, reachable
from kanegen.graph.ranks import RANK_TOLERANCE, independent_rows
from kanegen.program.interpret import interpret
from kanegen.program.records import Program
from kanegen.solve import Solver
from kanegen.verification.report import NotApplicableError, deviation

DIGITS: Final = 50

STEP: Final = mpmath.mpf(1e-12)
"""Step of central differences in 50 digits: errors of 1e-24 by truncation, at most 1e-26 (second ones) by rounding."""

EXACT: Final = 1e-12
"""Tolerance of identities in 50 digits: only constants that SymPy or the graph rounded to doubles make a difference."""

DOUBLE: Final = 1e-10
"""Tolerance of results in double precision, relative to their sensitivity: some hundred rounding errors."""


def slopes(function: Callable[[Numbers], Any], x: Numbers, step: Any = STEP) -> Numbers:
    """The derivatives of ``function`` in each element of ``x``, (len(x), ...), by central differences."""
    steps = step * np.eye(len(x), dtype=object)
    return numbers((function(x + h) - function(x - h)) / (2 * step) for h in steps)


def solve(matrix: Numbers, right: Numbers) -> Numbers:
    """``matrix^-1 right``. Raises ZeroDivisionError for a singular matrix."""
    if not len(right):
        return right
    return numbers(mpmath.lu_solve(mpmath.matrix(matrix.tolist()), mpmath.matrix(right.tolist())))


def bordered(M: Numbers, J: Numbers) -> Numbers:
    """The matrix of ``M u' - J^T lambda = P``, ``J u' = b``."""
    return np.block([[M, -J.T], [J, np.zeros((len(J), len(J)), dtype=object)]])


def kkt(M: Numbers, J: Numbers, P: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
    """u' and multipliers of ``M u' = P + J^T lambda``, ``J u' = b``, by one bordered solve."""
    solution = solve(bordered(M, J), np.append(P, b))
    return solution[: len(P)], solution[len(P) :]


def kkt_sizes(M: Numbers, J: Numbers, right: Numbers, solution: Numbers) -> Array:
    """The change of the ``solution`` (u', multipliers) with relative changes of the entries of the bordered system.

    It is ``|K^-1| (|K| |x| + |f|)`` with the bordered matrix K (Skeel 1979), which is the scale of the terms even if
    these cancel in u'.
    """
    K, x, f = (array.astype(np.float64) for array in (bordered(M, J), solution, right))
    return np.asarray(np.abs(np.linalg.inv(K)) @ (np.abs(K) @ np.abs(x) + np.abs(f)))


@dataclass(frozen=True)
class Motion:
    """The true motion at one state, in the numbers of the subject; b and u' are without stabilization.

    ``J`` and ``b`` have the independent rows only, to which the ``multipliers`` belong. ``sizes``, ``multiplier_sizes``
    and ``inertia_sizes`` are the sizes of the terms of u', of the multipliers and of ``M u' - P``.
    """

    Q: Numbers
    M: Numbers
    P: Numbers
    J: Numbers
    b: Numbers
    udot: Numbers
    multipliers: Numbers
    constraint_force: Numbers
    sizes: Array
    multiplier_sizes: Array
    inertia_sizes: Array

    @property
    def force(self) -> Numbers:
        """``F(u') - L`` at the true accelerations, (n_u,): P and the part of the loads that depends on u'."""
        return np.asarray(self.P + (self.Q - self.M) @ self.udot)

    @property
    def has_inverse(self) -> bool:
        """Whether M is positive definite: no combination of speeds leaves every mass still."""
        M = (self.M + self.M.T).astype(np.float64)
        scale = np.sqrt(np.maximum(np.diag(M), 0.0))
        if not np.all(scale > 0.0):
            return False
        return bool(np.linalg.eigvalsh(M / scale / scale[:, None]).min() > RANK_TOLERANCE)


@dataclass(frozen=True)
class Kinematics:
    """Velocities and the rates of position or orientation that they should equal.

    ``compared`` holds a description, the velocity and the rate. ``embedded`` names the points and frames whose
    velocities may differ from these rates because they contain constraints: a body that rotates about a point at rest
    (rolling), a point without position, and a spin of an axisymmetric body that the orientation leaves out.
    """

    compared: tuple[tuple[str, Sequence[Node], Sequence[Node]], ...]
    embedded: tuple[str, ...]


class Subject:
    """A model under verification. All numbers of the graph are in ``context``; states are in double precision."""

    def __init__(self, equations: Equations, program: Program, solver: Solver, states: Sequence[State]) -> None:
        self.equations = equations
        self.program = program
        self.solver = solver
        self.states = tuple(states)
        self.n_u = len(equations.system.u)

    @cached_property
    def exact(self) -> bool:
        """Whether numbers have 50 digits; functions of the user are Python code for double precision."""
        e = self.equations
        energies = e.potential_energy.nodes if e.model.has_potential else ()
        equations = (e.Q, e.M, e.P, e.J, e.b, e.qdot, e.sdot)
        nodes = reachable([*(node for quantity in equations for node in quantity.nodes), *energies])
        return not any(node.op == "call" and isinstance(node.payload, Function) for node in nodes)

    def require_digits(self) -> None:
        """Raise `NotApplicableError` if numbers do not have the digits that differences need."""
        if not self.exact:
            raise NotApplicableError("differences need 50 digits, but functions of the user have double precision")

    @cached_property
    def context(self) -> Context:
        """The arithmetic in which the graph is evaluated."""
        return mpmath_context(DIGITS) if self.exact else PYTHON

    @property
    def tolerance(self) -> float:
        """Largest deviation of identities between quantities of the graph."""
        return EXACT if self.exact else DOUBLE

    def values(self, state: State, **arrays: Numbers) -> dict[str, Numbers]:
        """The input arrays at a state; ``arrays`` replace those of the state."""
        own = state.values(self.context.number)
        return {name: numbers(array) for name, array in own.items()} | arrays

    def evaluate(self, nodes: Sequence[Node], state: State, **arrays: Numbers) -> Numbers:
        """Values of nodes at a state; ``udot`` is the state's arbitrary one unless given."""
        return self.read(state, nodes, **arrays)[0]

    def read(self, state: State, *groups: Quantity | Sequence[Any], **arrays: Numbers) -> list[Numbers]:
        """Values of quantities, and of vectors and matrices of nodes, in their shapes, by one evaluation."""
        values = {name: array.tolist() for name, array in self.values(state, **arrays).items()}
        return read(groups, values, self.context)

    def interpret(self, name: str, values: Mapping[str, Numbers], context: Context | None = None) -> Numbers:
        """The value of a function of the program. Raises `SolveError` if it is undefined."""
        arrays = {key: list(array) for key, array in values.items()}
        status, result = interpret(self.program, name, arrays, context or self.context)
        if status < 0:
            raise SolveError(f"{name} does not exist here")
        return numbers(result)

    @cached_property
    def motions(self) -> tuple[tuple[State, Motion], ...]:
        """Every state with the true motion, from M, P, J and b of the graph by one bordered solve."""
        return tuple((state, self._motion(state)) for state in self.states)

    def _motion(self, state: State) -> Motion:
        e, n = self.equations, self.n_u
        Q, M, P, J, b = self.read(state, e.Q, e.M, e.P, e.J, e.b)
        chosen = list(independent_rows(J))
        J, b = J[chosen], b[chosen]
        udot, multipliers = kkt(M, J, P, b)
        sizes = kkt_sizes(M, J, np.append(P, b), np.append(udot, multipliers))
        inertia = (abs(M) @ sizes[:n] + abs(P)).astype(np.float64)
        return Motion(Q, M, P, J, b, udot, multipliers, J.T @ multipliers, sizes[:n], sizes[n:], inertia)

    @cached_property
    def kinematics(self) -> Kinematics:
        """The velocities of mass centers and the angular velocities of bodies."""
        compared: list[tuple[str, Sequence[Node], Sequence[Node]]] = []
        embedded: list[str] = []
        for point in views.placed_points(self.equations):
            if point.origin is None or self._rolls(point):
                embedded.append(point.what)
            else:
                what = f"velocity of {point.what} and the rate of its position from {point.origin}"
                compared.append((what, point.velocity, point.rate))
        for frame in views.oriented_frames(self.equations):
            if self._spins_about_symmetry(frame):
                embedded.append(frame.what)
            else:
                what = f"angular velocity of {frame.what} and the rate of its axes"
                compared.append((what, frame.omega, frame.rate))
        return Kinematics(tuple(compared), tuple(embedded))

    def _agree(self, a: Sequence[Node], b: Sequence[Node]) -> bool:
        return all(deviation(*self.read(state, a, b)) <= self.tolerance for state in self.states)

    def _rolls(self, point: views.Placed) -> bool:
        """Whether the velocity is that of a body rolling on the point it starts from, not the rate of the position."""
        if point.rolled is None or self._agree(point.velocity, point.rate):
            return False
        return self._agree(point.velocity, point.rolled)

    def _spins_about_symmetry(self, frame: views.Oriented) -> bool:
        """Whether the angular velocity differs from that of the axes by a spin about an axis of symmetry."""
        if self._agree(frame.omega, frame.rate):
            return False
        for state in self.states:
            omega, rate, inertia = self.read(state, frame.omega, frame.rate, frame.inertia)
            x, y, z = omega - rate
            xx, yy, zz, xy, xz, yz = inertia
            turn = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=object)
            tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=object)
            size = max(map(abs, (x, y, z))) * max(map(abs, (xx, yy, zz)))
            if np.any(abs(turn @ tensor - tensor @ turn) > self.tolerance * size):
                return False
        return True
