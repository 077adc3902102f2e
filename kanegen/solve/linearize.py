"""Jacobians of a solver, and linear models of constrained systems in a minimal state.

The state x = (q, u) satisfies ``phi(q, t, r) = 0`` and ``psi(q, u, t, r) = 0``, where psi includes the rates of
holonomic constraints. Pivoting chooses independent coordinates and speeds z; the linearized constraints determine the
others: ``dx = M dz + N dr``. The rows of the Jacobian that belong to z' then give ``z' = A dz + B dr``. These are the
steps of Peterson, Gede and Hubbard, "Symbolic linearization of equations of motion of constrained multibody systems",
Multibody System Dynamics 33 (2015) 143-161, with compiled Jacobians in place of symbolic matrices and with inputs in
the constraints.
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
from kanegen.solve.consistent import violations
from kanegen.solve.evaluation import Evaluation
from kanegen.solve.values import key_name, listed, require_none, unknown

Evaluate = Callable[[str], Array]
"""The value of a compiled function, by name, at the state of linearization."""

NEGLIGIBLE = 1e-12
"""Entries of A below this fraction of the largest are rounding errors: the coordinate has no influence."""

STEADY = 1e-8
"""Accelerations and their rates below this fraction of the terms of the Jacobian count as zero."""


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

    ``z`` holds the independent ``coordinates``, then the independent ``speeds``; ``inputs`` names the elements of dr,
    where rates of inputs are separate inputs. ``C`` and ``D`` have a row for every coordinate and speed, ``C_outputs``
    and ``D_outputs`` for every output of the model (every component of a matrix): ``dy = C_outputs z + D_outputs dr``,
    including the accelerations in the outputs. ``steady``: A and B are constant along the motion, to first order. If
    not, they are valid at this instant only, and the eigenvalues do not determine stability.
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
        """Eigenvalues of A in 1/s, sorted by decreasing real part."""
        values = np.linalg.eigvals(self.A).astype(np.complex128)
        return values[np.lexsort((-values.imag, -values.real))]

    def without_ignorable(self) -> Linearization:
        """The linear model without ignorable coordinates, on which no rate depends (position along a road, heading).

        Each of these coordinates has an eigenvalue of zero, which is removed as well.
        """
        kept = list(range(len(self.states)))
        small = NEGLIGIBLE * np.abs(self.A).max(initial=0.0)
        while True:
            # A coordinate with z' = a z, a not zero, depends on itself and stays.
            own = [i for i in kept if i < len(self.coordinates) and np.abs(self.A[kept, i]).max() <= small]
            if not own:
                break
            kept.remove(own[0])
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


class Differentiable(Evaluation):
    """The methods of :class:`~kanegen.Solver` for Jacobians and linear models.

    They need ``functions=("rhs", "residuals", "jacobians")`` of ``kg.build``, or further functions.
    """

    def jacobian(self, t: float, q: Any, u: Any, r: Any = None) -> Jacobian:
        """Derivatives of (q', u'), with the stabilization of the solver, by compiled implicit differentiation.

        Returns
        -------
        Jacobian
            Derivatives (n_q + n_u, n) with respect to ``q``, ``u``, the inputs ``r`` (rates of inputs are separate
            inputs) and the parameters ``p`` in the order of ``description.parameters``. They are those of ``rhs``, also
            off the constraint manifold. The derivative of a square root at 0 counts as 0 (docs/linearization.md).

        Raises
        ------
        SolveError
            If ``rhs`` raises it, if a derivative is not finite, and if the Jacobians were not built.
        """
        d = self.description
        return Jacobian(*_slopes(self._evaluate(t, q, u, r), d, "jacobian", len(d.coordinates) + len(d.speeds), "qurp"))

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
            Names (or symbols) of the independent coordinates and speeds; None: chosen by pivoting, so that the
            linearized constraints are well conditioned in the others.
        tolerance
            Largest violation of a constraint: its residual relative to the largest coordinate (positions) or speed
            (velocities), or to 1 if these are smaller.

        Raises
        ------
        SolveError
            If the state violates constraints (the message names each with its residual), if the named elements are not
            independent, and if the Jacobians were not built.
        """
        violated = violations(self.description, self.residuals(t, q, u, r), q, u, tolerance)
        if violated:
            headline = (
                f"the model {self.description.name!r} cannot be linearized at t = {t!r} s, because the state violates "
                f"{len(violated)} constraint(s)"
            )
            advice = "solve them first: q, u = solver.make_consistent(t, q, u), with fixed= for values to keep; or "
            raise SolveError(listed(headline, violated, advice + "allow more by tolerance="))
        return linearize(self._evaluate(t, q, u, r), self.description, self.rhs(t, q, u, r), coordinates, speeds)

    def _evaluate(self, t: float, q: Any, u: Any, r: Any) -> Evaluate:
        return lambda name: np.asarray(self._value(name, t, q, u, r))


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
    n_q, n_p = len(d.coordinates), len(d.constraints.positions)
    on_q, on_u, on_r = _slopes(evaluate, d, "residuals", len(d.constraints.levels))
    q_q, q_r, q_free = _solved(on_q[:n_p], on_r[:n_p], d.coordinates, coordinates, "coordinate")
    in_q, in_u, in_r = on_q[n_p:], on_u[n_p:], on_r[n_p:]
    u_u, u_rest, u_free = _solved(in_u, np.hstack([in_q @ q_q, in_r + in_q @ q_r]), d.speeds, speeds, "speed")
    n_free = len(q_free)
    C = np.vstack([np.hstack([q_q, np.zeros((n_q, len(u_free)))]), np.hstack([u_rest[:, :n_free], u_u])])
    D = np.vstack([q_r, u_rest[:, n_free:]])
    *F_state, F_r = _slopes(evaluate, d, "jacobian", n_q + len(d.speeds))
    F = np.hstack(F_state)
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
    names = tuple(
        f"{name}[{', '.join(map(str, index))}]" if shape else name
        for name, shape in d.outputs.items()
        for index in np.ndindex(*shape)
    )
    names = names if "outputs_q" in d.functions else ()
    *in_state, in_inputs = _slopes(evaluate, d, "outputs", len(names))
    return names, np.hstack(in_state), in_inputs


