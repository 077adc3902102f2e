"""The C loop over steps, events, impacts and modes, on motions known in closed form."""

from __future__ import annotations

import itertools
from pathlib import Path

import hybrid_host as hh
import numpy as np
import pytest
from ccompile import (
    SANITIZERS,
    Compiler,
    compile_source,
    host_source,
    run_program,
    with_each_c_sanitizer,
    with_each_compiler,
)
from hybrid_host import HybridHost, HybridRun
from scipy.optimize import brentq
from steppers import FINISHED, METHODS
from tolerances import EVENT_ROUNDING

G, HEIGHT, E = 9.81, 1.0, 0.8
CHATTERING, GAP_VIOLATED, TERMINATED = -19, -20, 6
NEVER = 1e9
OPEN, CLOSED, STICK, SLIP = 0, 2, 3, 4
FALL = np.sqrt(2 * HEIGHT / G)
# A ball dropped from rest: the flights are a geometric series of ratio E after the first half one.
REST = FALL * (1 + E) / (1 - E)


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> HybridHost:
    return HybridHost(tmp_path_factory.mktemp("hybrid"))


def ball(restitution: float = E, *, wave: float = 0.0, blow: float = NEVER) -> tuple[float, ...]:
    """Parameters of a ball over a floor with waves of that height."""
    return (G, restitution, wave, 3.0, 0.0, blow)


def drop(host: HybridHost, restitution: float = E, **options: object) -> HybridRun:
    return host.run(hh.BALL, ball(restitution), (0.0, HEIGHT, 0.3, 0.0), 10.0, **{"step": 0.01, **options})


def impacts(number: int) -> np.ndarray:
    """Times of the impacts of a dropped ball."""
    return FALL + np.append(0.0, 2 * FALL * np.cumsum(E ** np.arange(1, number)))


@pytest.mark.parametrize("method", METHODS)
def test_a_bouncing_ball_reaches_its_zeno_point_and_goes_on_in_contact(host: HybridHost, method: str) -> None:
    run = drop(host, method=method, tolerance=1e-9)
    times = run.times(hh.IMPACT)
    assert run.status == FINISHED
    assert times.size > 30
    assert times == pytest.approx(impacts(times.size), abs=1e-8)
    assert run.kind[-3:] == (hh.IMPACT, hh.CLOSES, hh.RESTS)
    assert run.times(hh.RESTS) == pytest.approx([REST], abs=1e-8)
    assert run.mode[-1] == CLOSED
    assert run.y == pytest.approx([3.0, 0.0, 0.3, 0.0], abs=1e-8)


def test_times_of_impacts_are_exact_to_twelve_digits(host: HybridHost) -> None:
    run = drop(host, method="dop853", tolerance=1e-12)
    times = run.times(hh.IMPACT)
    assert times == pytest.approx(impacts(times.size), rel=EVENT_ROUNDING)
    assert run.times(hh.RESTS) == pytest.approx([REST], rel=EVENT_ROUNDING)


def test_an_impact_changes_energy_and_momentum_as_restitution_says(host: HybridHost) -> None:
    run = drop(host, tolerance=1e-10)
    struck = np.array(run.kind) == hh.IMPACT
    before, after, impulse = run.before[struck][:, 3], run.after[struck][:, 3], run.impulse[struck]
    assert after == pytest.approx(-E * before, rel=EVENT_ROUNDING)
    assert impulse == pytest.approx(after - before, rel=EVENT_ROUNDING)
    np.testing.assert_array_equal(run.before[:, :3], run.after[:, :3])


@pytest.mark.parametrize("tolerance", [1e-6, 1e-9])
@pytest.mark.parametrize("method", ["dopri5", "dop853"])
@pytest.mark.parametrize("wave", [0.0, 0.1])
def test_ten_thousand_contacts_cost_less_than_their_arcs_apart(
    host: HybridHost, method: str, tolerance: float, wave: float
) -> None:
    options = {"method": method, "tolerance": tolerance}
    run = host.run(hh.BALL, ball(1.0, wave=wave), (0.0, HEIGHT, 0.3, 0.0), 9500.0, **options)
    assert run.times(hh.IMPACT).size >= 10000
    arcs = list(itertools.pairwise(run.t))[:200]
    apart = [
        host.run(hh.BALL, ball(), (0.0, 1e4, *y[2:]), t1, t0=t0, **options).statistics.evaluations
        for (t0, t1), y in zip(arcs, run.after, strict=False)
    ]
    assert run.statistics.evaluations / run.t.size < np.mean(apart)


