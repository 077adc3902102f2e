"""Derivatives of q', u' and s' with respect to coordinates, speeds, states, inputs, parameters and time.

The accelerations and multipliers solve ``M u' - P - J^T lambda = 0`` and ``J u' - b = 0``. Straight-line expressions
give the derivatives D1 and D2 of these residuals at fixed u' and lambda, and the implicit function theorem gives

    [M  -J^T] [du'     ]     [D1]
    [J    0 ] [dlambda ] = - [D2],

so that no factorization is differentiated (Griewank and Walther 2008, section 15.1). In the tangent space of the
constraints, ``du' = [I A^T]^T du_I' + [0; E]`` with ``E = -J_D^-1 D2``, and the multipliers vanish:
``A2 M A2^T du_I' = -A2 (D1 + M [0; E])`` has the matrix of the reduced equations with other right sides. M is Q, less
dF/du' of loads in u'.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from kanegen.derivation import forms
from kanegen.derivation.algebra import eliminate
from kanegen.derivation.contacts import ContactRows, lower_contacts
from kanegen.derivation.control.feedback import feedback_laws
from kanegen.derivation.equations import Equations, Quantity
from kanegen.derivation.forces.generalized import GeneralizedForces
from kanegen.derivation.forces.reactions import MULTIPLIERS
from kanegen.graph import Graph, Identities, Node, Tangent, count_operations, gradient, substitute
from kanegen.model.inputs import MULTIPLIER

ARGUMENTS: Final = ("q", "u", "s", "r", "p", "t", MULTIPLIER)
"""Arguments with respect to which q', u' and s' are differentiated."""

Rows = tuple[tuple[Node, ...], ...]


