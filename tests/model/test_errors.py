"""Every problem of a description is reported, in the user's symbols, with what to do; and all at once."""

from __future__ import annotations

import math

import pytest
import sympy as sm
from hypothesis import given
from hypothesis import strategies as st
from sympy.physics import mechanics as me

from kanegen.errors import ModelError
from kanegen.model import Input, Model

t = me.dynamicsymbols._t
q1, q2, u1, u2, r, f = me.dynamicsymbols("q1 q2 u1 u2 r f")
m, k, c = sm.symbols("m k c")


class Parts:
    """Fresh frames and points of a particle in the plane, and the arguments of its model."""

    def __init__(self) -> None:
        self.N = me.ReferenceFrame("N")
        self.O, self.P = me.Point("O"), me.Point("P")
        self.O.set_vel(self.N, 0)
        self.P.set_pos(self.O, q1 * self.N.x + q2 * self.N.y)
        self.body = me.Particle("bob", self.P, m)

    def model(self, **changes):
        arguments = {
            "name": "particle",
            "frame": self.N,
            "coordinates": [q1, q2],
            "speeds": [u1, u2],
            "kinematics": [q1.diff(t) - u1, q2.diff(t) - u2],
            "bodies": [self.body],
            "loads": [(self.P, -k * q1 * self.N.x)],
        }
        return Model(**(arguments | changes))

    def problems(self, **changes) -> tuple[str, ...]:
        with pytest.raises(ModelError) as caught:
            self.model(**changes)
        return caught.value.problems


@pytest.fixture
def parts():
    return Parts()


def only(problems: tuple[str, ...]) -> str:
    assert len(problems) == 1, problems
    return problems[0]


def test_the_good_model(parts):
    model = parts.model()
    assert [str(p) for p in model.parameters] == ["k", "m"]
    assert repr(model).startswith("<Model 'particle': 2 coordinates, 2 speeds, 1 bodies")


