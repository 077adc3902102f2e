"""Draws the motion of every example for the documentation.

``python docs/make_pictures.py`` writes docs/plots/NAME.png for every script NAME.py of build_examples that has a
function ``plot``; names as arguments select some of them.
"""

from __future__ import annotations

import importlib
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from PIL import Image

import kanegen as kg

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "build_examples"
PLOTS = HERE / "plots"
DPI = 72
COLORS = 64
"""Colors of a picture; lines and text need few, and a file with few colors is small."""


def save(figure: Any, path: Path, dpi: float = DPI) -> None:
    """Write a figure as a small PNG file."""
    buffer = BytesIO()
    figure.savefig(buffer, dpi=dpi)
    picture = Image.open(buffer).convert("RGB").quantize(COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    picture.save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")


def draw_disk(module: Any, solution: Any) -> Any:
    """The rolling disk in space, at equal intervals of time, with the paths of its contact and of its center."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.0))
    axis: Any = figure.add_axes((-0.25, -0.475, 1.5, 2.0), projection="3d")
    radius = module.DEFAULTS["R"]

    def place(t: Any, angle: Any) -> Any:
        """Points of the rim, (3, n); the angle pi / 2 is the highest point, -pi / 2 the contact."""
        theta, phi, _, x, y = solution(t)[0][..., :5].T
        across, up = radius * np.cos(angle), radius * np.sin(angle)
        plane = up * np.cos(theta)
        corners = (x + across * np.cos(phi) - plane * np.sin(phi), y + across * np.sin(phi) + plane * np.cos(phi))
        return np.array([*corners, radius * np.sin(theta) + up * np.sin(theta)])

    angles = np.linspace(0.0, 2.0 * np.pi, 61)
    instants = np.linspace(0.0, 3.3, 15)
    for t, share in zip(instants, np.linspace(0.15, 0.9, instants.size), strict=True):
        axis.plot(*place(t, angles), color="tab:blue", alpha=share, linewidth=1.6)
        axis.add_collection3d(Poly3DCollection([place(t, angles).T], facecolor="tab:blue", alpha=0.25 * share))
    path = place(np.linspace(0.0, 3.3, 400), -np.pi / 2.0)
    axis.plot(*path, color="tab:orange", linewidth=1.2)
    axis.set_aspect("equal")
    axis.set_axis_off()
    axis.view_init(elev=28.0, azim=-60.0)
    return figure


def draw_modes(module: Any) -> Any:
    """The eigenvalues of the bicycle over its speed, from the family of steady motions."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    branch = module.solver().steady_motions("u_x", np.linspace(0.2, 10.0, 99), *module.upright(0.2))
    kg.plot.modes(branch, ax=figure)
    return figure


def main(names: list[str]) -> None:
    sys.path.insert(0, str(EXAMPLES))
    report: Any = importlib.import_module("_report")
    PLOTS.mkdir(exist_ok=True)
    for name in names or sorted(path.stem for path in EXAMPLES.glob("[!_]*.py")):
        module: Any = importlib.import_module(name)
        cases = getattr(module, "CASES", {"": {}})
        runs = {case: module.simulate(**options) for case, options in cases.items()}
        save(report.draw(module.plot, runs), PLOTS / f"{name}.png")
        if name == "rolling_disk":
            save(draw_disk(module, runs["Kane"][1]), PLOTS / "motion.png", dpi=100)
        if name == "whipple_bicycle":
            save(draw_modes(module), PLOTS / "bicycle_modes.png")


if __name__ == "__main__":
    main(sys.argv[1:])
