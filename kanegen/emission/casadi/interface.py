"""The functions with CasADi's C interface, and from which kernel functions their values come.

CasADi finds derivatives of an external function ``f: (x, u, p) -> xdot`` by name: ``jac_f`` with the blocks
``jac_xdot_x``, ..., ``adj1_f`` with the products of a seed and these blocks, and ``jac_adj1_f`` with the blocks of
their derivatives, which are second derivatives of f. Values that a derivative need not know have an empty pattern.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kanegen.emission.casadi.derivatives import Derivatives, Values
from kanegen.emission.casadi.patterns import Pattern, Place, by_columns
from kanegen.graph import Node, count_operations, reachable
from kanegen.program.builder import Functions

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


class Differentiated:
    """The CasADi functions of values: the values, their Jacobian, the adjoint derivative and its Jacobian.

    Adds the kernel functions that they evaluate to ``f``. ``reason``: why there are no second derivatives, or None.
    """

    def __init__(self, f: Functions, stem: str, values: Values, arguments: Sequence[Group]) -> None:
        layout = f.equations.model.input_layout
        self.seeds = [f.graph.input("r", layout.size + k) for k in range(len(values.nodes))]
        self.f, self.values, self.arguments = f, values, tuple(arguments)
        self.name = f"{stem}_{values.name}"
        self.derivatives = Derivatives(f, values, self.seeds)
        self.near = [group for group in arguments if group.name != "p" and group.nodes]
        self.far = [group for group in arguments if group.name == "p" and group.nodes]
        self.jacobians: dict[str, tuple[Place, ...]] = {}
        self.reason = self.derivatives.reason_against_adjoint
        self.functions = tuple(self._made())

    def _made(self) -> Iterable[CasadiFunction]:
        yield self._values()
        if self.derivatives.has_multipliers:
            return
        yield self._jacobian()
        if self.reason is None:
            yield self._adjoint()
            second = self._second()
            if second is not None:
                yield second

    @property
    def _inputs(self) -> tuple[Port, ...]:
        return tuple(group.port for group in self.arguments)

    def _kernel(self, suffix: str) -> str:
        return f"casadi_{self.values.name}{suffix}"

    def _values(self) -> CasadiFunction:
        n, name = len(self.values.nodes), self._kernel("")
        if self.values.name == "dynamics":
            name = "rhs_stabilized" if self.f.stabilizable else "rhs"
        else:
            self.derivatives.add_values(name)
        port = Port(self.values.output, Pattern.dense(n))
        copied = Evaluation(name, (Copy(0, tuple(range(n))),))
        return CasadiFunction(self.name, f"The {self.values.name}.", self._inputs, (port,), (copied,))

    def _jacobian(self) -> CasadiFunction:
        n, outputs, evaluations = len(self.values.nodes), [], []
        for part, suffix in ((self.near, "_jacobian"), (self.far, "_jacobian_p")):
            if part:
                self.jacobians[suffix] = self.derivatives.add_jacobian(self._kernel(suffix), flat(part))
        blocks = {group.name: block for suffix in self.jacobians for group, block in self._blocks(suffix)}
        for suffix in self.jacobians:
            mine = {group.name for group, _ in self._blocks(suffix)}
            copies = [
                Copy(i, blocks[g.name][1]) for i, g in enumerate(self.arguments) if g.name in mine and blocks[g.name][1]
            ]
            if copies:
                evaluations.append(Evaluation(self._kernel(suffix), tuple(copies)))
        for group in self.arguments:
            places = blocks.get(group.name, ((), ()))[0]
            label = f"jac_{self.values.output}_{group.name}"
            outputs.append(Port(label, Pattern(n, len(group.nodes), places)))
        known = Port(f"out_{self.values.output}", Pattern(n, 1))
        summary = f"Derivatives of the {self.values.name}."
        name = f"jac_{self.name}"
        return CasadiFunction(name, summary, (*self._inputs, known), tuple(outputs), tuple(evaluations))

    def _blocks(self, suffix: str) -> Iterable[tuple[Group, tuple[tuple[Place, ...], tuple[int, ...]]]]:
        """The places of the block of each argument, and the indices of its entries among the kernel's values."""
        places, start = self.jacobians[suffix], 0
        for group in self.near if suffix == "_jacobian" else self.far:
            inside = [(k, place) for k, place in enumerate(places) if 0 <= place[1] - start < len(group.nodes)]
            yield group, (tuple((i, k - start) for _, (i, k) in inside), tuple(k for k, _ in inside))
            start += len(group.nodes)

    def _adjoint(self) -> CasadiFunction:
        order = {group.name: k for k, group in enumerate(self.arguments)}
        evaluations = []
        for part, suffix in ((self.near, "_adjoint"), (self.far, "_adjoint_p")):
            copies, start = [], 0
            for group in part:
                copies.append(Copy(order[group.name], tuple(range(start, start + len(group.nodes)))))
                start += len(group.nodes)
            if part:
                self.derivatives.add_adjoint(self._kernel(suffix), flat(part))
                evaluations.append(Evaluation(self._kernel(suffix), tuple(copies)))
        output, n = self.values.output, len(self.values.nodes)
        inputs = (*self._inputs, Port(f"out_{output}", Pattern(n, 1)), Port(f"adj_{output}", Pattern.dense(n)))
        outputs = tuple(Port(f"adj_{group.name}", group.port.pattern) for group in self.arguments)
        summary = f"Products of seeds and the derivatives of the {self.values.name}."
        return CasadiFunction(f"adj1_{self.name}", summary, inputs, outputs, tuple(evaluations), seeds=len(inputs) - 1)

    # -- second derivatives ---------------------------------------------------------------------------------------

    def _second(self) -> CasadiFunction | None:
        """The derivatives of the adjoint derivatives; None if they are too long, which sets ``reason``."""
        near, every = flat(self.near), [*flat(self.near), *flat(self.far)]
        first = self._kernel("_hessian")
        sources = {first: self.derivatives.add_hessian(first, near, range(len(near)))}
        length = count_operations(self.f.known[first].roots) if sources[first] else 0
        if length > HESSIAN_LIMIT:
            del self.f.known[first]
            self.reason = f"second derivatives take {length} operations, more than {HESSIAN_LIMIT}"
            return None
        if self.far:
            second = self._kernel("_hessian_p")
            sources[second] = self.derivatives.add_hessian(second, every, range(len(near), len(every)))
        return self._of_adjoint(sources)

    def _of_adjoint(self, sources: Mapping[str, tuple[Place, ...]]) -> CasadiFunction:
        output, n = self.values.output, len(self.values.nodes)
        adjoint = (Port(f"out_{output}", Pattern(n, 1)), Port(f"adj_{output}", Pattern.dense(n)))
        known = tuple(Port(f"out_adj_{group.name}", Pattern(len(group.nodes), 1)) for group in self.arguments)
        blocks = self._second_blocks(sources)
        outputs: list[Port] = []
        copies: dict[str, list[Copy]] = {kernel: [] for kernel in (*sources, *map(self._kernel, self.jacobians))}
        for row in self.arguments:
            for column in (*(group.port for group in self.arguments), *adjoint):
                pattern, kernel, indices = blocks.get(
                    (row.name, column.name), (Pattern(len(row.nodes), column.pattern.rows), "", ())
                )
                if indices:
                    copies[kernel].append(Copy(len(outputs), indices))
                outputs.append(Port(f"jac_adj_{row.name}_{column.name}", pattern))
        evaluations = tuple(Evaluation(kernel, tuple(found)) for kernel, found in copies.items() if found)
        return CasadiFunction(
            f"jac_adj1_{self.name}",
            f"Second derivatives of the {self.values.name}, weighted with the seeds.",
            (*self._inputs, *adjoint, *known),
            tuple(outputs),
            evaluations,
            seeds=len(self.arguments) + 1,
        )

    def _second_blocks(
        self, sources: Mapping[str, tuple[Place, ...]]
    ) -> dict[tuple[str, str], tuple[Pattern, str, tuple[int, ...]]]:
        """Pattern, kernel function and indices of each block that is not empty."""
        found = {place: (kernel, k) for kernel, places in sources.items() for k, place in enumerate(places)}
        blocks, starts, start = {}, {}, 0
        for group in (*self.near, *self.far):
            starts[group.name] = start
            start += len(group.nodes)
        for row in (*self.near, *self.far):
            for column in (*self.near, *self.far):
                top, left = starts[row.name], starts[column.name]
                entries = {
                    (i, k): found[max(top + i, left + k), min(top + i, left + k)]
                    for i in range(len(row.nodes))
                    for k in range(len(column.nodes))
                    if (max(top + i, left + k), min(top + i, left + k)) in found
                }
                blocks[row.name, column.name] = self._block(entries, len(row.nodes), len(column.nodes))
        label = f"adj_{self.values.output}"
        for suffix in self.jacobians:
            for group, (places, indices) in self._blocks(suffix):
                turned = {(k, i): (self._kernel(suffix), j) for (i, k), j in zip(places, indices, strict=True)}
                blocks[group.name, label] = self._block(turned, len(group.nodes), len(self.values.nodes))
        return blocks

    @staticmethod
    def _block(
        entries: Mapping[Place, tuple[str, int]], rows: int, columns: int
    ) -> tuple[Pattern, str, tuple[int, ...]]:
        places = by_columns(entries)
        kernel = entries[places[0]][0] if places else ""
        return Pattern(rows, columns, places), kernel, tuple(entries[place][1] for place in places)


def flat(arguments: Iterable[Group]) -> list[Node]:
    """The nodes of arguments."""
    return [node for group in arguments for node in group.nodes]
