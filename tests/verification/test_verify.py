"""The self-checks: they pass on every example, and every one of them fails where something is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import special_systems
import sympy.physics.mechanics as me
from click.testing import CliRunner
from mechanisms import blocks
from messages import raises, says, says_one
from systems import EXAMPLES, HYBRID, NAMES, SYSTEMS, initial, model_of, names
from verify_models import cart, gimballed, rolling_wheel, set_velocity, spring_load

import kanegen as kg
from kanegen.cli import main
from kanegen.codegen import kernel
from kanegen.derivation import Equations, equations
from kanegen.derivation.equations import Quantity
from kanegen.derivation.forces import generalized
from kanegen.derivation.forces.inertia import BodyInertia
from kanegen.derivation.sensitivities import Sensitivities
from kanegen.graph.ranks import independent_rows
from kanegen.program.functions import right_sides
from kanegen.verification import Check, Report, compiled, subject
from kanegen.verification.report import deviation
from kanegen.verification.start import draw_states

STATES = 3
FORMS = ("nonminimal",)
"""Forms compared where the forms are not the point: each costs a compilation."""


@pytest.mark.parametrize(("name", "options"), SYSTEMS, ids=NAMES)
def test_every_example_agrees_with_itself(name: str, options: dict[str, Any]) -> None:
    report = kg.verify(model_of(name, **options), states=STATES, forms=None if name == "rolling_disk" else ())
    judged = {check.principle for check in report.checks if check.ok}
    assert {
        "velocities", "Lagrange", "Gibbs-Appell", "active forces", "power balance", "Gauss", "momenta and energies",
        "Jacobians of q', u'", "compiled functions", "NumPy interpreter", "equations of motion",
    } <= judged  # fmt: skip
    # Identities hold to the 50 digits they are evaluated in, not just to the tolerance.
    for principle in ("Lagrange", "Gibbs-Appell", "power balance"):
        found = report.check(principle).deviation
        assert found is not None
        assert found < 1e-30


@pytest.mark.parametrize(
    ("name", "options"),
    [*HYBRID, ("rolling_disk", {"friction": 0.4})],
    ids=[*names(HYBRID), "rolling_disk friction"],
)
def test_every_example_with_contacts_agrees_with_itself(name: str, options: dict[str, Any]) -> None:
    report = kg.verify(model_of(name, **options), states=STATES, forms=())
    assert {"Lagrange", "power balance", "compiled functions"} <= {
        check.principle for check in report.checks if check.ok
    }


@pytest.mark.parametrize(
    "make", [special_systems.shaken_pendulum, special_systems.turning_rod, special_systems.free_body]
)
def test_special_systems_agree(make: Callable[[], kg.Model]) -> None:
    """Inputs with rates, kinetic energy without speeds, Euler parameters with an invariant (n_q > n_u)."""
    report = kg.verify(make(), states=STATES, forms=())
    assert report.check("Lagrange").ok
    assert report.check("power balance").ok


def test_states_lie_around_a_start() -> None:
    report = kg.verify(model_of("slider_crank"), states=2, start=initial("slider_crank"), forms=())
    says(report.notes[0], "start")


@pytest.mark.parametrize(
    ("start", "names"),
    [
        ({"q": [1.0]}, ("start['q']", "(2,)")),
        ({"speed": [1.0]}, ("speed",)),
        ({"q": {"z": 1.0}}, ("'z'",)),
        ({"q": {"x": None}}, ("start['q']['x']", "None")),
        ({"u": [1.0, float("nan")]}, ("start['u']", "nan")),
        ({"t": "now"}, ("start['t']", "'now'")),
        ({"q": "ab"}, ("start['q']", "'ab'")),
        ([1.0], ("start", "[1.0]")),
    ],
)
def test_a_wrong_start_is_refused(start: dict[str, Any], names: tuple[str, ...]) -> None:
    with raises(kg.VerificationError, *names):
        kg.verify(model_of("elliptic_wire"), start=start)


@pytest.mark.parametrize("change", [{"states": 0}, {"states": 2.5}, {"states": True}, {"seed": -1}, {"seed": None}])
def test_numbers_of_states_and_seeds_are_checked(change: dict[str, Any]) -> None:
    ((name, value),) = change.items()
    with raises(kg.VerificationError, name, value):
        kg.verify(model_of("elliptic_wire"), **change)


def test_states_lie_around_the_start_of_the_model() -> None:
    """What ``start`` leaves open is that of ``initial``; what both leave open is drawn without a center."""
    model = blocks(initial={"x": 1000.0, "t": 50.0})
    (x, _), equations_of_blocks = model.coordinates, kg.derive(model)
    for start, center in (({}, 1000.0), ({"q": {x: -300.0}, "t": 7}, -300.0)):
        (state,) = draw_states(equations_of_blocks, 1, 0, start)
        assert abs(state.q[0] / center - 1.0) <= 0.4
        assert 0.2 <= abs(state.q[1]) <= 1.1
        assert start.get("t", 50.0) <= state.t <= start.get("t", 50.0) + 2.0
    says(kg.verify(model, states=2, forms=()).notes[0], "start")


# -- a system on which every row says something ------------------------------------------------------------------


def failed_rows(model: kg.Model, forms: tuple[str, ...] = ()) -> set[str]:
    """The rows that fail; the report must then come with the error."""
    with raises(kg.VerificationError, "FAILED") as caught:
        kg.verify(model, states=2, forms=forms)
    assert isinstance(caught.value.report, Report)
    return {check.principle for check in caught.value.report.failed}


def test_every_row_says_something_about_the_cart() -> None:
    report = kg.verify(cart("cart"), states=2, forms=FORMS)
    assert report.ok
    silent = {check.principle for check in report.checks if check.ok is None}
    silent -= {"servo-constraints", "power of states", "rates of states", "feedback laws", "flexible bodies"}
    assert silent <= {check.principle for check in report.checks if check.principle.startswith("form ")}


def changed(name: str, change: Callable[[Any], Any]) -> property:
    """A property of the equations that returns something else than it should."""
    derived = Equations.__dict__[name].func
    return property(lambda self: change(derived(self)))


def scaled_entry(rows: Any) -> Any:
    return ((rows[0][0] * 1.001, *rows[0][1:]), *rows[1:])


def negated(nodes: Any) -> Any:
    return tuple(-node for node in nodes)


def with_rows(**changes: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Constraints whose rows have some fields changed."""

    def change(constraints: Any) -> Any:
        rows = [
            replace(row, **{name: value(getattr(row, name)) for name, value in changes.items()})
            for row in constraints.rows
        ]
        return replace(constraints, rows=tuple(rows))

    return change


