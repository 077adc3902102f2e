"""Evaluation on vector lanes: equal to the functions at one state, for any layout, number of rows and threads."""

from __future__ import annotations

import pickle
import re
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from ccompile import C_COMPILER
from messages import raises, says
from state_models import cart, point_mass, solver_of
from systems import solver_for
from tolerances import LANES

import kanegen as kg
from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.codegen.lanes import BATCH_FILE, MANY_FILE, batch_sources, many_sources

ROWS = 29


@cache
def crank_states() -> tuple[Any, Any, Any]:
    """t (N,), q (N, 3), u (N, 3), column-major; some rows need other dependent speeds, or angles beyond 1e5 rad."""
    rng = np.random.default_rng(11)
    q, u = (np.asfortranarray(rng.uniform(-2.0, 2.0, (ROWS, 3))) for _ in range(2))
    q[3, 1] = q[17, 1] = 1e-5
    q[5, 0], q[6, 1] = 4e6, -3e8
    return rng.uniform(0.0, 1.0, ROWS), q, u


def needs_flags(*flags: str) -> pytest.MarkDecorator:
    """Skip a test on processors other than those of x86 that have these instructions."""
    info = Path("/proc/cpuinfo")
    known = re.findall(r"^flags\s*:(.*)$", info.read_text(encoding="utf-8"), re.MULTILINE) if info.exists() else []
    return pytest.mark.skipif(not known or not {*flags} <= {*known[0].split()}, reason=f"needs {', '.join(flags)}")


def close(batch: Any, rows: Any) -> None:
    for ours, theirs in zip(batch, rows, strict=True):
        scale = np.abs(theirs).max(axis=1, keepdims=True) + 1.0
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours / scale, theirs / scale, rtol=0.0, atol=LANES)


def test_a_batch_equals_the_functions_at_single_states() -> None:
    solver, (t, q, u) = solver_for("slider_crank"), crank_states()
    batch, rows = solver.rhs_batch(t, q, u), solver.rhs(t, q, u)
    close(batch, rows)
    assert not batch.failures
    for row in (3, 5, 6, 17):  # evaluated by the function at one state
        np.testing.assert_array_equal(batch[1][row], rows[1][row])
    assert batch[1].flags.f_contiguous


def test_a_row_does_not_depend_on_others_layout_or_threads() -> None:
    solver, (t, q, u) = solver_for("slider_crank"), crank_states()
    qdot, udot = solver.rhs_batch(t, q, u)
    wide = np.full((2 * ROWS, 12), np.nan)
    wide[::2, 1:7:2], wide[::2, 7:10] = q, u
    for threads in (1, 2, 5):
        out = (np.empty((ROWS, 6))[:, 3:], np.empty((ROWS, 3), order="F"))
        solver.rhs_batch(t, wide[::2, 1:7:2], wide[::2, 7:10], out=out, threads=threads)
        np.testing.assert_array_equal(out, (qdot, udot))
    for first in range(ROWS):
        part = slice(first, min(first + 1 + first % 11, ROWS))
        np.testing.assert_array_equal(solver.rhs_batch(t[part], q[part], u[part])[1], udot[part])
    backward = solver.rhs_batch(t[::-1], q[::-1], u[::-1], out=(np.empty((ROWS, 3)), out := np.empty((ROWS, 3))[::-1]))
    np.testing.assert_array_equal(backward[1][::-1], udot)
    assert backward[1] is out


def test_many_rows_have_the_bits_of_few() -> None:
    """Arrays longer than a tile, which begin anywhere in a line of the cache; rows that are redone are among them."""
    solver, (t, q, u) = solver_for("slider_crank"), crank_states()
    few, count = solver.rhs_batch(t, q, u), 701
    which = np.random.default_rng(3).integers(ROWS, size=count)
    for start in range(3):
        columns = [np.empty((count + start, 3), order="F")[start:] for _ in range(4)]
        columns[0][:], columns[1][:] = q[which], u[which]
        many = solver.rhs_batch(t[which], *columns[:2], out=tuple(columns[2:]))
        assert not many.failures
        np.testing.assert_array_equal(many, [part[which] for part in few])


