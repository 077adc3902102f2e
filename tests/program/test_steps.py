"""Steps that call and judge: Invoke, Check, Guard and the generalized kernels, compiled against the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from compiled import CompiledModel
from tolerances import EVALUATION

from kanegen.codegen.kernel import emit_sources
from kanegen.graph import Graph, mpmath_context
from kanegen.program.interpret import interpret
from kanegen.program.kernels import KERNELS
from kanegen.program.passes.count import operation_count
from kanegen.program.passes.lower import hoist
from kanegen.program.records import Block, Call, Check, Function, Guard, Invoke, Program, Store, Symbols

OK, REPARTITIONED, RANK_DEFICIENT, SINGULAR = 0, 1, 3, -1
N_U, N_C = 3, 2


def stored(graph: Graph, array: str, source: str, length: int) -> tuple[Store, ...]:
    """``array[i] = source[i]``: inputs handed to a kernel."""
    return tuple(Store(array, i, graph.input(source, i)) for i in range(length))


def program() -> Program:
    """q: three numbers; u: Q (9), P (3), J (6), b (2), Q' (9) and u (3) in a row, for the kernels."""
    graph = Graph()
    a, b, c = (graph.input("q", i) for i in range(3))
    product = Function("product", (2,), (Block("", (Store("out", 0, a * b), Store("out", 1, b * c))),), {}, "")
    invoking = Function(
        "invoking",
        (),
        (Invoke(product, "x"), Block("", (Store("out", 0, graph.input("x", 0) + graph.input("x", 1)),))),
        {"x": 2},
        "",
    )
    checked = Function(
        "checked", (1,), (Check(graph.apply("lt", graph.zero, a)), Block("", (Store("out", 0, b / a),))), {}, ""
    )
    guarded = Function(
        "guarded", (1,), (Guard(graph.apply("lt", graph.zero, a), None), Block("", (Store("out", 0, b / a),))), {}, ""
    )
    failing = Function("failing", (1,), (Invoke(guarded, "x"), Block("", (Store("out", 0, c),))), {"x": 1}, "")
    functions = (product, invoking, checked, guarded, failing, *kernel_functions(graph))
    symbols = Symbols(tuple("abc"), tuple(f"u{i}" for i in range(32)), (), (), ())
    return hoist(Program("steps", graph, symbols, functions))


