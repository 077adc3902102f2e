"""Kernels are compiled in several files."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from systems import example, solver_for
from tolerances import SOLVE

import kanegen as kg
from kanegen.cli.bench.compiled import States, TimedFunction, timed_library
from kanegen.codegen.kernel import program_of
from kanegen.codegen.pieces import pieces
from kanegen.codegen.sources import Sources
from kanegen.codegen.units import MOST_ANGLES, units
from kanegen.graph import Graph
from kanegen.pipeline import sources_of
from kanegen.program.passes.lower import FEWEST_GATHERED
from kanegen.program.passes.lowered import lowered_program
from kanegen.program.records import Block, Function, Program, Store, Symbols


@pytest.fixture
def short_functions_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short kernels count as long ones."""
    monkeypatch.setattr("kanegen.program.passes.schedule.LONGEST", 60)
    monkeypatch.setattr("kanegen.program.passes.schedule.PART", 20)
    monkeypatch.setattr("kanegen.codegen.pieces.LONG", 2000)


def texts_of(sources: Sources, count: int) -> tuple[str, ...]:
    """The kernel in at most ``count`` files, none if it is compiled as one."""
    program = program_of(sources)
    assert program is not None
    return pieces(program, sources.digest, count).texts


def chain() -> Any:
    """A model that no other test compiles."""
    return example("spatial_chain").model(3).changed(name="chain in pieces")


@pytest.mark.usefixtures("short_functions_are_divided")
def test_a_kernel_in_pieces_has_the_same_values() -> None:
    model, rng = chain(), np.random.default_rng(0)
    assert len(texts_of(sources_of(model, functions=("rhs",)), 3)) == 3
    compiled, reference = (
        kg.build(model, functions=("rhs",)),
        kg.build(model, functions=("rhs",), backend="interpreted"),
    )
    for _ in range(3):
        q, u = rng.uniform(-1.0, 1.0, (2, 6))
        np.testing.assert_allclose(compiled.rhs(0.0, q, u)[1], reference.rhs(0.0, q, u)[1], rtol=1e-11)


@pytest.mark.usefixtures("short_functions_are_divided")
def test_each_part_is_in_one_piece() -> None:
    sources = sources_of(chain(), functions=("rhs",))
    text = sources.text("chain_in_pieces.c")
    program = program_of(sources)
    assert program is not None
    assert pieces(program, sources.digest, 1).has_long_functions
    parts = text.count("static KG_APART")
    for count in (2, 4, 100):
        texts = texts_of(sources, count)
        assert 2 <= len(texts) <= count
        assert sum(piece.count("_part_") for piece in texts) == text.count("_part_") + len(texts) * parts
        assert [piece.count("kg_get_model(void)\n{") for piece in texts] == [1] + [0] * (len(texts) - 1)
    assert not texts_of(sources, 1)


# -- functions that only the user calls ------------------------------------------------------------------------------

CRANK = "slider_crank"


def crank() -> tuple[kg.Solver, Sources]:
    solver = solver_for(CRANK)
    return solver, solver.sources


def test_functions_of_integrations_stay_in_the_first_piece() -> None:
    _, sources = crank()
    for count in (1, 2, 4):
        first, *others = texts_of(sources, count)
        assert min(count, 2) <= 1 + len(others) <= count
        # Only the right-hand side calls rhs_general, which the compiler inlines.
        for name in ("rhs", "rhs_general", "rhs_stabilized", "position_level"):
            assert f"int evaluate_{name}(KG_ARGUMENTS)\n{{" in first
        # Sines are inlined there, and nowhere else.
        assert "kg_sincos(2, angle, sine, cosine);" in first
        assert not any("kg_sincos(" in piece for piece in others)
        for name in ("Q", "energy", "multipliers"):
            definition = f"int evaluate_{name}(KG_ARGUMENTS)\n{{"
            assert sum(piece.count(definition) for piece in (first, *others)) == 1


