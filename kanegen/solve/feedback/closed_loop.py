"""Closed-loop runs: servo-constraints or control constraints of the model determine the controls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.description import ControlConstraintLabels, Description, ServoLabels
from kanegen.codegen.methods.table import IMPLICIT
from kanegen.errors import SolveError
from kanegen.forms import FORMS
from kanegen.model.control import control_limits
from kanegen.program.catalogue import CONTROLLED_RATES
from kanegen.run_options import ControlOptions, table
from kanegen.solve.consistent import RunStart, consistent_controls, start_problems, with_controls
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.inputs import RunInputs, run_inputs, sample_times
from kanegen.solve.solution import ControlHistory, Saturation
from kanegen.solve.values import by_name, key_name, listed, numbers, require_none

_BISECTIONS = 40
"""Number of bisections of an interval between two points of a run; they reduce its length by 1e-12."""


_OF_LAWS: Final = tuple(name for name in table(ControlOptions) if name != "control")
"""The options of a control law, or of samples."""


def is_open(options: ControlOptions) -> bool:
    """Whether no option of control was given: an open loop without samples."""
    return not options["control"] and all(options.get(name) is None for name in _OF_LAWS)


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """The controls of one run.

    ``compiled``: the module's ``Control``; ``names``: names of the controls; ``law``: the compiled function that
    computes them, None if they are part of the state (then ``states`` are their indices among the inputs);
    ``residuals``: the function of the servo-errors, with their ``labels``, None without constraints; ``limits``
    (2, n_tau); ``free``: the free vector (n_free,); ``inputs``: the other inputs.
    """

    functions: CompiledFunctions
    compiled: Any
    inputs: RunInputs
    names: tuple[str, ...]
    law: str | None
    residuals: str | None
    labels: tuple[str, ...]
    limits: Array
    free: Array
    states: tuple[int, ...] = ()
    sampled: bool = False

    def check(self, method: str) -> None:
        """Raise `SolveError` for a method that needs the Jacobian of the loop."""
        if method in IMPLICIT and not (self.law and self.sampled):
            raise SolveError(_without_jacobian(method))

    @property
    def right_hand_side(self) -> str | None:
        """Name of the function that is integrated; None: the right-hand side of the solver."""
        return CONTROLLED_RATES if self.law is None else None

    def record(self, result: Any, dense: Any, start: float) -> ControlHistory:
        """The controls and servo-errors at the stored times of a run from the time ``start`` on."""
        errors = None
        if self.residuals is not None:
            errors = self._along(self.residuals, result.t, result.y)
        if self.law is None:
            return ControlHistory(result.controls, self.names, errors, self.labels)
        if self.sampled:
            times, values = acting(result.samples[-1], start)
            rounding = 1e-9 * self.compiled.sample_time  # times from which samples act can have rounding errors
            controls = values[np.searchsorted(times, result.t + rounding, side="right") - 1]
            saturation = held_saturations(self.names, times, values, result.last[0], self.limits)
        else:
            controls = self._controls(result.t, result.y)
            saturation = self._continuous(result, controls, dense)
        warnings = warnings_of(saturation, result.t, errors, self.labels)
        return ControlHistory(controls, self.names, errors, self.labels, tuple(saturation), warnings)

    def _continuous(self, result: Any, controls: Array, dense: Any) -> list[Saturation]:
        """Saturation from five points of each step or, without dense output, from the stored points."""
        if not np.isfinite(self.limits).any():
            return []
        if dense is None or not dense.t_old.size:
            return continuous_saturations(self.names, result.t, controls, self.limits, None)
        inner = (dense.t_old[:, None] + dense.h[:, None] * np.linspace(0.0, 0.8, 5)).ravel()
        times = np.append(inner, result.last[0])

        def controls_at(t: float) -> Array:
            time = np.array([t])
            return np.asarray(self._controls(time, dense(time))[0])

        return continuous_saturations(self.names, times, self._controls(times, dense(times)), self.limits, controls_at)

    def _controls(self, times: Array, states: Array) -> Array:
        """Controls of the law, clipped to their limits, (n_t, n_tau)."""
        return np.clip(self._along(str(self.law), times, states), *self.limits)

    def _along(self, name: str, times: Array, states: Array) -> Array:
        module = self.functions.module
        source = module.Control(None, self.states, *self.limits[:, : len(self.states)], free=self.free)
        controls = (*self.inputs.controls, source)
        (values,) = module.along(self.functions.get(name), self.inputs.compiled, controls, times, states)
        return np.asarray(values)


def closed_loop(functions: CompiledFunctions, options: ControlOptions, start: RunStart, r: Any) -> ClosedLoop | None:
    """The closed loop of a run; None for an open loop.

    Raises `SolveError` for options that contradict each other or the model, and for a start that violates control
    constraints.
    """
    d = functions.description
    if not _is_closed(d, options, r):
        return None
    if d.servo is not None:
        return _servo(functions, d.servo, options, r)
    assert d.control_constraints is not None
    return _control_states(functions, d.control_constraints, options, start, r)


def check_control(functions: CompiledFunctions, options: ControlOptions, method: str, r: Any) -> bool:
    """Whether the controls are part of the state. Raises `SolveError` for options that are wrong for every start."""
    d = functions.description
    if not _is_closed(d, options, r):
        sample_times(options["sample_time"], options["delay"])
        return False
    if d.servo is not None:
        _servo(functions, d.servo, options, r).check(method)
        return False
    assert d.control_constraints is not None
    if method in IMPLICIT:
        raise SolveError(_without_jacobian(method))
    _given_states(d.input_names(d.control_constraints.states), options)
    return True


def _is_closed(d: Description, options: ControlOptions, r: Any) -> bool:
    """Whether the control law of the model closes the loop. Raises `SolveError` for options that contradict this."""
    if options["control"] and d.servo is None and d.control_constraints is None:
        raise SolveError(
            f"control=True closes the loop with the control law of the model, but {d.name!r} has none: give "
            "control=kg.Servo(...) or control=kg.ControlConstraints(...) to kg.Model, or leave control=True out"
        )
    own = {"sample_time", "delay"} if r is not None else set[str]()  # they apply to r as well
    given = ", ".join(name for name in _OF_LAWS if name not in own and options.get(name) is not None)
    if given and not options["control"]:
        sampled = options["sample_time"] is not None or options["delay"] is not None
        also = " or, for samples, to inputs r" if sampled else ""
        raise SolveError(
            f"{given} applies to a closed loop only{also}: give control=True as well, or leave {given} out"
        )
    return options["control"]


def _servo(functions: CompiledFunctions, servo: ServoLabels, options: ControlOptions, r: Any) -> ClosedLoop:
    d = functions.description
    if FORMS[d.form].momenta:
        raise SolveError(f'form={d.form!r} integrates momenta, not speeds: build with form="auto" for control=True')
    if options["tau0"] is not None:
        raise SolveError("tau0 is for kg.ControlConstraints only: the controls of a kg.Servo have no initial values")
    sample_time, delay = sample_times(options["sample_time"], options["delay"])
    names = d.input_names(servo.controls)
    limits = _limits(options["limits"], servo, names)
    if options["y"] is not None and not servo.free:
        raise SolveError("y was given, but Servo(y=...) of the model fixes it: leave one of them out")
    y = 0.0 if options["y"] is None else numbers(options["y"], "y", names)
    free = np.broadcast_to(y, len(d.free_controls)).copy()
    functions.require(["control"])
    before = [np.nan if (default := d.input_slots[k].default) is None else default for k in servo.controls]
    times = {"sample_time": sample_time, "delay": delay, "before": before}
    return ClosedLoop(
        functions,
        functions.module.Control("control", servo.controls, *limits, free=free, **times),
        other_inputs(functions, names, r),
        names,
        "control",
        "servo_residuals" if "servo_residuals" in d.functions else None,
        servo.residuals,
        limits,
        free,
        sampled=options["sample_time"] is not None,
    )


def _control_states(
    functions: CompiledFunctions,
    labels: ControlConstraintLabels,
    options: ControlOptions,
    start: RunStart,
    r: Any,
) -> ClosedLoop:
    names = functions.description.input_names(labels.states)
    given, inputs = _given_states(names, options), other_inputs(functions, names, r)
    z = _start_of_states(functions, given, start, inputs.at(start.t, (start.q, start.u)))
    unlimited = np.repeat([[-np.inf], [np.inf]], len(names), axis=1)
    free = np.zeros(len(functions.description.free_controls))
    return ClosedLoop(
        functions,
        functions.module.Control(None, labels.states, *unlimited, start=z, free=free),
        replace(inputs, function=lambda *state: with_controls(labels, inputs.function(*state), z), _known={}),
        names,
        None,
        "control_residuals" if labels.levels else None,
        tuple(level.label for level in labels.levels),
        unlimited,
        free,
        labels.states,
    )


def _without_jacobian(method: str) -> str:
    return (
        f"method {method!r} needs a Jacobian, and the Jacobian of the closed loop is not compiled: use dopri5 or "
        "dop853, or sample the controls of a servo with sample_time="
    )


def _given_states(names: Sequence[str], options: ControlOptions) -> Array | None:
    """``tau0`` (n,), or None. Raises `SolveError` for options of a servo."""
    for name in ("sample_time", "delay", "limits", "y"):
        if options.get(name) is not None:
            raise SolveError(f"{name} is for kg.Servo only: kg.ControlConstraints make the controls part of the state")
    return None if options["tau0"] is None else numbers(options["tau0"], "tau0", names)


def _start_of_states(functions: CompiledFunctions, given: Array | None, start: RunStart, r: Array) -> Array:
    """Initial controls of the state: ``tau0``, which must satisfy the control constraints, or consistent controls."""
    z = consistent_controls(functions, *start[:3], None, r, start.tolerance or 1e-12) if given is None else given
    problems = start_problems(functions, start, z, r)
    if problems:
        advice = (
            "leave tau0 out, or correct tau0 or the state; theta= of ControlConstraints lets the error decay, and "
            "start_tolerance=None integrates in spite of the violation"
        )
        headline = f"the start at t = {start.t!r} s violates {len(problems)} control constraint(s)"
        raise SolveError(listed(headline, problems, advice))
    return z


def other_inputs(functions: CompiledFunctions, names: Sequence[str], r: Any) -> RunInputs:
    """The inputs of a run, with zeros in place of the controls ``names`` and their derivatives."""
    owned = own_inputs(functions.description, names)
    if r is not None and not isinstance(r, Mapping):
        others = [name for name in functions.description.inputs if name not in owned]
        raise SolveError(
            f"r is a {type(r).__name__}, but the control law of the model determines {', '.join(owned)}: give a "
            f"mapping from the names of the other inputs ({', '.join(others) or 'there are none'}) to their values"
        )
    given = dict(r or {})
    twice = [key_name(key) for key in given if key_name(key) in owned]
    if twice:
        raise SolveError(f"r gives {', '.join(twice)}, which the control law of the model determines: leave it out")
    needed = functions.inputs_read(functions.module.FUNCTIONS)
    values = {**given, **dict.fromkeys(owned, 0.0)}
    return run_inputs(functions.module, functions.description, values, needed, functions.law_values)


def own_inputs(description: Description, names: Sequence[str]) -> list[str]:
    """The names of inputs, followed by the names of their rates and accelerations."""
    owned = list(names)
    for _ in range(2):
        for slot in description.input_slots:
            if slot.rate_of is not None and description.inputs[slot.rate_of] in owned and slot.name not in owned:
                owned.append(slot.name)
    return owned


def _limits(limits: Any, servo: ServoLabels, names: Sequence[str]) -> Array:
    """Lowest and highest values, (2, n_tau)."""
    pairs = list(servo.limits)
    if isinstance(limits, Mapping):
        for name, item in by_name(limits, names, "control").items():
            pairs[list(names).index(name)] = _checked([item])[0]
    elif limits is not None:
        pairs = list(_checked(limits))
        pairs = pairs * len(names) if len(pairs) == 1 else pairs
    if len(pairs) != len(names):
        raise SolveError(f"limits has {len(pairs)} entries for {len(names)} controls: {', '.join(names)}")
    return np.array(pairs, dtype=np.float64).T


def _checked(limits: Any) -> tuple[tuple[float, float], ...]:
    problems: list[str] = []
    pairs = control_limits(limits, problems)
    require_none(problems)
    return pairs


def acting(samples: Array, start: float) -> tuple[Array, Array]:
    """Times (n,) from which the samples of a run acted, and their values (n, n_tau).

    ``samples``: ``Control.samples``; the values before the first sample acted count from ``start`` on.
    """
    rows = samples[samples[:, 1] < np.inf]
    return np.maximum(rows[:, 1], start), rows[:, 2:]


def held_saturations(
    names: Sequence[str], times: Array, controls: Array, end: float, limits: Array
) -> list[Saturation]:
    """Saturation of controls (n, n_tau) held from each of ``times`` (n,) to the next, the last one to ``end``."""
    ends = np.append(times[1:], end)
    return [
        Saturation(names[k], float(times[first]), float(ends[last]), limit)
        for k, limit, first, last in _runs(controls, limits)
        if ends[last] != times[first]
    ]


def continuous_saturations(
    names: Sequence[str], times: Array, controls: Array, limits: Array, controls_at: Callable[[float], Array] | None
) -> list[Saturation]:
    """Saturation of controls (n, n_tau) known at ``times`` (n,), with the ends bisected by ``controls_at``.

    Intervals between two of the times are missed. Without ``controls_at`` the ends are among the times.
    """
    saturation = []
    for k, limit, first, last in _runs(controls, limits):
        ends = [float(times[first]), float(times[last])]
        for which, neighbor in ((0, first - 1), (1, last + 1)):
            if controls_at is not None and 0 <= neighbor < len(times):
                ends[which] = _boundary(ends[which], float(times[neighbor]), k, limit, controls_at)
        saturation.append(Saturation(names[k], ends[0], ends[1], limit))
    return saturation


def _runs(controls: Array, limits: Array) -> Iterator[tuple[int, float, int, int]]:
    """(control, limit, first, last) of every sequence of points at a limit, in order of time."""
    sequences = []
    for k in range(controls.shape[1]):
        for limit in limits[:, k]:
            inside = np.concatenate([[False], controls[:, k] == limit, [False]])
            edges = np.flatnonzero(inside[1:] != inside[:-1]).tolist()
            sequences += [(k, float(limit), start, end - 1) for start, end in zip(edges[::2], edges[1::2], strict=True)]
    return iter(sorted(sequences, key=lambda run: run[2]))


def _boundary(inside: float, outside: float, k: int, limit: float, controls_at: Callable[[float], Array]) -> float:
    for _ in range(_BISECTIONS):
        middle = 0.5 * (inside + outside)
        if controls_at(middle)[k] == limit:
            inside = middle
        else:
            outside = middle
    return inside


def warnings_of(
    saturation: Sequence[Saturation], times: Array, errors: Array | None, labels: Sequence[str]
) -> tuple[str, ...]:
    """Warnings about saturated controls, and about targets that were not reached within the limits.

    ``errors`` (n_t, n_e): servo-errors at the stored ``times`` (n_t,), ``labels`` their names.
    """
    warnings = []
    for name in dict.fromkeys(item.control for item in saturation):
        own = [item for item in saturation if item.control == name]
        total = sum(item.duration for item in own)
        warnings.append(
            f"control {name} was at a limit for {total:.4g} s in {len(own)} interval(s) "
            "(solution.control.saturation): the servo-constraints were not enforced there"
        )
    last = [item for item in saturation if times.size and item.t_end == times[-1]]
    if last and errors is not None:
        names = " and ".join(dict.fromkeys(item.control for item in last))
        left = ", ".join(f"{label} = {error:.4g}" for label, error in zip(labels, errors[-1], strict=True))
        warnings.append(
            f"the target was not reached: {names} stayed at the limit until the end of the run, where {left}; "
            "raise the limits, or choose slower servo-constraints"
        )
    return tuple(warnings)
