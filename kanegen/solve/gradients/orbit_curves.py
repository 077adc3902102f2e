"""Curves of periodic motions along a parameter, through folds, with the bifurcations on them.

Between two points a bifurcation is where a test function changes its sign: the component of the tangent along the
parameter (fold), the product of 1 + mu over the transverse multipliers mu (period doubling), that of 1 - mu (another
curve branches off, or a fold), and that of 1 - mu nu over all pairs (Neimark-Sacker, if the pair is complex). The test
functions are those of Y. A. Kuznetsov, Elements of Applied Bifurcation Theory, Springer 2004, section 10.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array, ragged
from kanegen.display import Table, value_text
from kanegen.errors import SolveError, brief
from kanegen.solve.analysis.arclength import follow, unit_tangent
from kanegen.solve.gradients.directions import Direction, Kind
from kanegen.solve.gradients.orbit_search import record, search, sizes_of
from kanegen.solve.gradients.orbits import Floquet, Multipliers, PeriodicMotion, number_text
from kanegen.solve.gradients.periods import Period
from kanegen.solve.gradients.shooting import Nodes, Setting, Shooting, System, Varied
from kanegen.solve.values import key_name, number, shown
from kanegen.units import Unit

_CORRECTIONS: Final = 12
_BISECTIONS: Final = 40
_LOCATED: Final = 1e-9
"""Width of the interval in which a bifurcation is located, as a fraction of a step."""
_VANISHED: Final = 1e-2
"""A test function that jumps has no value below this fraction of those at the ends of the step."""
_POINTS: Final = 2000
"""Points of a motion among which the largest value is looked for."""
_REAL: Final = 1e-6
"""Imaginary parts of multipliers below this size are zero."""


@dataclass(frozen=True, eq=False)
class Bifurcation:
    """A bifurcation on a curve of periodic motions.

    Attributes
    ----------
    kind
        ``"fold"``, ``"period doubling"``, ``"Neimark-Sacker"``, or ``"branching"`` where another curve branches off.
    value
        The value of the parameter.
    orbit
        The :class:`PeriodicMotion` there.
    index
        The bifurcation lies between the points ``index`` and ``index + 1`` of the curve.
    """

    kind: str
    value: float
    orbit: PeriodicMotion
    index: int

    def __repr__(self) -> str:
        return f"<Bifurcation: {self.kind} at {self.value:.8g}, period {self.orbit.period:.6g} s>"


@dataclass(frozen=True, eq=False)
class PeriodicCurve:
    """Periodic motions along a parameter. ``curve["theta"]`` (m,) is the largest value of a variable in each of them.

    Attributes
    ----------
    parameter, values
        The name of the parameter, and its values (m,).
    orbits
        The :class:`PeriodicMotion` at each value.
    bifurcations
        Each :class:`Bifurcation` on the curve, in order.
    periods
        (m,), s.
    multipliers
        The transverse multipliers (m, k), sorted by falling magnitude.
    stability
        ``"stable"``, ``"unstable"`` or ``"marginal"``, one for each motion.
    """

    parameter: str
    values: Array
    orbits: tuple[PeriodicMotion, ...]
    bifurcations: tuple[Bifurcation, ...] = ()

    @property
    def periods(self) -> Array:
        """Periods (m,), s."""
        return np.array([orbit.period for orbit in self.orbits])

    @property
    def multipliers(self) -> NDArray[np.complex128]:
        """Transverse multipliers (m, k)."""
        return ragged([orbit.transverse for orbit in self.orbits])

    @property
    def stability(self) -> tuple[str, ...]:
        """The stability of each motion."""
        return tuple(orbit.stability for orbit in self.orbits)

    def __getitem__(self, name: Any) -> Array:
        """The largest value (m,) of a variable during each motion; of an output at the steps."""
        return np.array([largest(orbit, name) for orbit in self.orbits])

    def __len__(self) -> int:
        return len(self.orbits)

    @property
    def unit(self) -> Unit | None:
        """The unit in which plots and tables show the parameter; None without units."""
        return self.orbits[0].units.get(self.parameter) if self.orbits else None

    def _repr_html_(self) -> str:
        """What a notebook shows: the parameter, the period, the stability, the largest multiplier and bifurcations."""
        found = {point.index: point for point in reversed(self.bifurcations)}
        rows = []
        for k, (value, orbit) in enumerate(zip(self.values.tolist(), self.orbits, strict=True)):
            first = number_text(complex(orbit.transverse[0])) if len(orbit.transverse) else ""
            after = f"{found[k].kind} at {found[k].value:.6g}" if k in found else ""
            shown_value = value_text(self.parameter, value, orbit.units)
            rows.append((shown_value, f"{orbit.period:.6g}", orbit.stability, first, after))
        headings = (self.parameter, "period (s)", "stability", "largest multiplier", "then")
        return Table.of(f"{len(self)} periodic motions", headings, rows, right=headings[:2]).html()

    def __repr__(self) -> str:
        found = [f"{kind} {self.stability.count(kind)}" for kind in dict.fromkeys(self.stability)]
        points = shown([f"{point.kind} at {point.value:.6g}" for point in self.bifurcations])
        span = f"{self.values[0]:.6g} to {self.values[-1]:.6g}" if len(self.values) else "none"
        text = f"{self.parameter} = {span}, {len(self)} periodic motions: {', '.join(found)}"
        return f"<PeriodicCurve: {text}{f'; {points}' if points else ''}>"


def largest(orbit: PeriodicMotion, name: Any) -> float:
    """The largest value of a variable during a motion; of an output, or an input, at the steps."""
    key, motion = key_name(name), orbit.solution
    if key not in orbit.values:
        return float(np.max(motion[name]))
    times = np.linspace(motion.t[0], motion.last[0], _POINTS)
    states = np.hstack([np.asarray(part).reshape(_POINTS, -1) for part in motion(times)])
    return float(states[:, list(orbit.values).index(key)].max())


def read_limits(limits: Any) -> tuple[float, float]:
    """The start and the other end of an interval. Raises `SolveError`."""
    try:
        first, end = limits
    except (TypeError, ValueError) as error:
        raise SolveError(f"limits is {brief(limits)}; expected 2 numbers: the start and the other end") from error
    first, end = number(first, "limits[0]"), number(end, "limits[1]")
    if first == end:
        raise SolveError(f"limits are {first!r} and {end!r}; expected two different numbers")
    return first, end


@dataclass(frozen=True, eq=False)
class _Point:
    """A periodic motion on the curve with its equations."""

    p: float
    shooting: Shooting
    system: System

    @property
    def transverse(self) -> Multipliers:
        """The transverse multipliers."""
        return Floquet.of(self.system, self.shooting.setting).transverse


@dataclass(eq=False)
class _Line:
    """The curve in the unknowns of shooting and the parameter, relative to the ``interval``."""

    solver: Any
    name: str
    setting: Setting
    interval: float
    period: Period | None
    tolerance: float
    reason: str = ""

    @property
    def what(self) -> str:
        """The points in messages."""
        return f"periodic motions of {self.solver.description.name!r}"

    @property
    def weights(self) -> Array:
        """Weights of the nodes, of the period, and of the parameter in the arc length."""
        m = self.setting.segments
        nodes = np.full(m * len(self.setting.scale), m**-0.5)
        return np.concatenate([nodes, np.zeros(int(self.setting.is_period_unknown)), [1.0]])

    def shooting(self, p: float, scale: Array) -> Shooting:
        """The equations at a value of the parameter, relative to these sizes of the components."""
        d, setting = self.solver.description, replace(self.setting, scale=scale)
        if self.name in d.parameters:
            solver = self.solver.with_parameters({self.name: p})
            rate = 0.0 if self.period is None else self.period.rate(solver, self.name)
            direction = Direction(self.name, Kind.PARAMETER, d.parameters.index(self.name))
            return Shooting(solver, setting, Varied(direction, self.interval, rate))
        direction = Direction(self.name, Kind.INPUT, d.inputs.index(self.name))
        given = replace(setting, r={**(setting.r or {}), self.name: p})
        return Shooting(self.solver, given, Varied(direction, self.interval))

    def placed(self, shooting: Shooting, nodes: Nodes) -> Nodes:
        """The nodes with the period of forced motions, on the constraints."""
        known = None if self.setting.is_period_unknown or self.setting.section else self.period
        return shooting.consistent(replace(nodes, period=known.value(shooting.solver)) if known else nodes)

    def parameter(self, point: _Point) -> float:
        """The value of the parameter."""
        return point.p

    def tangent(self, point: _Point) -> Array:
        """The unit tangent; its sign is arbitrary. Raises `SolveError` where the curve is not unique."""
        advice = (
            "where motions form a family, as in conservative models, hold a start value by fixed= in periodic_motion"
        )
        return unit_tangent(self, np.vstack([point.system.matrix, point.system.kept]), point.p, advice)

    def corrected(self, last: _Point, tangent: Array, length: float) -> _Point | None:
        """The motion near the end of the tangent, on the plane perpendicular to it; None if there is none.

        The sizes of the components grow with the motion, so that steps do, too.
        """
        point = self.near(last, tangent, length)
        if point is None:
            return None
        motion = point.shooting.motion(
            self.setting.t0, self.setting.t0 + point.system.duration, point.system.nodes.y[0]
        )
        sizes = sizes_of(self.solver.description, np.hstack([motion.q, motion.u, motion.s]))
        shooting = self.shooting(point.p, np.maximum(self.setting.scale, sizes))
        return _Point(point.p, shooting, shooting.system(point.system.nodes))

    def near(self, last: _Point, tangent: Array, length: float) -> _Point | None:
        """The motion near the end of the tangent, with the sizes of the last one; None if there is none."""
        try:
            nodes, p = self._moved(last, length * tangent)
            return self._newton(nodes, p, self.weights**2 * tangent, last.shooting.setting.scale)
        except SolveError as error:
            self.reason = str(error)
            return None

    def _moved(self, point: _Point, dx: Array) -> tuple[Nodes, float]:
        p = point.p + self.interval * float(dx[-1])
        shooting = self.shooting(p, point.shooting.setting.scale)
        return self.placed(shooting, shooting.moved(point.system.nodes, dx)), p

    def _newton(self, nodes: Nodes, p: float, row: Array, scale: Array) -> _Point | None:
        """The motion near the nodes, whose corrections are orthogonal to the row; None if there is none."""
        best: _Point | None = None
        for _ in range(_CORRECTIONS):
            shooting = self.shooting(p, scale)
            point = _Point(p, shooting, shooting.system(nodes))
            is_good = best is not None and best.system.error <= self.tolerance
            if best is not None and is_good and point.system.error >= 0.1 * best.system.error:
                return point if point.system.error < best.system.error else best
            best = point
            nodes, p = self._moved(point, point.system.correction(row))
        return None

    def at_limit(self, inside: _Point, outside: _Point, limit: float) -> _Point:
        """The motion at the limit between two points. Raises `SolveError`."""
        part = (limit - inside.p) / (outside.p - inside.p)
        a, b = inside.system.nodes, outside.system.nodes
        nodes = Nodes(a.y + part * (b.y - a.y), a.period + part * (b.period - a.period))
        return self.at(nodes, limit, inside.shooting.setting.scale)

    def at(self, nodes: Nodes, p: float, scale: Array) -> _Point:
        """The motion at a value of the parameter. Raises `SolveError`."""
        shooting = self.shooting(p, scale)
        plain = Shooting(shooting.solver, shooting.setting)
        system, _ = search(plain, self.placed(plain, nodes), self.tolerance)
        return _Point(p, shooting, shooting.system(system.nodes))

    def distance(self, a: _Point, tangent: Array, b: _Point) -> float:
        """The distance of a point along the tangent at another one."""
        dy = ((b.system.nodes.y - a.system.nodes.y) / a.shooting.setting.scale).ravel()
        dx = np.concatenate([dy, np.zeros(int(self.setting.is_period_unknown)), [(b.p - a.p) / self.interval]])
        return float((self.weights**2 * tangent) @ dx)


def curve_of(
    solver: Any,
    name: str,
    limits: tuple[float, float],
    orbit: PeriodicMotion,
    steps: tuple[float, int],
    tolerance: float,
) -> PeriodicCurve:
    """The curve; see :meth:`kanegen.Solver.periodic_motions_curve`, whose arguments these are."""
    first, end = limits
    setting = orbit.setting
    if name in solver.description.inputs and not (setting.r is None or isinstance(setting.r, Mapping)):
        raise SolveError(f"the input {name} can vary if the orbit was found with r=None or a mapping of inputs")
    line = _Line(solver, name, setting, abs(end - first), orbit.period_of, tolerance)
    stages = follow(line, line.at(orbit.nodes, first, setting.scale), end, *steps)
    points = [point for point, _ in stages]
    if points[-1].p not in (first, end):
        raise SolveError(
            f"the curve of periodic motions has not left the interval of {name} from {first:.6g} to {end:.6g} after "
            f"{steps[1]} steps, at {points[-1].p:.6g}: raise max_steps= or step=; the curve can be closed"
        )
    orbits = tuple(_orbit(point, orbit) for point in points)
    return PeriodicCurve(name, np.array([point.p for point in points]), orbits, tuple(_located(line, stages, orbit)))


def _orbit(point: _Point, like: PeriodicMotion) -> PeriodicMotion:
    return record(point.shooting, point.system, 0, like.period_of)


# -- bifurcations -------------------------------------------------------------------------------------------------

Stage = tuple[_Point, Array]
Test = Callable[[_Line, Stage, _Point], float]


def _along(line: _Line, stage: Stage, point: _Point) -> float:
    """The component of the tangent along the parameter, positive where the curve goes on as at the stage."""
    if point is stage[0]:
        return float(stage[1][-1])
    tangent = line.tangent(point)
    return float(tangent[-1] * (np.sign((line.weights * stage[1]) @ (line.weights * tangent)) or 1.0))


def _doubling(line: _Line, stage: Stage, point: _Point) -> float:
    return float(np.prod(1.0 + point.transverse).real)


def _branching(line: _Line, stage: Stage, point: _Point) -> float:
    return float(np.prod(1.0 - point.transverse).real)


def _torus(line: _Line, stage: Stage, point: _Point) -> float:
    return float(np.prod([1.0 - a * b for a, b in combinations(point.transverse.tolist(), 2)]).real)


_TESTS: Final[tuple[tuple[str, Test], ...]] = (
    ("fold", _along),
    ("branching", _branching),
    ("period doubling", _doubling),
    ("Neimark-Sacker", _torus),
)


def _located(line: _Line, stages: list[Stage], like: PeriodicMotion) -> Iterator[Bifurcation]:
    """The bifurcations on the curve, in order."""
    for k, (stage, (after, _)) in enumerate(pairwise(stages)):
        length = line.distance(*stage, after)
        found: list[tuple[str, float, _Point]] = []
        for kind, test in _TESTS:
            ends = test(line, stage, stage[0]), test(line, stage, after)
            if kind == "branching" and any(name == "fold" for name, _, _ in found):
                continue  # a multiplier passes 1 there, too
            if ends[0] * ends[1] < 0.0:
                place = _zero(line, stage, test, ends, length)
                if place is not None and _is(kind, place[1]):
                    found.append((kind, *place))
        for kind, _, point in sorted(found, key=lambda each: each[1]):
            yield Bifurcation(kind, point.p, _orbit(point, like), k)


def _zero(
    line: _Line, stage: Stage, test: Test, ends: tuple[float, float], length: float
) -> tuple[float, _Point] | None:
    """The place on the tangent, and the point, where a test function is zero (method of Illinois); None if it jumps."""
    (a, f_a), (b, f_b) = (0.0, ends[0]), (length, ends[1])
    best: tuple[float, float, _Point] | None = None
    for _ in range(_BISECTIONS):
        x = (a * f_b - b * f_a) / (f_b - f_a)
        point = line.near(*stage, x)
        if point is None:
            return None
        f = test(line, stage, point)
        if best is None or abs(f) < best[0]:
            best = abs(f), x, point
        if f * f_b < 0.0:
            a, f_a = b, f_b
        else:
            f_a /= 2.0
        is_done = abs(b - x) <= _LOCATED * abs(length) or f == 0.0
        b, f_b = x, f
        if is_done:
            break
    if best is None or best[0] > _VANISHED * min(map(abs, ends)):
        return None
    return best[1], best[2]


def _is(kind: str, point: _Point) -> bool:
    """Whether a zero of a test function is a bifurcation: pairs of real multipliers with the product 1 are not."""
    if kind != "Neimark-Sacker":
        return True
    pairs = list(combinations(point.transverse.tolist(), 2))
    a, b = min(pairs, key=lambda pair: abs(1.0 - pair[0] * pair[1]))
    return bool(abs(a.imag) > _REAL and abs(b.imag) > _REAL)
