"""Kernels in double and in float: tolerances, literals, and numbers that float cannot represent."""

from __future__ import annotations

import copy
import pickle
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import ccompile
import messages
import numpy as np
import pytest
from ccompile import Compiler, with_each_c_compiler
from programs import DIGEST, pendulum, solver_program, stores

from kanegen.codegen.kernel import emit_sources
from kanegen.codegen.sources import Sources, runtime_headers
from kanegen.codegen.text import literal
from kanegen.derivation.algebra import PIVOT_THRESHOLD
from kanegen.errors import BuildError
from kanegen.graph.nodes import Graph
from kanegen.precision import DOUBLE, FLOAT, Precision, Tolerance
from kanegen.program.passes.lower import hoist
from kanegen.program.records import Block, Function, Guard, Program, Symbols

LITERAL = re.compile(r"KG_C\(\s*-?([0-9][^()]*)\)|KG_BY_PRECISION\([0-9][^,()]*,\s*([^()]*)\)")


def literals(text: str) -> list[float]:
    """The magnitudes of all literals of a C text in float precision."""
    return [abs(float(match[1] or match[2])) for match in LITERAL.finditer(text)]


def test_no_literal_of_the_runtime_leaves_the_range_of_float() -> None:
    numbers = np.array([x for text in runtime_headers().values() for x in literals(text) if x])
    assert len(numbers) > 900
    with np.errstate(all="raise"):
        rounded = numbers.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(rounded, numbers, rtol=2.0**-24)


def guarded(fraction: float) -> Program:
    """1/q where q exceeds this fraction of p, twice: as such, and times a constant."""
    g = Graph()
    q, p = g.input("q", 0), g.input("p", 0)
    small = g.apply("lt", g.const(fraction) * p, q)
    smaller = g.apply("lt", g.const(Fraction(3, 2)) * (g.const(fraction) * p), q)
    steps = (
        Guard(small, None, ("q exceeds ", fraction, " of p")),
        Guard(smaller, None),
        Block("", stores("out", [1 / q])),
    )
    functions = (Function("rhs", (1,), steps, {}, "u'"),)
    return hoist(Program("guarded", g, Symbols(("q",), (), (), ("p",), ()), functions))


@pytest.mark.parametrize(("precision", "value", "product"), [(DOUBLE, 1e-13, 1.5e-13), (FLOAT, 1e-5, 1.5e-5)])
def test_tolerances_have_a_value_for_each_precision(precision: Precision, value: float, product: float) -> None:
    sources = emit_sources(replace(guarded(PIVOT_THRESHOLD), precision=precision), digest=DIGEST)
    text = sources.text(sources.kernel)
    assert value in literals(text)
    assert min(abs(x - product) for x in literals(text)) < 1e-12 * product
    assert f"q exceeds {value:g} of p" in text
    assert len(literals(text)) == len(literals(emit_sources(guarded(1e-13), digest=DIGEST).text(sources.kernel)))


def test_products_of_tolerances_are_tolerances() -> None:
    tolerance = Tolerance(1e-9, 1e-5)
    for product, double, single in (
        (tolerance * tolerance, 1e-18, 1e-10),
        (tolerance * Fraction(1, 2), 5e-10, 5e-6),
        (3 * tolerance, 3e-9, 3e-5),
    ):
        assert product == pytest.approx(double, rel=1e-15)
        assert product.single == pytest.approx(single, rel=1e-15)
    np.testing.assert_array_equal(tolerance * np.ones(2), [1e-9, 1e-9])
    assert pickle.loads(pickle.dumps(tolerance)).single == copy.copy(tolerance).single == 1e-5
    assert FLOAT.value(tolerance) == 1e-5
    assert DOUBLE.value(tolerance) == 1e-9


def float_kernel(program: Program) -> Sources:
    return emit_sources(replace(program, precision=FLOAT), digest=DIGEST)


@with_each_c_compiler
@pytest.mark.parametrize("program", [pendulum, solver_program])
def test_compilers_accept_float_kernels_without_a_promotion(
    program: object, compiler: Compiler, tmp_path: Path
) -> None:
    assert callable(program)
    sources = float_kernel(program())
    ccompile.compile_source(
        compiler,
        sources.text(sources.kernel),
        tmp_path / "k.so",
        *("-shared", "-fPIC", "-DKG_FLOAT", "-Wdouble-promotion", "-Wfloat-conversion"),
        headers={name: text for name, text in sources.files.items() if name.endswith(".h")},
    )


@pytest.mark.parametrize("number", [1e-50, Fraction(1, 10**40), 1e39, 10**60])
def test_constants_that_float_cannot_represent_are_refused(number: float) -> None:
    g = Graph()
    q = g.input("q", 0)
    functions = tuple(Function(name, (1,), (Block("", stores("out", [g.const(number) * q])),), {}, "") for name in "fg")
    program = hoist(Program("constants", g, Symbols(("q",), (), (), (), ()), functions))
    emit_sources(program, digest=DIGEST)
    with messages.raises(BuildError, str(number), "f, g", "float", "1.18e-38", "3.4e+38"):
        float_kernel(program)
    with messages.raises(BuildError, str(number), "float"):
        literal(number, FLOAT)


def test_doubles_may_be_of_any_size() -> None:
    for number in (5e-324, 1.7e308, 0.0, float("inf"), float("nan")):
        assert DOUBLE.holds(number)
    with messages.raises(BuildError, "parameter m", "double", "1.8e+308"):
        DOUBLE.require(10**400, "the parameter m")
