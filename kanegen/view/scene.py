"""Everything that a page draws, as a dictionary that becomes JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.view.encode import Meshes, packed
from kanegen.view.meshes import unit
from kanegen.view.motion import Motion
from kanegen.view.poses import Poses
from kanegen.view.stage import LONGEST_ARROW, PALETTE, Stage, Wishes

PLANAR: Final = 0.02
"""A motion whose extent in one direction is below this fraction of its size is looked at along this direction."""

FAR: Final = 4.0
"""The camera follows bodies that move further than this multiple of their own extent."""


def scene(motions: Sequence[Motion], wishes: Wishes) -> dict[str, Any]:
    """Everything that the page of these motions draws."""
    meshes = Meshes()
    colors = [PALETTE[k % len(PALETTE)] if len(motions) > 1 else None for k in range(len(motions))]
    stages = [Stage(motion, meshes, wishes, color) for motion, color in zip(motions, colors, strict=True)]
    size = max(stage.size for stage in stages)
    peaks: dict[str, float] = {}
    for stage in stages:
        for name, peak in stage.add_arrows(size).items():
            peaks[name] = max(peak, peaks.get(name, 0.0))
    pairs = list(zip(stages, wishes.offsets, strict=True))
    box = _box([stage.corners.reshape(-1, 3) + offset for stage, offset in pairs])
    starts = np.array([stage.centers[0] + offset for stage, offset in pairs])
    apart = starts - starts.mean(axis=0)  # the camera follows the mean of all motions
    around = [stage.corners - stage.centers[:, None] + shift for stage, shift in zip(stages, apart, strict=True)]
    near = _box([corners.reshape(-1, 3) for corners in around])
    up, look = view_directions(stages[0].poses, np.concatenate([stage.points for stage in stages]))
    notices = dict.fromkeys(text for stage in stages for text in stage.poses.notices)
    if not any(item["group"] == "bodies" for stage in stages for item in stage.items):
        notices["no body is drawn: the model has none, or their positions are not known; give Model(shapes=...)"] = None
    return {
        "title": wishes.title,
        "shared": {name: meshes.place(unit(name)) for name in ("bar", "head")},
        "meshes": meshes.data(),
        "box": box.tolist(),
        "near": near.tolist(),
        "follow": bool(np.ptp(box, axis=0).max() > FAR * max(size, np.ptp(near, axis=0).max())),
        "size": size,
        "up": up.tolist(),
        "look": look.tolist(),
        "arrow": LONGEST_ARROW * size,
        "peaks": peaks,
        "show": {"frames": wishes.show_frames, "traces": wishes.show_traces, "forces": wishes.forces},
        "notices": list(notices),
        "motions": [_motion(stage, offset) for stage, offset in pairs],
    }


def _box(points: list[Array]) -> Array:
    """The two corners (2, 3) of the box that contains the points, as far as these are finite."""
    all_points = np.concatenate(points)
    all_points = all_points[np.isfinite(all_points).all(axis=1)]
    if not len(all_points):
        return np.zeros((2, 3))
    return np.stack([all_points.min(axis=0), all_points.max(axis=0)])


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


def view_directions(poses: Poses, points: Array) -> tuple[Array, Array]:
    """The upward direction, against gravity, and the direction from the scene to the camera, unit vectors.

    A plane motion is looked at along the normal of its plane.
    """
    extent = np.ptp(_box([points]), axis=0)
    flat = int(np.argmin(extent))
    planar = extent[flat] <= PLANAR * extent.max()
    gravity = poses.model.gravity
    g = np.zeros(3) if gravity is None else poses.vector(gravity, poses.motion.times[:1])[0]
    up = -g / np.linalg.norm(g) if g.any() else np.eye(3)[1 if planar and flat == 2 else 2]
    if planar and abs(up[flat]) < 0.5:
        return up, (-1.0 if flat == 1 else 1.0) * np.eye(3)[flat]  # x points to the right
    side = np.cross(up, np.eye(3)[int(np.argmin(np.abs(up)))])
    side /= np.linalg.norm(side)
    look = 0.45 * up - 0.55 * side - 0.8 * np.cross(up, side)
    return up, look / np.linalg.norm(look)
