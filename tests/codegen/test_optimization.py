"""Kernels give the same bits at every level of optimization: nothing is fused and nothing is reordered."""

from __future__ import annotations

import numpy as np
import pytest
from messages import raises
from systems import initial, model_of

import kanegen as kg
from kanegen.backends.cython.toolchain import KERNEL_FLAGS
from kanegen.errors import BuildError


@pytest.mark.parametrize("name", ["rolling_disk", "slider_crank", "muscle_arm"])
def test_bits_do_not_depend_on_the_optimization(name: str) -> None:
    """The tests compile kernels with -Og; users get -O3."""
    functions = ("rhs", "jacobians", "energies")
    fast = kg.build(model_of(name), functions=functions, compiler=kg.CompilerOptions(kernel=KERNEL_FLAGS))
    quick = kg.build(model_of(name), functions=functions)
    start, rng = initial(name), np.random.default_rng(0)
    for _ in range(5):
        q, u = (np.array(start[key]) + rng.uniform(-0.2, 0.2, len(start[key])) for key in ("q", "u"))
        for function in quick.description.functions:
            arguments = start["t"], q, u, start.get("r"), start.get("s")
            values = [np.asarray(solver._functions.get(function).value(*arguments)) for solver in (fast, quick)]
            np.testing.assert_array_equal(*values)


def test_flags_of_kernels_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KANEGEN_KERNEL_FLAGS", '-O0 "-DNAME=a b"')
    assert kg.CompilerOptions().kernel == (*KERNEL_FLAGS, "-O0", "-DNAME=a b")
    monkeypatch.delenv("KANEGEN_KERNEL_FLAGS")
    assert kg.CompilerOptions().kernel == KERNEL_FLAGS
    monkeypatch.setenv("KANEGEN_KERNEL_FLAGS", '-DNAME="')
    with raises(BuildError, "KANEGEN_KERNEL_FLAGS", "-DNAME"):
        kg.CompilerOptions()
