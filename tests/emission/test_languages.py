"""Emitted code in every language and compiler, under tools that watch programs, and beside the Python module."""

from __future__ import annotations

import re
import shutil
from typing import Any

import numpy as np
import pytest
from ccompile import HOSTS, SANITIZERS, host_source
from emitted import CASES, LANGUAGES, STRICT, Case, Project, Projects, missing
from systems import model_of

import kanegen as kg
from kanegen.backends.cython.toolchain import CompilerOptions

pytestmark = pytest.mark.target

STEPS = 256
STEP = 1.0 / 1024.0
"""The step of emitted_steps.c: a power of two, so that the times of steps are exact."""

DEBUGGED = ("-g", "-O0")

FLAGS = CompilerOptions()
PLAIN = ("-std=c99", "-O0", "-march=native", "-ffp-contract=off")
UNCONTRACTED = CompilerOptions(kernel=PLAIN, steppers=PLAIN, runtime=PLAIN, wrapper=("-O0",))
"""By default, the loops of the module contract products and sums, and its kernels do not. Without optimization, on
which no bit depends, the module compiles in a fifth of the time."""

OTHER_STEPS = {
    "bouncing_ball": "its step is that of time stepping",
    "sampled_pid": "the solver ends steps at samples",
    "n_link_pendulum": "the solver integrates momenta",
}
"""Examples whose emitted steps are not those of solver.integrate, with the reasons. The right-hand sides are equal."""

PAIRS = [
    (case, language)
    for language in LANGUAGES
    for case in CASES
    if language in ("gcc C99", "clang C11", "tcc C99", "g++ C++11") or case in CASES[1:7:2]
]
"""Every model with every compiler, and some of them with its other languages."""

EACH = pytest.mark.parametrize("case", CASES, ids=str)


def require(*tools: str) -> None:
    absent = missing(*tools)
    if absent:
        pytest.skip(f"{absent} is not installed")


def host(
    project: Project, name: str, *flags: str, command: tuple[str, ...] = STRICT, steps: int = STEPS, defines: str = ""
) -> str:
    """A program of tests/hosts with the project, as the command that runs it."""
    (project.folder / name).write_text(host_source(name), encoding="utf-8")
    defined = (f"-DNAME={project.name}", f"-DSTEPS={steps}", *defines.split())
    sources, program = (name, f"{project.name}.c"), f"{name.split('.')[0]}_program"
    return project.compile(command, sources, program, *flags, defines=defined)


# -- languages ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "language"), PAIRS, ids=str)
def test_the_selftest_passes(case: Case, language: str, projects: Projects) -> None:
    command = LANGUAGES[language]
    require(command[0])
    for precision in ("double", "float") if language in ("gcc C99", "tcc C99", "clang++ C++11") else ("double",):
        project = projects.get(case, precision)
        project.run(project.selftest(command))


@EACH
def test_all_functions_of_a_model_are_compared(case: Case, projects: Projects) -> None:
    project = projects.get(case)
    text = (project.folder / f"{project.name}_selftest.c").read_text(encoding="utf-8")
    header = (project.folder / f"{project.name}.h").read_text(encoding="utf-8")
    declared = set(re.findall(rf"^int ({project.name}_\w+)\(\w+ \*ctx, \w+ \*(?:out|outputs)\);", header, re.MULTILINE))
    assert declared
    assert declared == set(re.findall(rf'", ({project.name}_\w+), \d', text))


def test_models_and_precisions_link_into_one_program(projects: Projects) -> None:
    parts = [
        projects.get(Case(name), precision)
        for name in ("slider_crank", "cart_pole")
        for precision in ("double", "float")
    ]
    folder = parts[0].folder.parent
    names = tuple(part.name for part in parts)
    main = "".join(f"int {name}_selftest(void);\n" for name in names)
    main += f"int main(void) {{ return {' + '.join(f'{name}_selftest()' for name in names)}; }}\n"
    (folder / "all.c").write_text(main, encoding="utf-8")
    everything = Project(folder, "all", parts[0].case)
    sources = [f"{part.folder.name}/{part.name}{kind}.c" for part in parts for kind in ("", "_selftest")]
    program = everything.compile(STRICT, ("all.c", *sources), "all", "-O0", "-DKG_SELFTEST_NO_MAIN")
    assert len(re.findall("functions agree", everything.run(program))) == len(parts)


# -- symbols and memory -------------------------------------------------------------------------------------------


@EACH
def test_symbols_begin_with_the_name_and_nothing_is_global_data(case: Case, projects: Projects) -> None:
    project = projects.get(case)
    project.run(*STRICT, "-O1", "-fno-pic", "-c", f"{project.name}.c", "-o", "symbols.o")
    symbols = [line.split()[-2:] for line in project.run("nm", "symbols.o").splitlines()]
    public = [name for kind, name in symbols if kind.isupper() and kind not in "UW"]
    assert public
    assert all(name.startswith(f"{project.name}_") for name in public), public
    assert [name for kind, name in symbols if kind in "bBdDcC"] == []
    called = {name for kind, name in symbols if kind == "U"}
    assert not called & {"malloc", "calloc", "realloc", "free", "__errno_location", "setlocale", "printf"}


