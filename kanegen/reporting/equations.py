"""Sections about the description, the equations, their sizes and their forms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from sympy.physics.vector import dynamicsymbols

from kanegen.derivation import Equations
from kanegen.derivation.typeset import default_quantities, entries, quantity_latex, size_row, split
from kanegen.display import Latex, Table, escape, latex
from kanegen.errors import BuildError
from kanegen.forms import FORMS
from kanegen.model import Model
from kanegen.model.expressions import symbol_name
from kanegen.pipeline import generate
from kanegen.program.catalogue import CATALOGUE
from kanegen.program.options import BuildOptions
from kanegen.reporting.mathml import mathml, table_html
from kanegen.reporting.reported import Reported

MOST_FORMULAS: Final = 400
"""Named subexpressions and entries of a large quantity; of more, their number is given."""


def description(reported: Reported) -> Iterator[str]:
    """What the model contains, parameters with their values, and the start."""
    model = reported.model
    counts = (
        (len(model.coordinates), "coordinates"),
        (len(model.speeds), "speeds"),
        (len(model.states), "additional states"),
        (len(model.bodies), "bodies"),
        (len(model.constraints), "constraints"),
        (len(model.resolved_contacts), "contacts"),
        (len(model.inputs), "inputs"),
    )
    yield f"<p>Numbers of {', '.join(f'{what}: {count}' for count, what in counts if count)}.</p>"
    yield table_html(model.overview())
    if reported.parameters:
        yield _values("Parameters", reported.parameters, model)
    start = _start(reported)
    if start:
        yield _values("Start", start, model)


def _start(reported: Reported) -> Mapping[Any, float | None]:
    """Values by symbol at the start of the motion, or in ``initial`` of the model."""
    model, start = reported.model, reported.start
    if start is None:
        return model.initial
    groups = ((model.coordinates, "q"), (model.speeds, "u"), (tuple(model.states), "s"))
    pairs = [(x, value) for symbols, key in groups if symbols for x, value in zip(symbols, start[key], strict=True)]
    return {dynamicsymbols._t: start["t"], **dict(pairs)}


def _values(title: str, known: Mapping[Any, float | None], model: Model) -> str:
    """A table of values by symbol, in the units of display if the model has units."""
    units = model.all_units
    columns = ("symbol", "value", "unit") if units else ("symbol", "value")
    rows = []
    for symbol, value in known.items():
        name = symbol_name(symbol)
        shown = value if value is None else units.display(name, value)
        unit = "s" if symbol == dynamicsymbols._t else units.text(name)
        rows.append((Latex(latex(symbol)), _number(shown), unit)[: len(columns)])
    return table_html(Table(title, columns, tuple(rows), right=("value",)))


def _number(value: Any) -> str:
    return "no value" if value is None else f"{float(value):.9g}"


def shown_quantities(model: Model) -> tuple[str, ...]:
    """The quantities whose formulas are shown; T and V are those of constrained models."""
    return (*default_quantities(model), *(("T", "V") if model.constraints else ()))


def formulas(reported: Reported) -> Iterator[str]:
    """Each quantity as a formula, of large ones also the entries with their common subexpressions."""
    model = reported.model
    left = "M" if model.is_accelerated else "Q"
    system = [rf"{left} \dot{{u}} = P", rf"{left} \dot{{u}} = P + J^{{T}} \lambda, \quad J \dot{{u}} = b"]
    yield f"<p>The equations of motion are {mathml(system[bool(model.constraints)])}"
    yield r", or, without the multipliers, " + mathml(r"T \dot{u} = V") + ".</p>" if model.constraints else ".</p>"
    for name in shown_quantities(reported.model):
        yield f"<h3>{escape(name)}: {escape(_summary(name))}</h3>"
        try:
            quantity = getattr(reported.equations, name)
        except BuildError as error:
            yield f'<p class="missing">{escape(str(error))}</p>'
            continue
        formula, notice = quantity_latex(quantity)
        yield f'<div class="wide">{mathml(formula, display=True)}</div>'
        if notice:
            yield from _large(quantity)


def _summary(name: str) -> str:
    text = CATALOGUE[name].summary if name in CATALOGUE else str(getattr(Equations, name).__doc__)
    return re.sub(r", \(n_\w+,\)$", "", text.replace("``", "").rstrip("."))


def _large(quantity: Any) -> Iterator[str]:
    """The entries of a large quantity with their common subexpressions, to be opened."""
    definitions, expression = split(quantity)
    texts = [f"{latex(symbol)} = {latex(value)}" for symbol, value in definitions]
    named = entries(quantity, expression, latex=True)
    texts += [f"{name} = {latex(value)}" for name, value in named if value != 0]
    count = f"{len(definitions)} common subexpressions and {len(texts) - len(definitions)} entries that are not zero"
    if len(texts) > MOST_FORMULAS:
        yield f"<p>Entries that are too long are dots. With {count} the formulas are too many for a page: "
        yield f"<code>kanegen show FILE -q {escape(quantity.name)}</code> prints them.</p>"
        return
    yield f"<details><summary>All entries, with {count}</summary>"
    yield from (f'<div class="wide">{mathml(text, display=True)}</div>' for text in texts)
    yield "</details>"


def counts(reported: Reported) -> Iterator[str]:
    """Shapes and operations of the quantities, and of the compiled functions if there is a solver already."""
    rows = []
    for name in shown_quantities(reported.model):
        try:
            rows.append(size_row(getattr(reported.equations, name)))
        except BuildError:
            continue
    headings = ("quantity", "shape", "operations")
    yield table_html(Table("Quantities, each by itself", headings, tuple(rows), right=("operations",)))
    if reported.has_solver:
        d = reported.solver.description
        compiled = tuple((name, str(entry.operations)) for name, entry in d.functions.items())
        title = f"Compiled functions ({d.form} form)"
        yield table_html(Table(title, ("function", "operations"), compiled, right=("operations",)))


def forms(reported: Reported) -> Iterator[str]:
    """Every form of the equations: what it solves, and its operations, or why it does not apply."""
    rows, notes = [], []
    for name, form in FORMS.items():
        try:
            operations = str(_operations(reported.equations, name))
        except BuildError as error:
            operations = "-"
            notes.append(str(error))
        rows.append((name, form.summary, operations))
    chosen = generate(reported.equations, BuildOptions.of("auto", ("rhs",))).description.form
    first = f'form="auto" selects {chosen}'
    if reported.has_solver:
        first += f"; the motion was integrated in the form {reported.solver.description.form}"
    headings = ("form", "what is solved", "operations")
    title = "Operations of the right-hand side, with its linear solve"
    yield table_html(Table(title, headings, tuple(rows), right=("operations",), notes=(first, *notes)))


def _operations(equations: Equations, form: str) -> int:
    """Operations of the right-hand side in a form. Raises `BuildError` if the form does not apply to the model."""
    momenta = FORMS[form].momenta
    options = BuildOptions.of(form, ("rhs", "momentum") if momenta else ("rhs",))
    functions = generate(equations, options).description.functions
    return functions["momentum_rhs" if momenta else "rhs"].operations
