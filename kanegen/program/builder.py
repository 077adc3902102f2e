"""Builds functions: a fragment collects the steps of one function, and each function is built once, by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from types import MappingProxyType
from typing import Final, TypeAlias

from kanegen.codes import Status
from kanegen.derivation.algebra import PIVOT_THRESHOLD, SINGULAR_LIMIT
from kanegen.derivation.control.servo import ServoEquations, servo_equations
from kanegen.derivation.equations import Equations, Quantity
from kanegen.derivation.forces.reactions import MULTIPLIERS
from kanegen.derivation.inertia.elimination import ROW_THRESHOLD
from kanegen.derivation.sensitivities import Sensitivities
from kanegen.forms import FORMS
from kanegen.graph import Graph, Node, reachable, substitute
from kanegen.graph.domains import Requirement, requirements
from kanegen.graph.functions import Domain
from kanegen.model.description import SystemDescription
from kanegen.model.expressions import symbol_name
from kanegen.program.catalogue import Entry
from kanegen.program.kernels import KERNELS
from kanegen.program.passes.lower import ARGUMENTS
from kanegen.program.records import Block, Call, Check, Function, Guard, Invoke, Step, Store, Wording, roots_of

Source: TypeAlias = "Sequence[Node | None] | Function | str"
"""The source of a kernel argument: nodes (None is not stored), a function, or the name of an array."""

ARRAY_NAMES: Final[Mapping[str, str]] = MappingProxyType({"work": "scratch", "udot": "a"})
"""Names of arrays that differ from the name of the kernel argument."""


class Fragment:
    """The steps of one function while it is being built.

    ``steps`` and ``arrays``: the steps so far, and the lengths of the work arrays they use. ``conditions``: conditions
    under which the values are valid; :meth:`guard` and :meth:`check` turn them into a step. ``otherwise``: the function
    to evaluate if a condition of a guard is false. ``shape``: the shape of the output, set by :meth:`output`.
    """

    def __init__(self, graph: Graph, otherwise: str | None = None) -> None:
        self.graph = graph
        self.otherwise = otherwise
        self.steps: list[Step] = []
        self.arrays: dict[str, int] = {}
        self.conditions: list[Node] = []
        self.shape: tuple[int, ...] = ()
        self._tested: set[Node] = set()

    def array(self, name: str, length: int) -> list[Node]:
        """Allocate a work array and return its elements as nodes."""
        if name != "out":
            self.arrays[name] = max(length, self.arrays.get(name, 0))
        return [self.graph.input(name, i) for i in range(length)]

    def store(self, title: str, **arrays: Sequence[Node | None]) -> None:
        """Store values in work arrays, in one block; entries that are None are not stored."""
        block: list[Store[Node]] = []
        for name, values in arrays.items():
            self.array(name, len(values))
            block += stores(name, values)
        self.steps.append(Block(title, tuple(block)))

    def invoke(self, function: Function, array: str, length: int) -> list[Node]:
        """Evaluate another function at the same arguments; return the work array that receives its values."""
        self.steps.append(Invoke(function, array))
        return self.array(array, length)

    def call(
        self, kernel: str, *sizes: int, title: str = "", names: Mapping[str, str] = ARRAY_NAMES, **inputs: Source
    ) -> dict[str, list[Node]]:
        """Call a runtime kernel and allocate its arrays with the lengths in its record.

        ``kernel`` and ``sizes``: its name in `KERNELS` and its integer arguments. ``inputs``: its inputs by argument;
        functions are evaluated first, then nodes are stored in a block with this ``title``. ``names``: names of arrays
        that differ from the names of the arguments, in addition to `ARRAY_NAMES`. Returns the elements of each result,
        by argument.
        """
        record = KERNELS[kernel]
        lengths, name_of = record.lengths(*sizes), {**ARRAY_NAMES, **names}
        array_of = {argument: name_of.get(argument, argument) for argument in record.arrays}
        array_of |= {argument: source for argument, source in inputs.items() if isinstance(source, str)}
        for argument, source in inputs.items():
            if isinstance(source, Function):
                self.invoke(source, array_of[argument], lengths[argument])
        stored = {array_of[a]: x for a, x in inputs.items() if not isinstance(x, str | Function)}
        if stored:
            self.store(title, **stored)
        for argument, array in array_of.items():
            if not isinstance(inputs.get(argument), str):
                self.array(array, lengths[argument])
        self.steps.append(Call(kernel, (*sizes, *array_of.values())))
        return {argument: self.array(array_of[argument], lengths[argument]) for argument in record.results}

    def require(self, *conditions: Node) -> None:
        """Add conditions under which the values are valid."""
        self.conditions.extend(conditions)

    def guard(self) -> None:
        """Add a step: if a condition is false, evaluate ``otherwise`` instead, or return the status SINGULAR."""
        self.steps += [Guard(condition, self.otherwise) for condition in self._collected()]

    def check(self) -> None:
        """Add a step: if a condition is false, return the status SINGULAR at the end, without a branch."""
        self.steps += [Check(condition) for condition in self._collected()]

    def _collected(self) -> list[Node]:
        """Return the conjunction of the conditions as a list of one node, empty without conditions."""
        # Conditions that are constant during a run (masses are not negative) come first: prepare() tests them once.
        conditions = sorted((x for x in self.conditions if x not in self._tested), key=lambda node: not node.constant)
        self._tested.update(x for x in conditions if not _reads_work(x))
        self.conditions = []
        return [reduce(partial(self.graph.apply, "and"), conditions)] if conditions else []

    def output(self, nodes: Sequence[Node], shape: tuple[int, ...] | None = None, title: str = "") -> Fragment:
        """Store the output, a vector if ``shape`` is None; return the fragment."""
        self.shape = (len(nodes),) if shape is None else shape
        self.steps.append(Block(title, stores("out", nodes)))
        return self

    def rows(self, rows: Sequence[Sequence[Node]], title: str = "") -> Fragment:
        """Store the rows of a matrix as the output; return the fragment."""
        return self.output(flat(rows), (len(rows), len(rows[0])), title)


def contain_accelerations(nodes: Iterable[Node]) -> bool:
    """Return whether one of the nodes contains u'."""
    return any(node.op == "input" and node.payload[0] == "udot" for node in reachable(nodes))


