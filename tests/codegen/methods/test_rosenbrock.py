"""The stiff integrator: its coefficients, its stability, and stiff problems with known solutions."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import steppers as st
from ccompile import host_source, shared_library
from messages import raises
from steppers import Host
from tolerances import CONVERGENCE_ORDER, ROSENBROCK_FACTORS, STIFF_PROPORTIONALITY

from kanegen.codegen.methods import files
from kanegen.codegen.methods.tableaux import all_trees

RODAS = files.METHODS["rodas"].coefficients

# Van der Pol's equation with epsilon = 1e-6 from (2, 0) at t = 2: IVP test set, Mazzia and Magherini (2008), VDPOL.
VAN_DER_POL_END = [1.706167732170469, -0.8928097010248125]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    return Host(tmp_path_factory.mktemp("rosenbrock"))


def test_every_order_condition_up_to_the_claimed_order_holds() -> None:
    assert RODAS.defects(all_trees(RODAS.order)) == []
    assert len(all_trees(RODAS.order)) == 8


def test_claiming_a_higher_order_is_refused() -> None:
    with raises(ValueError, "solution"):
        replace(RODAS, order=RODAS.order + 1)
    with raises(ValueError, "dense output"):
        replace(RODAS, dense_order=RODAS.dense_order + 1)


@pytest.mark.parametrize("field", ["a", "C", "dense"])
def test_a_wrong_digit_of_any_coefficient_is_refused(field: str) -> None:
    """The last digit that is printed, up to the rounding of the conditions, of each coefficient by itself."""
    rows = getattr(RODAS, field)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            spoiled = [list(values) for values in rows]
            spoiled[i][j] = value + Fraction(1, 10**11)
            if field == "dense" and j == RODAS.stages - 1:
                continue  # the last stage is the error estimate, of too high an order for the conditions
            with raises(ValueError, "coefficients"):
                replace(RODAS, **{field: tuple(map(tuple, spoiled))})


@pytest.mark.parametrize("field", ["c", "d", "m"])
def test_a_wrong_digit_of_a_node_or_weight_is_refused(field: str) -> None:
    values = getattr(RODAS, field)
    for i in range(len(values)):
        spoiled = [x + Fraction(i == j, 10**11) for j, x in enumerate(values)]
        with raises(ValueError, "coefficients"):
            replace(RODAS, **{field: tuple(spoiled)})


def test_rows_of_a_wrong_shape_are_refused() -> None:
    with raises(ValueError, "row 0 of a", "explicit"):
        replace(RODAS, a=((Fraction(1),), *RODAS.a[1:]))
    with raises(ValueError, "6", "weights"):
        replace(RODAS, dense=RODAS.dense[:1])


def test_the_method_is_l_stable() -> None:
    """|R| <= 1 on the imaginary axis, no pole to its left (gamma > 0), and R vanishes at infinity."""
    axis = [RODAS.growth(1j * y) for y in np.geomspace(1e-3, 1e4, 400)]
    assert max(map(abs, axis)) < 1.0 + 1e-12
    assert abs(RODAS.growth(-1e8)) < 1e-6
    assert RODAS.growth(0.01) == pytest.approx(np.exp(0.01), abs=1e-11)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_one_factorization_serves_several_solves(n: int, tmp_path: Path) -> None:
    library = shared_library(host_source("factored.c"), tmp_path)
    random = np.random.default_rng(n)
    matrix = random.normal(size=(n, n)) + np.eye(n)[::-1]
    factors, pivots = matrix.copy(), np.empty(n)
    assert library.factor(n, st.pointer(factors), st.pointer(pivots)) == 0
    for _ in range(3):
        solution = random.normal(size=n)
        right = matrix @ solution
        library.substitute(n, st.pointer(factors), st.pointer(pivots), st.pointer(right))
        np.testing.assert_allclose(right, solution, rtol=ROSENBROCK_FACTORS, atol=ROSENBROCK_FACTORS)
    singular = np.ones((n, n)) * (n > 1)
    assert library.factor(n, st.pointer(singular), st.pointer(pivots)) == st.SINGULAR


@pytest.mark.parametrize("tolerance", [1e-4, 1e-7, 1e-10])
def test_the_problem_of_prothero_and_robinson(host: Host, tolerance: float) -> None:
    """y' = -1e6 (y - cos t) - sin t: an explicit method needs some 3e6 steps."""
    run = host.integrate("rodas", st.STIFF, (1.5,), 0.0, 10.0, rtol=tolerance, atol=tolerance)
    assert run.status == st.FINISHED
    assert run.statistics.steps < 400
    assert abs(run.y[-1, 0] - np.cos(10.0)) < STIFF_PROPORTIONALITY * tolerance


@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-8])
def test_van_der_pol(host: Host, tolerance: float) -> None:
    run = host.integrate("rodas", st.VAN_DER_POL, (2.0, 0.0), 0.0, 2.0, rtol=tolerance, atol=tolerance)
    assert run.status == st.FINISHED
    assert run.statistics.steps < 4000
    assert np.abs(run.y[-1] - VAN_DER_POL_END).max() < STIFF_PROPORTIONALITY * tolerance


def test_dense_output_keeps_its_order_on_a_stiff_problem(host: Host) -> None:
    times = np.linspace(0.5, 10.0, 201)
    errors = []
    for largest in (0.4, 0.2, 0.1):
        run = host.integrate("rodas", st.STIFF, (1.0,), 0.0, 10.0, t_eval=times, max_step=largest)
        errors.append(np.abs(run.queried[:, 0] - np.cos(times)).max())
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx([4.0, 4.0], abs=CONVERGENCE_ORDER)


def test_the_work_is_counted(host: Host) -> None:
    run = host.integrate("rodas", st.VAN_DER_POL, (2.0, 0.0), 0.0, 2.0)
    statistics = run.statistics
    assert statistics.rejected > 0
    assert statistics.jacobians == statistics.steps
    assert statistics.factorizations == statistics.steps + statistics.rejected
    explicit = host.integrate("dopri5", st.SMOOTH, tuple(st.exact(0.0)), 0.0, 2.0).statistics
    assert (explicit.jacobians, explicit.factorizations) == (0, 0)


def test_a_problem_without_a_jacobian_is_refused(host: Host, tmp_path: Path) -> None:
    library: ctypes.CDLL = shared_library(host_source("no_jacobian.c"), tmp_path)
    assert library.start(st.METHODS["rodas"]) == st.INVALID
    assert library.start(st.METHODS["dopri5"]) == 0
