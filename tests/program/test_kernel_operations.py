"""The operation counts of kernels against counting numbers that run through the C code."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from ccompile import compile_source, host_source, require_cpp
from messages import raises
from tolerances import OPERATIONS_OF_ITERATIONS, OPERATIONS_OF_SOLVES

from kanegen.program.kernels import KERNELS
from kanegen.program.passes.count import operation_count
from kanegen.program.records import Call, Function

ITERATIONS = (
    *("udwadia_kalaba", "udwadia_kalaba_many", "udwadia_kalaba_limit", "canonical"),
    *("control_solve", "control_damped", "control_feasibility"),
)
"""Kernels that rotate until rows are orthogonal: how often depends on the numbers, and the count is an average."""
SCRATCH = 20000


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    target = tmp_path_factory.mktemp("counted") / "counted.so"
    compile_source(require_cpp(), host_source("counted_kernels.cpp"), target, "-O1", "-shared", "-fPIC")
    return ctypes.CDLL(str(target))


def positive_definite(rng: np.random.Generator, n: int) -> np.ndarray:
    root = rng.normal(size=(n, n))
    return np.asarray(root @ root.T + n * np.eye(n))


def problem(name: str, n: int, m: int, rng: np.random.Generator) -> tuple[tuple[int, ...], list[np.ndarray]]:
    """Sizes and arrays of a regular call: n unknowns or speeds, m right sides, constraint rows or controls."""
    Q, J = positive_definite(rng, n), rng.normal(size=(m, n))
    P, b, u, work = rng.normal(size=n), rng.normal(size=m), rng.normal(size=n), np.zeros(SCRATCH)
    outputs = [np.zeros(SCRATCH) for _ in range(3)]
    if name.endswith("_solve_many"):
        return (n, m), [Q, rng.normal(size=n * m)]
    if name in ("lu_solve", "cholesky_solve"):
        return (n,), [Q, P]
    if name.startswith("control"):
        middle = {
            "control_solve": [np.abs(b), u],
            "control_damped": [np.array([0.1])],
            "control_feasibility": [np.abs(b)],
        }[name]
        return (m, n), [J, b, *middle, work, *outputs[: 2 if name == "control_feasibility" else 1]]
    if name == "udwadia_kalaba_many":
        return (n, m, 3), [Q, J, rng.normal(size=3 * n), work]
    G, h = rng.normal(size=(n, n)), np.ones(n)
    arrays = {
        "partition": [J],
        "multipliers": [J, P, work],
        **{key: [Q, P, J, b, work] for key in ("constrained_solve", "constrained_solve_lu")},
        "udwadia_kalaba": [Q, P, J, b, work],
        "udwadia_kalaba_limit": [Q, P, J, b, np.abs(b), G, h, work],
        "canonical": [Q, rng.normal(size=(n, n)), P, J, b, u, np.abs(b), G, h, work],
    }
    return (n, m), [*arrays[name], *outputs]


def counted(library: ctypes.CDLL, name: str, sizes: tuple[int, ...], arrays: list[np.ndarray]) -> int:
    """Operations of one call in C; arrays that a kernel does not take are ignored by its calling convention."""
    function = getattr(library, name)
    function.restype = ctypes.c_long
    copies = [np.array(x, float).ravel() for x in arrays]
    return int(function(*sizes, *(x.ctypes.data_as(ctypes.c_void_p) for x in copies)))


def formula(name: str, sizes: tuple[int, ...]) -> int:
    return operation_count(Function("f", (), (Call(name, sizes),), {}, ""))


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_the_formula_of_every_kernel_agrees_with_the_operations_of_the_c_code(counting: ctypes.CDLL, name: str) -> None:
    allowed = OPERATIONS_OF_ITERATIONS if name in ITERATIONS else OPERATIONS_OF_SOLVES
    rng = np.random.default_rng(1)
    ratios = {}
    for n in (3, 6, 12):
        for m in {1, n // 2}:
            sizes, arrays = problem(name, n, m, rng)
            operations = counted(counting, name, sizes, arrays)
            assert operations > 0, f"{name}{sizes} returned the status {operations}"
            ratios[sizes] = formula(name, sizes) / operations
    assert all(1 / allowed < ratio < allowed for ratio in ratios.values()), ratios


def test_an_unknown_kernel_is_named() -> None:
    with raises(KeyError, "'nothing'"):
        formula("nothing", (1,))