@EACH
def test_no_step_allocates_and_copied_contexts_rewind(case: Case, projects: Projects) -> None:
    project = projects.get(case)
    wrapped = [f"-Wl,--wrap={name}" for name in ("malloc", "calloc", "realloc", "free")]
    lines = project.run(
        host(project, "emitted_steps.c", *DEBUGGED, *wrapped, defines="-DCOUNT_ALLOCATIONS")
    ).splitlines()
    assert lines[:2] == ["allocations 0", "rewound 1"]


@EACH
def test_every_step_takes_the_same_operations(case: Case, projects: Projects) -> None:
    require("g++")
    project = projects.get(case)
    counted = project.folder / "counted"
    counted.mkdir(exist_ok=True)
    text = (project.folder / f"{project.name}.h").read_text(encoding="utf-8")
    scalar = f"typedef double {project.name}_real;"
    assert scalar in text
    header = text.replace(scalar, f"typedef kg_real {project.name}_real;")
    (counted / f"{project.name}.h").write_text(header, encoding="utf-8")
    shutil.copy(project.folder / f"{project.name}.c", counted)
    defines = (f"-DNAME={project.name}", f"-DSTEPS={STEPS}", "-Icounted", "-I.", f"-I{HOSTS}")
    program = project.compile(
        ("g++", "-std=c++11", "-O0"), (str(HOSTS / "counted_steps.cpp"),), "counted_steps", *defines
    )
    counts = [int(line) for line in project.run(program).split()]
    assert len(counts) == STEPS
    assert min(counts) > 0
    assert min(counts) == max(counts)
    # The header counts right-hand sides, laws and sums, without tests that numbers are finite and the time.
    stated = re.search(r"A step .*? takes (\d+) operations", " ".join(re.split(r"\s*\n \*\s*", text)))
    assert stated is not None
    assert 0.75 * counts[0] <= int(stated[1]) <= 1.1 * counts[0]


# -- tools --------------------------------------------------------------------------------------------------------


@EACH
def test_sanitizers_find_nothing(case: Case, projects: Projects) -> None:
    project = projects.get(case)
    project.run(project.selftest(STRICT, *SANITIZERS))
    project.run(host(project, "emitted_steps.c", *SANITIZERS, steps=32))


@pytest.mark.parametrize("example", ["slider_crank", "bouncing_ball", "sampled_pid"])
def test_simulations_in_threads_do_not_disturb_each_other(example: str, projects: Projects) -> None:
    flags = ("-fsanitize=thread", *DEBUGGED, "-pthread")
    program = host(projects.get(Case(example)), "emitted_threads.c", *flags, command=("gcc", "-std=c99"), steps=100)
    assert projects.get(Case(example)).run(program) == "equal 1\n"


@EACH
def test_valgrind_finds_nothing(case: Case, projects: Projects) -> None:
    require("valgrind")
    project = projects.get(case)
    check = ("valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full")
    project.run(*check, project.selftest(STRICT, *DEBUGGED))
    project.run(*check, host(project, "emitted_steps.c", *DEBUGGED, steps=32))


# -- the same bits as the Python module ---------------------------------------------------------------------------


def numbers(lines: list[str], what: str) -> np.ndarray[Any, Any]:
    bits = [int(line.split()[1], 16) for line in lines if line.split()[0] == what]
    return np.array(bits, dtype=np.uint64).view(np.float64)


@EACH
def test_bits_are_those_of_the_python_module(case: Case, projects: Projects) -> None:
    project = projects.get(case)
    solver = kg.build(model_of(case.example), form=case.form, compiler=UNCONTRACTED)
    flags = (*FLAGS.common, *FLAGS.kernel)
    lines = project.run(host(project, "emitted_steps.c", *flags)).splitlines()
    t, y, dydt = numbers(lines, "t")[0], numbers(lines, "y"), numbers(lines, "dydt")
    d = solver.description
    q, u, s = np.split(y, np.cumsum([len(d.coordinates), len(d.speeds)]))
    states = {"s": s} if len(s) else {}
    r = None if d.laws else project.start.get("r")
    if not d.laws:
        np.testing.assert_array_equal(dydt, np.concatenate(solver.rhs(t, q, u, r, **states)))
    if case.example not in OTHER_STEPS:
        start = {key: project.start[key[0]] for key in ("q0", "u0", "s0") if project.start.get(key[0])}
        t0 = project.start.get("t") or 0.0
        solution = solver.integrate((t0, t0 + STEPS * STEP), r=r, method="rk4", step=STEP, **start)
        assert t == solution.t[-1]
        np.testing.assert_array_equal(
            y, np.concatenate([solution.q[-1], solution.u[-1], *([solution.s[-1]] if len(s) else [])])
        )
