"""Functions with CasADi's C interface: values, sparse derivatives, second derivatives, and their use by CasADi."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from accelerated_models import chain
from checkout import EXAMPLES
from messages import raises
from systems import initial, model_of

import kanegen as kg
from kanegen.emission.casadi import casadi_files, emit_casadi, interface
from kanegen.writing import write_files

pytestmark = pytest.mark.target
casadi = pytest.importorskip("casadi")

MODELS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("lqr_cart_pole", {}),
    ("slider_crank", {}),
    ("dc_motor_arm", {}),
    ("rheonomic_particle", {}),
    ("spatial_chain", {"n": 2}),
    ("rolling_disk", {}),
)
"""Inputs and outputs; loops and outputs with accelerations; states and loads in u'; time; a tree; more speeds than
degrees of freedom."""

STEP = 1e-6
DIFFERENCES = 2e-8
"""Central differences with the relative step 1e-6: truncation and rounding are below 1e-9 of the largest values."""


@cache
def point_on_circle() -> kg.Model:
    """A particle on the circle x^2 + y^2 = l^2: no choice of a dependent speed is regular everywhere."""
    x, y, u, v, F = me.dynamicsymbols("x y u v F")
    m, l, g = sm.symbols("m l g")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    time = me.dynamicsymbols._t
    return kg.Model(
        name="point_on_circle",
        frame=N,
        coordinates=(x, y),
        speeds=(u, v),
        kinematics=(u - x.diff(time), v - y.diff(time)),
        bodies=(me.Particle("P", P, m),),
        holonomic_constraints=(x**2 + y**2 - l**2,),
        loads=((P, F * N.x),),
        gravity=-g * N.y,
        inputs=(F,),
        parameters={m: 2.0, l: 1.0, g: 9.81},
    )


def made(model: kg.Model, **options: Any) -> tuple[str, str]:
    """The stem of a project that was emitted and compiled, without a warning, and its library."""
    folder = emit_casadi(model, Path(mkdtemp()), **options)
    command = ["make", "-s", "CFLAGS=-O1 -Werror"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (library,) = folder.glob("*_casadi.so")
    return library.name.removesuffix("_casadi.so"), str(library)


@cache
def library_of(name: str, **options: Any) -> tuple[kg.Model, str, Any]:
    model = point_on_circle() if name == "point_on_circle" else model_of(name, **options)
    stem, path = made(model)
    return model, stem, casadi.Importer(path, "dll")


def function(name: str, which: str = "dynamics", prefix: str = "", **options: Any) -> Any:
    _, stem, library = library_of(name, **options)
    return casadi.external(f"{prefix}{stem}_{which}", library)


def start(name: str, **options: Any) -> dict[str, Any]:
    if name == "point_on_circle":
        return {"t": 0.0, "q": (0.6, 0.8), "u": (0.8, -0.6), "r": (0.5,)}
    return initial(name, **options)


def arguments(name: str, f: Any, **options: Any) -> list[np.ndarray]:
    """x, u, p, and t if the model depends on time, at a state beside the start of the example."""
    model, begin = library_of(name, **options)[0], start(name, **options)
    x = np.array([*begin["q"], *begin["u"], *begin.get("s", ())], dtype=float)
    random = np.random.default_rng(3)
    x = x + 0.05 * random.uniform(-1.0, 1.0, x.size)
    r = random.uniform(0.1, 1.0, f.size1_in(1))
    p = np.array([*model.parameters.values()], dtype=float)
    return [x, r, p, *([np.array([0.3])] if f.n_in() == 4 else [])]


def value(f: Any, arguments: list[np.ndarray], output: int = 0) -> np.ndarray:
    return f.call(list(arguments))[output].full()[:, 0]


def differences(f: Any, arguments: list[np.ndarray], which: int, output: int = 0) -> np.ndarray:
    """Central differences of an output of f with respect to one argument."""
    columns = []
    for k in range(arguments[which].size):
        size = abs(arguments[which][k])
        h, values = STEP * (size if which == 2 else max(1.0, size)), []  # parameters can be small
        for sign in (1.0, -1.0):
            moved = [x.copy() for x in arguments]
            moved[which][k] += sign * h
            values.append(value(f, moved, output))
        columns.append((values[0] - values[1]) / (2.0 * h))
    return np.array(columns).T.reshape(value(f, arguments, output).size, -1)


def close(block: Any, expected: np.ndarray) -> None:
    np.testing.assert_allclose(block.full(), expected, rtol=0.0, atol=DIFFERENCES * max(1.0, np.abs(expected).max()))


# -- values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "options"), MODELS)
def test_dynamics_are_those_of_the_solver(name: str, options: dict[str, Any]) -> None:
    f = function(name, **options)
    x, r, p, *t = arguments(name, f, **options)
    solver = kg.build(library_of(name, **options)[0], functions=())
    expected = solver.ode(t[0][0] if t else 0.0, x, r if r.size else None)
    np.testing.assert_allclose(value(f, [x, r, p, *t]), expected, rtol=1e-12, atol=1e-12)
    assert f.n_in() == (4 if name == "rheonomic_particle" else 3)


def test_outputs_and_residuals_are_those_of_the_solver() -> None:
    model, _, _ = library_of("slider_crank")
    solver, y, c = kg.build(model), function("slider_crank", "outputs"), function("slider_crank", "constraints")
    x, r, p = arguments("slider_crank", y)
    outputs = [solver.output(name, 0.0, x[:3], x[3:]) for name in solver.description.outputs]
    np.testing.assert_allclose(value(y, [x, r, p]), np.hstack([np.ravel(part) for part in outputs]), rtol=1e-12)
    residuals = np.concatenate(solver.residuals(0.0, x[:3], x[3:]))
    np.testing.assert_allclose(value(c, [x, r, p]), residuals, rtol=1e-12, atol=1e-14)


def test_values_of_the_model_are_a_function() -> None:
    model, stem, library = library_of("dc_motor_arm")
    values = casadi.external(f"{stem}_defaults", library)()
    np.testing.assert_array_equal(values["p"].full()[:, 0], [*model.parameters.values()])
    assert values["u"].shape == (0, 1)
    start = kg.build(model, functions=()).initial
    expected = [start.get(name, np.nan) for name in ("theta", "omega", "i", "z")]
    np.testing.assert_array_equal(values["x"].full()[:, 0], expected)


def test_other_parameters_need_no_new_code() -> None:
    f = function("lqr_cart_pole")
    x, r, p = arguments("lqr_cart_pole", f)
    solver = kg.build(library_of("lqr_cart_pole")[0], functions=())
    heavier = solver.with_parameters({"m_c": 3.0})
    p[list(solver.parameters).index("m_c")] = 3.0
    np.testing.assert_allclose(value(f, [x, r, p]), heavier.ode(0.0, x, r), rtol=1e-13)


def test_gains_of_the_stabilization_are_constants() -> None:
    gains = kg.Baumgarte(3.0, 4.0)
    stem, path = made(point_on_circle(), stabilization=gains)
    f = casadi.external(f"{stem}_dynamics", path)
    x, r, p = np.array([0.7, 0.8, 0.5, -0.6]), np.array([0.5]), np.array([2.0, 1.0, 9.81])
    solver = kg.build(point_on_circle(), stabilization=gains, functions=())
    np.testing.assert_allclose(value(f, [x, r, p]), solver.ode(0.0, x, r), rtol=1e-12)


# -- derivatives -----------------------------------------------------------------------------------------------


CASES = [
    (name, options, which)
    for name, options in (*MODELS, ("point_on_circle", {}))
    for which in ("dynamics", "outputs", "constraints")
    if (which == "dynamics")
    or (which == "outputs" and name in ("lqr_cart_pole", "slider_crank", "dc_motor_arm"))
    or (which == "constraints" and name in ("slider_crank", "rheonomic_particle", "rolling_disk", "point_on_circle"))
]


@pytest.mark.parametrize(("name", "options", "which"), CASES)
def test_jacobian_against_differences(name: str, options: dict[str, Any], which: str) -> None:
    f = function(name, which, **options)
    given = arguments(name, f, **options)
    J = f.jacobian()
    blocks = J.call([*given, casadi.DM(*f.size_out(0))])
    for k, block in enumerate(blocks):
        if given[k].size:
            close(block, differences(f, given, k))
    names = [f"jac_{f.name_out(0)}_{f.name_in(k)}" for k in range(f.n_in())]
    assert J.name_out() == names


@pytest.mark.parametrize(("name", "options", "which"), CASES)
def test_second_derivatives_against_differences(name: str, options: dict[str, Any], which: str) -> None:
    """Blocks of the Jacobian of ``adj1`` against differences of it, and ``adj1`` against the Jacobian."""
    f, adjoint = function(name, which, **options), function(name, which, "adj1_", **options)
    given, known = arguments(name, f, **options), np.zeros(0)
    seeds = np.random.default_rng(5).uniform(-1.0, 1.0, f.size1_out(0))
    blocks = f.jacobian().call([*given, casadi.DM(*f.size_out(0))])
    for k, block in enumerate(blocks):
        product = value(adjoint, [*given, known, seeds], k)
        np.testing.assert_allclose(product, seeds @ block.full(), rtol=1e-10, atol=1e-9)
    n, second = f.n_in(), function(name, which, "jac_adj1_", **options)
    found = second.call([*given, known, seeds, *[known] * n])
    for i in range(n):
        for k in (*range(n), n + 1):
            every = [*given, known, seeds]
            if every[k].size and given[i].size:
                close(found[i * (n + 2) + k], differences(adjoint, every, k, i))


def test_patterns_leave_out_what_does_not_occur() -> None:
    """The accelerations of the cart and of the pole do not depend on the place of the cart."""
    f = function("lqr_cart_pole")
    J = f.jacobian()
    pattern = np.array(casadi.DM(J.sparsity_out(0), 1.0))
    np.testing.assert_array_equal(pattern, [[0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]])
    assert J.sparsity_out(1).nnz() == 2
    names = map(str, library_of("lqr_cart_pole")[0].parameters)
    unused = [k for k, name in enumerate(names) if name in ("k_x", "F_max")]
    assert not np.array(casadi.DM(J.sparsity_out(2), 1.0))[:, unused].any()


@pytest.mark.parametrize("angle", [0.0, np.pi / 2])
def test_jacobian_where_a_partition_is_singular(angle: float) -> None:
    """At one of these two states the dependent speed of the model's partition cannot be solved for."""
    f = function("point_on_circle")
    x = np.array([np.cos(angle), np.sin(angle), -0.4 * np.sin(angle), 0.4 * np.cos(angle)])
    r, p = np.array([0.5]), np.array([2.0, 1.0, 9.81])
    blocks = f.jacobian().call([x, r, p, casadi.DM(4, 1)])
    solver = kg.build(point_on_circle(), functions="all", form="nonminimal")
    expected = solver.jacobian(0.0, x[:2], x[2:], r)
    np.testing.assert_allclose(blocks[0].full(), np.hstack([expected.q, expected.u]), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(blocks[1].full(), expected.r, rtol=1e-10, atol=1e-10)


def test_redundant_constraints_have_a_jacobian() -> None:
    model = point_on_circle()
    twice = (*model.holonomic_constraints, 2 * model.holonomic_constraints[0])
    doubled = kg.Model(
        **{
            **{name: getattr(model, name) for name in ("frame", "coordinates", "speeds", "kinematics", "bodies")},
            **{name: getattr(model, name) for name in ("loads", "gravity", "inputs", "parameters")},
            "name": "twice_on_circle",
            "holonomic_constraints": twice,
        }
    )
    stem, path = made(doubled, form="pseudoinverse")
    f = casadi.external(f"{stem}_dynamics", path)
    given = [np.array([0.6, 0.8, 0.8, -0.6]), np.array([0.5]), np.array([2.0, 1.0, 9.81])]
    plain = function("point_on_circle")
    np.testing.assert_allclose(value(f, given), value(plain, given), rtol=1e-10)
    assert not casadi.Importer(path, "dll").has_function(f"adj1_{stem}_dynamics")
    assert "redundant" in casadi_files(doubled, form="pseudoinverse")[f"{stem}_casadi.c"]


def test_loads_in_accelerations_that_make_the_matrix_unsymmetric() -> None:
    model = chain("follower").model
    stem, path = made(model)
    f, random = casadi.external(f"{stem}_dynamics", path), np.random.default_rng(4)
    given = [random.uniform(0.2, 1.0, f.size1_in(k)) for k in range(3)]
    blocks = f.jacobian().call([*given, casadi.DM(*f.size_out(0))])
    for k, block in enumerate(blocks):
        if given[k].size:
            close(block, differences(f, given, k))
    assert not casadi.Importer(path, "dll").has_function(f"adj1_{stem}_dynamics")
    assert "unsymmetric" in casadi_files(model)[f"{stem}_casadi.c"]


def test_long_second_derivatives_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interface, "HESSIAN_LIMIT", 50)
    code = casadi_files(model_of("lqr_cart_pole"))["lqr_cart_pole_casadi.c"]
    assert "more than 50" in code
    assert "int jac_adj1_lqr_cart_pole_dynamics(" not in code
    assert "int adj1_lqr_cart_pole_dynamics(" in code
    assert "int jac_adj1_lqr_cart_pole_outputs(" in code


