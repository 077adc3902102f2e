"""The system over the graph: symbols as nodes, values at random states, q' = C u + D, time derivatives, geometry."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import sqrt
from typing import Any, Final, TypeAlias

from sympy import Derivative
from sympy.physics.vector import dynamicsymbols

from kanegen.derivation.geometry.frames import Frames
from kanegen.derivation.geometry.points import Points
from kanegen.derivation.geometry.vectors import Triple, is_null, mapped
from kanegen.errors import DerivationError, ModelError
from kanegen.graph import Graph, Lowering, Newton, Node, Tangent, copied, evaluate, gradient, reachable, substitute
from kanegen.graph.decisions import Decisions
from kanegen.graph.linear import solve_linear
from kanegen.model.description import SystemDescription
from kanegen.model.expressions import symbol_name
from kanegen.model.inputs import FORCES, FREE
from kanegen.model.records import POSITION

State: TypeAlias = "dict[str, list[float]]"

DRAWS: Final = 12
"""Random starting points of Newton's method for each random state."""

SIZES: Final = (1.0, 1e-4, 1e-8)
"""Sizes of random coordinates. Beside coordinates of 1 m the moment of inertia of a body of 1 nm is rounding."""

FORMER: Final = "former"
"""Input array of the graph for the speeds before a change of speeds, used while the change is inverted."""


