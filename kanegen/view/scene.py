"""Everything that a page draws, as numbers: meshes, tracks of points and frames, arrows, traces, events.

The result is a dictionary that becomes JSON; arrays are little-endian float32 in base64.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sympy.physics.mechanics import Particle, Point, ReferenceFrame, RigidBody

from kanegen.arrays import Array
from kanegen.view.forces import COLORS, arrows
from kanegen.view.guess import THIN, Guess, Part, typical_size
from kanegen.view.meshes import Triangles, unit
from kanegen.view.motion import Motion
from kanegen.view.poses import NotKnownError, Poses
from kanegen.view.rotations import from_axis, quaternions
from kanegen.view.solids import Bar, Solid, drawn, placed

PALETTE: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f2a", "#5c5c8a")
"""Colors of bodies, distinguishable by color-blind readers (Okabe and Ito 2008)."""

LONGEST_ARROW: Final = 0.3
"""Length of the arrow of the largest force relative to the size of the scene."""

PLANAR: Final = 0.02
"""A motion whose extent in one direction is below this fraction of its size is looked at along this direction."""

BOUND_TIMES: Final = 40
"""Number of times at which the extent of the bodies is computed."""


@dataclass(frozen=True, eq=False)
class Wishes:
    """What the user asked for: title, what is visible at first, frames and points beside those of the bodies."""

    title: str
    frames: tuple[Any, ...]
    show_frames: bool
    traces: tuple[Any, ...]
    show_traces: bool
    forces: bool
    offsets: Array


def packed(values: Array) -> str:
    """An array as text."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode("ascii")


