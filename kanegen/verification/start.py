"""The states at which a model is verified: random ones around a start that the user may give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array, real_array
from kanegen.derivation import Equations
from kanegen.derivation.states import CONDITION, State, random_state, special_state
from kanegen.errors import SolveError, VerificationError, brief
from kanegen.model.expressions import symbol_name
from kanegen.solve.values import TIME, by_name, number, unknown

DRAWS: Final = 200
"""Largest number of random states drawn for each state that is requested."""

SPECIAL_PERIOD, SPECIAL_DRAWS = 3, 40
"""Every third state has zeros and right angles, unless so many draws give no regular one."""

START_KEYS: Final = ("t", "q", "u", "r", "s")


def draw_states(equations: Equations, count: int, seed: int, start: Mapping[str, Any] | None) -> tuple[State, ...]:
    """``count`` states; every second one is moved onto the constraint manifold if that succeeds.

    Raises
    ------
    VerificationError
        If fewer than ``count`` of many random states are regular.
    """
    rng = np.random.default_rng(seed)
    given = equations.model.parameters.values()
    parameters = np.array([rng.uniform(0.5, 1.5) if value is None else float(value) for value in given])
    near = _start(equations, start or {})
    drawn: list[State] = []
    tried = 0
    for _ in range(DRAWS * count):
        special = len(drawn) % SPECIAL_PERIOD == SPECIAL_PERIOD - 1 and tried < SPECIAL_DRAWS
        tried = tried + 1 if special else 0
        draw = special_state if special else random_state
        state = draw(equations, rng, parameters, near, consistent=len(drawn) % 2 == 0)
        if state is not None:
            drawn.append(state)
        if len(drawn) == count:
            return tuple(drawn)
    raise VerificationError(
        f"only {len(drawn)} of {count} random states of {equations.model.name!r} are regular (finite, condition number "
        f"below {CONDITION:g}, inside of splines); pass start=, a state in whose neighborhood the model is defined, or "
        "seed=, or check the model for redundant constraints and massless speeds"
    )


def _start(equations: Equations, start: Mapping[str, Any]) -> dict[str, Array]:
    """The start as arrays, completed by the initial values of the model; NaN where neither gives a value.

    Raises `VerificationError` for an unknown key, an unknown name, a wrong shape, and values that are not finite.
    """
    model = equations.model
    if not isinstance(start, Mapping):
        raise VerificationError(f"start is {brief(start)}; expected a mapping with the keys {', '.join(START_KEYS)}")
    symbols = {"q": model.coordinates, "u": model.speeds, "r": [item.symbol for item in model.inputs]}
    names = {key: tuple(map(symbol_name, own)) for key, own in {**symbols, "s": tuple(model.states)}.items()}
    known = {symbol_name(symbol): value for symbol, value in model.initial.items()}
    arrays = {key: np.array([known.get(name, np.nan) for name in own]) for key, own in names.items()}
    time = start.get("t", known.get(TIME))
    try:
        for key, value in start.items():
            if key not in START_KEYS:
                raise SolveError(unknown(str(key), START_KEYS, "entry of start"))
            if key != "t" and value is not None:
                _replace(arrays[key], value, f"start[{key!r}]", names[key])
        arrays |= {} if time is None else {"t": np.array(number(time, "start['t']"))}
    except SolveError as error:
        raise VerificationError(str(error)) from error
    return {key: array for key, array in arrays.items() if not np.isnan(array).all()}


def _replace(array: Array, value: Any, what: str, names: Sequence[str]) -> None:
    """Replace entries of ``array`` by those of ``value``, a mapping by name or (n,)."""
    if isinstance(value, Mapping):
        for name, x in by_name(value, names, f"entry of {what}").items():
            array[names.index(name)] = number(x, f"{what}[{name!r}]")
    else:
        given = real_array(value, what)
        if given.shape != array.shape or not np.isfinite(given).all():
            raise SolveError(f"{what} is {brief(value)}, expected {array.shape} finite numbers: {', '.join(names)}")
        array[:] = given
