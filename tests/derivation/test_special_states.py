"""Every form at zeros, right and straight angles and equal coordinates, against one bordered solve by NumPy.

Random states have none of these, so that code which divides by a sine is right at all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from checkout import EXAMPLES
from messages import raises
from systems import NAMES, SYSTEMS, initial, model_of

import kanegen as kg
from kanegen.derivation import Equations
from kanegen.derivation.states import State, has_kink, read, special_state
from kanegen.errors import BuildError, DerivationError
from kanegen.forms import FORMS
from kanegen.graph.ranks import independent_rows
from kanegen.program.assemble import assemble
from kanegen.program.interpret import interpret
from kanegen.program.options import BuildOptions

TIME = me.dynamicsymbols._t
COUNT = 8
EXACT = 1e-9
"""Double precision behind solves whose condition number is below 1e4."""


def states(equations: Equations, near: dict[str, Any]) -> list[State]:
    """Regular special states, most of them on the constraint manifold, some around the start of the example."""
    rng, found = np.random.default_rng(29), list[State]()
    parameters = np.array([rng.uniform(0.5, 1.5) if p is None else p for p in equations.model.parameters.values()])
    for k in range(40 * COUNT):
        at = special_state(equations, rng, parameters, near if k % 2 else {}, consistent=k % 3 < 2)
        found += [] if at is None else [at]
        if len(found) == COUNT:
            break
    return found


def rates(equations: Equations, state: State) -> np.ndarray:
    """q' and u' from M, P, J and b; redundant rows of a consistent state left out."""
    e = equations
    groups = (e.M, e.P, e.J, e.b, e.qdot)
    M, P, J, b, qdot = (x.astype(float) for x in read(groups, state.values()))
    chosen = list(independent_rows(J))
    J, b = J[chosen], b[chosen]
    K = np.block([[M, -J.T], [J, np.zeros((len(J), len(J)))]])
    return np.concatenate([qdot, np.linalg.solve(K, np.append(P, b))[: len(P)]])


FEW = ("bouncing_ball", "cart_pole", "scissor_lift", "stick_slip_blocks")
"""Of the examples that are not in SYSTEMS, those that take little time."""

OTHERS = tuple(
    (path.stem, {})
    for path in sorted(EXAMPLES.glob("[a-z]*.py"))
    if path.stem not in {name for name, _ in SYSTEMS} and path.stem != "humanoid"  # its forms take minutes
)
EVERY = [
    *(pytest.param(*item, id=name) for item, name in zip(SYSTEMS, NAMES, strict=True)),
    *(pytest.param(*x, id=x[0], marks=() if x[0] in FEW else pytest.mark.campaign) for x in OTHERS),
]


@pytest.mark.parametrize(("name", "options"), EVERY)
def test_every_form_of_every_example(name: str, options: dict[str, Any]) -> None:
    model, start = model_of(name, **options), initial(name, **options)
    equations = kg.derive(model)
    near = {key: np.array(start[key], dtype=float) for key in ("q", "u")} if name == "appell_hamel" else {}
    found = states(equations, near)
    assert len(found) >= COUNT // 2
    for form in FORMS:
        try:
            program, _ = assemble(kg.derive(model), BuildOptions.of(form, ("rhs",)))
        except (BuildError, DerivationError):
            continue  # the form does not admit the model
        for state in found:
            expected = rates(equations, state)
            status, actual = interpret(program, "rhs", {**state.values(), "g": [0.0] * len(state.gains)})
            assert status >= 0, f"{form} at {state}"
            error = np.abs(np.array(actual[: len(expected)]) - expected).max()
            assert error <= EXACT * max(1.0, np.abs(expected).max()), f"{form} at {state}"


# -- constraints whose first pivot vanishes where they determine the dependent speeds ---------------------------


def scissors() -> kg.Model:
    """Three translations x, y, z with two rows that turn with z: their matrix in x' and y' is a rotation by z."""
    q, u = me.dynamicsymbols("x y z"), me.dynamicsymbols("u:3")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", q[0] * N.x + q[1] * N.y + q[2] * N.z)
    c, s = sm.cos(q[2]), sm.sin(q[2])
    return kg.Model(
        name="scissors",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[a.diff(TIME) - b for a, b in zip(q, u, strict=True)],
        bodies=[me.Particle("P", P, 2)],
        loads=[(P, 3 * N.x - N.y + 5 * N.z)],
        nonholonomic_constraints=[c * u[0] + s * u[1] - u[2] / 2, -s * u[0] + c * u[1] - u[2] / 3],
        dependent_speeds=u[:2],
    )


@pytest.mark.parametrize("z", [0.0, np.pi / 2, -np.pi / 2, np.pi, 0.3])
def test_quantities_without_another_solution_behind_them(z: float) -> None:
    """A and B, and the momentum form, were SINGULAR where a pivot vanishes, though the rows are a rotation."""
    A = np.linalg.solve([[np.cos(z), np.sin(z)], [-np.sin(z), np.cos(z)]], [0.5, 1.0 / 3.0])
    values = {"t": [0.0], "q": [0.1, 0.2, z], "p": [], "r": [], "g": [0.0] * 4}
    values |= {"u": [*(0.7 * A), 0.7]}
    program, _ = assemble(kg.derive(scissors()), BuildOptions.of("momentum", ("rhs", "A", "B")))
    status, found = interpret(program, "A", values)
    assert status == 0
    assert found == pytest.approx(A, abs=1e-14)
    status, (momentum,) = interpret(program, "reduced_momentum", values)
    assert (status, momentum) == (0, pytest.approx(2 * 0.7 * (1.0 + A @ A)))
    status, speeds = interpret(program, "speeds_from_momentum", {**values, "u": [momentum, 0.0, 0.0]})
    assert status == 0
    assert speeds == pytest.approx(values["u"])


def test_jacobians_use_the_pivots_that_are_tested() -> None:
    """The inverse of the rows of dependent speeds was eliminated in an order of its own, whose pivots nobody tested."""
    equations = kg.derive(model_of("slider_crank"))
    program, _ = assemble(equations, BuildOptions.of("reduced", ("rhs", "jacobian_q")))
    for state in states(equations, {}):
        arrays = {**state.values(), "g": [0.0] * len(state.gains)}
        status, found = interpret(program, "jacobian_q", arrays)
        assert status >= 0
        J = np.reshape(found, (6, 3))
        for k in range(3):
            moved = [dict(arrays, q=[x + h * (i == k) for i, x in enumerate(state.q)]) for h in (1e-6, -1e-6)]
            ahead, back = (np.array(interpret(program, "rhs", at)[1]) for at in moved)
            assert (ahead - back) / 2e-6 == pytest.approx(J[:, k], abs=1e-6 * max(1.0, np.abs(J).max()))


# -- units: pivots are small relative to their terms, not to 1 ---------------------------------------------------


def axis(inertia: float, scale: float = 1.0, **options: Any) -> kg.Model:
    """Two wheels on parallel axes; ``scale`` of a row of the kinematics."""
    q, u = me.dynamicsymbols("a b"), me.dynamicsymbols("h k")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bodies = []
    for k, angle in enumerate(q):
        B = me.ReferenceFrame(f"B{k}")
        B.orient_axis(N, N.z, angle)
        bodies.append(me.RigidBody(f"B{k}", O, B, 1, (me.inertia(B, 0, 0, (inertia, 1000)[k]), O)))
    rows = [u[0] - inertia * q[0].diff(TIME), scale * (u[1] - q[1].diff(TIME))]
    loads = [(body.frame, N.z) for body in bodies]
    settings = {"frame": N, "coordinates": q, "speeds": u, "kinematics": rows, "bodies": bodies, "loads": loads}
    return kg.Model(name="axis", check_kinematics=False, **settings, **options)


@pytest.mark.parametrize("scale", [1e-15, 1.0, 1e15])
def test_momenta_of_small_wheels_are_speeds(scale: float) -> None:
    """Speeds I w with I = 1e-9 were refused: pivots below 1e-9 counted as zero."""
    equations = kg.derive(axis(1e-9, scale))
    values = {"q": [0.0, 0.0], "u": [2e-9, 1.0], "t": [0.0], "p": [], "r": []}
    C, udot = read([equations.system.C, equations.accelerations(stabilized=False).udot], values)
    assert C.astype(float) == pytest.approx(np.array([[1e9, 0.0], [0.0, 1.0]]))
    assert udot.astype(float) == pytest.approx(np.array([1.0, 1e-3]))


def test_orthogonal_speeds_of_light_and_heavy_bodies() -> None:
    """1000 kg beside 1e-7 kg m^2: a pivot was compared with the largest entry of Q."""
    equations = kg.derive(axis(1e-7).with_orthogonal_speeds())
    Q = read([equations.Q], {"q": [0.0, 0.0], "u": [0.0, 0.0], "t": [0.0], "p": [], "r": []})[0].astype(float)
    assert np.all(np.diag(Q) > 0.0)
    assert Q[0, 1] == Q[1, 0] == 0.0


@pytest.mark.parametrize("unit", [5e-10, 1e-5, 1.0, 1e9])
def test_closures_in_any_units_are_solved(unit: float) -> None:
    """Rows with entries below 1e-9 were refused as redundant; the status does not depend on units either."""
    q, u = me.dynamicsymbols("x y"), me.dynamicsymbols("u v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", q[0] * N.x + q[1] * N.y)
    model = kg.Model(
        name="line",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[a.diff(TIME) - b for a, b in zip(q, u, strict=True)],
        bodies=[me.Particle("P", P, 1)],
        gravity=-10 * N.y,
        holonomic_constraints=[unit * (q[0] - q[1])],
    )
    program, _ = assemble(kg.derive(model), BuildOptions.of("reduced", ("rhs",)))
    values = {"t": [0.0], "q": [0.1, 0.1], "u": [0.0, 0.0], "p": [], "r": [], "g": [0.0] * 2}
    status, found = interpret(program, "rhs", values)
    assert (status, found) == (0, pytest.approx([0.0, 0.0, -5.0, -5.0]))


def test_singular_definitions_are_refused_in_any_units() -> None:
    model = axis(1e-9)
    h, k = model.speeds
    w = me.dynamicsymbols("w:2")
    with raises(kg.ModelError, "Phi1"):
        kg.derive(model.with_speeds(w, [1e-12 * (h + k), 1e12 * (h + k)]))


# -- speeds that move no mass where the constraints determine them ------------------------------------------------


def massless_somewhere(x: Any, y: Any) -> kg.Model:
    """A particle at (x, y), functions of a, b and a parameter; two rows determine both speeds at any instant."""
    q, u = me.dynamicsymbols("a b"), me.dynamicsymbols("u:2")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x(q[0]) * N.x)
    R = O.locatenew("R", y(q[1]) * N.y)
    return kg.Model(
        name="massless_somewhere",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[a.diff(TIME) - b for a, b in zip(q, u, strict=True)],
        bodies=[me.Particle("P", P, 2), me.Particle("R", R, sm.Symbol("m"))],
        loads=[(P, 3 * N.x), (R, -N.y)],
        nonholonomic_constraints=[u[0] - (2 + sm.sin(TIME)) * u[1], u[0] + (1 - sm.cos(TIME)) * u[1]],
    )


NOWHERE = {
    "a right angle": (massless_somewhere(sm.sin, lambda b: 0), np.pi / 2, 1.0),
    "a right angle beside a mass": (massless_somewhere(sm.sin, lambda b: b), np.pi / 2, 1.0),
    "a length of zero": (massless_somewhere(lambda a: a**2 / 2, lambda b: 0), 0.0, 1.0),
    "a length of nearly zero": (massless_somewhere(lambda a: a**2 / 2, lambda b: 0), 1e-9, 1.0),
    "a length of zero beside a mass": (massless_somewhere(lambda a: a**2 / 2, lambda b: b), 1e-17, 1.0),
    "a mass of zero": (massless_somewhere(lambda a: a, lambda b: b), 0.5, 0.0),
    "a mass of nearly zero": (massless_somewhere(lambda a: a, lambda b: b), 0.5, 1e-33),
}


@pytest.mark.parametrize("name", NOWHERE)
@pytest.mark.parametrize("form", ["augmented", "reduced", "nonminimal", "articulated"])
def test_inertias_that_vanish_at_regular_states(name: str, form: str) -> None:
    """The weights of the augmented form followed Q_rr down to 1e-33: u' was lost without a word, or SINGULAR."""
    model, a, m = NOWHERE[name]
    t, u = 0.3, np.array([0.5, 0.7])
    J = np.array([[1.0, -2.0 - np.sin(t)], [1.0, 1.0 - np.cos(t)]])
    expected = np.linalg.solve(J, [np.cos(t) * u[1], -np.sin(t) * u[1]])
    program, _ = assemble(kg.derive(model), BuildOptions.of(form, ("rhs",)))
    values = {"t": [t], "q": [a, 0.3], "u": u.tolist(), "p": [m] * len(model.parameters), "r": [], "g": [0.0] * 4}
    status, found = interpret(program, "rhs", values)
    assert status >= 0
    assert found[2:] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("form", [form.name for form in FORMS.values() if not form.any_rank and not form.momenta])
