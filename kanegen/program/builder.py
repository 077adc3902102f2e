"""The builder of functions: fragments collect steps, arrays and conditions; each function is made once, by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from types import MappingProxyType
from typing import Final, TypeAlias

from kanegen.derivation.algebra import PIVOT_THRESHOLD
from kanegen.derivation.control.servo import ServoEquations, servo_equations
from kanegen.derivation.equations import Equations, Quantity
from kanegen.derivation.sensitivities import Sensitivities
from kanegen.forms import FORMS
from kanegen.graph import Graph, Node
from kanegen.model.expressions import symbol_name
from kanegen.program.kernels import KERNELS
from kanegen.program.records import Block, Call, Check, Function, Guard, Invoke, Step, Store

Source: TypeAlias = "Sequence[Node | None] | Function | str"
"""Where an argument of a kernel comes from: nodes (None: not stored), a function, or the name of an array."""

ARRAY_NAMES: Final[Mapping[str, str]] = MappingProxyType({"work": "scratch", "udot": "a"})
"""Names of arrays where they differ from the argument of the kernel."""


class Fragment:
    """The steps of one function, while it is made.

    ``steps`` and ``arrays``: the steps so far, and the work arrays they need with their lengths. ``conditions``: what
    must hold for the values to be right; :meth:`guard` and :meth:`check` turn them into a step. ``otherwise``: the
    function that takes over where they do not hold. ``shape``: that of the output, known after :meth:`output`.
    """

    def __init__(self, graph: Graph, otherwise: str | None = None) -> None:
        self.graph = graph
        self.otherwise = otherwise
        self.steps: list[Step] = []
        self.arrays: dict[str, int] = {}
        self.conditions: list[Node] = []
        self.shape: tuple[int, ...] = ()

    def array(self, name: str, length: int) -> list[Node]:
        """The elements of a work array, which is allocated, as nodes."""
        if name != "out":
            self.arrays[name] = max(length, self.arrays.get(name, 0))
        return [self.graph.input(name, i) for i in range(length)]

    def store(self, title: str, **arrays: Sequence[Node | None]) -> None:
        """Store values in work arrays, in one block; None is not stored."""
        block: list[Store[Node]] = []
        for name, values in arrays.items():
            self.array(name, len(values))
            block += stores(name, values)
        self.steps.append(Block(title, tuple(block)))

    def invoke(self, function: Function, array: str, length: int) -> list[Node]:
        """The values of another function at the same arguments, in a work array."""
        self.steps.append(Invoke(function, array))
        return self.array(array, length)

    def call(
        self, kernel: str, *sizes: int, title: str = "", names: Mapping[str, str] = ARRAY_NAMES, **inputs: Source
    ) -> dict[str, list[Node]]:
        """Call a runtime kernel; all its arrays are allocated with the lengths of its record.

        ``kernel`` and ``sizes``: its name in `KERNELS` and its integer arguments. ``inputs``: its inputs by argument;
        functions are evaluated first, then nodes are stored in a block with this ``title``. ``names``: names of arrays
        where they differ from the arguments; ``work`` is called ``scratch`` and ``udot`` ``a`` anyway. Returns the
        elements of each result, by argument.
        """
        record = KERNELS[kernel]
        lengths, name_of = record.lengths(*sizes), {**ARRAY_NAMES, **names}
        array_of = {argument: name_of.get(argument, argument) for argument in record.arrays}
        array_of |= {argument: source for argument, source in inputs.items() if isinstance(source, str)}
        for argument, source in inputs.items():
            if isinstance(source, Function):
                self.invoke(source, array_of[argument], lengths[argument])
        given = {array_of[a]: x for a, x in inputs.items() if not isinstance(x, str | Function)}
        if given:
            self.store(title, **given)
        for argument, array in array_of.items():
            if not isinstance(inputs.get(argument), str):
                self.array(array, lengths[argument])
        self.steps.append(Call(kernel, (*sizes, *array_of.values())))
        return {argument: self.array(array_of[argument], lengths[argument]) for argument in record.results}

    def require(self, *conditions: Node) -> None:
        """Collect conditions under which the values are right."""
        self.conditions.extend(conditions)

    def guard(self) -> None:
        """Unless the conditions collected so far hold, ``otherwise`` takes over, or the function ends as singular."""
        self.steps += [Guard(condition, self.otherwise) for condition in self._collected()]

    def check(self) -> None:
        """Unless the conditions collected so far hold, the function ends as singular, without a branch."""
        self.steps += [Check(condition) for condition in self._collected()]

    def _collected(self) -> list[Node]:
        """The conditions as one, if there are any."""
        # What is constant during a run (masses that are not negative) comes first: prepare() decides it once.
        conditions = sorted(self.conditions, key=lambda node: not node.constant)
        self.conditions = []
        return [reduce(partial(self.graph.apply, "and"), conditions)] if conditions else []

    def output(self, nodes: Sequence[Node], shape: tuple[int, ...] | None = None, title: str = "") -> Fragment:
        """Store the output (a vector unless ``shape`` says otherwise); returns the fragment."""
        self.shape = (len(nodes),) if shape is None else shape
        self.steps.append(Block(title, stores("out", nodes)))
        return self

    def rows(self, rows: Sequence[Sequence[Node]], title: str = "") -> Fragment:
        """Store the output, a matrix given by its rows; returns the fragment."""
        return self.output(flat(rows), (len(rows), len(rows[0])), title)


def stores(array: str, values: Sequence[Node | None]) -> tuple[Store[Node], ...]:
    return tuple(Store(array, i, value) for i, value in enumerate(values) if value is not None)


def flat(rows: Sequence[Sequence[Node]]) -> list[Node]:
    """The entries of a matrix, row-major."""
    return [x for row in rows for x in row]


def lower_triangle(rows: Sequence[Sequence[Node]]) -> list[Node | None]:
    """A symmetric matrix given by its lower triangle, row-major; the entries above the diagonal are not stored."""
    n = len(rows)
    return [rows[i][j] if j <= i else None for i in range(n) for j in range(n)]


Make: TypeAlias = Callable[[Fragment], Fragment]
"""Adds the steps to an empty fragment and returns it."""


class Functions:
    """Functions of a model's program by name, with what their makers share.

    ``form`` is that of the right-hand side. ``catalogue`` makes the functions that others evaluate; those that are not
    ``public`` are internal.
    """

    def __init__(
        self, equations: Equations, form: str, catalogue: Mapping[str, FunctionSpec], public: Collection[str] = ()
    ) -> None:
        self.equations = equations
        self.form = form
        self.catalogue = catalogue
        self.public = frozenset(public)
        self.graph = equations.graph
        self.n_q = len(equations.system.q)
        self.n_u = len(equations.system.u)
        self.n_c = len(equations.constraints.rows)
        self.any_rank = FORMS[form].any_rank
        self.stabilizable = bool(equations.gain_names)
        self.known: dict[str, Function] = {}

    @property
    def servo(self) -> ServoEquations:
        """The servo-constraints with their controls; ModelError where the controls cannot enforce them."""
        return self.equations.once(servo_equations)

    @cached_property
    def sensitivities(self) -> Sensitivities:
        """The derivatives behind the Jacobians."""
        return Sensitivities(self.equations)

    def fragment(self) -> Fragment:
        """A function without steps yet."""
        return Fragment(self.graph)

    def add(self, name: str, fragment: Fragment, summary: str, internal: bool = False) -> Function:
        steps = tuple(
            replace(step, reason=_reason(step.condition, self.equations)) if isinstance(step, Guard | Check) else step
            for step in fragment.steps
        )
        self.known[name] = Function(name, fragment.shape, steps, dict(fragment.arrays), summary, internal)
        return self.known[name]

    def function(self, name: str) -> Function:
        """A function of the catalogue, which others may evaluate."""
        if name not in self.known:
            spec = self.catalogue[name]
            if spec.make is None:
                raise KeyError(f"{name} is not made by itself")
            self.add(name, spec.make(self), spec.summary, internal=name not in self.public)
        return self.known[name]

    def internal(self, name: str, summary: str, make: Callable[[], Fragment]) -> Function:
        """A function that only others evaluate, made when it is first asked for."""
        return self.known[name] if name in self.known else self.add(name, make(), summary, internal=True)

    def guarded(self, name: str, summary: str, fast: Make, general: Make | None) -> Fragment:
        """The fragment of ``name`` from ``fast``; None for ``general``: nothing takes over where its guards fail.

        Else ``general`` makes that function, ``<name>_general``, with this summary, where there is such a guard.
        """
        if general is None:
            return fast(self.fragment())
        # First the general one: it evaluates Q, P and J, whose nodes the fast one then shares.
        fallback, fragment = general(self.fragment()), fast(Fragment(self.graph, f"{name}_general"))
        if any(isinstance(step, Guard) for step in fragment.steps):
            self.internal(f"{name}_general", summary, lambda: fallback)
        return fragment

    def loaded(self, array: str, quantity: Quantity) -> list[list[Node]]:
        """A matrix or column from a work array; what does not change during a run is not read from there."""
        nodes = [node if node.constant else self.graph.input(array, k) for k, node in enumerate(quantity.nodes)]
        columns = quantity.shape[1] if len(quantity.shape) == 2 else 1
        return [nodes[i : i + columns] for i in range(0, len(nodes), columns)] if columns else []

    def accelerations(self, s: Fragment) -> list[Node]:
        """u', from the right-hand side in the array ``a`` (n_q + n_u), with the gains given."""
        function = self.known["rhs_stabilized" if self.stabilizable else "rhs"]
        return s.invoke(function, "a", self.n_q + self.n_u)[self.n_q :]

    def pivots(self, limit: float) -> list[Node]:
        """That the pivots of the model's own partition exceed ``limit`` of their rows."""
        held = (pivot.holds(limit) for pivot in self.equations.partition.pivots)
        return [condition for condition in held if condition is not None]


