"""``kg.beam``: uniform beams as flexible bodies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import combinations_with_replacement, permutations
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import ModelError, brief
from kanegen.flexible.body import FlexibleBody
from kanegen.flexible.given import table
from kanegen.flexible.lines import SUPPORTS, Bar, Shapes, gauss, vibrations

CHOICES: Final = {
    "theory": ("euler_bernoulli", "timoshenko"),
    "supports": SUPPORTS,
    "bending": ("y", "z", "yz"),
    "shapes": ("eigenmodes", "polynomials"),
}
"""The values of the arguments that are texts."""

COUNTS: Final = ("modes", "stretch_modes", "twist_modes")

MOST_MODES: Final = 40
"""Of one direction."""


@dataclass(frozen=True, eq=False)
class Group:
    """The shapes of one direction: ``"y"`` or ``"z"`` for bending, ``"stretch"`` or ``"twist"``."""

    kind: str
    shapes: Shapes
    stiffness: Array

    def __len__(self) -> int:
        return len(self.stiffness)


class Beam(FlexibleBody):
    """A uniform beam along the x axis of its frame, from its origin; only :func:`kanegen.beam` makes it.

    The nodes ``0`` to ``n - 1`` are the stations, of which ``"start"`` and ``"end"`` are the ends. The modes are those
    of bending along y, bending along z, stretching and twisting, in this order.
    """

    groups: tuple[Group, ...]
    length: float
    youngs_modulus: float

    def strain(self, x: float, y: float = 0.0, z: float = 0.0) -> Any:
        """The axial strain of the fiber at ``(y, z)`` of the cross section at ``x``, m, as an expression.

        The strain is that of the linear theory, ``s' - y kappa_y - z kappa_z``. Raises ``ModelError`` for a position
        that is not on the beam.
        """
        if not (isinstance(x, int | float) and 0.0 <= x <= self.length):
            raise ModelError(f"beam {self.name}: x is {brief(x)}: expected a position from 0 to {self.length:g} m")
        factors = {"y": -y, "z": -z, "stretch": 1.0, "twist": 0.0}
        at = np.array([float(x)])
        return self.combination(
            np.concatenate([factors[group.kind] * group.shapes.strain(at)[:, 0] for group in self.groups])
        )

    def stress(self, x: float, y: float = 0.0, z: float = 0.0) -> Any:
        """The axial stress there, Pa, as an expression; see :meth:`strain`."""
        return self.youngs_modulus * self.strain(x, y, z)


def beam(
    name: str,
    frame: Any,
    origin: Any,
    *,
    length: float,
    area: float,
    second_moment: float | tuple[float, float],
    density: float,
    youngs_modulus: float,
    shear_modulus: float | None = None,
    shear_coefficient: float = 5 / 6,
    torsion_constant: float | None = None,
    theory: str = "euler_bernoulli",
    supports: str = "cantilever",
    bending: str = "y",
    modes: int = 3,
    stretch_modes: int = 0,
    twist_modes: int = 0,
    shapes: str = "eigenmodes",
    stiffening: bool = True,
    third_order: bool = False,
    rotary_inertia: bool | None = None,
    stations: int | Sequence[float] = 11,
    damping_ratio: float | None = None,
    parameters: bool = True,
) -> Beam:
    """A uniform beam as a flexible body, along the x axis of ``frame`` from ``origin``.

    Displacements are relative to the frame, with the ends held as ``supports`` says; the equations remain valid for any
    motion of the frame. With ``stiffening``, points move along the axis as the beam bends, by
    ``s - 1/2 integral (v'^2 + w'^2) dx`` with the stretch s (Kane, Ryan and Banerjee 1987), so that axial forces, those
    of a rotating beam for example, stiffen or soften it. Without it, fast rotations seem to make a beam unstable.

    Parameters
    ----------
    name, frame, origin, damping_ratio, parameters
        As those of :class:`kanegen.FlexibleBody`.
    length, area, density, youngs_modulus
        In m, m^2, kg/m^3, Pa.
    second_moment
        Second moment of area, m^4: a number, or two, against bending along y and along z.
    shear_modulus, shear_coefficient
        Shear modulus, Pa, for Timoshenko's theory and twisting; the part of the area that takes shear.
    torsion_constant
        The torsion constant of the cross section, m^4; by default the sum of the second moments, as for a circle.
    theory
        ``"euler_bernoulli"``: cross sections stay normal to the axis. ``"timoshenko"``: shear and rotary inertia.
    supports
        ``"cantilever"``: start fixed in the frame. ``"pinned"``: both ends on the x axis, the start at the origin.
        ``"clamped"``: both ends fixed. ``"free"``: no end; the frame is that in which the elastic displacements
        have no momentum.
    bending
        ``"y"``, ``"z"`` or ``"yz"``: directions in which the beam bends.
    modes, stretch_modes, twist_modes
        Numbers of modes of bending in each of these directions, of stretching and of twisting.
    shapes
        ``"eigenmodes"``: those of the beam by itself. ``"polynomials"``: any motion whose curvatures (shear strains)
        are polynomials; these converge faster if loads or further bodies act on the ends.
    stiffening
        Whether bending shortens the beam.
    third_order
        Whether deflections have the terms of third order, too: the modes are then those of the rotation ``theta`` of
        the cross sections, and the deflection is ``integral (theta - theta^3/6) dx``. For deflections of more than
        some hundredths of the length, in one direction of bending.
    rotary_inertia
        Whether cross sections resist rotation; None: for Timoshenko's theory, and for beams that twist.
    stations
        Number of equidistant nodes, or their positions from 0 to ``length``, m, in ascending order.

    Raises
    ------
    ModelError
        With every problem of the arguments.
    """
    design = Design.of(locals())
    problems = list(design.problems())
    if problems:
        raise ModelError([f"beam {name}: {problem}" for problem in problems])
    made = Beam(name, frame, origin, damping_ratio=damping_ratio, parameters=parameters, **design.arrays())
    made.groups, made.length, made.youngs_modulus = design.groups, float(length), float(youngs_modulus)
    return made


@dataclass(frozen=True, eq=False)
class Design:
    """The arguments of :func:`beam`, without those of :class:`FlexibleBody`."""

    length: Any
    area: Any
    density: Any
    second_moment: Any
    youngs_modulus: Any
    shear_modulus: Any
    shear_coefficient: Any
    torsion_constant: Any
    theory: str
    supports: str
    bending: str
    modes: Any
    stretch_modes: Any
    twist_modes: Any
    shapes: str
    stiffening: bool
    third_order: bool
    rotary_inertia: bool | None
    stations: Any

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Design:
        """Those of the arguments that belong to the design."""
        return cls(**{item.name: given[item.name] for item in fields(cls)})

    def problems(self) -> Iterator[str]:
        """What is wrong with the arguments."""
        positive = ["length", "area", "density", "youngs_modulus", "shear_coefficient"]
        positive += ["shear_modulus"] if self.theory == "timoshenko" or self.twist_modes != 0 else []
        positive += ["torsion_constant"] if self.torsion_constant is not None else []
        for what, value in (*((what, getattr(self, what)) for what in positive), *self._given_moments()):
            if not _is_positive(value):
                yield f"{what} is {brief(value)}: expected a positive number"
        for what, known in CHOICES.items():
            if getattr(self, what) not in known:
                yield f"{what} is {brief(getattr(self, what))}: expected one of {', '.join(known)}"
        counts = [getattr(self, what) for what in COUNTS]
        for what, count in zip(COUNTS, counts, strict=True):
            if not isinstance(count, int) or not 0 <= count <= MOST_MODES:
                yield f"{what} is {brief(count)}: expected a number from 0 to {MOST_MODES}"
        if self.third_order and not (self.stiffening and self.bending in ("y", "z") and self.modes):
            yield "third_order needs stiffening=True, and bending in one direction, 'y' or 'z'"
        if not any(counts):
            yield "the beam has no modes: expected at least one, or a RigidBody in its place"
        if _is_positive(self.length):
            yield from self._station_problems()

    def _given_moments(self) -> list[tuple[str, Any]]:
        given = self.second_moment if isinstance(self.second_moment, tuple | list) else (self.second_moment,)
        return [("second_moment", value) for value in (given if 1 <= len(given) <= 2 else (self.second_moment,))]

    def _station_problems(self) -> Iterator[str]:
        if isinstance(self.stations, int):
            if self.stations < 2:
                yield f"stations is {self.stations}: expected at least 2"
            return
        found: list[str] = []
        x = table(self.stations, ("n",), "stations", found)
        yield from found
        if not found and (len(x) < 2 or x[0] != 0.0 or x[-1] != self.length or np.any(np.diff(x) <= 0.0)):
            yield f"stations is {brief(self.stations)}: expected ascending positions from 0 to the length, m"

    @cached_property
    def turns(self) -> bool:
        """Whether cross sections resist rotation."""
        if self.rotary_inertia is None:
            return self.theory == "timoshenko" or self.twist_modes > 0
        return self.rotary_inertia

    @cached_property
    def sections(self) -> tuple[float, float]:
        """Second moments of area against bending along y and along z, m^4."""
        given = (
            self.second_moment
            if isinstance(self.second_moment, tuple | list)
            else (self.second_moment, self.second_moment)
        )
        return float(given[0]), float(given[-1])

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The shapes of all directions that have modes."""
        counts = [(axis, self.modes) for axis in self.bending]
        counts += [("stretch", self.stretch_modes), ("twist", self.twist_modes)]
        polynomials = self.shapes == "polynomials"
        return tuple(
            Group(kind, *vibrations(self._bar(kind), self.supports, count, polynomials))
            for kind, count in counts
            if count
        )

    def _bar(self, kind: str) -> Bar:
        line, polar = self.density * self.area, sum(self.sections)
        if kind == "stretch":
            return Bar(self.length, line, 0.0, self.youngs_modulus * self.area, bends=False)
        if kind == "twist":
            constant = polar if self.torsion_constant is None else self.torsion_constant
            return Bar(self.length, self.density * polar, 0.0, self.shear_modulus * constant, bends=False)
        moment = self.sections["yz".index(kind)]
        inertia = self.density * moment if self.turns else 0.0
        shear = self.shear_coefficient * self.shear_modulus * self.area if self.theory == "timoshenko" else None
        return Bar(self.length, line, inertia, self.youngs_modulus * moment, shear)

    def arrays(self) -> dict[str, Any]:
        """The arguments of :class:`FlexibleBody`: massless stations, then Gauss points with the mass."""
        x = np.asarray(self.stations, dtype=np.float64)
        x = np.linspace(0.0, self.length, self.stations) if x.ndim == 0 else x
        widest = max(group.shapes.displacement.rows.shape[1] for group in self.groups)
        inner, weights = gauss(self.length, 2 * widest)
        n, x = len(x), np.concatenate([x, inner])
        mass = np.concatenate([np.zeros(n), weights]) * self.density * self.area
        nodes = np.stack([x, 0.0 * x, 0.0 * x], axis=1)
        placed = [_displacements(group, x) for group in self.groups]
        return {
            "nodes": nodes,
            "masses": mass,
            "modes": np.concatenate([displaced for displaced, _ in placed]),
            "rotations": np.concatenate([turned for _, turned in placed]),
            "inertias": mass[:, None, None] / self.area * self._section_inertia() if self.turns else None,
            "stiffness": np.concatenate([group.stiffness for group in self.groups]),
            "second_order": self._shortening(x) if self.stiffening else None,
            "third_order": self._flattening(x) if self.third_order else None,
            "names": {"start": 0, "end": n - 1},
            "lines": [(k, k + 1) for k in range(n - 1)],
        }

    def _section_inertia(self) -> Array:
        """Moments of inertia of a cross section for a mass per area of 1, m^4."""
        y, z = self.sections
        return np.diag([y + z, z, y])

    def _shortening(self, x: Array) -> Array:
        """Displacements of second order along x: ``-integral v_m' v_n' dx`` for modes of one direction of bending."""
        m = sum(map(len, self.groups))
        bends, first = np.zeros((m, m, len(x), 3)), 0
        start = self.length / 2.0 if self.supports == "free" else 0.0
        for group in self.groups:
            slope = group.shapes.slope
            for i in range(len(group) if group.kind in "yz" else 0):
                for j in range(len(group)):
                    bends[first + i, first + j, :, 0] = -slope.times(i, slope, j).integral(start)(x)[0]
            first += len(group)
        return bends

    def _flattening(self, x: Array) -> Array:
        """Deflections of third order: ``-integral turn_i turn_j turn_k dx``."""
        group, m = self.groups[0], sum(map(len, self.groups))
        flat = np.zeros((m, m, m, len(x), 3))
        start = self.length / 2.0 if self.supports == "free" else 0.0
        turn = group.shapes.turn
        for i, j, k in combinations_with_replacement(range(len(group)), 3):
            values = -turn.times(i, turn, j).times(0, turn, k).integral(start)(x)[0]
            for a, b, c in permutations((i, j, k)):
                flat[a, b, c, :, "xyz".index(group.kind)] = values
        return flat


def _displacements(group: Group, x: Array) -> tuple[Array, Array]:
    """Displacements and rotations (m, n, 3) of the cross sections at positions x (n,)."""
    displaced, turned = np.zeros((2, len(group), len(x), 3))
    values, turns = group.shapes.displacement(x), group.shapes.turn(x)
    match group.kind:
        case "y":
            displaced[:, :, 1], turned[:, :, 2] = values, turns
        case "z":
            displaced[:, :, 2], turned[:, :, 1] = values, -turns
        case "stretch":
            displaced[:, :, 0] = values
        case _:
            turned[:, :, 0] = values
    return displaced, turned


def _is_positive(value: Any) -> bool:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return is_number and 0.0 < float(value) < np.inf