def test_singular_states_have_no_result(form: str) -> None:
    """A lift whose bars lie upon each other but for rounding: in a row of rounding, a pivot is as large as the rest."""
    model, rng = model_of("scissor_lift"), np.random.default_rng(29)
    program, _ = assemble(kg.derive(model), BuildOptions.of(form, ("rhs",)))
    fixed = {"t": [0.0], "u": [0.0] * 9, "p": list(model.parameters.values()), "r": [], "g": [0.0] * 128}
    for _ in range(20):
        q = np.array([0.0, *np.repeat(rng.uniform(-3.0, 3.0, 4), 2)]) + 2e-16 * rng.normal(size=9)
        status, _ = interpret(program, "rhs", {**fixed, "q": q})
        assert status < 0


@pytest.mark.parametrize(("x", "jumps"), [(0.0, True), (2.0, True), (0.3, False)])
def test_states_on_a_stair_have_a_kink(x: float, jumps: bool) -> None:
    """The law of sampled_pid rounds by floor: its difference quotients at x = 0 were compared with slopes beside it."""
    equations = kg.derive(model_of("sampled_pid"))
    parameters = [1.0 if p is None else float(p) for p in equations.model.parameters.values()]
    stair = next(i for i, p in enumerate(equations.model.parameters) if str(p) == "res")
    parameters[stair] = 1.0
    z = np.zeros(2)
    q = np.array([x, 0.1])
    state = State(0.5, q, z, np.zeros(len(equations.system.r)), np.array(parameters), np.array([]), z, consistent=True)
    assert has_kink(equations, state) is jumps
