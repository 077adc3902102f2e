"""Reads URDF files (http://wiki.ros.org/urdf/XML): the XML only; files that it names are never opened."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from kanegen.errors import FileError, ModelError, brief
from kanegen.robots.records import KINDS, WITH_AXIS, Joint, Limits, Link, Mimic, Robot
from kanegen.robots.rigid import MASSLESS, NOWHERE, Inertial, Place, roll_pitch_yaw

ASIDE: Final = frozenset(
    {"visual", "collision", "material", "gazebo"}
    | {"transmission", "ros2_control", "sensor", "safety_controller", "calibration"}
)
"""Elements for pictures and for control software, which have no influence on the equations and are not mentioned."""

KNOWN: Final = {
    "robot": ASIDE | {"link", "joint"},
    "link": ASIDE | {"inertial"},
    "joint": ASIDE | {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic"},
}
ZERO: Final = (0.0, 0.0, 0.0)
MOMENTS: Final = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def read_urdf(path: Path) -> Robot:
    """The links and joints of a file.

    Raises `FileError` for a file that cannot be read, and `ModelError` with all problems of its contents.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read the URDF file {path}: {error.strerror or error}") from None
    return _Reader(path.name, text).robot()


def _parsed(text: bytes, source: str) -> tuple[Any, dict[Any, int]]:
    """The root element, and the line of each element."""
    builder, parser = ElementTree.TreeBuilder(), expat.ParserCreate()
    lines: dict[Any, int] = {}

    def start(tag: str, attributes: dict[str, str]) -> None:
        lines[builder.start(tag, attributes)] = parser.CurrentLineNumber

    parser.StartElementHandler = start
    parser.EndElementHandler = builder.end
    try:
        parser.Parse(text, True)
        return builder.close(), lines
    except expat.ExpatError as error:
        raise ModelError(f"{source}, line {error.lineno}: this is no well-formed XML: {error}") from None


