"""Tables: functions of expressions by points, for models."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Final

import numpy as np
import sympy

from kanegen.arrays import Array
from kanegen.errors import ModelError, brief
from kanegen.graph.fits import KINDS
from kanegen.graph.functions import (
    Domain,
    Spline,
    TableUnits,
    choice_problems,
    increase_problems,
    name_problems,
)
from kanegen.graph.grids import AXES, Composed, Grid, Points, grid_values

SURFACES: Final = ("cubic", "natural", "linear")
"""Kinds of tables of two arguments."""


class Table:
    """A function of one or two arguments by points, to be applied to expressions of a model.

    Parameters
    ----------
    x, y
        One argument: abscissae (n,), strictly increasing, and values (n,), at least 2 points. Two arguments: abscissae
        (n_x,) and (n_y,) of both.
    z
        Values (n_x, n_y) of a table of two arguments: ``z[i, j]`` at ``(x[i], y[j])``.
    kind
        ``"cubic"``: splines with continuous second derivatives, not-a-knot ends (SciPy's `CubicSpline`; with two
        arguments the tensor product). ``"natural"``: the same with second derivatives of zero at the ends.
        ``"monotone"`` (one argument): cubic pieces with continuous slopes that rise and fall with the points (SciPy's
        `PchipInterpolator`). ``"linear"``: kinks at the points.
    name
        Printed name; any string. Messages about arguments beyond the points contain it.
    extrapolate
        What the table and its derivatives are beyond the first and last abscissae: ``"error"``, nothing: evaluations
        raise an error and runs end there; ``"constant"``, the value at the end; ``"polynomial"``, the outer piece.
    units
        Units of the arguments and of the value, such as ``("rad", "mm")``, of which the dimensions are compared if the
        model has units. All numbers are in coherent SI units.
    parameters
        Whether the values are parameters of the model, named ``name_0``, ``name_1`` ... or ``name_0_0`` ..., which
        change without a new build. The model needs their values: ``parameters={**table.parameters, ...}``.

    Values can be SymPy expressions of parameters in place of numbers. They must not change during a run.

    Attributes
    ----------
    parameters : dict
        The symbols of the values with the given numbers; empty unless they are parameters.

    Raises
    ------
    ModelError
        For points that do not define a function: abscissae that do not increase, values that are not finite, arrays of
        other shapes, too few points.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        z: Any = None,
        kind: str = "cubic",
        name: str = "table",
        *,
        extrapolate: str = "error",
        units: Sequence[str] | None = None,
        parameters: bool = False,
    ) -> None:
        self.name, self.kind, self.extrapolate, self.units = name, kind, extrapolate, units
        self._what = f"kg.Table {brief(name)}"
        problems = name_problems("kg.Table", name)
        problems += choice_problems(self._what, kind, extrapolate, KINDS if z is None else SURFACES)
        axes = [x] if z is None else [x, y]
        self.knots = tuple(self._abscissae(axis, given, problems) for axis, given in zip(AXES, axes, strict=False))
        shape = tuple(map(len, self.knots))
        values = self._values(y if z is None else z, shape, problems)
        table_units = self._read_units(units, problems)
        if problems:
            raise ModelError(problems)
        self._values_given, self.parameters = self._parameters(values) if parameters else (values, {})
        self._function = self._made(table_units)

    # -- construction -----------------------------------------------------------------------------------------

    def _abscissae(self, axis: str, given: Any, problems: list[str]) -> Array:
        try:
            found = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            problems.append(f"{self._what}: {axis} must be an array of numbers ({error})")
            return np.zeros(0)
        if found.ndim != 1 or found.size < 2:
            problems.append(
                f"{self._what} has {axis} of shape {found.shape}: expected one dimension, at least 2 points"
            )
        elif not np.all(np.isfinite(found)):
            problems.append(f"{self._what} has {axis}[{int(np.argmin(np.isfinite(found)))}] that is not finite")
        else:
            problems += increase_problems(self._what, axis, found)
        return found

    def _values(self, given: Any, shape: tuple[int, ...], problems: list[str]) -> Any:
        """The values as an array of floats, or of expressions if one of them is no number."""
        axis = AXES[1] if len(shape) == 1 else "z"
        try:
            found = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            found = self._expressions(given, axis, error, problems)
        if found.shape != shape:
            problems.append(f"{self._what} has {axis} of shape {found.shape}: expected {shape}, that of the points")
        elif found.dtype != object and not np.all(np.isfinite(found)):
            place = np.unravel_index(np.argmin(np.isfinite(found)), found.shape)
            problems.append(f"{self._what} has {axis}[{', '.join(map(str, place))}] that is not finite")
        return found

    def _expressions(self, given: Any, axis: str, error: Exception, problems: list[str]) -> Any:
        found = np.array(given, dtype=object)
        try:
            result = [sympy.sympify(value, strict=True) for value in found.ravel()]
        except (sympy.SympifyError, TypeError):
            problems.append(f"{self._what}: {axis} must be an array of numbers or SymPy expressions ({error})")
            return found
        found = np.array([*result, None], dtype=object)[:-1].reshape(found.shape)
        wrong = [value for value in result if not isinstance(value, sympy.Expr) or value.is_finite is False]
        if wrong:
            problems.append(f"{self._what} has {axis} with {wrong[0]}: expected finite numbers or expressions")
        return found

    def _read_units(self, units: Any, problems: list[str]) -> TableUnits | None:
        if units is None:
            return None
        n = len(self.knots)
        texts = isinstance(units, Sequence) and not isinstance(units, str) and all(isinstance(x, str) for x in units)
        if not texts or len(units) != n + 1:
            problems.append(
                f"{self._what} has units={brief(units)}: expected {n + 1} units, of the argument{'s' * (n > 1)} and of "
                "the value"
            )
            return None
        return TableUnits(tuple(units[:-1]), ((units[-1], 1),))

    def _parameters(self, values: Any) -> tuple[Any, dict[Any, float]]:
        if values.dtype == object:
            raise ModelError(
                f"{self._what} has parameters=True and values that are expressions: give numbers, or leave "
                "out parameters="
            )
        symbols = np.empty(values.shape, dtype=object)
        for place in np.ndindex(values.shape):
            symbols[place] = sympy.Symbol(f"{self.name}_{'_'.join(map(str, place))}", real=True)
        return symbols, dict(zip(symbols.ravel(), values.ravel().tolist(), strict=True))

    def _made(self, units: TableUnits | None) -> Any:
        """What is applied to expressions."""
        knots, values = tuple(tuple(points.tolist()) for points in self.knots), self._values_given
        if values.dtype != object and len(knots) == 1:
            spline = Spline.through(self.knots[0], values, self.kind, self.name, self.extrapolate)
            spline.units = units
            return spline
        label = f"the table {self.name!r}"
        labels = (label,) if len(knots) == 1 else tuple(f"{label} in {axis}" for axis in AXES)
        ends = self.extrapolate == "error"
        domains = tuple(
            Domain(text, points[0], points[-1]) if ends else None for text, points in zip(labels, knots, strict=True)
        )
        given = None
        if values.dtype != object:
            x, y = knots
            given = tuple(map(tuple, grid_values(x, y, values.tolist(), self.kind)))
            if self.extrapolate != "constant":
                return Grid(self.name, knots, given, domains, units=units)
        named = bool(self.parameters)
        points = Points(self.name, knots, self.kind, self.extrapolate, domains, values.size, given, named)
        return Composed(points, units)

    # -- use ---------------------------------------------------------------------------------------------------

    @property
    def arity(self) -> int:
        """Number of arguments."""
        return len(self.knots)

    @property
    def values(self) -> Any:
        """The values: an array of numbers, or of symbols and expressions of parameters."""
        return self._values_given.copy()

    def __call__(self, *arguments: Any) -> Any:
        """The SymPy expression of the table applied to one or two SymPy expressions."""
        if len(arguments) != self.arity:
            raise TypeError(f"{self._what} has {self.arity} argument(s), not {len(arguments)}")
        return self._function(*arguments, *(self._values_given.ravel() if self._varies else ()))

    @property
    def _varies(self) -> bool:
        return bool(self._values_given.dtype == object)

    def python(self, *arguments: Any) -> Any:
        """The value at numbers or arrays, with the given values of parameters; beyond the points, a `SolveError`."""
        numbers: Iterable[Any] = ()
        if self._varies:
            numbers = [float(self.parameters.get(value, value)) for value in self._values_given.ravel()]
        return self._function.python(*arguments, *numbers)

    def assign(self, values: Any) -> dict[Any, float]:
        """New values of the parameters: ``solver.with_parameters(table.assign(values))``.

        Raises
        ------
        ModelError
            If the values are no parameters, or ``values`` has another shape or numbers that are not finite.
        """
        if not self.parameters:
            raise ModelError(f"{self._what} has values that are no parameters: give it parameters=True")
        problems: list[str] = []
        found = self._values(values, self._values_given.shape, problems)
        if found.dtype == object:
            problems.append(f"{self._what}: expected numbers as values of parameters")
        if problems:
            raise ModelError(problems)
        return dict(zip(self.parameters, found.ravel().tolist(), strict=True))

    def __repr__(self) -> str:
        size = " x ".join(str(len(points)) for points in self.knots)
        return f"<Table {self.name!r}: {size} points, {self.kind}>"

    # -- files and data frames ---------------------------------------------------------------------------------

    @classmethod
    def from_frame(cls, frame: Any, x: Any, y: Any, z: Any = None, **options: Any) -> Table:
        """A table from columns of a data frame or a mapping of arrays.

        Parameters
        ----------
        frame
            Anything with columns ``frame[name]``: a Pandas or Polars data frame, a dict of arrays.
        x, y, z
            Names of columns. With ``z``, each row is a point (x, y, z); the rows, in any order, are a full grid.
        **options
            Those of :class:`Table`; ``name`` is that of the column of values by default.
        """
        names = (x, y) if z is None else (x, y, z)
        try:
            columns = [np.asarray(frame[name], dtype=np.float64) for name in names]
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise ModelError(f"kg.Table.from_frame: {type(error).__name__}: {error}") from error
        options.setdefault("name", str(names[-1]))
        return cls(*(columns if z is None else _grid_of(*columns)), **options)

    @classmethod
    def from_csv(
        cls, path: str | PathLike[str], x: str, y: str, z: str | None = None, *, delimiter: str = ",", **options: Any
    ) -> Table:
        """A table from columns of a text file, whose first line has the names of the columns; see :meth:`from_frame`.

        Raises
        ------
        ModelError
            If the file lacks a column, or has text that is no number in one of them; with its line.
        """
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file, delimiter=delimiter, skipinitialspace=True)
            names = [name for name in (x, y, z) if name is not None]
            missing = [name for name in names if name not in (rows.fieldnames or ())]
            if missing:
                raise ModelError(f"{path} has no column {missing[0]!r}; its columns are {list(rows.fieldnames or ())}")
            columns: Mapping[str, list[float]] = {name: [] for name in names}
            for row in rows:
                for name in names:
                    columns[name].append(_number(row[name], f"{path}, line {rows.line_num}, column {name!r}"))
        return cls.from_frame(columns, x, y, z, **options)


def _number(text: str | None, where: str) -> float:
    try:
        return float(text or "")
    except ValueError:
        raise ModelError(f"{where}: {text!r} is no number") from None


def _grid_of(x: Array, y: Array, z: Array) -> tuple[Array, Array, Array]:
    """The axes and values of a grid, from its points in any order."""
    (rows, i), (columns, j) = (np.unique(values, return_inverse=True) for values in (x, y))
    size = rows.size * columns.size
    if x.size != size or len({*zip(i.tolist(), j.tolist(), strict=True)}) != size:
        raise ModelError(
            f"kg.Table.from_frame: {x.size} points with {rows.size} values of x and {columns.size} of y are no full "
            "grid, in which each x occurs with each y once"
        )
    values = np.empty((rows.size, columns.size))
    values[i, j] = z
    return rows, columns, values
