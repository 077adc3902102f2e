"""The nonlinear program of a transcription in compiled code: its matrices, patterns, and functions for a solver."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.control.code import PointCode
from kanegen.control.transcription import Integers, Transcription

_INTS, _REALS = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_double)


class Memory:
    """Arrays to which structures in C point; they live as long as this record."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def ints(self, values: Any) -> Any:
        """A pointer to a copy of integers."""
        return self._pointer(np.array(values, dtype=np.intc, order="C"), _INTS)

    def reals(self, values: Any) -> Any:
        """A pointer to a copy of numbers."""
        return self._pointer(np.array(values, dtype=np.float64, order="C"), _REALS)

    def _pointer(self, array: Any, kind: Any) -> Any:
        self._kept.append(array)
        return array.ctypes.data_as(kind)


class _Sparse(ctypes.Structure):
    _fields_ = (("n_rows", ctypes.c_int), ("start", _INTS), ("column", _INTS), ("value", _REALS))


class _Problem(ctypes.Structure):
    """``kg_problem`` of problem.c.jinja."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("n_x", "n_g", "n_known", "n_jacobian", "order", "failed")),
        *((name, _INTS) for name in ("counts", "arguments", "parameters")),
        *((name, _REALS) for name in ("scale", "constants")),
        *((name, _Sparse) for name in ("linear", "values", "slopes", "weights", "second")),
        *((name, _REALS) for name in ("last", "given", "p", "point", "work", "rows", "multipliers", "w")),
        ("points", _REALS * 3),
        ("derivatives", _REALS),
    )


class Pattern(NamedTuple):
    """Rows and columns of the entries of a sparse matrix."""

    rows: Integers
    columns: Integers


class Program(Protocol):
    """What a solver of nonlinear programs needs: sizes, bounds of the constraints, patterns, and functions in C."""

    n_x: int
    n_g: int
    jacobian_pattern: Pattern
    hessian_pattern: Pattern

    @property
    def low(self) -> Array: ...
    @property
    def high(self) -> Array: ...
    @property
    def data(self) -> int: ...
    def function(self, name: str) -> int: ...


class NonlinearProgram:
    """Constraints, cost and derivatives of a transcription in scaled variables, as functions in C.

    ``scale`` (n_x,): the units of the variables; ``row_scale`` (n_g,): factors of the constraints. Its functions are
    those of IPOPT's C interface; ``data`` is their last argument.
    """

    def __init__(self, transcription: Transcription, code: PointCode, scale: Array, row_scale: Array) -> None:
        self.transcription, self.library = transcription, code.library
        self.scale, self.row_scale = scale, row_scale
        self.n_x, self.n_g = transcription.layout.n_x, transcription.n_g
        self._memory = Memory()
        self._data = _Problem()
        self._matrices()
        self._workspace(code)

    @property
    def data(self) -> int:
        """The address of the structure that the functions take."""
        return ctypes.addressof(self._data)

    @property
    def low(self) -> Array:
        """Lowest values of the constraints, (n_g,)."""
        return self.transcription.low * self.row_scale

    @property
    def high(self) -> Array:
        """Highest values of the constraints, (n_g,)."""
        return self.transcription.high * self.row_scale

    def function(self, name: str) -> int:
        """The address of a function: cost, gradient, constraints, jacobian, hessian."""
        return ctypes.cast(getattr(self.library, f"kg_{name}"), ctypes.c_void_p).value or 0

    # -- values, for checks and scales -------------------------------------------------------------------------

    def constraints(self, x: Array) -> Array:
        """The constraints at x, (n_g,); NaN where they have no value."""
        return self._call("constraints", x, self.n_g, self.n_g)

    def jacobian(self, x: Array) -> Array:
        """The values of the entries of `jacobian_pattern` at x."""
        return self._call("jacobian", x, len(self.jacobian_pattern.rows), self.n_g, len(self.jacobian_pattern.rows))

    def gradient(self, x: Array) -> Array:
        """The gradient of the cost at x, (n_x,)."""
        return self._call("gradient", x, self.n_x)

    def cost(self, x: Array) -> float:
        """The cost at x."""
        return float(self._call("cost", x, 1)[0])

    def values(self, x: Array, kind: str, group: str) -> Array:
        """The values of a group at all points of a kind, (n, size)."""
        (points,) = (each for each in self.transcription.points if each.functions.name == kind)
        self.constraints(x)
        known = np.ctypeslib.as_array(self._data.points[0], (max(self.transcription.n_values, 1),))
        found: Array = known[points.values(group)]
        return found

    def hessian(self, x: Array, factor: float, multipliers: Array) -> Array:
        """The values of the entries of `hessian_pattern` of the Hessian of the Lagrangian."""
        n, x, given = len(self.hessian_pattern.rows), np.ascontiguousarray(x), np.ascontiguousarray(multipliers)
        out = np.zeros(n)
        arguments = (self.n_x, _reals(x), ctypes.c_double(factor), self.n_g, _reals(given), n, _reals(out))
        if not self._function("hessian")(*arguments, ctypes.c_void_p(self.data)):
            out[:] = np.nan
        return out

    def _call(self, name: str, x: Array, size: int, *sizes: int) -> Array:
        out, x = np.zeros(size), np.ascontiguousarray(x, dtype=np.float64)
        if not self._function(name)(self.n_x, _reals(x), *sizes, _reals(out), ctypes.c_void_p(self.data)):
            out[:] = np.nan
        return out

    def _function(self, name: str) -> Any:
        function = getattr(self.library, f"kg_{name}")
        function.restype = ctypes.c_bool
        return function

    # -- the structure -------------------------------------------------------------------------------------------

    def _matrices(self) -> None:
        t, data = self.transcription, self._data
        factors = np.append(self.row_scale, 1.0)
        rows, columns, entries = t.linear
        linear = (rows, columns, entries * factors[rows] * self.scale[columns])
        curved = (t.curved[0], t.curved[1], t.curved[2] * factors[t.curved[0]])
        data.linear = self._sparse(*linear, self.n_g + 1, self.n_x)
        data.values = self._sparse(*curved, self.n_g + 1, t.n_values)
        data.weights = self._sparse(curved[1], curved[0], curved[2], t.n_values, self.n_g + 1)
        self._first_derivatives(linear, curved)
        self._second_derivatives()

    def _first_derivatives(self, linear: tuple[Any, ...], curved: tuple[Any, ...]) -> None:
        """The pattern of the Jacobian, and the matrices that give its values and the gradient of the cost."""
        from scipy.sparse import csr_array

        values, columns = _entries(self.transcription, "jacobian")
        used = np.flatnonzero(columns[:, 0] < self.n_x)
        # For each entry of the derivatives of points, those of the matrix V in the column of its value.
        V = csr_array((curved[2], (curved[1], curved[0])), shape=(self.transcription.n_values, self.n_g + 1))
        counts = np.diff(V.indptr)[values[used]]
        first = np.repeat(V.indptr[values[used]] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        at = first + np.arange(counts.sum())
        entry = np.repeat(used, counts)
        rows, column = V.indices[at].astype(np.int64), columns[entry, 0].astype(np.int64)
        factors = V.data[at] * self.scale[column]
        own = rows < self.n_g
        keys = np.unique(np.concatenate([rows[own] * self.n_x + column[own], linear[0] * self.n_x + linear[1]]))
        self.jacobian_pattern = Pattern(*divmod(keys, self.n_x))
        target = np.where(own, np.searchsorted(keys, rows * self.n_x + column), len(keys) + column)
        self._data.slopes = self._sparse(target, entry, factors, len(keys) + self.n_x, len(values))
        constants = np.zeros(len(keys) + self.n_x)
        np.add.at(constants, np.searchsorted(keys, linear[0] * self.n_x + linear[1]), linear[2])
        self._data.constants, self._data.n_jacobian = self._memory.reals(constants), len(keys)
        self._n_derivatives = len(values)

    def _second_derivatives(self) -> None:
        """The pattern of the Hessian of the Lagrangian, lower triangle, and the matrix that gives its values."""
        _, columns = _entries(self.transcription, "hessian")
        used = np.flatnonzero((columns < self.n_x).all(axis=1))
        pairs = columns[used].astype(np.int64)
        high, low = pairs.max(axis=1), pairs.min(axis=1)
        keys = np.unique(high * self.n_x + low)
        self.hessian_pattern = Pattern(*divmod(keys, self.n_x))
        factors = self.scale[high] * self.scale[low]
        target = np.searchsorted(keys, high * self.n_x + low)
        self._data.second = self._sparse(target, used, factors, len(keys), len(columns))
        self._n_second = len(columns)

    def _workspace(self, code: PointCode) -> None:
        t, data = self.transcription, self._data
        layout, (n_p, n_work) = t.layout, code.lengths
        data.n_x, data.n_g, data.n_known, data.order = self.n_x, self.n_g, len(layout.known), -1
        data.counts = self._memory.ints([len(points.arguments) for points in t.points])
        data.arguments = self._memory.ints(np.concatenate([points.arguments.ravel() for points in t.points]))
        data.parameters, data.scale = self._memory.ints(layout.parameters), self._memory.reals(self.scale)
        data.last, data.p, data.work = (self._memory.reals(np.zeros(n)) for n in (self.n_x, n_p, n_work))
        data.given = self._memory.reals(np.concatenate([np.zeros(self.n_x), layout.known]))
        longest = max(points.functions.n_arguments + points.functions.n_values for points in t.points)
        data.point = self._memory.reals(np.zeros(longest))
        data.rows, data.multipliers = (self._memory.reals(np.zeros(self.n_g + 1)) for _ in range(2))
        data.w = self._memory.reals(np.zeros(t.n_values))
        for order, size in enumerate((t.n_values, self._n_derivatives, self._n_second)):
            data.points[order] = self._memory.reals(np.zeros(max(size, 1)))
        data.derivatives = self._memory.reals(np.zeros(data.n_jacobian + self.n_x))

    def _sparse(self, rows: Any, columns: Any, values: Any, n_rows: int, n_columns: int) -> _Sparse:
        from scipy.sparse import csr_array

        matrix = csr_array((values, (rows, columns)), shape=(n_rows, n_columns))
        return _Sparse(
            n_rows, self._memory.ints(matrix.indptr), self._memory.ints(matrix.indices), self._memory.reals(matrix.data)
        )


def _reals(array: NDArray[np.float64]) -> Any:
    return array.ctypes.data_as(_REALS)


def _entries(transcription: Transcription, order: str) -> tuple[Integers, Integers]:
    """For the entries of the derivatives of all points: places of values (n,), and columns of variables (n, order)."""
    values, columns = [], []
    for points in transcription.points:
        places = np.array(getattr(points.functions, order), dtype=np.int64).reshape(-1, 2)
        of_points = points.columns(transcription.layout.parameters)
        n, n_values = len(points.arguments), points.functions.n_values
        first = points.first + np.arange(n)[:, None] * n_values
        values.append((first + places[:, 0]).ravel())
        which = places[:, 1:] if order == "jacobian" else places
        columns.append(of_points[:, which].reshape(-1, which.shape[1]))
    return np.concatenate(values), np.concatenate(columns)
