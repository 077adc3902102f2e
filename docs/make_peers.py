"""Writes the results of ``python -m benchmarks --output FILE`` into docs/benchmark.md, with the figures.

``python docs/make_peers.py FILE`` replaces what is between the two markers of the page, and writes
docs/plots/peers_work.png (error against time of the integrations) and docs/plots/peers_growth.png.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from make_pictures import PLOTS, save
from matplotlib.figure import Figure

sys.path.append(str(Path(__file__).parents[1]))

from benchmarks.measure import Results, read_results
from benchmarks.registry import OWN, PEERS
from benchmarks.tables import TextTable, all_tables

PAGE = Path(__file__).parent / "benchmark.md"
BEGIN, END = "<!-- results of the peers: begin -->", "<!-- results of the peers: end -->"
ORDER = (OWN.name, *PEERS)
COLORS = {name: f"C{k}" for k, name in enumerate(ORDER)}
WORK, GROWTH = "peers_work.png", "peers_growth.png"


def markdown(table: TextTable) -> str:
    """The table with its title as a heading."""
    marks = ["---" if k < table.left else "---:" for k in range(len(table.headings))]
    lines = [table.headings, marks, *table.rows]
    return f"### {table.title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def section(results: Results) -> str:
    """What is between the markers."""
    # The lines on the machine name the version of kanegen.
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items() if name != OWN.name)
    figures = [f"![Error against time of the integrations](plots/{WORK})"] if results.integration else []
    figures += [f"![Time of an evaluation against the number of bodies](plots/{GROWTH})"] if results.growth else []
    tables = [markdown(table) for table in all_tables(results, lambda text: f"**{text}**")]
    machine = f"Measured on {results.machine[0]}; {versions}; {'; '.join(results.machine[1:])}."
    return "\n\n".join([machine, *figures, *tables])


def replaced(page: str, text: str) -> str:
    """The page with new text between the markers. Raises `ValueError` if a marker is missing."""
    before, after = page.index(BEGIN) + len(BEGIN), page.index(END)
    return f"{page[:before]}\n\n{text}\n\n{page[after:]}"


def draw_work(results: Results) -> None:
    """A panel for each problem, with a curve for each method of each program."""
    problems = list(results.integration)
    columns = min(4, len(problems))
    rows = -(-len(problems) // columns)
    figure = Figure(figsize=(2.9 * columns, 2.7 * rows + 0.8), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
    for axes, problem in zip(panels, problems, strict=False):
        for peer in ORDER:
            for points in results.integration[problem].get(peer, {}).values():
                shown = [point for point in points if 1e-14 < point.error < 1e-2]
                errors, seconds = [point.error for point in shown], [point.seconds for point in shown]
                axes.loglog(errors, seconds, ".-", color=COLORS[peer], label=peer, lw=1.0, ms=4)
        axes.set_title(problem, fontsize="medium")
        axes.tick_params(labelbottom=True)
        axes.grid(True, alpha=0.3)
    panels[0].invert_xaxis()
    for axes in panels[len(problems) :]:
        axes.remove()
    handles = {label: line for axes in panels for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=len(handles))
    figure.supxlabel("error of the final state")
    figure.supylabel("time (s)")
    save(figure, PLOTS / WORK)


def draw_growth(results: Results) -> None:
    figure = Figure(figsize=(4.6 * len(results.growth), 3.4), layout="constrained")
    for axes, (family, rows) in zip(
        figure.subplots(1, len(results.growth), squeeze=False).ravel(), results.growth.items(), strict=True
    ):
        for peer in ORDER:
            shown = {n: row[peer] for n, row in rows.items() if peer in row}
            if shown:
                axes.loglog(
                    shown.keys(), [1e9 * value for value in shown.values()], "o-", color=COLORS[peer], label=peer
                )
        axes.set(title=f"{family}(n)", xlabel="n", ylabel="right-hand side in C (ns)")
        axes.set_xticks(list(rows), map(str, rows), minor=False)
        axes.set_xticks([], minor=True)
        axes.grid(True, alpha=0.3)
        axes.legend()
    save(figure, PLOTS / GROWTH)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    found = read_results(parser.parse_args().file)
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), section(found)), encoding="utf-8")
    if found.integration:
        draw_work(found)
    if found.growth:
        draw_growth(found)