ONE_PROBLEM = [
    # symbols
    ({"speeds": [u1, u1]}, "u1 stands twice, in speeds and in speeds"),
    ({"coordinates": [q1, q2, u2]}, "u2 stands twice, in coordinates and in speeds"),
    (
        {"parameters": {sm.Symbol("kk"): 1.0}},
        "parameter kk has a value, but occurs nowhere in the model: remove it (near: k)",
    ),
    ({"parameters": {"kk": 1.0}}, "parameter kk has a value, but occurs nowhere"),
    ({"parameters": {sm.Symbol("m", positive=True): 1.0}}, "another symbol of this name"),
    ({"parameters": {q1: 1.0}}, "parameters gives q1 a value, but it stands in coordinates"),
    ({"parameters": {m: "heavy"}}, "parameter m has the value 'heavy': expected a number"),
    ({"parameters": {m: math.nan}}, "parameter m has the value nan: expected a finite number"),
    ({"parameters": {m: 1.0, "m": 2.0}}, "parameter m is given twice"),
    ({"holonomic_constraints": [q1 - sm.Symbol("m", real=True)]}, "2 different symbols are printed 'm'"),
    (
        {"holonomic_constraints": [q1 - sm.Function("g")(q2)]},
        "g(q2(t)) (in holonomic_constraints[0]) is an undefined",
    ),
    ({"potential_energy": k * f**2}, "f (in potential_energy) is neither a coordinate, a speed nor an input"),
    ({"inputs": [r]}, "input r occurs nowhere in the model"),
    ({"outputs": {"force": q1.diff(t, 3)}}, "outputs['force'] contains q1'''"),
    # kinematics
    ({"kinematics": [q1.diff(t) - u1]}, "kinematics has 1 equation(s) for 2 coordinate(s)"),
    ({"kinematics": [q1.diff(t) - u1, q1 - u2]}, "contains no q'"),
    ({"kinematics": [q1.diff(t) - u1, q1.diff(t) - u2]}, "no kinematic equation contains the rate of q2"),
    ({"kinematics": [q1.diff(t) ** 2 - u1, q2.diff(t) - u2]}, "is nonlinear in q'"),
    ({"kinematics": [q1.diff(t) - sm.sin(u1), q2.diff(t) - u2]}, "is nonlinear in u"),
    ({"kinematics": [q1.diff(t) * u1 - u2, q2.diff(t) - u2]}, "has products of q' and u"),
    (
        {"kinematics": [q1.diff(t) + q2 * q2.diff(t) - u1, q1.diff(t) / q2 + q2.diff(t) - u2]},
        "the kinematics are singular in q'",
    ),
    # constraints
    ({"holonomic_constraints": [c - 1]}, "holonomic_constraints[0] (c - 1) depends on no coordinate"),
    (
        {"holonomic_constraints": [q1 * u1]},
        "holonomic_constraints[0] contains u1: it may depend on t, q, r, parameters",
    ),
    ({"nonholonomic_constraints": [q1 - t]}, "depends on no speed: expected u or q' in it; one on positions"),
    (
        {"nonholonomic_constraints": [u1.diff(t) + u2]},
        "a constraint with u' belongs to acceleration_constraints",
    ),
    ({"acceleration_constraints": [u1 - u2]}, "acceleration_constraints[0] (u1(t) - u2(t)) depends on no u'"),
    ({"acceleration_constraints": [u1.diff(t) ** 2 - 1]}, "is nonlinear in u'"),
    (
        {"holonomic_constraints": [q1 - q2 - 1, 2 * q2 - 2 * q1 + 6]},
        "holonomic_constraints[0] and holonomic_constraints[1] contradict",
    ),
    ({"holonomic_constraints": [sm.Eq(q1, q1)]}, "SymPy evaluated the equation away"),
    ({"holonomic_constraints": ["q1"]}, "holonomic_constraints[0] is 'q1': expected a SymPy expression"),
    ({"dependent_speeds": [q1], "nonholonomic_constraints": [u1 - u2]}, "dependent_speeds contains q1"),
    ({"dependent_speeds": [u1]}, "dependent_speeds names 1 speed(s) for 0 constraint(s)"),
    # everything else
    ({"bodies": []}, "the model has no bodies"),
    ({"bodies": ["bob"]}, "bodies[0] is 'bob': expected a sympy.physics.mechanics Particle or RigidBody"),
    ({"name": ""}, "name is '': expected a string that is not empty"),
    ({"outputs": {"": q1}}, "outputs has the name ''"),
    ({"outputs": {"x": "q1"}}, "outputs['x'] is 'q1': expected a SymPy expression"),
    ({"loads": [3]}, "loads[0] is 3: expected (point, force) or (frame, torque)"),
    ({"gravity": 9.81}, "gravity is 9.81: expected a Vector"),
    ({"potential_energy": u1**2}, "potential_energy contains u1"),
    ({"speeds": [u1, q2.diff(t)]}, "a derivative cannot stand here; name it"),
]


@pytest.mark.parametrize(("changes", "message"), ONE_PROBLEM)
def test_problem(parts, changes, message):
    assert any(message in problem for problem in parts.problems(**changes)), parts.problems(**changes)


def test_all_problems_at_once(parts):
    problems = parts.problems(
        parameters={m: -1.0, "stiffness": 2.0},
        holonomic_constraints=[c, q1 * u1],
        loads=[(parts.P, u1.diff(t) * parts.N.x), (me.Point("lost"), k * f * parts.N.x)],
    )
    wanted = (
        "mass -1 = m",
        "parameter stiffness",
        "no coordinate",
        "contains u1",
        "contains u1'",
        "point lost",
        "f (in",
    )
    assert all(any(text in problem for problem in problems) for text in wanted), problems
    assert len(problems) == len(wanted)


def test_frame_is_needed():
    with pytest.raises(ModelError, match="expected the inertial"):
        Parts().model(frame="N")


