"""Jacobians of a solver, and linear models of constrained systems in a minimal state.

The state x = (q, u) satisfies ``phi(q, t, r) = 0`` and ``psi(q, u, t, r) = 0``, where psi includes the rates of
holonomic constraints. Pivoting chooses independent coordinates and speeds z; the linearized constraints determine the
others: ``dx = M dz + N dr``. The rows of the Jacobian that belong to z' then give ``z' = A dz + B dr``. These are the
steps of Peterson, Gede and Hubbard, "Symbolic linearization of equations of motion of constrained multibody systems",
Multibody System Dynamics 33 (2015) 143-161, with compiled Jacobians in place of symbolic matrices and with inputs in
the constraints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.backends.points import Point
from kanegen.display import Table, page
from kanegen.errors import SolveError
from kanegen.graph.ranks import RANK_TOLERANCE, comparable_rows, pivoted_columns
from kanegen.model.inputs import MULTIPLIER
from kanegen.model.records import FrozenMapping
from kanegen.solve.analysis.closed_contacts import (
    COLUMNS,
    ClosedContacts,
    ContactValues,
    closed_contacts,
    require_regular_modes,
)
from kanegen.solve.analysis.closed_loop import ClosedSlopes, closed_inputs
from kanegen.solve.analysis.cyclic import Cyclic
from kanegen.solve.analysis.sizes import disturbed_arguments, terms_of, without_roundings
from kanegen.solve.analysis.slopes import Evaluate, Slopes
from kanegen.solve.consistent import violations
from kanegen.solve.contacts import ContactState, contacts_at
from kanegen.solve.evaluation import Evaluation
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.values import flag, largest, listed, names_in, one_state, positive, require_none, shown, unknown

MOST_COLUMNS = 16
"""Columns of a matrix that a notebook shows."""

STEADY = 1e-8
"""Accelerations and their rates below this fraction of their terms count as zero."""

_SAMPLES = 2
"""Disturbed linear models that show which entries of A are rounding errors: one can happen to be the same."""


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
        matrices = [("A", self.A, self.states), *([("B", self.B, self.inputs)] if self.inputs else [])]
        return page(self.eigenvalue_table(), *(_matrix_table(*matrix, self.states) for matrix in matrices))

    def eigenvalue_table(self) -> Table:
        """Real and imaginary parts of the eigenvalues."""
        rows = [(f"{x.real:.6g}", f"{x.imag:.6g}") for x in self.eigenvalues.tolist()]
        notes = () if self.steady else ("not steady: valid at this instant only",)
        return Table.of("Eigenvalues", ("real (1/s)", "imaginary (1/s)"), rows, notes=notes)

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
        while True:
            # A coordinate with z' = a z, a not zero, depends on itself and stays.
            own = [i for i in kept if i < len(self.coordinates) and not self.A[kept, i].any()]
            if not own:
                break
            kept.remove(own[0])
        dropped = [i for i in range(len(self.states)) if i not in kept]
        return self.without(Cyclic(dropped, np.eye(len(self.states))[:, dropped]))

    def without(self, cyclic: Cyclic) -> Linearization:
        """The linear model of the other states, at constant values of the coordinates that cyclic directions drop."""
        kept = cyclic.kept
        names = [self.states[i] for i in kept]
        n, end = sum(i < len(self.coordinates) for i in kept), len(kept) - len(self.additional_states)
        return replace(
            self,
            A=cyclic.without(self.A)[:, kept],
            B=cyclic.without(self.B),
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


@dataclass(frozen=True, eq=False)
class _Place:
    """A ``state`` (q, u, r, s, forces) at which a model is linearized, with its contacts and the laws that act."""

    functions: CompiledFunctions
    rhs: str
    t: float
    state: tuple[Any, ...]
    contacts: Mapping[str, ContactState]
    tolerance: float
    laws: tuple[int, ...]

    @cached_property
    def rates(self) -> tuple[Array, Array]:
        """(q', u', s') and the sums of their absolute terms."""
        rates = np.concatenate(Point(self.t, *self.state).evaluate(self.functions.get(self.rhs).pair))
        return rates, terms_of(self.functions, self.rhs, rates, self.t, self.state, "pair")

    def slopes(self, functions: CompiledFunctions, state: Sequence[Any]) -> Slopes:
        """The derivatives at a state, with the parameters of ``functions``."""
        d = functions.description
        at = Point(self.t, *state)
        slopes = Slopes(lambda name: np.asarray(at.evaluate(functions.get(name).value)), d)
        return ClosedSlopes(slopes, self.laws) if self.laws else slopes

    def linear(self, slopes: Slopes, state: Sequence[Any], coordinates: Any, speeds: Any) -> Linearization:
        """The linear model with these derivatives in these independent coordinates and speeds; None: chosen."""
        contacts = contacts_near(slopes, self.t, self.contacts, (state[0], state[1]), self.tolerance)
        return without_inputs(linearize(slopes, self.rates, contacts, coordinates, speeds), self.laws)

    def disturbed(self, sample: int, like: Linearization) -> Array:
        """A of the linear model in the same coordinates and speeds at a state and with parameters that have errors."""
        state = disturbed_arguments(self.state, sample)
        return self.linear(self.slopes(self.functions.disturbed[sample], state), state, like.coordinates, like.speeds).A


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
        rows = tuple(f"{name}'" for name in d.components)
        columns = d.names
        slopes = Slopes(self._evaluate(t, q, u, r, s), d)
        on_q, on_u, on_s, on_r, on_p = (slopes.of("jacobian", argument) for argument in "qusrp")
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
        closed_loop: bool = False,
    ) -> Linearization:
        """The linear model in a minimal state about an equilibrium or a steady motion.

        Contacts remain in their modes: a closed rigid contact and a latch are constraints, and so is stick; the forces
        of compliant laws and of slip change with the state.

        Parameters
        ----------
        q, u, s
            The state, arrays or mappings from names or symbols to values; those not given are those of ``initial``.
        coordinates, speeds
            Names (or symbols) of the independent coordinates and speeds; None: chosen by pivoting, so that the
            linearized constraints are well conditioned in the others.
        tolerance
            Largest violation of a constraint: its residual relative to what it changes by when the coordinates and
            speeds change by the size of the largest of them.
        closed_loop
            False: inputs with a feedback law are inputs of the linear model, about the value that the law (or ``r``)
            gives. True: the laws are part of it, ``A + B K``, also within their dead band or saturation; ``inputs`` are
            those without a law, and values that ``r`` gives for inputs with a law are not read.

        Raises
        ------
        SolveError
            If, with ``closed_loop=True``, the model has no laws, one is sampled, or the state is at a kink of one;
            if the state violates constraints (the message names each with its residual), if a contact switches there (a
            gap closes, a normal force or a slip velocity vanishes, friction is at its limit; the message names it), if
            the named elements are not independent, and if the Jacobians were not built.
        """
        tolerance = positive(tolerance, "tolerance")
        q, u, s = self._state(q, u, s)
        one_state(t, q, u, r, s)
        laws = tuple(self.description.laws) if flag(closed_loop, "closed_loop") else ()
        r = closed_inputs(self._functions, t, q, u, r, s) if closed_loop else self._inputs_of_laws(t, q, u, r, s)
        if violated := self._violations(t, q, u, r, s, tolerance):
            headline = (
                f"the model {self.description.name!r} cannot be linearized at t = {t!r} s, because the state violates "
                f"{len(violated)} constraint(s)"
            )
            advice = "solve them first: q, u = solver.make_consistent(t, q, u), with fixed= for values to keep; or "
            raise SolveError(listed(headline, violated, advice + "allow more by tolerance="))
        states: Mapping[str, ContactState] = {}
        forces: Array | None = None
        if self.description.contacts.table:
            r = self._functions.with_laws(("contacts", "gaps"), t, q, u, r, s)
            at = contacts_at(self._functions, Point(t, q, u, r, s))
            states, forces = at.states, at.forces
        place = _Place(self._functions, self._rhs_name, t, (q, u, r, s, forces), states, tolerance, laws)
        own = place.linear(place.slopes(self._functions, place.state), place.state, coordinates, speeds)
        return replace(own, A=without_roundings(own.A, partial(place.disturbed, like=own), _SAMPLES))

    def _inputs_of_laws(self, t: float, q: Any, u: Any, r: Any, s: Any) -> Any:
        """The inputs with the values of the laws, of all functions of linear models."""
        of_slopes = ("jacobian_", "residuals_", "outputs_")
        names = [name for name in self.description.functions if name.startswith(of_slopes)]
        return self._functions.with_laws((self._rhs_name, *names), t, q, u, r, s)

    def _violations(self, t: float, q: Any, u: Any, r: Any, s: Any, tolerance: float) -> list[str]:
        """One message for each constraint that the state violates."""
        if not self.description.constraints.levels:
            return []
        f = self._functions
        return violations(f, Point(t, q, u, f.with_laws(("residuals",), t, q, u, r, s), s), tolerance)

    def _evaluate(self, t: float, q: Any, u: Any, r: Any, s: Any) -> Evaluate:
        return lambda name: np.asarray(self._value(name, t, q, u, r, s))


