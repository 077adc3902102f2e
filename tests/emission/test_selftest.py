"""The self-test of emitted projects: it agrees with correct code, and finds and names what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from emitted import STRICT, Case, Project, Projects
from systems import model_of

import kanegen as kg
from kanegen.codegen.methods.table import FIXED_STEP
from kanegen.emission.selftest.disturbed import Disturbed, UndecidedError
from kanegen.emission.selftest.expected import SCALARS, Accuracy, UndefinedError, expect
from kanegen.graph import Graph, evaluate

CRANK = Case("slider_crank")


def outcome(project: Project, *arguments: str, status: int | None = 0) -> dict[str, str]:
    """The last words that the self-test prints for each function."""
    lines = project.run("./selftest_program", *arguments, status=status).splitlines()
    return {line.split()[0]: line.split()[-1] for line in lines}


@pytest.mark.parametrize("precision", ["double", "float"])
def test_every_function_agrees(precision: str, projects: Projects) -> None:
    project = projects.get(CRANK, precision)
    project.selftest(STRICT, "-Wdouble-promotion")
    found = outcome(project)
    assert {"rhs", "step", "outputs", "Q", "J", "energy", "residuals", "multipliers"} <= found.keys()
    assert project.run("./selftest_program", "--quiet") == ""
    text = (project.folder / f"{project.name}_selftest.c").read_text(encoding="utf-8")
    assert "Not compared" not in text


@pytest.mark.parametrize(
    ("function", "precision"),
    [("rhs", "double"), ("kinetic_energy", "float"), ("velocity_level", "double"), ("Q", "float")],
)
def test_a_wrong_constant_is_found(function: str, precision: str, projects: Projects) -> None:
    project = projects.get(CRANK, precision)
    kernel = project.folder / f"{project.name}.c"
    original = kernel.read_text(encoding="utf-8")
    start = original.index(f"static int evaluate_{function}(KG_ARGUMENTS)")
    end = original.index("\n}\n", start)
    change = 1.0 + 1e3 * SCALARS[precision].unit
    body = original[start:end]
    constant = re.search(r"KG_C\((?!0\.0\))([0-9.]+)\)", body)
    if constant is not None:
        body = body.replace(constant[0], f"KG_C({float(constant[1]) * change!r})", 1)
    else:
        body, count = re.subn(r"\b[cp]\[\d+\] \* ", rf"KG_C({change!r}) * \g<0>", body, count=1)
        assert count == 1
    try:
        kernel.write_text(original[:start] + body + original[end:], encoding="utf-8")
        project.selftest(STRICT)
        found = outcome(project, "--quiet", status=1)
    finally:
        kernel.write_text(original, encoding="utf-8")
    assert found[function] == "DISAGREES"


@pytest.mark.parametrize("method", [*FIXED_STEP, "semi_implicit_euler"])
def test_steps_with_projection_agree(method: str, tmp_path: Path) -> None:
    folder = kg.emit(model_of("elliptic_wire"), tmp_path / "wire", stabilization=kg.Projection(), method=method)
    project = Project(folder, "elliptic_wire", CRANK)
    project.selftest(STRICT)
    assert outcome(project)["step"] == "tolerance"
    # The residual with the wrong sign: the steps move away from the constraints.
    header = (folder / "runtime/kg_fixed_step.h").read_text(encoding="utf-8")
    wrong = re.sub(r"lambda\[i\] = -", "lambda[i] = ", header)
    assert wrong != header
    (folder / "runtime/kg_fixed_step.h").write_text(wrong, encoding="utf-8")
    project.selftest(STRICT)
    assert outcome(project, "--quiet", status=1)["step"] == "DISAGREES"


def test_a_function_that_fails_is_found(projects: Projects) -> None:
    project = projects.get(CRANK)
    kernel = project.folder / f"{project.name}.c"
    original = kernel.read_text(encoding="utf-8")
    head = "static int evaluate_energy(KG_ARGUMENTS)\n{\n"
    try:
        kernel.write_text(
            original.replace(head, f"{head}  if (at->t < 1e9) {{ return KG_SINGULAR; }}\n"), encoding="utf-8"
        )
        project.selftest(("gcc", "-std=c99"))
        printed = project.run("./selftest_program", status=1)
    finally:
        kernel.write_text(original, encoding="utf-8")
    assert re.search(r"^energy +FAILS", printed, re.MULTILINE)


def test_it_runs_without_input_and_output(projects: Projects) -> None:
    project = projects.get(CRANK)
    program = project.selftest(STRICT, "-DKG_SELFTEST_NO_STDIO")
    assert project.run(program) == ""
    undefined = project.run("nm", "-u", "selftest_program")
    assert "printf" not in undefined
    assert "puts" not in undefined


def test_make_builds_it(projects: Projects) -> None:
    project = projects.get(CRANK)
    project.run("make", "CFLAGS=-O1 -Werror -Wconversion", "selftest")
    assert "22 of 22 functions agree" in project.run("./selftest")


def test_functions_of_the_user_are_compared_in_double_precision(tmp_path: Path) -> None:
    q, u = me.dynamicsymbols("q u")
    hardening = kg.Function(
        "hardening", 1, lambda x: x + x**3, "return x + x*x*x;", derivatives=[lambda x: 1 + 3 * x**2]
    )
    N, O, P = me.ReferenceFrame("N"), me.Point("O"), me.Point("P")
    O.set_vel(N, 0)
    P.set_pos(O, q * N.x)
    P.set_vel(N, u * N.x)
    model = kg.Model(
        name="oscillator",
        frame=N,
        coordinates=(q,),
        speeds=(u,),
        kinematics=(q.diff() - u,),
        bodies=(me.Particle("block", P, sm.Integer(2)),),
        loads=((P, -hardening(q) * N.x),),
    )
    project = Project(kg.emit(model, tmp_path / "oscillator"), "oscillator", CRANK)
    text = (project.folder / "oscillator_selftest.c").read_text(encoding="utf-8")
    inexact = text[text.index("functions of the user") :].split(" * oscillator_selftest()")[0]
    assert "rhs" in inexact
    assert "Q" not in inexact.split()
    project.selftest(STRICT)
    assert outcome(project)["rhs"] == "tolerance"


# -- tolerances ---------------------------------------------------------------------------------------------------


def test_effects_of_arguments_are_those_of_the_derivatives() -> None:
    graph = Graph()
    x, y = graph.input("q", 0), graph.input("q", 1)
    product = x * graph.apply("sin", y)
    disturbed = Disturbed({"q": [3.0, 0.7]}, seed=1)
    unit = 2.0**-53
    inputs, rounding = disturbed.errors(
        evaluate([product], disturbed.values, disturbed.context), lambda x: float(np.spacing(x)), unit
    )
    slopes = np.abs([np.sin(0.7), 3.0 * np.cos(0.7)])
    assert inputs[0] == pytest.approx(float(slopes @ np.spacing([3.0, 0.7])), rel=1e-6)
    # The sine may be wrong by two roundings, the product by one: between their difference and their sum.
    assert 0.9 * unit <= rounding[0] / abs(3.0 * np.sin(0.7)) <= 3.1 * unit


def test_cancellation_widens_the_tolerance() -> None:
    graph = Graph()
    x = graph.input("q", 0)
    large = x + 1e6
    difference = large - 1e6
    arguments = {"q": [0.125]}
    accuracy = Accuracy(exact=True, normwise=False)

    def small(values, context):
        return evaluate([difference], values, context)

    expected = expect(small, arguments, SCALARS["double"], accuracy, seed=1)
    assert expected.values == (0.125,)
    # One rounding of a number near 1e6.
    assert 1e-10 <= expected.tolerances[0] <= 2e-9


def test_values_beside_a_jump_are_not_compared() -> None:
    graph = Graph()
    x = graph.input("q", 0)
    step = graph.select(graph.apply("lt", x * x, graph.const(2)), graph.zero, graph.one)
    accuracy = Accuracy(exact=True, normwise=False)

    def jump(values, context):
        return evaluate([step], values, context)

    with pytest.raises(UndefinedError, match="rounding"):
        expect(jump, {"q": [float(mpmath.sqrt(2))]}, SCALARS["double"], accuracy, seed=1)
    assert expect(jump, {"q": [1.5]}, SCALARS["double"], accuracy, seed=1).values == (1.0,)


def test_a_status_that_depends_on_rounding_is_undecided() -> None:
    disturbed = Disturbed({"q": [1.0]}, seed=1)
    with pytest.raises(UndecidedError):
        disturbed.context.holds(disturbed.values["q"][0] - 1.0)
