"""Everything that a page draws, as a dictionary that becomes JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.view.camera import View, view_of
from kanegen.view.encode import Meshes, packed
from kanegen.view.meshes import unit
from kanegen.view.motion import Motion
from kanegen.view.stage import FAR, LARGEST, PALETTE, Stage, Wishes
from kanegen.view.weights import weights


def scene(motions: Sequence[Motion], wishes: Wishes) -> dict[str, Any]:
    """Everything that the page of these motions draws."""
    meshes = Meshes()
    colors = [PALETTE[k % len(PALETTE)] if len(motions) > 1 else None for k in range(len(motions))]
    stages = [Stage(motion, meshes, wishes, color) for motion, color in zip(motions, colors, strict=True)]
    size = max(stage.size for stage in stages)
    peaks, beyond = _largest_forces(stages)
    for stage in stages:
        stage.add_arrows(size, peaks)
    pairs = list(zip(stages, wishes.offsets, strict=True))
    bounds = _bounds(pairs, size)
    view = _view(pairs, size, bounds["follow"])
    notices = dict.fromkeys(text for stage in stages for text in stage.poses.notices)
    if not any(item["group"] == "bodies" for stage in stages for item in stage.items):
        notices["no body is drawn: the model has none, or their positions are not known; give Model(shapes=...)"] = None
    return {
        "title": wishes.title,
        "shared": {name: meshes.place(unit(name)) for name in ("bar", "head", "turn")},
        "meshes": meshes.data(),
        **bounds,
        "size": size,
        "up": view.up.tolist(),
        "look": view.look.tolist(),
        "front": view.front.tolist(),
        "arrow": LARGEST["N"] * size,
        "peaks": peaks,
        "beyond": beyond,
        "show": {"frames": wishes.show_frames, "traces": wishes.show_traces, "forces": wishes.forces},
        "notices": list(notices),
        "motions": [_motion(stage, offset) for stage, offset in pairs],
    }


def _box(points: list[Array]) -> Array:
    """The two corners (2, 3) of the box that contains the points, as far as these are finite."""
    finite = _finite(points)
    return np.stack([finite.min(axis=0), finite.max(axis=0)]) if len(finite) else np.zeros((2, 3))


def _motion(stage: Stage, offset: Array) -> dict[str, Any]:
    motion = stage.motion
    return {
        "label": motion.label,
        "color": stage.color,
        "offset": offset.tolist(),
        "times": packed(motion.times, "<f8"),
        "tracks": stage.tracks,
        "items": stage.items,
        "center": stage.center,
        "marks": [[mark.t, mark.name, mark.kind] for mark in motion.marks],
    }


def _largest_forces(stages: Sequence[Stage]) -> tuple[dict[str, float], list[str]]:
    """By unit, the force that has the longest arrow: the largest one without peaks such as those of impacts.

    With the units in which some force is larger.
    """
    peaks: dict[str, float] = {}
    largest: dict[str, float] = {}
    for arrow in (arrow for stage in stages for arrow in stage.arrows):
        lengths = np.linalg.norm(arrow.vector, axis=1)
        peak = float(np.percentile(lengths, 99)) or float(lengths.max())
        peaks[arrow.unit] = max(peak, peaks.get(arrow.unit, 0.0))
        largest[arrow.unit] = max(float(lengths.max()), largest.get(arrow.unit, 0.0))
    return peaks, [unit for unit, peak in peaks.items() if largest[unit] > 1.001 * peak]


def _bounds(pairs: Sequence[tuple[Stage, Array]], size: float) -> dict[str, Any]:
    """The corners of the box of everything, and of the moving bodies around their center, which the camera follows."""
    starts = np.array([stage.centers[0] + offset for stage, offset in pairs])
    everything, around = [], []
    for (stage, offset), apart in zip(pairs, starts - starts.mean(axis=0), strict=True):
        moving = np.concatenate([stage.corners, stage.tips], axis=1)
        everything += [(moving + offset).reshape(-1, 3), stage.ground + offset]
        around.append((moving - stage.centers[:, None] + apart).reshape(-1, 3))
    box, near = _box(everything), _box(around)
    far = np.ptp(box, axis=0).max() > FAR * max(size, np.ptp(near, axis=0).max())
    return {"box": box.tolist(), "near": near.tolist(), "follow": bool(far)}


def _view(pairs: Sequence[tuple[Stage, Array]], size: float, follow: bool) -> View:
    """The view that shows all motions, with the gravity of the first model that knows it."""
    moved = _finite([(stage.corners - stage.corners[0]).reshape(-1, 3) for stage, _ in pairs])
    seen = [stage.corners + offset - follow * stage.centers[:, None] for stage, offset in pairs]
    points = _finite([stage.points for stage, _ in pairs])
    found = ((stage.poses, weights(stage.motion.model)[0]) for stage, _ in pairs)
    weight = next((poses.vector(g, poses.motion.times[:1])[0] for poses, g in found if g is not None), None)
    return view_of(moved, points, _finite([corners.reshape(-1, 3) for corners in seen]), size, weight)


def _finite(points: Sequence[Array]) -> Array:
    """The points (n, 3) of all arrays that are finite."""
    together = np.concatenate(points)
    return together[np.isfinite(together).all(axis=1)]
