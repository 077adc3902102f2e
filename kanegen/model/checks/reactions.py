"""Checks of the reactions that a model names."""

from __future__ import annotations

from kanegen.model.description import SystemDescription
from kanegen.model.geometry.routes import breadth_first
from kanegen.model.reactions import Reaction


def reaction_problems(model: SystemDescription) -> list[str]:
    """Problems of the bodies, points, loads and constraints that the reactions of a model name."""
    return [
        f"reactions[{name!r}]: {problem}"
        for name, reaction in model.reactions.items()
        for problem in (
            *_body_problems(model, reaction),
            *_point_problems(model, reaction),
            *_load_problems(model, reaction),
            *_row_problems(model, reaction),
        )
    ]


def _body_problems(model: SystemDescription, reaction: Reaction) -> list[str]:
    names = [body.name for body in model.bodies]
    problems = []
    for body in reaction.bodies:
        name = body if isinstance(body, str) else body.name
        if name not in names or not (isinstance(body, str) or body in model.bodies):
            problems.append(f"body {name!r} is not part of the model: expected some of {', '.join(names)}")
        elif isinstance(body, str) and names.count(name) > 1:
            problems.append(f"{names.count(name)} bodies are named {name!r}: give the body itself")
    return problems


def _point_problems(model: SystemDescription, reaction: Reaction) -> list[str]:
    problems = []
    for k in reaction.members(model.bodies):
        body = model.bodies[k]
        known = breadth_first(body.masscenter, lambda point: point._pos_dict)
        if reaction.point not in known:
            problems.append(
                f"point {reaction.point} is not part of the model: no position connects it with the mass center of "
                f"body {body.name}; position it with set_pos, or name one of the points "
                f"{', '.join(sorted(str(point) for point in known))}"
            )
    return problems


def _load_problems(model: SystemDescription, reaction: Reaction) -> list[str]:
    places = [place for place, _ in (*model.loads, *model.contact_loads)]
    unknown = [place for place in reaction.loads or () if place not in places]
    if not unknown:
        return []
    known = ", ".join(dict.fromkeys(map(str, places))) or "nothing"
    return [f"no load acts on {', '.join(map(str, unknown))}: the loads of the model act on {known}"]


def _row_problems(model: SystemDescription, reaction: Reaction) -> list[str]:
    wrong = [row for row in reaction.multipliers if not 0 <= row < len(model.constraints)]
    if not wrong:
        return []
    known = ", ".join(f"{row} ({expression})" for row, expression in enumerate(model.constraints)) or "none"
    return [f"multipliers names the rows {', '.join(map(str, wrong))} of J: the constraints are {known}"]
