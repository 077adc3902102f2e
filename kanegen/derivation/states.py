"""Random states of a model, on and off the constraint manifold and away from singular positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.derivation.control.feedback import feedback_laws
from kanegen.derivation.equations import Equations, Quantity
from kanegen.graph import Context, Newton, Node, evaluate, reachable
from kanegen.graph.decisions import RELATIVE_ZERO
from kanegen.graph.nodes import COMPARISONS
from kanegen.graph.ranks import independent_rows
from kanegen.model.inputs import FORCES, FREE

Numbers: TypeAlias = "NDArray[Any]"

CONDITION: Final = 1e4
"""Largest condition number of the (equilibrated) equations at a state: four of the sixteen digits may be lost."""

SPECIAL: Final = (0.0, np.pi / 2, -np.pi / 2, np.pi)
"""Coordinates at which sines and cosines vanish, and with them divisors that are not zero at random."""

KINKS: Final = COMPARISONS | {"abs", "min", "max", "sqrt", "cbrt", "reciprocal"}
"""Operations without a derivative where their argument is zero, or their arguments are equal."""

STAIRS: Final = frozenset({"floor", "ceil"})
"""Operations that jump where their argument is an integer."""

NEAR_KINK: Final = 1e-6
"""Distance from a kink, relative to 1 or the size of the argument, within which a state counts as lying on it; size of
a row, relative to its usual one, below which it counts as zero."""

ROUNDING: Final = 1e-14
"""Speeds below this fraction of 1 or of the largest one are zeros with the rounding of Newton's method."""

SPREAD_Q, SPREAD_U = 0.4, 1.0
"""How far random coordinates and speeds lie from a given start (relative to 1 or their size)."""


def numbers(values: Iterable[Any]) -> Numbers:
    """An array of numbers of any kind."""
    return np.array(list(values), dtype=object)


def read(
    groups: Iterable[Quantity | Sequence[Any]], values: Mapping[str, Sequence[Any]], context: Context | None = None
) -> list[Numbers]:
    """Values of quantities, and of vectors and matrices of nodes, in their shapes, by one evaluation."""
    shaped = [
        numbers(group.nodes).reshape(group.shape) if isinstance(group, Quantity) else numbers(group) for group in groups
    ]
    entries = numbers(evaluate([node for group in shaped for node in group.flat], values, context))
    parts = np.split(entries, np.cumsum([group.size for group in shaped]))
    return [part.reshape(group.shape) for part, group in zip(parts, shaped, strict=False)]


@dataclass(frozen=True)
class State:
    """Arguments of the equations in double precision, with arbitrary accelerations and gains.

    ``r``: inputs; ``s``: states of the model; ``multipliers``: of the contact rows; ``free``: the free vector of
    servo-constraints. ``consistent``: whether the state satisfies the constraints.
    """

    t: float
    q: Array
    u: Array
    r: Array
    p: Array
    gains: Array
    udot: Array
    consistent: bool
    s: Array = field(default_factory=lambda: np.zeros(0))
    multipliers: Array = field(default_factory=lambda: np.zeros(0))
    free: Array = field(default_factory=lambda: np.zeros(0))

    def values(self, number: Callable[[float], Any] = float) -> dict[str, list[Any]]:
        """The input arrays of the graph; auxiliary speeds are zero."""
        arrays: dict[str, Sequence[float] | Array] = {
            "t": [self.t], "q": self.q, "u": self.u, "s": self.s, "r": self.r, FORCES: self.multipliers,
            FREE: self.free, "p": self.p, "g": self.gains, "udot": self.udot,
        }  # fmt: skip
        converted = {name: [number(float(x)) for x in array] for name, array in arrays.items()}
        return converted | {"aux": [number(0.0)] * len(self.u)}

    def __str__(self) -> str:
        numbers = ", ".join(f"{name} = {np.array2string(x, precision=6)}" for name, x in (("q", self.q), ("u", self.u)))
        return f"t = {self.t:.6g}, {numbers}"


def random_state(
    equations: Equations,
    rng: np.random.Generator,
    parameters: Array,
    near: Mapping[str, Array],
    consistent: bool,
    spread: float = 1.0,
    regular: bool = True,
) -> State | None:
    """A state around ``near``; None if it is not regular (finite, and far from singular).

    Parameters
    ----------
    parameters
        The values of all parameters.
    near
        ``t``, ``q``, ``u``, ``r`` (inputs of the user) and ``s``, where they are known; NaN for single unknown values.
    consistent
        Whether the state is moved onto the constraint manifold if that is possible. All satisfy the invariants.
    spread
        How far states lie from ``near``, relative to the usual distance.
    regular
        Whether the state must be regular; otherwise, None is returned only where the invariants have no solution.
    """
    state = _candidate(equations, rng, parameters, near, spread)
    if regular and not _masses_are_positive(equations, state):
        return None
    placed = _placed(equations, state, consistent or not equations.has_partition)
    return placed if placed is None or not regular or _regular(equations, placed) else None


