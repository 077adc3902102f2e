"""Forward sensitivities: closed forms, differences of accurate runs, events, and refusals."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy
import sympy.physics.mechanics as me
import xarray
from ccompile import C_COMPILER, compile_source
from jump_models import e, particle, z
from messages import raises
from numpy.testing import assert_allclose, assert_array_equal
from sensitivity_models import F, a, c, differences, k, line, m, v, x
from systems import initial, model_of, solver_for

import kanegen as kg
from kanegen.codegen.gradients import adjoint_sources, variation_sources
from kanegen.codegen.kernel import emit_sources
from kanegen.codegen.methods.table import ADAPTIVE, FIXED_STEP, IMPLICIT
from kanegen.program.assemble import assemble
from kanegen.program.catalogue import ADJOINT, RATES, VARIATION, OfExpressions
from kanegen.program.options import BuildOptions, Scope
from kanegen.program.passes import schedule

EXPLICIT = [name for name in (*ADAPTIVE, *FIXED_STEP) if name not in IMPLICIT]
TIGHT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-13}


def oscillator(**more: Any) -> kg.Model:
    return line("oscillator", -k * x, {k: 4.0}, **more)


@pytest.mark.parametrize("method", EXPLICIT)
def test_an_oscillator_has_its_derivatives_in_closed_form(method: str) -> None:
    """x = x0 cos wt + v0/w sin wt with w = sqrt(k / m); d/dk by w' = 1 / (2 w m)."""
    options = {"step": 1e-3} if method in FIXED_STEP else TIGHT
    solver, (x0, v0), T = kg.build(oscillator()), (0.7, -0.4), 1.3
    solution = solver.integrate((0.0, T), [x0], [v0], sensitivities=(k, m, "x", v), method=method, **options)
    S, w = solution.sensitivities, 2.0
    by_w = -x0 * T * np.sin(w * T) - v0 / w**2 * np.sin(w * T) + v0 / w * T * np.cos(w * T)
    tolerance = {"rtol": 1e-9 if method not in FIXED_STEP else 1e-7}
    assert_allclose(S["x", "k"][-1], by_w / (2 * w), **tolerance)
    assert_allclose(S[x, m][-1], -by_w * w / 2, **tolerance)
    assert_allclose(
        S.matrix[-1][:, 2:], [[np.cos(w * T), np.sin(w * T) / w], [-w * np.sin(w * T), np.cos(w * T)]], **tolerance
    )
    assert S.matrix.shape == (solution.t.size, 2, 4)
    assert_allclose(S(T), S.matrix[-1], rtol=1e-14)


def test_parameters_without_effect_at_rest_have_derivatives_of_zero() -> None:
    """Pendulums that stand upright but for the rounding of pi."""
    solver, run = solver_for("n_link_pendulum", n=2), ((0.0, 0.6), [0.0, np.pi / 2, np.pi / 2], [0.0, 0.0, 0.0])
    for rtol in (1e-8, 1e-10):
        solution = solver.integrate(*run, sensitivities=("m_1", "l_1"), method="dop853", rtol=rtol, atol=rtol / 100.0)
        assert_allclose(solution.sensitivities.matrix, 0.0, atol=1e-12)


def test_a_motion_at_rest_has_derivatives_that_move() -> None:
    """An arm held by muscles: steps of the motion at rest are too long for its derivatives, which are stiff."""
    solver, start = solver_for("muscle_arm"), initial("muscle_arm")
    run: dict[str, Any] = {"q0": start["q"], "u0": start["u"], "r": start["r"], "s0": start["s"]}

    def end(e: float) -> Any:
        here = solver.with_parameters(l_1=solver.parameters["l_1"] + e)
        solution = here.integrate((0.0, 0.02), method="dop853", rtol=1e-12, atol=1e-13, **run)
        return np.concatenate([solution.q[-1], solution.u[-1], solution.s[-1]])

    expected = differences(end, 1e-6)
    solution = solver.integrate((0.0, 0.02), sensitivities="l_1", **run)
    assert solution.sensitivities.error <= 1e-6
    found = solution.sensitivities.matrix[-1][:, 0]
    assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    angle = model_of("muscle_arm").coordinates[0]
    _, gradient = solver.value_and_gradient(kg.Objective(terminal=angle), (0.0, 0.02), with_respect_to="l_1", **run)
    assert_allclose(gradient["l_1"], expected[0], rtol=1e-4)


