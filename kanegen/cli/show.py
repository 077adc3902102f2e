"""``kanegen show``: the equations of a model, their sizes and their cost."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.table import Table

from kanegen.cli.arguments import Target, model_arguments, read_target
from kanegen.derivation import Equations, derive
from kanegen.program.catalogue import ATTRIBUTES

QUANTITIES = ("qdot", "udot", *(name for name in ATTRIBUTES if hasattr(Equations, name)))
"""The quantities of the catalogue that the equations have without a form."""

UNCONSTRAINED = ("qdot", "Q", "P")
CONSTRAINED = ("qdot", "Q", "P", "J", "b")
LARGEST_SHOWN = 400
"""Operations above which shared subexpressions are named, since the written-out equations swell."""


@click.command()
@model_arguments
@click.option(
    "-q",
    "--quantity",
    "quantities",
    type=click.Choice(QUANTITIES),
    multiple=True,
    help="What to show; default: qdot, Q, P and, when constrained, J and b.",
)
@click.option("--latex", is_flag=True, help="Write LaTeX.")
@click.option("--counts", is_flag=True, help="Sizes and operation counts only.")
def show(
    target: Target,
    options: dict[str, Any],
    quantities: tuple[str, ...],
    latex: bool,
    counts: bool,
) -> None:
    """Show the derived equations as text or LaTeX, with sizes and operation counts."""
    model = read_target(target, options).model
    equations = derive(model)
    constrained = bool(model.holonomic_constraints or model.nonholonomic_constraints or model.acceleration_constraints)
    names = quantities or (CONSTRAINED if constrained else UNCONSTRAINED)
    selected = [getattr(equations, name) for name in names]
    console = Console()
    if not counts:
        for quantity in selected:
            for line in _latex_lines(quantity) if latex else _text_lines(quantity):
                console.print(line, markup=False, highlight=False, soft_wrap=True)
    if not latex:
        console.print(_size_table(equations, selected))


def _size_table(equations: Any, selected: list[Any]) -> Table:
    model = equations.model
    sizes = ", ".join(
        f"{name} = {len(symbols)}"
        for name, symbols in (("n_q", model.coordinates), ("n_u", model.speeds), ("n_p", model.parameters))
    )
    table = Table(title=f"{model.name}: {sizes}", title_justify="left", header_style="bold")
    for heading in ("quantity", "shape", "operations"):
        table.add_column(heading, justify="right" if heading == "operations" else "left")
    for quantity in selected:
        shape = " x ".join(map(str, quantity.shape)) or "scalar"
        table.add_row(quantity.name, shape, str(quantity.operation_count))
    table.add_row("right-hand side, the solve included", "", str(equations.operation_count))
    return table


def _parts(quantity: Any) -> tuple[list[tuple[Any, Any]], Any]:
    if quantity.operation_count > LARGEST_SHOWN:
        replacements, expression = quantity.to_sympy(cse=True)
        return list(replacements), expression
    return [], quantity.to_sympy()


def _entries(quantity: Any, expression: Any) -> list[tuple[str, Any]]:
    """Every entry with its index, ``Q[0, 1]``."""
    if not quantity.shape:
        return [(quantity.name, expression)]
    rows, columns = expression.shape
    return [
        (
            f"{quantity.name}[{i}]" if len(quantity.shape) == 1 else f"{quantity.name}[{i}, {j}]",
            expression[i, j],
        )
        for i in range(rows)
        for j in range(columns)
    ]


def _text_lines(quantity: Any) -> list[str]:
    from sympy.physics.vector.printing import vsstrrepr as text

    replacements, expression = _parts(quantity)
    lines = [f"{symbol} = {text(value)}" for symbol, value in replacements]
    lines += [f"{name} = {text(value)}" for name, value in _entries(quantity, expression) if value != 0]
    return [*lines, ""]


def _latex_lines(quantity: Any) -> list[str]:
    from sympy.physics.vector.printing import vlatex

    replacements, expression = _parts(quantity)
    lines = [f"{vlatex(symbol)} = {vlatex(value)}" for symbol, value in replacements]
    return [*lines, f"{quantity.name.replace('_', '-')} = {vlatex(expression)}", ""]
