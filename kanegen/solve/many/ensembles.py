"""The method of a solver that integrates many motions."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from typing import Any, Unpack, cast

import numpy as np

from kanegen.codegen.description import Description
from kanegen.codegen.methods.table import IMPLICIT
from kanegen.errors import SolveError
from kanegen.progress import counting
from kanegen.run_options import CommonOptions, Kind, defaults, takes
from kanegen.solve.consistent import projection_of, start_state
from kanegen.solve.contacts import check_run, start_modes, watched_events
from kanegen.solve.feedback.closed_loop import check_control
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.gradients.directions import read_directions
from kanegen.solve.gradients.inputs import input_changes
from kanegen.solve.many.batch import Batching, parameters_of
from kanegen.solve.many.lanes import on_lanes
from kanegen.solve.many.motions import Motions, read_motions, requested_times
from kanegen.solve.many.reductions import reduction
from kanegen.solve.many.results import Ensemble, Results
from kanegen.solve.many.single import Runs, work
from kanegen.solve.many.threads import run_all
from kanegen.solve.run.integrate import Integrable
from kanegen.solve.run.options import check_options, check_value, span_of
from kanegen.solve.solution import IntegrationInterrupted
from kanegen.solve.values import Variables, by_array, known_name, positive_integer, state_components


class Ensembles(Integrable, Batching):
    """The method of a :class:`~kanegen.Solver` that integrates many motions."""

    @takes(CommonOptions)
    def integrate_many(
        self,
        t_span: tuple[float, float] | float,
        q0: Any = None,
        u0: Any = None,
        r: Any = None,
        *,
        parameters: Mapping[Any, Any] | None = None,
        s0: Any = None,
        t_eval: Any = None,
        reduce: Any = None,
        sensitivities: Any = None,
        threads: int = 1,
        progress: bool | Callable[[int], None] = False,
        **options: Unpack[CommonOptions],
    ) -> Ensemble:
        """Integrate N motions over the same span, each with its own start, parameters, inputs and step sizes.

        Every motion has the same bits for any N, place among the others and number of threads.

        Parameters
        ----------
        t_span
            As for :meth:`integrate`, for all motions.
        q0, u0, s0
            (N, n_q), (N, n_u), (N, n_s), or without rows: the same for all motions. Mappings by name contain numbers or
            arrays (N,); they are completed as for :meth:`integrate`. Without any rows N is 1.
        r
            Constant inputs (N, n_r), or a mapping in which some values are arrays (N,); anything else that
            :meth:`integrate` takes is the same for all motions. Python callables run under the interpreter lock.
        parameters
            Values by name or symbol that replace those of the solver: numbers, or arrays (N,).
        t_eval
            Times (K,) at which states are stored, sorted in the direction of the span. None: the end only, or none with
            a reduction.
        reduce
            What is kept of each motion as one number: ``"final"``, ``"min"``, ``"max"``, ``"max_abs"`` or
            ``"max_change"`` (since the start) of a scalar quantity, output, coordinate, speed or state, as a pair:
            ``("max", "height")``. A name alone is its value at the end. ``"max_energy_drift"`` is the largest change of
            the energy, ``("max_change", "energy")``.
            The quantity is evaluated at the start and after each accepted step, not in between.
        sensitivities
            Names of what the motions are differentiated with respect to, as for :meth:`integrate`; the motions then run
            one by one in each thread, and have the same steps and derivatives as there.
        threads
            The number of threads; the interpreter lock is released.
        progress
            True: show a progress bar if it takes long; False: a line that names it, as for :meth:`integrate`. A
            function: it is called with the number of motions that are done, about every 50 ms.
        **options
            The same for all motions, as for :meth:`integrate`: see :class:`kanegen.run_options.CommonOptions`.

        Returns
        -------
        Ensemble
            Motions that cannot start (NaN, an inconsistent start), or do not reach the end, fail alone: ``failures``
            holds their index, time and reason.

        Raises
        ------
        SolveError
            For arguments that are wrong for all motions: names, shapes, numbers of rows, options.
        BuildError
            If the code on lanes cannot be compiled.
        IntegrationInterrupted
            A `KeyboardInterrupt` after Ctrl-C; its ``solution`` is the :class:`~kanegen.results.Ensemble` with the
            motions that were completed.
        """
        own = inspect.signature(self.integrate_many).parameters
        for name in options:
            known_name(name, tuple(own), "argument")
        common = cast(CommonOptions, {**defaults(CommonOptions), **self._runs.with_tolerances(options)})
        number, span = positive_integer(threads, "threads"), span_of(t_span, self._runs.start_time)
        _check(self, common, progress)
        times = None if t_eval is None else requested_times(t_eval, *span)
        motions = read_motions(self.description, (q0, u0, s0), r, parameters)
        solver: Integrable = self
        if motions.parameters.is_common and motions.parameters.value:
            solver = self.with_parameters(motions.parameters.value)
        functions, varied = parameters_of(self._functions, motions.parameters.value)
        if (problem := functions.problem(solver._runs.state_function(), constants=not varied)) is not None:
            raise SolveError(problem)
        self._require_usable(functions, motions, span, common)
        reduced, names = reduction(functions, reduce), _varied(self.description, sensitivities)
        columns = self._columns(names, motions.r.sample)
        if reduced is not None and names:
            raise SolveError("there are no derivatives of reductions: give reduce= or sensitivities=, not both")
        runs = Runs(solver._runs.toward(*span).solver, motions, span, times, reduced, common, names)
        return _integrate(runs, columns, number, progress)

    def _columns(self, names: tuple[str, ...], r: Any) -> tuple[str, ...]:
        """The names of the columns of derivatives: those of what varies, with the ordinates of tables and splines."""
        if set(names).isdisjoint(self.description.inputs):
            return names
        directions = read_directions(self.description, names, "sensitivities")
        return tuple(x.label for x in input_changes(self.description, self._runs.inputs(r), directions)[0])

    def _require_usable(
        self, functions: CompiledFunctions, motions: Motions, span: tuple[float, float], options: CommonOptions
    ) -> None:
        """Raise `SolveError` for inputs, control options and a start with which no motion can be integrated."""
        r = motions.r.sample
        in_state = check_control(functions, options, options["method"], r)
        check_run(functions, watched_events(self.description, options["events"]), span[1] < span[0], in_state)
        if not options["control"]:
            self._runs.inputs(r).require_span(*span)
        d = self.description
        for variables, argument in zip(Variables.of(d, "0"), motions.state, strict=True):
            # Constraints can determine coordinates and speeds, but not the further states.
            if not by_array(argument.value) and (variables.kind == "state" or not d.constraints.levels):
                variables.complete({**self.initial, **(argument.value or {})})
        if motions.q0.value is None and motions.u0.value is None:
            start_state(functions, self.initial, span[0], (None, None, motions.s0.sample), r, None)


def _varied(d: Description, sensitivities: Any) -> tuple[str, ...]:
    """The names of what varies. Raises `SolveError` for unknown ones."""
    if sensitivities is None:
        return ()
    return tuple(direction.name for direction in read_directions(d, sensitivities, "sensitivities"))


def _check(solver: Any, options: CommonOptions, progress: Any) -> None:
    """Raise `SolveError` for options that are wrong for all motions."""
    check_options(options, options["method"])
    check_value(Kind.PROGRESS, progress, "progress")
    components = state_components(solver.description, options["control"])
    for name in ("rtol", "atol"):
        shape = np.shape(cast(Any, options.get(name)))
        if shape not in ((), (len(components),)):
            raise SolveError(f"{name} has shape {shape}; expected a number or ({len(components)},)")
    watched_events(solver.description, options["events"])
    start_modes(solver.extension.module, options["modes"])
    projection_of(solver.stabilization, solver._functions)
    if options["method"] in IMPLICIT:
        solver._functions.require(("jacobian_q", "jacobian_u", "jacobian_t"))


def _integrate(runs: Runs, columns: tuple[str, ...], threads: int, progress: Any) -> Ensemble:
    """``columns``: the names of the columns of derivatives."""
    d, count = runs.solver.description, runs.motions.count
    width = len(d.components)
    times = runs.times
    if times is None:
        times = np.array(runs.span[1:] if runs.reduction is None else ())
    results = Results(count, times, width, runs.reduction is not None, columns)
    lanes = on_lanes(runs, results)
    stopped, rows = threading.Event(), iter(range(count))
    number = max(1, min(threads, count))
    workers = [work(runs, results, rows, stopped) if lanes is None else lanes.run.work() for _ in range(number)]
    with counting(progress, d.name, f"integrating {count} motions of {d.name!r}", count, "motions") as call:
        interrupt = run_all(workers, stopped, lambda: call(int(results.completed.sum())))
    if lanes is not None:
        lanes.explain(runs, results)
    ensemble = results.ensemble(d, 1 if lanes is None else lanes.lanes)
    if interrupt is not None:
        done = int(results.completed.sum())
        message = f"stopped after {done} of {count} motions; these are in .solution of this exception"
        raise IntegrationInterrupted(message, ensemble) from interrupt
    return ensemble
