"""The norm of Euler parameters: a configuration constraint that the kinematical equations keep by themselves."""

from __future__ import annotations

import numpy as np
import pytest
from idioms import IDIOMS
from tolerances import PROJECTED

import kanegen as kg

VALUES = {"m": 1.0, "g": 9.81, "l": 0.5, "Ix": 1.0, "Iy": 1.0, "Iz": 0.5}


@pytest.mark.parametrize("choice", [None, "enforce", "ignore"])
def test_the_norm_is_implied_whatever_the_choice(choice: str | None) -> None:
    """Without a warning: the equations of motion are those of SymPy with it and without it."""
    km = IDIOMS["euler_parameters"].build()
    model = kg.Model.from_kane(km, configuration_constraints=choice)
    assert model.implied_constraints == tuple(km._f_h)
    assert model.holonomic_constraints == ()


def test_the_norm_is_restored_and_kept() -> None:
    km = IDIOMS["euler_parameters"].build()
    solver = kg.build(kg.Model.from_kane(km, parameters=VALUES), stabilization=kg.Projection())
    q, u = solver.make_consistent(0.0, [0.1, 0.2, 0.3, 0.8], [0.1, 0.2, 0.3])
    assert abs(np.linalg.norm(q) - 1.0) < PROJECTED
    np.testing.assert_array_equal(u, [0.1, 0.2, 0.3])
    solution = solver.integrate((0.0, 2.0), q, u)
    np.testing.assert_allclose(np.linalg.norm(solution.q, axis=1), 1.0, rtol=0.0, atol=PROJECTED)
