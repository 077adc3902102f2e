"""Functions that a large model leaves out are built when they are first used; here every model counts as large."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from systems import model_of

import kanegen as kg
from kanegen.program.assemble import LARGE

INERTIA = np.array([2.0, 3.0, 5.0])
Q, U = np.array([0.5, 0.5, 0.5, 0.5]), np.array([0.3, -0.2, 0.4])


@pytest.fixture(autouse=True)
def every_model_is_large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr("kanegen.program.assemble.LARGE", -1)
        yield


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
