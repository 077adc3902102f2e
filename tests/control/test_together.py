"""Problems that are solved together: trials with shared parameters, and phases that follow each other."""

from __future__ import annotations

import ctypes
import pickle
from typing import Any

import numpy as np
import pytest
import sympy as sm
from controlled import F, T, block, coupled, falling, m, pendulum, plane, rod, t, theta, v, x
from messages import raises
from scipy.sparse import csr_array

import kanegen as kg
from kanegen.control.code import point_code
from kanegen.control.joined import JoinedProgram, merged, shared_places
from kanegen.control.joints import JointPrograms, compiled_joint, continued, read_joint
from kanegen.control.layout import layout_of
from kanegen.control.program import NonlinearProgram
from kanegen.control.transcription import transcribe

pytest.importorskip("ipyopt")
SPAN, LIMITS = (0.1, 10.0), {F: (-1, 1)}


def there(span: Any = SPAN) -> kg.OptimalControl:
    return kg.OptimalControl(block(), kg.Duration, span, {x: 0, v: 0}, {x: 1}, LIMITS, intervals=10)


def back() -> kg.OptimalControl:
    return kg.OptimalControl(block(), kg.Duration, SPAN, None, {x: 0, v: 0}, LIMITS, intervals=10)


def test_trials_share_a_parameter() -> None:
    """Under constant forces F, x = F t^2 / (2 m): least squares over all trials have a closed form."""
    random, times, z, forces = np.random.default_rng(0), np.linspace(0.0, 1.0, 23), sm.Symbol("z"), (1.0, 2.0, 5.0)
    measured = [f * times**2 / 3.0 + 0.02 * random.normal(size=times.size) for f in forces]
    problems = [
        kg.OptimalControl(
            block(),
            kg.SampleSum((x - z) ** 2, times, {z: data}),
            1.0,
            {x: 0, v: 0},
            bounds={F: (f, f)},
            parameters={m: (0.1, 10.0 + f)},
            intervals=3 + k,
        )
        for k, (f, data) in enumerate(zip(forces, measured, strict=True))
    ]
    trials = kg.Trials(problems)
    motions = pickle.loads(pickle.dumps(trials)).solve()
    k, data = np.concatenate([f * times**2 for f in forces]), np.concatenate(measured)
    slope = (k @ data) / (k @ k)
    assert [motion.parameters["m"] for motion in motions] == pytest.approx([0.5 / slope] * 3, rel=1e-7)
    assert [motion.cost for motion in motions] == pytest.approx(
        [((d - slope * f * times**2) ** 2).sum() for f, d in zip(forces, measured, strict=True)], rel=1e-6
    )
    assert [motion.meshes[0] for motion in motions] == [3, 4, 5]
    assert repr(trials) == "<Trials: 3 problems; unknown parameters m>"


def test_a_block_bounces_off_a_wall_in_least_time() -> None:
    """It hits the wall with the speed sqrt(2), returns with half of it, and brakes from the speed sqrt(5 / 4) on."""
    phases = kg.Phases([there(), back()], joints=[{v: -v / 2}])
    assert pickle.loads(pickle.dumps(phases)).problems[0].statement.duration == SPAN
    first, second = phases.solve()
    assert pickle.loads(pickle.dumps(phases)).solve()[1].duration == pytest.approx(second.duration, rel=1e-9)
    total = np.sqrt(2.0) + 2.0 * np.sqrt(1.25) - np.sqrt(2.0) / 2.0
    assert first.duration + second.duration == pytest.approx(total, rel=1e-6)
    assert second.solution["v"][0] == pytest.approx(-0.5 * first.solution["v"][-1], rel=1e-12)
    assert second.solution["x"][0] == pytest.approx(1.0, rel=1e-12)
    assert max(first.error, second.error) < 1e-6
    assert second.meshes[-1] > first.meshes[-1] == 10  # only the second one has a switch


def test_phases_of_one_motion_are_this_motion() -> None:
    spans, effort = (0.2, 0.5, 0.3), kg.Integral(F**2)
    starts, ends = ({x: 0, v: 0}, None, None), (None, None, {x: 1, v: 0})
    problems = [
        kg.OptimalControl(block(), effort, *each, intervals=4) for each in zip(spans, starts, ends, strict=True)
    ]
    motions = kg.Phases(problems).solve()
    assert sum(motion.cost for motion in motions) == pytest.approx(12.0, rel=1e-9)
    assert motions[1].inputs["F"](0.1) == pytest.approx(6.0 - 12.0 * 0.3, abs=1e-7)


