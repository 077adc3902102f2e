"""Designs: the values of parameters, coordinates, speeds, states and inputs for each member of a sweep."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array, real_array
from kanegen.codegen.description import Description
from kanegen.errors import SolveError, brief
from kanegen.model.records import FrozenMapping
from kanegen.solve.values import (
    by_name,
    key_name,
    names_in,
    number,
    positive_integer,
    require_none,
    unknown,
    with_keywords,
)

SAMPLERS: Final = {
    "latin_hypercube": "LatinHypercube",
    "sobol": "Sobol",
    "halton": "Halton",
    "random": None,
}
"""Methods of `sample`, and the classes of ``scipy.stats.qmc`` that draw the points."""


class Design(Mapping[str, Array]):
    """Values by name, one for each member of a sweep: read-only arrays (N,).

    ``members`` is N. ``axes``, for a grid, maps the names to their values along the axes, (n_1,), (n_2,) ...; the
    members are in row-major order, the last axis fastest. None for other designs.

    Raises
    ------
    SolveError
        For values that are no real numbers, arrays of other than one dimension, and unequal lengths.
    """

    def __init__(self, values: Mapping[Any, Any], axes: Mapping[str, Array] | None = None) -> None:
        self._values = {name: _column(name, value) for name, value in _named(values).items()}
        lengths = {name: array.size for name, array in self._values.items()}
        if len(set(lengths.values())) > 1:
            have = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise SolveError(f"the arrays of a design have unequal lengths: {have}; expected one value for each member")
        self.members: int = next(iter(lengths.values()))
        self.axes = None if axes is None else FrozenMapping(axes)

    def __getitem__(self, name: Any) -> Array:
        return self._values[key_name(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        shape = "" if self.axes is None else f", grid {' x '.join(str(axis.size) for axis in self.axes.values())}"
        return f"<Design: {self.members} members{shape}; {', '.join(self)}>"


def grid(values: Mapping[Any, Any] | None = None, /, **named: Any) -> Design:
    """All combinations of values: ``kg.grid(v=np.linspace(0, 10, 41), c=[0.04, 0.08])`` has 82 members.

    Parameters
    ----------
    values, named
        Values along each axis, (n_k,), by name or symbol; keywords follow the mapping.

    Returns
    -------
    Design
        With N = n_1 n_2 ... members in row-major order (the last axis fastest), and its ``axes``.

    Raises
    ------
    SolveError
        For values that are no real numbers, empty axes, and names that are given twice.
    """
    axes = {
        name: _column(name, value, "(n,), the values along this axis") for name, value in _merged(values, named).items()
    }
    corners = np.meshgrid(*axes.values(), indexing="ij")
    return Design({name: array.ravel() for name, array in zip(axes, corners, strict=True)}, axes)


def sample(
    ranges: Mapping[Any, Any] | None = None,
    /,
    *,
    n: int,
    method: str = "latin_hypercube",
    seed: Any = 0,
    **named: Any,
) -> Design:
    """Points that fill a box or follow distributions, drawn by :mod:`scipy.stats.qmc`.

    Parameters
    ----------
    ranges, named
        By name or symbol: ``(lowest, highest)`` for a uniform distribution, or a distribution of ``scipy.stats`` with
        its parameters (an object with ``ppf``), for example ``norm(1.0, 0.1)`` of :data:`scipy.stats.norm`. Names that
        are arguments of this function can be given in the mapping only.
    n
        The number of members.
    method
        ``"latin_hypercube"``, ``"sobol"`` (balanced for powers of two; SciPy warns for other ``n``), ``"halton"``, all
        three scrambled, or ``"random"``, independent points.
    seed
        As for :func:`numpy.random.default_rng`. The same seed gives the same design, so that a sweep can be resumed;
        None gives another one in each call.

    Returns
    -------
    Design
        With ``n`` members.

    Raises
    ------
    SolveError
        For unknown methods, invalid ranges, and ``n`` that is no positive integer.
    """
    if method not in SAMPLERS:
        raise SolveError(f"method is {brief(method)}; expected {', '.join(SAMPLERS)}")
    count = positive_integer(n, "n", "a positive integer, the number of members")
    if not (ranges or named):
        raise SolveError("there is no range; give NAME=(lowest, highest), or NAME= a distribution of scipy.stats")
    quantiles = {name: _quantile(name, given) for name, given in _merged(ranges, named).items()}
    points = _points(method, len(quantiles), count, seed)
    return Design({name: quantile(points[:, k]) for k, (name, quantile) in enumerate(quantiles.items())})


def design_of(given: Any, d: Description, extra: Any) -> Design:
    """The design of a sweep of a model. ``extra``: names that the model does not have.

    Raises `SolveError` for unknown names and for what `Design` refuses.
    """
    names = set(names_in(extra, "extra"))
    known = (*d.parameters, *d.coordinates, *d.speeds, *d.states, *d.inputs)
    design = given if isinstance(given, Design) else Design(given)
    what = "parameter, coordinate, speed, state or input"
    advice = "; name it in extra= if it is a value that only the task= reads"
    require_none([unknown(name, known, what) for name in design if name not in known and name not in names], "", advice)
    require_none([f"{name!r} in extra= is not in the design" for name in sorted(names) if name not in design])
    return design


def _named(values: Any) -> dict[str, Any]:
    if not isinstance(values, Mapping) or not values:
        raise SolveError(f"the design is {brief(values)}; expected a mapping from names or symbols to arrays (N,)")
    return by_name(values, [key_name(key) for key in values], "name")


def _merged(values: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    first = {} if values is None else _named(values)
    return _named(with_keywords(first, named))


def _column(name: str, value: Any, expected: str = "(N,), one value for each member") -> Array:
    """A read-only copy of the values of one name."""
    array = real_array(value, name).copy()
    if array.ndim != 1 or not array.size:
        raise SolveError(f"{name} has shape {array.shape}; expected {expected}")
    array.flags.writeable = False
    return array


def _quantile(name: str, given: Any) -> Callable[[Array], Array]:
    """The function that maps a number between 0 and 1 to a value of the distribution."""
    if hasattr(given, "ppf"):
        return lambda points: np.asarray(given.ppf(points), dtype=np.float64)
    try:
        low, high = given
    except (TypeError, ValueError) as error:
        raise SolveError(
            f"the range of {name} is {brief(given)}; expected (lowest, highest) or a distribution of scipy.stats"
        ) from error
    a, b = number(low, f"the lowest {name}"), number(high, f"the highest {name}")
    if not a < b:
        raise SolveError(f"the range of {name} is {brief(given)}; expected the lowest value first, then a larger one")
    return lambda points: a + (b - a) * points


def _points(method: str, dimensions: int, n: int, seed: Any) -> Array:
    """Points (n, dimensions) in the unit cube."""
    from scipy.stats import qmc

    try:
        generator = np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise SolveError(f"seed is {brief(seed)}; expected what numpy.random.default_rng takes") from error
    if SAMPLERS[method] is None:
        return generator.random((n, dimensions))
    sampler = getattr(qmc, str(SAMPLERS[method]))
    # SciPy 1.15 renamed the argument.
    name = "rng" if "rng" in inspect.signature(sampler.__init__).parameters else "seed"
    return np.asarray(sampler(dimensions, **{name: generator}).random(n), dtype=np.float64)