def contacts_near(
    slopes: Slopes, t: float, states: Mapping[str, ContactState], state: tuple[Any, Any], tolerance: float
) -> ClosedContacts:
    """The derivatives of the contacts at a state (q, u); those of a model without contacts are empty.

    Raises `SolveError` where contacts switch.
    """
    limits = tolerance * largest(state[0]), tolerance * largest(state[1])
    values = ContactValues.of(slopes.evaluate("gaps") if states else np.empty(0), slopes.description)
    require_regular_modes(slopes.description, t, states, values, state[1], tolerance)
    return closed_contacts(slopes, states, values, limits)


def linearize(
    slopes: Slopes,
    rates: tuple[Array, Array],
    contacts: ClosedContacts,
    coordinates: Sequence[Any] | None = None,
    speeds: Sequence[Any] | None = None,
) -> Linearization:
    """The minimal linear model; ``rates`` are (q', u', s') at the state, which satisfies the constraints, and the sums
    of their absolute terms.

    ``coordinates`` and ``speeds`` name the independent ones; None: chosen by pivoting.
    """
    d, size = slopes.description, slopes.columns
    on_q, in_q, in_u, on_r, in_r = _constraints(slopes, contacts)
    q_q, q_r, q_free = _solved(on_q, on_r, d.coordinates, coordinates, "coordinate")
    u_u, u_rest, u_free = _solved(in_u, np.hstack([in_q @ q_q, in_r + in_q @ q_r]), d.speeds, speeds, "speed")
    n_free, n_q, n_u, n_s = len(q_free), size["q"], size["u"], size["s"]
    C = _block_diagonal(
        np.vstack([np.hstack([q_q, np.zeros((n_q, len(u_free)))]), np.hstack([u_rest[:, :n_free], u_u])]), np.eye(n_s)
    )
    D = np.vstack([q_r, u_rest[:, n_free:], np.zeros((n_s, size["r"]))])
    n_x = n_q + n_u + n_s
    F, F_r, F_t = np.split(_with_forces(slopes, "jacobian", contacts, COLUMNS), [n_x, n_x + size["r"]], axis=1)
    Y, Y_r = np.split(_with_forces(slopes, "outputs", contacts, COLUMNS[:-1]), [n_x], axis=1)
    rows = [*q_free, *(n_q + i for i in (*u_free, *range(n_u, n_u + n_s)))]
    return Linearization(
        A=(F @ C)[rows],
        B=(F @ D + F_r)[rows],
        C=C,
        D=D,
        coordinates=tuple(d.coordinates[i] for i in q_free),
        speeds=tuple(d.speeds[i] for i in u_free),
        inputs=d.inputs,
        steady=_is_steady(F, F_t[:, 0], rates, rows[n_free:]),
        C_outputs=Y @ C,
        D_outputs=Y @ D + Y_r,
        outputs=slopes.outputs,
        additional_states=d.states,
    )