def test_phases_of_a_model_with_constraints_do_not_repeat_them() -> None:
    """The pendulum in Cartesian coordinates, in two phases and in one; the optimum is the same."""
    (X, Y), (V, W) = rod().coordinates, rod().speeds
    low, high = ({X: 0, Y: sign, V: 0, W: 0} for sign in (-1, 1))
    effort: dict[str, Any] = {"minimize": kg.Integral(T**2), "scheme": "radau"}
    guesses = [{X: [0, 0.7, 1], Y: [-1, -0.7, 0]}, {X: [1, 0.7, 0], Y: [0, 0.7, 1]}]
    halves = [
        kg.OptimalControl(rod(), duration=1.0, start=start, end=end, intervals=20, **effort)
        for start, end in ((low, None), (None, high))
    ]
    motions = kg.Phases(halves).solve(guesses=guesses)
    whole = kg.OptimalControl(rod(), duration=2.0, start=low, end=high, intervals=40, **effort)
    way = {X: [0, -0.3, 0, 0.7, 1, 0.7, 0], Y: [-1, -0.9, -1, -0.7, 0, 0.7, 1]}
    assert sum(motion.cost for motion in motions) == pytest.approx(whole.solve(guess=way).cost, rel=1e-9)


def test_a_rope_becomes_taut() -> None:
    """A free fall to the circle x^2 + y^2 = 1, whose speed loses its radial part, then a pendulum: closed forms."""
    (X, Y), (V, W) = rod().coordinates, rod().speeds
    fall = kg.OptimalControl(falling(), kg.Duration, (0.1, 2.0), {X: 0.6, Y: 0, V: 0, W: 0}, intervals=4)
    swing = kg.OptimalControl(rod(), kg.Integral(T**2), 0.3, bounds={T: (0, 0)}, intervals=30)
    guesses = [{Y: [0, -0.8]}, {X: [0.6, 0.2], Y: [-0.8, -1.0]}]
    first, second = kg.Phases([fall, swing], joints=[kg.PlasticImpact()]).solve(guesses=guesses)
    assert first.duration == pytest.approx(np.sqrt(1.6 / 9.81), rel=1e-9)
    assert first.solution.q[-1] == pytest.approx([0.6, -0.8], abs=1e-9)
    radius, before = np.array([0.6, -0.8]), np.array([0.0, -np.sqrt(1.6 * 9.81)])
    assert second.solution.u[0] == pytest.approx(before - (before @ radius) * radius, abs=1e-8)
    assert second.replay_error < 1e-6


def test_constraints_of_accelerations_have_no_impulses() -> None:
    """With ``v' + w' = 0`` from the joint on, the speeds do not jump, and the optimum is that without an impact."""
    (X, Y), (V, W) = plane().coordinates, plane().speeds
    start, bounds, effort = {X: 0, Y: 0, V: 1, W: 1}, {T: (0, 0)}, kg.Integral(F**2)
    first = kg.OptimalControl(plane(), effort, 0.5, start, bounds=bounds, intervals=5)
    second = kg.OptimalControl(coupled(), effort, 0.5, end={X: 7}, bounds=bounds, intervals=5)
    with_impact, without = (
        kg.Phases([first, second], joints=[joint]).solve(max_refinements=0) for joint in (kg.PlasticImpact(), None)
    )
    assert with_impact[1].solution.u[0] == pytest.approx(with_impact[0].solution.u[-1], abs=1e-9)
    assert sum(each.cost for each in with_impact) == pytest.approx(sum(each.cost for each in without), rel=1e-7)


def test_a_phase_without_a_guess_begins_where_that_of_the_last_one_ends() -> None:
    """At x = y = 0 the length of a pendulum has no slope; alone, the phase says so."""
    (X, Y), (V, W) = rod().coordinates, rod().speeds
    rest = {V: 0, W: 0}
    first, second = (
        kg.OptimalControl(rod(), kg.Integral(T**2), 0.5, start, end, intervals=8)
        for start, end in (({X: 0, Y: -1, **rest}, None), (None, rest))
    )
    motions = kg.Phases([first, second]).solve()
    assert [motion.cost for motion in motions] == pytest.approx([0.0, 0.0], abs=1e-12)
    with raises(kg.SolveError, "at the guess of the state at the start, constraints 1 do not depend", "guess="):
        second.solve()