class Variables:
    """The input nodes of one model: t, q, u, u', auxiliary speeds, inputs r, states s, parameters p.

    ``multipliers``: of the contact rows; ``free``: the free vector of servo-constraints. The runtime sets both.
    """

    def __init__(self, model: SystemDescription, graph: Graph | None = None) -> None:
        self.model = model
        self.graph = graph = Graph() if graph is None else graph
        self.t = graph.input("t", 0)
        self.q = tuple(graph.input("q", i) for i in range(len(model.coordinates)))
        self.u = tuple(graph.input("u", i) for i in range(len(model.speeds)))
        self.udot = tuple(graph.input("udot", i) for i in range(len(model.speeds)))
        self.auxiliary = tuple(graph.input("aux", i) for i in range(len(model.auxiliary_speeds)))
        self.r = tuple(graph.input("r", i) for i in range(len(model.inputs)))
        self.multipliers = tuple(graph.input(FORCES, i) for i in range(len(model.contact_rows)))
        self.free = tuple(graph.input(FREE, i) for i in range(len(model.free_controls)))
        self.s = tuple(graph.input("s", i) for i in range(len(model.states)))
        self.p = tuple(graph.input("p", i) for i in range(len(model.parameters)))
        places = {symbol: k for k, symbol in enumerate(model.coordinates)}
        self.norms = tuple(tuple(places[symbol] for symbol in group) for group in model.euler_parameters)
        """The places of each group of Euler parameters among the coordinates."""
        self._use(self._random_states(), everywhere=not self.norms)
        self.symbols = self._input_symbols()
        lowering = Lowering(graph, self.symbols)
        self.input_rates = tuple(None if item.rate is None else lowering.lower(item.rate) for item in model.inputs)
        """The rate of each input, or None; the model has already refused missing rates that are needed."""

    def _input_symbols(self) -> dict[Any, Node]:
        """The symbols that are inputs of the graph."""
        model = self.model
        symbols: dict[Any, Node] = {dynamicsymbols._t: self.t}
        for items, nodes in (
            (model.coordinates, self.q),
            (model.speeds, self.u),
            (model.auxiliary_speeds, self.auxiliary),
            (model.parameters, self.p),
            ([item.symbol for item in model.inputs], self.r),
            (model.contact_multipliers, self.multipliers),
            (model.free_symbols, self.free),
            (model.states, self.s),
        ):
            symbols.update(zip(items, nodes, strict=True))
        return symbols

    def at_rest(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes at u = 0."""
        return substitute(nodes, dict.fromkeys((*self.u, *self.auxiliary), self.graph.zero))

    def settled(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """The nodes with the auxiliary speeds set to zero, which they are during every motion."""
        if not self.auxiliary:
            return tuple(nodes)
        return tuple(substitute(nodes, dict.fromkeys(self.auxiliary, self.graph.zero)))

    def without_accelerations(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes at u' = 0."""
        return substitute(nodes, dict.fromkeys(self.udot, self.graph.zero))

    # -- random states --------------------------------------------------------------------------------------

    def _random_states(self) -> tuple[State, ...]:
        """Three random states; parameters are positive, as masses and lengths must be. Euler parameters have norm 1."""
        generator = random.Random(20031)
        sizes = {
            "q": len(self.q), "u": len(self.u), "r": len(self.r), FORCES: len(self.multipliers),
            FREE: len(self.free), "s": len(self.s), "t": 1,
            "udot": len(self.u), "qdot": len(self.q), "g": 0, "aux": len(self.auxiliary),
            FORMER: len(self.u) if self.model.speed_change else 0,
        }  # fmt: skip
        states = []
        for _ in range(3):
            state = {name: [generator.uniform(0.2, 1.1) for _ in range(n)] for name, n in sizes.items()}
            state["p"] = [generator.uniform(0.5, 1.5) for _ in self.p]
            for group in self.norms:
                size = sqrt(sum(state["q"][k] ** 2 for k in group))
                for k in group:
                    state["q"][k] /= size
            states.append(state)
        return tuple(states)

    def _use(self, states: tuple[State, ...], everywhere: bool) -> None:
        """Decide at these states; ``everywhere``: they satisfy no conditions, so that "zero" means identically zero."""
        self.states = states
        self.decisions = Decisions(states, everywhere)
        """Decisions on nodes: zero, constant, equal."""

    def states_of_every_size(self) -> Iterator[tuple[State, ...]]:
        """The random states with coordinates of several sizes; Euler parameters stay as they are, with norms of one."""
        normed = {k for group in self.norms for k in group}
        for size in SIZES:
            factors = [1.0 if k in normed else size for k in range(len(self.q))]
            yield tuple(
                {**state, "q": [factor * x for factor, x in zip(factors, state["q"], strict=True)]}
                for state in self.states
            )

    def samples(self, nodes: Sequence[Node]) -> list[tuple[float, ...]]:
        """Values of each node at the random states (NaN where it is undefined there)."""
        columns = [evaluate(nodes, state) for state in self.states]
        return list(zip(*columns, strict=True))

    def vanish(self, nodes: Iterable[Node]) -> bool:
        """Whether all nodes are identically zero."""
        return self.decisions.are_zero(nodes)

    def vanish_in_all_cases(self, nodes: Iterable[Node]) -> bool:
        """Whether all nodes are identically zero; those with cases (``Max``, a spline) in all of them."""
        return self.decisions.are_zero_in_all_cases(nodes)

    def are_constant(self, nodes: Iterable[Node], variables: Sequence[Node]) -> bool:
        """Whether no node changes with the variables."""
        return self.decisions.are_constant(nodes, variables)

    def agree(self, a: Sequence[Node], b: Sequence[Node]) -> bool:
        """Whether two vectors, whose components have one unit, are equal."""
        return self.decisions.are_equal(a, b)


class System(Variables):
    """One model lowered to one graph. Everything derived from it is a node of ``graph``.

    ``former`` maps the symbols of speeds before changes of speeds to nodes in terms of the present speeds.
    """

    def __init__(
        self, model: SystemDescription, graph: Graph | None = None, former: Mapping[Any, Node] | None = None
    ) -> None:
        super().__init__(model, graph)
        self.former = {} if former is None else dict(former)
        self._symbols = {**self.symbols, **self.former}
        self.C, self.D = self._kinematics()
        self.qdot = tuple(
            self.graph.sum([*(c * u for c, u in zip(row, self.u, strict=True)), d])
            for row, d in zip(self.C, self.D, strict=True)
        )
        self._extend_symbols()
        self._lowering = Lowering(self.graph, self._symbols)
        if len(self.q) > len(self.u):
            kept = self._kept_positions()
            self._use(self._moved_onto(kept), everywhere=not kept)

    def _kinematics(self) -> tuple[tuple[tuple[Node, ...], ...], tuple[Node, ...]]:
        """C and D of ``q' = C u + D`` from the kinematical equations, affine in q' and u."""
        graph, model = self.graph, self.model
        rates = tuple(graph.input("qdot", i) for i in range(len(self.q)))
        derivatives = (Derivative(q, dynamicsymbols._t) for q in model.coordinates)
        lowering = Lowering(graph, {**self._symbols, **dict(zip(derivatives, rates, strict=True))})
        rows = [lowering.lower(equation) for equation in model.kinematics]
        M = [gradient([row], [graph.one], rates) for row in rows]
        Y = [gradient([row], [graph.one], self.u) for row in rows]
        rest = substitute(rows, dict.fromkeys((*rates, *self.u, *self.auxiliary), graph.zero))
        right = [[*(-y for y in Y_row), -f] for Y_row, f in zip(Y, rest, strict=True)]
        try:
            solution = solve_linear(M, right, self.samples).rows
        except ZeroDivisionError as error:
            names = ", ".join(symbol_name(q) for q in model.coordinates)
            raise ModelError(
                f"the kinematical equations cannot be solved for the derivatives of {names}: their matrix is singular"
            ) from error
        return tuple(tuple(row[:-1]) for row in solution), tuple(row[-1] for row in solution)

    def _kept_positions(self) -> list[Node]:
        """The constraints on positions that the kinematics keep by themselves, norms of Euler parameters included."""
        kept = [self.norm(group) for group in self.norms]
        for phi in self.settled([self.lower(expression) for expression in self.model.constraints_on(POSITION)]):
            slope = gradient([phi], [self.graph.one], self.q)
            if self.vanish([*(self.graph.dot(slope, column) for column in zip(*self.C, strict=True)), self.rate(phi)]):
                kept.append(phi)
        return kept

    def _moved_onto(self, kept: Sequence[Node]) -> tuple[State, ...]:
        """The random states moved to satisfy these constraints on positions.

        Elsewhere, matrices of direction cosines, for example, are no rotations, and equal expressions differ.
        """
        newton, generator = Newton(kept, self.q), random.Random(1843)

        def moved(state: State) -> State:
            """Where the method does not converge from positive coordinates, it may from others."""
            for _ in range(DRAWS):
                found = newton.solve(state)
                if found is not None:
                    return found
                state = {**state, "q": [generator.uniform(-1.1, 1.1) for _ in self.q]}
            return state

        return tuple(map(moved, self.states))

    def norm(self, group: Sequence[int]) -> Node:
        """``e.e - 1`` of a group of Euler parameters."""
        return self.graph.sum([*(self.q[k] * self.q[k] for k in group), -self.graph.one])

    def _extend_symbols(self) -> None:
        """Add the symbols q', q'', u' and those of the rates of inputs and states."""
        t, model = dynamicsymbols._t, self.model
        for q, rate in zip(model.coordinates, self.qdot, strict=True):
            self._symbols[Derivative(q, t)] = rate
            self._symbols[Derivative(q, (t, 2))] = self.full_rate(rate)
        for u, udot in zip(model.speeds, self.udot, strict=True):
            self._symbols[Derivative(u, t)] = udot
        for u in model.auxiliary_speeds:
            self._symbols[Derivative(u, t)] = self.graph.zero
        for u, node in self.former.items():
            self._symbols[Derivative(u, t)] = self.full_rate(node)
        for item, first in zip(model.inputs, self.input_rates, strict=True):
            if first is not None:
                self._symbols[Derivative(item.symbol, t)] = first
                self._symbols[Derivative(item.symbol, (t, 2))] = self.rate(first)
        lowering = Lowering(self.graph, self._symbols)
        self.sdot = tuple(lowering.lower(rate) for rate in model.states.values())
        self._symbols.update(zip((Derivative(s, t) for s in model.states), self.sdot, strict=True))

    # -- time derivatives -----------------------------------------------------------------------------------

    @cached_property
    def moving(self) -> dict[Node, Node]:
        """The rates of time, inputs and coordinates, by node."""
        seeds = {self.t: self.graph.one}
        seeds.update((node, rate) for node, rate in zip(self.r, self.input_rates, strict=True) if rate is not None)
        seeds.update(zip(self.q, self.qdot, strict=True))
        return seeds

    @cached_property
    def rate(self) -> Callable[[Node], Node]:
        """d/dt at u' = 0."""
        return Tangent(self.graph, self.moving)

    @cached_property
    def full_rate(self) -> Callable[[Node], Node]:
        """d/dt with the accelerations ``udot`` as inputs."""
        return Tangent(self.graph, {**self.moving, **dict(zip(self.u, self.udot, strict=True))})

    @cached_property
    def partials(self) -> tuple[Tangent, ...]:
        """d/du_r for every speed; applied to velocities, they give the partial velocities."""
        return tuple(Tangent(self.graph, {u: self.graph.one}) for u in self.u)

    def partial_velocities(self, velocity: Triple) -> dict[int, Triple]:
        """The nonzero partial velocities of a velocity by index of the speed."""
        partial = {r: mapped(derivative, velocity) for r, derivative in enumerate(self.partials)}
        return {r: v for r, v in partial.items() if not is_null(v)}

    @cached_property
    def acceleration_partials(self) -> tuple[Tangent, ...]:
        """d/du'_r for every speed."""
        return tuple(Tangent(self.graph, {a: self.graph.one}) for a in self.udot)

    # -- lowering and geometry ------------------------------------------------------------------------------

    def lower(self, expression: Any) -> Node:
        return self._lowering.lower(expression)

    def lower_with(self, expression: Any, symbols: Mapping[Any, Node]) -> Node:
        """The node of an expression that also contains the keys of ``symbols``."""
        return Lowering(self.graph, {**self._symbols, **symbols}).lower(expression)

    @cached_property
    def frames(self) -> Frames:
        return Frames(self.graph, self.model.frame, self.model.geometry, self.lower, self.rate)

    @cached_property
    def points(self) -> Points:
        """Points with their true accelerations."""
        return Points(self.frames, self.model.geometry.routes, self.rate, self.agree)

    @cached_property
    def gravity(self) -> Triple | None:
        """The uniform gravitational acceleration, inertial components, m/s^2."""
        if self.model.gravity is None:
            return None
        return self.frames.express(self.frames.lower_vector(self.model.gravity), self.model.frame)

    @cached_property
    def weighted_points(self) -> Points:
        """Points with gravity subtracted from their accelerations, so that inertia forces include the weights."""
        return self.points.with_gravity(self.gravity)

    @cached_property
    def aside(self) -> System:
        """The same model over another graph, for tests whose nodes must not change the order of this graph's nodes."""
        graph = Graph()
        return System(self.model, graph, dict(zip(self.former, copied(self.former.values(), graph), strict=True)))

    def require_affine_velocities(self, mass_matrix: Sequence[Node]) -> None:
        """Require velocities that are affine in the speeds; otherwise the kinetic-energy matrix depends on speeds.

        Raises
        ------
        DerivationError
            If Q depends on a speed, naming it.
        """
        present = {node.index for node in reachable(mass_matrix)}
        for speed, node in zip(self.model.speeds, self.u, strict=True):
            if node.index in present and not self.are_constant(mass_matrix, [node]):
                raise DerivationError(
                    f"a velocity is not affine in speed {symbol_name(speed)}: the kinetic-energy matrix depends on it; "
                    f"expected velocities and angular velocities (set_vel, set_ang_vel) linear in speeds plus a rest"
                )
