"""Explicit ordinary differential equations y' = f(y) as graph nodes, which every peer gets in its own expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from kanegen.arrays import Array
from kanegen.cli.bench.peers import PeerError
from kanegen.derivation import Equations
from kanegen.errors import BuildError
from kanegen.graph import PYTHON, Context, Graph, Lowering, Node, Tangent, count_operations, evaluate, substitute

Operation: TypeAlias = Callable[..., Any]

DENSE = 12
"""Most speeds for which the factors of a dense matrix could need fewer operations than the elimination of bodies."""


@dataclass(frozen=True)
class Formulas:
    """y' = f(y) of a model with its parameters as numbers.

    Parameters
    ----------
    rates
        y', (n,), nodes over the inputs ``("y", i)``.
    whole
        The model's q and u, (n_q + n_u,), as functions of y.
    start
        The initial y, (n,).
    """

    rates: tuple[Node, ...]
    whole: tuple[Node, ...]
    start: Array

    @cached_property
    def operations(self) -> int:
        return count_operations(self.rates)

    def rates_in(self, algebra: Context, y: Sequence[Any]) -> list[Any]:
        """y' in another kind of numbers or expressions."""
        try:
            return evaluate(self.rates, {"y": y}, algebra)
        except KeyError as error:
            raise PeerError(f"the peer has no function {error}") from None

    def values(self, nodes: Sequence[Node], y: Array) -> Array:
        """The values of nodes at y."""
        return np.array(evaluate(nodes, {"y": [float(value) for value in y]}, PYTHON))

    def whole_of(self, y: Array) -> Array:
        """The model's q and u, (n_q + n_u,), at y."""
        return self.values(self.whole, y)

    @cached_property
    def whole_rates(self) -> tuple[Node, ...]:
        """The model's q' and u'."""
        graph = self.rates[0].graph
        along = Tangent(graph, {graph.input("y", i): rate for i, rate in enumerate(self.rates)})
        return tuple(map(along, self.whole))


FUNCTIONS = ("sin", "cos", "tan", "asin", "acos", "atan", "sqrt", "exp", "log", "atan2")
"""Functions with the same names in C, in `math` and in the packages whose expressions are made."""


def algebra(package: Any, result: Callable[[Node, Any], Any] | None = None) -> Context:
    """The arithmetic of a package's expressions, with + - * / ** and `FUNCTIONS`; numbers remain Python floats."""
    functions: dict[str, Operation] = {name: getattr(package, name) for name in FUNCTIONS}
    functions["pow"] = lambda a, b: a**b
    both: dict[str, Operation] = {name: _of_either(name, function) for name, function in functions.items()}
    both["div"] = lambda a, b: a / b
    both["reciprocal"] = lambda a: 1.0 / a
    return Context(float, both, PYTHON.select, result=result)


def _of_either(name: str, function: Operation) -> Operation:
    """A function of expressions that evaluates numbers as such."""
    of_floats = getattr(math, name)
    return lambda *args: of_floats(*args) if all(isinstance(a, float) for a in args) else function(*args)


def formulas_of(
    equations: Equations, values: Sequence[float], point: Array, independent: bool, varied: bool = False
) -> Formulas:
    """The equations of a model without inputs and states as y' = f(y).

    The accelerations are those of the form with the fewest operations, the linear solve included, that does not divide
    by zero at the start. With ``independent``, y = (q, u_I) contains the independent speeds only, and the dependent
    ones follow from them by ``u_D = A u_I``, as users write constrained systems that are linear in the speeds.
    Otherwise y = (q, u). ``values`` are those of the parameters, ``point`` is the initial (q, u). With ``varied``, the
    parameters follow in y, with rates that are zero. Raises `PeerError` if every form divides by zero.
    """
    system, graph = equations.system, equations.graph
    n_q, n_u = len(system.q), len(system.u)
    kept = list(equations.partition.independent) if independent else list(range(n_u))
    y = [graph.input("y", i) for i in range(n_q + len(kept))]
    given = [graph.input("y", len(y) + i) if varied else graph.const(value) for i, value in enumerate(values)]
    known = {graph.input("p", i): node for i, node in enumerate(given)}
    known |= {graph.input("q", i): y[i] for i in range(n_q)}
    known |= {graph.input("u", s): y[n_q + i] for i, s in enumerate(kept)}
    if independent:
        part = equations.partition
        rows = (graph.dot(row, [graph.input("u", s) for s in part.independent]) for row in part.A)
        known |= dict(zip((graph.input("u", s) for s in part.dependent), substitute(list(rows), known), strict=True))
    udot = _accelerations(equations, {"q": point[:n_q].tolist(), "u": point[n_q:].tolist(), "p": values})
    rates = substitute([*system.qdot, *(udot[s] for s in kept)], known)
    whole = substitute([*(graph.input("q", i) for i in range(n_q)), *(graph.input("u", i) for i in range(n_u))], known)
    start = np.concatenate((point[:n_q], point[n_q:][kept], values if varied else []))
    constant = [graph.const(0.0)] * (len(values) if varied else 0)
    return Formulas((*rates, *constant), tuple(whole), start)


