"""The instants at which functions of time jump or have a kink, as kg_switches.h finds them: against closed forms."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import ccompile
import numpy as np
import pytest
from ccompile import Compiler, with_each_compiler
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
ROUNDINGS = 4.0
LINE, START, INTEGERS, SAWTOOTH, LEVELS, SINE, SQUARES, HEIGHTS = range(8)  # kinds of switches in switches.c
KNOTS = (-1.0, 0.5, 2.0, 2.25, 40.0)
MOST = 20_000


class Switches:
    """The compiled search, in double or in float."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.library = ccompile.shared_library(ccompile.host_source("switches.c"), folder, *flags)
        self.real, self.dtype = (ctypes.c_float, np.float32) if flags else (ctypes.c_double, np.float64)
        self.evaluations = 0

    def __call__(self, kinds: Sequence[int], t: float, t_limit: float, most: int = MOST, **values: float) -> Array:
        """The instants of these kinds; p: values by name."""
        given = {"a": 0.0, "b": 1.0, "start": 0.0, "phase": 0.0, "period": 1.0, "part": 0.25, "rate": 1.0, "level": 0.5}
        p = np.array([*{**given, "shifted": 0.0, **values}.values()], dtype=self.dtype)
        out = np.empty(MOST, dtype=self.dtype)
        numbers = (ctypes.c_int * len(kinds))(*kinds)
        calls = ctypes.c_int()
        pointer = [array.ctypes.data_as(ctypes.POINTER(self.real)) for array in (p, out)]
        count = self.library.instants(
            len(kinds), numbers, pointer[0], self.real(t), self.real(t_limit), most, pointer[1], ctypes.byref(calls)
        )
        assert 0 <= count < MOST
        self.evaluations = calls.value
        return out[:count].astype(np.float64)


@pytest.fixture(scope="module")
def switches(tmp_path_factory: pytest.TempPathFactory) -> Switches:
    return Switches(tmp_path_factory.mktemp("switches"))


def require_close(found: Array, expected: ArrayLike, eps: float = float(np.finfo(np.float64).eps)) -> None:
    """The same instants, to some roundings of the time."""
    expected = np.asarray(expected, dtype=np.float64)
    assert found.shape == expected.shape, (found, expected)
    assert np.all(np.abs(found - expected) <= ROUNDINGS * eps * np.abs(expected)), np.abs(found - expected).max()


@with_each_compiler
def test_the_header_compiles_without_warnings(compiler: Compiler, tmp_path: Path) -> None:
    for flags in ((), ("-DKG_FLOAT", "-Wdouble-promotion")):
        source = ccompile.host_source("switches.c")
        ccompile.compile_source(compiler, source, tmp_path / "switches.so", "-O2", "-shared", "-fPIC", *flags)


def test_a_relation_that_is_affine_in_time(switches: Switches) -> None:
    require_close(switches([LINE], 0.0, 25.0, a=-4.5, b=3.0), [1.5])
    require_close(switches([LINE], 2.0, -25.0, a=-4.5, b=3.0), [1.5])
    require_close(switches([LINE], 0.0, 25.0, a=4.5, b=-3.0), [1.5])
    require_close(switches([LINE], 0.0, 1.4, a=-4.5, b=3.0), [])
    require_close(switches([LINE], 1.5, 25.0, a=-4.5, b=3.0), [])  # the run has just stopped there
    require_close(switches([LINE], 0.0, 25.0, a=-4.5, b=0.0), [])
    require_close(switches([LINE], 0.0, np.inf, a=-4.5, b=3.0), [1.5])
    assert switches.evaluations == 1  # the values at t = 0 tell all


def test_parameters_that_are_no_numbers_have_no_instants(switches: Switches) -> None:
    for value in (np.nan, np.inf, -np.inf):
        require_close(switches([LINE, START], 0.0, 9.0, a=value, start=2.0), [2.0])


def test_every_integer(switches: Switches) -> None:
    require_close(switches([INTEGERS], 0.0, 25.05, period=0.1), np.arange(1, 251) * 0.1)
    require_close(switches([INTEGERS], 25.05, -0.05, period=0.1), np.arange(250, -1, -1) * 0.1)
    require_close(switches([INTEGERS], 0.0, 2.05, period=-0.1, phase=0.03), 0.03 + np.arange(21) * 0.1)


def test_a_list_of_levels(switches: Switches) -> None:
    knots = np.array(KNOTS)
    require_close(switches([LEVELS], -7.0, 100.0), knots)
    require_close(switches([LEVELS], 100.0, -7.0), knots[::-1])
    require_close(switches([LEVELS], -100.0, 100.0, b=-2.0), -knots[::-1] / 2.0)
    require_close(switches([LEVELS], 2.0, 100.0), [2.25, 40.0])
    require_close(switches([LEVELS], 40.0, 100.0), [])


def test_a_sawtooth_below_a_level(switches: Switches) -> None:
    """The second condition is affine between the integers of the first one."""
    period, phase = 0.3, 0.1
    expected = np.sort(np.concatenate([phase + period * np.arange(30), phase + period * (np.arange(30) + 0.25)]))
    values = {"period": period, "phase": phase, "part": 0.25 * period}
    found = switches([INTEGERS, SAWTOOTH], 0.0, 9.0, **values)
    require_close(found, expected[(expected > 0.0) & (expected < 9.0)])
    found = switches([INTEGERS, SAWTOOTH], 9.0, 0.05, **values)
    require_close(found, expected[(expected > 0.05) & (expected < 9.0)][::-1])


