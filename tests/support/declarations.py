"""The text of kanegen/quantities.py: declarations of the quantities of the catalogue."""

from __future__ import annotations

from kanegen.program.catalogue import ATTRIBUTES, CATALOGUE, Entry

MARK = "        # From the catalogue:\n"
"""The line before the declarations that follow from the catalogue; what is above it is written by hand."""

STATE = "self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None"
NUMBERS = "self, t: float, q: Numbers, u: Numbers, r: Any = None, s: Any = None, *, forces: Any = None"

ARRAY = '''
{array}
            """{text}, {shape}; (N, ...) at N states."""
'''

NUMBER = '''
        @overload
{number} ...
        @overload
{any} ...
{any}
            """{text}, a float; (N,) at N states."""
'''

PROPERTY = '''
        @property
        def {name}(self) -> Array:
            """{text}, {shape}."""
'''


def text(present: str) -> str:
    """The text of the file, with what is written by hand in its ``present`` text."""
    functions = [_of_solver(CATALOGUE[name]) for name in ATTRIBUTES]
    properties = [_of_solution(CATALOGUE[name]) for name in ATTRIBUTES]
    of_solver, between, _ = present.split(MARK)
    of_solution = between[between.index("\n\nclass ") :]
    return of_solver + MARK + "".join(functions) + of_solution + MARK + "".join(properties)


def _of_solver(entry: Entry) -> str:
    signatures = {
        "array": _signature(entry.name, STATE, "Array"),
        "number": _signature(entry.name, NUMBERS, "float"),
        "any": _signature(entry.name, STATE, "Any"),
    }
    template = ARRAY if entry.shape else NUMBER
    return template.format(text=_summary(entry), shape=_shape(entry.shape), **signatures)


def _signature(name: str, arguments: str, result: str) -> str:
    """The first lines of a method, broken as the formatter does it."""
    line = f"        def {name}({arguments}) -> {result}:"
    return line if len(line) <= 120 else f"        def {name}(\n            {arguments}\n        ) -> {result}:"


def _of_solution(entry: Entry) -> str:
    return PROPERTY.format(name=entry.name, text=_summary(entry), shape=_shape(("n_t", *entry.shape)))


def _summary(entry: Entry) -> str:
    unit = f" in {entry.unit}" if entry.unit else ""
    return f"{entry.summary[:1].upper()}{entry.summary[1:]}{unit}"


def _shape(sizes: tuple[str, ...]) -> str:
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
