"""Reports: what their sections contain, read from the HTML."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import DESKTOP, PHONE, WITHOUT, Page, browsers
from messages import raises, says
from systems import initial, model_of, solver_for

import kanegen as kg
from kanegen.derivation.typeset import entries, split
from kanegen.errors import SolveError
from kanegen.reporting.equations import description, formulas
from kanegen.reporting.mathml import mathml
from kanegen.reporting.reported import Reported

ALL = (
    "Description",
    "Motion in 3-D",
    "Motion",
    "Energy and drift",
    "Constraint forces",
    "Events",
    "Equilibrium",
    "Equations",
    "Operation counts",
    "Forms of the equations",
    "Verification",
)


class Content(HTMLParser):
    """Texts by section, rows of tables by section, attributes of tags, and links of the table of contents."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.section = ""
        self.texts: dict[str, str] = {}
        self.rows: dict[str, list[list[str]]] = {}
        self.tags: dict[str, list[dict[str, str | None]]] = {}
        self.titles: list[str] = []
        self._heading = self._cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.setdefault(tag, []).append(dict(attrs))
        if tag == "section":
            self.section = str(dict(attrs)["id"])
            self.texts[self.section], self.rows[self.section] = "", []
        self._heading |= tag == "h2"
        if tag == "tr":
            self.rows[self.section].append([])
        if tag in ("td", "th"):
            self.rows[self.section][-1].append("")
            self._cell = True

    def handle_endtag(self, tag: str) -> None:
        self._heading &= tag != "h2"
        self._cell &= tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._heading:
            self.titles.append(data)
        if self._cell:
            self.rows[self.section][-1][-1] += data
        if self.section:
            self.texts[self.section] += data


@cache
def solution_of(name: str) -> kg.Solution:
    start = initial(name)
    return solver_for(name).integrate((0.0, 1.0), start["q"], start["u"])


@cache
def report_of(name: str, verify: bool = False) -> Any:
    return kg.report(solution_of(name), verify=verify)


@cache
def content_of(name: str, verify: bool = False) -> Content:
    return Content(report_of(name, verify).html)


def test_a_report_has_all_sections_that_apply_and_a_table_of_contents() -> None:
    content = content_of("slider_crank")
    assert content.titles == [title for title in ALL if title not in ("Events", "Verification")]
    targets = [f"#{item['id']}" for item in content.tags["section"]]
    assert [link["href"] for link in content.tags["a"]] == targets
    assert content_of("bouncing_ball").titles == [title for title in ALL if title != "Verification"]


@pytest.mark.parametrize("name", ["slider_crank", "bouncing_ball"])
def test_a_report_needs_no_network(name: str) -> None:
    content = content_of(name)
    addresses = [
        item[key] for items in content.tags.values() for item in items for key in ("src", "href") if key in item
    ]
    assert addresses
    assert all(str(address).startswith(("data:", "#")) for address in addresses)
    (frame,) = content.tags["iframe"]
    without_frame = report_of(name).html.replace(str(frame["srcdoc"]), "")
    assert "script" not in content.tags
    assert not re.search(r"url\(|@import", without_frame[: without_frame.index("<body>")])


def test_the_description_has_the_values_of_the_run() -> None:
    start = initial("slider_crank")
    solver = solver_for("slider_crank").with_parameters(tau=1.25)
    solution = solver.integrate((0.0, 0.1), start["q"], start["u"])
    rows = dict(row for row in Content(kg.report(solution, verify=False).html).rows["description"] if len(row) == 2)
    expected = {**solver.parameters, **dict(zip(solver.description.coordinates, start["q"], strict=True)), "t": 0.0}
    names = {"tau": "τ", "theta": "θ", "beta": "β"}
    for name, value in expected.items():
        assert float(rows[names.get(name, name)]) == pytest.approx(value, rel=1e-8)


def test_the_description_has_units_of_display() -> None:
    model = model_of("dc_motor_arm")
    html = "".join(description(Reported(model, None, "no motion", verify=False)))
    rows = Content(f'<section id="description">{html}</section>').rows["description"]
    first = rows.index(["symbol", "value", "unit"]) + 1
    for row, (symbol, value) in zip(rows[first:], model.parameters.items(), strict=False):
        unit = model.all_units[str(symbol)]
        assert row[2] == ("" if unit.text == "1" else unit.text)
        assert float(row[1]) == pytest.approx(unit.display(value), rel=1e-8)
    assert len(rows) - first >= len(model.parameters)


