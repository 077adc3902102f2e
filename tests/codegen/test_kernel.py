"""Generated kernels: goldens, compilers, sanitizers, names, determinism.

``KANEGEN_UPDATE_GOLDENS=1 pytest tests/codegen/test_kernel.py`` writes the goldens anew: read the difference before
you commit it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import ccompile
import numpy as np
import pytest
from ccompile import Compiler, with_each_c_sanitizer, with_each_compiler
from checkout import environment
from compiled import CompiledModel
from programs import DIGEST, HOSTILE, pendulum, random_inputs, random_program, solver_program
from tolerances import COMPILED_PROGRAM, RANDOM_PROGRAM

from kanegen.codegen.kernel import emit_sources
from kanegen.codegen.sources import Sources, runtime_headers
from kanegen.codes import Status
from kanegen.graph import Graph
from kanegen.graph.interpret import mpmath_context
from kanegen.program.interpret import interpret
from kanegen.program.passes import schedule as splitting
from kanegen.program.records import Block, Check, Function, Program, Store, Symbols

GOLDENS = Path(__file__).parent / "goldens"
PROGRAMS: dict[str, Callable[[], Program]] = {"pendulum": pendulum, "solver": solver_program}
INPUTS = {"t": [0.3], "q": [0.4, -1.2, 2.2], "u": [0.5, 1.5, -0.25], "r": [0.75], "p": [0.9, 1.1, 9.81], "g": [2.0]}


def sources_of(name: str) -> Sources:
    return emit_sources(PROGRAMS[name](), digest=DIGEST, options_text="form reduced */")


def headers_of(sources: Sources) -> dict[str, str]:
    return {name: text for name, text in sources.files.items() if name.endswith(".h")}


@pytest.mark.parametrize("suffix", [".c", ".h"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_goldens(name: str, suffix: str) -> None:
    text = sources_of(name).text(name + suffix)
    path = GOLDENS / (name + suffix)
    if os.environ.get("KANEGEN_UPDATE_GOLDENS") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    assert text == path.read_text(encoding="utf-8"), f"{path.name} differs; see the top of this file"


@with_each_compiler
@pytest.mark.parametrize("name", PROGRAMS)
def test_compilers_accept_the_kernel_without_a_warning(name: str, compiler: Compiler, tmp_path: Path) -> None:
    sources = sources_of(name)
    ccompile.compile_source(
        compiler, sources.text(sources.kernel), tmp_path / "k.so", "-shared", "-fPIC", headers=headers_of(sources)
    )


@with_each_compiler
def test_compilers_accept_long_functions_in_parts(
    compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splitting, "LONGEST", 10)
    monkeypatch.setattr(splitting, "PART", 7)
    sources = emit_sources(random_program(5, 6), digest=DIGEST)
    assert "_part_1(" in sources.text(sources.kernel)
    ccompile.compile_source(
        compiler, sources.text(sources.kernel), tmp_path / "k.so", "-shared", "-fPIC", headers=headers_of(sources)
    )


def test_the_runtime_is_part_of_the_sources() -> None:
    sources = sources_of("pendulum")
    assert set(runtime_headers()) | {"pendulum.c", "pendulum.h", "program.json"} == set(sources.files)


def test_the_model_describes_itself(tmp_path: Path) -> None:
    compiled = CompiledModel(sources_of("solver"), tmp_path)
    model = compiled.model
    assert (model.abi, model.name, model.digest) == (6, b"solver", DIGEST.encode())
    assert (model.n_q, model.n_u, model.n_r, model.n_p, model.n_g) == (3, 3, 1, 1, 1)
    assert model.n_prepared == 2 + len(solver_program().constants)
    found = [name for array in ("coordinates", "speeds", "inputs", "parameters") for name in compiled.names(array)]
    assert found == list(HOSTILE[:8])
    shapes = {name: (f.rows, f.cols, f.work) for name, f in compiled.functions.items()}
    assert shapes == {"rhs": (3, 0, 6), 'output:*/ "q" ??/': (2, 2, 0)}


@pytest.mark.parametrize(("p", "fallback"), [(0.9, False), (-3.0, True)])
def test_compiled_code_agrees_with_the_interpreter_in_fifty_digits(p: float, fallback: bool, tmp_path: Path) -> None:
    program = solver_program()
    compiled = CompiledModel(sources_of("solver"), tmp_path)
    inputs = {**INPUTS, "p": [p]}
    for name, size in (("rhs", 3), ('output:*/ "q" ??/', 4)):
        status, out = compiled.evaluate(name, inputs, size)
        expected_status, expected = interpret(program, name, inputs, mpmath_context(50))
        assert status == expected_status == 0
        np.testing.assert_allclose(out, np.array(expected, dtype=float), rtol=COMPILED_PROGRAM)
    left = interpret(program, "rhs fallback", inputs)[1]
    assert (compiled.evaluate("rhs", inputs, 3)[1] == pytest.approx(left)) is fallback


@pytest.mark.parametrize("parts", [False, True], ids=["whole", "parts"])
def test_random_programs_agree_with_the_interpreter(
    parts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if parts:
        monkeypatch.setattr(splitting, "LONGEST", 20)
        monkeypatch.setattr(splitting, "PART", 9)
    count = 60
    program = random_program(11 + parts, count)
    compiled = CompiledModel(emit_sources(program, digest=DIGEST), tmp_path)
    for k in range(count):
        for seed in range(3):
            inputs = random_inputs(seed)
            status, out = compiled.evaluate(f"f{k}", inputs, 3)
            expected_status, expected = interpret(program, f"f{k}", inputs)
            assert status == expected_status == 0
            np.testing.assert_allclose(out, expected, rtol=RANDOM_PROGRAM, atol=RANDOM_PROGRAM, err_msg=f"f{k}")


@pytest.mark.parametrize("q", [(0.5, 1.0), (1.0, 0.5)])
def test_parts_share_conditions(q: tuple[float, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "LONGEST", 10)
    monkeypatch.setattr(splitting, "PART", 7)
    graph = Graph()
    a, b = (graph.input("q", k) for k in range(2))
    below = graph.apply("lt", a, b)
    values = [graph.select(below, a + k, b * k) for k in range(1, 30)]
    steps = (Check(below), Block("", tuple(Store("out", k, value) for k, value in enumerate(values))))
    function = Function("f", (len(values),), steps, {}, "")
    program = Program("parts", graph, Symbols(("a", "b"), (), (), (), ()), (function,))
    sources = emit_sources(program, digest=DIGEST)
    assert "kept[" in sources.text(sources.kernel)
    inputs = {"t": [0.0], "q": list(q), "u": [], "r": [], "p": [], "g": []}
    status, out = CompiledModel(sources, tmp_path).evaluate("f", inputs, len(values))
    assert status == (Status.OK if q[0] < q[1] else Status.SINGULAR)
    np.testing.assert_array_equal(out, [q[0] + k if q[0] < q[1] else q[1] * k for k in range(1, 30)])


@with_each_c_sanitizer
def test_sanitizers_find_nothing(compiler: Compiler, tmp_path: Path) -> None:
    sources = sources_of("solver")
    text = sources.text(sources.kernel) + ccompile.host_source("kernel_sanitized.c")
    target = tmp_path / "program"
    ccompile.compile_source(compiler, text, target, *ccompile.SANITIZERS, headers=headers_of(sources))
    done = subprocess.run([str(target)], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.split()) == 4


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_bytes_do_not_depend_on_the_hash_seed(seed: str) -> None:
    code = (
        "from programs import *; from kanegen.codegen.kernel import emit_sources as emit;"
        "from kanegen.codegen.sources import files_digest as digest;"
        "print(*(digest(emit(p, digest=DIGEST).files) for p in (solver_program(), random_program(3, 8))))"
    )
    variables = environment(PYTHONHASHSEED=seed)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=variables)
    from kanegen.codegen.sources import files_digest

    programs = (solver_program(), random_program(3, 8))
    assert done.stdout.split() == [files_digest(emit_sources(p, digest=DIGEST).files) for p in programs]


def test_the_kernel_contains_no_date() -> None:
    text = sources_of("pendulum").text("pendulum.c")
    assert "form reduced *<U+002F>" in text
    assert DIGEST in text
    assert "__DATE__" not in text
