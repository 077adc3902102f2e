"""What is said where no forces or impulses satisfy the laws of contacts: which ones, and why."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from contact_rows import CLOSED, IMPACT, NO_MODE, RHS, SETTLE, Case, Contact, runtime_of_session
from hybrid_models import painleve, sliding_rod
from messages import raises

import kanegen as kg
from kanegen.errors import SolveError
from kanegen.solve.solution import IntegrationError, Outcome

TIME = me.dynamicsymbols._t


@cache
def press() -> kg.Solver:
    """A particle on a rough floor between a rough wall at x = 0 and a press at x = 1 - t."""
    x, y, v, w = me.dynamicsymbols("x y v w")
    mu = sm.Symbol("mu")
    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v * N.x + w * N.y)
    model = kg.Model(
        name="press",
        frame=N,
        coordinates=(x, y),
        speeds=(v, w),
        kinematics=(x.diff(TIME) - v, y.diff(TIME) - w),
        bodies=(me.Particle("P", P, sm.Integer(1)),),
        gravity=-10 * N.y,
        contacts=(
            kg.Unilateral(y, friction=kg.Coulomb(mu, mu), slip=v, name="floor"),
            kg.Unilateral(x, friction=kg.Coulomb(mu, mu), slip=w, name="wall"),
            kg.Unilateral(1 - TIME - x, name="press"),
        ),
    )
    return kg.build(model)


@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_a_squeezed_body_names_the_obstacles_and_no_friction(mu: float) -> None:
    pressed = press().with_parameters(mu=mu)
    with raises(IntegrationError, "'wall'", "'press'", "contradict") as run:
        pressed.integrate((0.0, 2.0), [0.5, 0.0], [0.0, 0.0])
    assert run.value.solution.status is Outcome.NO_MODE
    assert run.value.solution.last[0] == pytest.approx(1.0, abs=1e-9)
    with raises(SolveError, "'wall'", "'press'", "contradict") as state:
        pressed.contacts(1.0, [0.0, 0.0], [0.0, 0.0])
    for text in (str(run.value), str(state.value)):
        assert "friction" not in text
        assert "Painleve" not in text
        assert "floor" not in text


def test_painleves_rod_blames_friction() -> None:
    with raises(IntegrationError, "'tip'", "friction"):
        painleve().integrate((0.0, 0.01), *sliding_rod(0.0))


def test_only_what_contradicts_is_in_conflict() -> None:
    """Rows that no impulse can satisfy together among others that have nothing to do with them."""
    rows = (Contact([0.0, 1.0, 0.0]), Contact([1.0, 0.0, 0.0], normal_rate=-1.0))
    rows += (Contact([0.0, 0.0, 1.0]), Contact([-1.0, 0.0, 0.0], normal_rate=-0.5))
    case = Case(np.diag([1.0, 2.0, 3.0]), [0.0, -1.0, -1.0], rows)
    struck = runtime_of_session()(case, IMPACT)
    assert (struck.status, struck.culprit) == (NO_MODE, 1)
    without = runtime_of_session()(case.at(contacts=rows[:3]), IMPACT | SETTLE | RHS)
    assert without.modes == [CLOSED] * 3
