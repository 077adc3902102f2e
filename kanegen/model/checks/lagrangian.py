"""Checks of a model's Lagrangian: its symbols, its dependence on the rates, and that it belongs to the bodies.

With bodies, ``K - L`` must be a potential energy: it must not depend on the speeds, and its slopes must be those of the
potential energy that the user gave. Both are compared numerically, at random states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from sympy.physics.mechanics import RigidBody

from kanegen.errors import DerivationError, warn_user
from kanegen.graph import Tangent, evaluate, gradient
from kanegen.model.checks.motions import Motions, Snapshot, Values, snapshots
from kanegen.model.checks.velocities import CONTRADICTION, readable
from kanegen.model.description import CONSTRAINT_KINDS, SystemDescription
from kanegen.model.expressions import derivatives, dyadic_expressions, dyadic_frames, symbol_name
from kanegen.model.geometry import is_ground, path, position_path, steps


def lagrangian_problems(model: SystemDescription) -> Iterator[str]:
    """What a Lagrangian must contain, and what it cannot be combined with."""
    if model.lagrangian is None:
        return
    if not derivatives(model.lagrangian, model.coordinates, 1):
        yield f"lagrangian ({model.lagrangian}) contains no rate q' of a coordinate: expected L(q, q', t)"
    if model.auxiliary_speeds:
        yield (
            "auxiliary_speeds cannot be combined with lagrangian, which contains no velocities along them: use Kane's "
            "method, without lagrangian, or reactions"
        )
    if not model.bodies and model.gravity is not None:
        yield "gravity= needs bodies=: a Lagrangian does not contain their weights separately"
    for name in () if model.bodies else model.reactions:
        yield f"reactions[{name!r}] needs bodies=: a Lagrangian does not contain the forces on a single body"


def lagrangian_contradictions(model: SystemDescription) -> list[str]:
    """What is wrong with the values of L: L is not quadratic in q', or differs from K - V of the bodies.

    Issues a :class:`ModelWarning` if no state is found at which L and the bodies can be compared.
    """
    if model.lagrangian is None:
        return []
    norms = [sympy.Add(*(e**2 for e in group), -1) for group in model.euler_parameters]
    motions = Motions(model.changed(**{kind.field: () for kind in CONSTRAINT_KINDS}), norms)
    try:
        states = motions.states(count=2)
        problems = [*_not_quadratic(model, motions, states)]
        return problems or [*_compared(model, motions, states)] if model.bodies else problems
    except (DerivationError, ValueError, ArithmeticError):
        # An expression cannot be lowered, so that the derivation raises the error, or has no value at these states.
        return []


def _not_quadratic(model: SystemDescription, motions: Motions, states: Sequence[Values]) -> Iterator[str]:
    """Coordinates on whose rates ``d^2L/dq'^2`` depends."""
    graph, rates = motions.graph, motions.nodes["qdot"]
    momenta = gradient([motions.lower(model.lagrangian)], [graph.one], rates)
    M = [entry for p in momenta for entry in gradient([p], [graph.one], rates)]
    for q, rate in zip(model.coordinates, rates, strict=True):
        slopes = [*map(Tangent(graph, {rate: graph.one}), M)]
        for state in states:
            values = np.array(evaluate([*slopes, *M], state))
            if np.abs(values[: len(M)]).max() > CONTRADICTION * np.abs(values[len(M) :]).max():
                yield (
                    f"the Lagrangian is not quadratic in {symbol_name(q)}': its second derivatives with respect to "
                    f"the rates depend on it; expected L = K - V with a kinetic energy quadratic in q', and loads for "
                    f"other forces"
                )
                break


@dataclass(frozen=True)
class _Energies:
    """Kinetic energy of the bodies, L, and the potential energy that the user gave (0 if none), J, at one state."""

    K: float
    L: float
    V: float

    @property
    def potential(self) -> float:
        """The potential energy that follows from the bodies and L."""
        return self.K - self.L

    def differs(self, other: _Energies, a: float, b: float) -> bool:
        """Whether a and b differ by more than rounding errors of the energies."""
        sizes = (abs(x) for item in (self, other) for x in (item.K, item.L, item.V))
        return abs(a - b) > CONTRADICTION * max(sizes)


