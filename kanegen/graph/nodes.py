"""The hash-consed scalar expression graph.

A :class:`Graph` creates :class:`Node` objects. The same operation on the same operands gives the same node, so common
subexpressions are eliminated by construction. Only this module folds constants and applies the rules for zero, one and
signs. Operands have smaller indices than results, so sorting by index gives a topological order.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, Final, TypeAlias

from kanegen.graph.functions import Function, Tabulated
from kanegen.precision import Tolerance

Number: TypeAlias = int | Fraction | float

_EVEN: Final = frozenset({"cos", "cosh", "abs"})
_ODD: Final = frozenset({"sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "cbrt", "reciprocal"})
UNARY: Final = _EVEN | _ODD | {"sqrt", "acos", "acosh", "exp", "log", "floor", "ceil"}
BINARY: Final = frozenset({"atan2", "pow", "min", "max"})
COMPARISONS: Final = frozenset({"lt", "le", "eq", "ne"})
LOGICAL: Final = frozenset({"and", "or", "not"})

PARAMETER_ARRAYS: Final = frozenset({"p", "g"})
"""Input arrays that are constant during a run. The function ``prepare`` evaluates nodes that depend only on these."""

_CONDITIONS: Final = COMPARISONS | LOGICAL


class Node:
    """One scalar value: an operation and its operands. Compare with ``is``; build by operators or the Graph.

    ``payload`` is the number of a ``const``, the ``(array, index)`` of an ``input``, the function of a
    ``call``.
    ``constant``: the value does not change during a run, because it depends only on parameters and gains.
    """

    __slots__ = ("args", "constant", "graph", "index", "op", "payload")

    def __init__(self, graph: Graph, index: int, op: str, args: tuple[Node, ...], payload: Any, constant: bool) -> None:
        self.graph = graph
        self.index = index
        self.op = op
        self.args = args
        self.payload = payload
        self.constant = constant

    def __repr__(self) -> str:
        if self.op == "const":
            return f"<{self.payload}>"
        if self.op == "input":
            return f"<{self.payload[0]}[{self.payload[1]}]>"
        return f"<{self.index}: {self.op} {' '.join(str(a.index) for a in self.args)}>"

    @property
    def is_zero(self) -> bool:
        return self is self.graph.zero

    @property
    def is_one(self) -> bool:
        return self is self.graph.one

    def __add__(self, other: Node | Number) -> Node:
        return self.graph.add(self, other if isinstance(other, Node) else self.graph.const(other))

    def __radd__(self, other: Number) -> Node:
        return self.graph.add(self.graph.const(other), self)

    def __sub__(self, other: Node | Number) -> Node:
        return self.graph.sub(self, other if isinstance(other, Node) else self.graph.const(other))

    def __rsub__(self, other: Number) -> Node:
        return self.graph.sub(self.graph.const(other), self)

    def __mul__(self, other: Node | Number) -> Node:
        return self.graph.mul(self, other if isinstance(other, Node) else self.graph.const(other))

    def __rmul__(self, other: Number) -> Node:
        return self.graph.mul(self.graph.const(other), self)

    def __truediv__(self, other: Node | Number) -> Node:
        return self.graph.div(self, other if isinstance(other, Node) else self.graph.const(other))

    def __rtruediv__(self, other: Number) -> Node:
        return self.graph.div(self.graph.const(other), self)

    def __neg__(self) -> Node:
        return self.graph.neg(self)


class Graph:
    """An append-only table of nodes. All expressions derived from one model belong to one graph."""

    def __init__(self) -> None:
        # One table per operation, from the operands to the node: the key is the tuple the node keeps anyway.
        self._tables: defaultdict[Any, dict[tuple[Any, ...], Node]] = defaultdict(dict)
        self.nodes: list[Node] = []
        self.limited: list[Node] = []
        """Calls of functions with a domain (:mod:`kanegen.graph.domains`)."""
        self.named: dict[str, Any] = {}
        """Tables with parameters that have the name of the table (:mod:`kanegen.graph.grids`)."""
        self.zero = self.const(0)
        self.one = self.const(1)

    def __len__(self) -> int:
        return len(self.nodes)

    # -- leaves ----------------------------------------------------------------------------------------------

    def const(self, value: Number) -> Node:
        """The constant ``value``; integers and fractions stay exact, integer-valued floats become exact."""
        if type(value) is not int:
            value = exact(value)
        # The type is part of the key, because 0.5 == Fraction(1, 2) and only the fraction is exact.
        return self._leaf("const", value, (type(value), value), True)

    def input(self, array: str, index: int) -> Node:
        """Element ``index`` of array ``array``: ``q``, ``u``, ``p``, ``r``, ``t``, ``g`` or a work array."""
        payload = (array, index)
        return self._leaf("input", payload, payload, array in PARAMETER_ARRAYS)

    def _leaf(self, op: str, payload: Any, key: tuple[Any, ...], constant: bool) -> Node:
        table = self._tables[op]
        node = table.get(key)
        if node is None:
            node = table[key] = Node(self, len(self.nodes), op, (), payload, constant)
            self.nodes.append(node)
        return node

    def _intern(self, op: str, args: tuple[Node, ...], function: Any = None) -> Node:
        table = self._tables[function or op]
        node = table.get(args)
        if node is None:
            constant = all(a.constant for a in args)
            node = table[args] = Node(self, len(self.nodes), op, args, function, constant)
            self.nodes.append(node)
        return node

    def _binary(self, op: str, a: Node, b: Node) -> Node:
        table = self._tables[op]
        args = (a, b)
        node = table.get(args)
        if node is None:
            nodes = self.nodes
            node = table[args] = Node(self, len(nodes), op, args, None, a.constant and b.constant)
            nodes.append(node)
        return node

    # -- ring operations ------------------------------------------------------------------------------------

    def add(self, a: Node, b: Node) -> Node:
        zero = self.zero
        if a is zero:
            return b
        if b is zero:
            return a
        if a.op == "const":
            if b.op == "const":
                return self.const(a.payload + b.payload)
            if a.payload < 0:
                return self.sub(b, self.const(-a.payload))
        elif b.op == "const" and b.payload < 0:
            return self.sub(a, self.const(-b.payload))
        if b.op == "neg":
            return self.sub(a, b.args[0])
        if a.op == "neg":
            return self.sub(b, a.args[0])
        if a is b:
            return self.mul(self.const(2), a)
        factored = self._factor(a, b, self.add)
        if factored is not None:
            return factored
        if a.index > b.index:
            a, b = b, a
        if a.op == "mul" and b.op == "mul" and _is_square_pair(a, b):
            return self.one
        return self._binary("add", a, b)

    def sub(self, a: Node, b: Node) -> Node:
        zero = self.zero
        if b is zero:
            return a
        if a is zero:
            return self.neg(b)
        if a is b:
            return zero
        if b.op == "const":
            if a.op == "const":
                return self.const(a.payload - b.payload)
            if b.payload < 0:
                return self.add(a, self.const(-b.payload))
        elif a.op == "const" and a.payload < 0:
            return self.neg(self.add(self.const(-a.payload), b))
        if b.op == "neg":
            return self.add(a, b.args[0])
        if a.op == "neg":
            return self.neg(self.add(a.args[0], b))
        factored = self._factor(a, b, self.sub)
        return self._binary("sub", a, b) if factored is None else factored

    def _factor(self, a: Node, b: Node, combine: Callable[[Node, Node], Node]) -> Node | None:
        """``y*x + z*x -> (y + z)*x`` if y and z are constant during a run, so that y + z is evaluated once."""
        # This gives composite masses: m1*x + m2*x becomes (m1 + m2)*x, and prepare() evaluates m1 + m2.
        if a.op == "mul" and a.args[0].constant and not a.args[1].constant:
            x = a.args[1]
            if x is b:
                return self.mul(combine(a.args[0], self.one), x)
            if b.op == "mul" and b.args[1] is x and b.args[0].constant:
                return self.mul(combine(a.args[0], b.args[0]), x)
        elif b.op == "mul" and b.args[1] is a and b.args[0].constant and not a.constant:
            return self.mul(combine(self.one, b.args[0]), a)
        return None

    def mul(self, a: Node, b: Node) -> Node:
        zero, one = self.zero, self.one
        if a is zero or b is zero:
            return zero
        if a is one:
            return b
        if b is one:
            return a
        if a.op == "neg":
            return self.neg(self.mul(a.args[0], b))
        if b.op == "neg":
            return self.neg(self.mul(a, b.args[0]))
        if a.op == "const":
            if b.op == "const":
                return self.const(a.payload * b.payload)
            if a.payload < 0:
                return self.neg(b if a.payload == -1 else self.mul(self.const(-a.payload), b))
            if b.op == "mul" and b.args[0].op == "const":
                return self.mul(self.const(a.payload * b.args[0].payload), b.args[1])
        elif b.op == "const":
            return self.mul(b, a)
        # Factors that are constant during a run come first and are collected: m*(l*x) -> (m*l)*x.
        if a.constant:
            if not b.constant:
                if b.op == "mul" and b.args[0].constant:
                    return self.mul(self.mul(a, b.args[0]), b.args[1])
            elif a.op != "const" and a.index > b.index:
                a, b = b, a
        elif b.constant:
            return self.mul(b, a)
        elif a.index > b.index:
            a, b = b, a
        if a.op == "div" and a.args[0] is one and a.args[1] is b:
            return one
        if b.op == "div" and b.args[0] is one and b.args[1] is a:
            return one
        return self._binary("mul", a, b)

    def div(self, a: Node, b: Node) -> Node:
        if b is self.zero:
            raise ZeroDivisionError("an expression divides by zero")
        if a is self.zero:
            return a
        if b is self.one:
            return a
        if a is b:
            return self.one
        if a.op == "neg":
            return self.neg(self.div(a.args[0], b))
        if b.op == "neg":
            return self.neg(self.div(a, b.args[0]))
        if b.op == "const":
            if a.op == "const":
                return self.const(quotient(a.payload, b.payload))
            return self.mul(self.const(quotient(1, b.payload)), a)
        if a.op == "mul":
            if a.args[0] is b:
                return a.args[1]
            if a.args[1] is b:
                return a.args[0]
        if b.constant and not a.constant:
            # prepare() computes one reciprocal, which replaces a division in every evaluation.
            return self.mul(self._binary("div", self.one, b), a)
        return self._binary("div", a, b)

    def neg(self, a: Node) -> Node:
        if a.op == "const":
            return self.const(-a.payload)
        if a.op == "neg":
            return a.args[0]
        if a.op == "sub":
            return self.sub(a.args[1], a.args[0])
        return self._intern("neg", (a,))

    def power(self, a: Node, exponent: int) -> Node:
        """``a ** exponent`` for an integer, expanded into multiplications by repeated squaring."""
        if exponent < 0:
            return self.div(self.one, self.power(a, -exponent))
        result, square = self.one, a
        while exponent:
            if exponent & 1:
                result = self.mul(result, square)
            exponent >>= 1
            if exponent:
                square = self.mul(square, square)
        return result

    # -- functions ------------------------------------------------------------------------------------------

    def apply(self, op: str, *args: Node) -> Node:
        """A named C99 function, comparison or logical operation of the arguments.

        ``reciprocal`` is ``1/x``, and 0 where x is 0: :mod:`kanegen.graph.derivatives` uses it for the slopes of roots.
        """
        if len(args) == 1 and (op in UNARY or op == "not"):
            return self._unary(op, args[0])
        if len(args) == 2 and (op in BINARY or op in COMPARISONS or op == "and" or op == "or"):
            a, b = args
            if a.op == "const" and b.op == "const":
                folded = fold_binary(op, a.payload, b.payload)
                if folded is not None:
                    return self.const(folded)
            if op == "pow":
                return self._pow(a, b)
            return (self._connective if op in LOGICAL else self._pair)(op, a, b)
        raise ValueError(f"unknown operation {op!r} of {len(args)} arguments")

    def _unary(self, op: str, a: Node) -> Node:
        if a.op == "const":
            folded = fold_unary(op, a.payload)
            if folded is not None:
                return self.const(folded)
        elif op in _EVEN or op in _ODD:
            if a.op == "neg":
                opposite = self._unary(op, a.args[0])
                return opposite if op in _EVEN else self.neg(opposite)
            if a.op == "sub" and a.args[0].index > a.args[1].index:
                # sin(x - y) and sin(y - x) are one sine.
                opposite = self._unary(op, self._binary("sub", a.args[1], a.args[0]))
                return opposite if op in _EVEN else self.neg(opposite)
        if op == "abs" and a.op in ("abs", "sqrt", "exp"):
            return a
        return self._intern(op, (a,))

    def _pow(self, a: Node, b: Node) -> Node:
        if b.op == "const":
            if isinstance(b.payload, int):
                return self.power(a, b.payload)
            if b.payload == 0.5:
                return self._unary("sqrt", a)
        return self._binary("pow", a, b)

    def _pair(self, op: str, a: Node, b: Node) -> Node:
        """min, max, atan2 and comparisons."""
        if a is b and op != "atan2":
            if op == "min" or op == "max":
                return a
            return self.one if op == "le" or op == "eq" else self.zero
        return self._binary(op, a, b)

    def _connective(self, op: str, a: Node, b: Node) -> Node:
        """``and`` and ``or``, whose value is always 0 or 1; an operand is true if it is not 0."""
        if a.op == "const":
            a, b = b, a
        if b.op == "const":
            if bool(b.payload) is (op == "or"):
                return self.const(int(op == "or"))
            if a.op in _CONDITIONS:
                return a
        if a is b and a.op in _CONDITIONS:
            return a
        if (b.op == "not" and b.args[0] is a) or (a.op == "not" and a.args[0] is b):
            return self.const(int(op == "or"))
        return self._binary(op, a, b)

    def select(self, condition: Node, true: Node, false: Node) -> Node:
        """``true`` where ``condition`` is not zero, else ``false``; both are evaluated."""
        if true is false:
            return true
        if condition.op == "const":
            return true if condition.payload else false
        return self._intern("select", (condition, true, false))

    def gather(self, index: Node, elements: Sequence[Node]) -> Node:
        """The element at an index, an integer from 0 on that is smaller than their number."""
        if index.op == "const":
            return elements[int(index.payload)]
        first = elements[0]
        return first if all(x is first for x in elements) else self._intern("gather", (index, *elements))

    def call(self, function: Function | Tabulated, *args: Node) -> Node:
        """A user's function or a table of the arguments (see :mod:`kanegen.graph.functions`)."""
        count, node = len(self.nodes), self._intern("call", args, function)
        if len(self.nodes) > count and any(function.domains):
            self.limited.append(node)
        return node

    def sum(self, terms: Iterable[Node]) -> Node:
        total = self.zero
        for term in terms:
            total = self.add(total, term)
        return total

    def dot(self, a: Iterable[Node], b: Iterable[Node]) -> Node:
        """The sum of the products of two sequences of one length."""
        return self.sum(self.mul(x, y) for x, y in zip(a, b, strict=True))


