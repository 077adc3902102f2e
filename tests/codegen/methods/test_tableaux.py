"""Tableaux: all order conditions they claim, and that wrong coefficients cannot be constructed."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import pytest
from jinja2 import TemplateNotFound, UndefinedError
from messages import raises

from kanegen.codegen.methods.files import METHODS, Method
from kanegen.codegen.methods.rosenbrock import Rosenbrock
from kanegen.codegen.methods.tableaux import Tableau, all_trees, bushy_tree, density, literal, order_of, trees_of_order
from kanegen.codegen.sources import environment, render, runtime_headers

TABLEAUX = {name: method.coefficients for name, method in METHODS.items() if not method.is_implicit}
RK4, KUTTA_MERSON, DOPRI5 = (TABLEAUX[name] for name in ("rk4", "kutta_merson", "dopri5"))


def test_rooted_trees_are_counted_as_in_the_literature() -> None:
    assert [len(trees_of_order(order)) for order in range(1, 9)] == [1, 1, 2, 4, 9, 20, 48, 115]
    assert all(order_of(tree) == 6 for tree in trees_of_order(6))
    assert density(bushy_tree(5)) == 5
    tall = ()
    for _ in range(3):
        tall = (tall,)
    assert density(tall) == 24


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_table_says_what_the_files_say(method: Method) -> None:
    assert method.is_adaptive == (method.control is not None) == ("control" in method._file)
    assert method.is_implicit == isinstance(method.coefficients, Rosenbrock)


@pytest.mark.parametrize("method", TABLEAUX.values(), ids=TABLEAUX)
def test_every_order_condition_up_to_the_claimed_order_holds(method: Tableau) -> None:
    assert method.defects(all_trees(method.order)) == []


@pytest.mark.parametrize("method", TABLEAUX.values(), ids=TABLEAUX)
def test_claiming_a_higher_order_is_refused(method: Tableau) -> None:
    with raises(ValueError, "solution"):
        replace(method, order=method.order + 1)
    with raises(ValueError, "dense output"):
        replace(method, dense_order=method.dense_order + 1)


def test_a_wrong_coefficient_of_the_method_is_refused() -> None:
    spoiled = (*DOPRI5.a[:3], (Fraction(44, 45), Fraction(-56, 15), Fraction(33, 9)), *DOPRI5.a[4:])
    with raises(ValueError, "row 3 of a", "node"):
        replace(DOPRI5, a=spoiled)


def test_a_wrong_weight_with_the_right_sum_is_refused() -> None:
    weights = (Fraction(1, 6), Fraction(1, 6), Fraction(1, 2), Fraction(1, 6))
    with raises(ValueError, "solution"):
        replace(RK4, a=(*RK4.a[:4], weights))


def test_a_wrong_error_weight_is_refused() -> None:
    weights = (Fraction(1, 15), Fraction(0), Fraction(-3, 10), Fraction(7, 30), Fraction(0), Fraction(0))
    with raises(ValueError, "error estimate"):
        replace(KUTTA_MERSON, errors=(replace(KUTTA_MERSON.errors[0], weights=weights),))


def test_a_wrong_dense_weight_is_refused() -> None:
    row = DOPRI5.dense[0]
    with raises(ValueError, "dense output"):
        replace(DOPRI5, dense=((row[0] + Fraction(1, 1000), *row[1:]),))


@pytest.mark.parametrize(("row", "column"), [(6, 5), (11, 3), (12, 8), (14, 13)])
def test_a_wrong_digit_of_dop853_is_refused(row: int, column: int) -> None:
    method = TABLEAUX["dop853"]
    digits = [list(values) for values in method.a]
    digits[row][column] += Fraction(1, 10**15)
    with raises(ValueError, "coefficients"):
        replace(method, a=tuple(tuple(values) for values in digits))


def test_an_implicit_row_is_refused() -> None:
    with raises(ValueError, "row 1 of a", "explicit"):
        replace(RK4, a=(RK4.a[0], (Fraction(1, 4), Fraction(1, 4)), *RK4.a[2:]))


def test_literals_are_exact() -> None:
    assert literal(Fraction(44, 45)) == "KG_C(44.0) / KG_C(45.0)"
    assert literal(Fraction(3, 8)) == "KG_C(0.375)"
    assert literal(Fraction(2)) == "KG_C(2.0)"
    text = "0.0526001519587677318785587544488"
    assert literal(Fraction(text)) == f"KG_C({text})"


@pytest.mark.parametrize("method", TABLEAUX.values(), ids=TABLEAUX)
def test_numerators_and_denominators_are_exact_doubles(method: Tableau) -> None:
    """A quotient in C is rounded once only if both of its integers are doubles."""
    rows = (*method.a, *method.dense, *(estimate.weights for estimate in method.errors), method.c)
    for value in (abs(x) for row in rows for x in row):
        for digits in re.findall(r"KG_C\((\d+)\.0\)", literal(value)):
            assert int(digits) < 2**53


def test_headers_are_complete_and_deterministic() -> None:
    headers = runtime_headers()
    expected = {
        "kg_base.h",
        "kg_linalg.h",
        "kg_methods.h",
        "kg_model.h",
        "kg_ode.h",
        "kg_steppers.h",
        "kg_tableaux.h",
    }
    assert expected <= set(headers)
    assert list(headers) == sorted(headers)
    for text in headers.values():
        for name in re.findall(r'#include "(.*)"', text):
            assert name in headers
        assert text.endswith("#endif\n")
    headers.clear()
    assert runtime_headers()


def test_templates_are_strict() -> None:
    with pytest.raises(UndefinedError):
        render("headers/tableaux.h.jinja")
    with pytest.raises(TemplateNotFound):
        render("missing.jinja")
    assert environment() is environment()
