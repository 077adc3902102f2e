"""Every problem of a description is reported, in the user's symbols, with what to do; and all at once."""

from __future__ import annotations

import math

import pytest
import sympy as sm
from hypothesis import given
from hypothesis import strategies as st
from messages import raises, says, says_one
from sympy.physics import mechanics as me

from kanegen.errors import ModelError, ModelWarning
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
    ({"speeds": [u1, u1]}, ("u1", "speeds")),
    ({"coordinates": [q1, q2, u2]}, ("u2", "coordinates", "speeds")),
    (
        {"parameters": {sm.Symbol("kk"): 1.0}},
        ("parameter", "kk", "k"),
    ),
    ({"parameters": {"kk": 1.0}}, ("parameter", "kk")),
    ({"parameters": {sm.Symbol("m", positive=True): 1.0}}, ("m", "symbol")),
    ({"parameters": {q1: 1.0}}, ("parameters", "q1", "coordinates")),
    ({"parameters": {m: "heavy"}}, ("parameter", "m", "'heavy'", "number")),
    ({"parameters": {m: math.nan}}, ("parameter", "m", "nan", "finite")),
    ({"parameters": {m: 1.0, "m": 2.0}}, ("parameter", "m", "twice")),
    ({"holonomic_constraints": [q1 - sm.Symbol("m", real=True)]}, ("2", "symbols", "'m'")),
    (
        {"holonomic_constraints": [q1 - sm.Function("g")(q2)]},
        ("g(q2(t))", "holonomic_constraints[0]", "undefined"),
    ),
    ({"potential_energy": k * f**2}, ("f", "potential_energy", "input")),
    ({"inputs": [r]}, ("input", "r")),
    ({"outputs": {"force": q1.diff(t, 3)}}, ("outputs['force']", "q1'''")),
    # kinematics
    ({"kinematics": [q1.diff(t) - u1]}, ("kinematics", "1", "2")),
    ({"kinematics": [q1.diff(t) - u1, q1 - u2]}, ("q'",)),
    ({"kinematics": [q1.diff(t) - u1, q1.diff(t) - u2]}, ("kinematic", "q2")),
    ({"kinematics": [q1.diff(t) ** 2 - u1, q2.diff(t) - u2]}, ("nonlinear", "q'")),
    ({"kinematics": [q1.diff(t) - sm.sin(u1), q2.diff(t) - u2]}, ("nonlinear", "u")),
    ({"kinematics": [q1.diff(t) * u1 - u2, q2.diff(t) - u2]}, ("products", "q'", "u")),
    (
        {"kinematics": [q1.diff(t) + q2 * q2.diff(t) - u1, q1.diff(t) / q2 + q2.diff(t) - u2]},
        ("kinematics", "singular", "q'"),
    ),
    # constraints
    ({"holonomic_constraints": [c - 1]}, ("holonomic_constraints[0]", "c - 1", "coordinate")),
    (
        {"holonomic_constraints": [q1 * u1]},
        ("holonomic_constraints[0]", "u1"),
    ),
    ({"nonholonomic_constraints": [q1 - t]}, ("speed", "positions")),
    (
        {"nonholonomic_constraints": [u1.diff(t) + u2]},
        ("u'", "acceleration_constraints"),
    ),
    ({"acceleration_constraints": [u1 - u2]}, ("acceleration_constraints[0]", "u1(t) - u2(t)", "u'")),
    ({"acceleration_constraints": [u1.diff(t) ** 2 - 1]}, ("nonlinear", "u'")),
    (
        {"holonomic_constraints": [q1 - q2 - 1, 2 * q2 - 2 * q1 + 6]},
        ("holonomic_constraints[0]", "holonomic_constraints[1]", "contradict"),
    ),
    ({"holonomic_constraints": [sm.Eq(q1, q1)]}, ("SymPy", "holonomic_constraints[0]")),
    ({"holonomic_constraints": ["q1"]}, ("holonomic_constraints[0]", "'q1'", "SymPy")),
    ({"dependent_speeds": [q1], "nonholonomic_constraints": [u1 - u2]}, ("dependent_speeds", "q1")),
    ({"dependent_speeds": [u1]}, ("dependent_speeds", "1", "0")),
    # everything else
    ({"bodies": []}, ("bodies",)),
    ({"bodies": ["bob"]}, ("bodies[0]", "'bob'", "Particle", "RigidBody")),
    ({"name": ""}, ("name", "''")),
    ({"outputs": {"": q1}}, ("outputs", "''")),
    ({"outputs": {"q2": 2 * q1}}, ("outputs['q2']", "coordinate q2")),
    ({"outputs": {"u1": q1}}, ("outputs['u1']", "speed u1")),
    ({"outputs": {"x": "q1"}}, ("outputs['x']", "'q1'", "SymPy")),
    ({"loads": [3]}, ("loads[0]", "3", "(point, force)", "(frame, torque)")),
    ({"gravity": 9.81}, ("gravity", "9.81", "Vector")),
    ({"potential_energy": u1**2}, ("potential_energy", "u1")),
    ({"speeds": [u1, q2.diff(t)]}, ("speeds[1]", "Derivative(q2(t), t)", "dynamicsymbols('u')")),
]


