"""Random states of motion that satisfy a model's kinematics and constraints, for rank decisions and checks.

The user's expressions are lowered as written, with q, q', q'', u and u' as independent inputs. Newton's method solves
the equations between these; the user's vectors and their rates are then evaluated at the resulting states.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Derivative
from sympy.physics.vector import dynamicsymbols

from kanegen.arrays import Array
from kanegen.graph import Graph, Lowering, Newton, Node, Tangent, evaluate, gradient
from kanegen.graph.decisions import RELATIVE_ZERO, with_errors
from kanegen.graph.ranks import RANK_TOLERANCE, off_span, unit_rows
from kanegen.model.description import SystemDescription
from kanegen.model.geometry import Geometry, Pair, path
from kanegen.model.records import VELOCITY

Values = dict[str, list[float]]

SIZES = (1.0,) * 8 + (1e-3, 1e3, 1e-6, 1e6)
"""Sizes of the coordinates of random starting points, in turn: a mechanism of micrometers is not found from meters."""

DRAWS = len(SIZES)
"""Random starting points per requested state; if Newton's method fails from all of them, there is no such state."""


class Motions:
    """A graph for the expressions of a model, and states (t, q, u, q', ...) that satisfy its constraints.

    ``positions`` are the constraints on positions that these states satisfy.
    """

    def __init__(self, model: SystemDescription, positions: Sequence[Any]) -> None:
        self.model = model
        self.positions = positions
        self.graph = graph = Graph()
        n_q, n_u, n_r = len(model.coordinates), len(model.speeds), len(model.inputs)
        self._sizes = {"q": n_q, "u": n_u, "r": n_r, "p": len(model.parameters), "s": len(model.states)}
        self._sizes |= {"qdot": n_q, "qddot": n_q, "udot": n_u, "rdot": n_r, "t": 1}
        self.nodes = {name: tuple(graph.input(name, i) for i in range(n)) for name, n in self._sizes.items()}
        self._lowering = Lowering(graph, self._symbols())

    def _symbols(self) -> dict[Any, Node]:
        model, nodes, t = self.model, self.nodes, dynamicsymbols._t
        symbols: dict[Any, Node] = {t: nodes["t"][0], **dict.fromkeys(model.auxiliary_speeds, self.graph.zero)}
        symbols.update((Derivative(speed, t), self.graph.zero) for speed in model.auxiliary_speeds)
        for items, name, *rates in (
            (model.coordinates, "q", "qdot", "qddot"),
            (model.speeds, "u", "udot"),
            (model.parameters, "p"),
            (tuple(model.states), "s"),
            ([item.symbol for item in model.inputs], "r"),
        ):
            symbols.update(zip(items, nodes[name], strict=True))
            for order, rate in enumerate(rates, start=1):
                keys = [Derivative(item, (t, order)) for item in items]
                symbols.update(zip(keys, nodes[rate], strict=True))
        # If the rate of an input is unknown, any number serves as its rate.
        lowering = Lowering(self.graph, symbols)
        self._input_rates = tuple(
            unknown if item.rate is None else lowering.lower(item.rate)
            for item, unknown in zip(model.inputs, nodes["rdot"], strict=True)
        )
        keys = [Derivative(item.symbol, t) for item in model.inputs]
        return symbols | dict(zip(keys, self._input_rates, strict=True))

    def lower(self, expression: Any) -> Node:
        return self._lowering.lower(expression)

    @cached_property
    def rate(self) -> Tangent:
        """The operator d/dt along a motion."""
        nodes = self.nodes
        seeds = {nodes["t"][0]: self.graph.one}
        for name, rate in (("q", "qdot"), ("qdot", "qddot"), ("u", "udot")):
            seeds.update(zip(nodes[name], nodes[rate], strict=True))
        seeds.update(zip(nodes["r"], self._input_rates, strict=True))
        return Tangent(self.graph, seeds)

    @cached_property
    def _positions(self) -> list[Node]:
        return [*map(self.lower, self.positions)]

    @cached_property
    def _velocities(self) -> list[Node]:
        """The kinematics and the velocity constraints."""
        return [*map(self.lower, (*self.model.kinematics, *self.model.constraints_on(VELOCITY)))]

    def states(self, count: int = 2, order: int = 1) -> list[Values]:
        """Up to ``count`` states with positions, velocities and, for ``order`` 2, accelerations of a motion."""
        velocities = [*self._velocities, *map(self.rate, self._positions)]
        return self._solved(velocities, count, [*map(self.rate, velocities)] if order == 2 else ())

    def _solved(self, velocities: Sequence[Node], count: int, accelerations: Sequence[Node] = ()) -> list[Values]:
        nodes = self.nodes
        solvers = [Newton(self._positions, nodes["q"]), Newton(velocities, (*nodes["qdot"], *nodes["u"]))]
        if accelerations:
            solvers.append(Newton(accelerations, (*nodes["qddot"], *nodes["udot"])))
        generator, states = random.Random(20031), list[Values]()
        for draw in range(DRAWS * count):
            state: Values | None = self._draw(generator, draw % 2 == 1, SIZES[draw // count])
            for solver in solvers:
                state = None if state is None else solver.solve(state)
            if state is not None:
                states.append(state)
            if len(states) == count:
                break
        return states

    def with_speeds(self, state: Values, u: Sequence[float]) -> Values | None:
        """The state with other speeds and the rates q' that follow from the kinematics, whatever the constraints."""
        kinematics = [self.lower(equation) for equation in self.model.kinematics]
        return Newton(kinematics, self.nodes["qdot"]).solve(state | {"u": [*u]})

    def _draw(self, generator: random.Random, signed: bool, size: float) -> Values:
        """Random values, coordinates and rates times ``size``. Unless ``signed``, all are positive: roots are real."""
        values = {name: [generator.uniform(0.2, 1.1) for _ in range(n)] for name, n in self._sizes.items()}
        if signed:
            values["q"] = [generator.choice((-1.0, 1.0)) * x for x in values["q"]]
        for name in ("q", "u", "qdot", "udot", "qddot"):
            values[name] = [size * x for x in values[name]]
        known = self.model.parameters.values()
        values["p"] = [generator.uniform(0.5, 1.5) if value is None else value for value in known]
        return values

    def rates_follow(self, enforced: int = 0) -> list[bool] | None:
        """Whether the rate of each position constraint is zero for all motions that satisfy the velocity constraints.

        The motions also satisfy the first ``enforced`` position constraints, which are not part of the result. The rank
        decides, at states that satisfy all position constraints; the result is None if no such state is found.
        """
        rates = [*map(self.rate, self._positions)]
        velocities, implied = [*self._velocities, *rates[:enforced]], rates[enforced:]
        states = self._solved(velocities, 2)
        if not states:
            return None
        speeds = (*self.nodes["qdot"], *self.nodes["u"])
        rows = [gradient([node], [self.graph.one], speeds) for node in (*velocities, *implied)]
        follows = [True] * len(implied)
        for state in states:
            values = np.array(evaluate([*implied, *(x for row in rows for x in row)], state))
            matrix = values[len(implied) :].reshape(len(rows), -1)
            basis, others = unit_rows(matrix[: len(velocities)]), matrix[len(velocities) :]
            moving = np.abs([state[array][index] for array, index in (node.payload for node in speeds)])
            for k, (row, rate) in enumerate(zip(others, values, strict=False)):
                remainder = np.abs(off_span(row, basis)).max(initial=0.0)
                is_left = remainder > RANK_TOLERANCE * np.abs(row).max(initial=0.0)
                follows[k] &= bool(not is_left and abs(rate) <= RANK_TOLERANCE * (np.abs(row) @ moving))
        return follows


class Snapshot:
    """Values and rates of expressions at one state; vectors have inertial components."""

    def __init__(self, geometry: Geometry, values: Mapping[Any, tuple[float, float]]) -> None:
        self._geometry, self._values = geometry, values
        self._axes: dict[Any, tuple[Array, Array]] = {}

    @property
    def largest(self) -> float:
        """The largest magnitude of a value or a rate."""
        return max((abs(float(x)) for pair in self._values.values() for x in pair), default=0.0)

    def vector(self, vector: Any) -> tuple[Array, Array]:
        """A SymPy vector and its rate, (3,) each; the number 0 is accepted as the zero vector."""
        value, rate = np.zeros(3), np.zeros(3)
        for components, frame in vector.args if vector != 0 else ():
            axes, turning = self.axes(frame)
            parts = np.array([self._values[x] for x in components])
            value += axes @ parts[:, 0]
            rate += axes @ parts[:, 1] + turning @ parts[:, 0]
        return value, rate

    def axes(self, frame: Any) -> tuple[Array, Array]:
        """The unit vectors of a frame as columns, and their rates, (3, 3) each."""
        if frame not in self._axes:
            parent = self._geometry.parents[frame]
            if parent is None:
                self._axes[frame] = np.eye(3), np.zeros((3, 3))
            else:
                inner, inner_rate = self.axes(parent)
                parts = np.array([self._values[x] for x in frame._dcm_dict[parent]])
                cosines, rates = parts[:, 0].reshape(3, 3).T, parts[:, 1].reshape(3, 3).T
                self._axes[frame] = inner @ cosines, inner_rate @ cosines + inner @ rates
        return self._axes[frame]

    def carried(self, vector: Any) -> Array:
        """The rate of a vector by the angular velocities of its frames, as SymPy computes it, (3,)."""
        rate = np.zeros(3)
        for components, frame in vector.args if vector != 0 else ():
            axes, _ = self.axes(frame)
            parts = np.array([self._values[x] for x in components])
            rate += axes @ parts[:, 1] + np.cross(self.omega(frame)[0], axes @ parts[:, 0])
        return rate

    def number(self, expression: Any) -> float:
        """The value of a scalar expression."""
        return self._values[expression][0]

    def omega(self, frame: Any) -> tuple[Array, Array]:
        """Angular velocity of a frame, as set by the user or by an orientation, and its rate, (3,) each."""
        pairs = path(self._geometry.rate_parents, frame)
        return self._sum(child._ang_vel_dict[parent] for parent, child in pairs)

    def turning(self, frame: Any) -> Array:
        """The angular velocity of a frame from the rates of its axes, (3,)."""
        axes, rates = self.axes(frame)
        spin = rates @ axes.T
        return np.array([spin[2, 1] - spin[1, 2], spin[0, 2] - spin[2, 0], spin[1, 0] - spin[0, 1]]) / 2.0

    def offset(self, pairs: Iterable[Pair]) -> tuple[Array, Array]:
        """The position along pairs ``(point, point it is positioned from)`` and its rate, (3,) each."""
        return self._sum(point._pos_dict[other] for point, other in pairs)

    def _sum(self, vectors: Iterable[Any]) -> tuple[Array, Array]:
        total = np.sum([self.vector(vector) for vector in vectors] or np.zeros((1, 2, 3)), axis=0)
        return total[0], total[1]

    def dyadic(self, dyadic: Any) -> Array:
        """The components of a SymPy dyadic, (3, 3)."""
        total = np.zeros((3, 3))
        for coefficient, left, right in dyadic.args if dyadic != 0 else ():
            total += self._values[coefficient][0] * np.outer(self.vector(left)[0], self.vector(right)[0])
        return total


class Moment:
    """The snapshot at one state, and others with a random relative error of all operations and values.

    What errors of ``RELATIVE_ZERO`` change shows which differences are rounding, in whatever units.
    """

    def __init__(self, geometry: Geometry, expressions: Sequence[Any], nodes: Sequence[Node], state: Values) -> None:
        self._geometry, self._expressions, self._nodes, self._state = geometry, expressions, nodes, state
        self.exact = self._snapshot(evaluate(nodes, state))

    @cached_property
    def disturbed(self) -> tuple[Snapshot, ...]:
        generator = random.Random(4711)
        values = [evaluate(self._nodes, self._state, with_errors(generator)) for _ in range(2)]
        return tuple(
            self._snapshot([x * (1.0 + RELATIVE_ZERO * generator.uniform(-1.0, 1.0)) for x in numbers])
            for numbers in values
        )

    def _snapshot(self, values: Sequence[float]) -> Snapshot:
        n = len(self._expressions)
        pairs = zip(values[:n], values[n:], strict=True)
        return Snapshot(self._geometry, dict(zip(self._expressions, pairs, strict=True)))


def snapshots(
    geometry: Geometry, motions: Motions, states: Sequence[Values], expressions: Iterable[Any]
) -> list[Moment]:
    """The snapshots of ``expressions`` at each state at which they are defined.

    Raises ``DerivationError`` for an expression that cannot be lowered.
    """
    listed = list(dict.fromkeys(expressions))
    nodes = [motions.lower(expression) for expression in listed]
    nodes += map(motions.rate, nodes[:])
    taken = []
    for state in states:
        try:
            taken.append(Moment(geometry, listed, nodes, state))
        except (ValueError, ArithmeticError):
            continue  # a user's Python function is not defined at this state
    return taken
