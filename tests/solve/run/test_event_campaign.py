"""Random motions with resets, impulses, sampled inputs and several guards: all their events, from closed forms."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_reference import DIRECTIONS, OMEGA, QUANTITIES, Motion, random_motion

import kanegen as kg

METHODS = {"dopri5": 1e-8, "dop853": 1e-10, "verner9": 1e-10, "rodas": 1e-7, "rk4": 1e-6}
"""Tolerances of the methods; rk4 has a fixed step."""
SEPARATION = 1e-6
"""Events of the reference are further apart, s."""


@cache
def solver() -> kg.Solver:
    """The two masses and the clock of the reference; coefficients of guards and actions are parameters."""
    x, y, v, w, z, F = me.dynamicsymbols("x y v w z F")
    a, scale, t0 = sm.symbols("a scale t0")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A, B = O.locatenew("A", x * N.x), O.locatenew("B", y * N.y)
    A.set_vel(N, v * N.x)
    B.set_vel(N, w * N.y)
    quantities = dict(zip(QUANTITIES, (1, x, v, y, w, z, F, me.dynamicsymbols._t - t0), strict=True))
    r, k = sm.symbols("r:4"), sm.symbols("k:4")
    actions = [{"reset": {z: r[2 * i] + r[2 * i + 1] * z}} for i in range(2)]
    actions += [{"impulse": name} for name in ("one", "two")]
    actions += [{}, {"terminal": True}]
    events, parameters = [], dict.fromkeys((a, t0, *r, *k), 0.0) | {scale: 1.0}
    for i, (direction, action) in enumerate(zip(DIRECTIONS, actions, strict=True)):
        c = sm.symbols(f"c{i}_:8")
        parameters |= dict.fromkeys(c, 1.0)
        guard = scale * sum(ci * quantity for ci, quantity in zip(c, quantities.values(), strict=True))
        events.append(kg.Event(f"e{i}", guard, direction=direction, **action))
    return kg.build(
        kg.Model(
            name="campaign",
            frame=N,
            coordinates=[x, y],
            speeds=[v, w],
            kinematics=[x.diff() - v, y.diff() - w],
            bodies=[me.Particle("A", A, sm.Integer(1)), me.Particle("B", B, sm.Integer(1))],
            loads=[(A, (a + F) * N.x), (B, -(OMEGA**2) * y * N.y)],
            states={z: 1},
            inputs=[kg.Input(F, default=0.0)],
            impulses={name: [(A, (k[2 * i] + (k[2 * i + 1] - 1) * v) * N.x)] for i, name in enumerate(("one", "two"))},
            events=events,
            parameters=parameters,
        )
    )


def run(motion: Motion, method: str, tolerance: float, scale: float) -> kg.Solution:
    values = {f"c{i}_{j}": c for i, row in enumerate(motion.guards) for j, c in enumerate(row)}
    values |= {f"r{i}": float(c) for i, c in enumerate(motion.resets.ravel())}
    values |= {f"k{i}": float(c) for i, c in enumerate(motion.impulses.ravel())}
    parameters = values | {"a": motion.acceleration, "scale": scale, "t0": motion.t0}
    x, v, y, w, z = motion.start.tolist()
    sampled = {"r": lambda t: [motion.sample(t)], "sample_time": motion.sample_time}
    steps = {"step": 0.01} if method == "rk4" else {"rtol": tolerance, "atol": tolerance}
    return (
        solver()
        .with_parameters(**parameters)
        .integrate(
            (motion.t0, motion.t1), [x, y], [v, w], s0=[z], events=[f"e{i}" for i in motion.watched], method=method,
            **steps, **(sampled if np.isfinite(motion.sample_time) else {}),
        )
    )  # fmt: skip


def reversed_in_time(motion: Motion) -> Motion:
    """The same positions with the opposite speeds and clock: its run backward is the motion."""
    signs = np.array([1.0, 1.0, -1.0, 1.0, -1.0, -1.0, 1.0, -1.0])
    return replace(
        motion,
        guards=motion.guards * signs,
        start=motion.start * signs[1:6],
        held=(-motion.held[0], motion.held[1]),
        t1=2.0 * motion.t0 - motion.t1,
        events=[(i, 2.0 * motion.t0 - t) for i, t in motion.events],
    )


def check(seed: int, backward: bool = False) -> None:
    rng = np.random.default_rng(seed + 10**6)
    method = str(rng.choice(list(METHODS)))
    tolerance = METHODS[method] * 10.0 ** -rng.uniform(0.0, 2.0)
    motion = random_motion(seed, max(SEPARATION, 3e3 * tolerance), passive=backward)
    motion = reversed_in_time(motion) if backward else motion
    solution = run(motion, method, tolerance, 10.0 ** rng.uniform(-9.0, 9.0))
    where = f"seed {seed}, {method}, {tolerance:.1g}"
    expected = [(f"e{i}", t) for i, t in motion.events]
    found = [(event.name, event.t) for event in solution.events]
    assert [name for name, _ in found] == [name for name, _ in expected], (where, found, expected)
    errors = np.abs([a - b for (_, a), (_, b) in zip(found, expected, strict=True)])
    assert errors.max() < 1e3 * max(tolerance, 1e-9), (where, errors)


@pytest.mark.parametrize("block", range(4))
def test_random_motions_have_all_their_events(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        check(seed)


def test_random_motions_backward_in_time() -> None:
    for seed in range(10):
        check(10**5 + seed, backward=True)


@pytest.mark.campaign
@pytest.mark.parametrize("block", range(25))
def test_a_thousand_random_motions_backward_in_time(block: int) -> None:
    for seed in range(40 * block, 40 * block + 40):
        check(10**5 + seed, backward=True)


@pytest.mark.campaign
@pytest.mark.parametrize("block", range(50))
def test_two_thousand_random_motions_have_all_their_events(block: int) -> None:
    for seed in range(40 * block, 40 * block + 40):
        check(seed)
