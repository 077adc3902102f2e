"""Functions that SymPy can write with known ones: characteristic curves of muscles, sinc, log1p; steps and impulses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sm
from messages import raises
from sympy.codegen import cfunctions
from sympy.physics import biomechanics as bio
from sympy.physics import mechanics as me
from tolerances import DIFFERENCES, LINEAR_SOLVE, SOLVE

import kanegen as kg
from kanegen.errors import DerivationError
from kanegen.graph import Graph, Lowering, Tangent, evaluate

x, y = sm.symbols("x y", real=True)
z = me.dynamicsymbols("z")
TIME = me.dynamicsymbols._t
CURVES = (
    bio.FiberForceLengthActiveDeGroote2016,
    bio.FiberForceLengthPassiveDeGroote2016,
    bio.FiberForceLengthPassiveInverseDeGroote2016,
    bio.FiberForceVelocityDeGroote2016,
    bio.FiberForceVelocityInverseDeGroote2016,
    bio.TendonForceLengthDeGroote2016,
    bio.TendonForceLengthInverseDeGroote2016,
)
STEP = sm.Rational(1, 10**30)


def lowered(expression: Any) -> tuple[Graph, Any]:
    graph = Graph()
    leaves = {x: ("q", 0), y: ("q", 1), z: ("q", 2), z.diff(TIME): ("u", 0), TIME: ("t", 0)}
    return graph, Lowering(graph, {s: graph.input(*where) for s, where in leaves.items()}).lower(expression)


def value(expression: Any, at: float) -> float:
    (found,) = evaluate([lowered(expression)[1]], {"q": [at, 0.3, 0.2], "u": [1.5], "t": [0.0]})
    return float(found)


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.__name__)
@pytest.mark.parametrize("at", [0.7, 1.05])
def test_curves_and_their_derivatives(curve: Any, at: float) -> None:
    expression = curve.with_defaults(x)
    closed = sm.nsimplify(expression.doit(), rational=True).subs
    point = sm.Rational(str(at))
    exact = float(closed(x, point).evalf(30))
    slope = float(((closed(x, point + STEP) - closed(x, point - STEP)) / (2 * STEP)).evalf(90))
    assert value(expression, at) == pytest.approx(exact, rel=LINEAR_SOLVE)
    graph, node = lowered(expression)
    forward = Tangent(graph, {graph.input("q", 0): graph.one})(node)
    assert evaluate([forward], {"q": [at, 0, 0]})[0] == pytest.approx(slope, rel=LINEAR_SOLVE)
    for derivative in (sm.diff(expression, x), sm.Derivative(expression, x)):
        assert value(derivative, at) == pytest.approx(slope, rel=LINEAR_SOLVE)
    of_square = sm.Subs(sm.Derivative(curve.with_defaults(y), y), y, x**2)
    assert value(of_square, at**0.5) == pytest.approx(slope, rel=LINEAR_SOLVE)


def test_constants_of_a_curve_may_be_parameters() -> None:
    curve = bio.TendonForceLengthDeGroote2016(x, y, sm.Float("0.995"), sm.Integer(0), sm.Integer(30))
    assert value(curve, 1.01) == pytest.approx(0.3 * np.exp(30 * (1.01 - 0.995)), rel=LINEAR_SOLVE)
    nested = bio.TendonForceLengthDeGroote2016.with_defaults(bio.TendonForceLengthInverseDeGroote2016.with_defaults(x))
    assert value(nested, 0.8) == pytest.approx(0.8, rel=LINEAR_SOLVE)


REWRITTEN = {
    "sinc": sm.sinc(x),
    "erfc": sm.erfc(x),
    "erf2": sm.erf2(x, y),
    "log1p": cfunctions.log1p(x),
    "expm1": cfunctions.expm1(x),
    "log10": cfunctions.log10(x),
    "exp2": cfunctions.exp2(x),
    "fma": cfunctions.fma(x, y, x),
    "ramp": sm.SingularityFunction(x, sm.Rational(1, 2), 1),
    "sum": sm.Sum(x**y, (y, 0, 3)),
    "Subs": sm.Subs(sm.Derivative(sm.sin(y) * x, y), y, x**2),
    "floor": sm.Derivative(sm.floor(x), x),
    "Mod": sm.Derivative(sm.Mod(x, sm.Rational(1, 4)), x),
}


@pytest.mark.parametrize("name", REWRITTEN)
@pytest.mark.parametrize("at", [0.7, 0.2])
def test_functions_that_sympy_can_rewrite(name: str, at: float) -> None:
    expression = REWRITTEN[name]
    plain = {"floor": 0 * x, "Mod": x / x, "fma": x * y + x, "erf2": sm.erf(y) - sm.erf(x)}.get(name, expression.doit())
    exact = float(plain.subs({x: sm.Float(at, 30), y: sm.Rational(3, 10)}).evalf())
    assert value(expression, at) == pytest.approx(exact, rel=LINEAR_SOLVE, abs=1e-15)


def test_sinc_has_its_value_and_no_nan_at_the_origin() -> None:
    assert value(sm.sinc(x), 0.0) == 1.0


@pytest.mark.parametrize("at", [(0.5, -1.0), (0.5, 1.0), (-0.5, 1.0), (-0.5, -1.0)])
def test_logical_functions(at: tuple[float, float]) -> None:
    for condition in (sm.Xor(x > 0, y > 0), sm.Implies(x > 0, y > 0), sm.Nand(x > 0, y > 0)):
        node = lowered(sm.Piecewise((1, condition), (0, True)))[1]
        exact = bool(condition.subs(dict(zip((x, y), at, strict=True))))
        assert bool(evaluate([node], {"q": [*at, 0.0]})[0]) is exact


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        (sm.Heaviside(z).diff(TIME), ("DiracDelta(z(t))", "impulses=")),
        (sm.Abs(x).diff(x, 2), ("DiracDelta",)),
        (sm.besselj(0, x), ("besselj", "C99")),
        (sm.erfi(x), ("erfi", "C99")),
        (sm.Integral(sm.exp(-(y**3)), (y, 0, x)), ("Integral",)),
        (sm.besselj(0, sm.sinc(x)), ("besselj",)),
        (sm.sinc(sm.besselj(0, x)), ("besselj",)),
    ],
)
def test_what_has_no_value_is_refused(expression: Any, names: tuple[str, ...]) -> None:
    with raises(DerivationError, *names):
        lowered(expression)


def test_steps_have_the_slope_zero_in_derivatives_of_the_graph() -> None:
    graph, node = lowered(sm.Heaviside(z) + sm.sign(z) + sm.floor(z))
    assert Tangent(graph, {graph.input("q", 2): graph.one})(node) is graph.zero


# --- a muscle -------------------------------------------------------------------------------------------------------


def arm() -> tuple[kg.Model, Any, dict[Any, Any]]:
    """A point mass on a link in the plane, pulled by a muscle with a rigid tendon; its u', and values."""
    q, u = me.dynamicsymbols("q u")
    m, l, g, F, slack, optimal = sm.symbols("m l g F l_T l_opt")
    frame, origin = me.ReferenceFrame("N"), me.Point("O")
    link = frame.orientnew("A", "Axis", (q, frame.z))
    link.set_ang_vel(frame, u * frame.z)
    origin.set_vel(frame, 0)
    mass, insertion = origin.locatenew("P", l * link.x), origin.locatenew("I", l / 2 * link.x)
    mass.v2pt_theory(origin, frame, link)
    insertion.v2pt_theory(origin, frame, link)
    anchor = origin.locatenew("M", -l / 6 * frame.x + l / 6 * frame.y)
    anchor.set_vel(frame, 0)
    path = me.LinearPathway(anchor, insertion)
    activation = bio.FirstOrderActivationDeGroote2016.with_defaults("biceps")
    muscle = bio.MusculotendonDeGroote2016.with_defaults(
        "biceps",
        path,
        activation,
        musculotendon_dynamics=bio.MusculotendonFormulation.RIGID_TENDON,
        tendon_slack_length=slack,
        peak_isometric_force=F,
        optimal_fiber_length=optimal,
        maximal_fiber_velocity=sm.Integer(10),
        optimal_pennation_angle=sm.Float("0.1"),
        fiber_damping_coefficient=sm.Float("0.1"),
    )
    values = {m: 1.0, l: 0.3, g: 9.81, F: 50.0, slack: 0.1, optimal: 0.1}
    model = kg.Model(
        name="arm",
        frame=frame,
        coordinates=(q,),
        speeds=(u,),
        kinematics=(u - q.diff(TIME),),
        bodies=(me.Particle("hand", mass, m),),
        loads=(*muscle.to_loads(), (mass, -m * g * frame.y)),
        inputs=(activation.activation,),
        parameters=values,
    )
    torque = muscle.force.doit() * path.length.diff(q) - m * g * l * sm.cos(q)
    udot = (torque / (m * l**2)).subs(q.diff(TIME), u)
    return model, udot, {"q": q, "u": u, "a": activation.activation, "values": values}


def test_an_arm_with_a_muscle_whose_activation_is_an_input() -> None:
    model, udot, names = arm()
    solver = kg.build(model, functions=("rhs", "residuals", "jacobians"))
    acceleration = sm.lambdify([names["q"], names["u"], names["a"]], udot.xreplace(names["values"]), "mpmath")
    state = [0.3, 0.2, 0.4]
    assert solver.rhs(0.0, [0.3], [0.2], [0.4])[1][0] == pytest.approx(float(acceleration(*state)), rel=SOLVE)
    found = solver.jacobian(0.0, [0.3], [0.2], [0.4])
    for k, columns in enumerate((found.q, found.u, found.r)):
        above, below = (acceleration(*(a + h * (i == k) for i, a in enumerate(state))) for h in (1e-6, -1e-6))
        assert columns[1, 0] == pytest.approx(float(above - below) / 2e-6, rel=DIFFERENCES, abs=DIFFERENCES)