def _is_square_pair(a: Node, b: Node) -> bool:
    """Whether a and b are sin(x)*sin(x) and cos(x)*cos(x) in some order."""
    x, y = a.args[0], b.args[0]
    return (
        x is a.args[1]
        and y is b.args[1]
        and ((x.op == "sin" and y.op == "cos") or (x.op == "cos" and y.op == "sin"))
        and x.args[0] is y.args[0]
    )


# -- constant folding ----------------------------------------------------------------------------------------

TRIGONOMETRIC: Final = ("sin", "cos", "tan", "asin", "acos", "atan")
HYPERBOLIC: Final = ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh")
SAME_NAME: Final = (*TRIGONOMETRIC, *HYPERBOLIC, "atan2", "exp", "floor", "erf")
"""Functions that have one name in the graph, in C, in Python's math, in mpmath and in SymPy."""

_FUNCTIONS: Final[dict[str, Callable[[float], float]]] = {
    name: getattr(math, name) for name in (*TRIGONOMETRIC, *HYPERBOLIC, "sqrt", "cbrt", "exp", "log", "erf")
}

_EXACT: Final[dict[str, Callable[[Number], Number]]] = {
    "abs": lambda x: x if x >= 0 else -x,
    "floor": math.floor,
    "ceil": math.ceil,
    "reciprocal": lambda x: quotient(1, x) if x else 0,
}

