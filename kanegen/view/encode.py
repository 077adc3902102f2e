"""Arrays as text in JSON: little-endian numbers in base64."""

from __future__ import annotations

import base64

import numpy as np

from kanegen.arrays import Array
from kanegen.view.meshes import Triangles


def packed(values: Array, kind: str = "<f4") -> str:
    """An array as text, float32 by default."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


def shortened(values: Array) -> str:
    """The rows as text; a single row if all are equal."""
    return packed(values[:1] if (values == values[0]).all() else values)


def columns(matrix: Array) -> list[float]:
    """A matrix (4, 4) column by column, as WebGL reads it."""
    return [float(f"{x:.6g}") for x in matrix.T.ravel()]


class Meshes:
    """The meshes of a scene, each once."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        self._kept: list[Triangles] = []

    def place(self, mesh: Triangles) -> int:
        """The index of a mesh in the list of :meth:`data`."""
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
