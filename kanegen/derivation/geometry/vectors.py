"""Vector arithmetic on triples of nodes, components in one frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from kanegen.graph.nodes import Graph, Node

Triple: TypeAlias = tuple[Node, Node, Node]
Matrix: TypeAlias = tuple[tuple[Node, ...], ...]


def null(graph: Graph) -> Triple:
    return (graph.zero, graph.zero, graph.zero)


def is_null(a: Triple) -> bool:
    return a[0].is_zero and a[1].is_zero and a[2].is_zero


def plus(a: Triple, b: Triple) -> Triple:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def minus(a: Triple, b: Triple) -> Triple:
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def scaled(factor: Node, a: Triple) -> Triple:
    return (factor * a[0], factor * a[1], factor * a[2])


def dot(a: Sequence[Node], b: Sequence[Node]) -> Node:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Triple, b: Triple) -> Triple:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def mapped(function: Callable[[Node], Node], a: Triple) -> Triple:
    return (function(a[0]), function(a[1]), function(a[2]))


def times(matrix: Matrix, a: Triple) -> Triple:
    """``matrix @ a`` for a 3 x 3 matrix."""
    return (dot(matrix[0], a), dot(matrix[1], a), dot(matrix[2], a))
