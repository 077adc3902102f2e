"""Motions: the methods of a solver that integrate, or follow a given path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kanegen.arrays import Array
from kanegen.backends.protocol import Build
from kanegen.codegen.description import Description
from kanegen.model import Baumgarte, Projection
from kanegen.solve.analysis.inverse_dynamics import InverseDynamics, inverse_dynamics
from kanegen.solve.consistent import projection_of
from kanegen.solve.control.closed_loop import ClosedLoop, ControlOptions, closed_loop, other_inputs
from kanegen.solve.control.consistent import consistent_controls, control_constraints
from kanegen.solve.functions import Functions
from kanegen.solve.inputs.inputs import RunInputs, run_inputs
from kanegen.solve.run.integrate import Options, Problem, Stepping, integrate
from kanegen.solve.run.momentum import RunMomenta, is_momentum_form, state_function
from kanegen.solve.solution import Solution


class Integrable:
    """The methods of :class:`~kanegen.Solver` for motions; no Python runs within their loops."""

    description: Description
    extension: Build
    parameters: Mapping[str, float | None]
    stabilization: Baumgarte | Projection | None
    residuals: Callable[..., tuple[Array, Array]]
    _functions: Functions
    _rhs_name: str

    def integrate(
        self,
        t_span: tuple[float, float],
        q0: Any,
        u0: Any,
        r: Any = None,
        *,
        method: str = "dopri5",
        rtol: Any = 1e-8,
        atol: Any = 1e-10,
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
        limits: Any = None,
        y: Any = None,
        tau0: Any = None,
    ) -> Solution:
        """Integrate the motion from ``t0`` to ``t1`` (``t_span``, s; backwards when ``t1 < t0``) in compiled code.

        Parameters
        ----------
        q0, u0
            Start, (n_q,) and (n_u,).
        r
            Inputs: see :func:`kanegen.solve.inputs.inputs.run_inputs`. None: their defaults.
        method
            ``"dopri5"`` (Dormand and Prince 1980, order 5(4)), ``"dop853"`` (Hairer, Norsett and Wanner 1993, order
            8(5,3)) and the stiff ``"rodas"`` (order 4(3), needs the Jacobians, or takes differences while contacts act)
            choose their steps; ``"rk4"`` and ``"kutta_merson"`` have a fixed ``step``. See docs/integration.md.
        rtol, atol
            Tolerances of the local error, numbers or (n_q + n_u,), for methods that choose their steps.
        step, first_step, max_step
            Sizes of steps in s: of methods with a fixed step; of the first step; the largest.
        max_steps
            Largest number of accepted steps; None for no limit.
        t_eval
            Times within the span, sorted in its direction, at which the solution is stored; None: every step. Times
            after a terminal event are left out.
        events
            Names of the model's events to look for; None: all, ``()``: none. Contacts always act.
        modes
            Modes of contacts at the start, ``{"floor": "slip"}``, where several are consistent with the state
            (:data:`.MODES`); a mode that is not consistent is replaced. None: the modes must be unique.
        dense_output
            Store what ``solution(t)`` needs: k (n_q + n_u) numbers a step, k = 4 to 8; dop853 then needs three more
            evaluations a step.
        progress
            True: show a progress bar if the run takes long. A function: it is called with the time every 20 ms or so.
        start_tolerance
            How far the start may violate the constraints (:func:`kanegen.solve.run.integrate.check_start`); None:
            not checked.
        control
            False: the controls are inputs like others. True: the control law of the model closes the loop; the
            servo-constraints of a ``Servo`` give the controls, ``ControlConstraints`` make them part of the state.
            ``r`` is then a mapping that gives the other inputs. See docs/control.md.
        sample_time
            Servo: the controls are computed at multiples of this time (s) after ``t0`` and held in between. None:
            always.
        limits
            Servo: largest magnitude of each control, ``(lowest, highest)`` or None, in their order, or a mapping by
            name; None: those of the model. ``saturation`` and ``warnings`` of ``solution.control`` show their effect.
        y
            Servo: free vector, a number or (n_tau,), if the model does not fix it; None: zero.
        tau0
            Control constraints: start of the controls (and rates) of the state, (n,) in the order of
            ``description.control_constraints.states``. None: consistent ones of least norm.

        Returns
        -------
        Solution
            Its ``status`` is ``Outcome.FINISHED`` or ``Outcome.TERMINAL_EVENT``. With contacts or events it also holds
            the events that occurred, the modes over time and the contact forces.

        Raises
        ------
        SolveError
            For wrong arguments, values of contact laws out of range, an inconsistent start, and for spans that go
            backwards where impacts, friction or latches would have to be undone.
        IntegrationError
            A `SolveError` when the end cannot be reached (step size too small, ``max_steps``, values that are not
            finite, a singular matrix, an exception in a Python input, contacts without a motion, chattering, a gap that
            is violated at the start, a guard that is zero everywhere). It names the contact or event; its ``solution``
            holds the part that was integrated, with the status.
        IntegrationInterrupted
            A `KeyboardInterrupt` with the same ``solution``.
        """
        stepping = Stepping(method, rtol, atol, step, first_step, max_step, max_steps, t_eval)
        projection = projection_of(self.stabilization, self._functions)
        options = Options(stepping, events, modes, dense_output, progress, start_tolerance, projection)
        control_options = ControlOptions(control, sample_time, limits, y, tau0)
        loop = closed_loop(self._functions, control_options, t_span, q0, u0, r, start_tolerance)
        self._functions.require(self._functions.in_run())
        return integrate(self._problem(loop, r), t_span, q0, u0, options)

    def _problem(self, loop: ClosedLoop | None, r: Any) -> Problem:
        usual = state_function(self.description.form, self._rhs_name)
        return Problem(
            functions=self._functions,
            function=self._functions.get((loop and loop.right_hand_side) or usual),
            inputs=self._run_inputs(r) if loop is None else loop.inputs,
            residuals=self.residuals,
            momenta=self._run_momenta(r) if loop is None else None,
            loop=loop,
        )

    def consistent_controls(
        self, t: float, q: Any, u: Any, tau: Any = None, r: Any = None, *, tolerance: float = 1e-12
    ) -> Array:
        """Controls (n,) of the state that satisfy the control constraints at ``t``, from a guess that does not.

        Newton's method solves the control constraints, and their derivatives as far as these contain known quantities
        only; each correction has the least norm. The result is in the order of
        ``description.control_constraints.states``: the controls, then rates.

        Parameters
        ----------
        tau
            Guess (n,); None: zero.
        r
            The other inputs: a mapping from names to values at ``t``, or functions of time; None: their defaults.
        tolerance
            Residuals that count as zero, relative to their derivatives in the controls.

        Raises
        ------
        SolveError
            For a model without control constraints, and where no controls satisfy them, with the residuals.
        """
        names = self.description.input_names(control_constraints(self._functions).states)
        inputs = other_inputs(self._functions, names, r).at(float(t))
        return consistent_controls(self._functions, t, q, u, tau, inputs, tolerance)

    def inverse_dynamics(
        self, path: Any, times: Any, r: Any = None, *, path_tolerance: float | None = 1e-6
    ) -> InverseDynamics:
        """The controls, multipliers and reactions of a given motion, at all times in one compiled call.

        Parameters
        ----------
        path
            Motion of all coordinates: a mapping from each to a SymPy expression of time and parameters, a number, a
            table ``(times, values)`` or a SciPy spline; or one table (n,), (n, n_q), or one spline, of all. Tables are
            interpolated by splines of degree 5.
        times
            Where to evaluate, (n_t,), s.
        r
            The inputs that are not controls: a mapping as for :meth:`integrate`. The controls are those of the
            servo-constraints; in a model without, all inputs that occur in the forces only.
        path_tolerance
            How far the path may violate the constraints, relative to the largest coordinate, speed or acceleration,
            which counts as 1 at least; None: not checked.

        Returns
        -------
        InverseDynamics
            If the controls cannot drive the motion, ``residual`` has the missing forces.

        Raises
        ------
        SolveError
            For a path that violates the constraints, naming each with its worst time; for wrong arguments.
        """
        return inverse_dynamics(self._functions, self.parameters, path, times, r, path_tolerance)

    def low_level_callable(self, r: Any = None) -> Any:
        """``rhs`` as a C function, a ``scipy.LowLevelCallable`` of ``int (double, double *, double *, void *)``.

        Its arguments are t, ``y = (q, u)`` (read), ``y'`` (written) and user data the callable owns; the result is
        negative when y' could not be computed or is not finite. All contacts are treated as open; events are ignored.
        ``r`` as for :meth:`integrate`, but no Python callable. One thread at a time may use it.
        """
        from scipy import LowLevelCallable

        function = self._functions.get(self._rhs_name)
        return LowLevelCallable(function.low_level(self._run_inputs(r).compiled))

    def _run_inputs(self, r: Any) -> RunInputs:
        """The inputs ``r`` of a run, as for :meth:`integrate`; inputs that no function of a run reads need no value."""
        return run_inputs(self.extension.module, self.description, r, self._inputs_needed())

    def _run_momenta(self, r: Any) -> RunMomenta | None:
        """What converts the state of a run, in the forms that integrate momenta."""
        if not is_momentum_form(self.description.form):
            return None
        return RunMomenta(self._functions, r, self._inputs_needed())

    def _inputs_needed(self) -> frozenset[int]:
        """Indices of the inputs that a run reads."""
        functions = self._functions
        usual = (state_function(self.description.form, self._rhs_name), "residuals")
        return functions.inputs_read(functions.in_run(*usual))