# -- use by CasADi ---------------------------------------------------------------------------------------------


def test_hessian_of_a_symbolic_expression() -> None:
    """CasADi's graph calls the exact derivatives: the Hessian of a step of Kutta's method against differences."""
    f = function("lqr_cart_pole")
    x0, r, p = arguments("lqr_cart_pole", f)
    x, u = casadi.MX.sym("x", 4), casadi.MX.sym("u", 1)
    middle = f(x + 0.05 * f(x, u, p), u, p)
    z = casadi.vertcat(x, u)
    H, gradient = casadi.hessian(casadi.dot(middle, middle), z)
    functions = [casadi.Function(name, [x, u], [part]) for name, part in (("H", H), ("g", gradient))]
    found = functions[0](x0, r)
    close(found, np.hstack([differences(functions[1], [x0, r], k) for k in range(2)]))


def test_functions_run_in_threads() -> None:
    f = function("spatial_chain", n=2)
    x, r, p = arguments("spatial_chain", f, n=2)
    states = np.array([x + 0.01 * k for k in range(64)]).T
    found = f.map(64, "thread", 4)(states, np.zeros((0, 64)), np.tile(p, (64, 1)).T).full()
    np.testing.assert_array_equal(found, np.array([value(f, [state, r, p]) for state in states.T]).T)