def test_loads_with_accelerations(parts):
    for acceleration in (u1.diff(t), q1.diff(t, 2)):
        problem = only(parts.problems(loads=[(parts.P, k * acceleration * parts.N.x)]))
        assert "the load on P contains" in problem


def test_mass(parts):
    parts.body.mass = -2
    assert "body bob has the mass -2: expected" in only(parts.problems())
    parts.body.mass = None
    assert any("body bob has no mass" in problem for problem in parts.problems())
    parts.body.mass = m * q1
    assert "the mass of body bob contains q1" in only(parts.problems())
    parts.body.mass = 0
    assert parts.model().bodies[0].mass == 0


def rigid(parts, tensor):
    B = me.ReferenceFrame("B")
    B.orient_axis(parts.N, parts.N.z, q1)
    dyadic = sum((tensor[i, j] * a.outer(b) for i, a in enumerate(B) for j, b in enumerate(B)), me.Dyadic(0))
    return me.RigidBody("block", parts.P, B, m, (dyadic, parts.P))


def test_inertia(parts):
    a = sm.Symbol("a")
    problem = only(parts.problems(bodies=[rigid(parts, sm.Matrix([[1, a, 0], [0, 1, 0], [0, 0, 1]]))]))
    assert "not symmetric: its xy and yx components in B are a and 0" in problem
    tensor = sm.Matrix([[1, a, 0], [a, 1, 0], [0, 0, 1]])
    problem = only(parts.problems(bodies=[rigid(parts, tensor)], parameters={a: 2}))
    assert "has the negative eigenvalue -1" in problem
    assert parts.model(bodies=[rigid(parts, tensor)], parameters={a: 1}).parameters[a] == 1.0
    assert parts.model(bodies=[rigid(parts, sm.diag(0, a, a))]).parameters[a] is None


@given(st.lists(st.floats(-2, 2), min_size=6, max_size=6))
def test_inertias_of_masses_are_accepted(entries):
    """The inertia of point masses about a point is never refused, whatever its rank."""
    points = [sm.Matrix(entries[:3]), sm.Matrix(entries[3:])]
    tensor = sum((p.dot(p) * sm.eye(3) - p * p.T for p in points), sm.zeros(3))
    parts = Parts()
    assert parts.model(bodies=[rigid(parts, tensor)]).bodies[0].name == "block"


def test_inertia_about_a_lost_point(parts):
    B = me.ReferenceFrame("B")
    B.orient_axis(parts.N, parts.N.z, q1)
    body = me.RigidBody("block", parts.P, B, m, (me.inertia(B, 1, 1, 1), parts.P))
    body._inertia = me.Inertia(me.inertia(B, 1, 1, 1), me.Point("S"))
    assert "about point S, which has no position relative to the mass center P" in only(parts.problems(bodies=[body]))


def test_unconnected_frames_and_points(parts):
    B, S = me.ReferenceFrame("B"), me.Point("S")
    body = me.RigidBody("block", S, B, m, (me.inertia(B, 1, 1, 1), S))
    problems = parts.problems(bodies=[body], loads=[])
    assert any("frame B (body block) is not connected to the inertial frame N" in p for p in problems)
    assert any("no point with a known velocity is connected to point S (body block)" in p for p in problems)
    assert len(problems) == 2
    assert "frame B (the load on P)" in only(parts.problems(loads=[(parts.P, B.x)]))
    assert "frame B (the load on B)" in only(parts.problems(loads=[(B, parts.N.x)]))
    assert "point S (the load on S)" in only(parts.problems(loads=[(S, parts.N.x)]))


def test_unknown_symbols_of_frames_and_points_are_found(parts):
    B = me.ReferenceFrame("B")
    B.orient_axis(parts.N, parts.N.z, me.dynamicsymbols("theta3"))
    S = parts.O.locatenew("S", c * B.x)
    problem = only(parts.problems(bodies=[me.Particle("s", S, m)], loads=[]))
    assert problem.startswith("theta3 (in the a") or problem.startswith("theta3 (in the o")


