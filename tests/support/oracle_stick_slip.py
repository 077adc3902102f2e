"""Two blocks with stick and slip, solved exactly: closed forms joined at certified events.

Between events every block either rests or slides one way, so that the equations of motion are linear with constant
friction forces: positions are a constant plus sinusoids at the natural frequencies and at the excitation. Events are
zeros of such sums. A search by bisection with bounds on the derivatives cannot miss one. All of it in mpmath; nothing
of kanegen is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from certified_roots import first_fall
from mpmath import mp

DIGITS = 34


@dataclass(frozen=True)
class Signal:
    """``constant + sum_k a_k cos(w_k t) + b_k sin(w_k t)``; ``terms`` holds (w, a, b)."""

    constant: Any
    terms: tuple[tuple[Any, Any, Any], ...] = ()

    def __call__(self, t: Any, order: int = 0) -> Any:
        """The value of the derivative of this order."""
        phase = order * mp.pi / 2
        value = mp.fsum(w**order * (a * mp.cos(w * t + phase) + b * mp.sin(w * t + phase)) for w, a, b in self.terms)
        return value if order else value + self.constant

    def bound(self, order: int) -> Any:
        """A bound on the absolute value of the derivative of this order at any time."""
        oscillation = mp.fsum(w**order * mp.hypot(a, b) for w, a, b in self.terms)
        return oscillation if order else oscillation + abs(self.constant)

    def __add__(self, other: Signal) -> Signal:
        return Signal(self.constant + other.constant, self.terms + other.terms)

    def __rmul__(self, factor: Any) -> Signal:
        return Signal(factor * self.constant, tuple((w, factor * a, factor * b) for w, a, b in self.terms))

    def derivative(self) -> Signal:
        return Signal(mp.zero, tuple((w, w * b, -w * a) for w, a, b in self.terms))


class Event(NamedTuple):
    """A block (1 or 2) that "sticks", "slips" or "reverses" at time t with positions q and velocities u after it."""

    t: Any
    block: int
    kind: str
    q: tuple[Any, Any]
    u: tuple[Any, Any]


class Blocks:
    """The blocks of ``stick_slip_blocks``: parameters m1, m2, K1, K2, A, omega, mu, g and mu_s (default mu)."""

    def __init__(self, parameters: Mapping[str, float]) -> None:
        # The decimal numbers a user writes and the binary ones a program reads differ; events follow the latter.
        p = {name: mp.mpf(value) for name, value in parameters.items()}
        self.masses = (p["m1"], p["m2"])
        self.stiffness = ((p["K1"] + p["K2"], -p["K2"]), (-p["K2"], p["K2"]))
        self.drive, self.omega = p["A"], p["omega"]
        self.kinetic = tuple(p["mu"] * m * p["g"] for m in self.masses)
        self.static = tuple(p.get("mu_s", p["mu"]) * m * p["g"] for m in self.masses)

    def load(self, block: int, q: tuple[Signal, Signal]) -> Signal:
        """What friction must balance for the block to rest: the springs and the drive."""
        springs = (-self.stiffness[block][0]) * q[0] + (-self.stiffness[block][1]) * q[1]
        return springs + Signal(mp.zero, ((self.omega, mp.zero, self.drive),)) if block == 1 else springs

    def motion(self, t: Any, q: Any, u: Any, slip: tuple[int, int]) -> tuple[Signal, Signal]:
        """Positions from the state at t on, while ``slip`` holds (-1, 0, 1: the directions of the velocities)."""
        moving = [block for block in (0, 1) if slip[block]]
        places = [Signal(mp.zero) if slip[block] else Signal(q[block]) for block in (0, 1)]
        if not moving:
            return places[0], places[1]
        scaled = [[self.stiffness[i][j] / mp.sqrt(self.masses[i] * self.masses[j]) for j in moving] for i in moving]
        squares, shapes = mp.eigsy(mp.matrix(scaled))
        for mode, square in enumerate(squares):
            # Shapes normalized with the masses: sum_i m_i shape_i^2 = 1.
            shape = {i: shapes[row, mode] / mp.sqrt(self.masses[i]) for row, i in enumerate(moving)}
            modal = self._modal(t, mp.sqrt(square), shape, q, u, slip)
            for i, weight in shape.items():
                places[i] = places[i] + weight * modal
        return places[0], places[1]

    def _modal(self, t: Any, w: Any, shape: Mapping[int, Any], q: Any, u: Any, slip: tuple[int, int]) -> Signal:
        """The modal coordinate with ``eta'' + w^2 eta = constant + drive sin(omega t)`` and the state at t."""
        resting = [block for block in (0, 1) if not slip[block]]
        constant = mp.zero
        for i, weight in shape.items():
            coupling = mp.fsum(self.stiffness[i][j] * q[j] for j in resting)
            constant -= weight * (slip[i] * self.kinetic[i] + coupling)
        drive = shape.get(1, mp.zero) * self.drive
        forced = Signal(constant / w**2, ((self.omega, mp.zero, drive / (w**2 - self.omega**2)),))
        place = mp.fsum(weight * self.masses[i] * q[i] for i, weight in shape.items()) - forced(t)
        speed = (mp.fsum(weight * self.masses[i] * u[i] for i, weight in shape.items()) - forced(t, 1)) / w
        c, s = mp.cos(w * t), mp.sin(w * t)
        return forced + Signal(mp.zero, ((w, place * c - speed * s, place * s + speed * c),))


def exact_events(parameters: Mapping[str, float], end: float) -> list[Event]:
    """All events from rest at zero, at t = 0, up to ``end``."""
    with mp.workdps(DIGITS):
        blocks = Blocks(parameters)
        t, q, u, slip = mp.zero, (mp.zero, mp.zero), (mp.zero, mp.zero), (0, 0)
        slip = tuple(_direction(blocks, block, t, q) for block in (0, 1))
        events: list[Event] = []
        while True:
            places = blocks.motion(t, q, u, slip)
            guards = _guards(blocks, places, slip)
            times = [first_fall(guard, t, mp.mpf(end)) for _, guard in guards]
            happening = [(time, block) for time, (block, _) in zip(times, guards, strict=True) if time is not None]
            if not happening:
                return events
            t, block = min(happening)
            q = tuple(place(t) for place in places)
            velocities = [place(t, 1) if moves else mp.zero for place, moves in zip(places, slip, strict=True)]
            velocities[block] = mp.zero
            u = tuple(velocities)
            slip, kind = _switched(blocks, block, t, q, slip)
            events.append(Event(t, block + 1, kind, q, u))


def _guards(blocks: Blocks, places: Any, slip: Any) -> list[tuple[int, Signal]]:
    """Pairs (block, what is positive until the block changes)."""
    guards = []
    for block in (0, 1):
        if slip[block]:
            guards.append((block, slip[block] * places[block].derivative()))
        else:
            load, limit = blocks.load(block, places), Signal(blocks.static[block])
            guards += [(block, limit + load), (block, limit + (-1) * load)]
    return guards


def _direction(blocks: Blocks, block: int, t: Any, q: Any) -> int:
    """0 if static friction can hold the resting block, else the sign of the load."""
    load = blocks.load(block, (Signal(q[0]), Signal(q[1])))(t)
    return 0 if abs(load) <= blocks.static[block] else int(mp.sign(load))


def _switched(blocks: Blocks, block: int, t: Any, q: Any, slip: tuple[int, int]) -> tuple[tuple[int, int], str]:
    before = slip[block]
    if before:
        after = _direction(blocks, block, t, q)
        kind = "sticks" if after == 0 else "reverses"
    else:
        after = int(mp.sign(blocks.load(block, (Signal(q[0]), Signal(q[1])))(t)))
        kind = "slips"
    return (after, slip[1]) if block == 0 else (slip[0], after), kind
