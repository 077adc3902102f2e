"""Names and numbers in C: what a user writes cannot end a comment, a line or a string."""

from __future__ import annotations

import ast
import math
import re
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st
from messages import raises
from programs import HOSTILE

from kanegen.codegen.text import comment, literal, stem, string
from kanegen.errors import BuildError

texts = st.one_of(
    st.text(alphabet=st.characters(blacklist_characters="\0")),
    st.text(alphabet='*/\\?"\n\r%ab0'),
    st.sampled_from(HOSTILE),
)


@given(texts)
@example("*/*/")
@example("/*/")
@example("???/\n")
def test_comments_hold_any_name(text: str) -> None:
    inside = comment(text)
    assert re.fullmatch(r"[ -~]*", inside)
    assert "*/" not in inside
    assert "/*" not in inside
    assert "//" not in inside
    assert "??" not in inside


def test_harmless_names_stay_readable() -> None:
    name = r"q_1(t) [m/s^2] \dot{x} * 3"
    assert comment(name) == name


@given(texts)
@example("\u00e91")
@example("?" * 3)
def test_strings_hold_any_name(text: str) -> None:
    source = string(text)
    assert re.fullmatch(r'"[ -~]*"', source)
    assert "??" not in source
    # Octal escapes mean the same in a Python bytes literal.
    value = ast.literal_eval("b" + source)
    assert value.decode("utf-8") == text.encode("utf-8", "backslashreplace").decode("utf-8")


def test_a_name_with_nul_is_refused() -> None:
    with raises(BuildError, "NUL"):
        string("a\0b")


@given(st.text())
def test_stems_are_identifiers(text: str) -> None:
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", stem(text))


def test_stems_are_short_enough_for_names_of_files() -> None:
    assert stem("long name " * 1000).startswith("long_name_long_name")
    assert len(stem("long name " * 1000)) <= 80


def test_stems_resemble_names() -> None:
    assert [stem(name) for name in ("four bar", "4-bar", "double */ x", "")] == [
        "four_bar",
        "model_4_bar",
        "double_x",
        "model",
    ]


def read(text: str) -> float:
    match = re.fullmatch(r"(-?)KG_C\(([0-9.e+-]+)\)", text)
    assert match is not None
    number = match[2]
    assert "." in number or "e" in number, "an integer literal would divide as an integer"
    return -float(number) if match[1] else float(number)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_literals_round_trip(value: float) -> None:
    result = read(literal(value))
    assert result == value
    assert math.copysign(1.0, result) == math.copysign(1.0, value)


@given(st.fractions())
@example(Fraction(1, 3))
@example(Fraction(10**400 + 1, 3 * 10**400))
def test_fractions_are_rounded_correctly(value: Fraction) -> None:
    result = Fraction(read(literal(value)))
    neighbors = [Fraction(math.nextafter(float(value), side)) for side in (-math.inf, math.inf)]
    assert all(abs(result - value) <= abs(other - value) for other in neighbors)


def test_numbers_no_double_holds() -> None:
    assert literal(math.inf) == "(kg_real)HUGE_VAL"
    assert literal(-math.inf) == "-(kg_real)HUGE_VAL"
    assert literal(math.nan) == "(kg_real)NAN"
    with raises(BuildError, "double"):
        literal(10**400)
