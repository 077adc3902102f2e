"""``kanegen run``: integrate a model from the initial state in its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from kanegen.arrays import Array
from kanegen.cli.arguments import (
    Command,
    assignments_option,
    backend_option,
    build_options,
    input_option,
    model_argument,
    print_line,
    run_options,
    start_option,
    time_option,
)
from kanegen.cli.bench.timing import timed
from kanegen.codegen.description import Description
from kanegen.codegen.methods.table import ADAPTIVE, FIXED_STEP, IMPLICIT
from kanegen.display import value_text
from kanegen.errors import ModelError
from kanegen.model.expressions import symbol_name
from kanegen.modelfile import ModelFile
from kanegen.pages import page_path
from kanegen.paths import require_writable
from kanegen.pipeline import build
from kanegen.run_options import RunOptions
from kanegen.solve import IntegrationError, Solution, Solver
from kanegen.solve.feedback.closed_loop import own_inputs
from kanegen.solve.solution.formats import FORMATS, checked, save
from kanegen.solve.solution.overview import event_table
from kanegen.solve.solution.tables import require
from kanegen.solve.values import TIME, by_name, number
from kanegen.view.animation import require_viewer
from kanegen.writing import written


@dataclass(frozen=True)
class _Run:
    """A finished integration, whether values of inputs were given, and the seconds that it took."""

    file: ModelFile
    solver: Solver
    solution: Solution
    has_inputs: bool
    build_seconds: float
    integrate_seconds: float

    @property
    def names(self) -> list[str]:
        """The names of the columns of `values`."""
        description, control = self.solver.description, self.solution.control
        controls = control.names if control is not None else ()
        return [*description.components, *controls]

    @property
    def controls(self) -> Array:
        """The controls of a closed loop (n_t, n_tau), without columns for an open one."""
        control = self.solution.control
        return np.empty((len(self.solution.t), 0)) if control is None else control.values

    @property
    def values(self) -> Array:
        """Coordinates, speeds, states of a model with states, and controls of a closed loop: a row for each time."""
        return np.column_stack((self.solution.q, self.solution.u, self.solution.s, self.controls))

    def arguments(self, k: int) -> tuple[Any, ...]:
        """The arguments (t, q, u, r, s) of the solver's functions at the ``k``-th time."""
        solution = self.solution
        s = solution.s[k] if self.solver.description.states else None
        r = solution.inputs[k] if self.solver.description.laws or self.has_inputs else None
        return solution.t[k], solution.q[k], solution.u[k], r, s


MOTION_OPTIONS: Final = (
    time_option,
    *run_options(RunOptions, (*ADAPTIVE, *FIXED_STEP)),
    click.option("--points", type=click.IntRange(min=2), help="Evenly spaced output points; default: every step."),
    assignments_option("-p", "--parameter", "parameters", help="A parameter's value."),
    start_option,
    input_option,
    backend_option,
    build_options,
)


def motion_options(command: Command) -> Command:
    """Add the options of an integration: ``--time``, ``--method`` and so on, values of the start, of a build."""
    for option in reversed(MOTION_OPTIONS):
        command = option(command)
    return command


@click.command()
@model_argument()
@motion_options
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write t, q, u, s and the controls of a closed loop to FILE.csv or FILE.npz; also inputs and outputs to "
    "FILE.parquet; the whole solution to FILE.nc (kg.load reads it).",
)
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw the motion to FILE (matplotlib).")
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    help="Write the motion in 3-D to a page that works offline (k3d); an existing file is replaced.",
)
def run(
    file: ModelFile,
    parameters: dict[str, Any],
    start: dict[str, Any],
    inputs: dict[str, Any],
    duration: float,
    points: int | None,
    output: Path | None,
    plot: Path | None,
    html: Path | None,
    **settings: Any,
) -> None:
    """Integrate the motion from the file's INITIAL, or from initial= of its model, and print a summary.

    Values of --start replace those of the file; constraints determine or correct the others.
    """
    if output is not None and output.suffix.lower() not in FORMATS:
        raise click.UsageError(f"--output {output}: expected a name that ends in {' or '.join(FORMATS)}")
    if output is not None:
        checked(output, "--output")
    if plot is not None:
        check_figure(plot)
    if html is not None:
        page_path(html)
        require_viewer()
    with _keeping_parts(output):
        motion = simulate(file, parameters, Start(file, start, inputs), duration, points, settings)
    console = Console()
    console.print(_summary(motion))
    if motion.solution.events:
        console.print(event_table(motion.solution.events).rich())
    if output is not None:
        save(motion.solution, output, "--output")
        print_line(f"written: {output}")
    if plot is not None:
        _draw(plot, motion)
        print_line(f"figure: {plot}")
    if html is not None:
        page = motion.solution.animate()
        print_line(f"animation: {page.save(html)}")
        for notice in page.notices:
            print_line(f"  {notice}")


@contextmanager
def _keeping_parts(output: Path | None) -> Iterator[None]:
    """Write the part of a motion that ends early to ``output``."""
    try:
        yield
    except IntegrationError as error:
        if output is not None:
            save(error.solution, output, "--output")
            print_line(f"written: {output}, up to t = {error.solution.t[-1]:g} s")
        raise


