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

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.graph.ranks import RANK_TOLERANCE, pivoted_columns
from kanegen.solve.functions import Functions
from kanegen.solve.names import listed, unknown
from kanegen.solve.run.integrate import violations

Evaluate = Callable[[str], Array]
"""The value of a compiled function, by name, at the state of linearization."""

NEGLIGIBLE = 1e-12
"""Entries of A below this fraction of the largest are rounding errors: the coordinate has no influence."""

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

    ``z`` are the independent ``coordinates``, then the independent ``speeds``; ``inputs`` names the elements of dr, in
    which rates of inputs are inputs of their own. ``C`` and ``D`` have a row for every coordinate and speed,
    ``C_outputs`` and ``D_outputs`` for every output of the model (every component of a matrix): ``dy = C_outputs z +
    D_outputs dr``, with the accelerations that the outputs contain. ``steady``: to first order, nothing that A and B
    depend on changes along the motion. Otherwise A and B hold at this instant only, and the eigenvalues do not show
    stability.
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

        Each of these coordinates belongs to an eigenvalue zero, which is removed with it.
        """
        kept = list(range(len(self.states)))
        small = NEGLIGIBLE * np.abs(self.A).max(initial=0.0)
        while True:
            others = {i: [k for k in kept if k != i] for i in kept if i < len(self.coordinates)}
            ignorable = [i for i, rest in others.items() if np.abs(self.A[rest, i]).max(initial=0.0) <= small]
            # A coordinate with z' = a z, a not zero, depends on itself and stays.
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


class Differentiable:
    """The methods of :class:`~kanegen.Solver` for Jacobians and linear models.

    They need ``functions=("rhs", "residuals", "jacobians")`` of ``kg.build``, or more.
    """

    description: Description
    rhs: Callable[..., tuple[Array, Array]]
    residuals: Callable[..., tuple[Array, Array]]
    _functions: Functions

    def jacobian(self, t: float, q: Any, u: Any, r: Any = None) -> Jacobian:
        """Derivatives of (q', u') with the stabilization of the solver, by implicit differentiation, in C.

        Returns
        -------
        Jacobian
            Arrays (n_q + n_u, n) in ``q``, ``u``, the inputs ``r`` (rates of inputs are inputs of their own) and the
            parameters ``p`` in the order of ``description.parameters``. Off the constraint manifold they are those of
            ``rhs`` there. The slope of a root is taken as 0 where the root is 0 (docs/linearization.md).

        Raises
        ------
        SolveError
            Where ``rhs`` raises it, where a derivative is not finite, and when the Jacobians were not built.
        """
        d = self.description
        sizes = {"q": len(d.coordinates), "u": len(d.speeds), "r": len(d.inputs), "p": len(d.parameters)}
        evaluate, rows = self._evaluate(t, q, u, r), len(d.coordinates) + len(d.speeds)
        return Jacobian(*(evaluate(f"jacobian_{name}") if n else np.empty((rows, 0)) for name, n in sizes.items()))

    def linearize(
        self,
        t: float,
        q: Any,
        u: Any,
        r: Any = None,
        *,
        coordinates: Sequence[Any] | None = None,
        speeds: Sequence[Any] | None = None,
        tolerance: float = 1e-8,
    ) -> Linearization:
        """The linear model in a minimal state about an equilibrium or a steady motion.

        Parameters
        ----------
        coordinates, speeds
            Names (or symbols) of the independent coordinates and speeds; None: those the constraints determine
            the others from best.
        tolerance
            How far the state may violate a constraint: its residual over the largest coordinate (positions) or speed
            (velocities), which counts as 1 at least.

        Raises
        ------
        SolveError
            When the state violates the constraints, naming each with its residual; when the named elements are not
            independent; when the Jacobians were not built.
        """
        position, velocity = self.residuals(t, q, u, r)
        violated = violations(self.description, position, velocity, q, u, tolerance)
        if violated:
            raise SolveError(
                listed(
                    f"the model {self.description.name!r} cannot be linearized at t = {t!r} s, because the state "
                    f"violates {len(violated)} constraint(s)",
                    violated,
                    "solve them first: q, u = solver.make_consistent(t, q, u), with fixed= for values to keep; or "
                    "allow more by tolerance=",
                )
            )
        return linearize(self._evaluate(t, q, u, r), self.description, self.rhs(t, q, u, r), coordinates, speeds)

    def _evaluate(self, t: float, q: Any, u: Any, r: Any) -> Evaluate:
        return lambda name: self._functions.get(name).value(t, q, u, r)


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
    in_q, in_u, in_r = (slopes[name][n_position:] for name in ("q", "u", "r"))
    u_u, u_rest, u_free = _solved(in_u, np.hstack([in_q @ q_q, in_r + in_q @ q_r]), d.speeds, speeds, "speed")
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
    """Names of the components of all outputs, with their derivatives in (q, u) and r; empty if they were not built."""
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
        # Least squares, since redundant rows are allowed.
        right = -np.hstack([matrix[:, free], others])
        solution = np.linalg.lstsq(matrix[:, bound], right, rcond=RANK_TOLERANCE)[0]
        X[bound], Y[bound] = solution[:, : len(free)], solution[:, len(free) :]
    return X, Y, free


def _free(matrix: Array, names: Sequence[str], wanted: Sequence[Any] | None, what: str) -> list[int]:
    """Indices of the independent elements, ascending."""
    rank, order = pivoted_columns(matrix)
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
    if rank and pivoted_columns(matrix[:, bound])[0] < rank:
        raise SolveError(
            f"the constraints at this state do not determine the other {what}s from {', '.join(chosen)}; name others, "
            f"for instance {advice}"
        )
    return free


def _is_steady(F: Array, F_t: Array, rates: tuple[Array, Array], rows: list[int]) -> bool:
    """Whether the independent accelerations (``rows`` of the rates) and their time derivatives are zero.

    Coordinates and dependent speeds may change, as those of a wheel, or of a vehicle in a steady turn, do.
    """
    rate = np.concatenate(rates)
    scale = 1.0 + float(np.abs(F).max(initial=0.0)) * (1.0 + float(np.abs(rate).max(initial=0.0)))
    change = np.concatenate([rate[rows], (F @ rate + F_t)[rows]])
    return bool(np.abs(change).max(initial=0.0) <= STEADY * scale)
