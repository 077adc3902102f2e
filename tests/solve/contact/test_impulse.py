"""Impulses at one instant, against an independent solve of the impulse-momentum relations and the thesis's numbers."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from feedback_models import particle, x, y
from hybrid_models import block, painleve, sliding_rod, wall_pendulum
from mechanisms import four_bars, upright
from messages import raises
from state_models import point_mass
from systems import initial, oracle_for, solver_for
from tolerances import LINEAR_SOLVE, SOLVE

import kanegen as kg
from kanegen.errors import SolveError
from kanegen.solve import Impulse

# (example, options, seed): a loop, rows that depend on time, rows nonlinear in the speeds, rows that leave two free.
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("slider_crank", {}),
    ("rheonomic_particle", {}),
    ("appell_hamel", {"constraints": "linear"}),
    ("appell_hamel", {"constraints": "nonlinear"}),
    ("rolling_disk", {}),
    ("n_link_pendulum", {"n": 3}),
)


def struck_four_bar() -> tuple[kg.Solver, np.ndarray]:
    return solver_for("struck_four_bar"), np.array(initial("struck_four_bar")["q"])


def independent_speeds(name: str, t: float, q: np.ndarray, u: np.ndarray, I: np.ndarray, **options: Any) -> np.ndarray:
    """Speeds after impulses on rows linear in the speeds, from the oracle's Q, J and residuals by one solve."""
    found = oracle_for(name, **options)(t, q, u)
    Q, J = found.Q, found.J
    n_c, n_u = J.shape
    matrix = np.block([[Q, -J.T], [J, np.zeros((n_c, n_c))]])
    return np.linalg.solve(matrix, np.concatenate([Q @ u + I, J @ u - found.velocity_residuals]))[:n_u]


def test_speeds_of_the_struck_four_bar() -> None:
    """Bajodah (2003), Example 6.1, (453)-(461): five digits are printed."""
    solver, q = struck_four_bar()
    blow = np.array([0.0, 1e6, 1e6])
    struck = solver.impulse(0.0, q, np.zeros(3), blow)
    np.testing.assert_allclose(struck.u, [2.7250e4, -0.6021e4, 0.6846e4], atol=0.5)
    expected = independent_speeds("struck_four_bar", 0.0, q, np.zeros(3), blow)
    np.testing.assert_allclose(struck.u, expected, rtol=1e-9)
    # The reduced momentum is what the blow does along the one free direction, whatever the pins answer: (471).
    A2 = np.array([1.0, *solver.A(0.0, q, struck.u)[:, 0]])
    np.testing.assert_allclose(struck.reduced_momentum_after, A2 @ blow, rtol=LINEAR_SOLVE)
    np.testing.assert_allclose(struck.reduced_momentum_after, 1.1119 * 2.7250e4, rtol=1e-4)


def test_constraints_that_leave_no_speed_free_lock_the_configuration() -> None:
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bead = me.Particle("bead", O.locatenew("P", x * N.x), sm.Symbol("m"))
    model = kg.Model(
        name="pinned bead",
        frame=N,
        coordinates=(x,),
        speeds=(v,),
        kinematics=(v - x.diff(),),
        bodies=(bead,),
        holonomic_constraints=(x - 1,),
        parameters={"m": 2.0},
    )
    with raises(SolveError, "1", "v"):
        kg.build(model).impulse(0.0, (1.0,), (0.0,), (1.0,))


@pytest.mark.parametrize(("name", "options"), CASES)
def test_impulses_satisfy_the_impulse_momentum_relations(name: str, options: dict[str, Any]) -> None:
    solver, oracle, start = solver_for(name, **options), oracle_for(name, **options), initial(name, **options)
    rng = np.random.default_rng(11)
    for t in (0.0, 0.7):
        guess = np.array(start["q"]) + rng.uniform(-0.2, 0.2, len(start["q"]))
        q, u = solver.make_consistent(t, guess, np.array(start["u"]) + rng.uniform(-0.2, 0.2, len(start["u"])))
        generalized = rng.uniform(-1.0, 1.0, len(u))
        struck = solver.impulse(t, q, u, generalized)
        after = oracle(t, q, struck.u)
        scale = np.abs(after.Q).max() * max(1.0, np.abs(struck.u).max())
        answer = after.J.T @ struck.multipliers
        np.testing.assert_allclose(after.velocity_residuals, 0.0, atol=LINEAR_SOLVE * scale)
        np.testing.assert_allclose(after.Q @ (struck.u - u) - generalized, answer, atol=SOLVE * scale)
        np.testing.assert_allclose(struck.constraint_impulse, answer, atol=SOLVE * scale)
        np.testing.assert_allclose(struck.momentum_after, after.momentum, atol=SOLVE * scale)
        np.testing.assert_allclose(
            struck.momentum_after - struck.momentum_before, generalized + answer, atol=SOLVE * scale
        )
        if "nonlinear" not in options.values():
            expected = independent_speeds(name, t, q, u, generalized, **options)
            np.testing.assert_allclose(struck.u, expected, atol=SOLVE * max(1.0, np.abs(expected).max()))
            A2 = after.partitioned(solver.description.dependent)["A2"] if len(after.J) else np.eye(len(u))
            change = struck.reduced_momentum_after - struck.reduced_momentum_before
            np.testing.assert_allclose(change, A2 @ generalized, atol=SOLVE * scale)


