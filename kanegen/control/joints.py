"""Joints of motions that follow each other: states that go on, states that jump, and impacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
from kanegen.model.expressions import symbol_name
from kanegen.solve.values import known_name


@dataclass(frozen=True)
class PlasticImpact:
    """A joint of `kanegen.Phases` at which the constraints of the later phase act at once, by impulses.

    The speeds after it satisfy all constraints of the later phase, and ``M (u+ - u-) = J^T Lambda`` with its mass
    matrix M, the Jacobian matrix J of its constraints, and impulses Lambda (Brogliato 2016, section 4.2.5; perfectly
    plastic). Coordinates do not jump.

    Parameters
    ----------
    before
        What the later phase would begin with without the impulses, as in ``joints=`` of `kanegen.Phases`: expressions
        of the values at the end of the earlier phase. What is not named goes on. Here legs change their roles, for
        example: ``{q1: q2, q2: q1, u1: u2, u2: u1}``.
    """

    before: Mapping[Any, Any] | None = None


@dataclass(frozen=True, eq=False)
class Joint:
    """What the motion number ``after`` begins with, from the motion number ``before``, by names of components.

    ``continuous``: components that both have, and that go on; ``jumps``: expressions of the values at the end of the
    earlier motion. ``is_impact``: whether impulses change the speeds that go on or jump.
    """

    before: int
    after: int
    continuous: tuple[str, ...]
    jumps: Mapping[str, Any]
    is_impact: bool

    @property
    def title(self) -> str:
        """The joint in messages."""
        return f"joint of the phases {self.before + 1} and {self.after + 1}"


class CompiledJoint(NamedTuple):
    """A joint with the compiled functions of its jumps and of the balance of impulses, None where there are none."""

    joint: Joint
    jumps: PointCode | None
    impact: PointCode | None


def compiled_joint(joint: Joint, statements: Sequence[Statement]) -> CompiledJoint:
    """A joint with its functions. Raises `DerivationError` and `BuildError`."""
    before, after, values = statements[joint.before], statements[joint.after], list(joint.jumps.values())
    jumps = compiled_points(before, lambda maker: (maker.joint(values),)) if values else None
    impact = compiled_points(after, lambda maker: (maker.impact(),)) if joint.is_impact else None
    return CompiledJoint(joint, jumps, impact)


def read_joint(statements: Sequence[Statement], numbers: tuple[int, int], given: Any, what: str) -> Joint:
    """The joint of two of the problems; ``given``: a mapping to expressions, or to None for what is free, or an impact.

    Raises `SolveError`.
    """
    before, after = (statements[k] for k in numbers)
    mapping = given.before if isinstance(given, PlasticImpact) else given
    if mapping is not None and not isinstance(mapping, Mapping):
        raise SolveError(
            f"{what} is {brief(mapping)}; expected a mapping from names or symbols to expressions, a "
            "kanegen.PlasticImpact, or None"
        )
    named: dict[str, Any] = {}
    for key, value in (mapping or {}).items():
        name = known_name(key, after.components, f"coordinate, speed or state of the later motion for {what}")
        if name in named:
            raise SolveError(f"{what} contains {name!r} twice, by name and by symbol")
        named[name] = None if value is None else momentary(value, f"{name} in {what}")
        if value is not None and named[name].has(sympy.nan, sympy.I, sympy.oo, sympy.zoo):
            raise SolveError(f"{name} in {what} is {value}; expected an expression with finite real values")
    continuous = tuple(name for name in after.components if name in before.components and name not in named)
    jumps = {name: value for name, value in named.items() if value is not None}
    require_known(before.model, jumps.values())
    for value in jumps.values():
        require_states(before, "at the end of the earlier motion", value)
    if isinstance(given, PlasticImpact):
        _require_speeds(after, {*continuous, *jumps}, what)
    joint = Joint(*numbers, continuous, jumps, isinstance(given, PlasticImpact))
    _require_bounds(before, after, _going_on(joint, after), what)
    return joint


def _require_speeds(after: Statement, known: set[str], what: str) -> None:
    """Raise `SolveError` for speeds whose values before an impact are not known."""
    missing = [name for name in map(symbol_name, after.model.speeds) if name not in known]
    if missing:
        raise SolveError(
            f"{what}: the speeds {', '.join(missing)} before the impact are not known, because the earlier phase has "
            "none of these names, or they are None: give expressions in kanegen.PlasticImpact({...})"
        )


def _going_on(joint: Joint, after: Statement) -> tuple[str, ...]:
    """The components that have the same value on both sides."""
    speeds = set(map(symbol_name, after.model.speeds)) if joint.is_impact else set()
    return tuple(name for name in joint.continuous if name not in speeds)


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


def continued(joint: Joint, layouts: Sequence[Layout]) -> tuple[Places, Places]:
    """The places of the states that go on, at the end of the earlier motion and at the start of the later one."""
    before, after = layouts[joint.before], layouts[joint.after]
    going_on = _going_on(joint, after.statement)
    first, second = ([list(layout.statement.components).index(name) for name in going_on] for layout in (before, after))
    return before.mesh_y[-1, first], after.mesh_y[0, second]


class JointPrograms:
    """The conditions of joints as nonlinear programs without costs, in order, and the ``places`` of their variables.

    Speeds before an impact that follow from jumps, and impulses, are further unknowns behind all others: ``n_x`` is the
    number of all, ``names`` are those of the conditions.
    """

    def __init__(
        self, joints: Sequence[CompiledJoint], layouts: Sequence[Layout], places: Sequence[Integers], scale: Array
    ) -> None:
        self.programs: list[NonlinearProgram] = []
        self.places: list[Integers] = []
        self.names: list[list[str]] = []
        self._layouts, self._all, self.scale = layouts, places, scale
        for joint in joints:
            self._add(joint)

    @property
    def n_x(self) -> int:
        """The number of all variables."""
        return self.scale.size

    def _add(self, compiled: CompiledJoint) -> None:
        joint, jumps, impact = compiled
        before, after = self._layouts[joint.before], self._layouts[joint.after]
        components = list(after.statement.components)
        targets = dict(zip(components, self._all[joint.after][after.mesh_y[0]].tolist(), strict=True))
        if joint.is_impact:
            targets |= self._speeds_before(joint, before, targets)
        if jumps is not None:
            jumped = np.array([targets[name] for name in joint.jumps])
            self._program(jumps, joint.before, -1, jumped, 1.0 / self.scale[jumped])
            self.names.append([f"{joint.title}: {name} = {_shown(value)}" for name, value in joint.jumps.items()])
        if impact is not None:
            speeds = [symbol_name(u) for u in after.statement.model.speeds]
            statement = after.statement
            others = statement.n_state + statement.held.size + len(speeds) + 1  # arguments, with the duration
            impulses = self._new(np.ones(impact.kinds[0].n_arguments - others))
            unknown = np.concatenate([[targets[name] for name in speeds], impulses]).astype(np.int64)
            self._program(impact, joint.after, 0, unknown, np.ones(len(speeds)))
            self.names.append([f"{joint.title}: balance of impulses of {name}" for name in speeds])

    def _speeds_before(self, joint: Joint, before: Layout, targets: Mapping[str, int]) -> dict[str, int]:
        """The places of the speeds before an impact: those at the end of the earlier motion, or new ones."""
        known = dict(zip(before.statement.components, self._all[joint.before][before.mesh_y[-1]].tolist(), strict=True))
        speeds = map(symbol_name, self._layouts[joint.after].statement.model.speeds)
        return {
            name: known[name] if name in joint.continuous else int(self._new(self.scale[[targets[name]]])[0])
            for name in speeds
        }

    def _new(self, scale: Array) -> Integers:
        """The places of new variables with these units."""
        self.scale = np.concatenate([self.scale, scale])
        return np.arange(self.n_x - scale.size, self.n_x)

    def _program(self, code: PointCode, motion: int, end: int, further: Integers, row_scale: Array) -> None:
        """Add the values of a joint at the start or the ``end`` of a motion, which depend on ``further`` variables.

        The variables are the state, the unknown duration and parameters of the motion, and the further ones.
        """
        layout, statement = self._layouts[motion], self._layouts[motion].statement
        unknown, timed = list(statement.parameters), [layout.duration] if statement.is_timed else []
        own = np.concatenate([layout.mesh_y[end], timed, layout.parameters[unknown]]).astype(np.int64)
        places = np.concatenate([self._all[motion][own], further])
        n_y, n_x, n_p = len(statement.components), places.size, statement.values.size
        known = np.concatenate([statement.values, statement.held, [statement.duration[0]]])
        parameters = n_x + np.arange(n_p)
        parameters[unknown] = n_y + len(timed) + np.arange(len(unknown))
        r = n_x + n_p + np.arange(statement.held.size)
        r[list(statement.rated)] = np.arange(statement.n_state, n_y)
        duration = n_y if timed else n_x + known.size - 1
        arguments = np.concatenate([np.arange(statement.n_state), r, own.size + np.arange(further.size), [duration]])
        points = Points(code.kinds[0], arguments.astype(np.int32)[None], 0)
        transcription = _transcription(_JointLayout(n_x, known, parameters.astype(np.int32)), points)
        self.programs.append(NonlinearProgram(transcription, code, self.scale[places], row_scale))
        self.places.append(places)


@dataclass(frozen=True, eq=False)
class _JointLayout:
    """The variables of a joint, followed by known numbers, and the places of the parameters among them."""

    n_x: int
    known: Array
    parameters: Places


def _transcription(layout: Any, points: Points) -> Transcription:
    """The conditions that all values of a point are zero."""
    values, none = points.values("rows").ravel(), np.empty(0, np.int64)
    rows, zero = np.arange(values.size), np.zeros(values.size)
    curved = rows, values, np.ones(values.size)
    return Transcription(layout, (points,), (none, none, np.empty(0)), curved, {JOINT: range(values.size)}, zero, zero)


def _shown(value: Any) -> str:
    return str(value).replace("(t)", "")
