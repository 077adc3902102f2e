"""Derivatives of transcriptions agree with differences; schemes are exact for polynomials of their order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sm
from controlled import F, a, c, everything, m, t, v, w, x, y
from scipy.sparse import csr_array

from kanegen.control.code import PointCode, point_code
from kanegen.control.layout import layout_of
from kanegen.control.program import NonlinearProgram
from kanegen.control.schemes import NAMED, scheme_of
from kanegen.control.statement import Statement, state
from kanegen.control.terms import AtEnd, AtStart, AtTime, Duration, Integral, SampleSum
from kanegen.control.transcription import transcribe


def statement(scheme: str) -> Statement:
    cost = Integral(F**2 * m + sm.exp(x) * v * t) + c * Duration**2 + AtEnd(x * v * t) * AtStart(w)
    both = [(AtEnd(y * a) - AtStart(y) ** 2 + Duration, 0, 0)]
    path = [(x * sm.cos(y) + F * v.diff(), -1, 1), (c * y * t, None, 2)]
    end: Any = {x * y: 1, v: 0}
    parameters = {m: (1, 3), c: (0, 1)}
    chosen = scheme_of(scheme)
    return state(
        everything(), cost, (0.5, 4.0), {x: 0, w * sm.sin(x): (0, 1)}, end, {a: (-1, 1)}, path, both, parameters, chosen
    )


def sampled(scheme: str) -> Statement:
    """With values at single times, one of which is at a mesh point, and a sum over samples."""
    z, times = sm.Symbol("z"), [0.0, 0.4, 0.5, 1.1, 1.4, 2.0]
    cost = Integral(F**2) - 2 * SampleSum(sm.exp(x * z / 9) * v * c + a * t, times, {z: np.arange(6.0)})
    both = [(AtTime(x * v * t, 0.7) * AtStart(w) + AtTime(y * a, 1.4) * AtEnd(x), 0, 0)]
    if scheme == "hermite-simpson":  # which has stages at the ends
        both += [(AtEnd(F * v.diff()) - AtStart(F * x) * AtStart(v.diff()) ** 2, None, 1)]
    chosen = scheme_of(scheme)
    return state(everything(), cost, 2.0, {x: 0}, {}, {a: (-1, 1)}, (), both, {m: (1, 3), c: (0, 1)}, chosen)


@pytest.fixture(scope="module")
def code() -> PointCode:
    return point_code(statement("radau"))  # is the same for all schemes


@pytest.mark.parametrize("scheme", ["hermite-simpson", "midpoint", "radau", "backward-euler"])
def test_first_and_second_derivatives_agree_with_differences(code: PointCode, scheme: str) -> None:
    check_derivatives(statement(scheme), code)


@pytest.mark.parametrize("scheme", ["hermite-simpson", "radau"])
def test_derivatives_of_values_at_single_times_agree_with_differences(scheme: str) -> None:
    stated = sampled(scheme)
    check_derivatives(stated, point_code(stated))


def check_derivatives(stated: Statement, code: PointCode) -> None:
    layout = layout_of(stated, code, np.array([0.0, 0.2, 0.7, 1.0]))
    transcription = transcribe(layout, code)
    random = np.random.default_rng(7)
    scale, rows = random.uniform(0.5, 2.0, layout.n_x), random.uniform(0.5, 2.0, transcription.n_g)
    program = NonlinearProgram(transcription, code, scale, rows)
    point, direction = random.normal(size=layout.n_x) / 2, random.normal(size=layout.n_x)
    multipliers, h = random.normal(size=program.n_g), 1e-5

    def jacobian(at: np.ndarray) -> Any:
        return csr_array((program.jacobian(at), tuple(program.jacobian_pattern)), shape=(program.n_g, program.n_x))

    def slope(at: np.ndarray) -> Any:
        return 0.7 * program.gradient(at) + jacobian(at).T @ multipliers

    ahead, behind = point + h * direction, point - h * direction
    change = (program.constraints(ahead) - program.constraints(behind)) / (2 * h)
    assert jacobian(point) @ direction == pytest.approx(change, rel=1e-6, abs=1e-7)
    assert program.gradient(point) @ direction == pytest.approx((program.cost(ahead) - program.cost(behind)) / (2 * h))
    lower = csr_array(
        (program.hessian(point, 0.7, multipliers), tuple(program.hessian_pattern)), shape=(program.n_x, program.n_x)
    ).toarray()
    hessian = lower + np.tril(lower, -1).T
    assert np.triu(lower, 1).max() == 0.0
    assert hessian @ direction == pytest.approx((slope(ahead) - slope(behind)) / (2 * h), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", [*NAMED, "radau1", "radau5", "gauss4"])
def test_a_scheme_integrates_polynomials_of_its_order(name: str) -> None:
    scheme = scheme_of(name)
    for k in range(1, scheme.order + 1):  # the integral of k tau^(k - 1) is 1
        assert scheme.b @ (k * scheme.c ** (k - 1)) == pytest.approx(1.0, rel=1e-12)
    for k in range(1, len(scheme.c) + 1):
        assert scheme.A @ (k * scheme.c ** (k - 1)) == pytest.approx(scheme.c**k, rel=1e-12, abs=1e-14)
    defect = scheme.b @ ((scheme.order + 1) * scheme.c**scheme.order) - 1.0
    assert abs(defect) > 1e-12
    assert [np.polyval(row, 1.0) for row in scheme.dense] == pytest.approx(scheme.b, abs=1e-12)
