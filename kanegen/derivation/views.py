"""The equations of motion by other principles: Lagrange, Gibbs and Appell, Hamilton, and the balance of power.

Each function uses only the velocities and the energy of the model: accelerations are full time derivatives of
velocities, partial velocities come from forward mode, inertia forces from one scalar function. The package
:mod:`kanegen.verification` compares the results with Kane's equations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sympy import Derivative
from sympy.physics.vector import dynamicsymbols

from kanegen.derivation.equations import Equations
from kanegen.derivation.forces.generalized import remainder
from kanegen.derivation.forms import total
from kanegen.derivation.geometry.frames import Frame
from kanegen.derivation.geometry.system import System
from kanegen.derivation.geometry.vectors import Triple, cross, dot, mapped, null, plus, scaled
from kanegen.derivation.inertia.bodies import Body, Force, lower_loads, product
from kanegen.graph import Node, Tangent, gradient, substitute

PI = "pi"
"""Input array of the momenta dK/dq' in :class:`Lagrange`."""


@dataclass(frozen=True)
class Lagrange:
    """``C^T (d/dt dK/dq' - dK/dq)``, (n_u,), in terms of the momenta ``pi = dK/dq'``, inputs of array :data:`PI`.

    ``momenta`` (n_u,) is dK/du at fixed q. Every pi with ``C^T pi = momenta`` gives the same equations; there are
    several if the coordinates have invariants (n_q > n_u).
    """

    momenta: tuple[Node, ...]
    forces: tuple[Node, ...]


def lagrange(equations: Equations) -> Lagrange:
    """Lagrange's equations in quasi-velocities (Boltzmann 1902, Hamel 1904), from the kinetic energy K(q, u, t) alone.

    With ``u(q, q', t)`` from ``q' = C u + D`` and pi as above, ``dK/dq_j`` at fixed q' is ``dK/dq_j`` at fixed u less
    ``pi . dq'/dq_j``, and ``C^T pi' = d/dt (C^T pi) - C'^T pi``.
    """
    system, graph = equations.system, equations.graph
    (kinetic,) = equations.kinetic_energy.nodes
    momenta = tuple(gradient([kinetic], [graph.one], system.u))
    pi = [graph.input(PI, i) for i in range(len(system.q))]
    slopes = gradient([kinetic, *system.qdot], [graph.one, *(-x for x in pi)], system.q)
    forces = []
    for r, momentum in enumerate(momenta):
        column = [row[r] for row in system.C]
        turning = graph.sum(x * system.full_rate(c) for x, c in zip(pi, column, strict=True))
        pulled = graph.dot(column, slopes)
        forces.append(system.full_rate(momentum) - turning - pulled)
    return Lagrange(momenta, tuple(forces))


def gibbs_appell(equations: Equations) -> tuple[Node, ...]:
    """``dS/du'``, (n_u,), of ``S = sum 1/2 m a.a + 1/2 alpha.I.alpha + (w x I.w).alpha`` (Gibbs 1879, Appell 1899).

    Masses and inertias that change with time add the terms ``m' v.a + (I'.w).alpha``.
    """
    system, graph = equations.system, equations.graph
    S = graph.sum(term for body in equations.bodies for term in _gibbs_terms(system, body))
    return tuple(gradient([S], [graph.one], system.udot))


def _gibbs_terms(system: System, body: Body) -> Iterator[Node]:
    if not body.mass.is_zero:
        a = acceleration(system, body)
        yield body.mass * dot(a, a) / 2
        yield body.mass_rate * dot(system.points.motion(body.point).velocity, a)
    if body.inertia is not None:
        omega, alpha = rotation(system, body)
        spin = product(body.inertia, omega)
        yield dot(alpha, product(body.inertia, alpha)) / 2 + dot(cross(omega, spin), alpha)
        if body.inertia_rate is not None:
            yield dot(alpha, product(body.inertia_rate, omega))


def acceleration(system: System, body: Body) -> Triple:
    """Acceleration of the mass center including u', components in the frame of its velocity, m/s^2."""
    motion = system.points.motion(body.point)
    return _full_rate(system, motion.velocity, motion.frame)


def rotation(system: System, body: Body) -> tuple[Triple, Triple]:
    """Angular velocity and angular acceleration including u', components in the frame of the inertia."""
    omega = system.frames.omega(body.frame, body.inertia_frame)
    return omega, _full_rate(system, omega, body.inertia_frame)


def _full_rate(system: System, a: Triple, frame: Frame) -> Triple:
    """Inertial time derivative of a vector with components ``a`` in ``frame``."""
    return plus(mapped(system.full_rate, a), cross(system.frames.omega(frame, frame), a))