def test_weight_counts_once(parts):
    g = sm.Symbol("g")
    weight = [(parts.P, -g * m * parts.N.y)]
    assert "which gravity already adds: give it once" in only(parts.problems(loads=weight, gravity=-g * parts.N.y))
    assert parts.model(gravity=-g * parts.N.y).gravity == -g * parts.N.y
    parts.body.potential_energy = m * g * q2
    assert parts.model(loads=weight).potential_energy == m * g * q2
    assert "besides gravity" in only(parts.problems(loads=[], gravity=-g * parts.N.y))


def test_input_in_a_holonomic_constraint_needs_both_rates(parts):
    r1, r2 = me.dynamicsymbols("r1 r2")
    changes = {"holonomic_constraints": [q1 - r]}
    for item in (r, Input(r, rate=r1)):
        problem = only(parts.problems(inputs=[item], **changes))
        assert "input r is differentiated, which needs its rate and acceleration" in problem
        assert "because of holonomic_constraints[0]" in problem
    model = parts.model(inputs=[Input(r, rate=r1, acceleration=r2, default=0.5)], **changes)
    assert [(item.name, item.default) for item in model.inputs] == [("r", 0.5), ("r1", 0.0), ("r2", 0.0)]
    assert model.inputs[1].rate == r2
    model = parts.model(inputs=[r1, Input(r, rate=r1, acceleration=r2)], **changes)
    assert [(item.name, item.rate) for item in model.inputs] == [("r1", r2), ("r", r1), ("r2", None)]
    model = parts.model(inputs=[Input(r, rate=c * sm.cos(t))], **changes)
    assert model.inputs[0].acceleration == -c * sm.sin(t)
    assert c in model.parameters


def test_input_rates_by_place(parts):
    velocity = only(parts.problems(inputs=[r], nonholonomic_constraints=[u1 - r]))
    assert "which needs its rate, because of nonholonomic_constraints[0]: give kg.Input(r, rate=...)" in velocity
    position = parts.O.locatenew("S", r * parts.N.z)
    problem = only(parts.problems(inputs=[r], bodies=[parts.body, me.Particle("s", position, m)]))
    assert "rate and acceleration, because of the position of point S from O" in problem
    assert parts.model(inputs=[r], loads=[(parts.P, r * k * parts.N.x)]).inputs == (Input(r),)


def test_input_records():
    with pytest.raises(ModelError, match="not a symbol that can be an input"):
        Input(q1 + q2)
    with pytest.raises(ModelError, match="give the rate as a symbol of its own"):
        Input(r.diff(t))
    with pytest.raises(ModelError, match="expected a finite number or None"):
        Input(r, default="much")
    with pytest.raises(ModelError, match="input r has an acceleration but no rate"):
        Parts().model(inputs=[Input(r, acceleration=f)], potential_energy=r * q1 + f * q2)
    with pytest.raises(ModelError, match="the rate of input r contains q1"):
        Parts().model(inputs=[Input(r, rate=2 * q1)], potential_energy=r * q1)
    with pytest.raises(ModelError, match="give one of the two"):
        Parts().model(inputs=[Input(r, rate=t**2, acceleration=t)], potential_energy=r * q1)


def test_plain_symbols_as_inputs(parts):
    s = sm.Symbol("s")
    forced = parts.model(inputs=[s], loads=[(parts.P, s * parts.N.x)])
    assert [*forced.parameters] == [m]
    A = me.ReferenceFrame("A")
    A.orient_axis(parts.N, parts.N.z, s)
    problem = only(parts.problems(inputs=[s], loads=[(parts.P, k * A.x)]))
    assert "input s stands in the orientation of frame A in N" in problem
    assert "use dynamicsymbols('s')" in problem
