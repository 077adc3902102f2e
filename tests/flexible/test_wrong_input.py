"""What is wrong with the arguments of flexible bodies and beams is said by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy.physics.mechanics as me

import kanegen as kg

FRAME, ORIGIN = me.ReferenceFrame("A"), me.Point("P")
NODES = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]
MODES = [[[0.0, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 1.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]]]


def body(**options: Any) -> kg.FlexibleBody:
    arguments = {"nodes": NODES, "modes": MODES, "masses": [1.0, 1.0, 1.0], "stiffness": [1.0, 2.0], **options}
    return kg.FlexibleBody("arm", arguments.pop("frame", FRAME), arguments.pop("origin", ORIGIN), **arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"modes": [MODES[0], MODES[1], np.array(MODES[0]) - 2 * np.array(MODES[1])], "stiffness": np.ones(3)},
         "the modes are not independent: mode 3 is a combination of the modes before it"),
        ({"masses": [1.0, 0.0, 0.0]}, "mode 1, 2 moves no mass"),
        ({"masses": None, "mass_matrix": np.diag([1.0, 1.0, -0.1])}, "mass_matrix is not positive"),
        ({"masses": None, "mass_matrix": np.eye(3) + np.eye(3, k=1)}, "mass_matrix is not symmetric"),
        ({"masses": [1.0, -1.0, 1.0]}, "masses contains -1 kg: expected none below 0"),
        ({"masses": [0.0, 0.0, 0.0]}, "the mass of the body is zero"),
        ({"masses": None}, "give one of masses, mass_matrix and integrals"),
        ({"mass_matrix": np.eye(3)}, "give one of masses, mass_matrix and integrals"),
        ({"masses": [1.0, 1.0]}, r"masses has the shape \(2,\): expected \(3,\)"),
        ({"modes": np.zeros((2, 4, 3))}, r"modes has the shape \(2, 4, 3\): expected \(m, 3, 3\)"),
        ({"nodes": [[0.0, 1.0]]}, r"nodes has the shape \(1, 2\): expected \(n, 3\)"),
        ({"nodes": "many"}, r"nodes is 'many': expected an array of numbers, \(n, 3\)"),
        ({"stiffness": [1.0, np.nan]}, "stiffness contains values that are not finite"),
        ({"stiffness": [[1.0, 0.0], [0.0, -1.0]]}, "stiffness is not positive"),
        ({"stiffness": [1.0]}, r"stiffness has the shape \(1,\): expected \(2,\)"),
        ({"damping": [[0.0, 1.0], [0.0, 0.0]]}, "damping is not symmetric"),
        ({"damping": [1.0, 1.0], "damping_ratio": 0.1}, "give either damping or damping_ratio"),
        ({"damping_ratio": -0.1}, "damping_ratio is -0.1: expected a number, 0 or larger"),
        ({"inertias": -np.ones((3, 3, 3))}, r"inertias\[0\] is not positive"),
        ({"names": {"tip": 3}}, r"names\['tip'\] is node 3: expected 0 to 2"),
        ({"lines": [(0, 1, 2)]}, r"lines\[0\] is \(0, 1, 2\): expected two nodes"),
        ({"lines": [(0, 5)]}, r"lines\[0\] is node 5: expected 0 to 2"),
        ({"frame": "A"}, "frame is 'A': expected a sympy.physics.mechanics ReferenceFrame"),
        ({"origin": None}, "origin is None: expected a sympy.physics.mechanics Point"),
        ({"masses": None, "integrals": np.eye(4)}, r"integrals has the shape \(4, 4\): expected \(10, 10\)"),
        ({"masses": None, "integrals": np.eye(10), "second_order": np.zeros((2, 2, 3, 3))},
         "give either integrals or second_order"),
    ],
)  # fmt: skip
def test_wrong_bodies(options: dict[str, Any], message: str) -> None:
    with pytest.raises(kg.ModelError, match=f"flexible body arm: {message}"):
        body(**options)


def test_nodes_that_do_not_exist() -> None:
    arm = body(names={"tip": 2})
    assert arm.point("tip") is arm.point(2)
    for wrong in (3, -1, "top", 1.0, True):
        with pytest.raises(kg.ModelError, match=r"has no node .*: expected 0 to 2, or one of tip"):
            arm.point(wrong)
        with pytest.raises(kg.ModelError, match="has no node"):
            arm.node_frame(wrong)
    with pytest.raises(kg.ModelError, match=r"coefficients has the shape \(3,\): expected \(2,\)"):
        arm.combination([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 0.0}, "length is 0.0: expected a positive number"),
        ({"area": "1"}, "area is '1': expected a positive number"),
        ({"second_moment": (1e-6, -1e-6)}, "second_moment is -1e-06: expected a positive number"),
        ({"second_moment": (1e-6, 1e-6, 1e-6)}, "second_moment is .*: expected a positive number"),
        ({"theory": "plate"}, "theory is 'plate': expected one of euler_bernoulli, timoshenko"),
        ({"theory": "timoshenko"}, "shear_modulus is None: expected a positive number"),
        ({"twist_modes": 1}, "shear_modulus is None: expected a positive number"),
        ({"supports": "welded"}, "supports is 'welded': expected one of cantilever, pinned, clamped, free"),
        ({"bending": "x"}, "bending is 'x': expected one of y, z, yz"),
        ({"shapes": "sines"}, "shapes is 'sines': expected one of eigenmodes, polynomials"),
        ({"modes": 2.5}, "modes is 2.5: expected a number from 0 to 40"),
        ({"modes": 0}, "the beam has no modes"),
        ({"third_order": True, "bending": "yz"}, "third_order needs stiffening=True, and bending in one direction"),
        ({"stations": 1}, "stations is 1: expected at least 2"),
        ({"stations": [0.0, 3.0]}, "stations is .*: expected ascending positions from 0 to the length"),
        ({"stations": "all"}, r"stations is 'all': expected an array of numbers, \(n,\)"),
    ],
)  # fmt: skip
def test_wrong_beams(options: dict[str, Any], message: str) -> None:
    section = {"length": 2.0, "area": 1e-3, "second_moment": 1e-7, "density": 1e3, "youngs_modulus": 1e9}
    with pytest.raises(kg.ModelError, match=message):
        kg.beam("arm", FRAME, ORIGIN, **{**section, **options})


def test_strain_beyond_the_end() -> None:
    arm = kg.beam(
        *("arm", FRAME, ORIGIN), length=2.0, area=1e-3, second_moment=1e-7, density=1e3, youngs_modulus=1e9, modes=1
    )
    with pytest.raises(kg.ModelError, match=r"x is 2\.5: expected a position from 0 to 2 m"):
        arm.strain(2.5)


def test_files_that_hold_no_body(tmp_path: Path) -> None:
    path = tmp_path / "body.npz"
    with pytest.raises(kg.FileError, match="cannot be read as an npz file"):
        kg.FlexibleBody.from_file(path, "arm", FRAME, ORIGIN)
    path.write_bytes(b"no archive")
    with pytest.raises(kg.FileError, match="cannot be read as an npz file"):
        kg.FlexibleBody.from_file(path, "arm", FRAME, ORIGIN)
    np.savez(path, nodes=NODES, modes=MODES, pickled=np.array([{}], dtype=object))
    with pytest.raises(kg.FileError, match="cannot be read as an npz file"):
        kg.FlexibleBody.from_file(path, "arm", FRAME, ORIGIN)
    np.savez(path, nodes=NODES, modes=MODES, color=[1.0])
    with pytest.raises(kg.ModelError, match=r"array 'color' of .* is no argument(.|\n)*has no array 'stiffness'"):
        kg.FlexibleBody.from_file(path, "arm", FRAME, ORIGIN)
