"""The start of a motion in a model, and parameters that do not occur in it."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises, says, warns
from state_models import VALUES, cart

import kanegen as kg
from kanegen.derivation import fingerprint, lower_model

x, v, a, z, f, w = me.dynamicsymbols("x v a z f w")
t, k = me.dynamicsymbols._t, sm.Symbol("k")
START = {t: 0.5, x: 0.1, v: -0.2, a: 0.3, "z": sm.pi / 4}
NAMED = {"t": 0.5, "x": 0.1, "v": -0.2, "a": 0.3, "z": np.pi / 4}

REFUSED: list[tuple[str, Any, tuple[str, ...]]] = [
    ("no mapping", [1.0], ("initial", "mapping")),
    ("an unknown symbol", {w: 1.0}, ("initial", "w", "coordinate")),
    ("an unknown name with a similar one", {"xx": 1.0}, ("initial", "xx", "x")),
    ("an input", {f: 1.0}, ("initial", "f", "inputs", "r=")),
    ("an input by name", {"f": 1.0}, ("initial", "f", "inputs")),
    ("a parameter", {k: 1.0}, ("initial", "k", "parameters")),
    ("a parameter by name", {"k": 1.0}, ("initial", "k", "parameters")),
    ("a rate", {x.diff(): 1.0}, ("initial", "x'")),
    ("a symbol of the same name", {sm.Symbol("x"): 1.0}, ("initial", "x", "assumptions")),
    ("an expression", {x: k}, ("initial", "x", "k", "number")),
    ("no number", {x: "one"}, ("x", "one", "number")),
    ("infinity", {x: np.inf}, ("x", "inf", "finite")),
    ("None", {x: None}, ("x", "None")),
    ("a value given twice", {x: 1.0, "x": 2.0}, ("initial", "x", "twice")),
]


@pytest.mark.parametrize(("given", "names"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_is_refused(given: Any, names: tuple[str, ...]) -> None:
    with raises(kg.ModelError, *names):
        cart(initial=given)


def test_all_problems_are_reported_together() -> None:
    with raises(kg.ModelError, "w", "k", "x", "nan"):
        cart(initial={w: 1.0, k: 2.0, x: np.nan})


def test_the_start_is_kept_by_symbol() -> None:
    model = cart(initial=START)
    assert dict(model.initial) == {t: 0.5, x: 0.1, v: -0.2, a: 0.3, z: np.pi / 4}
    assert dict(cart(initial=NAMED).initial) == dict(model.initial)
    assert not cart().initial


def test_the_start_is_no_part_of_the_compiled_code() -> None:
    digests = {fingerprint(lower_model(model)) for model in (cart(), cart(initial=START), cart(initial={x: 1.0}))}
    assert len(digests) == 1


def test_the_start_travels_with_the_solver() -> None:
    solver = kg.build(cart(initial=START))
    assert dict(solver.initial) == NAMED
    others = (
        pickle.loads(pickle.dumps(solver)),
        solver.with_parameters(k=2.0),
        solver.with_stabilization(None),
        solver.with_initial(START),
        solver.with_initial(**NAMED),
    )
    for other in others:
        assert dict(other.initial) == NAMED
        assert other.extension.digest == solver.extension.digest
    assert dict(solver.with_initial({x: 2.0}).initial) == {"x": 2.0}
    assert not solver.with_initial().initial
    with raises(kg.SolveError, "speed", "w"):
        solver.with_initial({w: 1.0})
    with raises(kg.SolveError, "x", "nan"):
        solver.with_initial(x=np.nan)


def test_other_speeds_lose_the_values_of_the_former_ones() -> None:
    changed = cart(initial=START, outputs={}).with_speeds([w], [2 * v])
    assert dict(changed.initial) == {t: 0.5, x: 0.1, a: 0.3, z: np.pi / 4}
    assert dict(kg.build(changed).with_initial(w=1.0, x=0.0).initial) == {"w": 1.0, "x": 0.0}


def test_models_can_share_a_dictionary_of_parameters() -> None:
    shared = VALUES | {"wing_span": 3.0, sm.Symbol("kk"): 1.0}
    with raises(kg.ModelError, "wing_span", "kk"):
        cart(parameters=shared)
    with warns(kg.ModelWarning, "cart", "wing_span", "kk", "k") as caught:
        model = cart(parameters=shared, strict=False)
    assert len(caught) == 1
    assert dict(model.parameters) == dict(cart().parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cart(strict=False)
    with raises(kg.ModelError, "strict"):
        cart(strict="no")


def test_other_mistakes_in_parameters_remain_errors() -> None:
    with raises(kg.ModelError, "k", "assumptions"):
        cart(parameters=VALUES | {sm.Symbol("k", positive=True): 2.0}, strict=False)
    with raises(kg.ModelError, "x", "coordinates"):
        cart(parameters=VALUES | {x: 2.0}, strict=False)


def test_solvers_can_share_a_dictionary_of_parameters() -> None:
    solver = kg.build(cart())
    shared = {"k": 5.0, "wing_span": 3.0}
    with raises(kg.SolveError, "wing_span"):
        solver.with_parameters(shared)
    with warns(kg.ModelWarning, "cart", "wing_span", "length") as caught:
        stiffer = solver.with_parameters(shared, strict=False, length=1.0)
    assert len(caught) == 1
    assert stiffer.parameters["k"] == 5.0
    says(repr(stiffer), "cart")
