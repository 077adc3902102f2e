"""Fits: exact recovery, closed forms, Monte Carlo, combinations that data do not determine."""

from __future__ import annotations

from typing import Any

import jump_models
import numpy as np
import pytest
from identified import TIMES, constrained, measured, oscillator
from messages import says
from systems import example

import kanegen as kg

TIGHT: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-13}


def test_derivatives_of_outputs_follow_from_those_of_the_states() -> None:
    names = ["k", "x", "F"]
    solution = oscillator().integrate((0.0, 4.0), t_eval=TIMES[::20], sensitivities=names)
    together = solution.sensitivities.of("both")
    assert together.shape == (5, 2, 3)
    assert together[:, 1] == pytest.approx(solution.sensitivities.matrix.sum(axis=1), rel=1e-12, abs=1e-14)


def test_parameters_start_and_input_are_recovered_exactly() -> None:
    true = oscillator().with_parameters(d=0.4, k=9.0).with_initial(x=0.6, v=-0.2)
    data = measured(true, r={"F": 0.7})
    fit = kg.fit(oscillator(), data, parameters={"d": (0.0, None), "k": None}, start=["x", "v"], inputs="F", **TIGHT)
    assert fit.success
    assert fit.names == ("d", "k", "F", "x", "v")
    assert fit.parameters == pytest.approx({"d": 0.4, "k": 9.0}, rel=1e-9)
    assert fit.inputs == pytest.approx({"F": 0.7}, rel=1e-9)
    assert fit.start == pytest.approx({"x": 0.6, "v": -0.2}, rel=1e-9)
    assert np.abs(fit.residuals["x"]).max() < 1e-9
    again = fit.solver.integrate((0.0, 4.0), r=fit.inputs, t_eval=TIMES)
    assert again["x"] == pytest.approx(data["x"], abs=1e-6)


@pytest.mark.parametrize("count", [2, 3])
def test_two_parameters_follow_from_two_or_three_values(count: int) -> None:
    """With as many values as unknowns, no residual is left that has a standard deviation."""
    true = oscillator().with_parameters(d=0.4, k=9.0)
    data = measured(true, np.array([0.4, 0.9, 1.6])[:count])
    fit = kg.fit(oscillator(), data, parameters=["d", "k"], t_span=(0.0, 1.6), **TIGHT)
    assert fit.parameters == pytest.approx({"d": 0.4, "k": 9.0}, rel=1e-8)


def test_values_without_degrees_of_freedom_say_nothing_about_errors() -> None:
    data = measured(oscillator(), np.array([0.4, 0.9]))
    fit = kg.fit(oscillator().with_parameters(k=9.0), data, parameters=["d", "k"], t_span=(0.0, 0.9))
    assert fit.degrees_of_freedom == 0
    assert np.isnan([fit.variance, *fit.standard_errors.values(), *fit.intervals()["k"]]).all()


@pytest.mark.parametrize("loss", ["linear", "huber"])
def test_estimates_do_not_depend_on_the_size_of_the_motion(loss: str) -> None:
    """The model is linear; without sigma, a motion of micrometers has the estimates of one of meters."""
    data, solver = measured(oscillator(), sigma=0.01), oscillator().with_parameters(k=7.0, d=0.2)
    fits = [
        kg.fit(
            solver,
            {"t": data["t"], "x": size * data["x"]},
            parameters=["d", "k"],
            q0={"x": 0.5 * size},
            atol=1e-10 * size,
            loss=loss,
            loss_scale=0.01 * size,
        )
        for size in (1.0, 1e-6)
    ]
    assert fits[1].values == pytest.approx(fits[0].values, rel=1e-6)
    assert fits[1].cost == pytest.approx(1e-12 * fits[0].cost, rel=1e-6)
    assert fits[1].standard_errors == pytest.approx(dict(fits[0].standard_errors), rel=1e-6)


def test_an_estimate_at_a_bound_of_zero_is_determined() -> None:
    """Data that look like negative damping, with damping that cannot be negative."""
    times = np.linspace(0.0, 4.0, 41)
    data = {"t": times, "x": 0.5 * np.cos(2.1 * times) * np.exp(0.01 * times)}
    fit = kg.fit(oscillator(), data, parameters={"k": None, "d": (0.0, None)}, sigma=0.01)
    assert fit.at_bounds == ("d",)
    assert fit.parameters["d"] == pytest.approx(0.0, abs=1e-12)
    assert 0.0 < fit.standard_errors["d"] < 0.1


