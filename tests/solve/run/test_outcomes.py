"""Every way in which a run can end, provoked: what the message names, what is kept, and that the advice helps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from handmade_track import solver as track
from handmade_track import start
from hybrid_models import block, painleve, sliding_rod
from linkages import solver_of
from messages import says

import kanegen as kg
from kanegen.solve import IntegrationError, IntegrationInterrupted, Outcome, Solution

REST = np.zeros(2)
Q, U = start()


@cache
def switched() -> kg.Solver:
    """A particle of 1 kg under -1 N or +1 N on either side of the line x + v = 0, and under k sqrt(x + 2)."""
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    model = kg.Model(
        name="switched",
        frame=N,
        coordinates=(x,),
        speeds=(v,),
        kinematics=(x.diff(me.dynamicsymbols._t) - v,),
        bodies=(me.Particle("body", P, 1),),
        loads=((P, (sm.Symbol("k") * sm.sqrt(x + 2) - sm.sign(x + v)) * N.x),),
        parameters={"k": 0.0},
        events=(kg.Event("line", x + v),),
    )
    return kg.build(model, functions=("rhs",))


def lifted(r: Callable[[float], Any]) -> Solution:
    """A ball on a rod whose length is an input: consistent for 1 m, in two steps."""
    ball = solver_of("lifted_ball").with_stabilization(kg.Projection())
    q, u = ball.make_consistent(0.0, (1.0, 0.0, -0.5), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
    return ball.integrate((0.0, 1.0), q, u, r, method="rk4", step=0.5)


@cache
def rail(extrapolate: str = "error") -> kg.Solver:
    """A particle on a rail whose resistance is a table from 0 to 1 m, here of zeros."""
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    table = kg.Spline([0, 0.5, 1], [0, 0, 0], name="resistance", extrapolate=extrapolate)
    model = kg.Model(
        name="rail",
        frame=N,
        coordinates=(x,),
        speeds=(v,),
        kinematics=(x.diff() - v,),
        bodies=(me.Particle("body", P, 1),),
        loads=((P, -table(x) * N.x),),
    )
    return kg.build(model, functions=("rhs",))


def broken_input(t: float) -> list[float]:
    if t > 0.5:
        raise ValueError("no data")
    return [0.0, 0.0, 0.0]


def track_run(**options: Any) -> Solution:
    return track().integrate(**{"t_span": (0.0, 1.0), "q0": Q, "u0": U, **options})


@dataclass(frozen=True)
class Case:
    """A run with this outcome, when it ends (s) and how exactly that is known, names in its message, and a run that
    follows the advice."""

    run: Callable[[], Solution]
    end: float
    within: float = 1e-6
    names: tuple[str, ...] = ()
    remedy: Callable[[Solution], Solution] | None = None


CASES = {
    Outcome.FINISHED: Case(track_run, 1.0),
    Outcome.TERMINAL_EVENT: Case(
        lambda: block().integrate((0.0, 9.0), [0.9, 0.0], [2.0, 0.0], events=["far"]), (2.0 - np.sqrt(3.4)) / 3.0
    ),
    Outcome.STEP_COLLAPSED: Case(
        lambda: track_run(r=lambda t: [0.0, 0.0, 1.0 / (0.3 - t) ** 2]),
        0.3,
        names=("singular", "discontinuous", "tolerances"),
    ),
    Outcome.TOO_MANY_STEPS: Case(
        lambda: track_run(method="rk4", step=0.01, max_steps=5),
        0.05,
        names=("t = 0.05", "max_steps"),
        remedy=lambda _: track_run(method="rk4", step=0.01, max_steps=200),
    ),
    Outcome.NOT_FINITE: Case(
        lambda: switched().integrate((0.0, 1.0), [-3.0], [0.0], events=()),
        0.0,
        names=("udot[0]", "v'", "nan", "x=-3.0"),
        remedy=lambda _: switched().integrate((0.0, 1.0), [1.0], [0.0], events=()),
    ),
    Outcome.RIGHT_HAND_SIDE_FAILED: Case(
        lambda: track_run(t_span=(999.5, 1000.5)), 1000.0, names=("singular", "pseudoinverse", "mass")
    ),
    Outcome.OUTSIDE_TABLE: Case(
        lambda: rail().integrate((0.0, 1.0), [0.0], [2.0]),
        0.5,
        names=("'resistance'", "is 1 at t = 0.5", "from 0 to 1", "extrapolate="),
        remedy=lambda _: rail("constant").integrate((0.0, 1.0), [0.0], [2.0]),
    ),
    Outcome.INCONSISTENT: Case(
        lambda: lifted(lambda t: [1e150 if t >= 0.5 else 1.0, 0.0, 0.0]),
        0.5,
        names=("constraints",),
        remedy=lambda _: lifted(lambda t: [1.0, 0.0, 0.0]),
    ),
    Outcome.NO_MODE: Case(
        lambda: painleve().integrate((0.0, 0.01), *sliding_rod(0.0)), 0.0, names=("'tip'", "friction", "compliant")
    ),
    Outcome.SEVERAL_MODES: Case(
        lambda: painleve().integrate((0.0, 1e-3), *sliding_rod(4.0)),
        0.0,
        names=("'tip'", "friction", "compliant"),
        remedy=lambda _: painleve().integrate((0.0, 1e-3), *sliding_rod(4.0), modes={"tip": "open"}),
    ),
    Outcome.CHATTERING: Case(
        lambda: switched().integrate((0.0, 20.0), [1.0], [0.0]), np.sqrt(3.0) - 1.0, 1e-3, ("'line'",)
    ),
    Outcome.GAP_VIOLATED: Case(
        lambda: block().integrate((0.0, 1.0), [0.0, -0.1], REST, events=()),
        0.0,
        names=("'floor'", "gap"),
        remedy=lambda _: block().integrate((0.0, 1.0), [0.0, 0.0], REST, events=()),
    ),
    Outcome.INTERRUPTED: Case(
        lambda: track_run(r=broken_input, max_step=0.1),
        0.45,
        0.06,
        ("ValueError", "no data"),
        remedy=lambda stopped: track().integrate((stopped.last[0], 1.0), *stopped.last[1:3]),
    ),
}


def attempt(run: Callable[[], Solution]) -> tuple[Solution, str | None]:
    """The solution of a run and the message of its error, if there is one."""
    try:
        return run(), None
    except IntegrationError as error:
        return error.solution, str(error)


# A start that is refused is an error without a solution, and an outcome of a motion in an ensemble only.
@pytest.mark.parametrize("outcome", [x for x in Outcome if x is not Outcome.REFUSED], ids=lambda outcome: outcome.name)
def test_a_run_that_ends_this_way_says_so_and_keeps_its_results(outcome: Outcome) -> None:
    case = CASES[outcome]
    solution, message = attempt(case.run)
    assert solution.status is outcome
    assert Outcome.from_code(outcome.code) is outcome
    assert solution.success == (message is None)
    if message is not None:
        says(message, *case.names, "solution")
    assert solution.last[0] == pytest.approx(case.end, abs=case.within)
    assert solution.t[-1] <= solution.last[0]
    assert np.isfinite(solution.q).all()
    assert np.isfinite(solution.u).all()


@pytest.mark.parametrize("outcome", [o for o in CASES if CASES[o].remedy], ids=lambda outcome: outcome.name)
def test_following_the_advice_helps(outcome: Outcome) -> None:
    case = CASES[outcome]
    assert case.remedy is not None
    assert case.remedy(attempt(case.run)[0]).success


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("events", [None, ()])
def test_an_exception_of_the_progress_is_the_one_that_is_raised(error: type[BaseException], events: Any) -> None:
    """Also where the guard of an event was zero so far, and after the last step."""

    def stop(t: float) -> None:
        raise error("enough")

    with pytest.raises((IntegrationError, IntegrationInterrupted)) as caught:
        switched().integrate((0.0, 1e4), [0.0], [0.0], events=events, progress=stop)
    assert isinstance(caught.value.__cause__, error)
    assert caught.value.solution.status is Outcome.INTERRUPTED
    if caught.value.solution.last[0] == 1e4:
        says(str(caught.value), "reached its end", "10000.0")