def negated_slopes(self: Sensitivities, argument: str, original: Any = Sensitivities.balance) -> Quantity:
    found: Quantity = original(self, argument)
    return replace(found, nodes=negated(found.nodes))


def scaled_function(original: Callable[..., Any], factor: float) -> Callable[..., Any]:
    return lambda *arguments: original(*arguments) * factor


def scaled_momentum(*arguments: Any, original: Any = generalized.momentum) -> Any:
    return tuple(node * 1.5 for node in original(*arguments))


def wrong_form(f: Any, s: Any, stabilized: bool) -> Any:
    first, *others = right_sides.reduced(f, s, stabilized)
    return [first * 1.001, *others]


DERIVATION: dict[str, tuple[Any, str, Any, set[str]]] = {
    "sign of P": (Equations, "right_side", changed("right_side", negated), {"active forces", "Hamilton"}),
    "entry of Q": (
        Equations,
        "mass_matrix",
        changed("mass_matrix", scaled_entry),
        {"Lagrange", "Gibbs-Appell", "momenta and energies"},
    ),
    "row of J": (
        Equations,
        "constraints",
        changed("constraints", with_rows(J=lambda J: (J[0] * 1.001, *J[1:]))),
        {"J by complex step", "b by differences"},
    ),
    "sign of b": (
        Equations,
        "constraints",
        changed("constraints", with_rows(bias=lambda b: -b)),
        {"b by differences"},
    ),
    "kinetic energy": (
        BodyInertia,
        "energy",
        scaled_function(BodyInertia.energy, 1.001),
        {"Lagrange", "power balance", "momenta and energies", "Hamilton"},
    ),
    "momentum": (generalized, "momentum", scaled_momentum, {"momenta and energies", "Hamilton"}),
    "potential energy": (
        BodyInertia,
        "potential_energy",
        scaled_function(BodyInertia.potential_energy, -1),
        {"potential energy"},
    ),
    "Jacobians": (Sensitivities, "balance", negated_slopes, {"Jacobians of q', u'"}),
}