def kernel_functions(graph: Graph) -> tuple[Function, ...]:
    """``udwadia_kalaba`` (u', multipliers, rank; many right sides; limit) and ``canonical`` on the numbers in u.

    The rates G and h are the first numbers of Q'; the terms of the rows have the size 1.
    """
    offsets = {"Q": 0, "P": 9, "J": 12, "b": 18, "Qdot": 20, "v": 29}
    lengths = {"Q": 9, "P": 3, "J": 6, "b": 2, "Qdot": 9, "v": 3}

    def block(*names: str) -> Block:
        return Block(
            "",
            tuple(Store(n, i, graph.input("u", offsets[n] + i)) for n in names for i in range(lengths[n])),
        )

    arrays = {name: lengths[name] for name in ("Q", "P", "J", "b")}
    call = Call("udwadia_kalaba", (N_U, N_C, "Q", "P", "J", "b", "scratch", "a", "m", "k"))
    result = Block("", (*(Store("out", i, graph.input("a", i)) for i in range(3)),
                        *(Store("out", 3 + i, graph.input("m", i)) for i in range(2)),
                        Store("out", 5, graph.input("k", 0))))  # fmt: skip
    general = Function(
        "general",
        (6,),
        (block("Q", "P", "J", "b"), call, result),
        {**arrays, "scratch": KERNELS["udwadia_kalaba"].work(N_U, N_C), "a": 3, "m": 2, "k": 1},
        "",
    )
    sides = [
        Store("X", 2 * i + column, graph.input("u", k))
        for column, name in enumerate(("P", "v"))  # each above b
        for i, k in enumerate([*range(offsets[name], offsets[name] + 3), offsets["b"], offsets["b"] + 1])
    ]
    many = Function(
        "many",
        (6,),
        (
            block("Q", "J"),
            Block("", tuple(sides)),
            Call("udwadia_kalaba_many", (N_U, N_C, 2, "Q", "J", "X", "scratch")),
            Block("", stored(graph, "out", "X", 6)),
        ),
        {"Q": 9, "J": 6, "X": 10, "scratch": KERNELS["udwadia_kalaba_many"].work(N_U, N_C, 2)},
        "",
    )
    numbers = {"G": (20, 6), "h": (26, 2), "v": (29, 3)}
    given = Block(
        "", tuple(Store(n, i, graph.input("u", k + i)) for n, (k, size) in numbers.items() for i in range(size))
    )
    sizes = Block("", tuple(Store("terms", i, graph.one) for i in range(2)))
    rates = {"v": 3, "terms": 2, "G": 6, "h": 2}
    parts = Function(
        "parts",
        (12,),
        (
            block("Q", "P", "J", "b", "Qdot"),
            given,
            sizes,
            Call("canonical", (N_U, N_C, "Q", "Qdot", "P", "J", "b", "v", "terms", "G", "h", "scratch", "x")),
            Block("", stored(graph, "out", "x", 12)),
        ),
        {**lengths, **rates, "scratch": KERNELS["canonical"].work(N_U, N_C), "x": 12},
        "",
    )
    limit = Function(
        "limit",
        (6,),
        (
            block("Q", "P", "J", "b"),
            given,
            sizes,
            Call("udwadia_kalaba_limit", (N_U, N_C, "Q", "P", "J", "b", "terms", "G", "h", "scratch", "a", "m", "k")),
            result,
        ),
        {**arrays, **rates, "scratch": KERNELS["udwadia_kalaba_limit"].work(N_U, N_C), "a": 3, "m": 2, "k": 1},
        "",
    )
    return general, many, parts, limit


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompiledModel:
    folder: Path = tmp_path_factory.mktemp("steps")
    return CompiledModel(emit_sources(program(), digest="0" * 64), folder)


def inputs(q: list[float], u: list[float] | None = None) -> dict[str, list[float]]:
    return {"t": [0.0], "q": q, "u": u or [0.0] * 32, "r": [], "p": [], "g": []}


@pytest.mark.parametrize(
    ("name", "q", "status"),
    [
        ("invoking", [2.0, 3.0, 5.0], OK),
        ("checked", [2.0, 3.0, 5.0], OK),
        ("checked", [-2.0, 3.0, 5.0], SINGULAR),
        ("checked", [float("nan"), 3.0, 5.0], SINGULAR),
        ("guarded", [2.0, 3.0, 5.0], OK),
        ("guarded", [0.0, 3.0, 5.0], SINGULAR),
        ("failing", [1.0, 3.0, 5.0], OK),
        ("failing", [-1.0, 3.0, 5.0], SINGULAR),
    ],
)
def test_status_and_result(compiled: CompiledModel, name: str, q: list[float], status: int) -> None:
    found, out = compiled.evaluate(name, inputs(q), 1)
    expected_status, expected = interpret(program(), name, inputs(q))
    assert found == expected_status == status
    if status == OK:
        assert out[0] == expected[0]


def test_operations_of_an_invoked_function_count() -> None:
    steps = program()
    assert operation_count(steps.function("invoking")) == operation_count(steps.function("product")) + 1


def system(seed: int, spoil: Callable[[np.ndarray], None] = lambda J: None) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    root = generator.normal(size=(3, 3))
    turn = generator.normal(size=(3, 3))
    J = generator.normal(size=(2, 3))
    spoil(J)
    return {
        "Q": root @ root.T + 3 * np.eye(3),
        "P": generator.normal(size=3),
        "J": J,
        "b": J @ generator.normal(size=3),
        "Qdot": turn + turn.T,
        "v": generator.normal(size=3),
    }


def flat(s: dict[str, np.ndarray]) -> list[float]:
    return [float(x) for name in ("Q", "P", "J", "b", "Qdot", "v") for x in s[name].ravel()]


def duplicate(J: np.ndarray) -> None:
    J[1] = -2.0 * J[0]


def vanish(J: np.ndarray) -> None:
    J[:] = 0.0


