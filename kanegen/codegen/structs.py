"""The structs of C headers, read from their text and declared for Cython and for ctypes: each is typed once, in C."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Iterator
from functools import cache
from keyword import iskeyword
from typing import Any, Final, NamedTuple

_NOT_CODE = re.compile(r"/\*.*?\*/|^#.*?$", re.DOTALL | re.MULTILINE)

_CTYPES: Final = {
    "int": ctypes.c_int,
    "long long": ctypes.c_longlong,
    "double": ctypes.c_double,
    "kg_real": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "ptrdiff_t": ctypes.c_ssize_t,
}

_OTHER_TYPES: Final = ("void", "char", "unsigned char", "kg_evaluate")
"""Types that Cython knows besides, or that module_declarations.pxi declares."""


class Field(NamedTuple):
    """A field: ``type`` with the asterisks of a pointer; ``arguments`` of a pointer to a function, in parentheses."""

    type: str
    name: str
    arguments: str = ""

    @property
    def types(self) -> set[str]:
        """The types without ``const`` and asterisks, also those of the arguments."""
        texts = [f"{self.type} x", *filter(None, self.arguments[1:-1].split(","))]
        return {text.rpartition(" ")[0].partition("*")[0].replace("const ", "").strip() for text in texts}


@cache
def structs(header: str) -> dict[str, tuple[Field, ...]]:
    """The structs that a header declares, by name, without those that contain structs without a name."""
    found = {}
    for text in _NOT_CODE.sub("", header).split("typedef struct")[1:]:
        before, brace, rest = text.partition("{")
        if brace and ";" not in before:
            fields, _, after = rest.partition("}")
            if "{" not in fields:
                found[after.partition(";")[0].strip()] = tuple(_fields(fields))
    return found


def _fields(text: str) -> Iterator[Field]:
    for declaration in filter(None, (" ".join(part.split()) for part in text.split(";"))):
        if "(*" in declaration:
            result, _, rest = declaration.partition("(*")
            name, _, arguments = rest.partition(")")
            yield Field(result.strip(), name, arguments.strip())
            continue
        first, *others = declaration.split(",")
        head, _, name = first.rpartition(" ")
        base = head.partition("*")[0].strip()
        for own, item in ((head, name), *((base, other.strip()) for other in others)):
            yield Field(f"{own} {'*' * item.count('*')}".strip(), item.replace("*", ""))


def cython_structs(header: str, names: Iterable[str], known: Iterable[str] = ()) -> str:
    """Declarations of structs of a header for ``cdef extern``, in this order.

    Fields whose types are unknown there are left out: ``known`` names structs that are declared already.
    """
    blocks, types = [], {*_CTYPES, *_OTHER_TYPES, *known}
    for name in names:
        fields = [field for field in structs(header)[name] if field.types <= types and "[" not in field.name]
        blocks.append(f"    ctypedef struct {name}:\n" + "".join(map(_cython, fields)))
        types.add(name)
    return "".join(blocks).replace("kg_real", "double").replace("ptrdiff_t", "Py_ssize_t")


def _cython(field: Field) -> str:
    if field.arguments:
        return f"        {field.type} (*{field.name}){field.arguments} noexcept nogil\n"
    renamed = f'{field.name}_ "{field.name}"' if iskeyword(field.name) else field.name
    return f"        {field.type} {renamed}\n"


def ctypes_struct(header: str, name: str, **known: type[ctypes.Structure]) -> type[Any]:
    """A struct of a header as a class of ctypes, whose pointers are addresses; ``known``: those of structs in it."""
    types: dict[str, Any] = {**_CTYPES, **known}
    fields = [
        (field.name, ctypes.c_void_p if field.arguments or field.type.endswith("*") else types[field.type])
        for field in structs(header)[name]
    ]
    return type(name, (ctypes.Structure,), {"_fields_": fields})