def special_state(
    equations: Equations, rng: np.random.Generator, parameters: Array, near: Mapping[str, Array], consistent: bool
) -> State | None:
    """A regular state with zeros, right and straight angles and equal coordinates, and zero speeds.

    The arguments are those of `random_state`. On the constraint manifold, as many values are special as it admits.
    None also where the equations have a kink, where an output does not exist, and where all forces or a row of the
    constraints vanish but for rounding.
    """
    ordinary = _candidate(equations, rng, parameters, near, spread=1.0)
    q, u = special_coordinates(rng, ordinary.q), special_speeds(rng, ordinary.u)
    state = replace(ordinary, q=q, u=u)
    if not _masses_are_positive(equations, state):
        return None
    placed = _placed(equations, state, consistent or not equations.has_partition)
    if placed is None or has_kink(equations, placed):
        return None
    if not _outputs_exist(equations, placed) or _degenerate(equations, placed, ordinary):
        return None
    return placed if _regular(equations, placed) else None


def _degenerate(equations: Equations, state: State, ordinary: State) -> bool:
    """Whether a row of the constraints or all forces vanish but for rounding, or an entry of C is nearly infinite."""
    groups = equations.system.C, equations.J, equations.P, equations.b
    (C, *here), (usual_C, *usual) = (read(groups, at.values()) for at in (state, ordinary))
    if C.size and not np.abs(C).max() < CONDITION * np.abs(usual_C).max():
        return True
    rows, forces = ([*part[0], np.concatenate(part[1:])] for part in (here, usual))
    sizes = ([np.abs(x.astype(np.float64)).max(initial=0.0) for x in part] for part in (rows, forces))
    return any(size <= NEAR_KINK * common for size, common in zip(*sizes, strict=True))


def _outputs_exist(equations: Equations, state: State) -> bool:
    """Whether the outputs divide by nothing that vanishes."""
    nodes = [node for output in equations.outputs.values() for node in output.nodes]
    divisors = [node.args[1] for node in reachable(nodes) if node.op == "div"]
    return bool(np.all(np.abs(evaluate(divisors, state.values())) > NEAR_KINK)) if divisors else True


def has_kink(equations: Equations, state: State) -> bool:
    """Whether two sides of a comparison are equal, an absolute value or a root is zero, or a staircase jumps."""
    e = equations
    groups = [e.M, e.P, e.J, e.b, e.qdot, e.sdot]
    if e.model.has_potential:
        groups.append(e.energy)
    elif e.model.lagrangian is None:  # a Lagrangian alone may not tell the kinetic energy
        groups.append(e.kinetic_energy)
    nodes = [*(node for group in groups for node in group.nodes), *e.once(feedback_laws)]
    nodes += [node for output in e.outputs.values() for node in output.nodes]
    kinks = [node for node in reachable(nodes) if node.op in KINKS | STAIRS and not node.constant]
    flat = evaluate([x for node in kinks for x in node.args], state.values())
    for node in kinks:
        (value, *others), flat = flat[: len(node.args)], flat[len(node.args) :]
        kink = np.round(value) if node.op in STAIRS else others[0] if others else 0.0
        if abs(value - kink) <= NEAR_KINK * (1.0 + abs(value)):
            return True
    return False


def _candidate(
    equations: Equations, rng: np.random.Generator, parameters: Array, near: Mapping[str, Array], spread: float
) -> State:
    """A random state around the start ``near``, not yet on the constraint manifold."""
    system = equations.system
    defaults = np.array([0.0 if item.default is None else item.default for item in equations.model.inputs])
    given = near.get("r", defaults)
    inputs = np.where(np.isnan(given), defaults, given) + spread * rng.uniform(-1.0, 1.0, len(system.r))
    far_q, far_u = spread * SPREAD_Q, spread * SPREAD_U
    return State(
        t=float(near.get("t", 0.0)) + spread * rng.uniform(0.5, 2.0),
        q=_around(rng, near.get("q"), len(system.q), far_q),
        u=_around(rng, near.get("u"), len(system.u), far_u),
        p=parameters,
        gains=rng.uniform(-2.0, -0.5, len(equations.gain_names)),
        udot=rng.uniform(-2.0, 2.0, len(system.u)),
        r=inputs,
        s=_around(rng, near.get("s"), len(system.s), far_q),
        multipliers=np.zeros(len(system.multipliers)),
        free=np.zeros(len(system.free)),
        consistent=False,
    )


