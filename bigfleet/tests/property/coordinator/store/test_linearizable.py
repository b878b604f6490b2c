"""The checker of histories against the plain definition: some order of all operations fits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from linearizable import ASSIGN, DONE, READ, REFUSED, UNASSIGN, Operation, after, is_linearizable

SHARDS = ("a", "b")


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    kind = draw(st.sampled_from((ASSIGN, UNASSIGN, READ)))
    asked = draw(st.integers(0, 8))
    answered: float = draw(st.one_of(st.just(math.inf), st.integers(asked + 1, 10)))
    answer = draw(st.sampled_from((DONE, REFUSED))) if kind == ASSIGN else DONE
    shard = None
    if kind == ASSIGN:
        shard = draw(st.sampled_from(SHARDS))
    if kind == READ:
        shard = draw(st.sampled_from((None, *SHARDS)))
    return Operation("k", kind, shard, asked, answered, answer)


def by_definition(history: Sequence[Operation]) -> bool:
    unknown = [operation for operation in history if not operation.known]
    known = [operation for operation in history if operation.known]
    for chosen in range(1 << len(unknown)):
        happened = known + [each for at, each in enumerate(unknown) if chosen >> at & 1]
        if any(fits(order) for order in permutations(happened)):
            return True
    return False


def fits(order: Sequence[Operation]) -> bool:
    value: str | None = None
    for at, operation in enumerate(order):
        if any(later.answered < operation.asked for later in order[at + 1 :]):
            return False
        right, value = after(value, operation)
        if not right:
            return False
    return True


@given(st.lists(operations(), max_size=5))
def test_the_checker_agrees_with_the_definition(history: list[Operation]) -> None:
    assert is_linearizable(history) == by_definition(history)
