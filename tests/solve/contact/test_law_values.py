"""Values of contact laws that come with parameters: refused where a run starts, with contact, value and parameter."""

from __future__ import annotations

from functools import cache

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from contact_models import ball
from messages import raises

import kanegen as kg

NAMES = "e decay_rate mu_s mu_k creep k c lam n D1 D2 load"
GOOD = dict(zip(NAMES.split(), (0.5, 9, 0.3, 0.2, 1e-3, 50, 1, 2, 1.5, 30, 100, 4), strict=True))
START = ([0.0, 1.0], [0.0, 0.0])


@cache
def solver() -> kg.Solver:
    """Every law with parameters for values; built without any."""
    e, decay_rate, mu_s, mu_k, creep, k, c, lam, n, D1, D2, load = sm.symbols(NAMES)
    x, z, u = me.dynamicsymbols("x z u")
    model = ball(
        contacts=[
            kg.Unilateral(z, kg.Restitution(e, decay_rate), kg.Coulomb(mu_s, mu_k, creep), u, "floor"),
            kg.Unilateral(3 - x, kg.KelvinVoigt(k / 2, c), name="spring"),
            kg.Unilateral(4 - x, kg.HuntCrossley(k, lam, n), name="pad"),
            kg.Unilateral(5 - x, kg.Stabilized(D1, D2), name="wall"),
            kg.Friction(u, kg.Coulomb(0.1), load * (2 - z), "brake"),
        ],
    )
    return kg.build(model, functions=["rhs", "Q", "momentum"]).with_parameters(m=1.0, g=9.81)


WRONG = [
    ({"e": 1.5}, ("'floor'", "e", "1.5", "0", "1")),
    ({"e": -0.1}, ("'floor'", "e", "-0.1", "0", "1")),
    ({"decay_rate": -1}, ("'floor'", "decay_rate", "-1")),
    ({"mu_k": -0.1}, ("'floor'", "mu_k", "-0.1")),
    ({"mu_k": 0.4}, ("'floor'", "mu_s - mu_k", "-0.1")),
    ({"creep": 0}, ("'floor'", "creep", "0")),
    ({"k": -4}, ("'spring'", "stiffness", "k/2", "-2", "'pad'", "k", "-4")),
    ({"c": -1}, ("'spring'", "damping", "c", "-1")),
    ({"lam": -1}, ("'pad'", "damping", "lam", "-1")),
    ({"n": 0.5}, ("'pad'", "exponent", "n", "0.5")),
    ({"D1": -30}, ("'wall'", "damping", "D1", "-30")),
    ({"D2": 0}, ("'wall'", "stiffness", "D2", "0")),
    ({"load": -4}, ("'brake'", "normal force", "load*(2 - z(t))", "-4")),
]


@pytest.mark.parametrize(("values", "names"), WRONG, ids=[next(iter(values)) for values, _ in WRONG])
def test_values_out_of_range_are_refused_where_a_run_starts(values: dict[str, float], names: tuple[str, ...]) -> None:
    wrong = solver().with_parameters({**GOOD, **values})
    with raises(kg.SolveError, "t = 0.0", *names):
        wrong.integrate((0.0, 0.1), *START)
    with raises(kg.SolveError, *names):
        wrong.contacts(0.0, *START)
    with raises(kg.SolveError, *names):
        wrong.impulse(0.0, *START, [0.0, 1.0])


def test_values_in_range_are_accepted_up_to_their_limits() -> None:
    limits = {"e": 1, "decay_rate": 0, "mu_s": 0.2, "k": 0, "c": 0, "lam": 0, "n": 1, "load": 0}
    for values in (GOOD, {**GOOD, **limits}):
        found = solver().with_parameters(values)
        assert found.integrate((0.0, 0.1), *START).success
        assert found.contacts(0.0, *START)["floor"].mode == "open"


def test_a_load_is_judged_at_the_start_of_the_run() -> None:
    with raises(kg.SolveError, "'brake'", "normal force", "-4"):
        solver().with_parameters(GOOD).integrate((0.0, 0.1), [0.0, 3.0], START[1])
