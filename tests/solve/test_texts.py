"""The texts of results: they name what the numbers belong to, and stay short."""

from __future__ import annotations

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from closed_loops import solver_of, t
from messages import raises, says
from state_models import cart, cart_matrix
from systems import initial, solver_for

import kanegen as kg


def test_events_and_contacts_name_what_they_are() -> None:
    solver, start = solver_for("bouncing_ball"), initial("bouncing_ball")
    event = solver.integrate((0.0, 1.0), start["q"], start["u"]).events[0]
    (speed,) = solver.description.speeds
    says(repr(event), "floor", "impact", speed, f"{event.u_before[0]:.6g}", f"{event.u_after[0]:.6g}")
    contacts = solver.contacts(0.0, [0.3], [0.0])
    says(repr(contacts), "floor", "open", 0.3)
    says(repr(contacts["floor"]), "open", 0.3)
    resting = solver.contacts(0.0, [0.0], [0.0])
    says(repr(resting), "closed", f"{resting.forces[0]:.6g}")


def test_events_that_reset_states_name_these() -> None:
    x, v, z = me.dynamicsymbols("x v z")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    model = kg.Model(
        name="counter",
        frame=N,
        coordinates=[x],
        speeds=[v],
        kinematics=[x.diff() - v],
        bodies=[me.Particle("P", O.locatenew("P", x * N.x), 1)],
        states={z: v},
        events=[kg.Event("full", z - 1, direction=1, reset={z: 0})],
    )
    (event,) = kg.build(model).integrate((0.0, 1.5), [0.0], [1.0], s0=[0.0]).events
    says(repr(event), "full", "user", "z 1 -> 0")
    assert "v" not in repr(event).split("z")[1]


def test_linear_models_name_their_variables() -> None:
    solver = kg.build(cart(), functions="all")
    linear = solver.linearize(0.0, [0.1], [0.0], s=[0.0, 0.0])
    says(repr(linear), "x, v, a, z", "f", "lag, jerky", "not steady")
    slowest = max(np.linalg.eigvals(cart_matrix()[0]), key=lambda value: value.imag)
    says(repr(linear), f"{slowest.real:.4g} +- {slowest.imag:.4g}i")
    jacobian = solver.jacobian(0.0, [0.1], [0.0], s=[0.0, 0.0])
    says(repr(jacobian), "x', v', a', z'", "q: x", "u: v", "s: a, z", "r: f", "p: m, k, c, tau, b")
    assert jacobian.rows == ("x'", "v'", "a'", "z'")
    assert {key: len(names) for key, names in jacobian.columns.items()} == {
        key: getattr(jacobian, key).shape[1] for key in "qusrp"
    }


def test_impulses_name_speeds_and_contacts() -> None:
    solver = kg.build(cart())
    says(repr(solver.impulse(0.0, [0.0], [0.0], [1.3], s=[0.0, 0.0])), "v = 1")
    ball = solver_for("bouncing_ball")
    struck = ball.impulse(0.0, [0.0], [-1.0], [0.0])
    says(repr(struck), *ball.description.speeds, "floor", f"{struck.u[0]:.6g}", f"{struck.contact_impulses[0]:.6g}")


def test_texts_of_large_models_are_short() -> None:
    q, u = me.dynamicsymbols("q:20"), me.dynamicsymbols("u:20")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    points = [O.locatenew(f"P{k}", x * N.x) for k, x in enumerate(q)]
    model = kg.Model(
        name="cloud",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[x.diff() - v for x, v in zip(q, u, strict=True)],
        bodies=[me.Particle(f"b{k}", point, 1) for k, point in enumerate(points)],
        loads=[(point, -sm.Integer(k + 1) * q[k] * N.x) for k, point in enumerate(points)],
    )
    solver = kg.build(model, functions="jacobians")
    zero = np.zeros(20)
    for result in (solver.linearize(0.0, zero, zero), solver.jacobian(0.0, zero, zero)):
        assert len(repr(result)) < 500
        says(repr(result), "q0", "40 in all" if "Jacobian" in repr(result) else "20 in all")


def test_solutions_name_where_they_end() -> None:
    solver, start = solver_for("bouncing_ball"), initial("bouncing_ball")
    solution = solver.integrate((0.0, 1.0), start["q"], start["u"])
    names = (*solver.description.coordinates, *solver.description.speeds)
    ends = np.concatenate(solution.last[1:])
    says(repr(solution), "finished", f"{solution.t.size} points", "events")
    says(repr(solution), *(f"{name} = {value:.6g}" for name, value in zip(names, ends, strict=True)))


def test_histories_name_contacts_and_controls() -> None:
    solver, start = solver_for("bouncing_ball"), initial("bouncing_ball")
    contacts = solver.integrate((0.0, 1.0), start["q"], start["u"]).contacts
    assert contacts is not None
    says(repr(contacts), f"{len(contacts.phases)} phases", "floor")
    says(repr(contacts.phases[0]), "t = 0", "floor", contacts.phases[0].modes["floor"])
    solver, start = solver_for("particle_tracking"), initial("particle_tracking")
    control = solver.integrate((0.0, 0.1), start["q"], start["u"], control=True).control
    assert control is not None
    says(repr(control), *control.names, *control.constraints[:1], f"{len(control.values)} times")


def test_inverse_dynamics_names_controls() -> None:
    found = solver_of("slider_crank").inverse_dynamics({"x": 1.3 + 0.1 * t}, [0.0, 1.0, 2.0])
    says(repr(found), "3 times", "t = 0 .. 2", f"|F| = {np.abs(found.controls).max():.6g}", "feasible")


def test_messages_list_the_first_of_many_violations() -> None:
    solver, start = solver_for("scissor_lift"), initial("scissor_lift")
    q, u = (np.asarray(start[name]) + 0.1 * np.arange(1, 10) for name in ("q", "u"))
    count = 16  # eight at position level, eight at velocity level
    with raises(kg.SolveError, f"violates {count} constraint(s)", f"and {count - 10} more", "start_tolerance") as info:
        solver.integrate((0.0, 0.1), q, u)
    assert len(str(info.value).splitlines()) == 13
