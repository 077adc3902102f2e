"""The motions of solutions for animations: states at the times of the pictures and between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.points import Point
from kanegen.errors import SolveError, brief, text_of
from kanegen.model import Model
from kanegen.model.description import SystemDescription
from kanegen.model.expressions import symbol_name
from kanegen.solve.solution.quantities import along
from kanegen.view.animation import Animation, animation, require_viewer
from kanegen.view.motion import Mark, Motion

RATE: Final = 60.0
"""Pictures per second of a motion."""

FEWEST: Final = 300
"""Pictures of a short motion, which is played slowly."""

MOST: Final = 3000
"""Pictures of a long motion, which is thinned."""


def animate(
    solutions: Any,
    *,
    title: str | None = None,
    labels: Sequence[str] | None = None,
    offsets: Any = None,
    frames: Any = False,
    traces: Any = False,
    forces: bool = True,
    model: Any = None,
) -> Animation:
    """One animation of several motions, such as those of a sweep, or of two forms of the equations.

    Parameters
    ----------
    solutions
        Solutions, of the same or of different models.
    title
        Title of the page; None: the name of the model.
    labels
        Names of the motions; None: "motion 1", "motion 2", ...
    offsets
        Three numbers (m) for each motion, by which it is drawn apart from the others, in the inertial frame of its
        model. None: all in one place.
    frames
        True: show the axes of the frames of the bodies; or a list of further frames. The page has a switch.
    traces
        True: show the paths of the mass centers; or a list of points and bodies whose paths are shown.
    forces
        False: without the arrows of contact forces, loads, controls and reactions.
    model
        The model or, for different ones, a list. None: the models that the solvers were built from; a solver that was
        pickled, and a solution loaded without solver, have none.

    Raises
    ------
    SolveError
        If there is no model or it is not that of the solution, if a parameter has no value, if the viewer is not
        installed (``pip install 'kanegen[view]'``), and for arguments of another kind.
    """
    items = _items(solutions)
    if not items or not all(hasattr(item, "run") for item in items):
        raise SolveError(f"solutions is {brief(solutions)}; expected one or more solutions")
    require_viewer()
    names = [f"motion {k + 1}" for k in range(len(items))] if labels is None else list(map(text_of, _items(labels)))
    models = list(model) if isinstance(model, list | tuple) else [model] * len(items)
    for what, given in (("labels", names), ("model", models)):
        if len(given) != len(items):
            raise SolveError(f"{what} has {len(given)} entries; expected one for each of the {len(items)} solutions")
    notices: dict[str, None] = {}
    motions = [motion_of(*item, notices) for item in zip(items, models, names, strict=True)]
    heading = motions[0].model.name if title is None else text_of(title)
    return animation(motions, heading, frames, traces, forces, offsets, list(notices))


def _items(given: Any) -> tuple[Any, ...]:
    """What a sequence contains, or a single object; a solution is no sequence, although it has items by name."""
    single = not isinstance(given, Iterable) or isinstance(given, str) or getattr(given, "shape", None) == ()
    return (given,) if single else tuple(given)


def motion_of(solution: Any, model: Any, label: str, notices: dict[str, None]) -> Motion:
    """The motion of a solution; ``notices`` gets what the page says about the times."""
    model = model_of(solution, model)
    start, end = sorted((float(solution.t[0]), float(solution.last[0]))) if solution.t.size else (0.0, 0.0)
    if not solution.t.size:
        raise SolveError("the solution has no times: integrate over a span, and without an empty t_eval")
    sampler = _Sampler(solution)
    if solution.dense is None:
        times = np.unique(solution.t)
        if times.size > MOST:
            notices[f"of {times.size} stored times {MOST} are shown"] = None
            times = times[np.unique(np.linspace(0, times.size - 1, MOST).astype(int))]
        nodes = np.unique(solution.t)
    else:
        count = int(np.clip(RATE * (end - start), FEWEST, MOST))
        if RATE * (end - start) > MOST:
            notices[
                f"the motion of {end - start:g} s is shown in {MOST} pictures, one every {(end - start) / MOST:.3g} s"
            ] = None
        times = np.linspace(start, end, count + 1) if end > start else np.array([start])
        jumps = [event.t for event in solution.events if event.jumps][:MOST]
        times = np.unique(np.clip(np.concatenate([times, jumps]), start, end))
        nodes = np.unique(np.clip(np.concatenate([solution.t, solution.dense.t_old, [start, end]]), start, end))
    return Motion(
        label=label,
        model=model,
        parameters=_parameters(solution, model),
        times=times,
        nodes=nodes,
        state=sampler,
        marks=tuple(Mark(float(event.t), event.name, event.kind) for event in solution.events),
        wrenches=_wrenches(solution, sampler, times),
        accelerations=_accelerations(solution, model, sampler, times),
    )


class _Sampler:
    """The state at any times of a solution, with what acts interpolated between the stored times."""

    def __init__(self, solution: Any) -> None:
        self._solution, stored = solution, solution.point
        order = np.argsort(solution.t, kind="stable")
        forces = None if stored.forces is None else stored.forces[order]
        t, q, u, r, s = (x[order] for x in stored[:5])
        self._stored = Point(t, q, u, r, s, forces, stored.free)

    def __call__(self, times: Array) -> Point:
        """The arguments of functions at ``times`` (n,)."""
        known = self._stored

        def between(rows: Array | None) -> Array | None:
            return None if rows is None else _interpolated(times, known.t, rows)

        if self._solution.dense is None:
            q, u, s = map(between, (known.q, known.u, known.s))
        else:
            q, u, *rest = self._solution(times)
            s = rest[0] if rest else np.empty((times.size, 0))
        return Point(times, q, u, between(known.r), s, between(known.forces), known.free)


def _interpolated(times: Array, t: Array, rows: Array) -> Array:
    """Rows at ``times`` by linear interpolation between those at ``t``."""
    columns = [np.interp(times, t, column) for column in rows.T]
    return np.stack(columns, axis=-1) if columns else np.empty((times.size, 0))


def model_of(solution: Any, model: Any) -> Model:
    """The model of a solution: ``model``, or that of its solver. Raises `SolveError` if there is none, or another."""
    if model is None:
        solver = None if solution.reference is None else solution.solver
        model = None if solver is None else solver.model
        if model is None:
            raise SolveError(
                "the model of the solution is not known, because its solver was pickled or is missing: give it as the "
                "argument model=model"
            )
    if not isinstance(model, Model):
        raise SolveError(f"model is {brief(model)}; expected a kanegen.Model")
    own = [tuple(map(symbol_name, names)) for names in (model.coordinates, model.speeds, model.states)]
    record = solution.run
    if own != [record.coordinates, record.speeds, record.states]:
        raise SolveError(
            f"the model {model.name!r} is not that of the solution, {record.model!r}: its coordinates and speeds are "
            f"{', '.join((*own[0], *own[1]))}, those of the solution {', '.join((*record.coordinates, *record.speeds))}"
        )
    return model


def _parameters(solution: Any, model: SystemDescription) -> Array:
    """The values of the parameters of the model in the run, in order."""
    known = solution.run.parameters
    values = {symbol_name(symbol): known.get(symbol_name(symbol), value) for symbol, value in model.parameters.items()}
    missing = [name for name, value in values.items() if value is None]
    if missing:
        raise SolveError(f"there is no value of parameter {', '.join(missing)}: give it in Model(parameters=...)")
    return np.array(list(values.values()), dtype=np.float64)


def _accelerations(solution: Any, model: SystemDescription, sampler: _Sampler, times: Array) -> Array | None:
    """u' (n, n_u) if the loads contain accelerations and the form of the equations gives them."""
    if solution.reference is None or not model.is_accelerated or "rhs" not in solution.solver.description.functions:
        return None
    rates = along(solution.solver.rhs, sampler(times))
    return np.asarray(rates[1])


def _wrenches(solution: Any, sampler: _Sampler, times: Array) -> dict[str, tuple[Array, Array]]:
    """Force and torque of every reaction that was compiled, (n, 3) each."""
    if solution.reference is None:
        return {}
    solver = solution.solver
    names = [name for name in solver.description.reactions if solver.description.has(f"reaction:{name}")]
    at, result = sampler(times), {}
    for name in names:
        wrench = along(partial(solver.reaction, name), at)
        result[name] = (wrench.force, wrench.torque)
    return result