def test_a_violated_constraint_is_imposed_by_an_impulse() -> None:
    """The slider-crank assembled in motion: its energy falls by that of the lost velocity (Carnot)."""
    solver = solver_for("slider_crank")
    start = initial("slider_crank")
    q, u = np.array(start["q"]), np.array([2.0, -1.0, 0.5])
    caught = solver.impulse(0.0, q, u, np.zeros(3))
    np.testing.assert_allclose(solver.residuals(0.0, q, caught.u)[1], 0.0, atol=LINEAR_SOLVE)
    np.testing.assert_allclose(caught.u, solver.make_consistent(0.0, q, u)[1], rtol=SOLVE)
    lost = u - caught.u
    before, after = (solver.kinetic_energy(0.0, q, speeds) for speeds in (u, caught.u))
    assert before - after == pytest.approx(0.5 * lost @ solver.Q(0.0, q, u) @ lost, rel=SOLVE)


def test_impulse_on_a_locked_configuration_is_refused() -> None:
    """Four equal bars fold flat: there the loop equations depend on each other, and the bars could part two ways."""
    solver = kg.build(four_bars(1), form="reduced")
    q, u = upright(1)
    assert np.isfinite(solver.impulse(0.0, q, u, np.ones(3)).u).all()
    with raises(SolveError, "toggle"):
        solver.impulse(0.0, np.zeros(3), np.zeros(3), np.ones(3))
    with raises(SolveError, "unique"):
        # At rest the slope of x'^2 + y'^2 - a^2 phi'^2 vanishes.
        solver_for("appell_hamel", constraints="nonlinear").impulse(
            0.0, initial("appell_hamel")["q"], np.zeros(5), np.ones(5)
        )


@pytest.mark.parametrize(
    ("impulses", "names"),
    [
        ([1.0, 2.0], ("impulses", "(2,)", "(3,)", "u1", "u2", "u3")),
        ([1.0, np.nan, 2.0], ("u2", "nan", "finite")),
        ([[1.0, 2.0, 3.0]], ("impulses", "(1, 3)")),
        (object(), ("numbers",)),
        ("blov", ("'blov'", "'blow'")),
        ({"blow": np.inf}, ("blow", "inf", "finite")),
        ({}, ("empty",)),
    ],
)
def test_wrong_impulses_are_refused(impulses: Any, names: tuple[str, ...]) -> None:
    solver, q = struck_four_bar()
    with raises(SolveError, *names):
        solver.impulse(0.0, q, np.zeros(3), impulses)


def test_impulses_of_the_model_act_by_name() -> None:
    solver, q = struck_four_bar()
    u = np.zeros(3)
    expected = solver.impulse(0.0, q, u, [0.0, 1e6, 1e6])
    np.testing.assert_allclose(solver.impulse(0.0, q, u, "blow").u, expected.u, rtol=LINEAR_SOLVE)
    half = solver.impulse(0.0, q, u, {"blow": 0.5})
    np.testing.assert_allclose(half.u, 0.5 * expected.u, rtol=LINEAR_SOLVE)
    copy = pickle.loads(pickle.dumps(half))
    assert isinstance(copy, Impulse)
    np.testing.assert_array_equal(copy.multipliers, half.multipliers)


def test_contacts_at_rest_answer_a_blow() -> None:
    """A block (2 kg) on a rough floor: struck into the floor it stays there, and slips if friction cannot hold it."""
    still = np.zeros(2)
    for blow, speeds, impulses in (
        ([1.0, -4.0], [0.0, 0.0], [4.0, -1.0]),
        ([3.0, -4.0], [0.9, 0.0], [4.0, -1.2]),
        ([3.0, 4.0], [1.5, 2.0], [0.0, 0.0]),
        ([3.0, 0.0], [1.5, 0.0], [0.0, 0.0]),
    ):
        struck = block().impulse(0.0, still, still, blow)
        np.testing.assert_allclose(struck.u, speeds, atol=LINEAR_SOLVE)
        np.testing.assert_allclose(struck.contact_impulses, impulses, atol=LINEAR_SOLVE)
        np.testing.assert_allclose(struck.momentum_after, np.add(blow, [impulses[1], impulses[0]]), atol=LINEAR_SOLVE)
    flying = block().impulse(0.0, [0.0, 0.1], still, [3.0, -4.0])
    np.testing.assert_allclose(flying.u, [1.5, -2.0], atol=LINEAR_SOLVE)