def _reads_work(node: Node) -> bool:
    """Return whether a node depends on a work array, which steps change."""
    return any(x.op == "input" and x.payload[0] not in ARGUMENTS for x in reachable([node]))


def stores(array: str, values: Sequence[Node | None]) -> tuple[Store[Node], ...]:
    return tuple(Store(array, i, value) for i, value in enumerate(values) if value is not None)


def flat(rows: Sequence[Sequence[Node]]) -> list[Node]:
    """Return the entries of a matrix, row-major."""
    return [x for row in rows for x in row]


def lower_triangle(rows: Sequence[Sequence[Node]]) -> list[Node | None]:
    """Return a symmetric matrix, row-major, with None above the diagonal: kernels read the lower triangle only."""
    n = len(rows)
    return [rows[i][j] if j <= i else None for i in range(n) for j in range(n)]


Make: TypeAlias = Callable[[Fragment], Fragment]
"""Adds the steps to an empty fragment and returns it."""


class Functions:
    """The functions of a model's program by name, and the data that the code building them shares.

    ``form``: the form of the right-hand side. ``catalogue``: the entries that build the functions which other functions
    evaluate; functions that are not in ``public`` are internal. ``make_rates(stabilized)``, set by who assembles the
    program, adds the right-hand side if a function needs the accelerations and it is not there.
    ``requirements``: those of all functions on the arguments of tables, by condition.
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
        self.n_s = len(equations.system.s)
        self.any_rank = FORMS[form].any_rank
        self.stabilizable = bool(equations.gain_names)
        self.known: dict[str, Function] = {}
        self.requirements: dict[Node, Requirement] = {}
        self.make_rates: Callable[[bool], Function] | None = None

    @property
    def mass(self) -> Function:
        """The function of the matrix of the accelerations: ``Q``, or ``M`` if loads depend on accelerations."""
        return self.function(mass_function(self.equations.model))

    @property
    def servo(self) -> ServoEquations:
        """The servo-constraints with their controls; raises ModelError if the controls cannot enforce them."""
        return self.equations.once(servo_equations)

    @cached_property
    def sensitivities(self) -> Sensitivities:
        """The derivatives from which the Jacobians are computed."""
        return Sensitivities(self.equations)

    def fragment(self) -> Fragment:
        """Return a fragment without steps."""
        return Fragment(self.graph)

    def add(
        self, name: str, fragment: Fragment, summary: str, internal: bool = False, anywhere: bool = False
    ) -> Function:
        """Add a function; ``anywhere``: also where arguments of tables are beyond the ends."""
        steps = tuple(
            replace(step, reason=_reason(step.condition, self.equations)) if isinstance(step, Guard | Check) else step
            for step in fragment.steps
        )
        steps = steps if anywhere else tuple(self._within_tables(steps))
        self.known[name] = Function(name, fragment.shape, steps, dict(fragment.arrays), summary, internal)
        return self.known[name]

    def _within_tables(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield the steps, and before each of them what it requires of the arguments of tables."""
        tested: set[Node] = set()
        for step in steps:
            for need in requirements(roots_of(step)):
                if need.condition not in tested:
                    if not _reads_work(need.condition):
                        tested.add(need.condition)
                        self.requirements[need.condition] = need
                    yield Guard(need.condition, None, _inside(need.domain), Status.OUTSIDE_TABLE)
            yield step

    def function(self, name: str) -> Function:
        """Return a function of the catalogue for another function to evaluate; build it on the first call."""
        if name not in self.known:
            spec = self.catalogue[name]
            if spec.make is None:
                raise KeyError(f"the catalogue entry {name} has no maker")
            self.add(name, spec.make(self), spec.summary, internal=name not in self.public)
        return self.known[name]

    def internal(self, name: str, summary: str, make: Callable[[], Fragment]) -> Function:
        """Return an internal function; build it on the first call."""
        return self.known[name] if name in self.known else self.add(name, make(), summary, internal=True)

    def guarded(self, name: str, summary: str, fast: Make, general: Make | None) -> Fragment:
        """Return the fragment of ``name`` built by ``fast``.

        If it contains guards, ``general`` builds the fallback ``<name>_general`` with this summary; None: no fallback.
        """
        if general is None:
            return fast(self.fragment())
        # The fallback is built first: it evaluates Q, P and J, and the fast function then shares their nodes.
        fallback, fragment = general(self.fragment()), fast(Fragment(self.graph, f"{name}_general"))
        if any(isinstance(step, Guard) for step in fragment.steps):
            self.internal(f"{name}_general", summary, lambda: fallback)
        return fragment

    def loaded(self, array: str, quantity: Quantity) -> list[list[Node]]:
        """Return the rows of a quantity whose entries are read from a work array unless they are constant."""
        nodes = [node if node.constant else self.graph.input(array, k) for k, node in enumerate(quantity.nodes)]
        columns = quantity.shape[1] if len(quantity.shape) == 2 else 1
        return [nodes[i : i + columns] for i in range(0, len(nodes), columns)] if columns else []

    def accelerations(self, s: Fragment) -> list[Node]:
        """Evaluate the right-hand side in the array ``a``, (n_q + n_u + n_s,), stabilized if possible; return u'."""
        function = self.known.get("rhs_stabilized" if self.stabilizable else "rhs")
        if function is None and self.make_rates is not None:
            function = self.make_rates(self.stabilizable)
        if function is None:
            raise KeyError("the right-hand side was not added to the program")
        return s.invoke(function, "a", self.n_q + self.n_u + self.n_s)[self.n_q : self.n_q + self.n_u]

    def multipliers(self, s: Fragment, held: Mapping[Node, Node]) -> None:
        """Evaluate the multipliers of the constraints in the array `MULTIPLIERS`, at the accelerations ``held``."""
        if self.n_c and self.any_rank:
            s.invoke(self.function("multipliers"), MULTIPLIERS, self.n_c)
        elif self.n_c:
            force = substitute(self.sensitivities.unbalanced_force, held)
            names, J = {"lambda": MULTIPLIERS}, self.equations.J.nodes
            s.call("multipliers", self.n_u, self.n_c, title="constraint forces and J", names=names, force=force, J=J)

    def accelerated(self, s: Fragment, nodes: Sequence[Node], always: bool = False) -> Sequence[Node]:
        """Return nodes with the solved accelerations in place of u'.

        Unless ``always`` is set, the accelerations are evaluated only if one of the nodes contains u'.
        """
        if not always and not contain_accelerations(nodes):
            return nodes
        return substitute(nodes, dict(zip(self.equations.system.udot, self.accelerations(s), strict=True)))

    def pivots(self, limit: float) -> list[Node]:
        """Return the conditions that the pivots of the model's own partition exceed ``limit`` times their row scale."""
        conditions = (pivot.holds(limit) for pivot in self.equations.partition.pivots)
        return [condition for condition in conditions if condition is not None]

    def divisors(self, limit: float) -> list[Node]:
        """Return the same conditions for `Equations.solved_partition`, which has no other solution behind it."""
        conditions = (divisor.holds(limit) for divisor in self.equations.solved_partition.pivots)
        return [condition for condition in conditions if condition is not None]


