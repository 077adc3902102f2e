"""The functions of models in JAX: against C, against finite differences, and as modules of their own."""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from mechanisms import blocks, four_bars, upright
from messages import raises
from systems import example_names, initial, model_of

import kanegen as kg
from kanegen.emission.targets import emit_for
from kanegen.model.inputs import MULTIPLIER
from kanegen.program.kernels import KERNELS

pytestmark = pytest.mark.target
jax = pytest.importorskip("jax")

ROUNDING = 1e-9
"""Relative to the largest entry. XLA contracts products and sums otherwise than C, and sines differ in the last bit;
systems of equations multiply this by their condition, at most 1e6 at these states."""

SLOPES = 2e-7
"""The same of central differences with steps of 1e-6."""

SMALL = ("stick_slip_blocks", "muscle_arm", "rheonomic_particle", "lqr_cart_pole", "sampled_pid")
"""Contacts, states and splines, prescribed motions, laws, and laws with limits."""

LONGER = pytest.mark.campaign
"""XLA compiles for several seconds."""

TIME = me.dynamicsymbols._t


@pytest.fixture(autouse=True)
def doubles() -> Iterator[None]:
    """Double precision, and programs that XLA compiles in three quarters of the time."""
    names = ("jax_enable_x64", "jax_disable_most_optimizations")
    before = {name: jax.config.read(name) for name in names}
    for name in names:
        jax.config.update(name, True)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


@cache
def module_of(name: str, functions: str | None = None) -> ModuleType:
    return kg.derive(model_of(name)).to_jax(functions=functions)


def compiled(module: ModuleType, function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(function, compiler_options=module.CPU_OPTIONS)


def start(name: str) -> np.ndarray:
    begin = initial(name)
    return np.array([*begin["q"], *begin["u"], *begin.get("s", ())], dtype=float)


def states(name: str, inputs: int, count: int = 3) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """Times, states and inputs: the start of an example, and states around it off its constraints."""
    y, rng = start(name), np.random.default_rng(1)
    for k in range(count):
        yield 0.3 * k, y + (0.3 * rng.uniform(-1.0, 1.0, y.size) if k else 0.0), rng.uniform(0.1, 1.0, inputs)


def value_in_c(solver: kg.Solver, name: str, t: float, y: np.ndarray, r: np.ndarray) -> Any:
    """A function in C; None where it fails."""
    d = solver.description
    n_q, n = len(d.coordinates), len(d.coordinates) + len(d.speeds)
    more = [y[n:]] if d.states else []
    try:
        return np.asarray(solver._functions.get(name).value(t, y[:n_q], y[n_q:n], r if r.size else None, *more))
    except kg.SolveError:
        return None


def assert_close(actual: Any, expected: Any, tolerance: float, what: str) -> None:
    assert np.shape(actual) == np.shape(expected), what
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * scale, err_msg=what)


def compare(name: str) -> None:
    """All default functions of an example with those in C."""
    module, solver = module_of(name), kg.build(model_of(name))
    assert set(module.FUNCTIONS) == {*solver.description.functions, *solver.description.deferred} - {"rhs_stabilized"}
    has_inputs = bool(module.INPUTS)
    every = compiled(
        module, lambda t, y, r: {key: f(t, y, r if has_inputs else None) for key, f in module.FUNCTIONS.items()}
    )
    for t, y, r in states(name, len(module.INPUTS)):
        for function, value in every(t, y, r).items():
            expected = value_in_c(solver, function, t, y, r)
            if expected is None:
                assert np.isnan(value).all(), function
            else:
                assert_close(value, expected, ROUNDING, function)


@pytest.mark.parametrize("name", SMALL)
def test_all_functions_are_those_in_c(name: str) -> None:
    compare(name)


@LONGER
@pytest.mark.parametrize("name", [name for name in example_names() if name not in SMALL])
def test_all_functions_of_every_example(name: str) -> None:
    compare(name)


# -- derivatives and batches -------------------------------------------------------------------------------------------


def rates(name: str) -> Callable[..., Any]:
    module = module_of(name, "rhs")
    return lambda t, y, r, p: module.rhs(t, y, r if module.INPUTS else None, p)


def differences(f: Callable[..., Any], given: tuple[Any, ...], which: int) -> np.ndarray:
    """Central differences of f in one argument."""
    x, columns = np.atleast_1d(given[which]), []
    for k in range(x.size):
        moved = [x.copy(), x.copy()]
        h = 1e-6 * max(1e-2, abs(x[k]))
        moved[0][k] += h
        moved[1][k] -= h
        ends = [f(*given[:which], m if which else m[0], *given[which + 1 :]) for m in moved]
        columns.append((np.asarray(ends[0]) - np.asarray(ends[1])) / (2.0 * h))
    return np.array(columns).T