@dataclass(frozen=True)
class Hamilton:
    """The terms of ``H(q, p, t) = 1/2 (p - N) . Q^-1 (p - N) - R + V``, for models with u = q'.

    ``Q`` (n_u, n_u) and ``N`` (n_u,) are second and first derivatives of the kinetic energy, ``R`` is K at u = 0, ``V``
    the potential energy (zero where unknown), ``forces`` (n_u,) the active forces that do not follow from V.
    """

    Q: tuple[tuple[Node, ...], ...]
    N: tuple[Node, ...]
    R: Node
    V: Node
    forces: tuple[Node, ...]


def speeds_are_rates(equations: Equations) -> bool:
    """Whether u = q'."""
    return equations.system.qdot == equations.system.u


def hamilton(equations: Equations, potential: Node | None) -> Hamilton:
    """The parts of the Hamiltonian of a model with u = q', from its energies alone."""
    system, graph = equations.system, equations.graph
    (kinetic,) = equations.simplified([equations.inertia.energy()])
    momenta = gradient([kinetic], [graph.one], system.u)
    Q = tuple(tuple(partial(momentum) for partial in system.partials) for momentum in momenta)
    V = graph.zero if potential is None else potential
    slopes = gradient([V], [graph.one], system.q)
    forces = tuple(total(active_forces(equations), slopes))
    return Hamilton(Q, tuple(system.at_rest(momenta)), system.at_rest([kinetic])[0], V, forces)


def active_forces(equations: Equations) -> tuple[Node, ...]:
    """Generalized active forces ``F_r = sum v_r . R + w_r . M``, weights included, (n_u,), by forward mode."""
    return tuple(total(*applied_forces(equations)))


def applied_forces(equations: Equations) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """Generalized forces of the user's loads, and of ``gravity`` and the potential energy of L, (n_u,) each."""
    system, graph = equations.system, equations.graph
    frames = system.frames
    loads: list[tuple[Triple, Triple]] = []
    for load in lower_loads(system):
        if isinstance(load, Force):
            motion = system.points.motion(load.point)
            loads.append((motion.velocity, frames.express(load.parts, motion.frame)))
        else:
            home = frames.inertial if frames.is_oriented(load.frame) else load.frame
            loads.append((frames.omega(load.frame, home), frames.express(load.parts, home)))
    weights: list[tuple[Triple, Triple]] = []
    if system.gravity is not None:
        for body in equations.bodies:
            motion = system.points.motion(body.point)
            gravity = frames.express({frames.inertial: system.gravity}, motion.frame)
            weights.append((motion.velocity, scaled(body.mass, gravity)))
    first, second = (
        tuple(graph.sum(dot(mapped(partial, v), R) for v, R in pairs) for partial in system.partials)
        for pairs in (loads, weights)
    )
    potential = equations.inertia.potential
    if potential is not None:
        slopes = gradient([potential], [graph.one], system.q)
        second = tuple(x - graph.dot(slopes, [row[r] for row in system.C]) for r, x in enumerate(second))
    return first, second


RATES = "qdot"
"""Input array of the rates q' in :func:`lagrangian`."""


def lagrangian(equations: Equations, with_potential: bool = False) -> Node:
    """L(q, q', t) of the model, plus its potential energy if that is wanted and given, as a function of q' (RATES)."""
    system, model, t = equations.system, equations.model, dynamicsymbols._t
    symbols = {Derivative(q, t): system.graph.input(RATES, i) for i, q in enumerate(model.coordinates)}
    given = model.potential_energy if with_potential and model.potential_energy is not None else 0
    return system.lower_with(model.lagrangian + given, symbols)


@dataclass(frozen=True)
class PowerBalance:
    """``dK/dt`` including u', and ``sum v_t . (m v)' + w_t . H'``, the power of inertia forces on prescribed motion, W.

    Masses and inertias that change with time reduce this power by ``1/2 (m' v.v + w.I'.w)``, because only half of the
    power of ``m' v`` and ``I'.w`` becomes kinetic energy.
    """

    kinetic_rate: Node
    prescribed: Node


def power_balance(equations: Equations) -> PowerBalance:
    """The terms without forces of the power balance ``dK/dt = u . (F + Fc) + sum v_t . (m v)' + w_t . H'``."""
    if not equations.bodies:
        return _balance_of_function(equations)
    system, graph = equations.system, equations.graph
    terms = []
    for body in equations.bodies:
        if not body.mass.is_zero:
            velocity = system.points.motion(body.point).velocity
            held = remainder(system, velocity)
            terms.append(body.mass * dot(held, acceleration(system, body)))
            terms.append(body.mass_rate * (dot(held, velocity) - dot(velocity, velocity) / 2))
        if body.inertia is not None:
            omega, alpha = rotation(system, body)
            momentum_rate = plus(product(body.inertia, alpha), cross(omega, product(body.inertia, omega)))
            terms.append(dot(remainder(system, omega), momentum_rate))
            if body.inertia_rate is not None:
                gained = product(body.inertia_rate, omega)
                terms.append(dot(remainder(system, omega), gained) - dot(omega, gained) / 2)
    return PowerBalance(system.full_rate(equations.kinetic_energy.nodes[0]), graph.sum(terms))


