"""The result of an integration, with the quantities along the motion, and the errors that contain one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cached_property, partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from kanegen.arrays import Array, real_array
from kanegen.backends.points import Point
from kanegen.display import page
from kanegen.errors import NotBuiltError, SolveError, brief
from kanegen.paths import file_path
from kanegen.program.catalogue import ATTRIBUTES
from kanegen.quantities import SolutionQuantities
from kanegen.solve.evaluation import Wrench
from kanegen.solve.solution.animation import animate
from kanegen.solve.solution.files import read
from kanegen.solve.solution.formats import save
from kanegen.solve.solution.overview import Events, event_table, run_table
from kanegen.solve.solution.quantities import Members, MotionInputs, SolverReference, along
from kanegen.solve.solution.records import (
    ContactHistory,
    ControlHistory,
    Dense,
    Outcome,
    RunRecord,
    Statistics,
)
from kanegen.solve.solution.tables import data_frame, data_set
from kanegen.solve.values import key_name, shown_values, unknown
from kanegen.units import Units
from kanegen.view.animation import Animation

QUANTITIES = (*ATTRIBUTES, "rhs", "residuals", "rank", "acceleration_parts")
"""Attributes of a solution that are functions of a solver, evaluated at the stored times."""


class MissingQuantityError(NotBuiltError, AttributeError):
    """A quantity that a solution does not have, so that ``hasattr`` is False: its function was not built."""


class _Field:
    """A field of a solution: an attribute of its source, which is read when it is needed, and once."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, solution: Any, owner: type) -> Any:
        if solution is None:
            return self
        fields = solution.__dict__
        value = fields[self._name] = getattr(fields["_source"], self._name)
        return value


def _field() -> Any:
    return _Field()


