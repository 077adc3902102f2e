"""Integration: methods of a solver that compute motions, checks of their arguments, and solutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, cast

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.methods.table import ADAPTIVE, FIXED_STEP
from kanegen.errors import SolveError, brief
from kanegen.forms import FORMS
from kanegen.model import Projection
from kanegen.progress import ProgressBar, activity
from kanegen.solve.consistent import (
    RunStart,
    consistent_controls,
    control_constraints,
    functions_of_constraints,
    projection_of,
    start_state,
    violations,
)
from kanegen.solve.contacts import check_contact_values, check_run, hybrid_records, start_modes, watched_events
from kanegen.solve.evaluation import Evaluation
from kanegen.solve.feedback.closed_loop import ClosedLoop, ControlOptions, closed_loop, other_inputs
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.inputs import RunInputs, held, run_inputs, sample_times
from kanegen.solve.inverse import InverseDynamics, inverse_dynamics
from kanegen.solve.momentum import RunMomenta, state_function
from kanegen.solve.solution import (
    Dense,
    IntegrationError,
    IntegrationInterrupted,
    MotionInputs,
    Outcome,
    RunRecord,
    Solution,
    SolverReference,
    Statistics,
    conflict_message,
    inputs_of_run,
)
from kanegen.solve.values import (
    flag,
    initial_time,
    integral_function,
    listed,
    number,
    positive,
    state_components,
    tolerances,
)


class Options(NamedTuple):
    """How to integrate: arguments of :meth:`kanegen.Solver.integrate`."""

    method: str
    rtol: Any
    atol: Any
    step: float | None
    first_step: float | None
    max_step: float | None
    max_steps: int | None
    t_eval: Any
    events: Any
    modes: Mapping[str, str] | None
    dense_output: bool
    progress: bool | Callable[[float], None]

    def checked(self) -> Options:
        """These options. Raises `SolveError` for step options that contradict the method, and for invalid values."""
        if not isinstance(self.method, str) or self.method not in FIXED_STEP + ADAPTIVE:
            raise SolveError(
                f"method is {brief(self.method)}; expected {', '.join(FIXED_STEP)} (fixed step) or "
                f"{', '.join(ADAPTIVE)} (adaptive)"
            )
        fixed = self.method in FIXED_STEP
        if fixed and self.step is None:
            raise SolveError(f"{self.method} has a fixed step: give step= (seconds), or use {' or '.join(ADAPTIVE)}")
        for name in ("first_step", "max_step") if fixed else ("step",):
            if getattr(self, name) is not None:
                advice = "leave it out" if fixed else "give first_step, max_step or tolerances, or use rk4"
                kind = "has a fixed step" if fixed else "chooses its steps"
                raise SolveError(f"{self.method} {kind} and accepts no {name}: {advice}")
        for name in ("step", "first_step", "max_step"):
            value = getattr(self, name)
            if value is not None:
                positive(value, name, "a positive number of seconds")
        steps = self.max_steps
        whole = isinstance(steps, (int, np.integer)) and not isinstance(steps, bool)
        if steps is not None and not (whole and 1 <= steps <= _MOST_STEPS):
            raise SolveError(f"max_steps is {brief(steps)}; expected an integer from 1 to 2**63 - 1, or None")
        flag(self.dense_output, "dense_output")
        if not (isinstance(self.progress, (bool, np.bool_)) or callable(self.progress)):
            raise SolveError(f"progress is {brief(self.progress)}; expected True, False or a function of the time")
        _check_tolerance(self.rtol, "rtol", zero=False)
        _check_tolerance(self.atol, "atol", zero=True)
        return self


RTOL: Final = 1e-8
ATOL: Final = 1e-10
STEPPING: Final = Options._fields[: Options._fields.index("events")]
"""The options that are passed to the compiled integrator unchanged."""


_MOST_STEPS: Final = 2**63 - 1
"""The compiled integrator counts steps with 64 bits."""


class Problem(NamedTuple):
    """What is integrated in a run of a model.

    ``s0`` (n_s,) are the states at the start. ``function`` is the right-hand side. ``residuals(t, q, u, r)`` returns
    the residuals at position and at velocity level. With ``momenta`` the state is (q, mom), and ``function`` belongs to
    a momentum form. ``loop`` provides the controls of a closed loop. ``solver`` evaluates quantities along the motion,
    ``record`` describes the run.
    """

    functions: CompiledFunctions
    function: Any
    inputs: RunInputs
    residuals: Callable[..., tuple[Array, Array]]
    projection: Projection | None
    momenta: RunMomenta | None
    loop: ClosedLoop | None
    s0: Array
    solver: SolverReference
    record: RunRecord

    def inputs_at(self, t: float, q: Any, u: Any, s: Any) -> Any:
        """The inputs at this state, followed by hidden inputs with the states ``s`` if the model has states."""
        return self.functions.with_states(self.inputs.at(t, (q, u, s)), s if self.s0.size else None)


def integrate(problem: Problem, start: RunStart, t1: float, options: Options) -> Solution:
    """Integrate; see :meth:`kanegen.Solver.integrate`, whose arguments these are."""
    functions, projection = problem.functions, problem.projection
    events = _checked_events(problem, start, t1, options)
    t0, q0, u0, _ = start
    progress: AbstractContextManager[Any] = nullcontext(options.progress)
    if not options.progress:
        progress = activity(f"integrating {functions.description.name!r}")
    elif options.progress is True:
        progress = ProgressBar(functions.description.name, t0, t1)
    with progress as call:
        result = functions.module.integrate(
            problem.function,
            problem.inputs.compiled,
            t0,
            t1,
            q0,
            u0 if problem.momenta is None else problem.momenta.of(t0, q0, u0),
            problem.s0,
            **{name: getattr(options, name) for name in STEPPING},
            dense=options.dense_output,
            progress=call,
            events=events,
            modes=start_modes(functions.module, options.modes),
            projection=None if projection is None else _projection_arguments(functions, projection),
            control=(*problem.inputs.controls, *(() if problem.loop is None else (problem.loop.compiled,))),
        )
    if problem.momenta is not None:
        result = problem.momenta.in_speeds(result)
    return _finished(problem, _solution(problem, result), result, t1)


def _projection_arguments(
    functions: CompiledFunctions, projection: Projection
) -> tuple[int, float, tuple[str, ...], bool]:
    names = tuple(integral_function(name) for name in projection.integrals)
    return projection.every, projection.tolerance, names, FORMS[functions.description.form].any_rank


def _checked_events(problem: Problem, start: RunStart, t1: float, options: Options) -> tuple[int, ...]:
    """Indices of the events to detect. Raises `SolveError` for a start, span or events that cannot be integrated."""
    d = problem.functions.description
    events = watched_events(d, options.events)
    if problem.loop is not None:
        problem.loop.check(options.method)
    events = (*events, *(() if problem.inputs.laws is None else problem.inputs.laws.switches()))
    check_run(problem.functions, events, t1 < start.t, problem.loop is not None and problem.loop.law is None)
    state, tolerance = start[:3], start.tolerance if d.constraints.levels else None
    needed = (d.inputs or d.states) and (d.contacts.values or tolerance is not None)
    r = problem.inputs_at(*start[:3], problem.s0) if needed else None
    check_contact_values(problem.functions, *state, r)
    if tolerance is not None and (violated := violations(d, problem.residuals(*state, r), *state[1:], tolerance)):
        advice = (
            "correct the start, for example by q0, u0 = solver.make_consistent(t0, q0, u0) with fixed= for values to "
            "keep; allow more by start_tolerance=; or pass start_tolerance=None to integrate in spite of the violation "
            "(with a stabilization it decays)"
        )
        headline = f"the start at t = {start.t!r} s violates {len(violated)} constraint(s)"
        raise SolveError(listed(headline, violated, advice))
    return events


def _record(
    solver: Evaluation, span: tuple[float, float], options: Options, control: ControlOptions, held: tuple[str, ...]
) -> RunRecord:
    stabilization = solver.stabilization

    def given() -> dict[str, Any]:
        own = options._replace(t_eval=None, progress=False)._asdict() | control._asdict()
        del own["progress"]
        return {"t_span": span, "stabilization": stabilization, **own}

    return RunRecord.of(solver, held, given)


def span_of(t_span: Any, start: float | None) -> tuple[float, float]:
    """First and last time; ``start`` is the first one if ``t_span`` is a number."""
    try:
        t0, t1 = t_span
    except (TypeError, ValueError) as error:
        if not isinstance(t_span, (int, float, np.number)) or isinstance(t_span, bool):
            raise SolveError(f"t_span is {brief(t_span)}; expected a pair (t0, t1) in seconds") from error
        if start is None:
            raise SolveError(
                f"t_span is {brief(t_span)}, the end of the run, and the start has no time: give (t0, t1), or t in "
                "Model(initial=...) or solver.with_initial(...)"
            ) from error
        t0, t1 = start, t_span
    first, last = number(t0, "t0"), number(t1, "t1")
    if not math.isfinite(last - first):
        raise SolveError(f"t_span is {t_span!r}; its length exceeds the largest floating-point number")
    return first, last


def _check_tolerance(value: Any, name: str, zero: bool) -> None:
    if isinstance(value, float) and 0.0 < value < math.inf:
        return  # the usual case, without the time that NumPy takes
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.array(np.nan)
    if not (np.isfinite(array).all() and ((array >= 0.0) if zero else (array > 0.0)).all()):
        raise SolveError(
            f"{name} is {brief(value)}; expected finite numbers that are {'not negative' if zero else 'positive'}"
        )


def _solution(problem: Problem, result: Any) -> Solution:
    module, description = problem.functions.module, problem.functions.description
    # Slices take microseconds less than np.split. With control constraints, controls follow in the state.
    n_q, n_s = len(description.coordinates), len(description.states)
    n = n_q + len(description.speeds)
    t, y = result.last
    q, u, s = (np.ascontiguousarray(result.y[:, part]) for part in (slice(n_q), slice(n_q, n), slice(n, n + n_s)))
    last = (y[:n_q], y[n_q:n], y[n : n + n_s])[: 3 if n_s else 2]
    dense = result.dense if result.dense is None or isinstance(result.dense, Dense) else Dense(*result.dense)
    events, contacts = hybrid_records(module, description, result)
    control = None if problem.loop is None else problem.loop.record(result, dense)
    return Solution(
        t=result.t,
        q=q,
        u=u,
        s=s,
        status=Outcome.from_code(result.status),
        message=result.message if result.conflict is None else conflict_message(module, result.conflict),
        statistics=Statistics(**result.statistics),
        last=(t, *last),
        dense=dense.ending_at(t, y) if dense is not None and events else dense,
        events=events,
        contacts=contacts,
        control=control,
        run=problem.record,
        all_inputs=MotionInputs(partial(inputs_of_run, problem, result.t, (q, u, s), contacts, control)),
        reference=problem.solver,
    )


KEPT: Final = "; the part that was integrated is in .solution of this exception"
"""The end of the messages of `IntegrationError`."""


def stopped_at(t: float, t1: float) -> str:
    """The beginning of the message about a run that did not reach its end ``t1``."""
    return f"the integration stopped at t = {t!r} s, before t = {t1!r} s"


def _finished(problem: Problem, solution: Solution, result: Any, t1: float) -> Solution:
    """Return the solution if it reached the end of the span; otherwise raise an error that holds it."""
    if result.flat_guard is not None and result.flat_guard not in problem.functions.description.switches:
        raise IntegrationError(
            f"the guard of event {result.flat_guard!r} was zero wherever it was evaluated, so that the event has no "
            "instant; correct the guard, or leave the event out by events=; the motion is in .solution of this error",
            solution,
        )
    if solution.success:
        return solution
    t, error = solution.last[0], result.error
    place = stopped_at(t, t1)
    if isinstance(error, KeyboardInterrupt):
        raise IntegrationInterrupted(f"{place}{KEPT}", solution) from error
    if error is not None and not isinstance(error, Exception):
        raise error
    if error is not None:
        raise IntegrationError(f"{place}: {type(error).__name__}: {error}{KEPT}", solution) from error
    where = f"{result.culprit}: " if result.culprit and result.conflict is None else ""
    reason = _not_finite(problem, solution.last) if solution.status is Outcome.NOT_FINITE else None
    raise IntegrationError(f"{place}: {where}{reason or solution.message}{KEPT}", solution)


def _not_finite(problem: Problem, last: tuple[Any, ...]) -> str | None:
    """The message on an entry of the right-hand side or its Jacobian that is not finite; None if all are finite."""
    if problem.momenta is not None or problem.loop is not None or problem.inputs.held:
        return None
    t, q, u, *s = last
    try:
        r = problem.inputs_at(t, q, u, s[0] if s else problem.s0)
        problem.function.pair(t, q, u, r)
        problem.functions.require_finite(("jacobian_q", "jacobian_u", "jacobian_s"), t, q, u, r)
    except SolveError as error:
        return str(error)
    return None


class Integrable(Evaluation):
    """The methods of :class:`~kanegen.Solver` that compute motions; their loops are compiled."""

    def integrate(
        self,
        t_span: tuple[float, float] | float,
        q0: Any = None,
        u0: Any = None,
        r: Any = None,
        *,
        s0: Any = None,
        method: str = "dopri5",
        rtol: Any = RTOL,
        atol: Any = ATOL,
        step: float | None = None,
        first_step: float | None = None,
        max_step: float | None = None,
        max_steps: int | None = None,
        t_eval: Any = None,
        events: Any = None,
        modes: Mapping[str, str] | None = None,
        dense_output: bool = True,
        progress: bool | Callable[[float], None] = False,
        start_tolerance: float | None = 1e-6,
        control: bool = False,
        sample_time: float | None = None,
        delay: float | None = None,
        limits: Any = None,
        y: Any = None,
        tau0: Any = None,
    ) -> Solution:
        """Integrate the motion from ``t0`` to ``t1`` (``t_span``, s; backwards when ``t1 < t0``) in compiled code.

        Parameters
        ----------
        t_span
            ``(t0, t1)``, or ``t1`` for a run that starts at the time of ``initial``.
        q0, u0
            Coordinates and speeds at ``t0``, (n_q,) and (n_u,), or mappings from names or symbols to values,
            ``{"theta": 0.3}``. Other values are those of ``initial``, changed as little as the constraints demand. If
            coordinates (or speeds) are missing there too, the constraints must determine them, and the known
            coordinates (or speeds) do not change.
        r
            Inputs: see :func:`kanegen.solve.inputs.run_inputs`. None: their defaults.
        s0
            States at ``t0`` of a model with states, (n_s,), or a mapping from their names or symbols to values; others
            are those of ``initial``.
        method
            ``"dopri5"`` (Dormand and Prince 1980, order 5(4)), ``"dop853"`` (Hairer, Norsett and Wanner 1993, order
            8(5,3)) and, for stiff equations, ``"rodas"`` (order 4(3), needs the Jacobians or, with closed contacts,
            differences) choose their steps; ``"rk4"`` and ``"kutta_merson"`` have a fixed ``step``.
        rtol, atol
            Relative and absolute tolerance of the local error, for adaptive methods: a number, an array
            (n_q + n_u + n_s,), or a mapping from names, ``{"x": 1e-6}``, which leaves the default for the others.
        step, first_step, max_step
            Step sizes in s: the fixed step of rk4 and kutta_merson; the first and the largest step of adaptive methods.
        max_steps
            Largest number of accepted steps; None for no limit.
        t_eval
            Times within the span, sorted in its direction, at which the solution is stored; None: every step. The
            solution has no times after a terminal event.
        events
            Names of the model's events to detect; None: all, ``()``: none. Contacts are always detected.
        modes
            Modes of contacts at the start, ``{"floor": "slip"}``, if several are consistent with the state
            (:data:`.MODES`); a mode that is not consistent is replaced. None: the modes must be unique.
        dense_output
            Store what ``solution(t)`` needs: k (n_q + n_u) numbers per step, k = 4 to 8; dop853 then needs three more
            evaluations per step.
        progress
            True: show a progress bar in long runs; False: a line that names runs of more than a second, in terminals
            and notebooks. A function: it is called with the time about every 20 ms.
        start_tolerance
            Largest violation of the constraints at the start (:func:`kanegen.solve.consistent.violations`); None: not
            checked.
        control
            False: the controls are ordinary inputs. True: the control law of the model closes the loop; the
            servo-constraints of a ``Servo`` determine the controls, ``ControlConstraints`` make them part of the state.
            ``r`` is then a mapping with the other inputs. See docs/control.md.
        sample_time
            The inputs ``r``, or with ``control=True`` the controls of a servo, are computed at multiples of this time
            (s) after ``t0``, once each and in order, and held in between. None: they are computed continuously.
        delay
            Time (s) from a sample until its values act; needs ``sample_time``. Before the first values act, an input
            has its default or, without one, the value of the first sample.
        limits
            Servo: for each control its largest magnitude, ``(lowest, highest)`` or None, in a sequence or a mapping by
            name; None: those of the model. ``saturation`` and ``warnings`` of ``solution.control`` show their effect.
        y
            Servo: free vector, a number or (n_tau,), if the model does not fix it; None: zero.
        tau0
            Control constraints: initial controls (and rates) of the state, (n,) in the order of
            ``description.control_constraints.states``. None: consistent controls of least norm.

        Returns
        -------
        Solution
            With status ``Outcome.FINISHED`` or ``Outcome.TERMINAL_EVENT``. With contacts or events it also holds the
            events that occurred, the modes over time and the contact forces.

        Raises
        ------
        SolveError
            For wrong arguments, values of contact laws out of range, an inconsistent start or one with missing values,
            which are named, and for spans backwards in time with impacts, friction or latches.
        IntegrationError
            A `SolveError` if the end cannot be reached (step size too small, ``max_steps``, values that are not
            finite, a singular matrix, an exception in a Python input, no consistent contact modes, chattering, a gap
            that is violated at the start, a guard that is zero everywhere). It names the contact or event; its
            ``solution`` holds the part that was integrated, with the status.
        IntegrationInterrupted
            A `KeyboardInterrupt` with the same ``solution``; a `KeyboardInterrupt` before the run has begun has none.
        """
        rtol, atol = self._tolerances(rtol, atol, control)
        stepping = (method, rtol, atol, step, first_step, max_step, max_steps, t_eval)
        options = Options(*stepping, events, modes, dense_output, progress).checked()
        t0, t1 = span_of(t_span, initial_time(self.description, self.initial))
        if start_tolerance is not None:
            positive(start_tolerance, "start_tolerance", "a positive number, or None for no check")
        closing = ControlOptions(control, sample_time, delay, limits, y, tau0)
        r = self._read_once(closing, r)
        q0, u0, s0 = start_state(self._functions, self.initial, t0, (q0, u0, s0), r, start_tolerance)
        start = RunStart(t0, q0, u0, start_tolerance)
        return integrate(self._running()._problem(closing, options, start, t1, r, s0), start, t1, options)

    def _running(self, *others: str) -> Integrable:
        """The solver, or one whose module also has ``others`` and the functions of a projection that were left out."""
        d, projected = self.description, isinstance(self.stabilization, Projection)
        needed = [*others, *(["Q", *functions_of_constraints(d)] if projected else [])]
        if not any(name in d.deferred for name in needed):
            return self
        needed += [*self._functions.in_run(self._state_function()), *(["residuals"] if d.constraints.levels else [])]
        functions, make = self._functions.having(*needed), cast(Callable[..., Integrable], type(self))
        values = functions.description, self.parameters, self.stabilization, self.initial, self.model
        solver = make(functions.extension, *values)
        solver.__dict__["_reference"] = self.__dict__.setdefault("_reference", SolverReference(self))
        return solver

    def _problem(
        self, control: ControlOptions, options: Options, start: RunStart, t1: float, r: Any, s0: Array
    ) -> Problem:
        functions, projection = self._functions, projection_of(self.stabilization, self._functions)
        loop = closed_loop(functions, control, start, r)
        functions.require(functions.in_run())
        function = functions.get((loop and loop.right_hand_side) or self._state_function())
        inputs = self._open_inputs(control, start, r, s0) if loop is None else loop.inputs
        momenta = None
        if loop is None and FORMS[self.description.form].momenta:
            momenta = RunMomenta(functions, r, self._inputs_needed())
        solver = self.__dict__.setdefault("_reference", SolverReference(self))
        held = (*self.description.input_names(inputs.held), *(loop.names if loop and loop.sampled else ()))
        record = _record(self, (start.t, t1), options, control, held)
        return Problem(functions, function, inputs, self.residuals, projection, momenta, loop, s0, solver, record)

    def consistent_controls(
        self, t: float, q: Any, u: Any, tau: Any = None, r: Any = None, *, tolerance: float = 1e-12
    ) -> Array:
        """Compute controls (n,) of the state that satisfy the control constraints at ``t``.

        Newton's method solves the control constraints and those of their derivatives that contain known quantities
        only; each correction has the least norm. The result is in the order of
        ``description.control_constraints.states``: the controls, then rates.

        Parameters
        ----------
        tau
            Initial guess (n,); None: zero.
        r
            The other inputs: a mapping from names to values at ``t``, or functions of time; None: their defaults.
        tolerance
            Residuals below this count as zero, relative to their derivatives with respect to the controls.

        Raises
        ------
        SolveError
            For a model without control constraints, and, with the residuals, if no controls satisfy them.
        """
        q, u, _ = self._state(q, u)
        names = self.description.input_names(control_constraints(self._functions).states)
        inputs = other_inputs(self._functions, names, r).at(number(t, "t"), (q, u))
        return consistent_controls(self._functions, t, q, u, tau, inputs, tolerance)

    def inverse_dynamics(
        self, path: Any, times: Any, r: Any = None, *, q0: Any = None, path_tolerance: float | None = 1e-6
    ) -> InverseDynamics:
        """Compute the controls, multipliers and reactions of a given motion, at all times in one compiled call.

        Parameters
        ----------
        path
            A mapping from coordinates and outputs to SymPy expressions of time and parameters, numbers, tables
            ``(times, values)`` or SciPy splines; a list of these for an output with several components. It contains
            all coordinates, or as many coordinates and outputs as there are degrees of freedom of the configuration
            (nonholonomic constraints do not count); the others are then assembled from one time to the next. Or one
            table (n,), (n, n_q), or one spline, of all coordinates. Splines of degree 5 interpolate tables.
        times
            Times of the evaluation, (n_t,), s.
        r
            The inputs that are not controls: a mapping as for :meth:`integrate`. The controls are those of the
            servo-constraints; in a model without servo-constraints, all inputs that occur in the forces only.
        q0
            Guess of the position at the first time, for a path of some coordinates and outputs only: a mapping by name
            or symbol, completed by ``initial`` and the path, or (n_q,).
        path_tolerance
            Largest violation of the constraints by the path, relative to the largest coordinate, speed or acceleration
            (at least 1); None: not checked.

        Returns
        -------
        InverseDynamics
            If the controls cannot drive the motion, ``residual`` holds the missing forces.

        Raises
        ------
        SolveError
            For wrong arguments, for a path that violates constraints (the message names each with its worst time), and
            for one that passes a singular position or leaves the workspace.
        """
        values = self.parameters, self.initial
        return inverse_dynamics(self._functions, values, path, times, r, q0, path_tolerance)

    def low_level_callable(self, r: Any = None) -> Any:
        """``rhs`` as a C function, a ``scipy.LowLevelCallable`` of ``int (double, double *, double *, void *)``.

        Its arguments are t, ``y = (q, u)`` or ``(q, u, s)`` (read), ``y'`` (written) and user data that the callable
        owns; the result is negative if y' could not be computed or is not finite. All contacts count as open; events
        are ignored. ``r`` is as for :meth:`integrate`, but without Python callables. Only one thread at a time can use
        it.
        """
        from scipy import LowLevelCallable

        function = self._functions.get(self._rhs_name)
        inputs = self._run_inputs(r)
        return LowLevelCallable(function.low_level(inputs.compiled, inputs.controls))

    def _run_inputs(self, r: Any) -> RunInputs:
        """The inputs ``r`` of a run; inputs that no function of the run reads need no value."""
        return self._default_inputs if r is None and not self.description.laws else self._described_inputs(r)

    @cached_property
    def _default_inputs(self) -> RunInputs:
        """The constant inputs of runs without ``r``, made once: that takes a tenth of the time of a short run."""
        return self._described_inputs(None)

    def _described_inputs(self, r: Any) -> RunInputs:
        functions = self._functions
        return run_inputs(functions.module, self.description, r, self._inputs_needed(), functions.law_values)

    def _tolerances(self, rtol: Any, atol: Any, control: bool) -> tuple[Any, Any]:
        if type(rtol) is type(atol) is float:
            return rtol, atol  # names cost more time than the checks of numbers
        names = state_components(self.description, control)
        return tolerances(rtol, "rtol", RTOL, names), tolerances(atol, "atol", ATOL, names)

    def _read_once(self, control: ControlOptions, r: Any) -> Any:
        """``r``, or the inputs that it describes: a callable that is sampled is called once at the start of a run."""
        is_sampled = control.sample_time is not None and r is not None and control.control is False
        return self._run_inputs(r) if is_sampled else r

    def _open_inputs(self, control: ControlOptions, start: RunStart, r: Any, s0: Array) -> RunInputs:
        """The inputs of a run without the control law of the model, held between samples if a sample time is given."""
        d, inputs = self.description, self._run_inputs(r)
        times = sample_times(control.sample_time, control.delay)
        if not (inputs.of_state or times[0]):
            return inputs
        if FORMS[d.form].momenta:
            what = "sampled inputs are" if times[0] else "an r of (t, q, u) is"
            raise SolveError(
                f"{what} not available with form={d.form!r}, which integrates momenta, not speeds: build with "
                'form="auto"'
            )
        if not times[0]:
            return inputs
        q, u = self.extension.module.checked_state(*start[:3])
        return held(self.extension.module, d, inputs, times, (start.t, (q, u, s0)), self._inputs_needed())

    def _state_function(self) -> str:
        return state_function(self.description.form, self._rhs_name)

    def _inputs_needed(self) -> frozenset[int]:
        """Indices of the inputs that a run reads."""
        functions = self._functions
        return functions.inputs_read(functions.in_run(self._state_function(), "residuals"))
