"""Evaluation of one function at many states on vector lanes and in threads."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array, sections
from kanegen.backends.points import Point, array_of, is_plain, read_point, with_defaults
from kanegen.backends.protocol import BatchFunction, BatchPlan
from kanegen.errors import SolveError, brief
from kanegen.program.catalogue import CATALOGUE
from kanegen.solve.evaluation import Evaluation
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.values import by_name, known_name, positive_integer

_PIECE: Final = 1 << 16
"""Rows of one call of compiled code: a multiple of the lanes; between calls, Ctrl-C is noticed."""

_NO_ROWS: Final = np.empty(0, dtype=np.intp)

_NO_INDICES: Final = np.empty(0, dtype=np.int32)

_NOTHING: Final = np.empty((0, 0))

_BYTES: Final = np.dtype(np.float64).itemsize


class Failures(Mapping[int, str]):
    """The rows of a batch that could not be evaluated, ascending, and the reason for each.

    Reasons are found when they are read, by evaluating the row again.
    """

    def __init__(
        self,
        functions: CompiledFunctions,
        name: str,
        varied: tuple[int, ...],
        rows: NDArray[np.intp] = _NO_ROWS,
        values: Array = _NOTHING,
    ) -> None:
        self._functions, self._name, self._varied, self._values = functions, name, varied, values
        self._places = {row: place for place, row in enumerate(rows.tolist())}

    def __getitem__(self, row: int) -> str:
        d, values = self._functions.description, self._values[self._places[row]]
        n_q, n_u, *sizes = map(len, d.arguments.values())
        t, q, u, r, forces, free, s, p = sections(values, (1, n_q, n_u, *_in_order(*sizes)))
        at = Point(float(t[0]), q, u, r, s if d.states else None, forces, free)
        try:
            changed = dict(zip(self._varied, p.tolist(), strict=True))
            functions = self._functions.with_parameters(changed) if changed else self._functions
            if np.isnan(r[list(d.laws)]).any():  # a law has no value there
                at._replace(r=np.where(np.isnan(r), 0.0, r)).evaluate(functions.get("laws").value)
            at.evaluate(functions.get(self._name).value)
        except SolveError as error:
            return str(error)
        return "the result is not finite"

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        first = [f", first in row {row}: {self[row]}" for row in list(self)[:1]]
        return f"<{len(self)} failed rows{''.join(first)}>"


class Batch(NamedTuple):
    """Values of a function at N states, (N, ...), and the rows that failed, whose values are NaN."""

    values: Array
    failures: Failures


class Rates(tuple[Array, ...]):
    """``(q', u')`` at N states, with ``s'`` for a model with states: arrays (N, n_q), (N, n_u), (N, n_s).

    ``failures``: the rows that failed, whose values are NaN, with the reasons.
    """

    failures: Failures

    def __new__(cls, arrays: Sequence[Array], failures: Failures) -> Rates:
        """The arrays with the record of the rows that failed."""
        rates = super().__new__(cls, arrays)
        rates.failures = failures
        return rates

    def __getnewargs__(self) -> tuple[Any, ...]:
        """The arguments of ``__new__`` for copies and pickles."""
        return tuple(self), self.failures


class Batching(Evaluation):
    """The methods of a :class:`~kanegen.Solver` that evaluate one function at many states on vector lanes."""

    def rhs_batch(
        self,
        t: Any,
        q: Any,
        u: Any,
        r: Any = None,
        s: Any = None,
        *,
        parameters: Mapping[Any, Any] | None = None,
        out: Any = None,
        threads: int = 1,
    ) -> Rates:
        """``(q', u')`` at N states, and ``s'`` for a model with states, with the stabilization of the solver.

        Arguments, errors and rows that fail: as for :meth:`batch`; column-major arrays are the fast ones. ``out`` is
        ``(qdot, udot)``, or ``(qdot, udot, sdot)``, of shapes (N, n_q), (N, n_u), (N, n_s).
        """
        return Rates(*self._batch(self._rhs_name, self._rate_shapes, (t, q, u, r, s), parameters, out, threads))

    @cached_property
    def _rate_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of q', u', and s' of a model with states."""
        d = self.description
        shapes: dict[str, tuple[int, ...]] = {"qdot": (len(d.coordinates),), "udot": (len(d.speeds),)}
        return {**shapes, "sdot": (len(d.states),)} if d.states else shapes

    def batch(
        self,
        name: str,
        t: Any,
        q: Any,
        u: Any,
        r: Any = None,
        s: Any = None,
        *,
        parameters: Mapping[Any, Any] | None = None,
        out: Any = None,
        threads: int = 1,
    ) -> Batch:
        """One function of the model at N states, ``(values, failures)``, evaluated on vector lanes.

        The first call for a function compiles it for the vector unit of the processor; the cache keeps the result. The
        values agree with those of the function at one state within rounding: sums and products can be fused, and sines
        and cosines have errors up to 3.5 units in the last place. Rows that need other dependent speeds are evaluated
        by the function at one state, as are those with angles whose sum of squares exceeds (1e6 rad)^2, without fused
        operations (1e5 rad)^2. The result of a row does not depend on other rows, on N, or on the number of threads.

        Parameters
        ----------
        name
            A function that was built, or is built on first use: of the catalogue (``"Q"``, ``"kinetic_energy"``,
            ``"jacobian_q"``), or an output.
        t, q, u, r, s
            (N,), (N, n_q), (N, n_u), (N, n_r), (N, n_s), with any strides, or without rows: the same for all states.
            Column-major arrays (``order="F"``, each column contiguous) are the fast ones. Mappings by name as for the
            functions of one state.
        parameters
            Values by name or symbol that replace those of the solver: numbers, or arrays (N,).
        out
            An array (N, ...) for the values, with any strides.
        threads
            The number of threads; the interpreter lock is released.

        Returns
        -------
        Batch
            ``values`` (N, ...), column-major unless ``out`` is given. Rows that cannot be evaluated, as those with NaN
            or with a singular configuration, are NaN; ``failures`` maps their indices to reasons.

        Raises
        ------
        SolveError
            For unknown names, wrong shapes and types, missing values, and outputs that overlap each other or an
            argument.
        BuildError
            If the function cannot be compiled, and with the back end ``"interpreted"``.
        """
        compiled = self._compiled_name(name)
        shape = self._functions.having(compiled).module.FUNCTIONS.get(compiled, ())
        shape = self.description.outputs.get(name, shape) if compiled.startswith("output:") else shape
        given = None if out is None else (out,)
        arrays, failures = self._batch(compiled, {name: shape}, (t, q, u, r, s), parameters, given, threads)
        return Batch(arrays[0], failures)

    def _compiled_name(self, name: Any) -> str:
        """The compiled name of a quantity or output. Raises `SolveError` for names that the model does not have."""
        if name == "rhs":
            return self._rhs_name
        outputs = self.description.outputs
        if isinstance(name, str) and name in CATALOGUE and name in self._routes and name not in outputs:
            return name
        compiled = (name.removeprefix("output:") for name in self.extension.module.FUNCTIONS)
        known = dict.fromkeys((*compiled, *self.description.unavailable, *CATALOGUE, *outputs))
        name = known_name(name, tuple(known), "function")
        return f"output:{name}" if name in outputs else name

    @cached_property
    def _routes(self) -> dict[str, Route]:
        """What calls without ``parameters=`` have in common, by the compiled name of the function."""
        return {}

    def _route(self, name: str, parameters: Mapping[Any, Any] | None) -> tuple[Route, dict[str, Array]]:
        """The route of a call, and the parameters with a value for each row. Raises `SolveError`, `BuildError`."""
        if parameters is None and name in self._routes:
            return self._routes[name], {}
        functions, varied = parameters_of(self._functions.having(name), parameters)
        if (problem := functions.problem(name, constants=not varied)) is not None:
            raise SolveError(problem)
        route = Route.of(functions, name)
        if parameters is None:
            self._routes[name] = route
        return route, varied

    def _batch(
        self,
        name: str,
        shapes: Mapping[str, tuple[int, ...]],
        state: tuple[Any, ...],
        parameters: Mapping[Any, Any] | None,
        out: Any,
        threads: int,
    ) -> tuple[list[Array], Failures]:
        number = positive_integer(threads, "threads")
        route, varied = self._route(name, parameters)
        t, q, u, r, s = state
        if number == 1 and r is None and s is None and not varied and isinstance(t, float):
            found = evaluate_contiguous(route, (t, q, u), out, shapes)
            if found is not None:
                return found
        if route.reads_laws if r is None else self.description.laws and isinstance(r, Mapping):
            r = self._law_inputs(name, state, parameters, threads)
        arguments = read_arguments(route, Point(t, q, u, r, s), varied)
        arrays = output_arrays(out, shapes, arguments)
        if not arguments.n_rows or not sum(array.size for array in arrays):
            return arrays, route.no_failures
        return arrays, evaluate(route, arguments, arrays, number)

    def _law_inputs(self, name: str, state: tuple[Any, ...], parameters: Any, threads: int) -> Array:
        """The inputs (N, n_r) of a function with the values of the feedback laws."""
        t, q, u, r, s = state
        others, slots = self._functions.beside_laws((name,), r)
        if not slots:
            return others
        shape, inputs = (len(self.description.laws),), None if r is None else others
        arrays, _ = self._batch("laws", {"laws": shape}, (t, q, u, inputs, s), parameters, None, threads)
        return self._functions.laws_in(others, slots, arrays[0])


