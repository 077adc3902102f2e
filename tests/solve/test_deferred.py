"""Functions that a large model leaves out are built when they are first used; here every model counts as large."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from matplotlib.figure import Figure
from messages import raises
from systems import initial, model_of, solver_for

import kanegen as kg
from kanegen.program.assemble import LARGE

INERTIA = np.array([2.0, 3.0, 5.0])
MASS, GRAVITY = 1.5, 9.81
Q, U = np.array([0.5, 0.5, 0.5, 0.5]), np.array([0.3, -0.2, 0.4])


@pytest.fixture(autouse=True)
def every_model_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kanegen.program.assemble.LARGE", -1)


def body(name: str) -> kg.Model:
    """A free body about a fixed point, by Euler parameters; the output ``spin`` is its angular momentum about x."""
    e = e0, e1, e2, e3 = me.dynamicsymbols("e0:4")
    w, t = me.dynamicsymbols("w1:4"), me.dynamicsymbols._t
    N, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("B"), me.Point("O")
    O.set_vel(N, 0)
    B.orient_quaternion(N, e)
    B.set_ang_vel(N, w[0] * B.x + w[1] * B.y + w[2] * B.z)
    rates = sm.Matrix([[-e1, -e2, -e3], [e0, -e3, e2], [e3, e0, -e1], [-e2, e1, e0]]) * sm.Matrix(w) / 2
    inertias = sm.symbols("I1:4")
    return kg.Model(
        name=name,
        frame=N,
        coordinates=e,
        speeds=w,
        kinematics=[x.diff(t) - rate for x, rate in zip(e, rates, strict=True)],
        bodies=[me.RigidBody("body", O, B, 1, (me.inertia(B, *inertias), O))],
        potential_energy=0,
        parameters=dict(zip(inertias, INERTIA, strict=True)),
        outputs={"spin": inertias[0] * w[0]},
    )


@cache
def solver() -> kg.Solver:
    """The solver of the body; built once, by the first test."""
    return kg.build(body("deferred body"))


@cache
def bead() -> kg.Solver:
    """A bead on a wire y = x^2 in the vertical plane, with a force along x."""
    x, y, vx, vy, force = me.dynamicsymbols("x y vx vy force")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, vx * N.x + vy * N.y)
    model = kg.Model(
        name="deferred bead",
        frame=N,
        coordinates=[x, y],
        speeds=[vx, vy],
        kinematics=[x.diff() - vx, y.diff() - vy],
        bodies=[me.Particle("bead", P, MASS)],
        loads=[(P, force * N.x)],
        gravity=-GRAVITY * N.y,
        holonomic_constraints=[y - x**2],
        inputs=[force],
        initial={x: 0.0, y: 0.0},
    )
    return kg.build(model)


def test_functions_that_no_run_needs_are_left_out() -> None:
    d = solver().description
    assert set(d.functions) == {"rhs", "residuals", "displacements", "position_level"}
    assert {"Q", "energy", "momentum", "output:spin"} <= set(d.deferred)
    assert "energy" in repr(solver()._repr_html_())


def test_functions_left_out_have_their_values() -> None:
    s = solver()
    assert s.energy(0.0, Q, U) == pytest.approx(U @ (INERTIA * U) / 2, rel=1e-14)
    assert s.kinetic_energy(0.0, Q, U) == s.energy(0.0, Q, U)
    np.testing.assert_array_equal(s.Q(0.0, Q, U), np.diag(INERTIA))
    assert s.output("spin", 0.0, Q, U) == s.outputs(0.0, Q, U)["spin"] == pytest.approx(INERTIA[0] * U[0], rel=1e-15)
    assert s.with_parameters(I1=4.0).output("spin", 0.0, Q, U) == 4.0 * U[0]
    states = np.tile(U, (5, 1)) * np.arange(5.0)[:, None]
    np.testing.assert_array_equal(s.batch("energy", 0.0, Q, states).values, s.energy(0.0, Q, states))


def test_corrections_and_projections_use_functions_left_out() -> None:
    s = solver()
    q, _ = s.make_consistent(0.0, 1.1 * Q, U)
    np.testing.assert_allclose(q, Q, rtol=1e-14)
    run = s.with_stabilization(kg.Projection()).integrate((0.0, 20.0), Q, U, rtol=1e-3, atol=1e-3)
    drifting = s.integrate((0.0, 20.0), Q, U, rtol=1e-3, atol=1e-3)
    assert abs(np.linalg.norm(run.q[-1]) - 1.0) < 1e-12 < abs(np.linalg.norm(drifting.q[-1]) - 1.0)
    np.testing.assert_allclose(run.outputs["spin"], INERTIA[0] * run.u[:, 0], rtol=1e-15)
    assert run.run.digest == s.extension.digest  # a saved run belongs to the solver that was built


def test_functions_left_out_of_a_model_with_states() -> None:
    motor: Any = model_of("dc_motor_arm").changed(name="deferred motor")
    s, values = kg.build(motor), ([0.3], [-0.2], None, [1.5, 0.4])
    assert {"energy", "output:v"} <= set(s.description.deferred)
    small = solver_for("dc_motor_arm")
    assert s.outputs(0.0, *values) == pytest.approx(small.outputs(0.0, *values), rel=1e-14)
    assert s.energy(0.0, *values) == pytest.approx(small.energy(0.0, *values), rel=1e-14)


def test_impulses_use_functions_left_out() -> None:
    """A bead on a wire y = x^2, which an impulse along x sets in motion."""
    s, x = bead(), 0.3
    after = s.impulse(0.0, [x, x * x], [0.0, 0.0], [1.0, 0.0])
    v = 1.0 / (MASS * (1.0 + 4.0 * x**2))
    np.testing.assert_allclose(after.u, [v, 2.0 * x * v], rtol=1e-14)
    np.testing.assert_allclose(np.abs(after.multipliers), [2.0 * MASS * x * v], rtol=1e-14)


def test_inverse_dynamics_uses_functions_left_out() -> None:
    """The force along x that moves the bead; y = t^2 / 4 follows from x = t / 2."""
    found = bead().inverse_dynamics({"x": me.dynamicsymbols._t / 2}, [0.0, 1.0, 2.0])
    np.testing.assert_allclose(found.q[:, 1], [0.0, 0.25, 1.0], rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(found.controls[:, 0], MASS * (0.5 + GRAVITY) * np.array([0.0, 1.0, 2.0]), atol=1e-13)


def test_ensembles_of_motions_with_contacts_reduce_quantities_left_out() -> None:
    pendulum: Any = model_of("impacting_pendulum").changed(name="deferred impacts")
    s, start = kg.build(pendulum), initial("impacting_pendulum")
    assert "energy" in s.description.deferred
    arguments = (0.0, 1.5), start["q"], start["u"]
    lost = s.integrate_many(*arguments, reduce=("max_change", "energy"))
    energy = solver_for("impacting_pendulum").integrate(*arguments).energy
    np.testing.assert_allclose(lost.values, np.abs(energy - energy[0]).max(), rtol=1e-9)


def test_plots_show_functions_left_out() -> None:
    """The bead slides along the wire: residuals at two levels, the error of the energy, and the multiplier."""
    run = bead().integrate((0.0, 0.5), [0.3, 0.09], [0.0, 0.0], r=[0.0])
    assert len(kg.plot.drift(run, ax=Figure())) == 3
    multipliers = run.plot("multipliers", ax=Figure())[0].get_lines()[0].get_ydata()
    np.testing.assert_array_equal(multipliers, run.multipliers[:, 0])
    assert run.plot(ax=Figure())[-1].get_ylabel() == "multipliers"


def test_threads_share_functions_left_out() -> None:
    s = kg.build(body("deferred body"))
    with ThreadPoolExecutor(4) as pool:
        values = list(pool.map(lambda k: s.P(0.0, Q, k * U), range(8)))
    np.testing.assert_allclose(values[1], [2 * U[1] * U[2] * -1, 3 * U[0] * U[2], -U[0] * U[1]], rtol=1e-14)


UNPICKLED = """
import pickle, sys
import numpy as np
solver = pickle.loads(sys.stdin.buffer.read())
q, u = np.full(4, 0.5), np.ones(3)
print(solver.energy(0.0, q, u))
try:
    solver.V(0.0, q, u)
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_pickle_has_what_was_built_before_and_names_what_it_lacks() -> None:
    s = kg.build(body("pickled body"))
    assert s.energy(0.0, Q, np.ones(3)) == 5.0
    assert pickle.loads(pickle.dumps(s)).momentum(0.0, Q, U)[2] == INERTIA[2] * U[2]  # the model is known here
    result = subprocess.run([sys.executable, "-c", UNPICKLED], input=pickle.dumps(s), capture_output=True, check=False)
    lines = result.stdout.decode().splitlines()
    assert lines[0] == "5.0", result.stderr.decode()
    for name in ("BuildError", "V", "pickled body", "functions="):
        assert name in lines[1]