def test_the_error_of_derivatives_can_be_chosen() -> None:
    """A run with a loose tolerance is repeated with shorter steps; the derivative follows."""
    solver, wanted = kg.build(oscillator()), -1.0 * np.sin(2.0 * 3.0) * 3.0 / 4.0
    errors = []
    for tolerance in (None, 1e-9):
        run = solver.integrate((0.0, 3.0), [1.0], [0.0], sensitivities="k", rtol=1e-5, sensitivity_tolerance=tolerance)
        errors.append(abs(run.sensitivities["x", "k"][-1] - wanted))
        assert run.sensitivities.error <= (1e-3 if tolerance is None else tolerance)
    assert errors[1] < 1e-7 < errors[0]


def test_dense_output_and_requested_times_have_derivatives() -> None:
    solver, times = kg.build(oscillator()), np.linspace(0.0, 2.0, 7)
    solution = solver.integrate((0.0, 2.0), [1.0], [0.0], t_eval=times, sensitivities="x", **TIGHT)
    assert_allclose(solution.sensitivities["x", "x"], np.cos(2.0 * times), atol=1e-9)
    assert_allclose(solution.sensitivities(times), solution.sensitivities.matrix, rtol=1e-13)


@pytest.mark.parametrize("name", ["l1", "m1", "theta", "u1"])
def test_a_start_completed_by_constraints_moves(name: str) -> None:
    """The slider-crank's start is given by one angle and one rate; the others follow from the lengths."""
    solver, start = solver_for("slider_crank").with_initial({}), initial("slider_crank")
    q0, u0 = {"theta": start["q"][0]}, {"u1": start["u"][0]}

    def end(e: float) -> Any:
        here, q, u = solver, dict(q0), dict(u0)
        if name in solver.parameters:
            here = solver.with_parameters({name: solver.parameters[name] + e})
        else:
            (q if name in q else u)[name] += e
        with pytest.warns(kg.ModelWarning, match="several positions"):
            run = here.integrate((0.0, 0.8), q, u, method="dop853", rtol=1e-13, atol=1e-14)
        return np.concatenate([run.q[-1], run.u[-1]])

    with pytest.warns(kg.ModelWarning, match="several positions"):
        solution = solver.integrate((0.0, 0.8), q0, u0, sensitivities=name, **TIGHT)
    expected = differences(end, 2e-3)
    assert_allclose(solution.sensitivities.matrix[-1][:, 0], expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


def test_quantities_and_outputs_have_derivatives() -> None:
    model = line("damped", -k * x - c * v, {k: 4.0, c: 0.3}, potential_energy=k * x**2 / 2, outputs={"power": c * v**2})
    solver = kg.build(model)
    solution = solver.integrate((0.0, 1.0), [1.0], [0.0], sensitivities=("c", "k"), **TIGHT)
    X, V = solution.sensitivities.matrix[-1]
    (q,), (u,) = solution.q[-1], solution.u[-1]
    energy = np.array([0.0, q**2 / 2]) + 4.0 * q * X + u * V
    assert_allclose(solution.sensitivities.of("energy")[-1], energy, rtol=1e-12)
    assert_allclose(solution.sensitivities.of("power")[-1], np.array([u**2, 0.0]) + 2 * 0.3 * u * V, rtol=1e-12)
    with raises(kg.SolveError, "there is no quantity, output or reaction 'enrgy'; did you mean 'energy'?"):
        solution.sensitivities.of("enrgy")


def test_as_many_requested_times_as_steps_are_still_the_requested_times() -> None:
    solver = kg.build(oscillator())
    n = solver.integrate((0.0, 2.0), [1.0], [0.0], **TIGHT).t.size
    times = np.linspace(0.0, 2.0, n)
    solution = solver.integrate((0.0, 2.0), [1.0], [0.0], t_eval=times, sensitivities="x", **TIGHT)
    assert_allclose(solution.sensitivities["x", "x"], np.cos(2.0 * times), atol=1e-9)


def test_a_jump_before_the_first_requested_time_counts() -> None:
    """A force that begins at 0.5 s; the first requested time is later."""
    t = me.dynamicsymbols._t
    solver = kg.build(line("pushed later", a * sympy.Heaviside(t - sympy.Rational(1, 2)), {a: 2.0}))
    solution = solver.integrate((0.0, 2.0), [0.0], [0.0], t_eval=[1.0, 2.0], sensitivities="a")
    assert_allclose(solution.sensitivities["x", "a"], [0.125, 1.125], rtol=1e-12)


def test_inputs_that_are_constant_vary_and_others_act() -> None:
    f, g = me.dynamicsymbols("f g")
    solver = kg.build(line("pushed", f + g - k * x, {k: 1.0}, inputs=[kg.Input(f), kg.Input(g)]))
    r = {"f": 0.5, "g": lambda t: np.sin(3.0 * t)}
    solution = solver.integrate((0.0, 2.0), [0.0], [0.0], r, sensitivities=("f", "k"), **TIGHT)
    assert_allclose(solution.sensitivities["x", "f"][-1], 1.0 - np.cos(2.0), rtol=1e-10)

    def end(e: float) -> Any:
        return solver.with_parameters({k: 1.0 + e}).integrate((0.0, 2.0), [0.0], [0.0], r, **TIGHT).q[-1, 0]

    assert_allclose(solution.sensitivities["x", "k"][-1], differences(end, 1e-2), rtol=1e-8)
    with raises(kg.SolveError, "the input g is not constant in this run"):
        solver.integrate((0.0, 2.0), [0.0], [0.0], r, sensitivities="g")


# -- events -----------------------------------------------------------------------------------------------------------


def test_a_terminal_event_moves_with_parameters() -> None:
    """heyoka's oscillator: x = cos(sqrt(k) t) is zero at pi / (2 sqrt k), so dt/dk = -pi / (4 k^1.5)."""
    solver = kg.build(oscillator(events=[kg.Event("zero", x, terminal=True)]))
    solution = solver.integrate((0.0, 9.0), [1.0], [0.0], sensitivities=("k", "x"), **TIGHT)
    assert solution.status is kg.Outcome.TERMINAL_EVENT
    assert_allclose(solution.sensitivities.event_time["k"], -np.pi / (4 * 4.0**1.5), rtol=1e-10)
    assert_allclose(solution.sensitivities.event_time["x"], 0.0, atol=1e-12)


def bouncing_states(e: Any) -> kg.Model:
    """A ball as two states, height and velocity, which the event resets: z' = w, w' = -g."""
    z, w = me.dynamicsymbols("z w")
    g = sympy.Symbol("g")
    floor = kg.Event("floor", z, direction=-1, reset={z: 0 * z, w: -e * w})
    return line("ball", -x, {g: 10.0, e: 0.9}, states={z: w, w: -g}, events=[floor])


def test_resets_have_saltation_matrices_over_many_bounces() -> None:
    """From rest at the height h the n-th bounce is at t_n = sqrt(2 h / g) (1 + 2 sum e^j, j = 1 .. n - 1)."""
    e, h, g = sympy.Symbol("e"), 1.0, 10.0
    solver = kg.build(bouncing_states(e))
    T = 6.0
    solution = solver.integrate((0.0, T), [0.0], [0.0], s0=[h, 0.0], sensitivities=("e", "g", "z"), **TIGHT)
    n = len(solution.events)
    assert n > 10

    def time(n: int, e: float, g: float, h: float) -> float:
        return float(np.sqrt(2 * h / g) * (1 + 2 * sum(e**j for j in range(1, n))))

    for number in (1, 2, n):
        by_e = differences(lambda d, number=number: time(number, 0.9 + d, g, h), 1e-3)  # type: ignore[misc]
        t_n = time(number, 0.9, g, h)
        assert_allclose(
            solution.sensitivities.event_times[number - 1], [by_e, -t_n / (2 * g), t_n / (2 * h)], rtol=1e-9
        )

    def state(e: float, g: float, h: float) -> Any:
        w, since = e**n * np.sqrt(2 * g * h), T - time(n, e, g, h)
        return np.array([w * since - g * since**2 / 2, w - g * since])

    expected = [
        differences(lambda d: state(0.9 + d, g, h), 1e-4),
        differences(lambda d: state(0.9, g + d, h), 1e-3),
        differences(lambda d: state(0.9, g, h + d), 1e-4),
    ]
    assert_allclose(solution.sensitivities.matrix[-1][2:], np.transpose(expected), rtol=1e-8)


@pytest.mark.parametrize("force", [-a * sympy.sign(x), sympy.Piecewise((a, x < 0.3), (-a, True))])
def test_forces_that_jump_without_an_event_are_refused(force: Any) -> None:
    """The step control finds such a jump, but nobody locates it, so that its saltation would be missing."""
    f = me.dynamicsymbols("f")
    of_law = line("relay", f, {a: 0.8}, inputs=[kg.Input(f, law=force)])
    for model in (line("jump", force, {a: 0.8}), of_law):
        with raises(kg.errors.BuildError, "jumps where a condition on the state changes", "no event is located"):
            kg.build(model).integrate((0.0, 2.5), [1.0], [0.0], sensitivities="a")


@pytest.mark.parametrize(
    "force", [-a * sympy.Abs(x) * x, sympy.Max(-1, -a * x), sympy.Piecewise((-a * x, x < 0), (-2 * a * x, True))]
)
@pytest.mark.filterwarnings("ignore:the derivatives of the motion have local errors")
def test_forces_with_kinks_have_derivatives(force: Any) -> None:
    solver = kg.build(line("kinked", force, {a: 2.0}))
    solution = solver.integrate((0.0, 3.0), [1.0], [0.0], sensitivities="a", rtol=1e-11, atol=1e-12)

    def end(e: float) -> Any:
        return solver.with_parameters({a: 2.0 + e}).integrate((0.0, 3.0), [1.0], [0.0], **TIGHT).q[-1, 0]

    assert_allclose(solution.sensitivities["x", "a"][-1], differences(end, 1e-3), rtol=1e-6)


def test_a_saturated_law_is_differentiated_in_each_of_its_modes() -> None:
    f = me.dynamicsymbols("f")
    servo = kg.Input(f, law=-5 * x - c * v, saturation=1)
    solver = kg.build(line("saturated", f, {c: 0.4}, inputs=[servo]))
    solution = solver.integrate((0.0, 3.0), [1.0], [0.0], sensitivities="c", **TIGHT)

    def end(e: float) -> Any:
        return solver.with_parameters({c: 0.4 + e}).integrate((0.0, 3.0), [1.0], [0.0], **TIGHT).q[-1, 0]

    assert_allclose(solution.sensitivities["x", "c"][-1], differences(end, 1e-3), rtol=1e-7)


def test_jumps_at_times_that_depend_on_a_parameter_are_refused_for_it() -> None:
    """Those at given times have no saltation, and neither have ramps that begin at such a time."""
    t = me.dynamicsymbols._t
    solver = kg.build(line("switched", -k * x + a * sympy.Heaviside(t - c), {k: 3.0, a: 2.0, c: 0.3}))
    run: Any = ((0.0, 0.6), [1.0], [0.0])
    with raises(kg.SolveError, "jump at t = 0.3 s, a time that depends on the parameter c"):
        solver.integrate(*run, sensitivities=("k", "c"))
    with raises(kg.SolveError, "jump at t = 0.3 s, a time that depends on the parameter c"):
        solver.value_and_gradient(kg.Objective(terminal=x), *run, with_respect_to="c")
    found = solver.integrate(*run, sensitivities="a", **TIGHT).sensitivities["x", "a"][-1]
    assert_allclose(found, (1.0 - np.cos(np.sqrt(3.0) * 0.3)) / 3.0, rtol=1e-9)
    ramp = kg.build(line("ramp", -k * x + a * sympy.Max(0, t - c), {k: 3.0, a: 2.0, c: 0.3}))

    def end(e: float) -> Any:
        return ramp.with_parameters({c: 0.3 + e}).integrate(*run, **TIGHT).q[-1, 0]

    found = ramp.integrate(*run, sensitivities="c", **TIGHT).sensitivities["x", "c"][-1]
    assert_allclose(found, differences(end, 1e-3), rtol=1e-7)


def test_a_guard_that_only_touches_zero_has_no_derivative() -> None:
    """The ball of a throw just reaches the height of the event: g' = 0 there."""
    z, w = me.dynamicsymbols("z w")
    top = kg.Event("top", w**2 * sympy.sign(w), direction=0)
    solver = kg.build(line("throw", -x, {}, states={z: w, w: -1}, events=[top]))
    found = solver.integrate((0.0, 2.0), [0.0], [0.0], s0=[0.0, 1.0], sensitivities="z", **TIGHT).sensitivities
    assert np.isnan(found.event_times).all()
    assert found.reason is None


# -- many directions, records and refusals ----------------------------------------------------------------------------


def test_directions_do_not_depend_on_those_beside_them() -> None:
    """Directions are computed several at a time; the results are those of each by itself."""
    solver, start = solver_for("whipple_bicycle"), initial("whipple_bicycle")
    q0, u0 = start["q"], start["u"]
    names = solver.description.parameters[:9]
    together = solver.integrate((0.0, 0.2), q0, u0, sensitivities=names).sensitivities.matrix[-1]
    for number in (0, 8):
        alone = solver.integrate((0.0, 0.2), q0, u0, sensitivities=names[number]).sensitivities.matrix[-1]
        assert_allclose(alone[:, 0], together[:, number], rtol=1e-13, atol=1e-13)


def test_a_pickle_keeps_the_derivatives_at_the_stored_times() -> None:
    solution = kg.build(oscillator()).integrate((0.0, 1.0), [1.0], [0.0], sensitivities="k")
    again = pickle.loads(pickle.dumps(solution)).sensitivities
    assert_allclose(again["x", "k"], solution.sensitivities["x", "k"], rtol=0.0)
    with raises(kg.SolveError, "pickles and files contain sensitivities at the stored times only"):
        again(0.5)


def test_files_say_that_they_have_no_sensitivities(tmp_path: Path) -> None:
    solution = kg.build(oscillator()).integrate((0.0, 1.0), [1.0], [0.0], sensitivities="k")
    with pytest.warns(kg.ModelWarning, match="has no sensitivities: save as .nc or .npz"):
        solution.save(tmp_path / "motion.csv")
    kg.build(oscillator()).integrate((0.0, 1.0), [1.0], [0.0]).save(tmp_path / "motion.nc")
    assert kg.load(tmp_path / "motion.nc").sensitivities is None


def test_a_file_keeps_the_derivatives_at_the_stored_times(tmp_path: Path) -> None:
    """Also where they end before the motion, with the reason, and those of times of events and of rest."""
    ball = {"contacts": [kg.Unilateral(z, kg.Restitution(e), name="floor")], "events": [kg.Event("low", z - 0.5)]}
    solver = kg.build(particle("watched_ball", "z", uses=(e,), **ball))
    with pytest.warns(kg.ModelWarning, match="accumulate"):
        solution = solver.integrate((0.0, 6.0), {"z": 1.0}, {"v_z": 0.0}, sensitivities=("e", "g"), rtol=1e-9)
    solution.save(tmp_path / "motion.nc")
    found, again = solution.sensitivities, kg.load(tmp_path / "motion.nc").sensitivities
    for name in ("t", "matrix", "event_times", "rest_times"):
        assert_array_equal(getattr(again, name), getattr(found, name))
    for name in ("variables", "names", "valid_until", "reason", "error"):
        assert getattr(again, name) == getattr(found, name)
    assert again.accumulation_time == found.accumulation_time
    assert again.event_times.size
    assert_array_equal(again["z", "e"], found["z", "e"])
    with raises(kg.SolveError, "pickles and files contain sensitivities at the stored times only"):
        again.of("energy")
    with xarray.open_dataset(tmp_path / "motion.nc") as data:
        assert data["sensitivities"].dims == ("time", "variable", "with_respect_to")
        assert data["with_respect_to"].values.tolist() == ["e", "g"]


def test_tables_have_the_sensitivities_by_name(tmp_path: Path) -> None:
    solution = kg.build(oscillator()).integrate((0.0, 1.0), [1.0], [0.0], sensitivities=("k", "x"))
    data = solution.to_xarray()["sensitivities"]
    assert data.dims == ("t", "variable", "with_respect_to")
    assert_array_equal(data.sel(variable="v", with_respect_to="k"), solution.sensitivities["v", "k"])
    solution.save(tmp_path / "motion.npz")
    with np.load(tmp_path / "motion.npz") as file:
        assert_array_equal(file["sensitivities"], solution.sensitivities.matrix)
        assert file["with_respect_to"].tolist() == ["k", "x"]


def test_refusals_name_what_cannot_vary() -> None:
    solver = kg.build(oscillator())
    run = ((0.0, 1.0), [1.0], [0.0])
    with raises(kg.SolveError, "sensitivities:", "did you mean", "'k'"):
        solver.integrate(*run, sensitivities="kk")
    with raises(kg.SolveError, "expected names of parameters, start values or inputs"):
        solver.integrate(*run, sensitivities=())
    with raises(kg.SolveError, "dense output", "dense_output=False"):
        solver.integrate(*run, sensitivities="k", dense_output=False)
    solution = solver.integrate(*run, sensitivities="k")
    with raises(kg.SolveError, "variable"):
        solution.sensitivities["y", "k"]
    with raises(kg.SolveError, "expected a pair"):
        solution.sensitivities["x"]
    with raises(kg.SolveError, "within the motion"):
        solution.sensitivities(1.5)
    with raises(kg.SolveError, "no event of the model occurred"):
        solution.sensitivities.event_time  # noqa: B018


def test_a_dependent_start_value_is_refused_by_name() -> None:
    solver, start = solver_for("slider_crank"), initial("slider_crank")
    q0, u0 = start["q"], start["u"]
    with raises(kg.SolveError, "the start value of", "cannot vary", "the constraints determine it"):
        solver.integrate((0.0, 0.1), q0, u0, sensitivities=("theta", "beta", "x"))


def test_code_of_the_state_beside_laws_is_refused() -> None:
    f, g = me.dynamicsymbols("f g")
    model = line("mixed", f + g, {F: 1.0}, inputs=[kg.Input(f, law=-F * x), kg.Input(g)])
    with raises(kg.SolveError, "not available with an r that is code of the state"):
        kg.build(model).integrate((0.0, 1.0), [1.0], [0.0], {"g": lambda t, q, u: -u[0]}, sensitivities="F")


def test_conditions_far_from_one_are_found() -> None:
    solver = kg.build(line("far", sympy.Piecewise((0, x < 250), (-a, True)), {a: 1.0}))
    with raises(kg.errors.BuildError, "no event is located"):
        solver.integrate((0.0, 1.0), [249.9], [1.0], sensitivities="a")


def test_symbols_that_are_inputs_of_laws_have_no_value_to_vary() -> None:
    f = me.dynamicsymbols("f")
    solver = kg.build(line("held", f, {F: 1.0}, inputs=[kg.Input(f, law=-F * x)]))
    with raises(kg.SolveError, "the input f is determined by its law"):
        solver.integrate((0.0, 1.0), [1.0], [0.0], sensitivities="f")


@pytest.mark.parametrize("name", ["rolling_disk", "muscle_arm"])
def test_the_code_compiles_without_warnings(name: str, tmp_path: Path) -> None:
    extension = solver_for(name).extension
    rates, adjoint = (OfExpressions.of(kind, False, (), "") for kind in (RATES, ADJOINT))
    compile_all(variation_sources(extension.more((VARIATION,)).sources, VARIATION, "verner9"), tmp_path)
    compile_all(adjoint_sources(extension.more((rates, adjoint)).sources, adjoint, "dop853"), tmp_path)


def test_the_code_of_long_functions_is_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LONGEST", 40)
    monkeypatch.setattr(schedule, "PART", 20)
    equations = kg.derive(model_of("rolling_disk"))
    program, _ = assemble(equations, BuildOptions("reduced", (VARIATION,), Scope.VARIATIONS))
    sources = emit_sources(program, digest="0" * 64, options_text="")
    files = variation_sources(sources, VARIATION, "dopri5")
    assert files["directions.c"].count("static __attribute__((noinline)) void") > 2
    compile_all(files, tmp_path)


def compile_all(files: dict[str, str], folder: Path) -> None:
    """Compile all C files with warnings as errors."""
    headers = {file: text for file, text in files.items() if file.endswith(".h")}
    flags = ("-c", "-O1", "-DKG_FUSED", "-march=native", "-Wshadow", "-Wno-psabi", "-Wno-pedantic")
    for file in files.keys() - headers:
        compile_source(C_COMPILER, files[file], folder / file.removesuffix(".c"), *flags, headers=headers)


@pytest.mark.parametrize("form", ["auto", "nonminimal"])
def test_forces_of_constraints_have_derivatives(form: str) -> None:
    """Multipliers at the end of the motion, against differences of motions."""
    solver, start = solver_for("slider_crank", form=form), initial("slider_crank")
    run, names = ((0.0, 0.4), start["q"], start["u"]), ("m2", "tau")
    solution = solver.integrate(*run, sensitivities=names, **TIGHT)
    found = solution.sensitivities.of("multipliers")[-1]

    def forces(name: str, change: float) -> Any:
        moved = solver.with_parameters({name: solver.parameters[name] * (1.0 + change)})
        end = moved.integrate(*run, **TIGHT).last
        return moved.multipliers(*end[:3])

    for column, name in enumerate(names):
        expected = differences(lambda e, name=name: forces(name, e), 1e-3) / solver.parameters[name]  # type: ignore[misc]
        assert_allclose(found[:, column], expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


def test_reactions_have_derivatives() -> None:
    """The force m x'' = -k x of a spring that is counted to the reaction."""

    def held(frame: Any, point: Any) -> dict[str, kg.Reaction]:
        return {"spring": kg.Reaction(["P"], point, frame, loads=[])}

    solver = kg.build(line("held", -k * x, {k: 4.0}, reactions=held))
    solution = solver.integrate((0.0, 1.0), [1.0], [0.0], sensitivities=("k",), **TIGHT)
    found = solution.sensitivities.of("spring")[-1, :, 0]
    expected = np.zeros(6)
    expected[0] = -solution.q[-1, 0] - 4.0 * solution.sensitivities["x", "k"][-1]
    assert_allclose(found, expected, atol=1e-11)
    with raises(kg.SolveError, "there is no quantity, output or reaction 'sprin'; did you mean 'spring'?"):
        solution.sensitivities.of("sprin")