@dataclass(frozen=True)
class Route:
    """What calls of a function with the same parameters have in common.

    ``defaults``: NaN where the function reads an input or state without a default; ``missing``: whether there is one.
    ``others``: the defaults after q and u that have entries, in the order of compiled code. ``p``: parameters and
    gains; ``fallible``: indices of the constants that must be finite, behind p.
    """

    functions: CompiledFunctions
    name: str
    reads_laws: bool
    defaults: Point
    missing: bool
    others: tuple[Array, ...]
    p: Array
    fallible: NDArray[np.int32]

    @classmethod
    def of(cls, functions: CompiledFunctions, name: str) -> Route:
        """Gather what does not depend on the arguments."""
        reads_laws = not functions.inputs_read([name]).isdisjoint(functions.description.laws)
        defaults = functions.defaults_of([name])
        missing = bool(np.isnan(defaults.r).any() or np.isnan(defaults.s).any())
        others = tuple(x for x in _in_order(*defaults[3:]) if x.size)
        p = np.concatenate([functions.prepared.parameters, functions.prepared.gains])
        constants = functions.description.functions[name].fallible_constants
        fallible = np.array(constants, dtype=np.int32) + np.int32(p.size)
        return cls(functions, name, reads_laws, defaults, missing, others, p, fallible)

    @cached_property
    def no_failures(self) -> Failures:
        """The record of calls without rows that failed."""
        return Failures(self.functions, self.name, ())

    @cached_property
    def knows_inputs(self) -> bool:
        """Whether the defaults are all inputs that the function needs."""
        return not (self.reads_laws or self.missing)

    @cached_property
    def compiled(self) -> BatchFunction:
        """The compiled code. Raises `BuildError`."""
        return self.functions.extension.batch(self.name)