@pytest.mark.parametrize(
    "name",
    [
        "lqr_cart_pole",
        "rheonomic_particle",
        *(pytest.param(name, marks=LONGER) for name in ("slider_crank", "muscle_arm")),
    ],
)
def test_derivatives_in_all_arguments(name: str) -> None:
    module, f = module_of(name, "rhs"), rates(name)
    t, y, r = list(states(name, len(module.INPUTS)))[1]
    given = t, y, r, np.array([*module.PARAMETERS.values()])
    plain = compiled(module, f)
    forward = compiled(module, jax.jacfwd(f, (0, 1, 2, 3)))(*given)
    reverse = compiled(module, jax.jacrev(f, (0, 1, 2, 3)))(*given)
    for k, (ahead, back) in enumerate(zip(forward, reverse, strict=True)):
        np.testing.assert_allclose(back, ahead, rtol=1e-9, atol=1e-9 * max(1.0, float(np.abs(ahead).max(initial=0.0))))
        if ahead.size:
            assert_close(np.reshape(ahead, (y.size, -1)), differences(plain, given, k), SLOPES, f"argument {k}")


def test_a_rod_along_the_guide_has_finite_gradients_in_a_batch() -> None:
    """There the branch for other states divides by exactly zero, and vmap computes both branches."""
    module = module_of("slider_crank", "rhs")
    solver = kg.build(model_of("slider_crank"), functions=("rhs", "jacobians"))
    Y = np.array([[0.3, beta, 0.2, 0.4, 0.3, 0.1] for beta in (0.0, np.pi, np.pi / 2, 0.9)])

    def value_and_sum(y: Any) -> Any:
        rates = module.rhs(0.0, y)
        return jax.numpy.sum(rates), rates

    both = jax.vmap(jax.value_and_grad(value_and_sum, has_aux=True))
    (_, values), gradients = compiled(module, both)(Y)
    for y, value, gradient in zip(Y, values, gradients, strict=True):
        assert_close(value, solver.ode(0.0, y), ROUNDING, "rates")
        slopes = [solver._functions.get(f"jacobian_{name}").value(0.0, y[:3], y[3:]) for name in "qu"]
        assert_close(gradient, np.hstack(slopes).sum(axis=0), 1e-8, "gradient")


@LONGER
@pytest.mark.parametrize("beta", [0.9, 0.0])
def test_second_derivatives_exist_in_special_states_too(beta: float) -> None:
    module = module_of("slider_crank", "rhs")
    slope = jax.grad(lambda y: jax.numpy.sum(module.rhs(0.0, y)))
    y, plain = np.array([0.3, beta, 0.2, 0.4, 0.3, 0.1]), compiled(module, slope)
    expected = [(plain(y + step) - plain(y - step)) / 2e-6 for step in 1e-6 * np.eye(6)]
    assert_close(compiled(module, jax.jacfwd(slope))(y), np.array(expected), SLOPES, "second derivatives")


def test_a_batch_has_the_rows_of_single_states() -> None:
    module, rng = module_of("lqr_cart_pole", "rhs"), np.random.default_rng(3)
    Y, R = rng.normal(size=(5, 4)), rng.normal(size=(5, 1))
    P = np.array([*module.PARAMETERS.values()]) * rng.uniform(0.9, 1.1, (5, 1))
    rows = jax.vmap(module.rhs, (None, 0, 0, 0))(0.0, Y, R, P)
    single = [compiled(module, module.rhs)(0.0, *row) for row in zip(Y, R, P, strict=True)]
    np.testing.assert_allclose(rows, np.array(single), rtol=1e-12)


def test_a_gradient_through_an_integration_has_the_value_of_differences() -> None:
    module, h = module_of("lqr_cart_pole", "rhs"), 0.02

    def cost(length: Any) -> Any:
        def step(y: Any, _: Any) -> Any:
            def rate(z: Any) -> Any:
                return module.rhs(0.0, z, p={"l": length})

            k1 = rate(y)
            k2 = rate(y + h / 2 * k1)
            k3 = rate(y + h / 2 * k2)
            return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + h * k3)), None

        end, _ = jax.lax.scan(step, jax.numpy.array([0.0, 0.3, 0.0, 0.0]), length=50)
        return jax.numpy.sum(end**2)

    length, both = module.PARAMETERS["l"], compiled(module, jax.value_and_grad(cost))
    difference = (both(length + 1e-6)[0] - both(length - 1e-6)[0]) / 2e-6
    np.testing.assert_allclose(both(length)[1], difference, rtol=1e-6)


