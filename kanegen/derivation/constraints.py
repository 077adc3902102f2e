"""Constraints at acceleration level, ``J u' = b``, and their solution for the dependent speeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from kanegen.derivation.algebra import Pivot, Place, eliminate
from kanegen.derivation.geometry.system import System
from kanegen.errors import BuildError, DerivationError, ModelError
from kanegen.graph import Graph, Node, evaluate, gradient, substitute
from kanegen.graph.linear import Divisor, solve_linear
from kanegen.graph.ranks import RANK_TOLERANCE, off_span
from kanegen.model.description import CONSTRAINT_KINDS
from kanegen.model.expressions import symbol_name
from kanegen.model.records import ACCELERATION, POSITION, VELOCITY

Simplify: TypeAlias = Callable[[Sequence[Node]], tuple[Node, ...]]


@dataclass(frozen=True)
class Row:
    """One row of ``J u' = b``; ``bias`` is b without stabilization.

    ``residuals`` are phi and phi' of a holonomic row, psi of a nonholonomic row, and empty at acceleration level.
    """

    kind: str
    label: str
    J: tuple[Node, ...]
    bias: Node
    residuals: tuple[Node, ...]

    @property
    def position(self) -> Node:
        """The residual of a holonomic row, phi."""
        return self.residuals[0]


@dataclass(frozen=True)
class Invariant:
    """A holonomic constraint that the kinematical equations satisfy by themselves (the norm of Euler parameters)."""

    label: str
    position: Node


@dataclass(frozen=True)
class Constraints:
    """All rows in the user's order, and the constraints on positions that need no row.

    ``implied``: constraints on positions whose rates follow from the nonholonomic rows; ``invariants``: holonomic
    constraints that restrict no speed.
    """

    rows: tuple[Row, ...]
    implied: tuple[Row, ...]
    invariants: tuple[Invariant, ...]

    @property
    def positions(self) -> tuple[Row | Invariant, ...]:
        """All constraints on positions, in the order of their residuals."""
        return (*self.holonomic, *self.implied, *self.invariants)

    @property
    def holonomic(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.kind == POSITION)

    @property
    def nonholonomic(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.kind == VELOCITY)

    @property
    def gain_names(self) -> tuple[str, ...]:
        """Names of the gain array's elements: G1, G2 (n_h, n_h) and G (n_v, n_v), each row-major."""
        sizes = {"G1": len(self.holonomic), "G2": len(self.holonomic), "G": len(self.nonholonomic)}
        return tuple(f"{name}[{i}, {j}]" for name, n in sizes.items() for i in range(n) for j in range(n))


@dataclass(frozen=True)
class Partition:
    """The constraints solved for the dependent speeds, ``u_D' = A u_I' + B``; indices are in increasing order.

    ``A`` has the shape (n_d, n_i), ``B`` (n_d,). ``B_stabilized`` includes Baumgarte's terms. ``pivots`` are the
    divisors of the straight-line code; ``places``, of an elimination, are their rows and columns in its order.
    """

    dependent: tuple[int, ...]
    independent: tuple[int, ...]
    A: tuple[tuple[Node, ...], ...]
    B: tuple[Node, ...]
    B_stabilized: tuple[Node, ...]
    pivots: tuple[Pivot | Divisor, ...]
    places: tuple[Place, ...] = ()

    def bias(self, stabilized: bool) -> tuple[Node, ...]:
        """B with or without Baumgarte's terms."""
        return self.B_stabilized if stabilized else self.B


# -- rows ----------------------------------------------------------------------------------------------------


def lower_constraints(system: System, final: Simplify) -> Constraints:
    """Differentiate the constraints to acceleration level and separate the invariants; ``final`` simplifies nodes.

    Raises
    ------
    ModelError
        If a constraint depends on no speed or acceleration, and is no invariant.
    """
    rows: list[Row] = []
    implied: list[Row] = []
    invariants: list[Invariant] = []
    for kind in sorted(CONSTRAINT_KINDS, key=lambda kind: tuple(_ROWS).index(kind.level)):
        part = rows if kind.adds_rows else implied
        for expression in getattr(system.model, kind.field):
            row = _ROWS[kind.level](system, expression)
            if kind.level != POSITION or not system.vanish(row.J):
                part.append(row)
            elif system.vanish(row.residuals[1:]):
                invariants.append(Invariant(row.label, row.position))
            else:
                raise ModelError(
                    f"the holonomic constraint {expression} cannot be satisfied: its rate does not depend on any speed "
                    f"and is not zero (is a coordinate missing, or is it a function of time only?)"
                )
    positions = [row.position for row in (*rows, *implied) if row.kind == POSITION]
    positions += [item.position for item in invariants]
    invariants.extend(_missing_norms(system, positions, [row.J for row in rows]))
    simple, known = (
        tuple(replace(row, J=final(row.J), bias=final([row.bias])[0]) for row in part) for part in (rows, implied)
    )
    return Constraints(simple, known, tuple(invariants))