class Arguments(NamedTuple):
    """The arguments of a function at N states: arrays (n,), or (N, n) with any strides.

    ``arrays``: t, q, u, r, forces, free, s, and the parameters whose values differ from row to row, if there are some.
    ``given``: the arrays of the user; ``parameters``: by name, (N, 1). ``varied``: indices of the parameters in the
    last one of ``arrays``.
    """

    n_rows: int
    arrays: tuple[Array, ...]
    given: Point
    parameters: dict[str, Array]
    varied: tuple[int, ...]

    def rows(self, which: NDArray[np.intp]) -> Array:
        """The values of some rows."""
        parts = [
            array[which] if array.ndim == 2 else np.broadcast_to(array, (which.size, array.size))
            for array in self.arrays
        ]
        return np.concatenate(parts, axis=1)


def parameters_of(
    functions: CompiledFunctions, parameters: Mapping[Any, Any] | None
) -> tuple[CompiledFunctions, dict[str, Array]]:
    """The functions with the given parameters that are numbers, and the others by name, (N,).

    A parameter that differs from row to row and has no value in the solver gets the first finite one. Raises
    `SolveError` for unknown names and values that are no real numbers.
    """
    if parameters is None:
        return functions, {}
    d = functions.description
    given = by_name(parameters, d.parameters, "parameter")
    arrays = {name: array_of(value, f"parameter {name}") for name, value in given.items()}
    for name, array in arrays.items():
        if array.ndim > 1:
            raise SolveError(f"parameter {name} has shape {array.shape}; expected a number, or (N,)")
    values = {d.parameters.index(name): float(array) for name, array in arrays.items() if not array.ndim}
    varied = {name: array for name, array in arrays.items() if array.ndim}
    for name, array in varied.items():
        finite = array[np.isfinite(array)]
        if np.isnan(functions.prepared.parameters[i := d.parameters.index(name)]) and finite.size:
            values[i] = float(finite.flat[0])
    return functions.with_parameters(values) if values else functions, varied


