"""What solves for the accelerations of a right-hand side, and for their derivatives (implicit function theorem)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kanegen.derivation.forces.reactions import MULTIPLIERS
from kanegen.derivation.geometry.system import System
from kanegen.errors import BuildError
from kanegen.graph import Node, Tangent, substitute
from kanegen.program.builder import Fragment, Functions
from kanegen.program.functions.right_sides import bordered_columns, bordered_solutions, reduced_columns


class Rates(Protocol):
    """The right-hand side whose accelerations are wanted."""

    f: Functions
    system: System

    def bound(self, nodes: Sequence[Node]) -> list[Node]:
        """Nodes with the laws in place of their inputs."""
        ...

    def accelerations(self, s: Fragment) -> Sequence[Node]:
        """The accelerations as straight-line code."""
        ...


class Motion(Protocol):
    """Solves for the accelerations and multipliers X of equations F(X) = 0, and for their derivatives."""

    unknowns: tuple[Node, ...]

    @property
    def exact(self) -> Sequence[Node]:
        """F, whose derivatives are those of X."""
        ...

    def values(self, s: Fragment, multipliers: bool = True) -> dict[Node, Node]:
        """Solve for X; the ``multipliers`` can be left out where they are computed apart."""
        ...

    def change(self, s: Fragment, held: Mapping[Node, Node], directions: Mapping[Node, Node]) -> dict[Node, Node]:
        """Solve for the change of X along directions of the arguments."""
        ...

    def pulled(self, s: Fragment, held: Mapping[Node, Node], weights: Sequence[Node]) -> list[Node]:
        """Solve the transposed equations."""
        ...


class Bordered:
    """The accelerations of the right-hand side of the program, and the multipliers that belong to them."""

    def __init__(self, builder: Rates) -> None:
        f = builder.f
        self._f = f
        self.unknowns = (*builder.system.udot, *(f.graph.input(MULTIPLIERS, k) for k in range(f.n_c)))
        self.exact: Sequence[Node] = builder.bound(f.sensitivities.unbalance)

    def values(self, s: Fragment, multipliers: bool = True) -> dict[Node, Node]:
        held = dict(zip(self._f.equations.system.udot, self._f.accelerations(s), strict=True))
        if multipliers:
            self._f.multipliers(s, held)
        return held

    def change(self, s: Fragment, held: Mapping[Node, Node], directions: Mapping[Node, Node]) -> dict[Node, Node]:
        tangent = Tangent(self._f.graph, directions)
        changes = substitute([tangent(x) for x in self.exact], held)
        (column,) = bordered_columns(self._f, s, [-x for x in changes], 1)
        return dict(zip(self._f.equations.system.udot, column, strict=True))

    def pulled(self, s: Fragment, held: Mapping[Node, Node], weights: Sequence[Node]) -> list[Node]:
        f = self._f
        if f.n_c and f.any_rank:
            raise BuildError(
                f"form={f.form!r} accepts redundant constraints, whose multipliers have no unique derivatives: "
                'gradients, and sensitivities by "rodas", need form="auto"; forward sensitivities by explicit methods '
                "do not"
            )
        (solved,) = bordered_solutions(f, s, weights, 1, transposed=not f.equations.is_symmetric)
        return [*solved[: f.n_u], *(-x for x in solved[f.n_u :])]


class Eliminated:
    """The accelerations and multipliers as straight-line code, and their derivatives in the tangent space.

    They are ``u' = A2^T x + [0; E]`` with one factorization of ``A2 M A2^T`` for all right sides
    (:mod:`kanegen.derivation.sensitivities`), which the right-hand side contains already in most forms.
    """

    def __init__(self, builder: Rates) -> None:
        f = builder.f
        self._f, self._builder = f, builder
        self._multipliers = tuple(f.graph.input(MULTIPLIERS, k) for k in range(f.n_c))
        self.unknowns = (*builder.system.udot, *self._multipliers)
        self.exact: Sequence[Node] = builder.bound(f.sensitivities.unbalance)

    def values(self, s: Fragment, multipliers: bool = True) -> dict[Node, Node]:
        held = dict(zip(self._builder.system.udot, self._builder.bound(self._builder.accelerations(s)), strict=True))
        if multipliers:
            force = substitute(self._builder.bound(self._f.sensitivities.unbalanced_force), held)
            held |= dict(zip(self._multipliers, self._of_constraints(force), strict=True))
        return held

    def change(self, s: Fragment, held: Mapping[Node, Node], directions: Mapping[Node, Node]) -> dict[Node, Node]:
        tangent = Tangent(self._f.graph, directions)
        changes = substitute([tangent(x) for x in self.exact], held)
        of_forces, of_constraints = ([[x] for x in rows] for rows in (changes[: self._f.n_u], changes[self._f.n_u :]))
        (column,) = reduced_columns(self._f, s, *self._f.sensitivities.reduced(of_forces, of_constraints))
        return dict(zip(self._builder.system.udot, self._builder.bound(column), strict=True))

    def pulled(self, s: Fragment, held: Mapping[Node, Node], weights: Sequence[Node]) -> list[Node]:
        """Solve ``[M J^T; -J 0] [x; mu] = [w; 0]``: rates do not depend on multipliers."""
        graph, part, e = self._f.graph, self._f.equations.partition, self._f.equations
        rows = [
            graph.sum([weights[i], *(row[k] * weights[d] for row, d in zip(part.A, part.dependent, strict=True))])
            for k, i in enumerate(part.independent)
        ]
        (x,) = reduced_columns(self._f, s, [rows], [[graph.zero] * len(part.dependent)])
        left = [weights[i] - graph.dot(row, x) for i, row in enumerate(e.left_side)]
        return self._builder.bound([*x, *self._of_constraints(left)])

    def _of_constraints(self, forces: Sequence[Node]) -> list[Node]:
        """The multipliers, (n_c,), of ``J^T lambda = forces``, from the rows of the dependent speeds."""
        graph, inverse = self._f.graph, self._f.sensitivities.dependent_inverse
        own = [forces[d] for d in self._f.equations.partition.dependent]
        return [graph.dot([row[c] for row in inverse], own) for c in range(self._f.n_c)]
