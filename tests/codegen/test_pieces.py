"""Kernels are compiled in several files."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from systems import example, solver_for
from tolerances import SOLVE

import kanegen as kg
from kanegen.bench.timing import States, TimedFunction, timed_library
from kanegen.codegen.pieces import _with_called_sines, has_long_functions, pieces
from kanegen.pipeline import sources_of


@pytest.fixture
def short_functions_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short kernels count as long ones."""
    monkeypatch.setattr("kanegen.program.passes.schedule.LONGEST", 60)
    monkeypatch.setattr("kanegen.program.passes.schedule.PART", 20)
    monkeypatch.setattr("kanegen.codegen.pieces.LONG", 2000)


def chain() -> Any:
    """A model that no other test compiles."""
    return example("spatial_chain").model(3).changed(name="chain in pieces")


@pytest.mark.usefixtures("short_functions_are_divided")
def test_a_kernel_in_pieces_has_the_same_values() -> None:
    model, rng = chain(), np.random.default_rng(0)
    texts = pieces(sources_of(model, functions=("rhs",)).text("chain_in_pieces.c"), 3)
    assert len(texts) == 3
    compiled, reference = (
        kg.build(model, functions=("rhs",)),
        kg.build(model, functions=("rhs",), backend="interpreted"),
    )
    for _ in range(3):
        q, u = rng.uniform(-1.0, 1.0, (2, 6))
        np.testing.assert_allclose(compiled.rhs(0.0, q, u)[1], reference.rhs(0.0, q, u)[1], rtol=1e-11)


@pytest.mark.usefixtures("short_functions_are_divided")
def test_each_part_is_in_one_piece() -> None:
    text = sources_of(chain(), functions=("rhs",)).text("chain_in_pieces.c")
    assert has_long_functions(text)
    parts = text.count("static KG_APART")
    for count in (2, 4, 100):
        texts = pieces(text, count)
        assert 2 <= len(texts) <= count
        assert sum(piece.count("_part_") for piece in texts) == text.count("_part_") + len(texts) * parts
        assert [piece.count("kg_get_model(void)\n{") for piece in texts] == [1] + [0] * (len(texts) - 1)
    assert pieces(text, 1) == [text]


# -- functions that only the user calls ------------------------------------------------------------------------------

CRANK = "slider_crank"


def crank() -> tuple[kg.Solver, str]:
    solver = solver_for(CRANK)
    return solver, solver.sources.text(solver.sources.kernel)


def test_functions_of_integrations_stay_in_the_first_piece() -> None:
    _, text = crank()
    for count in (1, 2, 4):
        first, *others = pieces(text, count)
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
    solver, text = crank()
    assert len(pieces(text, 2)) == 2
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
    _, text = crank()
    first, second = pieces(text, 2)
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
    text = sources_of(example(CRANK).model(), form=form).text(f"{CRANK}.c")
    assert len(pieces(text, 2)) == 2
    assert not any("optimize" in piece for piece in pieces(text, 2))


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
    sines: set[int] = set()
    body = _with_called_sines(f"kg_sincos({n}, angle, sine, cosine);", sines)
    assert [f"angle[{k}]" for k in range(n)] == re.findall(r"angle\[\d+\]", body)
    assert sum(int(k) for k in re.findall(r"kg_sincos_of_(\d)", body)) == n
    assert sines == {int(k) for k in re.findall(r"kg_sincos_of_(\d)", body)}
