"""Jacobians of a solver, and linear models of constrained systems in a minimal state.

The state x = (q, u) obeys ``phi(q, t, r) = 0`` and ``psi(q, u, t, r) = 0``, the rates of holonomic constraints among
the latter. Independent coordinates and speeds are chosen by pivoting; the constraints, linearized, give the others:
``dx = M dz + N dr``. With the rows z' of the Jacobian, ``z' = A dz + B dr``: the steps of Peterson, Gede and Hubbard,
"Symbolic linearization of equations of motion of constrained multibody systems", Multibody System Dynamics 33 (2015)
143-161, with numbers from compiled Jacobians in place of their symbolic matrices, and inputs in the constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.solve.names import unknown

Array = NDArray[np.float64]
Evaluate = Callable[[str], Array]
"""The value of a compiled function, by name, at the state of linearization."""

RANK = 1e-10
"""Pivots below this fraction of the largest count as zero: some digits above the rounding of the Jacobians."""

NEGLIGIBLE = 1e-12
"""Entries of A below this fraction of the largest are rounding: the coordinate has no influence."""

STEADY = 1e-8
"""Accelerations, and their rates, below this fraction of what the terms of the Jacobian give count as zero."""


@dataclass(frozen=True, eq=False)
class Jacobian:
    """Derivatives of (q', u'), (n_q + n_u, columns): in the coordinates, speeds, inputs and parameters."""

    q: Array
    u: Array
    r: Array
    p: Array


@dataclass(frozen=True, eq=False)
class Linearization:
    """``z' = A z + B dr``, ``(dq, du) = C z + D dr``: deviations from the state of linearization.

    ``z`` are the independent ``coordinates``, then the independent ``speeds``; ``inputs`` names the elements of dr,
    rates of inputs being inputs of their own. ``C`` and ``D`` have a row for each of all coordinates and speeds;
    ``C_outputs`` and ``D_outputs`` one for each of the model's ``outputs`` (each component of a matrix), ``dy =
    C_outputs z + D_outputs dr``, the accelerations in them included.
    ``steady``: nothing that A, B depend on changes along the motion to first order; otherwise they hold at this
    instant only and the eigenvalues say nothing of stability.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    coordinates: tuple[str, ...]
    speeds: tuple[str, ...]
    inputs: tuple[str, ...]
    steady: bool
    C_outputs: Array
    D_outputs: Array
    outputs: tuple[str, ...]

    @property
    def states(self) -> tuple[str, ...]:
        """The names of z."""
        return self.coordinates + self.speeds

    @property
    def eigenvalues(self) -> NDArray[np.complex128]:
        """Eigenvalues of A in 1/s, by falling real part."""
        values = np.linalg.eigvals(self.A).astype(np.complex128)
        return values[np.lexsort((-values.imag, -values.real))]

    def without_ignorable(self) -> Linearization:
        """The linear model without the coordinates that nothing else depends on (position along a road, heading).

        Each takes an eigenvalue zero with it.
        """
        kept = list(range(len(self.states)))
        small = NEGLIGIBLE * np.abs(self.A).max(initial=0.0)
        while True:
            others = {i: [k for k in kept if k != i] for i in kept if i < len(self.coordinates)}
            ignorable = [i for i, rest in others.items() if np.abs(self.A[rest, i]).max(initial=0.0) <= small]
            # One that only drives itself, z' = a z with a not zero, is no position to be forgotten.
            ignorable = [i for i in ignorable if abs(self.A[i, i]) <= small]
            if not ignorable:
                break
            kept.remove(ignorable[0])
        names = [self.states[i] for i in kept]
        n = sum(i < len(self.coordinates) for i in kept)
        return replace(
            self,
            A=self.A[np.ix_(kept, kept)],
            B=self.B[kept],
            C=self.C[:, kept],
            C_outputs=self.C_outputs[:, kept],
            coordinates=tuple(names[:n]),
            speeds=tuple(names[n:]),
        )


def jacobian(evaluate: Evaluate, description: Description) -> Jacobian:
    """The derivatives of (q', u'), empty arrays where there are no inputs or parameters."""
    rows = len(description.coordinates) + len(description.speeds)

    def of(name: str, count: int) -> Array:
        return evaluate(f"jacobian_{name}") if count else np.empty((rows, 0))

    return Jacobian(
        of("q", len(description.coordinates)),
        of("u", len(description.speeds)),
        of("r", len(description.inputs)),
        of("p", len(description.parameters)),
    )


def linearize(
    evaluate: Evaluate,
    description: Description,
    rates: tuple[Array, Array],
    coordinates: Sequence[Any] | None = None,
    speeds: Sequence[Any] | None = None,
) -> Linearization:
    """The minimal linear model; ``rates`` are (q', u') at the state, which satisfies the constraints.

    ``coordinates`` and ``speeds`` name the independent ones; None: chosen by pivoting.
    """
    d = description
    n_q, n_u, n_r = len(d.coordinates), len(d.speeds), len(d.inputs)
    slopes = _residual_slopes(evaluate, d)
    n_position = len(d.constraints.positions)
    q_q, q_r, q_free = _solved(
        slopes["q"][:n_position], slopes["r"][:n_position], d.coordinates, coordinates, "coordinate"
    )
    u_u, u_rest, u_free = _solved(
        slopes["u"][n_position:],
        np.hstack([slopes["q"][n_position:] @ q_q, slopes["r"][n_position:] + slopes["q"][n_position:] @ q_r]),
        d.speeds,
        speeds,
        "speed",
    )
    n_free = len(q_free)
    C = np.vstack([np.hstack([q_q, np.zeros((n_q, len(u_free)))]), np.hstack([u_rest[:, :n_free], u_u])])
    D = np.vstack([q_r, u_rest[:, n_free:]])
    F = np.hstack([evaluate("jacobian_q"), evaluate("jacobian_u")])
    F_r = evaluate("jacobian_r") if n_r else np.empty((n_q + n_u, 0))
    rows = [*q_free, *(n_q + i for i in u_free)]
    names, Y, Y_r = _outputs(evaluate, d)
    return Linearization(
        A=(F @ C)[rows],
        B=(F @ D + F_r)[rows],
        C=C,
        D=D,
        coordinates=tuple(d.coordinates[i] for i in q_free),
        speeds=tuple(d.speeds[i] for i in u_free),
        inputs=d.inputs,
        steady=_is_steady(F, evaluate("jacobian_t"), rates, [n_q + i for i in u_free]),
        C_outputs=Y @ C,
        D_outputs=Y @ D + Y_r,
        outputs=names,
    )


