"""Energies and momenta of the unconstrained system."""

from __future__ import annotations

from collections.abc import Sequence

from kanegen.derivation.forces.power import Power, body_momenta
from kanegen.derivation.geometry.points import total_offset
from kanegen.derivation.geometry.system import System
from kanegen.derivation.geometry.vectors import dot
from kanegen.derivation.inertia.bodies import Body
from kanegen.errors import DerivationError
from kanegen.graph import Node


def kinetic_energy(system: System, bodies: Sequence[Body]) -> Node:
    """``K = 1/2 sum m v.v + w.I.w``, J."""
    graph = system.graph
    twice = graph.sum(dot(velocity, momentum) for body in bodies for velocity, momentum in body_momenta(system, body))
    return twice / 2


def potential_energy(system: System, bodies: Sequence[Body]) -> Node:
    """The user's potential energy and that of uniform gravity, J.

    Raises
    ------
    DerivationError
        Without ``potential_energy`` and ``gravity``, or where gravity acts on a point of unknown position.
    """
    model = system.model
    if not model.has_potential:
        raise DerivationError(
            f"model {model.name!r} has no potential energy: give Model(potential_energy=...) or Model(gravity=...); it "
            f"is never guessed from the loads"
        )
    total = system.graph.zero if model.potential_energy is None else system.lower(model.potential_energy)
    if system.gravity is not None:
        for body in bodies:
            if not body.mass.is_zero:
                total = total - body.mass * _along_gravity(system, body)
    return total


def _along_gravity(system: System, body: Body) -> Node:
    """``g . r`` with the position r of the mass center from the fixed point it is placed from."""
    place = system.points.placement(body.point)
    if not system.points.is_at_rest(place.base):
        raise DerivationError(
            f"the potential energy of gravity needs the position of {body.name}: point {body.point.name} is not "
            f"positioned from a fixed point (its velocity was set instead); give positions, or put the weight into "
            f"loads and give potential_energy"
        )
    frames = system.frames
    parts = frames.express(total_offset(place.segments), frames.inertial)
    assert system.gravity is not None
    return dot(system.gravity, parts)


def momentum(system: System, bodies: Sequence[Body], speeds: Sequence[Node]) -> tuple[Node, ...]:
    """Generalized momenta conjugate to ``speeds``; ``Q u + N`` for all speeds of the system."""
    power = Power(system)
    power.add_momentum(bodies, at_rest=False)
    return power.generalized(speeds)


def momentum_remainder(system: System, bodies: Sequence[Body]) -> tuple[Node, ...]:
    """``N_r = sum m v_r . v_t + w_r . I . w_t``, (n_u,)."""
    power = Power(system)
    power.add_momentum(bodies, at_rest=True)
    return power.generalized(system.u)
