"""Steady states along a parameter, an input or a fixed value; by natural continuation, or by arc length past folds.

The arc-length method is that of Keller ("Numerical solution of bifurcation and nonlinear eigenvalue problems", in
Rabinowitz (ed.), Applications of Bifurcation Theory, 1977, 359-384): the parameter is an unknown, each step goes along
the tangent of the curve of equilibria, and the correction is perpendicular to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.solve.analysis.equilibrium import Equilibrium, Trimmable
from kanegen.solve.values import key_name, largest, shown, unknown

_DEEPEST = 10
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
        rows = [state.eigenvalues for state in self.states]
        matrix = np.full((len(rows), max(map(len, rows), default=0)), np.nan, dtype=np.complex128)
        for row, values in zip(matrix, rows, strict=True):
            row[: len(values)] = values
        return matrix

    @property
    def stability(self) -> tuple[str, ...]:
        """The stability of each state."""
        return tuple(state.stability for state in self.states)

    def __getitem__(self, name: Any) -> Array:
        """The values (m,) of a coordinate, speed, state or input."""
        return np.array([state[name] for state in self.states])

    def __len__(self) -> int:
        return len(self.states)

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
        change much more than this predicts, or no equilibrium is found, steps are halved, up to 1/1024. What changes
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
        family = _Family.of(self, "equilibrium", parameter, {"q0": q0, **options})
        return _natural(family, values)

    def steady_motions(self, parameter: Any, values: Any, q0: Any = None, u0: Any = None, **options: Any) -> Branch:
        """Steady motions at ``values`` (m,) of a parameter, an input, or a coordinate, speed or state to be fixed.

        ``options`` are further arguments of :meth:`steady_motion`; otherwise as :meth:`equilibria`.
        """
        family = _Family.of(self, "steady_motion", parameter, {"q0": q0, "u0": u0, **options})
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
        family = _Family.of(self, "equilibrium", parameter, {"q0": q0, **options})
        if len(limits) != 2:
            raise SolveError(f"limits has {len(limits)} values; expected 2: the start and the other end")
        start, end = (number(x, "a limit") for x in limits)
        if start == end:
            raise SolveError(f"limits are {start!r} and {end!r}; expected two different numbers")
        steps = whole(max_steps, "max_steps")
        states = curve(family.problem(start), start, end, positive(step, "step"), steps)
        values = np.array([value for value, _ in states])
        return Branch(family.parameter, values, tuple(state for _, state in states))


@dataclass(frozen=True, eq=False)
class _Family:
    """The steady states of a solver as a function of a parameter: the method, and its arguments by name."""

    solver: Continuable
    method: str
    parameter: str
    start: Mapping[str, dict[str, float]]
    options: Mapping[str, Any]

    @classmethod
    def of(cls, solver: Continuable, method: str, parameter: Any, arguments: dict[str, Any]) -> _Family:
        """The family from the arguments of the method. Raises `SolveError` for unknown names."""
        d, name = solver.description, key_name(parameter)
        known = (*d.parameters, *d.inputs, *d.coordinates, *d.speeds, *d.states)
        require_none([unknown(name, known, "parameter, input, coordinate, speed or state")] if name not in known else [])
        t = number(arguments.get("t") or initial_time(d, solver.initial) or 0.0, "t")
        released = names_in(arguments.get("free_inputs", ()), "free_inputs")
        inputs = solver.inputs_at(t, arguments.pop("r", None), [*released, name])
        start = {"r": dict(zip(d.inputs, inputs.tolist(), strict=True))}
        for variables in Variables.of(d, "0"):
            if variables.argument in arguments or variables.argument == "s0":
                start[variables.argument] = variables.read(arguments.pop(variables.argument, None))
        if name not in (*d.parameters, *d.inputs):
            arguments["fixed"] = [*names_in(arguments.get("fixed", ()), "fixed"), name]
        return cls(solver, method, name, start, arguments)

    def at(self, value: float, values: Mapping[str, float] | None = None) -> Equilibrium:
        """The steady state at a value of the parameter; ``values``: where the search begins, by name."""
        solver, d = self.solver, self.solver.description
        groups = {"q0": d.coordinates, "u0": d.speeds, "s0": d.states, "r": d.inputs}
        start = {key: dict(given) for key, given in self.start.items()}
        for key, names in groups.items():
            if key in start and values is not None:
                start[key] = {name: values[name] for name in names}
            if key in start and self.parameter in names:
                start[key][self.parameter] = value
        if self.parameter in d.parameters:
            solver = solver.with_parameters({self.parameter: value})
        state: Equilibrium = getattr(solver, self.method)(**start, **self.options)
        return state

    def problem(self, value: float) -> CurveProblem:
        """The equations of the equilibria as functions of the parameter, for :func:`.arclength.curve`."""
        ...


def _natural(family: _Family, values: Any) -> Branch:
    """The states at all values, with steps halved where the change is not steady."""
    wanted = real_array(values, "values")
    if wanted.ndim != 1 or not wanted.size or not np.isfinite(wanted).all():
        raise SolveError(f"values has shape {wanted.shape}; expected (m,), finite numbers")
    path = [(float(wanted[0]), family.at(float(wanted[0])))]
    kept, jumps = [path[0][1]], []
    for k, value in enumerate(wanted[1:].tolist(), 1):
        try:
            if _advance(family, path, value):
                jumps.append(k)
        except SolveError as error:
            reached = f"{family.parameter} = {path[-1][0]:.6g}"
            raise SolveError(f"the steady states end between {reached} and {value:.6g}: {error}") from error
        kept.append(path[-1][1])
    return Branch(family.parameter, wanted, tuple(kept), tuple(jumps))


def _advance(family: _Family, path: list[tuple[float, Equilibrium]], value: float) -> bool:
    """Append the states up to ``value`` to the path; return whether there is a jump."""
    jumped, depth = False, 0
    whole_step = value - path[-1][0]
    first_change: float | None = None
    while path[-1][0] != value:
        last, state = path[-1]
        step = whole_step * 0.5**depth
        goal = value if depth == 0 or abs(value - last) <= abs(step) * (1.0 + 1e-9) else last + step
        try:
            new = family.at(goal, _predicted(path, goal))
            change = float(np.abs(new.q - state.q).max(initial=0.0))
            steady = change <= _allowed(path, goal)
        except SolveError:
            if depth == _DEEPEST:
                raise
            depth += 1
            continue
        first_change = change if first_change is None else first_change
        if not steady and depth < _DEEPEST:
            depth += 1
            continue
        jumped = jumped or (not steady and change > _JUMP * first_change)
        path.append((goal, new))
        depth, whole_step, first_change = max(0, depth - 1), whole_step, None
    return jumped