def _outputs(evaluate: Evaluate, d: Description) -> tuple[tuple[str, ...], Array, Array]:
    """Names of the components of all outputs, and their derivatives in (q, u) and r; none where they were not built."""
    n_r = len(d.inputs)
    names = tuple(label for name, shape in d.outputs.items() for label in _components(name, shape))
    if not names or "outputs_q" not in d.functions:
        return (), np.zeros((0, len(d.coordinates) + len(d.speeds))), np.zeros((0, n_r))
    in_state = np.hstack([evaluate("outputs_q"), evaluate("outputs_u")])
    return names, in_state, evaluate("outputs_r") if n_r else np.zeros((len(names), 0))


def _components(name: str, shape: tuple[int, ...]) -> list[str]:
    """``name`` of a scalar, ``name[i]`` or ``name[i, j]`` of the elements of a matrix."""
    if not shape:
        return [name]
    return [f"{name}[{', '.join(map(str, index))}]" for index in np.ndindex(*shape)]


def _residual_slopes(evaluate: Evaluate, d: Description) -> dict[str, Array]:
    """Derivatives of all residuals in q, u and r; without constraints, arrays without rows."""
    rows = len(d.constraints.positions) + len(d.constraints.velocities)
    sizes = {"q": len(d.coordinates), "u": len(d.speeds), "r": len(d.inputs)}
    return {name: evaluate(f"residuals_{name}") if rows and n else np.zeros((rows, n)) for name, n in sizes.items()}


def _solved(
    matrix: Array, others: Array, names: Sequence[str], wanted: Sequence[Any] | None, what: str
) -> tuple[Array, Array, list[int]]:
    """From ``matrix dx + others dy = 0``: ``dx = X dx_free + Y dy`` and the indices of the free elements of x."""
    n = len(names)
    free = _free(matrix, names, wanted, what)
    bound = [i for i in range(n) if i not in free]
    X, Y = np.zeros((n, len(free))), np.zeros((n, others.shape[1]))
    X[free, range(len(free))] = 1.0
    if bound:
        # Least squares: redundant rows, consistent with the others, are allowed.
        right = -np.hstack([matrix[:, free], others])
        solution = np.linalg.lstsq(matrix[:, bound], right, rcond=RANK)[0]
        X[bound], Y[bound] = solution[:, : len(free)], solution[:, len(free) :]
    return X, Y, free


def _free(matrix: Array, names: Sequence[str], wanted: Sequence[Any] | None, what: str) -> list[int]:
    """Indices of the independent elements, ascending."""
    rank, order = _pivots(matrix)
    if wanted is None:
        return sorted(order[rank:])
    chosen = [str(name).removesuffix("(t)") for name in wanted]
    for name in chosen:
        if name not in names:
            raise SolveError(unknown(name, tuple(names), what))
    free = sorted({names.index(name) for name in chosen})
    bound = [i for i in range(len(names)) if i not in free]
    advice = ", ".join(names[i] for i in sorted(order[rank:]))
    if len(free) != len(names) - rank:
        raise SolveError(
            f"{len(free)} independent {what}s are named ({', '.join(chosen)}), the constraints leave "
            f"{len(names) - rank} free at this state; for instance {advice or 'none'}"
        )
    if rank and _pivots(matrix[:, bound])[0] < rank:
        raise SolveError(
            f"the constraints at this state do not determine the other {what}s from {', '.join(chosen)}; name others, "
            f"for instance {advice}"
        )
    return free


def _pivots(matrix: Array) -> tuple[int, list[int]]:
    """Rank of a matrix and its columns, those that determine it best first (QR with column pivoting)."""
    if not matrix.size:
        return 0, list(range(matrix.shape[1]))
    from scipy.linalg import qr

    R, order = qr(matrix, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(R))
    return int((diagonal > RANK * diagonal[0]).sum()) if diagonal[0] > 0 else 0, [int(i) for i in order]


def _is_steady(F: Array, F_t: Array, rates: tuple[Array, Array], rows: list[int]) -> bool:
    """Whether the independent accelerations (``rows`` of the rates) are zero and stay so: d/dt of them vanishes too.

    Coordinates and dependent speeds may change: those of a wheel, or of a vehicle in a steady turn, do.
    """
    rate = np.concatenate(rates)
    scale = 1.0 + float(np.abs(F).max(initial=0.0)) * (1.0 + float(np.abs(rate).max(initial=0.0)))
    change = np.concatenate([rate[rows], (F @ rate + F_t)[rows]])
    return bool(np.abs(change).max(initial=0.0) <= STEADY * scale)
