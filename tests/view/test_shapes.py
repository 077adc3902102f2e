"""Shapes: what users can give, what messages say, and what is guessed from points and inertia."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from given_motions import given, steady_disk
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from messages import raises

import kanegen as kg
from kanegen.derivation import fingerprint, lower_model
from kanegen.view.guess import Guess
from kanegen.view.poses import Poses
from kanegen.view.solids import Bar, Solid, drawn, same_inertia

q, u = me.dynamicsymbols("q u")
m, R, extra = sm.symbols("m R extra")
N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
B.orient_axis(N, N.z, q)
O = me.Point("O")
O.set_vel(N, 0)
TIMES = np.linspace(0.0, 1.0, 11)


def pendulum(inertia: Any = None, offset: Any = R, **options: Any) -> kg.Model:
    center = O.locatenew("center", -offset * B.y)
    about = me.inertia(B, m * R**2 / 3, 0, m * R**2 / 3) if inertia is None else me.inertia(B, *inertia)
    body = me.RigidBody("bar", center, B, m, (about, center))
    return kg.Model(
        name="pendulum",
        frame=N,
        coordinates=[q],
        speeds=[u],
        kinematics=[q.diff() - u],
        bodies=[body],
        gravity=-9.81 * N.y,
        parameters={m: 2.0, R: 0.5},
        **options,
    )


def guessed(model: kg.Model) -> list[Any]:
    poses = Poses(given(model, TIMES, lambda t: (t,), lambda t: (1.0,)))
    return list(Guess(poses, 1.0).parts(model.bodies[0]))


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda: kg.shapes.Sphere(0), ("Sphere", "0", "positive")),
        (lambda: kg.shapes.Sphere("big"), ("Sphere", "big", "length")),
        (lambda: kg.shapes.Cylinder(R, -1.0), ("Cylinder", "-1.0")),
        (lambda: kg.shapes.Cuboid(1, 2, float("inf")), ("Cuboid", "inf")),
        (lambda: kg.shapes.Sphere(1, axis="w"), ("axis", "w", "x")),
        (lambda: kg.shapes.Sphere(1, axis=(0, 0, 0)), ("axis", "zero")),
        (lambda: kg.shapes.Sphere(1, offset=(1, 2)), ("offset", "(1, 2)", "three")),
        (lambda: kg.shapes.Sphere(1, color="red"), ("color", "red", "#rrggbb")),
        (lambda: kg.shapes.Sphere(1, opacity=2), ("opacity", "2", "1")),
        (lambda: kg.shapes.Sphere(1, at=N), ("N", "Point")),
        (lambda: kg.shapes.Link(O, "P"), ("Link", "P", "Point")),
        (lambda: kg.shapes.Mesh([(0, 0, 0)], [(0, 0, 1)]), ("Mesh", "faces", "0")),
        (lambda: kg.shapes.Mesh([(0, 0, "x")], [(0, 0, 0)]), ("Mesh", "vertices")),
    ],
)
def test_shapes_that_cannot_be_drawn_are_refused(make: Any, names: tuple[str, ...]) -> None:
    with raises(kg.ModelError, *names):
        make()


def test_all_problems_of_the_shapes_of_a_model_are_reported() -> None:
    lost, ball = me.ReferenceFrame("lost"), kg.shapes.Sphere(R)
    shapes = {
        lost: ball,
        "wheel": ball,
        me.Point("away"): ball,
        7: ball,
        "bar": [kg.shapes.Sphere(extra), "round"],
        B: kg.shapes.Link(O, me.Point("nowhere")),
        N: kg.shapes.Cylinder(R - 0.5, 1),
    }
    with raises(kg.ModelError, "lost", "orient_axis", "wheel", "bar", "away", "set_pos", "7") as caught:
        pendulum(shapes=shapes)
    text = str(caught.value)
    assert len(caught.value.problems) == 8
    for name in ("extra", "round", "nowhere", "R - 0.5"):
        assert name in text


def test_shapes_change_neither_digest_nor_parameters() -> None:
    plain, shown = pendulum(), pendulum(shapes={"bar": kg.shapes.Cuboid(R, 2 * R, 1), N: None})
    assert fingerprint(lower_model(plain)) == fingerprint(lower_model(shown))
    assert dict(plain.parameters) == dict(shown.parameters)
    assert shown.with_orthogonal_speeds().shapes is shown.shapes


def test_sizes_are_expressions_of_the_parameters() -> None:
    shape = kg.shapes.Cylinder(R / 5, 2 * R, axis="y", offset=(0, R, 0))
    solid = drawn(shape, O, B, {R: 0.5})
    assert isinstance(solid, Solid)
    ends = solid.local[:3, :3] @ np.array([0, 0, 0.5]) + solid.local[:3, 3]
    assert ends == pytest.approx([0.0, 1.0, 0.0])
    widths = np.ptp(solid.mesh.vertices @ solid.local[:3, :3].T, axis=0)
    assert widths == pytest.approx([0.2, 1.0, 0.2])


@for_all(st.tuples(*[st.floats(0.1, 3.0)] * 3), st.floats(0.1, 10.0))
@settings(max_examples=60, deadline=None)
def test_an_ellipsoid_has_the_inertia_of_the_body(semi: tuple[float, float, float], mass: float) -> None:
    a, b, c = (x**2 for x in semi)
    shape = same_inertia(mass, mass / 5 * np.diag([b + c, a + c, a + b]))
    assert shape is not None
    name, scale = shape
    if name == "sphere" and min(semi) > 0.05 * max(semi):
        assert np.linalg.norm(scale, axis=1) == pytest.approx(semi, rel=1e-6)


def test_rods_and_disks_are_recognized() -> None:
    name, scale = same_inertia(3.0, 3.0 * 2.0**2 / 12 * np.diag([1, 0, 1])) or ("", np.eye(3))
    assert name == "cylinder"
    assert np.abs(scale[:, 2]) == pytest.approx([0.0, 2.0, 0.0])  # along y
    for moments in ((1, 1, 2), (0, 0, 2)):  # of a plane problem only the moment about the normal is known
        name, scale = same_inertia(2.0, 0.25 * np.diag(moments)) or ("", np.eye(3))
        assert name == "cylinder"
        assert np.abs(scale[:, 2]) == pytest.approx([0, 0, np.abs(scale[2, 2])])
        assert np.linalg.norm(scale[:2, :2], 2) == pytest.approx(np.sqrt(2 * 0.5 / 2.0))
    assert same_inertia(0.0, np.eye(3)) is None


def test_a_uniform_bar_of_which_one_end_is_placed_reaches_the_other() -> None:
    solids = [part for part in guessed(pendulum()) if isinstance(part, Solid)]
    lengths = [np.linalg.norm(solid.local[:3, 2]) for solid in solids]
    assert max(lengths) == pytest.approx(1.0)  # 2 R, because m R^2 / 3 = m (2 R)^2 / 12


def test_bars_connect_the_points_of_a_body() -> None:
    model = pendulum(inertia=(0, 0, m * R**2))
    center = model.bodies[0].masscenter
    (bar,) = (part for part in guessed(model) if isinstance(part, Bar))
    assert {bar.start, bar.end} == {O, center}


def test_a_disk_is_guessed_from_an_inertia_in_another_frame() -> None:
    motion = steady_disk(TIMES)
    (disk,) = Guess(Poses(motion), 1.0).parts(motion.model.bodies[0])
    assert np.linalg.norm(disk.local[:3, 0]) == pytest.approx(0.4, rel=1e-9)
    assert np.abs(disk.local[:3, 2]) == pytest.approx([0, 0, np.abs(disk.local[2, 2])], abs=1e-9)


def test_particles_are_connected_with_the_points_from_which_they_keep_their_distance() -> None:
    P = O.locatenew("P", -R * B.y)
    free = O.locatenew("free", q * N.x)
    bodies = [me.Particle("bob", P, m), me.Particle("cart", free, 2 * m)]
    model = kg.Model(
        name="two",
        frame=N,
        coordinates=[q],
        speeds=[u],
        kinematics=[q.diff() - u],
        bodies=bodies,
        parameters={m: 2.0, R: 0.5},
    )
    guess = Guess(Poses(given(model, TIMES, lambda t: (t,), lambda t: (1.0,))), 1.0)
    ball, bar = guess.parts(bodies[0])
    assert isinstance(bar, Bar)
    assert {bar.start, bar.end} == {O, P}
    (cart,) = guess.parts(bodies[1])
    assert cart.local[0, 0] / ball.local[0, 0] == pytest.approx(2 ** (1 / 3))
