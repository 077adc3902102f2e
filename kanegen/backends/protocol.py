"""The interface of back ends, which connects code generation and :class:`kanegen.Solver`.

A back end turns the program of a model into a :class:`Build`, whose ``module`` (an :class:`Evaluator`) evaluates and
integrates. The emitted Cython module is one implementation; its docstrings describe each function in detail. To add a
back end, add a module or folder next to this file and a line to ``kanegen/backends/registry.py``.

Arrays are float64. The arguments of functions are those of a `Point` (kanegen/backends/points.py), in its order.
Functions raise `SolveError` if they cannot be evaluated; those that return a status return a
:class:`kanegen.codes.Status` (or another negative number).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, Unpack

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.codegen.sources import Sources
from kanegen.program.records import Program
from kanegen.run_options import StepOptions


@dataclass(frozen=True)
class Generated:
    """The program of a model with its description. ``options`` is a line of text for the generated files."""

    program: Program
    description: Description
    options: str


DeriveMore: TypeAlias = Callable[[str, tuple[str, ...]], Generated]


@dataclass(frozen=True)
class Request:
    """A request to build a model: the ``digest`` of model and options, and a function that derives the program.

    A back end that finds its result in a cache by the digest does not derive the program. ``derive_more(form, names)``
    derives functions that the program leaves out, by their names in the catalogue.
    """

    digest: str
    derive: Callable[[], Generated]
    derive_more: DeriveMore | None = None

    @cached_property
    def generated(self) -> Generated:
        """The derived program; derived on first use."""
        return self.derive()


class PreparedValues(Protocol):
    """Parameters and gains of a solver, with the constants that depend on them only.

    ``parameters`` (n_p,), NaN where a value is missing; ``gains`` (n_g,); ``undefined``: indices of the constants
    that are not finite; ``complaint``: the reason, for messages.
    """

    parameters: Array
    gains: Array
    undefined: tuple[int, ...]
    complaint: str


class ModelFunction(Protocol):
    """One function of the model with parameters and default inputs.

    ``shape`` of the value: () for a scalar. ``repartitioned``: number of evaluations with other dependent speeds than
    the model's own.
    """

    name: str
    shape: tuple[int, ...]
    prepared: Any
    repartitioned: int

    def value(
        self,
        t: Any,
        q: Any,
        u: Any,
        r: Any = None,
        s: Any = None,
        out: Any = None,
        forces: Any = None,
        free: Any = None,
    ) -> Any:
        """The value: a float, or an array of ``shape``."""

    def pair(
        self,
        t: Any,
        q: Any,
        u: Any,
        r: Any = None,
        s: Any = None,
        out: Any = None,
        forces: Any = None,
        free: Any = None,
    ) -> tuple[Array, ...]:
        """``(q', u')`` of a right-hand side, and s' of a model with states."""

    def with_units(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None) -> tuple[Array, Array]:
        """The residuals of constraints and their units, each (n,), at one state given by arrays.

        The unit is what a residual changes by, to first order, when q and u change by the size of their largest
        components, or by 1 where all of them are zero. A violation relative to it does not depend on how the
        constraint is written.
        """

    def ode(self, t: Any, y: Any, r: Any = None) -> Array:
        """``y'`` for ``y = (q, u, s)``."""

    def low_level(self, r: Any = None) -> Any:
        """A PyCapsule with the C function of the right-hand side."""


class InputMaker(Protocol):
    """Makes inputs of a run: constant, piecewise polynomial, compiled, or Python code."""

    def constant(self, values: Any, /) -> Any:
        """The same values (n_r,) at all times."""

    def piecewise(self, breakpoints: Any, coefficients: Any, /) -> Any:
        """Polynomials: coefficients (order, pieces, n_r), highest power first."""

    def compiled(self, source: Any, /) -> Any:
        """A ``scipy.LowLevelCallable``."""

    def python(self, source: Callable[..., Any], n_arguments: int = 1, /) -> Any:
        """A callable ``r(t)``, ``r(t, q, u)`` or ``r(t, q, u, s)``, with 1, 3 or 4 arguments."""


