"""Every idiom of sympy.physics.mechanics in the corpus against the equations SymPy forms from the same objects."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from idioms import IDIOMS, THEMES, Idiom
from kane_reference import TIME, KaneReference, State, input_values
from scipy.integrate import solve_ivp
from sympy.physics.mechanics import System
from tolerances import FINE_INTEGRATION, SAME_EQUATIONS

import kanegen as kg
from kanegen.graph import evaluate

RUN = [idiom.name for idiom in IDIOMS.values() if idiom.run is not None]
STATES = 2
INPUT = 0.3
"""The value of every input of the models that are integrated."""


def read(idiom: Idiom) -> tuple[dict[str, kg.Model], Any]:
    """The models by the way they are read, and the KanesMethod whose equations are formed."""
    with sympys_warnings():
        made = idiom.build()
    if not isinstance(made, System):
        models = {"from_kane": kg.Model.from_kane(made, **idiom.options)}
        if made._fr is None:
            made.kanes_equations()
        return models, made
    models = {"from_system": kg.Model.from_system(made, **idiom.options)}
    with sympys_warnings():
        made.form_eoms()
    models["from_kane"] = kg.Model.from_kane(made.eom_method, **idiom.options)
    return models, made.eom_method


@contextmanager
def sympys_warnings() -> Iterator[None]:
    """What SymPy warns of in the user's script; in what kanegen does, a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", IDIOMS)
def test_equations_are_those_of_sympy(name: str) -> None:
    models, km = read(IDIOMS[name])
    reference = KaneReference(km)
    rhs = {how: interpreted(model) for how, model in models.items()}
    for state in reference.states(STATES, seed=len(name)):
        for how in models:
            qdot, udot = rhs[how](state, reference)
            assert reference.kinematic_deviation(state, qdot) < SAME_EQUATIONS, how
            assert reference.deviation(state, udot) < SAME_EQUATIONS, how


def interpreted(model: kg.Model) -> Callable[[State, KaneReference], tuple[np.ndarray, np.ndarray]]:
    """q' and u' from ``T u' = V``, evaluated on the graph without a compiler."""
    equations = kg.derive(model)
    n = len(model.speeds)
    nodes = [*equations.T.nodes, *equations.V.nodes, *equations.qdot.nodes]

    def rhs(state: State, reference: KaneReference) -> tuple[np.ndarray, np.ndarray]:
        values = {
            "t": [state.values[TIME]],
            "q": list(state.of(model.coordinates)),
            "u": list(state.of(model.speeds)),
            "r": list(input_values(model, state)),
            # A parameter that SymPy's equations do not contain must not matter.
            "p": [state.values.get(symbol, 0.77) for symbol in model.parameters],
            "g": [],
        }
        found = np.array(evaluate(nodes, values), dtype=float)
        T, V, qdot = found[: n * n].reshape(n, n), found[n * n : n * n + n], found[n * n + n :]
        udot = dict(zip(model.speeds, np.linalg.solve(T, V), strict=True))
        rates = dict(zip(model.coordinates, qdot, strict=True))
        return np.array([rates[q] for q in reference.q]), np.array([udot[u] for u in reference.u])

    return rhs


@pytest.mark.parametrize("name", RUN)
def test_motions_are_those_of_sympy(name: str) -> None:
    """The compiled model, integrated over a second, against SciPy on SymPy's equations."""
    models, km = read(IDIOMS[name])
    start = IDIOMS[name].run or {}
    reference = KaneReference(km)
    values: dict[Any, float] = dict.fromkeys(reference.symbols, 1.0) | {
        symbol: INPUT for symbol in reference.symbols if symbol.is_Function
    }
    y0 = np.array([start.get(str(x.func), 0.0) for x in [*reference.q, *reference.u]])
    n_q = len(reference.q)

    def sympy_rhs(t: float, y: np.ndarray) -> np.ndarray:
        state = State({**values, TIME: t, **dict(zip([*reference.q, *reference.u], y, strict=True))})
        return np.concatenate([reference.qdot(state), reference.udot(state)])

    expected = solve_ivp(sympy_rhs, (0.0, 1.0), y0, method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
    for how, model in models.items():
        solver = kg.build(model).with_parameters({str(symbol): 1.0 for symbol in model.parameters})
        r = np.full(len(model.inputs), INPUT) if model.inputs else None
        solution = solver.integrate((0.0, 1.0), y0[:n_q], y0[n_q:], r=r, rtol=1e-10, atol=1e-12)
        found = np.concatenate([solution.q[-1], solution.u[-1]])
        np.testing.assert_allclose(
            found, expected, rtol=0.0, atol=FINE_INTEGRATION * np.abs(expected).max(), err_msg=how
        )


def test_a_wrong_model_is_seen() -> None:
    """The comparison fails for a load that is a millionth too large."""
    km = IDIOMS["two_point_theory"].build()
    first, *others = km.forcelist
    loads = [(first[0], first[1] * 1.000001), *others]
    rhs = interpreted(kg.Model.from_kane(km, loads=loads))
    reference = KaneReference(km)
    for state in reference.states(STATES):
        assert reference.deviation(state, rhs(state, reference)[1]) > 10 * SAME_EQUATIONS


def test_every_theme_is_there() -> None:
    """A module that is not imported would be missing in silence."""
    assert {idiom.theme for idiom in IDIOMS.values()} == {theme.__name__.rpartition(".")[2] for theme in THEMES}
    assert len(IDIOMS) >= 60
    assert len({IDIOMS[name].theme for name in RUN}) >= 5
