"""All forms of the equations against each other at 100 random states of every bilateral example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from systems import NAMES, SYSTEMS, built_in_form, initial
from tolerances import FORMS_AGREE

from kanegen.program.functions.right_sides import RIGHT_SIDES

COUNT = 100


@pytest.mark.parametrize(("name", "options"), SYSTEMS, ids=NAMES)
def test_all_forms_agree_at_random_states(name: str, options: dict[str, Any]) -> None:
    """States around the start, off the manifold of the constraints, t != 0."""
    first, *others = (built_in_form(name, form, **options) for form in RIGHT_SIDES)
    rng, start = np.random.default_rng(100), initial(name, **options)
    for _ in range(COUNT):
        t = rng.uniform(0.5, 2.0)
        q = start["q"] + rng.uniform(-0.4, 0.4, len(start["q"]))
        u = start["u"] + rng.uniform(-1.0, 1.0, len(start["u"]))
        qdot, udot = first.rhs(t, q, u)
        size = 1.0 + np.abs(udot).max()
        for solver in others:
            other_qdot, other_udot = solver.rhs(t, q, u)
            np.testing.assert_allclose(other_qdot, qdot, rtol=1e-14)  # rounding: u/s in one form, u*(1/s) in another
            assert np.abs(other_udot - udot).max() < FORMS_AGREE * size
