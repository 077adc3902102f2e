"""Wheels with tires on roads: loads, states and outputs of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

import sympy
from sympy.physics.vector import Point, ReferenceFrame, Vector, dynamicsymbols

from kanegen.errors import ModelError, brief
from kanegen.tires.contact import Contact, Forces, limited
from kanegen.tires.functions import Abs, Max, asin, atan, cos, held, sqrt
from kanegen.tires.placement import Placement, place
from kanegen.tires.roads import Road
from kanegen.tires.tire import Tire

PULL: Final = 10
"""How much faster slips beyond sliding are pulled back, at rest, than they grow."""

SHORTEST: Final = 0.05
"""The least relaxation length, as a part of the radius: without load the formulas give none."""


@dataclass(frozen=True, repr=False)
class Wheel:
    """What a wheel adds to a model; `wheel` makes it. All values are SymPy expressions.

    Attributes
    ----------
    loads
        The force at the center and the moment on the wheel, for ``Model(loads=)``.
    states
        The longitudinal and the lateral slip with their rates, for ``Model(states=)``; empty without relaxation.
    initial
        Zero for each of them.
    outputs
        Load, deflection, slips, angles, forces and moments by name, for ``Model(outputs=)``.
    forces
        The same forces.
    """

    name: str
    tire: Tire
    loads: tuple[tuple[Any, Any], ...]
    states: Mapping[Any, Any]
    initial: Mapping[Any, float]
    outputs: Mapping[str, Any]
    forces: Forces

    def __repr__(self) -> str:
        return f"<wheel {self.name!r}: {self.tire!r}, {len(self.states)} states>"


def wheel(
    tire: Tire,
    name: str,
    *,
    center: Point,
    frame: ReferenceFrame,
    axis: Vector,
    road: Road,
    pressure: Any = None,
    relaxation: bool | tuple[Any, Any] = True,
) -> Wheel:
    """A wheel with a tire on a road.

    The wheel is a disk without width. It touches the tangent plane of the road below its center, in one point: bumps
    that are shorter than the contact patch act as if the tire did not envelop them.

    Parameters
    ----------
    tire
        From `from_tir`, `linear`, `fiala` or `brush`.
    name
        Of the wheel; states and outputs begin with it.
    center, frame
        The center of the wheel, and the frame that rotates with it.
    axis
        The axis of rotation, a unit vector to the left: rolling forward is a positive rotation about it.
    road
        From `road`.
    pressure
        Inflation pressure, Pa, a number or an expression; by default that of the tire.
    relaxation
        True: the slips are states, with the relaxation lengths of the tire; a pair of lengths, m, longitudinal and
        lateral, in their place. False: the slips are those of steady state, without states; below the low speed of the
        tire they are as if it rolled with this speed, so that it cannot stand on a slope.
    """
    if not isinstance(tire, Tire):
        raise ModelError(f"the tire of the wheel {brief(name)} is {brief(tire)}: expected one from kg.tires")
    at = place(tire, center, frame, axis, road, pressure)
    slips = _Steady(tire, at) if relaxation is False else _Relaxing(tire, name, at, pressure, relaxation)
    gamma, direction = held(asin(at.lean)), held(tire.direction(at.speed))
    contact = Contact(at.load, slips.kappa, slips.tangent, gamma, pressure, held(Abs(at.speed)), direction)
    forces = Forces(*map(held, tire.forces_at(contact)))
    force = at.vector(forces.Fx, forces.Fy, at.load)
    moment = at.vector(forces.Mx, forces.My, forces.Mz) + at.offset.cross(force)
    outputs = {
        "Fz": at.load,
        "deflection": at.deflection,
        "kappa": slips.kappa,
        "alpha": atan(slips.tangent),
        "gamma": gamma,
        **forces._asdict(),
    }
    return Wheel(
        name,
        tire,
        ((center, force), (frame, moment)),
        MappingProxyType(slips.states),
        MappingProxyType(dict.fromkeys(slips.states, 0.0)),
        MappingProxyType({f"{name}_{key}": value for key, value in outputs.items()}),
        forces,
    )


class _Steady:
    """Slips as if the motion were steady."""

    def __init__(self, tire: Tire, at: Placement) -> None:
        speed = Max(Abs(at.speed), tire.low_speed)
        self.kappa, self.tangent = held(-at.slip_x / speed), held(at.slip_y / speed)
        self.states: dict[Any, Any] = {}


class _Relaxing:
    """Slips that adjust over the relaxation lengths.

    ``sigma s' + |Vx| s = v`` (Bernard and Clover, SAE 950311; Pacejka 2012, chapters 7 and 8) has no division by the
    speed: at rest the slip grows with the displacement, and the tire is a spring. The length shrinks as forces over
    slips do where the tire slides (Pacejka's nonlinear model, with ``1 / sqrt(1 + e^2)`` in place of the formula; e is
    the slip over that at which proportional forces would reach friction). Below the low speed of the tire a damper acts
    besides, and slips beyond that one are pulled back, because at rest nothing else would limit them.
    """

    def __init__(
        self, tire: Tire, name: str, at: Placement, pressure: Any, relaxation: Literal[True] | tuple[Any, Any]
    ) -> None:
        gamma = held(asin(at.lean))
        lengths = tire.relaxation_lengths(at.load, gamma, pressure) if relaxation is True else relaxation
        sliding = tire.sliding_slips(at.load, gamma, pressure)
        slips = dynamicsymbols(f"{name}_s_kappa {name}_s_alpha")
        limits = tuple(map(held, sliding or (1, 1)))
        shrunk = held(sqrt(1 + sum((s / limit) ** 2 for s, limit in zip(slips, limits, strict=True)))) if sliding else 1
        slow = held((1 + cos(sympy.pi * limited(at.speed / tire.low_speed))) / 2)
        self.states, found = {}, []
        velocities = -at.slip_x, at.slip_y
        for slip, length, limit, velocity in zip(slips, lengths, limits, velocities, strict=True):
            beyond = PULL * slow * Abs(velocity) * (slip - limited(slip, limit))
            least = SHORTEST * tire.radius
            self.states[slip] = (velocity - Abs(at.speed) * slip - beyond) / Max(length / shrunk, least)
            found.append(held(slip + slow * tire.low_speed_damping * velocity / Max(length, least)))
        self.kappa, self.tangent = found
