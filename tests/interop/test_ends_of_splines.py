"""Splines that end, in JAX, CasADi and FMUs: values and derivatives inside, and none beyond."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import fmus
import numpy as np
import pytest
import sympy.physics.mechanics as me
from scipy.interpolate import CubicSpline
from state_models import point_mass

import kanegen as kg

pytestmark = pytest.mark.target

x = me.dynamicsymbols("x")
POINTS, HEIGHTS = [-1.0, -0.5, 0.0, 0.5, 1.0], [1.0, 0.3, 0.05, 0.2, 1.0]
INSIDE, BEYOND = (0.3, 0.1), (1.3, 0.1)


@cache
def model(extrapolate: str = "error") -> kg.Model:
    """A unit mass on which the force -s(x) x acts; the name of the spline is not ASCII."""
    spline = kg.Spline(POINTS, HEIGHTS, name="courbe θ", extrapolate=extrapolate)
    return point_mass("ending", -spline(x) * x, parameters={"m": 1.0}, outputs={"s": spline(x)})


def force(at: float, order: int = 0) -> float:
    """-s(x) x or its derivatives, by SciPy."""
    s = CubicSpline(POINTS, HEIGHTS)
    return float([-s(at) * at, -s(at) - s(at, 1) * at, -2 * s(at, 1) - s(at, 2) * at][order])


@pytest.fixture
def jax() -> Iterator[Any]:
    library = pytest.importorskip("jax")
    before = library.config.jax_enable_x64
    library.config.update("jax_enable_x64", True)
    yield library
    library.config.update("jax_enable_x64", before)


def test_jax_has_no_value_beyond_the_end(jax: Any) -> None:
    """Rows of a batch that leave the spline are NaN, the others are not; so are derivatives."""
    f = kg.interop.jax.ode(kg.build(model(), functions=("rhs", "jacobians")))
    y = np.array([INSIDE, BEYOND, (1.0, 0.0)])
    values = np.asarray(jax.vmap(lambda y: f(0.0, y))(y))
    slopes = np.asarray(jax.jit(jax.vmap(jax.jacfwd(lambda y: f(0.0, y))))(y))
    assert np.isnan(values[1]).all()
    assert np.isnan(slopes[1]).all()
    for k in (0, 2):
        assert values[k] == pytest.approx([y[k, 1], force(y[k, 0])], abs=1e-14)
        assert slopes[k] == pytest.approx(np.array([[0, 1], [force(y[k, 0], 1), 0]]), abs=1e-13)


@pytest.mark.parametrize("extrapolate", ["constant", "polynomial"])
def test_jax_beyond_an_end_that_goes_on(jax: Any, extrapolate: str) -> None:
    f = kg.interop.jax.ode(kg.build(model(extrapolate), functions=("rhs", "jacobians")))
    expected = (-1.3, -1.0) if extrapolate == "constant" else (force(1.3), force(1.3, 1))
    assert f(0.0, np.array(BEYOND))[1] == pytest.approx(expected[0], rel=1e-13)
    assert jax.jacfwd(f, 1)(0.0, np.array(BEYOND))[1, 0] == pytest.approx(expected[1], rel=1e-13)


def test_casadi_fails_beyond_the_end(tmp_path: Path) -> None:
    casadi = pytest.importorskip("casadi")
    folder = kg.emit_casadi(model(), tmp_path / "ending")
    subprocess.run(["make", "-s"], cwd=folder, check=True)
    library = casadi.Importer(str(folder / "ending_casadi.so"), "dll")
    y, p = casadi.MX.sym("y", 2), casadi.external("ending_defaults", library)()["p"]
    rates = casadi.external("ending_dynamics", library)(y, [], p)
    functions = {
        0: casadi.Function("f", [y], [rates[1]]),
        1: casadi.Function("J", [y], [casadi.jacobian(rates[1], y)[0]]),
        2: casadi.Function("H", [y], [casadi.hessian(rates[1], y)[0][0, 0]]),
    }
    for order, function in functions.items():
        assert float(function(INSIDE)) == pytest.approx(force(INSIDE[0], order), rel=1e-13)
        with pytest.raises(RuntimeError, match="Evaluation failed"):
            function(BEYOND)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # FMPy's, of answers to a callback
@pytest.mark.parametrize("kind", ["ModelExchange", "CoSimulation"])
def test_an_fmu_stops_at_the_end(tmp_path: Path, kind: str) -> None:
    """From x = 0.9 outward; its log names the spline, its interval, the time and the argument."""
    fmpy = pytest.importorskip("fmpy")
    path = kg.export_fmu(model(), tmp_path / "ending.fmu", values={"x": 0.9, "v": 3.0}, compiler=fmus.FAST)
    log: list[str] = []
    with pytest.raises(Exception, match=r"discard|CVode|error"):
        fmpy.simulate_fmu(
            str(path), fmi_type=kind, stop_time=1.0, logger=lambda *arguments: log.append(arguments[-1].decode())
        )
    message = next(line for line in log if "courbe θ" in line)
    found = re.search(
        r"at t = (\S+): the motion leaves .*, which has values from (\S+) to (\S+) only; .* (\S+)$", message
    )
    assert found, message
    time, lowest, highest, argument = map(float, found.groups())
    assert (lowest, highest) == (POINTS[0], POINTS[-1])
    assert argument == pytest.approx(highest, abs=0.05)
    assert 0.0 < time < 1.0
