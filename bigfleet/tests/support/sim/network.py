"""How long things take on the way, and what never arrives.

Two kinds of traffic. Calls to providers are independent of each other: they overtake, get lost on
the way there or back, arrive after the caller has given up, arrive twice. Sessions are streams:
frames keep their order, and what is lost breaks the connection, which each end notices in its own
time. `Weather` says how bad it is; the fault plan changes it.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Generic, TypeVar

from bigfleet_api.v1alpha1 import shard_pb2 as pb
from sim.process import Process
from sim.trace import Trace

T = TypeVar("T")
WINDOW: Final = 64
"""Frames on the way of one stream, in one direction, before the sender waits."""
NOWHERE: Final = contextvars.Context()
"""The context of what belongs to no process: it goes on when processes die."""


class BrokenError(ConnectionResetError):
    """The other end is gone, or the way to it."""


@dataclass
class Weather:
    """What the network is like now."""

    delay: float = 0.002
    """Typical seconds one way; most take less, a few much more."""
    spread: float = 1.0
    lost_request: float = 0.0
    lost_answer: float = 0.0
    duplicate: float = 0.0
    straggler: float = 0.0
    """Share of messages that take seconds, sometimes longer than anybody waits."""
    reset: float = 0.0
    """Share of frames with which a stream breaks."""


class Network:
    """Delays and cuts between named ends."""

    def __init__(self, rng: Random, trace: Trace) -> None:
        self.rng = rng
        self.trace = trace
        self.weather = Weather()
        self._cut: set[frozenset[str]] = set()
        self._listeners: dict[str, tuple[Process, Callable[[ShardEnd], Awaitable[None]]]] = {}
        self._connections: list[Connection] = []

    def cut(self, one: str, other: str) -> None:
        """Nothing passes between two ends."""
        self._cut.add(frozenset((one, other)))

    def mend(self, one: str, other: str) -> None:
        """It passes again."""
        self._cut.discard(frozenset((one, other)))

    def mend_all(self) -> None:
        """Everything passes, at its usual pace."""
        self._cut.clear()
        self.weather = Weather()

    def is_cut(self, one: str, other: str) -> bool:
        """Whether nothing passes."""
        return frozenset((one, other)) in self._cut

    def delay(self) -> float:
        """Seconds one message takes."""
        rng, weather = self.rng, self.weather
        if weather.straggler and rng.random() < weather.straggler:
            return rng.uniform(0.5, 45.0)
        return weather.delay * (0.2 + weather.spread * rng.expovariate(1.0))

    # Sessions

    def listen(
        self, name: str, process: Process, serve: Callable[[ShardEnd], Awaitable[None]]
    ) -> None:
        """A shard takes connections under a name, until its process dies."""
        self._listeners[name] = (process, serve)
        process.at_death(lambda: self._died(name, process))

    async def dial(self, caller: str, process: Process, name: str) -> OperatorEnd:
        """Open a stream to a shard."""
        await asyncio.sleep(self.delay())
        found = self._listeners.get(name)
        if found is None or not found[0].alive or self.is_cut(caller, name):
            await asyncio.sleep(self.delay())
            raise BrokenError(f"nobody answers at {name}")
        server, serve = found
        connection = Connection(self, caller, name, (process, server))
        self._connections = [other for other in self._connections if not other.broken]
        self._connections.append(connection)
        process.at_death(connection.break_now)

        async def session() -> None:
            try:
                await serve(ShardEnd(connection))
            finally:
                connection.down.end()
                connection.up.stop()

        server.spawn(session(), f"session-{caller}")
        return OperatorEnd(connection)

    def break_streams(self, one: str, other: str | None = None) -> None:
        """Break the open streams of an end, or those between two."""
        for connection in self._connections:
            ends = (connection.caller, connection.name)
            if one in ends and (other is None or other in ends):
                connection.break_soon()

    def _died(self, name: str, process: Process) -> None:
        if self._listeners.get(name, (None,))[0] is process:
            del self._listeners[name]
        for connection in self._connections:
            if connection.server is process:
                connection.break_now()


class Pipe(Generic[T]):
    """One direction of a stream."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._arrived: deque[T | None] = deque()
        self._on_way = 0
        self._latest = 0.0
        self._ended = False
        self._broken = False
        self._stopped = False
        self._reader: asyncio.Future[None] | None = None
        self._writers: deque[asyncio.Future[None]] = deque()

    async def put(self, frame: T) -> None:
        """Send; waits while too much is on the way."""
        while self._on_way + len(self._arrived) >= WINDOW and not self._broken:
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
        """Nobody reads any more."""
        self._stopped = True
        self._wake_all()

    def breaks(self) -> None:
        """Both its ends notice; what has arrived can still be read."""
        self._broken = True
        self._wake_all()

    def _send(self, frame: T | None) -> None:
        self._on_way += 1
        network, loop = self._connection.network, asyncio.get_running_loop()
        if network.weather.reset and network.rng.random() < network.weather.reset:
            self._connection.break_soon()
        self._latest = max(self._latest, loop.time() + network.delay())
        loop.call_at(self._latest, self._arrive, frame, context=NOWHERE)

    def _arrive(self, frame: T | None) -> None:
        self._on_way -= 1
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

    def __init__(
        self, network: Network, caller: str, name: str, ends: tuple[Process, Process]
    ) -> None:
        self.network = network
        self.caller = caller
        self.name = name
        self.client, self.server = ends
        self.silent = False
        """Nothing arrives any more; the ends have not noticed yet."""
        self.broken = False
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

    def break_now(self) -> None:
        """Both ends notice at once, as when a process dies."""
        self.silent = self.broken = True
        self.up.breaks()
        self.down.breaks()


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


class OperatorEnd:
    """The cluster's end of a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def send(self, message: pb.OperatorMessage) -> None:
        """A frame for the shard."""
        await self._connection.up.put(message)

    async def receive(self) -> pb.ShardMessage | None:
        """The shard's next frame; None when it closed."""
        return await self._connection.down.get()

    def close(self) -> None:
        """No more frames from here."""
        self._connection.up.end()
        self._connection.down.stop()


def _wake(waiter: asyncio.Future[Any] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
