"""Contacts and latches together with bilateral constraints, stabilized and projected; interruption; command line."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hybrid_models import block, wall_pendulum
from messages import raises
from systems import EXAMPLES, solver_for

import kanegen as kg
from kanegen.cli.main import main
from kanegen.errors import SolveError
from kanegen.solve import IntegrationInterrupted, Solution

START = np.array([0.6, -0.8])
REST = np.zeros(2)
ENERGY = 10.0 * START[1]


def energies(solution: Solution) -> np.ndarray:
    return 0.5 * (solution.u**2).sum(axis=1) + 10.0 * solution.q[:, 1]


@pytest.mark.parametrize(
    ("stabilization", "residual"), [(kg.Projection(), 1e-13), (kg.Baumgarte(20.0, 20.0), 1e-9), (None, 1e-8)]
)
def test_impacts_keep_the_constraints(stabilization: kg.Baumgarte | kg.Projection | None, residual: float) -> None:
    solver = wall_pendulum().with_stabilization(stabilization)
    solution = solver.integrate((0.0, 4.0), START, REST, events=(), rtol=1e-10, atol=1e-12)
    impacts = [event for event in solution.events if event.kind == "impact"]
    assert len(impacts) == 4
    speed = np.sqrt(2.0 * 10.0 * (1.0 + START[1]))
    for k, event in enumerate(impacts):
        # The circle is horizontal at the wall: the ball's law, 0.9 of the speed after each impact.
        np.testing.assert_allclose(event.u_before, [-speed * 0.9**k, 0.0], atol=1e-6)
        np.testing.assert_allclose(event.u_after[0], -0.9 * event.u_before[0], rtol=1e-12)
        np.testing.assert_allclose(event.impulse, [1.9 * speed * 0.9**k, 0.0], atol=1e-6)
    states = zip(solution.t, solution.q, solution.u, strict=True)
    left = np.array([np.concatenate(solver.residuals(*state)) for state in states])
    np.testing.assert_allclose(left, 0.0, atol=residual)
    if isinstance(stabilization, kg.Projection):
        assert solution.statistics.projections > 0


def test_projection_keeps_the_energy_between_impacts() -> None:
    solution = wall_pendulum().integrate((0.0, 4.0), START, REST, events=(), method="rk4", step=0.05)
    ratio = energies(solution) + 10.0
    for event in solution.events:
        ratio[np.flatnonzero(solution.t == event.t)[1] :] /= 0.81
    assert len(solution.events) == 4
    # Nearly at rest, where it turns, no small correction of the speeds makes up for the energy: it waits.
    moving = np.abs(solution.u).max(axis=1) > 0.2
    np.testing.assert_allclose(ratio[moving], 10.0 + ENERGY, rtol=1e-12)
    assert moving.sum() > 0.8 * len(moving)
    with raises(SolveError, "contacts", "floor", "energy"):
        block().with_stabilization(kg.Projection(integrals=("energy",))).integrate((0.0, 1.0), REST, REST)


def test_a_latch_catches_and_releases() -> None:
    """Caught as it rises, the pendulum hangs still until it is released, and falls from there."""
    held = wall_pendulum().integrate((0.0, 3.4), START, [2.0, 1.5], rtol=1e-10, atol=1e-12)
    assert [(event.name, event.kind) for event in held.events][:2] == [("caught", "user"), ("catch", "imposed")]
    caught = held.events[0]
    np.testing.assert_allclose(caught.q, [0.8, -0.6], atol=1e-9)
    np.testing.assert_allclose(caught.u_after, 0.0, atol=1e-9)
    assert caught.jumps
    waiting = (held.t > caught.t) & (held.t < 3.0)
    np.testing.assert_allclose(held.q[waiting], np.tile([0.8, -0.6], (waiting.sum(), 1)), atol=1e-8)
    released = next(event for event in held.events if event.name == "released")
    assert released.t == pytest.approx(3.0, abs=1e-12)
    assert [phase.modes["catch"] for phase in held.contacts.phases][:3] == ["open", "closed", "open"]
    after = held.t > 3.0
    np.testing.assert_allclose(energies(held)[after], -6.0, atol=1e-7)
    assert held.contacts.names == ("wall", "catch")
    # The particle rests on circle and latch: their forces carry its weight.
    reaction = np.array([[1.6, 0.0], [-1.2, 1.0]])
    forces = np.linalg.solve(reaction, [0.0, 10.0])
    assert held.contacts is not None
    np.testing.assert_allclose(held.contacts.forces[waiting, 1], forces[1], rtol=1e-7)


def test_interrupt_in_a_run_with_contacts(interruptible: None) -> None:
    solver = solver_for("bouncing_ball").with_parameters(e=1.0)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(IntegrationInterrupted) as caught:
        solver.integrate((0.0, 1e9), [1.0], [0.0], dense_output=False)
    timer.join()
    solution = caught.value.solution
    assert solution.events
    assert solution.events[-1].t <= solution.last[0]
    assert len(solution.contacts.forces) == len(solution.t)


def test_the_command_line_prints_events(session_cache: Path) -> None:
    runner = CliRunner(env={"KANEGEN_CACHE_DIR": str(session_cache), "COLUMNS": "200"})
    done = runner.invoke(main, ["run", str(EXAMPLES / "bouncing_ball.py"), "--time", "2"])
    assert done.exit_code == 0, done.output
    assert "3 events: 3 impact" in done.output
    assert "1.75191173" in done.output