def holonomic_row(system: System, expression: Any) -> Row:
    """A constraint on positions, differentiated twice."""
    graph = system.graph
    (phi,) = system.settled([system.lower(expression)])
    slope = gradient([phi], [graph.one], system.q)
    moved = [(g, system.C[i]) for i, g in enumerate(slope) if not g.is_zero]
    J = tuple(graph.sum(g * row[r] for g, row in moved) for r in range(len(system.u)))
    rate = system.rate(phi)
    return Row(POSITION, str(expression), J, -system.rate(rate), (phi, rate))


def nonholonomic_row(system: System, expression: Any) -> Row:
    """A constraint at velocity level, differentiated once."""
    (psi,) = system.settled([system.lower(expression)])
    J = tuple(gradient([psi], [system.graph.one], system.u))
    if system.vanish(J):
        raise ModelError(f"the nonholonomic constraint {expression} does not depend on any generalized speed")
    return Row(VELOCITY, str(expression), J, -system.rate(psi), (psi,))


def _acceleration_level(system: System, expression: Any) -> Row:
    (row,) = system.settled([system.lower(expression)])
    J = tuple(gradient([row], [system.graph.one], system.udot))
    if system.vanish(J):
        raise ModelError(f"the acceleration constraint {expression} does not depend on any acceleration u'")
    if not system.are_constant(J, system.udot):
        raise ModelError(f"the acceleration constraint {expression} is not linear in the accelerations u'")
    return Row(ACCELERATION, str(expression), J, -system.without_accelerations([row])[0], ())


_ROWS: Final = {POSITION: holonomic_row, VELOCITY: nonholonomic_row, ACCELERATION: _acceleration_level}
"""The row of a constraint of each level, in the order of the rows."""


def stabilized_bias(system: System, constraints: Constraints) -> tuple[Node, ...]:
    """b with Baumgarte's terms ``G1 phi' + G2 phi`` and ``G psi``, the gains being inputs of the compiled code.

    Baumgarte (1972); :attr:`Constraints.gain_names` are the elements of the gain array.
    """
    terms = stabilizing_terms(system.graph, constraints)
    return tuple(system.graph.sum([row.bias, *added]) for row, added in zip(constraints.rows, terms, strict=True))


def stabilizing_terms(graph: Graph, constraints: Constraints) -> Iterator[list[Node]]:
    """The terms that Baumgarte's stabilization adds to each entry of b."""
    holonomic, nonholonomic = constraints.holonomic, constraints.nonholonomic
    n_h, n_v = len(holonomic), len(nonholonomic)
    h = v = 0
    for row in constraints.rows:
        terms: list[Node] = []
        if row.kind == POSITION:
            for k, (phi, rate) in enumerate(other.residuals for other in holonomic):
                terms.append(graph.input("g", h * n_h + k) * rate)
                terms.append(graph.input("g", (n_h + h) * n_h + k) * phi)
            h += 1
        elif row.kind == VELOCITY:
            for k, (psi,) in enumerate(other.residuals for other in nonholonomic):
                terms.append(graph.input("g", 2 * n_h * n_h + v * n_v + k) * psi)
            v += 1
        yield terms


# -- dependent speeds ----------------------------------------------------------------------------------------


def partition(system: System, constraints: Constraints, final: Simplify) -> Partition:
    """Solve the constraints for the dependent speeds that the user named, or else for the best conditioned ones.

    Raises
    ------
    BuildError
        If a row depends on the others (redundant constraints), or the system for the named speeds is singular.
    """
    rows, n_u, named = constraints.rows, len(system.u), named_dependent(system, constraints)
    if len(rows) > n_u:
        raise BuildError(
            f"{len(rows)} constraints on {n_u} speeds of model {system.model.name!r}: at most one per speed can be "
            f'independent; remove redundant ones or use form="pseudoinverse"'
        )
    right = list(zip((row.bias for row in rows), stabilized_bias(system, constraints), strict=True))
    columns = range(n_u) if named is None else named
    try:
        reduced, pivots, row_of = eliminate([row.J for row in rows], right, system.samples, columns)
    except ZeroDivisionError as error:
        raise BuildError(_no_pivot(system, rows[error.args[0]], named)) from error
    dependent = tuple(sorted(row_of))
    independent = tuple(j for j in range(n_u) if j not in row_of)
    A = tuple(final([-reduced[row_of[d]][i] for i in independent]) for d in dependent)
    B, B_stabilized = (final([reduced[row_of[d]][column] for d in dependent]) for column in (n_u, n_u + 1))
    places = tuple((row, column) for column, row in row_of.items())
    return Partition(dependent, independent, A, B, B_stabilized, tuple(pivots), places)