def _constraints(slopes: Slopes, contacts: ClosedContacts) -> tuple[Array, Array, Array, Array, Array]:
    """Derivatives of the constraints and closed contacts: positions in q, velocities in q and in u, both in r."""
    rows, n_p = slopes.matrix("residuals", COLUMNS), len(slopes.description.constraints.positions)
    positions = np.vstack([rows[:n_p], contacts.positions])
    velocities = np.vstack([rows[n_p:], contacts.velocities])
    ends = np.cumsum([slopes.columns[argument] for argument in COLUMNS])[:-1]
    on_q, _, _, on_r, _ = np.split(positions, ends, axis=1)
    in_q, in_u, _, in_r, _ = np.split(velocities, ends, axis=1)
    return on_q, in_q, in_u, on_r, in_r


def _with_forces(slopes: Slopes, name: str, contacts: ClosedContacts, arguments: Sequence[str]) -> Array:
    """The derivatives of a function, including those through the forces of closed contacts."""
    own = slopes.matrix(name, arguments)
    if not contacts.forces.any():
        return own
    return own + slopes.of(name, MULTIPLIER) @ contacts.forces[:, : own.shape[1]]


def without_inputs(result: Linearization, slots: tuple[int, ...]) -> Linearization:
    """The linear model without these inputs, on which nothing depends."""
    rest = {name: np.delete(getattr(result, name), slots, 1) for name in ("B", "D", "D_outputs")}
    names = tuple(name for k, name in enumerate(result.inputs) if k not in slots)
    return replace(result, inputs=names, **rest)


def _block_diagonal(a: Array, b: Array) -> Array:
    zeros = np.zeros((a.shape[0], b.shape[1])), np.zeros((b.shape[0], a.shape[1]))
    return np.block([[a, zeros[0]], [zeros[1], b]])


def _solved(
    matrix: Array, others: Array, names: Sequence[str], wanted: Sequence[Any] | None, what: str
) -> tuple[Array, Array, list[int]]:
    """From ``matrix dx + others dy = 0``: ``dx = X dx_free + Y dy`` and the indices of the free elements of x."""
    n = len(names)
    rows = comparable_rows(np.hstack([matrix, others]))
    matrix, others = rows[:, :n], rows[:, n:]
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


def _is_steady(F: Array, F_t: Array, rates: tuple[Array, Array], rows: list[int]) -> bool:
    """Whether the independent accelerations and s' (``rows`` of the rates), and their time derivatives, are zero."""
    rate, terms = rates
    changes = np.concatenate([rate[rows], (F @ rate + F_t)[rows]])
    sizes = np.concatenate([terms[rows], (np.abs(F) @ (np.abs(rate) + terms))[rows]])
    return bool((np.abs(changes) <= STEADY * sizes).all())
