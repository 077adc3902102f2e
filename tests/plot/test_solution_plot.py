"""``solution.plot``: the axes contain the motion, its jumps, events and modes."""

from __future__ import annotations

import importlib
import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest
from feedback_models import sampled
from hybrid_models import RATE, SLIPS_AT, block, pushed, rough_block
from matplotlib.figure import Figure
from messages import raises
from systems import example, initial, solver_for

import kanegen as kg


@cache
def crank() -> kg.Solution:
    start = initial("slider_crank")
    solution: kg.Solution = solver_for("slider_crank").integrate((0.0, 1.0), start["q"], start["u"])
    return solution


@cache
def ball(**options: Any) -> kg.Solution:
    start = initial("bouncing_ball")
    solution: kg.Solution = solver_for("bouncing_ball").integrate((0.0, 1.5), start["q"], start["u"], **options)
    return solution


@cache
def pushed_block() -> kg.Solution:
    """The block at rest, under a force that grows until it slips; it passes two places."""
    rest, force = ([0.0, 0.0], [0.0, 0.0]), {"F": lambda t: RATE * t}
    solution: kg.Solution = block().integrate((0.0, 3.5), *rest, force, events=("passes", "far"))
    return solution


def lines(axis: Any) -> dict[str, np.ndarray]:
    """Curves by label, (n, 2)."""
    return {str(line.get_label()): np.column_stack(line.get_data()) for line in axis.get_lines()}


def spans(axis: Any, label: str) -> list[tuple[float, float]]:
    """The shaded intervals with this label."""
    (shade,) = (item for item in axis.collections if item.get_label() == label)
    boxes = [path.get_extents() for path in shade.get_paths()]
    return [(box.x0, box.x1) for box in boxes]


def event_times(axis: Any, label: str) -> list[float]:
    (marks,) = (item for item in axis.collections if str(item.get_label()).startswith(label))
    return [segment[0, 0] for segment in marks.get_segments()]


def test_all_groups_of_a_model_have_panels() -> None:
    axes = crank().plot(ax=Figure())
    assert [axis.get_ylabel() for axis in axes] == ["coordinates", "speeds", "outputs", "multipliers"]
    assert [len(axis.get_lines()) for axis in axes[:2]] == [3, 3]
    assert [axis.get_xlabel() for axis in axes] == ["", "", "", "t (s)"]
    multipliers = [line.get_ydata() for line in axes[-1].get_lines()]
    np.testing.assert_array_equal(np.column_stack(multipliers), crank().multipliers)


def test_curves_of_the_state_are_smooth_between_the_steps() -> None:
    """Ballistic flight until the first impact, z = z0 - g t^2 / 2, also where the integrator made one step."""
    axis = ball(rtol=1e-4).plot("z", ax=Figure())[0]
    curve = lines(axis)["z"]
    first = curve[curve[:, 0] < ball().events[0].t]
    assert len(first) > 100
    z0, g = initial("bouncing_ball")["q"][0], example("bouncing_ball").DEFAULTS["g"]
    np.testing.assert_allclose(first[:, 1], z0 - 0.5 * g * first[:, 0] ** 2, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"t_eval": (0.0, 0.2, 0.7, 1.4)}, {"dense_output": False}])
def test_jumps_are_gaps(options: dict[str, Any]) -> None:
    solution = ball(**options)
    curve = lines(solution.plot("u1", ax=Figure())[0])["u1"]
    gaps = np.flatnonzero(np.isnan(curve[:, 1]))
    impacts = [event for event in solution.events if event.jumps]
    np.testing.assert_array_equal(curve[gaps, 0], [event.t for event in impacts])
    np.testing.assert_array_equal(curve[gaps - 1, 1], [event.u_before[0] for event in impacts])
    np.testing.assert_array_equal(curve[gaps + 1, 1], [event.u_after[0] for event in impacts])
    assert not np.isnan(lines(solution.plot("z", ax=Figure())[0])["z"]).any()  # the height does not jump


def test_quantities_at_given_times_have_a_gap_where_a_jump_lies_between() -> None:
    curve = lines(ball(t_eval=(0.0, 0.2, 0.7, 1.4)).plot("energy", ax=Figure())[0])["energy"]
    assert np.isnan(curve[:, 1]).tolist() == [False, False, True, False, True, False]


def test_modes_are_shaded_and_events_marked() -> None:
    """The block sticks until the force exceeds static friction; the times are those of the closed form."""
    solution = pushed_block()
    axis = solution.plot("x", ax=Figure())[0]
    ((start, end),) = spans(axis, "floor: stick")
    assert (start, end) == pytest.approx((0.0, SLIPS_AT), abs=1e-9)
    assert spans(axis, "floor: slip")[0] == pytest.approx((SLIPS_AT, solution.t[-1]), abs=1e-9)
    t, x = lines(axis)["x"].T
    np.testing.assert_allclose(x, pushed(t)[0], atol=1e-7)
    for name, place in (("passes", 0.5), ("far", 1.0)):
        (time,) = event_times(axis, name)
        assert pushed(time)[0] == pytest.approx(place)
    assert event_times(axis, "slips") == [start for start, _ in spans(axis, "floor: slip")]


