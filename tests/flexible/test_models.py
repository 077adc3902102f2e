"""Models with flexible bodies against Lagrange's equations of the same shapes, sums over nodes, and closed forms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from scipy.optimize import brentq

import kanegen as kg

T = me.dynamicsymbols._t
LENGTH, MASS, RIGIDITY = sm.Integer(2), sm.Rational(3, 2), sm.Integer(40)
"""Of the beam in the tests: m, kg/m, N m^2."""


def inertial() -> tuple[Any, Any]:
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    return N, O


def free_beam() -> tuple[kg.Model, kg.Beam]:
    """A beam that moves in a plane, in a frame at its start, with two polynomials as shapes."""
    N, O = inertial()
    x, y, theta, vx, vy, omega = me.dynamicsymbols("x y theta vx vy omega")
    A = N.orientnew("A", "Axis", (theta, N.z))
    A.set_ang_vel(N, omega * N.z)
    start = O.locatenew("start", x * N.x + y * N.y)
    start.set_vel(N, vx * N.x + vy * N.y)
    section = {"length": 2.0, "area": 1e-3, "second_moment": 4e-7, "density": 1500.0, "youngs_modulus": 1e8}
    beam = kg.beam("beam", A, start, **section, shapes="polynomials", modes=2, damping_ratio=0.03)
    model = kg.Model(
        name="free_beam",
        frame=N,
        coordinates=(x, y, theta),
        speeds=(vx, vy, omega),
        kinematics=(vx - x.diff(T), vy - y.diff(T), omega - theta.diff(T)),
        bodies=(beam,),
        gravity=-9.81 * N.y,
        outputs={"end": (beam.point("end").pos_from(O), N)},
    )
    return model, beam


def lagrangian(model: kg.Model, beam: kg.Beam) -> Any:
    """L of the beam with the deflections ``a (x/L)^2 + b (x/L)^3`` and the shortening, integrated by SymPy."""
    x, y, theta, *eta = model.coordinates
    s = sm.Symbol("s")
    # The shapes of the beam are combinations of the two powers, by their values and slopes at the end.
    end = beam.names["end"]
    w, turn = (array[:, end, c] for array, c in ((beam.data.modes, 1), (beam.data.rotations, 2)))
    shapes = [
        (3 * wi - ti * LENGTH) * (s / LENGTH) ** 2 + (ti * LENGTH - 2 * wi) * (s / LENGTH) ** 3
        for wi, ti in zip(map(float, w), map(float, turn), strict=True)
    ]
    v = sum(shape * q for shape, q in zip(shapes, eta, strict=True))
    short = sm.Poly(sm.diff(v, s) ** 2 / 2, s).integrate().as_expr()
    # Velocities in the axes of the frame that turns, so that only polynomials in s are integrated.
    c, d, rate = sm.cos(theta), sm.sin(theta), theta.diff(T)
    vx, vy = x.diff(T) * c + y.diff(T) * d, -x.diff(T) * d + y.diff(T) * c
    along, across = vx - short.diff(T) - rate * v, vy + v.diff(T) + rate * (s - short)
    kinetic = MASS / 2 * _over_beam(along**2 + across**2, s)
    elastic = RIGIDITY / 2 * _over_beam(sm.diff(v, s, 2) ** 2, s)
    weight = MASS * sm.Float(9.81) * _over_beam(y + d * (s - short) + c * v, s)
    return kinetic - elastic - weight


def _over_beam(polynomial: Any, s: Any) -> Any:
    return sm.Poly(polynomial, s).integrate().eval(LENGTH)


def test_lagranges_equations_of_the_same_shapes() -> None:
    model, beam = free_beam()
    solver = kg.build(model, backend="interpreted")
    L = lagrangian(model, beam)
    q, u = sm.symbols("q:5"), sm.symbols("u:5")
    still = dict(zip(model.coordinates, q, strict=True))
    moving = {**{x.diff(T): v for x, v in zip(model.coordinates, u, strict=True)}, **still}
    plain = L.xreplace({k: v for k, v in moving.items() if k not in still}).xreplace(still)
    M = sm.hessian(plain, u)
    mixed = sm.Matrix([plain]).jacobian(u).jacobian(q) * sm.Matrix(u)
    evaluate = sm.lambdify((q, u), (M, sm.Matrix([plain]).jacobian(q).T - mixed), cse=True)
    random = np.random.default_rng(2)
    for _ in range(3):
        at, speeds = random.uniform(-0.5, 0.5, (2, 5))
        mass, force = evaluate(at, speeds)
        damping = np.zeros(5)
        damping[3:] = beam.data.damping @ speeds[3:]
        expected = np.linalg.solve(mass, force[:, 0] - damping)
        np.testing.assert_allclose(solver.Q(0.0, at, speeds), mass, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(solver.rhs(0.0, at, speeds)[1], expected, rtol=1e-9, atol=1e-9)
        total = solver.kinetic_energy(0.0, at, speeds) - solver.potential_energy(0.0, at, speeds)
        assert total == pytest.approx(
            float(plain.subs([*zip(q, at, strict=True), *zip(u, speeds, strict=True)])), rel=1e-11
        )


def tumbling(**options: Any) -> tuple[kg.Model, kg.FlexibleBody, dict[str, np.ndarray]]:
    """A body with random modes of all orders, and rigid pieces at its nodes, on three hinges and three slides."""
    random = np.random.default_rng(11)
    N, O = inertial()
    position, angles = me.dynamicsymbols("x y z"), me.dynamicsymbols("a b c")
    rates = me.dynamicsymbols("vx vy vz wa wb wc")
    A = N.orientnew("A", "Body", angles, "XYZ")
    origin = O.locatenew("P", sum((p * e for p, e in zip(position, N, strict=True)), 0 * N.x))
    half = random.normal(size=(5, 3, 3)) * 0.1
    arrays = {
        **{"nodes": random.normal(size=(5, 3)), "modes": random.normal(size=(2, 5, 3))},
        **{"masses": random.uniform(0.1, 1.0, 5), "rotations": random.normal(size=(2, 5, 3))},
        "inertias": np.array([np.trace(h @ h.T) * np.eye(3) - h @ h.T for h in half]),
        "stiffness": np.array([[30.0, 4.0], [4.0, 50.0]]),
        "second_order": random.normal(size=(2, 2, 5, 3)),
    }
    body = kg.FlexibleBody("body", A, origin, **arrays)
    model = kg.Model(
        name="tumbling",
        frame=N,
        coordinates=(*position, *angles),
        speeds=rates,
        kinematics=[u - q.diff(T) for q, u in zip((*position, *angles), rates, strict=True)],
        bodies=(body,),
        reactions={"all": kg.Reaction((body,), O, N)},
        **options,
    )
    arrays["pieces"] = half
    return model, body, arrays


def cloud(body: kg.FlexibleBody, arrays: dict[str, np.ndarray], q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions (k, 3) and masses (k,) of particles that have the masses and the moments of the nodes."""
    # A piece with the second moments h h^T is six particles at +- columns of h, each with half of the mass 1.
    eta, second = q[6:], arrays["second_order"]
    second = (second + second.swapaxes(0, 1)) / 2
    spots, masses = [], []
    for k, mass in enumerate(arrays["masses"]):
        moved = (
            arrays["nodes"][k] + eta @ arrays["modes"][:, k] + np.einsum("i,j,ijc->c", eta, eta, second[:, :, k]) / 2
        )
        scale = np.sqrt(6.0 / 2.0 / mass)
        for column in arrays["pieces"][k].T:
            for side in (scale * column, -scale * column):
                spots.append(moved + side + np.cross(eta @ arrays["rotations"][:, k], side))
                masses.append(mass / 6.0)
    a, b, c = q[3:6]
    turned = sm.rot_axis1(-a) * sm.rot_axis2(-b) * sm.rot_axis3(-c)
    return q[:3] + np.array(spots) @ np.array(turned, dtype=float).T, np.array(masses)