class Sensitivities:
    """Derivatives of the residuals, rates and outputs of a model, with one column for each element of an argument.

    Each ``argument`` is one of :data:`ARGUMENTS`.
    """

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self._identities = Identities(equations.graph)
        self._known: dict[str, Quantity] = {}

    def inputs(self, argument: str) -> tuple[Node, ...]:
        """The input nodes of an argument."""
        system = self.equations.system
        nodes = {"q": system.q, "u": system.u, "s": system.s, "r": system.r, "p": system.p, "t": (system.t,)}
        return system.multipliers if argument == MULTIPLIER else nodes[argument]

    def balance(self, argument: str) -> Quantity:
        """Derivatives of ``M u' - P - J^T lambda`` and ``J u' - b`` (stabilized) at fixed u', lambda, (n_u + n_c, m).

        The accelerations and the multipliers are inputs of the graph.
        """
        return self._quantity("balance", self.unbalance, argument)

    @cached_property
    def unbalance(self) -> tuple[Node, ...]:
        """``M u' - P - J^T lambda``, then ``J u' - b`` (stabilized), (n_u + n_c,), at given u' and lambda."""
        return (*self._momentum, *self._constraints)

    def derivatives(self, outputs: Sequence[Node], inputs: Sequence[Node]) -> Rows:
        """Derivatives (outputs, inputs) of nodes of the model."""
        rows = slopes(self.equations.graph, outputs, inputs)
        nodes, m = self.simplest([x for row in rows for x in row]), len(inputs)
        return tuple(nodes[i * m : (i + 1) * m] for i in range(len(rows)))

    def simplest(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """The nodes with equal values as one node, or unchanged if this takes fewer operations."""
        # A node shared with an earlier derivative can cost more than the plain expression.
        return min(self._final(nodes), tuple(nodes), key=count_operations)

    def rates(self, argument: str) -> Quantity:
        """Derivatives of q', (n_q, m)."""
        return self._quantity("qdot", self.equations.qdot.nodes, argument)

    def state_rates(self, argument: str) -> Quantity:
        """Derivatives of the rates of the states, (n_s, m), at given accelerations."""
        return self._quantity("sdot", self.equations.sdot.nodes, argument)

    @cached_property
    def state_rates_in_accelerations(self) -> Rows:
        """Derivatives of the rates of the states with respect to u', (n_s, n_u)."""
        return slopes(self.equations.graph, self.equations.sdot.nodes, self.equations.system.udot)

    def residuals(self, argument: str) -> Quantity:
        """Derivatives of the residuals of the constraints: phi and invariants, then phi' and psi."""
        equations = self.equations
        return self._quantity("residuals", (*equations.positions.nodes, *equations.velocities.nodes), argument)

    def laws(self, argument: str) -> Quantity:
        """Derivatives of the feedback laws of inputs, (n, m)."""
        return self._quantity("laws", self.equations.once(feedback_laws), argument)

    def outputs(self, argument: str) -> Quantity:
        """Derivatives of all components of the user's outputs, in order, at given accelerations."""
        return self._quantity("outputs", self._outputs, argument)

    @cached_property
    def outputs_in_accelerations(self) -> Rows:
        """Derivatives of the outputs with respect to u', (n_y, n_u)."""
        return slopes(self.equations.graph, self._outputs, self.equations.system.udot)

    def contacts(self, argument: str) -> Quantity:
        """Derivatives of :func:`contact_nodes` at given accelerations and contact multipliers."""
        return self._quantity("contacts", self.equations.once(contact_nodes), argument)

    @cached_property
    def contacts_in_accelerations(self) -> Rows:
        """Derivatives of :func:`contact_nodes` with respect to u': W, then zeros."""
        zeros = (self.equations.graph.zero,) * len(self.equations.system.u)
        rows = [row.W for row in self.equations.once(contact_rows).rows]
        return (*rows, *(zeros for _ in self.equations.once(contact_nodes)[len(rows) :]))

    @cached_property
    def _outputs(self) -> tuple[Node, ...]:
        return tuple(node for output in self.equations.outputs.values() for node in output.nodes)

    @cached_property
    def unbalanced_force(self) -> tuple[Node, ...]:
        """``M u' - P`` (n_u,) at given accelerations, by one recursion along the bodies, cheaper than M and P."""
        system = self.equations.system
        forces = GeneralizedForces(system)
        forces.add_loads(self.equations.bodies, weights=False)
        self.equations.inertia.add_forces(forces, potential=True, accelerated=True)
        return self._final([-force for force in forces.conjugate_to(system.u)])

    @cached_property
    def _momentum(self) -> tuple[Node, ...]:
        graph, rows = self.equations.graph, self.equations.constraints.rows
        multipliers = [graph.input(MULTIPLIERS, k) for k in range(len(rows))]
        return tuple(
            graph.sum([force, *(-(row.J[r] * x) for row, x in zip(rows, multipliers, strict=True))])
            for r, force in enumerate(self.unbalanced_force)
        )

    @cached_property
    def _constraints(self) -> tuple[Node, ...]:
        equations = self.equations
        J = [row.J for row in equations.constraints.rows]
        left = forms.matrix_vector(equations.graph, J, equations.system.udot)
        return tuple(forms.difference(left, equations.b_stabilized.nodes))

    @cached_property
    def dependent_inverse(self) -> Rows:
        """``J_D^-1`` (n_d, n_c), rows in the order of the dependent speeds."""
        system, rows = self.equations.system, self.equations.constraints.rows
        graph, part, n_c = system.graph, self.equations.partition, len(rows)
        identity = [[graph.one if i == j else graph.zero for j in range(n_c)] for i in range(n_c)]
        # With the same pivots as the partition, whose tests hold for them.
        J = [row.J for row in rows]
        reduced, _, row_of = eliminate(J, identity, system.samples, part.dependent, part.places)
        return tuple(self._final(reduced[row_of[d]][len(system.u) :]) for d in part.dependent)

    def reduced(self, D1: forms.Matrix, D2: forms.Matrix) -> tuple[Rows, Rows]:
        """Right sides of the reduced equations (m, n_i) and E (m, n_d), from D1 (n_u, m) and D2 (n_c, m)."""
        equations = self.equations
        rights, shifts = [], []
        for k in range(len(D1[0])):
            second = forms.matrix_vector(equations.graph, self.dependent_inverse, [row[k] for row in D2])
            shifts.append(tuple(-x for x in second))
            first = [-row[k] for row in D1]
            small = forms.reduced(equations.graph, equations.left_side, first, equations.partition, shifts[-1])
            rights.append(small.right)
        return tuple(rights), tuple(shifts)

    def _quantity(self, name: str, outputs: Sequence[Node], argument: str) -> Quantity:
        """The derivatives of the outputs, computed once."""
        label, inputs = f"{name}_{argument}", self.inputs(argument)
        if label not in self._known:
            plain = tuple(x for row in slopes(self.equations.graph, outputs, inputs) for x in row)
            shape = (len(outputs), len(inputs))
            self._known[label] = Quantity(label, self.simplest(plain), shape, self.equations.names)
        return self._known[label]

    def _final(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        return tuple(self._identities.canonical(self.equations.system.settled(nodes)))


def slopes(graph: Graph, outputs: Sequence[Node], inputs: Sequence[Node]) -> Rows:
    """The derivatives (outputs, inputs), in forward or reverse mode, whichever takes fewer operations."""
    if not outputs or not inputs:
        return tuple(() for _ in outputs)
    tangents = [Tangent(graph, {x: graph.one}) for x in inputs]
    forward = tuple(tuple(tangent(output) for tangent in tangents) for output in outputs)
    reverse = tuple(tuple(gradient([output], [graph.one], inputs)) for output in outputs)
    return min(forward, reverse, key=lambda rows: count_operations(x for row in rows for x in row))


def contact_rows(equations: Equations) -> ContactRows:
    """The rows of the model's contacts."""
    return lower_contacts(equations.system, equations.simplified)


def contact_nodes(equations: Equations) -> tuple[Node, ...]:
    """Acceleration, value, rate and target of all contact rows, then load and mu_k of all contacts."""
    contacts, graph = equations.once(contact_rows), equations.graph
    accelerations = [graph.dot(row.W, equations.system.udot) + row.remainder for row in contacts.rows]
    of_rows = [getattr(row, name) for name in ("value", "rate", "target") for row in contacts.rows]
    of_contacts = [getattr(values, name) for name in ("load", "mu_k") for values in contacts.values]
    return (*accelerations, *of_rows, *of_contacts)


def constraint_rates(equations: Equations, stabilized: bool) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """G (n_c, n_u), row-major, and h (n_c) of ``d/dt (J u' - b) = G u' + h + J u''``.

    For rows that are nonlinear in the speeds, terms quadratic in u' are omitted. Inputs without a rate count as
    constant.
    """
    system, graph = equations.system, equations.graph
    rest = dict.fromkeys(system.udot, graph.zero)
    G: list[Node] = []
    h: list[Node] = []
    biases = (equations.b_stabilized if stabilized else equations.b).nodes
    for row, bias in zip(equations.constraints.rows, biases, strict=True):
        left = graph.dot(row.J, system.udot)
        change = system.full_rate(left - bias)
        nodes = substitute([*(partial(change) for partial in system.acceleration_partials), change], rest)
        G += nodes[:-1]
        h.append(nodes[-1])
    return tuple(system.settled(G)), tuple(system.settled(h))
