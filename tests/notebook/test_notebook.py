"""What notebooks show: tables, formulas, completions, progress; and the notebook of the documentation."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from checkout import ROOT
from hybrid_models import block
from IPython.core.completer import IPCompleter, provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from ipywidgets import Output
from rich.console import Console
from sympy.physics.vector.printing import vlatex
from systems import initial, model_of, solver_for

import kanegen as kg
from kanegen import progress
from kanegen.display import MOST_ROWS, Latex, Table, latex, names
from kanegen.verification import Check, Report

NOTEBOOK = ROOT / "docs" / "tour.ipynb"


class Cells(HTMLParser):
    """The texts of the cells of all tables, row by row; an unbalanced tag is an error."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data

    def facts(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for what, *values in self.rows:
            found.setdefault(what, []).extend(values)
        return found


def shown(thing: Any) -> Cells:
    return Cells(thing._repr_html_())


@cache
def crank() -> kg.Solution:
    start = initial("slider_crank")
    solution: kg.Solution = solver_for("slider_crank").integrate((0.0, 1.0), start["q"], start["u"])
    return solution


# -- tables -------------------------------------------------------------------------------------------------


def test_texts_are_escaped_and_formulas_typeset() -> None:
    table = Table.of("<t>", ("a", "b"), [("1 < 2 & $3$", Latex("x_1 < $"))], notes=("<n>",))
    html = table.html()
    assert Cells(html).rows == [["a", "b"], ["1 < 2 & $3$", r"$\displaystyle x_1 < \$$"]]
    assert "<t>" not in html
    assert "<n>" not in html
    assert html.count("mathjax_ignore") == 4  # headings, the text and the note; not the formula


def test_long_tables_and_lists_are_shortened_in_the_middle() -> None:
    rows = Cells(Table.of("", (), [(str(k), "x") for k in range(1000)]).html()).rows
    assert len(rows) == MOST_ROWS + 1
    assert rows[0] == ["0", "x"]
    assert rows[MOST_ROWS // 2] == ["...", ""]
    assert rows[-1] == ["999", "x"]
    text = names(map(str, range(100)))
    assert text.startswith("0, 1,")
    assert text.endswith(" 98, 99")
    assert "100 in all" in text


# -- models and equations -----------------------------------------------------------------------------------


def test_models_show_variables_constraints_and_parameters() -> None:
    model = model_of("slider_crank")
    facts = shown(model).facts()
    assert facts["coordinates"] == [r"$\displaystyle \theta, \beta, x$"]
    constraints = [f"$\\displaystyle {vlatex(x)} = 0$" for x in model.holonomic_constraints]
    assert facts["holonomic constraint"] == constraints
    assert facts["bodies"] == ["crank, rod, slider"]
    assert "l1 = 0.5" in facts["parameters"][0]
    assert "1033 operations" in shown(model_of("whipple_bicycle")).facts()["nonholonomic constraint"][2]


def test_names_of_several_letters_are_words() -> None:
    """``vx`` was typeset as the product of v and x."""
    names = {
        "vx": r"\text{vx}",
        "omega": r"\omega",
        "q1": "q_{1}",
        "l_rod": r"l_{\text{rod}}",
        "mu_k": r"\mu_{k}",
        "xhat": r"\hat{x}",
        "vxdot": r"\dot{\text{vx}}",
        "x_12": "x_{12}",
        "length of rod": r"\text{length of rod}",
        "θ": "θ",
        "длина": r"\text{длина}",
    }
    for name, text in names.items():
        assert latex(sm.Symbol(name, positive=True)) == text
        assert latex(sm.Function(name)(me.dynamicsymbols._t)) == text
    vx, k = me.dynamicsymbols("vx"), sm.Symbol("k")
    assert latex(k * vx.diff() ** 2) == r"k \dot{\text{vx}}^{2}"
    assert latex(sm.Matrix([[vx, 2]])).count(r"\text{vx}") == 1


def test_names_of_the_user_cannot_end_a_cell_or_a_formula() -> None:
    x, v = me.dynamicsymbols("x <v>$")
    m = sm.Symbol("</td>m")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    body = me.Particle("a<b>", O.locatenew("P", x * N.x), m)
    options: dict[str, Any] = {"kinematics": (v - x.diff(),), "bodies": (body,), "parameters": {m: 2.0}}
    model = kg.Model(name="<i>model", frame=N, coordinates=(x,), speeds=(v,), **options)
    facts = shown(model).facts()
    assert facts["bodies"] == ["a<b>"]
    assert facts["parameters"] == ["</td>m = 2"]
    assert facts["speeds"] == [r"$\displaystyle \text{<v>\$}$"]


def test_equations_show_the_quantities_that_they_consist_of() -> None:
    equations = kg.derive(model_of("slider_crank"))
    rows = {row[0]: row for row in shown(equations).rows}
    assert list(rows) == ["quantity", "qdot", "Q", "P", "J", "b"]
    assert rows["J"][1:3] == ["2 x 3", str(equations.J.operation_count)]
    entries = [vlatex(x) for x in equations.J.to_sympy()]
    assert all(entry in rows["J"][3] for entry in entries)


def test_quantities_are_formulas() -> None:
    equations = kg.derive(model_of("slider_crank"))
    assert vlatex(equations.kinetic_energy.to_sympy()) in equations.kinetic_energy._repr_latex_()
    text = equations.A1._repr_latex_()
    assert text.startswith("$$")
    assert text.count(r"\begin") == text.count(r"\end")
    assert text.count("&") == 4  # two rows and three columns
    assert r"\text" not in text


def test_large_quantities_are_shortened_with_a_notice() -> None:
    equations = kg.derive(model_of("spatial_chain", n=6))
    text = equations.Q._repr_latex_()
    assert len(text) < 20_000
    assert "12 x 12" in text
    assert r"to\_sympy(cse=True)" in text
    assert text.count(r"\cdots") > 9
    assert r"\cdots" in equations.P._repr_latex_()


def test_quantities_without_entries_are_shown() -> None:
    assert "J" in kg.derive(model_of("n_link_pendulum", n=3)).J._repr_latex_()


# -- results ------------------------------------------------------------------------------------------------


def test_solvers_show_their_values_and_functions() -> None:
    solver = solver_for("slider_crank").with_parameters(tau=7.5)
    facts = shown(solver).facts()
    assert "tau = 7.5" in facts["parameters"][0]
    assert f"rhs ({solver.operation_count})" in facts["functions (operations)"][0]
    assert facts["dependent speeds"] == ["u2, u3"]


def test_solutions_show_their_end_and_their_events() -> None:
    solution = crank()
    facts = shown(solution).facts()
    assert "finished" in facts["status"][0]
    assert f"theta = {solution.q[-1, 0]:.6g}" in facts["last state"][0]
    start = initial("bouncing_ball")
    ball = solver_for("bouncing_ball").integrate((0.0, 6.0), start["q"], start["u"])
    rows = shown(ball).rows
    first = ball.events[0]
    assert [f"{first.t:.9g}", "floor", "impact"] in [row[:3] for row in rows]
    assert ["..."] in [row[:1] for row in rows]
    assert shown(ball.events[:2]).rows[1:] == shown(ball.events).rows[1:3]
    assert len(shown(first).rows) == 2


def test_linear_models_show_eigenvalues_and_named_matrices() -> None:
    linear = block().linearize(0.0, [0.0, 1.0], [0.0, 0.0])  # in the air
    html = linear._repr_html_()
    rows = Cells(html).rows
    assert [f"{linear.eigenvalues[0].real:.6g}", f"{linear.eigenvalues[0].imag:.6g}"] in rows
    for matrix, columns in ((linear.A, linear.states), (linear.B, linear.inputs)):
        start = rows.index(["", *columns]) + 1
        shown_rows = rows[start : start + len(linear.states)]
        assert [row[0] for row in shown_rows] == [f"{name}'" for name in linear.states]
        assert [row[1:] for row in shown_rows] == [[f"{x:.5g}" for x in row] for row in matrix]


def test_steady_states_show_their_stability_and_eigenvalues() -> None:
    solver, q = solver_for("slider_crank"), initial("slider_crank")["q"]
    found = solver.equilibrium(q)
    facts = shown(found).facts()
    assert f"theta = {found['theta']:.6g}" in facts["state"][0]
    assert facts["stability"] == [found.stability]
    assert facts["neighboring steady states"] == ["none"]
    for label, value in found.multipliers.items():
        assert facts[label] == [f"{value:.6g}"]
    x = found.eigenvalues[0]
    assert [f"{x.real:.6g}", f"{x.imag:.6g}"] in shown(found).rows
    branch = solver.equilibria("tau", [3.5, 3.0, 2.5], q)
    rows = [
        [f"{v:.6g}", s.stability, f"{s.eigenvalues[0].real:.6g}", ""]
        for v, s in zip(branch.values, branch.states, strict=True)
    ]
    assert shown(branch).rows == [["tau", "stability", "largest real part (1/s)", ""], *rows]


def test_reports_of_verification_are_tables() -> None:
    agrees, differs = Check("Gauss", 1e-16, 1e-12, "u' < a"), Check("Lagrange", 0.5, 1e-12, "Q u' + L")
    report = Report("disk", "reduced", (agrees, differs), ("10 states",))
    assert shown(report).rows[1:] == [
        ["Gauss", "1.0e-16", "1.0e-12", "ok", "u' < a"],
        ["Lagrange", "5.0e-01", "1.0e-12", "FAILED", "Q u' + L"],
    ]
    assert "color: red" in report._repr_html_()
    assert "10 states" in report._repr_html_()
    assert all(text in str(report) for text in ("Gauss", "FAILED", "10 states"))


# -- completion ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('solution["th', "theta"),
        ('solution["crank', "crank_pin_x"),
        ('outputs["gui', "guide"),
        ('parameters["ta', "tau"),
        ("solver.kin", "kinetic_energy"),
        ("solution.mult", "multipliers"),
        ("equations.A", "A1"),
    ],
)
def test_names_are_completed(text: str, expected: str) -> None:
    solution = crank()
    members = {"outputs": solution.outputs, "parameters": solution.solver.parameters}
    equations = kg.derive(model_of("slider_crank"))
    namespace = {"solution": solution, "solver": solution.solver, "equations": equations, **members}
    shell = InteractiveShell()
    completer = IPCompleter(shell=shell, namespace=namespace, use_jedi=False)
    with provisionalcompleter():
        matches = [match.text for match in completer.completions(text, len(text))]
    assert any(expected in match for match in matches), matches


