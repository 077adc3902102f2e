"""The back end without a compiler: its functions and runs are those of compiled code, and what it lacks is named."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hybrid_models import rough_block
from systems import example

import kanegen as kg
from kanegen.backends.registry import backend

rolling_disk = example("rolling_disk")
START = (rolling_disk.INITIAL["t"], np.array(rolling_disk.INITIAL["q"]), np.array(rolling_disk.INITIAL["u"]))


@pytest.fixture(scope="module")
def interpreted() -> kg.Solver:
    return kg.build(rolling_disk.model(), backend="interpreted")


@pytest.fixture(scope="module")
def compiled() -> kg.Solver:
    return kg.build(rolling_disk.model())


@pytest.mark.parametrize("name", ["T", "V", "Q", "multipliers", "energy", "momentum"])
def test_functions_agree_with_compiled_ones(interpreted: kg.Solver, compiled: kg.Solver, name: str) -> None:
    np.testing.assert_allclose(
        getattr(interpreted, name)(*START), getattr(compiled, name)(*START), rtol=1e-12, atol=1e-12
    )


def test_the_right_hand_side_and_the_residuals_agree(interpreted: kg.Solver, compiled: kg.Solver) -> None:
    for mine, other in zip(interpreted.rhs(*START), compiled.rhs(*START), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-12)
    for mine, other in zip(interpreted.residuals(*START), compiled.residuals(*START), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-12)


@pytest.mark.parametrize("method", ["dopri5", "dop853"])
def test_runs_agree_with_compiled_ones(interpreted: kg.Solver, compiled: kg.Solver, method: str) -> None:
    arguments = ((0.0, 0.2), *START[1:])
    mine = interpreted.integrate(*arguments, method=method, rtol=1e-9, atol=1e-9)
    other = compiled.integrate(*arguments, method=method, rtol=1e-11, atol=1e-11)
    assert mine.status is kg.Outcome.FINISHED
    assert mine.statistics.steps == len(mine.t) - 1
    for t in (0.1, 0.12345, 0.2):
        for one, two in zip(mine(t), other(t), strict=True):
            np.testing.assert_allclose(one, two, atol=1e-6)
    requested = interpreted.integrate(*arguments, method=method, rtol=1e-9, atol=1e-9, t_eval=[0.0, 0.1, 0.2])
    np.testing.assert_array_equal(requested.t, [0.0, 0.1, 0.2])
    np.testing.assert_allclose(requested.q[1], mine(0.1)[0], atol=1e-12)


def test_a_run_that_is_too_long_keeps_its_part(interpreted: kg.Solver) -> None:
    with pytest.raises(kg.IntegrationError, match="max_steps") as failure:
        interpreted.integrate((0.0, 5.0), *START[1:], max_steps=3)
    assert failure.value.solution.statistics.steps == 3


def test_what_is_not_supported_is_named(interpreted: kg.Solver) -> None:
    with pytest.raises(kg.SolveError, match="verner9"):
        interpreted.integrate((0.0, 0.1), *START[1:], method="verner9")
    with pytest.raises(kg.SolveError, match="projection"):
        interpreted.with_stabilization(kg.Projection()).integrate((0.0, 0.1), *START[1:])
    with pytest.raises(kg.BuildError, match="no contacts"):
        kg.build(rough_block(), backend="interpreted")
    with pytest.raises(kg.BuildError, match="fortran"):
        backend("fortran")


def test_a_solver_pickles(interpreted: kg.Solver) -> None:
    copy = pickle.loads(pickle.dumps(interpreted))
    np.testing.assert_array_equal(copy.rhs(*START)[1], interpreted.rhs(*START)[1])