def test_the_double_pendulum_is_recovered_exactly_without_noise() -> None:
    module = example("identify_double_pendulum")
    solver, true = kg.build(module.model()), module.TRUE
    start = {"q0": module.INITIAL["q"], "u0": module.INITIAL["u"]}
    motion = solver.with_parameters(true).integrate((0.0, 3.0), *start.values(), t_eval=np.linspace(0, 3, 100))
    fit = kg.fit(solver, motion.to_dataframe(), measured=["theta_1", "tip[0]"], parameters=list(true), **start)
    assert fit.parameters == pytest.approx(true, rel=1e-9)
    assert tuple(fit.residuals) == ("theta_1", "tip[0]")


def test_a_model_linear_in_the_unknowns_has_the_covariance_of_linear_regression() -> None:
    """x(t) is linear in its start and in F, so that one step gives the estimates of linear least squares."""
    sigma = 0.02
    data = measured(oscillator(), sigma=sigma)
    fit = kg.fit(oscillator(), data, start=["x", "v"], inputs=["F"], sigma=sigma, **TIGHT)
    m, d, k = (oscillator().parameters[name] for name in "mdk")
    decay = d / (2.0 * m)
    w = np.sqrt(k / m - decay**2)
    free = np.exp(-decay * TIMES) * np.array([np.cos(w * TIMES) + decay / w * np.sin(w * TIMES), np.sin(w * TIMES) / w])
    design = np.column_stack([(1.0 - free[0]) / k, *free])
    expected = np.linalg.lstsq(design, data["x"], rcond=None)[0]
    assert fit.values == pytest.approx(expected, rel=1e-7)
    covariance = sigma**2 * np.linalg.inv(design.T @ design)
    assert fit.covariance == pytest.approx(covariance, rel=1e-7)
    assert fit.cost == pytest.approx(0.5 * np.sum((design @ expected - data["x"]) ** 2) / sigma**2, rel=1e-7)
    low, high = fit.intervals(0.95)["F"]
    assert high - low == pytest.approx(2 * 1.959963985 * np.sqrt(covariance[0, 0]), rel=1e-7)
    assert np.diag(fit.correlation) == pytest.approx(1.0)


def test_without_sigma_the_variance_is_that_of_the_residuals() -> None:
    data = measured(oscillator(), sigma=0.02)
    plain = kg.fit(oscillator(), data, parameters=["d", "k"])
    scaled = kg.fit(oscillator(), data, parameters=["d", "k"], sigma=np.sqrt(plain.variance))
    assert plain.variance == pytest.approx(np.sum(plain.residuals["x"] ** 2) / (81 - 2))
    assert plain.covariance == pytest.approx(scaled.covariance, rel=1e-6)
    wide, narrow = plain.intervals()["k"], scaled.intervals()["k"]
    assert np.ptp(wide) / np.ptp(narrow) == pytest.approx(1.990450 / 1.959964, rel=1e-5)  # Student's t of 79 degrees


def test_estimates_scatter_as_the_covariance_says() -> None:
    sigma, runs = 0.01, 60
    fits = [
        kg.fit(oscillator(), measured(oscillator(), sigma=sigma, seed=seed), parameters=["d", "k"], sigma=sigma)
        for seed in range(runs)
    ]
    values = np.array([fit.values for fit in fits])
    scatter = values.std(axis=0, ddof=1) / np.sqrt(np.diag(fits[0].covariance))
    assert np.abs(scatter - 1.0).max() < 3.0 / np.sqrt(2.0 * runs)  # three standard deviations of a standard deviation
    inside = [fit.intervals(0.9)["k"][0] < 8.0 < fit.intervals(0.9)["k"][1] for fit in fits]
    assert 45 <= sum(inside) <= 60


def test_missing_values_and_weights_of_zero_are_left_out() -> None:
    data = measured(oscillator(), sigma=0.02)
    gaps, weights = data["x"].copy(), np.ones(81)
    gaps[::3], weights[::3] = np.nan, 0.0
    shorter = {"t": np.delete(TIMES, np.s_[::3]), "x": np.delete(data["x"], np.s_[::3])}
    span = {"t_span": (0.0, 4.0), "parameters": ["d", "k"]}
    expected = kg.fit(oscillator(), shorter, **span)
    for fit in (
        kg.fit(oscillator(), data | {"x": gaps}, **span),
        kg.fit(oscillator(), data, weights={"x": weights}, **span),
    ):
        assert fit.values == pytest.approx(expected.values, rel=1e-6)
        assert fit.degrees_of_freedom == 52
        assert np.isnan(fit.residuals["x"][0])


