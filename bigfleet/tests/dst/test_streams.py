"""Streams of the simulation keep their order, and break for each end in its own time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from bigfleet.wire.session import StreamClosedError
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from sim.loop import virtual_loop
from sim.network import Network
from sim.process import Process
from sim.streams import BrokenError, ShardEnd, Switchboard
from sim.trace import Trace


def hello(number: int) -> pb.OperatorMessage:
    return pb.OperatorMessage(hello=pb.Hello(cluster_id=str(number)))


def simulated(story: Callable[[Switchboard], Coroutine[Any, Any, None]], seed: int = 1) -> None:
    loop = virtual_loop(seed)

    async def main() -> None:
        await story(Switchboard(Network(Random(seed), Trace(loop))))

    loop.run(main())


class Echo:
    """A shard that answers every Hello with its name."""

    def __init__(self) -> None:
        self.process = Process("s1")
        self.heard: list[str] = []
        self.ended = ""

    async def serve(self, stream: ShardEnd) -> None:
        try:
            while (message := await stream.receive()) is not None:
                self.heard.append(message.hello.cluster_id)
                ack = pb.Acknowledgement(echo=message.hello.cluster_id)
                await stream.send(pb.ShardMessage(ack=ack))
            self.ended = "closed"
        except BrokenError:
            self.ended = "broken"


def test_frames_arrive_in_order_whatever_each_takes() -> None:
    async def story(board: Switchboard) -> None:
        board.network.weather.straggler = 0.3
        echo = Echo()
        board.listen("s1", echo.process, echo.serve)
        line = await board.dial("c1", "s1")
        for number in range(20):
            await line.send(hello(number))
        back = [await line.receive() for _ in range(20)]
        assert [frame.ack.echo for frame in back if frame] == [str(n) for n in range(20)]
        await line.close()
        assert await line.receive() is None
        assert echo.ended == "closed"

    simulated(story)


def test_where_no_process_listens_the_first_use_says_so() -> None:
    async def story(board: Switchboard) -> None:
        line = await board.dial("c1", "s1")
        with pytest.raises(StreamClosedError, match="UNAVAILABLE"):
            await line.send(hello(1))
        with pytest.raises(StreamClosedError, match="UNAVAILABLE"):
            await line.receive()

    simulated(story)


def test_a_crash_of_the_shard_breaks_its_streams() -> None:
    async def story(board: Switchboard) -> None:
        echo = Echo()
        board.listen("s1", echo.process, echo.serve)
        line = await board.dial("c1", "s1")
        echo.process.crash()
        with pytest.raises(StreamClosedError):
            await line.receive()
        assert echo.ended == ""

    simulated(story)


def test_a_cut_leaves_both_ends_waiting_until_they_notice() -> None:
    async def story(board: Switchboard) -> None:
        loop, echo = asyncio.get_running_loop(), Echo()
        board.listen("s1", echo.process, echo.serve)
        line = await board.dial("c1", "s1")
        await asyncio.sleep(1)
        board.network.cut("c1", "s1")
        begun = loop.time()
        await line.send(hello(1))
        with pytest.raises(StreamClosedError):
            await line.receive()
        await asyncio.sleep(60)
        assert echo.heard == []
        assert echo.ended == "broken"
        assert loop.time() - begun < 92

    for seed in range(5):
        simulated(story, seed)


def test_a_reader_that_does_not_read_makes_the_sender_wait() -> None:
    async def story(board: Switchboard) -> None:
        sent: list[int] = []

        async def serve(stream: ShardEnd) -> None:
            for number in range(1000):
                ack = pb.Acknowledgement(echo=str(number))
                await stream.send(pb.ShardMessage(ack=ack))
                sent.append(number)

        board.listen("s1", Process("s1"), serve)
        line = await board.dial("c1", "s1")
        await asyncio.sleep(100)
        assert len(sent) < 100
        read = 0
        while await line.receive() is not None:
            read += 1
        assert read == len(sent) == 1000

    simulated(story)


def test_how_the_shard_ends_a_stream_is_told_to_the_operator() -> None:
    class AbortedError(Exception):
        code = "ABORTED"

    async def story(board: Switchboard) -> None:
        async def serve(stream: ShardEnd) -> None:
            raise AbortedError("replaced")

        board.listen("s1", Process("s1"), serve)
        line = await board.dial("c1", "s1")
        with pytest.raises(StreamClosedError, match="ABORTED: replaced"):
            await line.receive()

    simulated(story)
