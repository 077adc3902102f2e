"""``kanegen run``: integrate a model from the start its file gives."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from kanegen.cli.arguments import Target, model_arguments, parse_assignments, read_target
from kanegen.codegen.methods.table import ADAPTIVE, FIXED_STEP, IMPLICIT

SHOWN_EVENTS = 30
"""Number of events that are printed; if there are more, the first and the last ones."""


@dataclass(frozen=True)
class _Motion:
    """A finished integration with the ``seconds`` that building and integrating took."""

    solver: Any
    solution: Any
    build_seconds: float
    integrate_seconds: float


@click.command()
@model_arguments
@click.option("--time", "duration", type=float, default=10.0, show_default=True, help="Seconds of motion.")
@click.option("--method", type=click.Choice([*ADAPTIVE, *FIXED_STEP]), default="dopri5", show_default=True)
@click.option("--rtol", type=float, default=1e-8, show_default=True, help="Relative tolerance (adaptive methods).")
@click.option("--atol", type=float, default=1e-10, show_default=True, help="Absolute tolerance (adaptive methods).")
@click.option("--step", type=float, help=f"Step of {' and '.join(FIXED_STEP)}, s.")
@click.option("--control", is_flag=True, help="Close the loop with the control law of the model.")
@click.option("--sample-time", type=float, help="Seconds for which a servo holds its controls; default: continuous.")
@click.option("--points", type=click.IntRange(min=2), help="Evenly spaced output points; default: every step.")
@click.option(
    "-p",
    "--parameter",
    "parameters",
    callback=parse_assignments,
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter's value.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write t, q, u and the controls of a closed loop to FILE.csv or FILE.npz.",
)
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw q and u to FILE (matplotlib).")
@click.option("--progress", is_flag=True, help="Show a progress bar.")
def run(
    target: Target,
    options: dict[str, Any],
    parameters: dict[str, Any],
    duration: float,
    points: int | None,
    output: Path | None,
    plot: Path | None,
    **settings: Any,
) -> None:
    """Integrate the motion from the file's INITIAL and print a summary."""
    if output is not None and output.suffix not in (".csv", ".npz"):
        raise click.UsageError(f"--output {output}: expected a name that ends in .csv or .npz")
    file = read_target(target, options)
    motion = _simulate(file, parameters, duration, points, settings)
    console = Console()
    console.print(_summary(file, motion))
    if motion.solution.events:
        console.print(_events(motion.solution.events))
    if output is not None:
        _write(output, motion)
        console.print(f"written: {output}", highlight=False, soft_wrap=True)
    if plot is not None:
        _draw(plot, file, motion)
        console.print(f"figure: {plot}", highlight=False, soft_wrap=True)


def _simulate(
    file: Any, parameters: dict[str, Any], duration: float, points: int | None, settings: dict[str, Any]
) -> _Motion:
    import numpy as np

    from kanegen.pipeline import build

    start = file.start()
    t0 = float(start["t"])
    started = time.perf_counter()
    # Implicit methods need the Jacobians, which are not built by default.
    solver = build(file.model, functions="all" if settings["method"] in IMPLICIT else None)
    if parameters:
        solver = solver.with_parameters(parameters)
    built = time.perf_counter()
    t_eval = None if points is None else np.linspace(t0, t0 + duration, points)
    inputs = _inputs(solver.description, settings["control"], start.get("r"))
    solution = solver.integrate((t0, t0 + duration), start["q"], start["u"], t_eval=t_eval, **inputs, **settings)
    return _Motion(solver, solution, built - started, time.perf_counter() - built)


def _inputs(description: Any, control: bool, r: Any) -> dict[str, Any]:
    """The inputs of the file without the controls that the model's law gives, and the start of those in the state."""
    from kanegen.solve.control.closed_loop import own_inputs

    if not control or r is None:
        return {"r": r}
    servo, constraints = description.servo, description.control_constraints
    slots = servo.controls if servo else constraints.states if constraints else ()
    owned = own_inputs(description, description.input_names(slots))
    others = {name: value for name, value in zip(description.inputs, r, strict=True) if name not in owned}
    return {"r": others} if servo else {"r": others, "tau0": [r[slot] for slot in slots]}


