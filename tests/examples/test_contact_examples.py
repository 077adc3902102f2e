"""The examples with contacts against their oracles: switches, states there, forces, and the energy of impacts."""

from __future__ import annotations

import numpy as np
import pytest
from contact_references import OBSTRUCTED_SWITCHES
from oracle_pendulum import Law, Pendulum, bounces
from oracle_stick_slip import exact_events
from systems import example, solver_for
from tolerances import BOUNCE_TIME, ENERGY_OF_IMPACT, PENDULUM_SWITCH, SWITCH_STATE, SWITCH_TIME

import kanegen as kg

BLOCKS = example("stick_slip_blocks").DEFAULTS
PENDULUM = example("impacting_pendulum")
START = np.array([1.0, 1.0, 0.0, 0.0])
# The thesis's L/3 in the obstacle of Example 5.2.
LEVEL = PENDULUM.DEFAULTS["L"] / 3


def switch_times(solution: kg.Solution, contact: str) -> np.ndarray:
    """Times at which a contact changes, each once: a reversal is one change."""
    return np.unique([event.t for event in solution.events if event.name == contact])


# Parameters of the blocks and a coefficient of static friction of its own.
BLOCK_CASES: dict[str, dict[str, float]] = {
    "thesis": {},
    "other blocks": {"m2": 0.23, "K2": 8.0, "A": 7.0, "mu": 0.6},
    "static friction": {"mu_s": 1.5, "mu": 0.8},
}


@pytest.mark.parametrize(("case", "form"), [*((case, "auto") for case in BLOCK_CASES), ("other blocks", "articulated")])
def test_blocks_switch_at_the_exact_times(case: str, form: str) -> None:
    changes = BLOCK_CASES[case]
    options = {"mu_s": 1.5} if "mu_s" in changes else {}
    solver = solver_for("stick_slip_blocks", form, **options).with_parameters(**changes)
    solution = solver.integrate((0.0, 20.0), (0.0, 0.0), (0.0, 0.0), rtol=1e-11, atol=1e-13)
    exact = exact_events({**BLOCKS, **changes}, 20.0)
    for block in (1, 2):
        expected = [float(event.t) for event in exact if event.block == block]
        found = switch_times(solution, f"B{block}")
        assert len(found) == len(expected)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=SWITCH_TIME)
    for event in exact:
        q, u = solution(float(event.t))
        np.testing.assert_allclose(q, np.array(event.q, dtype=float), rtol=0.0, atol=SWITCH_STATE)
        np.testing.assert_allclose(u, np.array(event.u, dtype=float), rtol=0.0, atol=1e2 * SWITCH_STATE)


def test_a_step_over_the_whole_beginning_of_slip_is_noticed() -> None:
    """While nothing moves steps grow: all stages of one of 1 s from 0.11 s on lie behind the switch at 0.19 s."""
    changes = {"m1": 0.06, "m2": 0.18, "K1": 2.2, "K2": 4.8, "A": 2.6, "omega": 2.14, "mu": 0.59}
    solver = solver_for("stick_slip_blocks").with_parameters(**changes)
    solution = solver.integrate((0.0, 5.0), (0.0, 0.0), (0.0, 0.0), rtol=1e-11, atol=1e-13)
    expected = [float(event.t) for event in exact_events({**BLOCKS, **changes}, 5.0)]
    np.testing.assert_allclose([event.t for event in solution.events], expected, rtol=0.0, atol=SWITCH_TIME)


def test_friction_of_the_blocks() -> None:
    """At rest friction balances the load; while a block slips it is mu N against the velocity."""
    solver = solver_for("stick_slip_blocks")
    limit = BLOCKS["mu"] * BLOCKS["m1"] * BLOCKS["g"]
    q = np.array([0.05, 0.1])
    springs = np.array([5.0 * 0.05 - 5.0 * 0.05, 5.0 * 0.05])
    rest = solver.contacts(0.0, q, (0.0, 0.0))
    np.testing.assert_allclose([rest["B1"].force[0], rest["B2"].force[0]], springs, rtol=0.0, atol=1e-14)
    assert [rest[name].mode for name in ("B1", "B2")] == ["stick", "stick"]
    slipping = solver.contacts(0.0, q, (-0.2, 0.3))
    np.testing.assert_allclose([slipping[name].force[0] for name in ("B1", "B2")], [limit, -limit], rtol=1e-15)


@pytest.mark.parametrize("delta", [1e-3, 1e-5])
def test_creep_approaches_stick_with_its_tolerance(delta: float) -> None:
    """The thesis's model differs from stick by a multiple of its tolerance; below it slip velocity decays."""
    module = example("stick_slip_blocks")
    solver, creeping = module.simulate(creep=delta)
    _, sticking = module.simulate()
    times = np.linspace(0.0, 20.0, 401)
    states = np.array([[np.concatenate(run(t)) for t in times] for run in (creeping, sticking)])
    difference = np.abs(states[0] - states[1]).max(axis=0)
    assert 0.1 * delta < difference[:2].max() < 10.0 * delta
    found = solver.contacts(0.0, (0.0, 0.01), (delta / 2, -delta / 3))
    assert [found[name].mode for name in ("B1", "B2")] == ["stick", "stick"]
    np.testing.assert_allclose(found.udot, [-delta, 2 * delta / 3], rtol=1e-12, atol=1e-15)


