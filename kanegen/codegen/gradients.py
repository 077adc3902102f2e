"""The C code of derivatives of motions by explicit methods: along directions, and of gradients that are pulled back.

Where the right-hand side is straight-line code, a program of variations contains the numbers of its derivative at a
state, and a linear function of them and of a direction, or of weights, which is evaluated on vector lanes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Final

from kanegen.codegen.directions import DirectionWriter, Varying
from kanegen.codegen.functions import entries
from kanegen.codegen.lanes import header_text, lane_context, lane_headers, lowered_sources, with_headers
from kanegen.codegen.methods.files import METHODS
from kanegen.codegen.sources import Sources, render, runtime_headers
from kanegen.program.catalogue import ALONG
from kanegen.program.passes.lowered import LoweredProgram

VARIATIONS_HEADER: Final = "kg_variations.h"
ADJOINT_HEADER: Final = "kg_adjoint.h"

_FOLDER: Final = "sensitivities"
_DIRECTION_HEADER: Final = "kg_direction.h"


def variation_sources(sources: Sources, name: str, method: str) -> dict[str, str]:
    """The files of the sensitivities of motions by a method, C files and headers, by name.

    ``sources``: of a program of variations with the function ``name``, which is evaluated for one direction after the
    other where a state has no numbers of its change (`kanegen.program.catalogue.NUMBERS`).
    """
    files = _files(sources, name, method, "variations.c")
    tableau = {"kg_tableaux.h": runtime_headers((method,))["kg_tableaux.h"]}
    headers = {**lane_headers("kg_lanes.h", "kg_lane_types.h"), **_headers(VARIATIONS_HEADER), **tableau}
    return with_headers(sources, {**files, **headers})


def adjoint_sources(sources: Sources, name: str, method: str) -> dict[str, str]:
    """The files of the gradients of motions by a method, C files and headers, by name.

    ``sources``: of a program of variations with the function ``name`` of gradients, which is evaluated for one column
    after the other where a state has no numbers of it.
    """
    files = _files(sources, name, method, "adjoint.c")
    return with_headers(sources, {**files, **lane_headers("kg_lane_types.h"), **_headers(ADJOINT_HEADER)})


def _files(sources: Sources, name: str, method: str, main: str) -> dict[str, str]:
    """The file ``main``, and that of the linear function, if there is one."""
    program = lowered_sources(sources)
    shared, sizes = lane_context(sources, program, ()), _sizes(program)
    linear = [x for x in program.functions if x.name == f"{name}{ALONG}"]
    files = {}
    if linear:
        n_g = len(program.symbols.gains) - len(program.symbols.parameters)
        varying = Varying(sizes["N_R"], n_g, program.prepare)
        (entry,) = entries(program, linear, partial(DirectionWriter, varying=varying))
        sizes |= {"N_WORK": entry.work, "N_KEPT": len(linear[0].code.kept)}
        files["directions.c"] = render(f"{_FOLDER}/directions.c.jinja", name=name, entry=entry, **shared)
    more: Mapping[str, Any] = {"method": METHODS[method], "sizes": sizes, "prepares": bool(linear), "padded": _padded}
    files[main] = render(f"{_FOLDER}/{main}.jinja", **more, **shared)
    return files


def _sizes(program: LoweredProgram) -> dict[str, int]:
    """Sizes of a model by the names of macros."""
    symbols = program.symbols
    n_y = len(symbols.coordinates) + len(symbols.speeds) + len(symbols.states)
    n_forces = len(symbols.multipliers)
    return {
        "N_Q": len(symbols.coordinates),
        "N_U": len(symbols.speeds),
        "N_S": len(symbols.states),
        "N": n_y,
        "N_R": (len(symbols.inputs) - n_y - n_forces - 1) // 2,
        "N_FORCES": n_forces,
        "N_P": len(symbols.parameters),
        "N_WORK": 0,
        "N_KEPT": 0,
    }


def _padded(row: Sequence[Fraction], length: int) -> list[Fraction]:
    """A row with zeros behind it, or without what is beyond this length."""
    return [*row, *[Fraction(0)] * length][:length]


def _headers(*names: str) -> dict[str, str]:
    return {name: header_text(f"{_FOLDER}/{name}") for name in (*names, _DIRECTION_HEADER)}
