"""All self-checks of one model, in the order of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import mpmath

from kanegen.derivation import derive
from kanegen.errors import DerivationError, VerificationError
from kanegen.forms import AUTO, FORMS
from kanegen.model import Model
from kanegen.pipeline import build, generate
from kanegen.program.catalogue import group
from kanegen.program.options import BuildOptions
from kanegen.solve import Solver
from kanegen.verification import compiled, differences, feedback, flexible, principles, rows
from kanegen.verification.report import Check, Report, Worst, judge
from kanegen.verification.start import draw_states
from kanegen.verification.subject import DIGITS, DOUBLE, Subject

PRINCIPLES: Final[tuple[tuple[str, Callable[[Subject, Worst], str], float | None], ...]] = (
    ("velocities", principles.velocities, None),
    ("Lagrange", principles.lagrange, None),
    ("Gibbs-Appell", principles.gibbs_appell, None),
    ("active forces", principles.active_forces, None),
    ("potential energy", principles.potential, None),
    ("Hamilton", principles.hamilton, None),
    ("added speeds", principles.added_speeds, None),
    ("power balance", principles.power_balance, None),
    ("power of states", differences.energy_rate, None),
    ("rates of states", differences.state_rates, DOUBLE),
    ("flexible bodies", flexible.flexible_bodies, DOUBLE),
    ("Gauss", principles.gauss, 1e-8),
    ("rows of constraints", rows.described, None),
    ("J by complex step", differences.jacobian, DOUBLE),
    ("b by differences", differences.bias, None),
    ("momenta and energies", differences.momenta, None),
    ("servo-constraints", differences.servo_constraints, None),
    ("Jacobians of q', u'", differences.rate_jacobians, DOUBLE),
    ("feedback laws", feedback.feedback_laws, DOUBLE),
)
"""Name of each principle, function that compares it, and tolerance; None means the tolerance of graph identities."""


def check_model(
    model: Model,
    states: int,
    seed: int,
    form: str,
    start: Mapping[str, Any] | None,
    forms: Iterable[str] | None,
    backend: str,
) -> Report:
    """The report of all checks; see :func:`kanegen.verify`, whose arguments these are.

    Raises `VerificationError` if a principle is violated, or if no regular state is found.
    """
    others = [BuildOptions.of(other).form for other in (FORMS if forms is None else forms)]
    solver, functions, notes = _everything(model, form, backend)
    equations = derive(model)
    generated = generate(equations, BuildOptions.of(form, functions))
    name = generated.description.form
    drawn = draw_states(equations, states, seed, start)
    subject = Subject(equations, generated.program, solver, drawn)
    with mpmath.workdps(DIGITS):
        others = [other for other in others if other not in (AUTO, name)]
        checks = tuple(_checks(subject, others, partial(build, model, functions=("rhs",), backend=backend)))
    report = Report(model.name, name, checks, (*_notes(subject, seed, start), *notes))
    if not report.ok:
        failed = ", ".join(check.principle for check in report.failed)
        raise VerificationError(f"{model.name!r} fails {failed}\n{report}", report)
    return report


def _everything(model: Model, form: str, backend: str) -> tuple[Solver, tuple[str, ...], tuple[str, ...]]:
    """The solver with all functions (without Jacobians if a user function has no derivatives), their names, notes."""
    functions = BuildOptions.of(form, "all").functions
    try:
        return build(model, form=form, functions=functions, backend=backend), functions, ()
    except DerivationError as error:
        functions = tuple(name for name in functions if name not in group("jacobians"))
        solver = build(model, form=form, functions=functions, backend=backend)
        return solver, functions, (f"without Jacobians: {error}",)


def _checks(subject: Subject, forms: Iterable[str], build_form: Callable[..., Solver]) -> Iterator[Check]:
    for principle, compare, tolerance in PRINCIPLES:
        yield judge(principle, tolerance or subject.tolerance, partial(compare, subject))
    yield from compiled.interpreters(subject)
    yield judge("equations of motion", DOUBLE, partial(compiled.constrained_motion, subject))
    for form in forms:
        form_motion = partial(compiled.form_motion, subject, build=partial(build_form, form=form))
        yield judge(f"form {form}", DOUBLE, form_motion)


def _notes(subject: Subject, seed: int, start: Mapping[str, Any] | None) -> tuple[str, ...]:
    states, equations = subject.states, subject.equations
    near = start or equations.model.initial
    notes = [f"{len(states)} random states{' around the start' if near else ''}, seed {seed}"]
    if equations.velocities.nodes or equations.positions.nodes:
        notes[0] += f"; {sum(state.consistent for state in states)} of them satisfy the constraints"
    kept = [item.label for item in equations.constraints.invariants]
    if kept:
        notes.append(f"every state satisfies {', '.join(kept)}")
    missing = [str(symbol) for symbol, value in equations.model.parameters.items() if value is None]
    if missing:
        notes.append(f"random positive values of the parameters {', '.join(missing)}")
    if not subject.exact:
        notes.append("functions of the user: identities are checked in double precision")
    return tuple(notes)
