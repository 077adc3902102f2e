"""The step of an emitted project: its method, its memory, its operations, and the projection that follows it."""

from __future__ import annotations

from dataclasses import dataclass

from kanegen.codegen.description import Description
from kanegen.codegen.methods.table import METHODS
from kanegen.emission.interface import Evaluation, Interface
from kanegen.emission.methods import AUTO, MOREAU_JEAN, NONE, STEP_METHODS, StepMethod
from kanegen.emission.moreau import TimeStepping, moreau_problems
from kanegen.emission.options import EmitOptions
from kanegen.errors import BuildError
from kanegen.forms import FORMS

LEVELS = ("position_level", "velocity_level")
"""The functions of the constraints onto which a step projects, in this order."""

FUNCTIONS_OF_PROJECTION = ("Q", "displacements", *LEVELS)
"""The functions that a projection evaluates, those that the model has."""


@dataclass(frozen=True)
class Level:
    """Constraints of one level: ``m`` rows of ``n`` columns and the residual, from ``function``."""

    function: Evaluation
    m: int
    n: int
    is_position: bool


@dataclass(frozen=True)
class Projected:
    """The projection after a step; ``n_w``: the largest number of unknowns of a correction.

    ``displacements``: the function of S in dq = S w, None without constraints on positions.
    """

    levels: tuple[Level, ...]
    mass: Evaluation
    displacements: Evaluation | None
    n_u: int

    @property
    def n_w(self) -> int:
        """The largest number of unknowns of a correction."""
        return max(level.n for level in self.levels)

    @property
    def rows_memory(self) -> int:
        """Length of the rows of a level."""
        return max(level.function.size for level in self.levels)

    @property
    def displacements_memory(self) -> int:
        """Length of S."""
        return self.displacements.size if self.displacements else 0

    @property
    def memory(self) -> int:
        """Length of all arrays of the projection (KG_LEAST_CHANGE_WORK)."""
        work = max(level.n**2 + level.m * level.n + level.m**2 + level.m for level in self.levels)
        return self.rows_memory + self.n_u**2 + self.displacements_memory + self.n_w + work

    @property
    def operations(self) -> int:
        """Operations of one Newton iteration at each level, with those of the functions."""
        of_functions = sum(level.function.operations + self.mass.operations for level in self.levels)
        of_functions += self.displacements.operations if self.displacements else 0
        return of_functions + sum(_least_change_operations(level, self.n_u) for level in self.levels)


def _least_change_operations(level: Level, n_u: int) -> int:
    n, m = level.n, level.m
    factor = n_u**3 // 3 + 2 * n_u
    return factor + m * (2 * n_u**2 + n_u) + 2 * m * m * n + m**3 // 3 + 2 * m * m + 2 * n * m


@dataclass(frozen=True)
class Step:
    """The step of a project; ``projections``: Newton iterations after it, ``contacts``: those that it advances.

    ``law_operations``: of the feedback laws in a step. ``is_compensated``: the rounding errors of the sums y + change
    are kept and added to the next change, so that they do not add up over many steps.
    """

    method: StepMethod
    n_y: int
    rhs_operations: int
    projections: int = 0
    project: Projected | None = None
    contacts: TimeStepping | None = None
    law_operations: int = 0
    is_compensated: bool = False

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.method.name

    @property
    def title(self) -> str:
        """The method in words."""
        return self.method.title

    @property
    def memory(self) -> int:
        """Length of the derivatives of the stages."""
        return self.method.stages * self.n_y

    @property
    def changes_in_place(self) -> bool:
        """Whether the argument of a stage may replace its change in y_new, which every stage writes anew."""
        return self.method.name != "semi_implicit_euler"

    @property
    def context_values(self) -> int:
        """Length of what a step needs in the context: the rounding errors, y_new, stages, contacts, the projection."""
        of_contacts = self.contacts.memory + len(self.contacts.rows) if self.contacts else 0
        of_rounding = (1 if self.changes_in_place else 2) * self.is_compensated
        own = self.n_y * (1 + of_rounding) + self.memory + of_contacts
        return 1 + own + (self.project.memory if self.project else 0)

    @property
    def operations(self) -> int:
        """Operations of a step on its usual path, those of constants folded by the compiler excepted."""
        own = self.method.evaluations * self.rhs_operations + self.n_y * _sums(self.method)
        own += self.n_y * (self.method.evaluations + 6) * self.is_compensated
        own = self.contacts.operations if self.contacts else own
        own += self.law_operations
        return own + (self.projections * self.project.operations if self.project else 0)


