"""Checks that set velocities, angular velocities and accelerations agree with the rates of positions and orientations.

A velocity that contradicts the position is the most common mistake in Kane's method; the equations can still be
integrated. Both are compared numerically, at random states that satisfy the kinematics and the constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import numpy as np
import sympy
from sympy.physics.mechanics import RigidBody
from sympy.physics.vector import Vector, dynamicsymbols

from kanegen.arrays import Array
from kanegen.errors import DerivationError, warn_user
from kanegen.graph.decisions import RELATIVE_ZERO
from kanegen.model.checks.motions import Moment, Motions, Snapshot, snapshots
from kanegen.model.description import SystemDescription
from kanegen.model.expressions import (
    atoms,
    base_symbol,
    derivative_order,
    dyadic_expressions,
    dyadic_frames,
    vector_expressions,
    vector_frames,
)
from kanegen.model.geometry import is_ground, path, steps
from kanegen.model.records import POSITION

CONTRADICTION = 1e-6
"""Two velocities contradict each other if they differ by more than this, relative to their components and to the terms
that these are sums of. Rounding errors and residuals of the states are far smaller; a wrong expression gives far more
at random states."""
ROUNDING = 1e-30
"""Differences below this fraction of the largest value of an expression are rounding errors of the 50 digits."""


@dataclass(frozen=True)
class Claim:
    """The claim that a ``given`` vector equals the vector that ``follows`` from others; both are read at a snapshot.

    ``allowed`` decides whether a difference is legal. The error begins with ``message``, calls the second vector
    ``rate``, and quotes the two ``texts``. The snapshots must contain ``expressions``, in which ``order`` is the
    highest time derivative of a position.
    """

    message: str
    rate: str
    texts: Callable[[], tuple[Any, Any]]
    given: Callable[[Snapshot], Array]
    follows: Callable[[Snapshot], Array]
    allowed: Callable[[Snapshot, Array], bool]
    expressions: tuple[Any, ...]
    order: int = 1


def motion_problems(model: SystemDescription) -> list[str]:
    """Contradictions between set velocities, angular velocities and accelerations and the positions of a model.

    Issues a :class:`ModelWarning` if no state is found at which they can be compared.
    """
    claims = [*_velocities(model)]
    for find in (_angular_claim, _accelerations):
        claims += [claim for body in model.bodies for claim in find(model, body)]
    if not claims and not model.implied_constraints:
        return []
    norms = [sympy.Add(*(e**2 for e in group), -1) for group in model.euler_parameters]
    motions = Motions(model, (*model.constraints_on(POSITION), *norms, *model.implied_constraints))
    try:
        states = motions.states(order=max((claim.order for claim in claims), default=1))
        expressions = (expr for claim in claims for expr in claim.expressions)
        taken = snapshots(model.geometry, motions, states, expressions)
        problems = [*_not_implied(model, motions)] if model.implied_constraints else []
    except DerivationError:
        # If an expression that cannot be lowered is needed, the derivation raises the error.
        return []
    if not taken:
        warn_user(
            f"the velocities of {model.name!r} were not compared with its positions, because no state was found that "
            "satisfies its constraints: give parameters=, or pass check_kinematics=False"
        )
    return [*problems, *(problem for claim in claims for problem in _contradiction(model, claim, taken))]


def _not_implied(model: SystemDescription, motions: Motions) -> Iterator[str]:
    follows = motions.rates_follow(len(model.constraints_on(POSITION)) + len(model.euler_parameters))
    for k, (phi, kept) in enumerate(zip(model.implied_constraints, follows or (), strict=False)):
        if not kept:
            yield (
                f"implied_constraints[{k}] ({phi}) is not implied, because its rate does not follow from the velocity "
                "constraints: move it to holonomic_constraints"
            )


def _contradiction(model: SystemDescription, claim: Claim, taken: Sequence[Moment]) -> Iterator[str]:
    different = [(claim.given(at.exact), claim.follows(at.exact)) for at in taken if _differ(claim, at)]
    if not different or all(claim.allowed(at.exact, claim.given(at.exact) - claim.follows(at.exact)) for at in taken):
        return
    given, follows = map(_numbers, different[0])
    text, expected = (shorten(str(vector), 300, placeholder=" ...") for vector in claim.texts())
    yield (
        f"{claim.message}: it is {text}, while {claim.rate} is {expected}. At a random state that satisfies the "
        f"constraints, their values are {given} and {follows} (components in {model.frame}). Correct one of them, or "
        "pass check_kinematics=False"
    )


def _differ(claim: Claim, at: Moment) -> bool:
    """Whether the two vectors of a claim differ; vectors without a value (NaN) are not compared."""
    given, follows = claim.given(at.exact), claim.follows(at.exact)
    difference = given - follows
    size = max(float(np.abs(given).max()), float(np.abs(follows).max()))
    if not np.abs(difference).max() > max(CONTRADICTION * size, ROUNDING * at.exact.largest):
        return False
    changes = [np.abs(claim.given(other) - claim.follows(other) - difference).max() for other in at.disturbed]
    return bool(np.abs(difference).max() > CONTRADICTION / RELATIVE_ZERO * max(changes))


def _numbers(values: Array) -> str:
    return f"({', '.join(f'{value:.6g}' for value in values)})"


def readable(model: SystemDescription, vectors: Sequence[Any], frames: Iterable[Any] = ()) -> tuple[Any, ...] | None:
    """The components of vectors, and the direction cosines of their frames and of ``frames``.

    None if a frame is not oriented or the rate of a symbol is unknown, so that nothing can be compared.
    """
    parents = model.geometry.parents
    written = [vector for vector in vectors if vector != 0]
    needed = {*frames, *(frame for vector in written for frame in vector_frames(vector))}
    if not needed <= set(parents):
        return None
    pairs = {pair for frame in needed for pair in path(parents, frame)}
    expressions = [expr for vector in written for expr in vector_expressions(vector)]
    expressions += [expr for parent, child in pairs for expr in child._dcm_dict[parent]]
    orders = dict.fromkeys(model.coordinates, 2) | dict.fromkeys(model.all_speeds, 1)
    orders |= dict.fromkeys((*model.auxiliary_speeds, *model.parameters), 1)
    orders |= {item.symbol: 1 for item in model.inputs if item.rate is not None}
    known = all(derivative_order(atom) <= orders.get(base_symbol(atom), -1) for atom in atoms(expressions))
    return tuple(expressions) if known else None


def _velocities(model: SystemDescription) -> Iterator[Claim]:
    """Compares set velocities of mass centers, or of the points they are positioned from, with rates of positions."""
    frame, seen = model.frame, set()
    for body in model.bodies:
        route = model.geometry.routes[body.masscenter]
        if is_ground(body, frame) or route.source in seen:
            continue
        seen.add(route.source)
        set_before = [k for k, point in enumerate(route.along[:-1]) if frame in point._vel_dict]
        if set_before:
            yield from _velocity_claim(model, body, route.along[set_before[-1] :])


def _velocity_claim(model: SystemDescription, body: Any, chain: Sequence[Any]) -> Iterator[Claim]:
    """Compares the set velocities of the last and the first point of a chain with the rate of the position."""
    base, point, frame = chain[0], chain[-1], model.frame
    pairs = steps(chain)
    before, after = base._vel_dict[frame], point._vel_dict[frame]
    what = f"mass center {point}" if point is body.masscenter else f"point {point}, which locates its mass center,"
    carriers = _frames_of_bodies(model, body)
    turns = [pair for carrier in carriers for pair in path(model.geometry.rate_parents, carrier)]
    turning = [child._ang_vel_dict[parent] for parent, child in turns]
    expressions = readable(model, [before, after, *(a._pos_dict[b] for a, b in pairs), *turning])
    if expressions is None:
        return

    def allowed(snapshot: Snapshot, difference: Array) -> bool:
        """A point of a rolling body moves on a circle about the contact point, which is momentarily at rest."""
        relative = snapshot.vector(after)[0] - snapshot.vector(before)[0]
        rolled = (np.cross(snapshot.omega(carrier)[0], snapshot.offset(pairs)[0]) for carrier in carriers)
        limit = CONTRADICTION * np.abs(relative).max()
        return any(np.abs(relative - expected).max() <= limit for expected in rolled)

    yield Claim(
        f"body {body.name}: the velocity of {what} in {frame} contradicts the position from {base}",
        "the rate of the position",
        lambda: (after, before + sum((point._pos_dict[other] for point, other in pairs), Vector(0)).dt(frame)),
        lambda snapshot: snapshot.vector(after)[0],
        lambda snapshot: snapshot.vector(before)[0] + snapshot.offset(pairs)[1],
        allowed,
        expressions,
    )


def _frames_of_bodies(model: SystemDescription, body: Any) -> list[Any]:
    """The frames in which a rolling mass center can be fixed: that of its rigid body; for a particle, those of all."""
    bodies = [body] if isinstance(body, RigidBody) else model.bodies
    frames = (other.frame for other in bodies if isinstance(other, RigidBody))
    return [frame for frame in dict.fromkeys(frames) if frame in model.geometry.rate_parents]


def _angular_claim(model: SystemDescription, body: Any) -> Iterator[Claim]:
    """Compares the angular velocity of a rigid body with the rate of its orientation, if this is known."""
    if not isinstance(body, RigidBody) or is_ground(body, model.frame):
        return
    frame, dyadic = body.frame, body.inertia[0]
    turning = [child._ang_vel_dict[parent] for parent, child in path(model.geometry.rate_parents, frame)]
    expressions = readable(model, turning, [frame, *dyadic_frames(dyadic)])
    if expressions is None:
        return

    def allowed(snapshot: Snapshot, difference: Array) -> bool:
        """A spin about an axis of symmetry does not change the inertia, so the orientation need not contain it."""
        x, y, z = difference
        spin = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        inertia = snapshot.dyadic(dyadic)
        change = spin @ inertia - inertia @ spin
        return bool(np.abs(change).max() <= CONTRADICTION * np.abs(difference).max() * np.abs(inertia).max())

    yield Claim(
        f"body {body.name}: the angular velocity of frame {frame} in {model.frame} contradicts its orientation",
        "the rate of the orientation",
        lambda: (frame.ang_vel_in(model.frame), _turning_text(frame, model.frame)),
        lambda snapshot: snapshot.omega(frame)[0],
        lambda snapshot: snapshot.turning(frame),
        allowed,
        (*expressions, *dyadic_expressions(dyadic)),
    )


def _turning_text(frame: Any, inertial: Any) -> Any:
    """The angular velocity that follows from the direction cosines, as a SymPy vector in the frame itself."""
    cosines = inertial.dcm(frame)
    spin = (cosines.T * cosines.diff(dynamicsymbols._t)).doit()
    return spin[2, 1] * frame.x + spin[0, 2] * frame.y + spin[1, 0] * frame.z


def _accelerations(model: SystemDescription, body: Any) -> Iterator[Claim]:
    """Compares set accelerations with rates of velocities: KanesMethod uses them, and ``a2pt_theory`` sets them."""
    frame, point = model.frame, body.masscenter
    if frame in point._acc_dict and frame in point._vel_dict:
        what = f"body {body.name}: the acceleration set for its mass center {point} in {frame} is not the rate of its "
        yield from _rate_claim(model, what + "velocity", point._acc_dict[frame], point._vel_dict[frame])
    if isinstance(body, RigidBody) and frame in body.frame._ang_acc_dict:
        what = f"body {body.name}: the angular acceleration set for frame {body.frame} in {frame} is not the rate of "
        given, omega = body.frame._ang_acc_dict[frame], body.frame.ang_vel_in(frame)
        yield from _rate_claim(model, what + "its angular velocity", given, omega)


def _rate_claim(model: SystemDescription, message: str, given: Any, vector: Any) -> Iterator[Claim]:
    """The claim that ``given`` is the rate of ``vector``."""
    expressions = readable(model, [given, vector])
    if expressions is not None:
        yield Claim(
            message,
            "that rate",
            lambda: (given, vector.dt(model.frame)),
            lambda snapshot: snapshot.vector(given)[0],
            lambda snapshot: snapshot.vector(vector)[1],
            lambda snapshot, difference: False,
            expressions,
            order=2,
        )