def read_arguments(route: Route, at: Point, parameters: Mapping[str, Any]) -> Arguments:
    """Read the arguments of a batch. ``parameters``: arrays (N,) by name. Raises `SolveError` for wrong shapes."""
    functions = route.functions
    d = functions.description
    varied = {f"parameter {name}": values[:, np.newaxis] for name, values in parameters.items()}
    counts = {name: len(values) for name, values in varied.items()}
    given, n_rows = read_point(functions.arrays_for(route.name, at), d.arguments, d.name, counts)
    point = with_defaults(given, route.defaults, d.arguments, route.name)
    arrays = [*point[:3], *_in_order(*point[3:])]
    if varied:
        arrays.append(np.concatenate([*varied.values()], axis=1))
    indices = tuple(map(d.parameters.index, parameters))
    return Arguments(1 if n_rows is None else n_rows, tuple(arrays), given, varied, indices)


def _in_order(r: Any, s: Any, forces: Any, free: Any) -> tuple[Any, ...]:
    """What belongs to the arguments after q and u, in the order of compiled code (kg_batch.h)."""
    return r, forces, free, s


def evaluate(route: Route, arguments: Arguments, out: Sequence[Array], threads: int) -> Failures:
    """Evaluate a function into arrays (N, ...), which follow one another. Returns the rows that failed."""
    failed = np.zeros(arguments.n_rows, dtype=np.uint8)
    plan = BatchPlan(
        arguments=arguments.arrays,
        results=tuple(out),
        p=route.p,
        varied=np.array(arguments.varied, dtype=np.int32) if arguments.varied else _NO_INDICES,
        needed=route.fallible if arguments.varied else _NO_INDICES,
        failed=failed,
    )
    if not _run(route.compiled, plan, arguments.n_rows, threads):
        return route.no_failures
    rows = np.flatnonzero(failed)
    return Failures(route.functions, route.name, arguments.varied, rows, arguments.rows(rows))