@pytest.mark.parametrize(("changes", "names"), ONE_PROBLEM)
def test_problem(parts, changes, names):
    says_one(parts.problems(**changes), *names)


@pytest.mark.parametrize(
    "changes",
    [
        lambda parts, name: {"name": name},
        lambda parts, name: {"parameters": {name: 1.0}, "outputs": {name: q1}},
        lambda parts, name: {"inputs": [Input(sm.Symbol(name), 0.0)], "outputs": {"o": sm.Symbol(name)}},
        lambda parts, name: {"impulses": {name: [(parts.P, parts.N.x)]}},
        lambda parts, name: {"bodies": [me.Particle(name, parts.P, m)]},
    ],
)
def test_half_characters_in_names_are_refused(parts, changes):
    with raises(ModelError, "\\ud800", "surrogate"):
        parts.model(**changes(parts, "half \ud800"))


@pytest.mark.parametrize("character", ["\0", "\x0b", "\uffff"])
def test_control_characters_in_names_are_refused(parts, character):
    """A string in C ends at NUL, and FMUs are XML: the model took what its outputs did not."""
    with raises(ModelError, "control character", "outputs"):
        parts.model(outputs={f"a{character}b": q1})
    parts.model(outputs={"a\tb\nc": q1})


def test_empty_names_are_refused(parts):
    nameless = sm.Symbol("")
    with raises(ModelError, "parameters", "empty name"):
        parts.model(parameters={nameless: 1.0}, outputs={"o": nameless * q1})


def test_all_problems_at_once(parts):
    problems = parts.problems(
        parameters={m: -1.0, "stiffness": 2.0},
        holonomic_constraints=[c, q1 * u1],
        loads=[(parts.P, u1.diff(t) ** 2 * parts.N.x), (me.Point("lost"), k * f * parts.N.x)],
    )
    wanted = (
        ("mass", "-1", "m"),
        ("parameter", "stiffness"),
        ("holonomic_constraints[0]", "coordinate"),
        ("holonomic_constraints[1]", "u1"),
        ("P", "u1'"),
        ("point", "lost"),
        ("f",),
    )
    for names in wanted:
        says_one(problems, *names)
    assert len(problems) == len(wanted)


def test_an_output_can_have_the_name_of_its_symbol(parts):
    assert parts.model(outputs={"q1": q1}).outputs["q1"].expressions == (q1,)


def test_frame_is_needed():
    with raises(ModelError, "frame", "inertial"):
        Parts().model(frame="N")


def test_loads_with_accelerations(parts):
    for acceleration in (u1.diff(t), q1.diff(t, 2)):
        problem = only(parts.problems(loads=[(parts.P, k * acceleration**2 * parts.N.x)]))
        says(problem, "load", "P")
        assert parts.model(loads=[(parts.P, k * acceleration * parts.N.x)]).accelerated_loads == ("P",)


