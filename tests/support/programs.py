"""Programs made by hand and at random, straight from the graph: no model, no derivation."""

from __future__ import annotations

import random
from collections.abc import Sequence

from kanegen.graph.functions import Function as UserFunction
from kanegen.graph.functions import Spline
from kanegen.graph.nodes import Graph, Node
from kanegen.program.passes.lower import hoist
from kanegen.program.records import (
    Block,
    Call,
    ContactEntry,
    EventEntry,
    Function,
    Guard,
    Program,
    Step,
    Store,
    Symbols,
)

DIGEST = "0123456789abcdef" * 4
HOSTILE = (
    "*/ int x; /*",
    "// \\",
    "??/",
    'quote" end',
    "line\nbreak\r\t",
    "Größe θ₁ 🦾",
    "/*/",
    "%s %n",
    "\u202eback",
    "back\\slash",
    "\\",
    "1" * 300,
)
"""Names that would end a comment, a line or a string if they got there unescaped."""


def stores(array: str, values: Sequence[Node]) -> tuple[Store, ...]:
    return tuple(Store(array, k, value) for k, value in enumerate(values))


def pendulum() -> Program:
    """A pendulum: constants to hoist, one angle, a scalar function."""
    g = Graph()
    theta, omega = g.input("q", 0), g.input("u", 0)
    mass, length, gravity = (g.input("p", k) for k in range(3))
    acceleration = -(gravity / length * g.apply("sin", theta))
    kinetic = g.const(0.5) * mass * length * length * omega * omega
    potential = mass * gravity * length * (1 - g.apply("cos", theta))
    functions = (
        Function("rhs", (2,), (Block("derivatives", stores("out", [omega, acceleration])),), {}, "q', u'"),
        Function("energy", (), (Block("energy", stores("out", [kinetic + potential])),), {}, "K + V"),
    )
    symbols = Symbols(("theta",), ("omega",), (), ("m", "l", "g"), ())
    return hoist(Program("pendulum", g, symbols, functions))


def solver_program() -> Program:
    """Everything at once: kernel, guard with a fallback, gathered angles, user function, spline, contacts, events."""
    g = Graph()
    q = [g.input("q", k) for k in range(3)]
    u = [g.input("u", k) for k in range(3)]
    t, r, p, gain = g.input("t", 0), g.input("r", 0), g.input("p", 0), g.input("g", 0)
    sines, cosines = [g.apply("sin", x) for x in q], [g.apply("cos", x) for x in q]
    smooth = UserFunction("ramp */", 1, lambda x: x / (1.0 + x * x), "x / (1.0 + x * x)")
    table = Spline([0.0, 1.0, 2.5, 4.0], [0.0, 2.0, -1.0, 3.0], name="table */")
    matrix = [2 + sines[0] * sines[0], sines[1] * p, cosines[1] * p, 3 + cosines[2]]
    vector = [u[0] * u[1] + g.call(smooth, r * p), gain * t - g.call(table, q[2])]
    divisor = 2 + cosines[0] * cosines[1]
    x = [g.input("x", k) for k in range(2)]
    solved = (
        Block("matrix", (*stores("M", matrix), *stores("x", vector))),
        Guard(g.apply("lt", g.const(-1), sines[0] * p), "rhs fallback", ("the sine */ is not small",)),
        Call("lu_solve", (2, "M", "x")),
        Block("result", stores("out", [x[0] / divisor, x[1] / divisor, g.apply("max", x[0] + t, u[2])])),
    )
    fallback = (Block("fallback", stores("out", [u[0], gain / (1 + p * p), cosines[0] + p])),)
    functions = (
        Function("rhs", (3,), solved, {"M": 4, "x": 2}, "solved"),
        Function("rhs fallback", (3,), fallback, {}, "where the solve is not wanted", internal=True),
        Function('output:*/ "q" ??/', (2, 2), (Block("", stores("out", matrix)),), {}, "matrix */"),
    )
    symbols = Symbols(HOSTILE[:3], HOSTILE[3:6], (HOSTILE[6],), (HOSTILE[7],), (HOSTILE[8],), ("force */", "slip"))
    contacts = (
        ContactEntry('floor */ "', "restitution", 2, 0, 1, 1, False),
        ContactEntry("hook", "latch", 1, 2, -1, 0, True),
        ContactEntry("brake", "load", 2, -1, 3, 2, True),
    )
    events = (
        EventEntry("apex ??/", -1, True, -1, (), (), False),
        EventEntry("knock", 0, False, 1, (1,), (1, 1), True),
    )
    return hoist(Program("solver", g, symbols, functions, contacts=contacts, events=events))


