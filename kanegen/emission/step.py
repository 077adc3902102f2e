"""The step of an emitted project: its method, its memory, its operations, and the projection that follows it."""

from __future__ import annotations

from dataclasses import dataclass

from kanegen.codegen.description import Description
from kanegen.emission.example import Stabilized
from kanegen.emission.interface import Evaluation, Interface
from kanegen.emission.laws import laws_of
from kanegen.emission.methods import AUTO, MOREAU_JEAN, NONE, STEP_METHODS, StepMethod
from kanegen.emission.moreau import TimeStepping, moreau_problems
from kanegen.emission.options import EmitOptions
from kanegen.errors import BuildError
from kanegen.forms import FORMS

LEVELS = ("position_level", "velocity_level")
"""The functions of the constraints onto which a step projects, in this order."""

FUNCTIONS_OF_PROJECTION = ("Q", "displacements", *LEVELS)
"""The functions that a projection evaluates, those that the model has."""

PROJECTIONS = 2
"""Newton iterations after a step with stabilization=Projection(): the second one removes the error of the first."""


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
        return of_functions + sum(least_change_operations(level.n, self.n_u, level.m) for level in self.levels)


def least_change_operations(n: int, n_u: int, m: int) -> int:
    """Operations of ``kg_least_change``, with the test of each pivot."""
    responses = m * (2 * n_u**2 - n_u) + 2 * m * m * n
    return _factor_operations(n_u) + responses + _factor_operations(m) + 2 * m * m - m + 2 * n * m


def _factor_operations(n: int) -> int:
    return n * (n - 1) * (n - 2) // 3 + 3 * n * (n - 1) // 2 + 4 * n


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
        return not self.method.is_semi_implicit

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
        own = self.method.evaluations * self.rhs_operations + self.n_y * self.method.sums
        own += self.n_y * (self.method.evaluations + 6) * self.is_compensated
        own = self.contacts.operations if self.contacts else own
        own += self.law_operations
        return own + (self.projections * self.project.operations if self.project else 0)


def step_of(
    options: EmitOptions, stabilized: Stabilized, ui: Interface, description: Description
) -> tuple[Step | None, tuple[str, ...]]:
    """The step of a project with these options, or None, and what it does not do, in sentences.

    Raises `BuildError` for a method and projections that were asked for and that the model cannot have; the message
    names an alternative.
    """
    method, asked = options.method, options.projections or 0
    chosen = _method(method, description)
    problems = moreau_problems(description) if chosen.name == MOREAU_JEAN else _problems(description)
    if method == NONE or (method == AUTO and problems):
        reason = "; ".join(problems) if method == AUTO else f"method is {NONE!r}"
        if asked:
            raise BuildError(f"projections is {asked}, but {description.name!r} gets no step: {reason}")
        return None, (f"There is no step with a fixed amount of work: {reason}.",)
    if chosen.is_semi_implicit and FORMS[description.form].momenta:
        problems = [f"it needs speeds, and form={description.form!r} integrates momenta"]
    if problems:
        raise BuildError(
            f"{description.name!r} cannot be advanced by method={chosen.name!r}: {'; '.join(problems)}. Leave out "
            "method=: the project then has the step that suits the model, if there is one, and its example program "
            "locates events"
        )
    project, notes = _projection(options, stabilized, ui, description)
    notes = (*notes, *_switching(ui))
    projections = 0 if project is None else asked or PROJECTIONS
    if chosen.name == MOREAU_JEAN:
        contacts = TimeStepping.of(options.iterations, ui, description)
        return Step(chosen, ui.n_y, ui.rhs.operations, projections, project, contacts), notes
    laws = _law_operations(chosen, ui, description)
    return Step(chosen, ui.n_y, ui.rhs.operations, projections, project, None, laws, options.is_float), notes


def _method(name: str, description: Description) -> StepMethod:
    """The method with this name; for other names that which suits the model."""
    return STEP_METHODS[name if name in STEP_METHODS else MOREAU_JEAN if description.contacts.table else "rk4"]


def _law_operations(method: StepMethod, ui: Interface, description: Description) -> int:
    """Operations of the feedback laws in a step: continuous ones in each evaluation and for each sample,
    sampled ones once per clock."""
    laws = ui.evaluation("laws")
    if laws is None:
        return 0
    placed = laws_of(description)
    clocks = {law.clock for law in placed if law.clock is not None}
    is_continuous = any(law.clock is None for law in placed)
    evaluations = len(clocks) * (1 + is_continuous) + method.evaluations * is_continuous
    return laws.operations * evaluations


def _problems(description: Description) -> list[str]:
    """What a step for smooth motion cannot do."""
    problems = []
    if description.events:
        problems.append(f"it has the events {', '.join(event.name for event in description.events)}")
    if description.contacts.table:
        names = ", ".join(contact.name for contact in description.contacts.table)
        problems.append(f"it has the contacts {names}, which need method={MOREAU_JEAN!r}")
    return problems


def _switching(ui: Interface) -> tuple[str, ...]:
    """What steps of a fixed size do not do for a model with functions of time that switch."""
    if ui.evaluation("switches") is None:
        return ()
    return (
        "A step does not end where a function of time in the model jumps or has a kink (see the function switches): it "
        "then has an error of the order of dt, or of dt^2 at a kink. Values that jump can be inputs, which are "
        "constant during a step.",
    )


def _projection(
    options: EmitOptions, stabilized: Stabilized, ui: Interface, description: Description
) -> tuple[Projected | None, tuple[str, ...]]:
    """The projection of a step, and what it leaves to the example program.

    Raises `BuildError` for ``projections=`` of a model that cannot have it; a stabilization that only the example
    program can apply is no error.
    """
    if not (options.projections or (options.projections is None and stabilized.every)):
        return None, ()
    reason = _no_projection(ui, description)
    if reason and options.projections:
        raise BuildError(
            f"projections is {options.projections} for {description.name!r}: {reason}. Leave out projections=, choose "
            "another form, or give stabilization=kanegen.Baumgarte(...)"
        )
    if reason:
        return None, (f"The projection of the stabilization is left to the example program: {reason}.",)
    notes = ("The projection of a step does not keep integrals of motion; that of the example program does.",)
    return _projected(ui), notes if stabilized.integrals else ()


def _no_projection(ui: Interface, description: Description) -> str:
    """Why a step cannot project the state; empty if it can."""
    form = FORMS[description.form]
    if not any(ui.evaluation(name) for name in LEVELS):
        return "the model has no constraints"
    if form.momenta:
        return f"it needs speeds, and form={form.name!r} integrates momenta"
    return f"it needs independent constraints, and form={form.name!r} admits dependent ones" if form.any_rank else ""


def _projected(ui: Interface) -> Projected:
    functions = {f.name: f for f in ui.evaluations}
    found = [functions[name] for name in LEVELS if name in functions]
    levels = tuple(Level(f, f.shape[0], f.shape[1] - 1, f.name == LEVELS[0]) for f in found)
    return Projected(levels, functions["Q"], functions.get("displacements"), len(ui.speeds))
