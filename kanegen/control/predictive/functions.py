"""The functions of a model that a predictive controller evaluates, and the places of their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kanegen.backends.protocol import Generated
from kanegen.control.predictive.receding import Receding
from kanegen.control.predictive.squares import Squares
from kanegen.derivation import Equations
from kanegen.derivation.speeds import lower_model
from kanegen.errors import SolveError
from kanegen.graph import Node
from kanegen.pipeline import generate
from kanegen.program.builder import Functions
from kanegen.program.functions.derivatives import Derivatives, Values, WithValues
from kanegen.program.options import BuildOptions

POINT, PATH, END = "controlled_point", "controlled_path", "controlled_end"


@dataclass(frozen=True)
class Stored:
    """The function ``name`` of a program; ``places``: where its values go in an array of records or a matrix."""

    name: str
    places: tuple[int, ...] = ()


@dataclass(frozen=True)
class ControllerFunctions:
    """Functions with first derivatives at points, for the path and the end, and second ones of costs but squares.

    A record is a value with its derivatives with respect to w = (planned inputs, states). ``with_inputs``: for each
    condition of the path, whether it depends on an input.
    """

    generated: Generated
    stored: tuple[Stored, ...]
    with_inputs: tuple[bool, ...]

    def of(self, name: str) -> Stored:
        """A function; without places if the program does not have it."""
        return next((each for each in self.stored if each.name == name), Stored(name))


def controller_functions(problem: Receding) -> ControllerFunctions:
    """Derive the functions. Raises `DerivationError`, and `SolveError` for costs without second derivatives."""
    made: list[_Maker] = []

    def add(f: Functions) -> None:
        made.append(_Maker(f, problem))
        made[0].add_all()

    options = BuildOptions.of("auto", ())
    generated = generate(Equations(lower_model(problem.statement.model)), options, add)
    return ControllerFunctions(generated, tuple(made[0].stored), made[0].with_inputs)


class _Maker:
    """Adds the functions to a program; the constants of the problem are arguments behind the inputs."""

    def __init__(self, f: Functions, problem: Receding) -> None:
        self.f, self.problem, self.system = f, problem, f.equations.system
        self.w = (*(self.system.r[k] for k in problem.inputs), *self.system.q, *self.system.u, *self.system.s)
        n_r = len(self.system.r)
        symbols = problem.statement.constants
        self.constants = {symbol: f.graph.input("r", n_r + k) for k, symbol in enumerate(symbols)}
        self.stored: list[Stored] = []
        self.with_inputs: tuple[bool, ...] = ()

    def add_all(self) -> None:
        """Add all functions that the problem needs."""
        e, problem = self.f.equations, self.problem
        rates = (*e.qdot.nodes, *self.system.udot, *e.sdot.nodes)
        self._with_derivatives(POINT, [*rates, *self._squares(problem.running)])
        self._curved(POINT, problem.running.rest)
        path = self._lowered([c.expression for c in problem.path])
        places = self._with_derivatives(PATH, path)
        columns = 1 + len(self.w)
        inputs = {place // columns for place in places if 1 <= place % columns <= len(problem.inputs)}
        self.with_inputs = tuple(k in inputs for k in range(len(path)))
        own = [x for x, has_inputs in zip(path, self.with_inputs, strict=True) if not has_inputs]
        end = self._lowered([c.expression for c in problem.end])
        self._with_derivatives(END, [*self._squares(problem.final), *own, *end])
        self._curved(END, problem.final.rest)

    def _lowered(self, expressions: Sequence[Any]) -> list[Node]:
        return list(self.system.settled([self.system.lower_with(x, self.constants) for x in expressions]))

    def _squares(self, cost: Squares) -> list[Node]:
        """Bases, weights, and the rest if there is one."""
        return self._lowered([*cost.bases, *cost.weights, *([] if cost.rest == 0 else [cost.rest])])

    def _with_derivatives(self, name: str, nodes: Sequence[Node]) -> tuple[int, ...]:
        """Add a function of records of nodes; return the places of its values."""
        if not nodes:
            return ()
        derivatives = WithValues(self.f, Values(name, "", tuple(nodes)), ())
        found = derivatives.add_jacobian(name, self.w)
        places = tuple(i * (1 + len(self.w)) + k for i, k in found)
        self.stored.append(Stored(name, places))
        return places

    def _curved(self, point: str, rest: Any) -> None:
        """Add the second derivatives of a cost that is no square."""
        if rest == 0:
            return
        name = f"{point}_rest"
        derivatives = Derivatives(self.f, Values(name, "", tuple(self._lowered([rest]))), (self.f.graph.one,))
        reason = derivatives.reason_against_adjoint
        if reason:
            raise SolveError(
                f"predictive control: the cost {rest} has no second derivatives here, because {reason}; write it as a "
                "sum of squares, which need none"
            )
        found = derivatives.add_hessian(name, self.w, range(len(self.w)))
        self.stored.append(Stored(name, tuple(i * len(self.w) + k for i, k in found)))
