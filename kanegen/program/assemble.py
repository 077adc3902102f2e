"""The functions of a model's program from its equations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from kanegen.derive.cholesky import solve_symmetric
from kanegen.derive.equations import PIVOT_LIMIT, SQUARE_LIMIT, Equations
from kanegen.derive.forms import complete, matrix_product, matrix_vector
from kanegen.derive.quantity import Quantity
from kanegen.graph import Graph, Node, reachable, substitute
from kanegen.model.expressions import symbol_name
from kanegen.options import BuildOptions
from kanegen.program.count import operation_count
from kanegen.program.hoist import hoist
from kanegen.program.kernels import constrained_work, multipliers_work
from kanegen.program.records import Block, Call, Function, Guard, Invoke, Program, Step, Store, Symbols

SINGULAR_LIMIT = 1e-12
"""Constraint pivots below this fraction of their row leave no correct digits: the named partition is singular."""


Made: TypeAlias = tuple[tuple[Step, ...], tuple[int, ...], dict[str, int]]
"""Steps, shape and work arrays of a function."""


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
    maker.right_hand_side(form, stabilised=False)
    if equations.gain_names:
        maker.right_hand_side(form, stabilised=True)
    for name in options.functions:
        if name == "outputs":
            maker.outputs()
        elif name != "rhs" and exists(equations, name):
            maker.functions[name] = replace(maker.quantity(name), internal=False)
    functions = tuple(maker.functions.values())
    program = Program(equations.model.name, equations.graph, _symbols(equations), functions)
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


def exists(equations: Equations, name: str) -> bool:
    """Whether the model has the quantity: an energy needs a potential, A a speed that is left free."""
    model = equations.model
    if name in ("energy", "potential_energy"):
        return model.potential_energy is not None or model.gravity is not None
    if name == "residuals":
        return bool(equations.positions.nodes or equations.velocities.nodes)
    return name != "A" or bool(equations.partition.independent)


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
        self.functions: dict[str, Function] = {}

    # -- right-hand sides -----------------------------------------------------------------------------------

    def right_hand_side(self, form: str, stabilised: bool) -> Function:
        """``rhs`` or ``rhs_stabilised``; where constraints are solved, with a fallback to any dependent speeds."""
        name = "rhs_stabilised" if stabilised else "rhs"
        general = None
        if self.n_c:
            summary = "q' and u' with dependent speeds chosen by pivoting"
            general = self._rhs_function(
                f"{name}_general", self._general(stabilised), summary, internal=True
            ).name
        make = {"reduced": self.reduced, "nonminimal": self.nonminimal}[form]
        gains = ", with stabilised constraints" if stabilised else ""
        return self._rhs_function(name, make(stabilised, general), f"q' and u' ({form} form{gains})")

    def cheapest(self) -> str:
        """The form whose right-hand side takes the fewest operations."""
        costs = {}
        for form in ("reduced", "nonminimal"):
            maker = _Assembly(self.equations)
            function = maker.right_hand_side(form, stabilised=False)
            program = hoist(Program("", self.graph, _symbols(self.equations), (function,)))
            costs[form] = operation_count(function, program.constants)
        return min(costs, key=lambda form: costs[form])

    def _rhs_function(self, name: str, solved: Solved, summary: str, internal: bool = False) -> Function:
        result = Block(
            "derivatives of the coordinates and speeds",
            (*stores("out", self.equations.qdot.nodes), *stores("out", solved.udot, self.n_q)),
        )
        steps = (*solved.steps, result)
        return self._add(Function(name, (self.n_q + self.n_u,), steps, solved.arrays, summary, internal))

    def _add(self, function: Function) -> Function:
        self.functions[function.name] = function
        return function

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
        n_u, n_c = self.n_u, self.n_c
        b = self.quantity("b" if stabilised else "b_bare")
        steps: tuple[Step, ...] = (
            *(Invoke(self.quantity(name), name) for name in ("Q", "P", "J")),
            Invoke(b, "b"),
            Call("constrained_solve", (n_u, n_c, "Q", "P", "J", "b", "scratch", "a")),
        )
        arrays = {"Q": n_u * n_u, "P": n_u, "J": n_c * n_u, "b": n_c}
        arrays |= {"scratch": constrained_work(n_u, n_c), "a": n_u}
        return Solved(steps, tuple(self.graph.input("a", i) for i in range(n_u)), arrays)

    def _guard(self, conditions: Sequence[Node], otherwise: str | None) -> tuple[Step, ...]:
        condition = all_hold(self.graph, conditions)
        return () if condition is None else (Guard(condition, otherwise),)

    # -- other functions ------------------------------------------------------------------------------------

    def quantity(self, name: str) -> Function:
        """The function of a quantity, which others may invoke; internal until the user asks for it."""
        if name not in self.functions:
            maker = {
                "T": self._T,
                "V": self._V,
                "constraint_force": self._constraint_force,
                "multipliers": self._multipliers,
                "residuals": self._residuals,
            }.get(name)
            steps, shape, arrays = maker() if maker else self._plain(name)
            self._add(Function(name, shape, steps, arrays, SUMMARIES[name], internal=True))
        return self.functions[name]

    def _plain(self, name: str) -> Made:
        """Straight-line code of one quantity of the equations."""
        quantity: Quantity = getattr(self.equations, QUANTITIES.get(name, name))
        guard = self._partition_guard() if name in ("A", "B", "A1", "A2") else ()
        return (*guard, Block("", stores("out", quantity.nodes))), quantity.shape, {}

    def _partition_guard(self) -> tuple[Step, ...]:
        held = [pivot.holds(SINGULAR_LIMIT) for pivot in self.equations.partition.pivots]
        return self._guard([condition for condition in held if condition is not None], None)

    def _loaded(self, array: str, quantity: Quantity) -> list[list[Node]]:
        """A matrix or column from a work array; what does not change during a run is not read from there."""
        nodes = [
            node if node.constant else self.graph.input(array, k) for k, node in enumerate(quantity.nodes)
        ]
        columns = quantity.shape[1] if len(quantity.shape) == 2 else 1
        return [nodes[i : i + columns] for i in range(0, len(nodes), columns)] if columns else []

    def _T(self) -> Made:
        e, n = self.equations, self.n_u
        if not self.n_c:
            return (Invoke(self.quantity("Q"), "out"),), (n, n), {}
        A2 = self._loaded("A2", e.A2)
        rows = self._loaded("A1", e.A1) + matrix_product(self.graph, A2, self._loaded("Q", e.Q))
        steps: tuple[Step, ...] = (
            *(Invoke(self.quantity(name), name) for name in ("A1", "A2", "Q")),
            Block("T = [A1; A2 Q]", stores("out", [x for row in rows for x in row])),
        )
        return steps, (n, n), {"A1": self.n_c * n, "A2": (n - self.n_c) * n, "Q": n * n}

    def _V(self) -> Made:
        e, n = self.equations, self.n_u
        if not self.n_c:
            return (Invoke(self.quantity("P"), "out"),), (n,), {}
        P = [row[0] for row in self._loaded("P", e.P)]
        B = [row[0] for row in self._loaded("B", e.B_stabilised)]
        momentum = matrix_vector(self.graph, self._loaded("A2", e.A2), P)
        steps: tuple[Step, ...] = (
            *(Invoke(self.quantity(name), name) for name in ("B", "A2", "P")),
            Block("V = [B; A2 P]", stores("out", [*B, *momentum])),
        )
        return steps, (n,), {"B": self.n_c, "A2": (n - self.n_c) * n, "P": n}

    def _residuals(self) -> Made:
        nodes = (*self.equations.positions.nodes, *self.equations.velocities.nodes)
        return (Block("", stores("out", nodes)),), (len(nodes),), {}

    def _constraint_force(self) -> Made:
        graph, n = self.graph, self.n_u
        if not self.n_c:
            return (Block("nothing constrains", stores("out", [graph.zero] * n)),), (n,), {}
        accelerations, udot = self._accelerations()
        inertia = matrix_vector(graph, self._loaded("Q", self.equations.Q), udot)
        force = [x - y[0] for x, y in zip(inertia, self._loaded("P", self.equations.P), strict=True)]
        steps: tuple[Step, ...] = (
            accelerations,
            *(Invoke(self.quantity(name), name) for name in ("Q", "P")),
            Block("Q u' - P", stores("out", force)),
        )
        return steps, (n,), {"a": self.n_q + n, "Q": n * n, "P": n}

    def _multipliers(self) -> Made:
        n_u, n_c = self.n_u, self.n_c
        if not n_c:
            return (), (0,), {}
        steps = (
            Invoke(self.quantity("constraint_force"), "force"),
            Invoke(self.quantity("J"), "J"),
            Call("multipliers", (n_u, n_c, "J", "force", "scratch", "out")),
        )
        return steps, (n_c,), {"force": n_u, "J": n_c * n_u, "scratch": multipliers_work(n_u, n_c)}

    def outputs(self) -> None:
        """The user's outputs, evaluated with the solved (stabilised) accelerations where they contain u'."""
        for name, quantity in self.equations.outputs.items():
            nodes = list(quantity.nodes)
            steps: tuple[Step, ...] = ()
            arrays: dict[str, int] = {}
            if any(node.op == "input" and node.payload[0] == "udot" for node in reachable(nodes)):
                accelerations, udot = self._accelerations()
                nodes = substitute(nodes, dict(zip(self.equations.system.udot, udot, strict=True)))
                steps, arrays = (accelerations,), {"a": self.n_q + self.n_u}
            block = Block("", stores("out", nodes))
            self._add(Function(f"output:{name}", quantity.shape, (*steps, block), arrays, f"output {name}"))

    def _accelerations(self) -> tuple[Invoke, list[Node]]:
        """The step that evaluates the right-hand side into the array ``a``, and u' there."""
        function = self.functions["rhs_stabilised" if self.stabilisable else "rhs"]
        return Invoke(function, "a"), [self.graph.input("a", self.n_q + i) for i in range(self.n_u)]


QUANTITIES = {"b": "b_stabilised", "b_bare": "b", "B": "B_stabilised"}
"""Quantities of the equations behind functions of another name: what is evaluated contains the gains given."""

SUMMARIES = {
    "constraint_force": "generalized constraint forces",
    "multipliers": "multipliers of the constraint rows, Q u' = P + J^T lambda",
    "residuals": "residuals of the constraints: phi and invariants, then phi' and psi",
    "b_bare": "right sides of J u' = b without stabilisation",
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
