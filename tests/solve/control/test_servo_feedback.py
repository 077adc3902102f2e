"""Free vectors that contain the controls, y = Y tau + y0: fixed points of (481) by NumPy's pseudoinverse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from oracle import Oracle
from servo_systems import Plant, line, rod, rod_oracle, rod_state
from systems import example
from tolerances import SERVO_LAW

import kanegen as kg
from kanegen.codes import Status
from kanegen.program.assemble import assemble
from kanegen.program.interpret import interpret
from kanegen.program.options import BuildOptions

F1, F2, F3, wind, x1, v1 = me.dynamicsymbols("F1 F2 F3 wind x1 v1")
TAU = sm.Matrix([F1, F2, F3])
RNG = np.random.default_rng(17)
MATRIX = RNG.uniform(-1.5, 1.5, (3, 3))
OFFSET = (x1 * wind, 0.5, v1)
WEIGHT = ((2 + x1**2, 0.3, 0), (0.3, 1, 0), (0, 0, 4))
RESOLUTIONS: dict[str, dict[str, Any]] = {
    "moore_penrose": {},
    "weighted": {"resolution": "weighted", "weight": WEIGHT},
}


def fixed_point(S: np.ndarray, z: np.ndarray, Y: np.ndarray, y0: np.ndarray, W: np.ndarray) -> np.ndarray:
    """tau = L z + (I - L S) (Y tau + y0) with the weighted inverse L of S."""
    root = np.linalg.cholesky(np.linalg.inv(W))
    L = root @ np.linalg.pinv(S @ root)
    N = np.eye(len(y0)) - L @ S
    return np.linalg.solve(np.eye(len(y0)) - N @ Y, L @ z + N @ y0)


def plant(model: kg.Model, seed: int) -> Plant:
    return Plant(model, rod_oracle(), **rod_state(seed, gains=False))


def interpreted(model: kg.Model, state: Plant) -> tuple[int, np.ndarray]:
    """Status and controls of the program, without a compile; the passive constraints are not stabilized."""
    equations = kg.derive(model)
    program, _ = assemble(equations, BuildOptions.of("auto", ("control",)))
    values = {"t": [state.t], "q": state.q, "u": state.u, "r": state.r, "p": model.parameters.values()}
    values["g"] = np.zeros(len(equations.gain_names))
    status, tau = interpret(program, "control", {name: [*map(float, x)] for name, x in values.items()})
    return status, np.array(tau, dtype=float)


def numbers(state: Plant) -> tuple[np.ndarray, np.ndarray]:
    """y0 and W at the state."""
    y0 = np.array([state.q[0] * state.r[3], 0.5, state.u[0]])
    return y0, np.array(sm.Matrix(WEIGHT).subs(x1, state.q[0]), dtype=float)


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_the_controls_are_the_fixed_point(resolution: str) -> None:
    """Two servo-constraints, three controls, a passive constraint; what stands in r for the controls is not read."""
    model = rod(y=[*(sm.Matrix(MATRIX) * TAU + sm.Matrix(OFFSET))], **RESOLUTIONS[resolution])
    state = plant(model, 0)
    S, z = state.system()
    y0, W = numbers(state)
    expected = fixed_point(S, z, MATRIX, y0, W if "weight" in RESOLUTIONS[resolution] else np.eye(3))
    status, tau = interpreted(model, replace(state, r=state.inputs([3.0, -4.0, 5.0])))
    assert status >= 0
    assert tau == pytest.approx(expected, rel=SERVO_LAW)
    assert np.abs(state.deviation(state.reference(tau).udot, tau)).max() < SERVO_LAW


def test_compiled_controls() -> None:
    """Y = x1 I + (1 - x1) K: at x1 = 1, y = tau + y0 leaves open which of the enforcing controls is meant."""
    Y = x1 * sm.eye(3) + (1 - x1) * sm.Matrix(MATRIX)
    model = line(3, y=[*(Y * TAU + sm.Matrix((v1, 0.5, -1)))], **RESOLUTIONS["weighted"])
    solver, oracle = kg.build(model, functions=("control",)), Oracle(model)
    u = np.array([0.4, -0.6, 0.3])
    for q in RNG.uniform(-0.5, 0.5, (3, 3)):
        state = Plant(model, oracle, 0.0, q, u, np.zeros(3))
        at_state, W = np.array(Y.subs(x1, q[0]), dtype=float), np.array(sm.Matrix(WEIGHT).subs(x1, q[0]), dtype=float)
        expected = fixed_point(*state.system(), at_state, np.array([u[0], 0.5, -1]), W)
        assert solver.control(0.0, q, u, r=(3.0, -4.0, 5.0)) == pytest.approx(expected, rel=SERVO_LAW)
    with raises(kg.SolveError, "y", "controls"):
        solver.control(0.0, (1.0, 0.2, -0.4), u)


def test_controls_that_oppose_themselves_are_those_of_least_norm() -> None:
    """y = -tau: N tau = -N tau, the controls of y = 0."""
    model = rod(y=[*-TAU])
    state = plant(model, 1)
    S, z = state.system()
    assert interpreted(model, state)[1] == pytest.approx(np.linalg.pinv(S) @ z, rel=SERVO_LAW)


def test_one_control_for_each_servo_constraint_leaves_nothing_to_y() -> None:
    model = line(3, controls=me.dynamicsymbols("F1 F3"), y=(F1 + 2 * F3, 1 - F1))
    q, u = RNG.uniform(-1, 1, 3), RNG.uniform(-1, 1, 3)
    state = Plant(model, Oracle(model), 0.0, q, u, np.array([0.0, 0.7, 0.0]))
    assert interpreted(model, state)[1] == pytest.approx(np.linalg.solve(*state.system()), rel=SERVO_LAW)


def test_damped_controls() -> None:
    """tau = y + L (z - S y) with singular values below the damping as large as it."""
    damping, Y, y0 = 2.0, MATRIX[:2, :2], np.array([0.3, -0.2])
    forces = sm.Matrix(me.dynamicsymbols("F1 F2"))
    model = line(2, y=[*(sm.Matrix(Y) * forces + sm.Matrix(y0))], damping=damping)
    state = Plant(model, Oracle(model), 0.0, np.array([0.2, -0.7]), np.array([0.5, 0.1]), np.zeros(2))
    S, z = state.system()
    assert np.linalg.norm(S) < damping
    L = S.T / damping**2
    expected = np.linalg.solve(np.eye(2) - (np.eye(2) - L @ S) @ Y, y0 + L @ (z - S @ y0))
    assert interpreted(model, state)[1] == pytest.approx(expected, rel=SERVO_LAW)


@pytest.mark.parametrize("gap", [0.0, 1.0])
def test_at_rest_the_free_vector_decides_alone_or_no_controls_exist(gap: float) -> None:
    """S = 0: with the wanted energy all controls do, which leaves tau = y(tau); with another energy none do."""
    module = example("energy_servo")
    tau1, tau2 = me.dynamicsymbols("tau1 tau2")
    model = module.model(y=(tau2 / 2 + 1, -tau1 / 4))
    q, rest = module.INITIAL["q"], (0.0, 0.0)
    state = dict(zip((*model.coordinates, *model.speeds), (*q, *rest), strict=True))
    psi = model.control.constraints[0].subs({**state, **model.parameters})
    E_f = next(symbol for symbol in model.parameters if symbol.name == "E_f")
    energy = model.parameters[E_f] + float(psi)
    wanted = model.with_reactions({}, parameters={**model.parameters, E_f: energy + gap})
    status, tau = interpreted(wanted, Plant(wanted, Oracle(wanted), 0.0, q, rest, np.zeros(2)))
    if gap:
        assert status == Status.INFEASIBLE
    else:
        assert status >= 0
        assert tau == pytest.approx(np.linalg.solve([[1, -0.5], [0.25, 1]], [1, 0]), rel=SERVO_LAW)
