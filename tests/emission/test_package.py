"""The Python package of a standalone project: what it computes besides runs agrees with the solver."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

TIMES = [0.0, 0.4, 1.1]
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import pulled_model as model

assert not any(name.split(".")[0] in ("kanegen", "sympy", "scipy") for name in sys.modules)
prepared = model.Prepared([2.0, 9.81])
t = np.array(json.loads(sys.argv[2]))
q, qdot, qddot = (np.stack([x, 0.0 * t], axis=1) for x in (np.sin(t), np.cos(t), -np.sin(t)))
inverse = model.Inverse([model.INPUTS.index("F"), model.INPUTS.index("G")])
controls = inverse.along(prepared, model.Inputs.constant([0.0, 0.0]), t, q, qdot, qddot)["controls"]
kick = model.Function("impulses", prepared).value(0.0, [0.0, 0.0], [1.0, 0.0], [0.0, 0.0])
status, u, _ = model.impulse(prepared, 0.0, [0.0, 0.0], [1.0, 0.0], [0.0, 0.0], np.ravel(kick))
law = model.Inputs.python(lambda t, q, u: [-8.0 * q[0], 2.0 * 9.81], 3)
sampled = model.Control(law, (0, 1), [-1e3, -1e3], [1e3, 1e3], sample_time=0.1)
rhs, none = model.Function("rhs", prepared), model.Inputs.constant([0.0, 0.0])
run = model.integrate(rhs, none, 0.0, 1.0, [0.5, 0.2], [0.0, 0.0], control=sampled)
rates = [part.tolist() for part in rhs.pair(0.0, [0.4, 0.1], [0.5, -0.3], [3.0, 1.0])]
print(json.dumps([controls.tolist(), u.tolist(), status, run.y[-1].tolist(), model.NAME, rates]))
"""


def pulled() -> kg.Model:
    """A particle in a plane that two forces pull, with an impulse that has a name."""
    x, y, v, w, F, G = me.dynamicsymbols("x y v w F G")
    m, g = sm.symbols("m g")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v * N.x + w * N.y)
    return kg.Model(
        name="pulled",
        frame=N,
        coordinates=(x, y),
        speeds=(v, w),
        kinematics=(v - x.diff(), w - y.diff()),
        bodies=(me.Particle("particle", P, m),),
        loads=((P, F * N.x + (G - m * g) * N.y),),
        inputs=(F, G),
        parameters={m: 2.0, g: 9.81},
        impulses={"kick": [(P, 3 * N.x - N.y)]},
    )


@pytest.mark.target
def test_the_package_installs_alone_with_inverse_dynamics_impulses_and_sampled_inputs(tmp_path: Path) -> None:
    folder, target = kg.emit(pulled(), tmp_path / "project", programs="python"), tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--disable-pip-version-check", "--target", target, "."], cwd=folder, check=True, timeout=300)
    arguments = [sys.executable, "-c", PROGRAM, str(target), repr(TIMES)]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    controls, after, status, end, name, rates = json.loads(done.stdout)
    assert name == "pulled"
    np.testing.assert_allclose(rates, [[0.5, -0.3], [3.0 / 2.0, 1.0 / 2.0 - 9.81]], rtol=1e-14)
    assert status >= 0
    np.testing.assert_allclose(controls, [[-2.0 * np.sin(t), 2.0 * 9.81] for t in TIMES], atol=1e-12)
    np.testing.assert_allclose(after, [1.0 + 3 / 2, -1 / 2], rtol=1e-14)
    x, v = 0.5, 0.0
    for _ in range(10):  # the acceleration -4 x is held
        x, v = x + 0.1 * v - 0.5 * 0.1**2 * 4.0 * x, v - 0.1 * 4.0 * x
    np.testing.assert_allclose(end, [x, 0.2, v, 0.0], atol=1e-12)
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "model.Inverse([0, 1])" in text
    assert "rk4, kutta_merson, dopri5, dop853" in text
