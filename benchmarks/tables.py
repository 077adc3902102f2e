"""The results of the comparison as tables of text, for terminals and for Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from benchmarks.measure import Results
from benchmarks.registry import OWN, PEERS
from kanegen.cli.bench.pair import Cost, cheapest
from kanegen.cli.tables import number_text, seconds_text

ERRORS = (1e-6, 1e-8, 1e-10, 1e-12)
"""Errors of the final state at which integrations are compared."""

JUDGED = (1e-6, 1e-8, 1e-10)
"""Errors of the mean ratio."""

ORDER = (OWN.name, *PEERS)

Emphasis = Callable[[str], str]


@dataclass(frozen=True)
class TextTable:
    """A title, column headings and rows of text; all columns but the first ``left`` ones are aligned on the right."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1


@dataclass(frozen=True)
class Ratio:
    """The costs of a problem at an error, by program."""

    problem: str
    error: float
    costs: Mapping[str, Cost]

    @property
    def value(self) -> float:
        """The time of kanegen to that of the fastest peer; NaN if kanegen was not measured or no peer gets there."""
        least = min((cost.seconds for peer, cost in self.costs.items() if peer != OWN.name), default=inf)
        return self.costs[OWN.name].seconds / least if OWN.name in self.costs and least < inf else math.nan


def all_tables(results: Results, emphasis: Emphasis) -> list[TextTable]:
    """All tables that have rows; the least time of each row is emphasized."""
    rows = results.evaluation
    made = [
        *(
            _times(f"Right-hand side {how}", "model", {name: row[way] for name, row in rows.items()}, emphasis)
            for how, way in (("in a loop in C", "in C"), ("called from Python", "from Python"))
        ),
        _integrations(results, emphasis),
        _means(results),
        _gradients(results, emphasis),
        _times("One state of a batch", "model", results.batch, emphasis),
        *(
            _times(f"Right-hand side of `{name}(n)` in C", "n", {str(n): row for n, row in growth.items()}, emphasis)
            for name, growth in results.growth.items()
        ),
        _times("From the model to the end of its first motion", "model", results.first, emphasis),
        _forms(results),
        _refusals(results),
    ]
    return [table for table in made if table.rows]


def ratios(results: Results, errors: Sequence[float] = ERRORS) -> list[Ratio]:
    """The cheapest method of every program, for every problem and error."""
    return [
        Ratio(problem, error, {peer: cheapest(methods, error) for peer, methods in curves.items() if methods})
        for problem, curves in results.integration.items()
        for error in errors
    ]


def _times(title: str, what: str, rows: Mapping[str, Mapping[str, float]], emphasis: Emphasis) -> TextTable:
    """Seconds by name of the row and of the column, and the ratio of kanegen's to the least of the others."""
    given = dict.fromkeys(column for row in rows.values() for column in row)
    columns = sorted(given, key=lambda column: ORDER.index(column.split(",")[0]))
    lines = []
    for name, row in rows.items():
        others = [seconds for column, seconds in row.items() if column != OWN.name]
        ratio = number_text(row[OWN.name] / min(others)) if others and OWN.name in row else ""
        lines.append((f"`{name}`", *_cells([row.get(column, inf) for column in columns], emphasis), ratio))
    return TextTable(title, (what, *columns, "ratio"), tuple(lines))


def _cells(seconds: Sequence[float], emphasis: Emphasis, notes: Iterable[str] = ()) -> list[str]:
    """Texts of times with the least one emphasized; nothing for those that are infinite."""
    best = min(seconds, default=inf)
    texts = [seconds_text(value) if value < inf else "" for value in seconds]
    marked = [emphasis(text) if value == best < inf else text for value, text in zip(seconds, texts, strict=True)]
    named = list(notes) or [""] * len(marked)
    return [f"{text} {note}".strip() if text else "" for text, note in zip(marked, named, strict=True)]


def _integrations(results: Results, emphasis: Emphasis) -> TextTable:
    found = ratios(results)
    peers = [peer for peer in ORDER if any(peer in ratio.costs for ratio in found)]
    rows = []
    for ratio in found:
        costs = [ratio.costs.get(peer, Cost("", inf)) for peer in peers]
        cells = _cells([cost.seconds for cost in costs], emphasis, [cost.method for cost in costs])
        value = "" if math.isnan(ratio.value) else number_text(ratio.value)
        rows.append((f"`{ratio.problem}`", f"{ratio.error:.0e}", *cells, value))
    return TextTable("Integration at equal measured error", ("model", "error", *peers, "ratio"), tuple(rows), left=2)


GRADIENT_ERRORS = (1e-5, 1e-7)
"""Errors of derivatives, relative to 1 + their magnitude, at which their times are compared."""


def _gradients(results: Results, emphasis: Emphasis) -> TextTable:
    """Times of all derivatives of the end of a motion, and of the gradient of one function of it, at equal error."""
    found = {peer for row in results.gradients.values() for peer in row}
    peers = sorted(found, key=lambda peer: (ORDER.index(peer.split(",")[0]), peer))
    rows = []
    for name, curves in results.gradients.items():
        problem, kind = name.rsplit(", ", 1)
        for error in GRADIENT_ERRORS:
            costs = {peer: cheapest(curves[peer], error) if peer in curves else Cost("", inf) for peer in peers}
            cells = _cells([c.seconds for c in costs.values()], emphasis, [c.method for c in costs.values()])
            ratio = Ratio(problem, error, costs).value
            value = "" if math.isnan(ratio) else number_text(ratio)
            rows.append((f"`{problem}`", kind, f"{error:.0e}", *cells, value))
    headings = ("motion", "derivatives", "error", *peers, "ratio")
    return TextTable("Derivatives of motions at equal measured error", headings, tuple(rows), left=3)


def _means(results: Results) -> TextTable:
    """Geometric means and largest ratios, for each error and over those that are judged."""
    found = [ratio for ratio in ratios(results) if not math.isnan(ratio.value)]
    groups = {f"{error:.0e}": [ratio for ratio in found if ratio.error == error] for error in ERRORS}
    groups[f"{max(JUDGED):.0e} to {min(JUDGED):.0e}"] = [ratio for ratio in found if ratio.error in JUDGED]
    rows = []
    for name, group in groups.items():
        if group:
            mean = math.exp(sum(math.log(ratio.value) for ratio in group) / len(group))
            worst = max(group, key=lambda ratio: ratio.value)
            rows.append((name, number_text(mean), f"{number_text(worst.value)} (`{worst.problem}`)"))
    title = "Time of kanegen to that of the fastest peer at equal error"
    return TextTable(title, ("error", "geometric mean", "largest"), tuple(rows))


def _forms(results: Results) -> TextTable:
    """What each program evaluates, with the problems of which this is true."""
    found: dict[tuple[str, str], list[str]] = {}
    for problem, peers in results.forms.items():
        for peer, form in peers.items():
            found.setdefault((peer, form), []).append(f"`{problem}`")
    rows = [(peer, form, ", ".join(problems)) for (peer, form), problems in found.items()]
    rows.sort(key=lambda row: ORDER.index(row[0]))
    return TextTable("What the programs evaluate", ("program", "equations", "models"), tuple(rows), left=3)


def _refusals(results: Results) -> TextTable:
    rows = [(peer, "all", reason) for peer, reason in results.missing.items()]
    rows += [
        (peer, f"`{problem}`", reason.replace("|", "/"))
        for problem, peers in results.refused.items()
        for peer, reason in peers.items()
    ]
    return TextTable("Not measured", ("program", "model", "reason"), tuple(rows), left=3)