def lagrangian_of(equations: Equations, values: Sequence[float]) -> Node:
    """T - V of a model with u = q', over the inputs ``("q", i)`` and ``("u", i)``.

    ``values`` are those of the parameters. Raises `PeerError` for other speeds, and for models with constraints.
    """
    system, graph = equations.system, equations.graph
    if equations.model.constraints or any(rate is not graph.input("u", i) for i, rate in enumerate(system.qdot)):
        raise PeerError(f"{equations.model.name}: there are constraints, or speeds that are no derivatives of q")
    known = {graph.input("p", i): graph.const(value) for i, value in enumerate(values)}
    (energy,) = substitute([equations.kinetic_energy.nodes[0] - equations.potential_energy.nodes[0]], known)
    return energy


def _accelerations(equations: Equations, start: Mapping[str, Sequence[float]]) -> Sequence[Node]:
    """u' with the fewest operations among the forms that do not divide by zero at the start."""
    large = len(equations.system.u) > DENSE
    made: list[Sequence[Node]] = []
    for derive in (equations.articulated_accelerations, equations.accelerations):
        if made and large:
            break
        try:
            accelerations = derive(stabilized=False)
        except BuildError:
            continue
        if all(evaluate(accelerations.conditions, start)):
            made.append(accelerations.udot)
    if not made:
        raise PeerError(f"{equations.model.name}: the accelerations in closed form divide by zero at the start")
    return min(made, key=count_operations)


def written_formulas(states: Sequence[Any], rates: Sequence[Any], whole: Sequence[Any], start: Array) -> Formulas:
    """Equations written down with SymPy: ``states`` are the symbols y, ``rates`` and ``whole`` expressions in them."""
    graph = Graph()
    lowering = Lowering(graph, {symbol: graph.input("y", i) for i, symbol in enumerate(states)})
    return Formulas(tuple(map(lowering.lower, rates)), tuple(map(lowering.lower, whole)), start)


def c_statements(formulas: Formulas, real: str, suffix: str) -> Iterable[str]:
    """C statements that compute ``out[i]`` from ``y[i]`` with the scalar type ``real``; ``suffix`` as in ``sinl``."""
    lines: list[str] = []

    def number(value: Any) -> str:
        if isinstance(value, Fraction):
            return f"({value.numerator}.0L / {value.denominator}.0L)"
        return f"({float(value).hex()}L)"

    def named(node: Node, text: Any) -> Any:
        if not node.args:
            return text
        lines.append(f"const {real} v{node.index} = {text};")
        return _Text(f"v{node.index}")

    functions: dict[str, Operation] = {
        name: (lambda *args, name=name: _Text(f"{name}{suffix}({', '.join(map(str, args))})"))
        for name in (*FUNCTIONS, "pow")
    }
    functions |= {"div": lambda a, b: _Text(f"{a} / {b}"), "reciprocal": lambda a: _Text(f"1.0L / {a}")}
    context = Context(lambda value: _Text(number(value)), functions, PYTHON.select, result=named)
    values = formulas.rates_in(context, [_Text(f"y[{i}]") for i in range(len(formulas.start))])
    return [*lines, *(f"out[{i}] = {value};" for i, value in enumerate(values))]


@dataclass(frozen=True)
class _Text:
    """A name or number of C code whose operators give the text of the operation."""

    text: str

    def __str__(self) -> str:
        return self.text

    def __add__(self, other: _Text) -> _Text:
        return _Text(f"{self} + {other}")

    def __sub__(self, other: _Text) -> _Text:
        return _Text(f"{self} - {other}")

    def __mul__(self, other: _Text) -> _Text:
        return _Text(f"{self} * {other}")

    def __neg__(self) -> _Text:
        return _Text(f"-{self}")
