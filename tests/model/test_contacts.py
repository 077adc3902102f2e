"""Contacts, events and impulses of a model: refused input, what its messages name, and what records keep."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from contact_models import Sledge, ball
from messages import raises, says

import kanegen as kg
from kanegen.derivation import fingerprint, lower_model
from kanegen.program.assemble import assemble
from kanegen.program.options import BuildOptions

x, z, u, w = me.dynamicsymbols("x z u w")
e, mu = sm.symbols("e mu")
COULOMB = kg.Coulomb(0.3)
ONE = me.Point("one")


def floor(**changes: Any) -> kg.Unilateral:
    return kg.Unilateral(**{"gap": z, **changes})


def contact(**changes: Any) -> dict[str, Any]:
    return {"contacts": [floor(**changes)]}


def walls(*gaps: Any, **changes: Any) -> dict[str, Any]:
    return {"contacts": [floor(gap=gap, **changes) for gap in gaps]}


def event(guard: Any = z, **changes: Any) -> dict[str, Any]:
    return {"events": [kg.Event("knock", guard, **changes)]}


ONE_PROBLEM = [
    # laws
    (contact(law=kg.Restitution(1.2)), ("'contact 1'", "contacts[0]", "e", "1.2")),
    (contact(law=kg.Restitution(-0.1)), ("e", "-0.1", "0", "1")),
    (contact(law=kg.Restitution(e)) | {"parameters": {e: 2.0}}, ("e", "2")),
    (contact(law=kg.Restitution(0.5, decay_rate=-1)), ("decay_rate", "-1")),
    (contact(law=kg.Stabilized(-300, 100)), ("damping", "-300")),
    (contact(law=kg.Stabilized(300, 0)), ("stiffness", "0")),
    (
        contact(law=kg.Stabilized(300)),
        ("Stabilized(damping)", "z(t)", "positions", "Stabilized(damping, stiffness)"),
    ),
    (contact(gap=w, law=kg.Stabilized(3, 1)), ("speeds", "Stabilized(damping)")),
    (contact(gap=z.diff(), law=kg.KelvinVoigt(1, 1)), ("KelvinVoigt",)),
    (contact(law=kg.KelvinVoigt(-1, 1)), ("stiffness", "-1")),
    (contact(law=kg.KelvinVoigt(1, -1)), ("damping", "-1")),
    (contact(law=kg.HuntCrossley(1, -7.5e7)), ("damping", "-7.5e+07")),
    (contact(law=kg.HuntCrossley(1, 1, exponent=0.5)), ("exponent", "0.5")),
    (contact(law=kg.HuntCrossley(1, 1, quantity="twice")), ("quantity='twice'", "'force'", "'acceleration'")),
    (contact(law=kg.Restitution(u)), ("law", "'contact 1'", "u", "parameters")),
    (contact(law=0.5), ("contacts[0].law", "0.5", "kg.Stabilized", "kg.Restitution")),
    # gaps
    (contact(gap=sm.Symbol("h") - 1), ("gap", "h - 1", "coordinate")),
    (contact(gap=z + w.diff()), ("gap", "'contact 1'", "w'")),
    (contact(gap="z"), ("contacts[0].gap", "'z'", "SymPy")),
    ({"contacts": [("z", 1)]}, ("contacts[0]", "('z', 1)", "kg.Unilateral")),
    (contact(name=""), ("contacts[0]", "name", "''")),
    # where forces act
    (contact(applied_at=(ONE, x)), ("contacts[0].applied_at[0][0]", "one", "x(t)", "Vector")),
    # friction
    (contact(friction=COULOMB), ("friction", "0", "slip=(v1,)", "(v1, v2)")),
    (contact(friction=COULOMB, slip=(u, w, u + w)), ("friction", "3")),
    (contact(slip=(u,)), ("slip", "friction=kg.Coulomb(mu)")),
    (contact(friction=COULOMB, slip=(u**2,)), ("slip", "u(t)**2", "nonlinear")),
    (contact(friction=COULOMB, slip=(u * x.diff(),)), ("slip", "nonlinear")),
    (contact(friction=COULOMB, slip=(sm.Abs(u),)), ("slip", "nonlinear")),
    (contact(friction=COULOMB, slip=(sm.sqrt(u**2),)), ("slip", "nonlinear")),
    (contact(friction=COULOMB, slip=(x,)), ("slip", "x(t)", "speed")),
    (contact(friction=kg.Coulomb(-0.1), slip=u), ("mu_s", "-0.1")),
    (contact(friction=kg.Coulomb(0.2, 0.3), slip=u), ("mu_k", "0.3", "mu_s", "0.2")),
    (
        contact(friction=kg.Coulomb(mu, 2 * mu), slip=u) | {"parameters": {mu: 0.1}},
        ("mu_k", "0.2", "mu_s", "0.1", "Coulomb(mu_s, mu_k)"),
    ),
    (contact(friction=kg.Coulomb(0.3, creep=0), slip=u), ("creep", "0")),
    (contact(friction=0.3, slip=u), ("contacts[0]", "0.3", "kg.Coulomb")),
    ({"contacts": [kg.Friction((), COULOMB, 9.81)]}, ("'friction 1'", "contacts[0]", "0")),
    ({"contacts": [kg.Friction(u, COULOMB, z * w.diff())]}, ("normal force", "'friction 1'", "w'")),
    ({"contacts": [kg.Friction(u, COULOMB, -2)]}, ("normal force", "-2")),
    ({"contacts": [kg.Friction(u, COULOMB, kg.Bilateral(1))]}, ("gap", "1", "coordinate")),
    # names
    ({"contacts": [floor(name="a")] * 2}, ("contacts[0]", "contacts[1]", "'a'")),
    (contact(name="knock") | event(), ("contacts[0]", "events[0]", "'knock'")),
    ({"contacts": [kg.Latch("a", x - z), kg.Latch("a", x)]}, ("contacts[0]", "contacts[1]", "'a'")),
    # events
    (event(impose="hook"), ("'knock'", "events[0]", "impose='hook'", "latches")),
    (event(remove=("hok",)) | {"contacts": [kg.Latch("hook", x)]}, ("remove='hok'", "latches")),
    (
        event(impose="hook", remove="hook") | {"contacts": [kg.Latch("hook", x)]},
        ("'knock'", "events[0]", "'hook'"),
    ),
    (event(impose=[3]), ("events[0].impose", "3", "latches")),
    (event(terminal="no"), ("events[0].terminal", "'no'", "True", "False")),
    (event(guard="z"), ("events[0].guard", "'z'", "SymPy")),
    ({"contacts": [kg.Latch("hook", z, closed=1)]}, ("contacts[0].closed", "1", "True", "False")),
    (event(impulse="kick"), ("impulse='kick'", "impulses")),
    (event(direction=2), ("direction=2", "+1", "-1", "0")),
    (event(sm.Integer(3)), ("guard", "3", "sign")),
    (event(kg.Multiplier("wall")), ("Multiplier('wall', 0)", "contacts")),
    (event(kg.Multiplier("contact 1", 1)) | contact(), ("Multiplier('contact 1', 1)", "'contact 1'", "1")),
    (event(w.diff()), ("guard", "'knock'", "w'")),
    ({"events": [z]}, ("events[0]", "z(t)", "kg.Event")),
    (contact(gap=z + kg.Multiplier("contact 1")), ("Multiplier('contact 1', 0)", "guards", "outputs")),
    # impulses
    ({"impulses": {"blow": []}}, ("impulses['blow']",)),
    ({"impulses": {"blow": [(x, z)]}}, ("impulses['blow'][0]", "x(t)", "Point")),
    ({"impulses": [1]}, ("impulses", "[1]", "mapping")),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "names"), ONE_PROBLEM, ids=range(len(ONE_PROBLEM)))
def test_one_problem(changes: dict[str, Any], names: tuple[str, ...]) -> None:
    with pytest.raises(kg.ModelError) as caught:
        plain(**changes)
    assert len(caught.value.problems) == 1, caught.value.problems
    says(caught.value.problems[0], *names)


def plain(**changes: Any) -> kg.Model:
    return ball(**{"contacts": (), **changes})


def test_all_problems_together() -> None:
    with pytest.raises(kg.ModelError) as caught:
        plain(**contact(law=kg.Restitution(3), friction=kg.Coulomb(-1)), **event(impulse="kick"))
    assert len(caught.value.problems) == 4


UNDERIVABLE = [
    (event(sm.sin(x) ** 2 + sm.cos(x) ** 2 - 1), ("guard", "'knock'", "zero")),
    (contact(gap=sm.sin(x) ** 2 + sm.cos(x) ** 2), ("gap", "'contact 1'", "speed")),
    (contact(friction=COULOMB, slip=sm.sqrt(x - 5) * u**2), ("affine", "u")),
    (contact(friction=COULOMB, slip=u - x.diff()), ("slip", "speed")),
    (
        contact(friction=COULOMB, slip=(u * sm.cos(x) + w * sm.sin(x), x.diff() * sm.cos(x) + z.diff() * sm.sin(x))),
        ("slip", "'contact 1'", "proportion"),
    ),
    (walls(x - e, e - x - 0.1), ("'contact 1'", "'contact 2'", "-0.1")),
    (walls(w, -z.diff() - 2), ("'contact 1'", "'contact 2'", "w", "-2")),
    (walls(x, sm.cos(x) ** 2 - 2 - x + sm.sin(x) ** 2, law=kg.Stabilized(3, 2)), ("contradict", "-1")),
]
DERIVABLE = [
    (walls(x - e, e - x), "a slot without play"),
    (walls(x, 1 - x), "two walls"),
    (walls(x - e, mu - x), "two walls whose distance is known in a run"),
    (walls(x, x), "the same wall twice, a redundant contact"),
    (walls(x, -x - 1, law=kg.KelvinVoigt(1, 1)), "squeezed between two springs"),
    (contact(friction=COULOMB, slip=(u + w, u - 2 * w)), "directions whose angle cannot be known"),
]


@pytest.mark.parametrize(("changes", "names"), UNDERIVABLE, ids=range(len(UNDERIVABLE)))
def test_what_only_the_derivation_sees(changes: dict[str, Any], names: tuple[str, ...]) -> None:
    with raises(kg.ModelError, *names):
        assemble(kg.derive(plain(**changes)), BuildOptions.of("reduced"))


@pytest.mark.parametrize(("changes", "what"), DERIVABLE, ids=[what for _, what in DERIVABLE])
def test_what_the_derivation_accepts(changes: dict[str, Any], what: str) -> None:
    program, _ = assemble(kg.derive(plain(**changes)), BuildOptions.of("reduced"))
    assert "contacts" in {function.name for function in program.functions}


def test_a_guard_that_is_zero_in_a_region_is_accepted() -> None:
    program, _ = assemble(kg.derive(plain(**event(sm.Max(x - 2, 0)))), BuildOptions.of("reduced"))
    assert "events" in {function.name for function in program.functions}


@pytest.mark.parametrize("form", ["momentum", "momentum_unreduced", "hamilton"])
def test_momentum_forms_refuse_contacts(form: str) -> None:
    with raises(kg.BuildError, "contacts", "form="):
        assemble(kg.derive(ball()), BuildOptions.of(form))


def test_reactions_refuse_contacts() -> None:
    model = ball()
    reaction = kg.Reaction(model.bodies, model.bodies[0].masscenter, model.frame)
    with raises(kg.ModelError, "body", "force"):
        model.with_reactions({"all": reaction})
    aside = me.dynamicsymbols("aside")
    with raises(kg.ModelError, "auxiliary_speeds", "aside", "'floor'", "row"):
        ball(auxiliary_speeds=[aside])


def test_parameters_of_laws_gaps_and_guards_are_parameters() -> None:
    model = Sledge().model()
    assert {"e", "k", "mu", "omega", "T"} <= set(map(str, model.parameters))


def test_a_bare_gap_is_rigid_without_rebound() -> None:
    (only,) = plain(contacts=[z]).resolved_contacts
    assert (only.name, only.kind, float(only.law.e), only.level) == ("contact 1", "restitution", 0.0, 2)


def test_speeds_and_adapters_keep_contacts() -> None:
    model = ball(events=[kg.Event("apex", w)])
    a, b = me.dynamicsymbols("a b")
    changed = model.with_speeds([a, b], [u + w, u - w])
    equations = kg.derive(changed)
    assert changed.events == model.events
    # The multiplier of z' = (a - b) / 2.
    floor_force = equations.system.multipliers[0]
    first, second = equations.P.nodes
    assert floor_force.index in {node.index for node in _inputs(first)} & {node.index for node in _inputs(second)}
    km = me.KanesMethod(
        model.frame, q_ind=model.coordinates, u_ind=model.speeds, kd_eqs=model.kinematics, bodies=model.bodies,
        forcelist=[(model.bodies[0].masscenter, -9.81 * model.bodies[0].mass * model.frame.z)],
    )  # fmt: skip
    read = kg.Model.from_kane(km, contacts=model.contacts, events=model.events)
    assert read.resolved_contacts == model.resolved_contacts
    assert set(map(str, read.parameters)) == {"e", "m", "mu"}


def _inputs(node: Any) -> list[Any]:
    stack, found = [node], []
    while stack:
        current = stack.pop()
        found.append(current)
        stack.extend(current.args)
    return found


CHANGES = [
    contact(law=kg.Restitution(0.5)),
    contact(law=kg.Restitution(0.6)),
    contact(law=kg.Restitution(0.5, decay_rate=3)),
    contact(law=kg.Restitution(0.5), name="ground"),
    contact(law=kg.Restitution(0.5), friction=COULOMB, slip=u),
    contact(law=kg.Restitution(0.5), friction=kg.Coulomb(0.3, 0.2), slip=u),
    contact(law=kg.Restitution(0.5), friction=kg.Coulomb(0.3, creep=1), slip=u),
    contact(law=kg.Restitution(0.5), friction=COULOMB, slip=2 * u),
    contact(gap=2 * z, law=kg.Restitution(0.5)),
    contact(law=kg.KelvinVoigt(1, 2)),
    contact(law=kg.KelvinVoigt(1, 2, quantity="acceleration")),
    contact(law=kg.HuntCrossley(1, 2)),
    contact(law=kg.HuntCrossley(1, 2, exponent=2)),
    {"contacts": [kg.Latch("hook", z)]},
    {"contacts": [kg.Latch("hook", z, closed=True)]},
    event(),
    event(direction=1),
    event(terminal=True),
    event(2 * z),
]


def test_the_digest_tells_contacts_apart() -> None:
    digests = {fingerprint(lower_model(plain(**changes))) for changes in ({}, *CHANGES)}
    assert len(digests) == len(CHANGES) + 1
    same = {fingerprint(lower_model(plain(**CHANGES[4]))) for _ in range(2)}
    assert len(same) == 1


def test_records_can_be_pickled() -> None:
    record = kg.Event("overload", kg.Multiplier("floor", 1) - 5, impose=("hook",))
    again = pickle.loads(pickle.dumps(record))
    assert again == record
    assert kg.Multiplier("floor", 1) in again.guard.args