def _compared(model: SystemDescription, motions: Motions, states: Sequence[Values]) -> Iterator[str]:
    expressions, n = _expressions(model), len(model.speeds)
    speeds: list[dict[int, float]] = [{}]
    if states:
        speeds += [{r: u} for r, u in enumerate(states[0]["u"])] + [dict(enumerate(states[0]["u"]))]
    at = [_with_speeds(motions, states, k, {}) for k in range(1, len(states))]
    at += [_with_speeds(motions, states, 0, u) for u in speeds if states]
    listed = [state for state in at if state is not None]
    taken = snapshots(model.geometry, motions, listed, expressions or ())
    if expressions is None or len(taken) != n + 3:
        warn_user(
            f"the Lagrangian of {model.name!r} was not compared with its bodies, because no states were found at which "
            "both are known: give parameters=, and orient the frames of the bodies"
        )
        return
    second, first, *moving = [_energies(model, moment.exact) for moment in taken]
    for u, energies in zip(speeds[1:], moving, strict=True):
        if energies.differs(first, energies.potential, first.potential):
            values = ", ".join(f"{symbol_name(model.speeds[r])} = {x:.6g}" for r, x in u.items())
            yield (
                f"the bodies contradict the Lagrangian: their kinetic energy less L depends on the speeds. At a random "
                f"state it is {energies.potential:.6g} for {values}, and {first.potential:.6g} for zero speeds; "
                "expected L = K - V(q, t) with the kinetic energy K of the bodies"
            )
            return
    yield from _potential_problems(model, first, second)


def _with_speeds(motions: Motions, states: Sequence[Values], k: int, u: dict[int, float]) -> Values | None:
    """State k with the speeds u (others zero), and with the time, inputs, states and parameters of the first one."""
    shared = {name: states[0][name] for name in ("t", "r", "rdot", "p", "s")}
    return motions.with_speeds(states[k] | shared, [u.get(r, 0.0) for r in range(len(states[k]["u"]))])


def _potential_problems(model: SystemDescription, first: _Energies, second: _Energies) -> Iterator[str]:
    change, given = first.potential - second.potential, first.V - second.V
    known = model.potential_energy is not None or model.gravity is not None
    if known and first.differs(second, change, given):
        yield (
            f"the potential energy contradicts the Lagrangian: between two random configurations, potential_energy= "
            f"(by default that of the bodies) and gravity= change by {given:.6g}, but K - L of the bodies changes by "
            f"{change:.6g}. Give all of the potential energy in L, or none of it"
        )
    placed = model.gravity is not None and model.potential_energy is None
    if model.reactions and not placed and first.differs(second, change, 0.0):
        yield (
            f"reactions ({', '.join(model.reactions)}): the points on which the forces of the potential energy in the "
            "Lagrangian act are unknown. Give gravity= for the weights, and move other forces from L into loads"
        )


# -- energies of the bodies -----------------------------------------------------------------------------------


def _moving_bodies(model: SystemDescription) -> list[Any]:
    return [body for body in model.bodies if not is_ground(body, model.frame)]


def _expressions(model: SystemDescription) -> tuple[Any, ...] | None:
    """The expressions that determine the energies; None if a frame is not oriented."""
    geometry = model.geometry
    vectors = [] if model.gravity is None else [model.gravity]
    frames, scalars = set[Any](), [model.lagrangian]
    scalars += [] if model.potential_energy is None else [model.potential_energy]
    for body in _moving_bodies(model):
        route = geometry.routes[body.masscenter]
        vectors += [route.source._vel_dict[model.frame]]
        vectors += [point._pos_dict[other] for point, other in _positions(route)]
        scalars.append(sympy.sympify(body.mass))
        if isinstance(body, RigidBody):
            dyadic, about = body.inertia
            frames |= {body.frame, *dyadic_frames(dyadic)}
            scalars += dyadic_expressions(dyadic)
            vectors += [point._pos_dict[other] for point, other in _arm(body, about)]
    frames |= {frame for vector in vectors if vector != 0 for _, frame in vector.args}
    if not frames <= {*geometry.rate_parents}:
        return None
    turning = [pair for frame in frames for pair in path(geometry.rate_parents, frame)]
    read = readable(model, [*vectors, *(child._ang_vel_dict[parent] for parent, child in turning)], frames)
    return None if read is None else (*read, *scalars)


def _positions(route: Any) -> list[tuple[Any, Any]]:
    return [*steps(route.along), *steps(route.beyond)]


def _arm(body: Any, about: Any) -> list[tuple[Any, Any]]:
    """The positions from the point of an inertia to the mass center."""
    return steps(position_path(about, body.masscenter) or [])


def _energies(model: SystemDescription, at: Snapshot) -> _Energies:
    K, V = 0.0, 0.0 if model.potential_energy is None else at.number(model.potential_energy)
    for body in _moving_bodies(model):
        route, mass = model.geometry.routes[body.masscenter], at.number(sympy.sympify(body.mass))
        velocity = at.vector(route.source._vel_dict[model.frame])[0]
        velocity = velocity + sum(at.carried(point._pos_dict[other]) for point, other in steps(route.beyond))
        K += mass * float(velocity @ velocity) / 2
        if isinstance(body, RigidBody):
            dyadic, about = body.inertia
            arm, omega = at.offset(_arm(body, about))[0], at.omega(body.frame)[0]
            central = at.dyadic(dyadic) - mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
            K += float(omega @ central @ omega) / 2
        if model.gravity is not None:
            V -= mass * float(at.vector(model.gravity)[0] @ at.offset(_positions(route))[0])
    return _Energies(K, at.number(model.lagrangian), V)