# -- progress -----------------------------------------------------------------------------------------------


def test_progress_in_a_notebook_is_a_bar_that_disappears(monkeypatch: pytest.MonkeyPatch) -> None:
    displayed: list[Any] = []
    monkeypatch.setattr("IPython.display.display", displayed.append)
    now = [0.0]
    console = Console(force_jupyter=True, width=80)
    with progress.ProgressBar("a[b]<c", 0.0, 2.0, clock=lambda: now[0], console=console) as bar:
        bar(0.5)
        assert displayed == []
        now[0] = 1.0
        bar(1.0)
        (widget, *_) = displayed
        assert isinstance(widget, Output)
        closed: list[Output] = []
        monkeypatch.setattr(widget, "close", lambda: closed.append(widget))
        end = time.monotonic() + 10.0
        while "t = 1 s" not in (text := displayed[-1].text):  # drawn by a thread
            assert time.monotonic() < end
            time.sleep(0.05)
    assert "a[b]<c" in text
    assert closed == [widget]


def test_progress_in_a_notebook_without_widgets_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    displayed: list[Any] = []
    monkeypatch.setattr("IPython.display.display", displayed.append)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    now = [0.0]
    console = Console(force_jupyter=True, width=80)
    with progress.ProgressBar("motion", 0.0, 2.0, clock=lambda: now[0], console=console) as bar:
        now[0] = 1.0
        bar(1.0)
    assert displayed == []


# -- the notebook of the documentation ----------------------------------------------------------------------


def outputs(path: Path) -> list[set[str]]:
    """The types of the outputs of all code cells."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    return [{kind for out in cell["outputs"] for kind in out.get("data", {"text": ""})} for cell in code]


@pytest.mark.target
def test_the_notebook_runs_and_its_stored_outputs_are_those_of_a_run(tmp_path: Path) -> None:
    target = tmp_path / "tour.ipynb"
    command = [sys.executable, ROOT / "docs" / "make_notebook.py", target]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = outputs(target)
    assert found == outputs(NOTEBOOK)
    kinds = {kind for cell in found for kind in cell}
    assert {"text/html", "text/latex", "image/png"} <= kinds
