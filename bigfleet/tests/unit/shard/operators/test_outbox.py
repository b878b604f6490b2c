"""What waits for a session's writer."""

import asyncio

import pytest

from bigfleet.shard.operators.outbox import Outbox, OutboxFullError


async def drained(outbox: Outbox[str]) -> list[str]:
    return [await outbox.take() for _ in range(len(outbox))]


async def test_a_key_is_replaced_in_place() -> None:
    outbox: Outbox[str] = Outbox()
    for frame, key in (("a1", "a"), ("ack", ""), ("b1", "b"), ("a2", "a")):
        outbox.put(frame, key)
    assert await drained(outbox) == ["a2", "ack", "b1"]


async def test_frames_without_a_key_keep_order_and_number() -> None:
    outbox: Outbox[str] = Outbox()
    for number in range(100):
        outbox.put(str(number))
    assert await drained(outbox) == [str(number) for number in range(100)]


async def test_a_full_outbox_takes_only_what_replaces() -> None:
    outbox: Outbox[str] = Outbox(2)
    outbox.put("a1", "a")
    outbox.put("ack")
    outbox.put("a2", "a")
    for key in ("", "b"):
        with pytest.raises(OutboxFullError):
            outbox.put("more", key)
    assert await drained(outbox) == ["a2", "ack"]


async def test_the_bound_is_8192_frames() -> None:
    outbox: Outbox[str] = Outbox()
    for _ in range(8192):
        outbox.put("frame")
    with pytest.raises(OutboxFullError):
        outbox.put("frame")


async def test_a_key_that_was_taken_is_queued_again() -> None:
    outbox: Outbox[str] = Outbox()
    outbox.put("a1", "a")
    outbox.put("ack")
    assert await outbox.take() == "a1"
    outbox.put("a2", "a")
    assert await drained(outbox) == ["ack", "a2"]


async def test_a_reader_waits_for_a_frame() -> None:
    outbox: Outbox[str] = Outbox()
    taking = asyncio.ensure_future(outbox.take())
    await asyncio.sleep(0)
    assert not taking.done()
    outbox.put("late")
    assert await taking == "late"


def test_an_outbox_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="use 2 or more"):
        Outbox(1)
