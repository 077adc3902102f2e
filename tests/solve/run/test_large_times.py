"""Runs at times at which t has a rounding of 0.2 us: they end where they end at t = 0, single and on lanes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from feedback_models import F, particle, v, x, y

import kanegen as kg
from kanegen.codegen.methods.table import ADAPTIVE

UNIX = 1.7e9
TIMES = (0.0, UNIX, -UNIX)
omega = sm.Symbol("omega", positive=True)


@cache
def oscillator() -> kg.Solver:
    return kg.build(particle((-2 * omega**2 * x, -2 * y), parameters={omega: 1e3}), functions="all")


@pytest.mark.parametrize("t0", TIMES)
@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.parametrize("rate", [1e2, 1e3, 1e4])
def test_a_fast_oscillation_finishes(t0: float, method: str, rate: float) -> None:
    """More steps than a run may have that lead nowhere, each of them 10 to 10,000 roundings of t long."""
    t1 = t0 + 400.0 / rate
    turns = rate * (t1 - t0)  # the span is rounded
    solver, tolerances = oscillator().with_parameters({omega: rate}), {"rtol": 1e-6, "atol": [1e-8, 1e-8, 1e-5, 1e-5]}
    run = solver.integrate((t0, t1), [1.0, 1.0], [0.0, 0.0], method=method, **tolerances)
    assert run.statistics.steps > (500 if method in ("dopri5", "rodas") else 100)
    assert run.q[-1, 0] == pytest.approx(np.cos(turns), abs=2e-3)
    many = solver.integrate_many((t0, t1), [[1.0, 1.0]], [0.0, 0.0], method=method, **tolerances)
    assert not many.failures
    assert many.q[0, -1, 0] == pytest.approx(np.cos(turns), abs=2e-3)


@cache
def stiff() -> kg.Solver:
    """x decays to a slow motion, so that the steps of an explicit method change the state little."""
    return kg.build(particle((-2 * omega * (v - y), 0), parameters={omega: 1e4}))


@pytest.mark.parametrize("t0", TIMES)
def test_steps_limited_by_stability_are_not_lost(t0: float) -> None:
    for rtol in (1e-3, 1e-6):
        options: Any = {"rtol": rtol, "atol": rtol}
        run = stiff().integrate((t0, t0 + 0.5), [0.0, 1.0], [0.0, 0.0], **options)
        assert run.statistics.steps > 1000
        assert run.q[-1, 0] == pytest.approx(run.t[-1] - run.t[0], abs=1e-2)
        assert not stiff().integrate_many((t0, t0 + 0.5), [[0.0, 1.0]], [0.0, 0.0], **options).failures


WALLS: dict[str, Callable[[int], sm.Expr]] = {
    "no value beyond a place": lambda t0: sm.sqrt(1 - x) - 1,
    "no value after a time": lambda t0: sm.log(sm.Rational(1, 2) + t0 - me.dynamicsymbols._t),
}


@pytest.mark.parametrize("t0", [0.0, UNIX])
@pytest.mark.parametrize("wall", WALLS)
def test_an_obstacle_ends_the_run(wall: str, t0: float) -> None:
    solver = kg.build(particle((WALLS[wall](int(t0)), 0)))
    with pytest.raises(kg.IntegrationError) as caught:
        solver.integrate((t0, t0 + 3.0), [0.0, 0.0], [1.0, 1.0], max_steps=200_000)
    assert caught.value.solution.statistics.steps < 20_000, str(caught.value)
    assert solver.integrate_many((t0, t0 + 3.0), [[0.0, 0.0]], [1.0, 1.0], max_steps=200_000).failures


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
def test_rodas_takes_the_same_steps_in_every_unit_of_time(scale: float) -> None:
    """The difference quotient in t of inputs r(t) suits the steps: nanoseconds took ten times as many."""
    rate = 1.0 / scale
    solver = kg.build(
        particle((-2 * omega**2 * x + F, -y), inputs=[F], parameters={omega: 1.0}), functions=("rhs", "jacobians")
    )
    counts = []
    for unit, w in ((1.0, 1.0), (scale, rate)):
        force = lambda t, w=w: w * w * np.sin(3.0 * w * t)  # noqa: E731
        atol = [1e-8, 1e-8, 1e-8 * w, 1e-8 * w]
        run = solver.with_parameters({omega: w}).integrate(
            (0.0, 20.0 * unit), [1.0, 0.0], [0.0, 0.0], r={"F": force}, method="rodas", rtol=1e-6, atol=atol
        )
        counts.append(run.statistics.steps)
    assert abs(counts[1] - counts[0]) <= 0.05 * counts[0] + 2
