"""The vector sines and cosines against mpmath, in units in the last place."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from pathlib import Path

import ccompile
import mpmath
import numpy as np
import pytest
from ccompile import Compiler, with_each_compiler
from compiled import DOUBLES
from numpy.typing import NDArray
from tolerances import SINCOS_ULPS

Array = NDArray[np.float64]
QUARTERS = 1e5 / (math.pi / 2)
ANGLES: dict[str, Callable[[np.random.Generator], Array]] = {
    "one turn": lambda random: random.uniform(-math.pi, math.pi, 3000),
    "all sizes": lambda random: random.choice([-1, 1], 3000) * np.exp(random.uniform(-30, math.log(1e5), 3000)),
    "tiny": lambda random: 10.0 ** random.uniform(-308, -5, 500),
    "next to eighths of a turn": lambda random: np.round(random.uniform(0, 2 * QUARTERS, 3000)) * (math.pi / 4),
    "beyond the limit": lambda random: 10.0 ** random.uniform(5, 300, 500),
}


@pytest.fixture(scope="module", params=ccompile.PROCESSORS.values(), ids=ccompile.PROCESSORS)
def kg_sincos(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Array], tuple[Array, Array]]:
    folder = tmp_path_factory.mktemp("sincos")
    library = ccompile.shared_library(ccompile.host_source("sincos.c"), folder, *request.param)

    def call(x: Array) -> tuple[Array, Array]:
        sine, cosine = np.empty_like(x), np.empty_like(x)
        library.evaluate(ctypes.c_int(x.size), *(a.ctypes.data_as(DOUBLES) for a in (x, sine, cosine)))
        return sine, cosine

    return call


def worst(values: Array, x: Array, function: Callable[[object], object]) -> float:
    with mpmath.workdps(60):
        exact = [function(mpmath.mpf(float(a))) for a in x]
        return max(
            float(abs(mpmath.mpf(float(v)) - e)) / float(np.spacing(abs(float(e))))
            for v, e in zip(values, exact, strict=True)
        )


@pytest.mark.parametrize("kind", ANGLES)
def test_errors_in_units_in_the_last_place(kind: str, kg_sincos: Callable[[Array], tuple[Array, Array]]) -> None:
    x = ANGLES[kind](np.random.default_rng(7))
    sine, cosine = kg_sincos(x)
    assert worst(sine, x, mpmath.sin) < SINCOS_ULPS
    assert worst(cosine, x, mpmath.cos) < SINCOS_ULPS


def test_the_angles_closest_to_multiples_of_a_quarter_turn(kg_sincos: Callable[[Array], tuple[Array, Array]]) -> None:
    with mpmath.workdps(40):
        near = np.array([float(k * mpmath.pi / 2) for k in range(1, int(QUARTERS))])
    sine, cosine = kg_sincos(near)
    hardest = np.argsort(np.minimum(abs(sine), abs(cosine)))[:1000]
    assert worst(sine[hardest], near[hardest], mpmath.sin) < SINCOS_ULPS
    assert worst(cosine[hardest], near[hardest], mpmath.cos) < SINCOS_ULPS


def test_special_angles(kg_sincos: Callable[[Array], tuple[Array, Array]]) -> None:
    sine, cosine = kg_sincos(np.array([0.0, -0.0, math.nan, math.inf, -math.inf]))
    np.testing.assert_array_equal(sine, [0.0, 0.0, math.nan, math.nan, math.nan])
    np.testing.assert_array_equal(cosine, [1.0, 1.0, math.nan, math.nan, math.nan])


@pytest.mark.parametrize("optimization", ["-O0", "-O3"])
@pytest.mark.parametrize("processor", ccompile.PROCESSORS.values(), ids=ccompile.PROCESSORS)
@with_each_compiler
def test_few_angles_compile_without_warnings(
    compiler: Compiler, processor: tuple[str, ...], optimization: str, tmp_path: Path
) -> None:
    source = '#include "kg_sincos.h"\n'
    for n in range(1, 6):
        arguments = f"const double x[{n}], double s[{n}], double c[{n}]"
        copies = f"double y[{n}], z[{n}]; kg_sincos({n}, x, y, z); s[0] = y[{n - 1}]; c[0] = z[0];"
        source += f"void f{n}({arguments}); void f{n}({arguments}) {{ {copies} }}\n"
    ccompile.compile_source(compiler, source, tmp_path / "angles", optimization, *processor, "-shared", "-fPIC")


@with_each_compiler
def test_other_scalars_use_their_own_functions(compiler: Compiler, tmp_path: Path) -> None:
    base = ccompile.runtime_headers()["kg_base.h"]
    assert "#ifndef KG_REAL_DEFINED" in base
    ccompile.run_program(compiler, ccompile.host_source("sincos_float.c"), tmp_path)