class ModuleRun(StepOptions, total=False):
    """Options of a compiled run; events and contacts by index.

    ``projection``: (every, tolerance, integrals, whether constraints can become dependent during the run).
    ``instants``: ascending times at which inputs jump or have a kink, for adaptive methods.
    """

    t_eval: Any
    dense: bool
    progress: Callable[[float], None] | None
    projection: tuple[int, float, tuple[str, ...], bool] | None
    control: Any
    events: Sequence[int] | None
    modes: Mapping[int, int] | None
    instants: Array | None


class Evaluator(Protocol):
    """A model that can be evaluated and integrated. Attributes in capitals describe the model.

    A solver calls ``Prepared(parameters, gains=None, allowed=(), partial=False)`` once and ``Function(name, prepared,
    inputs=None, named=None, states=None)`` for each function, with default inputs and states, NaN for none, where
    ``named(q, u, r, s)`` makes arrays of values by name.
    ``Batch(name, memory, run)`` calls code on vector lanes, for back ends that have some.
    ``Control(law, slots, low, high, sample_time=0.0, start=(), free=None, delay=0.0, before=None, first=None,
    places=None)`` is the source of a group of inputs of a run; ``Inverse(slots)`` computes inverse dynamics along a
    motion, ``Assembly`` the motion along a path of some coordinates.
    """

    NAME: str
    DIGEST: str
    COORDINATES: tuple[str, ...]
    SPEEDS: tuple[str, ...]
    STATES: tuple[str, ...]
    INPUTS: tuple[str, ...]
    PARAMETERS: tuple[str, ...]
    N_GAINS: int
    FUNCTIONS: Mapping[str, tuple[int, ...]]
    TABLES: tuple[tuple[str, float, float], ...]
    CONTACTS: tuple[str, ...]
    EVENTS: tuple[str, ...]
    IRREVERSIBLE_CONTACTS: tuple[str, ...]
    IRREVERSIBLE_EVENTS: tuple[str, ...]
    Prepared: Callable[..., PreparedValues]
    Function: Callable[..., ModelFunction]
    Batch: Callable[..., Any]
    Inputs: InputMaker
    Control: Callable[..., Any]
    Assembly: Callable[..., Any]
    Inverse: Callable[..., Any]

    def checked_state(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None) -> tuple[Array, Array]:
        """``q`` and ``u`` as arrays. Raises `SolveError` for arguments of the wrong kind or size."""

    def integrate(
        self, function: Any, inputs: Any, t0: float, t1: float, q0: Any, u0: Any, s0: Any, **options: Unpack[ModuleRun]
    ) -> Any:
        """Integrate a right-hand side; returns a ``RunResult`` with all results, also of a run that stopped early."""

    def switching_times(self, prepared: Any, t0: float, t1: float) -> Array:
        """The times (n,) between ``t0`` and ``t1``, in this direction, at which functions of time switch."""

    def inputs_along(self, function: Any, inputs: Any, times: Any, states: Any, control: Any = None) -> Array:
        """The inputs of a run at many states, (n_t, n_r).

        ``control``: the controls of the run; samples have the values that acted.
        """

    def along(
        self, function: Any, inputs: Any, control: Any, times: Any, states: Any, others: Iterable[Any] = ()
    ) -> list[Array]:
        """Values of functions at many states, one array (n_t, n_out) for each."""

    def make_consistent(
        self, prepared: Any, t: float, q: Any, u: Any, r: Any, fixed: Collection[int], tolerance: float, s: Any = None
    ) -> tuple[int, Array, Array, Any]:
        """Status, corrected ``q`` and ``u``, and the number of corrections."""

    def impulse(
        self, prepared: Any, t: float, q: Any, u: Any, r: Any, generalized: Any, rows: Any = None, s: Any = None
    ) -> tuple[Any, ...]:
        """Speeds after an impulse."""

    def contacts(
        self, prepared: Any, t: float, q: Any, u: Any, r: Any, atol: Any = None, s: Any = None
    ) -> tuple[Any, ...]:
        """Modes, gaps, forces and accelerations of the contacts at a state; ``atol``: tolerances of (q, u)."""

    def contacts_after_impulse(
        self, prepared: Any, t: float, q: Any, u_before: Any, u: Any, r: Any, s: Any = None
    ) -> tuple[Any, ...]:
        """The reaction of the contacts to an impulse."""

    def contact_layout(self) -> list[tuple[int, int, int]]:
        """For each contact: row of the gap, first row of the slip velocity, number of slip rows."""


