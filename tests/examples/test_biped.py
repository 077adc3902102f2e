"""The biped: runs reach their end where they would stop, and no impact adds energy."""

from __future__ import annotations

import numpy as np
from systems import example

BIPED = example("biped")


def test_runs_of_the_biped_reach_their_end_without_gaining_energy() -> None:
    solver = BIPED.build("impact")
    runs = [BIPED.run(solver, seed) for seed in range(20)]
    assert sum(finished for _, finished in runs) >= 19
    gains = np.array([BIPED.energy_gains(solver, motion) for motion, _ in runs])
    # Impacts: rounding of some 100 J; along the motion: rtol = 1e-7 of the work of the joints.
    assert gains[:, 0].max() < 1e-11
    assert gains[:, 1].max() < 1e-4
    assert min(BIPED.sole_heights(q).min() for motion, _ in runs for q in motion.q[::20]) > -1e-6