def test_equations_are_mathml_with_the_operation_counts_of_derive() -> None:
    content = content_of("slider_crank")
    equations = kg.derive(model_of("slider_crank"))
    assert len(content.tags["math"]) > 15
    assert "$" not in content.texts["equations"]
    assert "\\" not in content.texts["equations"]
    rows = {row[0]: row[1:] for row in content.rows["operation-counts"] if len(row) == 3}
    for name in ("Q", "P", "J", "b", "T", "V"):
        assert f"\n{name}: " in "\n" + content.texts["equations"].replace("\n\n", "\n")
        assert rows[name][1] == str(getattr(equations, name).operation_count)


def test_a_large_quantity_has_its_common_subexpressions() -> None:
    """With the values of the named subexpressions inserted one after the other, the entries are those of the matrix."""
    model = model_of("spatial_chain", n=2)
    quantity = kg.derive(model).Q
    parts = list(formulas(Reported(model, None, "", False)))
    opened = [part for part in parts if "<summary>" in part]
    definitions, expression = split(quantity)
    assert any(f"{len(definitions)} common subexpressions" in part for part in opened)
    expected = quantity.to_sympy()
    draw = np.random.default_rng(0)
    values: dict[Any, Any] = {symbol: draw.uniform(0.5, 1.5) for symbol in (*expected.free_symbols, *model.coordinates)}
    wanted = np.array(expected.subs(values), dtype=float).ravel()
    for symbol, value in definitions:
        values[symbol] = value.subs(values)
    found = [float(entry.subs(values)) for _, entry in entries(quantity, expression)]
    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12)


def test_forms_have_the_counts_of_their_solvers_and_reasons() -> None:
    rows = {row[0]: row[-1] for row in content_of("slider_crank").rows["forms-of-the-equations"]}
    assert rows.keys() - {"form"} == kg.forms.FORMS.keys()
    form = solver_for("slider_crank").description.form
    assert rows[form] == str(solver_for("slider_crank").operation_count)
    says(content_of("bouncing_ball").texts["forms-of-the-equations"], "hamilton", "contacts")


def test_the_motion_has_its_energy_forces_and_pictures() -> None:
    solution, content = solution_of("slider_crank"), content_of("slider_crank")
    rows = {row[0]: row[1:] for section in ("energy-and-drift", "constraint-forces") for row in content.rows[section]}
    largest = np.abs(solution.residuals[0]).max()
    assert float(rows["position residual"][0]) == pytest.approx(largest, rel=1e-3)
    forces = [row for name, row in rows.items() if name.startswith("multipliers[")]
    assert [abs(float(row[0])) for row in forces] == pytest.approx(np.abs(solution.multipliers).max(axis=0), rel=1e-5)
    pictures = [item for item in content.tags["img"] if str(item["src"]).startswith("data:image/svg+xml;base64,")]
    assert len(pictures) >= 4
    assert all(item["alt"] for item in pictures)


def test_events_are_listed() -> None:
    rows = content_of("bouncing_ball").rows["events"]
    first = solution_of("bouncing_ball").events[0]
    assert float(rows[1][0]) == pytest.approx(first.t, rel=1e-8)
    assert rows[1][1:3] == [first.name, first.kind]


def test_eigenvalues_are_those_of_the_equilibrium() -> None:
    """A crank with a torque is in equilibrium where the torque of the weights is opposite."""
    rows = content_of("slider_crank").rows["equilibrium"]
    solver = solver_for("slider_crank")
    found = solver.equilibrium(initial("slider_crank")["q"])
    shown = [float(row[0]) for row in rows[rows.index(["real (1/s)", "imaginary (1/s)"]) + 1 :]]
    assert shown == pytest.approx(found.eigenvalues.real.tolist(), rel=1e-5)


def test_the_verification_names_the_row_nearest_to_its_tolerance() -> None:
    content = content_of("rolling_disk", verify=True)
    rows = [row for row in content.rows["verification"][1:] if row[1] != "-" and row[2] != "-"]
    worst = max(rows, key=lambda row: float(row[1]) / float(row[2]))
    assert len(rows) > 10
    says(content.texts["verification"].split("nearest")[0], str(len(rows)), worst[0])
    assert {row[3] for row in rows} == {"ok"}


