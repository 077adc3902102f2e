"""The compiled functions of the points of a transcription: from the model to a shared library."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kanegen._version import __version__
from kanegen.backends.cython.batch import lane_library, load_library
from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.backends.garbage import without_collections
from kanegen.codegen.kernel import kernel_context
from kanegen.codegen.sources import include_closure, render, runtime_headers
from kanegen.control.points import PointFunctions, PointMaker
from kanegen.control.statement import Statement
from kanegen.derivation import Equations, fingerprint, lower_model
from kanegen.program.assemble import program_of
from kanegen.program.builder import Functions
from kanegen.program.functions.tables import add_tables
from kanegen.program.passes.lower import hoist
from kanegen.program.recipes import SPECS
from kanegen.program.records import Program
from kanegen.progress import activity

_ORDERS = ("values", "jacobian", "hessian")


@dataclass(frozen=True, eq=False)
class PointCode:
    """The compiled functions of the ``kinds`` of points, in the order in which the library expects them.

    ``n_constraints``: the rows of multipliers of the equations of motion.
    """

    library: Any
    kinds: tuple[PointFunctions, ...]
    n_constraints: int

    def kind(self, name: str) -> PointFunctions | None:
        """The functions of a kind of points; None if the problem has no such points."""
        return next((kind for kind in self.kinds if kind.name == name), None)

    @property
    def lengths(self) -> tuple[int, int]:
        """The lengths of the parameters with what follows from them, and of the scratch."""
        found = (ctypes.c_int * 2)()
        self.library.kg_lengths(found)
        return found[0], found[1]


def point_code(statement: Statement) -> PointCode:
    """The functions of a problem, compiled and loaded. Raises `DerivationError` and `BuildError`."""
    return compiled_points(statement, lambda maker: (maker.stage(), maker.mesh(), maker.ends(), *maker.samples()))


def compiled_points(statement: Statement, make: Callable[[PointMaker], Sequence[PointFunctions | None]]) -> PointCode:
    """Derive, print, compile and load the functions that ``make`` gives. Raises `DerivationError` and `BuildError`."""
    model = statement.model
    with activity(f"deriving the optimal control of {model.name!r}"), without_collections():
        system = lower_model(model)
        f = Functions(Equations(system), "reduced", SPECS, ())
        kinds = tuple(kind for kind in make(PointMaker(f, statement)) if kind is not None)
        program = _program(f, kinds)
        files = _files(program, kinds, fingerprint(system, "optimal control"))
    path = lane_library(CompilerOptions(), files, f"{model.name} (optimal control)", fused=False)
    return PointCode(load_library(path), kinds, f.n_c)


def _program(f: Functions, kinds: Sequence[PointFunctions]) -> Program:
    """The program of all functions; its inputs are followed by the further arguments of points."""
    tables = add_tables(f)
    program = program_of(f)
    most = max(kind.n_arguments + kind.n_values for kind in kinds)
    names = tuple(f"argument {k}" for k in range(most))
    symbols = replace(program.symbols, inputs=(*program.symbols.inputs, *names))
    return hoist(replace(program, symbols=symbols, contacts=(), events=(), tables=tables))


def _files(program: Program, kinds: Sequence[PointFunctions], digest: str) -> dict[str, str]:
    """The C file with the headers that it includes."""
    context: dict[str, Any] = kernel_context(program, digest=digest, options_text="optimal control")
    context |= {"has_table": False, "headers": ["kg_model.h", *context["headers"][1:]]}
    entries = {entry.title: entry for entry in context["entries"]}
    symbols = program.symbols
    context |= {
        "version": __version__,
        "n_q": len(symbols.coordinates),
        "n_u": len(symbols.speeds),
        "n_s": len(symbols.states),
        "n_prepared": len(symbols.parameters) + len(symbols.gains) + len(program.constants),
        "n_scratch": max(1, *(entry.work for entry in entries.values())),
        "kinds": [
            {
                "functions": [
                    entries[name].identifier if name in entries else "NULL"
                    for name in (f"{kind.name}_{order}" for order in _ORDERS)
                ],
                "lengths": [kind.n_values, len(kind.jacobian), len(kind.hessian)],
                "n_arguments": kind.n_arguments,
            }
            for kind in kinds
        ],
    }
    code = render("kernel/kernel.c.jinja", **context)
    files = {"optimal_control.c": render("control/problem.c.jinja", **context, kernel=code)}
    return {**files, **include_closure(files, runtime_headers())}
