"""Residues of expressions: their values at a random point of a finite field.

Every node is evaluated once at a random point modulo a prime; the sine and cosine of an angle are a random point of the
unit circle. Two nodes with the same residue are equal as rational functions of inputs, sines and cosines (Schwartz
1980, Zippel 1979; the probability of an error is the degree over the prime, below 1e-30 here), whatever their form.
Identities of functions other than sine and cosine are not detected.
"""

from __future__ import annotations

import operator
from fractions import Fraction
from hashlib import blake2b
from typing import Final

from kanegen.graph.nodes import Node

PRIME: Final = 2**127 - 1
_HALF: Final = PRIME // 2


class Residues:
    """The residue of each node at one random point; ``seed`` selects the values of all inputs except parameters."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._known: dict[int, int | None] = {}
        self._circle: dict[int, tuple[int, int]] = {}

    def __call__(self, node: Node) -> int | None:
        """The residue; None if a division by zero leaves it undefined."""
        known = self._known
        stack = [] if node.index in known else [node]
        while stack:
            last = stack[-1]
            if pending := [a for a in last.args if a.index not in known]:
                stack.extend(pending)
                continue
            stack.pop()
            if last.index in known:  # an operand of several nodes on the stack
                continue
            values = [known[a.index] for a in last.args]
            defined = [value for value in values if value is not None]
            known[last.index] = self._value(last, defined) if len(defined) == len(values) else None
        return known[node.index]

    def _value(self, node: Node, a: list[int]) -> int | None:
        match node.op:
            case "const":
                exact = Fraction(node.payload)
                return exact.numerator * pow(exact.denominator, -1, PRIME) % PRIME
            case "input":
                # Parameters and gains take the same values at every point.
                return self._random("p" if node.constant else f"{self._seed}", node.payload)
            case "add" | "sub" | "mul" | "neg":
                value: int = getattr(operator, node.op)(*a)
                return value % PRIME
            case "div":
                return a[0] * pow(a[1], -1, PRIME) % PRIME if a[1] else None
            case "reciprocal":
                return pow(a[0], -1, PRIME) if a[0] else None
            case "sin" | "cos":
                return self._on_circle(a[0])[node.op == "cos"]
            case "call":
                return self._random("call", (node.payload.content, *a))
            case _:
                return self._random(node.op, tuple(a))

    def _on_circle(self, angle: int) -> tuple[int, int]:
        """Sine and cosine: ``2 h / (1 + h^2)`` and ``(1 - h^2) / (1 + h^2)``, odd and even in the angle."""
        if angle > _HALF:
            sine, cosine = self._on_circle(PRIME - angle)
            return -sine % PRIME, cosine
        if angle not in self._circle:
            h = self._random("circle", angle) if angle else 0
            scale = pow(1 + h * h, -1, PRIME)
            self._circle[angle] = (2 * h * scale % PRIME, (1 - h * h) * scale % PRIME)
        return self._circle[angle]

    @staticmethod
    def _random(kind: str, key: object) -> int:
        return int.from_bytes(blake2b(f"{kind}:{key}".encode(), digest_size=16).digest(), "little") % PRIME
