"""How a line ended is what the shard said of it, also where the library says something else."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, cast

import grpc
import pytest

from bigfleet.wire.session import LOST_STATUS, GrpcSessionStream, SessionBackoff, StreamClosedError
from sim.loop import virtual_loop

Status = tuple[grpc.StatusCode, str]
ABORTED = (grpc.StatusCode.ABORTED, "a newer session has taken over")
OWN = (grpc.StatusCode.INTERNAL, LOST_STATUS)


class Call:
    """A call of which every write fails; a status replaces the one before, as in the library."""

    def __init__(self) -> None:
        self.status: Status | None = None
        self._told: list[Callable[[Any], None]] = []

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self._told.append(callback)

    def ends(self, status: Status) -> None:
        self.status = status
        for callback in self._told:
            callback(self)

    async def code(self) -> grpc.StatusCode:
        assert self.status is not None
        return self.status[0]

    async def details(self) -> str:
        assert self.status is not None
        return self.status[1]

    async def write(self, _frame: bytes) -> None:
        raise asyncio.InvalidStateError("RPC already finished.")


def ending(*statuses: Status, later: Status | None = None) -> tuple[str, str, float]:
    """What a writer learns, and after how many seconds; `later` comes while it waits."""

    async def scene() -> tuple[str, str, float]:
        loop, call = asyncio.get_running_loop(), Call()
        line = GrpcSessionStream(cast(Any, call))
        for status in statuses:
            call.ends(status)
        if later is not None:
            loop.call_later(0.5, call.ends, later)
        began = loop.time()
        with pytest.raises(StreamClosedError) as ended:
            await line.send_bytes(b"x")
        return ended.value.code, ended.value.text, loop.time() - began

    return virtual_loop(1).run(scene())


def test_the_librarys_own_status_does_not_hide_the_shards() -> None:
    said = ("ABORTED", ABORTED[1])
    assert ending(ABORTED) == (*said, 0.0)
    assert ending(ABORTED, OWN) == (*said, 0.0)
    assert ending(OWN, later=ABORTED) == (*said, 0.5)


def test_a_status_that_never_comes_is_waited_for_a_second() -> None:
    assert ending(OWN) == ("INTERNAL", LOST_STATUS, 1.0)


def test_the_first_word_of_a_shard_stands() -> None:
    cut = (grpc.StatusCode.CANCELLED, "Locally cancelled by application!")
    assert ending(ABORTED, cut)[0] == "ABORTED"


def test_pauses_grow_while_another_takes_over_or_may_have() -> None:
    pauses = SessionBackoff(Random(1))
    for bound in (0.5, 1.0):
        assert bound / 2 <= pauses.after(good=True, code="ABORTED") <= bound
    for bound in (2.0, 4.0):
        pause = pauses.after(good=True, code="INTERNAL", text=LOST_STATUS)
        assert bound / 2 <= pause <= bound
    assert pauses.after(good=True, code="INTERNAL", text="a bug") <= 0.5
