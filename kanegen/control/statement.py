"""What the user states of a problem, checked: unknowns, bounds and conditions, in the order of the model's arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import sympy

from kanegen.arrays import Array
from kanegen.control.costs import Cost, read_cost, require_terms
from kanegen.control.schemes import Scheme
from kanegen.control.terms import Duration, expression, inside, momentary, times_of
from kanegen.errors import SolveError, brief, warn_user
from kanegen.model import Model
from kanegen.model.expressions import atoms, symbol_name
from kanegen.solve.values import key_name, known_name, number, require_none, unknown

Interval = tuple[float, float]
"""The lowest and the highest value; equal if the value is given."""

FREE: Final[Interval] = (-math.inf, math.inf)


@dataclass(frozen=True)
class Condition:
    """Bounds ``low`` and ``high`` of an expression of the model."""

    expression: Any
    low: float
    high: float

    @property
    def text(self) -> str:
        """The condition as messages show it."""
        shown = str(self.expression).replace("(t)", "")
        return f"{shown} = {self.low:g}" if self.low == self.high else f"{self.low:g} <= {shown} <= {self.high:g}"


@dataclass(frozen=True, eq=False)
class Ends:
    """The conditions at the start or at the end: bounds of each of y, (n_y, 2), and of expressions."""

    bounds: Array
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, eq=False)
class Statement:
    """A problem of optimal control of ``model``.

    ``components``: the names of y = (q, u, s, inputs that have rates); ``rated``: indices of these inputs. ``bounds``
    (n_y, 2) of y along the motion. ``inputs``: indices of the inputs that are unknown, with ``input_bounds`` (n, 2);
    ``held`` (n_r,): the values of the others. ``values``: of the parameters; ``parameters``: indices of those that are
    unknown, with ``parameter_bounds`` (n, 2). ``constants``: values of symbols of the problem that the model does not
    have.
    """

    model: Model
    cost: Cost
    duration: Interval
    start: Ends
    end: Ends
    bounds: Array
    path: tuple[Condition, ...]
    coupled: tuple[Condition, ...]
    inputs: tuple[int, ...]
    input_bounds: Array
    held: Array
    values: Array
    parameters: tuple[int, ...]
    parameter_bounds: Array
    scheme: Scheme
    constants: Mapping[Any, float] = field(default_factory=dict)

    @property
    def components(self) -> tuple[str, ...]:
        """The names of y."""
        return components(self.model)

    @property
    def rated(self) -> tuple[int, ...]:
        """Indices of the inputs that have rates: they are continuous, as states are."""
        return rated(self.model)

    @property
    def n_state(self) -> int:
        """The number of coordinates, speeds and states."""
        return len(self.model.coordinates) + len(self.model.speeds) + len(self.model.states)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the unknown inputs."""
        return tuple(self.model.inputs[k].name for k in self.inputs)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the unknown parameters."""
        names = [str(symbol) for symbol in self.model.parameters]
        return tuple(names[k] for k in self.parameters)

    @property
    def times(self) -> tuple[float, ...]:
        """The times inside the motion at which conditions and the cost have values, ascending, s."""
        return times_of((self.cost.rest, *(condition.expression for condition in self.coupled)))

    @property
    def moments(self) -> Array:
        """The times inside the motion at which states are needed, ascending, as fractions of the duration."""
        sampled = [each.samples.times for each in self.cost.sampled]
        found: Array = np.unique(np.concatenate([np.array(self.times), *sampled]))
        return found / self.duration[0]

    @property
    def is_timed(self) -> bool:
        """Whether the duration is unknown."""
        return self.duration[0] != self.duration[1]


def components(model: Model) -> tuple[str, ...]:
    """The names of y = (q, u, s, inputs that have rates)."""
    own = map(symbol_name, (*model.coordinates, *model.speeds, *model.states))
    return (*own, *(model.inputs[k].name for k in rated(model)))


def rated(model: Model) -> tuple[int, ...]:
    """Indices of the inputs that have rates."""
    return tuple(k for k, item in enumerate(model.inputs) if item.rate is not None)


def state(
    model: Any,
    minimize: Any,
    duration: Any,
    start: Any,
    end: Any,
    bounds: Any,
    path: Any,
    subject_to: Any,
    parameters: Any,
    scheme: Scheme,
) -> Statement:
    """The checked problem; the arguments are those of `OptimalControl`. Raises `SolveError`."""
    require_smooth(model)
    span = _duration(duration)
    constants, parameters = _constants(model, parameters, (minimize, *_expressions(start, end, path, subject_to)))
    symbols = (*model.parameters, *constants)
    names = dict.fromkeys((*components(model), *(item.name for item in model.inputs)))
    named = _named(bounds, tuple(names), "bounds")
    inputs, held = _inputs(model, named)
    free, parameter_bounds, values = _parameters(model, parameters)
    cost = read_cost(minimize, frozenset(symbols))
    of_path, coupled = _conditions(path, "path", momentary), _conditions(subject_to, "subject_to", expression)
    for condition in coupled:
        require_terms(condition.expression, frozenset(symbols), "subject_to")
    of_components = np.array([named.get(name, FREE) for name in components(model)]).reshape(-1, 2)
    input_bounds = np.array([named.get(model.inputs[k].name, FREE) for k in inputs]).reshape(-1, 2)
    first, last = _ends(model, start, "start", of_components), _ends(model, end, "end", of_components)
    conditions = (*of_path, *first.conditions, *last.conditions)
    momentary_ones = [x for each in (cost.rest, *(c.expression for c in coupled)) for x in inside(each)]
    require_known(model, [cost.integrand, *(c.expression for c in conditions), *momentary_ones], constants)
    for each in cost.sampled:
        require_known(model, [each.expression], (*each.samples.symbols, *constants))
    if cost.rest.has(Duration) and span[0] == span[1] and cost.integrand == 0:
        raise SolveError(f"minimize is a function of kg.Duration, but duration={span[0]:g} is given: give (low, high)")
    found = Statement(
        model, cost, span, first, last, of_components, of_path, coupled, inputs, input_bounds, held, values, free,
        parameter_bounds, scheme, constants,
    )  # fmt: skip
    _warn_unbounded(found)
    return found


def require_smooth(model: Any) -> None:
    """Raise `SolveError` for what is no model whose motions are smooth functions of the inputs."""
    if not isinstance(model, Model):
        raise SolveError(f"the model is {brief(model)}; expected a kanegen.Model")
    reason = None
    if model.resolved_contacts:
        names = ", ".join(contact.name for contact in model.resolved_contacts)
        reason = (
            f"contacts ({names}): use smooth forces as loads, or one model for each mode of the contacts, with closed "
            "contacts as constraints, in kanegen.Phases"
        )
    elif model.events:
        reason = "events: remove them, or give the motions between them to kanegen.Phases"
    elif model.control is not None:
        reason = "controls that follow from constraints: remove control=, and give the controls as inputs"
    elif laws := [item.name for item in model.inputs if item.law is not None]:
        reason = f"inputs with feedback laws ({', '.join(laws)}): remove the laws"
    if reason:
        raise SolveError(f"optimal control of {model.name!r}: the model has {reason}")


def interval(value: Any, what: str) -> Interval:
    """A number, or a pair (low, high), None for no bound. Raises `SolveError`."""
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
        given = number(value, what)
        return given, given
    if len(value) != 2:
        raise SolveError(f"{what} is {brief(value)}; expected a number, or a pair (low, high)")
    low, high = (_bound(x, sign, what) for x, sign in zip(value, (-1.0, 1.0), strict=True))
    if low > high:
        raise SolveError(
            f"{what} has the bounds {low:g} and {high:g}, and the first is larger: no value satisfies them"
        )
    return low, high


def _bound(value: Any, sign: float, what: str) -> float:
    if value is None:
        return sign * math.inf
    try:
        bound = math.nan if isinstance(value, str | bytes | bool) else float(value)
    except (TypeError, ValueError):
        bound = math.nan
    if math.isnan(bound) or bound == -sign * math.inf:
        raise SolveError(f"a bound of {what} is {brief(value)}; expected a number, or None for no bound")
    return bound


def _duration(given: Any) -> Interval:
    low, high = interval(given, "duration")
    if not low > 0.0:
        raise SolveError(f"duration is {brief(given)}; expected a positive time in s, or (low, high) with 0 < low")
    return low, high


def _named(given: Any, known: Sequence[str], what: str) -> dict[str, Interval]:
    """Intervals by name."""
    if given is not None and not isinstance(given, Mapping):
        raise SolveError(f"{what} is {brief(given)}; expected a mapping from names or symbols to (low, high)")
    found: dict[str, Interval] = {}
    for key, value in (given or {}).items():
        name = known_name(key, known, f"variable of the model for {what}=")
        if name in found:
            raise SolveError(f"{what} contains {name!r} twice, by name and by symbol")
        found[name] = interval(value, f"{name} in {what}")
    return found


def _inputs(model: Model, named: Mapping[str, Interval]) -> tuple[tuple[int, ...], Array]:
    """The unknown inputs, those with bounds or without a default, and the values of the others."""
    free = (k for k, item in enumerate(model.inputs) if item.name in named or item.default is None)
    unknown_ones = [k for k in free if k not in rated(model)]
    held = np.array([0.0 if item.default is None else float(item.default) for item in model.inputs])
    return tuple(unknown_ones), held


def _expressions(start: Any, end: Any, *conditions: Any) -> list[Any]:
    """The SymPy expressions among what the user states, of which some may be no conditions at all."""
    keys = [key for given in (start, end) if isinstance(given, Mapping) for key in given]
    rows = [row for given in conditions if isinstance(given, Iterable) for row in given]
    return [*keys, *(row[0] for row in rows if isinstance(row, tuple) and row)]


def _constants(model: Model, given: Any, expressions: Iterable[Any]) -> tuple[dict[Any, float], Any]:
    """Values of symbols that are in the expressions and not in the model, and what else is given of parameters."""
    if not isinstance(given, Mapping):
        return {}, given
    own = set(map(str, model.parameters))
    used = atoms(x for x in expressions if isinstance(x, sympy.Basic))
    found = {str(x): x for x in used if isinstance(x, sympy.Symbol) and x != Duration and str(x) not in own}
    constants: dict[Any, float] = {}
    for key, value in given.items():
        symbol = found.get(key_name(key))
        if symbol is not None:
            low, high = interval(value, f"{symbol} in parameters")
            if low != high:
                raise SolveError(f"{symbol} in parameters is no parameter of the model; expected a number, its value")
            constants[symbol] = low
    names = set(map(str, constants))
    return constants, {key: value for key, value in given.items() if key_name(key) not in names}


def _parameters(model: Model, given: Any) -> tuple[tuple[int, ...], Array, Array]:
    names = [str(symbol) for symbol in model.parameters]
    named = _named(given, names, "parameters")
    values = np.array([math.nan if x is None else float(x) for x in model.parameters.values()])
    for name, (low, high) in named.items():
        if low == high:
            values[names.index(name)] = low
    free = tuple(k for k, name in enumerate(names) if name in named and named[name][0] != named[name][1])
    missing = [name for k, name in enumerate(names) if math.isnan(values[k]) and k not in free]
    require_none([f"the parameter {name} has no value: parameters={{{name!r}: ...}}" for name in missing])
    return free, np.array([named[names[k]] for k in free]).reshape(-1, 2), values


def _conditions(given: Any, what: str, read: Callable[[Any, str], Any]) -> tuple[Condition, ...]:
    if not isinstance(given, Iterable) or isinstance(given, str | Mapping):
        raise SolveError(f"{what} is {brief(given)}; expected tuples (expression, low, high)")
    found = []
    for k, each in enumerate(given):
        if not isinstance(each, tuple) or len(each) != 3:
            raise SolveError(f"{what}[{k}] is {brief(each)}; expected a tuple (expression, low, high)")
        low, high = interval(each[1:], f"{what}[{k}]")
        found.append(Condition(read(each[0], f"{what}[{k}]"), low, high))
    return tuple(found)


def _ends(model: Model, given: Any, what: str, bounds: Array) -> Ends:
    """Conditions at an end; those of single components become bounds, which those along the motion must allow."""
    if given is not None and not isinstance(given, Mapping):
        raise SolveError(f"{what} is {brief(given)}; expected a mapping from names or expressions to values")
    names, own, conditions = components(model), bounds.copy(), []
    problems: list[str] = []
    for key, value in (given or {}).items():
        if isinstance(key, str) or symbol_name(key) in names:
            name = known_name(key, names, f"coordinate, speed or state for {what}=")
            low, high = interval(value, f"{name} in {what}")
            k = names.index(name)
            lowest, highest = max(low, own[k, 0]), min(high, own[k, 1])
            if lowest > highest:
                problems.append(
                    f"{what}: {Condition(sympy.Symbol(name), low, high).text} contradicts the bounds "
                    f"[{own[k, 0]:g}, {own[k, 1]:g}] of {name}"
                )
            own[k] = lowest, highest
        else:
            low, high = interval(value, f"{key} in {what}")
            conditions.append(Condition(momentary(key, f"a key of {what}"), low, high))
    require_none(problems)
    return Ends(own, tuple(conditions))


def require_known(model: Model, expressions: Iterable[Any], data: Iterable[Any] = ()) -> None:
    """Raise `SolveError` for symbols that the model does not have, and that are no ``data``."""
    symbols = (*model.coordinates, *model.speeds, *model.states, *model.parameters)
    known = {*symbols, *(item.symbol for item in model.inputs)}
    rates = {x.diff() for x in (*model.coordinates, *model.speeds)}
    for symbol in sorted(atoms(expressions) - known - rates - set(data), key=str):
        names = tuple(map(symbol_name, known))
        raise SolveError(f"the problem: {unknown(symbol_name(symbol), names, 'symbol of the model')}")


def _warn_unbounded(statement: Statement) -> None:
    """Warn of motions in least time whose inputs can be arbitrarily large."""
    loose = [
        name
        for name, (low, high) in zip(statement.input_names, statement.input_bounds, strict=True)
        if math.isinf(low) or math.isinf(high)
    ]
    if loose and statement.cost.rest.has(Duration) and statement.cost.integrand == 0 and not statement.path:
        warn_user(
            f"the duration is minimized, and the inputs {', '.join(loose)} have no bounds: if they can be arbitrarily "
            "large, there is no shortest motion. Give bounds={...}"
        )