def solved_partition(
    system: System,
    part: Partition,
    rows: Sequence[Sequence[Node]],
    biases: Sequence[tuple[Node, Node]],
) -> Partition:
    """The same dependent speeds from rows J and pairs of right sides, defined wherever J_D is regular.

    An elimination, which takes fewer operations, divides by pivots that can be zero there: its code needs another
    solution behind it.
    """
    J_D = [[row[d] for d in part.dependent] for row in rows]
    right = [[*(-row[i] for i in part.independent), *bias] for row, bias in zip(rows, biases, strict=True)]
    solution = solve_linear(J_D, right, system.samples)
    n = len(part.independent)
    # Not simplified: equal nodes of the elimination would take their place.
    A = tuple(tuple(row[:n]) for row in solution.rows)
    B, B_stabilized = (tuple(row[n + k] for row in solution.rows) for k in (0, 1))
    return Partition(part.dependent, part.independent, A, B, B_stabilized, solution.divisors)


def _no_pivot(system: System, row: Row, dependent: Sequence[int] | None) -> str:
    if dependent is None:
        return (
            f"the {row.kind} constraint {row.label} follows from the other constraints (or contains no speed): "
            f'remove it, or use form="pseudoinverse" for redundant constraints'
        )
    names = ", ".join(symbol_name(system.model.speeds[j]) for j in dependent)
    return (
        f"the constraints cannot be solved for dependent_speeds {names}: the {row.kind} constraint {row.label} does "
        f"not determine any of them independently of the others; name other speeds, or leave the choice to kanegen"
    )


def named_dependent(system: System, constraints: Constraints) -> tuple[int, ...] | None:
    """Indices of the dependent speeds the user named, or None."""
    named = system.model.dependent_speeds
    if named is None:
        return None
    if len(named) != len(constraints.rows):
        raise DerivationError(
            f"{len(named)} dependent_speeds were named for {len(constraints.rows)} constraints that bind the speeds"
        )
    return tuple(sorted(system.model.speeds.index(speed) for speed in named))


# -- the norms of Euler parameters ---------------------------------------------------------------------------


def _missing_norms(system: System, positions: Sequence[Node], rows: Sequence[Sequence[Node]]) -> Iterator[Invariant]:
    """The invariant ``e.e - 1`` of each group of Euler parameters for which the user gave no constraint.

    ``positions`` are phi of the user's holonomic constraints, ``rows`` J of all constraints. A norm that only the
    constraints conserve is no invariant; ModelError if neither they nor the kinematical equations conserve it.
    """
    for group, index in zip(system.model.euler_parameters, system.norms, strict=True):
        norm = system.norm(index)
        # At the random states all norms are 1: with other lengths, a constraint on this norm shows that it is one.
        own = {system.q[k]: 2 * system.q[k] for k in index}
        others = {system.q[k]: 2 * system.q[k] for other in system.norms for k in other if other != index}
        if any(
            system.vanish(substitute([phi], others)) and not system.vanish(substitute([phi], own)) for phi in positions
        ):
            continue  # the user constrains this norm
        squares = " + ".join(f"{symbol_name(symbol)}**2" for symbol in group)
        if system.vanish([system.rate(norm)]):
            yield Invariant(f"{squares} - 1 (norm of Euler parameters)", norm)
        elif not all(_binds(system, norm, rows, state) for state in system.states):
            raise ModelError(
                f"the orientation written in {', '.join(map(symbol_name, group))} is a rotation only where {squares} = "
                f"1 (Euler parameters), but neither the kinematical equations nor the constraints keep it: choose "
                f"components of the angular velocity as speeds (then q' = C u does), or add {squares} - 1 to "
                f"holonomic_constraints"
            )


def _binds(system: System, norm: Node, rows: Sequence[Sequence[Node]], state: dict[str, list[float]]) -> bool:
    """Whether the rate of the norm follows from the rows at a state, so that the constraints conserve the norm."""
    slope = np.array(evaluate([partial(system.rate(norm)) for partial in system.partials], state))
    J = np.array([evaluate(row, state) for row in rows]).reshape(len(rows), len(slope))
    return bool(np.abs(off_span(slope, J)).max(initial=0.0) <= RANK_TOLERANCE * np.abs(slope).max(initial=0.0))
