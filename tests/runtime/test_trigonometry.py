"""The sines, cosines and tangents without the C library, in both precisions, against mpmath."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ccompile
import mpmath
import numpy as np
import pytest
from ccompile import Compiler, with_each_compiler
from numpy.typing import NDArray
from tolerances import SINCOS_ULPS, TANGENT_ULPS

Array = NDArray[Any]
Evaluate = Callable[[Array], tuple[Array, Array, Array]]
SCALARS = {"double": np.float64, "float": np.float32}
LARGEST = {"double": 308.0, "float": 38.0}
NEAR = {"double": 1e5, "float": 400.0}


@pytest.fixture(scope="module", params=SCALARS)
def precision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=ccompile.PROCESSORS.values(), ids=ccompile.PROCESSORS)
def evaluate(request: pytest.FixtureRequest, precision: str, tmp_path_factory: pytest.TempPathFactory) -> Evaluate:
    flags = ("-Wdouble-promotion", *(["-DKG_FLOAT"] if precision == "float" else []), *request.param)
    folder = tmp_path_factory.mktemp("trigonometry")
    library = ccompile.shared_library(ccompile.host_source("trigonometry.c"), folder, *flags)

    def call(x: Array) -> tuple[Array, Array, Array]:
        x = np.ascontiguousarray(x, SCALARS[precision])
        sine, cosine, tangent = (np.empty_like(x) for _ in range(3))
        groups = np.empty((2, x.size), x.dtype)
        library.evaluate(
            ctypes.c_int(x.size), *(a.ctypes.data_as(ctypes.c_void_p) for a in (x, sine, cosine, tangent, groups))
        )
        # The bits do not depend on the other angles of a vector.
        np.testing.assert_array_equal(groups, [sine, cosine])
        return sine, cosine, tangent

    return call


def angles(kind: str, precision: str) -> Array:
    random = np.random.default_rng(7)
    if kind == "multiples of a quarter turn":
        counts = [
            *range(1, 200),
            *random.integers(200, 10**6, 500),
            *(10.0 ** random.uniform(6, 15, 500)).astype(np.int64),
        ]
        with mpmath.workdps(40):
            return np.array([float(int(k) * mpmath.pi / 2) for k in counts])
    if kind == "all sizes":
        return random.choice([-1, 1], 1500) * 10.0 ** random.uniform(-LARGEST[precision], LARGEST[precision], 1500)
    ends = {"one turn": math.pi, "near": NEAR[precision], "beyond the near ones": 20 * NEAR[precision]}
    return random.uniform(-ends[kind], ends[kind], 1500)


def errors(values: Array, x: Array, function: Callable[[Any], Any]) -> float:
    """The largest error in units in the last place."""
    with mpmath.workdps(60):
        exact = [function(mpmath.mpf(float(a))) for a in x]
        units = np.spacing(np.abs(np.array([float(e) for e in exact])).astype(values.dtype))
        return max(
            float(abs(mpmath.mpf(float(v)) - e) / mpmath.mpf(float(unit)))
            for v, e, unit in zip(values, exact, units, strict=True)
        )


@pytest.mark.parametrize(
    "kind", ["one turn", "near", "beyond the near ones", "all sizes", "multiples of a quarter turn"]
)
def test_errors_in_units_in_the_last_place(kind: str, precision: str, evaluate: Evaluate) -> None:
    x = angles(kind, precision).astype(SCALARS[precision])
    sine, cosine, tangent = evaluate(x)
    assert errors(sine, x, mpmath.sin) < SINCOS_ULPS
    assert errors(cosine, x, mpmath.cos) < SINCOS_ULPS
    assert errors(tangent, x, mpmath.tan) < TANGENT_ULPS


def test_the_angle_closest_to_a_multiple_of_a_quarter_turn(precision: str, evaluate: Evaluate) -> None:
    """The largest cancellation of each precision (J.-M. Muller, Elementary Functions, 2016, table 11.1)."""
    x = np.array(
        [{"double": 6381956970095103.0 * 2.0**797, "float": 16367173.0 * 2.0**72}[precision]], SCALARS[precision]
    )
    sine, cosine, _ = evaluate(x)
    assert min(abs(float(sine[0])), abs(float(cosine[0]))) < {"double": 1e-18, "float": 2e-9}[precision]
    assert errors(sine, x, mpmath.sin) < SINCOS_ULPS
    assert errors(cosine, x, mpmath.cos) < SINCOS_ULPS


def test_special_angles(evaluate: Evaluate) -> None:
    sine, cosine, tangent = evaluate(np.array([0.0, -0.0, math.nan, math.inf, -math.inf]))
    for odd in (sine, tangent):
        np.testing.assert_array_equal(odd, [0.0, 0.0, math.nan, math.nan, math.nan])
        assert list(np.signbit(odd[:2])) == [False, True]
    np.testing.assert_array_equal(cosine, [1.0, 1.0, math.nan, math.nan, math.nan])


@pytest.mark.parametrize("flags", [(), ("-DKG_FLOAT",)], ids=SCALARS)
@with_each_compiler
def test_compilers_accept_every_runtime_header(compiler: Compiler, flags: tuple[str, ...], tmp_path: Path) -> None:
    headers = ccompile.runtime_headers()
    source = "".join(f'#include "{name}"\n' for name in headers)
    strict = ("-Wdouble-promotion", "-Wfloat-conversion", "-shared", "-fPIC")
    ccompile.compile_source(compiler, source, tmp_path / "all", *strict, *flags)