class Solution(SolutionQuantities):
    """The result of an integration.

    ``t`` (n_t,) in s, ``q`` (n_t, n_q), ``u`` (n_t, n_u), ``s`` (n_t, n_s), the states of a model with states: the
    start and every accepted step, or the times of ``t_eval``. ``status`` is an :class:`Outcome`, ``message`` a sentence
    that explains it, ``statistics`` the counts. ``last`` is the last accepted state (t, q, u), or (t, q, u, s), also
    with ``t_eval``. ``solution(t)`` returns the state at ``t``.

    ``events``: the events of the run, in order. ``contacts``, a :class:`ContactHistory`: modes over time and contact
    forces; None for a model without contacts. ``control``, a :class:`ControlHistory`: controls, servo-errors and
    saturation; None for an open loop. ``sensitivities``, :class:`kanegen.results.Sensitivities`: derivatives of a run
    with ``sensitivities=``, else None. At a jump of the speeds ``t`` holds the time twice, with the states before and
    after the jump; ``phase`` tells them apart, and ``solution(t)`` and ``t_eval`` give the state after it.

    Every quantity of the solver is an attribute, ``solution.energy`` (n_t,) or ``solution.multipliers`` (n_t, n_c),
    evaluated at the stored times when it is first read, with the inputs, controls and contact forces that acted then.
    ``solution.rhs`` is (q', u') or (q', u', s') with these forces. Where the contact forces are not known (where a run
    stopped because no contact modes are consistent), quantities that depend on them are NaN. ``solution["theta"]`` is a
    coordinate, speed, state, input or output by name, (n_t,) or (n_t, ...).

    A solution refers to its solver. A pickle holds the values of the inputs and, compressed, the sources of the solver,
    which is restored when a quantity is first read. ``run`` records the model, its parameters and the options.
    """

    t: Array = _field()
    q: Array = _field()
    u: Array = _field()
    s: Array = _field()
    status: Outcome = _field()
    message: str = _field()
    statistics: Statistics = _field()
    last: tuple[Any, ...] = _field()
    dense: Dense | None = _field()
    events: Events = _field()
    contacts: ContactHistory | Any = _field()  # Any in place of None: users know whether the model has contacts
    control: ControlHistory | Any = _field()
    sensitivities: Any = _field()
    run: RunRecord = _field()
    all_inputs: MotionInputs = _field()
    reference: SolverReference | None = _field()

    def __init__(self, source: Any) -> None:
        self.__dict__["_source"] = source

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a Solution is immutable, {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Solution is immutable, {name} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._fields(),)  # without quantities that were read

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name, value in vars(Solution).items() if isinstance(value, _Field)}

    @property
    def success(self) -> bool:
        """Whether the end of the span, or a terminal event, was reached."""
        return self.status.is_success

    # -- quantities along the motion ------------------------------------------------------------------------

    @property
    def solver(self) -> Any:
        """The :class:`kanegen.Solver` of the run. Raises `SolveError` for a solution loaded without one."""
        if self.reference is None:
            raise NotBuiltError(
                "the solution was loaded without its solver, which evaluates quantities: load it by "
                "kg.load(path, solver), or use solution.with_solver(solver)"
            )
        return self.reference.get()

    def with_solver(self, solver: Any) -> Solution:
        """This solution with ``solver`` and the parameters of the run, to evaluate quantities.

        Raises `SolveError` if the solver is of another model, or was built with other options or by another version.
        """
        if not hasattr(solver, "extension"):
            raise SolveError(f"solver is {brief(solver)}; expected the kanegen.Solver of the model {self.run.model!r}")
        record, digest = self.run, solver.extension.digest
        if digest != record.digest:
            raise SolveError(
                f"the solution is of the model {record.model!r}, digest {record.digest[:12]}, but the solver of "
                f"{solver.description.name!r} has the digest {digest[:12]}: model, options of build or version of "
                "kanegen differ; build the solver as for the run, or leave it out"
            )
        own = solver.with_parameters({name: x for name, x in record.parameters.items() if x is not None})
        return _restored(self._fields() | {"reference": SolverReference(own)})

    @property
    def units(self) -> Units:
        """The units in which plots and tables show values, by names; empty if the model has none or is not known.

        Arrays are always in coherent SI units.
        """
        return Units() if self.reference is None else self.solver.units

    @property
    def inputs(self) -> Array:
        """The inputs at the stored times, (n_t, n_r), with the controls of a closed loop."""
        return self.all_inputs.values.r

    @cached_property
    def outputs(self) -> Members[Array]:
        """The model's outputs by name, each (n_t,) or (n_t, ...)."""
        return self._members("output", tuple(self.solver.description.outputs))

    @cached_property
    def reactions(self) -> Members[Wrench]:
        """The model's reactions by name, each a :class:`kanegen.results.Wrench` of arrays (n_t, 3)."""
        return self._members("reaction", self.solver.description.reactions)

    @property
    def phase(self) -> Array:
        """The number of jumps before each stored time, (n_t,), integers; it changes where ``t`` holds a time twice."""
        return np.concatenate([np.zeros(min(self.t.size, 1), dtype=int), np.cumsum(np.diff(self.t) == 0.0)])

    if not TYPE_CHECKING:  # which know the attributes from SolutionQuantities

        def __getattr__(self, name: str) -> Any:
            """A quantity of the solver at the stored times."""
            if name not in QUANTITIES:
                near = difflib.get_close_matches(name, [known for known in dir(self) if known[0] != "_"], n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise AttributeError(f"a Solution has no attribute {name!r}{hint}", name=name, obj=None)
            try:
                value = self.__dict__[name] = self._along(getattr(self.solver, name))
            except NotBuiltError as error:
                raise MissingQuantityError(str(error)) from error
            return value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *QUANTITIES})

    def __getitem__(self, key: Any) -> Array:
        """A coordinate, speed, state, input or output by name or symbol at the stored times, (n_t,) or (n_t, ...).

        Raises `SolveError` for other names.
        """
        name, record = key_name(key), self.run
        for names, part in ((record.coordinates, "q"), (record.speeds, "u"), (record.states, "s")):
            if name in names:
                column: Array = getattr(self, part)[:, names.index(name)]
                return column
        if name in record.inputs:
            return self.inputs[:, record.inputs.index(name)]
        outputs = () if self.reference is None else tuple(self.outputs)
        if name not in outputs:
            known = (*record.coordinates, *record.speeds, *record.states, *record.inputs, *outputs)
            hint = "; outputs need the solver: kg.load(path, solver)" if self.reference is None else ""
            raise SolveError(unknown(name, known, "coordinate, speed, state, input or output") + hint)
        return self.outputs[name]

    @property
    def point(self) -> Point:
        """The arguments of functions at the stored times: the state, inputs, contact forces and the free vector."""
        acting = self.all_inputs.values
        return Point(self.t, self.q, self.u, acting.r, self.s, acting.forces, acting.free)

    def _along(self, function: Any) -> Any:
        return along(function, self.point)

    def _members(self, method: str, names: tuple[str, ...]) -> Members[Any]:
        evaluate = getattr(self.solver, method)

        def value(name: str) -> Any:
            return along(partial(evaluate, name), self.point._replace(free=None))  # controls are among the inputs

        return Members(names, value)

    def animate(
        self,
        *,
        title: str | None = None,
        frames: Any = False,
        traces: Any = False,
        forces: bool = True,
        model: Any = None,
    ) -> Animation:
        """The motion in 3-D as a page of HTML, which a notebook shows inline; ``animate().save("motion.html")``.

        The arguments are those of :func:`kanegen.animate`, which shows several motions at once. Raises `SolveError`.
        """
        return animate(self, title=title, frames=frames, traces=traces, forces=forces, model=model)

    # -- tables and files -----------------------------------------------------------------------------------

    def to_dataframe(self, quantities: Iterable[str] = ()) -> Any:
        """A ``pandas.DataFrame`` with the index ``t`` and a column for each scalar.

        The columns are ``phase``, the coordinates, speeds, states and inputs by name, contact forces (``"multiplier of
        floor"``), outputs (``"tip[0]"``), and further ``quantities``: attributes of the solution such as ``"energy"``,
        or ``"reactions"``. Raises `SolveError` if pandas is missing (``pip install 'kanegen[data]'``).
        """
        return data_frame(self, quantities)

    def to_xarray(self, quantities: Iterable[str] = ()) -> Any:
        """An ``xarray.Dataset`` with the dimension ``t``, and the same variables as :meth:`to_dataframe`.

        The derivatives of a run with ``sensitivities=`` are the variable ``sensitivities``, with the dimensions ``t``,
        ``variable`` and ``with_respect_to``. Vectors and matrices are variables (t, n) and (t, n, m). ``phase`` is a
        coordinate along t; parameters and options are attributes. Raises `SolveError` if xarray is missing
        (``pip install 'kanegen[data]'``).
        """
        return data_set(self, quantities)

    def save(self, path: Any) -> None:
        """Write the solution to a file, in the format that its suffix names; an earlier file is replaced.

        ``.nc``: netCDF (classic format), which :func:`kanegen.load` reads, with the motion, inputs, events, contacts,
        controls, dense output, statistics, parameters, options and the digest of the model; not the solver, and not the
        dense output of a momentum form. ``.csv`` and ``.npz``: t, q, u, s and the controls of a closed loop.
        ``.parquet``: :meth:`to_dataframe`. Sensitivities are in ``.nc`` and ``.npz`` only, of which a `ModelWarning`
        reminds.

        Raises `FileError` for other suffixes, and if the file cannot be written, which leaves an earlier file as it
        was; `SolveError` if ``path`` is not a path.
        """
        save(self, path)

    # -- plots ----------------------------------------------------------------------------------------------

    def plot(self, *names: Any, ax: Any = None, label: str = "") -> Any:
        """Draw variables over time with matplotlib, with the events and the modes of contacts.

        Events of the model are dashed lines, events of contacts thin gray lines. Intervals in which a contact acts are
        shaded in the color of its mode. A jump is a gap between the values before and after it. Coordinates, speeds and
        states are drawn smoothly from the dense output, other quantities at the stored times.

        Parameters
        ----------
        names
            A panel for each: the name or symbol of a coordinate, speed, state, input, output, contact or reaction; a
            group, ``"coordinates"``, ``"speeds"``, ``"states"``, ``"controls"``, ``"inputs"``, ``"outputs"``,
            ``"contact forces"``, ``"multipliers"`` or ``"reactions"``; a quantity such as ``"energy"``; a list of
            these, drawn in one panel. None: all groups that the model has.
        ax
            Axes of matplotlib, one for all panels or a sequence with one for each; or a figure, in which axes are made.
            None: a new figure of pyplot.
        label
            A text in front of the labels, to compare solutions in the same axes.

        Returns
        -------
        Axes or numpy.ndarray
            The axes that were given, or an array with those of the panels, (n,).

        Raises
        ------
        SolveError
            For unknown names and wrong axes, and if matplotlib is missing (``pip install 'kanegen[plot]'``).
        """
        from kanegen.solve.solution.drawing import plot

        return plot(self, names, ax, label)

    # -- between the stored times ---------------------------------------------------------------------------

    def __call__(self, t: Any) -> tuple[Array, ...]:
        """State (q, u) at time ``t``: arrays (n_q,) and (n_u,); at times (n_t,), (n_t, n_q) and (n_t, n_u).

        For a model with states the state is (q, u, s); ``s`` has the shape (n_s,) or (n_t, n_s).
        The accuracy is about that of the integration (dense output of order 4 for dopri5, 7 for dop853, 3 for rodas
        and the methods with a fixed step). Raises `SolveError` for times outside the integrated part, and after a run
        with ``dense_output=False``.
        """
        times = real_array(t, "t")
        if times.ndim > 1:
            raise SolveError(f"t has shape {times.shape}; expected a number or (n_t,)")
        states = self._states(np.atleast_1d(times))
        states = states if times.ndim else states[0]
        n_q, n_u, n_s = self.q.shape[1], self.u.shape[1], self.s.shape[1]
        q, u, s, _ = np.split(states, np.cumsum([n_q, n_u, n_s]), axis=-1)
        return (q.copy(), u.copy(), s.copy()) if n_s else (q.copy(), u.copy())

    def _states(self, times: Array) -> Array:
        if self.dense is None:
            raise SolveError(
                "the solution has no dense output: integrate with dense_output=True (the default) or give t_eval"
            )
        end = self.last[0]
        start = float(self.dense.t_old[0]) if self.dense.t_old.size else end
        outside = ~((times >= min(start, end)) & (times <= max(start, end)))
        if outside.any():
            raise SolveError(
                f"t = {float(times[outside][0])!r} is outside the solution, which extends from t = {start!r} "
                f"to {end!r} s"
            )
        if not self.dense.t_old.size:
            return np.tile(np.concatenate(self.last[1:]), (times.size, 1))
        return self.dense(times)

    def _repr_html_(self) -> str:
        """What a notebook shows: how the run ended, its steps, the last state and the events."""
        return page(run_table(self), *([event_table(self.events)] if self.events else []))

    def _ipython_key_completions_(self) -> list[str]:
        """Names that IPython offers after ``solution[``."""
        run = self.run
        outputs = () if self.reference is None else tuple(self.outputs)
        return [*run.coordinates, *run.speeds, *run.states, *run.inputs, *outputs]

    def __repr__(self) -> str:
        span = f"t = {self.t[0]:g} .. {self.t[-1]:g} s" if self.t.size else "no times"
        events = f", {len(self.events)} events" if self.events else ""
        end = ""
        if len(self.last) > 1:
            names = (*self.run.coordinates, *self.run.speeds, *self.run.states)
            end = f"; at the end {shown_values(names, np.concatenate(self.last[1:]))}"
        steps = f"{self.statistics.steps} steps"
        return f"<Solution: {self.status.value}, {self.t.size} points, {span}, {steps}{events}{end}>"


