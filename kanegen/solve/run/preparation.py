"""How a solver prepares its runs: functions, inputs, control and tolerances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar, cast

from kanegen.backends.protocol import Build
from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.forms import FORMS
from kanegen.model import Baumgarte, Projection
from kanegen.run_options import CommonOptions, ControlOptions, RunOptions, defaults
from kanegen.solve.consistent import RunStart, functions_of_constraints, projection_of
from kanegen.solve.evaluation import Evaluation
from kanegen.solve.feedback.closed_loop import ClosedLoop, closed_loop, is_open
from kanegen.solve.inputs import RunInputs, held, run_inputs, sample_times
from kanegen.solve.run.momentum import RunMomenta, state_function
from kanegen.solve.run.problem import Problem
from kanegen.solve.solution import SolverReference
from kanegen.solve.values import initial_time, state_components, tolerances

Given = TypeVar("Given", RunOptions, CommonOptions)


class Preparation:
    """The preparation of the runs of a ``solver``; solutions refer to ``reference``."""

    def __init__(self, solver: Evaluation, reference: SolverReference | None = None) -> None:
        self.solver, self.functions, self.description = solver, solver._functions, solver.description
        self.reference = SolverReference(solver) if reference is None else reference

    @cached_property
    def start_time(self) -> float | None:
        """The time of ``initial``."""
        return initial_time(self.description, self.solver.initial)

    def toward(self, t0: float, t1: float) -> Preparation:
        """The preparation with the stabilization that acts in the direction of a run from ``t0`` to ``t1``."""
        given = self.solver.stabilization
        turned = isinstance(given, Baumgarte) and t0 != t1 and given.backward != (t1 < t0)
        return self._turned if turned else self

    @cached_property
    def _turned(self) -> Preparation:
        """The preparation with the stabilization of the other direction of time."""
        stabilization = cast(Baumgarte, self.solver.stabilization)
        turned = stabilization.toward(not stabilization.backward)
        return Preparation(self._same(self.solver.extension, self.description, turned))

    def _same(
        self, extension: Build, description: Description, stabilization: Baumgarte | Projection | None
    ) -> Evaluation:
        """A solver with the same values for another build or stabilization."""
        solver, make = self.solver, cast(Callable[..., Evaluation], type(self.solver))
        return make(extension, description, solver.parameters, stabilization, solver.initial, solver.model)

    def having(self, *others: str) -> Preparation:
        """The preparation whose module has ``others``, and the functions of a projection, if they were left out."""
        if others not in self._runners:
            self._runners[others] = self._with_functions(others)
        return self._runners[others]

    @cached_property
    def _runners(self) -> dict[tuple[str, ...], Preparation]:
        return {}

    def _with_functions(self, others: tuple[str, ...]) -> Preparation:
        d, projected = self.description, isinstance(self.solver.stabilization, Projection)
        needed = [*others, *(["Q", *functions_of_constraints(d)] if projected else [])]
        if not any(name in d.deferred for name in needed):
            return self
        needed += [*self.functions.in_run(self.state_function()), *(["residuals"] if d.constraints.levels else [])]
        functions = self.functions.having(*needed)
        solver = self._same(functions.extension, functions.description, self.solver.stabilization)
        return Preparation(solver, self.reference)

    def problem(self, control: ControlOptions, start: RunStart, r: Any) -> Problem:
        """What a run with these options and inputs integrates."""
        if r is None and is_open(control) and not self.description.laws:
            return self._default_problem
        loop = closed_loop(self.functions, control, start, r)
        inputs = self._open_inputs(control, start, r) if loop is None else loop.inputs
        return self._problem_with(inputs, r, loop)

    @cached_property
    def _default_problem(self) -> Problem:
        """The problem of runs without ``r`` and control, made once: that takes as long as a short run."""
        return self._problem_with(self.inputs(None), None, None)

    def _problem_with(self, inputs: RunInputs, r: Any, loop: ClosedLoop | None) -> Problem:
        functions, projection, momenta = self.functions, projection_of(self.solver.stabilization, self.functions), None
        functions.require(functions.in_run())
        function = functions.get((loop and loop.right_hand_side) or self.state_function())
        if loop is None and FORMS[self.description.form].momenta:
            momenta = RunMomenta(functions, r, self._inputs_needed())
        return Problem(functions, function, inputs, projection, momenta, loop, self.reference)

    def inputs(self, r: Any) -> RunInputs:
        """The inputs ``r`` of a run; inputs that no function of the run reads need no value."""
        functions = self.functions
        return run_inputs(functions.module, self.description, r, self._inputs_needed(), functions.law_values)

    def with_tolerances(self, options: Given) -> Given:
        """The options, with tolerances that are given by name as arrays."""
        given = {name: value for name in ("rtol", "atol") if isinstance(value := options.get(name), Mapping)}
        if not given:
            return options
        names, default = state_components(self.description, options.get("control", False)), defaults(RunOptions)
        arrays = {name: tolerances(value, name, default[name], names) for name, value in given.items()}
        return cast(Given, {**options, **arrays})

    def read_once(self, control: ControlOptions, r: Any) -> Any:
        """``r``, or the inputs that it describes: a callable that is sampled is called once at the start of a run."""
        is_sampled = control["sample_time"] is not None and r is not None and not control["control"]
        return self.inputs(r) if is_sampled else r

    def _open_inputs(self, control: ControlOptions, start: RunStart, r: Any) -> RunInputs:
        """The inputs of a run without the control law of the model, held between samples if a sample time is given."""
        d, inputs = self.description, self.inputs(r)
        times = sample_times(control["sample_time"], control["delay"])
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
        q, u = self.functions.module.checked_state(*start[:3])
        return held(self.functions.module, d, inputs, times, (start.t, (q, u, start.s)), self._inputs_needed())

    def state_function(self) -> str:
        """The name of the right-hand side of a run."""
        return state_function(self.description.form, self.solver._rhs_name)

    def _inputs_needed(self) -> frozenset[int]:
        """Indices of the inputs that a run reads."""
        functions = self.functions
        return functions.inputs_read(functions.in_run(self.state_function(), "residuals"))
