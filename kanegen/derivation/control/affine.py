"""Generalized forces affine in controls, ``P = P0 + G tau``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kanegen.derivation.equations import Equations
from kanegen.errors import ModelError
from kanegen.graph import Node, Tangent, reachable, substitute


@dataclass(frozen=True)
class AffineControls:
    """Forces affine in the controls, ``P = P0 + G tau``: ``free`` is P0 (n_u,), ``columns`` those of G (n_u, n_tau)."""

    slots: tuple[int, ...]
    names: tuple[str, ...]
    free: tuple[Node, ...]
    columns: tuple[tuple[Node, ...], ...]


def affine_controls(equations: Equations, slots: Sequence[int]) -> AffineControls:
    """P0 and G of the inputs ``slots`` (indices among the inputs of the model).

    Raises
    ------
    ModelError
        Naming the inputs that do not enter the forces, enter them other than affinely, or stand elsewhere.
    """
    system = equations.system
    tau = [system.r[k] for k in slots]
    names = [equations.model.inputs[k].name for k in slots]
    P = equations.right_side
    columns = [tuple(Tangent(system.graph, {node: system.graph.one})(x) for x in P) for node in tau]
    problems = _entries_elsewhere(equations, tau, names)
    for name, column in zip(names, columns, strict=True):
        if system.vanish(column):
            problems.append(
                f"the control {name} does not enter the generalized forces: no load that contains it does work; put it "
                "into a load, or leave it out of controls="
            )
        elif not system.vanish(Tangent(system.graph, {node: system.graph.one})(x) for node in tau for x in column):
            problems.append(
                f"the control {name} enters the forces nonlinearly: expected forces affine in the controls; take the "
                "nonlinear expression itself for the control, and solve it afterwards"
            )
    if problems:
        raise ModelError(problems)
    free = substitute(P, dict.fromkeys(tau, system.graph.zero))
    return AffineControls(
        tuple(slots), tuple(names), equations.simplified(free), tuple(equations.simplified(c) for c in columns)
    )


def _entries_elsewhere(equations: Equations, tau: Sequence[Node], names: Sequence[str]) -> list[str]:
    """Controls that stand in anything but the forces."""
    system, rows = equations.system, equations.constraints.rows
    mass = [entry for row in equations.mass_matrix for entry in row]
    places: tuple[tuple[str, list[Node]], ...] = (
        ("the kinematics", list(system.qdot)),
        ("a velocity or the mass of a body", mass),
        ("the constraints", [x for row in rows for x in (*row.J, row.bias, *row.residuals)]),
    )
    problems = []
    for place, nodes in places:
        present = {node.index for node in reachable(nodes)}
        problems += [
            f"the control {name} enters {place}: controls may enter the forces only, affinely"
            for name, node in zip(names, tau, strict=True)
            if node.index in present
        ]
    return problems
