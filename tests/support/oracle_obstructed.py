"""The obstructed double pendulum integrated with Taylor series in mpmath, its switches located by certified bisection.

Lagrange's equations, derived by hand: with ``a = m_B R^2 + I_D``, ``b = m_B L^2 / 4 + I_B``, ``h = m_B R L / 2`` and
the normal row ``w = (R sin th1, L sin th2)`` of the gap ``R + 3 L / 4 - R cos th1 - L cos th2``,

    a th1'' + h cos(th1 - th2) th2'' = -m_B g R sin th1 - h sin(th1 - th2) th2'^2 + tau1 - tau2 + w1 lambda
    h cos(th1 - th2) th1'' + b th2'' = -m_B g L/2 sin th2 + h sin(th1 - th2) th1'^2 + tau2 + w2 lambda

where lambda = 0, or such that ``gap'' = Delta1 gap' + Delta2 gap``. It acts while the gap is negative and the lambda
needed is positive. Nothing of kanegen is used. ``python oracle_obstructed.py`` prints the switches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from certified_roots import first_fall
from mpmath import mp

DIGITS = 30
ORDER = 28
DEFAULTS = {"R": 0.5, "L": 1.0, "m_B": 2.0, "I_D": 0.8, "I_B": 1.0 / 6.0, "g": 9.81}
DEFAULTS |= {"tau1": 1.0, "tau2": 3.0, "Delta1": -300.0, "Delta2": -100.0}
OPEN, CLOSED, PENETRATED = "open", "closed", "penetrated"

Series = list[Any]


class Switch(NamedTuple):
    """From time t on the contact is "open", "closed" (force acts) or "penetrated" (gap < 0 without force)."""

    t: Any
    mode: str
    q: tuple[Any, Any]
    u: tuple[Any, Any]


@dataclass(frozen=True)
class Polynomial:
    """A guard as a polynomial on [0, length]."""

    coefficients: tuple[Any, ...]
    length: Any

    def __call__(self, t: Any, order: int = 0) -> Any:
        return mp.polyval(self._derivative(order)[::-1], t)

    def bound(self, order: int) -> Any:
        return mp.polyval([abs(c) for c in self._derivative(order)][::-1], self.length)

    def _derivative(self, order: int) -> list[Any]:
        return [mp.ff(k, order) * c for k, c in enumerate(self.coefficients)][order:]


class Expansion:
    """Taylor coefficients of the motion from a state, with or without contact force."""

    def __init__(self, p: Mapping[str, Any], q: Any, u: Any, acting: bool) -> None:
        self.p, self.acting = p, acting
        self.q: list[Series] = [[q[0]], [q[1]]]
        self.u: list[Series] = [[u[0]], [u[1]]]
        self.sine: list[Series] = [[mp.sin(angle)] for angle in q]
        self.cosine: list[Series] = [[mp.cos(angle)] for angle in q]
        self.gap: Series = []
        self.needed: Series = []
        self._partial: dict[str, Series] = {}
        for order in range(ORDER):
            self._extend(order)

    def _term(self, name: str, value: Any) -> Series:
        """Append the next coefficient to the auxiliary series ``name``."""
        series = self._partial.setdefault(name, [])
        series.append(value)
        return series

    def _extend(self, k: int) -> None:
        """From coefficients of q, u and the sines of order k to those of order k + 1."""
        accelerations = self._accelerations(k)
        for i in (0, 1):
            self.u[i].append(accelerations[i] / (k + 1))
            self.q[i].append(self.u[i][k] / (k + 1))
            sine = _product(self.cosine[i], self.u[i], k) / (k + 1)
            cosine = -_product(self.sine[i], self.u[i], k) / (k + 1)
            self.sine[i].append(sine)
            self.cosine[i].append(cosine)

    def _accelerations(self, k: int) -> tuple[Any, Any]:
        p = self.p
        (s1, s2), (c1, c2), (u1, u2) = self.sine, self.cosine, self.u
        h = p["m_B"] * p["R"] * p["L"] / 2
        a, b = p["m_B"] * p["R"] ** 2 + p["I_D"], p["m_B"] * p["L"] ** 2 / 4 + p["I_B"]
        hc = self._term("h c12", h * (_product(c1, c2, k) + _product(s1, s2, k)))
        hs = self._term("h s12", h * (_product(s1, c2, k) - _product(c1, s2, k)))
        square1 = self._term("u1^2", _product(u1, u1, k))
        square2 = self._term("u2^2", _product(u2, u2, k))
        w1 = self._term("w1", p["R"] * s1[k])
        w2 = self._term("w2", p["L"] * s2[k])
        weight = p["m_B"] * p["g"]
        first = k == 0
        f1 = -weight * w1[k] - _product(hs, square2, k) + (p["tau1"] - p["tau2"] if first else 0)
        f2 = -weight / 2 * w2[k] + _product(hs, square1, k) + (p["tau2"] if first else 0)
        f1, f2 = self._term("f1", f1), self._term("f2", f2)
        det = self._term("det", (a * b if first else 0) - _product(hc, hc, k))
        n1 = self._term("n1", b * f1[k] - _product(hc, f2, k))
        n2 = self._term("n2", a * f2[k] - _product(hc, f1, k))
        # adj(Q) w, and w adj(Q) w = det times the row's response to its own multiplier.
        r1 = self._term("r1", b * w1[k] - _product(hc, w2, k))
        r2 = self._term("r2", a * w2[k] - _product(hc, w1, k))
        response = self._term("response", _product(w1, r1, k) + _product(w2, r2, k))
        rate = _product(w1, u1, k) + _product(w2, u2, k)
        level = p["R"] + 3 * p["L"] / 4 if first else mp.zero
        self.gap.append(level - p["R"] * c1[k] - p["L"] * c2[k])
        curvature = p["R"] * _product(c1, square1, k) + p["L"] * _product(c2, square2, k)
        lacking = self._term("lacking", p["Delta1"] * rate + p["Delta2"] * self.gap[k] - curvature)
        deficit = _product(lacking, det, k) - _product(w1, n1, k) - _product(w2, n2, k)
        self.needed.append(_quotient(deficit, response, self.needed, k))
        if self.acting:
            n1 = self._term("N1", n1[k] + _product(r1, self.needed, k))
            n2 = self._term("N2", n2[k] + _product(r2, self.needed, k))
        x1 = self._partial.setdefault("x1", [])
        x2 = self._partial.setdefault("x2", [])
        x1.append(_quotient(n1[k], det, x1, k))
        x2.append(_quotient(n2[k], det, x2, k))
        return x1[k], x2[k]

    def length(self) -> Any:
        """A step for which the last coefficients contribute less than the working precision."""
        size = max(abs(series[k]) ** (mp.one / k) for series in (*self.u, *self.q) for k in (ORDER - 1, ORDER))
        return mp.mpf(10) ** (-mp.mpf(DIGITS - 2) / (ORDER - 1)) / size


def _product(left: Series, right: Series, k: int) -> Any:
    """Coefficient k of the product of two series."""
    return mp.fdot(left[: k + 1], right[k::-1])


def _quotient(numerator: Any, denominator: Series, quotient: Series, k: int) -> Any:
    """Coefficient k of a quotient of series whose coefficients up to k - 1 are ``quotient``."""
    known = mp.fdot(denominator[1 : k + 1], quotient[k - 1 :: -1]) if k else mp.zero
    return (numerator - known) / denominator[0]


def switches(parameters: Mapping[str, float], q: Any, u: Any, count: int) -> list[Switch]:
    """The first ``count`` changes of mode from an open start at t = 0."""
    with mp.workdps(DIGITS):
        p = {name: mp.mpf(value) for name, value in parameters.items()}
        t, mode = mp.zero, OPEN
        q, u = tuple(map(mp.mpf, q)), tuple(map(mp.mpf, u))
        switches: list[Switch] = []
        while len(switches) < count:
            expansion = Expansion(p, q, u, mode == CLOSED)
            step = expansion.length()
            happening = [
                (time, to)
                for guard, to in _guards(expansion, mode)
                if (time := first_fall(Polynomial(tuple(guard), step), mp.zero, step)) is not None
            ]
            advance = min(happening)[0] if happening else step
            t += advance
            q, u = (tuple(mp.polyval(series[::-1], advance) for series in pair) for pair in (expansion.q, expansion.u))
            if happening:
                mode = _entered(p, q, u, min(happening)[1])
                switches.append(Switch(t, mode, q, u))
        return switches


def _guards(expansion: Expansion, mode: str) -> list[tuple[Series, str]]:
    """Pairs of a series that is positive while the mode holds, and the mode entered when it falls through zero."""
    opened = [-c for c in expansion.gap]
    return {
        OPEN: [(expansion.gap, CLOSED)],
        CLOSED: [(opened, OPEN), (expansion.needed, PENETRATED)],
        PENETRATED: [(opened, OPEN), ([-c for c in expansion.needed], CLOSED)],
    }[mode]


def _entered(p: Mapping[str, Any], q: Any, u: Any, mode: str) -> str:
    """A gap that closes without a compressive multiplier is penetrated."""
    if mode != CLOSED:
        return mode
    return CLOSED if Expansion(p, q, u, acting=False).needed[0] > -(mp.mpf(10) ** (-DIGITS // 2)) else PENETRATED


if __name__ == "__main__":
    for switch in switches(DEFAULTS, (1, 1), (0, 0), 12):
        print(mp.nstr(switch.t, 20), switch.mode)
