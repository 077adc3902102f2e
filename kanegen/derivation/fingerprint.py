"""A digest of everything the derivation reads from a model: equal digests, equal equations.

The user's expressions are lowered, not derived: hashing the graph takes a few milliseconds, and leads past the
derivation to code that was generated before.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import chain
from typing import Any

from sympy.physics.vector import ReferenceFrame

from kanegen._version import __version__
from kanegen.derivation.geometry.system import System
from kanegen.derivation.inertia.bodies import lower_bodies
from kanegen.graph import Node
from kanegen.model.contact.records import contacts_of
from kanegen.model.control.control_constraints import ControlConstraints
from kanegen.model.control.servo import Servo
from kanegen.model.expressions import symbol_name
from kanegen.model.geometry.routes import effective_loads
from kanegen.model.normalize import CONSTRAINTS
from kanegen.model.speeds import speed_changes
from kanegen.resources import template_folder

_NOT_GENERATING = frozenset({"__pycache__", "backends", "bench", "cli", "verification"})
"""Folders of the package that have no part in what is generated."""


def fingerprint(system: System, *options: str) -> str:
    """SHA-256 in hexadecimal over the lowered model, kanegen's version and ``options``."""
    reader = _Reader(system)
    tokens = [__version__, generator_digest(), *options, *reader.tokens()]
    digest = sha256("\x1f".join(tokens).encode())
    for node in system.graph.nodes:
        digest.update(_spelled(node).encode())
    return digest.hexdigest()


@cache
def generator_digest() -> str:
    """SHA-256 over kanegen's own source: what another state of the generator wrote is not taken for this one's."""
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
        if item.is_dir():
            if item.name not in _NOT_GENERATING:
                yield from _package_files(item, path)
        elif item.name.endswith((".py", ".jinja", ".h")):
            yield path, item.read_bytes()


def _spelled(node: Node) -> str:
    if node.op == "call":
        return f"call {node.payload.content} {[a.index for a in node.args]};"
    return f"{node.op} {node.payload!r} {[a.index for a in node.args]};"


