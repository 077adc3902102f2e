"""Typeset equations for notebooks, shortened where they are large."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from kanegen.display import Latex, Table, latex, latex_text
from kanegen.graph import Node, to_sympy
from kanegen.graph.derivatives import reachable
from kanegen.model import Model

MOST_LINES = 8
"""Rows and columns of a matrix that are shown."""

LARGEST = 1500
"""Operands and operations of all entries that are shown; each entry has an equal share."""

SHARES = (12, 160)
"""The smallest and the largest share of an entry: longer ones would be wider than a page."""


def default_quantities(model: Model) -> tuple[str, ...]:
    """The quantities of ``Q u' = P`` (``M u' = P`` if loads depend on accelerations), ``J u' = b``, q' and s'."""
    accelerated = ("M",) if model.is_accelerated else ()
    constraints = ("J", "b") if model.constraints else ()
    rates = ("sdot",) if model.states else ()
    return ("qdot", "Q", *accelerated, "P", *constraints, *rates)


def quantity_latex(quantity: Any) -> tuple[Latex, str]:
    """A quantity in LaTeX, and a sentence about what is left out, empty if nothing is.

    Sizes are those of written expressions, in which shared parts are repeated.
    """
    rows, columns = (*quantity.shape, 1, 1)[:2]
    share = LARGEST // max(1, min(rows, MOST_LINES) * min(columns, MOST_LINES))
    limit = min(max(share, SHARES[0]), SHARES[1])
    sizes = _sizes(quantity.nodes)
    lines = [quantity.nodes[columns * i : columns * (i + 1)][:MOST_LINES] for i in range(min(rows, MOST_LINES))]
    shown = [node for line in lines for node in line if sizes[node.index] <= limit]
    texts = dict(zip([node.index for node in shown], map(latex, to_sympy(shown, quantity.names)), strict=True))
    cells = [[texts.get(node.index, r"\cdots") for node in line] for line in lines]
    left_out = []
    if len(texts) < len({node.index for line in lines for node in line}):
        left_out.append(f"entries with more than {limit} operands and operations")
    if columns > MOST_LINES:
        cells = [[*line, r"\cdots"] for line in cells]
    if rows > MOST_LINES:
        cells.append([r"\vdots"] * len(cells[0]))
    if max(rows, columns) > MOST_LINES:
        left_out.append(f"rows and columns after the first {MOST_LINES} of {rows} x {columns}")
    return Latex(_equation(quantity, cells)), _notice(quantity.name, left_out)


def split(quantity: Any, largest: int = 0) -> tuple[list[tuple[Any, Any]], Any]:
    """Common subexpressions with their symbols, and the quantity in terms of them.

    A quantity with up to ``largest`` operations is left whole.
    """
    if quantity.operation_count <= largest:
        return [], quantity.to_sympy()
    replacements, expression = quantity.to_sympy(cse=True)
    return list(replacements), expression


def entries(quantity: Any, expression: Any, latex: bool = False) -> list[tuple[str, Any]]:
    """Every entry of an expression of :func:`split` with its name, ``Q[0, 1]``, in LaTeX ``Q_{0,1}``."""
    name = _name(quantity.name) if latex else quantity.name
    if not quantity.shape:
        return [(name, expression)]
    places = [map(str, place) for place in itertools.product(*map(range, quantity.shape))]
    names = [f"{name}_{{{','.join(place)}}}" if latex else f"{name}[{', '.join(place)}]" for place in places]
    return list(zip(names, expression, strict=True))


def size_row(quantity: Any) -> tuple[str, str, str]:
    """Name, shape and number of operations of a quantity for a table."""
    return quantity.name, " x ".join(map(str, quantity.shape)) or "scalar", str(quantity.operation_count)


def quantity_display(quantity: Any) -> str:
    """What a notebook shows of a quantity: a displayed formula, with a line about what is left out."""
    formula, notice = quantity_latex(quantity)
    below = rf" \\ \text{{{latex_text(notice)}}}" if notice else ""
    return rf"$$\begin{{gathered}} {formula}{below} \end{{gathered}}$$"


def equations_table(equations: Any) -> Table:
    """Shapes, operation counts and formulas of the equations of motion."""
    rows, notes = [], []
    for name in default_quantities(equations.model):
        quantity = getattr(equations, name)
        formula, notice = quantity_latex(quantity)
        rows.append((*size_row(quantity), formula))
        notes += [notice] if notice else []
    title = f"Equations of {equations.model.name}: {'M' if equations.model.is_accelerated else 'Q'} u' = P"
    title += " + J^T lambda, J u' = b" if equations.model.constraints else ""
    return Table.of(title, ("quantity", "shape", "operations", ""), rows, right=("operations",), notes=tuple(notes))


def _sizes(nodes: Sequence[Node]) -> dict[int, int]:
    """Operands and operations of each node as a written expression."""
    sizes: dict[int, int] = {}
    for node in reachable(nodes):
        sizes[node.index] = 1 + sum(sizes[operand.index] for operand in node.args)
    return sizes


def _equation(quantity: Any, cells: Sequence[Sequence[str]]) -> str:
    if not quantity.shape:
        right = cells[0][0]
    elif not cells or not cells[0]:
        right = r"\left[\right]"
    else:
        body = r" \\ ".join(" & ".join(line) for line in cells)
        right = rf"\left[\begin{{array}}{{{'c' * len(cells[0])}}} {body} \end{{array}}\right]"
    return f"{_name(quantity.name)} = {right}"


def _name(name: str) -> str:
    return name if len(name) == 1 else rf"\mathrm{{{latex_text(name)}}}"


def _notice(name: str, left_out: Sequence[str]) -> str:
    return f"{name}: not shown are {' and '.join(left_out)}; see to_sympy(cse=True)" if left_out else ""
