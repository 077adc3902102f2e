"""Known changes in time beside clocks, contacts and sweeps, and backward in time: against closed forms."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import driven_models as dm
import numpy as np
import pytest
import sympy.physics.mechanics as me
from driven_models import ADAPTIVE, Drive, Oscillator
from scipy.interpolate import CubicSpline, PPoly
from state_models import point_mass

import kanegen as kg

END = 6.0
GLOBAL = 100.0
"""Largest error over the relative tolerance."""
PERIOD = 0.25
SHARE, CAMPAIGN = 4, 300
"""Random runs of a kind in every test run, and in the campaign."""


def random_drive(rng: np.random.Generator, end: float = END) -> tuple[Drive, Any]:
    """A force, and what r takes for it: a table, a polynomial with jumps, a cubic spline, a function."""
    times = np.concatenate([[-1.0], np.sort(rng.uniform(0.0, end, rng.integers(2, 7))), [end + 1.0]])
    values, kind = rng.normal(size=times.size), rng.integers(0, 4)
    if rng.integers(0, 2):
        times[2] = 4 * PERIOD  # at a sample as well
        times = np.sort(times)
    if kind == 0:
        return dm.table(times.tolist(), values.tolist()), (times, values)
    if kind == 1:
        spline = CubicSpline(times, values)
        return Drive(tuple(times), lambda t: float(spline(t))), spline
    stairs = dm.stairs(times.tolist(), values.tolist())
    if kind == 2:
        return stairs, kg.Signal(stairs, times)
    return stairs, PPoly(values[None, :-1], times)


# -- clocks ------------------------------------------------------------------------------------------------------------


@cache
def sampled() -> kg.Solver:
    """Two forces, the second one a sampled law."""
    F, G, x, v = me.dynamicsymbols("F G x v")
    law = -3 * x - v
    inputs = [kg.Input(F, default=0.0), kg.Input(G, law=law, sample_time=PERIOD)]
    force = F + G - 9 * x - v / 2
    return kg.build(point_mass("sampled", force, inputs=inputs, parameters={"m": 1.0}), functions=dm.FUNCTIONS)


def held(drive: Drive, start: np.ndarray, everything: bool) -> tuple[np.ndarray, np.ndarray]:
    """Sample times and states of the oscillator with the force that the law holds, or with all forces held."""
    times, states = PERIOD * np.arange(round(END / PERIOD) + 1), [start]
    for a, b in pairwise(times):
        force, of_drive = -3 * states[-1][0] - states[-1][1], drive(a)
        both = Drive(drive.times, lambda t, f=force, d=of_drive: f + (d if everything else drive(t)))
        states.append(Oscillator().move(both, states[-1], [a, b])[-1])
    return times, np.array(states)


WAYS = ["law", "all", "continuous"]


def sampled_run(seed: int, way: str) -> None:
    """A sampled law beside an input that changes in between; all inputs sampled; and feedback without samples."""
    rng = np.random.default_rng([51, seed])
    drive, r = random_drive(rng)
    method = str(rng.choice([m for m in ADAPTIVE if way == "law" or m != "rodas"]))
    rtol, start = 10.0 ** rng.uniform(-10.0, -5.0), rng.normal(size=2)
    given: dict[str, Any] = {"F": r}
    if way != "law":
        given["G"] = lambda t, q, u: -3 * q[0] - u[0]
    options = {"sample_time": PERIOD} if way == "all" else {}
    times, expected = held(drive, start, way == "all")
    if way == "continuous":
        expected = Oscillator(k=12.0, c=1.5).move(drive, start, times)
    solution = sampled().integrate(
        (0.0, END), start[:1], start[1:], given, method=method, rtol=rtol, atol=1e-2 * rtol, t_eval=times, **options
    )
    states = np.column_stack([solution.q, solution.u])
    assert np.abs(states - expected).max() <= GLOBAL * rtol * np.abs(expected).max()
    assert solution.statistics.largest_error <= 1.0


@pytest.mark.parametrize("seed", range(SHARE))
@pytest.mark.parametrize("way", WAYS)
def test_samples_beside_inputs_that_jump(seed: int, way: str) -> None:
    sampled_run(seed, way)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(SHARE, CAMPAIGN))
@pytest.mark.parametrize("way", WAYS)
def test_samples_beside_inputs_that_jump_in_the_campaign(seed: int, way: str) -> None:
    sampled_run(seed, way)


# -- sweeps ------------------------------------------------------------------------------------------------------------

PULSE = dm.stairs((5.0, 5.002), (100.0, 0.0))


def pulse(t: float) -> float:
    return 100.0 if 5.0 <= t < 5.002 else 0.0


@pytest.mark.parametrize("executor", [None, ProcessPoolExecutor])
@pytest.mark.parametrize("method", ["dopri5", "verner9"])
def test_sweeps_with_functions_that_jump(method: str, executor: Any) -> None:
    stiffness = [4.0, 9.0, 16.0]
    r = {"F": kg.Signal(pulse, breakpoints=[5.0, 5.002])}
    options: dict[str, Any] = {"t_span": (0.0, END), "q0": [0.0], "u0": [0.0], "r": r, "method": method}
    if executor is None:
        found = kg.sweep(dm.driven(), {"k": stiffness}, **options)
    else:
        with executor(1) as workers:
            found = kg.sweep(dm.driven(), {"k": stiffness}, executor=workers, chunk_size=2, **options)
    expected = [Oscillator(k=k).move(PULSE, [0.0, 0.0], [0.0, END])[-1] for k in stiffness]
    ends = np.column_stack([np.ravel(found["q"]), np.ravel(found["u"])])
    np.testing.assert_allclose(ends, expected, rtol=0.0, atol=1e-7)


# -- contacts ----------------------------------------------------------------------------------------------------------

G = 9.81


@cache
def block(restitution: float, friction: float) -> kg.Solver:
    """A block of 1 kg on a floor under the forces F upward and H along it."""
    x, y, u, v = me.dynamicsymbols("x y u v")
    F, H = me.dynamicsymbols("F H")
    t = me.dynamicsymbols._t
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    rubs = (kg.Coulomb(friction), u) if friction else (None, None)
    contact = kg.Unilateral(y, kg.Restitution(restitution), *rubs, "floor")
    model = kg.Model(
        name="block",
        frame=N,
        coordinates=[x, y],
        speeds=[u, v],
        kinematics=[u - x.diff(t), v - y.diff(t)],
        bodies=[me.Particle("block", P, 1)],
        loads=[(P, H * N.x + (F - G) * N.y)],
        inputs=[kg.Input(F, default=0.0), kg.Input(H, default=0.0)],
        contacts=[contact],
    )
    return kg.build(model)


def as_r(times: list[float], values: list[float], kind: str) -> Any:
    if kind == "signal":
        return kg.Signal(dm.stairs(times, values), times)
    return PPoly(np.array([[0.0, *values]]), [-1.0, *times, 100.0])


@pytest.mark.parametrize("kind", ["signal", "polynomial"])
@pytest.mark.parametrize("method", ADAPTIVE)
def test_a_force_that_jumps_lifts_a_block_and_lets_it_fall(method: str, kind: str) -> None:
    """Up with a = F - g from 1 s to 1.5 s, down freely, then at rest."""
    r = {"F": as_r([1.0, 1.5], [15.0, 0.0], kind)}
    solution = block(0.0, 0.0).integrate((0.0, 4.0), [0.0, 0.0], [0.0, 0.0], r, method=method, rtol=1e-9)
    rise, height = 0.5 * (15.0 - G), 0.125 * (15.0 - G)
    landing = 1.5 + (rise + np.sqrt(rise**2 + 2 * G * height)) / G
    assert np.interp(1.5, solution.t, solution.q[:, 1]) == pytest.approx(height, abs=1e-8)
    assert [event.t for event in solution.events if event.kind == "impact"] == pytest.approx([landing], abs=1e-7)
    assert solution.q[-1] == pytest.approx([0.0, 0.0], abs=1e-8)


@pytest.mark.parametrize("kind", ["signal", "polynomial"])
@pytest.mark.parametrize("shift", [-1e-9, 0.0, 1e-9, 1e-3])
@pytest.mark.parametrize("method", ADAPTIVE)
def test_a_force_that_jumps_at_an_impact(method: str, shift: float, kind: str) -> None:
    """A ball that falls from 1 m and rebounds with e = 1/2; from then on, or nearly so, a force doubles its weight."""
    impact = np.sqrt(2.0 / G)
    r = {"F": as_r([impact + shift], [-G], kind)}
    solution = block(0.5, 0.0).integrate((0.0, 0.7), [0.0, 1.0], [0.0, 0.0], r, method=method, rtol=1e-10, atol=1e-12)
    free, rebound = max(shift, 0.0), 0.5 * np.sqrt(2.0 * G)
    y, v = rebound * free - 0.5 * G * free**2, rebound - G * free
    next_impact = (v + np.sqrt(v**2 + 4.0 * G * y)) / (2.0 * G)
    times = [event.t for event in solution.events if event.kind == "impact"]
    assert times[0] == pytest.approx(impact, abs=1e-7)
    assert times[1] == pytest.approx(impact + free + next_impact, abs=1e-6)
    after = 0.5 * (times[1] - times[0] - free) + times[0] + free
    s = after - impact - free
    at = solution(after)[0][1]
    assert at == pytest.approx(y + v * s - G * s**2, abs=1e-6)


@pytest.mark.parametrize("kind", ["signal", "polynomial"])
@pytest.mark.parametrize("method", ADAPTIVE)
def test_a_force_that_jumps_over_the_limit_of_friction(method: str, kind: str) -> None:
    """At rest below mu g; from 1 s on slip with H - mu g; from 1.5 s on slower until it sticks again."""
    r = {"H": as_r([0.5, 1.0, 1.5], [2.0, 6.0, 0.0], kind)}
    solution = block(0.0, 0.3).integrate((0.0, 3.0), [0.0, 0.0], [0.0, 0.0], r, method=method, rtol=1e-9)
    a, b = 6.0 - 0.3 * G, 0.3 * G
    speed = 0.5 * a
    expected = 0.125 * a + speed**2 / (2 * b)
    assert np.interp(1.0, solution.t, solution.q[:, 0]) == pytest.approx(0.0, abs=1e-12)
    assert solution.q[-1, 0] == pytest.approx(expected, abs=1e-7)
    assert solution.u[-1] == pytest.approx([0.0, 0.0], abs=1e-9)
    phases = [phase.modes["floor"] for phase in solution.contacts.phases]
    assert phases == ["stick", "slip", "stick"]


# -- backward in time --------------------------------------------------------------------------------------------------


def backward_run(seed: int) -> None:
    rng = np.random.default_rng([52, seed])
    drive, r = random_drive(rng, 20.0)
    method, rtol = str(rng.choice(ADAPTIVE)), 10.0 ** rng.uniform(-10.0, -5.0)
    oscillator = Oscillator(k=10.0 ** rng.uniform(-1.0, 2.0), c=0.0)
    start = rng.normal(size=2) * rng.integers(0, 2)
    end = oscillator.move(drive, start, [0.0, 20.0])[-1]
    solver = dm.driven().with_parameters({"k": oscillator.k, "c": 0.0, "level": 0.1 * rng.normal()})
    solution = solver.integrate((20.0, 0.0), end[:1], end[1:], {"F": r}, method=method, rtol=rtol, atol=1e-2 * rtol)
    states = np.column_stack([solution.q, solution.u])[::-1]
    expected = oscillator.move(drive, start, solution.t[::-1])
    assert solution.statistics.largest_error <= 1.0
    assert np.abs(states - expected).max() <= GLOBAL * rtol * max(np.abs(expected).max(), 1e-2)
    inside = [t for t in drive.times if 0.0 < t < 20.0]
    if not isinstance(r, CubicSpline):
        assert set(inside) <= set(solution.t)


@pytest.mark.parametrize("seed", range(2 * SHARE))
def test_driven_runs_backward_in_time(seed: int) -> None:
    backward_run(seed)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(2 * SHARE, CAMPAIGN))
def test_driven_runs_backward_in_time_in_the_campaign(seed: int) -> None:
    backward_run(seed)