def test_arguments_that_are_not_given_are_zero() -> None:
    f = function("lqr_cart_pole")
    x, _, p = arguments("lqr_cart_pole", f)
    np.testing.assert_array_equal(f(x=x, p=p)["xdot"].full()[:, 0], value(f, [x, np.zeros(1), p]))


def test_code_that_casadi_generates_links_with_the_library(tmp_path: Path) -> None:
    """A function of the external function, generated as C by CasADi, compiled and loaded again."""
    f = function("lqr_cart_pole")
    given = arguments("lqr_cart_pole", f)
    x, u, p = (casadi.MX.sym(f.name_in(k), f.sparsity_in(k)) for k in range(3))
    step = casadi.Function("step", [x, u, p], [x + 0.01 * f(x, u, p)])
    step.generate("step.c", {"with_header": False})
    code = Path("step.c")
    code.rename(tmp_path / "step.c")
    stem = library_of("lqr_cart_pole")[1]
    write_files(casadi_files(library_of("lqr_cart_pole")[0]), tmp_path)
    command = ["cc", "-O1", "-fPIC", "-shared", "step.c", f"{stem}_casadi.c", "-lm", "-o", "step.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    again = casadi.external("step", str(tmp_path / "step.so"))
    np.testing.assert_array_equal(value(again, given), value(step, given))


# -- refusals --------------------------------------------------------------------------------------------------


def test_contacts_are_refused(tmp_path: Path) -> None:
    with raises(kg.BuildError, "bouncing_ball", "contacts"):
        emit_casadi(model_of("bouncing_ball"), tmp_path / "project")
    assert not (tmp_path / "project").exists()


def test_projection_is_refused() -> None:
    with raises(kg.BuildError, "point_on_circle", "kg.Baumgarte", "NAME_constraints"):
        casadi_files(point_on_circle(), stabilization=kg.Projection())


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with raises(kg.BuildError, str(tmp_path), "empty"):
        emit_casadi(point_on_circle(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_the_example_swings_up(tmp_path: Path) -> None:
    script, figure = EXAMPLES / "cart_pole_swing_up.py", tmp_path / "motion.png"
    command = [sys.executable, "-W", "error", str(script), "--plot", str(figure)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert figure.exists()