@pytest.mark.parametrize("method", METHODS)
def test_stick_and_slip_on_a_belt(host: HybridHost, method: str) -> None:
    """x'' = -x + mu_k N sign(v - x') while it slips, x' = v while |x| < mu_s N."""
    load, mu_s, mu_k, v = 1.0, 1.0, 0.5, 0.3
    run = host.run(hh.BLOCK, (load, mu_s, mu_k, v), (0.0, 0.0), 20.0, method=method, tolerance=1e-10, step=0.01)
    first = np.arcsin(v / (mu_k * load))  # x = mu_k N (1 - cos t)
    start = mu_k * load * (1 - np.cos(first))
    slips = first + (mu_s * load - start) / v
    slip = 2 * np.pi - 2 * np.arctan((mu_s - mu_k) * load / v)
    stick = 2 * (mu_s - mu_k) * load / v  # from x = (2 mu_k - mu_s) N to mu_s N
    expected = [first, slips, slips + slip, slips + slip + stick, slips + 2 * slip + stick]
    assert run.t[:5] == pytest.approx(expected, abs=1e-8)
    assert run.kind[:5] == (hh.STICKS, hh.SLIPS, hh.STICKS, hh.SLIPS, hh.STICKS)
    assert run.mode[:2] == (STICK, SLIP)


def test_dry_friction_reverses_until_it_holds(host: HybridHost) -> None:
    run = host.run(hh.BLOCK, (1.0, 0.1, 0.1, 0.0), (1.0, 0.0), 40.0, tolerance=1e-11)
    assert run.t == pytest.approx(np.arange(1, 6) * np.pi, abs=1e-9)
    assert run.kind == (hh.REVERSES,) * 4 + (hh.STICKS,)
    # Each half turn takes 2 mu N off: 1, -0.8, 0.6, -0.4, 0.2, 0; there the spring has nothing left.
    assert run.y == pytest.approx([0.0, 0.0], abs=1e-9)


def test_a_ball_lifts_off_where_the_floor_falls_away(host: HybridHost) -> None:
    """It slides up from the valley of y = a sin(3 x) until x'^2 y'' = -g, the speed being that of free sliding."""
    a, valley, v0 = 0.1, -np.pi / 6, 4.0

    def pressure(x: float) -> float:
        squared = (v0**2 - 2 * G * a * (1 + np.sin(3 * x))) / (1 + (3 * a * np.cos(3 * x)) ** 2)
        return float(G - 9 * a * np.sin(3 * x) * squared)

    run = host.run(hh.BALL, ball(0.0, wave=a), (valley, -a, v0, 0.0), 1.0, method="dop853", tolerance=1e-12)
    assert run.kind[0] == hh.OPENS
    assert run.mode[0] == OPEN
    assert run.before[0, 0] == pytest.approx(brentq(pressure, 0.0, np.pi / 6), abs=1e-9)


def test_events_of_the_user_act_and_are_recorded_in_order(host: HybridHost) -> None:
    run = drop_with_blow(host, watched=(1, 1, 0))
    assert run.kind[:3] == (hh.USER, hh.USER, hh.IMPACT)
    assert run.index[:2] == (1, 0)  # the blow, then the apex
    assert run.t[:2] == pytest.approx([0.2, 0.2 + (2.0 - G * 0.2) / G], rel=EVENT_ROUNDING)
    assert run.after[0, 3] - run.before[0, 3] == pytest.approx(2.0, rel=EVENT_ROUNDING)


def drop_with_blow(host: HybridHost, **options: object) -> HybridRun:
    return host.run(hh.BALL, ball(blow=0.2), (0.0, HEIGHT, 0.3, 0.0), 5.0, method="dop853", tolerance=1e-12, **options)


def test_a_terminal_event_ends_the_run(host: HybridHost) -> None:
    run = drop(host, watched=(1, 0, 1))
    assert run.status == TERMINATED
    assert run.t_end == pytest.approx(np.sqrt(2 * 0.5 / G), rel=EVENT_ROUNDING)
    assert run.kind == (hh.USER,)


def test_stops_of_the_host_change_nothing(host: HybridHost) -> None:
    run = drop(host, stops=0.01, tolerance=1e-10)
    times = run.times(hh.IMPACT)
    assert run.stops == 1000 or run.stops == 999  # the last one may be the end itself
    assert times == pytest.approx(impacts(times.size), abs=1e-9)


