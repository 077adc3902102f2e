"""Normalization of the user's arguments to the form that the derivation reads. Problems are collected, not raised."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sympy
from sympy.physics.mechanics import Particle, Point, ReferenceFrame, RigidBody
from sympy.physics.vector import Vector, dynamicsymbols

from kanegen.errors import ModelError, brief
from kanegen.model.expressions import is_time_function, subexpressions, symbol_name
from kanegen.model.records import FrozenMapping, Loads, Output
from kanegen.units import Unit, Units, read_unit, require_pint


def expect(value: Any, kinds: Any, what: str, wanted: str, problems: list[str]) -> bool:
    """Whether a value is of one of these kinds; if not, a problem that ends with ``wanted`` is appended."""
    if not isinstance(value, kinds):
        problems.append(f"{what} is {brief(value)}: expected {wanted}")
    return isinstance(value, kinds)


def name(value: Any, what: str, problems: list[str]) -> str:
    """The name of a model."""
    if isinstance(value, str) and value:
        return value
    problems.append(f"{what} is {brief(value)}: expected a string that is not empty")
    return "model"


def frame(value: Any, what: str, problems: list[str]) -> Any:
    """The inertial frame; nothing else can be checked without it."""
    if not isinstance(value, ReferenceFrame):
        raise ModelError(f"{what} is {brief(value)}: expected the inertial sympy.physics.mechanics ReferenceFrame")
    return value


def scalar(value: Any, where: str, problems: list[str]) -> Any:
    """A SymPy expression from a number, an expression or an equation (``lhs - rhs``)."""
    try:
        expr = sympy.sympify(value, strict=True)
    except (sympy.SympifyError, TypeError, ValueError, AttributeError):  # ValueError: half a character (a surrogate)
        problems.append(f"{where} is {brief(value)}: expected a SymPy expression or a number")
        return sympy.S.Zero
    if expr is None:
        problems.append(f"{where} is None: expected a SymPy expression or a number")
        return sympy.S.Zero
    if isinstance(expr, sympy.Rational) and max(int(expr.p).bit_length(), int(expr.q).bit_length()) > 1023:
        problems.append(f"{where} is {brief(value)}: expected a number within the range of floating-point numbers")
        return sympy.S.Zero
    if isinstance(expr, sympy.Equality):
        expr = expr.lhs - expr.rhs
    if expr in (sympy.true, sympy.false):
        problems.append(
            f"{where} is {expr}, because SymPy evaluated an equation that is always or never satisfied: "
            "expected the expression that must be zero"
        )
        return sympy.S.Zero
    if not isinstance(expr, sympy.Expr) or expr.is_Matrix:
        problems.append(f"{where} is {brief(value)}: expected a scalar SymPy expression, found {type(value).__name__}")
        return sympy.S.Zero
    # Derivatives of expressions, such as Derivative(sin(q), t), are evaluated.
    parts = (part for part in subexpressions(expr) if isinstance(part, sympy.Derivative))
    derivatives = [part for part in parts if not is_time_function(part.expr)]
    return expr.xreplace({item: item.doit() for item in derivatives}) if derivatives else expr


def scalar_or_none(value: Any, where: str, problems: list[str]) -> Any:
    """A SymPy expression, or None."""
    return None if value is None else scalar(value, where, problems)


def sequence(value: Any, what: str, problems: list[str]) -> tuple[Any, ...]:
    """The entries of a list, tuple or matrix; a single expression counts as a list of one."""
    if value is None:
        return ()
    if isinstance(value, sympy.MatrixBase):
        return tuple(value.flat())
    if isinstance(value, sympy.Basic) and not isinstance(value, sympy.Tuple):
        return (value,)
    if isinstance(value, str | bytes) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0:
        problems.append(f"{what} is {brief(value)}: expected a list")
        return ()
    return tuple(value)


def is_sequence(value: Any) -> bool:
    """Whether a value has entries: a list, tuple or matrix, not a string or an expression."""
    is_scalar = isinstance(value, str | sympy.Expr) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0
    return isinstance(value, sympy.MatrixBase) or not is_scalar


def listed(value: Any) -> tuple[Any, ...]:
    """The entries of a sequence; anything else is the only entry."""
    return tuple(value) if is_sequence(value) else (value,)


def scalars(value: Any, what: str, problems: list[str]) -> tuple[Any, ...]:
    """The expressions of a list of expressions or equations; a number counts as a list of one, as expressions do."""
    items = sequence((value,) if isinstance(value, int | float) else value, what, problems)
    return tuple(scalar(item, f"{what}[{k}]", problems) for k, item in enumerate(items))


def time_functions(value: Any, what: str, problems: list[str]) -> tuple[Any, ...]:
    """The dynamic symbols of a list of coordinates or speeds."""
    items = sequence(value, what, problems)
    for k, item in enumerate(items):
        advice = "expected a dynamic symbol, dynamicsymbols('q')"
        if isinstance(item, sympy.Derivative):
            advice = "a derivative is not allowed here; name it: u = dynamicsymbols('u') with the kinematics q' - u"
        if not is_time_function(item):
            shown = item if isinstance(item, sympy.Basic) else brief(item)
            problems.append(f"{what}[{k}] is {shown}: {advice}")
    return tuple(filter(is_time_function, items))


def states(value: Any, what: str, problems: list[str]) -> FrozenMapping[Any, Any]:
    """Additional states with their rates, from a mapping; the key can be the symbol or its time derivative."""
    if not expect(value, Mapping | None, what, "a mapping from a dynamic symbol to its rate", problems):
        value = None
    rates: dict[Any, Any] = {}
    for key, rate in (value or {}).items():
        symbol = key.expr if isinstance(key, sympy.Derivative) and key.derivative_count == 1 else key
        if not is_time_function(symbol):
            problems.append(
                f"{what} has the key {brief(key)}: expected a state, dynamicsymbols('a'), or its derivative"
            )
            continue
        if rate is None:
            problems.append(f"{what}[{symbol_name(symbol)}] is None: give the rate of the state {symbol_name(symbol)}")
            rate = sympy.S.Zero
        if symbol in rates:
            problems.append(f"{what} gives two rates for {symbol_name(symbol)}: give one")
        rates[symbol] = scalar(rate, f"{what}[{symbol_name(symbol)}]", problems)
    return FrozenMapping(rates)


def kinematics(value: Any, what: str, problems: list[str]) -> tuple[Any, ...]:
    """Expressions that are zero, from such expressions, equations, or a mapping from q' to its expression."""
    if isinstance(value, Mapping):
        return tuple(
            scalar(rate, f"{what} key {symbol_name(rate)}", problems)
            - scalar(expr, f"{what}[{symbol_name(rate)}]", problems)
            for rate, expr in value.items()
        )
    return scalars(value, what, problems)