def test_a_covariance_counts_correlated_errors_and_missing_values() -> None:
    """With the covariance A A^T the residuals are those of values multiplied by the inverse of A."""
    solution = oscillator().integrate((0.0, 4.0), t_eval=TIMES)
    noise = 0.01 * np.random.default_rng(3).normal(size=(81, 2))
    root = np.array([[1.0, 0.0], [0.8, 0.5]])
    both = np.column_stack([solution["x"], solution["v"]]) + noise @ root.T
    both[5, 1] = np.nan
    data = {"t": TIMES, "x": both[:, 0], "v": both[:, 1]}
    fit = kg.fit(oscillator(), data, parameters=["d", "k"], covariance=1e-4 * root @ root.T)
    differences = np.column_stack([fit.residuals["x"], fit.residuals["v"]])
    whitened = np.linalg.solve(0.01 * root, np.delete(differences, 5, axis=0).T)
    alone = differences[5, 0] / 0.01
    assert fit.cost == pytest.approx(0.5 * (np.sum(whitened**2) + alone**2), rel=1e-9)
    assert fit.degrees_of_freedom == 159


def test_a_prior_counts_as_a_measurement() -> None:
    data = measured(oscillator(), sigma=0.02)
    plain = kg.fit(oscillator(), data, parameters="k", sigma=0.02)
    (error,) = plain.standard_errors.values()
    fit = kg.fit(oscillator(), data, parameters="k", sigma=0.02, prior={"k": (plain.values[0] + error, error)})
    assert fit.values == pytest.approx(plain.values + 0.5 * error, rel=1e-3)
    assert fit.standard_errors["k"] == pytest.approx(error / np.sqrt(2.0), rel=1e-2)


def test_bounds_hold_and_are_named() -> None:
    fit = kg.fit(oscillator().with_parameters(k=9.0), measured(oscillator()), parameters={"k": (8.5, 20.0)})
    assert fit.parameters["k"] == pytest.approx(8.5, rel=1e-6)
    assert fit.at_bounds == ("k",)
    says(fit.message, "bound", "k")


@pytest.mark.parametrize("loss", ["soft_l1", "huber", "cauchy", "arctan"])
def test_robust_losses_ignore_outliers(loss: str) -> None:
    data = measured(oscillator(), sigma=0.01)
    data["x"][10:15] += 1.0
    plain = kg.fit(oscillator(), data, parameters=["d", "k"], sigma=0.01)
    fit = kg.fit(oscillator(), data, parameters=["d", "k"], sigma=0.01, loss=loss)
    assert abs(fit.parameters["k"] - 8.0) < 0.2 * abs(plain.parameters["k"] - 8.0)
    assert abs(fit.parameters["k"] - 8.0) < 5.0 * fit.standard_errors["k"]


def test_a_robust_covariance_of_good_data_is_near_that_of_least_squares() -> None:
    data = measured(oscillator(), np.linspace(0.0, 4.0, 2001), sigma=0.01)
    plain, robust = (
        kg.fit(oscillator(), data, parameters=["d", "k"], sigma=0.01, loss=loss) for loss in ("linear", "soft_l1")
    )
    ratio = np.diag(robust.covariance) / np.diag(plain.covariance)
    assert (ratio > 0.95).all()
    assert (ratio < 1.25).all()


def test_experiments_share_parameters_and_have_their_own_starts() -> None:
    true = oscillator().with_parameters(k=9.0)
    data = [measured(true, q0={"x": x}, r={"F": F}) for x, F in ((0.6, 0.0), (-0.3, 2.0))]
    experiments = [kg.Experiment(data[0]), kg.Experiment(data[1], q0={"x": -0.2}, r={"F": 2.0})]
    fit = kg.fit(oscillator(), experiments, parameters=["k"], start=["x"], **TIGHT)
    assert fit.names == ("k", "x[0]", "x[1]")
    assert fit.values == pytest.approx([9.0, 0.6, -0.3], rel=1e-8)
    assert [each["x"] for each in fit.start] == pytest.approx([0.6, -0.3])
    assert len(fit.residuals) == len(fit.motions) == 2


