"""Why a problem was not solved, in the names of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from kanegen.control.ipopt import STATUSES, Minimum
from kanegen.control.program import NonlinearProgram
from kanegen.control.trajectory import Trajectory
from kanegen.control.transcription import MOMENTS
from kanegen.model.expressions import symbol_name

_SHOWN = 4

RowNames = Callable[[str, int], tuple[str, float | None]]
"""What a row is in the names of the user, and its time, from its label and its number."""


def explanation(
    programs: Sequence[NonlinearProgram],
    minima: Sequence[Minimum],
    motions: Sequence[Trajectory],
    joints: Sequence[Sequence[str]] = (),
) -> str:
    """A sentence for each of the conditions that are violated most; of each problem, if several are solved together.

    ``joints``: the names of the rows of the programs that follow those of the ``motions``.
    """
    found, lines = minima[0], list[str]()
    names: list[RowNames] = [partial(row_name, motion) for motion in motions]
    names += [partial(_joint_name, own) for own in joints]
    for k, (program, minimum, own) in enumerate(zip(programs, minima, names, strict=True)):
        prefix = f"problem {k + 1}: " if 1 < len(motions) > k else ""
        lines += [prefix + line for line in _violated(program, minimum, own)]
    text = f"the problem was not solved: {STATUSES.get(found.status, f'status {found.status} of IPOPT')}, after "
    text += f"{found.iterations} iterations"
    if not lines:
        return text + "; all conditions are satisfied, but the cost is not minimal: give another guess, or bounds"
    listed = "\n  ".join(lines)
    return (
        f"{text}. These conditions are violated most:\n  {listed}\n"
        "Give wider bounds or a longer duration, another guess=, or more intervals (docs/optimal_control.md)"
    )


def _violated(program: NonlinearProgram, minimum: Minimum, name_of: RowNames) -> Iterator[str]:
    """Texts about the first rows of each kind that are violated, the worst first."""
    values = program.constraints(minimum.x)
    beyond = np.maximum(np.maximum(program.low - values, values - program.high), 0.0)
    names: dict[str, None] = {}
    for row in np.argsort(-np.nan_to_num(beyond, nan=np.inf), kind="stable").tolist():
        if not beyond[row] > 1e-8 or len(names) == _SHOWN:
            return
        label, index = next((label, row - each.start) for label, each in _labels(program) if row in each)
        name, t = name_of(label, index)
        if name not in names:
            names[name] = None
            size = beyond[row] / program.row_scale[row]
            yield f"{name}{'' if t is None else f' at t = {t:.6g} s'}: by {size:.3g}"


def _labels(program: NonlinearProgram) -> Iterator[tuple[str, range]]:
    return iter(program.transcription.labels.items())


def _joint_name(own: Sequence[str], label: str, index: int) -> tuple[str, None]:
    return own[index], None


def row_name(motion: Trajectory, label: str, index: int) -> tuple[str, float | None]:
    """What a row is in the names of the user, and its time."""
    layout = motion.layout
    statement, model, stages = layout.statement, layout.statement.model, layout.tau * motion.duration
    if label.startswith("defects"):
        k, i = divmod(index, len(statement.components))
        return f"the rate of {statement.components[i]}", float(motion.mesh[k])
    if label == MOMENTS:
        k, i = divmod(index, len(statement.components))
        t = layout.moments.tau[layout.moments.own[k]] * motion.duration
        return f"the rate of {statement.components[i]}", float(t)
    if label == "equations of motion":
        n = len(model.speeds) + layout.multipliers.shape[1]
        k, i = divmod(index, n)
        of_speed = i < len(model.speeds)
        name = f"of {symbol_name(model.speeds[i])}" if of_speed else f"constraint {i - len(model.speeds) + 1}"
        return f"the equation of motion, {name}", float(stages[k])
    if label == "path":
        k, i = divmod(index, len(statement.path))
        return f"path: {statement.path[i].text}", float(stages[k])
    if label in ("start", "end"):
        ends = statement.start if label == "start" else statement.end
        return f"{label}: {ends.conditions[index].text}", None
    if label == "coupled":
        return f"subject_to: {statement.coupled[index].text}", None
    return "a constraint of the model on positions or speeds", None