def _slopes(evaluate: Evaluate, d: Description, name: str, rows: int, variables: str = "qur") -> list[Array]:
    """Derivatives of values (rows,) with respect to q, u, r, p; matrices without elements are not compiled."""
    sizes = {"q": len(d.coordinates), "u": len(d.speeds), "r": len(d.inputs), "p": len(d.parameters)}
    return [evaluate(f"{name}_{x}") if rows and sizes[x] else np.zeros((rows, sizes[x])) for x in variables]


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
        right = -np.hstack([matrix[:, free], others])
        solution = np.linalg.lstsq(matrix[:, bound], right, rcond=RANK_TOLERANCE)[0]  # redundant rows are allowed
        X[bound], Y[bound] = solution[:, : len(free)], solution[:, len(free) :]
    return X, Y, free


def _free(matrix: Array, names: Sequence[str], wanted: Sequence[Any] | None, what: str) -> list[int]:
    """Indices of the independent elements, ascending."""
    rank, order = pivoted_columns(matrix)
    if wanted is None:
        return sorted(order[rank:])
    chosen = [key_name(name) for name in wanted]
    require_none([unknown(name, names, what) for name in chosen if name not in names])
    free = sorted({names.index(name) for name in chosen})
    bound = [i for i in range(len(names)) if i not in free]
    advice = ", ".join(names[i] for i in sorted(order[rank:]))
    if len(free) != len(names) - rank:
        raise SolveError(
            f"{len(free)} independent {what}s are named ({', '.join(chosen)}), but the constraints leave "
            f"{len(names) - rank} free at this state; name, for instance, {advice or 'none'}"
        )
    if rank and pivoted_columns(matrix[:, bound])[0] < rank:
        raise SolveError(
            f"the constraints at this state do not determine the other {what}s from {', '.join(chosen)}; name others, "
            f"for instance {advice}"
        )
    return free


def _is_steady(F: Array, F_t: Array, rates: tuple[Array, Array], rows: list[int]) -> bool:
    """Whether the independent accelerations (``rows`` of the rates) and their time derivatives are zero."""
    rate = np.concatenate(rates)
    scale = 1.0 + float(np.abs(F).max(initial=0.0)) * (1.0 + float(np.abs(rate).max(initial=0.0)))
    change = np.concatenate([rate[rows], (F @ rate + F_t)[rows]])
    return bool(np.abs(change).max(initial=0.0) <= STEADY * scale)
