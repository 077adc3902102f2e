"""The user's own functions and splines in C."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kanegen.codegen.printer import literal
from kanegen.codegen.text import comment
from kanegen.graph.derivatives import reachable
from kanegen.graph.functions import Spline
from kanegen.program.records import Program


@dataclass(frozen=True)
class UserFunction:
    """One function of the user: generated C name, name for a comment, argument names, lines of its body."""

    identifier: str
    title: str
    arguments: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True)
class UserSpline:
    """One spline: generated C name, name for a comment, breakpoints and rows of coefficients as literals."""

    identifier: str
    title: str
    degree: int
    breakpoints: tuple[str, ...]
    coefficients: tuple[str, ...]


@dataclass(frozen=True)
class UserCode:
    """All functions and splines a program calls; ``names`` maps each payload to its C name."""

    functions: tuple[UserFunction, ...]
    splines: tuple[UserSpline, ...]
    names: Mapping[object, str]


def user_code(program: Program) -> UserCode:
    """What the calls of a program need, in the order in which the graph first called them."""
    nodes = reachable(root for function in program.functions for root in function.roots)
    called = dict.fromkeys(node.payload for node in nodes if node.op == "call")
    names: dict[object, str] = {}
    functions: list[UserFunction] = []
    splines: list[UserSpline] = []
    for payload in called:
        kind = "spline" if isinstance(payload, Spline) else "function"
        names[payload] = f"user_{kind}_{len(names)}"
        if isinstance(payload, Spline):
            splines.append(_spline(names[payload], payload))
        else:
            lines = tuple(payload.c_body.splitlines())
            functions.append(UserFunction(names[payload], comment(payload.name), tuple(payload.arguments), lines))
    return UserCode(tuple(functions), tuple(splines), names)


def _spline(identifier: str, spline: Spline) -> UserSpline:
    return UserSpline(
        identifier,
        comment(spline.name),
        spline.degree,
        tuple(literal(x) for x in spline.breakpoints),
        tuple(", ".join(literal(c) for c in piece) for piece in spline.coefficients),
    )
