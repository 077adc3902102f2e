"""The functions with CasADi's C interface, and from which kernel functions their values come.

CasADi finds derivatives of an external function ``f: (x, u, p) -> xdot`` by name: ``jac_f`` with the blocks
``jac_xdot_x``, ..., ``adj1_f`` with the products of a seed and these blocks, and ``jac_adj1_f`` with the blocks of
their derivatives, which are second derivatives of f. Values that a derivative need not know have an empty pattern.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kanegen.emission.casadi.patterns import Pattern
from kanegen.graph import Node, count_operations, reachable
from kanegen.program.builder import Functions
from kanegen.program.functions.derivatives import Derivatives, Place, Values, by_columns

HESSIAN_LIMIT: Final = 60_000
"""Most operations of second derivatives, without parameters, that are written out; more take minutes to compile."""


class Port(NamedTuple):
    """An input or output of a CasADi function."""

    name: str
    pattern: Pattern


class Copy(NamedTuple):
    """An output that is copied from the values of a kernel function: their indices, in the order of the pattern."""

    output: int
    indices: tuple[int, ...]

    @property
    def is_range(self) -> bool:
        """Whether the indices are consecutive."""
        return self.indices == tuple(range(self.indices[0], self.indices[0] + len(self.indices)))


class Evaluation(NamedTuple):
    """A kernel function, evaluated if one of the outputs copied from its values is wanted."""

    kernel: str
    copies: tuple[Copy, ...]


@dataclass(frozen=True)
class CasadiFunction:
    """One function with CasADi's C interface.

    ``evaluations``: the kernel functions that it evaluates. ``constants``: the values of a function without arguments.
    ``seeds``: index of the argument with adjoint seeds, or -1.
    """

    name: str
    summary: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    evaluations: tuple[Evaluation, ...] = ()
    constants: tuple[tuple[float, ...], ...] = ()
    seeds: int = -1

    @property
    def is_derivative(self) -> bool:
        """Whether CasADi calls the function as a derivative of another one."""
        return self.name.startswith(("jac_", "adj1_"))


def defaults(prefix: str, x: tuple[float, ...], u: tuple[float, ...], p: tuple[float, ...]) -> CasadiFunction:
    """The function without arguments whose values are those of the model."""
    outputs = tuple(Port(name, Pattern.dense(len(part))) for name, part in (("x", x), ("u", u), ("p", p)))
    return CasadiFunction(f"{prefix}_defaults", "The values of the model.", (), outputs, constants=(x, u, p))


class Group(NamedTuple):
    """An argument of the functions of a model: its name and nodes."""

    name: str
    nodes: tuple[Node, ...]

    @property
    def port(self) -> Port:
        """The argument as an input."""
        return Port(self.name, Pattern.dense(len(self.nodes)))


def groups(f: Functions) -> tuple[Group, ...]:
    """The arguments x = (q, u, s), u (inputs), p, and t if the model depends on time."""
    e = f.equations
    system = e.system
    nodes = (*e.right_side, *(x for row in e.left_side for x in row), *e.b_stabilized.nodes, *e.qdot.nodes)
    nodes += (*e.sdot.nodes, *(x for value in values_of(f) for x in value.nodes))
    timed = (Group("t", (system.t,)),) if system.t in set(reachable(nodes)) else ()
    return (Group("x", (*system.q, *system.u, *system.s)), Group("u", system.r), Group("p", system.p), *timed)


def values_of(f: Functions) -> tuple[Values, ...]:
    """The dynamics, and the outputs and constraints that the model has."""
    e = f.equations
    outputs = tuple(x for output in e.outputs.values() for x in output.nodes)
    constraints = (*e.positions.nodes, *e.velocities.nodes)
    every = (
        Values("dynamics", "xdot", (*e.qdot.nodes, *e.system.udot, *e.sdot.nodes)),
        Values("outputs", "y", outputs),
        Values("constraints", "c", constraints),
    )
    return tuple(values for values in every if values.nodes)


class Block(NamedTuple):
    """Values of an output: their pattern, and the kernel function that computes them, with their indices there."""

    pattern: Pattern
    kernel: str = ""
    indices: tuple[int, ...] = ()


class Differentiated:
    """The CasADi functions of values: the values, their Jacobian, the adjoint derivative and its Jacobian.

    Adds the kernel functions that they evaluate to ``f``. Derivatives with respect to the parameters have functions of
    their own, because most problems do not need them. ``reason``: why there are no second derivatives, or None.
    """

    def __init__(self, f: Functions, stem: str, values: Values, arguments: Sequence[Group]) -> None:
        n_r = len(f.equations.system.r)
        self.seeds = [f.graph.input("r", n_r + k) for k in range(len(values.nodes))]
        self.f, self.values, self.arguments = f, values, tuple(arguments)
        self.name = f"{stem}_{values.name}"
        self.derivatives = Derivatives(f, values, self.seeds)
        self.variables = [group for group in arguments if group.name != "p" and group.nodes]
        self.parameters = [group for group in arguments if group.name == "p" and group.nodes]
        self.reason = self.derivatives.reason_against_adjoint
        self.functions = tuple(self._made())

    def _made(self) -> Iterator[CasadiFunction]:
        yield self._of_values()
        if self.derivatives.has_multipliers:
            return
        first = self._first_blocks()
        yield self._jacobian(first)
        if self.reason is None:
            yield self._adjoint()
            second = self._second_blocks()
            if self.reason is None:
                yield self._jacobian_of_adjoint(first, second)

    def _function(
        self, prefix: str, summary: str, known: Sequence[Port], outputs: Mapping[str, Block], seeds: int = -1
    ) -> CasadiFunction:
        """A function of the arguments and ``known``, whose outputs are blocks of values of the kernel."""
        copies: dict[str, list[Copy]] = {}
        for k, block in enumerate(outputs.values()):
            if block.indices:
                copies.setdefault(block.kernel, []).append(Copy(k, block.indices))
        inputs = (*(group.port for group in self.arguments), *known)
        ports = tuple(Port(name, block.pattern) for name, block in outputs.items())
        evaluations = tuple(Evaluation(kernel, tuple(found)) for kernel, found in copies.items())
        return CasadiFunction(f"{prefix}{self.name}", summary, inputs, ports, evaluations, seeds=seeds)

    def _kernel(self, suffix: str = "") -> str:
        return f"casadi_{self.values.name}{suffix}"

    def _parts(self) -> Iterator[tuple[str, list[Group]]]:
        """The endings of the names of kernel functions, and the arguments with respect to which they differentiate."""
        yield "", self.variables
        if self.parameters:
            yield "_p", self.parameters

    @property
    def _value(self) -> Port:
        """The values as an argument that derivatives do not read."""
        return Port(f"out_{self.values.output}", Pattern(len(self.values.nodes), 1))

    @property
    def _seed(self) -> Port:
        return Port(f"adj_{self.values.output}", Pattern.dense(len(self.values.nodes)))

    # -- the functions ------------------------------------------------------------------------------------------

    def _of_values(self) -> CasadiFunction:
        n, name = len(self.values.nodes), self._kernel()
        if self.values.name == "dynamics":
            name = "rhs_stabilized" if self.f.stabilizable else "rhs"
        else:
            self.derivatives.add_values(name)
        block = Block(Pattern.dense(n), name, tuple(range(n)))
        return self._function("", f"The {self.values.name}.", (), {self.values.output: block})

    def _jacobian(self, first: Mapping[str, Block]) -> CasadiFunction:
        outputs = {f"jac_{self.values.output}_{group.name}": first[group.name] for group in self.arguments}
        return self._function("jac_", f"Derivatives of the {self.values.name}.", [self._value], outputs)

    def _adjoint(self) -> CasadiFunction:
        blocks = {group.name: Block(group.port.pattern) for group in self.arguments}
        for ending, part in self._parts():
            kernel, start = self._kernel(f"_adjoint{ending}"), 0
            self.derivatives.add_adjoint(kernel, flat(part))
            for group in part:
                end = start + len(group.nodes)
                blocks[group.name] = Block(group.port.pattern, kernel, tuple(range(start, end)))
                start = end
        outputs = {f"adj_{name}": block for name, block in blocks.items()}
        summary = f"Products of seeds and the derivatives of the {self.values.name}."
        return self._function("adj1_", summary, [self._value, self._seed], outputs, len(self.arguments) + 1)

    def _jacobian_of_adjoint(
        self, first: Mapping[str, Block], second: Mapping[tuple[str, str], Block]
    ) -> CasadiFunction:
        outputs: dict[str, Block] = {}
        for row in self.arguments:
            blocks = {group.name: second[row.name, group.name] for group in self.arguments}
            blocks[self._value.name] = Block(Pattern(len(row.nodes), len(self.values.nodes)))
            blocks[self._seed.name] = transposed(first[row.name])
            outputs |= {f"jac_adj_{row.name}_{name}": block for name, block in blocks.items()}
        found = [Port(f"out_adj_{group.name}", Pattern(len(group.nodes), 1)) for group in self.arguments]
        summary = f"Second derivatives of the {self.values.name}, weighted with the seeds."
        known = [self._value, self._seed, *found]
        return self._function("jac_adj1_", summary, known, outputs, len(self.arguments) + 1)

    # -- their blocks -------------------------------------------------------------------------------------------

    def _first_blocks(self) -> dict[str, Block]:
        """The derivatives with respect to each argument."""
        n = len(self.values.nodes)
        blocks = {group.name: Block(Pattern(n, len(group.nodes))) for group in self.arguments}
        for ending, part in self._parts():
            kernel, start = self._kernel(f"_jacobian{ending}"), 0
            places = self.derivatives.add_jacobian(kernel, flat(part))
            for group in part:
                inside = {
                    (i, k - start): index
                    for index, (i, k) in enumerate(places)
                    if start <= k < start + len(group.nodes)
                }
                blocks[group.name] = Block(Pattern(n, len(group.nodes), tuple(inside)), kernel, tuple(inside.values()))
                start += len(group.nodes)
        return blocks

    def _second_blocks(self) -> dict[tuple[str, str], Block]:
        """The second derivatives with respect to each pair of arguments; sets ``reason`` if they are too long."""
        found = self._second_derivatives()
        starts, start = {}, 0
        for group in (*self.variables, *self.parameters):
            starts[group.name] = start
            start += len(group.nodes)
        blocks = {}
        for row in self.arguments:
            for column in self.arguments:
                top, left = starts.get(row.name, 0), starts.get(column.name, 0)
                places = ((i, k) for i in range(len(row.nodes)) for k in range(len(column.nodes)))
                lower = {(i, k): (max(top + i, left + k), min(top + i, left + k)) for i, k in places}
                own = by_columns(place for place in lower if lower[place] in found)
                kernel = found[lower[own[0]]][0] if own else ""
                pattern = Pattern(len(row.nodes), len(column.nodes), own)
                blocks[row.name, column.name] = Block(pattern, kernel, tuple(found[lower[place]][1] for place in own))
        return blocks

    def _second_derivatives(self) -> dict[Place, tuple[str, int]]:
        """The kernel function and the index there of each entry in the lower triangle of the second derivatives."""
        variables, every = flat(self.variables), flat([*self.variables, *self.parameters])
        n, kernel = len(variables), self._kernel("_hessian")
        places = {kernel: self.derivatives.add_hessian(kernel, variables, range(n))}
        length = count_operations(self.f.known[kernel].roots) if places[kernel] else 0
        if length > HESSIAN_LIMIT:
            del self.f.known[kernel]
            self.reason = f"second derivatives take {length} operations, more than {HESSIAN_LIMIT}"
            return {}
        kernel = self._kernel("_hessian_p")
        places[kernel] = self.derivatives.add_hessian(kernel, every, range(n, len(every))) if self.parameters else ()
        return {place: (kernel, k) for kernel, own in places.items() for k, place in enumerate(own)}


def transposed(block: Block) -> Block:
    """The transpose of a block."""
    pattern = block.pattern
    turned = {(k, i): index for (i, k), index in zip(pattern.places, block.indices, strict=True)}
    places = by_columns(turned)
    own = Pattern(pattern.columns, pattern.rows, places)
    return Block(own, block.kernel, tuple(turned[place] for place in places))


def flat(arguments: Iterable[Group]) -> list[Node]:
    """The nodes of arguments."""
    return [node for group in arguments for node in group.nodes]
