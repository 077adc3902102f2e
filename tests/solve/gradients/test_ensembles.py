"""Derivatives of ensembles are those of their motions."""

from __future__ import annotations

import numpy as np
import pytest
from messages import raises
from numpy.testing import assert_array_equal
from systems import initial, solver_for

import kanegen as kg


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("times", [None, (0.0, 0.3, 0.5)])
def test_ensembles_have_the_derivatives_of_their_motions(threads: int, times: tuple[float, ...] | None) -> None:
    solver, start = solver_for("slider_crank"), initial("slider_crank")
    masses, names = np.array([0.8, 1.0, 1.3, 1.7]), ("m2", "tau")
    run = (0.0, 0.5), start["q"], start["u"]
    parameters = {"m2": masses}
    many = solver.integrate_many(*run, parameters=parameters, t_eval=times, sensitivities=names, threads=threads)
    assert many.sensitivities is not None
    assert many.sensitivities.matrix.shape[2:] == (len(solver.description.components), 2)
    for k, mass in enumerate(masses):
        one = solver.with_parameters({"m2": mass}).integrate(*run, t_eval=times, sensitivities=names)
        wanted = one.sensitivities.matrix if times else one.sensitivities.matrix[-1:]
        assert_array_equal(many.sensitivities.matrix[k], wanted)
        assert_array_equal(many.q[k], one.q if times else one.q[-1:])
    assert_array_equal(many.sensitivities["theta", "tau"], many.sensitivities.matrix[:, :, 0, 1])


def test_a_motion_without_derivative_has_none_alone() -> None:
    """The second ball comes to rest after infinitely many impacts."""
    solver = solver_for("bouncing_ball")
    with pytest.warns(kg.ModelWarning, match="infinitely many impacts"):
        many = solver.integrate_many((0.0, 3.0), {"z": np.array([4.0, 0.3])}, {"u1": 0.0}, sensitivities="e")
    assert many.sensitivities is not None
    assert np.isfinite(many.sensitivities.matrix[0]).all()
    assert np.isnan(many.sensitivities.matrix[1]).all()
    assert many.success.all()


def test_wrong_arguments_are_named() -> None:
    solver = solver_for("bouncing_ball")
    run = (0.0, 0.3), {"z": 1.0}, {"u1": 0.0}
    with raises(kg.SolveError, "sensitivities", "'mass'"):
        solver.integrate_many(*run, sensitivities="mass")
    with raises(kg.SolveError, "no derivatives of reductions"):
        solver.integrate_many(*run, sensitivities="e", reduce="energy")