class BatchPlan(NamedTuple):
    """The arguments and results of a function at N states.

    ``arguments``: t (1,), q (n_q,), u (n_u,), r (n_r,), forces (n_rows,), free (n_free,), s (n_s,), and the varied
    parameters, if there are some; arrays with one dimension more have a value for each row. ``results``: the parts of
    the result, arrays (N, ...). Arrays are aligned, float64, with any strides. ``p``: parameters and gains. ``varied``:
    indices of the parameters with a value for each row. ``needed``: indices of values in p after ``prepare()`` that
    must be finite. ``failed`` (N,): becomes 1 in rows without a result, which become NaN.
    """

    arguments: tuple[Array, ...]
    results: tuple[Array, ...]
    p: Array
    varied: NDArray[np.int32]
    needed: NDArray[np.int32]
    failed: NDArray[np.uint8]


class BatchFunction(Protocol):
    """A function of a model that is evaluated at many states in one call."""

    def run(self, plan: BatchPlan, pieces: Iterable[tuple[int, int]]) -> int:
        """Evaluate the rows of these pieces (first, end), without the interpreter lock; returns how many failed."""

    def run_contiguous(
        self,
        t: float,
        q: Any,
        u: Any,
        others: tuple[Array, ...],
        results: tuple[Any, ...],
        shapes: tuple[tuple[int, ...], ...],
        p: Array,
        piece: int,
    ) -> NDArray[np.uint8] | None:
        """Evaluate all rows, if q, u and the results are contiguous arrays (N, ...) that share no memory.

        ``others``: r, forces, free and s, as far as they have entries, and ``p``: parameters and gains, the same in all
        rows. ``shapes``: those of the results
        without N. Ctrl-C is noticed after each ``piece`` of the rows. Returns the marks (N,) of rows that failed, or
        an empty array if none did; None, without evaluating, for other arguments.
        """


class ManyPlan(NamedTuple):
    """The arguments and results of N motions, by the names in ``kg_many`` (kg_group.h).

    ``arguments``: q, u, s, r, and each varied parameter, (n,), or (N, n) with any strides. ``p``, ``varied``,
    ``needed``: as in `BatchPlan`. ``residuals``, ``quantity``: names of the functions that check the start and that are
    reduced, or nothing; without ``quantity``, ``component`` of the state is reduced. ``keep``: the number of the
    reduction. ``stepping``: options of the steps, with tolerances (n,). ``y`` (N, K, n): the states at ``t_eval``, or
    with ``at_end`` at the end; ``values`` (N,): of the reduction, or None. ``cause``: the status of a right-hand side
    that failed.
    """

    arguments: tuple[Array, ...]
    p: Array
    varied: tuple[int, ...]
    needed: tuple[int, ...]
    residuals: str
    quantity: str
    component: int
    keep: int
    stepping: StepOptions
    span: tuple[float, float]
    start_tolerance: float
    t_eval: Array
    at_end: bool
    y: Array
    values: Array | None
    t_ends: Array
    status: NDArray[np.int64]
    cause: NDArray[np.int64]
    steps: NDArray[np.int64]
    evaluations: NDArray[np.int64]
    completed: NDArray[np.bool_]


class ManyRun(Protocol):
    """An ensemble that is integrated."""

    def work(self) -> Iterator[None]:
        """Integrate motions that no thread has taken, with a pause now and then, until none is left."""


class ManyFunction(Protocol):
    """The integration of many motions on ``lanes`` lanes in each thread."""

    lanes: int

    def run(self, plan: ManyPlan) -> ManyRun:
        """An ensemble, of which each thread does a share in ``work()``."""