def test_obstructed_pendulum_switches() -> None:
    solver = solver_for("obstructed_pendulum")
    solution = solver.integrate((0.0, 4.4), START[:2], START[2:], rtol=1e-12, atol=1e-14)
    phases = solution.contacts.phases[1:]
    assert [phase.modes["obstacle"] for phase in phases] == [mode for mode, _ in OBSTRUCTED_SWITCHES]
    times = [float(time) for _, time in OBSTRUCTED_SWITCHES]
    np.testing.assert_allclose([phase.t_start for phase in phases], times, rtol=0.0, atol=PENDULUM_SWITCH)


def hunt_crossley(k: float, lam: float) -> Law:
    return lambda x, rate: np.sign(x) * abs(x) ** 1.5 * (k + lam * rate)


def oracle_of(name: str) -> Pendulum:
    values, arguments = PENDULUM.LAWS[name], (PENDULUM.DEFAULTS, LEVEL)
    if name == "kelvin_voigt":
        return Pendulum(*arguments, lambda x, rate: values["k"] * x + values["c"] * rate, "force")
    k, lam = values["k"], values["lam"]
    law = hunt_crossley(k, lam)
    if name == "acceleration":
        return Pendulum(*arguments, lambda x, rate: -law(x, rate), "acceleration")
    return Pendulum(*arguments, law, "force", factor=lambda _, rate: k + lam * rate)


@pytest.mark.parametrize("name", ["acceleration", "force", "kelvin_voigt"])
def test_laws_of_impact(name: str) -> None:
    t_end = 0.35
    expected, y = oracle_of(name).run(START, t_end)
    solution = solver_for("impacting_pendulum", law=name).integrate(
        (0.0, t_end), START[:2], START[2:], rtol=1e-12, atol=1e-14
    )
    found = [(phase.t_start, phase.modes["obstacle"]) for phase in solution.contacts.phases[1:]]
    assert [mode for _, mode in found] == [mode for _, mode in expected]
    np.testing.assert_allclose([t for t, _ in found], [t for t, _ in expected], rtol=0.0, atol=SWITCH_TIME)
    np.testing.assert_allclose(np.concatenate(solution(t_end)), y, rtol=0.0, atol=SWITCH_STATE)


@pytest.mark.parametrize(("e", "count"), [(0.0, 1), (0.3, 4), (0.6, 8), (1.0, 6)])
def test_energy_lost_in_impacts(e: float, count: int) -> None:
    solver = solver_for("impacting_pendulum", law="restitution").with_parameters(e=e)
    expected, after = bounces(PENDULUM.DEFAULTS, LEVEL, e, START, count)
    solution = solver.integrate((0.0, expected[-1][0] + 1e-3), START[:2], START[2:], rtol=1e-12, atol=1e-14)
    impacts = [event for event in solution.events if event.kind == "impact"][:count]
    np.testing.assert_allclose([impact.t for impact in impacts], [t for t, _ in expected], rtol=0.0, atol=SWITCH_TIME)
    for impact, (_, lost) in zip(impacts, expected, strict=True):
        before, remaining = (solver.kinetic_energy(impact.t, impact.q, u) for u in (impact.u_before, impact.u_after))
        assert before - remaining == pytest.approx(lost, abs=ENERGY_OF_IMPACT)
    state = np.concatenate([impacts[-1].q, impacts[-1].u_after])
    np.testing.assert_allclose(state, after, rtol=0.0, atol=SWITCH_STATE)


@pytest.mark.parametrize("e", [0.0, 0.5, 0.8])
def test_ball_reaches_its_zeno_point_and_goes_on(e: float) -> None:
    module = example("bouncing_ball")
    p = {**module.DEFAULTS, "e": e}
    solver = solver_for("bouncing_ball").with_parameters(e=e)
    rest = module.zeno_time(p)
    solution = solver.integrate((0.0, rest + 1.0), (1.0,), (0.0,), rtol=1e-10, atol=1e-12)
    times = np.array([event.t for event in solution.events if event.kind == "impact"])
    first = times[:40]
    np.testing.assert_allclose(first, module.impact_times(len(first), p), rtol=0.0, atol=BOUNCE_TIME)
    assert times[-1] <= rest + BOUNCE_TIME
    # Without rebound there is nothing to accumulate.
    (settled,) = (event for event in solution.events if event.kind == ("rests" if e else "closes"))
    assert settled.t == pytest.approx(rest, abs=BOUNCE_TIME)
    assert solution.contacts.phases[-1].modes["floor"] == "closed"
    np.testing.assert_allclose(solution(rest + 1.0), [[0.0], [0.0]], atol=1e-12)
    assert solution.contacts.forces[-1, 0] == pytest.approx(p["m"] * p["g"], rel=1e-12)
