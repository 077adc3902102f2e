"""Steady states along a parameter, an input or a fixed value; by natural continuation, or by arc length past folds.

The arc-length method is that of Keller ("Numerical solution of bifurcation and nonlinear eigenvalue problems", in
Rabinowitz (ed.), Applications of Bifurcation Theory, 1977, 359-384): the parameter is an unknown, each step goes along
the tangent of the curve of equilibria, and the correction is perpendicular to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array, ragged, real_array
from kanegen.display import Table, value_text
from kanegen.errors import SolveError, brief
from kanegen.solve.analysis.equilibrium import Equilibrium, Trimmable
from kanegen.solve.analysis.equilibrium_curve import Family as EquationFamily
from kanegen.solve.analysis.equilibrium_curve import Point, curve
from kanegen.solve.analysis.trim import Search, rest
from kanegen.solve.values import (
    Variables,
    key_name,
    names_in,
    number,
    positive,
    positive_integer,
    require_none,
    shown,
    size,
    time_or_start,
    unknown,
)
from kanegen.units import Unit

_DEEPEST = 8
"""Most halvings of a step of natural continuation."""
_STEADY_CHANGE = 4.0
"""A step may change the coordinates by this multiple of what the last one predicts."""
_SMALL_CHANGE = 1e-3
"""Changes of coordinates below this fraction of the largest one are never jumps."""
_JUMP = 0.5
"""A change that the halving of a step reduces to no less than this fraction, over all halvings, is a jump."""


@dataclass(frozen=True, eq=False)
class Branch:
    """Steady states along a parameter.

    Attributes
    ----------
    parameter, values
        The name of the parameter, and its values (m,).
    states
        The :class:`Equilibrium` or :class:`SteadyMotion` at each value.
    q, u, s, r
        Arrays (m, n_q), (m, n_u), (m, n_s), (m, n_r).
    eigenvalues
        (m, k), sorted by falling real part, 1/s; NaN where a state has fewer, and where contacts switch.
    stability
        ``"stable"``, ``"unstable"``, ``"marginal"`` or ``"undetermined"``, one for each state.
    jumps
        Indices k for which the state k does not continue the one before it: the branch ended between them (at a fold,
        or because a contact opened or slipped), and the search found another one.
    """

    parameter: str
    values: Array
    states: tuple[Equilibrium, ...]
    jumps: tuple[int, ...] = ()

    @property
    def q(self) -> Array:
        """Coordinates (m, n_q)."""
        return np.array([state.q for state in self.states])

    @property
    def u(self) -> Array:
        """Speeds (m, n_u)."""
        return np.array([state.u for state in self.states])

    @property
    def s(self) -> Array:
        """States (m, n_s)."""
        return np.array([state.s for state in self.states])

    @property
    def r(self) -> Array:
        """Inputs (m, n_r)."""
        return np.array([state.r for state in self.states])

    @property
    def eigenvalues(self) -> NDArray[np.complex128]:
        """Eigenvalues (m, k)."""
        return ragged([state.eigenvalues for state in self.states])

    @property
    def stability(self) -> tuple[str, ...]:
        """The stability of each state."""
        return tuple(state.stability for state in self.states)

    def __getitem__(self, name: Any) -> Array:
        """The values (m,) of a coordinate, speed, state or input."""
        return np.array([state[name] for state in self.states])

    def __len__(self) -> int:
        return len(self.states)

    @property
    def unit(self) -> Unit | None:
        """The unit in which plots and tables show the parameter; None without units."""
        return self.states[0].units.get(self.parameter) if self.states else None

    def _repr_html_(self) -> str:
        """What a notebook shows: the parameter, the stability and the largest real part of the eigenvalues."""
        rows = []
        for k, (value, state) in enumerate(zip(self.values.tolist(), self.states, strict=True)):
            growth = f"{state.eigenvalues[0].real:.6g}" if len(state.eigenvalues) else ""
            shown_value = value_text(self.parameter, value, state.units)
            rows.append((shown_value, state.stability, growth, "jump" if k in self.jumps else ""))
        headings = (self.parameter, "stability", "largest real part (1/s)", "")
        return Table.of(f"{len(self)} steady states", headings, rows, right=(headings[0], headings[2])).html()

    def __repr__(self) -> str:
        found = [f"{kind} {self.stability.count(kind)}" for kind in dict.fromkeys(self.stability)]
        span = f"{self.values[0]:.6g} to {self.values[-1]:.6g}" if len(self.values) else "none"
        jumps = f"; jumps before {shown([f'{self.values[k]:.6g}' for k in self.jumps])}" if self.jumps else ""
        return f"<Branch: {self.parameter} = {span}, {len(self)} states: {', '.join(found)}{jumps}>"


class Continuable(Trimmable):
    """The methods of :class:`~kanegen.Solver` for steady states along a parameter."""

    def equilibria(self, parameter: Any, values: Any, q0: Any = None, **options: Any) -> Branch:
        """Equilibria at ``values`` (m,) of a parameter, each found from its neighbor.

        The search at a value begins at the linear extrapolation of the two states before it. Where the coordinates
        change much more than this predicts, or no equilibrium is found, steps are halved, up to 1/256. What changes
        even then is a jump (:attr:`Branch.jumps`); :meth:`equilibrium_curve` follows the curve through the fold.

        Parameters
        ----------
        parameter
            The name or symbol of a parameter, of an input, or of a coordinate or state, which is fixed at the values.
        values
            Numbers in the order in which they are visited.
        q0
            Where the search begins at the first value.
        options
            Further arguments of :meth:`equilibrium`.

        Raises
        ------
        SolveError
            As :meth:`equilibrium`; the message contains the value at which the branch ends.
        """
        family = _Family.of(self, Trimmable.equilibrium, parameter, {"q0": q0, **options})
        return _natural(family, values)

    def steady_motions(self, parameter: Any, values: Any, q0: Any = None, u0: Any = None, **options: Any) -> Branch:
        """Steady motions at ``values`` (m,) of a parameter, an input, or a coordinate, speed or state to be fixed.

        ``options`` are further arguments of :meth:`steady_motion`; otherwise as :meth:`equilibria`.
        """
        family = _Family.of(self, Trimmable.steady_motion, parameter, {"q0": q0, "u0": u0, **options})
        return _natural(family, values)

    def equilibrium_curve(
        self,
        parameter: Any,
        limits: Sequence[float],
        q0: Any = None,
        *,
        step: float = 0.05,
        max_steps: int = 1000,
        **options: Any,
    ) -> Branch:
        """The curve of equilibria from ``limits[0]`` of a parameter or an input until it leaves the limits.

        The curve is followed by its arc length, so that it passes folds, where the parameter turns back.

        Parameters
        ----------
        parameter
            The name or symbol of a parameter or an input.
        limits
            The value at the start, and the other end of the interval.
        q0
            Where the search for the first equilibrium begins.
        step
            The largest step: the root of the sum of squares of all changes, of coordinates in their units and of the
            parameter as a fraction of the interval. Steps become shorter where the curve turns.
        max_steps
            Largest number of steps.
        options
            Further arguments of :meth:`equilibrium`.

        Raises
        ------
        SolveError
            If the first equilibrium is not found or not isolated, if a step fails, or if ``max_steps`` steps do not
            reach the limits (the curve can be closed).
        """
        try:
            first, end = limits
        except (TypeError, ValueError) as error:
            raise SolveError(f"limits is {brief(limits)}; expected 2 numbers: the start and the other end") from error
        first, end = number(first, "limits[0]"), number(end, "limits[1]")
        if first == end:
            raise SolveError(f"limits are {first!r} and {end!r}; expected two different numbers")
        max_steps = positive_integer(max_steps, "max_steps")
        d, name = self.description, key_name(parameter)
        known = (*d.parameters, *d.inputs)
        require_none([] if name in known else [unknown(name, known, "parameter or input")])
        family = _Family.of(self, rest, name, {"q0": q0, **options})
        n_y = len(d.components)
        tolerance = options.get("tolerance", 1e-10)
        equations = EquationFamily(
            name,
            lambda p: family.solver_at(p)._functions,
            n_y + d.inputs.index(name) if name in d.inputs else None,
            tolerance,
        )
        points = curve(Point(first, *family.at(first)), equations, end, positive(step, "step"), max_steps)
        if points[-1].p not in (first, end):
            raise SolveError(
                f"the curve of equilibria has not left the interval of {name} from {first:.6g} to {end:.6g} after "
                f"{max_steps} steps, at {points[-1].p:.6g}: raise max_steps= or step=; the curve can be closed"
            )
        states = [
            Equilibrium(**Search(family.solver_at(point.p)).record(point.balance, point.root)) for point in points
        ]
        return Branch(name, np.array([point.p for point in points]), tuple(states))


@dataclass(frozen=True, eq=False)
class _Family:
    """The steady states of a solver as a function of a parameter: what finds one, and its arguments by name."""

    solver: Continuable
    method: Callable[..., Any]
    parameter: str
    start: Mapping[str, dict[str, float]]
    options: Mapping[str, Any]

    @classmethod
    def of(cls, solver: Continuable, method: Callable[..., Any], parameter: Any, arguments: dict[str, Any]) -> _Family:
        """The family from the arguments of the method. Raises `SolveError` for unknown names."""
        d, name = solver.description, key_name(parameter)
        known = (*d.parameters, *d.inputs, *d.components)
        require_none(
            [unknown(name, known, "parameter, input, coordinate, speed or state")] if name not in known else []
        )
        t = time_or_start(arguments.get("t"), d, solver.initial)
        released = names_in(arguments.get("free_inputs", ()), "free_inputs")
        inputs, laws = Search(solver).inputs(t, arguments.pop("r", None), [*released, name])
        # The values of laws are found, so that they are not given.
        start = {"r": {x: float(inputs[k]) for k, x in enumerate(d.inputs) if k not in laws}}
        for variables in Variables.of(d, "0"):
            if variables.argument in arguments or variables.argument == "s0":
                start[variables.argument] = variables.read(arguments.pop(variables.argument, None))
        if name not in (*d.parameters, *d.inputs):
            arguments["fixed"] = [*names_in(arguments.get("fixed", ()), "fixed"), name]
        return cls(solver, method, name, start, arguments)

    def at(self, value: float, values: Mapping[str, float] | None = None) -> Any:
        """The result of the method at a value of the parameter; ``values``: where the search begins, by name."""
        d = self.solver.description
        groups = {"r" if letter == "r" else f"{letter}0": d.names[letter] for letter in "qusr"}
        start = {key: dict(given) for key, given in self.start.items()}
        for key, names in groups.items():
            if key in start and values is not None:
                start[key] = {name: values[name] for name in (start[key] if key == "r" else names)}
            if key in start and self.parameter in names:
                start[key][self.parameter] = value
        return self.method(self.solver_at(value), **start, **self.options)

    def solver_at(self, value: float) -> Any:
        """The solver with this value of the parameter; the same one if the parameter is an input or a coordinate."""
        is_parameter = self.parameter in self.solver.description.parameters
        return self.solver.with_parameters({self.parameter: value}) if is_parameter else self.solver


@dataclass(eq=False)
class _Path:
    """The states found so far by natural continuation, and the last change that was too large for its step."""

    family: _Family
    points: list[tuple[float, Equilibrium]]
    jumped: bool = False

    def go_to(self, value: float, coarse: float | None = None, depth: int = 0) -> None:
        """Append the states up to ``value``; ``coarse`` is the change over the whole step."""
        last, state = self.points[-1]
        try:
            new = self.family.at(value, self._predicted(value))
        except SolveError:
            if depth == _DEEPEST:
                raise
            new = None
        if new is not None:
            change = float(np.abs(new.q - state.q).max(initial=0.0))
            coarse = change if coarse is None else coarse
            is_steady = change <= self._allowed(value)
            if is_steady or depth == _DEEPEST:
                self.jumped = self.jumped or (not is_steady and change > _JUMP * coarse)
                self.points.append((value, new))
                return
        self.go_to((last + value) / 2.0, coarse, depth + 1)
        self.go_to(value, coarse, depth + 1)

    def _allowed(self, value: float) -> float:
        """The largest change of a coordinate that is a steady one."""
        small = _SMALL_CHANGE * size([state.q for _, state in self.points])
        if len(self.points) < 2:
            return small
        (p, a), (last, b) = self.points[-2:]
        return small + _STEADY_CHANGE * float(np.abs(b.q - a.q).max(initial=0.0) * abs((value - last) / (last - p)))

    def _predicted(self, value: float) -> dict[str, float]:
        """The values at the next state, by linear extrapolation."""
        last, b = self.points[-1]
        if len(self.points) < 2 or last == self.points[-2][0]:
            return dict(b.values)
        p, a = self.points[-2]
        factor = (value - last) / (last - p)
        return {name: x + factor * (x - a.values[name]) for name, x in b.values.items()}


def _natural(family: _Family, values: Any) -> Branch:
    """The states at all values, with steps halved where the change is not steady."""
    wanted = real_array(values, "values")
    if wanted.ndim != 1 or not wanted.size or not np.isfinite(wanted).all():
        raise SolveError(f"values is {brief(values)}; expected finite numbers (m,)")
    path = _Path(family, [(float(wanted[0]), family.at(float(wanted[0])))])
    kept, jumps = [path.points[0][1]], []
    for k, value in enumerate(wanted[1:].tolist(), 1):
        path.jumped = False
        try:
            if value != path.points[-1][0]:
                path.go_to(value)
        except SolveError as error:
            reached = f"{family.parameter} = {path.points[-1][0]:.6g}"
            advice = "the branch may turn back at a fold, through which solver.equilibrium_curve follows it"
            raise SolveError(f"the steady states end between {reached} and {value:.6g}: {error}; {advice}") from error
        kept.append(path.points[-1][1])
        jumps += [k] if path.jumped else []
    return Branch(family.parameter, wanted, tuple(kept), tuple(jumps))
