"""Modules of JAX functions as text, which is printed without JAX (their values: test_jax.py)."""

from __future__ import annotations

import ast

import pytest
from systems import model_of

from kanegen.emission.jax import module_source
from kanegen.emission.jax.runtime import definitions
from kanegen.program.kernels import KERNELS


def test_every_kernel_has_a_twin_in_jax() -> None:
    known = definitions()
    assert {f"kg_{name}" for name in KERNELS} <= known.keys()
    for name, record in KERNELS.items():
        assert set(known[f"kg_{name}"].parameters) <= {*record.sizes, *record.arrays}


@pytest.mark.parametrize("name", ["slider_crank", "stick_slip_blocks", "muscle_arm", "sampled_pid", "struck_four_bar"])
def test_a_module_defines_every_name_that_it_uses_once(name: str) -> None:
    text, _ = module_source(model_of(name))
    tree = ast.parse(text)
    defined = [item.name for item in tree.body if isinstance(item, ast.FunctionDef)]
    assert len(set(defined)) == len(defined)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id.startswith(("kg_", "_"))}
    assert used <= {*defined, "_"}
    kernels = {name for name in defined if name.startswith("kg_")}
    assert kernels <= used  # and no others
