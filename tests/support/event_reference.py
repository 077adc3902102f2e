"""Random motions with resets, impulses, sampled inputs and several guards, and their events from closed forms.

A mass at x has the acceleration a + F with a held input F, a mass at y oscillates freely, y'' = -omega^2 y, and a
clock z runs at the rate 1. Between events and samples all is known in closed form; guards are combinations of these
quantities, and their zeros are bracketed on a fine grid. Nothing here comes from kanegen's search for events.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq

QUANTITIES = ("1", "x", "v", "y", "w", "z", "F", "t")
DIRECTIONS = (1, -1, 0, 1, 0, 0)
RESETS, IMPULSES, PASSIVE, TERMINAL = (0, 1), (2, 3), (4, 5), (5,)
OMEGA = 2.0
GRID = 1.0 / 512
AT_ZERO = 1e-11
"""Rounding of a guard where it crosses zero."""
CLOSE = 1e-6
"""Values of guards (of size 1) that are closer to zero than this after a jump or at an extremum decide nothing."""


class UndecidedError(Exception):
    """The events of this motion depend on its errors."""


@dataclass(frozen=True)
class Motion:
    """Coefficients of the guards (6, 8), actions ``z -> a + b z`` and ``v -> a + b v``, input, start and span."""

    guards: np.ndarray[Any, Any]
    resets: np.ndarray[Any, Any]
    impulses: np.ndarray[Any, Any]
    watched: tuple[int, ...]
    start: np.ndarray[Any, Any]  # x, v, y, w, z
    acceleration: float
    t0: float
    t1: float
    sample_time: float
    held: tuple[float, float]
    events: list[tuple[int, float]] = field(default_factory=list)

    def sample(self, t: float) -> float:
        return self.held[0] * float(np.sin(3.0 * (t - self.t0))) + self.held[1]


def flow(motion: Motion, state: Any, F: float, dt: Any) -> Any:
    """The state after dt with the input F."""
    x, v, y, w, z = state
    a, c, s = motion.acceleration + F, np.cos(OMEGA * dt), np.sin(OMEGA * dt)
    return np.array(
        [x + v * dt + a * dt**2 / 2, v + a * dt, c * y + s * w / OMEGA, c * w - OMEGA * s * y, z + dt], dtype=float
    )


class Reference:
    """One run of the closed forms."""

    def __init__(self, motion: Motion) -> None:
        self.motion, self.t, self.state = motion, motion.t0, motion.start.copy()
        self.F = motion.sample(motion.t0)
        self.events: list[tuple[int, float]] = []
        self.side = {i: self._sign(self.value(i)) for i in motion.watched}

    def value(self, i: int, dt: Any = 0.0) -> Any:
        state = flow(self.motion, self.state, self.F, dt)
        one = np.ones_like(dt)
        return self.motion.guards[i] @ np.array([one, *state, self.F * one, self.t - self.motion.t0 + dt])

    def slope(self, i: int, dt: float = 0.0) -> float:
        return float(self.value(i, dt + 1e-6) - self.value(i, dt - 1e-6)) / 2e-6

    @staticmethod
    def _sign(value: float) -> int:
        if abs(value) < CLOSE:
            raise UndecidedError
        return 1 if value > 0 else -1

    @staticmethod
    def counts(i: int, after: int) -> bool:
        return DIRECTIONS[i] in (0, after)

    def first(self, i: int, length: float) -> float | None:
        """Time to the first event of guard i; its sign at the end of the piece becomes ``side``."""
        dt = np.linspace(0.0, length, max(int(np.ceil(length / GRID)), 8) + 1)
        values, side = self.value(i, dt), self.side[i]
        inner = np.abs(values[1:-1])
        if np.any(
            (inner < 1e-4)
            & (inner < np.abs(values[:-2]))
            & (inner < np.abs(values[2:]))
            & (values[:-2] * values[2:] > 0)
        ):
            raise UndecidedError
        for k in range(1, dt.size):
            if values[k] * side < 0:
                low = dt[k - 1] if values[k - 1] * side > 0 else 0.0
                if values[k - 1] * side <= 0 and k > 1:
                    raise UndecidedError
                if values[k - 1] * side <= 0:
                    low = CLOSE * 1e-3  # it has just left zero
                    if self.value(i, low) * side <= 0:
                        raise UndecidedError
                if self.counts(i, -side):
                    return float(brentq(lambda s: float(self.value(i, s)), low, dt[k], xtol=1e-15))
                side = -side
        self._ends[i] = side
        return None

    def piece(self, length: float) -> bool:
        """Follows the motion for this time or up to an event; returns whether the run goes on in this piece."""
        self._ends: dict[int, int] = {}
        times = {i: dt for i in self.motion.watched if (dt := self.first(i, length)) is not None}
        if not times:
            self._advance(length)
            self.side |= self._ends
            return False
        first = min(times, key=lambda i: times[i])
        rest = [times[i] for i in times if i != first]
        if (rest and min(rest) - times[first] < self.separation) or length - times[first] < self.separation:
            raise UndecidedError
        for i in self.motion.watched:
            if i != first:
                self.side[i] = self._side_at(i, times[first])
        self._advance(times[first])
        self._react([first])
        return True

    def _side_at(self, i: int, dt: float) -> int:
        value = float(self.value(i, dt))
        slope = self.slope(i, dt)
        if abs(value) < abs(slope) * self.separation or abs(value) < 1e-13:
            raise UndecidedError
        return 1 if value > 0 else -1

    def _advance(self, dt: float) -> None:
        self.state = flow(self.motion, self.state, self.F, dt)
        self.t += dt

    def _react(self, fired: list[int]) -> None:
        """The events and what follows from them at the same time."""
        ends = False
        for _ in range(20):
            self.events += [(i, self.t) for i in fired]
            before = {i: float(self.value(i)) for i in self.motion.watched}
            for i in fired:
                if i in RESETS:
                    a, b = self.motion.resets[i]
                    self.state[4] = a + b * self.state[4]
            struck = self.state[1]
            for i in fired:
                if i in IMPULSES:
                    a, b = self.motion.impulses[i - 2]
                    self.state[1] += a + (b - 1.0) * struck
            ends = ends or any(i in TERMINAL for i in fired)
            fired = self._landed(before, fired)
            if not fired:
                break
        else:
            raise UndecidedError
        if ends:
            raise StopIteration
        for i in self.motion.watched:
            if self.side[i] == 0:
                slope = self.slope(i)
                if abs(slope) < 1e-2:
                    raise UndecidedError
                self.side[i] = 1 if slope > 0 else -1

    def _landed(self, before: dict[int, float], fired: list[int]) -> list[int]:
        again = []
        for i in self.motion.watched:
            value = float(self.value(i))
            if abs(value - before[i]) > 1e-12:
                sign = self._sign(value)
                if i not in fired and sign == -self.side[i] and self.counts(i, sign):
                    again.append(i)
                self.side[i] = sign
            elif i in fired:  # where it crossed zero; what fired because it jumped is on its new side
                self.side[i] = 0 if abs(value) < AT_ZERO else self._sign(value)
        return again

    def run(self, separation: float) -> list[tuple[int, float]]:
        """All events; undecided if two are closer in time than this."""
        self.separation = separation
        m = self.motion
        count = int((m.t1 - m.t0) / m.sample_time)
        samples = [t for k in range(1, count + 1) if (t := m.t0 + k * m.sample_time) < m.t1]
        try:
            for stop in [*samples, m.t1]:
                while self.piece(stop - self.t):
                    if len(self.events) > 200:
                        raise UndecidedError
                self.t = stop
                if stop < self.motion.t1:
                    if any(abs(self.value(i)) < 100.0 * separation for i in self.motion.watched):
                        raise UndecidedError
                    before = {i: float(self.value(i)) for i in self.motion.watched}
                    self.F = self.motion.sample(stop)
                    if again := self._landed(before, []):
                        self._react(again)
        except StopIteration:
            pass
        return self.events


def random_motion(seed: int, separation: float, passive: bool = False) -> Motion:
    """A motion with decided events; half of them have a guard that is zero closely behind another event.

    ``passive``: no event changes the state, and no input is sampled, so that the motion can be run backward in time.
    """
    rng = np.random.default_rng(seed)
    while True:
        try:
            motion = _draw(rng)
            motion = replace(motion, watched=PASSIVE, sample_time=np.inf, held=(0.0, 0.0)) if passive else motion
            events = Reference(motion).run(separation)
            if events and rng.random() < 0.5:
                motion = _with_close_event(rng, replace(motion, events=events), separation)
                events = Reference(motion).run(separation)
        except UndecidedError:
            continue
        if events:
            return replace(motion, events=events)


def _draw(rng: np.random.Generator) -> Motion:
    guards = rng.normal(size=(6, 8)) * (rng.random((6, 8)) < 0.4)
    guards[:, 0] = rng.normal(size=6) * 1.5
    resets = np.array([[rng.normal(), rng.choice([0.0, 1.0, -1.0])] for _ in range(2)])
    if rng.random() < 0.3:  # a clock that wraps
        guards[0], resets[0] = [-1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0], [rng.uniform(-0.5, 0.5), 0.0]
    sampled, t0 = rng.random() < 0.6, float(rng.choice([0.0, -3.0, 100.0]))
    return Motion(
        guards=guards,
        resets=resets,
        impulses=np.array([[rng.normal(), rng.choice([1.0, -1.0, 0.5])] for _ in range(2)]),
        watched=tuple(i for i in range(6) if rng.random() < (0.3 if i in TERMINAL else 0.7)) or (0,),
        start=rng.normal(size=5),
        acceleration=float(rng.normal()),
        t0=t0,
        t1=t0 + float(rng.uniform(2.0, 8.0)),
        sample_time=float(rng.choice([0.5, 0.25])) if sampled else np.inf,
        held=(float(rng.normal()), float(rng.normal())) if sampled else (0.0, 0.0),
    )


def _with_close_event(rng: np.random.Generator, motion: Motion, separation: float) -> Motion:
    """The motion with one guard moved so that it is zero shortly after an event of another one."""
    i, t = motion.events[rng.integers(len(motion.events))]
    others = [j for j in motion.watched if j != i]
    if not others:
        return motion
    j, delay = int(rng.choice(others)), 4.0 * separation * 10.0 ** rng.uniform(0.0, 3.0)
    until = Reference(replace(motion, watched=tuple(k for k in motion.watched if k != j), t1=t + delay))
    until.run(separation / 4.0)
    guards = motion.guards.copy()
    guards[j, 0] -= float(until.value(j))
    return replace(motion, guards=guards)
