"""Sessions over the simulated network: streams between operators and shards.

Frames keep their order and arrive after a delay. What is lost breaks the connection, and each end
notices in its own time: until then it is half open.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar

from google.protobuf.message import DecodeError

from bigfleet.wire.session import StreamClosedError
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from sim.network import NOWHERE, Network
from sim.process import Process

T = TypeVar("T")
WINDOW: Final = 64
"""Frames on the way of one stream, in one direction, before the sender waits."""


class BrokenError(ConnectionResetError):
    """The other end is gone, or the way to it."""


class Switchboard:
    """Who listens under which name, and which streams are open."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self._listeners: dict[str, tuple[Process, Serve]] = {}
        self._connections: list[Connection] = []

    def listen(self, name: str, process: Process, serve: Serve) -> None:
        """A shard takes connections under a name, until its process dies."""
        self._listeners[name] = (process, serve)
        process.at_death(lambda: self._died(name, process))

    async def dial(self, caller: str, name: str) -> OperatorEnd:
        """Open a stream to a shard. Where no process answers, the first use of it says so."""
        await asyncio.sleep(self.network.delay())
        found = self._listeners.get(name)
        if found is None or not found[0].alive or self.network.is_cut(caller, name):
            connection = Connection(self.network, caller, name, None)
            connection.break_now("UNAVAILABLE", f"no process answers at {name}")
            return OperatorEnd(connection)
        server, serve = found
        connection = Connection(self.network, caller, name, server)
        self._connections = [other for other in self._connections if not other.broken]
        self._connections.append(connection)

        async def session() -> None:
            code, text = "OK", ""
            try:
                await serve(ShardEnd(connection))
            except BrokenError as error:
                code, text = "UNKNOWN", str(error)
            except asyncio.CancelledError:
                code, text = "UNAVAILABLE", "the shard stops"
            except Exception as error:  # noqa: BLE001 - whatever ends a session is told
                code, text = _code_of(error), str(error)
            connection.finish(code, text)

        connection.session = server.spawn(session(), f"session-{caller}")
        return OperatorEnd(connection)

    def break_streams(self, one: str, other: str | None = None) -> None:
        """Break the open streams of an end, or those between two."""
        for connection in self._connections:
            ends = (connection.caller, connection.name)
            if one in ends and (other is None or other in ends):
                connection.break_soon()

    def hang_up(self, process: Process) -> None:
        """A shard stops in order: its server listens no more and ends what it serves."""
        self._listeners = {
            name: found for name, found in self._listeners.items() if found[0] is not process
        }
        for connection in self._connections:
            if connection.server is process and connection.session is not None:
                connection.session.cancel()

    def _died(self, name: str, process: Process) -> None:
        if self._listeners.get(name, (None,))[0] is process:
            del self._listeners[name]
        for connection in self._connections:
            if connection.server is process:
                connection.break_now("UNAVAILABLE", "the shard is gone")