@pytest.mark.parametrize("fault", DERIVATION)
def test_wrong_derivation_fails(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, replacement, expected = DERIVATION[fault]
    monkeypatch.setattr(owner, name, replacement)
    assert expected <= failed_rows(cart(f"cart with wrong {fault}"))


def test_wrong_active_forces_alone_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    original = equations.GeneralizedForces.add_force
    monkeypatch.setattr(
        equations.GeneralizedForces, "add_force", lambda self, force: (original(self, force), original(self, force))
    )
    assert "active forces" in failed_rows(cart("cart pulled twice"))


def test_wrong_form_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(right_sides.RIGHT_SIDES, "nonminimal", wrong_form)
    assert failed_rows(cart("cart in a wrong form"), FORMS) == {"form nonminimal"}


def test_motion_that_is_not_least_constrained_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def pushed(Q: Any, J: Any, P: Any, b: Any) -> Any:
        udot, multipliers = original(Q, J, P, b)
        return udot + 0.01, multipliers

    original = subject.kkt
    monkeypatch.setattr(subject, "kkt", pushed)
    assert {
        "Gauss",
        "power balance",
        "added speeds",
        "equations of motion",
        "form nonminimal",
        "Hamilton",
    } <= failed_rows(cart("cart pushed off its motion"), FORMS)


def test_tampered_constant_in_the_generated_code_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def tampered(*arguments: Any, **options: Any) -> Any:
        sources = original(*arguments, **options)
        text = sources.text(sources.kernel)
        assert text.count("KG_C(0.4)") > 0
        return replace(sources, files={**sources.files, sources.kernel: text.replace("KG_C(0.4)", "KG_C(0.400001)")})

    original = kernel.emit_sources
    monkeypatch.setattr(kernel, "emit_sources", tampered)
    failed = failed_rows(cart("cart with tampered code"))
    assert "compiled functions" in failed
    assert "NumPy interpreter" not in failed


def test_wrong_interpreter_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def context() -> Any:
        right = original()
        return replace(right, functions={**right.functions, "sin": lambda x: np.sin(x) * (1 + 1e-8)})

    original = compiled.numpy_context
    monkeypatch.setattr(compiled, "numpy_context", context)
    assert failed_rows(cart("cart")) == {"NumPy interpreter"}


def test_compiled_function_that_refuses_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(self: Any, name: str, state: Any) -> Any:
        if name == "jacobian_q":
            raise kg.SolveError("refused")
        return original(self, name, state)

    original = compiled.Compiled.__call__
    monkeypatch.setattr(compiled.Compiled, "__call__", refusing)
    assert failed_rows(cart("cart")) == {"compiled functions", "Jacobians of q', u'"}


# -- mistakes in models ----------------------------------------------------------------------------------------------


def test_wrong_velocity_set_by_the_user_fails() -> None:
    assert kg.verify(set_velocity(1), states=2, forms=()).ok
    assert "velocities" in failed_rows(set_velocity(2))


def test_wrong_angular_velocity_set_by_the_user_fails() -> None:
    assert "velocities" in failed_rows(cart("cart with a fast bar", spin=2, check_kinematics=False))


def test_inertia_that_does_not_turn_with_its_body_is_refused() -> None:
    assert kg.verify(gimballed("body"), states=2, forms=()).ok
    with raises(kg.ModelError, "inertia", "body", "N"):
        kg.verify(gimballed("N"), states=2, forms=())


def test_constraints_within_velocities_are_legal_and_forbid_lagrange() -> None:
    report = kg.verify(rolling_wheel(), states=2, forms=())
    assert report.check("Lagrange").ok is None
    assert "center" in report.check("Lagrange").note
    assert report.check("Gibbs-Appell").ok


# -- models with special contents ----------------------------------------------------------------------------------


def test_missing_parameters_get_values_and_the_report_says_so() -> None:
    report = kg.verify(cart("cart without mass", parameters={}), states=2, forms=())
    assert any("parameters m" in note for note in report.notes)


def test_functions_of_the_user_are_checked_in_double_precision() -> None:
    slope = kg.Function("spring", 1, math.cos, "cos(x)")
    spring = kg.Function("potential", 1, math.sin, "sin(x)", derivatives=(slope,))
    x = me.dynamicsymbols("x")
    N = me.ReferenceFrame("N")
    model = cart("cart on a spring", frame=N, **spring_load(N, x, spring))
    report = kg.verify(model, states=2, forms=())
    assert report.check("Lagrange").ok
    assert report.check("compiled functions").ok
    assert report.check("Hamilton").ok is None
    assert any("double precision" in note for note in report.notes)


def test_functions_without_derivatives_are_verified_without_jacobians() -> None:
    N, x = me.ReferenceFrame("N"), me.dynamicsymbols("x")
    spring = kg.Function("spring", 1, math.tanh, "tanh(x)")
    model = cart("cart on a spring without slope", frame=N, **spring_load(N, x, spring))
    report = kg.verify(model, states=2, forms=())
    assert report.check("Lagrange").ok
    assert report.check("compiled functions").ok
    assert report.check("Jacobians of q', u'").ok is None
    says_one(report.notes, "Jacobians", "spring", "derivatives=")


def test_redundant_constraints_are_verified_on_their_manifold() -> None:
    redundant = blocks(lambda x, y: [x - y, 2 * x - 2 * y])
    report = kg.verify(redundant, form="pseudoinverse", states=3, forms=("reduced", "canonical"))
    assert report.ok
    says(report.notes[0], "3")
    assert "pseudoinverse" in report.check("form reduced").note


# -- the report ----------------------------------------------------------------------------------------------------


def test_report_is_a_table() -> None:
    checks = (
        Check("Lagrange", 1e-15, 1e-12, "left = right"),
        Check("Gauss", math.nan, 1e-8, "least"),
        Check("Hamilton", None, None, "not applicable: [bold] u"),
        Check("potential energy", 0.5, None, "reported"),
    )
    report = Report("m", "reduced", checks, ("10 states",))
    assert [check.ok for check in checks] == [True, False, None, None]
    assert report.failed == checks[1:2]
    assert not report.ok
    text = str(report)
    for part in ("Lagrange", "1.0e-15", "FAILED", "nan", "[bold] u", "10 states"):
        assert part in text
    with raises(KeyError, "Lagrange"):
        report.check("Newton")


def test_same_seed_same_report() -> None:
    model = model_of("rheonomic_particle")
    assert str(kg.verify(model, states=2, seed=3, forms=())) == str(kg.verify(model, states=2, seed=3, forms=()))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_are_not_finite_never_agree(value: float) -> None:
    assert math.isnan(deviation([value, 1.0], [value, 1.0]))


def test_deviation_is_relative_to_each_entry() -> None:
    assert deviation([1e3, 2.0], [1e3, 2.02]) == pytest.approx(0.02 / 2.02)
    assert deviation([0.0, 1.0], [1e-9, 1.0]) == pytest.approx(1e-6)
    assert deviation([0.0], [1e-9], [1.0]) == pytest.approx(1e-9)
    assert math.isnan(deviation([1.0], [1.0, 2.0]))


def test_independent_rows() -> None:
    assert independent_rows([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]) == (0, 2)


def test_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runner, file = CliRunner(), str(EXAMPLES / "elliptic_wire.py")
    result = runner.invoke(main, ["verify", file, "--states", "2"])
    assert result.exit_code == 0, result.output
    assert "Lagrange" in result.output
    monkeypatch.setattr(subject, "kkt", lambda Q, J, P, b: (0 * P + 1, 0 * b))
    result = runner.invoke(main, ["verify", file, "--states", "2"])
    assert result.exit_code == 1
    assert "FAILED" in result.output
    assert "fails" in result.output
