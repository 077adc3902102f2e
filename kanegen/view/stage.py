"""What is drawn of one motion: items, such as bodies and arrows, that refer to tracks of points and frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from sympy.physics.mechanics import Point, RigidBody

from kanegen.arrays import Array
from kanegen.model.expressions import vector_frames
from kanegen.shapes import Plane
from kanegen.view.encode import Meshes, columns, packed, shortened
from kanegen.view.forces import COLORS, Arrow, arrows
from kanegen.view.guess import THIN, Guess, Part
from kanegen.view.meshes import unit
from kanegen.view.motion import Motion
from kanegen.view.poses import NotKnownError, Poses
from kanegen.view.rotations import from_axis, quaternions
from kanegen.view.solids import Bar, drawn, placed

PALETTE: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f2a", "#5c5c8a")
"""Colors of bodies, distinguishable by color-blind readers (Okabe and Ito 2008)."""

GROUND: Final = "#9aa0a6"
"""Color of shapes that belong to no body."""

SURFACE: Final = "#d5dae1"
"""Color of planes."""

LARGEST: Final = {"N": 0.3, "N m": 0.08}
"""Length of the arrow of the largest force, and radius of the arc of the largest torque, relative to the size of the
mechanism; larger ones, such as those of impacts, are not drawn larger."""

TRIAD: Final = 0.2
"""Length of the axes of a frame relative to the size of the mechanism."""

FAR: Final = 4.0
"""The camera follows bodies that move further than this multiple of their own extent."""

BOUND_TIMES: Final = 60
"""Number of times at which the extent of the bodies is computed."""


@dataclass(frozen=True, eq=False)
class Wishes:
    """What the user asked for: title, frames and points beside those of the bodies, what is visible at first."""

    title: str
    frames: tuple[Any, ...]
    show_frames: bool
    traces: tuple[Any, ...]
    show_traces: bool
    forces: bool
    offsets: Array


class Stage:
    """The items and tracks of a motion; ``color`` of all bodies, None for a color of each.

    ``corners`` (k, m, 3) are points of the bodies at ``k`` times, ``tips`` (k, m, 3) those of the arrows, ``ground``
    (m, 3) points of what does not move; they bound what is drawn. ``size`` is the size of the mechanism, m.
    """

    def __init__(self, motion: Motion, meshes: Meshes, wishes: Wishes, color: str | None) -> None:
        self.motion, self.poses, self._meshes, self._wishes = motion, Poses(motion), meshes, wishes
        self.color = color
        self.items: list[dict[str, Any]] = []
        self.tracks: list[dict[str, Any]] = []
        self._known: dict[Any, int] = {}
        self._points: dict[Any, Array] = {}
        self._corners: list[Array] = []
        self._tips: list[Array] = []
        self._ground: list[Array] = [np.empty((0, 3))]
        n = motion.times.size
        self._some = np.unique(np.linspace(0, n - 1, min(n, BOUND_TIMES)).astype(int))
        self.size = self._mechanism_size()
        for name, body_color, part in self._parts():
            self._try(name, self._add_part, name, body_color, part)
        self._add_contact_planes()
        self._add_frames()
        self._add_traces()
        self.center = self._add_center()

    def _try(self, what: str, add: Any, *arguments: Any) -> None:
        """Add something, or say why it is not drawn."""
        try:
            add(*arguments)
        except NotKnownError as error:
            self.poses.notices[f"{what} is not drawn: {error}"] = None

    @property
    def corners(self) -> Array:
        """Points (k, m, 3) that bound the bodies at k times."""
        none = np.zeros((self._some.size, 1, 3))
        return np.concatenate(self._corners or [none], axis=1)

    @property
    def tips(self) -> Array:
        """The tips (k, m, 3) of the arrows at the times of the corners."""
        return np.stack(self._tips, axis=1) if self._tips else np.empty((self._some.size, 0, 3))

    @property
    def ground(self) -> Array:
        """Points (m, 3) of what does not move, without planes, which may be much larger than the mechanism."""
        return np.concatenate(self._ground)

    @property
    def centers(self) -> Array:
        """The mean of the mass centers at the times of the corners, (k, 3)."""
        return np.asarray(self._center_of_bodies()[self._some])

    @property
    def points(self) -> Array:
        """All positions of the points that are drawn, (n, 3)."""
        return np.concatenate([*self._points.values(), np.zeros((1, 3))])

    # -- tracks ---------------------------------------------------------------------------------------------

    def position(self, point: Any) -> Array:
        """Positions (n, 3) of a point; raises :class:`NotKnownError`."""
        if point not in self._points:
            self._points[point] = self.poses.position(point, self.motion.times)
        return self._points[point]

    def track(self, point: Any, frame: Any = None) -> int:
        """The track of a point, None for the origin, and of a frame that turns; raises :class:`NotKnownError`."""
        turning = frame is not None and frame is not self.motion.model.frame
        key = (point, frame if turning else None)
        if key not in self._known:
            data = {"p": shortened(np.zeros((1, 3)) if point is None else self.position(point))}
            if turning:
                data["q"] = shortened(quaternions(self.poses.orientation(frame, self.motion.times)))
            self._known[key] = self._add(data)
        return self._known[key]

    def _add(self, data: dict[str, Any]) -> int:
        self.tracks.append(data)
        return len(self.tracks) - 1

    def _center_of_bodies(self) -> Array:
        centers = [body.masscenter for body in self.motion.model.bodies if body.masscenter in self._points]
        if not centers:
            return np.zeros((self.motion.times.size, 3))
        return np.asarray(np.mean([self._points[point] for point in centers], axis=0))

    def _add_center(self) -> int:
        return self._add({"p": shortened(self._center_of_bodies())})

    # -- bodies ---------------------------------------------------------------------------------------------

    def _mechanism_size(self) -> float:
        """The largest dimension of the bodies and of the mechanism at the start; of the path, if these are points.

        The origin is a part of the mechanism, unless rigid bodies that are not tied to it start far from it.
        """
        model, guess = self.motion.model, Guess(self.poses, 0.0)
        for body in model.bodies:
            self._try(f"body {body.name}", self.position, body.masscenter)
        known = [*self._points.values()] or [np.zeros((1, 3))]
        lengths = [guess.extent(body) for body in model.bodies if isinstance(body, RigidBody)]
        starts = np.array([p[0] for p in known])
        own = max([np.ptp(starts, axis=0).max(), *lengths])
        first = np.ptp(np.vstack([starts, np.zeros((int(len(starts) > 1), 3))]), axis=0).max()
        if first > FAR * own and any(lengths) and not any(map(_keeps_its_distance, known)):
            first = 0.0
        return float(max(own, first) or max(np.ptp(p, axis=0).max() for p in known) or 1.0)

    def _parts(self) -> Iterable[tuple[str, str, Part]]:
        """Name, color and shape of everything that the user gave or that is guessed."""
        model = self.motion.model
        values = dict(zip(model.parameters, self.motion.parameters, strict=True))
        guess, given = Guess(self.poses, self.size), dict(model.shapes)
        for k, body in enumerate(model.bodies):
            color = self.color or PALETTE[k % len(PALETTE)]
            keys = [key for key in given if key is body or (isinstance(key, str) and key == body.name)]
            if keys:
                frame = getattr(body, "frame", model.frame)
                for shape in given.pop(keys[0]):
                    yield body.name, color, drawn(shape, body.masscenter, frame, values)
            elif body.masscenter in self._points:
                yield from ((body.name, color, part) for part in guess.parts(body))
        for key, shapes in given.items():
            point, frame = self._place(key)
            for shape in shapes:
                color = SURFACE if isinstance(shape, Plane) else GROUND
                yield str(key), color, drawn(shape, point, frame, values)

    def _place(self, key: Any) -> tuple[Any, Any]:
        """The point and the frame of shapes that belong to a frame or a point; None: the origin."""
        model = self.motion.model
        if isinstance(key, Point):
            return key, model.frame
        centers = (body.masscenter for body in model.bodies if getattr(body, "frame", None) is key)
        return next(centers, None), key

    def _add_part(self, name: str, color: str, part: Part) -> None:
        look = {"color": part.color or color, "opacity": part.opacity, "name": name, "group": "bodies"}
        if isinstance(part, Bar):
            ends = {"a": self.track(part.start), "b": self.track(part.end)}
            radius = THIN * self.size if part.radius is None else part.radius
            self.items.append({"kind": "bar", "radius": radius, **ends, **look})
            self._bound(np.stack([self.position(point)[self._some] for point in (part.start, part.end)], axis=1))
            return
        where = {"track": self.track(part.point, part.frame), "mesh": self._meshes.place(part.mesh)}
        flat = part.mesh is unit("plane")
        self.items.append({"kind": "solid", "local": columns(part.local), "flat": flat, **where, **look})
        vertices = part.mesh.vertices[:: max(1, len(part.mesh.vertices) // 60)]
        local = vertices @ part.local[:3, :3].T + part.local[:3, 3]
        R = self.poses.orientation(part.frame, self.motion.times)[self._some]
        start = np.zeros((1, 1, 3)) if part.point is None else self.position(part.point)[self._some, None]
        self._bound(np.einsum("nij,kj->nki", R, local) + start, flat)

    def _bound(self, corners: Array, flat: bool = False) -> None:
        if (corners != corners[0]).any():
            self._corners.append(corners)
        elif not flat:
            self._ground.append(corners[0])

    # -- the rest -------------------------------------------------------------------------------------------

    def _add_contact_planes(self) -> None:
        """Planes of contacts whose normal does not turn, at the start of the motion."""
        model = self.motion.model
        for contact in model.resolved_contacts:
            pairs = contact.applied_at[0] if contact.gap is not None and contact.applied_at else ()
            for place, normal in pairs:
                if contact.level == 2 and isinstance(place, Point) and set(vector_frames(normal)) == {model.frame}:
                    self._try(f"the plane of contact {contact.name!r}", self._add_plane, contact, place, normal)

    def _add_plane(self, contact: Any, place: Any, normal: Any) -> None:
        n = self.poses.vector(normal, self.motion.times)
        length = np.linalg.norm(n[0])
        if (n != n[0]).any() or not length > 0.0:
            return
        gap = self.poses.expressions([contact.gap], self.motion.times[:1])[0, 0]
        track = self._add({"p": packed(self.position(place)[:1] - gap * n[:1] / length)})
        local = columns(placed((1.2 * self.size, 1.2 * self.size, 1.0), from_axis(n[0])))
        look = {"color": SURFACE, "opacity": 0.8, "name": contact.name, "group": "bodies"}
        plane = {"track": track, "mesh": self._meshes.place(unit("plane"))}
        self.items.append({"kind": "solid", "local": local, "flat": True, **plane, **look})

    def _add_frames(self) -> None:
        bodies = [(body.frame, body.masscenter) for body in self.motion.model.bodies if isinstance(body, RigidBody)]
        extra = [(frame, self._place(frame)[0]) for frame in self._wishes.frames]
        for frame, point in dict.fromkeys((*bodies, *extra)):
            self._try(f"frame {frame}", self._add_triad, frame, point)

    def _add_triad(self, frame: Any, point: Any) -> None:
        look = {"color": "#ffffff", "opacity": 1.0, "name": str(frame), "group": "frames"}
        where = {"track": self.track(point, frame), "mesh": self._meshes.place(unit("triad"))}
        self.items.append({"kind": "solid", "local": columns(placed([TRIAD * self.size] * 3)), **where, **look})

    def _add_traces(self) -> None:
        centers = [body.masscenter for body in self.motion.model.bodies]
        for point in dict.fromkeys(self._wishes.traces or centers):
            color = PALETTE[centers.index(point) % len(PALETTE)] if point in centers else "#444444"
            self._try(f"the trace of {point}", self._add_trace, point, self.color or color)

    def _add_trace(self, point: Any, color: str) -> None:
        if np.ptp(self.position(point), axis=0).max() > 1e-6 * self.size:
            trace = {"kind": "trace", "track": self.track(point), "color": color}
            self.items.append({**trace, "name": str(point), "group": "traces"})

    @cached_property
    def arrows(self) -> tuple[Arrow, ...]:
        """Forces and torques of the motion."""
        return tuple(arrows(self.poses)) if self._wishes.forces else ()

    def add_arrows(self, size: float, peaks: Mapping[str, float]) -> None:
        """Add forces and torques; ``peaks`` are those, by unit, that have the largest size."""
        for arrow in self.arrows:
            scaled = arrow.vector / peaks[arrow.unit]
            scaled /= np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 1.0)
            self._try(arrow.name, self._add_arrow, arrow, scaled * (LARGEST[arrow.unit] * size))

    def _add_arrow(self, arrow: Arrow, scaled: Array) -> None:
        where = {"foot": self.track(arrow.foot), "vector": self._add({"p": shortened(scaled)})}
        self._tips.append((self.position(arrow.foot) + scaled)[self._some])
        look = {"color": COLORS[arrow.kind], "type": arrow.kind, "name": arrow.name, "group": "forces"}
        self.items.append({"kind": "arrow" if arrow.unit == "N" else "turn", **where, **look})


def _keeps_its_distance(positions: Array) -> bool:
    """Whether a point keeps its distance from the origin."""
    distances = np.linalg.norm(positions, axis=1)
    return bool(np.ptp(distances) <= 1e-6 * distances.max())