def test_momenta_and_energy_are_those_of_the_nodes() -> None:
    model, body, arrays = tumbling()
    solver = kg.build(model, backend="interpreted", functions="all")
    random = np.random.default_rng(5)
    q, u = random.uniform(-0.4, 0.4, (2, 8))
    step = 1e-5
    (before, masses), (now, _), (after, _) = (cloud(body, arrays, q + k * step * u) for k in (-1, 0, 1))
    velocity = (after - before) / (2 * step)
    assert solver.kinetic_energy(0.0, q, u) == pytest.approx(masses @ (velocity**2).sum(axis=1) / 2, rel=1e-8)
    np.testing.assert_allclose(solver.linear_momentum(0.0, q, u), masses @ velocity, rtol=1e-7, atol=1e-9)
    # At u' = 0 the reaction about O is the rate of the momenta: no load but the elastic ones, which are internal.
    acceleration = (after - 2 * now + before) / step**2
    udot = np.asarray(solver.rhs(0.0, q, u)[1])
    pushed = [(cloud(body, arrays, q + k * step * udot)[0]) for k in (-1, 1)]
    acceleration += (pushed[1] - pushed[0]) / (2 * step)
    wrench = np.ravel(solver.reactions(0.0, q, u)["all"])
    np.testing.assert_allclose(wrench[:3], masses @ acceleration, atol=2e-4)
    np.testing.assert_allclose(wrench[3:], masses @ np.cross(now, acceleration), atol=2e-4)


