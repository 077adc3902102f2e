"""Ensembles: each motion is that of `integrate`, with its own start, parameters, inputs and failure."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from io import StringIO
from typing import Any

import numpy as np
import pytest
import sympy.physics.mechanics as me
from hybrid_models import wall_pendulum
from messages import raises, says
from rich.console import Console
from state_models import point_mass, solver_of
from systems import initial, solver_for

import kanegen as kg
from kanegen import Outcome, SolveError
from kanegen.progress import ProgressBar

TIMES = (0.0, 0.4, 0.9, 1.0)


def pendulum_starts(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts of the pendulum beside its wall, which release it from rest."""
    angles = np.linspace(0.5, 1.4, count)
    return np.column_stack([np.sin(angles), -np.cos(angles)]), np.zeros((count, 2))


@pytest.mark.parametrize("threads", [1, 3])
def test_motions_with_contacts_are_those_of_integrate(threads: int) -> None:
    solver, (q, u), walls = wall_pendulum(), pendulum_starts(5), np.linspace(0.0, 0.2, 5)
    many = solver.integrate_many((0.0, 1.0), q, u, parameters={"d": walls, "e": 0.5}, t_eval=TIMES, threads=threads)
    assert many.success.all()
    assert many.lanes == 1
    for k in range(5):
        own = solver.with_parameters(d=walls[k], e=0.5).integrate((0.0, 1.0), q[k], u[k], t_eval=TIMES)
        np.testing.assert_array_equal(np.hstack([many.q[k], many.u[k]]), np.hstack([own.q, own.u]))
        assert (many.n_steps[k], many.t_end[k]) == (own.statistics.steps, 1.0)
    assert len(set(many.n_steps)) > 1


def test_starts_by_name_are_completed() -> None:
    solver = solver_for("slider_crank")
    start = dict(zip(solver.description.coordinates, initial("slider_crank")["q"], strict=True))
    speeds = dict.fromkeys(solver.description.speeds, 0.0)
    first = solver.description.coordinates[0]
    angles = np.array([0.3, 0.5])
    solver = solver.with_initial(start | speeds)
    many = solver.integrate_many((0.0, 0.1), {first: angles})
    for k, angle in enumerate(angles):
        own = solver.integrate((0.0, 0.1), {first: angle})
        np.testing.assert_allclose(many.q[k, 0], own.q[-1], rtol=0.0, atol=1e-9)


def test_states_and_inputs_have_rows() -> None:
    solver, forces = solver_of("cart"), np.array([0.0, 0.5, 2.0])
    many = solver.integrate_many((0.0, 1.0), [0.1], [0.0], {"f": forces}, s0=np.outer(forces, [1.0, 0.0]))
    assert many.s.shape == (3, 1, 2)
    for k, force in enumerate(forces):
        own = solver.integrate((0.0, 1.0), [0.1], [0.0], {"f": force}, s0=[force, 0.0])
        np.testing.assert_allclose(many.s[k, 0], own.s[-1], rtol=0.0, atol=1e-8)


def test_motions_fail_alone() -> None:
    solver, start = solver_for("slider_crank"), initial("slider_crank")
    q, u = (np.tile(start[key], (6, 1)) for key in "qu")
    q[1, 0], q[4, 0] = np.nan, q[4, 0] + 0.1
    length = np.where(np.arange(6) == 2, np.inf, solver.parameters["l2"])
    many = solver.integrate_many((0.0, 0.2), q, u, parameters={"l2": length}, max_steps=500)
    assert [failure.index for failure in many.failures] == [1, 2, 4]
    says(repr(many), 6, 3, 1)
    nan, parameter, violated = many.failures
    says(nan.reason, solver.description.coordinates[0], "nan")
    says(parameter.reason, "l2", "inf")
    says(violated.reason, "violates", "position level")
    assert nan.t == 0.0
    assert np.isnan(many.q[[1, 2, 4]]).all()
    np.testing.assert_array_equal(many.success, [True, False, False, True, False, True])
    assert Outcome.from_code(many.status[1]) is Outcome.REFUSED
    stopped = solver.integrate_many((0.0, 0.2), q, u, max_steps=2, t_eval=[0.0, 0.2])
    assert Outcome.from_code(stopped.status[0]) is Outcome.TOO_MANY_STEPS
    says(stopped.failures[0].reason, "max_steps")
    assert 0.0 < stopped.failures[0].t == stopped.t_end[0] < 0.2
    np.testing.assert_array_equal(stopped.q[0, 0], q[0])
    assert np.isnan(stopped.q[0, 1]).all()


