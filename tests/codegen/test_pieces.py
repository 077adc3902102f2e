"""Long kernels are compiled in several files; here short ones count as long."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from systems import example

import kanegen as kg
from kanegen.codegen.pieces import has_long_functions, pieces
from kanegen.pipeline import sources_of


@pytest.fixture(autouse=True)
def short_functions_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kanegen.program.passes.schedule.LONGEST", 60)
    monkeypatch.setattr("kanegen.program.passes.schedule.PART", 20)
    monkeypatch.setattr("kanegen.codegen.pieces.LONG", 2000)


def chain() -> Any:
    """A model that no other test compiles."""
    return example("spatial_chain").model(3).changed(name="chain in pieces")


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
