"""Units of models: reading them, the check of every equation, and the units that follow."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import raises

import kanegen as kg
from kanegen.model.checks.dimensions import Dimensions
from kanegen.units import exponents, read_unit, spelled

theta, omega, x, v, s, F = me.dynamicsymbols("theta omega x v s F")
l, m, g, k, c, tau, mu = sm.symbols("l m g k c tau mu")
TIME = me.dynamicsymbols._t


def cart(*, gravity: Any = g, **options: Any) -> kg.Model:
    """A cart with a spring and an input, which carries a pendulum."""
    N = me.ReferenceFrame("N")
    B = N.orientnew("B", "Axis", (theta, N.z))
    O = me.Point("O")
    O.set_vel(N, 0)
    C = O.locatenew("C", x * N.x)
    P = C.locatenew("P", -l * B.y)
    fields: dict[str, Any] = {
        "name": "cart",
        "frame": N,
        "coordinates": (x, theta),
        "speeds": (v, omega),
        "kinematics": (x.diff() - v, theta.diff() - omega),
        "bodies": (me.Particle("cart", C, 2 * m), me.Particle("bob", P, m)),
        "loads": ((C, (F - k * x - c * v) * N.x),),
        "inputs": (F,),
        "gravity": -gravity * N.y,
        "outputs": {"height": -l * sm.cos(theta), "power": F * v, "both": [x, theta]},
    }
    return kg.Model(**{**fields, **options})


def test_units_follow_from_a_part_of_them():
    units = cart(units={theta: "deg", "height": "mm"}).all_units
    assert (units["theta"].text, units["height"].text) == ("deg", "mm")
    expected = {"x": "m", "v": "m/s", "m": "kg", "g": "m/s^2", "k": "N/m", "c": "N s/m", "F": "N", "power": "W"}
    assert {name: units[name].text for name in expected} == expected
    assert "both" not in units


def test_a_model_without_units_has_none():
    assert cart().units == {}
    assert cart().all_units == {}


def test_given_units_are_kept_and_displayed():
    model = cart(units={"theta": "deg", v: "km/h"}, parameters={l: 0.5}, initial={theta: math.pi / 2, v: 10.0})
    assert [*model.units] == ["theta", "v"]
    assert model.units["theta"].display(math.pi) == pytest.approx(180.0, rel=1e-15)
    page = model._repr_html_()
    for text in ("l = 0.5 m", "theta = 90 deg", "v = 36 km/h", "m = ?"):
        assert text in page


@pytest.mark.parametrize(
    ("unit", "si", "size"),
    [
        ("deg", "rad", math.pi / 180),
        ("rpm", "rad/s", 2 * math.pi / 60),
        ("km/h", "m/s", 1 / 3.6),
        ("mm", "m", 1e-3),
        ("N m/A", "N m/A", 1.0),
        ("percent", "1", 0.01),
        ("kWh", "N m", 3.6e6),
        ("", "1", 1.0),
    ],
)
def test_reading_units(unit: str, si: str, size: float) -> None:
    problems: list[str] = []
    found = read_unit(unit, "", problems)
    assert found is not None
    assert problems == []
    assert found.si == si
    assert found.size == pytest.approx(size, rel=1e-14)


@pytest.mark.parametrize("text", ["degC", "dB", "parsec_foo", "3 m", "kg*", "pixel", "bit", "[", 2.0, None])
def test_texts_that_are_no_proportional_unit(text: Any) -> None:
    with raises(kg.ModelError, "k"):
        cart(units={k: text})


def test_all_problems_of_units_are_reported_together():
    with pytest.raises(kg.ModelError) as caught:
        cart(units={k: "foo", "c": "degC", x: "m", "x": "m"})
    assert len(caught.value.problems) == 3
    with raises(kg.ModelError, "stiffness"):
        cart(units={"stiffness": "N/m"})
    with raises(kg.ModelError, "units"):
        cart(units=["m"])


def test_pint_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pint", None)
    with raises(kg.ModelError, "kanegen[units]"):
        cart(units={x: "m"})
    cart()


WRONG: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "kinematics": ({"units": {v: "m/s", x: "rad"}, "kinematics": (v - x.diff(), omega - theta.diff())}, ("x", "rad")),
    "a length": ({"units": {l: "kg"}}, ("P", "l", "kg", "m")),
    "a mass": ({"units": {m: "m"}}, ("cart", "2*m", "m", "kg")),
    "gravity": ({"units": {g: "N"}}, ("gravity", "g", "m/s^2")),
    "a stiffness": ({"units": {k: "N m"}}, ("C", "k*x", "N")),
    "an angle": ({"units": {theta: "m"}}, ("theta", "m")),
    "an output": ({"units": {"power": "J"}}, ("power", "F*v", "W", "N m")),
    "a constraint": ({"units": {x: "m"}, "holonomic_constraints": [x - l * theta - tau, tau - m]}, ("m", "kg")),
    "a number": ({"units": {x: "m"}, "nonholonomic_constraints": [v - 3]}, ("v", "3", "m/s")),
    "a sine": ({"units": {x: "m"}, "nonholonomic_constraints": [v - l * omega * sm.sin(x)]}, ("sin", "x", "m")),
    "an exponent": ({"units": {x: "m"}, "potential_energy": k * l**2 * sm.Symbol("a") ** x}, ("x", "m")),
    "a state": ({"units": {s: "A"}, "states": {s: (tau - s) / tau}, "parameters": {tau: 1}}, ("s", "A")),
    "a law": ({"units": {x: "m"}, "inputs": [kg.Input(F, law=-k * v)]}, ("F", "k*v", "N")),
    "a saturation": ({"units": {x: "m"}, "inputs": [kg.Input(F, law=-k * x, saturation=(-l, l))]}, ("l", "F")),
    "a guard": ({"units": {x: "m"}, "events": [kg.Event("end", x - theta)]}, ("end", "x", "theta")),
    "a maximum": ({"units": {x: "m"}, "outputs": {"y": sm.Max(x, v)}}, ("y", "x", "v", "m/s")),
    "a branch": ({"units": {x: "m"}, "outputs": {"y": sm.Piecewise((x, x > l), (v, True))}}, ("y", "x", "v")),
    "a condition": ({"units": {x: "m"}, "outputs": {"y": sm.Piecewise((x, x > v), (l, True))}}, ("y", "x", "v")),
    "a contact": (
        {"units": {x: "m", k: "N"}, "contacts": [kg.Unilateral(x, kg.KelvinVoigt(k, 1))], "loads": []},
        ("N",),
    ),
    "friction": ({"units": {mu: "m"}, "contacts": [kg.Friction((v,), kg.Coulomb(mu), m * g)]}, ("mu", "m")),
    "a potential": (
        {"units": {k: "N"}, "potential_energy": k * x**2 / 2, "loads": [], "inputs": []},
        ("k*x**2/2", "N m"),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_contradictions_name_the_place_and_the_units(case: str) -> None:
    options, names = WRONG[case]
    outputs = {} if case not in ("an output",) and "outputs" not in options else options.get("outputs")
    fields = {**({"outputs": outputs} if outputs is not None else {}), **options}
    with raises(kg.ModelError, *names):
        cart(**fields, strict=False)


def test_numbers():
    """Decimal numbers can have a unit; numbers alone in their place have that of the place; fractions are pure."""
    units = {x: "m", F: "N"}
    cart(units=units, potential_energy=0.5 * x**2, outputs={"a": 9.81 * x + 2.5 * v})
    cart(units=units, gravity=9.81, outputs={"zero": sm.Integer(0), "m": sm.Max(0, x)})
    assert cart(units=units, outputs={"half": x / 2}).all_units["half"].text == "m"


def test_rates_resets_and_speeds():
    w1, w2 = me.dynamicsymbols("w1 w2")
    events = [kg.Event("tick", s - tau, reset={s: s / 2})]
    model = cart(units={x: "mm"}, states={s: v}, events=events)
    assert model.all_units["s"].text == model.all_units["tau"].text == "m"
    other = model.with_speeds([w1, w2], [v / l, omega + v / l])
    assert other.all_units["w1"].text == "1/s"
    with raises(kg.ModelError, "w2", "v"):
        model.with_speeds([w1, w2], [v / l, omega + v])


def test_contact_laws():
    contacts = [
        kg.Unilateral(x, kg.HuntCrossley(k, c), name="wall", friction=None),
        kg.Unilateral(theta + 1, kg.Stabilized(tau, mu), name="stop"),
        kg.Unilateral(l - x, kg.ImpactFunction(1000, 10, sm.Rational(1, 1000), sm.Rational(3, 2)), name="soft"),
    ]
    units = cart(units={x: "m"}, contacts=contacts, loads=[], inputs=[], outputs={}).all_units
    assert spelled(units["k"].exponents) == spelled({"kg": 1, "m": Fraction(-1, 2), "s": -2})
    assert (units["tau"].text, units["mu"].text) == ("1/s", "1/s^2")
    assert (units["wall"].text, units["stop"].text) == ("N", "N m")


SYMBOLS = sm.symbols("a b d e")


@st.composite
def consistent(draw: st.DrawFn, dimension: Any, depth: int = 3) -> Any:
    """An expression with this dimension, of symbols whose units are powers of m and s."""
    a, b = SYMBOLS[:2]  # m, s
    m_power, s_power = dimension
    if depth == 0:
        return a ** sm.Rational(m_power) * b ** sm.Rational(s_power) * draw(st.integers(1, 9))
    below = consistent(dimension, depth - 1)
    kind = draw(st.sampled_from(("sum", "product", "min", "pure", "power", "quotient")))
    if kind == "sum":
        return draw(below) + draw(below)
    if kind == "min":
        return sm.Min(draw(below), draw(below))
    if kind == "pure":
        return draw(below) * sm.sin(draw(consistent((0, 0), depth - 1)))
    if kind == "power":
        return sm.Pow(draw(consistent((2 * m_power, 2 * s_power), depth - 1)), sm.Rational(1, 2))
    shift = draw(st.sampled_from(((1, -1), (0, 1), (2, 0))))
    if kind == "quotient":
        other = (m_power + shift[0], s_power + shift[1])
        return draw(consistent(other, depth - 1)) / draw(consistent(shift, depth - 1))
    other = (m_power - shift[0], s_power - shift[1])
    return draw(consistent(other, depth - 1)) * draw(consistent(shift, depth - 1))


UNITS = dict(zip(SYMBOLS, (exponents(m=1), exponents(s=1), {}, exponents(m=1, s=-1)), strict=True))


@settings(max_examples=60, deadline=None)
@given(st.tuples(st.integers(-2, 2), st.integers(-2, 2)).flatmap(lambda p: st.tuples(st.just(p), consistent(p))))
def test_consistent_expressions_are_accepted_and_others_refused(case: Any) -> None:
    powers, expr = case
    expected = exponents(m=powers[0], s=powers[1])
    dimensions = Dimensions(UNITS, {})
    dimensions.require("here", [expr], expected)
    assert not dimensions.problems
    if expr.is_number:
        return
    dimensions.require("there", [expr * SYMBOLS[0]], expected)
    dimensions.require("there", [expr + expr * SYMBOLS[3]], None)
    assert len(dimensions.problems) >= (2 if not (expr + expr * SYMBOLS[3]).is_number else 1)


@settings(max_examples=40, deadline=None)
@given(st.tuples(st.integers(-2, 2), st.integers(-2, 2)).flatmap(lambda p: st.tuples(st.just(p), consistent(p))))
def test_the_unit_of_a_factor_follows(case: Any) -> None:
    powers, expr = case
    dimensions = Dimensions(UNITS, {})
    dimensions.require("here", [k * expr], exponents(kg=1))
    assert dimensions.known(k) == {x: n for x, n in exponents(kg=1, m=-powers[0], s=-powers[1]).items() if n}