def bodies(value: Any, what: str, problems: list[str]) -> tuple[Any, ...]:
    """Particles and rigid bodies."""
    kinds, wanted = (Particle, RigidBody), "a sympy.physics.mechanics Particle or RigidBody"
    items = enumerate(sequence(value, what, problems))
    return tuple(item for k, item in items if expect(item, kinds, f"{what}[{k}]", wanted, problems))


def _is_zero(value: Any) -> bool:
    return isinstance(value, int | float | sympy.Expr) and bool(value == 0)


def loads(value: Any, what: str, problems: list[str]) -> Loads:
    """``(point, force)`` and ``(frame, torque)`` pairs from pairs, Force and Torque; zero vectors dropped."""
    pairs = []
    for k, item in enumerate(sequence(value, what, problems)):
        if not isinstance(item, tuple | list) or len(item) != 2:
            problems.append(f"{what}[{k}] is {brief(item)}: expected (point, force) or (frame, torque)")
            continue
        location, vector = item
        if isinstance(location, Particle | RigidBody):
            location = location.masscenter
        if not isinstance(location, Point | ReferenceFrame):
            problems.append(
                f"{what}[{k}] acts on {brief(location)}: expected a Point (force), a ReferenceFrame (torque) or a body"
            )
        elif not isinstance(vector, Vector) and not _is_zero(vector):
            problems.append(f"{what}[{k}] on {location} is {brief(vector)}: expected a Vector")
        elif isinstance(vector, Vector) and vector.args:
            pairs.append((location, vector))
    return tuple(pairs)


def vector_or_none(value: Any, what: str, problems: list[str]) -> Any:
    """A Vector, or None."""
    return value if expect(value, Vector | None, what, "a Vector, such as -g*N.z", problems) else None


def dependent_speeds(value: Any, what: str, problems: list[str]) -> tuple[Any, ...] | None:
    """Dynamic symbols, or None for a choice at run time."""
    return None if value is None else time_functions(value, what, problems)


def potential_energy(value: Any, of_bodies: Sequence[Any], with_gravity: bool, problems: list[str]) -> Any:
    """The given potential energy, else the sum of those set on the bodies, else None."""
    if value is not None:
        return scalar(value, "potential_energy", problems)
    energies = [body.potential_energy for body in of_bodies if body.potential_energy != 0]
    if energies and with_gravity:
        problems.append(
            "the bodies have a potential_energy and the model has gravity=, so the weights could count twice: give "
            "potential_energy= to the model, the part without gravity"
        )
    return sympy.Add(*energies) if energies else None


def named(value: Any, what: str, expected: str, problems: list[str]) -> Iterator[tuple[str, Any]]:
    """The entries of a mapping whose keys are names; None counts as an empty one."""
    if not expect(value, Mapping | None, what, f"a mapping from a name to {expected}", problems):
        value = None
    for name, item in (value or {}).items():
        if isinstance(name, str) and name:
            yield name, item
        else:
            problems.append(f"{what} has the name {brief(name)}: expected a string that is not empty")


def outputs(value: Any, what: str, problems: list[str]) -> FrozenMapping[str, Output]:
    """Named outputs from scalars, nested lists, matrices and ``(vector, frame)``."""
    return FrozenMapping(
        (name, Output(name, *_entries(item, f"{what}[{brief(name)}]", problems)))
        for name, item in named(value, what, "an expression", problems)
    )


