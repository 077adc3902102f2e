"""Checks an installed kanegen as a user has it: no repository, no compiler on the PATH, the compiler of the package.

``python check_wheel.py``, in any environment with ``kanegen[compiler]``. It prints seconds; a failed check ends it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODEL = """
import math
import sympy as sm
import sympy.physics.mechanics as me
import kanegen as kg
from kanegen.backends.cython.wrapper import installed_wrapper

assert installed_wrapper() is not None, "the wheel has no module for this processor"
q, u = me.dynamicsymbols("q u")
m, l, g = sm.symbols("m l g", positive=True)
N, O = me.ReferenceFrame("N"), me.Point("O")
O.set_vel(N, 0)
A = N.orientnew("A", "axis", (q, N.z))
bob = me.Particle("bob", O.locatenew("P", -l * A.y), m)
model = kg.Model(
    name="pendulum", frame=N, coordinates=(q,), speeds=(u,), kinematics=(u - q.diff(),), bodies=(bob,),
    gravity=-g * N.y, parameters={m: 1.0, l: 1.0, g: 9.81},
)
solver = kg.build(model)
solution = solver.integrate((0.0, 10.0), [0.1], [0.0])
energy = [solver.energy(t, q, u) for t, q, u in zip(solution.t, solution.q, solution.u)]
assert max(energy) - min(energy) < 1e-6, "the energy drifts"
# The period of a pendulum with this amplitude, by the first terms of its series.
period = 2.0 * math.pi / math.sqrt(9.81) * (1.0 + 0.1**2 / 16.0 + 11.0 * 0.1**4 / 3072.0)
assert abs(solver.integrate((0.0, period), [0.1], [0.0]).q[-1, 0] - 0.1) < 1e-6, "the period is wrong"
print(kg.__file__)
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="kanegen-check-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "model.py").write_text(MODEL, encoding="utf-8")
        kept = {key: value for key, value in os.environ.items() if key not in ("CC", "PATH", "PYTHONPATH")}
        environment = {**kept, "PATH": "", "KANEGEN_CACHE_DIR": str(folder / "cache")}
        for what, command in {
            "kanegen doctor": [sys.executable, "-c", "from kanegen.cli import main; main()", "doctor"],
            "first motion": [sys.executable, "model.py"],
            "motion from the cache": [sys.executable, "model.py"],
        }.items():
            start = time.monotonic()
            subprocess.run(command, cwd=folder, env=environment, check=True)
            print(f"{what}: {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
