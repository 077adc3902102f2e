"""Hoisting, lowering, scheduling and splitting, without a compiler."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import pendulum, random_inputs, random_program, solver_program, stores
from simulated import Simulation
from systems import model_of
from tolerances import RANDOM_PROGRAM

from kanegen.forms import FORMS
from kanegen.graph.interpret import evaluate
from kanegen.graph.nodes import Graph, Node
from kanegen.pipeline import sources_of
from kanegen.program.interpret import interpret
from kanegen.program.kernels import KERNELS
from kanegen.program.passes import interleave as interleaving
from kanegen.program.passes import schedule as splitting
from kanegen.program.passes.code import Code, Gather, Let, needed
from kanegen.program.passes.count import operation_count
from kanegen.program.passes.lower import hoist, lower
from kanegen.program.passes.schedule import MAX_DEPTH, MAX_OPERATIONS, schedule
from kanegen.program.records import Block, Call, Function, Guard, Program, Store, Symbols
from kanegen.resources import template_folder


def program_of(values: list[Node], arrays: dict[str, int] | None = None) -> Program:
    symbols = Symbols(("q0", "q1", "q2"), ("u0", "u1"), (), ("p0", "p1"), ())
    function = Function("f", (len(values),), (Block("all", stores("out", values)),), arrays or {}, "a function")
    return hoist(Program("one", values[0].graph, symbols, (function,)))


def test_largest_constant_subexpressions_are_hoisted_once() -> None:
    g = Graph()
    q, p0, p1 = g.input("q", 0), g.input("p", 0), g.input("p", 1)
    inner = p0 + p1
    outer = g.apply("sqrt", inner)
    program = program_of([outer * q, outer + q, q - p0, p1])
    assert program.constants == (outer,)
    program = program_of([outer * q, inner * g.apply("sin", q)])
    assert program.constants == (inner, outer)


def test_a_constant_output_is_hoisted() -> None:
    g = Graph()
    total = g.input("p", 0) + g.input("g", 0)
    assert program_of([total]).constants == (total,)


def test_nothing_is_hoisted_without_operations() -> None:
    g = Graph()
    assert program_of([g.input("p", 0), g.const(2.5), g.input("q", 0) * 3]).constants == ()


def test_shared_denominators_are_inverted_once() -> None:
    g = Graph()
    a, b, d = g.input("q", 0), g.input("q", 1), g.input("u", 0)
    roots = [a / d, b / d, g.one / d]
    lowered = lower(roots, {})
    divisions = [value for value in lowered.order if value.op == "div"]
    assert [value.op for value in map(lowered.__getitem__, roots)] == ["mul", "mul", "div"]
    assert len(divisions) == 1
    assert lower([a / d, b / (d + 1)], {}).order[-1].op == "div"


@pytest.mark.parametrize(("sines", "cosines", "gathered"), [(1, 0, 0), (1, 1, 1), (2, 0, 2), (3, 3, 3)])
def test_sines_and_cosines_are_gathered_from_two_on(sines: int, cosines: int, gathered: int) -> None:
    g = Graph()
    q = [g.input("q", k) for k in range(3)]
    angles = [q[0] + q[1], q[0] * q[2], q[2]]
    values = [g.apply("sin", a) for a in angles[:sines]] + [g.apply("cos", a) for a in angles[:cosines]]
    code = schedule(program_of(values).functions[0], ())
    found = [s for s in code.statements if isinstance(s, Gather)]
    assert sum(len(s.angles) for s in found) == gathered


def test_angles_from_work_arrays_or_functions_are_not_gathered() -> None:
    g = Graph()
    x = [g.input("w", 0), g.apply("sin", g.input("q", 0)), g.apply("sqrt", g.input("q", 1))]
    assert lower([g.apply("cos", a) for a in x], {}).angles == ()


def test_a_block_that_overwrites_what_it_reads_stores_last() -> None:
    g = Graph()
    w = [g.input("w", k) for k in range(2)]
    function = Function(
        "f", (1,), (Block("swap", stores("w", [w[1], w[0] + w[1]])), Block("", stores("out", [w[0]]))), {"w": 2}, ""
    )  # fmt: skip
    statements = schedule(function, ()).statements
    kinds = [type(s) for s in statements]
    assert kinds == [Let, Let, Store, Store, Store]
    last = statements[-1]
    assert isinstance(last, Store)
    assert last.value.op == "input"


def test_values_are_read_again_after_a_kernel_changed_their_array() -> None:
    g = Graph()
    total = g.input("w", 0) + g.input("w", 1)
    out = Block("out", stores("out", [total * total]))
    steps = (Block("w", stores("w", [g.input("q", 0), g.input("q", 1)])), out)
    function = Function("f", (1,), (*steps, Call("lu_solve", (1, "w", "w")), out), {"w": 2}, "")
    lets = [s for s in schedule(function, ()).statements if isinstance(s, Let)]
    assert [let.number for let in lets] == [0, 1, 2, 3]
    assert [let.value for let in lets[:2]] == [let.value for let in lets[2:]]


def test_expressions_stay_short() -> None:
    g = Graph()
    total = g.input("q", 0)
    for k in range(60):
        total = total * g.input("u", k) + g.input("q", k + 1)
    code = schedule(program_of([total]).functions[0], ())
    named = {s.value for s in code.statements if isinstance(s, Let)}

    def extent(value: object, top: bool = True) -> tuple[int, int]:
        if not value.args or (value in named and not top):
            return 0, 0
        inner = [extent(a, False) for a in value.args]
        return 1 + sum(n for n, _ in inner), 1 + max(d for _, d in inner)

    extents = [extent(s.value) for s in code.statements if isinstance(s, Let | Store)]
    assert len(extents) > 1
    assert max(n for n, _ in extents) <= MAX_OPERATIONS
    assert max(d for _, d in extents) <= MAX_DEPTH


def test_dead_code_is_not_emitted() -> None:
    g = Graph()
    q = g.input("q", 0)
    g.apply("exp", q)
    code = schedule(program_of([q * q]).functions[0], ())
    assert [type(s) for s in code.statements] == [Store]


def test_operations_are_counted_after_hoisting() -> None:
    program = pendulum()
    # rhs: product, sine, sign; energy: u*u, its product, cosine, difference, product, sum.
    assert operation_count(program.function("rhs"), program.constants) == 3
    assert operation_count(program.function("rhs")) == 4
    assert operation_count(program.function("energy"), program.constants) < operation_count(program.function("energy"))


@pytest.mark.parametrize("name", KERNELS)
def test_the_record_of_a_kernel_has_the_arguments_of_the_c_function(name: str) -> None:
    kernel = KERNELS[name]
    header = (template_folder() / "runtime" / kernel.header).read_text(encoding="utf-8")
    declared = re.search(rf"\bint kg_{name}\(([^)]*)\)", header)
    assert declared is not None
    arguments = declared[1].split(",")
    assert ["*" in argument for argument in arguments] == [False] * len(kernel.sizes) + [True] * len(kernel.arrays)
    assert len(inspect.signature(kernel.twin).parameters) == len(arguments)
    assert set(kernel.results) <= set(kernel.arrays)
    sizes = (5, 3, 2)[: len(kernel.sizes)]
    assert kernel.operations(*sizes) > 0
    assert kernel.lengths(*sizes).keys() == kernel.arrays.keys()
    assert ("work" in kernel.arrays) == (kernel.work(*sizes) > 0)


def test_each_function_is_lowered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting, cost estimates, reads, undefined constants, scheduling and emission share one lowered form."""
    lowerings = []

    def counted(*arguments: Any) -> Any:
        lowerings.append(arguments)
        return lower(*arguments)

    monkeypatch.setattr("kanegen.program.passes.lower.lower", counted)
    functions = sources_of(model_of("rolling_disk")).text("rolling_disk.c").count("static int evaluate_")
    forms = sum(form.candidate for form in FORMS.values())
    assert 0 < len(lowerings) <= functions + forms + 1  # a right-hand side in each form, and prepare