@pytest.mark.parametrize(("remainder", "rank"), [(1e-7, 2), (1e-11, 1)])
def test_what_is_left_of_a_row_beside_others_counts_from_a_billionth(
    compiled: CompiledModel, remainder: float, rank: int
) -> None:
    def nearly_dependent(J: np.ndarray) -> None:
        J[1] = J[0] + remainder * J[1]

    status, out = compiled.evaluate("general", inputs([0.0] * 3, flat(system(0, nearly_dependent))), 6)
    assert (status, out[5]) == (OK if rank == 2 else RANK_DEFICIENT, rank)


@pytest.mark.parametrize(("spoil", "rank"), [(lambda J: None, 2), (duplicate, 1), (vanish, 0)])
@pytest.mark.parametrize("seed", range(5))
def test_udwadia_kalaba_against_its_definition(
    compiled: CompiledModel, seed: int, spoil: Callable[[np.ndarray], None], rank: int
) -> None:
    s = system(seed, spoil)
    status, out = compiled.evaluate("general", inputs([0.0] * 3, flat(s)), 6)
    assert status == (OK if rank == 2 else RANK_DEFICIENT)
    values, vectors = np.linalg.eigh(s["Q"])
    half = vectors @ np.diag(values**-0.5) @ vectors.T
    pinv = np.linalg.pinv(s["J"] @ half, rcond=1e-10)
    free = np.linalg.solve(s["Q"], s["P"])
    expected = free + half @ pinv @ (s["b"] - s["J"] @ free)
    assert np.allclose(out[:3], expected, rtol=EVALUATION, atol=EVALUATION)
    assert np.allclose(s["J"].T @ out[3:5], s["Q"] @ expected - s["P"], rtol=EVALUATION, atol=EVALUATION)
    assert out[5] == rank
    _, columns = compiled.evaluate("many", inputs([0.0] * 3, flat(s)), 6)
    other = np.linalg.solve(s["Q"], s["v"])
    other = other + half @ pinv @ (s["b"] - s["J"] @ other)
    assert np.allclose(columns.reshape(3, 2), np.column_stack([expected, other]), rtol=EVALUATION, atol=EVALUATION)


def nearly(J: np.ndarray) -> None:
    J[1] = 0.5 * J[0] + 1e-6 * J[1]


@pytest.mark.parametrize("spoil", [lambda J: None, nearly, duplicate])
@pytest.mark.parametrize("seed", range(5))
def test_rows_that_become_dependent_are_replaced_by_their_rates(
    compiled: CompiledModel, seed: int, spoil: Callable[[np.ndarray], None]
) -> None:
    """Least change of Q^-1 P in the metric of Q with the row of the small singular value replaced."""
    s = system(seed, spoil)
    G, h = s["Qdot"].ravel()[:6].reshape(2, 3), s["Qdot"].ravel()[6:8]
    given = inputs([0.0] * 3, flat(s))
    status, out = compiled.evaluate("limit", given, 6)
    expected_status, twin = interpret(program(), "limit", given)
    L = np.linalg.cholesky(s["Q"])
    M, rates = (np.linalg.solve(L, rows.T).T for rows in (s["J"], G))
    left, values, right = np.linalg.svd(M, full_matrices=False)
    rows, sides = np.diag(values) @ right, left.T @ s["b"]
    if values[1] < 1e-3 * values[0]:
        rows[1], sides[1] = left[:, 1] @ rates, -left[:, 1] @ h
    free = np.linalg.solve(L, s["P"])
    expected = np.linalg.solve(L.T, free + np.linalg.pinv(rows) @ (sides - rows @ free))
    assert status == expected_status == (RANK_DEFICIENT if spoil is duplicate else OK)
    assert out[5] == twin[5] == (1 if spoil is duplicate else 2)
    # The small singular value, 1e-6, comes out of rows of size 1: six digits fewer of its vectors.
    tolerance = 1e-9 if spoil is nearly else EVALUATION
    assert np.allclose(out[:3], expected, rtol=tolerance, atol=tolerance)
    assert np.allclose(out[:3], np.array(twin[:3], dtype=float), rtol=1e-6, atol=1e-6)
    if spoil is not nearly and spoil is not duplicate:
        assert np.allclose(s["J"].T @ out[3:5], s["Q"] @ expected - s["P"], rtol=EVALUATION, atol=EVALUATION)


