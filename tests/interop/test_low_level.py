"""``solver.low_level_callable``: a right-hand side that a C program integrates, without Python in the loop."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import ccompile
import numpy as np
from checkout import ROOT
from scipy import LowLevelCallable
from systems import initial, solver_for

DOUBLES = ctypes.POINTER(ctypes.c_double)
RATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_double, DOUBLES, DOUBLES, ctypes.c_void_p)


def parts(function: LowLevelCallable) -> tuple[int, int | None]:
    """The addresses of the C function and of its data, as C programs that know LowLevelCallable read them."""
    api, capsule = ctypes.pythonapi, tuple.__getitem__(function, 0)
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    context = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(("PyCapsule_GetContext", api))
    return pointer(capsule, function.signature.encode()), context(capsule)


def test_a_c_program_integrates_it(tmp_path: Path) -> None:
    host: Any = ccompile.shared_library(ccompile.host_source("fixed_steps.c"), tmp_path)
    solver, start = solver_for("rolling_disk"), initial("rolling_disk")
    function = solver.low_level_callable()
    assert isinstance(function, LowLevelCallable)
    assert function.signature == "int (double, double *, double *, void *)"
    address, data = parts(function)
    y = np.array([*start["q"], *start["u"]], dtype=float)
    given = ctypes.c_void_p(address), ctypes.c_void_p(data), ctypes.c_double(0.0), ctypes.c_double(0.01), 100, y.size
    assert host.integrate(*given, y.ctypes.data_as(DOUBLES)) == 0
    expected = solver.integrate((0.0, 1.0), start["q"], start["u"], method="rk4", step=0.01)
    np.testing.assert_allclose(y, [*expected.q[-1], *expected.u[-1]], rtol=1e-12, atol=1e-12)


def test_a_failure_is_a_negative_status(tmp_path: Path) -> None:
    host: Any = ccompile.shared_library(ccompile.host_source("fixed_steps.c"), tmp_path)
    address, data = parts(function := solver_for("rolling_disk").low_level_callable())
    y = np.full(10, np.nan)
    given = ctypes.c_void_p(address), ctypes.c_void_p(data), ctypes.c_double(0.0), ctypes.c_double(0.01), 100, y.size
    assert host.integrate(*given, y.ctypes.data_as(DOUBLES)) < 0
    assert function is not None  # it owns the data


def test_the_program_of_the_documentation() -> None:
    page = (ROOT / "docs" / "integration.md").read_text(encoding="utf-8")
    (program,) = (code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "low_level_callable" in code)
    program = program.replace('"build_examples"', repr(str(ROOT / "build_examples")))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    status, rates = done.stdout.splitlines()
    assert int(status) == 0
    assert "True" in rates
