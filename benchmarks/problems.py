"""The problems that are solved by kanegen and its peers: models, motions, and the equations that peers get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import sympy as sm

from benchmarks.formulas import Formulas, formulas_of, lagrangian_of, written_formulas
from benchmarks.reference import reference_solution
from benchmarks.trees import EULER, Tree, humanoid, planar_chain, spatial_chain
from kanegen.arrays import Array
from kanegen.cli.bench.compiled import STATES, States
from kanegen.cli.bench.peers import parameter_values
from kanegen.derivation import Equations, derive
from kanegen.errors import BuildError
from kanegen.graph import Node
from kanegen.model import Model
from kanegen.modelfile import ModelFile, label, read_model_file

DURATION: Final = 10.0
"""Seconds of motion: long enough that the cost of a call is small, and short enough that no motion is chaotic."""


@dataclass(frozen=True)
class Problem:
    """One example model, started as the example does or as ``start`` of its written equations says.

    ``written`` gives explicit equations in fewest states that a user would write by hand; without it they follow from
    the model, in its independent speeds. ``tree`` describes the bodies for programs that read trees of joints.
    """

    file: ModelFile
    written: Callable[[Model], Formulas] | None = None
    tree: Callable[[ModelFile], Tree] | None = None
    title: str = ""
    duration: float = DURATION

    @property
    def name(self) -> str:
        return self.title or label(self.file.path.stem, self.file.options)

    @cached_property
    def parameters(self) -> tuple[float, ...]:
        return parameter_values(self.file.model)

    @cached_property
    def formulas(self) -> Formulas:
        model = self.file.model
        if self.written is not None:
            return self.written(model)
        start = self.file.start()
        point = np.array([*start["q"], *start["u"]], dtype=float)
        return formulas_of(self._equations, self.parameters, point, independent=bool(model.constraints))

    @cached_property
    def lagrangian(self) -> Node:
        """As `lagrangian_of`."""
        return lagrangian_of(self._equations, self.parameters)

    @cached_property
    def _equations(self) -> Equations:
        return derive(self.file.model)

    @cached_property
    def joints(self) -> Tree | None:
        return None if self.tree is None else self.tree(self.file)

    @cached_property
    def samples(self) -> Array:
        """`STATES` values of y within 0.01 of the start, (STATES, n), the same in every run."""
        n = len(self.formulas.start)
        samples = self.formulas.start + np.random.default_rng(2003).uniform(-0.01, 0.01, (STATES, n))
        if self.joints is not None and self.joints.is_free:
            samples[:, EULER] /= np.linalg.norm(samples[:, EULER], axis=1)[:, None]
        return samples

    @cached_property
    def states(self) -> States:
        """The samples as coordinates and speeds of the model, which satisfy its constraints."""
        n_q = len(self.file.model.coordinates)
        whole = np.array([self.formulas.whole_of(y) for y in self.samples])
        q, u = np.ascontiguousarray(whole[:, :n_q]), np.ascontiguousarray(whole[:, n_q:])
        return States(0.0, q, u, np.zeros(0), np.zeros(0), np.array(self.parameters))

    @cached_property
    def start(self) -> tuple[Array, Array]:
        """Initial q and u of the model."""
        whole, n_q = self.formulas.whole_of(self.formulas.start), len(self.file.model.coordinates)
        return whole[:n_q], whole[n_q:]

    @cached_property
    def reference(self) -> Array:
        """q and u at the end."""
        return reference_solution(self.formulas, self.name, self.duration)


# -- equations written by hand -----------------------------------------------------------------------------------


def written_disk(model: Model, varied: bool = False) -> Formulas:
    """The rolling disk in theta, phi, psi, X, Y, u1, u2, u3, from the final equations of the example's source; with
    ``varied``, R and g follow in y."""
    states = theta, phi, psi, X, Y, u1, u2, u3 = sm.symbols("theta phi psi X Y u1 u2 u3")
    value = {symbol.name: number for symbol, number in model.parameters.items()}
    parameters, values = _varied(value, ("R", "g"), varied)
    R, g = values
    turn = u2 / sm.sin(theta)
    cot = sm.cos(theta) / sm.sin(theta)
    X_rate = R * (sm.sin(phi) * sm.sin(theta) * u1 - sm.cos(phi) * u3)
    Y_rate = -R * (sm.cos(phi) * sm.sin(theta) * u1 + sm.sin(phi) * u3)
    rates = (
        *(u1, turn, u3 - turn * sm.cos(theta), X_rate, Y_rate),
        (u2**2 * cot - 6 * u2 * u3 - 4 * g / R * sm.cos(theta)) / 5,
        -u1 * u2 * cot + 2 * u1 * u3,
        2 * u1 * u2 / 3,
    )
    whole = (theta, phi, psi, X, Y, u1, u2, u3, X_rate, Y_rate)
    start = [1.2, 0.3, 0.0, 0.0, 0.0, 0.2, 0.4, -6.0, *(value[p.name] for p in parameters)]
    return written_formulas((*states, *parameters), (*rates, *[sm.S.Zero] * len(parameters)), whole, np.array(start))


def written_four_bar(model: Model, varied: bool = False) -> Formulas:
    """The four-bar linkage in the crank angle q and its rate w; the other joint lies on two circles.

    Its kinetic energy M(q) w^2 / 2 is constant, so that w' = -M'(q) w^2 / (2 M). With ``varied``, the parameters follow
    in y.
    """
    states = q, w = sm.symbols("q w")
    value = {symbol.name: number for symbol, number in model.parameters.items()}
    parameters, values = _varied(value, ("m1", "m2", "L1", "L2", "L3", "L4"), varied)
    m1, m2, L1, L2, L3, L4 = values
    x, y = L1 * sm.cos(q), L1 * sm.sin(q) - L4
    squared = x**2 + y**2
    along = (L3**2 - L2**2 + squared) / (2 * squared)
    across = sm.sqrt(L3**2 / squared - along**2)
    place = (along * x + across * y, along * y - across * x)
    slopes = [coordinate.diff(q) for coordinate in place]
    M = m1 * L1**2 + m2 * sum(slope**2 for slope in slopes)
    M_slope = 2 * m2 * sum(slope * slope.diff(q) for slope in slopes)
    whole = (q, *place, L1 * w, *(slope * w for slope in slopes))
    rates = (w, -M_slope * w**2 / (2 * M), *[sm.S.Zero] * len(parameters))
    start = np.array([0.0, 3.0, *(value[p.name] for p in parameters)])
    return written_formulas((*states, *parameters), rates, whole, start)


def _varied(
    value: Mapping[str, float], names: tuple[str, ...], varied: bool
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The symbols of the parameters that are part of y, and what stands for the parameters in formulas."""
    symbols = sm.symbols(names)
    return (symbols, symbols) if varied else ((), tuple(sm.Float(value[name]) for name in names))


