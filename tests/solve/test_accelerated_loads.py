"""Loads that depend on accelerations in every form, against SymPy's residuals ``Fr + Fr*`` and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from accelerated_models import CONSTRAINTS, LOADS, SYMMETRIC, chain, chain_solver
from tolerances import EVALUATION

from kanegen.forms import FORMS
from kanegen.program.functions.right_sides import RIGHT_SIDES

GENERAL = [form.name for form in FORMS.values() if not form.symmetric and not form.momenta]


def forms_of(kind: str) -> list[str]:
    forms = list(RIGHT_SIDES) if kind in SYMMETRIC else GENERAL
    return [form for form in forms if not (form == "canonical" and kind == "squared")]


CASES = [(kind, constraint, form) for kind in LOADS for constraint in CONSTRAINTS for form in (*forms_of(kind), "auto")]


@pytest.mark.parametrize(("kind", "constraint", "form"), CASES)
def test_accelerations_satisfy_sympys_equations(kind: str, constraint: str | None, form: str) -> None:
    system, solver = chain(kind, constraint), chain_solver(kind, constraint, form, "rhs")
    for t, q, u in system.states:
        qdot, udot = solver.rhs(t, q, u)
        expected = system.udot(t, q, u)
        assert np.array_equal(qdot, u)
        assert np.abs(udot - expected).max() < EVALUATION * (1 + np.abs(expected).max())