def test_a_terminal_event_ends_a_motion_with_success() -> None:
    solver, start = solver_for("impacting_pendulum"), initial("impacting_pendulum")
    own = solver.integrate((0.0, 1.0), start["q"], start["u"])
    many = solver.integrate_many((0.0, 1.0), start["q"], start["u"])
    np.testing.assert_array_equal(many.q[0, 0], own.last[1])
    assert many.success.tolist() == [True]


@pytest.mark.parametrize("kind", ["final", "min", "max", "max_abs", "max_change"])
def test_reductions_are_those_of_the_accepted_steps(kind: str) -> None:
    solver, (q, u) = wall_pendulum(), pendulum_starts(2)
    functions: dict[str, Any] = {
        "final": lambda x: x[-1],
        "min": min,
        "max": max,
        "max_abs": lambda x: max(abs(x)),
        "max_change": lambda x: max(abs(x - x[0])),
    }
    for name in ("w", "energy"):
        many = solver.integrate_many((0.0, 0.7), q, u, reduce=(kind, name))
        assert many.q.shape == (2, 0, 2)
        for k in range(2):
            own = solver.integrate((0.0, 0.7), q[k], u[k])
            values = own["w"] if name == "w" else own.energy
            assert many.values is not None
            assert many.values[k] == functions[kind](values)


def test_wrong_arguments_are_refused() -> None:
    solver, (q, u) = wall_pendulum(), pendulum_starts(4)

    def refused(*names: Any, **changes: Any) -> None:
        with raises(SolveError, *names):
            solver.integrate_many(**({"t_span": (0.0, 1.0), "q0": q, "u0": u} | changes))

    refused("q0", "(4, 3)", "(N, 2)", q0=np.zeros((4, 3)))
    refused("rows", "q0", 4, "u0", 3, u0=u[:3])
    refused("rows", "parameter d", 5, parameters={"d": np.zeros(5)})
    refused("parameter d", "(2, 2)", parameters={"d": np.zeros((2, 2))})
    refused("parameter", "'wall'", parameters={"wall": 1.0})
    refused("t_eval", "1.5", t_eval=[0.5, 1.5])
    refused("t_eval", "sorted", t_eval=[0.5, 0.4])
    refused("threads", 0, threads=0)
    refused("argument", "dense_output", dense_output=True)
    refused("'rtoll'", "'rtol'", rtoll=1e-6)
    refused("method", "euler", method="euler")
    refused("rtol", "-1", rtol=-1)
    refused("atol", "(3,)", "(4,)", atol=[1e-6] * 3)
    refused("reduce", "3", reduce=3)
    refused("reduction", "'mean'", reduce=("mean", "energy"))
    refused("energi", "energy", reduce=("max", "energi"))
    for arrays in ("rhs", "residuals", "Q"):  # not one number
        refused(f"'{arrays}'", "energy", reduce=("max", arrays))
    refused("event", "caugth", events=["caugth"])
    refused("progress", "7", progress=7)
    refused("'max_energy_drift'", reduce="max_energy_drif")
    refused("jacobian_q", "functions=", method="rodas")
    refused("the start", "no value", "q0", q0=None, u0=None)
    refused("r is", "real numbers", r=[1.0, [2.0, 3.0]])


