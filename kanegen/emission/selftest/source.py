"""The text of ``NAME_selftest.c``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kanegen.codegen.sources import render
from kanegen.derivation import Equations
from kanegen.emission.files import ProjectFiles
from kanegen.emission.selftest.cases import arguments_of_cases
from kanegen.emission.selftest.expected import (
    SCALARS,
    Accuracy,
    Arguments,
    Expected,
    Scalar,
    UndefinedError,
    expect,
)
from kanegen.emission.selftest.functions import Model, Tested, select_functions

SMALLEST_TOLERANCE = 1e-37
"""Tolerances are numbers of the type float in every project."""


@dataclass(frozen=True)
class Row:
    """A function for the template: its values at the ``cases``, bit k for case k, one case after the other."""

    function: Tested
    identifier: str
    cases: int
    values: tuple[str, ...]
    tolerances: tuple[str, ...]


def selftest_source(equations: Equations, project: ProjectFiles, start: Mapping[str, float]) -> str:
    """The program that compares the functions of an emitted project with values that are computed here.

    ``start``: known values by name, of parameters and of the start.
    """
    program, description, ui = project.generated.program, project.generated.description, project.ui
    scalar, seed = SCALARS[project.options.precision], int(project.digest[:12], 16)
    gains = np.array(ui.gains if ui.gains else [0.0] * ui.n_gains)
    cases = arguments_of_cases(equations, program, scalar, start, seed, gains)
    laws = ["laws"] if description.laws else []

    def accuracy(*names: str) -> Accuracy:
        return Accuracy.of(program, *names, *laws)

    selection = select_functions(Model(program, description, ui), ui, project.step, project.stem, cases, accuracy)
    rows, undefined = _rows(selection.tested, cases, scalar, seed)
    return render(
        "interface/selftest.c.jinja",
        **project.context,
        step_size=None if selection.step_size is None else scalar.text(selection.step_size),
        cases=[_texts(arguments, scalar) for arguments in cases],
        rows=rows,
        used=[row.function.c_name for row in rows],
        normwise=any(function.accuracy.normwise for function in selection.tested),
        inexact=[function.name for function in selection.tested if not function.accuracy.exact],
        skipped={**selection.skipped, **undefined},
        zero=scalar.text(0.0),
        longest=max((row.function.size for row in rows), default=1),
    )


def _rows(
    functions: tuple[Tested, ...], cases: tuple[Arguments, ...], scalar: Scalar, seed: int
) -> tuple[list[Row], dict[str, str]]:
    """The functions with a value in at least one case, and the reasons why others have none."""
    rows: list[Row] = []
    undefined: dict[str, str] = {}
    for function in functions:
        found: dict[int, Expected] = {}
        reason = "no regular state was found"
        for k, arguments in enumerate(cases):
            try:
                found[k] = expect(function.evaluate, arguments, scalar, function.accuracy, seed)
            except UndefinedError as error:
                reason = str(error)
        sizes = [abs(x) for k, expected in found.items() for x in (*expected.values, *cases[k]["q"], *cases[k]["u"])]
        largest = max(sizes, default=0.0)
        useful = {k: expected for k, expected in found.items() if expected.is_accurate(largest)}
        if useful:
            rows.append(_row(function, len(rows), useful, scalar))
        elif found:
            undefined[function.name] = "rounding changes most of its digits"
        else:
            undefined[function.name] = reason
    return rows, undefined


def _row(function: Tested, number: int, found: Mapping[int, Expected], scalar: Scalar) -> Row:
    values = [scalar.text(x) for expected in found.values() for x in expected.values]
    tolerances = [
        SCALARS["float"].text(max(float(f"{x:.2e}"), SMALLEST_TOLERANCE))
        for expected in found.values()
        for x in expected.tolerances
    ]
    return Row(function, f"f{number}", sum(1 << k for k in found), tuple(values), tuple(tolerances))


def _texts(arguments: Arguments, scalar: Scalar) -> dict[str, list[str]]:
    """The arguments of one case as text."""
    arrays = {**arguments, "y": [*arguments["q"], *arguments["u"], *arguments["s"]]}
    return {name: [scalar.text(x) for x in arrays[name]] for name in ("t", "y", "r", "forces", "free", "p")}