def evaluate_contiguous(
    route: Route, state: tuple[float, Any, Any], out: Any, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[list[Array], Failures] | None:
    """Evaluate a function at contiguous arrays q and u into such ones in one thread, with the default inputs.

    The usual case, without what `read_arguments` and `output_arrays` do for others: a third of the time of a call.
    None, without evaluating, for other arguments, which may be wrong.
    """
    if not route.knows_inputs:
        return None
    t, q, u = state
    if out is None and isinstance(q, np.ndarray) and q.ndim == 2:
        out = new_arrays(shapes, len(q))
    elif not isinstance(out, tuple):
        return None
    arrays = tuple(out)  # the compiled code takes no subclass, such as Rates
    failed = route.compiled.run_contiguous(t, q, u, route.others, arrays, tuple(shapes.values()), route.p, _PIECE)
    if failed is None:
        return None
    if not failed.size:
        return [*arrays], route.no_failures
    rows = np.flatnonzero(failed)
    states = read_arguments(route, Point(t, q, u), {}).rows(rows)
    return [*arrays], Failures(route.functions, route.name, (), rows, states)


def _run(compiled: BatchFunction, plan: BatchPlan, count: int, threads: int) -> int:
    """Evaluate all rows; each thread has a share of them. Returns the number of rows that failed."""
    if threads == 1 or count <= 1:
        return compiled.run(plan, [(first, min(first + _PIECE, count)) for first in range(0, count, _PIECE)])
    stopped = threading.Event()

    def pieces(first: int, end: int) -> Iterator[tuple[int, int]]:
        for start in range(first, end, _PIECE):
            if stopped.is_set():
                return
            yield start, min(start + _PIECE, end)

    share = math.ceil(count / threads)
    own, *others = (pieces(first, min(first + share, count)) for first in range(0, count, share))
    with ThreadPoolExecutor(threads - 1) as pool:
        try:
            results = [pool.submit(compiled.run, plan, each) for each in others]
            return compiled.run(plan, own) + sum(result.result() for result in results)
        finally:
            stopped.set()


def new_arrays(shapes: Mapping[str, tuple[int, ...]], n_rows: int) -> list[Array]:
    """Column-major arrays (N, ...) for the results."""
    return [np.empty((n_rows, *shape), order="F") for shape in shapes.values()]


def output_arrays(out: Any, shapes: Mapping[str, tuple[int, ...]], arguments: Arguments) -> list[Array]:
    """The arrays of the results (N, ...) by name: new ones, column-major, or those of ``out``, a sequence.

    Raises `SolveError` for arrays that cannot be written, of other shapes, or that overlap each other or an argument.
    """
    if out is None:
        return new_arrays(shapes, arguments.n_rows)
    expected = {name: (arguments.n_rows, *shape) for name, shape in shapes.items()}
    if not isinstance(out, tuple | list) or len(out) != len(expected):
        names = ", ".join(f"{name} {shape}" for name, shape in expected.items())
        given = f"a {type(out).__name__} of length {len(out)}" if isinstance(out, tuple | list) else _kind(out)
        raise SolveError(f"out is {given}; expected {len(expected)} array(s): {names}")
    others = {name: array for name, array in arguments.given._asdict().items() if array is not None}
    others |= arguments.parameters
    for (name, shape), array in zip(expected.items(), out, strict=True):
        if not (isinstance(array, np.ndarray) and array.shape == shape and is_plain(array) and array.flags.writeable):
            raise SolveError(f"out ({name}) is {_kind(array)}; expected a writeable, aligned array float64 {shape}")
        if _overlaps_itself(array):
            raise SolveError(
                f"out ({name}) has the strides {array.strides}: several of its entries share memory; "
                f"give an array of its own, such as np.empty({shape}, order='F')"
            )
        for other, memory in others.items():
            if _share_memory(array, memory):
                raise SolveError(f"out ({name}) shares memory with {other}: give another array, or a copy of {other}")
        others[f"out ({name})"] = array
    return list(out)


def _kind(given: Any) -> str:
    """What was given in place of an array for results, for messages."""
    if not isinstance(given, np.ndarray):
        return brief(given)
    flags = {"read-only": not given.flags.writeable, "not aligned": not given.flags.aligned}
    return ", ".join([f"an array {given.dtype} {given.shape}", *(flag for flag, holds in flags.items() if holds)])


def _overlaps_itself(array: Array) -> bool:
    """Whether entries of an array can have the same address: a stride is smaller than the extent of those below it."""
    if array.flags.forc:
        return False
    extent = _BYTES
    for stride, size in sorted((abs(stride), size) for stride, size in zip(array.strides, array.shape, strict=True)):
        if size > 1 and array.size:
            if stride < extent:
                return True
            extent = stride * (size - 1) + extent
    return False


def _share_memory(one: Array, other: Array) -> bool:
    """Whether entries of two arrays have the same address; arrays that interleave are examined entry by entry."""
    if one.flags.owndata and other.flags.owndata:
        return one is other
    return bool(np.may_share_memory(one, other) and np.shares_memory(one, other))
