"""The first zero of a smooth function by bisection with bounds on its derivatives: none can be missed.

A guard is called as ``guard(t, order)`` for the derivative of that order. ``guard.bound(order)`` bounds the absolute
value of that derivative wherever the guard is used. Numbers are mpmath's.
"""

from __future__ import annotations

from typing import Any, Protocol

from mpmath import mp


class Guard(Protocol):
    def __call__(self, t: Any, order: int = 0) -> Any: ...

    def bound(self, order: int) -> Any: ...


def first_fall(guard: Guard, start: Any, end: Any) -> Any:
    """The first time after ``start`` at which the guard falls through zero; None if there is none up to ``end``.

    The guard may be zero at the start if it rises from there.
    """
    left = start + _head_start(guard, start)
    # Phases are as long as a fraction of a run; the search is certified for any first interval.
    length = (end - start) / 64
    while left < end:
        right = min(left + length, end)
        crossing = _fall_between(guard, left, right)
        if crossing is not None:
            return crossing
        left = right
    return None


def _resolution() -> Any:
    return mp.mpf(10) ** (4 - mp.dps)


def _head_start(guard: Guard, start: Any) -> Any:
    """A time during which the guard is positive because of its first derivative that does not vanish."""
    for order in range(6):
        value = guard(start, order)
        if abs(value) > mp.mpf(10) ** (-mp.dps // 2) * guard.bound(order):
            assert value > 0, f"the guard is negative from the start, derivative {order}"
            rest = guard.bound(order + 1)
            # Taylor: g >= value s^k / k! - rest s^(k+1) / (k+1)!
            return value * (order + 1) / rest / 2 if rest else mp.inf
    raise AssertionError("a guard that does not leave zero")


def _fall_between(guard: Guard, left: Any, right: Any) -> Any:
    """The first zero in an interval with a positive left end: split until sign or monotonicity is certain."""
    half = (right - left) / 2
    middle = left + half
    value, slope, curvature = guard(middle), guard(middle, 1), guard.bound(2)
    if abs(value) > abs(slope) * half + curvature * half**2 / 2:
        return None
    if abs(slope) > curvature * half:
        return _bisected(guard, left, right) if guard(right) <= 0 else None
    crossing = _fall_between(guard, left, middle)
    return crossing if crossing is not None else _fall_between(guard, middle, right)


def _bisected(guard: Guard, left: Any, right: Any) -> Any:
    """The zero in an interval on which the guard decreases: Newton's method kept inside by bisection."""
    t = (left + right) / 2
    while right - left > _resolution():
        value = guard(t)
        left, right = (t, right) if value > 0 else (left, t)
        step = t - value / guard(t, 1)
        if abs(step - t) < _resolution():
            return step
        t = step if left < step < right else (left + right) / 2
    return t