Maker: TypeAlias = Callable[[Functions], Fragment]
Members: TypeAlias = Callable[[Functions], Mapping[str, Fragment]]
Reason: TypeAlias = Callable[[Functions], "str | None"]


@dataclass(frozen=True)
class FunctionSpec:
    """One entry of the catalogue: a function that the user may ask for.

    ``name``, ``summary``: as the user names it, and one line for the reader of the generated code.
    ``make``: its fragment, from the functions of the program; None for functions that are made in any case, and for
    entries with ``members``.
    ``members``: fragments of the functions ``<prefix><name>`` that the entry stands for, by the names that the user
    chose; ``summary`` contains ``{}`` for the name.
    ``requires``: None, or the reason why this model has no such function, in the user's terms; where it ``derives``
    equations to find out, it is asked only when the user names the function.
    ``group``: a name for several functions in ``functions=``.
    ``default``: it is compiled unless the user names others; ``companions`` are compiled with it.
    ``forms``: the forms of the equations that have it, with which it is always compiled; empty: all forms.
    ``shape``: names of the sizes of the result; () for a number.
    ``attribute``: a solver has an attribute of this name, a function of (t, q, u, r=None, out=None).
    ``on_request``: it is evaluated when the user asks for it, not within a method of the solver such as integrate.
    ``every_run``: it may be evaluated in every integration.
    """

    name: str
    summary: str
    make: Maker | None = None
    members: Members | None = None
    requires: Reason = lambda f: None
    prefix: str = ""
    group: str = ""
    default: bool = False
    forms: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()
    shape: tuple[str, ...] = ()
    attribute: bool = False
    on_request: bool = False
    every_run: bool = False
    derives: bool = False