def mass_function(model: SystemDescription) -> str:
    """Return the name of the function of the matrix of the accelerations, ``Equations.M``."""
    return "M" if model.is_accelerated else "Q"


Maker: TypeAlias = Callable[[Functions], Fragment]
Members: TypeAlias = Callable[[Functions], Mapping[str, Fragment]]
Reason: TypeAlias = Callable[[Functions], "str | None"]


@dataclass(frozen=True)
class FunctionSpec(Entry):
    """An entry of the catalogue with the code that builds its function.

    ``make``: builds the fragment; None for functions that every program contains, and for entries with ``members``.
    ``members``: builds the fragments of a family, functions ``<prefix><name>`` by the names that the user chose.
    ``requires``: returns the reason why this model does not have the function, in the user's terms, or None.
    """

    make: Maker | None = None
    members: Members | None = None
    requires: Reason = lambda f: None


def _inside(domain: Domain) -> Wording:
    """Describe a condition on the argument of a table in words."""
    return (f"the argument of {domain.label} is between {domain.lowest!r} and {domain.highest!r}",)


def _reason(condition: Node, equations: Equations) -> Wording:
    """Describe a condition in words: which pivots must not be negligible, each kind named once."""
    first, *others = dict.fromkeys(_reasons(condition, equations))
    return first + tuple(part for reason in others for part in ("; ", *reason))


