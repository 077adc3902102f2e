"""Animations of solutions: what the page contains, and what is refused. The pages themselves: test_pages.py."""

from __future__ import annotations

import base64
import html
import json
import pickle
import re
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from messages import raises, says
from systems import initial, solver_for

import kanegen as kg
from kanegen.view import page


def run(name: str, end: float = 1.0, **options: Any) -> kg.Solution:
    solver, start = solver_for(name), initial(name)
    return solver.integrate((0.0, end), start["q"], start["u"], **options)


def scene_of(animation: Any) -> dict[str, Any]:
    (text,) = re.findall(r'id="scene-data">([^<]*)<', animation.html)
    data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text)))
    return data


def floats(text: str, kind: str = "<f4", width: int = 3) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), kind).reshape(-1, width)


def test_a_page_contains_everything_and_is_small(tmp_path: Path) -> None:
    solution = run("rolling_disk", 10.0)
    animation = solution.animate()
    path = animation.save(tmp_path / "disk.html")
    assert path.stat().st_size < 6e6
    assert not re.findall(r'(?:src|href)="(?!data:)', animation.html)
    assert "rolling_disk" in animation.html
    assert not animation.notices
    (motion,) = scene_of(animation)["motions"]
    (disk,) = (item for item in motion["items"] if item["group"] == "bodies")
    times = floats(motion["times"], "<f8", 1).ravel()
    path_of_disk = floats(motion["tracks"][disk["track"]]["p"])
    assert path_of_disk[:, :2] == pytest.approx(solution(times)[0][:, 3:5], abs=1e-5)


def test_an_existing_file_is_replaced_and_a_bad_target_is_named(tmp_path: Path) -> None:
    animation = run("rolling_disk").animate()
    target = tmp_path / "page.html"
    target.write_text("old", encoding="utf-8")
    assert animation.save(str(target)) == target
    assert target.read_text(encoding="utf-8") == animation.html
    with raises(kg.SolveError, str(tmp_path), "folder"):
        animation.save(tmp_path)
    with raises(kg.SolveError, str(tmp_path / "none")):
        animation.save(tmp_path / "none" / "page.html")
    with raises(kg.SolveError, "7"):
        animation.save(7)


def test_a_notebook_shows_the_page_inline() -> None:
    animation = run("rolling_disk").animate(title='a "title" & <more>')
    shown = animation._repr_html_()
    (inside,) = re.findall(r'srcdoc="([^"]*)"', shown)
    assert html.unescape(inside) == animation.html
    assert "a &quot;title&quot; &amp; &lt;more&gt;</h1>" in animation.html


def test_a_long_motion_is_thinned_with_a_notice() -> None:
    solution = run("n_link_pendulum", 3600.0, method="rk4", step=0.02)
    animation = solution.animate()
    says("\n".join(animation.notices), "3600", "3000")
    assert len(animation.html) < 6e6


def test_a_solution_without_dense_output_shows_its_stored_times() -> None:
    times = np.linspace(0.0, 1.0, 21)
    animation = run("rolling_disk", dense_output=False, t_eval=times).animate()
    (motion,) = scene_of(animation)["motions"]
    assert floats(motion["times"], "<f8", 1).ravel() == pytest.approx(times)


def test_a_solution_without_model_says_so() -> None:
    solution = run("rolling_disk")
    copy = pickle.loads(pickle.dumps(solution))
    with raises(kg.SolveError, "model"):
        copy.animate()
    model = solution.solver.model
    assert scene_of(copy.animate(model=model)) == scene_of(solution.animate())
    with raises(kg.SolveError, "slider_crank", "rolling_disk", "theta"):
        solution.animate(model=solver_for("slider_crank").model)
    with raises(kg.SolveError, "model", "Model"):
        solution.animate(model="rolling_disk")


def test_solvers_with_other_values_keep_the_model() -> None:
    solver = solver_for("rolling_disk")
    for other in (solver.with_parameters(R=0.5), solver.with_initial({}), solver.with_stabilization(None)):
        assert other.model is solver.model
    wide, start = solver.with_parameters(R=0.6), initial("rolling_disk")
    q, u = wide.make_consistent(0.0, start["q"], start["u"])
    wide_motion = wide.integrate((0.0, 0.1), q, u)
    (disk,) = (x for x in scene_of(wide_motion.animate())["motions"][0]["items"] if x["group"] == "bodies")
    assert np.hypot(*disk["local"][:2]) == pytest.approx(0.6, rel=1e-5)


def test_several_motions_are_drawn_apart_with_their_names() -> None:
    first, second = run("rolling_disk"), run("slider_crank")
    both = kg.animate([first, second], labels=["disk", "crank"], offsets=[(0, 0, 0), (0, 2, 0)], title="two")
    scene = scene_of(both)
    assert [motion["label"] for motion in scene["motions"]] == ["disk", "crank"]
    assert scene["motions"][1]["offset"] == [0, 2, 0]
    for arguments, names in (
        ({"labels": ["one"]}, ("labels", "1", "2")),
        ({"offsets": [(0, 0)]}, ("offsets", "2", "three")),
        ({"frames": "N"}, ("frames", "N")),
        ({"traces": [3]}, ("traces", "3")),
        ({"forces": 1}, ("forces", "1")),
    ):
        with raises(kg.SolveError, *names):
            kg.animate([first, second], **arguments)
    with raises(kg.SolveError, "solutions"):
        kg.animate([])


def test_a_missing_viewer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    solution = run("rolling_disk")
    page.viewer.cache_clear()
    monkeypatch.setitem(sys.modules, "k3d", None)
    with raises(kg.SolveError, "k3d", "kanegen[view]"):
        solution.animate()
    page.viewer.cache_clear()


def test_forces_of_contacts_loads_and_reactions_are_arrows() -> None:
    pendulum = run("obstructed_pendulum", 2.0)
    scene = scene_of(pendulum.animate())
    items = scene["motions"][0]["items"]
    assert {item["type"] for item in items if item["group"] == "forces"} >= {"load"}
    assert scene["motions"][0]["marks"][0][0] == pytest.approx(pendulum.events[0].t)
    assert not [x for x in scene_of(pendulum.animate(forces=False))["motions"][0]["items"] if x["group"] == "forces"]
