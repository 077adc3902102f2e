"""Tables of states in JAX, CasADi, FMUs and emitted C: values, derivatives, and values that are parameters."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import fmus
import numpy as np
import pytest
import sympy.physics.mechanics as me
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline, RectBivariateSpline
from state_models import point_mass

import kanegen as kg

pytestmark = pytest.mark.target

x, v = me.dynamicsymbols("x v")
POINTS, LINES = np.array([-2.0, -0.7, 0.1, 2.0]), np.array([-3.0, -1.0, 1.0, 3.0])
LAW, FIELD = np.array([-3.0, 0.2, 0.4, 2.5]), np.random.default_rng(9).normal(size=(4, 4))
law = kg.Table(POINTS, LAW, name="law", parameters=True)
field = kg.Table(POINTS, LINES, FIELD, name="field", parameters=True, extrapolate="constant")
fixed = kg.Table(POINTS, LINES, FIELD, name="fixed")
Y = np.array([0.3, 0.4])


@cache
def model() -> kg.Model:
    force = -law(x) - field(x, v) - fixed(x, v) - 2 * v
    return point_mass(
        "tabled", force, parameters={"m": 1.0, **law.parameters, **field.parameters}, initial={x: 0.3, v: 0.4}
    )


def force(y: NDArray[np.float64], dx: int = 0, dv: int = 0) -> float:
    """By SciPy: the force, or a derivative."""
    surface = 2 * RectBivariateSpline(POINTS, LINES, FIELD).ev(*y, dx, dv)
    own = CubicSpline(POINTS, LAW)(y[0], dx) if dv == 0 else 0.0
    return float(-own - surface - (2 * y[1] if dx + dv == 0 else 2.0 if (dx, dv) == (0, 1) else 0.0))


def test_jax(tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        equations = kg.derive(model()).to_jax()
        rates = lambda q, u, p: equations.rhs(0.0, jax.numpy.concatenate([q, u]), p=p)[1]  # noqa: E731
        p = np.array(list(equations.PARAMETERS.values()))
        assert rates(Y[:1], Y[1:], p) == pytest.approx(force(Y), abs=1e-12)
        slopes = jax.jit(jax.jacfwd(rates, (0, 1, 2)))(Y[:1], Y[1:], p)
        assert [slopes[0][0], slopes[1][0]] == pytest.approx([force(Y, 1), force(Y, 0, 1)], abs=1e-12)
        curvature = jax.hessian(rates)(Y[:1], Y[1:], p)
        assert curvature[0, 0] == pytest.approx(force(Y, 2), abs=1e-11)
        k = list(equations.PARAMETERS).index("law_2")
        assert slopes[2][k] == pytest.approx(-CubicSpline(POINTS, np.eye(4)[2])(Y[0]), abs=1e-12)
        level = kg.Table(POINTS, np.ones(4), kind="monotone", name="level", parameters=True)
        equations = kg.derive(point_mass("level", -level(x), parameters={"m": 1.0, **level.parameters})).to_jax()
        slope = jax.grad(lambda values: equations.rhs(0.0, Y, p=values)[1])(np.array([*equations.PARAMETERS.values()]))
        assert np.isfinite(slope).all()  # where the points are level, a quotient of the slopes is 0/0
        assert slope[list(equations.PARAMETERS).index("level_2")] < 0.0
    finally:
        jax.config.update("jax_enable_x64", before)


def test_casadi(tmp_path: Path) -> None:
    casadi = pytest.importorskip("casadi")
    folder = kg.emit_casadi(model(), tmp_path / "tabled")
    subprocess.run(["make", "-s"], cwd=folder, check=True)
    library = casadi.Importer(str(folder / "tabled_casadi.so"), "dll")
    y, p = casadi.MX.sym("y", 2), casadi.external("tabled_defaults", library)()["p"]
    rate = casadi.external("tabled_dynamics", library)(y, [], p)[1]
    J, H = (casadi.Function("f", [y], [form(rate, y)[0] if form is casadi.hessian else form(rate, y)])(Y)
            for form in (casadi.jacobian, casadi.hessian))  # fmt: skip
    assert np.array(J).ravel() == pytest.approx([force(Y, 1), force(Y, 0, 1)], abs=1e-12)
    expected = [[force(Y, 2), force(Y, 1, 1)], [force(Y, 1, 1), force(Y, 0, 2)]]
    assert np.array(H) == pytest.approx(np.array(expected), abs=1e-11)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # FMPy's, of answers to a callback
def test_fmu(tmp_path: Path) -> None:
    """A value of a table is a parameter of the FMU."""
    fmpy = pytest.importorskip("fmpy")
    path = kg.export_fmu(model(), tmp_path / "tabled.fmu", compiler=fmus.FAST)
    solver = kg.build(model(), functions=("rhs",))
    for values in ({}, {"law_2": 0.9, "field_2_2": 1.0}):
        result = fmpy.simulate_fmu(str(path), start_values=values, stop_time=1.0, output=["x"], relative_tolerance=1e-8)
        expected = solver.with_parameters(values).integrate((0.0, 1.0), Y[:1], Y[1:], rtol=1e-9).q[-1, 0]
        assert result["x"][-1] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("precision", ["double", "float"])
def test_emitted_project(tmp_path: Path, precision: str) -> None:
    """Its self-test compares with values that were computed in 50 digits."""
    folder = kg.emit(model(), tmp_path / precision, precision=precision)
    subprocess.run(["make", "-s", "selftest"], cwd=folder, check=True)
    done = subprocess.run(["./selftest"], cwd=folder, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
