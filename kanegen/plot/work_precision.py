"""Work-precision diagrams: the error of integrations over their work, for several methods and tolerances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array, real_array
from kanegen.codegen.methods.table import ADAPTIVE, FIXED_STEP, IMPLICIT
from kanegen.errors import SolveError, brief, text_of
from kanegen.plot.work import TOLERANCES, work_points
from kanegen.solve import Solution, Solver
from kanegen.solve.values import names_in, positive, require_none, unknown

WORK: Final[Mapping[str, str]] = {
    "evaluations": "evaluations of the right-hand side",
    "seconds": "time of the run (s)",
}
"""What work can be, with the labels of the axis."""

_REFERENCE: Final[Mapping[str, Any]] = {"method": "dop853", "rtol": 1e-13, "atol": 1e-15}

_SMALLEST_ERROR: Final = 1e-12
"""Below this error the rounding errors of the reference are visible, and tighter tolerances are not run."""

_REPETITIONS: Final = 3


def work_precision(
    solvers: Any,
    t_span: Any,
    q0: Any = None,
    u0: Any = None,
    *,
    methods: Any = None,
    tolerances: Any = None,
    steps: Any = (),
    work: str = "evaluations",
    reference: Any = None,
    ax: Any = None,
    **options: Any,
) -> Any:
    """Integrate with several methods and tolerances, and draw the error of the last state over the work.

    The error is the largest component of ``|y - y_ref| / (1 + |y_ref|)`` with y = (q, u, s). A run that fails gives no
    point.

    Parameters
    ----------
    solvers
        A :class:`kanegen.Solver`, or a mapping from labels to solvers of the same motion, such as forms.
    t_span, q0, u0, options
        Arguments of :meth:`kanegen.Solver.integrate`, the same for all runs.
    methods
        Names of methods. None: the explicit adaptive ones; implicit ones need ``functions="all"`` in ``kg.build``.
    tolerances
        Values of ``rtol`` for adaptive methods, with ``atol = rtol / 100``. None: 1e-2 to 1e-12, until the error is
        below 1e-12.
    steps
        Steps in s for methods with fixed steps.
    work
        ``"evaluations"`` of the right-hand side, or ``"seconds"``, the least of three runs.
    reference
        The exact last state, a :class:`kanegen.Solution` or (q, u) or (q, u, s). None: that of ``dop853`` with
        ``rtol=1e-13`` by the first solver.
    ax
        Axes of matplotlib or a figure. None: a new figure.

    Returns
    -------
    Axes
        The axes with a line for each method (and solver).

    Raises
    ------
    SolveError
        For unknown methods and wrong arguments, if the run of the reference fails, and if matplotlib is missing.
    """
    from kanegen.solve.solution.drawing import make_axes

    named = _solvers(solvers)
    if not isinstance(work, str) or work not in WORK:
        raise SolveError(unknown(text_of(work), tuple(WORK), "kind of work"))
    settings = _settings(methods, tolerances, steps)
    arguments = {"t_span": t_span, "q0": q0, "u0": u0, **options}
    first = next(iter(named.values()))
    exact = _last(first.integrate(**arguments, **_REFERENCE) if reference is None else reference)
    d = first.description
    size = len(d.components)
    if exact.shape != (size,):
        raise SolveError(f"reference has {exact.size} values; expected {size}: (q, u), or (q, u, s) with states")
    curves = {}
    for label, solver in named.items():
        for method, (option, values) in settings.items():
            points = list(_points(solver, arguments | {"method": method}, option, values, work, exact))
            curves[", ".join(filter(None, (label, method)))] = np.array(points).T
    axis = make_axes(ax, 1, "plot.work_precision", height=4.0)[0]
    for label, (x, y) in curves.items():
        axis.plot(x, y, "o-", label=label, markersize=4, linewidth=1.0)
    axis.set(xscale="log", yscale="log", xlabel=WORK[work], ylabel="error of the last state")
    axis.legend(fontsize="small")
    return axis


def _solvers(given: Any) -> dict[str, Solver]:
    named = {text_of(x): y for x, y in given.items()} if isinstance(given, Mapping) else {"": given}
    if not named or not all(isinstance(solver, Solver) for solver in named.values()):
        raise SolveError(f"solvers is {brief(given)}; expected a Solver, or a mapping from labels to solvers")
    return named


def _settings(methods: Any, tolerances: Any, steps: Any) -> dict[str, tuple[str, Sequence[float]]]:
    """The option of each method that determines its accuracy, ``rtol`` or ``step``, with its values."""
    explicit = tuple(name for name in ADAPTIVE if name not in IMPLICIT)
    names = explicit if methods is None else names_in(methods, "methods")
    if not names:
        raise SolveError(f"methods is {brief(methods)}; expected names of methods")
    known = (*ADAPTIVE, *FIXED_STEP)
    require_none([unknown(name, known, "method") for name in names if name not in known])
    values = TOLERANCES if tolerances is None else _numbers(tolerances, "tolerances")
    if not values:
        raise SolveError(f"tolerances is {brief(tolerances)}; expected positive numbers")
    sizes = _numbers(steps, "steps")
    fixed = [name for name in names if name in FIXED_STEP]
    if fixed and not sizes:
        raise SolveError(f"the methods {', '.join(fixed)} have fixed steps: give steps=, a list of steps in s")
    return {name: ("step", sizes) if name in fixed else ("rtol", values) for name in names}


def _numbers(given: Any, what: str) -> tuple[float, ...]:
    """Positive numbers in descending order."""
    items = np.atleast_1d(np.asarray(given, dtype=object))
    return tuple(sorted((positive(value, what) for value in items.ravel()), reverse=True))


def _last(state: Any) -> Array:
    """The last state of a solution, or a state (q, u) or (q, u, s), as one array."""
    parts = state.last[1:] if isinstance(state, Solution) else state
    if not isinstance(parts, (tuple, list)) or not parts:
        raise SolveError(f"reference is {brief(state)}; expected a Solution, (q, u) or (q, u, s)")
    return np.concatenate([real_array(part, "reference").ravel() for part in parts])


def _points(
    solver: Solver, arguments: Mapping[str, Any], option: str, values: Sequence[float], work: str, exact: Array
) -> Iterator[tuple[float, float]]:
    """Work and error of the runs of one method that succeed. Raises the error of the last run if none succeeds."""
    evaluations = {}

    def run(value: float) -> Array:
        accuracy = {"rtol": value, "atol": 0.01 * value} if option == "rtol" else {"step": value}
        solution = solver.integrate(**{**arguments, **accuracy, "dense_output": False})
        evaluations[value] = solution.statistics.evaluations
        return _last(solution)

    repetitions = _REPETITIONS if work == "seconds" else 1
    points = work_points(run, exact, _SMALLEST_ERROR, repetitions, values)
    if not points:
        run(values[-1])
    for point in points:
        yield (point.seconds if work == "seconds" else evaluations[point.tolerance]), point.error
