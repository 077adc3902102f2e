"""A digest of everything the derivation reads from a model: models with equal digests have equal equations.

The digest covers all fields of all records of the description, so that new fields are included automatically. It needs
no derivation, only lowered expressions, and therefore finds code generated earlier within milliseconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import sha256
from itertools import chain
from numbers import Number
from pathlib import Path
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

_GENERATING = ("graph", "model", "derivation", "program", "codegen")
"""Folders of the package that decide on the generated code, besides its files; the other layers come later."""

_TEMPLATES = ("headers", "kernel", "module", "runtime")
"""Folders of the templates that decide on it."""


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
    """SHA-256 over kanegen's own source, so that code made by another version is not used.

    The Python module of models (module.pyx and what it includes) is part of it.
    """
    digest = sha256()
    package, templates = str(Path(__file__).parents[1]), str(template_folder())
    for root, folders in ((package, _GENERATING), (templates, _TEMPLATES)):
        for folder in (root, *(os.path.join(root, name) for name in folders)):
            for path, content in _source_files(folder, recursive=folder != root):
                digest.update(f"{path[len(root) :]} {len(content)}\n".encode())
                digest.update(content)
    return digest.hexdigest()


def _source_files(folder: str, recursive: bool) -> Iterator[tuple[str, bytes]]:
    """Every source file in a folder, in order of its path. (With pathlib it would take twice as long.)"""
    for item in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if item.name.endswith((".py", ".toml", ".jinja", ".h", ".c", ".pyx", ".pxi")):
            with open(item.path, "rb", buffering=0) as file:
                yield item.path, file.read()
        elif recursive and item.name != "__pycache__" and item.is_dir():
            yield from _source_files(item.path, recursive)


def _spelled(node: Node) -> str:
    payload = node.payload.content if node.op == "call" else repr(node.payload)
    return f"{node.op} {payload} {[a.index for a in node.args]};"


def _structure(expression: Any, seen: dict[Any, int]) -> Iterator[str]:
    """The expression in prefix notation, with the number of a part in ``seen`` where it occurs again.

    Printing takes ten times as long, because SymPy's printer sorts the terms.
    """
    stack = [expression]
    while stack:
        part = stack.pop()
        if not part.args:
            yield str(part)
        elif part in seen:
            yield f"again {seen[part]}"
        else:
            seen[part] = len(seen)
            yield f"{type(part).__name__} {len(part.args)}"
            stack.extend(reversed(part.args))


class Reader:
    """Converts the records of a description to tokens; numbers frames and points in the order of their occurrence."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._numbers: dict[Any, int] = {}
        self._seen: dict[Any, int] = {}

    def tokens(self, value: Any) -> Iterator[str]:
        """Tokens of a value of a record; equal tokens mean equal values."""
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
            # Messages stored with the code contain the text of the expression, which its structure determines.
            yield from _structure(value, self._seen)
            yield self._node(value)
        elif value is None or isinstance(value, str | Number):
            yield repr(value)
        elif isinstance(value, Vector):
            yield from self._vector(value)
        else:
            yield from self._object(value)

    def _description(self, description: SystemDescription) -> Iterator[str]:
        values = description.field_values()
        # The values of parameters and the start are left out, since compiled code receives them at run time; so are
        # shapes and units, which only pictures and tables use.
        values |= {"parameters": tuple(description.parameters), "loads": description.effective_loads}
        del values["initial"], values["shapes"], values["units"]
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
        """Tokens of the data of frames and points that the model reads; other data in SymPy's objects has no effect."""
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
        """The index of an expression's node, or its text if it contains symbols that the equations do not need."""
        try:
            return str(self._system.lower(sympy.sympify(expression)).index)
        except DerivationError:
            return str(expression)