def _restored(fields: dict[str, Any]) -> Solution:
    """A solution with these fields."""
    return Solution(SimpleNamespace(**fields))


def load(path: Any, solver: Any = None) -> Solution:
    """Read a solution that :meth:`Solution.save` wrote as netCDF (``.nc``).

    With ``solver``, a :class:`kanegen.Solver` of the same model, the quantities of the solution can be evaluated; they
    use the parameters of the run.

    Raises
    ------
    FileError
        If the file cannot be read, is of another kind, or is damaged: its checksum does not fit its content.
    SolveError
        If the digest of the solver is not that of the file: the model, the options of the build or the version of
        kanegen differ.
    """
    values, acting = read(file_path(path))
    others = {"all_inputs": MotionInputs(lambda: acting), "reference": None}
    solution = _restored(values | others)
    return solution if solver is None else solution.with_solver(solver)


class _WithSolution(BaseException):
    """An exception with the part of a motion that was integrated."""

    solution: Any

    def __init__(self, message: str, solution: Any) -> None:
        super().__init__(message)
        self.solution = solution

    def __reduce__(self) -> tuple[type[BaseException], tuple[str, Any]]:
        return (type(self), (str(self), self.solution))


class IntegrationError(_WithSolution, SolveError):
    """An integration that did not reach its end; ``solution`` holds the part that was integrated."""

    solution: Solution


class IntegrationInterrupted(_WithSolution, KeyboardInterrupt):
    """Ctrl-C during an integration; ``solution`` holds the part that was integrated.

    It is a `Solution`, or of `Solver.integrate_many` an `Ensemble` with the motions that were completed.
    """
