"""Jacobians of a solver, and linear models of constrained systems in a minimal state.

The state x = (q, u) satisfies ``phi(q, t, r) = 0`` and ``psi(q, u, t, r) = 0``, where psi includes the rates of
holonomic constraints. Pivoting chooses independent coordinates and speeds z; the linearized constraints determine the
others: ``dx = M dz + N dr``. The rows of the Jacobian that belong to z' then give ``z' = A dz + B dr``. These are the
steps of Peterson, Gede and Hubbard, "Symbolic linearization of equations of motion of constrained multibody systems",
Multibody System Dynamics 33 (2015) 143-161, with compiled Jacobians in place of symbolic matrices and with inputs in
the constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.display import Table, page
from kanegen.errors import SolveError
from kanegen.graph.ranks import RANK_TOLERANCE, pivoted_columns
from kanegen.model.records import FrozenMapping
from kanegen.solve.consistent import violations
from kanegen.solve.contacts import contacts_at
from kanegen.solve.evaluation import Evaluation
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.values import listed, names_in, one_state, positive, require_none, shown, unknown

Evaluate = Callable[[str], Array]
"""The value of a compiled function, by name, at the state of linearization."""

NEGLIGIBLE = 1e-12
"""Entries of A below this fraction of the largest are rounding errors: the coordinate has no influence."""

MOST_COLUMNS = 16
"""Columns of a matrix that a notebook shows."""

STEADY = 1e-8
"""Accelerations and their rates below this fraction of the terms of the Jacobian count as zero."""


@dataclass(frozen=True, eq=False)
class Jacobian:
    """Derivatives of (q', u', s'), (n_q + n_u + n_s, columns): in coordinates, speeds, states, inputs, parameters.

    ``rows`` are the names of the rates, ``columns`` maps ``"q"``, ``"u"`` ... to the names of the columns.
    """

    q: Array
    u: Array
    s: Array
    r: Array
    p: Array
    rows: tuple[str, ...] = ()
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=FrozenMapping)

    def __repr__(self) -> str:
        columns = "; ".join(f"{letter}: {shown(names)}" for letter, names in self.columns.items() if names)
        return f"<Jacobian of {shown(self.rows)}, with columns {columns}>"


@dataclass(frozen=True, eq=False)
class Linearization:
    """``z' = A z + B dr``, ``(dq, du, ds) = C z + D dr``: deviations from the state of linearization.

    ``z`` holds the independent ``coordinates``, the independent ``speeds``, then the ``additional_states`` of a model
    with states; ``inputs`` names the elements of dr, where rates of inputs are separate inputs. ``C`` and ``D`` have a
    row for every coordinate, speed and additional state, ``C_outputs`` and ``D_outputs`` for every output of the model
    (every component of a matrix): ``dy = C_outputs z + D_outputs dr``, including the accelerations in the outputs.
    ``steady``: A and B are constant along the motion, to first order. If not, they are valid at this instant only, and
    the eigenvalues do not determine stability.
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
    additional_states: tuple[str, ...] = ()

    def __repr__(self) -> str:
        inputs = f"; inputs {shown(self.inputs)}" if self.inputs else ""
        outputs = f"; outputs {shown(self.outputs)}" if self.outputs else ""
        # Of a pair, a + bi and a - bi, the first one stands for both.
        pairs = [(x, f"{x.real:.4g}" if x.imag == 0 else f"{x.real:.4g} +- {x.imag:.4g}i") for x in self.eigenvalues]
        eigenvalues = shown([text for value, text in pairs if value.imag >= 0])
        steady = "steady" if self.steady else "not steady: valid at this instant only"
        return f"<Linearization: states {shown(self.states)}{inputs}{outputs}; eigenvalues {eigenvalues} 1/s; {steady}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the eigenvalues, and the matrices A and B with the names of rows and columns."""
        rows = [(f"{x.real:.6g}", f"{x.imag:.6g}") for x in self.eigenvalues.tolist()]
        note = "" if self.steady else "not steady: valid at this instant only"
        eigenvalues = Table.of("Eigenvalues", ("real (1/s)", "imaginary (1/s)"), rows, notes=(note,) if note else ())
        matrices = [("A", self.A, self.states), *([("B", self.B, self.inputs)] if self.inputs else [])]
        return page(eigenvalues, *(_matrix_table(*matrix, self.states) for matrix in matrices))

    @property
    def states(self) -> tuple[str, ...]:
        """The names of z."""
        return self.coordinates + self.speeds + self.additional_states

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
        n, end = sum(i < len(self.coordinates) for i in kept), len(kept) - len(self.additional_states)
        return replace(
            self,
            A=self.A[np.ix_(kept, kept)],
            B=self.B[kept],
            C=self.C[:, kept],
            C_outputs=self.C_outputs[:, kept],
            coordinates=tuple(names[:n]),
            speeds=tuple(names[n:end]),
        )


def _matrix_table(title: str, matrix: Array, columns: Sequence[str], rows: Sequence[str]) -> Table:
    """A matrix with names; of many columns the first ones."""
    shown = columns[:MOST_COLUMNS]
    left_out = len(columns) - len(shown)
    kept = matrix[:, : len(shown)].tolist()
    entries = [(f"{name}'", *(f"{x:.5g}" for x in row)) for name, row in zip(rows, kept, strict=True)]
    notes = (f"{left_out} further columns",) if left_out else ()
    return Table.of(title, ("", *shown), entries, right=shown, notes=notes)


class Differentiable(Evaluation):
    """The methods of :class:`~kanegen.Solver` for Jacobians and linear models.

    They need ``functions=("rhs", "residuals", "jacobians")`` of ``kg.build``, or further functions.
    """

    def jacobian(self, t: float, q: Any, u: Any, r: Any = None, s: Any = None) -> Jacobian:
        """Derivatives of (q', u', s'), with the stabilization of the solver, by compiled implicit differentiation.

        The state is given as for :meth:`linearize`.

        Returns
        -------
        Jacobian
            Derivatives (n_q + n_u + n_s, n) with respect to ``q``, ``u``, ``s``, the inputs ``r`` (rates of inputs are
            separate inputs) and the parameters ``p`` in the order of ``description.parameters``. They are those of
            ``rhs``, also off the constraint manifold. The derivative of a square root at 0 counts as 0
            (docs/linearization.md).

        Raises
        ------
        SolveError
            If ``rhs`` raises it, if a derivative is not finite, and if the Jacobians were not built.
        """
        d = self.description
        q, u, s = self._state(q, u, s)
        one_state(t, q, u, r, s)
        rows = tuple(f"{name}'" for name in (*d.coordinates, *d.speeds, *d.states))
        columns = FrozenMapping(zip("qusrp", (d.coordinates, d.speeds, d.states, d.inputs, d.parameters), strict=True))
        on_q, on_u, on_s, on_r, on_p = _slopes(self._evaluate(t, q, u, r, s), d, "jacobian", _size(d), "qusrp")
        return Jacobian(on_q, on_u, on_s, on_r, on_p, rows, columns)

    def linearize(
        self,
        t: float,
        q: Any,
        u: Any,
        r: Any = None,
        s: Any = None,
        *,
        coordinates: Sequence[Any] | None = None,
        speeds: Sequence[Any] | None = None,
        tolerance: float = 1e-8,
    ) -> Linearization:
        """The linear model in a minimal state about an equilibrium or a steady motion.

        Parameters
        ----------
        q, u, s
            The state, arrays or mappings from names or symbols to values; those not given are those of ``initial``.
        coordinates, speeds
            Names (or symbols) of the independent coordinates and speeds; None: chosen by pivoting, so that the
            linearized constraints are well conditioned in the others.
        tolerance
            Largest violation of a constraint: its residual relative to the largest coordinate (positions) or speed
            (velocities), or to 1 if these are smaller.

        Raises
        ------
        SolveError
            If the state violates constraints (the message names each with its residual), if a contact acts there, whose
            force the Jacobians do not contain, if the named elements are not independent, and if the Jacobians were not
            built.
        """
        tolerance = positive(tolerance, "tolerance")
        q, u, s = self._state(q, u, s)
        one_state(t, q, u, r, s)
        _require_open_contacts(self._functions, t, q, u, self._functions.with_states(r, s))
        violated = violations(self.description, self.residuals(t, q, u, r), q, u, tolerance)
        if violated:
            headline = (
                f"the model {self.description.name!r} cannot be linearized at t = {t!r} s, because the state violates "
                f"{len(violated)} constraint(s)"
            )
            advice = "solve them first: q, u = solver.make_consistent(t, q, u), with fixed= for values to keep; or "
            raise SolveError(listed(headline, violated, advice + "allow more by tolerance="))
        rates = self.rhs(t, q, u, r, s)
        return linearize(self._evaluate(t, q, u, r, s), self.description, rates, coordinates, speeds)

    def _evaluate(self, t: float, q: Any, u: Any, r: Any, s: Any) -> Evaluate:
        return lambda name: np.asarray(self._value(name, t, q, u, r, s))


def _require_open_contacts(functions: CompiledFunctions, t: float, q: Any, u: Any, r: Any) -> None:
    """Raise `SolveError` for contacts that act at the state, because the Jacobians hold their forces constant."""
    if not functions.module.CONTACTS:
        return
    states = contacts_at(functions, t, q, u, r).states
    acting = [f"{name} ({state.mode})" for name, state in states.items() if state.mode != "open"]
    if acting:
        raise SolveError(
            f"the model {functions.description.name!r} cannot be linearized at t = {t!r} s while contacts act: "
            f"{', '.join(acting)}; the linear model would not contain their forces. For this state build a model "
            "without these contacts: a closed rigid contact is a holonomic constraint, a compliant one a load"
        )


def _size(d: Description) -> int:
    """The number of coordinates, speeds and additional states."""
    return len(d.coordinates) + len(d.speeds) + len(d.states)


def linearize(
    evaluate: Evaluate,
    description: Description,
    rates: tuple[Array, ...],
    coordinates: Sequence[Any] | None = None,
    speeds: Sequence[Any] | None = None,
) -> Linearization:
    """The minimal linear model; ``rates`` are (q', u', s') at the state, which satisfies the constraints.

    ``coordinates`` and ``speeds`` name the independent ones; None: chosen by pivoting.
    """
    d = description
    n_q, n_p = len(d.coordinates), len(d.constraints.positions)
    on_q, on_u, on_r = _slopes(evaluate, d, "residuals", len(d.constraints.levels), "qur")
    q_q, q_r, q_free = _solved(on_q[:n_p], on_r[:n_p], d.coordinates, coordinates, "coordinate")
    in_q, in_u, in_r = on_q[n_p:], on_u[n_p:], on_r[n_p:]
    u_u, u_rest, u_free = _solved(in_u, np.hstack([in_q @ q_q, in_r + in_q @ q_r]), d.speeds, speeds, "speed")
    n_free = len(q_free)
    n_u, n_s = len(d.speeds), len(d.states)
    C = _block_diagonal(
        np.vstack([np.hstack([q_q, np.zeros((n_q, len(u_free)))]), np.hstack([u_rest[:, :n_free], u_u])]), np.eye(n_s)
    )
    D = np.vstack([q_r, u_rest[:, n_free:], np.zeros((n_s, len(d.inputs)))])
    *F_state, F_r = _slopes(evaluate, d, "jacobian", _size(d))
    F = np.hstack(F_state)
    rows = [*q_free, *(n_q + i for i in (*u_free, *range(n_u, n_u + n_s)))]
    names, Y, Y_r = _outputs(evaluate, d)
    return Linearization(
        A=(F @ C)[rows],
        B=(F @ D + F_r)[rows],
        C=C,
        D=D,
        coordinates=tuple(d.coordinates[i] for i in q_free),
        speeds=tuple(d.speeds[i] for i in u_free),
        inputs=d.inputs,
        steady=_is_steady(F, evaluate("jacobian_t"), rates, rows[n_free:]),
        C_outputs=Y @ C,
        D_outputs=Y @ D + Y_r,
        outputs=names,
        additional_states=d.states,
    )


def _block_diagonal(a: Array, b: Array) -> Array:
    zeros = np.zeros((a.shape[0], b.shape[1])), np.zeros((b.shape[0], a.shape[1]))
    return np.block([[a, zeros[0]], [zeros[1], b]])


def _outputs(evaluate: Evaluate, d: Description) -> tuple[tuple[str, ...], Array, Array]:
    """Names of all components of the outputs, their derivatives in (q, u, s) and in r; empty if they were not built."""
    names = tuple(
        f"{name}[{', '.join(map(str, index))}]" if shape else name
        for name, shape in d.outputs.items()
        for index in np.ndindex(*shape)
    )
    names = names if "outputs_q" in d.functions else ()
    *in_state, in_inputs = _slopes(evaluate, d, "outputs", len(names))
    return names, np.hstack(in_state), in_inputs


def _slopes(evaluate: Evaluate, d: Description, name: str, rows: int, variables: str = "qusr") -> list[Array]:
    """Derivatives of values (rows,) with respect to q, u, s, r, p; matrices without elements are not compiled."""
    sizes = {"q": len(d.coordinates), "u": len(d.speeds), "s": len(d.states), "r": len(d.inputs)}
    sizes["p"] = len(d.parameters)
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
    chosen = names_in(wanted, f"{what}s")
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


def _is_steady(F: Array, F_t: Array, rates: tuple[Array, ...], rows: list[int]) -> bool:
    """Whether the independent accelerations and s' (``rows`` of the rates), and their time derivatives, are zero."""
    rate = np.concatenate(rates)
    scale = 1.0 + float(np.abs(F).max(initial=0.0)) * (1.0 + float(np.abs(rate).max(initial=0.0)))
    change = np.concatenate([rate[rows], (F @ rate + F_t)[rows]])
    return bool(np.abs(change).max(initial=0.0) <= STEADY * scale)
