"""Motions that are differentiated by kanegen and its peers, with references in long double."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

from benchmarks.formulas import Formulas, formulas_of
from benchmarks.problems import DURATION, read_problem, written_disk, written_four_bar
from benchmarks.reference import reference_solution
from kanegen.arrays import Array
from kanegen.derivation import derive
from kanegen.graph import Tangent
from kanegen.model import Model


@dataclass(frozen=True)
class GradientProblem:
    """The derivatives of the end of a motion, and the gradient of one function of it.

    Parameters
    ----------
    formulas
        y' of y = (x, p): states, and parameters, whose rates are zero.
    n
        The number of states x, the first of which are the first coordinates and speeds of the model.
    names
        What varies, by the names of the model.
    places
        The same as indices of y.
    rows
        Indices of x: the derivatives of these at the end are compared, as (rows, names).
    variables
        The same by the names of the model.
    q0, u0
        Values by name of the model at the start; the constraints determine the others.
    initial
        All values by name, which choose how closed loops close.
    """

    name: str
    model: Model
    formulas: Formulas
    n: int
    names: tuple[str, ...]
    places: tuple[int, ...]
    rows: tuple[int, ...]
    variables: tuple[str, ...]
    q0: Mapping[str, float]
    u0: Mapping[str, float]
    initial: Mapping[str, float]
    duration: float = DURATION

    @property
    def x0(self) -> Array:
        return self.formulas.start[: self.n]

    @property
    def p0(self) -> Array:
        return self.formulas.start[self.n :]

    @property
    def weights(self) -> Array:
        """The gradient is that of the sum of ``rows`` at the end with these weights."""
        return np.arange(1.0, len(self.rows) + 1.0)

    @cached_property
    def sensitivities(self) -> Array:
        """The reference (rows, names): the variational equations, beside the motion in long double."""
        n, k = self.n, len(self.places)
        graph, size = self.formulas.rates[0].graph, len(self.formulas.start)
        rates = list(self.formulas.rates)
        start = [self.formulas.start]
        for column, place in enumerate(self.places):
            changes = [graph.input("y", size + column * n + i) for i in range(n)]
            along = {graph.input("y", i): change for i, change in enumerate(changes)}
            if place >= n:
                along[graph.input("y", place)] = graph.const(1.0)
            rates += list(map(Tangent(graph, along), self.formulas.rates[:n]))
            start.append(np.eye(size)[place, :n])
        whole = tuple(graph.input("y", size + column * n + row) for row in self.rows for column in range(k))
        beside = Formulas(tuple(rates), whole, np.concatenate(start))
        return reference_solution(beside, self.name, self.duration).reshape(len(self.rows), k)

    def reference(self, kind: str) -> Array:
        """The reference for ``"sensitivities"``, or for the ``"gradient"``, flat."""
        return self.sensitivities.ravel() if kind == "sensitivities" else self.weights @ self.sensitivities


def double_pendulum() -> Model:
    """Two point masses on massless links, with absolute angles."""
    angles, speeds = me.dynamicsymbols("theta_1 theta_2"), me.dynamicsymbols("omega_1 omega_2")
    m_1, m_2, l_1, l_2, g = sm.symbols("m_1 m_2 l_1 l_2 g")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    points, place = [], O
    for k, (angle, length) in enumerate(zip(angles, (l_1, l_2), strict=True)):
        place = place.locatenew(f"P_{k + 1}", length * (sm.sin(angle) * N.x - sm.cos(angle) * N.y))
        points.append(place)
    return Model(
        name="double_pendulum",
        frame=N,
        coordinates=angles,
        speeds=speeds,
        kinematics=[u - q.diff() for q, u in zip(angles, speeds, strict=True)],
        bodies=[me.Particle(P.name, P, m) for P, m in zip(points, (m_1, m_2), strict=True)],
        gravity=-g * N.y,
        parameters={m_1: 1.0, m_2: 0.7, l_1: 0.5, l_2: 0.4, g: 9.81},
    )


NAMES: Final = ("double_pendulum", "spatial_chain(4)", "rolling_disk", "four_bar")


def read_gradient_problem(examples: Path, name: str) -> GradientProblem:
    """The problem of one of these `NAMES`, with the models in the folder ``examples``."""
    if name == "double_pendulum":
        start = {"theta_1": 1.0, "theta_2": 0.5}, {"omega_1": 0.0, "omega_2": 0.0}
        return _free(name, double_pendulum(), *start, ("m_1", "m_2", "l_1", "l_2", "g", *start[0], *start[1]))
    problem = read_problem(examples, name)
    model = problem.file.model
    q0, u0 = (
        dict(zip(_names(symbols), values.tolist(), strict=True))
        for symbols, values in zip((model.coordinates, model.speeds), problem.start, strict=True)
    )
    match name:
        case "rolling_disk":
            varied = {"R": 8, "g": 9, "theta": 0, "u1": 5, "u2": 6, "u3": 7}
            given = q0, dict(list(u0.items())[:3])
            return _written(name, model, written_disk(model, varied=True), 8, varied, (*q0, *given[1]), *given)
        case "four_bar":
            # The length of the crank is not among them, because the model's speed is that of its end.
            varied = {"m1": 2, "m2": 3, "L2": 5, "L3": 6, "L4": 7, "q1": 0}
            given = {"q1": q0["q1"]}, {"u1": u0["u1"]}
            formulas = written_four_bar(model, varied=True)
            return _written(name, model, formulas, 2, varied, ("q1",), *given, initial={**q0, **u0})
        case _:
            # The derivatives with respect to all inertias would need a minute to compile in the reference.
            names = tuple(symbol.name for symbol in model.parameters if not symbol.name.startswith("I"))
            return _free(name, model, q0, u0, names)


def _names(symbols: Any) -> list[str]:
    return [symbol.func.__name__ for symbol in symbols]


def _written(
    name: str,
    model: Model,
    formulas: Formulas,
    n: int,
    varied: Mapping[str, int],
    variables: tuple[str, ...],
    q0: Mapping[str, float],
    u0: Mapping[str, float],
    initial: Mapping[str, float] | None = None,
) -> GradientProblem:
    """A model with constraints, whose equations are written in fewest states."""
    names, places, rows = tuple(varied), tuple(varied.values()), tuple(range(len(variables)))
    return GradientProblem(name, model, formulas, n, names, places, rows, variables, q0, u0, initial or {})


def _free(
    name: str, model: Model, q0: Mapping[str, float], u0: Mapping[str, float], names: tuple[str, ...]
) -> GradientProblem:
    """A model without constraints."""
    values = [float(value) for value in model.parameters.values()]
    point = np.array([*q0.values(), *u0.values()])
    formulas = formulas_of(derive(model), values, point, independent=False, varied=True)
    variables = (*q0, *u0)
    known = (*variables, *(symbol.name for symbol in model.parameters))
    places, rows = tuple(known.index(name) for name in names), tuple(range(len(point)))
    return GradientProblem(name, model, formulas, len(point), names, places, rows, variables, q0, u0, {})
