"""Inertia of a model: that of its bodies, or that of a Lagrangian without bodies.

Both kinds give the kinetic-energy matrix, the momenta and the inertia forces, so that everything derived from these
works with both. A Lagrangian ``L = K - V`` also defines the potential energy V, whose forces are ``-C^T dV/dq``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, Protocol, TypeAlias

from sympy import Derivative
from sympy.physics.vector import dynamicsymbols

from kanegen.derivation.forces.generalized import GeneralizedForces, Momentum, body_energy, body_momenta, with_gravity
from kanegen.derivation.forms import matrix_vector, total
from kanegen.derivation.geometry.frames import Frames
from kanegen.derivation.geometry.points import Points
from kanegen.derivation.geometry.system import System
from kanegen.derivation.geometry.vectors import Triple, cross, dot, mapped, plus
from kanegen.derivation.inertia.bodies import Body, lower_bodies, product
from kanegen.derivation.inertia.mass_matrix import mass_matrix
from kanegen.errors import DerivationError
from kanegen.graph import Node, Tangent, gradient, substitute
from kanegen.model.description import SystemDescription

Rows: TypeAlias = Sequence[Sequence[Node]]


class Inertia(Protocol):
    """What resists the accelerations of a model."""

    bodies: tuple[Body, ...]
    remedy: ClassVar[str]
    """What to do about a speed that moves no mass."""

    @property
    def potential(self) -> Node | None:
        """The potential energy in the Lagrangian, without that of gravity, J; None if it is unknown."""

    def matrix(self) -> Rows:
        """The symmetric kinetic-energy matrix Q, (n_u, n_u)."""

    def energy(self) -> Node:
        """The kinetic energy, J. Without bodies and potential energy, it is L, because nothing tells K from V."""

    def momenta(self) -> list[Momentum]:
        """Velocities and the momenta conjugate to them."""

    def add_forces(self, forces: GeneralizedForces, potential: bool, accelerated: bool = False) -> None:
        """Add the inertia forces at u' = 0 or, if ``accelerated``, at the accelerations ``udot``.

        With ``potential`` they include the weights by ``gravity`` and the forces of the Lagrangian's potential energy.
        """

    def potential_energy(self) -> Node:
        """The potential energy, J; DerivationError if the model has none."""

    def velocity_matrix(self) -> list[list[Node]]:
        """Dm of ``Q u' + Dm u = e``, (n_u, n_u), with ``Q' = Dm + Dm^T``."""

    def transport(self) -> tuple[Node, ...]:
        """``ehat`` of ``(Q u + N)' = F + ehat + J^T lambda``, (n_u,)."""


def inertia_of(system: System) -> Inertia:
    """The inertia of the bodies or, without bodies, of the Lagrangian."""
    if system.model.bodies or system.model.lagrangian is None:
        return BodyInertia(system)
    return LagrangianInertia(system)


def active_forces(system: System, inertia: Inertia) -> tuple[Node, ...]:
    """Generalized active forces, weights included, (n_u,)."""
    forces = GeneralizedForces(system)
    forces.add_loads(inertia.bodies, weights=True)
    add_potential_forces(forces, system, inertia.potential)
    return forces.conjugate_to(system.u)


def inertia_forces(system: System, inertia: Inertia) -> tuple[Node, ...]:
    """Generalized inertia forces at u' = 0, (n_u,)."""
    forces = GeneralizedForces(system)
    inertia.add_forces(forces, potential=False)
    return forces.conjugate_to(system.u)


def kinetic_energy(inertia: Inertia, model: SystemDescription) -> Node:
    """The kinetic energy, J; DerivationError if nothing tells it from the potential energy."""
    if model.is_unsplit:
        inertia.potential_energy()  # raises the error that says what is missing
    return inertia.energy()


class BodyInertia:
    """The inertia of bodies. A Lagrangian of these bodies adds the forces of its potential energy only."""

    remedy: ClassVar[str] = "give the bodies that it moves a mass or an inertia"

    def __init__(self, system: System) -> None:
        self._system = system
        self.bodies = lower_bodies(system)

    def matrix(self) -> Rows:
        return mass_matrix(self._system, self.bodies)

    def energy(self) -> Node:
        return body_energy(self._system, self.bodies)

    def momenta(self) -> list[Momentum]:
        return [item for body in self.bodies for item in body_momenta(self._system, body)]

    def add_forces(self, forces: GeneralizedForces, potential: bool, accelerated: bool = False) -> None:
        system, model = self._system, self._system.model
        frames, points = system.frames, system.weighted_points if potential else system.points
        if accelerated:
            frames = Frames(system.graph, model.frame, model.geometry, system.lower, system.full_rate)
            points = Points(frames, model.geometry.routes, system.full_rate, system.agree)
            points = points.with_gravity(system.gravity) if potential else points
        forces.add_inertia(self.bodies, points, frames)
        if potential:
            add_potential_forces(forces, system, self.potential)

    def potential_energy(self) -> Node:
        system, given = self._system, self._system.model.potential_energy
        energy = system.graph.zero if given is None else system.lower(given)
        return with_gravity(system, self.bodies, energy if self.potential is None else self.potential)

    @cached_property
    def potential(self) -> Node | None:
        """As the user gave it, otherwise ``K - L`` at u = 0."""
        system, model = self._system, self._system.model
        if model.lagrangian is None:
            return None
        if model.potential_energy is not None:
            return system.lower(model.potential_energy)
        if model.gravity is not None:
            return system.graph.zero
        kinetic, lagrangian = system.at_rest([self.energy(), system.lower(model.lagrangian)])
        return kinetic - lagrangian

    def velocity_matrix(self) -> list[list[Node]]:
        return velocity_matrix(self._system, self.bodies)

    def transport(self) -> tuple[Node, ...]:
        return momentum_transport(self._system, self.momenta())


