"""Contacts of all kinds in one sequence: their order is that of the rows, and messages count along it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from contact_models import ball
from messages import raises, says
from tolerances import SOLVE

import kanegen as kg

x, z, u, w = me.dynamicsymbols("x z u w")
M, G, MU, BRAKE = 2.0, 10.0, 0.3, 4.0
"""Mass, kg; gravity, m/s^2; friction at the floor; friction of the brake, N."""
SLOWING = MU * G + BRAKE / M
CAUGHT_AT = 0.05


@cache
def braked() -> kg.Solver:
    """A particle that slides on the floor against a brake, and is caught at x = 0.05 m; the latch comes first."""
    model = ball(
        contacts=(
            kg.Latch("catch", u),
            kg.Friction(u, kg.Coulomb(0.5), BRAKE / 0.5, "brake"),
            kg.Unilateral(z, friction=kg.Coulomb(MU), slip=u, name="floor"),
        ),
        events=[kg.Event("caught", x - CAUGHT_AT, direction=1, impose="catch")],
    )
    return kg.build(model, functions=["rhs"]).with_parameters(m=M, g=G)


def test_rows_and_forces_keep_the_order_of_the_sequence() -> None:
    solver = braked()
    assert solver.description.contacts.rows == ("catch", "brake slip", "floor", "floor slip")
    found = solver.contacts(0.0, [0.0, 0.0], [1.0, 0.0])
    np.testing.assert_allclose(found.forces, [0.0, -BRAKE, M * G, -MU * M * G], rtol=SOLVE, atol=SOLVE)


def test_events_find_a_latch_that_is_not_last() -> None:
    """Until it is caught the motion is ``x = t - SLOWING t^2 / 2``; then the latch holds it."""
    solution = braked().integrate((0.0, 1.0), [0.0, 0.0], [1.0, 0.0], rtol=1e-10, atol=1e-12)
    caught = next(event for event in solution.events if event.kind == "imposed")
    # Times of events are located to the accuracy of the run.
    assert caught.t == pytest.approx((1 - np.sqrt(1 - 2 * SLOWING * CAUGHT_AT)) / SLOWING, abs=1e-9)
    np.testing.assert_allclose(solution.u[-1], 0.0, atol=1e-9)
    np.testing.assert_allclose(solution.q[-1], [CAUGHT_AT, 0.0], atol=1e-9)


def test_names_are_counted_by_kind() -> None:
    friction = kg.Friction(u, kg.Coulomb(0.1), 1)
    model = ball(contacts=[friction, z, kg.Latch("hook", x), kg.Friction(w, kg.Coulomb(0.1), 1), kg.Unilateral(x)])
    assert [contact.name for contact in model.resolved_contacts] == [
        "friction 1", "contact 1", "hook", "friction 2", "contact 2",
    ]  # fmt: skip


def test_an_entry_that_cannot_be_read_does_not_shift_the_numbers_of_others() -> None:
    with pytest.raises(kg.ModelError) as caught:
        ball(contacts=["floor", kg.Bilateral(z), kg.Latch("hook", sm.Integer(2)), kg.Unilateral(z, kg.Restitution(2))])
    expected = (
        ("contacts[0]", "'floor'"),
        ("contacts[1]", "Bilateral("),
        ("contacts[2]", "gap", "2"),
        ("contacts[3]",),
    )
    assert len(caught.value.problems) == len(expected)
    for names, problem in zip(expected, caught.value.problems, strict=True):
        says(problem, *names)
    says(caught.value.problems[0], "kg.Unilateral", "kg.Friction", "kg.Latch")


def test_contacts_must_be_a_sequence_of_records() -> None:
    with raises(kg.ModelError, "contacts", "Unilateral(", "list"):
        ball(contacts=kg.Unilateral(z))
