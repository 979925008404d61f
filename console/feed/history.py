"""Bounded history that every snapshot can hold without a copy of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class Stretch(Sequence[T]):
    """The points of a history at one moment. Immutable: the list behind it only ever grows beyond `stop`."""

    __slots__ = ("_items", "_start", "_stop")

    def __init__(self, items: list[T], start: int, stop: int) -> None:
        self._items, self._start, self._stop = items, start, stop

    def __len__(self) -> int:
        return self._stop - self._start

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            first, last, step = index.indices(len(self))
            return tuple(self._items[self._start + at] for at in range(first, last, step))
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(index)
        return self._items[self._start + at]

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self._start, self._stop)

    def __reversed__(self) -> Iterator[T]:
        return (self._items[at] for at in range(self._stop - 1, self._start - 1, -1))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Stretch) and other._items is self._items:
            return (other._start, other._stop) == (self._start, self._stop)
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Stretch({list(self)!r})"


class History(Generic[T]):
    """The newest `most` points, oldest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: list[T] = []

    def __len__(self) -> int:
        return min(len(self._items), self._most)

    def append(self, item: T) -> None:
        """Add the newest point."""
        if len(self._items) >= 2 * self._most:
            self._items = self._items[1 - self._most :]  # a new list: stretches handed out keep theirs
        self._items.append(item)

    def view(self) -> Stretch[T]:
        """What it holds now; costs the same however much that is."""
        stop = len(self._items)
        return Stretch(self._items, max(0, stop - self._most), stop)
