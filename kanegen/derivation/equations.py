"""The equations of motion of a model, each quantity derived when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeVar, cast

import sympy
from sympy import Derivative
from sympy.physics.vector import dynamicsymbols

from kanegen.derivation import forms
from kanegen.derivation.constraints.constraints import (
    Constraints,
    Partition,
    gain_names,
    lower_constraints,
    named_dependent,
    partition,
    stabilized_bias,
)
from kanegen.derivation.forces import energies
from kanegen.derivation.forces.power import Power
from kanegen.derivation.forces.reactions import MULTIPLIERS, auxiliary_loads, reaction_nodes
from kanegen.derivation.geometry.system import System
from kanegen.derivation.inertia.bodies import Body, lower_bodies
from kanegen.derivation.inertia.mass_matrix import mass_matrix
from kanegen.derivation.quantity import Quantity
from kanegen.derivation.speeds.changes import lower_model, model_before, new_speeds
from kanegen.derivation.speeds.orthogonal import factors
from kanegen.errors import BuildError
from kanegen.graph import Graph, Identities, Node, count_operations
from kanegen.model import Model
from kanegen.model.expressions import symbol_name

Feature = TypeVar("Feature")

SQUARE_LIMIT = 24
"""Largest symmetric solve written out as straight-line code: 0.65 of the time of the loop kernel at 14 unknowns, 0.57
to 0.94 at 20, for twice the time to compile."""

PIVOT_LIMIT = 1e-3
"""Constraint pivots below this fraction of their row cost more than three digits: other speeds are then solved for."""


class Equations:
    """``Q u' = P + J^T lambda``, ``J u' = b`` and everything that follows, over one expression graph.

    Quantities are :class:`Quantity` records: ``equations.T.to_sympy()``, ``equations.T.operation_count``. Without
    stabilization unless named ``..._stabilized``.
    """

    def __init__(self, system: System) -> None:
        self.model = system.model
        self.system = system
        self._features: dict[Callable[[Equations], Any], Any] = {}

    @property
    def graph(self) -> Graph:
        return self.system.graph

    @property
    def operation_count(self) -> int:
        """Operations of the whole right-hand side q', u' in reduced form, the solve included."""
        accelerations = self.accelerations(stabilized=False)
        return count_operations([*self.system.qdot, *accelerations.udot])

    # -- intermediate results ----------------------------------------------------------------------------

    @cached_property
    def bodies(self) -> tuple[Body, ...]:
        return lower_bodies(self.system)

    @cached_property
    def constraints(self) -> Constraints:
        return lower_constraints(self.system, self._final)

    @cached_property
    def partition(self) -> Partition:
        """Dependent and independent speeds with A and B; refuses redundant constraints."""
        named = named_dependent(self.system, self.constraints)
        return partition(self.system, self.constraints, named, self._final)

    def require_independent_constraints(self) -> None:
        """Raise the BuildError that names a redundant constraint, if there is one."""
        _ = self.partition

    @cached_property
    def has_partition(self) -> bool:
        """Whether the constraints are independent, so that dependent speeds can be solved for."""
        try:
            return bool(self.partition)
        except BuildError:
            return False

    @cached_property
    def mass_matrix(self) -> tuple[tuple[Node, ...], ...]:
        change, graph = self.model.speed_change, self.graph
        if change is not None and change.orthogonal:
            return forms.diagonal(graph, self._final(factors(lower_model(change.before, self.graph)).diagonal))
        Q = tuple(self._final(row) for row in mass_matrix(self.system, self.bodies))
        self.system.require_affine_velocities([entry for row in Q for entry in row])
        return Q

    @cached_property
    def right_side(self) -> tuple[Node, ...]:
        """P; the accelerations of the points include the weights."""
        return self._final(self._all_forces.generalized(self.system.u))

    @cached_property
    def _all_forces(self) -> Power:
        power = Power(self.system)
        power.add_loads(self.bodies, weights=False)
        power.add_inertia(self.bodies, self.system.weighted_points)
        return power

    def accelerations(self, stabilized: bool) -> forms.Accelerations:
        """Straight-line u' in reduced form."""
        part = self.partition
        B = part.B_stabilized if stabilized else part.B
        try:
            return forms.reduced_accelerations(self.graph, self.reduced(stabilized), part, B, PIVOT_LIMIT)
        except ZeroDivisionError as error:
            raise self.massless(part.independent[error.args[0]]) from error

    def require_mass(self) -> None:
        """Raise the BuildError that names an independent speed without any inertia, if there is one."""
        for speed, row in zip(self.partition.independent, self.reduced(stabilized=False).lower, strict=True):
            if row[-1].is_zero:
                raise self.massless(speed)

    def require_full_mass(self) -> None:
        """Raise the BuildError that names a speed without any inertia of its own: Q is then not positive definite."""
        for speed, row in enumerate(self.mass_matrix):
            if row[speed].is_zero:
                raise self.massless(speed)

    def massless(self, speed: int) -> BuildError:
        """The error for a speed that moves no mass."""
        return BuildError(
            f"speed {symbol_name(self.model.speeds[speed])} of model {self.model.name!r} moves no mass (together with "
            f"the speeds that follow from it): give the bodies it moves a mass or an inertia, or constrain it"
        )

    def reduced(self, stabilized: bool) -> forms.ReducedEquations:
        """The momentum rows in the independent accelerations."""
        part = self.partition
        B = part.B_stabilized if stabilized else part.B
        plain = forms.reduced(self.graph, self.mass_matrix, self.right_side, part, B)
        return forms.ReducedEquations(tuple(map(self._final, plain.lower)), self._final(plain.right))

    def once(self, feature: Callable[[Equations], Feature]) -> Feature:
        """What ``feature`` derives from these equations, derived when it is first asked for.

        Servo-constraints, control constraints and other additions take the equations, which do not know them;
        ``equations.once(servo_equations)`` gives all who ask the same instance.
        """
        if feature not in self._features:
            self._features[feature] = feature(self)
        return cast(Feature, self._features[feature])

    # -- quantities -----------------------------------------------------------------------------------------

    @cached_property
    def Q(self) -> Quantity:
        """Kinetic-energy matrix, (n_u, n_u)."""
        return self._matrix("Q", self.mass_matrix, len(self.system.u))

    @cached_property
    def Qdot(self) -> Quantity:
        """dQ/dt along the motion, (n_u, n_u)."""
        rates = [[self.system.rate(entry) for entry in row] for row in self.mass_matrix]
        return self._matrix("Qdot", rates, len(self.system.u))

    @cached_property
    def P(self) -> Quantity:
        """``P = F - L``, (n_u,)."""
        return self._vector("P", self.right_side)

    @cached_property
    def F(self) -> Quantity:
        """Generalized active forces, (n_u,)."""
        power = Power(self.system)
        power.add_loads(self.bodies, weights=True)
        return self._vector("F", power.generalized(self.system.u))

    @cached_property
    def L(self) -> Quantity:
        """Minus the generalized inertia forces at u' = 0, (n_u,)."""
        power = Power(self.system)
        power.add_inertia(self.bodies, self.system.points)
        return self._vector("L", [-x for x in power.generalized(self.system.u)])

    @cached_property
    def N(self) -> Quantity:
        """``N_r = sum m v_r.v_t + w_r.I.w_t``, (n_u,)."""
        return self._vector("N", energies.momentum_remainder(self.system, self.bodies))

    @cached_property
    def momentum(self) -> Quantity:
        """Generalized momenta ``Q u + N``, (n_u,)."""
        return self._vector("momentum", energies.momentum(self.system, self.bodies, self.system.u))

    @cached_property
    def linear_momentum(self) -> Quantity:
        """``sum m v`` of all bodies, (3,), kg m/s, components in the inertial frame."""
        points, frames = self.system.points, self.system.frames
        motions = [(body.mass, points.motion(body.point)) for body in self.bodies if not body.mass.is_zero]
        velocities = [(mass, frames.express({x.frame: x.velocity}, frames.inertial)) for mass, x in motions]
        return self._vector("linear_momentum", [self.graph.sum(m * v[k] for m, v in velocities) for k in range(3)])

    @cached_property
    def kinetic_energy(self) -> Quantity:
        return self._scalar("kinetic_energy", energies.kinetic_energy(self.system, self.bodies))

    @cached_property
    def potential_energy(self) -> Quantity:
        return self._scalar("potential_energy", energies.potential_energy(self.system, self.bodies))

    @cached_property
    def energy(self) -> Quantity:
        return self._scalar("energy", self.kinetic_energy.nodes[0] + self.potential_energy.nodes[0])

    @cached_property
    def J(self) -> Quantity:
        """Constraint rows at acceleration level, (n_c, n_u)."""
        return self._matrix("J", [row.J for row in self.constraints.rows], len(self.system.u))

    @cached_property
    def b(self) -> Quantity:
        """``J u' = b`` without stabilization, (n_c,)."""
        return self._vector("b", [row.bias for row in self.constraints.rows])

    @cached_property
    def b_stabilized(self) -> Quantity:
        """b with Baumgarte's terms, the gains as symbols ``G1[i, j]``, ``G2[i, j]``, ``G[i, j]``."""
        return self._vector("b_stabilized", stabilized_bias(self.system, self.constraints))

    @cached_property
    def A(self) -> Quantity:
        """``u_D' = A u_I' + B``, (n_d, n_i)."""
        return self._matrix("A", self.partition.A, len(self.partition.independent))

    @cached_property
    def B(self) -> Quantity:
        return self._vector("B", self.partition.B)

    @cached_property
    def B_stabilized(self) -> Quantity:
        return self._vector("B_stabilized", self.partition.B_stabilized)

    @cached_property
    def A1(self) -> Quantity:
        """``A1 = [-A I]``, (n_d, n_u), columns in speed order."""
        n_u = len(self.system.u)
        return self._matrix("A1", forms.constraint_matrix(self.graph, self.partition, n_u), n_u)

    @cached_property
    def A2(self) -> Quantity:
        """``A2 = [I A^T]``, (n_i, n_u), columns in speed order."""
        n_u = len(self.system.u)
        return self._matrix("A2", forms.tangent_matrix(self.graph, self.partition, n_u), n_u)

    @cached_property
    def T(self) -> Quantity:
        """``T u' = V``, (n_u, n_u): constraint rows, then momentum rows."""
        return self._matrix("T", self._nonminimal(self.partition.B)[0], len(self.system.u))

    @cached_property
    def V(self) -> Quantity:
        return self._vector("V", self._nonminimal(self.partition.B)[1])

    @cached_property
    def V_stabilized(self) -> Quantity:
        return self._vector("V_stabilized", self._nonminimal(self.partition.B_stabilized)[1])

    def _nonminimal(self, B: Sequence[Node]) -> tuple[list[list[Node]], list[Node]]:
        return forms.nonminimal(self.graph, self.mass_matrix, self.right_side, self.partition, B)

    @cached_property
    def qdot(self) -> Quantity:
        """``q' = C u + D``, (n_q,)."""
        return self._vector("qdot", self.system.qdot)

    @cached_property
    def old_speeds(self) -> Quantity:
        """The speeds before the last change, ``u = Phi1^-1 (w - Phi2)``, (n_u,)."""
        before = model_before(self.model)
        return self._vector("old_speeds", [self.system.former[speed] for speed in before.speeds])

    @cached_property
    def new_speeds(self) -> Quantity:
        """``w = Phi1 u + Phi2``, (n_u,), the array ``u`` holding the speeds before the last change."""
        names = {**self.names, **{("u", i): speed for i, speed in enumerate(model_before(self.model).speeds)}}
        return Quantity("new_speeds", self._final(new_speeds(self.system)), (len(self.system.u),), names)

    @cached_property
    def udot(self) -> Quantity:
        """The accelerations in closed form (reduced), (n_u,)."""
        return self._vector("udot", self.accelerations(stabilized=False).udot)

    @cached_property
    def constraint_force(self) -> Quantity:
        """Generalized constraint forces ``Fc = Q u' - P``, (n_u,), with the accelerations u' as symbols."""
        inertia = forms.matrix_vector(self.graph, self.mass_matrix, self.system.udot)
        return self._vector("constraint_force", [x - y for x, y in zip(inertia, self.right_side, strict=True)])

    @cached_property
    def positions(self) -> Quantity:
        """Residuals phi of the holonomic constraints, then of implied ones and of invariants."""
        return self._vector("positions", [item.position for item in self.constraints.positions])

    @cached_property
    def velocities(self) -> Quantity:
        """Residuals phi' and psi of the holonomic and nonholonomic constraints."""
        rows = (*self.constraints.holonomic, *self.constraints.nonholonomic)
        return self._vector("velocities", [row.residuals[-1] for row in rows])

    @cached_property
    def outputs(self) -> dict[str, Quantity]:
        """The user's outputs; the u' in them are the solved accelerations."""
        auxiliary = auxiliary_loads(self.system, self.bodies, self._all_forces, self.right_side)
        result = {}
        for name, output in self.model.outputs.items():
            nodes = tuple(self.system.lower(expression) for expression in output.expressions)
            result[name] = Quantity(name, self._final(nodes), output.shape, self.names)
        for speed, node in zip(self.model.auxiliary_speeds, auxiliary, strict=True):
            result[symbol_name(speed)] = self._scalar(symbol_name(speed), node)
        return result

    @cached_property
    def reactions(self) -> dict[str, Quantity]:
        """Force and torque (6,) of every reaction, with u' and the multipliers as symbols."""
        n_c = len(self.constraints.rows)
        return {
            name: self._vector(name, reaction_nodes(self.system, self.bodies, name, reaction, n_c))
            for name, reaction in self.model.reactions.items()
        }

    @cached_property
    def gain_names(self) -> tuple[str, ...]:
        return gain_names(self.constraints)

    @cached_property
    def _identities(self) -> Identities:
        return Identities(self.graph)

    def _final(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """The nodes without auxiliary speeds, one node for all that are algebraically equal."""
        return tuple(self._identities.canonical(self.system.settled(nodes)))

    def simplified(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """Nodes derived from these equations in the form of their quantities: equal ones are one node."""
        return self._final(nodes)

    # -- display --------------------------------------------------------------------------------------------

    @cached_property
    def names(self) -> dict[tuple[str, int], Any]:
        """The SymPy expression of every input node."""
        model, t = self.model, dynamicsymbols._t
        arrays: dict[str, Iterable[Any]] = {
            "t": [t],
            "q": model.coordinates,
            "u": model.speeds,
            "udot": [Derivative(u, t) for u in model.speeds],
            "aux": model.auxiliary_speeds,
            "r": model.input_symbols,
            "p": model.parameters,
            MULTIPLIERS: [sympy.Symbol(f"lambda_{k}") for k in range(len(self.constraints.rows))],
            "g": [sympy.Symbol(name) for name in self.gain_names],
        }
        return {(array, i): item for array, items in arrays.items() for i, item in enumerate(items)}

    def _scalar(self, name: str, node: Node) -> Quantity:
        return Quantity(name, self._final([node]), (), self.names)

    def _vector(self, name: str, nodes: Sequence[Node]) -> Quantity:
        return Quantity(name, self._final(nodes), (len(nodes),), self.names)

    def _matrix(self, name: str, rows: Sequence[Sequence[Node]], columns: int) -> Quantity:
        nodes = self._final([x for row in rows for x in row])
        return Quantity(name, nodes, (len(rows), columns), self.names)


def derive(model: Model) -> Equations:
    """The equations of motion of ``model``.

    The state of the derivation is one expression graph; each quantity is derived when it is first read.

    Raises
    ------
    DerivationError
        Where an expression of the model cannot be lowered or has no derivative.
    ModelError
        Where kinematics or constraints turn out singular or contradictory.
    """
    return Equations(lower_model(model))
