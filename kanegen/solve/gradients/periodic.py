"""Periodic motions: what a solver does to find them, and what it reads from the guess."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.methods.table import FIXED_STEP
from kanegen.errors import SolveError, brief
from kanegen.run_options import RunOptions
from kanegen.solve.consistent import start_state
from kanegen.solve.gradients.code import VariationCode
from kanegen.solve.gradients.orbit_curves import PeriodicCurve, curve_of, read_limits
from kanegen.solve.gradients.orbit_search import extent, record, require_motion, search, sizes_of
from kanegen.solve.gradients.orbits import PeriodicMotion
from kanegen.solve.gradients.periods import Period
from kanegen.solve.gradients.shooting import Nodes, Setting, Shooting
from kanegen.solve.run.integrate import Integrable
from kanegen.solve.run.options import read_options
from kanegen.solve.solution import Solution
from kanegen.solve.values import (
    Variables,
    by_name,
    known_name,
    names_in,
    number,
    positive,
    positive_integer,
    require_none,
    time_or_start,
    unknown,
)

_DEFAULTS: Final[RunOptions] = {"method": "dop853", "rtol": 1e-11, "atol": 1e-13, "max_steps": 20_000}
_STEPS: Final = 64
"""Least number of steps in a period: those that the motion needs can be too few for its derivative, as at rest."""
_REFUSED: Final = ("t_eval", "dense_output", "sensitivities", "control", "progress")
_AT_REST: Final = 1e-7
"""A state that moves less than this fraction of its size in a period is an equilibrium."""
_SAMPLES: Final = 16
_GOLDEN: Final = 0.6180339887498949
_ASIDE: Final = 0.05
"""States are moved aside by this fraction of their size, because terms with time can vanish on the motion itself."""
_SAME: Final = 1e-9
"""Relative difference of rates that are equal."""
_NOT_PERIODIC: Final = 1e-6


class Periodic(Integrable):
    """The methods of :class:`~kanegen.Solver` for periodic motions."""

    def periodic_motion(
        self,
        guess: Any = None,
        *,
        period: Any = None,
        t: float | None = None,
        r: Any = None,
        section: Any = None,
        forced: bool | None = None,
        segments: int | None = None,
        advance: Mapping[Any, float] | None = None,
        fixed: str | Iterable[Any] = (),
        tolerance: float = 1e-9,
        **options: Any,
    ) -> PeriodicMotion:
        """The periodic motion near a guess, with its Floquet multipliers, by shooting with exact derivatives.

        If nothing depends on time, the period is an unknown; otherwise the motion has the given period. Newton's method
        with the derivatives of the motions finds the start (docs/periodic.md).

        Parameters
        ----------
        guess
            The start: a mapping from names or symbols of coordinates, speeds and states to values, which ``initial``
            and the constraints complete; an array (n_y,) of all of them; a :class:`~kanegen.Solution`, of which the
            last period is taken; a :class:`kanegen.results.PeriodicMotion`. None: ``initial``.
        period
            The period or a guess of it, s; for a forced motion also a SymPy expression of parameters,
            ``2*pi/omega``, which :meth:`periodic_motions_curve` evaluates at each value. None: that of the guess, if it
            is a periodic motion.
        t
            The time of the start, s; default: that of ``initial``, or 0.
        r
            Inputs as for :meth:`integrate`.
        section
            The name of an event of the model: the motion goes from the state after it to the next one (return map). The
            ``guess`` is a state after the event.
        forced
            Whether the motion has exactly this period; None: if the right-hand side, a gap, or the guard of an event
            that acts depends on time at one of several states of the guess. True also finds the motion of an autonomous
            model that has this period.
        segments
            The number of segments of equal duration, each with a start of its own (multiple shooting): more, if the
            motion is so unstable that it leaves within a period. None: 1, or that of the guess.
        advance
            Coordinates that increase by an amount in each period: ``{"theta": 2*pi}`` for a full turn.
        fixed
            Names (or symbols) of start values that do not change, to select a motion where they form a family, as in
            conservative models; otherwise one near the guess is found.
        tolerance
            Largest distance between the start and the end, relative to the sizes of the components.
        **options
            Options of :meth:`integrate`; by default ``method="dop853"``, ``rtol=1e-11``, ``atol=1e-13``,
            ``max_steps=20_000``, and ``max_step`` is 1/64 of the period, because the steps are also those of the
            derivatives.

        Raises
        ------
        SolveError
            If no periodic motion is found, with the residual; if the guess is an equilibrium or the search ends at one;
            for a period that is not positive, unknown names, and motions without derivatives, with the reason.
        """
        guess_of = _Guess(self, guess, period, segments)
        complete = _run_options(self, options, guess_of.period.value(self))
        t0 = guess_of.time(t)
        start = guess_of.start(t0, r, complete)
        setting = Setting(
            t0=t0,
            segments=guess_of.segments,
            scale=np.ones(len(start)),
            advance=_advance(self, advance),
            fixed=_fixed(self, fixed),
            forced=bool(forced),
            autonomous=not forced,
            section=_section(self, section),
            r=r,
            options=cast(RunOptions, dict(complete)),
        )
        nodes, setting, size = _prepared(self, guess_of, start, setting, forced)
        shooting = Shooting(self, setting)
        system, count = search(shooting, nodes, positive(tolerance, "tolerance"))
        orbit = record(shooting, system, count, guess_of.period)
        require_motion(shooting, system, orbit, size)
        return orbit

    def periodic_motions_curve(
        self,
        parameter: Any,
        limits: Sequence[float],
        orbit: PeriodicMotion,
        *,
        step: float = 0.05,
        max_steps: int = 1000,
        tolerance: float = 1e-9,
    ) -> PeriodicCurve:
        """The curve of periodic motions from ``limits[0]`` of a parameter or input until it leaves the limits.

        The curve is followed by its arc length, so that it passes folds, where the parameter turns back. Folds, period
        doublings, Neimark-Sacker points and points where another curve branches off are located on it.

        Parameters
        ----------
        parameter
            The name or symbol of a parameter or of a constant input.
        limits
            The value at the start, and the other end of the interval.
        orbit
            A periodic motion near the first one; its section, segments, inputs and options are used again.
        step
            The largest step: the root of the sum of squares of all changes, of the start relative to the sizes of the
            components (those of ``orbit``, or larger ones) and of the parameter as a fraction of the interval. Steps
            become shorter where the curve turns.
        max_steps
            Largest number of steps.
        tolerance
            As for :meth:`periodic_motion`.

        Raises
        ------
        SolveError
            If the first periodic motion is not found, if the motions are no curve (families of conservative models:
            hold a start value by ``fixed=``), if a step fails, or if ``max_steps`` steps do not reach the limits.
        """
        if not isinstance(orbit, PeriodicMotion):
            raise SolveError(f"orbit is {brief(orbit)}; expected the result of periodic_motion")
        d = self.description
        name = known_name(parameter, (*d.parameters, *d.inputs), "parameter or input")
        first, end = read_limits(limits)
        steps = positive(step, "step"), positive_integer(max_steps, "max_steps")
        return curve_of(self, name, (first, end), orbit, steps, positive(tolerance, "tolerance"))


@dataclass(frozen=True, eq=False)
class _Guess:
    """What the user gave: the start, the period and the number of segments."""

    solver: Periodic
    given: Any
    given_period: Any
    given_segments: int | None

    @property
    def orbit(self) -> PeriodicMotion | None:
        """The periodic motion that is the guess."""
        return self.given if isinstance(self.given, PeriodicMotion) else None

    @property
    def segments(self) -> int:
        """The number of segments. Raises `SolveError`."""
        if self.given_segments is None:
            return 1 if self.orbit is None else len(self.orbit.nodes.y)
        return positive_integer(self.given_segments, "segments")

    @property
    def period(self) -> Period:
        """The period. Raises `SolveError`."""
        if self.given_period is None and self.orbit is not None:
            return self.orbit.period_of if self.orbit.forced else Period(self.orbit.period)
        if self.given_period is None:
            raise SolveError("period is None; expected the period of the motion in s, or a guess of it")
        return Period.read(self.given_period, self.solver)

    def time(self, t: float | None) -> float:
        """The time of the start."""
        if t is None and self.orbit is not None:
            return self.orbit.t
        if t is None and isinstance(self.given, Solution):
            return float(self.given.last[0]) - self.period.value(self.solver)
        return time_or_start(t, self.solver.description, self.solver.initial)

    def start(self, t: float, r: Any, options: RunOptions) -> Array:
        """The state at the start, (n_y,). Raises `SolveError`."""
        solver, d = self.solver, self.solver.description
        if self.orbit is not None:
            return np.asarray(self.orbit.nodes.y[0])
        if isinstance(self.given, Solution):
            return np.asarray(self.states(np.array([float(self.given.last[0]) - self.period.value(solver)]))[0])
        groups = Variables.of(d)
        if self.given is None or isinstance(self.given, Mapping):
            names = by_name(self.given or {}, d.components, "coordinate, speed or state")
            of_q, of_u, of_s = ({name: names[name] for name in each.names if name in names} for each in groups)
            parts: tuple[Any, Any, Any] = of_q, of_u, of_s
        else:
            parts = _split(d, self.given)
        q, u, s = start_state(solver._functions, solver.initial, t, parts, r, options["start_tolerance"])
        return np.concatenate([np.asarray(x, dtype=np.float64) for x in (q, u, s)])

    def states(self, times: Array) -> Array:
        """States of the solution that is the guess, (n, n_y). Raises `SolveError`."""
        first, last = (float(x) for x in (self.given.t[0], self.given.last[0]))
        if times.min() < min(first, last):
            raise SolveError(
                f"the guess lasts from t = {first!r} to {last!r} s; expected a Solution that lasts at least the period"
            )
        return np.hstack([np.asarray(part).reshape(len(times), -1) for part in self.given(times)])


def _split(d: Any, given: Any) -> tuple[Any, Any, Any]:
    """The parts of an array (n_y,). Raises `SolveError`."""
    names = d.components
    values = Variables("guess", "component", tuple(names), d.name).read(given)
    array, n = np.array(list(values.values())), len(d.coordinates)
    q, u, s = np.split(array, [n, n + len(d.speeds)])
    return q, u, s


def _run_options(solver: Periodic, given: Mapping[str, Any], period: float) -> RunOptions:
    """The options of the runs. Raises `SolveError` for those that the search decides, `TypeError` for unknown names."""
    require_none([f"periodic motions have no option {name}" for name in _REFUSED if name in given])
    options: Any = {**_DEFAULTS, **given}
    if options["method"] in FIXED_STEP:
        options = {name: value for name, value in options.items() if name not in ("rtol", "atol") or name in given}
    else:
        options.setdefault("max_step", period / _STEPS)
    return read_options(solver._runs.with_tolerances(options))


def _advance(solver: Periodic, given: Mapping[Any, float] | None) -> Array:
    """What is added to the state in a period, (n_y,). Raises `SolveError`."""
    d = solver.description
    values = by_name(given or {}, d.coordinates, "coordinate")
    amounts = np.zeros(len(d.components))
    for name, value in values.items():
        amounts[d.coordinates.index(name)] = number(value, f"advance of {name}")
    return amounts


def _fixed(solver: Periodic, given: Any) -> tuple[int, ...]:
    """The indices of start values that do not change. Raises `SolveError`."""
    known, names = solver.description.components, names_in(given, "fixed")
    wrong = [unknown(name, known, "coordinate, speed or state") for name in names if name not in known]
    require_none(wrong, "fixed: ")
    return tuple(known.index(name) for name in names)


def _section(solver: Periodic, given: Any) -> str | None:
    """The name of the event. Raises `SolveError`."""
    if given is None:
        return None
    return known_name(given, [event.name for event in solver.description.events], "event")


def _prepared(
    solver: Periodic, guess: _Guess, start: Array, setting: Setting, forced: bool | None
) -> tuple[Nodes, Setting, float]:
    """The nodes of the guess, the setting with all that the motion of the guess tells, and its extent."""
    T = guess.period.value(solver)
    shooting = Shooting(solver, setting)
    code = shooting.code
    start = shooting.consistent(Nodes(start[None], T)).y[0]
    motion = guess.given if isinstance(guess.given, Solution) else shooting.motion(setting.t0, setting.t0 + T, start)
    _require_same(solver, guess.given)
    times = np.minimum(setting.t0 + T * np.arange(_SAMPLES) / _SAMPLES, float(motion.last[0]))
    states = np.hstack([np.asarray(part).reshape(len(times), -1) for part in motion(times)])
    autonomous = not _depends_on_time(solver, code, setting, T, states)
    if setting.section is not None and not autonomous:
        raise SolveError(
            f"the motion depends on time, so that the return map of the section {setting.section!r} does not determine "
            "it: leave section out and give the period"
        )
    is_forced = (not autonomous) if forced is None else bool(forced)
    if is_forced:
        _require_period(code, setting.t0, T, states)
    scale = sizes_of(solver.description, states)
    if autonomous and _is_at_rest(code, setting, start, scale, T):
        raise SolveError(
            f"the guess is an equilibrium of {solver.description.name!r}: give a state on or near the periodic motion"
        )
    if guess.orbit is not None and len(guess.orbit.nodes.y) == setting.segments:
        y = guess.orbit.nodes.y
    else:
        at = motion(setting.t0 + T * np.arange(setting.segments) / setting.segments)
        y = np.hstack([np.asarray(part).reshape(setting.segments, -1) for part in at])
        y[0] = start
    complete = replace(setting, scale=scale, forced=is_forced, autonomous=autonomous)
    return Nodes(y, T), complete, extent(states, scale)


def _require_same(solver: Periodic, guess: Any) -> None:
    """Raise `SolveError` for a solution of another model."""
    if isinstance(guess, Solution):
        own = (*guess.run.coordinates, *guess.run.speeds, *guess.run.states)
        if own != tuple(solver.description.components):
            raise SolveError(f"the guess is a motion of {guess.run.model!r}, not of {solver.description.name!r}")


def _depends_on_time(solver: Periodic, code: VariationCode, setting: Setting, T: float, states: Array) -> bool:
    """Whether what determines motions near some states changes with time, or something switches at known times."""
    if len(solver.switching_times((setting.t0, setting.t0 + T), setting.r)):
        return True
    aside = _ASIDE * np.random.default_rng(0).uniform(-1.0, 1.0, states.shape) * sizes_of(solver.description, states)
    for k, y in enumerate(states + aside):
        t, other = (setting.t0 + T * part for part in (k / _SAMPLES, (k * _GOLDEN + 0.3) % 1.0))
        try:
            sides = _determining(code, t, y), _determining(code, other, y)
        except SolveError:  # the state is outside the domain of an expression
            continue
        if any(_differ(a, b, _SAME) for a, b in zip(*sides, strict=True)):
            return True
    return False


def _determining(code: VariationCode, t: float, y: Array) -> tuple[Array, ...]:
    """What determines motions from a state on: rates, gaps and their rates, and the guards of events that act."""
    parts, events = [code.rate(t, y)], code.functions.description.events
    at = code.at(t, y)
    if code.functions.description.contacts.rows:
        rows = code.modes.rows(at)
        parts += [rows.value, rows.rate]
    acting = [k for k, x in enumerate(events) if x.reset or x.impulse is not None or x.impose or x.remove]
    if acting:
        parts.append(at.evaluate(code.functions.get("events").value)[acting])
    return tuple(parts)


def _differ(a: Array, b: Array, limit: float) -> bool:
    return bool((np.abs(a - b) > limit * np.maximum(np.abs(a), np.abs(b)).max(initial=0.0)).any())


def _require_period(code: VariationCode, t0: float, T: float, states: Array) -> None:
    """Raise `SolveError` if the rates a period later are others."""
    for k, y in enumerate(states):
        t = t0 + T * k / len(states)
        try:
            sides = _determining(code, t, y), _determining(code, t + T, y)
        except SolveError:  # after the end of a table
            continue
        if any(_differ(a, b, _NOT_PERIODIC) for a, b in zip(*sides, strict=True)):
            raise SolveError(
                f"the right-hand side does not repeat after the period {T!r} s: it differs between t = {t:.6g} and "
                f"{t + T:.6g} s at the same state; give the period of the forcing, or a multiple of it"
            )


def _is_at_rest(code: VariationCode, setting: Setting, y: Array, scale: Array, T: float) -> bool:
    """Whether a state remains where it is."""
    rate = code.rate(setting.t0, y, code.modes_at(setting.t0, y))
    return float((np.abs(rate) * T / scale).max(initial=0.0)) <= _AT_REST
