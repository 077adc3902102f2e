"""Every form of the equations gives the same accelerations, and each what it alone can give."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from mechanisms import blocks
from messages import raises
from systems import NAMES, SYSTEMS, built_in_form, model_of, states
from tolerances import EVALUATION, SOLVE

import kanegen as kg
from kanegen.derivation.equations import SQUARE_LIMIT
from kanegen.forms import FORMS

TIME = me.dynamicsymbols._t
UNPARTITIONED = ["range_space", "augmented", "canonical", "pseudoinverse"]


@pytest.mark.parametrize("form", [*UNPARTITIONED, "articulated"])
@pytest.mark.parametrize(("name", "options"), SYSTEMS, ids=NAMES)
def test_form_agrees_with_the_oracle(name: str, options: dict[str, Any], form: str) -> None:
    solver = built_in_form(name, form, **options)
    for state in states(name, **options):
        reference = state.reference
        _, udot = solver.rhs(state.t, state.q, state.u)
        scale = 1.0 + np.abs(reference.udot).max()
        assert np.abs(udot - reference.udot).max() < SOLVE * scale
        force = solver.constraint_force(state.t, state.q, state.u)
        assert np.abs(force - reference.constraint_force).max() < SOLVE * (1.0 + np.abs(reference.P).max())
        if len(reference.multipliers):
            multipliers = solver.multipliers(state.t, state.q, state.u)
            size = 1.0 + np.abs(reference.multipliers).max()
            assert np.abs(multipliers - reference.multipliers).max() < SOLVE * size


@pytest.mark.parametrize(("name", "options"), SYSTEMS, ids=NAMES)
def test_canonical_parts_are_orthogonal_and_add_up(name: str, options: dict[str, Any]) -> None:
    solver = built_in_form(name, "canonical", **options)
    for state in states(name, **options):
        parts = solver.acceleration_parts(state.t, state.q, state.u)
        _, udot = solver.rhs(state.t, state.q, state.u)
        Q = solver.Q(state.t, state.q, state.u)
        scale = 1.0 + np.abs(udot).max()
        assert np.abs(parts.udot_constraint + parts.udot_momentum - udot).max() < EVALUATION * scale
        inertia = np.abs(Q).max()
        assert abs(parts.udot_constraint @ Q @ parts.udot_momentum) < SOLVE * inertia * scale**2
        size = 1.0 + np.abs(parts.wdot_constraint).max() + np.abs(parts.wdot_momentum).max()
        assert abs(parts.wdot_constraint @ parts.wdot_momentum) < SOLVE * size**2


def test_root_of_the_mass_matrix_has_the_right_derivative() -> None:
    """w = Q^1/2 u along the motion: w' by central differences of an integrated run against the two parts."""
    from scipy.linalg import sqrtm

    solver = built_in_form("spatial_chain", "canonical", n=2)
    start = states("spatial_chain", n=2)[1]
    h = 1e-4

    def w(t: float) -> np.ndarray:
        solution = solver.integrate((start.t, t), start.q, start.u, method="dop853", rtol=1e-13, atol=1e-13)
        return np.real(sqrtm(solver.Q(t, solution.q[-1], solution.u[-1]))) @ solution.u[-1]

    parts = solver.acceleration_parts(start.t, start.q, start.u)
    difference = (w(start.t + h) - w(start.t - h)) / (2 * h)
    # Truncation h^2 w'''/6 with w''' of order 10, rounding 1e-13 / h.
    assert np.allclose(parts.wdot_constraint + parts.wdot_momentum, difference, rtol=1e-6, atol=1e-6)


def test_range_space_has_no_branch() -> None:
    for name in ("rolling_disk", "slider_crank"):
        solver = built_in_form(name, "range_space")
        text = next(text for path, text in solver.extension.sources.files.items() if path.endswith(".c"))
        body = re.search(r"static int evaluate_rhs\(.*?\n}\n", text, re.DOTALL)
        assert body is not None
        assert not re.search(r"\b(if|for|while|switch)\b|&&|\|\|", body.group())


@pytest.mark.parametrize("form", ["pseudoinverse", "canonical"])
def test_duplicated_constraints_run_and_are_named(form: str) -> None:
    model = blocks(lambda x, y: [x - y, 2 * x - 2 * y])
    solver = kg.build(model, form=form)
    q, u = [0.5, 0.5], [0.2, 0.2]
    _, udot = solver.rhs(0.0, q, u)
    assert np.allclose(udot, [1.0, 1.0], rtol=EVALUATION)
    assert solver.rank(0.0, q, u) == 1
    assert solver.redundant_constraints(0.0, q, u) == ("2*x(t) - 2*y(t)",)
    assert np.allclose(solver.constraint_force(0.0, q, u), [-2.0, 2.0], rtol=EVALUATION)
    # The shortest multipliers share the load: lambda_1 + 2 lambda_2 = -2 with lambda_2 = 2 lambda_1.
    assert np.allclose(solver.multipliers(0.0, q, u), [-0.4, -0.8], rtol=EVALUATION)
    solution = solver.integrate((0.0, 1.0), q, u)
    assert np.allclose(solution.q[-1], 0.5 + 0.2 + 0.5, rtol=1e-9)


@pytest.mark.parametrize("name", ["T", "A", "B", "V"])
def test_what_needs_full_rank_says_so(name: str) -> None:
    solver = kg.build(blocks(lambda x, y: [x - y, 2 * x - 2 * y]), form="pseudoinverse")
    with raises(kg.SolveError, name):
        getattr(solver, name)(0.0, [0.5, 0.5], [0.2, 0.2])


