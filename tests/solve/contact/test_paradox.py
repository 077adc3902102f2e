"""``Coulomb(paradox=...)`` in runs: Painleve's rod against SciPy with a stiff floor."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from contact_models import ball
from hybrid_models import painleve, sliding_rod
from messages import raises
from scipy.integrate import solve_ivp

import kanegen as kg
from kanegen.errors import ModelError
from kanegen.solve import IntegrationError, Solution

MU = 2.0
STIFFNESS, DAMPING = sm.symbols("stiffness damping")


@cache
def rod(paradox: str) -> kg.Solver:
    """Painleve's rod with mu = 2; the compliance of "regularize" has parameters."""
    compliance = {"compliance": kg.KelvinVoigt(STIFFNESS, DAMPING)} if paradox == "regularize" else {}
    return painleve(kg.Coulomb(2, paradox=paradox, **compliance))


def on_springs(t: float, k: float, c: float, q: Any, u: Any) -> np.ndarray:
    """q and u of the rod at t on a Kelvin-Voigt floor, from Newton's and Euler's equations in SciPy.

    Friction is mu N tanh(v / 1e-6 m/s), stick a creep of that size.
    """

    def slope(_: float, y: np.ndarray) -> np.ndarray:
        cos, sin, w = np.cos(y[2]), np.sin(y[2]), y[5]
        x, rate, slip = sin - y[1], cos * w - y[4], y[3] + sin * w
        N = max(k * x + c * rate, 0.0) if x > 0.0 or (x == 0.0 and rate >= 0.0) else 0.0
        T = -MU * N * np.tanh(slip / 1e-6)
        return np.array([*y[3:], T, N - 10.0, 3.0 * (sin * T - cos * N)])

    run = solve_ivp(slope, (0.0, t), [*q, *u], method="Radau", rtol=1e-9, atol=1e-12, first_step=1e-9)
    assert run.success
    return np.asarray(run.y[:, -1])


def kinds(solution: Solution) -> list[str]:
    return [event.kind for event in solution.events]


def test_the_impact_is_the_limit_of_stiff_floors() -> None:
    """The slip stops, and so does the tip; floors with k and c that grow tend to that."""
    q, u = sliding_rod(0.0)
    solution = rod("impact").integrate((0.0, 0.01), q, u)
    assert kinds(solution)[:2] == ["paradox", "impact"]
    struck = solution.events[0]
    np.testing.assert_array_equal(struck.u_before, u)
    # A duration of 100/c covers the compression; what is left is of the order of sqrt(k)/c and g times the duration.
    errors = [np.abs(on_springs(100.0 / c, k, c, q, u)[3:] - struck.u_after).max() for k, c in ((1e5, 1e4), (1e7, 3e5))]
    assert errors[0] < 0.2
    assert errors[1] < 0.1 * errors[0]
    assert solution.contacts is not None
    assert solution.contacts.phases[0].modes["tip"] == "stick"
    energy = (solution.u**2 @ [1.0, 1.0, 1.0 / 3.0]) / 2 + 10.0 * solution.q[:, 1]
    assert np.diff(energy).max() < 1e-9


def test_a_regularized_contact_obeys_its_law_until_it_opens() -> None:
    q, u = sliding_rod(0.0)
    solver = rod("regularize").with_parameters(stiffness=1e5, damping=20.0)
    solution = solver.integrate((0.0, 0.3), q, u, rtol=1e-10, atol=1e-12)
    assert solution.contacts is not None
    opens = next(event.t for event in solution.events if event.kind == "opens")
    soft = on_springs(opens, 1e5, 20.0, q, u)
    np.testing.assert_allclose(np.concatenate(solution(opens)), soft, atol=1e-4)
    phase = solution.contacts.phases[0]
    assert phase.modes["tip"] == "slip"
    inside = solution.t < opens
    gap = solution.q[:, 1] - np.sin(solution.q[:, 2])
    rate = solution.u[:, 1] - np.cos(solution.q[:, 2]) * solution.u[:, 2]
    assert gap[inside].min() < -1e-4
    np.testing.assert_allclose(
        solution.contacts.forces[inside, 0], np.maximum(-1e5 * gap - 20.0 * rate, 0.0)[inside], atol=1e-6
    )
    assert gap[~inside].min() > -1e-8  # rigid again
    assert "impact" in kinds(solution)


def test_of_several_solutions_the_one_without_force_is_taken() -> None:
    """Turning fast the tip could press on or lift off; pressing on is unstable."""
    solution = rod("impact").integrate((0.0, 1e-3), *sliding_rod(4.0))
    assert solution.contacts is not None
    assert [phase.modes["tip"] for phase in solution.contacts.phases] == ["open"]
    assert rod("impact").contacts(0.0, *sliding_rod(4.0))["tip"].mode == "open"


def test_the_error_names_the_choices() -> None:
    for rate in (0.0, 4.0):
        with raises(IntegrationError, "'tip'", 'paradox="impact"'):
            painleve().integrate((0.0, 0.01), *sliding_rod(rate))


@pytest.mark.parametrize(
    ("friction", "names"),
    [
        (kg.Coulomb(1, paradox="jump"), ("'jump'", "'impact'", "'regularize'")),
        (kg.Coulomb(1, paradox="regularize"), ("'regularize'", "compliance=")),
        (kg.Coulomb(1, paradox="impact", compliance=kg.KelvinVoigt(1, 1)), ("compliance=", "KelvinVoigt")),
        (kg.Coulomb(1, paradox="regularize", compliance=kg.KelvinVoigt(-1, 1)), ("stiffness", "-1")),
    ],
)
def test_arguments_that_do_not_fit_are_refused(friction: kg.Coulomb, names: tuple[str, ...]) -> None:
    with raises(ModelError, *names):
        painleve(friction)


@pytest.mark.parametrize("law", [kg.KelvinVoigt(1, 1), kg.Stabilized(1, 1)])
def test_paradox_is_for_rigid_contacts(law: Any) -> None:
    z, u = me.dynamicsymbols("z u")
    with raises(ModelError, "'floor'", "paradox=", "Restitution"):
        ball(contacts=[kg.Unilateral(z, law, kg.Coulomb(1, paradox="impact"), u, "floor")])
