"""The equations of motion of a model; each quantity is derived when it is first read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from math import inf
from types import ModuleType
from typing import Any, TypeVar, cast

import sympy
from sympy import Derivative
from sympy.physics.vector import dynamicsymbols

from kanegen.derivation import forms
from kanegen.derivation.algebra import PIVOT_LIMIT
from kanegen.derivation.constraints import (
    Constraints,
    Partition,
    lower_constraints,
    partition,
    solved_partition,
    stabilized_bias,
    stabilizing_terms,
)
from kanegen.derivation.forces import generalized
from kanegen.derivation.forces.accelerated import asymmetry, require_regular, unequal_entries, unsteady_factors
from kanegen.derivation.forces.generalized import GeneralizedForces
from kanegen.derivation.forces.inertia import Inertia, active_forces, inertia_forces, inertia_of, kinetic_energy
from kanegen.derivation.forces.reactions import MULTIPLIERS, auxiliary_loads, reaction_nodes
from kanegen.derivation.geometry.system import System
from kanegen.derivation.inertia.articulated import ArticulatedSystem, articulated_system
from kanegen.derivation.inertia.bodies import Body
from kanegen.derivation.inertia.loads import CoupledLoadsError
from kanegen.derivation.inertia.loops import Loops
from kanegen.derivation.speeds import factors, lower_model, model_before, new_speeds
from kanegen.derivation.typeset import equations_table, quantity_display
from kanegen.errors import BuildError
from kanegen.graph import Graph, Identities, Node, balanced, count_operations, to_sympy, to_sympy_cse
from kanegen.model import Baumgarte, Model
from kanegen.model.expressions import symbol_name
from kanegen.model.inputs import FORCES, FREE

Feature = TypeVar("Feature")

SQUARE_LIMIT = 24
"""Largest symmetric system that straight-line code solves. It takes 0.65 of the time of the loop kernel at 14 unknowns
and 0.57 to 0.94 at 20, and twice the time to compile."""


Names = Mapping[tuple[str, int], Any]


@dataclass(frozen=True)
class Quantity:
    """A named quantity: ``nodes`` in row-major order with ``shape`` (), (rows,) or (rows, columns)."""

    name: str
    nodes: tuple[Node, ...]
    shape: tuple[int, ...]
    names: Names

    @property
    def operation_count(self) -> int:
        """Operations of one evaluation, without those that involve parameters only."""
        return count_operations(self.nodes)

    def to_sympy(self, cse: bool = False) -> Any:
        """The quantity as a SymPy expression (scalars) or ``ImmutableDenseMatrix`` (vectors are columns).

        With ``cse=True``, returns a pair ``(replacements, expression)`` like ``sympy.cse``, in which every shared node
        appears once. Large quantities need it, since the plain expression repeats these nodes.
        """
        if cse:
            replacements, expressions = to_sympy_cse(self.nodes, self.names)
            return replacements, self._shaped(expressions)
        return self._shaped(to_sympy(self.nodes, self.names))

    def _repr_latex_(self) -> str:
        """What a notebook shows: the quantity as a formula, shortened if it is large, with a notice."""
        return quantity_display(self)

    def _shaped(self, expressions: list[Any]) -> Any:
        if not self.shape:
            return expressions[0]
        rows, columns = self.shape if len(self.shape) == 2 else (self.shape[0], 1)
        return sympy.ImmutableDenseMatrix(rows, columns, expressions)


class Derived(cached_property[Quantity]):
    """An attribute of :class:`Equations`: the quantity of the same name, derived when it is first read."""

    def __init__(self, make: Callable[[Equations, str], Quantity], description: str) -> None:
        super().__init__(lambda equations: make(equations, str(self.attrname)))
        self.__doc__ = description


def _scalar(node: Callable[[Equations], Node], description: str) -> Derived:
    return Derived(lambda e, name: e.quantity(name, [node(e)], ()), description)


def _vector(nodes: Callable[[Equations], Sequence[Node]], description: str) -> Derived:
    return Derived(lambda e, name: e.quantity(name, nodes(e)), description)


def _matrix(
    rows: Callable[[Equations], forms.Matrix],
    description: str,
    columns: Callable[[Equations], int] = lambda e: len(e.system.u),
) -> Derived:
    def make(equations: Equations, name: str) -> Quantity:
        matrix = rows(equations)
        return equations.quantity(name, [x for row in matrix for x in row], (len(matrix), columns(equations)))

    return Derived(make, description)


class Equations:
    """``M u' = P + J^T lambda``, ``J u' = b`` and the quantities that follow from them, over one expression graph.

    M is the kinetic-energy matrix Q, unless loads depend on accelerations: ``F = F0 + F1 u'`` gives ``M = Q - F1``,
    which can be unsymmetric. Energies and momenta follow from Q.

    Quantities are :class:`Quantity` records: ``equations.T.to_sympy()``, ``equations.T.operation_count``. Only those
    named ``..._stabilized`` contain terms of a stabilization.
    """

    def __init__(self, system: System) -> None:
        self.model = system.model
        self.system: System = system
        self._features: dict[Callable[[Equations], Any], Any] = {}
        self._eliminated: ArticulatedSystem | None = None

    def _repr_html_(self) -> str:
        """What a notebook shows: q', Q, P, J and b with their shapes and operation counts."""
        return equations_table(self).html()

    @property
    def graph(self) -> Graph:
        return self.system.graph

    def to_jax(
        self,
        form: str = "auto",
        functions: str | Sequence[str] | None = None,
        stabilization: Baumgarte | None = None,
    ) -> ModuleType:
        """The functions of the model as pure functions of JAX, in a module (docs/jax.md).

        The module has a function ``f(t, y, r=None, p=None)`` for each name in its dictionary ``FUNCTIONS``, such as
        ``rhs``: y = (q, u, s) are coordinates, speeds and states, r the inputs and p the parameters, each an array, a
        mapping from names to values, or None for the values of the model. They work under `jax.jit`, `jax.vmap`,
        `jax.grad`, `jax.jacfwd` and `jax.jacrev`, and run on every device. Values that do not exist are NaN.

        Parameters
        ----------
        form, functions
            As for :func:`kanegen.build`.
        stabilization
            Gains of the constraints, which are constants of the functions; None: no stabilization.

        Raises
        ------
        SolveError
            If jax is missing.
        BuildError
            For constraints that the form cannot handle, options that do not exist, and projection.
        """
        # The layer is named, not imported: equations do not know who prints them. The model is derived again, so that
        # the code does not depend on what was derived before.
        module: ModuleType = import_module("kanegen.emission.jax").to_jax(self.model, form, functions, stabilization)
        return module

    @property
    def operation_count(self) -> int:
        """Operations of the right-hand side (q', u', s') in reduced form, including the solve."""
        return count_operations([*self.system.qdot, *self.accelerations(stabilized=False).udot, *self.system.sdot])

    # -- intermediate results ----------------------------------------------------------------------------

    @cached_property
    def bodies(self) -> tuple[Body, ...]:
        return self.inertia.bodies

    @cached_property
    def inertia(self) -> Inertia:
        """The inertia of the bodies or of the Lagrangian."""
        return inertia_of(self.system)

    @cached_property
    def constraints(self) -> Constraints:
        return lower_constraints(self.system, self.simplified)

    @property
    def gain_names(self) -> tuple[str, ...]:
        """Names of the elements of the gain array, in order."""
        return self.constraints.gain_names

    @cached_property
    def partition(self) -> Partition:
        """Dependent and independent speeds with A and B; BuildError for redundant constraints."""
        return partition(self.system, self.constraints, self.simplified)

    @cached_property
    def solved_partition(self) -> Partition:
        """`partition` with A and B that are defined wherever the constraints determine the dependent speeds."""
        rows, biases = self.constraints.rows, zip(self.b.nodes, self.b_stabilized.nodes, strict=True)
        return solved_partition(self.system, self.partition, [row.J for row in rows], list(biases))

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
            return forms.diagonal(graph, self.simplified(factors(lower_model(change.before, graph)).diagonal))
        Q = tuple(self.simplified(row) for row in self.inertia.matrix())
        self.system.require_affine_velocities([entry for row in Q for entry in row])
        return Q

    @cached_property
    def left_side(self) -> tuple[tuple[Node, ...], ...]:
        """M, the rows of Q themselves if no load depends on accelerations."""
        if not self.model.is_accelerated:
            return self.mass_matrix
        slopes = [[partial(force) for partial in self.system.acceleration_partials] for force in self._forces]
        return tuple(
            self.simplified(forms.difference(row, self.system.without_accelerations(slope)))
            for row, slope in zip(self.mass_matrix, slopes, strict=True)
        )

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether M is symmetric. Equal nodes show it; values at some states would not, if expressions have cases."""
        if not self.model.is_accelerated:
            return True
        return not unequal_entries(self.left_side)

    @cached_property
    def right_side(self) -> tuple[Node, ...]:
        """P; the weights are included by subtracting gravity from the accelerations of the points."""
        forces = self._forces
        return self.simplified(self.system.without_accelerations(forces) if self.model.is_accelerated else forces)

    @cached_property
    def _forces(self) -> tuple[Node, ...]:
        """Active forces at u' and inertia forces at u' = 0."""
        return self._all_forces.conjugate_to(self.system.u)

    @cached_property
    def _all_forces(self) -> GeneralizedForces:
        forces = GeneralizedForces(self.system)
        forces.add_loads(self.bodies, weights=False)
        self.inertia.add_forces(forces, potential=True)
        return forces

    def _nonminimal(self, B: Sequence[Node]) -> tuple[list[list[Node]], list[Node]]:
        """T and V."""
        return forms.nonminimal(self.graph, self.left_side, self.right_side, self.partition, B)

    def accelerations(self, stabilized: bool) -> forms.Accelerations:
        """Straight-line u' in reduced form; for an unsymmetric M defined wherever the matrices are regular."""
        part, bias = self.partition, self.partition.bias(stabilized)
        self._require_regular()
        try:
            if not self.is_symmetric:
                part = self.solved_partition
                rows = (self.graph, self.left_side, self.right_side, part, part.bias(stabilized))
                return forms.solved_accelerations(*rows, self.system.samples)
            return forms.reduced_accelerations(self.graph, self.reduced(stabilized), part, bias, PIVOT_LIMIT)
        except ZeroDivisionError as error:
            raise self.massless(part.independent[error.args[0]]) from error

    def reduced(self, stabilized: bool) -> forms.ReducedEquations:
        """The equations of motion in terms of the independent accelerations, for a symmetric M."""
        part = self.partition
        plain = forms.reduced(self.graph, self.left_side, self.right_side, part, part.bias(stabilized))
        return forms.ReducedEquations(tuple(map(self.simplified, plain.lower)), self.simplified(plain.right))

    def articulated_accelerations(self, stabilized: bool) -> forms.Accelerations:
        """u' by elimination of the velocities of the bodies, without Q and P.

        Raises
        ------
        BuildError
            If the model has loads that depend on accelerations (unless they are inertias of few speeds), no bodies,
            velocities of bodies that are not written as sums of multiples of speeds, redundant constraints or a speed
            that moves no mass.
        """
        graph, system = self.graph, self.articulated()
        terms = stabilizing_terms(graph, self.constraints) if stabilized else [[]] * len(system.loops.rows)
        udot = system.accelerations([graph.sum(added) for added in terms])
        nodes = tuple(balanced(self.simplified([*udot, *system.factor.conditions])))
        return forms.Accelerations(nodes[: len(udot)], nodes[len(udot) :])

    def articulated(self, limit: float = inf) -> ArticulatedSystem:
        """The elimination of velocities and multipliers; BuildError as for `articulated_accelerations`.

        A first call raises FillInError if more than ``limit`` entries of matrices are computed.
        """
        if self._eliminated is None:
            self._eliminated = self._articulated(limit)
        return self._eliminated

    def _articulated(self, limit: float) -> ArticulatedSystem:
        name, reason = self.model.name, "the velocity of a body is not written as a sum of multiples of speeds"
        if not self.bodies:
            reason = "it has no bodies"
        else:
            loops = Loops.of(self.system, self.constraints.rows)
            if self.model.dependent_speeds is not None or not loops.are_independent:
                self.require_independent_constraints()
            try:
                system = articulated_system(self.system, self.bodies, self._all_forces.components, loops, limit)
            except CoupledLoadsError as error:
                loads = ", ".join(self.model.accelerated_loads)
                raise BuildError(
                    f'form="articulated" does not accept model {name!r}: the loads on {loads}, which depend on '
                    'accelerations, couple its speeds; use form="auto"'
                ) from error
            except ZeroDivisionError as error:
                if error.args[0] in loops.multipliers:
                    raise BuildError(f"the constraints of model {name!r} are redundant") from error
                raise self.massless(self.system.u.index(error.args[0])) from error
            if system is not None:
                return system
        raise BuildError(f'form="articulated" does not accept model {name!r}: {reason}; use form="auto"')

    def require_mass(self) -> None:
        """Raise the BuildError that names an independent speed without any inertia, if there is one."""
        if self.model.is_accelerated:
            self._require_regular()
            return
        for speed, row in zip(self.partition.independent, self.reduced(stabilized=False).lower, strict=True):
            if row[-1].is_zero:
                raise self.massless(speed)

    def require_full_mass(self) -> None:
        """Raise the BuildError that names a speed with a zero diagonal entry of M, if there is one."""
        for speed, row in enumerate(self.left_side):
            if row[speed].is_zero:
                raise self.massless(speed)

    @property
    def asymmetry(self) -> str | None:
        """In words, which loads make M unsymmetric in which speeds; None for a symmetric M."""
        return None if self.is_symmetric else asymmetry(self.model, self.left_side)

    def unsteady_factors(self, inputs: bool) -> str | None:
        """In words, on which speeds and, if ``inputs``, inputs without a rate and states M depends; None if on none."""
        return unsteady_factors(self.system, self.left_side, inputs) if self.model.is_accelerated else None

    def _require_regular(self) -> None:
        if self.model.is_accelerated:
            require_regular(self.system, self.left_side, [row.J for row in self.constraints.rows])

    def massless(self, speed: int) -> BuildError:
        """The error for a speed that moves no mass."""
        if self.model.is_accelerated:
            return BuildError(
                f"the matrix Q - dF/du' of model {self.model.name!r}, with the loads on "
                f"{', '.join(self.model.accelerated_loads)} that depend on accelerations, has a zero pivot for speed "
                f'{symbol_name(self.model.speeds[speed])}, so that it is not positive definite: use form="nonminimal", '
                f"which needs only its inverse, or give the bodies that the speed moves another mass or inertia"
            )
        return BuildError(
            f"speed {symbol_name(self.model.speeds[speed])} of model {self.model.name!r} moves no mass, nor do the "
            f"speeds that depend on it: {self.inertia.remedy}, or constrain it"
        )

    def once(self, feature: Callable[[Equations], Feature]) -> Feature:
        """The result of ``feature(self)``, computed at the first call and kept.

        Servo-constraints, control constraints and similar features are functions of the equations, not attributes of
        them. Every call ``equations.once(servo_equations)`` returns the same instance.
        """
        if feature not in self._features:
            self._features[feature] = feature(self)
        return cast(Feature, self._features[feature])

    # -- quantities -----------------------------------------------------------------------------------------

    Q = _matrix(lambda e: e.mass_matrix, "Kinetic-energy matrix, (n_u, n_u).")
    Qdot = _matrix(
        lambda e: [[e.system.rate(entry) for entry in row] for row in e.mass_matrix],
        "dQ/dt along the motion, (n_u, n_u).",
    )
    P = _vector(lambda e: e.right_side, "``P = F - L`` at u' = 0, (n_u,).")
    F = _vector(
        lambda e: e.system.without_accelerations(active_forces(e.system, e.inertia)),
        "Generalized active forces at u' = 0, (n_u,).",
    )
    L = _vector(
        lambda e: [-x for x in inertia_forces(e.system, e.inertia)],
        "Minus the generalized inertia forces at u' = 0, (n_u,).",
    )
    N = _vector(
        lambda e: generalized.momentum_remainder(e.system, e.inertia.momenta()),
        "``sum m v_r.v_t + w_r.I.w_t``, (n_u,).",
    )
    momentum = _vector(
        lambda e: generalized.momentum(e.system, e.inertia.momenta(), e.system.u), "Momenta ``Q u + N``, (n_u,)."
    )
    kinetic_energy = _scalar(lambda e: kinetic_energy(e.inertia, e.model), "Kinetic energy, J.")
    potential_energy = _scalar(
        lambda e: e.inertia.potential_energy(),
        "The user's potential energy plus that of gravity, J; DerivationError if the model has none.",
    )
    energy = _scalar(lambda e: e.kinetic_energy.nodes[0] + e.potential_energy.nodes[0], "Total energy, J.")
    J = _matrix(lambda e: [row.J for row in e.constraints.rows], "Constraint rows at acceleration level, (n_c, n_u).")
    b = _vector(lambda e: [row.bias for row in e.constraints.rows], "``J u' = b`` without stabilization, (n_c,).")
    b_stabilized = _vector(
        lambda e: stabilized_bias(e.system, e.constraints),
        "b with Baumgarte's terms, the gains as symbols ``G1[i, j]``, ``G2[i, j]``, ``G[i, j]``.",
    )
    A = _matrix(
        lambda e: e.solved_partition.A, "``u_D' = A u_I' + B``, (n_d, n_i).", lambda e: len(e.partition.independent)
    )
    B = _vector(lambda e: e.solved_partition.B, "``u_D' = A u_I' + B`` without stabilization, (n_d,).")
    B_stabilized = _vector(lambda e: e.solved_partition.B_stabilized, "B with Baumgarte's terms, (n_d,).")
    A1 = _matrix(
        lambda e: forms.constraint_matrix(e.graph, e.solved_partition, len(e.system.u)),
        "``A1 = [-A I]``, (n_d, n_u), columns in speed order.",
    )
    A2 = _matrix(
        lambda e: forms.tangent_matrix(e.graph, e.solved_partition, len(e.system.u)),
        "``A2 = [I A^T]``, (n_i, n_u), columns in speed order.",
    )
    T = _matrix(lambda e: e._nonminimal(e.partition.B)[0], "``T u' = V``, (n_u, n_u): constraint, then momentum rows.")
    V = _vector(lambda e: e._nonminimal(e.partition.B)[1], "``T u' = V`` without stabilization, (n_u,).")
    V_stabilized = _vector(lambda e: e._nonminimal(e.partition.B_stabilized)[1], "V with Baumgarte's terms, (n_u,).")
    qdot = _vector(lambda e: e.system.qdot, "``q' = C u + D``, (n_q,).")
    old_speeds = _vector(
        lambda e: [e.system.former[speed] for speed in model_before(e.model).speeds],
        "The speeds before the last change, ``u = Phi1^-1 (w - Phi2)``, (n_u,).",
    )
    sdot = _vector(lambda e: e.system.sdot, "Rates of the states, (n_s,), with the accelerations u' as symbols.")
    udot = _vector(lambda e: e.accelerations(stabilized=False).udot, "u' in closed form (reduced), (n_u,).")
    constraint_force = _vector(
        lambda e: forms.difference(forms.matrix_vector(e.graph, e.left_side, e.system.udot), e.right_side),
        "Generalized constraint forces ``Fc = M u' - P``, (n_u,), with the accelerations u' as symbols.",
    )
    positions = _vector(
        lambda e: [item.position for item in e.constraints.positions],
        "Residuals phi of the holonomic constraints, then of implied ones and of invariants.",
    )
    velocities = _vector(
        lambda e: [row.residuals[-1] for row in (*e.constraints.holonomic, *e.constraints.nonholonomic)],
        "Residuals phi' and psi of the holonomic and nonholonomic constraints.",
    )

    @cached_property
    def M(self) -> Quantity:
        """Matrix of the accelerations, ``Q - dF/du'``, (n_u, n_u); Q itself if no load depends on accelerations."""
        if not self.model.is_accelerated:
            return self.Q
        rows = self.left_side
        return self.quantity("M", [x for row in rows for x in row], (len(rows), len(rows)))

    @cached_property
    def linear_momentum(self) -> Quantity:
        """``sum m v`` of all bodies, (3,), kg m/s, components in the inertial frame."""
        points, frames = self.system.points, self.system.frames
        motions = [(body.mass, points.motion(body.point)) for body in self.bodies if not body.mass.is_zero]
        velocities = [(mass, frames.express({x.frame: x.velocity}, frames.inertial)) for mass, x in motions]
        return self.quantity("linear_momentum", [self.graph.sum(m * v[k] for m, v in velocities) for k in range(3)])

    @cached_property
    def new_speeds(self) -> Quantity:
        """``w = Phi1 u + Phi2``, (n_u,), the array ``u`` holding the speeds before the last change."""
        names = {**self.names, **{("u", i): speed for i, speed in enumerate(model_before(self.model).speeds)}}
        return replace(self.quantity("new_speeds", new_speeds(self.system)), names=names)

    @cached_property
    def outputs(self) -> dict[str, Quantity]:
        """The user's outputs and the loads of auxiliary speeds; u' are symbols for the solved accelerations."""
        auxiliary: tuple[Node, ...] = ()
        if self.model.auxiliary_speeds:  # without them, neither P nor M is needed
            equations = [*self.right_side, *self.M.nodes]
            auxiliary = auxiliary_loads(self.system, self.inertia, self._all_forces, equations)
        result = {}
        for name, output in self.model.outputs.items():
            result[name] = self.quantity(name, [self.system.lower(x) for x in output.expressions], output.shape)
        for speed, node in zip(map(symbol_name, self.model.auxiliary_speeds), auxiliary, strict=True):
            result[speed] = self.quantity(speed, [node], ())
        return result

    @cached_property
    def reactions(self) -> dict[str, Quantity]:
        """Force and torque (6,) of every reaction, with u' and the multipliers as symbols."""
        n_c = len(self.constraints.rows)
        return {
            name: self.quantity(name, reaction_nodes(self.system, self.bodies, name, reaction, n_c))
            for name, reaction in self.model.reactions.items()
        }

    # -- simplification and display -------------------------------------------------------------------------

    @cached_property
    def _identities(self) -> Identities:
        return Identities(self.graph)

    def simplified(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """The nodes at zero auxiliary speeds; nodes that are algebraically equal become one."""
        return tuple(self._identities.canonical(self.system.settled(nodes)))

    def quantity(self, name: str, nodes: Sequence[Node], shape: tuple[int, ...] | None = None) -> Quantity:
        """A quantity of these nodes after simplification; a vector if no shape is given."""
        return Quantity(name, self.simplified(nodes), (len(nodes),) if shape is None else shape, self.names)

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
            "r": [item.symbol for item in model.inputs],
            "s": model.states,
            FORCES: model.contact_multipliers,
            FREE: model.free_symbols,
            "p": model.parameters,
            MULTIPLIERS: [sympy.Symbol(f"lambda_{k}") for k in range(len(self.constraints.rows))],
            "g": [sympy.Symbol(name) for name in self.gain_names],
        }
        return {(array, i): item for array, items in arrays.items() for i, item in enumerate(items)}


def derive(model: Model) -> Equations:
    """The equations of motion of ``model``.

    All quantities share one expression graph; each is derived when it is first read.

    Raises
    ------
    DerivationError
        If an expression of the model cannot be lowered or has no derivative.
    ModelError
        If the kinematical equations or the constraints are singular or contradictory.
    """
    return Equations(lower_model(model))