def test_functions_that_only_the_user_calls_have_the_same_bits_in_pieces() -> None:
    solver, sources = crank()
    assert len(texts_of(sources, 2)) == 2
    library = timed_library(solver.sources.files, solver.sources.kernel)
    rng = np.random.default_rng(3)
    q, u = (np.ascontiguousarray(rng.uniform(0.5, 1.0, (1, 3))) for _ in "qu")
    states = States(0.0, q, u, np.zeros(0), np.zeros(0), np.array(list(solver.parameters.values())))
    for name in ("rhs", "Q", "V", "energy", "multipliers", "constraint_force"):
        whole = TimedFunction(library, name, states).evaluate(0)
        found = getattr(solver, name)(0.0, q[0], u[0])
        parts = found if isinstance(found, tuple) else (found,)
        np.testing.assert_array_equal(np.concatenate([np.ravel(part) for part in parts]), whole)


# -- functions that are called where a guard does not hold ------------------------------------------------------------


def test_code_for_rare_states_is_short() -> None:
    """It calls sines and cosines; runtime kernels that no other function of the file calls are optimized for size."""
    _, sources = crank()
    first, second = texts_of(sources, 2)
    bodies = {
        body[1]: body[0] for body in re.finditer(r"int evaluate_(\w+)\(KG_ARGUMENTS\)\n.*?^}", first, re.M | re.S)
    }
    assert "kg_sincos_of_2(" in bodies["b_bare"]  # which rhs_general calls
    assert "kg_sincos(2," in bodies["rhs"]
    assert "kg_constrained_solve(" in bodies["rhs_general"]
    headers = re.findall(r'^(?:#include "kg|#pragma GCC (?:opt|p)).*', first, re.M)
    assert headers == [
        '#include "kg_sincos.h"',
        "#pragma GCC push_options",
        '#pragma GCC optimize("Os")',
        '#include "kg_linalg.h"',
        "#pragma GCC pop_options",
    ]
    assert "optimize" not in second


@pytest.mark.parametrize("form", ["canonical", "pseudoinverse"])
def test_kernels_of_frequent_functions_are_not_optimized_for_size(form: str) -> None:
    texts = texts_of(sources_of(example(CRANK).model(), form=form), 2)
    assert len(texts) == 2
    assert not any("optimize" in piece for piece in texts)


def test_rare_states_have_the_same_bits_in_pieces() -> None:
    """With the rod across the guide, the chosen dependent speeds are singular, and a guard calls the general code."""
    solver, _ = crank()
    library = timed_library(solver.sources.files, solver.sources.kernel)
    q, u = np.array([[0.3, np.pi / 2, 0.2]]), np.array([[1.0, -2.0, 0.5]])
    states = States(0.0, q, u, np.zeros(0), np.zeros(0), np.array(list(solver.parameters.values())))
    whole = TimedFunction(library, "rhs", states).evaluate(0)
    qdot, udot = solver.rhs(0.0, q[0], u[0])
    np.testing.assert_array_equal([*qdot, *udot], whole)
    Q, P, J, b = (getattr(solver, name)(0.0, q[0], u[0]) for name in "QPJb")
    bordered = np.block([[Q, J.T], [J, np.zeros((2, 2))]])
    np.testing.assert_allclose(udot, np.linalg.solve(bordered, np.concatenate((P, b)))[:3], rtol=SOLVE)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8])
def test_any_number_of_angles_is_called(n: int) -> None:
    graph = Graph()
    sines = sum((graph.apply("sin", graph.input("q", k)) for k in range(n)), graph.zero)
    function = Function("total", (1,), (Block("", (Store("out", 0, sines),)),), {}, "sum of sines")
    symbols = Symbols(tuple(f"q{k}" for k in range(n)), (), (), (), ())
    (unit,) = units(lowered_program(Program("sines", graph, symbols, (function,))))
    text = unit.definition("", calls_sines=True)
    calls = re.findall(r"kg_sincos_of_(\d)\((.*?), sine \+ (\d), cosine \+ (\d)\);", text)
    gathered = n if n >= FEWEST_GATHERED else 0
    assert [f"angle[{k}]" for k in range(gathered)] == [angle for call in calls for angle in call[1].split(", ")]
    assert [int(call[2]) for call in calls] == list(range(0, gathered, MOST_ANGLES))
    assert unit.called_angles == {int(call[0]) for call in calls}
