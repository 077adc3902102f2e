"""Joints of motions that follow each other: states that go on, and states that jump."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from kanegen.arrays import Array
from kanegen.control.code import PointCode, compiled_points
from kanegen.control.layout import Layout, Places
from kanegen.control.moments import require_states
from kanegen.control.points import JOINT
from kanegen.control.program import NonlinearProgram
from kanegen.control.statement import Condition, Statement, require_known
from kanegen.control.terms import momentary
from kanegen.control.transcription import Integers, Points, Transcription
from kanegen.errors import SolveError, brief
from kanegen.solve.values import known_name


@dataclass(frozen=True, eq=False)
class Joint:
    """What a motion begins with, from the motion before it, both by names of components of the state.

    ``continuous``: components that both have, and that go on; ``jumps``: expressions of the values at the end of the
    motion before. ``code``: their compiled functions, None without jumps.
    """

    continuous: tuple[str, ...]
    jumps: Mapping[str, Any]
    code: PointCode | None


def read_joint(before: Statement, after: Statement, given: Any, what: str) -> Joint:
    """The joint of two problems; ``given``: expressions of jumps, or None for what is free. Raises `SolveError`."""
    if given is not None and not isinstance(given, Mapping):
        raise SolveError(f"{what} is {brief(given)}; expected a mapping from names or symbols to expressions, or None")
    named: dict[str, Any] = {}
    for key, value in (given or {}).items():
        name = known_name(key, after.components, f"coordinate, speed or state of the later motion for {what}")
        named[name] = None if value is None else momentary(value, f"{name} in {what}")
    continuous = tuple(name for name in after.components if name in before.components and name not in named)
    _require_bounds(before, after, continuous, what)
    jumps = {name: value for name, value in named.items() if value is not None}
    require_known(before.model, jumps.values())
    for value in jumps.values():
        require_states(before, "at the end of the earlier motion", value)
    code = compiled_points(before, lambda maker: (maker.joint(list(jumps.values())),)) if jumps else None
    return Joint(continuous, jumps, code)


def _require_bounds(before: Statement, after: Statement, names: Sequence[str], what: str) -> None:
    """Raise `SolveError` for a component that goes on, and that no value allows on both sides."""
    for name in names:
        last, first = (
            each.bounds[statement.components.index(name)]
            for each, statement in ((before.end, before), (after.start, after))
        )
        if max(last[0], first[0]) > min(last[1], first[1]):
            texts = [Condition(sympy.Symbol(name), *pair).text for pair in (last, first)]
            raise SolveError(
                f"{what}: {name} goes on, but the conditions {texts[0]} at the end and {texts[1]} at the start of the "
                "next motion contradict each other: give its jump, or None if it is free"
            )


def continued(joint: Joint, before: Layout, after: Layout) -> tuple[Places, Places]:
    """The places of the states that go on, at the end of the first motion and at the start of the second."""
    names = [list(layout.statement.components) for layout in (before, after)]
    first, second = ([own.index(name) for name in joint.continuous] for own in names)
    return before.mesh_y[-1, first], after.mesh_y[0, second]


@dataclass(frozen=True, eq=False)
class _JointLayout:
    """Variables of a joint: the end of the first motion, jumps, and what of duration and parameters is unknown."""

    n_x: int
    known: Array
    parameters: Places


def joint_program(
    joint: Joint, code: PointCode, layouts: tuple[Layout, Layout], places: tuple[Integers, Integers], scale: Array
) -> tuple[NonlinearProgram, Integers]:
    """The conditions of the jumps as a nonlinear program without a cost, and the places of its variables.

    ``places``: those of the variables of both motions among all. ``scale``: the units of all variables.
    """
    before, after = layouts
    statement, names = before.statement, list(after.statement.components)
    jumped = after.mesh_y[0, [names.index(name) for name in joint.jumps]]
    parameters = list(statement.parameters)
    single = [*before.parameters[parameters], *([before.duration] if statement.is_timed else [])]
    own = np.concatenate([before.mesh_y[-1], single]).astype(np.int64)
    among_all = np.concatenate([places[0][own], places[1][jumped]])
    known = np.concatenate([statement.values, statement.held, [statement.duration[0]]])
    n_x, n_y, n_p, n_r = among_all.size, before.mesh_y.shape[1], statement.values.size, statement.held.size
    of_parameters = n_x + np.arange(n_p)
    of_parameters[parameters] = n_y + np.arange(len(parameters))
    duration = n_y + len(parameters) if statement.is_timed else n_x + known.size - 1
    r = n_x + n_p + np.arange(n_r)
    r[list(statement.rated)] = np.arange(statement.n_state, n_y)
    arguments = np.concatenate([np.arange(statement.n_state), r, own.size + np.arange(len(joint.jumps)), [duration]])
    layout: Any = _JointLayout(n_x, known, of_parameters.astype(np.int32))
    points = Points(code.kinds[0], arguments.astype(np.int32)[None], 0)
    values, none = points.values("rows").ravel(), np.empty(0, np.int64)
    rows, zero = np.arange(values.size), np.zeros(values.size)
    curved = rows, values, np.ones(values.size)
    labels = {JOINT: range(values.size)}
    transcription = Transcription(layout, (points,), (none, none, np.empty(0)), curved, labels, zero, zero)
    own_scale = scale[among_all]
    return NonlinearProgram(transcription, code, own_scale, 1.0 / own_scale[own.size :]), among_all


def joint_names(joints: Sequence[Joint]) -> list[list[str]]:
    """What the conditions of each joint with jumps are, for messages."""
    return [
        [f"joint {k + 1}: {name} = {str(value).replace('(t)', '')}" for name, value in joint.jumps.items()]
        for k, joint in enumerate(joints)
        if joint.code is not None
    ]
