"""The examples with feedback laws against the oracle, and against samples and equations written again."""

from __future__ import annotations

import math

import numpy as np
from feedback_models import balanced
from systems import example, initial, oracle_for
from tolerances import SAME_EQUATIONS

import kanegen as kg

PENDULUM = 1e-6
"""Eight seconds with 8000 samples, of a controller whose encoder has steps; 2e-9 was seen."""


def test_regulated_cart_pole_agrees_with_the_oracle_under_its_limited_force() -> None:
    solver, oracle = balanced(), oracle_for("lqr_cart_pole")
    p, rng = solver.parameters, np.random.default_rng(2)
    gains, limited = np.array([p[name] for name in example("lqr_cart_pole").GAINS]), set()
    for _ in range(6):
        z = rng.normal(0.0, 0.15, 4)
        force = float(np.clip(-gains @ z, -p["F_max"], p["F_max"]))
        limited.add(abs(force) == p["F_max"])
        expected = oracle(0.0, z[:2], z[2:], r=(force,)).udot
        np.testing.assert_allclose(solver.rhs(0.0, z[:2], z[2:])[1], expected, rtol=SAME_EQUATIONS, atol=SAME_EQUATIONS)
    assert limited == {True, False}


def test_crane_follows_its_sampled_controller() -> None:
    """Runge-Kutta steps between samples, Lagrange's equations, the controller from the formulas of the docstring."""
    module = example("sampled_pid")
    p, (solver, solution) = module.DEFAULTS, module.simulate()
    T, steps = module.T, 4

    def rates(z: np.ndarray, force: float) -> np.ndarray:
        c, s = math.cos(z[1]), math.sin(z[1])
        M = np.array([[p["m_t"] + p["m_l"], p["m_l"] * p["l"] * c], [p["m_l"] * p["l"] * c, p["m_l"] * p["l"] ** 2]])
        push = force - p["b"] * z[2] - p["W"] + p["m_l"] * p["l"] * s * z[3] ** 2
        return np.concatenate([z[2:], np.linalg.solve(M, [push, -p["m_l"] * p["g"] * p["l"] * s])])

    z, integral, slope, last = np.zeros(4), 0.0, 0.0, None
    motion, memory = [z], math.exp(-T / p["T_f"])
    for _ in range(2000):
        y = p["res"] * math.floor(z[0] / p["res"])
        slope = memory * slope + (1 - memory) * (0.0 if last is None else (y - last) / T)
        wanted = p["Kp"] * (p["x_ref"] - y) + integral - p["Kd"] * slope
        force, last = max(-p["F_max"], min(p["F_max"], wanted)), y
        integral += p["Ki"] * T * (p["x_ref"] - y) if force == wanted else 0.0
        for _ in range(steps):
            h = T / steps
            k1 = rates(z, force)
            k2 = rates(z + h / 2 * k1, force)
            k3 = rates(z + h / 2 * k2, force)
            z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + rates(z + h * k3, force))
        motion.append(z)
    np.testing.assert_allclose(np.hstack(solution(np.arange(2001) * T)), motion, rtol=0, atol=PENDULUM)
    assert isinstance(solver, kg.Solver)


def test_default_gains_are_those_of_the_regulator() -> None:
    module = example("lqr_cart_pole")
    optimal, _, _ = module.regulator(kg.build(module.model(), functions="all"))
    for name in module.GAINS:
        assert abs(optimal.parameters[name] - module.DEFAULTS[name]) < 0.06
    assert initial("lqr_cart_pole")["r"] is None
