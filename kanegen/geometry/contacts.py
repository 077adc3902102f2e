"""Pairs of surfaces as unilateral constraints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Final

import sympy

from kanegen.errors import ModelError, brief
from kanegen.geometry.features import Ball, above
from kanegen.geometry.fields import FIELDS, FOOTED, Foot, make_foot, point_on_field, sphere_on_foot
from kanegen.geometry.nearest import Nearest
from kanegen.geometry.solids import SOLIDS, ball_on_solid
from kanegen.geometry.surfaces import Ellipsoid, Plane, Sphere, Surface
from kanegen.model import Coulomb, Restitution, Unilateral

_ADVICE: Final = (
    "docs/surfaces.md has the pairs that exist; spheres or points on one of the bodies, kg.geometry.sphere(P, R, "
    "frame=) and kg.geometry.point(P), touch most surfaces"
)


def nearest(name: str, first: Surface, second: Surface, *, foot: Foot | None = None) -> dict[str, Nearest]:
    """The closest points of two surfaces, for loads, outputs and laws of one's own.

    Parameters
    ----------
    name
        The name in messages.
    first, second
        Surfaces of ``kg.geometry``, in any order.
    foot
        Surface coordinates, :func:`foot`, for the pairs that need them.

    Returns
    -------
    dict
        Gap, normal, closest point, slip velocity of each contact that the pair can have, by what distinguishes it, such
        as "corner 3"; by "" if there is one only.

    Raises
    ------
    ModelError
        For pairs without closest points in closed form.
    """
    for item in (first, second):
        if not isinstance(item, Surface):
            raise ModelError(f"contact {name!r} has {brief(item)}: expected a surface of kg.geometry")
    a, b = _ordered(first, second)
    if foot is not None:
        _require_own(name, foot, a, b)
        return {"": sphere_on_foot(_ball(a), a.seat, foot)}
    if isinstance(b, Plane) and a.features():
        ground = b.ground
        return {key: above(feature, a.seat, ground, name) for key, feature in a.features().items()}
    if isinstance(a, Sphere) and isinstance(b, SOLIDS):
        return {"": ball_on_solid(_ball(a), a.seat, b, name)}
    if isinstance(a, Sphere) and isinstance(b, FIELDS) and a.radius.is_zero:
        return {"": point_on_field(_ball(a), a.seat, b, name)}
    raise ModelError(_refusal(name, a, b))


def _ball(sphere: Any) -> Ball:
    ball = sphere.features()[""]
    assert isinstance(ball, Ball)
    return ball


def _ordered(first: Surface, second: Surface) -> tuple[Surface, Surface]:
    """The pair, with a plane last and a sphere first."""
    swapped = isinstance(first, Plane) or (isinstance(second, Sphere) and not isinstance(first, Sphere))
    return (second, first) if swapped else (first, second)


def _require_own(name: str, foot: Foot, a: Surface, b: Surface) -> None:
    if not isinstance(foot, Foot) or foot.sphere is not a or foot.surface is not b:
        raise ModelError(
            f"contact {name!r} has foot={brief(foot)}: expected kg.geometry.foot(name, sphere, surface) of the same "
            "two surfaces"
        )


def _refusal(name: str, a: Surface, b: Surface) -> str:
    pair = f"contact {name!r} ({a.kind} and {b.kind})"
    if isinstance(a, Sphere) and isinstance(b, FOOTED):
        return (
            f"{pair}: the closest point has no closed form: make surface coordinates, "
            f"foot = kg.geometry.foot({name!r}, ...), give them to the model, and foot= here"
        )
    limit = "an ellipsoid touches planes only" if Ellipsoid in (type(a), type(b)) else "there is no such pair"
    return f"{pair}: {limit}: {_ADVICE}"


def foot(name: str, first: Surface, second: Surface) -> Foot:
    """Coordinates of the closest point on a surface, for a sphere on a height field and a roller on a cam.

    Parameters
    ----------
    name
        Begins the names of the coordinates and speeds: ``name_x``, ``name_y`` or ``name_angle``,
        and ``name_x_rate`` ...
    first, second
        A sphere, and a height field or cam, in any order.

    Returns
    -------
    Foot
        Its coordinates, speeds, kinematics and constraints are given to the model together with those of the bodies.
        The constraints have several solutions on uneven surfaces: start near the right one
        (``solver.make_consistent``).
    """
    a, b = _ordered(first, second)
    if not isinstance(a, Sphere) or not isinstance(b, FOOTED):
        raise ModelError(f"kg.geometry.foot({name!r}, ...): expected a sphere, and a height field or a cam")
    return make_foot(name, a.seat, a, b)


def contact(
    name: str,
    first: Surface,
    second: Surface,
    *,
    law: Any = None,
    restitution: Any = None,
    friction: Any = None,
    along: Any = None,
    foot: Foot | None = None,
    applied: bool = False,
) -> Unilateral:
    """The contact of two surfaces as a unilateral constraint.

    Parameters
    ----------
    name
        Name in messages and results.
    first, second
        Surfaces of ``kg.geometry``, in any order.
    law
        A law of :class:`kanegen.Unilateral`; None: rigid.
    restitution
        In place of a law: the coefficient of restitution of a rigid contact.
    friction
        :class:`kanegen.Coulomb`, or the coefficient of friction alone.
    along
        One or two orthonormal vectors in which slip is measured; with one there is slip along it only. None: two that
        are chosen, without one along which the bodies cannot move, as in plane models.
    foot
        Surface coordinates of the pair, :func:`foot`.
    applied
        Whether to give ``applied_at``, which models with reactions and auxiliary speeds need: the force at the point of
        each surface with its moment.

    Returns
    -------
    kanegen.Unilateral
        Its gap is the distance. The slip velocity is that of the first surface relative to the second one; of spheres
        and other surfaces, that of the sphere, and of bodies and planes, that of the body.

    Raises
    ------
    ModelError
        For pairs without closest points in closed form, and for those with several contacts (:func:`contacts`).
    """
    found = nearest(name, first, second, foot=foot)
    if len(found) > 1:
        raise ModelError(
            f"contact {name!r} ({first.kind} and {second.kind}) can close at {len(found)} places "
            f"({', '.join(found)}): use kg.geometry.contacts, which returns a contact for each"
        )
    (place,) = found.values()
    return _unilateral(name, place, _law(name, law, restitution), _friction(friction), along, applied)


def contacts(
    name: str,
    first: Surface | Sequence[Surface],
    second: Surface | Sequence[Surface] | None = None,
    *,
    law: Any = None,
    restitution: Any = None,
    friction: Any = None,
    along: Any = None,
    applied: bool = False,
) -> list[Unilateral]:
    """The contacts of all pairs of surfaces.

    Parameters
    ----------
    name
        Begins the names: "name corner 3" for the places of one pair; "name 1", "name 2", ... for pairs, in the order of
        ``first`` and then of ``second``.
    first, second
        Surfaces or sequences of them: each of ``first`` with each of ``second``. Without ``second``: each two of
        ``first`` that have not the same frame.
    law, restitution, friction, along, applied
        As for :func:`contact`.
    """
    rule, rubbing = _law(name, law, restitution), _friction(friction)
    pairs = list(_pairs(first, second))
    made = []
    for k, pair in enumerate(pairs):
        label = name if len(pairs) == 1 else f"{name} {k + 1}"
        for key, place in nearest(label, *pair).items():
            made.append(_unilateral(f"{label} {key}".strip(), place, rule, rubbing, along, applied))
    return made


def _pairs(first: Any, second: Any) -> Iterator[tuple[Surface, Surface]]:
    ours = [first] if isinstance(first, Surface) else list(first)
    if second is not None:
        others = [second] if isinstance(second, Surface) else list(second)
        yield from ((a, b) for a in ours for b in others)
        return
    for a, b in combinations(ours, 2):
        if a.seat.frame is None or a.seat.frame is not b.seat.frame:
            yield a, b


def _unilateral(name: str, place: Nearest, law: Any, friction: Any, along: Any, applied: bool) -> Unilateral:
    place = place.along(along, f"contact {name!r}")
    moving = (
        [] if friction is None else [pair for pair in zip(place.slip(), place.tangents, strict=True) if pair[0] != 0]
    )
    slip, directions = tuple(speed for speed, _ in moving), (place.normal, *(tangent for _, tangent in moving))
    where = tuple(place.wrench(direction) for direction in directions) if applied else ()
    return Unilateral(place.gap, law=law, friction=friction, slip=slip, name=name, applied_at=where)


def _law(name: str, law: Any, restitution: Any) -> Any:
    if law is not None and restitution is not None:
        raise ModelError(f"contact {name!r} has law= and restitution=: give one of both")
    if law is not None:
        return law
    return Restitution() if restitution is None else Restitution(restitution)


def _friction(friction: Any) -> Any:
    given = friction is None or not isinstance(friction, int | float | sympy.Expr)
    return friction if given else Coulomb(friction)