def test_a_section_that_cannot_be_made_says_why() -> None:
    report = kg.report(model_of("rolling_disk"), verify=False)
    content = Content(report.html)
    for section in ("motion", "motion-in-3-d", "energy-and-drift", "constraint-forces"):
        says(content.texts[section], "solution")
    assert "motion" not in content.texts["equations"].lower().split("equations of motion")[0]
    says(" ".join(report.notices), "Motion", "Equilibrium")


def test_a_solution_without_its_solver_has_a_report_with_its_model(tmp_path: Path) -> None:
    solution_of("slider_crank").save(tmp_path / "motion.nc")
    loaded = kg.load(tmp_path / "motion.nc")
    with raises(SolveError, "model=model"):
        kg.report(loaded, verify=False)
    report = kg.report(loaded, model=model_of("slider_crank"), verify=False)
    assert [notice.split(":")[0] for notice in report.notices] == ["Energy and drift"]
    says(report.notices[0], "kg.load")
    assert Content(report.html).rows["equilibrium"] == content_of("slider_crank").rows["equilibrium"]


def test_a_motion_without_duration_has_a_report() -> None:
    start = initial("slider_crank")
    solution = solver_for("slider_crank").integrate((0.0, 0.0), start["q"], start["u"])
    assert kg.report(solution, verify=False).notices == ()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browsers() as start:
        yield start(*WITHOUT)


@pytest.mark.target
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_page_fits_the_browser_without_errors(chromium: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """Formulas are drawn, nothing is requested from a network, and the page itself does not scroll sideways."""
    path = report_of("slider_crank").save(tmp_path / "page.html")
    page = Page(chromium, path, size)
    frame = page.page.frame_locator("iframe")
    frame.locator("body[data-state]").wait_for(state="attached", timeout=20_000)
    assert page.run("document.documentElement.scrollWidth") <= size[0]
    heights = page.run("[...document.querySelectorAll('#equations math')].map(x => x.getBoundingClientRect().height)")
    assert len(heights) >= 9
    assert min(heights) > 8
    assert max(heights) > 60  # of a matrix with three rows
    assert all(url.startswith(("file:", "data:", "about:", "blob:")) for url in page.requests)
    assert page.problems == []
    page.close()


def test_a_report_is_saved_and_shown_in_a_notebook(tmp_path: Path) -> None:
    report = report_of("slider_crank")
    assert report.save(tmp_path / "page.html").read_text("utf-8") == report.html
    assert report._repr_html_().startswith("<iframe srcdoc=")
    with raises(SolveError, "absent", "folder"):
        report.save(tmp_path / "absent" / "page.html")


def test_wrong_arguments_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with raises(SolveError, "subject", "3", "Solution", "Model"):
        kg.report(3)
    with raises(SolveError, "verify", "'no'", "True"):
        kg.report(model_of("slider_crank"), verify="no")
    with raises(SolveError, "rolling_disk", "slider_crank"):
        kg.report(solution_of("slider_crank"), model=model_of("rolling_disk"))
    monkeypatch.setitem(sys.modules, "latex2mathml", None)
    with raises(SolveError, "latex2mathml", "kanegen[report]"):
        kg.report(model_of("slider_crank"))


def test_powers_of_functions_have_two_parts() -> None:
    """A space before the function is no part of the power, which would then have three."""
    text = mathml(r"m \cos^{2}{\left(\theta \right)} + \frac{\sin{\left(q \right)}}{2 \cos{\left(q \right)}}")
    assert "</mspace><msup><mi>cos</mi><mrow><mn>2</mn></mrow></msup>" in text
    assert text.count("<mspace") == 2  # after m and after 2


def test_a_formula_that_cannot_be_read_is_shown_as_text() -> None:
    assert mathml("a^b^c < d") == "<code>a^b^c &lt; d</code>"
    assert "<mo>&lt;</mo>" in mathml("a < b")
    assert "&lt;script&gt;" in mathml(r"\text{<script>}")
    assert "<script" not in mathml(r"\text{<script>}")
