"""Problems of optimal control: what is minimized, and under which conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array, real_array
from kanegen.control.code import PointCode, point_code
from kanegen.control.guess import following, read_guess
from kanegen.control.ipopt import Progress, require_ipopt
from kanegen.control.joints import CompiledJoint
from kanegen.control.moments import require_values
from kanegen.control.motion import OptimalMotion
from kanegen.control.predictive import PredictiveController, predictive_controller
from kanegen.control.run import Motions, Part, Run
from kanegen.control.schemes import scheme_of
from kanegen.control.statement import state
from kanegen.errors import SolveError
from kanegen.pipeline import build
from kanegen.solve import Solver
from kanegen.solve.values import positive, positive_integer

_NEAR: Final = 0.3
"""Points of a mesh that are nearer to a given time, as a fraction of an interval, are moved to it."""

_OPTIONS: Final = {"print_level": 0, "sb": "yes", "tol": 1e-9, "acceptable_tol": 1e-7, "acceptable_iter": 10}


class OptimalControl:
    """A motion of a model that minimizes a cost, with unknown inputs as functions of time.

    Expressions are SymPy expressions of t, coordinates, speeds, states, their rates, inputs and parameters of the
    model. Values and bounds are in SI units; a bound of None is no bound. The motion starts at t = 0.

    Parameters
    ----------
    model
        A :class:`kanegen.Model` without contacts, events and feedback laws. Inputs without a default, and those in
        ``bounds``, are unknown; the others have their default.
    minimize
        A sum of :class:`kanegen.Integral`, of :class:`kanegen.SampleSum`, and of functions of
        :data:`kanegen.Duration`, :class:`kanegen.AtStart`, :class:`kanegen.AtEnd`, :class:`kanegen.AtTime` and
        parameters.
    duration
        The duration in s, or ``(low, high)``: it is unknown.
    start, end
        Conditions at the start and at the end: a mapping from coordinates, speeds and states, or expressions, to a
        value or ``(low, high)``. What is not named is unknown. Coordinates and speeds that constraints determine may be
        named, too, with consistent values.
    bounds
        ``(low, high)`` of coordinates, speeds, states and inputs along the motion, by name or symbol.
    path
        Conditions along the motion, tuples ``(expression, low, high)``; they hold at the stages of the scheme.
    subject_to
        Conditions of values at single times, tuples ``(expression, low, high)``, such as
        ``(kg.AtEnd(x) - kg.AtStart(x), 0, 0)`` for a periodic motion, and ``(kg.AtTime(x, 0.5), 1, 1)``.
    parameters
        ``(low, high)`` of parameters that are unknown, or values that replace those of the model. Symbols of costs and
        conditions that the model does not have, such as set points, have their values here, too.
    scheme
        ``"hermite-simpson"``, ``"trapezoidal"``, ``"midpoint"``, ``"backward-euler"``, ``"radau"`` or ``"gauss"``, the
        last two also with a number of stages, ``"radau5"``.
    intervals
        The number of intervals of the first mesh, or its points from 0 to 1 (fractions of the duration), (N + 1,).
        With a number, times of :class:`kanegen.AtTime` and of fewer samples are points of the mesh, too, because
        optimal inputs have kinks there.

    Attributes
    ----------
    statement
        The checked problem.

    Raises
    ------
    SolveError
        For conditions that contradict each other, unknown names, and models whose motions are not smooth.

    Examples
    --------
    >>> import kanegen as kg
    >>> import sympy as sm
    >>> from sympy.physics import mechanics as me
    >>> x, v, F = me.dynamicsymbols("x v F")
    >>> N, O = me.ReferenceFrame("N"), me.Point("O")
    >>> O.set_vel(N, 0)
    >>> P = O.locatenew("P", x * N.x)
    >>> P.set_vel(N, v * N.x)
    >>> model = kg.Model(name="block", frame=N, coordinates=(x,), speeds=(v,), kinematics=(x.diff() - v,),
    ...                  bodies=(me.Particle("block", P, 1),), loads=((P, F * N.x),), inputs=(F,))
    >>> problem = kg.OptimalControl(model, kg.Integral(F**2), duration=1.0, start={x: 0, v: 0}, end={x: 1, v: 0})
    >>> round(problem.solve().cost, 6)
    12.0
    """

    def __init__(
        self,
        model: Any,
        minimize: Any,
        duration: Any,
        start: Mapping[Any, Any] | None = None,
        end: Mapping[Any, Any] | None = None,
        bounds: Mapping[Any, Any] | None = None,
        path: Any = (),
        subject_to: Any = (),
        parameters: Mapping[Any, Any] | None = None,
        scheme: str = "hermite-simpson",
        intervals: Any = 100,
    ) -> None:
        chosen, mesh = scheme_of(scheme), _mesh(intervals)
        self.statement = state(model, minimize, duration, start, end, bounds, path, subject_to, parameters, chosen)
        require_values(self.statement)
        self._mesh = _through(mesh, self.statement.moments) if np.ndim(intervals) == 0 else mesh

    def solve(
        self,
        tolerance: float = 1e-6,
        *,
        guess: Any = None,
        callback: Callable[[Progress], Any] | None = None,
        max_iterations: int = 3000,
        max_refinements: int = 8,
        starts: int = 1,
        options: Mapping[str, Any] | None = None,
    ) -> OptimalMotion:
        """Solve the problem by IPOPT, on meshes that are refined until `OptimalMotion.error` is below the tolerance.

        Parameters
        ----------
        tolerance
            Largest deviation of a mesh interval from the adaptive integrator, relative to each state.
        guess
            Where the iterations start: a mapping from names or symbols to a number, values at equal distances (n,), or
            a table (times, values), with ``kg.Duration`` as a further key; a :class:`kanegen.Solution`; an
            :class:`OptimalMotion`. None, and for what a mapping does not name: a straight line from start to end. In a
            mapping with coordinates and without speeds, the speeds follow from the coordinates.
        callback
            A function of a record with ``iteration``, ``cost``, ``infeasibility`` and ``dual_infeasibility``.
        max_iterations
            Most iterations on the first mesh; on others, and for random starts, at most 500.
        max_refinements
            Most times that the mesh is refined; 0: only the first mesh is used.
        starts
            The number of guesses on the first mesh: the given one, and random changes of it. The motion of
            least cost is refined.
        options
            Further options of IPOPT.

        Raises
        ------
        OptimalControlError
            If the solver fails; its ``motion`` is the one that was reached. After Ctrl-C the motion is returned, with
            ``success`` False.
        SolveError
            For wrong arguments, a start that contradicts the constraints of the model, and if ipyopt is not installed.
        """
        return solved(
            [self], [guess], tolerance, callback=callback, max_iterations=max_iterations,
            max_refinements=max_refinements, starts=starts, options=options,
        )[0]  # fmt: skip

    def controller(
        self,
        horizon: float,
        sample_time: float,
        *,
        intervals: int | None = None,
        steps: int = 1,
        penalty: float = 1e4,
        max_iterations: int = 40,
    ) -> PredictiveController:
        """Predictive control of the problem: at each sample, it is solved over a horizon that begins at the sample.

        The motion is planned from the measured state, whatever ``start`` and ``duration`` say; ``end``, and costs and
        conditions of :class:`kanegen.AtEnd`, hold at the end of the horizon. The equations are integrated by
        Runge-Kutta steps, whatever ``scheme`` says, and the inputs are constant in each interval
        (docs/predictive_control.md).

        Parameters
        ----------
        horizon
            How far ahead the motion is planned, s.
        sample_time
            The time between samples, s.
        intervals
            The number of intervals of the horizon; None: intervals of about the sample time.
        steps
            Runge-Kutta steps in each interval.
        penalty
            The cost of violating a bound of a state, or a condition, by 1 (SI units) at one point of the mesh. Where
            they can be met, they are, if it is larger than their multipliers. Bounds of inputs are never violated.
        max_iterations
            Most iterations of the quadratic program of a sample.

        Raises
        ------
        SolveError
            For unknown durations and parameters, inputs that have rates, values at given times, conditions that couple
            start and end, problems without unknown inputs, and wrong arguments.

        Examples
        --------
        >>> import kanegen as kg
        >>> import sympy as sm
        >>> from sympy.physics import mechanics as me
        >>> x, v, F = me.dynamicsymbols("x v F")
        >>> N, O = me.ReferenceFrame("N"), me.Point("O")
        >>> O.set_vel(N, 0)
        >>> P = O.locatenew("P", x * N.x)
        >>> P.set_vel(N, v * N.x)
        >>> model = kg.Model(name="sliding block", frame=N, coordinates=(x,), speeds=(v,), kinematics=(x.diff() - v,),
        ...                  bodies=(me.Particle("block", P, 1),), loads=((P, F * N.x),), inputs=(F,))
        >>> problem = kg.OptimalControl(model, kg.Integral(10 * x**2 + v**2 + F**2), 2.0, bounds={F: (-1, 1)})
        >>> controller = problem.controller(horizon=2.0, sample_time=0.1)
        >>> solution = kg.build(model).integrate((0.0, 8.0), [1.0], [0.0], controller, sample_time=0.1)
        >>> round(abs(solution["x"][-1]), 2)
        0.0
        """
        return predictive_controller(
            self.statement, horizon, sample_time, intervals=intervals, steps=steps, penalty=penalty,
            max_iterations=max_iterations,
        )  # fmt: skip

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of the unknown parameters."""
        return self.statement.parameter_names

    @property
    def parameter_bounds(self) -> dict[str, tuple[float, float]]:
        """The bounds of the unknown parameters by name."""
        pairs = map(tuple, self.statement.parameter_bounds.tolist())
        return dict(zip(self.parameter_names, pairs, strict=True))

    @property
    def _part(self) -> Part:
        return Part(self.statement, self._code, self._solver)

    @cached_property
    def _code(self) -> PointCode:
        return point_code(self.statement)

    @cached_property
    def _solver(self) -> Solver:
        return build(self.statement.model)

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle holds: not the compiled functions, which the cache of builds has."""
        return {name: vars(self)[name] for name in ("_mesh", "statement")}

    def __repr__(self) -> str:
        s = self.statement
        span = f"{s.duration[0]:g} s" if not s.is_timed else f"{s.duration[0]:g} to {s.duration[1]:g} s"
        unknowns = ", ".join((*s.input_names, *s.parameter_names)) or "none"
        return f"<OptimalControl of {s.model.name!r}: unknown {unknowns}; duration {span}; {s.scheme.name}>"


def solved(
    problems: Sequence[OptimalControl],
    guesses: Sequence[Any],
    tolerance: float,
    *,
    callback: Callable[[Progress], Any] | None,
    max_iterations: int,
    max_refinements: int,
    starts: int,
    options: Mapping[str, Any] | None,
    joints: Sequence[CompiledJoint] = (),
) -> Motions:
    """The motions of problems that are solved together; the arguments are those of `OptimalControl.solve`."""
    require_ipopt()
    tolerance = positive(tolerance, "tolerance")
    given = {**_OPTIONS, "max_iter": positive_integer(max_iterations, "max_iterations"), **(options or {})}
    refinements = 0 if max_refinements == 0 else positive_integer(max_refinements, "max_refinements")
    parts, meshes = [each._part for each in problems], [each._mesh for each in problems]
    known = [read_guess(p.statement, guess, p.code.n_constraints) for p, guess in zip(parts, guesses, strict=True)]
    for each, _, _ in joints:
        if guesses[each.after] is None and each.before < each.after:
            statements = parts[each.before].statement, parts[each.after].statement
            known[each.after] = following(known[each.after], known[each.before], statements, each.continuous)
    run = Run(parts, given, callback, joints)
    return run.solve(meshes, known, tolerance, refinements, positive_integer(starts, "starts"))


def _mesh(intervals: Any) -> Array:
    """The points of the first mesh, from 0 to 1. Raises `SolveError`."""
    if np.ndim(intervals) == 0:
        return np.linspace(0.0, 1.0, positive_integer(intervals, "intervals") + 1)
    mesh = real_array(intervals, "intervals")
    if mesh.ndim != 1 or mesh.size < 2 or mesh[0] != 0.0 or mesh[-1] != 1.0 or not (np.diff(mesh) > 0.0).all():
        raise SolveError("intervals is an array; expected increasing points of the mesh from 0 to 1, (N + 1,)")
    return mesh


def _through(mesh: Array, tau: Array) -> Array:
    """The mesh with points at these times, if they are fewer than its intervals; near points move there."""
    if tau.size >= mesh.size - 1:
        return mesh
    longest = np.diff(mesh).max()
    far = np.abs(mesh[1:-1, None] - tau).min(axis=1, initial=np.inf) > _NEAR * longest
    ends = mesh[[0, -1]]
    inside = tau[np.abs(ends[:, None] - tau).min(axis=0) > 0.0] if tau.size else tau
    return np.unique(np.concatenate([ends, mesh[1:-1][far], inside]))