def test_mass(parts):
    parts.body.mass = -2
    says(only(parts.problems()), "bob", "mass", "-2")
    parts.body.mass = None
    says_one(parts.problems(), "bob", "mass")
    parts.body.mass = m * q1
    says(only(parts.problems()), "mass", "bob", "q1")
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
    says(problem, "symmetric", "xy", "yx", "B", "a", "0")
    tensor = sm.Matrix([[1, a, 0], [a, 1, 0], [0, 0, 1]])
    problem = only(parts.problems(bodies=[rigid(parts, tensor)], parameters={a: 2}))
    says(problem, "eigenvalue", "-1")
    with pytest.warns(ModelWarning, match="moments are 0, 1, 2"):  # no body has them
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
    says(only(parts.problems(bodies=[body])), "S", "mass center", "P")


def test_unconnected_frames_and_points(parts):
    B, S = me.ReferenceFrame("B"), me.Point("S")
    body = me.RigidBody("block", S, B, m, (me.inertia(B, 1, 1, 1), S))
    problems = parts.problems(bodies=[body], loads=[])
    says_one(problems, "frame", "B", "block", "N")
    says_one(problems, "point", "S", "block", "velocity")
    assert len(problems) == 2
    says(only(parts.problems(loads=[(parts.P, B.x)])), "frame B", "load on P")
    says(only(parts.problems(loads=[(B, parts.N.x)])), "frame B", "load on B")
    says(only(parts.problems(loads=[(S, parts.N.x)])), "point S", "load on S")


def test_unknown_symbols_of_frames_and_points_are_found(parts):
    B = me.ReferenceFrame("B")
    B.orient_axis(parts.N, parts.N.z, me.dynamicsymbols("theta3"))
    S = parts.O.locatenew("S", c * B.x)
    problem = only(parts.problems(bodies=[me.Particle("s", S, m)], loads=[]))
    assert problem.startswith("theta3 (in the a") or problem.startswith("theta3 (in the o")


def test_weight_counts_once(parts):
    g = sm.Symbol("g")
    weight = [(parts.P, -g * m * parts.N.y)]
    says(only(parts.problems(loads=weight, gravity=-g * parts.N.y)), "gravity", "P")
    assert parts.model(gravity=-g * parts.N.y).gravity == -g * parts.N.y
    parts.body.potential_energy = m * g * q2
    assert parts.model(loads=weight).potential_energy == m * g * q2
    says(only(parts.problems(loads=[], gravity=-g * parts.N.y)), "gravity", "potential_energy")


def test_input_in_a_holonomic_constraint_needs_both_rates(parts):
    r1, r2 = me.dynamicsymbols("r1 r2")
    changes = {"holonomic_constraints": [q1 - r]}
    for item in (r, Input(r, rate=r1)):
        problem = only(parts.problems(inputs=[item], **changes))
        says(problem, "input", "r", "rate", "acceleration", "holonomic_constraints[0]")
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
    says(velocity, "nonholonomic_constraints[0]", "kg.Input(r, rate=...)")
    position = parts.O.locatenew("S", r * parts.N.z)
    problem = only(parts.problems(inputs=[r], bodies=[parts.body, me.Particle("s", position, m)]))
    says(problem, "rate", "acceleration", "S", "O")
    assert parts.model(inputs=[r], loads=[(parts.P, r * k * parts.N.x)]).inputs == (Input(r),)


def test_input_records():
    with raises(ModelError, "q1(t) + q2(t)"):
        Input(q1 + q2)
    with raises(ModelError, "rate", "symbol"):
        Input(r.diff(t))
    with raises(ModelError, "'much'", "finite"):
        Input(r, default="much")
    with raises(ModelError, "r", "acceleration", "rate"):
        Parts().model(inputs=[Input(r, acceleration=f)], potential_energy=r * q1 + f * q2)
    with raises(ModelError, "rate", "r", "q1"):
        Parts().model(inputs=[Input(r, rate=2 * q1)], potential_energy=r * q1)
    with raises(ModelError, "r", "rate", "acceleration"):
        Parts().model(inputs=[Input(r, rate=t**2, acceleration=t)], potential_energy=r * q1)