def _balance_of_function(equations: Equations) -> PowerBalance:
    """The same for the K(q, q', t) of a Lagrangian without bodies; K is L itself if the potential energy is unknown.

    With ``E = d/dt p - K_q`` and ``p = K_q'``, ``d/dt (p . q' - K) = E . q' - K_t`` at fixed q and q' in K_t. The
    force of ``q' = C u + D`` is ``C^T E = F + Fc``, so that W is ``d/dt (2 K - p . q') + D . E - K_t``.
    """
    system, graph = equations.system, equations.graph
    K, one = lagrangian(equations, with_potential=True), equations.graph.one
    rates = [graph.input(RATES, i) for i in range(len(system.q))]
    seeds = {node: rate for node, rate in system.moving.items() if node not in system.q}
    n, nodes = len(rates), [*gradient([K], [one], rates), *gradient([K], [one], system.q), K, Tangent(graph, seeds)(K)]
    *slopes, kinetic, prescribed = substitute(nodes, dict(zip(rates, system.qdot, strict=True)))
    E = [system.full_rate(p) - slope for p, slope in zip(slopes[:n], slopes[n:], strict=True)]
    rest = system.full_rate(2 * kinetic - graph.dot(slopes[:n], system.qdot))
    return PowerBalance(system.full_rate(kinetic), rest + graph.dot(system.D, E) - prescribed)


@dataclass(frozen=True)
class Placed:
    """The derived velocity of a point and the rate of its position, in inertial components.

    ``origin`` names the point from which the position is measured; if there is none, it is None and ``rate`` is zero.
    ``rolled`` is the velocity by rigid rotation about the origin, as for a body that rolls on its contact point.
    """

    what: str
    origin: str | None
    velocity: Triple
    rate: Triple
    rolled: Triple | None


def placed_points(equations: Equations) -> Iterator[Placed]:
    """The mass centers: velocity, and rate of the position from a fixed point."""
    system = equations.system
    frames, inertial = system.frames, system.frames.inertial
    for body in equations.bodies:
        if body.mass.is_zero:
            continue
        motion = system.points.motion(body.point)
        velocity = frames.express({motion.frame: motion.velocity}, inertial)
        origin = equations.model.geometry.routes[body.point].along[0]
        if origin._vel_dict[inertial] != 0:
            yield Placed(body.point.name, None, velocity, null(system.graph), None)
            continue
        offset = frames.express(system.points.position(body.point), inertial)
        turns = body.frame is not None and frames.is_oriented(body.frame)
        rolled = None if not turns else cross(frames.omega(body.frame, inertial), offset)
        yield Placed(body.point.name, origin.name, velocity, mapped(system.rate, offset), rolled)


@dataclass(frozen=True)
class Oriented:
    """The derived angular velocity of a frame and that of its axes, components in ``inertia_frame``.

    ``inertia`` has the six components of the tensor. The angular velocities may differ by a spin about its axis of
    symmetry.
    """

    what: str
    omega: Triple
    rate: Triple
    inertia: tuple[Node, ...]


def oriented_frames(equations: Equations) -> Iterator[Oriented]:
    """The frames of rigid bodies: angular velocity, and that of their direction cosines."""
    system, graph, zero, one = equations.system, equations.graph, equations.graph.zero, equations.graph.one
    frames, inertial = system.frames, system.frames.inertial
    units: tuple[Triple, ...] = ((one, zero, zero), (zero, one, zero), (zero, zero, one))
    for body in equations.bodies:
        if body.inertia is None or body.frame is None or not frames.is_oriented(body.frame):
            continue
        axes = [frames.express({body.frame: unit}, inertial) for unit in units]
        rates = [mapped(system.rate, axis) for axis in axes]
        # The matrix sum_k rate_k axis_k^T is that of the cross product with the angular velocity.
        turning = [graph.sum(rates[k][i] * axes[k][j] for k in range(3)) for i, j in ((2, 1), (0, 2), (1, 0))]
        rate = frames.express({inertial: (turning[0], turning[1], turning[2])}, body.inertia_frame)
        yield Oriented(body.frame.name, frames.omega(body.frame, body.inertia_frame), rate, body.inertia)