def _reason(condition: Node, equations: Equations) -> str:
    """What a condition asks for: pivots that are not negligible, each kind of them named once.

    Every condition of a program is a conjunction of comparisons ``fraction * scale < pivot``.
    """
    if condition.op == "and":
        reasons = [part for operand in condition.args for part in _reason(operand, equations).split("; ")]
        return "; ".join(dict.fromkeys(reasons))
    fraction = _fraction(condition)
    if fraction == PIVOT_THRESHOLD:
        return f"the pivots of the mass matrix exceed {fraction:g} of its diagonal: it is positive definite"
    if fraction is not None and equations.has_partition:
        part = equations.partition
        if any(pivot.holds(fraction) is condition for pivot in part.pivots):
            speeds = ", ".join(symbol_name(equations.model.speeds[speed]) for speed in part.dependent)
            return f"the pivots of the constraints for the dependent speeds {speeds} exceed {fraction:g} of their rows"
    return "the pivots of the elimination are not negligible"


def _fraction(test: Node) -> float | None:
    """The constant factor on the left of ``fraction * scale < pivot``."""
    if test.op != "lt":
        return None
    left = test.args[0]
    factors = left.args if left.op == "mul" else (left,)
    return next((float(factor.payload) for factor in factors if factor.op == "const"), None)
