"""The outbox against a plain list of (key, frame)."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.shard.operators.outbox import Outbox, OutboxFullError

PUT = st.tuples(st.just("put"), st.sampled_from(["", "", "a", "b", "c"]))
STEPS = st.lists(st.one_of(PUT, PUT, st.just(("take", ""))), max_size=60)


@given(st.integers(2, 6), STEPS)
def test_it_is_a_bounded_list_in_which_keys_are_replaced_in_place(
    bound: int, steps: list[tuple[str, str]]
) -> None:
    async def story() -> None:
        outbox: Outbox[int] = Outbox(bound)
        queued: list[tuple[str, int]] = []
        for number, (step, key) in enumerate(steps):
            if step == "take":
                if queued:
                    assert await outbox.take() == queued.pop(0)[1]
                continue
            places = [at for at, (other, _) in enumerate(queued) if key and other == key]
            full = len(queued) == bound and not places
            try:
                outbox.put(number, key)
            except OutboxFullError:
                assert full
                continue
            assert not full
            if places:
                queued[places[0]] = (key, number)
            else:
                queued.append((key, number))
            assert len(outbox) == len(queued)
        while queued:
            assert await outbox.take() == queued.pop(0)[1]

    asyncio.run(story())


@given(st.integers(2, 9), st.integers(0, 40), st.lists(st.booleans(), max_size=80))
def test_what_waits_for_room_never_fills_it(bound: int, replay: int, reads: list[bool]) -> None:
    async def story() -> None:
        outbox: Outbox[int] = Outbox(bound)

        async def feed() -> None:
            for number in range(replay):
                await outbox.has_room()
                outbox.put(number)

        feeding = asyncio.ensure_future(feed())
        taken = []
        for read in reads:
            await asyncio.sleep(0)
            assert len(outbox) <= bound // 2 + 1
            if read and len(outbox):
                taken.append(await outbox.take())
        while len(taken) < replay:
            taken.append(await outbox.take())
        await feeding
        assert taken == list(range(replay))

    asyncio.run(story())