def test_verify_compares_flexible_bodies() -> None:
    model, _ = free_beam()
    report = kg.verify(model, states=2, forms=("articulated", "reduced"), backend="interpreted")
    assert report.ok
    compared = {check.principle for check in report.checks if check.ok}
    assert {"Lagrange", "flexible bodies", "Gibbs-Appell", "power balance", "form articulated"} <= compared


def test_verify_notices_other_mode_shapes() -> None:
    model, beam = free_beam()
    beam.data = replace(
        beam.data, integrals=beam.data.integrals + np.diag([0.0] * (len(beam.data.integrals) - 1) + [1e-4])
    )
    with pytest.raises(kg.VerificationError, match="fails flexible bodies\n"):
        kg.verify(model, states=2, forms=(), backend="interpreted")


def cantilevers(stiffness: float = 1.0) -> kg.Model:
    """A frame of two beams at a right angle, clamped at the start, without shortening of its axes."""
    N, O = inertial()
    section = {"length": 2.0, "area": 1e-3, "second_moment": 4e-7, "density": 1500.0, "bending": "y"}
    options = {**section, "youngs_modulus": stiffness * 1e8, "shapes": "polynomials", "modes": 8, "stiffening": False}
    first = kg.beam("first", N, O, **options)
    corner = first.node_frame("end").orientnew("corner", "Axis", (sm.pi / 2, N.z))
    second = kg.beam("second", corner, first.point("end"), **options)
    bodies = (first, second)
    coordinates, speeds = (sum((getattr(body, what) for body in bodies), ()) for what in ("coordinates", "speeds"))
    return kg.Model(name="frame", frame=N, coordinates=coordinates, speeds=speeds, kinematics=(), bodies=bodies)


def frame_frequencies() -> np.ndarray:
    """beta L of an L-frame of equal beams that do not stretch, from the determinant of its conditions."""

    def determinant(b: float) -> float:
        c, s, C, S = np.cos(b), np.sin(b), np.cosh(b), np.sinh(b)
        # first beam: p (C - c) + r (S - s); second: k (sin - sinh)(bx) + ... with w(0) = 0 and a free end
        first = np.array(
            [[C - c, S - s], [S + s, C - c], [C + c, S + s], [S - s, C + c]]
        )  # w, w', w'', w''' at its end
        # second: w = A (cos - cosh) + B sin + D sinh: w(0) = 0, w'(0) = B + D, w''(0) = -2 A
        end = np.array([[-(c + C), -s, S], [s - S, -c, C]])  # w'' and w''' at the free end
        rows = np.zeros((5, 5))
        rows[0, :2], rows[0, 2:] = first[1], (0.0, -1.0, -1.0)  # the corner keeps its angle
        rows[1, :2], rows[1, 2:] = first[2], (2.0, 0.0, 0.0)  # equal moments
        rows[2, :2] = first[3] + b * first[0]  # shear force of the first beam moves the mass of the second
        rows[3:, 2:] = end
        return float(np.linalg.det(rows)) / C**2

    grid = np.linspace(0.3, 9.0, 2000)
    values = [determinant(b) for b in grid]
    brackets = [k for k in range(len(grid) - 1) if values[k] * values[k + 1] < 0.0]
    return np.array([brentq(determinant, grid[k], grid[k + 1], xtol=1e-14) for k in brackets])


def test_frequencies_of_a_frame_of_two_beams() -> None:
    solver = kg.build(cantilevers(), functions="all", backend="interpreted")
    n = len(solver.model.speeds)
    linear = solver.linearize(0.0, np.zeros(n), np.zeros(n))
    poles = np.linalg.eigvals(linear.A)
    found = np.sort(poles.imag[poles.imag > 0.0])[:4]
    exact = frame_frequencies()[:4] ** 2 * np.sqrt(40.0 / 1.5) / 4.0
    np.testing.assert_allclose(found, exact, rtol=1e-6)


def test_another_stiffness_needs_no_build() -> None:
    solver = kg.build(cantilevers(), backend="interpreted", functions=("rhs",))
    other = cantilevers(stiffness=2.5)
    first, second = dict.fromkeys(particle.owner for particle in other.bodies)
    q, u = np.linspace(-0.1, 0.1, 16), np.linspace(0.2, -0.1, 16)
    expected = kg.build(other, backend="interpreted", functions=("rhs",)).rhs(0.0, q, u)[1]
    changed = solver.with_parameters({**first.parameters, **second.parameters})
    np.testing.assert_allclose(changed.rhs(0.0, q, u)[1], expected, rtol=1e-9)
    assert not np.allclose(solver.rhs(0.0, q, u)[1], expected)