def test_a_combination_that_data_do_not_determine_is_named() -> None:
    with pytest.raises(kg.IdentificationError) as caught:
        kg.fit(oscillator(), measured(oscillator(), sigma=0.01), parameters=["m", "d", "k"], sigma=0.01)
    says(caught.value, "m : d : k = 1 : 1 : 1")
    fit = caught.value.fit
    assert fit.identifiability.singular_values[-1] < 1e-9 * fit.identifiability.singular_values[0]
    assert fit.parameters["k"] / fit.parameters["m"] == pytest.approx(4.0, rel=0.01)
    with pytest.warns(kg.ModelWarning, match="m : d : k"):
        fit = kg.fit(
            oscillator(),
            measured(oscillator()),
            parameters=["m", "d", "k"],
            start=["x"],
            undetermined="warn",
            sigma=0.1,
        )
    other = kg.fit(oscillator(), measured(oscillator()), parameters=["d", "k"], start=["x"], sigma=0.1)
    assert list(fit.standard_errors.values())[:3] == [np.inf] * 3
    assert fit.standard_errors["x"] == pytest.approx(other.standard_errors["x"], rel=1e-5)
    assert "determine m : d : k" in fit._repr_html_()


@pytest.mark.filterwarnings("ignore:the data do not determine")
def test_robust_errors_of_determined_unknowns_do_not_depend_on_the_others() -> None:
    data, options = measured(oscillator(), sigma=0.1), {"start": ["x"], "sigma": 0.1, "loss": "huber"}
    known = kg.fit(oscillator(), data, parameters=["d", "k"], **options)
    fit = kg.fit(oscillator(), data, parameters=["m", "d", "k"], undetermined="warn", **options)
    n = len(data["t"])  # the factors of both: of the number of values and of unknowns
    ratio = np.sqrt((n - 3) / (n - 4))
    assert fit.standard_errors["x"] == pytest.approx(ratio * known.standard_errors["x"], rel=1e-4)


def test_a_parameter_without_effect_is_named() -> None:
    """At rest, friction is not seen; the mass of a pendulum never is."""
    start = {"q0": {"x": 0.6}, "u0": {"vx": 0.0}}
    solver = constrained().with_initial(y=-0.8)
    data = measured(solver, **start)
    with pytest.raises(kg.IdentificationError) as caught:
        kg.fit(solver, data, parameters=["m", "g"], **start)
    says(caught.value, "m")
    assert caught.value.fit.identifiability.involved == ("m",)
    assert caught.value.fit.parameters["g"] == pytest.approx(9.81, rel=1e-6)


def test_a_prior_determines_what_data_do_not() -> None:
    data = measured(oscillator(), sigma=0.01)
    fit = kg.fit(oscillator(), data, parameters=["m", "d", "k"], sigma=0.01, prior={"m": (2.0, 0.1)})
    assert fit.identifiability.complete
    assert fit.standard_errors["m"] == pytest.approx(0.1, rel=1e-6)


def test_a_constrained_model_starts_where_its_constraints_allow() -> None:
    true = constrained().with_parameters(l=1.2, g=9.0)
    start = {"q0": {"x": 0.5}, "u0": {"vx": 0.1}}
    data = measured(true.with_initial(y=-1.0), **start)
    guess = constrained().with_initial(y=-0.9)
    fit = kg.fit(guess, data, parameters=["l", "g"], start=["x", "vx"], q0={"x": 0.45}, u0={"vx": 0.0}, **TIGHT)
    assert fit.parameters == pytest.approx({"l": 1.2, "g": 9.0}, rel=1e-7)
    assert fit.start == pytest.approx({"x": 0.5, "vx": 0.1}, rel=1e-6)
    assert fit.solver.initial["y"] == pytest.approx(-np.sqrt(1.2**2 - 0.25), rel=1e-7)


