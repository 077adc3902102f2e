"""Animations of one or more motions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from sympy.physics.mechanics import Particle, Point, ReferenceFrame, RigidBody

from kanegen.arrays import Array
from kanegen.display import escape
from kanegen.errors import SolveError, brief
from kanegen.view.motion import Motion

INLINE_HEIGHT: Final = 520
"""Height of an animation in a notebook, pixels."""


@dataclass(frozen=True, eq=False)
class Animation:
    """A self-contained page of HTML that plays motions in 3-D without a network connection.

    A notebook shows it inline. ``html`` is the text of the page, ``notices`` are the sentences that it shows about
    what was assumed or left out.
    """

    title: str
    html: str = field(repr=False)
    notices: tuple[str, ...] = ()

    def save(self, path: Any) -> Path:
        """Write the page to the file ``path``, which is replaced if it exists; returns the path.

        Raises `SolveError` if ``path`` is no path or cannot be written.
        """
        target = require_writable(path)
        try:
            target.write_text(self.html, encoding="utf-8")
        except OSError as error:
            raise SolveError(f"the page {target} cannot be written: {error.strerror or error}") from error
        return target

    def _repr_html_(self) -> str:
        text = escape(self.html)
        return (
            f'<iframe srcdoc="{text}" title="{escape(self.title)}" '
            f'style="width: 100%; height: {INLINE_HEIGHT}px; border: 1px solid #d5d8dd"></iframe>'
        )


def require_writable(path: Any, what: str = "the page") -> Path:
    """The path of a file that can be written. Raises `SolveError` that says why it cannot, before any work is done.

    ``what`` names the file in the message.
    """
    try:
        target = Path(path)
    except TypeError as error:
        raise SolveError(f"path is {brief(path)}; expected the path of a file") from error
    named = f"{what} {target}"
    if target.is_dir():
        raise SolveError(f"{named} cannot be written: it is a folder; give the name of a file")
    if not target.parent.is_dir():
        raise SolveError(f"{named} cannot be written: there is no folder {target.parent}")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise SolveError(f"{named} cannot be written: no permission; choose another folder")
    return target


def require_viewer() -> None:
    """Raise `SolveError` that says what to install if the viewer is missing."""
    from kanegen.view.page import viewer

    viewer()


def animation(
    motions: Sequence[Motion], title: str, frames: Any, traces: Any, forces: Any, offsets: Any, notices: Sequence[str]
) -> Animation:
    """The animation of these motions; the arguments are those of :func:`kanegen.animate`."""
    # What draws is imported here, so that kanegen is imported without it.
    from kanegen.view.page import page
    from kanegen.view.scene import scene
    from kanegen.view.stage import Wishes

    wishes = Wishes(
        title,
        *_listed(frames, "frames", ReferenceFrame, "a list of reference frames"),
        *_listed(traces, "traces", Point | Particle | RigidBody, "a list of points and bodies"),
        _flag(forces),
        _offsets(offsets, len(motions)),
    )
    content = scene(motions, wishes)
    content["notices"] = [*notices, *content["notices"]]
    return Animation(title, page(content), tuple(content["notices"]))


def _listed(given: Any, what: str, kind: Any, wanted: str) -> tuple[tuple[Any, ...], bool]:
    """The objects of a list, and whether they are visible at first."""
    if isinstance(given, bool):
        return (), given
    try:
        items = tuple(given)
    except TypeError:
        items = (given,)
    wrong = [item for item in items if not isinstance(item, kind)]
    if wrong or isinstance(given, str):
        raise SolveError(f"{what} is {brief(given)}; expected True, False or {wanted}")
    centers = tuple(item.masscenter if isinstance(item, Particle | RigidBody) else item for item in items)
    return centers, bool(items)


def _flag(given: Any) -> bool:
    if not isinstance(given, bool):
        raise SolveError(f"forces is {brief(given)}; expected True or False")
    return given


def _offsets(given: Any, n: int) -> Array:
    if given is None:
        return np.zeros((n, 3))
    try:
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.array(np.nan)
    if array.shape != (n, 3) or not np.isfinite(array).all():
        raise SolveError(f"offsets is {brief(given)}; expected three numbers (m) for each of the {n} motions")
    return array