def test_a_periodic_motion_closes_by_jumps_and_with_itself() -> None:
    """A block that is stopped and turned around: v+ = -v / 2 at both ends of its way, in least effort for the speed.

    In a motion that closes with itself, states at the end and at the start are one variable where they go on.
    """
    problem = kg.OptimalControl(
        block(), kg.Integral(F**2) + kg.AtStart(x) * kg.AtEnd(x), 1.0, {x: 0}, {v: (2, None)}, intervals=4
    )
    (motion,) = kg.Phases([problem], closing={x: x - 1, v: -v / 2}).solve()
    assert motion.solution["v"][[0, -1]] == pytest.approx([-1.0, 2.0], abs=1e-8)
    assert motion.solution["x"][-1] == pytest.approx(1.0, abs=1e-9)
    # v = -1 + a t + b t^2 with the integral 1 and the end 2: a = 0, b = 3
    assert motion.cost == pytest.approx(12.0, rel=1e-7)
    cost = kg.Integral((F - x) ** 2) + kg.AtStart(v) * kg.AtEnd(v) - kg.AtEnd(v)
    (orbit,) = kg.Phases([kg.OptimalControl(block(), cost, 1.0)], closing={}).solve()
    assert orbit.solution.q[-1] == pytest.approx(orbit.solution.q[0], abs=1e-12)
    periodic = [(kg.AtEnd(each) - kg.AtStart(each), 0, 0) for each in (x, v)]
    assert orbit.cost == pytest.approx(
        kg.OptimalControl(block(), cost, 1.0, subject_to=periodic).solve().cost, rel=1e-9
    )
    assert orbit.iterations < 5  # the cost is quadratic, and its Hessian exact


def test_derivatives_of_joined_problems_agree_with_differences() -> None:
    """Two problems that share m, and jumps that depend on m, on the end and on the unknown duration."""
    common: dict[str, Any] = {"parameters": {m: (0.5, 3.0)}, "intervals": 3}
    problems = [
        kg.OptimalControl(block(), kg.Integral(F**2 * m**2) + kg.AtEnd(x * v) * m, SPAN, **common) for _ in range(2)
    ]
    statements = [problem.statement for problem in problems]
    joint = read_joint(statements, (0, 1), {v: sm.sin(x) * v * m + v**2 * t, x: m * x**2}, "joint")
    codes = [point_code(each) for each in statements]
    layouts = [layout_of(s, c, np.linspace(0, 1, 4)) for s, c in zip(statements, codes, strict=True)]
    places = shared_places(layouts, [(0, 1, continued(joint, layouts))])
    random = np.random.default_rng(5)
    scale = random.uniform(0.5, 2.0, 1 + max(int(each.max()) for each in places))
    programs = [
        NonlinearProgram(transcribe(layout, code), code, scale[own], np.ones(transcribe(layout, code).n_g))
        for layout, code, own in zip(layouts, codes, places, strict=True)
    ]
    joints = JointPrograms([compiled_joint(joint, statements)], layouts, places, scale)
    single = [*programs, *joints.programs]
    program = JoinedProgram(single, [*places, *joints.places])
    assert program.n_x < sum(each.n_x for each in programs)  # m is shared
    at, direction = random.normal(size=program.n_x), random.normal(size=program.n_x)
    multipliers, h = random.normal(size=program.n_g), 1e-5

    def slope(point: Any) -> Any:
        found = np.zeros(program.n_x)
        for each, where, rows in zip(single, program.places, program.rows, strict=True):
            entries, pattern = each.jacobian(point[where]), each.jacobian_pattern
            J = csr_array((entries, tuple(pattern)), shape=(each.n_g, each.n_x))
            np.add.at(found, where, 0.7 * each.gradient(point[where]) + J.T @ multipliers[rows])
        return found

    call = _Callable(program)
    gradient = call.gradient(at)
    J = csr_array((call.jacobian(at), tuple(program.jacobian_pattern)), shape=(program.n_g, program.n_x))
    assert 0.7 * gradient + J.T @ multipliers == pytest.approx(slope(at), rel=1e-12, abs=1e-12)
    ahead, behind = at + h * direction, at - h * direction
    assert gradient @ direction == pytest.approx((call.cost(ahead) - call.cost(behind)) / (2 * h), rel=1e-6)
    change = (call.constraints(ahead) - call.constraints(behind)) / (2 * h)
    assert J @ direction == pytest.approx(change, rel=1e-6, abs=1e-6)
    lower = csr_array((call.hessian(at, 0.7, multipliers), tuple(program.hessian_pattern)), shape=(at.size,) * 2)
    full = lower.toarray() + np.tril(lower.toarray(), -1).T
    assert full @ direction == pytest.approx((slope(ahead) - slope(behind)) / (2 * h), rel=1e-5, abs=1e-5)
    assert merged(places, [scale[each] for each in places]) == pytest.approx(scale)