def test_multiple_shooting_fits_a_chaotic_motion() -> None:
    """Errors of the start grow by 1e9 in 10 s, so that the cost of the whole motion has no useful gradient."""
    module = example("identify_double_pendulum")
    true = {"m_2": 0.7, "l_1": 0.5, "l_2": 0.4}
    solver = kg.build(module.model()).with_parameters(c_1=0.001, c_2=0.001, k=0.0)
    times, start = np.linspace(0.0, 10.0, 501), {"q0": (2.2, 2.8), "u0": (0.0, 0.0)}
    motion = solver.with_parameters(true).integrate((0.0, 10.0), **start, t_eval=times, **TIGHT)
    growth = solver.integrate((0.0, 10.0), **start, sensitivities="theta_1").sensitivities.matrix[-1]
    assert np.abs(growth).max() > 1e6
    angles = motion.q + 0.01 * np.random.default_rng(1).normal(size=motion.q.shape)
    data = {"t": times, "theta_1": angles[:, 0], "theta_2": angles[:, 1]}
    guess = solver.with_parameters({name: 1.1 * value for name, value in true.items()})
    fit = kg.fit(guess, data, parameters=list(true), start=["theta_1"], sigma=0.01, segments=20, **start)
    assert fit.success
    for name, error in fit.standard_errors.items():
        assert abs({**fit.parameters, **fit.start}[name] - {**true, "theta_1": 2.2}[name]) < 4.0 * error
        assert error < 1e-2
    assert abs(2.0 * fit.cost - fit.degrees_of_freedom) < 5.0 * np.sqrt(2.0 * fit.degrees_of_freedom)
    assert fit.motions[0].t.tolist() == times.tolist()
    assert len(fit.motions[0].solutions) == 20


def test_multiple_shooting_agrees_with_the_whole_motion() -> None:
    data = measured(oscillator(), sigma=0.02)
    whole, parts = (
        kg.fit(oscillator().with_parameters(k=9.0), data, parameters=["d", "k"], start=["x"], sigma=0.02, segments=n)
        for n in (1, 4)
    )
    assert parts.values == pytest.approx(whole.values, rel=1e-5)
    assert parts.covariance == pytest.approx(whole.covariance, rel=1e-3, abs=1e-9)
    assert parts.identifiability.singular_values == pytest.approx(whole.identifiability.singular_values, rel=1e-4)


def test_information_is_the_inverse_of_the_covariance_of_the_fit() -> None:
    data = measured(oscillator(), sigma=0.02)
    fit = kg.fit(oscillator(), data, parameters=["d", "k"], start=["x"], sigma=0.02)
    plan: dict[str, Any] = {"measured": "x", "sigma": 0.02, "parameters": ["d", "k"], "start": ["x"]}
    information = kg.fisher_information(fit.solver, (0.0, 4.0), t_eval=TIMES, **plan)
    assert information.covariance == pytest.approx(fit.covariance, rel=1e-6)
    assert information.matrix @ information.covariance == pytest.approx(np.eye(3), abs=1e-8)
    assert information.log_determinant == pytest.approx(np.linalg.slogdet(information.matrix)[1])
    assert information.standard_errors == pytest.approx(dict(fit.standard_errors), rel=1e-6)
    both = kg.fisher_information(fit.solver, (0.0, 4.0), t_eval=TIMES, **plan | {"measured": ["x", "both[1]"]})
    assert both.standard_errors["k"] < information.standard_errors["k"]
    blind = kg.fisher_information(fit.solver, (0.0, 4.0), t_eval=TIMES, **plan | {"parameters": ["m", "d", "k"]})
    assert blind.identifiability.involved == ("m", "d", "k")
    assert blind.log_determinant == -np.inf


def test_restitution_and_friction_are_found_from_impacts() -> None:
    """A rod that falls on both ends: three impacts that stick or slip, with errors of 1 mm and 1 mrad (seeded)."""
    solver = kg.build(jump_models.rod())
    true = {"e": 0.35, "mu": 0.2, "I": 0.12}
    start: tuple[dict[str, float], ...] = {"x": 0.0, "z": 1.0, "th": 0.3}, {"u_x": 1.0, "u_z": 0.0, "om": 0.0}
    times, noise = np.linspace(0.0, 0.52, 200), np.random.default_rng(0)
    motion = solver.with_parameters(true).integrate((0.0, 0.52), *start, t_eval=times, rtol=1e-10)
    measured = {name: motion[name] + 1e-3 * noise.normal(size=200) for name in ("x", "z", "th")}
    bounds = {"e": (0.0, 1.0), "mu": (0.0, None), "I": (0.01, None)}
    fit = kg.fit(solver, {"t": times, **measured}, parameters=bounds, q0=start[0], u0=start[1], sigma=1e-3)
    for name, value in true.items():
        assert abs(fit.parameters[name] - value) <= 3.0 * fit.standard_errors[name]
    assert fit.standard_errors["e"] < 1e-3
