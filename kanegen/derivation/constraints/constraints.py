"""Constraints at acceleration level, ``J u' = b``, and what they leave free."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kanegen.derivation.algebra.elimination import Pivot, eliminate
from kanegen.derivation.constraints.euler_norms import missing_norms
from kanegen.derivation.geometry.system import System
from kanegen.errors import BuildError, DerivationError, ModelError
from kanegen.graph import Node, gradient
from kanegen.model.expressions import symbol_name

POSITION, VELOCITY, ACCELERATION = "holonomic", "nonholonomic", "acceleration-level"


@dataclass(frozen=True)
class Row:
    """One row of ``J u' = b``; ``bias`` is b without stabilization.

    ``residuals``: phi and phi' of a holonomic row, psi of a nonholonomic one, none at acceleration level.
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
    """A holonomic constraint that binds no speed: the kinematics keep it (the norm of Euler parameters)."""

    label: str
    position: Node


@dataclass(frozen=True)
class Constraints:
    """All rows in the user's order; what is known of positions without a row of its own.

    ``implied``: constraints on positions whose rates follow from the nonholonomic rows; ``invariants``: holonomic
    constraints that bind no speed.
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


@dataclass(frozen=True)
class Partition:
    """``u_D' = A u_I' + B``: the dependent speeds solved for, in increasing order of their indices.

    ``A`` (n_d, n_i); ``B`` (n_d,) without and ``B_stabilized`` with Baumgarte's terms; ``pivots`` are the divisors
    of the straight-line elimination.
    """

    dependent: tuple[int, ...]
    independent: tuple[int, ...]
    A: tuple[tuple[Node, ...], ...]
    B: tuple[Node, ...]
    B_stabilized: tuple[Node, ...]
    pivots: tuple[Pivot, ...]


def lower_constraints(system: System, final: Callable[[Sequence[Node]], tuple[Node, ...]]) -> Constraints:
    """Differentiate the constraints to acceleration level and sort out invariants; ``final`` simplifies nodes.

    Raises
    ------
    ModelError
        For a constraint that no speed can satisfy or violate.
    """
    rows: list[Row] = []
    implied: list[Row] = []
    invariants: list[Invariant] = []
    model = system.model
    for part, expressions in ((rows, model.holonomic_constraints), (implied, model.implied_constraints)):
        for expression in expressions:
            row = holonomic_row(system, expression)
            if system.vanish(row.J):
                invariants.append(_invariant(system, row, expression))
            else:
                part.append(row)
    rows.extend(nonholonomic_row(system, expression) for expression in system.model.nonholonomic_constraints)
    rows.extend(_acceleration_level(system, expression) for expression in system.model.acceleration_constraints)
    positions = [row.position for row in (*rows, *implied) if row.kind == POSITION]
    positions += [item.position for item in invariants]
    invariants.extend(Invariant(*norm) for norm in missing_norms(system, positions, [row.J for row in rows]))
    simple, known = (
        tuple(replace(row, J=final(row.J), bias=final([row.bias])[0]) for row in part) for part in (rows, implied)
    )
    return Constraints(simple, known, tuple(invariants))


def holonomic_row(system: System, expression: Any) -> Row:
    """A constraint on positions, differentiated twice."""
    graph = system.graph
    (phi,) = system.settled([system.lower(expression)])
    slope = gradient([phi], [graph.one], system.q)
    J = tuple(graph.sum(g * system.C[i][r] for i, g in enumerate(slope) if not g.is_zero) for r in range(len(system.u)))
    rate = system.rate(phi)
    return Row(POSITION, str(expression), J, -system.rate(rate), (phi, rate))


def _invariant(system: System, row: Row, expression: Any) -> Invariant:
    position, velocity = row.residuals
    if not system.vanish([velocity]):
        raise ModelError(
            f"the holonomic constraint {expression} cannot be satisfied: its rate does not depend on any speed and is "
            f"not zero (is a coordinate missing, or is it a function of time only?)"
        )
    return Invariant(row.label, position)


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
    if not system.vanish(d(j) for j in J for d in system.acceleration_partials):
        raise ModelError(f"the acceleration constraint {expression} is not linear in the accelerations u'")
    return Row(ACCELERATION, str(expression), J, -system.without_accelerations(row), ())


def stabilized_bias(system: System, constraints: Constraints) -> tuple[Node, ...]:
    """b with Baumgarte's terms ``G1 phi' + G2 phi`` and ``G psi``, the gains being inputs of the compiled code.

    Baumgarte (1972); the gain array holds G1, G2 (n_h, n_h) and G (n_v, n_v), each row-major.
    """
    graph, holonomic, nonholonomic = system.graph, constraints.holonomic, constraints.nonholonomic
    n_h, n_v = len(holonomic), len(nonholonomic)
    result: list[Node] = []
    h = v = 0
    for row in constraints.rows:
        terms = [row.bias]
        if row.kind == POSITION:
            for k, other in enumerate(holonomic):
                phi, rate = other.residuals
                terms.append(graph.input("g", h * n_h + k) * rate)
                terms.append(graph.input("g", n_h * n_h + h * n_h + k) * phi)
            h += 1
        elif row.kind == VELOCITY:
            for k, other in enumerate(nonholonomic):
                (psi,) = other.residuals
                terms.append(graph.input("g", 2 * n_h * n_h + v * n_v + k) * psi)
            v += 1
        result.append(graph.sum(terms))
    return tuple(result)


def gain_names(constraints: Constraints) -> tuple[str, ...]:
    """Names of the gain array's elements, in order."""
    n_h, n_v = len(constraints.holonomic), len(constraints.nonholonomic)
    return tuple(
        f"{name}[{i}, {j}]" for name, n in (("G1", n_h), ("G2", n_h), ("G", n_v)) for i in range(n) for j in range(n)
    )


def partition(
    system: System,
    constraints: Constraints,
    dependent: Sequence[int] | None,
    final: Callable[[Sequence[Node]], tuple[Node, ...]],
) -> Partition:
    """Solve the constraints for the dependent speeds, the named ones or those of best condition.

    Raises
    ------
    BuildError
        Where a row depends on the others (redundant constraints), or the named speeds cannot be solved for.
    """
    rows, n_u = constraints.rows, len(system.u)
    if len(rows) > n_u:
        raise BuildError(
            f"{len(rows)} constraints on {n_u} speeds of model {system.model.name!r}: at most one per speed can be "
            f'independent; remove redundant ones or use form="pseudoinverse"'
        )
    columns = range(n_u) if dependent is None else dependent
    try:
        reduced, pivots, row_of = eliminate(
            [row.J for row in rows],
            list(zip((row.bias for row in rows), stabilized_bias(system, constraints), strict=True)),
            system.magnitudes,
            columns,
        )
    except ZeroDivisionError as error:
        raise BuildError(_no_pivot(system, rows[error.args[0]], dependent)) from error
    chosen = tuple(sorted(row_of))
    independent = tuple(j for j in range(n_u) if j not in row_of)
    A = tuple(final([-reduced[row_of[d]][i] for i in independent]) for d in chosen)
    B = final([reduced[row_of[d]][n_u] for d in chosen])
    B_stabilized = final([reduced[row_of[d]][n_u + 1] for d in chosen])
    return Partition(chosen, independent, A, B, B_stabilized, tuple(pivots))


def _no_pivot(system: System, row: Row, dependent: Sequence[int] | None) -> str:
    if dependent is None:
        return (
            f"the {row.kind} constraint {row.label} follows from the other constraints (or is zero in the speeds): "
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