def test_large_times(switches: Switches) -> None:
    """Instants 1 ms apart at 1.7e9 s, where a rounding is 0.2 µs."""
    t0 = 1.7e9
    found = switches([INTEGERS, START], t0, t0 + 0.0995, phase=t0, period=1e-3, start=t0 + 0.0505)
    expected = np.sort([*(t0 + 1e-3 * np.arange(1, 100)), t0 + 0.0505])
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 1e-6
    found = switches([SINE], t0, t0 + 1.0, rate=100.0)
    assert found.size == 32
    assert np.abs(np.sin(100.0 * found) - 0.5).max() < 100.0 * 1e-6


def test_coincident_instants_are_one(switches: Switches) -> None:
    """0.1 + 0.2 and 0.3 differ by a rounding, as do products and sums of periods."""
    require_close(switches([LINE, START], 0.0, 1.0, a=-0.3, start=0.1 + 0.2), [0.3])
    require_close(switches([LINE, START], 0.0, 1.0, a=-(0.1 + 0.2), start=0.3), [0.3])
    found = switches([INTEGERS, LEVELS, LINE], 0.0, 30.0, period=0.1, b=1.0, a=-0.7)
    require_close(found, np.sort([*np.arange(1, 300) * 0.1, 2.25]))
    require_close(switches([START], 0.0, 3.0, start=3.0 * (1.0 - 2e-16)), [])  # the end of the run


def test_curved_switches(switches: Switches) -> None:
    roots = np.sort(
        np.concatenate([np.arcsin(0.5) + 2 * np.pi * np.arange(4), 5 * np.pi / 6 + 2 * np.pi * np.arange(4)])
    )
    for rate in (1e-3, 1.0, 250.0):
        require_close(switches([SINE], 0.0, 25.0 / rate, rate=rate), roots / rate)
        require_close(switches([SINE], 25.0 / rate, 0.0, rate=rate), roots[::-1] / rate)
    require_close(switches([SQUARES], 0.0, 4.05), np.sqrt(np.arange(1, 17)))
    expected = [*np.sqrt(np.arange(16, 0, -1)), *-np.sqrt(np.arange(1, 5))]  # zero is touched only
    require_close(switches([SQUARES], 4.05, -2.05), expected)


def test_fast_angles_over_long_runs(switches: Switches) -> None:
    """Every one of 2,000 pulses that last a twentieth of a turn, in a run of 1,000 turns."""
    found = switches([SINE], 0.0, 1000.0, rate=2 * np.pi, level=np.cos(np.pi / 20.0))
    expected = 0.25 + np.array([-1.0, 1.0]) / 40.0 + np.arange(1000)[:, None]
    assert np.abs(found - expected.ravel()).max() < 1e-12
    assert switches.evaluations < 100 * found.size


def test_curved_levels(switches: Switches) -> None:
    """3 sin t passes -1, 1/2, 2 and 9/4 up and down, and never reaches 40."""
    up = np.arcsin(np.array([-1.0, 0.5, 2.0, 2.25]) / 3.0)
    expected = np.sort(np.concatenate([up, up + 2 * np.pi, np.pi - up, np.pi - up + 2 * np.pi]))
    require_close(switches([HEIGHTS], 0.0, 10.0), expected[(expected > 0.0) & (expected < 10.0)])


def test_times_without_a_value_have_no_instants(switches: Switches) -> None:
    """The square root begins at t = 1; a run evaluates it behind a condition only."""
    require_close(switches([SQUARES, START], 0.5, 2.9, shifted=1.0, start=1.0), [1.0, 2.0, 1 + 2**0.5, 1 + 3**0.5])


def test_a_curved_switch_is_sampled_once(switches: Switches) -> None:
    """A run that stops for another reason 1,000 times does not look again for what it knows."""
    switches([SINE], 0.0, 25.0, rate=1.0, level=2.0)
    alone = switches.evaluations
    found = switches([INTEGERS, SINE], 0.0, 25.0, rate=1.0, level=2.0, period=0.025)
    assert found.size == 999
    assert switches.evaluations < 2 * alone + 30 * found.size


def test_float(tmp_path: Path) -> None:
    switches = Switches(tmp_path, "-DKG_FLOAT")
    eps = float(np.finfo(np.float32).eps)
    require_close(switches([LINE], 0.0, 25.0, a=-4.5, b=3.0), [1.5], eps)
    require_close(switches([INTEGERS], 0.0, 25.05, period=0.1), np.arange(1, 251) * 0.1, eps)
    require_close(switches([LEVELS], 100.0, -7.0), KNOTS[::-1], eps)
    found = switches([INTEGERS, SAWTOOTH], 0.05, 8.95, part=0.25)
    require_close(found, np.sort([*np.arange(1, 9), *(np.arange(9) + 0.25)]), eps)
    require_close(switches([SINE], 0.0, 6.0), [np.pi / 6, 5 * np.pi / 6], eps)
