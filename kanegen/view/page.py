"""Pages of HTML: the scene, the viewer from its Python package, and the script that plays the motions.

The viewer is k3d (the optional dependency ``kanegen[view]``). Its JavaScript is taken from the installed package.
"""

from __future__ import annotations

import base64
import json
import zlib
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from kanegen._version import __version__
from kanegen.display import escape
from kanegen.errors import SolveError
from kanegen.resources import template_folder


def page(scene: dict[str, Any]) -> str:
    """The text of a self-contained page that draws a scene. Raises `SolveError` if the viewer is missing."""
    from jinja2 import Environment, StrictUndefined

    code = viewer()
    folder = template_folder() / "animation"
    template = Environment(undefined=StrictUndefined, autoescape=False).from_string(
        folder.joinpath("animation.html.jinja").read_text(encoding="utf-8")
    )
    return template.render(
        title=escape(scene["title"]),
        version=__version__,
        viewer=code,
        plot=_plot(scene["box"]),
        scene=_compressed(json.dumps(scene, separators=(",", ":"), allow_nan=False)),
        script=folder.joinpath("animation.js").read_text(encoding="utf-8"),
    )


@cache
def viewer() -> str:
    """The compressed JavaScript of the viewer as text."""
    try:
        import k3d  # noqa: F401
    except ImportError as error:
        raise SolveError("an animation needs k3d: install it by pip install 'kanegen[view]'") from error
    return _compressed(files("k3d").joinpath("static", "standalone.js").read_text(encoding="utf-8"))


def _plot(box: list[list[float]]) -> str:
    """The settings with which the viewer starts, as text; it derives the depth of view from the box of its grid."""
    import k3d

    low, high = np.array(box)
    middle, reach = (low + high) / 2, 1.5 * float(np.linalg.norm(high - low)) or 1.0
    plot = k3d.plot(
        antialias=2,
        camera_auto_fit=False,
        grid_auto_fit=False,
        grid_visible=False,
        grid=tuple(map(float, (*(middle - reach), *(middle + reach)))),
        menu_visibility=False,
        axes_helper=0.0,
        camera_mode="trackball",
        camera_fov=40.0,
    )
    return base64.b64encode(plot.get_binary_snapshot()).decode("ascii")


def _compressed(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode("utf-8"), 9)).decode("ascii")