def _entries(item: Any, where: str, problems: list[str]) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    if isinstance(item, Vector):
        problems.append(f"{where} is a Vector: expected (vector, frame), the frame in which it is measured")
        return (), (0,)
    if isinstance(item, Sequence) and not isinstance(item, str):
        if len(item) == 2 and isinstance(item[1], ReferenceFrame):
            return _components(item[0], item[1], where, problems), (3,)
        if not any(isinstance(row, Sequence | sympy.MatrixBase) for row in item):
            return scalars(item, where, problems), (len(item),)
        try:
            item = sympy.Matrix(item)
        except (ValueError, TypeError) as error:
            problems.append(f"{where} is not a matrix: {error}")
            return (), (0,)
    if isinstance(item, sympy.MatrixBase):
        return scalars(item, where, problems), (item.rows,) if item.cols == 1 else (item.rows, item.cols)
    return (scalar(item, where, problems),), ()


def _components(vector: Any, frame: Any, where: str, problems: list[str]) -> tuple[Any, ...]:
    try:
        if isinstance(vector, Vector):
            return tuple(vector.to_matrix(frame))
        problems.append(f"{where} is ({brief(vector)}, {frame}): expected (vector, frame)")
    except ValueError as error:
        problems.append(f"{where} cannot be measured in {frame}: {error}")
    return (sympy.S.Zero,) * 3


def parameter_values(
    given: Any, symbols: Sequence[Any], problems: list[str]
) -> tuple[dict[Any, float | None], tuple[Any, ...]]:
    """Values of all parameters, the given ones first; and the given symbols that are not in ``symbols``.

    A key is a symbol or its name; a value is a finite number, or None if it is given at run time.
    """
    if not expect(given, Mapping | None, "parameters", "a mapping from a symbol to its value", problems):
        given = None
    by_name = {symbol_name(symbol): symbol for symbol in symbols}
    values, unknown_symbols = dict[Any, float | None](), list[Any]()
    for key, value in (given or {}).items():
        symbol = by_name.get(key, key) if isinstance(key, str) else key
        if symbol not in by_name.values():
            unknown_symbols.append(symbol)
            continue
        if symbol in values:
            problems.append(f"parameter {symbol} is given twice, by its symbol and by its name: give it once")
        values[symbol] = number_or_none(value, f"the value of parameter {symbol_name(symbol)}", problems)
    return values | {symbol: None for symbol in symbols if symbol not in values}, tuple(unknown_symbols)


def initial_values(given: Any, symbols: Sequence[Any], problems: list[str]) -> FrozenMapping[Any, float]:
    """Values of time and of ``symbols`` at the start, by symbol; keys that are none of these are kept as they are.

    A key is a symbol or its name, ``"t"`` for time unless one of the symbols has this name.
    """
    if not expect(
        given, Mapping | None, "initial", "a mapping from coordinates, speeds, states and t to values", problems
    ):
        given = None
    by_name = {symbol_name(dynamicsymbols._t): dynamicsymbols._t} | {symbol_name(symbol): symbol for symbol in symbols}
    values = dict[Any, float]()
    for key, value in (given or {}).items():
        symbol = by_name.get(key, key) if isinstance(key, str) else key
        name = symbol_name(symbol)
        if symbol in values:
            problems.append(f"initial contains {name} twice, by its symbol and by its name: give it once")
        number = number_or_none(value, f"the initial value of {name}", problems)
        if value is None:
            problems.append(f"the initial value of {name} is None: give a number, or leave {name} out of initial")
        values[symbol] = math.nan if number is None else number
    return FrozenMapping(values)


def units(given: Any, what: str, problems: list[str]) -> Units:
    """Units by name. A key is a symbol or a name, a value a text that pint can read."""
    if not expect(given, Mapping | None, what, "a mapping from symbols or names to units", problems):
        given = None
    found = dict[str, Unit]()
    if not given or not require_pint(problems):
        return Units()
    for key, text in given.items():
        name = symbol_name(key)
        if name in found:
            problems.append(f"{what} contains {name} twice, by its symbol and by its name: give it once")
        unit = read_unit(text, f"the unit of {name}", problems)
        if unit is not None:
            found[name] = unit
    return Units(found)


def number_or_none(value: Any, what: str, problems: list[str]) -> float | None:
    """A finite number, or None."""
    try:
        number = None if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if number is None or math.isfinite(number):
        return number
    problems.append(f"{what} is {brief(value)}: expected a finite number or None")
    return None


def speed_definitions(speeds: tuple[Any, ...], given: Any, problems: list[str]) -> tuple[Any, ...]:
    """The definitions of new speeds in their order, from a list, equations or a mapping ``w: expression``."""
    if not isinstance(given, Mapping):
        items = sequence(given, "definitions", problems)
        if not items or not all(isinstance(item, sympy.Equality) for item in items):
            return scalars(items, "definitions", problems)
        given = {item.lhs: item.rhs for item in items}
    if set(given) != set(speeds):
        problems.append(
            f"definitions defines ({', '.join(map(str, given))}): expected a definition of each of the new speeds "
            f"({', '.join(map(str, speeds))})"
        )
    return scalars([given[speed] for speed in speeds if speed in given], "definitions", problems)
