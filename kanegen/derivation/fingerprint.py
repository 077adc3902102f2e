"""A digest of everything the derivation reads from a model: equal digests, equal equations.

All fields of all records of the description are part of it, so that a new field cannot be forgotten. The user's
expressions are lowered, not derived: this takes milliseconds and finds the code that was generated before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import chain
from numbers import Number
from typing import Any

import sympy
from sympy.physics.mechanics import Particle, Point, ReferenceFrame, RigidBody
from sympy.physics.vector import Vector

from kanegen._version import __version__
from kanegen.derivation.geometry.system import System
from kanegen.errors import DerivationError
from kanegen.graph import Node
from kanegen.model.description import SystemDescription
from kanegen.model.geometry import Geometry
from kanegen.resources import template_folder

_NOT_GENERATING = frozenset({"__pycache__", "backends", "bench", "cli", "verification"})
"""Folders of the package that have no part in what is generated."""


def fingerprint(system: System, *options: str) -> str:
    """SHA-256 in hexadecimal over the lowered model, kanegen's version and ``options``."""
    rates = (str(node.index) for node in system.qdot)
    tokens = [__version__, generator_digest(), *options, *rates, *Reader(system).tokens(system.model)]
    digest = sha256("\x1f".join(tokens).encode())
    for node in system.graph.nodes:
        digest.update(_spelled(node).encode())
    return digest.hexdigest()


@cache
def generator_digest() -> str:
    """SHA-256 over kanegen's own source: code of another version is not used."""
    digest = sha256()
    for folder in (files("kanegen"), template_folder()):
        for path, content in _package_files(folder, ""):
            digest.update(f"{path} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


def _package_files(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    """Every source file below a package folder, in order of its path."""
    for item in sorted(folder.iterdir(), key=lambda entry: entry.name):
        path = f"{prefix}/{item.name}"
        if item.is_dir() and item.name not in _NOT_GENERATING:
            yield from _package_files(item, path)
        elif item.name.endswith((".py", ".toml", ".jinja", ".h")):
            yield path, item.read_bytes()


def _spelled(node: Node) -> str:
    payload = node.payload.content if node.op == "call" else repr(node.payload)
    return f"{node.op} {payload} {[a.index for a in node.args]};"


def _structure(expression: Any) -> Iterator[str]:
    """The expression in prefix notation: to print it would take ten times as long, since SymPy sorts the terms."""
    for part in sympy.preorder_traversal(expression):
        yield f"{type(part).__name__} {len(part.args)}" if part.args else str(part)


class Reader:
    """Tokens of the records of a description, frames and points numbered in the order in which they are met."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._numbers: dict[Any, int] = {}

    def tokens(self, value: Any) -> Iterator[str]:
        """Tokens of a value of a record: equal tokens, equal values."""
        if isinstance(value, Geometry):
            yield from self._geometry(value)
        elif isinstance(value, SystemDescription):
            yield from self._description(value)
        elif is_dataclass(value):
            yield type(value).__name__
            for item in fields(value):
                yield item.name
                yield from self.tokens(getattr(value, item.name))
        elif isinstance(value, Mapping | tuple):
            yield f"{len(value)} entries"
            entries = chain.from_iterable(value.items()) if isinstance(value, Mapping) else value
            for entry in entries:
                yield from self.tokens(entry)
        elif isinstance(value, sympy.Basic):
            # Its text, which follows from the structure, is part of messages that are stored with the code.
            yield from _structure(value)
            yield self._node(value)
        elif value is None or isinstance(value, str | Number):
            yield repr(value)
        elif isinstance(value, Vector):
            yield from self._vector(value)
        else:
            yield from self._object(value)

    def _description(self, description: SystemDescription) -> Iterator[str]:
        values = description.field_values()
        # Compiled code reads the values of parameters in a run.
        values |= {"parameters": tuple(description.parameters), "loads": description.effective_loads}
        for name, value in values.items():
            yield name
            yield from self.tokens(value)

    def _object(self, value: Any) -> Iterator[str]:
        """Tokens of a frame, a point or a body."""
        if not isinstance(value, ReferenceFrame | Point | Particle | RigidBody):
            raise TypeError(f"the digest of a model has no rule for a {type(value).__name__}")
        yield f"{type(value).__name__} {value.name} {self._numbers.setdefault(value, len(self._numbers))}"
        if isinstance(value, Particle | RigidBody):
            yield from self._object(value.masscenter)
            yield self._node(value.mass)
        if isinstance(value, RigidBody):
            dyadic, about = value.inertia
            yield from (*self._object(value.frame), *self._object(about))
            for coefficient, left, right in dyadic.args:
                yield from (self._node(coefficient), *self._vector(left), *self._vector(right))

    def _geometry(self, geometry: Geometry) -> Iterator[str]:
        """What the model reads of frames and points; SymPy's frames and points may hold more, which has no effect."""
        frame = self._system.model.frame
        for point, route in geometry.routes.items():
            yield from ("route", *self._object(point), *self.tokens(route))
        for point in geometry.velocities:
            yield from ("velocity", *self._object(point), *self._vector(point._vel_dict[frame]))
        for point, other in geometry.positions:
            yield from ("position", *self._object(point), *self._object(other))
            yield from self._vector(point._pos_dict[other])
        for parent, child in geometry.orientations:
            yield from ("orientation", *self._object(child), *self._object(parent))
            yield from map(self._node, child._dcm_dict[parent])
        for parent, child in geometry.rates:
            yield from ("angular velocity", *self._object(child), *self._object(parent))
            yield from self._vector(child._ang_vel_dict[parent])

    def _vector(self, vector: Any) -> Iterator[str]:
        for components, frame in vector.args if vector != 0 else ():
            yield from self._object(frame)
            yield from map(self._node, components)

    def _node(self, expression: Any) -> str:
        """The node of an expression; its text where the equations do not need its symbols."""
        try:
            return str(self._system.lower(sympy.sympify(expression)).index)
        except DerivationError:
            return str(expression)
