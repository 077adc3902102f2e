"""The motion in given modes of the contacts, and the speeds after impacts and impulses, with their derivatives.

In given modes the accelerations, the multipliers of the constraints and those of the contact rows solve linear
equations F(X) = 0; after an impact so do the speeds and the impulses (Pfeiffer and Glocker 1996). The implicit function
theorem gives derivatives of X with the matrix of F. The modes are numbers among the gains of a program of variations
(:data:`kanegen.program.catalogue.ROW_MODES`), so that one program serves them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final

from kanegen.derivation.contacts import ContactRow
from kanegen.derivation.forces.generalized import impulse_rows
from kanegen.derivation.forces.reactions import MULTIPLIERS
from kanegen.derivation.sensitivities import contact_rows as rows_of_contacts
from kanegen.derivation.sensitivities import slopes
from kanegen.errors import BuildError
from kanegen.graph import Graph, Node, Tangent, gradient, substitute
from kanegen.model.contacts import Contact
from kanegen.model.description import SystemDescription
from kanegen.program.builder import Fragment, Functions, flat
from kanegen.program.catalogue import ROW_MODES

Bound = Callable[[Sequence[Node]], list[Node]]
"""Gives nodes with feedback laws in place of their inputs."""

_KNOWN_LOADS: Final = ("compliant", "load")
"""Kinds of contacts whose normal force is a function of the state."""


def mode_names(model: SystemDescription) -> tuple[str, ...]:
    """The names of the numbers of the modes: those of each contact row, then whether each named impulse acts."""
    of_rows = (f"{row} {name}" for row in model.contact_rows for name in ROW_MODES)
    return (*of_rows, *(f"{name} acts" for name in model.impulses))


class ModeNumbers:
    """The inputs of the graph that hold the modes; they follow ``n_g`` gains."""

    def __init__(self, graph: Graph, model: SystemDescription, n_g: int) -> None:
        k, n = len(ROW_MODES), len(model.contact_rows)
        self._of_rows = [[graph.input("g", n_g + i * k + j) for j in range(k)] for i in range(n)]
        self.impulses = [graph.input("g", n_g + n * k + j) for j in range(len(model.impulses))]

    def of(self, row: int, name: str) -> Node:
        """One of the numbers of a row."""
        return self._of_rows[row][ROW_MODES.index(name)]


class LinearEquations:
    """Equations F(X) = 0 that are linear in X, the first of which have the matrix of the accelerations.

    ``residuals`` F and ``unknowns`` X. ``exact``: F in which directions of slip depend on X, where ``residuals`` have
    given ones; the derivatives of X are those of ``exact``.
    """

    def __init__(
        self, f: Functions, residuals: Sequence[Node], unknowns: Sequence[Node], exact: Sequence[Node], bound: Bound
    ) -> None:
        self._f, self._graph, self.unknowns = f, f.graph, tuple(unknowns)
        self.residuals, self.exact, self._bound = bound(residuals), bound(exact), bound

    def values(self, s: Fragment, multipliers: bool = True) -> dict[Node, Node]:
        """Solve for X; the ``multipliers`` are part of it."""
        zeros = dict.fromkeys(self.unknowns, self._graph.zero)
        right = [-x for x in substitute(self.residuals, zeros)]
        (values,) = self._solved(s, self._matrix(self.residuals), [right], "X")
        return dict(zip(self.unknowns, values, strict=True))

    def change(self, s: Fragment, held: Mapping[Node, Node], directions: Mapping[Node, Node]) -> dict[Node, Node]:
        """Solve for the change of X, whose values are ``held``, along ``directions`` of the arguments."""
        along = Tangent(self._graph, directions)
        right = [-x for x in substitute([along(x) for x in self.exact], held)]
        matrix = substitute(self._matrix_of_exact, held)
        (changes,) = self._solved(s, matrix, [right], "change of X")
        return dict(zip(self.unknowns, changes, strict=True))

    def pulled(
        self, s: Fragment, held: Mapping[Node, Node], weights: Sequence[Node], name: str = "weights of F"
    ) -> list[Node]:
        """Solve for the weights of F that the ``weights`` of X give, so that ``-F`` has the gradient of ``X``.

        ``name``: of the weights in the code, which a fragment contains once.
        """
        return self.all_pulled(s, held, [weights], name)[0]

    def all_pulled(
        self,
        s: Fragment,
        held: Mapping[Node, Node],
        weights: Sequence[Sequence[Node]],
        name: str = "weights of F",
    ) -> list[list[Node]]:
        """Solve for the weights of F that several weights of X give, with one factorization."""
        n, matrix = len(self.unknowns), substitute(self._matrix_of_exact, held)
        transposed = [matrix[i * n + j] for j in range(n) for i in range(n)]
        return self._solved(s, transposed, weights, name)

    def _solved(
        self, s: Fragment, matrix: Sequence[Node], rights: Sequence[Sequence[Node]], name: str
    ) -> list[list[Node]]:
        """Solve for one vector for each right side."""
        names = {"a": f"matrix of {name}".replace(" ", "_"), "b": name.replace(" ", "_")}
        n, m = len(self.unknowns), len(rights)
        b = [right[i] for i in range(n) for right in rights]
        solved = s.call("lu_solve_many", n, m, title=f"matrix and right side of {name}", names=names, a=matrix, b=b)
        return [solved["b"][k::m] for k in range(m)]

    @cached_property
    def _matrix_of_exact(self) -> list[Node]:
        return self._matrix(self.exact)

    def _matrix(self, residuals: Sequence[Node]) -> list[Node]:
        """The derivatives of F with respect to X, row by row; M is known."""
        n_u, others = self._f.n_u, self.unknowns[self._f.n_u :]
        M = self._bound(self._f.equations.M.nodes)
        first = slopes(self._graph, residuals[:n_u], others)
        rows = [[*M[i * n_u : (i + 1) * n_u], *first[i]] for i in range(n_u)]
        one = [self._graph.one]
        return flat([*rows, *(gradient([x], one, self.unknowns) for x in residuals[n_u:])])


class ModeEquations:
    """The equations of a model in given modes: of its motion, and of its jumps.

    ``controls``: inputs that enforce the servo-constraints, which are unknown, too.
    """

    def __init__(self, f: Functions, bound: Bound, controls: Sequence[Node] = ()) -> None:
        self._controls = tuple(controls)
        self._f, self._e, self._graph, self._bound = f, f.equations, f.graph, bound
        self._system, model = f.equations.system, f.equations.model
        self.numbers = ModeNumbers(f.graph, model, len(f.equations.gain_names))
        self.contacts: tuple[Contact, ...] = tuple(model.resolved_contacts)
        constraints = [f.graph.input(MULTIPLIERS, k) for k in range(len(self._e.constraints.rows))]
        self._constraints, self._unknowns = constraints, (*self._system.udot, *constraints, *self._system.multipliers)
        self._after = dict(zip(self._system.u, self._system.udot, strict=True))

    @cached_property
    def rows(self) -> tuple[ContactRow, ...]:
        """The contact rows."""
        return self._e.once(rows_of_contacts).rows if self.contacts else ()

    def force(self, contact: int) -> Node:
        """The normal force that friction counts."""
        record = self.contacts[contact]
        if record.gap is None or record.kind in _KNOWN_LOADS:
            return self._e.once(rows_of_contacts).values[contact].load
        force = self._system.multipliers[record.first_row]
        return force * self.numbers.of(record.first_row, "along") if record.kind == "bilateral" else force

    def tangents(self, contact: int) -> range:
        """The indices of the rows of the directions of slip."""
        record = self.contacts[contact]
        first = record.first_row + (record.gap is not None)
        return range(first, first + len(record.slip))

    # -- the motion -----------------------------------------------------------------------------------------------

    @cached_property
    def motion(self) -> LinearEquations:
        """The equations of the accelerations and multipliers."""
        residuals = list(self._f.sensitivities.unbalance)
        for m, contact in enumerate(self.contacts):
            if contact.gap is not None:
                residuals.append(self._normal(m))
            residuals += [self._tangent(m, i) for i in self.tangents(m)]
        unknowns = (*self._unknowns, *self._controls)
        if self._controls:
            residuals += self._servo()
        return LinearEquations(self._f, residuals, unknowns, residuals, self._bound)

    def _servo(self) -> list[Node]:
        """The desired dynamics of the servo-constraints. Raises `BuildError` if several controls have it."""
        servo = self._f.servo
        unique = len(servo.J) == len(self._controls) and servo.servo.damping is None and not servo.servo.is_ideal
        if not unique:
            raise BuildError(
                f"the controls of model {self._e.model.name!r} are chosen among several: motions have derivatives "
                "under as many controls as servo-constraints, without damping, that are not ideal"
            )
        rows = zip(servo.J, servo.bias, strict=True)
        return [self._graph.sum([self._graph.dot(row, self._system.udot), -bias]) for row, bias in rows]

    def _left_over(self, row: int) -> Node:
        """The acceleration of a row, less its target."""
        record = self.rows[row]
        return self._graph.dot(record.W, self._system.udot) + record.remainder - record.target

    def _chosen(self, row: int, held: Node, otherwise: Node) -> Node:
        """``held`` where the row holds, else the multiplier and ``otherwise``."""
        holds, softness = (self.numbers.of(row, name) for name in ("holds", "softness"))
        return holds * held + (self._graph.one - holds + softness) * self._system.multipliers[row] + otherwise

    def _normal(self, m: int) -> Node:
        row, load = self.contacts[m].first_row, self._graph.zero
        if self.contacts[m].kind in _KNOWN_LOADS:
            load = -(self.numbers.of(row, "slips") * self.force(m))
        return self._chosen(row, self._left_over(row), load)

    def _tangent(self, m: int, row: int) -> Node:
        direction = self._direction(m, row, [self.rows[i].rate for i in self.tangents(m)])
        return self._chosen(row, self._left_over(row), self._friction(m, row, direction))

    def _friction(self, m: int, row: int, direction: Node) -> Node:
        mu = self._e.once(rows_of_contacts).values[m].mu_k
        return self.numbers.of(row, "slips") * mu * self.force(m) * direction

    def _direction(self, m: int, row: int, rates: Sequence[Node]) -> Node:
        """The component of the unit vector of slip along a row, for given slip velocities of the contact."""
        if len(self.tangents(m)) == 1:
            return self.numbers.of(row, "along")
        return rates[row - self.tangents(m)[0]] / self._size(rates, self.numbers.of(row, "slips"))

    def _size(self, values: Sequence[Node], counts: Node) -> Node:
        """The size of a vector where the number ``counts`` is 1; where it is 0, nothing divides by it."""
        return self._graph.apply("sqrt", self._graph.sum([*(x * x for x in values), self._graph.one - counts]))

    # -- what the modes depend on ---------------------------------------------------------------------------------

    def guards(self) -> list[Node]:
        """The values of :data:`kanegen.program.catalogue.CONTACT_GUARDS` of each contact, as functions of X."""
        values, zero = self._e.once(rows_of_contacts).values if self.contacts else (), self._graph.zero
        nodes: list[Node] = []
        for m, contact in enumerate(self.contacts):
            tangents = self.tangents(m)
            gap = self.rows[contact.first_row].value if contact.gap is not None else zero
            slip = self._graph.sum([self.numbers.of(i, "along") * self.rows[i].rate for i in tangents])
            margin = zero
            if tangents:
                friction = [self._system.multipliers[i] for i in tangents]
                size = self._size(friction, self.numbers.of(tangents[0], "holds"))
                margin = values[m].mu_s * self.force(m) - size
            force = self._system.multipliers[contact.first_row] if contact.gap is not None else zero
            nodes += [gap, force, values[m].load, slip, margin, slip - values[m].creep]
        return nodes

    # -- jumps ----------------------------------------------------------------------------------------------------

    @cached_property
    def jump(self) -> LinearEquations:
        """The equations of the speeds after an impact or an impulse, which stand for u', and of all impulses.

        Raises `BuildError` for constraints that are not linear in the speeds.
        """
        self._require_linear()
        shared = [*self._momenta(), *self._velocities()]
        return LinearEquations(
            self._f, [*shared, *self._impacts(exact=False)], self._unknowns, [*shared, *self._impacts(exact=True)],
            self._bound,
        )  # fmt: skip

    def _require_linear(self) -> None:
        for row in self._e.constraints.rows:
            if not self._system.are_constant(row.J, self._system.u):
                raise BuildError(
                    f"the constraint {row.label} of model {self._e.model.name!r} is nonlinear in the speeds: motions "
                    "have no derivatives here beyond impulses and impacts"
                )

    def _momenta(self) -> list[Node]:
        """``M (u+ - u) - I - J^T lambda - W^T Lambda``."""
        graph, system, n = self._graph, self._system, self._f.n_u
        M, rows = self._e.M.nodes, self._e.constraints.rows
        jumps = [after - before for after, before in zip(system.udot, system.u, strict=True)]
        impulses = impulse_rows(system)
        return [
            graph.sum(
                [
                    graph.dot(M[i * n : (i + 1) * n], jumps),
                    *(-(acts * row[i]) for acts, row in zip(self.numbers.impulses, impulses, strict=True)),
                    *(-(row.J[i] * x) for row, x in zip(rows, self._constraints, strict=True)),
                    *(-(row.W[i] * x) for row, x in zip(self.rows, system.multipliers, strict=True)),
                ]
            )
            for i in range(n)
        ]

    def _velocities(self) -> list[Node]:
        """The constraints after the jump: those of speeds, then those of accelerations, which restrict the jump."""
        known = substitute(self._e.velocities.nodes, self._after)
        jumps = [after - before for after, before in zip(self._system.udot, self._system.u, strict=True)]
        rows = self._e.constraints.rows
        return [*known, *(self._graph.dot(row.J, jumps) for row in rows[len(known) :])]

    def _impacts(self, exact: bool) -> list[Node]:
        """The laws of impact of the contact rows; ``exact``: slip in a plane has the direction of its velocity."""
        residuals = []
        for m, contact in enumerate(self.contacts):
            if contact.gap is not None:
                residuals.append(self._struck(m))
            rates = substitute([self.rows[i].rate for i in self.tangents(m)], self._after)
            for i, rate in zip(self.tangents(m), rates, strict=True):
                given = self.numbers.of(i, "along")
                direction = self._direction(m, i, rates) if exact else given
                normal = contact.gap is not None and contact.kind not in _KNOWN_LOADS
                friction = self._friction(m, i, direction) if normal else self._graph.zero
                residuals.append(self._chosen(i, rate, friction))
        return residuals

    def _struck(self, m: int) -> Node:
        """The speed of a gap after the impact, less that which follows from its speed before."""
        row = self.contacts[m].first_row
        before = self.rows[row].rate
        (after,) = substitute([before], self._after)
        restitution = self._e.once(rows_of_contacts).values[m].restitution
        factor = self.numbers.of(row, "rebounds") * restitution - self.numbers.of(row, "keeps")
        return self._chosen(row, after + factor * before, self._graph.zero)