def test_a_stop_at_the_time_of_an_event_is_not_lost(host: HybridHost) -> None:
    run = host.run(hh.BALL, ball(blow=0.25), (0.0, HEIGHT, 0.3, 0.0), 1.0, watched=(0, 1, 0), stops=0.25)
    assert run.stops >= 3
    assert run.times(hh.USER) == pytest.approx([0.25], rel=EVENT_ROUNDING)


@pytest.mark.parametrize(
    ("start", "status", "kinds"),
    [
        ((0.0, -0.1, 0.3, 0.0), GAP_VIOLATED, ()),
        ((0.0, 0.0, 0.3, -1.0), FINISHED, (hh.IMPACT, hh.IMPACT)),  # an impact is due at once
        ((0.0, 0.0, 0.3, 0.0), FINISHED, ()),  # rests from the start
    ],
)
def test_starts_on_and_below_the_floor(
    host: HybridHost, start: tuple[float, ...], status: int, kinds: tuple[int, ...]
) -> None:
    run = host.run(hh.BALL, ball(), start, 0.3, watched=(1, 0, 0) if not kinds else (0, 0, 0))
    assert run.status == status
    assert run.kind[:2] == kinds
    assert run.culprit == (0 if status == GAP_VIOLATED else -1)
    assert run.t[:1].tolist() == [0.0] * bool(kinds)


@pytest.mark.parametrize("tolerance", [1e-6, 1e-9])
@pytest.mark.parametrize("method", ["dopri5", "dop853", "rodas"])
def test_sliding_along_a_switching_surface_is_chattering(host: HybridHost, method: str, tolerance: float) -> None:
    run = host.run(hh.RELAY, (0.0,), (1.0, 0.0), 20.0, method=method, tolerance=tolerance, watched=(1, 0, 0))
    assert run.status == CHATTERING
    assert run.culprit_event == 0
    assert run.t.size >= 200  # idle events in a row
    assert run.t[0] == pytest.approx(np.sqrt(3) - 1, abs=np.sqrt(tolerance))


@pytest.mark.parametrize("method", ["dopri5", "dop853", "rodas"])
@pytest.mark.parametrize("tolerance", [1e-6, 1e-9])
def test_events_that_only_observe_change_nothing_and_stop_at_rest(
    host: HybridHost, method: str, tolerance: float
) -> None:
    """The apex is no event while the ball rests, whatever rounding does to its speed."""
    watched = drop(host, method=method, tolerance=tolerance, watched=(1, 0, 0))
    free = drop(host, method=method, tolerance=tolerance)
    assert watched.times(hh.IMPACT) == pytest.approx(free.times(hh.IMPACT), abs=20 * tolerance)
    assert watched.kind[-2:] == (hh.CLOSES, hh.RESTS)
    # None before the first impact, since the ball starts at its apex.
    assert watched.times(hh.USER).size == watched.times(hh.IMPACT).size


def test_many_small_impacts_are_no_chattering(host: HybridHost) -> None:
    """With e = 0.999 there are thousands of impacts on the last millimetres."""
    for watched in ((0, 0, 0), (1, 0, 0)):
        run = host.run(hh.BALL, ball(0.999), (0.0, HEIGHT, 0.0, 0.0), 1200.0, tolerance=1e-9, watched=watched)
        assert run.status == FINISHED
        assert run.times(hh.CLOSES) == pytest.approx([FALL * 1.999 / 0.001], abs=0.1)


def test_many_events_at_loose_tolerances_are_no_chattering(host: HybridHost) -> None:
    run = host.run(hh.BLOCK, (1.0, 1.0, 0.5, 0.3), (0.0, 0.0), 4000.0, tolerance=1e-3)
    assert run.status == FINISHED
    assert run.times(hh.STICKS).size == pytest.approx(4000.0 / 7.5557, abs=2)


@with_each_c_sanitizer
def test_the_loop_under_sanitizers(compiler: Compiler, tmp_path: Path) -> None:
    output = run_program(compiler, host_source("hybrid_sanitized.c"), tmp_path, *SANITIZERS)
    assert output.split() == [str(FINISHED)] * 2 * len(METHODS)


@with_each_compiler
def test_the_headers_pass_strict_compilers(compiler: Compiler, tmp_path: Path) -> None:
    compile_source(compiler, host_source("hybrid_sanitized.c"), tmp_path / "program", "-O0")
