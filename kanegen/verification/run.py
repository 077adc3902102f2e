"""All self-checks of one model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import mpmath

from kanegen.derivation import derive
from kanegen.errors import VerificationError
from kanegen.forms import AUTO, FORMS
from kanegen.model import Model
from kanegen.pipeline import build
from kanegen.program.assemble import assemble
from kanegen.program.options import BuildOptions
from kanegen.verification import compiled, differences, jacobians, principles
from kanegen.verification.arithmetic import DIGITS
from kanegen.verification.kinematics import velocities
from kanegen.verification.report import Check, Report
from kanegen.verification.servo import servo_constraints
from kanegen.verification.states import State, draw_states, missing_parameters
from kanegen.verification.subject import Subject


def verify(
    model: Model,
    states: int = 10,
    seed: int = 0,
    form: str = "auto",
    start: Mapping[str, Any] | None = None,
    forms: Iterable[str] | None = None,
) -> Report:
    """Check the equations and the compiled code of a model by means of their own, at random states.

    Kane's equations are compared with those of Lagrange, Gibbs and Appell, and Hamilton, with the balance of power and
    Gauss' principle; derivatives with differences; compiled functions with the program in NumPy and in 50 digits; the
    forms of the equations with each other. What does not apply to the model says why.

    Parameters
    ----------
    model
        The system. Parameters without a value get random positive ones.
    states, seed
        How many random states, and the seed of their generator; every second one satisfies the constraints.
    form
        Form of the equations that is built in full, as for :func:`kanegen.build`.
    start
        ``{"t":, "q":, "u":, "r":}``, a state of the model's own scale around which states are drawn; without it
        coordinates lie between 0.2 and 1.1 from zero (m, rad).
    forms
        Other forms, whose right-hand sides are built and compared; None means all of :data:`kanegen.forms.FORMS`.

    Returns
    -------
    Report
        Whose ``str()`` is a table of principles, deviations and tolerances.

    Raises
    ------
    VerificationError
        Where a principle is violated (its ``report`` holds all rows), and where no regular state is found.
    BuildError, DerivationError, ModelError
        As for :func:`kanegen.build`.
    """
    if states < 1:
        raise VerificationError(f"states is {states}: expected at least one random state")
    others = [BuildOptions.of(other).form for other in (FORMS if forms is None else forms)]
    solver = build(model, form=form, functions="all")
    equations = derive(model)
    program, name = assemble(equations, BuildOptions.of(form, "all"))
    drawn = draw_states(equations, states, seed, start)
    subject = Subject(equations, program, solver, drawn)
    with mpmath.workdps(DIGITS):
        checks = tuple(_checks(model, subject, [other for other in others if other not in (AUTO, name)]))
    report = Report(model.name, name, checks, _notes(subject, seed, start))
    if not report.ok:
        failed = ", ".join(check.principle for check in report.failed)
        raise VerificationError(f"{model.name!r} fails {failed}\n{report}", report)
    return report


def _checks(model: Model, subject: Subject, forms: Iterable[str]) -> Iterator[Check]:
    kinematics, embedded = velocities(subject)
    yield kinematics
    yield principles.lagrange(subject, embedded)
    yield principles.gibbs_appell(subject)
    yield principles.active_forces(subject)
    yield principles.potential(subject, embedded)
    yield principles.hamilton(subject)
    yield principles.added_speeds(subject)
    yield principles.power_balance(subject)
    yield principles.gauss(subject)
    yield differences.jacobian(subject)
    yield differences.bias(subject)
    yield differences.momenta(subject)
    yield servo_constraints(subject)
    yield jacobians.rates(subject)
    yield from compiled.interpreters(subject)
    yield compiled.constrained_motion(subject)
    for form in forms:
        yield compiled.form_check(subject, form, lambda name: build(model, form=name, functions=("rhs",)))


def _notes(subject: Subject, seed: int, start: Mapping[str, Any] | None) -> tuple[str, ...]:
    states: tuple[State, ...] = subject.states
    consistent = sum(state.consistent for state in states)
    around = "" if start is None else " around the start"
    notes = [f"{len(states)} random states{around}, seed {seed}"]
    if subject.equations.velocities.nodes or subject.equations.positions.nodes:
        notes[0] += f"; {consistent} of them satisfy the constraints"
    missing = missing_parameters(subject.equations)
    if missing:
        notes.append(f"random positive values of the parameters {', '.join(missing)}")
    if not subject.arithmetic.exact:
        notes.append("functions of the user: identities are checked in double precision")
    return tuple(notes)
