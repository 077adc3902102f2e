"""A standalone project: the sources of a model with an example program, a build and a Python package."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from kanegen._version import __version__
from kanegen.codegen.sources import (
    EVERYTHING,
    Features,
    Sources,
    include_closure,
    render,
    runtime_headers,
    wrapper_files,
    write_files,
)
from kanegen.errors import BuildError

TEMPLATES = {
    "README.md": "project_readme.md.jinja",
    "Makefile": "project_makefile.jinja",
    "pyproject.toml": "project_pyproject.toml.jinja",
    "setup.py": "project_setup.py.jinja",
    "MANIFEST.in": "project_manifest.in.jinja",
}
"""Files of the project and the templates from which they are rendered."""


class Control(NamedTuple):
    """One value of the function ``control``: its slot among the inputs, its limits (infinite: none)."""

    slot: int
    name: str
    low: float
    high: float


class LawClock(NamedTuple):
    """A clock of sampled laws: sample time and delay, s."""

    sample_time: float
    delay: float

    @property
    def waiting(self) -> int:
        """The largest number of samples that do not act yet, one that acts, and one more for rounding errors."""
        return math.ceil(self.delay / self.sample_time) + 2


class Law(NamedTuple):
    """One value of the function ``laws``: its slot among the inputs, sample time (None: continuous) and delay, s."""

    slot: int
    name: str
    sample_time: float | None
    delay: float

    @property
    def clock(self) -> LawClock | None:
        """The clock of its samples."""
        return None if self.sample_time is None else LawClock(self.sample_time, self.delay)


class PlacedLaw(NamedTuple):
    """One value of the function ``laws``: its slot among the inputs, and its clock (-1: continuous)."""

    slot: int
    name: str
    clock: int


def _of_laws(laws: Sequence[Law]) -> dict[str, Any]:
    """What the templates need: the clocks of sampled laws, and the laws with the index of their clock."""
    clocks = list(dict.fromkeys(law.clock for law in laws if law.clock is not None))
    placed = [PlacedLaw(law.slot, law.name, -1 if law.clock is None else clocks.index(law.clock)) for law in laws]
    return {"laws": placed, "law_clocks": clocks, "continuous_laws": any(law.clock is None for law in laws)}


class Stabilized(NamedTuple):
    """The stabilization of the example program: gains (n_g,), or a projection after ``every`` steps (0: none).

    ``integrals``: functions of the integrals of motion that the projection keeps; ``any_rank``: constraints can become
    dependent during a run.
    """

    gains: tuple[float, ...] = ()
    every: int = 0
    tolerance: float = 0.0
    integrals: tuple[str, ...] = ()
    any_rank: bool = False


UNSTABILIZED: Final = Stabilized()


class Example(NamedTuple):
    """What the example program of a project does.

    Parameters
    ----------
    controls
        The values of the function ``control``, in order; the example samples and holds them as in a real-time loop.
    control_states
        Names and slots of the inputs that are part of the state of ``rhs_controlled``.
    path_controls
        Names and slots of the inputs that inverse dynamics solves for.
    states
        Names of the additional states of the model.
    mass
        The function of the matrix of the accelerations.
    known
        Values of parameters, coordinates, speeds, inputs and states for the form of the example; None: not known.
    start_time
        The time at which the example starts, s.
    laws
        The values of the function ``laws``, in order; the example evaluates them continuously or at their samples.
    stabilization
        Against the drift of constraints.
    units
        Names of variables, parameters and outputs with their coherent SI units, those that are known.
    """

    controls: Sequence[Control] = ()
    control_states: Sequence[tuple[str, int]] = ()
    path_controls: Sequence[tuple[str, int]] = ()
    states: Sequence[str] = ()
    mass: str = "Q"
    known: Sequence[float | None] = ()
    start_time: float = 0.0
    laws: Sequence[Law] = ()
    stabilization: Stabilized = UNSTABILIZED
    units: Sequence[tuple[str, str]] = ()

    def context(self) -> dict[str, Any]:
        """What the templates read."""
        known = ["?" if value is None else repr(float(value)) for value in self.known]
        return self._asdict() | {"known": known} | _of_laws(self.laws)


PLAIN: Final = Example()


def emit_project(sources: Sources, example: Example = PLAIN, features: Features = EVERYTHING) -> Sources:
    """The kernel with an example program (built by ``make``) and a Python package (``pip install``, NumPy only).

    The Python package is called ``<name>_model``. The example program reads parameters and initial values from a text
    file, for which it prints a form, and integrates with fixed steps. The project contains the runtime headers that
    the kernel, the example program and the package include. ``sources`` hold the kernel and its header; ``features``
    are what the example program and the package can do.
    """
    package = f"{sources.name}_model"
    context = {
        "stem": sources.name,
        "package": package,
        "distribution": package.replace("_", "-").lower(),
        "digest": sources.digest,
        "version": __version__,
        "has": features,
        **example.context(),
    }
    program = {name: sources.text(name) for name in (sources.kernel, sources.header)}
    program["example.c"] = render("project_example.c.jinja", **context)
    wrapper = wrapper_files(features)
    available = runtime_headers(features.methods)
    headers = include_closure(program, available)
    context["headers"] = [sources.header, *headers]
    files = {**program, **headers, **include_closure(wrapper, available)}
    files.update({name: render(template, **context) for name, template in TEMPLATES.items()})
    files.update({f"{package}/{name}": text for name, text in wrapper.items()})
    files[f"{package}/__init__.py"] = render("project_init.py.jinja", **context)
    return Sources(sources.name, sources.digest, files)


def write_project(project: Sources, folder: Path) -> Path:
    """Write a project into ``folder`` and return the folder.

    Raises
    ------
    BuildError
        If ``folder`` holds files but no project of this model, or cannot be written.
    """
    try:
        if folder.exists() and not (folder / project.kernel).is_file() and any(folder.iterdir()):
            raise BuildError(
                f"{folder} holds files, but not {project.kernel}: only an earlier project of the same model is "
                "replaced; choose an empty folder"
            )
        write_files(project.files, folder)
    except OSError as error:
        raise BuildError(f"the project cannot be written into {folder}: {error}") from error
    return folder
