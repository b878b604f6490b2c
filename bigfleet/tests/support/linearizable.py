"""Whether a history of assignments could have happened one operation at a time.

An operation is what a client asked of one key, when it was asked and when the answer came. A
history is linearizable when every operation can be given one moment between the two, such that each
answer is what the operations before it lead to. An operation without an answer may have happened at
any time after it was asked, or never. Keys do not touch each other: each is checked by itself.

The search goes through the orders that real time allows, depth first, and remembers which sets of
operations led to which value: a set that led there once need not be tried again.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ASSIGN = "assign"
UNASSIGN = "unassign"
READ = "read"
DONE = "done"
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on one key. Times grow; only their order matters."""

    key: str
    kind: str
    shard: str | None
    """What ASSIGN wants, or what READ found."""
    asked: float
    answered: float = math.inf
    """Infinite when no answer came, or none that says whether it was done."""
    answer: str = DONE

    @property
    def known(self) -> bool:
        """Whether anybody knows what became of it."""
        return self.answered != math.inf


def after(value: str | None, operation: Operation) -> tuple[bool, str | None]:
    """Whether an answer is right for a key with this value, and the value afterwards."""
    match operation.kind:
        case "assign":
            free = value is None or value == operation.shard
            right = not operation.known or free == (operation.answer == DONE)
            return right, operation.shard if free else value
        case "unassign":
            return True, None
        case _:
            return not operation.known or value == operation.shard, value


def first_violation(history: Iterable[Operation]) -> tuple[Operation, ...] | None:
    """The operations of a key that cannot be put into any order; None when all can."""
    by_key: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in history:
        by_key[operation.key].append(operation)
    for _, operations in sorted(by_key.items()):
        if not is_linearizable(operations):
            return tuple(operations)
    return None


def is_linearizable(operations: Sequence[Operation]) -> bool:
    """Whether the operations of one key, free at first, can be put into an order."""
    ordered = sorted(operations, key=lambda operation: operation.asked)
    must = sum(1 << at for at, operation in enumerate(ordered) if operation.known)
    start: tuple[int, str | None] = (0, None)
    reached = {start}
    open_ends = [start]
    while open_ends:
        done, value = open_ends.pop()
        if done & must == must:
            return True
        for at in _possible(ordered, done):
            right, then = after(value, ordered[at])
            end = (done | 1 << at, then)
            if right and end not in reached:
                reached.add(end)
                open_ends.append(end)
    return False


def _possible(ordered: Sequence[Operation], done: int) -> list[int]:
    """Which operations may come next: those asked before the first answer that is outstanding."""
    found: list[int] = []
    first_answer = math.inf
    at = _first_open(done)
    for number in range(at, len(ordered)):
        if done >> number & 1:
            continue
        operation = ordered[number]
        if operation.asked > first_answer:
            break
        found.append(number)
        first_answer = min(first_answer, operation.answered)
    return [number for number in found if ordered[number].asked <= first_answer]


def _first_open(done: int) -> int:
    return (~done & (done + 1)).bit_length() - 1
