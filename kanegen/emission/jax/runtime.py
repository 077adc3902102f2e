"""The text of the kernels in JAX that a module calls, and of the functions that these call."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from kanegen.resources import template_folder

KERNELS_FILE = "kernels.py"
"""The kernels in ``templates/jax``: functions and constants that need jax only."""


@dataclass(frozen=True)
class Definition:
    """A function or a constant of the file: its text, its parameters, and the names in it."""

    text: str
    parameters: tuple[str, ...]
    names: frozenset[str]


@cache
def definitions() -> Mapping[str, Definition]:
    """All definitions by name, in the order of the file."""
    text = (template_folder() / "jax" / KERNELS_FILE).read_text(encoding="utf-8")
    found: dict[str, Definition] = {}
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.FunctionDef):
            parameters = tuple(argument.arg for argument in statement.args.args)
            found[statement.name] = Definition(_source(text, statement), parameters, names_in(statement))
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            # function.defjvp(rule) follows its rule, which whoever calls the function needs.
            function, rule = sorted(names_in(statement), key=list(found).index)
            text_of_rule = f"{found[rule].text}\n\n\n{_source(text, statement)}"
            found[rule] = replace(found[rule], text=text_of_rule)
            found[function] = replace(found[function], names=found[function].names | {rule})
    return found


def _source(text: str, statement: ast.stmt) -> str:
    """The lines of a definition, with its decorators."""
    first = min([statement.lineno, *(item.lineno for item in getattr(statement, "decorator_list", ()))])
    return "\n".join(text.splitlines()[first - 1 : statement.end_lineno])


def names_in(tree: ast.AST) -> frozenset[str]:
    """The names of variables and functions that occur in a syntax tree."""
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def kernel_texts(code: str) -> list[str]:
    """The definitions that a text of Python needs, in the order of the file."""
    known = definitions()
    needed: set[str] = set()
    waiting = names_in(ast.parse(code)) & known.keys()
    while waiting:
        needed |= waiting
        waiting = frozenset(name for item in waiting for name in known[item].names & known.keys()) - needed
    return [definition.text for name, definition in known.items() if name in needed]