# -- the problems -------------------------------------------------------------------------------------------------

INTEGRATED: Final = (
    "n_link_pendulum(2)",
    "n_link_pendulum(5)",
    "n_link_pendulum(8)",
    "spatial_chain(2)",
    "spatial_chain(3)",
    "rolling_disk",
    "four_bar",
    "whipple_bicycle",
)
"""The problems that are integrated."""


@dataclass(frozen=True)
class _Entry:
    """What makes a problem: the example's file and options, and the arguments of `Problem`."""

    example: str
    options: Mapping[str, Any]
    arguments: Mapping[str, Any]


def _entry(name: str) -> _Entry:
    example, _, n = name.removesuffix(")").partition("(")
    match example:
        case "n_link_pendulum":
            return _Entry(example, {"n": int(n)}, {"tree": planar_chain})
        case "spatial_chain":
            return _Entry(example, {"n": int(n)}, {"tree": spatial_chain})
        case "humanoid":
            return _Entry(example, {}, {"tree": humanoid})
        case "rolling_disk":
            return _Entry(example, {}, {"written": written_disk})
        case "four_bar":
            return _Entry("struck_four_bar", {"struck": False}, {"written": written_four_bar, "title": name})
        case _:
            return _Entry(example, {}, {})


def require_problem(examples: Path, name: str) -> None:
    """Raise `BuildError` if the folder ``examples`` has no model for a problem of this name."""
    try:
        found = (examples / f"{_entry(name).example}.py").is_file()
    except ValueError:  # the number of bodies
        found = False
    if not found:
        raise BuildError(
            f"there is no problem {name!r}; expected {', '.join(INTEGRATED)}, or another example in {examples}"
        )


def read_problem(examples: Path, name: str) -> Problem:
    """The problem of this name, such as ``"spatial_chain(2)"``, with the models in the folder ``examples``."""
    entry = _entry(name)
    file = read_model_file(examples / f"{entry.example}.py", options=entry.options)
    return Problem(file, **entry.arguments)