def test_control_options_that_are_wrong_for_all_motions_are_refused() -> None:
    cart, ball = solver_for("cart_pole"), solver_for("bouncing_ball")

    def refused(solver: kg.Solver, *names: Any, span: Any = (0.0, 0.5), **options: Any) -> None:
        rows = np.zeros((3, len(solver.description.coordinates)))
        with raises(SolveError, *names):
            solver.integrate_many(span, rows, rows, **options)

    refused(cart, "control", "'yes'", control="yes")
    refused(cart, "sample_time", "-1", control=True, sample_time=-1)
    refused(cart, "limits", "control=True", limits={"F": 1.0}, r=[0.0])
    refused(cart, "'zz'", "F", control=True, limits={"zz": 1.0})
    refused(cart, "tau0", "kg.ControlConstraints", control=True, tau0=[1.0])
    refused(ball, "control=True", "'bouncing_ball'", control=True)
    refused(ball, "backwards", "'floor'", span=(0.5, 0.0))
    plain = kg.build(ball.model.changed(name="without events", contacts=()), backend="interpreted")
    refused(plain, "'interpreted'", "'verner9'", "dopri5", method="verner9")


def test_a_table_that_ends_before_the_span_is_refused() -> None:
    solver = solver_for("cart_pole")
    table = ([0.0, 0.1], np.zeros((2, 1)))
    with raises(SolveError, "from 0.0 to 0.1", "0.5"):
        solver.integrate_many((0.0, 0.5), np.zeros((3, 2)), np.zeros((3, 2)), table)


def test_progress_counts_motions() -> None:
    solver, (q, u) = wall_pendulum(), pendulum_starts(3)
    seen: list[int] = []
    solver.integrate_many((0.0, 0.1), q, u, progress=seen.append, threads=2)
    assert seen[-1] == 3
    assert seen == sorted(seen)


def test_the_bar_counts_motions(capsys: pytest.CaptureFixture[str]) -> None:
    now, screen = [0.0], Console(file=StringIO(), force_terminal=True)
    with ProgressBar("disks", 0, 50, "{:.0f} of 50 motions", clock=lambda: now[0], console=screen) as bar:
        now[0] = 1.0
        bar(7)
    assert "7 of 50 motions" in screen.file.getvalue()
    solver, (q, u) = wall_pendulum(), pendulum_starts(1)
    assert solver.integrate_many((0.0, 0.1), q, u, progress=np.True_).success.all()
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_keeps_the_motions_that_are_complete(threads: int) -> None:
    solver, (q, u) = wall_pendulum(), pendulum_starts(4000)
    spans = np.full(4000, 0.9)
    timer = threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(kg.IntegrationInterrupted) as caught:
        solver.integrate_many((0.0, 60.0), q, u, parameters={"e": spans}, threads=threads, method="dop853")
    timer.join()
    many = caught.value.solution
    done = many.completed
    assert 0 < done.sum() < 4000
    says(str(caught.value), int(done.sum()), 4000)
    assert np.isfinite(many.q[done & many.success]).all()
    assert np.isnan(many.q[~done]).all()
    assert {Outcome.from_code(code) for code in many.status[~done]} == {Outcome.INTERRUPTED}
    assert not many.success[~done].any()
    copy = pickle.loads(pickle.dumps(many))
    np.testing.assert_array_equal(copy.completed, done)


def test_states_without_a_value_are_named() -> None:
    x, a = me.dynamicsymbols("x a")
    lag = kg.build(point_mass("lag", a - x, states={a: -a}, parameters={"m": 1.0}))
    start = np.ones((3, 1))
    for q0 in (start, {"x": start[:, 0]}):
        with raises(SolveError, "state a", "s0"):
            lag.integrate_many((0.0, 1.0), q0, {"v": 0.0})
    assert lag.integrate_many((0.0, 1.0), start, start, s0=start).success.all()