def _reasons(condition: Node, equations: Equations) -> list[Wording]:
    """Every condition of a program is a conjunction of comparisons ``fraction * scale < pivot``."""
    if condition.op == "and":
        return [reason for operand in condition.args for reason in _reasons(operand, equations)]
    fraction = _fraction(condition)
    if fraction == PIVOT_THRESHOLD:
        return [("the pivots of the mass matrix exceed ", fraction, " of its diagonal: it is positive definite")]
    if fraction is not None and fraction == ROW_THRESHOLD:
        return [("the pivots of the constraints exceed ", fraction, " of their rows, both squared")]
    if fraction is not None and equations.has_partition:
        part = equations.partition
        speeds = ", ".join(symbol_name(equations.model.speeds[speed]) for speed in part.dependent)
        of_speeds = f"of the constraints for the dependent speeds {speeds} exceed "
        if fraction in (SINGULAR_LIMIT, SINGULAR_LIMIT * SINGULAR_LIMIT):
            return [(f"the divisors {of_speeds}", fraction, " of their terms")]
        if any(pivot.holds(fraction) is condition for pivot in part.pivots):
            return [(f"the pivots {of_speeds}", fraction, " of their rows")]
    return [("the pivots of the elimination are not negligible",)]


def _fraction(test: Node) -> float | None:
    """Return ``fraction`` of ``fraction * scale < pivot``; None for any other comparison."""
    if test.op != "lt":
        return None
    left = test.args[0]
    factors = left.args if left.op == "mul" else (left,)
    return next((factor.payload for factor in factors if factor.op == "const"), None)