class _Reader:
    """Walks a model, numbering frames and points in the order in which it meets them."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._frames: dict[Any, int] = {}
        self._points: dict[Any, int] = {}

    def tokens(self) -> Iterator[str]:
        model = self._system.model
        yield model.name
        for names in (model.coordinates, model.speeds, model.auxiliary_speeds, model.parameters):
            yield from ("names", *map(symbol_name, names))
        yield from ("inputs", *(item.name for item in model.inputs), *(str(item.default) for item in model.inputs))
        yield from self._scalars("rates", self._system.input_rates)
        yield from self._scalars("q'", (*self._system.qdot,))
        yield from self._scalars("former speeds", self._system.former.values())
        yield from (str(change.orthogonal) for change in speed_changes(model))
        yield from ("gravity", *self._vector(model.gravity or 0))
        for body in lower_bodies(self._system):
            yield from ("body", str(self._point(body.point)), str(self._frame(body.frame)))
            yield from self._scalars("mass", (body.mass, *(body.inertia or ())))
            yield str(self._frame(body.inertia_frame))
        for place, vector in effective_loads(model):
            place_token = self._frame(place) if isinstance(place, ReferenceFrame) else self._point(place)
            yield from (type(place).__name__, str(place_token), *self._vector(vector))
        yield from self._equations()
        yield from self._contacts()
        yield from self._reactions()
        yield from self._geometry()

    def _equations(self) -> Iterator[str]:
        model, lower = self._system.model, self._system.lower
        for kind in CONSTRAINTS:
            expressions = getattr(model, kind)
            # The text is part of messages that are stored with the code.
            yield from self._scalars(kind, [lower(expression) for expression in expressions])
            yield from map(str, expressions)
        yield from ("Euler parameters", *(symbol_name(e) for group in model.euler_parameters for e in group))
        yield from (
            "dependent",
            *map(symbol_name, model.dependent_speeds or ()),
            str(model.dependent_speeds is None),
        )
        if model.potential_energy is not None:
            yield from self._scalars("potential", [lower(model.potential_energy)])
        if isinstance(model.control, Servo):
            yield from self._servo(model.control)
        elif model.control is not None:
            yield from self._control_constraints(model.control)
        for name, output in model.outputs.items():
            yield from self._scalars(f"output {name} {output.shape}", [lower(x) for x in output.expressions])

    def _control_constraints(self, record: ControlConstraints) -> Iterator[str]:
        model, lower = self._system.model, self._system.lower
        yield from ("controls", *(item.name for item in record.inputs(model.inputs)))
        yield from ("accelerations", *(str(item.acceleration) for item in record.inputs(model.inputs)))
        for phi, theta in zip(record.constraints, record.theta, strict=True):
            yield str(phi)
            yield from self._scalars("control constraint", [lower(x) for x in (phi, *theta)])
        yield from self._scalars("y", [lower(x) for x in record.y])

    def _servo(self, servo: Servo) -> Iterator[str]:
        lower = self._system.lower
        yield from ("servo", servo.resolution, str(servo.limits), *map(str, servo.slots(self._system.model.inputs)))
        yield from map(str, servo.constraints)
        yield from self._scalars("servo", [lower(x) for x in (*servo.constraints, *chain.from_iterable(servo.theta))])
        for title, rows in (("weight", servo.weight), ("y", servo.y and (servo.y,)), ("damping", ((servo.damping,),))):
            yield from self._scalars(f"servo {title}", [None if x is None else lower(x) for x in chain(*(rows or ()))])

    def _contacts(self) -> Iterator[str]:
        model, lower = self._system.model, self._system.lower
        for contact in contacts_of(model):
            # The texts are part of messages and tables that are stored with the code.
            yield from (contact.name, contact.kind, type(contact.law).__name__, str(contact.level), str(contact.closed))
            yield from map(str, (contact.gap, *contact.slip))
            parts = [x for x in (contact.gap, contact.load, *contact.slip) if x is not None]
            yield from self._scalars("contact", map(lower, parts))
            yield from (value.name for value in contact.values())
            yield from self._scalars("law", [lower(value.expression) for value in contact.values()])
            for pairs in contact.applied_at:
                yield "applied_at"
                for place, vector in pairs:
                    yield from (self._place(place), *self._vector(vector))
        for event in model.events:
            yield from (event.name, str(event.direction), str(event.terminal), str(event.impulse), str(event.guard))
            yield from ("impose", *event.impose, "remove", *event.remove)
            yield from self._scalars("guard", [lower(event.guard)])
        for name, pairs in model.impulses.items():
            yield f"impulse {name}"
            for place, vector in pairs:
                yield from (self._place(place), *self._vector(vector))

    def _reactions(self) -> Iterator[str]:
        model = self._system.model
        for name, reaction in model.reactions.items():
            yield from ("reaction", name, *map(str, reaction.members(model.bodies)))
            yield from (str(self._point(reaction.point)), str(self._frame(reaction.frame)))
            yield str(reaction.loads is None)
            yield from map(self._place, reaction.loads or ())
            for row, place, vector in reaction.all_multiplier_loads:
                yield from (str(row), self._place(place), *self._vector(vector))

    def _place(self, place: Any) -> str:
        number = self._frame(place) if isinstance(place, ReferenceFrame) else self._point(place)
        return f"{type(place).__name__} {number}"

    def _geometry(self) -> Iterator[str]:
        """What the model reads of frames and points."""
        model, geometry = self._system.model, self._system.model.geometry
        for point in geometry.velocities:
            yield from (f"velocity of {self._point(point)}", *self._vector(point._vel_dict[model.frame]))
        for point, other in geometry.positions:
            yield f"position of {self._point(point)} from {self._point(other)}"
            yield from self._vector(point._pos_dict[other])
        for parent, child in geometry.orientations:
            title = f"frame {self._frame(child)} in {self._frame(parent)}"
            yield from self._scalars(title, [self._system.lower(x) for x in child._dcm_dict[parent]])
        for parent, child in geometry.rates:
            yield f"angular velocity of {self._frame(child)} in {self._frame(parent)}"
            yield from self._vector(child._ang_vel_dict[parent])

    def _frame(self, frame: Any) -> int:
        return -1 if frame is None else self._frames.setdefault(frame, len(self._frames))

    def _point(self, point: Any) -> int:
        return self._points.setdefault(point, len(self._points))

    def _vector(self, vector: Any) -> Iterator[str]:
        for frame, components in self._system.frames.lower_vector(vector).items():
            yield from self._scalars(f"frame {self._frame(frame)}", components)

    @staticmethod
    def _scalars(title: str, nodes: Any) -> Iterator[str]:
        yield title
        for node in nodes:
            yield "-" if node is None else str(node.index)