def _sums(method: StepMethod) -> int:
    """Operations of the weighted sums of a method for each component of the state."""
    if method.name not in METHODS:
        return 2 * method.stages
    tableau = METHODS[method.name].coefficients
    rows = [*tableau.a[1 : tableau.stages], tableau.b]
    weights = [sum(1 for weight in row if weight) for row in rows]
    return sum(2 if w == 1 else 2 * w + 1 for w in weights)


def step_of(options: EmitOptions, ui: Interface, description: Description) -> Step | None:
    """The step of a project with these options; None without a step.

    Raises `BuildError` for methods and projections that the model cannot have; the message names an alternative.
    """
    method, projections = options.method, options.projections or 0
    has_contacts = bool(description.contacts.table)
    chosen = STEP_METHODS[method] if method in STEP_METHODS else STEP_METHODS[MOREAU_JEAN if has_contacts else "rk4"]
    problems = moreau_problems(description) if chosen.name == MOREAU_JEAN else _problems(description)
    if method == NONE or (method == AUTO and problems):
        if projections:
            raise BuildError(
                f"projections is {projections}, but there is no step{': ' if problems else ''}{'; '.join(problems)}"
            )
        return None
    if problems:
        raise BuildError(
            f"{description.name!r} cannot be advanced by method={chosen.name!r}: {'; '.join(problems)}. "
            'Emit it with method="none" (--method none); the example program of the project locates events'
        )
    if chosen.name == "semi_implicit_euler" and FORMS[description.form].momenta:
        raise BuildError(f"method is {chosen.name!r}, which needs speeds: form={description.form!r} integrates momenta")
    project = _projected(projections, ui, description) if projections else None
    if chosen.name == MOREAU_JEAN:
        contacts = TimeStepping.of(options.iterations, ui, description)
        return Step(chosen, ui.n_y, ui.rhs.operations, projections, project, contacts)
    laws = _law_operations(chosen, ui, description)
    return Step(chosen, ui.n_y, ui.rhs.operations, projections, project, None, laws, options.is_float)


def _law_operations(method: StepMethod, ui: Interface, description: Description) -> int:
    """Operations of the feedback laws in a step: continuous ones in each evaluation, sampled ones once per clock."""
    laws = ui.evaluation("laws")
    if laws is None:
        return 0
    clocks = {(law.sample_time, law.delay) for law in description.laws.values() if law.sample_time is not None}
    is_continuous = any(law.sample_time is None for law in description.laws.values())
    return laws.operations * (len(clocks) + method.evaluations * is_continuous)


def _problems(description: Description) -> list[str]:
    """What a step for smooth motion cannot do."""
    problems = []
    if description.events:
        problems.append(f"it has the events {', '.join(event.name for event in description.events)}")
    if description.contacts.table:
        names = ", ".join(contact.name for contact in description.contacts.table)
        problems.append(f"it has the contacts {names}, which need method={MOREAU_JEAN!r}")
    return problems


def _projected(projections: int, ui: Interface, description: Description) -> Projected | None:
    form = FORMS[description.form]
    if form.momenta or form.any_rank:
        what = "integrates momenta" if form.momenta else "admits dependent constraints"
        raise BuildError(
            f"projections is {projections}: the projection of a step needs speeds and independent constraints, and "
            f"form={form.name!r} {what}. Choose another form, or stabilization=kanegen.Baumgarte(...)"
        )
    functions = [ui.evaluation(name) for name in LEVELS]
    mass, displacements = ui.evaluation("Q"), ui.evaluation("displacements")
    levels = tuple(
        Level(f, f.shape[0], f.shape[1] - 1, f.name == LEVELS[0]) for f in functions if f is not None and f.size
    )
    if not levels or mass is None or (levels[0].is_position and displacements is None):
        reason = (
            "it has no constraints"
            if not description.constraints.levels
            else ("the functions Q, displacements, position_level and velocity_level must be among functions=")
        )
        raise BuildError(f"projections is {projections} for {description.name!r}: {reason}")
    return Projected(levels, mass, displacements, len(ui.speeds))