def test_multipliers_of_contacts_act_as_in_c() -> None:
    module = module_of("stick_slip_blocks", "rhs")
    solver = kg.build(model_of("stick_slip_blocks"), functions=("rhs", "jacobians"))
    d, y = solver.description, start("stick_slip_blocks") + 0.1
    n_q, r = len(d.coordinates), np.full(len(d.inputs), 0.2)
    forces = np.linspace(0.5, 1.0, len(d.contacts.rows))
    expected = solver._functions.get(f"jacobian_{MULTIPLIER}").value(0.1, y[:n_q], y[n_q:], r if r.size else None)
    rates = lambda forces: module.rhs(0.1, y, r if r.size else None, forces=forces)  # noqa: E731
    assert_close(jax.jacfwd(rates)(forces), expected, ROUNDING, "slopes")
    assert_close(rates(forces) - rates(None), expected @ forces, ROUNDING, "forces")


# -- constraints of any rank, and other kernels ------------------------------------------------------------------------


@LONGER
def test_a_redundant_chain_in_its_flat_position_moves_as_in_c() -> None:
    """Rows that depend on others always, and rows that do so in this position only."""
    model = four_bars(2)
    for form in ("pseudoinverse", "canonical"):
        module, solver = kg.derive(model).to_jax(form, "rhs"), kg.build(model, form=form, functions="rhs")
        q, u = upright(2)
        flat = np.concatenate([np.zeros_like(q), u])
        for y in (np.concatenate([q, u]), flat):
            assert_close(compiled(module, module.rhs)(0.0, y), solver.ode(0.0, y), 1e-8, form)
    slopes = compiled(module, jax.jacrev(module.rhs, 1))(0.0, np.concatenate([q, u]))
    assert np.isfinite(slopes).all()


SIZES = {"n": 4, "m": 3, "n_u": 5, "n_c": 3}


def system_of(kernel: str, seed: int) -> tuple[list[int], dict[str, np.ndarray]]:
    """Random arguments of a kernel; matrices that must be so are symmetric and positive definite."""
    record, rng = KERNELS[kernel], np.random.default_rng(seed)
    sizes = [SIZES[name] for name in record.sizes]
    arrays = {name: rng.normal(size=n) for name, n in record.lengths(*sizes).items()}
    for name in {"Q"} | ({"a"} if kernel.startswith("cholesky") else set()):
        if name in arrays:
            B = rng.normal(size=(5, 5))[: (n := round(arrays[name].size ** 0.5)), :n]
            arrays[name] = (B @ B.T + np.eye(n)).ravel()
    if "damping" in arrays:
        arrays["damping"] = np.array([0.8])
    if kernel.startswith("udwadia") or kernel == "canonical":
        arrays["J"][10:] = arrays["J"][:5] - 2.0 * arrays["J"][5:10]
    return sizes, arrays


def of_kernel(kernel: str) -> tuple[list[str], Callable[..., Any]]:
    """The names of the arrays that a kernel takes, and the kernel as a function of them."""
    from kanegen.emission.jax.runtime import definitions, kernel_texts

    scope: dict[str, Any] = {"functools": functools, "jax": jax, "jnp": jax.numpy, "lax": jax.lax}
    exec("\n\n".join(kernel_texts(f"kg_{kernel}")), scope)

    def results(sizes: tuple[int, ...], *arrays: Any) -> Any:
        ok, *found = scope[f"kg_{kernel}"](*sizes, *arrays)
        return jax.numpy.where(ok, 0.0, jax.numpy.nan), [scope["kg_vector"](part) for part in found]

    names = definitions()[f"kg_{kernel}"].parameters
    return [name for name in names if name not in KERNELS[kernel].sizes], jax.jit(results, static_argnums=0)


