"""Sessions over real connections: order, size, haste, silence and lies."""

import asyncio
import contextlib
import gc
import ipaddress
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import grpc
import grpc.aio
import pytest

from bigfleet.model import MachineState, Profile
from bigfleet.observe.process import Threads
from bigfleet.shard.operators import grpc_server
from bigfleet.shard.operators.grpc_server import SERVICE, Context, GrpcStream, add_sessions
from bigfleet.wire.channel import open_channel
from bigfleet.wire.rollup_limits import RollUpLimits
from bigfleet.wire.server import WireServer
from bigfleet_api.v1alpha1 import shard_pb2, shard_pb2_grpc
from operators import PATIENCE, Desk, hello, machine
from rollups import rollup, row, typical

T = TypeVar("T")
Call = grpc.aio.StreamStreamCall[shard_pb2.OperatorMessage, shard_pb2.ShardMessage]
Open = Callable[[], Call]
HOST = str(ipaddress.IPv4Address("127.0.0.1"))


class Parsed:
    """Runs functions in a thread and counts them."""

    def __init__(self) -> None:
        self.count = 0
        self._threads = Threads("parsing", 1)

    async def __call__(self, function: Callable[[], T]) -> T:
        self.count += 1
        return await self._threads(function)

    def close(self) -> None:
        self._threads.close()


class Served:
    """A shard's sessions with a port."""

    def __init__(self, desk: Desk, parsed: Parsed, address: str) -> None:
        self.desk = desk
        self.parsed = parsed
        self.address = address
        self.channels: list[grpc.aio.Channel] = []

    def raw(self) -> grpc.aio.StreamStreamCall[bytes, bytes]:
        """Open a stream of bytes."""
        channel = open_channel(self.address, None)
        self.channels.append(channel)
        method: grpc.aio.StreamStreamMultiCallable[bytes, bytes]
        method = channel.stream_stream(f"/{SERVICE}/Session")
        return method(timeout=PATIENCE)

    def call(self) -> Call:
        """Open a session on a connection of its own."""
        channel = open_channel(self.address, None)
        self.channels.append(channel)
        stub: shard_pb2_grpc.ShardAsyncStub = shard_pb2_grpc.ShardStub(channel)
        return stub.Session(timeout=PATIENCE * 3)

    async def greet(self, cluster: str = "c-1") -> Call:
        """Open a session and read the answer to its Hello."""
        call = self.call()
        await call.write(shard_pb2.OperatorMessage(hello=hello(cluster)))
        assert (await told(call)).ack.echo == "hello"
        return call


@contextlib.asynccontextmanager
async def served(
    desk: Desk | None = None,
    name_of: Callable[[Context], str | None] | None = None,
    limits: RollUpLimits | None = None,
) -> AsyncIterator[Served]:
    server, parsed = WireServer([SERVICE]), Parsed()
    desk = desk or Desk()
    desk.rollups.offload = parsed
    add_sessions(server.grpc, desk.sessions, parsed, name_of or (lambda _: None), limits)
    made = Served(desk, parsed, await server.start(f"{HOST}:0"))
    try:
        yield made
    finally:
        for channel in made.channels:
            await channel.close()
        await server.grpc.stop(0)
        parsed.close()


async def told(call: Call) -> shard_pb2.ShardMessage:
    async with asyncio.timeout(PATIENCE):
        message = await call.read()
    assert isinstance(message, shard_pb2.ShardMessage), "the stream has ended"
    return message


async def end_of(call: grpc.aio.StreamStreamCall[Any, Any]) -> grpc.StatusCode:
    """Read to the end; how it ended."""
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(grpc.aio.AioRpcError):
            while await call.read() is not grpc.aio.EOF:
                pass
        return await call.code()


