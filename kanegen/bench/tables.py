"""Results as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from kanegen.bench.forms import FormRow, FormTime
from kanegen.bench.pair import ErrorRow, Evaluation
from kanegen.bench.results import Result, seconds_text

_COLORS = {"goal": "green", "met": "green", "missed": "red", "no peer": "yellow", "not judged": "yellow"}
_NUMERIC = {"measured", "at least", "goal"}


def numbers_table(results: Sequence[Result]) -> Table:
    """One line per number: measured, at least, goal, and whether it is met."""
    table = Table(title="Numbers", title_justify="left", header_style="bold")
    for heading in ("what", "measured", "at least", "goal", "", "how"):
        table.add_column(heading, justify="right" if heading in _NUMERIC else "left")
    for result in results:
        color = _COLORS[result.verdict]
        unit = f" {result.target.unit}".rstrip()
        table.add_row(
            result.what,
            "-" if result.measured is None else f"{_number(result.measured)}{unit}",
            _number(result.target.at_least),
            _number(result.target.goal),
            f"[{color}]{result.verdict}[/{color}]",
            result.detail,
        )
    return table


def comparison_table(
    name: str, derivation: tuple[float, float], evaluation: Evaluation, rows: Sequence[ErrorRow]
) -> Table:
    """Pure Python against the compiled solver: ``derivation`` holds the seconds of both."""
    table = Table(title=f"{name}: SymPy and SciPy against kanegen", title_justify="left", header_style="bold")
    table.add_column("what")
    for heading in ("pure Python", "kanegen", "ratio"):
        table.add_column(heading, justify="right")
    table.add_row("derivation", *_sides(*derivation))
    table.add_row("right-hand side, called from Python", *_sides(evaluation.python.best, evaluation.call.best))
    table.add_row("right-hand side in C (SymPy's cse)", *_sides(evaluation.c_peer.best, evaluation.kernel.best))
    for row in rows:
        table.add_row(
            f"integration to error {row.error:.0e}",
            f"{seconds_text(row.python.seconds)} {row.python.method}",
            f"{seconds_text(row.compiled.seconds)} {row.compiled.method}",
            _number(row.ratio),
        )
    return table


def forms_table(rows: Sequence[FormRow]) -> Table:
    """Time and operations of the right-hand side in every form; what auto takes, and how good that is."""
    forms = list(dict.fromkeys(form for row in rows for form in row.forms))
    title = "Right-hand side in C: time, operations; auto's choice, its time to that of the fastest form with speeds"
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("model")
    for form in forms:
        table.add_column(form, justify="right")
    table.add_column("auto")
    table.add_column("ratio", justify="right")
    for row in rows:
        cells = ["-" if form not in row.forms else _form_cell(row.forms[form]) for form in forms]
        table.add_row(row.name, *cells, row.chosen, f"{row.ratio:.2f}")
    return table


def _form_cell(form: FormTime) -> str:
    return f"{seconds_text(form.timing.best)}\n{form.operations}"


def _sides(python: float, compiled: float) -> tuple[str, str, str]:
    return seconds_text(python), seconds_text(compiled), _number(python / compiled)


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100.0 else f"{value:.3g}"