def test_rows_fail_alone() -> None:
    solver, (t, q, u) = solver_for("slider_crank"), crank_states()
    rows, (bad, speeds) = solver.rhs_batch(t, q, u), (q.copy(), u.copy())
    bad[2, 1], speeds[28, 0] = np.nan, np.inf
    lengths = {"l1": np.where(np.arange(ROWS) == 9, 0.0, 0.5), "l2": np.where(np.arange(ROWS) == 9, 0.0, 1.2)}
    batch = solver.rhs_batch(t, bad, speeds, parameters=lengths)
    assert list(batch.failures) == [2, 9, 28]
    says(batch.failures[2], "beta", "q[1]", "nan")
    says(batch.failures[9], "singular", "rhs")
    says(batch.failures[28], "u1", "inf")
    says(repr(batch.failures), 3, 2, "beta")
    good = ~np.isin(np.arange(ROWS), [2, 9, 28])
    assert all(np.isnan(part[~good]).all() for part in batch)
    close([part[good] for part in batch], [part[good] for part in rows])
    with pytest.raises(KeyError):
        batch.failures[0]
    other = pickle.loads(pickle.dumps(batch))
    assert dict(other.failures) == dict(batch.failures)
    close([part[good] for part in other], [part[good] for part in rows])


def test_contiguous_arrays_have_the_same_results() -> None:
    """Calls whose arrays are read and written without preparations."""
    solver, (_, q, u) = solver_for("slider_crank"), crank_states()
    q = q.copy("F")
    q[4, 0] = np.nan
    rates = solver.rhs_batch(np.zeros(ROWS), q, u)
    energies = solver.batch("kinetic_energy", np.zeros(ROWS), q, u)
    assert list(rates.failures) == [4]
    for order in ("F", "C"):
        out = (np.empty((ROWS, 3), order=order), np.empty((ROWS, 3), order=order))
        ours = solver.rhs_batch(0.0, np.array(q, order=order), u, out=out)
        assert ours[0] is out[0]
        np.testing.assert_array_equal(ours, rates)
        assert {**ours.failures} == {**rates.failures}
        assert not solver.rhs_batch(0.0, q[5:], u[5:], out=(out[0][5:], out[1][5:])).failures
        np.testing.assert_array_equal(out, rates)
    new = solver.rhs_batch(0.0, q, u)
    assert all(part.flags.f_contiguous for part in new)
    np.testing.assert_array_equal(new, rates)
    assert {**new.failures} == {**rates.failures}
    again = solver.rhs_batch(0.0, q[::-1].copy("F"), u[::-1].copy("F"), out=new)
    assert again[0] is new[0]
    np.testing.assert_array_equal([part[::-1] for part in again], rates)
    energy = np.empty(ROWS)
    ours = solver.batch("kinetic_energy", 0.0, q, u, out=energy)
    np.testing.assert_array_equal(energy, energies.values)
    assert {**ours.failures} == {**energies.failures}


def test_tiles_of_any_length_have_the_same_results() -> None:
    """Tiles of column-major arrays have more rows than those of row-major arrays; the work space is kept and grows."""
    solver, rng = solver_for("slider_crank"), np.random.default_rng(4)
    q, u = (rng.uniform(-2.0, 2.0, (1500, 3)) for _ in range(2))
    values = [
        solver.batch("momentum", 0.0, np.array(q, order=order), np.array(u, order=order)).values
        for order in ("C", "F", "C")
    ]
    np.testing.assert_array_equal(values, [values[0]] * 3)


def test_parameters_for_each_row() -> None:
    """Constants that depend on parameters are computed on lanes, too."""
    solver, (t, q, u) = solver_for("slider_crank"), crank_states()
    masses = np.linspace(0.5, 2.0, ROWS)
    batch = solver.rhs_batch(t, q, u, parameters={"m2": masses, sm.Symbol("g"): 1.6})
    singles = [solver.with_parameters(m2=m, g=1.6).rhs(t[k], q[k], u[k]) for k, m in enumerate(masses.tolist())]
    close(batch, [np.array(part) for part in zip(*singles, strict=True)])
    masses[4] = np.nan
    batch = solver.rhs_batch(t, q, u, parameters={"m2": masses})
    assert list(batch.failures) == [4]
    says(batch.failures[4], "m2", "nan")