def special_coordinates(rng: np.random.Generator, ordinary: Array) -> Array:
    """Zeros, right and straight angles and equal values, each in place of some of the ``ordinary`` coordinates."""
    common = rng.choice([*SPECIAL, *ordinary])
    values = [rng.choice([*SPECIAL, common, own]) for own in ordinary]
    return np.array(values, dtype=np.float64)


def special_speeds(rng: np.random.Generator, ordinary: Array) -> Array:
    """Zeros in place of some of the ``ordinary`` speeds, or of all of them."""
    return np.where(rng.random(len(ordinary)) < rng.choice([0.5, 1.0]), 0.0, ordinary)


def _around(rng: np.random.Generator, center: Array | None, n: int, spread: float) -> Array:
    """Values near ``center``; without one, where it is NaN, values of either sign away from zero and right angles."""
    if center is None:
        return np.asarray(rng.uniform(0.2, 1.1, n) * rng.choice([-1.0, 1.0], n))
    near = np.asarray(center + spread * np.maximum(1.0, np.abs(center)) * rng.uniform(-1.0, 1.0, n))
    return np.where(np.isnan(center), _around(rng, None, n, spread), near) if np.isnan(center).any() else near


def _placed(equations: Equations, state: State, onto_manifold: bool) -> State | None:
    """The state moved to satisfy the invariants and, if wanted and possible, all constraints; None if that fails."""
    e, values = equations, state.values()
    settled = _solved(kept_positions(e), e.system.q, values)
    if settled is None:
        return None
    state = replace(state, q=np.array(settled["q"]))
    placed = _solved(e.positions.nodes, e.system.q, settled) if onto_manifold else None
    moved = None if placed is None else _solved(e.velocities.nodes, e.system.u, placed)
    if moved is None:
        return state
    u = np.array(moved["u"])
    u[np.abs(u) <= ROUNDING * np.abs(u).max(initial=1.0)] = 0.0
    return replace(state, q=np.array(moved["q"]), u=u, consistent=True)


def _solved(nodes: Sequence[Node], unknowns: Sequence[Node], values: Mapping[str, Sequence[float]]) -> Any:
    """The values at which the nodes vanish, or None; values that are special stay as they are if that is possible."""
    free = [node for node in unknowns if values[node.payload[0]][node.payload[1]] not in SPECIAL]
    found = Newton(nodes, free).solve(values) if 0 < len(free) < len(unknowns) else None
    return found or Newton(nodes, unknowns).solve(values)


def kept_positions(equations: Equations) -> list[Node]:
    """The residuals that every state satisfies: of the invariants, and the norms of all Euler parameters."""
    norms = [equations.system.norm(group) for group in equations.system.norms]
    known = [item.position for item in equations.constraints.invariants]
    return [*known, *(norm for norm in norms if norm not in known)]


def _masses_are_positive(equations: Equations, state: State) -> bool:
    """Whether masses and inertias that depend on time or inputs are positive (semidefinite) at this state."""
    for body in equations.bodies:
        if not body.mass_rate.is_zero and not evaluate([body.mass], state.values())[0] > 0.0:
            return False
        if body.inertia is not None and body.inertia_rate is not None:
            xx, yy, zz, xy, xz, yz = evaluate(body.inertia, state.values())
            smallest = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])[0]
            if not smallest >= -RELATIVE_ZERO * (xx + yy + zz):
                return False
    return True


def _inside_tables(equations: Equations, state: State) -> bool:
    """Whether no argument of a table is beyond its ends; those that contain more than a state has are left out."""
    values = state.values()
    for node in equations.graph.limited:
        inputs = (x.payload for x in reachable(node.args) if x.op == "input")
        if all(name in values and index < len(values[name]) for name, index in inputs):
            for domain, x in zip(node.payload.domains, evaluate(node.args, values), strict=True):
                if domain is not None and not domain.limits[0] <= x <= domain.limits[1]:
                    return False
    return True


def _regular(equations: Equations, state: State) -> bool:
    """Whether the equations are finite and far from singular, whatever their units, and tables have values."""
    if not _inside_tables(equations, state):
        return False
    groups = (equations.M, equations.J, equations.P, equations.b, equations.qdot, equations.sdot)
    M, J, *vectors = (array.astype(np.float64) for array in read(groups, state.values()))
    if not all(np.all(np.isfinite(array)) for array in (M, J, *vectors)):
        return False
    chosen = independent_rows(J)
    if len(chosen) < len(J) and (equations.has_partition or not state.consistent):
        # Rows that are independent elsewhere; redundant constraints contradict each other off the manifold.
        return False
    J = J[list(chosen)]
    bordered = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
    for _ in range(3):
        largest = np.sqrt(np.abs(bordered).max(axis=1, initial=0.0))
        if not np.all(largest > 0.0):
            return False
        bordered = bordered / largest[:, None] / largest
    return bool(np.linalg.cond(bordered) < CONDITION)