def test_phases_of_equal_modes_are_one_interval() -> None:
    """The mode of block 1 does not change when that of block 2 does."""
    module = example("stick_slip_blocks")
    start = module.INITIAL
    solution = solver_for("stick_slip_blocks").integrate((0.0, 6.0), start["q"], start["u"])
    axis = solution.plot("q1", ax=Figure())[0]
    names = list(solution.contacts.phases[0].modes)
    assert [text.get_text() for text in axis.texts] == names
    for name in names:
        shown = sorted(spans(axis, f"{name}: stick") + spans(axis, f"{name}: slip"))
        modes = [phase.modes[name] for phase in solution.contacts.phases]
        assert len(shown) == 1 + sum(a != b for a, b in itertools.pairwise(modes)) < len(modes)
        np.testing.assert_allclose([end for _, end in shown[:-1]], [start for start, _ in shown[1:]])


def test_panels_are_chosen_by_names() -> None:
    solution = crank()
    axes = solution.plot("theta", ["u1", "energy"], "crank_pin_x", ax=Figure())
    assert [list(lines(axis)) for axis in axes] == [["theta"], ["u1", "energy"], ["crank_pin_x"]]
    assert [axis.get_ylabel() for axis in axes] == ["theta", "", "crank_pin_x"]
    np.testing.assert_array_equal(lines(axes[1])["energy"][:, 1], solution.energy)
    symbol = example("slider_crank").model().coordinates[0]
    np.testing.assert_array_equal(lines(solution.plot(symbol, ax=Figure())[0])["theta"], lines(axes[0])["theta"])


def test_components_have_the_names_of_the_speeds() -> None:
    (axis,) = crank().plot("momentum", ax=Figure())
    assert list(lines(axis)) == ["momentum[u1]", "momentum[u2]", "momentum[u3]"]


def test_axes_can_be_given() -> None:
    solution, (one, two) = crank(), Figure().subplots(2)
    assert solution.plot("theta", "x", ax=one) is one
    assert set(lines(one)) == {"theta", "x"}
    assert list(solution.plot("theta", "x", ax=[one, two])) == [one, two]
    with raises(kg.SolveError, 2, 3):
        solution.plot("theta", "x", "u1", ax=[one, two])
    with raises(kg.SolveError, "ax"):
        solution.plot("theta", ax="left")


def test_a_new_figure_belongs_to_pyplot() -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    (axis,) = crank().plot("theta")
    assert pyplot.gcf() is axis.figure
    pyplot.close(axis.figure)


def test_unknown_names_are_refused_with_similar_ones() -> None:
    with raises(kg.SolveError, "thetta", "theta"):
        crank().plot("thetta", ax=Figure())
    with raises(kg.SolveError, "contact forces", "slider_crank"):
        crank().plot("contact forces", ax=Figure())
    for wrong in ([], 3, None):
        with raises(kg.SolveError, wrong):
            crank().plot(wrong, ax=Figure())


def test_motions_backwards_in_time_are_drawn() -> None:
    start = initial("slider_crank")
    solution = solver_for("slider_crank").integrate((0.0, -0.5), start["q"], start["u"])
    curve = lines(solution.plot("theta", ax=Figure())[0])["theta"]
    assert (np.diff(curve[:, 0]) < 0.0).all()
    np.testing.assert_allclose(curve[:, 1], solution(curve[:, 0])[0][:, 0], atol=1e-12)


def test_a_solution_without_its_solver_is_drawn_without_outputs(tmp_path: Any) -> None:
    crank().save(tmp_path / "motion.nc")
    axes = kg.load(tmp_path / "motion.nc").plot(ax=Figure())
    assert [axis.get_ylabel() for axis in axes] == ["coordinates", "speeds"]


def test_matplotlib_is_named_if_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with raises(kg.SolveError, "matplotlib", "kanegen[plot]"):
        crank().plot("theta")


def test_sampled_controls_are_steps() -> None:
    """A servo that holds its control for 0.1 s; between the samples the motion has many steps."""
    solver = kg.build(rough_block(hold=(-3.0, -2.0)), functions=("rhs", "servo"))
    for sample_time, style in ((None, "default"), (0.1, "steps-post")):
        options = {"control": True, "sample_time": sample_time, "events": ()}
        solution = solver.integrate((0.0, 1.0), [0.0, 1.0], [0.0, 0.0], **options)
        (axis,) = solution.plot("controls", ax=Figure())
        assert axis.get_lines()[0].get_drawstyle() == style


def test_inputs_are_steps_where_their_values_were_held(tmp_path: Any) -> None:
    """F and G have sampled laws, H a continuous one; an input that is given replaces its law."""
    state = [0.3, -0.2], [0.1, 0.4]
    own = sampled().integrate((0.0, 0.2), *state)
    own.save(tmp_path / "motion.nc")
    given = {"F": lambda t, q, u: -q[0]}
    for solution, held in (
        (own, {"F", "G"}),
        (kg.load(tmp_path / "motion.nc"), {"F", "G"}),
        (sampled().integrate((0.0, 0.2), *state, r=given), {"G"}),
        (sampled().integrate((0.0, 0.2), *state, r=given, sample_time=0.1), {"F", "G"}),
    ):
        (axis,) = solution.plot(["F", "G", "H"], ax=Figure())
        steps = {line.get_label() for line in axis.get_lines() if line.get_drawstyle() == "steps-post"}
        assert steps == held
