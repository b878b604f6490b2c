"""However often and in whatever order instructions are delivered, each is done once."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from coordinating import Shard, answer, machine, outcomes, transfer

MACHINES = 12


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[dict[str, int], list[tuple[int, list[str]]]]:
    """Pick instructions by id, and answers that carry some of them, each with the term it has."""
    names = [f"m-{n}/pick" for n in range(draw(st.integers(1, 4)))]
    counts = {name: draw(st.integers(1, 4)) for name in names}
    answers = draw(
        st.lists(
            st.tuples(st.integers(0, 4), st.lists(st.sampled_from(names), max_size=4)),
            max_size=8,
        )
    )
    return counts, answers


@given(deliveries())
def test_instructions_are_done_once_whatever_is_delivered(
    drawn: tuple[dict[str, int], list[tuple[int, list[str]]]],
) -> None:
    counts, answers = drawn
    shard = Shard(machines=[machine(f"m-{n:02d}") for n in range(MACHINES)])
    mark, done, left = 0, dict[str, list[str]](), MACHINES
    for term, names in answers:
        said = [transfer(name, count=counts[name]) for name in names]
        for one in said:
            one.coordinator_term = term
        acks = asyncio.run(shard.instructions.take(answer(*said, term=term)))
        if 0 < term < mark:
            assert acks == []
            continue
        mark = max(mark, term)
        assert len(acks) == len(names)
        for name, ack in zip(names, acks, strict=True):
            if name in done:
                assert ack.reason == "duplicate-redelivery"
                assert list(ack.machine_ids) == done[name]
            elif term < mark:
                assert outcomes([ack]) == ["REJECTED_STALE"]
            else:
                assert outcomes([ack]) == ["ACCEPTED"]
                done[name] = list(ack.machine_ids)
                assert len(done[name]) == min(counts[name], left)
                left -= len(done[name])
    given_away = [one for ids in done.values() for one in ids]
    assert len(given_away) == len(set(given_away))
    assert len(shard.book) == MACHINES - len(given_away)
    assert shard.instructions.term == mark
    held = {one for t in shard.ownership.transfers for one in t.machine_ids}
    assert held == set(given_away)
