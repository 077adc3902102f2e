"""The system over the graph: symbols as nodes, q' = C u + D, time derivatives, frames and points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from sympy import Derivative
from sympy.physics.vector import dynamicsymbols

from kanegen.derivation.algebra.elimination import solve_linear
from kanegen.derivation.geometry.frames import Frames
from kanegen.derivation.geometry.points import Points
from kanegen.derivation.geometry.variables import Variables
from kanegen.derivation.geometry.vectors import Triple, is_null, mapped
from kanegen.errors import DerivationError, ModelError
from kanegen.graph import Graph, Lowering, Node, Tangent, copied, gradient, reachable, substitute
from kanegen.model.description import SystemDescription
from kanegen.model.expressions import symbol_name


class System(Variables):
    """One model lowered to one graph. Everything derived from it is a node of ``graph``.

    ``former``: the speeds before the changes of speeds of the model, by symbol, in those after them.
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

    def _kinematics(self) -> tuple[tuple[tuple[Node, ...], ...], tuple[Node, ...]]:
        """C and D of ``q' = C u + D`` from the kinematical equations, affine in q' and u."""
        graph, model = self.graph, self.model
        rates = tuple(graph.input("qdot", i) for i in range(len(self.q)))
        t = dynamicsymbols._t
        symbols = dict(self._symbols)
        symbols.update((Derivative(q, t), rate) for q, rate in zip(model.coordinates, rates, strict=True))
        lowering = Lowering(graph, symbols)
        rows = [lowering.lower(equation) for equation in model.kinematics]
        M = [gradient([row], [graph.one], rates) for row in rows]
        Y = [gradient([row], [graph.one], self.u) for row in rows]
        at_rest = dict.fromkeys((*rates, *self.u, *self.auxiliary), graph.zero)
        rest = substitute(rows, at_rest)
        right = [[*(-y for y in Y_row), -f] for Y_row, f in zip(Y, rest, strict=True)]
        try:
            solution = solve_linear(M, right, self.magnitudes)
        except ZeroDivisionError as error:
            names = ", ".join(symbol_name(q) for q in model.coordinates)
            raise ModelError(
                f"the kinematical equations cannot be solved for the derivatives of {names}: their matrix is singular"
            ) from error
        return tuple(tuple(row[:-1]) for row in solution), tuple(row[-1] for row in solution)

    def _extend_symbols(self) -> None:
        """q', q'', u' and the rates of inputs become symbols of their own."""
        t, model = dynamicsymbols._t, self.model
        for q, rate in zip(model.coordinates, self.qdot, strict=True):
            self._symbols[Derivative(q, t)] = rate
            self._symbols[Derivative(q, (t, 2))] = self.full_rate(rate)
        for u, udot in zip(model.speeds, self.udot, strict=True):
            self._symbols[Derivative(u, t)] = udot
        for u, node in self.former.items():
            self._symbols[Derivative(u, t)] = self.full_rate(node)
        for item, first in zip(model.inputs, self.input_rates, strict=True):
            if first is not None:
                self._symbols[Derivative(item.symbol, t)] = first
                self._symbols[Derivative(item.symbol, (t, 2))] = self.rate(first)

    # -- time derivatives -----------------------------------------------------------------------------------

    @cached_property
    def _moving(self) -> dict[Node, Node]:
        seeds = {self.t: self.graph.one}
        seeds.update((node, rate) for node, rate in zip(self.r, self.input_rates, strict=True) if rate is not None)
        seeds.update(zip(self.q, self.qdot, strict=True))
        return seeds

    @cached_property
    def rate(self) -> Callable[[Node], Node]:
        """d/dt at u' = 0."""
        return Tangent(self.graph, self._moving)

    @cached_property
    def full_rate(self) -> Callable[[Node], Node]:
        """d/dt with the accelerations ``udot`` as inputs."""
        return Tangent(self.graph, {**self._moving, **dict(zip(self.u, self.udot, strict=True))})

    @cached_property
    def partials(self) -> tuple[Tangent, ...]:
        """d/du_r for every speed: of velocities, the partial velocities."""
        return tuple(Tangent(self.graph, {u: self.graph.one}) for u in self.u)

    def partial_velocities(self, velocity: Triple) -> dict[int, Triple]:
        """The partial velocities of a velocity that are not zero, by the index of the speed."""
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
        """The node of an expression with symbols of its own."""
        return Lowering(self.graph, {**self._symbols, **symbols}).lower(expression)

    @cached_property
    def frames(self) -> Frames:
        return Frames(self.graph, self.model.frame, self.model.geometry, self.lower, self.rate)

    @cached_property
    def points(self) -> Points:
        """Points with their true accelerations."""
        return Points(self.graph, self.frames, self.model.geometry.routes, self.rate, self.agree)

    @cached_property
    def gravity(self) -> Triple | None:
        """The uniform gravitational acceleration, inertial components, m/s^2."""
        if self.model.gravity is None:
            return None
        return self.frames.express(self.frames.lower_vector(self.model.gravity), self.model.frame)

    @cached_property
    def weighted_points(self) -> Points:
        """Points whose accelerations are taken minus gravity: their inertia forces then contain the weights."""
        if self.gravity is None:
            return self.points
        gx, gy, gz = self.gravity
        return self.points.with_base_acceleration((-gx, -gy, -gz))

    @cached_property
    def aside(self) -> System:
        """The same model over another graph, for questions whose nodes must not get between those of this graph."""
        graph = Graph()
        return System(self.model, graph, dict(zip(self.former, copied(self.former.values(), graph), strict=True)))

    def require_affine_velocities(self, mass_matrix: Sequence[Node]) -> None:
        """Refuse velocities that are not affine in the speeds: the kinetic-energy matrix then depends on speeds.

        Raises
        ------
        DerivationError
            Naming the speed.
        """
        present = {node.index for node in reachable(mass_matrix)}
        for speed, node, partial in zip(self.model.speeds, self.u, self.partials, strict=True):
            if node.index in present and not self.vanish(partial(entry) for entry in mass_matrix):
                raise DerivationError(
                    f"a velocity is not affine in speed {symbol_name(speed)}: the kinetic-energy matrix depends on it; "
                    f"expected velocities and angular velocities (set_vel, set_ang_vel) linear in speeds plus a rest"
                )
