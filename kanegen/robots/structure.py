"""The tree of a robot: rigid groups of links, the joints that move them, and joints that follow others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from kanegen.errors import ModelError
from kanegen.robots.records import SINGLE, Joint, Robot
from kanegen.robots.rigid import NOWHERE, Inertial, Place, together, turn


@dataclass(frozen=True)
class Group:
    """Links without motion relative to each other: their places and their common inertia in the frame of the first."""

    name: str
    places: Mapping[str, Place]
    inertial: Inertial


class Carried(NamedTuple):
    """A joint that moves, the group that carries it, and where its frame is there at the position zero."""

    joint: Joint
    group: str
    place: Place


class Leader(NamedTuple):
    """The joint that a position follows: ``position = multiplier * (that of the joint) + offset``."""

    joint: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class Structure:
    """The groups by name, the root first, the moving joints with their parents first, and who follows whom."""

    root: str
    groups: Mapping[str, Group]
    carried: tuple[Carried, ...]
    leaders: Mapping[str, Leader]


def structure(robot: Robot, held: Mapping[str, float]) -> Structure:
    """The tree of a robot; the joints in ``held`` are fixed at these positions.

    Raises `ModelError` with all problems: links that do not exist, loops, several roots, joints that follow none.
    """
    problems = [*_link_problems(robot), *_held_problems(robot, held), *_mimic_problems(robot, held)]
    if problems:
        raise ModelError([f"{robot.source}{problem}" for problem in problems])
    held = {**{name: 0.0 for name, joint in robot.joints.items() if joint.kind == "fixed"}, **held}
    leaders = {name: _leader(robot, name, held) for name, joint in robot.joints.items() if joint.kind in SINGLE}
    fixed = {name: position for name, position in held.items() if robot.joints[name].kind in SINGLE}
    for name, (leader, multiplier, offset) in leaders.items():
        if leader in held:
            fixed[name] = multiplier * held[leader] + offset
    joints = {name: _fixed(joint, fixed[name]) if name in fixed else joint for name, joint in robot.joints.items()}
    free = {name: leader for name, leader in leaders.items() if name not in fixed}
    return _tree(replace(robot, joints=joints), free)


def _fixed(joint: Joint, position: float) -> Joint:
    """A joint with one coordinate as a fixed one."""
    if joint.kind == "prismatic":
        moved = Place(position * joint.axis, NOWHERE.rotation)
    else:
        moved = Place(NOWHERE.position, turn(joint.axis, position))
    return replace(joint, kind="fixed", place=joint.place.of(moved))


def _tree(robot: Robot, leaders: Mapping[str, Leader]) -> Structure:
    """The structure of a robot without problems; groups and joints are found from the root on."""
    below = defaultdict(list)
    for joint in robot.joints.values():
        below[joint.parent].append(joint)
    (root,) = set(robot.links) - {joint.child for joint in robot.joints.values()}
    groups: dict[str, Group] = {}
    carried: list[Carried] = []
    starts = [root]
    for start in starts:  # grows while it is read
        places, queue = {start: NOWHERE}, [start]
        for name in queue:
            for joint in below[name]:
                place = places[name].of(joint.place)
                if joint.kind == "fixed":
                    places[joint.child] = place
                    queue.append(joint.child)
                else:
                    carried.append(Carried(joint, start, place))
                    starts.append(joint.child)
        parts = [robot.links[name].inertial.seen_from(place) for name, place in places.items()]
        groups[start] = Group(start, places, together(parts))
    return Structure(root, groups, tuple(carried), leaders)


def require_mass(source: str, tree: Structure) -> None:
    """Raise `ModelError` for joints that move neither mass nor inertia."""
    massive = {name for name, group in tree.groups.items() if not group.inertial.moves_nothing}
    for joint, group, _ in reversed(tree.carried):
        if joint.child in massive:
            massive.add(group)
    moving: dict[str, bool] = {}
    for joint, _, _ in tree.carried:
        leader = tree.leaders[joint.name].joint if joint.name in tree.leaders else joint.name
        moving[leader] = moving.get(leader, False) or joint.child in massive
    idle = [name for name, moves in moving.items() if not moves]
    if idle:
        names = ", ".join(repr(name) for name in idle)
        raise ModelError(
            f"{source}: no link beyond {'joint' if len(idle) == 1 else 'joints'} {names} has mass or inertia, so that "
            "accelerations are not determined: give the links an <inertial>, or hold the joints by "
            f"hold={{{', '.join(f'{name!r}: 0.0' for name in idle[:3])}{', ...' if len(idle) > 3 else ''}}}"
        )


def _link_problems(robot: Robot) -> Iterator[str]:
    """Links that do not exist, or have two joints above them; loops; several roots."""
    above: dict[str, list[str]] = defaultdict(list)
    for joint in robot.joints.values():
        above[joint.child].append(joint.name)
        for side, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in robot.links:
                yield f", line {joint.line}: the {side} of joint {joint.name!r} is {name!r}, but there is no such link"
    for name, joints in above.items():
        if len(joints) > 1:
            yield (
                f": link {name!r} is the child of {len(joints)} joints, {', '.join(map(repr, joints))}: "
                "expected a tree; close loops by constraints of the model"
            )
    roots = [name for name in robot.links if name not in above]
    if len(roots) > 1:
        yield f": {len(roots)} links are no child of a joint, {', '.join(map(repr, roots))}: expected one root"
    yield from _loop_problems(robot)


def _loop_problems(robot: Robot) -> Iterator[str]:
    parents = {joint.child: joint.parent for joint in robot.joints.values()}
    seen: set[str] = set()
    for start in parents:
        chain, name = [start], parents[start]
        while name in parents and name not in seen and name not in chain:
            chain.append(name)
            name = parents[name]
        if name in chain:
            loop = chain[chain.index(name) :][::-1]
            yield f": the links {', '.join(map(repr, loop))} form a loop of parents and children: expected a tree"
        seen.update(chain)


def _held_problems(robot: Robot, held: Mapping[str, float]) -> Iterator[str]:
    for name in held:
        joint = robot.joints.get(name)
        if joint is None:
            yield f": hold= names the joint {name!r}, which does not exist: expected one of {', '.join(robot.joints)}"
        elif joint.kind not in SINGLE:
            yield f": hold= names joint {name!r} of type {joint.kind}: expected one of type {', '.join(SINGLE)}"


def _mimic_problems(robot: Robot, held: Mapping[str, float]) -> Iterator[str]:
    """Joints that follow none, themselves, or one with several coordinates; those that do not move follow nobody."""
    for joint in robot.joints.values():
        if joint.mimic is None or joint.kind == "fixed" or joint.name in held:
            continue
        other, where = robot.joints.get(joint.mimic.joint), f", line {joint.line}: joint {joint.name!r}"
        if other is None:
            yield f"{where} mimics {joint.mimic.joint!r}, but there is no such joint; hold= can hold it at a position"
        elif joint.kind not in SINGLE or other.kind not in (*SINGLE, "fixed"):
            kinds = f"{joint.kind}, mimics {other.name!r} of type {other.kind}"
            yield f"{where}, of type {kinds}: expected two of type {', '.join(SINGLE)}"
        elif joint.name in _followed(robot, joint.mimic.joint):
            yield f"{where} follows itself by <mimic>: expected another joint"


def _followed(robot: Robot, name: str) -> list[str]:
    """The joint, the one that it mimics, and so on, up to one that mimics none or occurs twice."""
    chain: list[str] = []
    while name in robot.joints and name not in chain:
        chain.append(name)
        mimic = robot.joints[name].mimic
        name = mimic.joint if mimic else ""
    return chain


def _leader(robot: Robot, name: str, held: Mapping[str, float]) -> Leader:
    """The joint whose position is independent or held, and how this one follows it."""
    multiplier, offset = 1.0, 0.0
    while name not in held and (mimic := robot.joints[name].mimic) is not None:
        multiplier, offset = multiplier * mimic.multiplier, multiplier * mimic.offset + offset
        name = mimic.joint
    return Leader(name, multiplier, offset)
