"""Emitted projects of models with contacts: their step, its work, its failures, and what it refuses."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import feedback_models as feedback
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from ccompile import C_COMPILER, SANITIZERS, SANITIZING, WARNINGS, compile_source, host_source, require_cpp
from contact_models import ball
from contact_rows import spd
from hybrid_models import rough_block
from messages import raises
from systems import example

import kanegen as kg
from kanegen.codes import ContactLaw
from kanegen.emission.moreau import TimeStepping
from kanegen.errors import BuildError
from kanegen.program.records import ContactEntry

RESTITUTION, STABILIZED, COMPLIANT = ContactLaw.RESTITUTION, ContactLaw.STABILIZED, ContactLaw.COMPLIANT
BILATERAL, LATCH, LOAD = ContactLaw.BILATERAL, ContactLaw.LATCH, ContactLaw.LOAD

# Law, level, row of the gap, first row of slip, directions of slip, whether a latch is closed.
EVERY_LAW = (
    (RESTITUTION, 2, 0, 1, 2, 0),
    (RESTITUTION, 1, 3, 4, 1, 0),
    (STABILIZED, 2, 5, -1, 0, 0),
    (COMPLIANT, 2, 6, 7, 1, 0),
    (BILATERAL, 2, 8, 9, 1, 0),
    (LOAD, 2, -1, 10, 2, 0),
    (LATCH, 2, 12, -1, 0, 1),
    (LATCH, 2, 13, -1, 0, 0),
)
FLOOR_ONLY = ((RESTITUTION, 2, 0, -1, 0, 0),)
ONE_LINE = ((RESTITUTION, 2, 0, 1, 1, 0), (LOAD, 2, -1, 2, 1, 0))


@pytest.fixture(scope="module")
def count(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The function that counts the operations of a step."""
    target = tmp_path_factory.mktemp("counted") / "counted.so"
    compile_source(require_cpp(), host_source("counted_moreau.cpp"), target, "-O1", "-shared", "-fPIC")
    function = ctypes.CDLL(str(target)).moreau_step
    function.restype = ctypes.c_long
    return function


@pytest.mark.parametrize("contacts", [EVERY_LAW, FLOOR_ONLY, ONE_LINE])
def test_every_step_has_the_operations_of_the_header(count: Any, contacts: tuple[tuple[int, ...], ...]) -> None:
    entries = [ContactEntry("", law.label, level, n, t, d, bool(closed)) for law, level, n, t, d, closed in contacts]
    n_k, n_m, rng = sum((c.normal >= 0) + c.directions for c in entries), len(entries), np.random.default_rng(0)
    n_q, n_u, n_s, sweeps = 5, 4, 2, 7
    sizes = np.array([n_q, n_u, n_s, n_k, n_m], np.int32)
    info = np.array(contacts, np.int32)

    def counted() -> int:
        # Random rates, gaps, loads and coefficients: contacts are open or closed, strike or rest, stick or slip.
        values = rng.normal(size=n_q + n_u + n_k * (n_u + n_k + 4) + 5 * n_m)
        start = n_q + n_u + n_k * n_u
        values[start : start + n_k * n_k] = spd(rng, n_k).ravel()
        arrays = [x.ctypes.data_as(ctypes.c_void_p) for x in (sizes, info, values)]
        return int(count(*arrays, sweeps))

    stated = TimeStepping(tuple(entries), ("",) * n_k, sweeps, n_q, n_u, n_s, {}).own_operations
    assert {counted() for _ in range(40)} == {stated}


# --- projects ------------------------------------------------------------------------------------------------


def host(stem: str, body: str) -> str:
    """A program that has a simulation, and ends with the status 0 if nothing failed."""
    declared = f'#include "{stem}.h"\n#include <math.h>\n#include <stdio.h>\n#include <string.h>\n'
    return f"{declared}int main(void) {{\n  static {stem}_context x;\n{body}\n  return 0;\n}}\n"


