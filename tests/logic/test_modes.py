"""Named modes: transitions in closed form, at once, with latches; derivatives; refusals."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy
import sympy.physics.mechanics as me
from messages import raises
from numpy.testing import assert_allclose, assert_array_equal
from sensitivity_models import a, differences, line, v, x

import kanegen as kg

T = me.dynamicsymbols("T")
TIME = me.dynamicsymbols._t
TIGHT: dict[str, Any] = {"method": "dop853", "rtol": 1e-12, "atol": 1e-13}


def heating() -> kg.Modes:
    transitions = [kg.Transition("off", "on", T - 19, direction=-1), kg.Transition("on", "off", T - 21)]
    return kg.Modes("heating", ("off", "on"), transitions)


@cache
def house() -> kg.Solver:
    heat = heating()
    rate = heat.choose(on=a, off=0) - (T - 10) / 10
    return kg.build(line("house", -x, {a: 2.0}, states={T: rate}, modes=[heat], initial={T: 20.0}))


def period(power: float) -> float:
    """T tends to 10 or to 10 + 10 a, with a time constant of 10 s, between 19 and 21."""
    return float(10 * (np.log(11 / 9) + np.log((10 * power - 9) / (10 * power - 11))))


def test_a_thermostat_switches_in_closed_form() -> None:
    solution = house().integrate((0.0, 40.0), [1.0], [0.0], **TIGHT)
    on, off = ([event.t for event in solution.events if event.name.endswith(end)] for end in ("-> on", "-> off"))
    assert_allclose(on[0], 10 * np.log(10 / 9), rtol=1e-11)
    assert_allclose(np.diff(on), period(2.0), rtol=1e-10)
    assert_allclose(np.array(off) - on[: len(off)], 10 * np.log(11 / 9), rtol=1e-10)
    assert_array_equal(heating().name_of(solution["heating"][[0, -1]]), ["off", "off"])
    assert heating().name_of(1.0) == "on"


def test_motions_through_transitions_have_derivatives() -> None:
    """Against differences of order 6, whose switching moves; the gradient is the sensitivity."""
    run = ((0.0, 25.0), [1.0], [0.0])
    solution = house().integrate(*run, sensitivities=(a, T), **TIGHT)
    assert sum(event.kind == "user" for event in solution.events) > 8

    def end(change: float) -> float:
        return float(house().with_parameters(a=2.0 + change).integrate(*run, **TIGHT)["T"][-1])

    found = solution.sensitivities[T, a][-1]
    assert_allclose(found, differences(end, 1e-3), rtol=1e-8)
    _, gradient = house().value_and_gradient(kg.Objective(terminal=T), *run, with_respect_to=(a,), **TIGHT)
    assert_allclose(gradient["a"], found, rtol=1e-11)


def test_transitions_that_are_due_follow_at_once() -> None:
    """From a over b and c -> d at the instant at which x = 1; nothing happens in modes that do not act."""
    guards = {"ab": x - 1, "bc": x - sympy.Rational(1, 2), "cd": v - sympy.Rational(1, 10)}
    chain = kg.Modes("chain", "abcd", [kg.Transition(*names, guard) for names, guard in guards.items()], final="d")
    solver = kg.build(line("chained", -x + 2 * chain.is_in("d"), {}, modes=[chain]))
    solution = solver.integrate((0.0, 6.0), [0.0], [2.0], **TIGHT)
    assert [event.name for event in solution.events] == ["chain: a -> b", "chain: b -> c", "chain: c -> d"]
    assert_allclose([event.t for event in solution.events], np.pi / 6, rtol=1e-12)
    after = solution.t[-1] - np.pi / 6
    assert_allclose(solution.q[-1, 0], 2 - np.cos(after) + np.sqrt(3) * np.sin(after), rtol=1e-10)


def caught() -> kg.Solver:
    """A particle that falls onto x = 0, is held there until t = 2, then falls on."""
    transitions = [
        kg.Transition("falling", "held", x, direction=-1),
        kg.Transition("held", "gone", TIME - 2, name="released"),
    ]
    modes = kg.Modes("state", ("falling", "held", "gone"), transitions, latches={"held": "lock"}, final="gone")
    return kg.build(line("caught", -3, {}, modes=[modes], contacts=[kg.Latch("lock", x)]))


def test_modes_close_and_open_latches() -> None:
    solver = caught()
    solution = solver.integrate((0.0, 3.0), [1.0], [0.0], **TIGHT)
    assert_allclose([event.t for event in solution.events if event.kind == "user"], [np.sqrt(2 / 3), 2.0], rtol=1e-12)
    assert_allclose((solution.q[-1, 0], solution.u[-1, 0]), (-1.5, -3.0), rtol=1e-10)
    held = solver.integrate((0.0, 1.0), [0.0], [0.0], s0={"state": 1})
    assert_allclose(held.q[-1], 0.0, atol=1e-12)
    assert held.contacts.phases[0].modes["lock"] == "closed"


def test_expressions_choose_by_name() -> None:
    modes = kg.Modes("gear", ("n", "first", "second"), (), final=("n", "first", "second"))
    chosen = sympy.lambdify(modes.symbol, modes.choose({"first": 3, "otherwise": 7}))
    assert [chosen(k) for k in range(3)] == [7, 3, 7]
    assert [sympy.lambdify(modes.symbol, modes.is_in("n", "second"))(k) for k in range(3)] == [1, 0, 1]
    with raises(kg.ModelError, "no value for 'n'", "otherwise="):
        modes.choose(first=1, second=2)
    with raises(kg.ModelError, "'third' is no mode", "'second'"):
        modes.is_in("third")


def test_an_event_can_occur_in_a_mode() -> None:
    """``when`` without `kg.Modes`: the first rise and the fall after it count, later ones do not."""
    n = me.dynamicsymbols("n")
    events = [
        kg.Event("armed", x, direction=1, when={n: 0}, reset={n: 1}),
        kg.Event("counted", x, direction=-1, when={"n": 1}, reset={"n": 2}),
    ]
    solver = kg.build(line("counted", -x, {}, states={n: 0}, events=events, initial={n: 0}))
    solution = solver.integrate((0.0, 20.0), [-1.0], [0.0], **TIGHT)
    assert_allclose([event.t for event in solution.events], [0.5 * np.pi, 1.5 * np.pi], rtol=1e-11)


def test_a_transition_that_is_due_at_the_start_is_refused() -> None:
    with raises(kg.SolveError, "'heating: off -> on' is due at the start", "heating = 0", "is -9"):
        house().integrate((0.0, 1.0), [1.0], [0.0], s0={"T": 10.0})


def test_a_start_on_a_threshold_is_due_where_the_motion_crosses_it() -> None:
    """At T = 19 the house cools in "off" and warms in "on"; 1e-12 before the threshold is on it."""
    for T0 in (19.0, 19.0 + 1e-12):
        with raises(kg.SolveError, "'heating: off -> on' is due at the start"):
            house().integrate((0.0, 1.0), [1.0], [0.0], s0={"T": T0})
    warming = house().integrate((0.0, 1.0), [1.0], [0.0], s0={"T": 19.0, "heating": 1})
    assert warming["T"][-1] > 19.5
    whole = house().integrate((0.0, 5.0), [1.0], [0.0], **TIGHT)
    (first, *_) = whole.events
    half = house().integrate((0.0, first.t + 1e-3), [1.0], [0.0], **TIGHT)
    rest = house().integrate((first.t + 1e-3, 5.0), half.q[-1], half.u[-1], s0=half.s[-1], **TIGHT)
    assert_allclose(rest.s[-1], whole.s[-1], rtol=1e-10)


@pytest.mark.parametrize("value", [2.0, -1.0, 0.4])
def test_values_that_are_no_modes_are_refused(value: float) -> None:
    with raises(kg.SolveError, f"heating is {value:g}", "no mode", "0 (off), 1 (on)"):
        house().integrate((0.0, 1.0), [1.0], [0.0], s0={"heating": value})
    with raises(kg.ModelError, f"no mode {value:g}", "0 to 1"):
        heating().name_of([0.0, value])


def test_derivatives_pass_chains_of_transitions() -> None:
    """From a at x = k over b, which is left at once, to c; x' = v is constant, then x'' = -1."""
    k = sympy.Symbol("k", real=True)
    transitions = [kg.Transition("a", "b", x - k), kg.Transition("b", "c", x - k / 2)]
    chain = kg.Modes("chain", ("a", "b", "c"), transitions, final="c")
    solver = kg.build(line("chain of k", -chain.is_in("c"), {k: 1.0}, modes=[chain]))
    solution = solver.integrate((0.0, 2.0), [0.0], [1.0], sensitivities=("k", "v"), **TIGHT)
    S = solution.sensitivities
    assert S.reason is None
    assert_allclose(S["x", "k"][-1], 1.0, rtol=1e-10)  # x(2) = 2 - (2 - k)^2 / 2 for v = 1
    assert_allclose(S.event_times[:, 0], [1.0, 1.0], rtol=1e-10)


