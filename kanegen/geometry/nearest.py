"""Closest points of two surfaces, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import sympy

from kanegen.errors import ModelError
from kanegen.geometry.directions import components, given_tangents, moving_tangents
from kanegen.geometry.seats import Seat
from kanegen.graph.functions import CLOSEST, Domain, Function

LEAST: Final = 1e-6
"""Sines and relative distances below which closest points are not unique: a disk that lies flat, equal centers."""


@dataclass(frozen=True, eq=False)
class Limited(Function):
    """A function with a domain: a run ends where its argument would leave it, and names the contact."""

    domain: Domain | None = field(default=None, kw_only=True)

    @property
    def domains(self) -> tuple[Domain | None, ...]:
        """The interval of the argument."""
        return (self.domain,)

    @property
    def content(self) -> str:
        """Text that changes whenever the generated code would."""
        return repr((super().content, self.domain))


def apart(value: Any, contact: str, reason: str) -> tuple[Any, Any]:
    """A number without unit that is zero where closest points are not unique: for gaps, and as a divisor.

    The first result has its value everywhere, so that gaps can be evaluated beyond a contact that is about to be found.
    Its derivatives and the second result must not be evaluated near zero.
    """
    domain = Domain(f"{CLOSEST} of the contact {contact!r} ({reason})", LEAST, float("inf"))
    one = Limited(
        "unique", 1, lambda x: 1.0 + 0.0 * x, "(void)x; return 1.0;", (lambda x: sympy.S.Zero,), domain=domain
    )
    size = Function("apart", 1, lambda x: x, "x", (one,))
    divisor = Limited("divisor", 1, lambda x: x, "x", (lambda x: sympy.S.One,), domain=domain)
    return size(value), divisor(value)


@dataclass(frozen=True)
class Nearest:
    """The closest points of two surfaces.

    Attributes
    ----------
    gap
        Distance of the surfaces, negative in penetration, m.
    normal
        Unit vector from the second surface to the first.
    arm
        Vector from the point ``first.point`` to the closest point of the first surface, m.
    first, second
        The places of both surfaces: a point and the frame of the body.
    """

    gap: Any
    normal: Any
    arm: Any
    first: Seat
    second: Seat
    own_tangents: tuple[Any, ...] = ()

    @property
    def second_arm(self) -> Any:
        """Vector from ``second.point`` to the closest point of the first surface, m."""
        return self.first.position(self.second.point) + self.arm

    @cached_property
    def tangents(self) -> tuple[Any, ...]:
        """Two orthonormal vectors normal to the normal."""
        if self.own_tangents:
            return self.own_tangents
        frame = self.second.frame or self.first.frame
        if frame is None:
            raise ModelError("no frame is known in which directions of slip could be chosen: give along=")
        return moving_tangents(components(self.normal, frame), frame)

    @cached_property
    def velocity(self) -> Any:
        """Velocity of the first body relative to the second one at the closest point of the first surface, m/s.

        Both bodies are rigid: it follows from the relative motion alone, so that no inertial frame is needed.
        """
        frame = self.second.frame
        for place, needed in ((self.second, True), (self.first, bool(self.arm.args))):
            if needed and place.frame is None:
                raise ModelError(
                    f"the surface at the point {place.point.name!r} has no frame, so that its velocity at the contact "
                    "is not known: give the RigidBody, or frame= with that of the body (N for what does not rotate)"
                )
        velocity = self.first.position(self.second.point).dt(frame)
        if self.arm.args and self.first.frame is not frame:
            velocity += self.first.turning(frame).cross(self.arm)
        return velocity

    def slip(self) -> tuple[Any, ...]:
        """The components of the relative velocity along the tangents, m/s."""
        return tuple(self.velocity.dot(tangent) for tangent in self.tangents)

    def along(self, directions: Any, what: str) -> Nearest:
        """The same with directions of slip that the user gave; None: unchanged."""
        return self if directions is None else replace(self, own_tangents=given_tangents(directions, what))

    def wrench(self, direction: Any) -> tuple[tuple[Any, Any], ...]:
        """Pairs (point, force) and (frame, torque) of a unit force on the first surface and its reaction."""
        pairs = []
        for place, arm, force in ((self.first, self.arm, direction), (self.second, self.second_arm, -direction)):
            pairs.append((place.point, force))
            if place.frame is not None and arm.args:
                pairs.append((place.frame, arm.cross(force)))
        return tuple(pairs)
