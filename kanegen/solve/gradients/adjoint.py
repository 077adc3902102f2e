"""The gradient of a function of a motion, by the discrete adjoint of the steps that were taken.

The derivative of an objective with respect to the state at the end is pulled back from step to step, and through the
events between them, to the start (Griewank and Walther 2008, chapter 3; Hager 2000). The time that this takes does not
depend on the number of parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.protocol import AdjointPlan
from kanegen.codes import status_message
from kanegen.errors import SolveError
from kanegen.program.catalogue import ADJOINT, RATES, TERMS, OfExpressions
from kanegen.solve.gradients.code import VariationCode, require_same
from kanegen.solve.gradients.directions import Direction, Kind, unit_columns
from kanegen.solve.gradients.events import InstantDerivative, Missing, instant_derivative, refuse
from kanegen.solve.gradients.inputs import InputChanges, input_rates
from kanegen.solve.gradients.objective import Objective
from kanegen.solve.gradients.samples import HeldWeights, piece_of
from kanegen.solve.gradients.stiff import StiffMotion
from kanegen.solve.gradients.tape import Part, StepErrors, Tape

_SAME_TIME: Final = 1e-12
"""Times that differ by a smaller fraction of the span are the same."""

_NAME: Final = "the objective"
"""What has no unique derivatives, in messages."""


@dataclass(frozen=True, eq=False)
class Terms:
    """The expressions of an objective at one state: ``values`` (k,), and ``slopes`` (k, n) in (y, r, p, t)."""

    values: Array
    slopes: Array


class ObjectiveCode:
    """The compiled functions of an objective for the motions of ``code``."""

    def __init__(self, code: VariationCode, objective: Objective) -> None:
        self.code, self.objective = code, objective
        running, (of_running, of_terms) = objective.running, objective.identities
        costs, end = () if running is None else (running,), code.end_of_steps
        rates, adjoint = (OfExpressions.of(kind, end, costs, of_running) for kind in (RATES, ADJOINT))
        self.names = rates, adjoint
        self.terms_name = OfExpressions.of(TERMS, code.end, objective.expressions, of_terms)

    def terms(self, t: float, y: Array, modes: Array) -> Terms:
        """The expressions at a state in modes of the contacts. Raises `SolveError` for forces that are not unique."""
        code, d = self.code, self.code.functions.description
        values, softer = code.value(self.terms_name, code.at(t, y), modes=modes), code.modes.softer(modes)
        if softer is not None:
            require_same(_NAME, t, values, code.value(self.terms_name, code.at(t, y), modes=softer))
        k, n_y, n_r = len(self.objective.expressions), code.n_y, len(d.inputs)
        slopes = values[k:].reshape(k, -1)
        without_forces = np.delete(slopes, np.s_[n_y + n_r : n_y + code.n_loads], axis=1)
        return Terms(values[:k], without_forces)

    def require_unique(self, t: float, y: Array, modes: Array) -> None:
        """Raise `SolveError` if the running cost depends on forces of contacts that are not unique at a state."""
        softer = None if self.objective.running is None else self.code.modes.softer(modes)
        if softer is None:
            return
        code, weights = self.code, np.zeros(self.code.n_y + self.code.n_loads + 1)
        weights[code.n_y] = 1.0  # of the running cost, behind those of y'
        values, others = (
            code.value(self.names[1], code.at(t, y), self.names, weights, modes=given) for given in (modes, softer)
        )
        require_same(_NAME, t, values, others)

    def running(self, t: float, y: Array, modes: Array) -> float:
        """The running cost at a state in modes of the contacts, per second."""
        if self.objective.running is None:
            return 0.0
        return float(self.code.value(self.names[0], self.code.at(t, y), self.names, modes=modes)[-1])


@dataclass(eq=False)
class Pulled:
    """What was pulled back so far: weights of the state, the gradients along the directions of the inputs (k,) and with
    respect to p, and the value of the objective.

    ``sizes`` and ``errors`` (n_y + n_p,): the largest weights and gradients in p, and their largest local errors.
    ``by_step``: those of single steps, where they are known.
    """

    inputs: InputChanges
    held: HeldWeights | None
    weights: Array
    of_inputs: Array
    of_p: Array
    sizes: Array
    errors: Array
    value: float = 0.0
    by_step: list[StepErrors] = field(default_factory=list)

    def add(self, t: float, slopes: Array, held: float | None = None) -> None:
        """Add slopes in (r, p) at a time; ``held``: the time whose samples act, by default the same."""
        changes = self.inputs.at(t)
        self.of_inputs += slopes[: len(changes)] @ changes
        self.of_p += slopes[len(changes) :]
        if self.held is not None:
            self.held.add(t if held is None else held, slopes[: len(changes)])

    def release(self, part: int, row: int, t: float) -> None:
        """Pull through the samples of laws that are taken at a state of a part."""
        if self.held is None:
            return
        total, n_y = self.held.released(part, row), len(self.weights)
        if isinstance(total, np.ndarray):
            self.weights += total[:n_y]
            self.add(t, total[n_y:])


def pull_back(
    functions: ObjectiveCode, tape: Tape, inputs: InputChanges, is_terminal: bool, missing: Missing = refuse
) -> Pulled:
    """The value, and the gradient with respect to the start (n_y,), along the changes ``inputs`` of the inputs (k,),
    and with respect to the parameters (n_p,).

    ``is_terminal``: whether the last event ended the run. ``missing`` receives the reasons why the motion has no
    derivative. Raises `SolveError`.
    """
    code, objective = functions.code, functions.objective
    t_end, y_end = tape.parts[-1].end
    at_end = functions.terms(t_end, y_end, tape.parts[-1].modes)
    n_y, own = code.n_y, at_end.slopes[0]
    weights, of_p = own[:n_y].copy(), np.zeros(len(code.functions.parameters))
    sizes = np.abs(np.concatenate([weights, own[-1 - of_p.size : -1]]))
    none, held = np.zeros(inputs.at(t_end).shape[1]), None if code.held is None else HeldWeights(code.held)
    pulled = Pulled(inputs, held, weights, none, of_p, sizes, np.zeros(sizes.size), float(at_end.values[0]))
    pulled.add(t_end, own[n_y:-1])
    rate_at_end = _rate_at_end(functions, tape, own) if is_terminal else 0.0
    samples = _placed(objective, tape)
    for k in reversed(range(len(tape.parts))):
        _pull_part(functions, tape.parts[k], k, samples.get(k, {}), pulled)
        if k:
            ended = is_terminal and k == len(tape.parts) - 1
            derivative = instant_derivative(code, tape.events[k - 1], tape.parts[k - 1], tape.parts[k], missing)
            _pull_events(functions, tape, k - 1, derivative, pulled, rate_at_end if ended else 0.0, ended)
    return pulled


def _rate_at_end(functions: ObjectiveCode, tape: Tape, slopes: Array) -> float:
    """The rate of the terminal cost, whose ``slopes`` in (y, r, p, t) are given, with the time of the end."""
    code, (t, y), last = functions.code, tape.parts[-1].end, tape.parts[-2] if len(tape.parts) > 1 else tape.parts[-1]
    n_y, n_r = code.n_y, len(code.functions.description.inputs)
    of_inputs = slopes[n_y : n_y + n_r]
    rate = slopes[-1] + slopes[:n_y] @ code.rate(t, y, tape.parts[-1].modes)
    if of_inputs.any() and last.h.size:
        rate += of_inputs @ input_rates(code.problem.inputs, n_r, t, float(last.h[-1]))
    return float(rate)


def _pull_part(
    functions: ObjectiveCode, part: Part, index: int, samples: Mapping[int, Sequence[int]], pulled: Pulled
) -> None:
    """Pull through the steps of a part, which is number ``index``, and add its samples.

    ``samples``: their numbers by the state of the part.
    """
    code, added = functions.code, None
    if part.t.size:
        functions.require_unique(float(part.t[0]), part.y[0], part.modes)
    if samples:
        states, times = part.y, np.append(part.t, part.t_end)
        added = np.zeros((len(states), code.n_y))
        for place, numbers in samples.items():
            terms = functions.terms(float(times[place]), states[place], part.modes)
            slopes = terms.slopes[[1 + i for i in numbers]].sum(axis=0)
            added[place] = slopes[: code.n_y]
            pulled.add(float(times[place]), slopes[code.n_y : -1])
            pulled.value += float(terms.values[[1 + i for i in numbers]].sum())
    if code.held is None:
        _pull_steps(functions, part, added, pulled)
    else:
        if len(part.t):
            pulled.release(index, len(part.t), part.t_end)
        for bounds in reversed(code.held.pieces(index)):
            piece = piece_of(part, bounds)
            own = None if added is None else added[bounds[0] : bounds[1] + 1]
            _pull_steps(functions, piece, own, pulled)
            pulled.release(index, bounds[0], float(piece.t[0]) if piece.t.size else piece.t_end)
    if added is not None:
        pulled.weights += added[0]


def _pull_steps(functions: ObjectiveCode, part: Part, added: Array | None, pulled: Pulled) -> None:
    """Pull through steps; ``added`` (m + 1, n_y) or None: weights of their states, of which those of the first one are
    left out."""
    code = functions.code
    if code.is_implicit:
        _pull_stiff_steps(functions, part, added, pulled)
        return
    loads, step, row = code.loads(part)
    n_r = len(code.functions.description.inputs)
    of_loads = np.zeros_like(loads)
    plan = AdjointPlan(
        part.t, part.h, part.y, part.edges, part.fresh, loads, of_loads, added, pulled.weights, pulled.of_p,
        pulled.sizes, pulled.errors, float(functions.objective.running is not None), step, row,
        np.append(code.given, part.modes),
    )  # fmt: skip
    result = code.functions.extension.adjoint(functions.names, code.method).run(plan)
    if result.status < 0:
        raise SolveError(
            "the gradient of the motion cannot be computed in the step from "
            f"t = {float(part.t[result.failed])!r} s: {status_message(result.status)}"
        )
    pulled.value += result.cost
    changes = pulled.inputs.at(code.stage_times(part).ravel() if step else np.full(len(loads), part.t_end))
    pulled.of_inputs += np.tensordot(of_loads[:, :n_r], changes, axes=2)
    if pulled.held is not None and part.t.size:
        pulled.held.add(float(part.t[0]), of_loads[:, :n_r].sum(axis=0))


def _pull_stiff_steps(functions: ObjectiveCode, part: Part, added: Array | None, pulled: Pulled) -> None:
    """Pull through steps of a Rosenbrock method."""
    if not part.t.size:
        return
    code, running = functions.code, functions.objective.running
    n_r = len(code.functions.description.inputs)
    times = np.zeros(1) if pulled.inputs.is_constant else code.stage_times(part).ravel()
    changes = pulled.inputs.at(times)
    k = changes.shape[2]
    if pulled.held is not None:
        units = np.broadcast_to(np.eye(n_r), (len(times), n_r, n_r))
        changes = np.concatenate([changes, units], axis=2)
    n_columns = changes.shape[2]
    costs = () if running is None else (running,)
    motion = StiffMotion(code, part, costs, functions.objective.identities[0])
    dr = changes[0] if pulled.inputs.is_constant else changes
    found = motion.pull(pulled.weights, added, dr, float(running is not None))
    pulled.weights, pulled.value = found.weights, pulled.value + found.cost
    pulled.of_inputs += found.gradient[:k]
    if pulled.held is not None:
        pulled.held.add(float(part.t[0]), found.gradient[k:n_columns])
    before = np.abs(pulled.of_p)
    pulled.of_p += found.gradient[n_columns:]
    sizes = np.concatenate([found.weight_sizes, np.maximum(before + found.sizes[n_columns:], np.abs(pulled.of_p))])
    pulled.sizes = np.maximum(pulled.sizes, sizes)
    errors = np.hstack([found.of_weights, found.of_gradient[:, n_columns:]])
    pulled.errors = np.maximum(pulled.errors, errors.max(axis=0))
    pulled.by_step.append(StepErrors(part.t, part.h, errors))


def _pull_events(
    functions: ObjectiveCode,
    tape: Tape,
    k: int,
    derivative: InstantDerivative,
    pulled: Pulled,
    rate_at_end: float,
    is_last: bool,
) -> None:
    """Pull through the events after part ``k``; the rate of the objective with the time of the end is given."""
    code, part = functions.code, tape.parts[k]
    n_y = code.n_y
    events, after = tape.events[k], tape.parts[k + 1]
    first, last = events[0], events[-1]
    rate = functions.running(first.t, np.concatenate([first.q, first.u_before, first.s_before]), part.modes)
    if not is_last:
        rate -= functions.running(last.t, np.concatenate([last.q, last.u_after, last.s_after]), after.modes)
    total = derivative.states.T @ pulled.weights + derivative.times * (rate + (rate_at_end if is_last else 0.0))
    pulled.weights = total[:n_y]
    pulled.add(part.t_end, total[n_y:], part.last_start)


def _placed(objective: Objective, tape: Tape) -> dict[int, dict[int, list[int]]]:
    """For each part, the numbers of the samples at its states. Raises `SolveError` for times without a state."""
    start, end = tape.span
    places: dict[int, dict[int, list[int]]] = {}
    for number, (t, _) in enumerate(objective.samples):
        found = None
        for k in reversed(range(len(tape.parts))):
            times = np.append(tape.parts[k].t, tape.parts[k].end[0])
            i = int(np.argmin(np.abs(times - t)))
            if abs(times[i] - t) <= _SAME_TIME * max(abs(end - start), abs(t)):
                found = k, i
                break
        if found is None:
            raise SolveError(
                f"the sample at t = {t!r} s is not at a state of the motion from t = {start!r} to {end!r} s: samples "
                "are inside the span, before a terminal event, and at multiples of the step if it is fixed"
            )
        places.setdefault(found[0], {}).setdefault(found[1], []).append(number)
    return places


def gradient_by_name(directions: Sequence[Direction], start: Array, pulled: Pulled) -> dict[str, Any]:
    """The gradient by name, an array for the ordinates of an input.

    ``start`` (n_y, k): the changes of the start along the directions.
    """
    of_p = pulled.of_p @ unit_columns(directions, Kind.PARAMETER, len(pulled.of_p))
    total = pulled.weights @ start + pulled.of_inputs + of_p
    gradient: dict[str, Any] = {}
    for direction, value in zip(directions, total.tolist(), strict=True):
        if direction.ordinate is None:
            gradient[direction.name] = value
        else:
            gradient.setdefault(direction.name, []).append(value)
    return {name: np.array(value) if isinstance(value, list) else value for name, value in gradient.items()}