def run(model: kg.Model, folder: Path, body: str, **options: Any) -> list[list[float]]:
    """The numbers that a host of the emitted project prints, line by line."""
    project = kg.emit(model, folder / "project", name="m", **options)
    (folder / "host.c").write_text(host("m", body), encoding="utf-8")
    sanitizers = SANITIZERS if C_COMPILER in SANITIZING else ()
    command = [C_COMPILER.command, C_COMPILER.standard, *WARNINGS, *sanitizers, f"-I{project}"]
    command += [str(folder / "host.c"), str(project / "m.c"), "-lm", "-o", str(folder / "host")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([folder / "host"], capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return [[float(x) for x in line.split()] for line in ran.stdout.splitlines()]


STEPS = """
  if (m_init(&x, NULL) != m_OK) return 1;
  for (int k = 0; k < 2000; k++) {
    if (m_step(&x, NULL, 0.001) != m_OK) return 2;
    if (k % 100 == 99) printf("%.17g %.17g %.17g %.17g\\n", x.t, x.y[m_Q_z], x.y[m_N_Q + m_U_u1], x.impulses[0]);
  }"""


def test_a_ball_bounces_and_rests(tmp_path: Path) -> None:
    module = example("bouncing_ball")
    rows = np.array(run(module.model(), tmp_path, STEPS, values={"z": 0.05, "u1": 0.0}))
    solution = kg.build(module.model()).integrate((0.0, 2.0), [0.05], [0.0], t_eval=rows[:, 0])
    assert np.abs(rows[:, 1] - solution.q[:, 0]).max() < 2e-3
    weight = module.DEFAULTS["m"] * module.DEFAULTS["g"]
    assert rows[-1, 2:] == pytest.approx([0.0, 1e-3 * weight], abs=1e-12)


@pytest.mark.parametrize("precision", ["double", "float"])
def test_the_context_has_the_size_that_the_readme_says(precision: str, tmp_path: Path) -> None:
    (size,) = run(ball(), tmp_path, '  (void)x; printf("%u\\n", (unsigned)sizeof x);', precision=precision)
    readme = (tmp_path / "project" / "README.md").read_text(encoding="utf-8")
    assert f" {size[0]:.0f} bytes" in readme


FAILS = """
  static m_context y;
  const double fast[2] = {1.0, 1e300};
  if (m_init(&x, NULL) != m_OK) return 1;
  for (int k = 0; k < 600; k++) {
    if (m_step(&x, NULL, 0.001) != m_OK) return 2;
  }
  y = x;
  if (m_step(&x, NULL, 0.0) != m_INVALID_ARGUMENT || m_step(&x, NULL, -1.0) != m_INVALID_ARGUMENT) return 3;
  if (m_step(&x, NULL, (double)NAN) != m_INVALID_ARGUMENT || m_step(&x, NULL, (double)INFINITY) != m_INVALID_ARGUMENT)
    return 4;
  if (x.t != y.t || memcmp(x.y, y.y, sizeof x.y) || memcmp(x.forces, y.forces, sizeof x.forces)) return 6;
  if (memcmp(x.impulses, y.impulses, sizeof x.impulses)) return 7;
  /* A copy is a snapshot: the same steps again. */
  for (int k = 0; k < 100; k++) {
    if (m_step(&x, NULL, 0.001) != m_OK) return 8;
  }
  for (int k = 0; k < 100; k++) {
    if (m_step(&y, NULL, 0.001) != m_OK) return 9;
  }
  if (memcmp(x.y, y.y, sizeof x.y)) return 10;
  if (m_set_state(&x, 0.0, fast) != m_OK || m_step(&x, NULL, 1e10) != m_NOT_FINITE) return 11;
  if (memcmp(x.y, fast, sizeof x.y)) return 12;"""


def test_failures_keep_the_last_state(tmp_path: Path) -> None:
    run(example("bouncing_ball").model(), tmp_path, FAILS, values={"z": 0.05, "u1": 0.0})


def pendulum_at_a_wall() -> kg.Model:
    """A particle (1 kg) on a circle of 1 m that strikes a wall; its state is the work of the contact force."""
    time = me.dynamicsymbols._t
    x, z, u, w, s = me.dynamicsymbols("x z u w s")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bob = O.locatenew("bob", x * N.x + z * N.z)
    return kg.Model(
        name="wall",
        frame=N,
        coordinates=(x, z),
        speeds=(u, w),
        kinematics=(x.diff(time) - u, z.diff(time) - w),
        bodies=(me.Particle("bob", bob, sm.Integer(1)),),
        gravity=-10 * N.z,
        holonomic_constraints=(x**2 + z**2 - 1,),
        contacts=(kg.Unilateral(x, kg.Restitution(sm.Rational(9, 10)), name="wall"),),
        states={s: kg.Multiplier("wall") * u},
        outputs={"force": kg.Multiplier("wall")},
        initial={x: 0.8, z: -0.6, u: 0.0, w: 0.0, s: 0.0},
    )


CONSTRAINED = """
  double force = 0.0, lost;
  if (m_init(&x, NULL) != m_OK) return 1;
  for (int k = 0; k < 3000; k++) {
    double outputs[m_N_OUTPUTS];
    if (m_step(&x, NULL, 0.001) != m_OK || m_outputs(&x, outputs) != m_OK) return 2;
    force = outputs[0] > force ? outputs[0] : force;
  }
  lost = 10.0 * (x.y[1] + 0.6) + 0.5 * (x.y[2] * x.y[2] + x.y[3] * x.y[3]);
  printf("%.17g %.17g %.17g %.17g\\n", x.y[0] * x.y[0] + x.y[1] * x.y[1] - 1.0, x.y[4], lost, force);"""


def test_constraints_states_and_outputs(tmp_path: Path) -> None:
    ((residual, work, energy, force),) = run(pendulum_at_a_wall(), tmp_path, CONSTRAINED, stabilization=kg.Projection())
    assert abs(residual) < 1e-12
    assert energy < -1.0
    # The work of the mean forces, with the speed in the middle of each step, is the energy that impacts lose.
    assert work == pytest.approx(energy, abs=2e-2)
    assert force > 1e3


LAWS = """
  if (m_init(&x, NULL) != m_OK) return 1;
  for (int k = 0; k < 1500; k++) {
    double outputs[m_N_OUTPUTS];
    if (m_step(&x, NULL, 0.001) != m_OK || m_outputs(&x, outputs) != m_OK) return 2;
    if (k % 50 == 49) {
      printf("%.17g %.17g %.17g %.17g %.17g\\n", x.t, x.y[m_Q_x], x.y[m_Q_y], x.y[m_N_Q + m_N_U], outputs[0]);
    }
  }"""


def test_laws_of_inputs_act_in_steps_with_contacts(tmp_path: Path) -> None:
    law = -feedback.k * (feedback.x - feedback.a) - feedback.c * feedback.v
    pull = kg.Input(feedback.F, law=law, saturation=feedback.most, dead_band=feedback.band)
    model = feedback.particle(
        (feedback.F, -20 + feedback.F / 2),
        inputs=[pull],
        states={feedback.a: -feedback.a + feedback.y},
        contacts=[kg.Unilateral(feedback.y, kg.Restitution(0.5), name="floor")],
        outputs={"force": feedback.F},
        parameters={feedback.k: 40, feedback.c: 1, feedback.most: 9, feedback.band: 1},
    )
    q, u, s = [1.0, 0.4], [0.0, 0.0], [0.2]
    start = {"x": q[0], "y": q[1], "v": u[0], "w": u[1], "a": s[0]}
    rows = np.array(run(model, tmp_path, LAWS, values=start))
    exact = kg.build(model).integrate((0.0, 1.5), q, u, s0=s, t_eval=rows[:, 0], rtol=1e-9, atol=1e-11)
    assert rows[:, 1:3] == pytest.approx(exact.q, abs=5e-3)
    assert rows[:, 3] == pytest.approx(exact.s[:, 0], abs=5e-3)
    assert np.abs(rows[:, 4]).max() == pytest.approx(9.0)


# --- refusals ------------------------------------------------------------------------------------------------


def with_friction(**options: Any) -> kg.Model:
    model = ball()
    u = model.speeds[0]
    gap = model.coordinates[1]
    return ball(contacts=[kg.Unilateral(gap, kg.Restitution(0), kg.Coulomb(0.5, **options), (u,), "ground")])


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (rough_block(), ("passes", "far", "hit", "loaded")),
        (with_friction(creep=1e-3), ("ground", "creep")),
        (
            with_friction(paradox="regularize", compliance=kg.KelvinVoigt(1e5, 10)),
            ("ground", "regularize", "impact"),
        ),
        (example("rolling_disk").model(), ("moreau_jean", "contacts")),
    ],
    ids=["events", "creep", "regularize", "smooth"],
)
def test_what_time_stepping_cannot_do_is_refused_by_name(
    model: kg.Model, words: tuple[str, ...], tmp_path: Path
) -> None:
    with raises(BuildError, model.name, *words):
        kg.emit(model, tmp_path / "p", method="moreau_jean")
    assert not (tmp_path / "p").exists()


def test_smooth_methods_refuse_contacts(tmp_path: Path) -> None:
    with raises(BuildError, "ball", "floor", "rk4", "moreau_jean"):
        kg.emit(ball(), tmp_path / "p", method="rk4")


@pytest.mark.parametrize("iterations", [0, 1.5, 2000, True])
def test_iterations_are_whole_numbers(iterations: Any, tmp_path: Path) -> None:
    with raises(BuildError, "iterations", str(iterations)):
        kg.emit(ball(), tmp_path / "p", iterations=iterations)