@pytest.mark.parametrize("form", ["auto", "reduced", "nonminimal", "range_space", "articulated"])
def test_forms_that_need_full_rank_refuse_redundant_constraints(form: str) -> None:
    with raises(kg.BuildError, "2*x", "pseudoinverse"):
        kg.build(blocks(lambda x, y: [x - y, 2 * x - 2 * y]), form=form)


def parallelogram() -> kg.Model:
    """Four-bar chain of equal opposite bars in the plane, without gravity: its flat position is a toggle."""
    angles = me.dynamicsymbols("a1:4")
    speeds = me.dynamicsymbols("w1:4")
    inertial = me.ReferenceFrame("N")
    point = me.Point("O")
    point.set_vel(inertial, 0)
    lengths = (1, 2, 1)
    bodies = []
    for k, (angle, length) in enumerate(zip(angles, lengths, strict=True)):
        frame = me.ReferenceFrame(f"B{k}")
        frame.orient_axis(inertial, inertial.z, angle)
        center = point.locatenew(f"C{k}", sm.Rational(length, 2) * frame.x)
        point = point.locatenew(f"P{k}", length * frame.x)
        inertia = me.inertia(frame, 0, 0, sm.Rational(length**3, 12))
        bodies.append(me.RigidBody(f"bar{k}", center, frame, length, (inertia, center)))
    closure = [
        sum(length * sm.cos(a) for a, length in zip(angles, lengths, strict=True)) - 2,
        sum(length * sm.sin(a) for a, length in zip(angles, lengths, strict=True)),
    ]
    return kg.Model(
        name="parallelogram",
        frame=inertial,
        coordinates=angles,
        speeds=speeds,
        kinematics=[a.diff(TIME) - w for a, w in zip(angles, speeds, strict=True)],
        bodies=bodies,
        holonomic_constraints=closure,
        potential_energy=0,
    )


def test_four_bar_runs_through_its_toggle() -> None:
    solver = kg.build(parallelogram(), form="pseudoinverse")
    q = np.array([1.0, 0.0, 1.0 + np.pi])
    u = np.array([-1.3, 0.0, -1.3])
    flat = [0.0, 0.0, np.pi]
    assert solver.rank(0.0, q, u) == 2
    assert solver.rank(0.0, flat, u) == 1
    assert np.all(np.isfinite(solver.rhs(0.0, flat, u)[1]))
    energy = solver.energy(0.0, q, u)
    # The parallelogram turns at the constant rate 1.3 rad/s; flat at 1 / 1.3 s, where other branches meet.
    solution = solver.integrate((0.0, 1.5), q, u, rtol=1e-10, atol=1e-12)
    assert abs(solver.energy(1.5, solution.q[-1], solution.u[-1]) - energy) < 1e-6 * energy
    assert np.allclose(solution.q[-1], q - 1.3 * 1.5 * np.array([1.0, 0.0, 1.0]), atol=1e-5)


def massless_second(constraints: Any = None) -> kg.Model:
    """A mass on the first block alone, the second one pushed."""
    return blocks(constraints, masses=(2, 0), pushed=1)


def test_massless_speed_is_named_where_nothing_determines_it() -> None:
    with raises(kg.BuildError, "v", "mass"):
        kg.build(massless_second())
    for form in (form for form in UNPARTITIONED if FORMS[form].definite):
        with raises(kg.BuildError, "v", "mass"):
            kg.build(massless_second(lambda x, y: [x - y]), form=form)


@pytest.mark.parametrize("form", ["auto", "augmented"])
def test_massless_speed_that_a_constraint_determines(form: str) -> None:
    solver = kg.build(massless_second(lambda x, y: [x - 2 * y]), form=form)
    _, udot = solver.rhs(0.0, [1.0, 0.5], [0.0, 0.0])
    assert np.allclose(udot, [0.75, 0.375], rtol=EVALUATION)


def particle_on_a_ball_joint() -> kg.Model:
    """Q is m (d.d - d d^T) in numbers: its rank is 2, and its last pivot is zero but for rounding."""
    N, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("B"), me.Point("O")
    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    B.orient_body_fixed(N, q, "ZXZ")
    rates = B.ang_vel_in(N).to_matrix(B)
    B.set_ang_vel(N, sum((speed * axis for speed, axis in zip(u, B, strict=True)), me.Vector(0)))
    O.set_vel(N, 0)
    P = O.locatenew("P", 0.2 * B.x + 0.3 * B.y + 0.5 * B.z)
    return kg.Model(
        name="particle on a ball joint",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=list(rates - sm.Matrix(u)),
        bodies=[me.Particle("P", P, 1.3)],
        gravity=-9.81 * N.z,
    )


@pytest.mark.parametrize("form", ["auto", "reduced", "articulated", "augmented", "canonical"])
def test_masses_that_vanish_but_for_rounding(form: str) -> None:
    with raises((kg.BuildError, kg.SolveError), "singular" if form in ("auto", "canonical") else "mass"):
        kg.build(particle_on_a_ball_joint(), form=form).rhs(0.0, [0.1, 0.5, 0.2], [0.2, 0.3, 0.4])


def test_many_speeds_are_solved_by_the_kernel() -> None:
    n = SQUARE_LIMIT + 3
    solver = kg.build(model_of("n_link_pendulum", n=n), form="reduced", functions=["rhs", "Q", "P"])
    assert "kg_cholesky_solve" in solver.extension.sources.text(f"n_link_pendulum_{n}.c")
    q, u = 0.3 * np.sin(np.arange(n + 1)), np.cos(np.arange(n + 1))
    udot = np.linalg.solve(solver.Q(0.0, q, u), solver.P(0.0, q, u))
    assert np.allclose(solver.rhs(0.0, q, u)[1], udot, rtol=SOLVE, atol=SOLVE * np.abs(udot).max())