def keeping_the_rank(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The last of three constraint rows as a combination of the others, in its rates and right sides too."""
    result = dict(arrays)
    for name, width in (("J", 5), ("G", 5), ("b", 1), ("h", 1)):
        if name in arrays:
            rows = arrays[name].reshape(3, width)
            result[name] = np.vstack([rows[:2], rows[0] - 2.0 * rows[1]]).ravel()
    if "X" in arrays:
        rows = arrays["X"].reshape(8, 3)
        result["X"] = np.vstack([rows[:7], rows[5] - 2.0 * rows[6]]).ravel()
    return result


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_are_their_twins(kernel: str) -> None:
    record, (names, function) = KERNELS[kernel], of_kernel(kernel)
    for seed in range(2):
        sizes, arrays = system_of(kernel, seed)
        failed, found = function(tuple(sizes), *(arrays[name] for name in names))
        after = {name: list(values) for name, values in arrays.items()}
        assert np.isnan(failed) == (record.twin(*sizes, *after.values()) < 0)
        if not np.isnan(failed):
            rows = SIZES["n_u"] * SIZES["m"] if kernel == "udwadia_kalaba_many" else None
            for name, value in zip(record.results, found, strict=True):
                assert_close(np.asarray(value)[:rows], np.array(after[name])[:rows], ROUNDING, name)


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name != "partition"])
def test_derivatives_of_kernels_are_those_of_differences(kernel: str) -> None:
    """Along directions that keep the rank of dependent constraints."""
    names, function = of_kernel(kernel)
    sizes, arrays = system_of(kernel, 0)
    direction = {name: np.random.default_rng(5).normal(size=x.size) for name, x in arrays.items()}
    if kernel.startswith("udwadia") or kernel == "canonical":
        arrays, direction = keeping_the_rank(arrays), keeping_the_rank(direction)
    at, along = ([part[name] for name in names] for part in (arrays, direction))

    def values(*given: Any) -> Any:
        return function(tuple(sizes), *given)[1]

    _, slopes = jax.jvp(values, tuple(at), tuple(along))
    ends = [values(*(x + h * d for x, d in zip(at, along, strict=True))) for h in (1e-6, -1e-6)]
    for slope, ahead, back in zip(slopes, *ends, strict=True):
        assert_close(slope, (np.asarray(ahead) - np.asarray(back)) / 2e-6, 1e-6, kernel)


# -- arguments ---------------------------------------------------------------------------------------------------------


def particle(force: Any, **fields: Any) -> kg.Model:
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    return kg.Model(
        name="particle",
        frame=N,
        coordinates=(x,),
        speeds=(v,),
        kinematics=(v - x.diff(TIME),),
        bodies=(me.Particle("P", P, sm.Symbol("m")),),
        loads=((P, force(x, v) * N.x),),
        **fields,
    )


def test_values_by_name_and_what_is_missing() -> None:
    k = sm.Symbol("k")
    module = kg.derive(particle(lambda x, v: -k * x, parameters={k: 3.0})).to_jax()
    with raises(ValueError, "m", "give them in p"):
        module.rhs(0.0, [1.0, 2.0])
    np.testing.assert_allclose(module.rhs(0.0, [1.0, 2.0], p={"m": 2.0}), [2.0, -1.5])
    by_name = {"k": 2.0, "m": 4.0}
    given = [by_name[name] for name in module.PARAMETERS]
    np.testing.assert_allclose(module.rhs(0.0, [1.0, 2.0], p=given), [2.0, -0.5])
    with raises(ValueError, "p has no mass", "there are"):
        module.rhs(0.0, [1.0, 2.0], p={"mass": 2.0})
    with raises(ValueError, "y has shape (2, 2)", "jax.vmap"):
        module.rhs(0.0, np.ones((2, 2)), p={"m": 2.0})
    with raises(ValueError, "p has shape (1,)", "expected (2,)"):
        module.rhs(0.0, [1.0, 2.0], p=[1.0])


def test_a_value_that_does_not_exist_is_nan() -> None:
    """A spline beyond its points, alone and in one row of a batch, with its slope."""
    spring = kg.Spline([-1.0, 0.0, 0.5, 1.0], [-1.0, 0.0, 1.0, 4.0], name="spring")
    module = kg.derive(particle(lambda x, v: -spring(x))).to_jax()
    Y = np.array([[0.4, 0.0], [1.5, 0.0], [1.0, 0.0]])
    f = lambda y: module.rhs(0.0, y, p={"m": 2.0})  # noqa: E731
    found, slopes = jax.vmap(f)(Y), jax.vmap(jax.jacrev(f))(Y)
    np.testing.assert_allclose(found[:, 1], [-spring.python(0.4) / 2.0, np.nan, -2.0], rtol=1e-13)
    assert np.isnan(slopes[1]).all()
    np.testing.assert_allclose(slopes[0, 1, 0], -spring.derivative().python(0.4) / 2.0, rtol=1e-12)


@pytest.mark.parametrize("extrapolate", ["constant", "polynomial"])
def test_splines_continue_as_in_c(extrapolate: str) -> None:
    spring = kg.Spline([-1.0, 0.0, 0.5, 1.0], [-1.0, 0.0, 1.0, 4.0], extrapolate=extrapolate)
    module = kg.derive(particle(lambda x, v: -spring(x))).to_jax()
    for x in (-3.0, -1.0, -0.2, 0.0, 0.5, 1.0, 2.5):
        np.testing.assert_allclose(
            module.rhs(0.0, [x, 0.0], p={"m": 1.0})[1], -spring.python(x), rtol=1e-13, atol=1e-15
        )


def test_functions_of_the_user_are_traced_or_refused(tmp_path: Path) -> None:
    def of(python: Callable[..., Any]) -> kg.Model:
        square = kg.Function("square", 1, python=python, c="x*x", derivatives=(lambda x: 2 * x,))
        return particle(lambda x, v: -square(x))

    module = kg.derive(of(lambda x: x * x)).to_jax(functions="rhs")
    assert float(jax.grad(lambda y: module.rhs(0.0, y, p={"m": 1.0})[1])(np.array([3.0, 0.0]))[0]) == -6.0
    with raises(kg.BuildError, "'square'", "jax.numpy"):
        kg.derive(of(lambda x: x * x if x > 0 else -x * -x)).to_jax()
    with raises(kg.BuildError, "'square'", "to_jax()", "kg.Table"):
        emit_for("jax", of(lambda x: x * x), tmp_path / "particle")


def test_gains_are_part_of_the_rates_and_projection_is_refused() -> None:
    model, gains = model_of("slider_crank"), kg.Baumgarte(25.0, 10.0)
    module = kg.derive(model).to_jax(stabilization=gains)
    solver = kg.build(model, stabilization=gains)
    y = start("slider_crank") + 0.1
    assert_close(module.rhs(0.0, y), solver.ode(0.0, y), ROUNDING, "rates")
    assert "rhs_stabilized" not in module.FUNCTIONS
    with raises(kg.BuildError, "project", "kg.Baumgarte"):
        kg.derive(model).to_jax(stabilization=kg.Projection())


def test_single_precision_computes_with_its_own_tolerances() -> None:
    jax.config.update("jax_enable_x64", False)
    module, y = module_of("slider_crank", "rhs"), start("slider_crank")
    found = module.rhs(0.0, y)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, kg.build(model_of("slider_crank")).ode(0.0, y), rtol=2e-4, atol=2e-4)


# -- modules as files --------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import crank
assert not [name for name in sys.modules if name.startswith(("kanegen", "sympy"))]
y = jnp.array([*crank.COORDINATES.values(), *crank.SPEEDS.values()])
print(*jax.jit(crank.rhs)(crank.T0, y, p={{"m1": 2.5}}).tolist())
"""


def test_an_emitted_module_needs_jax_only(tmp_path: Path) -> None:
    begin = initial("slider_crank")
    model = model_of("slider_crank")
    names = [str(x.func) if hasattr(x, "func") else str(x) for x in (*model.coordinates, *model.speeds)]
    values = dict(zip(names, [*begin["q"], *begin["u"]], strict=True))
    folder = emit_for("jax", model, tmp_path / "crank", name="crank", values=values)
    done = subprocess.run(
        [sys.executable, "-B", "-c", SCRIPT.format(folder=str(folder))],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    solver = kg.build(model).with_parameters({"m1": 2.5})
    np.testing.assert_allclose(
        np.array(done.stdout.split(), dtype=float), solver.ode(0.0, start("slider_crank")), rtol=1e-12
    )
    assert [path.name for path in folder.iterdir()] == ["crank.py"]
    with raises(kg.BuildError, "no option single_header", "'c'"):
        emit_for("jax", model, tmp_path / "other", single_header=True)


def test_the_text_of_a_file_is_the_one_that_is_executed(tmp_path: Path) -> None:
    """It does not depend on what was derived before."""
    equations = kg.derive(model_of("slider_crank"))
    assert equations.T.operation_count > 0
    module = equations.to_jax()
    folder = emit_for("jax", model_of("slider_crank"), tmp_path / "slider_crank")
    assert (folder / "slider_crank.py").read_text() == module.__text__
    assert "kg_sincos" in inspect.getsource(module._rhs)


def test_names_of_the_user_are_no_code() -> None:
    quote = sm.Symbol('m"""; raise SystemExit #\\')
    model = blocks()
    assert kg.derive(model).to_jax(functions="rhs").rhs(0.0, np.zeros(4)).shape == (4,)
    module = kg.derive(particle(lambda x, v: -quote * x)).to_jax(functions="rhs")
    np.testing.assert_allclose(module.rhs(0.0, [1.0, 0.0], p={"m": 1.0, quote.name: 2.0}), [0.0, -2.0])