def rotating(plane: str, speed: float) -> tuple[np.ndarray, float]:
    """The first two frequencies of a beam on a hub that turns about z, and the speed, both over sqrt(EI/(m L^4))."""
    N, O = inertial()
    hub = N.orientnew("hub", "Axis", (sm.Float(speed) * T, N.z))
    section = {"length": 2.0, "area": 1e-3, "second_moment": 4e-7, "density": 1500.0, "youngs_modulus": 1e8}
    beam = kg.beam("beam", hub, O, **section, bending=plane, shapes="polynomials", modes=7)
    model = kg.Model(name="rotor", frame=N, coordinates=(), speeds=(), kinematics=(), bodies=(beam,))
    solver = kg.build(model, backend="interpreted", functions=("P", "Q"))
    zero, step = np.zeros(7), 1e-5
    slopes = [(solver.P(0.0, h, zero) - solver.P(0.0, -h, zero)) / (2 * step) for h in step * np.eye(7)]
    squares = np.linalg.eigvals(np.linalg.solve(solver.Q(0.0, zero, zero), -np.transpose(slopes)))
    unit = np.sqrt(40.0 / 1.5 / 16.0)
    return np.sqrt(np.sort(squares.real)[:2]) / unit, speed / unit


@pytest.mark.parametrize(("ratio", "published"), [(2.0, (4.1373, 22.6149)), (6.0, (7.3604, 26.8091))])
def test_rotation_stiffens_a_beam(ratio: float, published: tuple[float, float]) -> None:
    """Frequencies of a rotating beam out of its plane (Wright, Smith, Thresher and Wang 1982, table 1), and in it."""
    speed = ratio * np.sqrt(40.0 / 1.5 / 16.0)
    flap, eta = rotating("z", speed)
    np.testing.assert_allclose(flap, published, rtol=8e-6)
    lag, _ = rotating("y", speed)
    np.testing.assert_allclose(lag**2, flap**2 - eta**2, rtol=1e-7)


def test_a_cantilever_hangs_from_its_clamp() -> None:
    """Static deflection, force and torque of the clamp."""
    N, O = inertial()
    section = {"length": 2.0, "area": 1e-3, "second_moment": 4e-7, "density": 1500.0, "youngs_modulus": 1e8}
    beam = kg.beam("beam", N, O, **section, shapes="polynomials", modes=3, stiffening=False)
    model = kg.Model(
        name="hanging",
        frame=N,
        coordinates=(),
        speeds=(),
        kinematics=(),
        bodies=(beam,),
        gravity=-9.81 * N.y,
        reactions={"clamp": kg.Reaction(beam, O, N)},
        outputs={"end": beam.point("end").pos_from(O).dot(N.y), "strain": beam.strain(0.0, y=0.01)},
    )
    solver = kg.build(model, backend="interpreted", functions="all")
    zero = np.zeros(3)
    q = np.linalg.solve(beam.data.stiffness, solver.P(0.0, zero, zero))
    load = 9.81 * 1.5
    np.testing.assert_allclose(solver.rhs(0.0, q, zero)[1], 0.0, atol=1e-9)
    assert solver.outputs(0.0, q, zero)["end"] == pytest.approx(-load * 16.0 / (8 * 40.0), rel=1e-10)
    assert solver.outputs(0.0, q, zero)["strain"] == pytest.approx(0.01 * load * 2.0 / 40.0, rel=1e-10)
    wrench = np.ravel(solver.reactions(0.0, q, zero)["clamp"])
    np.testing.assert_allclose(wrench, [0.0, 2 * load, 0.0, 0.0, 0.0, 2 * load], atol=1e-9)


def test_a_body_from_a_file(tmp_path: Path) -> None:
    _, body, arrays = tumbling()
    arrays.pop("pieces")
    np.savez(tmp_path / "body.npz", **arrays)
    read = kg.FlexibleBody.from_file(tmp_path / "body.npz", "body", body.frame, body.origin, names={"tip": 4})
    assert read.parameters == body.parameters
    assert read.point("tip").name == "body_tip"


def test_gradients_of_a_motion_with_respect_to_stiffness_and_damping() -> None:
    """The end of a motion by compiled sensitivities against differences."""
    model, _ = free_beam()
    solver = kg.build(model)
    names, start = ("k_beam_1_1", "d_beam_1_1", "m_beam"), (np.array([0.0, 0.0, 0.3, 0.1, 0.02]), np.zeros(5))
    tight = {"method": "dop853", "rtol": 1e-11, "atol": 1e-13}
    found = solver.integrate((0.0, 0.1), *start, sensitivities=names, **tight).sensitivities
    for name in names:
        value = solver.parameters[name]
        step = 1e-4 * value
        ends = [
            solver.with_parameters({name: value + h}).integrate((0.0, 0.1), *start, **tight).q[-1]
            for h in (-step, step)
        ]
        slope = (ends[1] - ends[0]) / (2 * step)
        mine = [found[str(q.func), name][-1] for q in model.coordinates]
        np.testing.assert_allclose(mine, slope, rtol=1e-5, atol=1e-6 * np.abs(slope).max())
