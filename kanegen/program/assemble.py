"""The functions of a model's program from its equations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kanegen.derive.cholesky import solve_symmetric
from kanegen.derive.elimination import solve_linear
from kanegen.derive.equations import PIVOT_LIMIT, SQUARE_LIMIT, Equations
from kanegen.derive.forms import complete
from kanegen.derive.quantity import Quantity
from kanegen.graph import Graph, Node, reachable, substitute
from kanegen.model.expressions import symbol_name
from kanegen.options import BuildOptions
from kanegen.program.count import operation_count
from kanegen.program.hoist import hoist
from kanegen.program.records import Block, Call, Function, Guard, Program, Step, Store, Symbols

SINGULAR_LIMIT = 1e-12
"""Constraint pivots below this fraction of their row leave no correct digits: the named partition is singular."""


@dataclass(frozen=True)
class Solved:
    """Steps after which ``udot`` holds the accelerations, with the work arrays they need."""

    steps: tuple[Step, ...]
    udot: tuple[Node, ...]
    arrays: dict[str, int]


def assemble(equations: Equations, options: BuildOptions) -> tuple[Program, str]:
    """The program of the functions asked for, constants hoisted, and the form of its right-hand side.

    With ``form="auto"`` that is the form with the fewest operations.
    """
    maker = _Assembly(equations)
    form = maker.cheapest() if options.form == "auto" else options.form
    functions: list[Function] = list(maker.right_hand_sides(form))
    for name in options.functions:
        if name != "rhs":
            functions.extend(maker.named(name))
    program = Program(equations.model.name, equations.graph, _symbols(equations), tuple(functions))
    return hoist(program), form


def _symbols(equations: Equations) -> Symbols:
    model = equations.model
    return Symbols(
        tuple(symbol_name(q) for q in model.coordinates),
        tuple(symbol_name(u) for u in model.speeds),
        tuple(item.name for item in model.inputs),
        tuple(str(p) for p in model.parameters),
        equations.gain_names,
    )


def stores(array: str, nodes: Sequence[Node], offset: int = 0) -> tuple[Store, ...]:
    return tuple(Store(array, offset + i, node) for i, node in enumerate(nodes))


def all_hold(graph: Graph, conditions: Sequence[Node]) -> Node | None:
    """One condition that all hold; None where there is none."""
    combined: Node | None = None
    for condition in conditions:
        combined = condition if combined is None else graph.apply("and", combined, condition)
    return combined


class _Assembly:
    """Builds the functions of one model; quantities are derived when a function first needs them."""

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self.graph = equations.graph
        self.n_q = len(equations.system.q)
        self.n_u = len(equations.system.u)
        self.n_c = len(equations.constraints.rows)
        self.stabilisable = bool(equations.gain_names)

    # -- right-hand sides -----------------------------------------------------------------------------------

    def right_hand_sides(self, form: str) -> Iterator[Function]:
        """``rhs``, ``rhs_stabilised`` where constraints can be stabilised, and their fallbacks."""
        if self.stabilisable:
            yield from self._right_hand_side(form, stabilised=True)
        yield from self._right_hand_side(form, stabilised=False)

    def cheapest(self) -> str:
        """The form whose right-hand side takes the fewest operations."""
        costs = {}
        for form in ("reduced", "nonminimal"):
            function = next(f for f in self._right_hand_side(form, stabilised=False) if not f.internal)
            program = hoist(Program("", self.graph, _symbols(self.equations), (function,)))
            costs[form] = operation_count(program.functions[0], program.constants)
        return min(costs, key=lambda form: costs[form])

    def _right_hand_side(self, form: str, stabilised: bool) -> Iterator[Function]:
        name = "rhs_stabilised" if stabilised else "rhs"
        general = f"{name}_general"
        if self.n_c:
            fallback = self._general(stabilised)
            yield self._rhs_function(general, fallback, "any dependent speeds, chosen by pivoting", internal=True)
        make = {"reduced": self.reduced, "nonminimal": self.nonminimal}[form]
        solved = make(stabilised, general if self.n_c else None)
        gains = ", with stabilised constraints" if stabilised else ""
        yield self._rhs_function(name, solved, f"q' and u' ({form} form{gains})")

    def _rhs_function(self, name: str, solved: Solved, summary: str, internal: bool = False) -> Function:
        result = Block(
            "derivatives of the coordinates and speeds",
            (*stores("out", self.equations.system.qdot), *stores("out", solved.udot, self.n_q)),
        )
        return Function(
            name, (self.n_q + self.n_u,), (*solved.steps, result), solved.arrays, summary, internal
        )

    def reduced(self, stabilised: bool, otherwise: str | None) -> Solved:
        """u_I' from ``A2 Q A2^T``, written out up to SQUARE_LIMIT unknowns, then ``u_D' = A u_I' + B``."""
        e, graph = self.equations, self.graph
        part = e.partition
        B = part.B_stabilised if stabilised else part.B
        small = e.reduced(stabilised)
        n = len(small.right)
        held = [pivot.holds(PIVOT_LIMIT) for pivot in part.pivots]
        conditions = [condition for condition in held if condition is not None]
        if n <= SQUARE_LIMIT:
            independent, definite = solve_symmetric(small.lower, small.right)
            guard = self._guard([*conditions, *definite], otherwise)
            return Solved(guard, complete(graph, part, B, independent), {})
        matrix = Block(
            "reduced mass matrix and right side",
            (
                *(Store("S", i * n + j, x) for i, row in enumerate(small.lower) for j, x in enumerate(row)),
                *stores("f", small.right),
            ),
        )
        independent = [graph.input("f", i) for i in range(n)]
        steps = (*self._guard(conditions, otherwise), matrix, Call("cholesky_solve", (n, "S", "f")))
        return Solved(steps, complete(graph, part, B, independent), {"S": n * n, "f": n})

    def nonminimal(self, stabilised: bool, otherwise: str | None) -> Solved:
        """``T u' = V`` by LU with row pivoting."""
        e, n = self.equations, self.n_u
        V = e.V_stabilised if stabilised else e.V
        held = [pivot.holds(PIVOT_LIMIT) for pivot in e.partition.pivots]
        steps = (
            *self._guard([condition for condition in held if condition is not None], otherwise),
            Block("T u' = V", (*stores("T", e.T.nodes), *stores("V", V.nodes))),
            Call("lu_solve", (n, "T", "V")),
        )
        return Solved(steps, tuple(self.graph.input("V", i) for i in range(n)), {"T": n * n, "V": n})

    def _general(self, stabilised: bool) -> Solved:
        """u' with dependent speeds chosen at run time."""
        e, n_u, n_c = self.equations, self.n_u, self.n_c
        b = e.b_stabilised if stabilised else e.b
        arrays = {"Q": n_u * n_u, "P": n_u, "J": n_c * n_u, "b": n_c}
        fill = Block(
            "the system before any choice of dependent speeds",
            (*stores("Q", e.Q.nodes), *stores("P", e.P.nodes), *stores("J", e.J.nodes), *stores("b", b.nodes)),
        )
        call = Call("constrained_solve", (n_u, n_c, "Q", "P", "J", "b", "scratch", "a"))
        n_i = n_u - n_c
        scratch = 2 * n_u + n_u * n_i + n_i * n_i + n_i  # KG_CONSTRAINED_WORK
        udot = tuple(self.graph.input("a", i) for i in range(n_u))
        return Solved((fill, call), udot, {**arrays, "scratch": scratch, "a": n_u})

    def _guard(self, conditions: Sequence[Node], otherwise: str | None) -> tuple[Step, ...]:
        condition = all_hold(self.graph, conditions)
        return () if condition is None else (Guard(condition, otherwise),)

    # -- other functions ------------------------------------------------------------------------------------

    def named(self, name: str) -> Iterator[Function]:
        """The functions behind one name of ``functions=``; none where the model has no such quantity."""
        makers: dict[str, Callable[[], Iterator[Function]]] = {
            "outputs": self._outputs,
            "residuals": self._residuals,
            "constraint_force": self._constraint_force,
            "multipliers": self._multipliers,
            "potential_energy": lambda: self._energy("potential_energy"),
            "energy": lambda: self._energy("energy"),
        }
        if name in makers:
            return makers[name]()
        return self._plain(name)

    def _plain(self, name: str) -> Iterator[Function]:
        quantity: Quantity = getattr(self.equations, {"b": "b_stabilised", "B": "B_stabilised", "V": "V_stabilised"}.get(name, name))
        if quantity.shape[1:] == (0,):  # A where the constraints leave nothing free: no columns, no function
            return
        guard: tuple[Step, ...] = ()
        if name in ("A", "B", "A1", "A2", "T", "V"):
            held = [pivot.holds(SINGULAR_LIMIT) for pivot in self.equations.partition.pivots]
            guard = self._guard([condition for condition in held if condition is not None], None)
        summary = SUMMARIES[name]
        yield Function(name, quantity.shape, (*guard, Block(summary, stores("out", quantity.nodes))), {}, summary)

    def _energy(self, name: str) -> Iterator[Function]:
        model = self.equations.model
        if model.potential_energy is not None or model.gravity is not None:
            yield from self._plain(name)

    def _residuals(self) -> Iterator[Function]:
        e = self.equations
        nodes = (*e.positions.nodes, *e.velocities.nodes)
        if nodes:
            block = Block("residuals of the constraints", stores("out", nodes))
            yield Function("residuals", (len(nodes),), (block,), {}, "phi and invariants, then phi' and psi")

    def _constraint_force(self) -> Iterator[Function]:
        solved, force = self._with_accelerations(self.equations.constraint_force.nodes)
        block = Block("Q u' - P", stores("out", force))
        summary = "generalized constraint forces"
        yield Function("constraint_force", (self.n_u,), (*solved.steps, block), solved.arrays, summary)

    def _multipliers(self) -> Iterator[Function]:
        if not self.n_c:
            return
        e = self.equations
        solved, force = self._with_accelerations(e.constraint_force.nodes)
        dependent = e.partition.dependent
        rows = [row.J for row in e.constraints.rows]
        transposed = [[row[d] for row in rows] for d in dependent]
        solution = solve_linear(transposed, [[force[d]] for d in dependent], e.system.magnitudes)
        block = Block("J_D^T lambda = Fc_D", stores("out", [row[0] for row in solution]))
        summary = "multipliers of the constraint rows, Q u' = P + J^T lambda"
        yield Function("multipliers", (self.n_c,), (*solved.steps, block), solved.arrays, summary)

    def _outputs(self) -> Iterator[Function]:
        for name, quantity in self.equations.outputs.items():
            title = f"output {name}"
            if any(node.op == "input" and node.payload[0] == "udot" for node in self._leaves(quantity)):
                solved, nodes = self._with_accelerations(quantity.nodes)
                steps = (*solved.steps, Block(title, stores("out", nodes)))
                yield Function(f"output:{name}", quantity.shape, steps, solved.arrays, f"the user's output {name}")
            else:
                block = Block(title, stores("out", quantity.nodes))
                yield Function(f"output:{name}", quantity.shape, (block,), {}, f"the user's output {name}")

    def _leaves(self, quantity: Quantity) -> Iterator[Node]:
        return (node for node in reachable(quantity.nodes) if not node.args)

    def _with_accelerations(self, nodes: Sequence[Node]) -> tuple[Solved, list[Node]]:
        """Steps that solve for u' (stabilised), and the nodes with u' put in."""
        solved = self.reduced(self.stabilisable, None)
        replacements = dict(zip(self.equations.system.udot, solved.udot, strict=True))
        return solved, substitute(list(nodes), replacements)


SUMMARIES = {
    "T": "T of T u' = V: rows of the constraints, then momentum rows",
    "V": "V of T u' = V, stabilised with the gains given",
    "Q": "kinetic-energy matrix",
    "P": "generalized active forces less inertia forces at u' = 0",
    "J": "constraint rows at acceleration level",
    "b": "right sides of J u' = b, stabilised with the gains given",
    "A": "A of u_D' = A u_I' + B",
    "B": "B of u_D' = A u_I' + B, stabilised with the gains given",
    "A1": "A1 = [-A I]",
    "A2": "A2 = [I A^T]",
    "N": "part of the momenta that is left at u = 0",
    "L": "inertia forces at u' = 0",
    "F": "generalized active forces",
    "momentum": "generalized momenta Q u + N",
    "kinetic_energy": "kinetic energy",
    "potential_energy": "potential energy",
    "energy": "kinetic and potential energy",
}
