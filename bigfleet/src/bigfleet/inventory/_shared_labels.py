"""What the machines of a batch share: mappings by object or content, labels split at topology.

Providers hand over thousands of machines with the same few label sets and shapes, sometimes as
one object, sometimes as equal ones. Each is looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from bigfleet.inventory._classes import ClassSlots
from bigfleet.inventory._topology import ALWAYS_MATCHABLE, TopologyColumns

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
K = TypeVar("K")
V = TypeVar("V")

_REMEMBERED = 2**16
"""Contents remembered inside one batch: a set with a hostname in it never comes twice."""


class NumberMemo(dict[K, int], Generic[K]):
    """A lookup that computes what is missing; what is found never enters Python code."""

    def __init__(self, make: Callable[[K], int]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: K) -> int:
        number = self[key] = self._make(key)
        return number


class Contents(Generic[V]):
    """Mappings numbered by content. Equal ones of another inner order may get two numbers."""

    __slots__ = ("_numbers", "distinct")

    def __init__(self) -> None:
        self.distinct: list[Mapping[str, V]] = []
        self._numbers: dict[tuple[tuple[str, V], ...], int] = {}

    def number_all(self, mappings: Iterable[Mapping[str, V] | None]) -> list[int]:
        """The number of each mapping, -1 for none. The mappings must outlive the call."""
        by_object: dict[int, int] = {}
        numbers = []
        for mapping in mappings:
            number = by_object.get(id(mapping))
            if number is None:
                number = by_object[id(mapping)] = -1 if mapping is None else self.number(mapping)
            numbers.append(number)
        return numbers

    def number(self, mapping: Mapping[str, V]) -> int:
        """The number of one mapping."""
        content = tuple(mapping.items())
        number = self._numbers.get(content)
        if number is None:
            if len(self._numbers) == _REMEMBERED:
                self._numbers.clear()
            number = self._numbers[content] = len(self.distinct)
            self.distinct.append(mapping)
        return number


def overflowing_labels(
    label_sets: Iterable[Mapping[str, str]], topology: TopologyColumns, classes: ClassSlots
) -> Iterator[str]:
    """Labels that would have too many values to be part of classes, were these sets added."""
    apart = set(topology.keys) | ALWAYS_MATCHABLE
    values: dict[str, set[str]] = {}
    for labels in label_sets:
        for key, value in labels.items():
            if key in apart:
                continue
            seen = values.get(key)
            if seen is None:
                seen = values[key] = set(classes.values_of(key))
            seen.add(value)
            if len(seen) > topology.most_values:
                apart.add(key)
                yield key


def split_labels(
    label_sets: Sequence[Mapping[str, str]], topology: TopologyColumns
) -> tuple[I64, Sequence[Mapping[str, str]], Mapping[str, I32]]:
    """Per label set, the number of what is plain in it and the numbers of its topology values."""
    plain = Contents[str]()
    numbers: list[int] = []
    values: dict[str, list[int]] = {key: [] for key in topology.keys}
    columns = [(key, found.append) for key, found in values.items()]
    for labels in label_sets:
        rest = dict(labels)
        for key, append in columns:
            value = rest.pop(key, None)
            append(-1 if value is None else topology.names(key).of(value))
        numbers.append(plain.number(rest))
    present = {key: np.array(found, np.int32) for key, found in values.items()}
    return (
        np.array(numbers, np.int64),
        plain.distinct,
        {key: column for key, column in present.items() if (column >= 0).any()},
    )
