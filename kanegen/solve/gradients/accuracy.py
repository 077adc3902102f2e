"""Whether the steps of a motion are short enough for its derivatives.

Steps are chosen for the motion. Where it rests, or follows a slow manifold of a stiff system, they can be too long for
its derivatives, which move while the motion does not. The run is then repeated with shorter steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple, cast

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.methods.files import METHODS
from kanegen.codegen.methods.table import FIXED_STEP
from kanegen.errors import SolveError, warn_user
from kanegen.run_options import RunOptions
from kanegen.solve.gradients.adjoint import Pulled
from kanegen.solve.gradients.code import Forward, VariationCode
from kanegen.solve.gradients.tape import StepErrors, Tape

LOOSER: Final = 100.0
"""Local errors of derivatives, relative to their sizes, can be this many times the relative tolerance of the motion."""

ATTEMPTS: Final = 12
"""Runs with shorter and shorter steps."""

_HELPED: Final = 0.5
"""A run with shorter steps has helped if the error is a smaller fraction of that before."""

_TOLERATED: Final = 1e-4
"""Larger local errors of derivatives are refused where shorter steps do not help; smaller ones have a warning."""

_LEAST_TOLERANCE: Final = 1e-3
"""Smallest quotient of the tolerances of two runs."""

_FINEST: Final = 1e-14
"""Smaller relative tolerances than this are beyond rounding."""

_NOISE: Final = 1e-9
"""Derivatives that change values by a smaller fraction of the largest change are noise."""

_AT_ZERO: Final = 1e-8
"""Values below this fraction of the largest one are zero, but for rounding, and count as having this size."""

_UNKNOWN: Final = 1e-3
"""Size of a state that is zero during the motion, as a fraction of the largest one."""

_IRRELEVANT: Final = 1e-6
"""Values whose change by their own size changes the objective by a smaller fraction of it need no accurate slope."""

_ROUNDING: Final = 1e-14
"""Local errors below this fraction of the largest change are rounding, which shorter steps do not reduce."""

_ROUNDING_OF_SUMS: Final = 1e-13
"""The same for gradients, whose terms are sums over the stages of a step."""

_AIM: Final = 0.25
"""Fraction of the allowed error at which the next run aims: an error just above it falls by more than `_HELPED`."""

_SAFETY: Final = 0.8
"""Fraction of the largest step that the error allows."""

_LEAST: Final = 0.1
"""Smallest quotient of the largest steps of two runs."""


_PIECES: Final = 8
"""Most pieces into which a step is divided for its derivatives, if the errors of single steps are known."""


class Accuracy(NamedTuple):
    """The largest relative error of derivatives, and times at which further steps must end to reduce it.

    ``stops``: None where the errors of single steps are not known.
    """

    error: float
    stops: Array | None


def accuracy_of(tape: Tape, parts: Sequence[Forward], sizes: Array, allowed: float) -> Accuracy:
    """The largest local error of a change, relative to the largest change of the same value along the same direction.

    ``sizes`` (k,): those of what varies. A change is at least as large as the value itself divided by the size.
    ``allowed``: the error that needs no further steps.
    """
    errors, changes = (np.max([getattr(x, name) for x in parts], axis=0) * sizes for name in ("errors", "sizes"))
    values = _largest_values(tape)
    largest = values.max(initial=0.0)
    resting = values <= _AT_ZERO * largest  # the rounding of others changes these
    least = np.where(resting, _AT_ZERO * largest, values)[:, None]

    def relative(errors: Array) -> Array:
        own = np.maximum(errors * sizes - _ROUNDING * largest * resting[:, None], 0.0)
        return _relative(own, changes, least, _ROUNDING)

    steps = [StepErrors(part.t, part.h, own.by_step) for part, own in zip(tape.parts, parts, strict=False)]
    return Accuracy(float(relative(errors / sizes).max(initial=0.0)), _stops(steps, relative, allowed))


def accuracy_of_gradient(code: VariationCode, tape: Tape, pulled: Pulled, allowed: float) -> Accuracy:
    """The largest local error of a gradient, relative to the largest slope in the same value during the motion."""
    if code.method in FIXED_STEP:
        return Accuracy(0.0, None)
    values = _largest_values(tape)
    values[values == 0.0] = _UNKNOWN * values.max() or 1.0  # slopes at rest count, too
    parameters = np.abs(np.nan_to_num(code.functions.parameters))  # those without a value are not needed
    sizes = np.concatenate([values, np.where(parameters > 0.0, parameters, 1.0)])
    least = _IRRELEVANT * abs(pulled.value)

    changes = pulled.sizes * sizes

    def relative(errors: Array, changes: Array = changes) -> Array:
        return _relative(errors * sizes, changes, least, _ROUNDING_OF_SUMS)

    if not pulled.by_step:
        return Accuracy(float(relative(pulled.errors).max(initial=0.0)), None)
    # Only at the start each weight is a result of its own. Inside the motion the weight of a stiff state, which decays
    # at once, is small and never accurate, and has no influence.
    shared, n_y = changes.copy(), len(values)
    shared[:n_y] = changes[:n_y].max(initial=0.0)
    inside = partial(relative, changes=shared)
    first, stops = _first_step(pulled.by_step[-1]), _stops(pulled.by_step, inside, allowed)
    largest = max(float(inside(step.errors).max(initial=0.0)) for step in pulled.by_step if step.errors is not None)
    if first is None or first.errors is None or not (relative(first.errors) > allowed).any():
        return Accuracy(largest, stops)
    more = _stops([first], relative, allowed)
    found = [x for x in (stops, more) if x is not None]
    return Accuracy(max(largest, float(relative(first.errors).max())), np.concatenate(found) if found else None)


def _first_step(steps: StepErrors) -> StepErrors | None:
    """The first one of some steps."""
    t, h, errors = steps
    return None if errors is None or not t.size else StepErrors(t[:1], h[:1], errors[:1])


def _stops(steps: Sequence[StepErrors], relative: Callable[[Array], Array], allowed: float) -> Array | None:
    """Times that divide the steps whose relative errors exceed what is allowed; None if they are not known."""
    found = list[Array]()
    for t, h, errors in steps:
        if errors is None:
            return None
        worst = relative(errors).reshape(len(t), -1).max(axis=1, initial=0.0)
        for i in np.flatnonzero(worst > allowed):
            wanted = (worst[i] / (_AIM * allowed)) ** 0.25 if np.isfinite(worst[i]) else _PIECES
            pieces = int(np.clip(np.ceil(wanted), 2, _PIECES))
            found.append(t[i] + h[i] * np.arange(1, pieces) / pieces)
    return np.concatenate(found) if found else None


def _largest_values(tape: Tape) -> Array:
    """The largest magnitude of each variable during the motion, (n_y,)."""
    columns = [np.ascontiguousarray(part.y.T) for part in tape.parts]  # NumPy is slow along the first axis
    largest: Array = np.max([np.abs(x).max(axis=1) for x in columns], axis=0)
    return largest


def _relative(errors: Array, changes: Array, least: Array | float, rounding: float) -> Array:
    """The quotients of errors and changes, which count as at least ``least``, in equal units.

    ``rounding``: the fraction of the largest change that is no error.
    """
    largest = changes.max(initial=0.0)
    scale = changes + least + _NOISE * largest
    beyond = np.maximum(errors - rounding * largest, 0.0)
    scale = np.broadcast_to(scale, beyond.shape)
    relative: Array = np.divide(beyond, scale, out=np.zeros_like(beyond), where=scale > 0.0)
    return relative


def allowed_error(options: RunOptions) -> float:
    """The largest local error of derivatives, relative to their sizes, with the options of a run."""
    wanted = options["sensitivity_tolerance"]
    return float(LOOSER * np.min(cast(Any, options["rtol"])) if wanted is None else wanted)


def is_stalled(errors: Sequence[float], options: RunOptions) -> bool:
    """Whether further runs would not make the derivatives more accurate.

    ``errors``: of the runs so far. Where a load or its slope is not smooth, errors of derivatives hardly fall with the
    steps; runs with the same error took the same steps. Raises `SolveError` if the last error is large.
    """
    slow = [new > _HELPED * old for old, new in pairwise(errors) if new != old][-2:]
    stalled = len(errors) > ATTEMPTS or slow == [True, True] or np.min(options["rtol"]) < _FINEST
    if stalled and not errors[-1] <= _TOLERATED:
        raise SolveError(
            f"the derivatives of the motion have local errors of {errors[-1]:.1e}, also with short steps: use a method "
            "of higher order, a larger rtol, or loads that are smooth"
        )
    return stalled


def warn_of_error(error: float, allowed: float) -> None:
    """Warn the user of derivatives that are less accurate than they should be."""
    warn_user(
        f"the derivatives of the motion have local errors of {error:.1e}, more than {allowed:.1e} "
        "(sensitivity_tolerance=), also with shorter steps: a load or its slope may not be smooth where the motion "
        "passes"
    )


def with_shorter_steps(options: RunOptions, longest: float, errors: Sequence[float], allowed: float) -> RunOptions:
    """The options with a smaller largest step than the ``longest`` one, or with smaller tolerances.

    ``errors``: the relative errors of the derivatives of the runs so far, the last of which is of these options;
    ``allowed``: that which is wanted. Where a smaller largest step has not helped, the steps that matter are
    shorter already, and smaller tolerances shorten them; unless the motion rests, and tolerances have no effect.
    """
    error, order = errors[-1], METHODS[options["method"]].coefficients.order
    ratio = _AIM * allowed / error if np.isfinite(error) else _LEAST**order
    if len(errors) > 1 and error == errors[-2]:
        return cast(RunOptions, {**options, "max_step": longest * _LEAST})
    if len(errors) < 2 or not error > _HELPED * errors[-2]:
        change: dict[str, Any] = {"max_step": longest * max(_LEAST, _SAFETY * ratio ** (1.0 / order))}
    else:
        tolerances = {name: np.asarray(options[name]) for name in ("rtol", "atol")}
        change = {name: value * max(_LEAST_TOLERANCE, _SAFETY * ratio) for name, value in tolerances.items()}
    return cast(RunOptions, {**options, **change})
