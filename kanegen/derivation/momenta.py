"""Momenta and their rates: the momentum and velocity forms of Kane's equations, and Hamilton's equations.

Source: Phillips and Amirouche (2023), Kane's equations for nonholonomic systems in bond-graph-compatible velocity and
momentum forms. With the generalized active forces ``e`` and ``ehat_r = sum m v_r' . v + w_r' . H`` (the rates of the
partial velocities weighted with the momenta), ``(Q u + N)' = e + ehat + J^T lambda``. The partial velocities of the
constrained system in place of v_r and w_r eliminate the multipliers. ``e`` is without the part of loads that depends on
accelerations, which the program adds with the solved u'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kanegen.derivation import forms
from kanegen.derivation.constraints import Partition, Row, solved_partition
from kanegen.derivation.equations import Equations, Quantity
from kanegen.derivation.geometry.system import System
from kanegen.errors import BuildError
from kanegen.graph import Node, evaluate, gradient
from kanegen.graph.ranks import RANK_TOLERANCE
from kanegen.model.expressions import symbol_name
from kanegen.model.records import ACCELERATION


@dataclass(frozen=True)
class ReducedMomenta:
    """The momenta ``A2 (Q u + N)``, (n_i,), and the quantities by which they determine the speeds.

    ``S u_I = mom - offset`` with ``S = A2 Q A2^T`` (its lower triangle), then ``u_D = A u_I + Bv`` with A and Bv of
    ``partition``; ``rate`` is the derivative of the momenta, ``e + ehat`` of the constrained system.
    """

    momenta: tuple[Node, ...]
    rate: tuple[Node, ...]
    lower: tuple[tuple[Node, ...], ...]
    offset: tuple[Node, ...]
    partition: Partition
    remainder: tuple[Node, ...]


class Momenta:
    """The quantities of the momentum forms, each derived when it is first read."""

    def __init__(self, equations: Equations) -> None:
        self._equations = equations
        self._system = equations.system

    # -- momentum and velocity form -------------------------------------------------------------------------

    @cached_property
    def Dm(self) -> Quantity:
        """``Dm`` of ``Q u' + Dm u = e``, (n_u, n_u): ``Q' = Dm + Dm^T``, so that ``u.Dm u = 1/2 u.Q' u``."""
        rows = self._equations.inertia.velocity_matrix()
        return self._equations.quantity("Dm", [x for row in rows for x in row], (len(rows), len(rows)))

    @cached_property
    def e(self) -> Quantity:
        """``e = P + Dm u`` of the velocity form, (n_u,): active forces less inertia forces of prescribed motions."""
        n_u = len(self._system.u)
        rows = [self.Dm.nodes[r * n_u : (r + 1) * n_u] for r in range(n_u)]
        carried = forms.matrix_vector(self._system.graph, rows, self._system.u)
        return self._equations.quantity("e", forms.total(self._equations.P.nodes, carried))

    @cached_property
    def rate(self) -> tuple[Node, ...]:
        """``e + ehat`` = d/dt (Q u + N) less the constraint forces, (n_u,)."""
        transport = self._equations.inertia.transport()
        return self._equations.simplified(forms.total(self._equations.F.nodes, transport))

    @cached_property
    def reduced(self) -> ReducedMomenta:
        """The reduced form; BuildError for constraints that are not linear in the speeds."""
        equations, system = self._equations, self._system
        require_linear(system, equations.constraints.rows)
        graph, n_u = system.graph, len(system.u)
        part = self._velocity_partition()
        Bv = part.B
        tangent = forms.tangent_matrix(graph, part, n_u)
        rates = [[system.rate(x) for x in row] for row in tangent]
        momentum = equations.momentum.nodes
        return ReducedMomenta(
            momenta=self._product(tangent, momentum),
            rate=tuple(forms.total(self._product(tangent, self.rate), self._product(rates, momentum))),
            lower=forms.reduced(graph, self.mass_matrix, [graph.zero] * n_u, part, Bv).lower,
            offset=tuple(-x for x in forms.reduced(graph, self.mass_matrix, [-x for x in self.N], part, Bv).right),
            partition=part,
            remainder=Bv,
        )

    def reduced_added_force(self, udot: Sequence[Node]) -> tuple[Node, ...]:
        """``A2 (F - F0) = A2 (Q - M) u'``, the part of the reduced active forces that depends on accelerations."""
        equations, part = self._equations, self.reduced.partition
        added = [forms.difference(*rows) for rows in zip(equations.mass_matrix, equations.left_side, strict=True)]
        tangent = forms.tangent_matrix(self._system.graph, part, len(udot))
        return self._product(tangent, forms.matrix_vector(self._system.graph, added, udot))

    @cached_property
    def mass_matrix(self) -> tuple[tuple[Node, ...], ...]:
        """Q as a function of q and t, (n_u, n_u)."""
        return tuple(self._equations.simplified(self._system.at_rest(row)) for row in self._equations.mass_matrix)

    @cached_property
    def N(self) -> tuple[Node, ...]:
        """The momenta at u = 0, (n_u,)."""
        return self._equations.simplified(self._system.at_rest(self._equations.N.nodes))

    def _product(self, matrix: Sequence[Sequence[Node]], vector: Sequence[Node]) -> tuple[Node, ...]:
        return self._equations.simplified(forms.matrix_vector(self._system.graph, matrix, vector))

    def _velocity_partition(self) -> Partition:
        """``u_D = A u_I + Bv`` from the velocity-level constraints, linear in the speeds; Bv takes the place of B."""
        system, rows = self._system, self._equations.constraints.rows
        J = [system.at_rest(row.J) for row in rows]
        rest = [-x for x in system.at_rest([row.residuals[-1] for row in rows])]
        part, biases = self._equations.partition, list(zip(rest, rest, strict=True))
        return solved_partition(system, part, J, biases)

    def require_mass(self, form: str) -> None:
        """Require a positive definite kinetic-energy matrix, so that the momenta determine the speeds.

        Raises
        ------
        BuildError
            If it is not, naming the speed that moves no mass.
        """
        index = massless_speed(self._system, self.mass_matrix)
        if index is not None:
            name = symbol_name(self._system.model.speeds[index])
            raise BuildError(
                f"form={form!r} finds the speeds from the momenta Q u + N and needs Q positive definite, but the speed "
                f"{name} moves no mass independently of the others; give that part a mass, or use "
                f'form="momentum" or "reduced", which need A2 Q A2^T positive definite only'
            )

    # -- Hamilton -------------------------------------------------------------------------------------------

    def require_canonical(self) -> None:
        """Require u = q'; BuildError names the first coordinate whose derivative is not its speed."""
        system, model = self._system, self._system.model
        for k, q in enumerate(model.coordinates):
            row = system.C[k]
            fits = len(system.u) == len(system.q) and system.D[k].is_zero
            if not (fits and all(c.is_one if r == k else c.is_zero for r, c in enumerate(row))):
                raise BuildError(
                    f'form="hamilton" needs u = q\' in the order of the coordinates ({len(system.q)} coordinates, '
                    f"{len(system.u)} speeds), but the derivative of {symbol_name(q)} is not a speed of its own: "
                    f"choose the derivatives of the coordinates as speeds, or use "
                    f'form="momentum_unreduced", which admits any speeds'
                )

    @cached_property
    def canonical_rate(self) -> tuple[Node, ...]:
        """``-dH/dq`` with the nonconservative forces, (n_q,): ``dK/dq`` at fixed q' and all active forces."""
        slope = self._slope(self._kinetic)
        return self._equations.simplified(forms.total(slope, self._equations.F.nodes))

    @cached_property
    def _kinetic(self) -> Node:
        """The kinetic energy; the Lagrangian if nothing tells K from V, which is then part of it."""
        return self._equations.simplified([self._equations.inertia.energy()])[0]

    @cached_property
    def _potential(self) -> Node:
        """The potential energy, zero if the Lagrangian stands for the kinetic energy."""
        e = self._equations
        return e.graph.zero if e.model.is_unsplit else e.potential_energy.nodes[0]

    @cached_property
    def hamiltonian(self) -> Quantity:
        """``H = K2 - K0 + V`` at the canonical momenta of the state, J."""
        system, K, V = self._system, self._kinetic, self._potential
        Qu = forms.matrix_vector(system.graph, self.mass_matrix, system.u)
        quadratic = system.graph.dot(system.u, Qu) / 2
        return self._equations.quantity("hamiltonian", [quadratic - system.at_rest([K])[0] + V], ())

    @cached_property
    def jacobi_integral(self) -> Quantity:
        """``h = sum q' K_q' - K + V``, J."""
        e = self._equations
        power = e.graph.dot(self._system.u, e.momentum.nodes)
        return e.quantity("jacobi_integral", [power - self._kinetic + self._potential], ())

    @cached_property
    def cyclic_coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates on which neither energy depends and along which no constraint force acts.

        Only nonconservative forces change their canonical momenta.
        """
        e, model = self._equations, self._system.model
        K = self._slope(self._kinetic)
        V = self._slope(self._potential) if model.has_potential else [e.graph.zero] * len(K)
        J = [[row.J[r] for row in e.constraints.rows] for r in range(len(K))]
        return tuple(
            symbol_name(q)
            for r, q in enumerate(model.coordinates)
            if self._system.vanish_in_all_cases([K[r], V[r], *J[r]])
        )

    def _slope(self, energy: Node) -> list[Node]:
        return gradient([energy], [self._system.graph.one], self._system.q)


def require_linear(system: System, rows: Sequence[Row]) -> None:
    """Require constraints that are linear in the speeds; BuildError names the first other one and suitable forms."""
    for row in rows:
        reason = None
        if row.kind == ACCELERATION:
            reason = "is given at acceleration level only"
        elif not system.are_constant(row.J, system.u):
            reason = "is not linear in the speeds"
        if reason is not None:
            raise BuildError(
                f"the reduced momentum form does not exist: the {row.kind} constraint {row.label} {reason}, and "
                f"u_D = A u_I + Bv is needed to find the speeds from the reduced momenta; use "
                f'form="momentum_unreduced", or "reduced" in the speeds themselves'
            )


def massless_speed(system: System, mass_matrix: Sequence[Sequence[Node]]) -> int | None:
    """Index of a speed at which the Cholesky factorization of Q breaks down at random states of every size, or None."""
    found = None
    for states in system.states_of_every_size():
        broken = (_breakdown(mass_matrix, state) for state in states)
        index = next((k for k in broken if k is not None), None)
        if index is None:
            return None
        found = index if found is None else found
    return found


def _breakdown(mass_matrix: Sequence[Sequence[Node]], state: Mapping[str, Sequence[float]]) -> int | None:
    """Index of the first pivot of Q that is zero but for rounding at a state, or None."""
    n = len(mass_matrix)
    Q = np.array(evaluate([entry for row in mass_matrix for entry in row], state)).reshape(n, n)
    for i in range(n):
        pivot = Q[i, i] - Q[i, :i] @ np.linalg.solve(Q[:i, :i], Q[:i, i])
        if not pivot > RANK_TOLERANCE * Q[i, i]:
            return i
    return None