def test_a_contact_that_is_approached_rebounds_from_a_blow() -> None:
    """A particle (1 kg) on a circle meets a wall askew: circle and wall answer together, by one solve."""
    d, e = 0.3, 0.9
    q = np.array([d, -np.sqrt(1.0 - d**2)])
    u, blow = -2.0 * np.array([-q[1], q[0]]), np.array([-1.0, 0.5])
    struck = wall_pendulum().with_parameters(d=d).impulse(0.0, q, u, blow)
    J, W = 2.0 * q, np.array([1.0, 0.0])
    matrix = np.block([[np.eye(2), -J[:, None], -W[:, None]], [J, 0.0, 0.0], [W, 0.0, 0.0]])
    *expected, multiplier, impulse = np.linalg.solve(matrix, [*(u + blow), 0.0, -e * u[0]])
    np.testing.assert_allclose(struck.u, expected, rtol=LINEAR_SOLVE)
    np.testing.assert_allclose(struck.multipliers, [multiplier], rtol=LINEAR_SOLVE)
    np.testing.assert_allclose(struck.constraint_impulse, J * multiplier, rtol=LINEAR_SOLVE)
    np.testing.assert_allclose(struck.contact_impulses, [impulse, 0.0], rtol=LINEAR_SOLVE)


def test_impulse_names_what_was_not_built() -> None:
    solver = kg.build(four_bars(1), form="reduced", functions=("rhs", "momentum", "J"))
    with raises(SolveError, "Q", "functions="):
        solver.impulse(0.0, *upright(1), np.ones(3))


def test_an_impact_needs_no_finite_forces_before_it() -> None:
    """Painleve's rod: no force can act at the tip that touches the floor, but its impact is that of a run."""
    q, u = sliding_rod(0.0)
    u[1] = -0.5  # the tip approaches
    struck = painleve().impulse(0.0, q, u, np.zeros(3))
    (impact, *_) = painleve().integrate((0.0, 1e-4), q, u).events
    assert impact.kind == "impact"
    np.testing.assert_allclose(struck.u, impact.u_after, rtol=SOLVE)


def test_impacts_with_constraints_nonlinear_in_the_speeds_are_refused() -> None:
    v = me.dynamicsymbols("v")
    options = {"nonholonomic_constraints": [v**2 - 4], "parameters": {"m": 1.0}}
    with raises(kg.BuildError, "'wall'", "v(t)**2", "nonlinear", "KelvinVoigt"):
        kg.build(point_mass("fast", 0, contacts=[kg.Unilateral(x, name="wall")], **options))
    soft = kg.Unilateral(x, kg.KelvinVoigt(1, 1), name="wall")
    assert kg.build(point_mass("fast", 0, contacts=[soft], **options), functions=("rhs",))


def test_a_contact_that_acts_takes_part_in_an_impact_at_the_start() -> None:
    """A ball rests in a violated ground; it hits a slope the same way in a run and where a run starts."""
    contacts = (kg.Unilateral(y, kg.Stabilized(3, 5), name="ground"), kg.Unilateral(x - y, name="slope"))
    solver = kg.build(particle((0, -2 * 9.81), contacts=contacts), functions=("rhs",))
    hit = next(e for e in solver.integrate((0.0, 1.0), [0.3, -0.01], [-1.0, 0.0]).events if e.kind == "impact")
    again = solver.integrate((hit.t, 1.0), hit.q, hit.u_before).events[0]
    np.testing.assert_allclose(again.u_after, hit.u_after, rtol=SOLVE)
    np.testing.assert_allclose(hit.u_after[1], hit.u_before[1], rtol=SOLVE)  # the ground does not give way


@pytest.mark.parametrize("factor", [1e-14, 1e-11, 1e-6, 1e3])
def test_impulses_on_rows_nonlinear_in_the_speeds_in_any_unit(factor: float) -> None:
    """Speeds below 1e-13 m/s counted as converged after one iteration: 9 % off."""
    t = me.dynamicsymbols._t
    x, y, z, u, v, w = me.dynamicsymbols("x y z u v w")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y + z * N.z)
    P.set_vel(N, u * N.x + v * N.y + w * N.z)
    model = kg.Model(
        name="cone",
        frame=N,
        coordinates=[x, y, z],
        speeds=[u, v, w],
        kinematics=[x.diff(t) - u, y.diff(t) - v, z.diff(t) - w],
        bodies=[me.Particle("P", P, 2)],
        nonholonomic_constraints=[u**2 + v**2 - w**2],
    )
    solver, speeds, blow = kg.build(model), np.array([0.6, 0.8, 1.0]), np.array([0.5, -0.3, 1.7])
    after = solver.impulse(0.0, np.zeros(3), speeds, blow).u
    assert after[0] ** 2 + after[1] ** 2 == pytest.approx(after[2] ** 2, rel=1e-14)
    small = solver.impulse(0.0, np.zeros(3), factor * speeds, factor * blow).u
    np.testing.assert_allclose(small / factor, after, rtol=1e-14)
