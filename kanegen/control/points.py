"""Functions of single points of a transcription, with exact first and second derivatives, as functions of a program.

Three kinds of points have values. At a *stage*, the unknowns are z = (q, u, s, u', lambda, r): the equations of motion
are residuals, not solved for u', so that nothing is factorized and the derivatives are sparse. Rates are multiplied by
the duration T, because the time is T tau with tau from 0 to 1; the derivatives with respect to T are then those of the
values. At a *mesh point* of a model with constraints, their residuals and the directions of the projection are values
(Bordalba, Schoels, Ros, Porta and Diehl 2023, "Direct collocation methods for trajectory optimization in constrained
robotic systems"). The *ends* have the values of conditions at the start, at the end and at single times, and the cost
outside of integrals. Each sum over samples has a kind of points of its own, with a value for each *sample*. A *joint*
of two motions has the differences of what follows from the end of the first and of what the second begins with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Dummy

from kanegen.control.costs import SampledCost
from kanegen.control.statement import Statement
from kanegen.control.terms import AtEnd, AtStart, AtTime, Duration
from kanegen.derivation.forces.reactions import MULTIPLIERS
from kanegen.graph import Node, Tangent, gradient, substitute
from kanegen.program.builder import Functions

Place = tuple[int, int]
STAGE, MESH, ENDS, JOINT = "stage", "mesh", "ends", "joint"


def sample_kind(k: int) -> str:
    """The name of the points of the sum over samples with this number."""
    return f"sample{k}"


@dataclass(frozen=True)
class PointFunctions:
    """The functions of one kind of points: ``NAME_values``, ``NAME_jacobian``, ``NAME_hessian``.

    ``variables``: places, in the array of arguments (q, u, s, r and what follows), of the variables of derivatives, or
    ``-1 - k`` for the parameter k. ``n_arguments``: the length of that array without the weights of the values.
    ``groups``: the number of values of each group, by name, in order. ``jacobian``: (value, variable) of the first
    derivatives; ``hessian``: those (variable, variable) of the weighted sum of the values, of the lower triangle.
    """

    name: str
    n_arguments: int
    variables: tuple[int, ...]
    groups: Mapping[str, int]
    jacobian: tuple[Place, ...]
    hessian: tuple[Place, ...]

    @property
    def n_values(self) -> int:
        """The number of values of a point."""
        return sum(self.groups.values())

    def rows(self, group: str) -> range:
        """The places of the values of a group."""
        names = list(self.groups)
        first = sum(self.groups[name] for name in names[: names.index(group)])
        return range(first, first + self.groups[group])


class PointMaker:
    """What adds the functions of points to a program."""

    def __init__(self, f: Functions, statement: Statement) -> None:
        self.f, self.statement = f, statement
        self.system, self.equations = f.equations.system, f.equations
        self.graph, self.n_r = f.graph, len(f.equations.system.r)
        self.y = (*self.system.q, *self.system.u, *self.system.s, *(self.system.r[k] for k in statement.rated))
        self.parameters = tuple(self.system.p[k] for k in statement.parameters)

    def _lower(self, expression: Any, symbols: Mapping[Any, Node] | None = None) -> Node:
        """The node of an expression of the problem, which can contain its constants, and ``symbols``."""
        constants = {symbol: self.graph.const(value) for symbol, value in self.statement.constants.items()}
        return self.system.lower_with(expression, {**constants, **(symbols or {})})

    def extra(self, first: int, count: int) -> tuple[Node, ...]:
        """Arguments that follow the inputs."""
        return tuple(self.graph.input("r", self.n_r + first + k) for k in range(count))

    def stage(self) -> PointFunctions:
        """Rates, residuals of the equations of motion, the integrand, and conditions along the path."""
        f, e, statement = self.f, self.equations, self.statement
        udot, multipliers = self.extra(0, f.n_u), self.extra(f.n_u, f.n_c)
        T, tau = self.extra(f.n_u + f.n_c, 2)
        held = dict(zip(self.system.udot, udot, strict=True))
        held |= {self.graph.input(MULTIPLIERS, k): x for k, x in enumerate(multipliers)}
        held[self.system.t] = T * tau
        user = [self._lower(x) for x in (statement.cost.integrand, *(c.expression for c in statement.path))]
        groups = {
            "rates": [T * x for x in (*e.qdot.nodes, *self.system.udot, *e.sdot.nodes, *self._input_rates)],
            "dynamics": list(f.sensitivities.unbalance),
            "integrand": [T * user[0]],
            "path": user[1:],
        }
        inputs = tuple(self.system.r[k] for k in statement.inputs)
        variables = (*self.y, *udot, *multipliers, *inputs, *((T,) if statement.is_timed else ()), *self.parameters)
        return self._add(STAGE, groups, held, variables, f.n_u + f.n_c + 2)

    @property
    def _input_rates(self) -> tuple[Node, ...]:
        """The rates of the inputs that have rates."""
        found = (self.system.input_rates[k] for k in self.statement.rated)
        return tuple(x for x in found if x is not None)

    def mesh(self) -> PointFunctions | None:
        """Residuals of the constraints, and the changes of q and u by the projection; None without constraints."""
        e, f = self.equations, self.f
        positions, velocities = e.positions.nodes, e.velocities.nodes
        if not positions and not velocities:
            return None
        T, tau = self.extra(0, 2)
        eta, zeta = self.extra(2, len(positions)), self.extra(2 + len(positions), len(velocities))
        groups = {
            "positions": list(positions),
            "velocities": list(velocities),
            "moves": [
                *(gradient(positions, eta, self.system.q) if positions else [f.graph.zero] * f.n_q),
                *(gradient(velocities, zeta, self.system.u) if velocities else [f.graph.zero] * f.n_u),
            ],
        }
        timed = (T,) if self.statement.is_timed else ()
        n = 2 + len(eta) + len(zeta)
        held = {self.system.t: T * tau}
        return self._add(MESH, groups, held, (*self.y, *eta, *zeta, *timed, *self.parameters), n)

    def ends(self) -> PointFunctions | None:
        """Conditions at the start, the end and single times, and the cost outside of integrals; None if there are none.

        Arguments: the state at the start with its inputs, and behind them the accelerations there; the state, the
        unknown inputs and the accelerations at the end; the states at the times; the duration.
        """
        statement, t = self.statement, self.system.t
        start = [self._lower(c.expression) for c in statement.start.conditions]
        end = [self._lower(c.expression) for c in statement.end.conditions]
        whole = [c.expression for c in statement.coupled] + ([] if statement.cost.rest == 0 else [statement.cost.rest])
        if not (start or end or whole):
            return None
        inputs = tuple(self.system.r[k] for k in statement.inputs)
        n_y, n_u, n_t = len(self.y), self.f.n_u, len(statement.times)
        sizes = [n_u, n_y, len(inputs), n_u, *[n_y] * n_t, 1]
        firsts = [sum(sizes[:k]) for k in range(len(sizes))]
        rate0, y1, r1, rate1, *others = (self.extra(*place) for place in zip(firsts, sizes, strict=True))
        at_times, ((T,)) = others[:-1], others[-1]
        at_start = dict(zip(self.system.udot, rate0, strict=True)) | {t: self.graph.zero}
        at_end = dict(zip((*self.y, *inputs, *self.system.udot), (*y1, *r1, *rate1), strict=True)) | {t: T}
        held: dict[Any, dict[Any, Any]] = {AtStart: {None: at_start}, AtEnd: {None: at_end}}
        held[AtTime] = {
            time: dict(zip(self.y, y, strict=True)) | {t: self.graph.const(time)}
            for time, y in zip(statement.times, at_times, strict=True)
        }
        both, n = [self._of_terms(x, held, T) for x in whole], len(statement.coupled)
        groups = {
            "start": substitute(start, at_start) if start else [],
            "end": substitute(end, at_end) if end else [],
            "coupled": both[:n],
            "cost": both[n:],
        }
        timed = (T,) if statement.is_timed else ()
        states = (*self.y, *inputs, *rate0, *y1, *r1, *rate1, *(x for y in at_times for x in y))
        return self._add(ENDS, groups, {}, (*states, *timed, *self.parameters), sum(sizes))

    def _of_terms(self, value: Any, held: Mapping[Any, Mapping[Any, Mapping[Node, Node]]], T: Node) -> Node:
        """The node of an expression of values at single times; ``held``: the arguments by kind of term and by time."""
        places = {term: Dummy() for term in value.atoms(*held)}
        known: dict[Any, Node] = {Duration: T}
        for term, place in places.items():
            moved = held[type(term)][getattr(term, "time", None)]
            (known[place],) = substitute([self._lower(term.args[0])], moved)
        return self._lower(value.xreplace(places), known)

    def samples(self) -> tuple[PointFunctions, ...]:
        """The terms of the sums over samples. Arguments behind the state: the time, and the data."""
        return tuple(self._sample(sample_kind(k), sampled) for k, sampled in enumerate(self.statement.cost.sampled))

    def joint(self, values: Sequence[Any]) -> PointFunctions:
        """Differences of numbers and ``values`` at the end of a motion.

        Arguments behind the state: the numbers, the duration.
        """
        numbers, (T,) = self.extra(0, len(values)), self.extra(len(values), 1)
        rows = [x - self._lower(value) for x, value in zip(numbers, values, strict=True)]
        timed = (T,) if self.statement.is_timed else ()
        variables = (*self.y, *numbers, *timed, *self.parameters)
        return self._add(JOINT, {"rows": rows}, {self.system.t: T}, variables, len(values) + 1)

    def impact(self) -> PointFunctions:
        """``M (u - u_before) - J^T Lambda``. Arguments behind the state: u_before, Lambda, the duration.

        Constraints of accelerations, without residuals of positions and speeds, have finite forces and no impulses.
        """
        f, system = self.f, self.system
        rows_with = [k for k, row in enumerate(self.equations.constraints.rows) if row.residuals]
        before, impulses = self.extra(0, f.n_u), self.extra(f.n_u, len(rows_with))
        jumps = [self.graph.sum([u, -x]) for u, x in zip(system.u, before, strict=True)]
        multipliers = (self.graph.input(MULTIPLIERS, k) for k in rows_with)
        directions = dict(zip((*system.udot, *multipliers), (*jumps, *impulses), strict=True))
        along = Tangent(self.graph, directions)  # of equations that are linear in u' and the multipliers
        rows = [along(x) for x in f.sensitivities.unbalance[: f.n_u]]
        variables = (*self.y, *before, *impulses, *self.parameters)
        held = dict.fromkeys(system.udot, self.graph.zero) | {system.t: self.graph.zero}
        return self._add(JOINT, {"rows": rows}, held, variables, f.n_u + len(rows_with) + 1)

    def _sample(self, name: str, sampled: SampledCost) -> PointFunctions:
        symbols = sampled.samples.symbols
        (time,), data = self.extra(0, 1), self.extra(1, len(symbols))
        value = self._lower(sampled.expression, dict(zip(symbols, data, strict=True)))
        held = {self.system.t: time}
        return self._add(name, {"value": [value]}, held, (*self.y, *self.parameters), 1 + len(symbols))

    def _add(
        self,
        name: str,
        groups: Mapping[str, Sequence[Node]],
        held: Mapping[Node, Node],
        variables: Sequence[Node],
        n_extra: int,
    ) -> PointFunctions:
        """Add the functions of values, with the nodes ``held`` replaced, and of their derivatives."""
        f = self.f
        plain = self.system.settled([x for nodes in groups.values() for x in nodes])
        values = f.sensitivities.simplest(substitute(plain, held))
        f.add(f"{name}_values", f.fragment().output(values), f"values of a point: {name}")
        rows = f.sensitivities.derivatives(values, variables)
        used = [k for k in range(len(variables)) if any(not row[k].is_zero for row in rows)]
        variables = [variables[k] for k in used]
        slopes = {(i, k): row[j] for i, row in enumerate(rows) for k, j in enumerate(used) if not row[j].is_zero}
        f.add(f"{name}_jacobian", f.fragment().output(list(slopes.values())), f"derivatives of the {name}")
        curved = self._second(values, self.extra(n_extra, len(values)), variables)
        if curved:
            text = f"second derivatives of the weighted values: {name}"
            f.add(f"{name}_hessian", f.fragment().output(list(curved.values())), text)
        sizes = {group: len(nodes) for group, nodes in groups.items()}
        places = tuple(self._place(x) for x in variables)
        n = self.statement.n_state + self.n_r + n_extra
        return PointFunctions(name, n, places, sizes, tuple(slopes), tuple(curved))

    def _second(self, values: Sequence[Node], weights: Sequence[Node], variables: Sequence[Node]) -> dict[Place, Node]:
        """The second derivatives of the weighted sum, of the lower triangle, that are not zero."""
        slopes = gradient(values, weights, variables)
        tangents = [Tangent(self.graph, {x: self.graph.one}) for x in variables]
        places = [(i, k) for i in range(len(variables)) for k in range(i + 1)]
        nodes = self.f.sensitivities.simplest([tangents[k](slopes[i]) for i, k in places])
        return {place: x for place, x in zip(places, nodes, strict=True) if not x.is_zero}

    def _place(self, node: Node) -> int:
        """The place of a variable among the arguments, or -1 - k for the parameter k."""
        array, k = node.payload
        n_q, n_u, n_s = len(self.system.q), len(self.system.u), len(self.system.s)
        if array == "p":
            return -1 - int(k)
        return int(k) + {"q": 0, "u": n_q, "s": n_q + n_u, "r": n_q + n_u + n_s}[array]
