"""Contacts, events and impulses of a model: what is refused, in which words, and what the records keep."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from contact_models import Sledge, ball

import kanegen as kg
from kanegen.derivation import fingerprint, lower_model
from kanegen.model.contact.records import contacts_of
from kanegen.options import BuildOptions
from kanegen.program.assemble import assemble

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
    (contact(law=kg.Restitution(1.2)), "'contact 1' (contacts[0]) has e = 1.2: expected a number in"),
    (contact(law=kg.Restitution(-0.1)), "has e = -0.1: expected a number in [0, 1]"),
    (contact(law=kg.Restitution(e)) | {"parameters": {e: 2.0}}, "has e = 2 = e: expected a number in [0, 1]"),
    (contact(law=kg.Restitution(0.5, decay_rate=-1)), "has decay_rate = -1: expected a number >= 0"),
    (contact(law=kg.Stabilized(-300, 100)), "has damping = -300: expected a number > 0"),
    (contact(law=kg.Stabilized(300, 0)), "has stiffness = 0: expected a number > 0"),
    (
        contact(law=kg.Stabilized(300)),
        "the law Stabilized(damping), but its gap z(t) is one in positions: expected Stabilized(damping, stiffness)",
    ),
    (contact(gap=w, law=kg.Stabilized(3, 1)), "is one in speeds: expected Stabilized(damping)"),
    (contact(gap=z.diff(), law=kg.KelvinVoigt(1, 1)), "has the law KelvinVoigt, whose force follows from"),
    (contact(law=kg.KelvinVoigt(-1, 1)), "has stiffness = -1: expected a number >= 0"),
    (contact(law=kg.KelvinVoigt(1, -1)), "has damping = -1: expected a number >= 0"),
    (contact(law=kg.HuntCrossley(1, -7.5e7)), "has damping = -7.5e+07: expected a number >= 0"),
    (contact(law=kg.HuntCrossley(1, 1, exponent=0.5)), "has exponent = 0.5: expected a number >= 1"),
    (contact(law=kg.HuntCrossley(1, 1, quantity="twice")), "has quantity='twice': expected 'force' or 'acceleration'"),
    (contact(law=kg.Restitution(u)), "the law of contact 'contact 1' contains u: it may depend on t, parameters only"),
    (contact(law=0.5), "contacts[0].law is 0.5: expected one of kg.Stabilized, kg.Restitution"),
    # gaps
    (contact(gap=sm.Symbol("h") - 1), "has the gap h - 1, which depends on no coordinate and no speed"),
    (contact(gap=z + w.diff()), "the gap of contact 'contact 1' contains w': it may depend on t, q, q', u"),
    (contact(gap="z"), "contacts[0].gap is 'z': expected a SymPy expression"),
    ({"contacts": [("z", 1)]}, "contacts[0] is ('z', 1): expected a kg.Unilateral"),
    (contact(name=""), "contacts[0] has the name ''"),
    # where forces act
    (contact(applied_at=(ONE, x)), "contacts[0].applied_at[0][0] on one is x(t): expected a Vector"),
    # friction
    (contact(friction=COULOMB), "has friction and 0 components of slip velocity: expected slip=(v1,) or (v1, v2)"),
    (contact(friction=COULOMB, slip=(u, w, u + w)), "has friction and 3 components of slip velocity"),
    (contact(slip=(u,)), "has a slip velocity but no friction: give friction=kg.Coulomb(mu)"),
    (contact(friction=COULOMB, slip=(u**2,)), "has the slip velocity u(t)**2, which is nonlinear in the speeds"),
    (contact(friction=COULOMB, slip=(u * x.diff(),)), "which is nonlinear in the speeds"),
    (contact(friction=COULOMB, slip=(x,)), "has the slip velocity x(t), which depends on no speed"),
    (contact(friction=kg.Coulomb(-0.1), slip=u), "has mu_s = -0.1: expected a number >= 0"),
    (contact(friction=kg.Coulomb(0.2, 0.3), slip=u), "has mu_k = 0.3 and mu_s = 0.2: expected mu_k <= mu_s"),
    (
        contact(friction=kg.Coulomb(mu, 2 * mu), slip=u) | {"parameters": {mu: 0.1}},
        "has mu_k = 0.2 and mu_s = 0.1: expected mu_k <= mu_s; Coulomb(mu_s, mu_k) takes the static coefficient first",
    ),
    (contact(friction=kg.Coulomb(0.3, creep=0), slip=u), "has creep = 0: expected a number > 0"),
    (contact(friction=0.3, slip=u), "contacts[0] has the friction law 0.3: expected a kg.Coulomb"),
    ({"contacts": [kg.Friction((), COULOMB, 9.81)]}, "'friction 1' (contacts[0]) has friction and 0 components"),
    ({"contacts": [kg.Friction(u, COULOMB, z * w.diff())]}, "the normal force of contact 'friction 1' contains w'"),
    ({"contacts": [kg.Friction(u, COULOMB, -2)]}, "has the normal force -2 N: expected one that is not negative"),
    ({"contacts": [kg.Friction(u, COULOMB, kg.Bilateral(1))]}, "has the gap 1, which depends on no coordinate"),
    # names
    ({"contacts": [floor(name="a")] * 2}, "[0] and contacts[1] are both named 'a'"),
    (contact(name="knock") | event(), "contacts[0] and events[0] are both named 'knock'"),
    ({"contacts": [kg.Latch("a", x - z), kg.Latch("a", x)]}, "contacts[0] and contacts[1] are both named 'a'"),
    # events
    (event(impose="hook"), "event 'knock' (events[0]) has impose='hook': expected one of the model's latches, none"),
    (event(remove=("hok",)) | {"contacts": [kg.Latch("hook", x)]}, "remove='hok': expected one of the model's latches"),
    (
        event(impose="hook", remove="hook") | {"contacts": [kg.Latch("hook", x)]},
        "event 'knock' (events[0]) both imposes and removes the latch 'hook'",
    ),
    (event(impose=[3]), "events[0].impose contains 3: expected names of latches"),
    (event(terminal="no"), "events[0].terminal is 'no': expected True or False"),
    (event(guard="z"), "events[0].guard is 'z': expected a SymPy expression or a number"),
    ({"contacts": [kg.Latch("hook", z, closed=1)]}, "contacts[0].closed is 1: expected True or False"),
    (event(impulse="kick"), "has impulse='kick': expected one of the model's impulses, none"),
    (event(direction=2), "has direction=2: expected +1 (rising), -1 (falling) or 0 (both)"),
    (event(sm.Integer(3)), "has the guard 3, which never changes its sign"),
    (event(kg.Multiplier("wall")), "contains Multiplier('wall', 0): the contacts are none"),
    (event(kg.Multiplier("contact 1", 1)) | contact(), "Multiplier('contact 1', 1): contact 'contact 1' has 1 row(s)"),
    (event(w.diff()), "the guard of event 'knock' contains w'"),
    ({"events": [z]}, "events[0] is z(t): expected a kg.Event"),
    (contact(gap=z + kg.Multiplier("contact 1")), "Multiplier('contact 1', 0): expected it in guards and outputs"),
    # impulses
    ({"impulses": {"blow": []}}, "impulses['blow'] contains no impulse"),
    ({"impulses": {"blow": [(x, z)]}}, "impulses['blow'][0] acts on x(t): expected a Point"),
    ({"impulses": [1]}, "impulses is [1]: expected a mapping from a name"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "words"), ONE_PROBLEM, ids=range(len(ONE_PROBLEM)))
def test_one_problem(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(kg.ModelError) as caught:
        plain(**changes)
    assert len(caught.value.problems) == 1, caught.value.problems
    assert words in caught.value.problems[0]


def plain(**changes: Any) -> kg.Model:
    return ball(**{"contacts": (), **changes})


def test_all_problems_together() -> None:
    with pytest.raises(kg.ModelError) as caught:
        plain(**contact(law=kg.Restitution(3), friction=kg.Coulomb(-1)), **event(impulse="kick"))
    assert len(caught.value.problems) == 4


UNDERIVABLE = [
    (event(sm.sin(x) ** 2 + sm.cos(x) ** 2 - 1), "the guard of event 'knock' .* is zero everywhere"),
    (contact(gap=sm.sin(x) ** 2 + sm.cos(x) ** 2), "the gap of contact 'contact 1' .* depends on no generalized speed"),
    (contact(friction=COULOMB, slip=sm.sqrt(x - 5) * u**2), "is not affine in speed u"),
    (contact(friction=COULOMB, slip=u - x.diff()), "the slip velocity .* depends on no generalized speed"),
    (
        contact(friction=COULOMB, slip=(u * sm.cos(x) + w * sm.sin(x), x.diff() * sm.cos(x) + z.diff() * sm.sin(x))),
        "the slip velocities of contact 'contact 1', .* change in proportion with all speeds: expected components",
    ),
    (walls(x - e, e - x - 0.1), "'contact 1' and 'contact 2' contradict each other: .* add up to -0.1, so that one of"),
    (walls(w, -z.diff() - 2), "'contact 1' and 'contact 2' contradict each other: their gaps w.* add up to -2"),
    (walls(x, sm.cos(x) ** 2 - 2 - x + sm.sin(x) ** 2, law=kg.Stabilized(3, 2)), "contradict each other: .* to -1,"),
]
DERIVABLE = [
    (walls(x - e, e - x), "a slot without play"),
    (walls(x, 1 - x), "two walls"),
    (walls(x - e, mu - x), "two walls whose distance is known in a run"),
    (walls(x, x), "the same wall twice, a redundant contact"),
    (walls(x, -x - 1, law=kg.KelvinVoigt(1, 1)), "squeezed between two springs"),
    (contact(friction=COULOMB, slip=(u + w, u - 2 * w)), "directions whose angle cannot be known"),
]


@pytest.mark.parametrize(("changes", "words"), UNDERIVABLE, ids=range(len(UNDERIVABLE)))
def test_what_only_the_derivation_sees(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(kg.ModelError, match=words):
        assemble(kg.derive(plain(**changes)), BuildOptions.of("reduced"))


@pytest.mark.parametrize(("changes", "what"), DERIVABLE, ids=[what for _, what in DERIVABLE])
def test_what_the_derivation_accepts(changes: dict[str, Any], what: str) -> None:
    program, _ = assemble(kg.derive(plain(**changes)), BuildOptions.of("reduced"))
    assert "contacts" in {function.name for function in program.functions}


@pytest.mark.parametrize("form", ["momentum", "momentum_unreduced", "hamilton"])
def test_momentum_forms_refuse_contacts(form: str) -> None:
    with pytest.raises(kg.BuildError, match="has contacts, which form="):
        assemble(kg.derive(ball()), BuildOptions.of(form))


def test_reactions_refuse_contacts() -> None:
    model = ball()
    reaction = kg.Reaction(model.bodies, model.bodies[0].masscenter, model.frame)
    with pytest.raises(kg.ModelError, match="does not tell on which body its force acts"):
        model.with_reactions({"all": reaction})
    aside = me.dynamicsymbols("aside")
    with pytest.raises(
        kg.ModelError, match=r"auxiliary_speeds \(aside\), .* one for each row, to the contacts 'floor'"
    ):
        ball(auxiliary_speeds=[aside])


def test_parameters_of_laws_gaps_and_guards_are_parameters() -> None:
    model = Sledge().model()
    assert {"e", "k", "mu", "omega", "T"} <= set(map(str, model.parameters))


def test_a_bare_gap_is_rigid_without_rebound() -> None:
    (only,) = contacts_of(plain(contacts=[z]))
    assert (only.name, only.kind, float(only.law.e), only.level) == ("contact 1", "restitution", 0.0, 2)


def test_speeds_and_adapters_keep_contacts() -> None:
    model = ball(events=[kg.Event("apex", w)])
    a, b = me.dynamicsymbols("a b")
    changed = model.with_speeds([a, b], [u + w, u - w])
    equations = kg.derive(changed)
    assert changed.events == model.events
    # The multiplier of z' = (a - b) / 2.
    floor_force = equations.system.hidden[0]
    first, second = equations.P.nodes
    assert floor_force.index in {node.index for node in _inputs(first)} & {node.index for node in _inputs(second)}
    km = me.KanesMethod(
        model.frame, q_ind=model.coordinates, u_ind=model.speeds, kd_eqs=model.kinematics, bodies=model.bodies,
        forcelist=[(model.bodies[0].masscenter, -9.81 * model.bodies[0].mass * model.frame.z)],
    )  # fmt: skip
    read = kg.Model.from_kane(km, contacts=model.contacts, events=model.events)
    assert contacts_of(read) == contacts_of(model)
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
