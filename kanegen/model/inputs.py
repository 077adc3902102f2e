"""Inputs: functions of time whose values the caller supplies (controls, prescribed motions)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

import sympy
from sympy.core.function import AppliedUndef
from sympy.physics.vector import dynamicsymbols

from kanegen.errors import ModelError
from kanegen.model import normalize
from kanegen.model.expressions import atoms, is_time_function, symbol_name
from kanegen.model.records import settle


def _is_input_symbol(expr: Any) -> bool:
    """Whether ``expr`` is a symbol or dynamic symbol rather than an expression of time."""
    return is_time_function(expr) or (isinstance(expr, sympy.Symbol) and expr != dynamicsymbols._t)


@dataclass(frozen=True)
class Input:
    """An input ``r(t)``: a control, a prescribed motion, any value the caller supplies at run time.

    Parameters
    ----------
    symbol
        The SymPy symbol of the input: a :class:`~sympy.core.symbol.Symbol`, or one of
        :func:`~sympy.physics.vector.dynamicsymbols`.
    rate, acceleration
        First and second time derivative, needed if an equation is differentiated: the rate for an input in a velocity,
        a velocity constraint, an angle, a mass or an inertia; both for an input in a holonomic constraint or a
        position. Each is either a symbol, which becomes an input with its own entry of r, or a number or an expression
        of time and parameters (``acceleration`` can then be omitted, because it follows from the rate).
        ``r(t).diff(t)`` in an expression of the model means ``rate``.
    default
        Value used if none is given, in the unit of the input; ``None``: a value must be given.
    law
        Feedback law: an expression of t, q, q', u, states, parameters and inputs without a law, compiled with the
        equations. It gives the value of the input unless ``r=`` does. The ``rate`` of such an input can only be a
        symbol; its law is then the derivative of ``law``.
    saturation
        ``(lowest, highest)``, numbers or expressions of parameters, None for no limit; a number stands for
        ``(-number, number)``. The value is ``min(max(x, lowest), highest)``.
    dead_band
        Half-width w, a number or an expression of parameters: the value x of the law becomes 0 for ``|x| <= w``,
        ``x - w`` for ``x > w`` and ``x + w`` for ``x < -w``. ``saturation`` then limits the result.
    sample_time
        Time (s) between samples: the law is evaluated at the start of a run and at multiples of this time after it, and
        held in between. None: it is evaluated continuously.
    delay
        Time (s) after which a sample acts. Needs ``sample_time``; until the first sample acts, the input has its value.

    Raises
    ------
    ModelError
        If ``symbol`` is not a symbol, ``default`` is not a finite number, and for options that contradict each other.
    """

    symbol: Any
    rate: Any = None
    acceleration: Any = None
    default: float | None = None
    law: Any = None
    saturation: Any = None
    dead_band: Any = None
    sample_time: float | None = None
    delay: float | None = None

    def __post_init__(self) -> None:
        problems: list[str] = []
        symbol = normalize.scalar(self.symbol, "the symbol of an input", problems)
        if not problems and not _is_input_symbol(symbol):
            advice = " (for a derivative, give the rate as a separate symbol: Input(r, rate=r1))"
            wanted = "expected a Symbol or dynamicsymbols('r')" + advice * symbol.is_Derivative
            problems.append(f"{symbol} cannot be an input: {wanted}")
        derivatives = {"rate": self.rate, "acceleration": self.acceleration}.items()
        of = f"of input {symbol}"
        rates = {key: normalize.scalar(x, f"the {key} {of}", problems) for key, x in derivatives if x is not None}
        default = normalize.number_or_none(self.default, f"the default {of}", problems)
        fields = {
            "symbol": symbol,
            **rates,
            "default": default,
            **_law_fields(self, f" of input {symbol_name(symbol)}", problems),
        }
        settle(self, fields, problems)

    @property
    def name(self) -> str:
        """The printed name, ``"r"`` for ``r(t)``."""
        return symbol_name(self.symbol)

    @property
    def limits(self) -> dict[str, Any]:
        """The limits of the law that were given, by the names of messages."""
        low, high = self.saturation or (None, None)
        given = {"lowest value": low, "highest value": high, "dead band": self.dead_band}
        return {what: value for what, value in given.items() if value is not None}

    @property
    def value(self) -> Any:
        """The law with dead band and saturation."""
        value, (low, high) = self._beyond_dead_band, self.saturation or (None, None)
        value = value if low is None else sympy.Max(value, low, evaluate=False)
        return value if high is None else sympy.Min(value, high, evaluate=False)

    @property
    def _beyond_dead_band(self) -> Any:
        w = self.dead_band
        if w is None:
            return self.law
        return self.law - sympy.Max(sympy.Min(self.law, w, evaluate=False), -w, evaluate=False)

    @property
    def switches(self) -> dict[str, Any]:
        """The kinks of a continuous law: expressions that are zero there, by the names of the events that show them.

        These are the limits, the edges of the dead band, and the kinks of ``Abs``, ``Min`` and ``Max`` in the law.
        """
        if self.law is None or self.sample_time is not None:
            return {}
        low, high = self.saturation or (None, None)
        kinks = {f"kink of {function}": guard for function, guard in _kinks(self.law)}
        if self.dead_band is not None:
            kinks["lower edge of the dead band"] = self.law + self.dead_band
            kinks["upper edge of the dead band"] = self.law - self.dead_band
        limits = {"lowest value": low, "highest value": high}
        kinks |= {what: self._beyond_dead_band - x for what, x in limits.items() if x is not None}
        return {f"{self.name}: {what}": guard for what, guard in kinks.items()}


def _law_fields(item: Input, of: str, problems: list[str]) -> dict[str, Any]:
    """The normalized fields of the law of an input."""
    options = ("saturation", "dead_band", "sample_time", "delay")
    given = [name for name in options if getattr(item, name) is not None]
    if item.law is None:
        if given:
            problems.append(f"{', '.join(given)}{of} without a law: give law= as well, or leave {', '.join(given)} out")
        return {}
    if item.default is not None:
        problems.append(f"the value{of} is given by law= and by default=: leave one of them out")
    times = {name: normalize.number_or_none(getattr(item, name), f"{name}{of}", problems) for name in options[2:]}
    if times["sample_time"] is not None and not times["sample_time"] > 0.0:
        problems.append(f"sample_time{of} is {times['sample_time']!r}: expected a positive number of seconds")
    if times["delay"] is not None and not times["delay"] >= 0.0:
        problems.append(f"delay{of} is {times['delay']!r}: expected a number of seconds that is not negative")
    if times["delay"] and item.sample_time is None:
        problems.append(
            f"delay{of} is {times['delay']!r} s, but only sampled values can be delayed: give sample_time= as well"
        )
    band = None if item.dead_band is None else normalize.scalar(item.dead_band, f"dead_band{of}", problems)
    law = normalize.scalar(item.law, f"the law{of}", problems)
    return {"law": law, "saturation": _saturation(item.saturation, of, problems), "dead_band": band, **times}


def _saturation(value: Any, of: str, problems: list[str]) -> tuple[Any, Any] | None:
    if value is None:
        return None
    what = f"saturation{of}"
    if not normalize.is_sequence(value):
        limit = normalize.scalar(value, what, problems)
        return -limit, limit
    pair = normalize.listed(value)
    if len(pair) != 2:
        problems.append(f"{what} has {len(pair)} entries: expected (lowest, highest), None for no limit")
        return None
    low, high = (None if x is None else normalize.scalar(x, what, problems) for x in pair)
    return low, high


def _kinks(law: Any) -> Iterator[tuple[Any, Any]]:
    """The functions with kinks in a law, and the expressions that are zero at the kinks and change during a motion."""
    functions = sorted(law.atoms(sympy.Abs, sympy.Min, sympy.Max), key=sympy.default_sort_key)
    for function in functions:
        differences = [a - b for a, b in combinations(function.args, 2)] or list(function.args)
        for number, guard in enumerate(differences):
            if any(not symbol.is_Symbol for symbol in atoms((guard,))) or guard.has(dynamicsymbols._t):
                yield f"{function}" + f" ({number + 1})" * (len(differences) > 1), guard


def normalized_inputs(value: Any, what: str, problems: list[str]) -> tuple[Input, ...]:
    """All inputs in the order of r: those of the user, then their rates and accelerations that are symbols.

    In the result, ``rate`` and ``acceleration`` complete each other: the acceleration of an input is the rate of a
    rate that is itself an input, or the derivative of a rate that is an expression of time. If an input has a default,
    the default of its rate is 0.0, as for a constant. Problems are appended, not raised.
    """
    inputs: list[Input] = []
    for item in normalize.sequence(value, what, problems):
        try:
            inputs.append(item if isinstance(item, Input) else Input(item))
        except ModelError as error:
            problems.extend(error.problems)
    slots = {item.symbol: item for item in inputs}
    for item in inputs:
        default = None if item.default is None else 0.0
        if item.law is not None:
            _add_rates_of_law(item, slots, problems)
            continue
        for derivative, its_rate in ((item.rate, item.acceleration), (item.acceleration, None)):
            if not _is_input_symbol(derivative):
                continue
            slot = slots.setdefault(derivative, Input(derivative, default=default))
            if slot.rate is None and its_rate is not None:
                slots[derivative] = replace(slot, rate=its_rate)
    listed = [item.symbol for item in inputs]  # duplicates remain, so that a check reports them
    order = (*listed, *(symbol for symbol in slots if symbol not in listed))
    return tuple(_with_acceleration(slots[symbol], slots, problems) for symbol in order)


def _add_rates_of_law(item: Input, slots: dict[Any, Input], problems: list[str]) -> None:
    """Make the rate and the acceleration of an input with a law inputs whose laws are derivatives of this law."""
    law, symbol = item.law, item.symbol
    for what, derivative in (("rate", item.rate), ("acceleration", item.acceleration)):
        if derivative is None:
            return
        if not _is_input_symbol(derivative):
            problems.append(
                f"the {what} of input {item.name} is {derivative}, but its law determines it: expected a symbol"
            )
            return
        slot = slots.setdefault(derivative, Input(derivative))
        if given := [*item.limits, *(name for name in ("sample_time", "delay") if getattr(item, name) is not None)]:
            problems.append(
                f"input {item.name} has the {what} {symbol_name(derivative)}, but {', '.join(given)} leave no {what} "
                "where the value jumps or has a kink: remove them, or the terms that need the rate"
            )
            return
        if slot.law is not None or slot.default is not None:
            problems.append(
                f"{symbol_name(derivative)} is the {what} of input {item.name}, whose law determines it: leave its own "
                "law= or default= out"
            )
            return
        law = sympy.diff(law, dynamicsymbols._t)
        slots[derivative] = replace(slot, law=law)
        slots[symbol] = replace(slots[symbol], rate=derivative)
        symbol = derivative


def _with_acceleration(item: Input, slots: dict[Any, Input], problems: list[str]) -> Input:
    if item.rate is None:
        if item.acceleration is not None:
            problems.append(f"input {item.name} has an acceleration but no rate: give rate= as well")
        return item
    if _is_input_symbol(item.rate):
        follows = slots[item.rate].rate
    else:
        unknown_symbols = sorted(symbol_name(f) for f in item.rate.atoms(AppliedUndef))
        if unknown_symbols:
            problems.append(
                f"the rate of input {item.name} contains {', '.join(unknown_symbols)}: expected a separate symbol, "
                "a number, or an expression of time and parameters"
            )
            return item
        follows = sympy.diff(item.rate, dynamicsymbols._t)
    if item.acceleration is None:
        return replace(item, acceleration=follows)
    if follows is not None and follows != item.acceleration:
        problems.append(
            f"input {item.name} has acceleration {item.acceleration}, but its rate {item.rate} has the rate "
            f"{follows}: give one of the two"
        )
    return item


MULTIPLIER: Final = "lambda"
"""The multipliers of contact rows in names of derivatives."""

FORCES: Final = "forces"
"""The array of the multipliers of contact rows in programs."""

FREE: Final = "free"
"""The array of the free vector of servo-constraints in programs."""
