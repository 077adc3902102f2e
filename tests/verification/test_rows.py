"""A constraint of the description that has no row in the equations fails the verification."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import pytest
from systems import initial, model_of

from kanegen.derivation import derive
from kanegen.verification import rows
from kanegen.verification.report import judge
from kanegen.verification.start import draw_states
from kanegen.verification.subject import DIGITS, EXACT, Subject


def checked(equations, states):
    subject = Subject(equations, None, None, states)
    with mpmath.workdps(DIGITS):
        return judge("rows of constraints", EXACT, lambda worst: rows.described(subject, worst))


@pytest.mark.parametrize("name", ["constrained_particle", "slider_crank", "rolling_disk"])
def test_rows_of_examples_are_those_of_their_descriptions(name):
    equations = derive(model_of(name))
    assert checked(equations, draw_states(equations, 4, 0, initial(name))).ok


def test_lost_row_is_found(monkeypatch):
    """As it was lost by an absolute threshold; ``kg.verify`` compared only what was left."""
    equations = derive(model_of("slider_crank"))
    states, constraints = draw_states(equations, 4, 0, initial("slider_crank")), equations.constraints
    monkeypatch.setitem(vars(equations), "constraints", replace(constraints, rows=constraints.rows[1:]))
    check = checked(equations, states)
    assert check.ok is False
    assert check.deviation == pytest.approx(1.0)
    assert str(equations.model.holonomic_constraints[0]) in check.note
