"""Derivatives of motions under servo-constraints, against differences of order 6."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from jump_models import TIME, c, end_state, k, particle, v_x, v_y, v_z, x, y, z
from messages import raises
from numpy.testing import assert_allclose
from sensitivity_models import differences

import kanegen as kg

TIGHT: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-12, "control": True}
F, G, w = me.dynamicsymbols("F G w")
decay, omega = sm.symbols("decay omega")
PARAMETERS = {k: 3.0, c: 0.2, decay: 2.0, omega: 1.3}
TRACK = (x - sm.sin(omega * TIME), (-2 * decay, -(decay**2)))


@cache
def tracking() -> kg.Solver:
    """One control that also drives another coordinate; an output, and an event whose guard contains the control."""
    event = kg.Event("low", z - F / 10, reset={w: w / 2 + F / 5})
    return kg.build(
        particle(
            "tracking",
            "xz",
            (F - k * x - z * x, F / 3 - c * v_z - k * z),
            gravity=None,
            inputs=[kg.Input(F)],
            parameters=PARAMETERS,
            states={w: F * x},
            events=[event],
            outputs={"power": F * v_x},
            control=kg.Servo([TRACK[0]], theta=[TRACK[1]], controls=(F,)),
        )
    )


@cache
def constrained() -> kg.Solver:
    """Two controls of a particle on a surface, one of them by a servo-constraint of speeds."""
    servo = kg.Servo([TRACK[0], sm.Eq(v_y + v_z, sm.cos(TIME))], theta=[TRACK[1], -1.5], controls=(F, G))
    surface, inputs = [z - x**2 / 2 + y / 3], [kg.Input(F), kg.Input(G)]
    more: dict[str, Any] = {"holonomic_constraints": surface, "inputs": inputs, "control": servo}
    return kg.build(
        particle("on_surface", "xyz", (F - k * x, G - c * v_y, 0), gravity=None, parameters=PARAMETERS, **more)
    )


CASES: dict[str, tuple[Any, dict[str, Any], tuple[str, ...], kg.Objective]] = {
    "one control": (
        tracking,
        {"x": 0.3, "z": 0.2, "v_x": 0.1, "v_z": 0.0, "w": 0.1},
        ("k", "c", "decay", "omega", "m", "z", "x", "v_x"),
        kg.Objective(terminal=F * x + w**2, running=F**2 + z, samples=[(0.5, F * z), (1.2, v_z.diff() * F)]),
    ),
    "two controls beside a constraint": (
        constrained,
        {"x": 0.3, "y": 0.2, "v_x": 0.1, "v_y": 0.2},
        ("k", "c", "decay", "omega", "m", "x", "v_y"),
        kg.Objective(terminal=F * G + z, running=G**2),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_controls_move_with_the_motion(case: str) -> None:
    """1e-8 of the largest one: of the end, and of an objective."""
    make, start, names, objective = CASES[case]
    solver: kg.Solver = make()
    d = solver.description

    def run(name: str, change: float) -> tuple[Any, ...]:
        at = {**start, name: start.get(name, 0.0) + change}
        moved = solver
        if name in d.parameters:
            moved = solver.with_parameters({name: solver.parameters[name] + change})
        q, u = ({n: at[n] for n in part if n in start} for part in (d.coordinates, d.speeds))
        return moved, (0.0, 2.0), q, u

    options = {**TIGHT, "s0": {n: start[n] for n in d.states} or None}
    solution = solver.integrate(*run("", 0.0)[1:], sensitivities=names, **options)
    _, gradient = solver.value_and_gradient(objective, *run("", 0.0)[1:], with_respect_to=names, **options)

    def end(name: str, change: float) -> Any:
        moved, *arguments = run(name, change)
        value = moved.value_and_gradient(objective, *arguments, with_respect_to=names[:1], **options)[0]
        return np.append(end_state(moved.integrate(*arguments, **options)), value)

    wanted = np.array([differences(lambda e, n=n: end(n, e), 1e-4) for n in names])  # type: ignore[misc]
    found = np.column_stack([solution.sensitivities.matrix[-1].T, [gradient[n] for n in names]])
    assert_allclose(found, wanted, rtol=0.0, atol=1e-8 * np.abs(wanted).max())
    assert case != "one control" or solution.events


def test_outputs_of_controls() -> None:
    solver, times = tracking(), np.linspace(0.0, 2.0, 8)
    run = (0.0, 2.0), [0.3, 0.2], [0.1, 0.0]
    solution = solver.integrate(*run, s0=[0.1], t_eval=times, sensitivities="omega", **TIGHT)

    def power(change: float) -> Any:
        moved = solver.with_parameters({"omega": 1.3 + change})
        return moved.integrate(*run, s0=[0.1], t_eval=times, **TIGHT).outputs["power"]

    wanted = differences(power, 1e-3)
    assert_allclose(solution.sensitivities.of("power")[:, 0], wanted, rtol=0.0, atol=1e-8 * np.abs(wanted).max())


def test_refusals() -> None:
    solver, run = tracking(), ((0.0, 1.0), [0.3, 0.2], [0.1, 0.0])
    more: dict[str, Any] = {"s0": [0.1], "control": True}
    with raises(kg.SolveError, "the input F is a control, which the servo-constraints determine"):
        solver.integrate(*run, sensitivities="F", **more)
    with raises(kg.SolveError, "sampled controls of servo-constraints: leave out sample_time"):
        solver.integrate(*run, sensitivities="k", sample_time=0.1, **more)
    with raises(kg.SolveError, "limits of the controls of servo-constraints"):
        solver.integrate(*run, sensitivities="k", limits={"F": (-1.0, 1.0)}, **more)
    more = {"control": kg.Servo([TRACK[0]], theta=[TRACK[1]], controls=(F, G)), "inputs": [kg.Input(F), kg.Input(G)]}
    force = F + 2 * G - k * x - c * v_x
    redundant = particle("redundant", "x", (force,), gravity=None, parameters=PARAMETERS, **more)
    with raises(kg.errors.BuildError, "the controls of model 'redundant' are chosen among several"):
        kg.build(redundant).integrate((0.0, 1.0), [0.3], [0.1], sensitivities="m", control=True)