@dataclass(frozen=True)
class Start:
    """The start of a run: that of the file, with the ``values`` and ``inputs`` of the command line by name."""

    file: ModelFile
    values: Mapping[str, Any]
    inputs: Mapping[str, Any]

    def known(self) -> dict[str, float]:
        """The values of the file by name. `ModelError` if they and those of the command line lack time or states."""
        known = self.file.named_start()
        if not known and not self.values:
            self.file.start()  # says what to add
        states = [name for name in map(symbol_name, self.file.model.states) if name not in {**known, **self.values}]
        missing = [f'the states {", ".join(states)}, "s" of INITIAL,'] if states else []
        missing += [] if TIME in {**known, **self.values} else ["the time t"]
        if missing:
            raise ModelError(
                f"{self.file.path} gives no start values of {' and '.join(missing)}: add them to INITIAL or to "
                "Model(initial=...), or give --start NAME=VALUE"
            )
        return known

    def state(self, description: Description) -> dict[str, Any]:
        """The values of the command line, as arguments of `integrate`."""
        groups = {f"{letter}0": description.names[letter] for letter in "qus"}
        known = (*(name for names in groups.values() for name in names), TIME)
        values = by_name(self.values, known, "coordinate, speed or state")
        return {key: {name: values[name] for name in names if name in values} for key, names in groups.items()}

    def inputs_of(self, solver: Solver, control: bool) -> dict[str, Any]:
        """The inputs and initial controls as arguments of `integrate`.

        The control law of a closed loop computes some inputs; controls that are part of the state start with the values
        given here.
        """
        d = solver.description
        values = self.file.named_inputs() | by_name(self.inputs, d.inputs, "input")
        if not values or not control:
            return {"r": values or None}
        servo, constraints = d.servo, d.control_constraints
        slots = servo.controls if servo else constraints.states if constraints else ()
        owned = own_inputs(d, d.input_names(slots))
        arguments: dict[str, Any] = {"r": {name: value for name, value in values.items() if name not in owned}}
        if constraints and values.keys() >= set(d.input_names(slots)):
            arguments["tau0"] = [values[name] for name in d.input_names(slots)]
        return arguments


def simulate(
    file: ModelFile, parameters: dict[str, Any], start: Start, duration: float, points: int | None, settings: Any
) -> _Run:
    """Build the solver of a file and integrate; ``settings``: the other options of `motion_options` by name."""
    known = start.known()
    t = number(start.values.get(TIME, known.get(TIME)), TIME)
    # Implicit methods need the Jacobians, which are not built by default.
    options = {name: settings.pop(name) for name in ("form", "stabilization", "functions", "backend")}
    if options["functions"] is None and settings["method"] in IMPLICIT:
        options["functions"] = "all"
    solver, build_seconds = timed(partial(build, file.model, **options))
    if parameters:
        solver = solver.with_parameters(parameters)
    state = start.state(solver.description)
    solver = solver.with_initial(known)
    t_eval = None if points is None else np.linspace(t, t + duration, points)
    inputs = start.inputs_of(solver, settings["control"])
    if settings["tau0"] is not None:
        inputs["tau0"] = settings["tau0"]
    settings |= {"t_eval": t_eval, **state, **inputs}
    solution, seconds = timed(partial(solver.integrate, (t, t + duration), **settings))
    return _Run(file, solver, solution, bool(inputs["r"]), build_seconds, seconds)


def _summary(motion: _Run) -> Table:
    solver, solution = motion.solver, motion.solution
    statistics = solution.statistics
    rows: list[tuple[str, str]] = [
        ("status", str(solution.message)),
        ("t", f"{solution.t[0]:g} s to {solution.t[-1]:g} s, {len(solution.t)} points"),
        ("steps", f"{statistics.steps} ({statistics.rejected} rejected)"),
        ("evaluations", str(statistics.evaluations)),
        ("step sizes", f"{statistics.smallest_step:.3g} s to {statistics.largest_step:.3g} s"),
        ("time", f"{motion.build_seconds:.2f} s building, {1e3 * motion.integrate_seconds:.2f} ms integrating"),
    ]
    if solver.description.has("energy"):
        energy = solution.energy
        rows.append(("energy", f"{energy[0]:.6g} J at the start, within {np.max(np.abs(energy - energy[0])):.2e} J"))
    built = "residuals" in solver.description.functions
    residuals = solver.residuals(*motion.arguments(-1)) if built else (np.empty(0), np.empty(0))
    for what, residual in zip(("position", "velocity"), residuals, strict=True):
        if len(residual):
            rows.append((f"{what} residual", f"{np.max(np.abs(residual)):.2e} at the end"))
    if solution.control is not None:
        largest = np.abs(solution.control.values).max(axis=0)
        rows += [(f"largest |{name}|", f"{x:.6g}") for name, x in zip(solution.control.names, largest, strict=True)]
        rows += [("warning", text) for text in solution.control.warnings]
    last = zip(motion.names, motion.values[-1], strict=True)
    rows += [(name, value_text(name, value, solver.units, digits=9)) for name, value in last]
    table = Table(show_header=False, title=motion.file.model.name, title_justify="left")
    for row in rows:
        table.add_row(*row)
    return table


def check_figure(path: Path) -> None:
    """Raise an error for a figure that cannot be written, before the integration."""
    require("matplotlib", f"--plot {path}", "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    known = FigureCanvasAgg.filetypes
    if path.suffix.removeprefix(".").lower() not in known:
        raise click.UsageError(f"--plot {path}: expected a name that ends in {', '.join(f'.{end}' for end in known)}")
    require_writable(path, "--plot")


def _draw(path: Path, motion: _Run) -> None:
    """Write the figure of ``solution.plot()``."""
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    axes = motion.solution.plot(ax=figure)
    figure.set_size_inches(9.0, 1.0 + 1.9 * len(axes))
    figure.suptitle(motion.file.model.name)
    with written(path, "--plot") as file:
        figure.savefig(file, format=path.suffix.removeprefix("."), dpi=120)