def test_operations_without_hoisting_are_those_of_the_whole_expressions() -> None:
    for seed in range(20):
        program = random_program(seed, 4)
        for function in program.functions:
            order = lower(function.roots, {}).order
            kernels = sum(KERNELS[step.kernel].operations(*step.arguments[:1]) for step in calls(function))
            guards = sum(isinstance(step, Guard) for step in function.steps)
            own = sum(value.op not in ("const", "input") for value in order)
            assert operation_count(function) == own + kernels + guards


def calls(function: Function) -> list[Call]:
    return [step for step in function.steps if isinstance(step, Call)]


CHANGES: dict[str, Callable[[Code], Code]] = {
    "whole": lambda code: code,
    "parts": splitting.split,
    "interleaved": interleaving.interleaved,
    "both": lambda code: splitting.split(interleaving.interleaved(code)),
}


def simulate(
    program: Program, name: str, inputs: dict[str, list[float]], change: Callable[[Code], Code]
) -> list[float]:
    constants = evaluate(program.constants, inputs)
    while True:
        function = program.function(name)
        code = schedule(function, program.constants)
        simulation = Simulation(function, constants, inputs)
        left = simulation.run(change(code))
        if left is None:
            return simulation.arrays["out"]
        name = left


@contextmanager
def changed_always() -> Iterator[None]:
    """Short functions are divided and interleaved, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splitting, "LONGEST", 10)
        patch.setattr(splitting, "PART", 7)
        patch.setattr(interleaving, "FEWEST", 1)
        patch.setattr(interleaving, "WORTHWHILE", inf)
        yield


@pytest.mark.parametrize("change", CHANGES)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_lowered_code_computes_what_the_program_says(seed: int, change: str) -> None:
    program, inputs = random_program(seed, 3), random_inputs(seed + 1)
    with changed_always():
        for k in range(3):
            status, expected = interpret(program, f"f{k}", inputs)
            assert status == 0
            assert simulate(program, f"f{k}", inputs, CHANGES[change]) == pytest.approx(
                expected, rel=RANDOM_PROGRAM, abs=RANDOM_PROGRAM
            )


def test_what_follows_gathered_sines_is_divided() -> None:
    g = Graph()
    angles = [g.input("q", k) for k in range(3)]
    roots = [g.apply("sin", a) * g.input("u", k) + g.apply("cos", a) for a in angles for k in range(20)]
    code = schedule(program_of(roots).functions[0], ())
    with changed_always():
        divided = splitting.split(code)
    assert [type(s) for s in divided.statements[:1]] == [Gather]
    assert len(divided.parts) == len(divided.statements) - 1 > 1


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_interleaved_code_names_what_it_needs_first(seed: int) -> None:
    program = random_program(seed, 3)
    for function in program.functions:
        code = schedule(function, program.constants)
        with changed_always():
            other = interleaving.interleaved(code)
        assert Counter(map(_without_number, other.statements)) == Counter(map(_without_number, code.statements))
        later = {s.value for s in other.statements if isinstance(s, Let)}
        for statement in other.statements:
            waiting = [x for value in needed(statement) for x in value.args]
            waiting += () if isinstance(statement, Let) else needed(statement)
            while waiting:
                value = waiting.pop()
                assert value not in later
                waiting += value.args
            later -= {statement.value} if isinstance(statement, Let) else set()
        numbers = [s.number for s in other.statements if isinstance(s, Let)]
        assert numbers == list(range(len(numbers)))


def _without_number(statement: Any) -> Any:
    return statement.value if isinstance(statement, Let) else statement


@pytest.mark.parametrize(("count", "length", "is_changed"), [(2, 1500, True), (1, 3000, False), (2, 300, False)])
def test_recursions_that_wait_are_interleaved(count: int, length: int, is_changed: bool) -> None:
    """Two long recursions take turns; a single one, or short ones, stay as they are."""
    g = Graph()
    ends = [g.input("u", k) for k in range(count)]
    for number in range(length):
        ends = [g.input("q", number % 3) * (u + g.const(number)) for u in ends]
    program = program_of(ends)
    code = schedule(program.functions[0], program.constants)
    other = interleaving.interleaved(code)
    first_store = [isinstance(s, Store) for s in other.statements].index(True)
    if is_changed:
        assert first_store >= len(other.statements) - 4
    else:
        assert other == code
        assert first_store == len(other.statements) // count - 1


def test_guards_name_what_they_need_before_they_leave() -> None:
    program = solver_program()
    code = schedule(program.function("rhs"), program.constants)
    (guard,) = (s for s in code.statements if isinstance(s, Guard))
    assert guard.otherwise == "rhs fallback"
    before = code.statements[: code.statements.index(guard)]
    assert any(isinstance(s, Gather) for s in before)
