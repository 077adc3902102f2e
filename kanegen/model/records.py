"""Small read-only records a :class:`Model` is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenMapping(Mapping[K, V], Generic[K, V]):
    """A read-only mapping that keeps its order and, unlike ``MappingProxyType``, can be pickled."""

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self._items: dict[K, V] = dict(items)

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._items!r})"


@dataclass(frozen=True)
class Output:
    """A quantity the user asked for by name.

    ``expressions`` are its entries in row-major order; ``shape`` is ``()`` for a scalar, ``(n,)`` for a
    list, a column or a vector's three components, ``(rows, columns)`` for another matrix.
    """

    name: str
    expressions: tuple[Any, ...]
    shape: tuple[int, ...]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.expressions)

    def __len__(self) -> int:
        return len(self.expressions)