def test_a_missing_compiler_names_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    s = kg.build(body("body without compiler"))
    monkeypatch.setenv("CC", "/nowhere/cc")
    assert s.rhs(0.0, Q, U)[1].shape == (3,)
    with raises(kg.BuildError, "T", "body without compiler", "CC", "/nowhere/cc"):
        s.T(0.0, Q, U)


def test_the_interpreted_back_end_derives_functions_left_out() -> None:
    s: Any = kg.build(body("interpreted body"), backend="interpreted")
    assert "energy" not in s.description.functions
    for each in (s, pickle.loads(pickle.dumps(s))):
        assert each.energy(0.0, Q, U) == pytest.approx(U @ (INERTIA * U) / 2, rel=1e-14)


def test_functions_that_are_named_are_built_at_once() -> None:
    s = kg.build(body("named body"), functions=("rhs", "energy"), backend="interpreted")
    assert "energy" in s.description.functions
    assert not s.description.deferred


def test_constraints_keep_the_mass_matrix() -> None:
    crank: Any = model_of("slider_crank").changed(name="deferred crank")
    d = kg.build(crank, backend="interpreted").description
    assert "Q" in d.functions
    assert {"energy", "output:guide"} <= set(d.deferred)


def test_small_models_leave_out_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:  # which ends before that of the fixture, so that the latter restores LARGE
        patch.setattr("kanegen.program.assemble.LARGE", LARGE)
        assert not kg.build(body("small body"), backend="interpreted").description.deferred


def test_ensembles_reduce_quantities_left_out() -> None:
    starts = U * np.arange(1.0, 4.0)[:, None]
    many = solver().integrate_many((0.0, 1.0), Q, starts, reduce="energy")
    np.testing.assert_allclose(many.values, starts**2 @ INERTIA / 2, rtol=1e-5)
