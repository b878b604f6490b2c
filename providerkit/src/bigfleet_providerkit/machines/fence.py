"""Fencing marks: per (shard, machine), the highest token that was accepted.

A token passes when it is strictly newer than the mark, by epoch and then by sequence; numbers are
compared whatever their sign, and the first token of a pair always passes. Marks of
machines that exist are never dropped. Marks of unknown ids are kept too, since the fence stands
before the question whether a machine exists, but only the newest of them: anybody can make up ids.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MOST_UNKNOWN = 1024
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Token:
    """Who asks, in which life, with which attempt."""

    shard: str
    epoch: int
    sequence: int

    @property
    def zero(self) -> bool:
        """The all-zero token is not fenced."""
        return not self.shard and self.epoch == 0 and self.sequence == 0


@dataclass(frozen=True, slots=True)
class Mark:
    """The highest accepted token of a pair; `moved` orders marks by age."""

    epoch: int
    sequence: int
    moved: int = 0


def newer(token: Token, mark: Mark | None) -> bool:
    """Whether a token passes a mark."""
    return mark is None or (token.epoch, token.sequence) > (mark.epoch, mark.sequence)


class FenceBook:
    """All marks. Moving one says which others had to leave."""

    def __init__(self, most_unknown: int = MOST_UNKNOWN) -> None:
        self._known: dict[Pair, Mark] = {}
        self._unknown: dict[Pair, Mark] = {}
        self._most_unknown = most_unknown
        self._moves = 0

    def __len__(self) -> int:
        return len(self._known) + len(self._unknown)

    def load(self, marks: Iterable[tuple[Pair, Mark]], exists: Iterable[str]) -> None:
        """Take marks from the store."""
        machines = set(exists)
        for pair, mark in sorted(marks, key=lambda entry: entry[1].moved):
            (self._known if pair[1] in machines else self._unknown)[pair] = mark
            self._moves = max(self._moves, mark.moved)

    def mark(self, shard: str, machine: str) -> Mark | None:
        """The mark of a pair, if there is one."""
        pair = (shard, machine)
        return self._known.get(pair) or self._unknown.get(pair)

    def next_mark(self, token: Token) -> Mark:
        """The mark that a passing token makes."""
        self._moves += 1
        return Mark(token.epoch, token.sequence, self._moves)

    def settle(self, pair: Pair, mark: Mark, *, exists: bool) -> None:
        """Put a committed mark in its place."""
        self._unknown.pop(pair, None)
        if exists:
            self._known[pair] = mark
        else:
            self._known.pop(pair, None)
            self._unknown[pair] = mark

    def surplus(self) -> Iterator[Pair]:
        """Take out the oldest marks of unknown ids that no longer have room."""
        while len(self._unknown) > self._most_unknown:
            pair = next(iter(self._unknown))
            del self._unknown[pair]
            yield pair

    def machine_left(self, machine: str) -> None:
        """A machine no longer exists: its marks become marks of an unknown id."""
        for pair in [pair for pair in self._known if pair[1] == machine]:
            self._unknown[pair] = self._known.pop(pair)

    def machine_came(self, machine: str) -> None:
        """A machine exists now: its marks are kept for good."""
        if not self._unknown:
            return
        for pair in [pair for pair in self._unknown if pair[1] == machine]:
            self._known[pair] = self._unknown.pop(pair)