def test_plain_symbols_as_inputs(parts):
    s = sm.Symbol("s")
    forced = parts.model(inputs=[s], loads=[(parts.P, s * parts.N.x)])
    assert [*forced.parameters] == [m]
    A = me.ReferenceFrame("A")
    A.orient_axis(parts.N, parts.N.z, s)
    problem = only(parts.problems(inputs=[s], loads=[(parts.P, k * A.x)]))
    says(problem, "s", "orientation", "A", "N", "dynamicsymbols('s')")


def test_the_bounds_of_a_limit_are_no_number(parts):
    """SymPy gives them for the limit of a sine at infinity; they became an expression with comparisons."""
    says_one(parts.problems(outputs={"o": sm.AccumBounds(-1, 1) * q1}), "outputs['o']", "AccumBounds", "finite")


@pytest.mark.parametrize("value", [sm.nan, sm.zoo, sm.oo, -sm.oo, sm.I, float("nan"), sm.zoo * q1])
def test_values_that_are_no_numbers_are_named_where_they_are(value) -> None:
    """nan in a vector raised a TypeError, and complex infinity was accepted until the derivation."""
    parts = Parts()
    text = str(next(x for x in (sm.nan, sm.zoo, sm.oo, -sm.oo, sm.I) if sm.sympify(value).has(x)))
    places = {
        "the load on P": {"loads": [(parts.P, value * parts.N.x)]},
        "gravity": {"gravity": value * parts.N.y},
        "kinematics[0]": {"kinematics": [q1.diff(t) - u1 + value, q2.diff(t) - u2]},
        "potential_energy": {"potential_energy": value},
        "outputs['o']": {"outputs": {"o": value}},
    }
    for place, changes in places.items():
        says_one(parts.problems(**changes), place, text, "finite")
    center = me.Point("C")
    center.set_pos(parts.O, value * parts.N.x)
    says_one(parts.problems(bodies=[me.Particle("bob", center, m)], loads=[]), "position", "C", text, "finite")


def moving(*bodies: tuple[str, tuple[float, ...]]) -> Model:
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    listed = []
    for k, (name, moments) in enumerate(bodies):
        frame, center = me.ReferenceFrame(f"A{k}"), O.locatenew(f"P{k}", q1 * N.x)
        frame.orient_axis(N, N.z, q1)
        listed.append(me.RigidBody(name, center, frame, 1, (me.inertia(frame, *moments), center)))
    kinematics = [q1.diff(t) - u1]
    return Model(name="m", frame=N, coordinates=[q1], speeds=[u1], kinematics=kinematics, bodies=listed)


@pytest.mark.parametrize("moments", [(1, 1, 10), (0.1, 0.2, 0.4), (1, 1, 1, 0.9, 0.9, 0.9)])
def test_an_inertia_that_no_body_can_have_is_a_warning(moments: tuple[float, ...]) -> None:
    with pytest.warns(ModelWarning, match="no body has the inertia of body plate"):
        moving(("plate", moments))


@pytest.mark.parametrize("moments", [(1, 1, 2), (0, 1, 1), (0, 0, 1), (0, 1, 0), (1, 1, 1), (0, 0, 0), (1, 2, 3.001)])
def test_inertias_of_bodies_disks_rods_and_planar_models_are_no_warnings(moments: tuple[float, ...]) -> None:
    moving(("plate", moments))


def test_a_negative_moment_of_inertia_is_rounding_or_a_mistake() -> None:
    with raises(ModelError, "plate", "eigenvalue", "-1e-09"):
        moving(("plate", (1, 1, -1e-9)))
    moving(("plate", (1, 1, -1e-11)))


def test_two_bodies_of_one_name_are_a_warning() -> None:
    with pytest.warns(ModelWarning, match="2 bodies are named 'rod'"):
        moving(("rod", (1, 1, 1)), ("rod", (1, 1, 1)))
