"""Lowered programs as text: what is read prints the same kernel, and damage has a named error."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from messages import raises
from programs import random_program, solver_program
from systems import example

from kanegen.codegen.kernel import lowered_context, program_of
from kanegen.codegen.lanes import batch_sources
from kanegen.codegen.sources import render, text_digest
from kanegen.errors import BuildError
from kanegen.pipeline import sources_of
from kanegen.program.passes.lowered import LoweredProgram, lowered_program
from kanegen.program.passes.stored import PROGRAM_FILE, program_text, read_program

# With guards and kernels, parts of contacts, states and laws, splines and switches, and prescribed motions.
EXAMPLES = ("slider_crank", "stick_slip_blocks", "sampled_pid", "muscle_arm", "rheonomic_particle")


def kernel(program: LoweredProgram) -> str:
    return render("kernel/kernel.c.jinja", **lowered_context(program, digest="0" * 16, options_text=""))


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_program_that_was_read_prints_the_same_kernel(name: str) -> None:
    sources = sources_of(example(name).model(), functions="all")
    text = sources.text(PROGRAM_FILE)
    program = read_program(text)
    assert program_text(program, text_digest([sources.text(sources.kernel)])) == text
    context = lowered_context(program, digest=sources.digest, options_text="")
    printed = render("kernel/kernel.c.jinja", **context).splitlines()
    stored = sources.text(sources.kernel).splitlines()
    start = printed.index(" * SI units, angles in radians, matrices row-major.")
    assert printed[start:] == stored[stored.index(printed[start]) :]


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_print_the_same_kernel(seed: int) -> None:
    program = lowered_program(random_program(seed, 12))
    assert kernel(read_program(program_text(program))) == kernel(program)


def test_damaged_text_is_refused_by_name() -> None:
    text = program_text(lowered_program(solver_program()))
    plain = json.loads(text)
    damaged = [text[:-9], "{}", "[]", json.dumps({**plain, "precision": "half"}), json.dumps({**plain, "users": [[1]]})]
    for content in damaged:
        with pytest.raises(BuildError, match=r"program\.json cannot be read .* clear the cache and build again"):
            read_program(content)


def test_a_kernel_that_was_changed_has_no_program() -> None:
    sources = sources_of(example("spherical_pendulum").model(), functions=["rhs"])
    changed = replace(sources, files={**sources.files, sources.kernel: sources.text(sources.kernel) + "/* */"})
    assert program_of(sources) is not None
    assert program_of(changed) is None
    with raises(BuildError, changed.kernel, "changed"):
        batch_sources(changed, "rhs")