def ends(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Code and words of each session that was closed."""
    closed = [r.__dict__ for r in caplog.records if r.message == "operator session closed"]
    return [(keys["code"], keys["error"]) for keys in closed]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)


async def test_a_session_from_hello_to_close() -> None:
    desk = Desk()
    for number in range(3):
        desk.book.take(machine(f"m-{number}", cluster="c-1"))
    async with served(desk) as shard:
        call = await shard.greet()
        updates = [(await told(call)).node_state_update for _ in range(3)]
        assert [(u.machine_id, u.cluster_id, u.provider_id) for u in updates] == [
            (f"m-{number}", "c-1", f"i-m-{number}") for number in range(3)
        ]
        await call.write(shard_pb2.OperatorMessage(rollup=rollup(row(cpu="12"), at=5)))
        assert (await told(call)).ack.rollup_timestamp_unix_nanos == 5
        desk.book.start("m-0", MachineState.DRAINING)
        assert (await told(call)).node_state_update.state == MachineState.DRAINING.value
        await call.done_writing()
        assert await end_of(call) is grpc.StatusCode.OK
        await until(lambda: not desk.sessions.connected("c-1"))
        assert desk.needs.accepted("c-1")


async def test_an_operator_that_says_everything_at_once_gets_all_answers() -> None:
    async with served() as shard:
        call = shard.call()
        await call.write(shard_pb2.OperatorMessage(hello=hello()))
        await call.write(shard_pb2.OperatorMessage(rollup=rollup(row())))
        await call.done_writing()
        assert [(await told(call)).ack.echo for _ in range(2)] == ["hello", "rollup"]
        assert await end_of(call) is grpc.StatusCode.OK


@pytest.mark.parametrize(
    "frame",
    [
        shard_pb2.OperatorMessage(rollup=rollup(row())),
        shard_pb2.OperatorMessage(hello=shard_pb2.Hello()),
        None,
    ],
)
async def test_without_a_hello_there_is_no_session(frame: shard_pb2.OperatorMessage | None) -> None:
    async with served() as shard:
        call = shard.call()
        if frame is not None:
            await call.write(frame)
        await call.done_writing()
        assert await end_of(call) is grpc.StatusCode.INVALID_ARGUMENT


async def test_the_second_session_of_a_cluster_aborts_the_first() -> None:
    async with served() as shard:
        first = await shard.greet()
        second = await shard.greet()
        assert await end_of(first) is grpc.StatusCode.ABORTED
        await second.write(shard_pb2.OperatorMessage(rollup=rollup(row(), at=3)))
        assert (await told(second)).ack.rollup_timestamp_unix_nanos == 3


async def test_bytes_that_are_no_frame_end_the_session() -> None:
    async with served() as shard:
        call = shard.raw()
        await call.write(shard_pb2.OperatorMessage(hello=hello()).SerializeToString())
        await call.read()
        await call.write(b"\xff\xff\xff")
        assert await end_of(call) is grpc.StatusCode.INVALID_ARGUMENT


async def test_unknown_and_empty_frames_leave_the_stream_up() -> None:
    async with served() as shard:
        call = shard.raw()
        greeting = shard_pb2.OperatorMessage(hello=hello()).SerializeToString()
        for frame in (greeting, b"", b"\xfa\x3e\x03new", greeting):
            await call.write(frame)
        for _ in range(2):
            answer = await call.read()
            assert isinstance(answer, bytes)
            assert shard_pb2.ShardMessage.FromString(answer).ack.echo == "hello"


async def test_who_lies_about_its_cluster_is_turned_away() -> None:
    async with served(name_of=lambda _: "bigfleet://cluster/c-7") as shard:
        liar = shard.call()
        await liar.write(shard_pb2.OperatorMessage(hello=hello("c-1")))
        assert await end_of(liar) is grpc.StatusCode.PERMISSION_DENIED
        assert shard.desk.metrics.strangers == 1
        honest = await shard.greet("c-7")
        await honest.write(shard_pb2.OperatorMessage(rollup=rollup(row(), cluster="c-1")))
        assert await end_of(honest) is grpc.StatusCode.INVALID_ARGUMENT
        assert shard.desk.metrics.rejected == ["c-7"]
        assert shard.desk.needs.clusters() == []


async def test_a_roll_up_of_five_mebibytes_is_parsed_off_the_loop_and_taken() -> None:
    message = shard_pb2.OperatorMessage(rollup=typical(17_000))
    assert message.ByteSize() > 5 * 2**20
    desk = Desk(limits=RollUpLimits(requirement_sets=17_000))
    async with served(desk, limits=desk.rollups.ingest.limits) as shard:
        call = await shard.greet()
        await call.write(message)
        ack = (await told(call)).ack
        assert (ack.echo, ack.rollup_timestamp_unix_nanos) == ("rollup", 1)
        assert shard.parsed.count == 2, "decoded once, made columns once"
        assert len(shard.desk.needs) == 17_000


async def test_an_operator_that_stops_reading_is_let_go_and_replayed_when_it_comes_back() -> None:
    desk = Desk(outbox_bound=64)
    for number in range(500):
        desk.book.take(machine(f"m-{number:03}", cluster="c-1"))
    async with served(desk) as shard:
        deaf = shard.call()
        await deaf.write(shard_pb2.OperatorMessage(hello=hello()))
        await until(lambda: desk.sessions.connected("c-1"))
        echo = shard_pb2.ShardMessage(ack=shard_pb2.Acknowledgement(echo="x" * 50_000))
        await until(lambda: not desk.sessions.send("c-1", echo))
        await until(lambda: not desk.sessions.clusters())
        assert await end_of(deaf) is grpc.StatusCode.RESOURCE_EXHAUSTED
        again = await shard.greet()
        seen = {(await told(again)).node_state_update.machine_id for _ in range(500)}
        assert len(seen) == 500


async def test_nothing_is_kept_of_a_session_whose_operator_reads_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grpc_server, "STATUS_SECONDS", 0.05)
    made: list[weakref.ref[GrpcStream]] = []

    class Noted(GrpcStream):
        def __init__(self, *around: Any) -> None:
            super().__init__(*around)
            made.append(weakref.ref(self))

    monkeypatch.setattr(grpc_server, "GrpcStream", Noted)
    desk = Desk(outbox_bound=64)
    async with served(desk) as shard:
        deaf = shard.call()
        await deaf.write(shard_pb2.OperatorMessage(hello=hello()))
        await until(lambda: desk.sessions.connected("c-1"))
        echo = shard_pb2.ShardMessage(ack=shard_pb2.Acknowledgement(echo="x" * 50_000))
        await until(lambda: not desk.sessions.send("c-1", echo))
        await until(lambda: not desk.sessions.clusters())
        (stream,) = made

        def is_forgotten() -> bool:
            gc.collect()
            return stream() is None

        # The connection is still there, and nothing was read from it.
        await until(is_forgotten)
        assert not deaf.done()


async def test_a_session_whose_peer_is_gone_is_removed() -> None:
    async with served() as shard:
        call = await shard.greet()
        call.cancel()
        await until(lambda: not shard.desk.sessions.connected("c-1"))
        other = await shard.greet("c-2")
        await shard.channels[-1].close()
        await until(lambda: not shard.desk.sessions.connected("c-2"))
        assert other.done()
    assert shard.desk.metrics.events[-1] == ("removed", 0)


async def test_a_broken_connection_is_never_taken_for_an_orderly_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    async with served() as shard:
        for number in range(20):
            call = await shard.greet()
            if number % 2:
                call.cancel()
            else:
                await shard.channels[-1].close()
            await until(lambda: not shard.desk.sessions.clusters())
        call = await shard.greet()
        await call.done_writing()
        assert await end_of(call) is grpc.StatusCode.OK
        await until(lambda: not shard.desk.sessions.clusters())
    broke = ("CANCELLED", "the connection broke")
    assert ends(caplog) == [broke] * 20 + [("OK", "")]
    assert caplog.messages.count("operator session recv error") == 20


async def test_a_shard_that_stops_does_not_blame_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    async with served() as shard:
        await shard.greet()
        shard.desk.sessions.stop()
        await shard.channels[-1].close()
        await until(lambda: not shard.desk.sessions.clusters())
    assert ends(caplog) == [("CANCELLED", "this shard stops")]
    assert "operator session recv error" not in caplog.messages


async def test_a_storm_of_reconnects_ends_with_one_session_per_cluster() -> None:
    desk = Desk()
    clusters = [f"c-{number}" for number in range(10)]
    for number in range(200):
        desk.book.take(machine(f"m-{number:03}", cluster=clusters[number % 10]))
    async with served(desk) as shard:
        calls = [(shard.call(), cluster) for cluster in clusters for _ in range(8)]
        told_of: list[set[str]] = [set() for _ in calls]

        async def listen(call: Call, cluster: str, machines: set[str]) -> grpc.StatusCode:
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                await call.write(shard_pb2.OperatorMessage(hello=hello(cluster)))
                while isinstance(frame := await call.read(), shard_pb2.ShardMessage):
                    if frame.HasField("node_state_update"):
                        machines.add(frame.node_state_update.machine_id)
            return await call.code()

        listening = [
            asyncio.ensure_future(listen(*call, machines))
            for call, machines in zip(calls, told_of, strict=True)
        ]
        await until(lambda: sum(task.done() for task in listening) == 70)
        assert {task.result() for task in listening if task.done()} == {grpc.StatusCode.ABORTED}
        assert sorted(desk.sessions.clusters()) == clusters
        living = [told_of[at] for at, task in enumerate(listening) if not task.done()]
        await until(lambda: [len(machines) for machines in living] == [20] * 10)
        for call, _ in calls:
            call.cancel()
        await asyncio.gather(*listening, return_exceptions=True)


async def test_bootstrap_data_makes_the_round_trip() -> None:
    desk = Desk()
    async with served(desk) as shard:
        call = await shard.greet()
        idle = machine("m-1", MachineState.IDLE)
        waiting = asyncio.ensure_future(desk.sessions.bootstrap("c-1", Profile.of(), idle, 20))
        request = (await told(call)).bootstrap_request
        data = bytes(range(256)) * 64
        answer = shard_pb2.BootstrapBlobResponse(request_id=request.request_id, user_data=data)
        await call.write(shard_pb2.OperatorMessage(bootstrap_response=answer))
        assert (await waiting).user_data == data


def field(number: int, content: bytes) -> bytes:
    """A message or text as protobuf writes it."""
    length, out = len(content), bytearray([number << 3 | 2])
    while length > 127:
        out.append(length & 127 | 128)
        length >>= 7
    return bytes([*out, length]) + content


async def read(raw: grpc.aio.StreamStreamCall[bytes, bytes]) -> shard_pb2.Acknowledgement:
    frame = await raw.read()
    assert isinstance(frame, bytes)
    return shard_pb2.ShardMessage.FromString(frame).ack


async def test_a_rollup_beyond_the_limit_is_answered_without_being_decoded() -> None:
    async with served() as there:
        raw = there.raw()
        await raw.write(shard_pb2.OperatorMessage(hello=hello()).SerializeToString())
        assert (await read(raw)).max_rows == 20_000
        await raw.write(field(2, field(1, b"c-1") + b"\x10\x07" + b"\x1a\x00" * 1_000_000))
        ack = await read(raw)
        assert (ack.echo, ack.rollup_timestamp_unix_nanos) == ("rollup_rejected", 7)
        assert "1000000 rows; this shard takes at most 20000 rows" in ack.reason
        await raw.write(shard_pb2.OperatorMessage(rollup=rollup(row(), at=8)).SerializeToString())
        ack = await read(raw)
        assert (ack.echo, ack.rollup_timestamp_unix_nanos) == ("rollup", 8)


async def test_a_first_frame_of_60_mb_is_refused_without_being_decoded() -> None:
    async with served() as there:
        raw = there.raw()
        huge = shard_pb2.Hello(cluster_id="c" * 60_000_000)
        await raw.write(shard_pb2.OperatorMessage(hello=huge).SerializeToString())
        assert await raw.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert len(await raw.details() or "") < 500
        assert there.desk.sessions.clusters() == []
