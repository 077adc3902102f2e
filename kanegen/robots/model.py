"""``kg.from_urdf``: the model of a robot from a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from kanegen.errors import ModelError, brief, warn_user
from kanegen.model import Input, Model
from kanegen.model.normalize import is_sequence
from kanegen.model.records import FrozenMapping
from kanegen.robots.assembly import Assembly, Attached, Choices, Motion
from kanegen.robots.records import SINGLE, Joint, Robot
from kanegen.robots.rigid import impossible
from kanegen.robots.structure import Structure, require_mass, structure
from kanegen.robots.urdf import read_urdf

INERTIAS: Final = ("warn", "error")


class RobotModel(Model):
    """A :class:`kanegen.Model` that was read from a file, with its links and joints by their names in the file.

    Only :func:`kanegen.from_urdf` makes it. Everything of a :class:`kanegen.Model` is there: ``bodies``, ``loads``,
    ``coordinates``. ``with_speeds`` and the like return a plain :class:`kanegen.Model` of the same SymPy objects.

    Attributes
    ----------
    joints
        The record of each joint by name: ``kind``, ``limits``, ``damping`` and what else the file says of it.
    """

    joints: Mapping[str, Joint]
    _assembly: Assembly
    _arguments: Mapping[str, Any]

    def __init__(self, assembly: Assembly, joints: Mapping[str, Joint], arguments: Mapping[str, Any]) -> None:
        own = {"joints": joints, "_assembly": assembly, "_arguments": arguments}
        for name, value in own.items():
            object.__setattr__(self, name, value)  # the record is frozen
        super().__init__(**arguments)

    @property
    def ground(self) -> Attached:
        """The inertial ``frame``, and the ``point`` at rest at its origin."""
        return self._assembly.ground

    def link(self, name: str) -> Attached:
        """The ``frame`` of a link and the ``point`` at its origin; raises ``ModelError`` for unknown names."""
        for group in self._assembly.tree.groups.values():
            if name in group.places:
                return self._assembly.link(group.name, name)
        links = [link for group in self._assembly.tree.groups.values() for link in group.places]
        raise ModelError(f"there is no link {brief(name)}: expected one of {', '.join(links)}")

    def motion(self, name: str) -> Motion:
        """The symbols of a joint; ``"base"`` is the free joint of a floating base.

        ``coordinates`` and ``speeds`` are empty for a joint that follows another one. ``position`` and ``rate`` are
        expressions, and ``effort`` is the input (N m or N), of a joint with one coordinate; else None. Raises
        ``ModelError`` for joints that do not exist or do not move.
        """
        motions = self._assembly.motions
        if name not in motions:
            raise ModelError(f"there is no joint {brief(name)} that moves: expected one of {', '.join(motions)}")
        return motions[name]

    def extended(self, **more: Any) -> RobotModel:
        """The same robot with more of what a :class:`kanegen.Model` has.

        Parameters
        ----------
        more
            Arguments of :class:`kanegen.Model`. Sequences, such as ``loads=``, ``contacts=`` or
            ``holonomic_constraints=``, follow those of the robot; mappings, such as ``parameters=`` or ``outputs=``,
            are added to them; all other arguments replace them. An input of the robot, such as the effort of a joint,
            is replaced by a :class:`kanegen.Input` with its symbol, for example one with a feedback law.

        Raises
        ------
        ModelError
            With every problem of the model.
        """
        arguments = dict(self._arguments)
        for key, value in more.items():
            old = arguments.get(key)
            if key == "inputs" and is_sequence(value):
                arguments[key] = _with_inputs(arguments["inputs"], value)
            elif isinstance(old, Mapping) and isinstance(value, Mapping):
                arguments[key] = {**old, **value}
            elif isinstance(old, list) and is_sequence(value):
                arguments[key] = old + list(value)
            else:
                arguments[key] = value
        return RobotModel(self._assembly, self.joints, arguments)

    def _warnings(self) -> Iterator[str]:
        return iter(())  # inertias were compared link by link, and links have different names


def _with_inputs(own: Iterable[Input], given: Iterable[Any]) -> list[Any]:
    """The inputs of a robot; those with the symbol of a given one are replaced by it, others follow."""
    new = {getattr(item, "symbol", item): item for item in given}
    kept = [new.pop(item.symbol, item) for item in own]
    return kept + list(new.values())


def from_urdf(
    path: str | os.PathLike[str],
    *,
    floating_base: bool = False,
    gravity: Any = (0.0, 0.0, -9.81),
    inertias: str = "warn",
    limits: bool = False,
    friction: bool = False,
    hold: Mapping[str, float] | None = None,
    parameters: bool = True,
    name: str | None = None,
) -> RobotModel:
    """The model of a robot in a URDF file.

    Each joint that moves has a coordinate ``q_JOINT``, its rate ``u_JOINT`` as speed, and its effort ``tau_JOINT``
    (N m or N) as input, zero by default, in the order of the file. Links without motion relative to each other are one
    body, named after the first. Mesh files are never opened and need not exist.

    Parameters
    ----------
    path
        The file.
    floating_base
        Whether the root link moves freely; else it is fixed to the world. Its position ``q_base_x``, ``q_base_y``,
        ``q_base_z`` (m) and Euler parameters ``q_base_e0`` (scalar) to ``q_base_e3`` are the first coordinates. Speeds
        are the rates of the position, in the axes of the world, and the angular velocity ``u_base_wx``, ``u_base_wy``,
        ``u_base_wz`` in the axes of the link.
    gravity
        Gravitational acceleration (3,) in the axes of the world, m/s**2; None for none.
    inertias
        What to do with links whose inertia no body can have: ``"warn"``, or ``"error"``.
    limits
        Whether the limits of positions are contacts, without rebound. They are part of ``model.joints`` in any case.
    friction
        Whether the Coulomb friction of joints is part of the model, with sticking; else one warning names the joints.
    hold
        Positions (rad or m) of joints that are held there, by name.
    parameters
        Whether masses, inertias, lengths, damping and gravity are parameters, or numbers in the equations.
    name
        Name of the model; None: that of the robot.

    Returns
    -------
    RobotModel
        A :class:`kanegen.Model`, with ``joints``, ``link``, ``motion`` and ``extended``.

    Raises
    ------
    FileError
        If the file cannot be read.
    ModelError
        With every problem of the file, and where it is; for arguments that are wrong; for joints that move no mass.

    Warns
    -----
    ModelWarning
        For inertias that no body can have, and once for everything that is left out.
    """
    _require_options(
        {"floating_base": floating_base, "limits": limits, "friction": friction, "parameters": parameters}, inertias
    )
    pull = _gravity(gravity)
    robot = read_urdf(_path(path))
    tree = structure(robot, _held(hold))
    _judge_inertias(robot, inertias)
    require_mass(robot.source, tree)
    moving = {carried.joint.name for carried in tree.carried}
    order = {key: joint for key, joint in robot.joints.items() if key in moving}
    if limits:
        _require_ranges(robot.source, order.values())
    assembly = Assembly(tree, order, Choices(floating_base, parameters, limits, friction))
    assembly.assemble()
    if not assembly.kinematics:
        raise ModelError(f"{robot.source}: no joint moves: expected one, or floating_base=True")
    if left_out := list(_left_out(robot, tree, assembly.choices)):
        warn_user(f"left out of the model of {robot.source}: {'; '.join(left_out)}")
    arguments = _arguments(assembly, robot.name if name is None else name, pull)
    return RobotModel(assembly, FrozenMapping(robot.joints), arguments)


def _arguments(assembly: Assembly, name: str, gravity: tuple[float, ...] | None) -> dict[str, Any]:
    """The arguments of the model."""
    motions = assembly.motions.values()
    weight = None if gravity is None else assembly.gravity(gravity)
    return {
        "name": name,
        "frame": assembly.ground.frame,
        "coordinates": [q for motion in motions for q in motion.coordinates],
        "speeds": [u for motion in motions for u in motion.speeds],
        "kinematics": assembly.kinematics,
        "bodies": assembly.bodies,
        "loads": assembly.loads,
        "inputs": assembly.inputs,
        "contacts": assembly.contacts,
        "gravity": weight,
        "parameters": assembly.values,
        "initial": assembly.initial,
        "check_kinematics": False,  # they are those of the joints
    }


def _require_ranges(source: str, joints: Iterable[Joint]) -> None:
    """Raise `ModelError` for limits of positions between which there is nothing."""
    empty = [
        f"{source}, line {joint.line}: the limits of joint {joint.name!r} are {joint.limits.lower:g} and "
        f"{joint.limits.upper:g}: expected lower < upper; hold= fixes a joint"
        for joint in joints
        if joint.limits.lower is not None and joint.limits.upper is not None
        if joint.limits.lower >= joint.limits.upper
    ]
    if empty:
        raise ModelError(empty)


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ModelError(f"the path of a URDF file is {brief(path)}: expected a string or a path")
    return Path(path)


def _require_options(flags: Mapping[str, Any], inertias: Any) -> None:
    problems = [f"{k} is {brief(v)}: expected True or False" for k, v in flags.items() if not isinstance(v, bool)]
    if inertias not in INERTIAS:
        problems.append(f"inertias is {brief(inertias)}: expected {' or '.join(map(repr, INERTIAS))}")
    if problems:
        raise ModelError(problems)


def _gravity(gravity: Any) -> tuple[float, ...] | None:
    if gravity is None:
        return None
    try:
        x, y, z = (float(component) for component in gravity)
    except (TypeError, ValueError):
        x = y = z = np.nan
    if not np.all(np.isfinite((x, y, z))):
        raise ModelError(f"gravity is {brief(gravity)}: expected three numbers, m/s**2, or None")
    return x, y, z


def _held(hold: Any) -> dict[str, float]:
    """The positions of held joints."""
    if hold is None:
        return {}
    try:
        positions = {name: float(value) for name, value in hold.items()}
    except (AttributeError, TypeError, ValueError):
        positions = {"": np.nan}
    if not np.all(np.isfinite(list(positions.values()))):
        raise ModelError(f"hold is {brief(hold)}: expected a mapping from names of joints to numbers")
    return positions


def _judge_inertias(robot: Robot, inertias: str) -> None:
    """Warn of inertias that no body can have, or raise `ModelError`."""
    found = {link.name: reason for link in robot.links.values() if (reason := impossible(link.inertial))}
    if not found:
        return
    if inertias == "error":
        raise ModelError(
            [
                f"{robot.source}, line {robot.links[name].line}: no body has the inertia of link {name!r}: {reason}"
                for name, reason in found.items()
            ]
        )
    first, reason = next(iter(found.items()))
    others = ", ".join(map(repr, list(found)[1:]))
    also = f"; the same is true of {others}" if others else ""
    warn_user(f'{robot.source}: no body has the inertia of link {first!r}: {reason}{also}; inertias="error" refuses it')


def _left_out(robot: Robot, tree: Structure, choices: Choices) -> Iterator[str]:
    """What the file contains and the model does not."""
    moving = [carried.joint for carried in tree.carried]
    rubbing = [joint.name for joint in moving if joint.friction and joint.kind in SINGLE]
    if rubbing and not choices.friction:
        yield f"Coulomb friction of {_names(rubbing)} (friction=True keeps it)"
    several = [joint.name for joint in moving if joint.kind not in SINGLE and (joint.friction or joint.damping)]
    if several:
        yield f"damping and friction of {_names(several)}, with several coordinates"
    for tag, count in robot.ignored.items():
        yield f"{count} <{tag}>" if count > 1 else f"<{tag}>"


def _names(names: list[str]) -> str:
    shown = ", ".join(names[:4])
    return f"{len(names)} joints ({shown}{', ...' if len(names) > 4 else ''})" if len(names) > 1 else f"joint {shown}"
