"""Servo-constraints on random systems: the controls of the interpreted program against the oracle, no compile."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as some
from oracle import Oracle
from random_systems import RandomSystem, random_systems
from servo_systems import Plant
from tolerances import SOLVE

import kanegen as kg
from kanegen.derivation.control.servo import servo_equations
from kanegen.graph import mpmath_context
from kanegen.program.assemble import assemble
from kanegen.program.interpret import interpret
from kanegen.program.options import BuildOptions

TIME = me.dynamicsymbols._t
CONTROLS = me.dynamicsymbols("c1 c2")
LARGEST = 1e4
"""Larger controls belong to states near singular ones, where psi'' is lost in rounding."""


def controlled(system: RandomSystem, resolution: str, holonomic: bool) -> kg.Model:
    """The random system with two forces on its last body, one of them turning with a coordinate."""
    model = system.model
    q, u = model.coordinates, model.speeds
    point = model.bodies[-1].masscenter
    pushes = CONTROLS[0] * model.frame.x + CONTROLS[1] * (sm.cos(q[0]) * model.frame.y - model.frame.z)
    psi = q[-1] + q[0] ** 2 / 3 - sm.sin(TIME) if holonomic else u[0] * (1 + u[-1] ** 2) - q[0] * TIME
    return kg.Model(
        name="random",
        frame=model.frame,
        coordinates=q,
        speeds=u,
        kinematics=model.kinematics,
        bodies=model.bodies,
        loads=(*model.loads, (point, pushes)),
        gravity=model.gravity,
        potential_energy=model.potential_energy,
        inputs=(*model.inputs, *CONTROLS),
        holonomic_constraints=model.holonomic_constraints,
        nonholonomic_constraints=model.nonholonomic_constraints,
        acceleration_constraints=model.acceleration_constraints,
        control=kg.Servo(psi, (-3, -2) if holonomic else -2, controls=CONTROLS, resolution=resolution),
    )


def controls(model: kg.Model, state: dict[str, Any]) -> tuple[int, np.ndarray]:
    program, _ = assemble(kg.derive(model), BuildOptions.of("reduced", ("control",)))
    status, tau = interpret(program, "control", state)
    return status, np.array(tau)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(random_systems(), some.sampled_from(["moore_penrose", "ideal"]), some.booleans())
def test_random_servo_constraints_follow_their_law(system: RandomSystem, resolution: str, holonomic: bool) -> None:
    model = controlled(system, resolution, holonomic)
    try:
        equations = kg.derive(model)
        equations.once(servo_equations)
    except kg.ModelError:  # the forces do not reach psi, or the passive constraints fix it
        assume(False)
    assume(equations.has_partition)
    try:
        equations.require_mass()
    except kg.BuildError:  # the passive constraints leave a speed free that moves no mass
        assume(False)
    r = [*system.r, 0.0, 0.0]
    parameters = dict(zip(model.parameters, system.p, strict=True))
    gains = [0.0] * len(equations.gain_names)
    values = {"t": [system.t], "q": system.q, "u": system.u, "p": system.p, "g": gains}
    status, tau = controls(model, {**values, "r": r, "free": [0.0, 0.0]})
    assume(status >= 0 and np.abs(tau).max() < LARGEST)
    known = with_values(model, parameters)
    plant = Plant(known, Oracle(known), system.t, system.q, system.u, np.array(r))
    try:
        udot = plant.reference(tau).udot
    except ZeroDivisionError:  # mpmath's word for a singular matrix: the system has no unique motion
        assume(False)
        raise
    assume(np.abs(udot).max() < LARGEST)
    scale = max(1.0, np.abs(udot).max()) * max(1.0, np.abs(plant.rows()[0]).max())
    assert np.abs(plant.deviation(udot, tau)).max() < SOLVE * scale


def with_values(model: kg.Model, values: dict[Any, float]) -> Any:
    """The model as the oracle reads it, with values of its parameters."""
    return model.with_reactions({}, parameters=values)


def test_the_interpreter_in_fifty_digits() -> None:
    """The twins of the kernels at the state where the straight-line code hands over."""
    x, y, v, w, F = me.dynamicsymbols("x y v w F")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    model = kg.Model(
        name="bead",
        frame=N,
        coordinates=(x, y),
        speeds=(v, w),
        kinematics=(x.diff() - v, y.diff() - w),
        bodies=(me.Particle("P", P, 2),),
        loads=((P, F * N.y),),
        holonomic_constraints=(x**2 + y**2 - 1,),
        dependent_speeds=(w,),
        inputs=(F,),
        control=kg.Servo(y, (-2, -1)),
    )
    # At y = 0 the ring cannot be solved for w: there F alone moves the bead, y'' = F / 2.
    state = {"t": [0.0], "q": [1.0, 0.0], "u": [0.0, 0.3], "r": [0.0], "free": [0.0], "g": [0.0, 0.0]}
    status, tau = controls(model, state)
    assert status >= 0
    assert tau == pytest.approx([2 * -2 * 0.3])
    program, _ = assemble(kg.derive(model), BuildOptions.of("reduced", ("control",)))
    with mpmath.workdps(50):
        exact = {name: [mpmath.mpf(str(value)) for value in values] for name, values in state.items()}
        _, (force,) = interpret(program, "control", exact, mpmath_context(50))
        assert abs(force + mpmath.mpf("1.2")) < mpmath.mpf(10) ** -45
