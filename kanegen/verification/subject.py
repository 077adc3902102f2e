"""What is checked: the equations of a model, its program, the compiled solver, and states with their true motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mpmath
import numpy as np

from kanegen.derivation import Equations
from kanegen.graph import Node, evaluate
from kanegen.graph.ranks import RANK_TOLERANCE, independent_rows
from kanegen.program.records import Program
from kanegen.solve import Solver
from kanegen.verification.arithmetic import (
    DIGITS,
    Arithmetic,
    arithmetic_for,
    dot,
    kkt,
    kkt_sizes,
    rows,
    transposed_product,
)
from kanegen.verification.states import State


@dataclass(frozen=True)
class Motion:
    """What the equations say at one state, in the numbers of the subject: b and u' without stabilization.

    ``J`` and ``b`` are all rows; ``rows`` are the independent ones, whose ``multipliers`` are known. ``sizes`` and
    ``multiplier_sizes`` are those of the terms that u' and the multipliers are made of, ``inertia_sizes`` those of
    ``Q u' - P``.
    """

    Q: list[list[Any]]
    P: list[Any]
    J: list[list[Any]]
    b: list[Any]
    rows: tuple[int, ...]
    udot: list[Any]
    sizes: list[float]
    inertia_sizes: list[float]
    multipliers: list[Any]
    multiplier_sizes: list[float]
    constraint_force: list[Any]

    @property
    def has_inverse(self) -> bool:
        """Whether Q is positive definite: no combination of speeds leaves every mass still."""
        Q = np.array(self.Q, dtype=np.float64)
        scale = np.sqrt(np.diag(Q))
        if not np.all(scale > 0.0):
            return False
        return bool(np.linalg.eigvalsh(Q / scale / scale[:, None]).min() > RANK_TOLERANCE)


class Subject:
    """A model under verification. All numbers of the graph are in ``arithmetic``; states are in double precision."""

    def __init__(self, equations: Equations, program: Program, solver: Solver, states: Sequence[State]) -> None:
        self.equations = equations
        self.program = program
        self.solver = solver
        self.states = tuple(states)

    @cached_property
    def arithmetic(self) -> Arithmetic:
        e = self.equations
        energies = e.potential_energy.nodes if self.has_potential else ()
        return arithmetic_for([*e.Q.nodes, *e.P.nodes, *e.J.nodes, *e.b.nodes, *e.qdot.nodes, *energies])

    @property
    def has_potential(self) -> bool:
        """Whether the model gives a potential energy."""
        return self.equations.model.has_potential

    @property
    def n_u(self) -> int:
        return len(self.equations.system.u)

    def values(self, state: State, **arrays: Sequence[Any]) -> dict[str, Sequence[Any]]:
        """The input arrays at a state, with others instead of its own."""
        return {**state.values(self.arithmetic.number), **arrays}

    def evaluate(self, nodes: Sequence[Node], state: State, **arrays: Sequence[Any]) -> list[Any]:
        """Values of nodes at a state; ``udot`` is the state's arbitrary one unless given."""
        return evaluate(nodes, self.values(state, **arrays), self.arithmetic.context)

    @cached_property
    def motions(self) -> tuple[Motion, ...]:
        """The true motion at every state, from Q, P, J and b of the graph by one bordered solve."""
        with mpmath.workdps(DIGITS):
            return tuple(self._motion(state) for state in self.states)

    def _motion(self, state: State) -> Motion:
        e, n = self.equations, self.n_u
        n_c = len(e.constraints.rows)
        nodes = (*e.Q.nodes, *e.P.nodes, *e.J.nodes, *e.b.nodes)
        values = self.evaluate(nodes, state)
        Q, P = rows(values[: n * n], n), values[n * n : n * n + n]
        rest = values[n * n + n :]
        J, b = rows(rest[: n_c * n], n), rest[n_c * n :]
        chosen = independent_rows(J)
        independent = [J[k] for k in chosen]
        right = [b[k] for k in chosen]
        udot, multipliers = kkt(Q, independent, P, right)
        sizes = kkt_sizes(Q, independent, P, right, [*udot, *multipliers]).tolist()
        inertia = [float(dot([abs(x) for x in row], sizes[:n]) + abs(p)) for row, p in zip(Q, P, strict=True)]
        return Motion(
            Q=Q,
            P=P,
            J=J,
            b=b,
            rows=chosen,
            udot=udot,
            sizes=sizes[:n],
            inertia_sizes=inertia,
            multipliers=multipliers,
            multiplier_sizes=sizes[n:],
            constraint_force=transposed_product(independent, multipliers, n),
        )