CONDITIONS: Final[dict[str, Callable[[Any, Any], int]]] = {
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "and": lambda a, b: int(a != 0 and b != 0),
    "or": lambda a, b: int(a != 0 or b != 0),
}
"""Comparisons and logical operations: 1 if true, else 0."""

_BINARY: Final[dict[str, Callable[[Number, Number], Number]]] = {
    "atan2": lambda y, x: math.atan2(y, x),
    "pow": lambda a, b: math.pow(a, b),
    "min": min,
    "max": max,
    **CONDITIONS,
}


def exact(value: Number) -> Number:
    """The same number as an int where it is integer-valued, else as a Fraction, a tolerance or a plain float."""
    if isinstance(value, Tolerance):
        return value
    if isinstance(value, float):
        # Every float from 2**53 on is an integer, so being one does not mean that the number is exact.
        return int(value) if value.is_integer() and abs(value) < 2**53 else float(value)
    return int(value) if value.denominator == 1 else value


def quotient(a: Number, b: Number) -> Number:
    """a / b, exact where both are, else with one rounding."""
    return a / b if isinstance(a, float) or isinstance(b, float) else Fraction(a) / b


def fold_unary(op: str, value: Number) -> Number | None:
    """The value of ``op`` at a number, or None where it is undefined (left for run time to report)."""
    if op == "not":
        return int(not value)
    try:
        if op in _EXACT:
            return _EXACT[op](value)
        if op == "sqrt" and not isinstance(value, float):
            return _rational_root(value)
        return _FUNCTIONS[op](float(value))
    except (ValueError, OverflowError):
        return None


def fold_binary(op: str, a: Number, b: Number) -> Number | None:
    """The value of ``op`` at two numbers, or None where it is undefined (left for run time to report)."""
    try:
        return _BINARY[op](a, b)
    except (ValueError, OverflowError):
        return None


def _rational_root(value: int | Fraction) -> Number:
    """The square root, exact where it is rational."""
    if value > 0:
        above, below = math.isqrt(value.numerator), math.isqrt(value.denominator)
        if above * above == value.numerator and below * below == value.denominator:
            return Fraction(above, below)
    return math.sqrt(value)
