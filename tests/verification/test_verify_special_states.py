"""The self-checks where every state has zeros, right and straight angles, equal coordinates or zero speeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from systems import SYSTEMS, example_names, initial, model_of, names

import kanegen as kg
from kanegen.derivation.states import State
from kanegen.pipeline import generate
from kanegen.program.options import BuildOptions
from kanegen.verification import compiled, start, subject

VARIANTS = [(name, options) for name, options in SYSTEMS if options]
EVERY = [*((name, {}) for name in example_names()), *VARIANTS]
CASES = [
    pytest.param(*case, id=name, marks=pytest.mark.campaign) for case, name in zip(EVERY, names(EVERY), strict=True)
]


@pytest.fixture(autouse=True)
def _special_states_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "SPECIAL_PERIOD", 1)
    monkeypatch.setattr(start, "SPECIAL_DRAWS", 400)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_every_example_agrees_with_itself_at_special_states(name: str, options: dict[str, Any]) -> None:
    kg.verify(model_of(name, **options), start=initial(name, **options), forms=())


def test_rounding_of_equal_terms_counts_as_rounding() -> None:
    """A row of J u' = b that is 0.0 in C and 2e-15 in 50 digits failed: in fewer digits, both squares round alike."""
    model = model_of("appell_hamel", constraints="nonlinear")
    q = np.array([np.pi, np.pi, np.pi / 2, -np.pi / 2, 56.858407346410204])
    u = np.array([0.0, 2.6697185516, 0.0, 2.6697185516, -1.3348592758])
    p = np.array(list(model.parameters.values()), dtype=float)
    state = State(1.6, q, u, np.array([]), p, np.zeros(6), np.zeros(5), consistent=True)
    options = BuildOptions.of("auto", ("residuals", "b"))
    equations = kg.derive(model)
    solver = kg.build(model, functions=options.functions)
    own = subject.Subject(equations, generate(equations, options).program, solver, [state])
    check, _ = compiled.interpreters(own)
    assert check.ok, check.note
