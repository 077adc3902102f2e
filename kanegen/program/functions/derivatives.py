"""Kernel functions of first and second derivatives, with structural zeros left out.

``g(z, w)`` are values of the model that can depend on w, the accelerations u' and the multipliers lambda, and z are its
arguments. The equations of motion ``r(z, w) = (M u' - P - J^T lambda, J u' - b) = 0`` determine w, so that

    dg/dz = g_z + g_w W,     W = dw/dz,     K W = -r_z,     K = r_w = [M -J^T; J 0].

The adjoint derivative for seeds a is the gradient of ``L = a^T g - mu^T r`` at constant w and mu, which satisfy
``L_w = 0``, that is ``K^T mu = g_w^T a``. Because L_w vanishes, the second derivatives of ``a^T g(z, w(z))`` are

    L_zz + L_zw W + W^T L_wz + W^T L_ww W

without derivatives of mu (Griewank and Walther 2008, chapter 15). No factorization is differentiated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kanegen.derivation import forms
from kanegen.derivation.forces.reactions import MULTIPLIERS
from kanegen.derivation.sensitivities import Rows
from kanegen.graph import Node, Tangent, gradient, reachable, substitute
from kanegen.program.builder import Fragment, Functions
from kanegen.program.functions.right_sides import bordered_columns, bordered_solutions, reduced, reduced_columns
from kanegen.program.records import Guard

Matrix = Sequence[Sequence[Node]]

Place = tuple[int, int]
"""Row and column of an entry."""


def by_columns(places: Iterable[Place]) -> tuple[Place, ...]:
    """The places in the order of compressed column storage."""
    return tuple(sorted(places, key=lambda place: (place[1], place[0])))


@dataclass(frozen=True)
class Values:
    """Values of a model, (n,), as functions of its arguments, u' and lambda.

    ``name``: that of the function in messages and in the generated code. ``output``: their name in CasADi, if they
    have one.
    """

    name: str
    output: str
    nodes: tuple[Node, ...]


class Derivatives:
    """Derivatives of values as functions of a program; each method adds one function.

    ``seeds`` (n,): the nodes of the weights of adjoint derivatives.
    """

    def __init__(self, f: Functions, values: Values, seeds: Sequence[Node]) -> None:
        self.f = f
        self.values = values
        self.seeds = seeds

    @cached_property
    def in_accelerations(self) -> Rows:
        """g_w for the accelerations, (n, n_u)."""
        return self.f.sensitivities.derivatives(self.values.nodes, self.f.equations.system.udot)

    @property
    def has_multipliers(self) -> bool:
        """Whether the values depend on the multipliers of constraints, for which there are no derivatives here."""
        return any(node.op == "input" and node.payload[0] == MULTIPLIERS for node in reachable(self.values.nodes))

    @property
    def is_direct(self) -> bool:
        """Whether the values do not depend on the accelerations."""
        return all(x.is_zero for row in self.in_accelerations for x in row)

    @property
    def is_reduced(self) -> bool:
        """Whether the equations of motion have no constraints and a symmetric matrix."""
        return not self.f.n_c and self.f.equations.is_symmetric

    @property
    def reason_against_adjoint(self) -> str | None:
        """Why there are no adjoint and second derivatives, or None."""
        if self.has_multipliers:
            return "they depend on the multipliers of constraints"
        if not self.is_direct and not self.f.equations.is_symmetric:
            return "loads in u' make the matrix of the accelerations unsymmetric"
        if not self.is_direct and self.f.n_c and self.f.any_rank:
            return f"form={self.f.form!r} accepts redundant constraints, which leave the multipliers undetermined"
        return None

    # -- the functions ------------------------------------------------------------------------------------------

    def add_values(self, name: str) -> None:
        """Add the function of the values."""
        s = self.f.fragment()
        nodes = self.f.accelerated(s, self.values.nodes)
        if self.has_multipliers:
            s.invoke(self.f.function("multipliers"), MULTIPLIERS, self.f.n_c)
        self.f.add(name, s.output(nodes), f"{self.values.name}")

    def add_jacobian(self, name: str, inputs: Sequence[Node]) -> tuple[Place, ...]:
        """Add dg/dz unless it is zero; return the places (i, k) of its values, by columns."""
        f, title = self.f, f"derivatives of the {self.values.name}, by columns"
        fallback = f"{name}_general"
        fast, with_fallback = self._jacobian_general, False
        if not (f.any_rank and f.n_c) and f.equations.is_symmetric:
            fast, with_fallback = self._jacobian_reduced, bool(f.n_c)
        s = Fragment(f.graph, fallback if with_fallback else None)
        entries = nonzero(fast(s, inputs) if not self.is_direct else self._stated(inputs))
        places = by_columns(entries)
        if not places:
            return places
        f.add(name, s.output([entries[place] for place in places]), title)
        if any(isinstance(step, Guard) and step.otherwise for step in s.steps):
            general = f.fragment()
            rows = self._jacobian_general(general, inputs)
            general.output([rows[i][k] for i, k in places])
            f.internal(fallback, f"{title}, with dependent speeds chosen by pivoting", lambda: general)
        return places

    def add_adjoint(self, name: str, inputs: Sequence[Node]) -> None:
        """Add the gradient of ``a^T g`` for the seeds a, (m,)."""
        s = self.f.fragment()
        held, mu, _ = self._solved(s, [])
        slopes = self.f.sensitivities.simplest(self._gradient(mu, inputs))
        self.f.add(name, s.output(substitute(slopes, held)), f"gradient of a^T g, g: {self.values.name}")

    def add_hessian(self, name: str, inputs: Sequence[Node], rows: Iterable[int]) -> tuple[Place, ...]:
        """Add rows of the lower triangle of the second derivatives of ``a^T g`` unless zero; return the values' places.

        ``rows``: indices of inputs.
        """
        s = self.f.fragment()
        held, mu, W = self._solved(s, inputs)
        wanted = [(i, k) for i in rows for k in range(i + 1)]
        entries = self._second(mu, W, inputs, wanted, held)
        places = by_columns(entries)
        if not places:
            return ()
        title = f"second derivatives of a^T g, g: {self.values.name}; lower triangle, by columns"
        self.f.add(name, s.output([entries[place] for place in places]), title)
        return places

    # -- first derivatives --------------------------------------------------------------------------------------

    def _direct(self, inputs: Sequence[Node]) -> Rows:
        """g_z."""
        return self.f.sensitivities.derivatives(self.values.nodes, inputs)

    def _stated(self, inputs: Sequence[Node]) -> Sequence[Sequence[Node]]:
        """The rows of a Jacobian of values that do not depend on the accelerations."""
        return self._direct(inputs)

    def _jacobian_reduced(self, s: Fragment, inputs: Sequence[Node]) -> list[list[Node]]:
        held = self._held(s)
        D1, D2 = self._balance(s, inputs, held)
        columns = reduced_columns(self.f, s, *self.f.sensitivities.reduced(D1, D2))
        return self._chained(inputs, cleared(columns, D1, D2), held)

    def _jacobian_general(self, s: Fragment, inputs: Sequence[Node]) -> list[list[Node]]:
        held = dict(zip(self.f.equations.system.udot, self.f.accelerations(s), strict=True))
        D1, D2 = self._balance(s, inputs, held)
        right = [-x for row in (*D1, *D2) for x in row]
        columns = bordered_columns(self.f, s, right, len(inputs))
        return self._chained(inputs, cleared(columns, D1, D2), held)

    def _chained(self, inputs: Sequence[Node], columns: Matrix, held: Mapping[Node, Node]) -> list[list[Node]]:
        """g_z + g_w W from the columns of W, at the accelerations ``held``."""
        graph, m = self.f.graph, len(inputs)
        own, through = (at(rows, held) for rows in (self._direct(inputs), self.in_accelerations))
        return [
            [graph.sum([own[i][k], *(x * y for x, y in zip(row, columns[k], strict=True))]) for k in range(m)]
            for i, row in enumerate(through)
        ]

    def _held(self, s: Fragment) -> dict[Node, Node]:
        """Compute u', in this function if there are no constraints, which shares the factors of M."""
        f = self.f
        udot = f.equations.system.udot
        if not self.is_reduced:
            return dict(zip(udot, f.accelerations(s), strict=True))
        solved = reduced(f, s, f.stabilizable)
        s.store("accelerations", a=[*[None] * f.n_q, *solved])
        return dict(zip(udot, s.array("a", f.n_q + f.n_u)[f.n_q :], strict=True))

    def _balance(self, s: Fragment, inputs: Sequence[Node], held: Mapping[Node, Node]) -> tuple[Rows, Rows]:
        """Derivatives of the momentum rows (n_u, m) and of the constraints (n_c, m), at u' and lambda."""
        f = self.f
        f.multipliers(s, held)
        rows = at(f.sensitivities.derivatives(f.sensitivities.unbalance, inputs), held)
        return rows[: f.n_u], rows[f.n_u :]

    # -- second derivatives -------------------------------------------------------------------------------------

    def _solved(self, s: Fragment, inputs: Sequence[Node]) -> tuple[dict[Node, Node], list[Node], list[Sequence[Node]]]:
        """u', mu (n_u + n_c,), and the columns of W, (m, n_u + n_c)."""
        f, graph = self.f, self.f.graph
        if self.is_direct:
            return {}, [], []
        held = self._held(s)
        D1, D2 = self._balance(s, inputs, held)
        weights = forms.matrix_vector(graph, list(zip(*at(self.in_accelerations, held), strict=True)), self.seeds)
        if self.is_reduced:
            rights = [[-row[k] for row in D1] for k in range(len(inputs))]
            columns = reduced_columns(f, s, [*rights, weights], [()] * (len(inputs) + 1))
            return held, self._stored(s, columns[-1]), cleared(columns[:-1], D1, D2)
        right = [[*(-x for x in row), a] for row, a in zip(D1, weights, strict=True)]
        right += [[*(-x for x in row), graph.zero] for row in D2]
        solved = bordered_solutions(f, s, [x for row in right for x in row], len(inputs) + 1)
        mu = [*solved[-1][: f.n_u], *(-x for x in solved[-1][f.n_u :])]
        return held, self._stored(s, mu), cleared(solved[:-1], D1, D2)

    @staticmethod
    def _stored(s: Fragment, mu: Sequence[Node]) -> list[Node]:
        s.store("weights of the equations of motion", mu=mu)
        return s.array("mu", len(mu))

    def _gradient(self, mu: Sequence[Node], inputs: Sequence[Node]) -> list[Node]:
        """Derivatives of L at constant w and mu."""
        residuals = self.f.sensitivities.unbalance if mu else ()
        return gradient([*self.values.nodes, *residuals], [*self.seeds, *(-x for x in mu)], inputs)

    def _second(
        self,
        mu: Sequence[Node],
        W: Sequence[Sequence[Node]],
        inputs: Sequence[Node],
        wanted: Sequence[Place],
        held: Mapping[Node, Node],
    ) -> dict[Place, Node]:
        """The wanted second derivatives that are not zero."""
        graph, unknowns = self.f.graph, self._unknowns if mu else ()
        variables = [*inputs, *unknowns]
        slopes = self._gradient(mu, variables)
        tangents = [Tangent(graph, {x: graph.one}) for x in variables]
        m, n = len(inputs), len(unknowns)
        flat = [tangents[k](slopes[i]) for i, k in wanted]
        flat += [tangents[m + k](slopes[i]) for i in range(m) for k in range(n)]
        flat += [tangents[m + k](slopes[m + i]) for i in range(n) for k in range(n)]
        flat = substitute(self.f.sensitivities.simplest(flat), held)
        own, rest = flat[: len(wanted)], flat[len(wanted) :]
        mixed, square = [rest[i * n : (i + 1) * n] for i in range(m)], [rest[(m + i) * n :][:n] for i in range(n)]
        # H_ik = L_ik + (L_iw + W_i^T L_ww) W_k + W_i^T L_wk
        left = [
            [graph.sum([x, *(a * row[k] for a, row in zip(W[i], square, strict=True))]) for k, x in enumerate(mixed[i])]
            for i in range(m if n else 0)
        ]
        if n:
            pairs = zip(own, wanted, strict=True)
            own = [graph.sum([x, graph.dot(left[i], W[k]), graph.dot(W[i], mixed[k])]) for x, (i, k) in pairs]
        return {place: x for place, x in zip(wanted, own, strict=True) if not x.is_zero}

    @property
    def _unknowns(self) -> list[Node]:
        return [
            *self.f.equations.system.udot,
            *(self.f.graph.input(MULTIPLIERS, k) for k in range(self.f.n_c)),
        ]