class Pipe(Generic[T]):
    """One direction of a stream."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._arrived: deque[T | None] = deque()
        self._on_way: deque[T | None] = deque()
        self._latest = 0.0
        self._ended = False
        self._broken = False
        self._stopped = False
        self._reader: asyncio.Future[None] | None = None
        self._writers: deque[asyncio.Future[None]] = deque()

    async def put(self, frame: T) -> None:
        """Send; waits while too much is on the way."""
        while len(self._on_way) + len(self._arrived) >= WINDOW and not self._broken:
            waiter = asyncio.get_running_loop().create_future()
            self._writers.append(waiter)
            await waiter
        if self._broken or self._ended:
            raise BrokenError("the stream is closed")
        if not self._stopped:
            self._send(frame)

    async def get(self) -> T | None:
        """The next frame, None at the end."""
        while not self._arrived:
            if self._broken:
                raise BrokenError("the stream broke")
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        frame = self._arrived[0]
        if frame is not None:
            self._arrived.popleft()
            _wake(self._writers.popleft() if self._writers else None)
        return frame

    def end(self) -> None:
        """No more frames; those on the way still arrive."""
        if not self._ended and not self._broken:
            self._send(None)
            self._ended = True

    def stop(self) -> None:
        """No reader is left."""
        self._stopped = True
        self._wake_all()

    def breaks(self) -> None:
        """Both its ends notice; what has arrived can still be read."""
        self._broken = True
        self._wake_all()

    def _send(self, frame: T | None) -> None:
        self._on_way.append(frame)
        network, loop = self._connection.network, asyncio.get_running_loop()
        if network.weather.reset and network.rng.random() < network.weather.reset:
            self._connection.break_soon()
        self._latest = max(self._latest, loop.time() + network.delay())
        loop.call_at(self._latest, self._arrive, context=NOWHERE)

    def _arrive(self) -> None:
        # The first on the way, whichever timer of one instant comes first.
        frame = self._on_way.popleft()
        connection = self._connection
        if self._broken or connection.silent:
            return
        if connection.network.is_cut(connection.caller, connection.name):
            connection.break_soon()
            return
        self._arrived.append(frame)
        _wake(self._reader)

    def _wake_all(self) -> None:
        _wake(self._reader)
        while self._writers:
            _wake(self._writers.popleft())


class Connection:
    """A stream between an operator and a shard."""

    def __init__(self, network: Network, caller: str, name: str, server: Process | None) -> None:
        self.network = network
        self.caller = caller
        self.name = name
        self.server = server
        self.session: asyncio.Task[Any] | None = None
        self.silent = False
        """Nothing arrives any more; the ends have not noticed yet."""
        self.broken = False
        self.status = ("OK", "")
        """How the shard ended it."""
        self.up: Pipe[pb.OperatorMessage] = Pipe(self)
        self.down: Pipe[pb.ShardMessage] = Pipe(self)

    def break_soon(self) -> None:
        """The connection is lost: each end notices in its own time."""
        if self.silent or self.broken:
            return
        self.silent = True
        loop, rng = asyncio.get_running_loop(), self.network.rng
        for pipe in (self.up, self.down):
            after = rng.choice((0.01, 0.5, 5.0, 30.0)) * rng.random()
            loop.call_later(after, pipe.breaks, context=NOWHERE)
        loop.call_later(31.0, self.break_now, context=NOWHERE)

    def break_now(self, code: str = "UNAVAILABLE", text: str = "the connection broke") -> None:
        """Both ends notice at once, as when a process dies."""
        if not self.broken:
            self.silent = self.broken = True
            self.status = (code, text)
            self.up.breaks()
            self.down.breaks()

    def finish(self, code: str, text: str) -> None:
        """The shard is done with it."""
        if not self.broken:
            self.status = (code, text)
            self.down.end()
            self.up.stop()


class ShardEnd:
    """`bigfleet.shard.ports.Stream` over a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def identity(self) -> str | None:
        """There is no TLS here."""
        return None

    async def receive(self) -> pb.OperatorMessage | None:
        """The operator's next frame."""
        return await self._connection.up.get()

    async def send(self, message: pb.ShardMessage) -> None:
        """A frame for the operator."""
        copy = pb.ShardMessage()
        copy.CopyFrom(message)
        await self._connection.down.put(copy)


Serve = Callable[[ShardEnd], Awaitable[None]]


class OperatorEnd:
    """`bigfleet.wire.session.SessionStream` over a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def send(self, message: pb.OperatorMessage) -> None:
        """A frame for the shard."""
        copy = pb.OperatorMessage()
        copy.CopyFrom(message)
        try:
            await self._connection.up.put(copy)
        except BrokenError as error:
            raise self._closed() from error

    async def send_bytes(self, frame: bytes) -> None:
        """Bytes for the shard; what is not a message breaks the stream, as it does with gRPC."""
        try:
            message = pb.OperatorMessage.FromString(frame)
        except DecodeError as error:
            self._connection.break_now("INTERNAL", str(error))
            raise self._closed() from error
        await self.send(message)

    async def receive(self) -> pb.ShardMessage | None:
        """The shard's next frame; None when it ended in order."""
        try:
            frame = await self._connection.down.get()
        except BrokenError as error:
            raise self._closed() from error
        if frame is None and self._connection.status[0] != "OK":
            raise self._closed()
        return frame

    async def close(self) -> None:
        """No more frames from here."""
        self._connection.up.end()

    def drop(self) -> None:
        """Cut it at once."""
        self._connection.break_now("CANCELLED", "the operator is gone")

    def _closed(self) -> StreamClosedError:
        code, text = self._connection.status
        return StreamClosedError(*(("UNAVAILABLE", "broken") if code == "OK" else (code, text)))


class Dialling:
    """`bigfleet_lab.simcluster.ports.Dial`: operators' way to one shard after the other."""

    def __init__(self, board: Switchboard, shard_of: Callable[[str], str]) -> None:
        self._board = board
        self._shard_of = shard_of

    async def __call__(self, cluster_id: str) -> OperatorEnd:
        """A new stream for a cluster, to the shard that serves it now."""
        return await self._board.dial(cluster_id, self._shard_of(cluster_id))

    async def close(self) -> None:
        """Nothing is kept open here."""


def _code_of(error: Exception) -> str:
    code = getattr(error, "code", None)
    return str(getattr(code, "name", code or "UNKNOWN"))


def _wake(waiter: asyncio.Future[Any] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