class _Reader:
    """Reads the elements of one file, and collects its problems."""

    def __init__(self, source: str, text: bytes) -> None:
        self._source = source
        self._root, self._lines = _parsed(text, source)
        self._problems: list[str] = []

    def robot(self) -> Robot:
        root = self._root
        if root.tag != "robot":
            raise ModelError(f"{self._source}: the outermost element is <{root.tag}>; expected <robot> of a URDF file")
        links = self._by_name("link", self._link)
        joints = self._by_name("joint", self._joint)
        if not links and not self._problems:
            self._problem(root, f"there is no <link>{self._xacro_advice()}")
        if self._problems:
            raise ModelError(self._problems)
        return Robot(root.get("name") or Path(self._source).stem, self._source, links, joints, self._ignored())

    def _xacro_advice(self) -> str:
        used = any("xacro" in element.tag for element in self._root.iter())
        return "; this is a xacro file: convert it by the program xacro first" if used else ""

    def _ignored(self) -> Counter[str]:
        """The elements with meanings beyond pictures that are not read, for which the equations have no place."""
        parents = (self._root, *self._root.findall("link"), *self._root.findall("joint"))
        return Counter(child.tag for parent in parents for child in parent if child.tag not in KNOWN[parent.tag])

    def _problem(self, element: Any, text: str) -> None:
        self._problems.append(f"{self._source}, line {self._lines[element]}: {text}")

    def _by_name(self, tag: str, read: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for element in self._root.findall(tag):
            name = element.get("name")
            if not name:
                self._problem(element, f'<{tag}> has no name: expected <{tag} name="...">')
            elif name in found:
                self._problem(element, f"a second {tag} has the name {name!r} (first in line {found[name].line})")
            else:
                found[name] = read(element, name)
        return found

    def _link(self, element: Any, name: str) -> Link:
        inertials = element.findall("inertial")
        if len(inertials) > 1:
            self._problem(inertials[1], f"link {name!r} has {len(inertials)} <inertial>: expected at most one")
        inertial = self._inertial(inertials[0], f"link {name!r}") if inertials else MASSLESS
        return Link(name, inertial, self._lines[element])

    def _inertial(self, element: Any, of: str) -> Inertial:
        mass, inertia = element.find("mass"), element.find("inertia")
        for child, what in ((mass, '<mass value="...">'), (inertia, '<inertia ixx="..." ...>')):
            if child is None:
                self._problem(element, f"<inertial> of {of} has no {what}")
        kilograms = 0.0 if mass is None else self._number(mass, "value", None, f"the mass of {of}")
        if kilograms < 0.0:
            self._problem(element, f"the mass of {of} is {kilograms:g} kg: expected a number >= 0")
        xx, xy, xz, yy, yz, zz = (
            0.0 if inertia is None else self._number(inertia, key, None, f"{key} of {of}") for key in MOMENTS
        )
        matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        place = self._origin(element, f"<inertial> of {of}")
        return Inertial(kilograms, np.zeros(3), matrix).seen_from(place)

    def _joint(self, element: Any, name: str) -> Joint:
        of = f"joint {name!r}"
        kind = element.get("type", "")
        if kind not in KINDS:
            self._problem(element, f"{of} has the type {brief(kind)}: expected one of {', '.join(KINDS)}")
        parent, child = (self._link_name(element, side, of) for side in ("parent", "child"))
        dynamics = element.find("dynamics")
        damping, friction = (
            0.0 if dynamics is None else self._number(dynamics, key, 0.0, f"{key} of {of}")
            for key in ("damping", "friction")
        )
        for what, value in (("damping", damping), ("friction", friction)):
            if value < 0.0:
                self._problem(element, f"the {what} of {of} is {value:g}: expected a number >= 0")
        return Joint(
            name=name,
            kind=kind,
            parent=parent,
            child=child,
            place=self._origin(element, of),
            axis=self._axis(element, of) if kind in WITH_AXIS else np.eye(3)[0],
            damping=damping,
            friction=friction,
            limits=self._limits(element, kind, of),
            mimic=self._mimic(element, of),
            line=self._lines[element],
        )

    def _link_name(self, element: Any, side: str, of: str) -> str:
        child = element.find(side)
        name = None if child is None else child.get("link")
        if not name:
            self._problem(element, f'{of} names no {side}: expected <{side} link="...">')
        return name or ""

    def _origin(self, element: Any, of: str) -> Place:
        origin = element.find("origin")
        if origin is None:
            return NOWHERE
        xyz, rpy = (
            self._triple(origin, key, (0.0, 0.0, 0.0), f"{key} of the origin of {of}") for key in ("xyz", "rpy")
        )
        return Place(np.array(xyz), roll_pitch_yaw(*rpy))

    def _axis(self, element: Any, of: str) -> Any:
        axis = element.find("axis")
        given = (1.0, 0.0, 0.0) if axis is None else self._triple(axis, "xyz", (1.0, 0.0, 0.0), f"the axis of {of}")
        length = math.sqrt(sum(x * x for x in given))
        if length == 0.0:
            self._problem(axis, f"the axis of {of} is zero: expected a direction")
            return np.eye(3)[0]
        return np.array(given) / length

    def _limits(self, element: Any, kind: str, of: str) -> Limits:
        limit = element.find("limit")
        if limit is None:
            return Limits()
        lower, upper, velocity, effort = (
            self._number(limit, key, math.nan, f"{key} of the limit of {of}")
            for key in ("lower", "upper", "velocity", "effort")
        )
        if kind == "continuous" or (math.isnan(lower) and math.isnan(upper)):
            lower = upper = math.nan
        else:  # one of them is given: the other one is zero, as the format says
            lower, upper = (0.0 if math.isnan(x) else x for x in (lower, upper))
        return Limits(*(None if math.isnan(x) else x for x in (lower, upper, velocity, effort)))

    def _mimic(self, element: Any, of: str) -> Mimic | None:
        mimic = element.find("mimic")
        if mimic is None:
            return None
        if not mimic.get("joint"):
            self._problem(mimic, f'{of} mimics no joint: expected <mimic joint="...">')
        factor = self._number(mimic, "multiplier", 1.0, f"the multiplier of {of}")
        offset = self._number(mimic, "offset", 0.0, f"the offset of {of}")
        return Mimic(mimic.get("joint") or "", factor, offset)

    def _number(self, element: Any, key: str, default: float | None, what: str) -> float:
        """An attribute; ``default`` if it is missing, which is a problem where that is None."""
        text = element.get(key)
        if text is None:
            if default is None:
                self._problem(element, f"{what} is missing: expected <{element.tag} {key}=...> with a number")
            return default or 0.0
        return self._finite(element, text, what)

    def _finite(self, element: Any, text: str, what: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return number
        self._problem(element, f"{what} is {brief(text)}: expected a finite number")
        return 0.0

    def _triple(
        self, element: Any, key: str, default: tuple[float, float, float], what: str
    ) -> tuple[float, float, float]:
        text = element.get(key)
        if text is None:
            return default
        parts = text.split()
        if len(parts) != 3:
            self._problem(element, f"{what} is {brief(text)}: expected three numbers")
            return default
        x, y, z = (self._finite(element, part, what) for part in parts)
        return x, y, z