def test_adapters_take_modes() -> None:
    N, O = me.ReferenceFrame("N"), me.Point("O")
    P = O.locatenew("P", x * N.x)
    O.set_vel(N, 0)
    P.set_vel(N, v * N.x)
    modes = kg.Modes("phase", ("a", "b"), [kg.Transition("a", "b", x - 1)], final="b")
    kane = me.KanesMethod(N, [x], [v], kd_eqs=[v - x.diff()])
    m = sympy.Symbol("m")
    kane.kanes_equations([me.Particle("P", P, m)], [(P, modes.choose(a=1, b=-1) * N.x)])
    model = kg.Model.from_kane(kane, name="kane", parameters={m: 1.0}, modes=[modes])
    assert (list(model.states), model.inputs, model.modes) == ([modes.symbol], (), {modes.symbol: ("a", "b")})


def test_transitions_that_contradict_each_other_are_refused() -> None:
    transitions = [kg.Transition("a", "b", x - 1), kg.Transition("a", "c", 2 * x - 2)]
    modes = kg.Modes("branch", ("a", "b", "c"), transitions, final=("b", "c"))
    with raises(kg.SolveError, "'branch: a -> b'", "'branch: a -> c'", "same instant", "different modes"):
        kg.build(line("branches", 0, {}, modes=[modes])).integrate((0.0, 2.0), [0.0], [1.0])
    endless = [kg.Transition("a", "b", x - 1), kg.Transition("b", "a", x - sympy.Rational(1, 2))]
    solver = kg.build(line("endless", 0, {}, modes=[kg.Modes("endless", ("a", "b"), endless)]))
    with raises(kg.IntegrationError, "endless: a -> b", "without progress"):
        solver.integrate((0.0, 2.0), [0.0], [1.0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("1st", ("a", "b"), ()), ("'1st'", "name of a symbol")),
        (("g", ("a",), ()), ("two names",)),
        (("g", ("a", "b", "a"), ()), ("'a' twice",)),
        (("g", ("a", "b"), [kg.Transition("a", "c", x)]), ("transitions[0].target", "'c' is no mode", "'b'")),
        (("g", ("a", "b"), [kg.Transition("a", "b", x, direction=0)]), ("direction=0", "1 or -1")),
        (("g", ("a", "b"), [kg.Transition("a", "a", x)]), ("to itself", "when=")),
        (("g", ("a", "b"), [kg.Transition("a", "b", x)]), ("no transition leaves 'b'", "final=")),
        (("g", ("a", "b"), [kg.Transition("a", "b", x, reset={"g": 1})]), ("resets g", "new mode")),
        (("g", ("a", "b"), [x]), ("expected a kg.Transition",)),
    ],
)
def test_wrong_modes_are_refused(arguments: tuple[Any, ...], words: tuple[str, ...]) -> None:
    with raises(kg.ModelError, *words):
        kg.Modes(*arguments)


def test_wrong_models_are_refused() -> None:
    n = me.dynamicsymbols("n")
    with raises(kg.ModelError, "modes[0]", "expected a kg.Modes"):
        line("wrong", -x, {}, modes=[T])
    with raises(kg.ModelError, "'e'", "when= and no direction"):
        line("wrong", -x, {}, states={n: 0}, events=[kg.Event("e", x, when={n: 0})])
    with raises(kg.ModelError, "'e'", "only events change"):
        line("wrong", -x, {}, states={n: x}, events=[kg.Event("e", x, direction=1, when={n: 0})])
    with raises(kg.ModelError, "when[n]", "expected a number"):
        line("wrong", -x, {}, states={n: 0}, events=[kg.Event("e", x, direction=1, when={n: x})])
    latches = kg.Modes("m", ("a", "b"), [kg.Transition("a", "b", x)], latches={"b": "bolt"}, final="b")
    with raises(kg.ModelError, "'bolt'", "latches"):
        line("wrong", -x, {}, modes=[latches])
