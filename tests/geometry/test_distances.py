"""Gaps are distances, closest points lie on the surfaces, and slip is the velocity of material points."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from two_bodies import A, B, N, Numbers, O, P, Pose, S, Touching, states, velocity

import kanegen as kg

Array = NDArray[np.float64]
shapes = kg.geometry


def circle(angle: float) -> Array:
    return np.array([np.cos(angle), np.sin(angle), 0.0])


def up(height: float) -> Array:
    return np.array([0.0, 0.0, height])


# The points of each surface by parameters, with their bounds, in the axes of its body. Of a sphere its center, so that
# the distance is less by the radius (third entry).
FULL = (-4.0, 4.0)
POINTS: dict[str, tuple[Callable[..., Array], list[tuple[float, float]], float]] = {
    "sphere": (lambda: np.zeros(3), [], 0.7),
    "disk": (lambda a: 0.7 * circle(a), [FULL], 0.0),
    "front": (lambda a: 0.7 * circle(a) + up(0.55), [FULL], 0.0),
    "torus": (lambda a: 0.7 * circle(a), [FULL], 0.2),
    "capsule": (lambda h: up(h), [(-0.55, 0.55)], 0.2),
    "box": (lambda x, y, z: np.array([x, y, z]), [(-0.3, 0.3), (-0.4, 0.4), (-0.5, 0.5)], 0.0),
    "cylinder": (lambda c, a, h: c * circle(a) + up(h), [(0.0, 0.7), FULL, (-0.55, 0.55)], 0.0),
    "thin disk": (lambda c, a: c * circle(a), [(0.0, 0.7), FULL], 0.0),
    "ellipsoid": (
        lambda a, b: np.array([0.7 * np.cos(a) * np.cos(b), 0.2 * np.sin(a) * np.cos(b), 1.1 * np.sin(b)]),
        [FULL, (-np.pi / 2, np.pi / 2)],
        0.0,
    ),
}


def lowest(name: str, cost: Callable[[Array], float]) -> float:
    """The least cost over the points of a surface."""
    points, bounds, _ = POINTS[name]
    if not bounds:
        return cost(points())
    low, high = np.array(bounds).T
    generator = np.random.default_rng(1)
    starts = [(low + high) / 2, *generator.uniform(low, high, (12, len(bounds)))]
    runs = [minimize(lambda x: cost(points(*x)), x, bounds=bounds, tol=1e-14) for x in starts]
    return float(min(run.fun for run in runs))


ON_PLANE = {
    "sphere": (shapes.sphere(P, 0.7, frame=A), ""),
    "disk": (shapes.disk(P, 0.7, frame=A), ""),
    "front": (shapes.cylinder(P, 0.7, 1.1, frame=A), "front"),
    "torus": (shapes.torus(P, 0.7, 0.2, frame=A), ""),
    "ellipsoid": (shapes.ellipsoid(P, 0.7, 0.2, 1.1, frame=A), ""),
}
SOLIDS = {
    "sphere": shapes.sphere(S, 0.7, frame=B),
    "torus": shapes.torus(S, 0.7, 0.2, frame=B),
    "capsule": shapes.capsule(S, 0.2, 1.1, frame=B),
    "box": shapes.box(S, 0.6, 0.8, 1.0, frame=B),
    "cylinder": shapes.cylinder(S, 0.7, 1.1, frame=B),
    "thin disk": shapes.disk(S, 0.7, frame=B),
}
BALL = shapes.sphere(P, 0.25, frame=A)
PLANE = shapes.plane(S, 3 * B.z - 4 * B.x)
NORMAL = np.array([-0.8, 0.0, 0.6])


@cache
def on_plane(name: str) -> Touching:
    surface, key = ON_PLANE[name]
    return Touching(shapes.nearest("pair", surface, PLANE)[key])


@cache
def on_solid(name: str) -> Touching:
    return Touching(shapes.nearest("pair", BALL, SOLIDS[name])[""])


def moves(seed: int) -> tuple[Array, Array]:
    """Coordinates and their rates."""
    generator = np.random.default_rng(seed)
    (q,) = list(states(generator, 2))[seed % 2 : seed % 2 + 1]
    return q, generator.uniform(-1.0, 1.0, 12)


def agrees_with_motion(touching: Touching, q: Array, rates: Array) -> None:
    """Slip and rate of the gap are the velocity of the material points of A relative to those of B."""
    _, slip, normal, where, tangents = touching(q, rates)
    relative = velocity(0, where, q, rates) - velocity(1, where, q, rates)
    h = 1e-6
    rate = (touching(q + h * rates)[0] - touching(q - h * rates)[0]) / (2 * h)
    assert slip == pytest.approx(tangents @ relative, abs=1e-8)
    assert rate == pytest.approx(normal @ relative, abs=1e-7)
    basis = np.array([normal, *tangents])
    assert basis @ basis.T == pytest.approx(np.eye(3), abs=1e-12)


@pytest.mark.parametrize("name", ON_PLANE)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_gaps_to_planes_are_least_heights(name: str, seed: int) -> None:
    q, rates = moves(seed)
    pose = Pose(q)
    axis = pose.axes[0][:, 2]
    normal = pose.axes[1] @ NORMAL
    assume(name in ("sphere", "ellipsoid") or np.linalg.norm(np.cross(axis, normal)) > 1e-3)
    gap, _, found, where, _ = on_plane(name)(q)
    height = lowest(name, lambda x: float((pose.out(0, x) - pose.place[1]) @ normal)) - POINTS[name][2]
    assert gap == pytest.approx(height, abs=1e-9)
    assert found == pytest.approx(normal, abs=1e-14)
    assert (where - pose.place[1]) @ normal == pytest.approx(gap, abs=1e-12)
    agrees_with_motion(on_plane(name), q, rates)


@pytest.mark.parametrize("name", SOLIDS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_gaps_of_spheres_and_solids_are_distances(name: str, seed: int) -> None:
    q, rates = moves(seed)
    q[:3] = 0.6 * q[:3]
    pose = Pose(q)
    center = pose.place[0]
    distance = lowest(name, lambda x: float(np.linalg.norm(pose.out(1, x) - center)))
    assume(distance > 1e-3)
    gap, _, normal, where, _ = on_solid(name)(q)
    assert gap == pytest.approx(distance - POINTS[name][2] - 0.25, abs=2e-7)
    assert where == pytest.approx(center - 0.25 * normal, abs=1e-14)
    agrees_with_motion(on_solid(name), q, rates)


@pytest.mark.parametrize(
    ("surface", "corners"),
    [
        (
            shapes.box(P, 0.6, 0.8, 1.0, frame=A),
            [[x, y, z] for x in (-0.3, 0.3) for y in (-0.4, 0.4) for z in (-0.5, 0.5)],
        ),
        (shapes.capsule(P, 0.2, 1.1, frame=A), [[0, 0, 0.55], [0, 0, -0.55]]),
        (
            shapes.disk(P, 0.7, frame=A, rim=3),
            [[0.7 * np.cos(a), 0.7 * np.sin(a), 0] for a in (0, 2 * np.pi / 3, 4 * np.pi / 3)],
        ),
        (shapes.cone(P, 0.7, 1.1, axis=A.x, frame=A), [[1.1, 0, 0]]),
    ],
    ids=["box", "capsule", "rim", "tip"],
)
def test_corners_and_ends_are_points_of_the_body(surface: Any, corners: list[list[float]]) -> None:
    q, _ = moves(5)
    pose = Pose(q)
    radius = 0.2 if surface.kind == "capsule" else 0.0
    heights = [(pose.out(0, np.array(x)) - pose.place[1]) @ pose.axes[1] @ NORMAL - radius for x in corners]
    places = shapes.nearest("all", surface, PLANE)
    keys = [key for key in places if key != "base"]
    found = [Touching(places[key])(q)[0] for key in keys]
    assert sorted(found) == pytest.approx(sorted(map(float, heights)), abs=1e-13)


def test_a_ball_in_a_bowl() -> None:
    touching = Touching(shapes.nearest("pair", shapes.sphere(S, 4.0, frame=B, hollow=True), BALL)[""])
    for seed in range(6):
        q, rates = moves(seed)
        distance = float(np.linalg.norm(q[:3] - q[6:9]))
        assert touching(q)[0] == pytest.approx(3.75 - distance, abs=1e-13)
        if distance > 1.9:
            agrees_with_motion(touching, q, rates)


def wavy(x: Any, y: Any) -> Any:
    return 0.2 * sm.cos(2 * x) * sm.sin(y + x / 2)


a, b, c = sm.symbols("a b c")
OVAL = a**2 / 0.49 + b**2 / 0.04 + c**2 / 1.21 - 1


def lobes(angle: Any) -> Any:
    return 0.5 + 0.1 * sm.cos(3 * angle) + 0.05 * sm.sin(angle)


FIELDS = {
    "height field": (shapes.height_field(wavy, S, frame=B), lambda x: np.array([*x[:2], float(wavy(*x[:2]))])),
    "ellipsoid": (
        shapes.implicit(OVAL, (a, b, c), S, frame=B),
        lambda x: x / np.sqrt(float(OVAL.subs(dict(zip((a, b, c), x, strict=True)))) + 1),
    ),
    "cam": (
        shapes.cam(lobes, S, frame=B),
        lambda x: np.array([*(float(lobes(np.arctan2(x[1], x[0]))) * x[:2] / np.hypot(*x[:2])), x[2]]),
    ),
}


@pytest.mark.parametrize("name", FIELDS)
def test_points_on_surfaces_of_functions_touch_at_a_gap_of_zero(name: str) -> None:
    surface, onto = FIELDS[name]
    touching = Touching(shapes.nearest("pair", shapes.point(P), surface)[""])
    for seed in range(8):
        q, rates = moves(seed)
        pose = Pose(q)
        q[:3] = pose.out(1, onto(pose.to(1, q[:3])))
        gap, _, _, where, _ = touching(q)
        assert gap == pytest.approx(0.0, abs=1e-14)
        assert where == pytest.approx(q[:3], abs=1e-14)
        agrees_with_motion(touching, q, rates)
        inside, outside = (touching(np.concatenate([q[:3] + h * touching(q)[2], q[3:]]))[0] for h in (-1e-4, 1e-4))
        assert [inside, outside] == pytest.approx([-1e-4, 1e-4], rel=1e-2)


def test_a_disk_that_stands_upright_and_one_that_lies_nearly_flat() -> None:
    touching = Touching(shapes.nearest("pair", shapes.disk(P, 0.7, frame=A), shapes.plane(S, B.z))[""])
    for tilt in (np.pi / 2, 1e-5):
        q = np.zeros(12)
        q[2], q[3] = 0.7 * np.sin(tilt), tilt
        gap, slip, *_ = touching(q, np.concatenate([np.zeros(3), [0.0, 0.0, 2.0], np.zeros(6)]))
        assert gap == pytest.approx(0.0, abs=1e-16)
        assert np.linalg.norm(slip) == pytest.approx(1.4, rel=1e-12)


FEET = {
    "height field": (FIELDS["height field"][0], lambda x, y: np.array([x, y, float(wavy(x, y))]), 2),
    "cam": (FIELDS["cam"][0], lambda angle: float(lobes(angle)) * circle(angle), 1),
}


@pytest.mark.parametrize("name", FEET)
def test_a_sphere_touches_at_its_foot(name: str) -> None:
    """At the closest point that SciPy finds, the conditions of tangency hold and the gap is the distance."""
    surface, place, count = FEET[name]
    foot = shapes.foot("foot", BALL, surface)
    touching = Touching(shapes.nearest("pair", BALL, surface, foot=foot)[""], foot.coordinates)
    conditions = Numbers(foot.constraints, foot.coordinates)
    for seed in range(6):
        q, rates = moves(seed)
        pose, flat = Pose(q), np.array([1.0, 1.0, float(name != "cam")])
        spot = place(*np.random.default_rng(seed).uniform(-1.0, 1.0, count))
        q[:3] = pose.out(1, spot + (np.array([0.0, 0.0, 0.3]) if name != "cam" else 0.3 * circle(seed)))
        center = pose.to(1, q[:3])
        start = center[:2] if name != "cam" else [np.arctan2(center[1], center[0])]

        def square(x: Array, flat: Array = flat, center: Array = center) -> float:
            return float(np.sum(flat * (place(*x) - center) ** 2))

        best = minimize(square, start, tol=1e-15)
        assert conditions(q, rates, *best.x) == pytest.approx(0.0, abs=1e-7)
        gap, slip, normal, where, tangents = touching(q, rates, *best.x)
        outside = np.sign((center - place(*best.x)) @ pose.axes[1].T @ normal)
        assert gap == pytest.approx(outside * np.sqrt(best.fun) - 0.25, abs=1e-7)
        relative = velocity(0, where, q, rates) - velocity(1, where, q, rates)
        assert slip == pytest.approx(tangents @ relative, abs=1e-8)


def test_the_force_at_the_contact_has_the_power_of_the_relative_motion() -> None:
    found = shapes.nearest("pair", BALL, SOLIDS["capsule"])[""]
    power = 0
    for place, load in found.wrench(found.tangents[0]):
        motion = place.ang_vel_in(N) if isinstance(place, me.ReferenceFrame) else place.pos_from(O).dt(N)
        power += load.dot(motion)
    for seed in range(4):
        q, rates = moves(seed)
        assert Numbers([power])(q, rates)[0] == pytest.approx(Touching(found)(q, rates)[1][0], abs=1e-12)


def test_any_surface_of_a_pair_can_come_first() -> None:
    q, rates = moves(3)
    one, two = (Touching(shapes.nearest("pair", *pair)[""]) for pair in ((BALL, PLANE), (PLANE, BALL)))
    assert np.concatenate(list(map(np.ravel, one(q, rates)))) == pytest.approx(
        np.concatenate(list(map(np.ravel, two(q, rates)))), abs=0
    )


def test_a_periodic_table_has_no_seam() -> None:
    angles = np.linspace(0.3, 0.3 + 2 * np.pi, 24, endpoint=False)
    table = shapes.periodic(angles, 1.0 + 0.2 * np.cos(2 * angles) + 0.1 * np.sin(angles))
    x = sm.Symbol("x", real=True)
    for order in range(3):
        value = sm.diff(table(x), x, order)
        at = [_evaluated(value, x, end) for end in (-np.pi, np.pi)]
        assert at[0] == pytest.approx(at[1], abs=1e-8)
    assert table.python(angles[5] - 2 * np.pi * (angles[5] > np.pi)) == pytest.approx(
        1.0 + 0.2 * np.cos(2 * angles[5]) + 0.1 * np.sin(angles[5]), abs=1e-12
    )


def _evaluated(expression: Any, symbol: Any, value: float) -> float:
    return float(Numbers([expression], [symbol])(np.zeros(12), np.zeros(12), value)[0])
