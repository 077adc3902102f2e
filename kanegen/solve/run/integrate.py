"""Integration: the methods of a solver that compute motions; their loops are compiled."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, Unpack

import numpy as np

from kanegen.arrays import Array
from kanegen.progress import ProgressBar, activity
from kanegen.run_options import RunOptions, stepping, takes
from kanegen.solve.consistent import (
    RunStart,
    consistent_controls,
    control_constraints,
    named_values,
    start_state,
)
from kanegen.solve.contacts import start_modes
from kanegen.solve.evaluation import Evaluation
from kanegen.solve.feedback.closed_loop import other_inputs
from kanegen.solve.gradients.accuracy import (
    ATTEMPTS,
    is_stalled,
    warn_of_error,
    with_shorter_steps,
)
from kanegen.solve.gradients.objective import Objective
from kanegen.solve.gradients.runs import GradientRun, SensitivityRun, gradient_run, sensitivity_run
from kanegen.solve.inverse import InverseDynamics, inverse_dynamics
from kanegen.solve.run.modes import latches_of, require_one_transition
from kanegen.solve.run.options import read_options, span_of
from kanegen.solve.run.preparation import Preparation
from kanegen.solve.run.problem import Problem, check_start, detected_events
from kanegen.solve.run.results import RunFields, require_finished
from kanegen.solve.solution import Solution
from kanegen.solve.values import number


def integrate(
    problem: Problem, start: RunStart, t1: float, options: RunOptions, held: Collection[str] = ()
) -> Solution:
    """Integrate; see :meth:`kanegen.Solver.integrate`, whose arguments these are.

    ``held``: names of the start values that the user gave, which sensitivities do not move.
    """
    events = detected_events(problem, start, t1, options)
    check_start(problem, start)
    if options["sensitivities"] is None:
        return _integrated(problem, start, t1, options, events)[1]
    wanted = sensitivity_run(problem, start, held, options)
    fields, solution, sensitivities = _differentiated(problem, start, t1, options, events, wanted)
    fields.sensitivities = sensitivities
    return solution


def _integrated(
    problem: Problem,
    start: RunStart,
    t1: float,
    options: RunOptions,
    events: tuple[int, ...],
    stops: Array | None = None,
) -> tuple[RunFields, Solution]:
    """Integrate to ``t1``; ``events``: indices of those to detect; ``stops``: further times at which steps end."""
    module, (t0, q0, u0, s0, _) = problem.functions.module, start
    with _progress(problem.functions.description.name, t0, t1, options["progress"]) as call:
        result = module.integrate(
            problem.function,
            problem.inputs.compiled,
            t0,
            t1,
            q0,
            u0 if problem.momenta is None else problem.momenta.of(t0, q0, u0),
            s0,
            **stepping(options),
            t_eval=options["t_eval"],
            dense=options["dense_output"],
            progress=call,
            events=events,
            modes=start_modes(module, latches_of(problem.functions.description, s0, options["modes"])),
            projection=problem.projected,
            control=problem.controls,
            instants=_instants(problem, t0, t1, options["rtol"], stops),
        )
    if problem.momenta is not None:
        problem.momenta.to_speeds(result)
    fields = RunFields(problem, (t0, t1), options, result)
    solution = Solution(fields)
    require_finished(problem, solution, result, t1)
    require_one_transition(problem.functions.description, solution.events)
    return fields, solution


def _differentiated(
    problem: Problem,
    start: RunStart,
    t1: float,
    options: RunOptions,
    events: tuple[int, ...],
    derivatives: SensitivityRun | GradientRun,
) -> tuple[RunFields, Solution, Any]:
    """Integrate with steps that are short enough for derivatives, and compute these."""
    errors, allowed, stops = list[float](), derivatives.allowed, derivatives.stops
    while True:
        fields, solution = _integrated(problem, start, t1, options, events, stops)
        result, (error, further) = derivatives.result(solution)
        if error <= allowed:
            return fields, solution, result
        errors.append(error)
        if further is not None and len(errors) <= ATTEMPTS:
            stops = further if stops is None else np.concatenate([stops, further])
            continue
        if is_stalled(errors, options):
            warn_of_error(error, allowed)
            return fields, solution, derivatives.result(solution, accepted=True)[0]
        options = with_shorter_steps(options, solution.statistics.largest_step, errors, allowed)


def _instants(problem: Problem, t0: float, t1: float, rtol: Any, stops: Array | None) -> Array | None:
    """The ascending times at which steps end, because inputs change there or ``stops`` are asked for."""
    of_inputs = problem.inputs.changes.instants((t0, t1), rtol)
    if stops is None:
        return of_inputs
    stops = stops[(stops >= min(t0, t1)) & (stops <= max(t0, t1))]
    return np.unique(np.concatenate([stops, np.ravel(of_inputs if of_inputs is not None else [])]))


def _progress(name: str, t0: float, t1: float, progress: Any) -> AbstractContextManager[Any]:
    """A context with the function of the time that shows the progress of a run, or None; see `Solver.integrate`."""
    if not progress:
        return activity(f"integrating {name!r}")
    return nullcontext(progress) if callable(progress) else ProgressBar(name, t0, t1)


class Integrable(Evaluation):
    """The methods of :class:`~kanegen.Solver` that compute motions; their loops are compiled."""

    @takes(RunOptions)
    def integrate(
        self,
        t_span: tuple[float, float] | float,
        q0: Any = None,
        u0: Any = None,
        r: Any = None,
        *,
        s0: Any = None,
        **options: Unpack[RunOptions],
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
        **options
            See :class:`kanegen.run_options.RunOptions`.

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
            A `SolveError` if the end cannot be reached (step size too small, too many steps, values that are not
            finite, a singular matrix, an exception in a Python input, no consistent contact modes, chattering, a gap
            that is violated at the start). It names the contact or event; its
            ``solution`` holds the part that was integrated, with the status.
        IntegrationInterrupted
            A `KeyboardInterrupt` with the same ``solution``; a `KeyboardInterrupt` before the run has begun has none.
        """
        complete = read_options(self._runs.with_tolerances(options))
        problem, start, t1 = self._prepared_run(t_span, (q0, u0, s0), r, complete)
        held = () if complete["sensitivities"] is None else named_values(self.description, q0, u0)
        return integrate(problem, start, t1, complete, held)

    def _prepared_run(
        self, t_span: Any, given: tuple[Any, Any, Any], r: Any, options: RunOptions
    ) -> tuple[Problem, RunStart, float]:
        """The problem of a run, its start and its end."""
        runs = self._runs
        t0, t1 = span_of(t_span, runs.start_time)
        tolerance = options["start_tolerance"]
        r = runs.read_once(options, r)
        q0, u0, s0 = start_state(self._functions, self.initial, t0, given, r, tolerance)
        start = RunStart(t0, q0, u0, s0, tolerance)
        return runs.toward(t0, t1).having().problem(options, start, r), start, t1

    @takes(RunOptions)
    def value_and_gradient(
        self,
        objective: Objective,
        t_span: tuple[float, float] | float,
        q0: Any = None,
        u0: Any = None,
        r: Any = None,
        *,
        with_respect_to: Any,
        s0: Any = None,
        nondifferentiable: str = "error",
        **options: Unpack[RunOptions],
    ) -> tuple[float, dict[str, Any]]:
        """Integrate a motion, and compute a function of it with its gradient, whatever the number of parameters.

        The gradient is that of the steps that were taken (discrete adjoint), through events, impacts and changes of the
        modes of contacts, whose times move.

        Parameters
        ----------
        objective
            See :class:`kanegen.Objective`.
        with_respect_to
            Names or symbols of parameters, of coordinates, speeds and states, which stand for their start values, and
            of inputs that are constant in the run, or that a table or spline gives.
        t_span, q0, u0, r, s0
            As for :meth:`integrate`. A start that constraints complete moves with what varies; values that a mapping
            gives by name do not.
        nondifferentiable
            What happens at an event beyond which the motion has no derivative: ``"error"``, or ``"warn"`` for a warning
            and the one-sided derivative for the order of events in this motion.
        **options
            See :class:`kanegen.run_options.RunOptions`.

        Returns
        -------
        value : float
            The objective.
        gradient : dict
            Its derivatives by name; for an input that a table or spline gives an array (n,), with the derivative with
            respect to each ordinate.

        Raises
        ------
        SolveError
            For unknown names and symbols, samples outside the motion, and motions without a derivative: the message
            names the event and its time, or the feature of the model.
        IntegrationError
            As :meth:`integrate`.
        """
        complete = read_options(self._runs.with_tolerances(options))
        problem, start, t1 = self._prepared_run(t_span, (q0, u0, s0), r, complete)
        held = named_values(self.description, q0, u0)
        run = gradient_run(problem, start, held, objective, with_respect_to, complete, self.model, nondifferentiable)
        events = detected_events(problem, start, t1, complete)
        check_start(problem, start)
        result: tuple[float, dict[str, Any]] = _differentiated(problem, start, t1, complete, events, run)[2]
        return result

    @cached_property
    def _runs(self) -> Preparation:
        return Preparation(self)

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
            Residuals below this fraction of the sums of their absolute terms count as zero.

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
            Largest violation of the constraints by the path: a residual relative to what it changes by when coordinates
            and speeds change by the size of the largest of them, or to the terms of the equation of accelerations;
            None: not checked.

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

    def switching_times(self, t_span: tuple[float, float] | float, r: Any = None, *, rtol: float = 1e-8) -> Array:
        """Compute the times (n,) at which what is known in time jumps or has a kink, in the direction of ``t_span``.

        :meth:`integrate` ends steps there. An integrator of other software does not know that a force begins, and may
        step over it: let it integrate from one of these times to the next (docs/integration.md).

        Parameters
        ----------
        t_span
            As for :meth:`integrate`. The start and the end are not among the times.
        r
            Inputs as for :meth:`integrate`. Breakpoints of tables and splines are among the times if they matter for a
            run with the relative tolerance ``rtol``.

        Raises
        ------
        SolveError
            For wrong arguments, and where a function of time that switches something has no value.
        """
        t0, t1 = span_of(t_span, self._runs.start_time)
        own = self.extension.module.switching_times(self._functions.prepared, t0, t1)
        of_inputs = None if r is None else self._runs.inputs(r).changes.instants((t0, t1), rtol)
        if of_inputs is None:
            return own
        times: Array = np.union1d(own, of_inputs)
        return times if t1 >= t0 else times[::-1].copy()

    def low_level_callable(self, r: Any = None) -> Any:
        """``rhs`` as a C function, a `scipy.LowLevelCallable` of ``int (double, double *, double *, void *)``.

        Its arguments are t, ``y = (q, u)`` or ``(q, u, s)`` (read), ``y'`` (written) and user data that the callable
        owns; the result is negative if y' could not be computed or is not finite. All contacts count as open; events
        are ignored. ``r`` is as for :meth:`integrate`, but without Python callables. Only one thread at a time can use
        it.
        """
        from scipy import LowLevelCallable

        function = self._functions.get(self._rhs_name)
        inputs = self._runs.inputs(r)
        return LowLevelCallable(function.low_level(inputs.compiled, inputs.controls))