def test_states_inputs_and_outputs() -> None:
    """A model with states; values by name, inputs with and without rows, an output that is a scalar."""
    solver, rng = solver_of("cart"), np.random.default_rng(5)
    q, u, s = (rng.standard_normal((ROWS, n)) for n in (1, 1, 2))
    batch = solver.rhs_batch(0.0, {"x": q[:, 0]}, u, s=s)
    close(batch, solver.rhs(0.0, q, u, None, s))
    r = rng.standard_normal((ROWS, 1))
    values, failures = solver.batch("lag", 0.0, q, u, r, s)
    np.testing.assert_allclose(values, solver.output("lag", 0.0, q, u, r, s), rtol=LANES)
    assert values.shape == (ROWS,)
    assert not failures
    with raises(kg.SolveError, "a", "lag", "s="):
        solver.batch("lag", 0.0, q, u)


def test_functions_without_lanes_are_called_for_each_lane() -> None:
    """A user function, a spline, a law of the C library, a choice, and a root."""
    t, (x, v) = me.dynamicsymbols._t, me.dynamicsymbols("x v")
    cube = kg.Function("cube", 1, lambda a: a**3, "return a * a * a;", arguments=("a",))
    spline = kg.Spline((-3.0, -1.0, 0.5, 3.0), (0.1, 0.7, -0.3, 0.4), name="spline")
    force = spline(x) + sm.exp(-x) * sm.Abs(v) ** sm.Rational(5, 2) + sm.sqrt(2 + sm.sin(t)) * sm.Max(x, v) - cube(v)
    solver = kg.build(point_mass("lane_functions", force, parameters={"m": 1.3}), functions=("rhs",))
    rng = np.random.default_rng(8)
    time, q, u = rng.uniform(0.0, 9.0, ROWS), *rng.uniform(-2.0, 2.0, (2, ROWS, 1))
    close(solver.rhs_batch(time, q, u), solver.rhs(time, q, u))


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no extended precision")
@pytest.mark.parametrize(
    ("flag", "ulps"),
    [
        pytest.param("-march=native", 3.6, id="this processor"),
        pytest.param("-march=x86-64-v3", 1.5, id="AVX2", marks=needs_flags("avx2", "fma")),
        pytest.param("-march=x86-64", 0.9, id="SSE2", marks=needs_flags("sse2")),
    ],
)
def test_sines_and_cosines_have_small_errors(flag: str, ulps: float) -> None:
    """Angles of all sizes, and those next to multiples of pi/8 and pi/2, against extended precision."""
    x = me.dynamicsymbols("x")
    outputs = {"turn": sm.Matrix([sm.sin(x), sm.cos(x)])}
    usual = CompilerOptions()
    options = replace(usual, lanes=tuple(flag if given == "-march=native" else given for given in usual.lanes))
    solver = kg.build(
        point_mass("lane_sine", 0, outputs=outputs, parameters={"m": 1.0}), functions=("outputs",), compiler=options
    )
    rng = np.random.default_rng(2)
    spread = [rng.uniform(-size, size, 20000) for size in (1.0, 10.0, 1e5)]
    multiples = [rng.integers(-60000, 60000, 20000) * part for part in (np.pi / 8, np.pi / 2)]
    angles = np.concatenate([*spread, *multiples])
    values, failures = solver.batch("turn", 0.0, angles[:, np.newaxis], [0.0])
    assert not failures
    for found, function in zip(values.reshape(-1, 2).T, (np.sin, np.cos), strict=True):
        exact = function(angles.astype(np.longdouble))
        # The second term is the error of the reduced angle.
        allowed = ulps * np.spacing(np.abs(exact.astype(np.float64))) + 1e-27
        assert np.all(np.abs(found - exact) < allowed)