class Meshes:
    """The meshes of a scene, each once."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        self._kept: list[Triangles] = []

    def place(self, mesh: Triangles) -> int:
        if id(mesh) not in self._places:
            self._places[id(mesh)] = len(self._kept)
            self._kept.append(mesh)
        return self._places[id(mesh)]

    def data(self) -> list[dict[str, str]]:
        """Vertices, brightness, faces and edges of each mesh."""
        return [
            {"v": packed(m.vertices), "c": packed(m.shade), "f": packed(m.faces), "e": packed(m.edges)}
            for m in self._kept
        ]


class Stage:
    """What is drawn of one motion: ``items`` that refer to ``tracks``."""

    def __init__(self, motion: Motion, meshes: Meshes, wishes: Wishes) -> None:
        self.motion, self.poses, self._meshes, self._wishes = motion, Poses(motion), meshes, wishes
        self.items: list[dict[str, Any]] = []
        self.tracks: list[dict[str, Any]] = []
        self.corners: list[Array] = []
        self._known: dict[Any, int] = {}
        self._points: dict[Any, Array] = {}
        self.size = 1.0

    # -- tracks ---------------------------------------------------------------------------------------------

    def position(self, point: Any) -> Array:
        if point not in self._points:
            self._points[point] = self.poses.position(point, self.motion.times)
        return self._points[point]

    def track(self, point: Any, frame: Any = None) -> int:
        """The track of a point, and of a frame that turns; raises :class:`NotKnownError`."""
        key = (point, frame)
        if key not in self._known:
            data: dict[str, Any] = {"p": _short(self.position(point))}
            if frame is not None and frame is not self.motion.model.frame:
                data["q"] = _short(quaternions(self.poses.orientation(frame, self.motion.times)))
            self._known[key] = self._add(data)
        return self._known[key]

    def _add(self, data: dict[str, Any]) -> int:
        self.tracks.append(data)
        return len(self.tracks) - 1

    # -- bodies ---------------------------------------------------------------------------------------------

    def fill(self) -> None:
        """Add the bodies, the planes of contacts, forces, frames and traces."""
        self.size = self._first_size()
        parts = list(self._parts())
        for name, color, part in parts:
            try:
                self._add_part(name, color, part)
            except NotKnownError as error:
                self.poses.notices[f"{name} is not drawn: {error}"] = None
        self._add_contact_planes()
        self._add_frames()
        self._add_traces()

    def _first_size(self) -> float:
        model, positions = self.motion.model, [np.zeros((1, 3))]
        for body in model.bodies:
            try:
                positions.append(self.position(body.masscenter))
            except NotKnownError:
                continue
        guess = Guess(self.poses, 0.0)
        lengths = [guess.extent(body) for body in model.bodies if isinstance(body, RigidBody)]
        first = np.concatenate([p[:1] for p in positions])
        moved = max((float(np.ptp(p, axis=0).max()) for p in positions), default=0.0)
        return (
            typical_size(model, [first], lengths) if max([*lengths, np.ptp(first, axis=0).max()]) > 0 else moved or 1.0
        )

    def _parts(self) -> Iterable[tuple[str, str, Part]]:
        """Name, color and shape of everything that the user or the guess draws."""
        model = self.motion.model
        values = dict(zip(model.parameters, self.motion.parameters, strict=True))
        guess, given = Guess(self.poses, self.size), dict(model.shapes)
        for k, body in enumerate(model.bodies):
            color = PALETTE[k % len(PALETTE)]
            keys = [key for key in given if key is body or key == body.name]
            if keys:
                frame = getattr(body, "frame", model.frame)
                for shape in given.pop(keys[0]):
                    yield body.name, color, drawn(shape, body.masscenter, frame, values)
            else:
                yield from ((body.name, color, part) for part in guess.parts(body))
        for key, shapes in given.items():
            point, frame = self._place(key)
            for shape in shapes:
                yield str(key), "#9aa0a6", drawn(shape, point, frame, values)

    def _place(self, key: Any) -> tuple[Any, Any]:
        """The point and the frame of shapes that belong to a frame or a point."""
        model = self.motion.model
        if isinstance(key, Point):
            return key, model.frame
        centers = [body.masscenter for body in model.bodies if getattr(body, "frame", None) is key]
        return (centers[0] if centers else None), key

    def _add_part(self, name: str, color: str, part: Part) -> None:
        color = part.color or color
        look = {"color": color, "opacity": part.opacity, "name": name, "group": "bodies"}
        if isinstance(part, Bar):
            ends = [self.track(part.start), self.track(part.end)]
            radius = THIN * self.size if part.radius is None else part.radius
            self.items.append({"kind": "bar", "a": ends[0], "b": ends[1], "radius": radius, **look})
            self.corners += [self.position(part.start), self.position(part.end)]
            return
        track = self._origin_track() if part.point is None else self.track(part.point, part.frame)
        mesh = self._meshes.place(part.mesh)
        self.items.append({"kind": "solid", "mesh": mesh, "track": track, "local": _columns(part.local), **look})
        if part.point is not None:
            self._add_corners(part)

    def _origin_track(self) -> int:
        if "origin" not in self._known:
            self._known["origin"] = self._add({"p": packed(np.zeros((1, 3)))})
        return self._known["origin"]

    def _add_corners(self, solid: Solid) -> None:
        """The extent of a solid at some times."""
        n = self.motion.times.size
        some = np.unique(np.linspace(0, n - 1, min(n, BOUND_TIMES)).astype(int))
        vertices = solid.mesh.vertices[:: max(1, len(solid.mesh.vertices) // 60)]
        local = vertices @ solid.local[:3, :3].T + solid.local[:3, 3]
        R = self.poses.orientation(solid.frame, self.motion.times)[some]
        self.corners.append(
            (np.einsum("nij,kj->nki", R, local) + self.position(solid.point)[some, None]).reshape(-1, 3)
        )

    # -- the rest -------------------------------------------------------------------------------------------

    def _add_contact_planes(self) -> None:
        """Planes of contacts whose normal does not turn, at the start of the motion."""
        model, first = self.motion.model, self.motion.times[:1]
        for contact in model.resolved_contacts:
            pairs = contact.applied_at[0] if contact.gap is not None and contact.applied_at else ()
            for place, normal in pairs:
                if contact.level != 2 or not isinstance(place, Point) or set(_frames_of(normal)) - {model.frame}:
                    continue
                try:
                    n = self.poses.vector(normal, self.motion.times)
                    gap = self.poses.expressions([contact.gap], first)[0, 0]
                    if np.ptp(n, axis=0).max() > 1e-9 or not np.linalg.norm(n[0]) > 0.0:
                        continue
                    foot = self.position(place)[0] - gap * n[0] / np.linalg.norm(n[0])
                except NotKnownError:
                    continue
                track = self._add({"p": packed(foot[None])})
                local = _columns(placed((1.2 * self.size, 1.2 * self.size, 1.0), from_axis(n[0])))
                look = {"color": "#c9ced6", "opacity": 0.8, "name": contact.name, "group": "bodies"}
                plane = self._meshes.place(unit("plane"))
                self.items.append({"kind": "solid", "mesh": plane, "track": track, "local": local, **look})

    def _add_frames(self) -> None:
        model = self.motion.model
        bodies = [(b.frame, b.masscenter) for b in model.bodies if isinstance(b, RigidBody)]
        extra = [(frame, self._place(frame)[0]) for frame in self._wishes.frames]
        for frame, point in dict.fromkeys((*bodies, *extra)):
            try:
                track = self._origin_track() if point is None else self.track(point, frame)
            except NotKnownError as error:
                self.poses.notices[f"frame {frame} is not drawn: {error}"] = None
                continue
            local = _columns(placed([0.18 * self.size] * 3))
            look = {"color": "#ffffff", "opacity": 1.0, "name": str(frame), "group": "frames"}
            triad = self._meshes.place(unit("triad"))
            self.items.append({"kind": "solid", "mesh": triad, "track": track, "local": local, **look})

    def _add_traces(self) -> None:
        centers = [body.masscenter for body in self.motion.model.bodies]
        points = self._wishes.traces or tuple(centers)
        for point in dict.fromkeys(points):
            try:
                track = self.track(point)
            except NotKnownError as error:
                self.poses.notices[f"the trace of {point} is not drawn: {error}"] = None
                continue
            color = PALETTE[centers.index(point) % len(PALETTE)] if point in centers else "#444444"
            if np.ptp(self.position(point), axis=0).max() > 1e-6 * self.size:
                self.items.append(
                    {"kind": "trace", "track": track, "color": color, "name": str(point), "group": "traces"}
                )

    def add_arrows(self, size: float) -> dict[str, float]:
        """Add forces and torques; the largest ones (N, N m) whose arrows have the full length."""
        found = list(arrows(self.poses)) if self._wishes.forces else []
        peaks: dict[str, float] = {}
        for is_torque, unit_name in ((False, "N"), (True, "N m")):
            lengths = [np.linalg.norm(arrow.vector, axis=1) for arrow in found if arrow.is_torque == is_torque]
            if lengths:
                peaks[unit_name] = float(max(np.percentile(x, 99) for x in lengths)) or float(max(map(np.max, lengths)))
        for arrow in found:
            scale = LONGEST_ARROW * size / peaks["N m" if arrow.is_torque else "N"]
            try:
                foot = self.track(arrow.foot)
            except NotKnownError as error:
                self.poses.notices[f"{arrow.name} is not drawn: {error}"] = None
                continue
            vector = self._add({"p": _short(arrow.vector * scale)})
            look = {"color": COLORS[arrow.kind], "name": arrow.name, "group": "forces", "double": arrow.is_torque}
            self.items.append({"kind": "arrow", "foot": foot, "vector": vector, "type": arrow.kind, **look})
        return peaks


def _short(values: Array) -> str:
    """The values as text; a single row if all rows are equal."""
    return packed(values[:1] if (values == values[0]).all() else values)


def _columns(matrix: Array) -> list[float]:
    """A matrix (4, 4) column by column, as WebGL reads it."""
    return [float(f"{x:.6g}") for x in matrix.T.ravel()]


def _frames_of(vector: Any) -> tuple[Any, ...]:
    return tuple(frame for _, frame in vector.args) if vector != 0 else ()


def scene(motions: Sequence[Motion], wishes: Wishes) -> dict[str, Any]:
    """Everything that the page of these motions draws."""
    meshes = Meshes()
    stages = [Stage(motion, meshes, wishes) for motion in motions]
    for stage in stages:
        stage.fill()
    shifted = [c + offset for stage, offset in zip(stages, wishes.offsets, strict=True) for c in stage.corners]
    corners = np.concatenate(shifted) if shifted else np.array([[-1.0] * 3, [1.0] * 3])
    low, high = corners.min(axis=0), corners.max(axis=0)
    size = max(stage.size for stage in stages)
    peaks: dict[str, float] = {}
    for stage in stages:
        for name, peak in stage.add_arrows(size).items():
            peaks[name] = max(peak, peaks.get(name, 0.0))
    shared = {name: meshes.place(unit(name)) for name in ("bar", "head")}
    up, look = view_directions(stages[0].poses, low, high)
    notices = dict.fromkeys(text for stage in stages for text in stage.poses.notices)
    if not any(item["group"] == "bodies" for stage in stages for item in stage.items):
        notices[
            "nothing is drawn: the model has no bodies, or their positions are not known; give Model(shapes=...)"
        ] = None
    return {
        "title": wishes.title,
        "meshes": meshes.data(),
        "shared": shared,
        "low": low.tolist(),
        "high": high.tolist(),
        "size": size,
        "up": up.tolist(),
        "look": look.tolist(),
        "arrow": LONGEST_ARROW * size,
        "peaks": peaks,
        "show": {"frames": wishes.show_frames, "traces": wishes.show_traces, "forces": wishes.forces},
        "notices": list(notices),
        "motions": [_motion(stage, offset) for stage, offset in zip(stages, wishes.offsets, strict=True)],
    }


def _motion(stage: Stage, offset: Array) -> dict[str, Any]:
    motion = stage.motion
    times = base64.b64encode(np.ascontiguousarray(motion.times, dtype="<f8").tobytes()).decode("ascii")
    return {
        "label": motion.label,
        "offset": offset.tolist(),
        "times": times,
        "tracks": stage.tracks,
        "items": stage.items,
        "marks": [[mark.t, mark.name, mark.kind] for mark in motion.marks],
    }


def view_directions(poses: Poses, low: Array, high: Array) -> tuple[Array, Array]:
    """The upward direction, against gravity, and the direction from the scene to the camera, unit vectors."""
    gravity = poses.model.gravity
    extent = high - low
    flat = int(np.argmin(extent))
    planar = extent[flat] <= max(PLANAR, 3.5 * THIN) * extent.max()
    if gravity is not None and gravity != 0:
        g = poses.vector(gravity, poses.motion.times[:1])[0]
        up = -g / np.linalg.norm(g) if np.linalg.norm(g) > 0.0 else np.eye(3)[2]
    else:
        up = np.eye(3)[1 if planar and flat == 2 else 2]
    if planar and abs(up[flat]) < 0.5:
        sign = -1.0 if flat == 1 else 1.0  # x to the right
        return up, sign * np.eye(3)[flat]
    side = np.cross(up, np.eye(3)[int(np.argmin(np.abs(up)))])
    side /= np.linalg.norm(side)
    look = 0.45 * up - 0.55 * side - 0.8 * np.cross(up, side)
    return up, look / np.linalg.norm(look)


def checked_points(given: Any) -> tuple[Any, ...]:
    """Points of bodies and points; frames are refused by the caller."""
    return tuple(x.masscenter if isinstance(x, Particle | RigidBody) else x for x in given)


def is_frame(value: Any) -> bool:
    return isinstance(value, ReferenceFrame)
