"""Time and operations of the right-hand side in every form, for all examples, and the form that auto selects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.table import Table

from kanegen.cli.bench import compiled, timing
from kanegen.cli.bench.peers import input_values, parameter_values
from kanegen.cli.tables import make_table, seconds_text
from kanegen.codegen.description import Description
from kanegen.derivation import Equations, derive
from kanegen.errors import BuildError
from kanegen.forms import FORMS
from kanegen.graph import Newton
from kanegen.model import Model
from kanegen.modelfile import ModelFile, label, read_model_file
from kanegen.pipeline import sources_of
from kanegen.program.assemble import cheapest

VARIANTS: Final[Mapping[str, tuple[dict[str, Any], ...]]] = {
    "appell_hamel": ({"constraints": "nonlinear"}, {"constraints": "linear"}),
    "n_link_pendulum": ({"n": 3}, {"n": 10}),
    "spatial_chain": ({"n": 2}, {"n": 4}),
    "scissor_lift": ({"n": 4}, {"n": 10}),
}
"""Options with which an example is measured; the other examples have none."""

SAMPLE_SECONDS: Final = 0.001
"""Length of one sample: short, so that some samples are not disturbed by other load."""

REPEATED: Final = 10
"""Samples of each form in a round."""


@dataclass(frozen=True)
class FormTime:
    """Operations of the right-hand side in one form, and its seconds per evaluation in C."""

    operations: int
    seconds: float


@dataclass(frozen=True)
class FormRow:
    """One model in every form that applies to it, by name; ``chosen`` is the form that auto selects."""

    name: str
    chosen: str
    forms: Mapping[str, FormTime]

    @cached_property
    def fastest(self) -> str:
        """The fastest of the forms that integrate speeds, among which auto chooses."""
        return min((form for form in self.forms if not FORMS[form].momenta), key=lambda form: self.forms[form].seconds)

    @property
    def ratio(self) -> float:
        """Time of auto's choice to that of the fastest form."""
        return self.forms[self.chosen].seconds / self.forms[self.fastest].seconds


def example_files(folder: Path) -> Iterator[ModelFile]:
    """The examples in ``folder`` by name, with each of their `VARIANTS`. Raises `BuildError` if there are none."""
    paths = sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))
    if not paths:
        raise BuildError(
            f"the folder {folder} holds no examples; run this in a checkout of kanegen, or name a folder by --examples"
        )
    for path in paths:
        for options in VARIANTS.get(path.stem, ({},)):
            yield read_model_file(path, options=options)


def measure_forms(file: ModelFile, rounds: int) -> FormRow:
    """Time the right-hand side in every form that applies, interleaved.

    Forms in momenta compute (q', mom') and are timed at the momenta of the same states. Raises `SolveError` if two
    forms disagree.
    """
    model = file.model
    equations = derive(model)
    near = compiled.states_near(file.start(), input_values(model, file.start(), of_laws=0.0), parameter_values(model))
    states = _with_unit_norms(equations, near)
    operations: dict[str, int] = {}
    functions: dict[str, compiled.TimedFunction] = {}
    refusal: BuildError | None = None
    for form in FORMS:
        try:
            operations[form], functions[form] = _timed(model, form, states)
        except BuildError as error:
            # A form that does not apply is left out.
            refusal = refusal or error
    of_speeds = {form: function for form, function in functions.items() if not FORMS[form].momenta}
    if refusal is not None and not of_speeds:
        raise refusal
    compiled.check_agreement(model.name, {form: function.evaluate(0) for form, function in of_speeds.items()})
    tasks = {form: function.task(SAMPLE_SECONDS) for form, function in functions.items()}
    seconds = timing.interleaved(tasks, REPEATED * rounds)
    times = {form: FormTime(operations[form], seconds[form]) for form in functions}
    return FormRow(label(file.path.stem, file.options), cheapest(equations), times)


def _with_unit_norms(equations: Equations, states: compiled.States) -> compiled.States:
    """The states with Euler parameters of norm 1; with others rotations are not orthogonal, and the forms differ."""
    norms = Newton([item.position for item in equations.constraints.invariants], equations.system.q)
    given = [{"t": [states.t], "q": q.tolist(), "p": states.p.tolist()} for q in states.q]
    return replace(states, q=np.array([(norms.solve(values) or values)["q"] for values in given]))


def _timed(model: Model, form: str, states: compiled.States) -> tuple[int, compiled.TimedFunction]:
    """Operations and the function to be timed of one form; `BuildError` if the form does not apply."""
    momenta = FORMS[form].momenta
    sources = sources_of(model, form, ("rhs", "momentum") if momenta else ("rhs",))
    library = compiled.timed_library(sources.files, sources.kernel)
    name = "momentum_rhs" if momenta else "rhs"
    if momenta:
        mapping = compiled.TimedFunction(library, "reduced_momentum" if form == "momentum" else "momentum", states)
        # The momenta of the states, in an array of the size of their speeds.
        reduced = np.array([mapping.evaluate(k) for k in range(compiled.STATES)])
        missing = states.u.shape[1] - reduced.shape[1]
        states = replace(states, u=np.pad(reduced, ((0, 0), (0, missing))))
    return Description.from_sources(sources).functions[name].operations, compiled.TimedFunction(library, name, states)


def forms_table(rows: Sequence[FormRow]) -> Table:
    """Time and operations of the right-hand side in every form, auto's choice, and its time relative to the best."""
    forms = list(dict.fromkeys(form for row in rows for form in row.forms))
    title = "Right-hand side in C: time, operations; auto's choice, its time to that of the fastest form with speeds"
    cells = []
    for row in rows:
        measured = [row.forms.get(form) for form in forms]
        times = ["-" if time is None else f"{seconds_text(time.seconds)}\n{time.operations}" for time in measured]
        cells.append((row.name, *times, row.chosen, f"{row.ratio:.2f}"))
    return make_table(title, ("model", *forms, "auto", "ratio"), cells, (*forms, "ratio"))
