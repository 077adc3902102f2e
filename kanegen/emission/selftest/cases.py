"""The arguments at which emitted code is tested: the start of the model, and states around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from kanegen.arrays import Array
from kanegen.derivation import Equations
from kanegen.derivation.states import State, random_state
from kanegen.emission.selftest.expected import Arguments, Scalar
from kanegen.graph import reachable
from kanegen.program.records import Call, Function, Program
from kanegen.solve.values import TIME

MOST_CASES, FEWEST_CASES = 5, 2

WORK: Final = 40_000
"""Operations of all functions together that are evaluated with 50 digits, about half a second."""

SPREAD: Final = 0.5
"""Distance of the states from the start, relative to the one in :mod:`kanegen.derivation.states`."""

VARIATION: Final = 0.1
"""Largest relative change of a parameter."""

DRAWS: Final = 50
"""Number of random states for each case; if none is regular, the last one serves the functions that it can."""

KERNEL_WORK: Final = 2_000
"""Operations that take as much time as a call of a kernel."""


def arguments_of_cases(
    equations: Equations, program: Program, scalar: Scalar, start: Mapping[str, float], seed: int, gains: Array
) -> tuple[Arguments, ...]:
    """Arguments of the functions, as numbers of the ``scalar`` type: those of the start first.

    Every second state satisfies the constraints, as far as the scalar type allows. In all but the first, parameters
    differ from those of the model.

    Parameters
    ----------
    start
        Known values of the time ``t``, of coordinates, speeds, states, inputs and parameters, by name. Others are
        random.
    gains
        The gains of the stabilization, (n_g,).
    """
    rng = np.random.default_rng(seed)
    near, parameters = _near(equations, program, start)
    operations = sum(map(_work, program.functions))
    count = min(max(WORK // (operations + 1), FEWEST_CASES), MOST_CASES)
    states: list[State] = []
    for case in range(count):
        for draw in range(DRAWS):
            varied = parameters * (1.0 + VARIATION * rng.uniform(-1.0, 1.0, len(parameters)) * (case > 0))
            spread, regular = SPREAD if case else 0.0, draw < DRAWS - 1
            state = random_state(equations, rng, varied, near, case % 2 == 0, spread, regular)
            if state is not None:
                states.append(_with_forces(equations, state, rng) if case else state)
                break
    return tuple(_arguments(state, gains, scalar) for state in states)


def _work(function: Function) -> int:
    return len(reachable(function.roots)) + KERNEL_WORK * sum(isinstance(step, Call) for step in function.steps)


def _with_forces(equations: Equations, state: State, rng: np.random.Generator) -> State:
    """The state with random multipliers of contacts and values of the free vector, which hosts set."""
    system = equations.system
    multipliers = rng.uniform(0.2, 1.0, len(system.multipliers))
    return replace(state, multipliers=multipliers, free=rng.uniform(0.2, 1.0, len(system.free)))


def _near(equations: Equations, program: Program, start: Mapping[str, float]) -> tuple[dict[str, Array], Array]:
    """The start as arrays with NaN for what is not known, and the parameters, random where they are not known."""
    symbols = program.symbols
    rng = np.random.default_rng(0)

    def known(names: tuple[str, ...]) -> Array:
        return np.array([start.get(name, np.nan) for name in names], dtype=np.float64)

    near = {"q": known(symbols.coordinates), "u": known(symbols.speeds), "s": known(symbols.states)}
    near |= {"r": known(symbols.inputs), "t": np.array(start.get(TIME, 0.0))}
    parameters = known(symbols.parameters)
    return near, np.where(np.isnan(parameters), rng.uniform(0.5, 1.5, len(parameters)), parameters)


def _arguments(state: State, gains: Array, scalar: Scalar) -> Arguments:
    arrays = replace(state, gains=gains).values()
    return {name: [scalar.rounded(x) for x in array] for name, array in arrays.items()}
