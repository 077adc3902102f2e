"""Every form of the equations on every example: time and operations of the right-hand side, and the choice of auto."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from kanegen.bench.harness import STATES, States, TimedFunction, check_agreement, states_near, timed_library
from kanegen.bench.kane import input_values, parameter_values
from kanegen.bench.modelfile import ModelFile, label, read_model_file
from kanegen.bench.timing import Timing, interleaved
from kanegen.codegen.description import Description
from kanegen.derivation import derive
from kanegen.errors import BuildError
from kanegen.forms import FORMS
from kanegen.model import Model
from kanegen.pipeline import sources_of
from kanegen.program.assemble import cheapest

VARIANTS: Final[Mapping[str, tuple[dict[str, Any], ...]]] = {
    "appell_hamel": ({"constraints": "nonlinear"}, {"constraints": "linear"}),
    "n_link_pendulum": ({"n": 3}, {"n": 10}),
    "spatial_chain": ({"n": 2}, {"n": 4}),
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
    timing: Timing


@dataclass(frozen=True)
class FormRow:
    """One model in every form that applies to it, by name; ``chosen`` is what auto takes."""

    name: str
    chosen: str
    forms: Mapping[str, FormTime]

    @cached_property
    def fastest(self) -> str:
        """The fastest of the forms between which auto chooses by time: those that integrate speeds."""
        return min((form for form in self.forms if not FORMS[form].momenta), key=self._seconds)

    @property
    def ratio(self) -> float:
        """Time of auto's choice to that of the fastest form."""
        return self._seconds(self.chosen) / self._seconds(self.fastest)

    def _seconds(self, form: str) -> float:
        return self.forms[form].timing.best


def example_files(folder: Path) -> Iterator[ModelFile]:
    """The examples in ``folder`` by name, under each of their `VARIANTS`. Raises `BuildError` where there are none."""
    paths = sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))
    if not paths:
        raise BuildError(
            f"the folder {folder} holds no examples; run this in a checkout of kanegen, or name a folder by --examples"
        )
    for path in paths:
        for options in VARIANTS.get(path.stem, ({},)):
            yield read_model_file(path, options=options)


def measure_forms(file: ModelFile, folder: Path, rounds: int) -> FormRow:
    """Time the right-hand side in every form that applies, interleaved.

    The kernels are compiled in ``folder``. Forms of the momenta are timed at the momenta of the same states, for
    (q', mom'). Raises `SolveError` when two forms disagree.
    """
    model = file.model
    states = states_near(file.start(), input_values(model, file.start()), parameter_values(model))
    operations: dict[str, int] = {}
    functions: dict[str, TimedFunction] = {}
    refusal: BuildError | None = None
    for form in FORMS:
        try:
            operations[form], functions[form] = _timed(model, form, states, folder / form)
        except BuildError as error:
            # A form that does not apply is left out.
            refusal = refusal or error
    of_speeds = {form: function for form, function in functions.items() if not FORMS[form].momenta}
    if refusal is not None and not of_speeds:
        raise refusal
    check_agreement(model.name, {form: function.evaluate(0) for form, function in of_speeds.items()})
    tasks = {form: function.task(SAMPLE_SECONDS) for form, function in functions.items()}
    timings = interleaved(tasks, REPEATED * rounds)
    times = {form: FormTime(operations[form], timings[form]) for form in functions}
    return FormRow(label(file.path.stem, file.options), cheapest(derive(model)), times)


def _timed(model: Model, form: str, states: States, folder: Path) -> tuple[int, TimedFunction]:
    """Operations and the function to be timed of one form; `BuildError` where it does not apply."""
    momenta = FORMS[form].momenta
    sources = sources_of(model, form, ("rhs", "momentum") if momenta else ("rhs",))
    library = timed_library(sources.files, sources.kernel, folder)
    name = "momentum_rhs" if momenta else "rhs"
    if momenta:
        mapping = TimedFunction(library, "reduced_momentum" if form == "momentum" else "momentum", states)
        states = replace(states, u=_momenta(mapping, states))
    return Description.from_sources(sources).functions[name].operations, TimedFunction(library, name, states)


def _momenta(function: TimedFunction, states: States) -> Any:
    """The momenta of the states, in arrays of the size of their speeds."""
    momenta = np.zeros_like(states.u)
    for k in range(STATES):
        values = function.evaluate(k)
        momenta[k, : values.size] = values
    return momenta
