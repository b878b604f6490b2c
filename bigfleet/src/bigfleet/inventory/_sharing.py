"""What the machines of a batch share: mappings by object or content, labels split at topology.

Providers hand over thousands of machines with the same few label sets and shapes, sometimes as
one object, sometimes as equal ones. Each is looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from bigfleet.inventory._topology import Topology

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
K = TypeVar("K")
V = TypeVar("V")

_REMEMBERED = 2**16
"""Contents remembered inside one batch: a set with a hostname in it never comes twice."""


class Memo(dict[K, int], Generic[K]):
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


class SplitLabels:
    """The labels of a batch: a number per machine for the plain ones, columns for topology."""

    __slots__ = ("plain", "plain_sets", "topology")

    def __init__(self, labels: Sequence[Mapping[str, str]], topology: Topology) -> None:
        whole, plain = Contents[str](), Contents[str]()
        mine = np.array(whole.number_all(labels), np.int64)
        keys = frozenset(topology.keys)
        values: dict[str, I32] = {}
        plain_of = np.empty(len(whole.distinct), np.int64)
        for i, labelled in enumerate(whole.distinct):
            apart = keys & labelled.keys()
            for key in apart:
                if key not in values:
                    values[key] = np.full(len(whole.distinct), -1, np.int32)
                values[key][i] = topology.names(key).of(labelled[key])
            plain_of[i] = plain.number({k: v for k, v in labelled.items() if k not in apart})
        self.plain: list[int] = plain_of[mine].tolist()
        self.plain_sets: Sequence[Mapping[str, str]] = plain.distinct
        self.topology: Mapping[str, I32] = {key: column[mine] for key, column in values.items()}
