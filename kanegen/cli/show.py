"""``kanegen show``: the equations of a model, their sizes and their cost."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.table import Table
from sympy.physics.vector.printing import vsstrrepr as text

from kanegen import display
from kanegen.cli.arguments import model_argument, print_line
from kanegen.cli.tables import make_table
from kanegen.derivation import Equations, derive
from kanegen.derivation.typeset import default_quantities, entries, size_row, split
from kanegen.modelfile import ModelFile
from kanegen.program.catalogue import ATTRIBUTES

QUANTITIES = ("qdot", "udot", "sdot", *(name for name in ATTRIBUTES if hasattr(Equations, name)))
"""The quantities of the catalogue that the equations have without a form."""

LARGEST_SHOWN = 400
"""Operations above which shared subexpressions get names, because the equations would be very long without."""


@click.command()
@model_argument()
@click.option(
    "-q",
    "--quantity",
    "quantities",
    type=click.Choice(QUANTITIES),
    multiple=True,
    help="What to show; default: qdot, Q, P, J and b of constraints, M of loads in u', sdot of states.",
)
@click.option("--latex", is_flag=True, help="Write LaTeX.")
@click.option("--counts", is_flag=True, help="Sizes and operation counts only.")
def show(file: ModelFile, quantities: tuple[str, ...], latex: bool, counts: bool) -> None:
    """Show the derived equations as text or LaTeX, with sizes and operation counts."""
    equations = derive(file.model)
    names = quantities or default_quantities(file.model)
    selected = [getattr(equations, name) for name in names]
    if not counts:
        for quantity in selected:
            for line in _latex_lines(quantity) if latex else _text_lines(quantity):
                print_line(line)
    if not latex:
        Console().print(_size_table(equations, selected))


def _size_table(equations: Equations, selected: list[Any]) -> Table:
    model = equations.model
    counts = {"n_q": model.coordinates, "n_u": model.speeds, "n_s": model.states, "n_p": model.parameters}
    sizes = ", ".join(f"{name} = {len(items)}" for name, items in counts.items() if items or name != "n_s")
    rows = [*map(size_row, selected), ("right-hand side, the solve included", "", str(equations.operation_count))]
    return make_table(f"{model.name}: {sizes}", ("quantity", "shape", "operations"), rows, right=("operations",))


def _text_lines(quantity: Any) -> list[str]:
    replacements, expression = split(quantity, LARGEST_SHOWN)
    lines = [f"{symbol} = {text(value)}" for symbol, value in replacements]
    lines += [f"{name} = {text(value)}" for name, value in entries(quantity, expression) if value != 0]
    return [*lines, ""]


def _latex_lines(quantity: Any) -> list[str]:
    replacements, expression = split(quantity, LARGEST_SHOWN)
    lines = [f"{display.latex(symbol)} = {display.latex(value)}" for symbol, value in replacements]
    return [*lines, f"{quantity.name.replace('_', '-')} = {display.latex(expression)}", ""]
