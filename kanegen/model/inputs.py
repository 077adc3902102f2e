"""Inputs: functions of time whose values the caller supplies (controls, prescribed motions)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy
from sympy.core.function import AppliedUndef
from sympy.physics.vector import dynamicsymbols

from kanegen.errors import ModelError
from kanegen.model import normalize
from kanegen.model.expressions import is_time_function, symbol_name
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
        The SymPy symbol of the input: a ``Symbol`` or ``dynamicsymbols("r")``.
    rate, acceleration
        First and second time derivative, needed if an equation is differentiated: the rate for an input in a velocity,
        a velocity constraint, an angle, a mass or an inertia; both for an input in a holonomic constraint or a
        position. Each is either a symbol, which becomes an input with its own entry of r, or a number or an expression
        of time and parameters (``acceleration`` can then be omitted, because it follows from the rate).
        ``r(t).diff(t)`` in an expression of the model means ``rate``.
    default
        Value used if none is given, in the unit of the input; ``None``: a value must be given.

    Raises
    ------
    ModelError
        If ``symbol`` is not a symbol, or ``default`` is not a finite number.
    """

    symbol: Any
    rate: Any = None
    acceleration: Any = None
    default: float | None = None

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
        settle(self, {"symbol": symbol, **rates, "default": default}, problems)

    @property
    def name(self) -> str:
        """The printed name, ``"r"`` for ``r(t)``."""
        return symbol_name(self.symbol)


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
        for derivative, its_rate in ((item.rate, item.acceleration), (item.acceleration, None)):
            if not _is_input_symbol(derivative):
                continue
            slot = slots.setdefault(derivative, Input(derivative, default=default))
            if slot.rate is None and its_rate is not None:
                slots[derivative] = replace(slot, rate=its_rate)
    listed = [item.symbol for item in inputs]  # duplicates remain, so that a check reports them
    order = (*listed, *(symbol for symbol in slots if symbol not in listed))
    return tuple(_with_acceleration(slots[symbol], slots, problems) for symbol in order)


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


@dataclass(frozen=True)
class InputLayout:
    """The entries of the array ``r`` of compiled functions, in this order.

    First come the ``inputs`` of the user, (n_r,). The hidden inputs follow, which the runtime sets: the multipliers of
    the ``contact_rows``, the entries of the free vector y for the ``free_controls`` (the controls of servo-constraints
    whose y is given at run time), and the additional ``states`` of the model, (n_s,).
    """

    inputs: tuple[str, ...]
    contact_rows: tuple[str, ...] = ()
    free_controls: tuple[str, ...] = ()
    states: tuple[str, ...] = ()

    @property
    def hidden(self) -> tuple[str, ...]:
        """The names of the hidden inputs."""
        multipliers = (f"multiplier of {row}" for row in self.contact_rows)
        return (*multipliers, *(f"y {name}" for name in self.free_controls), *self.states)

    @property
    def size(self) -> int:
        """The number of all entries."""
        return len(self.inputs) + len(self.contact_rows) + len(self.free_controls) + len(self.states)

    @property
    def hidden_slots(self) -> slice:
        """The slots of the hidden inputs."""
        return slice(len(self.inputs), self.size)

    @property
    def multiplier_slots(self) -> slice:
        """The slots of the multipliers of the contact rows."""
        return slice(len(self.inputs), len(self.inputs) + len(self.contact_rows))

    @property
    def free_slots(self) -> slice:
        """The slots of the free vector."""
        return slice(self.multiplier_slots.stop, self.size - len(self.states))

    @property
    def state_slots(self) -> slice:
        """The slots of the additional states."""
        return slice(self.free_slots.stop, self.size)

    def array(self, inputs: Any = 0.0, multipliers: Any = 0.0, free: Any = 0.0, states: Any = 0.0) -> Any:
        """The array r with these values, a number for all entries of a part or one for each."""
        array = np.empty(self.size)
        array[: len(self.inputs)] = inputs
        array[self.multiplier_slots] = multipliers
        array[self.free_slots] = free
        array[self.state_slots] = states
        return array