class _Callable:
    """The compiled functions of a joined program, called from Python."""

    def __init__(self, program: JoinedProgram) -> None:
        self.program = program

    def cost(self, x: Any) -> float:
        return float(self._call("cost", x, 1)[0])

    def gradient(self, x: Any) -> Any:
        return self._call("gradient", x, self.program.n_x)

    def constraints(self, x: Any) -> Any:
        return self._call("constraints", x, self.program.n_g, self.program.n_g)

    def jacobian(self, x: Any) -> Any:
        n = len(self.program.jacobian_pattern.rows)
        return self._call("jacobian", x, n, self.program.n_g, n)

    def hessian(self, x: Any, factor: float, multipliers: Any) -> Any:
        n = len(self.program.hessian_pattern.rows)
        return self._call("hessian", x, n, _double(factor), self.program.n_g, _array(multipliers), n)

    def _call(self, name: str, x: Any, size: int, *others: Any) -> Any:
        given, out = np.ascontiguousarray(x), np.zeros(size)
        function = ctypes.CFUNCTYPE(ctypes.c_bool)(self.program.function(name))
        arguments = (self.program.n_x, _array(given), *others, _array(out), ctypes.c_void_p(self.program.data))
        assert function(*arguments)
        return out


def _array(values: Any) -> Any:
    return values.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def _double(value: float) -> Any:
    return ctypes.c_double(value)


def test_an_unsolvable_phase_is_named() -> None:
    with raises(kg.OptimalControlError, "violated most", "problem 1: ") as caught:
        kg.Phases([there((0.1, 1.0)), back()], joints=[{v: -v / 2}]).solve()
    assert len(caught.value.motion) == 2


@pytest.mark.parametrize(
    ("joints", "texts"),
    [
        ([], ["joints", "1, one for each phase but the first"]),
        ([{"w": 0}], ["w", "joints[0]"]),
        ([{v: sm.Symbol("k") * v}], ["k", "symbol of the model"]),
        ([{v: v + F}], ["F", "hermite-simpson"]),
        ([kg.PlasticImpact({v: None})], ["joints[0]", "the speeds v before the impact", "kanegen.PlasticImpact"]),
        ([v], ["joints[0]", "mapping"]),
        ([{v: 1, "v": 2}], ["joints[0]", "'v' twice"]),
        ([{v: sm.nan}], ["v in joints[0]", "finite real values"]),
    ],
)
def test_wrong_joints_are_refused(joints: Any, texts: list[str]) -> None:
    first = (
        there() if "F" not in texts else kg.OptimalControl(block(), kg.Duration, SPAN, bounds=LIMITS, scheme="gauss")
    )
    with raises(kg.SolveError, *texts):
        kg.Phases([first, back()], joints)


def test_wrong_problems_are_refused() -> None:
    with raises(kg.SolveError, "problems", "kanegen.OptimalControl"):
        kg.Trials([block()])  # type: ignore[list-item]
    loose, tight = (
        kg.OptimalControl(block(), kg.Integral(F**2), 1.0, {x: 0}, parameters={m: span}) for span in ((1, 2), (3, 4))
    )
    with raises(kg.SolveError, "parameter m", "contradict"):
        kg.Trials([loose, tight])
    with raises(kg.SolveError, "guesses", "one for each problem"):
        kg.Trials([loose]).solve(guesses=[None, None])
    other = kg.OptimalControl(pendulum(), kg.Integral(T**2), 1.0, {theta: 0})
    assert len(kg.Trials([loose, other]).problems) == 2
    with raises(kg.SolveError, "joints[0]", "x = 1", "x = 2", "contradict"):
        kg.Phases([there(), kg.OptimalControl(block(), kg.Duration, SPAN, {x: 2}, None, LIMITS)])
