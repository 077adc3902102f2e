"""The benchmark bicycle: published eigenvalues and matrices, the oracle, and the script."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from systems import example, oracle_for
from tolerances import EVALUATION, PUBLISHED_EIGENVALUES, SOLVE

bicycle = example("whipple_bicycle")

# Meijaard et al. (2007), section 5a: M q'' + v C1 q' + (g K0 + v^2 K2) q = 0, q = (phi, de).
M = np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]])
C1 = np.array([[0.0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]])
K0 = np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]])
K2 = np.array([[0.0, 76.59734589573222], [0.0, 2.65431523794604]])


@pytest.mark.parametrize("tracked", [True, False], ids=["tracked", "ignorable"])
@pytest.mark.parametrize("speed", bicycle.EIGENVALUES)
def test_published_eigenvalues(speed: int, tracked: bool) -> None:
    values = bicycle.lateral_eigenvalues(speed, bicycle.solver(tracked))
    published = bicycle.EIGENVALUES[speed]
    assert len(values) == len(published) == 4
    assert bicycle.largest_difference(values, published) < PUBLISHED_EIGENVALUES
    assert bicycle.largest_difference(np.array(published), tuple(values)) < PUBLISHED_EIGENVALUES


def test_motion_without_ignorable_coordinates() -> None:
    """Four coordinates and six speeds: the same motion as with all eight coordinates."""
    start = bicycle.pushed(5.0)
    tracked, untracked = (bicycle.solver(flag) for flag in (True, False))
    assert untracked.description.coordinates == ("psi", "phi", "th", "de")
    assert untracked.description.speeds == tuple(f"u_{name}" for name in ("psi", "phi", "th", "thR", "de", "thF"))
    options = {"method": "dop853", "rtol": 1e-11, "atol": 1e-13}
    full = tracked.integrate((0.0, 2.0), start["q"], start["u"], **options)
    few = untracked.integrate((0.0, 2.0), [start["q"][k] for k in (2, 3, 4, 6)], start["u"][2:], **options)
    # Two runs of some 50 steps with local errors of 1e-11, of speeds up to 17 rad/s.
    np.testing.assert_allclose(few.u[-1], full.u[-1, 2:], rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(few.q[-1], full.q[-1, [2, 3, 4, 6]], rtol=0.0, atol=1e-8)


@pytest.mark.parametrize("speed", [0.0, 3.0, 7.5])
def test_published_matrices(speed: float) -> None:
    linear = bicycle.linear(speed)
    assert linear.states == ("phi", "de", "u_phi", "u_thR", "u_de")
    assert linear.steady
    rows = linear.A[[2, 4]]
    np.testing.assert_allclose(
        rows[:, :2], -np.linalg.solve(M, 9.81 * K0 + speed**2 * K2), rtol=0, atol=PUBLISHED_EIGENVALUES
    )
    np.testing.assert_allclose(rows[:, [2, 4]], -np.linalg.solve(M, speed * C1), rtol=0, atol=PUBLISHED_EIGENVALUES)
    np.testing.assert_allclose(linear.A[3], 0.0, atol=EVALUATION)


def test_weave_and_capsize_speeds() -> None:
    """Table 2: the weave pair crosses the imaginary axis at 4.29 m/s, the capsize eigenvalue at 6.02 m/s."""
    weave = bicycle.lateral_eigenvalues(4.29238253634111)
    assert np.abs(weave - 3.43503384866144j).min() < PUBLISHED_EIGENVALUES
    capsize = bicycle.lateral_eigenvalues(6.02426201538837)
    assert np.abs(capsize).min() < PUBLISHED_EIGENVALUES


def test_eigenvalues_do_not_depend_on_place_heading_and_choice_of_speeds() -> None:
    solver = bicycle.solver()
    q, u = (np.array(x) for x in bicycle.upright(5.0))
    heading = 0.8
    q[:3], u[:2] = (3.0, -2.0, heading), 5.0 * np.array([np.cos(heading), np.sin(heading)])
    q[[5, 7]] = 1.3, -0.4
    for speeds in (None, ("u_x", "u_phi", "u_de")):
        linear = solver.linearize(2.0, q, u, speeds=speeds)
        assert linear.steady
        assert len(linear.states) == 10
        found = linear.without_ignorable().eigenvalues
        assert bicycle.largest_difference(found, bicycle.EIGENVALUES[5]) < 10 * PUBLISHED_EIGENVALUES


def test_equations_agree_with_the_oracle() -> None:
    """Leaning, steered and pitched, off the constraints: an independent multiplier solve in 80 digits."""
    rng = np.random.default_rng(5)
    q, u = (np.array(bicycle.INITIAL[key]) for key in ("q", "u"))
    q, u = q + rng.uniform(-0.3, 0.3, 8), u + rng.uniform(-0.5, 0.5, 8)
    reference, solver = oracle_for("whipple_bicycle")(0.4, q, u), bicycle.solver()
    _, udot = solver.rhs(0.4, q, u)
    np.testing.assert_allclose(udot, reference.udot, rtol=0, atol=SOLVE * np.abs(reference.udot).max())
    np.testing.assert_allclose(solver.kinetic_energy(0.4, q, u), reference.kinetic_energy, rtol=EVALUATION)
    np.testing.assert_allclose(solver.potential_energy(0.4, q, u), reference.potential_energy, rtol=EVALUATION)
    position, velocity = solver.residuals(0.4, q, u)
    np.testing.assert_allclose(position, reference.position_residuals, rtol=0, atol=EVALUATION)
    np.testing.assert_allclose(velocity, reference.velocity_residuals, rtol=0, atol=EVALUATION)


def test_script(tmp_path: Path) -> None:
    figure = tmp_path / "bicycle.png"
    run = example("_report").command(bicycle.__doc__, bicycle.simulate, bicycle.checks, bicycle.plot)
    result = CliRunner().invoke(run, ["--plot", str(figure)])
    assert result.exit_code == 0, result.output
    assert "FAILED" not in result.output
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_table_of_eigenvalues(capsys: pytest.CaptureFixture[str]) -> None:
    bicycle.print_eigenvalues()
    printed = capsys.readouterr().out
    assert "-0.7753418821" in printed
    assert printed.count("±") == 10