def _summary(file: Any, motion: _Motion) -> Table:
    import numpy as np

    solver, solution = motion.solver, motion.solution
    statistics = solution.statistics
    table = Table(show_header=False, title=file.model.name, title_justify="left")
    rows: list[tuple[str, str]] = [
        ("status", str(solution.message)),
        ("t", f"{solution.t[0]:g} s to {solution.t[-1]:g} s, {len(solution.t)} points"),
        ("steps", f"{statistics.steps} ({statistics.rejected} rejected)"),
        ("evaluations", str(statistics.evaluations)),
        ("step sizes", f"{statistics.smallest_step:.3g} s to {statistics.largest_step:.3g} s"),
        (
            "time",
            f"{motion.build_seconds:.2f} s building, {1e3 * motion.integrate_seconds:.2f} ms integrating",
        ),
    ]
    states = [(solution.t[k], solution.q[k], solution.u[k]) for k in range(len(solution.t))]
    r = file.start().get("r")
    if "energy" in solver.description.functions:
        energy = np.array([solver.energy(*state, r) for state in states])
        rows.append(("energy", f"{energy[0]:.6g} J at the start, within {np.max(np.abs(energy - energy[0])):.2e} J"))
    position, velocity = solver.residuals(*states[-1], r)
    for what, residual in (("position residual", position), ("velocity residual", velocity)):
        if len(residual):
            rows.append((what, f"{np.max(np.abs(residual)):.2e} at the end"))
    if solution.control is not None:
        for name, column in zip(solution.control.names, np.abs(solution.control.values).T, strict=True):
            rows.append((f"largest |{name}|", f"{column.max():.6g}"))
        rows += [("warning", text) for text in solution.control.warnings]
    final = (*solution.q[-1], *solution.u[-1], *_controls(solution)[-1])
    rows += [(name, f"{value:.9g}") for name, value in zip(_names(motion), final, strict=True)]
    for row in rows:
        table.add_row(*row)
    return table


def _events(events: Sequence[Any]) -> Table:
    """Time, name and kind of each event; of many events the first and last ones."""
    kinds = Counter(event.kind for event in events)
    title = f"{len(events)} events: {', '.join(f'{count} {kind}' for kind, count in kinds.items())}"
    table = Table("t (s)", "name", "kind", "change of u", title=title, title_justify="left")
    half = SHOWN_EVENTS // 2
    shown = list(events) if len(events) <= SHOWN_EVENTS else [*events[:half], None, *events[-half:]]
    for event in shown:
        if event is None:
            table.add_row("...", "", "", "")
        else:
            jump = max(abs(event.u_after - event.u_before), default=0.0)
            table.add_row(f"{event.t:.9g}", event.name, event.kind, f"{jump:.6g}" if event.jumps else "")
    return table


def _names(motion: _Motion) -> list[str]:
    description, control = motion.solver.description, motion.solution.control
    return [*description.coordinates, *description.speeds, *(control.names if control is not None else ())]


def _controls(solution: Any) -> Any:
    """The controls of a closed loop (n_t, n_tau), without columns for an open one."""
    import numpy as np

    return np.empty((len(solution.t), 0)) if solution.control is None else solution.control.values


def _write(path: Path, motion: _Motion) -> None:
    import numpy as np

    solution = motion.solution
    if path.suffix == ".npz":
        arrays = {"t": solution.t, "q": solution.q, "u": solution.u, "controls": _controls(solution)}
        np.savez(path, names=np.array(_names(motion)), **arrays)
        return
    table = np.column_stack((solution.t, solution.q, solution.u, _controls(solution)))
    np.savetxt(path, table, delimiter=",", header=",".join(["t", *_names(motion)]), comments="", fmt="%.17g")


def _draw(path: Path, file: Any, motion: _Motion) -> None:
    from matplotlib.figure import Figure

    solution = motion.solution
    names = _names(motion)
    n_q = solution.q.shape[1]
    n = n_q + solution.u.shape[1]
    figure = Figure(figsize=(9.0, 7.0), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.plot(solution.t, solution.q, label=names[:n_q])
    upper.set(ylabel="q", title=file.model.name)
    lower.plot(solution.t, solution.u, label=names[n_q:n])
    lower.set(xlabel="t (s)", ylabel="u")
    for axis in (upper, lower):
        axis.legend()
    figure.savefig(path, dpi=120)
