"""Predictive control of a cart with a pole
==========================================

A cart that swings up a pole, stands it upright in spite of a push, and carries it to another place.

The model is that of `optimal_swing_up`: a cart on a rail, with a point mass on a massless pole, theta from the downward
vertical. Every ``SAMPLE`` = 25 ms a predictive controller plans the motion of the next ``HORIZON`` = 1 s in 40
intervals and gives the first force of the plan (Diehl, Bock and Schloeder 2005, "A real-time iteration scheme for
nonlinear optimization in optimal feedback control"). It knows the bounds ``|F| <= F_MAX`` and ``|x| <= X_MAX``. The
cost is the integral of weighted squares of the distance from ``goal`` at rest; at the end of the horizon, it is the
cost from there on of the linear regulator about the upright pole. The plant differs from the model of the controller:
its tip is 20 % heavier, and from 3 s to 3.2 s a force of 4 N pushes the cart.

Near the goal no bound is active, so that the controller is the discrete linear-quadratic regulator, whose gain the
script computes from the linear model and SciPy's solution of Riccati's equation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import optimal_swing_up
import sympy as sm
from scipy.linalg import cholesky, expm, solve_discrete_are

import kanegen as kg

INITIAL = optimal_swing_up.INITIAL
HORIZON, SAMPLE, F_MAX, X_MAX = 1.0, 0.025, 20.0, 2.0
Q, R = np.diag([10.0, 10.0, 0.1, 0.1]), np.array([[0.01]])
PUSH, MOVE, END = (3.0, 3.2, 4.0), (5.0, 0.8), 8.0
"""Begin, end and force of the push; time and place of the new goal; end of the motion."""


def model() -> kg.Model:
    """The cart with its pole."""
    return optimal_swing_up.model()


def regulator() -> tuple[np.ndarray, np.ndarray]:
    """Gain and cost to go of the regulator about the upright pole at rest, with a force that is constant in a sample.

    The cost of a sample is an integral of exponentials (Van Loan 1978, "Computing integrals involving the matrix
    exponential").
    """
    linear = kg.build(model(), functions="all").linearize(0.0, [0.0, np.pi], np.zeros(2), [0.0])
    A = np.block([[linear.A, linear.B], [np.zeros((1, 5))]])
    weights = np.block([[Q, np.zeros((4, 1))], [np.zeros((1, 4)), R]])
    flow = expm(SAMPLE * np.block([[-A.T, weights], [np.zeros((5, 5)), A]]))
    step = flow[5:, 5:]
    cost = step.T @ flow[:5, 5:]
    a, b, s = step[:4, :4], step[:4, 4:], cost[:4, 4:]
    P = solve_discrete_are(a, b, cost[:4, :4], cost[4:, 4:], s=s)
    return np.linalg.solve(cost[4:, 4:] + b.T @ P @ b, b.T @ P @ a + s.T), P


@cache
def controller() -> kg.PredictiveController:
    """The controller, with ``goal`` as a parameter of its cost."""
    system, goal = model(), sm.Symbol("goal")
    (x, theta), (v, w), F = system.coordinates, system.speeds, system.inputs[0].symbol
    z = sm.Matrix([x - goal, theta - sm.pi, v, w])
    root = sm.Matrix(cholesky(regulator()[1]))
    problem = kg.OptimalControl(
        system,
        minimize=kg.Integral(sum(q * e**2 for q, e in zip(np.diag(Q), z, strict=True)) + R[0, 0] * F**2)
        + sum(kg.AtEnd(e**2) for e in root * z),
        duration=HORIZON,
        bounds={"F": (-F_MAX, F_MAX), "x": (-X_MAX, X_MAX)},
        parameters={goal: 0.0},
    )
    return problem.controller(HORIZON, SAMPLE)


def simulate() -> tuple[kg.Solver, kg.Solution]:
    planned = controller()
    planned.reset()
    planned.set("goal", 0.0)

    def force(t: float, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        if t >= MOVE[0]:
            planned.set("goal", MOVE[1])
        begin, end, push = PUSH
        return planned(t, q, u) + (push if begin <= t < end else 0.0)

    solver = kg.build(model(), functions="all")
    heavier = solver.with_parameters({"m_p": 1.2 * solver.parameters["m_p"]})
    return heavier, heavier.integrate((0.0, END), [0.0, 0.0], [0.0, 0.0], force, sample_time=SAMPLE)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    before, after = (np.flatnonzero(solution.t <= time)[-1] for time in (PUSH[0], MOVE[0]))
    yield "the pole stands before the push (rad)", float(solution["theta"][before]) - np.pi, 2e-2
    yield "the pole stands again before the goal moves (rad)", float(solution["theta"][after]) - np.pi, 2e-2
    yield "the cart is at its new place at the end (m)", solution["x"][-1] - MOVE[1], 2e-2
    pushed = (solution.t >= PUSH[0]) & (solution.t < PUSH[1])
    yield "largest force over its limit, without the push (N)", np.abs(solution["F"][~pushed]).max() - F_MAX, 1e-9
    yield "largest distance over its limit (m)", max(np.abs(solution["x"]).max() - X_MAX, 0.0), 1e-2
    (K, _), planned = regulator(), controller()
    planned.set("goal", 0.0)
    errors = []
    for row in 1e-3 * np.eye(4):
        planned.reset()
        force = planned.solve(0.0, np.array([0.0, np.pi]) + row[:2], row[2:])
        errors.append(force[0] + K[0] @ row)
    yield "gains against the discrete regulator, relative", np.abs(errors).max() / np.abs(1e-3 * K).max(), 1e-3


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((_, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    for axes in solution.plot("x", "theta", "F", ax=left):
        axes.axvspan(*PUSH[:2], color="0.9")
        axes.axvline(MOVE[0], color="0.6", linestyle=":")
    kg.plot.strobe(solution, _cart_and_tip, times=np.linspace(0.0, 2.0, 21), ax=right).set_title("0 to 2 s")


def _cart_and_tip(x: Any, theta: Any) -> list[tuple[Any, Any]]:
    length = optimal_swing_up.DEFAULTS["l"]
    return [(x, 0.0), (x + length * np.sin(theta), -length * np.cos(theta))]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