class RandomExpressions:
    """Random nodes with known bounds on their values, so that rounding errors stay small."""

    MODEST = 20.0

    def __init__(self, seed: int, graph: Graph) -> None:
        self._random = random.Random(seed)
        self.graph = graph
        self._bounds: dict[Node, float] = {}
        self.conditions: list[Node] = []
        leaves = [("q", 4), ("u", 4), ("p", 3), ("g", 1), ("r", 1), ("t", 1)]
        self.leaves = [graph.input(array, k) for array, size in leaves for k in range(size)]
        self.leaves += [graph.const(value) for value in (0.1, -3, 2, 1.5e-3)]
        self.pool = list(self.leaves)

    def number(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def grow(self, count: int, pool: list[Node]) -> None:
        """Add ``count`` new nodes over ``pool`` to it."""
        pool.extend(self._one(pool) for _ in range(count))

    def pick(self, pool: list[Node]) -> Node:
        # Recent nodes are preferred, so that expressions get deep.
        return self._random.choice(pool[-12:] if self._random.random() < 0.6 else pool)

    def _bound(self, node: Node) -> float:
        return self._bounds.get(node, 4.0)

    def _one(self, pool: list[Node]) -> Node:
        g = self.graph
        a, b = self.pick(pool), self.pick(pool)
        bound_a, bound_b = self._bound(a), self._bound(b)
        kind = self._random.choice(("ring", "ring", "ring", "ring", "function", "branch"))
        if kind == "ring":
            bound = max(bound_a * bound_b, bound_a + bound_b)
            node = self._random.choice((g.add, g.sub, g.mul))(a, b)
            if self._random.random() < 0.15:
                node, bound = g.div(a, 1 + b * b), bound_a
        elif kind == "function":
            node, bound = self._random.choice(
                (
                    (g.apply("sin", a), 1.0),
                    (g.apply("cos", a), 1.0),
                    (g.apply("tanh", a), 1.0),
                    (g.apply("sqrt", 1 + a * a), 1.0 + bound_a),
                    (g.apply("atan2", a, 2 + b * b), 2.0),
                    (g.neg(a), bound_a),
                )
            )
        else:
            bound = max(bound_a, bound_b)
            chosen = g.select(self._condition(a, b), a, b)
            node = self._random.choice((g.apply("min", a, b), g.apply("max", a, b), chosen))
        if bound > self.MODEST:
            node, bound = g.apply("tanh", node), 1.0
        self._bounds[node] = bound
        return node

    def _condition(self, a: Node, b: Node) -> Node:
        """A condition on two nodes, or one that other nodes use too."""
        g = self.graph
        if self.conditions and self._random.random() < 0.5:
            return self._random.choice(self.conditions[-6:])
        both = g.apply("and", g.apply("lt", a, b), g.apply("not", g.apply("le", b, g.zero)))
        self.conditions.append(both)
        return both


def random_program(seed: int, count: int, size: int = 60) -> Program:
    """``count`` functions of up to ``size`` operations each, half of them with a kernel, some with guards."""
    graph = Graph()
    expressions = RandomExpressions(seed, graph)
    functions = []
    for k in range(count):
        if k % 3 == 0:
            # Functions share expressions in threes: forever, the last ones would be endless.
            expressions.pool = list(expressions.leaves)
        functions.append(_random_function(f"f{k}", expressions, size))
    spare = Function("spare", (3,), (Block("", stores("out", expressions.leaves[:3])),), {}, "spare", True)
    symbols = Symbols(
        tuple(f"q{k}" for k in range(4)),
        tuple(f"u{k}" for k in range(4)),
        ("r",),
        ("p0", "p1", "p2"),
        ("g",),
    )
    return hoist(Program(f"random {seed}", graph, symbols, (*functions, spare)))


def _random_function(name: str, expressions: RandomExpressions, size: int) -> Function:
    g = expressions.graph
    pool = list(expressions.leaves) + expressions.pool[-6:]
    expressions.conditions.clear()  # some read arrays of another function
    expressions.grow(expressions.number(5, size), pool)
    expressions.pool = pool
    pick = expressions.pick
    steps: list[Step] = []
    arrays: dict[str, int] = {}
    if expressions.number(0, 1):
        small = [g.apply("sin", pick(pool)) for _ in range(2)]
        matrix = [3 + small[0], small[1], small[0] * small[1], 4 - small[1]]
        steps.append(Block("system", (*stores("M", matrix), *stores("x", [pick(pool), pick(pool)]))))
        if expressions.number(0, 1):
            steps.append(Guard(g.apply("lt", pick(pool), pick(pool)), "spare"))
        steps.append(Call("lu_solve", (2, "M", "x")))
        arrays = {"M": 4, "x": 2}
        pool = [*pool, g.input("x", 0), g.input("x", 1)]
        # A block that overwrites what it reads, then one that reads the new values.
        steps.append(Block("swap", stores("x", [g.input("x", 1) * pick(pool), g.input("x", 0)])))
        expressions.grow(8, pool)
        pool = [*pool, g.input("x", 0) + g.input("x", 1)]
    steps.append(Block("result", stores("out", [pick(pool) for _ in range(3)])))
    return Function(name, (3,), tuple(steps), arrays, "random")


def random_inputs(seed: int) -> dict[str, list[float]]:
    """Values of all inputs of a random program."""
    numbers = random.Random(seed)
    sizes = {"t": 1, "q": 4, "u": 4, "r": 1, "p": 3, "g": 1}
    return {array: [numbers.uniform(-2, 2) for _ in range(size)] for array, size in sizes.items()}