@pytest.mark.parametrize("spoil", [lambda J: None, nearly, duplicate, vanish])
@pytest.mark.parametrize("seed", range(5))
def test_canonical_parts_split_the_limit(
    compiled: CompiledModel, seed: int, spoil: Callable[[np.ndarray], None]
) -> None:
    """The part that enforces the constraints is the projection of u' on the rows in use, rates among them."""
    s = system(seed, spoil)
    given = inputs([0.0] * 3, flat(s))
    status, out = compiled.evaluate("parts", given, 12)
    twin_status, twin = interpret(program(), "parts", given)
    limit_status, limit = compiled.evaluate("limit", given, 6)
    assert status == twin_status == limit_status
    udot = out[:3] + out[3:6]
    np.testing.assert_allclose(udot, limit[:3], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(out, np.array(twin, dtype=float), rtol=1e-6, atol=1e-6)
    assert abs(out[:3] @ s["Q"] @ out[3:6]) < EVALUATION * (udot @ s["Q"] @ udot)
    L = np.linalg.cholesky(s["Q"])
    M = np.linalg.solve(L, s["J"].T).T
    rates = np.linalg.solve(L, s["Qdot"].ravel()[:6].reshape(2, 3).T).T
    left, values, right = np.linalg.svd(M, full_matrices=False)
    rows = np.diag(values) @ right
    for k in range(2):
        if values[k] <= 1e-3 * np.abs(left[:, k]) @ np.linalg.norm(M, axis=1):
            rows[k] = left[:, k] @ rates
    held = np.linalg.solve(L.T, np.linalg.pinv(rows) @ rows @ L.T @ udot)
    np.testing.assert_allclose(out[:3], held, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("spoil", [nearly, duplicate])
def test_rows_without_rates_are_not_replaced(compiled: CompiledModel, spoil: Callable[[np.ndarray], None]) -> None:
    s = system(3, spoil)
    s["Qdot"] = np.zeros((3, 3))
    found, expected = (compiled.evaluate(name, inputs([0.0] * 3, flat(s)), 6)[1] for name in ("limit", "general"))
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["general", "many", "limit", "parts"])
def test_kernels_against_fifty_digits(compiled: CompiledModel, seed: int, name: str) -> None:
    given = inputs([0.0] * 3, flat(system(seed)))
    status, out = compiled.evaluate(name, given, 12 if name == "parts" else 6)
    with mpmath.workdps(50):
        exact: dict[str, list[Any]] = {array: [mpmath.mpf(x) for x in values] for array, values in given.items()}
        expected_status, expected = interpret(program(), name, exact, mpmath_context(50))
    assert status == expected_status == OK
    assert np.allclose(out, [float(x) for x in expected], rtol=EVALUATION, atol=EVALUATION)


def test_symmetric_root_has_the_derivative_of_its_definition(compiled: CompiledModel) -> None:
    """The parts of w' add up to Q^1/2 u' + (Q^1/2)' v, the derivative by central differences of the root."""
    from scipy.linalg import sqrtm

    s = system(11)
    _, out = compiled.evaluate("parts", inputs([0.0] * 3, flat(s)), 12)
    udot, wdot = out[0:3] + out[3:6], out[6:9] + out[9:12]
    h = 1e-5
    rate = (sqrtm(s["Q"] + h * s["Qdot"]) - sqrtm(s["Q"] - h * s["Qdot"])) / (2 * h)
    # Central differences: truncation h^2, rounding 1e-16 / h.
    assert np.allclose(wdot, sqrtm(s["Q"]) @ udot + rate @ s["v"], rtol=1e-8, atol=1e-8)


def test_indefinite_mass_matrix_is_singular(compiled: CompiledModel) -> None:
    s = system(0)
    s["Q"] = np.diag([1.0, -1.0, 2.0])
    for name, size in (("general", 6), ("parts", 12)):
        assert compiled.evaluate(name, inputs([0.0] * 3, flat(s)), size)[0] == SINGULAR