class VariationPlan(NamedTuple):
    """The steps of a motion and the directions along which it is differentiated, by the names in ``kg_variations``.

    ``t``, ``h`` (m,), ``y`` (m + 1, n): the steps and the states at their starts and at the end; ``edges`` (m, 2):
    fractions of a step by which stages at its start and its end are moved inside; ``fresh`` (m,): steps that do not
    begin with the derivative at the end of the last one. ``loads`` (..., n_r + n_rows): inputs and contact forces, and
    ``load_changes`` (..., n_r + n_rows, k), with ``load_step`` and ``load_row`` rows from step to step and from stage
    to stage. ``p``: parameters and gains, ``p_changes`` (n_p, k). ``changes`` (m + 1, n, k): of the states; the
    first are given. ``sizes`` and ``errors`` (n, k): become the largest changes at the ends of steps, and the largest
    local errors of the changes, 0 for methods without estimates. ``dense`` (m, rows, n, k) or None. ``times``
    (n_t,) or None: where the changes are wanted, in the order of the steps; those of step i have the places from
    ``first_times[i]`` to before ``first_times[i + 1]``; ``at_times`` (n_t, n, k): the changes there. k is a multiple of
    the lanes.
    """

    t: Array
    h: Array
    y: Array
    edges: Array
    fresh: NDArray[np.uint8]
    loads: Array
    load_changes: Array
    load_step: int
    load_row: int
    p: Array
    p_changes: Array
    changes: Array
    sizes: Array
    errors: Array
    dense: Array | None
    times: Array | None
    first_times: NDArray[np.int32] | None
    at_times: Array | None


class VariationFunction(Protocol):
    """The derivatives of the steps of a method along ``lanes`` directions at a time."""

    lanes: int

    def run(self, plan: VariationPlan) -> tuple[int, int]:
        """Fill the changes of a plan; returns the status and, if it is negative, the step that failed."""


class AdjointPlan(NamedTuple):
    """The steps of a motion and the weights that are pulled back, by the names in ``kg_adjoints``.

    ``t``, ``h`` (m,), ``y`` (m + 1, n), ``edges`` (m, 2), ``fresh`` (m,): as in `VariationPlan`. ``loads``
    (..., n_r + n_rows), with ``load_step`` and ``load_row`` rows from step to step and from stage to stage;
    ``of_loads``: their gradient, of the same shape, and ``of_p`` (n_p,), to which are added. ``added`` (m + 1, n) or
    None: weights of the states. ``weights`` (n,): those at the end, which become those at the start. ``sizes`` and
    ``errors`` (n + n_p,): the largest weights and gradients with respect to parameters so far, and their largest local
    errors, which grow. ``running``: the weight of the running cost. ``p``: parameters and gains.
    """

    t: Array
    h: Array
    y: Array
    edges: Array
    fresh: NDArray[np.uint8]
    loads: Array
    of_loads: Array
    added: Array | None
    weights: Array
    of_p: Array
    sizes: Array
    errors: Array
    running: float
    load_step: int
    load_row: int
    p: Array


class AdjointResult(NamedTuple):
    """The status, the step that failed if it is negative, and the integral of the running cost."""

    status: int
    failed: int
    cost: float


class AdjointFunction(Protocol):
    """The discrete adjoint of the steps of a method."""

    def run(self, plan: AdjointPlan) -> AdjointResult:
        """Pull weights back."""


class Build(Protocol):
    """The result of a back end.

    ``backend`` is its key in the table of back ends; ``digest`` identifies the build; ``sources`` are the generated C
    files; ``path`` is the loaded file, if any.
    """

    backend: ClassVar[str]
    module: Evaluator
    digest: str
    sources: Sources
    path: Path | None
    description: Description

    def more(self, names: tuple[str, ...]) -> Build:
        """A build of functions that this one leaves out, by their names in the catalogue. Raises `BuildError`."""

    def batch(self, name: str) -> BatchFunction:
        """The batch evaluation of a function, compiled on first use. Raises `BuildError` where there is none."""

    def many(self, function: str, method: str, quantity: str) -> ManyFunction | None:
        """The integration of many motions on lanes, compiled on first use; None where there is none.

        ``quantity``: the function that is reduced, or nothing. Raises `BuildError`.
        """

    def variations(self, name: str, method: str) -> VariationFunction:
        """The derivatives of motions by a function of variations, compiled on first use. Raises `BuildError`."""

    def adjoint(self, names: tuple[str, str], method: str) -> AdjointFunction:
        """The discrete adjoint of a method, by the functions of rates and of their gradient, compiled on first use.

        Raises `BuildError`.
        """


class Backend(Protocol):
    """A function that builds models. ``options`` depend on the back end; None: its defaults. Raises `BuildError`."""

    def __call__(self, request: Request, options: Any = None) -> Build:
        """Build a model."""
