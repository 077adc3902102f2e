"""Walking the trees of frames and points that SymPy keeps, breadth first from the inertial frame.

The rules, shared with the derivation:

* A frame is oriented, and moves, by the shortest chain of neighbours that leads to it from the inertial
frame.
* A point's velocity in the inertial frame is the one the user set; else it follows from the nearest point
(along
  positions) that has one, by differentiating the positions on the way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any


def breadth_first(root: Any, neighbours: Callable[[Any], Iterable[Any]]) -> dict[Any, Any]:
    """Parent of every node that can be reached from ``root`` (whose parent is None), nearest first."""
    parents: dict[Any, Any] = {root: None}
    queue = deque([root])
    while queue:
        node = queue.popleft()
        for neighbour in neighbours(node):
            if neighbour not in parents:
                parents[neighbour] = node
                queue.append(neighbour)
    return parents


def orientation_tree(frame: Any) -> dict[Any, Any]:
    """Parents of the frames that are oriented relative to ``frame``."""
    return breadth_first(frame, lambda node: node._dcm_dict)


def motion_tree(frame: Any) -> dict[Any, Any]:
    """Parents of the frames whose angular velocity relative to ``frame`` is known."""
    return breadth_first(frame, lambda node: node._ang_vel_dict)


def path(parents: dict[Any, Any], node: Any) -> list[tuple[Any, Any]]:
    """``(parent, child)`` pairs from the root of ``parents`` to ``node``."""
    pairs = []
    while parents[node] is not None:
        pairs.append((parents[node], node))
        node = parents[node]
    return pairs[::-1]


def velocity_source(point: Any, frame: Any) -> list[Any] | None:
    """Points from ``point`` to the nearest one with a velocity set in ``frame``, both included, or None."""
    parents: dict[Any, Any] = {point: None}
    queue = deque([point])
    while queue:
        node = queue.popleft()
        if frame in node._vel_dict:
            return [point, *(child for _, child in path(parents, node))]
        for neighbour in node._pos_dict:
            if neighbour not in parents:
                parents[neighbour] = node
                queue.append(neighbour)
    return None


def position_path(start: Any, end: Any) -> list[Any] | None:
    """Points from ``start`` to ``end`` along known positions; None when there is no such chain."""
    parents = breadth_first(start, lambda node: node._pos_dict)
    return [start, *(child for _, child in path(parents, end))] if end in parents else None
