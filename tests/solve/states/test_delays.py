"""Delays: refused by name, and approximated by the chain of states on the page about states."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from checkout import ROOT
from messages import raises
from scipy.integrate import solve_ivp
from state_models import point_mass

import kanegen as kg

x, v, F = me.dynamicsymbols("x v F")
t, tau = me.dynamicsymbols._t, sm.Symbol("tau")


@pytest.mark.parametrize(
    "term",
    [
        x.func(t - tau),
        v.func(t - 1),
        x.func(0),
        sm.Subs(x, t, t - tau),
        x.diff().subs(t, t - tau),
        x.diff(t, 2).subs(t, t - tau),
    ],
    ids=str,
)
def test_values_at_other_times_are_refused(term: Any) -> None:
    """The model refuses them; its parameter tau and its input F occur in it, although F has no value at that time."""
    with raises(kg.ModelError, str(term), "delay", "chain", "docs/states.md") as caught:
        point_mass("delayed", -term * F.func(t - tau), inputs=[F], parameters={"m": 1.0, "tau": 0.1})
    assert "does not occur" not in str(caught.value)
    assert "affine" not in str(caught.value)


def by_steps(end: float, delay: float) -> float:
    """x(end) of x'' = -x - v(t - delay)/2 from (1, 0), v = 0 before, by the method of steps."""
    past: list[Any] = []
    y, time = np.array([1.0, 0.0]), 0.0

    def rates(s: float, y: np.ndarray) -> list[float]:
        return [y[1], -y[0] - 0.5 * (float(past[-1](s - delay)[1]) if past else 0.0)]

    while time < end - 1e-12:
        stop = min(time + delay, end)
        part = solve_ivp(rates, (time, stop), y, "DOP853", rtol=1e-12, atol=1e-13, dense_output=True)
        past.append(part.sol)
        y, time = part.y[:, -1], stop
    return float(y[0])


def test_the_chain_of_the_page() -> None:
    page = (ROOT / "docs" / "states.md").read_text("utf-8")
    program = next(code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "delayed" in code)
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    exact = by_steps(10.0, 0.4)
    assert f"{exact:.8f}" in page
    found = {int(n): float(value) - exact for n, value in map(str.split, done.stdout.splitlines())}
    stated = re.search(r"\| error of x\(10\) \| (.*) \|", page)
    assert stated is not None
    np.testing.assert_allclose(np.abs(list(found.values())), [float(e) for e in stated[1].split(" | ")], rtol=0.05)
    assert list(found) == [4, 8, 16, 32]