class WithValues(Derivatives):
    """Jacobians whose first column are the values themselves, so that one function gives both."""

    def _stated(self, inputs: Sequence[Node]) -> list[list[Node]]:
        return [[x, *row] for x, row in zip(self.values.nodes, self._direct(inputs), strict=True)]

    def _chained(self, inputs: Sequence[Node], columns: Matrix, held: Mapping[Node, Node]) -> list[list[Node]]:
        values = substitute(self.values.nodes, held)
        return [[x, *row] for x, row in zip(values, super()._chained(inputs, columns, held), strict=True)]


def nonzero(rows: Matrix) -> dict[Place, Node]:
    """The entries of a matrix that are not structurally zero."""
    return {(i, k): x for i, row in enumerate(rows) for k, x in enumerate(row) if not x.is_zero}


def at(rows: Rows, held: Mapping[Node, Node]) -> Rows:
    """A matrix with input nodes replaced."""
    if not rows:
        return rows
    width = len(rows[0])
    nodes = substitute([x for row in rows for x in row], held)
    return tuple(tuple(nodes[i * width : (i + 1) * width]) for i in range(len(rows)))


def cleared(columns: Iterable[Sequence[Node]], D1: Rows, D2: Rows) -> list[Sequence[Node]]:
    """Columns of solutions, zero where the right side is: loops over right sides do not see that."""
    zero = [all(row[k].is_zero for row in (*D1, *D2)) for k in range(len(D1[0]) if D1 else 0)]
    return [
        [x.graph.zero for x in column] if is_zero else column for column, is_zero in zip(columns, zero, strict=True)
    ]