class LagrangianInertia:
    """The inertia of a Lagrangian ``L(q, q', t)`` without bodies, from ``d/dt dL/dq' - dL/dq``.

    If the user gave the potential energy V, the kinetic energy is ``K = L + V``; otherwise L stands for it, and the
    inertia forces contain those of the potential energy.
    """

    remedy: ClassVar[str] = "write the kinetic energy of its motion into the Lagrangian"

    def __init__(self, system: System) -> None:
        self._system = system
        self.bodies: tuple[Body, ...] = ()
        model, graph = system.model, system.graph
        self._held = [graph.input("qdot", i) for i in range(len(system.q))]
        rates = (Derivative(q, dynamicsymbols._t) for q in model.coordinates)
        self._symbols = dict(zip(rates, self._held, strict=True))
        self.potential = None if model.potential_energy is None else system.lower(model.potential_energy)

    @cached_property
    def _lagrangian(self) -> Node:
        """L in terms of the rates q' as inputs."""
        return self._system.lower_with(self._system.model.lagrangian, self._symbols)

    @cached_property
    def _kinetic(self) -> Node:
        """``K = L + V`` in terms of the rates q' as inputs, or L."""
        model = self._system.model
        if model.potential_energy is None:
            return self._lagrangian
        # SymPy cancels the terms of the potential energy, if they are written in the same way.
        return self._system.lower_with(model.lagrangian + model.potential_energy, self._symbols)

    def _moving(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes with ``q' = C u + D``."""
        return substitute(nodes, dict(zip(self._held, self._system.qdot, strict=True)))

    def _conjugate(self, function: Node) -> list[Node]:
        """The derivatives of L or K with respect to q', (n_q,)."""
        return self._moving(self._rate_slopes(function))

    def _rate_slopes(self, function: Node) -> Sequence[Node]:
        return gradient([function], [self._system.graph.one], self._held)

    def _slopes(self, function: Node) -> list[Node]:
        """The derivatives of L or K with respect to q at fixed q', (n_q,)."""
        return self._moving(gradient([function], [self._system.graph.one], self._system.q))

    def matrix(self) -> Rows:
        system, n = self._system, len(self._system.u)
        momenta = self._conjugate(self._kinetic)
        lower = [
            [_product(system, r, [system.partials[s](p) for p in momenta]) for s in range(r + 1)] for r in range(n)
        ]
        return [[lower[max(r, s)][min(r, s)] for s in range(n)] for r in range(n)]

    def energy(self) -> Node:
        return self._moving([self._kinetic])[0]

    def momenta(self) -> list[Momentum]:
        inertial = self._system.frames.inertial
        momenta = self._conjugate(self._kinetic)
        return [
            (inertial, self._along(rate), self._along(p)) for rate, p in zip(self._system.qdot, momenta, strict=True)
        ]

    def _along(self, node: Node) -> Triple:
        zero = self._system.graph.zero
        return (node, zero, zero)

    def add_forces(self, forces: GeneralizedForces, potential: bool, accelerated: bool = False) -> None:
        system, function = self._system, self._lagrangian if potential else self._kinetic
        rate = system.full_rate if accelerated else system.rate
        for qdot, p, slope in zip(system.qdot, self._conjugate(function), self._slopes(function), strict=True):
            forces.add(self._along(qdot), self._along(slope - rate(p)))

    def potential_energy(self) -> Node:
        if self.potential is None:
            raise DerivationError(
                f"the Lagrangian of model {self._system.model.name!r} does not tell the kinetic from the potential "
                f"energy: give potential_energy= or bodies="
            )
        return self.potential

    def velocity_matrix(self) -> list[list[Node]]:
        """``Dm_rs = C_r . (1/2 (M' + G - G^T) C_s + M C_s')`` with ``M = dp/dq'``, ``G = dp/dq`` at fixed q'.

        The momenta are ``p = dK/dq'``. The matrix of :func:`velocity_matrix` is the same for particles, and differs by
        a skew matrix for rigid bodies.
        """
        system, n = self._system, range(len(self._system.q))
        momenta, one = self._rate_slopes(self._kinetic), system.graph.one
        M = [self._moving(self._rate_slopes(p)) for p in momenta]
        G = [self._moving(gradient([p], [one], system.q)) for p in momenta]
        Dq = [[(system.rate(M[i][j]) + (G[i][j] - G[j][i])) / 2 for j in n] for i in n]
        columns = []
        for s in range(len(system.u)):
            C_s = [row[s] for row in system.C]
            rates = [system.rate(c) for c in C_s]
            columns.append(total(matrix_vector(system.graph, Dq, C_s), matrix_vector(system.graph, M, rates)))
        return [[_product(system, r, column) for column in columns] for r in range(len(system.u))]

    def transport(self) -> tuple[Node, ...]:
        system = self._system
        carried = momentum_transport(system, self.momenta())
        slopes = self._slopes(self._kinetic)
        return tuple(x + _product(system, r, slopes) for r, x in enumerate(carried))


def _product(system: System, r: int, vector: Sequence[Node]) -> Node:
    """``C_r . vector`` with column r of C."""
    return system.graph.sum(row[r] * x for row, x in zip(system.C, vector, strict=True))


def add_potential_forces(forces: GeneralizedForces, system: System, potential: Node | None) -> None:
    """Add the forces ``-dV/dq`` of a potential energy."""
    if potential is not None:
        zero = system.graph.zero
        slopes = gradient([potential], [system.graph.one], system.q)
        for rate, slope in zip(system.qdot, slopes, strict=True):
            forces.add((rate, zero, zero), (-slope, zero, zero))


def velocity_matrix(system: System, bodies: Sequence[Body]) -> list[list[Node]]:
    """``Dm_rs = sum m v_r . v_s' + w_r . I . w_s' + w_r . (w x I . w_s)`` (Phillips and Amirouche 2023, (59)).

    Masses and inertias that change with time add ``1/2 (m' v_r . v_s + w_r . I' . w_s)``, so that ``Q' = Dm + Dm^T``.
    """
    n_u = len(system.u)
    matrix = [[system.graph.zero] * n_u for _ in range(n_u)]

    def add(rows: dict[int, Triple], columns: dict[int, Triple], factor: Node) -> None:
        for r, v in rows.items():
            for s, w in columns.items():
                matrix[r][s] = matrix[r][s] + factor * dot(v, w)

    for body in bodies:
        if not body.mass.is_zero:
            motion = system.points.motion(body.point)
            partial, rates = _partials(system, motion.velocity, system.frames.omega(motion.frame, motion.frame))
            add(partial, rates, body.mass)
            add(partial, partial, body.mass_rate / 2)
        if body.inertia is not None:
            frame = body.inertia_frame
            omega = system.frames.omega(body.frame, frame)
            partial, rates = _partials(system, omega, system.frames.omega(frame, frame))
            turned = {s: cross(omega, product(body.inertia, w)) for s, w in partial.items()}
            changes = {s: plus(product(body.inertia, rate), turned[s]) for s, rate in rates.items()}
            add(partial, changes, system.graph.one)
            if body.inertia_rate is not None:
                gained = {s: product(body.inertia_rate, w) for s, w in partial.items()}
                add(partial, gained, system.graph.const(1) / 2)
    return matrix


def _partials(system: System, velocity: Triple, omega: Triple) -> tuple[dict[int, Triple], dict[int, Triple]]:
    """The partial velocities that are not zero and their inertial rates; ``omega`` is that of the frame."""
    partial = system.partial_velocities(velocity)
    return partial, {r: plus(mapped(system.rate, v), cross(omega, v)) for r, v in partial.items()}


def momentum_transport(system: System, momenta: Sequence[Momentum]) -> tuple[Node, ...]:
    """``ehat_r = sum m v_r' . v + w_r' . H``, (n_u,), by one reverse pass.

    At u' = 0 and fixed q', the rate of a velocity is affine in u, and its derivatives with respect to u are the rates
    of the partial velocities. Therefore ehat is the gradient of ``sum p . v' + H . w'`` at fixed momenta.
    """
    graph = system.graph
    held = [graph.input("qdot", i) for i in range(len(system.q))]
    seeds = {system.t: graph.one, **dict(zip(system.q, held, strict=True))}
    seeds |= {r: rate for r, rate in zip(system.r, system.input_rates, strict=True) if rate is not None}
    rate = Tangent(graph, seeds)
    outputs: list[Node] = []
    weights: list[Node] = []
    for frame, velocity, momentum in momenta:
        outputs += (*mapped(rate, velocity), *velocity)
        weights += (*momentum, *cross(momentum, system.frames.omega(frame, frame)))
    if not outputs:
        return tuple(graph.zero for _ in system.u)
    transport = gradient(outputs, weights, system.u)
    return tuple(substitute(transport, dict(zip(held, system.qdot, strict=True))))