@pytest.mark.parametrize("name", ["slider_crank", "rolling_disk", "varying_pendulum"])
def test_every_function_has_a_text_on_lanes(name: str) -> None:
    """No statement of the scalar kernel remains that lanes cannot execute."""
    sources = solver_for(name).sources
    public = set(re.findall(r'^    \{"([\w:]+)", -?\d', sources.text(sources.kernel), re.MULTILINE))
    assert {"rhs", "kinetic_energy"} <= public
    texts = {function: batch_sources(sources, function)[BATCH_FILE] for function in public}
    on_lanes = {function for function, text in texts.items() if "#define KG_BATCH_EVALUATE" in text}
    assert "kinetic_energy" in on_lanes
    for function in on_lanes:
        code = re.sub(r"/\*.*?\*/", "", texts[function], flags=re.DOTALL)
        assert not re.search(r"!\(|\|\||KG_CALL\(result, kg_|\bif \(|\? |return (?!redo)", code), function


@pytest.mark.parametrize("file", [BATCH_FILE, MANY_FILE])
def test_code_on_lanes_compiles_without_warnings(file: str, tmp_path: Path) -> None:
    sources = solver_for("slider_crank").sources
    files = batch_sources(sources, "rhs") if file == BATCH_FILE else many_sources(sources, "rhs", "dopri5")
    assert files is not None
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    flags = ("-Wall", "-Werror", "-Wno-unused-function", "-fsyntax-only")
    command = [C_COMPILER.command, *CompilerOptions().lanes, *flags, file]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr


def test_arguments_are_refused() -> None:
    solver, (t, q, u) = solver_for("slider_crank"), crank_states()
    out, fixed, table = np.empty((ROWS, 3)), np.empty((ROWS, 3)), np.ones((ROWS, 4))
    fixed.flags.writeable = False
    for arguments, options, words in (
        ((t[1:], q, u), {}, ("t", 28, "q", 29)),
        ((t, q[:, :2], u), {}, ("q", "theta", "(29, 2)")),
        ((t, q, u), {"threads": 0}, ("threads", 0)),
        ((t, q, u), {"threads": 1.5}, ("threads", 1.5)),
        ((t, q, u), {"out": out}, ("out", "qdot", "udot")),
        ((t, q, u), {"out": (out,)}, ("tuple of length 1", "2 array(s)", "udot (29, 3)")),
        ((t, q, u), {"out": (out, np.empty((ROWS, 3), dtype=np.float32))}, ("out", "udot", "float32")),
        ((t, q, u), {"out": (out, out)}, ("out (udot)", "out (qdot)")),
        ((t, q, u), {"out": (out, q)}, ("out (udot)", "q")),
        ((t, q, u), {"out": (out, np.lib.stride_tricks.as_strided(out, strides=(0, 8)))}, ("udot", "strides")),
        ((t, q, u), {"out": out}, ("out", "float64", "(29, 3)")),
        ((t, q, u), {"out": (out, fixed)}, ("udot", "read-only")),
        ((t, q, u), {"out": (table[:, :3], out), "parameters": {"m1": table[:, 1]}}, ("out (qdot)", "parameter m1")),
        ((t, q, u), {"parameters": {"m1": np.ones((ROWS, 2))}}, ("m1", "(29, 2)", "(N,)")),
        ((t, q, u), {"parameters": {"mass": 1.0}}, ("mass", "m1")),
        ((t, q, u), {"parameters": {"m1": np.ones(3)}}, ("m1", 3)),
        ((t, q, u, None, [1.0]), {}, ("s", "states")),
    ):
        for time in (arguments[0], 0.0) if arguments[0] is t else arguments[:1]:
            with raises(kg.SolveError, *words):
                solver.rhs_batch(time, *arguments[1:], **options)
    with raises(kg.SolveError, "rsh", "rhs"):
        solver.batch("rsh", t, q, u)
    assert [part.shape for part in solver.rhs_batch(t[:0], q[:0], u[:0])] == [(0, 3), (0, 3)]
    with raises(kg.BuildError, "interpreted", "cython"):
        kg.build(cart(), backend="interpreted").batch("kinetic_energy", 0.0, [0.1], [0.2])
